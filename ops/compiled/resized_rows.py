"""Images resized along both axes: each output row is a weighted sum of input rows, then each pixel one of pixels."""

from typing import Any

import numpy as np
from numba import njit

from tfray.ops.compiled.vectors import (
    LANES,
    QUAD,
    Floats,
    Int,
    Longs,
    Octets,
    Thread,
    behind,
    convert,
    fill,
    fused,
    load,
    load_upto,
    mix_quads,
    store,
    store_upto,
)


@njit(inline="always")
def _load_floats(x: Floats | Octets, index: Int, count: Int) -> Any:
    return convert(load_upto(x, index, count), fill(np.float32(0)))


@njit(inline="always")
def _sum_rows(
    image: Int,
    y: Int,
    length: Int,
    row_outputs: Int,
    row_taps: Int,
    rows: Longs,
    row_weights: Floats,
    x: Floats | Octets,
    between: Floats,
) -> None:
    """Write the weighted sum of the input rows of output row `y` to `between`."""
    second = y + row_outputs
    if row_taps == 2 and row_weights[y] != 0 and row_weights[second] != 0:
        one, two = (image + rows[y]) * length, (image + rows[second]) * length
        w, v = fill(row_weights[y]), fill(row_weights[second])
        for j in range(0, length, 16):
            total = w * _load_floats(x, one + j, length - j)
            store(between, j, fused(v, _load_floats(x, two + j, length - j), total))
        return
    is_empty = True
    for tap in range(row_taps):
        place = tap * row_outputs + y
        if row_weights[place] != 0:
            source = (image + rows[place]) * length
            weight = fill(row_weights[place])
            if is_empty:
                for j in range(0, length, 16):
                    store(between, j, weight * _load_floats(x, source + j, length - j))
                is_empty = False
            else:
                for j in range(0, length, 16):
                    total = fused(weight, _load_floats(x, source + j, length - j), load(between, j))
                    store(between, j, total)
    if is_empty:
        for j in range(0, length, 16):
            store(between, j, fill(np.float32(0)))


@njit(inline="always")
def _quads(channels: Int, column_outputs: Int, column_taps: Int, column_weights: Floats) -> int:
    """How many pixels of a row, from the first one on, `_mix_columns` computes."""
    count = 0
    if channels <= QUAD and column_taps == 2:
        while count * channels + QUAD <= column_outputs * channels and column_weights[count] != 0:
            count += 1
    return count


@njit(inline="always")
def _mix_columns(
    item: Int,
    count: Int,
    channels: Int,
    column_outputs: Int,
    columns: Longs,
    column_weights: Floats,
    between: Floats,
    out: Floats,
) -> None:
    """Write the first pixels of a row, of one or two pixels each. What is written behind a pixel is the next one's."""
    target = item * column_outputs * channels
    for column in range(count):
        other = column + column_outputs
        weight, other_weight = column_weights[column], column_weights[other]
        one, two = columns[column] * channels, columns[other] * channels
        mix_quads(between, one, weight, two if other_weight != 0 else -1, other_weight, out, target)
        target += channels


@njit(inline="always")
def _mix(
    column: Int,
    channel: Int,
    channels: Int,
    column_outputs: Int,
    column_taps: Int,
    columns: Longs,
    column_weights: Floats,
    between: Floats,
) -> Any:
    """The weighted sum of pixels for a column of the results, from a channel on."""
    weight = column_weights[column]
    if column_taps == 2 and weight != 0:
        total = fill(weight) * load(between, columns[column] * channels + channel)
        place = column_outputs + column
        if column_weights[place] != 0:
            value = load(between, columns[place] * channels + channel)
            total = fused(fill(column_weights[place]), value, total)
        return total
    total = fill(np.float32(0))
    for tap in range(column_taps):
        place = tap * column_outputs + column
        if column_weights[place] != 0:
            value = load(between, columns[place] * channels + channel)
            total = fused(fill(column_weights[place]), value, total)
    return total


@njit(inline="always")
def _resample(
    first: Int,
    last: Int,
    thread: Thread,
    height: Int,
    width: Int,
    channels: Int,
    row_outputs: Int,
    row_taps: Int,
    rows: Longs,
    row_weights: Floats,
    column_outputs: Int,
    column_taps: Int,
    columns: Longs,
    column_weights: Floats,
    between: Floats,
    x: Floats | Octets,
    out: Floats,
) -> None:
    length = width * channels
    quads = _quads(channels, column_outputs, column_taps, column_weights)
    between = behind(between, thread * (length + LANES))
    for item in range(first, last):
        image, y = item // row_outputs * height, item % row_outputs
        _sum_rows(image, y, length, row_outputs, row_taps, rows, row_weights, x, between)
        _mix_columns(item, quads, channels, column_outputs, columns, column_weights, between, out)
        whole = channels - channels % LANES
        for channel in range(0, whole, LANES):
            for column in range(quads, column_outputs):
                total = _mix(column, channel, channels, column_outputs, column_taps, columns, column_weights, between)
                store(out, (item * column_outputs + column) * channels + channel, total)
        if whole < channels:
            for column in range(quads, column_outputs):
                total = _mix(column, whole, channels, column_outputs, column_taps, columns, column_weights, between)
                store_upto(out, (item * column_outputs + column) * channels + whole, total, channels - whole)


def resample_floats(
    first: Int,
    last: Int,
    thread: Thread,
    height: Int,
    width: Int,
    channels: Int,
    row_outputs: Int,
    row_taps: Int,
    rows: Longs,
    row_weights: Floats,
    column_outputs: Int,
    column_taps: Int,
    columns: Longs,
    column_weights: Floats,
    between: Floats,
    x: Floats,
    out: Floats,
) -> None:
    """Compute rows of the results; an item is a row of one image. Inputs of weight 0 are not read.

    Args:
        first: First item.
        last: End of the range of items.
        thread: Which thread computes.
        height: Height of the inputs.
        width: Their width.
        channels: Numbers in a pixel.
        row_outputs: Height of the results.
        row_taps: Inputs of each row.
        rows: Which these are: ``[row_taps, row_outputs]``.
        row_weights: Their weights.
        column_outputs: Width of the results.
        column_taps: Inputs of each column.
        columns: Which these are.
        column_weights: Their weights.
        between: Working memory of each thread, for a row of the inputs and `LANES` numbers more.
        x: The inputs, NHWC.
        out: The results, NHWC.
    """
    _resample(
        first,
        last,
        thread,
        height,
        width,
        channels,
        row_outputs,
        row_taps,
        rows,
        row_weights,
        column_outputs,
        column_taps,
        columns,
        column_weights,
        between,
        x,
        out,
    )


def resample_octets(
    first: Int,
    last: Int,
    thread: Thread,
    height: Int,
    width: Int,
    channels: Int,
    row_outputs: Int,
    row_taps: Int,
    rows: Longs,
    row_weights: Floats,
    column_outputs: Int,
    column_taps: Int,
    columns: Longs,
    column_weights: Floats,
    between: Floats,
    x: Octets,
    out: Floats,
) -> None:
    """As `resample_floats`, of bytes."""
    _resample(
        first,
        last,
        thread,
        height,
        width,
        channels,
        row_outputs,
        row_taps,
        rows,
        row_weights,
        column_outputs,
        column_taps,
        columns,
        column_weights,
        between,
        x,
        out,
    )
