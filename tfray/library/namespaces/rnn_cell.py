"""The names of ``tf.nn.rnn_cell``."""

# isort: skip_file
from tfray.library.rnn.rnn_cell_base import RNNCell as RNNCell
from tfray.library.rnn.rnn_cell_wrappers import (
    DeviceWrapper as DeviceWrapper,
    DropoutWrapper as DropoutWrapper,
    EmbeddingWrapper as EmbeddingWrapper,
    InputProjectionWrapper as InputProjectionWrapper,
    MultiRNNCell as MultiRNNCell,
    OutputProjectionWrapper as OutputProjectionWrapper,
    ResidualWrapper as ResidualWrapper,
)
from tfray.library.rnn.rnn_cells import (
    BasicLSTMCell as BasicLSTMCell,
    BasicRNNCell as BasicRNNCell,
    GRUCell as GRUCell,
    LSTMCell as LSTMCell,
    LSTMStateTuple as LSTMStateTuple,
)
