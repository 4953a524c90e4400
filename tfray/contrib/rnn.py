"""``tf.contrib.rnn``: recurrent cells and loops. Most are also in `tf.nn` and `tf.nn.rnn_cell`."""

from tfray.library.rnn.rnn import (
    stack_bidirectional_dynamic_rnn,
    stack_bidirectional_rnn,
    static_bidirectional_rnn,
    static_rnn,
    static_state_saving_rnn,
)
from tfray.library.rnn.rnn_cell_base import LayerRNNCell, RNNCell
from tfray.library.rnn.rnn_cell_wrappers import (
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
from tfray.library.rnn.rnn_fused import FusedRNNCellAdaptor, LSTMBlockFusedCell, TimeReversedFusedRNN

# fmt: off
__all__ = [
    "BasicLSTMCell", "BasicRNNCell", "DeviceWrapper", "DropoutWrapper", "EmbeddingWrapper", "FusedRNNCellAdaptor",
    "GRUBlockCell", "GRUBlockCellV2", "GRUCell", "HighwayWrapper", "InputProjectionWrapper", "LSTMBlockCell",
    "LSTMBlockFusedCell", "LSTMCell", "LSTMStateTuple", "LayerNormBasicLSTMCell", "LayerRNNCell", "MultiRNNCell",
    "OutputProjectionWrapper", "RNNCell", "ResidualWrapper", "TimeReversedFusedRNN", "stack_bidirectional_dynamic_rnn",
    "stack_bidirectional_rnn", "static_bidirectional_rnn", "static_rnn", "static_state_saving_rnn",
]
# fmt: on
