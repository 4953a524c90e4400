"""Protocol-buffer messages as plain Python classes, declared by a table of fields.

    class Point(Message):
        FIELDS = (Field(1, "x", "float"), Field(2, "labels", "string", repeated=True))

They have the attributes and the methods of generated classes that programs use, and the same form on the wire.
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self, SupportsIndex

import numpy as np

from tfray.errors import DataLossError
from tfray.formats import wire

MAX_DEPTH: Final = 100
"""Messages nested deeper than this are refused."""


@dataclass(frozen=True)
class Field:
    """One field of a message.

    Attributes:
        number: Its number on the wire.
        name: Its attribute.
        kind: ``bytes``, ``string``, ``float``, ``double``, ``int64``, ``int32``, ``uint64``, ``fixed32``, ``bool``,
            ``enum``, or the class of a message.
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

    @property
    def is_message(self) -> bool:
        """Whether the values are messages."""
        return isinstance(self.kind, type)


_FEW: Final = 8
"""Fewer numbers than this are checked one by one."""

_WIRE_TYPES: Final = {
    "bytes": wire.BYTES,
    "string": wire.BYTES,
    "float": wire.FIXED32,
    "fixed32": wire.FIXED32,
    "double": wire.FIXED64,
}
_FIXED: Final = {"float": "<f", "fixed32": "<I", "double": "<d"}
_DEFAULTS: Final = {"bytes": b"", "string": "", "float": 0.0, "double": 0.0, "bool": False}
_RANGES: Final = {
    "int64": (-(1 << 63), 1 << 63),
    "uint64": (0, 1 << 64),
    "int32": (-(1 << 31), 1 << 31),
    "fixed32": (0, 1 << 32),
    "enum": (-(1 << 31), 1 << 31),
}


def _wire_type(kind: Any) -> int:
    return wire.BYTES if isinstance(kind, type) else _WIRE_TYPES.get(kind, wire.VARINT)


def _checked(kind: Any, value: Any) -> Any:
    """`value` as a field of this kind stores it. Raises `TypeError` or `ValueError`."""
    if isinstance(kind, type):
        if not isinstance(value, kind):
            raise TypeError(f"{value!r} is a {type(value).__name__}, expected {kind.__name__}")
        return value
    if kind == "bytes":
        if not isinstance(value, (bytes, bytearray, memoryview)):
            raise TypeError(f"{value!r} is a {type(value).__name__}, expected bytes")
        return bytes(value)
    if kind == "string":
        return value if isinstance(value, str) else _decoded(value)
    if kind in ("float", "double"):
        if isinstance(value, (str, bytes)):
            raise TypeError(f"{value!r} is a {type(value).__name__}, expected a number")
        return float(np.float32(value)) if kind == "float" else float(value)
    if kind == "bool":
        return bool(value)
    number = operator.index(value)
    low, high = _RANGES[kind]
    if not low <= number < high:
        raise ValueError(f"{number} does not fit {kind}")
    return int(number)


def _decoded(value: Any) -> str:
    if not isinstance(value, bytes):
        raise TypeError(f"{value!r} is a {type(value).__name__}, expected text")
    return value.decode("utf-8")


def _as_vector(values: Iterable[Any]) -> np.ndarray[Any, Any] | None:
    """Numbers as an array of one dimension, if there are enough of them and they are no mixture."""
    if isinstance(values, (list, tuple)) and len(values) >= _FEW and len(set(map(type, values))) == 1:
        values = np.asarray(values)
    return values if isinstance(values, np.ndarray) and values.ndim == 1 else None


