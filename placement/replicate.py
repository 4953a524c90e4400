"""Compile a training step in which one subgraph, the replica, runs on any number of workers.

The graph is placed over the parameter shards and one device that stands for every replica. Values that leave the
replica for a shard are of two kinds:

- *Contributions*, from which variables are updated, are combined by a ReplicaReduce operation on the shard. Optimizers
  mark gradients with one; every other contribution gets one here: floating-point tensors are averaged, of anything
  else the first replica's value is taken.
- *Questions*, to which the same replica needs the answer: the indices of embedding rows, mostly. What a shard computes
  between question and answer is *serving*. It becomes a partition of its own, which the shard runs once for each
  replica, so that only the rows used travel. It reads variables and updates none.

What the shards send to the replica without being asked goes to every replica.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from tfray.errors import InvalidArgumentError
from tfray.framework.device_spec import DeviceSpec
from tfray.framework.effects import access_of, accessed_handles, is_stateful
from tfray.framework.graph import Graph, Operation, Tensor
from tfray.framework.traversal import predecessors, reachable_backward
from tfray.placement.partition import is_copied_constant, partition
from tfray.placement.placer import Plan, place
from tfray.placement.policies import prefer
from tfray.placement.prune import prune
from tfray.placement.schedule import schedule
from tfray.placement.simplify import simplify
from tfray.runtime.plan import Partition


@dataclass(frozen=True)
class CompiledReplicaStep:
    """A replicated step.

    Attributes:
        shards: One partition per parameter shard that takes part.
        serving: By shard, the partition that it runs for each replica; shards that are asked nothing have none.
        replica: The partition that every replica runs; it fetches every tensor asked for, in order.
        feeds: The replica's feeds, as indices into the caller's feeds.
    """

    shards: list[Partition]
    serving: dict[str, Partition]
    replica: Partition
    feeds: list[int]


@lru_cache(maxsize=1024)
def serving_device(shard: str) -> str:
    """The device that stands for a shard while it serves one replica."""
    return replace(DeviceSpec.from_string(shard), replica=0).to_string()


def compile_replica_step(
    fetched: Sequence[Tensor],
    targets: Sequence[Operation],
    fed: Sequence[Tensor],
    shards: Sequence[str],
    replica: str,
    plan: Plan | None = None,
) -> CompiledReplicaStep:
    """Compile a training step for replicas.

    Args:
        fetched: Tensors that each replica returns.
        targets: The training operations. Variables must ask for one of `shards` (see `replica_device_setter`).
        fed: Tensors that each replica feeds from its own input.
        shards: Full names of the devices for variables.
        replica: The name that stands for every replica's device.
        plan: Chooses devices for what the program leaves open; without one that is the replica's.

    Raises:
        InvalidArgumentError: A placement constraint cannot be met, or a replica would have to wait for the update.
    """
    wanted = [*targets, *(tensor.op for tensor in fetched)]
    simplified = simplify(prune(wanted, fed), fed, wanted, fetched)
    devices = [*shards, replica]
    placement = place(simplified.graph, devices, allow_soft_placement=True, policy=prefer(replica), plan=plan)
    fetches = [simplified.tensors[tensor] for tensor in fetched]
    feed_ops = [simplified.feeds[tensor] for tensor in fed]
    roles = _Roles(simplified.graph, placement, fetches, shards[0], replica)
    split = _Splitter(roles, feed_ops)
    split.copy(simplified.graph)
    reported = [split.on_replica(tensor) for tensor in fetches]
    order, edges = schedule(split.graph)
    roots = [simplified.ops[op] for op in wanted if op in simplified.ops] + roles.not_waited_for
    live = reachable_backward([*(split.counterpart(op) for op in roots), *(tensor.op for tensor in reported)])
    placeholders = [split.counterpart(op) for op in feed_ops]
    partitions = partition([op for op in order if op in live], split.placement, placeholders, reported, edges)
    by_device = {part.device: part for part in partitions}
    own = by_device.pop(replica, None) or Partition(replica, Graph())
    serving = {shard: by_device.pop(serving_device(shard)) for shard in shards if serving_device(shard) in by_device}
    number = {op.name: i for i, op in enumerate(feed_ops)}
    return CompiledReplicaStep(list(by_device.values()), serving, own, [number[name] for name in own.feeds])


class _Roles:
    """What each operation of the placed graph does in a replicated step.

    Attributes:
        placement: Device of each operation; combined values stay on shards.
        replica: The replica's device.
        combined: Operations on combined values, and those that change state or must come after such a change.
        served: Operations of shards that answer a replica, and those of the same shard on which they depend.
        not_waited_for: Operations that lose a follower: a replica cannot wait for what is combined. They run anyway.
    """

    def __init__(
        self, graph: Graph, placement: dict[Operation, str], fetches: Sequence[Tensor], shard: str, replica: str
    ) -> None:
        self.placement = placement
        self.replica = replica
        self.combined: set[Operation] = set()
        self.not_waited_for: list[Operation] = []
        self._asks: set[Operation] = set()
        self._updated: dict[Operation, set[Tensor]] = {}
        for op in graph.get_operations():
            if self._is_combined(op):
                self._combine(op, shard)
            else:
                self.not_waited_for += [control for control in op.control_inputs if control in self.combined]
                of_replica = self.on_replica(op) and not is_copied_constant(op)
                if of_replica or any(earlier in self._asks for earlier in predecessors(op)):
                    self._asks.add(op)
        _check_fetches(fetches, self.combined)
        self.served = self._find_served(graph, fetches)

    def on_replica(self, op: Operation) -> bool:
        """Whether an operation runs on the replica."""
        return self.placement[op] == self.replica

    def asks(self, op: Operation) -> bool:
        """Whether an operation depends on what a single replica computes."""
        return op in self._asks

    def controls(self, op: Operation) -> list[Operation]:
        """Control inputs, less those that `op` cannot wait for."""
        if op in self.combined:
            return op.control_inputs
        return [control for control in op.control_inputs if control not in self.combined]

    def _is_combined(self, op: Operation) -> bool:
        if op.type == "ReplicaReduce" or any(tensor.op in self.combined for tensor in op.inputs):
            return True
        if _changes_state(op) and not self.on_replica(op) and any(p in self._asks for p in predecessors(op)):
            return True
        # A control edge only shows where state is involved. Elsewhere it is dropped, so that a batch normalisation's
        # updates, on which all gradients depend in TensorFlow programs, do not draw the gradients to the shard.
        late = [control for control in op.control_inputs if control in self.combined]
        if _changes_state(op):
            return bool(late) and (op.type == "NoOp" or not self.on_replica(op))
        return any(handle in self._updated[control] for control in late for handle in accessed_handles(op))

    def _combine(self, op: Operation, shard: str) -> None:
        self.combined.add(op)
        if self.on_replica(op):
            self.placement[op] = shard
        updated: set[Tensor] = set().union(*(self._updated.get(earlier, ()) for earlier in predecessors(op)))
        self._updated[op] = updated.union(accessed_handles(op) if access_of(op) == "update" else ())

    def _find_served(self, graph: Graph, fetches: Sequence[Tensor]) -> set[Operation]:
        before = [op for op in graph.get_operations() if op not in self.combined]
        awaited: set[Operation] = {tensor.op for tensor in fetches}
        # What a shard computes of one replica's values on the way to being combined is computed for each replica.
        marked = [op for op in self.combined if op.type == "ReplicaReduce"]
        awaited.update(tensor.op for op in marked for tensor in op.inputs)
        for op in reversed(before):
            if self.on_replica(op) or op in awaited:
                awaited.update([tensor.op for tensor in op.inputs] + self.controls(op))
        answers = [op for op in before if op in self._asks and op in awaited and not self.on_replica(op)]

        def on_same_shard(op: Operation) -> list[Operation]:
            earlier_ops = [tensor.op for tensor in op.inputs] + self.controls(op)
            return [earlier for earlier in earlier_ops if self.placement[earlier] == self.placement[op]]

        served = reachable_backward(answers, on_same_shard)
        for op in sorted(served, key=lambda op: op.id):
            _check_served(op)
        return served


def _changes_state(op: Operation) -> bool:
    return is_stateful(op) and access_of(op) != "read" and op.type not in ("Variable", "Placeholder")


def _check_fetches(fetches: Sequence[Tensor], combined: Collection[Operation]) -> None:
    for tensor in fetches:
        if tensor.op in combined:
            raise InvalidArgumentError(
                f"{tensor.name!r} cannot be reported by a replica: it depends on the combined update of the same "
                "step; report a value computed before the update",
                op_name=tensor.op.name,
                site=tensor.op.site,
            )


def _check_served(op: Operation) -> None:
    """What runs once for each replica must leave everything as it is."""
    if _changes_state(op):
        raise InvalidArgumentError(
            f"{op.name!r} ({op.type}) changes state on a parameter server, and a replica waits for it within the same "
            "step; make it part of the training operation, and let the loss not depend on it",
            op_name=op.name,
            site=op.site,
        )


class _Splitter:
    """Copies the placed graph, with serving on devices of its own and a ReplicaReduce on every contribution.

    What serves without depending on a question, such as the handle of a table, is there twice: for serving, and for
    the shard itself.

    Attributes:
        graph: The copy.
        placement: Device of every operation of the copy.
    """

    def __init__(self, roles: _Roles, feeds: Collection[Operation]) -> None:
        self.graph = Graph()
        self.placement: dict[Operation, str] = {}
        self._roles = roles
        self._feeds = set(feeds)
        self._copies: dict[Operation, Operation] = {}
        self._serving: dict[Operation, Operation] = {}
        self._relayed: dict[Tensor | Operation, Operation] = {}
        self._reduced: dict[tuple[Tensor, str], Tensor] = {}

    def copy(self, graph: Graph) -> None:
        """Copy every operation, in order."""
        roles = self._roles
        for op in graph.get_operations():
            if op in roles.served:
                name = op.name if roles.asks(op) else f"_serve/{op.name}"
                self._serving[op] = self._copy(op, serving_device(roles.placement[op]), name)
            if op not in roles.served or not roles.asks(op):
                self._copies[op] = self._copy(op, roles.placement[op], op.name)

    def counterpart(self, op: Operation) -> Operation:
        """What stands for an operation: on the replica, on its shard, or serving."""
        return self._copies[op] if op in self._copies else self._serving[op]

    def on_replica(self, tensor: Tensor) -> Tensor:
        """`tensor` as something that the replica computes, and may report or send."""
        op = tensor.op
        made = self.counterpart(op).outputs[tensor.value_index]
        if self._roles.on_replica(op) and op not in self._feeds:
            return made
        if tensor not in self._relayed:
            self._relayed[tensor] = self._add("Identity", [made], f"_relay/{op.name}", op, self._roles.replica)
        return self._relayed[tensor].outputs[0]

    def _copy(self, op: Operation, device: str, name: str) -> Operation:
        attrs = dict(op.attrs)
        if op.type == "Variable":
            attrs["shared_name"] = attrs["shared_name"] or op.name  # the storage, whatever the copy is called
        controls = [control for control in self._roles.controls(op) if control not in self._feeds]
        inputs = [self._input(tensor, op, device) for tensor in op.inputs]
        made = self._add(op.type, inputs, name, op, device, attrs, [self._control(c, device) for c in controls])
        for old, new in zip(op.outputs, made.outputs, strict=True):
            new.set_shape(old.shape)
        return made

    def _input(self, tensor: Tensor, consumer: Operation, device: str) -> Tensor:
        """`tensor` as an input of the copy of `consumer` on `device`."""
        source, roles = tensor.op, self._roles
        if device == roles.replica or is_copied_constant(source):
            return self.counterpart(source).outputs[tensor.value_index]
        if device != roles.placement[consumer]:  # the copy serves
            return (
                self._serving[source].outputs[tensor.value_index]
                if source in self._serving
                else self.on_replica(tensor)
            )
        if source in self._copies and not roles.on_replica(source):
            return self._copies[source].outputs[tensor.value_index]
        contribution = self.on_replica(tensor)
        return contribution if consumer.type == "ReplicaReduce" else self._reduce(contribution, device)

    def _control(self, control: Operation, device: str) -> Operation:
        """What stands for a control input of a copy on `device`."""
        if device == self._roles.replica or is_copied_constant(control):
            return self.counterpart(control)
        serves = device == serving_device(device)
        if serves and control in self._serving:
            return self._serving[control]
        if self._roles.on_replica(control) or (control in self._copies and not serves):
            return self._copies[control]
        if control not in self._relayed:
            name, waits = f"_relay/{control.name}", [self.counterpart(control)]
            self._relayed[control] = self._add("NoOp", [], name, control, self._roles.replica, {}, waits)
        return self._relayed[control]

    def _reduce(self, tensor: Tensor, device: str) -> Tensor:
        if (tensor, device) not in self._reduced:
            attrs = {"reduction": "mean" if tensor.dtype.is_differentiable else "first"}
            made = self._add("ReplicaReduce", [tensor], f"_replica_reduce/{tensor.op.name}", tensor.op, device, attrs)
            self._reduced[tensor, device] = made.outputs[0]
        return self._reduced[tensor, device]

    def _add(
        self,
        op_type: str,
        inputs: Sequence[Tensor],
        name: str,
        origin: Operation,
        device: str,
        attrs: Mapping[str, Any] | None = None,
        controls: Sequence[Operation] = (),
    ) -> Operation:
        made = self.graph.create_op(
            op_type,
            inputs,
            attrs,
            self.graph.unique_name(name) if name.startswith("_") else name,
            control_inputs=dict.fromkeys(controls),
            exact_name=True,
            device=device,
            site=origin.site,
        )
        self.placement[made] = device
        return made
