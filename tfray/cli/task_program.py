"""What a process of `tfray launch` runs: ``python -m tfray.cli.task_program LIFELINE SCRIPT [ARGUMENTS]``.

It runs the script as ``python SCRIPT`` would, with ``import tensorflow`` finding tfray, and ends when the process that
started it does: LIFELINE is the descriptor of a pipe whose other end that process holds.
"""

from __future__ import annotations

import builtins
import importlib
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import tfray

GRACE_S: Final = 10.0
"""How long a program may take to end when it has been asked to."""

_ALIAS: Final = "tensorflow"


class TensorFlowAlias(MetaPathFinder, Loader):
    """Finds the modules of tfray under TensorFlow's names; they stay the same modules."""

    def __init__(self) -> None:
        self._specs: dict[str, ModuleSpec | None] = {}

    def install(self) -> None:
        """Let ``import tensorflow`` find tfray, whether or not TensorFlow is there."""
        sys.modules[_ALIAS] = tfray
        importlib.import_module("tfray.compat")
        sys.modules[f"{_ALIAS}.compat.v1"] = tfray
        sys.meta_path.insert(0, self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(fullname, self) if fullname.startswith(f"{_ALIAS}.") else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = _module(spec.name.split(".")[1:])
        self._specs[spec.name] = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Leave the module, which has been executed, what it is."""
        spec = module.__spec__
        if spec is not None and spec.name in self._specs:
            module.__spec__ = self._specs.pop(spec.name)


def _module(path: Sequence[str]) -> ModuleType:
    """The module of tfray that TensorFlow's name stands for. Raises `ModuleNotFoundError`."""
    found: Any = tfray
    for name in path:
        found = getattr(found, name, None)
    if isinstance(found, ModuleType):
        return found
    name = ".".join(path)
    try:
        return importlib.import_module(f"tfray.{name}")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"tfray has no module for {_ALIAS}.{name}", name=f"{_ALIAS}.{name}") from error


def watch(lifeline: int) -> None:
    """End this process, and those that it has started, when the other end of the pipe closes."""

    def wait() -> None:
        os.read(lifeline, 1)
        os.killpg(0, signal.SIGTERM)
        time.sleep(GRACE_S)
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=wait, name="tfray-lifeline", daemon=True).start()


def run_script(script: str, arguments: Sequence[str]) -> None:
    """Run a script as Python's main program."""
    sys.argv = [script, *arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    program = ModuleType("__main__")
    program.__file__ = script
    program.__dict__["__builtins__"] = builtins
    sys.modules["__main__"] = program
    exec(compile(Path(script).read_bytes(), script, "exec"), program.__dict__)


def main() -> None:
    """Run the script."""
    _, lifeline, script, *arguments = sys.argv
    watch(int(lifeline))
    TensorFlowAlias().install()
    run_script(script, arguments)


if __name__ == "__main__":
    main()
