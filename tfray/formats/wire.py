"""The wire form of protocol buffers: numbers of variable length, and fields with their tags.

The bytes may be anything: every length is checked against the bytes that are there before it is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from tfray.errors import DataLossError

VARINT: Final = 0
FIXED64: Final = 1
BYTES: Final = 2
FIXED32: Final = 5

Bytes = bytes | memoryview
"""Bytes to read; a view of a file needs no copy."""

MAX_VARINT_BYTES: Final = 10  # 64 bits, 7 in each byte
_MASK: Final = (1 << 64) - 1
_FEW: Final = 24
"""Below this many numbers a plain loop is faster than NumPy."""


def read_varint(data: Bytes, at: int, end: int) -> tuple[int, int]:
    """The unsigned number at a position, and the position behind it.

    Raises:
        DataLossError: The number does not end before `end`, or is longer than 64 bits.
    """
    if at < end and data[at] < 0x80:
        return data[at], at + 1
    if at + 1 < end and data[at + 1] < 0x80:
        return data[at] & 0x7F | data[at + 1] << 7, at + 2
    value = 0
    for index, byte in enumerate(data[at : min(at + MAX_VARINT_BYTES, end)]):
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value & _MASK, at + index + 1
    raise DataLossError(f"a number at byte {at} does not end")


def varint(value: int) -> bytes:
    """An unsigned number on the wire."""
    written = bytearray()
    while value >= 0x80:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)


def read_fields(data: Bytes, start: int = 0, end: int | None = None) -> Iterator[tuple[int, int, int, int]]:
    """The fields of a message in ``data[start:end]``.

    Yields:
        ``(number, wire type, start, end)``: the bytes of the value, without the length of a delimited one.

    Raises:
        DataLossError: These bytes are no message.
    """
    end = len(data) if end is None else end
    while start < end:
        key, at = read_varint(data, start, end)
        number, wire_type = key >> 3, key & 7
        if wire_type == BYTES:
            length, at = read_varint(data, at, end)
        elif wire_type == VARINT:
            length = read_varint(data, at, end)[1] - at
        elif wire_type in (FIXED32, FIXED64):
            length = 4 if wire_type == FIXED32 else 8
        else:
            raise DataLossError(f"byte {start} begins a field of unknown wire type {wire_type}")
        if number == 0 or length > end - at:
            raise DataLossError(f"the field {number} at byte {start} is {length} bytes long; {end - at} are left")
        yield number, wire_type, at, at + length
        start = at + length


def decode_varints(data: Any) -> np.ndarray[Any, Any]:
    """Numbers that follow each other, as int64. Raises `DataLossError`."""
    if len(data) < _FEW:
        values, at, end = [], 0, len(data)
        while at < end:
            value, at = read_varint(data, at, end)
            values.append(value)
        return np.array(values, np.uint64).view(np.int64)
    octets = np.frombuffer(data, np.uint8)
    if octets[-1] >= 0x80:
        raise DataLossError("the last of a list of numbers does not end")
    last = np.flatnonzero(octets < 0x80)
    first = np.concatenate([[0], last[:-1] + 1])
    return gather_varints(octets, first, last - first + 1)


def gather_varints(octets: np.ndarray[Any, Any], first: Any, lengths: Any) -> np.ndarray[Any, Any]:
    """Numbers that begin at the positions `first` and have these lengths, as int64. Raises `DataLossError`."""
    longest = int(lengths.max()) if lengths.size else 0
    if longest > MAX_VARINT_BYTES:
        raise DataLossError("a number in a list of numbers is longer than 64 bits")
    data = np.concatenate([octets, np.zeros(8, np.uint8)])
    # Element i is the 8-byte word at byte i: a view with a stride of one byte, so the words overlap.
    words = np.ndarray((len(octets) + 1,), "<u8", data, 0, (1,))
    values = words[first] & _OCTETS[np.minimum(lengths, 8)]
    for bits, low in _HALVES:  # 7 bits of each byte, then 14 of each pair, then 28 of each four, move together
        values = (values & low) | ((values >> np.uint64(bits)) & (low << np.uint64(7 * bits)))
    for index in range(8, longest):
        longer = np.flatnonzero(lengths > index)
        part = (octets[first[longer] + index] & 0x7F).astype(np.uint64)
        values[longer] |= part << np.uint64(7 * index)
    return values.view(np.int64)


_OCTETS: Final = np.array([0x7F7F7F7F7F7F7F7F & ((1 << 8 * count) - 1) for count in range(9)], np.uint64)
"""By the length of a number, the bits of it in the first 8 bytes."""

_HALVES: Final = (
    (1, np.uint64(0x007F007F007F007F)),
    (2, np.uint64(0x00003FFF00003FFF)),
    (4, np.uint64(0x000000000FFFFFFF)),
)
"""By how many bits the upper of two neighbours moves down, and the bits of the lower ones."""
