"""Elements and rows sorted into groups and back: unique, dynamic_partition, dynamic_stitch."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.arguments import none_is_default
from tfray.framework.constant_value import constant_value
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.dtypes import DTypeLike, as_dtype
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import (
    Array,
    ArrayModule,
    KernelContext,
    OpDef,
    not_differentiable,
    on_every_device,
    register,
)
from tfray.framework.tensor_shape import UNKNOWN, TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.broadcast_ops import zeros_like
from tfray.ops.arrays.gather_ops import check_indices, first_outside, gather
from tfray.ops.arrays.shape_ops import cast, host_ints
from tfray.ops.kernels.precision import sortable
from tfray.ops.kernels.text import blank

# -- unique --------------------------------------------------------------------------------------------


class Unique(NamedTuple):
    """What `unique` returns."""

    y: Tensor
    idx: Tensor


class UniqueWithCounts(NamedTuple):
    """What `unique_with_counts` returns."""

    y: Tensor
    idx: Tensor
    count: Tensor  # type: ignore[assignment]  # TensorFlow's name, which hides tuple.count


@none_is_default
def unique(x: TensorLike, out_idx: DTypeLike = dtypes.int32, name: str | None = None) -> Unique:
    """Find the distinct values of a vector, in the order in which they first occur.

    Args:
        x: Shape ``[n]``, any dtype.
        out_idx: Dtype of `idx`, int32 or int64.
        name: Name of the operation.

    Returns:
        ``y``, the distinct values, shape ``[distinct]``; ``idx``, shape ``[n]``, with ``x[i] == y[idx[i]]``.

    Examples:
        >>> session.run(tf.unique([7, 5, 7]))
        Unique(y=array([7, 5], dtype=int32), idx=array([0, 1, 0], dtype=int32))
    """
    return Unique(*unique_with_counts(x, out_idx, name or "Unique")[:2])


@none_is_default
def unique_with_counts(x: TensorLike, out_idx: DTypeLike = dtypes.int32, name: str | None = None) -> UniqueWithCounts:
    """`unique`, and how often each value occurs: ``count``, shape ``[distinct]``, of dtype `out_idx`."""
    return UniqueWithCounts(*add_op(UNIQUE_WITH_COUNTS, x, name=name, out_idx=as_dtype(out_idx)))


def _unique_with_counts_kernel(ctx: KernelContext, x: Array) -> list[Array]:
    xp, index_dtype = ctx.xp, ctx.output_dtype(1)
    _check_vector(x)
    if x.dtype == object:
        places: dict[bytes, int] = {}
        idx = np.array([places.setdefault(word, len(places)) for word in x], index_dtype)
        return [np.array(list(places), object), idx, np.bincount(idx, minlength=len(places)).astype(index_dtype)]
    first = _first_places(xp, x)
    is_first = first == xp.arange(x.size)
    idx = (xp.cumsum(is_first) - 1)[first]
    y = x[is_first]
    return [y, idx.astype(index_dtype), xp.bincount(idx, minlength=y.size).astype(index_dtype)]


def _first_places(xp: ArrayModule, x: Array) -> Array:
    """For each element of a vector, where an equal one stands first."""
    if xp is np and x.size and x.dtype.kind in "iu":
        low, high = int(x.min()), int(x.max())
        if high - low < _TABLE_FACTOR * x.size:
            # A table by value, of which only entries that were written are read. Elements are written from last to
            # first, so that the first place of a value stays.
            table = np.empty(high - low + 1, np.intp)
            # Avoid overflow: an unsigned number may exceed the index type, and a signed difference its own type.
            values = (x - x.dtype.type(low)).astype(np.intp) if x.dtype.kind == "u" else x.astype(np.intp) - low
            table[values[::-1]] = np.arange(x.size - 1, -1, -1)
            return table[values]
    _, first, inverse = xp.unique(sortable(xp, x), return_index=True, return_inverse=True)
    return first[inverse]


_TABLE_FACTOR: Final = 8
"""Widest range of values, as a multiple of their number, for a table by value. For a wider range they are sorted."""


def _check_vector(x: Array) -> None:
    if x.ndim != 1:
        raise InvalidArgumentError(f"expected a vector, found shape {x.shape}")


def _unique_with_counts_shape(op: Operation) -> list[TensorShape]:
    distinct = TensorShape([None])
    return [distinct, op.inputs[0].shape.with_rank(1), distinct]


UNIQUE_WITH_COUNTS = register(
    OpDef(
        name="UniqueWithCounts",
        inputs=("x: T",),
        outputs=("y: T", "idx: out_idx", "count: out_idx"),
        types={"T": dtypes.VALUES, "out_idx": dtypes.INDICES},
        shape=_unique_with_counts_shape,
        kernels=on_every_device(_unique_with_counts_kernel),
    )
)


class ListDiff(NamedTuple):
    """What `setdiff1d` returns."""

    out: Tensor
    idx: Tensor


@none_is_default
def setdiff1d(x: TensorLike, y: TensorLike, index_dtype: DTypeLike = dtypes.int32, name: str | None = None) -> ListDiff:
    """Find the values of the vector `x` that are not in the vector `y`, and where in `x` they are.

    Order and repetitions are those of `x`.
    """
    return ListDiff(*add_op(LIST_DIFF, x, y, name=name, out_idx=as_dtype(index_dtype)))


def _list_diff_kernel(ctx: KernelContext, x: Array, y: Array) -> list[Array]:
    _check_vector(x)
    kept = ctx.xp.flatnonzero(~ctx.xp.isin(*(sortable(ctx.xp, vector) for vector in (x, y))))
    return [x[kept], kept.astype(ctx.output_dtype(1))]


def _list_diff_shape(op: Operation) -> list[TensorShape]:
    for tensor in op.inputs:
        tensor.shape.assert_has_rank(1)
    return [TensorShape([None])] * 2


LIST_DIFF = register(
    OpDef(
        name="ListDiff",
        inputs=("x: T", "y: T"),
        outputs=("out: T", "idx: out_idx"),
        types={"T": dtypes.VALUES, "out_idx": dtypes.INDICES},
        shape=_list_diff_shape,
        kernels=on_every_device(_list_diff_kernel),
        gradient=not_differentiable,
    )
)


# -- dynamic_partition ---------------------------------------------------------------------------------


def dynamic_partition(
    data: TensorLike, partitions: TensorLike, num_partitions: int, name: str | None = None
) -> list[Tensor]:
    """Distribute slices of `data` over `num_partitions` tensors.

    Args:
        data: Shape ``partitions.shape + [...]``, any dtype.
        partitions: int32 of any shape, entries in ``[0, num_partitions)``: where each slice goes.
        num_partitions: Number of results.
        name: Name of the operation.

    Returns:
        Tensors of shape ``[count, ...]``, each with its slices in the order of `data`.
    """
    return add_op(DYNAMIC_PARTITION, data, partitions, name=name, num_partitions=int(num_partitions))


def _order_of_partitions(ctx: KernelContext, partitions: Array, count: int) -> Array:
    """Positions in row-major order, sorted by partition."""
    check_indices(ctx, partitions, count, "partitions")
    flat = partitions.reshape(-1)
    if ctx.xp is np and count <= 1 << 16:
        flat = flat.astype(np.uint16)  # integers of 16 bits are sorted by counting
    return flat.argsort(kind="stable")


def _bounds_of_partitions(ctx: KernelContext, partitions: Array, order: Array, count: int) -> Iterable[int]:
    """Where the slices of each partition begin when they are sorted, and where the last ones end."""
    flat = partitions.reshape(-1)
    if ctx.xp is np:
        return itertools.accumulate(np.bincount(flat, minlength=count).tolist(), initial=0)
    bounds = host_ints(ctx, ctx.xp.searchsorted(flat.take(order), ctx.xp.arange(count + 1)))
    if bounds[0] > 0 or bounds[-1] < flat.size:
        raise InvalidArgumentError(first_outside(ctx.xp.asnumpy(partitions), count, "partitions"))
    return bounds


def _dynamic_partition_kernel(ctx: KernelContext, data: Array, partitions: Array) -> list[Array]:
    count = ctx.attr("num_partitions")
    if data.shape[: partitions.ndim] != partitions.shape:
        raise InvalidArgumentError(
            f"data of shape {data.shape} does not begin with that of partitions, {partitions.shape}"
        )
    if count == 1:  # a table that is not sharded: nothing to sort
        check_indices(ctx, partitions, count, "partitions")
        return [_rows(data, partitions).copy()]
    order = _order_of_partitions(ctx, partitions, count)
    ordered = _rows(data, partitions).take(order, 0)
    bounds = _bounds_of_partitions(ctx, partitions, order, count)
    return [ordered[start:end] for start, end in itertools.pairwise(bounds)]


def _dynamic_partition_shape(op: Operation) -> list[TensorShape]:
    data, partitions = (tensor.shape for tensor in op.inputs)
    num = op.attr("num_partitions")
    if num < 1:
        raise ValueError(f"num_partitions is {num}, expected at least 1")
    if data.rank is None or partitions.rank is None:
        return [UNKNOWN] * num
    data[: partitions.rank].assert_is_compatible_with(partitions)
    return [TensorShape([None]).concatenate(data[partitions.rank :])] * num


def _dynamic_partition_gradient(op: Operation, *d_outputs: Tensor | None) -> list[Tensor | None]:
    parts = [zeros_like(out) if d is None else d for d, out in zip(d_outputs, op.outputs, strict=True)]
    d_data = add_op(DYNAMIC_PARTITION_GRAD, op.inputs[1], parts)
    d_data.set_shape(op.inputs[0].shape)
    return [d_data, None]


DYNAMIC_PARTITION = register(
    OpDef(
        name="DynamicPartition",
        inputs=("data: T", "partitions: int32"),
        outputs=("outputs: T*num_partitions",),
        types={"T": dtypes.VALUES},
        attrs=("num_partitions",),
        shape=_dynamic_partition_shape,
        kernels=on_every_device(_dynamic_partition_kernel),
        gradient=_dynamic_partition_gradient,
    )
)


def _dynamic_partition_grad_kernel(ctx: KernelContext, partitions: Array, *parts: Array) -> Array:
    rows = ctx.xp.concatenate(parts)
    d_data = ctx.xp.empty_like(rows)
    d_data[_order_of_partitions(ctx, partitions, len(parts))] = rows
    return d_data.reshape(*partitions.shape, *rows.shape[1:])


def _dynamic_partition_grad_shape(op: Operation) -> list[TensorShape]:
    return [op.inputs[0].shape.concatenate(op.inputs[1].shape[1:])]


def _dynamic_partition_grad_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    return [None, *dynamic_partition(d_output, op.inputs[0], len(op.inputs) - 1)]


DYNAMIC_PARTITION_GRAD = register(
    OpDef(
        name="DynamicPartitionGrad",
        inputs=("partitions: int32", "parts: T*"),
        outputs=("d_data: T",),
        types={"T": dtypes.NUMERIC},
        shape=_dynamic_partition_grad_shape,
        kernels=on_every_device(_dynamic_partition_grad_kernel),
        gradient=_dynamic_partition_grad_gradient,
    )
)


# -- dynamic_stitch ------------------------------------------------------------------------------------


def dynamic_stitch(indices: Sequence[TensorLike], data: Sequence[TensorLike], name: str | None = None) -> Tensor:
    """Interleave slices of several tensors: ``merged[indices[m][i]] = data[m][i]``.

    Args:
        indices: List of int32 tensors of any shapes.
        data: As many tensors; ``data[m].shape == indices[m].shape + rest`` with one ``rest`` for all.
        name: Name of the operation.

    Returns:
        Shape ``[largest index + 1] + rest``. Of equal indices the last wins; slices that no index names are zero.

    Examples:
        >>> session.run(tf.dynamic_stitch([[0, 2], [1]], [[10, 30], [20]]))
        array([10, 20, 30], dtype=int32)
    """
    if len(indices) != len(data) or not data:
        raise InvalidArgumentError(f"dynamic_stitch takes as many indices as data, got {len(indices)} and {len(data)}")
    places = [cast(convert_to_tensor(index), dtypes.int32) for index in indices]
    first = convert_to_tensor(data[0])
    values = [first, *(convert_to_tensor(value, first.dtype) for value in data[1:])]
    return add_op(DYNAMIC_STITCH, [*places, *values], name=name, T=first.dtype)


def _rows(values: Array, index: Array) -> Array:
    """Slices of `values`, one after the other, for the entries of `index`."""
    return values if index.ndim == 1 else values.reshape(index.size, *values.shape[index.ndim :])


def _dynamic_stitch_kernel(ctx: KernelContext, *indices_and_data: Array) -> Array:
    half = len(indices_and_data) // 2
    indices, data = indices_and_data[:half], indices_and_data[half:]
    rest = data[0].shape[indices[0].ndim :]
    for index, values in zip(indices, data, strict=True):
        if values.shape != (*index.shape, *rest):
            raise InvalidArgumentError(f"data of shape {values.shape} does not fit indices {index.shape} and {rest}")
    places = ctx.xp.concatenate([index.reshape(-1) for index in indices])
    count = int(places.max()) + 1 if places.size else 0
    check_indices(ctx, places, count)
    merged = blank(ctx, (count, *rest))
    if ctx.xp is np:
        merged[places] = np.concatenate([_rows(values, index) for index, values in zip(indices, data, strict=True)])
        return merged
    for index, values in zip(indices, data, strict=True):  # CuPy may assign in any order
        merged[index.reshape(-1)] = _rows(values, index)
    return merged


def _dynamic_stitch_shape(op: Operation) -> list[TensorShape]:
    half = len(op.inputs) // 2
    rest = UNKNOWN
    count: int | None = None
    for index, values in zip(op.inputs[:half], op.inputs[half:], strict=True):
        if index.shape.rank is not None and values.shape.rank is not None:
            values.shape[: index.shape.rank].assert_is_compatible_with(index.shape)
            rest = rest.merge_with(values.shape[index.shape.rank :])
    places = [constant_value(index) for index in op.inputs[:half]]
    known = [place for place in places if place is not None]
    if len(known) == half:
        count = max((int(place.max()) + 1 for place in known if place.size), default=0)
    return [TensorShape([count]).concatenate(rest)]


def _dynamic_stitch_gradient(op: Operation, d_merged: Tensor) -> list[Tensor | None]:
    half = len(op.inputs) // 2
    return [*[None] * half, *(gather(d_merged, index) for index in op.inputs[:half])]


DYNAMIC_STITCH = register(
    OpDef(
        name="DynamicStitch",
        inputs=("indices_and_data: any*",),
        outputs=("merged: T",),
        types={"T": dtypes.VALUES},
        shape=_dynamic_stitch_shape,
        kernels=on_every_device(_dynamic_stitch_kernel),
        gradient=_dynamic_stitch_gradient,
    )
)
