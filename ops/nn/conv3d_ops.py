"""Convolution of volumes and its two gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tfray.errors import ArgumentError, InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.convert import add_op
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import Array, ArrayModule, KernelContext, NumpyDType, OpDef, on_every_device, register
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import Padding, Sizes, TensorLike
from tfray.ops.arrays.shape_ops import host_ints, index_tensor, sizes_from_input
from tfray.ops.nn.conv_ops import LinearInBoth, either
from tfray.ops.nn.volumes import (
    Volume,
    VolumeAttrs,
    checked_volume_layout,
    convolve_volumes,
    filters_gradient,
    per_volume_axis,
    volume,
    volume_shape,
    volume_sizes,
    volumes_gradient,
)

_ATTRS: Final = ("strides", "padding", "data_format", "dilations")
_CONV3D: Final = LinearInBoth("Conv3D", "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2", _ATTRS)


def _attrs(
    op: str, strides: Sizes | None, padding: Padding | None, data_format: str | None, dilations: Sizes | None
) -> dict[str, Any]:
    layout = checked_volume_layout(op, data_format)
    if strides is None or not isinstance(padding, str) or padding.upper() not in ("SAME", "VALID"):
        raise ArgumentError(f"{op}: strides and padding (SAME or VALID) are required, got {strides!r} and {padding!r}")
    return {
        "strides": per_volume_axis(op, "strides", strides, layout),
        "dilations": per_volume_axis(op, "dilations", 1 if dilations is None else dilations, layout),
        "padding": padding.upper(),
        "data_format": layout,
    }


def _by_slices(volumes: Array, layout: str) -> Array:
    return volumes if layout == "NDHWC" else volumes.transpose(0, 2, 3, 4, 1)


def _in_layout(xp: ArrayModule, volumes: Array, layout: str, dtype: NumpyDType) -> Array:
    volumes = volumes if layout == "NDHWC" else xp.ascontiguousarray(volumes.transpose(0, 4, 1, 2, 3))
    return volumes.astype(dtype, copy=False)


def _volume(ctx: KernelContext, sizes: Sequence[int], filters: Sequence[int]) -> Volume:
    return volume(tuple(sizes), tuple(filters), VolumeAttrs.read(ctx.attr))


def _check_d_outputs(d_outputs: Array, vol: Volume) -> None:
    if d_outputs.shape != vol.outputs:
        raise InvalidArgumentError(
            f"convolution: the gradient of the outputs has sizes {d_outputs.shape} (NDHWC), expected {vol.outputs}"
        )


# -- forward -------------------------------------------------------------------------------------------


def conv3d(
    input: TensorLike,
    filter: TensorLike | None = None,
    strides: Sizes | None = None,
    padding: Padding | None = None,
    data_format: str = "NDHWC",
    dilations: Sizes = (1, 1, 1, 1, 1),
    name: str | None = None,
    filters: TensorLike | None = None,
) -> Tensor:
    """Convolve volumes with filters (cross-correlation: the filters are not mirrored).

    Args:
        input: ``[batch, depth, height, width, channels]``, or ``[batch, channels, depth, height, width]`` for NCDHW;
            a float dtype.
        filter: ``[depth, height, width, channels, outputs]``, the dtype of `input`.
        strides: Distance between windows: 1, 3 (depth, height, width) or 5 integers, in the order of `data_format`.
        padding: ``"SAME"`` or ``"VALID"``.
        data_format: ``"NDHWC"`` or ``"NCDHW"``.
        dilations: Distance between the elements of a window, in the form of `strides`.
        name: Name of the operation.
        filters: Another spelling of `filter`.

    Returns:
        ``[batch, out depth, out height, out width, outputs]``, in the order of `data_format`.

    Raises:
        InvalidArgumentError: Shapes that do not meet, or malformed arguments.

    Examples:
        >>> volumes, filters = tf.ones([1, 3, 3, 3, 1]), tf.ones([3, 3, 3, 1, 2])
        >>> session.run(tf.nn.conv3d(volumes, filters, strides=1, padding="VALID"))
        array([[[[[27., 27.]]]]], dtype=float32)
    """
    filter = either("conv3d", filter, filters, "filter and filters")
    return add_op(CONV3D, input, filter, name=name, **_attrs("conv3d", strides, padding, data_format, dilations))


def _conv3d_kernel(ctx: KernelContext, volumes: Array, filters: Array) -> Array:
    layout = ctx.attr("data_format")
    volumes = _by_slices(volumes, layout)
    vol = _volume(ctx, volumes.shape, filters.shape)
    out = ctx.xp.empty(vol.outputs, volumes.dtype)
    convolve_volumes(ctx.xp, volumes, filters, vol, out)
    return _in_layout(ctx.xp, out, layout, volumes.dtype)


def _conv3d_shape(op: Operation) -> list[TensorShape]:
    attrs = VolumeAttrs.read(op.attr)
    batch, *sizes, channels = volume_sizes(op.inputs[0].shape.with_rank(5).sizes, attrs.layout)
    *window, taken, filters = op.inputs[1].shape.with_rank(5).sizes
    if None not in (channels, taken) and channels != taken:
        raise ValueError(f"the volumes have {channels} channels in layout {attrs.layout}, the filters take {taken}")
    return [volume_shape([batch, *attrs.counts(sizes, window), filters], attrs.layout)]


CONV3D = register(
    OpDef(
        name="Conv3D",
        inputs=("input: T", "filter: T"),
        outputs=("output: T",),
        attrs=_ATTRS,
        types={"T": dtypes.FLOATS},
        shape=_conv3d_shape,
        kernels=on_every_device(_conv3d_kernel),
        gradient=_CONV3D.gradient,
    )
)


# -- gradients -----------------------------------------------------------------------------------------


def conv3d_transpose(
    value: TensorLike | None = None,
    filter: TensorLike | None = None,
    output_shape: TensorLike | None = None,
    strides: Sizes | None = None,
    padding: Padding = "SAME",
    data_format: str = "NDHWC",
    name: str | None = None,
    input: TensorLike | None = None,
    filters: TensorLike | None = None,
    dilations: Sizes | None = None,
) -> Tensor:
    """Compute the transpose of `conv3d`: the gradient of its volumes.

    Args:
        value: ``[batch, depth, height, width, channels]``, in the order of `data_format`.
        filter: ``[depth, height, width, outputs, channels]``.
        output_shape: Shape of the result, an integer vector.
        strides: As for the `conv3d` that maps the result to `value`; 1 when None.
        padding: Likewise.
        data_format: ``"NDHWC"`` or ``"NCDHW"``.
        name: Name of the operation.
        input: Another spelling of `value`.
        filters: Another spelling of `filter`.
        dilations: As `strides`.

    Returns:
        Shape `output_shape`.
    """
    value = either("conv3d_transpose", value, input, "value and input")
    filter = either("conv3d_transpose", filter, filters, "filter and filters")
    attrs = _attrs("conv3d_transpose", 1 if strides is None else strides, padding, data_format, dilations)
    sizes = index_tensor(either("conv3d_transpose", output_shape, None, "output_shape"))
    return add_op(CONV3D_BACKPROP_INPUT, sizes, filter, value, name=name or "conv3d_transpose", **attrs)


def _conv3d_backprop_input_kernel(ctx: KernelContext, sizes: Array, filters: Array, d_outputs: Array) -> Array:
    layout = ctx.attr("data_format")
    vol = _volume(ctx, volume_sizes(host_ints(ctx, sizes), layout), filters.shape)
    d_outputs = _by_slices(d_outputs, layout)
    _check_d_outputs(d_outputs, vol)
    out = ctx.xp.empty(vol.sizes, d_outputs.dtype)
    volumes_gradient(ctx.xp, ctx.xp.ascontiguousarray(d_outputs), filters, vol, out)
    return _in_layout(ctx.xp, out, layout, d_outputs.dtype)


def _conv3d_backprop_input_shape(op: Operation) -> list[TensorShape]:
    layout = op.attr("data_format")
    batch = volume_sizes(op.inputs[2].shape.with_rank(5).sizes, layout)[0]
    filters = op.inputs[1].shape.with_rank(5)
    channels, filtered = filters.sizes[3:]
    op.inputs[2].shape.assert_is_compatible_with(volume_shape([None, None, None, None, filtered], layout))
    return [sizes_from_input(op, 0).merge_with(volume_shape([batch, None, None, None, channels], layout))]


CONV3D_BACKPROP_INPUT = register(
    OpDef(
        name="Conv3DBackpropInputV2",
        inputs=("input_sizes: I", "filter: T", "out_backprop: T"),
        outputs=("output: T",),
        host_inputs=("input_sizes",),
        attrs=_ATTRS,
        types={"T": dtypes.FLOATS, "I": dtypes.INDICES},
        shape=_conv3d_backprop_input_shape,
        kernels=on_every_device(_conv3d_backprop_input_kernel),
        gradient=_CONV3D.gradient_of_images,
    )
)


def conv3d_backprop_filter(
    input: TensorLike,
    filter_sizes: TensorLike,
    out_backprop: TensorLike,
    strides: Sizes,
    padding: Padding,
    data_format: str = "NDHWC",
    dilations: Sizes = (1, 1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """Compute the gradient of `conv3d` with respect to its filters.

    Args:
        input: The volumes, ``[batch, depth, height, width, channels]`` in the order of `data_format`.
        filter_sizes: Shape of the filters, an integer vector.
        out_backprop: Gradient of the outputs, of their shape.
        strides: As for `conv3d`.
        padding: As for `conv3d`.
        data_format: As for `conv3d`.
        dilations: As for `conv3d`.
        name: Name of the operation.

    Returns:
        Shape `filter_sizes`.
    """
    attrs = _attrs("conv3d_backprop_filter", strides, padding, data_format, dilations)
    return add_op(CONV3D_BACKPROP_FILTER, input, index_tensor(filter_sizes), out_backprop, name=name, **attrs)


def _conv3d_backprop_filter_kernel(ctx: KernelContext, volumes: Array, sizes: Array, d_outputs: Array) -> Array:
    xp, layout, filters = ctx.xp, ctx.attr("data_format"), tuple(host_ints(ctx, sizes))
    volumes, d_outputs = _by_slices(volumes, layout), _by_slices(d_outputs, layout)
    vol = _volume(ctx, volumes.shape, filters)
    _check_d_outputs(d_outputs, vol)
    total = filters_gradient(xp, volumes, xp.ascontiguousarray(d_outputs), vol, filters)
    return xp.ascontiguousarray(total).astype(volumes.dtype, copy=False)


def _conv3d_backprop_filter_shape(op: Operation) -> list[TensorShape]:
    layout = op.attr("data_format")
    channels, filters = (volume_sizes(op.inputs[i].shape.with_rank(5).sizes, layout)[4] for i in (0, 2))
    return [sizes_from_input(op, 1).merge_with([None, None, None, channels, filters])]


CONV3D_BACKPROP_FILTER = register(
    OpDef(
        name="Conv3DBackpropFilterV2",
        inputs=("input: T", "filter_sizes: I", "out_backprop: T"),
        outputs=("output: T",),
        host_inputs=("filter_sizes",),
        attrs=_ATTRS,
        types={"T": dtypes.FLOATS, "I": dtypes.INDICES},
        shape=_conv3d_backprop_filter_shape,
        kernels=on_every_device(_conv3d_backprop_filter_kernel),
        gradient=_CONV3D.gradient_of_filters,
    )
)
