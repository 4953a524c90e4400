"""A partition compiled for its device: segments between blocking operations, and the values that flow between them.

A segment is the set of operations with the same blocking ancestors. As soon as these ancestors have delivered, the
segment runs from end to end without waiting. Recv operations of one *group* count as one ancestor, because their
tensors are sent together. Every other operation that may wait, such as that of a queue, is cut out as a segment first.
Segments that run one behind the other in any case are then one again: a *chain*. The executor leaves a segment where
it has to wait, and holds up only what depends on it. Constants and handles of variables belong to every segment that
reads them.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from tfray.bulk import making_much
from tfray.errors import InvalidArgumentError, OpError
from tfray.framework import dtypes
from tfray.framework.effects import access_of, accessed_handles, is_blocking
from tfray.framework.graph import Graph, Operation, Tensor
from tfray.framework.importer import from_graph_def
from tfray.framework.region import ops_within
from tfray.framework.traversal import predecessors, reachable_backward
from tfray.ops.system.replica_ops import Contributions
from tfray.runtime.compiled_body import CompiledBody
from tfray.runtime.cuda_graphs import draws_first
from tfray.runtime.device import Device
from tfray.runtime.host_values import host_values
from tfray.runtime.releases import Releases, find_releases
from tfray.runtime.ring_edge import RingEdge
from tfray.runtime.segment_body import Body, depends_on_input_shapes, generic_body, specialize

MAX_SPECIALIZATIONS: Final = 8
"""Number of combinations of input shapes for which a segment is compiled specially. Further combinations share one
generic form, so that inputs of ever new shapes do not compile for ever."""


_MOST_CHAINED_BYTES: Final = 1 << 22
"""4 MiB of results: a segment that computes more takes so long that running it by itself does not matter."""


@dataclass
class Partition:
    """What one device runs in a step.

    Attributes:
        device: Full name of the device.
        graph: Its operations, created in the order in which they shall run.
        feeds: Names of the Placeholder operations whose values the caller passes, in order.
        fetches: Names of the tensors to return, in order.
        optimize: Whether values that follow from input shapes may be computed when compiling.
        is_woken: Whether the first tensor from another device makes its device begin a step. The driver then need not
            ask it.
        wakes: Devices that this one wakes in this way.
        reductions: Of a replica: by the key of an edge to a shard, how the shard combines what replicas contribute
            there, see `replica_ops.replica_reduce`. It has all edges to a shard, or none of them.
        also_from: By device from which it receives tensors: another that sends the same, by the same keys. Whichever
            comes first counts.
        replica: Of a shard whose steps may overlap: the device that stands for its replicas. See `runtime.releases`.
        requests: Of a replica: by operation, the type and index of the device for which the program asks, such as
            ``/device:GPU:1``. A worker with GPUs of its own follows them, see `placement.own_devices`.
        ring: Of a replica that holds a copy of the variables: what it reduces with the others, see `runtime.ring_edge`.
    """

    device: str
    graph: Graph
    feeds: list[str] = field(default_factory=list)
    fetches: list[str] = field(default_factory=list)
    optimize: bool = True
    is_woken: bool = False
    wakes: list[str] = field(default_factory=list)
    reductions: dict[str, str] = field(default_factory=dict)
    also_from: dict[str, str] = field(default_factory=dict)
    replica: str = ""
    requests: dict[str, str] = field(default_factory=dict)
    ring: list[RingEdge] = field(default_factory=list)

    @property
    def only_sends(self) -> bool:
        """Whether all that it does leads to tensors that it sends, so that it cannot be the last to end a step."""
        ops = self.graph.get_operations()
        sends = [op for op in ops if op.type == "Send"]
        return bool(sends) and not self.fetches and reachable_backward(sends).issuperset(ops)

    @property
    def waits_for_tensors(self) -> bool:
        """Whether nothing in it can run before another device has sent something."""
        if self.feeds:
            return False
        fetched = {self.graph.tensor_named(name).op for name in self.fetches}
        awaiting: set[Operation] = set()
        for op in self.graph.get_operations():
            if op.type == "Recv" or any(earlier in awaiting for earlier in predecessors(op)):
                awaiting.add(op)
            elif not _is_source(op) or op in fetched:
                return False
        return bool(awaiting)

    @property
    def receivers(self) -> set[str]:
        """Devices to which it sends a tensor in every step."""
        return {op.attr("destination") for op in self.graph.get_operations() if op.type == "Send"}

    def to_plain(self) -> tuple[Any, ...]:
        """Plain data for another process."""
        return (
            self.device,
            self.graph.as_plain(),
            self.feeds,
            self.fetches,
            self.optimize,
            self.is_woken,
            self.wakes,
            self.reductions,
            self.also_from,
            self.replica,
            self.requests,
            [tuple(edge) for edge in self.ring],
        )

    @classmethod
    def from_plain(cls, plain: tuple[Any, ...]) -> Partition:
        """The partition that `to_plain` gave."""
        device, graph_def, *rest = plain
        rest[-1] = [RingEdge(*edge) for edge in rest[-1]]
        return cls(device, from_graph_def(graph_def), *rest)


class Segment:
    """Operations that run once their blocking ancestors have delivered.

    Attributes:
        mask: A bit for each group of Recv operations, and each operation that waits, among its ancestors.
        ops: The operations.
        sources: Constants and handles that they read. Each segment that reads one has its own.
        suspends: Whether operations of it may have to wait. The executor then leaves it, and goes on with it later.
        may_hold_thread: Whether its only operation is a branch or a loop in which something may have to wait. Such an
            operation cannot be left: it keeps its thread while it waits.
        sends: Whether it sends tensors to other devices.
        last_read_slots: Slots of received tensors that no other segment needs. They are emptied once it has run.
        waits: Number of earlier segments and Recv operations that it waits for.
        followers: Segments that wait for it.
        releases: What is released once it and others have run; see `Releases.keys`.
    """

    def __init__(self, index: int, mask: int, ops: list[Operation]) -> None:
        self.index = index
        self.mask = mask
        self.ops = ops
        self.sources: list[Operation] = []
        self.suspends = any(op.op_def.blocking for op in ops)
        self.may_hold_thread = not self.suspends and is_blocking(ops[0])
        self.sends = False
        self.inputs: list[Tensor] = []
        self.outputs: list[Tensor] = []
        self.input_slots: list[int] = []
        self.output_slots: list[int] = []
        self.last_read_slots: list[int] = []
        self.waits = 0
        self.followers: list[Segment] = []
        self.releases: list[str] = []
        self.body: Body
        self._by_shapes = False
        self._compiled: dict[Any, CompiledBody | DrawnFirst] = {}
        self._generic: CompiledBody | DrawnFirst | None = None
        self._lock = threading.Lock()

    def prepare(self, plan: Plan) -> None:
        """Decide how to compile, once inputs and outputs are known."""
        self._plan = plan
        self.sends = any(inner.type == "Send" for op in self.ops for inner in ops_within(op))
        self.body = generic_body([*self.sources, *self.ops], self.inputs, self.outputs)
        self._by_shapes = not self.suspends and depends_on_input_shapes(self.body)

    def run(self, step: Any, values: Sequence[Any]) -> tuple[Any, ...]:
        """Run on these input values and return the outputs."""
        key = tuple([getattr(value, "shape", None) for value in values]) if self._by_shapes else None
        compiled = self._compiled.get(key) or self._generic or self._compile(key)
        return compiled(step, *values)

    def _compile(self, key: Any) -> CompiledBody | DrawnFirst:
        with self._lock:
            if key not in self._compiled and len(self._compiled) >= MAX_SPECIALIZATIONS:
                key = None
            if key not in self._compiled:
                try:
                    body = self.body if key is None or not self._plan.optimize else self._body_for(key)
                    self._compiled[key] = self._plan.compile(self, body)
                except OpError as error:  # such as input shapes that do not fit together
                    error.device = error.device or self._plan.device.name
                    raise
                if key is None:
                    self._generic = self._compiled[key]
            return self._compiled[key]

    def _body_for(self, shapes: Sequence[Any]) -> Body:
        """The operations for inputs of these shapes. Where these do not fit together, an assertion among the operations
        may say so in the program's words: then they run as they are."""
        try:
            return specialize(self.body, shapes)
        except OpError:
            if not any(op.type == "Assert" for op in self.body.ops):
                raise
            return self.body

    @property
    def forms(self) -> int:
        """How many forms have been compiled."""
        return len(self._compiled)

    @property
    def buffer_bytes(self) -> int:
        """Bytes of reusable memory that one run of the largest compiled form holds."""
        return max((compiled.buffer_bytes for compiled in self._compiled.values()), default=0)


