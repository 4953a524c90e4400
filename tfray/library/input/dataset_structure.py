"""The structure of a dataset's elements: what stands at each leaf, its static shape, and the tensor that carries it.

The *kind* of a leaf is a dtype for a tensor, and a `Kind` for anything else, which a tensor stands for on its way.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tfray.errors import ArgumentError, InvalidArgumentError
from tfray.framework import dtypes, nest
from tfray.framework.constant_value import constant_value
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import DType, as_dtype
from tfray.framework.graph import Tensor
from tfray.framework.sparse_tensor import SparseTensor, SparseTensorValue
from tfray.framework.tensor_shape import TensorShape, as_shape
from tfray.framework.type_aliases import Structure, TensorLike
from tfray.ops.arrays import array_ops
from tfray.ops.control.tensor_array_ops import TensorArray
from tfray.ops.control.type_specs import SparseTensorSpec, TensorArraySpec, TensorSpec, TypeSpec
from tfray.ops.sparse.sparse_transport_ops import deserialize_sparse, serialize_sparse


class Kind(ABC):
    """What a leaf of an element is, when it is no tensor. Frozen, and compared by its parts.

    Attributes:
        dtype: What `output_types` says of it.
    """

    dtype: Any

    @property
    @abstractmethod
    def value_class(self) -> type:
        """Its class."""

    @abstractmethod
    def carrier(self, shape: TensorShape) -> tuple[DType, TensorShape]:
        """Dtype and static shape of the tensor that stands for a leaf whose static shape is `shape`."""

    @abstractmethod
    def unwrapped(self, carrier: Tensor, shape: TensorShape) -> Any:
        """The leaf that a tensor stands for."""

    @abstractmethod
    def spec(self, shape: TensorShape) -> TypeSpec:
        """Its description."""


@dataclass(frozen=True)
class SparseKind(Kind):
    """A sparse tensor, which is passed as strings."""

    dtype: DType

    @property
    def value_class(self) -> type:
        return SparseTensor

    def carrier(self, shape: TensorShape) -> tuple[DType, TensorShape]:
        return dtypes.string, TensorShape(None)

    def unwrapped(self, carrier: Tensor, shape: TensorShape) -> SparseTensor:
        return deserialize_sparse(carrier, self.dtype, shape.rank)

    def spec(self, shape: TensorShape) -> SparseTensorSpec:
        return SparseTensorSpec(shape, self.dtype)


class VariantKind(Kind):
    """What a variant tensor stands for: a dataset, an optional, a `TensorArray`."""

    def carrier(self, shape: TensorShape) -> tuple[DType, TensorShape]:
        return dtypes.variant, shape


@dataclass(frozen=True)
class TensorArrayKind(VariantKind):
    """A `TensorArray`, as `TensorArraySpec` describes it."""

    described: TensorArraySpec

    @property
    def dtype(self) -> Any:
        return self.described.dtype

    @property
    def value_class(self) -> type:
        return TensorArray

    def unwrapped(self, carrier: Tensor, shape: TensorShape) -> TensorArray:
        one = self.described
        return TensorArray(
            one.dtype,
            flow=carrier,
            dynamic_size=one.dynamic_size,
            infer_shape=one.infer_shape,
            element_shape=one.element_shape,
        )

    def spec(self, shape: TensorShape) -> TensorArraySpec:
        return self.described


def types_of(kinds: Structure) -> Any:
    return nest.map_structure(lambda kind: kind.dtype if isinstance(kind, Kind) else kind, kinds)


def class_of(kind: Any) -> type:
    return kind.value_class if isinstance(kind, Kind) else Tensor


def kind_of(leaf: Any) -> Any:
    if isinstance(leaf, SparseTensor):
        return SparseKind(leaf.dtype)
    if isinstance(leaf, TensorArray):
        return TensorArrayKind(TensorArraySpec._of(leaf))
    return leaf._kind if hasattr(leaf, "_kind") else leaf.dtype


def shape_of(leaf: Any) -> TensorShape:
    """Static shape of a component."""
    shape: TensorShape = leaf.shape if isinstance(leaf, (Tensor, SparseTensor)) else carrier_of(leaf).shape
    return shape


def structure_of(kinds: Structure, shapes: Structure) -> Any:
    """A description of each component of an element."""
    specs = [
        kind.spec(shape) if isinstance(kind, Kind) else TensorSpec(shape, kind)
        for kind, shape in zip(nest.flatten(kinds), nest.flatten(shapes), strict=True)
    ]
    return nest.pack_sequence_as(kinds, specs)


def declared_kinds(types: Structure, classes: Structure) -> Any:
    types = nest.map_structure(as_dtype, types)
    if classes is None:
        return types
    return nest.map_structure(lambda dtype, cls: SparseKind(dtype) if cls is SparseTensor else dtype, types, classes)


def carriers_of(kinds: Structure, shapes: Structure) -> list[tuple[DType, TensorShape]]:
    """Dtype and shape of the tensor that stands for each component."""
    pairs = zip(nest.flatten(kinds), nest.flatten(shapes), strict=True)
    return [kind.carrier(shape) if isinstance(kind, Kind) else (kind, shape) for kind, shape in pairs]


def carriers_in_attrs(kinds: Structure, shapes: Structure) -> dict[str, Any]:
    """The attributes of an operation that returns the components."""
    carriers = carriers_of(kinds, shapes)
    return {"output_types": [dtype for dtype, _ in carriers], "output_shapes": [shape for _, shape in carriers]}


def carrier_of(leaf: Any) -> Tensor:
    """The tensor that stands for a component."""
    if isinstance(leaf, SparseTensor):
        return serialize_sparse(leaf)
    tensor: Tensor = leaf.flow if isinstance(leaf, TensorArray) else getattr(leaf, "_variant_tensor", leaf)
    return tensor


def unwrapped(kinds: Structure, shapes: Structure, carriers: Sequence[Tensor]) -> Any:
    """Components in the structure of an element."""

    def component(kind: Any, shape: TensorShape, carrier: Tensor) -> Any:
        return kind.unwrapped(carrier, shape) if isinstance(kind, Kind) else carrier

    values = map(component, nest.flatten(kinds), nest.flatten(shapes), carriers)
    return nest.pack_sequence_as(kinds, list(values))


def as_element(value: Any) -> Any:
    """`value` as an element: dictionaries and tuples are structure, everything else, lists too, becomes a tensor."""
    if isinstance(value, Mapping):
        return type(value)((key, as_element(item)) for key, item in value.items())  # type: ignore[call-arg]
    if isinstance(value, SparseTensorValue):  # a named tuple, and yet no structure
        return SparseTensor.from_value(value)
    if isinstance(value, tuple):
        items = [as_element(item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, (SparseTensor, TensorArray)) or hasattr(value, "_kind"):
        return value
    if isinstance(value, list) and value and all(hasattr(item, "_kind") for item in value):
        stacked = array_ops.stack([carrier_of(item) for item in value])
        return value[0]._kind.unwrapped(stacked, stacked.shape)
    return convert_to_tensor(value)


# -- shapes ----------------------------------------------------------------------------------------------


def rest_of(shape: TensorShape) -> TensorShape:
    return TensorShape(None if shape.rank is None else list(shape.sizes[1:]))


def stacked_shape(count: int | None, shape: TensorShape) -> TensorShape:
    return TensorShape(None if shape.rank is None else [count, *shape.sizes])


def static_size(size: Tensor) -> int | None:
    value = constant_value(size)
    return None if value is None else int(value)


def _vector(sizes: Any) -> list[Any]:
    """Sizes as a list. Raises `ValueError` when they are nested."""
    listed = list(sizes) if isinstance(sizes, (list, tuple, np.ndarray)) else [sizes]
    if any(isinstance(size, (list, tuple, np.ndarray)) for size in listed):
        raise ValueError(_no_vector(sizes, np.shape(sizes)))
    return listed


def _no_vector(wanted: Any, shape: Any) -> str:
    return f"Padded shape {wanted!r} must be a 1-D tensor of tf.int64 values, but its shape was {shape}."


def padded_shape(wanted: Structure, shape: TensorShape) -> tuple[Tensor, TensorShape]:
    """A padded shape as an int64 vector with -1 for sizes of the largest element, and as a static shape.

    Raises:
        ValueError: It is no vector, or elements of `shape` do not fit into it.
        TypeError: It is no integers.
    """
    if not isinstance(wanted, Tensor):
        sizes = as_shape(wanted).sizes if isinstance(wanted, TensorShape) else _vector(wanted)
        listed = [-1 if size in (None, -1) else getattr(size, "value", size) for size in sizes]
        if any(not isinstance(size, (int, np.integer)) for size in listed):
            raise TypeError(f"padded shape {wanted} must be of integers")
        static = TensorShape([None if size == -1 else int(size) for size in listed])
        tensor = convert_to_tensor(np.array(listed, np.int64))
    else:
        tensor = wanted
        if tensor.dtype is not dtypes.int64:
            raise TypeError(
                f"Padded shape {wanted!r} must be a 1-D tensor of tf.int64 values, but its element type was "
                f"{tensor.dtype.name}."
            )
        if tensor.shape.rank not in (None, 1):
            raise ValueError(_no_vector(wanted, tensor.shape))
        known = constant_value(tensor)
        static = TensorShape([None] * tensor.shape.sizes[0] if tensor.shape.rank and tensor.shape.sizes[0] else None)
        if known is not None:
            static = TensorShape([None if size < 0 else int(size) for size in known])
    if static.rank is not None and shape.rank is not None:
        pairs = list(zip(static.sizes, shape.sizes, strict=False))
        if static.rank != shape.rank or any(p is not None and s is not None and p < s for p, s in pairs):
            raise ValueError(
                f"The padded shape {static} is not compatible with the corresponding input component shape {shape}."
            )
    return tensor, static


def padding_of(value: Any, dtype: DType) -> Tensor:
    """What to pad a component with: 0, False or the empty string when None.

    Raises:
        TypeError: It is of another dtype.
        ValueError: It is no scalar.
    """
    if value is None:
        return convert_to_tensor(b"" if dtype is dtypes.string else np.zeros((), dtype.numpy), dtype)
    given = convert_to_tensor(value)
    if given.shape.rank not in (None, 0):
        raise ValueError(f"a padding value must be a scalar, not {value!r}")
    if given.dtype is not dtype:
        raise TypeError(f"padding value {value!r} is {given.dtype.name}, the component is {dtype.name}")
    return given


def count_of(value: Any, what: str) -> Tensor:
    """A number of elements as an int64 scalar.

    Raises:
        ArgumentError: It is a floating number, or of another dtype.
        ValueError: It is no scalar.
    """
    is_in_graph = isinstance(value, Tensor) or hasattr(value, "graph")  # a variable, for instance
    tensor = convert_to_tensor(value) if is_in_graph else None
    if tensor is None:
        array = np.asarray(value)
        if array.dtype.kind not in "iu":
            raise ArgumentError(f"{what} is {value!r}, expected an integer")
        tensor = convert_to_tensor(array.astype(np.int64))
    elif tensor.dtype is dtypes.int32:
        tensor = array_ops.to_int64(tensor)
    elif tensor.dtype is not dtypes.int64:
        raise ArgumentError(f"{what} is {tensor!r}, expected an int64 scalar")
    if tensor.shape.rank not in (None, 0):
        raise ValueError(f"{what} has shape {tensor.shape}, expected a scalar")
    return tensor


def flag_of(value: Any, what: str) -> Tensor:
    """Whether something is so, as a bool scalar. Raises `ArgumentError` for anything else."""
    tensor = convert_to_tensor(value)
    if tensor.dtype is not dtypes.bool_:
        raise ArgumentError(f"{what} is {value!r}, expected a bool")
    tensor.shape.assert_has_rank(0)
    return tensor


def batches_of(shapes: Structure, batch_size: TensorLike, drop_remainder: TensorLike) -> tuple[Tensor, Tensor, Any]:
    """The number of elements of a batch, whether only full ones count, and the static shapes of batches.

    Args:
        shapes: Static shapes of an element's components.
        batch_size: int64 scalar.
        drop_remainder: bool scalar.

    Raises:
        ValueError: `batch_size` is below 0, and no batch may be smaller.
    """
    size, drop = count_of(batch_size, "batch_size"), flag_of(drop_remainder, "drop_remainder")
    count = static_size(size) if static_size(drop) else None
    if count is not None and count < 0:
        raise ValueError(f"batch: batch_size is {count}, expected at least 1")
    return size, drop, nest.map_structure(lambda shape: stacked_shape(count, shape), shapes)


def have_same_kinds(first: Structure, second: Structure) -> bool:
    """Whether elements have one structure, and in it the same dtypes and classes."""
    if nest.flatten(first) != nest.flatten(second):
        return False
    try:
        nest.assert_same_structure(first, second)
    except (TypeError, ValueError):
        return False
    return True


def check_same_kinds(first: Structure, second: Structure, what: str) -> None:
    """Raise `TypeError` when elements differ in structure, dtypes or classes."""
    if not have_same_kinds(first, second):
        raise TypeError(f"{what} have different types: {types_of(first)!r} and {types_of(second)!r}")


def shapes_like(types: Structure, shapes: Structure) -> Any:
    if shapes is None:
        return nest.map_structure(lambda _: TensorShape(None), types)
    try:
        given = nest.flatten_up_to(types, shapes, check_types=False)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"output_shapes must be nested as output_types are: {error}") from error
    return nest.pack_sequence_as(types, [as_shape(shape) for shape in given])


def flat_like(types: Structure, element: Structure) -> list[Any]:
    try:
        return nest.flatten_up_to(types, element, check_types=False)
    except ValueError as error:
        raise InvalidArgumentError(
            "`generator` yielded an element that did not match the expected structure. The expected structure was "
            f"{types!r}, but the yielded element was {element!r}: {error}"
        ) from None
