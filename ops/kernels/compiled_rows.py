"""Calls of compiled kernels whose items are the rows of a float32 matrix."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import Any, Final

import numpy as np

from tfray.framework.op_def import Array, ArrayModule
from tfray.ops.kernels.compiling import LARGE_ELEMENTS, LEAST_ELEMENTS, STEP_ELEMENTS, can_compile, kernel

_PART_ROWS: Final = 256
"""Rows that are added up one by one. The sums of such parts are added in float64."""

_BLOCK_COLUMNS: Final = 64
"""Columns that are added up together. Rows that do not fill such blocks are joined where that makes rows that do."""

_STEP_BLOCKS: Final = 4
"""Neighbouring blocks that a thread takes at a time. Threads that take them in turns take 1.4 times as long."""


def can_compute(xp: ArrayModule, *arrays: Array) -> bool:
    """Whether compiled kernels take these arrays: that depends on their sizes and dtypes alone."""
    return (
        xp is np
        and arrays[0].size >= LEAST_ELEMENTS
        and all(array.dtype == np.float32 for array in arrays)
        and can_compile()
    )


def step_rows(columns: int) -> int:
    """How many rows of that length a thread takes at a time."""
    return max(1, STEP_ELEMENTS // max(columns, 1))


def compute_rows(module: str, name: str, rows: int, columns: int, *arguments: Any) -> None:
    """Run a kernel of `ops.compiled` over rows.

    Args:
        module: The kernel's module.
        name: Its name. Its first argument after the range is `columns`.
        rows: Number of rows.
        columns: Elements of a row.
        *arguments: The kernel's other arguments; arrays are made contiguous, so those to write must be.
    """
    values = [np.ascontiguousarray(value) if isinstance(value, np.ndarray) else value for value in arguments]
    kernel(module, name).run(rows, step_rows(columns), columns, *values, is_large=rows * columns >= LARGE_ELEMENTS)


def column_sums(module: str, name: str, arrays: Sequence[Array], *others: Any) -> Array:
    """The sums over all dimensions but the last, by a kernel that may compute more on its way.

    The order of additions depends on shapes alone, not on how the arrays lie in memory.

    Args:
        module: The kernel's module.
        name: Its name. Its arguments are those of `ops.compiled.channels.gated_totals`.
        arrays: What it reads, of one shape ``[..., columns]``. They may be parts of arrays with longer rows.
        *others: The kernel's arguments between the arrays and the sums; arrays among them are contiguous.

    Returns:
        Shape ``[columns]``.
    """
    size, width = arrays[0].size, arrays[0].shape[-1]
    pieces = gcd(size // width, _BLOCK_COLUMNS // gcd(width, _BLOCK_COLUMNS)) if width < 4 * _BLOCK_COLUMNS else 1
    rows, columns = size // (width * pieces), width * pieces
    steps = [_row_step(array) for array in arrays]
    read = [array if step else np.ascontiguousarray(array) for array, step in zip(arrays, steps, strict=True)]
    if all(step in (None, width) for step in steps):  # long rows, each one piece
        steps, width, pieces = [columns] * len(steps), columns, 1
    else:
        steps = [step or width for step in steps]
    parts = -(-rows // _PART_ROWS)
    found = np.empty((parts, columns), np.float32)
    blocks = -(-width // _BLOCK_COLUMNS)
    items, step = parts * pieces * blocks, min(blocks, _STEP_BLOCKS)
    call = kernel(module, name).bind(items, step, rows, _PART_ROWS, pieces, width, *steps, *read, *others, found)
    call.run(size >= LARGE_ELEMENTS)
    found = found.reshape(-1, arrays[0].shape[-1])
    return found[0] if len(found) == 1 else found.sum(axis=0, dtype=np.float64).astype(np.float32)


def _row_step(array: Array) -> int | None:
    """How many elements lie between the beginnings of two rows; None if that is not the same everywhere."""
    strides, sizes = array.strides, array.shape
    if array.flags.c_contiguous:
        return sizes[-1]
    is_even = all(strides[i] == strides[i + 1] * sizes[i + 1] for i in range(array.ndim - 2))
    step = strides[-2] // array.itemsize if array.ndim > 1 else 0
    return step if is_even and strides[-1] == array.itemsize and step >= sizes[-1] else None