class DrawnFirst:
    """A body in two parts, see `draws_first`. It is called as a `CompiledBody` is."""

    def __init__(self, draws: CompiledBody, rest: CompiledBody) -> None:
        self._draws = draws
        self._rest = rest
        self.buffer_bytes = draws.buffer_bytes + rest.buffer_bytes

    def __call__(self, step: Any, *inputs: Any) -> tuple[Any, ...]:
        """Run both."""
        return self._rest(step, *inputs, *self._draws(step))


class Plan:
    """A compiled partition. Immutable once built; any number of steps may run it at once.

    Args:
        partition: The operations to run.
        device: The device that runs them.
        sends_copy: Whether the rendezvous copies what it sends before `send` returns.
        sent_in_place_bytes: From this size on, results that are only sent are computed in the rendezvous's memory. None
            where the rendezvous has no memory of its own.
        traced: Whether its code takes the times of a `tracing.TracedStep`.

    Attributes:
        segments: In an order in which each comes after those it depends on.
        slot_count: Number of values that a step keeps between segments.
        feed_slots: Slot of each fed value.
        fetch_slots: Slot of each fetched value.
        recv_slots: Slot of each received tensor by edge key.
        recvs: The Recv operations.
        recv_segments: Segments that wait for each edge key.
        first_segments: Segments that wait for nothing and cannot hold up their thread.
        first_holding: Segments that wait for nothing and may hold up their thread.
        takes_numpy: Whether the device works on NumPy arrays.
        waits: Whether an operation other than Recv may have to wait.
        receives_in_regions: Whether a branch or a loop waits for other devices.
        initial_waits: For each segment, the number of deliveries and earlier segments that it waits for.
        releases: What its steps release to one another, on a shard whose steps may overlap.
        holders: By what is released: the number of segments that must have run before.
    """

    @making_much()
    def __init__(
        self,
        partition: Partition,
        device: Device,
        *,
        sends_copy: bool,
        sent_in_place_bytes: int | None = None,
        traced: bool = False,
    ) -> None:
        self.partition = partition
        self._is_traced = traced
        self._traced: Plan | None = None
        self.device = device
        self.optimize = partition.optimize
        self._sends_copy = sends_copy
        self._sent_in_place_bytes = sent_in_place_bytes
        self._slots: dict[Tensor | str, int] = {}
        self._fed = {self._fed_tensor(name): name for name in partition.feeds}
        self._fetched = [partition.graph.tensor_named(name) for name in partition.fetches]
        self.releases = Releases()
        if partition.replica and device.type == "CPU":  # on a GPU, kernels of a segment may run after its end
            self.releases = find_releases(partition.graph, partition.device, partition.replica)
        self.segments = self._cut_into_segments()
        self._connect()
        self.holders = Counter(key for segment in self.segments for key in segment.releases)
        self.feed_slots = [self._slot(tensor) for tensor in self._fed]
        self.fetch_slots = [self._slot(tensor) for tensor in self._fetched]
        self.slot_count = len(self._slots)
        self.initial_waits = [segment.waits for segment in self.segments]
        first = [segment for segment in self.segments if segment.waits == 0]
        self.first_segments = [segment for segment in first if not segment.may_hold_thread]
        self.first_holding = [segment for segment in first if segment.may_hold_thread]
        self.takes_numpy = device.type == "CPU"
        self.waits = any(segment.suspends or segment.may_hold_thread for segment in self.segments)
        self.receives_in_regions = any(
            inner.type == "Recv" for segment in self.segments for op in segment.ops for inner in ops_within(op)
        )
        for segment in self.segments:
            segment.prepare(self)
        self._on_host = self._kept_on_host()
        self._feeds_on_host = [tensor in self._on_host for tensor in self._fed]
        self._keys_on_host = {op.attr("key") for op in self.recvs if op.outputs[0] in self._on_host}
        # Lists of tensors and datasets are objects, which no device has in an array.
        self._keys_of_objects = {op.attr("key") for op in self.recvs if op.outputs[0].dtype is dtypes.variant}

    def _kept_on_host(self) -> set[Tensor]:
        """What is fed or received, and read on the host of a GPU: it waits there."""
        if self.takes_numpy:
            return set()
        entering = {*self._fed, *(op.outputs[0] for op in self.recvs)} - set(self._fetched)
        read: set[Tensor] = set()
        for segment in self.segments:
            read |= host_values(segment.body, entering.intersection(segment.inputs)).read_on_host
        return read & entering

    def fed(self, values: Sequence[Any]) -> list[Any]:
        """Fed values where the plan takes them: in the device's memory, or on the host."""
        device = self.device
        on_host = self._feeds_on_host
        return [
            device.to_host(value) if kept else device.asarray(value)
            for value, kept in zip(values, on_host, strict=True)
        ]

    def received(self, key: str, value: Any) -> Any:
        """A tensor that another device sent, likewise. Of what comes from replicas, each tensor."""
        if key in self._keys_of_objects:
            return value
        place = self.device.to_host if key in self._keys_on_host else self.device.asarray
        return Contributions(map(place, value), value.replicas) if isinstance(value, Contributions) else place(value)

    def _fed_tensor(self, name: str) -> Tensor:
        return self.partition.graph.get_operation_by_name(name).outputs[0]

    def _slot(self, value: Tensor | str) -> int:
        return self._slots.setdefault(value, len(self._slots))

    def _cut_into_segments(self) -> list[Segment]:
        """Group operations by their blocking ancestors: a mask with a bit per Recv group or operation that waits."""
        group_bits: dict[Any, int] = {}
        self._mask: dict[Operation, int] = {}
        by_mask: dict[Any, Segment] = {}  # segments by mask; those that may wait, by their operation
        self.recvs: list[Operation] = []
        fetched = {tensor.op for tensor in self._fetched}
        # An operation's mask contains those of its predecessors, so segments never wait for one another in a circle.
        for op in self.partition.graph.get_operations():
            if _is_source(op) and op not in fetched:
                self._mask[op] = 0
                continue
            mask = 0
            for earlier in predecessors(op):
                mask |= self._mask[earlier]
            for key in self.releases.of_ops.get(op, ()):
                mask |= 1 << group_bits.setdefault(key, len(group_bits))
            if op.type == "Recv":
                mask |= 1 << group_bits.setdefault((op.attr("source"), op.attr("group")), len(group_bits))
                self.recvs.append(op)
            elif is_blocking(op):
                by_mask[op] = Segment(len(by_mask), mask, [op])
                mask |= 1 << group_bits.setdefault(op, len(group_bits))
            elif not (op.outputs and op.outputs[0] in self._fed):
                if mask not in by_mask:
                    by_mask[mask] = Segment(len(by_mask), mask, [op])
                else:
                    by_mask[mask].ops.append(op)
            self._mask[op] = mask
        self._release_bits = {key: 1 << group_bits[key] for key in self.releases.keys if key in group_bits}
        segments = list(by_mask.values())
        if self.device.type == "GPU":
            segments = self._joined(segments)
        elif any(segment.suspends for segment in segments) and not self.releases.keys:
            bits = [1 << group_bits[each.ops[0]] if each.suspends else 0 for each in segments]
            segments = [
                Segment(index, links[0].mask, [op for link in links for op in link.ops])
                for index, links in enumerate(_chains(segments, bits))
            ]
        self._segment_of = {op: segment for segment in segments for op in segment.ops}
        return segments

    def _joined(self, segments: Sequence[Segment]) -> list[Segment]:
        """Let what could run earlier wait for tensors of the same task's processor, if nobody else waits for it.

        A GPU computes long after the launch in any case. And one CUDA graph can then hold a network, the words that the
        host has drawn for it, and the gradients. Nothing waits for other tasks and other GPUs that need not: they may
        compute at the same time.
        """
        processor = self.device.name.partition("/device:")[0] + "/device:CPU:"
        nearby = 0
        for recv in self.recvs:
            if recv.attr("source").startswith(processor):
                nearby |= self._mask[recv]
        home = {op: segment for segment in segments for op in segment.ops}
        users: dict[Operation, list[Operation]] = {op: [] for op in self._mask}
        for op in home:
            for earlier in predecessors(op):
                users[earlier].append(op)
        place = {op: index for index, op in enumerate(self._mask)}
        for segment in reversed(segments):
            sent = reachable_backward([op for op in segment.ops if any(o.type == "Send" for o in ops_within(op))])
            moved = [op for op in segment.ops if op not in sent]
            later = {home[user] for op in moved for user in users[op] if home[user] is not segment}
            follower = min(later, key=lambda each: each.mask.bit_count(), default=segment)
            waits = follower.mask & ~segment.mask
            if (
                not any(each.suspends or each.may_hold_thread for each in (segment, follower))
                and waits & nearby == waits != 0
                and all(each.mask & follower.mask == follower.mask for each in later)
            ):
                follower.ops = sorted([*moved, *follower.ops], key=place.__getitem__)
                segment.ops = [op for op in segment.ops if op in sent]
                home.update(dict.fromkeys(moved, follower))
        left = [segment for segment in segments if segment.ops]
        for index, segment in enumerate(left):
            segment.index = index
        return left

    def _connect(self) -> None:
        """Find what each segment takes, gives and waits for."""
        self.recv_slots: dict[str, int] = {op.attr("key"): self._slot(op.outputs[0]) for op in self.recvs}
        self.recv_slots |= {key: self._slot(key) for key in self._release_bits}
        self.recv_segments: dict[str, list[Segment]] = {key: [] for key in self.recv_slots}
        fetched = set(self._fetched)
        for segment in self.segments:
            read = [tensor.op for op in segment.ops for tensor in op.inputs]
            segment.sources = list(dict.fromkeys(op for op in read if op not in self._segment_of and _is_source(op)))
            members = {*segment.sources, *segment.ops}
            taken = dict.fromkeys(t for op in segment.ops for t in op.inputs if t.op not in members)
            segment.inputs = list(taken)
            segment.input_slots = [self._slot(tensor) for tensor in taken]
            earlier = {self._segment_of[p] for op in segment.ops for p in predecessors(op) if p in self._segment_of}
            for other in earlier - {segment}:
                other.followers.append(segment)
                segment.waits += 1
            for key in self._awaited(segment):
                self.recv_segments[key].append(segment)
                segment.waits += 1
            touched = self.releases.of_ops
            segment.releases = sorted(frozenset().union(*(touched.get(op, ()) for op in segment.ops)))
        received = {op.outputs[0] for op in self.recvs} - fetched
        readers = Counter(tensor for segment in self.segments for tensor in segment.inputs)
        for segment in self.segments:
            last = [tensor for tensor in segment.inputs if tensor in received and readers[tensor] == 1]
            segment.last_read_slots = [self._slot(tensor) for tensor in last]
        used_later = {tensor for segment in self.segments for tensor in segment.inputs} | fetched
        for segment in self.segments:
            segment.outputs = [t for op in segment.ops for t in op.outputs if t in used_later]
            segment.output_slots = [self._slot(tensor) for tensor in segment.outputs]

    def _awaited(self, segment: Segment) -> list[str]:
        """The keys of every Recv whose group is an ancestor of the segment, and of what it waits to be released."""
        mask = segment.mask
        received = [recv.attr("key") for recv in self.recvs if self._mask[recv] | mask == mask]
        return received + [key for key, bit in self._release_bits.items() if bit & mask]

    def compile(self, segment: Segment, body: Body) -> CompiledBody | DrawnFirst:
        """Compile one body of one segment of this plan."""
        fetched, taken = set(self._fetched), {tensor for other in self.segments for tensor in other.inputs}
        leaving = {new: old in taken for old, new in zip(segment.outputs, body.outputs, strict=True) if old in fetched}
        kept = {new for old, new in zip(segment.inputs, body.inputs, strict=True) if old in self._on_host}
        parts = None if self.takes_numpy or self._is_traced or kept else draws_first(body, self.device)
        if parts is None:
            return self._compiled(segment, body, leaving, kept)
        return DrawnFirst(*[self._compiled(segment, part, leaving, kept) for part in parts])

    @making_much()
    def _compiled(
        self, segment: Segment, body: Body, leaving: Mapping[Tensor, bool], kept: Collection[Tensor]
    ) -> CompiledBody:
        """Compile a part of a body, of whose fetched results `leaving` tells whether other segments take them too."""
        updated = {
            handle.op.name
            for other in self.segments
            if other is not segment
            for op in other.ops
            if access_of(op) == "update"
            for handle in accessed_handles(op)
        }
        fetched = {tensor for tensor in body.outputs if tensor in leaving}
        return CompiledBody(
            body,
            self.device,
            sends_copy=self._sends_copy,
            sent_in_place_bytes=self._sent_in_place_bytes,
            fetched=fetched,
            fetched_alone={tensor for tensor in fetched if not leaving[tensor]},
            on_host=[tensor for tensor in body.inputs if tensor in kept],
            updated_elsewhere=updated,
            fuses=self.optimize,
            traced=self._is_traced,
            captures=True,
            suspends=segment.suspends,
        )

    @property
    def plans(self) -> list[Plan]:
        """The plan alone: a `plan_group.PlanGroup` has several."""
        return [self]

    def traced(self) -> Plan:
        """The same plan for steps that are recorded, made when first asked for."""
        if self._traced is None:
            self._traced = Plan(
                self.partition,
                self.device,
                sends_copy=self._sends_copy,
                sent_in_place_bytes=self._sent_in_place_bytes,
                traced=True,
            )
        return self._traced

    @property
    def buffer_bytes(self) -> int:
        """Bytes of reusable memory that one run holds."""
        return sum(segment.buffer_bytes for segment in self.segments)

    def check_feeds(self, values: Sequence[Any]) -> None:
        """Raise `InvalidArgumentError` when the number of fed values is wrong."""
        if len(values) != len(self.feed_slots):
            raise InvalidArgumentError(f"the step takes {len(self.feed_slots)} fed values, got {len(values)}")


