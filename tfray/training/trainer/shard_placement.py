"""Where the variables of a `Trainer`'s model live: their places on its parameter servers, and how they move."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
from typing import Final, NamedTuple

from tfray.actors.clusters.cluster import Cluster
from tfray.errors import InvalidArgumentError
from tfray.framework.device_spec import DeviceSpec
from tfray.framework.effects import makes_resource, resource_name
from tfray.framework.graph import DeviceFunction, Graph, Operation, Tensor
from tfray.framework.region import ops_within
from tfray.ops.state import state_ops
from tfray.ops.system.checkpoint_ops import SNAPSHOT
from tfray.session import Session
from tfray.training.threads.device_setter import GreedyLoadBalancingStrategy, byte_size_load_fn

JOB: Final = "ps"

MOVED_AT_ONCE_BYTES: Final = 1 << 30
"""Bytes of variables that move in one step, if they are not more by themselves: they are in the object store."""


class Move(NamedTuple):
    """A variable that moves from one shard to another.

    Attributes:
        variable: The operation that makes its handle.
        source: Full name of the shard's device that holds it.
        target: That of the shard that shall hold it.
    """

    variable: Operation
    source: str
    target: str


class NotedStrategy:
    """The parameter server with the least load so far. Notes which operations were placed.

    Args:
        num_tasks: Number of parameter servers.

    Attributes:
        placed: The operations, in their order.
    """

    def __init__(self, num_tasks: int) -> None:
        self.placed: list[Operation] = []
        self._strategy = GreedyLoadBalancingStrategy(num_tasks)

    def __call__(self, op: Operation) -> int:
        self.placed.append(op)
        return self._strategy(op)


@dataclass(frozen=True)
class ShardPlacement:
    """The places of the variables of one graph.

    Operations that ask for a variable's shard because they belong to the variable, such as slots and updates, follow
    it. What the program has put on a parameter server itself stays there.

    Attributes:
        graph: The graph.
        placed: The operations of the variables that the trainer has placed, in their order.
    """

    graph: Graph
    placed: Sequence[Operation]

    def place(self, tasks: Sequence[int]) -> list[Move]:
        """Spread the variables over parameter servers, as if the model had been built for these.

        Args:
            tasks: Their numbers.

        Returns:
            The variables that have to move.

        Raises:
            InvalidArgumentError: See `check`.
        """
        followed = self._followed()
        bound = self._checked(followed, tasks)
        strategy = GreedyLoadBalancingStrategy(len(tasks))
        homes = {op: tasks[strategy(op)] for op in self.placed}
        moves, devices = [], {}
        for op, leader in followed.items():
            home, before = homes[leader], task_of(op.device)
            if before is not None and home != before and leader not in bound:
                devices[op] = replace(DeviceSpec.from_string(op.device), task=home).to_string()
                if op.type == "Variable":
                    moves.append(Move(op, device_of(before), device_of(home)))
        self.graph.ask_for_devices(devices)
        return moves

    def check(self, tasks: Sequence[int]) -> None:
        """Raise `InvalidArgumentError` unless all that the program has put on parameter servers itself can stay."""
        self._checked(self._followed(), tasks)

    def check_all_movable(self) -> None:
        """Raise `InvalidArgumentError` if parameter servers have anything but variables that the trainer placed."""
        try:
            self.check(())
        except InvalidArgumentError as error:
            op = self.graph.get_operation_by_name(error.op_name or "")
            raise InvalidArgumentError(
                f"{op.name!r} ({op.type}) asks for {op.device}, where only variables may be that the trainer has put "
                "there: with replicated_shards a standby would not have it; let the program name no parameter server",
                op_name=op.name,
                site=op.site,
            ) from None

    def variables(self) -> list[Operation]:
        """The variables, with those that belong to them, such as slots."""
        return [op for op in self._followed() if op.type == "Variable"]

    def _checked(self, followed: Mapping[Operation, Operation], tasks: Sequence[int]) -> set[Operation]:
        """Check as `check` does. Returns the variables that stay because they share their shard with other state."""
        bound = {followed[op] for op in followed if makes_resource(op) and op.type not in ("Variable", SNAPSHOT.name)}
        for op in self._operations():
            if (op not in followed or followed[op] in bound) and task_of(op.device) not in tasks:
                raise InvalidArgumentError(
                    f"{op.name!r} asks for {op.device}, and only the parameter servers {', '.join(map(str, tasks))} "
                    "would be there; keep as many as the program names, or let it name none",
                    op_name=op.name,
                    site=op.site,
                )
        return bound

    def _operations(self) -> Iterator[Operation]:
        """The operations that ask for a parameter server, in order of creation."""
        for outer in self.graph.get_operations():
            yield from (op for op in ops_within(outer) if task_of(op.device) is not None)

    def _followed(self) -> dict[Operation, Operation]:
        """By operation that belongs to a variable and asks for its shard: the variable's own operation."""
        found = {op: op for op in self.placed}
        for op in self._operations():
            if op in found:
                continue
            named = (self.graph.get_operation_by_name(name) for name in op.placed_with if name in self.graph)
            others = chain(named, (tensor.op for tensor in op.inputs), op.control_inputs)
            task = task_of(op.device)
            leader = next((found[other] for other in others if other in found and task_of(other.device) == task), None)
            if leader is not None:
                found[op] = leader
        return found


