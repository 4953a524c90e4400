"""`replica_device_setter`: puts variables on parameter servers, and everything else on the worker."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from tfray.errors import InvalidArgumentError
from tfray.formats.cluster_spec import ClusterDef, ClusterSpec
from tfray.framework.arguments import Count, Positive, checked
from tfray.framework.device_spec import DeviceSpec, merge_device
from tfray.framework.graph import DeviceFunction, Operation

STATE_OPS: Final = ("Variable",)
"""Operation types that hold parameters."""

UNKNOWN_BYTES: Final = 4
"""Bytes assumed for a variable whose shape is not fully known."""

Strategy = Callable[[Operation], int]
"""Given a variable's operation, returns the number of the parameter server that shall hold it."""


def byte_size_load_fn(op: Operation) -> float:
    """Bytes of a variable, the load for `GreedyLoadBalancingStrategy`."""
    count = op.attrs["shape"].num_elements()
    return float(UNKNOWN_BYTES if count is None else count * op.attrs["dtype"].size)


class RoundRobinStrategy:
    """One parameter server after the other."""

    def __init__(self, num_tasks: int) -> None:
        self._num_tasks = num_tasks
        self._next = 0

    def __call__(self, op: Operation) -> int:
        task = self._next
        self._next = (task + 1) % self._num_tasks
        return task


class RandomStrategy:
    """A parameter server drawn at random, from the seed and the operation's name.

    Args:
        num_tasks: Number of parameter servers.
        seed: The seed.
    """

    @checked
    def __init__(self, num_tasks: Positive, seed: int = 0) -> None:
        self._num_tasks, self._seed = num_tasks, seed

    def __call__(self, op: Operation) -> int:
        drawn = hashlib.md5(f"{op.name}_{self._seed}".encode(), usedforsecurity=False).hexdigest()
        return int(drawn, 16) % self._num_tasks


class GreedyLoadBalancingStrategy:
    """The parameter server with the least load so far.

    Args:
        num_tasks: Number of parameter servers.
        load_fn: Load of a variable's operation; `byte_size_load_fn` when None.
    """

    @checked
    def __init__(self, num_tasks: Positive, load_fn: Callable[[Operation], float] | None = None) -> None:
        self._loads = [0.0] * num_tasks
        self._load_fn = load_fn or byte_size_load_fn

    def __call__(self, op: Operation) -> int:
        task = self._loads.index(min(self._loads))
        self._loads[task] += self._load_fn(op)
        return task


@checked
def replica_device_setter(
    ps_tasks: Count = 0,
    ps_device: str = "/job:ps",
    worker_device: str = "/job:worker",
    merge_devices: bool = True,
    cluster: Any = None,
    ps_ops: Collection[str] | None = None,
    ps_strategy: Strategy | None = None,
) -> DeviceFunction | None:
    """A device function for `tf.device` that puts variables on parameter servers and other operations on the worker.

    Args:
        ps_tasks: Number of parameter servers; 0 returns None, which places nothing.
        ps_device: Job of the parameter servers.
        worker_device: Device of everything else.
        merge_devices: Kept for TensorFlow 1 programs; requests of the program are always merged.
        cluster: A `ClusterSpec` or `ClusterDef`, a `tfray.Cluster`, or a mapping of job names to tasks, from which to
            take the number of parameter servers.
        ps_ops: Operation types that hold parameters.
        ps_strategy: Chooses the parameter server; round robin when None.

    Raises:
        InvalidArgumentError: `ps_tasks` is negative.
    """
    if cluster is not None:
        job = DeviceSpec.from_string(ps_device).job or "ps"
        ps_tasks = _number_of_tasks(cluster, job)
    if ps_tasks < 0:
        raise InvalidArgumentError(f"ps_tasks must not be negative, got {ps_tasks}")
    if ps_tasks == 0:
        return None
    strategy = ps_strategy or RoundRobinStrategy(ps_tasks)
    holders = frozenset(ps_ops or STATE_OPS)

    def device(op: Operation) -> str:
        if op.type not in holders:
            return merge_device(worker_device, op.device)
        asked = DeviceSpec.from_string(op.device)
        if asked.job is not None or asked.task is not None:
            return op.device
        return merge_device(f"{ps_device}/task:{strategy(op)}", op.device)

    return device


def _number_of_tasks(cluster: Any, job: str) -> int:
    if isinstance(cluster, (ClusterSpec, ClusterDef)):
        cluster = ClusterSpec(cluster).as_dict()
    jobs: Mapping[str, Any] = getattr(cluster, "jobs", cluster)
    tasks = jobs.get(job, 0)
    if isinstance(tasks, (list, tuple, Mapping)):
        return len(tasks)
    return int(getattr(tasks, "count", tasks))
