"""Writing large files of this machine past the system's cache.

Bytes that are written through the cache leave it at the disk's speed sooner or later, and the writer then waits. A save
of two gigabytes takes two seconds, or fifteen. A write past the cache always takes the disk's time, and what other
programs have in the cache stays there. If the file system does not support this, writing goes through the cache.
"""

from __future__ import annotations

import errno
import mmap
import os
from types import TracebackType
from typing import Any, BinaryIO, Final

import numpy as np

from tfray.formats import files

PAGE: Final = 4096
"""Bytes. The system demands that positions, lengths and addresses of direct writes are multiples of a page."""

LEAST_BYTES: Final = 4 << 20
"""4 MiB. A smaller write goes through the cache."""

CHUNK_BYTES: Final = 8 << 20
"""8 MiB: the size of one direct write, and of the aligned memory into which its bytes are copied first."""


def open_new(path: str) -> BinaryIO | DirectFile:
    """A file that does not exist yet, to be written in a ``with`` block: a `DirectFile` on this machine."""
    store, inner, _ = files.locate(path)
    if not isinstance(store, files.LocalStore):
        return files.open_file(path, "wb")
    with files.failures_of(path):
        return DirectFile(inner)


def write_all(file: BinaryIO | DirectFile, data: Any) -> int:
    """Write all of the bytes of `data`: the system writes at most 2 GB in one call. Returns how many these are."""
    rest = memoryview(data)
    length = len(rest)
    while rest:
        count = file.write(rest)
        rest = rest[len(rest) if count is None else count :]
    return length


class DirectFile:
    """A new file, written from its beginning to its end. Use it in a ``with`` block, after which it is on the disk.

    Args:
        path: Path of the file, which must not exist yet.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._file = open(path, "xb", buffering=0)  # noqa: SIM115 (closed by `__exit__`)
        self._position = 0
        self._direct: int | None = None
        self._can_be_direct = hasattr(os, "O_DIRECT")
        self._chunk: Any = None

    def write(self, data: Any) -> int:
        """Write bytes at the end. Large ones go past the cache if the file's length is a multiple of `PAGE`."""
        view = memoryview(data)
        done = self._write_direct(view) if len(view) >= LEAST_BYTES and self._position % PAGE == 0 else 0
        self._position += done
        self._file.seek(self._position)
        while done < len(view):  # the system takes 2 GB at a time
            count = self._file.write(view[done:])
            done += count
            self._position += count
        return len(view)

    def _write_direct(self, view: memoryview) -> int:
        """Write the whole pages of `view`. Returns how many bytes that were: 0 where it cannot be done."""
        if not self._can_be_direct:
            return 0
        source, whole, done = np.frombuffer(view, np.uint8), len(view) // PAGE * PAGE, 0
        try:
            if self._direct is None:
                self._direct = os.open(self._path, os.O_WRONLY | os.O_DIRECT)
                self._chunk = np.frombuffer(mmap.mmap(-1, CHUNK_BYTES), np.uint8)
            while done < whole:
                size = min(CHUNK_BYTES, whole - done)
                self._chunk[:size] = source[done : done + size]  # whose address is a multiple of `PAGE`
                done += os.pwrite(self._direct, self._chunk[:size].data, self._position + done) // PAGE * PAGE
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
                raise
            self._can_be_direct = False
        return done

    def __enter__(self) -> DirectFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if error is None:
                os.fsync(self._file.fileno())  # so that a checkpoint outlives a loss of power
        finally:
            self._file.close()
            if self._direct is not None:
                os.close(self._direct)
