"""Processes of launched tasks on the nodes of a cluster: each is started, and watched, by a Ray actor on its node."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final

import ray

from tfray.actors.clusters.room import Room
from tfray.actors.launching.task_process import Ended, Output, TaskProcess
from tfray.errors import NotFoundError, OpError, UnavailableError

NOTICE_S: Final = 1.0
"""Seconds that a host waits for output before it answers that there is none."""

LOST: Final = -9
"""The exit code of a task whose host is gone."""

_OWN_VARIABLES: Final = ("RAY_ADDRESS", "RAY_AUTH", "RAY_TMPDIR", "RAY_USE_TLS", "RAY_TLS")
"""Prefixes of Ray's environment variables that are for all processes of a node. Others are for one worker only."""


class TaskHost:
    """The actor's class: runs one process on its node, which ends with it."""

    def __init__(self) -> None:
        self._said: SimpleQueue[str | int] = SimpleQueue()
        self._process: TaskProcess | None = None

    def start(self, script: str, arguments: Sequence[str], environment: Mapping[str, str]) -> OpError | None:
        """Start a script. Returns an error if it cannot be started."""
        if not Path(script).is_file():
            return NotFoundError(
                f"there is no file {script} in {os.getcwd()} on node {ray.util.get_node_ip_address()}: ship it with "  # type: ignore[no-untyped-call]
                "--working-dir, or have it on every node"
            )
        for name in [name for name in os.environ if name.startswith("RAY_") and not name.startswith(_OWN_VARIABLES)]:
            del os.environ[name]
        # Folders that a runtime environment has added to the path are passed on to the process, and to its actors.
        path = os.pathsep.join(folder for folder in sys.path if folder)
        shipped = {"PYTHONPATH": path, "TFRAY_SERVER_PATH": path}
        self._process = TaskProcess(script, arguments, {**shipped, **environment}, self._said.put, self._said.put)
        return None

    def listen(self) -> tuple[list[str], int | None]:
        """Wait for output. Returns the lines since the last call, and the exit code once the process has ended."""
        said: list[str] = []
        with suppress(Empty):
            item = self._said.get(timeout=NOTICE_S)
            while not isinstance(item, int):
                said.append(item)
                item = self._said.get_nowait()
            return said, item
        return said, None

    def stop(self) -> None:
        """Ask the process to end."""
        if self._process is not None:
            self._process.stop()

    def kill(self) -> None:
        """End the process at once."""
        if self._process is not None:
            self._process.kill()


class RemoteTask:
    """A task's process on some node of the cluster.

    Args:
        room: The room for all tasks of the program.
        options: Options of the actor that runs it.
        script: Path of the script on the node.
        arguments: Its arguments.
        environment: Further environment variables.
        output: Takes every line that it prints, on a thread.
        ended: Takes its exit code, on that thread.
    """

    def __init__(
        self,
        room: Room,
        options: Mapping[str, Any],
        script: str,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        output: Output,
        ended: Ended,
    ) -> None:
        self._since = time.monotonic()
        self._room, self._options = room, options
        room.ask(options)
        host: Any = ray.remote(TaskHost)
        self._host = host.options(max_concurrency=4, **options).remote()
        self._start = self._host.start.remote(script, list(arguments), dict(environment))
        self._output = output
        self._ended = ended
        self._killed = False
        threading.Thread(target=self._listen, name="tfray-task-output", daemon=True).start()

    def wait_until_started(self, deadline: float) -> None:
        """Wait for room on the cluster.

        Raises:
            ResourceExhaustedError: There is none in time.
            NotFoundError: The script is not there.
            UnavailableError: The actor died, or did not start in time though there is room, or a node is gone.
        """
        timeout_s = deadline - self._since
        try:
            while not ray.wait([self._start], timeout=1.0)[0]:
                elapsed_s = time.monotonic() - self._since
                if self._room.is_late(elapsed_s, timeout_s):
                    fewer = "ask for fewer tasks or fewer CPUs per worker"
                    raise self._room.late("a task", elapsed_s, fewer, "--start-timeout")
            error = ray.get(self._start)
        except ray.exceptions.RayError as failure:
            raise UnavailableError(f"a task could not be started: {failure}") from failure
        if error is not None:
            raise error

    def stop(self) -> None:
        """Ask the process to end. If it still waits for room, it is not started."""
        if ray.wait([self._start], timeout=0)[0]:
            self._host.stop.remote()
        else:
            self.kill()

    def kill(self) -> None:
        """End the process, and its actor, at once."""
        self._killed = True
        ray.kill(self._host)

    def _listen(self) -> None:
        code: int | None = None
        try:
            ray.get(self._start)
            while code is None:
                lines, code = ray.get(self._host.listen.remote())
                for line in lines:
                    self._output(line)
        except ray.exceptions.RayError as error:
            if not self._killed:
                self._output(f"tfray: lost the process: {str(error).splitlines()[0]}")
            code = LOST
        else:
            ray.kill(self._host)
        self._room.give_back(self._options)
        self._ended(code)
