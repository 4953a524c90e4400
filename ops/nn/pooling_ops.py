"""Pooling: the greatest or mean element of each window of an image."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from tfray.errors import ArgumentError, InvalidArgumentError, UnimplementedError
from tfray.framework import dtypes
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.dtypes import DTypeLike, as_dtype
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import FLAT, Array, KernelContext, OpDef, on_every_device, out_kernel, register
from tfray.framework.shape_functions import like_input
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import Padding, Sizes, TensorLike
from tfray.ops.arrays.broadcast_ops import accumulator_dtype
from tfray.ops.arrays.join_ops import concat
from tfray.ops.arrays.shape_ops import expand_dims, host_ints, reshape, shape, sizes_from_input, squeeze
from tfray.ops.kernels.copies import fill
from tfray.ops.kernels.tiles import image_buffer
from tfray.ops.kernels.windows import (
    as_nhwc,
    channel_axis,
    checked_layout,
    image_shape,
    padding_attrs,
    per_axis,
    static_image_sizes,
)
from tfray.ops.math.reduction_ops import reduce_max
from tfray.ops.nn import fast_pooling
from tfray.ops.nn.conv_ops import either
from tfray.ops.nn.device import device_kernels
from tfray.ops.nn.pooling import Pooling, element_counts, first_maxima, fold, for_each_part, least, spread, window_attrs

_ATTRS: Final = ("ksize", "strides", "padding", "data_format")


def pool_attrs(
    op: str, ksize: Sizes | None, strides: Sizes | None, padding: Padding | None, data_format: str | None
) -> dict[str, Any]:
    """The attributes of pooling operations. Raises an error that names `op` where an argument is malformed."""
    layout = checked_layout(op, data_format)
    if ksize is None or strides is None or not isinstance(padding, str):
        raise InvalidArgumentError(f"{op}: ksize, strides and padding (SAME or VALID) are required")
    attrs = {what: per_axis(op, what, value, layout) for what, value in (("ksize", ksize), ("strides", strides))}
    for what, values in attrs.items():
        if values[0] != 1 or values[channel_axis(layout)] != 1:
            raise UnimplementedError(
                f"{op}: {what} is {values}: Pooling is not yet supported on the batch dimension, nor channels."
            )
    return {**attrs, "padding": padding_attrs(op, padding, layout)["padding"], "data_format": layout}


def _same_attrs(op: Operation) -> dict[str, Any]:
    return {name: op.attr(name) for name in _ATTRS}


def _pooled_shape(op: Operation) -> list[TensorShape]:
    attrs, window = window_attrs(op.attr)
    batch, height, width, channels = static_image_sizes(op.inputs[0].shape, attrs.layout)
    out_height, out_width = attrs.counts((height, width), window)
    return [TensorShape(image_shape(batch, out_height, out_width, channels, attrs.layout))] * len(op.outputs)


# -- maximum -------------------------------------------------------------------------------------------


def max_pool(
    value: TensorLike | None = None,
    ksize: Sizes | None = None,
    strides: Sizes | None = None,
    padding: Padding | None = None,
    data_format: str | None = "NHWC",
    name: str | None = None,
    input: TensorLike | None = None,
) -> Tensor:
    """Take the greatest element of each window, channel by channel.

    Args:
        value: ``[batch, height, width, channels]``, or the same in the order of `data_format`; a real dtype.
        ksize: Size of the window: 1, 2 (height, width) or 4 integers, in the order of `data_format`. A window over
            channels is 1 elsewhere, its stride is its size, and divides the channels.
        strides: Distance between windows, in the form of `ksize`.
        padding: ``"SAME"`` or ``"VALID"``.
        data_format: ``"NHWC"`` or ``"NCHW"``.
        name: Name of the operation.
        input: Another spelling of `value`.

    Returns:
        ``[batch, out height, out width, channels]``. The gradient goes to the first greatest element of a window. NaN
        is passed over where oneDNN computes, as in TensorFlow, and stays NaN where NumPy does.

    Raises:
        InvalidArgumentError: Malformed arguments, or a window larger than the image.

    Examples:
        >>> images = tf.reshape(tf.range(16.0), [1, 4, 4, 1])
        >>> session.run(tf.nn.max_pool(images, ksize=2, strides=2, padding="VALID"))[0, :, :, 0]
        array([[ 5.,  7.],
               [13., 15.]], dtype=float32)
    """
    value = convert_to_tensor(either("max_pool", value, input, "value and input"))
    if (
        ksize is not None
        and np.size(ksize) == 4
        and np.ravel(ksize)[channel_axis(checked_layout("max_pool", data_format))] > 1
    ):
        return _max_pool_over_depth(value, ksize, strides, checked_layout("max_pool", data_format), name)
    return add_op(MAX_POOL, value, name=name, **pool_attrs("max_pool", ksize, strides, padding, data_format))


def max_pool2d(
    input: TensorLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Padding,
    data_format: str | None = "NHWC",
    name: str | None = None,
) -> Tensor:
    """`max_pool` by its newer signature: `input` has the shape ``[batch, height, width, channels]``."""
    return max_pool(input, ksize, strides, padding, data_format, name)


def _max_pool_over_depth(value: Tensor, ksize: Any, strides: Any, layout: str, name: str | None) -> Tensor:
    """The greatest of each run of channels: the only pooling over channels that TensorFlow has."""
    axis = channel_axis(layout)
    window, steps = (
        per_axis("max_pool", what, given, layout) for what, given in (("ksize", ksize), ("strides", strides))
    )
    depth = window[axis]
    if max(window[:axis] + window[axis + 1 :]) > 1:
        raise UnimplementedError(
            "max_pool supports exactly one of pooling across depth or pooling across width/height."
        )
    if steps[axis] != depth:
        raise UnimplementedError("Depthwise max pooling requires the depth window to equal the depth stride.")
    channels = value.shape.with_rank(4).sizes[axis]
    if channels is not None and channels % depth:
        raise UnimplementedError("Depthwise max pooling requires the depth window to evenly divide the input depth.")
    sizes = shape(value)
    runs = concat([sizes[:axis], [-1, depth], sizes[axis + 1 :]], 0)
    return reduce_max(reshape(value, runs), axis + 1, name=name or "MaxPool")


def _max_pool_kernel(ctx: KernelContext, images: Array, out: Array | None = None, places: Array | None = None) -> Array:
    xp, pool = ctx.xp, Pooling.of(ctx, images.shape)
    if out is None:
        out = xp.empty(pool.outputs_shape, images.dtype)
    if fast_pooling.can_pool(xp, "max", pool, images):
        return fast_pooling.pooled("max", images, pool, out, places if fast_pooling.can_note(pool) else None)
    if device_kernels.can_pool(xp, pool, images):
        device_kernels.max_pool(xp, images, pool, out)
        return out
    images, outputs = as_nhwc(images, pool.layout), as_nhwc(out, pool.layout)
    identity = least(images.dtype)

    def work(part: slice) -> None:
        fold(xp, xp.maximum, images[part], outputs[part], pool, identity)

    for_each_part(xp, pool, images.itemsize, work)
    return out


def _max_pool_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    return [add_op(MAX_POOL_GRAD, op.inputs[0], op.outputs[0], d_output, **_same_attrs(op))]


MAX_POOL = register(
    OpDef(
        name="MaxPool",
        inputs=("input: T",),
        outputs=("output: T",),
        attrs=_ATTRS,
        types={"T": dtypes.REAL},
        shape=_pooled_shape,
        kernels=on_every_device(out_kernel(_max_pool_kernel)),
        gradient=_max_pool_gradient,
    )
)


def _max_pool_grad_kernel(
    ctx: KernelContext,
    images: Array,
    maxima: Array,
    d_outputs: Array,
    out: Array | None = None,
    places: Array | None = None,
) -> Array:
    xp, pool = ctx.xp, Pooling.of(ctx, images.shape)
    pool.check_outputs(maxima, d_outputs)
    if out is None:
        out = xp.empty(images.shape, images.dtype)
    if fast_pooling.can_pool(xp, "max", pool, images, d_outputs):
        noted = places if fast_pooling.can_note(pool) else None
        return fast_pooling.pooled_backward("max", images, d_outputs, pool, out, noted)
    if device_kernels.can_pool(xp, pool, images, maxima, d_outputs):
        device_kernels.max_pool_gradient(xp, images, maxima, d_outputs, pool, out)
        return out
    images, maxima, d_outputs, d_images = (as_nhwc(a, pool.layout) for a in (images, maxima, d_outputs, out))

    def work(part: slice) -> None:
        d_part = d_images[part]
        if not pool.is_tiled:
            fill(d_part, 0)
        for windows, pixels, is_first in first_maxima(xp, images[part], maxima[part], pool):
            d_windows = d_outputs[part][windows]
            if pool.is_tiled:
                xp.multiply(d_windows, is_first, out=d_part[pixels])
            else:
                share = image_buffer(xp, "share", d_windows.shape, pool.layout, out.dtype)
                xp.add(d_part[pixels], xp.multiply(d_windows, is_first, out=share), out=d_part[pixels])

    for_each_part(xp, pool, images.itemsize, work)
    return out


def _max_pool_grad_gradient(op: Operation, d_images: Tensor) -> list[Tensor | None]:
    images, maxima, _ = op.inputs
    return [FLAT, FLAT, add_op(MAX_POOL_GRAD_GRAD, images, maxima, d_images, **_same_attrs(op))]


MAX_POOL_GRAD = register(
    OpDef(
        name="MaxPoolGrad",
        inputs=("orig_input: T", "orig_output: T", "grad: T"),
        outputs=("output: T",),
        attrs=_ATTRS,
        types={"T": dtypes.REAL},
        shape=like_input(0),
        kernels=on_every_device(out_kernel(_max_pool_grad_kernel)),
        gradient=_max_pool_grad_gradient,
    )
)


# The next two stand for the two above when a step needs both (`placement.fuse`): on one device, which decides by the
# sizes of the images alone whether places are noted, and read.


def _max_pool_with_places_kernel(ctx: KernelContext, images: Array, out: Array | None = None) -> list[Array]:
    places = ctx.xp.empty(Pooling.of(ctx, images.shape).outputs_shape, np.uint8)
    return [_max_pool_kernel(ctx, images, out, places), places]


MAX_POOL_WITH_PLACES = register(
    OpDef(
        name="_MaxPoolWithPlaces",
        inputs=("input: T",),
        outputs=("output: T", "places: uint8"),
        attrs=_ATTRS,
        types={"T": dtypes.REAL},
        shape=_pooled_shape,
        kernels=on_every_device(out_kernel(_max_pool_with_places_kernel)),
    )
)


def _max_pool_grad_at_places_kernel(
    ctx: KernelContext, images: Array, maxima: Array, places: Array, d_outputs: Array, out: Array | None = None
) -> Array:
    return _max_pool_grad_kernel(ctx, images, maxima, d_outputs, out, places)


MAX_POOL_GRAD_AT_PLACES = register(
    OpDef(
        name="_MaxPoolGradAtPlaces",
        inputs=("orig_input: T", "orig_output: T", "places: uint8", "grad: T"),
        outputs=("output: T",),
        attrs=_ATTRS,
        types={"T": dtypes.REAL},
        shape=like_input(0),
        kernels=on_every_device(out_kernel(_max_pool_grad_at_places_kernel)),
    )
)


def _max_pool_grad_grad_kernel(
    ctx: KernelContext, images: Array, maxima: Array, d_images: Array, out: Array | None = None
) -> Array:
    xp, pool = ctx.xp, Pooling.of(ctx, images.shape)
    pool.check_outputs(maxima)
    if d_images.shape != images.shape:
        raise InvalidArgumentError(f"max_pool_grad_grad: grad has shape {d_images.shape}, expected {images.shape}")
    if out is None:
        out = xp.empty(maxima.shape, images.dtype)
    images, maxima, d_images, outputs = (as_nhwc(a, pool.layout) for a in (images, maxima, d_images, out))

    def work(part: slice) -> None:
        total = outputs[part]
        fill(total, 0)
        for windows, pixels, is_first in first_maxima(xp, images[part], maxima[part], pool):
            share = image_buffer(xp, "share", is_first.shape, pool.layout, out.dtype)
            xp.add(total[windows], xp.multiply(d_images[part][pixels], is_first, out=share), out=total[windows])

    for_each_part(xp, pool, images.itemsize, work)
    return out


def _max_pool_grad_grad_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    images, maxima, _ = op.inputs
    return [None, None, add_op(MAX_POOL_GRAD, images, maxima, d_output, **_same_attrs(op))]


MAX_POOL_GRAD_GRAD = register(
    OpDef(
        name="MaxPoolGradGrad",
        inputs=("orig_input: T", "orig_output: T", "grad: T"),
        outputs=("output: T",),
        attrs=_ATTRS,
        types={"T": dtypes.REAL},
        shape=like_input(1),
        kernels=on_every_device(out_kernel(_max_pool_grad_grad_kernel)),
        gradient=_max_pool_grad_grad_gradient,
    )
)


class MaxPoolWithArgmax(NamedTuple):
    """What `max_pool_with_argmax` returns."""

    output: Tensor
    argmax: Tensor


def max_pool_with_argmax(
    input: TensorLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Padding,
    data_format: str | None = "NHWC",
    Targmax: DTypeLike | None = None,
    name: str | None = None,
    output_dtype: DTypeLike | None = None,
    include_batch_in_index: bool = False,
) -> MaxPoolWithArgmax:
    """Take the greatest element of each window, and where it stands.

    Args:
        input: ``[batch, height, width, channels]``, a real dtype.
        ksize: As for `max_pool`.
        strides: As for `max_pool`.
        padding: As for `max_pool`.
        data_format: ``"NHWC"``.
        Targmax: Dtype of the positions: int64 (the default) or int32.
        name: Name of the operation.
        output_dtype: Another spelling of `Targmax`.
        include_batch_in_index: Count positions from the first image instead of from each one's own.

    Returns:
        The maxima and, of the same shape, their positions ``(y * width + x) * channels + channel``.

    Raises:
        InvalidArgumentError: Malformed arguments, or the layout NCHW.
    """
    attrs = pool_attrs("max_pool_with_argmax", ksize, strides, padding, data_format)
    if attrs["data_format"] != "NHWC":
        raise InvalidArgumentError("max_pool_with_argmax: data_format must be NHWC")
    index_dtype = as_dtype(Targmax or output_dtype or dtypes.int64)
    attrs.update(Targmax=index_dtype, include_batch_in_index=include_batch_in_index)
    return MaxPoolWithArgmax(*add_op(MAX_POOL_WITH_ARGMAX, input, name=name, **attrs))


def _max_pool_with_argmax_kernel(ctx: KernelContext, images: Array) -> list[Array]:
    xp, pool = ctx.xp, Pooling.of(ctx, images.shape)
    maxima = _max_pool_kernel(ctx, images)
    positions = xp.arange(images[:1].size, dtype=ctx.output_dtype(1)).reshape(images[:1].shape)
    if ctx.attr("include_batch_in_index"):
        first = xp.arange(pool.batch, dtype=ctx.output_dtype(1)) * images[:1].size
        positions = positions + first.reshape(-1, 1, 1, 1)
    argmax = xp.zeros(maxima.shape, ctx.output_dtype(1))
    for windows, pixels, is_first in first_maxima(xp, images, maxima, pool):
        argmax[windows] += positions[(slice(None), *pixels[1:])] * is_first
    return [maxima, argmax]


def _max_pool_with_argmax_gradient(op: Operation, d_maxima: Tensor | None, _: Any) -> list[Tensor | None]:
    if d_maxima is None:
        return [None]
    return [add_op(MAX_POOL_GRAD, op.inputs[0], op.outputs[0], d_maxima, **_same_attrs(op))]


MAX_POOL_WITH_ARGMAX = register(
    OpDef(
        name="MaxPoolWithArgmax",
        inputs=("input: T",),
        outputs=("output: T", "argmax: Targmax"),
        attrs=(*_ATTRS, "include_batch_in_index"),
        types={"T": dtypes.REAL, "Targmax": dtypes.INDICES},
        shape=_pooled_shape,
        kernels=on_every_device(_max_pool_with_argmax_kernel),
        gradient=_max_pool_with_argmax_gradient,
    )
)


# -- mean ----------------------------------------------------------------------------------------------


def avg_pool(
    value: TensorLike | None = None,
    ksize: Sizes | None = None,
    strides: Sizes | None = None,
    padding: Padding | None = None,
    data_format: str | None = "NHWC",
    name: str | None = None,
    input: TensorLike | None = None,
) -> Tensor:
    """Take the mean of each window, channel by channel. Padding does not count.

    Args:
        value: ``[batch, height, width, channels]``, or the same in the order of `data_format`; a float dtype.
        ksize: Size of the window: 1, 2 (height, width) or 4 integers, in the order of `data_format`.
        strides: Distance between windows, in the form of `ksize`.
        padding: ``"SAME"`` or ``"VALID"``.
        data_format: ``"NHWC"`` or ``"NCHW"``.
        name: Name of the operation.
        input: Another spelling of `value`.

    Returns:
        ``[batch, out height, out width, channels]``.

    Raises:
        InvalidArgumentError: Malformed arguments, or a window larger than the image.

    Examples:
        >>> images = tf.reshape(tf.range(16.0), [1, 4, 4, 1])
        >>> session.run(tf.nn.avg_pool(images, ksize=2, strides=2, padding="VALID"))[0, :, :, 0]
        array([[ 2.5,  4.5],
               [10.5, 12.5]], dtype=float32)
    """
    value = either("avg_pool", value, input, "value and input")
    return add_op(AVG_POOL, value, name=name, **pool_attrs("avg_pool", ksize, strides, padding, data_format))


def _avg_pool_kernel(ctx: KernelContext, images: Array, out: Array | None = None) -> Array:
    xp, pool = ctx.xp, Pooling.of(ctx, images.shape)
    if out is None:
        out = xp.empty(pool.outputs_shape, images.dtype)
    if fast_pooling.can_pool(xp, "mean", pool, images):
        return fast_pooling.pooled("mean", images, pool, out)
    dtype = accumulator_dtype(images.dtype)
    counts = element_counts(xp, pool, dtype)
    images, outputs = as_nhwc(images, pool.layout), as_nhwc(out, pool.layout)

    def work(part: slice) -> None:
        means = outputs[part]
        total = means if out.dtype == dtype else image_buffer(xp, "total", means.shape, pool.layout, dtype)
        fold(xp, xp.add, images[part].astype(dtype, copy=False), total, pool, 0)
        xp.divide(total, counts, out=total)
        if total is not means:
            means[...] = total

    for_each_part(xp, pool, images.itemsize, work)
    return out


def _avg_pool_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    return [add_op(AVG_POOL_GRAD, shape(op.inputs[0]), d_output, **_same_attrs(op))]


AVG_POOL = register(
    OpDef(
        name="AvgPool",
        inputs=("value: T",),
        outputs=("output: T",),
        attrs=_ATTRS,
        types={"T": dtypes.FLOATS},
        shape=_pooled_shape,
        kernels=on_every_device(out_kernel(_avg_pool_kernel)),
        gradient=_avg_pool_gradient,
    )
)


def _avg_pool_grad_kernel(ctx: KernelContext, sizes: Array, d_outputs: Array, out: Array | None = None) -> Array:
    xp, pool = ctx.xp, Pooling.of(ctx, tuple(host_ints(ctx, sizes)))
    pool.check_outputs(d_outputs)
    if out is None:
        out = xp.empty(pool.images_shape, d_outputs.dtype)
    if fast_pooling.can_pool(xp, "mean", pool, d_outputs):
        return fast_pooling.pooled_backward("mean", out, d_outputs, pool, out)
    dtype = accumulator_dtype(d_outputs.dtype)
    counts = element_counts(xp, pool, dtype)
    d_outputs, d_images = as_nhwc(d_outputs, pool.layout), as_nhwc(out, pool.layout)

    def work(part: slice) -> None:
        shares = image_buffer(xp, "shares", d_outputs[part].shape, pool.layout, dtype)
        xp.divide(d_outputs[part], counts, out=shares)
        spread(xp, shares, d_images[part], pool)

    for_each_part(xp, pool, out.itemsize, work)
    return out


def _avg_pool_grad_shape(op: Operation) -> list[TensorShape]:
    layout = op.attr("data_format")
    batch, _, _, channels = static_image_sizes(op.inputs[1].shape, layout)
    return [sizes_from_input(op, 0).merge_with(image_shape(batch, None, None, channels, layout))]


def _avg_pool_grad_gradient(op: Operation, d_images: Tensor) -> list[Tensor | None]:
    return [None, add_op(AVG_POOL, d_images, **_same_attrs(op))]


AVG_POOL_GRAD = register(
    OpDef(
        name="AvgPoolGrad",
        inputs=("orig_input_shape: I", "grad: T"),
        outputs=("output: T",),
        host_inputs=("orig_input_shape",),
        attrs=_ATTRS,
        types={"T": dtypes.FLOATS, "I": dtypes.INDICES},
        shape=_avg_pool_grad_shape,
        kernels=on_every_device(out_kernel(_avg_pool_grad_kernel)),
        gradient=_avg_pool_grad_gradient,
    )
)


# -- in other words ------------------------------------------------------------------------------------


def pool(
    input: TensorLike,
    window_shape: Sequence[int],
    pooling_type: str,
    padding: Padding,
    dilation_rate: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Sequence[int] | None = None,
) -> Tensor:
    """Pool sequences (rank 3) or images (rank 4).

    Args:
        input: ``[batch, width, channels]`` or ``[batch, height, width, channels]``, in the order of `data_format`.
        window_shape: Size of the window, one integer per spatial axis.
        pooling_type: ``"MAX"`` or ``"AVG"``.
        padding: ``"SAME"`` or ``"VALID"``.
        dilation_rate: 1 along every axis.
        strides: Distance between windows, in the form of `window_shape`; 1 when None.
        name: Name of the operation.
        data_format: ``NWC``, ``NCW``, ``NHWC`` or ``NCHW``.
        dilations: Another spelling of `dilation_rate`.

    Raises:
        InvalidArgumentError: Another pooling type, another rank, or windows with gaps.
    """
    functions = {"MAX": max_pool, "AVG": avg_pool}
    if pooling_type not in functions:
        raise InvalidArgumentError(f"pool: pooling_type is {pooling_type!r}, expected MAX or AVG")
    if any(rate != 1 for rate in (dilation_rate or dilations or [])):
        raise InvalidArgumentError("pool: windows with gaps (dilation_rate above 1) cannot be pooled")
    value, window = convert_to_tensor(input), list(window_shape)
    strides = [1] * len(window) if strides is None else list(strides)
    if len(window) == 1:
        return _pool_sequences(functions[pooling_type], value, window, strides, padding, data_format, name)
    return functions[pooling_type](value, window, strides, padding, data_format or "NHWC", name)


def max_pool1d(
    input: TensorLike, ksize: Sizes, strides: Sizes, padding: Padding, data_format: str = "NWC", name: str | None = None
) -> Tensor:
    """Take the greatest element of each window of a sequence (see `max_pool`).

    Args:
        input: ``[batch, width, channels]``, or ``[batch, channels, width]`` for NCW.
        ksize: Size of the window: one integer, or three in the order of `data_format`.
        strides: Distance between windows, in the form of `ksize`.
        padding: ``"SAME"`` or ``"VALID"``.
        data_format: ``"NWC"`` or ``"NCW"``.
        name: Name of the operation.

    Returns:
        ``[batch, out width, channels]``, in the order of `data_format`.
    """
    return _pool_sequences(max_pool, convert_to_tensor(input), ksize, strides, padding, data_format, name)


def avg_pool1d(
    input: TensorLike, ksize: Sizes, strides: Sizes, padding: Padding, data_format: str = "NWC", name: str | None = None
) -> Tensor:
    """Take the mean of each window of a sequence (see `avg_pool`).

    Args:
        input: ``[batch, width, channels]``, or ``[batch, channels, width]`` for NCW.
        ksize: Size of the window: one integer, or three in the order of `data_format`.
        strides: Distance between windows, in the form of `ksize`.
        padding: ``"SAME"`` or ``"VALID"``.
        data_format: ``"NWC"`` or ``"NCW"``.
        name: Name of the operation.

    Returns:
        ``[batch, out width, channels]``, in the order of `data_format`.
    """
    return _pool_sequences(avg_pool, convert_to_tensor(input), ksize, strides, padding, data_format, name)


def _pool_sequences(
    function: Callable[..., Tensor],
    value: Tensor,
    ksize: Sizes,
    strides: Sizes,
    padding: Padding,
    data_format: str | None,
    name: str | None,
) -> Tensor:
    layout = {"NWC": "NHWC", "NCW": "NCHW"}.get(data_format or "NWC")
    if layout is None:
        raise InvalidArgumentError(f"pooling of sequences: data_format is {data_format!r}, expected NWC or NCW")
    axis = 1 if layout == "NHWC" else 2
    window, stride = (_width_of(what, size, axis) for what, size in (("ksize", ksize), ("strides", strides)))
    images = expand_dims(value, axis)
    return squeeze(function(images, [1, window], [1, stride], padding, layout), [axis], name)


def _width_of(what: str, value: Sizes, axis: int) -> int:
    values = [int(item) for item in np.ravel(value)]
    if len(values) not in (1, 3) or np.ndim(value) > 1:
        raise ArgumentError(f"pooling of sequences: {what} is {value!r}, expected 1 or 3 integers")
    return values[0] if len(values) == 1 else values[axis]
