"""TensorFlow's checkpoints, format V1: sorted tables of tensors as messages, in one file or in one for each shard.

The first entry of a file lists its tensors, with the slices in which each was saved. Every slice has an entry of its
own, whose key is made of name and slice. Values are lists of numbers in messages; they are read from the file's bytes
without making a message of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from tfray.errors import DataLossError
from tfray.formats import files, wire
from tfray.formats.bundles.slice_keys import TensorSlice, slice_of
from tfray.formats.bundles.sorted_table import MAX_EXPANSION, SortedTable
from tfray.formats.checkpoint import TensorEntry, assemble, find_tensor
from tfray.formats.checkpoint_shard import SliceEntry
from tfray.formats.declared_sizes import element_count
from tfray.formats.graph_proto import VersionDef
from tfray.formats.mapped_file import MappedFile
from tfray.formats.message import Field, Message
from tfray.formats.tensor_proto import TENSOR_DTYPES, TensorShapeProto, list_field
from tfray.framework.dtypes import DType

_META_KEY: Final = b""
_DATA: Final = 2
"""Number of the field of an entry that holds a slice, and in it that of its values."""
_VALUES: Final = 3
_CHUNK_BYTES: Final = 64 << 10
"""64 KiB of numbers are decoded at a time: this takes some forty times their memory."""
_WIDEST: Final = 8
"""Bytes of a number that may take one byte in the file."""
_SHARDS: Final = re.compile(r".*-\?{5}-of-\d{5}", re.DOTALL)


class SavedSliceMeta(Message):
    """A tensor: ``name``, ``shape``, ``type``, and the slices (``slice``) that a file has of it."""

    FIELDS = (
        Field(1, "name", "string"),
        Field(2, "shape", TensorShapeProto),
        Field(3, "type", "enum"),
        Field(4, "slice", TensorSlice, repeated=True),
    )


class SavedTensorSliceMeta(Message):
    """What a file holds: ``tensor``, ``versions``."""

    FIELDS = (Field(1, "tensor", SavedSliceMeta, repeated=True), Field(2, "versions", VersionDef))


class SavedTensorSlices(Message):
    """The first entry of a file: ``meta``. The others have a field 2, which is no message here."""

    FIELDS = (Field(1, "meta", SavedTensorSliceMeta),)


def saved_slices_files(prefix: str) -> list[str]:
    """The files of a checkpoint of this format, as its path names them; empty when there are none.

    A path that ends in ``-?????-of-00002`` names all shards, as TensorFlow 1 writes it.
    """
    paths = files.glob(prefix) if _SHARDS.fullmatch(prefix) else [prefix]
    return [path for path in paths if files.exists(path) and not files.is_folder(path)]


class SavedSlices:
    """A checkpoint of this format, open for reading.

    Args:
        prefix: Its path: that of its file, or ``NAME-?????-of-00002``.

    Raises:
        DataLossError: A file is damaged, or no checkpoint.
    """

    format_name = "TensorFlow V1"

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self._sizes: dict[str, int] = {}
        self._tables: dict[str, SortedTable] = {}
        self._keys: dict[tuple[str, Sequence[int], Sequence[int], str], bytes] = {}
        tensors: dict[str, TensorEntry] = {}
        for path in saved_slices_files(prefix):
            try:
                self._read_meta(path, tensors)
            except DataLossError as error:
                raise DataLossError(f"{path} is damaged, or no checkpoint: {error.message}") from error
        self.tensors: Mapping[str, TensorEntry] = dict(sorted(tensors.items()))
        """What is in it, by name. Tensors of dtypes that NumPy lacks are left out."""

    def _read_meta(self, path: str, tensors: dict[str, TensorEntry]) -> None:
        file = MappedFile(path)
        self._sizes[path] = file.size
        table = self._tables[path] = SortedTable(file)
        first = table.get(_META_KEY)
        if first is None:
            raise DataLossError("its list of tensors is missing")
        for each in SavedTensorSlices.FromString(bytes(first)).meta.tensor:
            dtype = TENSOR_DTYPES.get(each.type)
            if dtype is not None:
                self._add(path, each, dtype, tensors)

    def _add(self, path: str, meta: SavedSliceMeta, dtype: DType, tensors: dict[str, TensorEntry]) -> None:
        shape = tuple(dim.size for dim in meta.shape.dim)
        try:
            element_count(shape, dtype.size)
        except ValueError as error:
            raise DataLossError(f"tensor {meta.name!r}: {error}") from error
        entry = tensors.setdefault(meta.name, TensorEntry(meta.name, dtype, shape))
        if (entry.dtype, entry.shape) != (dtype, shape):
            raise DataLossError(f"tensor {meta.name!r} has another dtype or shape than in another file")
        parts = [self._part(path, meta.name, dtype, shape, extents) for extents in meta.slice]
        tensors[meta.name] = TensorEntry(meta.name, dtype, shape, (*entry.slices, *parts))

    def _part(self, path: str, name: str, dtype: DType, shape: Sequence[int], extents: TensorSlice) -> SliceEntry:
        offset, sizes, key = slice_of(extents, shape, name)
        part = SliceEntry(
            path,
            tuple(offset),
            shape=tuple(sizes),
            position=0,
            length=math.prod(sizes) * (1 if dtype.kind == "string" else dtype.size),
            checksum=0,
            header=0,
            header_checksum=0,
        )
        self._keys[path, part.offset, part.shape, name] = key
        return part

    def read(self, name: str, offset: Sequence[int] | None = None, shape: Sequence[int] | None = None) -> Any:
        """See `tfray.formats.checkpoint.CheckpointFiles.read`."""
        return assemble(find_tensor(self, name), offset, shape, self._read_slice, self._most_bytes)

    def _most_bytes(self, path: str) -> int:
        """How many bytes of values a file can hold: blocks may be compressed, and numbers take one byte or more."""
        return self._sizes[path] * MAX_EXPANSION * _WIDEST

    def _read_slice(self, entry: TensorEntry, part: SliceEntry) -> Any:
        try:
            value = self._tables[part.file].get(self._keys[part.file, part.offset, part.shape, entry.name])
            if value is None:
                raise DataLossError(f"its slice at {list(part.offset)} of shape {list(part.shape)} is missing")
            return _values(value, entry.dtype, math.prod(part.shape)).reshape(part.shape)
        except DataLossError as error:
            raise DataLossError(f"{part.file} is damaged in tensor {entry.name!r}: {error.message}") from error


# -- values --------------------------------------------------------------------------------------------


def _values(entry: memoryview, dtype: DType, count: int) -> np.ndarray[Any, Any]:
    """The numbers or strings of an entry, which has to have `count` of them."""
    field = list_field(dtype)
    chunks = [
        (kind, proto[start:end])
        for saved in _fields(entry, _DATA)
        for proto in _fields(saved, _VALUES)
        for number, kind, start, end in wire.read_fields(proto)
        if number == field.number
    ]
    if dtype.kind == "string":
        strings = np.empty(len(chunks), object)
        strings[:] = [bytes(chunk) for _, chunk in chunks]
        return _counted(strings, count)
    if field.kind in ("float", "double"):
        numbers = "<f4" if field.kind == "float" else "<f8"
        if any(len(chunk) % np.dtype(numbers).itemsize for _, chunk in chunks):
            raise DataLossError("a number is cut off")
        found = [np.frombuffer(chunk, numbers) for _, chunk in chunks]
        values = found[0] if len(found) == 1 else np.concatenate([np.empty(0, numbers), *found])
        wanted = 2 * count if dtype.is_complex else count
        return _counted(values, wanted).view(dtype.numpy) if dtype.is_complex else _counted(values, wanted)
    if count > sum(len(chunk) for _, chunk in chunks):
        raise DataLossError(f"{count} numbers are missing")
    bits = np.dtype(np.uint16) if dtype.is_floating else np.dtype(dtype.numpy)
    integers, filled = np.empty(count, bits), 0
    for _, chunk in chunks:
        for numbers_found in _integers(chunk):
            if filled + len(numbers_found) > count:
                raise DataLossError(f"it has more than {count} numbers")
            integers[filled : filled + len(numbers_found)] = numbers_found.astype(bits)
            filled += len(numbers_found)
    return _counted(integers[:filled], count).view(dtype.numpy)


def _fields(message: memoryview, wanted: int) -> Iterator[memoryview]:
    for number, kind, start, end in wire.read_fields(message):
        if number == wanted and kind == wire.BYTES:
            yield message[start:end]


def _counted(values: np.ndarray[Any, Any], count: int) -> np.ndarray[Any, Any]:
    if len(values) != count:
        raise DataLossError(f"it has {len(values)} numbers or strings, not {count}")
    return values


def _integers(data: memoryview) -> Iterator[np.ndarray[Any, Any]]:
    """The numbers in `data`, some at a time."""
    octets, start = np.frombuffer(data, np.uint8), 0
    while start < len(data):
        end = min(start + _CHUNK_BYTES, len(data))
        if end < len(data):
            ends = np.flatnonzero(octets[start:end] < 0x80)  # the last byte of a number has no high bit
            end = start + int(ends[-1]) + 1 if len(ends) else end
        yield wire.decode_varints(data[start:end])
        start = end
