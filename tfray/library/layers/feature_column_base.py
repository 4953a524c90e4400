"""What all feature columns share: how they read features, cache what they make of them, and make variables.

A column is a frozen record. Two columns of the same arguments are equal, so that a feature that several columns use is
transformed once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, Self, cast

from tfray.framework import dtypes
from tfray.framework.dtypes import DType
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.framework.sparse_tensor import SparseTensor, convert_to_tensor_or_sparse_tensor
from tfray.framework.tensor_shape import TensorShape
from tfray.library.variables.variable_scope import get_variable
from tfray.ops.arrays import array_ops
from tfray.ops.checks import check_ops
from tfray.ops.math import math_ops
from tfray.ops.sparse import sparse_layout_ops
from tfray.ops.strings.parsing_ops import VarLenFeature

Features = Mapping[Any, Any]


class IdWeightPair(NamedTuple):
    """What a categorical column makes of features.

    Attributes:
        id_tensor: int64 `SparseTensor` of shape ``[batch, ...]``: ids from 0 to ``num_buckets - 1``; -1 for none.
        weight_tensor: Floating `SparseTensor` of the same positions, or None for weights of 1.
    """

    id_tensor: SparseTensor
    weight_tensor: SparseTensor | None


class TensorSequenceLengthPair(NamedTuple):
    """What a column of sequences makes of features.

    Attributes:
        dense_tensor: Shape ``[batch, longest, ...]``, float32.
        sequence_length: Shape ``[batch]``, int64.
    """

    dense_tensor: Tensor
    sequence_length: Tensor


class FeatureTensors:
    """The features of a batch as tensors, and what columns made of them, each once.

    Args:
        features: Features by name: tensors or sparse tensors, of shape ``[batch]`` or ``[batch, ...]``.
    """

    def __init__(self, features: Features) -> None:
        self._features = dict(features)
        self._found: dict[Any, Any] = {}

    def get(self, key: Any) -> Any:
        """A feature by its name, of two dimensions or more; or what a column makes of the features.

        Raises:
            ValueError: There is no such feature, or it is a scalar.
            TypeError: `key` is neither name nor column.
        """
        if key not in self._found:
            self._found[key] = self._make(key)
        return self._found[key]

    def _make(self, key: Any) -> Any:
        if key in self._features:
            return _with_batch(key, convert_to_tensor_or_sparse_tensor(self._features[key]))
        if isinstance(key, str):
            there = ", ".join(map(str, self._features)) or "none"
            raise ValueError(f"Feature {key} is not in features dictionary, which has: {there}.")
        if not isinstance(key, FeatureColumn):
            raise TypeError(f"a feature is asked for by a str or a feature column, not by {key!r}")
        return key.transform_feature(self)


def _with_batch(key: Any, feature: Any) -> Any:
    """The feature with two dimensions or more."""
    rank = feature.shape.rank
    if rank == 0:
        raise ValueError(f"Feature (key: {key}) cannot have rank 0: expected [batch] or [batch, ...], got {feature!r}")
    if rank is not None and rank > 1:
        return feature
    sizes = array_ops.shape(feature)
    if rank == 1:
        if isinstance(feature, SparseTensor):
            return sparse_layout_ops.sparse_reshape(feature, array_ops.stack([sizes[0], 1]))
        return array_ops.expand_dims(feature, -1)
    message = f"Feature (key: {key}) cannot have rank 0"
    check = check_ops.assert_positive(array_ops.size(sizes), message=message)
    with get_default_graph().control_dependencies([check]):
        missing = array_ops.to_int32(math_ops.equal(array_ops.size(sizes), 1))
    sizes = array_ops.concat([sizes, array_ops.ones(array_ops.stack([missing]), dtypes.int32)], 0)
    if isinstance(feature, SparseTensor):
        return sparse_layout_ops.sparse_reshape(feature, sizes)
    return array_ops.reshape(feature, sizes)


@dataclass(frozen=True)
class ColumnVariables:
    """How columns make variables, in the current variable scope.

    Attributes:
        trainable: Whether optimizers are to change them.
        collections: Collections that they are added to.
    """

    trainable: bool
    collections: Sequence[str]

    @classmethod
    def of(cls, weight_collections: Sequence[str] | None, trainable: bool) -> ColumnVariables:
        """Variables that are also in the collections of global and of model variables."""
        always = (GraphKeys.GLOBAL_VARIABLES, GraphKeys.MODEL_VARIABLES)
        return cls(trainable, tuple(dict.fromkeys([*(weight_collections or ()), *always])))

    def get(self, name: str, shape: Sequence[int], initializer: Any, trainable: bool = True) -> Any:
        """A float32 variable."""
        return get_variable(
            name,
            list(shape),
            dtypes.float32,
            initializer,
            trainable=self.trainable and trainable,
            collections=list(self.collections),
        )


class FeatureColumn(ABC):
    """Base of feature columns: a column computes numbers or ids from features."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the column, from which those of its variables are made."""

    @property
    def variable_scope_name(self) -> str:
        """Name of the scope of its variables."""
        return "".join(letter if letter.isalnum() or letter in "_.-/" else "_" for letter in self.name)

    @property
    @abstractmethod
    def parents(self) -> list[Any]:
        """The columns, and names of features, that it is made of."""

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """What `tf.parse_example` needs to know of the features: what the parents need, taken together."""
        spec: dict[str, Any] = {}
        for parent in self.parents:
            spec |= {parent: self._feature} if isinstance(parent, str) else parent.parse_example_spec
        return spec

    @property
    def _feature(self) -> Any:
        """How features are parsed that the column names itself."""
        return VarLenFeature(dtypes.string)

    @abstractmethod
    def transform_feature(self, inputs: FeatureTensors) -> Any:
        """What the column makes of features, before variables come in."""

    def get_config(self) -> dict[str, Any]:
        """What the column is made of, by name; `from_config` makes another of it."""
        return {each.name: getattr(self, each.name) for each in fields(cast("Any", self))}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """The column of a configuration, in which tuples may be lists, and dtypes names."""
        made = {name: as_tuples(value) for name, value in config.items()}
        if "dtype" in made:
            made["dtype"] = dtypes.as_dtype(made["dtype"])
        return cls(**made)


