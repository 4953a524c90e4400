"""Which values of a body stay with the host when its device is a GPU: shapes, axes, counters of loops, predicates.

A kernel that reads an input on the host (`OpDef.host_inputs`) would wait until the device has computed it, and all that
was asked of the device before. So what is computed for such inputs alone is computed on the host, by CPU kernels,
wherever it comes from values that the host has: constants, fed values, shapes, lists of tensors. A loop's variable is
carried on the host if it begins and goes on there, as a counter does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from tfray.framework import dtypes
from tfray.framework.effects import uses_step
from tfray.framework.graph import Operation, Tensor
from tfray.framework.region import Region
from tfray.runtime.segment_body import Body, region_body

MAX_INLINED_DEPTH: Final = 8
"""Branches and loops nested deeper are called by their kernels: Python limits how deep blocks may be nested."""


def is_inlined(op: Operation, depth: int) -> bool:
    """Whether a branch or a loop, in so many others, is written as Python's own, with its operations inline."""
    return op.type in ("While", "Cond") and depth < MAX_INLINED_DEPTH and not uses_step(op)


def has_one_form(tensor: Tensor) -> bool:
    """Whether a value is the same for host and device: handles, lists of tensors, strings."""
    return tensor.dtype in (dtypes.resource, dtypes.variant, dtypes.string)


@dataclass
class HostValues:
    """Where the values of a body are.

    Attributes:
        body: The body.
        ops: The operations that run on the host.
        on_host: The values that are made on the host, or enter there. All others are made on the device.
        read_on_host: The values that something reads on the host.
        read_on_device: The values that something reads on the device.
        regions: By branch or loop that is inlined, the values of its regions.
        carried: By loop that is inlined, the numbers of the variables that it carries on the host.
    """

    body: Body
    ops: set[Operation] = field(default_factory=set)
    on_host: set[Tensor] = field(default_factory=set)
    read_on_host: set[Tensor] = field(default_factory=set)
    read_on_device: set[Tensor] = field(default_factory=set)
    regions: dict[Operation, list[HostValues]] = field(default_factory=dict)
    carried: dict[Operation, set[int]] = field(default_factory=dict)


def host_values(body: Body, entering: Collection[Tensor] = (), depth: int = 0) -> HostValues:
    """Decide for a body whose inputs `entering` the host has.

    Args:
        body: The body.
        entering: Inputs that the host has.
        depth: How many branches and loops are around it.
    """
    return _Search(body, entering, depth).choose(())


