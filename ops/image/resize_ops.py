"""Resizing of images: bilinear, nearest-neighbour, bicubic and by area."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.constant_value import constant_value
from tfray.framework.convert import add_op
from tfray.framework.dtypes import DTypeLike, as_dtype
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import (
    Array,
    GradientFunction,
    KernelContext,
    NumpyDType,
    OpDef,
    on_every_device,
    out_kernel,
    register,
)
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.join_ops import int32_tensor
from tfray.ops.arrays.shape_ops import host_ints, known_entries, shape
from tfray.ops.kernels.precision import assign
from tfray.ops.kernels.resampling import AxisMap, pick, resample

_WIDE: Final = (dtypes.float32, dtypes.float64)
_ATTRS: Final = ("align_corners", "half_pixel_centers")


def _attrs(align_corners: bool, half_pixel_centers: bool) -> dict[str, Any]:
    if align_corners and half_pixel_centers:
        raise InvalidArgumentError("resize: align_corners and half_pixel_centers exclude each other")
    return {"align_corners": bool(align_corners), "half_pixel_centers": bool(half_pixel_centers)}


def _same_attrs(op: Operation) -> dict[str, Any]:
    return {name: op.attr(name) for name in _ATTRS}


def _resized_shape(op: Operation) -> list[TensorShape]:
    batch, _, _, channels = op.inputs[0].shape.with_rank(4).sizes
    op.inputs[1].shape.merge_with([2])
    size = constant_value(op.inputs[1])
    if size is not None and (size <= 0).any():
        raise ValueError(f"size is {size.tolist()}, expected a positive height and width")
    height, width = known_entries(op.inputs[1]) or (None, None)
    return [TensorShape([batch, height, width, channels])]


def _source_shape(op: Operation) -> list[TensorShape]:
    batch, _, _, channels = op.inputs[0].shape.with_rank(4).sizes
    height, width = known_entries(op.inputs[1]) or (None, None)
    return [TensorShape([batch, height, width, channels])]


def _axes(
    ctx: KernelContext, method: str, sizes: Sequence[int], counts: Sequence[int], is_transposed: bool = False
) -> list[AxisMap]:
    if min(*counts, *sizes) < 1:
        raise InvalidArgumentError(f"resize: from {tuple(sizes)} to {tuple(counts)}, expected sizes of at least 1")
    options = ctx.attr("align_corners"), ctx.attr("half_pixel_centers"), is_transposed
    return [AxisMap(method, size, count, *options) for size, count in zip(sizes, counts, strict=True)]


def _check_images(images: Array) -> None:
    if images.ndim != 4:
        raise InvalidArgumentError(f"resize: the images have shape {images.shape}, expected rank 4")


def _interpolation(name: str, method: str, gradient: GradientFunction) -> OpDef:
    """Definition of a resizing that computes in floats."""

    def kernel(ctx: KernelContext, images: Array, size: Array, out: Array | None = None) -> Array:
        _check_images(images)
        rows, columns = _axes(ctx, method, images.shape[1:3], host_ints(ctx, size))
        return resample(ctx.xp, images, rows, columns, ctx.output_dtype(), out)

    return OpDef(
        name=name,
        inputs=("images: T", "size: int32"),
        outputs=("resized_images: Tout",),
        host_inputs=("size",),
        attrs=_ATTRS,
        types={"T": dtypes.REAL, "Tout": _WIDE},
        shape=_resized_shape,
        kernels=on_every_device(out_kernel(kernel)),
        gradient=gradient,
    )


def _resample_in(
    ctx: KernelContext, images: Array, rows: AxisMap, columns: AxisMap, dtype: NumpyDType, out: Array | None
) -> Array:
    """`resample` in `dtype`, rounded to the output's dtype in the end."""
    if dtype == ctx.output_dtype():
        return resample(ctx.xp, images, rows, columns, dtype, out)
    return assign(ctx.xp, resample(ctx.xp, images, rows, columns, dtype), ctx.output_dtype(), out)


