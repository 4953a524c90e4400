"""What kernels call of cuBLAS by themselves, in host memory and by NumPy: it proves sizes, strides and orders."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

from tests.support.gpu.fakegraphs import nothing, recorded

TYPES = {0: np.dtype(np.float32), 1: np.dtype(np.float64), 2: np.dtype(np.float16), 14: np.dtype(ml_dtypes.bfloat16)}
SUMS = {68: (np.float32, {0, 2, 14}), 70: (np.float64, {1}), 77: (np.float32, {0})}
"""Of each kind of sums the dtype, which the factors have too, and the types of matrices: in float32, in float64, and in
float32 of TF32."""


def _matrix(address: int, kind: int, turned: int, rows: int, columns: int, leading: int) -> np.ndarray:
    """A matrix that is stored by columns, or its transpose."""
    if turned:
        return _matrix(address, kind, 0, columns, rows, leading).T
    dtype = TYPES[kind]
    if leading < rows:
        raise ValueError(f"CUBLAS_STATUS_INVALID_VALUE: {leading} elements from column to column of {rows} rows")
    memory = (ctypes.c_char * (dtype.itemsize * (leading * (columns - 1) + rows))).from_address(address)
    strides = (dtype.itemsize, dtype.itemsize * leading)
    return np.ndarray((rows, columns), dtype, memory, strides=strides)


def make(call: Callable[[str], None]) -> Any:
    """The functions; each tells `call` its name."""

    @partial(recorded, target=nothing)
    def gemm_strided_batched_ex(
        handle: int, turn_a: int, turn_b: int, m: int, n: int, k: int,
        alpha: int, a: int, type_a: int, leading_a: int, step_a: int,
        b: int, type_b: int, leading_b: int, step_b: int,
        beta: int, c: int, type_c: int, leading_c: int, step_c: int, count: int, sums: int, algorithm: int,
    ) -> None:  # fmt: skip
        wide, allowed = SUMS.get(sums, (np.float32, set()))
        if not {type_a, type_b, type_c} <= allowed:
            raise ValueError(f"CUBLAS_STATUS_NOT_SUPPORTED: types {type_a}, {type_b}, {type_c} with sums {sums}")
        call("gemmStridedBatchedEx")
        number = ctypes.c_double if wide is np.float64 else ctypes.c_float
        factor, kept = (number.from_address(address).value for address in (alpha, beta))
        for i in range(count):
            size_a, size_b, size_c = (TYPES[kind].itemsize for kind in (type_a, type_b, type_c))
            left = _matrix(a + i * step_a * size_a, type_a, turn_a, m, k, leading_a).astype(wide)
            right = _matrix(b + i * step_b * size_b, type_b, turn_b, k, n, leading_b).astype(wide)
            target = _matrix(c + i * step_c * size_c, type_c, 0, m, n, leading_c)
            before = kept * target.astype(wide) if kept else wide(0)
            target[...] = (factor * (left @ right) + before).astype(target.dtype)

    class Functions:
        gemmStridedBatchedEx = staticmethod(gemm_strided_batched_ex)

    return Functions
