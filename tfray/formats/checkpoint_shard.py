"""Shard files of checkpoints: Arrow IPC files with one record batch for each tensor, or slice of one.

The bytes of a tensor begin at a multiple of 64 in the file, those of a large tensor at a multiple of a page. So a
mapped file gives arrays without a copy. Padding in the metadata of each batch moves the bytes there. Writing makes no
copy of a whole tensor either. Every byte of a file is under one of three checksums: that of a tensor's data, that of
the header before the data, or that of the file's end.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, BinaryIO, Final

import numpy as np

from tfray.errors import DataLossError
from tfray.formats import direct_file, files
from tfray.formats.direct_file import DirectFile
from tfray.formats.mapped_file import MappedFile
from tfray.framework.dtypes import DType, as_dtype

ALIGNMENT: Final = 64
"""Bytes: data begins at a multiple of this in a file, and so in memory."""


def checksum(data: Any) -> int:
    """The xxh3 of bytes, 64 bits."""
    return _xxhash().xxh3_64_intdigest(data)


@lru_cache(maxsize=1)
def _xxhash() -> Any:
    import xxhash

    return xxhash


@lru_cache(maxsize=1)
def _pyarrow() -> Any:
    import pyarrow

    return pyarrow


@dataclass(frozen=True)
class SliceEntry:
    """Where a tensor, or a part of one, is.

    Attributes:
        file: Name of the file, within the folder of the checkpoint.
        offset: Where the part begins in each dimension of the tensor.
        shape: Shape of the part.
        position: Where its data begins in the file.
        length: Bytes of its data.
        checksum: Checksum of the data.
        header: Number of bytes before the data that belong to it.
        header_checksum: Checksum of these bytes.
    """

    file: str
    offset: Sequence[int]
    shape: Sequence[int]
    position: int
    length: int
    checksum: int
    header: int
    header_checksum: int

    def checked(self) -> SliceEntry:
        """This entry with its lists as tuples. Raises `ValueError` when something is no number that can be."""
        offset, shape = tuple(self.offset), tuple(self.shape)
        sizes = (*offset, *shape, self.position, self.length, self.header)
        sums = (self.checksum, self.header_checksum)
        if not all(type(size) is int and size >= 0 for size in (*sizes, *sums)) or self.header > self.position:
            raise ValueError(f"{self!r} is not a valid entry of a part of a tensor")
        return SliceEntry(
            str(self.file),
            offset,
            shape=shape,
            position=self.position,
            length=self.length,
            checksum=self.checksum,
            header=self.header,
            header_checksum=self.header_checksum,
        )


@dataclass(frozen=True)
class FileEntry:
    """A shard file.

    Attributes:
        name: Its name, within the folder of the checkpoint.
        size: Number of its bytes.
        end: Number of bytes behind the last tensor.
        end_checksum: Checksum of these bytes.
    """

    name: str
    size: int
    end: int
    end_checksum: int

    def checked(self) -> FileEntry:
        """This entry. Raises `ValueError` when something in it cannot be."""
        numbers = (self.size, self.end, self.end_checksum)
        if not all(type(number) is int and number >= 0 for number in numbers) or self.end > self.size:
            raise ValueError(f"{self!r} is not a valid entry of a file")
        if type(self.name) is not str or self.name in ("", ".", "..") or set("/\\\0") & set(self.name):
            raise ValueError(f"{self.name!r} is not the name of a shard file")
        return self


@dataclass(frozen=True)
class Piece:
    """A tensor to write, or a part of one.

    Attributes:
        name: Name of the tensor.
        array: The values: an array in this machine's memory, of strings as objects.
        full_shape: Shape of the whole tensor.
        offset: Where the part begins in each dimension.
    """

    name: str
    array: Any
    full_shape: Sequence[int]
    offset: Sequence[int]

    @classmethod
    def whole(cls, name: str, array: Any) -> Piece:
        """A tensor in one part."""
        array = np.asarray(array)
        return cls(name, array, array.shape, [0] * array.ndim)


@dataclass(frozen=True)
class ShardRecord:
    """What was written to a file.

    Attributes:
        file: The file.
        slices: ``(tensor, dtype, full shape, slice)`` for each piece.
    """

    file: FileEntry
    slices: Sequence[tuple[str, str, Sequence[int], SliceEntry]]


# -- writing -------------------------------------------------------------------------------------------


def write_shard(path: str, pieces: Iterable[Piece]) -> ShardRecord:
    """Write a file. Pieces are asked for one after the other.

    Args:
        path: Path of the file, which must not exist yet.
        pieces: What to write.
    """
    name = os.path.basename(path)
    with direct_file.open_new(path) as file, files.failures_of(path):
        sink = _Sink(file)
        with _pyarrow().ipc.new_file(sink, _schema()) as writer:
            slices = [(piece.name, *_write_piece(writer, sink, name, piece)) for piece in pieces]
        end, end_checksum = sink.flush_header()
    return ShardRecord(FileEntry(name, sink.written, end, end_checksum), slices)


class _Sink:
    """A file as Arrow writes to it. It finds where a tensor's data lies, and computes the checksum of all other bytes.

    Bytes that are no data are held back until the data comes: together they are the header of that data.
    """

    closed = False

    def __init__(self, file: BinaryIO | DirectFile) -> None:
        self._file = file
        self._header = bytearray()
        self.data: Any = None
        """The data that comes next, recognised by its address. Its checksum has been computed already."""
        self.placed: tuple[int, int, int] | None = None
        """Position of that data in the file, and length and checksum of its header; None before it is written."""
        self.written = 0

    def write(self, part: Any) -> int:
        size = len(part)
        data = self.data
        if data is not None and not isinstance(part, bytes) and size == data.size and part.address == data.address:
            header, header_checksum = self.flush_header()
            self.placed = self.written, header, header_checksum
            self._put(memoryview(part))
        else:
            self._header += part
        return size

    def flush_header(self) -> tuple[int, int]:
        """Write what was held back since the last data. Returns its length and checksum."""
        header, self._header = bytes(self._header), bytearray()
        self._put(memoryview(header))
        return len(header), checksum(header)

    def _put(self, rest: memoryview) -> None:
        self.written += direct_file.write_all(self._file, rest)

    def tell(self) -> int:
        return self.written + len(self._header)

    def flush(self) -> None:
        """Do nothing: headers are held back until their data comes."""

    def close(self) -> None:
        """Do nothing: `write_shard`, which opened the file, closes it."""

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False


def _write_piece(writer: Any, sink: _Sink, file: str, piece: Piece) -> tuple[str, Sequence[int], SliceEntry]:
    array = piece.array
    dtype, shape = as_dtype(array.dtype).name, list(array.shape)
    octets = to_octets(array)
    data = _pyarrow().py_buffer(octets)
    summed = checksum(octets)
    fields = piece.name, dtype, shape, list(piece.full_shape), list(piece.offset), summed
    header_length = _header_length(len(piece.name.encode()), len(dtype), array.ndim, sink.tell() == 0)
    padding = -(sink.tell() + header_length) % (ALIGNMENT if data.size < direct_file.LEAST_BYTES else direct_file.PAGE)
    sink.data, sink.placed = data if data.size else None, None
    writer.write_batch(_batch(fields, data), custom_metadata={"padding": " " * padding})
    position, header, header_checksum = sink.placed or (sink.tell(), 0, checksum(b""))
    part = SliceEntry(
        file,
        tuple(piece.offset),
        shape=tuple(shape),
        position=position,
        length=data.size,
        checksum=summed,
        header=header,
        header_checksum=header_checksum,
    )
    return dtype, list(piece.full_shape), part


@lru_cache(maxsize=4096)
def _header_length(name: int, dtype: int, rank: int, first: bool) -> int:
    """Number of bytes before the data of a batch without padding, found by writing one with fields of these lengths.

    The first batch of a file has more before it: the file's own header.
    """
    pa = _pyarrow()
    sink = pa.MockOutputStream()
    batch = _batch(("n" * name, "d" * dtype, *[[0] * rank] * 3, 0), pa.py_buffer(b""))
    with (pa.ipc.new_file if first else pa.ipc.new_stream)(sink, _schema()) as writer:
        if not first:
            writer.write_batch(batch.slice(0, 0), custom_metadata={"padding": ""})
        before = sink.size()
        writer.write_batch(batch, custom_metadata={"padding": ""})
        return int(sink.size() - before)


@lru_cache(maxsize=1)
def _schema() -> Any:
    pa = _pyarrow()
    sizes = pa.list_(pa.int64())
    return pa.schema(
        [
            ("name", pa.utf8()),
            ("dtype", pa.utf8()),
            ("shape", sizes),
            ("full_shape", sizes),
            ("offset", sizes),
            ("checksum", pa.uint64()),
            ("data", pa.large_binary()),
        ],
        metadata={"format": "tfray checkpoint"},
    )


def _batch(fields: tuple[Any, ...], data: Any) -> Any:
    pa = _pyarrow()
    bounds = pa.py_buffer(np.array([0, data.size], np.int64))
    columns = [pa.array([value], field.type) for value, field in zip(fields, _schema(), strict=False)]
    columns.append(pa.Array.from_buffers(pa.large_binary(), 1, [None, bounds, data]))
    return pa.record_batch(columns, schema=_schema())


def to_octets(array: Any) -> np.ndarray[Any, Any]:
    """The bytes of an array, without a copy if it is contiguous. For strings: all lengths, then all bytes."""
    if array.dtype == object:
        items = [bytes(item) for item in array.reshape(-1)]
        lengths = np.array([len(item) for item in items], "<u8")
        return np.frombuffer(lengths.tobytes() + b"".join(items), np.uint8)
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def from_octets(octets: np.ndarray[Any, Any], dtype: DType, shape: Sequence[int]) -> np.ndarray[Any, Any]:
    """The array of which `to_octets` gave the bytes, as a view of them. Raises `ValueError` if there is none."""
    if dtype.kind != "string":
        return octets.view(dtype.numpy).reshape(shape)
    count = int(np.prod(shape, dtype=np.int64))
    if octets.size < 8 * count:
        raise ValueError(f"{octets.size} bytes do not hold the lengths of {count} strings")
    lengths = octets[: 8 * count].view("<u8")
    text = octets[8 * count :].tobytes()
    if count and (int(lengths.max()) > len(text) or int(lengths.sum()) != len(text)):
        raise ValueError("the lengths of strings do not add up")
    ends = np.cumsum(lengths).tolist()
    array = np.empty(count, object)
    array[:] = [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    return array.reshape(shape)


# -- reading -------------------------------------------------------------------------------------------


class ShardFile:
    """A shard file, open for reading.

    Args:
        path: Where it is.
        entry: What the manifest says of it.

    Raises:
        DataLossError: It is missing, or not as long as it was.
    """

    def __init__(self, path: str, entry: FileEntry) -> None:
        self._path = path
        self._entry = entry
        self._file = MappedFile(path)
        self.size = self._file.size
        if self._file.size != entry.size:
            raise DataLossError(f"{path} is damaged: it has {self._file.size} bytes, of {entry.size} that were written")

    def read(self, name: str, dtype: DType, part: SliceEntry) -> Any:
        """The array of a slice: a view of the mapped file.

        Raises:
            DataLossError: A byte of it, or before it, is not as it was.
        """
        first = part.position - part.header
        octets = self._file.octets(first, part.header + part.length)
        header, data = octets[: part.header], octets[part.header :]
        if octets.size != part.header + part.length or checksum(header) != part.header_checksum:
            raise DataLossError(f"{self._path} is damaged before tensor {name!r} (bytes from {first} on)")
        if checksum(data) != part.checksum:
            where = f"{part.length} bytes from {part.position} on"
            raise DataLossError(f"{self._path} is damaged in tensor {name!r}: {where} do not fit their checksum")
        try:
            return from_octets(data, dtype, part.shape)
        except ValueError as error:
            raise DataLossError(f"{self._path} is damaged in tensor {name!r}: {error}") from error

    def check_end(self) -> None:
        """Raise `DataLossError` when a byte behind the last tensor is not as it was."""
        first = self._entry.size - self._entry.end
        if checksum(self._file.octets(first, self._entry.end)) != self._entry.end_checksum:
            raise DataLossError(f"{self._path} is damaged behind its last tensor (bytes from {first} on)")
