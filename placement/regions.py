"""Compiling what lies within operations that hold regions: which results and inputs stay, and in which order to run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tfray.framework.graph import Operation, Tensor
from tfray.framework.region import Region, regions_of
from tfray.framework.traversal import reachable_backward
from tfray.placement.schedule import schedule


@dataclass(frozen=True)
class KeptParts:
    """What remains of an operation that holds regions.

    Attributes:
        leading: Number of the operation's first inputs, which its regions do not take.
        parameters: Number of the regions' first inputs, which the operation does not pass; they all remain.
        inputs: Indices of the operation's further inputs that are still needed; the regions take them.
        foldable: Which of `inputs` have the same value in every turn, so that a known value may move into the regions.
        outputs: Indices of the results that remain.
        region_outputs: For each region, indices of the outputs that remain.
        attrs: Attributes that change with it.
    """

    leading: int
    parameters: int
    inputs: list[int]
    foldable: frozenset[int]
    outputs: list[int]
    region_outputs: dict[str, list[int]]
    attrs: dict[str, Any]


def kept_parts(op: Operation, used: Sequence[int]) -> KeptParts:
    """The parts of `op` that the results with the indices `used` need."""
    if op.type == "While":
        return _loop_parts(op, used)
    return _branch_parts(op, used) if op.type == "Cond" else _all_parts(op)


def _all_parts(op: Operation) -> KeptParts:
    parameters = op.attrs.get("parameters", 0)
    leading = len(op.inputs) - len(regions_of(op)[0].inputs) + parameters
    return KeptParts(
        leading,
        parameters,
        list(range(leading, len(op.inputs))),
        frozenset(),
        list(range(len(op.outputs))),
        {name: list(range(len(op.attrs[name].outputs))) for name in op.op_def.regions},
        {},
    )


def _branch_parts(op: Operation, used: Sequence[int]) -> KeptParts:
    leading = len(op.inputs) - len(regions_of(op)[0].inputs)
    needed: set[int] = set()
    for region in regions_of(op):
        needed |= _inputs_behind(region, [region.outputs[index] for index in used])
    inputs = [leading + index for index in sorted(needed)]
    return KeptParts(
        leading,
        0,
        inputs,
        frozenset(inputs),
        list(used),
        {name: list(used) for name in op.op_def.regions},
        {"Tout": [op.outputs[index].dtype for index in used]},
    )


def _loop_parts(op: Operation, used: Sequence[int]) -> KeptParts:
    """A loop keeps the variables that its condition, its used results and its other kept variables depend on."""
    condition, body, variables = op.attrs["condition"], op.attrs["body"], op.attrs["variables"]
    results = {index - 1 for index in used if index > 0}
    needed = _inputs_behind(condition, condition.outputs)
    while True:
        live = {index for index in needed if index < variables} | results
        grown = needed | _inputs_behind(body, [body.outputs[index] for index in sorted(live)])
        grown |= {index for index in live if index < variables}
        if grown == needed:
            break
        needed = grown
    kept_outputs = sorted(live)
    kept_variables = [index for index in kept_outputs if index < variables]
    captures = [index for index in sorted(needed) if index >= variables]
    return KeptParts(
        0,
        0,
        [*kept_variables, *captures],
        frozenset(captures),
        [0, *(index + 1 for index in kept_outputs)],
        {"condition": [0], "body": kept_outputs},
        {"Tout": [op.outputs[index + 1].dtype for index in kept_outputs], "variables": len(kept_variables)},
    )


def _inputs_behind(region: Region, outputs: Sequence[Tensor]) -> set[int]:
    """Indices of the region's inputs on which `outputs` depend."""
    behind = reachable_backward(tensor.op for tensor in outputs)
    return {index for index, tensor in enumerate(region.inputs) if tensor.op in behind}


def scheduled(region: Region) -> Region:
    """The region with its operations in the order in which they shall run."""
    order = schedule(region)[0]
    live = reachable_backward(tensor.op for tensor in region.outputs) | {tensor.op for tensor in region.inputs}
    made = Region(region.outer)
    tensors: dict[Tensor, Tensor] = {}
    ops: dict[Operation, Operation] = {}
    for op in order:
        if op not in live:
            continue
        ops[op] = made.add_operation(
            op.type,
            [tensors[tensor] for tensor in op.inputs],
            op.attrs,
            op.name,
            control_inputs=[ops[control] for control in op.control_inputs],
            exact_name=True,
            device=op.device,
            site=op.site,
            shapes=[tensor.shape for tensor in op.outputs],
        )
        tensors.update(zip(op.outputs, ops[op].outputs, strict=True))
    made.inputs = [tensors[tensor] for tensor in region.inputs]
    made.outputs = [tensors[tensor] for tensor in region.outputs]
    return made
