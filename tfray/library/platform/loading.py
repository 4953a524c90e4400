"""Loading of modules when they are first used; and of compiled libraries, with what to do instead of that."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from tfray.errors import NotFoundError, UnimplementedError
from tfray.library.platform import logging

_KERNELS = "tf.py_func, or define operations with Python kernels: see tfray.framework.op_def"


class LazyLoader(ModuleType):
    """Stands for a module that is imported when something in it is first asked for.

    Args:
        local_name: The variable that holds it.
        parent_module_globals: The namespace of that variable, into which the module itself is put then.
        name: Full name of the module.
        warning: What is logged when it is loaded; None for nothing.
    """

    def __init__(
        self, local_name: str, parent_module_globals: dict[str, Any], name: str, warning: str | None = None
    ) -> None:
        self._warning = warning
        self._local_name = local_name
        self._parent_module_globals = parent_module_globals
        super().__init__(name)

    def _load(self) -> ModuleType:
        if self._warning is not None:
            logging.warning("%s", self._warning)
            self._warning = None
        module = importlib.import_module(self.__name__)
        self._parent_module_globals[self._local_name] = module
        self.__dict__.update(module.__dict__)  # for those who hold this object
        return module

    def __getattr__(self, item: str) -> Any:
        return getattr(self._load(), item)

    def __dir__(self) -> list[str]:
        return dir(self._load())


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
