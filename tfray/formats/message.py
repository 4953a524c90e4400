"""Protocol-buffer messages: classes of protobuf, made from tables of fields.

    class Point(Message):
        FIELDS = (Field(1, "x", "float"), Field(2, "labels", "string", repeated=True))

    point = Point(x=0.5, labels=["a"])

Such a class makes and reads protobuf's own objects, which have all attributes and methods of generated code. Three
things differ. Bytes that are no message raise `DataLossError`. Entries of maps are written in the order of their keys,
so that the same message gives the same bytes in every process. Pickled messages are read by these classes. Of classes
that are `apart`, an object in front of protobuf's spares the memory of large contents; see `StandIn`.

protobuf is loaded with the first message: ``import tfray`` does not wait for it. The classes live in a pool of their
own: TensorFlow or TensorBoard in the same process, with messages of the same names, do not meet them.
"""

from __future__ import annotations

import functools
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

import numpy as np

from tfray.errors import ArgumentError, DataLossError, InvalidArgumentError
from tfray.formats.large_contents import Contents, FileOctets
from tfray.formats.stand_in import StandIn, whole
from tfray.framework.arguments import abbreviated


@dataclass(frozen=True, eq=False)
class Enumeration:
    """Named numbers: the kind of fields that the text of a message shows by name. Other numbers may stand there too.

    A class of messages that has one as an attribute has its numbers as attributes too. It has the methods of protobuf's
    enumerations: ``Name``, ``Value``, ``keys``, ``values`` and ``items``.

    Attributes:
        module: ``__name__`` of the module that declares it.
        name: Its name, unique in the module.
        numbers: Number by name; the first one is 0.
    """

    module: str
    name: str
    numbers: Mapping[str, int]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper

        _add_enumeration(self)
        return getattr(EnumTypeWrapper(_pool().FindEnumTypeByName(_enumeration_name(self))), name)


@dataclass(frozen=True)
class Field:
    """One field of a message.

    Attributes:
        number: Its number on the wire.
        name: Its attribute.
        kind: ``bytes``, ``string``, ``float``, ``double``, ``int64``, ``int32``, ``uint64``, ``fixed32``, ``bool``,
            ``enum`` (any number of 32 bits: the names of its values are not known here), an `Enumeration`, or the
            class of a message. The name of a class of the same module stands for one that is declared further down.
        repeated: Whether it is a list.
        key: For a map, the kind of its keys; `kind` is that of the values.
        oneof: Name of the group of fields of which a message has at most one.
        apart: Whether it holds bytes that are kept apart from the message when they are many; see `large_contents`.
            Whoever asks a message for its field asks `content_of` what they are.
    """

    number: int
    name: str
    kind: Any
    repeated: bool = False
    key: str = ""
    oneof: str = ""
    apart: bool = False


_COUNTS: Final = ("int64", "int32", "uint64", "uint32")


def _with_numbers(fields: Sequence[Field], values: Mapping[str, Any]) -> dict[str, Any]:
    """`values` with 0 and 1 for the truths in fields of integers, as protobuf once took them."""
    counts = {field.name for field in fields if field.kind in _COUNTS}
    return {name: _numbers(value) if name in counts else value for name, value in values.items()}


def _numbers(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _numbers(each) for key, each in value.items()}
    array = np.asarray(value)
    return array.astype(np.int64).tolist() if array.dtype == bool else value


class MessageType(type):
    """The type of the declared classes: calling one makes a message of the class that protobuf makes of its fields."""

    FIELDS: tuple[Field, ...]
    _made: Any
    _maker: Any
    _file: str

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> MessageType:
        """Declare a class. Its fields are looked at when it is first used."""
        for value in list(namespace.values()):
            if isinstance(value, Enumeration):
                namespace |= value.numbers
        return super().__new__(mcs, name, bases, namespace | {"_made": None, "_maker": None, "_file": ""})

    def __call__(cls, **values: Any) -> Any:
        """A message with these values. Raises `ArgumentError` for what does not fit its fields."""
        if cls._maker is None:
            _class_of(cls)
        try:
            return cls._maker(**values)
        except (TypeError, ValueError, AttributeError):
            for name, value in values.items():
                cls._refuse(name, value)
            return cls._maker(**_with_numbers(cls.FIELDS, values))

    def _refuse(cls, name: str, value: Any) -> None:
        """Raise `ArgumentError` for a field that there is not, and for a value that does not fit it."""
        names = [field.name for field in cls.FIELDS]
        try:
            if name in names:
                cls._maker(**_with_numbers(cls.FIELDS, {name: value}))
                return
            reason = f"there is no such field; its fields are {', '.join(names)}"
        except (TypeError, ValueError, AttributeError) as error:
            reason = str(error)
        raise ArgumentError(f"{cls.__name__}({name}={abbreviated(value)}): {reason}")

    def __instancecheck__(cls, value: object) -> bool:
        return cls._made is not None and isinstance(value, cls._made)

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{cls.__name__} has no attribute {name!r}")
        return getattr(cls._made or _class_of(cls), name)


