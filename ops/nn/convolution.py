"""How convolutions are computed: by matrix products over tiles of unfolded windows.

Let P be the number of windows of a tile, K = window height * width * channels, and F the number of filters.

- Forward: the windows of a tile are copied side by side (``columns [P, K]``) and multiplied by the filters [K, F].
- Gradient of the filters: ``columns.T @ d_outputs``, summed over tiles.
- Gradient of the images: at stride 1 the forward form again, with mirrored filters; at larger strides, or for
  few channels, ``d_outputs @ filters.T``, whose windows are added to where they came from.

On a CPU a tile's columns stay in the cache, and large convolutions run several tiles at once; on a GPU tiles only
bound the memory. Sums are made in an order that depends on nothing but shapes: the number of threads changes no bit.
Where oneDNN is installed, it computes most convolutions of a CPU (`fast_convolution.py`), and where cuDNN is, those of
a GPU (`device_convolution.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final

import numpy as np

from tfray.framework.op_def import Array, ArrayModule, NumpyDType
from tfray.ops.arrays.broadcast_ops import accumulator_dtype
from tfray.ops.kernels.copies import fill
from tfray.ops.kernels.products import matrix_product
from tfray.ops.kernels.tiles import (
    Tile,
    buffer,
    cut,
    cut_tiles,
    image_buffer,
    run_tiles,
    shares_for,
    tile_bytes,
)
from tfray.ops.kernels.windows import Axis, as_nhwc
from tfray.ops.nn import fast_convolution
from tfray.ops.nn.conv_geometry import Geometry, mirrored
from tfray.ops.nn.device import device_convolution, device_kernels

_SERIAL_FLOPS: Final = 5e7
"""Operations below which a convolution takes half a millisecond or less, too short for a second thread to pay."""
_FEW_CHANNELS: Final = 8
"""Below this many channels, the images' gradient is faster by adding windows up than by a product so narrow."""


def _tiles(xp: ArrayModule, geo: Geometry, shares: int, dtype: NumpyDType, least_windows: int = 1) -> list[Tile]:
    row_bytes = geo.width.steps * geo.depth * dtype.itemsize
    budget = max(tile_bytes(xp), least_windows * geo.depth * dtype.itemsize)
    return cut_tiles(geo.batch, geo.height.steps, row_bytes, budget, shares)


def _shares(xp: ArrayModule, geo: Geometry) -> int:
    return shares_for(xp, geo.flops >= _SERIAL_FLOPS)


# -- columns -------------------------------------------------------------------------------------------


def _columns(xp: ArrayModule, images: Array, geo: Geometry, tile: Tile, dtype: NumpyDType) -> Array:
    """The windows of a tile as a matrix [P, K], in a buffer that the thread's next call reuses."""
    height, width = geo.height, geo.width
    source = padded_part(xp, images, geo, tile, dtype)
    if geo.is_pointwise and geo.layout == "NHWC":
        return source.reshape(-1, geo.depth)
    shape = (source.shape[0], tile.height, width.steps, height.window, width.window, geo.channels)
    image, row, column, channel = source.strides
    strides = (
        image,
        row * height.stride,
        column * width.stride,
        row * height.dilation,
        column * width.dilation,
        channel,
    )
    windows = xp.lib.stride_tricks.as_strided(source, shape, strides)
    if geo.is_depth_first(geo.channels * (width.window if width.dilation == 1 else 1)):
        columns = buffer(xp, "columns", shape[3:] + shape[:3], dtype)
        xp.copyto(columns, windows.transpose(3, 4, 5, 0, 1, 2))
        return columns.reshape(geo.depth, -1).T
    columns = buffer(xp, "columns", shape, dtype)
    xp.copyto(columns, windows)
    return columns.reshape(-1, geo.depth)


def padded_part(xp: ArrayModule, images: Array, geo: Geometry, tile: Tile, dtype: NumpyDType) -> Array:
    """The part of the images (NHWC view) that a tile's windows see, with its padding, in `dtype`."""
    height, width = geo.height, geo.width
    top = tile.rows.start * height.stride - height.before
    bottom = (tile.rows.stop - 1) * height.stride + height.extent - height.before
    left, right = -width.before, (width.steps - 1) * width.stride + width.extent - width.before
    inside = images[tile.images, max(top, 0) : max(bottom, 0), max(left, 0) : max(right, 0)]
    if top >= 0 and left >= 0 and bottom <= height.size and right <= width.size and images.dtype == dtype:
        return inside
    batch, rows, columns, channels = inside.shape
    padded = image_buffer(xp, "padded", (batch, bottom - top, right - left, channels), geo.layout, dtype)
    fill(padded, 0)
    first_row, first_column = max(-top, 0), max(-left, 0)
    padded[:, first_row : first_row + rows, first_column : first_column + columns] = inside
    return padded


