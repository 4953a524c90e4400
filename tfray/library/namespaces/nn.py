"""``tf.nn``: operations of neural networks: activations, convolutions, pooling, losses, embeddings, RNNs.

They take their weights as arguments; use `tf.layers` for layers that make their own variables.
"""

from tfray.library.namespaces import rnn_cell
from tfray.library.rnn import legacy_seq2seq as seq2seq
from tfray.library.rnn.rnn import (
    bidirectional_dynamic_rnn,
    dynamic_rnn,
    raw_rnn,
    static_bidirectional_rnn,
    static_rnn,
    static_state_saving_rnn,
)
from tfray.library.rnn.rnn import static_bidirectional_rnn as bidirectional_rnn
from tfray.library.rnn.rnn import static_rnn as rnn
from tfray.library.variables.dynamic_embedding import dynamic_embedding_lookup
from tfray.ops.arrays.space_block_ops import depth_to_space, space_to_batch, space_to_depth
from tfray.ops.math.search_ops import in_top_k, top_k
from tfray.ops.math.sorting_ops import nth_element
from tfray.ops.math.transcendental_ops import sigmoid, tanh
from tfray.ops.nn.activation_ops import (
    crelu,
    elu,
    leaky_relu,
    log_sigmoid,
    relu,
    relu6,
    selu,
    softplus,
    softsign,
    swish,
)
from tfray.ops.nn.activation_ops import swish as silu
from tfray.ops.nn.any_rank_conv_ops import (
    avg_pool3d,
    avg_pool_v2,
    conv1d_transpose,
    conv_transpose,
    convolution,
    max_pool3d,
    max_pool_v2,
    pool,
    with_space_to_batch,
)
from tfray.ops.nn.batch_norm_ops import fused_batch_norm
from tfray.ops.nn.candidate_sampling_ops import (
    all_candidate_sampler,
    compute_accidental_hits,
    fixed_unigram_candidate_sampler,
    learned_unigram_candidate_sampler,
    log_uniform_candidate_sampler,
    uniform_candidate_sampler,
)
from tfray.ops.nn.conv3d_ops import conv3d, conv3d_backprop_filter, conv3d_transpose
from tfray.ops.nn.conv3d_ops import conv3d_backprop_filter as conv3d_backprop_filter_v2
from tfray.ops.nn.conv_ops import (
    atrous_conv2d,
    atrous_conv2d_transpose,
    conv1d,
    conv2d,
    conv2d_backprop_filter,
    conv2d_backprop_input,
    conv2d_transpose,
)
from tfray.ops.nn.cross_entropy_ops import (
    log_poisson_loss,
    log_softmax,
    sigmoid_cross_entropy_with_logits,
    softmax,
    softmax_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits_v2,
    sparse_softmax_cross_entropy_with_logits,
    weighted_cross_entropy_with_logits,
)
from tfray.ops.nn.ctc_ops import (
    collapse_repeated,
    ctc_beam_search_decoder,
    ctc_beam_search_decoder_v2,
    ctc_greedy_decoder,
    ctc_loss,
    ctc_loss_v2,
    ctc_unique_labels,
)
from tfray.ops.nn.depthwise_conv_ops import (
    depthwise_conv2d,
    depthwise_conv2d_native,
    depthwise_conv2d_native_backprop_filter,
    depthwise_conv2d_native_backprop_input,
    separable_conv2d,
)
from tfray.ops.nn.depthwise_conv_ops import depthwise_conv2d_native_backprop_filter as depthwise_conv2d_backprop_filter
from tfray.ops.nn.depthwise_conv_ops import depthwise_conv2d_native_backprop_input as depthwise_conv2d_backprop_input
from tfray.ops.nn.embedding_bag_ops import embedding_lookup_sparse, safe_embedding_lookup_sparse
from tfray.ops.nn.embedding_ops import embedding_lookup
from tfray.ops.nn.fractional_pooling_ops import fractional_avg_pool, fractional_max_pool
from tfray.ops.nn.moments_ops import (
    batch_norm_with_global_normalization,
    normalize_moments,
    sufficient_statistics,
    weighted_moments,
)
from tfray.ops.nn.morphology_ops import dilation2d, erosion2d
from tfray.ops.nn.nn_ops import (
    bias_add,
    compute_average_loss,
    dropout,
    l2_loss,
    relu_layer,
    scale_regularization_loss,
    xw_plus_b,
    zero_fraction,
)
from tfray.ops.nn.normalization_ops import (
    batch_normalization,
    l2_normalize,
    local_response_normalization,
    lrn,
    moments,
)
from tfray.ops.nn.pooling_ops import avg_pool, avg_pool1d, max_pool, max_pool1d, max_pool2d, max_pool_with_argmax
from tfray.ops.nn.pooling_ops import avg_pool as avg_pool2d
from tfray.ops.nn.sampled_loss_ops import nce_loss, sampled_softmax_loss
from tfray.ops.quantized.quantized_ops import quantized_avg_pool, quantized_conv2d, quantized_max_pool, quantized_relu_x

