"""Depthwise convolution, which gives every channel filters of its own, and separable convolution.

The kernels add up shifted images, one product per element of the window: there is no matrix product in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.convert import add_op
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import Array, KernelContext, OpDef, on_every_device, out_kernel, register
from tfray.framework.tensor_shape import TensorShape
from tfray.ops.broadcast_ops import accumulator_dtype
from tfray.ops.conv_ops import conv2d, conv_attrs, same_conv_attrs
from tfray.ops.convolution import Geometry, geometry
from tfray.ops.shape_ops import host_ints, index_tensor, shape, sizes_from_input
from tfray.ops.tiles import (
    LARGE_ELEMENTS,
    Tile,
    buffer,
    cut,
    cut_tiles,
    run_tiles,
    threads_for,
    tile_bytes,
)
from tfray.ops.windows import WindowAttrs, as_nhwc, image_shape, static_image_sizes

_ATTRS: Final = ("strides", "padding", "explicit_paddings", "data_format", "dilations")


# -- computation ---------------------------------------------------------------------------------------


def _geometry(ctx: KernelContext, images_shape: tuple[int, ...], filters_shape: tuple[int, ...]) -> Geometry:
    """Sizes, with ``filters`` the channels of the outputs: those of the images times the multiplier."""
    geo = geometry(tuple(images_shape), tuple(filters_shape), WindowAttrs.read(ctx.attr))
    return geo._replace(filters=geo.channels * geo.filters)


def _check_d_outputs(d_outputs: Array, geo: Geometry) -> None:
    if d_outputs.shape != geo.outputs_shape:
        raise InvalidArgumentError(
            f"depthwise convolution: the gradient of the outputs has shape {d_outputs.shape}, "
            f"expected {geo.outputs_shape}"
        )


def _rows_of_filters(xp: Any, filters: Array, geo: Geometry, dtype: Any) -> Array:
    """The filters repeated along a row of outputs, [height, width, columns, outputs]: one long run to multiply by."""
    height, width = filters.shape[:2]
    shape = (height, width, geo.width.steps, geo.filters)
    return xp.array(xp.broadcast_to(filters.reshape(height, width, 1, geo.filters), shape), dtype)


def _whole_images(xp: Any, geo: Geometry, dtype: Any) -> tuple[list[Tile], int]:
    """Tiles of whole images, and how many to compute at once."""
    elements = geo.batch * geo.height.steps * geo.width.steps * geo.filters
    threads = min(threads_for(xp, elements >= LARGE_ELEMENTS), max(geo.batch, 1))
    row_bytes = max(1, geo.width.steps * geo.filters * dtype.itemsize * 4)
    count = len(cut_tiles(geo.batch, 1, geo.height.steps * row_bytes, tile_bytes(xp), threads))
    return [Tile(images, slice(0, geo.height.steps)) for images in cut(geo.batch, count)], threads


def _padded_sizes(geo: Geometry) -> tuple[int, int]:
    height, width = (
        max((axis.steps - 1) * axis.stride + axis.extent, axis.before + axis.size) for axis in (geo.height, geo.width)
    )
    return height, width


def _interior(geo: Geometry) -> tuple[slice, slice]:
    height, width = (slice(axis.before, axis.before + axis.size) for axis in (geo.height, geo.width))
    return height, width


def _padded(xp: Any, images: Array, geo: Geometry, tile: Tile, dtype: Any) -> Array:
    """Images (NHWC view) with their padding, every channel repeated for its filters: [n, rows, columns, outputs]."""
    multiplier = geo.filters // geo.channels
    shape = (tile.batch, *_padded_sizes(geo), geo.channels, multiplier)
    padded = buffer(xp, "padded", shape, dtype)
    if geo.height.is_padded or geo.width.is_padded:
        padded[...] = 0
    rows, columns = _interior(geo)
    padded[:, rows, columns] = images[tile.images][..., None]
    return padded.reshape(*shape[:3], geo.filters)


def _strips(padded: Array, geo: Geometry) -> Iterator[tuple[int, int, Array]]:
    """For each element (i, j) of the window, the part of padded images that all windows see there."""
    height, width = geo.height, geo.width
    for i in range(height.window):
        top = i * height.dilation
        rows = padded[:, top : top + (height.steps - 1) * height.stride + 1 : height.stride]
        for j in range(width.window):
            left = j * width.dilation
            yield i, j, rows[:, :, left : left + (width.steps - 1) * width.stride + 1 : width.stride]


def _forward(xp: Any, images: Array, filters: Array, geo: Geometry, out: Array | None) -> Array:
    if out is None:
        out = xp.empty(geo.outputs_shape, images.dtype)
    if 0 in out.shape:
        return out
    dtype = accumulator_dtype(images.dtype)
    rows_of_filters = _rows_of_filters(xp, filters, geo, dtype)
    tiles, threads = _whole_images(xp, geo, dtype)
    images, outputs = as_nhwc(images, geo.layout), as_nhwc(out, geo.layout)

    def work(index: int) -> None:
        part = tiles[index].of(outputs)
        total = buffer(xp, "total", part.shape, dtype)
        product = buffer(xp, "product", part.shape, dtype)
        total[...] = 0
        for i, j, strip in _strips(_padded(xp, images, geo, tiles[index], dtype), geo):
            xp.multiply(strip, rows_of_filters[i, j], out=product)
            xp.add(total, product, out=total)
        part[...] = total

    run_tiles(work, len(tiles), threads)
    return out


def _backward_images(xp: Any, d_outputs: Array, filters: Array, geo: Geometry, out: Array | None) -> Array:
    if out is None:
        out = xp.empty(geo.images_shape, d_outputs.dtype)
    if 0 in out.shape or geo.filters == 0:
        out[...] = 0
        return out
    dtype = accumulator_dtype(d_outputs.dtype)
    rows_of_filters = _rows_of_filters(xp, filters, geo, dtype)
    tiles, threads = _whole_images(xp, geo, dtype)
    d_outputs, d_images = as_nhwc(d_outputs, geo.layout), as_nhwc(out, geo.layout)

    def work(index: int) -> None:
        part = tiles[index].of(d_outputs).astype(dtype, copy=False)
        product = buffer(xp, "product", part.shape, dtype)
        padded = buffer(xp, "padded", (tiles[index].batch, *_padded_sizes(geo), geo.filters), dtype)
        padded[...] = 0
        for i, j, strip in _strips(padded, geo):
            xp.multiply(part, rows_of_filters[i, j], out=product)
            xp.add(strip, product, out=strip)
        rows, columns = _interior(geo)
        inside = padded[:, rows, columns]
        d_images[tiles[index].images] = inside.reshape(*inside.shape[:3], geo.channels, -1).sum(axis=-1)

    run_tiles(work, len(tiles), threads)
    return out


def _backward_filters(xp: Any, images: Array, d_outputs: Array, geo: Geometry, out: Array | None) -> Array:
    window = (geo.height.window, geo.width.window)
    if out is None:
        multiplier = geo.filters // geo.channels if geo.channels else 0
        out = xp.empty((*window, geo.channels, multiplier), images.dtype)
    dtype = accumulator_dtype(images.dtype)
    tiles, threads = _whole_images(xp, geo, dtype) if geo.filters else ([], 1)
    # One sum per thread, added up in order: the result does not depend on who was faster.
    shares = cut(len(tiles), min(threads, len(tiles)))
    sums = xp.zeros((max(len(shares), 1), *window, geo.width.steps, geo.filters), dtype)
    images, d_outputs = as_nhwc(images, geo.layout), as_nhwc(d_outputs, geo.layout)

    def work(index: int) -> None:
        for tile in tiles[shares[index]]:
            part = tile.of(d_outputs).astype(dtype, copy=False)
            product = buffer(xp, "product", part.shape, dtype)
            for i, j, strip in _strips(_padded(xp, images, geo, tile, dtype), geo):
                xp.multiply(strip, part, out=product)
                sums[index, i, j] += product.sum(axis=(0, 1))

    run_tiles(work, len(shares), threads)
    out[...] = sums.sum(axis=(0, 3)).reshape(out.shape)
    return out


# -- operations ----------------------------------------------------------------------------------------


def depthwise_conv2d_native(
    input: Any,
    filter: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """Convolve every channel with filters of its own.

    Args:
        input: ``[batch, height, width, channels]``, or the same in the order of `data_format`; a float dtype.
        filter: ``[height, width, channels, multiplier]``.
        strides: As for `conv2d`.
        padding: As for `conv2d`.
        data_format: ``"NHWC"`` or ``"NCHW"``.
        dilations: As for `conv2d`.
        name: Name of the operation.

    Returns:
        ``[batch, out height, out width, channels * multiplier]``: output ``c * multiplier + m`` is channel `c`
        convolved with ``filter[:, :, c, m]``.

    Raises:
        InvalidArgumentError: Shapes that do not meet, or malformed arguments.
    """
    attrs = conv_attrs("depthwise_conv2d_native", strides, padding, data_format, dilations)
    return add_op(DEPTHWISE_CONV2D, input, filter, name=name, **attrs)


def _depthwise_kernel(ctx: KernelContext, images: Array, filters: Array, out: Array | None = None) -> Array:
    return _forward(ctx.xp, images, filters, _geometry(ctx, images.shape, filters.shape), out)


def _depthwise_shape(op: Operation) -> list[TensorShape]:
    attrs = WindowAttrs.read(op.attr)
    batch, height, width, channels = static_image_sizes(op.inputs[0].shape, attrs.layout)
    window_height, window_width, taken, multiplier = op.inputs[1].shape.with_rank(4).sizes
    if None not in (channels, taken) and channels != taken:
        raise ValueError(f"the images have {channels} channels in layout {attrs.layout}, the filters take {taken}")
    channels = taken if channels is None else channels
    outputs = None if channels is None or multiplier is None else channels * multiplier
    out_height, out_width = attrs.counts((height, width), (window_height, window_width))
    return [TensorShape(image_shape(batch, out_height, out_width, outputs, attrs.layout))]


def _depthwise_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    images, filters = op.inputs
    attrs = same_conv_attrs(op)
    return [
        add_op(DEPTHWISE_CONV2D_BACKPROP_INPUT, shape(images), filters, d_output, **attrs),
        add_op(DEPTHWISE_CONV2D_BACKPROP_FILTER, images, shape(filters), d_output, **attrs),
    ]


DEPTHWISE_CONV2D = register(
    OpDef(
        name="DepthwiseConv2dNative",
        inputs=("input: T", "filter: T"),
        outputs=("output: T",),
        attrs=_ATTRS,
        types={"T": dtypes.FLOATS},
        shape=_depthwise_shape,
        kernels=on_every_device(out_kernel(_depthwise_kernel)),
        gradient=_depthwise_gradient,
    )
)


def depthwise_conv2d_native_backprop_input(
    input_sizes: Any,
    filter: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """Compute the gradient of `depthwise_conv2d_native` with respect to its images.

    Args:
        input_sizes: Shape of the images, an integer vector.
        filter: As for `depthwise_conv2d_native`, as are the remaining arguments.
        out_backprop: Gradient of the outputs, of their shape.
        strides: See there.
        padding: See there.
        data_format: See there.
        dilations: See there.
        name: Name of the operation.

    Returns:
        Shape `input_sizes`.
    """
    attrs = conv_attrs("depthwise_conv2d_native_backprop_input", strides, padding, data_format, dilations)
    sizes = index_tensor(input_sizes)
    return add_op(DEPTHWISE_CONV2D_BACKPROP_INPUT, sizes, filter, out_backprop, name=name, **attrs)


def _depthwise_backprop_input_kernel(
    ctx: KernelContext, sizes: Array, filters: Array, d_outputs: Array, out: Array | None = None
) -> Array:
    geo = _geometry(ctx, tuple(host_ints(ctx, sizes)), filters.shape)
    _check_d_outputs(d_outputs, geo)
    return _backward_images(ctx.xp, d_outputs, filters, geo, out)


def _depthwise_backprop_input_shape(op: Operation) -> list[TensorShape]:
    layout = op.attr("data_format")
    batch = static_image_sizes(op.inputs[2].shape, layout)[0]
    channels = op.inputs[1].shape.with_rank(4).sizes[2]
    return [sizes_from_input(op, 0).merge_with(image_shape(batch, None, None, channels, layout))]


def _depthwise_backprop_input_gradient(op: Operation, d_images: Tensor) -> list[Tensor | None]:
    _, filters, d_outputs = op.inputs
    attrs = same_conv_attrs(op)
    return [
        None,
        add_op(DEPTHWISE_CONV2D_BACKPROP_FILTER, d_images, shape(filters), d_outputs, **attrs),
        add_op(DEPTHWISE_CONV2D, d_images, filters, **attrs),
    ]


DEPTHWISE_CONV2D_BACKPROP_INPUT = register(
    OpDef(
        name="DepthwiseConv2dNativeBackpropInput",
        inputs=("input_sizes: I", "filter: T", "out_backprop: T"),
        outputs=("output: T",),
        attrs=_ATTRS,
        types={"T": dtypes.FLOATS, "I": dtypes.INDICES},
        shape=_depthwise_backprop_input_shape,
        kernels=on_every_device(out_kernel(_depthwise_backprop_input_kernel)),
        gradient=_depthwise_backprop_input_gradient,
    )
)


def depthwise_conv2d_native_backprop_filter(
    input: Any,
    filter_sizes: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """Compute the gradient of `depthwise_conv2d_native` with respect to its filters.

    Args:
        input: The images, as for `depthwise_conv2d_native`, as are the remaining arguments.
        filter_sizes: Shape of the filters, an integer vector.
        out_backprop: Gradient of the outputs, of their shape.
        strides: See there.
        padding: See there.
        data_format: See there.
        dilations: See there.
        name: Name of the operation.

    Returns:
        Shape `filter_sizes`.
    """
    attrs = conv_attrs("depthwise_conv2d_native_backprop_filter", strides, padding, data_format, dilations)
    sizes = index_tensor(filter_sizes)
    return add_op(DEPTHWISE_CONV2D_BACKPROP_FILTER, input, sizes, out_backprop, name=name, **attrs)


def _depthwise_backprop_filter_kernel(
    ctx: KernelContext, images: Array, sizes: Array, d_outputs: Array, out: Array | None = None
) -> Array:
    geo = _geometry(ctx, images.shape, tuple(host_ints(ctx, sizes)))
    _check_d_outputs(d_outputs, geo)
    return _backward_filters(ctx.xp, images, d_outputs, geo, out)


def _depthwise_backprop_filter_shape(op: Operation) -> list[TensorShape]:
    channels = static_image_sizes(op.inputs[0].shape, op.attr("data_format"))[3]
    return [sizes_from_input(op, 1).merge_with([None, None, channels, None])]


def _depthwise_backprop_filter_gradient(op: Operation, d_filters: Tensor) -> list[Tensor | None]:
    images, _, d_outputs = op.inputs
    attrs = same_conv_attrs(op)
    return [
        add_op(DEPTHWISE_CONV2D_BACKPROP_INPUT, shape(images), d_filters, d_outputs, **attrs),
        None,
        add_op(DEPTHWISE_CONV2D, images, d_filters, **attrs),
    ]


DEPTHWISE_CONV2D_BACKPROP_FILTER = register(
    OpDef(
        name="DepthwiseConv2dNativeBackpropFilter",
        inputs=("input: T", "filter_sizes: I", "out_backprop: T"),
        outputs=("output: T",),
        attrs=_ATTRS,
        types={"T": dtypes.FLOATS, "I": dtypes.INDICES},
        shape=_depthwise_backprop_filter_shape,
        kernels=on_every_device(out_kernel(_depthwise_backprop_filter_kernel)),
        gradient=_depthwise_backprop_filter_gradient,
    )
)


def depthwise_conv2d(
    input: Any,
    filter: Any,
    strides: Any,
    padding: Any,
    rate: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Any = None,
) -> Tensor:
    """Convolve every channel with filters of its own: `depthwise_conv2d_native` with a dilation rate.

    Args:
        input: ``[batch, height, width, channels]``, or the same in the order of `data_format`.
        filter: ``[height, width, channels, multiplier]``.
        strides: As for `conv2d`.
        padding: As for `conv2d`.
        rate: Distance between the elements of a window: one integer, or two for height and width.
        name: Name of the operation.
        data_format: ``"NHWC"`` or ``"NCHW"``.
        dilations: Another spelling of `rate`.

    Returns:
        ``[batch, out height, out width, channels * multiplier]``.
    """
    rate = dilations if rate is None else rate
    layout = data_format or "NHWC"
    return depthwise_conv2d_native(input, filter, strides, padding, layout, rate, name or "depthwise")


def separable_conv2d(
    input: Any,
    depthwise_filter: Any,
    pointwise_filter: Any,
    strides: Any,
    padding: Any,
    rate: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Any = None,
) -> Tensor:
    """Convolve every channel by itself, then mix the channels at each position.

    Args:
        input: ``[batch, height, width, channels]``, or the same in the order of `data_format`.
        depthwise_filter: ``[height, width, channels, multiplier]``.
        pointwise_filter: ``[1, 1, channels * multiplier, outputs]``.
        strides: Of the first step, as for `conv2d`.
        padding: Likewise.
        rate: Likewise, as for `depthwise_conv2d`.
        name: Name of the operation.
        data_format: ``"NHWC"`` or ``"NCHW"``.
        dilations: Another spelling of `rate`.

    Returns:
        ``[batch, out height, out width, outputs]``.
    """
    layout = data_format or "NHWC"
    by_channel = depthwise_conv2d(input, depthwise_filter, strides, padding, rate, None, layout, dilations)
    return conv2d(by_channel, pointwise_filter, 1, "VALID", data_format=layout, name=name or "separable_conv2d")