class RepeatedField(list[Any]):
    """The values of a repeated field: a list that checks what it is given."""

    def __init__(self, kind: Any, values: Iterable[Any] = ()) -> None:
        super().__init__()
        self._kind = kind
        self.extend(values)

    def append(self, value: Any) -> None:
        """Add a value. Raises `TypeError` when it is of another kind."""
        super().append(_checked(self._kind, value))

    def extend(self, values: Iterable[Any]) -> None:
        """Add values; numbers are taken all at once."""
        if self._kind in ("int64", "float", "double"):
            array = _as_vector(values)
            if array is not None and self._takes(array.dtype):
                super().extend((array.astype(np.float32) if self._kind == "float" else array).tolist())
                return
        super().extend([_checked(self._kind, value) for value in values])

    def _takes(self, dtype: np.dtype[Any]) -> bool:
        if self._kind == "int64":
            return dtype.kind in "iu" and dtype != np.uint64
        return self._kind in ("float", "double") and dtype.kind in "fiu"

    def insert(self, index: SupportsIndex, value: Any) -> None:
        """Add a value at a position."""
        super().insert(index, _checked(self._kind, value))

    def __setitem__(self, index: Any, value: Any) -> None:
        several = isinstance(index, slice)
        super().__setitem__(index, [_checked(self._kind, v) for v in value] if several else _checked(self._kind, value))

    def __iadd__(self, values: Iterable[Any]) -> Self:  # type: ignore[misc]
        self.extend(values)
        return self

    def add(self, **values: Any) -> Any:
        """Add a new message and return it."""
        message = self._kind(**values)
        super().append(message)
        return message

    MergeFrom = extend


class MapField(dict[Any, Any]):
    """The entries of a map field. A message that is not there is made when it is read."""

    def __init__(self, key: str, kind: Any, values: Mapping[Any, Any] | None = None) -> None:
        super().__init__()
        self._key, self._kind = key, kind
        for name, value in (values or {}).items():
            self[name] = value

    def __missing__(self, key: Any) -> Any:
        if not isinstance(self._kind, type):
            raise KeyError(key)
        value = self._kind()
        super().__setitem__(_checked(self._key, key), value)
        return value

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(_checked(self._key, key), _checked(self._kind, value))

    def get_or_create(self, key: Any) -> Any:
        """The message of a key, made if it is not there."""
        return self[key]


