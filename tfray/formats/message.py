"""Protocol-buffer messages: classes of protobuf, made from tables of fields.

    class Point(Message):
        FIELDS = (Field(1, "x", "float"), Field(2, "labels", "string", repeated=True))

    point = Point(x=0.5, labels=["a"])

Such a class makes and reads protobuf's own objects, which have all attributes and methods of generated code. Three
things differ. Bytes that are no message raise `DataLossError`. Entries of maps are written in the order of their keys,
so that the same message gives the same bytes in every process. Pickled messages are read by these classes.

protobuf is loaded with the first message: ``import tfray`` does not wait for it. The classes live in a pool of their
own: TensorFlow or TensorBoard in the same process, with messages of the same names, do not meet them.
"""

from __future__ import annotations

import functools
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from tfray.errors import DataLossError, InvalidArgumentError
from tfray.framework.arguments import abbreviated


@dataclass(frozen=True)
class Field:
    """One field of a message.

    Attributes:
        number: Its number on the wire.
        name: Its attribute.
        kind: ``bytes``, ``string``, ``float``, ``double``, ``int64``, ``int32``, ``uint64``, ``fixed32``, ``bool``,
            ``enum`` (any number of 32 bits: the names of its values are not known here), or the class of a message.
        repeated: Whether it is a list.
        key: For a map, the kind of its keys; `kind` is that of the values.
        oneof: Name of the group of fields of which a message has at most one.
    """

    number: int
    name: str
    kind: Any
    repeated: bool = False
    key: str = ""
    oneof: str = ""


class MessageType(type):
    """The type of the declared classes: calling one makes a message of the class that protobuf makes of its fields."""

    FIELDS: tuple[Field, ...]
    _made: Any

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> MessageType:
        """Declare a class. Its fields are looked at when it is first used."""
        return super().__new__(mcs, name, bases, namespace | {"_made": None})

    def __call__(cls, **values: Any) -> Any:
        """A message with these values. Raises `TypeError` or `ValueError` for what does not fit its fields."""
        made = cls._made or _class_of(cls)
        try:
            return made(**values)
        except (TypeError, ValueError, AttributeError) as error:
            given = ", ".join(f"{name}={abbreviated(value)}" for name, value in values.items())
            names = ", ".join(field.name for field in cls.FIELDS)
            kind = ValueError if isinstance(error, ValueError) else TypeError
            raise kind(f"{cls.__name__}({given}): {error}; its fields are {names}") from error

    def __instancecheck__(cls, value: object) -> bool:
        return cls._made is not None and isinstance(value, cls._made)

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{cls.__name__} has no attribute {name!r}")
        return getattr(cls._made or _class_of(cls), name)


class Message(metaclass=MessageType):
    """Base of messages. Subclasses list their `FIELDS`; their other attributes are also those of the messages."""

    FIELDS: ClassVar[tuple[Field, ...]] = ()

    if TYPE_CHECKING:  # what protobuf's classes have, as far as tfray uses it

        def __init__(self, **values: Any) -> None: ...
        def __getattr__(self, name: str) -> Any: ...
        def __setattr__(self, name: str, value: Any) -> None: ...
        @classmethod
        def FromString(cls, data: bytes) -> Self: ...
        def ParseFromString(self, data: bytes) -> int: ...
        def MergeFromString(self, data: bytes) -> int: ...
        def SerializeToString(self, deterministic: bool = True) -> bytes: ...
        def HasField(self, name: str) -> bool: ...
        def WhichOneof(self, name: str) -> str | None: ...
        def ClearField(self, name: str) -> None: ...
        def Clear(self) -> None: ...
        def CopyFrom(self, other: Self) -> None: ...
        def MergeFrom(self, other: Self) -> None: ...
        def SetInParent(self) -> None: ...


_making: Final = threading.RLock()


def _class_of(declared: MessageType) -> Any:
    """protobuf's class of a declared one."""
    with _making:
        if declared._made is None:
            for field in declared.FIELDS:
                if isinstance(field.kind, MessageType):
                    _class_of(field.kind)
            declared._made = _made(declared)
        return declared._made


@functools.cache
def _pool() -> Any:
    """The descriptions of all messages that have been used."""
    from google.protobuf.descriptor_pool import DescriptorPool

    return DescriptorPool()


