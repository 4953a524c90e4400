"""``tf.keras.regularizers``: losses that grow with the weights of layers."""

# isort: skip_file
from tfray.library.variables.regularizers import (
    L1L2 as L1L2,
    Regularizer as Regularizer,
    l1 as l1,
    l1_l2 as l1_l2,
    l2 as l2,
)

__all__ = ["L1L2", "Regularizer", "l1", "l1_l2", "l2"]