class Message:
    """Base of messages. Subclasses list their `FIELDS`."""

    FIELDS: ClassVar[tuple[Field, ...]] = ()
    _by_name: ClassVar[dict[str, Field]] = {}
    _by_number: ClassVar[dict[int, Field]] = {}

    def __init_subclass__(cls) -> None:
        cls._by_name = {field.name: field for field in cls.FIELDS}
        cls._by_number = {field.number: field for field in cls.FIELDS}

    def __init__(self, **values: Any) -> None:
        self._values: dict[str, Any]
        object.__setattr__(self, "_values", {})
        object.__setattr__(self, "_is_set", False)
        for name, value in values.items():
            field = self._field(name)
            if value is None:
                continue
            if field.key:
                self._values[name] = MapField(field.key, field.kind, value)
            elif field.repeated:
                self._values[name] = RepeatedField(field.kind, value)
            else:
                self._put(field, value)

    @classmethod
    def _field(cls, name: str) -> Field:
        try:
            return cls._by_name[name]
        except KeyError:
            raise ValueError(f"{cls.__name__} has no field {name!r}; it has {', '.join(cls._by_name)}") from None

    def _put(self, field: Field, value: Any) -> None:
        value = _checked(field.kind, value)
        if field.is_message:
            value.SetInParent()
        if field.oneof:
            for other in self.FIELDS:
                if other.oneof == field.oneof:
                    self._values.pop(other.name, None)
        self._values[field.name] = value

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._by_name:
            raise AttributeError(f"{type(self).__name__} has no field {name!r}; it has {', '.join(self._by_name)}")
        if name not in self._values:
            field = self._by_name[name]
            if field.key:
                self._values[name] = MapField(field.key, field.kind)
            elif field.repeated:
                self._values[name] = RepeatedField(field.kind)
            elif field.is_message:
                self._values[name] = field.kind()
            else:
                return _DEFAULTS.get(field.kind, 0)
        return self._values[name]

    def __setattr__(self, name: str, value: Any) -> None:
        field = self._by_name.get(name)
        if field is None:
            raise AttributeError(f"{type(self).__name__} has no field {name!r}; it has {', '.join(self._by_name)}")
        if field.repeated or field.key or field.is_message:
            raise AttributeError(f"field {name!r} is not assigned: use its methods, such as append or CopyFrom")
        self._put(field, value)

    # -- presence --------------------------------------------------------------------------------------

    def _has(self, field: Field) -> bool:
        value = self._values.get(field.name)
        if value is None:
            return False
        if field.repeated or field.key:
            return bool(value)
        if field.is_message:
            return bool(value._is_set or value._present())
        return bool(field.oneof) or value != _DEFAULTS.get(field.kind, 0)

    def _present(self) -> list[Field]:
        return [field for field in self.FIELDS if self._has(field)]

    def SetInParent(self) -> None:
        """Count as present in the message that holds this one, even when empty."""
        object.__setattr__(self, "_is_set", True)

    def HasField(self, name: str) -> bool:
        """Whether a field is set."""
        return self._has(self._field(name))

    def WhichOneof(self, name: str) -> str | None:
        """Name of the field of a group that is set, or None."""
        fields = [field.name for field in self._present() if field.oneof == name]
        if not fields and not any(field.oneof == name for field in self.FIELDS):
            raise ValueError(f"{type(self).__name__} has no group {name!r}")
        return fields[-1] if fields else None

    def ListFields(self) -> list[tuple[Field, Any]]:
        """The fields that are set, with their values."""
        return [(field, self._values[field.name]) for field in self._present()]

    def Clear(self) -> None:
        """Unset every field."""
        self._values.clear()

    def ClearField(self, name: str) -> None:
        """Unset a field."""
        self._values.pop(self._field(name).name, None)

    # -- the wire --------------------------------------------------------------------------------------

    def SerializeToString(self, deterministic: bool | None = None) -> bytes:
        """This message as bytes. Map entries come in the order in which they were made, or sorted."""
        return b"".join([_encoded(field, self._values[field.name], bool(deterministic)) for field in self._present()])

    def ByteSize(self) -> int:
        """How many bytes `SerializeToString` gives."""
        return len(self.SerializeToString())

    @classmethod
    def FromString(cls, data: bytes) -> Self:
        """The message in `data`. Raises `DataLossError` when there is none."""
        message = cls()
        message.MergeFromString(data)
        return message

    def ParseFromString(self, data: bytes) -> int:
        """Replace this message by the one in `data`; returns the number of bytes. Raises `DataLossError`."""
        parsed = self.FromString(data)
        object.__setattr__(self, "_values", parsed._values)
        return len(data)

    def MergeFromString(self, data: bytes) -> int:
        """Add the fields in `data` to this message; returns the number of bytes. Raises `DataLossError`."""
        data = bytes(data)
        try:
            _merge(self, data, 0, len(data), 0)
        except (UnicodeDecodeError, DataLossError) as error:
            reason = error.message if isinstance(error, DataLossError) else str(error)
            raise DataLossError(f"these {len(data)} bytes are no {type(self).__name__}: {reason}") from error
        return len(data)

    def MergeFrom(self, other: Message) -> None:
        """Add the fields of a message of the same class."""
        if type(other) is not type(self):
            raise TypeError(f"{other!r} is a {type(other).__name__}, expected {type(self).__name__}")
        self.MergeFromString(other.SerializeToString())

    def CopyFrom(self, other: Message) -> None:
        """Replace this message by a copy of another of the same class."""
        if other is not self:
            data = other.SerializeToString()
            if type(other) is not type(self):
                raise TypeError(f"{other!r} is a {type(other).__name__}, expected {type(self).__name__}")
            self.Clear()
            self.MergeFromString(data)
            self.SetInParent()

    # -- comparing and showing -------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Message) or type(other) is not type(self):
            return False
        return self.ListFields() == other.ListFields()

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).FromString, (self.SerializeToString(),)

    def __repr__(self) -> str:
        return "".join(line for field, value in self.ListFields() for line in _shown(field, value))


# -- one field -----------------------------------------------------------------------------------------


def _encoded(field: Field, value: Any, deterministic: bool) -> bytes:
    if field.key:
        items = sorted(value.items()) if deterministic else value.items()
        return b"".join(
            [
                wire.delimited(
                    field.number, _one(1, field.key, key, deterministic) + _one(2, field.kind, item, deterministic)
                )
                for key, item in items
            ]
        )
    if not field.repeated:
        return _one(field.number, field.kind, value, deterministic)
    if _wire_type(field.kind) == wire.BYTES:
        return b"".join([_one(field.number, field.kind, item, deterministic) for item in value])
    if field.kind in _FIXED:
        return wire.delimited(field.number, np.array(value, _FIXED[field.kind]).tobytes())
    unsigned = [item - (1 << 64) if item >> 63 > 0 else item for item in value]
    return wire.delimited(field.number, wire.encode_varints(unsigned))


