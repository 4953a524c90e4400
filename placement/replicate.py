"""Compile a training step in which one subgraph, the replica, runs on any number of workers.

The graph is placed over the parameter shards and one device that stands for every replica. A replica sends two kinds of
values to shards:

- *Contributions*, from which variables are updated. A ReplicaReduce operation on the shard combines those of all
  replicas. Optimizers mark gradients with such an operation. Every other contribution gets one here: it averages
  floating-point tensors, and takes the first replica's value of anything else.
- *Questions*, to which the same replica needs the answer: mostly the indices of embedding rows. What a shard computes
  between question and answer is *serving*. It becomes a partition of its own, which the shard runs once for each
  replica, so that only the rows that are used travel. Serving reads variables and updates none.

What the shards send to the replica without being asked goes to every replica.

With `ReplicaOptions.accumulate` a replica works through several batches in a step, one after the other. The operations
that depend on a batch are copied for each batch. The replica contributes the combined values of all its batches, as
that many replicas would.

With `ReplicaOptions.has_copies` each replica is its own shard. All of the graph is one partition, which every replica
runs on its copy of the variables. Contributions are reduced among the replicas: a plan sends them to `RING_DEVICE`, and
receives from there what updates take.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Collection, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.device_spec import DeviceSpec
from tfray.framework.dtypes import DType
from tfray.framework.effects import access_of, accessed_handles, is_stateful
from tfray.framework.graph import Graph, Operation, Tensor
from tfray.framework.region import ops_within
from tfray.framework.traversal import predecessors, reachable_backward
from tfray.placement.contributions import Accumulation, FiniteChecks, Narrowing, ReplicaOptions, default_reduction
from tfray.placement.partition import is_copied_constant, partition
from tfray.placement.placer import JointPolicy, place
from tfray.placement.policies import prefer
from tfray.placement.prune import prune
from tfray.placement.schedule import schedule
from tfray.placement.simplify import simplify
from tfray.placement.standbys import with_standbys
from tfray.runtime.plan import Partition
from tfray.runtime.ring_edge import RING_DEVICE, RingEdge

REPLICA_DEVICE: Final = "/job:worker/replica:0/task:0/device:CPU:0"
"""The device that stands for every replica in a partitioned training graph."""

_HOME: Final = "/job:home/task:0/device:CPU:0"
"""Where variables are in a graph for replicas that hold copies of them, until it is cut."""


@dataclass(frozen=True)
class CompiledReplicaStep:
    """A replicated step.

    Attributes:
        shards: One partition per parameter shard that takes part; none if replicas hold copies of the variables.
        serving: By shard, the partition that it runs for each replica. Shards without questions have none.
        replica: The partition that every replica runs. It fetches every tensor asked for, in order.
        feeds: The replica's feeds, as indices into the caller's feeds. With several batches a step the caller's feeds
            are those of the first batch, then those of the second, and so on.
        checked: Names of variables. The replica fetches one more vector, which tells for each whether its update is
            finite.
        standbys: By shard, the partition of its standby, if it has one: see `tfray.placement.standbys`.
    """

    shards: list[Partition]
    serving: dict[str, Partition]
    replica: Partition
    feeds: list[int]
    checked: tuple[str, ...] = ()
    standbys: dict[str, Partition] = field(default_factory=dict)

    @property
    def standby_devices(self) -> dict[str, str]:
        """By shard: the device of its standby, if it has one."""
        return {shard: part.device for shard, part in self.standbys.items()}

    @property
    def homes(self) -> dict[str, str]:
        """By name of each operation that runs on shards: its shard."""
        parts = [*((part.device, part) for part in self.shards), *self.serving.items()]
        ops = ((shard, outer) for shard, part in parts for outer in part.graph.get_operations())
        return {op.name: shard for shard, outer in ops for op in ops_within(outer)}


@lru_cache(maxsize=1024)
def serving_device(shard: str) -> str:
    """The device that stands for a shard while it serves one replica."""
    return replace(DeviceSpec.from_string(shard), replica=0).to_string()


@lru_cache(maxsize=1024)
def device_serving(name: str) -> str:
    """The shard for which `serving_device` gives a name. Any other device is itself."""
    return replace(DeviceSpec.from_string(name), replica=None).to_string()


def compile_replica_step(
    fetched: Sequence[Tensor],
    targets: Sequence[Operation],
    fed: Sequence[Tensor],
    shards: Sequence[str],
    replica: str,
    joint_policy: JointPolicy | None = None,
    options: ReplicaOptions | None = None,
    standbys: Mapping[str, str] | None = None,
) -> CompiledReplicaStep:
    """Compile a training step for replicas.

    Args:
        fetched: Tensors that each replica returns.
        targets: The training operations. Variables must ask for one of `shards` (see `replica_device_setter`).
        fed: Tensors that each replica feeds from its own input.
        shards: Full names of the devices for variables. If replicas hold copies: the device of the first replica, for
            which the variables ask.
        replica: The name that stands for every replica's device.
        joint_policy: Decides what the program leaves open (see `placer.place`); None puts that on the replica.
        options: How replicas compute, and what they send.
        standbys: By shard, the full name of the device of its standby.

    Raises:
        InvalidArgumentError: A placement constraint cannot be met, or a replica would have to wait for the update.
    """
    options = options or ReplicaOptions()
    wanted = [*targets, *(tensor.op for tensor in fetched)]
    simplified = simplify(prune(wanted, fed), fed, wanted, fetched)
    if options.has_copies:
        shards = [_move_home(simplified.graph, shards[0])]
    devices = [*shards, replica]
    placement = place(
        simplified.graph, devices, allow_soft_placement=True, policy=prefer(replica), joint_policy=joint_policy
    )
    fetches = [simplified.tensors[tensor] for tensor in fetched]
    feed_ops = [simplified.feeds[tensor] for tensor in fed]
    roles = _Roles(simplified.graph, placement, fetches, shards[0], replica, options.has_copies)
    split = _Splitter(roles, feed_ops, fetches, options)
    split.copy(simplified.graph)
    order, edges = schedule(split.graph)
    roots = [simplified.ops[op] for op in wanted if op in simplified.ops] + roles.not_waited_for
    reached = [*map(split.counterpart, roots), *(tensor.op for tensor in split.reported), *split.kept]
    live = reachable_backward(reached)
    kept = [op for op in order if op in live]
    partitions = partition(kept, split.placement, split.fed, split.reported, edges, large_apart=True)
    by_device = {part.device: part for part in partitions}
    own = by_device.pop(replica, None) or Partition(replica, Graph())
    own.requests = {op.name: split.requests[op.name] for op in own.graph.get_operations() if op.name in split.requests}
    if options.has_copies:
        own.ring = _ring_edges(own, by_device.pop(RING_DEVICE, None))
    elif options.bad_gradients != "skip":  # each replica counts, or does not, for itself
        own.reductions = _reductions(by_device.values(), replica)
    serving = {shard: by_device.pop(serving_device(shard)) for shard in shards if serving_device(shard) in by_device}
    number = {op.name: i for i, op in enumerate(split.fed)}
    own.feeds.sort(key=number.__getitem__)  # however the variables are placed, inputs give the same
    feeds = [number[name] for name in own.feeds]
    if not standbys:
        return CompiledReplicaStep(list(by_device.values()), serving, own, feeds, split.checked)
    doubled = with_standbys(list(by_device.values()), own, standbys)
    return CompiledReplicaStep(doubled.shards, serving, doubled.replica, feeds, split.checked, doubled.standbys)


def _reductions(shards: Iterable[Partition], replica: str) -> dict[str, str]:
    """See `Partition.reductions`. Shards to which a branch or loop sends, or whose sums might overflow, have none."""
    found: dict[str, str] = {}
    for part in shards:
        ops = part.graph.get_operations()
        takers: dict[Operation, set[str]] = {
            op: set() for op in ops if op.type == "Recv" and op.attr("source") == replica
        }
        for op in ops:
            for source in {tensor.op for tensor in op.inputs}.intersection(takers):
                takers[source].add(op.attr("reduction") if op.type == "ReplicaReduce" else "")
        within = [op for outer in ops if outer.op_def.regions for op in ops_within(outer)]
        if any(op.type == "Recv" and op.attr("source") == replica for op in within):
            continue
        if any(op.attr("dtype") is dtypes.float16 or len(kinds) > 1 or "" in kinds for op, kinds in takers.items()):
            continue
        found.update({op.attr("key"): next(iter(kinds), "first") for op, kinds in takers.items()})
    return found


def _move_home(graph: Graph, device: str) -> str:
    """Let what asks for the task of a device ask for `_HOME` instead. Returns that.

    Otherwise the device that stands for all replicas would do as well.
    """
    asked = DeviceSpec.from_string(device)
    specs = {op: DeviceSpec.from_string(op.device) for op in graph.get_operations()}
    graph.ask_for_devices({op: _HOME for op, spec in specs.items() if (spec.job, spec.task) == (asked.job, asked.task)})
    return _HOME


def _ring_edges(own: Partition, ring: Partition | None) -> list[RingEdge]:
    """What is reduced by the operations on `RING_DEVICE`, in the order in which a replica contributes to it."""
    found: list[RingEdge] = []
    for op in [] if ring is None else ring.graph.get_operations():
        if op.type == "Send":
            (reduce,) = [tensor.op for tensor in op.inputs]
            (value,) = reduce.inputs
            shape = value.shape.whole()
            edge = RingEdge(
                value.op.attr("key"),
                op.attr("key"),
                reduce.attr("reduction"),
                value.dtype.name,
                reduce.outputs[0].dtype.name,
                shape,
            )
            found.append(edge)
    order = {op.attr("key"): number for number, op in enumerate(own.graph.get_operations()) if op.type == "Send"}
    return sorted(found, key=lambda edge: order[edge.key])


class _Roles:
    """What each operation of the placed graph does in a replicated step.

    Attributes:
        placement: Device of each operation; combined values stay on shards.
        replica: The replica's device.
        combined: Operations on combined values, and those that change state or must come after such a change.
        served: Operations of shards that answer a replica, and those of the same shard on which they depend.
        not_waited_for: Combined operations on which others depend by a control edge that was dropped, because a replica
            cannot wait for a combined value. They run all the same.
    """

    def __init__(
        self,
        graph: Graph,
        placement: dict[Operation, str],
        fetches: Sequence[Tensor],
        shard: str,
        replica: str,
        has_copies: bool = False,
    ) -> None:
        self.placement = placement
        self.replica = replica
        self.combined: set[Operation] = set()
        self.not_waited_for: list[Operation] = []
        self._of_one_replica: set[Operation] = set()
        self._updated: dict[Operation, set[Tensor]] = {}
        self._graph = graph
        for op in graph.get_operations():
            if self._is_combined(op):
                self._combine(op, shard)
            else:
                self.not_waited_for += [control for control in op.control_inputs if control in self.combined]
                of_replica = self.on_replica(op) and not is_copied_constant(op)
                if of_replica or any(earlier in self._of_one_replica for earlier in predecessors(op)):
                    self._of_one_replica.add(op)
        _check_fetches(fetches, self.combined)
        self.served = self._find_served(graph, fetches)
        if has_copies:  # a replica answers itself
            self.placement.update({op: replica for op in self.served if self.is_of_one_replica(op)})
            self.served = set()
            self.check_alike()

    def check_alike(self) -> None:
        """Raise unless what updates copies of variables is the same on each replica: nothing there draws numbers."""
        for outer in self._graph.get_operations():
            for op in ops_within(outer) if self.is_late(outer) or not self.on_replica(outer) else ():
                if "seed" in op.attrs and _draws(op):
                    raise InvalidArgumentError(
                        f"{op.name!r} ({op.type}) draws random numbers for an update, from gradients that are combined "
                        "already: copies of the variables would differ; let it depend on shapes and values from before "
                        "that, or use parameter servers",
                        op_name=op.name,
                        site=op.site,
                    )

    def on_replica(self, op: Operation) -> bool:
        """Whether an operation runs on the replica."""
        return self.placement[op] == self.replica

    def is_of_one_replica(self, op: Operation) -> bool:
        """Whether an operation depends on what a single replica computes."""
        return op in self._of_one_replica

    def is_late(self, op: Operation) -> bool:
        """Whether it runs once per step on a shard, on what replicas contribute or after that."""
        return op in self.combined or (self.is_of_one_replica(op) and not self.on_replica(op) and op not in self.served)

    def repeated(self, feeds: Collection[Operation]) -> list[Operation]:
        """The operations that a replica runs anew for each batch: they depend on the batch, or draw random numbers."""
        found: dict[Operation, None] = {}
        for op in self._graph.get_operations():
            if op in feeds:
                found[op] = None
            elif not self.is_late(op) and (self.on_replica(op) or (op in self.served and self.is_of_one_replica(op))):
                earlier = [tensor.op for tensor in op.inputs] + self.controls(op)
                if _draws(op) or any(other in found for other in earlier):
                    found[op] = None
        return list(found)

    def controls(self, op: Operation) -> list[Operation]:
        """Control inputs, less those that `op` cannot wait for."""
        if op in self.combined:
            return op.control_inputs
        return [control for control in op.control_inputs if control not in self.combined]

    def _is_combined(self, op: Operation) -> bool:
        if op.type == "ReplicaReduce" or any(tensor.op in self.combined for tensor in op.inputs):
            return True
        # It changes a shard's state by a replica's value: it runs once per step, not once for each replica.
        if _changes_state(op) and not self.on_replica(op) and any(p in self._of_one_replica for p in predecessors(op)):
            return True
        # A control edge makes an operation combined only where state is involved; elsewhere the edge is dropped. In
        # TensorFlow programs all gradients depend by control edges on the updates of batch normalisations: these edges
        # must not move the gradients to the shard.
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
        # A ReplicaReduce combines one value from each replica, so the shard computes its inputs for each replica.
        marked = [op for op in self.combined if op.type == "ReplicaReduce"]
        awaited.update(tensor.op for op in marked for tensor in op.inputs)
        for op in reversed(before):
            if self.on_replica(op) or op in awaited:
                awaited.update([tensor.op for tensor in op.inputs] + self.controls(op))
        answers = [op for op in before if op in self._of_one_replica and op in awaited and not self.on_replica(op)]

        def on_same_shard(op: Operation) -> list[Operation]:
            earlier_ops = [tensor.op for tensor in op.inputs] + self.controls(op)
            return [earlier for earlier in earlier_ops if self.placement[earlier] == self.placement[op]]

        served = reachable_backward(answers, on_same_shard)
        for op in sorted(served, key=lambda op: op.id):
            _check_served(op)
        return served


def _changes_state(op: Operation) -> bool:
    return is_stateful(op) and access_of(op) != "read" and op.type not in ("Variable", "Placeholder")


def _draws(op: Operation) -> bool:
    """Whether an operation returns a new value each time, such as random numbers or elements of a queue."""
    is_handle = bool(op.outputs) and all(tensor.dtype is dtypes.resource for tensor in op.outputs)
    return _changes_state(op) and op.type != "NoOp" and not is_handle


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
    """Raise unless `op`, which runs once for each replica, leaves all state as it is."""
    if _changes_state(op):
        raise InvalidArgumentError(
            f"{op.name!r} ({op.type}) changes state on a parameter server, and a replica waits for it within the same "
            "step; make it part of the training operation, and let the loss not depend on it",
            op_name=op.name,
            site=op.site,
        )


class _Splitter:
    """Copies the placed graph, with serving on devices of its own and a ReplicaReduce on every contribution.

    An operation that serves but depends on no question, such as the handle of a table, is copied twice: for serving,
    and for the shard itself.

    Args:
        roles: What each operation does.
        feeds: Placeholders of what replicas feed.
        fetches: Tensors that replicas return.
        options: How replicas compute, and what they send.

    Attributes:
        graph: The copy.
        placement: Device of every operation of the copy.
        fed: The copies of `feeds`; with several batches in a step, those of the first, of the second, and so on.
        reported: What replicas return: the fetches, then the verdict on finite contributions, if that is wanted.
        kept: Operations that must run although nothing depends on them.
        checked: See `CompiledReplicaStep`.
        requests: See `Partition.requests`.
    """

    # `_copies`, `_serving`: operation of the placed graph to its copy on the replica or shard, and to the copy that
    # serves. `_relayed`: what the replica passes on to shards. `_turn`: number of the batch that is being copied.
    # `_varying`: where replicas hold copies of the variables, the operations whose values may differ among them.

    def __init__(
        self, roles: _Roles, feeds: Sequence[Operation], fetches: Sequence[Tensor], options: ReplicaOptions
    ) -> None:
        self.graph = Graph()
        self.placement: dict[Operation, str] = {}
        self.fed: list[Operation] = []
        self.reported: list[Tensor] = []
        self.kept: list[Operation] = []
        self.checked: tuple[str, ...] = ()
        self.requests: dict[str, str] = {}
        self._roles = roles
        self._feeds = list(feeds)
        self._fetches = list(fetches)
        self._options = options
        self._copies: MutableMapping[Operation, Operation] = {}
        self._serving: MutableMapping[Operation, Operation] = {}
        self._relayed: MutableMapping[Tensor | Operation, Operation] = {}
        self._reduced: dict[tuple[Tensor, str, DType, str], Tensor] = {}
        self._varying: set[Operation] = set()
        self._turn = 0
        self._begin: Operation | None = None
        self._repeated: set[Operation] = set()
        self._updates: dict[Operation, str] = {}
        self._contributed: dict[tuple[Tensor, str], Tensor] = {}
        self._accumulation = Accumulation(self._add, roles.replica, options.accumulate)
        mode = options.bad_gradients
        self._checks = None if mode is None else FiniteChecks(self._add, roles.replica, mode)
        self._narrowing = Narrowing(self._add, self.placement, options.wire_dtype, not options.has_copies)

    def copy(self, graph: Graph) -> None:
        """Copy every operation, in order."""
        ops, roles = graph.get_operations(), self._roles
        late = [op for op in ops if roles.is_late(op)]
        if self._options.has_copies:
            self._varying = set(roles.repeated(self._feeds))
        for op in ops:
            if not roles.is_late(op):
                self._copy_where_needed(op)
        self.fed = [self.counterpart(op) for op in self._feeds]
        if self._options.accumulate > 1:
            self._repeat(roles.repeated(self._feeds), late)
        self._updates = _updated_variables(late)
        for op in late:
            self._copy_where_needed(op)
        for tensor in self._fetches:
            reported = self._accumulation.total((tensor, _reported_as(tensor)))
            self.reported.append(self.on_replica(tensor) if reported is None else reported)
        verdict = self._add_verdict(self._checks, late) if self._checks is not None and late else None
        if self._options.has_copies:
            self._update_together(ops, verdict)
            self._bring_home()

    def counterpart(self, op: Operation) -> Operation:
        """The copy of an operation: on the replica or its shard, or else the one that serves."""
        return self._copies[op] if op in self._copies else self._serving[op]

    def on_replica(self, tensor: Tensor) -> Tensor:
        """A tensor with the value of `tensor` that the replica computes itself, and so may report or send."""
        op = tensor.op
        made = self.counterpart(op).outputs[tensor.value_index]
        if self._roles.on_replica(op) and op not in self._feeds:
            return made
        if tensor not in self._relayed:
            value = made if op in self._feeds else self._narrowing.crossed(made, self._roles.replica)
            after = [self._begin] if self._begin is not None and op in self._feeds else []
            name = f"_relay/{op.name}"
            self._relayed[tensor] = self._add("Identity", [value], name, op, self._roles.replica, {}, after)
        return self._relayed[tensor].outputs[0]

    # -- several batches -------------------------------------------------------------------------

    def _repeat(self, repeated: Sequence[Operation], late: Sequence[Operation]) -> None:
        """Copy what depends on a batch once for each further batch of a step."""
        gathered = [
            (tensor, _reduction(op, tensor)) for op in late for tensor in op.inputs if self._is_from_replica(tensor)
        ]
        gathered += [(tensor, _reported_as(tensor)) for tensor in self._fetches]
        self._repeated = set(repeated)
        wanted = [key for key in dict.fromkeys(gathered) if key[0].op in self._repeated]
        first = self._copies, self._serving, self._relayed
        done = [self._accumulation.gather(key, self.on_replica(key[0])) for key in wanted]
        for turn in range(1, self._options.accumulate):
            self._turn = turn
            self._copies, self._serving = ChainMap({}, first[0]), ChainMap({}, first[1])
            self._relayed = {}
            # A batch begins when the one before has been gathered, so that only one batch's values are in memory.
            self._begin = self._add("NoOp", [], "_turn/begin", repeated[0], self._roles.replica, {}, done)
            for op in repeated:
                self._copy_where_needed(op)
            self.fed += [self.counterpart(op) for op in self._feeds]
            done = [self._accumulation.gather(key, self.on_replica(key[0])) for key in wanted]
        self._turn, self._begin = 0, None
        self._copies, self._serving, self._relayed = first

    def _is_from_replica(self, tensor: Tensor) -> bool:
        """Whether replicas send `tensor` to the late operations that take it."""
        source, roles = tensor.op, self._roles
        if roles.is_late(source) or is_copied_constant(source):
            return False
        return roles.on_replica(source) or source in self._feeds or source not in self._copies

    def _add_verdict(self, checks: FiniteChecks, late: Sequence[Operation]) -> Operation | None:
        """Let the replica report the verdict of its checks, and the shards wait for it before they combine anything.

        Returns the operation of the verdict, if there is one.
        """
        verdict = checks.verdict(late[0])
        if verdict is None:
            return None
        mode = self._options.bad_gradients
        if mode != "stop":
            self.checked = tuple(checks.names)
            self.reported.append(verdict)
        if mode != "report" and not self._options.has_copies:
            attrs = {"reduction": "first", "Tout": verdict.dtype}
            for shard in dict.fromkeys(self.placement[self.counterpart(op)] for op in late):
                self.kept.append(self._add("ReplicaReduce", [verdict], "_verdict", late[0], shard, attrs))
        return verdict.op

    # -- replicas that hold copies of the variables -----------------------------------------------

    def _update_together(self, ops: Sequence[Operation], verdict: Operation | None) -> None:
        """Let no replica update anything in a step in which another has no batch.

        What takes a reduced value waits for all replicas anyway. If bad gradients stop the run, nothing is updated
        before each replica has found its own to be good; but for updates on which gradients depend.
        """
        roles = self._roles
        updates = [op for op in ops if _changes_state(op) and not roles.on_replica(op) and op.type != "ReplicaReduce"]
        late = {self.counterpart(op) for op in updates if roles.is_late(op)}
        early = {self.counterpart(op) for op in updates} - late
        waiting: set[Operation] = set()
        for op in self.graph.get_operations():
            if self.placement[op] == RING_DEVICE or any(earlier in waiting for earlier in predecessors(op)):
                waiting.add(op)
        if verdict is not None and self._options.bad_gradients == "stop":
            self._wait_for_all(late, ops[0], [verdict])
        else:
            early |= late - waiting
        self._wait_for_all(early, ops[0])

    def _wait_for_all(self, waiting: Collection[Operation], origin: Operation, after: Sequence[Operation] = ()) -> None:
        """Let operations wait until `after` has run on each replica that takes part in the step."""
        if not waiting:
            return
        name, replica = "_ring/ready", self._roles.replica
        value = {"value": np.zeros((), np.float32), "dtype": dtypes.float32}
        token = self._add("Const", [], name, origin, replica, value).outputs[0]
        ready = self._add("Identity", [token], name, origin, replica, {}, after).outputs[0]
        attrs = {"reduction": "first", "Tout": ready.dtype}
        all_ready = self._add("ReplicaReduce", [ready], name, origin, RING_DEVICE, attrs).outputs[0]
        begun = self._add("Identity", [all_ready], "_ring/begun", origin, replica)
        for op in waiting:
            op.add_control_inputs([begun])

    def _bring_home(self) -> None:
        """Place all but what is reduced on the replica. What updates variables stays on its CPU, where they are."""
        for op, device in self.placement.items():
            if device not in (RING_DEVICE, self._roles.replica):
                self.placement[op] = self._roles.replica
                self.requests[op.name] = "/device:CPU:0"

    # -- operations ------------------------------------------------------------------------------

    def _copy_where_needed(self, op: Operation) -> None:
        roles = self._roles
        prefix = f"_turn{self._turn}/" if self._turn else ""
        if op in roles.served:
            name = op.name if roles.is_of_one_replica(op) else f"_serve/{op.name}"
            self._serving[op] = self._copy(op, serving_device(roles.placement[op]), prefix + name)
        if op not in roles.served or not roles.is_of_one_replica(op):
            self._copies[op] = self._copy(op, roles.placement[op], prefix + op.name)

    def _copy(self, op: Operation, device: str, name: str) -> Operation:
        attrs = dict(op.attrs)
        if op.type == "Variable":
            attrs["shared_name"] = attrs["shared_name"] or op.name  # all copies use one storage, whatever their names
        if op.type == "ReplicaReduce":
            del attrs["T"]  # inferred anew: its input may come in a narrower dtype
        controls = [control for control in self._roles.controls(op) if control not in self._feeds]
        inputs = [self._input(tensor, op, device) for tensor in op.inputs]
        waits = [self._control(control, device) for control in controls]
        if self._turn:
            _draw_others(attrs, self._turn)
            earlier = [*(tensor.op for tensor in op.inputs), *controls]
            if not any(other in self._repeated and other not in self._feeds for other in earlier):
                waits += [self._begin] if self._begin is not None and device == self._roles.replica else []
        if op in self._feeds:
            waits = []
        made = self._add(op.type, inputs, name, op, device, attrs, waits)
        for old, new in zip(op.outputs, made.outputs, strict=True):
            new.set_shape(old.shape)
        return made

    def _input(self, tensor: Tensor, consumer: Operation, device: str) -> Tensor:
        """`tensor` as an input of the copy of `consumer` on `device`."""
        source, roles = tensor.op, self._roles
        if is_copied_constant(source):
            return self.counterpart(source).outputs[tensor.value_index]
        if device == roles.replica:
            made = self.counterpart(source).outputs[tensor.value_index]
            return made if source in self._feeds else self._narrowing.crossed(made, device)
        if device != roles.placement[consumer]:  # the copy of `consumer` is the one that serves
            return (
                self._serving[source].outputs[tensor.value_index]
                if source in self._serving
                else self._narrowing.crossed(self.on_replica(tensor), device)
            )
        if source in self._copies and not roles.on_replica(source):
            return self._copies[source].outputs[tensor.value_index]
        return self._contribution(tensor, consumer, device)

    def _contribution(self, tensor: Tensor, consumer: Operation, device: str) -> Tensor:
        """What a replica sends of `tensor`, if `consumer` is a ReplicaReduce; else the result of an added one.

        If replicas hold copies of the variables, there is always one more, where contributions meet.
        """
        has_copies, is_marked = self._options.has_copies, consumer.type == "ReplicaReduce"
        if has_copies and tensor.op not in self._varying:
            return self.counterpart(tensor.op).outputs[tensor.value_index]
        key = tensor, _reduction(consumer, tensor)
        if key not in self._contributed:
            total = self._accumulation.total(key)
            sent = self._narrowing.sent(self.on_replica(tensor) if total is None else total)
            if self._checks is not None:
                variable = self._updates.get(consumer, consumer.name)
                self._checks.check(sent, tensor.op, variable, is_marked)
            self._contributed[key] = sent
        sent = self._contributed[key]
        if is_marked and not has_copies:
            return sent
        where, dtype = RING_DEVICE if has_copies else device, consumer.outputs[0].dtype if is_marked else tensor.dtype
        meeting = (*key, dtype, where)
        if meeting not in self._reduced:
            attrs = {"reduction": key[1], "Tout": dtype}
            made = self._add("ReplicaReduce", [sent], f"_replica_reduce/{tensor.op.name}", tensor.op, where, attrs)
            self._reduced[meeting] = made.outputs[0]
        return self._reduced[meeting]

    def _control(self, control: Operation, device: str) -> Operation:
        """The operation of the copied graph for which a copy on `device` waits in place of `control`."""
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
        made = self.graph.add_operation(
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
        if device == self._roles.replica and origin.name in self.requests:
            self.requests[made.name] = self.requests[origin.name]
        elif device == self._roles.replica and origin.device and origin.graph is not self.graph:
            spec = DeviceSpec.from_string(origin.device)
            if spec.device_type is not None:
                self.requests[made.name] = spec.replace(job=None, replica=None, task=None).to_string()
        return made


def _reduction(consumer: Operation, tensor: Tensor) -> str:
    """How the values of `tensor` that replicas contribute to `consumer` are combined."""
    marked: str | None = consumer.attrs["reduction"] if consumer.type == "ReplicaReduce" else None
    return marked or default_reduction(tensor.dtype)


def _reported_as(tensor: Tensor) -> str:
    """How a fetched value of several batches is reported: as the mean of numbers, or the first of anything else."""
    return "first" if tensor.dtype in (dtypes.string, dtypes.bool_) else "mean"


def _draw_others(attrs: dict[str, Any], turn: int) -> None:
    """Give a copy of a random operation another seed, so that each batch draws other numbers.

    The factor is 2**64 divided by the golden ratio: multiples of it lie far apart.
    """
    if attrs.get("seed") or attrs.get("seed2"):
        attrs["seed2"] = (attrs["seed2"] + turn * 0x9E3779B97F4A7C15) % (1 << 63)


def _updated_variables(late: Sequence[Operation]) -> dict[Operation, str]:
    """For each late operation that leads to an update, the name of the variable that is updated."""
    found: dict[Operation, str] = {}
    for op in reversed(late):
        handles = accessed_handles(op) if access_of(op) == "update" else []
        if handles:
            found[op] = handles[0].op.name
        if op in found:
            for tensor in op.inputs:
                found.setdefault(tensor.op, found[op])
    return found