def _interpolation_grad(name: str, method: str, gradient: GradientFunction) -> OpDef:
    """Definition of the gradient of such a resizing: from the resized images and the size before."""

    def kernel(ctx: KernelContext, d_resized: Array, size: Array, out: Array | None = None) -> Array:
        _check_images(d_resized)
        rows, columns = _axes(ctx, method, host_ints(ctx, size), d_resized.shape[1:3], True)
        return _resample_in(ctx, d_resized, rows, columns, d_resized.dtype, out)

    return OpDef(
        name=name,
        inputs=("grads: Tg", "size: int32"),
        outputs=("output: T",),
        host_inputs=("size",),
        attrs=_ATTRS,
        types={"Tg": _WIDE, "T": dtypes.FLOATS},
        shape=_source_shape,
        kernels=on_every_device(out_kernel(kernel)),
        gradient=gradient,
    )


def _resize(
    definition: OpDef,
    images: TensorLike,
    size: TensorLike,
    align_corners: bool,
    half: bool,
    name: str | None,
    dtype: DTypeLike,
) -> Tensor:
    attrs = _attrs(align_corners, half)
    return add_op(definition, images, int32_tensor(size), name=name, Tout=as_dtype(dtype), **attrs)


def _interpolations(name: str, method: str) -> tuple[OpDef, OpDef]:
    """Register a resizing that computes in floats, and its gradient. Each is the other's gradient."""

    def gradient(op: Operation, d_resized: Tensor) -> list[Tensor | None]:
        images = op.inputs[0]
        if not images.dtype.is_floating:
            return [None, None]
        size = shape(images)[1:3]
        return [add_op(backward, d_resized, size, T=images.dtype, **_same_attrs(op)), None]

    def gradient_of_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
        d_resized = op.inputs[0]
        return [add_op(forward, d_output, shape(d_resized)[1:3], Tout=d_resized.dtype, **_same_attrs(op)), None]

    forward = register(_interpolation(name, method, gradient))
    backward = register(_interpolation_grad(f"{name}Grad", method, gradient_of_gradient))
    return forward, backward


# -- bilinear ------------------------------------------------------------------------------------------


def resize_bilinear(
    images: TensorLike,
    size: TensorLike,
    align_corners: bool = False,
    name: str | None = None,
    half_pixel_centers: bool = False,
    dtype: DTypeLike = dtypes.float32,
) -> Tensor:
    """Resize images, each output a mean of the four pixels around it.

    Args:
        images: ``[batch, height, width, channels]``, any real dtype.
        size: New height and width, an int32 vector.
        align_corners: The centres of the corner pixels fall together; otherwise the upper left ones do.
        name: Name of the operation.
        half_pixel_centers: Count pixels from their centres.
        dtype: float32, or float64 for more precision.

    Returns:
        ``[batch, new height, new width, channels]``, float32.

    Raises:
        InvalidArgumentError: `images` has another rank, or a size is below 1.

    Examples:
        >>> images = tf.constant([[[[1.0], [3.0]]]])
        >>> session.run(tf.image.resize_bilinear(images, [1, 4]))[0, :, :, 0]
        array([[1., 2., 3., 3.]], dtype=float32)
    """
    return _resize(RESIZE_BILINEAR, images, size, align_corners, half_pixel_centers, name, dtype)


RESIZE_BILINEAR, RESIZE_BILINEAR_GRAD = _interpolations("ResizeBilinear", "bilinear")


# -- bicubic -------------------------------------------------------------------------------------------


def resize_bicubic(
    images: TensorLike,
    size: TensorLike,
    align_corners: bool = False,
    name: str | None = None,
    half_pixel_centers: bool = False,
    dtype: DTypeLike = dtypes.float32,
) -> Tensor:
    """Resize images by cubic convolution over the sixteen pixels around (arguments as `resize_bilinear`).

    `images` has the shape ``[batch, height, width, channels]``, the result ``[batch, new height, new width,
    channels]``.

    References:
        Keys, Cubic convolution interpolation for digital image processing, IEEE ASSP 29 (1981).
    """
    return _resize(RESIZE_BICUBIC, images, size, align_corners, half_pixel_centers, name, dtype)


RESIZE_BICUBIC, RESIZE_BICUBIC_GRAD = _interpolations("ResizeBicubic", "bicubic")


# -- area ----------------------------------------------------------------------------------------------


