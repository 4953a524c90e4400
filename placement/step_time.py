"""The predicted time of a step: its operations are simulated on the cores and the network of a `Machine`.

A step is a list of *tasks*, each on a device. A device runs one task at a time: of those whose inputs are there, the
first in the list. Devices of one node share its cores and its network. Cores that no device needs help with large
tasks.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tfray.framework.graph import Operation, Tensor
from tfray.framework.region import ops_within
from tfray.framework.traversal import predecessors
from tfray.placement.cost import CostModel, Machine
from tfray.placement.partition import is_copied_constant
from tfray.placement.replicate import CompiledReplicaStep
from tfray.runtime.plan import Partition


@dataclass(slots=True)
class Task:
    """Something that a device does.

    Attributes:
        device: The device.
        seconds: How long it takes on one core.
        name: Name of the operation.
        after: Tasks that come before it, by their numbers.
        late_s: For each task of `after` that is a Send of another device, the seconds that its message travels.
        network_s: The part of those seconds in which the message keeps the network of both nodes busy.
        width: On how many cores it can run at once.
    """

    device: str
    seconds: float
    name: str = ""
    after: list[int] = field(default_factory=list)
    late_s: dict[int, float] = field(default_factory=dict)
    network_s: dict[int, float] = field(default_factory=dict)
    width: int = 1


@dataclass
class StepTime:
    """The predicted time of a step.

    Attributes:
        seconds: From the driver's call to the end of the step.
        busy_s: Seconds that each device computes and sends.
        waits_for: What bounds the step from below most (a device, cores, a network, the longest chain, the driver), and
            the seconds of that bound.
    """

    seconds: float
    busy_s: dict[str, float]
    waits_for: tuple[str, float]


def simulate(tasks: Sequence[Task], machine: Machine) -> StepTime:
    """Simulate a step: advance the time from event to event until every task has run."""
    followers: list[list[int]] = [[] for _ in tasks]
    missing = [len(task.after) for task in tasks]
    for number, task in enumerate(tasks):
        for earlier in task.after:
            followers[earlier].append(number)
    simulation = _Simulation(tasks, machine)
    for number, count in enumerate(missing):
        if not count:
            simulation.ready(number)
    simulation.start()
    while simulation.events:
        now, kind, number, version = heapq.heappop(simulation.events)
        if kind == _ARRIVAL:
            simulation.now = now
            missing[number] -= 1
            if not missing[number]:
                simulation.ready(number)
        elif simulation.end(number, version, now):
            for later in followers[number]:
                if number in tasks[later].late_s:
                    heapq.heappush(simulation.events, (simulation.arrival(number, later), _ARRIVAL, later, 0))
                    continue
                missing[later] -= 1
                if not missing[later]:
                    simulation.ready(later)
        if not simulation.events or simulation.events[0][0] > now:
            simulation.start()
    return _summary(simulation, machine)


_END, _ARRIVAL = 0, 1  # kinds of events: a task ends; a message arrives for a task


@dataclass(slots=True)
class _Run:
    """A task that runs.

    Attributes:
        begun: Since when.
        left_s: Seconds of one core that it needed at the time `since`.
        since: See `left_s`.
        cores: On how many cores it has run since.
        version: How often `cores` has changed. An end that was foreseen for an earlier version is none.
    """

    begun: float
    left_s: float
    since: float
    cores: int = 0
    version: int = 0


class _Simulation:
    """The state of the simulation.

    Attributes:
        events: Heap of (time in seconds, kind, number of the task, version of its run).
        busy_s: Seconds in which each device has computed.
        computed_s: Seconds of one core that the tasks of each node took.
        chain_s: For each task, its end if every task had all cores and a network of its own.
    """

    def __init__(self, tasks: Sequence[Task], machine: Machine) -> None:
        self.now = 0.0
        self.events: list[tuple[float, int, int, int]] = []
        self.busy_s: dict[str, float] = {}
        self.computed_s: dict[str, float] = {}
        self.chain_s = [0.0] * len(tasks)
        self._tasks = tasks
        self._machine = machine
        self._ready: dict[str, list[int]] = {}
        self._occupied: set[str] = set()
        self._runs: dict[str, dict[int, _Run]] = {}
        self.network_s: dict[tuple[str, str], float] = {}
        self._network_free: dict[tuple[str, str], float] = {}

    def ready(self, number: int) -> None:
        """Note that all inputs of a task are there."""
        task = self._tasks[number]
        begin = max((self.chain_s[earlier] + task.late_s.get(earlier, 0.0) for earlier in task.after), default=0.0)
        self.chain_s[number] = begin + task.seconds / self._width(task)
        heapq.heappush(self._ready.setdefault(task.device, []), number)

    def start(self) -> None:
        """Let every device that is free begin what it can."""
        for device, waiting in self._ready.items():
            runs = self._runs.setdefault(self._machine.node(device), {})
            if waiting and device not in self._occupied and len(runs) < self._machine.cores:
                number = heapq.heappop(waiting)
                self._occupied.add(device)
                runs[number] = _Run(self.now, self._tasks[number].seconds, self.now)
        for runs in self._runs.values():
            self._share_cores(runs)

    def _width(self, task: Task) -> int:
        return max(1, min(task.width, self._machine.cores))

    def _share_cores(self, runs: dict[int, _Run]) -> None:
        """Give every task of a node a core, and what is left to those that can use it; foresee when they end."""
        cores = dict.fromkeys(runs, 1)
        left = self._machine.cores - len(runs)
        while left > 0 and (wide := [n for n in runs if cores[n] < self._width(self._tasks[n])]):
            for number in wide[:left]:
                cores[number] += 1
                left -= 1
        for number, run in runs.items():
            if cores[number] != run.cores:
                run.left_s -= run.cores * (self.now - run.since)
                run.since, run.cores, run.version = self.now, cores[number], run.version + 1
                end = self.now + max(run.left_s, 0.0) / run.cores
                heapq.heappush(self.events, (end, _END, number, run.version))

    def arrival(self, source: int, destination: int) -> float:
        """When a message that leaves now arrives. A node's messages leave one after the other, and so they arrive."""
        task = self._tasks[destination]
        network_s = task.network_s.get(source, 0.0)
        if not network_s:
            return self.now + task.late_s[source]
        machine = self._machine
        ways = (machine.node(self._tasks[source].device), "out"), (machine.node(task.device), "in")
        begin = max(self.now, *(self._network_free.get(way, 0.0) for way in ways))
        for way in ways:
            self._network_free[way] = begin + network_s
            self.network_s[way] = self.network_s.get(way, 0.0) + network_s
        return begin + task.late_s[source]

    def end(self, number: int, version: int, now: float) -> bool:
        """Note that a task has ended: its device and its cores are free. False if it has not ended `now`."""
        task = self._tasks[number]
        node = self._machine.node(task.device)
        run = self._runs[node].get(number)
        if run is None or run.version != version:
            return False
        self.now = now
        del self._runs[node][number]
        self._occupied.discard(task.device)
        self.busy_s[task.device] = self.busy_s.get(task.device, 0.0) + self.now - run.begun
        self.computed_s[node] = self.computed_s.get(node, 0.0) + task.seconds
        return True


