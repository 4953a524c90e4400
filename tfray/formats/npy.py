"""Arrays in NumPy's files, read without trust: nothing is unpickled, and no more memory is taken than a file has."""

from __future__ import annotations

import zipfile
from typing import Any, BinaryIO, Final, cast

import numpy as np

from tfray.errors import DataLossError
from tfray.formats.declared_sizes import element_count

_HEADERS: Final = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def read_npy(path: str) -> np.ndarray[Any, Any]:
    """The array of a file ``.npy``. Raises `DataLossError` when it is damaged or missing."""
    try:
        with open(path, "rb") as file:
            size = file.seek(0, 2)
            file.seek(0)
            return _read(file, size)
    except (OSError, ValueError, EOFError) as error:
        raise DataLossError(f"{path} is damaged: {error}") from error


def read_npz(path: str) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays of a file ``.npz`` by name.

    Raises:
        FileNotFoundError: There is none.
        DataLossError: It is damaged.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            found = {}
            for member in archive.infolist():
                with archive.open(member) as file:
                    found[member.filename.removesuffix(".npy")] = _read(cast(BinaryIO, file), member.file_size)
            return found
    except (zipfile.BadZipFile, ValueError, EOFError, NotImplementedError) as error:
        raise DataLossError(f"{path} is damaged: {error}") from error


def _read(file: BinaryIO, size: int) -> np.ndarray[Any, Any]:
    version = np.lib.format.read_magic(file)
    if version not in _HEADERS:
        raise ValueError(f"it is of version {version}")
    shape, in_columns, dtype = _HEADERS[version](file)
    if dtype.hasobject:
        raise ValueError("it holds Python objects")
    length = element_count(shape, dtype.itemsize) * dtype.itemsize
    if length > size - file.tell():
        raise ValueError(f"it declares {length} bytes of shape {list(shape)}, and has {size - file.tell()}")
    array = np.frombuffer(bytearray(file.read(length)), dtype)
    return array.reshape(shape[::-1]).transpose() if in_columns else array.reshape(shape)
