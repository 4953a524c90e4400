"""Grayscale morphology: the greatest sum, or least difference, of images and a structuring function."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.convert import add_op
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.op_def import Array, KernelContext, OpDef, on_every_device, register
from tfray.framework.shape_functions import like_input
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import Padding, Sizes, TensorLike
from tfray.ops.arrays.layout_ops import reverse
from tfray.ops.kernels.windows import Axis, WindowAttrs, all_axes, padding_attrs, spatial_only
from tfray.ops.math.arithmetic_ops import negative
from tfray.ops.nn.pooling import least

_ATTRS: Final = ("strides", "rates", "padding")


def dilation2d(
    input: TensorLike,
    filter: TensorLike | None = None,
    strides: Sizes | None = None,
    rates: Sizes | None = None,
    padding: Padding | None = None,
    name: str | None = None,
    filters: TensorLike | None = None,
    dilations: Sizes | None = None,
) -> Tensor:
    """Compute the grayscale dilation of images: the greatest sum of pixels and filter in each window.

    Args:
        input: ``[batch, height, width, channels]``, a real dtype.
        filter: ``[height, width, channels]``, the same dtype.
        strides: Distance between windows, ``[1, height, width, 1]``.
        rates: Distance between the elements of a window, in the same form.
        padding: ``"SAME"`` or ``"VALID"``. Padding is never the greatest.
        name: Name of the operation.
        filters: Another spelling of `filter`.
        dilations: Another spelling of `rates`.

    Returns:
        ``[batch, rows, columns, channels]``. The gradient goes to the first greatest sum of a window.

    Raises:
        InvalidArgumentError: Malformed arguments, or shapes that do not meet.
    """
    filter = filters if filter is None else filter
    rates = dilations if rates is None else rates
    return add_op(DILATION2D, input, filter, name=name, **_attrs("dilation2d", strides, rates, padding))


def _attrs(op: str, strides: Sizes | None, rates: Sizes | None, padding: Padding | None) -> dict[str, Any]:
    if strides is None or rates is None or not isinstance(padding, str):
        raise InvalidArgumentError(f"{op}: strides, rates and padding (SAME or VALID) are required")
    attrs = {what: all_axes(op, what, value) for what, value in (("strides", strides), ("rates", rates))}
    for what, values in attrs.items():
        spatial_only(op, what, values, "NHWC")
    return {**attrs, "padding": padding_attrs(op, padding, "NHWC")["padding"]}


def _window_attrs(attr: Callable[[str], Any]) -> WindowAttrs:
    strides, rates, padding = attr("strides"), attr("rates"), attr("padding")
    return WindowAttrs("NHWC", tuple(strides[1:3]), tuple(rates[1:3]), (padding, padding))


def _axes(ctx: KernelContext, images: Array, filters: Array) -> tuple[Axis, Axis]:
    if images.ndim != 4 or filters.ndim != 3 or images.shape[3] != filters.shape[2]:
        raise InvalidArgumentError(
            f"{ctx.op_name}: images {images.shape} and filter {filters.shape}, expected "
            "[batch, height, width, channels] and [height, width, channels]"
        )
    try:
        return _window_attrs(ctx.attr).axes(images.shape[1:3], filters.shape[:2])
    except ValueError as error:
        raise InvalidArgumentError(f"{ctx.op_name}: {error}") from error


def _elements(height: Axis, width: Axis) -> Iterator[tuple[Any, Any, tuple[int, int]]]:
    """For each element of the window in order: the windows that have it within the image, its pixels, its place."""
    for i in range(height.window):
        rows, pixel_rows = height.clipped(i)
        for j in range(width.window):
            columns, pixel_columns = width.clipped(j)
            yield (slice(None), rows, columns), (slice(None), pixel_rows, pixel_columns), (i, j)


def _dilated(ctx: KernelContext, images: Array, filters: Array) -> Array:
    xp, (height, width) = ctx.xp, _axes(ctx, images, filters)
    shape = (len(images), height.steps, width.steps, images.shape[3])
    out = xp.full(shape, least(images.dtype), images.dtype)
    for windows, pixels, place in _elements(height, width):
        out[windows] = xp.maximum(out[windows], images[pixels] + filters[place])
    return out


def _dilated_shape(op: Operation) -> list[TensorShape]:
    batch, height, width, channels = op.inputs[0].shape.with_rank(4).sizes
    filters = op.inputs[1].shape.merge_with([None, None, channels])
    counts = _window_attrs(op.attr).counts((height, width), filters.sizes[:2])
    return [TensorShape([batch, *counts, channels if channels is not None else filters.sizes[2]])]


def _dilation2d_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    attrs = {name: op.attr(name) for name in _ATTRS}
    inputs = (*op.inputs, op.outputs[0], d_output)
    return [add_op(DILATION2D_BACKPROP_INPUT, *inputs, **attrs), add_op(DILATION2D_BACKPROP_FILTER, *inputs, **attrs)]


DILATION2D = register(
    OpDef(
        name="Dilation2D",
        inputs=("input: T", "filter: T"),
        outputs=("output: T",),
        attrs=_ATTRS,
        types={"T": dtypes.REAL},
        shape=_dilated_shape,
        kernels=on_every_device(_dilated),
        gradient=_dilation2d_gradient,
    )
)


def _first_greatest(
    ctx: KernelContext, images: Array, filters: Array, outputs: Array
) -> Iterator[tuple[Any, Any, tuple[int, int], Array]]:
    """As `_elements`, with where each element gives the first greatest sum of its window."""
    xp = ctx.xp
    taken = xp.zeros(outputs.shape, bool)
    for windows, pixels, place in _elements(*_axes(ctx, images, filters)):
        is_first = (images[pixels] + filters[place] == outputs[windows]) & ~taken[windows]
        taken[windows] |= is_first
        yield windows, pixels, place, is_first


def _backprop_input_kernel(
    ctx: KernelContext, images: Array, filters: Array, outputs: Array, d_outputs: Array
) -> Array:
    d_images = ctx.xp.zeros(images.shape, images.dtype)
    for windows, pixels, _, is_first in _first_greatest(ctx, images, filters, outputs):
        d_images[pixels] += d_outputs[windows] * is_first
    return d_images


def _backprop_filter_kernel(
    ctx: KernelContext, images: Array, filters: Array, outputs: Array, d_outputs: Array
) -> Array:
    d_filters = ctx.xp.zeros(filters.shape, filters.dtype)
    for windows, _, place, is_first in _first_greatest(ctx, images, filters, outputs):
        d_filters[place] = (d_outputs[windows] * is_first).sum(axis=(0, 1, 2))
    return d_filters


_BACKPROP_INPUTS: Final = ("input: T", "filter: T", "output: T", "out_backprop: T")
DILATION2D_BACKPROP_INPUT = register(
    OpDef(
        name="Dilation2DBackpropInput",
        inputs=_BACKPROP_INPUTS,
        outputs=("in_backprop: T",),
        attrs=_ATTRS,
        types={"T": dtypes.FLOATS},
        shape=like_input(0),
        kernels=on_every_device(_backprop_input_kernel),
    )
)
DILATION2D_BACKPROP_FILTER = register(
    OpDef(
        name="Dilation2DBackpropFilter",
        inputs=_BACKPROP_INPUTS,
        outputs=("filter_backprop: T",),
        attrs=_ATTRS,
        types={"T": dtypes.FLOATS},
        shape=like_input(1),
        kernels=on_every_device(_backprop_filter_kernel),
    )
)


def erosion2d(
    value: TensorLike,
    kernel: TensorLike | None = None,
    strides: Sizes | None = None,
    rates: Sizes | None = None,
    padding: Padding | None = None,
    name: str | None = None,
) -> Tensor:
    """Compute the grayscale erosion of images: the least difference of pixels and mirrored filter in each window.

    Args:
        value: The images, ``[batch, height, width, channels]``, a real dtype.
        kernel: The filter, ``[height, width, channels]``, the same dtype.
        strides: As for `dilation2d`.
        rates: As for `dilation2d`.
        padding: As for `dilation2d`.
        name: Name scope of the operations.

    Returns:
        ``[batch, out height, out width, channels]``.
    """
    with get_default_graph().name_scope(name or "erosion2d"):
        if kernel is None:
            raise InvalidArgumentError("erosion2d: kernel is required")
        return negative(dilation2d(negative(value), reverse(kernel, [0, 1]), strides, rates, padding))
