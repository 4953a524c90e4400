"""Values of every dtype that a checkpoint holds: extremes, scalars, strings, and arrays of nothing."""

from __future__ import annotations

import ml_dtypes
import numpy as np

VALUES_OF_DTYPES = {
    "float32": np.array([[np.nan, -np.inf, 1e-45], [0.1, -0.0, 3e38]], np.float32),
    "float64": np.array([np.pi, 5e-324]),
    "float16": np.array([1.5, -2, 65504], np.float16),
    "bfloat16": np.array([[1.5], [-2]], ml_dtypes.bfloat16),
    "int8": np.array(-128, np.int8),
    "uint8": np.array([0, 255], np.uint8),
    "int16": np.array([-(2**15)], np.int16),
    "uint16": np.array([2**16 - 1], np.uint16),
    "int32": np.array([[-(2**31)]], np.int32),
    "uint32": np.array([2**32 - 1], np.uint32),
    "int64": np.array(-(2**63)),
    "uint64": np.array([2**64 - 1], np.uint64),
    "bool": np.array([[True, False]]),
    "complex64": np.array([1 + 2j, -0.0j], np.complex64),
    "complex128": np.array([[1 - 2j, 3j]]),
    "string": np.array([[b"", b"a\0b"], ["ü".encode(), b"long " * 1000]], object),
    "empty": np.zeros((0, 4), np.float32),
    "nowhere": np.zeros((3, 0, 2), np.int32),
    "no_strings": np.zeros((0,), object),
    "large": np.arange(3_000_000, dtype=np.float32),
}
