"""`ClusterSpec`: which tasks a distributed program has, and the messages that say so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tfray.formats.message import Field, Message


class JobDef(Message):
    """One job: the addresses of its tasks by index."""

    FIELDS = (Field(1, "name", "string"), Field(2, "tasks", "string", key="int32"))


class ClusterDef(Message):
    """The jobs of a cluster."""

    FIELDS = (Field(1, "job", JobDef, repeated=True),)


class ServerDef(Message):
    """One task of a cluster."""

    FIELDS = (
        Field(1, "cluster", ClusterDef),
        Field(2, "job_name", "string"),
        Field(3, "task_index", "int32"),
        Field(5, "protocol", "string"),
    )


class ClusterSpec:
    """The tasks of a distributed program: jobs, and in each the addresses of its tasks.

        cluster = tf.train.ClusterSpec({"ps": ["ps0:2222"], "worker": ["worker0:2222", "worker1:2222"]})

    An address is only a name, under which a task's server is found on Ray. No server listens at the address.

    Args:
        cluster: Job name to a list of addresses, or to a dictionary of addresses by task index; or a `ClusterDef`; or
            another `ClusterSpec`.

    Raises:
        TypeError: It is none of these, or an address is no text.
    """

    def __init__(self, cluster: Mapping[str, Any] | ClusterDef | ClusterSpec) -> None:
        if isinstance(cluster, ClusterSpec):
            jobs: Mapping[str, Any] = cluster.as_dict()
        elif isinstance(cluster, ClusterDef):
            jobs = {job.name: job.tasks for job in cluster.job}
        elif isinstance(cluster, Mapping):
            jobs = cluster
        else:
            raise TypeError(f"{cluster!r} is not a cluster: expected a dictionary of jobs")
        self._jobs = {_text(name): _tasks(_text(name), tasks) for name, tasks in jobs.items()}

    def __bool__(self) -> bool:
        return bool(self._jobs)

    __nonzero__ = __bool__

    def __eq__(self, other: object) -> bool:
        return self._jobs == (other._jobs if isinstance(other, ClusterSpec) else other)

    def __hash__(self) -> int:
        return hash(frozenset((name, *sorted(tasks.items())) for name, tasks in self._jobs.items()))

    def __repr__(self) -> str:
        return f"ClusterSpec({self.as_dict()!r})"

    @property
    def jobs(self) -> list[str]:
        """Names of the jobs."""
        return list(self._jobs)

    def num_tasks(self, job_name: str) -> int:
        """Number of tasks of a job. Raises `ValueError` when there is no such job."""
        return len(self._job(job_name))

    def task_indices(self, job_name: str) -> list[int]:
        """Indices of the tasks of a job, ascending. Raises `ValueError` when there is no such job."""
        return list(self._job(job_name))

    def task_address(self, job_name: str, task_index: int) -> str:
        """Address of a task. Raises `ValueError` when there is no such task."""
        tasks = self._job(job_name)
        if task_index not in tasks:
            raise ValueError(f"job {job_name!r} has no task {task_index}; it has {', '.join(map(str, tasks))}")
        return tasks[task_index]

    def job_tasks(self, job_name: str) -> list[str | None]:
        """Addresses of the tasks of a job by index, None where there is no task.

        Raises:
            ValueError: There is no such job.
        """
        tasks = self._job(job_name)
        return [tasks.get(index) for index in range(max(tasks, default=-1) + 1)]

    def as_dict(self) -> dict[str, Any]:
        """What the constructor takes: lists, or dictionaries by index for jobs whose indices have gaps."""
        return {
            name: list(tasks.values()) if list(tasks) == list(range(len(tasks))) else dict(tasks)
            for name, tasks in self._jobs.items()
        }

    def as_cluster_def(self) -> ClusterDef:
        """The same as a message."""
        return ClusterDef(job=[JobDef(name=name, tasks=tasks) for name, tasks in sorted(self._jobs.items())])

    def _job(self, name: str) -> dict[int, str]:
        try:
            return self._jobs[name]
        except KeyError:
            raise ValueError(f"the cluster has no job {name!r}; it has {', '.join(self._jobs) or 'none'}") from None


def _tasks(job: str, tasks: Any) -> dict[int, str]:
    if isinstance(tasks, Mapping):
        found = dict(tasks)
    elif isinstance(tasks, Iterable) and not isinstance(tasks, (str, bytes)):
        found = dict(enumerate(tasks))
    else:
        raise TypeError(f"the tasks of job {job!r} are {tasks!r}, expected a list of addresses, or a dictionary")
    if not all(isinstance(index, int) and index >= 0 for index in found):
        raise TypeError(f"the tasks of job {job!r} have indices {list(found)}, expected numbers from 0 on")
    return {index: _text(address) for index, address in sorted(found.items())}


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode()
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is a {type(value).__name__}, expected text")
    return value
