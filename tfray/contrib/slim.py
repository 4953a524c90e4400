"""``tf.contrib.slim``: all of `tf.contrib.layers`, `arg_scope`, variables, losses and training loops."""

from tfray.contrib import layers, losses, metrics
from tfray.contrib import layers as initializers
from tfray.contrib import layers as regularizers
from tfray.contrib.framework import assert_global_step, assert_or_get_global_step
from tfray.contrib.layers import *  # noqa: F403  (all of them, as in TensorFlow)
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
    VariableDeviceChooser,
    add_model_variable,
    filter_variables,
    get_local_variables,
    get_model_variables,
    get_trainable_variables,
    get_unique_variable,
    get_variable_full_name,
    get_variables,
    get_variables_by_name,
    get_variables_by_suffix,
    get_variables_to_restore,
    global_variable,
    local_variable,
    model_variable,
    variable,
    zero_initializer,
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
    "VariableDeviceChooser", "add_arg_scope", "add_model_variable", "arg_scope", "arg_scoped_arguments",
    "assert_global_step", "assert_or_get_global_step", "assign_from_checkpoint", "assign_from_checkpoint_fn",
    "assign_from_values", "assign_from_values_fn", "create_global_step", "current_arg_scope", "data_decoder",
    "data_provider", "dataset", "dataset_data_provider", "evaluation", "filter_variables", "get_global_step",
    "get_local_variables", "get_model_variables", "get_or_create_global_step", "get_trainable_variables",
    "get_unique_variable", "get_variable_full_name", "get_variables", "get_variables_by_name",
    "get_variables_by_suffix", "get_variables_to_restore", "global_variable", "has_arg_scope", "initializers",
    "layers", "learning", "local_variable", "losses", "metrics", "model_analyzer", "model_variable", "nets",
    "parallel_reader", "prefetch_queue", "queues", "regularizers", "summaries", "tfexample_decoder", "utils",
    "variable", "zero_initializer",
]
# fmt: on
__all__ += layers.__all__
