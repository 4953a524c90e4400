"""Writing TensorFlow's checkpoints, format V2: data files as devices write them, and the index that makes them one.

Devices write data under names that no other save uses. When the index is made, these files get the names that
TensorFlow demands, and the index is put in place last.
"""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, BinaryIO, Final

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.formats import direct_file, files
from tfray.formats.bundles.slice_keys import slice_of, tensor_slice
from tfray.formats.bundles.sorted_table import table_bytes
from tfray.formats.bundles.tensor_bundle import HEADER_KEY, BundleEntry, BundleHeader
from tfray.formats.checkpoint import Manifest, TensorEntry
from tfray.formats.checkpoint_shard import ALIGNMENT, FileEntry, Piece, ShardRecord, SliceEntry, to_octets
from tfray.formats.direct_file import DirectFile
from tfray.formats.graph_proto import VersionDef
from tfray.formats.tensor_proto import DTYPE_NUMBERS
from tfray.formats.tfrecord import masked_checksum
from tfray.formats.wire import varint
from tfray.framework.dtypes import as_dtype
from tfray.framework.tensor_shape import TensorShape

_VERSION: Final = 1
"""Version of the form of the index."""


def write_bundle_data(path: str, pieces: Iterable[Piece]) -> ShardRecord:
    """Write a data file. Pieces are asked for one after the other.

    Data begins at a multiple of 64 bytes, large data at that of a page, so that a mapped file gives arrays without a
    copy. TensorFlow reads from any place.

    Args:
        path: Path of the file, which must not exist yet.
        pieces: What to write.
    """
    name = os.path.basename(path)
    with direct_file.open_new(path) as file, files.failures_of(path):
        sink = _Sink(file)
        slices = [_write_piece(sink, name, piece) for piece in pieces]
    return ShardRecord(FileEntry(name, sink.written, 0, 0), slices)


class _Sink:
    """A file, and how much of it is written."""

    def __init__(self, file: BinaryIO | DirectFile) -> None:
        self._file = file
        self.written = 0

    def write(self, data: Any) -> None:
        self.written += direct_file.write_all(self._file, data)


def _write_piece(sink: _Sink, file: str, piece: Piece) -> tuple[str, str, Sequence[int], SliceEntry]:
    array = piece.array
    dtype = as_dtype(array.dtype)
    octets, checksum = _encoded(array)
    sink.write(bytes(-sink.written % (ALIGNMENT if len(octets) < direct_file.LEAST_BYTES else direct_file.PAGE)))
    part = SliceEntry(
        file,
        tuple(piece.offset),
        shape=tuple(array.shape),
        position=sink.written,
        length=len(octets),
        checksum=checksum,
        header=0,
        header_checksum=0,
    )
    sink.write(octets)
    return piece.name, dtype.name, list(piece.full_shape), part


def _encoded(array: np.ndarray[Any, Any]) -> tuple[Any, int]:
    """The bytes of an array, without a copy if it is contiguous, and their checksum."""
    if array.dtype == object:
        return encoded_strings([bytes(item) for item in array.reshape(-1)])
    octets = to_octets(array)
    return octets, masked_checksum(octets)


def encoded_strings(items: Sequence[bytes]) -> tuple[bytes, int]:
    """Strings: the length of each, a checksum of the lengths, then all of them. And the checksum of all.

    Checksums are computed over lengths as 32-bit numbers (64-bit ones where needed), not over the bytes written.
    """
    summed = b"".join(struct.pack("<I" if len(item) <= 0xFFFFFFFF else "<Q", len(item)) for item in items)
    lengths_checksum = struct.pack("<I", masked_checksum(summed))
    text = b"".join(items)
    written = b"".join([*(varint(len(item)) for item in items), lengths_checksum, text])
    return written, masked_checksum(summed + lengths_checksum + text)


# -- the index -----------------------------------------------------------------------------------------


def bundle_index(manifest: Manifest, shards: int) -> bytes:
    """The index of a checkpoint.

    Args:
        manifest: What it holds. The files in it are those of the shards, in their order.
        shards: How many data files there are, by the names of these.

    Raises:
        InvalidArgumentError: TensorFlow's checkpoints cannot hold a tensor.
    """
    header = BundleHeader(num_shards=shards, version=VersionDef(producer=_VERSION))
    entries = {HEADER_KEY: header.SerializeToString()}
    numbers = {name: index for index, name in enumerate(manifest.files)}
    for tensor in manifest.tensors.values():
        if not tensor.name or tensor.name.startswith("\0"):
            raise InvalidArgumentError(f"{tensor.name!r} cannot be the name of a tensor in TensorFlow's checkpoints")
        for key, entry in _entries_of(tensor, numbers):
            entries[key] = entry.SerializeToString()
    return table_bytes(sorted(entries.items()))


def _entries_of(tensor: TensorEntry, numbers: dict[str, int]) -> Iterator[tuple[bytes, BundleEntry]]:
    """The entries of a tensor: one, or one for the whole and one for each part."""
    # Parts without elements say nothing, and TensorFlow has no such slices.
    parts = [part for part in tensor.slices if 0 not in part.shape] or list(tensor.slices[:1])
    is_whole = 0 in tensor.shape or math.prod(parts[0].shape) == math.prod(tensor.shape)
    if len(parts) == 1 and is_whole:
        yield tensor.name.encode(), _entry(tensor, tensor.shape, parts[0], numbers)
        return
    whole = BundleEntry(dtype=DTYPE_NUMBERS[tensor.dtype], shape=TensorShape(tensor.shape).as_proto())
    for part in parts:
        extents = tensor_slice(part.offset, part.shape)
        whole.slices.append(extents)
        yield slice_of(extents, tensor.shape, tensor.name)[2], _entry(tensor, part.shape, part, numbers)
    yield tensor.name.encode(), whole


def _entry(tensor: TensorEntry, shape: Sequence[int], part: SliceEntry, numbers: dict[str, int]) -> BundleEntry:
    return BundleEntry(
        dtype=DTYPE_NUMBERS[tensor.dtype],
        shape=TensorShape(shape).as_proto(),
        shard_id=numbers[part.file],
        offset=part.position,
        size=part.length,
        crc32c=part.checksum,
    )
