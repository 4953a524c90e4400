"""The greatest numbers of each row of a matrix."""

from __future__ import annotations

from typing import Any

from numba import njit

from tfray.ops.compiled.vectors import Floats, Int, Ints, Longs, greatest_of, load, maximum


@njit(inline="always")
def _rank(x: Any, bits: Any, start: Any, index: Any) -> Any:
    """An integer that is greater for a greater number and, between equal ones, for the first.

    The number's bits, in the order of numbers, and below them the index counted from behind. NaN is the greatest.
    """
    value, key = x[start + index], bits[start + index] + 0
    if key < 0:
        key = key ^ 0x7FFFFFFF
    if value == 0:
        key = 0
    if value != value:
        key = 0x7FFFFFFF
    return key * (1 << 32) + (1 << 32) - 1 - index


@njit(inline="always")
def _sink(heap: Any, base: Any, count: Any, place: Any, item: Any) -> None:
    """Put an item into a heap at `place` or below, so that no parent is greater than its children."""
    child = 2 * place + 1
    while child < count:
        if child + 1 < count and heap[base + child + 1] < heap[base + child]:
            child += 1
        if heap[base + child] >= item:
            break
        heap[base + place] = heap[base + child]
        place = child
        child = 2 * place + 1
    heap[base + place] = item


def greatest(first: Int, last: Int, columns: Int, count: Int, x: Floats, bits: Ints, ranks: Longs) -> None:
    """The ranks (see `_rank`) of the `count` greatest numbers of each row, in no order: ``ranks[rows, count]``.

    They are a heap with the least on top. Whole vectors that hold nothing greater are passed over. `bits` is the memory
    of `x`.
    """
    for row in range(first, last):
        start, base = row * columns, row * count
        for index in range(count):
            ranks[base + index] = _rank(x, bits, start, index)
        for place in range(count // 2 - 1, -1, -1):
            _sink(ranks, base, count, place, ranks[base + place])
        least = x[start + (1 << 32) - 1 - (ranks[base] & 0xFFFFFFFF)]
        index = count
        while index < columns:
            if index + 64 <= columns:
                i = start + index
                here = maximum(load(x, i), load(x, i + 16))
                there = maximum(load(x, i + 32), load(x, i + 48))
                if greatest_of(maximum(here, there)) <= least:
                    index += 64
                    continue
            stop = min(index + 64, columns)
            while index < stop:
                if index + 16 <= stop and greatest_of(load(x, start + index)) <= least:
                    index += 16
                    continue
                end = min(index + 16, stop)
                while index < end:
                    if not x[start + index] <= least:  # greater, or NaN
                        rank = _rank(x, bits, start, index)
                        if rank > ranks[base]:
                            _sink(ranks, base, count, 0, rank)
                            least = x[start + (1 << 32) - 1 - (ranks[base] & 0xFFFFFFFF)]
                    index += 1
