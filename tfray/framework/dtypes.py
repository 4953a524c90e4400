"""Element types of tensors, each with the NumPy type that stores it."""

from __future__ import annotations

from typing import Any, Final, Protocol, cast

import ml_dtypes
import numpy as np


class DType:
    """The type of a tensor's elements. There is one object per type: compare with ``is`` or ``==``."""

    __slots__ = ("_numpy", "kind", "name", "size")

    def __init__(self, name: str, numpy_type: Any, kind: str) -> None:
        self.name: Final = name
        self._numpy = np.dtype(numpy_type)
        self.kind: Final = kind
        self.size: Final = self._numpy.itemsize

    @property
    def as_numpy_dtype(self) -> Any:
        """The NumPy scalar type, ``object`` for strings."""
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

    def __repr__(self) -> str:
        return f"tf.{self.name}"

    def __reduce__(self) -> tuple[Any, ...]:
        return as_dtype, (self.name,)


class HasNumpyDType(Protocol):
    """An object that NumPy takes for a dtype because it has one, such as a scalar or an array."""

    @property
    def dtype(self) -> np.dtype[Any]: ...


DTypeLike = DType | str | type | np.dtype[Any] | HasNumpyDType
"""What `as_dtype` takes."""

float16 = DType("float16", np.float16, "float")
bfloat16 = DType("bfloat16", ml_dtypes.bfloat16, "float")
float32 = DType("float32", np.float32, "float")
float64 = DType("float64", np.float64, "float")
int8 = DType("int8", np.int8, "int")
int16 = DType("int16", np.int16, "int")
int32 = DType("int32", np.int32, "int")
int64 = DType("int64", np.int64, "int")
uint8 = DType("uint8", np.uint8, "uint")
uint16 = DType("uint16", np.uint16, "uint")
uint32 = DType("uint32", np.uint32, "uint")
uint64 = DType("uint64", np.uint64, "uint")
complex64 = DType("complex64", np.complex64, "complex")
complex128 = DType("complex128", np.complex128, "complex")
bool_ = DType("bool", np.bool_, "bool")
string = DType("string", object, "string")
resource = DType("resource", object, "resource")
variant = DType("variant", object, "variant")
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
    resource,
    variant,
)
FLOATS: Final = (float16, bfloat16, float32, float64)
COMPLEX: Final = (complex64, complex128)
INTEGERS: Final = (int8, int16, int32, int64, uint8, uint16, uint32, uint64)
INDICES: Final = (int32, int64)
REAL: Final = FLOATS + INTEGERS
INEXACT: Final = FLOATS + COMPLEX
NUMERIC: Final = REAL + COMPLEX
VALUES: Final = (*NUMERIC, bool_, string)

_BY_NAME: Final = {dtype.name: dtype for dtype in ALL} | {
    "half": float16,
    "float": float32,
    "double": float64,
    "str": string,
    "object": string,
    "bytes": string,
}
_BY_NUMPY: Final = {dtype.numpy: dtype for dtype in ALL if dtype.kind not in ("string", "resource", "variant")}
_BY_PYTHON: Final = {float: float32, int: int32, bool: bool_, complex: complex128, str: string, bytes: string}


def as_dtype(value: DTypeLike) -> DType:
    """Return the `DType` that `value` names.

    Args:
        value: A `DType`, its name, a NumPy dtype or scalar type, or ``float``, ``int``, ``bool``, ``str``.

    Raises:
        TypeError: `value` names no element type.
    """
    if isinstance(value, DType):
        return value
    if isinstance(value, str) and value in _BY_NAME:
        return _BY_NAME[value]
    if isinstance(value, type) and value in _BY_PYTHON:
        return _BY_PYTHON[value]
    try:
        numpy_dtype = np.dtype(value)
    except (TypeError, ValueError):
        raise TypeError(f"{value!r} is not an element type; known are {', '.join(_BY_NAME)}") from None
    if numpy_dtype.kind in "OSU":
        return string
    try:
        return _BY_NUMPY[numpy_dtype]
    except KeyError:
        raise TypeError(f"NumPy type {numpy_dtype} has no counterpart in tfray") from None
