"""Launching a between-graph program: one process for each task, supervised until the workers have ended."""

from __future__ import annotations

import json
import secrets
import signal
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Final, Protocol

from tfray.actors.clusters.cluster import NOTICE_AFTER_S
from tfray.actors.clusters.ray_runtime import import_ray
from tfray.actors.launching.task_process import Ended, Output, TaskProcess
from tfray.errors import InvalidArgumentError, OpError

PORT: Final = 2222
"""Port in the addresses of tasks: programs expect one, but nothing listens there."""

PS_GRACE_S: Final = 10.0
"""Seconds that parameter servers have to end after SIGTERM. Workers get `grace_s`: they may have to save."""

CHIEF: Final = "chief"
EVALUATOR: Final = "evaluator"

KILL_S: Final = 10.0
"""Seconds that a killed process may take until it is gone."""


@dataclass(frozen=True)
class Task:
    """One task."""

    job: str
    index: int

    def __str__(self) -> str:
        return f"{self.job} {self.index}"


@dataclass(frozen=True)
class Program:
    """A program and its tasks.

    Attributes:
        script: Path of the script.
        arguments: Its arguments.
        parameter_servers: Number of tasks of the job ``ps``.
        workers: Number of tasks of the job ``worker``.
        ray_address: Where its processes find Ray.
        pass_flags: Whether the script takes TensorFlow's usual flags.
        threads: Threads of each task's kernels.
        chief: Whether there is a task of the job ``chief``, a worker that also saves.
        evaluator: Whether there is a task of the job ``evaluator``, which is not in the cluster.
    """

    script: str
    arguments: Sequence[str]
    parameter_servers: int
    workers: int
    ray_address: str
    pass_flags: bool = True
    threads: int = 1
    chief: bool = False
    evaluator: bool = False

    def __post_init__(self) -> None:
        if self.workers + self.chief < 1 or self.workers < 0 or self.parameter_servers < 0:
            raise InvalidArgumentError(
                f"--workers is {self.workers} and --ps {self.parameter_servers}: a program needs a worker or a chief, "
                "and no negative number of parameter servers"
            )

    @property
    def tasks(self) -> list[Task]:
        """All tasks, parameter servers first."""
        counts = {
            "ps": self.parameter_servers,
            CHIEF: int(self.chief),
            "worker": self.workers,
            EVALUATOR: int(self.evaluator),
        }
        return [Task(job, index) for job, count in counts.items() for index in range(count)]


class RunningTask(Protocol):
    """A task's process, wherever it runs."""

    def wait_until_started(self, deadline: float) -> None:
        """Wait until it runs, by `time.monotonic`. Raises when that is not so in time."""

    def stop(self) -> None:
        """Ask it to end."""

    def kill(self) -> None:
        """End it at once."""


Start = Callable[[str, Sequence[str], Mapping[str, str], Output, Ended], RunningTask]
"""Starts a script, given its arguments, further environment variables, and the takers of its output and exit code."""


class TaskFailedError(OpError):
    """A task has failed."""


