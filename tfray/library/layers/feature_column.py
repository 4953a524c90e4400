"""Feature columns: from raw features by name to the inputs of a model.

A *dense* column gives numbers for each example: `numeric_column`, `bucketized_column`, `indicator_column`,
`embedding_column`. A *categorical* column gives ids: `categorical_column_with_identity`, ``..._vocabulary_list``,
``..._hash_bucket``, `crossed_column`, and again `bucketized_column`; a linear model takes these as they are.

Within this module the ids of a batch have the shape ``[batch, n]``; -1 stands for no id.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import DType, DTypeLike, as_dtype
from tfray.framework.graph import Tensor
from tfray.framework.sparse_tensor import SparseTensor
from tfray.framework.type_aliases import TensorLike
from tfray.library.input import lookup
from tfray.library.variables import initializers
from tfray.library.variables.initializers import InitializerLike
from tfray.library.variables.variable_scope import get_variable, variable_scope
from tfray.ops.arrays import array_ops
from tfray.ops.math import linalg_ops, math_ops
from tfray.ops.nn import embedding_ops
from tfray.ops.sparse import sparse_ops
from tfray.ops.strings import string_number_ops, string_ops
from tfray.ops.strings.parsing_ops import FixedLenFeature, VarLenFeature

# fmt: off
__all__ = [
    "BucketizedColumn", "CategoricalColumn", "CrossedCategories", "DenseColumn", "EmbeddingColumn", "FeatureColumn",
    "HashedCategories", "IdentityCategories", "IndicatorColumn", "NumericColumn", "VocabularyCategories",
    "bucketized_column", "categorical_column_with_hash_bucket", "categorical_column_with_identity",
    "categorical_column_with_vocabulary_list", "crossed_column", "embedding_column", "indicator_column", "input_layer",
    "linear_model", "make_parse_example_spec", "numeric_column",
]
# fmt: on

Features = Mapping[Any, Any]


class FeatureColumn(ABC):
    """Base of feature columns: a column computes numbers or ids from features.

    Attributes:
        name: Name, from which those of variables are made.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the column."""

    @property
    @abstractmethod
    def parse_example_spec(self) -> dict[str, Any]:
        """What `tf.parse_example` needs to know of the features."""


class DenseColumn(FeatureColumn):
    """A column of numbers."""

    @property
    @abstractmethod
    def width(self) -> int:
        """How many numbers an example has."""

    @abstractmethod
    def dense(self, features: Features, trainable: bool = True) -> Tensor:
        """The numbers, shape ``[batch, width]``."""


class CategoricalColumn(FeatureColumn):
    """A column of ids."""

    @property
    @abstractmethod
    def num_buckets(self) -> int:
        """How many ids there are."""

    @abstractmethod
    def ids(self, features: Features) -> Tensor:
        """The ids, shape ``[batch, n]``, int64; -1 for none."""


def _feature(features: Features, key: str) -> Any:
    if key not in features:
        raise InvalidArgumentError(f"there is no feature {key!r}; there are {', '.join(map(str, features))}")
    return features[key]


def _raw(features: Features, key: str, missing: Any) -> Tensor:
    """Values of a feature as ``[batch, n]``, where `missing` stands for those that a sparse one lacks."""
    value = _feature(features, key)
    if isinstance(value, SparseTensor):
        return sparse_ops.sparse_tensor_to_dense(value, missing(value.dtype))
    value = convert_to_tensor(value)
    if value.shape.rank == 1:
        return array_ops.expand_dims(value, -1)
    return value


def _nothing_of(dtype: DType) -> Any:
    return "" if dtype.kind == "string" else -1


# -- numbers -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class NumericColumn(DenseColumn):
    """See `numeric_column`."""

    key: str
    shape: tuple[int, ...]
    default_value: Any
    dtype: DType
    normalizer_fn: Callable[[Tensor], Tensor] | None

    @property
    def name(self) -> str:
        return self.key

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return {self.key: FixedLenFeature(list(self.shape), self.dtype, self.default_value)}

    @property
    def width(self) -> int:
        return math.prod(self.shape)

    def dense(self, features: Features, trainable: bool = True) -> Tensor:
        values = array_ops.to_float(_raw(features, self.key, lambda dtype: self.default_value or 0))
        if self.normalizer_fn is not None:
            values = self.normalizer_fn(values)
        return array_ops.reshape(values, [-1, self.width])


def numeric_column(
    key: str,
    shape: int | Sequence[int] = (1,),
    default_value: TensorLike | None = None,
    dtype: DTypeLike = dtypes.float32,
    normalizer_fn: Callable[[Tensor], Tensor] | None = None,
) -> NumericColumn:
    """Numbers as they are.

    Args:
        key: Name of the feature.
        shape: Shape of the numbers of an example.
        default_value: What stands for a missing number, in `tf.parse_example`.
        dtype: Dtype in which they are parsed; they become float32.
        normalizer_fn: Function to apply to them.
    """
    sizes = (shape,) if isinstance(shape, int) else tuple(int(size) for size in shape)
    return NumericColumn(key, sizes, default_value, as_dtype(dtype), normalizer_fn)


@dataclass(frozen=True, eq=False)
class BucketizedColumn(DenseColumn, CategoricalColumn):
    """See `bucketized_column`."""

    source_column: NumericColumn
    boundaries: tuple[float, ...]

    @property
    def name(self) -> str:
        return f"{self.source_column.name}_bucketized"

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return self.source_column.parse_example_spec

    @property
    def width(self) -> int:
        return self.num_buckets

    @property
    def num_buckets(self) -> int:
        return (len(self.boundaries) + 1) * self.source_column.width

    def _buckets(self, features: Features) -> Tensor:
        values = array_ops.expand_dims(self.source_column.dense(features), -1)
        passed = math_ops.greater_equal(values, np.array(self.boundaries, np.float32))
        return math_ops.reduce_sum(array_ops.to_int64(passed), -1)

    def dense(self, features: Features, trainable: bool = True) -> Tensor:
        vectors = array_ops.one_hot(self._buckets(features), len(self.boundaries) + 1)
        return array_ops.reshape(vectors, [-1, self.width])

    def ids(self, features: Features) -> Tensor:
        offsets = np.arange(self.source_column.width) * (len(self.boundaries) + 1)
        return self._buckets(features) + offsets


def bucketized_column(source_column: NumericColumn, boundaries: Sequence[float]) -> BucketizedColumn:
    """Numbers by the interval in which they lie: below the first boundary, from it up to the second, and so on.

    Args:
        source_column: The numbers.
        boundaries: Ascending.

    Raises:
        ValueError: The column is not numeric, or the boundaries are not ascending.
    """
    if not isinstance(source_column, NumericColumn):
        raise ValueError(f"bucketized_column takes a numeric column, not {source_column!r}")
    if list(boundaries) != sorted(set(boundaries)):
        raise ValueError(f"boundaries must be ascending, not {list(boundaries)}")
    return BucketizedColumn(source_column, tuple(boundaries))


# -- ids ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _KeyedCategories(CategoricalColumn):
    key: str
    dtype: DType

    @property
    def name(self) -> str:
        return self.key

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return {self.key: VarLenFeature(self.dtype)}


@dataclass(frozen=True, eq=False)
class IdentityCategories(_KeyedCategories):
    """See `categorical_column_with_identity`."""

    buckets: int
    default_value: int | None

    @property
    def num_buckets(self) -> int:
        return self.buckets

    def ids(self, features: Features) -> Tensor:
        values = array_ops.to_int64(_raw(features, self.key, _nothing_of))
        if self.default_value is None:
            return values
        inside = math_ops.logical_and(values >= 0, values < self.buckets)
        present = math_ops.not_equal(values, -1)
        default = array_ops.ones_like(values) * self.default_value
        return array_ops.where(math_ops.logical_or(inside, math_ops.logical_not(present)), values, default)


def categorical_column_with_identity(
    key: str, num_buckets: int, default_value: int | None = None
) -> IdentityCategories:
    """Integers that are ids already.

    Args:
        key: Name of the feature.
        num_buckets: One more than the largest.
        default_value: The id that stands for integers out of range; without one they are an error.
    """
    return IdentityCategories(key, dtypes.int64, num_buckets, default_value)


@dataclass(frozen=True, eq=False)
class VocabularyCategories(_KeyedCategories):
    """See `categorical_column_with_vocabulary_list`."""

    vocabulary: tuple[Any, ...]
    default_value: int
    num_oov_buckets: int

    @property
    def num_buckets(self) -> int:
        return len(self.vocabulary) + self.num_oov_buckets

    def ids(self, features: Features) -> Tensor:
        values = _raw(features, self.key, _nothing_of)
        if values.dtype.is_integer:
            values = array_ops.to_int64(values)
        table = lookup.index_table_from_tensor(
            list(self.vocabulary), self.num_oov_buckets, self.default_value, dtype=self.dtype, name=f"{self.key}_lookup"
        )
        found = table.lookup(values)
        absent = math_ops.equal(values, _nothing_of(values.dtype))
        return array_ops.where(absent, array_ops.ones_like(found) * -1, found)


def categorical_column_with_vocabulary_list(
    key: str,
    vocabulary_list: Sequence[Any],
    dtype: DTypeLike | None = None,
    default_value: int = -1,
    num_oov_buckets: int = 0,
) -> VocabularyCategories:
    """Words, or integers, by their place in a list. Run `tf.tables_initializer()` before.

    Args:
        key: Name of the feature.
        vocabulary_list: The words.
        dtype: ``string`` or ``int64``; by default that of the words.
        default_value: The id of other words; -1 for none.
        num_oov_buckets: Number of further ids, among which other words are spread by hashing.

    Raises:
        ValueError: The list is empty or has repetitions.
    """
    words = tuple(vocabulary_list)
    if not words or len(set(words)) < len(words):
        raise ValueError(f"{key!r}: the vocabulary must have words, and none twice")
    if dtype is None:
        dtype = dtypes.string if isinstance(words[0], (str, bytes)) else dtypes.int64
    return VocabularyCategories(key, as_dtype(dtype), words, default_value, num_oov_buckets)


@dataclass(frozen=True, eq=False)
class HashedCategories(_KeyedCategories):
    """See `categorical_column_with_hash_bucket`."""

    hash_bucket_size: int

    @property
    def num_buckets(self) -> int:
        return self.hash_bucket_size

    def ids(self, features: Features) -> Tensor:
        values = _raw(features, self.key, _nothing_of)
        absent = math_ops.equal(values, _nothing_of(values.dtype))
        found = _hashed(values, self.hash_bucket_size)
        return array_ops.where(absent, array_ops.ones_like(found) * -1, found)


def _hashed(values: Tensor, buckets: int) -> Tensor:
    words = values if values.dtype.kind == "string" else string_number_ops.as_string(values)
    return string_number_ops.string_to_hash_bucket_fast(words, buckets)


def categorical_column_with_hash_bucket(
    key: str, hash_bucket_size: int, dtype: DTypeLike = dtypes.string
) -> HashedCategories:
    """Words, or integers, by a hash: several may share an id.

    Args:
        key: Name of the feature.
        hash_bucket_size: Number of ids.
        dtype: ``string`` or an integer dtype.
    """
    return HashedCategories(key, as_dtype(dtype), hash_bucket_size)


@dataclass(frozen=True, eq=False)
class CrossedCategories(CategoricalColumn):
    """See `crossed_column`."""

    keys: tuple[Any, ...]
    hash_bucket_size: int

    @property
    def name(self) -> str:
        return "_X_".join(sorted(key if isinstance(key, str) else key.name for key in self.keys))

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = {}
        for key in self.keys:
            spec |= {key: VarLenFeature(dtypes.string)} if isinstance(key, str) else key.parse_example_spec
        return spec

    @property
    def num_buckets(self) -> int:
        return self.hash_bucket_size

    def ids(self, features: Features) -> Tensor:
        crossed: Any = None
        present: Any = None
        for key in self.keys:
            values = _raw(features, key, _nothing_of) if isinstance(key, str) else key.ids(features)
            there = math_ops.not_equal(values, _nothing_of(values.dtype))
            words = values if values.dtype.kind == "string" else string_number_ops.as_string(values)
            if crossed is None:
                crossed, present = words, there
                continue
            # Combine each value so far with each value of this feature.
            present = _pairs(math_ops.logical_and, present, there)
            crossed = _pairs(lambda one, two: string_ops.string_join([one, two], "_X_"), crossed, words)
        found = _hashed(crossed, self.hash_bucket_size)
        return array_ops.where(present, found, array_ops.ones_like(found) * -1)


def _pairs(combine: Callable[[Tensor, Tensor], Tensor], one: Tensor, two: Tensor) -> Tensor:
    shape = array_ops.shape(one), array_ops.shape(two)
    sizes = [shape[0][0], shape[0][1], shape[1][1]]
    first = array_ops.tile(array_ops.expand_dims(one, 2), array_ops.stack([1, 1, sizes[2]]))
    second = array_ops.tile(array_ops.expand_dims(two, 1), array_ops.stack([1, sizes[1], 1]))
    return array_ops.reshape(combine(first, second), array_ops.stack([sizes[0], sizes[1] * sizes[2]]))


def crossed_column(keys: Sequence[Any], hash_bucket_size: int, hash_key: int | None = None) -> CrossedCategories:
    """Combinations of categories, by a hash: several may share an id.

    Args:
        keys: Names of features that are words, or categorical columns; two or more.
        hash_bucket_size: Number of ids.
        hash_key: Accepted for TensorFlow 1's sake.

    Raises:
        ValueError: There is but one key, or one that is neither name nor categorical column.
    """
    if len(keys) < 2:
        raise ValueError(f"crossed_column needs two keys or more, not {list(keys)}")
    for key in keys:
        if not isinstance(key, (str, CategoricalColumn)) or isinstance(key, HashedCategories):
            raise ValueError(f"crossed_column takes names and categorical columns without hash, not {key!r}")
    return CrossedCategories(tuple(keys), hash_bucket_size)


# -- from ids to numbers -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class IndicatorColumn(DenseColumn):
    """See `indicator_column`."""

    categorical_column: CategoricalColumn

    @property
    def name(self) -> str:
        return f"{self.categorical_column.name}_indicator"

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return self.categorical_column.parse_example_spec

    @property
    def width(self) -> int:
        return self.categorical_column.num_buckets

    def dense(self, features: Features, trainable: bool = True) -> Tensor:
        vectors = array_ops.one_hot(self.categorical_column.ids(features), self.width)
        return array_ops.reshape(math_ops.reduce_sum(vectors, 1), [-1, self.width])


def indicator_column(categorical_column: CategoricalColumn) -> IndicatorColumn:
    """How often each id comes: a vector with a number for each."""
    return IndicatorColumn(categorical_column)


@dataclass(frozen=True, eq=False)
class EmbeddingColumn(DenseColumn):
    """See `embedding_column`."""

    categorical_column: CategoricalColumn
    dimension: int
    combiner: str
    initializer: Any
    trainable: bool

    @property
    def name(self) -> str:
        return f"{self.categorical_column.name}_embedding"

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return self.categorical_column.parse_example_spec

    @property
    def width(self) -> int:
        return self.dimension

    def dense(self, features: Features, trainable: bool = True) -> Tensor:
        table = get_variable(
            "embedding_weights",
            [self.categorical_column.num_buckets, self.dimension],
            initializer=self.initializer,
            trainable=self.trainable and trainable,
        )
        return _combined(table, self.categorical_column.ids(features), self.combiner)


def embedding_column(
    categorical_column: CategoricalColumn,
    dimension: int,
    combiner: str = "mean",
    initializer: InitializerLike | None = None,
    trainable: bool = True,
) -> EmbeddingColumn:
    """A learned vector for each id.

    Args:
        categorical_column: The ids.
        dimension: Size of the vectors.
        combiner: How the vectors of several ids of an example become one: ``mean``, ``sum`` or ``sqrtn``.
        initializer: Initializer of the vectors; truncated normal of standard deviation ``1 / sqrt(dimension)``.
        trainable: Whether optimizers are to change them.

    Raises:
        ValueError: The combiner is not known.
    """
    _check_combiner(combiner)
    made = initializer or initializers.TruncatedNormal(stddev=1 / math.sqrt(dimension))
    return EmbeddingColumn(categorical_column, dimension, combiner, made, trainable)


def _check_combiner(combiner: str) -> None:
    if combiner not in ("mean", "sum", "sqrtn"):
        raise ValueError(f"combiner is {combiner!r}, expected mean, sum or sqrtn")


def _combined(table: Any, ids: Tensor, combiner: str) -> Tensor:
    """Rows of a table for the ids of each example, combined; zeros where there is none."""
    present = array_ops.to_float(ids >= 0)
    rows = embedding_ops.embedding_lookup(table, math_ops.maximum(ids, array_ops.zeros_like(ids)))
    total = math_ops.reduce_sum(rows * array_ops.expand_dims(present, -1), 1)
    count = math_ops.reduce_sum(present, 1, keepdims=True)
    if combiner == "mean":
        return math_ops.div_no_nan(total, count)
    return total if combiner == "sum" else math_ops.div_no_nan(total, math_ops.sqrt(count))


# -- models ------------------------------------------------------------------------------------------------


def input_layer(
    features: Features,
    feature_columns: Sequence[DenseColumn] | DenseColumn,
    weight_collections: Sequence[str] | None = None,
    trainable: bool = True,
    cols_to_vars: dict[Any, Any] | None = None,
) -> Tensor:
    """The numbers of all columns, in the order of their names: the input of a network.

    Args:
        features: Features by name: tensors ``[batch]`` or ``[batch, ...]``, or sparse ones.
        feature_columns: Dense columns.
        weight_collections: Accepted for TensorFlow 1's sake.
        trainable: Whether optimizers are to change embeddings.
        cols_to_vars: Dictionary to fill with the variables of each column.

    Returns:
        Shape ``[batch, width]``.

    Raises:
        ValueError: A column is not dense.
    """
    columns = _sorted_columns(feature_columns)
    for column in columns:
        if not isinstance(column, DenseColumn):
            raise ValueError(f"column {column.name!r} holds ids: wrap it in an embedding_column or indicator_column")
    with variable_scope(None, "input_layer"):
        parts = []
        for column in columns:
            with variable_scope(None, _scope_name(column)) as scope:
                parts.append(column.dense(features, trainable))
                if cols_to_vars is not None:
                    cols_to_vars[column] = scope.global_variables()
        return array_ops.concat(parts, 1) if len(parts) > 1 else parts[0]


def linear_model(
    features: Features,
    feature_columns: Sequence[FeatureColumn] | FeatureColumn,
    units: int = 1,
    sparse_combiner: str = "sum",
    weight_collections: Sequence[str] | None = None,
    trainable: bool = True,
    cols_to_vars: dict[Any, Any] | None = None,
) -> Tensor:
    """A weighted sum of all columns and a bias; all weights start at 0.

    Args:
        features: Features by name.
        feature_columns: Columns; categorical ones have a weight for each id.
        units: Number of sums.
        sparse_combiner: How the weights of several ids of an example are combined: ``sum``, ``mean`` or ``sqrtn``.
        weight_collections: Accepted for TensorFlow 1's sake.
        trainable: Whether optimizers are to change the weights.
        cols_to_vars: Dictionary to fill with the variables of each column, and those of ``"bias"``.

    Returns:
        Shape ``[batch, units]``.

    Raises:
        ValueError: The combiner is not known.
    """
    _check_combiner(sparse_combiner)
    with variable_scope(None, "linear_model"):
        sums = []
        for column in _sorted_columns(feature_columns):
            with variable_scope(None, _scope_name(column)):
                by_id = isinstance(column, CategoricalColumn)
                size = column.num_buckets if isinstance(column, CategoricalColumn) else _width(column)
                weights = get_variable("weights", [size, units], initializer=initializers.Zeros(), trainable=trainable)
                if by_id:
                    sums.append(_combined(weights, column.ids(features), sparse_combiner))
                else:
                    sums.append(linalg_ops.matmul(column.dense(features, trainable), weights))
                if cols_to_vars is not None:
                    cols_to_vars[column] = [weights]
        bias = get_variable("bias_weights", [units], initializer=initializers.Zeros(), trainable=trainable)
        if cols_to_vars is not None:
            cols_to_vars["bias"] = [bias]
        return math_ops.add_n(sums) + bias


def _width(column: Any) -> int:
    width: int = column.width
    return width


def _scope_name(column: FeatureColumn) -> str:
    return "".join(letter if letter.isalnum() or letter in "_.-" else "_" for letter in column.name)


def _sorted_columns(columns: Any) -> list[Any]:
    items = list(columns) if isinstance(columns, (list, tuple, set)) else [columns]
    for item in items:
        if not isinstance(item, FeatureColumn):
            raise ValueError(f"{item!r} is no feature column")
    names = [item.name for item in items]
    if not items or len(set(names)) < len(names):
        raise ValueError(f"there must be columns, and none twice; got {sorted(names)}")
    return sorted(items, key=lambda item: item.name)


def make_parse_example_spec(feature_columns: Sequence[FeatureColumn]) -> dict[str, Any]:
    """What `tf.parse_example` needs to know to parse the features of some columns."""
    spec: dict[str, Any] = {}
    for column in feature_columns:
        spec |= column.parse_example_spec
    return spec
