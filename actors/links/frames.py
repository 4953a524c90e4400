"""Frames: what travels on a link, as bytes.

A frame consists of its length, the length of its first part, that part (one MessagePack value ``[header, tensors]``),
and the raw data of the longer tensors, each at a multiple of 16 bytes. Reading a frame builds only dicts, tuples,
numbers, strings and arrays of numbers. The data of longer tensors are not copied: arrays are views of the frame.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgpack
import numpy as np

from tfray.errors import DataLossError
from tfray.framework.dtypes import as_dtype

MAX_FRAME_BYTES: Final = 1 << 30
"""A frame that claims to be longer, in bytes, is malformed: a bad peer cannot make this process reserve more memory."""

LENGTH: Final = struct.Struct("<I")
_LENGTHS: Final = struct.Struct("<II")

_RAW_BYTES: Final = 1 << 12
"""Data of tensors from this size on, in bytes, follow the first part of a frame: then reading does not copy them."""

_ALIGNMENT: Final = 16
"""Data of longer tensors begin at a multiple of this, in bytes."""

_idle_packers: Final[list[Any]] = []
"""Packers that are not in use, kept because a new one first allocates a large buffer."""

Header = Any
"""Plain data: a message, as `messages.plain` gives it."""

Tensors = Sequence[Any]


def encode(header: Header, tensors: Tensors = ()) -> bytes:
    """A frame of a header, of plain data, and tensors that `carriers.fits` admits."""
    return encode_packed(header, [PackedTensor.of(tensor) for tensor in tensors] if tensors else ())


def pack(value: Any) -> bytes:
    """Plain data as MessagePack."""
    try:
        packer = _idle_packers.pop()
    except IndexError:
        packer = msgpack.Packer()
    data: bytes = packer.pack(value)
    _idle_packers.append(packer)
    return data


def encode_packed(header: Header, tensors: Sequence[PackedTensor]) -> bytes:
    """As `encode`, for tensors that have been copied already."""
    buffers: list[bytes] = []
    for tensor in tensors:
        if len(tensor.data) >= _RAW_BYTES:
            tensors = [_without_data(each, buffers) for each in tensors]
            break
    message = pack([header, tensors])
    size = LENGTH.size + len(message)
    if not buffers:
        return _LENGTHS.pack(size, len(message)) + message
    parts = [message]
    for buffer in buffers:
        padding = -size % _ALIGNMENT
        parts += (bytes(padding), buffer)
        size += padding + len(buffer)
    return b"".join([_LENGTHS.pack(size, len(message)), *parts])


def _without_data(tensor: PackedTensor, buffers: list[bytes]) -> PackedTensor:
    """A tensor for the first part of a frame. Long data move to the end of `buffers`, and their size replaces them."""
    if isinstance(tensor.data, list) or len(tensor.data) < _RAW_BYTES:
        return tensor
    buffers.append(tensor.data)
    return tensor._replace(data=len(tensor.data))


class PackedTensor(NamedTuple):
    """A copy of a tensor, as it travels in a frame.

    Attributes:
        dtype: Name of its dtype.
        shape: Its shape, None for a scalar.
        data: Its bytes; for strings, a list of the bytes of each. In a frame, the number of bytes if they follow later.
    """

    dtype: str
    shape: Sequence[int] | None
    data: Any

    @classmethod
    def of(cls, value: Any) -> PackedTensor:
        """A copy of a tensor that `carriers.fits` admits."""
        if type(value) is np.ndarray and value.dtype.kind in "fiub":  # nearly all of them: without a further call
            return tuple.__new__(cls, (dtype_name(value.dtype), value.shape or None, value.tobytes()))
        if isinstance(value, np.generic):
            return cls(dtype_name(value.dtype), None, value.tobytes())
        array = np.asarray(value)
        if array.dtype.kind == "O":
            return cls("string", array.shape, list(array.reshape(-1)))
        return cls(dtype_name(array.dtype), array.shape or None, array.tobytes())

    def unpacked(self) -> Any:
        """The tensor, read-only; one of rank 0 as a NumPy scalar."""
        return _tensor(*self)


@lru_cache(maxsize=64)
def dtype_name(dtype: Any) -> str:
    return as_dtype(dtype).name


def decode(body: Any) -> tuple[Header, list[Any]]:
    """The header and the tensors that `encode` was given, from a frame without its length.

    Tensors are read-only; those of rank 0 are NumPy scalars.

    Raises:
        DataLossError: The frame is malformed.
    """
    try:
        (length,) = LENGTH.unpack_from(body)
        header, tensors = msgpack.unpackb(memoryview(body)[LENGTH.size : LENGTH.size + length], use_list=False)
        if not tensors:
            return header, []
        if len(body) > LENGTH.size + length:
            tensors = _with_data(tensors, bytes(body) if isinstance(body, memoryview) else body, length)
        return header, [_tensor(name, shape, data) for name, shape, data in tensors]
    except (
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        OverflowError,
        struct.error,
        msgpack.UnpackException,
    ) as error:
        raise DataLossError(f"malformed frame on a link between actors: {error!r}") from error


def _with_data(tensors: Sequence[Any], body: Any, length: int) -> Iterator[tuple[Any, Any, Any]]:
    """The tensors of a frame with their data; `length` is that of the frame's first part."""
    buffer = memoryview(body).toreadonly()
    end = LENGTH.size + length
    for name, shape, data in tensors:
        if isinstance(data, int):
            start = end + -end % _ALIGNMENT
            end = start + data
            if data < 0 or end > len(buffer):
                raise ValueError(f"{data} bytes of a tensor are missing")
            data = buffer[start:end]
        yield name, shape, data


