"""The names of ``tf.contrib.seq2seq``."""

# isort: skip_file
from tfray.library.rnn.attention import (
    AttentionMechanism as AttentionMechanism,
    AttentionWrapper as AttentionWrapper,
    AttentionWrapperState as AttentionWrapperState,
    BahdanauAttention as BahdanauAttention,
    LuongAttention as LuongAttention,
    hardmax as hardmax,
)
from tfray.library.rnn.beam_search import (
    BeamSearchDecoder as BeamSearchDecoder,
    BeamSearchDecoderOutput as BeamSearchDecoderOutput,
    BeamSearchDecoderState as BeamSearchDecoderState,
    FinalBeamSearchDecoderOutput as FinalBeamSearchDecoderOutput,
    tile_batch as tile_batch,
)
from tfray.library.rnn.seq2seq_decoder import (
    BasicDecoder as BasicDecoder,
    BasicDecoderOutput as BasicDecoderOutput,
    Decoder as Decoder,
    dynamic_decode as dynamic_decode,
)
from tfray.library.rnn.seq2seq_helpers import (
    CustomHelper as CustomHelper,
    GreedyEmbeddingHelper as GreedyEmbeddingHelper,
    Helper as Helper,
    InferenceHelper as InferenceHelper,
    SampleEmbeddingHelper as SampleEmbeddingHelper,
    ScheduledEmbeddingTrainingHelper as ScheduledEmbeddingTrainingHelper,
    ScheduledOutputTrainingHelper as ScheduledOutputTrainingHelper,
    TrainingHelper as TrainingHelper,
)
from tfray.library.rnn.seq2seq_loss import sequence_loss as sequence_loss
from tfray.ops.nn.beam_ops import gather_tree as gather_tree, gather_tree_from_array as gather_tree_from_array
