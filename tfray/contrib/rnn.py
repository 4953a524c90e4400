"""``tf.contrib.rnn``: recurrent cells and loops. Most are also in `tf.nn` and `tf.nn.rnn_cell`."""

from tfray.library.rnn.frequency_cells import BidirectionalGridLSTMCell, GridLSTMCell, TimeFreqLSTMCell
from tfray.library.rnn.lstm_variants import GLSTMCell, IntersectionRNNCell, NASCell, PhasedLSTMCell
from tfray.library.rnn.rnn import common_batch_size as best_effort_input_batch_size
from tfray.library.rnn.rnn import (
    stack_bidirectional_dynamic_rnn,
    stack_bidirectional_rnn,
    static_bidirectional_rnn,
    static_rnn,
    static_state_saving_rnn,
)
from tfray.library.rnn.rnn import swap_batch_and_time as transpose_batch_time
from tfray.library.rnn.rnn_cell_base import LayerRNNCell, RNNCell
from tfray.library.rnn.rnn_cell_wrappers import (
    CompiledWrapper,
    DeviceWrapper,
    DropoutWrapper,
    EmbeddingWrapper,
    HighwayWrapper,
    InputProjectionWrapper,
    MultiRNNCell,
    OutputProjectionWrapper,
    ResidualWrapper,
)
from tfray.library.rnn.rnn_cells import (
    BasicLSTMCell,
    BasicRNNCell,
    GRUBlockCell,
    GRUBlockCellV2,
    GRUCell,
    LayerNormBasicLSTMCell,
    LSTMBlockCell,
    LSTMCell,
    LSTMStateTuple,
)
from tfray.library.rnn.rnn_fused import FusedRNNCell, FusedRNNCellAdaptor, LSTMBlockFusedCell, TimeReversedFusedRNN
from tfray.library.rnn.unusual_cells import (
    AttentionCellWrapper,
    Conv1DLSTMCell,
    Conv2DLSTMCell,
    Conv3DLSTMCell,
    ConvLSTMCell,
    CoupledInputForgetGateLSTMCell,
    IndRNNCell,
    IndyGRUCell,
    IndyLSTMCell,
    SRUCell,
    UGRNNCell,
)

# fmt: off
__all__ = [
    "AttentionCellWrapper", "BasicLSTMCell", "BasicRNNCell", "BidirectionalGridLSTMCell", "CompiledWrapper",
    "Conv1DLSTMCell", "Conv2DLSTMCell", "Conv3DLSTMCell", "ConvLSTMCell", "CoupledInputForgetGateLSTMCell",
    "DeviceWrapper", "DropoutWrapper", "EmbeddingWrapper", "FusedRNNCell", "FusedRNNCellAdaptor", "GLSTMCell",
    "GRUBlockCell", "GRUBlockCellV2", "GRUCell", "GridLSTMCell", "HighwayWrapper", "IndRNNCell", "IndyGRUCell",
    "IndyLSTMCell", "InputProjectionWrapper", "IntersectionRNNCell", "LSTMBlockCell", "LSTMBlockFusedCell", "LSTMCell",
    "LSTMStateTuple", "LayerNormBasicLSTMCell", "LayerRNNCell", "MultiRNNCell", "NASCell", "OutputProjectionWrapper",
    "PhasedLSTMCell", "RNNCell", "ResidualWrapper", "SRUCell", "TimeFreqLSTMCell", "TimeReversedFusedRNN", "UGRNNCell",
    "best_effort_input_batch_size", "stack_bidirectional_dynamic_rnn", "stack_bidirectional_rnn",
    "static_bidirectional_rnn", "static_rnn", "static_state_saving_rnn", "transpose_batch_time",
]
# fmt: on
