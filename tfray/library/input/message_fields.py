"""Fields of protocol buffers as tensors: `tf.io.decode_proto` and `tf.io.encode_proto`.

The messages are described by data, a ``FileDescriptorSet``; nothing of it is executed.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from tfray.errors import DataLossError, InvalidArgumentError, NotFoundError
from tfray.formats import example, graph_proto
from tfray.formats.files import read_bytes
from tfray.formats.message import MessageType
from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import DType, DTypeLike, as_dtype
from tfray.framework.graph import Tensor
from tfray.framework.type_aliases import TensorLike
from tfray.ops.system.script_ops import py_func

if TYPE_CHECKING:
    from google.protobuf.descriptor import FieldDescriptor
    from google.protobuf.message import Message

Octets = bytes
"""The class, whose name is that of an argument of `decode_proto`."""

_Array = np.ndarray[Any, Any]

_LOCAL: Final = ("", "local://", b"", b"local://")
_BYTES: Final = b"bytes://"

_INT32, _INT64 = (dtypes.int32, dtypes.int64), (dtypes.int64,)
_UINT32, _UINT64 = (dtypes.uint32, dtypes.uint64), (dtypes.uint64,)
_WORDS = (dtypes.string,)
_FIELDS: Final[dict[int, tuple[str, tuple[DType, ...]]]] = {
    1: ("double", (dtypes.float64,)),
    2: ("float", (dtypes.float32, dtypes.float64)),
    3: ("int64", _INT64),
    4: ("uint64", _UINT64),
    5: ("int32", _INT32),
    6: ("fixed64", _UINT64),
    7: ("fixed32", _UINT32),
    8: ("bool", (dtypes.bool_,)),
    9: ("string", _WORDS),
    10: ("group", _WORDS),
    11: ("message", _WORDS),
    12: ("bytes", _WORDS),
    13: ("uint32", _UINT32),
    14: ("enum", (dtypes.int32,)),
    15: ("sfixed32", _INT32),
    16: ("sfixed64", _INT64),
    17: ("sint32", _INT32),
    18: ("sint64", _INT64),
}
"""Types of fields by protobuf's numbers, and the dtypes that can hold them."""


class DecodedProto(NamedTuple):
    """What `decode_proto` gives.

    Attributes:
        sizes: How many values each field has, int32 of shape ``[..., fields]``.
        values: The values of each field, ``[..., most values]``.
    """

    sizes: Tensor
    values: list[Tensor]


def decode_proto(
    bytes: TensorLike,
    message_type: str,
    field_names: Sequence[str],
    output_types: Sequence[DTypeLike],
    descriptor_source: str | Octets = "local://",
    message_format: str = "binary",
    sanitize: bool = False,
    name: str | None = None,
) -> DecodedProto:
    """Fields of messages as tensors.

    Args:
        bytes: Messages, strings of any shape ``[...]``.
        message_type: Full name of the message, with its package.
        field_names: Names of fields; full names of extensions.
        output_types: Their dtypes: int32 and int64 for signed integers, uint32 and uint64 for unsigned ones, int32 for
            enumerations, strings for messages within.
        descriptor_source: Path of a file that holds a ``FileDescriptorSet``, or ``bytes://`` and such a set itself;
            with ``local://`` the messages are those of TensorFlow, such as ``tensorflow.Example``.
        message_format: ``binary`` or ``text``.
        sanitize: Accepted for TensorFlow 1's sake.
        name: Name of the operation.

    Returns:
        Sizes and values. Fields that are not set have their default; behind the values of repeated ones are zeros.

    Raises:
        InvalidArgumentError: When it runs: there is no such message or field, or a dtype does not hold a field.
        DataLossError: When it runs: something is no such message.
    """
    types = [as_dtype(each) for each in output_types]

    def decoded(data: _Array) -> Any:
        fields = _fields(descriptor_source, message_type, field_names, types)
        found = [_parsed(descriptor_source, message_type, message_format, each) for each in np.ravel(data)]
        sizes = np.array([[_count(message, field) for field in fields] for message in found], np.int32)
        columns = [_column(found, field, dtype) for field, dtype in zip(fields, types, strict=True)]
        shaped = [each.reshape(*np.shape(data), -1) if each.size else each for each in columns]
        return [sizes.reshape(*np.shape(data), len(fields)), *shaped]

    messages = convert_to_tensor(bytes, dtypes.string)
    sizes, *values = py_func(decoded, [messages], [dtypes.int32, *types], stateful=False, name=name or "DecodeProtoV2")
    if messages.shape.rank is not None:
        sizes.set_shape([*messages.shape.as_list(), len(field_names)])
        for each in values:
            each.set_shape([*messages.shape.as_list(), None])
    return DecodedProto(sizes, values)


