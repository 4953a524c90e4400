"""``tf.distribute.cluster_resolver``: objects that find out which tasks a cluster has, and which of them this is.

Addresses are names, under which the servers of tasks are found on Ray: see `tf.train.ClusterSpec`.
"""

from __future__ import annotations

import os
import subprocess
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping
from typing import Any

from tfray.distribute.task_environment import environment_of_task
from tfray.formats.cluster_spec import ClusterSpec
from tfray.framework.graph import Graph
from tfray.options import ConfigProto
from tfray.session import Session

__all__ = [
    "ClusterResolver",
    "SimpleClusterResolver",
    "SlurmClusterResolver",
    "TFConfigClusterResolver",
    "UnionResolver",
]


def _with_protocol(address: str, rpc_layer: str | None) -> str:
    return f"{rpc_layer}://{address}" if rpc_layer else address


class ClusterResolver(ABC):
    """Base of what knows a cluster. Derived classes also have `task_type`, `task_id` and `rpc_layer`."""

    task_type: Any
    """The job of this process, or None."""
    task_id: Any
    """Its index in the job, or None."""
    rpc_layer: Any
    """What addresses of masters begin with, as ``grpc``; None for nothing."""

    @abstractmethod
    def cluster_spec(self) -> ClusterSpec:
        """The cluster as it is now.

        Returns:
            The jobs, and the addresses of their tasks.
        """

    @abstractmethod
    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        """What a session takes for its target.

        Args:
            task_type: The job of the task that is wanted, with `task_id`.
            task_id: Its index.
            rpc_layer: What the address begins with, as ``grpc``; that of the resolver when None.

        Returns:
            The target; empty for a session in this process.

        Raises:
            ValueError: The cluster has no such task.
        """

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: ConfigProto | None = None
    ) -> Mapping[str, int]:
        """How many devices there are of each kind. A session with `master` for its target tells.

        Args:
            task_type: The job of the task whose devices are wanted, with `task_id`; devices of all tasks count when
                None.
            task_id: Its index.
            config_proto: Options of the session.

        Returns:
            The numbers by kinds, such as ``{"CPU": 1, "GPU": 2}``; those that it lacks are 0.
        """
        with Graph().as_default(), Session(self.master(task_type, task_id), config=config_proto) as session:
            devices = session.list_devices()
        is_one = task_type is not None and task_id is not None
        place = f"/job:{task_type}/replica:0/task:{task_id}/"
        return Counter(each.device_type for each in devices if not is_one or each.name.startswith(place))

    @property
    def environment(self) -> str | None:
        """Name of the surroundings; empty where nothing is to be known of them."""
        return ""


class _OfTask(ClusterResolver):
    """What is told its own task, or finds it: `task_type`, `task_id` and `rpc_layer` can be set.

    Args:
        task_type: The job.
        task_id: The index.
        rpc_layer: What addresses of masters begin with.
    """

    def __init__(self, task_type: str | None, task_id: int | None, rpc_layer: str | None) -> None:
        self._task_type, self._task_id, self._rpc_layer = task_type, task_id, rpc_layer

    def _found(self, name: str) -> Any:
        """The value of an attribute that was not given."""
        return None

    @property
    def task_type(self) -> str | None:
        """The job of this process, or None."""
        return self._found("task_type") if self._task_type is None else self._task_type

    @task_type.setter
    def task_type(self, task_type: str | None) -> None:
        self._task_type = task_type

    @property
    def task_id(self) -> int | None:
        """The index of this process in its job, or None."""
        return self._found("task_id") if self._task_id is None else self._task_id

    @task_id.setter
    def task_id(self, task_id: int | None) -> None:
        self._task_id = task_id

    @property
    def rpc_layer(self) -> str | None:
        """What addresses of masters begin with, or None."""
        return self._found("rpc_layer") if self._rpc_layer is None else self._rpc_layer

    @rpc_layer.setter
    def rpc_layer(self, rpc_layer: str | None) -> None:
        self._rpc_layer = rpc_layer


