"""Sums over rows on a GPU, in two launches where one would leave most of the device idle.

CuPy shares out a sum by its results: 32 neighbouring ones are a block's. The sums of 64 channels over all pixels would
be the work of two blocks, where a device runs hundreds. So the rows are cut into parts, each with sums of its own,
which a second launch adds up. How they are cut depends on shapes alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any, Final

import numpy as np

from tfray.framework.op_def import Array, ArrayModule, NumpyDType
from tfray.ops.kernels.gpu.device_loops import device_sum

_BLOCK_THREADS: Final = 512
"""Threads of a block of CuPy's reductions."""
_BLOCK_RESULTS: Final = 32
"""Results of a block, where neighbouring results are neighbours in memory too."""
_MOST_TURNS: Final = 32
"""Elements that a thread adds up in one launch before a second one pays: it takes as long as about 16 of them."""
_MOST_PARTS: Final = 512
"""More parts would make the second launch the longer one."""


def staged_sum(
    xp: ArrayModule,
    element: str,
    arrays: Sequence[Any],
    axis: int | tuple[int, ...],
    scale: float = 1.0,
    dtype: NumpyDType | None = None,
) -> Array:
    """As `device_sum`, in two launches where that is faster: over the first dimensions, or over all but the second.

    Args:
        xp: CuPy.
        element: An expression of the elements ``{0}``, ``{1}``, ... of the arrays.
        arrays: The arrays, which are broadcast against each other.
        axis: The dimensions that are summed over; they have size 1 in the result.
        scale: What the sums are multiplied by.
        dtype: What they are rounded to, if it is not the dtype in which they are added up.
    """
    axes = (axis,) if isinstance(axis, int) else axis
    shape = np.broadcast_shapes(*(array.shape for array in arrays))
    if axes == tuple(range(len(axes))) and axes:
        rows, columns = prod(shape[: len(axes)]), prod(shape[len(axes) :])
        parts = _parts(rows, columns)
        pieces = [_cut(array, shape, len(axes), parts) for array in arrays] if parts > 1 else [None]
        if all(piece is not None for piece in pieces):
            partial = device_sum(xp, element, pieces, 1).reshape(parts, columns)
            kept = (1,) * len(axes) + shape[len(axes) :]
            return device_sum(xp, "{0}", [partial], 0, scale, dtype).reshape(kept)
    elif axes == (0, *range(2, len(shape))) and _turns(prod(shape) // max(shape[1], 1), shape[1]) > _MOST_TURNS:
        return device_sum(xp, "{0}", [device_sum(xp, element, arrays, axes[1:])], 0, scale, dtype)
    return device_sum(xp, element, arrays, axis, scale, dtype)


def are_staged(rows: int, columns: int) -> bool:
    """Whether the sum of these many rows takes two launches."""
    return _parts(rows, columns) > 1


def _turns(rows: int, columns: int) -> int:
    """Elements that a thread adds up in one launch."""
    blocks = max(-(-columns // _BLOCK_RESULTS), 1)
    return rows * columns // (blocks * _BLOCK_THREADS)


@lru_cache(maxsize=1024)
def _parts(rows: int, columns: int) -> int:
    """In how many equal parts to cut the rows."""
    if _turns(rows, columns) <= _MOST_TURNS:
        return 1
    most = min(_MOST_PARTS, rows)
    return next((parts for parts in range(most, 1, -1) if rows % parts == 0), 1)


def _cut(array: Array, shape: tuple[int, ...], summed: int, parts: int) -> Array | None:
    """A view of the array ``[parts, rows, columns]``; of one without rows ``[columns]``; None if there is none."""
    columns = prod(shape[summed:])
    if array.shape == shape:
        return array.reshape(parts, -1, columns) if array.flags.c_contiguous else None
    own = (1,) * (len(shape) - array.ndim) + array.shape
    if own == (1,) * summed + shape[summed:] or array.size == 1:
        return array.reshape(-1)
    return None
