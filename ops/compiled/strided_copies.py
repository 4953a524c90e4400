"""Copies between arrays of other memory layouts: runs of words that are contiguous in both, transposed matrices, and
rows of pixels in reverse order.

The outer axes of both arrays are walked alike. `sizes` has their sizes; `target_strides` and `source_strides` say how
many numbers lie between two neighbours along each.
"""

from collections.abc import Callable
from typing import Any, Final

from numba import njit

from tfray.ops.compiled.vectors import (
    LANES,
    Int,
    Ints,
    Longs,
    Octets,
    load,
    load_part,
    prefetch,
    store,
    store_part,
    transpose_block,
    turned,
)

BAND = 64
"""Rows of a transposed matrix that are written side by side: reads of a source row take whole cache lines."""


@njit(inline="always")
def _offset(place: Any, axes: Any, sizes: Any, strides: Any) -> Any:
    """Where the place with that number lies, from the first on."""
    offset = 0
    for i in range(axes):
        axis = axes - 1 - i
        offset += place % sizes[axis] * strides[axis]
        place //= sizes[axis]
    return offset


def copy_runs(
    first: Int,
    last: Int,
    width: Int,
    axes: Int,
    sizes: Longs,
    target_strides: Longs,
    source_strides: Longs,
    x: Ints,
    out: Ints,
) -> None:
    """Copy runs of words of 32 bits; an item is a run.

    Args:
        first: First item.
        last: End of the range of items.
        width: Words in a run.
        axes: Number of outer axes, at least 1.
        sizes: Their sizes.
        target_strides: Their strides in `out`.
        source_strides: Their strides in `x`.
        x: The array to read.
        out: The array to write.
    """
    whole = width // 16 * 16
    item = first
    inner = axes - 1
    while item < last:
        source = _offset(item, axes, sizes, source_strides)
        target = _offset(item, axes, sizes, target_strides)
        count = min(last - item, sizes[inner] - item % sizes[inner])
        for _ in range(count):
            for j in range(0, whole, 16):
                store(out, target + j, load(x, source + j))
            if whole < width:
                store_part(out, target + whole, load_part(x, source + whole, width - whole, 0), width - whole)
            source += source_strides[inner]
            target += target_strides[inner]
        item += count


@njit(inline="always")
def _transpose(
    first: Any,
    last: Any,
    side: Any,
    rows: Any,
    columns: Any,
    target_stride: Any,
    source_stride: Any,
    axes: Any,
    sizes: Any,
    target_strides: Any,
    source_strides: Any,
    x: Any,
    out: Any,
) -> None:
    bands = (rows + BAND - 1) // BAND
    for item in range(first, last):
        source = _offset(item // bands, axes, sizes, source_strides)
        target = _offset(item // bands, axes, sizes, target_strides)
        start = item % bands * BAND
        end = min(start + BAND, rows)
        whole = start + (end - start) // side * side
        for column in range(0, columns, side):
            if column + side <= columns:
                for row in range(start, whole, side):
                    for i in range(side):
                        prefetch(x, source + (column + side + i) * source_stride + row)
                    place = target + row * target_stride + column
                    transpose_block(x, source + column * source_stride + row, source_stride, out, place, target_stride)
            for row in range(start if column + side > columns else whole, end):
                for i in range(column, min(column + side, columns)):
                    out[target + row * target_stride + i] = x[source + i * source_stride + row]


def transpose_words(
    first: Int,
    last: Int,
    rows: Int,
    columns: Int,
    target_stride: Int,
    source_stride: Int,
    axes: Int,
    sizes: Longs,
    target_strides: Longs,
    source_strides: Longs,
    x: Ints,
    out: Ints,
) -> None:
    """Transpose matrices of numbers of 32 bits; an item is a band of 64 rows of the result.

    Args:
        first: First item.
        last: End of the range of items.
        rows: Rows of the result: neighbours along a column of it are neighbours in `x`.
        columns: Its columns: neighbours along a row are neighbours in `out`.
        target_stride: Numbers between its rows, in `out`.
        source_stride: Numbers between its columns, in `x`.
        axes: Number of outer axes; one matrix for each of their places.
        sizes: Their sizes.
        target_strides: Their strides in `out`.
        source_strides: Their strides in `x`.
        x: The array to read.
        out: The array to write.
    """
    _transpose(
        first,
        last,
        16,
        rows,
        columns,
        target_stride,
        source_stride,
        axes,
        sizes,
        target_strides,
        source_strides,
        x,
        out,
    )


def transpose_pairs(
    first: Int,
    last: Int,
    rows: Int,
    columns: Int,
    target_stride: Int,
    source_stride: Int,
    axes: Int,
    sizes: Longs,
    target_strides: Longs,
    source_strides: Longs,
    x: Longs,
    out: Longs,
) -> None:
    """As `transpose_words`, of 64 bits."""
    _transpose(
        first,
        last,
        8,
        rows,
        columns,
        target_stride,
        source_stride,
        axes,
        sizes,
        target_strides,
        source_strides,
        x,
        out,
    )


# -- rows in reverse order -----------------------------------------------------------------------------


def _mirror(channels: int) -> Callable[..., None]:
    turn = turned(channels)
    span = LANES // channels * channels

    @njit(inline="always")
    def mirror(first: Any, last: Any, width: Any, x: Any, out: Any) -> None:
        for begin in range(first * width, last * width, width):
            done = 0
            while done + span <= width:
                source, target = begin + width - done - span, begin + done
                if done > 0 and done + LANES <= width:  # what is written behind the pixels is written anew
                    store(out, target, turn(load(x, source)))
                else:
                    store_part(out, target, turn(load_part(x, source, span, 0)), span)
                done += span
            for pixel in range(done, width, channels):
                for channel in range(channels):
                    out[begin + pixel + channel] = x[begin + width - pixel - channels + channel]

    mirrored: Callable[..., None] = mirror
    return mirrored


_mirror_1: Final = _mirror(1)
_mirror_2: Final = _mirror(2)
_mirror_3: Final = _mirror(3)
_mirror_4: Final = _mirror(4)


@njit(inline="always")
def _mirror_rows(first: Any, last: Any, width: Any, channels: Any, x: Any, out: Any) -> None:
    if channels == 1:
        _mirror_1(first, last, width, x, out)
    elif channels == 2:
        _mirror_2(first, last, width, x, out)
    elif channels == 3:
        _mirror_3(first, last, width, x, out)
    else:
        _mirror_4(first, last, width, x, out)


def mirror_words(first: Int, last: Int, width: Int, channels: Int, x: Ints, out: Ints) -> None:
    """Copy rows, the pixels of each in reverse order; an item is a row.

    Args:
        first: First item.
        last: End of the range of items.
        width: Numbers in a row.
        channels: Numbers in a pixel, 1 to 4.
        x: The array to read, ``[rows, width]``.
        out: The array to write, of the same shape.
    """
    _mirror_rows(first, last, width, channels, x, out)


def mirror_octets(first: Int, last: Int, width: Int, channels: Int, x: Octets, out: Octets) -> None:
    """As `mirror_words`, of bytes."""
    _mirror_rows(first, last, width, channels, x, out)
