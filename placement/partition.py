"""Cut the placed graph into one graph per device, joined by Send and Recv.

One Send per tensor and destination device, however many consumers stand there. A control edge between devices becomes
an edge that carries an empty tensor. Small constants are copied to where they are used. Edges whose Sends become
possible at the same time (their Sends have the same blocking ancestors) form a *group*: they are sent together, and
the receiving device waits for all of them at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from tfray.framework import dtypes
from tfray.framework.effects import is_blocking
from tfray.framework.graph import Graph, Operation, Tensor
from tfray.framework.traversal import predecessors
from tfray.runtime.plan import Partition

MAX_COPIED_CONSTANT_BYTES: Final = 1 << 16


def partition(
    order: Sequence[Operation],
    placement: Mapping[Operation, str],
    feeds: Sequence[Operation],
    fetches: Sequence[Tensor],
    extra_edges: Sequence[tuple[Operation, Operation]] = (),
    optimize: bool = True,
) -> list[Partition]:
    """One `Partition` per device that has something to run.

    Args:
        order: All operations, in the order in which they shall run.
        placement: Full device name of each operation.
        feeds: Placeholders for fed values; each device that uses one gets the value from the caller.
        fetches: Tensors to return, each by the device that computes it.
        extra_edges: Further ordering (earlier, later) between operations of one device.
        optimize: Recorded in the partitions.
    """
    return _Partitioner(placement, feeds, extra_edges, optimize).run(order, fetches)


class _Partitioner:
    def __init__(
        self,
        placement: Mapping[Operation, str],
        feeds: Sequence[Operation],
        extra_edges: Sequence[tuple[Operation, Operation]],
        optimize: bool,
    ) -> None:
        self._placement = placement
        self._feeds = set(feeds)
        self._optimize = optimize
        self._partitions: dict[str, Partition] = {}
        self._copies: dict[tuple[Operation, str], Operation] = {}
        self._received: dict[tuple[Tensor | Operation, str], Tensor] = {}
        self._groups: dict[Operation, frozenset[int]] = {}
        self._group_numbers: dict[tuple[str, frozenset[int]] | Operation, int] = {}
        self._extra: dict[Operation, list[Operation]] = {}
        for earlier, later in extra_edges:
            self._extra.setdefault(later, []).append(earlier)

    def run(self, order: Sequence[Operation], fetches: Sequence[Tensor]) -> list[Partition]:
        self._find_destinations(order)
        for op in order:
            if op not in self._feeds and not is_copied_constant(op):
                self._add(op)
        for tensor in fetches:
            device = self._placement[tensor.op]
            self._on(device).fetches.append(self._local(tensor, device).name)
        return list(self._partitions.values())

    def _find_destinations(self, order: Sequence[Operation]) -> None:
        """Which tensors and control edges cross to which devices."""
        self._destinations: dict[Operation, dict[tuple[int | None, str], None]] = {}
        for op in order:
            device = self._placement[op]
            for tensor in op.inputs:
                self._note_crossing(tensor.op, tensor.value_index, device)
            for control in op.control_inputs:
                self._note_crossing(control, None, device)

    def _note_crossing(self, op: Operation, value_index: int | None, device: str) -> None:
        if op not in self._feeds and self._placement[op] != device and not is_copied_constant(op):
            self._destinations.setdefault(op, {})[value_index, device] = None

    def _on(self, device: str) -> Partition:
        if device not in self._partitions:
            self._partitions[device] = Partition(device, Graph(), optimize=self._optimize)
        return self._partitions[device]

    def _add(self, op: Operation) -> None:
        device = self._placement[op]
        inputs = [self._local(tensor, device) for tensor in op.inputs]
        controls = [self._local_control(control, device) for control in op.control_inputs]
        controls += [self._copies[earlier, device] for earlier in self._extra.get(op, ())]
        before = [*predecessors(op), *self._extra.get(op, ())]
        groups = frozenset().union(*(self._groups_seen_from(earlier, device) for earlier in before))
        # What comes after an operation that waits leaves later than what need not wait for it.
        self._groups[op] = groups | {self._wait_number(op)} if is_blocking(op) else groups
        self._copies[op, device] = self._on(device).graph.create_op(
            op.type,
            inputs,
            op.attrs,
            op.name,
            control_inputs=dict.fromkeys(controls),
            exact_name=True,
            device=device,
            site=op.site,
            shapes=[tensor.shape for tensor in op.outputs],
        )
        # At once, so that a tensor leaves as soon as it exists.
        for value_index, destination in self._destinations.get(op, ()):
            self._send(op, value_index, destination)

    def _groups_seen_from(self, op: Operation, device: str) -> frozenset[int]:
        """The groups that an operation of `device` waits for because it comes after `op`."""
        if op in self._feeds or is_copied_constant(op) or self._placement[op] == device:
            return self._groups.get(op, frozenset())
        return frozenset([self._group(op)])

    def _group(self, origin: Operation) -> int:
        """The group of the edges that leave `origin`: those with the same device and blocking ancestors."""
        key = (self._placement[origin], self._groups[origin])
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
        if self._placement[op] == device:
            return self._copies[op, device].outputs[tensor.value_index]
        return self._received[tensor, device]

    def _local_control(self, control: Operation, device: str) -> Operation:
        """An operation of `device` that runs after `control` has."""
        if control in self._feeds:
            return self._fed(control, device)
        if is_copied_constant(control):
            return self._constant(control, device)
        if self._placement[control] == device:
            return self._copies[control, device]
        return self._received[control, device].op

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

    def _send(self, origin: Operation, value_index: int | None, destination: str) -> None:
        """Add Send and Recv for one edge; `value_index` None is a control edge."""
        source_device = self._placement[origin]
        copied = self._copies[origin, source_device]
        if value_index is None:
            tensor, label = self._token(copied), f"^{origin.name}"
        else:
            tensor, label = copied.outputs[value_index], f"{origin.name}:{value_index}"
        ends = {"key": f"{label} {source_device} -> {destination}", "source": source_device}
        graph = copied.graph
        graph.create_op(
            "Send",
            [tensor],
            {**ends, "destination": destination},
            graph.unique_name(f"_send/{origin.name}"),
            control_inputs=[copied],
            exact_name=True,
            device=source_device,
            site=origin.site,
        )
        graph = self._on(destination).graph
        recv = graph.create_op(
            "Recv",
            [],
            {**ends, "dtype": tensor.dtype, "shape": tensor.shape, "group": self._group(origin)},
            graph.unique_name(f"_recv/{origin.name}"),
            exact_name=True,
            device=destination,
            site=origin.site,
        )
        key = origin if value_index is None else origin.outputs[value_index]
        self._received[key, destination] = recv.outputs[0]

    @staticmethod
    def _token(op: Operation) -> Tensor:
        """An empty tensor for an edge that carries no value."""
        graph = op.graph
        attrs = {"value": np.zeros(0, np.uint8), "dtype": dtypes.uint8}
        name = graph.unique_name("_control/token")
        return graph.create_op("Const", [], attrs, name, exact_name=True, device=op.device, site=op.site).outputs[0]


def _recreate(op: Operation, graph: Graph, device: str) -> Operation:
    return graph.create_op(op.type, [], op.attrs, op.name, exact_name=True, device=device, site=op.site)


def is_copied_constant(op: Operation) -> bool:
    """Whether an operation is a constant that each device has for itself."""
    return op.type == "Const" and not op.control_inputs and op.attrs["value"].nbytes <= MAX_COPIED_CONSTANT_BYTES
