"""TFRecord files: byte strings, each between its length and its checksum.

A record is the length in 8 bytes, a checksum of these, the data, and a checksum of the data. Compressed files are one
GZIP or ZLIB stream of records.
"""

from __future__ import annotations

import gzip
import io
import struct
import zlib
from collections.abc import Iterator
from itertools import chain
from typing import Any, BinaryIO, ClassVar, Final, cast

import numpy as np

from tfray.errors import DataLossError, FailedPreconditionError, InvalidArgumentError, OpError
from tfray.formats import files
from tfray.formats.crc32c import crc32c, crc32c_of_each, crc32c_of_rows

CHUNK_BYTES: Final = 256 << 10
"""256 KiB are read at a time, if a record does not need more."""
MAX_READ_BYTES: Final = 16 << 20
"""16 MiB are read at most at a time, so that a damaged length does not take all memory at once."""

HEADER_BYTES: Final = 12  # 8 of the length, 4 of its checksum
FOOTER_BYTES: Final = 4  # the checksum of the data
_LENGTH: Final = struct.Struct("<Q").unpack_from


class TFRecordCompressionType:
    """How a TFRecord file is compressed."""

    NONE: ClassVar[int] = 0
    ZLIB: ClassVar[int] = 1
    GZIP: ClassVar[int] = 2


_COMPRESSIONS: Final = {
    None: "",
    "": "",
    "NONE": "",
    "ZLIB": "ZLIB",
    "GZIP": "GZIP",
    TFRecordCompressionType.NONE: "",
    TFRecordCompressionType.ZLIB: "ZLIB",
    TFRecordCompressionType.GZIP: "GZIP",
}


class TFRecordOptions:
    """Options of TFRecord files.

    Args:
        compression_type: A value of `TFRecordCompressionType`, or ``"GZIP"``, ``"ZLIB"``, ``""`` or None.
        flush_mode: Accepted; zlib's own is used.
        input_buffer_size: Accepted, without effect.
        output_buffer_size: Accepted, without effect.
        window_bits: Accepted, without effect.
        compression_level: 0 (none) to 9 (best); None for zlib's own.
        compression_method: Accepted, without effect.
        mem_level: Accepted, without effect.
        compression_strategy: Accepted, without effect.
    """

    compression_type_map: ClassVar[dict[int, str]] = {0: "", 1: "ZLIB", 2: "GZIP"}

    def __init__(
        self,
        compression_type: Any = None,
        flush_mode: Any = None,
        input_buffer_size: int | None = None,
        output_buffer_size: int | None = None,
        window_bits: int | None = None,
        compression_level: int | None = None,
        compression_method: Any = None,
        mem_level: int | None = None,
        compression_strategy: Any = None,
    ) -> None:
        self.compression_type = compression_type
        self.compression_level = compression_level
        self.get_compression_type_string(compression_type)

    @classmethod
    def get_compression_type_string(cls, options: Any) -> str:
        """``""``, ``"GZIP"`` or ``"ZLIB"``, of options, a compression type, or None.

        Raises:
            InvalidArgumentError: There is no such compression.
        """
        kind = options.compression_type if isinstance(options, TFRecordOptions) else options
        try:
            return _COMPRESSIONS[kind]
        except (KeyError, TypeError):
            raise InvalidArgumentError(f"{kind!r} is not a compression of TFRecord files: GZIP, ZLIB or none") from None


