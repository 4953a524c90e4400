"""Arithmetic, element by element: sums, products, quotients, powers, extremes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tfray.errors import ArgumentError, InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.convert import add_op, convert_alike, convert_to_tensor, is_text
from tfray.framework.dtypes import DTypeLike
from tfray.framework.graph import Operation, Tensor, get_default_graph, register_operator
from tfray.framework.indexed_slices import IndexedSlices
from tfray.framework.op_def import Array, KernelContext, OpDef, on_every_device, out_kernel, register, ufunc_kernel
from tfray.framework.shape_functions import all_inputs_alike, like_input
from tfray.framework.sparse_tensor import SparseTensor, also_of_sparse
from tfray.framework.tensor_operators import operate
from tfray.framework.tensor_shape import ShapeLike, TensorShape
from tfray.framework.type_aliases import ConvertsToTensor, TensorLike
from tfray.ops.arrays.broadcast_ops import ones_like, sum_to_shape_of, where, zeros_like
from tfray.ops.arrays.shape_ops import cast
from tfray.ops.kernels.batch_rules import by_element_of_first
from tfray.ops.kernels.elementwise import binary, inline_sum, unary
from tfray.ops.kernels.precision import choose
from tfray.ops.math.comparison_ops import greater, greater_equal, less_equal, logical_not, not_equal
from tfray.ops.math.no_nan_ops import slope_times

# -- sums and products ---------------------------------------------------------------------------------


def add(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Compute ``x + y``. Strings are joined.

    Args:
        x: Any shape, a number dtype or string.
        y: Same dtype; the shapes broadcast.
        name: Name of the operation.

    Returns:
        The broadcast shape, the same dtype.

    Examples:
        >>> session.run(tf.add([[1, 2], [3, 4]], [10, 20]))
        array([[11, 22],
               [13, 24]], dtype=int32)
    """
    return operate("join", x, y, name) if is_text(x) or is_text(y) else add_op(ADD, x, y, name=name)


def _add_gradient(op: Operation, d_z: Tensor) -> list[Tensor | None]:
    x, y = op.inputs
    return [sum_to_shape_of(d_z, x, y), sum_to_shape_of(d_z, y, x)]


ADD = register(binary("Add", ufunc_kernel("add", infix="{0} + {1}"), dtypes.NUMERIC, _add_gradient))


