"""Which intermediate results share memory, and which need a copy: liveness over a straight-line body.

A tensor *owns* memory when its kernel fills a buffer that it is given. Every other result may be a view of any of
the kernel's inputs. The tensors that own the memory behind it are its *roots*, and it keeps them alive. An owner whose
memory never leaves the body gets a slot. Owners whose lifetimes do not overlap share a slot, and an elementwise kernel
may write over an input that nothing reads again. So after its first runs a step allocates nothing big.

Reading a variable gives its storage itself, without a copy. If the value that was read is still in use when the body
updates the variable, the read makes a copy after all. So a step sees the value from before its own updates.

An operation that runs aside (see `lanes`) uses its memory until its result is awaited.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from tfray.framework import dtypes
from tfray.framework.effects import access_of, accessed_handles
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import Kernel
from tfray.runtime.device_groups import Group
from tfray.runtime.lanes import Aside, find_asides
from tfray.runtime.segment_body import Body

_ALIGNMENT = 64  # bytes: the size of slots is rounded up to whole cache lines


@dataclass
class MemoryLayout:
    """What the code generator needs to know about memory.

    Attributes:
        slot_of: Slot of each owner that has one.
        slot_bytes: Size of each slot in bytes.
        copied_reads: Results of variable reads that are copied when they are read.
        copied_outputs: Outputs that share memory with a variable, a constant or an input. The user gets a copy.
        sent_in_place: Results that are used for nothing but one Send, with that Send. They may be computed in the
            memory into which the Send would copy them.
        dropped_after: By index of an operation, the tensors whose last use it is and which are worth freeing.
        asides: The operations that run aside, by index.
        rooms: Results that leave and may be computed in memory of the caller.
    """

    slot_of: dict[Tensor, int] = field(default_factory=dict)
    slot_bytes: list[int] = field(default_factory=list)
    copied_reads: set[Tensor] = field(default_factory=set)
    copied_outputs: set[Tensor] = field(default_factory=set)
    sent_in_place: dict[Tensor, Operation] = field(default_factory=dict)
    dropped_after: dict[int, list[Tensor]] = field(default_factory=dict)
    asides: dict[int, Aside] = field(default_factory=dict)
    rooms: list[Tensor] = field(default_factory=list)


def lay_out_memory(
    body: Body,
    kernel_of: Callable[[Operation], Kernel],
    *,
    sends_copy: bool,
    updated_elsewhere: Collection[str] = (),
    groups: Sequence[Group] = (),
    sent_in_place_bytes: int | None = None,
    has_lanes: bool = False,
    has_rooms: bool = False,
) -> MemoryLayout:
    """Assign memory to the results of `body`.

    Args:
        body: The operations and what enters and leaves.
        kernel_of: The kernel of each operation on this device.
        sends_copy: Whether a Send has copied its tensor when it returns.
        updated_elsewhere: Names of variable operations that another segment of the plan updates.
        groups: Operations that run interleaved, part by part. The memory of what dies within a group is free only
            after the whole group. What the group keeps to itself gets no memory here.
        sent_in_place_bytes: Least size of results for `MemoryLayout.sent_in_place`; None for no such results.
        has_lanes: Whether operations may run aside.
        has_rooms: Whether the caller may give memory for results.
    """
    layout = MemoryLayout()
    # A group works through its operations part by part: all begin with the first.
    begun = {index: group.first for group in groups for index in range(group.first, group.last + 1)}
    layout.copied_reads = _Liveness(body, kernel_of, sends_copy).reads_to_copy(updated_elsewhere, begun)
    liveness = _Liveness(body, kernel_of, sends_copy, layout.copied_reads)
    if has_lanes:
        layout.asides = find_asides(body, kernel_of, liveness.roots, groups)
    if layout.asides:
        liveness = _Liveness(body, kernel_of, sends_copy, layout.copied_reads, layout.asides)
    layout.copied_outputs = {tensor for tensor in body.outputs if liveness.is_shared(tensor)}
    internal = {tensor for group in groups for tensor in group.internal}
    if has_rooms:
        layout.rooms = _rooms(body, kernel_of)
    if sent_in_place_bytes is not None:
        layout.sent_in_place = _sent_in_place(body, kernel_of, sent_in_place_bytes)
    _assign_slots(body, kernel_of, liveness, layout, groups)
    for tensor, index in liveness.last_use.items():
        if tensor in internal:
            continue
        if index < math.inf and tensor not in layout.slot_of and _worth_freeing(tensor, body):
            layout.dropped_after.setdefault(int(index), []).append(tensor)
    return layout


class _Liveness:
    """When each tensor is used last, and the owners behind it.

    Attributes:
        last_use: Index of the last operation that takes the tensor; infinity when it leaves the body.
        roots: The tensors in whose memory the tensor may lie, itself included.
        end: For each root, the last use of any tensor that may lie in its memory.
        held: For roots of what operations that run aside take: the index of the last operation beside them.
    """

    def __init__(
        self,
        body: Body,
        kernel_of: Callable[[Operation], Kernel],
        sends_copy: bool,
        copied_reads: Collection[Tensor] = (),
        asides: Mapping[int, Aside] = MappingProxyType({}),
    ) -> None:
        self.body = body
        self.copied_reads = copied_reads
        self._asides = asides
        self.held: dict[Tensor, int] = {}
        self.index = {op: i for i, op in enumerate(body.ops)}
        self.last_use: dict[Tensor, float] = {}
        self.roots: dict[Tensor, set[Tensor]] = {tensor: {tensor} for tensor in body.inputs}
        self.kernel_of = kernel_of
        for i, op in enumerate(body.ops):
            if not all(tensor in body.constants for tensor in op.outputs) or not op.outputs:
                self._visit(i, op, sends_copy)
            else:
                self.roots.update((tensor, {tensor}) for tensor in op.outputs)
        for tensor in body.outputs:
            self.last_use[tensor] = math.inf
        self._set_ends()

    def _visit(self, i: int, op: Operation, sends_copy: bool) -> None:
        keeps = op.op_def.keeps_inputs and not (op.type == "Send" and sends_copy)
        last = self._asides[i].last if i in self._asides else i
        for tensor in op.inputs:
            self.last_use[tensor] = max(math.inf if keeps else last, self.last_use.get(tensor, 0))
        if last > i:
            self.last_use.update((tensor, last) for tensor in op.outputs)
            roots = [root for tensor in op.inputs for root in self.roots[tensor]]
            self.held.update((root, max(last, self.held.get(root, 0))) for root in roots)
        behind = set().union(*(self.roots[tensor] for tensor in op.inputs)) if op.inputs else set()
        for tensor in op.outputs:
            is_new = self.kernel_of(op).gives_new(op, tensor.value_index)
            waited_for = op.op_def.blocking and not op.op_def.keeps_inputs  # see `OpDef.blocking`
            fresh = is_new or waited_for or tensor in self.copied_reads
            self.roots[tensor] = {tensor} if fresh else behind | {tensor}

    def _set_ends(self) -> None:
        self.end: dict[Tensor, float] = {}
        for tensor, roots in self.roots.items():
            last = self.last_use.get(tensor, -1)
            for root in roots:
                self.end[root] = max(self.end.get(root, -1), last)

    def reads_to_copy(self, updated_elsewhere: Collection[str], begun: Mapping[int, int]) -> set[Tensor]:
        """Reads of a variable whose value is used after the variable is updated, or by the update itself.

        Kernels of updates write the variable part by part, and may have read only some of their inputs by then.
        """
        updates: dict[Tensor, list[int]] = {}
        for i, op in enumerate(self.body.ops):
            if access_of(op) == "update":
                for handle in accessed_handles(op):
                    updates.setdefault(handle, []).append(begun.get(i, i))
        copied: set[Tensor] = set()
        for i, op in enumerate(self.body.ops):
            if access_of(op) is None:
                continue
            for tensor in op.outputs:
                later = [u for u in updates.get(op.inputs[0], ()) if u > i]
                clobbered = bool(later) and self.end[tensor] >= later[0]
                leaves = self.end[tensor] == math.inf and op.inputs[0].op.name in updated_elsewhere
                if clobbered or leaves:
                    copied.add(tensor)
        return copied

    def is_shared(self, tensor: Tensor) -> bool:
        """Whether the memory belongs to a variable, a constant or an input, so that the user must get a copy."""
        inputs = set(self.body.inputs)
        return any(
            root.dtype is dtypes.resource or root in inputs or root in self.body.constants
            for root in self.roots[tensor]
        )


def _sent_in_place(body: Body, kernel_of: Callable[[Operation], Kernel], least_bytes: int) -> dict[Tensor, Operation]:
    """Large results that nothing takes but one Send, and whose kernels fill the memory that they are given."""
    takers: dict[Tensor, list[Operation]] = {}
    for op in body.ops:
        for tensor in op.inputs:
            takers.setdefault(tensor, []).append(op)
    leaving = set(body.outputs)
    sent = {}
    for op in body.ops:
        if not op.outputs or not kernel_of(op).accepts_out or op.outputs[0] in body.constants:
            continue
        tensor = op.outputs[0]
        taken = takers.get(tensor, [])
        is_large = (_buffer_bytes(tensor) or 0) >= least_bytes
        if is_large and tensor not in leaving and len(taken) == 1 and taken[0].type == "Send":
            sent[tensor] = taken[0]
    return sent


_LEAST_ROOM_BYTES: Final = 1 << 14
"""A smaller result is copied in less time than it takes to name its place."""


def _rooms(body: Body, kernel_of: Callable[[Operation], Kernel]) -> list[Tensor]:
    """Results of the body, not small, whose kernels fill the memory that they are given."""
    computed = {op.outputs[0] for op in body.ops if op.outputs and kernel_of(op).accepts_out} - body.constants.keys()
    leaving = [tensor for tensor in body.outputs if tensor in computed and body.outputs.count(tensor) == 1]
    return [tensor for tensor in leaving if (_buffer_bytes(tensor) or 0) >= _LEAST_ROOM_BYTES]


def _assign_slots(
    body: Body,
    kernel_of: Callable[[Operation], Kernel],
    liveness: _Liveness,
    layout: MemoryLayout,
    groups: Sequence[Group],
) -> None:
    free: list[int] = []
    ending: dict[int, list[int]] = {}  # by index of an operation, the slots that are free after it
    internal = {tensor for group in groups for tensor in group.internal}
    # A group works through its operations part by part: no slot is free before its last part is done.
    released = {index: group.last for group in groups for index in range(group.first, group.last + 1)}
    for i, op in enumerate(body.ops):
        owner = op.outputs[0] if op.outputs and op.outputs[0] not in internal else None
        if owner is not None and owner not in body.constants and kernel_of(op).accepts_out:
            size = _buffer_bytes(owner)
            end = liveness.end[owner]
            if size is not None and end < math.inf and owner not in layout.sent_in_place:
                slot = _overwritable(op, kernel_of(op), i, liveness, layout)
                if slot is None:
                    slot = _take_slot(free, layout.slot_bytes, size)
                else:
                    ending[released.get(i, i)].remove(slot)
                layout.slot_of[owner] = slot
                last = max(int(end), i)
                ending.setdefault(released.get(last, last), []).append(slot)
        free.extend(ending.pop(i, ()))


def _overwritable(op: Operation, kernel: Kernel, i: int, liveness: _Liveness, layout: MemoryLayout) -> int | None:
    """The slot of an input that dies here and has the output's form, when the kernel may write over it.

    No other input may lie in the same memory, and the input may stand only where the kernel may write over it.
    """
    output = op.outputs[0]
    for position in kernel.may_overwrite:
        if position >= len(op.inputs):
            continue
        tensor = op.inputs[position]
        others = [t for j, t in enumerate(op.inputs) if j not in kernel.may_overwrite]
        if (
            tensor in layout.slot_of
            and liveness.end[tensor] == i
            and liveness.held.get(tensor, -1) < i
            and tensor.dtype is output.dtype
            and tensor.shape == output.shape
            and not any(tensor in liveness.roots[other] for other in others)
            and all(t is tensor or tensor not in liveness.roots[t] for t in op.inputs)
        ):
            return layout.slot_of[tensor]
    return None


def _take_slot(free: list[int], slot_bytes: list[int], size: int) -> int:
    """The best free slot for `size` bytes, grown if need be, or a new one.

    A slot and what it holds differ by at most a factor of 4, or the slot is at most 64 KiB: large slots stay free for
    large results.
    """
    fitting = [slot for slot in free if size <= slot_bytes[slot] <= max(4 * size, 1 << 16)]
    if fitting:
        slot = min(fitting, key=lambda s: slot_bytes[s])
    else:
        smaller = [slot for slot in free if size // 4 <= slot_bytes[slot] < size]
        if not smaller:
            slot_bytes.append(size)
            return len(slot_bytes) - 1
        slot = max(smaller, key=lambda s: slot_bytes[s])
        slot_bytes[slot] = size
    free.remove(slot)
    return slot


def _buffer_bytes(tensor: Tensor) -> int | None:
    """Bytes of a slot for `tensor`, or None when it has no fixed size or is a scalar."""
    count = tensor.shape.num_elements()
    if not count or not tensor.shape.rank or tensor.dtype.kind in ("string", "resource", "variant"):
        return None
    return -(-count * tensor.dtype.size // _ALIGNMENT) * _ALIGNMENT


def _worth_freeing(tensor: Tensor, body: Body) -> bool:
    """Whether a tensor is large enough, or may be, that dropping it early pays for a line of generated code."""
    if tensor in body.constants or tensor.dtype is dtypes.resource:
        return False
    count = tensor.shape.num_elements()
    return count is None or count > 4096