def resize_area(
    images: TensorLike,
    size: TensorLike,
    align_corners: bool = False,
    name: str | None = None,
    dtype: DTypeLike = dtypes.float32,
) -> Tensor:
    """Resize images, each output the mean of the area that it covers (arguments as `resize_bilinear`).

    `images` has the shape ``[batch, height, width, channels]``, the result ``[batch, new height, new width,
    channels]``.
    """
    return _resize(RESIZE_AREA, images, size, align_corners, False, name, dtype)


RESIZE_AREA, RESIZE_AREA_GRAD = _interpolations("ResizeArea", "area")


# -- nearest neighbour ---------------------------------------------------------------------------------


def resize_nearest_neighbor(
    images: TensorLike,
    size: TensorLike,
    align_corners: bool = False,
    name: str | None = None,
    half_pixel_centers: bool = False,
) -> Tensor:
    """Resize images, each output the pixel next to it (arguments as `resize_bilinear`).

    Returns:
        ``[batch, new height, new width, channels]``, the dtype of `images`.

    Examples:
        >>> images = tf.constant([[[[1], [3]]]])
        >>> session.run(tf.image.resize_nearest_neighbor(images, [2, 4]))[0, :, :, 0]
        array([[1, 1, 3, 3],
               [1, 1, 3, 3]], dtype=int32)
    """
    attrs = _attrs(align_corners, half_pixel_centers)
    return add_op(RESIZE_NEAREST_NEIGHBOR, images, int32_tensor(size), name=name, **attrs)


def _nearest_kernel(ctx: KernelContext, images: Array, size: Array, out: Array | None = None) -> Array:
    _check_images(images)
    rows, columns = _axes(ctx, "nearest", images.shape[1:3], host_ints(ctx, size))
    return pick(ctx.xp, images, rows.taps(), columns.taps(), out)


def _nearest_gradient(op: Operation, d_resized: Tensor) -> list[Tensor | None]:
    return [resize_nearest_neighbor_grad(d_resized, shape(op.inputs[0])[1:3], **_same_attrs(op)), None]


RESIZE_NEAREST_NEIGHBOR = register(
    OpDef(
        name="ResizeNearestNeighbor",
        inputs=("images: T", "size: int32"),
        outputs=("resized_images: T",),
        host_inputs=("size",),
        attrs=_ATTRS,
        types={"T": dtypes.REAL},
        shape=_resized_shape,
        kernels=on_every_device(out_kernel(_nearest_kernel)),
        gradient=_nearest_gradient,
    )
)


def resize_nearest_neighbor_grad(
    grads: TensorLike,
    size: TensorLike,
    align_corners: bool = False,
    half_pixel_centers: bool = False,
    name: str | None = None,
) -> Tensor:
    """Compute the gradient of `resize_nearest_neighbor`: every pixel gets the sum of its copies.

    Args:
        grads: Gradient of the resized images, ``[batch, new height, new width, channels]``, a float dtype.
        size: Height and width before resizing, an int32 vector.
        align_corners: As for the resizing.
        half_pixel_centers: As for the resizing.
        name: Name of the operation.

    Returns:
        ``[batch, height, width, channels]``.
    """
    attrs = _attrs(align_corners, half_pixel_centers)
    return add_op(RESIZE_NEAREST_NEIGHBOR_GRAD, grads, int32_tensor(size), name=name, **attrs)


def _nearest_grad_kernel(ctx: KernelContext, d_resized: Array, size: Array, out: Array | None = None) -> Array:
    _check_images(d_resized)
    rows, columns = _axes(ctx, "nearest", host_ints(ctx, size), d_resized.shape[1:3], True)
    dtype = d_resized.dtype if d_resized.dtype.itemsize > 2 else dtypes.float32.numpy
    return _resample_in(ctx, d_resized, rows, columns, dtype, out)


def _nearest_grad_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    return [resize_nearest_neighbor(d_output, shape(op.inputs[0])[1:3], **_same_attrs(op)), None]


RESIZE_NEAREST_NEIGHBOR_GRAD = register(
    OpDef(
        name="ResizeNearestNeighborGrad",
        inputs=("grads: T", "size: int32"),
        outputs=("output: T",),
        host_inputs=("size",),
        attrs=_ATTRS,
        types={"T": dtypes.FLOATS},
        shape=_source_shape,
        kernels=on_every_device(out_kernel(_nearest_grad_kernel)),
        gradient=_nearest_grad_gradient,
    )
)
