"""Images as PNG and sounds as WAV, from plain arrays."""

from __future__ import annotations

import struct
import zlib
from typing import Any, Final

import numpy as np

_COLOR_TYPES: Final = {1: 0, 2: 4, 3: 2, 4: 6}  # PNG's number of each kind of image, by the number of channels


def encode_png(pixels: np.ndarray[Any, Any], compression: int = -1) -> bytes:
    """The PNG file of an image.

    Args:
        pixels: uint8 or uint16 ``[height, width, channels]`` with 1 to 4 channels and no size 0.
        compression: From 0 (none) to 9 (most); -1 for a good compromise.
    """
    height, width, channels = pixels.shape
    size = pixels.dtype.itemsize
    lines = np.zeros((height, 1 + width * channels * size), np.uint8)  # each begins with the number of its filter, none
    lines[:, 1:] = pixels.astype(f">u{size}").reshape(height, -1).view(np.uint8)
    header = struct.pack(">IIBBBBB", width, height, 8 * size, _COLOR_TYPES[channels], 0, 0, 0)
    chunks = (b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), compression)), (b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join([_png_chunk(kind, content) for kind, content in chunks])


def _png_chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def encode_wav(samples: np.ndarray[Any, Any], sample_rate: int) -> bytes:
    """The WAV file of a sound, 16 bits a sample.

    Args:
        samples: Floats ``[frames, channels]`` between -1 and 1; others are cut off.
        sample_rate: Frames a second.
    """
    channels = samples.shape[1]
    scaled = samples.astype(np.float32) * np.float32(1 << 15)
    rounded = np.trunc(scaled + np.copysign(np.float32(0.5), scaled))  # halves go away from zero
    data = np.clip(rounded, -(1 << 15), (1 << 15) - 1).astype("<i2").tobytes()
    form = struct.pack("<HHIIHH", 1, channels, sample_rate, sample_rate * 2 * channels, 2 * channels, 16)
    body = b"WAVE" + _wav_chunk(b"fmt ", form) + _wav_chunk(b"data", data)
    return _wav_chunk(b"RIFF", body)


def _wav_chunk(kind: bytes, content: bytes) -> bytes:
    return kind + struct.pack("<I", len(content)) + content
