"""Operations that only tfray has, in TensorFlow's form: composed of others that both have.

Each function takes the operation, and tensors that stand for its inputs, and returns what it returns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from tfray.errors import UnimplementedError
from tfray.framework import dtypes
from tfray.framework.graph import Graph, Operation, Tensor
from tfray.ops.arrays.broadcast_ops import broadcast_to, fill, ones_like, where, zeros_like
from tfray.ops.arrays.construction_ops import one_hot, range_
from tfray.ops.arrays.join_ops import concat, split, stack
from tfray.ops.arrays.layout_ops import pad
from tfray.ops.arrays.shape_ops import cast, rank, reshape, shape, size
from tfray.ops.arrays.source_ops import placeholder
from tfray.ops.math.arithmetic_ops import exp
from tfray.ops.math.comparison_ops import equal
from tfray.ops.math.reduction_ops import reduce_sum
from tfray.ops.math.rounding_ops import floormod
from tfray.ops.math.segment_ops import unsorted_segment_sum
from tfray.ops.math.transcendental_ops import log1p, sigmoid, tanh

Composition = Callable[..., Tensor | Sequence[Tensor]]
_COMPOSITIONS: Final[dict[str, Composition]] = {}


def add_composed(body: Any, op: Operation) -> None:
    """Add the nodes of an operation that is composed of others. The one of its name returns what it returns."""
    scratch = Graph()
    with scratch.as_default(), scratch.name_scope(f"{op.name}/parts/"), scratch.device(op.device or None):
        inputs = [placeholder(tensor.dtype, tensor.shape) for tensor in op.inputs]
        found = _COMPOSITIONS[op.type](op, *inputs)
        outputs = [found] if isinstance(found, Tensor) else list(found)
    body.texts.update(zip(inputs, map(body.text, op.inputs), strict=True))
    taken = {tensor.op for tensor in inputs}
    for part in scratch.get_operations():
        if part not in taken:
            body.add(part)
    kinds = [tensor.dtype for tensor in outputs]
    there, attrs = ("Identity", {"T": kinds[0]}) if len(outputs) == 1 else ("IdentityN", {"T": kinds})
    body.node(op, there, [body.text(tensor) for tensor in outputs], attrs)
    body.give(op, there, attrs)


def _composed(*types: str) -> Callable[[Composition], Composition]:
    def declare(function: Composition) -> Composition:
        _COMPOSITIONS.update(dict.fromkeys(types, function))
        return function

    return declare


# -- sums and what repeats -----------------------------------------------------------------------------


@_composed("SumToShape")
def _sum_to_shape(op: Operation, x: Tensor, sizes: Tensor) -> Tensor:
    """A dimension that is 1 in the end is summed over; so are those that are not there in the end."""
    missing = fill(reshape(rank(x) - size(sizes), [1]), cast(1, sizes.dtype))
    ended = equal(concat([missing, sizes], 0), cast(1, sizes.dtype))
    return reshape(reduce_sum(x, reshape(where(ended), [-1])), sizes)


@_composed("ExpandReduced")
def _expand_reduced(op: Operation, reduced: Tensor, sizes: Tensor, axis: Tensor) -> Tensor:
    count = size(sizes)
    axes = reshape(floormod(cast(axis, dtypes.int32), count), [-1])
    is_reduced = reduce_sum(one_hot(axes, count, 1, 0), 0) > 0
    return broadcast_to(reshape(reduced, where(is_reduced, ones_like(sizes), sizes)), sizes)


@_composed("KeepWhere")
def _keep_where(op: Operation, condition: Tensor, x: Tensor) -> Tensor:
    chosen, zeros = op.attrs["chosen"], zeros_like(x)
    return where(condition, x, zeros) if chosen else where(condition, zeros, x)


@_composed("TileGrad")
def _tile_grad(op: Operation, dy: Tensor, multiples: Tensor, sizes: Tensor) -> Tensor:
    parts = reshape(stack([cast(multiples, dtypes.int32), cast(sizes, dtypes.int32)], 1), [-1])
    return reshape(reduce_sum(reshape(dy, parts), range_(0, size(parts), 2)), sizes)


@_composed("SliceGrad")
def _slice_grad(op: Operation, dy: Tensor, sizes: Tensor, begin: Tensor) -> Tensor:
    begin = cast(begin, dtypes.int32)
    return pad(dy, stack([begin, cast(sizes, dtypes.int32) - begin - shape(dy)], 1))


@_composed("GatherGrad")
def _gather_grad(op: Operation, dy: Tensor, indices: Tensor, sizes: Tensor) -> Tensor:
    if op.attrs["axis"] or op.attrs["batch_dims"]:
        raise UnimplementedError(f"GatherGrad {op.name!r}: only that of axis 0 is composed of TensorFlow's operations")
    sizes = cast(sizes, dtypes.int32)
    rows = reshape(dy, concat([reshape(size(indices), [1]), sizes[1:]], 0))
    return unsorted_segment_sum(rows, reshape(indices, [-1]), sizes[0])


@_composed("ReversedAxes")
def _reversed_axes(op: Operation, x: Tensor) -> Tensor:
    return range_(rank(x) - 1, -1, -1)


@_composed("SwappedAxes")
def _swapped_axes(op: Operation, x: Tensor) -> Tensor:
    count = rank(x)
    return concat([range_(count - 2), stack([count - 1, count - 2])], 0)


# -- functions and their gradients ---------------------------------------------------------------------


@_composed("SoftmaxGrad")
def _softmax_grad(op: Operation, dy: Tensor, y: Tensor) -> Tensor:
    return (dy - reduce_sum(dy * y, -1, keep_dims=True)) * y


@_composed("LogSoftmaxGrad")
def _log_softmax_grad(op: Operation, dy: Tensor, y: Tensor) -> Tensor:
    return dy - exp(y) * reduce_sum(dy, -1, keep_dims=True)


@_composed("SigmoidCrossEntropyWithLogits")
def _sigmoid_cross_entropy(op: Operation, logits: Tensor, labels: Tensor) -> Tensor:
    is_positive, zeros = logits >= 0, zeros_like(logits)
    return where(is_positive, logits, zeros) - logits * labels + log1p(exp(where(is_positive, -logits, logits)))


@_composed("LSTMGates")
def _lstm_gates(op: Operation, projected: Tensor, bias: Tensor, cell: Tensor) -> list[Tensor]:
    i, j, f, o = split(projected + bias, 4, 1)
    i, j, f, o = sigmoid(i), tanh(j), sigmoid(f + op.attrs["forget_bias"]), sigmoid(o)
    new_cell = cell * f + i * j
    return [new_cell, tanh(new_cell) * o, concat([i, j, f, o], 1)]


@_composed("LSTMGatesGrad")
def _lstm_gates_grad(
    op: Operation, gates: Tensor, cell: Tensor, new_cell: Tensor, d_cell: Tensor, d_output: Tensor
) -> list[Tensor]:
    i, j, f, o = split(gates, 4, 1)
    squashed = tanh(new_cell)
    d_inner = d_output * o * (1 - squashed * squashed) + d_cell
    d_gates = [d_inner * j, d_inner * i, d_inner * cell, d_output * squashed]
    slopes = [i * (1 - i), 1 - j * j, f * (1 - f), o * (1 - o)]
    return [concat([d_gate * slope for d_gate, slope in zip(d_gates, slopes, strict=True)], 1), d_inner * f]


EXPORTS: Final[dict[str, Callable[[Any, Operation], None]]] = dict.fromkeys(_COMPOSITIONS, add_composed)
"""What adds the nodes of an operation, by its type."""
