"""Rotating, moving and projecting images: every pixel of the result is taken from a place of the image."""

from __future__ import annotations

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.tensor_shape import ShapeLike, as_shape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays import array_ops
from tfray.ops.arrays.gather_ops import gather_nd
from tfray.ops.math import linalg_ops, math_ops
from tfray.ops.math.rounding_ops import clip_by_value
from tfray.ops.math.transcendental_ops import cos, sin


def transform(
    images: TensorLike,
    transforms: TensorLike,
    interpolation: str = "NEAREST",
    output_shape: ShapeLike | Tensor | None = None,
    name: str | None = None,
) -> Tensor:
    """Take the pixel ``(x, y)`` of the result from ``((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k)``.

    What lies outside of an image is 0. Only the images have gradients. They are exact; TensorFlow's are approximate.

    Args:
        images: Shape ``[batch, height, width, channels]``, ``[height, width, channels]`` or ``[height, width]``, of a
            number dtype.
        transforms: ``[a0, a1, a2, b0, b1, b2, c0, c1]``, or one such row for each image, float32;
            ``k = c0 x + c1 y + 1``.
        interpolation: ``NEAREST`` takes the nearest pixel, ``BILINEAR`` the mean of four by their distances.
        output_shape: ``[height, width]`` of the result; those of the images when None.
        name: Name of the operations.

    Returns:
        Images of the same rank, shape ``[batch, *output_shape, channels]`` for four dimensions, and the same dtype.

    Raises:
        InvalidArgumentError: Images or transforms have another rank, or there is no such interpolation.
    """
    with get_default_graph().name_scope(name or "transform"):
        images = convert_to_tensor(images, name="images")
        rank = images.shape.rank
        if rank not in (2, 3, 4):
            raise InvalidArgumentError(f"transform: images should have rank between 2 and 4, not {images.shape}")
        if interpolation.upper() not in ("NEAREST", "BILINEAR"):
            raise InvalidArgumentError(f"transform: interpolation is {interpolation!r}, expected NEAREST or BILINEAR")
        batch = images
        if rank == 2:
            batch = array_ops.reshape(images, array_ops.concat([[1], array_ops.shape(images), [1]], 0))
        elif rank == 3:
            batch = array_ops.expand_dims(images, 0)
        result = _transformed(batch, _rows(transforms), interpolation.upper(), output_shape)
        return array_ops.squeeze(result, [0, 3] if rank == 2 else [0]) if rank < 4 else result


def _rows(transforms: TensorLike) -> Tensor:
    rows = convert_to_tensor(transforms, dtypes.float32, name="transforms")
    if rows.shape.rank not in (1, 2):
        raise InvalidArgumentError(f"transform: transforms should have rank 1 or 2, not {rows.shape}")
    return array_ops.expand_dims(rows, 0) if rows.shape.rank == 1 else rows


def _transformed(images: Tensor, rows: Tensor, interpolation: str, output_shape: ShapeLike | Tensor | None) -> Tensor:
    size = array_ops.shape(images)
    sizes = size[1:3] if output_shape is None else convert_to_tensor(output_shape, dtypes.int32)
    # In float32 as in TensorFlow, also for images of float64: which of two pixels is nearest may hang on the last bit.
    places, rows = dtypes.float32, array_ops.stop_gradient(rows)
    x = array_ops.reshape(array_ops.cast(array_ops.range(sizes[1]), places), [1, 1, -1])
    y = array_ops.reshape(array_ops.cast(array_ops.range(sizes[0]), places), [1, -1, 1])
    a0, a1, a2, b0, b1, b2, c0, c1 = (
        array_ops.reshape(part, [-1, 1, 1]) for part in array_ops.unstack(array_ops.reshape(rows, [-1, 8]), axis=1)
    )
    depth = c0 * x + c1 * y + 1
    is_there = math_ops.not_equal(depth, 0)
    depth = array_ops.where(is_there, depth, array_ops.ones_like(depth))
    # One transform serves all images.
    every = array_ops.zeros(array_ops.stack([size[0], 1, 1]), places)
    from_x = (a0 * x + a1 * y + a2) / depth + every
    from_y = (b0 * x + b1 * y + b2) / depth + every
    seen = array_ops.cast(is_there, places) + every
    if images.dtype is dtypes.float64:
        from_x, from_y, seen = (array_ops.cast(each, images.dtype) for each in (from_x, from_y, seen))
    if interpolation == "NEAREST":
        # Halves go away from 0, as in C.
        result = _pixels(images, _away(from_y), _away(from_x), seen)
    else:
        result = _between(images, from_y, from_x, seen)
    known = images.shape.as_list()
    if output_shape is not None:
        known[1:3] = [None, None] if isinstance(output_shape, Tensor) else as_shape(output_shape).as_list()
    result.set_shape(known)
    return result


