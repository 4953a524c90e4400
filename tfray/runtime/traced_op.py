"""Operations as the record of a step names them."""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple

from tfray.framework.graph import Operation, Tensor


class TracedOp(NamedTuple):
    """An operation as spans refer to it.

    Attributes:
        name: Its name.
        type: Its type.
        label: What it is called on: names of tensors, or the key of an edge.
        dtypes: Names of its outputs' dtypes.
        planned: For each output, whether it lies in reused memory.
    """

    name: str
    type: str
    label: str
    dtypes: tuple[str, ...] = ()
    planned: tuple[bool, ...] = ()


def describe(op: Operation, planned: Container[Tensor] = ()) -> TracedOp:
    """The `TracedOp` of an operation. `planned`: the tensors that lie in reused memory."""
    names = ", ".join(tensor.name for tensor in op.inputs)
    label = op.attr("key") if op.type in ("Send", "Recv") else names
    dtypes = tuple(tensor.dtype.name for tensor in op.outputs)
    return TracedOp(op.name, op.type, label, dtypes, tuple(tensor in planned for tensor in op.outputs))
