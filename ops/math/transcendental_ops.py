"""Exponential, trigonometric and hyperbolic functions, element by element."""

from __future__ import annotations

from tfray.framework import dtypes
from tfray.framework.convert import add_op
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import Array, KernelContext, out_kernel, register
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.broadcast_ops import sum_to_shape_of
from tfray.ops.kernels.elementwise import binary, unary
from tfray.ops.kernels.precision import widened
from tfray.ops.math.arithmetic_ops import add, conj, exp, multiply, negative, realdiv, rsqrt, square, subtract

# -- exponential ---------------------------------------------------------------------------------------


def expm1(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute ``exp(x) - 1``, precisely also near 0.

    Args:
        x: Shape ``[...]``, a floating or complex dtype.
        name: Name of the operation.

    Returns:
        Same shape and dtype.
    """
    return add_op(EXPM1, x, name=name)


def _expm1_gradient(op: Operation, d_y: Tensor) -> list[Tensor | None]:
    # Not y + 1: where x is very negative, y is rounded to -1.
    return [multiply(d_y, exp(conj(op.inputs[0])))]


EXPM1 = register(unary("Expm1", "expm1", dtypes.INEXACT, _expm1_gradient))


def log1p(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute ``log(1 + x)``, precisely also near 0.

    Args:
        x: Shape ``[...]``, a floating or complex dtype.
        name: Name of the operation.

    Returns:
        Same shape and dtype.

    Examples:
        >>> session.run(tf.log1p([0.0, 1.0]))
        array([0.       , 0.6931472], dtype=float32)
    """
    return add_op(LOG1P, x, name=name)


def _log1p_gradient(op: Operation, d_y: Tensor) -> list[Tensor | None]:
    x = conj(op.inputs[0])
    return [realdiv(d_y, add(x, 1))]


LOG1P = register(unary("Log1p", "log1p", dtypes.INEXACT, _log1p_gradient))


def sigmoid(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute ``1 / (1 + exp(-x))``.

    Args:
        x: Shape ``[...]``, a floating or complex dtype.
        name: Name of the operation.

    Returns:
        Same shape and dtype.

    Examples:
        >>> session.run(tf.sigmoid([-1.0, 0.0, 1.0]))
        array([0.2689414, 0.5      , 0.7310586], dtype=float32)
    """
    return add_op(SIGMOID, x, name=name)


def _sigmoid_kernel(ctx: KernelContext, x: Array, out: Array | None = None) -> Array:
    # Not by tanh, which would round the tail below -17 (float32) to 0. An overflow gives 1 / inf, which is right.
    xp, one = ctx.xp, x.dtype.type(1)
    y = xp.negative(x, out=out)
    if out is None and y.ndim:
        out = y
    y = xp.add(xp.exp(y, out=out), one, out=out)
    return xp.divide(one, y, out=out)


def _sigmoid_gradient(op: Operation, d_y: Tensor) -> list[Tensor | None]:
    return [sigmoid_grad(conj(op.outputs[0]), d_y)]


SIGMOID = register(
    unary(
        "Sigmoid",
        out_kernel(widened(_sigmoid_kernel), (0,), element_ns=3, element="sigmoid({0})"),
        dtypes.INEXACT,
        _sigmoid_gradient,
    )
)


def sigmoid_grad(y: TensorLike, dy: TensorLike, name: str | None = None) -> Tensor:
    """Compute ``dy * y * (1 - y)``, element by element: the gradient of `sigmoid` from its output `y`."""
    return add_op(SIGMOID_GRAD, y, dy, name=name)


def _sigmoid_grad_kernel(ctx: KernelContext, y: Array, dy: Array, out: Array | None = None) -> Array:
    xp = ctx.xp
    slope = xp.subtract(y.dtype.type(1), y, out=out)
    if out is None and slope.ndim:
        out = slope
    return xp.multiply(xp.multiply(slope, y, out=out), dy, out=out)


def _sigmoid_grad_gradient(op: Operation, d_z: Tensor) -> list[Tensor | None]:
    y, dy = conj(op.inputs[0]), conj(op.inputs[1])
    return [multiply(multiply(d_z, dy), subtract(1, multiply(y, 2))), sigmoid_grad(y, d_z)]


SIGMOID_GRAD = register(
    binary(
        "SigmoidGrad",
        out_kernel(widened(_sigmoid_grad_kernel), element="(1 - {0}) * {0} * {1}"),
        dtypes.INEXACT,
        _sigmoid_grad_gradient,
    )
)


# -- trigonometric -------------------------------------------------------------------------------------


def sin(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the sine of an angle in radians.

    Args:
        x: Shape ``[...]``, a floating or complex dtype.
        name: Name of the operation.

    Returns:
        Same shape and dtype.

    Examples:
        >>> session.run(tf.sin([0.0, 1.0]))
        array([0.      , 0.841471], dtype=float32)
    """
    return add_op(SIN, x, name=name)


def _sin_gradient(op: Operation, d_y: Tensor) -> list[Tensor | None]:
    x = conj(op.inputs[0])
    return [multiply(d_y, cos(x))]


SIN = register(unary("Sin", "sin", dtypes.INEXACT, _sin_gradient))


def cos(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the cosine of an angle in radians.

    Args:
        x: Shape ``[...]``, a floating or complex dtype.
        name: Name of the operation.

    Returns:
        Same shape and dtype.

    Examples:
        >>> session.run(tf.cos([0.0, 1.0]))
        array([1.       , 0.5403023], dtype=float32)
    """
    return add_op(COS, x, name=name)


def _cos_gradient(op: Operation, d_y: Tensor) -> list[Tensor | None]:
    x = conj(op.inputs[0])
    return [negative(multiply(d_y, sin(x)))]


COS = register(unary("Cos", "cos", dtypes.INEXACT, _cos_gradient))


def tan(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the tangent of an angle in radians.

    Args:
        x: Shape ``[...]``, a floating or complex dtype.
        name: Name of the operation.

    Returns:
        Same shape and dtype.
    """
    return add_op(TAN, x, name=name)


def _tan_gradient(op: Operation, d_y: Tensor) -> list[Tensor | None]:
    y = conj(op.outputs[0])
    return [multiply(d_y, add(square(y), 1))]


TAN = register(unary("Tan", "tan", dtypes.INEXACT, _tan_gradient))


def asin(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the inverse sine, in radians.

    Args:
        x: Shape ``[...]``, a floating or complex dtype.
        name: Name of the operation.

    Returns:
        Same shape and dtype.
    """
    return add_op(ASIN, x, name=name)


def _asin_gradient(op: Operation, d_y: Tensor) -> list[Tensor | None]:
    x = conj(op.inputs[0])
    return [multiply(d_y, rsqrt(subtract(1, square(x))))]


ASIN = register(unary("Asin", "arcsin", dtypes.INEXACT, _asin_gradient))


def acos(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the inverse cosine, in radians.

    Args:
        x: Shape ``[...]``, a floating or complex dtype.
        name: Name of the operation.

    Returns:
        Same shape and dtype.
    """
    return add_op(ACOS, x, name=name)


def _acos_gradient(op: Operation, d_y: Tensor) -> list[Tensor | None]:
    x = conj(op.inputs[0])
    return [negative(multiply(d_y, rsqrt(subtract(1, square(x)))))]


ACOS = register(unary("Acos", "arccos", dtypes.INEXACT, _acos_gradient))


def atan(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the inverse tangent, in radians.

    Args:
        x: Shape ``[...]``, a floating or complex dtype.
        name: Name of the operation.

    Returns:
        Same shape and dtype.
    """
    return add_op(ATAN, x, name=name)


def _atan_gradient(op: Operation, d_y: Tensor) -> list[Tensor | None]:
    x = conj(op.inputs[0])
    return [realdiv(d_y, add(square(x), 1))]


ATAN = register(unary("Atan", "arctan", dtypes.INEXACT, _atan_gradient))


def atan2(y: TensorLike, x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the angle of the point ``(x, y)``, in radians from -pi to pi.

    Args:
        y: Any shape, a floating dtype.
        x: Same dtype; the shapes broadcast.
        name: Name of the operation.

    Returns:
        The broadcast shape, the same dtype.
    """
    return add_op(ATAN2, y, x, name=name)


def _atan2_gradient(op: Operation, d_z: Tensor) -> list[Tensor | None]:
    y, x = op.inputs
    share = realdiv(d_z, add(square(x), square(y)))
    return [sum_to_shape_of(multiply(x, share), y, x), sum_to_shape_of(negative(multiply(y, share)), x, y)]


ATAN2 = register(binary("Atan2", "arctan2", dtypes.FLOATS, _atan2_gradient))


# -- hyperbolic ----------------------------------------------------------------------------------------


def sinh(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the hyperbolic sine.

    Args:
        x: Shape ``[...]``, a floating or complex dtype.
        name: Name of the operation.

    Returns:
        Same shape and dtype.
    """
    return add_op(SINH, x, name=name)


def _sinh_gradient(op: Operation, d_y: Tensor) -> list[Tensor | None]:
    x = conj(op.inputs[0])
    return [multiply(d_y, cosh(x))]


SINH = register(unary("Sinh", "sinh", dtypes.INEXACT, _sinh_gradient))


def cosh(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the hyperbolic cosine.

    Args:
        x: Shape ``[...]``, a floating or complex dtype.
        name: Name of the operation.

    Returns:
        Same shape and dtype.
    """
    return add_op(COSH, x, name=name)


def _cosh_gradient(op: Operation, d_y: Tensor) -> list[Tensor | None]:
    x = conj(op.inputs[0])
    return [multiply(d_y, sinh(x))]


COSH = register(unary("Cosh", "cosh", dtypes.INEXACT, _cosh_gradient))


def tanh(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the hyperbolic tangent.

    Args:
        x: Shape ``[...]``, a floating or complex dtype.
        name: Name of the operation.

    Returns:
        Same shape and dtype.

    Examples:
        >>> session.run(tf.tanh([0.0, 1.0]))
        array([0.       , 0.7615942], dtype=float32)
    """
    return add_op(TANH, x, name=name)


def _tanh_gradient(op: Operation, d_y: Tensor) -> list[Tensor | None]:
    return [tanh_grad(conj(op.outputs[0]), d_y)]


TANH = register(unary("Tanh", "tanh", dtypes.INEXACT, _tanh_gradient))


def tanh_grad(y: TensorLike, dy: TensorLike, name: str | None = None) -> Tensor:
    """Compute ``dy * (1 - y * y)``, element by element: the gradient of `tanh` from its output `y`."""
    return add_op(TANH_GRAD, y, dy, name=name)


def _tanh_grad_kernel(ctx: KernelContext, y: Array, dy: Array, out: Array | None = None) -> Array:
    xp = ctx.xp
    slope = xp.square(y, out=out)
    if out is None and slope.ndim:
        out = slope
    return xp.multiply(xp.subtract(y.dtype.type(1), slope, out=out), dy, out=out)


def _tanh_grad_gradient(op: Operation, d_z: Tensor) -> list[Tensor | None]:
    y, dy = conj(op.inputs[0]), conj(op.inputs[1])
    return [multiply(multiply(d_z, dy), multiply(y, -2)), tanh_grad(y, d_z)]


TANH_GRAD = register(
    binary(
        "TanhGrad",
        out_kernel(widened(_tanh_grad_kernel), (0,), element="(1 - {0} * {0}) * {1}"),
        dtypes.INEXACT,
        _tanh_grad_gradient,
    )
)


def asinh(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the inverse hyperbolic sine.

    Args:
        x: Shape ``[...]``, a floating or complex dtype.
        name: Name of the operation.

    Returns:
        Same shape and dtype.
    """
    return add_op(ASINH, x, name=name)


def _asinh_gradient(op: Operation, d_y: Tensor) -> list[Tensor | None]:
    y = conj(op.outputs[0])
    return [realdiv(d_y, cosh(y))]


ASINH = register(unary("Asinh", "arcsinh", dtypes.INEXACT, _asinh_gradient))


def acosh(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the inverse hyperbolic cosine.

    Args:
        x: Shape ``[...]``, a floating or complex dtype.
        name: Name of the operation.

    Returns:
        Same shape and dtype.
    """
    return add_op(ACOSH, x, name=name)


def _acosh_gradient(op: Operation, d_y: Tensor) -> list[Tensor | None]:
    y = conj(op.outputs[0])
    return [realdiv(d_y, sinh(y))]


ACOSH = register(unary("Acosh", "arccosh", dtypes.INEXACT, _acosh_gradient))


def atanh(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the inverse hyperbolic tangent.

    Args:
        x: Shape ``[...]``, a floating or complex dtype.
        name: Name of the operation.

    Returns:
        Same shape and dtype.
    """
    return add_op(ATANH, x, name=name)


def _atanh_gradient(op: Operation, d_y: Tensor) -> list[Tensor | None]:
    x = conj(op.inputs[0])
    return [realdiv(d_y, subtract(1, square(x)))]


ATANH = register(unary("Atanh", "arctanh", dtypes.INEXACT, _atanh_gradient))