def _made(declared: MessageType) -> Any:
    """protobuf's class of a declared one, whose fields' classes have been made."""
    from google.protobuf.message import DecodeError, EncodeError
    from google.protobuf.message_factory import GetMessageClass

    _pool().AddSerializedFile(_description(declared))
    made = GetMessageClass(_pool().FindMessageTypeByName(_full_name(declared)))
    merge, serialize = made.MergeFromString, made.SerializeToString

    def MergeFromString(message: Any, data: bytes) -> int:
        """Add the fields in `data` to this message; returns the number of bytes. Raises `DataLossError`."""
        try:
            return merge(message, data)
        except (DecodeError, UnicodeDecodeError) as error:
            reason = "they are cut off, damaged, or something else"
            raise DataLossError(f"these {len(data)} bytes are no {declared.__name__}: {reason}") from error

    def ParseFromString(message: Any, data: bytes) -> int:
        """Replace this message by the one in `data`; returns the number of bytes. Raises `DataLossError`."""
        message.Clear()
        return MergeFromString(message, data)

    def FromString(data: bytes) -> Any:
        """The message in `data`. Raises `DataLossError` when there is none."""
        message = made()
        MergeFromString(message, data)
        return message

    def SerializeToString(message: Any, deterministic: bool = True) -> bytes:
        """This message as bytes, map entries sorted unless `deterministic` is false.

        Raises `InvalidArgumentError` for more than 2 GiB, which protobuf does not write.
        """
        try:
            return serialize(message, deterministic=deterministic)
        except EncodeError as error:
            raise InvalidArgumentError(f"a {declared.__name__} of more than 2 GiB cannot be written") from error

    def reduce(message: Any) -> tuple[Any, ...]:
        return _read, (declared, message.SerializeToString())

    own = {name: value for name, value in vars(declared).items() if not name.startswith("_") and name != "FIELDS"}
    methods = {each.__name__: each for each in (MergeFromString, ParseFromString, SerializeToString)}
    for name, value in (own | methods | {"FromString": staticmethod(FromString), "__reduce__": reduce}).items():
        setattr(made, name, value)
    made.__module__, made.__doc__ = declared.__module__, declared.__doc__
    return made


def _read(declared: MessageType, data: bytes) -> Any:
    return declared.FromString(data)


def _full_name(declared: MessageType) -> str:
    return f"{declared.__module__}.{declared.__name__}"


def _description(declared: MessageType) -> bytes:
    """A message as protobuf describes it: a file of its own, which depends on those of its fields' classes."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    kinds = dict.fromkeys(field.kind for field in declared.FIELDS if isinstance(field.kind, MessageType))
    file = FileDescriptorProto(name=_full_name(declared), package=declared.__module__, syntax="proto3")
    file.dependency.extend(map(_full_name, kinds))
    message = file.message_type.add(name=declared.__name__)
    groups = list(dict.fromkeys(field.oneof for field in declared.FIELDS if field.oneof))
    for group in groups:
        message.oneof_decl.add(name=group)
    for field in declared.FIELDS:
        if field.key:
            entry = message.nested_type.add(name=f"{field.name.title().replace('_', '')}Entry")
            entry.options.map_entry = True
            _describe(entry, Field(1, "key", field.key))
            _describe(entry, Field(2, "value", field.kind))
            described = _describe(message, field, f".{_full_name(declared)}.{entry.name}")
        else:
            described = _describe(message, field)
        if field.oneof:
            described.oneof_index = groups.index(field.oneof)
    return file.SerializeToString()


def _describe(message: Any, field: Field, entry: str = "") -> Any:
    """Add a field; `entry` is the message for the entries of a map."""
    described = message.field.add(name=field.name, number=field.number)
    described.label = described.LABEL_REPEATED if field.repeated or entry else described.LABEL_OPTIONAL
    if entry or isinstance(field.kind, MessageType):
        described.type, described.type_name = described.TYPE_MESSAGE, entry or f".{_full_name(field.kind)}"
    else:
        kind = "int32" if field.kind == "enum" else field.kind
        described.type = getattr(described, f"TYPE_{kind.upper()}")
    return described