class Launch:
    """The processes of one run of a program.

    Args:
        program: The program.
        output: Takes what the tasks print, from several threads.
        notice: Takes messages about the run itself.
        start: Starts the process of a task; on this machine by default.
        max_restarts: How often failed tasks are started again, over all tasks together.
        grace_s: Seconds that workers have to end when they are asked to.
        start_timeout_s: Seconds to wait for room for the tasks.
    """

    def __init__(
        self,
        program: Program,
        output: Callable[[Task, str], None],
        notice: Callable[[str], None],
        start: Start = TaskProcess,
        max_restarts: int = 0,
        grace_s: float = 15.0,
        start_timeout_s: float = 60.0,
    ) -> None:
        self._program = program
        self._start_process = start
        self._output = output
        self._notice = notice
        self._restarts_left = max_restarts
        self._grace_s = grace_s
        self._start_timeout_s = start_timeout_s
        self._running: dict[Task, RunningTask] = {}
        self._ended: SimpleQueue[tuple[Task, int]] = SimpleQueue()
        name = secrets.token_hex(3)
        self._cluster: dict[str, list[str]] = {"ps": [], "worker": []}
        for task in program.tasks:
            if task.job != EVALUATOR:
                self._cluster.setdefault(task.job, []).append(f"{task.job}{task.index}-{name}:{PORT}")

    def run(self) -> None:
        """Run the program until all tasks but the parameter servers have ended, then end these.

        Raises:
            TaskFailedError: A task failed; all others have been ended.
        """
        try:
            for task in self._program.tasks:
                self._start(task)
            self._wait_until_started()
            self._supervise()
        finally:
            self._end_all()

    def _wait_until_started(self) -> None:
        deadline = time.monotonic() + self._start_timeout_s
        text = f"waiting for room for the tasks; giving up after {self._start_timeout_s:.0f} s"
        timer = threading.Timer(NOTICE_AFTER_S, self._notice, [text])
        timer.start()
        try:
            for running in list(self._running.values()):
                running.wait_until_started(deadline)
        finally:
            timer.cancel()

    def _supervise(self) -> None:
        working = {task for task in self._program.tasks if task.job != "ps"}
        while working:
            task, code = self._ended.get()
            del self._running[task]
            if code == 0:
                working.discard(task)
            elif self._restarts_left > 0:
                self._restarts_left -= 1
                self._notice(f"{task} ended with {describe_code(code)}; starting it again")
                self._start(task)
            else:
                others = "; ending the others" if self._running else ""
                raise TaskFailedError(f"{task} ended with {describe_code(code)}{others}")

    def _start(self, task: Task) -> None:
        self._running[task] = self._start_process(
            self._program.script,
            [*self._flags(task), *self._program.arguments],
            self._environment(task),
            lambda line: self._output(task, line),
            lambda code: self._ended.put((task, code)),
        )

    def _flags(self, task: Task) -> list[str]:
        if not self._program.pass_flags:
            return []
        hosts = [f"--{job}_hosts={','.join(addresses)}" for job, addresses in self._cluster.items()]
        return [f"--job_name={task.job}", f"--task_index={task.index}", *hosts]

    def _environment(self, task: Task) -> dict[str, str]:
        cluster = {job: addresses for job, addresses in self._cluster.items() if addresses}
        return {
            "RAY_ADDRESS": self._program.ray_address,
            "TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": task.job, "index": task.index}}),
            "OMP_NUM_THREADS": str(self._program.threads),
        }

    # -- the end -----------------------------------------------------------------------------------------

    def _end_all(self) -> None:
        """End all tasks. Workers come first: they may still read variables from parameter servers, to save them."""
        try:
            for serving, grace_s in ((False, self._grace_s), (True, PS_GRACE_S)):
                alike = {task for task in self._running if (task.job == "ps") == serving}
                for task in alike:
                    self._running[task].stop()
                self._wait(alike, grace_s)
        finally:
            left = set(self._running)
            for task in left:
                self._running[task].kill()
            self._wait(left, KILL_S)

    def _wait(self, tasks: Collection[Task], timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        while any(task in self._running for task in tasks):
            try:
                task, _ = self._ended.get(timeout=max(0.0, deadline - time.monotonic()))
            except Empty:
                return
            self._running.pop(task, None)


def describe_code(code: int) -> str:
    """An exit code in words."""
    if code < 0:
        try:
            return f"signal {signal.Signals(-code).name}"
        except ValueError:
            return f"signal {-code}"
    return f"exit code {code}"


# -- on a cluster --------------------------------------------------------------------------------------------


def on_nodes(num_cpus: float) -> Start:
    """A function that starts tasks on the nodes of the cluster to which this process is connected.

    Args:
        num_cpus: CPUs that each task asks of Ray.
    """
    from tfray.actors.clusters.room import KnownNodes, Room
    from tfray.actors.launching.remote_task import RemoteTask

    return partial(RemoteTask, Room(KnownNodes()), {"num_cpus": num_cpus, "scheduling_strategy": "SPREAD"})


def script_on_nodes(script: Path, working_dir: Path | None) -> str:
    """Path of a script as the nodes find it: relative to the folder that is shipped, or else the same as here.

    Raises:
        InvalidArgumentError: The script is not in the folder.
    """
    if working_dir is None:
        is_shipped = import_ray().get_runtime_context().runtime_env.get("working_dir")
        working_dir = Path.cwd() if is_shipped else None
    if working_dir is None:
        return str(script.resolve())
    try:
        return str(script.resolve().relative_to(working_dir.resolve()))
    except ValueError:
        raise InvalidArgumentError(f"{script} is not in {working_dir}, the folder that is shipped") from None