class Message(metaclass=MessageType):
    """Base of messages. Subclasses list their `FIELDS`; their other attributes are also those of the messages.

    `read_other_form` makes a message of JSON, where there is such a form; `when_read` is told of what came from bytes.
    `when_given` looks at a message that is an argument of a `checked` function, and may raise `ArgumentError`.
    `apart` says whether a `StandIn` is made of it, which keeps large contents apart.
    """

    FIELDS: ClassVar[tuple[Field, ...]] = ()
    apart: ClassVar[bool] = False
    read_other_form: ClassVar[Callable[[bytes], Any] | None] = None
    when_read: ClassVar[Callable[[Any], object] | None] = None
    when_given: ClassVar[Callable[[Any], object] | None] = None

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
            group = _group_of(declared)
            files = {_file_of(kind) for member in group for kind in _kinds(member) if kind not in group}
            _pool().AddSerializedFile(_description(group, sorted(files)))
            for member in group:
                member._file = _full_name(group[0])
            for member in group:
                member._made = _made(member)
            for member in group:
                member._maker = _maker(member)
        return declared._made


def _kinds(declared: MessageType) -> Iterator[MessageType | Enumeration]:
    """The declared classes and enumerations that the fields of a class have."""
    for field in declared.FIELDS:
        kind = _kind(declared, field)
        if not isinstance(kind, str):
            yield kind


def _kind(declared: MessageType, field: Field) -> Any:
    named = isinstance(field.kind, str) and field.kind[0].isupper()
    return getattr(sys.modules[declared.__module__], field.kind) if named else field.kind


def _group_of(declared: MessageType) -> list[MessageType]:
    """A class, and those that hold it and that it holds: protobuf wants these to be described together."""
    return [declared, *(kind for kind in _reached(declared) if kind is not declared and declared in _reached(kind))]


def _reached(declared: MessageType) -> dict[MessageType, None]:
    """The classes that a message of this class may hold, at any depth."""
    found: dict[MessageType, None] = {}
    ahead = [declared]
    while ahead:
        new = [kind for kind in _kinds(ahead.pop()) if isinstance(kind, MessageType) and kind not in found]
        found |= dict.fromkeys(new)
        ahead += new
    return found


def _file_of(kind: MessageType | Enumeration) -> str:
    """Name of the file in the pool that describes a class or an enumeration, which is added when it is new."""
    if isinstance(kind, MessageType):
        _class_of(kind)
        return kind._file
    return _add_enumeration(kind)


@functools.cache
def _pool() -> Any:
    """The descriptions of all messages that have been used."""
    from google.protobuf.descriptor_pool import DescriptorPool

    return DescriptorPool()


