"""Functions of elements for many elements at once: a region is built anew, operation by operation, from batch rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.effects import is_stateful
from tfray.framework.graph import Graph, Operation, Tensor
from tfray.framework.region import Region
from tfray.framework.tensor_shape import TensorShape
from tfray.ops.kernels.batch_rules import Batch, Value, again, by_element
from tfray.runtime.segment_body import region_body

SAME, STACKED, RAGGED = "same", "stacked", "ragged"
"""What an output of such a function is: the same for all elements; their values along a new first axis; or these
joined along their own first axis, with the size of each element there as a further output."""


class BatchFunction(NamedTuple):
    """A compiled region for many elements at once.

    Attributes:
        open: Context manager of a function of the stacked components, the number of elements, and the captures.
        forms: For each output `SAME`, `STACKED` or `RAGGED`. The sizes of ragged ones follow all outputs.
    """

    open: Callable[[], Any]
    forms: Sequence[str]


class NoRuleError(Exception):
    """An operation of the region has no rule for these inputs."""


def region_over_batch(region: Region, parameters: int) -> tuple[Region, list[str]] | None:
    """The region for many elements at once, and the forms of its outputs; None if an operation has no rule.

    Its inputs are the parameters of `region`, stacked; the number of elements; and the captures.
    """
    made = Region(Graph())
    values: dict[Tensor, Value] = {}
    with made.as_default():
        for index, tensor in enumerate(region.inputs):
            is_stacked = index < parameters
            if is_stacked and tensor.dtype in (dtypes.resource, dtypes.variant):
                return None
            shape = TensorShape([None]).concatenate(tensor.shape) if is_stacked else tensor.shape
            name, variable = ("component" if is_stacked else "captured"), tensor.op.attrs.get("_variable")
            entered = made.add_input(tensor.dtype, shape, name, tensor.op.site, variable)
            values[tensor] = Batch(entered) if is_stacked else entered
        count = made.add_input(dtypes.int64, TensorShape([]), "count")
        made.set_inputs([*made.inputs[:parameters], count, *made.inputs[parameters:-1]])
        try:
            for op in region_body(region).ops:
                values.update(zip(op.outputs, over_batch(op, [values[t] for t in op.inputs], count), strict=True))
        except (NoRuleError, InvalidArgumentError, ValueError):
            return None  # also where shapes do not fit: the function for one element says what is wrong
    results = [values[tensor] for tensor in region.outputs]
    made.outputs = [value.tensor if isinstance(value, Batch) else value for value in results]
    made.outputs += [value.lengths for value in results if isinstance(value, Batch) and value.lengths is not None]
    return made, [_form(value) for value in results]


def _form(value: Value) -> str:
    if isinstance(value, Batch):
        return STACKED if value.lengths is None else RAGGED
    return SAME


def over_batch(op: Operation, inputs: Sequence[Value], count: Tensor) -> Sequence[Value]:
    """The outputs of an operation for many elements at once, made in the default graph.

    Raises:
        NoRuleError: It has no rule for these inputs.
    """
    rule = op.op_def.over_batch
    if is_stateful(op) and rule is None:
        raise NoRuleError
    if not any(isinstance(value, Batch) for value in inputs):
        return again(op, [value for value in inputs if isinstance(value, Tensor)])
    outputs = (rule or _elementwise(op))(op, inputs, count)
    if outputs is None:
        raise NoRuleError
    for own, value in zip(op.outputs, outputs, strict=True):
        if isinstance(value, Batch):
            first, rest = ([None], own.shape) if value.lengths is None else ([None], own.shape[1:])
            value.tensor.set_shape(TensorShape(first).concatenate(rest))
    return outputs


def _elementwise(op: Operation) -> Callable[..., Sequence[Value] | None]:
    kernel = op.op_def.kernel_for("CPU")
    is_elementwise = kernel is not None and kernel.elementwise
    if callable(is_elementwise):
        is_elementwise = is_elementwise(op)
    if not is_elementwise:
        raise NoRuleError
    return by_element
