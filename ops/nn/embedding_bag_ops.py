"""Looking up several rows of a table for each example, by a sparse tensor of ids, and combining them."""

from __future__ import annotations

import numpy as np

from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.sparse_tensor import SparseLike, SparseTensor
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays import array_ops
from tfray.ops.math import math_ops
from tfray.ops.nn.embedding_ops import embedding_lookup
from tfray.ops.sparse.sparse_layout_ops import sparse_fill_empty_rows, sparse_reshape, sparse_retain
from tfray.ops.sparse.sparse_ops import as_sparse

COMBINERS = {
    "sum": math_ops.sparse_segment_sum,
    "mean": math_ops.sparse_segment_mean,
    "sqrtn": math_ops.sparse_segment_sqrt_n,
}
"""How the rows of an example are combined, without weights."""


def embedding_lookup_sparse(
    params: TensorLike,
    sp_ids: SparseLike,
    sp_weights: SparseLike | None,
    partition_strategy: str = "mod",
    name: str | None = None,
    combiner: str | None = None,
    max_norm: float | None = None,
) -> Tensor:
    """Look up the rows of each example and combine them into one.

    Args:
        params: The table, of shape ``[rows, ...]``; or a list of shards of it, or a partitioned variable (see
            `embedding_lookup`).
        sp_ids: int32 or int64 `SparseTensor` of shape ``[batch, most]``: the rows of each example, of which
            each has at least one.
        sp_weights: Floating `SparseTensor` of the same shape and positions: what to multiply each row by; None for 1.
        partition_strategy: How rows are spread over shards, see `embedding_lookup`.
        name: Name scope of the operations.
        combiner: ``sum``; ``mean``: divided by the sum of the weights; ``sqrtn``: divided by the root of the sum of
            their squares. ``mean`` when None.
        max_norm: Scale rows down to this l2 norm first, where they exceed it.

    Returns:
        Shape ``[batch, ...]``. Each shard's gradient is an `IndexedSlices` of the rows that were used.

    Raises:
        TypeError: `sp_ids` or `sp_weights` is not a sparse tensor.
        ValueError: An unknown combiner, or ids and weights that do not fit each other.
    """
    combiner = "mean" if combiner is None else combiner
    if combiner not in COMBINERS:
        raise ValueError(f"combiner must be one of 'mean', 'sqrtn' or 'sum', not {combiner!r}")
    ids = as_sparse(sp_ids, "sp_ids")
    weights = None if sp_weights is None else as_sparse(sp_weights, "sp_weights")
    if weights is not None:
        ids.values.shape.assert_is_compatible_with(weights.values.shape)
    with get_default_graph().name_scope(name or "embedding_lookup_sparse"):
        example = array_ops.cast(ids.indices[:, 0], dtypes.int32)
        # Each row is looked up, and moved, once.
        distinct, place = array_ops.unique(ids.values)
        rows = embedding_lookup(params, distinct, partition_strategy, max_norm=max_norm)
        if weights is None:
            return COMBINERS[combiner](rows, place, example)
        return _weighted(array_ops.gather(rows, place), weights.values, example, combiner)


def _weighted(rows: Tensor, weights: Tensor, example: Tensor, combiner: str) -> Tensor:
    weights = array_ops.cast(weights, rows.dtype)
    total = math_ops.segment_sum(math_ops.multiply(rows, _as_column(weights, rows)), example)
    if combiner == "sum":
        return total
    if combiner == "mean":
        return math_ops.div_no_nan(total, _as_column(math_ops.segment_sum(weights, example), rows))
    size = math_ops.sqrt(math_ops.segment_sum(math_ops.square(weights), example))
    return math_ops.div_no_nan(total, _as_column(size, rows))  # zeros for an example without rows


