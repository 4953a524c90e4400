"""Values that may be missing, as the end of an iterator is: ``tf.data.experimental.Optional``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tfray.framework import nest
from tfray.framework.convert import add_op
from tfray.framework.dtypes import DType, as_dtype
from tfray.framework.graph import Tensor
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import Structure
from tfray.library.input.dataset_structure import SparseKind, as_element, carrier_of, carriers_of, kind_of, unwrapped
from tfray.ops.dataflow import optional_ops


@dataclass(frozen=True)
class TensorStructure:
    """What a component is: a tensor of a dtype and a static shape."""

    dtype: DType
    shape: TensorShape

    def __init__(self, dtype: Any, shape: Any = None) -> None:
        object.__setattr__(self, "dtype", as_dtype(dtype))
        object.__setattr__(self, "shape", TensorShape(shape))


class SparseTensorStructure(TensorStructure):
    """What a component is: a sparse tensor of a dtype and a static shape."""


@dataclass(frozen=True)
class DatasetStructure:
    """What a component is: a dataset whose elements have a structure."""

    element_structure: Any


@dataclass(frozen=True)
class OptionalStructure:
    """What a component is: an `Optional` of values that have a structure."""

    value_structure: Any


def structure_of(kinds: Structure, shapes: Structure) -> Any:
    """A structure for each component of an element."""

    def one(kind: Any, shape: Any) -> Any:
        if isinstance(kind, SparseKind):
            return SparseTensorStructure(kind.dtype, shape)
        if not isinstance(kind, DType):
            return DatasetStructure(structure_of(kind.dtype, kind.shape))
        return TensorStructure(kind, shape)

    return nest.pack_sequence_as(kinds, list(map(one, nest.flatten(kinds), nest.flatten(shapes))))


def kinds_of(structure: Structure) -> tuple[Any, Any]:
    """Kinds and shapes of the components that a structure describes."""
    leaves = nest.flatten(structure)
    for leaf in leaves:
        if not isinstance(leaf, TensorStructure):
            raise TypeError(f"{leaf!r} is no TensorStructure or SparseTensorStructure")
    kinds = [SparseKind(leaf.dtype) if isinstance(leaf, SparseTensorStructure) else leaf.dtype for leaf in leaves]
    shapes = [leaf.shape for leaf in leaves]
    return nest.pack_sequence_as(structure, kinds), nest.pack_sequence_as(structure, shapes)


class Optional:
    """A value that may be missing: made by `from_value`, `none_from_structure` and `get_next_as_optional`."""

    def __init__(self, variant: Tensor, kinds: Structure, shapes: Structure) -> None:
        self._variant = variant
        self._kinds = kinds
        self._shapes = shapes

    @staticmethod
    def from_value(value: Structure) -> Optional:
        """An optional that has a value: a tensor or a nested structure."""
        element = as_element(value)
        leaves = nest.flatten(element)
        variant = add_op(optional_ops.FROM_VALUE, [carrier_of(leaf) for leaf in leaves])
        shapes = nest.pack_sequence_as(element, [leaf.shape for leaf in leaves])
        return Optional(variant, nest.map_structure(kind_of, element), shapes)

    @staticmethod
    def none_from_structure(value_structure: Structure) -> Optional:
        """An optional without a value, of values that have a structure: of `TensorStructure` and the like."""
        return Optional(add_op(optional_ops.NONE), *kinds_of(value_structure))

    def has_value(self, name: str | None = None) -> Tensor:
        """Whether there is a value: a bool scalar."""
        return add_op(optional_ops.HAS_VALUE, self._variant, name=name)

    def get_value(self, name: str | None = None) -> Any:
        """The value.

        Raises:
            InvalidArgumentError: While running: there is none.
        """
        carriers = carriers_of(self._kinds, self._shapes)
        attrs: dict[str, Any] = {
            "output_types": [dtype for dtype, _ in carriers],
            "output_shapes": [shape for _, shape in carriers],
        }
        components = add_op(optional_ops.GET_VALUE, self._variant, name=name, **attrs)
        return unwrapped(self._kinds, self._shapes, components)

    @property
    def value_structure(self) -> Any:
        """The structure of its value."""
        return structure_of(self._kinds, self._shapes)


def get_next_as_optional(iterator: Any) -> Optional:
    """The next element of an iterator, or an `Optional` without a value at its end."""
    source = [] if iterator._source is None else [iterator._source]
    variant = add_op(optional_ops.GET_NEXT, iterator._handle, source)
    return Optional(variant, iterator._kinds, iterator.output_shapes)


def get_structure(dataset_or_iterator: Any) -> Any:
    """What each component of a dataset's or iterator's elements is, in their structure.

    Raises:
        TypeError: It is neither dataset nor iterator.
    """
    if not hasattr(dataset_or_iterator, "output_shapes"):
        raise TypeError(f"get_structure takes a dataset or an iterator, not {dataset_or_iterator!r}")
    return structure_of(dataset_or_iterator._kinds, dataset_or_iterator.output_shapes)
