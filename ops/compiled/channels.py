"""Statistics of the columns of a matrix, and its normalization by them: batch normalization of NHWC images.

The rows are cut into parts of a fixed length. An item of the statistics is a block of columns of one part. Each part
has its own results, which the caller puts together. So the number of threads changes no bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from tfray.ops.compiled.vectors import (
    Float,
    Floats,
    Int,
    fill,
    fused,
    greater_of,
    lesser_of,
    load,
    load_upto,
    store,
    store_upto,
    where,
)


@njit(inline="always")
def _store_moments(
    means: Any, squares: Any, index: Any, count: Any, share: Any, near: Any, distances: Any, squared: Any
) -> None:
    """Moments from those around a number that is near the mean, whose own rounding they make good."""
    away = distances * share
    store_upto(means, index, where(away == away, near + away, near), count)  # an infinite one has no distances
    store_upto(squares, index, squared - distances * away, count)


def moments(
    first: Int, last: Int, rows: Int, columns: Int, part_rows: Int, x: Floats, means: Floats, squares: Floats
) -> None:
    """Mean of the columns of each part, and the sum of the squared distances from it, both ``[parts, columns]``."""
    zero = fill(np.float32(0))
    blocks = (columns + 63) // 64
    for item in range(first, last):
        start = item // blocks * part_rows
        stop = min(start + part_rows, rows)
        column = item % blocks * 64
        target = item // blocks * columns
        share = fill(np.float32(1) / np.float32(stop - start))
        if columns - column >= 64:
            a, b, c, d = zero, zero, zero, zero
            for i in range(start * columns + column, stop * columns + column, columns):
                a = a + load(x, i)
                b = b + load(x, i + 16)
                c = c + load(x, i + 32)
                d = d + load(x, i + 48)
            a, b, c, d = a * share, b * share, c * share, d * share
            e, f, g, h = zero, zero, zero, zero
            k, m, n, o = zero, zero, zero, zero
            for i in range(start * columns + column, stop * columns + column, columns):
                p, q, r, s = load(x, i) - a, load(x, i + 16) - b, load(x, i + 32) - c, load(x, i + 48) - d
                e, f, g, h = e + p, f + q, g + r, h + s
                k, m, n, o = fused(p, p, k), fused(q, q, m), fused(r, r, n), fused(s, s, o)
            i = target + column
            _store_moments(means, squares, i, 16, share, a, e, k)
            _store_moments(means, squares, i + 16, 16, share, b, f, m)
            _store_moments(means, squares, i + 32, 16, share, c, g, n)
            _store_moments(means, squares, i + 48, 16, share, d, h, o)
        else:
            for j in range(column, columns, 16):
                rest = columns - j
                a = zero
                for i in range(start * columns + j, stop * columns + j, columns):
                    a = a + load_upto(x, i, rest)
                a = a * share
                e, k = zero, zero
                for i in range(start * columns + j, stop * columns + j, columns):
                    p = load_upto(x, i, rest) - a
                    e, k = e + p, fused(p, p, k)
                _store_moments(means, squares, target + j, rest, share, a, e, k)


@njit(inline="always")
def _within(x: Any, low: Any, high: Any) -> Any:
    """Numbers held between two others. What is no number stays none."""
    return lesser_of(high, greater_of(low, x))


def normalize(
    first: Int,
    last: Int,
    columns: Int,
    x: Floats,
    means: Floats,
    factors: Floats,
    offsets: Floats,
    low: Float,
    high: Float,
    out: Floats,
) -> None:
    """``(x - means) * factors + offsets``, held between `low` and `high`."""
    y, z = fill(low), fill(high)
    for row in range(first, last, _rows_at_once(first, last, columns)):
        start, stop = row * columns, min(row + _rows_at_once(first, last, columns), last) * columns
        for j in range(0, columns - 63, 64):
            k, m, n, o = load(means, j), load(means, j + 16), load(means, j + 32), load(means, j + 48)
            a, b, c, d = load(factors, j), load(factors, j + 16), load(factors, j + 32), load(factors, j + 48)
            e, f, g, h = load(offsets, j), load(offsets, j + 16), load(offsets, j + 32), load(offsets, j + 48)
            for i in range(start + j, stop + j, columns):
                store(out, i, _within(fused(load(x, i) - k, a, e), y, z))
                store(out, i + 16, _within(fused(load(x, i + 16) - m, b, f), y, z))
                store(out, i + 32, _within(fused(load(x, i + 32) - n, c, g), y, z))
                store(out, i + 48, _within(fused(load(x, i + 48) - o, d, h), y, z))
        for j in range(columns // 64 * 64, columns, 16):
            n = columns - j
            k, a, e = load_upto(means, j, n), load_upto(factors, j, n), load_upto(offsets, j, n)
            for i in range(start + j, stop + j, columns):
                store_upto(out, i, _within(fused(load_upto(x, i, n) - k, a, e), y, z), n)


@njit(inline="always")
def _rows_at_once(first: Int, last: Int, columns: Int) -> int:
    """Rows of which some columns are computed before the others. Of long rows, one: they are read from end to end."""
    return last - first if columns <= 512 else 1


def sums(
    first: Int,
    last: Int,
    rows: Int,
    columns: Int,
    part_rows: Int,
    y: Floats,
    x: Floats,
    means: Floats,
    totals: Floats,
    products: Floats,
) -> None:
    """Sums of the columns of `y` in each part, and of those of ``y * (x - means)``, both ``[parts, columns]``."""
    zero = fill(np.float32(0))
    blocks = (columns + 63) // 64
    for item in range(first, last):
        start = item // blocks * part_rows
        stop = min(start + part_rows, rows)
        column = item % blocks * 64
        target = item // blocks * columns
        if columns - column >= 64:
            k, m, n, o = (
                load(means, column),
                load(means, column + 16),
                load(means, column + 32),
                load(means, column + 48),
            )
            a, b, c, d = zero, zero, zero, zero
            e, f, g, h = zero, zero, zero, zero
            for i in range(start * columns + column, stop * columns + column, columns):
                p, q, r, s = load(y, i), load(y, i + 16), load(y, i + 32), load(y, i + 48)
                a, b, c, d = a + p, b + q, c + r, d + s
                e = fused(p, load(x, i) - k, e)
                f = fused(q, load(x, i + 16) - m, f)
                g = fused(r, load(x, i + 32) - n, g)
                h = fused(s, load(x, i + 48) - o, h)
            i = target + column
            store(totals, i, a)
            store(totals, i + 16, b)
            store(totals, i + 32, c)
            store(totals, i + 48, d)
            store(products, i, e)
            store(products, i + 16, f)
            store(products, i + 32, g)
            store(products, i + 48, h)
        else:
            for j in range(column, columns, 16):
                rest = columns - j
                k = load_upto(means, j, rest)
                a, e = zero, zero
                for i in range(start * columns + j, stop * columns + j, columns):
                    p = load_upto(y, i, rest)
                    a = a + p
                    e = fused(p, load_upto(x, i, rest) - k, e)
                store_upto(totals, target + j, a, rest)
                store_upto(products, target + j, e, rest)


def differentiate(
    first: Int,
    last: Int,
    columns: Int,
    y: Floats,
    x: Floats,
    means: Floats,
    slopes: Floats,
    shifts: Floats,
    factors: Floats,
    out: Floats,
) -> None:
    """``(y - (x - means) * slopes - shifts) * factors``."""
    for row in range(first, last, _rows_at_once(first, last, columns)):
        start, stop = row * columns, min(row + _rows_at_once(first, last, columns), last) * columns
        for j in range(0, columns - 31, 32):
            k, m = load(means, j), load(means, j + 16)
            a, b = load(slopes, j), load(slopes, j + 16)
            c, d = load(shifts, j), load(shifts, j + 16)
            e, f = load(factors, j), load(factors, j + 16)
            for i in range(start + j, stop + j, columns):
                store(out, i, (load(y, i) - fused(load(x, i) - k, a, c)) * e)
                store(out, i + 16, (load(y, i + 16) - fused(load(x, i + 16) - m, b, d)) * f)
        for j in range(columns // 32 * 32, columns, 16):
            n = columns - j
            k, a = load_upto(means, j, n), load_upto(slopes, j, n)
            c, e = load_upto(shifts, j, n), load_upto(factors, j, n)
            for i in range(start + j, stop + j, columns):
                z = (load_upto(y, i, n) - fused(load_upto(x, i, n) - k, a, c)) * e
                store_upto(out, i, z, n)


# -- the same, behind an activation ----------------------------------------------------------------------


@njit(inline="always")
def _let_through(y: Any, x: Any, last: Any) -> Any:
    """`y` where `x` is greater than 0 and at most `last`, else 0 times `y`."""
    return y * where((x > fill(np.float32(0))) & (x <= last), fill(np.float32(1)), fill(np.float32(0)))


def gated_totals(
    first: Int,
    last: Int,
    rows: Int,
    part_rows: Int,
    pieces: Int,
    width: Int,
    y_step: Int,
    x_step: Int,
    y: Floats,
    x: Floats,
    greatest: Float,
    out: Floats,
    found: Floats,
) -> None:
    """What `_let_through` leaves of `y`, and the sums of its columns in each part, ``[parts, columns]``.

    A row has so many pieces of `width` columns, which begin `y_step` elements apart in `y`, `x_step` in `x`. An item is
    a block of columns of one piece in a part. `out` may be `y`.
    """
    zero, most = fill(np.float32(0)), fill(greatest)
    blocks = (width + 63) // 64
    for item in range(first, last):
        part, index = item // (pieces * blocks), item % (pieces * blocks)
        start, stop = part * part_rows, min(part * part_rows + part_rows, rows)
        piece, column = index // blocks, index % blocks * 64
        target = (part * pieces + piece) * width
        if width - column >= 64:
            a, b, c, d = zero, zero, zero, zero
            for at in range(start * pieces + piece, stop * pieces + piece, pieces):
                i, m, o = at * y_step + column, at * x_step + column, at * width + column
                p = _let_through(load(y, i), load(x, m), most)
                q = _let_through(load(y, i + 16), load(x, m + 16), most)
                r = _let_through(load(y, i + 32), load(x, m + 32), most)
                s = _let_through(load(y, i + 48), load(x, m + 48), most)
                store(out, o, p)
                store(out, o + 16, q)
                store(out, o + 32, r)
                store(out, o + 48, s)
                a, b, c, d = a + p, b + q, c + r, d + s
            i = target + column
            store(found, i, a)
            store(found, i + 16, b)
            store(found, i + 32, c)
            store(found, i + 48, d)
        else:
            for j in range(column, width, 16):
                n = width - j
                a = zero
                for at in range(start * pieces + piece, stop * pieces + piece, pieces):
                    y_here, x_here = load_upto(y, at * y_step + j, n), load_upto(x, at * x_step + j, n)
                    p = _let_through(y_here, x_here, most)
                    store_upto(out, at * width + j, p, n)
                    a = a + p
                store_upto(found, target + j, a, n)


@njit(inline="always")
def _passed(y: Any, x: Any, factor: Any, offset: Any, low: Any, last: Any) -> Any:
    """`y` where ``x * factor + offset`` is greater than `low` and at most `last`, else 0 times `y`."""
    z = fused(x, factor, offset)
    return y * where((z > low) & (z <= last), fill(np.float32(1)), fill(np.float32(0)))


def gated_sums(
    first: Int,
    last: Int,
    rows: Int,
    columns: Int,
    part_rows: Int,
    y: Floats,
    x: Floats,
    means: Floats,
    factors: Floats,
    offsets: Floats,
    low: Float,
    greatest: Float,
    totals: Floats,
    products: Floats,
) -> None:
    """As `sums`, of that part of `y` that `_passed` lets through."""
    zero, least, most = fill(np.float32(0)), fill(low), fill(greatest)
    blocks = (columns + 63) // 64
    for item in range(first, last):
        start = item // blocks * part_rows
        stop = min(start + part_rows, rows)
        column = item % blocks * 64
        target = item // blocks * columns
        whole = min(columns - column, 64) // 32 * 32 + column
        for j in range(column, whole, 32):
            k, m = load(means, j), load(means, j + 16)
            p, q = load(factors, j), load(factors, j + 16)
            r, s = load(offsets, j), load(offsets, j + 16)
            a, b, e, f = zero, zero, zero, zero
            for i in range(start * columns + j, stop * columns + j, columns):
                t, u = load(x, i) - k, load(x, i + 16) - m
                v = _passed(load(y, i), t, p, r, least, most)
                w = _passed(load(y, i + 16), u, q, s, least, most)
                a, b = a + v, b + w
                e, f = fused(v, t, e), fused(w, u, f)
            store(totals, target + j, a)
            store(totals, target + j + 16, b)
            store(products, target + j, e)
            store(products, target + j + 16, f)
        for j in range(whole, min(columns, column + 64), 16):
            rest = columns - j
            k, p, r = load_upto(means, j, rest), load_upto(factors, j, rest), load_upto(offsets, j, rest)
            a, e = zero, zero
            for i in range(start * columns + j, stop * columns + j, columns):
                t = load_upto(x, i, rest) - k
                v = _passed(load_upto(y, i, rest), t, p, r, least, most)
                a, e = a + v, fused(v, t, e)
            store_upto(totals, target + j, a, rest)
            store_upto(products, target + j, e, rest)


def gated_differentiate(
    first: Int,
    last: Int,
    columns: Int,
    y: Floats,
    x: Floats,
    means: Floats,
    slopes: Floats,
    shifts: Floats,
    factors: Floats,
    forward: Floats,
    offsets: Floats,
    low: Float,
    greatest: Float,
    out: Floats,
) -> None:
    """As `differentiate`, for that part of `y` that `_passed` lets through by the factors `forward`."""
    least, most = fill(low), fill(greatest)
    for row in range(first, last, _rows_at_once(first, last, columns)):
        start, stop = row * columns, min(row + _rows_at_once(first, last, columns), last) * columns
        for j in range(0, columns - 31, 32):
            k, m = load(means, j), load(means, j + 16)
            a, b = load(slopes, j), load(slopes, j + 16)
            c, d = load(shifts, j), load(shifts, j + 16)
            e, f = load(factors, j), load(factors, j + 16)
            p, q = load(forward, j), load(forward, j + 16)
            r, s = load(offsets, j), load(offsets, j + 16)
            for i in range(start + j, stop + j, columns):
                t, u = load(x, i) - k, load(x, i + 16) - m
                v = _passed(load(y, i), t, p, r, least, most)
                w = _passed(load(y, i + 16), u, q, s, least, most)
                store(out, i, (v - fused(t, a, c)) * e)
                store(out, i + 16, (w - fused(u, b, d)) * f)
        for j in range(columns // 32 * 32, columns, 16):
            n = columns - j
            k, a, c = load_upto(means, j, n), load_upto(slopes, j, n), load_upto(shifts, j, n)
            e, p, r = load_upto(factors, j, n), load_upto(forward, j, n), load_upto(offsets, j, n)
            for i in range(start + j, stop + j, columns):
                t = load_upto(x, i, n) - k
                v = _passed(load_upto(y, i, n), t, p, r, least, most)
                store_upto(out, i, (v - fused(t, a, c)) * e, n)
