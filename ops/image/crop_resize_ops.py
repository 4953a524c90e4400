"""Cutting boxes out of images and resizing them to one size, with the gradients."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any, Final, NamedTuple

import numpy as np

from tfray.errors import InvalidArgumentError, OutOfRangeError
from tfray.framework import dtypes
from tfray.framework.arguments import none_is_default
from tfray.framework.convert import add_op
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import Array, ArrayModule, KernelContext, OpDef, on_every_device, register
from tfray.framework.shape_functions import like_input
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.join_ops import int32_tensor
from tfray.ops.arrays.shape_ops import host_ints, known_entries, shape, sizes_from_input

_BOXES: Final = (dtypes.float32, dtypes.float64)


@lru_cache(maxsize=2)
def _sparse_module(name: str) -> Any:
    return import_module("scipy.sparse" if name == "numpy" else "cupyx.scipy.sparse")


class Samples(NamedTuple):
    """Where the pixels of crops lie along one axis of the images. All arrays are ``[boxes, count]``.

    Attributes:
        lower: Index of the pixel before.
        upper: Index of the pixel behind.
        share: Which part of the pixel behind is taken.
        is_inside: Whether the place lies within the image.
        from_first: Weight of a box's first edge in the place.
        reach: Index of the last pixel.
    """

    lower: Array
    upper: Array
    share: Array
    is_inside: Array
    from_first: Array
    reach: int

    @classmethod
    def of(cls, xp: ArrayModule, first: Array, last: Array, size: int, count: int, is_nearest: bool) -> Samples:
        """`count` places from edge `first` to edge `last` of each box, in an image of `size` pixels."""
        steps = xp.arange(count, dtype=first.dtype) / (count - 1) if count > 1 else xp.full(1, 0.5, first.dtype)
        steps = steps.astype(first.dtype, copy=False)
        reach = size - 1
        places = first[:, None] * reach + steps * ((last - first) * reach)[:, None]
        is_inside = (places >= 0) & (places <= reach)
        places = xp.clip(places, 0, reach)
        # Halves round up, as in TensorFlow; NumPy would round them to even.
        lower = xp.floor(places + 0.5) if is_nearest else xp.floor(places)
        upper = lower if is_nearest else xp.ceil(places)
        share = xp.zeros_like(places) if is_nearest else places - lower
        return cls(lower.astype(np.int64), upper.astype(np.int64), share, is_inside, 1 - steps, reach)


class Sampling(NamedTuple):
    """The places of all pixels of the crops, in images flattened to a matrix of pixels."""

    images: Array
    rows: Samples
    columns: Samples
    height: int
    width: int

    @classmethod
    def of(
        cls, ctx: KernelContext, sizes: Sequence[int], boxes: Array, box_ind: Array, crop: Sequence[int]
    ) -> Sampling:
        """For images of shape `sizes` and crops of height and width `crop`."""
        xp, (batch, height, width, _) = ctx.xp, sizes
        if boxes.ndim != 2 or boxes.shape[1] != 4 or box_ind.shape != boxes.shape[:1]:
            raise InvalidArgumentError(
                f"{ctx.op_name}: boxes have shape {boxes.shape} and box_ind {box_ind.shape}, expected [n, 4] and [n]"
            )
        if xp is np and box_ind.size and not 0 <= box_ind.min() <= box_ind.max() < batch:
            raise OutOfRangeError(
                f"{ctx.op_name}: box_ind has entries from {box_ind.min()} to {box_ind.max()}, expected images 0 to "
                f"{batch - 1}"
            )
        if min(height, width, *crop) < 1:
            raise InvalidArgumentError(
                f"{ctx.op_name}: images {tuple(sizes)} and crops {tuple(crop)}: a size is below 1"
            )
        is_nearest = ctx.attr("method") == "nearest"
        rows = Samples.of(xp, boxes[:, 0], boxes[:, 2], height, crop[0], is_nearest)
        columns = Samples.of(xp, boxes[:, 1], boxes[:, 3], width, crop[1], is_nearest)
        return cls(box_ind.astype(np.int64), rows, columns, height, width)

    def pixels(self, lines: Array, columns: Array) -> Array:
        """Indices of pixels, ``[boxes, rows, columns]``."""
        return ((self.images[:, None] * self.height + lines) * self.width)[:, :, None] + columns[:, None, :]

    @property
    def corners(self) -> list[Array]:
        """The four pixels around each place: upper left, upper right, lower left, lower right."""
        return [
            self.pixels(lines, columns)
            for lines in (self.rows.lower, self.rows.upper)
            for columns in (self.columns.lower, self.columns.upper)
        ]

    @property
    def is_inside(self) -> Array:
        """Whether a place lies within the image, ``[boxes, rows, columns]``."""
        return self.rows.is_inside[:, :, None] & self.columns.is_inside[:, None, :]

    def matrix(self, xp: ArrayModule, pixels: int) -> Any:
        """The crops' pixels as weighted sums of the images': a sparse matrix, 0 for places outside."""
        down, across = self.rows.share[:, :, None], self.columns.share[:, None, :]
        weights = [y * x for y in (1 - down, down) for x in (1 - across, across)]
        data = xp.stack(weights, axis=-1) * self.is_inside[..., None]
        indices, count = xp.stack(self.corners, axis=-1), data.size // 4
        starts = xp.arange(0, data.size + 1, 4)
        parts = data.ravel().astype(down.dtype, copy=False), indices.ravel(), starts
        return _sparse_module(xp.__name__).csr_matrix(parts, shape=(count, pixels))


@none_is_default
def crop_and_resize(
    image: TensorLike,
    boxes: TensorLike,
    box_ind: TensorLike | None = None,
    crop_size: TensorLike | None = None,
    method: str = "bilinear",
    extrapolation_value: float = 0,
    name: str | None = None,
    box_indices: TensorLike | None = None,
) -> Tensor:
    """Cut boxes out of images and resize them to one size. Gradients flow to the images and the boxes.

    Args:
        image: ``[batch, height, width, channels]``, a real dtype.
        boxes: ``[boxes, 4]``, float32 (or float64): top, left, bottom, right, where 1 is the last row or column.
            They may reach beyond the image; a bottom above the top turns the crop around.
        box_ind: ``[boxes]``, int32: which image each box is in.
        crop_size: Height and width of the crops, an int32 vector.
        method: ``"bilinear"`` or ``"nearest"``.
        extrapolation_value: Value of pixels beyond the image.
        name: Name of the operation.
        box_indices: Another spelling of `box_ind`.

    Returns:
        ``[boxes, crop height, crop width, channels]``, the dtype of `boxes`.

    Raises:
        InvalidArgumentError: Shapes that do not meet, an unknown method, or (while running) an image that is not
            there.
    """
    if method not in ("bilinear", "nearest"):
        raise InvalidArgumentError(f"crop_and_resize: method is {method!r}, expected 'bilinear' or 'nearest'")
    if crop_size is None:
        raise InvalidArgumentError("crop_and_resize: crop_size is required")
    return add_op(
        CROP_AND_RESIZE,
        image,
        boxes,
        box_indices if box_ind is None else box_ind,
        int32_tensor(crop_size),
        name=name,
        method=method,
        extrapolation_value=float(extrapolation_value),
    )


def _check_images(ctx: KernelContext, images: Array) -> None:
    if images.ndim != 4:
        raise InvalidArgumentError(f"{ctx.op_name}: the images have shape {images.shape}, expected rank 4")


def _crop_and_resize_kernel(ctx: KernelContext, images: Array, boxes: Array, box_ind: Array, crop: Array) -> Array:
    _check_images(ctx, images)
    places = Sampling.of(ctx, images.shape, boxes, box_ind, host_ints(ctx, crop))
    flat = images.reshape(-1, images.shape[3]).astype(boxes.dtype, copy=False)
    is_inside = places.is_inside
    crops = (places.matrix(ctx.xp, len(flat)) @ flat).reshape(*is_inside.shape, images.shape[3])
    crops[~is_inside] = ctx.attr("extrapolation_value")
    return crops


def _crops_shape(op: Operation) -> list[TensorShape]:
    images, boxes = op.inputs[0].shape.with_rank(4), op.inputs[1].shape.merge_with([None, 4])
    boxes = boxes.merge_with([op.inputs[2].shape.with_rank(1).sizes[0], None])
    op.inputs[3].shape.merge_with([2])
    height, width = known_entries(op.inputs[3]) or (None, None)
    return [TensorShape([boxes.sizes[0], height, width, images.sizes[3]])]


def _crop_and_resize_gradient(op: Operation, d_crops: Tensor) -> list[Tensor | None]:
    images, boxes, box_ind, _ = op.inputs
    method = op.attr("method")
    d_images = d_boxes = None
    if images.dtype.is_floating:
        d_images = add_op(
            CROP_AND_RESIZE_GRAD_IMAGE, d_crops, boxes, box_ind, shape(images), T=images.dtype, method=method
        )
    if method == "bilinear":
        d_boxes = add_op(CROP_AND_RESIZE_GRAD_BOXES, d_crops, images, boxes, box_ind, method=method)
    return [d_images, d_boxes, None, None]


CROP_AND_RESIZE = register(
    OpDef(
        name="CropAndResize",
        inputs=("image: T", "boxes: Tb", "box_ind: int32", "crop_size: int32"),
        outputs=("crops: Tb",),
        host_inputs=("crop_size",),
        attrs=("method", "extrapolation_value"),
        types={"T": dtypes.REAL, "Tb": _BOXES},
        shape=_crops_shape,
        kernels=on_every_device(_crop_and_resize_kernel),
        gradient=_crop_and_resize_gradient,
    )
)


def _grad_image_kernel(ctx: KernelContext, d_crops: Array, boxes: Array, box_ind: Array, sizes: Array) -> Array:
    xp, image_sizes = ctx.xp, host_ints(ctx, sizes)
    places = Sampling.of(ctx, image_sizes, boxes, box_ind, d_crops.shape[1:3])
    pixels = image_sizes[0] * image_sizes[1] * image_sizes[2]
    d_flat = places.matrix(xp, pixels).T @ d_crops.reshape(-1, image_sizes[3])
    return d_flat.reshape(image_sizes).astype(ctx.output_dtype(), copy=False)


def _image_shape(op: Operation) -> list[TensorShape]:
    return [sizes_from_input(op, 3).with_rank(4)]


CROP_AND_RESIZE_GRAD_IMAGE = register(
    OpDef(
        name="CropAndResizeGradImage",
        inputs=("grads: Tb", "boxes: Tb", "box_ind: int32", "image_size: int32"),
        outputs=("output: T",),
        host_inputs=("image_size",),
        attrs=("method",),
        types={"T": dtypes.FLOATS, "Tb": _BOXES},
        shape=_image_shape,
        kernels=on_every_device(_grad_image_kernel),
    )
)


def _grad_boxes_kernel(ctx: KernelContext, d_crops: Array, images: Array, boxes: Array, box_ind: Array) -> Array:
    _check_images(ctx, images)
    xp, places = ctx.xp, Sampling.of(ctx, images.shape, boxes, box_ind, d_crops.shape[1:3])
    flat = images.reshape(-1, images.shape[3]).astype(boxes.dtype, copy=False)
    # For each corner pixel: its product with the gradient of the crop, summed over channels.
    upper_left, upper_right, lower_left, lower_right = (
        xp.einsum("nijc,nijc->nij", flat[pixels], d_crops) * places.is_inside for pixels in places.corners
    )
    down, across = places.rows.share[:, :, None], places.columns.share[:, None, :]
    slope_y = (lower_left - upper_left) * (1 - across) + (lower_right - upper_right) * across
    slope_x = (upper_right - upper_left) * (1 - down) + (lower_right - lower_left) * down
    d_rows, d_columns = slope_y.sum(axis=2) * places.rows.reach, slope_x.sum(axis=1) * places.columns.reach
    edges = [
        (d_rows * places.rows.from_first).sum(axis=1),
        (d_columns * places.columns.from_first).sum(axis=1),
        (d_rows * (1 - places.rows.from_first)).sum(axis=1),
        (d_columns * (1 - places.columns.from_first)).sum(axis=1),
    ]
    return xp.stack(edges, axis=1).astype(boxes.dtype, copy=False)


CROP_AND_RESIZE_GRAD_BOXES = register(
    OpDef(
        name="CropAndResizeGradBoxes",
        inputs=("grads: Tb", "image: T", "boxes: Tb", "box_ind: int32"),
        outputs=("output: Tb",),
        attrs=("method",),
        types={"T": dtypes.REAL, "Tb": _BOXES},
        shape=like_input(2),
        kernels=on_every_device(_grad_boxes_kernel),
    )
)