def _tensor(name: Any, shape: Any, data: Any) -> Any:
    if name == "string":
        return _strings(shape, data)
    array = np.frombuffer(data, dtype_named(name))
    if shape is None:
        (scalar,) = array
        return scalar
    if shape and min(shape) < 0:
        raise ValueError(f"there is no shape {shape}")
    return array if len(shape) == 1 and shape[0] == len(array) else array.reshape(shape)


@lru_cache(maxsize=64)
def dtype_named(name: str) -> Any:
    dtype = as_dtype(name).numpy
    if dtype.hasobject:
        raise ValueError(f"a frame cannot carry {name}")
    return dtype


def _strings(shape: Sequence[int], items: Sequence[Any]) -> Any:
    if math.prod(shape) != len(items) or not all(isinstance(item, bytes) for item in items):
        raise ValueError(f"{len(items)} items are no strings of shape {shape}")
    strings = np.empty(len(items), object)
    strings[:] = items
    return strings.reshape(shape)


class FrameReader:
    """Puts frames together from the pieces in which a stream delivers them.

    Args:
        handle: Called with each frame, without its length.
    """

    def __init__(self, handle: Callable[[Any], None]) -> None:
        self.is_filling = False
        """Whether a long frame has begun. Its rest may be read straight into `wanted`."""
        self._handle = handle
        self._length = bytearray()
        self._body: Any = None
        self._filled = 0

    @property
    def wanted(self) -> memoryview | None:
        """The memory into which the rest of a long frame may be read. Call `filled` afterwards."""
        return None if self._body is None else memoryview(self._body)[self._filled :]

    def filled(self, count: int) -> None:
        """Note that `count` bytes have been read into `wanted`."""
        self._filled += count
        if self._filled == len(self._body):
            body, self._body, self._filled, self.is_filling = self._body, None, 0, False
            self._handle(body)

    def feed(self, piece: memoryview) -> None:
        """Take bytes as they come. Raises `DataLossError` for what cannot be a frame."""
        while piece:
            if self._body is not None:
                piece = self._fill(piece)
                continue
            if self._length or len(piece) < LENGTH.size:
                missing = LENGTH.size - len(self._length)
                self._length += piece[:missing]
                piece = piece[missing:]
                if len(self._length) < LENGTH.size:
                    return
                (length,) = LENGTH.unpack(self._length)
                self._length.clear()
            else:
                (length,) = LENGTH.unpack_from(piece)
                piece = piece[LENGTH.size :]
            if not 0 < length <= MAX_FRAME_BYTES:
                raise DataLossError(f"malformed frame on a link between actors: {length} bytes long")
            if length == len(piece):
                self._handle(piece)
                return
            if length < len(piece):
                self._handle(piece[:length])
                piece = piece[length:]
            else:
                self._body = np.empty(length, np.uint8)  # memory that is touched only as bytes come
                self.is_filling = True

    def _fill(self, piece: memoryview) -> memoryview:
        wanted = self.wanted
        assert wanted is not None
        count = min(len(wanted), len(piece))
        wanted[:count] = piece[:count]
        self.filled(count)
        return piece[count:]
