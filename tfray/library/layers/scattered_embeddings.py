"""Embeddings whose numbers are shared by all values: hashes say which numbers of one vector a value has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor
from tfray.framework.scopes import name_scope
from tfray.framework.sparse_tensor import SparseTensor
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.library.layers.categorical_columns import without_missing
from tfray.library.layers.feature_column_base import ColumnVariables, DenseColumn, FeatureTensors, KeyedColumn
from tfray.ops.arrays import array_ops
from tfray.ops.math import sparse_segment_ops as segment_ops
from tfray.ops.nn import embedding_ops
from tfray.ops.sparse.sparse_cross_ops import SPARSE_FEATURE_CROSS_DEFAULT_HASH_KEY, sparse_feature_cross
from tfray.ops.sparse.sparse_layout_ops import sparse_fill_empty_rows
from tfray.ops.sparse.sparse_ops import sparse_tensor_to_dense


def scattered_embedding_lookup(
    params: Any, values: TensorLike, dimension: int, name: str | None = None, hash_key: int | None = None
) -> Tensor:
    """The vectors of values, from numbers that all of them share.

    Args:
        params: The numbers, float32 of shape ``[n]``, or a list of their parts.
        values: Strings or int64 of any shape.
        dimension: Size of the vectors.
        name: Name scope of the operations.
        hash_key: Seed of the hash of a value and a place of its vector; TensorFlow's when None.

    Returns:
        Float32 of shape ``[..., dimension]``.

    Raises:
        InvalidArgumentError: `dimension` is below 1.
    """
    if dimension < 1:
        raise InvalidArgumentError(f"Dimension should be > 0. Given {dimension}")
    with name_scope(name or "scattered_embedding_lookup"):
        parts = _parts(params)
        values = convert_to_tensor(values)
        flat = array_ops.reshape(values, [-1, 1])
        places = array_ops.tile(array_ops.reshape(array_ops.range(dimension), [1, -1]), array_ops.shape(flat))
        key = SPARSE_FEATURE_CROSS_DEFAULT_HASH_KEY if hash_key is None else hash_key
        size = sum(int(part.shape[0]) for part in parts)
        ids = sparse_feature_cross([places, flat], hashed_output=True, num_buckets=size, hash_key=key)
        numbers = embedding_ops.embedding_lookup(parts, sparse_tensor_to_dense(ids), partition_strategy="div")
        found = array_ops.reshape(numbers, array_ops.concat([array_ops.shape(values), [dimension]], 0))
        found.set_shape(values.shape.concatenate([dimension]))
        return found


def _parts(params: Any) -> Sequence[Any]:
    if hasattr(params, "_get_variable_list"):
        return list(params)
    return params if isinstance(params, (list, tuple)) else [params]


def scattered_embedding_lookup_sparse(
    params: Any,
    sparse_values: SparseTensor,
    dimension: int,
    combiner: str | None = None,
    default_value: str | int | None = None,
    name: str | None = None,
    hash_key: int | None = None,
) -> Tensor:
    """`scattered_embedding_lookup` of several values for each example.

    Args:
        params: As there.
        sparse_values: Strings or int64, ``[batch, n]``.
        dimension: As there.
        combiner: How the vectors of an example are combined: ``mean``, the default, ``sqrtn`` or ``sum``.
        default_value: The value of examples that have none; ``""`` or 0 when None.
        name: As there.
        hash_key: As there.

    Returns:
        Float32 of shape ``[batch, dimension]``.

    Raises:
        InvalidArgumentError: As there, or there is no such combiner.
    """
    combine: Any = {
        "mean": segment_ops.sparse_segment_mean,
        "sqrtn": segment_ops.sparse_segment_sqrt_n,
        "sum": segment_ops.sparse_segment_sum,
    }.get(combiner or "mean")
    if combine is None:
        raise InvalidArgumentError("Combiner must be one of 'mean', 'sqrtn' or 'sum'.")
    with name_scope(name or "scattered_embedding_lookup_sparse"):
        if default_value is None:
            default_value = "" if sparse_values.dtype == dtypes.string else 0
        filled, _ = sparse_fill_empty_rows(sparse_values, default_value)
        unique, places = array_ops.unique(filled.values)
        vectors = scattered_embedding_lookup(params, unique, dimension, hash_key=hash_key)
        return combine(vectors, places, array_ops.cast(filled.indices[:, 0], dtypes.int32))


@dataclass(frozen=True)
class ScatteredEmbeddingColumn(KeyedColumn, DenseColumn):
    """See `tf.contrib.layers.scattered_embedding_column`."""

    size: int
    dimension: int
    hash_key: int
    combiner: str
    initializer: Any

    @property
    def name(self) -> str:
        return f"{self.key}_scattered_embedding"

    @property
    def variable_shape(self) -> TensorShape:
        return TensorShape([self.dimension])

    def transform_feature(self, inputs: FeatureTensors) -> Any:
        return without_missing(inputs.get(self.key))

    def get_dense_tensor(self, inputs: FeatureTensors, variables: ColumnVariables) -> Tensor:
        numbers = variables.get("weights", [self.size], self.initializer)
        found = inputs.get(self)
        return scattered_embedding_lookup_sparse(
            numbers, found, self.dimension, self.combiner, name=f"{self.name}_lookup", hash_key=self.hash_key
        )
