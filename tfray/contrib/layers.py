"""``tf.contrib.layers``: layers as functions, feature columns, initializers and regularizers, by their older names."""

from tfray.library.inspect.tensor_summaries import (
    summarize_activation,
    summarize_activations,
    summarize_biases,
    summarize_collection,
    summarize_tensor,
    summarize_tensors,
    summarize_variables,
    summarize_weights,
)
from tfray.library.layers.older_columns import (
    bucketized_column,
    create_feature_spec_for_parsing,
    crossed_column,
    embedding_column,
    make_place_holder_tensors_for_base_features,
    one_hot_column,
    real_valued_column,
    scattered_embedding_column,
    shared_embedding_columns,
    sparse_column_with_hash_bucket,
    sparse_column_with_integerized_feature,
    sparse_column_with_keys,
    sparse_column_with_vocabulary_file,
    weighted_sparse_column,
)
from tfray.library.layers.older_inputs import (
    input_from_feature_columns,
    joint_weighted_sum_from_feature_columns,
    parse_feature_columns_from_examples,
    sequence_input_from_feature_columns,
    transform_features,
    weighted_sum_from_feature_columns,
)
from tfray.library.layers.reversible_layers import RevBlock, rev_block
from tfray.library.layers.slim_functions import (
    avg_pool2d,
    bow_encoder,
    dropout,
    elu,
    embed_sequence,
    embedding_lookup_unique,
    flatten,
    instance_norm,
    layer_norm,
    legacy_fully_connected,
    legacy_linear,
    legacy_relu,
    linear,
    max_pool2d,
    maxout,
    one_hot_encoding,
    recompute_grad,
    relu,
    relu6,
    repeat,
    softmax,
    stack,
    unit_norm,
    variance_scaling_initializer,
    xavier_initializer,
    xavier_initializer_conv2d,
)
from tfray.library.layers.slim_images import GDN, conv2d_in_plane, convolution2d_in_plane, gdn, spatial_softmax
from tfray.library.layers.slim_layers import (
    batch_norm,
    bias_add,
    conv1d,
    conv2d,
    conv2d_transpose,
    convolution1d,
    convolution2d,
    convolution2d_transpose,
    fully_connected,
    separable_conv2d,
    separable_convolution2d,
)
from tfray.library.layers.slim_volumes import (
    avg_pool3d,
    conv3d,
    conv3d_transpose,
    convolution,
    convolution3d,
    convolution3d_transpose,
    group_norm,
    max_pool3d,
)
from tfray.library.rnn.sequence_labels import dense_to_sparse
from tfray.library.variables.regularizers import (
    apply_regularization,
    l1_l2_regularizer,
    l1_regularizer,
    l2_regularizer,
    sum_regularizer,
)
from tfray.ops.nn.embedding_bag_ops import safe_embedding_lookup_sparse
from tfray.training.sessions.optimize_loss import (
    OPTIMIZER_CLS_NAMES,
    OPTIMIZER_SUMMARIES,
    adaptive_clipping_fn,
    optimize_loss,
)

# fmt: off
__all__ = [
    "GDN", "OPTIMIZER_CLS_NAMES", "OPTIMIZER_SUMMARIES", "RevBlock", "adaptive_clipping_fn", "apply_regularization",
    "avg_pool2d", "avg_pool3d", "batch_norm", "bias_add", "bow_encoder", "bucketized_column", "conv1d", "conv2d",
    "conv2d_in_plane", "conv2d_transpose", "conv3d", "conv3d_transpose", "convolution", "convolution1d",
    "convolution2d", "convolution2d_in_plane", "convolution2d_transpose", "convolution3d",
    "convolution3d_transpose", "create_feature_spec_for_parsing", "crossed_column", "dense_to_sparse", "dropout",
    "elu", "embed_sequence", "embedding_column", "embedding_lookup_unique", "flatten", "fully_connected", "gdn",
    "group_norm", "input_from_feature_columns", "instance_norm", "joint_weighted_sum_from_feature_columns",
    "l1_l2_regularizer", "l1_regularizer", "l2_regularizer", "layer_norm", "legacy_fully_connected",
    "legacy_linear", "legacy_relu", "linear", "make_place_holder_tensors_for_base_features", "max_pool2d",
    "max_pool3d", "maxout", "one_hot_column", "one_hot_encoding", "optimize_loss",
    "parse_feature_columns_from_examples", "real_valued_column", "recompute_grad", "relu", "relu6", "repeat",
    "rev_block", "safe_embedding_lookup_sparse", "scattered_embedding_column", "separable_conv2d",
    "separable_convolution2d", "sequence_input_from_feature_columns", "shared_embedding_columns", "softmax",
    "sparse_column_with_hash_bucket", "sparse_column_with_integerized_feature", "sparse_column_with_keys",
    "sparse_column_with_vocabulary_file", "spatial_softmax", "stack", "sum_regularizer", "summarize_activation",
    "summarize_activations", "summarize_biases", "summarize_collection", "summarize_tensor", "summarize_tensors",
    "summarize_variables", "summarize_weights", "transform_features", "unit_norm", "variance_scaling_initializer",
    "weighted_sparse_column", "weighted_sum_from_feature_columns", "xavier_initializer",
    "xavier_initializer_conv2d",
]
# fmt: on