class SimpleClusterResolver(_OfTask):
    """What is told everything.

        cluster = tf.train.ClusterSpec({"ps": ["ps0:2222"], "worker": ["worker0:2222"]})
        resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(cluster, task_type="worker", task_id=0)

    Args:
        cluster_spec: The cluster.
        master: What `master` gives where no task is asked for.
        task_type: The job of this process.
        task_id: Its index there.
        environment: Name of the surroundings.
        num_accelerators: What `num_accelerators` gives, numbers by kinds of devices; none when None.
        rpc_layer: What addresses of masters begin with, as ``grpc``.

    Raises:
        TypeError: `cluster_spec` is no `tf.train.ClusterSpec`, or `master` is no text.
    """

    def __init__(
        self,
        cluster_spec: ClusterSpec,
        master: str = "",
        task_type: str | None = None,
        task_id: int | None = None,
        environment: str = "",
        num_accelerators: Mapping[str, int] | None = None,
        rpc_layer: str | None = None,
    ) -> None:
        super().__init__(task_type, task_id, rpc_layer)
        if not isinstance(cluster_spec, ClusterSpec):
            raise TypeError(f"cluster_spec must be a ClusterSpec, such as tf.train.ClusterSpec makes: {cluster_spec!r}")
        if not isinstance(master, str):
            raise TypeError(f"master must be a string: {master!r}")
        self._cluster_spec, self._master = cluster_spec, master
        self._environment, self._num_accelerators = environment, num_accelerators

    def cluster_spec(self) -> ClusterSpec:
        """The cluster that was given."""
        return self._cluster_spec

    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        """The master that was given; of a task, its address. See `ClusterResolver.master`."""
        address = self._master
        if task_type is not None and task_id is not None:
            address = self._cluster_spec.task_address(task_type, task_id)
        return _with_protocol(address, rpc_layer or self.rpc_layer)

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: ConfigProto | None = None
    ) -> Mapping[str, int]:
        """The numbers that were given, whatever the task."""
        return {} if self._num_accelerators is None else self._num_accelerators

    @property
    def environment(self) -> str | None:
        """Name of the surroundings that was given."""
        return self._environment


class TFConfigClusterResolver(_OfTask):
    """What reads the environment variable ``TF_CONFIG``, JSON, each time that it is asked.

        {"cluster": {"worker": ["worker0:2222", "worker1:2222"]}, "task": {"type": "worker", "index": 0}}

    There may also be an ``rpc_layer``, and a ``session_master``, which is then what `master` gives.

    Args:
        task_type: The job of this process, in place of that of the variable.
        task_id: Its index, likewise.
        rpc_layer: What addresses of masters begin with, likewise.
        environment: Name of the surroundings.
    """

    def __init__(
        self,
        task_type: str | None = None,
        task_id: int | None = None,
        rpc_layer: str | None = None,
        environment: str | None = None,
    ) -> None:
        super().__init__(task_type, task_id, rpc_layer)
        self._environment = environment

    def _found(self, name: str) -> Any:
        said = environment_of_task()
        if name == "rpc_layer":
            return said.get(name)
        value = said.get("task", {}).get({"task_type": "type", "task_id": "index"}[name])
        return value if value is None else str(value) if name == "task_type" else int(value)

    @property
    def environment(self) -> str | None:
        """Name of the surroundings that was given, or None."""
        return self._environment

    def cluster_spec(self) -> ClusterSpec:
        """The cluster of the variable; one without jobs if that has none.

        Raises:
            ValueError: The variable is no JSON.
        """
        return ClusterSpec(environment_of_task().get("cluster", {}))

    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        """The ``session_master`` of the variable; empty for a cluster of one task or none; the address of a task.

        Args:
            task_type: The job of the task; that of this process when None.
            task_id: Its index, likewise.
            rpc_layer: What the address begins with; that of the resolver when None.

        Raises:
            ValueError: The cluster has no such task, or the variable does not say which task this is.
        """
        own = environment_of_task().get("session_master")
        if own is not None:
            return str(own)
        cluster = self.cluster_spec()
        if sum(cluster.num_tasks(job) for job in cluster.jobs) <= 1:
            return ""
        job = self.task_type if task_type is None else task_type
        index = self.task_id if task_id is None else task_id
        if job is None or index is None:
            raise ValueError("TF_CONFIG has a cluster, and no task with type and index: give task_type and task_id")
        return _with_protocol(cluster.task_address(job, index), rpc_layer or self.rpc_layer)

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: ConfigProto | None = None
    ) -> Mapping[str, int]:
        """Those of a task, by default of this process. See `ClusterResolver.num_accelerators`."""
        job = self.task_type if task_type is None else task_type
        index = self.task_id if task_id is None else task_id
        return super().num_accelerators(job, index, config_proto)


