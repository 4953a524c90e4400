"""Cut the placed graph into one graph per device, joined by Send and Recv.

There is one Send per tensor and destination device, however many consumers stand there. A control edge between devices
becomes an edge that carries an empty tensor. Small constants are copied to each device that uses them. Edges whose
Sends have the same blocking ancestors can leave at the same time: they form a *group*. They are sent together, and the
receiving device waits for all of them at once. In a replicated step a large tensor is a group of its own: it leaves as
soon as it is there, and whoever needs only what has come goes on, while others are under way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tfray.framework import dtypes
from tfray.framework.device_spec import DeviceSpec
from tfray.framework.dtypes import DType
from tfray.framework.effects import is_blocking
from tfray.framework.graph import Graph, Operation, Tensor
from tfray.framework.region import Region, ops_within, regions_of
from tfray.framework.traversal import predecessors
from tfray.runtime.edge_key import EdgeKey
from tfray.runtime.plan import Partition
from tfray.runtime.rendezvous import LARGE_BYTES

MAX_COPIED_CONSTANT_BYTES: Final = 1 << 16
"""64 KiB. A constant up to this size is put on each device that uses it; a larger one is sent from one device."""


def partition(
    order: Sequence[Operation],
    placement: Mapping[Operation, str],
    feeds: Sequence[Operation],
    fetches: Sequence[Tensor],
    extra_edges: Sequence[tuple[Operation, Operation]] = (),
    optimize: bool = True,
    sent_dtype: DType | None = None,
    large_apart: bool = False,
    prefix: str = "_",
) -> list[Partition]:
    """One `Partition` per device that has something to run.

    Args:
        order: All operations, in the order in which they shall run.
        placement: Full device name of each operation.
        feeds: Placeholders for fed values; each device that uses one gets the value from the caller.
        fetches: Tensors to return, each by the device that computes it.
        extra_edges: Further ordering (earlier, later) between operations of one device.
        optimize: Recorded in the partitions.
        sent_dtype: Narrower dtype in which float32 tensors, scalars excepted, are sent between tasks; None to send
            them as they are.
        large_apart: Whether each large tensor is a group of its own.
        prefix: Begins the names of what is added. A graph that has been cut before needs another one.
    """
    return _Partitioner(placement, feeds, extra_edges, optimize, sent_dtype, large_apart, prefix).run(order, fetches)


class _Partitioner:
    def __init__(
        self,
        placement: Mapping[Operation, str],
        feeds: Sequence[Operation],
        extra_edges: Sequence[tuple[Operation, Operation]],
        optimize: bool,
        sent_dtype: DType | None,
        large_apart: bool,
        prefix: str = "_",
    ) -> None:
        self._placement = placement
        self._feeds = set(feeds)
        self._optimize = optimize
        self._sent_dtype = sent_dtype
        self._large_apart = large_apart
        self._prefix = prefix
        # `_copies`: each operation's copy on a device. `_received`: what a device receives of a tensor, or of a control
        # edge. `_groups`: the numbers of the groups for which an operation has to wait.
        self._narrowed: dict[Tensor, Tensor] = {}
        self._partitions: dict[str, Partition] = {}
        self._copies: dict[tuple[Operation, str], Operation] = {}
        self._received: dict[tuple[Tensor | tuple[Operation, str], str], Tensor] = {}
        self._groups: dict[Operation, frozenset[int]] = {}
        self._group_numbers: dict[tuple[str, frozenset[int], Operation | None] | Operation, int] = {}
        self._split: dict[Operation, SplitOperation] = {}
        self._extra: dict[Operation, list[Operation]] = {}
        for earlier, later in extra_edges:
            self._extra.setdefault(later, []).append(earlier)

    def run(self, order: Sequence[Operation], fetches: Sequence[Tensor]) -> list[Partition]:
        """The partitions of a graph."""
        self._cut(order, ())
        for tensor in fetches:
            device = self._device_of(tensor)
            self._on(device).fetches.append(self._local(tensor, device).name)
        return list(self._partitions.values())

    def _cut(self, order: Sequence[Operation], wanted: Iterable[tuple[Tensor, str]]) -> None:
        """Distribute the operations. `wanted`: further pairs of a tensor and a device that must have it."""
        split = [op for op in order if is_split(op, self._placement)]
        self._split = {op: split_operation(op, self._placement, self._sent_dtype) for op in split}
        self._find_destinations(order, wanted)
        for op in order:
            if op not in self._feeds and not is_copied_constant(op):
                self._add(op)

    def _find_destinations(self, order: Sequence[Operation], wanted: Iterable[tuple[Tensor, str]]) -> None:
        """Find which tensors and control edges cross to which devices."""
        self._destinations: dict[Operation, dict[tuple[int | None, str, str], None]] = {}
        for op in order:
            parts = self._split[op].parts if op in self._split else None
            for device in parts or [self._placement[op]]:
                taken = op.inputs if parts is None else [op.inputs[index] for index in parts[device].inputs]
                for tensor in taken:
                    self._note_crossing(tensor, device)
                for control in self._controls(op):
                    for source in self._devices_of(control):
                        self._note(control, None, source, device)
        for tensor, device in wanted:
            self._note_crossing(tensor, device)

    def _controls(self, op: Operation) -> list[Operation]:
        """Control inputs, without those of which `op` takes a tensor: when that is there, the operation has run."""
        taken = {tensor.op for tensor in op.inputs}
        return [control for control in op.control_inputs if control not in taken or control in self._split]

    def _note_crossing(self, tensor: Tensor, device: str) -> None:
        if not self._is_everywhere(tensor.op):
            self._note(tensor.op, tensor.value_index, self._device_of(tensor), device)

    def _note(self, op: Operation, value_index: int | None, source: str, device: str) -> None:
        if source != device and not self._is_everywhere(op):
            self._destinations.setdefault(op, {})[value_index, source, device] = None

    def _is_everywhere(self, op: Operation) -> bool:
        """Whether each device has the output of `op` for itself."""
        return op in self._feeds or is_copied_constant(op)

    def _devices_of(self, op: Operation) -> list[str]:
        """The devices that run `op`, or a part of it."""
        return list(self._split[op].parts) if op in self._split else [self._placement[op]]

    def _device_of(self, tensor: Tensor) -> str:
        if tensor.op in self._split:
            return self._split[tensor.op].outputs[tensor.value_index][0]
        return self._placement[tensor.op]

    def _on(self, device: str) -> Partition:
        if device not in self._partitions:
            self._partitions[device] = Partition(device, self._new_graph(), optimize=self._optimize)
        return self._partitions[device]

    def _new_graph(self) -> Graph:
        return Graph()

    def _add(self, op: Operation) -> None:
        before = [*predecessors(op), *self._extra.get(op, ())]
        for device in self._devices_of(op):
            groups = frozenset().union(*(self._groups_seen_from(earlier, device) for earlier in before))
            # An operation that waits makes a group of its own: what depends on it can be sent only after it.
            waits = op in self._split or is_blocking(op)
            self._groups[op] = groups | {self._wait_number(op)} if waits else groups
            self._copies[op, device] = self._copy(op, device)
        # The Send is added here, not at the end: a device runs in order of creation, so a tensor leaves at once.
        for value_index, source, destination in self._destinations.get(op, ()):
            self._send(op, value_index, source, destination)

    def _copy(self, op: Operation, device: str) -> Operation:
        graph = self._on(device).graph
        controls = [self._local_control(control, device) for control in self._controls(op)]
        for earlier in self._extra.get(op, ()):
            controls += [self._copies[earlier, source] for source in self._devices_of(earlier) if source == device]
        part = self._split[op].parts[device] if op in self._split else None
        taken = op.inputs if part is None else [op.inputs[index] for index in part.inputs]
        inputs = [self._local(tensor, device) for tensor in taken]
        if part is not None:
            # A part holds its thread while it waits for the other parts. Whatever they may need has to run before it.
            controls = graph.get_operations()
        return graph.add_operation(
            op.type,
            inputs,
            op.attrs if part is None else part.attrs(op),
            op.name,
            control_inputs=dict.fromkeys(controls),
            exact_name=True,
            device=device,
            site=op.site,
            shapes=None if part is not None else [tensor.shape for tensor in op.outputs],
        )

    def _groups_seen_from(self, op: Operation, device: str) -> frozenset[int]:
        """The groups for which an operation of `device` has to wait, because it comes after `op`."""
        if self._is_everywhere(op) or device in self._devices_of(op):
            return self._groups.get(op, frozenset())
        return frozenset([self._group(op)])

    def _group(self, origin: Operation) -> int:
        """The group of the edges that leave `origin`: those with the same device and blocking ancestors."""
        is_apart = self._large_apart and any(map(_is_large, origin.outputs))
        key = (self._placement[origin], self._groups[origin], origin if is_apart else None)
        return self._group_numbers.setdefault(key, len(self._group_numbers))

    def _wait_number(self, op: Operation) -> int:
        """The number of a group that only `op` forms."""
        return self._group_numbers.setdefault(op, len(self._group_numbers))

    def _local(self, tensor: Tensor, device: str) -> Tensor:
        """The tensor as `device` has it."""
        op = tensor.op
        if op in self._feeds:
            return self._fed(op, device).outputs[0]
        if is_copied_constant(op):
            return self._constant(op, device).outputs[0]
        if op in self._split:
            home, index = self._split[op].outputs[tensor.value_index]
        else:
            home, index = self._placement[op], tensor.value_index
        return self._copies[op, device].outputs[index] if home == device else self._received[tensor, device]

    def _local_control(self, control: Operation, device: str) -> Operation:
        """An operation of `device` that runs after `control` has."""
        if control in self._feeds:
            return self._fed(control, device)
        if is_copied_constant(control):
            return self._constant(control, device)
        done = [
            self._copies[control, device] if source == device else self._received[(control, source), device].op
            for source in self._devices_of(control)
        ]
        return done[0] if len(done) == 1 else self._all_of(done, device)

    def _all_of(self, ops: list[Operation], device: str) -> Operation:
        graph = self._on(device).graph
        name = graph.unique_name(f"{self._prefix}control/all")
        return graph.add_operation("NoOp", [], {}, name, control_inputs=ops, exact_name=True, device=device)

    def _fed(self, feed: Operation, device: str) -> Operation:
        if (feed, device) not in self._copies:
            part = self._on(device)
            self._copies[feed, device] = _recreate(feed, part.graph, device)
            part.feeds.append(feed.name)
        return self._copies[feed, device]

    def _constant(self, op: Operation, device: str) -> Operation:
        if (op, device) not in self._copies:
            self._copies[op, device] = _recreate(op, self._on(device).graph, device)
        return self._copies[op, device]

    def _send(self, origin: Operation, value_index: int | None, source: str, destination: str) -> None:
        """Add Send and Recv for one edge; `value_index` None is a control edge."""
        copied = self._copies[origin, source]
        if value_index is None:
            tensor, key = self._token(copied), EdgeKey.of_control(origin.name, source, destination)
        else:
            tensor = self._local(origin.outputs[value_index], source)
            key = EdgeKey.of_tensor(origin.name, value_index, source, destination)
        dtype = tensor.dtype
        if self._is_narrowed(tensor, source, destination):
            tensor = self._narrow(tensor, origin)
        ends = {"key": str(key), "source": source}
        graph = copied.graph
        graph.add_operation(
            "Send",
            [tensor],
            {**ends, "destination": destination},
            graph.unique_name(f"{self._prefix}send/{origin.name}"),
            control_inputs=[copied],
            exact_name=True,
            device=source,
            site=origin.site,
        )
        graph = self._on(destination).graph
        recv = graph.add_operation(
            "Recv",
            [],
            {**ends, "dtype": tensor.dtype, "shape": tensor.shape, "group": self._group(origin)},
            graph.unique_name(f"{self._prefix}recv/{origin.name}"),
            exact_name=True,
            device=destination,
            site=origin.site,
        )
        received = recv.outputs[0]
        if received.dtype is not dtype:
            received = _cast(received, dtype, origin)
        crossed = (origin, source) if value_index is None else origin.outputs[value_index]
        self._received[crossed, destination] = received

    def _is_narrowed(self, tensor: Tensor, source: str, destination: str) -> bool:
        """Whether a tensor crosses in the narrower dtype `_sent_dtype`."""
        return self._sent_dtype is not None and may_be_narrowed(tensor) and _task(source) != _task(destination)

    def _narrow(self, tensor: Tensor, origin: Operation) -> Tensor:
        assert self._sent_dtype is not None
        if tensor not in self._narrowed:
            self._narrowed[tensor] = _cast(tensor, self._sent_dtype, origin)
        return self._narrowed[tensor]

    def _token(self, op: Operation) -> Tensor:
        """An empty tensor for an edge that carries no value."""
        graph = op.graph
        attrs = {"value": np.zeros(0, np.uint8), "dtype": dtypes.uint8}
        name = graph.unique_name(f"{self._prefix}control/token")
        return graph.add_operation("Const", [], attrs, name, exact_name=True, device=op.device, site=op.site).outputs[0]


# -- branches and loops that span devices ----------------------------------------------------------------


@dataclass
class Part:
    """The part of a branch or loop that one of its several devices runs.

    Attributes:
        inputs: Indices of the operation's inputs that it takes, in order.
        regions: Its part of each region, by attribute.
        variables: Number of loop variables that live here.
    """

    inputs: list[int]
    regions: dict[str, Region]
    variables: int

    def attrs(self, op: Operation) -> dict[str, Any]:
        """The attributes of this part of `op`."""
        if op.type != "While":
            types = [tensor.dtype for tensor in self.regions["then"].outputs]
            return {**op.attrs, **self.regions, "Tout": types}
        results = self.regions["body"].outputs
        stacks = [dtypes.variant] * (len(results) - self.variables)
        types = [*(tensor.dtype for tensor in results[: self.variables]), *stacks]
        return {**op.attrs, **self.regions, "Tout": types, "variables": self.variables}


@dataclass
class SplitOperation:
    """A branch or loop in parts: each device that has operations of its regions runs a branch or loop of its own.

    A loop variable lives on one device, and so does each result. One device computes the decision and sends it to the
    others: once for a branch, in every turn of a loop. So all devices make the same turns, each as fast as its own data
    allows, and none waits for another when the loop ends.

    Attributes:
        parts: By device.
        outputs: For each result, its device and its index among the results of the part there.
    """

    parts: dict[str, Part]
    outputs: list[tuple[str, int]]


def is_split(op: Operation, placement: Mapping[Operation, str]) -> bool:
    """Whether the regions of `op` have been placed on several devices."""
    if not op.op_def.regions:
        return False
    devices = {placement[inner] for inner in ops_within(op) if inner in placement and not is_copied_constant(inner)}
    return len(devices) > 1


def split_operation(
    op: Operation, placement: Mapping[Operation, str], sent_dtype: DType | None = None
) -> SplitOperation:
    """The parts of `op`, whose regions have been placed on several devices."""
    members = [inner for inner in ops_within(op) if not is_copied_constant(inner)]
    devices = list(dict.fromkeys(placement[inner] for inner in members if inner in placement))
    loop = op.type == "While"
    count = op.attrs["variables"] if loop else 0
    result: Region = op.attrs["body" if loop else "then"]
    homes = _homes_of_outputs(op, placement, result)
    cutters: dict[str, _RegionPartitioner] = {}
    for name in op.op_def.regions:
        region: Region = op.attrs[name]
        wanted = [(region.outputs[0], device) for device in devices] if name == "condition" else None
        cutters[name] = _RegionPartitioner(placement, region, count, sent_dtype)
        cutters[name].cut(wanted if wanted is not None else list(zip(region.outputs, homes, strict=True)))
    leading = len(op.inputs) - len(result.inputs)
    parts = {}
    for device in devices:
        used = sorted(set().union(*(cutter.used_inputs(device) for cutter in cutters.values())))
        regions = {name: cutter.region_on(device, used) for name, cutter in cutters.items()}
        parts[device] = Part([*range(leading), *(leading + i for i in used)], regions, sum(i < count for i in used))
    shift = 1 if loop else 0
    numbers = dict.fromkeys(devices, shift)
    first = placement[op] if placement[op] in parts else devices[0]
    outputs: list[tuple[str, int]] = [(first, 0)] * shift
    for home in homes:
        outputs.append((home, numbers[home]))
        numbers[home] += 1
    return SplitOperation(parts, outputs)


def home_of(tensor: Tensor, placement: Mapping[Operation, str]) -> str:
    """The device that computes `tensor`."""
    if is_split(tensor.op, placement):
        return split_operation(tensor.op, placement).outputs[tensor.value_index][0]
    return placement[tensor.op]


def _homes_of_outputs(op: Operation, placement: Mapping[Operation, str], result: Region) -> list[str]:
    """The device of each result of `op`."""
    homes = []
    for index, tensor in enumerate(result.outputs):
        if op.type == "While" and index < op.attrs["variables"]:
            homes.append(placement[op.attrs["body"].inputs[index].op])
            continue
        sources = [region.outputs[index].op for region in regions_of(op) if index < len(region.outputs)]
        made = [source for source in sources if source in placement and source.type != "NoValue"]
        homes.append(placement[tensor.op] if tensor.op in made else placement[made[0]] if made else placement[op])
    return homes


class _RegionPartitioner(_Partitioner):
    """Cuts one region of an operation that spans devices into regions, one per device."""

    def __init__(
        self, placement: Mapping[Operation, str], region: Region, variables: int, sent_dtype: DType | None
    ) -> None:
        super().__init__(placement, (), (), optimize=True, sent_dtype=sent_dtype, large_apart=False)
        self._region = region
        self._captured = {tensor.op: index for index, tensor in enumerate(region.inputs) if index >= variables}
        self._variables = {tensor.op: index for index, tensor in enumerate(region.inputs[:variables])}

    def cut(self, wanted: list[tuple[Tensor, str]]) -> None:
        """Distribute the operations so that each device has what it returns."""
        self._wanted = wanted
        self._cut([op for op in self._region.get_operations() if op not in self._captured], wanted)

    def _new_graph(self) -> Graph:
        return Region(self._region.outer)

    def _is_everywhere(self, op: Operation) -> bool:
        return op in self._captured or super()._is_everywhere(op)

    def _local(self, tensor: Tensor, device: str) -> Tensor:
        if tensor.op in self._captured:
            return self._constant(tensor.op, device).outputs[0]
        return super()._local(tensor, device)

    def _local_control(self, control: Operation, device: str) -> Operation:
        return self._constant(control, device) if control in self._captured else super()._local_control(control, device)

    def used_inputs(self, device: str) -> set[int]:
        """Indices of the region's inputs that live on `device`, or are used there."""
        for tensor, destination in self._wanted:
            if destination == device:
                self._local(tensor, device)
        numbered = {**self._captured, **self._variables}
        return {index for op, index in numbered.items() if (op, device) in self._copies}

    def region_on(self, device: str, inputs: list[int]) -> Region:
        """The region of `device`, with the inputs of these indices."""
        region = self._on(device).graph
        assert isinstance(region, Region)
        region.inputs = [self._constant(self._region.inputs[index].op, device).outputs[0] for index in inputs]
        region.outputs = [self._local(tensor, home) for tensor, home in self._wanted if home == device]
        return region


