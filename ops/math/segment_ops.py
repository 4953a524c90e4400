"""Reductions of rows by segment: rows with the same segment number are summed, averaged, ...

The sorted operations take ascending segment numbers and give one row more than the last number; the unsorted
ones take the number of segments, any order, and drop rows with a negative number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.constant_value import constant_value
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.dtypes import DType, DTypeLike, as_dtype
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import (
    Array,
    GradientFunction,
    KernelContext,
    KernelFunction,
    OpDef,
    on_every_device,
    register,
)
from tfray.framework.tensor_shape import UNKNOWN, TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.broadcast_ops import ones_like, where, zeros_like
from tfray.ops.arrays.gather_ops import sum_rows
from tfray.ops.arrays.shape_ops import cast, host_int, index_tensor, shape
from tfray.ops.kernels import fast_rows
from tfray.ops.kernels.gpu.device_scatter import combined_rows, put_first
from tfray.ops.kernels.precision import is_half
from tfray.ops.math.arithmetic_ops import conj, maximum, multiply, realdiv, sqrt, truediv
from tfray.ops.math.comparison_ops import equal, greater

# -- what the operations share -------------------------------------------------------------------------


def _sorted(name: str, kernel: KernelFunction, types: Sequence[DType], gradient: GradientFunction) -> OpDef:
    return OpDef(
        name=name,
        inputs=("data: T", "segment_ids: Tindices"),
        outputs=("output: T",),
        types={"T": types, "Tindices": dtypes.INDICES},
        shape=_sorted_shape,
        kernels=on_every_device(kernel),
        gradient=gradient,
    )


def _sorted_shape(op: Operation) -> list[TensorShape]:
    data, ids = op.inputs[0].shape.with_rank_at_least(1), op.inputs[1].shape.with_rank(1)
    if data.rank is None:
        return [UNKNOWN]
    TensorShape(data.sizes[:1]).assert_is_compatible_with(ids)
    known = constant_value(op.inputs[1])
    count = None if known is None else (int(known[-1]) + 1 if known.size else 0)
    return [TensorShape([count, *data.sizes[1:]])]


def _count_sorted(ctx: KernelContext, data: Array, ids: Array) -> int:
    """How many segments there are. Raises `InvalidArgumentError` unless the numbers ascend from 0 or more."""
    if data.shape[:1] != ids.shape:
        raise InvalidArgumentError(
            f"segment_ids should be the same size as dimension 0 of input: they have shape {ids.shape}, it {data.shape}"
        )
    if not ids.size:
        return 0
    if ctx.xp is np and ids[0] < 0:
        raise InvalidArgumentError(f"segment ids must be >= 0, found {ids[0]}")
    if ctx.xp is np and (ids[1:] < ids[:-1]).any():
        raise InvalidArgumentError("segment ids are not increasing; tf.unsorted_segment_sum takes any order")
    return int(ids[-1]) + 1


def _unsorted(name: str, kernel: KernelFunction, types: Sequence[DType], gradient: GradientFunction) -> OpDef:
    return OpDef(
        name=name,
        inputs=("data: T", "segment_ids: Tindices", "num_segments: Tnumsegments"),
        outputs=("output: T",),
        host_inputs=("num_segments",),
        types={"T": types, "Tindices": dtypes.INDICES, "Tnumsegments": dtypes.INDICES},
        shape=_unsorted_shape,
        kernels=on_every_device(kernel),
        gradient=gradient,
    )


def _unsorted_shape(op: Operation) -> list[TensorShape]:
    data, ids = op.inputs[0].shape, op.inputs[1].shape
    op.inputs[2].shape.assert_has_rank(0)
    if data.rank is None or ids.rank is None:
        return [UNKNOWN]
    if not TensorShape(data.sizes[: ids.rank]).is_compatible_with(ids):
        raise ValueError(f"the shape {ids} of segment_ids is no prefix of the shape {data} of data")
    count = constant_value(op.inputs[2])
    if count is not None and count < 0:
        raise ValueError(f"Input num_segments == {count} must not be negative.")
    return [TensorShape([None if count is None else int(count), *data.sizes[ids.rank :]])]


def _as_rows(ctx: KernelContext, data: Array, ids: Array, count: int) -> tuple[Array, Array]:
    """The rows of `data` and their segments, those with a negative number left out."""
    if data.shape[: ids.ndim] != ids.shape:
        raise InvalidArgumentError(f"segment_ids of shape {ids.shape} do not number parts of shape {data.shape}")
    rows, numbers = data.reshape(ids.size, prod(data.shape[ids.ndim :])), ids.reshape(-1)
    if count < 0:
        raise InvalidArgumentError(f"Input num_segments == {count} must not be negative.")
    if ctx.xp is np and numbers.size and numbers.max() >= count:
        place = ",".join(map(str, np.unravel_index(numbers.argmax(), ids.shape)))
        raise InvalidArgumentError(f"segment_ids[{place}] = {numbers.max()} is out of range [0, {count})")
    if numbers.size and numbers.min() < 0:
        kept = numbers >= 0
        rows, numbers = rows[kept], numbers[kept]
    return rows, numbers


def _reduce_rows(ctx: KernelContext, ufunc: str, rows: Array, ids: Array, count: int, empty: float) -> Array:
    """Reduce rows by segment with a ufunc; segments without rows become `empty`."""
    xp = ctx.xp
    result = xp.full((count, rows.shape[1]), empty, rows.dtype)
    if ids.size and xp is not np:
        places, combined, is_first = combined_rows(xp, ufunc, ids, rows)
        put_first(xp, result, places, combined, is_first)
    elif ids.size:
        order = np.argsort(ids, kind="stable")
        ascending = ids[order]
        starts = np.flatnonzero(np.concatenate([[True], ascending[1:] != ascending[:-1]]))
        wide = rows.astype(np.float32) if is_half(rows.dtype) else rows
        result[ascending[starts]] = getattr(np, ufunc).reduceat(wide[order], starts, axis=0, dtype=wide.dtype)
    return result


def _lowest(dtype: DTypeLike) -> Any:
    return as_dtype(dtype).min


def _highest(dtype: DTypeLike) -> Any:
    return as_dtype(dtype).max


# -- the transpose of a sum by segment -----------------------------------------------------------------


def spread_segments(values: TensorLike, segment_ids: TensorLike, name: str | None = None) -> Tensor:
    """Give every row the value of its segment, and 0 to rows whose segment is negative.

    Args:
        values: Shape ``[segments, ...]``, a number dtype.
        segment_ids: Integers of any shape.
        name: Name of the operation.

    Returns:
        Shape ``segment_ids.shape + values.shape[1:]``.
    """
    return add_op(SPREAD_SEGMENTS, values, segment_ids, name=name)


def _spread_segments_kernel(ctx: KernelContext, values: Array, ids: Array) -> Array:
    xp = ctx.xp
    if values.shape[0] == 0:
        return xp.zeros(ids.shape + values.shape[1:], values.dtype)
    if xp is np and ids.size and ids.max() >= values.shape[0]:
        raise InvalidArgumentError(f"segment {ids.max()} is not below {values.shape[0]}")
    absent = ids < 0
    if xp is np and fast_rows.can_copy(values, ids.size * prod(values.shape[1:])) and not absent.any():
        return fast_rows.gather(values, ids, None)
    spread = xp.take(values, xp.maximum(ids, 0), axis=0)
    if ids.ndim == 0:
        return xp.zeros_like(spread) if absent else spread
    spread[absent] = 0
    return spread


def _spread_segments_shape(op: Operation) -> list[TensorShape]:
    return [op.inputs[1].shape.concatenate(op.inputs[0].shape[1:])]


def _spread_segments_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    values, ids = op.inputs
    return [unsorted_segment_sum(d_output, ids, shape(values)[0]), None]


SPREAD_SEGMENTS = register(
    OpDef(
        name="SpreadSegments",
        inputs=("values: T", "segment_ids: Tindices"),
        outputs=("output: T",),
        types={"T": dtypes.NUMERIC, "Tindices": dtypes.INDICES},
        shape=_spread_segments_shape,
        kernels=on_every_device(_spread_segments_kernel),
        gradient=_spread_segments_gradient,
    )
)

SegmentReduction = Callable[[Tensor], Tensor]


def _extreme_gradient(op: Operation, d_output: Tensor, total: SegmentReduction) -> Tensor:
    data, ids = op.inputs[:2]
    chosen = equal(data, spread_segments(op.outputs[0], ids))
    # Equal extremes of a segment share its gradient; 1 stands in where a segment has no rows.
    shared = realdiv(d_output, maximum(total(cast(chosen, data.dtype)), 1))
    return where(chosen, spread_segments(shared, ids), zeros_like(data))


def _prod_gradient(op: Operation, d_output: Tensor, total: SegmentReduction, product: SegmentReduction) -> Tensor:
    # The product of the other rows: the total divided by the row; for a single zero, the product of the nonzero rows.
    data, ids = op.inputs[:2]
    is_zero = equal(data, 0)
    zeros = total(cast(is_zero, data.dtype.real_dtype))
    d_output = where(greater(zeros, 1), zeros_like(d_output), d_output)
    whole = where(is_zero, ones_like(data), data)
    by_division = realdiv(spread_segments(op.outputs[0], ids), whole)
    others = where(is_zero, spread_segments(product(whole), ids), by_division)
    return multiply(spread_segments(d_output, ids), conj(others))


# -- sorted segments -----------------------------------------------------------------------------------


def segment_sum(data: TensorLike, segment_ids: TensorLike, name: str | None = None) -> Tensor:
    """Add up the rows of each segment.

    Args:
        data: Shape ``[n, ...]``, a number dtype.
        segment_ids: Shape ``[n]``: the segment of each row, ascending.
        name: Name of the operation.

    Returns:
        Shape ``[segments, ...]``; 0 for a number that does not occur.

    Raises:
        InvalidArgumentError: When run, `segment_ids` do not ascend.
    """
    return add_op(SEGMENT_SUM, data, segment_ids, name=name)


def _segment_sum_kernel(ctx: KernelContext, data: Array, ids: Array) -> Array:
    count = _count_sorted(ctx, data, ids)
    return sum_rows(ctx, data.reshape(len(data), prod(data.shape[1:])), ids, count).reshape(count, *data.shape[1:])


def _segment_sum_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    return [spread_segments(d_output, op.inputs[1]), None]


SEGMENT_SUM = register(_sorted("SegmentSum", _segment_sum_kernel, dtypes.NUMERIC, _segment_sum_gradient))


def segment_mean(data: TensorLike, segment_ids: TensorLike, name: str | None = None) -> Tensor:
    """Average the rows of each segment (arguments as `segment_sum`). Means of integers are cut towards 0.

    `data` has the shape ``[n, ...]`` and `segment_ids` ``[n]``; the result has the shape ``[segments, ...]``.
    """
    return add_op(SEGMENT_MEAN, data, segment_ids, name=name)


def _segment_mean_kernel(ctx: KernelContext, data: Array, ids: Array) -> Array:
    total = _segment_sum_kernel(ctx, data, ids)
    counts = ctx.xp.maximum(ctx.xp.bincount(ids, minlength=len(total)), 1).astype(data.dtype)
    counts = counts.reshape(-1, *[1] * (data.ndim - 1))
    if data.dtype.kind in "iu":
        return ctx.xp.sign(total) * (ctx.xp.abs(total) // counts)
    return total / counts


def _segment_mean_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    data, ids = op.inputs
    counts = maximum(segment_sum(ones_like(data, data.dtype.real_dtype), ids), 1)
    return [spread_segments(realdiv(d_output, cast(counts, data.dtype)), ids), None]


SEGMENT_MEAN = register(_sorted("SegmentMean", _segment_mean_kernel, dtypes.NUMERIC, _segment_mean_gradient))


def segment_max(data: TensorLike, segment_ids: TensorLike, name: str | None = None) -> Tensor:
    """Take the greatest of each segment, row by row (arguments as `segment_sum`; integers and floats).

    `data` has the shape ``[n, ...]`` and `segment_ids` ``[n]``; the result has the shape ``[segments, ...]``.
    """
    return add_op(SEGMENT_MAX, data, segment_ids, name=name)


def _sorted_rows_kernel(ufunc: str, empty: int) -> KernelFunction:
    def kernel(ctx: KernelContext, data: Array, ids: Array) -> Array:
        count = _count_sorted(ctx, data, ids)
        rows = data.reshape(len(data), prod(data.shape[1:]))
        return _reduce_rows(ctx, ufunc, rows, ids, count, empty).reshape(count, *data.shape[1:])

    return kernel


def _segment_extreme_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    return [_extreme_gradient(op, d_output, lambda x: segment_sum(x, op.inputs[1])), None]


SEGMENT_MAX = register(_sorted("SegmentMax", _sorted_rows_kernel("maximum", 0), dtypes.REAL, _segment_extreme_gradient))


def segment_min(data: TensorLike, segment_ids: TensorLike, name: str | None = None) -> Tensor:
    """Take the least of each segment, row by row (arguments as `segment_sum`; integers and floats).

    `data` has the shape ``[n, ...]`` and `segment_ids` ``[n]``; the result has the shape ``[segments, ...]``.
    """
    return add_op(SEGMENT_MIN, data, segment_ids, name=name)


SEGMENT_MIN = register(_sorted("SegmentMin", _sorted_rows_kernel("minimum", 0), dtypes.REAL, _segment_extreme_gradient))


def segment_prod(data: TensorLike, segment_ids: TensorLike, name: str | None = None) -> Tensor:
    """Multiply the rows of each segment (arguments as `segment_sum`); 1 for a number that does not occur.

    `data` has the shape ``[n, ...]`` and `segment_ids` ``[n]``; the result has the shape ``[segments, ...]``.
    """
    return add_op(SEGMENT_PROD, data, segment_ids, name=name)


def _segment_prod_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    ids = op.inputs[1]
    return [_prod_gradient(op, d_output, lambda x: segment_sum(x, ids), lambda x: segment_prod(x, ids)), None]


SEGMENT_PROD = register(
    _sorted("SegmentProd", _sorted_rows_kernel("multiply", 1), dtypes.NUMERIC, _segment_prod_gradient)
)


# -- segments in any order -----------------------------------------------------------------------------


def unsorted_segment_sum(
    data: TensorLike, segment_ids: TensorLike, num_segments: TensorLike, name: str | None = None
) -> Tensor:
    """Add up the rows of each segment, in any order.

    Args:
        data: Shape ``segment_ids.shape + [...]``, a number dtype.
        segment_ids: Integers of any shape; negative ones drop their row.
        num_segments: Number of segments, an integer scalar above every entry of `segment_ids`.
        name: Name of the operation.

    Returns:
        Shape ``[num_segments, ...]``; 0 for a number that does not occur.

    Raises:
        InvalidArgumentError: When run, an entry of `segment_ids` is not below `num_segments`.

    Examples:
        >>> session.run(tf.unsorted_segment_sum([1, 2, 3], [1, 0, 1], num_segments=3))
        array([2, 4, 0], dtype=int32)
    """
    return add_op(UNSORTED_SEGMENT_SUM, data, segment_ids, index_tensor(num_segments), name=name)


def _unsorted_segment_sum_kernel(ctx: KernelContext, data: Array, ids: Array, num_segments: Array) -> Array:
    count = host_int(ctx, num_segments)
    rows, numbers = _as_rows(ctx, data, ids, count)
    return sum_rows(ctx, rows, numbers, count).reshape(count, *data.shape[ids.ndim :])


def _unsorted_segment_sum_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    return [spread_segments(d_output, op.inputs[1]), None, None]


UNSORTED_SEGMENT_SUM = register(
    _unsorted("UnsortedSegmentSum", _unsorted_segment_sum_kernel, dtypes.NUMERIC, _unsorted_segment_sum_gradient)
)


def unsorted_segment_max(
    data: TensorLike, segment_ids: TensorLike, num_segments: TensorLike, name: str | None = None
) -> Tensor:
    """Take the greatest of each segment (arguments as `unsorted_segment_sum`; integers and floats).

    `data` has the shape ``segment_ids.shape + [...]``; the result has the shape ``[num_segments, ...]``.
    Segments without rows get the least finite value of the dtype.

    Examples:
        >>> session.run(tf.unsorted_segment_max([1, 2, 3], [1, 0, 1], num_segments=2))
        array([2, 3], dtype=int32)
    """
    return add_op(UNSORTED_SEGMENT_MAX, data, segment_ids, index_tensor(num_segments), name=name)


def _unsorted_rows_kernel(ufunc: str, empty: Callable[[Any], Any]) -> KernelFunction:
    def kernel(ctx: KernelContext, data: Array, ids: Array, num_segments: Array) -> Array:
        count = host_int(ctx, num_segments)
        rows, numbers = _as_rows(ctx, data, ids, count)
        reduced = _reduce_rows(ctx, ufunc, rows, numbers, count, empty(data.dtype))
        return reduced.reshape(count, *data.shape[ids.ndim :])

    return kernel


def _unsorted_segment_extreme_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    ids, count = op.inputs[1:]
    return [_extreme_gradient(op, d_output, lambda x: unsorted_segment_sum(x, ids, count)), None, None]


UNSORTED_SEGMENT_MAX = register(
    _unsorted(
        "UnsortedSegmentMax",
        _unsorted_rows_kernel("maximum", _lowest),
        dtypes.REAL,
        _unsorted_segment_extreme_gradient,
    )
)


def unsorted_segment_min(
    data: TensorLike, segment_ids: TensorLike, num_segments: TensorLike, name: str | None = None
) -> Tensor:
    """Take the least of each segment (arguments as `unsorted_segment_sum`; integers and floats).

    `data` has the shape ``segment_ids.shape + [...]``; the result has the shape ``[num_segments, ...]``.
    Segments without rows get the greatest finite value of the dtype.
    """
    return add_op(UNSORTED_SEGMENT_MIN, data, segment_ids, index_tensor(num_segments), name=name)


UNSORTED_SEGMENT_MIN = register(
    _unsorted(
        "UnsortedSegmentMin",
        _unsorted_rows_kernel("minimum", _highest),
        dtypes.REAL,
        _unsorted_segment_extreme_gradient,
    )
)


def unsorted_segment_prod(
    data: TensorLike, segment_ids: TensorLike, num_segments: TensorLike, name: str | None = None
) -> Tensor:
    """Multiply the rows of each segment (arguments as `unsorted_segment_sum`); 1 for segments without rows.

    `data` has the shape ``segment_ids.shape + [...]``; the result has the shape ``[num_segments, ...]``.
    """
    return add_op(UNSORTED_SEGMENT_PROD, data, segment_ids, index_tensor(num_segments), name=name)


def _unsorted_segment_prod_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    ids, count = op.inputs[1:]
    total = partial(unsorted_segment_sum, segment_ids=ids, num_segments=count)
    product = partial(unsorted_segment_prod, segment_ids=ids, num_segments=count)
    return [_prod_gradient(op, d_output, total, product), None, None]


UNSORTED_SEGMENT_PROD = register(
    _unsorted(
        "UnsortedSegmentProd",
        _unsorted_rows_kernel("multiply", lambda dtype: 1),
        dtypes.NUMERIC,
        _unsorted_segment_prod_gradient,
    )
)


def unsorted_segment_mean(
    data: TensorLike, segment_ids: TensorLike, num_segments: TensorLike, name: str | None = None
) -> Tensor:
    """Average the rows of each segment (arguments as `unsorted_segment_sum`); 0 for segments without rows.

    `data` has the shape ``segment_ids.shape + [...]``; the result has the shape ``[num_segments, ...]``.
    """
    total, counts = _sums_and_counts(data, segment_ids, num_segments)
    return truediv(total, counts, name)


def unsorted_segment_sqrt_n(
    data: TensorLike, segment_ids: TensorLike, num_segments: TensorLike, name: str | None = None
) -> Tensor:
    """Add up the rows of each segment and divide by the square root of their number (see `unsorted_segment_sum`).

    `data` has the shape ``segment_ids.shape + [...]``; the result has the shape ``[num_segments, ...]``.
    """
    total, counts = _sums_and_counts(data, segment_ids, num_segments)
    return realdiv(total, sqrt(counts), name)


def _sums_and_counts(data: TensorLike, segment_ids: TensorLike, num_segments: TensorLike) -> tuple[Tensor, Tensor]:
    data = convert_to_tensor(data)
    counts = unsorted_segment_sum(ones_like(data, data.dtype.real_dtype), segment_ids, num_segments)
    return unsorted_segment_sum(data, segment_ids, num_segments), cast(maximum(counts, 1), data.dtype)
