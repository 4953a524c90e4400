"""The names of ``tf.contrib.layers``."""

# isort: skip_file
from tfray.library.layers.feature_column import (
    bucketized_column as bucketized_column,
    categorical_column_with_hash_bucket as sparse_column_with_hash_bucket,
    categorical_column_with_vocabulary_list as sparse_column_with_keys,
    crossed_column as crossed_column,
    embedding_column as embedding_column,
    indicator_column as one_hot_column,
    input_layer as input_from_feature_columns,
    numeric_column as real_valued_column,
)
from tfray.library.variables.regularizers import (
    apply_regularization as apply_regularization,
    l1_l2_regularizer as l1_l2_regularizer,
    l1_regularizer as l1_regularizer,
    l2_regularizer as l2_regularizer,
    sum_regularizer as sum_regularizer,
)
from tfray.library.rnn.sequence_labels import dense_to_sparse as dense_to_sparse
from tfray.library.layers.slim_functions import (
    avg_pool2d as avg_pool2d,
    dropout as dropout,
    embed_sequence as embed_sequence,
    flatten as flatten,
    instance_norm as instance_norm,
    layer_norm as layer_norm,
    linear as linear,
    max_pool2d as max_pool2d,
    one_hot_encoding as one_hot_encoding,
    relu as relu,
    relu6 as relu6,
    repeat as repeat,
    softmax as softmax,
    stack as stack,
    unit_norm as unit_norm,
    variance_scaling_initializer as variance_scaling_initializer,
    xavier_initializer as xavier_initializer,
    xavier_initializer_conv2d as xavier_initializer_conv2d,
)
from tfray.library.layers.slim_layers import (
    batch_norm as batch_norm,
    bias_add as bias_add,
    conv1d as conv1d,
    conv2d as conv2d,
    conv2d_transpose as conv2d_transpose,
    convolution1d as convolution1d,
    convolution2d as convolution2d,
    convolution2d_transpose as convolution2d_transpose,
    fully_connected as fully_connected,
    separable_conv2d as separable_conv2d,
    separable_convolution2d as separable_convolution2d,
)
from tfray.training.sessions.optimize_loss import (
    OPTIMIZER_CLS_NAMES as OPTIMIZER_CLS_NAMES,
    optimize_loss as optimize_loss,
)
