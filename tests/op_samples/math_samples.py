"""Elementwise arithmetic, rounding, comparison, logic and functions."""

from __future__ import annotations

import numpy as np

from tests.op_samples import binary_rows, unary_rows
from tfray.framework import dtypes
from tfray.ops import math_ops

FLOAT_PAIR = (dtypes.float32, dtypes.float64)
REAL_FLOATS = dtypes.FLOATS

ARITHMETIC = [
    *binary_rows("Add", math_ops.add, np.add),
    *binary_rows("Sub", math_ops.subtract, np.subtract),
    *binary_rows("Mul", math_ops.multiply, np.multiply),
    *unary_rows("Neg", math_ops.negative, np.negative),
]

SAMPLES = [*ARITHMETIC]
