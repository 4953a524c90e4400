"""What is known of a value before it exists: its kind, shape and dtype, as ``tf.TensorSpec`` and its kin tell it."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, cast

import numpy as np

from tfray.framework import nest
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import as_dtype, float32, int64
from tfray.framework.graph import Tensor
from tfray.framework.indexed_slices import IndexedSlices
from tfray.framework.sparse_tensor import SparseTensor
from tfray.framework.tensor_shape import TensorShape, broadcast_shapes
from tfray.ops.control.tensor_array_ops import TensorArray


class TypeSpec:
    """Base of the descriptions of values. They are compared by what they say, and may be keys of dictionaries."""

    @property
    def value_type(self) -> type:
        """The class of the values that are described."""
        raise NotImplementedError

    @classmethod
    def _of(cls, value: Any) -> TypeSpec:
        """The description of a value. Raises `TypeError` or `ValueError` for one of another kind."""
        raise NotImplementedError

    def component_shapes(self) -> list[TensorShape]:
        """Shapes of the tensors of which such a value consists."""
        raise NotImplementedError

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        """Whether a value, or each value that a description describes, may be one that this one describes."""
        if not isinstance(spec_or_value, TypeSpec):
            try:
                spec_or_value = self._of(spec_or_value)
            except (TypeError, ValueError):
                return False
        if type(spec_or_value) is not type(self):
            return False
        return all(_is_compatible(getattr(self, each), getattr(spec_or_value, each)) for each in self._compared())

    def most_specific_compatible_type(self, other: TypeSpec) -> TypeSpec:
        """The most exact description of what either of two describes.

        Raises:
            ValueError: They are of different kinds, or dtypes.
        """
        if type(other) is not type(self):
            raise ValueError(f"no description fits both {self} and {other}: they are of different kinds")
        found: dict[str, Any] = {}
        for name in self._compared():
            try:
                found[name] = _most_specific(getattr(self, name), getattr(other, name))
            except ValueError:
                raise ValueError(f"no description fits both {self} and {other}: {name} differs") from None
        return type(self)(**found)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(repr(getattr(self, name)) for name in self._compared())})"

    def _compared(self) -> list[str]:
        return [field.name for field in fields(self) if field.name != "name"]  # type: ignore[arg-type]

    def _normalize(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)


def _is_compatible(a: Any, b: Any) -> bool:
    """Whether two parts of descriptions are: shapes, descriptions, structures of such, or anything else."""
    if isinstance(a, (TensorShape, TypeSpec)):
        return a.is_compatible_with(b)
    if not nest.is_nested(a):
        return bool(a == b)
    return _have_one_structure(a, b) and all(map(_is_compatible, nest.flatten(a), nest.flatten(b)))


def _most_specific(a: Any, b: Any) -> Any:
    """The most exact part of a description that holds where either does. Raises `ValueError`."""
    if isinstance(a, TensorShape):
        return a.most_specific_compatible_shape(b)
    if isinstance(a, TypeSpec):
        return a.most_specific_compatible_type(b)
    if nest.is_nested(a) and _have_one_structure(a, b):
        return nest.pack_sequence_as(a, list(map(_most_specific, nest.flatten(a), nest.flatten(b))))
    if a != b:
        raise ValueError(f"{a!r} and {b!r} differ")
    return a


def _have_one_structure(a: Any, b: Any) -> bool:
    try:
        nest.assert_same_structure(a, b)
    except ValueError:
        return False
    return True


class BatchableTypeSpec(TypeSpec):
    """Base of the descriptions of values of which several make one batch, and which are rows of a batch."""

    def _batch(self, batch_size: int | None) -> TypeSpec:
        """The description of a batch of `batch_size` such values; None if it may have any number."""
        raise NotImplementedError

    def _unbatch(self) -> TypeSpec:
        """The description of each row of such a value. Raises `ValueError` for a scalar, which has none."""
        raise NotImplementedError


class ShapedTypeSpec(BatchableTypeSpec):
    """Base of the descriptions that tell a shape, in ``shape_field``: a batch has one dimension more, in front."""

    _shape_field: ClassVar[str] = "shape"

    def __init_subclass__(cls, shape_field: str | None = None) -> None:
        if shape_field is not None:
            cls._shape_field = shape_field

    def _batch(self, batch_size: int | None) -> TypeSpec:
        return self._with_shape(TensorShape([batch_size]).concatenate(getattr(self, self._shape_field)))

    def _unbatch(self) -> TypeSpec:
        shape = getattr(self, self._shape_field)
        if shape.rank == 0:
            kind = self.value_type.__name__.lower()
            raise ValueError(f"Unbatching a {kind} is only supported for rank >= 1: this is a single one, {self}")
        return self._with_shape(shape[1:])

    def _with_shape(self, shape: TensorShape) -> TypeSpec:
        made: TypeSpec = replace(cast("Any", self), **{self._shape_field: shape})
        return made


@dataclass(frozen=True, repr=False)
class TensorSpec(ShapedTypeSpec):
    """Describes a tensor.

    Args:
        shape: Its shape, as far as it is known.
        dtype: Its dtype.
        name: A name for it, or None.
    """

    shape: Any
    dtype: Any = float32
    name: str | None = None

    def __post_init__(self) -> None:
        self._normalize(shape=TensorShape(self.shape), dtype=as_dtype(self.dtype))

    @property
    def value_type(self) -> type:
        return Tensor

    def component_shapes(self) -> list[TensorShape]:
        return [self.shape]

    def _with_shape(self, shape: TensorShape) -> TensorSpec:
        return TensorSpec(shape, self.dtype)

    @classmethod
    def from_spec(cls, spec: Any, name: str | None = None) -> TensorSpec:
        """The description of what has the shape, dtype and name of `spec`."""
        return cls(spec.shape, spec.dtype, name or spec.name)

    @classmethod
    def from_tensor(cls, tensor: Any, name: str | None = None) -> TensorSpec:
        """The description of a tensor; it has the name of the tensor's operation when `name` is None."""
        return cls(tensor.shape, tensor.dtype, name or tensor.op.name)

    @classmethod
    def _of(cls, value: Any) -> TensorSpec:
        tensor = convert_to_tensor(value)
        return cls(tensor.shape, tensor.dtype)

    def __repr__(self) -> str:
        return f"TensorSpec(shape={self.shape}, dtype={self.dtype!r}, name={self.name!r})"

    @property
    def is_discrete(self) -> bool:
        """Whether the dtype is of integers."""
        return bool(self.dtype.is_integer)

    @property
    def is_continuous(self) -> bool:
        """Whether the dtype is of floating-point numbers."""
        return bool(self.dtype.is_floating)

    @staticmethod
    def is_bounded() -> bool:
        """Whether the elements are said to lie between two bounds."""
        return False


