"""Tensors as ``TensorProto`` messages, compatible with TensorFlow on the wire."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Final

import numpy as np

from tfray.errors import ArgumentError, DataLossError, InvalidArgumentError
from tfray.formats.declared_sizes import element_count
from tfray.formats.large_contents import Contents, content_of
from tfray.formats.message import Enumeration, Field, Message
from tfray.framework import dtypes
from tfray.framework.convert import make_array, quantized_type, register_holder_of_arrays
from tfray.framework.dtypes import DType, DTypeLike, as_dtype
from tfray.framework.tensor_shape import ShapeLike, TensorShape, set_proto_function

DTYPE_NUMBERS: Final = {dtype: dtype.as_datatype_enum for dtype in dtypes.ALL if dtype is not dtypes.variant}
"""The numbers of dtypes on the wire."""

TENSOR_DTYPES: Final = {
    number: dtype for dtype, number in DTYPE_NUMBERS.items() if dtype not in (dtypes.resource, dtypes.variant)
}
"""The dtypes of tensors that arrays can hold, by their numbers."""

MAX_FILL_BYTES: Final = 256 << 20
"""256 MiB. A message may hold fewer elements than its tensor, whose last one is then repeated: such a tensor may have
this size at most."""

MAX_TAIL_BYTES: Final = 4 << 20
"""4 MiB: the most if it holds several elements, and the last one is not zero. Only then does the rest take memory."""


_TYPE_NAMES: Final = (
    "INVALID FLOAT DOUBLE INT32 UINT8 INT16 INT8 STRING COMPLEX64 INT64 BOOL QINT8 QUINT8 QINT32 BFLOAT16 QINT16 "
    "QUINT16 UINT16 COMPLEX128 HALF RESOURCE VARIANT UINT32 UINT64 FLOAT8_E5M2 FLOAT8_E4M3FN FLOAT8_E4M3FNUZ "
    "FLOAT8_E4M3B11FNUZ FLOAT8_E5M2FNUZ INT4 UINT4 INT2 UINT2 FLOAT4_E2M1FN"
)

REFERENCE: Final = 100
"""Added to the number of a dtype, it makes that of a reference to a variable of this dtype."""

DATA_TYPE: Final = Enumeration(
    __name__,
    "DataType",
    {f"DT_{name}": number for number, name in enumerate(_TYPE_NAMES.split())}
    | {f"DT_{name}_REF": number + REFERENCE for number, name in enumerate(_TYPE_NAMES.split()) if number},
)


def type_name(number: int) -> str:
    """The name that messages have for the number of a dtype, such as ``DT_FLOAT``."""
    return f"DT_{_TYPE_NAMES.split()[number]}"


class TensorShapeDim(Message):
    """One dimension: its ``size``, -1 for unknown, and ``name``."""

    FIELDS = (Field(1, "size", "int64"), Field(2, "name", "string"))


class TensorShapeProto(Message):
    """A shape: ``dim``, or ``unknown_rank``."""

    FIELDS = (Field(2, "dim", TensorShapeDim, repeated=True), Field(3, "unknown_rank", "bool"))

    Dim = TensorShapeDim


def _shape_proto(shape: TensorShape) -> TensorShapeProto:
    if shape.rank is None:
        return TensorShapeProto(unknown_rank=True)
    proto = TensorShapeProto(dim=[TensorShapeDim(size=-1 if size is None else size) for size in shape.sizes])
    proto.SetInParent()
    return proto


set_proto_function(_shape_proto)


class DtypeAndShape(Message):
    """The ``dtype`` and ``shape`` of what a resource holds."""

    FIELDS = (Field(1, "dtype", DATA_TYPE), Field(2, "shape", TensorShapeProto))


class ResourceHandleProto(Message):
    """The place of a resource: ``device``, ``container`` and ``name``."""

    DtypeAndShape: ClassVar[type[Message]] = DtypeAndShape

    FIELDS = (
        Field(1, "device", "string"),
        Field(2, "container", "string"),
        Field(3, "name", "string"),
        Field(4, "hash_code", "uint64"),
        Field(5, "maybe_type_name", "string"),
        Field(6, "dtypes_and_shapes", DtypeAndShape, repeated=True),
    )


class VariantTensorDataProto(Message):
    """A value of another form: ``type_name``, its own bytes in ``metadata``, and ``tensors`` that it holds."""

    FIELDS = (
        Field(1, "type_name", "string"),
        Field(2, "metadata", "bytes"),
        Field(3, "tensors", "TensorProto", repeated=True),
    )


class TensorProto(Message):
    """A tensor: ``dtype``, ``tensor_shape``, and the elements in ``tensor_content`` or in a list for their dtype."""

    FIELDS = (
        Field(1, "dtype", DATA_TYPE),
        Field(2, "tensor_shape", TensorShapeProto),
        Field(3, "version_number", "int32"),
        Field(4, "tensor_content", "bytes", apart=True),
        Field(5, "float_val", "float", repeated=True),
        Field(6, "double_val", "double", repeated=True),
        Field(7, "int_val", "int32", repeated=True),
        Field(8, "string_val", "bytes", repeated=True),
        Field(9, "scomplex_val", "float", repeated=True),
        Field(10, "int64_val", "int64", repeated=True),
        Field(11, "bool_val", "bool", repeated=True),
        Field(12, "dcomplex_val", "double", repeated=True),
        Field(13, "half_val", "int32", repeated=True),
        Field(14, "resource_handle_val", ResourceHandleProto, repeated=True),
        Field(15, "variant_val", VariantTensorDataProto, repeated=True),
        Field(16, "uint32_val", "uint32", repeated=True),
        Field(17, "uint64_val", "uint64", repeated=True),
        Field(18, "float8_val", "bytes"),
    )


_LISTS: Final = {
    "float32": "float_val",
    "float64": "double_val",
    "string": "string_val",
    "complex64": "scomplex_val",
    "complex128": "dcomplex_val",
    "int64": "int64_val",
    "bool": "bool_val",
    "float16": "half_val",
    "bfloat16": "half_val",
    "uint32": "uint32_val",
    "uint64": "uint64_val",
}


_IN_LISTS: Final = ("bool", "float16", "bfloat16", "complex64", "complex128")
"""Dtypes of which TensorFlow writes all elements to a list; those of others, where there are several, as bytes."""


def list_field(dtype: DType) -> Field:
    """The field of a message whose list holds elements of a dtype."""
    name = _LISTS.get(dtype.name, "int_val")
    return next(field for field in TensorProto.FIELDS if field.name == name)


def make_tensor_proto(
    values: Any,
    dtype: DTypeLike | None = None,
    shape: ShapeLike = None,
    verify_shape: bool = False,
    allow_broadcast: bool = False,
) -> TensorProto:
    """A message that holds a tensor.

    Args:
        values: A number, string, array, or nested lists of them; a message is returned as it is.
        dtype: Dtype of the tensor; that of `values` when None.
        shape: Shape of the tensor. Where it has more elements than `values`, the last one stands for the others.
        verify_shape: Refuse values of another shape than `shape`.
        allow_broadcast: Whether one value may stand for all elements, and other values may not be fewer than these.

    Raises:
        ValueError: `verify_shape` and `allow_broadcast` are both set.
        InvalidArgumentError: The values do not fit the dtype, or are more than the shape has.
        ArgumentError: They have another shape than `shape`, and `verify_shape` is set.
    """
    if isinstance(values, TensorProto):
        return values
    if allow_broadcast and verify_shape:
        raise ValueError("allow_broadcast and verify_shape are not both allowed.")
    wanted = None if dtype is None else as_dtype(dtype)
    array = make_array(values, wanted)
    sizes = tuple(array.shape) if shape is None else TensorShape(shape).whole()
    if sizes is None:
        raise InvalidArgumentError(f"a message needs a shape that is known, got {shape}")
    is_too_short = allow_broadcast and array.shape not in ((), (1,)) and array.size != math.prod(sizes)
    if is_too_short or (verify_shape and array.shape != sizes):
        raise ArgumentError(f"Expected Tensor's shape: {sizes}, got {array.shape}.")
    if array.size > math.prod(sizes):
        raise InvalidArgumentError(
            f"Too many elements provided. Needed at most {math.prod(sizes)}, but received {array.size}"
        )
    dtype = quantized_type(values, wanted) or as_dtype(array.dtype)
    if array.size > 1 and array.size == math.prod(sizes) and dtype.name not in _IN_LISTS:
        return _message(array, dtype, sizes)
    return _listing(array, dtype, sizes)


def tensor_message(array: np.ndarray[Any, Any]) -> TensorProto:
    """A message that holds an array, with all its bytes as they are."""
    return _message(array, as_dtype(array.dtype), array.shape)


def constant_message(value: Any, contents: Contents | None) -> TensorProto:
    """A message that holds a constant: a single element in a list, as TensorFlow has it; a large one by a mark.

    Raises:
        InvalidArgumentError: `value` makes no tensor.
    """
    array = make_array(value)
    dtype = quantized_type(value, None) or as_dtype(array.dtype)
    if array.size == 1 or (contents is None and dtype.name in _IN_LISTS):
        return _listing(array, dtype, array.shape)
    return _message(array, dtype, array.shape, contents)


def _empty(dtype: DType, shape: Sequence[int]) -> TensorProto:
    proto = TensorProto(dtype=int(dtype))
    proto.tensor_shape.SetInParent()
    proto.tensor_shape.dim.extend([TensorShapeDim(size=size) for size in shape])
    return proto


def _message(
    array: np.ndarray[Any, Any], dtype: DType, shape: Sequence[int], contents: Contents | None = None
) -> TensorProto:
    proto = _empty(dtype, shape)
    if array.dtype == object:
        proto.string_val.extend(array.reshape(-1).tolist())
    else:
        proto.tensor_content = array.tobytes() if contents is None else contents.array(array)
    return proto


def _listing(array: np.ndarray[Any, Any], dtype: DType, shape: Sequence[int]) -> TensorProto:
    """A message that has its elements in the list for their dtype."""
    proto = _empty(dtype, shape)
    getattr(proto, list_field(dtype).name).extend(_listed(array))
    return proto


def _listed(array: np.ndarray[Any, Any]) -> list[Any]:
    """The elements as the list of a message has them: numbers of 16 bits by their bits, complex ones as two."""
    flat = array.reshape(-1)
    if flat.dtype.name in ("float16", "bfloat16"):
        flat = flat.view(np.uint16)
    elif flat.dtype.kind == "c":
        flat = flat.view(flat.real.dtype)
    items: list[Any] = flat.tolist()
    return items


def make_ndarray(tensor: TensorProto | np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array that a message holds, which may be written to.

    Args:
        tensor: The message; or an array, for that is what ``op.get_attr("value")`` gives.

    Raises:
        DataLossError: The message is broken, or its tensor too large for what it holds; see `held_array`.
    """
    array = held_array(tensor)
    return array if array.flags.writeable else array.copy()


