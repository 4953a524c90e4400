"""Measures of how similar two images are, and image gradients and edges."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.tensor_shape import broadcast_shapes
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.broadcast_ops import zeros_like
from tfray.ops.arrays.join_ops import concat, stack
from tfray.ops.arrays.layout_ops import pad, tile
from tfray.ops.arrays.shape_ops import cast, reshape, shape
from tfray.ops.image.image_color_ops import convert_image_dtype
from tfray.ops.math.arithmetic_ops import log, multiply, pow, square, subtract
from tfray.ops.math.reduction_ops import reduce_mean, reduce_prod
from tfray.ops.nn.activation_ops import relu
from tfray.ops.nn.depthwise_conv_ops import depthwise_conv2d_native
from tfray.ops.nn.pooling_ops import avg_pool


def psnr(a: TensorLike, b: TensorLike, max_val: TensorLike, name: str | None = None) -> Tensor:
    """Compute the peak signal-to-noise ratio of images, in decibels.

    Args:
        a: ``[..., height, width, channels]``, a real dtype.
        b: Likewise; the same last three dimensions, the others are broadcast.
        max_val: Difference between the greatest and the least colour there is, a scalar.
        name: Name of the last operation.

    Returns:
        float32 ``[...]``, the broadcast shape of the others.
    """
    with get_default_graph().name_scope("psnr"):
        a, b, most = (convert_image_dtype(value, dtypes.float32) for value in _alike("psnr", a, b, max_val))
        error = reduce_mean(square(subtract(a, b)), [-3, -2, -1])
        return subtract(20 / math.log(10) * log(most), 10 / math.log(10) * log(error), name)


def _alike(op: str, a: TensorLike, b: TensorLike, max_val: TensorLike) -> tuple[Tensor, Tensor, Tensor]:
    a, b = convert_to_tensor(a, name="img1"), convert_to_tensor(b, name="img2")
    for image in (a, b):
        if image.shape.rank is not None and image.shape.rank < 3:
            raise InvalidArgumentError(
                f"{op}: the image has shape {image.shape}, expected [..., height, width, channels]"
            )
    if a.shape.rank is not None and b.shape.rank is not None:
        try:
            a.shape[-3:].assert_is_compatible_with(b.shape[-3:])
            broadcast_shapes(a.shape[:-3], b.shape[:-3])
        except ValueError as error:
            raise InvalidArgumentError(
                f"{op}: images of shapes {a.shape} and {b.shape} cannot be compared: {error}"
            ) from error
    return a, b, cast(max_val, a.dtype)


# -- structural similarity -----------------------------------------------------------------------------


def ssim(
    img1: TensorLike,
    img2: TensorLike,
    max_val: TensorLike,
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
) -> Tensor:
    """Compute the structural similarity of images: 1 for equal ones.

    Args:
        img1: ``[..., height, width, channels]``, a real dtype; at least `filter_size` high and wide.
        img2: Likewise; the same last three dimensions, the others are broadcast.
        max_val: Difference between the greatest and the least colour there is, a scalar.
        filter_size: Size of the Gaussian window.
        filter_sigma: Its standard deviation.
        k1: Stabilises the comparison of means.
        k2: Stabilises the comparison of deviations.

    Returns:
        float32 ``[...]``, the broadcast shape of the others: the mean over pixels and channels.

    References:
        Wang et al., Image quality assessment: from error visibility to structural similarity, IEEE TIP 13 (2004).
    """
    with get_default_graph().name_scope("ssim"):
        images = [convert_image_dtype(value, dtypes.float32) for value in _alike("ssim", img1, img2, max_val)]
        similarity, _ = _similarity(images[0], images[1], images[2], filter_size, filter_sigma, k1, k2)
        return reduce_mean(similarity, [-1])


def _similarity(
    x: Tensor, y: Tensor, most: Tensor, size: int, sigma: float, k1: float, k2: float
) -> tuple[Tensor, Tensor]:
    """Structural similarity and its part without the means, per image and channel."""
    blur = _Blur(size, sigma)
    c1, c2 = (k1 * most) ** 2, (k2 * most) ** 2
    mean_x, mean_y = blur(x), blur(y)
    product, squares = multiply(mean_x, mean_y) * 2.0, square(mean_x) + square(mean_y)
    luminance = (product + c1) / (squares + c1)
    structure = (blur(multiply(x, y)) * 2.0 - product + c2) / (blur(square(x) + square(y)) - squares + c2)
    axes = [-3, -2]
    return reduce_mean(multiply(luminance, structure), axes), reduce_mean(structure, axes)


class _Blur:
    """Weighted means over a Gaussian window, one axis after the other. Padding: none."""

    def __init__(self, size: int, sigma: float) -> None:
        places = np.arange(size, dtype=np.float32) - (size - 1) / 2
        weights = np.exp(-0.5 * np.square(places / sigma))
        self._weights = (weights / weights.sum()).astype(np.float32)

    def __call__(self, images: Tensor) -> Tensor:
        for axes in ((-1, 1, 1, 1), (1, -1, 1, 1)):
            window = tile(self._weights.reshape(axes), [1, 1, shape(images)[-1], 1])
            blur = partial(depthwise_conv2d_native, filter=window, strides=[1, 1, 1, 1], padding="VALID")
            images = _as_batch(images, blur)
        return images


def _as_batch(images: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
    """A function of batches ``[batch, height, width, channels]`` of images ``[..., height, width, channels]``."""
    rank = images.shape.rank
    if rank == 4:
        return function(images)
    sizes = shape(images)
    flat = reshape(images, concat([[-1], sizes[-3:]], 0))
    flat.set_shape([None, *(images.shape.sizes[-3:] if rank is not None else [None] * 3)])
    batch = function(flat)
    result = reshape(batch, concat([sizes[:-3], shape(batch)[1:]], 0))
    if rank is not None:
        result.set_shape([*images.shape.sizes[:-3], *batch.shape.sizes[1:]])
    return result


_SCALE_WEIGHTS: Final = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)


def ssim_multiscale(
    img1: TensorLike,
    img2: TensorLike,
    max_val: TensorLike,
    power_factors: Sequence[float] = _SCALE_WEIGHTS,
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
) -> Tensor:
    """Compute the structural similarity of images over several scales.

    Args:
        img1: ``[..., height, width, channels]``, a real dtype; large enough to be halved ``len(power_factors) - 1``
            times.
        img2: Likewise; the same last three dimensions, the others are broadcast.
        max_val: Difference between the greatest and the least colour there is, a scalar.
        power_factors: Exponents of the similarities, the finest scale first.
        filter_size: As for `ssim`.
        filter_sigma: As for `ssim`.
        k1: As for `ssim`.
        k2: As for `ssim`.

    Returns:
        float32 ``[...]``, the broadcast shape of the others.
    """
    with get_default_graph().name_scope("ssim_multiscale"):
        x, y, most = (convert_image_dtype(v, dtypes.float32) for v in _alike("ssim_multiscale", img1, img2, max_val))
        parts = []
        for scale in range(len(power_factors)):
            if scale:
                x, y = _as_batch(x, _halved), _as_batch(y, _halved)
            similarity, structure = _similarity(x, y, most, filter_size, filter_sigma, k1, k2)
            parts.append(relu(structure if scale < len(power_factors) - 1 else similarity))
        powers = pow(stack(parts, -1), np.array(power_factors, np.float32))
        return reduce_mean(reduce_prod(powers, [-1]), [-1])


def _halved(images: Tensor) -> Tensor:
    """Means of 2 x 2 pixels; the last row and column count twice where there is an odd number of them."""
    odd = shape(images)[1:3] % 2
    padded = pad(images, stack([[0, 0], stack([0, odd[0]]), stack([0, odd[1]]), [0, 0]]), "SYMMETRIC")
    return avg_pool(padded, [1, 2, 2, 1], [1, 2, 2, 1], "VALID")


# -- changes -------------------------------------------------------------------------------------------


def image_gradients(image: TensorLike) -> tuple[Tensor, Tensor]:
    """Compute the differences between neighbouring pixels.

    Args:
        image: ``[batch, height, width, channels]``.

    Returns:
        The differences to the pixel below and to the one on the right, of the image's shape; 0 at the last ones.
    """
    image = convert_to_tensor(image, name="image")
    if image.shape.rank != 4:
        raise InvalidArgumentError(f"image_gradients: the image has shape {image.shape}, expected rank 4")
    with get_default_graph().name_scope("image_gradients"):
        down = concat([image[:, 1:] - image[:, :-1], zeros_like(image[:, :1])], 1)
        right = concat([image[:, :, 1:] - image[:, :, :-1], zeros_like(image[:, :, :1])], 2)
        return down, right


def sobel_edges(image: TensorLike) -> Tensor:
    """Find edges by Sobel's filters.

    Args:
        image: ``[batch, height, width, channels]``, a float dtype, at least 2 high and wide.

    Returns:
        ``[batch, height, width, channels, 2]``: the change downwards and to the right.
    """
    image = convert_to_tensor(image, name="image")
    down = np.array([[-1, -2, -1], [0, 0, 0], [1, 2, 1]], image.dtype.numpy)
    filters = np.stack([down, down.T], axis=-1)[:, :, None, :]
    with get_default_graph().name_scope("sobel_edges"):
        window = tile(filters, [1, 1, shape(image)[3], 1])
        padded = pad(image, [[0, 0], [1, 1], [1, 1], [0, 0]], "REFLECT")
        edges = depthwise_conv2d_native(padded, window, [1, 1, 1, 1], "VALID")
        result = reshape(edges, concat([shape(image), [2]], 0))
        result.set_shape(image.shape.concatenate([2]))
        return result
