"""Special functions, element by element: error, gamma, beta, Bessel; and logarithms with a safe 0."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import ml_dtypes
import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.convert import add_op, convert_alike, convert_to_tensor
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.op_def import Array, Kernel, KernelContext, OpDef, on_every_device, out_kernel, register
from tfray.framework.shape_functions import broadcast
from tfray.framework.sparse_tensor import also_of_sparse
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.broadcast_ops import ones_like, sum_to_shape_of, where, zeros_like
from tfray.ops.arrays.shape_ops import cast
from tfray.ops.kernels.elementwise import binary, special, unary
from tfray.ops.kernels.precision import assign, choose, is_half, widened
from tfray.ops.math.arithmetic_ops import abs as absolute
from tfray.ops.math.arithmetic_ops import (
    add,
    div_no_nan,
    exp,
    log,
    maximum,
    minimum,
    multiply,
    negative,
    realdiv,
    reciprocal,
    sign,
    square,
    subtract,
)
from tfray.ops.math.comparison_ops import greater, less, not_equal
from tfray.ops.math.gamma_sensitivity_ops import igamma_grad_a
from tfray.ops.math.no_nan_ops import multiply_no_nan
from tfray.ops.math.reduction_ops import reduce_sum


def _special_kernel(function: str) -> Kernel:
    """A kernel that is one function of the device's module of special functions."""

    def kernel(ctx: KernelContext, *arrays: Array, out: Array | None = None) -> Array:
        return getattr(special(ctx), function)(*arrays, out=out)

    return out_kernel(widened(kernel), may_overwrite=(0,))


