"""Predicts a step before it runs: what each device does, what moves, how long it takes, and how many shards are best.

Predictions come from static shapes or from recorded steps; see `tfray.placement.cost`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from tfray.errors import InvalidArgumentError
from tfray.framework.device_spec import DeviceSpec
from tfray.framework.effects import resource_name
from tfray.framework.graph import Graph, Operation
from tfray.framework.graph_keys import GraphKeys
from tfray.placement.contributions import ReplicaOptions
from tfray.placement.cost import CostModel, Machine
from tfray.placement.cost_placer import CostPlacer
from tfray.placement.pipeline import compile_step
from tfray.placement.placer import JointPolicy
from tfray.placement.policies import prefer, spread_over_jobs
from tfray.placement.replicate import REPLICA_DEVICE, compile_replica_step
from tfray.placement.step_time import (
    Instance,
    StepTime,
    Traffic,
    instances_of,
    instances_of_replicas,
    simulate,
    tasks_of_partitions,
    traffic_of,
)
from tfray.training.threads.device_setter import STATE_OPS
from tfray.training.trainer.model import BuiltModel

MAX_SHARDS: Final = 64
"""The largest number of shards that is considered: each number that is tried costs a prediction."""

CLEARLY_FASTER: Final = 0.95
"""More shards are worth it if the predicted time of a step on them is at most this part of that on fewer."""


@dataclass(frozen=True)
class Load:
    """The predicted load of one device.

    Attributes:
        operations: Number of operations.
        busy_s: Seconds that it computes and sends.
        variables: Bytes of the variables that it holds, by name.
    """

    operations: int = 0
    busy_s: float = 0.0
    variables: Mapping[str, int] = field(default_factory=dict)

    @property
    def variable_bytes(self) -> int:
        """Bytes of all its variables."""
        return sum(self.variables.values())


@dataclass(frozen=True)
class StepPrediction:
    """A predicted step.

    Attributes:
        loads: Loads of the devices, by name.
        traffic: What moves, by source and destination.
        time: The predicted course of the step in time.
    """

    loads: Mapping[str, Load]
    traffic: Mapping[tuple[str, str], Traffic]
    time: StepTime = field(repr=False)

    @property
    def moved_bytes(self) -> int:
        """Bytes between devices, altogether."""
        return sum(entry.size_bytes for entry in self.traffic.values())


def shard_devices(count: int) -> list[str]:
    """Full names of parameter shards."""
    return [f"/job:ps/task:{task}/device:CPU:0" for task in range(count)]


def worker_devices(count: int) -> list[str]:
    """Full names of workers."""
    return [f"/job:worker/task:{task}/device:CPU:0" for task in range(count)]


def to_any_shard(op: Operation) -> str:
    """A device function that puts variables on the job ``ps`` and leaves the task open."""
    asked = DeviceSpec.from_string(op.device)
    is_open = op.type in STATE_OPS and asked.job is None and asked.task is None
    return "/job:ps" if is_open else op.device


def plan_training(
    model: BuiltModel,
    shards: int,
    workers: int,
    cost: CostModel | None = None,
    joint_policy: JointPolicy | None = None,
    options: ReplicaOptions | None = None,
    has_standbys: bool = False,
) -> StepPrediction:
    """Predict a replicated training step.

    Args:
        model: The model, built under a device function that names the job ``ps`` for variables, with or without a task.
        shards: Number of parameter shards.
        workers: Number of replicas.
        cost: Predicts times of operations and messages; that of the default machine and the model's batch when None.
        joint_policy: Chooses tasks for variables that have none; evenly by bytes when None.
        options: How replicas compute, and what they send.
        has_standbys: Whether each shard has a standby: the parameter servers after the first `shards`.
    """
    cost = cost or CostModel(unknown_size=max(1, model.batch_size // workers))
    devices, others = shard_devices(shards), shard_devices(2 * shards)[shards:]
    compiled = compile_replica_step(
        list(model.fetches.values()),
        [model.train_operation],
        model.placeholders,
        devices,
        REPLICA_DEVICE,
        joint_policy or spread_over_jobs(cost, prefer(REPLICA_DEVICE)),
        options,
        dict(zip(devices, others, strict=True)) if has_standbys else None,
    )
    return _predicted(instances_of_replicas(compiled, worker_devices(workers)), cost)


def plan_session(
    graph: Graph, targets: Sequence[Operation], devices: Sequence[str], cost: CostModel, by_cost: bool = True
) -> StepPrediction:
    """Predict a step of a session.

    Args:
        graph: The graph.
        targets: What to run; the graph's training operations when empty.
        devices: Full names of the devices, default first.
        cost: Predicts times of operations and messages.
        by_cost: Whether to place as ``ConfigProto(placement="cost")`` does.

    Raises:
        InvalidArgumentError: There is nothing to run, or a placement constraint cannot be met.
    """
    wanted = list(targets) or [getattr(each, "op", each) for each in graph.get_collection(GraphKeys.TRAIN_OP)]
    if not wanted:
        raise InvalidArgumentError("the graph has no training operation: name what to run")
    placer = CostPlacer(cost) if by_cost else None
    if placer is not None:
        placer.settle(graph, devices, allow_soft_placement=True)
    compiled = compile_step([], wanted, [], devices, allow_soft_placement=True, joint_policy=placer)
    return _predicted(instances_of(compiled.partitions), cost)


def _predicted(instances: Sequence[Instance], cost: CostModel) -> StepPrediction:
    time = simulate(tasks_of_partitions(instances, cost), cost.machine)
    loads: dict[str, Load] = {}
    for instance in instances:
        ops = instance.partition.graph.get_operations()
        held = {resource_name(op): cost.variable_bytes(op) for op in ops}
        held = {name: size for name, size in held.items() if size}
        before = loads.get(instance.device, Load(busy_s=time.busy_s.get(instance.device, 0.0)))
        loads[instance.device] = replace(
            before, operations=before.operations + len(ops), variables={**before.variables, **held}
        )
    return StepPrediction(loads, traffic_of(instances, cost), time)


# -- shards ----------------------------------------------------------------------------------------------


def variable_sizes(graph: Graph, cost: CostModel | None = None) -> dict[str, int]:
    """Bytes of every variable of a graph, by name."""
    cost = cost or CostModel()
    return {op.name: cost.variable_bytes(op) for op in graph.get_operations() if op.type == "Variable"}


def best_shard_count(
    model: BuiltModel,
    workers: int,
    cost: CostModel | None = None,
    limit: int | None = None,
    shard_memory_bytes: float = math.inf,
    options: ReplicaOptions | None = None,
    has_standbys: bool = False,
) -> int:
    """The best number of parameter shards: the smallest one with about the least predicted time of a step.

    Args:
        model: The model, built under a device function that puts variables on the job ``ps``, without a task.
        workers: Number of replicas.
        cost: As for `plan_training`.
        limit: Largest number; by default one for each core that the machines have.
        shard_memory_bytes: Bytes of variables that a shard can hold.
        options: As for `plan_training`.
        has_standbys: As for `plan_training`.

    Raises:
        InvalidArgumentError: The variables do not fit even on `limit` shards.
    """
    cost = cost or CostModel(unknown_size=max(1, model.batch_size // workers))
    limit = min(MAX_SHARDS, limit or cost.machine.cores * max(1, len(set(cost.machine.nodes.values()))))
    total = sum(variable_sizes(model.graph, cost).values())
    least = max(1, math.ceil(total / shard_memory_bytes))
    if least > limit:
        raise InvalidArgumentError(
            f"variables of {total:,} bytes need {least} parameter servers of {shard_memory_bytes:,.0f} bytes, and "
            f"there is room for {limit}: add nodes, or name the number yourself"
        )
    counts = sorted({least, limit, *(count for count in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32) if least <= count <= limit)})
    times = (
        plan_training(model, count, workers, cost, options=options, has_standbys=has_standbys).time.seconds
        for count in counts
    )
    best, best_s = counts[0], next(times)
    for count, seconds in zip(counts[1:], times, strict=True):
        if seconds < CLEARLY_FASTER * best_s:
            best, best_s = count, seconds
    return best


def named_devices(graph: Graph) -> list[str]:
    """Full names of the CPU devices that a graph's operations ask for; workers first. Empty if they ask for none."""
    found: dict[str, None] = {}
    for op in graph.get_operations():
        spec = DeviceSpec.from_string(op.device)
        if spec.job is not None:
            found[DeviceSpec(spec.job, None, spec.task or 0, "CPU", 0).to_string()] = None
    return sorted(found, key=lambda name: (DeviceSpec.from_string(name).job == "ps", name))