def masked_checksum(data: Any, *more: Any) -> int:
    """The checksum as these files hold it: rotated and with a constant added, so that checksums of data that holds
    checksums stay good. It is that of the bytes of several buffers, one after the other."""
    checksum = crc32c(data)
    for each in more:
        checksum = crc32c(each, checksum)
    return ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _masked(checksums: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return ((checksums >> np.uint32(15)) | (checksums << np.uint32(17))) + np.uint32(0xA282EAD8)


# -- writing -------------------------------------------------------------------------------------------


class TFRecordWriter(files.Closing):
    """Writes a TFRecord file, also in a ``with`` block.

    Args:
        path: Where to; a file that is there is replaced.
        options: `TFRecordOptions`, or the name of a compression.
    """

    def __init__(self, path: files.PathLike, options: Any = None) -> None:
        self._path = files.as_path(path)
        compression = TFRecordOptions.get_compression_type_string(options)
        level = getattr(options, "compression_level", None)
        self._raw = files.open_file(self._path, "wb")
        self._file: Any = self._raw
        if compression == "GZIP":
            self._file = gzip.GzipFile(
                "", "wb", -1 if level is None else level, cast("gzip._WritableFileobj", self._raw), 0
            )
        elif compression == "ZLIB":
            self._file = _ZlibWriter(self._raw, -1 if level is None else level)

    def write(self, record: bytes) -> None:
        """Write a record: bytes, such as ``example.SerializeToString()``."""
        if not isinstance(record, (bytes, bytearray, memoryview)):
            raise InvalidArgumentError(
                f"a record is bytes, not a {type(record).__name__}: serialise it, or encode text"
            )
        if self._file.closed:
            raise FailedPreconditionError(f"{self._path}: the writer is closed")
        data = bytes(record)
        length = struct.pack("<Q", len(data))
        with files.failures_of(self._path):
            self._file.write(
                b"".join(
                    (
                        length,
                        struct.pack("<I", masked_checksum(length)),
                        data,
                        struct.pack("<I", masked_checksum(data)),
                    )
                )
            )

    def flush(self) -> None:
        """Hand what was written to the file system; compressed files stay incomplete until they are closed."""
        with files.failures_of(self._path):
            self._file.flush()

    def close(self) -> None:
        """Finish the file. Closing twice does nothing."""
        with files.failures_of(self._path):
            self._file.close()
            self._raw.close()


class _ZlibWriter:
    """A ZLIB stream that is written to a file."""

    def __init__(self, file: BinaryIO, level: int) -> None:
        self._file, self._stream, self.closed = file, zlib.compressobj(level), False

    def write(self, data: bytes) -> None:
        self._file.write(self._stream.compress(data))

    def flush(self) -> None:
        self._file.write(self._stream.flush(zlib.Z_SYNC_FLUSH))
        self._file.flush()

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._file.write(self._stream.flush())


# -- reading -------------------------------------------------------------------------------------------


class _ZlibReader(io.RawIOBase):
    """The uncompressed bytes of a ZLIB stream in a file."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._stream = file, zlib.decompressobj()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = b""
        while not data and not self._stream.eof:
            pending = self._stream.unconsumed_tail or self._file.read(CHUNK_BYTES)
            if not pending:
                raise EOFError("the compressed stream does not end")
            data = self._stream.decompress(pending, len(buffer))
        buffer[: len(data)] = data
        return len(data)


def tf_record_iterator(path: files.PathLike, options: Any = None) -> Iterator[bytes]:
    """The records of a TFRecord file. At its end, or within a record that is not whole yet, the iterator may be asked
    again: it goes on there when the file has grown, as readers of event files expect.

    Args:
        path: Where it is.
        options: `TFRecordOptions`, or the name of a compression.

    Raises:
        NotFoundError: There is no such file.
        DataLossError: The file ends within a record, or a checksum is wrong; the records before it are given first.
    """
    return _Records(path, options)


class _Records(Iterator[bytes]):
    def __init__(self, path: files.PathLike, options: Any) -> None:
        self._path, self._options = path, options
        self._records: Iterator[tuple[bytes, int]] | None = None
        self._offset = 0

    def __next__(self) -> bytes:
        self._records = self._records or read_records(self._path, self._options, self._offset)
        try:
            record, self._offset = next(self._records)
        except (StopIteration, OpError):
            self._records = None
            raise
        return record


def records_of(path: files.PathLike, options: Any = None) -> Iterator[bytes]:
    """As `tf_record_iterator`, but over at its end or at the first error: for files that do not grow."""
    return chain.from_iterable(records for records, _ in _read_batches(path, options))


def read_records(path: files.PathLike, options: Any = None, start: int = 0) -> Iterator[tuple[bytes, int]]:
    """The records of a TFRecord file, each with the (uncompressed) offset behind it. Raises as `tf_record_iterator`.

    Args:
        path: Where the file is.
        options: `TFRecordOptions`, or the name of a compression.
        start: Offset at which to start: 0, or one that was given here.
    """
    return chain.from_iterable(zip(records, ends, strict=True) for records, ends in _read_batches(path, options, start))


def _read_batches(path: files.PathLike, options: Any, start: int = 0) -> Iterator[tuple[list[bytes], list[int]]]:
    """Records of a file, several at a time, and the offset behind each."""
    compression = TFRecordOptions.get_compression_type_string(options)
    name = files.as_path(path)
    with files.open_file(path) as raw:
        file: Any = raw
        if compression == "GZIP":
            file = gzip.GzipFile(fileobj=raw, mode="rb")
        elif compression == "ZLIB":
            file = io.BufferedReader(_ZlibReader(raw), CHUNK_BYTES)
        reader = _Reader(name, file, start)
        while (batch := reader.next_batch())[0]:
            yield batch
            if reader.failure is not None:
                raise reader.failure


class _Reader:
    """Reads records by chunks, so that checksums are computed for many at once."""

    def __init__(self, path: str, file: Any, start: int) -> None:
        self._path = path
        self._file = file
        self._buffer = b""
        self._base = start
        """Offset in the file at which the buffer starts."""
        self.failure: DataLossError | None = None
        """The error of the record behind those given last; None if it has not been found bad."""
        self._skip(start)

    def _skip(self, count: int) -> None:
        while count > 0:
            chunk = self._read(min(count, MAX_READ_BYTES))
            if not chunk:
                raise self._loss(0, "the file ends before this offset")
            count -= len(chunk)

    def _read(self, count: int) -> bytes:
        with files.failures_of(self._path):
            try:
                return cast(bytes, self._file.read(count))
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                what = f"{self._path}: after offset {self._base} of what it holds: {error}"
                raise DataLossError(what) from error

    def _loss(self, at: int, what: str) -> DataLossError:
        return DataLossError(f"{self._path}: record at offset {self._base + at}: {what}")

    def next_batch(self) -> tuple[list[bytes], list[int]]:
        """Some records, and the offset behind each; none at the end.

        Raises:
            DataLossError: The first of the next records is bad. When a later one is, `failure` is set.
        """
        starts, at = self._whole_records()
        while not starts:
            if not self._extend(max(self._needed(), CHUNK_BYTES)):
                if self._buffer:
                    raise self._loss(0, f"the file ends within it: {len(self._buffer)} bytes are there")
                return [], []
            starts, at = self._whole_records()
        records = self._check(starts, at)
        self._buffer = self._buffer[at:]
        self._base += at
        return records

    def _extend(self, count: int) -> bool:
        """Read `count` bytes more, or what is left. Takes no more memory than the file has bytes."""
        parts = [self._buffer]
        while count > 0 and (chunk := self._read(min(count, MAX_READ_BYTES))):
            parts.append(chunk)
            count -= len(chunk)
        self._buffer = b"".join(parts)
        return len(parts) > 1

    def _needed(self) -> int:
        """How many more bytes the record at the start of the buffer takes; its length is checked first."""
        if len(self._buffer) < HEADER_BYTES:
            return HEADER_BYTES - len(self._buffer)
        length, checksum = struct.unpack_from("<QI", self._buffer)
        if masked_checksum(self._buffer[:8]) != checksum:
            raise self._loss(0, "the checksum of its length is wrong")
        return int(length) + HEADER_BYTES + FOOTER_BYTES - len(self._buffer)

    def _whole_records(self) -> tuple[list[int], int]:
        """Where the records start that the buffer holds in full, and where the last one ends."""
        buffer, starts, at = self._buffer, [], 0
        size, besides = len(buffer), HEADER_BYTES + FOOTER_BYTES
        last = size - besides
        while at <= last:
            (length,) = _LENGTH(buffer, at)
            end = at + length + besides
            if end > size:
                break
            starts.append(at)
            at = end
        return starts, at

    def _check(self, starts: list[int], end: int) -> tuple[list[bytes], list[int]]:
        """The records that start there, up to the first with a wrong checksum, and the offset behind each."""
        first = np.array(starts)
        behind = np.append(first[1:], end)
        octets = np.frombuffer(self._buffer, np.uint8)
        lengths = octets[first[:, None] + np.arange(8)]
        lengths_fine = _masked(crc32c_of_rows(lengths)) == _stored(octets, first + 8)
        begins, ends = first + HEADER_BYTES, behind - FOOTER_BYTES
        records = list(map(self._buffer.__getitem__, map(slice, begins.tolist(), ends.tolist())))
        data_fine = _masked(crc32c_of_each(records)) == _stored(octets, ends)
        good = int(np.argmin(np.append(lengths_fine & data_fine, False)))
        if good < len(starts):
            what = "data" if lengths_fine[good] else "length"
            self.failure = self._loss(starts[good], f"the checksum of its {what} is wrong")
            if good == 0:
                raise self.failure
        return records[:good], (behind[:good] + self._base).tolist()


def _stored(octets: np.ndarray[Any, Any], at: Any) -> np.ndarray[Any, Any]:
    """The numbers of four bytes at these positions."""
    return octets[at[:, None] + np.arange(4)].view("<u4")[:, 0]
