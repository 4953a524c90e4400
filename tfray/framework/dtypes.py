"""Element types of tensors, each with the NumPy type that stores it."""

from __future__ import annotations

from typing import Any, Final, Protocol, cast

import ml_dtypes
import numpy as np


class DType:
    """The type of a tensor's elements. There is one object per type: compare with ``is`` or ``==``.

    ``DType(type_enum)`` is the type of that number in TensorFlow's messages, and a `TypeError` where there is none.

    Attributes:
        name: Its name.
        kind: ``float``, ``int``, ``uint``, ``complex``, ``bool``, ``string``, ``quantized``, ``resource`` or
            ``variant``.
        as_datatype_enum: Its number in TensorFlow's messages.
        size: Bytes of one element.
    """

    __slots__ = ("_numpy", "as_datatype_enum", "kind", "name", "size")

    name: str
    kind: str
    as_datatype_enum: int
    size: int
    _numpy: np.dtype[Any]

    def __new__(cls, type_enum: int) -> DType:
        """The type of that number."""
        return as_dtype(int(type_enum))

    @property
    def as_numpy_dtype(self) -> Any:
        """The NumPy scalar type, ``object`` for strings; for quantized types a NumPy dtype with one named field.

        Arrays of quantized tensors have plain integers, as in TensorFlow: `numpy`. An array with the named field, by
        which a quantized type differs from the integers, may be fed, and makes a constant of that type.
        """
        if self.is_quantized:
            return np.dtype([(self.name, self._numpy)])
        return self._numpy.type if self.kind != "string" else object

    @property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy dtype that stores elements of this type."""
        return self._numpy

    @property
    def base_dtype(self) -> DType:
        """This type: there are no reference types in tfray (kept for TensorFlow 1 programs)."""
        return self

    @property
    def _is_ref_dtype(self) -> bool:
        return False

    @property
    def _as_ref(self) -> DType:
        return self

    @property
    def real_dtype(self) -> DType:
        """The type of the real part: ``float32`` for ``complex64``."""
        return {"complex64": float32, "complex128": float64}.get(self.name, self)

    @property
    def is_floating(self) -> bool:
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        return self.kind in ("int", "uint")

    @property
    def is_unsigned(self) -> bool:
        return self.kind == "uint"

    @property
    def is_bool(self) -> bool:
        return self.kind == "bool"

    @property
    def is_complex(self) -> bool:
        return self.kind == "complex"

    @property
    def is_quantized(self) -> bool:
        return self.kind == "quantized"

    @property
    def is_numpy_compatible(self) -> bool:
        """Whether NumPy has elements of this type: not of resources and variants."""
        return self.kind not in ("resource", "variant")

    @property
    def is_differentiable(self) -> bool:
        """Whether gradients flow through values of this type."""
        return self.kind in ("float", "complex")

    @property
    def min(self) -> Any:
        """Least finite value. Raises `TypeError` for bool, complex, string and resource."""
        return self._limits().min

    @property
    def max(self) -> Any:
        """Greatest finite value. Raises `TypeError` for bool, complex, string and resource."""
        return self._limits().max

    @property
    def limits(self) -> tuple[Any, Any]:
        """Least and greatest intensity of an image of this type, negative ones clipped.

        Raises:
            ValueError: Images do not have this type.
        """
        if self.kind in ("int", "uint"):
            return 0, self.max
        if self.is_bool or self in (float32, float64):
            return 0, 1
        raise ValueError(f"{self.name} is not a type of images")

    def _limits(self) -> Any:
        if self.is_floating:
            return ml_dtypes.finfo(self._numpy)  # type: ignore[no-untyped-call]
        if self.is_integer:
            return np.iinfo(self._numpy)
        raise TypeError(f"{self.name} has no least and greatest value")

    def is_compatible_with(self, other: DTypeLike) -> bool:
        """Whether a tensor of `other` can stand where this type is expected."""
        return self is as_dtype(other)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DType):
            return self is other
        try:
            return self is as_dtype(cast("DTypeLike", other))
        except TypeError:
            return False

    def __hash__(self) -> int:
        return hash(self.name)

    def __int__(self) -> int:
        return self.as_datatype_enum

    def __repr__(self) -> str:
        return f"tf.{self.name}"

    def __str__(self) -> str:
        return f"<dtype: '{self.name}'>"

    def __reduce__(self) -> tuple[Any, ...]:
        return as_dtype, (self.name,)


class HasNumpyDType(Protocol):
    """An object that NumPy takes for a dtype because it has one, such as a scalar or an array."""

    @property
    def dtype(self) -> np.dtype[Any]: ...


def _new_type(name: str, numpy_type: Any, kind: str, number: int) -> DType:
    dtype = object.__new__(DType)
    dtype.name, dtype.kind, dtype.as_datatype_enum = name, kind, number
    dtype._numpy = np.dtype(numpy_type)  # what stores its elements
    dtype.size = dtype._numpy.itemsize
    return dtype


DTypeLike = DType | str | int | type | np.dtype[Any] | HasNumpyDType
"""What `as_dtype` takes."""

float16 = _new_type("float16", np.float16, "float", 19)
bfloat16 = _new_type("bfloat16", ml_dtypes.bfloat16, "float", 14)
float32 = _new_type("float32", np.float32, "float", 1)
float64 = _new_type("float64", np.float64, "float", 2)
int8 = _new_type("int8", np.int8, "int", 6)
int16 = _new_type("int16", np.int16, "int", 5)
int32 = _new_type("int32", np.int32, "int", 3)
int64 = _new_type("int64", np.int64, "int", 9)
uint8 = _new_type("uint8", np.uint8, "uint", 4)
uint16 = _new_type("uint16", np.uint16, "uint", 17)
uint32 = _new_type("uint32", np.uint32, "uint", 22)
uint64 = _new_type("uint64", np.uint64, "uint", 23)
complex64 = _new_type("complex64", np.complex64, "complex", 8)
complex128 = _new_type("complex128", np.complex128, "complex", 18)
bool_ = _new_type("bool", np.bool_, "bool", 10)
string = _new_type("string", object, "string", 7)
qint8 = _new_type("qint8", np.int8, "quantized", 11)
quint8 = _new_type("quint8", np.uint8, "quantized", 12)
qint16 = _new_type("qint16", np.int16, "quantized", 15)
quint16 = _new_type("quint16", np.uint16, "quantized", 16)
qint32 = _new_type("qint32", np.int32, "quantized", 13)
resource = _new_type("resource", object, "resource", 20)
variant = _new_type("variant", object, "variant", 21)
"""Values that are no arrays: lists of tensors, which flow through the graph like any other value."""

ALL: Final = (
    float16,
    bfloat16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
    complex64,
    complex128,
    bool_,
    string,
    qint8,
    quint8,
    qint16,
    quint16,
    qint32,
    resource,
    variant,
)
QUANTIZED: Final = (qint8, quint8, qint16, quint16, qint32)
FLOATS: Final = (float16, bfloat16, float32, float64)
COMPLEX: Final = (complex64, complex128)
INTEGERS: Final = (int8, int16, int32, int64, uint8, uint16, uint32, uint64)
INDICES: Final = (int32, int64)
REAL: Final = FLOATS + INTEGERS
INEXACT: Final = FLOATS + COMPLEX
NUMERIC: Final = REAL + COMPLEX
VALUES: Final = (*NUMERIC, bool_, string, *QUANTIZED)

QUANTIZED_DTYPES: Final = frozenset(QUANTIZED)
"""The quantized types: integers that stand for floats of a range, see `tf.quantize_v2`."""

_BY_NUMBER: Final = {dtype.as_datatype_enum: dtype for dtype in ALL}
_REFERENCE: Final = 100
"""TensorFlow's number of a type, plus this, is that of a reference to a variable's value."""

_BY_NAME: Final = {dtype.name: dtype for dtype in ALL} | {
    "half": float16,
    "float": float32,
    "double": float64,
    "str": string,
    "object": string,
    "bytes": string,
}
_BY_NUMPY: Final = {
    np.dtype(dtype.as_numpy_dtype): dtype for dtype in ALL if dtype.is_numpy_compatible and dtype is not string
}
_BY_PYTHON: Final = {float: float32, int: int32, bool: bool_, complex: complex128, str: string, bytes: string}


def name_in_c(name: str) -> str:
    """What TensorFlow's errors call the dtype of a name: ``float`` for ``float32``."""
    return {"float16": "half", "float32": "float", "float64": "double"}.get(name, name)