def encode_proto(
    sizes: TensorLike,
    values: Sequence[TensorLike],
    field_names: Sequence[str],
    message_type: str,
    descriptor_source: str | Octets = "local://",
    name: str | None = None,
) -> Tensor:
    """Messages from tensors: what `decode_proto` does, undone.

    Args:
        sizes: How many values each field has, int32 of shape ``[..., fields]``.
        values: The values of each field, ``[..., most values]``.
        field_names: As of `decode_proto`.
        message_type: Likewise.
        descriptor_source: Likewise.
        name: Name of the operation.

    Returns:
        Strings, shape ``[...]``.

    Raises:
        ValueError: `sizes` or values have fewer than two dimensions.
        InvalidArgumentError: When it runs: there is no such message or field, a dtype does not fit a field, or there
            are fewer values than `sizes` says.
    """
    counts, tensors = convert_to_tensor(sizes, dtypes.int32), [convert_to_tensor(each) for each in values]
    for each in (counts, *tensors):
        if each.shape.rank is not None and each.shape.rank < 2:
            raise InvalidArgumentError(f"Shape must be at least rank 2 but is rank {each.shape.rank}: {each!r}")
    types = [each.dtype for each in tensors]

    def encoded(counts: _Array, *columns: _Array) -> Any:
        fields = _fields(descriptor_source, message_type, field_names, types, "Incompatible type for field")
        batch = columns[0].shape[:-1] if columns else counts.shape[:-1]
        if counts.shape != (*batch, len(fields)):
            raise InvalidArgumentError(
                f"sizes should be batch_size + [len(field_names)].  Saw: {list(counts.shape)} but expected: "
                f"{[*batch, len(fields)]}"
            )
        flat = counts.reshape(-1, len(fields))
        made = [_class_of(descriptor_source, message_type)() for _ in flat]
        for at, (field, column) in enumerate(zip(fields, columns, strict=True)):
            rows = column.reshape(len(flat), -1)
            for number, (message, row, count) in enumerate(zip(made, rows, flat[:, at], strict=True)):
                if count > len(row):
                    raise InvalidArgumentError(
                        f"Size to write must not be larger than value tensor; but saw: {count} > {len(row)} at message "
                        f"{number} field {at}"
                    )
                _fill(message, field, row[:count])
        found = np.array([each.SerializePartialToString(deterministic=True) for each in made], object)
        return found.reshape(batch)

    found: Tensor = py_func(encoded, [counts, *tensors], dtypes.string, stateful=False, name=name or "EncodeProto")
    if counts.shape.rank is not None:
        found.set_shape(counts.shape.as_list()[:-1])
    return found


@functools.lru_cache(maxsize=16)
def _pool_of(described: Octets) -> Any:
    from google.protobuf.descriptor_pb2 import FileDescriptorSet
    from google.protobuf.descriptor_pool import DescriptorPool
    from google.protobuf.message import DecodeError

    pool = DescriptorPool()
    try:
        for file in FileDescriptorSet.FromString(described).file:
            pool.AddSerializedFile(file.SerializeToString())
    except (DecodeError, TypeError) as error:
        raise InvalidArgumentError(
            "Source does not represent serialized file descriptor set proto. Make one by protoc --descriptor_set_out "
            f"--include_imports: {error}"
        ) from error
    return pool


def _described(source: str | Octets) -> Octets:
    """The description of messages that a source has."""
    given = source if isinstance(source, Octets) else source.encode("utf-8", "surrogateescape")
    if given.startswith(_BYTES):
        return given.removeprefix(_BYTES)
    try:
        return read_bytes(given.decode())
    except NotFoundError as error:
        raise InvalidArgumentError(
            "Source does not represent serialized file descriptor set proto: descriptor_source is a path, or begins "
            f"with bytes://. {error}"
        ) from error


