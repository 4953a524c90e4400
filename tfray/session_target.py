"""Where a session runs, by its target: in this process, on a cluster, or on the servers of a distributed program."""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from types import NoneType
from typing import Any
from weakref import WeakKeyDictionary

from tfray.actors.clusters.served_cluster import ServedCluster
from tfray.errors import ArgumentError, InvalidArgumentError
from tfray.options import ConfigProto
from tfray.placement.resource_homes import ResourceHomes
from tfray.runtime.device import cpu_device_count
from tfray.runtime.local_runner import LocalRunner, close_all
from tfray.runtime.runner import Runner

_homes: WeakKeyDictionary[Any, dict[str, str]] = WeakKeyDictionary()
"""For each cluster, the device of every variable that its sessions have placed by cost, by the variable's name."""


def runner_for(target: Any, config: ConfigProto) -> Runner:
    """What a session on a target runs its steps with.

    Raises:
        ArgumentError: It is no target.
        UnavailableError: There is no server at it.
    """
    if not target and isinstance(target, (str, NoneType)):
        return LocalRunner(
            config.device_count.get("CPU", cpu_device_count()),
            config.device_count.get("GPU"),
            config.gpu_options.per_process_gpu_memory_fraction,
        )
    cluster = _served(target, config) or target
    if not hasattr(cluster, "runner"):
        raise ArgumentError(
            f"{target!r} is not something a session can run on: expected '' for this process, a tfray.Cluster, or the "
            "target of a tf.train.Server"
        )
    runner: Runner = cluster.runner()
    return runner


def reset_target(target: Any, containers: Collection[str], config: ConfigProto) -> None:
    """See `tf.Session.reset`."""
    served = _served(target, config)
    if served is not None:
        try:
            served.reset(containers)
        finally:
            served.close()
    elif hasattr(target, "reset"):
        target.reset(containers)
    else:
        close_all()


def _served(target: Any, config: ConfigProto) -> ServedCluster | None:
    """The servers that a target names; None for another target."""
    text = target.decode() if isinstance(target, bytes) else target
    is_address = isinstance(text, str) and re.fullmatch(r"grpc(\+\w+)?://.+", text)
    return ServedCluster(text, config.device_filters) if is_address else None


def placer_for(target: Any, config: ConfigProto) -> ResourceHomes:
    """The placer: a `CostPlacer` for ``placement="cost"``."""
    if config.placement != "cost":
        return ResourceHomes()
    # Few sessions need these, and importing takes time.
    from tfray.placement.cost import CostModel, Machine
    from tfray.placement.cost_placer import CostPlacer

    if target is None or target == "":
        return CostPlacer(CostModel(Machine.one_thread()))
    if isinstance(target, (str, bytes)):
        raise InvalidArgumentError(
            "placement='cost' is for sessions of one process or on a tfray.Cluster: the processes of a tf.train.Server "
            "would not agree on where variables live"
        )
    cluster = getattr(target, "cluster", target)  # of a part of one
    nodes = {name: cluster.handle(name).address.node for name in getattr(cluster, "devices", ())}
    machine = Machine(cores=os.cpu_count() or 1, nodes=nodes)
    return CostPlacer(CostModel(machine), _homes.setdefault(cluster, {}))
