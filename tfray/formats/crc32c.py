"""CRC-32C (Castagnoli) of bytes, by the google-crc32c package: about 20 GB/s, and 0.4 us for a record of 1 KB."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np


def crc32c(data: Any, before: int = 0) -> int:
    """The checksum of bytes; of all bytes so far if they follow those of which it was `before`."""
    octets = data if isinstance(data, bytes) else np.frombuffer(data, np.uint8)
    return int(_extend()(before, octets))


def crc32c_of_pieces(octets: np.ndarray[Any, Any], starts: Any, ends: Any) -> np.ndarray[Any, Any]:
    """The checksums of pieces of an array, as uint32.

    Args:
        octets: The bytes.
        starts: Where pieces start.
        ends: Where they end.
    """
    extend, data = _extend(), octets.tobytes()
    pieces = zip(starts.tolist(), ends.tolist(), strict=True)
    return np.fromiter((extend(0, data[start:end]) for start, end in pieces), np.uint32, len(starts))


@lru_cache(maxsize=1)
def _extend() -> Any:
    import google_crc32c  # with the first checksum: ``import tfray`` does not wait for it

    return google_crc32c.extend
