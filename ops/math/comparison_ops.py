"""Comparisons, logic and bits, element by element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tfray.framework import dtypes
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.graph import Tensor, register_operator
from tfray.framework.op_def import Array, KernelContext, out_kernel, register, ufunc_kernel
from tfray.framework.type_aliases import TensorLike
from tfray.ops.kernels.elementwise import binary, unary

_EQUATABLE = (*dtypes.NUMERIC, dtypes.bool_, dtypes.string)


def equal(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Compute ``x == y`` by value (the Python operator compares tensors by identity).

    Args:
        x: Any shape, A number dtype, bool or string.
        y: Same dtype; the shapes broadcast.
        name: Name of the operation.

    Returns:
        Dtype bool, the broadcast shape.

    Examples:
        >>> session.run(tf.equal([1, 2, 3], [1, 0, 3]))
        array([ True, False,  True])
    """
    return add_op(EQUAL, x, y, name=name)


EQUAL = register(binary("Equal", "equal", _EQUATABLE, result="bool"))


def not_equal(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Compute ``x != y`` by value.

    Args:
        x: Any shape, A number dtype, bool or string.
        y: Same dtype; the shapes broadcast.
        name: Name of the operation.

    Returns:
        Dtype bool, the broadcast shape.

    Examples:
        >>> session.run(tf.not_equal(["a", "b"], "a"))
        array([False,  True])
    """
    return add_op(NOT_EQUAL, x, y, name=name)


NOT_EQUAL = register(binary("NotEqual", "not_equal", _EQUATABLE, result="bool"))


def less(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Compute ``x < y``.

    Args:
        x: Any shape, an integer or floating dtype.
        y: Same dtype; the shapes broadcast.
        name: Name of the operation.

    Returns:
        Dtype bool, the broadcast shape.

    Examples:
        >>> session.run(tf.less([1, 2, 3], 2))
        array([ True, False, False])
    """
    return add_op(LESS, x, y, name=name)


LESS = register(binary("Less", ufunc_kernel("less", infix="{0} < {1}"), dtypes.REAL, result="bool"))


def less_equal(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Compute ``x <= y``.

    Args:
        x: Any shape, an integer or floating dtype.
        y: Same dtype; the shapes broadcast.
        name: Name of the operation.

    Returns:
        Dtype bool, the broadcast shape.

    Examples:
        >>> session.run(tf.less_equal([1, 2, 3], 2))
        array([ True,  True, False])
    """
    return add_op(LESS_EQUAL, x, y, name=name)


LESS_EQUAL = register(binary("LessEqual", ufunc_kernel("less_equal", infix="{0} <= {1}"), dtypes.REAL, result="bool"))


def greater(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Compute ``x > y``.

    Args:
        x: Any shape, an integer or floating dtype.
        y: Same dtype; the shapes broadcast.
        name: Name of the operation.

    Returns:
        Dtype bool, the broadcast shape.

    Examples:
        >>> session.run(tf.greater([1, 2, 3], 2))
        array([False, False,  True])
    """
    return add_op(GREATER, x, y, name=name)


GREATER = register(binary("Greater", ufunc_kernel("greater", infix="{0} > {1}"), dtypes.REAL, result="bool"))


def greater_equal(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Compute ``x >= y``.

    Args:
        x: Any shape, an integer or floating dtype.
        y: Same dtype; the shapes broadcast.
        name: Name of the operation.

    Returns:
        Dtype bool, the broadcast shape.

    Examples:
        >>> session.run(tf.greater_equal([1, 2, 3], 2))
        array([False,  True,  True])
    """
    return add_op(GREATER_EQUAL, x, y, name=name)


GREATER_EQUAL = register(
    binary("GreaterEqual", ufunc_kernel("greater_equal", infix="{0} >= {1}"), dtypes.REAL, result="bool")
)


# -- logic ---------------------------------------------------------------------------------------------


def logical_and(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Compute ``x and y``.

    Args:
        x: Any shape, bool.
        y: Same dtype; the shapes broadcast.
        name: Name of the operation.

    Returns:
        The broadcast shape, bool.

    Examples:
        >>> session.run(tf.logical_and([True, True], [True, False]))
        array([ True, False])
    """
    return add_op(LOGICAL_AND, x, y, name=name)


LOGICAL_AND = register(binary("LogicalAnd", ufunc_kernel("logical_and", infix="{0} & {1}"), (dtypes.bool_,)))


def logical_or(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Compute ``x or y``.

    Args:
        x: Any shape, bool.
        y: Same dtype; the shapes broadcast.
        name: Name of the operation.

    Returns:
        The broadcast shape, bool.

    Examples:
        >>> session.run(tf.logical_or([True, False], [False, False]))
        array([ True, False])
    """
    return add_op(LOGICAL_OR, x, y, name=name)


LOGICAL_OR = register(binary("LogicalOr", ufunc_kernel("logical_or", infix="{0} | {1}"), (dtypes.bool_,)))


def logical_xor(x: TensorLike, y: TensorLike, name: str | None = "LogicalXor") -> Tensor:
    """Compute whether exactly one of `x` and `y` holds.

    Args:
        x: Any shape, bool.
        y: Bool; the shapes broadcast.
        name: Name of the operation.

    Returns:
        The broadcast shape, bool.
    """
    return not_equal(convert_to_tensor(x, dtypes.bool_), convert_to_tensor(y, dtypes.bool_), name)


def logical_not(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute ``not x``.

    Args:
        x: Shape ``[...]``, bool.
        name: Name of the operation.

    Returns:
        Same shape and dtype.

    Examples:
        >>> session.run(tf.logical_not([True, False]))
        array([False,  True])
    """
    return add_op(LOGICAL_NOT, x, name=name)


LOGICAL_NOT = register(unary("LogicalNot", ufunc_kernel("logical_not", infix="~{0}", arity=1), (dtypes.bool_,)))


def is_nan(x: TensorLike, name: str | None = None) -> Tensor:
    """Tell which elements are not a number.

    Args:
        x: Shape ``[...]``, a floating dtype.
        name: Name of the operation.

    Returns:
        Same shape, dtype bool.

    Examples:
        >>> session.run(tf.is_nan([1.0, float("nan")]))
        array([False,  True])
    """
    return add_op(IS_NAN, x, name=name)


IS_NAN = register(unary("IsNan", "isnan", dtypes.FLOATS, result="bool"))


def is_inf(x: TensorLike, name: str | None = None) -> Tensor:
    """Tell which elements are infinite.

    Args:
        x: Shape ``[...]``, a floating dtype.
        name: Name of the operation.

    Returns:
        Same shape, dtype bool.
    """
    return add_op(IS_INF, x, name=name)


IS_INF = register(unary("IsInf", "isinf", dtypes.FLOATS, result="bool"))


def is_finite(x: TensorLike, name: str | None = None) -> Tensor:
    """Tell which elements are finite: neither infinite nor not a number.

    Args:
        x: Shape ``[...]``, a floating dtype.
        name: Name of the operation.

    Returns:
        Same shape, dtype bool.

    Examples:
        >>> session.run(tf.is_finite([1.0, float("inf")]))
        array([ True, False])
    """
    return add_op(IS_FINITE, x, name=name)


IS_FINITE = register(unary("IsFinite", "isfinite", dtypes.FLOATS, result="bool"))


# -- bits ----------------------------------------------------------------------------------------------


def bitwise_and(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Combine the bits of `x` and `y` by and.

    Args:
        x: Any shape, an integer dtype.
        y: Same dtype; the shapes broadcast. Less than 0 counts as 0, and more than the places that there are as these.
        name: Name of the operation.

    Returns:
        The broadcast shape, the same dtype.

    Examples:
        >>> session.run(tf.bitwise.bitwise_and([6, 5], 3))
        array([2, 1], dtype=int32)
    """
    return add_op(BITWISE_AND, x, y, name=name)


BITWISE_AND = register(binary("BitwiseAnd", "bitwise_and", dtypes.INTEGERS))


def bitwise_or(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Combine the bits of `x` and `y` by or.

    Args:
        x: Any shape, an integer dtype.
        y: Same dtype; the shapes broadcast. Less than 0 counts as 0, and more than the places that there are as these.
        name: Name of the operation.

    Returns:
        The broadcast shape, the same dtype.
    """
    return add_op(BITWISE_OR, x, y, name=name)


BITWISE_OR = register(binary("BitwiseOr", "bitwise_or", dtypes.INTEGERS))


def bitwise_xor(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Combine the bits of `x` and `y` by exclusive or.

    Args:
        x: Any shape, an integer dtype.
        y: Same dtype; the shapes broadcast. Less than 0 counts as 0, and more than the places that there are as these.
        name: Name of the operation.

    Returns:
        The broadcast shape, the same dtype.
    """
    return add_op(BITWISE_XOR, x, y, name=name)


BITWISE_XOR = register(binary("BitwiseXor", "bitwise_xor", dtypes.INTEGERS))


def invert(x: TensorLike, name: str | None = None) -> Tensor:
    """Invert every bit.

    Args:
        x: Shape ``[...]``, an integer dtype.
        name: Name of the operation.

    Returns:
        Same shape and dtype.
    """
    return add_op(INVERT, x, name=name)


INVERT = register(unary("Invert", "invert", dtypes.INTEGERS))


def left_shift(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Shift the bits of `x` by `y` places to the left.

    Args:
        x: Any shape, an integer dtype.
        y: Same dtype; the shapes broadcast. Less than 0 counts as 0, and more than the places that there are as these.
        name: Name of the operation.

    Returns:
        The broadcast shape, the same dtype.
    """
    return add_op(LEFT_SHIFT, x, y, name=name)


def _shift_kernel(function: str) -> Any:
    def kernel(ctx: KernelContext, x: Array, y: Array, out: Array | None = None) -> Array:
        return getattr(ctx.xp, function)(x, ctx.xp.clip(y, 0, 8 * x.dtype.itemsize - 1), out=out)

    return out_kernel(kernel, (0, 1))


LEFT_SHIFT = register(binary("LeftShift", _shift_kernel("left_shift"), dtypes.INTEGERS))


def right_shift(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Shift the bits of `x` by `y` places to the right; signed integers keep their sign.

    Args:
        x: Any shape, an integer dtype.
        y: Same dtype; the shapes broadcast. Less than 0 counts as 0, and more than the places that there are as these.
        name: Name of the operation.

    Returns:
        The broadcast shape, the same dtype.
    """
    return add_op(RIGHT_SHIFT, x, y, name=name)


RIGHT_SHIFT = register(binary("RightShift", _shift_kernel("right_shift"), dtypes.INTEGERS))


def _by_dtype(
    x: TensorLike,
    y: TensorLike,
    name: str | None,
    logical: Callable[[TensorLike, TensorLike, str | None], Tensor],
    bitwise: Callable[[TensorLike, TensorLike, str | None], Tensor],
) -> Tensor:
    dtype = getattr(x if isinstance(x, Tensor) else y, "dtype", None)
    return (logical if dtype is dtypes.bool_ else bitwise)(x, y, name)


def _and(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    return _by_dtype(x, y, name, logical_and, bitwise_and)


def _or(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    return _by_dtype(x, y, name, logical_or, bitwise_or)


def _xor(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    return _by_dtype(x, y, name, logical_xor, bitwise_xor)


def _invert(x: Tensor) -> Tensor:
    return logical_not(x) if x.dtype is dtypes.bool_ else invert(x)


register_operator("lt", less)
register_operator("le", less_equal)
register_operator("gt", greater)
register_operator("ge", greater_equal)
register_operator("and", _and)
register_operator("or", _or)
register_operator("xor", _xor)
register_operator("invert", _invert)
