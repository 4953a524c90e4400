"""Patches of images: cutting them out, and putting their gradients back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.arguments import by_either_name
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import Array, KernelContext, OpDef, on_every_device, out_kernel, register
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import Padding, Sizes, TensorLike
from tfray.ops.arrays.broadcast_ops import accumulator_dtype
from tfray.ops.arrays.construction_ops import range_
from tfray.ops.arrays.gather_ops import gather
from tfray.ops.arrays.join_ops import size_along
from tfray.ops.arrays.layout_ops import pad
from tfray.ops.arrays.shape_ops import (
    expand_dims,
    host_ints,
    index_tensor,
    reshape,
    shape,
    sizes_from_input,
    transpose,
)
from tfray.ops.kernels.copies import fill
from tfray.ops.kernels.windows import Axis, WindowAttrs, all_axes, padding_attrs, spatial_only
from tfray.ops.math.arithmetic_ops import maximum

_ATTRS: Final = ("ksizes", "strides", "rates", "padding")


def extract_image_patches(
    images: TensorLike,
    ksizes: Sizes | None = None,
    strides: Sizes | None = None,
    rates: Sizes | None = None,
    padding: Padding | None = None,
    name: str | None = None,
    sizes: Sizes | None = None,
) -> Tensor:
    """Put the windows of images side by side into the channels.

    Args:
        images: ``[batch, height, width, channels]``, a number dtype.
        ksizes: Size of the windows, ``[1, height, width, 1]``.
        strides: Distance between windows, in the same form.
        rates: Distance between the elements of a window, in the same form.
        padding: ``"SAME"`` or ``"VALID"``; what is beyond the image counts as 0.
        name: Name of the operation.
        sizes: Another spelling of `ksizes`.

    Returns:
        ``[batch, rows, columns, window height * window width * channels]``.

    Raises:
        InvalidArgumentError: Malformed arguments, or a window larger than the image.
    """
    ksizes = by_either_name("extract_image_patches", ksizes=ksizes, sizes=sizes)
    if ksizes is None or strides is None or rates is None or padding is None:
        raise InvalidArgumentError("extract_image_patches: ksizes, strides, rates and padding are required")
    given = {"ksizes": ksizes, "strides": strides, "rates": rates}
    attrs = {what: all_axes("extract_image_patches", what, value) for what, value in given.items()}
    for what, values in attrs.items():
        spatial_only("extract_image_patches", what, values, "NHWC")
    checked = padding_attrs("extract_image_patches", padding, "NHWC")["padding"]
    return add_op(EXTRACT_IMAGE_PATCHES, images, name=name, padding=checked, **attrs)


def _windows(attr: Any) -> tuple[WindowAttrs, tuple[int, int]]:
    (_, height, width, _), strides, rates = attr("ksizes"), attr("strides"), attr("rates")
    padding = attr("padding")
    return WindowAttrs("NHWC", tuple(strides[1:3]), tuple(rates[1:3]), (padding, padding)), (height, width)


def _axes(ctx: KernelContext, sizes: Sequence[int]) -> tuple[Axis, Axis]:
    if len(sizes) != 4:
        raise InvalidArgumentError(f"{ctx.op_name}: the images have shape {tuple(sizes)}, expected rank 4")
    attrs, window = _windows(ctx.attr)
    try:
        return attrs.axes((sizes[1], sizes[2]), window)
    except ValueError as error:
        raise InvalidArgumentError(f"{ctx.op_name}: {error}") from error


def _extract_image_patches_kernel(ctx: KernelContext, images: Array, out: Array | None = None) -> Array:
    height, width = _axes(ctx, images.shape)
    batch, _, _, channels = images.shape
    sizes = (batch, height.steps, width.steps, height.window, width.window, channels)
    if out is None:
        out = ctx.xp.empty((*sizes[:3], height.window * width.window * channels), images.dtype)
    patches = out.reshape(sizes)
    if height.is_padded or width.is_padded:
        fill(patches, 0)
    for i in range(height.window):
        rows, pixel_rows = height.clipped(i)
        for j in range(width.window):
            columns, pixel_columns = width.clipped(j)
            patches[:, rows, columns, i, j] = images[:, pixel_rows, pixel_columns]
    return out


def _patches_shape(op: Operation) -> list[TensorShape]:
    batch, height, width, channels = op.inputs[0].shape.with_rank(4).sizes
    attrs, window = _windows(op.attr)
    depth = None if channels is None else window[0] * window[1] * channels
    return [TensorShape([batch, *attrs.counts((height, width), window), depth])]


def _extract_image_patches_gradient(op: Operation, d_patches: Tensor) -> list[Tensor | None]:
    attrs = {name: op.attr(name) for name in _ATTRS}
    return [add_op(EXTRACT_IMAGE_PATCHES_GRAD, d_patches, shape(op.inputs[0]), **attrs)]


EXTRACT_IMAGE_PATCHES = register(
    OpDef(
        name="ExtractImagePatches",
        inputs=("images: T",),
        outputs=("patches: T",),
        attrs=_ATTRS,
        types={"T": dtypes.NUMERIC},
        shape=_patches_shape,
        kernels=on_every_device(out_kernel(_extract_image_patches_kernel)),
        gradient=_extract_image_patches_gradient,
    )
)


def _patches_grad_kernel(ctx: KernelContext, d_patches: Array, sizes: Array) -> Array:
    image_sizes = host_ints(ctx, sizes)
    height, width = _axes(ctx, image_sizes)
    windows = d_patches.reshape(image_sizes[0], height.steps, width.steps, height.window, width.window, image_sizes[3])
    d_images = ctx.xp.zeros(image_sizes, accumulator_dtype(d_patches.dtype))
    for i in range(height.window):
        rows, pixel_rows = height.clipped(i)
        for j in range(width.window):
            columns, pixel_columns = width.clipped(j)
            d_images[:, pixel_rows, pixel_columns] += windows[:, rows, columns, i, j]
    return d_images.astype(d_patches.dtype, copy=False)


def _patches_grad_shape(op: Operation) -> list[TensorShape]:
    return [sizes_from_input(op, 1).with_rank(4)]


def _patches_grad_gradient(op: Operation, d_images: Tensor) -> list[Tensor | None]:
    return [add_op(EXTRACT_IMAGE_PATCHES, d_images, **{name: op.attr(name) for name in _ATTRS}), None]


EXTRACT_IMAGE_PATCHES_GRAD = register(
    OpDef(
        name="ExtractImagePatchesGrad",
        inputs=("grads: T", "sizes: I"),
        outputs=("output: T",),
        host_inputs=("sizes",),
        attrs=_ATTRS,
        types={"T": dtypes.INEXACT, "I": dtypes.INDICES},
        shape=_patches_grad_shape,
        kernels=on_every_device(_patches_grad_kernel),
        gradient=_patches_grad_gradient,
    )
)


def extract_patches(
    images: TensorLike, sizes: Sizes, strides: Sizes, rates: Sizes, padding: str, name: str | None = None
) -> Tensor:
    """Put the windows of images side by side into the channels (arguments as `extract_image_patches`).

    `images` has the shape ``[batch, height, width, channels]``, the result ``[batch, rows, columns, window height *
    window width * channels]``.
    """
    return extract_image_patches(images, sizes, strides, rates, padding, name)


def extract_volume_patches(
    input: TensorLike, ksizes: Sequence[int], strides: Sequence[int], padding: str, name: str | None = None
) -> Tensor:
    """Put the windows of volumes side by side into the channels.

    Args:
        input: ``[batch, depth, height, width, channels]``, a number dtype.
        ksizes: Size of the windows, ``[1, depth, height, width, 1]``.
        strides: Distance between windows, in the same form.
        padding: ``"SAME"`` or ``"VALID"``; what is beyond the volume counts as 0.
        name: Name of the last operation.

    Returns:
        ``[batch, planes, rows, columns, window depth * window height * window width * channels]``.

    Raises:
        InvalidArgumentError: Malformed arguments.
    """
    for what, values in (("ksizes", ksizes), ("strides", strides)):
        if len(values) != 5 or values[0] != 1 or values[4] != 1 or min(values) < 1:
            raise InvalidArgumentError(
                f"extract_volume_patches: {what} is {values!r}, expected [1, depth, height, width, 1]"
            )
    if padding not in ("SAME", "VALID"):
        raise InvalidArgumentError(f"extract_volume_patches: padding is {padding!r}, expected SAME or VALID")
    volumes = convert_to_tensor(input)
    volumes.set_shape(volumes.shape.with_rank(5))
    counts: list[Any] = []
    frames: list[Any] = [[0, 0]]
    for axis, window, stride in zip((1, 2, 3), ksizes[1:4], strides[1:4], strict=True):
        size = size_along(volumes, axis)
        counts.append((size - window) // stride + 1 if padding == "VALID" else (size + stride - 1) // stride)
        missing = maximum((counts[-1] - 1) * stride + window - size, 0)
        frames.append([missing // 2, missing - missing // 2])
    volumes = pad(volumes, index_tensor([*frames, [0, 0]]))
    for axis, count, window, stride in zip((5, 3, 1), counts[::-1], ksizes[3:0:-1], strides[3:0:-1], strict=True):
        places = expand_dims(range_(count) * stride, 1) + range_(window)
        volumes = gather(volumes, places, axis=(axis + 1) // 2)
    # Windows stand behind their counts now: [batch, planes, depth, rows, height, columns, width, channels].
    patches = transpose(volumes, [0, 1, 3, 5, 2, 4, 6, 7])
    sizes = shape(patches)
    channels = size_along(patches, 7) * math.prod(ksizes)
    return reshape(patches, index_tensor([sizes[0], *counts, channels]), name)
