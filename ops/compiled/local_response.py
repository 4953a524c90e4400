"""Local response normalization of the rows of a matrix ``[rows, columns]``, whose columns are channels.

The sum over the neighbours of a channel is read from a copy of the row with zeros at both ends, in `scratch`: one for
each range of `step` rows that a thread takes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from tfray.ops.compiled.vectors import Float, Floats, Int, exp, fill, fused, load, load_upto, log, sqrt, store_upto


@njit(inline="always")
def _power(base: Any, beta: Any) -> Any:
    """``base ** beta``; by roots for the usual powers."""
    if beta == np.float32(0.75):
        root = sqrt(base)
        return root * sqrt(root)
    if beta == np.float32(0.5):
        return sqrt(base)
    if beta == np.float32(1):
        return base
    if beta == np.float32(0):
        return fill(np.float32(1))
    return exp(fill(beta) * log(base))


@njit(inline="always")
def _sum_of_neighbours(scratch: Any, place: Any, radius: Any) -> Any:
    """Sums over ``2 * radius + 1`` numbers, the first of which starts at `place`."""
    total = load(scratch, place)
    for i in range(place + 1, place + 2 * radius + 1):
        total = total + load(scratch, i)
    return total


@njit(inline="always")
def _write_squares(x: Any, start: Any, columns: Any, scratch: Any, place: Any) -> None:
    for j in range(0, columns, 16):
        v = load_upto(x, start + j, columns - j)
        store_upto(scratch, place + j, v * v, columns - j)


def normalize(
    first: Int,
    last: Int,
    columns: Int,
    step: Int,
    radius: Int,
    bias: Float,
    alpha: Float,
    beta: Float,
    x: Floats,
    scratch: Floats,
    out: Floats,
) -> None:
    """``x / (bias + alpha * sum of squares of the neighbours) ** beta``; a scratch is ``columns + 2 * radius + 16``."""
    place = first // step * (columns + 2 * radius + 16)
    for row in range(first, last):
        start = row * columns
        _write_squares(x, start, columns, scratch, place + radius)
        for j in range(0, columns, 16):
            activity = fused(_sum_of_neighbours(scratch, place + j, radius), fill(alpha), fill(bias))
            y = load_upto(x, start + j, columns - j) / _power(activity, beta)
            store_upto(out, start + j, y, columns - j)


def differentiate(
    first: Int,
    last: Int,
    columns: Int,
    step: Int,
    radius: Int,
    bias: Float,
    alpha: Float,
    beta: Float,
    d: Floats,
    x: Floats,
    y: Floats,
    scratch: Floats,
    out: Floats,
) -> None:
    """``d / s ** beta - 2 alpha beta x * sum of neighbours' d y / s``, s the activity; a scratch is three such rows."""
    width = columns + 2 * radius + 16
    squares = first // step * 3 * width
    shares, activities = squares + width, squares + 2 * width
    slope = fill(np.float32(-2) * alpha * beta)
    for row in range(first, last):
        start = row * columns
        _write_squares(x, start, columns, scratch, squares + radius)
        for j in range(0, columns, 16):
            n = columns - j
            activity = fused(_sum_of_neighbours(scratch, squares + j, radius), fill(alpha), fill(bias))
            share = load_upto(d, start + j, n) * load_upto(y, start + j, n) / activity
            store_upto(scratch, activities + j, activity, n)
            store_upto(scratch, shares + radius + j, share, n)
        for j in range(0, columns, 16):
            n = columns - j
            neighbours = _sum_of_neighbours(scratch, shares + j, radius) * slope
            own = load_upto(d, start + j, n) / _power(load_upto(scratch, activities + j, n), beta)
            store_upto(out, start + j, fused(neighbours, load_upto(x, start + j, n), own), n)
