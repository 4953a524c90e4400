"""Convolution of images, its two gradients, and the functions that are a convolution in other words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tfray.errors import ArgumentError, InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import Array, KernelContext, OpDef, lookup, on_every_device, out_kernel, register
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import Padding, Sizes, TensorLike
from tfray.ops.arrays.shape_ops import expand_dims, host_ints, index_tensor, shape, sizes_from_input, squeeze
from tfray.ops.kernels.windows import (
    WindowAttrs,
    checked_layout,
    image_shape,
    padding_attrs,
    per_axis,
    spatial_only,
    static_image_sizes,
)
from tfray.ops.nn.conv_geometry import Geometry, geometry
from tfray.ops.nn.convolution import (
    convolve,
    convolve_backward_filters,
    convolve_backward_images,
    convolve_biased,
)

_ATTRS: Final = ("strides", "padding", "explicit_paddings", "data_format", "dilations")


def conv_attrs(
    op: str, strides: Sizes | None, padding: Padding | None, data_format: str | None, dilations: Sizes | None
) -> dict[str, Any]:
    """The attributes of a convolution from TensorFlow's arguments.

    Args:
        op: Name for error messages.
        strides: 1, 2 or 4 integers; None for 1.
        padding: ``SAME``, ``VALID`` or four pairs.
        data_format: ``NHWC``, ``NCHW``, or None for the former.
        dilations: 1, 2 or 4 integers; None for 1.
    """
    layout = checked_layout(op, data_format)
    if padding is None:
        raise ArgumentError(f"{op}: padding is required")
    if isinstance(padding, Tensor):
        raise ArgumentError(f"{op}: padding is {padding!r}, expected SAME, VALID or pairs of numbers")
    attrs = {
        "strides": per_axis(op, "strides", 1 if strides is None else strides, layout),
        "dilations": per_axis(op, "dilations", 1 if dilations is None else dilations, layout),
    }
    for what, values in attrs.items():
        spatial_only(op, what, values, layout)
    return {**attrs, **padding_attrs(op, padding, layout), "data_format": layout}


@dataclass(frozen=True)
class LinearInBoth:
    """A convolution and its two gradients, linear in both of their tensors: the gradient of one is another.

    Attributes:
        outputs: The operation type that makes outputs of images and filters.
        images: The one that makes the gradient of the images.
        filters: The one that makes the gradient of the filters.
        attrs: Names of the attributes that the three have.
    """

    outputs: str
    images: str
    filters: str
    attrs: Sequence[str]

    def _made(self, type: str, op: Operation, *inputs: Tensor) -> Tensor:
        made: Tensor = add_op(lookup(type), *inputs, **{name: op.attr(name) for name in self.attrs})
        return made

    def gradient(self, op: Operation, d_outputs: Tensor) -> list[Tensor | None]:
        """The gradient of `outputs`."""
        images, filters = op.inputs
        d_images = self._made(self.images, op, shape(images), filters, d_outputs)
        return [d_images, self._made(self.filters, op, images, shape(filters), d_outputs)]

    def gradient_of_images(self, op: Operation, d_images: Tensor) -> list[Tensor | None]:
        """The gradient of `images`."""
        _, filters, d_outputs = op.inputs
        d_filters = self._made(self.filters, op, d_images, shape(filters), d_outputs)
        return [None, d_filters, self._made(self.outputs, op, d_images, filters)]

    def gradient_of_filters(self, op: Operation, d_filters: Tensor) -> list[Tensor | None]:
        """The gradient of `filters`."""
        images, _, d_outputs = op.inputs
        d_images = self._made(self.images, op, shape(images), d_filters, d_outputs)
        return [d_images, None, self._made(self.outputs, op, images, d_filters)]


_CONV2D: Final = LinearInBoth("Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter", _ATTRS)


def either(op: str, first: TensorLike | None, second: TensorLike | None, names: str) -> Any:
    """The one of two spellings of an argument that is not None."""
    if (first is None) == (second is None):
        raise InvalidArgumentError(f"{op}: pass exactly one of {names}")
    return second if first is None else first


def _geometry(ctx: KernelContext, images_shape: tuple[int, ...], filters_shape: tuple[int, ...]) -> Geometry:
    return geometry(tuple(images_shape), tuple(filters_shape), WindowAttrs.read(ctx.attr))


def _check_d_outputs(d_outputs: Array, geo: Geometry) -> None:
    if d_outputs.shape != geo.outputs_shape:
        raise InvalidArgumentError(
            f"convolution: the gradient of the outputs has shape {d_outputs.shape}, expected {geo.outputs_shape}"
        )


# -- forward -------------------------------------------------------------------------------------------


def conv2d(
    input: TensorLike,
    filter: TensorLike | None = None,
    strides: Sizes | None = None,
    padding: Padding | None = None,
    use_cudnn_on_gpu: bool = True,
    data_format: str = "NHWC",
    dilations: Sizes | None = (1, 1, 1, 1),
    name: str | None = None,
    filters: TensorLike | None = None,
) -> Tensor:
    """Convolve images with filters (cross-correlation: the filters are not mirrored).

    Args:
        input: ``[batch, height, width, channels]``, or ``[batch, channels, height, width]`` for NCHW; a float dtype.
        filter: ``[height, width, channels, outputs]``, the dtype of `input`.
        strides: Distance between windows: 1, 2 (height, width) or 4 integers, in the order of `data_format`.
        padding: ``"SAME"`` (outputs of ``ceil(size / stride)``), ``"VALID"`` (windows within the image), or four
            pairs (before, after).
        use_cudnn_on_gpu: Accepted for compatibility.
        data_format: ``"NHWC"`` or ``"NCHW"``.
        dilations: Distance between the elements of a window, in the form of `strides`.
        name: Name of the operation.
        filters: Another spelling of `filter`.

    Returns:
        ``[batch, out height, out width, outputs]``, or the same in the order of `data_format`.

    Raises:
        InvalidArgumentError: Shapes that do not meet, or malformed arguments.

    Examples:
        >>> images, filters = tf.ones([1, 3, 3, 1]), tf.ones([2, 2, 1, 1])
        >>> session.run(tf.nn.conv2d(images, filters, strides=1, padding="SAME"))[0, :, :, 0]
        array([[4., 4., 2.],
               [4., 4., 2.],
               [2., 2., 1.]], dtype=float32)
    """
    filter = either("conv2d", filter, filters, "filter and filters")
    return add_op(CONV2D, input, filter, name=name, **conv_attrs("conv2d", strides, padding, data_format, dilations))


def _conv2d_kernel(ctx: KernelContext, images: Array, filters: Array, out: Array | None = None) -> Array:
    return convolve(ctx.xp, images, filters, _geometry(ctx, images.shape, filters.shape), out)


def _conv2d_shape(op: Operation) -> list[TensorShape]:
    attrs = WindowAttrs.read(op.attr)
    batch, height, width, channels = static_image_sizes(op.inputs[0].shape, attrs.layout)
    window_height, window_width, taken, filters = op.inputs[1].shape.with_rank(4).sizes
    if None not in (channels, taken) and channels != taken:
        raise ValueError(f"the images have {channels} channels in layout {attrs.layout}, the filters take {taken}")
    out_height, out_width = attrs.counts((height, width), (window_height, window_width))
    return [TensorShape(image_shape(batch, out_height, out_width, filters, attrs.layout))]


CONV2D = register(
    OpDef(
        name="Conv2D",
        inputs=("input: T", "filter: T"),
        outputs=("output: T",),
        attrs=_ATTRS,
        types={"T": dtypes.FLOATS},
        shape=_conv2d_shape,
        kernels=on_every_device(out_kernel(_conv2d_kernel)),
        gradient=_CONV2D.gradient,
    )
)


def _fused_conv2d_kernel(
    ctx: KernelContext, images: Array, filters: Array, bias: Array, out: Array | None = None
) -> Array:
    geo = _geometry(ctx, images.shape, filters.shape)
    rectified = ctx.attr("fused_ops") == ["BiasAdd", "Relu"]
    return convolve_biased(ctx.xp, images, filters, bias, geo, rectified=rectified, out=out)


FUSED_CONV2D = register(
    OpDef(
        name="_FusedConv2D",  # made of other operations when a step is compiled (`placement.fuse`)
        inputs=("input: T", "filter: T", "args: T"),
        outputs=("output: T",),
        attrs=(*_ATTRS, "fused_ops"),
        types={"T": dtypes.FLOATS},
        shape=_conv2d_shape,
        kernels=on_every_device(out_kernel(_fused_conv2d_kernel)),
    )
)


# -- gradients -----------------------------------------------------------------------------------------


def conv2d_backprop_input(
    input_sizes: TensorLike,
    filter: TensorLike | None = None,
    out_backprop: TensorLike | None = None,
    strides: Sizes | None = None,
    padding: Padding | None = None,
    use_cudnn_on_gpu: bool = True,
    data_format: str = "NHWC",
    dilations: Sizes = (1, 1, 1, 1),
    name: str | None = None,
    filters: TensorLike | None = None,
) -> Tensor:
    """Compute the gradient of `conv2d` with respect to its images.

    Args:
        input_sizes: Shape of the images, an integer vector.
        filter: The filters, ``[height, width, channels, outputs]``.
        out_backprop: Gradient of the outputs, of their shape.
        strides: As for `conv2d`.
        padding: As for `conv2d`.
        use_cudnn_on_gpu: Accepted for compatibility.
        data_format: As for `conv2d`.
        dilations: As for `conv2d`.
        name: Name of the operation.
        filters: Another spelling of `filter`.

    Returns:
        Shape `input_sizes`.
    """
    filter = either("conv2d_backprop_input", filter, filters, "filter and filters")
    attrs = conv_attrs("conv2d_backprop_input", strides, padding, data_format, dilations)
    return add_op(CONV2D_BACKPROP_INPUT, index_tensor(input_sizes), filter, out_backprop, name=name, **attrs)


def _conv2d_backprop_input_kernel(
    ctx: KernelContext, sizes: Array, filters: Array, d_outputs: Array, out: Array | None = None
) -> Array:
    geo = _geometry(ctx, tuple(host_ints(ctx, sizes)), filters.shape)
    _check_d_outputs(d_outputs, geo)
    return convolve_backward_images(ctx.xp, d_outputs, filters, geo, out)


def _conv2d_backprop_input_shape(op: Operation) -> list[TensorShape]:
    layout = op.attr("data_format")
    batch, _, _, given = static_image_sizes(op.inputs[2].shape, layout)
    channels, filters = op.inputs[1].shape.with_rank(4).sizes[2:]
    if None not in (given, filters) and given != filters:
        raise ValueError(f"the gradient of the outputs has {given} channels, the filters give {filters}")
    return [sizes_from_input(op, 0).merge_with(image_shape(batch, None, None, channels, layout))]


CONV2D_BACKPROP_INPUT = register(
    OpDef(
        name="Conv2DBackpropInput",
        inputs=("input_sizes: I", "filter: T", "out_backprop: T"),
        outputs=("output: T",),
        host_inputs=("input_sizes",),
        attrs=_ATTRS,
        types={"T": dtypes.FLOATS, "I": dtypes.INDICES},
        shape=_conv2d_backprop_input_shape,
        kernels=on_every_device(out_kernel(_conv2d_backprop_input_kernel)),
        gradient=_CONV2D.gradient_of_images,
    )
)


def conv2d_backprop_filter(
    input: TensorLike,
    filter_sizes: TensorLike,
    out_backprop: TensorLike,
    strides: Sizes,
    padding: Padding,
    use_cudnn_on_gpu: bool = True,
    data_format: str = "NHWC",
    dilations: Sizes = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """Compute the gradient of `conv2d` with respect to its filters.

    Args:
        input: The images, ``[batch, height, width, channels]`` in the order of `data_format`.
        filter_sizes: Shape of the filters, an integer vector.
        out_backprop: Gradient of the outputs, of their shape.
        strides: As for `conv2d`.
        padding: As for `conv2d`.
        use_cudnn_on_gpu: Accepted for compatibility.
        data_format: As for `conv2d`.
        dilations: As for `conv2d`.
        name: Name of the operation.

    Returns:
        Shape `filter_sizes`.
    """
    attrs = conv_attrs("conv2d_backprop_filter", strides, padding, data_format, dilations)
    return add_op(CONV2D_BACKPROP_FILTER, input, index_tensor(filter_sizes), out_backprop, name=name, **attrs)


def _conv2d_backprop_filter_kernel(
    ctx: KernelContext, images: Array, sizes: Array, d_outputs: Array, out: Array | None = None
) -> Array:
    geo = _geometry(ctx, images.shape, tuple(host_ints(ctx, sizes)))
    _check_d_outputs(d_outputs, geo)
    return convolve_backward_filters(ctx.xp, images, d_outputs, geo, out)


def _conv2d_backprop_filter_shape(op: Operation) -> list[TensorShape]:
    layout = op.attr("data_format")
    channels = static_image_sizes(op.inputs[0].shape, layout)[3]
    filters = static_image_sizes(op.inputs[2].shape, layout)[3]
    return [sizes_from_input(op, 1).merge_with([None, None, channels, filters])]


CONV2D_BACKPROP_FILTER = register(
    OpDef(
        name="Conv2DBackpropFilter",
        inputs=("input: T", "filter_sizes: I", "out_backprop: T"),
        outputs=("output: T",),
        host_inputs=("filter_sizes",),
        attrs=_ATTRS,
        types={"T": dtypes.FLOATS, "I": dtypes.INDICES},
        shape=_conv2d_backprop_filter_shape,
        kernels=on_every_device(out_kernel(_conv2d_backprop_filter_kernel)),
        gradient=_CONV2D.gradient_of_filters,
    )
)


# -- in other words ------------------------------------------------------------------------------------


def conv2d_transpose(
    value: TensorLike | None = None,
    filter: TensorLike | None = None,
    output_shape: TensorLike | None = None,
    strides: Sizes | None = None,
    padding: Padding = "SAME",
    data_format: str = "NHWC",
    name: str | None = None,
    input: TensorLike | None = None,
    filters: TensorLike | None = None,
    dilations: Sizes | None = None,
) -> Tensor:
    """Compute the transpose of `conv2d` (its gradient): what is often called deconvolution.

    Args:
        value: ``[batch, height, width, channels]``, in the order of `data_format`.
        filter: ``[height, width, outputs, channels]``.
        output_shape: Shape of the result, an integer vector.
        strides: As for the `conv2d` that maps the result to `value`.
        padding: Likewise.
        data_format: ``"NHWC"`` or ``"NCHW"``.
        name: Name of the operation.
        input: Another spelling of `value`.
        filters: Another spelling of `filter`.
        dilations: As `strides`.

    Returns:
        Shape `output_shape`.

    Examples:
        >>> images, filters = tf.ones([1, 1, 2, 1]), tf.ones([1, 2, 1, 1])
        >>> session.run(tf.nn.conv2d_transpose(images, filters, [1, 1, 3, 1], strides=1, padding="VALID"))[0, :, :, 0]
        array([[1., 2., 1.]], dtype=float32)
    """
    value = either("conv2d_transpose", value, input, "value and input")
    filter = either("conv2d_transpose", filter, filters, "filter and filters")
    attrs = conv_attrs("conv2d_transpose", strides, padding, data_format, dilations)
    sizes = index_tensor(either("conv2d_transpose", output_shape, None, "output_shape"))
    return add_op(CONV2D_BACKPROP_INPUT, sizes, filter, value, name=name or "conv2d_transpose", **attrs)


def atrous_conv2d(
    value: TensorLike, filters: TensorLike, rate: int, padding: Padding, name: str | None = None
) -> Tensor:
    """Convolve with filters whose elements stand `rate` pixels apart, at stride 1.

    Args:
        value: ``[batch, height, width, channels]``.
        filters: ``[height, width, channels, outputs]``.
        rate: Distance between the elements of a window.
        padding: ``"SAME"`` or ``"VALID"``.
        name: Name of the operation.

    Returns:
        ``[batch, out height, out width, outputs]``.
    """
    if rate is None:
        raise ArgumentError("atrous_conv2d: rate is missing")
    return conv2d(value, filters, 1, padding, dilations=rate, name=name or "atrous_conv2d")


def atrous_conv2d_transpose(
    value: TensorLike,
    filters: TensorLike,
    output_shape: TensorLike,
    rate: int,
    padding: Padding,
    name: str | None = None,
) -> Tensor:
    """Compute the transpose of `atrous_conv2d`.

    Args:
        value: ``[batch, height, width, channels]``.
        filters: ``[height, width, outputs, channels]``.
        output_shape: Shape of the result, an integer vector.
        rate: Distance between the elements of a window.
        padding: ``"SAME"`` or ``"VALID"``.
        name: Name of the operation.

    Returns:
        Shape `output_shape`.
    """
    name = name or "atrous_conv2d_transpose"
    if rate is None:
        raise ArgumentError("atrous_conv2d_transpose: rate is missing")
    return conv2d_transpose(value, filters, output_shape, 1, padding, name=name, dilations=rate)


def conv1d(
    value: TensorLike | None = None,
    filters: TensorLike | None = None,
    stride: Sizes | None = None,
    padding: Padding | None = None,
    use_cudnn_on_gpu: bool | None = None,
    data_format: str | None = None,
    name: str | None = None,
    input: TensorLike | None = None,
    dilations: Sizes | None = None,
) -> Tensor:
    """Convolve sequences with filters.

    Args:
        value: ``[batch, width, channels]``, or ``[batch, channels, width]`` for NCW.
        filters: ``[width, channels, outputs]``.
        stride: Distance between windows, an integer.
        padding: ``"SAME"`` or ``"VALID"``.
        use_cudnn_on_gpu: Accepted for compatibility.
        data_format: ``"NWC"`` (also spelled ``"NHWC"``) or ``"NCW"`` (``"NCHW"``).
        name: Name of the operation.
        input: Another spelling of `value`.
        dilations: Distance between the elements of a window, an integer.

    Returns:
        ``[batch, out width, outputs]``, in the order of `data_format`.

    Examples:
        >>> sequences, filters = tf.reshape([1.0, 2.0, 3.0], [1, 3, 1]), tf.ones([2, 1, 1])
        >>> session.run(tf.nn.conv1d(sequences, filters, stride=1, padding="VALID"))
        array([[[3.],
                [5.]]], dtype=float32)
    """
    value = convert_to_tensor(either("conv1d", value, input, "value and input"))
    layout = {"NWC": "NHWC", "NCW": "NCHW"}.get(data_format or "NWC", data_format)
    axis = 1 if layout == "NHWC" else 2
    along_width = [_width_only(layout, factor) for factor in (stride, dilations)]
    images = expand_dims(value, axis)
    outputs = conv2d(
        images,
        expand_dims(either("conv1d", filters, None, "filters"), 0),
        along_width[0],
        padding,
        data_format=layout or "NHWC",
        dilations=along_width[1],
    )
    return squeeze(outputs, [axis], name or "conv1d")


def _width_only(layout: str | None, factor: Sizes | None) -> list[int]:
    """A stride or dilation of a sequence as one of an image of height 1."""
    values = [1] if factor is None else [int(item) for item in np.ravel(factor)]
    if len(values) not in (1, 3):
        raise ArgumentError(f"conv1d: the stride or dilation is {factor!r}, expected 1 or 3 integers")
    # TensorFlow also takes it with ones for batch and channels around it.
    width = values[0] if len(values) == 1 else values[1 if layout == "NHWC" else 2]
    return [1, 1, width, 1] if layout == "NHWC" else [1, 1, 1, width]


def check_spatial(filter: Tensor, strides: Sizes | None, dilation_rate: Sizes | None) -> None:
    """Raise `InvalidArgumentError` for strides and dilations of `convolution` that do not fit, or not together."""
    axes = None if filter.shape.rank is None else filter.shape.rank - 2
    for what, values in (("strides", strides), ("dilation_rate", dilation_rate)):
        if values is not None and (np.size(values) not in (1, axes) or np.min(values) < 1):
            raise InvalidArgumentError(f"convolution: {what} is {values!r}, expected {axes} integers of at least 1")
    if strides is not None and dilation_rate is not None and min(np.max(strides), np.max(dilation_rate)) > 1:
        raise InvalidArgumentError(
            f"convolution: strides {strides!r} and dilation_rate {dilation_rate!r} cannot both be above 1"
        )


def convolution(
    input: TensorLike,
    filter: TensorLike | None = None,
    padding: Padding | None = None,
    strides: Sizes | None = None,
    dilation_rate: Sizes | None = None,
    name: str | None = None,
    data_format: str | None = None,
    filters: TensorLike | None = None,
    dilations: Sizes | None = None,
) -> Tensor:
    """Convolve sequences (rank 3) or images (rank 4), as `conv1d` and `conv2d`.

    Args:
        input: ``[batch, width, channels]`` or ``[batch, height, width, channels]``, in the order of `data_format`.
        filter: ``[width, channels, outputs]`` or ``[height, width, channels, outputs]``.
        padding: ``"SAME"`` or ``"VALID"``.
        strides: One integer per spatial axis; 1 when None.
        dilation_rate: Likewise.
        name: Name of the operation.
        data_format: ``NWC``, ``NCW``, ``NHWC`` or ``NCHW``.
        filters: Another spelling of `filter`.
        dilations: Another spelling of `dilation_rate`.

    Raises:
        InvalidArgumentError: `filter` has another rank than 3 or 4.
    """
    filter = convert_to_tensor(either("convolution", filter, filters, "filter and filters"))
    dilation_rate = dilations if dilation_rate is None else dilation_rate
    check_spatial(filter, strides, dilation_rate)
    if filter.shape.rank == 3:
        return conv1d(input, filter, strides or 1, padding, None, data_format, name, dilations=dilation_rate)
    if filter.shape.rank != 4:
        raise InvalidArgumentError(f"convolution: the filters have shape {filter.shape}, expected rank 3 or 4")
    layout = data_format or "NHWC"
    return conv2d(input, filter, strides or 1, padding, data_format=layout, dilations=dilation_rate or 1, name=name)
