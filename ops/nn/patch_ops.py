"""Patches of images: cutting them out, and putting their gradients back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.convert import add_op
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import Array, KernelContext, OpDef, on_every_device, out_kernel, register
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import Padding, Sizes, TensorLike
from tfray.ops.arrays.broadcast_ops import accumulator_dtype
from tfray.ops.arrays.shape_ops import host_ints, shape, sizes_from_input
from tfray.ops.kernels.windows import Axis, WindowAttrs, padding_attrs, per_axis, spatial_only

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
    ksizes = sizes if ksizes is None else ksizes
    if ksizes is None or strides is None or rates is None or padding is None:
        raise InvalidArgumentError("extract_image_patches: ksizes, strides, rates and padding are required")
    given = {"ksizes": ksizes, "strides": strides, "rates": rates}
    for what, sizes in given.items():
        if isinstance(sizes, int) or len(sizes) != 4:
            raise InvalidArgumentError(f"extract_image_patches: {what} is {sizes}, expected four sizes")
    attrs = {what: per_axis("extract_image_patches", what, value, "NHWC") for what, value in given.items()}
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
        patches[...] = 0
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
