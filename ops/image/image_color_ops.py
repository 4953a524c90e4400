"""Colours of images: conversions between colour spaces and dtypes, brightness, contrast, hue, saturation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.constant_value import constant_value
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.dtypes import DType, DTypeLike, as_dtype
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.op_def import (
    Array,
    ArrayModule,
    KernelContext,
    OpDef,
    not_differentiable,
    on_every_device,
    out_kernel,
    register,
)
from tfray.framework.scopes import control_dependencies
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.broadcast_ops import ones_like
from tfray.ops.arrays.join_ops import concat, stack, unstack
from tfray.ops.arrays.layout_ops import tile
from tfray.ops.arrays.shape_ops import cast, identity, shape
from tfray.ops.checks.print_assert_ops import Assert
from tfray.ops.image.image_ops import image_tensor
from tfray.ops.kernels.precision import widened
from tfray.ops.kernels.tiles import for_each_rows
from tfray.ops.math.arithmetic_ops import div_no_nan, maximum, minimum, multiply, pow, rsqrt, sqrt, truediv
from tfray.ops.math.comparison_ops import greater_equal, logical_and
from tfray.ops.math.conversion_ops import saturate_cast
from tfray.ops.math.linalg_ops import tensordot
from tfray.ops.math.reduction_ops import reduce_mean, reduce_prod, reduce_variance
from tfray.ops.math.rounding_ops import floordiv
from tfray.ops.random.random_ops import random_uniform

# -- dtypes --------------------------------------------------------------------------------------------


def convert_image_dtype(image: TensorLike, dtype: DTypeLike, saturate: bool = False, name: str | None = None) -> Tensor:
    """Convert an image to another dtype, scaled so that white stays white.

    Floats mean colours in [0, 1], integers in [0, greatest value of the dtype].

    Args:
        image: Any shape, a real dtype.
        dtype: The new dtype.
        saturate: Clip what does not fit an integer dtype, instead of letting it wrap around.
        name: Name of the last operation.

    Returns:
        Same shape, dtype `dtype`.

    Examples:
        >>> session.run(tf.image.convert_image_dtype(tf.constant([0, 51, 255], tf.uint8), tf.float32))
        array([0.        , 0.20000002, 1.        ], dtype=float32)
    """
    image, dtype = convert_to_tensor(image, name="image"), as_dtype(dtype)
    if dtype is image.dtype:
        return identity(image, name)
    with get_default_graph().name_scope(name or "convert_image"):
        if image.dtype.is_integer and dtype.is_integer:
            return _between_integers(image, dtype, saturate)
        if image.dtype.is_floating and dtype.is_floating:
            return cast(image, dtype)
        if image.dtype.is_integer:
            return multiply(cast(image, dtype), 1.0 / image.dtype.max)
        # Half a step more than the maximum: 1 becomes the maximum, and integers get about equal shares of [0, 1].
        return _fitted(multiply(image, dtype.max + 0.5), dtype, saturate)


def _between_integers(image: Tensor, dtype: DType, saturate: bool) -> Tensor:
    before, after = image.dtype.max + 1, dtype.max + 1
    if before > after:
        return _fitted(floordiv(image, before // after), dtype, saturate)
    return multiply(_fitted(image, dtype, saturate), after // before)


def _fitted(image: Tensor, dtype: DType, saturate: bool) -> Tensor:
    return saturate_cast(image, dtype) if saturate else cast(image, dtype)


def _in_floats(image: TensorLike, change: Callable[[Tensor], Tensor]) -> Tensor:
    """Apply a change of colours in float32 (or the image's own float dtype), and convert back."""
    image = convert_to_tensor(image, name="image")
    if image.dtype.is_floating:
        return change(image)
    return convert_image_dtype(change(convert_image_dtype(image, dtypes.float32)), image.dtype, saturate=True)


# -- colour spaces -------------------------------------------------------------------------------------


def rgb_to_grayscale(images: TensorLike, name: str | None = None) -> Tensor:
    """Convert colours to their luminance.

    Args:
        images: ``[..., 3]``, a real dtype.
        name: Name scope of the operations.

    Returns:
        ``[..., 1]``, the same dtype.

    Examples:
        >>> session.run(tf.image.rgb_to_grayscale([[[1.0, 1.0, 1.0], [1.0, 0.0, 0.0]]]))
        array([[[0.99990004],
                [0.2989    ]]], dtype=float32)
    """
    images = _with_channels("rgb_to_grayscale", images, 3)
    weights = np.array([[0.2989], [0.5870], [0.1140]], np.float32)
    with get_default_graph().name_scope(name or "rgb_to_grayscale"):
        colors = convert_image_dtype(images, dtypes.float32)
        return convert_image_dtype(tensordot(colors, weights, [[-1], [0]]), images.dtype)


def grayscale_to_rgb(images: TensorLike, name: str | None = None) -> Tensor:
    """Repeat a luminance three times.

    Args:
        images: ``[..., 1]``, any dtype.
        name: Name of the operation.

    Returns:
        ``[..., 3]``, the same dtype.

    Examples:
        >>> session.run(tf.image.grayscale_to_rgb([[[1], [2]]]))
        array([[[1, 1, 1],
                [2, 2, 2]]], dtype=int32)
    """
    images = _with_channels("grayscale_to_rgb", images, 1)
    images.shape.with_rank_at_least(2)
    name = name or "grayscale_to_rgb"
    if images.shape.rank is None:
        return tile(images, concat([ones_like(shape(images)[1:]), [3]], 0), name)
    return tile(images, [1] * (images.shape.rank - 1) + [3], name)


def _with_channels(op: str, images: TensorLike, channels: int) -> Tensor:
    images = convert_to_tensor(images, name="images")
    if images.shape.rank is not None and (images.shape.rank < 1 or images.shape.sizes[-1] not in (None, channels)):
        raise InvalidArgumentError(
            f"{op}: the images have shape {images.shape}, expected {channels} channels at the end"
        )
    return images


def _linear(op: str, images: TensorLike, matrix: TensorLike) -> Tensor:
    images = _with_channels(op, images, 3)
    if not images.dtype.is_floating:
        raise TypeError(f"{op}: the images are {images.dtype.name}, expected floats: see tf.image.convert_image_dtype")
    return tensordot(images, convert_to_tensor(np.array(matrix), images.dtype), [[-1], [0]], op)


_RGB_TO_YIQ: Final = ((0.299, 0.59590059, 0.2115), (0.587, -0.27455667, -0.52273617), (0.114, -0.32134392, 0.31119955))
_RGB_TO_YUV: Final = (
    (0.299, -0.14714119, 0.61497538),
    (0.587, -0.28886916, -0.51496512),
    (0.114, 0.43601035, -0.10001026),
)
_YIQ_TO_RGB: Final = ((1, 1, 1), (0.95598634, -0.27201283, -1.10674021), (0.6208248, -0.64720424, 1.70423049))
_YUV_TO_RGB: Final = ((1, 1, 1), (0, -0.394642334, 2.03206185), (1.13988303, -0.58062185, 0))


def rgb_to_yiq(images: TensorLike) -> Tensor:
    """Convert ``[..., 3]`` colours from RGB in [0, 1] to YIQ: floats, for others a TypeError is raised."""
    return _linear("rgb_to_yiq", images, _RGB_TO_YIQ)


def yiq_to_rgb(images: TensorLike) -> Tensor:
    """Convert ``[..., 3]`` colours from YIQ to RGB: floats, for others a TypeError is raised."""
    return _linear("yiq_to_rgb", images, _YIQ_TO_RGB)


def rgb_to_yuv(images: TensorLike) -> Tensor:
    """Convert ``[..., 3]`` colours from RGB in [0, 1] to YUV."""
    return _linear("rgb_to_yuv", images, _RGB_TO_YUV)


def yuv_to_rgb(images: TensorLike) -> Tensor:
    """Convert ``[..., 3]`` colours from YUV to RGB: floats, for others a TypeError is raised."""
    return _linear("yuv_to_rgb", images, _YUV_TO_RGB)


def _colors_shape(op: Operation) -> list[TensorShape]:
    shape = op.inputs[0].shape
    if shape.rank == 0 or (shape.rank is not None and shape.sizes[-1] not in (None, 3)):
        raise ValueError(f"the images have shape {shape}, expected 3 channels at the end")
    return [shape]


def _adjusted_shape(op: Operation) -> list[TensorShape]:
    op.inputs[0].shape.with_rank_at_least(3)
    op.inputs[1].shape.assert_has_rank(0)
    return _colors_shape(op)


def _check_colors(colors: Array, rank: int = 1) -> None:
    if colors.ndim < rank:
        raise InvalidArgumentError(f"the images have shape {colors.shape}, expected at least {rank} dimensions")
    if colors.ndim == 0 or colors.shape[-1] != 3:
        raise InvalidArgumentError(f"the images have shape {colors.shape}, expected 3 channels at the end")


def rgb_to_hsv(images: TensorLike, name: str | None = None) -> Tensor:
    """Convert colours from RGB to hue, saturation and value, all in [0, 1].

    Args:
        images: ``[..., 3]``, a float dtype, values in [0, 1].
        name: Name of the operation.

    Returns:
        Same shape and dtype.
    """
    return add_op(RGB_TO_HSV, images, name=name)


def _hsv(xp: ArrayModule, red: Array, green: Array, blue: Array) -> tuple[Array, Array, Array]:
    """Hue, saturation and value of colours."""
    hue, chroma, value = _hue(xp, red, green, blue)
    one = red.dtype.type(1)
    saturation = xp.where(value > 0, chroma / xp.where(value > 0, value, one), 0 * one)
    return hue, saturation, value


def _hue(xp: ArrayModule, red: Array, green: Array, blue: Array) -> tuple[Array, Array, Array]:
    """Hue, chroma (largest less smallest channel) and value (largest channel) of colours."""
    value = xp.maximum(xp.maximum(red, green), blue)
    chroma = value - xp.minimum(xp.minimum(red, green), blue)
    one = red.dtype.type(1)
    per_step = one / (6 * xp.where(chroma > 0, chroma, one))
    hue = xp.where(
        red == value,
        per_step * (green - blue),
        xp.where(
            green == value,
            per_step * (blue - red) + one / 3,
            per_step * (red - green) + one * 2 / 3,
        ),
    )
    return hue + (hue < 0), chroma, value


def _map_colors(xp: ArrayModule, function: Callable[..., Sequence[Array]], colors: Array, out: Array | None) -> Array:
    """Fill `out` by ``function(first, second, third channel)`` of colours, which gives the new channels."""
    if out is None:
        out = xp.empty(colors.shape, colors.dtype)
    source, target = colors.reshape(-1, 3), out.reshape(-1, 3)

    def work(part: slice) -> None:
        # Copy each channel to contiguous memory: NumPy's loops are several times as fast there.
        channels = xp.ascontiguousarray(source[part].T)
        for index, channel in enumerate(function(*channels)):
            target[part, index] = channel

    if colors.size:
        for_each_rows(xp, work, source, large_elements=1 << 16)
    return out


@widened
def _rgb_to_hsv_kernel(ctx: KernelContext, rgb: Array, out: Array | None = None) -> Array:
    _check_colors(rgb)
    return _map_colors(ctx.xp, partial(_hsv, ctx.xp), rgb, out)


def _rgb_to_hsv_gradient(op: Operation, d_hsv: Tensor) -> list[Tensor]:
    """The derivatives by the largest and the smallest channel, and by the two whose difference is the hue.

    Of equal channels the first counts as the largest and the last as the smallest. Of what is divided by 0 the
    derivative is 0. (TensorFlow's differ where channels are equal or 0.)
    """
    red, green, blue = unstack(op.inputs[0], 3, axis=-1)
    d_hue, d_saturation, d_value = unstack(d_hsv, 3, axis=-1)
    of_red, of_green = logical_and(red >= green, red >= blue), logical_and(green > red, green >= blue)
    to_blue, to_green = logical_and(blue <= red, blue <= green), logical_and(green <= red, green < blue)
    largest = [cast(flags, red.dtype) for flags in (of_red, of_green)]
    largest.append(1 - largest[0] - largest[1])
    smallest = [cast(flags, red.dtype) for flags in (to_green, to_blue)]
    smallest.insert(0, 1 - smallest[0] - smallest[1])
    value, least = (maximum(maximum(red, green), blue), minimum(minimum(red, green), blue))
    chroma = value - least
    difference = largest[0] * (green - blue) + largest[1] * (blue - red) + largest[2] * (red - green)
    d_difference = div_no_nan(d_hue, 6 * chroma)
    d_chroma = -d_difference * div_no_nan(difference, chroma)
    d_ratio = div_no_nan(d_saturation, value * value)
    # With which channel as the largest one this channel is added to the difference, or subtracted from it.
    added, subtracted = (2, 0, 1), (1, 2, 0)
    return [
        stack(
            [
                d_value * largest[channel]
                + d_ratio * (least * largest[channel] - value * smallest[channel])
                + d_difference * (largest[added[channel]] - largest[subtracted[channel]])
                + d_chroma * (largest[channel] - smallest[channel])
                for channel in range(3)
            ],
            axis=-1,
        )
    ]


RGB_TO_HSV = register(
    OpDef(
        name="RGBToHSV",
        inputs=("images: T",),
        outputs=("output: T",),
        types={"T": dtypes.FLOATS},
        shape=_colors_shape,
        kernels=on_every_device(out_kernel(_rgb_to_hsv_kernel)),
        gradient=_rgb_to_hsv_gradient,
    )
)


def hsv_to_rgb(images: TensorLike, name: str | None = None) -> Tensor:
    """Convert colours from hue, saturation and value to RGB: the inverse of `rgb_to_hsv`.

    Args:
        images: ``[..., 3]``, a float dtype, values in [0, 1].
        name: Name of the operation.

    Returns:
        Same shape and dtype.
    """
    return add_op(HSV_TO_RGB, images, name=name)


def _rgb(xp: ArrayModule, hue: Array, saturation: Array, value: Array) -> tuple[Array, Array, Array]:
    """Red, green and blue of colours."""
    return _turned_to(xp, hue, value * saturation, value * (1 - saturation))


def _turned_to(xp: ArrayModule, hue: Array, chroma: Array, base: Array) -> tuple[Array, Array, Array]:
    """Red, green and blue of colours of a hue, between `base` and ``base + chroma``."""
    sixths = hue * 6
    red, green, blue = (
        xp.clip(level, 0, 1) * chroma + base
        for level in (xp.abs(sixths - 3) - 1, 2 - xp.abs(sixths - 2), 2 - xp.abs(sixths - 4))
    )
    return red, green, blue


@widened
def _hsv_to_rgb_kernel(ctx: KernelContext, hsv: Array, out: Array | None = None) -> Array:
    _check_colors(hsv)
    return _map_colors(ctx.xp, partial(_rgb, ctx.xp), hsv, out)


HSV_TO_RGB = register(
    OpDef(
        name="HSVToRGB",
        inputs=("images: T",),
        outputs=("output: T",),
        types={"T": dtypes.FLOATS},
        shape=_colors_shape,
        kernels=on_every_device(out_kernel(_hsv_to_rgb_kernel)),
        gradient=not_differentiable,
    )
)


# -- adjustments ---------------------------------------------------------------------------------------


def adjust_brightness(image: TensorLike, delta: TensorLike) -> Tensor:
    """Add to the colours of an image.

    Args:
        image: Any shape, a real dtype; integers are taken as colours in [0, 1] meanwhile.
        delta: What to add, a scalar.

    Returns:
        Same shape and dtype. An image of float64 is computed in float64; TensorFlow rounds it to float32.
    """
    with get_default_graph().name_scope("adjust_brightness"):
        return _in_floats(image, lambda colors: colors + cast(delta, colors.dtype))


def random_brightness(image: TensorLike, max_delta: float, seed: int | None = None) -> Tensor:
    """Adjust the brightness by a random amount.

    Args:
        image: Any shape, a real dtype; integers are taken as colours in [0, 1] meanwhile.
        max_delta: The amount lies between ``-max_delta`` and `max_delta`.
        seed: Seed of the operation.

    Returns:
        Same shape and dtype.

    Examples:
        >>> image = session.run(tf.image.random_brightness(tf.ones([2, 2, 3]), max_delta=0.1))
        >>> image.shape, abs(image - 1).max() < 0.11
        ((2, 2, 3), np.True_)
    """
    if max_delta < 0:
        raise InvalidArgumentError(f"random_brightness: max_delta is {max_delta}, expected at least 0")
    return adjust_brightness(image, random_uniform([], -max_delta, max_delta, seed=seed))


def adjust_contrast(images: TensorLike, contrast_factor: TensorLike) -> Tensor:
    """Move the colours of each image and channel away from their mean, or towards it.

    Args:
        images: ``[..., height, width, channels]``, a real dtype.
        contrast_factor: By which to multiply distances from the mean, a scalar.

    Returns:
        Same shape and dtype. An image of float64 is computed in float64; TensorFlow rounds it to float32.
    """

    def change(colors: Tensor) -> Tensor:
        mean = reduce_mean(colors, [-3, -2], keepdims=True)
        return (colors - mean) * cast(factor, colors.dtype) + mean

    with get_default_graph().name_scope("adjust_contrast"):
        factor = convert_to_tensor(contrast_factor, dtypes.float32)
        factor.shape.assert_has_rank(0)
        return _in_floats(images, change)


def random_contrast(image: TensorLike, lower: float, upper: float, seed: int | None = None) -> Tensor:
    """Adjust the contrast by a random factor.

    Args:
        image: ``[..., height, width, channels]``, a real dtype.
        lower: Lower bound of the factor, at least 0.
        upper: Upper bound of the factor.
        seed: Seed of the operation.

    Returns:
        Same shape and dtype.

    Examples:
        >>> session.run(tf.image.random_contrast(tf.ones([2, 2, 3]), lower=0.5, upper=1.5)).shape
        (2, 2, 3)
    """
    return adjust_contrast(image, _random_factor("random_contrast", lower, upper, seed))


def _random_factor(op: str, lower: float, upper: float, seed: int | None) -> Tensor:
    if not 0 <= lower < upper:
        raise InvalidArgumentError(f"{op}: bounds {lower} and {upper}, expected 0 <= lower < upper")
    return random_uniform([], lower, upper, seed=seed)


def adjust_gamma(image: TensorLike, gamma: float | Tensor = 1, gain: TensorLike = 1) -> Tensor:
    """Compute ``gain * image ** gamma`` of colours in [0, 1]; the step fails for a `gamma` below 0.

    Args:
        image: Any shape, a real dtype.
        gamma: The exponent, a scalar of at least 0.
        gain: The factor, a scalar.

    Returns:
        Same shape and dtype. An image of float64 is computed in float64; TensorFlow rounds it to float32.
    """
    known = constant_value(gamma) if isinstance(gamma, Tensor) else gamma
    if known is not None and known < 0:
        raise InvalidArgumentError(f"adjust_gamma: gamma is {known}, expected at least 0")
    with get_default_graph().name_scope("adjust_gamma"):
        if isinstance(gamma, Tensor) and known is None:
            checked = Assert(greater_equal(gamma, cast(0, gamma.dtype)), ["adjust_gamma: gamma must be at least 0"])
            with control_dependencies([checked]):
                gamma = identity(gamma)
        return _in_floats(image, lambda colors: multiply(gain, pow(colors, gamma)))


def adjust_hue(image: TensorLike, delta: TensorLike, name: str | None = None) -> Tensor:
    """Turn the hue of the colours of an image.

    Args:
        image: ``[..., height, width, 3]``, a real dtype, RGB.
        delta: By which part of the circle, a scalar in [-1, 1].
        name: Name scope of the operations.

    Returns:
        Same shape and dtype. An image of float64 is computed in float64; TensorFlow rounds it to float32.
    """
    with get_default_graph().name_scope(name or "adjust_hue"):
        return _in_floats(image, lambda colors: add_op(ADJUST_HUE, colors, convert_to_tensor(delta, dtypes.float32)))


@widened
def _adjust_hue_kernel(ctx: KernelContext, rgb: Array, delta: Array, out: Array | None = None) -> Array:
    _check_colors(rgb, 3)
    xp, turn = ctx.xp, delta.astype(rgb.dtype)

    def change(red: Array, green: Array, blue: Array) -> tuple[Array, Array, Array]:
        hue, chroma, value = _hue(xp, red, green, blue)
        turned = hue + turn
        return _turned_to(xp, turned - xp.floor(turned), chroma, value - chroma)

    return _map_colors(xp, change, rgb, out)


ADJUST_HUE = register(
    OpDef(
        name="AdjustHue",
        inputs=("images: T", "delta: float32"),
        outputs=("output: T",),
        types={"T": dtypes.FLOATS},
        shape=_adjusted_shape,
        kernels=on_every_device(out_kernel(_adjust_hue_kernel)),
    )
)


def random_hue(image: TensorLike, max_delta: float, seed: int | None = None) -> Tensor:
    """Turn the hue by a random amount.

    Args:
        image: ``[..., 3]``, a real dtype, RGB.
        max_delta: The amount lies between ``-max_delta`` and `max_delta`, at most 0.5.
        seed: Seed of the operation.

    Returns:
        Same shape and dtype.

    Examples:
        >>> session.run(tf.image.random_hue(tf.ones([2, 2, 3]), max_delta=0.1)).shape
        (2, 2, 3)
    """
    if not 0 <= max_delta <= 0.5:
        raise InvalidArgumentError(f"random_hue: max_delta is {max_delta}, expected a number in [0, 0.5]")
    return adjust_hue(image, random_uniform([], -max_delta, max_delta, seed=seed))


def adjust_saturation(image: TensorLike, saturation_factor: TensorLike, name: str | None = None) -> Tensor:
    """Multiply the saturation of the colours of an image.

    Args:
        image: ``[..., height, width, 3]``, a real dtype, RGB.
        saturation_factor: The factor, a scalar.
        name: Name scope of the operations.

    Returns:
        Same shape and dtype. An image of float64 is computed in float64; TensorFlow rounds it to float32.
    """
    with get_default_graph().name_scope(name or "adjust_saturation"):
        return _in_floats(
            image,
            lambda colors: add_op(ADJUST_SATURATION, colors, convert_to_tensor(saturation_factor, dtypes.float32)),
        )


@widened
def _adjust_saturation_kernel(ctx: KernelContext, rgb: Array, scale: Array, out: Array | None = None) -> Array:
    _check_colors(rgb, 3)
    xp, factor = ctx.xp, scale.astype(rgb.dtype)

    def change(red: Array, green: Array, blue: Array) -> tuple[Array, Array, Array]:
        hue, saturation, value = _hsv(xp, red, green, blue)
        return _rgb(xp, hue, xp.clip(saturation * factor, 0, 1), value)

    return _map_colors(xp, change, rgb, out)


ADJUST_SATURATION = register(
    OpDef(
        name="AdjustSaturation",
        inputs=("images: T", "scale: float32"),
        outputs=("output: T",),
        types={"T": dtypes.FLOATS},
        shape=_adjusted_shape,
        kernels=on_every_device(out_kernel(_adjust_saturation_kernel)),
    )
)


def random_saturation(image: TensorLike, lower: float, upper: float, seed: int | None = None) -> Tensor:
    """Multiply the saturation by a random factor.

    Args:
        image: ``[..., 3]``, a real dtype, RGB.
        lower: Lower bound of the factor, at least 0.
        upper: Upper bound of the factor.
        seed: Seed of the operation.

    Returns:
        Same shape and dtype.

    Examples:
        >>> session.run(tf.image.random_saturation(tf.ones([2, 2, 3]), lower=0.5, upper=1.5)).shape
        (2, 2, 3)
    """
    return adjust_saturation(image, _random_factor("random_saturation", lower, upper, seed))


def per_image_standardization(image: TensorLike) -> Tensor:
    """Scale each image to mean 0 and variance 1.

    The deviation that is divided by is at least ``1 / sqrt(number of elements)``, so that uniform images stay finite.

    Args:
        image: ``[height, width, channels]`` or ``[batch, height, width, channels]``, a real dtype.

    Returns:
        The same shape, float32 (float16 for float16).

    Examples:
        >>> session.run(tf.image.per_image_standardization([[[1.0], [3.0]]]))
        array([[[-1.],
                [ 1.]]], dtype=float32)
    """
    image = image_tensor("per_image_standardization", image)
    with get_default_graph().name_scope("per_image_standardization") as scope:
        dtype = image.dtype if image.dtype is dtypes.float16 else dtypes.float32
        axes = [-3, -2, -1]
        count = reduce_prod(cast(shape(image)[-3:], dtypes.float32))
        wide = cast(image, dtypes.float32)
        deviation = sqrt(reduce_variance(wide, axes, keepdims=True))
        centred = wide - reduce_mean(wide, axes, keepdims=True)
        return cast(truediv(centred, maximum(deviation, rsqrt(count)), scope), dtype)