def _class_of(source: str | Octets, message_type: str) -> Any:
    """protobuf's class of messages."""
    missing = InvalidArgumentError(f"No descriptor found for message type {message_type}")
    if source in _LOCAL:
        package, _, short = message_type.rpartition(".")
        made: Any = getattr(example, short, None) or getattr(graph_proto, short, None)
        if package != "tensorflow" or not isinstance(made, MessageType):
            raise missing
        return type(made())
    from google.protobuf.message_factory import GetMessageClass

    pool = _pool_of(_described(source))
    try:
        return GetMessageClass(pool.FindMessageTypeByName(message_type))
    except KeyError as error:
        raise missing from error


def _fields(
    source: str | Octets,
    message_type: str,
    names: Sequence[str],
    types: Sequence[DType],
    wrong: str = "Unexpected output type for",
) -> list[FieldDescriptor]:
    """The descriptions of fields, which the dtypes can hold."""
    if len(names) != len(types):
        raise InvalidArgumentError("field_names and output_types attributes must have the same length")
    described, found = _class_of(source, message_type).DESCRIPTOR, []
    for name, dtype in zip(names, types, strict=True):
        field = described.fields_by_name.get(name)
        if field is None and "." in name and source not in _LOCAL:
            extensions = {each.full_name: each for each in _pool_of(_described(source)).FindAllExtensions(described)}
            field = extensions.get(name)
        if field is None:
            raise InvalidArgumentError(f"Unknown field: {name} in message type {message_type}")
        kind, fitting = _FIELDS[field.type]
        if dtype not in fitting:
            expected = ", ".join(each.name for each in fitting)
            raise InvalidArgumentError(
                f"{wrong} {message_type}.{name}.  Saw dtype: {dtype.name} but field type is: {kind}; "
                f"expected {expected}"
            )
        found.append(field)
    return found


def _parsed(source: str | Octets, message_type: str, message_format: str, data: Octets) -> Any:
    from google.protobuf import text_format
    from google.protobuf.message import DecodeError

    if message_format not in ("binary", "text"):
        raise InvalidArgumentError("format must be one of binary or text")
    message = _class_of(source, message_type)()
    try:
        if message_format == "text":
            return text_format.Parse(data, message)
        message.ParseFromString(data)
    except (DecodeError, text_format.ParseError, UnicodeDecodeError) as error:
        raise DataLossError(f"{len(data)} bytes are no {message_type}: {error}") from error
    return message


def _is_repeated(field: FieldDescriptor) -> bool:
    # protobuf 6 has the property; before, there was a label.
    return bool(field.is_repeated if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED)


def _value(message: Message, field: FieldDescriptor) -> Any:
    return message.Extensions[field] if field.is_extension else getattr(message, field.name)


def _count(message: Message, field: FieldDescriptor) -> int:
    if _is_repeated(field):
        return len(_value(message, field))
    return int(any(each.full_name == field.full_name for each, _ in message.ListFields()))


def _column(messages: Sequence[Message], field: FieldDescriptor, dtype: DType) -> _Array:
    """The values of a field, ``[messages, most values]``."""
    rows = [list(_value(each, field)) if _is_repeated(field) else [_value(each, field)] for each in messages]
    if dtype is dtypes.string:
        rows = [[_octets(value) for value in row] for row in rows]
    width = max([1, *map(len, rows)])
    column = np.full([len(rows), width], b"", object) if dtype is dtypes.string else None
    if column is None:
        column = np.zeros([len(rows), width], dtype.as_numpy_dtype)
    for at, row in enumerate(rows):
        column[at, : len(row)] = row
    return column


def _octets(value: str | Octets | Message) -> Octets:
    if isinstance(value, str):
        return value.encode()
    return value if isinstance(value, Octets) else value.SerializePartialToString(deterministic=True)


def _fill(message: Message, field: FieldDescriptor, values: _Array) -> None:
    """Give a field values."""
    if _FIELDS[field.type][0] in ("message", "group"):
        for value in values:
            (_value(message, field).add() if _is_repeated(field) else _value(message, field)).MergeFromString(value)
        return
    plain = [each.decode() if field.type == 9 and isinstance(each, Octets) else each for each in values.tolist()]
    if _is_repeated(field):
        _value(message, field).extend(plain)
    elif plain and field.is_extension:
        message.Extensions[field] = plain[-1]
    elif plain:
        setattr(message, field.name, plain[-1])
