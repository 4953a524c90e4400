"""``tf.nn.rnn_cell``: recurrent cells and wrappers around them. Run a cell over time with `tf.nn.dynamic_rnn`."""

from tfray.library.rnn.rnn_cell_base import RNNCell
from tfray.library.rnn.rnn_cell_wrappers import (
    DeviceWrapper,
    DropoutWrapper,
    EmbeddingWrapper,
    InputProjectionWrapper,
    MultiRNNCell,
    OutputProjectionWrapper,
    ResidualWrapper,
)
from tfray.library.rnn.rnn_cells import BasicLSTMCell, BasicRNNCell, GRUCell, LSTMCell, LSTMStateTuple

# fmt: off
__all__ = [
    "BasicLSTMCell", "BasicRNNCell", "DeviceWrapper", "DropoutWrapper", "EmbeddingWrapper", "GRUCell",
    "InputProjectionWrapper", "LSTMCell", "LSTMStateTuple", "MultiRNNCell", "OutputProjectionWrapper", "RNNCell",
    "ResidualWrapper",
]
# fmt: on