class UnionResolver(_OfTask):
    """Several resolvers as one, with the tasks of all. Other things are those of the first.

    Args:
        *args: The resolvers.
        **kwargs: `task_type`, `task_id` and `rpc_layer`, in place of those of the first.

    Raises:
        TypeError: One is no resolver.
        ValueError: There is none, or there are other arguments.
    """

    def __init__(self, *args: ClusterResolver, **kwargs: Any) -> None:
        unknown = {name: value for name, value in kwargs.items() if name not in ("task_type", "task_id", "rpc_layer")}
        if unknown:
            raise ValueError(f"Unexpected kwargs provided {unknown!r}: there are task_type, task_id and rpc_layer")
        if not args:
            raise ValueError("At least one ClusterResolver is required.")
        for each in args:
            if not isinstance(each, ClusterResolver):
                raise TypeError(f"All arguments must be a sub-class of `ClusterResolver`: {each!r} is none")
        super().__init__(kwargs.get("task_type"), kwargs.get("task_id"), kwargs.get("rpc_layer"))
        self._resolvers = args

    def _found(self, name: str) -> Any:
        return getattr(self._resolvers[0], name)

    @property
    def environment(self) -> str | None:
        """Name of the surroundings, of the first resolver."""
        return self._resolvers[0].environment

    def cluster_spec(self) -> ClusterSpec:
        """All tasks of all resolvers.

        Tasks of one job follow one another, in the order of the resolvers. If a resolver gives a job by indices, with
        gaps, all keep the indices that they have in their resolvers.

        Raises:
            KeyError: Two such tasks have the same index.
        """
        parts = [each.cluster_spec().as_dict() for each in self._resolvers]
        found: dict[str, Any] = {}
        for name in dict.fromkeys(job for part in parts for job in part):
            jobs = [part[name] for part in parts if name in part]
            if all(isinstance(job, list) for job in jobs):
                found[name] = [address for job in jobs for address in job]
                continue
            found[name] = {}
            for job in jobs:
                tasks = dict(enumerate(job)) if isinstance(job, list) else job
                if twice := tasks.keys() & found[name].keys():
                    raise KeyError(f"Duplicate keys detected when merging two ClusterSpecs: {twice!r}, of job {name!r}")
                found[name] |= tasks
        return ClusterSpec(found)

    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        """That of the first resolver; of a task, its address. See `ClusterResolver.master`."""
        if task_type is not None and task_id is not None:
            return _with_protocol(self.cluster_spec().task_address(task_type, task_id), rpc_layer or self._rpc_layer)
        return self._resolvers[0].master(rpc_layer=rpc_layer)

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: ConfigProto | None = None
    ) -> Mapping[str, int]:
        """Those of the first resolver. See `ClusterResolver.num_accelerators`."""
        return self._resolvers[0].num_accelerators(task_type, task_id, config_proto)


