"""Sums and extremes of the rows of a matrix ``[rows, columns]``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from tfray.ops.compiled.vectors import (
    LANES,
    Float,
    Floats,
    Int,
    fill,
    greater_of,
    greatest_of,
    load,
    load_part,
    load_upto,
    prefetch,
    sum_of,
    unordered,
    where,
)


@njit(inline="always")
def _ask(x: Floats, index: Int) -> None:
    """Ask for four cache lines two pages ahead. The processor itself does so no further than to the end of a page."""
    for line in range(2048, 2048 + 64, LANES):
        prefetch(x, index + line)


def sums(first: Int, last: Int, columns: Int, x: Floats, out: Floats) -> None:
    """The sum of each row: 4096 numbers at a time in float32, and these sums in float64."""
    for row in range(first, last):
        start, end = row * columns, row * columns + columns
        total = 0.0
        for block in range(start, end, 4096):
            stop = min(block + 4096, end)
            whole = block + (stop - block) // 64 * 64
            a, b, c, d = fill(np.float32(0)), fill(np.float32(0)), fill(np.float32(0)), fill(np.float32(0))
            for i in range(block, whole, 64):
                _ask(x, i)
                a = a + load(x, i)
                b = b + load(x, i + 16)
                c = c + load(x, i + 32)
                d = d + load(x, i + 48)
            for i in range(whole, stop, 16):
                a = a + load_upto(x, i, stop - i)
            total += sum_of((a + b) + (c + d))
        out[row] = total


def greatest(first: Int, last: Int, columns: Int, x: Floats, out: Floats) -> None:
    """The greatest number of each row; NaN where one is."""
    for row in range(first, last):
        out[row] = _greatest(x, row * columns, columns, np.float32(1))


def least(first: Int, last: Int, columns: Int, x: Floats, out: Floats) -> None:
    """The least number of each row; NaN where one is."""
    for row in range(first, last):
        out[row] = -_greatest(x, row * columns, columns, np.float32(-1))


@njit(inline="always")
def _greatest(x: Floats, start: Int, columns: Int, sign: Float) -> float:
    """The greatest of some numbers, times 1 or -1; NaN where one is.

    An instruction finds the greater of two, but loses NaNs. These are looked for by another, in two vectors at a time.
    """
    least, factor = fill(np.float32(-np.inf)), fill(sign)
    a, b, c, d = least, least, least, least
    is_nan = unordered(least, least)
    whole, end = start + columns // 64 * 64, start + columns
    for i in range(start, whole, 64):
        _ask(x, i)
        p, q = factor * load(x, i), factor * load(x, i + 16)
        r, s = factor * load(x, i + 32), factor * load(x, i + 48)
        a, b = greater_of(p, a), greater_of(q, b)
        c, d = greater_of(r, c), greater_of(s, d)
        is_nan = is_nan | unordered(p, q) | unordered(r, s)
    for i in range(whole, end, 16):
        p = factor * load_part(x, i, end - i, -sign * np.float32(np.inf))
        a = greater_of(p, a)
        is_nan = is_nan | unordered(p, p)
    greatest = greater_of(greater_of(a, b), greater_of(c, d))
    return greatest_of(where(is_nan, fill(np.float32(np.nan)), greatest))


def running_sums(
    first: Int, last: Int, columns: Int, start: Int, step: Int, exclusive: Int, x: Floats, out: Floats
) -> None:
    """The sums of each row up to each number.

    Args:
        first: First row.
        last: End of the range of rows.
        columns: Numbers in a row.
        start: The column to begin with.
        step: 1 to go on to the right, -1 to the left.
        exclusive: 1 to leave the number itself out, else 0.
        x: The matrix.
        out: Where to write, a matrix of the same shape.
    """
    zero: Any = np.float32(0)
    row = first
    while row < last:
        # An addition waits for the one before. Those of four rows do not wait for each other.
        i = row * columns + start
        if row + 4 <= last:
            j, k, m = i + columns, i + 2 * columns, i + 3 * columns
            a, b, c, d = zero, zero, zero, zero
            for _ in range(columns):
                s, t, u, v = a + x[i], b + x[j], c + x[k], d + x[m]
                if exclusive:
                    out[i], out[j], out[k], out[m] = a, b, c, d
                else:
                    out[i], out[j], out[k], out[m] = s, t, u, v
                a, b, c, d = s, t, u, v
                i, j, k, m = i + step, j + step, k + step, m + step
            row += 4
        else:
            a = zero
            for _ in range(columns):
                s = a + x[i]
                out[i] = a if exclusive else s
                a = s
                i += step
            row += 1
