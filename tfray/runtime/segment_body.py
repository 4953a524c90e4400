"""The straight-line program of a segment, and its specialisation to the input shapes of a step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tfray.errors import InvalidArgumentError, OpError
from tfray.framework import dtypes
from tfray.framework.constant_value import constant_array, evaluate_operation, is_small
from tfray.framework.effects import is_stateful
from tfray.framework.graph import Graph, Operation, Tensor
from tfray.framework.region import Region
from tfray.framework.tensor_shape import TensorShape


@dataclass
class Body:
    """Operations in the order in which they run, between the tensors that enter and those that leave.

    Attributes:
        ops: The operations. Those whose outputs are all in `constants` are not run.
        inputs: Tensors that enter: fed, received, or computed by an earlier segment.
        outputs: Tensors that leave.
        constants: Values known before the step.
    """

    ops: list[Operation]
    inputs: list[Tensor]
    outputs: list[Tensor]
    constants: dict[Tensor, Any] = field(default_factory=dict)


def generic_body(ops: Sequence[Operation], inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> Body:
    """The body as the graph has it, valid for every input shape."""
    constants = {op.outputs[0]: constant_array(op) for op in ops if op.type == "Const"}
    return Body(list(ops), list(inputs), list(outputs), constants)


def region_body(region: Region) -> Body:
    """The body of a region, whose operations stand in the order in which they run."""
    needed = set(region.outputs)
    ops: list[Operation] = []
    for op in reversed(region.get_operations()):
        # A folded operation no longer takes its inputs, so their operations may be needed by nothing.
        if op.type != "RegionInput" and (is_stateful(op) or not needed.isdisjoint(op.outputs)):
            ops.append(op)
            needed.update(op.inputs)
    return generic_body(ops[::-1], region.inputs, region.outputs)


def depends_on_input_shapes(body: Body) -> bool:
    """Whether an input has an unknown dimension, so that the shapes of a step's inputs tell more than the graph."""
    unknown_input = any(not tensor.shape.is_fully_defined() for tensor in body.inputs)
    return unknown_input and any(
        not tensor.shape.is_fully_defined() for tensor in [*body.inputs, *(t for op in body.ops for t in op.outputs)]
    )


def specialize(body: Body, shapes: Sequence[tuple[int, ...] | None]) -> Body:
    """`body` for inputs of exactly these shapes (None leaves one as it is).

    Shapes are inferred anew, and what follows from them alone (the value of ``tf.shape(x)``, and whatever is
    computed from it) becomes constant.
    """
    scratch = Graph()
    mapping: dict[Tensor, Tensor] = {}
    constants: dict[Tensor, Any] = {}
    for tensor, shape in zip(body.inputs, shapes, strict=True):
        mapping[tensor] = _enter(tensor, tensor.shape if shape is None else TensorShape(shape), scratch)
    ops = [_respecialize(op, scratch, mapping, constants, body.constants) for op in body.ops]
    inputs = [mapping[tensor] for tensor in body.inputs]
    return Body(ops, inputs, [mapping[tensor] for tensor in body.outputs], constants)


def _enter(tensor: Tensor, shape: TensorShape, scratch: Graph) -> Tensor:
    """The operation's output in `scratch` that stands for a tensor that enters the body."""
    source = tensor.op
    # Errors show the name: that of the tensor's operation, unless another of its outputs has taken it.
    name = f"_input/{source.name}/{tensor.value_index}" if source.name in scratch else source.name
    if tensor.dtype is dtypes.resource:
        type_name, attrs = source.type, dict(source.attrs)
    else:
        type_name, attrs = "Placeholder", {"dtype": tensor.dtype, "shape": tensor.shape}
    entered = scratch.add_operation(
        type_name, [], attrs, name, exact_name=True, device="", site=source.site, shapes=[shape]
    )
    return entered.outputs[0]


def _respecialize(
    op: Operation,
    scratch: Graph,
    mapping: dict[Tensor, Tensor],
    constants: dict[Tensor, Any],
    original_constants: dict[Tensor, Any],
) -> Operation:
    inputs = [mapping[tensor] for tensor in op.inputs]
    attrs = _with_regions_for(op, inputs, scratch, constants) if op.op_def.regions else op.attrs
    # The same name: contexts, resources and errors refer to operations by it.
    copy = scratch.add_operation(op.type, inputs, attrs, op.name, exact_name=True, device=op.device, site=op.site)
    for old, new in zip(op.outputs, copy.outputs, strict=True):
        if not new.shape.is_compatible_with(old.shape):
            message = f"{op.type}: its result has shape {new.shape} in this step, and shape {old.shape} in the graph"
            raise InvalidArgumentError(message, op_name=op.name, site=op.site)
        new.set_shape(old.shape)
        mapping[old] = new
        if old in original_constants:
            constants[new] = original_constants[old]
    if not any(tensor in constants for tensor in copy.outputs):
        _fold(copy, constants)
    return copy


