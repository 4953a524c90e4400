"""``tf.contrib.seq2seq``: attention, decoders and their helpers, beam search, and the loss of sequences."""

from tfray.library.rnn.attention import (
    AttentionMechanism,
    AttentionWrapper,
    AttentionWrapperState,
    BahdanauAttention,
    LuongAttention,
    hardmax,
)
from tfray.library.rnn.beam_search import (
    BeamSearchDecoder,
    BeamSearchDecoderOutput,
    BeamSearchDecoderState,
    FinalBeamSearchDecoderOutput,
    tile_batch,
)
from tfray.library.rnn.monotonic_attention import (
    BahdanauMonotonicAttention,
    LuongMonotonicAttention,
    monotonic_attention,
    safe_cumprod,
)
from tfray.library.rnn.seq2seq_decoder import BasicDecoder, BasicDecoderOutput, Decoder, dynamic_decode
from tfray.library.rnn.seq2seq_helpers import (
    CustomHelper,
    GreedyEmbeddingHelper,
    Helper,
    InferenceHelper,
    SampleEmbeddingHelper,
    ScheduledEmbeddingTrainingHelper,
    ScheduledOutputTrainingHelper,
    TrainingHelper,
)
from tfray.library.rnn.seq2seq_loss import sequence_loss
from tfray.ops.nn.beam_ops import gather_tree, gather_tree_from_array

# fmt: off
__all__ = [
    "AttentionMechanism", "AttentionWrapper", "AttentionWrapperState", "BahdanauAttention",
    "BahdanauMonotonicAttention", "BasicDecoder", "BasicDecoderOutput", "BeamSearchDecoder", "BeamSearchDecoderOutput",
    "BeamSearchDecoderState", "CustomHelper", "Decoder", "FinalBeamSearchDecoderOutput", "GreedyEmbeddingHelper",
    "Helper", "InferenceHelper", "LuongAttention", "LuongMonotonicAttention", "SampleEmbeddingHelper",
    "ScheduledEmbeddingTrainingHelper", "ScheduledOutputTrainingHelper", "TrainingHelper", "dynamic_decode",
    "gather_tree", "gather_tree_from_array", "hardmax", "monotonic_attention", "safe_cumprod", "sequence_loss",
    "tile_batch",
]
# fmt: on
