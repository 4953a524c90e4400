"""Categorical feature columns: ids from integers, words of a vocabulary, hashes, and crosses of these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tfray.formats import files
from tfray.framework import dtypes
from tfray.framework.dtypes import DType, DTypeLike, as_dtype
from tfray.framework.graph import get_default_graph
from tfray.framework.sparse_tensor import SparseTensor
from tfray.library.input import lookup
from tfray.library.layers.feature_column_base import (
    CategoricalColumn,
    FeatureTensors,
    IdWeightPair,
    KeyedColumn,
    check_key,
    check_words_or_integers,
)
from tfray.library.platform import logging
from tfray.ops.arrays import array_ops
from tfray.ops.checks import check_ops
from tfray.ops.math import math_ops
from tfray.ops.sparse import sparse_cross_ops, sparse_layout_ops
from tfray.ops.sparse.sparse_ops import chosen_elements
from tfray.ops.strings import string_number_ops
from tfray.ops.strings.parsing_ops import VarLenFeature


def without_missing(values: Any, missing: Any = None) -> SparseTensor:
    """A sparse tensor as it is; a tensor as a sparse one that lacks the elements that are `missing`.

    These are empty strings, -1 of integers and 0 of other numbers when `missing` is None.
    """
    if isinstance(values, SparseTensor):
        return values
    if missing is None:
        missing = "" if values.dtype is dtypes.string else -1 if values.dtype.is_integer else 0
    return chosen_elements(values, math_ops.not_equal(values, missing))


@dataclass(frozen=True)
class _KeyedCategories(KeyedColumn, CategoricalColumn):
    """A column of the ids that the values of one feature become, one by one."""

    @property
    def _feature(self) -> VarLenFeature:
        return VarLenFeature(self._dtype)

    @property
    def _dtype(self) -> DType:
        return dtypes.int64

    def transform_feature(self, inputs: FeatureTensors) -> SparseTensor:
        return self._ids(without_missing(inputs.get(self.key)))

    def _ids(self, values: SparseTensor) -> SparseTensor:
        raise TypeError(f"{type(self).__name__} does not say how to make ids of {values!r}: define _ids")

    def get_sparse_tensors(self, inputs: FeatureTensors) -> IdWeightPair:
        return IdWeightPair(inputs.get(self), None)

    def _check_dtype(self, values: SparseTensor) -> None:
        check_words_or_integers(values.dtype, f"column_name: {self.key} input_tensor")
        if self._dtype.is_integer != values.dtype.is_integer:
            raise ValueError(
                f"Column dtype and SparseTensors dtype must be compatible. key: {self.key}, column dtype: "
                f"{self._dtype.name}, tensor dtype: {values.dtype.name}"
            )


@dataclass(frozen=True)
class IdentityCategoricalColumn(_KeyedCategories):
    """See `categorical_column_with_identity`."""

    number_buckets: int
    default_value: int | None

    @property
    def num_buckets(self) -> int:
        return self.number_buckets

    def _ids(self, values: SparseTensor) -> SparseTensor:
        if not values.dtype.is_integer:
            raise ValueError(f"Invalid input, not integer. key: {self.key} dtype: {values.dtype.name}")
        ids = array_ops.to_int64(values.values)
        if self.default_value is None:
            checks = [
                check_ops.assert_less(ids, np.int64(self.number_buckets), message=f"{self.key}: an id is too large"),
                check_ops.assert_greater_equal(ids, np.int64(0), message=f"{self.key}: an id is negative"),
            ]
            with get_default_graph().control_dependencies(checks):
                ids = array_ops.identity(ids)
        else:
            outside = math_ops.logical_or(ids < 0, ids >= self.number_buckets)
            ids = array_ops.where(outside, array_ops.ones_like(ids) * self.default_value, ids)
        return SparseTensor(values.indices, ids, values.dense_shape)


def categorical_column_with_identity(
    key: str, num_buckets: int, default_value: int | None = None
) -> IdentityCategoricalColumn:
    """Integers that are ids already.

    Args:
        key: Name of the feature.
        num_buckets: One more than the largest.
        default_value: The id that stands for integers out of range; without one they are an error of the step.

    Raises:
        ValueError: `num_buckets` is below 1, or `default_value` is no id.
    """
    if num_buckets < 1:
        raise ValueError(f"num_buckets {num_buckets} < 1, column_name {key}")
    if default_value is not None and not 0 <= default_value < num_buckets:
        raise ValueError(f"default_value {default_value} not in range [0, {num_buckets}), column_name {key}")
    check_key(key)
    return IdentityCategoricalColumn(key, num_buckets, default_value)


class _LookedUp(_KeyedCategories):
    """A column of ids that a table gives."""

    def _ids(self, values: SparseTensor) -> SparseTensor:
        self._check_dtype(values)
        if values.dtype.is_integer:
            values = SparseTensor(values.indices, array_ops.to_int64(values.values), values.dense_shape)
        found: SparseTensor = self._table(values.dtype).lookup(values)
        return found

    def _table(self, key_dtype: DType) -> Any:
        raise TypeError(f"{type(self).__name__} has no table of {key_dtype.name}: define _table")


@dataclass(frozen=True)
class VocabularyListCategoricalColumn(_LookedUp):
    """See `categorical_column_with_vocabulary_list`."""

    vocabulary_list: tuple[Any, ...]
    dtype: DType
    default_value: int
    num_oov_buckets: int

    @property
    def _dtype(self) -> DType:
        return self.dtype

    @property
    def num_buckets(self) -> int:
        return len(self.vocabulary_list) + self.num_oov_buckets

    def _table(self, key_dtype: DType) -> Any:
        return lookup.index_table_from_tensor(
            list(self.vocabulary_list),
            self.num_oov_buckets,
            self.default_value,
            dtype=key_dtype,
            name=f"{self.key}_lookup",
        )


def categorical_column_with_vocabulary_list(
    key: str,
    vocabulary_list: Sequence[Any],
    dtype: DTypeLike | None = None,
    default_value: int = -1,
    num_oov_buckets: int = 0,
) -> VocabularyListCategoricalColumn:
    """Words, or integers, by their place in a list. Run `tf.tables_initializer()` before.

    Args:
        key: Name of the feature.
        vocabulary_list: The words.
        dtype: ``string`` or an integer dtype; by default that of the words.
        default_value: The id of other words; -1 for none.
        num_oov_buckets: Number of further ids, among which other words are spread by hashing.

    Raises:
        ValueError: The list is empty or has repetitions, a dtype does not fit, or both `default_value` and
            `num_oov_buckets` are given.
    """
    if vocabulary_list is None or len(vocabulary_list) < 1:
        raise ValueError(f"vocabulary_list {vocabulary_list} must be non-empty, column_name: {key}")
    if len(set(vocabulary_list)) != len(vocabulary_list):
        raise ValueError(f"Duplicate keys in vocabulary_list {vocabulary_list}, column_name: {key}")
    words = as_dtype(np.array(vocabulary_list).dtype)
    _check_others(key, num_oov_buckets, default_value != -1)
    check_words_or_integers(words, f"column_name: {key} vocabulary")
    wanted = words if dtype is None else as_dtype(dtype)
    if wanted.is_integer != words.is_integer:
        raise ValueError(f"dtype {wanted.name} and vocabulary dtype {words.name} do not match, column_name: {key}")
    check_words_or_integers(wanted, f"column_name: {key}")
    check_key(key)
    return VocabularyListCategoricalColumn(key, tuple(vocabulary_list), wanted, default_value, num_oov_buckets)


def _check_others(key: str, num_oov_buckets: int | None, has_default: bool) -> None:
    if num_oov_buckets:
        if has_default:
            raise ValueError(f"Can't specify both num_oov_buckets and default_value in {key}.")
        if num_oov_buckets < 0:
            raise ValueError(f"Invalid num_oov_buckets {num_oov_buckets} in {key}.")


@dataclass(frozen=True)
class VocabularyFileCategoricalColumn(_LookedUp):
    """See `categorical_column_with_vocabulary_file`."""

    vocabulary_file: str
    vocabulary_size: int
    num_oov_buckets: int
    dtype: DType
    default_value: int

    @property
    def _dtype(self) -> DType:
        return self.dtype

    @property
    def num_buckets(self) -> int:
        return self.vocabulary_size + self.num_oov_buckets

    def _table(self, key_dtype: DType) -> Any:
        return lookup.index_table_from_file(
            self.vocabulary_file,
            self.num_oov_buckets,
            self.vocabulary_size,
            self.default_value,
            key_dtype=key_dtype,
            name=f"{self.key}_lookup",
        )


def categorical_column_with_vocabulary_file(
    key: str,
    vocabulary_file: str,
    vocabulary_size: int | None = None,
    num_oov_buckets: int = 0,
    default_value: int | None = None,
    dtype: DTypeLike = dtypes.string,
) -> VocabularyFileCategoricalColumn:
    """Words, or integers, by their line in a file. Run `tf.tables_initializer()` before.

    Args:
        key: Name of the feature.
        vocabulary_file: Path of a text file with a word in each line.
        vocabulary_size: How many lines count; all when None.
        num_oov_buckets: Number of further ids, among which other words are spread by hashing.
        default_value: The id of other words; -1, which is none, when None.
        dtype: ``string`` or an integer dtype.

    Raises:
        ValueError: The file is missing or has fewer lines than 1, or both `default_value` and `num_oov_buckets` are
            given.
    """
    if not vocabulary_file:
        raise ValueError(f"Missing vocabulary_file in {key}.")
    if vocabulary_size is None:
        if not files.exists(vocabulary_file):
            raise ValueError(f"vocabulary_file in {key} does not exist: {vocabulary_file}")
        with files.open_file(vocabulary_file, "rb") as lines:
            vocabulary_size = sum(1 for _ in lines)
        logging.info("vocabulary_size of %s is %d, the number of lines of %s", key, vocabulary_size, vocabulary_file)
    if vocabulary_size < 1:
        raise ValueError(f"Invalid vocabulary_size in {key}: {vocabulary_size}")
    _check_others(key, num_oov_buckets, default_value is not None)
    wanted = as_dtype(dtype)
    check_words_or_integers(wanted, f"column_name: {key}")
    check_key(key)
    others = -1 if default_value is None else default_value
    return VocabularyFileCategoricalColumn(key, vocabulary_file, vocabulary_size, num_oov_buckets or 0, wanted, others)


@dataclass(frozen=True)
class HashedCategoricalColumn(_KeyedCategories):
    """See `categorical_column_with_hash_bucket`."""

    hash_bucket_size: int
    dtype: DType

    @property
    def _dtype(self) -> DType:
        return self.dtype

    @property
    def num_buckets(self) -> int:
        return self.hash_bucket_size

    def _ids(self, values: SparseTensor) -> SparseTensor:
        self._check_dtype(values)
        words = values.values if values.dtype is dtypes.string else string_number_ops.as_string(values.values)
        ids = string_number_ops.string_to_hash_bucket_fast(words, self.hash_bucket_size, name="lookup")
        return SparseTensor(values.indices, ids, values.dense_shape)


def categorical_column_with_hash_bucket(
    key: str, hash_bucket_size: int, dtype: DTypeLike = dtypes.string
) -> HashedCategoricalColumn:
    """Words, or integers, by a hash: several may share an id.

    Args:
        key: Name of the feature.
        hash_bucket_size: Number of ids.
        dtype: ``string`` or an integer dtype.

    Raises:
        ValueError: `hash_bucket_size` is below 1, or the dtype is another.
    """
    if hash_bucket_size is None:
        raise ValueError(f"hash_bucket_size must be set. key: {key}")
    if hash_bucket_size < 1:
        raise ValueError(f"hash_bucket_size must be at least 1. hash_bucket_size: {hash_bucket_size}, key: {key}")
    check_key(key)
    wanted = as_dtype(dtype)
    check_words_or_integers(wanted, f"column_name: {key}")
    return HashedCategoricalColumn(key, hash_bucket_size, wanted)


@dataclass(frozen=True)
class CrossedColumn(CategoricalColumn):
    """See `crossed_column`."""

    keys: tuple[Any, ...]
    hash_bucket_size: int
    hash_key: int | None

    @property
    def name(self) -> str:
        return "_X_".join(sorted(key if isinstance(key, str) else key.name for key in self._leaves()))

    @property
    def parents(self) -> list[Any]:
        return list(self.keys)

    @property
    def num_buckets(self) -> int:
        return self.hash_bucket_size

    def _leaves(self) -> list[Any]:
        """Its keys, with those of crosses among them in their place."""
        nested = (key._leaves() if isinstance(key, CrossedColumn) else [key] for key in self.keys)
        return [leaf for leaves in nested for leaf in leaves]

    def transform_feature(self, inputs: FeatureTensors) -> SparseTensor:
        crossed = []
        for key in self._leaves():
            if isinstance(key, str):
                crossed.append(inputs.get(key))
                continue
            ids, weights = key.get_sparse_tensors(inputs)
            if weights is not None:
                raise ValueError(f"crossed_column does not support weight_tensor, and column {key.name} has weights")
            crossed.append(ids)
        return sparse_cross_ops.sparse_cross_hashed(crossed, self.hash_bucket_size, self.hash_key)

    def get_sparse_tensors(self, inputs: FeatureTensors) -> IdWeightPair:
        return IdWeightPair(inputs.get(self), None)


def crossed_column(keys: Sequence[Any], hash_bucket_size: int, hash_key: int | None = None) -> CrossedColumn:
    """Combinations of categories, by a hash: several may share an id.

    Args:
        keys: Names of features, or categorical columns without hash; two or more.
        hash_bucket_size: Number of ids.
        hash_key: Number from which hashes begin; TensorFlow's when None.

    Raises:
        ValueError: There are fewer keys than two, or other ones; or `hash_bucket_size` is below 1.
    """
    if not hash_bucket_size or hash_bucket_size < 1:
        raise ValueError(f"hash_bucket_size must be > 1. hash_bucket_size: {hash_bucket_size}")
    if not keys or len(keys) < 2:
        raise ValueError(f"keys must be a list with length > 1. Given: {keys}")
    for key in keys:
        if not isinstance(key, (str, CategoricalColumn)):
            raise ValueError(f"Unsupported key type: crossed_column takes names and categorical columns, not {key!r}")
        if isinstance(key, HashedCategoricalColumn):
            raise ValueError(
                "categorical_column_with_hash_bucket is not supported for crossing, which hashes itself: give the name "
                f"{key.key!r} in place of {key}"
            )
    return CrossedColumn(tuple(keys), hash_bucket_size, hash_key)


@dataclass(frozen=True)
class WeightedCategoricalColumn(CategoricalColumn):
    """See `weighted_categorical_column`."""

    categorical_column: CategoricalColumn
    weight_feature_key: str
    dtype: DType

    @property
    def name(self) -> str:
        return f"{self.categorical_column.name}_weighted_by_{self.weight_feature_key}"

    @property
    def parents(self) -> list[Any]:
        return [self.categorical_column, self.weight_feature_key]

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        spec = self.categorical_column.parse_example_spec
        if self.weight_feature_key in spec:
            raise ValueError(
                f"Parse config {spec[self.weight_feature_key]} already exists for {self.weight_feature_key}."
            )
        return spec | {self.weight_feature_key: VarLenFeature(self.dtype)}

    @property
    def num_buckets(self) -> int:
        return self.categorical_column.num_buckets

    def transform_feature(self, inputs: FeatureTensors) -> IdWeightPair:
        weights = inputs.get(self.weight_feature_key)
        if weights.dtype is not self.dtype:
            raise ValueError(f"Bad dtype, expected {self.dtype.name}, but got {weights.dtype.name}.")
        sparse = without_missing(weights, 0)
        if not sparse.dtype.is_floating:
            sparse = SparseTensor(sparse.indices, array_ops.to_float(sparse.values), sparse.dense_shape)
        return IdWeightPair(inputs.get(self.categorical_column), sparse)

    def get_sparse_tensors(self, inputs: FeatureTensors) -> IdWeightPair:
        found: IdWeightPair = inputs.get(self)
        return found


def weighted_categorical_column(
    categorical_column: CategoricalColumn, weight_feature_key: str, dtype: DTypeLike | None = dtypes.float32
) -> WeightedCategoricalColumn:
    """Ids of which each has a weight.

    Args:
        categorical_column: The ids.
        weight_feature_key: Name of the feature of the weights: as many as there are ids.
        dtype: Dtype of the weights: an integer or floating one.

    Raises:
        ValueError: The dtype is another.
    """
    wanted = None if dtype is None else as_dtype(dtype)
    if wanted is None or not (wanted.is_integer or wanted.is_floating):
        raise ValueError(f"dtype {dtype} is not convertible to float.")
    return WeightedCategoricalColumn(categorical_column, weight_feature_key, wanted)


# -- sequences ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SequenceCategoricalColumn(CategoricalColumn):
    """Ids of the steps of sequences; see `sequence_categorical_column_with_identity` and its siblings."""

    categorical_column: CategoricalColumn

    @property
    def name(self) -> str:
        return self.categorical_column.name

    @property
    def parents(self) -> list[Any]:
        return [self.categorical_column]

    @property
    def num_buckets(self) -> int:
        return self.categorical_column.num_buckets

    def transform_feature(self, inputs: FeatureTensors) -> Any:
        return self.categorical_column.transform_feature(inputs)

    def get_sparse_tensors(self, inputs: FeatureTensors) -> IdWeightPair:
        """The ids, shape ``[batch, longest, n]``."""
        ids, weights = self.categorical_column.get_sparse_tensors(inputs)
        sizes = array_ops.shape(ids)
        wanted = array_ops.stack([sizes[0], sizes[1], math_ops.reduce_prod(sizes[2:])])
        ids = sparse_layout_ops.sparse_reshape(ids, wanted)
        return IdWeightPair(ids, None if weights is None else sparse_layout_ops.sparse_reshape(weights, wanted))


def sequence_categorical_column_with_identity(
    key: str, num_buckets: int, default_value: int | None = None
) -> SequenceCategoricalColumn:
    """Sequences of ids; arguments as of `categorical_column_with_identity`."""
    return SequenceCategoricalColumn(categorical_column_with_identity(key, num_buckets, default_value))


def sequence_categorical_column_with_hash_bucket(
    key: str, hash_bucket_size: int, dtype: DTypeLike = dtypes.string
) -> SequenceCategoricalColumn:
    """Sequences of words by a hash; arguments as of `categorical_column_with_hash_bucket`."""
    return SequenceCategoricalColumn(categorical_column_with_hash_bucket(key, hash_bucket_size, dtype))


def sequence_categorical_column_with_vocabulary_file(
    key: str,
    vocabulary_file: str,
    vocabulary_size: int | None = None,
    num_oov_buckets: int = 0,
    default_value: int | None = None,
    dtype: DTypeLike = dtypes.string,
) -> SequenceCategoricalColumn:
    """Sequences of words of a file; arguments as of `categorical_column_with_vocabulary_file`."""
    return SequenceCategoricalColumn(
        categorical_column_with_vocabulary_file(
            key, vocabulary_file, vocabulary_size, num_oov_buckets, default_value, dtype
        )
    )


def sequence_categorical_column_with_vocabulary_list(
    key: str,
    vocabulary_list: Sequence[Any],
    dtype: DTypeLike | None = None,
    default_value: int = -1,
    num_oov_buckets: int = 0,
) -> SequenceCategoricalColumn:
    """Sequences of words of a list; arguments as of `categorical_column_with_vocabulary_list`."""
    return SequenceCategoricalColumn(
        categorical_column_with_vocabulary_list(key, vocabulary_list, dtype, default_value, num_oov_buckets)
    )