def _away(value: Tensor) -> Tensor:
    return math_ops.sign(value) * math_ops.floor(math_ops.abs(value) + 0.5)


def _pixels(images: Tensor, rows: Tensor, columns: Tensor, seen: Tensor) -> Tensor:
    """The pixels at whole coordinates ``[batch, height, width]``; 0 outside of the images and where `seen` is 0."""
    size = array_ops.shape(images)
    last_row, last_column = (array_ops.cast(size[axis] - 1, rows.dtype) for axis in (1, 2))
    is_inside = math_ops.logical_and(
        math_ops.logical_and(rows >= 0, rows <= last_row), math_ops.logical_and(columns >= 0, columns <= last_column)
    )
    is_inside = math_ops.logical_and(is_inside, seen > 0)
    image = array_ops.reshape(array_ops.range(size[0]), [-1, 1, 1]) + array_ops.zeros_like(rows, dtypes.int32)
    row = array_ops.cast(clip_by_value(rows, 0.0, last_row), dtypes.int32)
    column = array_ops.cast(clip_by_value(columns, 0.0, last_column), dtypes.int32)
    found = gather_nd(images, array_ops.stack([image, row, column], axis=3))
    return found * array_ops.cast(array_ops.expand_dims(is_inside, 3), images.dtype)


def _between(images: Tensor, rows: Tensor, columns: Tensor, seen: Tensor) -> Tensor:
    """Images at coordinates between their pixels: the mean of four by their distances."""
    values, floor_y, floor_x = array_ops.cast(images, rows.dtype), math_ops.floor(rows), math_ops.floor(columns)
    right, down = array_ops.expand_dims(columns - floor_x, 3), array_ops.expand_dims(rows - floor_y, 3)
    upper = (1 - right) * _pixels(values, floor_y, floor_x, seen) + right * _pixels(values, floor_y, floor_x + 1, seen)
    lower = (1 - right) * _pixels(values, floor_y + 1, floor_x, seen) + right * _pixels(
        values, floor_y + 1, floor_x + 1, seen
    )
    return array_ops.cast((1 - down) * upper + down * lower, images.dtype)


def resampler(data: TensorLike, warp: TensorLike, name: str = "resampler") -> Tensor:
    """Values of images at places between their pixels: the mean of four by their distances.

    An image goes on as 0 outside. Images and places have gradients.

    Args:
        data: Images ``[batch, height, width, channels]``, a float dtype.
        warp: Places ``(x, y)``, shape ``[batch, ..., 2]``, of the same dtype: x along the width, y along the height.
        name: Name of the operations.

    Returns:
        Shape ``[batch, ..., channels]``, the same dtype.

    Raises:
        InvalidArgumentError: The ranks or sizes are others.
    """
    with get_default_graph().name_scope(name or "resampler"):
        data = convert_to_tensor(data, name="data")
        warp = convert_to_tensor(warp, data.dtype, name="warp")
        known = data.shape.with_rank_at_most(4).as_list() if data.shape.rank is not None else [None] * 4
        fits = len(known) == 4 and warp.shape.rank not in (0, 1) and warp.shape[-1:].is_compatible_with([2])
        if not fits or not warp.shape[:1].is_compatible_with(known[:1]):
            raise InvalidArgumentError(
                f"resampler: data of shape {data.shape} and warp of {warp.shape}, expected [batch, height, width, "
                "channels] and [batch, ..., 2]"
            )
        places = dtypes.float64 if data.dtype is dtypes.float64 else dtypes.float32
        # Another batch than that of data does not have so many places.
        batch, count = array_ops.shape(data)[0], math_ops.reduce_prod(array_ops.shape(warp)[1:-1])
        points = array_ops.cast(array_ops.reshape(warp, array_ops.stack([batch, 1, count, 2])), places)
        values = _between(data, points[..., 1], points[..., 0], array_ops.ones_like(points[..., 0]))
        sizes = array_ops.concat([array_ops.shape(warp)[:-1], array_ops.shape(data)[3:]], 0)
        result = array_ops.reshape(values, sizes)
        if warp.shape.rank is not None:
            result.set_shape([*warp.shape.as_list()[:-1], known[3]])
        return result


