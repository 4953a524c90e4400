"""Resizing of images as TensorFlow 2 has it, and 1.15 within: ``resize_images_v2``, ``scale_and_translate``."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import tfray as tf
from tfray.errors import InvalidArgumentError
from tfray.framework.graph import Tensor
from tfray.framework.type_aliases import TensorLike
from tfray.ops.image.image_ops import resized
from tfray.ops.image.resize_ops import resize_area, resize_bicubic, resize_bilinear, resize_nearest_neighbor


class ResizeMethod:
    """The methods of `resize_images_v2`, by their names."""

    BILINEAR = "bilinear"
    NEAREST_NEIGHBOR = "nearest"
    BICUBIC = "bicubic"
    AREA = "area"
    LANCZOS3 = "lanczos3"
    LANCZOS5 = "lanczos5"
    GAUSSIAN = "gaussian"
    MITCHELLCUBIC = "mitchellcubic"


def _lanczos(radius: float, x: Tensor) -> Tensor:
    away = tf.maximum(x, 1e-3)
    wave = radius * tf.sin(math.pi * away) * tf.sin(math.pi * away / radius) / tf.square(math.pi * away)
    return tf.where(x > radius, tf.zeros_like(x), tf.where(x < 1e-3, tf.ones_like(x), wave))


def _gaussian(x: Tensor) -> Tensor:
    return tf.where(x < 1.5, tf.exp(-2.0 * tf.square(x)), tf.zeros_like(x))


def _box(x: Tensor) -> Tensor:
    return tf.cast(x < 0.5, tf.float32) + tf.cast(tf.equal(x, 0.5), tf.float32) / 2


def _cubic(near: tuple[float, ...], far: tuple[float, ...], x: Tensor) -> Tensor:
    inner, outer = (tf.math.polyval(list(map(tf.constant, each)), x) for each in (near, far))
    return tf.where(x < 1, inner, tf.where(x < 2, outer, tf.zeros_like(x)))


_KERNELS: Final[dict[str, Callable[[Tensor], Tensor]]] = {
    "lanczos1": partial(_lanczos, 1.0),
    "lanczos3": partial(_lanczos, 3.0),
    "lanczos5": partial(_lanczos, 5.0),
    "gaussian": _gaussian,
    "box": _box,
    "triangle": lambda x: tf.maximum(1 - x, 0.0),
    "keyscubic": partial(_cubic, (1.5, -2.5, 0.0, 1.0), (-0.5, 2.5, -4.0, 2.0)),
    "mitchellcubic": partial(_cubic, (7 / 6, -2.0, 0.0, 8 / 9), (-7 / 18, 2.0, -10 / 3, 16 / 9)),
}
"""How much an input counts, by its distance from an output."""


def scale_and_translate(
    images: TensorLike,
    size: TensorLike,
    scale: TensorLike,
    translation: TensorLike,
    kernel_type: str = "lanczos3",
    antialias: bool = True,
    name: str | None = None,
) -> Tensor:
    """Images whose pixels are those of `images`, scaled and moved, as a kernel weighs their neighbours.

    Args:
        images: ``[batch, height, width, channels]``, a real dtype.
        size: New height and width, an integer vector.
        scale: By how much heights and widths grow, a float vector.
        translation: By how many of the new pixels the images move, a float vector.
        kernel_type: ``"lanczos1"``, ``"lanczos3"``, ``"lanczos5"``, ``"gaussian"``, ``"box"``, ``"triangle"``,
            ``"keyscubic"`` or ``"mitchellcubic"``.
        antialias: Let the kernel grow where images shrink.
        name: Name scope of the operations.

    Returns:
        ``[batch, size[0], size[1], channels]``, float32. What lies outside of `images` is 0.

    Raises:
        ValueError: There is no such kernel, or the images have another rank.
    """
    if kernel_type not in _KERNELS:
        raise InvalidArgumentError(
            f"scale_and_translate: kernel_type is {kernel_type!r}, expected one of {[*_KERNELS]}"
        )
    with tf.name_scope(name, "ScaleAndTranslate"):
        images = tf.convert_to_tensor(images, name="images")
        images.shape.assert_has_rank(4)
        counts, sizes = tf.cast(size, tf.int32), tf.shape(images)
        scales, moves = tf.cast(scale, tf.float32), tf.cast(translation, tf.float32)
        rows, columns = (
            _weights(sizes[axis + 1], counts[axis], scales[axis], moves[axis], _KERNELS[kernel_type], antialias)
            for axis in (0, 1)
        )
        return tf.einsum("xw,bywc->byxc", columns, tf.einsum("yh,bhwc->bywc", rows, tf.cast(images, tf.float32)))


def _weights(
    size: Tensor, count: Tensor, scale: Tensor, move: Tensor, kernel: Callable[[Tensor], Tensor], antialias: bool
) -> Tensor:
    """How much each input, ``size`` along an axis, counts in each of ``count`` outputs: ``[count, size]``."""
    step = 1 / scale
    widest = tf.maximum(step, 1.0) if antialias else tf.constant(1.0)
    centres = (tf.cast(tf.range(count), tf.float32) + 0.5) * step - step * move
    distances = tf.abs(tf.cast(tf.range(size), tf.float32) + 0.5 - centres[:, None])
    weights = kernel(distances / widest)
    totals = tf.reduce_sum(weights, 1, keepdims=True)
    weights = tf.div_no_nan(weights, tf.where(tf.abs(totals) < 1e-35, tf.zeros_like(totals), totals))
    is_within = tf.logical_and(centres >= 0, centres <= tf.cast(size, tf.float32))
    return tf.where(is_within, weights, tf.zeros_like(weights))


def resize_images_v2(
    images: TensorLike,
    size: TensorLike,
    method: str = ResizeMethod.BILINEAR,
    preserve_aspect_ratio: bool = False,
    antialias: bool = False,
    name: str | None = None,
) -> Tensor:
    """`tf.image.resize_images`, with the methods of TensorFlow 2, where pixels lie around their centres.

    Args:
        images: ``[height, width, channels]`` or ``[batch, height, width, channels]``, a real dtype.
        size: New height and width, an integer vector.
        method: One of `ResizeMethod`.
        preserve_aspect_ratio: Make the result as large as fits `size` without a change of proportions.
        antialias: Let every pixel count where images shrink; without effect for ``"area"`` and ``"nearest"``.
        name: Name scope of the operations.

    Returns:
        As `tf.image.resize_images`, and float32 whatever sizes are known.

    Raises:
        ValueError: There is no such method, or the images have another rank.
    """

    def by_kernel(kernel: str, batch: Tensor, new: Tensor) -> Tensor:
        scale = tf.cast(new, tf.float32) / tf.cast(tf.shape(batch)[1:3], tf.float32)
        made = scale_and_translate(batch, new, scale, tf.zeros([2]), kernel, antialias)
        made.set_shape(batch.shape[:1].concatenate(made.shape[1:3]).concatenate(batch.shape[3:]))
        return made

    around_centres: dict[str, Callable[..., Tensor]] = {
        ResizeMethod.BILINEAR: partial(resize_bilinear, half_pixel_centers=True),
        ResizeMethod.NEAREST_NEIGHBOR: partial(resize_nearest_neighbor, half_pixel_centers=True),
        ResizeMethod.BICUBIC: partial(resize_bicubic, half_pixel_centers=True),
        ResizeMethod.AREA: resize_area,
    }
    kernels: dict[Any, str] = {
        kind: kind for kind in ("lanczos3", "lanczos5", ResizeMethod.GAUSSIAN, ResizeMethod.MITCHELLCUBIC)
    }
    if antialias:
        kernels |= {ResizeMethod.BILINEAR: "triangle", ResizeMethod.BICUBIC: "keyscubic"}
    if method in kernels:
        how = partial(by_kernel, kernels[method])
        return resized(images, size, how, preserve_aspect_ratio, name, skip_same=False)
    if method not in around_centres:
        raise InvalidArgumentError(f"Resize method {method!r} is not implemented: expected one of `ResizeMethod`")
    return resized(images, size, around_centres[method], preserve_aspect_ratio, name, skip_same=False)