@functools.cache
def _add_enumeration(kind: Enumeration) -> str:
    """Add the file that describes an enumeration; returns its name."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    # The names of values stand beside that of their enumeration: a package of its own keeps them apart.
    file = FileDescriptorProto(name=_enumeration_name(kind), package=f"{kind.module}.{kind.name}", syntax="proto3")
    described = file.enum_type.add(name=kind.name)
    for name, number in kind.numbers.items():
        described.value.add(name=name, number=number)
    _pool().AddSerializedFile(file.SerializeToString())
    return _enumeration_name(kind)


def _enumeration_name(kind: Enumeration) -> str:
    return f"{kind.module}.{kind.name}.{kind.name}"


def _made(declared: MessageType) -> Any:
    """protobuf's class of a declared one, which has been described."""
    from google.protobuf.message import DecodeError, EncodeError
    from google.protobuf.message_factory import GetMessageClass

    made = GetMessageClass(_pool().FindMessageTypeByName(_full_name(declared)))
    merge, serialize, assign = made.MergeFromString, made.SerializeToString, made.__setattr__

    def MergeFromString(message: Any, data: bytes) -> int:
        """Add the fields in `data` to this message; returns the number of bytes. Raises `DataLossError`."""
        if declared.read_other_form is not None and data[:1] == b"{":  # no message begins with this byte
            message.MergeFrom(declared.read_other_form(data))
            return len(data)
        try:
            merge(message, data)
            if declared.when_read is not None:
                declared.when_read(message)
            return len(data)
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

    def __setattr__(message: Any, name: str, value: Any) -> None:
        """Set a field. Raises `ArgumentError` for a value that does not fit, and `AttributeError` without a field."""
        try:
            assign(message, name, value)
        except (TypeError, ValueError) as error:
            if not isinstance(value, (bool, np.bool_)):
                raise ArgumentError(f"{declared.__name__}.{name} cannot be {abbreviated(value)}: {error}") from error
            __setattr__(message, name, int(value))

    def reduce(message: Any) -> tuple[Any, ...]:
        return _read, (declared, message.SerializeToString())

    own = {
        name: value for name, value in vars(declared).items() if not name.startswith("_") and name not in vars(Message)
    }
    methods = {each.__name__: each for each in (MergeFromString, ParseFromString, SerializeToString, __setattr__)}
    for name, value in (own | methods | {"FromString": staticmethod(FromString), "__reduce__": reduce}).items():
        setattr(made, name, value)
    made.__module__, made.__doc__ = declared.__module__, declared.__doc__
    return made


def _maker(declared: MessageType) -> Any:
    """What makes messages of a class."""
    made = declared._made
    if declared.apart:
        for method in (made.CopyFrom, made.MergeFrom):
            setattr(made, method.__name__, _taking_stand_ins(method))
        made.FromString = staticmethod(stand_in(declared).FromString)
        return stand_in(declared)
    if any(isinstance(kind, MessageType) and kind.apart for kind in _kinds(declared)):
        return lambda **values: made(**{name: whole(value) for name, value in values.items()})
    return made


def _taking_stand_ins(method: Any) -> Any:
    @functools.wraps(method)
    def taking(message: Any, other: Any) -> Any:
        return method(message, whole(other))

    return taking


@functools.cache
def stand_in(declared: MessageType) -> type[StandIn]:
    """The class of what stands in for messages of a class."""
    with _making:
        members = {
            "__slots__": (),
            "__doc__": declared.__doc__,
            "__module__": declared.__module__,
            "_kind": declared._made or _class_of(declared),
            "DESCRIPTOR": declared.DESCRIPTOR,
            "_layout": _layout(declared),
        }
        return type(declared.__name__, (StandIn,), members)


def stand_in_of(declared: MessageType, message: Any, contents: Contents | None) -> Any:
    """What stands in for a message of a class that has marks of `contents`; without any, the message itself."""
    if contents is None:
        return message
    made = stand_in(declared)()
    made._stand_for(message, contents)
    return made


_layouts: Final[dict[MessageType, dict[int, Any]]] = {}


def _layout(declared: MessageType) -> dict[int, Any]:
    """Where messages of a class hold what is kept apart; see `large_contents.Layout`."""
    if declared not in _layouts:
        layout = _layouts[declared] = {}  # before it is complete: classes hold one another in circles
        for field in declared.FIELDS:
            kind = _kind(declared, field)
            if field.apart:
                layout[field.number] = None
            elif isinstance(kind, MessageType) and any(
                each.apart for one in (kind, *_reached(kind)) for each in one.FIELDS
            ):
                layout[field.number] = {2: _layout(kind)} if field.key else _layout(kind)
    return _layouts[declared]


def _read(declared: MessageType, data: bytes) -> Any:
    return declared.FromString(data)


# -- messages as text ----------------------------------------------------------------------------------

_BEGINNING_BYTES: Final = 64 << 10

_FIRST_FIELD: Final = rb"(?:\s|#[^\n]*\n)*([a-z_0-9]+)\s*[:{<]"


def is_text_of(declared: MessageType, contents: bytes | FileOctets) -> bool:
    """Whether bytes begin as the text of a message does: with the name of one of its fields."""
    found = re.match(_FIRST_FIELD, contents[:_BEGINNING_BYTES])
    return found is not None and found[1].decode() in {field.name for field in declared.FIELDS}


