"""How operations of a function of elements work on many elements at once.

A *batch* stands for one tensor of the function, for several elements. An `OpDef` that names a rule as ``over_batch``
says: what the rule builds gives for every element what the operation gives for it alone, and fails if the operation
fails for one of them. `tfray.runtime.over_batch` puts functions together from these rules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tfray.framework import dtypes
from tfray.framework.constant_value import constant_value
from tfray.framework.graph import Operation, Tensor, get_default_graph


@dataclass(frozen=True)
class Batch:
    """A tensor of each of several elements.

    Attributes:
        tensor: The elements along a new first axis; if they differ in size, joined along their own first axis.
        lengths: Size of each element along that axis, int64; None if they do not differ.
    """

    tensor: Tensor
    lengths: Tensor | None = None


Value = Tensor | Batch
"""A tensor that is the same for all elements, or a batch."""

Rule = Callable[[Operation, Sequence[Value], Tensor], Sequence[Value] | None]
"""``rule(op, inputs, count)``: the outputs of `op` for `count` (an int64 scalar) elements; None if there is no way."""


def by_element(op: Operation, inputs: Sequence[Value], count: Tensor) -> list[Value] | None:
    """For operations whose kernel is elementwise: shapes are broadcast from their last dimension on."""
    batches = [value for value in inputs if isinstance(value, Batch)]
    ranks = [tensor.shape.rank for tensor in op.inputs]
    if None in ranks:
        return None
    rank = max(rank for rank in ranks if rank is not None)
    lengths = batches[0].lengths
    if any(batch.lengths is not lengths for batch in batches):
        return None
    if lengths is not None:
        others = [value for value in inputs if not isinstance(value, Batch)]
        if any(tensor.shape.rank != rank for tensor in op.inputs if tensor.shape.rank) or any(
            o.shape.rank for o in others
        ):
            return None
        return [Batch(again(op, [_tensor(value) for value in inputs])[0], lengths)]
    aligned = [
        _with_rank(value.tensor, own or 0, rank) if isinstance(value, Batch) else value
        for value, own in zip(inputs, ranks, strict=True)
    ]
    return [Batch(again(op, aligned)[0])]


def by_element_of_first(op: Operation, inputs: Sequence[Value], count: Tensor) -> list[Value] | None:
    """As `by_element`, where all inputs but the first are the same for all elements."""
    return None if any(isinstance(value, Batch) for value in inputs[1:]) else by_element(op, inputs, count)


def by_row(index: int) -> Rule:
    """For operations that take each element of the input with this number for itself, whatever its shape.

    The shape of the outputs is that of this input, then others.
    """

    def rule(op: Operation, inputs: Sequence[Value], count: Tensor) -> list[Value] | None:
        rows = inputs[index]
        if not isinstance(rows, Batch) or any(isinstance(v, Batch) for i, v in enumerate(inputs) if i != index):
            return None
        return [Batch(tensor, rows.lengths) for tensor in again(op, [_tensor(value) for value in inputs])]

    return rule


def again(op: Operation, inputs: Sequence[Tensor], **attrs: Any) -> Sequence[Tensor]:
    """The outputs of an operation as `op` in the default graph, on these inputs and with some attributes changed."""
    made = get_default_graph().add_operation(op.type, inputs, {**op.attrs, **attrs}, op.name.rpartition("/")[2])
    return made.outputs


def constant(value: Any) -> Tensor:
    """A constant of the default graph: integers as int64."""
    array = np.asarray(value, np.int64)
    return get_default_graph().add_operation("Const", [], {"value": array, "dtype": dtypes.int64}).outputs[0]


def _tensor(value: Value) -> Tensor:
    return value.tensor if isinstance(value, Batch) else value


def _with_rank(tensor: Tensor, own: int, rank: int) -> Tensor:
    """A stack of elements of rank `own` as one of elements of rank `rank`: with sizes of 1 behind the first axis."""
    for _ in range(rank - own):
        tensor = get_default_graph().add_operation("ExpandDims", [tensor, constant(1)]).outputs[0]
    return tensor


# -- shapes ----------------------------------------------------------------------------------------------


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
        sizes = graph.add_operation("Cast", [sizes], {"DstT": dtypes.int64}).outputs[0]
    first = graph.add_operation("Pack", [count], {"axis": 0}).outputs[0]
    whole = graph.add_operation("ConcatV2", [first, sizes], {"axis": 0}).outputs[0]
    return [Batch(graph.add_operation("Reshape", [values, whole]).outputs[0])]


def expanded(op: Operation, inputs: Sequence[Value], count: Tensor) -> list[Value] | None:
    """For ``ExpandDims``: its axis is one further behind."""
    tensors, axis = stacks(inputs, slice(1)), constant_value(op.inputs[1])
    if tensors is None or axis is None:
        return None
    made = get_default_graph().add_operation("ExpandDims", [tensors[0], constant(_behind_first(int(axis.item())))])
    return [Batch(made.outputs[0])]


def squeezed(op: Operation, inputs: Sequence[Value], count: Tensor) -> list[Value] | None:
    """For ``Squeeze`` of given axes: they are one further behind."""
    tensors = stacks(inputs)
    if tensors is None or not op.attrs["axis"]:
        return None
    return [Batch(again(op, tensors, axis=[_behind_first(axis) for axis in op.attrs["axis"]])[0])]


def packed(op: Operation, inputs: Sequence[Value], count: Tensor) -> list[Value] | None:
    """For ``Pack`` and ``ConcatV2``: the axis is one further behind."""
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
    return [Batch(get_default_graph().add_operation("Cast", [values.lengths], attrs).outputs[0])]


def measured(op: Operation, inputs: Sequence[Value], count: Tensor) -> list[Value] | None:
    """For ``Shape`` of vectors: their lengths, each as a vector."""
    lengths = counted(op, inputs, count)
    if lengths is None:
        return None
    assert isinstance(lengths[0], Batch)
    made = get_default_graph().add_operation("ExpandDims", [lengths[0].tensor, constant(1)])
    return [Batch(made.outputs[0])]


def _behind_first(axis: int) -> int:
    return axis if axis < 0 else axis + 1
