"""Rounding, and what is defined by it: whole quotients, remainders; forcing values into a range."""

from __future__ import annotations

from typing import overload

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.convert import add_op, convert_alike, convert_to_tensor
from tfray.framework.graph import Operation, Tensor, get_default_graph, register_operator
from tfray.framework.indexed_slices import IndexedSlices
from tfray.framework.op_def import (
    Array,
    Kernel,
    KernelContext,
    OpDef,
    not_differentiable,
    on_every_device,
    out_kernel,
    register,
)
from tfray.framework.tensor_shape import TensorShape, broadcast_shapes
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.broadcast_ops import sum_to_shape_of
from tfray.ops.arrays.shape_ops import cast
from tfray.ops.kernels.elementwise import binary, unary
from tfray.ops.math.arithmetic_ops import add, multiply, realdiv, subtract
from tfray.ops.math.comparison_ops import greater, less


def floor(x: TensorLike, name: str | None = None) -> Tensor:
    """Round down to whole numbers.

    Args:
        x: Shape ``[...]``, a floating dtype.
        name: Name of the operation.

    Returns:
        Same shape and dtype. No gradient flows: the derivative is 0 almost everywhere.

    Examples:
        >>> session.run(tf.floor([1.7, -1.2]))
        array([ 1., -2.], dtype=float32)
    """
    return add_op(FLOOR, x, name=name)


FLOOR = register(unary("Floor", "floor", dtypes.FLOATS, not_differentiable))


def ceil(x: TensorLike, name: str | None = None) -> Tensor:
    """Round up to whole numbers.

    Args:
        x: Shape ``[...]``, a floating dtype.
        name: Name of the operation.

    Returns:
        Same shape and dtype. No gradient flows: the derivative is 0 almost everywhere.

    Examples:
        >>> session.run(tf.ceil([1.2, -1.7]))
        array([ 2., -1.], dtype=float32)
    """
    return add_op(CEIL, x, name=name)


CEIL = register(unary("Ceil", "ceil", dtypes.FLOATS, not_differentiable))


def rint(x: TensorLike, name: str | None = None) -> Tensor:
    """Round to the nearest whole number, halves to the even one.

    Args:
        x: Shape ``[...]``, a floating dtype.
        name: Name of the operation.

    Returns:
        Same shape and dtype. No gradient flows: the derivative is 0 almost everywhere.
    """
    return add_op(RINT, x, name=name)


RINT = register(unary("Rint", "rint", dtypes.FLOATS, not_differentiable))


def round(x: TensorLike, name: str | None = None) -> Tensor:
    """Round to the nearest whole number, halves to the even one; integers are returned as they are.

    Args:
        x: Shape ``[...]``, an integer or floating dtype.
        name: Name of the operation.

    Returns:
        Same shape and dtype.

    Examples:
        >>> session.run(tf.round([0.5, 1.5, 2.6]))
        array([0., 2., 3.], dtype=float32)
    """
    x = convert_to_tensor(x)
    return x if x.dtype.is_integer else add_op(ROUND, x, name=name)


ROUND = register(unary("Round", "rint", dtypes.FLOATS, not_differentiable))


def _check_divisor(ctx: KernelContext, x: Array, y: Array) -> None:
    # On a GPU the check would wait for the device; there the quotient by 0 is undefined.
    if y.dtype.kind in "iu" and ctx.xp is np and x.size and not (y if y.ndim == 0 else y.all()):
        raise InvalidArgumentError(f"{ctx.op_name}: Integer division by zero")


