"""Running sums and products along a dimension."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.constant_value import constant_value
from tfray.framework.convert import add_op
from tfray.framework.dtypes import DType, as_dtype
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import (
    Array,
    GradientFunction,
    KernelContext,
    KernelFunction,
    OpDef,
    on_every_device,
    out_kernel,
    register,
)
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.broadcast_ops import ones_like, where, zeros_like
from tfray.ops.arrays.shape_ops import cast, host_int, index_tensor
from tfray.ops.kernels.compiled_rows import can_compute, compute_rows
from tfray.ops.kernels.precision import is_half
from tfray.ops.math.arithmetic_ops import add, conj, exp, log, multiply, negative, realdiv, subtract
from tfray.ops.math.comparison_ops import equal, greater


def _scan(name: str, kernel: KernelFunction, types: Sequence[DType], gradient: GradientFunction) -> OpDef:
    return OpDef(
        name=name,
        inputs=("x: T", "axis: Tidx"),
        outputs=("out: T",),
        host_inputs=("axis",),
        types={"T": types, "Tidx": dtypes.INDICES},
        attrs=("exclusive", "reverse"),
        shape=_scan_shape,
        kernels=on_every_device(out_kernel(kernel)),
        gradient=gradient,
    )


def _scan_shape(op: Operation) -> list[TensorShape]:
    x, axis = op.inputs
    if axis.shape.rank not in (None, 0):
        rank = axis.shape.rank
        raise ValueError(f"axis must be a scalar, not of shape {axis.shape}: Shape must be rank 0 but is rank {rank}")
    value = constant_value(axis)
    if value is not None and x.shape.rank is not None:
        _from_front(int(value), x.shape.rank)
    return [x.shape]


def _from_front(axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise ValueError(f"Expected scan axis in the range [{-rank}, {rank}), but got {axis}")
    return axis % rank


def _scan_kernel(ctx: KernelContext, x: Array, axis: Array, out: Array | None, function: str, start: int) -> Array:
    try:
        along = _from_front(host_int(ctx, axis), x.ndim)
    except ValueError as error:
        raise InvalidArgumentError(f"{error} (input shape {x.shape})") from error
    if out is None:
        out = ctx.xp.empty(x.shape, x.dtype)
    reverse, exclusive = ctx.attr("reverse"), ctx.attr("exclusive")
    if function == "cumsum" and along == x.ndim - 1 and out.flags.c_contiguous and can_compute(ctx.xp, x):
        rows, columns = x.size // x.shape[-1], x.shape[-1]
        how = (columns - 1, -1) if reverse else (0, 1)
        compute_rows("reductions", "running_sums", rows, columns, *how, int(exclusive), x, out)
        return out
    source, target = ctx.xp.moveaxis(x, along, 0), ctx.xp.moveaxis(out, along, 0)
    if reverse:
        source, target = source[::-1], target[::-1]
    if exclusive:
        target[:1] = start
        source, target = source[:-1], target[1:]
    scan = getattr(ctx.xp, function)
    if ctx.xp is np and not is_half(x.dtype):
        scan(source, axis=0, dtype=x.dtype, out=target)
    else:
        target[...] = scan(source, axis=0, dtype=np.float32 if is_half(x.dtype) else x.dtype)
    return out


def cumsum(
    x: TensorLike, axis: TensorLike = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Tensor:
    """Compute running sums along a dimension.

    Args:
        x: Shape ``[...]`` of rank 1 or more, a number dtype.
        axis: The dimension: an integer scalar.
        exclusive: Leave each element out of its own sum: the first sum is 0.
        reverse: Run from the end.
        name: Name of the operation.

    Returns:
        Same shape and dtype as `x`.

    Examples:
        >>> session.run(tf.cumsum([1, 2, 3]))
        array([1, 3, 6], dtype=int32)
        >>> session.run(tf.cumsum([1, 2, 3], exclusive=True))
        array([0, 1, 3], dtype=int32)
    """
    return add_op(CUMSUM, x, index_tensor(axis), name=name, exclusive=bool(exclusive), reverse=bool(reverse))


def _cumsum_kernel(ctx: KernelContext, x: Array, axis: Array, out: Array | None = None) -> Array:
    return _scan_kernel(ctx, x, axis, out, "cumsum", 0)


def _cumsum_gradient(op: Operation, d_out: Tensor) -> list[Tensor | None]:
    return [cumsum(d_out, op.inputs[1], op.attr("exclusive"), not op.attr("reverse")), None]


CUMSUM = register(_scan("Cumsum", _cumsum_kernel, dtypes.NUMERIC, _cumsum_gradient))


def cumprod(
    x: TensorLike, axis: TensorLike = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Tensor:
    """Compute running products along a dimension (arguments as `cumsum`; the first exclusive product is 1).

    The result has the shape and dtype of `x`.

    Examples:
        >>> session.run(tf.cumprod([2, 3, 4]))
        array([ 2,  6, 24], dtype=int32)
    """
    return add_op(CUMPROD, x, index_tensor(axis), name=name, exclusive=bool(exclusive), reverse=bool(reverse))


def _cumprod_kernel(ctx: KernelContext, x: Array, axis: Array, out: Array | None = None) -> Array:
    return _scan_kernel(ctx, x, axis, out, "cumprod", 1)


def _cumprod_gradient(op: Operation, d_out: Tensor) -> list[Tensor | None]:
    x, axis = op.inputs
    exclusive, reverse = op.attr("exclusive"), op.attr("reverse")
    total = cumsum(multiply(conj(op.outputs[0]), d_out), axis, exclusive, not reverse)
    # At a factor of 0 the quotient is not the product of the others. Only the first 0 of a product has a gradient, as
    # long as no other has come.
    is_zero, zeros = equal(x, 0), zeros_like(x)
    others = where(is_zero, ones_like(x), x)
    number = cast(is_zero, dtypes.int32)
    has_one = equal(cumsum(number, axis, exclusive, reverse), 1)
    products = multiply(conj(cumprod(others, axis, exclusive, reverse)), d_out)
    rest = cumsum(where(has_one, products, zeros), axis, exclusive, not reverse)
    is_first = equal(cumsum(number, axis, True, reverse), 0)
    return [where(is_zero, where(is_first, rest, zeros), realdiv(total, conj(others))), None]


CUMPROD = register(_scan("Cumprod", _cumprod_kernel, dtypes.NUMERIC, _cumprod_gradient))


def cumulative_logsumexp(
    x: TensorLike, axis: TensorLike = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Tensor:
    """Compute logarithms of running sums of exponentials (arguments as `cumsum`, of a float dtype).

    The result has the shape and dtype of `x`. The first exclusive one, the logarithm of 0, is the least number of the
    dtype.
    """
    return add_op(
        CUMULATIVE_LOGSUMEXP, x, index_tensor(axis), name=name, exclusive=bool(exclusive), reverse=bool(reverse)
    )


def _cumulative_logsumexp_kernel(ctx: KernelContext, x: Array, axis: Array, out: Array | None = None) -> Array:
    try:
        along = _from_front(host_int(ctx, axis), x.ndim)
    except ValueError as error:
        raise InvalidArgumentError(f"{error} (input shape {x.shape})") from error
    xp = ctx.xp
    out = xp.empty(x.shape, x.dtype) if out is None else out
    source, target = xp.moveaxis(x, along, 0), xp.moveaxis(out, along, 0)
    if ctx.attr("reverse"):
        source, target = source[::-1], target[::-1]
    wide = source.astype(np.float32) if is_half(x.dtype) else source
    total = xp.full(wide.shape[1:], -np.inf, wide.dtype)
    least = as_dtype(x.dtype).min
    for index in range(len(wide)):
        if ctx.attr("exclusive"):
            target[index] = total if index else least
        total = xp.logaddexp(total, wide[index])
        if not ctx.attr("exclusive"):
            target[index] = total
    return out


def _cumulative_logsumexp_gradient(op: Operation, d_out: Tensor) -> list[Tensor | None]:
    x, axis = op.inputs
    result, least = op.outputs[0], d_out.dtype.min
    exclusive, reverse = op.attr("exclusive"), op.attr("reverse")
    parts = []
    # Positive and negative gradients are summed apart, because sums are made of logarithms.
    for part in (d_out, negative(d_out)):
        is_positive = greater(part, 0)
        logs = where(is_positive, log(where(is_positive, part, ones_like(part))), ones_like(part) * least)
        parts.append(exp(add(cumulative_logsumexp(subtract(logs, result), axis, exclusive, not reverse), x)))
    return [subtract(parts[0], parts[1]), None]


CUMULATIVE_LOGSUMEXP = register(
    _scan("CumulativeLogsumexp", _cumulative_logsumexp_kernel, dtypes.FLOATS, _cumulative_logsumexp_gradient)
)
