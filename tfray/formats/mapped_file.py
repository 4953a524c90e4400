"""Files as arrays of bytes: only the bytes that are used are read."""

from __future__ import annotations

import mmap
from functools import cached_property
from typing import Any

import numpy as np

from tfray.errors import DataLossError, NotFoundError
from tfray.formats import files


class MappedFile:
    """A file of this machine as a read-only array of bytes; parts of a file elsewhere, read when asked for.

    Args:
        path: Where it is.

    Raises:
        DataLossError: It is missing. (It belongs to a checkpoint that names it, so it was there.)
    """

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            self.size = files.stat(path).length
        except NotFoundError as error:
            raise DataLossError(f"{path} is missing: the checkpoint is not complete") from error

    @cached_property
    def _mapped(self) -> Any | None:
        store, inner, _ = files.locate(self.path)
        if not isinstance(store, files.LocalStore) or self.size == 0:
            return None
        with files.failures_of(self.path), open(inner, "rb") as file:
            return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)

    def octets(self, position: int, length: int) -> np.ndarray[Any, Any]:
        """Bytes from a position on; fewer where the file ends."""
        if self._mapped is not None:
            octets: np.ndarray[Any, Any] = self._mapped[position : position + length]
            return octets
        there = max(0, self.size - position)  # a read of more bytes would take memory for all of them first
        with files.open_file(self.path) as file, files.failures_of(self.path):
            file.seek(min(position, self.size))
            return np.frombuffer(file.read(min(length, there)), np.uint8)
