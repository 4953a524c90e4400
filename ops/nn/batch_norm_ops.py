"""Batch normalization of images in one operation, with the relu that follows it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import (
    Array,
    ArrayModule,
    Kernel,
    KernelContext,
    OpDef,
    on_every_device,
    register,
)
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.broadcast_ops import zeros_like
from tfray.ops.arrays.shape_ops import cast, reshape
from tfray.ops.arrays.shape_ops import shape as shape_of
from tfray.ops.arrays.shape_ops import size as size_of
from tfray.ops.kernels import sums
from tfray.ops.kernels.precision import is_half
from tfray.ops.kernels.tiles import CPU_TILE_BYTES, LARGE_ELEMENTS, buffer, cut, for_each_rows, run_tiles
from tfray.ops.kernels.windows import checked_layout, static_image_sizes
from tfray.ops.math.arithmetic_ops import (
    add,
    add_n,
    maximum,
    multiply,
    realdiv,
    rsqrt,
    square,
    subtract,
)
from tfray.ops.math.reduction_ops import reduce_mean, reduce_sum
from tfray.ops.nn.device import device_kernels
from tfray.ops.nn.fast_normalization import Columns, Gate, can_normalize

_VOLUMES: Final = {"NDHWC": ("NHWC", (0, None, 3, 4)), "NCDHW": ("NCHW", (0, 1, None, 4))}
"""The layout of images that volumes are taken for, and which of their sizes it has; None is the rest."""


def fused_batch_norm(
    x: TensorLike,
    scale: TensorLike,
    offset: TensorLike,
    mean: TensorLike | None = None,
    variance: TensorLike | None = None,
    epsilon: float = 0.001,
    data_format: str = "NHWC",
    is_training: bool = True,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalize every channel to mean 0 and variance 1, then scale and shift it.

    Args:
        x: ``[batch, height, width, channels]``, or the same in the order of `data_format`; a float dtype. Volumes have
            a depth before their height.
        scale: ``[channels]``, float32 or float64.
        offset: ``[channels]``.
        mean: ``[channels]``, for inference; not to be given in training.
        variance: Likewise.
        epsilon: Small number added to the variance, at least 1.001e-5.
        data_format: ``"NHWC"``, ``"NCHW"``, ``"NDHWC"`` or ``"NCDHW"``.
        is_training: Normalize by the mean and variance of `x` rather than by those given.
        name: Name of the operation.

    Returns:
        The normalized images, of the shape of `x`; the mean and the variance, of shape ``[channels]``. In training that
        is the unbiased variance (for running averages).

    Raises:
        InvalidArgumentError: `mean` and `variance` missing for inference.

    References:
        Ioffe and Szegedy, Batch Normalization, 2015 (arXiv:1502.03167).
    """
    name = name or "FusedBatchNormV3"
    if is_training != (mean is None) or is_training != (variance is None):
        raise InvalidArgumentError(
            "fused_batch_norm: give mean and variance for inference (is_training=False), and only then"
        )
    x, scale = convert_to_tensor(x), convert_to_tensor(scale)
    if data_format in _VOLUMES:
        layout, flat = _VOLUMES[data_format]
        sizes = shape_of(x)
        images = reshape(x, [-1 if place is None else sizes[place] for place in flat])
        y, *statistics = fused_batch_norm(images, scale, offset, mean, variance, epsilon, layout, is_training, name)
        y = reshape(y, sizes)
        y.set_shape(x.shape)
        return y, statistics[0], statistics[1]
    epsilon = max(float(epsilon), 1.001e-5)
    if x.dtype is not scale.dtype and not is_half(x.dtype.numpy):
        y, *statistics = fused_batch_norm(
            cast(x, scale.dtype),
            scale,
            offset,
            mean=mean,
            variance=variance,
            epsilon=epsilon,
            data_format=data_format,
            is_training=is_training,
            name=name,
        )
        return cast(y, x.dtype), statistics[0], statistics[1]
    nothing = np.zeros(0, scale.dtype.numpy)
    given = [nothing if value is None else value for value in (mean, variance)]
    outputs = add_op(
        FUSED_BATCH_NORM,
        x,
        scale,
        offset,
        *given,
        name=name,
        epsilon=epsilon,
        data_format=checked_layout("fused_batch_norm", data_format),
        is_training=bool(is_training),
    )
    return outputs[0], outputs[1], outputs[2]


