"""Safetensors files, both ways: a header in JSON with dtype, shape and place of every tensor, then the data."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import numpy as np

from tfray.errors import DataLossError, InvalidArgumentError, NotFoundError, OpError
from tfray.formats import files
from tfray.formats.checkpoint import TensorEntry, assemble, find_tensor
from tfray.formats.checkpoint_shard import SliceEntry, from_octets, to_octets
from tfray.formats.declared_sizes import element_count
from tfray.formats.files import PathLike, as_path
from tfray.formats.mapped_file import MappedFile
from tfray.framework import dtypes
from tfray.framework.dtypes import as_dtype
from tfray.framework.read_errors import DAMAGE, fields_of, reason_of

SUFFIX: Final = ".safetensors"
MAX_HEADER_BYTES: Final = 100_000_000
"""100 MB: the longest header that the format allows."""

_NAMES: Final = {
    dtypes.float64: "F64",
    dtypes.float32: "F32",
    dtypes.float16: "F16",
    dtypes.bfloat16: "BF16",
    dtypes.int64: "I64",
    dtypes.int32: "I32",
    dtypes.int16: "I16",
    dtypes.int8: "I8",
    dtypes.uint64: "U64",
    dtypes.uint32: "U32",
    dtypes.uint16: "U16",
    dtypes.uint8: "U8",
    dtypes.bool_: "BOOL",
    dtypes.complex64: "C64",
}
_DTYPES: Final = {name: dtype for dtype, name in _NAMES.items()}
_METADATA: Final = "__metadata__"


class SafetensorsFile:
    """A safetensors file, open for reading. The format has no checksums: damage to the data goes unnoticed.

    Args:
        path: Where it is.

    Raises:
        NotFoundError: There is no such file.
        DataLossError: It is damaged, or no safetensors file.
    """

    format_name = "safetensors"

    def __init__(self, path: PathLike) -> None:
        self.prefix = as_path(path)
        if not files.exists(self.prefix):
            raise NotFoundError(f"there is no file {self.prefix}")
        self._file = MappedFile(self.prefix)
        length = int.from_bytes(self._file.octets(0, 8).tobytes(), "little")
        if self._file.size < 8 or length > min(MAX_HEADER_BYTES, self._file.size - 8):
            raise DataLossError(f"{self.prefix} is no safetensors file: its header would have {length} bytes")
        try:
            self.tensors, self.metadata = self._read_header(length)
        except DAMAGE as error:
            raise DataLossError(f"{self.prefix} is no safetensors file: {reason_of(error)}") from error

    def _read_header(self, length: int) -> tuple[Mapping[str, TensorEntry], Mapping[str, str]]:
        plain = json.loads(self._file.octets(8, length).tobytes())
        if not isinstance(plain, dict) or not isinstance(plain.get(_METADATA, {}), dict):
            raise ValueError("its header lists no tensors by name")
        metadata = {str(key): str(value) for key, value in plain.pop(_METADATA, {}).items()}
        tensors, total = {}, 0
        for name, fields in plain.items():
            fields_of(fields, f"tensor {name!r}", dtype=str, shape=list, data_offsets=list)
            if len(fields["data_offsets"]) != 2:
                raise ValueError(f"tensor {name!r} has {len(fields['data_offsets'])} offsets, and needs two")
            dtype, shape = _DTYPES.get(fields["dtype"]), tuple(fields["shape"])
            first, last = fields["data_offsets"]
            if dtype is None:
                continue  # a type of 8 bits or fewer that tfray has not
            if not all(type(place) is int and place >= 0 for place in (first, last)):
                raise ValueError(f"tensor {name!r} has bytes {first} to {last}")
            if last - first != element_count(shape, dtype.size) * dtype.size or 8 + length + last > self._file.size:
                raise ValueError(f"tensor {name!r}: bytes {first} to {last} are not there, or not its shape")
            part = SliceEntry(
                self.prefix,
                (0,) * len(shape),
                shape=shape,
                position=8 + length + first,
                length=last - first,
                checksum=0,
                header=0,
                header_checksum=0,
            )
            tensors[name] = TensorEntry(name, dtype, shape, (part,))
            total += part.length
        if total > self._file.size:
            raise ValueError(f"its tensors take {total} bytes together, of {self._file.size}")
        return tensors, metadata

    def read(self, name: str, offset: Sequence[int] | None = None, shape: Sequence[int] | None = None) -> Any:
        """See `tfray.formats.checkpoint.CheckpointFiles.read`."""
        return assemble(find_tensor(self, name), offset, shape, self._read_slice, lambda _: self._file.size)

    def _read_slice(self, entry: TensorEntry, part: SliceEntry) -> Any:
        octets = self._file.octets(part.position, part.length)
        if octets.size != part.length:
            raise DataLossError(f"{self.prefix} is damaged in tensor {entry.name!r}: its end is missing")
        if octets.ctypes.data % entry.dtype.size:
            octets = octets.copy()
        return from_octets(octets, entry.dtype, part.shape)


def load_safetensors(path: PathLike) -> dict[str, Any]:
    """The tensors of a safetensors file by name, as read-only views of it.

    Args:
        path: Where it is.

    Raises:
        NotFoundError: There is no such file.
        DataLossError: It is damaged.
    """
    opened = SafetensorsFile(path)
    return {name: opened.read(name) for name in opened.tensors}


def save_safetensors(tensors: Mapping[str, Any], path: PathLike, metadata: Mapping[str, str] | None = None) -> None:
    """Write a safetensors file. It appears when it is complete.

    Args:
        tensors: Arrays by name, of numbers or bools.
        path: Where.
        metadata: Text to store with the tensors.

    Raises:
        InvalidArgumentError: The format has no such dtype.
    """
    arrays = {name: np.asarray(array) for name, array in tensors.items()}
    header: dict[str, Any] = {_METADATA: {str(k): str(v) for k, v in metadata.items()}} if metadata else {}
    position = 0
    # Wide elements first: every tensor is then aligned to its elements.
    for name in sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name)):
        array = arrays[name]
        dtype = as_dtype(array.dtype)
        if dtype not in _NAMES:
            raise InvalidArgumentError(f"tensor {name!r} is {dtype.name}, which safetensors files cannot hold")
        header[name] = {
            "dtype": _NAMES[dtype],
            "shape": list(array.shape),
            "data_offsets": [position, position + array.nbytes],
        }
        position += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    temporary = files.temporary_path(path)
    try:
        with files.open_file(temporary, "wb") as file, files.failures_of(temporary):
            file.write(struct.pack("<Q", len(text)) + text)
            for name in header:
                if name != _METADATA:
                    file.write(memoryview(to_octets(arrays[name]).data))
        files.rename(temporary, path, overwrite=True)
    except OpError:
        with suppress(OpError):
            files.remove(temporary)
        raise
