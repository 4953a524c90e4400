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
from tfray.formats.bundles.slice_keys import FIRST_BYTE, TensorSlice, slice_of
from tfray.formats.bundles.sorted_table import read_table
from tfray.formats.checkpoint import TensorEntry, assemble, find_tensor
from tfray.formats.checkpoint_shard import SliceEntry, from_octets
from tfray.formats.declared_sizes import element_count
from tfray.formats.graph_proto import VersionDef
from tfray.formats.mapped_file import MappedFile
from tfray.formats.message import Field, Message
from tfray.formats.tensor_proto import TENSOR_DTYPES, TensorShapeProto
from tfray.formats.tfrecord import masked_checksum
from tfray.formats.wire import read_varint
from tfray.framework.dtypes import DType

HEADER_KEY: Final = b""
"""Key of the header: it sorts before all others."""
_LITTLE_ENDIAN: Final = 0


class BundleHeader(Message):
    """What the index says of the whole: ``num_shards``, ``endianness``, ``version``."""

    FIELDS = (Field(1, "num_shards", "int32"), Field(2, "endianness", "enum"), Field(3, "version", VersionDef))


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


def bundle_data_name(prefix: str, shard: int, count: int) -> str:
    """The name of a data file, or its path."""
    return f"{prefix}.data-{shard:05d}-of-{count:05d}"


class TensorBundle:
    """A checkpoint of TensorFlow, open for reading.

    Args:
        prefix: Its path without ``.index``.
        index: Contents of the file of that suffix.

    Raises:
        DataLossError: The index is damaged.
        UnimplementedError: It was written on a machine with the other order of bytes.
    """

    format_name = "TensorFlow V2"

    def __init__(self, prefix: str, index: bytes) -> None:
        self.prefix = prefix
        self._path = f"{prefix}.index"
        self._files: dict[str, MappedFile] = {}
        try:
            self._table = read_table(index)
            header = BundleHeader.FromString(self._table.get(HEADER_KEY, b""))
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
            if key == HEADER_KEY or key.startswith(FIRST_BYTE):
                continue
            try:
                name, entry = key.decode(), BundleEntry.FromString(value)
                if entry.dtype in TENSOR_DTYPES:
                    found[name] = self._tensor_entry(name, entry)
            except (UnicodeDecodeError, DataLossError) as error:
                reason = error.message if isinstance(error, DataLossError) else str(error)
                raise DataLossError(f"{self._path} is damaged in the entry of {key!r}: {reason}") from error
        return found

    def _tensor_entry(self, name: str, entry: BundleEntry) -> TensorEntry:
        dtype = TENSOR_DTYPES[entry.dtype]
        shape = _sizes(entry, dtype)
        if not entry.slices:
            return TensorEntry(name, dtype, shape, (self._slice_entry(entry, dtype, [0] * len(shape), shape),))
        parts = []
        for extents in entry.slices:
            offset, sizes, key = slice_of(extents, shape, name)
            value = self._table.get(key)
            if value is None:
                raise DataLossError(f"its slice at {offset} of shape {sizes} is missing")
            parts.append(self._slice_entry(BundleEntry.FromString(value), dtype, offset, sizes))
        return TensorEntry(name, dtype, shape, tuple(parts))

    def _slice_entry(self, entry: BundleEntry, dtype: DType, offset: Sequence[int], sizes: Sequence[int]) -> SliceEntry:
        if entry.offset < 0 or entry.size < 0 or not 0 <= entry.shard_id < self.shards:
            raise DataLossError("it lies in no file")
        if TENSOR_DTYPES.get(entry.dtype) is not dtype or _sizes(entry, dtype) != tuple(sizes):
            raise DataLossError("a slice has another dtype or shape than the whole says")
        count = math.prod(sizes)
        if entry.size < count if dtype.kind == "string" else entry.size != count * dtype.size:
            raise DataLossError(f"{entry.size} bytes do not make shape {list(sizes)} of {dtype.name}")
        file = bundle_data_name(self.prefix, entry.shard_id, self.shards)
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
                return _strings(octets.data, math.prod(part.shape), part.checksum).reshape(part.shape)
            if masked_checksum(octets) != part.checksum:
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


def _strings(data: memoryview, count: int, checksum: int) -> np.ndarray[Any, Any]:
    """Strings from the form that `tfray.formats.bundles.bundle_writer.encoded_strings` gives them."""
    array, at = np.empty(count, object), 0
    lengths = np.empty(count, np.int64)
    for index in range(count):
        lengths[index], at = read_varint(data, at, len(data))
    text = data[at + 4 :]
    if lengths.min(initial=0) < 0 or int(lengths.max(initial=0)) > len(text) or int(lengths.sum()) != len(text):
        raise DataLossError("its strings have another length than it says")
    summed = lengths.astype("<u4").tobytes()
    if int(lengths.max(initial=0)) > 0xFFFFFFFF:
        summed = b"".join(struct.pack("<I" if n <= 0xFFFFFFFF else "<Q", n) for n in lengths.tolist())
    if bytes(data[at : at + 4]) != struct.pack("<I", masked_checksum(summed)):
        raise DataLossError("the lengths of its strings do not fit their checksum")
    if masked_checksum(summed, data[at:]) != checksum:
        raise DataLossError("its strings do not fit their checksum")
    start = 0
    for index, length in enumerate(lengths.tolist()):
        array[index] = bytes(text[start : start + length])
        start += length
    return array
