"""Calls of compiled kernels whose items are the rows of a float32 matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfray.framework.op_def import Array, ArrayModule
from tfray.ops.kernels.compiling import LARGE_ELEMENTS, LEAST_ELEMENTS, STEP_ELEMENTS, can_compile, kernel


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
