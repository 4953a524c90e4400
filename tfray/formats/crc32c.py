"""CRC-32C (Castagnoli) of bytes, by the google-crc32c package: about 20 GB/s, and 0.4 us for a record of 1 KB."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import repeat
from typing import Any

import numpy as np


def crc32c(data: Any, before: int = 0) -> int:
    """The checksum of bytes; of all bytes so far if they follow those of which it was `before`."""
    octets = data if isinstance(data, bytes) else np.frombuffer(data, np.uint8)
    return int(_extend()(before, octets))


def crc32c_of_each(pieces: Sequence[bytes]) -> np.ndarray[Any, Any]:
    """The checksums of several byte strings, as uint32."""
    return np.fromiter(map(_extend(), repeat(0), pieces), np.uint32, len(pieces))


def crc32c_of_rows(rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The checksums of the rows of a matrix of bytes, as uint32; for many short rows."""
    tables = _tables(rows.shape[1])
    found = np.full(len(rows), crc32c(bytes(rows.shape[1])), np.uint32)
    for table, column in zip(tables, rows.T, strict=True):
        found ^= table[column]
    return found


@lru_cache(maxsize=4)
def _tables(size: int) -> np.ndarray[Any, Any]:
    """By place and byte: how a byte there changes the checksum of so many zeros. Such changes add up by xor."""
    extend, zeros = _extend(), bytes(size)
    changed = [zeros[:at] + bytes([octet]) + zeros[at + 1 :] for at in range(size) for octet in range(256)]
    found = np.fromiter(map(extend, repeat(0), changed), np.uint32, len(changed)).reshape(size, 256)
    return found ^ np.uint32(crc32c(zeros))


@lru_cache(maxsize=1)
def _extend() -> Any:
    import google_crc32c  # with the first checksum: ``import tfray`` does not wait for it

    return google_crc32c.extend