def _summary(simulation: _Simulation, machine: Machine) -> StepTime:
    own_s = machine.step_s + machine.device_s * len(simulation.busy_s)
    bounds = {f"work on {device}": busy for device, busy in simulation.busy_s.items()}
    if len(simulation.busy_s) > machine.cores:
        for node, computed in simulation.computed_s.items():
            bounds[f"the {machine.cores} cores of {'node ' + node if node else 'the node'}"] = computed / machine.cores
    for (node, way), busy in simulation.network_s.items():
        bounds[f"the network {way} of node {node}"] = busy
    bounds["the chain of operations and messages"] = max(simulation.chain_s, default=0.0)
    bounds["the driver"] = own_s
    longest = max(bounds, key=bounds.__getitem__)
    return StepTime(own_s + simulation.now, simulation.busy_s, (longest, bounds[longest]))


# -- tasks of a placed graph, and of partitions ------------------------------------------------------------


def tasks_of_placed(order: Sequence[Operation], placement: Mapping[Operation, str], cost: CostModel) -> list[Task]:
    """The tasks of a graph that is placed but not yet cut, with a Send wherever an edge crosses devices."""
    machine = cost.machine
    tasks: list[Task] = []
    numbers: dict[Operation, int] = {}
    received: dict[tuple[Operation, int, str], tuple[int, float, float]] = {}
    copied: set[tuple[Operation, int]] = set()
    for op in order:
        if is_copied_constant(op) or op.type == "Placeholder":
            continue  # each device has its own
        device = placement[op]
        task = Task(device, cost.seconds(op, device), op.name, width=cost.width(op, device))
        edges = [(tensor.op, tensor.value_index) for tensor in op.inputs] + [(c, -1) for c in op.control_inputs]
        for source, index in edges:
            if source not in numbers:
                continue
            if placement[source] == device:
                task.after.append(numbers[source])
                continue
            key = (source, index, device)
            if key not in received:
                size = cost.tensor_bytes(source.outputs[index]) if index >= 0 else 0
                home = placement[source]
                sending_s = machine.sending_s + (size / machine.copy_bytes_per_s if key[:2] not in copied else 0.0)
                copied.add(key[:2])
                tasks.append(Task(home, sending_s, source.name, [numbers[source]]))
                received[key] = (
                    len(tasks) - 1,
                    machine.travel_s(size, home, device),
                    machine.network_s(size, home, device),
                )
            number, task.late_s[received[key][0]], task.network_s[received[key][0]] = received[key]
            task.after.append(number)
        task.after = list(dict.fromkeys(task.after))
        numbers[op] = len(tasks)
        tasks.append(task)
    return tasks


