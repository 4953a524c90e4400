"""Sums and extremes of the rows of a matrix ``[rows, columns]``."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfray.ops.compiled.vectors import (
    Floats,
    Int,
    fill,
    greatest_of,
    load,
    load_part,
    load_upto,
    maximum,
    negative,
    sum_of,
)


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
    least = np.float32(-np.inf)
    for row in range(first, last):
        start, end = row * columns, row * columns + columns
        a, b, c, d = fill(least), fill(least), fill(least), fill(least)
        whole = start + columns // 64 * 64
        for i in range(start, whole, 64):
            a = maximum(load(x, i), a)
            b = maximum(load(x, i + 16), b)
            c = maximum(load(x, i + 32), c)
            d = maximum(load(x, i + 48), d)
        for i in range(whole, end, 16):
            a = maximum(load_part(x, i, end - i, least), a)
        out[row] = greatest_of(maximum(maximum(a, b), maximum(c, d)))


def least(first: Int, last: Int, columns: Int, x: Floats, out: Floats) -> None:
    """The least number of each row; NaN where one is."""
    least = np.float32(-np.inf)
    for row in range(first, last):
        start, end = row * columns, row * columns + columns
        a, b, c, d = fill(least), fill(least), fill(least), fill(least)
        whole = start + columns // 64 * 64
        for i in range(start, whole, 64):
            a = maximum(negative(load(x, i)), a)
            b = maximum(negative(load(x, i + 16)), b)
            c = maximum(negative(load(x, i + 32)), c)
            d = maximum(negative(load(x, i + 48)), d)
        for i in range(whole, end, 16):
            a = maximum(negative(load_part(x, i, end - i, np.float32(np.inf))), a)
        out[row] = -greatest_of(maximum(maximum(a, b), maximum(c, d)))


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