class Channels:
    """Statistics and elementwise work per channel on images of either layout.

    The work is cut along the first dimension of a `stack`: rows of pixels of NHWC images, whole NCHW images.
    """

    def __init__(self, xp: ArrayModule, shape: tuple[int, ...], layout: str) -> None:
        self.xp = xp
        self.is_last = layout == "NHWC"
        self.width, self.channels = shape[2:] if self.is_last else (shape[3], shape[1])
        self.rows = shape[0] * shape[1] if self.is_last else shape[0] * shape[2]
        self.count = self.rows * self.width

    def sum(self, array: Array) -> Array:
        """Sum of the elements of each channel of a `stack`, ``[channels]``."""
        if self.xp is np and self.is_last and array.size and array.flags.c_contiguous:
            return np.add.reduce(sums.of_rows(array.reshape(len(array), -1)).reshape(-1, self.channels), axis=0)
        return array.sum(axis=(0, 1) if self.is_last else (0, 2, 3))

    def spread(self, per_channel: Array) -> Array:
        """A vector of the channels in a shape that broadcasts to the images."""
        if not self.is_last:
            return per_channel.reshape(-1, 1, 1)
        # Repeated along a row of pixels, so that NumPy's inner loop has one long run in place of many short ones.
        return self.xp.tile(per_channel, (self.width, 1))

    def stack(self, images: Array) -> Array:
        """The images in the form in which parts of them are computed: ``[rows, width, channels]``, or as they are."""
        return images.reshape(self.rows, self.width, self.channels) if self.is_last else images

    def moments(self, images: Array) -> tuple[Array, Array]:
        """Mean and biased variance of each channel of a `stack`, in two passes."""
        xp, dtype = self.xp, images.dtype
        if self.count == 0:
            nothing = xp.full(self.channels, np.nan, dtype)
            return nothing, nothing
        mean = self.sum(images) / dtype.type(self.count)
        parts = self.parts(len(images), images.nbytes)
        sums, means = xp.zeros((len(parts), self.channels), dtype), self.spread(mean)

        def work(index: int) -> None:
            part = images[parts[index]]
            centred = buffer(xp, "centred", part.shape, dtype)
            xp.subtract(part, means, out=centred)
            sums[index] = self.sum(xp.multiply(centred, centred, out=centred))

        self.run(work, len(parts), images.size)
        return mean, sums.sum(axis=0) / dtype.type(self.count)

    def parts(self, count: int, size_bytes: int) -> list[slice]:
        """Ranges of the `count` entries of a `stack`: on a CPU of a size for the cache, with three more arrays."""
        if self.xp is not np:
            return [slice(0, count)]
        return cut(count, min(count, max(2, -(-size_bytes // (CPU_TILE_BYTES // 8)))))

    def run(self, work: Callable[..., None], count: int, elements: int) -> None:
        """Run ``work(0)`` to ``work(count - 1)``, several at once where that pays."""
        run_tiles(work, count, elements >= LARGE_ELEMENTS)


_Bounds = tuple[float, float]
_NO_BOUNDS: Final = -math.inf, math.inf
_BOUNDS: Final = {"Relu": (0.0, math.inf), "Relu6": (0.0, 6.0)}
"""Between what an activation holds the normalized images."""


def _fused_batch_norm_kernel(
    ctx: KernelContext,
    images: Array,
    scale: Array,
    offset: Array,
    mean: Array,
    variance: Array,
    bounds: _Bounds = _NO_BOUNDS,
) -> list[Array]:
    xp, dtype, shape = ctx.xp, images.dtype, images.shape
    statistics = () if ctx.attr("is_training") else (mean, variance)
    if device_kernels.has_kernels(xp, images) and device_kernels.has_kernels(xp, scale, offset, *statistics):
        return _device_batch_norm(ctx, images, (scale, offset, mean, variance), bounds)
    if is_half(dtype):
        wide = images.astype(np.float32)
        y, *others = _fused_batch_norm_kernel(ctx, wide, scale, offset, mean, variance, bounds)
        return [y.astype(dtype), *others]
    compiled = Columns(images) if can_normalize(xp, ctx.attr("data_format"), images) else None
    by = Channels(xp, shape, ctx.attr("data_format"))
    stack = by.stack(images)
    unbiased = variance
    if ctx.attr("is_training"):
        mean, variance = by.moments(stack) if compiled is None else compiled.moments(images)
        unbiased = variance * dtype.type(by.count / max(by.count - 1, 1))
    factor = scale / xp.sqrt(variance + dtype.type(ctx.attr("epsilon")))
    if compiled is not None:
        return [compiled.normalized(images, mean, factor, offset, bounds), mean, unbiased, mean, variance]
    images = stack
    out = xp.empty(images.shape, dtype)
    parts = by.parts(len(images), images.nbytes)
    means, factors, offsets = (by.spread(vector) for vector in (mean, factor, offset))

    def work(index: int) -> None:
        part = out[parts[index]]
        # Centre first: x * factor - mean * factor would cancel badly where the mean is large.
        xp.subtract(images[parts[index]], means, out=part)
        xp.multiply(part, factors, out=part)
        xp.add(part, offsets, out=part)
        if bounds != _NO_BOUNDS:
            xp.clip(part, dtype.type(bounds[0]), dtype.type(bounds[1]), out=part)

    by.run(work, len(parts), images.size)
    return [out.reshape(shape), mean, unbiased, mean, variance]


def _device_batch_norm(
    ctx: KernelContext, images: Array, given: tuple[Array, Array, Array, Array], bounds: _Bounds
) -> list[Array]:
    scale, offset, mean, variance = given
    layout, is_training = ctx.attr("data_format"), ctx.attr("is_training")
    if is_training:
        mean, variance = device_kernels.channel_moments(ctx.xp, images, layout)
    vectors = (mean, variance, scale, offset)
    count = images.size // max(scale.size, 1) if is_training else 2
    out, unbiased = device_kernels.normalized(ctx.xp, images, vectors, layout, ctx.attr("epsilon"), count, bounds)
    return [out, mean, unbiased if is_training else variance, mean, variance]


_NORM_TYPES: Final = {"T": dtypes.FLOATS, "U": (dtypes.float32, dtypes.float64)}
"""Of the images, and of what there is for each channel."""


def _check_norm_types(op: Operation, scale: int) -> None:
    images, channels = op.inputs[0].dtype, op.inputs[scale].dtype
    if channels is not images and not (is_half(images.numpy) and channels is dtypes.float32):
        raise ValueError(f"the images are {images.name}, the scale is {channels.name}: it is float32 for 16-bit images")


def _fused_batch_norm_shape(op: Operation) -> list[TensorShape]:
    _check_norm_types(op, 1)
    layout = op.attr("data_format")
    image = op.inputs[0].shape.with_rank(4)
    channels = TensorShape([static_image_sizes(image, layout)[3]])
    per_channel = op.inputs[1:3] if op.attr("is_training") else op.inputs[1:]
    for tensor in per_channel:
        channels = channels.merge_with(tensor.shape)
    axis = 3 if layout == "NHWC" else 1
    known: list[int | None] = [None] * 4
    known[axis] = channels.sizes[0]
    return [image.merge_with(known), *[channels] * 4]


def _fused_batch_norm_gradient(
    op: Operation, d_images: Tensor | None, d_mean: Tensor | None, d_variance: Tensor | None, *reserved: Any
) -> list[Tensor | None]:
    x, scale, _, mean, variance = op.inputs
    is_training = op.attr("is_training")
    d_x = d_scale = d_offset = None
    if d_images is not None:
        statistics = op.outputs[3:5] if is_training else [mean, variance]
        d_x, d_scale, d_offset = add_op(FUSED_BATCH_NORM_GRAD, d_images, x, scale, *statistics, **_norm_attrs(op))
    if is_training:
        return [_sum([d_x, *_d_statistics(op, d_mean, d_variance)]), d_scale, d_offset, None, None]
    if d_scale is not None and d_offset is not None:
        r = rsqrt(add(variance, op.attr("epsilon")))
        d_mean = _sum([d_mean, multiply(d_offset, multiply(scale, -r))])
        d_variance = _sum([d_variance, multiply(multiply(d_scale, -0.5), multiply(scale, square(r)))])
    return [d_x, d_scale, d_offset, d_mean, d_variance]


def _sum(terms: list[Tensor | None]) -> Tensor | None:
    flowing = [term for term in terms if term is not None]
    return add_n(flowing) if flowing else None


def _norm_attrs(op: Operation) -> dict[str, Any]:
    return {name: op.attr(name) for name in ("epsilon", "data_format", "is_training")}


def _per_channel(op: Operation, vector: Tensor) -> Tensor:
    """A vector of the channels in a shape that broadcasts to the images."""
    return vector if op.attr("data_format") == "NHWC" else reshape(vector, [-1, 1, 1])


def _d_statistics(op: Operation, d_mean: Tensor | None, d_variance: Tensor | None) -> list[Tensor | None]:
    """Gradient of the images from the gradients of the returned mean and unbiased variance."""
    scale = op.inputs[1]
    x = cast(op.inputs[0], scale.dtype)
    count = realdiv(cast(size_of(x), x.dtype), cast(size_of(scale), x.dtype))
    terms: list[Tensor | None] = []
    if d_mean is not None:
        share = _per_channel(op, realdiv(d_mean, count))
        terms.append(add(share, zeros_like(x)))
    if d_variance is not None:
        share = _per_channel(op, realdiv(multiply(d_variance, 2), maximum(subtract(count, 1), 1)))
        terms.append(multiply(subtract(x, _per_channel(op, op.outputs[1])), share))
    return [None if term is None else cast(term, op.inputs[0].dtype) for term in terms]


FUSED_BATCH_NORM = register(
    OpDef(
        name="FusedBatchNorm",
        inputs=("x: T", "scale: U", "offset: U", "mean: U", "variance: U"),
        outputs=("y: T", "batch_mean: U", "batch_variance: U", "reserve_space_1: U", "reserve_space_2: U"),
        attrs=("epsilon", "data_format", "is_training"),
        types=_NORM_TYPES,
        shape=_fused_batch_norm_shape,
        kernels=on_every_device(Kernel(_fused_batch_norm_kernel, makes_new=lambda op: bool(op.attrs["is_training"]))),
        gradient=_fused_batch_norm_gradient,
    )
)


def _activated_batch_norm_kernel(
    ctx: KernelContext, images: Array, scale: Array, offset: Array, mean: Array, variance: Array
) -> list[Array]:
    bounds = _BOUNDS[ctx.attr("activation_mode")]
    return _fused_batch_norm_kernel(ctx, images, scale, offset, mean, variance, bounds)


ACTIVATED_BATCH_NORM = register(
    OpDef(
        name="_FusedBatchNormEx",  # made of other operations when a step is compiled (`placement.fuse`)
        inputs=FUSED_BATCH_NORM.inputs,
        outputs=FUSED_BATCH_NORM.outputs,
        attrs=(*FUSED_BATCH_NORM.attrs, "activation_mode"),
        types=_NORM_TYPES,
        shape=_fused_batch_norm_shape,
        kernels=on_every_device(
            Kernel(_activated_batch_norm_kernel, makes_new=lambda op: bool(op.attrs["is_training"]))
        ),
    )
)


def _fused_batch_norm_grad_kernel(
    ctx: KernelContext, d_outputs: Array, images: Array, scale: Array, mean: Array, variance: Array
) -> list[Array]:
    xp, dtype, shape = ctx.xp, images.dtype, images.shape
    if device_kernels.has_kernels(xp, images, d_outputs) and device_kernels.has_kernels(xp, scale, mean, variance):
        layout, epsilon, is_training = (ctx.attr(name) for name in ("data_format", "epsilon", "is_training"))
        vectors = (mean, variance, scale)
        return device_kernels.normalization_gradient(xp, d_outputs, images, vectors, layout, epsilon, is_training)
    if is_half(dtype):
        d_outputs, images = (array.astype(np.float32) for array in (d_outputs, images))
        d_images, *others = _fused_batch_norm_grad_kernel(ctx, d_outputs, images, scale, mean, variance)
        return [d_images.astype(dtype), *others]
    inverse = 1 / xp.sqrt(variance + dtype.type(ctx.attr("epsilon")))
    if can_normalize(xp, ctx.attr("data_format"), images, d_outputs):
        return _compiled_batch_norm_grad(ctx, d_outputs, images, mean, scale, inverse)
    by = Channels(xp, shape, ctx.attr("data_format"))
    images, d_outputs = by.stack(images), by.stack(d_outputs)
    parts = by.parts(len(images), images.nbytes)
    sums = xp.zeros((2, len(parts), by.channels), dtype)
    d_images = xp.empty(images.shape, dtype)
    means, factors = by.spread(mean), by.spread(inverse * scale)

    def centred(index: int) -> Array:
        part = images[parts[index]]
        return xp.subtract(part, means, out=buffer(xp, "centred", part.shape, dtype))

    def sum_up(index: int) -> None:
        part, d_part = centred(index), d_outputs[parts[index]]
        sums[0, index] = by.sum(xp.multiply(part, d_part, out=part))
        sums[1, index] = by.sum(d_part)

    by.run(sum_up, len(parts), images.size)
    d_scale, d_offset = sums[0].sum(axis=0) * inverse, sums[1].sum(axis=0)
    count, is_training = dtype.type(max(by.count, 1)), ctx.attr("is_training")
    slopes, d_means = by.spread(d_scale * inverse / count), by.spread(d_offset / count)

    def differentiate(index: int) -> None:
        part = d_images[parts[index]]
        if is_training:
            x = centred(index)
            xp.multiply(x, slopes, out=x)
            xp.add(x, d_means, out=x)
            xp.subtract(d_outputs[parts[index]], x, out=part)
            xp.multiply(part, factors, out=part)
        else:
            xp.multiply(d_outputs[parts[index]], factors, out=part)

    by.run(differentiate, len(parts), images.size)
    return [d_images.reshape(shape), d_scale, d_offset]


def _compiled_batch_norm_grad(
    ctx: KernelContext,
    d_outputs: Array,
    images: Array,
    mean: Array,
    scale: Array,
    inverse: Array,
    gate: Gate | None = None,
) -> list[Array]:
    columns = Columns(images)
    d_offset, products = columns.sums(d_outputs, images, mean, gate)
    d_scale, factors = products * inverse, inverse * scale
    count, is_training = np.float32(images.size // len(mean)), ctx.attr("is_training")
    slopes, shifts = (
        (d_scale * inverse / count, d_offset / count) if is_training else (np.zeros_like(mean), np.zeros_like(mean))
    )
    d_images = columns.differentiated(d_outputs, images, mean, slopes, shifts, factors, gate)
    return [d_images, d_scale, d_offset]


def _fused_batch_norm_grad_shape(op: Operation) -> list[TensorShape]:
    _check_norm_types(op, 2)
    images = op.inputs[0].shape.merge_with(op.inputs[1].shape).with_rank(4)
    channels = TensorShape([static_image_sizes(images, op.attr("data_format"))[3]])
    channels = channels.merge_with(op.inputs[2].shape)
    return [images, channels, channels]


def _fused_batch_norm_grad_gradient(
    op: Operation, u: Tensor | None, p: Tensor | None, q: Tensor | None
) -> list[Tensor | None]:
    """Second derivatives of batch normalization.

    With n = normalized images, d = gradient of the outputs, r = 1 / sqrt(variance + epsilon), <> = mean over a
    channel and N its number of elements, the forward operation computes in training:

        d_x = scale r (d - <d> - n <d n>),    d_scale = N <d n>,    d_offset = N <d>

    Given the gradients u, p, q of these three, ``sum(u d_x) + p d_scale + q d_offset`` is differentiated by d and
    scale, and by x through n and r; mean and variance are functions of x. At inference d_x = scale r d, and mean
    and variance are inputs of their own.
    """
    images, scale, mean, variance = op.inputs[1:]
    d, x = (cast(tensor, scale.dtype) for tensor in op.inputs[:2])
    axes = [0, 1, 2] if op.attr("data_format") == "NHWC" else [0, 2, 3]
    zeros = zeros_like(scale)
    u = zeros_like(x) if u is None else cast(u, scale.dtype)
    p, q = (_per_channel(op, zeros if z is None else z) for z in (p, q))
    r = _per_channel(op, rsqrt(add(variance, op.attr("epsilon"))))
    n = multiply(subtract(x, _per_channel(op, mean)), r)
    scale_by_r = multiply(_per_channel(op, scale), r)

    def average(z: Tensor) -> Tensor:
        return _per_channel(op, reduce_mean(z, axes))

    if not op.attr("is_training"):
        d_d = add_n([multiply(scale_by_r, u), multiply(p, n), add(q, zeros_like(x))])
        d_scale = reduce_sum(multiply(multiply(u, d), r), axes)
        p_d_r = multiply(multiply(p, d), r)
        by_r = reduce_sum(add(multiply(multiply(scale_by_r, u), d), multiply(multiply(p, d), n)), axes)
        d_variance = multiply(multiply(by_r, -0.5), realdiv(1, add(variance, op.attr("epsilon"))))
        return [cast(d_d, images.dtype), cast(p_d_r, images.dtype), d_scale, -reduce_sum(p_d_r, axes), d_variance]
    along_d, along_u = average(multiply(d, n)), average(multiply(u, n))
    centred_u = subtract(subtract(u, average(u)), multiply(n, along_u))
    d_d = add(multiply(scale_by_r, centred_u), add(multiply(p, n), q))
    projected = multiply(d, centred_u)
    d_scale = reduce_sum(multiply(projected, r), axes)
    # Differentiate by n first; then by x, through n = (x - mean) r and through the factor r.
    d_n = subtract(multiply(p, d), multiply(scale_by_r, add(multiply(u, along_d), multiply(d, along_u))))
    through_n = multiply(r, subtract(subtract(d_n, average(d_n)), multiply(n, average(multiply(d_n, n)))))
    through_r = multiply(multiply(scale_by_r, r), multiply(n, average(projected)))
    d_x = subtract(through_n, through_r)
    return [cast(d_d, images.dtype), cast(d_x, images.dtype), d_scale, None, None]


FUSED_BATCH_NORM_GRAD = register(
    OpDef(
        name="FusedBatchNormGrad",
        inputs=("y_backprop: T", "x: T", "scale: U", "reserve_space_1: U", "reserve_space_2: U"),
        outputs=("x_backprop: T", "scale_backprop: U", "offset_backprop: U"),
        attrs=("epsilon", "data_format", "is_training"),
        types=_NORM_TYPES,
        shape=_fused_batch_norm_grad_shape,
        kernels=on_every_device(Kernel(_fused_batch_norm_grad_kernel, makes_new=True)),
        gradient=_fused_batch_norm_grad_gradient,
    )
)


def _activated_batch_norm_grad_kernel(
    ctx: KernelContext,
    d_outputs: Array,
    images: Array,
    scale: Array,
    mean: Array,
    variance: Array,
    offset: Array,
    outputs: Array,
) -> list[Array]:
    """As without an activation, for those outputs that it did not hold at a bound."""
    xp, dtype = ctx.xp, outputs.dtype
    low, high = (dtype.type(bound) for bound in _BOUNDS[ctx.attr("activation_mode")])
    last = high if np.isinf(high) else np.nextafter(high, low)
    if device_kernels.has_kernels(xp, images, d_outputs) and device_kernels.has_kernels(xp, scale, mean, variance):
        layout, epsilon, is_training = (ctx.attr(name) for name in ("data_format", "epsilon", "is_training"))
        vectors, gate = (mean, variance, scale), (outputs, float(low), float(last))
        return device_kernels.normalization_gradient(xp, d_outputs, images, vectors, layout, epsilon, is_training, gate)
    if can_normalize(xp, ctx.attr("data_format"), images, d_outputs):
        # Less is read if the outputs are computed anew, as they were.
        root = xp.sqrt(variance + dtype.type(ctx.attr("epsilon")))
        return _compiled_batch_norm_grad(
            ctx, d_outputs, images, mean, scale, 1 / root, Gate(scale / root, offset, low, last)
        )
    passed = xp.empty(d_outputs.shape, dtype)
    d_rows, rows, passed_rows = (array.reshape(-1, images.shape[-1]) for array in (d_outputs, outputs, passed))

    def work(part: slice) -> None:
        is_above, is_below = (buffer(xp, slot, rows[part].shape, bool) for slot in ("gate", "gate2"))
        xp.greater(rows[part], low, out=is_above)
        xp.less_equal(rows[part], last, out=is_below)
        xp.logical_and(is_above, is_below, out=is_above)
        xp.multiply(d_rows[part], is_above, out=passed_rows[part])

    for_each_rows(xp, work, rows)
    return _fused_batch_norm_grad_kernel(ctx, passed, images, scale, mean, variance)


def _activated_batch_norm_grad_shape(op: Operation) -> list[TensorShape]:
    op.inputs[0].shape.merge_with(op.inputs[6].shape)
    return _fused_batch_norm_grad_shape(op)


ACTIVATED_BATCH_NORM_GRAD = register(
    OpDef(
        name="_FusedBatchNormGradEx",  # made of other operations when a step is compiled (`placement.fuse`)
        inputs=(*FUSED_BATCH_NORM_GRAD.inputs, "offset: U", "y: T"),
        outputs=FUSED_BATCH_NORM_GRAD.outputs,
        attrs=ACTIVATED_BATCH_NORM.attrs,
        types=_NORM_TYPES,
        shape=_activated_batch_norm_grad_shape,
        kernels=on_every_device(Kernel(_activated_batch_norm_grad_kernel, makes_new=True)),
    )
)