def rotate(images: TensorLike, angles: TensorLike, interpolation: str = "NEAREST", name: str | None = None) -> Tensor:
    """Turn images counterclockwise about their centre.

    Args:
        images: As for `transform`, such as ``[batch, height, width, channels]``.
        angles: In radians: a scalar, or ``[batch]``.
        interpolation: As for `transform`.
        name: Name of the operations.

    Returns:
        Images of the same shape and dtype.
    """
    with get_default_graph().name_scope(name or "rotate"):
        images = convert_to_tensor(images)
        first = 0 if images.shape.rank in (2, 3) else 1
        height, width = (array_ops.cast(array_ops.shape(images)[first + axis], dtypes.float32) for axis in (0, 1))
        return transform(images, angles_to_projective_transforms(angles, height, width), interpolation)


def translate(
    images: TensorLike, translations: TensorLike, interpolation: str = "NEAREST", name: str | None = None
) -> Tensor:
    """Move images.

    Args:
        images: As for `transform`, such as ``[batch, height, width, channels]``.
        translations: ``[right, down]`` in pixels, or ``[batch, 2]``, one such row for each image.
        interpolation: As for `transform`.
        name: Name of the operations.

    Returns:
        Images of the same shape and dtype.
    """
    with get_default_graph().name_scope(name or "translate"):
        return transform(images, translations_to_projective_transforms(translations), interpolation)


def angles_to_projective_transforms(
    angles: TensorLike, image_height: TensorLike, image_width: TensorLike, name: str | None = None
) -> Tensor:
    """The transforms ``[count, 8]`` that turn images of a size by `angles`, a scalar or ``[count]``, in radians."""
    with get_default_graph().name_scope(name or "angles_to_projective_transforms"):
        angles = array_ops.reshape(convert_to_tensor(angles, dtypes.float32), [-1, 1])
        right = array_ops.cast(image_width, dtypes.float32) - 1
        bottom = array_ops.cast(image_height, dtypes.float32) - 1
        cosine, sine, zero = cos(angles), sin(angles), array_ops.zeros_like(angles)
        x_offset = (right - (cosine * right - sine * bottom)) / 2
        y_offset = (bottom - (sine * right + cosine * bottom)) / 2
        return array_ops.concat([cosine, -sine, x_offset, sine, cosine, y_offset, zero, zero], 1)


def translations_to_projective_transforms(translations: TensorLike, name: str | None = None) -> Tensor:
    """The transforms ``[count, 8]`` that move images by rows ``[right, down]``."""
    with get_default_graph().name_scope(name or "translations_to_projective_transforms"):
        moved = array_ops.reshape(convert_to_tensor(translations, dtypes.float32), [-1, 2])
        zero, one = array_ops.zeros_like(moved[:, :1]), array_ops.ones_like(moved[:, :1])
        return array_ops.concat([one, zero, -moved[:, :1], zero, one, -moved[:, 1:], zero, zero], 1)


def flat_transforms_to_matrices(transforms: TensorLike) -> Tensor:
    """Transforms as matrices ``[count, 3, 3]``, of which the last element is 1."""
    rows = array_ops.reshape(convert_to_tensor(transforms, dtypes.float32), [-1, 8])
    return array_ops.reshape(array_ops.concat([rows, array_ops.ones_like(rows[:, :1])], 1), [-1, 3, 3])


def matrices_to_flat_transforms(transform_matrices: TensorLike) -> Tensor:
    """Matrices ``[count, 3, 3]`` as transforms ``[count, 8]``, divided by their last element."""
    rows = array_ops.reshape(convert_to_tensor(transform_matrices, dtypes.float32), [-1, 9])
    return (rows / rows[:, 8:])[:, :8]


def compose_transforms(*transforms: TensorLike) -> Tensor:
    """One transform that does what the given ones do, the first one first.

    Args:
        *transforms: Each of shape ``[8]`` or ``[count, 8]``.

    Returns:
        Shape ``[count, 8]``.

    Raises:
        ValueError: There are none.
    """
    if not transforms:
        raise ValueError("compose_transforms: transforms cannot be empty")
    first, *others = (flat_transforms_to_matrices(each) for each in transforms)
    for other in others:
        first = linalg_ops.matmul(first, other)
    return matrices_to_flat_transforms(first)