# -- the three products --------------------------------------------------------------------------------


def _is_product(xp: ArrayModule, geo: Geometry, *arrays: Array) -> bool:
    """Whether a convolution is best computed as one product of matrices, with the filters as they lie.

    It is where each output depends on one pixel and the filters are larger than the images: bringing filters into a
    layout of their own would take longer than the product.
    """
    if xp is not np or geo.layout != "NHWC" or not geo.is_pointwise or geo.groups > 1 or geo.is_empty:
        return False
    if any(array.dtype.char not in "fd" or not array.flags.c_contiguous for array in arrays):
        return False
    return geo.depth * geo.filters >= prod(geo.images_shape) + prod(geo.outputs_shape)


def convolve(xp: ArrayModule, images: Array, filters: Array, geo: Geometry, out: Array | None = None) -> Array:
    """Convolve images with filters ``[height, width, channels, filters]``; the outputs have `outputs_shape`."""
    if out is None:
        out = xp.empty(geo.outputs_shape, images.dtype)
    if _is_product(xp, geo, images, filters, out):
        _convolve_pointwise(xp, images, filters.reshape(geo.depth, geo.filters), geo, out)
        return out
    if device_convolution.can_convolve(xp, "forward", geo, images, filters):
        return device_convolution.convolve(xp, images, filters, geo, out)
    if fast_convolution.can_convolve(xp, "forward", geo, images, filters):
        return fast_convolution.convolve(images, filters, geo, out)
    dtype = accumulator_dtype(images.dtype)
    matrix = filters.reshape(geo.depth, geo.filters).astype(dtype, copy=False)
    if geo.is_empty:
        fill(out, 0)
    elif geo.is_pointwise:
        _convolve_pointwise(xp, images.astype(dtype, copy=False), matrix, geo, out)
    else:
        _convolve_tiles(xp, as_nhwc(images, geo.layout), matrix, geo, out)
    return out


def convolve_biased(
    xp: ArrayModule,
    images: Array,
    filters: Array,
    bias: Array,
    geo: Geometry,
    *,
    rectified: bool,
    out: Array | None = None,
) -> Array:
    """See `convolve`. A bias for each filter is added, and ``max(x, 0)`` of the sums taken if they are `rectified`."""
    if out is None:
        out = xp.empty(geo.outputs_shape, images.dtype)
    if not _is_product(xp, geo, images, filters, out) and fast_convolution.can_convolve(
        xp, "biased", geo, images, filters, bias
    ):
        return fast_convolution.convolve(images, filters, geo, out, bias, rectified=rectified)
    convolve(xp, images, filters, geo, out)
    if device_kernels.has_kernels(xp, out, bias) and out.flags.c_contiguous:
        device_kernels.add_bias(xp, out, bias, geo.layout, rectified=rectified)
        return out
    channels = as_nhwc(out, geo.layout)
    xp.add(channels, bias, out=channels)
    return xp.maximum(out, out.dtype.type(0), out=out) if rectified else out


def _convolve_pointwise(xp: ArrayModule, images: Array, matrix: Array, geo: Geometry, out: Array) -> None:
    target = out if out.dtype == matrix.dtype else buffer(xp, "product", out.shape, matrix.dtype)
    if geo.layout == "NHWC":
        matrix_product(xp, images.reshape(-1, geo.channels), matrix, target.reshape(-1, geo.filters))
    else:
        flat = images.reshape(geo.batch, geo.channels, -1)
        matrix_product(xp, matrix.T, flat, target.reshape(geo.batch, geo.filters, -1))
    if target is not out:
        out[...] = target


def _convolve_tiles(xp: ArrayModule, images: Array, matrix: Array, geo: Geometry, out: Array) -> None:
    shares = _shares(xp, geo)
    tiles = _tiles(xp, geo, shares, matrix.dtype)

    def work(index: int) -> None:
        tile = tiles[index]
        columns = _columns(xp, images, geo, tile, matrix.dtype)
        _multiply(xp, columns, matrix, _outputs_of(out, geo, tile), geo)

    run_tiles(work, len(tiles), shares > 1)


