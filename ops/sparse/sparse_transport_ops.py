"""Sparse tensors as strings, so that queues and files can hold them, and back from strings to a batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tfray.errors import DataLossError, InvalidArgumentError
from tfray.formats.tensor_proto import TensorProto, held_array, tensor_message
from tfray.framework import dtypes
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.dtypes import DTypeLike, as_dtype
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import Array, KernelContext, OpDef, not_differentiable, on_cpu, register
from tfray.framework.sparse_tensor import SparseLike, SparseTensor
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.sparse.sparse_ops import as_sparse

SERIALIZED: Final = (dtypes.string, dtypes.variant)
"""Dtypes of serialised sparse tensors."""


def serialize_sparse(sp_input: SparseLike, name: str | None = None, out_type: DTypeLike = dtypes.string) -> Tensor:
    """A sparse tensor as three strings: its positions, values and shape, each a serialised ``TensorProto``.

    Args:
        sp_input: A `SparseTensor` of any shape and dtype.
        name: Name of the operation.
        out_type: ``tf.string``, or ``tf.variant``, of which only `deserialize_sparse` knows what it holds.

    Returns:
        A vector of size 3, dtype `out_type`.
    """
    sparse, kind = as_sparse(sp_input), as_dtype(out_type)
    return add_op(SERIALIZE_SPARSE, sparse.indices, sparse.values, sparse.dense_shape, name=name, out_type=kind)


def _serialize_sparse_kernel(ctx: KernelContext, indices: Array, values: Array, dense_shape: Array) -> Array:
    return _strings(indices, values, dense_shape)


def _strings(*arrays: Array) -> Array:
    strings = np.empty(3, object)
    strings[:] = [tensor_message(array).SerializeToString() for array in arrays]
    return strings


def _three_strings(op: Operation) -> list[TensorShape]:
    return [TensorShape([3])]


SERIALIZE_SPARSE = register(
    OpDef(
        name="SerializeSparse",
        inputs=("indices: int64", "values: T", "dense_shape: int64"),
        outputs=("serialized: out_type",),
        types={"T": dtypes.VALUES, "out_type": SERIALIZED},
        shape=_three_strings,
        kernels=on_cpu(_serialize_sparse_kernel),
        gradient=not_differentiable,
    )
)


def serialize_many_sparse(sp_input: SparseLike, name: str | None = None, out_type: DTypeLike = dtypes.string) -> Tensor:
    """The rows of a sparse tensor, each as `serialize_sparse` gives it.

    Args:
        sp_input: A `SparseTensor` of shape ``[rows, ...]``, of rank 2 or more, its positions in order.
        name: Name of the operation.
        out_type: As for `serialize_sparse`.

    Returns:
        A matrix, shape ``[rows, 3]``, dtype `out_type`.
    """
    sparse, kind = as_sparse(sp_input), as_dtype(out_type)
    return add_op(SERIALIZE_MANY_SPARSE, sparse.indices, sparse.values, sparse.dense_shape, name=name, out_type=kind)


def rows_of(indices: Array, values: Array, dense_shape: Array) -> list[tuple[Array, Array, Array]]:
    """The rows of a sparse tensor: positions, values and shape of each.

    Raises:
        InvalidArgumentError: The rank is below 2, or positions are not in order.
    """
    if len(dense_shape) < 2:
        raise InvalidArgumentError(f"the sparse tensor has rank {len(dense_shape)}, expected at least 2")
    rows = int(dense_shape[0])
    if np.any(np.diff(indices[:, 0]) < 0):
        raise InvalidArgumentError("the positions of the sparse tensor are not in order: use tf.sparse_reorder")
    bounds = np.searchsorted(indices[:, 0], np.arange(rows + 1))
    parts = [slice(bounds[row], bounds[row + 1]) for row in range(rows)]
    return [(indices[part, 1:], values[part], dense_shape[1:]) for part in parts]


def _serialize_many_sparse_kernel(ctx: KernelContext, indices: Array, values: Array, dense_shape: Array) -> Array:
    rows = rows_of(indices, values, dense_shape)
    serialized = np.empty((len(rows), 3), object)
    for row, arrays in enumerate(rows):
        serialized[row] = _strings(*arrays)
    return serialized


def _rows_of_strings(op: Operation) -> list[TensorShape]:
    return [TensorShape([None, 3])]


SERIALIZE_MANY_SPARSE = register(
    OpDef(
        name="SerializeManySparse",
        inputs=("indices: int64", "values: T", "dense_shape: int64"),
        outputs=("serialized: out_type",),
        types={"T": dtypes.VALUES, "out_type": SERIALIZED},
        shape=_rows_of_strings,
        kernels=on_cpu(_serialize_many_sparse_kernel),
        gradient=not_differentiable,
    )
)


def deserialize_many_sparse(
    serialized_sparse: TensorLike, dtype: DTypeLike, rank: int | None = None, name: str | None = None
) -> SparseTensor:
    """The sparse tensor whose rows are the serialised ones.

    Args:
        serialized_sparse: String matrix, shape ``[rows, 3]``, of what `serialize_sparse` gives.
        dtype: Dtype of the values.
        rank: Rank of the serialised tensors, where it is known.
        name: Name of the operation.

    Returns:
        A `SparseTensor` of shape ``[rows, ...]``: one more dimension, and the size in each other is the largest of the
        rows.

    Raises:
        InvalidArgumentError: While running: a string is not a tensor, or ranks or dtypes differ.
    """
    serialized = convert_to_tensor(serialized_sparse)
    serialized.shape.assert_is_compatible_with([None, 3])
    return deserialize_sparse(serialized, dtype, None if rank is None else rank + 1, name)


def deserialize_sparse(
    serialized_sparse: TensorLike, dtype: DTypeLike, rank: int | None = None, name: str | None = None
) -> SparseTensor:
    """The sparse tensor of serialised ones.

    Args:
        serialized_sparse: Strings, shape ``[..., 3]``, of what `serialize_sparse` gives.
        dtype: Dtype of the values.
        rank: Rank of the result, where it is known.
        name: Name of the operation.

    Returns:
        A `SparseTensor` whose shape has the dimensions of `serialized_sparse` but the last, then those of the
        serialised tensors: in each the largest size of all.

    Raises:
        InvalidArgumentError: While running: a string is not a tensor, or ranks or dtypes differ.
    """
    attrs = {"dtype": as_dtype(dtype), "rank": rank}
    return SparseTensor(*add_op(DESERIALIZE_SPARSE, serialized_sparse, name=name, **attrs))


def _deserialize_sparse_kernel(ctx: KernelContext, serialized: Array) -> list[Array]:
    outer = serialized.shape[:-1]
    try:
        rows = [[held_array(TensorProto.FromString(item)) for item in row] for row in serialized.reshape(-1, 3)]
    except DataLossError as error:
        raise InvalidArgumentError(f"a string is not a serialised tensor: {error.message}") from error
    return joined_rows(rows, outer, ctx.attr("rank"), ctx.output_dtype(1))


def joined_rows(
    rows: Sequence[Sequence[Array]], outer: tuple[int, ...], whole: int | None, dtype: np.dtype[Any]
) -> list[Array]:
    """Positions, values and shape of a sparse tensor out of those of its parts.

    Args:
        rows: Positions, values and shape of each part.
        outer: The first sizes of the result: as many parts in row-major order.
        whole: Rank of the result, where it is known.
        dtype: Dtype of the values.

    Raises:
        InvalidArgumentError: Ranks or dtypes differ.
    """
    rank = _common_rank([len(dense_shape) for _, _, dense_shape in rows], whole, len(outer))
    wrong = next((values.dtype for _, values, _ in rows if values.dtype != dtype), None)
    if wrong is not None:
        raise InvalidArgumentError(f"the values of a sparse tensor are {wrong}, expected {dtype}")
    row_of = np.repeat(np.arange(len(rows)), [len(values) for _, values, _ in rows])
    owners = np.stack(np.unravel_index(row_of, outer), axis=1) if outer else np.zeros((len(row_of), 0), np.int64)
    positions = np.concatenate([np.zeros((0, rank), np.int64), *(p.reshape(-1, rank) for p, _, _ in rows)])
    largest = np.max([shape for _, _, shape in rows], axis=0) if rows else np.zeros(rank, np.int64)
    return [
        np.concatenate([owners, positions], axis=1).astype(np.int64),
        np.concatenate([np.zeros(0, dtype), *(values for _, values, _ in rows)]),
        np.concatenate([outer, largest]).astype(np.int64),
    ]


def _common_rank(ranks: list[int], whole: int | None, outer: int) -> int:
    """The rank of each of the serialised tensors, of which the result has `outer` more."""
    wanted = None if whole is None else whole - outer
    if (other := next((i for i, rank in enumerate(ranks) if rank != ranks[0]), None)) is not None:
        raise InvalidArgumentError(
            f"Inconsistent shape across SparseTensors: rank prior to SparseTensor[{other}] was: {ranks[0]} but rank of "
            f"SparseTensor[{other}] is: {ranks[other]}"
        )
    if wanted is not None and set(ranks) - {wanted}:
        raise InvalidArgumentError(f"the sparse tensors have rank {ranks[0]}, expected {wanted}")
    return ranks[0] if ranks else wanted or 0


def _deserialize_sparse_shape(op: Operation) -> list[TensorShape]:
    shape = op.inputs[0].shape
    if shape.rank is not None:
        TensorShape(shape.sizes[-1:]).assert_is_compatible_with([3])
    rank = op.attrs["rank"]
    return [TensorShape([None, rank]), TensorShape([None]), TensorShape([rank])]


DESERIALIZE_SPARSE = register(
    OpDef(
        name="DeserializeSparse",
        inputs=("serialized: Tserialized",),
        outputs=("indices: int64", "values: dtype", "dense_shape: int64"),
        attrs=("rank",),
        types={"dtype": dtypes.VALUES, "Tserialized": SERIALIZED},
        shape=_deserialize_sparse_shape,
        kernels=on_cpu(_deserialize_sparse_kernel),
        gradient=not_differentiable,
    )
)