def _with_regions_for(
    op: Operation, inputs: Sequence[Tensor], scratch: Graph, constants: dict[Tensor, Any]
) -> dict[str, Any]:
    """The attributes of `op` with its regions specialised to these inputs."""
    regions = {name: op.attrs[name] for name in op.op_def.regions}
    first = next(iter(regions.values()))
    parameters = op.attrs.get("parameters", 0)
    passed = inputs[len(inputs) - len(first.inputs) + parameters :]
    shapes = [tensor.shape for tensor in (*first.inputs[:parameters], *passed)]
    known = [None] * parameters + [constants.get(tensor) for tensor in passed]
    if op.type == "While":
        variables = op.attrs["variables"]
        known[:variables] = [None] * variables
        shapes = _invariant_shapes(op.attrs["body"], variables, shapes, known, scratch)
    made = {name: _specialized_region(region, scratch, shapes, known) for name, region in regions.items()}
    return {**op.attrs, **made}


def _invariant_shapes(
    body: Region, variables: int, shapes: list[TensorShape], known: list[Any], scratch: Graph
) -> list[TensorShape]:
    """The shapes of a loop's inputs that hold in every iteration, as narrow as those of the first allow.

    Each round widens a shape that the body changes, and a shape can widen only a few times: the search ends.
    """
    while True:
        outputs = _specialized_region(body, scratch, shapes, known).outputs[:variables]
        wider = [
            shape.most_specific_compatible_shape(tensor.shape) for shape, tensor in zip(shapes, outputs, strict=False)
        ]
        if wider == shapes[:variables]:
            return shapes
        shapes = [*wider, *shapes[variables:]]


def _specialized_region(region: Region, scratch: Graph, shapes: Sequence[TensorShape], known: Sequence[Any]) -> Region:
    """`region` for inputs of these shapes and values. Where they do not fit it, it is left as general as it was.

    A branch that is not taken may have been written for other shapes; one that is taken fails when it runs.
    """
    try:
        return _region_of_shapes(region, scratch, shapes, known)
    except OpError:
        return _region_of_shapes(region, scratch, [tensor.shape for tensor in region.inputs], [None] * len(known))


def _region_of_shapes(region: Region, scratch: Graph, shapes: Sequence[TensorShape], known: Sequence[Any]) -> Region:
    made = Region(scratch)
    mapping: dict[Tensor, Tensor] = {}
    constants: dict[Tensor, Any] = {}
    for tensor, shape, value in zip(region.inputs, shapes, known, strict=True):
        entered = made.add_operation(
            "RegionInput",
            [],
            {"dtype": tensor.dtype, "shape": shape},
            tensor.op.name,
            exact_name=True,
            device="",
            site=tensor.op.site,
        ).outputs[0]
        made.inputs.append(entered)
        mapping[tensor] = entered
        if value is not None and tensor.dtype not in (dtypes.resource, dtypes.variant):
            mapping[tensor] = _constant(made, f"{tensor.op.name}/_known", value, tensor, constants)
    for op in region.get_operations():
        if op.type != "RegionInput":
            _respecialize_within(op, made, mapping, constants)
    made.outputs = [mapping[tensor] for tensor in region.outputs]
    return made


def _respecialize_within(
    op: Operation, region: Region, mapping: dict[Tensor, Tensor], constants: dict[Tensor, Any]
) -> None:
    original = {op.outputs[0]: constant_array(op)} if op.type == "Const" else {}
    _respecialize(op, region, mapping, constants, original)
    if op.type == "Const":
        return
    for tensor in op.outputs:
        value = constants.get(mapping[tensor])
        if value is not None:
            # A body has its known values beside it, in `Body.constants`; a region needs an operation for each.
            name = f"{op.name}/_known_{tensor.value_index}"
            mapping[tensor] = _constant(region, name, value, tensor, constants)


def _constant(region: Region, name: str, value: Any, like: Tensor, constants: dict[Tensor, Any]) -> Tensor:
    attrs = {"value": np.asarray(value), "dtype": like.dtype}
    op = region.add_operation("Const", [], attrs, name, exact_name=True, device="", site=like.op.site)
    constants[op.outputs[0]] = attrs["value"]
    return op.outputs[0]


def _fold(op: Operation, constants: dict[Tensor, Any]) -> None:
    if op.op_def.stateful or op.op_def.regions or not op.inputs or not all(is_small(t.shape) for t in op.outputs):
        return
    known = [_known(op, index, constants) for index in range(len(op.inputs))]
    if any(value is None for value in known):
        return
    values = evaluate_operation(op, known)
    if not any(value is None for value in values):
        constants.update(zip(op.outputs, values, strict=True))


def _known(op: Operation, index: int, constants: dict[Tensor, Any]) -> Any:
    """What an operation needs of an input: a small constant, or anything of its shape if that is all that is read."""
    tensor = op.inputs[index]
    if tensor in constants:
        return constants[tensor] if is_small(tensor.shape) else None
    sizes = tensor.shape.whole()
    if sizes is None or not op.op_def.reads_shape_alone(index) or tensor.dtype in (dtypes.resource, dtypes.variant):
        return None
    return np.broadcast_to(np.zeros((), tensor.dtype.numpy), sizes)