@dataclass(frozen=True)
class Instance:
    """A run of a partition.

    Attributes:
        partition: The partition.
        device: Where it runs.
        replica: Number of the replica that it computes or serves; None for a partition that runs once in a step.
    """

    partition: Partition
    device: str
    replica: int | None = None


def instances_of(partitions: Iterable[Partition]) -> list[Instance]:
    """Every partition once, on its own device."""
    return [Instance(part, part.device) for part in partitions]


def instances_of_replicas(step: CompiledReplicaStep, workers: Sequence[str]) -> list[Instance]:
    """The shards and their standbys once, and for each worker its replica and what the shards serve to it."""
    instances = instances_of([*step.shards, *step.standbys.values()])
    for number, worker in enumerate(workers):
        instances.append(Instance(step.replica, worker, number))
        instances += [Instance(part, shard, number) for shard, part in step.serving.items()]
    return instances


def tasks_of_partitions(instances: Sequence[Instance], cost: CostModel) -> list[Task]:
    """The tasks of partitions."""
    tasks: list[Task] = []
    replicas = len({instance.replica for instance in instances} - {None})
    sends: dict[str, dict[int | None, int]] = {}
    receives: list[tuple[int, Operation, Instance]] = []
    sent: dict[int, Operation] = {}
    for instance in instances:
        numbers: dict[Operation, int] = {}
        copied: set[Tensor] = set()
        for op in instance.partition.graph.get_operations():
            numbers[op] = len(tasks)
            after = list(dict.fromkeys(numbers[earlier] for earlier in predecessors(op)))
            seconds = cost.seconds(op, instance.device, replicas)
            if op.type == "Send":
                sends.setdefault(op.attrs["key"], {})[instance.replica] = len(tasks)
                sent[len(tasks)] = op
                seconds = cost.machine.sending_s if op.inputs[0] in copied else seconds  # one copy serves all
                copied.add(op.inputs[0])
            elif op.type == "Recv":
                receives.append((len(tasks), op, instance))
            width = cost.width(op, instance.device)
            tasks.append(Task(instance.device, seconds, op.name, after, width=width))
    combined = {key for instance in instances for key in instance.partition.reductions}
    crossed: set[tuple[str, str, str]] = set()
    machine = cost.machine
    for number, op, instance in receives:
        key = op.attrs["key"]
        by_replica = sends.get(key, {})
        # A replica receives the answers to itself. A shard receives the contributions of all replicas.
        of_one = [by_replica[instance.replica]] if instance.replica in by_replica else list(by_replica.values())
        task = tasks[number]
        for source in of_one:
            size = cost.tensor_bytes(sent[source].inputs[0])
            ends = tasks[source].device, task.device
            task.after.append(source)
            task.late_s[source] = machine.travel_s(size, *ends)
            # Devices of a node share what comes from another node, and replicas what they have combined.
            way = key, machine.node(ends[0]), machine.node(ends[1])
            if way not in crossed or not (None in by_replica or key in combined):
                task.network_s[source] = machine.network_s(size, *ends)
            crossed.add(way)
    return tasks


@dataclass
class Traffic:
    """What moves from one device to another in a step."""

    messages: int = 0
    size_bytes: int = 0


def traffic_of(instances: Sequence[Instance], cost: CostModel) -> dict[tuple[str, str], Traffic]:
    """What moves between devices, by source and destination; within a loop, in one turn."""
    sends: dict[str, list[tuple[Instance, Operation]]] = {}
    within = [
        (instance, inner)
        for instance in instances
        for op in instance.partition.graph.get_operations()
        for inner in ops_within(op)
    ]
    for instance, op in within:
        if op.type == "Send":
            sends.setdefault(op.attrs["key"], []).append((instance, op))
    found: dict[tuple[str, str], Traffic] = {}
    for instance, op in within:
        if op.type != "Recv":
            continue
        sources = sends.get(op.attrs["key"], [])
        own = [pair for pair in sources if pair[0].replica == instance.replica]
        for source, send in own or sources:
            entry = found.setdefault((source.device, instance.device), Traffic())
            entry.messages += 1
            entry.size_bytes += cost.tensor_bytes(send.inputs[0])
    return found