def as_dtype(type_value: DTypeLike) -> DType:
    """Return the `DType` that `type_value` names.

    Args:
        type_value: A `DType`, its name, its number in TensorFlow's messages, a NumPy dtype or scalar type, or
            ``float``, ``int``, ``bool``, ``str``. A type of references, such as ``"float32_ref"``, is the type itself.

    Raises:
        TypeError: `type_value` names no element type.
    """
    if isinstance(type_value, DType):
        return type_value
    if isinstance(type_value, str) and type_value.removesuffix("_ref") in _BY_NAME:
        return _BY_NAME[type_value.removesuffix("_ref")]
    if isinstance(type_value, int) and not isinstance(type_value, bool) and type_value % _REFERENCE in _BY_NUMBER:
        return _BY_NUMBER[type_value % _REFERENCE]
    if isinstance(type_value, type) and type_value in _BY_PYTHON:
        return _BY_PYTHON[type_value]
    try:
        if type_value is None:
            raise TypeError("None is no type")
        named: Any = type_value if isinstance(type_value, type) else getattr(type_value, "dtype", type_value)
        numpy_dtype = np.dtype(named)
    except (TypeError, ValueError):
        raise TypeError(f"{type_value!r} is not an element type; known are {', '.join(_BY_NAME)}") from None
    if numpy_dtype.kind in "OSU":
        return string
    try:
        return _BY_NUMPY[numpy_dtype]
    except KeyError:
        raise TypeError(f"NumPy type {numpy_dtype} has no counterpart in tfray") from None
