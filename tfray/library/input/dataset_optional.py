"""Values that may be missing, as the end of an iterator is, and descriptions of them and of datasets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tfray.framework import nest
from tfray.framework.convert import add_op
from tfray.framework.dtypes import DTypeLike
from tfray.framework.graph import Tensor
from tfray.framework.tensor_shape import ShapeLike, TensorShape
from tfray.framework.type_aliases import Structure as Nested
from tfray.library.input.dataset_structure import (
    SparseKind,
    TensorArrayKind,
    VariantKind,
    as_element,
    carrier_of,
    carriers_in_attrs,
    kind_of,
    shape_of,
    structure_of,
    unwrapped,
)
from tfray.library.input.datasets import DatasetKind, DatasetSpec
from tfray.ops.control.type_specs import SparseTensorSpec, TensorArraySpec, TensorSpec, TypeSpec
from tfray.ops.dataflow import optional_ops


@dataclass(frozen=True, repr=False)
class OptionalSpec(TypeSpec):
    """Describes an `Optional`.

    Args:
        value_structure: Descriptions of the components of its value, in the structure of that.
    """

    value_structure: Any

    def __hash__(self) -> int:
        return hash((OptionalSpec, tuple(nest.flatten(self.value_structure))))

    @property
    def value_type(self) -> type:
        return Optional

    @classmethod
    def from_value(cls, value: Optional) -> OptionalSpec:
        """The description of an `Optional`. Raises `TypeError` for anything else."""
        if not isinstance(value, Optional):
            raise TypeError(f"{value!r} is no tf.data.experimental.Optional")
        return cls(value.value_structure)

    _of = from_value


Structure = TypeSpec
DatasetStructure = DatasetSpec
OptionalStructure = OptionalSpec


def TensorStructure(dtype: DTypeLike, shape: ShapeLike) -> TensorSpec:
    """The older form of `tf.TensorSpec`."""
    return TensorSpec(shape, dtype)


def SparseTensorStructure(dtype: DTypeLike, shape: ShapeLike) -> SparseTensorSpec:
    """The older form of `tf.SparseTensorSpec`."""
    return SparseTensorSpec(shape, dtype)


def TensorArrayStructure(
    dtype: DTypeLike, element_shape: ShapeLike, dynamic_size: bool, infer_shape: bool
) -> TensorArraySpec:
    """The older form of `tf.TensorArraySpec`."""
    return TensorArraySpec(element_shape, dtype, dynamic_size, infer_shape)


def kinds_of(structure: Nested) -> tuple[Any, Any]:
    """Kinds and shapes of the components that descriptions tell."""
    pairs = list(map(_kind_and_shape, nest.flatten(structure)))
    kinds, shapes = ([pair[index] for pair in pairs] for index in range(2))
    return nest.pack_sequence_as(structure, kinds), nest.pack_sequence_as(structure, shapes)


def _kind_and_shape(spec: Any) -> tuple[Any, Any]:
    if isinstance(spec, SparseTensorSpec):
        return SparseKind(spec.dtype), spec.shape
    if isinstance(spec, DatasetSpec):
        return DatasetKind(*kinds_of(spec.element_spec)), spec.dataset_shape
    if isinstance(spec, OptionalSpec):
        return OptionalKind(*kinds_of(spec.value_structure)), TensorShape([])
    if isinstance(spec, TensorArraySpec):
        return TensorArrayKind(spec), TensorShape([])
    if not isinstance(spec, TensorSpec):
        raise TypeError(f"{spec!r} describes nothing that an element may have")
    return spec.dtype, spec.shape


@dataclass(frozen=True)
class OptionalKind(VariantKind):
    """A component that is an `Optional`: kinds and shapes of its value."""

    dtype: Any
    shape: Any

    @property
    def value_class(self) -> type:
        return Optional

    def unwrapped(self, carrier: Tensor, shape: TensorShape) -> Optional:
        return Optional(carrier, self.dtype, self.shape)

    def spec(self, shape: TensorShape) -> OptionalSpec:
        return OptionalSpec(structure_of(self.dtype, self.shape))


class Optional:
    """A value that may be missing: made by `from_value`, `none_from_structure` and `get_next_as_optional`."""

    def __init__(self, variant: Tensor, kinds: Nested, shapes: Nested) -> None:
        self._variant_tensor = variant
        self._kinds = kinds
        self._shapes = shapes

    @property
    def _kind(self) -> OptionalKind:
        return OptionalKind(self._kinds, self._shapes)

    @staticmethod
    def from_value(value: Nested) -> Optional:
        """An optional that has a value: a tensor or a nested structure."""
        element = as_element(value)
        leaves = nest.flatten(element)
        variant = add_op(optional_ops.FROM_VALUE, [carrier_of(leaf) for leaf in leaves])
        shapes = nest.pack_sequence_as(element, [shape_of(leaf) for leaf in leaves])
        return Optional(variant, nest.map_structure(kind_of, element), shapes)

    @staticmethod
    def none_from_structure(value_structure: Nested) -> Optional:
        """An optional without a value, of values that have a structure: of `tf.TensorSpec` and the like."""
        return Optional(add_op(optional_ops.NONE), *kinds_of(value_structure))

    def has_value(self, name: str | None = None) -> Tensor:
        """Whether there is a value: a bool scalar."""
        return add_op(optional_ops.HAS_VALUE, self._variant_tensor, name=name)

    def get_value(self, name: str | None = None) -> Any:
        """The value.

        Raises:
            InvalidArgumentError: While running: there is none.
        """
        attrs = carriers_in_attrs(self._kinds, self._shapes)
        components = add_op(optional_ops.GET_VALUE, self._variant_tensor, name=name, **attrs)
        return unwrapped(self._kinds, self._shapes, components)

    @property
    def value_structure(self) -> Any:
        """The structure of its value."""
        return structure_of(self._kinds, self._shapes)


def get_next_as_optional(iterator: Any) -> Optional:
    """The next element of an iterator, or an `Optional` without a value at its end."""
    variant = add_op(optional_ops.GET_NEXT, iterator.handle, iterator._sources())
    return Optional(variant, iterator._kinds, iterator.output_shapes)


def get_structure(dataset_or_iterator: Any) -> Any:
    """What each component of a dataset's or iterator's elements is, in their structure.

    Raises:
        TypeError: It is neither dataset nor iterator.
    """
    if not hasattr(dataset_or_iterator, "output_shapes"):
        raise TypeError(f"get_structure takes a dataset or an iterator, not {dataset_or_iterator!r}")
    return dataset_or_iterator.element_spec
