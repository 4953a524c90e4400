"""One task of a launched program: a process that runs its script, and ends with the process that started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

PROGRAM: Final = "tfray.cli.task_program"
"""The module that runs a script in a task's process."""

Output = Callable[[str], None]
"""Takes a line of what the process prints."""

Ended = Callable[[int], None]
"""Takes the exit code. It is negative if a signal ended the process: minus the signal's number."""


class TaskProcess:
    """A script in a process of its own. The process is in a session of its own: signals for this one do not reach it.

    Args:
        script: Path of the script.
        arguments: Its arguments.
        environment: Environment variables besides those of this process.
        output: Takes every line that it prints, on a thread.
        ended: Takes its exit code, on that thread.
    """

    def __init__(
        self,
        script: str,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        output: Output,
        ended: Ended,
    ) -> None:
        self._output = output
        self._ended = ended
        # The other end of this pipe closes when this process ends, in whatever way.
        lifeline, self._lifeline = os.pipe()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", PROGRAM, str(lifeline), script, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONUNBUFFERED": "1", **environment},
                pass_fds=[lifeline],
                start_new_session=True,
            )
        except BaseException:
            os.close(self._lifeline)
            raise
        finally:
            os.close(lifeline)
        threading.Thread(target=self._read, name="tfray-task-output", daemon=True).start()

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid

    def wait_until_started(self, deadline: float) -> None:
        """Do nothing: the process runs already."""

    def stop(self) -> None:
        """Ask the process to end, by SIGTERM."""
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End the process, and those that it has started, at once."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._output(line.decode(errors="replace").rstrip("\r\n"))
        # End the processes that it has left behind, before its number can become that of another process.
        os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        self.kill()
        code = self._process.wait()
        os.close(self._lifeline)
        self._ended(code)