# fmt: off
__all__ = [
    "all_candidate_sampler", "atrous_conv2d", "atrous_conv2d_transpose", "avg_pool", "avg_pool1d", "avg_pool2d",
    "avg_pool3d", "avg_pool_v2", "batch_norm_with_global_normalization", "batch_normalization", "bias_add",
    "bidirectional_dynamic_rnn", "bidirectional_rnn", "collapse_repeated", "compute_accidental_hits",
    "compute_average_loss", "conv1d", "conv1d_transpose", "conv2d", "conv2d_backprop_filter", "conv2d_backprop_input",
    "conv2d_transpose", "conv3d", "conv3d_backprop_filter", "conv3d_backprop_filter_v2", "conv3d_transpose",
    "conv_transpose", "convolution", "crelu", "ctc_beam_search_decoder", "ctc_beam_search_decoder_v2",
    "ctc_greedy_decoder", "ctc_loss", "ctc_loss_v2", "ctc_unique_labels", "depth_to_space", "depthwise_conv2d",
    "depthwise_conv2d_backprop_filter", "depthwise_conv2d_backprop_input", "depthwise_conv2d_native",
    "depthwise_conv2d_native_backprop_filter", "depthwise_conv2d_native_backprop_input", "dilation2d", "dropout",
    "dynamic_embedding_lookup", "dynamic_rnn", "elu", "embedding_lookup", "embedding_lookup_sparse", "erosion2d",
    "fixed_unigram_candidate_sampler", "fractional_avg_pool", "fractional_max_pool", "fused_batch_norm", "in_top_k",
    "l2_loss", "l2_normalize", "leaky_relu", "learned_unigram_candidate_sampler", "local_response_normalization",
    "log_poisson_loss", "log_sigmoid", "log_softmax", "log_uniform_candidate_sampler", "lrn", "max_pool", "max_pool1d",
    "max_pool2d", "max_pool3d", "max_pool_v2", "max_pool_with_argmax", "moments", "nce_loss", "normalize_moments",
    "nth_element", "pool", "quantized_avg_pool", "quantized_conv2d", "quantized_max_pool", "quantized_relu_x",
    "raw_rnn", "relu", "relu6", "relu_layer", "rnn", "rnn_cell", "safe_embedding_lookup_sparse", "sampled_softmax_loss",
    "scale_regularization_loss", "selu", "separable_conv2d", "seq2seq", "sigmoid", "sigmoid_cross_entropy_with_logits",
    "silu", "softmax", "softmax_cross_entropy_with_logits", "softmax_cross_entropy_with_logits_v2", "softplus",
    "softsign", "space_to_batch", "space_to_depth", "sparse_softmax_cross_entropy_with_logits",
    "static_bidirectional_rnn", "static_rnn", "static_state_saving_rnn", "sufficient_statistics", "swish", "tanh",
    "top_k", "uniform_candidate_sampler", "weighted_cross_entropy_with_logits", "weighted_moments",
    "with_space_to_batch", "xw_plus_b", "zero_fraction",
]
# fmt: on
