"""``tf.contrib.grid_rnn``: grids of recurrent cells."""

from tfray.library.rnn.grid_cells import (
    Grid1BasicLSTMCell,
    Grid1BasicRNNCell,
    Grid1LSTMCell,
    Grid2BasicLSTMCell,
    Grid2BasicRNNCell,
    Grid2GRUCell,
    Grid2LSTMCell,
    Grid3LSTMCell,
    GridRNNCell,
)

# fmt: off
__all__ = [
    "Grid1BasicLSTMCell", "Grid1BasicRNNCell", "Grid1LSTMCell", "Grid2BasicLSTMCell", "Grid2BasicRNNCell",
    "Grid2GRUCell", "Grid2LSTMCell", "Grid3LSTMCell", "GridRNNCell",
]
# fmt: on