class SlurmClusterResolver(ClusterResolver):
    """What asks the workload manager Slurm for the nodes of a step that ``srun`` or ``mpirun`` has started.

    Processes are the tasks of the jobs, by their names, in the order of their ranks. Of `tasks_per_node` processes on a
    node each has a port of its own, from `port_base` on, and the next `gpus_per_task` GPUs.

    Args:
        jobs: How many tasks each job has.
        port_base: The port of the first process on a node.
        gpus_per_node: How many GPUs a node has.
        gpus_per_task: How many of them a process has.
        tasks_per_node: How many processes a node has; ``SLURM_NTASKS_PER_NODE`` when None.
        auto_set_gpu: Whether `cluster_spec` sets ``CUDA_VISIBLE_DEVICES`` to the GPUs of this process.
        rpc_layer: What addresses of masters begin with.

    Attributes:
        task_type: The job of this process; None before `cluster_spec` was called.
        task_id: Its index there, likewise.
        rpc_layer: As given.

    Raises:
        KeyError: Slurm's variables ``SLURM_PROCID`` and ``SLURM_NTASKS`` are not there.
        RuntimeError: Processes have more GPUs than a node, the jobs have another number of tasks than there are
            processes, or nothing says how many a node has.
    """

    def __init__(
        self,
        jobs: Mapping[str, int],
        port_base: int = 8888,
        gpus_per_node: int = 1,
        gpus_per_task: int = 1,
        tasks_per_node: int | None = None,
        auto_set_gpu: bool = True,
        rpc_layer: str | None = "grpc",
    ) -> None:
        by_mpi = "OMPI_COMM_WORLD_RANK" in os.environ
        self._rank = _number("OMPI_COMM_WORLD_RANK" if by_mpi else "SLURM_PROCID")
        count = _number("OMPI_COMM_WORLD_SIZE" if by_mpi else "SLURM_NTASKS")
        if tasks_per_node is None:
            if "SLURM_NTASKS_PER_NODE" not in os.environ:
                raise RuntimeError("Neither `tasks_per_node` or SLURM_NTASKS_PER_NODE is set.")
            tasks_per_node = _number("SLURM_NTASKS_PER_NODE")
        if tasks_per_node * gpus_per_task > gpus_per_node:
            raise RuntimeError(
                f"Requested more GPUs per node then available: {tasks_per_node} tasks with {gpus_per_task} of "
                f"{gpus_per_node}"
            )
        if sum(jobs.values()) != count:
            raise RuntimeError(f"Requested more tasks then assigned tasks: {dict(jobs)} for {count} processes")
        self._jobs = dict(sorted(jobs.items()))
        self._port_base, self._tasks_per_node = port_base, tasks_per_node
        self._gpus_per_node, self._gpus_per_task, self._auto_set_gpu = gpus_per_node, gpus_per_task, auto_set_gpu
        self.task_type: str | None = None
        self.task_id: int | None = None
        self.rpc_layer = rpc_layer

    def _resolve_hostnames(self) -> list[str]:
        """Names of the nodes. Raises `RuntimeError` where there is no Slurm."""
        command = ["scontrol", "show", "hostname"]
        try:
            said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        except (OSError, subprocess.CalledProcessError) as error:
            raise RuntimeError(
                f"`{' '.join(command)}`, which tells the nodes of a step of Slurm, fails: {error}"
            ) from error
        return said.split()

    def cluster_spec(self) -> ClusterSpec:
        """The cluster as Slurm tells it now; also sets `task_type`, `task_id` and, if wanted, the GPUs.

        Returns:
            The jobs by their names.

        Raises:
            RuntimeError: There is no Slurm, or the nodes have not enough places for all tasks.
        """
        places = range(self._tasks_per_node)
        every = [f"{host}:{self._port_base + place}" for host in self._resolve_hostnames() for place in places]
        if len(every) < sum(self._jobs.values()):
            raise RuntimeError(f"the nodes have places for {len(every)} tasks ({', '.join(every)}): {self._jobs}")
        found, begin = {}, 0
        for job, count in self._jobs.items():
            found[job] = every[begin : begin + count]
            if begin <= self._rank < begin + count:
                self.task_type, self.task_id = job, self._rank - begin
            begin += count
        if self._auto_set_gpu:
            first = self._rank % self._tasks_per_node * self._gpus_per_task
            own = range(first, first + self._gpus_per_task)
            os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, own))
        return ClusterSpec(found)

    def get_task_info(self) -> tuple[str | None, int | None]:
        """The job and the index of this process; None before `cluster_spec` was called."""
        return self.task_type, self.task_id

    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        """The address of a task, by default of this process; empty before `cluster_spec` was called.

        Arguments and errors as of `ClusterResolver.master`.
        """
        job = self.task_type if task_type is None else task_type
        index = self.task_id if task_id is None else task_id
        if job is None or index is None:
            return ""
        return _with_protocol(self.cluster_spec().task_address(job, index), rpc_layer or self.rpc_layer)

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: ConfigProto | None = None
    ) -> Mapping[str, int]:
        """The number of GPUs of a node that was given, whatever the task."""
        return {"GPU": self._gpus_per_node}


def _number(variable: str) -> int:
    """The number in an environment variable of Slurm or MPI. Raises `KeyError` if there is none."""
    if variable not in os.environ:
        raise KeyError(f"the environment variable {variable} is not set: is this a step of Slurm, started by srun?")
    return int(os.environ[variable])