class _Search:
    """Finds what the host could compute in a body, and from what is read there what it shall compute."""

    def __init__(self, body: Body, entering: Collection[Tensor], depth: int) -> None:
        self._body = body
        self._depth = depth
        self._entering = set(entering)
        self._regions: dict[Operation, list[_Search]] = {}
        self._could_carry: dict[Operation, set[int]] = {}
        self.possible = self._entering | set(body.constants)
        for op in body.ops:
            self._visit(op)

    def could_have(self, tensor: Tensor) -> bool:
        """Whether the host could have a value without waiting for the device."""
        return tensor in self.possible or has_one_form(tensor)

    def _visit(self, op: Operation) -> None:
        if is_inlined(op, self._depth):
            self._regions[op] = self._loop(op) if op.type == "While" else self._branches(op)
        if op.type == "While":
            self.possible.add(op.outputs[0])
            self.possible.update(op.outputs[1 + index] for index in self._could_carry.get(op, ()))
        elif self._could_run(op):
            self.possible.update(op.outputs)

    def _could_run(self, op: Operation) -> bool:
        definition = op.op_def
        if definition.stateful or definition.regions or definition.blocking or definition.keeps_inputs:
            return False
        if definition.kernel_for("CPU") is None or not op.inputs:
            return False
        return all(
            definition.reads_shape_alone(index) or self.could_have(tensor) for index, tensor in enumerate(op.inputs)
        )

    def _branches(self, op: Operation) -> list[_Search]:
        return [self._inner(op.attrs[name], op.inputs[1:], ()) for name in ("then", "orelse")]

    def _loop(self, op: Operation) -> list[_Search]:
        body: Region = op.attrs["body"]
        count = op.attrs["variables"]
        carried = {index for index in range(count) if op.inputs[index] in self.possible}
        while True:
            device = set(range(count)) - carried
            inner = self._inner(body, op.inputs, device)
            kept = {index for index in carried if body.outputs[index] in inner.possible}
            if kept == carried:
                self._could_carry[op] = carried
                return [self._inner(op.attrs["condition"], op.inputs, device), inner]
            carried = kept

    def _inner(self, region: Region, arguments: Sequence[Tensor], on_device: Collection[int]) -> _Search:
        entering = [
            tensor
            for index, (tensor, argument) in enumerate(zip(region.inputs, arguments, strict=True))
            if index not in on_device and argument in self.possible
        ]
        return _Search(region_body(region), entering, self._depth + 1)

    # -- from what is read -------------------------------------------------------------------------

    def choose(self, wanted: Collection[Tensor]) -> HostValues:
        """What the host computes, if of the results it is asked for these; the others are for the device."""
        values = HostValues(self._body)
        values.read_on_host.update(wanted)
        values.read_on_device.update(set(self._body.outputs) - set(wanted))
        for op in reversed(self._body.ops):
            if op.outputs and all(tensor in self._body.constants for tensor in op.outputs):
                continue
            if op in self._regions:
                (self._read_by_loop if op.type == "While" else self._read_by_branch)(op, values)
            elif self._could_run(op) and not values.read_on_host.isdisjoint(op.outputs):
                values.ops.add(op)
                values.on_host.update(op.outputs)
            for tensor, on_host in self._reads(op, values):
                (values.read_on_host if on_host else values.read_on_device).add(tensor)
            if op.type == "While":
                values.on_host.add(op.outputs[0])
        values.on_host |= self._entering
        return values

    def _reads(self, op: Operation, values: HostValues) -> Iterator[tuple[Tensor, bool]]:
        if op in values.regions and op.type == "While":
            return
        definition = op.op_def
        for index, tensor in enumerate(op.inputs):
            if definition.reads_shape_alone(index) or (op in values.regions and index):
                continue
            yield tensor, op in values.ops or definition.reads_on_host(index)

    def _read_by_branch(self, op: Operation, values: HostValues) -> None:
        values.regions[op] = [search.choose(()) for search in self._regions[op]]
        for inner in values.regions[op]:
            _pass_on(inner, op.inputs[1:], values)

    def _read_by_loop(self, op: Operation, values: HostValues) -> None:
        """Carry on the host what the loop reads there, or what follows it, and what that is computed from."""
        could = self._could_carry[op]
        carried = {index for index in could if op.outputs[1 + index] in values.read_on_host}
        condition, body = self._regions[op]
        while True:
            outputs = body._body.outputs
            inner = [condition.choose(condition._body.outputs), body.choose([outputs[index] for index in carried])]
            read = set().union(*(region.read_on_host for region in inner))
            inputs = [region.body.inputs for region in inner]
            more = {index for index in could if any(tensors[index] in read for tensors in inputs)}
            if more <= carried:
                break
            carried |= more
        for region in inner:  # the variables that could be carried on the host, and are not
            region.on_host -= {region.body.inputs[index] for index in could - carried}
            _pass_on(region, op.inputs, values, op.attrs["variables"])
        values.regions[op], values.carried[op] = inner, carried
        values.on_host.update(op.outputs[1 + index] for index in carried)
        for index in range(op.attrs["variables"]):
            (values.read_on_host if index in carried else values.read_on_device).add(op.inputs[index])


def _pass_on(inner: HostValues, arguments: Sequence[Tensor], values: HostValues, first: int = 0) -> None:
    """What a region reads of its inputs, from the `first` on, the operation reads of its own."""
    for tensor, argument in list(zip(inner.body.inputs, arguments, strict=True))[first:]:
        if tensor in inner.read_on_host:
            values.read_on_host.add(argument)
        if tensor in inner.read_on_device:
            values.read_on_device.add(argument)