def _recreate(op: Operation, graph: Graph, device: str) -> Operation:
    shapes = [tensor.shape for tensor in op.outputs]
    return graph.add_operation(
        op.type, [], op.attrs, op.name, exact_name=True, device=device, site=op.site, shapes=shapes
    )


def may_be_narrowed(tensor: Tensor) -> bool:
    """Whether a tensor may be sent in fewer bits: float32 but no scalar, which may be a learning rate or the like."""
    return tensor.dtype is dtypes.float32 and tensor.shape.rank != 0


def _is_large(tensor: Tensor) -> bool:
    count = tensor.shape.num_elements()
    return count is not None and count * tensor.dtype.size >= LARGE_BYTES


def _cast(tensor: Tensor, dtype: DType, origin: Operation) -> Tensor:
    """The same numbers in another dtype, where `tensor` is; `origin` is named in errors."""
    op = tensor.op
    name = op.graph.unique_name(f"_wire/{origin.name}")
    made = op.graph.add_operation(
        "Cast", [tensor], {"DstT": dtype}, name, exact_name=True, device=op.device, site=origin.site
    )
    return made.outputs[0]


def _task(device: str) -> tuple[str | None, int | None, int | None]:
    spec = DeviceSpec.from_string(device)
    return spec.job, spec.replica, spec.task


def is_copied_constant(op: Operation) -> bool:
    """Whether an operation is a constant that each device has for itself."""
    return op.type == "Const" and not op.control_inputs and op.attrs["value"].nbytes <= MAX_COPIED_CONSTANT_BYTES
