"""Rows of arrays: copied from and to given places, added up by place, and grouped by place."""

from typing import Any

from numba import njit

from tfray.ops.compiled.vectors import (
    Doubles,
    Floats,
    Int,
    Ints,
    Longs,
    load,
    load_part,
    load_upto,
    prefetch,
    store,
    store_part,
    store_upto,
)

AHEAD = 8
"""Rows between the one that is copied and the one that is asked for: several reads of memory are under way at once."""


def copy_rows(
    first: Int, last: Int, width: Int, sources: Longs, targets: Longs, gathers: Int, x: Ints, out: Ints
) -> None:
    """Copy rows of `x` to rows of `out`: row ``sources[i]`` to row i (a gather), or to row ``targets[i]``.

    They are rows of words of 32 bits, which stand for numbers of any type.

    Args:
        first: First i.
        last: End of the range of i.
        width: Words in a row.
        sources: Rows of `x`.
        targets: Rows of `out`; not read for a gather.
        gathers: 1 for a gather, else 0.
        x: The array to read.
        out: The array to write.
    """
    whole = width // 16 * 16
    for i in range(first, last):
        source = sources[i] * width
        target = i * width if gathers else targets[i] * width
        ahead = sources[min(i + AHEAD, last - 1)] * width
        for j in range(0, whole, 16):
            prefetch(x, ahead + j)
            store(out, target + j, load(x, source + j))
        if whole < width:
            prefetch(x, ahead + whole)
            store_part(out, target + whole, load_part(x, source + whole, width - whole, 0), width - whole)


@njit(inline="always")
def _sum_rows(first: Any, last: Any, count: Any, width: Any, indices: Any, x: Any, out: Any) -> None:
    start, end = first * 16, min(last * 16, width)
    for i in range(count):
        target = indices[i] * width
        ahead = indices[min(i + AHEAD, count - 1)] * width
        for j in range(start, end, 16):
            prefetch(out, ahead + j)
            total = load_upto(out, target + j, end - j) + load_upto(x, i * width + j, end - j)
            store_upto(out, target + j, total, end - j)


def sum_floats(first: Int, last: Int, count: Int, width: Int, indices: Longs, x: Floats, out: Floats) -> None:
    """Add the rows of `x`, one after another, to the rows ``indices[i]`` of `out`. An item is 16 columns.

    Args:
        first: First item.
        last: End of the range of items.
        count: Number of rows.
        width: Length of a row.
        indices: Where each row is added.
        x: The rows.
        out: The sums, which are read and written.
    """
    _sum_rows(first, last, count, width, indices, x, out)


def sum_doubles(first: Int, last: Int, count: Int, width: Int, indices: Longs, x: Doubles, out: Doubles) -> None:
    """As `sum_floats`."""
    _sum_rows(first, last, count, width, indices, x, out)


def group(
    first: Int,
    last: Int,
    count: Int,
    bits: Int,
    indices: Longs,
    table: Longs,
    groups: Longs,
    rows: Longs,
    order: Longs,
    starts: Longs,
) -> None:
    """Sort entries into groups of equal ones, in the order in which they first occur. There is one item.

    Args:
        first: 0.
        last: 1.
        count: Number of entries.
        bits: `table` has this power of 2 entries, more than `count`.
        indices: The entries, not negative.
        table: To write: working memory.
        groups: To write: the group of each entry.
        rows: To write: the entry of each group; 0 after the last, up to `AHEAD` after `count`.
        order: To write: the numbers of the entries, group by group, ascending in each; then `AHEAD` zeros.
        starts: To write: where each group starts in `order`; then `count`; and in ``starts[count + 1]`` the number of
            groups.
    """
    mask = (1 << bits) - 1
    found = 0
    for slot in range(mask + 1):
        table[slot] = -1
    for i in range(count + 2):
        starts[i] = 0
    for i in range(count + AHEAD):
        rows[i] = 0
    for i in range(count, count + AHEAD):
        order[i] = 0
    for i in range(count):
        index = indices[i]
        # The upper bits of a product with the golden ratio spread over the table.
        slot = ((index * -7046029254386353131) >> (64 - bits)) & mask
        while table[slot] >= 0 and rows[table[slot]] != index:
            slot = (slot + 1) & mask
        if table[slot] < 0:
            table[slot] = found
            rows[found] = index
            found += 1
        groups[i] = table[slot]
        starts[table[slot] + 1] += 1
    end = 0
    for place in range(found):  # where each group starts, one entry further than it belongs
        size = starts[place + 1]
        starts[place + 1] = end
        end += size
    for i in range(count):
        place = groups[i] + 1
        order[starts[place]] = i
        starts[place] += 1
    starts[count + 1] = found