def _as_column(vector: Tensor, rows: Tensor) -> Tensor:
    """A vector as ``[n, 1, ..., 1]``, of as many dimensions as `rows`."""
    if rows.shape.rank is not None:
        return array_ops.reshape(vector, [-1] + [1] * (rows.shape.rank - 1))
    ones = array_ops.ones_like(array_ops.shape(rows)[1:])
    return array_ops.reshape(vector, array_ops.concat([[-1], ones], 0))


def safe_embedding_lookup_sparse(
    embedding_weights: TensorLike,
    sparse_ids: SparseLike,
    sparse_weights: SparseLike | None = None,
    combiner: str = "mean",
    default_id: int | None = None,
    name: str | None = None,
    partition_strategy: str = "div",
    max_norm: float | None = None,
) -> Tensor:
    """`embedding_lookup_sparse` for ids of any kind: examples may have none, and ids may not exist.

    Args:
        embedding_weights: The table, of shape ``[rows, ...]``; or a list of shards of it, or a partitioned variable.
        sparse_ids: int64 `SparseTensor` of shape ``[..., most]``. Negative ids are left out.
        sparse_weights: Floating `SparseTensor` of the same shape and positions; None for 1. Ids whose weight is not
            positive are left out, unless rows are summed.
        combiner: See `embedding_lookup_sparse`.
        default_id: The row of an example without ids; zeros when None.
        name: Name scope of the operations.
        partition_strategy: See `embedding_lookup`.
        max_norm: See `embedding_lookup_sparse`.

    Returns:
        Shape ``sparse_ids.shape[:-1] + [...]``.

    Raises:
        ValueError: There is no table, or its dtype is not that of the weights.
    """
    if embedding_weights is None or (isinstance(embedding_weights, (list, tuple)) and not embedding_weights):
        raise ValueError("safe_embedding_lookup_sparse needs a table, or at least one shard")
    ids = as_sparse(sparse_ids, "sparse_ids")
    weights = None if sparse_weights is None else as_sparse(sparse_weights, "sparse_weights")
    for table in embedding_weights if isinstance(embedding_weights, (list, tuple)) else ():
        if weights is not None and isinstance(table, Tensor) and table.dtype is not weights.dtype:
            raise ValueError(
                f"Tensor conversion requested dtype {weights.dtype.name} for Tensor with dtype {table.dtype.name}: "
                f"{table!r}"
            )
    with get_default_graph().name_scope(name or "embedding_lookup"):
        outer, outer_shape = ids.dense_shape[:-1], ids.shape[:-1]
        flat = array_ops.stack([math_ops.reduce_prod(outer), ids.dense_shape[-1]])
        ids = sparse_reshape(ids, flat)
        if weights is not None:
            weights = SparseTensor(ids.indices, weights.values, ids.dense_shape)
        ids, weights = _without_invalid(ids, weights, combiner)
        ids, is_empty = sparse_fill_empty_rows(ids, default_id or 0)
        if weights is not None:
            weights, _ = sparse_fill_empty_rows(weights, 1.0)
        found = embedding_lookup_sparse(
            embedding_weights, ids, weights, partition_strategy, combiner=combiner, max_norm=max_norm
        )
        if default_id is None:
            found = array_ops.where(is_empty, array_ops.zeros_like(found), found)
        inner = array_ops.shape(found, out_type=dtypes.int64)[1:]
        result = array_ops.reshape(found, array_ops.concat([outer, inner], 0))
        result.set_shape(outer_shape.concatenate(found.shape[1:]))
        return result


def _without_invalid(
    ids: SparseTensor, weights: SparseTensor | None, combiner: str
) -> tuple[SparseTensor, SparseTensor | None]:
    valid = math_ops.greater_equal(ids.values, np.zeros((), ids.dtype.numpy))
    if weights is None:
        return sparse_retain(ids, valid), None
    if combiner != "sum":
        valid = math_ops.logical_and(valid, math_ops.greater(weights.values, convert_to_tensor(0, weights.dtype)))
    return sparse_retain(ids, valid), sparse_retain(weights, valid)
