"""Objects in front of messages, whose large contents stay apart from them as long as nobody asks for them."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any, ClassVar, Final

from tfray.errors import DataLossError, InvalidArgumentError
from tfray.formats.large_contents import (
    WORTHWHILE_BYTES,
    Contents,
    FileOctets,
    Layout,
    Pieces,
    fill,
    marked_fields,
    taken_apart,
)

_MAX_BYTES: Final = 1 << 31
_filling: Final = threading.RLock()


class StandIn:
    """A message with all attributes and methods of protobuf's, which stands behind it; `isinstance` takes it for one.

    When bytes are read into an empty one, their large contents stay apart: they are copied once, to where tensors may
    lie, or not even read from their file. A graph that is imported shares them. They are put into protobuf's message,
    which copies them, before a field that has some is looked at, and before a method is called. Whatever was imported
    before keeps its own.

    Methods of messages take it as what to copy, merge or compare, and so do constructors. protobuf's lists of messages
    do not: ``messages.add().CopyFrom(message)`` stands for ``messages.append(message)``.
    """

    __slots__ = ("_contents", "_marked", "_message")

    DESCRIPTOR: ClassVar[Any]
    _kind: ClassVar[type]  # protobuf's class
    _layout: ClassVar[Layout]

    def __init__(self, **values: Any) -> None:
        self._stand_for(self._kind(**{name: whole(value) for name, value in values.items()}), None)

    def _stand_for(self, message: Any, contents: Contents | None) -> None:
        marked = frozenset() if contents is None else marked_fields(message)
        for name, value in (("_message", message), ("_contents", contents), ("_marked", marked)):
            object.__setattr__(self, name, value)

    def _whole(self) -> Any:
        if self._contents is not None:
            with _filling:
                if self._contents is not None:
                    fill(self._message)
                    self._stand_for(self._message, None)
        return self._message

    # -- reading -----------------------------------------------------------------------------------

    @classmethod
    def FromString(cls, data: bytes | FileOctets) -> Any:
        """The message in `data`. Raises `DataLossError` when there is none."""
        message = cls()
        message.MergeFromString(data)
        return message

    def ParseFromString(self, data: bytes | FileOctets) -> int:
        """Replace this message by the one in `data`; returns the number of bytes. Raises `DataLossError`."""
        self._message.Clear()
        self._stand_for(self._message, None)
        return self.MergeFromString(data)

    def MergeFromString(self, data: Any) -> int:
        """Add the fields in `data` to this message; returns the number of bytes. Raises `DataLossError`."""
        message = self._whole()
        is_large = isinstance(data, (bytes, FileOctets)) and len(data) >= WORTHWHILE_BYTES
        if not is_large or message.ListFields():
            return int(message.MergeFromString(data[:] if isinstance(data, FileOctets) else data))
        rest, contents = taken_apart(data, self._layout)
        try:
            message.MergeFromString(rest)
        except DataLossError as error:
            raise DataLossError(error.message.replace(f"{len(rest)} bytes", f"{len(data)} bytes")) from error
        self._stand_for(message, contents)
        return len(data)

    # -- writing -----------------------------------------------------------------------------------

    def SerializeToString(self, deterministic: bool = True) -> bytes:
        """This message as bytes, map entries sorted unless `deterministic` is false.

        Raises `InvalidArgumentError` for more than 2 GiB, which protobuf does not write.
        """
        return b"".join(pieces_of(self, deterministic))

    # -- as protobuf's message ---------------------------------------------------------------------

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return self._kind

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") and not hasattr(self._kind, name):
            raise AttributeError(f"{self._kind.__name__} has no attribute {name!r}")
        has_none = name in self.DESCRIPTOR.fields_by_name and name not in self._marked
        return getattr(self._message if has_none else self._whole(), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._whole(), name, value)

    def __dir__(self) -> list[str]:
        return dir(self._message)

    def __eq__(self, other: object) -> bool:
        return bool(self._whole() == whole(other))

    __hash__ = None  # type: ignore[assignment]  # as messages, which may change

    def __contains__(self, name: object) -> bool:
        return name in self._whole()

    def __repr__(self) -> str:
        contents = self._contents
        if contents is None:
            return repr(self._message)
        # An error that shows this message would need several times its memory for the text of large contents.
        return f"<{type(self).__name__} with {contents.total:,} large bytes>"

    def __str__(self) -> str:
        return str(self._whole())

    def __reduce__(self) -> Any:
        return self._whole().__reduce__()


def whole(message: Any) -> Any:
    """protobuf's message behind one that stands in for it, with all its contents; any other value as it is."""
    if isinstance(message, list):
        return [whole(each) for each in message]
    return message._whole() if issubclass(type(message), StandIn) else message


def pieces_of(message: Any, deterministic: bool = True) -> Iterable[bytes]:
    """A message as bytes, piece by piece: its large contents are not copied. Raises as `SerializeToString`."""
    written: bytes = with_marks(message).SerializeToString(deterministic)
    pieces = Pieces(written)
    if pieces.size >= _MAX_BYTES:
        raise InvalidArgumentError(f"a {type(message).__name__} of more than 2 GiB cannot be written")
    return pieces


def with_marks(message: Any) -> Any:
    """protobuf's message behind one that stands in for it, with marks in place of contents that are apart.

    It is for reading only, and not for users: see `large_contents.content_of`. The marks are good as long as `message`
    is there.
    """
    return message._message if issubclass(type(message), StandIn) else message


def contents_of(message: Any) -> Contents | None:
    """What is kept apart from a message."""
    return message._contents if issubclass(type(message), StandIn) else None
