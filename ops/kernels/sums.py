"""Sums of floats on a CPU: by products with ones, which BLAS adds up several times as fast as NumPy's reductions.

How a sum is cut depends on shapes alone. Arrays are C-contiguous, of float32 or float64, and not empty.
"""

from __future__ import annotations

from functools import lru_cache
from math import gcd
from typing import Any, Final

import numpy as np

from tfray.framework.op_def import Array, NumpyDType
from tfray.ops.kernels.compiled_rows import can_compute, compute_rows
from tfray.ops.kernels.products import matrix_product

_RUN: Final = 1024
"""Most elements that are added one by one. The sums of such runs are then added pairwise, which rounds less."""

_SHORT: Final = 1 << 14
"""Elements of a vector that NumPy, which adds pairwise, takes no longer for than two calls."""

_TILE: Final = 1 << 18
"""Most elements in one product. For more, OpenBLAS starts threads, which gain nothing when memory is the limit."""

_LONG_ROW: Final = 256
"""Least elements of rows that a compiled kernel adds up. BLAS treats several short rows at once."""

FEW_ROWS: Final = 128
"""Rows up to which NumPy adds them up faster than a product with ones begins."""

_WIDE_ROW: Final = 1024
"""Columns of a wide row: several short rows joined, because inner loops are slow on rows of a few elements."""


def of_vector(vector: Array) -> Any:
    """The sum of all elements."""
    if vector.size < _SHORT:
        return np.add.reduce(vector)
    runs = vector.size // _RUN
    of_runs = of_each_row(vector[: runs * _RUN].reshape(runs, _RUN))
    return np.add.reduce(of_runs) + np.add.reduce(vector[runs * _RUN :])


def of_each_row(matrix: Array, out: Array | None = None) -> Array:
    """The sum of each row."""
    rows, columns = matrix.shape
    if columns >= _LONG_ROW and can_compute(np, matrix):
        out = np.empty(rows, matrix.dtype) if out is None else out
        compute_rows("reductions", "sums", rows, columns, matrix, out)
        return out
    ones, step = _ones(columns, matrix.dtype), _TILE // columns
    if step >= rows:
        return matrix_product(np, matrix, ones, out)
    out = np.empty(rows, matrix.dtype) if out is None else out
    if step == 0:
        for i in range(rows):
            out[i] = of_vector(matrix[i])
        return out
    for start in range(0, rows, step):
        matrix_product(np, matrix[start : start + step], ones, out[start : start + step])
    return out


def of_rows(matrix: Array, out: Array | None = None) -> Array:
    """The sum of all rows: of each column."""
    rows, columns = matrix.shape
    if rows <= FEW_ROWS or columns > _TILE // 16:
        return np.add.reduce(matrix, axis=0, out=out)
    ones, step = _ones(rows, matrix.dtype), _TILE // columns
    if step >= rows:
        return matrix_product(np, ones, matrix, out)
    parts = np.empty((-(-rows // step), columns), matrix.dtype)
    for i, start in enumerate(range(0, rows, step)):
        tile = matrix[start : start + step]
        matrix_product(np, ones[: len(tile)], tile, parts[i])
    return np.add.reduce(parts, axis=0, out=out)


def of_short_rows(array: Array, columns: int) -> Array:
    """The sum of all rows of a contiguous array ``[..., columns]``, of any number of columns."""
    if array.size <= FEW_ROWS * columns:
        return np.add.reduce(array.reshape(-1, columns), axis=0)
    wide = as_wide_rows(array, columns)
    return np.add.reduce(of_rows(wide).reshape(-1, columns), axis=0)


def as_wide_rows(array: Array, columns: int) -> Array:
    """A contiguous array ``[..., columns]`` as a matrix with several times as many columns, where that divides."""
    rows = array.size // columns
    return array.reshape(-1, columns * gcd(rows, 1 << max(_WIDE_ROW // columns, 1).bit_length() - 1))


def over_middle(array: Array, outer: int, count: int, inner: int, out: Array | None = None) -> Array:
    """Sums over the second of three dimensions, ``[outer * inner]``."""
    if inner == 1:
        return of_each_row(array.reshape(outer, count), out)
    if outer == 1:
        return of_rows(array.reshape(count, inner), out)
    out = None if out is None else out.reshape(outer, inner)
    if not 64 <= count * inner <= _TILE:
        return np.add.reduce(array.reshape(outer, count, inner), axis=1, out=out)
    return matrix_product(np, _ones(count, array.dtype), array.reshape(outer, count, inner), out)


def _ones(count: int, dtype: NumpyDType) -> Array:
    return _ones_buffer(1 << (count - 1).bit_length(), dtype)[:count]


@lru_cache(maxsize=64)
def _ones_buffer(count: int, dtype: NumpyDType) -> Array:
    return np.ones(count, dtype)
