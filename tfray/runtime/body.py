"""The straight-line program of a segment, and its specialisation to the input shapes of a step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tfray.framework import dtypes
from tfray.framework.constant_value import evaluate_operation, is_small
from tfray.framework.graph import Graph, Operation, Tensor
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
    constants = {op.outputs[0]: op.attrs["value"] for op in ops if op.type == "Const"}
    return Body(list(ops), list(inputs), list(outputs), constants)


def depends_on_input_shapes(body: Body) -> bool:
    """Whether knowing the shapes of the inputs would tell more than the graph does."""
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
    """What stands in `scratch` for a tensor that enters."""
    source = tensor.op
    # The name of its operation, which errors show, unless another of its outputs has that already.
    name = f"_input/{source.name}/{tensor.value_index}" if source.name in scratch else source.name
    if tensor.dtype is dtypes.resource:
        type_name, attrs = source.type, dict(source.attrs)
    else:
        type_name, attrs = "Placeholder", {"dtype": tensor.dtype, "shape": tensor.shape}
    entered = scratch.create_op(
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
    # The same name: contexts, resources and errors refer to operations by it.
    copy = scratch.create_op(op.type, inputs, op.attrs, op.name, exact_name=True, device=op.device, site=op.site)
    for old, new in zip(op.outputs, copy.outputs, strict=True):
        new.set_shape(old.shape)
        mapping[old] = new
        if old in original_constants:
            constants[new] = original_constants[old]
    if not any(tensor in constants for tensor in copy.outputs):
        _fold(copy, constants)
    return copy


def _fold(op: Operation, constants: dict[Tensor, Any]) -> None:
    if op.type == "Shape" and op.inputs[0].shape.is_fully_defined():
        constants[op.outputs[0]] = np.array(op.inputs[0].shape.sizes, dtype=op.outputs[0].dtype.numpy)
        return
    if op.op_def.stateful or not op.inputs or not all(tensor in constants for tensor in op.inputs):
        return
    if not all(is_small(tensor.shape) for tensor in (*op.inputs, *op.outputs)):
        return
    values = evaluate_operation(op, [constants[tensor] for tensor in op.inputs])
    if not any(value is None for value in values):
        constants.update(zip(op.outputs, values, strict=True))