# -- where to train --------------------------------------------------------------------------------------


class Node(NamedTuple):
    """A machine that Ray offers."""

    cores: int
    memory_bytes: float


def nodes_of(address: str | None, init_options: dict[str, Any] | None = None) -> list[Node]:
    """The nodes of the Ray cluster at an address (see `tfray.actors.clusters.ray_runtime.connect`), or this machine."""
    from tfray.actors.clusters.ray_runtime import connect, import_ray, joins_cluster

    here = Node(os.cpu_count() or 1, float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")))
    ray = import_ray()
    if not ray.is_initialized():
        if not joins_cluster(address):
            return [here]
        connect(address, init_options)
    found = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    # A node may offer more CPUs than its machine has cores. The cores of this machine are known.
    nodes = [Node(int(each.get("CPU", 0)), each.get("memory", here.memory_bytes)) for each in found if each.get("CPU")]
    return [here] if len(nodes) <= 1 else nodes


def machine_of(nodes: Sequence[Node], workers: int, on_gpus: bool = False) -> Machine:
    """A model of nodes like these, with workers and shards spread evenly over them; `on_gpus`: workers have GPUs."""
    names = [*worker_devices(workers), *shard_devices(MAX_SHARDS)]
    placed = {name: str(number % len(nodes)) for number, name in enumerate(names)}
    with_gpus = frozenset(worker_devices(workers) if on_gpus else ())
    return Machine(cores=min(node.cores for node in nodes), nodes=placed, with_gpus=with_gpus)