def with_wakers(partitions: Sequence[Partition]) -> list[Partition]:
    """The partitions of a step, with `is_woken` and `wakes` set: a device that only waits is woken by its senders."""
    woken = {partition.device for partition in partitions if partition.waits_for_tensors}
    return [
        replace(partition, is_woken=partition.device in woken, wakes=sorted(partition.receivers & woken))
        for partition in partitions
    ]


def _is_source(op: Operation) -> bool:
    """Whether an operation is a constant or the handle of a variable, and waits for nothing."""
    return op.type in ("Const", "Variable") and not op.control_inputs


def _chains(segments: Sequence[Segment], own_bits: Sequence[int]) -> list[list[Segment]]:
    """All segments of a plan, in lists of those that can be one, because they run one behind the other in any case.

    Where an operation has to wait, the executor leaves its segment and runs what else is ready. If everything else has
    run by then or needs the operation, nothing is ready: so nothing is lost when the code before the operation, the
    operation and the code behind it are one function. Each step saves what the executor does between two segments.

    Args:
        segments: The segments, cut at every operation that may wait.
        own_bits: For each of them the bit that its operation has in the masks of what needs it; 0 if it never waits.
    """
    # What waits for less comes first: a segment comes behind all that it needs.
    order = sorted(range(len(segments)), key=lambda i: (segments[i].mask.bit_count(), segments[i].suspends))
    ordered = [segments[i] for i in order]
    known = [segments[i].mask | own_bits[i] for i in order]
    needs = _needs(ordered)
    may_join = [_may_join(segment) for segment in ordered]

    def follower(i: int) -> int | None:
        """What can run as soon as segment i has run, and without which nothing else that needs segment i can."""
        later = [j for j in range(i + 1, len(ordered)) if needs[j] >> i & 1]
        if not later or not (may_join[i] and may_join[later[0]]) or any(op.type == "Send" for op in ordered[i].ops):
            return None
        first = later[0]
        is_ready = needs[first] == needs[i] | 1 << i and not ordered[first].mask & ~known[i]
        return first if is_ready and all(needs[j] >> first & 1 for j in later[1:]) else None

    found: list[list[Segment]] = []
    joined: set[int] = set()
    for i in range(len(ordered)):
        if i in joined:
            continue
        chain: list[Segment] = []
        at: int | None = i
        while at is not None:
            chain.append(ordered[at])
            joined.add(at)
            at = follower(at)
        found.append(chain)
    return found


