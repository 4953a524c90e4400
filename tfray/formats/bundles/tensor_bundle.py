"""TensorFlow's checkpoints, format V2 ("tensor bundles"): an index in a sorted table, and files of raw data.

Every tensor has an entry under its name. The entry of a partitioned variable lists its slices. Each slice has an entry
of its own, under a key made of name and slice. Data has a masked CRC-32C, which is verified when a tensor is read.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np

from tfray.errors import DataLossError, UnimplementedError
from tfray.formats.checkpoint import TensorEntry, assemble, find_tensor
from tfray.formats.checkpoint_shard import SliceEntry, from_octets
from tfray.formats.declared_sizes import element_count
from tfray.formats.mapped_file import MappedFile
from tfray.formats.message import Field, Message
from tfray.formats.bundles.sorted_table import read_table
from tfray.formats.tensor_proto import DTYPE_NUMBERS, TensorShapeProto
from tfray.formats.tfrecord import masked_checksum
from tfray.formats.wire import read_varint
from tfray.framework import dtypes
from tfray.framework.dtypes import DType

_DTYPES: Final = {
    number: dtype for dtype, number in DTYPE_NUMBERS.items() if dtype not in (dtypes.resource, dtypes.variant)
}
_HEADER_KEY: Final = b""
_LITTLE_ENDIAN: Final = 0


class BundleHeader(Message):
    """What the index says of the whole: ``num_shards``, ``endianness``."""

    FIELDS = (Field(1, "num_shards", "int32"), Field(2, "endianness", "enum"))


class SliceExtent(Message):
    """A slice along one dimension: ``start``, and ``length`` unless it is the whole dimension."""

    FIELDS = (Field(1, "start", "int64"), Field(2, "length", "int64", oneof="has_length"))


class TensorSlice(Message):
    """A slice: ``extent`` for each dimension."""

    FIELDS = (Field(1, "extent", SliceExtent, repeated=True),)


class BundleEntry(Message):
    """A tensor: where it is, or the ``slices`` of which it is made."""

    FIELDS = (
        Field(1, "dtype", "enum"),
        Field(2, "shape", TensorShapeProto),
        Field(3, "shard_id", "int32"),
        Field(4, "offset", "int64"),
        Field(5, "size", "int64"),
        Field(6, "crc32c", "fixed32"),
        Field(7, "slices", TensorSlice, repeated=True),
    )


class TensorBundle:
    """A checkpoint of TensorFlow, open for reading.

    Args:
        prefix: Its path without ``.index``.
        index: Contents of the file of that suffix.

    Raises:
        DataLossError: The index is damaged.
        UnimplementedError: It was written on a machine with the other order of bytes.
    """

    def __init__(self, prefix: str, index: bytes) -> None:
        self.prefix = prefix
        self._path = f"{prefix}.index"
        self._files: dict[str, MappedFile] = {}
        try:
            self._table = read_table(index)
            header = BundleHeader.FromString(self._table.get(_HEADER_KEY, b""))
        except DataLossError as error:
            raise DataLossError(f"{self._path} is damaged: {error.message}") from error
        if header.endianness != _LITTLE_ENDIAN:
            raise UnimplementedError(f"{self._path} was written on a machine that stores the high byte first")
        if header.num_shards < 1:
            raise DataLossError(f"{self._path} is damaged: it has {header.num_shards} data files")
        self.shards = int(header.num_shards)
        """Number of its data files."""

    @cached_property
    def tensors(self) -> Mapping[str, TensorEntry]:
        """What is in it, by name. Tensors of dtypes that NumPy lacks are left out."""
        found = {}
        for key, value in self._table.items():
            if key == _HEADER_KEY or key.startswith(b"\0"):  # keys of slices begin so
                continue
            try:
                name, entry = key.decode(), BundleEntry.FromString(value)
                if entry.dtype in _DTYPES:
                    found[name] = self._tensor_entry(name, entry)
            except (UnicodeDecodeError, DataLossError) as error:
                reason = error.message if isinstance(error, DataLossError) else str(error)
                raise DataLossError(f"{self._path} is damaged in the entry of {key!r}: {reason}") from error
        return found

    def _tensor_entry(self, name: str, entry: BundleEntry) -> TensorEntry:
        dtype = _DTYPES[entry.dtype]
        shape = _sizes(entry, dtype)
        if not entry.slices:
            return TensorEntry(name, dtype, shape, (self._slice_entry(entry, dtype, [0] * len(shape), shape),))
        parts = []
        for extents in entry.slices:
            offset, sizes, key = _slice_of(extents, shape, name)
            value = self._table.get(key)
            if value is None:
                raise DataLossError(f"its slice at {offset} of shape {sizes} is missing")
            parts.append(self._slice_entry(BundleEntry.FromString(value), dtype, offset, sizes))
        return TensorEntry(name, dtype, shape, tuple(parts))

    def _slice_entry(self, entry: BundleEntry, dtype: DType, offset: Sequence[int], sizes: Sequence[int]) -> SliceEntry:
        if entry.offset < 0 or entry.size < 0 or not 0 <= entry.shard_id < self.shards:
            raise DataLossError("it lies in no file")
        if _DTYPES.get(entry.dtype) is not dtype or _sizes(entry, dtype) != tuple(sizes):
            raise DataLossError("a slice has another dtype or shape than the whole says")
        count = math.prod(sizes)
        if entry.size < count if dtype.kind == "string" else entry.size != count * dtype.size:
            raise DataLossError(f"{entry.size} bytes do not make shape {list(sizes)} of {dtype.name}")
        file = f"{self.prefix}.data-{entry.shard_id:05d}-of-{self.shards:05d}"
        return SliceEntry(
            file,
            tuple(offset),
            shape=tuple(sizes),
            position=entry.offset,
            length=entry.size,
            checksum=entry.crc32c,
            header=0,
            header_checksum=0,
        )

    def read(self, name: str, offset: Sequence[int] | None = None, shape: Sequence[int] | None = None) -> Any:
        """See `tfray.formats.checkpoint.CheckpointFiles.read`."""
        return assemble(find_tensor(self, name), offset, shape, self._read_slice, lambda file: self._file(file).size)

    def _file(self, path: str) -> MappedFile:
        if path not in self._files:
            self._files[path] = MappedFile(path)
        return self._files[path]

    def _read_slice(self, entry: TensorEntry, part: SliceEntry) -> Any:
        octets = self._file(part.file).octets(part.position, part.length)
        try:
            if octets.size != part.length:
                raise DataLossError(f"it has {octets.size} bytes from {part.position} on, of {part.length}")
            if entry.dtype.kind == "string":
                return _strings(octets.tobytes(), math.prod(part.shape), part.checksum).reshape(part.shape)
            if masked_checksum(octets.tobytes()) != part.checksum:
                raise DataLossError(f"{part.length} bytes from {part.position} on do not fit their checksum")
            return from_octets(_aligned(octets, entry.dtype), entry.dtype, part.shape)
        except DataLossError as error:
            raise DataLossError(f"{part.file} is damaged in tensor {entry.name!r}: {error.message}") from error


def _aligned(octets: np.ndarray[Any, Any], dtype: DType) -> np.ndarray[Any, Any]:
    return octets if octets.ctypes.data % max(1, dtype.size) == 0 else octets.copy()


def _sizes(entry: BundleEntry, dtype: DType) -> tuple[int, ...]:
    sizes = tuple(dim.size for dim in entry.shape.dim)
    try:
        if entry.shape.unknown_rank:
            raise ValueError("its shape is not known")
        element_count(sizes, dtype.size)
    except ValueError as error:
        raise DataLossError(str(error)) from error
    return sizes


def _strings(data: bytes, count: int, checksum: int) -> np.ndarray[Any, Any]:
    """Strings: the length of each, a checksum of the lengths, then all of them.

    The checksum of the lengths is computed over 32-bit numbers (64-bit ones where needed), not over the bytes written.
    """
    lengths, at = [], 0
    for _ in range(count):
        length, at = read_varint(data, at, len(data))
        lengths.append(length)
    summed = b"".join(struct.pack("<I" if length <= 0xFFFFFFFF else "<Q", length) for length in lengths)
    text = data[at + 4 :]
    if data[at : at + 4] != struct.pack("<I", masked_checksum(summed)):
        raise DataLossError("the lengths of its strings do not fit their checksum")
    if sum(lengths) != len(text) or masked_checksum(summed + data[at : at + 4] + text) != checksum:
        raise DataLossError("its strings do not fit their checksum")
    array = np.empty(count, object)
    start = 0
    for index, length in enumerate(lengths):
        array[index] = text[start : start + length]
        start += length
    return array


# -- the keys of slices --------------------------------------------------------------------------------


def _slice_of(extents: TensorSlice, shape: Sequence[int], name: str) -> tuple[list[int], list[int], bytes]:
    """Offset and shape of a slice, and its key in the index."""
    if len(extents.extent) != len(shape):
        raise DataLossError(f"a slice has {len(extents.extent)} dimensions, the tensor {len(shape)}")
    offset, sizes = [], []
    key = _ordered_number(0) + _ordered_text(name.encode()) + _ordered_number(len(shape))
    for extent, full in zip(extents.extent, shape, strict=True):
        whole = extent.WhichOneof("has_length") is None
        start, length = (0, full) if whole else (extent.start, extent.length)
        if start < 0 or length < 0 or start + length > full:
            raise DataLossError(f"a slice reaches from {start} on over {length} of {full}")
        offset.append(start)
        sizes.append(length)
        key += _ordered_signed(start) + _ordered_signed(-1 if whole else length)
    return offset, sizes, key


def _ordered_number(value: int) -> bytes:
    """A number in a form that sorts: its length in bytes, then the bytes, high ones first."""
    length = (value.bit_length() + 7) // 8
    return bytes([length]) + value.to_bytes(length, "big")


def _ordered_text(text: bytes) -> bytes:
    """Bytes in a form that sorts, with a mark at their end."""
    return text.replace(b"\xff", b"\xff\x00").replace(b"\0", b"\0\xff") + b"\0\1"


def _ordered_signed(value: int) -> bytes:
    """A number with sign in a form that sorts: the number of high bits that are set is its length in bytes."""
    length = (value ^ value >> 63).bit_length() // 7 + 1
    ones = ((1 << length) - 1) << (8 * length - length)  # as many bits as there are bytes, at the high end
    return (value & (1 << 8 * length) - 1 ^ ones).to_bytes(length, "big")