def as_tuples(value: Any) -> Any:
    """Nested lists as nested tuples."""
    return tuple(as_tuples(each) for each in value) if isinstance(value, list) else value


@dataclass(frozen=True)
class KeyedColumn(FeatureColumn):
    """A column of one feature, whose name it has."""

    key: str

    @property
    def name(self) -> str:
        return self.key

    @property
    def parents(self) -> list[Any]:
        return [self.key]


class DenseColumn(FeatureColumn):
    """A column that gives each example the same number of numbers."""

    @property
    @abstractmethod
    def variable_shape(self) -> TensorShape:
        """Shape of an example's numbers."""

    @abstractmethod
    def get_dense_tensor(self, inputs: FeatureTensors, variables: ColumnVariables) -> Tensor:
        """The numbers, shape ``[batch, ...]``, float32."""


class SequenceDenseColumn(FeatureColumn):
    """A column that gives each step of a sequence the same number of numbers."""

    @property
    @abstractmethod
    def variable_shape(self) -> TensorShape:
        """Shape of a step's numbers."""

    @abstractmethod
    def get_sequence_dense_tensor(self, inputs: FeatureTensors, variables: ColumnVariables) -> TensorSequenceLengthPair:
        """The numbers, shape ``[batch, longest, ...]``, float32, and the lengths of the sequences."""


class CategoricalColumn(FeatureColumn):
    """A column of ids."""

    @property
    @abstractmethod
    def num_buckets(self) -> int:
        """How many ids there are."""

    @abstractmethod
    def get_sparse_tensors(self, inputs: FeatureTensors) -> IdWeightPair:
        """The ids, and their weights if they have any."""


# -- checks ------------------------------------------------------------------------------------------------


def check_key(key: Any) -> None:
    """Raise `ValueError` unless `key` is a string."""
    if not isinstance(key, str):
        raise ValueError(f"key must be a string: the name of a feature. Got {key!r}, {type(key).__name__}")


def check_words_or_integers(dtype: DType, what: str) -> None:
    """Raise `ValueError` unless `dtype` is ``string`` or an integer one."""
    if dtype is not dtypes.string and not dtype.is_integer:
        raise ValueError(f"{what} dtype must be string or integer, not {dtype.name}")


def check_numbers(dtype: DType, key: str) -> None:
    """Raise `ValueError` unless `dtype` is an integer or floating one."""
    if not (dtype.is_integer or dtype.is_floating):
        raise ValueError(f"dtype must be convertible to float; it is {dtype.name}, key: {key}")


def normalized_columns(feature_columns: Any) -> list[Any]:
    """Columns as a list.

    Raises:
        ValueError: There are none, two have the same name, or there is something else among them.
    """
    if isinstance(feature_columns, FeatureColumn):
        return [feature_columns]
    if isinstance(feature_columns, dict):
        raise ValueError("Expected feature_columns to be iterable, found dict: give a list of columns.")
    if not isinstance(feature_columns, (Iterator, Sequence, set, frozenset)) and not hasattr(
        feature_columns, "__iter__"
    ):
        raise ValueError(f"feature_columns must be a column or columns, not {feature_columns!r}")
    columns = list(feature_columns)
    by_name: dict[str, Any] = {}
    for column in columns:
        if not isinstance(column, FeatureColumn):
            raise ValueError(
                f"Items of feature_columns must be a FeatureColumn, made by tf.feature_column; got {column!r}"
            )
        if column.name in by_name:
            raise ValueError(
                f"Duplicate feature column name found for columns: {column} and {by_name[column.name]}. Leave one out, "
                "or give the feature a second name in the dictionary of features."
            )
        by_name[column.name] = column
    if not columns:
        raise ValueError("feature_columns must not be empty.")
    return columns


def check_batch_sizes(tensors: Sequence[Tensor], columns: Sequence[FeatureColumn]) -> None:
    """Raise `ValueError` when the static batch sizes of two columns' tensors differ."""
    known = [
        (tensor.shape.sizes[0], column.name)
        for tensor, column in zip(tensors, columns, strict=True)
        if tensor.shape.rank is not None and tensor.shape.sizes[0] is not None
    ]
    for size, name in known[1:]:
        if size != known[0][0]:
            raise ValueError(
                "Batch size (first dimension) of each feature must be same. Batch size of columns "
                f"({known[0][1]}, {name}): ({known[0][0]}, {size})"
            )


def sequence_lengths(sparse: SparseTensor, num_elements: int = 1) -> Tensor:
    """How many steps each row of a sparse tensor has, int64, where `num_elements` values make a step."""
    ends = math_ops.unsorted_segment_max(sparse.indices[:, 1] + 1, sparse.indices[:, 0], sparse.dense_shape[0])
    ends = math_ops.maximum(ends, array_ops.zeros_like(ends))
    return (ends + (num_elements - 1)) // num_elements


def flat_rows(tensor: Tensor, shape: TensorShape) -> Tensor:
    """A column's numbers as ``[batch, numbers]``."""
    return array_ops.reshape(tensor, array_ops.stack([array_ops.size_along(tensor, 0), int(shape.num_elements() or 0)]))
