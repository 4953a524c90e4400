"""The names of ``tf.contrib.slim``."""

# isort: skip_file
from tfray.contrib import losses as losses
from tfray.contrib.layers import (
    avg_pool2d as avg_pool2d,
    batch_norm as batch_norm,
    bias_add as bias_add,
    conv1d as conv1d,
    conv2d as conv2d,
    conv2d_transpose as conv2d_transpose,
    convolution2d as convolution2d,
    convolution2d_transpose as convolution2d_transpose,
    dropout as dropout,
    flatten as flatten,
    fully_connected as fully_connected,
    l1_l2_regularizer as l1_l2_regularizer,
    l1_regularizer as l1_regularizer,
    l2_regularizer as l2_regularizer,
    instance_norm as instance_norm,
    layer_norm as layer_norm,
    linear as linear,
    max_pool2d as max_pool2d,
    one_hot_encoding as one_hot_encoding,
    relu as relu,
    relu6 as relu6,
    repeat as repeat,
    separable_conv2d as separable_conv2d,
    separable_convolution2d as separable_convolution2d,
    softmax as softmax,
    stack as stack,
    unit_norm as unit_norm,
    variance_scaling_initializer as variance_scaling_initializer,
    xavier_initializer as xavier_initializer,
    xavier_initializer_conv2d as xavier_initializer_conv2d,
)
from tfray.library.layers.arg_scope import (
    add_arg_scope as add_arg_scope,
    arg_scope as arg_scope,
    arg_scoped_arguments as arg_scoped_arguments,
    current_arg_scope as current_arg_scope,
    has_arg_scope as has_arg_scope,
)
from tfray.library.layers.model_variables import (
    filter_variables as filter_variables,
    get_local_variables as get_local_variables,
    get_model_variables as get_model_variables,
    get_trainable_variables as get_trainable_variables,
    get_unique_variable as get_unique_variable,
    get_variables as get_variables,
    get_variables_by_name as get_variables_by_name,
    get_variables_by_suffix as get_variables_by_suffix,
    get_variables_to_restore as get_variables_to_restore,
    model_variable as model_variable,
    variable as variable,
)
from tfray.training.threads.global_step import (
    create_global_step as create_global_step,
    get_global_step as get_global_step,
    get_or_create_global_step as get_or_create_global_step,
)
from tfray.training.sessions import learning as learning
