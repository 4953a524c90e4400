"""Depthwise convolution, in which every channel has its own filters, and separable convolution.

The kernels need no matrix product: for each element of the window they add the shifted image times that weight.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.op_def import (
    Array,
    ArrayModule,
    KernelContext,
    NumpyDType,
    OpDef,
    on_every_device,
    out_kernel,
    register,
)
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import Padding, Sizes, TensorLike
from tfray.ops.arrays.broadcast_ops import accumulator_dtype
from tfray.ops.arrays.shape_ops import host_ints, index_tensor, shape, sizes_from_input
from tfray.ops.kernels.copies import fill
from tfray.ops.kernels.tiles import (
    LARGE_ELEMENTS,
    Tile,
    buffer,
    cut,
    cut_tiles,
    run_tiles,
    shares_for,
    tile_bytes,
)
from tfray.ops.kernels.windows import WindowAttrs, all_axes, as_nhwc, image_shape, static_image_sizes
from tfray.ops.nn import fast_convolution
from tfray.ops.nn.any_rank_conv_ops import with_space_to_batch
from tfray.ops.nn.conv_geometry import Geometry, geometry, mirrored
from tfray.ops.nn.conv_ops import LinearInBoth, conv2d, conv_attrs
from tfray.ops.nn.convolution import padded_part

_ATTRS: Final = ("strides", "padding", "explicit_paddings", "data_format", "dilations")
_DEPTHWISE: Final = LinearInBoth(
    "DepthwiseConv2dNative",
    "DepthwiseConv2dNativeBackpropInput",
    "DepthwiseConv2dNativeBackpropFilter",
    _ATTRS,
)


# -- computation ---------------------------------------------------------------------------------------


def _geometry(ctx: KernelContext, images_shape: tuple[int, ...], filters_shape: tuple[int, ...]) -> Geometry:
    """Sizes, with ``filters`` the channels of the outputs: those of the images times the multiplier."""
    geo = geometry(tuple(images_shape), tuple(filters_shape), WindowAttrs.read(ctx.attr))
    return geo._replace(filters=geo.channels * geo.filters, groups=max(geo.channels, 1))


def _check_d_outputs(d_outputs: Array, geo: Geometry) -> None:
    if d_outputs.shape != geo.outputs_shape:
        raise InvalidArgumentError(
            f"depthwise convolution: the gradient of the outputs has shape {d_outputs.shape}, "
            f"expected {geo.outputs_shape}"
        )


def _rows_of_filters(xp: ArrayModule, filters: Array, geo: Geometry, dtype: NumpyDType) -> Array:
    """The filters repeated along a row of outputs, [height, width, columns, outputs]: one long run to multiply by."""
    height, width = filters.shape[:2]
    shape = (height, width, geo.width.steps, geo.filters)
    return xp.array(xp.broadcast_to(filters.reshape(height, width, 1, geo.filters), shape), dtype)


def _tiles(xp: ArrayModule, geo: Geometry, dtype: NumpyDType) -> tuple[list[Tile], int]:
    """Tiles of the outputs, and in how many shares to compute them."""
    is_large = geo.batch * geo.height.steps * geo.width.steps * geo.filters >= LARGE_ELEMENTS
    shares = shares_for(xp, is_large)
    row_bytes = geo.width.steps * geo.filters * dtype.itemsize * 4
    return cut_tiles(geo.batch, geo.height.steps, row_bytes, tile_bytes(xp), shares), shares


def _sources(xp: ArrayModule, images: Array, geo: Geometry, tile: Tile, dtype: NumpyDType) -> Array:
    """The pixels under a tile's windows, each channel repeated once per filter: [images, rows, columns, outputs]."""
    part = padded_part(xp, images, geo, tile, dtype)
    if geo.filters == geo.channels and part.strides[2:] == (geo.channels * dtype.itemsize, dtype.itemsize):
        return part
    repeated = buffer(xp, "repeated", (*part.shape, geo.filters // geo.channels), dtype)
    repeated[...] = part[..., None]
    return repeated.reshape(*part.shape[:3], geo.filters)


def _strips(sources: Array, geo: Geometry, rows: int) -> Iterator[tuple[int, int, Array]]:
    """For each element (i, j) of the window, the part of the sources that this element takes over all windows."""
    height, width = geo.height, geo.width
    for i in range(height.window):
        top = i * height.dilation
        strip = sources[:, top : top + (rows - 1) * height.stride + 1 : height.stride]
        for j in range(width.window):
            left = j * width.dilation
            yield i, j, strip[:, :, left : left + (width.steps - 1) * width.stride + 1 : width.stride]


def _windows(sources: Array, geo: Geometry, rows: int) -> Array:
    """A view of all windows for a stride of 1 along rows: [images, rows, height, width, columns * outputs].

    A row of outputs is one run of elements, so that one pass of einsum sums over the window or the outputs.
    """
    image, row, column, item = sources.strides
    run = geo.width.steps * geo.filters
    shape = (len(sources), rows, geo.height.window, geo.width.window, run)
    strides = (image, row * geo.height.stride, row * geo.height.dilation, column * geo.width.dilation, item)
    return np.lib.stride_tricks.as_strided(sources, shape, strides)


def _sum_of_products(xp: ArrayModule, sources: Array, rows_of_filters: Array, geo: Geometry, out: Array) -> None:
    """Write the convolution of a tile's sources to `out`, contiguous, [images, rows, columns, outputs]."""
    batch, rows = out.shape[:2]
    if xp is np and geo.width.stride == 1:
        windows = _windows(sources, geo, rows)
        np.einsum(
            "nyijr,ijr->nyr", windows, rows_of_filters.reshape(windows.shape[2:]), out=out.reshape(batch, rows, -1)
        )
        return
    product = buffer(xp, "product", out.shape, out.dtype)
    fill(out, 0)
    for i, j, strip in _strips(sources, geo, rows):
        xp.multiply(strip, rows_of_filters[i, j], out=product)
        xp.add(out, product, out=out)


def convolve_depthwise(
    xp: ArrayModule, images: Array, filters: Array, geo: Geometry, out: Array | None = None
) -> Array:
    """Convolve each channel of images with filters ``[height, width, channels, multiplier]`` of its own."""
    if out is None:
        out = xp.empty(geo.outputs_shape, images.dtype)
    if fast_convolution.can_convolve(xp, "forward", geo, images, filters):
        return fast_convolution.convolve(images, filters, geo, out)
    dtype = accumulator_dtype(images.dtype)
    rows_of_filters = _rows_of_filters(xp, filters, geo, dtype)
    tiles, shares = _tiles(xp, geo, dtype) if geo.filters else ([], 1)
    images, outputs = as_nhwc(images, geo.layout), as_nhwc(out, geo.layout)

    def work(index: int) -> None:
        part = tiles[index].of(outputs)
        is_direct = part.dtype == dtype and geo.layout == "NHWC"
        total = part if is_direct else buffer(xp, "total", part.shape, dtype)
        _sum_of_products(xp, _sources(xp, images, geo, tiles[index], dtype), rows_of_filters, geo, total)
        if not is_direct:
            part[...] = total

    run_tiles(work, len(tiles), shares > 1)
    return out


def depthwise_backward_images(
    xp: ArrayModule, d_outputs: Array, filters: Array, geo: Geometry, out: Array | None = None
) -> Array:
    """Gradient of the images, of `Geometry.images_shape`."""
    if out is None:
        out = xp.empty(geo.images_shape, d_outputs.dtype)
    if fast_convolution.can_convolve(xp, "images", geo, d_outputs, filters):
        return fast_convolution.convolve_backward_images(d_outputs, filters, geo, out)
    if geo.filters == 0 or geo.batch == 0:
        fill(out, 0)
    elif geo.height.stride == geo.width.stride == 1:
        # The outputs' gradient, convolved with mirrored filters, is the gradient of the repeated channels.
        flipped = xp.ascontiguousarray(filters[::-1, ::-1]).reshape(*filters.shape[:2], geo.filters, 1)
        back = mirrored(geo)._replace(channels=geo.filters, filters=geo.filters, groups=geo.filters)
        d_repeated = convolve_depthwise(xp, d_outputs, flipped, back, out if geo.filters == geo.channels else None)
        if geo.filters != geo.channels:
            _sum_multiples(d_repeated, geo, out)
    else:
        _scatter(xp, d_outputs, filters, geo, out)
    return out


def _sum_multiples(d_repeated: Array, geo: Geometry, out: Array) -> None:
    """Add up what flows to a channel from its filters."""
    d_repeated, d_images = as_nhwc(d_repeated, geo.layout), as_nhwc(out, geo.layout)
    by_channel = d_repeated.reshape(*d_repeated.shape[:3], geo.channels, -1)
    d_images[...] = by_channel.sum(axis=-1, dtype=accumulator_dtype(out.dtype))


def _scatter(xp: ArrayModule, d_outputs: Array, filters: Array, geo: Geometry, out: Array) -> None:
    """Add the windows' gradients up to the gradient of the images, one whole image after the other."""
    dtype = accumulator_dtype(d_outputs.dtype)
    rows_of_filters = _rows_of_filters(xp, filters, geo, dtype)
    sizes = [
        max((axis.steps - 1) * axis.stride + axis.extent, axis.before + axis.size) for axis in (geo.height, geo.width)
    ]
    inside = tuple(slice(axis.before, axis.before + axis.size) for axis in (geo.height, geo.width))
    d_outputs, d_images = as_nhwc(d_outputs, geo.layout), as_nhwc(out, geo.layout)
    images = cut(geo.batch, geo.batch if xp is np else 1)

    def work(index: int) -> None:
        part = d_outputs[images[index]].astype(dtype, copy=False)
        product = buffer(xp, "product", part.shape, dtype)
        padded = buffer(xp, "padded", (len(part), *sizes, geo.filters), dtype)
        fill(padded, 0)
        for i, j, strip in _strips(padded, geo, geo.height.steps):
            xp.multiply(part, rows_of_filters[i, j], out=product)
            xp.add(strip, product, out=strip)
        d_part = padded[:, inside[0], inside[1]]
        d_images[images[index]] = d_part.reshape(*d_part.shape[:3], geo.channels, -1).sum(axis=-1)

    run_tiles(work, len(images), d_outputs.size >= LARGE_ELEMENTS)


def depthwise_backward_filters(
    xp: ArrayModule, images: Array, d_outputs: Array, geo: Geometry, out: Array | None = None
) -> Array:
    """Gradient of the filters, ``[height, width, channels, multiplier]``."""
    window = (geo.height.window, geo.width.window)
    if out is None:
        multiplier = geo.filters // geo.channels if geo.channels else 0
        out = xp.empty((*window, geo.channels, multiplier), images.dtype)
    if fast_convolution.can_convolve(xp, "filters", geo, images, d_outputs):
        return fast_convolution.convolve_backward_filters(images, d_outputs, geo, out)
    dtype = accumulator_dtype(images.dtype)
    tiles, wanted = _tiles(xp, geo, dtype) if geo.filters else ([], 1)
    # One sum per share, added up in a fixed order: the result does not depend on which thread was faster.
    shares = cut(len(tiles), min(wanted, len(tiles)))
    sums = xp.zeros((len(shares), *window, geo.width.steps, geo.filters), dtype)
    images, d_outputs = as_nhwc(images, geo.layout), as_nhwc(d_outputs, geo.layout)

    def work(index: int) -> None:
        for tile in tiles[shares[index]]:
            d_part = tile.of(d_outputs).astype(dtype, copy=False)
            sources = _sources(xp, images, geo, tile, dtype)
            if xp is np and geo.width.stride == 1:
                d_runs = d_part.reshape(*d_part.shape[:2], -1)
                windows = _windows(sources, geo, tile.height)
                sums[index] += np.einsum("nyijr,nyr->ijr", windows, d_runs).reshape(sums.shape[1:])
                continue
            for i, j, strip in _strips(sources, geo, tile.height):
                sums[index, i, j] += _sum_over_rows(xp, strip, d_part)

    run_tiles(work, len(shares), wanted > 1)
    out[...] = sums.sum(axis=(0, 3)).reshape(out.shape)
    return out


def _sum_over_rows(xp: ArrayModule, strip: Array, d_part: Array) -> Array:
    if xp is np:
        return np.einsum("nyxc,nyxc->xc", strip, d_part)
    return (strip * d_part).sum(axis=(0, 1))


# -- operations ----------------------------------------------------------------------------------------


def depthwise_conv2d_native(
    input: TensorLike,
    filter: TensorLike,
    strides: Sizes,
    padding: Padding,
    data_format: str = "NHWC",
    dilations: Sizes | None = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """Convolve every channel with filters of its own.

    Args:
        input: ``[batch, height, width, channels]``, or the same in the order of `data_format`; a float dtype.
        filter: ``[height, width, channels, multiplier]``.
        strides: Distance between windows, four integers in the order of the layout.
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
    strides = all_axes("depthwise_conv2d_native", "strides", strides)
    attrs = conv_attrs("depthwise_conv2d_native", strides, padding, data_format, dilations)
    return add_op(DEPTHWISE_CONV2D, input, filter, name=name, **attrs)


def _depthwise_kernel(ctx: KernelContext, images: Array, filters: Array, out: Array | None = None) -> Array:
    return convolve_depthwise(ctx.xp, images, filters, _geometry(ctx, images.shape, filters.shape), out)


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


DEPTHWISE_CONV2D = register(
    OpDef(
        name="DepthwiseConv2dNative",
        inputs=("input: T", "filter: T"),
        outputs=("output: T",),
        attrs=_ATTRS,
        types={"T": dtypes.FLOATS},
        shape=_depthwise_shape,
        kernels=on_every_device(out_kernel(_depthwise_kernel)),
        gradient=_DEPTHWISE.gradient,
    )
)


def depthwise_conv2d_native_backprop_input(
    input_sizes: TensorLike,
    filter: TensorLike,
    out_backprop: TensorLike,
    strides: Sizes,
    padding: Padding,
    data_format: str = "NHWC",
    dilations: Sizes = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """Compute the gradient of `depthwise_conv2d_native` with respect to its images.

    Args:
        input_sizes: Shape of the images, an integer vector.
        filter: The filters, ``[height, width, channels, multiplier]``.
        out_backprop: Gradient of the outputs, of their shape.
        strides: As for `depthwise_conv2d_native`, as are the remaining arguments.
        padding: See there.
        data_format: See there.
        dilations: See there.
        name: Name of the operation.

    Returns:
        Shape `input_sizes`.
    """
    strides = all_axes("depthwise_conv2d_native_backprop_input", "strides", strides)
    attrs = conv_attrs("depthwise_conv2d_native_backprop_input", strides, padding, data_format, dilations)
    sizes = index_tensor(input_sizes)
    return add_op(DEPTHWISE_CONV2D_BACKPROP_INPUT, sizes, filter, out_backprop, name=name, **attrs)


def _depthwise_backprop_input_kernel(
    ctx: KernelContext, sizes: Array, filters: Array, d_outputs: Array, out: Array | None = None
) -> Array:
    geo = _geometry(ctx, tuple(host_ints(ctx, sizes)), filters.shape)
    _check_d_outputs(d_outputs, geo)
    return depthwise_backward_images(ctx.xp, d_outputs, filters, geo, out)


def _depthwise_backprop_input_shape(op: Operation) -> list[TensorShape]:
    layout = op.attr("data_format")
    batch = static_image_sizes(op.inputs[2].shape, layout)[0]
    channels = op.inputs[1].shape.with_rank(4).sizes[2]
    return [sizes_from_input(op, 0).merge_with(image_shape(batch, None, None, channels, layout))]


DEPTHWISE_CONV2D_BACKPROP_INPUT = register(
    OpDef(
        name="DepthwiseConv2dNativeBackpropInput",
        inputs=("input_sizes: I", "filter: T", "out_backprop: T"),
        outputs=("output: T",),
        host_inputs=("input_sizes",),
        attrs=_ATTRS,
        types={"T": dtypes.FLOATS, "I": dtypes.INDICES},
        shape=_depthwise_backprop_input_shape,
        kernels=on_every_device(out_kernel(_depthwise_backprop_input_kernel)),
        gradient=_DEPTHWISE.gradient_of_images,
    )
)


def depthwise_conv2d_native_backprop_filter(
    input: TensorLike,
    filter_sizes: TensorLike,
    out_backprop: TensorLike,
    strides: Sizes,
    padding: Padding,
    data_format: str = "NHWC",
    dilations: Sizes = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """Compute the gradient of `depthwise_conv2d_native` with respect to its filters.

    Args:
        input: The images, ``[batch, height, width, channels]`` in the order of `data_format`.
        filter_sizes: Shape of the filters, an integer vector.
        out_backprop: Gradient of the outputs, of their shape.
        strides: As for `depthwise_conv2d_native`, as are the remaining arguments.
        padding: See there.
        data_format: See there.
        dilations: See there.
        name: Name of the operation.

    Returns:
        Shape `filter_sizes`.
    """
    strides = all_axes("depthwise_conv2d_native_backprop_filter", "strides", strides)
    attrs = conv_attrs("depthwise_conv2d_native_backprop_filter", strides, padding, data_format, dilations)
    sizes = index_tensor(filter_sizes)
    return add_op(DEPTHWISE_CONV2D_BACKPROP_FILTER, input, sizes, out_backprop, name=name, **attrs)


def _depthwise_backprop_filter_kernel(
    ctx: KernelContext, images: Array, sizes: Array, d_outputs: Array, out: Array | None = None
) -> Array:
    geo = _geometry(ctx, images.shape, tuple(host_ints(ctx, sizes)))
    _check_d_outputs(d_outputs, geo)
    return depthwise_backward_filters(ctx.xp, images, d_outputs, geo, out)


def _depthwise_backprop_filter_shape(op: Operation) -> list[TensorShape]:
    channels = static_image_sizes(op.inputs[0].shape, op.attr("data_format"))[3]
    return [sizes_from_input(op, 1).merge_with([None, None, channels, None])]


DEPTHWISE_CONV2D_BACKPROP_FILTER = register(
    OpDef(
        name="DepthwiseConv2dNativeBackpropFilter",
        inputs=("input: T", "filter_sizes: I", "out_backprop: T"),
        outputs=("output: T",),
        host_inputs=("filter_sizes",),
        attrs=_ATTRS,
        types={"T": dtypes.FLOATS, "I": dtypes.INDICES},
        shape=_depthwise_backprop_filter_shape,
        kernels=on_every_device(out_kernel(_depthwise_backprop_filter_kernel)),
        gradient=_DEPTHWISE.gradient_of_filters,
    )
)


def depthwise_conv2d(
    input: TensorLike,
    filter: TensorLike,
    strides: Sizes,
    padding: Padding,
    rate: Sizes | None = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Sizes | None = None,
) -> Tensor:
    """Convolve every channel with filters of its own: `depthwise_conv2d_native` with a dilation rate.

    Args:
        input: ``[batch, height, width, channels]``, or the same in the order of `data_format`.
        filter: ``[height, width, channels, multiplier]``.
        strides: Distance between windows, four integers in the order of the layout.
        padding: As for `conv2d`.
        rate: Distance between the elements of a window: one integer, or two for height and width. With strides
            above 1 each `rate`-th pixel makes an image of its own, in which the strides count (as in TensorFlow):
            output ``q * rate + p`` begins at pixel ``q * stride * rate + p``.
        name: Name of the operation.
        data_format: ``"NHWC"`` or ``"NCHW"``.
        dilations: Another spelling of `rate`.

    Returns:
        ``[batch, out height, out width, channels * multiplier]``.

    Examples:
        >>> images, filters = tf.ones([1, 2, 2, 2]), tf.ones([2, 2, 2, 3])
        >>> session.run(tf.nn.depthwise_conv2d(images, filters, [1, 1, 1, 1], "VALID"))
        array([[[[4., 4., 4., 4., 4., 4.]]]], dtype=float32)
    """
    layout = data_format or "NHWC"
    chosen = dilations if rate is None else rate
    rates = [1, 1] if chosen is None else [chosen] * 2 if isinstance(chosen, int) else list(chosen)
    if len(rates) == 2 and (all(value == 1 for value in rates) or np.all(np.asarray(strides) == 1)):
        return depthwise_conv2d_native(input, filter, strides, padding, layout, rates, name or "depthwise")
    with get_default_graph().name_scope(name or "depthwise"):
        filter = convert_to_tensor(filter, name="filter_in")
        return with_space_to_batch(
            input,
            rates,
            padding,
            lambda images, _, padding: depthwise_conv2d_native(images, filter, strides, padding, layout),
            shape(filter),
            data_format=layout,
        )


def separable_conv2d(
    input: TensorLike,
    depthwise_filter: TensorLike,
    pointwise_filter: TensorLike,
    strides: Sizes,
    padding: Padding,
    rate: Sizes | None = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Sizes | None = None,
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
    pointwise_filter = convert_to_tensor(pointwise_filter)
    pointwise_filter.shape.with_rank(4)[:2].assert_is_compatible_with([1, 1])
    by_channel = depthwise_conv2d(
        input,
        depthwise_filter,
        strides=strides,
        padding=padding,
        rate=rate,
        name=None,
        data_format=layout,
        dilations=dilations,
    )
    return conv2d(by_channel, pointwise_filter, 1, "VALID", data_format=layout, name=name or "separable_conv2d")