@also_of_sparse
def erf(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the error function.

    Args:
        x: Shape ``[...]``, a floating dtype.
        name: Name of the operation.

    Returns:
        Same shape and dtype.
    """
    return add_op(ERF, x, name=name)


def _erf_gradient(op: Operation, d_y: Tensor) -> list[Tensor | None]:
    x = op.inputs[0]
    return [multiply(d_y, multiply(exp(negative(square(x))), 2 / math.sqrt(math.pi)))]


ERF = register(unary("Erf", _special_kernel("erf"), dtypes.FLOATS, _erf_gradient))


def erfc(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute ``1 - erf(x)``, precisely also for large `x`.

    Args:
        x: Shape ``[...]``, a floating dtype.
        name: Name of the operation.

    Returns:
        Same shape and dtype.
    """
    return add_op(ERFC, x, name=name)


def _erfc_gradient(op: Operation, d_y: Tensor) -> list[Tensor | None]:
    x = op.inputs[0]
    return [multiply(d_y, multiply(exp(negative(square(x))), -2 / math.sqrt(math.pi)))]


ERFC = register(unary("Erfc", _special_kernel("erfc"), dtypes.FLOATS, _erfc_gradient))


def erfinv(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the inverse of `erf`, of numbers between -1 and 1.

    Args:
        x: Shape ``[...]``, a floating dtype.
        name: Name of the operation.

    Returns:
        Same shape and dtype.
    """
    return add_op(ERFINV, x, name=name)


def _erfinv_gradient(op: Operation, d_y: Tensor) -> list[Tensor | None]:
    return [multiply(d_y, multiply(exp(square(op.outputs[0])), math.sqrt(math.pi) / 2))]


ERFINV = register(unary("Erfinv", _special_kernel("erfinv"), dtypes.FLOATS, _erfinv_gradient))


def ndtri(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the inverse of the standard normal distribution, of probabilities.

    Args:
        x: Shape ``[...]``, a floating dtype.
        name: Name of the operation.

    Returns:
        Same shape and dtype.
    """
    return add_op(NDTRI, x, name=name)


def _ndtri_gradient(op: Operation, d_y: Tensor) -> list[Tensor | None]:
    return [multiply(d_y, multiply(exp(multiply(square(op.outputs[0]), 0.5)), math.sqrt(2 * math.pi)))]


NDTRI = register(unary("Ndtri", _special_kernel("ndtri"), dtypes.FLOATS, _ndtri_gradient))


def log_ndtr(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the logarithm of the standard normal distribution function, precisely in both tails.

    Args:
        x: Shape ``[...]``, a floating dtype.
        name: Name of the operation.

    Returns:
        Same shape and dtype.
    """
    return add_op(LOG_NDTR, x, name=name)


def _log_ndtr_gradient(op: Operation, d_y: Tensor) -> list[Tensor | None]:
    # The density over the distribution function. Both vanish where x is very negative, their ratio does not.
    x = op.inputs[0]
    above, below = maximum(x, 0), minimum(x, 0)
    slope_above = realdiv(exp(multiply(square(above), -0.5)), erfc(multiply(above, -math.sqrt(0.5))))
    slope_below = reciprocal(erfcx(multiply(below, -math.sqrt(0.5))))
    return [multiply(d_y, multiply(where(greater(x, 0), slope_above, slope_below), math.sqrt(2 / math.pi)))]


LOG_NDTR = register(unary("LogNdtr", _special_kernel("log_ndtr"), dtypes.FLOATS, _log_ndtr_gradient))


def erfcx(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute ``exp(x ** 2) * erfc(x)``, which neither overflows nor vanishes for large `x`.

    Args:
        x: Shape ``[...]``, a floating dtype.
        name: Name of the operation.

    Returns:
        Same shape and dtype.
    """
    return add_op(ERFCX, x, name=name)


def _erfcx_gradient(op: Operation, d_y: Tensor) -> list[Tensor | None]:
    x, y = op.inputs[0], op.outputs[0]
    return [multiply(d_y, subtract(multiply(multiply(x, y), 2), 2 / math.sqrt(math.pi)))]


ERFCX = register(unary("Erfcx", _special_kernel("erfcx"), dtypes.FLOATS, _erfcx_gradient))


# -- gamma ---------------------------------------------------------------------------------------------


def lgamma(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the logarithm of the absolute value of the gamma function.

    Args:
        x: Shape ``[...]``, a floating dtype.
        name: Name of the operation.

    Returns:
        Same shape and dtype.
    """
    return add_op(LGAMMA, x, name=name)


def _lgamma_gradient(op: Operation, d_y: Tensor) -> list[Tensor | None]:
    return [multiply(d_y, digamma(op.inputs[0]))]


_NEARLY_A_POLE: Final = 1e-300
"""Below it, gamma is one over its argument to the last digit, and SciPy's logarithm may overflow."""


def _lgamma_kernel(ctx: KernelContext, x: Array, out: Array | None = None) -> Array:
    if ctx.xp is not np or x.dtype != np.float64 or not (small := np.abs(x) < _NEARLY_A_POLE).any():
        return special(ctx).gammaln(x, out=out)
    return assign(ctx.xp, np.where(small, -np.log(np.abs(x)), special(ctx).gammaln(x)), x.dtype, out)


LGAMMA = register(
    unary("Lgamma", out_kernel(widened(_lgamma_kernel), may_overwrite=(0,)), dtypes.FLOATS, _lgamma_gradient)
)


def digamma(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the derivative of `lgamma`.

    Args:
        x: Shape ``[...]``, a floating dtype.
        name: Name of the operation.

    Returns:
        Same shape and dtype.
    """
    return add_op(DIGAMMA, x, name=name)


def _digamma_gradient(op: Operation, d_y: Tensor) -> list[Tensor | None]:
    return [multiply(d_y, polygamma(1, op.inputs[0]))]


DIGAMMA = register(unary("Digamma", _special_kernel("digamma"), dtypes.FLOATS, _digamma_gradient))


def polygamma(a: TensorLike, x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the derivative of order `a` of `digamma`.

    Args:
        a: The order: whole numbers from 0, any shape, a floating dtype; for others the result is NaN. No gradient
            flows to it.
        x: Same dtype; the shapes broadcast.
        name: Name of the operation.

    Returns:
        The broadcast shape, the same dtype.
    """
    return add_op(POLYGAMMA, a, x, name=name)


def _polygamma_kernel(ctx: KernelContext, a: Array, x: Array, out: Array | None = None) -> Array:
    functions, xp = special(ctx), ctx.xp
    # (-1)^(a+1) a! zeta(a + 1, x); order 0 is digamma itself.
    order = a + a.dtype.type(1)
    size = functions.gamma(order) * functions.zeta(order, x)
    value = xp.where(a == 0, functions.digamma(x), xp.where(a % 2 == 0, -size, size))
    value = xp.where(a == xp.floor(a), value, a.dtype.type("nan"))
    return assign(ctx.xp, value, x.dtype, out)


def _polygamma_gradient(op: Operation, d_z: Tensor) -> list[Tensor | None]:
    a, x = op.inputs
    return [None, sum_to_shape_of(multiply(d_z, polygamma(add(a, 1), x)), x, a)]


POLYGAMMA = register(binary("Polygamma", out_kernel(widened(_polygamma_kernel)), dtypes.FLOATS, _polygamma_gradient))


def zeta(x: TensorLike, q: TensorLike, name: str | None = None) -> Tensor:
    """Compute the Hurwitz zeta function: the sum of ``(q + n) ** -x`` over ``n = 0, 1, ...``.

    Args:
        x: The exponent, above 1: any shape, a floating dtype. No gradient flows to it.
        q: Same dtype; the shapes broadcast.
        name: Name of the operation.

    Returns:
        The broadcast shape, the same dtype.
    """
    return add_op(ZETA, x, q, name=name)


def _zeta_gradient(op: Operation, d_z: Tensor) -> list[Tensor | None]:
    x, q = op.inputs
    return [None, sum_to_shape_of(negative(multiply(d_z, multiply(x, zeta(add(x, 1), q)))), q, x)]


ZETA = register(binary("Zeta", _special_kernel("zeta"), dtypes.FLOATS, _zeta_gradient))


# -- Bessel --------------------------------------------------------------------------------------------


def bessel_i0(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the modified Bessel function of order 0.

    Args:
        x: Shape ``[...]``, a floating dtype.
        name: Name of the operation.

    Returns:
        Same shape and dtype.
    """
    return add_op(BESSEL_I0, x, name=name)


def _bessel_i0_gradient(op: Operation, d_y: Tensor) -> list[Tensor | None]:
    return [multiply(d_y, bessel_i1(op.inputs[0]))]


BESSEL_I0 = register(unary("BesselI0", _special_kernel("i0"), dtypes.FLOATS, _bessel_i0_gradient))


def bessel_i1(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the modified Bessel function of order 1.

    Args:
        x: Shape ``[...]``, a floating dtype.
        name: Name of the operation.

    Returns:
        Same shape and dtype.
    """
    return add_op(BESSEL_I1, x, name=name)


def _over_x(x: Tensor, y: Tensor) -> Tensor:
    """``y / x`` for a function that is ``x / 2`` near 0, where a division would have a wild gradient."""
    near_zero = less(absolute(x), math.sqrt(float(ml_dtypes.finfo(x.dtype.numpy).eps)))  # type: ignore[no-untyped-call]
    ones = ones_like(x)
    return where(near_zero, multiply(ones, 0.5), realdiv(y, where(near_zero, ones, x)))


def _bessel_i1_gradient(op: Operation, d_y: Tensor) -> list[Tensor | None]:
    x, y = op.inputs[0], op.outputs[0]
    return [multiply(d_y, subtract(bessel_i0(x), _over_x(x, y)))]


BESSEL_I1 = register(unary("BesselI1", _special_kernel("i1"), dtypes.FLOATS, _bessel_i1_gradient))


def bessel_i0e(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the modified Bessel function of order 0, times ``exp(-abs(x))``.

    Args:
        x: Shape ``[...]``, a floating dtype.
        name: Name of the operation.

    Returns:
        Same shape and dtype.
    """
    return add_op(BESSEL_I0E, x, name=name)


def _bessel_i0e_gradient(op: Operation, d_y: Tensor) -> list[Tensor | None]:
    x, y = op.inputs[0], op.outputs[0]
    return [multiply(d_y, subtract(bessel_i1e(x), multiply(sign(x), y)))]


BESSEL_I0E = register(unary("BesselI0e", _special_kernel("i0e"), dtypes.FLOATS, _bessel_i0e_gradient))


def bessel_i1e(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the modified Bessel function of order 1, times ``exp(-abs(x))``.

    Args:
        x: Shape ``[...]``, a floating dtype.
        name: Name of the operation.

    Returns:
        Same shape and dtype.
    """
    return add_op(BESSEL_I1E, x, name=name)


def _bessel_i1e_gradient(op: Operation, d_y: Tensor) -> list[Tensor | None]:
    x, y = op.inputs[0], op.outputs[0]
    return [multiply(d_y, subtract(bessel_i0e(x), add(multiply(sign(x), y), _over_x(x, y))))]


BESSEL_I1E = register(unary("BesselI1e", _special_kernel("i1e"), dtypes.FLOATS, _bessel_i1e_gradient))


# -- incomplete gamma and beta -------------------------------------------------------------------------


def igamma(a: TensorLike, x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the regularised lower incomplete gamma function.

    Args:
        a: Positive numbers, any shape, a floating dtype.
        x: Same dtype; the shapes broadcast.
        name: Name of the operation.

    Returns:
        The broadcast shape, the same dtype. The gradient by `a` itself has no gradient.
    """
    return add_op(IGAMMA, a, x, name=name)


def _igamma_slope(a: Tensor, x: Tensor) -> Tensor:
    # Not xlogy, whose gradient by a is taken to be 0 where a is 1.
    return exp(subtract(multiply_no_nan(log(x), subtract(a, 1)), add(x, lgamma(a))))


def _igamma_gradient(op: Operation, d_z: Tensor) -> list[Tensor | None]:
    a, x = op.inputs
    return [
        sum_to_shape_of(multiply(d_z, igamma_grad_a(a, x)), a, x),
        sum_to_shape_of(multiply(d_z, _igamma_slope(a, x)), x, a),
    ]


IGAMMA = register(binary("Igamma", _special_kernel("gammainc"), dtypes.FLOATS, _igamma_gradient))


def igammac(a: TensorLike, x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the regularised upper incomplete gamma function, ``1 - igamma(a, x)`` (arguments as `igamma`).

    The shapes broadcast; the result has the broadcast shape.
    """
    return add_op(IGAMMAC, a, x, name=name)


def _igammac_gradient(op: Operation, d_z: Tensor) -> list[Tensor | None]:
    return _igamma_gradient(op, negative(d_z))


IGAMMAC = register(binary("Igammac", _special_kernel("gammaincc"), dtypes.FLOATS, _igammac_gradient))


def betainc(a: TensorLike, b: TensorLike, x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the regularised incomplete beta function.

    Args:
        a: Positive numbers, any shape, a floating dtype. No gradient flows to it.
        b: Likewise, same dtype.
        x: Numbers from 0 to 1, same dtype; the shapes broadcast.
        name: Name of the operation.

    Returns:
        The broadcast shape, the same dtype.
    """
    return add_op(BETAINC, a, b, x, name=name)


def _betainc_gradient(op: Operation, d_z: Tensor) -> list[Tensor | None]:
    a, b, x = op.inputs
    log_beta = subtract(add(lgamma(a), lgamma(b)), lgamma(add(a, b)))
    log_slope = add(xlog1py(subtract(b, 1), negative(x)), xlogy(subtract(a, 1), x))
    d_x = multiply(d_z, exp(subtract(log_slope, log_beta)))
    return [None, None, sum_to_shape_of(d_x, x, a, b)]


BETAINC = register(
    OpDef(
        name="Betainc",
        inputs=("a: T", "b: T", "x: T"),
        outputs=("z: T",),
        types={"T": dtypes.FLOATS},
        shape=broadcast,
        kernels=on_every_device(_special_kernel("betainc")),
        gradient=_betainc_gradient,
    )
)


def lbeta(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the logarithm of the absolute value of the beta function over the last dimension.

    Args:
        x: Shape ``[..., n]``, a floating dtype.
        name: Name of the operation.

    Returns:
        Shape ``[...]``.
    """
    x = convert_to_tensor(x)
    return subtract(reduce_sum(lgamma(x), -1), lgamma(reduce_sum(x, -1)), name)


# -- products with a safe 0 ----------------------------------------------------------------------------


def xlogy(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Compute ``x * log(y)``, and 0 where `x` is 0.

    Args:
        x: Any shape, a floating dtype.
        y: Same dtype; the shapes broadcast.
        name: Name of the operation.

    Returns:
        The broadcast shape, the same dtype.
    """
    return add_op(XLOGY, x, y, name=name)


def _is_not_zero(x: Tensor) -> Tensor:
    return cast(not_equal(x, 0), x.dtype)


def _xlogy_gradient(op: Operation, d_z: Tensor) -> list[Tensor | None]:
    x, y = op.inputs
    d_x = multiply(d_z, xlogy(_is_not_zero(x), y))
    return [sum_to_shape_of(d_x, x, y), sum_to_shape_of(multiply(d_z, xdivy(x, y)), y, x)]


def _xlogy_kernel(ctx: KernelContext, x: Array, y: Array, out: Array | None = None) -> Array:
    if not is_half(x.dtype):
        return special(ctx).xlogy(x, y, out=out)
    # The logarithm is rounded too, as where a program multiplies by it itself.
    logarithm = choose(ctx.xp, x == 0, x.dtype.type(0), ctx.xp.log(y.astype(np.float32)).astype(x.dtype))
    return ctx.xp.multiply(x, logarithm, out=out)


XLOGY = register(binary("Xlogy", out_kernel(_xlogy_kernel, (0,)), dtypes.FLOATS, _xlogy_gradient))


def xlog1py(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Compute ``x * log1p(y)``, and 0 where `x` is 0 (arguments as `xlogy`).

    The shapes broadcast; the result has the broadcast shape.
    """
    return add_op(XLOG1PY, x, y, name=name)


def _xlog1py_gradient(op: Operation, d_z: Tensor) -> list[Tensor | None]:
    x, y = op.inputs
    d_x = multiply(d_z, xlog1py(_is_not_zero(x), y))
    return [sum_to_shape_of(d_x, x, y), sum_to_shape_of(multiply(d_z, xdivy(x, add(y, 1))), y, x)]


XLOG1PY = register(binary("Xlog1py", _special_kernel("xlog1py"), dtypes.FLOATS, _xlog1py_gradient))


def xdivy(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Compute ``x / y``, and 0 where `x` is 0 (arguments as `xlogy`).

    The shapes broadcast; the result has the broadcast shape.
    """
    return add_op(XDIVY, x, y, name=name)


def _xdivy_kernel(ctx: KernelContext, x: Array, y: Array, out: Array | None = None) -> Array:
    # Divided by 1 where the numerator is 0: nothing else is 0 times something.
    return ctx.xp.divide(x, choose(ctx.xp, x == 0, y.dtype.type(1), y), out=out)


def _xdivy_gradient(op: Operation, d_z: Tensor) -> list[Tensor | None]:
    x, y = op.inputs
    d_x = multiply(d_z, xdivy(_is_not_zero(x), y))
    d_y = negative(multiply(d_z, xdivy(x, square(y))))
    return [sum_to_shape_of(d_x, x, y), sum_to_shape_of(d_y, y, x)]


XDIVY = register(binary("Xdivy", out_kernel(_xdivy_kernel, (0, 1)), dtypes.FLOATS, _xdivy_gradient))


# -- others --------------------------------------------------------------------------------------------


def nextafter(x1: TensorLike, x2: TensorLike, name: str | None = None) -> Tensor:
    """Find the number next to `x1` that its dtype can hold, in the direction of `x2`.

    Args:
        x1: Any shape, float32 or float64.
        x2: Same dtype; the shapes broadcast. Its gradient is 0.
        name: Name of the operation.

    Returns:
        The broadcast shape, the same dtype.
    """
    return add_op(NEXT_AFTER, x1, x2, name=name)


def _next_after_gradient(op: Operation, d_z: Tensor) -> list[Tensor | None]:
    x1, x2 = op.inputs
    return [sum_to_shape_of(d_z, x1, x2), zeros_like(x2)]


NEXT_AFTER = register(binary("NextAfter", "nextafter", (dtypes.float32, dtypes.float64), _next_after_gradient))


def polyval(coeffs: Sequence[TensorLike], x: TensorLike, name: str | None = None) -> Tensor:
    """Evaluate a polynomial by Horner's rule.

    Args:
        coeffs: Coefficients, that of the highest power first; each broadcasts with `x`.
        x: Where to evaluate, any shape, any number dtype.
        name: Name of the last operation.

    Returns:
        The shape of `x` and the coefficients broadcast together; one coefficient alone is returned as it is.

    Raises:
        InvalidArgumentError: `coeffs` is not a list.
    """
    if not isinstance(coeffs, (list, tuple)):
        raise InvalidArgumentError(f"polyval: coeffs must be a list, not {coeffs!r}")
    x, *coefficients = convert_alike(x, *coeffs)
    if not coefficients:
        return zeros_like(x, name=name)
    value = coefficients[0]
    for index, coefficient in enumerate(coefficients[1:], 2):
        value = add(coefficient, multiply(value, x), name if index == len(coefficients) else None)
    return value


def erfcinv(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the inverse of `erfc`.

    Args:
        x: Shape ``[...]``, a floating dtype, numbers from 0 to 2.
        name: Name of the operation.

    Returns:
        Same shape and dtype.
    """
    return multiply(ndtri(multiply(convert_to_tensor(x), 0.5)), -math.sqrt(0.5), name)


def reciprocal_no_nan(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute ``1 / x``, and 0 where `x` is 0.

    Args:
        x: Shape ``[...]``, a floating dtype.
        name: Name of the operation.

    Returns:
        Same shape and dtype.
    """
    with get_default_graph().name_scope(name or "reciprocal_no_nan") as scope:
        x = convert_to_tensor(x)
        return div_no_nan(ones_like(x), x, scope)