def floordiv(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Compute ``x // y``: the quotient rounded down.

    Args:
        x: Any shape, an integer or floating dtype.
        y: Same dtype; the shapes broadcast.
        name: Name of the operation.

    Returns:
        The broadcast shape, the same dtype.

    Raises:
        InvalidArgumentError: When run, an integer divisor is 0.

    Examples:
        >>> session.run(tf.floordiv([7, -7], 2))
        array([ 3, -4], dtype=int32)
    """
    return add_op(FLOOR_DIV, x, y, name=name or "floordiv")


def _floor_div_kernel(ctx: KernelContext, x: Array, y: Array, out: Array | None = None) -> Array:
    _check_divisor(ctx, x, y)
    if y.dtype.kind in "iu":
        return ctx.xp.floor_divide(x, y, out=out)
    quotient = ctx.xp.divide(x, y, out=out)  # NumPy's floor_divide makes NaN of infinity
    return ctx.xp.floor(quotient, out=out)


FLOOR_DIV = register(binary("FloorDiv", out_kernel(_floor_div_kernel, (0, 1)), dtypes.REAL, not_differentiable))


def floormod(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Compute ``x % y`` as Python does: the remainder has the sign of `y`.

    Args:
        x: Any shape, an integer or floating dtype.
        y: Same dtype; the shapes broadcast.
        name: Name of the operation.

    Returns:
        The broadcast shape, the same dtype.

    Raises:
        InvalidArgumentError: When run, an integer divisor is 0.

    Examples:
        >>> session.run(tf.mod([7, -7], 3))
        array([1, 2], dtype=int32)
    """
    return add_op(FLOOR_MOD, x, y, name=name)


mod = floormod


def _floor_mod_kernel(ctx: KernelContext, x: Array, y: Array, out: Array | None = None) -> Array:
    _check_divisor(ctx, x, y)
    return ctx.xp.remainder(x, y, out=out)


def _floor_mod_gradient(op: Operation, d_z: Tensor) -> list[Tensor | None]:
    x, y = op.inputs
    return [sum_to_shape_of(d_z, x, y), sum_to_shape_of(-multiply(d_z, floordiv(x, y)), y, x)]


FLOOR_MOD = register(binary("FloorMod", out_kernel(_floor_mod_kernel, (0, 1)), dtypes.REAL, _floor_mod_gradient))


def truncatediv(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Compute the quotient ``x / y`` rounded towards 0, as C does.

    Args:
        x: Any shape, an integer or floating dtype.
        y: Same dtype; the shapes broadcast.
        name: Name of the operation.

    Returns:
        The broadcast shape, the same dtype.

    Raises:
        InvalidArgumentError: When run, an integer divisor is 0.
    """
    return add_op(TRUNCATE_DIV, x, y, name=name)


def _truncate_div_kernel(ctx: KernelContext, x: Array, y: Array) -> Array:
    _check_divisor(ctx, x, y)
    if x.dtype.kind not in "iu":
        return ctx.xp.trunc(ctx.xp.divide(x, y))
    return ctx.xp.floor_divide(x - ctx.xp.fmod(x, y), y)


TRUNCATE_DIV = register(binary("TruncateDiv", Kernel(_truncate_div_kernel), dtypes.REAL, not_differentiable))


def truncatemod(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Compute the remainder of `truncatediv`: it has the sign of `x`.

    Args:
        x: Any shape, an integer or floating dtype.
        y: Same dtype; the shapes broadcast.
        name: Name of the operation.

    Returns:
        The broadcast shape, the same dtype.

    Raises:
        InvalidArgumentError: When run, an integer divisor is 0.
    """
    return add_op(TRUNCATE_MOD, x, y, name=name)


def _truncate_mod_kernel(ctx: KernelContext, x: Array, y: Array, out: Array | None = None) -> Array:
    _check_divisor(ctx, x, y)
    return ctx.xp.fmod(x, y, out=out)


def _truncate_mod_gradient(op: Operation, d_z: Tensor) -> list[Tensor | None]:
    x, y = op.inputs
    return [sum_to_shape_of(d_z, x, y), sum_to_shape_of(-multiply(d_z, truncatediv(x, y)), y, x)]


TRUNCATE_MOD = register(
    binary("TruncateMod", out_kernel(_truncate_mod_kernel, (0, 1)), dtypes.REAL, _truncate_mod_gradient)
)


def div(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Compute ``x / y`` as Python 2 does: integers are divided and rounded down, other numbers not rounded.

    Args:
        x: Any shape, A number dtype.
        y: Same dtype; the shapes broadcast.
        name: Name of the operation.

    Returns:
        The broadcast shape, the same dtype.

    Examples:
        >>> session.run(tf.div([7, 8], 2))
        array([3, 4], dtype=int32)
    """
    with get_default_graph().name_scope(name or "div") as name:
        x, y = convert_alike(x, y)
        return floordiv(x, y, name) if x.dtype.is_integer else realdiv(x, y, name)


@overload
def clip_by_value(  # type: ignore[overload-overlap]  # any object counts as an array
    t: IndexedSlices, clip_value_min: TensorLike, clip_value_max: TensorLike, name: str | None = None
) -> IndexedSlices: ...


@overload
def clip_by_value(
    t: TensorLike, clip_value_min: TensorLike, clip_value_max: TensorLike, name: str | None = None
) -> Tensor: ...


def clip_by_value(
    t: TensorLike | IndexedSlices, clip_value_min: TensorLike, clip_value_max: TensorLike, name: str | None = None
) -> Tensor | IndexedSlices:
    """Force values into a range.

    Args:
        t: Any shape, an integer or floating dtype. Of `IndexedSlices` the rows that are there.
        clip_value_min: Lower bound: a scalar, or of a shape that broadcasts to that of `t`.
        clip_value_max: Upper bound, likewise.
        name: Name of the operation.

    Returns:
        Same shape and dtype as `t`, `IndexedSlices` if it is one; the lower bound, where it is above the upper one.
        Gradients flow to `t` where it is in the range, to the bound elsewhere.

    Examples:
        >>> session.run(tf.clip_by_value([-2.0, 0.5, 3.0], 0.0, 1.0))
        array([0. , 0.5, 1. ], dtype=float32)
    """
    if isinstance(t, IndexedSlices):
        clipped = clip_by_value(t.values, clip_value_min, clip_value_max, name)
        return IndexedSlices(clipped, t.indices, t.dense_shape)
    return add_op(CLIP_BY_VALUE, t, clip_value_min, clip_value_max, name=name or "clip_by_value")


def _clip_by_value_shape(op: Operation) -> list[TensorShape]:
    t, low, high = (tensor.shape for tensor in op.inputs)
    merged = broadcast_shapes(broadcast_shapes(t, low), high)
    if not merged.is_compatible_with(t):
        raise ValueError(f"bounds of shapes {low} and {high} do not broadcast to the shape {t} of the values")
    return [t.merge_with(merged)]


def _clip_by_value_kernel(ctx: KernelContext, t: Array, low: Array, high: Array, out: Array | None = None) -> Array:
    if low.ndim == high.ndim == 0 and t.ndim and t.dtype.char in "fdil" and low <= high:
        return t.clip(low, high, out=out)  # NumPy's fast way with numbers for bounds
    lowered = ctx.xp.minimum(t, high, out=out)
    return ctx.xp.maximum(lowered, low, out=lowered if lowered.ndim else out)


def _clip_by_value_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    t, low, high = op.inputs
    below = cast(less(t, low), d_output.dtype)
    above = cast(greater(t, high), d_output.dtype)
    d_low, d_high = multiply(d_output, below), multiply(d_output, above)
    d_t = subtract(d_output, add(d_low, d_high))
    return [d_t, sum_to_shape_of(d_low, low, t), sum_to_shape_of(d_high, high, t)]


CLIP_BY_VALUE = register(
    OpDef(
        name="ClipByValue",
        inputs=("t: T", "clip_value_min: T", "clip_value_max: T"),
        outputs=("output: T",),
        types={"T": dtypes.REAL},
        shape=_clip_by_value_shape,
        kernels=on_every_device(out_kernel(_clip_by_value_kernel, may_overwrite=(0,))),
        gradient=_clip_by_value_gradient,
    )
)


register_operator("div", div)
register_operator("floordiv", floordiv)
register_operator("mod", floormod)
