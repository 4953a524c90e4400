"""``tf.contrib.slim``: layers as functions with `arg_scope`, variables, losses and training loops."""

from tfray.contrib import layers, losses, metrics
from tfray.contrib import layers as initializers
from tfray.contrib import layers as regularizers
from tfray.contrib.layers import (
    apply_regularization,
    avg_pool2d,
    avg_pool3d,
    batch_norm,
    bias_add,
    conv1d,
    conv2d,
    conv2d_transpose,
    conv3d,
    convolution2d,
    convolution2d_transpose,
    convolution3d,
    dropout,
    elu,
    embed_sequence,
    flatten,
    fully_connected,
    group_norm,
    instance_norm,
    l1_l2_regularizer,
    l1_regularizer,
    l2_regularizer,
    layer_norm,
    linear,
    max_pool2d,
    max_pool3d,
    maxout,
    one_hot_encoding,
    optimize_loss,
    relu,
    relu6,
    repeat,
    separable_conv2d,
    separable_convolution2d,
    softmax,
    stack,
    sum_regularizer,
    summarize_activation,
    summarize_activations,
    summarize_collection,
    summarize_tensor,
    summarize_tensors,
    unit_norm,
    variance_scaling_initializer,
    xavier_initializer,
    xavier_initializer_conv2d,
)
from tfray.library.input import example_decoder as data_decoder
from tfray.library.input import example_decoder as tfexample_decoder
from tfray.library.inspect import model_analyzer
from tfray.library.inspect import named_summaries as summaries
from tfray.library.layers import slim_utils as utils
from tfray.library.layers.arg_scope import (
    add_arg_scope,
    arg_scope,
    arg_scoped_arguments,
    current_arg_scope,
    has_arg_scope,
)
from tfray.library.layers.model_variables import (
    filter_variables,
    get_local_variables,
    get_model_variables,
    get_trainable_variables,
    get_unique_variable,
    get_variables,
    get_variables_by_name,
    get_variables_by_suffix,
    get_variables_to_restore,
    model_variable,
    variable,
)
from tfray.library.networks import nets
from tfray.training.checkpoints.assign_from_checkpoint import (
    assign_from_checkpoint,
    assign_from_checkpoint_fn,
    assign_from_values,
    assign_from_values_fn,
)
from tfray.training.input import data_provider
from tfray.training.input import data_provider as dataset
from tfray.training.input import data_provider as dataset_data_provider
from tfray.training.input import data_provider as parallel_reader
from tfray.training.input import data_provider as prefetch_queue
from tfray.training.sessions import learning
from tfray.training.sessions import slim_evaluation as evaluation
from tfray.training.threads import queue_runner as queues
from tfray.training.threads.global_step import create_global_step, get_global_step, get_or_create_global_step

# fmt: off
__all__ = [
    "add_arg_scope", "apply_regularization", "arg_scope", "arg_scoped_arguments", "assign_from_checkpoint",
    "assign_from_checkpoint_fn", "assign_from_values", "assign_from_values_fn", "avg_pool2d", "avg_pool3d",
    "batch_norm", "bias_add", "conv1d", "conv2d", "conv2d_transpose", "conv3d", "convolution2d",
    "convolution2d_transpose", "convolution3d", "create_global_step", "current_arg_scope", "data_decoder",
    "data_provider", "dataset", "dataset_data_provider", "dropout", "elu", "embed_sequence", "evaluation",
    "filter_variables", "flatten", "fully_connected", "get_global_step", "get_local_variables", "get_model_variables",
    "get_or_create_global_step", "get_trainable_variables", "get_unique_variable", "get_variables",
    "get_variables_by_name", "get_variables_by_suffix", "get_variables_to_restore", "group_norm", "has_arg_scope",
    "initializers", "instance_norm", "l1_l2_regularizer", "l1_regularizer", "l2_regularizer", "layer_norm", "layers",
    "learning", "linear", "losses", "max_pool2d", "max_pool3d", "maxout", "metrics", "model_analyzer", "model_variable",
    "nets", "one_hot_encoding", "optimize_loss", "parallel_reader", "prefetch_queue", "queues", "regularizers", "relu",
    "relu6", "repeat", "separable_conv2d", "separable_convolution2d", "softmax", "stack", "sum_regularizer",
    "summaries", "summarize_activation", "summarize_activations", "summarize_collection", "summarize_tensor",
    "summarize_tensors", "tfexample_decoder", "unit_norm", "utils", "variable", "variance_scaling_initializer",
    "xavier_initializer", "xavier_initializer_conv2d",
]
# fmt: on
