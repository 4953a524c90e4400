"""How operations on shapes work on many elements at once (see `tfray.framework.batch_rules`)."""

from __future__ import annotations

from collections.abc import Sequence

from tfray.framework import dtypes
from tfray.framework.batch_rules import Batch, Value, again, constant
from tfray.framework.constant_value import constant_value
from tfray.framework.graph import Operation, Tensor, get_default_graph


def stacks(inputs: Sequence[Value], among: slice = slice(None)) -> list[Tensor] | None:
    """The tensors of inputs, of which those in `among` are stacks and no other is a batch; None if it is not so."""
    chosen, rest = inputs[among], [*inputs]
    del rest[among]
    if any(isinstance(value, Batch) for value in rest):
        return None
    if not all(isinstance(value, Batch) and value.lengths is None for value in chosen):
        return None
    return [value.tensor if isinstance(value, Batch) else value for value in inputs]


def unchanged(op: Operation, inputs: Sequence[Value], count: Tensor) -> list[Value]:
    """For operations that give their input."""
    return list(inputs)


def reshaped(op: Operation, inputs: Sequence[Value], count: Tensor) -> list[Value] | None:
    """For ``Reshape``: the number of elements comes before the sizes."""
    tensors = stacks(inputs, slice(1))
    if tensors is None:
        return None
    graph = get_default_graph()
    values, sizes = tensors
    if sizes.dtype is not dtypes.int64:
        sizes = graph.create_op("Cast", [sizes], {"DstT": dtypes.int64}).outputs[0]
    first = graph.create_op("Pack", [count], {"axis": 0}).outputs[0]
    whole = graph.create_op("ConcatV2", [first, sizes], {"axis": 0}).outputs[0]
    return [Batch(graph.create_op("Reshape", [values, whole]).outputs[0])]


def expanded(op: Operation, inputs: Sequence[Value], count: Tensor) -> list[Value] | None:
    """For ``ExpandDims``: its axis is one further behind."""
    tensors, axis = stacks(inputs, slice(1)), constant_value(op.inputs[1])
    if tensors is None or axis is None:
        return None
    made = get_default_graph().create_op("ExpandDims", [tensors[0], constant(_behind_first(int(axis.item())))])
    return [Batch(made.outputs[0])]


def squeezed(op: Operation, inputs: Sequence[Value], count: Tensor) -> list[Value] | None:
    """For ``Squeeze`` of given axes: they are one further behind."""
    tensors = stacks(inputs)
    if tensors is None or not op.attrs["axis"]:
        return None
    return [Batch(again(op, tensors, axis=[_behind_first(axis) for axis in op.attrs["axis"]])[0])]


def packed(op: Operation, inputs: Sequence[Value], count: Tensor) -> list[Value] | None:
    """For ``Pack``: its axis is one further behind."""
    tensors = stacks(inputs)
    return None if tensors is None else [Batch(again(op, tensors, axis=_behind_first(op.attrs["axis"]))[0])]


def sliced(op: Operation, inputs: Sequence[Value], count: Tensor) -> list[Value] | None:
    """For ``StridedSlice``: all of the new first axis, and the same of the others."""
    tensors = stacks(inputs, slice(1))
    return None if tensors is None else [Batch(again(op, tensors, key=f":,{op.attrs['key']}")[0])]


def counted(op: Operation, inputs: Sequence[Value], count: Tensor) -> list[Value] | None:
    """For ``Size`` of vectors: their lengths."""
    (values,) = inputs
    if not isinstance(values, Batch) or values.lengths is None or op.inputs[0].shape.rank != 1:
        return None
    attrs = {"DstT": op.outputs[0].dtype}
    return [Batch(get_default_graph().create_op("Cast", [values.lengths], attrs).outputs[0])]


def measured(op: Operation, inputs: Sequence[Value], count: Tensor) -> list[Value] | None:
    """For ``Shape`` of vectors: their lengths, each as a vector."""
    lengths = counted(op, inputs, count)
    if lengths is None:
        return None
    assert isinstance(lengths[0], Batch)
    made = get_default_graph().create_op("ExpandDims", [lengths[0].tensor, constant(1)])
    return [Batch(made.outputs[0])]


def _behind_first(axis: int) -> int:
    return axis if axis < 0 else axis + 1