def _one(number: int, kind: Any, value: Any, deterministic: bool) -> bytes:
    if isinstance(kind, type):
        return wire.delimited(number, value.SerializeToString(deterministic))
    if kind in ("bytes", "string"):
        return wire.delimited(number, value.encode() if kind == "string" else value)
    start = wire.tag(number, _wire_type(kind))
    if kind in _FIXED:
        return start + struct.pack(_FIXED[kind], value)
    return start + wire.varint(int(value))


def _merge(message: Message, data: bytes, start: int, end: int, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise DataLossError(f"messages are nested more than {MAX_DEPTH} deep")
    for number, wire_type, first, last in wire.read_fields(data, start, end):
        field = message._by_number.get(number)
        if field is None:
            continue
        packed = field.repeated and wire_type == wire.BYTES and _wire_type(field.kind) != wire.BYTES
        if not packed and wire_type != _wire_type(field.kind if not field.key else Message):
            continue  # an unknown field to this version of the message
        if field.key:
            _merge_entry(getattr(message, field.name), field, data, first, last, depth)
        elif packed:
            list.extend(getattr(message, field.name), _packed(field.kind, data[first:last]))
        elif field.repeated:
            list.append(getattr(message, field.name), _value(field.kind, data, first, last, depth))
        elif field.is_message:
            existing = message._values.get(field.name) or field.kind()
            _merge(existing, data, first, last, depth + 1)
            message._put(field, existing)
        else:
            message._put(field, _value(field.kind, data, first, last, depth))


def _merge_entry(entries: MapField, field: Field, data: bytes, start: int, end: int, depth: int) -> None:
    key: Any = _DEFAULTS.get(field.key, 0)
    value: Any = field.kind() if field.is_message else _DEFAULTS.get(field.kind, 0)
    for number, wire_type, first, last in wire.read_fields(data, start, end):
        if number == 1 and wire_type == _wire_type(field.key):
            key = _value(field.key, data, first, last, depth)
        elif number == 2 and wire_type == _wire_type(field.kind):
            value = _value(field.kind, data, first, last, depth + 1)
    entries[key] = value


def _value(kind: Any, data: bytes, first: int, last: int, depth: int) -> Any:
    if isinstance(kind, type):
        message = kind()
        _merge(message, data, first, last, depth + 1)
        message.SetInParent()
        return message
    if kind in ("bytes", "string"):
        return data[first:last] if kind == "bytes" else data[first:last].decode("utf-8")
    if kind in _FIXED:
        return struct.unpack_from(_FIXED[kind], data, first)[0]
    return _integer(kind, wire.read_varint(data, first, last)[0])


def _integer(kind: str, value: int) -> Any:
    if kind == "bool":
        return bool(value)
    if kind == "uint64":
        return value
    value = wire.signed(value)
    return value if kind == "int64" else (value + (1 << 31)) % (1 << 32) - (1 << 31)


def _packed(kind: str, data: bytes) -> list[Any]:
    if kind in _FIXED:
        width = struct.calcsize(_FIXED[kind])
        if len(data) % width:
            raise DataLossError(f"a list of {kind}s is {len(data)} bytes long, which is no multiple of {width}")
        return np.frombuffer(data, _FIXED[kind]).tolist()
    values = wire.decode_varints(data).tolist()
    return values if kind == "int64" else [_integer(kind, value & (1 << 64) - 1) for value in values]


def _shown(field: Field, value: Any) -> Iterable[str]:
    if field.key:
        entries = [f"key: {_quoted(key)}\n{_shown_one('value', item)}" for key, item in sorted(value.items())]
        return [f"{field.name} {{\n{_indented(entry)}}}\n" for entry in entries]
    items = value if field.repeated else [value]
    return [_shown_one(field.name, np.float32(item) if field.kind == "float" else item) for item in items]


def _shown_one(name: str, value: Any) -> str:
    if isinstance(value, Message):
        return f"{name} {{\n{_indented(repr(value))}}}\n"
    return f"{name}: {_quoted(value)}\n"


def _quoted(value: Any) -> str:
    if isinstance(value, bytes):
        return '"' + repr(value)[2:-1].replace('"', '\\"') + '"'
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"' if isinstance(value, str) else str(value).lower()


def _indented(text: str) -> str:
    return "".join(f"  {line}\n" for line in text.splitlines())
