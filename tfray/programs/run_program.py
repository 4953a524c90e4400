"""Runs a program as ``python`` does, in this process, with `tensorflow` found here."""

from __future__ import annotations

import builtins
import importlib.util
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.abc import InspectLoader
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType, TracebackType
from typing import Final

from tfray.errors import NotFoundError
from tfray.formats.write_formats import TENSORFLOW, default_write_format, set_default_write_format
from tfray.programs.former_names import restore
from tfray.programs.tensorflow_modules import install

INTERRUPTED: Final = 130
"""Exit code of a program that Ctrl-C has ended, as of a shell."""


@dataclass(frozen=True)
class Program:
    """What to run as the main module.

    Attributes:
        source: Path of a script, or with `is_module` the name of a module.
        arguments: What it finds in ``sys.argv`` after its own name.
        is_module: Run a module, as ``python -m`` does.
    """

    source: str
    arguments: Sequence[str] = ()
    is_module: bool = False

    def loaded(self) -> tuple[ModuleSpec | None, CodeType, str]:
        """The program's spec, its code, and its file. Changes ``sys.path`` as ``python`` does.

        Raises:
            NotFoundError: There is no such file or module.
            SyntaxError: It is no Python program.
        """
        if not sys.flags.safe_path:
            sys.path[0:1] = [os.getcwd() if self.is_module else os.path.dirname(os.path.realpath(self.source))]
        if not self.is_module:
            path = Path(self.source)
            if not path.is_file():
                raise NotFoundError(f"there is no file {self.source}")
            return None, compile(path.read_bytes(), self.source, "exec", dont_inherit=True), self.source
        spec = _spec(self.source)
        loader = spec.loader
        code = loader.get_code(spec.name) if isinstance(loader, InspectLoader) else None
        if code is None:
            raise NotFoundError(f"the module {self.source} has no code that Python can run")
        return spec, code, str(spec.origin)


def _spec(name: str) -> ModuleSpec:
    """The spec of a module; for a package, of its ``__main__``."""
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
    except ModuleNotFoundError as error:
        raise NotFoundError(f"there is no module {error.name or name} on sys.path or in {os.getcwd()}") from error
    if spec is None:
        raise NotFoundError(f"there is no module {name} to run on sys.path or in {os.getcwd()}")
    return spec


def execute(program: Program) -> None:
    """Run a program in this process, in a new main module. What it raises, is raised.

    Raises:
        NotFoundError: There is no such file or module.
    """
    spec, code, file = program.loaded()
    sys.argv[:] = [file if program.is_module else program.source, *program.arguments]
    main = ModuleType("__main__")
    main.__file__ = file
    main.__spec__ = spec
    main.__package__ = spec.parent if spec else None
    main.__loader__ = spec.loader if spec else SourceFileLoader("__main__", file)
    main.__dict__.update(__builtins__=builtins, __cached__=None, __annotations__={})
    sys.modules["__main__"] = main
    exec(code, main.__dict__)


def run(program: Program, version: str | None = None) -> int:
    """Run a program with `tensorflow` found here, and say of errors what ``python`` says of them.

    Its savers write TensorFlow's format of checkpoints: programs copy, look for and delete files by their names. Names
    that Python and NumPy have lost since TensorFlow 1's days, such as ``np.float``, are there again. Messages come from
    the logger ``tensorflow``.

    Args:
        program: What to run.
        version: What it finds; see `install`.

    Returns:
        The exit code; 1 after an exception, 130 after Ctrl-C.

    Raises:
        NotFoundError: There is no such file or module.
        SystemExit: The program has ended itself.
    """
    install(version)
    restore()
    sys.excepthook = sys.__excepthook__  # which commands of tfray replace
    before = default_write_format()
    set_default_write_format(TENSORFLOW)
    try:
        with _tensorflows_logger():
            execute(program)
    except KeyboardInterrupt as error:
        _report(error)
        return INTERRUPTED
    except Exception as error:
        if isinstance(error, NotFoundError) and _of_program(error.__traceback__) is None:
            raise
        _report(error)
        return 1
    finally:
        set_default_write_format(before)
    return 0


@contextmanager
def _tensorflows_logger() -> Iterator[None]:
    """Let programs find the logger by the name that they know: they set its level and its handlers."""
    loggers, logger = logging.Logger.manager.loggerDict, logging.getLogger("tfray")
    before = loggers.get("tensorflow")
    loggers["tensorflow"], logger.name = logger, "tensorflow"
    try:
        yield
    finally:
        logger.name = "tfray"
        if before is None:
            del loggers["tensorflow"]
        else:
            loggers["tensorflow"] = before


def _report(error: BaseException) -> None:
    """Print an error with a traceback that begins with the program."""
    traceback = _of_program(error.__traceback__)
    if traceback is None and not isinstance(error, SyntaxError):
        traceback = error.__traceback__
    sys.excepthook(type(error), error.with_traceback(traceback), traceback)


def _of_program(traceback: TracebackType | None) -> TracebackType | None:
    """The part of a traceback below `execute`; None if the program had not begun."""
    while traceback is not None and traceback.tb_frame.f_code is not execute.__code__:
        traceback = traceback.tb_next
    below = traceback.tb_next if traceback is not None else None
    return below if below is not None and below.tb_frame.f_globals.get("__name__") == "__main__" else None