def move_variables(cluster: Cluster, moves: Sequence[Move], job: str = JOB) -> None:
    """Copy variables with their values from task to task. Those without a value have none afterwards, either.

    Args:
        cluster: The actors.
        moves: The variables, and where they shall be. One may go to several tasks.
        job: The job of all these tasks.

    Raises:
        UnavailableError: A task has died.
    """
    for together in _batches(moves):
        graph = Graph()
        has_values, copies = [], []
        sources: dict[tuple[Operation, str], Tensor] = {}
        with graph.as_default():
            for move in together:
                attrs, name = move.variable.attrs, resource_name(move.variable)
                with graph.device(move.source):
                    if (move.variable, move.source) not in sources:
                        handle = state_ops.variable_handle(attrs["shape"], attrs["dtype"], shared_name=name)
                        sources[move.variable, move.source] = handle
                    source = sources[move.variable, move.source]
                with graph.device(move.target):
                    target = state_ops.variable_handle(attrs["shape"], attrs["dtype"], shared_name=name)
                has_values.append(state_ops.is_variable_initialized(source))
                copies.append(state_ops.assign(target, state_ops.read_variable(source), validate_shape=False).op)
        with Session(cluster.only(job), graph=graph) as session:
            known = session.run(has_values)
            session.run([copy for copy, has_value in zip(copies, known, strict=True) if has_value])


def _batches(moves: Sequence[Move]) -> Iterator[list[Move]]:
    batch: list[Move] = []
    size = 0.0
    for move in moves:
        added = byte_size_load_fn(move.variable)
        if batch and size + added > MOVED_AT_ONCE_BYTES:
            yield batch
            batch, size = [], 0.0
        batch.append(move)
        size += added
    if batch:
        yield batch


@lru_cache(maxsize=1024)
def on_cpus(setter: DeviceFunction | None) -> DeviceFunction:
    """The same device function, but that a parameter server's only device is its CPU: a model may ask for a GPU around
    variables, and means what its worker computes."""
    assert setter is not None

    def device(op: Operation) -> str:
        spec = DeviceSpec.from_string(str(setter(op)))
        return (spec if spec.job != JOB else spec.replace(device_type=None, device_index=None)).to_string()

    return device


def task_of(device: str) -> int | None:
    """The number of the parameter server for which a device name asks, if it asks for one."""
    spec = DeviceSpec.from_string(device)
    return spec.task if spec.job == JOB else None


def device_of(task: int) -> str:
    """Full name of the device of a parameter server."""
    return f"/job:{JOB}/task:{task}/device:CPU:0"