def _needs(segments: Sequence[Segment]) -> list[int]:
    """For each segment, a mask of the places of all that have to run before it."""
    home = {op: place for place, segment in enumerate(segments) for op in segment.ops}
    needs: list[int] = []
    for place, segment in enumerate(segments):
        mask = 0
        for earlier in {home[p] for op in segment.ops for p in predecessors(op) if p in home} - {place}:
            mask |= needs[earlier] | 1 << earlier
        needs.append(mask)
    return needs


def _may_join(segment: Segment) -> bool:
    """Whether a segment may be part of a longer one.

    One that may hold up its thread comes last. One that computes much would hold its memory while another operation
    waits. One that is compiled for the shapes of its inputs has to know them when it begins.
    """
    if segment.may_hold_thread:
        return False
    if segment.suspends:
        return True
    results = [tensor for op in segment.ops for inner in ops_within(op) for tensor in inner.outputs]
    if sum((tensor.shape.num_elements() or 0) * (tensor.dtype.size or 0) for tensor in results) > _MOST_CHAINED_BYTES:
        return False
    members = set(segment.ops)
    inputs = dict.fromkeys(t for op in segment.ops for t in op.inputs if t.op not in members)
    return not depends_on_input_shapes(generic_body(segment.ops, list(inputs), []))