@dataclass(frozen=True, repr=False, eq=False)
class BoundedTensorSpec(TensorSpec):
    """Describes a tensor whose elements lie between two bounds, which are allowed.

    Args:
        shape: Its shape, as far as it is known.
        dtype: Its dtype.
        minimum: The least that an element may be: a number, or an array that broadcasts to the shape.
        maximum: The most, likewise.
        name: A name for it, or None.

    Raises:
        ValueError: A bound does not broadcast to the shape.
    """

    minimum: Any = None
    maximum: Any = None

    def __init__(self, shape: Any, dtype: Any, minimum: object, maximum: object, name: str | None = None) -> None:
        if minimum is None or maximum is None:
            raise ValueError("BoundedTensorSpec: minimum and maximum must be given")
        self._normalize(shape=shape, dtype=dtype, name=name)
        TensorSpec.__post_init__(self)
        self._normalize(minimum=self._bound("minimum", minimum), maximum=self._bound("maximum", maximum))

    def _bound(self, which: str, value: Any) -> Any:
        bound = np.array(value, self.dtype.as_numpy_dtype)
        try:
            broadcast_shapes(self.shape, TensorShape(bound.shape)).assert_is_compatible_with(self.shape)
        except ValueError as error:
            raise ValueError(f"{which} is not compatible with shape {self.shape}: {error}") from error
        bound.setflags(write=False)
        return bound

    @classmethod
    def from_spec(cls, spec: Any, name: str | None = None) -> BoundedTensorSpec:
        """The description of what has the shape, dtype and name of `spec`, with its bounds, or those of the dtype."""
        dtype = as_dtype(spec.dtype)
        bounds = getattr(spec, "minimum", dtype.min), getattr(spec, "maximum", dtype.max)
        return cls(spec.shape, dtype, *bounds, name=name or spec.name)

    @staticmethod
    def is_bounded() -> bool:
        """Whether the elements are said to lie between two bounds: they are."""
        return True

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BoundedTensorSpec):
            return NotImplemented
        alike = (self.shape.sizes, self.dtype) == (other.shape.sizes, other.dtype)
        return alike and np.allclose(self.minimum, other.minimum) and np.allclose(self.maximum, other.maximum)

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype))

    def __repr__(self) -> str:
        bounds = f"minimum={self.minimum!r}, maximum={self.maximum!r}"
        return f"BoundedTensorSpec(shape={self.shape}, dtype={self.dtype!r}, name={self.name!r}, {bounds})"


