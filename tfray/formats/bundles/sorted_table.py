"""Tables of sorted keys and values in LevelDB's format, which both formats of TensorFlow's checkpoints are made of.

A table is a row of blocks, each under a checksum. In a block a key is given by what it has in common with the one
before, and the rest; every so many keys one is whole (a restart), and the block's end says where these are. A last
block, the index, says for each other one where it is, and a key that is not before its last one. The footer says where
the index is.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Any, Final, Protocol

import numpy as np

from tfray.errors import DataLossError
from tfray.formats.tfrecord import masked_checksum
from tfray.formats.wire import read_varint, varint

MAGIC: Final = 0xDB4775248B80FB57
FOOTER_BYTES: Final = 48
TRAILER_BYTES: Final = 5
"""Bytes behind each block: one for its compression, four for the checksum of both."""

BLOCK_BYTES: Final = 256 << 10
"""256 KiB: the size from which a block that is written ends."""

RESTART_INTERVAL: Final = 16
"""Every so many keys, one is written whole."""

MAX_EXPANSION: Final = 64
"""How many times larger than its bytes a compressed block may claim to be. Snappy reaches 22; more is damage."""


class Octets(Protocol):
    """A file, or bytes in memory, of which parts are read."""

    @property
    def size(self) -> int:
        """How many there are."""

    def octets(self, position: int, length: int) -> np.ndarray[Any, Any]:
        """Bytes from a position on; fewer at the end."""


class OctetsInMemory:
    """Bytes that have been read."""

    def __init__(self, data: bytes) -> None:
        self._data = np.frombuffer(data, np.uint8)
        self.size = len(data)

    def octets(self, position: int, length: int) -> np.ndarray[Any, Any]:
        """See `Octets`."""
        return self._data[position : position + length]


def is_table(data: bytes) -> bool:
    """Whether bytes end as a table does."""
    return len(data) >= FOOTER_BYTES and data[-8:] == struct.pack("<Q", MAGIC)


# -- reading -------------------------------------------------------------------------------------------


class SortedTable:
    """A table, open for reading. Of its blocks, only the index is read before it is needed.

    Args:
        source: Where its bytes are.

    Raises:
        DataLossError: These bytes are no table, or its index is damaged.
    """

    def __init__(self, source: Octets) -> None:
        self._source = source
        footer = source.octets(max(0, source.size - FOOTER_BYTES), FOOTER_BYTES).tobytes()
        if not is_table(footer):
            raise DataLossError("it does not end as a table does")
        (offset, size), at = _handle(footer, 0)
        self._block(offset, size)  # about the table itself: nothing that is needed here, but it may not be damaged
        (offset, size), at = _handle(footer, at)
        if footer[at:-8].strip(b"\0"):
            raise DataLossError("its end is damaged")
        self._last_keys: list[bytes] = []
        self._handles: list[tuple[int, int]] = []
        self._block_read_last: tuple[int, dict[bytes, memoryview]] = -1, {}
        end = 0
        for key, value in _entries(self._block(offset, size)):
            (offset, size), _ = _handle(value, 0)
            if offset < end:  # blocks may not overlap: a small file could otherwise name one block any number of times
                raise DataLossError(f"the block at byte {offset} overlaps the one before, which ends at {end}")
            end = offset + size + TRAILER_BYTES
            self._last_keys.append(key)
            self._handles.append((offset, size))

    def items(self) -> Iterator[tuple[bytes, memoryview]]:
        """The entries in their order. Raises `DataLossError` at the first block that is damaged."""
        for handle in self._handles:
            yield from _entries(self._block(*handle))

    def get(self, key: bytes) -> memoryview | None:
        """The value of a key, or None. Raises `DataLossError` if the block that may have it is damaged."""
        index = bisect_left(self._last_keys, key)
        if index == len(self._handles):
            return None
        known, entries = self._block_read_last
        if known != index:
            entries = dict(_entries(self._block(*self._handles[index])))
            self._block_read_last = index, entries
        return entries.get(key)

    def _block(self, offset: int, size: int) -> memoryview:
        end = offset + size
        if end + TRAILER_BYTES > self._source.size - FOOTER_BYTES:
            raise DataLossError(f"a block of {size} bytes at byte {offset} lies outside of the file")
        stored = self._source.octets(offset, size + TRAILER_BYTES).data
        if len(stored) < size + TRAILER_BYTES:
            raise DataLossError(f"a block of {size} bytes at byte {offset} is cut off")
        (checksum,) = struct.unpack_from("<I", stored, size + 1)
        if masked_checksum(stored[: size + 1]) != checksum:
            raise DataLossError(f"the block at byte {offset} does not fit its checksum")
        if stored[size] == 0:
            return stored[:size]
        if stored[size] != 1:
            raise DataLossError(f"the block at byte {offset} is compressed in an unknown way ({stored[size]})")
        return _decompressed(stored[:size])


def read_table(data: bytes) -> dict[bytes, bytes]:
    """The entries of a table, in its order.

    Raises:
        DataLossError: These bytes are no table, or damaged.
    """
    return {key: bytes(value) for key, value in SortedTable(OctetsInMemory(data)).items()}


def _handle(data: Any, at: int) -> tuple[tuple[int, int], int]:
    """Offset and size of a block, and the position behind them."""
    offset, at = read_varint(data, at, len(data))
    size, at = read_varint(data, at, len(data))
    return (offset, size), at


def _decompressed(data: memoryview) -> memoryview:
    import pyarrow

    size, _ = read_varint(data, 0, len(data))
    if size > MAX_EXPANSION * len(data):
        raise DataLossError(f"{len(data)} compressed bytes claim to be {size}")
    try:
        return memoryview(pyarrow.decompress(data, size, codec="snappy"))
    except (OSError, ValueError) as error:
        raise DataLossError(f"a compressed block is damaged: {error}") from error


def _entries(block: memoryview) -> Iterator[tuple[bytes, memoryview]]:
    """The entries of a block."""
    if len(block) < 4:
        raise DataLossError("a block is too short")
    (restarts,) = struct.unpack_from("<I", block, len(block) - 4)
    end = len(block) - 4 * (restarts + 1)
    if end < 0:
        raise DataLossError(f"a block claims {restarts} restarts")
    at, key, keys = 0, b"", 0
    while at < end:
        shared, at = read_varint(block, at, end)
        rest, at = read_varint(block, at, end)
        length, at = read_varint(block, at, end)
        if shared > len(key) or rest + length > end - at:
            raise DataLossError("an entry of a block reaches beyond it")
        key = key[:shared] + block[at : at + rest]
        at += rest
        keys += len(key)
        if keys > MAX_EXPANSION * len(block) + MAX_EXPANSION:
            raise DataLossError(f"the keys of a block of {len(block)} bytes have more than {keys - len(key)}")
        yield key, block[at : at + length]
        at += length


# -- writing -------------------------------------------------------------------------------------------


def table_bytes(entries: Iterable[tuple[bytes, bytes]]) -> bytes:
    """A table.

    Args:
        entries: Keys with their values, sorted by their keys, which differ.
    """
    written = bytearray()

    def add(block: _Block) -> bytes:
        """Write a block. Returns its place, as other blocks name it."""
        contents = block.to_bytes()
        handle = varint(len(written)) + varint(len(contents))
        trailed = contents + b"\0"  # not compressed
        written.extend(trailed + struct.pack("<I", masked_checksum(trailed)))
        return handle

    block, index = _Block(RESTART_INTERVAL), _Block(1)
    for key, value in entries:
        block.add(key, value)
        if block.size >= BLOCK_BYTES:
            index.add(key, add(block))
            block = _Block(RESTART_INTERVAL)
    if block.size:
        index.add(block.key, add(block))
    footer = add(_Block(1)) + add(index)
    written.extend(footer.ljust(FOOTER_BYTES - 8, b"\0") + struct.pack("<Q", MAGIC))
    return bytes(written)


class _Block:
    """A block that is being made, with a whole key at every `interval` entries."""

    def __init__(self, interval: int) -> None:
        self._interval = interval
        self._contents = bytearray()
        self._restarts = [0]
        self._count = 0
        self.key = b""
        """The last key."""

    @property
    def size(self) -> int:
        return len(self._contents)

    def add(self, key: bytes, value: bytes) -> None:
        shared = 0
        if self._count % self._interval:
            while shared < min(len(key), len(self.key)) and key[shared] == self.key[shared]:
                shared += 1
        elif self._count:
            self._restarts.append(len(self._contents))
        self._contents += varint(shared) + varint(len(key) - shared) + varint(len(value)) + key[shared:] + value
        self.key = key
        self._count += 1

    def to_bytes(self) -> bytes:
        return bytes(self._contents) + struct.pack(f"<{len(self._restarts) + 1}I", *self._restarts, len(self._restarts))
