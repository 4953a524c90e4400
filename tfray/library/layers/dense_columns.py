"""Dense feature columns: numbers as they are, by buckets, and from ids by counting or by learned vectors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tfray.errors import NotFoundError
from tfray.formats import files
from tfray.formats.checkpoint_state import read_checkpoint_state
from tfray.framework import dtypes
from tfray.framework.dtypes import DType, DTypeLike, as_dtype
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.sparse_tensor import SparseTensor
from tfray.framework.tensor_shape import TensorShape
from tfray.library.layers.categorical_columns import SequenceCategoricalColumn, WeightedCategoricalColumn
from tfray.library.layers.feature_column_base import (
    CategoricalColumn,
    ColumnVariables,
    DenseColumn,
    FeatureTensors,
    IdWeightPair,
    KeyedColumn,
    SequenceDenseColumn,
    TensorSequenceLengthPair,
    as_tuples,
    check_key,
    check_numbers,
    sequence_lengths,
)
from tfray.library.layers.keras_layer import snake_case
from tfray.library.variables import initializers
from tfray.library.variables.initializers import InitializerLike, PartitionInfo
from tfray.ops.arrays import array_ops
from tfray.ops.math import math_ops
from tfray.ops.nn import embedding_bag_ops
from tfray.ops.sparse import sparse_ops
from tfray.ops.strings.parsing_ops import FixedLenFeature, VarLenFeature
from tfray.ops.system.checkpoint_ops import restore_tensor

Normalizer = Callable[[Any], Any]

# -- numbers -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NumericColumn(KeyedColumn, DenseColumn):
    """See `numeric_column`."""

    shape: tuple[int, ...]
    default_value: Any
    dtype: DType
    normalizer_fn: Normalizer | None

    @property
    def _feature(self) -> FixedLenFeature:
        return FixedLenFeature(self.shape, self.dtype, self.default_value)

    @property
    def variable_shape(self) -> TensorShape:
        return TensorShape(self.shape)

    def transform_feature(self, inputs: FeatureTensors) -> Tensor:
        values = inputs.get(self.key)
        if isinstance(values, SparseTensor):
            raise ValueError(
                "The corresponding Tensor of numerical column must be a Tensor. SparseTensor is not supported. key: "
                f"{self.key}. Make it dense, with tf.sparse_tensor_to_dense."
            )
        return array_ops.to_float(values if self.normalizer_fn is None else self.normalizer_fn(values))

    def get_dense_tensor(self, inputs: FeatureTensors, variables: ColumnVariables) -> Tensor:
        tensor: Tensor = inputs.get(self)
        return tensor


def numeric_column(
    key: str,
    shape: int | Sequence[int] = (1,),
    default_value: Any = None,
    dtype: DTypeLike = dtypes.float32,
    normalizer_fn: Normalizer | None = None,
) -> NumericColumn:
    """Numbers as they are.

    Args:
        key: Name of the feature.
        shape: Shape of the numbers of an example.
        default_value: What stands for missing numbers in `tf.parse_example`: one number, or as many as `shape` says.
        dtype: Dtype in which they are parsed; they become float32.
        normalizer_fn: Function to apply to them.

    Raises:
        ValueError: The shape has sizes below 1, `default_value` has another, or the dtype is none of numbers.
        TypeError: The shape has sizes that are no integers, `default_value` is of another kind than `dtype`, or
            `normalizer_fn` cannot be called.
    """
    sizes, wanted = _checked_shape(shape, key), as_dtype(dtype)
    check_numbers(wanted, key)
    default = _checked_default(sizes, default_value, wanted, key)
    _check_normalizer(normalizer_fn)
    check_key(key)
    return NumericColumn(key, sizes, default, wanted, normalizer_fn)


def _checked_shape(shape: Any, key: str) -> tuple[int, ...]:
    sizes = tuple(shape) if isinstance(shape, (list, tuple)) else (shape,)
    for size in sizes:
        if not isinstance(size, int):
            raise TypeError(f"shape dimensions must be integer. shape: {shape}, key: {key}")
        if size < 1:
            raise ValueError(f"shape dimensions must be greater than 0. shape: {shape}, key: {key}")
    return sizes


def _check_normalizer(normalizer_fn: object) -> None:
    if normalizer_fn is not None and not callable(normalizer_fn):
        raise TypeError(f"normalizer_fn must be a callable. Given: {normalizer_fn!r}")


def _checked_default(shape: tuple[int, ...], value: Any, dtype: DType, key: str) -> Any:
    """The default as nested tuples of that shape."""
    if value is None:
        return None
    array = np.array(value)
    whole = array.dtype.kind in "iub"
    if not (whole or (array.dtype.kind == "f" and dtype.is_floating)):
        raise TypeError(
            f"default_value must be compatible with dtype. default_value: {value}, dtype: {dtype}, key: {key}"
        )
    if array.ndim and array.shape != shape:
        raise ValueError(
            f"The shape of default_value must be equal to given shape. default_value: {value}, shape: {shape}, "
            f"key: {key}"
        )
    return as_tuples(np.broadcast_to(array, shape).tolist())


@dataclass(frozen=True)
class SequenceNumericColumn(KeyedColumn, SequenceDenseColumn):
    """See `sequence_numeric_column`."""

    shape: tuple[int, ...]
    default_value: float
    dtype: DType
    normalizer_fn: Normalizer | None

    @property
    def _feature(self) -> VarLenFeature:
        return VarLenFeature(self.dtype)

    @property
    def variable_shape(self) -> TensorShape:
        return TensorShape(self.shape)

    def transform_feature(self, inputs: FeatureTensors) -> Any:
        values = inputs.get(self.key)
        return values if self.normalizer_fn is None else self.normalizer_fn(values)

    def get_sequence_dense_tensor(self, inputs: FeatureTensors, variables: ColumnVariables) -> TensorSequenceLengthPair:
        sparse = inputs.get(self)
        dense = sparse_ops.sparse_tensor_to_dense(sparse, self.default_value)
        sizes = [array_ops.size_along(dense, 0), -1, *self.shape]
        count = math.prod(self.shape) if sparse.shape.rank == 2 else 1
        return TensorSequenceLengthPair(
            array_ops.reshape(dense, array_ops.stack(sizes)), sequence_lengths(sparse, count)
        )


def sequence_numeric_column(
    key: str,
    shape: int | Sequence[int] = (1,),
    default_value: float = 0.0,
    dtype: DTypeLike = dtypes.float32,
    normalizer_fn: Normalizer | None = None,
) -> SequenceNumericColumn:
    """Sequences of numbers, from a sparse feature.

    Args:
        key: Name of the feature.
        shape: Shape of the numbers of a step.
        default_value: What pads sequences that are shorter than the longest of a batch.
        dtype: Dtype of the numbers.
        normalizer_fn: Function to apply to the `SparseTensor`.

    Raises:
        ValueError: The shape has sizes below 1, or the dtype is none of numbers.
        TypeError: The shape has sizes that are no integers, or `normalizer_fn` cannot be called.
    """
    sizes, wanted = _checked_shape(shape, key), as_dtype(dtype)
    check_numbers(wanted, key)
    _check_normalizer(normalizer_fn)
    return SequenceNumericColumn(key, sizes, default_value, wanted, normalizer_fn)


@dataclass(frozen=True)
class BucketizedColumn(DenseColumn, CategoricalColumn):
    """See `bucketized_column`."""

    source_column: NumericColumn
    boundaries: tuple[float, ...]

    @property
    def name(self) -> str:
        return f"{self.source_column.name}_bucketized"

    @property
    def parents(self) -> list[Any]:
        return [self.source_column]

    @property
    def variable_shape(self) -> TensorShape:
        return TensorShape([*self.source_column.shape, len(self.boundaries) + 1])

    @property
    def num_buckets(self) -> int:
        return (len(self.boundaries) + 1) * self.source_column.shape[0]

    def transform_feature(self, inputs: FeatureTensors) -> Tensor:
        values = array_ops.expand_dims(inputs.get(self.source_column), -1)
        passed = math_ops.greater_equal(values, np.array(self.boundaries, np.float32))
        return math_ops.reduce_sum(array_ops.to_int64(passed), -1)

    def get_dense_tensor(self, inputs: FeatureTensors, variables: ColumnVariables) -> Tensor:
        return array_ops.one_hot(inputs.get(self), len(self.boundaries) + 1)

    def get_sparse_tensors(self, inputs: FeatureTensors) -> IdWeightPair:
        buckets = inputs.get(self)
        columns = self.source_column.shape[0]
        ids = buckets + np.arange(columns) * (len(self.boundaries) + 1)
        sizes = array_ops.to_int64(array_ops.stack([array_ops.size_along(buckets, 0), columns]))
        places = array_ops.where(array_ops.fill(sizes, True))
        return IdWeightPair(SparseTensor(places, array_ops.reshape(ids, [-1]), sizes), None)


def bucketized_column(source_column: NumericColumn, boundaries: Sequence[float]) -> BucketizedColumn:
    """Numbers by the interval in which they lie: below the first boundary, from it up to the second, and so on.

    Args:
        source_column: The numbers; of one dimension.
        boundaries: Ascending.

    Raises:
        ValueError: The column is not numeric or has more dimensions, or the boundaries are not ascending.
    """
    if not isinstance(source_column, NumericColumn):
        raise ValueError(f"source_column must be a column generated with numeric_column(). Given: {source_column!r}")
    if len(source_column.shape) > 1:
        raise ValueError(f"source_column must be one-dimensional column. Given: {source_column}")
    if not isinstance(boundaries, (list, tuple)) or list(boundaries) != sorted(set(boundaries)):
        raise ValueError(f"boundaries must be a sorted list, none twice. Given: {boundaries!r}")
    if not boundaries:
        raise ValueError("boundaries must not be empty.")
    return BucketizedColumn(source_column, tuple(boundaries))


# -- from ids to numbers -----------------------------------------------------------------------------------


class _OfCategories(DenseColumn, SequenceDenseColumn):
    """A column that is made of a categorical one; of a sequence one, for sequences."""

    categorical_column: CategoricalColumn

    @property
    def parents(self) -> list[Any]:
        return [self.categorical_column]

    @property
    def _kind(self) -> str:
        return snake_case(type(self).__name__)

    def _numbers(self, inputs: FeatureTensors, variables: ColumnVariables) -> Tensor:
        """The numbers, shape ``[batch, ...]`` or ``[batch, longest, ...]``."""
        raise TypeError(f"{type(self).__name__} does not say what numbers it has: define _numbers")

    def get_dense_tensor(self, inputs: FeatureTensors, variables: ColumnVariables) -> Tensor:
        if isinstance(self.categorical_column, SequenceCategoricalColumn):
            raise ValueError(
                f"In {self._kind}: {self.name}. categorical_column must not be of type SequenceCategoricalColumn. Use "
                "a column categorical_column_with_* without sequence_, or SequenceFeatures in place of input_layer or "
                f"DenseFeatures. Given: {self.categorical_column}"
            )
        return self._numbers(inputs, variables)

    def get_sequence_dense_tensor(self, inputs: FeatureTensors, variables: ColumnVariables) -> TensorSequenceLengthPair:
        if not isinstance(self.categorical_column, SequenceCategoricalColumn):
            raise ValueError(
                f"In {self._kind}: {self.name}. categorical_column must be of type SequenceCategoricalColumn to use "
                f"SequenceFeatures. Use a column sequence_categorical_column_with_*. Given: {self.categorical_column}"
            )
        lengths = sequence_lengths(self.categorical_column.get_sparse_tensors(inputs).id_tensor)
        return TensorSequenceLengthPair(self._numbers(inputs, variables), lengths)


@dataclass(frozen=True)
class IndicatorColumn(_OfCategories):
    """See `indicator_column`."""

    categorical_column: CategoricalColumn

    @property
    def name(self) -> str:
        return f"{self.categorical_column.name}_indicator"

    @property
    def variable_shape(self) -> TensorShape:
        return TensorShape([1, self.categorical_column.num_buckets])

    def transform_feature(self, inputs: FeatureTensors) -> Tensor:
        ids, weights = self.categorical_column.get_sparse_tensors(inputs)
        there = math_ops.greater_equal(ids.values, np.int64(0))
        rows = array_ops.boolean_mask(ids.indices, there)[:, :-1]
        columns = array_ops.expand_dims(array_ops.boolean_mask(ids.values, there), 1)
        values = array_ops.ones_like(ids.values, dtypes.float32) if weights is None else weights.values
        sizes = array_ops.concat([ids.dense_shape[:-1], np.array([self.categorical_column.num_buckets])], 0)
        places = array_ops.concat([rows, columns], 1)
        counts = array_ops.scatter_nd(places, array_ops.boolean_mask(values, there), sizes)
        if ids.shape.rank is not None:
            counts.set_shape(ids.shape[:-1].concatenate([self.categorical_column.num_buckets]))
        return counts

    def _numbers(self, inputs: FeatureTensors, variables: ColumnVariables) -> Tensor:
        tensor: Tensor = inputs.get(self)
        return tensor


def indicator_column(categorical_column: CategoricalColumn) -> IndicatorColumn:
    """How often each id comes, or the sum of its weights: a vector with a number for each."""
    return IndicatorColumn(categorical_column)


@dataclass(frozen=True)
class _Embedding(_OfCategories):
    """A column of learned vectors, one for each id."""

    categorical_column: CategoricalColumn
    dimension: int
    combiner: str
    initializer: Any
    ckpt_to_load_from: str | None
    tensor_name_in_ckpt: str | None
    max_norm: float | None
    trainable: bool

    @property
    def variable_shape(self) -> TensorShape:
        return TensorShape([self.dimension])

    def transform_feature(self, inputs: FeatureTensors) -> Any:
        return inputs.get(self.categorical_column)

    def _numbers(self, inputs: FeatureTensors, variables: ColumnVariables) -> Tensor:
        ids, weights = self.categorical_column.get_sparse_tensors(inputs)
        return embedding_bag_ops.safe_embedding_lookup_sparse(
            self._table(variables), ids, weights, self.combiner, name=f"{self.name}_weights", max_norm=self.max_norm
        )

    def _table(self, variables: ColumnVariables) -> Any:
        shape = [self.categorical_column.num_buckets, self.dimension]
        initializer = self.initializer
        if self.ckpt_to_load_from is not None:
            initializer = _FromCheckpoint(self.ckpt_to_load_from, str(self.tensor_name_in_ckpt))
        return variables.get("embedding_weights", shape, initializer, self.trainable)


class _FromCheckpoint(initializers.Initializer):
    """An initializer that takes a tensor of a checkpoint, or its part of it."""

    def __init__(self, path: str, tensor_name: str) -> None:
        super().__init__()
        self._path, self._tensor_name = path, tensor_name

    def __call__(
        self, shape: Any, dtype: DTypeLike | None = None, partition_info: PartitionInfo | None = None
    ) -> Tensor:
        part = None if partition_info is None else (list(partition_info.full_shape), list(partition_info.var_offset))
        return restore_tensor(_checkpoint(self._path), self._tensor_name, dtype or self.dtype, shape, part)


def _checkpoint(path: str) -> str:
    """The path of a checkpoint; the newest one of a folder."""
    if not files.is_folder(path):
        return path
    state = f"{path}/checkpoint"
    if not files.exists(state):
        raise NotFoundError(f"ckpt_to_load_from: there is no checkpoint in {path}")
    newest = read_checkpoint_state(files.read_bytes(state).decode()).model_checkpoint_path
    return newest if newest.startswith("/") or "://" in newest else f"{path}/{newest}"


@dataclass(frozen=True)
class EmbeddingColumn(_Embedding):
    """See `embedding_column`."""

    @property
    def name(self) -> str:
        return f"{self.categorical_column.name}_embedding"


def embedding_column(
    categorical_column: CategoricalColumn,
    dimension: int,
    combiner: str = "mean",
    initializer: InitializerLike | None = None,
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: float | None = None,
    trainable: bool = True,
) -> EmbeddingColumn:
    """A learned vector for each id.

    Args:
        categorical_column: The ids.
        dimension: Size of the vectors.
        combiner: How the vectors of several ids of an example become one: ``mean``, ``sum`` or ``sqrtn``.
        initializer: Initializer of the vectors; truncated normal of standard deviation ``1 / sqrt(dimension)``.
        ckpt_to_load_from: Checkpoint to take the vectors from in place of the initializer, or a folder of such.
        tensor_name_in_ckpt: Name of the vectors in it.
        max_norm: Vectors are scaled down to this l2 norm where they exceed it.
        trainable: Whether optimizers are to change them.

    Raises:
        ValueError: `dimension` is below 1, the combiner is not known, the initializer cannot be called, or only one of
            `ckpt_to_load_from` and `tensor_name_in_ckpt` is given.
    """
    made = _checked_embedding(
        dimension, combiner, initializer, ckpt_to_load_from, tensor_name_in_ckpt, categorical_column.name
    )
    return EmbeddingColumn(
        categorical_column, dimension, combiner, made, ckpt_to_load_from, tensor_name_in_ckpt, max_norm, trainable
    )


def _checked_embedding(
    dimension: int, combiner: str, initializer: Any, checkpoint: str | None, tensor_name: str | None, what: str
) -> Any:
    """The initializer to use."""
    if dimension is None or dimension < 1:
        raise ValueError(f"Invalid dimension {dimension}.")
    if (checkpoint is None) != (tensor_name is None):
        raise ValueError("Must specify both `ckpt_to_load_from` and `tensor_name_in_ckpt` or none of them.")
    if initializer is not None and not callable(initializer):
        raise ValueError(f"initializer must be callable if specified. Embedding of column_name: {what}")
    check_combiner(combiner)
    return initializer or initializers.TruncatedNormal(mean=0.0, stddev=1 / math.sqrt(dimension))


def check_combiner(combiner: str) -> None:
    """Raise `ValueError` unless it is one of ``mean``, ``sum`` and ``sqrtn``."""
    if combiner not in ("mean", "sum", "sqrtn"):
        raise ValueError(f"combiner is {combiner!r}, expected mean, sum or sqrtn")


@dataclass(frozen=True)
class SharedEmbeddingColumn(_Embedding):
    """See `shared_embedding_columns`."""

    shared_embedding_collection_name: str

    @property
    def name(self) -> str:
        return f"{self.categorical_column.name}_shared_embedding"

    @property
    def variable_scope_name(self) -> str:
        return self.shared_embedding_collection_name

    def _table(self, variables: ColumnVariables) -> Any:
        graph, key = get_default_graph(), self.shared_embedding_collection_name
        found = graph.get_collection(key)
        if not found:
            table = super()._table(variables)
            graph.add_to_collection(key, table)
            return table
        if len(found) > 1:
            raise ValueError(
                f"Collection {key} can only contain one variable, the shared table, and has {found}. Give "
                "shared_embedding_columns another shared_embedding_collection_name."
            )
        expected = [self.categorical_column.num_buckets, self.dimension]
        if found[0].shape.as_list() != expected:
            raise ValueError(
                f"Shared embedding collection {key} contains variable {found[0].name} of unexpected shape "
                f"{found[0].shape}. Expected shape is {expected}. Choose another shared_embedding_collection_name."
            )
        return found[0]


def shared_embedding_columns(
    categorical_columns: Sequence[CategoricalColumn],
    dimension: int,
    combiner: str = "mean",
    initializer: InitializerLike | None = None,
    shared_embedding_collection_name: str | None = None,
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: float | None = None,
    trainable: bool = True,
) -> list[SharedEmbeddingColumn]:
    """Learned vectors for the ids of several columns, from one table.

    Args:
        categorical_columns: The ids: columns of the same kind with as many ids.
        dimension: Size of the vectors.
        combiner: As for `embedding_column`.
        initializer: As for `embedding_column`.
        shared_embedding_collection_name: Name of the collection that holds the table, and of the scope of the
            variable; the sorted names of the columns, joined, and ``_shared_embedding`` when None.
        ckpt_to_load_from: As for `embedding_column`.
        tensor_name_in_ckpt: As for `embedding_column`.
        max_norm: As for `embedding_column`.
        trainable: Whether optimizers are to change the vectors.

    Returns:
        A column for each of `categorical_columns`.

    Raises:
        ValueError: As `embedding_column`; or the columns are not of a kind or have different numbers of ids.
    """
    what = ", ".join(column.name for column in categorical_columns)
    made = _checked_embedding(dimension, combiner, initializer, ckpt_to_load_from, tensor_name_in_ckpt, what)
    ordered = sorted(categorical_columns, key=lambda column: column.name)
    first = _without_weights(ordered[0])
    if not isinstance(first, CategoricalColumn):
        raise ValueError(f"All categorical_columns must be categorical columns. Given: {first!r}")
    for other in map(_without_weights, ordered[1:]):
        if not isinstance(other, type(first)):
            raise ValueError(
                "To use shared_embedding_column, all categorical_columns must have the same type, or be "
                f"weighted_categorical_column of the same type. Given: {first} and {other}"
            )
        if other.num_buckets != first.num_buckets:
            raise ValueError(
                "To use shared_embedding_column, all categorical_columns must have the same number of buckets. "
                f"{first.name} has {first.num_buckets}, {other.name} has {other.num_buckets}"
            )
    collection = shared_embedding_collection_name or "_".join([*(c.name for c in ordered), "shared_embedding"])
    checkpoint = ckpt_to_load_from, tensor_name_in_ckpt
    return [
        SharedEmbeddingColumn(column, dimension, combiner, made, *checkpoint, max_norm, trainable, collection)
        for column in categorical_columns
    ]


def _without_weights(column: Any) -> Any:
    return column.categorical_column if isinstance(column, WeightedCategoricalColumn) else column