_ESCAPED: Final = r"\\(?:[abfnrtvxuUX\\'\"?]|(?![4-7][0-7]{2})[0-7])"
_STRING_OR_COMMENT: Final = r"""#[^\n]*|"([^"\n]*)"?|'([^'\n]*)'?"""
_NO_ESCAPE: Final = r"\\(?:[4-7][0-7]{2}|.)"
"""Strings, and a backslash that no character follows from or one above 255: where all others have been taken out."""


def _check_escapes(declared: MessageType, text: str) -> None:
    """Raise `DataLossError` for an escape sequence that means nothing. Protobuf's library would only warn of it."""
    text = re.sub(_ESCAPED, "", text)
    for piece in re.finditer(_STRING_OR_COMMENT, text):
        found = re.search(_NO_ESCAPE, piece[1] or piece[2] or "")
        if found is not None:
            line = text.count("\n", 0, piece.start()) + 1
            raise DataLossError(
                f"this is no text of a {declared.__name__}: line {line}: {found[0]!r} stands for no character"
            )


def message_of_text(declared: MessageType, text: str) -> Any:
    """The message that a text describes, as ``str(message)`` writes it. Raises `DataLossError` for other text."""
    from google.protobuf import text_format

    _check_escapes(declared, text)
    message = declared()
    try:
        text_format.Parse(text, message)
    except (text_format.ParseError, RecursionError) as error:
        raise DataLossError(f"this is no text of a {declared.__name__}: {error}") from error
    if declared.when_read is not None:
        declared.when_read(message)
    return message


def message_of_file(declared: MessageType, contents: bytes | FileOctets) -> Any:
    """The message that the contents of a file are, as bytes, as text or in another form. Raises `DataLossError`.

    Of a large file a `StandIn` is made.
    """
    if not is_text_of(declared, contents):
        return (stand_in(declared) if isinstance(contents, FileOctets) else declared).FromString(contents)
    try:
        text = contents[:].decode()
    except UnicodeDecodeError as error:
        raise DataLossError(f"this is no text of a {declared.__name__}: {error}") from error
    return message_of_text(declared, text)


def _full_name(declared: MessageType) -> str:
    return f"{declared.__module__}.{declared.__name__}"


def _description(group: list[MessageType], dependencies: list[str]) -> bytes:
    """A file of protobuf that describes classes, which use only one another and what the files before it describe."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    file = FileDescriptorProto(name=_full_name(group[0]), package=group[0].__module__, syntax="proto3")
    file.dependency.extend(dependencies)
    for declared in group:
        _describe_message(declared, file.message_type.add(name=declared.__name__))
    return file.SerializeToString()


def _describe_message(declared: MessageType, message: Any) -> None:
    groups = list(dict.fromkeys(field.oneof for field in declared.FIELDS if field.oneof))
    for group in groups:
        message.oneof_decl.add(name=group)
    for field in declared.FIELDS:
        kind = _kind(declared, field)
        if field.key:
            entry = message.nested_type.add(name=f"{field.name.title().replace('_', '')}Entry")
            entry.options.map_entry = True
            _describe(entry, Field(1, "key", field.key), field.key)
            _describe(entry, Field(2, "value", field.kind), kind)
            described = _describe(message, field, kind, f".{_full_name(declared)}.{entry.name}")
        else:
            described = _describe(message, field, kind)
        if field.oneof:
            described.oneof_index = groups.index(field.oneof)


def _describe(message: Any, field: Field, kind: Any, entry: str = "") -> Any:
    """Add a field of a kind; `entry` is the message for the entries of a map."""
    described = message.field.add(name=field.name, number=field.number)
    described.label = described.LABEL_REPEATED if field.repeated or entry else described.LABEL_OPTIONAL
    if entry or isinstance(kind, MessageType):
        described.type, described.type_name = described.TYPE_MESSAGE, entry or f".{_full_name(kind)}"
    elif isinstance(kind, Enumeration):
        described.type, described.type_name = described.TYPE_ENUM, f".{_enumeration_name(kind)}"
    else:
        described.type = getattr(described, f"TYPE_{'INT32' if kind == 'enum' else kind.upper()}")
    return described
