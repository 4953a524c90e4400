"""Large contents of tensors, kept apart from the messages that have them.

protobuf copies all bytes that it reads, and copies contents again whenever it is asked for them. `taken_apart`
therefore takes large contents out of a message before protobuf sees it, and leaves a mark in place of each: a few bytes
that no file can hold, since they are drawn anew in each process. `content_of` gives the content for a mark. What lies
in a file is not read before that.
"""

from __future__ import annotations

import os
import re
import threading
import weakref
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, BinaryIO, Final

import numpy as np

from tfray.errors import DataLossError
from tfray.formats import files
from tfray.formats.wire import BYTES, read_fields, varint

WORTHWHILE_BYTES: Final = 16 << 20
"""A message of fewer bytes is read by protobuf as it is."""

_LARGE_BYTES: Final = 16 << 10
"""A content of fewer bytes stays in its message."""

_MAX_DEPTH: Final = 100
"""How deep messages may hold one another: protobuf's limit."""

_WINDOW_BYTES: Final = 64 << 10

_PREFIX: Final = os.urandom(16)
_MARK_BYTES: Final = len(_PREFIX) + 16

Octets = np.ndarray[Any, Any]
"""Bytes, as an array of uint8. Unlike where they stood in a message, they begin where any dtype may."""

Layout = Mapping[int, Any]
"""By the number of each field of a message that may hold contents, the layout of its messages; None for a content."""


class FileOctets:
    """The bytes of a file, read where they are asked for. It stays open as long as this object is needed.

    Args:
        path: Where it is.

    Raises:
        NotFoundError: There is no such file.
    """

    def __init__(self, path: files.PathLike) -> None:
        self._path = path
        self._file: BinaryIO = files.open_file(path)
        self._start, self._window = 0, b""
        with files.failures_of(path):
            self._size = self._file.seek(0, os.SEEK_END)

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, at: Any) -> Any:
        start, stop, _ = at.indices(self._size) if isinstance(at, slice) else (at, at + 1, 1)
        if stop - start > _WINDOW_BYTES:
            return self.read(start, stop - start)
        if not self._start <= start <= stop <= self._start + len(self._window):
            self._start, self._window = start, self.read(start, _WINDOW_BYTES)
        found = self._window[start - self._start : stop - self._start]
        return found if isinstance(at, slice) else found[0]

    def read(self, at: int, length: int) -> bytes:
        """Bytes from a position on; fewer where the file ends."""
        with files.failures_of(self._path):
            self._file.seek(at)
            return self._file.read(min(length, self._size - at))

    def fill(self, octets: Octets, at: int) -> None:
        """Read bytes from a position on. Raises `DataLossError` where the file ends before."""
        with files.failures_of(self._path):
            self._file.seek(at)
            there = self._file.readinto(octets.data)  # type: ignore[attr-defined]
        if there != len(octets):
            raise DataLossError(f"{files.as_path(self._path)} has become shorter while it was read")

    def close(self) -> None:
        """Close the file."""
        self._file.close()


@contextmanager
def octets_of(path: files.PathLike) -> Iterator[bytes | FileOctets]:
    """The bytes of a file: those of a large one are read where they are asked for, as long as something needs them.

    Raises:
        NotFoundError: There is no such file.
    """
    octets = FileOctets(path)
    if len(octets) >= WORTHWHILE_BYTES:
        weakref.finalize(octets, octets._file.close)
        yield octets
        return
    try:
        yield octets.read(0, len(octets))
    finally:
        octets.close()


class Contents:
    """The large contents of a message. Their marks are good as long as this object is there.

    Args:
        data: The bytes of the message, if it is made of bytes.
    """

    def __init__(self, data: bytes | FileOctets | None = None) -> None:
        self._data = data if isinstance(data, FileOctets) else None
        self._found: list[Octets | tuple[int, int]] = []
        self._lock = threading.Lock()
        self._name = os.urandom(8)
        _known[self._name] = self

    @property
    def total(self) -> int:
        """The sum of their lengths."""
        return sum(self.size(index + 1) for index in range(len(self._found)))

    def part(self, data: Any, start: int, stop: int) -> bytes:
        """Take in ``data[start:stop]``; returns its mark."""
        if self._data is not None:
            return self._mark((start, stop))
        return self._mark(_frozen(np.frombuffer(data, np.uint8, stop - start, start).copy()))

    def array(self, array: np.ndarray[Any, Any]) -> bytes:
        """The mark of an array that is large and does not change; the bytes of another one."""
        if array.nbytes < _LARGE_BYTES or array.flags.writeable or not array.flags.c_contiguous:
            return array.tobytes()
        return self._mark(array.reshape(-1).view(np.uint8))

    def _mark(self, found: Octets | tuple[int, int]) -> bytes:
        self._found.append(found)
        return _PREFIX + self._name + len(self._found).to_bytes(8)

    def size(self, index: int) -> int:
        """The length of the content with a number, from 1 on."""
        found = self._found[index - 1]
        return found[1] - found[0] if isinstance(found, tuple) else len(found)

    def octets(self, index: int) -> Octets:
        """The content with a number, from 1 on. Raises `DataLossError` where its file is not what it was."""
        with self._lock:
            found = self._found[index - 1]
            if isinstance(found, tuple):
                assert self._data is not None
                start, stop = found
                found = np.empty(stop - start, np.uint8)
                self._data.fill(found, start)
                self._found[index - 1] = _frozen(found)
            return found


