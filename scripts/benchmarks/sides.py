"""Starting the processes of the sides, and talking to them; `benchmarks.side` describes the protocol."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from benchmarks.cases import Work
from benchmarks.processes import on_one_core

_SCRIPTS: Final = Path(__file__).resolve().parent.parent
_CLOSE_TIMEOUT_S: Final = 30.0
_SHOWN_LINES: Final = 15


class SideError(Exception):
    """A side did not start, failed or died; the message says what it reported."""


@dataclass(frozen=True)
class Block:
    """Steps that one side ran without a pause.

    Attributes:
        times_ms: Milliseconds that each took.
        processor_ms: Milliseconds of processor time of all its processes, for a step in the mean.
    """

    times_ms: list[float]
    processor_ms: float


class Side:
    """One implementation, in a process of its own. Use as a context manager.

    Args:
        name: ``tfray``, ``tensorflow`` or ``floor``.
        python: The interpreter that runs it.
        one_core: Whether its processes are held on one core.

    Raises:
        SideError: The interpreter cannot be run.
    """

    def __init__(self, name: str, python: str, *, one_core: bool = False) -> None:
        self.name = name
        # TensorFlow's interpreter must not find tfray; the processes of Ray must.
        paths = [str(_SCRIPTS)] if name == "tensorflow" else [str(_SCRIPTS), str(_SCRIPTS.parent)]
        paths += [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
        # A file, not a pipe: nobody reads it unless something goes wrong.
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the side)
        try:
            with on_one_core(one_core):
                self._process = subprocess.Popen(
                    [python, "-m", f"benchmarks.{name}_side"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=self._log,
                    text=True,
                    env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
                )
        except OSError as error:
            self._log.close()
            raise SideError(f"cannot run {python} for {name}: {error}") from error

    @property
    def pid(self) -> int:
        """The process; others of its implementation are its descendants."""
        return self._process.pid

    def versions(self) -> dict[str, str]:
        """Versions of Python and of the packages that matter to this side, by name."""
        versions: dict[str, str] = self._ask({"do": "describe"})["versions"]
        return versions

    def open(self, bench: str, case: str, options: Mapping[str, Any]) -> Work | None:
        """Build a case; gives the work of a step where the case counts it."""
        answer = self._ask({"do": "open", "bench": bench, "case": case, "options": dict(options)})
        return Work(**answer["work"]) if "work" in answer else None

    def run(self, steps: int) -> Block:
        """Run steps of the open case."""
        return Block(**self._ask({"do": "run", "steps": steps}))

    def rest(self) -> None:
        """Wait until what the side does between steps is done, so that another side has the processor to itself."""
        self._ask({"do": "rest"})

    def close_case(self) -> None:
        """End the open case."""
        self._ask({"do": "close"})

    def _ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin and stdout
        try:
            stdin.write(json.dumps(request) + "\n")
            stdin.flush()
            line = stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise SideError(f"{self.name} ended with exit code {self._process.wait()}:\n{self._last_lines()}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise SideError(f"{self.name}: {answer['error']}\n{self._last_lines()}")
        return answer

    def _last_lines(self) -> str:
        self._log.seek(0)
        lines: Sequence[str] = self._log.read().decode(errors="replace").splitlines()
        return "\n".join(lines[-_SHOWN_LINES:])

    def __enter__(self) -> Side:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._process.stdin and self._process.stdout
        with contextlib.suppress(BrokenPipeError):  # it has ended already
            self._process.stdin.close()
        try:
            self._process.wait(_CLOSE_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._log.close()


class Sides:
    """The sides of a run, each started when it is first asked for. Use as a context manager.

    Args:
        peer_python: The interpreter of TensorFlow; the others run in this one.
        one_core: Whether they are held on one core.

    Attributes:
        versions: Of the packages of every side that was started, by side and name.
    """

    def __init__(self, peer_python: str | None, *, one_core: bool) -> None:
        self.versions: dict[str, dict[str, str]] = {}
        self._peer_python = peer_python
        self._one_core = one_core
        self._running: dict[str, Side] = {}
        self._stack = contextlib.ExitStack()

    def started(self, name: str) -> Side:
        """The side of that name.

        Raises:
            SideError: It did not start.
        """
        if name not in self._running:
            python = self._peer_python if name == "tensorflow" and self._peer_python else sys.executable
            side = self._stack.enter_context(Side(name, python, one_core=self._one_core))
            self.versions[name] = side.versions()
            self._running[name] = side
        return self._running[name]

    def end(self) -> None:
        """End the processes of all; they start again when they are asked for."""
        self._running.clear()
        self._stack.close()

    def __enter__(self) -> Sides:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.end()
