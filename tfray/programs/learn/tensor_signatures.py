"""Signatures of features and labels: what ``tf.contrib.learn.python.learn.estimators.tensor_signature`` has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from tfray.framework.dtypes import DType
from tfray.framework.sparse_tensor import SparseTensor
from tfray.framework.tensor_shape import TensorShape
from tfray.ops.arrays.source_ops import placeholder
from tfray.ops.sparse.sparse_ops import sparse_placeholder
from tfray.ops.strings.parsing_ops import FixedLenFeature, VarLenFeature, parse_example

__all__ = [
    "TensorSignature",
    "create_example_parser_from_signatures",
    "create_placeholders_from_signatures",
    "create_signatures",
    "tensors_compatible",
]


class TensorSignature(NamedTuple):
    """What is known of a tensor: its dtype, its shape, None if it is sparse, and whether it is.

    Attributes:
        dtype: The dtype.
        shape: The shape; the first dimension, the batch, does not matter.
        is_sparse: Whether it is a `tf.SparseTensor`.
    """

    dtype: DType
    shape: TensorShape | None
    is_sparse: bool

    def is_compatible_with(self, other: TensorSignature) -> bool:
        """Whether a tensor of the other signature can stand for one of this."""
        if self.dtype != other.dtype or self.is_sparse != other.is_sparse:
            return False
        return self.shape is None or other.shape is None or self.shape[1:].is_compatible_with(other.shape[1:])

    def get_placeholder(self) -> Any:
        """A placeholder, whose batch has any size."""
        if self.shape is None:
            return sparse_placeholder(self.dtype)
        return placeholder(self.dtype, [None, *self.shape[1:]])

    def get_feature_spec(self) -> Any:
        """How `tf.parse_example` parses it."""
        if self.shape is None:
            return VarLenFeature(self.dtype)
        return FixedLenFeature(self.shape[1:].as_list() if self.shape.rank is not None else [1], self.dtype)


def create_signatures(tensors: Any) -> Any:
    """The signature of a tensor, those of tensors by name, or None of None."""
    if tensors is None:
        return None
    if isinstance(tensors, Mapping):
        return {name: create_signatures(tensor) for name, tensor in tensors.items()}
    is_sparse = isinstance(tensors, SparseTensor)
    return TensorSignature(tensors.dtype, None if is_sparse else tensors.shape, is_sparse)


def tensors_compatible(tensors: Any, signatures: Any) -> bool:
    """Whether tensors fit signatures: both None, both one, or by name, where there may be further tensors."""
    if tensors is None or signatures is None:
        return tensors is signatures
    if isinstance(tensors, Mapping) != isinstance(signatures, Mapping):
        return False
    if not isinstance(tensors, Mapping):
        return bool(signatures.is_compatible_with(create_signatures(tensors)))
    return all(name in tensors and tensors_compatible(tensors[name], each) for name, each in signatures.items())


def create_placeholders_from_signatures(signatures: Any) -> Any:
    """A placeholder for a signature, or for each one by name."""
    if isinstance(signatures, Mapping):
        return {name: signature.get_placeholder() for name, signature in signatures.items()}
    return signatures.get_placeholder()


def create_example_parser_from_signatures(
    signatures: Any, examples_batch: Any, single_feature_name: str = "feature"
) -> Any:
    """The features of `tf.train.Example` messages, by the names of their signatures.

    Args:
        signatures: A signature, or signatures by name.
        examples_batch: Messages as bytes, shape ``[batch]``.
        single_feature_name: Name of the feature of a signature that stands alone.
    """
    if isinstance(signatures, Mapping):
        return parse_example(examples_batch, {name: each.get_feature_spec() for name, each in signatures.items()})
    return parse_example(examples_batch, {single_feature_name: signatures.get_feature_spec()})[single_feature_name]
