"""Starting the processes of the sides, and talking to them; `benchmarks.side` describes the protocol."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final

_SCRIPTS: Final = Path(__file__).resolve().parent.parent
_CLOSE_TIMEOUT_S: Final = 30.0
_SHOWN_LINES: Final = 15


class SideError(Exception):
    """A side did not start, failed or died; the message says what it reported."""


class Side:
    """One implementation, in a process of its own. Use as a context manager.

    Args:
        name: ``tfray``, ``tensorflow`` or ``floor``.
        python: The interpreter that runs it.

    Raises:
        SideError: The interpreter cannot be run.
    """

    def __init__(self, name: str, python: str) -> None:
        self.name = name
        # TensorFlow's interpreter must not find tfray; the processes of Ray must.
        paths = [str(_SCRIPTS)] if name == "tensorflow" else [str(_SCRIPTS), str(_SCRIPTS.parent)]
        paths += [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
        # A file, not a pipe: nobody reads it unless something goes wrong.
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the side)
        try:
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

    def open(self, bench: str, case: str, options: Mapping[str, Any]) -> None:
        """Build a case."""
        self._ask({"do": "open", "bench": bench, "case": case, "options": dict(options)})

    def run(self, steps: int) -> list[float]:
        """Run steps of the open case, and return the milliseconds that each took."""
        times_ms: list[float] = self._ask({"do": "run", "steps": steps})["times_ms"]
        return times_ms

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