@dataclass(frozen=True, repr=False)
class SparseTensorSpec(ShapedTypeSpec):
    """Describes a `SparseTensor`.

    Args:
        shape: Its dense shape, as far as it is known.
        dtype: Dtype of its values.
    """

    shape: Any = None
    dtype: Any = float32

    def __post_init__(self) -> None:
        self._normalize(shape=TensorShape(self.shape), dtype=as_dtype(self.dtype))

    @property
    def value_type(self) -> type:
        return SparseTensor

    def component_shapes(self) -> list[TensorShape]:
        return [TensorShape([None, self.shape.rank]), TensorShape([None]), TensorShape([self.shape.rank])]

    @classmethod
    def from_value(cls, value: Any) -> SparseTensorSpec:
        """The description of a sparse tensor."""
        tensor = SparseTensor.from_value(value)
        return cls(tensor.shape, tensor.dtype)

    _of = from_value


@dataclass(frozen=True, repr=False)
class IndexedSlicesSpec(TypeSpec):
    """Describes `IndexedSlices`.

    Args:
        shape: Shape of the whole tensor, as far as it is known.
        dtype: Dtype of the values.
        indices_dtype: Dtype of the indices, int32 or int64.
        dense_shape_dtype: Dtype of the tensor that tells the whole shape; None if there is none.
        indices_shape: Shape of the indices.
    """

    shape: Any = None
    dtype: Any = float32
    indices_dtype: Any = int64
    dense_shape_dtype: Any = None
    indices_shape: Any = None

    def __post_init__(self) -> None:
        self._normalize(
            shape=TensorShape(self.shape),
            dtype=as_dtype(self.dtype),
            indices_dtype=as_dtype(self.indices_dtype),
            dense_shape_dtype=None if self.dense_shape_dtype is None else as_dtype(self.dense_shape_dtype),
            indices_shape=TensorShape(self.indices_shape).with_rank(1),
        )

    @property
    def value_type(self) -> type:
        return IndexedSlices

    def component_shapes(self) -> list[TensorShape]:
        values = self.indices_shape.concatenate(self.shape[1:])
        dense = [] if self.dense_shape_dtype is None else [TensorShape([self.shape.rank])]
        return [values, self.indices_shape, *dense]

    @classmethod
    def _of(cls, value: Any) -> IndexedSlicesSpec:
        if not isinstance(value, IndexedSlices):
            raise TypeError(f"{value!r} is no IndexedSlices")
        dense = None if value.dense_shape is None else value.dense_shape.dtype
        return cls(value.shape, value.dtype, value.indices.dtype, dense, value.indices.shape)


@dataclass(frozen=True, repr=False)
class TensorArraySpec(TypeSpec):
    """Describes a `TensorArray`.

    Args:
        element_shape: Shape of its elements, as far as it is known.
        dtype: Dtype of its elements.
        dynamic_size: Whether writes beyond its end make it grow.
        infer_shape: Whether its elements must have one shape.
    """

    element_shape: Any = None
    dtype: Any = float32
    dynamic_size: bool = False
    infer_shape: bool = True

    def __post_init__(self) -> None:
        self._normalize(element_shape=TensorShape(self.element_shape), dtype=as_dtype(self.dtype))

    @property
    def value_type(self) -> type:
        return TensorArray

    def component_shapes(self) -> list[TensorShape]:
        return [TensorShape([])]

    @classmethod
    def from_value(cls, value: TensorArray) -> TensorArraySpec:
        """The description of a `TensorArray`. Raises `TypeError` for anything else."""
        if not isinstance(value, TensorArray):
            raise TypeError(f"{value!r} is no TensorArray")
        return cls(value.element_shape, value.dtype, value.dynamic_size, value.infers_shape)

    _of = from_value