def _outputs_of(outputs: Array, geo: Geometry, tile: Tile) -> Array:
    return outputs[tile.images, tile.rows] if geo.layout == "NHWC" else outputs[tile.images, :, tile.rows]


def _multiply(xp: ArrayModule, columns: Array, matrix: Array, out: Array, geo: Geometry) -> None:
    """Write ``columns @ matrix`` to `out`, a tile of outputs."""
    target = out if out.dtype == matrix.dtype else buffer(xp, "product", out.shape, matrix.dtype)
    if geo.layout == "NHWC":
        xp.matmul(columns, matrix, out=target.reshape(-1, geo.filters))
    else:
        batch = out.shape[0]
        by_image = columns.T.reshape(geo.depth, batch, -1).transpose(1, 0, 2)
        xp.matmul(matrix.T, by_image, out=target.reshape(batch, geo.filters, -1))
    if target is not out:
        out[...] = target


def convolve_backward_filters(
    xp: ArrayModule, images: Array, d_outputs: Array, geo: Geometry, out: Array | None = None
) -> Array:
    """Gradient of the filters, ``[height, width, channels, filters]``."""
    if out is None:
        out = xp.empty((geo.height.window, geo.width.window, geo.channels, geo.filters), images.dtype)
    if _is_product(xp, geo, images, d_outputs, out):
        pixels, d_pixels = images.reshape(-1, geo.channels), d_outputs.reshape(-1, geo.filters)
        matrix_product(xp, pixels.T, d_pixels, out.reshape(geo.channels, geo.filters))
        return out
    if device_convolution.can_convolve(xp, "filters", geo, images, d_outputs):
        return device_convolution.convolve_backward_filters(xp, images, d_outputs, geo, out)
    if fast_convolution.can_convolve(xp, "filters", geo, images, d_outputs):
        return fast_convolution.convolve_backward_filters(images, d_outputs, geo, out)
    if geo.is_empty:
        fill(out, 0)
        return out
    dtype = accumulator_dtype(images.dtype)
    wanted = _shares(xp, geo)
    # Each tile adds a matrix of K * F elements to the sum. Tiles of many windows make few such additions.
    tiles = _tiles(xp, geo, wanted, dtype, least_windows=512)
    shares = cut(len(tiles), min(wanted, len(tiles)))
    sums = xp.zeros((len(shares), geo.depth, geo.filters), dtype)
    images = as_nhwc(images, geo.layout)

    def work(index: int) -> None:
        for tile in tiles[shares[index]]:
            columns = _columns(xp, images, geo, tile, dtype)
            product = buffer(xp, "product", sums.shape[1:], dtype)
            xp.matmul(columns.T, _d_outputs_matrix(xp, d_outputs, geo, tile, dtype), out=product)
            xp.add(sums[index], product, out=sums[index])

    run_tiles(work, len(shares), wanted > 1)
    out[...] = _total(sums).reshape(out.shape)
    return out


def _total(sums: Array) -> Array:
    return sums[0] if len(sums) == 1 else sums.sum(axis=0)


def _d_outputs_matrix(xp: ArrayModule, d_outputs: Array, geo: Geometry, tile: Tile, dtype: NumpyDType) -> Array:
    """A tile of the outputs' gradient as a matrix [P, F]."""
    part = _outputs_of(d_outputs, geo, tile)
    if geo.layout == "NHWC":
        return part.reshape(-1, geo.filters).astype(dtype, copy=False)
    by_filter = part.transpose(1, 0, 2, 3)
    matrix = buffer(xp, "d_outputs", by_filter.shape, dtype)
    xp.copyto(matrix, by_filter)
    return matrix.reshape(geo.filters, -1).T


