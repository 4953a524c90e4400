"""Feature columns under the names and arguments of ``tf.contrib.layers``, older than ``tf.feature_column``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeVar

from tfray.errors import ArgumentError, InvalidArgumentError
from tfray.framework.dtypes import DTypeLike, as_dtype, float32, string
from tfray.framework.type_aliases import TensorLike
from tfray.library.layers import categorical_columns, dense_columns
from tfray.library.layers.categorical_columns import CrossedColumn, HashedCategoricalColumn, WeightedCategoricalColumn
from tfray.library.layers.dense_columns import (
    BucketizedColumn,
    EmbeddingColumn,
    IndicatorColumn,
    NumericColumn,
    SharedEmbeddingColumn,
    check_combiner,
)
from tfray.library.layers.feature_column import make_parse_example_spec
from tfray.library.layers.feature_column_base import CategoricalColumn, FeatureColumn
from tfray.library.layers.scattered_embeddings import ScatteredEmbeddingColumn
from tfray.library.variables.initializers import InitializerLike, TruncatedNormal
from tfray.ops.arrays.source_ops import placeholder
from tfray.ops.sparse.sparse_ops import sparse_placeholder
from tfray.ops.strings.parsing_ops import FixedLenFeature

__all__ = [
    "bucketized_column",
    "create_feature_spec_for_parsing",
    "crossed_column",
    "embedding_column",
    "make_place_holder_tensors_for_base_features",
    "one_hot_column",
    "real_valued_column",
    "scattered_embedding_column",
    "shared_embedding_columns",
    "sparse_column_with_hash_bucket",
    "sparse_column_with_integerized_feature",
    "sparse_column_with_keys",
    "sparse_column_with_vocabulary_file",
    "weighted_sparse_column",
]

_Column = TypeVar("_Column", bound=FeatureColumn)


class _Older:
    """What columns of ``tf.contrib.layers`` have besides, and those of `tf.feature_column` have not."""

    parse_example_spec: dict[str, Any]

    @property
    def config(self) -> dict[str, Any]:
        """How `tf.parse_example` parses the features that the column is made of."""
        return _in_lists(self.parse_example_spec)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"columns do not change: {name!r} cannot be set")


def is_older(column: object) -> bool:
    """Whether a column is one of ``tf.contrib.layers``, not of `tf.feature_column`."""
    return isinstance(column, _Older)


def _in_lists(spec: dict[str, Any]) -> dict[str, Any]:
    """A specification whose shapes and defaults are lists, as those of ``tf.contrib``."""
    found = {}
    for name, feature in spec.items():
        found[name] = feature
        if isinstance(feature, FixedLenFeature):
            default = feature.default_value
            default = list(default) if isinstance(default, tuple) else default
            found[name] = FixedLenFeature(list(feature.shape), feature.dtype, default)
    return found


@cache
def _older(kind: type[FeatureColumn]) -> type[FeatureColumn]:
    return type(kind.__name__, (_Older, kind), {"__doc__": kind.__doc__, "__module__": kind.__module__})


def _with_older_names(column: _Column, **names: Any) -> _Column:
    """A column that has `config` and further attributes, which are part neither of its value nor of its hash."""
    made: Any = object.__new__(_older(type(column)))
    vars(made).update(vars(column), **names)
    found: _Column = made
    return found


def real_valued_column(
    column_name: str,
    dimension: int = 1,
    default_value: TensorLike | None = None,
    dtype: DTypeLike = float32,
    normalizer: Callable[..., Any] | None = None,
) -> NumericColumn:
    """`tf.feature_column.numeric_column` with `dimension` numbers.

    Args:
        column_name: Name of the feature; ``""`` for features that are one tensor.
        dimension: How many numbers.
        default_value: Value of a feature that is missing.
        dtype: Dtype of the feature.
        normalizer: Function of the feature.

    Raises:
        TypeError: `dimension` is no integer, or a default is no number, or no integer where the feature is one.
        ValueError: `dimension` is below 1, there are more or fewer defaults, or the feature is no number.
    """
    if not isinstance(dimension, int):
        raise ArgumentError(f"dimension must be an integer. dimension: {dimension}, column_name: {column_name}")
    column = dense_columns.numeric_column(column_name, (dimension,), default_value, dtype, normalizer)
    return _with_older_names(column, column_name=column_name, dimension=dimension, normalizer=normalizer)


def sparse_column_with_hash_bucket(
    column_name: str,
    hash_bucket_size: int,
    combiner: str = "sum",
    dtype: DTypeLike = string,
    hash_keys: TensorLike | None = None,
) -> HashedCategoricalColumn:
    """`tf.feature_column.categorical_column_with_hash_bucket`.

    Args:
        column_name: Name of the feature.
        hash_bucket_size: Number of buckets.
        combiner: Not used: embeddings and linear models have their own.
        dtype: Dtype of the feature.
        hash_keys: Not used.
    """
    column = categorical_columns.categorical_column_with_hash_bucket(column_name, hash_bucket_size, dtype)
    return _with_older_names(column, column_name=column_name, bucket_size=hash_bucket_size, combiner=combiner)


def sparse_column_with_keys(
    column_name: str,
    keys: Sequence[str | int],
    default_value: int = -1,
    combiner: str = "sum",
    dtype: DTypeLike = string,
) -> Any:
    """`tf.feature_column.categorical_column_with_vocabulary_list`.

    Args:
        column_name: Name of the feature.
        keys: The vocabulary.
        default_value: Id of other values.
        combiner: Not used: embeddings and linear models have their own.
        dtype: Dtype of the feature.
    """
    column = categorical_columns.categorical_column_with_vocabulary_list(column_name, keys, dtype, default_value)
    return _with_older_names(column, column_name=column_name, combiner=combiner)


def sparse_column_with_integerized_feature(
    column_name: str, bucket_size: int, combiner: str = "sum", dtype: DTypeLike | None = None
) -> Any:
    """`tf.feature_column.categorical_column_with_identity`.

    Args:
        column_name: Name of the feature, whose values are ids already.
        bucket_size: Number of ids.
        combiner: Not used: embeddings and linear models have their own.
        dtype: An integer one; it has no other effect.

    Raises:
        ValueError: `dtype` is no integer, or `bucket_size` below 1.
    """
    if dtype is not None and not as_dtype(dtype).is_integer:
        raise InvalidArgumentError(f"dtype must be an integer. dtype: {dtype}, column_name: {column_name}")
    column = categorical_columns.categorical_column_with_identity(column_name, bucket_size)
    return _with_older_names(column, column_name=column_name, bucket_size=bucket_size, combiner=combiner)


def sparse_column_with_vocabulary_file(
    column_name: str,
    vocabulary_file: str,
    num_oov_buckets: int = 0,
    vocab_size: int | None = None,
    default_value: int | None = None,
    combiner: str = "sum",
    dtype: DTypeLike = string,
) -> Any:
    """`tf.feature_column.categorical_column_with_vocabulary_file`.

    Args:
        column_name: Name of the feature.
        vocabulary_file: File with a word on each line.
        num_oov_buckets: Buckets of other words.
        vocab_size: How many lines are taken; all when None.
        default_value: Id of other words where they have no buckets.
        combiner: Not used: embeddings and linear models have their own.
        dtype: Dtype of the feature.
    """
    column = categorical_columns.categorical_column_with_vocabulary_file(
        column_name, vocabulary_file, vocab_size, num_oov_buckets, default_value, dtype
    )
    return _with_older_names(column, column_name=column_name, combiner=combiner)


def bucketized_column(source_column: NumericColumn, boundaries: Sequence[float]) -> BucketizedColumn:
    """`tf.feature_column.bucketized_column`; equal boundaries are one.

    Raises:
        TypeError: The column is not one of numbers.
        ValueError: There are no boundaries, or they do not ascend.
    """
    if not isinstance(source_column, NumericColumn):
        raise ArgumentError(f"source_column must be a real_valued_column, not {source_column!r}")
    column = dense_columns.bucketized_column(source_column, list(dict.fromkeys(boundaries)))
    return _with_older_names(column, length=len(column.boundaries) + 1)


def crossed_column(
    columns: Sequence[Any],
    hash_bucket_size: int,
    combiner: str = "sum",
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    hash_key: int | None = None,
) -> CrossedColumn:
    """`tf.feature_column.crossed_column`; of columns with hash buckets the features themselves are crossed.

    Args:
        columns: Columns of categories, or names of features.
        hash_bucket_size: Number of buckets.
        combiner: Not used: embeddings and linear models have their own.
        ckpt_to_load_from: Not used.
        tensor_name_in_ckpt: Not used.
        hash_key: Seed of the hash.

    Raises:
        TypeError: A column has no categories.
        ValueError: There are fewer than two.
    """
    if wrong := [each for each in columns if isinstance(each, NumericColumn)]:
        raise ArgumentError(f"columns must be of categories, or buckets; {wrong[0]!r} is of numbers")
    keys = [each.key if isinstance(each, HashedCategoricalColumn) else each for each in columns]
    column = categorical_columns.crossed_column(keys, hash_bucket_size, hash_key)
    ordered = tuple(sorted(columns, key=lambda each: each if isinstance(each, str) else each.name))
    return _with_older_names(column, columns=ordered, combiner=combiner)


def embedding_column(
    sparse_id_column: CategoricalColumn,
    dimension: int,
    combiner: str = "mean",
    initializer: InitializerLike | None = None,
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: float | None = None,
    trainable: bool = True,
) -> EmbeddingColumn:
    """`tf.feature_column.embedding_column`, whose column is called `sparse_id_column`."""
    column = dense_columns.embedding_column(
        sparse_id_column, dimension, combiner, initializer, ckpt_to_load_from, tensor_name_in_ckpt, max_norm, trainable
    )
    return _with_older_names(column, sparse_id_column=sparse_id_column)


def one_hot_column(sparse_id_column: CategoricalColumn) -> IndicatorColumn:
    """`tf.feature_column.indicator_column`, whose column is called `sparse_id_column`."""
    return _with_older_names(dense_columns.indicator_column(sparse_id_column), sparse_id_column=sparse_id_column)


def shared_embedding_columns(
    sparse_id_columns: Sequence[CategoricalColumn],
    dimension: int,
    combiner: str = "mean",
    shared_embedding_name: str | None = None,
    initializer: InitializerLike | None = None,
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: float | None = None,
    trainable: bool = True,
) -> list[SharedEmbeddingColumn]:
    """`tf.feature_column.shared_embedding_columns`, with other names of columns and collection, and another order.

    Raises:
        TypeError: `sparse_id_columns` is no list.
    """
    if not isinstance(sparse_id_columns, (list, tuple)):
        raise ArgumentError(f"sparse_id_columns must be a list of columns, not {sparse_id_columns!r}")
    made = dense_columns.shared_embedding_columns(
        sparse_id_columns,
        dimension,
        combiner,
        initializer,
        shared_embedding_name,
        ckpt_to_load_from,
        tensor_name_in_ckpt,
        max_norm,
        trainable,
    )
    return [
        _with_older_names(
            column,
            sparse_id_column=column.categorical_column,
            shared_embedding_name=column.shared_embedding_collection_name,
        )
        for column in made
    ]


def scattered_embedding_column(
    column_name: str,
    size: int,
    dimension: int,
    hash_key: int,
    combiner: str = "mean",
    initializer: InitializerLike | None = None,
) -> ScatteredEmbeddingColumn:
    """Learned vectors for words of any number, whose numbers are shared: see `scattered_embedding_lookup_sparse`.

    Args:
        column_name: Name of the feature, of strings.
        size: How many numbers there are for all vectors.
        dimension: Size of a vector.
        hash_key: Seed of the hash.
        combiner: How the vectors of an example are combined: ``mean``, ``sqrtn`` or ``sum``.
        initializer: Of the numbers; random ones with a standard deviation of 0.1 when None.

    Raises:
        ValueError: `size` or `dimension` is below 1, there is no such combiner, or the initializer is no function.
    """
    if dimension < 1 or size < 1:
        raise ValueError(
            f"Dimension and size must be greater than 0. dimension: {dimension}, size: {size}, column_name: "
            f"{column_name}"
        )
    check_combiner(combiner)
    if initializer is not None and not callable(initializer):
        raise ValueError(f"initializer must be callable if specified. column_name: {column_name}")
    made = initializer or TruncatedNormal(mean=0.0, stddev=0.1)
    column = ScatteredEmbeddingColumn(column_name, size, dimension, hash_key, combiner, made)
    return _with_older_names(column, column_name=column_name)


def weighted_sparse_column(
    sparse_id_column: CategoricalColumn, weight_column_name: str, dtype: DTypeLike = float32
) -> WeightedCategoricalColumn:
    """`tf.feature_column.weighted_categorical_column`, whose column is called `sparse_id_column`."""
    column = categorical_columns.weighted_categorical_column(sparse_id_column, weight_column_name, dtype)
    return _with_older_names(column, sparse_id_column=sparse_id_column, weight_column_name=weight_column_name)


def create_feature_spec_for_parsing(feature_columns: Any) -> dict[str, Any]:
    """`tf.feature_column.make_parse_example_spec`; of a dictionary the values are the columns."""
    columns = feature_columns.values() if isinstance(feature_columns, dict) else feature_columns
    return _in_lists(make_parse_example_spec(columns))


def make_place_holder_tensors_for_base_features(feature_columns: Any) -> dict[str, Any]:
    """Placeholders of the features that columns are made of, by their names; sparse where their number varies."""
    made: dict[str, Any] = {}
    for name, feature in create_feature_spec_for_parsing(feature_columns).items():
        if isinstance(feature, FixedLenFeature):
            made[name] = placeholder(feature.dtype, [None, *feature.shape])
        else:
            made[name] = sparse_placeholder(feature.dtype)
    return made
