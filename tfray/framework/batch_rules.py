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
    made = get_default_graph().create_op(op.type, inputs, {**op.attrs, **attrs}, op.name.rpartition("/")[2])
    return made.outputs


def constant(value: Any) -> Tensor:
    """A constant of the default graph: integers as int64."""
    array = np.asarray(value, np.int64)
    return get_default_graph().create_op("Const", [], {"value": array, "dtype": dtypes.int64}).outputs[0]


def _tensor(value: Value) -> Tensor:
    return value.tensor if isinstance(value, Batch) else value


def _with_rank(tensor: Tensor, own: int, rank: int) -> Tensor:
    """A stack of elements of rank `own` as one of elements of rank `rank`: with sizes of 1 behind the first axis."""
    for _ in range(rank - own):
        tensor = get_default_graph().create_op("ExpandDims", [tensor, constant(1)]).outputs[0]
    return tensor
