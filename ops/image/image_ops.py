"""Geometry of images: cropping, padding, flipping, turning and resizing to a given size."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.constant_value import constant_value
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.broadcast_ops import where
from tfray.ops.arrays.join_ops import int32_tensor
from tfray.ops.arrays.layout_ops import pad, reverse
from tfray.ops.arrays.shape_ops import cast, expand_dims, identity, shape, squeeze, transpose
from tfray.ops.arrays.slice_ops import slice_
from tfray.ops.control.control_flow_ops import cond
from tfray.ops.image.resize_ops import resize_area, resize_bicubic, resize_bilinear, resize_nearest_neighbor
from tfray.ops.math.arithmetic_ops import abs as magnitude
from tfray.ops.math.arithmetic_ops import maximum, minimum
from tfray.ops.math.comparison_ops import less
from tfray.ops.math.reduction_ops import reduce_sum
from tfray.ops.math.rounding_ops import floordiv, floormod, rint
from tfray.ops.random.random_ops import random_uniform


class ResizeMethod:
    """How `resize_images` computes new pixels."""

    BILINEAR: Final = 0
    NEAREST_NEIGHBOR: Final = 1
    BICUBIC: Final = 2
    AREA: Final = 3


def image_tensor(op: str, image: TensorLike) -> Tensor:
    """`image` as a tensor of rank 3 (one image), rank 4 (a batch) or unknown rank.

    Raises:
        InvalidArgumentError: Another rank, or an empty height, width or channel dimension.
    """
    image = convert_to_tensor(image, name="image")
    if image.shape.rank not in (None, 3, 4) or 0 in (image.shape.sizes[-3:] if image.shape.rank else ()):
        raise InvalidArgumentError(
            f"{op}: the image has shape {image.shape}, expected [height, width, channels] or "
            "[batch, height, width, channels], none of the last three 0"
        )
    return image


def spatial_sizes(image: Tensor) -> tuple[Any, Any]:
    """Height and width of images of rank 3 or 4: numbers where they are known, tensors otherwise."""
    known = image.shape.sizes[-3:-1] if image.shape.rank else (None, None)
    if None not in known:
        return known[0], known[1]
    actual = shape(image)
    height, width = (actual[axis] if size is None else size for axis, size in zip((-3, -2), known, strict=True))
    return height, width


def _batched(op: str, image: TensorLike, function: Callable[[Tensor], Tensor], known_rank: bool = False) -> Tensor:
    """Apply a function of batches to a batch, or to one image. An image of unknown rank is taken as one.

    Raises:
        InvalidArgumentError: `known_rank` asks for a known rank, as TensorFlow does in some functions, and it is not.
    """
    image = image_tensor(op, image)
    if known_rank and image.shape.rank is None:
        raise InvalidArgumentError(f"{op}: the rank of the image is unknown; use set_shape")
    if image.shape.rank == 4:
        return function(image)
    batch = expand_dims(image, 0)
    batch.set_shape([1, None, None, None])
    return squeeze(function(batch), [0])


def _number(value: Any) -> Any:
    """A known scalar tensor as a number; anything else as it is."""
    known = constant_value(value) if isinstance(value, Tensor) else None
    return value if known is None else known.item()


def _greater(x: Any, y: Any) -> Any:
    return maximum(x, y) if isinstance(x, Tensor) or isinstance(y, Tensor) else max(x, y)


def _smaller(x: Any, y: Any) -> Any:
    return minimum(x, y) if isinstance(x, Tensor) or isinstance(y, Tensor) else min(x, y)


# -- flipping and turning ------------------------------------------------------------------------------


def flip_left_right(image: TensorLike) -> Tensor:
    """Mirror an image, or each of a batch, from left to right.

    `image` has the shape ``[height, width, channels]`` or ``[batch, height, width, channels]``; the result has the same
    shape and dtype.

    Examples:
        >>> image = tf.constant([[[1], [2], [3]]])
        >>> session.run(tf.image.flip_left_right(image))[:, :, 0]
        array([[3, 2, 1]], dtype=int32)
    """
    return _flipped("flip_left_right", image, 1)


def flip_up_down(image: TensorLike) -> Tensor:
    """Mirror an image, or each of a batch, from top to bottom.

    `image` has the shape ``[height, width, channels]`` or ``[batch, height, width, channels]``; the result has the same
    shape and dtype.
    """
    return _flipped("flip_up_down", image, 0)


def _flipped(op: str, image: TensorLike, axis: int) -> Tensor:
    image = image_tensor(op, image)
    return reverse(image, [axis + 1 if image.shape.rank == 4 else axis], op)


def random_flip_left_right(image: TensorLike, seed: int | None = None) -> Tensor:
    """Mirror an image from left to right with a chance of one half, each image of a batch on its own.

    Args:
        image: ``[height, width, channels]`` or ``[batch, height, width, channels]``, any dtype.
        seed: Seed of the operation.

    Returns:
        Same shape and dtype.

    Examples:
        >>> flipped = session.run(tf.image.random_flip_left_right(tf.constant([[[1], [2]]])))
        >>> flipped[0, :, 0].tolist() in ([1, 2], [2, 1])
        True
    """
    return _randomly_flipped("random_flip_left_right", image, 1, seed)


def random_flip_up_down(image: TensorLike, seed: int | None = None) -> Tensor:
    """Mirror an image from top to bottom with a chance of one half, each image of a batch on its own.

    `image` has the shape ``[height, width, channels]`` or ``[batch, height, width, channels]``; the result has the same
    shape and dtype.
    """
    return _randomly_flipped("random_flip_up_down", image, 0, seed)


def _randomly_flipped(op: str, image: TensorLike, axis: int, seed: int | None) -> Tensor:
    with get_default_graph().name_scope(op):
        image = image_tensor(op, image)
        if image.shape.rank == 4:
            chosen = less(random_uniform(shape(image)[:1], seed=seed), 0.5)
            return where(chosen, reverse(image, [axis + 1]), image)
        flipped = cond(
            less(random_uniform([], seed=seed), 0.5), lambda: reverse(image, [axis]), lambda: identity(image)
        )
        flipped.set_shape(image.shape)
        return flipped


def transpose_image(image: TensorLike, name: str | None = None) -> Tensor:
    """Exchange height and width of an image, or of each of a batch.

    `image` has the shape ``[height, width, channels]`` or ``[batch, height, width, channels]``; the result ``[width,
    height, channels]`` or ``[batch, width, height, channels]``. `name` is the name scope of the operations.
    """
    with get_default_graph().name_scope(name or "transpose_image"):
        return _batched("transpose_image", image, lambda images: transpose(images, [0, 2, 1, 3]))


def rot90(image: TensorLike, k: TensorLike = 1, name: str | None = None) -> Tensor:
    """Turn an image, or each of a batch, counter-clockwise by 90 degrees, `k` times.

    Args:
        image: ``[height, width, channels]`` or ``[batch, height, width, channels]``.
        k: How many times, an integer scalar.
        name: Name scope of the operations.

    Returns:
        The same shape for an even `k`, with height and width exchanged for an odd one.

    Examples:
        >>> session.run(tf.image.rot90([[[1], [2]], [[3], [4]]]))[:, :, 0]
        array([[2, 4],
               [1, 3]], dtype=int32)
    """
    with get_default_graph().name_scope(name or "rot90"):
        turns = _number(convert_to_tensor(k, dtypes.int32))
        if isinstance(turns, Tensor):
            return _batched("rot90", image, lambda images: _turned_by_tensor(images, floormod(turns, 4)))
        return _batched("rot90", image, _TURNS[int(turns) % 4])


_TURNS: Final[list[Callable[[Tensor], Tensor]]] = [
    identity,
    lambda images: transpose(reverse(images, [2]), [0, 2, 1, 3]),
    lambda images: reverse(images, [1, 2]),
    lambda images: reverse(transpose(images, [0, 2, 1, 3]), [2]),
]


def _turned_by_tensor(images: Tensor, turns: Tensor) -> Tensor:
    def among(first: int, last: int) -> Tensor:
        if first == last:
            return _TURNS[first](images)
        middle = (first + last) // 2
        return cond(turns <= middle, lambda: among(first, middle), lambda: among(middle + 1, last))

    turned = among(0, 3)
    turned.set_shape([images.shape.sizes[0], None, None, images.shape.sizes[3]])
    return turned


# -- cropping and padding ------------------------------------------------------------------------------


def crop_to_bounding_box(
    image: TensorLike,
    offset_height: int | Tensor,
    offset_width: int | Tensor,
    target_height: int | Tensor,
    target_width: int | Tensor,
) -> Tensor:
    """Take a part of an image, or of each of a batch.

    Args:
        image: ``[height, width, channels]`` or ``[batch, height, width, channels]``.
        offset_height: Rows above the part, an integer scalar.
        offset_width: Columns left of it, an integer scalar.
        target_height: Its height, an integer scalar.
        target_width: Its width, an integer scalar.

    Returns:
        ``[target_height, target_width, channels]``, or as many for each of the batch; the same dtype.

    Raises:
        InvalidArgumentError: The part reaches beyond the image.

    Examples:
        >>> image = tf.reshape(tf.range(9), [3, 3, 1])
        >>> session.run(tf.image.crop_to_bounding_box(image, 1, 0, 2, 2))[:, :, 0]
        array([[3, 4],
               [6, 7]], dtype=int32)
    """
    known = [_number(value) for value in (offset_height, offset_width, target_height, target_width)]

    def crop(images: Tensor) -> Tensor:
        _check_part("crop_to_bounding_box", images, *known)
        return slice_(images, [0, known[0], known[1], 0], [-1, known[2], known[3], -1])

    with get_default_graph().name_scope("crop_to_bounding_box"):
        return _batched("crop_to_bounding_box", image, crop)


def _check_part(op: str, images: Tensor, top: Any, left: Any, height: Any, width: Any) -> None:
    for what, offset, size, whole in zip(
        ("height", "width"), (top, left), (height, width), images.shape.sizes[1:3], strict=True
    ):
        offset, size = (value if isinstance(value, int) else None for value in (offset, size))
        if (offset is not None and offset < 0) or (size is not None and size <= 0):
            raise InvalidArgumentError(f"{op}: offset {offset} and {what} {size}: expected at least 0 and at least 1")
        if whole is not None and size is not None and (offset or 0) + size > whole:
            raise InvalidArgumentError(f"{op}: {what} {size} from {offset or 0} on exceeds the image's {what} {whole}")


def pad_to_bounding_box(
    image: TensorLike,
    offset_height: int | Tensor,
    offset_width: int | Tensor,
    target_height: int | Tensor,
    target_width: int | Tensor,
) -> Tensor:
    """Put zeros around an image, or each of a batch.

    Args:
        image: ``[height, width, channels]`` or ``[batch, height, width, channels]``.
        offset_height: Rows of zeros above the image, an integer scalar.
        offset_width: Columns of zeros left of it, an integer scalar.
        target_height: Height of the result, an integer scalar.
        target_width: Width of the result, an integer scalar.

    Returns:
        ``[target_height, target_width, channels]``, or as many for each of the batch; the same dtype.

    Raises:
        InvalidArgumentError: The image does not fit.

    Examples:
        >>> image = tf.ones([1, 2, 1])
        >>> session.run(tf.image.pad_to_bounding_box(image, 1, 0, 2, 3))[:, :, 0]
        array([[0., 0., 0.],
               [1., 1., 0.]], dtype=float32)
    """

    def padded(images: Tensor) -> Tensor:
        height, width = spatial_sizes(images)
        below = target_height - offset_height - height
        right = target_width - offset_width - width
        for amount in map(_number, (offset_height, offset_width, below, right)):
            if not isinstance(amount, Tensor) and amount < 0:
                raise InvalidArgumentError(
                    f"pad_to_bounding_box: images of {images.shape} at ({offset_height}, {offset_width}) do not fit "
                    f"{target_height} x {target_width}"
                )
        result = pad(images, [[0, 0], [offset_height, below], [offset_width, right], [0, 0]])
        result.set_shape(_with_sizes(images.shape, target_height, target_width))
        return result

    with get_default_graph().name_scope("pad_to_bounding_box"):
        return _batched("pad_to_bounding_box", image, padded)


def _with_sizes(images: TensorShape, height: TensorLike, width: TensorLike) -> list[int | None]:
    known = [None if isinstance(value, Tensor) else int(value) for value in map(_number, (height, width))]
    return [images.sizes[0], *known, images.sizes[3]]


def resize_image_with_crop_or_pad(image: TensorLike, target_height: int | Tensor, target_width: int | Tensor) -> Tensor:
    """Bring an image, or each of a batch, to a size: by cropping its middle, or by zeros around it.

    Args:
        image: ``[height, width, channels]`` or ``[batch, height, width, channels]``.
        target_height: New height, an integer scalar.
        target_width: New width, an integer scalar.

    Returns:
        ``[target_height, target_width, channels]``, or as many for each of the batch; the same dtype.

    Examples:
        >>> image = tf.ones([2, 4, 1])
        >>> session.run(tf.image.resize_image_with_crop_or_pad(image, 4, 2))[:, :, 0]
        array([[0., 0.],
               [1., 1.],
               [1., 1.],
               [0., 0.]], dtype=float32)
    """
    targets = _number(target_height), _number(target_width)
    if any(not isinstance(target, Tensor) and target <= 0 for target in targets):
        raise InvalidArgumentError(f"resize_image_with_crop_or_pad: target size {targets}, expected at least 1")

    def fitted(images: Tensor) -> Tensor:
        sizes = spatial_sizes(images)
        missing = [target - size for target, size in zip(targets, sizes, strict=True)]
        crops = [_greater(floordiv(-m, 2) if isinstance(m, Tensor) else -m // 2, 0) for m in missing]
        pads = [_greater(floordiv(m, 2) if isinstance(m, Tensor) else m // 2, 0) for m in missing]
        kept = [_smaller(target, size) for target, size in zip(targets, sizes, strict=True)]
        cropped = crop_to_bounding_box(images, crops[0], crops[1], kept[0], kept[1])
        result = pad_to_bounding_box(cropped, pads[0], pads[1], targets[0], targets[1])
        result.set_shape(_with_sizes(images.shape, *targets))
        return result

    with get_default_graph().name_scope("resize_image_with_crop_or_pad"):
        return _batched("resize_image_with_crop_or_pad", image, fitted)


def central_crop(image: TensorLike, central_fraction: float) -> Tensor:
    """Take the middle of an image, or of each of a batch.

    Args:
        image: ``[height, width, channels]`` or ``[batch, height, width, channels]``.
        central_fraction: Which part of height and width to keep, above 0 and at most 1.

    Returns:
        The shape of `image` with a smaller height and width; the same dtype.

    Examples:
        >>> image = tf.reshape(tf.range(16), [4, 4, 1])
        >>> session.run(tf.image.central_crop(image, 0.5))[:, :, 0]
        array([[ 5,  6],
               [ 9, 10]], dtype=int32)
    """
    if not 0 < central_fraction <= 1:
        raise InvalidArgumentError(f"central_crop: central_fraction is {central_fraction}, expected one in (0, 1]")
    if central_fraction == 1:
        return convert_to_tensor(image)

    def middle(images: Tensor) -> Tensor:
        sizes = spatial_sizes(images)
        starts = [_margin(size, central_fraction) for size in sizes]
        counts = [size - start * 2 for size, start in zip(sizes, starts, strict=True)]
        return crop_to_bounding_box(images, *starts, *counts)

    with get_default_graph().name_scope("central_crop"):
        return _batched("central_crop", image, middle, known_rank=True)


def _margin(size: Any, fraction: float) -> Any:
    if isinstance(size, Tensor):
        wide = cast(size, dtypes.float64)
        return cast((wide - wide * fraction) / 2, dtypes.int32)
    return int((size - size * fraction) / 2)


# -- resizing ------------------------------------------------------------------------------------------


def resize_images(
    images: TensorLike,
    size: TensorLike,
    method: int = ResizeMethod.BILINEAR,
    align_corners: bool = False,
    preserve_aspect_ratio: bool = False,
    name: str | None = None,
) -> Tensor:
    """Resize an image, or each of a batch.

    Args:
        images: ``[height, width, channels]`` or ``[batch, height, width, channels]``, a real dtype.
        size: New height and width, an integer vector.
        method: One of `ResizeMethod`.
        align_corners: The centres of the corner pixels fall together; otherwise the upper left corners do.
        preserve_aspect_ratio: Make the result as large as fits `size` without a change of proportions.
        name: Name scope of the operations.

    Returns:
        Images of the new size, ``[height, width, channels]`` or ``[batch, height, width, channels]``: float32, or of
        the dtype of `images` for nearest neighbours. `images` itself where its size is known to be `size` already.

    Raises:
        InvalidArgumentError: An unknown method, or images of another rank.

    Examples:
        >>> session.run(tf.image.resize_images([[[1.0], [3.0]]], [1, 4]))[:, :, 0]
        array([[1., 2., 3., 3.]], dtype=float32)
    """
    if method not in _METHODS:
        raise InvalidArgumentError(f"resize_images: method is {method!r}, expected one of tf.image.ResizeMethod")
    how = partial(_METHODS[method], align_corners=align_corners)
    return resized(images, size, how, preserve_aspect_ratio, name)


def resized(
    images: TensorLike,
    size: TensorLike,
    resize: Callable[[Tensor, Tensor], Tensor],
    preserve_aspect_ratio: bool = False,
    name: str | None = None,
    skip_same: bool = True,
) -> Tensor:
    """`resize_images` by a function of its own.

    Args:
        images: ``[height, width, channels]`` or ``[batch, height, width, channels]``.
        size: New height and width, an integer vector.
        resize: Takes a batch of images and their new size, and returns them.
        preserve_aspect_ratio: As for `resize_images`.
        name: Name scope of the operations.
        skip_same: Leave images as they are that are known to have the size already.

    Returns:
        Images of the new size, ``[height, width, channels]`` or ``[batch, height, width, channels]``.
    """
    with get_default_graph().name_scope(name or "resize"):
        return _batched(
            "resize_images",
            images,
            lambda batch: _resized(batch, size, resize, preserve_aspect_ratio, skip_same),
            known_rank=True,
        )


_METHODS: Final[dict[int, Callable[..., Tensor]]] = {
    ResizeMethod.BILINEAR: resize_bilinear,
    ResizeMethod.NEAREST_NEIGHBOR: resize_nearest_neighbor,
    ResizeMethod.BICUBIC: resize_bicubic,
    ResizeMethod.AREA: resize_area,
}


def _resized(
    images: Tensor,
    size: TensorLike,
    resize: Callable[[Tensor, Tensor], Tensor],
    preserve_aspect_ratio: bool,
    skip_same: bool,
) -> Tensor:
    size = convert_to_tensor(size, name="size")
    if size.dtype.is_floating:
        raise InvalidArgumentError(f"resize_images: size is {size!r}, expected two integers")
    size = int32_tensor(size)
    size.shape.assert_is_compatible_with([2])
    if preserve_aspect_ratio:
        # Resized even to the size that they have: the dtype of the result does not depend on the sizes.
        return resize(images, _fitting_size(images, size))
    known = constant_value(size)
    if skip_same and known is not None and tuple(known.tolist()) == images.shape.sizes[1:3]:
        return images
    return resize(images, size)


def _fitting_size(images: Tensor, size: Tensor) -> Tensor:
    wanted, actual = cast(size, dtypes.float32), cast(shape(images)[1:3], dtypes.float32)
    ratios = wanted / actual
    scale = minimum(ratios[0], ratios[1])
    return cast(rint(actual * scale), dtypes.int32)


def resize_image_with_pad(
    image: TensorLike,
    target_height: int | Tensor,
    target_width: int | Tensor,
    method: int = ResizeMethod.BILINEAR,
    align_corners: bool = False,
) -> Tensor:
    """Resize an image, or each of a batch, without a change of proportions, and put zeros around it.

    Args:
        image: ``[height, width, channels]`` or ``[batch, height, width, channels]``.
        target_height: New height, an integer scalar.
        target_width: New width, an integer scalar.
        method: One of `ResizeMethod`.
        align_corners: As for `resize_images`.

    Returns:
        ``[target_height, target_width, channels]``, or as many for each of the batch.
    """

    def fitted(images: Tensor) -> Tensor:
        sizes = spatial_sizes(images)
        targets = (target_height, target_width)
        factors = [_as_double(size) / _as_double(target) for size, target in zip(sizes, targets, strict=True)]
        ratio = _greater(*factors)
        inner = [_as_int(_as_double(size) / ratio) for size in sizes]
        offsets = [
            _greater(_as_int((_as_double(target) - _as_double(size) / ratio) / 2), 0)
            for target, size in zip(targets, sizes, strict=True)
        ]
        resized = resize_images(images, inner, method, align_corners)
        return pad_to_bounding_box(resized, offsets[0], offsets[1], target_height, target_width)

    with get_default_graph().name_scope("resize_image_with_pad"):
        return _batched("resize_image_with_pad", image, fitted)


def _as_double(value: Any) -> Any:
    return cast(value, dtypes.float64) if isinstance(value, Tensor) else float(value)


def _as_int(value: Any) -> Any:
    return cast(value, dtypes.int32) if isinstance(value, Tensor) else int(value)


def total_variation(images: TensorLike, name: str | None = None) -> Tensor:
    """Sum the absolute differences of neighbouring pixels: how much an image varies.

    Args:
        images: ``[height, width, channels]`` or ``[batch, height, width, channels]``.
        name: Name scope of the operations.

    Returns:
        A scalar, or one number per image.
    """
    images = image_tensor("total_variation", images)
    axes = (-3, -2, -1)
    with get_default_graph().name_scope(name or "total_variation"):
        down = images[..., 1:, :, :] - images[..., :-1, :, :]
        right = images[..., :, 1:, :] - images[..., :, :-1, :]
        return reduce_sum(magnitude(down), axes) + reduce_sum(magnitude(right), axes)
