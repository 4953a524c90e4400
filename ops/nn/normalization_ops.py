"""Normalization: by length, by mean and variance over a batch, and by the activity of neighbouring channels."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.arguments import by_either_name, none_is_default, whole_part
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.dtypes import DTypeLike
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.op_def import (
    Array,
    ArrayModule,
    KernelContext,
    OpDef,
    on_every_device,
    out_kernel,
    register,
)
from tfray.framework.shape_functions import all_inputs_alike
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.shape_ops import cast, reshape, squeeze
from tfray.ops.arrays.shape_ops import shape as shape_of
from tfray.ops.kernels.compiled_rows import can_compute
from tfray.ops.kernels.gpu.device_constants import constant
from tfray.ops.kernels.precision import widened
from tfray.ops.kernels.products import matrix_product
from tfray.ops.kernels.tiles import buffer, for_each_rows
from tfray.ops.math.arithmetic_ops import (
    add,
    maximum,
    multiply,
    rsqrt,
    square,
    squared_difference,
    subtract,
)
from tfray.ops.math.reduction_ops import reduce_mean, reduce_sum
from tfray.ops.nn.fast_normalization import local_response

# -- length, mean and variance -------------------------------------------------------------------------


def l2_normalize(
    x: TensorLike,
    axis: TensorLike | None = None,
    epsilon: float = 1e-12,
    name: str | None = None,
    dim: TensorLike | None = None,
) -> Tensor:
    """Scale vectors to length 1: ``x / sqrt(max(sum(x ** 2), epsilon))``.

    Args:
        x: Shape ``[...]``, a float dtype.
        axis: The dimension, or dimensions, that make one vector; all when None.
        epsilon: Least squared length to divide by.
        name: Name of the operation.
        dim: Old name of `axis`.

    Returns:
        Same shape and dtype.

    Examples:
        >>> session.run(tf.nn.l2_normalize([[3.0, 4.0], [0.0, 2.0]], axis=1))
        array([[0.6, 0.8],
               [0. , 1. ]], dtype=float32)
    """
    x = convert_to_tensor(x)
    with get_default_graph().name_scope(name or "l2_normalize") as scope:
        axis = by_either_name("l2_normalize", axis=axis, dim=dim)
        squared_length = reduce_sum(square(x), axis, True)
        return multiply(x, rsqrt(maximum(squared_length, epsilon)), scope)


def moments(
    x: TensorLike,
    axes: TensorLike,
    shift: TensorLike | None = None,
    name: str | None = None,
    keep_dims: bool | None = None,
    keepdims: bool | None = None,
) -> tuple[Tensor, Tensor]:
    """Compute mean and variance over dimensions.

    Args:
        x: Shape ``[...]``, a float dtype. Half precision is computed in float32.
        axes: The dimensions to reduce, an integer vector (a list).
        shift: Not used; for TensorFlow 1 programs.
        name: Name of the operation.
        keep_dims: Old name of `keepdims`.
        keepdims: Keep the reduced dimensions, with size 1: the shape then has as many as that of `x`.

    Returns:
        The mean and the (biased) variance: the shape of `x` without the dimensions, the same dtype. As in TensorFlow,
        an empty list of dimensions leaves out those of size 1.

    Examples:
        >>> session.run(tf.nn.moments(tf.constant([[1.0, 2.0], [3.0, 6.0]]), axes=[0]))
        (array([2., 4.], dtype=float32), array([1., 4.], dtype=float32))
    """
    x = convert_to_tensor(x)
    keep = bool(by_either_name("moments", keepdims=keepdims, keep_dims=keep_dims))
    with get_default_graph().name_scope(name or "moments"):
        wide = cast(x, dtypes.float32) if x.dtype.size == 2 else x
        mean = reduce_mean(wide, axes, True, "mean")
        # What is returned has TensorFlow's names: moving averages are variables that are named after them.
        keeps_all = not keep and isinstance(axes, (list, tuple)) and not axes
        kept = keep or keeps_all
        variance = reduce_mean(squared_difference(wide, mean), axes, kept, "variance" if kept else "Squeeze_1")
        if keeps_all:
            variance = squeeze(variance, name="Squeeze_1")
        if not keep:
            mean = reshape(mean, shape_of(variance), "Squeeze")
            mean.set_shape(variance.shape)
        return cast(mean, x.dtype), cast(variance, x.dtype)


def batch_normalization(
    x: TensorLike,
    mean: TensorLike,
    variance: TensorLike,
    offset: TensorLike | None,
    scale: TensorLike | None,
    variance_epsilon: TensorLike,
    name: str | None = None,
) -> Tensor:
    """Compute ``(x - mean) / sqrt(variance + variance_epsilon) * scale + offset``.

    Args:
        x: Shape ``[...]``, a float dtype.
        mean: A shape that broadcasts to that of `x`.
        variance: Likewise.
        offset: Likewise; may be None.
        scale: Likewise; may be None.
        variance_epsilon: A small scalar against division by 0.
        name: Name of the operation.

    Returns:
        Same shape and dtype as `x`.

    Examples:
        >>> x, mean, variance = tf.constant([[1.0, 2.0], [3.0, 6.0]]), [2.0, 4.0], [1.0, 4.0]
        >>> session.run(tf.nn.batch_normalization(x, mean, variance, offset=10.0, scale=None, variance_epsilon=0.0))
        array([[ 9.,  9.],
               [11., 11.]], dtype=float32)
    """
    with get_default_graph().name_scope(name or "batchnorm"):
        variance = float(variance) if isinstance(variance, int) else variance
        factor = rsqrt(add(variance, variance_epsilon, "add"))
        if scale is not None:
            factor = multiply(factor, scale, "mul")
        # The statistics of images in half precision are float32.
        x = convert_to_tensor(x)
        scaled, shift = multiply(x, cast(factor, x.dtype), "mul_1"), multiply(mean, factor, "mul_2")
        shift = -shift if offset is None else subtract(offset, shift, "sub")
        return add(scaled, cast(shift, x.dtype), "add_1")


# -- by neighbouring channels --------------------------------------------------------------------------


@none_is_default
def local_response_normalization(
    input: TensorLike,
    depth_radius: int = 5,
    bias: float = 1,
    alpha: float = 1,
    beta: float = 0.5,
    name: str | None = None,
) -> Tensor:
    """Divide every element by a power of the activity of its neighbours along the channels.

    Args:
        input: ``[batch, height, width, channels]``, a float dtype.
        depth_radius: How many channels to either side count as neighbours.
        bias: Added to the activity.
        alpha: Factor on the sum of squares.
        beta: The power.
        name: Name of the operation.

    Returns:
        ``input / (bias + alpha * sum of squares of the neighbours) ** beta``, same shape.

    Examples:
        >>> session.run(tf.nn.lrn(tf.ones([1, 1, 1, 3]), depth_radius=1))
        array([[[[0.57735026, 0.5       , 0.57735026]]]], dtype=float32)
    """
    if whole_part(depth_radius) < 0:
        raise InvalidArgumentError(f"lrn: depth_radius is {depth_radius}, expected at least 0")
    attrs = {"depth_radius": int(depth_radius), "bias": float(bias), "alpha": float(alpha), "beta": float(beta)}
    return add_op(LRN, input, name=name, **attrs)


lrn = local_response_normalization


@lru_cache(maxsize=32)
def _band(channels: int, radius: int, dtype: DTypeLike) -> Array:
    """The matrix that sums neighbours: ones near the diagonal. A product with it beats adding shifted copies."""
    index = np.arange(channels)
    return (np.abs(index[:, None] - index) <= radius).astype(dtype)


def _activity(ctx: KernelContext, images: Array, out: Array) -> Array:
    """Write ``bias + alpha * sum of squares of the neighbours`` to `out`."""
    xp, number = ctx.xp, images.dtype.type
    band = constant(xp, _band, images.shape[1], ctx.attr("depth_radius"), images.dtype)
    squares = xp.multiply(images, images, out=buffer(xp, "squares", images.shape, images.dtype))
    matrix_product(xp, squares, band, out)
    xp.multiply(out, number(ctx.attr("alpha")), out=out)
    return xp.add(out, number(ctx.attr("bias")), out=out)


def _divide_by_power(xp: ArrayModule, dividend: Array, base: Array, power: float, out: Array) -> None:
    """Write ``dividend / base ** power`` to `out`, which may be `base`. Roots are many times as fast as powers."""
    if power == 0.75:
        root = xp.sqrt(base, out=buffer(xp, "root", base.shape, base.dtype))
        xp.multiply(root, xp.sqrt(root), out=out)
    elif power == 0.5:
        xp.sqrt(base, out=out)
    elif power != 1:
        xp.power(base, base.dtype.type(power), out=out)
    elif out is not base:
        out[...] = base
    xp.divide(dividend, out, out=out)


def _lrn_kernel(ctx: KernelContext, images: Array, out: Array | None = None) -> Array:
    xp = ctx.xp
    if out is None:
        out = xp.empty(images.shape, images.dtype)
    if out.size == 0:
        return out
    if can_compute(xp, images):
        return local_response(ctx, "normalize", [images], out)
    rows, out_rows = (array.reshape(-1, images.shape[-1]) for array in (images, out))

    def work(part: slice) -> None:
        activity = _activity(ctx, rows[part], out_rows[part])
        _divide_by_power(xp, rows[part], activity, ctx.attr("beta"), activity)

    for_each_rows(xp, work, rows)
    return out


def _lrn_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    attrs = {name: op.attr(name) for name in _LRN_ATTRS}
    return [add_op(LRN_GRAD, d_output, op.inputs[0], op.outputs[0], **attrs)]


def _image_shape(op: Operation) -> list[TensorShape]:
    return [all_inputs_alike(op)[0].with_rank(4)]


_LRN_ATTRS: Final = ("depth_radius", "bias", "alpha", "beta")

LRN = register(
    OpDef(
        name="LRN",
        inputs=("input: T",),
        outputs=("output: T",),
        attrs=_LRN_ATTRS,
        types={"T": dtypes.FLOATS},
        shape=_image_shape,
        kernels=on_every_device(out_kernel(widened(_lrn_kernel))),
        gradient=_lrn_gradient,
    )
)


def _lrn_grad_kernel(
    ctx: KernelContext, d_outputs: Array, images: Array, outputs: Array, out: Array | None = None
) -> Array:
    """With s the activity and y = x / s ** beta: ``dy / s ** beta - 2 alpha beta x * sum of neighbours' dy y / s``."""
    xp, alpha, beta = ctx.xp, ctx.attr("alpha"), ctx.attr("beta")
    if out is None:
        out = xp.empty(images.shape, images.dtype)
    if out.size == 0:
        return out
    if can_compute(xp, images, d_outputs, outputs):
        return local_response(ctx, "differentiate", [d_outputs, images, outputs], out)
    d_rows, rows, y_rows, out_rows = (a.reshape(-1, images.shape[-1]) for a in (d_outputs, images, outputs, out))
    band = constant(xp, _band, images.shape[-1], ctx.attr("depth_radius"), images.dtype)

    def work(part: slice) -> None:
        x, result = rows[part], out_rows[part]
        activity = _activity(ctx, x, buffer(xp, "activity", x.shape, x.dtype))
        share = xp.multiply(d_rows[part], y_rows[part], out=buffer(xp, "share", x.shape, x.dtype))
        xp.divide(share, activity, out=share)
        neighbours = matrix_product(xp, share, band, buffer(xp, "neighbours", x.shape, x.dtype))
        xp.multiply(neighbours, x, out=neighbours)
        xp.multiply(neighbours, x.dtype.type(2 * alpha * beta), out=neighbours)
        _divide_by_power(xp, d_rows[part], activity, beta, result)
        xp.subtract(result, neighbours, out=result)

    for_each_rows(xp, work, rows)
    return out


LRN_GRAD = register(
    OpDef(
        name="LRNGrad",
        inputs=("input_grads: T", "input_image: T", "output_image: T"),
        outputs=("output: T",),
        attrs=_LRN_ATTRS,
        types={"T": dtypes.FLOATS},
        shape=_image_shape,
        kernels=on_every_device(out_kernel(widened(_lrn_grad_kernel))),
    )
)
