"""The names of ``tf.contrib.rnn``."""

# isort: skip_file
from tfray.library.rnn.rnn import (
    stack_bidirectional_dynamic_rnn as stack_bidirectional_dynamic_rnn,
    static_bidirectional_rnn as static_bidirectional_rnn,
    static_rnn as static_rnn,
    static_state_saving_rnn as static_state_saving_rnn,
    stack_bidirectional_rnn as stack_bidirectional_rnn,
)
from tfray.library.rnn.rnn_cell_base import LayerRNNCell as LayerRNNCell, RNNCell as RNNCell
from tfray.library.rnn.rnn_cell_wrappers import (
    DeviceWrapper as DeviceWrapper,
    DropoutWrapper as DropoutWrapper,
    EmbeddingWrapper as EmbeddingWrapper,
    HighwayWrapper as HighwayWrapper,
    InputProjectionWrapper as InputProjectionWrapper,
    MultiRNNCell as MultiRNNCell,
    OutputProjectionWrapper as OutputProjectionWrapper,
    ResidualWrapper as ResidualWrapper,
)
from tfray.library.rnn.rnn_cells import (
    BasicLSTMCell as BasicLSTMCell,
    BasicRNNCell as BasicRNNCell,
    GRUBlockCell as GRUBlockCell,
    GRUBlockCellV2 as GRUBlockCellV2,
    GRUCell as GRUCell,
    LayerNormBasicLSTMCell as LayerNormBasicLSTMCell,
    LSTMBlockCell as LSTMBlockCell,
    LSTMCell as LSTMCell,
    LSTMStateTuple as LSTMStateTuple,
)
from tfray.library.rnn.rnn_fused import (
    FusedRNNCellAdaptor as FusedRNNCellAdaptor,
    LSTMBlockFusedCell as LSTMBlockFusedCell,
    TimeReversedFusedRNN as TimeReversedFusedRNN,
)
