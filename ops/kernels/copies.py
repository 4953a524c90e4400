"""Copies between arrays of any memory layout: transposed arrays, parts of larger ones, repetitions.

For a compiled kernel the two arrays' axes are sorted, and merged where both step evenly through them. What then remains
is a set of runs that are contiguous in both, or a set of matrices that are transposed. All else is left to NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from math import prod
from typing import Any, Final

import numpy as np

from tfray.framework.op_def import Array, ArrayModule
from tfray.ops.kernels.compiling import (
    LARGE_ELEMENTS,
    LEAST_ELEMENTS,
    STEP_ELEMENTS,
    CompiledKernel,
    can_compile,
    kernel,
)
from tfray.ops.kernels.gpu import device_copies
from tfray.ops.kernels.tiles import run_tiles

_LONG_RUN: Final = 64
"""Words from which NumPy copies a run as fast, on one thread."""

_BAND: Final = 64
"""Rows of a transposed matrix in an item, see `ops.compiled.strided_copies`."""


_MIN_BLOCKED: Final = 1 << 17
"""Elements from which NumPy copies a transposed array in blocks. Smaller ones stay in the cache anyhow."""

_LARGE_BYTES: Final = 1 << 14
"""Bytes from which it pays to look at the bytes of the number that an array is filled with."""

_BLOCK: Final = 128
"""Side of these blocks, in elements. Measured for 8192 x 1024 floats on two threads: 11 ms, against 62 ms for a plain
copy."""


class _Copy:
    """How to copy between two layouts.

    Attributes:
        kernel: The kernel.
        count: Number of its items.
        step: Items that a thread takes at a time.
        arguments: Its arguments but for the arrays.
        is_large: Whether several threads take part.
    """

    __slots__ = ("arguments", "count", "is_large", "kernel", "step")

    def __init__(self, kernel: str, count: int, item_words: int, is_large: bool, arguments: list[Any]) -> None:
        self.kernel = _kernel(kernel)
        self.count = count
        self.step = max(1, STEP_ELEMENTS // item_words)
        self.is_large = is_large
        self.arguments = arguments


def _lies_in_one_piece(array: Array) -> bool:
    return bool(array.flags.c_contiguous) and array.dtype.kind != "O"


def fill(target: Array, number: Any) -> None:
    """Fill an array with one number. If all its bytes are equal, as those of 0, bytes are written: in half the time."""
    if isinstance(target, np.ndarray) and target.nbytes >= _LARGE_BYTES and _lies_in_one_piece(target):
        first, *others = np.asarray(number, target.dtype).tobytes()
        if all(other == first for other in others):
            target.reshape(-1).view(np.uint8).fill(first)
            return
    target[...] = number


def copy(target: Array, source: Array, *, threads: bool = True) -> None:
    """Fill `target` with `source`, of the same shape or one that broadcasts to it.

    Args:
        target: The array to write.
        source: The array to read, which shares no memory with it.
        threads: Whether several threads may take part.
    """
    if target.size >= LEAST_ELEMENTS and target.dtype == source.dtype and target.dtype.kind in "biufc":
        if source.shape != target.shape:
            source = np.broadcast_to(source, target.shape)
        found = _way(target.shape, target.strides, source.strides, target.dtype.itemsize)
        if found is not None:
            is_large = found.is_large and threads
            found.kernel.run(found.count, found.step, *found.arguments, source, target, is_large=is_large)
            return
    _copy_by_numpy(target, source, threads)


def written(source: Array, out: Array) -> Array:
    """`out` with the elements of `source`, which may be `out` itself."""
    if source is not out:
        out[...] = source
    return out


def _copy_by_numpy(target: Array, source: Array, threads: bool) -> None:
    """Copy a transposed array in blocks that fit the cache, on several threads if it is large."""
    last = source.ndim - 1
    axes = [axis for axis in range(source.ndim) if source.shape[axis] > 1]
    nearest = min(axes, key=lambda axis: abs(source.strides[axis]), default=last)
    if nearest == last or source.size < _MIN_BLOCKED or source.shape != target.shape:
        np.copyto(target, source)
        return

    def copy_rows(block: int) -> None:
        index: list[Any] = [slice(None)] * source.ndim
        index[nearest] = slice(block * _BLOCK, (block + 1) * _BLOCK)
        for first in range(0, source.shape[last], _BLOCK):
            index[last] = slice(first, first + _BLOCK)
            np.copyto(target[tuple(index)], source[tuple(index)])

    run_tiles(copy_rows, -(-source.shape[nearest] // _BLOCK), threads)


def contiguous(source: Array) -> Array:
    """A contiguous copy."""
    target = np.empty(source.shape, source.dtype)
    copy(target, source)
    return target


_FEW_PARTS: Final = 128
"""Parts that a GPU copies one by one. For more it pays to copy a table of addresses there; no CUDA graph holds that."""


def joined(xp: ArrayModule, values: Sequence[Array], axis: int = 0, out: Array | None = None) -> Array:
    """``xp.concatenate``. On a CPU, large parts are copied on several threads."""
    others = {(*value.shape[:axis], None, *value.shape[axis:][1:]) for value in values}
    is_left = min(value.size for value in values) < LEAST_ELEMENTS if xp is np else len(values) > _FEW_PARTS
    if is_left or len(others) > 1 or not -values[0].ndim <= axis < values[0].ndim:
        return xp.concatenate(values, axis=axis, out=out)
    shape, whole = list(values[0].shape), (slice(None),) * (axis % values[0].ndim)
    shape[axis] = sum(value.shape[axis] for value in values)
    target = xp.empty(shape, values[0].dtype) if out is None else out
    copy_into, end = copy if xp is np else device_copies.copy, 0
    for value in values:
        start, end = end, end + value.shape[axis]
        copy_into(target[(*whole, slice(start, end))], value)
    return target


_MIRRORS: Final = {1: "mirror_octets", 4: "mirror_words"}
"""Kernels that turn rows around, by the bytes of a number."""

_MOST_CHANNELS: Final = 4
"""Of the pixels that these kernels know."""


def mirrored(source: Array, axis: int) -> Array | None:
    """A copy whose elements along one of the last two axes are in reverse order; None where NumPy makes it."""
    channels = prod(source.shape[axis + 1 :])
    name = _MIRRORS.get(source.dtype.itemsize) if source.dtype.kind in "biuf" else None
    is_plain = source.size >= LEAST_ELEMENTS and source.flags.c_contiguous
    if name is None or not is_plain or channels > _MOST_CHANNELS or axis < source.ndim - 2 or not can_compile():
        return None
    target = np.empty(source.shape, source.dtype)
    width = source.shape[axis] * channels
    step, is_large = max(1, STEP_ELEMENTS // width), source.size >= LARGE_ELEMENTS
    _kernel(name).run(source.size // width, step, width, channels, source, target, is_large=is_large)
    return target


@lru_cache(maxsize=1024)
def _way(shape: tuple[int, ...], target: tuple[int, ...], source: tuple[int, ...], itemsize: int) -> _Copy | None:
    """How to copy between arrays of that shape and these strides; None if NumPy does it."""
    axes = _merged([axis for axis in zip(shape, target, source, strict=True) if axis[0] > 1])
    is_whole = itemsize in (4, 8) and all(stride % itemsize == 0 for _, *strides in axes for stride in strides)
    if not can_compile() or len(axes) < 2 or not is_whole or any(one[1] <= 0 or one[2] < 0 for one in axes):
        return None
    *outer, (size, written, read) = axes
    is_large = prod(shape) * itemsize // 4 >= LARGE_ELEMENTS
    if written == itemsize and read == itemsize:
        width = size * itemsize // 4
        if width >= _LONG_RUN and not is_large:
            return None
        items = prod(one[0] for one in outer)
        return _Copy("copy_runs", items, width, is_large, [width, *_outer_axes(outer, 4)])
    nearest = next((one for one in outer if one[2] == itemsize), None)
    if written != itemsize or nearest is None:
        return None
    outer.remove(nearest)
    rows = nearest[0]
    items = prod(one[0] for one in outer) * -(-rows // _BAND)
    name = "transpose_words" if itemsize == 4 else "transpose_pairs"
    sizes = [rows, size, nearest[1] // itemsize, read // itemsize, *_outer_axes(outer, itemsize)]
    return _Copy(name, items, min(rows, _BAND) * size * itemsize // 4, is_large, sizes)


_Axis = tuple[int, int, int]
"""The size of an axis, and the bytes between neighbours in the target and in the source."""


def _merged(axes: list[_Axis]) -> list[_Axis]:
    """The axes in the order of the target's memory; one for each two through which both arrays step evenly."""
    merged: list[_Axis] = []
    for size, written, read in sorted(axes, key=lambda axis: -axis[1]):
        if merged and merged[-1][1:] == (size * written, size * read):
            merged[-1] = (merged[-1][0] * size, written, read)
        else:
            merged.append((size, written, read))
    return merged


def _outer_axes(axes: list[_Axis], unit: int) -> list[Any]:
    """Arguments for outer axes: their number, sizes, and strides in units."""
    sizes, targets, sources = (np.array([axis[i] for axis in axes] or [1], np.int64) for i in range(3))
    return [len(axes), sizes, targets // unit, sources // unit]


@cache
def _kernel(name: str) -> CompiledKernel:
    return kernel("strided_copies", name)
