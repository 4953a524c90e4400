"""Operations that TensorFlow has no type for, as several that it has.

tfray keeps the operation itself beside them (see `Body.keep`): it reads again what it was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from tfray.errors import UnimplementedError
from tfray.exchange.exports import Body, export
from tfray.framework import dtypes
from tfray.framework.constant_value import constant_value
from tfray.framework.graph import Graph, Operation, Tensor
from tfray.ops.arrays.broadcast_ops import broadcast_to, ones, ones_like, where, zeros_like
from tfray.ops.arrays.construction_ops import range_
from tfray.ops.arrays.gather_ops import gather, scatter_nd
from tfray.ops.arrays.join_ops import concat, split, stack
from tfray.ops.arrays.layout_ops import pad, reverse
from tfray.ops.arrays.partition_ops import dynamic_partition, dynamic_stitch, unique
from tfray.ops.arrays.shape_ops import cast, expand_dims, rank, reshape, shape, size, transpose
from tfray.ops.arrays.source_ops import placeholder
from tfray.ops.image.image_files import JPEG_BEGIN
from tfray.ops.math.arithmetic_ops import abs as absolute
from tfray.ops.math.arithmetic_ops import exp
from tfray.ops.math.comparison_ops import equal, is_finite, not_equal
from tfray.ops.math.linalg_ops import matmul
from tfray.ops.math.reduction_ops import reduce_all, reduce_max, reduce_prod, reduce_sum
from tfray.ops.math.rounding_ops import clip_by_value, floormod
from tfray.ops.math.scan_ops import cumprod
from tfray.ops.math.search_ops import top_k
from tfray.ops.math.segment_ops import unsorted_segment_sum
from tfray.ops.math.sorting_ops import searchsorted, unravel_index
from tfray.ops.math.transcendental_ops import log1p, sigmoid, tanh
from tfray.ops.nn.activation_ops import relu
from tfray.ops.strings.string_ops import substr

Composition = Callable[..., Sequence[Tensor]]

COMPOSED: Final[set[str]] = set()
"""The types that have a composition."""


def composed(*types: str) -> Callable[[Composition], Composition]:
    """Decorator: how operations of these types are made of others: of the operation and tensors like its inputs."""

    def declare(function: Composition) -> Composition:
        def write(body: Body, op: Operation) -> None:
            _write(body, op, function)

        COMPOSED.update(types)
        export(*types)(write)
        return function

    return declare


def _write(body: Body, op: Operation, function: Composition) -> None:
    inputs, outputs = _made(op, function, op.name)
    scratch = outputs[0].graph
    attempt = 0
    while any(part.name in body.taken for part in scratch.get_operations()):
        attempt += 1
        inputs, outputs = _made(op, function, f"{op.name}_{attempt}")
        scratch = outputs[0].graph
    body.taken |= {part.name for part in scratch.get_operations()}
    for given, tensor in zip(inputs, op.inputs, strict=True):
        body.texts[given] = body.text(tensor)
    given_ops = {tensor.op for tensor in inputs}
    for part in scratch.get_operations():
        if part not in given_ops:
            body.add_part(part)
    texts = [body.text(tensor) for tensor in outputs]
    kinds = [tensor.dtype for tensor in outputs]
    there = "Identity" if len(outputs) == 1 else "IdentityN"
    attrs: dict[str, Any] = {"T": kinds[0] if len(outputs) == 1 else kinds}
    made = body.made(op, there, texts, **attrs)
    body.keep(op, made)


def _made(op: Operation, function: Composition, scope: str) -> tuple[list[Tensor], list[Tensor]]:
    """Inputs and outputs of what an operation is made of, in a graph of its own, below a name."""
    scratch = Graph()
    with scratch.as_default(), scratch.device(op.device or None), scratch.name_scope(f"{scope}/"):
        inputs = [placeholder(tensor.dtype, tensor.shape, name="input") for tensor in op.inputs]
        return inputs, list(function(op, *inputs))


def _need(condition: bool, op: Operation) -> None:
    if not condition:
        raise UnimplementedError(f"{op.name!r} has no counterpart for shapes that are not known")


# -- shapes --------------------------------------------------------------------------------------------


def _ints(tensor: Tensor) -> Tensor:
    return reshape(cast(tensor, dtypes.int32), [-1])


@composed("ReversedAxes")
def _reversed_axes(op: Operation, x: Tensor) -> Sequence[Tensor]:
    return [range_(rank(x) - 1, -1, -1)]


@composed("SwappedAxes")
def _swapped_axes(op: Operation, x: Tensor) -> Sequence[Tensor]:
    return [concat([range_(rank(x) - 2), [rank(x) - 1, rank(x) - 2]], 0)]


@composed("SequenceMask")
def _sequence_mask(op: Operation, lengths: Tensor, maxlen: Tensor) -> Sequence[Tensor]:
    known = constant_value(op.inputs[1])
    if known is not None and known < 0:  # as many as the longest row has
        maxlen = reduce_max(concat([[0], cast(reshape(lengths, [-1]), "int32")], 0))
    numbers = range_(cast(maxlen, lengths.dtype))
    return [cast(expand_dims(lengths, -1) > numbers, op.outputs[0].dtype)]


@composed("IsJpeg")
def _is_jpeg(op: Operation, contents: Tensor) -> Sequence[Tensor]:
    return [equal(substr(contents, 0, len(JPEG_BEGIN)), JPEG_BEGIN)]


# -- sums that gradients need --------------------------------------------------------------------------


@composed("ExpandReduced")
def _expand_reduced(op: Operation, reduced: Tensor, sizes: Tensor, axis: Tensor) -> Sequence[Tensor]:
    full, axes = _ints(sizes), _ints(axis)
    axes = floormod(axes + size(full), size(full))
    kept = dynamic_stitch([range_(size(full)), axes], [full, ones_like(axes)])
    return [broadcast_to(reshape(reduced, kept), full)]


@composed("SumToShape")
def _sum_to_shape(op: Operation, x: Tensor, wanted: Tensor) -> Sequence[Tensor]:
    target, here = _ints(wanted), shape(x)
    padded = concat([ones([size(here) - size(target)], dtypes.int32), target], 0)
    axes = reshape(where(not_equal(here, padded)), [-1])
    return [reshape(reduce_sum(x, cast(axes, dtypes.int32)), target)]


@composed("SliceGrad")
def _slice_grad(op: Operation, dy: Tensor, sizes: Tensor, begin: Tensor) -> Sequence[Tensor]:
    before = _ints(begin)
    return [pad(dy, stack([before, _ints(sizes) - before - shape(dy)], 1))]


@composed("TileGrad")
def _tile_grad(op: Operation, dy: Tensor, multiples: Tensor, sizes: Tensor) -> Sequence[Tensor]:
    full = _ints(sizes)
    between = reshape(stack([_ints(multiples), full], 1), [-1])
    return [reshape(reduce_sum(reshape(dy, between), range_(0, size(between), 2)), full)]


@composed("GatherGrad")
def _gather_grad(op: Operation, dy: Tensor, indices: Tensor, sizes: Tensor) -> Sequence[Tensor]:
    axis, full = op.attrs["axis"], _ints(sizes)
    _need(op.attrs["batch_dims"] == 0 and axis >= 0, op)
    outer, inner = reduce_prod(full[:axis]), reduce_prod(full[axis + 1 :])
    rows = transpose(reshape(dy, stack([outer, size(indices), inner])), [1, 0, 2])
    summed = unsorted_segment_sum(rows, reshape(indices, [-1]), full[axis])
    return [reshape(transpose(summed, [1, 0, 2]), full)]


@composed("SpreadSegments")
def _spread_segments(op: Operation, values: Tensor, ids: Tensor) -> Sequence[Tensor]:
    return [gather(values, ids)]


@composed("DynamicPartitionGrad")
def _dynamic_partition_grad(op: Operation, partitions: Tensor, *parts: Tensor) -> Sequence[Tensor]:
    places = dynamic_partition(range_(size(partitions)), reshape(partitions, [-1]), len(parts))
    rows = dynamic_stitch(places, parts)
    return [reshape(rows, concat([shape(partitions), shape(rows)[1:]], 0))]


@composed("TakeAlongLast")
def _take_along_last(op: Operation, x: Tensor, indices: Tensor) -> Sequence[Tensor]:
    _need(x.shape.rank is not None, op)
    return [gather(x, indices, axis=-1, batch_dims=len(x.shape) - 1)]


@composed("PutAlongLast")
def _put_along_last(op: Operation, values: Tensor, indices: Tensor, sizes: Tensor) -> Sequence[Tensor]:
    full = _ints(sizes)
    flat = reshape(cast(indices, dtypes.int32), stack([-1, shape(indices)[-1]]))
    rows = zeros_like(flat) + expand_dims(range_(shape(flat)[0]), 1)
    pairs = stack([reshape(rows, [-1]), reshape(flat, [-1])], 1)
    put = scatter_nd(pairs, reshape(values, [-1]), stack([shape(flat)[0], full[-1]]))
    return [reshape(put, full)]


@composed("DistinctCoordinates")
def _distinct_coordinates(op: Operation, indices: Tensor, sizes: Tensor) -> Sequence[Tensor]:
    places = reduce_sum(indices * cumprod(sizes, exclusive=True, reverse=True), 1)
    distinct = reverse(unique(top_k(places, size(places))[0]).y, [0])
    return [transpose(unravel_index(distinct, sizes), [1, 0]), searchsorted(distinct, places, out_type=dtypes.int64)]


@composed("ShardProducts")
def _shard_products(op: Operation, inputs: Tensor, examples: Tensor, rows: Tensor) -> Sequence[Tensor]:
    count = size(examples)
    pairs = reduce_sum(gather(inputs, examples) * rows[:count], 1)
    return [pairs, matmul(rows[count:], inputs, transpose_b=True)]


# -- elements ------------------------------------------------------------------------------------------


@composed("SoftmaxGrad")
def _softmax_grad(op: Operation, d_y: Tensor, y: Tensor) -> Sequence[Tensor]:
    return [(d_y - reduce_sum(d_y * y, -1, True)) * y]


@composed("LogSoftmaxGrad")
def _log_softmax_grad(op: Operation, d_y: Tensor, y: Tensor) -> Sequence[Tensor]:
    return [d_y - exp(y) * reduce_sum(d_y, -1, True)]


@composed("SigmoidCrossEntropyWithLogits")
def _sigmoid_cross_entropy(op: Operation, logits: Tensor, labels: Tensor) -> Sequence[Tensor]:
    return [relu(logits) - logits * labels + log1p(exp(-absolute(logits)))]


@composed("SaturateCast")
def _saturate_cast(op: Operation, value: Tensor) -> Sequence[Tensor]:
    here, there = value.dtype, op.outputs[0].dtype
    low, high = max(here.min, there.min), min(here.max, there.max)
    return [cast(clip_by_value(value, here.numpy.type(low), here.numpy.type(high)), there)]


@composed("AllFinite")
def _all_finite(op: Operation, value: Tensor) -> Sequence[Tensor]:
    return [reduce_all(is_finite(value))]


@composed("KeepWhere")
def _keep_where(op: Operation, condition: Tensor, x: Tensor) -> Sequence[Tensor]:
    nothing = zeros_like(x)
    return [where(condition, x, nothing) if op.attrs["chosen"] else where(condition, nothing, x)]


@composed("Sort")
def _sort(op: Operation, values: Tensor) -> Sequence[Tensor]:
    return [_ordered(op, values)[0]]


@composed("ArgSort")
def _arg_sort(op: Operation, values: Tensor) -> Sequence[Tensor]:
    return [_ordered(op, values)[1]]


def _ordered(op: Operation, values: Tensor) -> tuple[Tensor, Tensor]:
    _need(values.dtype.is_floating or op.attrs["descending"], op)
    count = shape(values)[-1]
    if op.attrs["descending"]:
        found = top_k(values, count)
        return found[0], found[1]
    found = top_k(-values, count)
    return -found[0], found[1]


# -- recurrent cells -----------------------------------------------------------------------------------


@composed("LSTMGates")
def _lstm_gates(op: Operation, projected: Tensor, bias: Tensor, cell: Tensor) -> Sequence[Tensor]:
    i, j, f, o = split(projected + bias, 4, 1)
    i, j, f, o = sigmoid(i), tanh(j), sigmoid(f + op.attrs["forget_bias"]), sigmoid(o)
    new_cell = cell * f + i * j
    return [new_cell, tanh(new_cell) * o, concat([i, j, f, o], 1)]


@composed("LSTMGatesGrad")
def _lstm_gates_grad(
    op: Operation, gates: Tensor, cell: Tensor, new_cell: Tensor, d_cell: Tensor, d_output: Tensor
) -> Sequence[Tensor]:
    i, j, f, o = split(gates, 4, 1)
    squashed = tanh(new_cell)
    d_inner = d_cell + d_output * o * (1 - squashed * squashed)
    d_gates = [
        d_inner * j * i * (1 - i),
        d_inner * i * (1 - j * j),
        d_inner * cell * f * (1 - f),
        d_output * squashed * o * (1 - o),
    ]
    return [concat(d_gates, 1), d_inner * f]
