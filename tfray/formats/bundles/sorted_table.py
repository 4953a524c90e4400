"""Tables of keys and values in LevelDB's format, read whole: TensorFlow keeps the index of a checkpoint in one."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from tfray.errors import DataLossError
from tfray.formats.tfrecord import masked_checksum
from tfray.formats.wire import read_varint

MAGIC: Final = 0xDB4775248B80FB57
FOOTER_BYTES: Final = 48
TRAILER_BYTES: Final = 5
"""Bytes behind each block: one for its compression, four for the checksum of both."""

MAX_EXPANSION: Final = 64
"""How many times larger than its bytes a compressed block may claim to be. Snappy reaches 22; more is damage."""


def is_table(data: bytes) -> bool:
    """Whether bytes end as a table does."""
    return len(data) >= FOOTER_BYTES and data[-8:] == struct.pack("<Q", MAGIC)


def read_table(data: bytes) -> dict[bytes, bytes]:
    """The entries of a table, in its order.

    Raises:
        DataLossError: These bytes are no table, or damaged.
    """
    if not is_table(data):
        raise DataLossError("it does not end as a table does")
    footer = data[-FOOTER_BYTES:]
    (offset, size), at = _handle(footer, 0)
    _block(data, offset, size)  # about the table itself: nothing that is needed here, but it may not be damaged
    (offset, size), at = _handle(footer, at)
    if footer[at:-8].strip(b"\0"):
        raise DataLossError("its end is damaged")
    entries: dict[bytes, bytes] = {}
    end = 0
    for _, value in _entries(_block(data, offset, size)):
        (offset, size), _ = _handle(value, 0)
        if offset < end:  # blocks may not overlap: a small file could otherwise name one block any number of times
            raise DataLossError(f"the block at byte {offset} overlaps the one before, which ends at {end}")
        end = offset + size + TRAILER_BYTES
        entries.update(_entries(_block(data, offset, size)))
    return entries


def _handle(data: bytes, at: int) -> tuple[tuple[int, int], int]:
    """Offset and size of a block, and the position behind them."""
    offset, at = read_varint(data, at, len(data))
    size, at = read_varint(data, at, len(data))
    return (offset, size), at


def _block(data: bytes, offset: int, size: int) -> bytes:
    end = offset + size
    if end + TRAILER_BYTES > len(data) - FOOTER_BYTES:
        raise DataLossError(f"a block of {size} bytes at byte {offset} lies outside of the file")
    (stored,) = struct.unpack_from("<I", data, end + 1)
    if masked_checksum(data[offset : end + 1]) != stored:
        raise DataLossError(f"the block at byte {offset} does not fit its checksum")
    if data[end] == 0:
        return data[offset:end]
    if data[end] != 1:
        raise DataLossError(f"the block at byte {offset} is compressed in an unknown way ({data[end]})")
    return _decompressed(data[offset:end])


def _decompressed(data: bytes) -> bytes:
    import pyarrow

    size, _ = read_varint(data, 0, len(data))
    if size > MAX_EXPANSION * len(data):
        raise DataLossError(f"{len(data)} compressed bytes claim to be {size}")
    try:
        return bytes(pyarrow.decompress(data, size, codec="snappy", asbytes=True))
    except (OSError, ValueError) as error:
        raise DataLossError(f"a compressed block is damaged: {error}") from error


def _entries(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The entries of a block. Each key is given by what it has in common with the one before, and the rest."""
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