_known: Final[weakref.WeakValueDictionary[bytes, Contents]] = weakref.WeakValueDictionary()


def _frozen(octets: Octets) -> Octets:
    octets.flags.writeable = False
    return octets


def content_of(content: bytes) -> bytes | Octets:
    """What a mark stands for. Other bytes stand for themselves."""
    if not _is_mark(content):
        return content
    owner, index = _place(content)
    return owner.octets(index)


def _is_mark(content: bytes) -> bool:
    return len(content) == _MARK_BYTES and content.startswith(_PREFIX)


def _place(mark: bytes) -> tuple[Contents, int]:
    return _known[mark[len(_PREFIX) : -8]], int.from_bytes(mark[-8:])


# -- taking messages apart -----------------------------------------------------------------------------


def taken_apart(data: bytes | FileOctets, layout: Layout) -> tuple[bytes, Contents | None]:
    """The bytes of a message with marks in place of large contents, and these; None where there are none.

    Bytes that are no message are returned as they are, for protobuf to find out.
    """
    if len(data) >= WORTHWHILE_BYTES:
        contents = Contents(data)
        try:
            rest = _marked(data, 0, len(data), layout, contents, 0)
        except DataLossError:
            rest = None
        if rest is not None:
            return rest, contents
    return data[:], None


def _marked(data: Any, start: int, stop: int, layout: Layout, contents: Contents, depth: int) -> bytes | None:
    """The message in ``data[start:stop]`` with marks; None where it has no large contents."""
    parts: list[bytes] = []
    kept = start  # from here on `data` has not been copied to `parts`
    begin = start
    for number, wire_type, at, end in read_fields(data, start, stop):
        if end - at >= _LARGE_BYTES and wire_type == BYTES and number in layout and depth < _MAX_DEPTH:
            inner = layout[number]
            if inner is None:
                new: bytes | None = contents.part(data, at, end)
            else:
                new = _marked(data, at, end, inner, contents, depth + 1)
            if new is not None:
                parts += [data[kept:begin], varint(number << 3 | BYTES), varint(len(new)), new]
                kept = end
        begin = end
    return b"".join([*parts, data[kept:stop]]) if parts else None


# -- putting them together -----------------------------------------------------------------------------


class Pieces:
    """The bytes of a message that has marks, with the contents in their place, piece by piece.

    Args:
        data: The message as protobuf writes it.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._marks = [found.start() for found in re.finditer(re.escape(_PREFIX), data)]
        self._pieces, self.size = self._expanded(0, len(data))

    def _expanded(self, start: int, stop: int) -> tuple[list[bytes], int]:
        pieces: list[bytes] = []
        size, kept, begin = 0, start, start
        for number, _, at, end in read_fields(self._data, start, stop):
            if bisect_left(self._marks, at) < bisect_left(self._marks, end):
                inner, length = [self._data[at:end]], 0
                if _is_mark(inner[0]):
                    owner, index = _place(inner[0])
                    length = owner.size(index)
                else:
                    inner, length = self._expanded(at, end)
                head = self._data[kept:begin] + varint(number << 3 | BYTES) + varint(length)
                pieces += [head, *inner]
                size += len(head) + length
                kept = end
            begin = end
        rest = self._data[kept:stop]
        return [*pieces, rest], size + len(rest)

    def __iter__(self) -> Iterator[Any]:
        return map(content_of, self._pieces)


def size_of(message: Any) -> int:
    """How many bytes a message that may have marks takes with its contents."""
    return Pieces(message.SerializeToString()).size


def marked_fields(message: Any) -> frozenset[str]:
    """The names of the fields of a message that hold marks at any depth."""
    return frozenset(field.name for field, value in message.ListFields() if any(map(_has_marks, _held(field, value))))


def fill(message: Any) -> None:
    """Put the contents back into a message, in place of their marks."""
    for field, value in message.ListFields():
        if isinstance(value, bytes):
            content = content_of(value)
            if content is not value:
                setattr(message, field.name, bytes(content))
        for each in _held(field, value):
            if _has_marks(each):
                fill(each)


def _has_marks(message: Any) -> bool:
    return _PREFIX in message.SerializePartialToString()


def _held(field: Any, value: Any) -> Iterable[Any]:
    """The messages in the value of a field: itself, or the elements of a list, or the values of a map."""
    if field.message_type is None:
        return []
    if hasattr(value, "ListFields"):
        return [value]
    return [each for each in (value.values() if isinstance(value, Mapping) else value) if hasattr(each, "ListFields")]
