"""Rows that are looked up and combined by segment in one pass, without a copy of the rows: bags of embeddings."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any, Final

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.constant_value import constant_value
from tfray.framework.convert import add_op
from tfray.framework.graph import Operation, Tensor
from tfray.framework.indexed_slices import IndexedSlices
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
from tfray.ops.arrays.broadcast_ops import ones_like
from tfray.ops.arrays.gather_ops import first_outside, gather, sum_rows
from tfray.ops.arrays.join_ops import concat
from tfray.ops.arrays.shape_ops import cast, host_int, index_tensor, reshape
from tfray.ops.arrays.shape_ops import shape as shape_of
from tfray.ops.arrays.slice_ops import getitem
from tfray.ops.kernels.precision import is_half
from tfray.ops.math.arithmetic_ops import divide, maximum, sqrt
from tfray.ops.math.segment_ops import unsorted_segment_sum

# -- what the operations share -------------------------------------------------------------------------


_ALL: Final = -(2**31)
"""As the number of segments: as many as there are."""


def _combine(
    definition: OpDef,
    data: TensorLike,
    indices: TensorLike,
    segment_ids: TensorLike,
    name: str | None,
    num_segments: TensorLike | None,
) -> Tensor:
    indices, segment_ids = index_tensor(indices), index_tensor(segment_ids)
    count = index_tensor(_ALL if num_segments is None else num_segments)
    known = constant_value(count)
    if num_segments is not None and known is not None and (known < 0).any():
        raise InvalidArgumentError(f"{definition.name}: num_segments is {known}, expected 0 or more")
    return add_op(definition, data, indices, segment_ids, count, name=name)


@lru_cache(maxsize=1)
def _csr_array() -> Any:
    from scipy.sparse import csr_array

    return csr_array


def _checked_count(ctx: KernelContext, data: Array, indices: Array, ids: Array, num_segments: Array) -> int:
    """The number of segments. Raises `InvalidArgumentError` for segments that do not ascend, or rows not there."""
    if indices.ndim != 1 or indices.shape != ids.shape:
        raise InvalidArgumentError(f"segment_ids of shape {ids.shape} do not fit indices of shape {indices.shape}")
    count = host_int(ctx, num_segments)
    if count < 0 and count != _ALL:
        raise InvalidArgumentError(f"num_segments is {count}, expected 0 or more")
    rows = data.shape[0]
    if ctx.xp is np and first_outside(indices, rows) is not None:
        place = int(np.flatnonzero((indices < 0) | (indices >= rows))[0])
        raise InvalidArgumentError(f"indices[{place}] == {indices[place]} out of range [0, {rows})")
    last = int(ids[-1]) if ids.size else -1
    if ctx.xp is np and ids.size:
        if ids[0] < 0:
            raise InvalidArgumentError(f"Segment id {ids[0]} out of range [0, {count if count >= 0 else last + 1})")
        if (ids[1:] < ids[:-1]).any():
            raise InvalidArgumentError("segment ids are not increasing")
    if count >= 0 and last >= count:
        raise InvalidArgumentError(f"segment ids must be < num_segments: Segment id {last} out of range [0, {count})")
    return last + 1 if count < 0 else count


def _combining_kernel(power: float) -> KernelFunction:
    """A kernel that divides sums by the numbers of their rows, raised to `power`."""

    def kernel(ctx: KernelContext, data: Array, indices: Array, ids: Array, num_segments: Array) -> Array:
        xp = ctx.xp
        count = _checked_count(ctx, data, indices, ids, num_segments)
        counts = xp.bincount(ids, minlength=count)
        wide = np.dtype(np.float32) if is_half(data.dtype) else data.dtype
        rows = data.reshape(data.shape[0], prod(data.shape[1:]))
        if xp is np and wide == data.dtype and wide.kind in "fc":
            starts = np.concatenate([np.zeros(1, np.int64), counts.cumsum()])
            matrix = _csr_array()((np.ones(ids.size, wide), indices, starts), shape=(count, data.shape[0]))
            total = matrix @ rows
        else:
            total = sum_rows(ctx, rows.take(indices, axis=0).astype(wide), ids, count)
        if power:
            total = total / (xp.maximum(counts, 1) ** power).astype(wide)[:, None]
        return total.astype(data.dtype, copy=False).reshape(count, *data.shape[1:])

    return kernel


def _combining_shape(op: Operation) -> list[TensorShape]:
    data, indices, ids, num_segments = (tensor.shape for tensor in op.inputs)
    indices.with_rank(1).assert_is_compatible_with(ids.with_rank(1))
    num_segments.assert_has_rank(0)
    if data.with_rank_at_least(1).rank is None:
        return [UNKNOWN]
    count, known = constant_value(op.inputs[3]), constant_value(op.inputs[2])
    if count is not None and count < 0:
        count = None if known is None else (known[-1] + 1 if known.size else 0)
    return [TensorShape([None if count is None else int(count), *data.sizes[1:]])]


def _combining_gradient(power: float) -> GradientFunction:
    def gradient(op: Operation, d_output: Tensor) -> list[Any]:
        data, indices, ids, _ = op.inputs
        if power:
            ones = ones_like(ids, data.dtype.real_dtype)
            counts = maximum(unsorted_segment_sum(ones, ids, shape_of(d_output)[0]), 1)
            scale = cast(counts if power == 1 else sqrt(counts), data.dtype)
            d_output = divide(d_output, reshape(scale, _column_shape(data)))
        return [IndexedSlices(gather(d_output, ids), indices, shape_of(data)), None, None, None]

    return gradient


def _column_shape(data: Tensor) -> Any:
    """``[-1, 1, ..., 1]``, of as many dimensions as `data`."""
    if data.shape.rank is not None:
        return [-1] + [1] * (data.shape.rank - 1)
    return concat([[-1], ones_like(getitem(shape_of(data), slice(1, None)))], 0)


def _combining(name: str, power: float, types: Any) -> OpDef:
    return OpDef(
        name=name,
        inputs=("data: T", "indices: Tidx", "segment_ids: Tsegmentids", "num_segments: Tnumsegments"),
        outputs=("output: T",),
        host_inputs=("num_segments",),
        types={
            "T": types,
            "Tidx": dtypes.INDICES,
            "Tsegmentids": dtypes.INDICES,
            "Tnumsegments": dtypes.INDICES,
        },
        shape=_combining_shape,
        kernels=on_every_device(_combining_kernel(power)),
        gradient=_combining_gradient(power),
    )


# -- the operations ------------------------------------------------------------------------------------


def sparse_segment_sum(
    data: TensorLike,
    indices: TensorLike,
    segment_ids: TensorLike,
    name: str | None = None,
    num_segments: TensorLike | None = None,
) -> Tensor:
    """Look up rows and add up those of each segment.

    Args:
        data: Shape ``[n, ...]``, a number dtype.
        indices: Shape ``[k]``: the rows to take, int32 or int64.
        segment_ids: Shape ``[k]``: the segment of each row taken, ascending.
        name: Name of the operation.
        num_segments: Number of segments, an integer scalar; one more than the last of `segment_ids` when None.

    Returns:
        Shape ``[segments, ...]``; 0 for a segment without rows. The gradient is an `IndexedSlices` of the rows taken.

    Raises:
        InvalidArgumentError: While running: a row that is not there, or segments that do not ascend.
    """
    return _combine(SPARSE_SEGMENT_SUM, data, indices, segment_ids, name, num_segments)


SPARSE_SEGMENT_SUM = register(_combining("SparseSegmentSum", 0, dtypes.NUMERIC))


def sparse_segment_mean(
    data: TensorLike,
    indices: TensorLike,
    segment_ids: TensorLike,
    name: str | None = None,
    num_segments: TensorLike | None = None,
) -> Tensor:
    """Look up rows and average those of each segment (arguments as `sparse_segment_sum`; no integers).

    `data` has the shape ``[n, ...]``, `indices` and `segment_ids` ``[k]``; the result ``[segments, ...]``.
    """
    return _combine(SPARSE_SEGMENT_MEAN, data, indices, segment_ids, name, num_segments)


SPARSE_SEGMENT_MEAN = register(_combining("SparseSegmentMean", 1, dtypes.INEXACT))


def sparse_segment_sqrt_n(
    data: TensorLike,
    indices: TensorLike,
    segment_ids: TensorLike,
    name: str | None = None,
    num_segments: TensorLike | None = None,
) -> Tensor:
    """Look up rows, add up those of each segment and divide by the square root of their number.

    Arguments are as for `sparse_segment_sum`, but no integers. `data` has the shape ``[n, ...]``, `indices` and
    `segment_ids` ``[k]``; the result ``[segments, ...]``.
    """
    return _combine(SPARSE_SEGMENT_SQRT_N, data, indices, segment_ids, name, num_segments)


SPARSE_SEGMENT_SQRT_N = register(_combining("SparseSegmentSqrtN", 0.5, dtypes.INEXACT))
