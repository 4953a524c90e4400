"""Shape functions that many operations share."""

from __future__ import annotations

from collections.abc import Sequence

from tfray.errors import InvalidArgumentError
from tfray.framework.graph import Operation
from tfray.framework.op_def import ShapeFunction
from tfray.framework.tensor_shape import SCALAR, UNKNOWN, TensorShape, broadcast_shapes


def like_input(index: int) -> ShapeFunction:
    """Every output has the shape of input `index`."""

    def shape(op: Operation) -> Sequence[TensorShape]:
        return [op.inputs[index].shape] * len(op.outputs)

    return shape


def all_inputs_alike(op: Operation) -> Sequence[TensorShape]:
    """One shape for every input and output; raises when the inputs contradict each other."""
    shape = UNKNOWN
    for tensor in op.inputs:
        shape = shape.merge_with(tensor.shape)
    return [shape] * len(op.outputs)


def broadcast(op: Operation) -> Sequence[TensorShape]:
    """The first output has the inputs' shapes broadcast together."""
    shape = op.inputs[0].shape
    for tensor in op.inputs[1:]:
        shape = broadcast_shapes(shape, tensor.shape)
    return [shape]


def scalar(op: Operation) -> Sequence[TensorShape]:
    """Every output is a scalar."""
    return [SCALAR] * len(op.outputs)


def scalar_of_scalars(op: Operation) -> Sequence[TensorShape]:
    """Every input and every output is a scalar."""
    for tensor in op.inputs:
        tensor.shape.assert_has_rank(0)
    return scalar(op)


def unknown(op: Operation) -> Sequence[TensorShape]:
    """Nothing is known of any output."""
    return [UNKNOWN] * len(op.outputs)


def no_outputs(op: Operation) -> Sequence[TensorShape]:
    """The operation has no outputs."""
    return []


def from_attr(name: str) -> ShapeFunction:
    """Every output has the shape in attribute `name`."""

    def shape(op: Operation) -> Sequence[TensorShape]:
        return [TensorShape(op.attr(name))] * len(op.outputs)

    return shape


def normalize_axis(axis: int, rank: int) -> int:
    """`axis` counted from the front. Raises `InvalidArgumentError` when it is out of range."""
    if not -rank <= axis < rank:
        raise InvalidArgumentError(f"axis = {axis} not in [{-rank}, {rank}): it is out of valid range")
    return axis + rank if axis < 0 else axis
