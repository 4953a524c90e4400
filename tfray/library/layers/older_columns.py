"""Feature columns under the names and arguments of ``tf.contrib.layers``, older than ``tf.feature_column``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tfray.framework.dtypes import DTypeLike, float32, string
from tfray.framework.type_aliases import TensorLike
from tfray.library.layers import categorical_columns, dense_columns
from tfray.library.layers.categorical_columns import CrossedColumn, HashedCategoricalColumn, WeightedCategoricalColumn
from tfray.library.layers.dense_columns import (
    BucketizedColumn,
    EmbeddingColumn,
    IndicatorColumn,
    NumericColumn,
    SharedEmbeddingColumn,
)
from tfray.library.layers.feature_column import make_parse_example_spec
from tfray.library.layers.feature_column_base import CategoricalColumn
from tfray.library.variables.initializers import InitializerLike


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
    """
    return dense_columns.numeric_column(column_name, (dimension,), default_value, dtype, normalizer)


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
    return categorical_columns.categorical_column_with_hash_bucket(column_name, hash_bucket_size, dtype)


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
    return categorical_columns.categorical_column_with_vocabulary_list(column_name, keys, dtype, default_value)


def sparse_column_with_integerized_feature(
    column_name: str, bucket_size: int, combiner: str = "sum", dtype: DTypeLike | None = None
) -> Any:
    """`tf.feature_column.categorical_column_with_identity`.

    Args:
        column_name: Name of the feature, whose values are ids already.
        bucket_size: Number of ids.
        combiner: Not used: embeddings and linear models have their own.
        dtype: Not used.
    """
    return categorical_columns.categorical_column_with_identity(column_name, bucket_size)


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
    return categorical_columns.categorical_column_with_vocabulary_file(
        column_name, vocabulary_file, vocab_size, num_oov_buckets, default_value, dtype
    )


def bucketized_column(source_column: NumericColumn, boundaries: Sequence[float]) -> BucketizedColumn:
    """`tf.feature_column.bucketized_column`; equal boundaries are one."""
    return dense_columns.bucketized_column(source_column, sorted(dict.fromkeys(boundaries)))


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
    """
    keys = [each.key if isinstance(each, HashedCategoricalColumn) else each for each in columns]
    return categorical_columns.crossed_column(keys, hash_bucket_size, hash_key)


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
    return dense_columns.embedding_column(
        sparse_id_column, dimension, combiner, initializer, ckpt_to_load_from, tensor_name_in_ckpt, max_norm, trainable
    )


def one_hot_column(sparse_id_column: CategoricalColumn) -> IndicatorColumn:
    """`tf.feature_column.indicator_column`, whose column is called `sparse_id_column`."""
    return dense_columns.indicator_column(sparse_id_column)


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
    """`tf.feature_column.shared_embedding_columns`, with other names of columns and collection, and another order."""
    return dense_columns.shared_embedding_columns(
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


def weighted_sparse_column(
    sparse_id_column: CategoricalColumn, weight_column_name: str, dtype: DTypeLike = float32
) -> WeightedCategoricalColumn:
    """`tf.feature_column.weighted_categorical_column`, whose column is called `sparse_id_column`."""
    return categorical_columns.weighted_categorical_column(sparse_id_column, weight_column_name, dtype)


def create_feature_spec_for_parsing(feature_columns: Any) -> dict[str, Any]:
    """`tf.feature_column.make_parse_example_spec`; of a dictionary the values are the columns."""
    columns = feature_columns.values() if isinstance(feature_columns, dict) else feature_columns
    return make_parse_example_spec(columns)
