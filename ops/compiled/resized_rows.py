"""Images resized along both axes: each output row is a weighted sum of input rows, then each pixel one of pixels."""

import numpy as np

from tfray.ops.compiled.vectors import Floats, Int, Longs, fill, fused, load, load_upto, store, store_upto


def resample(
    first: Int,
    last: Int,
    start: Int,
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
        start: The row of the results, counted through all images, that item 0 stands for.
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
        between: Working memory of this thread for a row of the inputs and 16 numbers more.
        x: The inputs, NHWC.
        out: The results, NHWC.
    """
    length = width * channels
    for item in range(first + start, last + start):
        image, y = item // row_outputs * height, item % row_outputs
        is_empty = True
        for tap in range(row_taps):
            place = tap * row_outputs + y
            if row_weights[place] != 0:
                source = (image + rows[place]) * length
                weight = fill(row_weights[place])
                if is_empty:
                    for j in range(0, length, 16):
                        store(between, j, weight * load_upto(x, source + j, length - j))
                    is_empty = False
                else:
                    for j in range(0, length, 16):
                        total = fused(weight, load_upto(x, source + j, length - j), load(between, j))
                        store(between, j, total)
        if is_empty:
            for j in range(0, length, 16):
                store(between, j, fill(np.float32(0)))
        target = item * column_outputs * channels
        for column in range(column_outputs):
            for channel in range(0, channels, 16):
                total = fill(np.float32(0))
                for tap in range(column_taps):
                    place = tap * column_outputs + column
                    if column_weights[place] != 0:
                        value = load(between, columns[place] * channels + channel)
                        total = fused(fill(column_weights[place]), value, total)
                store_upto(out, target + column * channels + channel, total, channels - channel)
