"""Loading of compiled libraries: what TensorFlow can do and this library cannot, and what to do instead."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

from tfray.errors import NotFoundError, UnimplementedError

_KERNELS = "tf.py_func, or define operations with Python kernels: see tfray.framework.op_def"


def load_op_library(library_filename: str) -> NoReturn:
    """Refuse to load operations that were compiled for TensorFlow.

    Args:
        library_filename: Path of the library.

    Raises:
        NotFoundError: There is no such file.
        UnimplementedError: There is: its kernels are machine code for TensorFlow's own runtime.
    """
    _refuse(library_filename, "operations", _KERNELS)


def load_library(library_location: str) -> NoReturn:
    """Refuse to load libraries of operations, one or all of a folder (see `load_op_library`)."""
    _refuse(library_location, "operations", _KERNELS)


def load_file_system_library(library_filename: str) -> NoReturn:
    """Refuse to load a file system that was compiled for TensorFlow (see `load_op_library`)."""
    _refuse(library_filename, "file systems", "a folder that is mounted, or copy the files to a local one first")


def _refuse(path: str, what: str, instead: str) -> NoReturn:
    if not Path(path).exists():
        raise NotFoundError(f"{path}: there is no such file")
    raise UnimplementedError(f"{path}: {what} that were compiled for TensorFlow cannot be loaded here; use {instead}")