def subtract(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Compute ``x - y``.

    Args:
        x: Any shape, A number dtype.
        y: Same dtype; the shapes broadcast.
        name: Name of the operation.

    Returns:
        The broadcast shape, the same dtype.

    Examples:
        >>> session.run(tf.subtract([5.0, 7.0], 2.0))
        array([3., 5.], dtype=float32)
    """
    return add_op(SUB, x, y, name=name)


def _sub_gradient(op: Operation, d_z: Tensor) -> list[Tensor | None]:
    x, y = op.inputs
    return [sum_to_shape_of(d_z, x, y), sum_to_shape_of(-d_z, y, x)]


SUB = register(binary("Sub", ufunc_kernel("subtract", infix="{0} - {1}"), dtypes.NUMERIC, _sub_gradient))


def multiply(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Compute ``x * y``, element by element.

    Args:
        x: Any shape, A number dtype.
        y: Same dtype; the shapes broadcast.
        name: Name of the operation.

    Returns:
        The broadcast shape, the same dtype.

    Examples:
        >>> session.run(tf.multiply([[1, 2], [3, 4]], [[10], [100]]))
        array([[ 10,  20],
               [300, 400]], dtype=int32)
    """
    return add_op(MUL, x, y, name=name)


def _mul_gradient(op: Operation, d_z: Tensor) -> list[Tensor | None]:
    x, y = op.inputs
    return [sum_to_shape_of(multiply(d_z, conj(y)), x, y), sum_to_shape_of(multiply(d_z, conj(x)), y, x)]


MUL = register(binary("Mul", ufunc_kernel("multiply", infix="{0} * {1}"), dtypes.NUMERIC, _mul_gradient))


def conj(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the complex conjugate; other numbers are returned as they are.

    Args:
        x: Shape ``[...]``, a number dtype.
        name: Name of the operation.

    Returns:
        Same shape and dtype.
    """
    x = convert_to_tensor(x)
    if not (x.dtype.is_complex or x.dtype in dtypes.NUMERIC or x.dtype == dtypes.variant):
        raise ArgumentError(f"conj: Expected numeric or variant tensor, got dtype {x.dtype!r}")
    return add_op(CONJ, x, name=name) if x.dtype.is_complex else x


def _conj_gradient(op: Operation, d_y: Tensor) -> list[Tensor | None]:
    return [conj(d_y)]


CONJ = register(unary("Conj", "conjugate", dtypes.COMPLEX, _conj_gradient))


def scalar_mul(scalar: TensorLike, x: ConvertsToTensor, name: str | None = None) -> Any:
    """Multiply a tensor, or the rows of an `IndexedSlices`, by a scalar.

    Args:
        scalar: Rank 0, the dtype of `x`.
        x: The tensor of any shape, or the slices.
        name: Name of the operation.

    Returns:
        The shape and dtype of `x`; an `IndexedSlices` if `x` is one.

    Raises:
        InvalidArgumentError: `scalar` is known not to be one.
    """
    factor = convert_to_tensor(scalar, x.dtype)
    if factor.shape.rank not in (None, 0):
        raise InvalidArgumentError(f"scalar_mul: the scalar has shape {factor.shape}, expected ()")
    if isinstance(x, IndexedSlices):
        return IndexedSlices(multiply(factor, x.values, name), x.indices, x.dense_shape)
    return multiply(factor, x, name)


@also_of_sparse
def negative(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute ``-x``.

    Args:
        x: Shape ``[...]``, a number dtype.
        name: Name of the operation.

    Returns:
        Same shape and dtype.

    Examples:
        >>> session.run(tf.negative([1, -2]))
        array([-1,  2], dtype=int32)
    """
    return add_op(NEG, x, name=name)


def _neg_gradient(op: Operation, d_y: Tensor) -> list[Tensor | None]:
    return [-d_y]


NEG = register(unary("Neg", "negative", dtypes.NUMERIC, _neg_gradient))


def add_n(inputs: Sequence[TensorLike], name: str | None = None) -> Tensor:
    """Add up tensors of one shape.

    Args:
        inputs: Tensors of one shape and dtype; `IndexedSlices` are made dense.
        name: Name of the operation; without one, a single tensor is returned as it is.

    Returns:
        The shape and dtype of each input.

    Raises:
        ArgumentError: `inputs` is empty, or no list.

    Examples:
        >>> session.run(tf.add_n([[1, 2], [3, 4], [5, 6]]))
        array([ 9, 12], dtype=int32)
    """
    inputs = list(inputs) if isinstance(inputs, (str, np.ndarray)) else inputs
    if not isinstance(inputs, (list, tuple)) or not inputs:
        raise ArgumentError(f"add_n: inputs must be a list of one tensor or more, not {inputs!r}")
    return convert_to_tensor(inputs[0]) if len(inputs) == 1 and name is None else add_op(ADD_N, inputs, name=name)


def _sum_of_all(op: Operation) -> str:
    return " + ".join(f"{{{index}}}" for index in range(len(op.inputs)))


def _add_n_kernel(ctx: KernelContext, first: Array, *rest: Array, out: Array | None = None) -> Array:
    if not rest:
        return ctx.xp.positive(first, out=out)
    total = ctx.xp.add(first, rest[0], out=out)
    if out is None and total.ndim:
        out = total
    for value in rest[1:]:
        total = ctx.xp.add(total, value, out=out)
    return total


def _add_n_gradient(op: Operation, d_sum: Tensor) -> list[Tensor | None]:
    return [d_sum] * len(op.inputs)


ADD_N = register(
    OpDef(
        name="AddN",
        inputs=("inputs: T*",),
        outputs=("sum: T",),
        types={"T": dtypes.NUMERIC},
        shape=all_inputs_alike,
        kernels=on_every_device(out_kernel(_add_n_kernel, may_overwrite=(0,), element=_sum_of_all, inline=inline_sum)),
        gradient=_add_n_gradient,
    )
)


def accumulate_n(
    inputs: Sequence[TensorLike],
    shape: ShapeLike = None,
    tensor_dtype: DTypeLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Add up tensors of one shape, as `add_n`, with their shape and dtype checked against the caller's.

    Args:
        inputs: Tensors of one shape and dtype.
        shape: What the shape is, if the inputs do not tell.
        tensor_dtype: The dtype that the inputs must have.
        name: Name of the operation.

    Returns:
        The shape and dtype of each input.
    """
    if not isinstance(inputs, (list, tuple)):
        raise ArgumentError(f"accumulate_n: inputs must be a list of tensors, not {inputs!r}")
    tensors = [convert_to_tensor(value, tensor_dtype) for value in inputs]
    total = add_n(tensors, name)
    total.set_shape(TensorShape(shape))
    return total


# -- quotients -----------------------------------------------------------------------------------------


def realdiv(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Compute the quotient ``x / y`` of floating or complex numbers.

    Args:
        x: Any shape, A floating or complex dtype.
        y: Same dtype; the shapes broadcast.
        name: Name of the operation.

    Returns:
        The broadcast shape, the same dtype.
    """
    return add_op(REAL_DIV, x, y, name=name)


def _quotient_gradient(op: Operation, d_z: Tensor) -> list[Tensor | None]:
    x, y = op.inputs
    d_x = add_op(op.op_def, d_z, conj(y))
    # From the output: the numerator need not stay alive until the backward pass.
    return [sum_to_shape_of(d_x, x, y), sum_to_shape_of(-multiply(d_x, conj(op.outputs[0])), y, x)]


REAL_DIV = register(binary("RealDiv", "divide", dtypes.INEXACT, _quotient_gradient))

_TRUE_QUOTIENTS = {dtype: dtypes.float32 if dtype.size <= 2 else dtypes.float64 for dtype in dtypes.INTEGERS}


def truediv(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Compute ``x / y`` as Python does: integers are divided as floating numbers.

    Args:
        x: Any shape, A number dtype. Integers of 8 and 16 bits become float32, longer ones float64.
        y: Same dtype; the shapes broadcast.
        name: Name of the operation.

    Returns:
        The broadcast shape; a floating or complex dtype.

    Examples:
        >>> session.run(tf.truediv([7, 8], 2))
        array([3.5, 4. ])
    """
    with get_default_graph().name_scope(name or "truediv") as name:
        x, y = convert_alike(x, y)
        if x.dtype is y.dtype:  # else they are refused
            x, y = (cast(each, _TRUE_QUOTIENTS.get(each.dtype, each.dtype)) for each in (x, y))
        return realdiv(x, y, name)


def divide(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Compute ``x / y`` as Python does (see `truediv`): element by element, with shapes that broadcast.

    Examples:
        >>> session.run(tf.divide([7, 8], 2))
        array([3.5, 4. ])
    """
    return truediv(x, y, name)


def div_no_nan(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Compute ``x / y``, and 0 where `y` is 0.

    Args:
        x: Any shape, A floating or complex dtype.
        y: Same dtype; the shapes broadcast.
        name: Name of the operation.

    Returns:
        The broadcast shape, the same dtype.
    """
    return add_op(DIV_NO_NAN, x, y, name=name or "div_no_nan")


divide_no_nan = div_no_nan


def _div_no_nan_kernel(ctx: KernelContext, x: Array, y: Array, out: Array | None = None) -> Array:
    xp, zero = ctx.xp, y == 0
    divisor = choose(xp, zero, xp.ones((), y.dtype), y)
    return xp.divide(choose(xp, zero, xp.zeros((), x.dtype), x), divisor, out=out)


DIV_NO_NAN = register(
    binary(
        "DivNoNan",
        out_kernel(_div_no_nan_kernel, (0,), element="where({1} == 0, 0, {0} / {1})"),
        dtypes.INEXACT,
        _quotient_gradient,
    )
)


def reciprocal(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute ``1 / x``.

    Args:
        x: Shape ``[...]``, a floating or complex dtype.
        name: Name of the operation.

    Returns:
        Same shape and dtype.
    """
    return add_op(RECIPROCAL, x, name=name)


def _reciprocal_gradient(op: Operation, d_y: Tensor) -> list[Tensor | None]:
    return [slope_times(-square(conj(op.outputs[0])), d_y)]  # 0 where d_y is, at 1 / 0 too


RECIPROCAL = register(unary("Reciprocal", "reciprocal", dtypes.INEXACT, _reciprocal_gradient))


# -- powers --------------------------------------------------------------------------------------------


@also_of_sparse
def square(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute ``x * x``.

    Args:
        x: Shape ``[...]``, a number dtype.
        name: Name of the operation.

    Returns:
        Same shape and dtype.

    Examples:
        >>> session.run(tf.square([-2, 3]))
        array([4, 9], dtype=int32)
    """
    return add_op(SQUARE, x, name=name)


def _square_gradient(op: Operation, d_y: Tensor) -> list[Tensor | None]:
    return [multiply(d_y, multiply(conj(op.inputs[0]), 2))]


SQUARE = register(unary("Square", "square", dtypes.NUMERIC, _square_gradient))


def squared_difference(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Compute ``(x - y) * (x - y)``.

    Args:
        x: Any shape, a number dtype. Of complex numbers it is the square of the distance.
        y: Same dtype; the shapes broadcast.
        name: Name of the operation.

    Returns:
        The broadcast shape, the same dtype.

    Examples:
        >>> session.run(tf.squared_difference([1.0, 5.0], [4.0, 3.0]))
        array([9., 4.], dtype=float32)
    """
    return add_op(SQUARED_DIFFERENCE, x, y, name=name)


def _squared_difference_kernel(ctx: KernelContext, x: Array, y: Array, out: Array | None = None) -> Array:
    difference = ctx.xp.subtract(x, y, out=out)
    if difference.dtype.kind == "c":
        return ctx.xp.multiply(ctx.xp.conj(difference), difference, out=out)
    return ctx.xp.square(difference, out=difference if difference.ndim else out)


def _squared_difference_gradient(op: Operation, d_z: Tensor) -> list[Tensor | None]:
    x, y = op.inputs
    # A distance is real, whatever dtype it comes in.
    d_difference = multiply(cast(cast(d_z, d_z.dtype.real_dtype), d_z.dtype), multiply(subtract(x, y), 2))
    return [sum_to_shape_of(d_difference, x, y), sum_to_shape_of(-d_difference, y, x)]


SQUARED_DIFFERENCE = register(
    binary(
        "SquaredDifference",
        out_kernel(_squared_difference_kernel, (0, 1), element="({0} - {1}) * ({0} - {1})"),
        dtypes.NUMERIC,
        _squared_difference_gradient,
    )
)


@also_of_sparse
def sqrt(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the square root.

    Args:
        x: Shape ``[...]``, a floating or complex dtype.
        name: Name of the operation.

    Returns:
        Same shape and dtype.

    Examples:
        >>> session.run(tf.sqrt([4.0, 9.0]))
        array([2., 3.], dtype=float32)
    """
    return add_op(SQRT, x, name=name)


def _sqrt_gradient(op: Operation, d_y: Tensor) -> list[Tensor | None]:
    return [slope_times(realdiv(0.5, conj(op.outputs[0])), d_y)]


SQRT = register(unary("Sqrt", "sqrt", dtypes.INEXACT, _sqrt_gradient))


def rsqrt(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the reciprocal of the square root.

    Args:
        x: Shape ``[...]``, a floating or complex dtype.
        name: Name of the operation.

    Returns:
        Same shape and dtype.

    Examples:
        >>> session.run(tf.rsqrt([4.0, 0.25]))
        array([0.5, 2. ], dtype=float32)
    """
    return add_op(RSQRT, x, name=name)


def _rsqrt_kernel(ctx: KernelContext, x: Array, out: Array | None = None) -> Array:
    root = ctx.xp.sqrt(x, out=out)
    return ctx.xp.reciprocal(root, out=root if root.ndim else out)


def _rsqrt_gradient(op: Operation, d_y: Tensor) -> list[Tensor | None]:
    y = conj(op.outputs[0])
    return [slope_times(multiply(multiply(square(y), y), -0.5), d_y)]


RSQRT = register(
    unary("Rsqrt", out_kernel(_rsqrt_kernel, (0,), element="1 / sqrt({0})"), dtypes.INEXACT, _rsqrt_gradient)
)


def exp(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute e to the power `x`.

    Args:
        x: Shape ``[...]``, a floating or complex dtype.
        name: Name of the operation.

    Returns:
        Same shape and dtype.

    Examples:
        >>> session.run(tf.exp([0.0, 1.0]))
        array([1.      , 2.718282], dtype=float32)
    """
    return add_op(EXP, x, name=name)


def _exp_gradient(op: Operation, d_y: Tensor) -> list[Tensor | None]:
    return [multiply(d_y, conj(op.outputs[0]))]


EXP = register(unary("Exp", "exp", dtypes.INEXACT, _exp_gradient))


def log(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the natural logarithm.

    Args:
        x: Shape ``[...]``, a floating or complex dtype.
        name: Name of the operation.

    Returns:
        Same shape and dtype.

    Examples:
        >>> session.run(tf.log([1.0, 2.0]))
        array([0.       , 0.6931472], dtype=float32)
    """
    return add_op(LOG, x, name=name)


def _log_gradient(op: Operation, d_y: Tensor) -> list[Tensor | None]:
    return [realdiv(d_y, conj(op.inputs[0]))]


LOG = register(unary("Log", "log", dtypes.INEXACT, _log_gradient))


def pow(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Compute ``x`` to the power ``y``.

    Args:
        x: Any shape, A number dtype.
        y: Same dtype; the shapes broadcast.
        name: Name of the operation.

    Returns:
        The broadcast shape, the same dtype.

    Raises:
        InvalidArgumentError: When run on a CPU, an integer is raised to a negative power. On a GPU, where the step
            would wait for such a check, that gives the quotient without its fraction, and 0 for a division by 0.

    Examples:
        >>> session.run(tf.pow([2, 3], [3, 2]))
        array([8, 9], dtype=int32)
    """
    return add_op(POW, x, y, name=name)


def _pow_kernel(ctx: KernelContext, x: Array, y: Array, out: Array | None = None) -> Array:
    if ctx.xp is not np:
        return ctx.xp.power(x, y, out=out)
    if y.dtype.kind == "i" and (y < 0).any():
        raise InvalidArgumentError(f"{ctx.op_name}: Integers to negative integer powers are not allowed; use tf.cast")
    cheap = _CHEAP_POWERS.get(y.item()) if y.ndim == 0 else None
    if cheap is None or (y < 1 and x.dtype.kind in "iu"):
        return np.power(x, y, out=out)
    return cheap(x, out=out)


def _cube(x: Array, out: Array | None = None) -> Array:
    return np.multiply(np.square(x), x, out=out)


def _fourth_power(x: Array, out: Array | None = None) -> Array:
    squared = np.square(x, out=out)
    return np.square(squared, out=squared if squared.ndim else out)


_CHEAP_POWERS: Final[dict[Any, Callable[..., Array]]] = {
    -1: np.reciprocal,
    0.5: np.sqrt,
    1: np.positive,
    2: np.square,
    3: _cube,
    4: _fourth_power,
}
"""Faster functions for common exponents: the general power takes up to fifty times as long."""


def _pow_gradient(op: Operation, d_z: Tensor) -> list[Tensor | None]:
    x, y = op.inputs
    conj_x, conj_y = conj(x), conj(y)
    d_x = multiply(d_z, multiply(conj_y, pow(conj_x, subtract(conj_y, 1))))
    # Use 0 as the logarithm of numbers that are not positive: the power is 0 there, or has no derivative.
    has_log = not_equal(x, 0) if x.dtype.is_complex else greater(x, 0)
    positive = where(has_log, conj_x, ones_like(conj_x))
    d_y = multiply(d_z, multiply(conj(op.outputs[0]), log(positive)))
    return [sum_to_shape_of(d_x, x, y), sum_to_shape_of(d_y, y, x)]


_POWERS: Final = out_kernel(_pow_kernel, (0, 1), elementwise=True, element_ns=10)
# The kernel multiplies where there is one exponent, and calls the power function for several: the last bits differ.
POW = register(binary("Pow", _POWERS, dtypes.NUMERIC, _pow_gradient, over_batch=by_element_of_first))


# -- signs and extremes --------------------------------------------------------------------------------


@also_of_sparse
def abs(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the absolute value; of complex numbers the modulus, with the dtype of their parts.

    Args:
        x: Shape ``[...]``, a number dtype.
        name: Name of the operation.

    Returns:
        Same shape; the dtype of `x`, or that of the parts of complex numbers.

    Examples:
        >>> session.run(tf.abs([-1.5, 2.0]))
        array([1.5, 2. ], dtype=float32)
    """
    x = convert_to_tensor(x)
    return complex_abs(x, name) if x.dtype.is_complex else add_op(ABS, x, name=name)


def _abs_gradient(op: Operation, d_y: Tensor) -> list[Tensor | None]:
    return [multiply(d_y, sign(op.inputs[0]))]


ABS = register(unary("Abs", "absolute", dtypes.REAL, _abs_gradient))


def complex_abs(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the modulus of complex numbers (what `abs` does with them).

    Args:
        x: Shape ``[...]``, a complex dtype.
        name: Name of the operation.

    Returns:
        Same shape; the dtype of the parts.
    """
    x = convert_to_tensor(x)
    return add_op(COMPLEX_ABS, x, name=name, Tout=x.dtype.real_dtype)


def _complex_abs_gradient(op: Operation, d_y: Tensor) -> list[Tensor | None]:
    x = op.inputs[0]
    return [multiply(cast(d_y, x.dtype), sign(x))]


COMPLEX_ABS = register(
    OpDef(
        name="ComplexAbs",
        inputs=("x: T",),
        outputs=("y: Tout",),
        types={"T": dtypes.COMPLEX, "Tout": (dtypes.float32, dtypes.float64)},
        shape=like_input(0),
        kernels=on_every_device(ufunc_kernel("absolute", arity=1)),
        gradient=_complex_abs_gradient,
    )
)


@also_of_sparse
def sign(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute -1, 0 or 1 by the sign; for complex numbers ``x / abs(x)``, and 0 for 0.

    Args:
        x: Shape ``[...]``, a number dtype.
        name: Name of the operation.

    Returns:
        Same shape and dtype.

    Examples:
        >>> session.run(tf.sign([-3.0, 0.0, 2.0]))
        array([-1.,  0.,  1.], dtype=float32)
    """
    return add_op(SIGN, x, name=name)


def _sign_gradient(op: Operation, d_y: Tensor) -> list[Tensor | None]:
    x, direction = op.inputs[0], op.outputs[0]
    if not x.dtype.is_complex:
        return [zeros_like(d_y)]
    # The result does not depend on the modulus: only the gradient's part across the direction flows back.
    along = cast(cast(multiply(conj(d_y), direction), x.dtype.real_dtype), x.dtype)
    across = subtract(d_y, multiply(direction, along))
    return [div_no_nan(across, cast(complex_abs(x), x.dtype))]


SIGN = register(unary("Sign", "sign", dtypes.NUMERIC, _sign_gradient))


def maximum(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Take the greater of `x` and `y`.

    Args:
        x: Any shape, an integer or floating dtype.
        y: Same dtype; the shapes broadcast.
        name: Name of the operation.

    Returns:
        The broadcast shape. Where `x` and `y` are equal, the gradient flows to `x`.

    Examples:
        >>> session.run(tf.maximum([1, 5], [3, 4]))
        array([3, 5], dtype=int32)
    """
    return add_op(MAXIMUM, x, y, name=name)


def _maximum_gradient(op: Operation, d_z: Tensor) -> list[Tensor | None]:
    x, y = op.inputs
    return _choice_gradient(d_z, x, y, greater_equal(x, y))


def _choice_gradient(d_z: Tensor, x: Tensor, y: Tensor, chose_x: Tensor) -> list[Tensor | None]:
    d_x = multiply(d_z, cast(chose_x, d_z.dtype))
    d_y = multiply(d_z, cast(logical_not(chose_x), d_z.dtype))
    return [sum_to_shape_of(d_x, x, y), sum_to_shape_of(d_y, y, x)]


def _maximum_kernel(ctx: KernelContext, x: Array, y: Array, out: Array | None = None) -> Array:
    if ctx.xp is np and _is_large_against(x, y):
        return x.clip(y, x.dtype.type(np.inf), out=out)
    return ctx.xp.maximum(x, y, out=out)


def _is_large_against(x: Array, y: Array) -> bool:
    """Whether `y` is a number and `x` long: NumPy then clips three times as fast as it compares."""
    return y.ndim == 0 and x.size > 4096 and x.dtype.char in "fd"


MAXIMUM = register(
    binary("Maximum", out_kernel(_maximum_kernel, (0, 1), element="maximum({0}, {1})"), dtypes.REAL, _maximum_gradient)
)


def minimum(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Take the smaller of `x` and `y`.

    Args:
        x: Any shape, an integer or floating dtype.
        y: Same dtype; the shapes broadcast.
        name: Name of the operation.

    Returns:
        The broadcast shape. Where `x` and `y` are equal, the gradient flows to `x`.

    Examples:
        >>> session.run(tf.minimum([1, 5], 3))
        array([1, 3], dtype=int32)
    """
    return add_op(MINIMUM, x, y, name=name)


def _minimum_gradient(op: Operation, d_z: Tensor) -> list[Tensor | None]:
    x, y = op.inputs
    return _choice_gradient(d_z, x, y, less_equal(x, y))


def _minimum_kernel(ctx: KernelContext, x: Array, y: Array, out: Array | None = None) -> Array:
    if ctx.xp is np and _is_large_against(x, y):
        return x.clip(x.dtype.type(-np.inf), y, out=out)
    return ctx.xp.minimum(x, y, out=out)


MINIMUM = register(
    binary("Minimum", out_kernel(_minimum_kernel, (0, 1), element="minimum({0}, {1})"), dtypes.REAL, _minimum_gradient)
)


def _times(x: TensorLike, y: TensorLike, name: str | None = None) -> Any:
    return operate("sparse_mul", y, x) if isinstance(y, SparseTensor) else multiply(x, y, name)


_OPERATORS: dict[str, Any] = {"add": add, "sub": subtract, "mul": _times, "pow": pow, "neg": negative, "abs": abs}
for _operator, _function in {**_OPERATORS, "truediv": truediv}.items():
    register_operator(_operator, _function)
