"""Copy the pruned graph, leaving out what need not run: constants are folded, equal operations merged, identities
skipped. The user's graph is not touched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from tfray.framework.constant_value import constant_array, evaluate_operation
from tfray.framework.dtypes import DType
from tfray.framework.graph import Graph, Operation, Tensor
from tfray.framework.region import Region
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.traversal import reachable_backward, topological_order
from tfray.placement.fuse import (
    FusedForm,
    activated_by,
    activated_form,
    form_with_notes,
    fused_form,
    noted_by,
    noted_result,
    noting_form,
    product_of_part,
)
from tfray.placement.regions import KeptParts, kept_parts, scheduled

MAX_FOLDED_BYTES: Final = 1 << 20
"""1 MiB. A larger constant is not folded: computing it in each step costs less than the memory to hold it."""


@dataclass
class Simplified:
    """The graph to place.

    Attributes:
        graph: The copy.
        tensors: Tensor of the user's graph to tensor of the copy.
        ops: Operation of the user's graph to the operation of the copy that stands for it.
        feeds: For each fed tensor, the Placeholder that takes its value.
    """

    graph: Graph = field(default_factory=Graph)
    tensors: dict[Tensor, Tensor] = field(default_factory=dict)
    ops: dict[Operation, Operation] = field(default_factory=dict)
    feeds: dict[Tensor, Operation] = field(default_factory=dict)

    def live(self, wanted: Iterable[Operation]) -> set[Operation]:
        """The operations of the copy that `wanted` need. The inputs of folded operations may no longer be needed."""
        return reachable_backward(self.ops[op] for op in wanted if op in self.ops)


def simplify(
    ops: Sequence[Operation],
    fed: Sequence[Tensor],
    kept: Collection[Operation],
    fetched: Iterable[Tensor] = (),
    optimize: bool = True,
) -> Simplified:
    """Copy `ops` into a new graph.

    Args:
        ops: Operations in topological order.
        fed: Tensors that become Placeholders.
        kept: Operations that are not skipped even if they only forward their input: fetched ones.
        fetched: Tensors whose values are wanted.
        optimize: False copies every operation as it is.
    """
    return _Simplifier(kept, fetched, optimize, Graph()).run(ops, fed)


class _Simplifier:
    def __init__(self, kept: Collection[Operation], fetched: Iterable[Tensor], optimize: bool, graph: Graph) -> None:
        self._result = Simplified(graph)
        self._kept = set(kept)
        self._used = set(fetched)
        self._uses = Counter(self._used)
        self._optimize = optimize
        self._seen: dict[Any, Operation] = {}
        self._constants: dict[Tensor, np.ndarray[Any, Any]] = {}
        self._noting: set[Operation] = set()
        self._activations: dict[Operation, Operation] = {}
        """By batch normalization, the activation that is computed with it."""

    def run(self, ops: Sequence[Operation], fed: Sequence[Tensor]) -> Simplified:
        graph = self._result.graph
        with graph.as_default():
            run = set(ops)
            # A target of which no result is fetched is wanted as a whole: all its results count as used.
            for op in self._kept:
                if self._used.isdisjoint(op.outputs):
                    self._used.update(op.outputs)
            self._note_uses(ops)
            self._noting = {noting for noting in map(noted_by, ops) if noting is not None}
            self._activations = {norm: op for op in ops if (norm := self._activated(op)) is not None}
            for tensor in fed:
                self._add_feed(tensor, tensor.op in run)
            for op in ops:
                self._add(op)
        return self._result

    def _note_uses(self, ops: Iterable[Operation]) -> None:
        """Record which results `ops` use. An operation that another one waits for counts with all its results."""
        for op in ops:
            self._used.update(op.inputs)
            self._uses.update(op.inputs)
            for control in op.control_inputs:
                self._used.update(control.outputs)
                self._uses.update(control.outputs)

    def _add_feed(self, tensor: Tensor, beside_its_operation: bool) -> None:
        attrs = {"dtype": tensor.dtype, "shape": tensor.shape}
        # Errors show the feed's name. So the feed takes the name of the fed operation, if that name is free.
        free = not beside_its_operation and len(tensor.op.outputs) == 1
        name = tensor.op.name if free else f"_feed/{tensor.op.name}/{tensor.value_index}"
        op = self._result.graph.add_operation(
            "Placeholder", [], attrs, name, exact_name=True, device="", site=tensor.op.site
        )
        self._result.feeds[tensor] = op
        self._result.tensors[tensor] = op.outputs[0]

    def _add(self, op: Operation) -> None:
        result = self._result
        inputs = [result.tensors[tensor] for tensor in op.inputs]
        controls = list(dict.fromkeys(result.ops[control] for control in op.control_inputs if control in result.ops))
        reused = self._reuse(op, inputs, controls) if self._optimize else None
        made: Operation
        outputs: Sequence[Tensor | None]
        if op.op_def.regions:
            made, outputs = self._add_with_regions(op, inputs, controls)
        elif reused is None:
            made = copied(result.graph, op, inputs, controls)
            outputs = made.outputs
        else:
            made, outputs = reused
        result.ops[op] = made
        for old, new in zip(op.outputs, outputs, strict=True):
            if new is not None:
                result.tensors.setdefault(old, new)  # a fed tensor keeps its Placeholder

    def _add_with_regions(
        self, op: Operation, inputs: list[Tensor], controls: list[Operation]
    ) -> tuple[Operation, Sequence[Tensor | None]]:
        """Copy an operation that holds regions, without the results that nobody uses and what leads to them."""
        used = [index for index, tensor in enumerate(op.outputs) if tensor in self._used]
        kept = kept_parts(op, used)
        known = {
            index: self._constants[tensor]
            for index, tensor in zip(kept.inputs, (inputs[i] for i in kept.inputs), strict=True)
            if self._optimize and index in kept.foldable and tensor in self._constants
        }
        passed = [index for index in kept.inputs if index not in known]
        attrs = dict(op.attrs)
        for name in op.op_def.regions:
            attrs[name] = self._simplified_region(op, name, kept, known)
        attrs.update(kept.attrs)
        taken = [*range(kept.leading), *passed]
        made = self._result.graph.add_operation(
            op.type,
            [inputs[index] for index in taken],
            attrs,
            op.name,
            control_inputs=controls,
            exact_name=True,
            device=op.device,
            site=op.site,
        )
        outputs: list[Tensor | None] = [None] * len(op.outputs)
        for index, tensor in zip(kept.outputs, made.outputs, strict=True):
            outputs[index] = tensor
        return made, outputs

    def _simplified_region(
        self, op: Operation, name: str, kept: KeptParts, known: Mapping[int, np.ndarray[Any, Any]]
    ) -> Region:
        region: Region = op.attrs[name]
        wanted = [region.outputs[index] for index in kept.region_outputs[name]]
        made = Region(self._result.graph)
        inner = _Simplifier([], wanted, self._optimize, made)
        for old in region.inputs[: kept.parameters]:
            inner._result.tensors[old] = _region_input(made, old)
            made.inputs.append(inner._result.tensors[old])
        for index in kept.inputs:
            old = region.inputs[index - kept.leading + kept.parameters]
            new = _region_input(made, old)
            if index in known:
                inner._result.tensors[old] = inner._constant(old.op, 0, known[index], f"{old.op.name}/_known")
            else:
                inner._result.tensors[old] = new
                made.inputs.append(new)
        with made.as_default():
            needed = topological_order(reachable_backward(tensor.op for tensor in wanted))
            inner._note_uses(needed)
            for inner_op in needed:
                if inner_op.type != "RegionInput":
                    inner._add(inner_op)
        made.outputs = [inner._result.tensors[tensor] for tensor in wanted]
        return scheduled(made)

    def _reuse(
        self, op: Operation, inputs: list[Tensor], controls: list[Operation]
    ) -> tuple[Operation, Sequence[Tensor | None]] | None:
        """A simpler or earlier operation of the copy that gives the same outputs, with these outputs; or None."""
        if op.op_def.stateful or op.op_def.regions:
            return None
        part = self._part(op, inputs, controls)
        if part is not None:
            return part
        if _forwards(op, inputs) and not controls and op not in self._kept and op.device in ("", inputs[0].device):
            return inputs[0].op, [inputs[0]]
        if inputs and self._activations.get(op.inputs[0].op) is op and inputs[0].op.type == "_FusedBatchNormEx":
            return inputs[0].op, [inputs[0]]
        noted = noted_result(op, inputs) if inputs else None
        if noted is not None:
            return noted.op, [noted]
        folded = self._fold(op, inputs, controls)
        if folded is not None:
            return folded
        activation = self._activations.get(op)
        kind = op.type, None if activation is None else activation.type
        key = (kind, tuple(inputs), tuple(sorted(c.id for c in controls)), op.device, _attrs_key(op.attrs))
        twin = self._seen.get(key)
        if twin is not None:
            return twin, twin.outputs[: len(op.outputs)]
        made = self._in_other_form(op, inputs, controls) or copied(self._result.graph, op, inputs, controls)
        self._seen[key] = made
        if op.type == "Const" and not controls:  # what folds a constant does not wait for what that waits for
            self._constants[made.outputs[0]] = constant_array(op)
        return made, made.outputs[: len(op.outputs)]

    def _part(
        self, op: Operation, inputs: list[Tensor], controls: list[Operation]
    ) -> tuple[Operation, list[Tensor | None]] | None:
        """What computes of a split product only the part that is used, with that as the only output; or None."""
        used = [index for index, tensor in enumerate(op.outputs) if tensor in self._used]
        form = product_of_part(op, used, inputs) if inputs and self._is_alone(op, inputs, controls) else None
        if form is None:
            return None
        made = self._formed(op, form, controls)
        return made, [made.outputs[0] if index in used else None for index in range(len(op.outputs))]

    def _in_other_form(self, op: Operation, inputs: list[Tensor], controls: list[Operation]) -> Operation | None:
        """An operation that computes `op` with less work, or spares others work; None if there is none."""
        if not inputs or isinstance(self._result.graph, Region):
            return None
        if op in self._activations:
            form: FusedForm | None = activated_form(op, self._activations[op], inputs)
        else:
            form = noting_form(op, inputs) if op in self._noting else form_with_notes(op, inputs)
            form = form or self._fused(op, inputs, controls)
        return None if form is None else self._formed(op, form, controls)

    def _formed(self, op: Operation, form: FusedForm, controls: list[Operation]) -> Operation:
        return self._result.graph.add_operation(
            form.type,
            form.inputs,
            form.attrs,
            op.name,
            control_inputs=controls,
            exact_name=True,
            device=op.device,
            site=op.site,
        )

    def _activated(self, op: Operation) -> Operation | None:
        """The batch normalization with which `op` is computed, if no other needs what lies between; or None."""
        return activated_by(op) if op.inputs and self._uses[op.inputs[0]] == 1 else None

    def _fused(self, op: Operation, inputs: list[Tensor], controls: list[Operation]) -> FusedForm | None:
        """A form that computes `op` and the one before it, if no other needs what lies between."""
        return fused_form(op, inputs) if self._is_alone(op, inputs, controls) else None

    def _is_alone(self, op: Operation, inputs: list[Tensor], controls: list[Operation]) -> bool:
        """Whether `op`, and nothing else, needs its first input, and neither waits for another operation."""
        waits = bool(controls or inputs[0].op.control_inputs)
        return not waits and self._uses[op.inputs[0]] == 1 and op.inputs[0].op not in self._kept

    def _fold(
        self, op: Operation, inputs: list[Tensor], controls: list[Operation]
    ) -> tuple[Operation, Sequence[Tensor]] | None:
        if controls or not op.outputs or not inputs or not all(tensor in self._constants for tensor in inputs):
            return None
        if any(tensor.dtype.kind == "variant" for tensor in op.outputs):
            return None  # there are no constants of it
        sizes = [_bytes(tensor) for tensor in op.outputs]
        if any(size is None or size > MAX_FOLDED_BYTES for size in sizes):
            return None
        values = evaluate_operation(op, [self._constants[tensor] for tensor in inputs])
        if any(value is None for value in values):
            return None
        outputs = [self._constant(op, i, value) for i, value in enumerate(values)]
        return outputs[0].op, outputs

    def _constant(self, op: Operation, index: int, value: np.ndarray[Any, Any], name: str | None = None) -> Tensor:
        if name is None:
            name = op.name if len(op.outputs) == 1 else f"{op.name}/_folded_{index}"
        attrs = {"value": value, "dtype": op.outputs[index].dtype}
        tensor = self._result.graph.add_operation("Const", [], attrs, name, exact_name=True, device="").outputs[0]
        tensor.op._device, tensor.op.site = op.device, op.site
        self._constants[tensor] = tensor.op.attrs["value"]
        return tensor


def copied(graph: Graph, op: Operation, inputs: Sequence[Tensor], controls: Sequence[Operation] = ()) -> Operation:
    """An operation like `op`, of the same name, in another graph."""
    return graph.add_operation(
        op.type,
        inputs,
        op.attrs,
        op.name,
        control_inputs=controls,
        exact_name=True,
        device=op.device,
        site=op.site,
        shapes=[tensor.shape for tensor in op.outputs],
    )


def _forwards(op: Operation, inputs: Sequence[Tensor]) -> bool:
    """Whether the result of an operation is its first input."""
    if op.type == "Reshape":
        shape = inputs[0].shape
        return shape.is_fully_defined() and shape == op.outputs[0].shape
    return op.op_def.forwards_input


def _region_input(region: Region, like: Tensor) -> Tensor:
    attrs = {"dtype": like.dtype, "shape": like.shape}
    op = region.add_operation(
        "RegionInput", [], attrs, like.op.name, exact_name=True, device="", site=like.op.site, shapes=[like.shape]
    )
    return op.outputs[0]


def _bytes(tensor: Tensor) -> int | None:
    count = tensor.shape.num_elements()
    return None if count is None else count * tensor.dtype.size


def _attrs_key(attrs: Mapping[str, Any]) -> Any:
    return tuple((name, _value_key(attrs[name])) for name in sorted(attrs) if name != "_gradient_overrides")


def _value_key(value: Any) -> Any:
    """A hashable that is equal for equal attribute values."""
    if isinstance(value, np.ndarray):
        if value.dtype == object:
            return value.shape, tuple(value.ravel())
        return value.shape, value.dtype.str, value.tobytes() if value.nbytes <= 4096 else id(value)
    if isinstance(value, (list, tuple)):
        return type(value).__name__, tuple(map(_value_key, value))
    if isinstance(value, dict):
        return tuple((_value_key(key), _value_key(item)) for key, item in value.items())
    if isinstance(value, slice):
        return "slice", value.start, value.stop, value.step
    if isinstance(value, (bool, int, float)):
        return type(value).__name__, repr(value)
    if isinstance(value, (DType, TensorShape, str, bytes)) or value is None:
        return value
    return id(value)
