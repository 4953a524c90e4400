"""The names of ``tf.nn``."""

# isort: skip_file
from tfray.ops.nn.activation_ops import (
    crelu as crelu,
    elu as elu,
    log_sigmoid as log_sigmoid,
    leaky_relu as leaky_relu,
    relu as relu,
    relu6 as relu6,
    selu as selu,
    softplus as softplus,
    softsign as softsign,
    swish as silu,
    swish as swish,
)
from tfray.ops.nn.cross_entropy_ops import (
    log_poisson_loss as log_poisson_loss,
    log_softmax as log_softmax,
    sigmoid_cross_entropy_with_logits as sigmoid_cross_entropy_with_logits,
    softmax as softmax,
    softmax_cross_entropy_with_logits as softmax_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits_v2 as softmax_cross_entropy_with_logits_v2,
    sparse_softmax_cross_entropy_with_logits as sparse_softmax_cross_entropy_with_logits,
    weighted_cross_entropy_with_logits as weighted_cross_entropy_with_logits,
)
from tfray.ops.nn.nn_ops import (
    bias_add as bias_add,
    dropout as dropout,
    l2_loss as l2_loss,
    relu_layer as relu_layer,
    xw_plus_b as xw_plus_b,
    zero_fraction as zero_fraction,
)
from tfray.ops.nn.normalization_ops import (
    batch_normalization as batch_normalization,
    fused_batch_norm as fused_batch_norm,
    l2_normalize as l2_normalize,
    local_response_normalization as local_response_normalization,
    lrn as lrn,
    moments as moments,
)
from tfray.ops.nn.conv_ops import (
    atrous_conv2d as atrous_conv2d,
    atrous_conv2d_transpose as atrous_conv2d_transpose,
    conv1d as conv1d,
    conv2d as conv2d,
    conv2d_backprop_filter as conv2d_backprop_filter,
    conv2d_backprop_input as conv2d_backprop_input,
    conv2d_transpose as conv2d_transpose,
)
from tfray.ops.nn.depthwise_conv_ops import (
    depthwise_conv2d as depthwise_conv2d,
    depthwise_conv2d_native as depthwise_conv2d_native,
    depthwise_conv2d_native_backprop_filter as depthwise_conv2d_backprop_filter,
    depthwise_conv2d_native_backprop_filter as depthwise_conv2d_native_backprop_filter,
    depthwise_conv2d_native_backprop_input as depthwise_conv2d_backprop_input,
    depthwise_conv2d_native_backprop_input as depthwise_conv2d_native_backprop_input,
    separable_conv2d as separable_conv2d,
)
from tfray.ops.nn.pooling_ops import (
    avg_pool as avg_pool,
    max_pool as max_pool,
    max_pool_with_argmax as max_pool_with_argmax,
    avg_pool as avg_pool2d,
    avg_pool1d as avg_pool1d,
    max_pool as max_pool2d,
    max_pool1d as max_pool1d,
)
from tfray.ops.nn.conv3d_ops import (
    conv3d as conv3d,
    conv3d_backprop_filter as conv3d_backprop_filter,
    conv3d_transpose as conv3d_transpose,
)
from tfray.ops.nn.any_rank_conv_ops import (
    avg_pool3d as avg_pool3d,
    conv1d_transpose as conv1d_transpose,
    conv_transpose as conv_transpose,
    convolution as convolution,
    max_pool3d as max_pool3d,
    pool as pool,
)
from tfray.ops.nn.morphology_ops import (
    dilation2d as dilation2d,
    erosion2d as erosion2d,
)
from tfray.ops.nn.moments_ops import (
    batch_norm_with_global_normalization as batch_norm_with_global_normalization,
    normalize_moments as normalize_moments,
    sufficient_statistics as sufficient_statistics,
    weighted_moments as weighted_moments,
)
from tfray.ops.math.sorting_ops import (
    nth_element as nth_element,
)
from tfray.ops.arrays.space_block_ops import (
    depth_to_space as depth_to_space,
    space_to_batch as space_to_batch,
    space_to_depth as space_to_depth,
)
from tfray.ops.math.search_ops import (
    in_top_k as in_top_k,
    top_k as top_k,
)
from tfray.ops.nn.ctc_ops import (
    ctc_beam_search_decoder as ctc_beam_search_decoder,
    ctc_beam_search_decoder_v2 as ctc_beam_search_decoder_v2,
    ctc_greedy_decoder as ctc_greedy_decoder,
    ctc_loss as ctc_loss,
)
from tfray.ops.nn.candidate_sampling_ops import (
    all_candidate_sampler as all_candidate_sampler,
    compute_accidental_hits as compute_accidental_hits,
    fixed_unigram_candidate_sampler as fixed_unigram_candidate_sampler,
    learned_unigram_candidate_sampler as learned_unigram_candidate_sampler,
    log_uniform_candidate_sampler as log_uniform_candidate_sampler,
    uniform_candidate_sampler as uniform_candidate_sampler,
)
from tfray.library.variables.dynamic_embedding import dynamic_embedding_lookup as dynamic_embedding_lookup
from tfray.ops.nn.embedding_ops import (
    embedding_lookup as embedding_lookup,
)
from tfray.ops.nn.embedding_bag_ops import (
    embedding_lookup_sparse as embedding_lookup_sparse,
    safe_embedding_lookup_sparse as safe_embedding_lookup_sparse,
)
from tfray.ops.nn.sampled_loss_ops import (
    nce_loss as nce_loss,
    sampled_softmax_loss as sampled_softmax_loss,
)
from tfray.ops.math.transcendental_ops import (
    sigmoid as sigmoid,
    tanh as tanh,
)
from tfray.library.namespaces import rnn_cell as rnn_cell
from tfray.library.rnn import legacy_seq2seq as seq2seq
from tfray.library.rnn.rnn import (
    static_bidirectional_rnn as bidirectional_rnn,
    static_rnn as rnn,
    bidirectional_dynamic_rnn as bidirectional_dynamic_rnn,
    dynamic_rnn as dynamic_rnn,
    raw_rnn as raw_rnn,
    static_bidirectional_rnn as static_bidirectional_rnn,
    static_rnn as static_rnn,
    static_state_saving_rnn as static_state_saving_rnn,
)
