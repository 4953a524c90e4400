"""Rows picked from arrays and written to them by compiled kernels; `row_sums` has NumPy's way.

Where several entries name one row, they are first sorted into groups. Then each row is read and written once, and its
members are added up in their order, whichever thread takes it. Nothing here checks whether rows exist.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import accumulate, pairwise
from math import prod
from typing import Final

import numpy as np

from tfray.framework.op_def import Array, NumpyDType
from tfray.ops.kernels.compiling import (
    LARGE_ELEMENTS,
    LEAST_ELEMENTS,
    STEP_ELEMENTS,
    CompiledKernel,
    can_compile,
    kernel,
)
from tfray.ops.kernels.cpu_threads import thread_count
from tfray.ops.kernels.element_loops import AHEAD, Assignment, Input, element_loop

_WORD_BYTES: Final = 4

_LANES: Final = 16
"""Numbers in a vector, see `ops.compiled.vectors`."""


@dataclass(frozen=True)
class Groups:
    """Entries of an integer vector, sorted into groups of equal ones, in the order in which they first occur.

    Attributes:
        count: Number of groups.
        rows: The entry of each group. Longer than that, as is `order`: loops ask the memory for what comes next.
        order: Which entries belong to the first group, ascending, then those of the second, ...
        starts: Where each group starts in `order`, followed by the number of entries.
        size: Number of entries.
    """

    count: int
    rows: Array
    order: Array
    starts: Array
    size: int


def group(indices: Array) -> Groups:
    """Sort the entries of an integer vector, none of them negative, into groups."""
    size = indices.size
    bits = max(4, (2 * size).bit_length())
    ends = list(accumulate((1 << bits, size, size + AHEAD, size + AHEAD, size + 2)))
    memory = np.empty(ends[-1], np.int64)  # one array, whose parts take no time
    parts = [memory[first:last] for first, last in pairwise([0, *ends])]
    _kernel("group").run(1, 1, size, bits, _as_longs(indices), *parts)
    _, _, rows, order, starts = parts
    return Groups(int(starts[-1]), rows, order, starts, size)


def _as_longs(indices: Array) -> Array:
    return np.ascontiguousarray(indices, np.int64)


@cache
def _kernel(name: str) -> CompiledKernel:
    return kernel("rows", name)


def run_groups(loop: CompiledKernel, groups: Groups, width: int, *arrays: Array) -> None:
    """Run a loop over groups (see `element_loop`) on arrays whose rows have `width` elements."""
    if groups.count:
        elements = groups.size * width
        step = max(1, STEP_ELEMENTS * groups.count // elements)
        sorted_entries = groups.rows, groups.order, groups.starts
        loop.run(groups.count, step, width, *sorted_entries, *arrays, is_large=elements >= LARGE_ELEMENTS)


# -- copying -------------------------------------------------------------------------------------------


def can_copy(source: Array, elements: int) -> bool:
    """Whether rows of `source` are copied by a compiled kernel: of plain memory, and enough `elements`."""
    return (
        elements >= LEAST_ELEMENTS
        and can_compile()
        and source.flags.c_contiguous
        and source.dtype.kind in "biufc"
        and source.dtype.itemsize * prod(source.shape[1:]) % _WORD_BYTES == 0
    )


def gather(source: Array, indices: Array, out: Array | None) -> Array:
    """The rows of `source` at `indices`, in `out` if it is given; see `can_copy`."""
    shape = indices.shape + source.shape[1:]
    is_direct = out is not None and out.flags.c_contiguous
    target = out if is_direct else np.empty(shape, source.dtype)
    assert target is not None
    indices = _as_longs(indices)
    _copy(source, indices, indices, 1, target)
    if out is not None and not is_direct:
        out[...] = target
        return out
    return target


def write_rows(target: Array, indices: Array, rows: Array) -> None:
    """Set ``target[indices[i]] = rows[i]`` for a vector of indices; of equal ones the last stays. See `can_copy`."""
    groups = group(indices)
    latest = groups.order[groups.starts[1 : groups.count + 1] - 1]
    _copy(np.ascontiguousarray(rows), latest, groups.rows, 0, target)


def _copy(source: Array, sources: Array, targets: Array, gathers: int, out: Array) -> None:
    width = source.dtype.itemsize * prod(source.shape[1:]) // _WORD_BYTES
    step = max(1, STEP_ELEMENTS // width)
    is_large = sources.size * width >= LARGE_ELEMENTS
    _kernel("copy_rows").run(sources.size, step, width, sources, targets, gathers, source, out, is_large=is_large)


# -- adding --------------------------------------------------------------------------------------------


def can_add(target: Array, rows: Array) -> bool:
    """Whether `rows` are added to those of `target` by a compiled loop."""
    return (
        rows.size >= LEAST_ELEMENTS
        and target.flags.c_contiguous
        and rows.dtype == target.dtype
        and _addition_loop(target.dtype, False) is not None
    )


def add_rows(target: Array, indices: Array, rows: Array, subtract: bool = False) -> None:
    """Add rows to those of `target`, or subtract them, as `row_sums.add_rows` does; see `can_add`."""
    if np.may_share_memory(target, rows):
        rows = rows.copy()
    loop = _addition_loop(target.dtype, subtract)
    assert loop is not None  # `can_add` has asked
    run_groups(loop, group(indices), prod(target.shape[1:]), target, np.ascontiguousarray(rows), target)


@cache
def _addition_loop(dtype: NumpyDType, subtract: bool) -> CompiledKernel | None:
    if dtype.kind not in "if":
        return None
    inputs = {"target": Input(dtype, "picked"), "rows": Input(dtype, "summed")}
    step = Assignment("new", "{0} - {1}" if subtract else "{0} + {1}", tuple(inputs), dtype)
    return element_loop(inputs, [step], ["new"])


def can_sum(rows: Array) -> bool:
    """Whether `sum_rows` has a kernel for these rows."""
    return rows.size >= LEAST_ELEMENTS and can_compile() and rows.dtype.char in _SUMS


def sum_rows(rows: Array, indices: Array, count: int) -> Array:
    """Sum rows with equal indices, in their order: ``[count, width]`` from ``[n, width]`` and ``[n]``; see `can_sum`.

    The rows are read in sequence. Threads share out the columns: each number is summed by one of them.
    """
    size, width = rows.shape
    total = np.zeros((count, width), rows.dtype)
    items = -(-width // _LANES)
    threads = thread_count() if rows.size >= LARGE_ELEMENTS else 1
    sums = _kernel(_SUMS[rows.dtype.char])
    sums.run(items, -(-items // threads), size, width, _as_longs(indices), np.ascontiguousarray(rows), total)
    return total


_SUMS: Final = {"f": "sum_floats", "d": "sum_doubles"}