def convolve_backward_images(
    xp: ArrayModule, d_outputs: Array, filters: Array, geo: Geometry, out: Array | None = None
) -> Array:
    """Gradient of the images, of `images_shape`."""
    if out is None:
        out = xp.empty(geo.images_shape, d_outputs.dtype)
    if _is_product(xp, geo, d_outputs, filters, out):
        matrix = filters.reshape(geo.channels, geo.filters)
        matrix_product(xp, d_outputs.reshape(-1, geo.filters), matrix.T, out.reshape(-1, geo.channels))
        return out
    if device_convolution.can_convolve(xp, "images", geo, d_outputs, filters):
        return device_convolution.convolve_backward_images(xp, d_outputs, filters, geo, out)
    if fast_convolution.can_convolve(xp, "images", geo, d_outputs, filters):
        return fast_convolution.convolve_backward_images(d_outputs, filters, geo, out)
    if geo.height.stride == geo.width.stride == 1 and geo.channels >= _FEW_CHANNELS:
        flipped = xp.ascontiguousarray(filters[::-1, ::-1].transpose(0, 1, 3, 2))
        return convolve(xp, d_outputs, flipped, mirrored(geo), out)
    if geo.is_empty:
        fill(out, 0)
        return out
    dtype = accumulator_dtype(d_outputs.dtype)
    matrix = filters.reshape(geo.depth, geo.filters).astype(dtype, copy=False)
    shares = min(_shares(xp, geo), geo.batch)
    # Windows of neighbouring rows add to the same pixels: one thread must take all tiles of an image.
    groups = _by_images(_tiles(xp, geo, shares, dtype))

    def work(index: int) -> None:
        _scatter(xp, d_outputs, matrix, geo, groups[index], out)

    run_tiles(work, len(groups), shares > 1)
    return out


def _by_images(tiles: Sequence[Tile]) -> list[list[Tile]]:
    groups: dict[int, list[Tile]] = {}
    for tile in tiles:
        groups.setdefault(tile.images.start, []).append(tile)
    return list(groups.values())


def _scatter(
    xp: ArrayModule, d_outputs: Array, matrix: Array, geo: Geometry, tiles: Sequence[Tile], out: Array
) -> None:
    """Add up the windows of `tiles` to the gradient of their images. `tiles` has all tiles of these images."""
    images, height, width = tiles[0].images, geo.height, geo.width
    reach_y = max((height.steps - 1) * height.stride + height.extent, height.before + height.size)
    reach_x = max(width.steps * width.stride + width.extent - 1, width.before + width.size)
    sizes = (tiles[0].batch, reach_y, reach_x, geo.channels)
    padded = image_buffer(xp, "padded", sizes, geo.layout, matrix.dtype)
    fill(padded, 0)
    for tile in tiles:
        windows = _d_windows(xp, d_outputs, matrix, geo, tile)
        for i in range(height.window):
            top = tile.rows.start * height.stride + i * height.dilation
            rows = slice(top, top + (tile.height - 1) * height.stride + 1, height.stride)
            _add_window_rows(xp, padded[:, rows], windows[:, :, :, i], width)
    crop = slice(height.before, height.before + height.size), slice(width.before, width.before + width.size)
    as_nhwc(out, geo.layout)[images] = padded[:, crop[0], crop[1]]


def _add_window_rows(xp: ArrayModule, images: Array, windows: Array, width: Axis) -> None:
    """Add ``windows [images, rows, columns, window width, channels]`` to the image rows they came from."""
    batch, rows, _, channels = images.shape
    # Within a piece of one stride, windows do not overlap: one addition takes this piece of all windows.
    step = width.stride if width.dilation == 1 else 1
    for j in range(0, width.window, step):
        left = j * width.dilation
        strip = images[:, :, left : left + width.steps * width.stride]
        strip = strip.reshape(batch, rows, width.steps, width.stride, channels)[:, :, :, : min(step, width.window - j)]
        xp.add(strip, windows[:, :, :, j : j + step], out=strip)


def _d_windows(xp: ArrayModule, d_outputs: Array, matrix: Array, geo: Geometry, tile: Tile) -> Array:
    """Gradient of a tile's windows, [images, rows, columns, window height, window width, channels]."""
    d_matrix = _d_outputs_matrix(xp, d_outputs, geo, tile, matrix.dtype)
    count = len(d_matrix)
    positions = (tile.batch, tile.height, geo.width.steps)
    window = (geo.height.window, geo.width.window, geo.channels)
    if geo.is_depth_first(geo.channels * (geo.width.stride if geo.width.dilation == 1 else 1)):
        columns = buffer(xp, "columns", (geo.depth, count), matrix.dtype)
        xp.matmul(matrix, d_matrix.T, out=columns)
        return columns.reshape(window + positions).transpose(3, 4, 5, 0, 1, 2)
    columns = buffer(xp, "columns", (count, geo.depth), matrix.dtype)
    xp.matmul(d_matrix, matrix.T, out=columns)
    return columns.reshape(positions + window)