register_holder_of_arrays(TensorProto, make_ndarray)


def held_array(tensor: TensorProto | np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """As `make_ndarray`, without copies: the array may be the message's own bytes, and then cannot be written to.

    A message may hold fewer elements than its shape has: the last one stands for the rest. Such a tensor has at most
    `MAX_FILL_BYTES` here, where TensorFlow knows no limit: a message of 18 bytes could ask for all memory.

    Raises:
        DataLossError: The message is broken, or its tensor too large for what it holds.
    """
    if isinstance(tensor, np.ndarray):
        return tensor
    dtype = next((dtype for dtype, number in DTYPE_NUMBERS.items() if number == tensor.dtype), None)
    if dtype is None or dtype is dtypes.resource:
        raise DataLossError(f"dtype {tensor.dtype} is not known")
    shape = [dim.size for dim in tensor.tensor_shape.dim]
    try:
        count = element_count(shape, dtype.size)
    except ValueError as error:
        raise DataLossError(f"{shape} is not the shape of a tensor: {error}") from error
    if tensor.tensor_shape.unknown_rank:
        raise DataLossError("the shape of the tensor is not known")
    content = content_of(tensor.tensor_content)
    if len(content):
        if dtype is dtypes.string or len(content) != count * dtype.size:
            raise DataLossError(f"{len(content)} bytes do not make a {dtype.name} tensor of shape {shape}")
        return np.frombuffer(content, dtype.numpy).reshape(shape)
    items = _items(dtype, getattr(tensor, _LISTS.get(dtype.name, "int_val"))[:])
    if not count and len(items) == 1:  # TensorFlow fills what has no elements with one, too
        items = items[:0]
    if len(items) > count or (count and not len(items) and dtype is dtypes.string):
        raise DataLossError(f"{len(items)} elements do not make a tensor of shape {shape}")
    if len(items) < count:  # the last one stands for the rest
        if count * items.itemsize > MAX_FILL_BYTES:
            raise DataLossError(
                f"a message with {len(items)} elements declares shape {shape}, of {count * items.itemsize} bytes: one "
                f"that is filled with its last element may have {MAX_FILL_BYTES}"
            )
        return _filled(items, count).reshape(shape)
    return items.reshape(shape)


def _filled(items: np.ndarray[Any, Any], count: int) -> np.ndarray[Any, Any]:
    """`count` elements, of which the last of `items` stands for those that are not there.

    It takes no memory that the message does not: large ones of one value repeat it in place, and zeros are pages that
    nobody has written to.
    """
    size = count * items.itemsize
    last = items[-1] if len(items) else np.zeros((), items.dtype)
    if len(items) <= 1 and size > MAX_TAIL_BYTES >> 6:
        return np.broadcast_to(items if len(items) else np.zeros(1, items.dtype), (count,))
    if not items.dtype.hasobject and not last.tobytes().strip(b"\0"):
        filled = np.zeros(count, items.dtype)
    elif size <= MAX_TAIL_BYTES:
        filled = np.empty(count, items.dtype)
        filled[len(items) :] = last
    else:
        raise DataLossError(
            f"a message with {len(items)} different elements declares {size} bytes: one that is filled with its last "
            f"element may have {MAX_TAIL_BYTES}, unless that is zero, or the only one"
        )
    filled[: len(items)] = items
    return filled


def _items(dtype: DType, values: list[Any]) -> np.ndarray[Any, Any]:
    if dtype.name in ("float16", "bfloat16"):
        return np.array(values, np.int64).astype(np.uint16).view(dtype.numpy)
    if dtype.is_complex:
        if len(values) % 2:
            raise DataLossError("half of a complex number is missing")
        return np.array(values, dtype.real_dtype.numpy).view(dtype.numpy)
    array = np.empty(len(values), dtype.numpy)
    array[:] = values if dtype is dtypes.string or dtype.is_floating else np.array(values).astype(dtype.numpy)
    return array
