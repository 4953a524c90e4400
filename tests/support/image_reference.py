"""Convolution and pooling of NHWC images by plain loops over windows: references for the operations' tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

Padding = str | tuple[tuple[int, int], tuple[int, int]]


def pads(size: int, window: int, stride: int, dilation: int, padding: str) -> tuple[int, int]:
    """Padding before and behind one axis."""
    if padding == "VALID":
        return 0, 0
    outputs = -(-size // stride)
    total = max((outputs - 1) * stride + (window - 1) * dilation + 1 - size, 0)
    return total // 2, total - total // 2


def windows(
    shape: Any, window: Any, stride: Any = (1, 1), dilation: Any = (1, 1), padding: Padding = "VALID"
) -> tuple[list[tuple[int, int]], list[tuple[int, int, Any]]]:
    """The padding of both axes, and (output row, output column, index of the window in padded images)."""
    amounts = [
        pads(shape[1 + a], window[a], stride[a], dilation[a], padding) if isinstance(padding, str) else padding[a]
        for a in (0, 1)
    ]
    starts = []
    for a in (0, 1):
        extent = (window[a] - 1) * dilation[a] + 1
        starts.append(range(0, shape[1 + a] + sum(amounts[a]) - extent + 1, stride[a]))
    found = []
    for i, y in enumerate(starts[0]):
        for j, x in enumerate(starts[1]):
            rows = slice(y, y + (window[0] - 1) * dilation[0] + 1, dilation[0])
            columns = slice(x, x + (window[1] - 1) * dilation[1] + 1, dilation[1])
            found.append((i, j, (slice(None), rows, columns)))
    return amounts, found


def padded(images: Any, amounts: Any, value: float = 0.0) -> Any:
    """Images with `value` around them."""
    return np.pad(images, [(0, 0), *amounts, (0, 0)], constant_values=value)


def output_sizes(found: list[tuple[int, int, Any]]) -> tuple[int, int]:
    """Rows and columns of the outputs."""
    return max((i for i, _, _ in found), default=-1) + 1, max((j for _, j, _ in found), default=-1) + 1


def conv(images: Any, filters: Any, **options: Any) -> Any:
    """Cross-correlation of NHWC images with ``[height, width, channels, filters]``."""
    amounts, found = windows(images.shape, filters.shape, **options)
    source = padded(images, amounts)
    outputs = np.zeros((len(images), *output_sizes(found), filters.shape[3]))
    for i, j, window in found:
        outputs[:, i, j] = np.tensordot(source[window], filters, 3)
    return outputs


def conv_images_gradient(shape: Any, filters: Any, d_outputs: Any, **options: Any) -> Any:
    """Gradient of `conv` with respect to images of this shape."""
    amounts, found = windows(shape, filters.shape, **options)
    source = padded(np.zeros(shape), amounts)
    for i, j, window in found:
        source[window] += np.tensordot(d_outputs[:, i, j], filters, ([1], [3]))
    return cropped(source, amounts)


def conv_filters_gradient(images: Any, shape: Any, d_outputs: Any, **options: Any) -> Any:
    """Gradient of `conv` with respect to filters of this shape."""
    amounts, found = windows(images.shape, shape, **options)
    source = padded(images, amounts)
    filters = np.zeros(shape)
    for i, j, window in found:
        filters += np.tensordot(source[window], d_outputs[:, i, j], ([0], [0]))
    return filters


def cropped(source: Any, amounts: Any) -> Any:
    """What lies within the padding."""
    (top, bottom), (left, right) = amounts
    return source[:, top : source.shape[1] - bottom, left : source.shape[2] - right]


def depthwise(images: Any, filters: Any, **options: Any) -> Any:
    """Depthwise convolution: output ``c * multiplier + m`` is channel c with ``filters[:, :, c, m]``."""
    channels, multiplier = filters.shape[2:]
    parts = [
        conv(images[..., c : c + 1], filters[:, :, c : c + 1, m : m + 1], **options)
        for c in range(channels)
        for m in range(multiplier)
    ]
    return np.concatenate(parts, axis=3)


def pool(images: Any, window: Any, kind: str, **options: Any) -> Any:
    """Greatest (``max``) or mean (``mean``) element of each window; padding does not take part."""
    amounts, found = windows(images.shape, window, **options)
    source = padded(np.asarray(images, np.float64), amounts, np.nan)
    outputs = np.zeros((len(images), *output_sizes(found), images.shape[3]))
    for i, j, index in found:
        outputs[:, i, j] = (np.nanmax if kind == "max" else np.nanmean)(source[index], axis=(1, 2))
    return outputs


def first_maxima(images: Any, window: Any, **options: Any) -> Iterator[tuple[tuple[int, int, int, int], Any]]:
    """For each output, the index in `images` of the first greatest element of its window."""
    amounts, found = windows(images.shape, window, **options)
    source = padded(images, amounts, -np.inf)
    places = padded(np.arange(images.size).reshape(images.shape), amounts, -1)
    for i, j, index in found:
        for n in range(len(images)):
            for c in range(images.shape[3]):
                place = places[index][n, ..., c].flat[source[index][n, ..., c].argmax()]
                yield (n, i, j, c), np.unravel_index(place, images.shape)


def max_pool_gradient(images: Any, d_outputs: Any, window: Any, **options: Any) -> Any:
    """Gradient of the greatest element."""
    d_images = np.zeros(images.shape)
    for output, place in first_maxima(images, window, **options):
        d_images[place] += d_outputs[output]
    return d_images


def max_pool_gradient_gradient(images: Any, maxima: Any, d_images: Any, window: Any, **options: Any) -> Any:
    """What `d_images` holds at the first greatest element of each window."""
    outputs = np.zeros(maxima.shape)
    for output, place in first_maxima(images, window, **options):
        outputs[output] = d_images[place]
    return outputs


def mean_pool_gradient(shape: Any, d_outputs: Any, window: Any, **options: Any) -> Any:
    """Gradient of the mean."""
    amounts, found = windows(shape, window, **options)
    inside = padded(np.ones(shape), amounts)
    source = np.zeros(inside.shape)
    for i, j, index in found:
        count = inside[index].sum(axis=(1, 2))
        source[index] += (d_outputs[:, i, j] / count)[:, None, None] * inside[index]
    return cropped(source, amounts)


def to_nchw(array: Any) -> Any:
    """NHWC to NCHW."""
    return np.transpose(array, (0, 3, 1, 2))


def to_nhwc(array: Any) -> Any:
    """NCHW to NHWC."""
    return np.transpose(array, (0, 2, 3, 1))
