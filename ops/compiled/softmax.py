"""Softmax, its logarithm and gradient, and cross entropies, for the rows of a matrix ``[rows, columns]``.

A row is read two or three times, from the cache after the first. NaN makes its whole row NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from tfray.ops.compiled.vectors import (
    Floats,
    Int,
    Longs,
    convert,
    exp,
    exp_beyond,
    fill,
    fused,
    greater_of,
    greatest_of,
    load,
    load_part,
    load_upto,
    log,
    power_of_two,
    rint,
    store,
    store_part,
    store_upto,
    sum_of,
    where,
)


@njit(inline="always")
def _power(x: Any) -> Any:
    """``exp(x)`` for `x` up to 0: as `exp`, but shorter. What is below the least normal number is 0."""
    n = greater_of(rint(x * fill(np.float32(1.44269504088896341))), fill(np.float32(-126)))
    y = exp_beyond(x, n) * power_of_two(convert(n, fill(np.int32(0))))
    return where(x < fill(np.float32(-87.3365447)), fill(np.float32(0)), y)


@njit(inline="always")
def _greatest(x: Any, start: Any, columns: Any) -> Any:
    """The greatest number of a row in all lanes, NaN left out."""
    least = np.float32(-np.inf)
    a, b, c, d = fill(least), fill(least), fill(least), fill(least)
    whole = start + columns // 64 * 64
    for i in range(start, whole, 64):
        a = greater_of(load(x, i), a)
        b = greater_of(load(x, i + 16), b)
        c = greater_of(load(x, i + 32), c)
        d = greater_of(load(x, i + 48), d)
    end = start + columns
    for i in range(whole, end, 16):
        a = greater_of(load_part(x, i, end - i, least), a)
    return fill(greatest_of(greater_of(greater_of(a, b), greater_of(c, d))))


@njit(inline="always")
def _sum_of_powers(x: Any, start: Any, columns: Any, greatest: Any) -> Any:
    """The sum of ``exp(x - greatest)`` over a row, in all lanes."""
    total = fill(np.float32(0))
    whole, end = start + columns // 16 * 16, start + columns
    for i in range(start, whole, 16):
        total = total + _power(load(x, i) - greatest)
    if whole < end:
        total = total + _power(load_part(x, whole, end - whole, np.float32(-np.inf)) - greatest)
    return fill(sum_of(total))


@njit(inline="always")
def _write_powers(x: Any, start: Any, columns: Any, greatest: Any, out: Any) -> Any:
    """As `_sum_of_powers`; the powers are written to `out`."""
    total = fill(np.float32(0))
    whole, end = start + columns // 16 * 16, start + columns
    for i in range(start, whole, 16):
        y = _power(load(x, i) - greatest)
        store(out, i, y)
        total = total + y
    if whole < end:
        y = _power(load_part(x, whole, end - whole, np.float32(-np.inf)) - greatest)
        store_part(out, whole, y, end - whole)
        total = total + y
    return fill(sum_of(total))


def softmax(first: Int, last: Int, columns: Int, x: Floats, out: Floats) -> None:
    """``exp(x)`` over the sum of its row."""
    for row in range(first, last):
        start, end = row * columns, row * columns + columns
        total = _write_powers(x, start, columns, _greatest(x, start, columns), out)
        share = fill(np.float32(1)) / total
        for i in range(start, end, 16):
            store_upto(out, i, load_upto(out, i, end - i) * share, end - i)


def softmax_gradient(first: Int, last: Int, columns: Int, d: Floats, y: Floats, out: Floats) -> None:
    """``(d - sum(d * y)) * y``."""
    for row in range(first, last):
        start, end = row * columns, row * columns + columns
        a, b = fill(np.float32(0)), fill(np.float32(0))
        whole = start + columns // 32 * 32
        for i in range(start, whole, 32):
            a = fused(load(d, i), load(y, i), a)
            b = fused(load(d, i + 16), load(y, i + 16), b)
        for i in range(whole, end, 16):
            a = fused(load_upto(d, i, end - i), load_upto(y, i, end - i), a)
        total = fill(sum_of(a + b))
        for i in range(start, end, 16):
            z = (load_upto(d, i, end - i) - total) * load_upto(y, i, end - i)
            store_upto(out, i, z, end - i)


def log_softmax(first: Int, last: Int, columns: Int, x: Floats, out: Floats) -> None:
    """``x`` minus the logarithm of the sum of ``exp(x)`` over its row."""
    for row in range(first, last):
        start, end = row * columns, row * columns + columns
        greatest = _greatest(x, start, columns)
        total = log(_sum_of_powers(x, start, columns, greatest))
        for i in range(start, end, 16):
            store_upto(out, i, load_upto(x, i, end - i) - greatest - total, end - i)


def log_softmax_gradient(first: Int, last: Int, columns: Int, d: Floats, y: Floats, out: Floats) -> None:
    """``d - exp(y) * sum(d)``."""
    for row in range(first, last):
        start, end = row * columns, row * columns + columns
        a, b = fill(np.float32(0)), fill(np.float32(0))
        whole = start + columns // 32 * 32
        for i in range(start, whole, 32):
            a = a + load(d, i)
            b = b + load(d, i + 16)
        for i in range(whole, end, 16):
            a = a + load_upto(d, i, end - i)
        total = fill(-sum_of(a + b))
        for i in range(start, end, 16):
            z = fused(exp(load_upto(y, i, end - i)), total, load_upto(d, i, end - i))
            store_upto(out, i, z, end - i)


def cross_entropy(
    first: Int, last: Int, columns: Int, x: Floats, labels: Floats, losses: Floats, gradient: Floats
) -> None:
    """``-sum(labels * log_softmax(x))`` of each row, and ``softmax(x) - labels``."""
    for row in range(first, last):
        start, end = row * columns, row * columns + columns
        greatest = _greatest(x, start, columns)
        total = _write_powers(x, start, columns, greatest, gradient)
        share, logarithm = fill(np.float32(1)) / total, log(total)
        loss = fill(np.float32(0))
        for i in range(start, end, 16):
            wanted = load_upto(labels, i, end - i)
            loss = fused(wanted, logarithm - (load_upto(x, i, end - i) - greatest), loss)
            store_upto(gradient, i, load_upto(gradient, i, end - i) * share - wanted, end - i)
        losses[row] = sum_of(loss)


def sparse_cross_entropy(
    first: Int, last: Int, columns: Int, x: Floats, labels: Longs, losses: Floats, gradient: Floats
) -> None:
    """``-log_softmax(x)[label]`` of each row, and ``softmax(x)``, less 1 at the label."""
    for row in range(first, last):
        start, end = row * columns, row * columns + columns
        greatest = _greatest(x, start, columns)
        label = start + labels[row]
        right = fill(x[label]) - greatest
        total = _write_powers(x, start, columns, greatest, gradient)
        share = fill(np.float32(1)) / total
        for i in range(start, end, 16):
            store_upto(gradient, i, load_upto(gradient, i, end - i) * share, end - i)
        gradient[label] -= 1
        store_part(losses, row, log(total) - right, 1)
