"""How operators on arrays, and the elementwise ones that differ in more than names, become operations of tfray."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tfray.framework import dtypes
from tfray.framework.constant_value import constant_value
from tfray.framework.convert import constant_tensor
from tfray.framework.graph import Tensor
from tfray.onnx.onnx_node import LOADS, Node, loads, number
from tfray.onnx.onnx_types import dtype_of
from tfray.ops.arrays import array_ops, tensor_scatter_ops
from tfray.ops.arrays.broadcast_ops import where_v2
from tfray.ops.math import math_ops, sorting_ops
from tfray.ops.nn import cross_entropy_ops
from tfray.ops.strings.string_number_ops import as_string, string_to_number

# -- element by element --------------------------------------------------------------------------------


def _functions(**functions: Callable[..., Any]) -> None:
    """Declare operators as functions of their inputs: ``function(node, *inputs)``."""
    LOADS.update((("", name), functools.partial(_applied, function)) for name, function in functions.items())


def _applied(function: Callable[..., Any], node: Node) -> Any:
    return function(node, *(node.input(index) for index in range(len(node.inputs))))


def _folded(function: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Any]:
    """An operator of any number of inputs."""
    return lambda node, *inputs: functools.reduce(function, inputs)


def _div(node: Node, x: Tensor, y: Tensor) -> Tensor:
    return math_ops.truncatediv(x, y) if x.dtype.is_integer else math_ops.divide(x, y)


def _mod(node: Node, x: Tensor, y: Tensor) -> Tensor:
    return math_ops.truncatemod(x, y) if node.attr("fmod") else math_ops.floormod(x, y)


def _clip(node: Node) -> Tensor:
    value = node.input(0)
    least, most = node.arg("min"), node.arg("max")
    if least is not None:
        value = math_ops.maximum(value, _like(least, value))
    return value if most is None else math_ops.minimum(value, _like(most, value))


def _like(value: Any, tensor: Tensor) -> Tensor:
    return value if isinstance(value, Tensor) else number(value, tensor)


def _pow(node: Node, x: Tensor, y: Tensor) -> Tensor:
    wide = y.dtype if y.dtype.is_floating and x.dtype.is_integer else x.dtype
    return array_ops.cast(math_ops.pow(array_ops.cast(x, wide), array_ops.cast(y, wide)), x.dtype)


def _is_inf(node: Node, x: Tensor) -> Tensor:
    infinite = math_ops.is_inf(x)
    infinite = infinite if node.attr("detect_negative") else math_ops.logical_and(infinite, x > 0)
    return infinite if node.attr("detect_positive") else math_ops.logical_and(infinite, x < 0)


def _bit_shift(node: Node, x: Tensor, y: Tensor) -> Tensor:
    return math_ops.left_shift(x, y) if node.attr("direction") == "LEFT" else math_ops.right_shift(x, y)


def _cast(node: Node, x: Tensor) -> Tensor:
    return _as_dtype(x, dtype_of(node.attr("to")))


def _as_dtype(x: Tensor, dtype: dtypes.DType) -> Tensor:
    if x.dtype is dtype:
        return array_ops.identity(x)
    if x.dtype is dtypes.string:
        wide = dtype if dtype in (dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64) else dtypes.float64
        return array_ops.cast(string_to_number(x, wide), dtype)
    return as_string(x) if dtype is dtypes.string else array_ops.cast(x, dtype)


_functions(
    BitShift=_bit_shift,
    Cast=_cast,
    CastLike=lambda node, x, like: _as_dtype(x, like.dtype),
    Div=_div,
    IsInf=_is_inf,
    Max=_folded(math_ops.maximum),
    Mean=lambda node, *inputs: functools.reduce(math_ops.add, inputs) / len(inputs),
    Min=_folded(math_ops.minimum),
    Mod=_mod,
    Pow=_pow,
    PRelu=lambda node, x, slope: where_v2(x < 0, slope * x, x),
    Sum=_folded(math_ops.add),
    Where=lambda node, condition, x, y: where_v2(condition, x, y),
    Xor=lambda node, x, y: math_ops.not_equal(x, y),
)
LOADS["", "Clip"] = _clip


@loads("Dropout")
def _dropout(node: Node) -> list[Tensor]:
    training = node.optional(2)
    if training is not None and node.value(training, "training_mode").any():
        raise node.refuse("training_mode")
    return [array_ops.identity(node.input(0)), array_ops.ones_like(node.input(0), dtypes.bool_)]


def _per_axis(node: Node, vector: Tensor, rank: int) -> Tensor:
    """A scalar as it is, a vector along the axis that the node names."""
    axis = node.attr("axis", 1) % max(rank, 1)
    return vector if vector.shape.rank == 0 else array_ops.reshape(vector, [-1, *[1] * (rank - 1 - axis)])


@loads("QuantizeLinear", "DequantizeLinear")
def _quantized(node: Node) -> Tensor:
    if node.attr("block_size", 0):
        raise node.refuse("blocks")
    x, rank = node.input(0), node.rank(node.input(0))
    scale, zero = _per_axis(node, node.input(1), rank), node.optional(2)
    if node.operator == "DequantizeLinear":
        wide = array_ops.cast(x, scale.dtype)
        return (wide if zero is None else wide - array_ops.cast(_per_axis(node, zero, rank), scale.dtype)) * scale
    target = zero.dtype if zero is not None else dtype_of(node.attr("output_dtype", 0) or 2)
    steps = math_ops.rint(array_ops.cast(x, scale.dtype) / scale)
    steps = steps if zero is None else steps + array_ops.cast(_per_axis(node, zero, rank), scale.dtype)
    least, most = number(target.min, steps), number(target.max, steps)
    return array_ops.cast(math_ops.minimum(math_ops.maximum(steps, least), most), target)


# -- constants and shapes ------------------------------------------------------------------------------


@loads("Constant")
def _constant(node: Node) -> Tensor:
    kinds = {"value_float": np.float32, "value_floats": np.float32, "value_int": np.int64, "value_ints": np.int64,
             "value_string": object, "value_strings": object}  # fmt: skip
    value = node.attr("value")
    for name, kind in kinds.items():
        given = node.attr(name)
        if given is not None:
            value = np.asarray(given.encode() if isinstance(given, str) else given, kind)
    if value is None:
        raise ValueError("it has no value")
    return constant_tensor(np.asarray(value))


@loads("ConstantOfShape")
def _constant_of_shape(node: Node) -> Tensor:
    value = node.attr("value", np.zeros(1, np.float32))
    return array_ops.fill(node.input(0), constant_tensor(np.asarray(value).reshape(())))


@loads("Shape")
def _shape(node: Node) -> Tensor:
    sizes = array_ops.shape(node.input(0), out_type=dtypes.int64)
    start, end = node.attr("start", 0), node.attr("end")
    return sizes[start:end] if start or end is not None else sizes


@loads("Size")
def _size(node: Node) -> Tensor:
    return array_ops.size(node.input(0), out_type=dtypes.int64)


@loads("Reshape")
def _reshape(node: Node) -> Tensor:
    x, shape = node.input(0), node.input(1)
    if node.attr("allowzero", 0):
        return array_ops.reshape(x, shape)
    known, rank = constant_value(shape), shape.shape.num_elements()
    if rank is None or (known is not None and 0 not in known):
        return array_ops.reshape(x, shape)
    # A 0 stands for the size that is there. Behind the last axis of x there can be none.
    there = array_ops.shape(x, out_type=dtypes.int64)[:rank]
    there = array_ops.concat([there, array_ops.ones([rank - array_ops.size(there)], dtypes.int64)], 0)
    return array_ops.reshape(x, where_v2(math_ops.equal(shape, 0), there, shape))


@loads("Flatten")
def _flatten(node: Node) -> Tensor:
    return flattened(node, node.input(0), node.attr("axis"))


def flattened(node: Node, x: Tensor, axis: int) -> Tensor:
    """A tensor as a matrix whose rows run over the axes before `axis`."""
    axis = axis + node.rank(x) if axis < 0 else axis
    if axis == 1 and x.shape.rank is not None and x.shape[1:].is_fully_defined():
        return array_ops.reshape(x, [-1, x.shape[1:].num_elements() or 0])
    sizes = array_ops.shape(x)
    return array_ops.reshape(
        x, array_ops.stack([math_ops.reduce_prod(sizes[:axis]), math_ops.reduce_prod(sizes[axis:])])
    )


@loads("Transpose")
def _transpose(node: Node) -> Tensor:
    return array_ops.transpose(node.input(0), node.attr("perm"))


@loads("Squeeze")
def _squeeze(node: Node) -> Tensor:
    axes = node.known("axes")
    return array_ops.squeeze(node.input(0), None if axes is None else np.ravel(axes).tolist())


@loads("Unsqueeze")
def _unsqueeze(node: Node) -> Tensor:
    x = node.input(0)
    axes = np.ravel(node.needed("axes")).tolist()
    rank = node.rank(x) + len(axes) if min(axes) < 0 else 0
    for axis in sorted(axis + rank if axis < 0 else axis for axis in axes):
        x = array_ops.expand_dims(x, axis)
    return x


@loads("Expand")
def _expand(node: Node) -> Tensor:
    x, shape = node.input(0), node.input(1)
    return array_ops.broadcast_to(
        x, array_ops.broadcast_dynamic_shape(array_ops.shape(x, out_type=dtypes.int64), shape)
    )


_functions(
    Concat=lambda node, *parts: array_ops.concat(list(parts), node.attr("axis")),
    Tile=lambda node, x, repeats: array_ops.tile(x, repeats),
    NonZero=lambda node, x: array_ops.transpose(array_ops.where(math_ops.not_equal(x, array_ops.zeros_like(x)))),
)


@loads("Range")
def _range(node: Node) -> Tensor:
    start, limit, step = (array_ops.reshape(node.input(index), []) for index in range(3))
    return array_ops.range(start, limit, step)


@loads("Pad")
def _pad(node: Node) -> Tensor:
    x, pads, mode = node.input(0), node.arg("pads"), node.attr("mode")
    if mode not in ("constant", "reflect", "edge"):
        raise node.refuse(f"mode={mode!r}")
    axes = node.known("axes") if "axes" in node.declared.inputs else None
    value = node.arg("constant_value") if "constant_value" in node.declared.inputs else node.attr("value")
    pads = pads if isinstance(pads, Tensor) else number(pads, dtypes.int64)
    pairs = array_ops.transpose(array_ops.reshape(pads, [2, -1]))
    if axes is not None:
        rank = node.rank(x)
        places = np.ravel(axes) % rank
        pairs = array_ops.scatter_nd(number(places.reshape(-1, 1), dtypes.int64), pairs, [rank, 2])
    if mode == "edge":
        return _edge_padded(x, np.asarray(node.value(pairs, "the padding")))
    known = constant_value(pairs)
    if known is not None and (known < 0).any():
        inner = tuple(slice(max(0, -b), -max(0, -e) or None) for b, e in known.tolist())
        x, pairs = x[inner], number(np.maximum(known, 0), dtypes.int64)
    filled = number(0, x) if value is None else array_ops.reshape(_like(value, x), [])
    return array_ops.pad(x, pairs, mode="REFLECT" if mode == "reflect" else "CONSTANT", constant_values=filled)


def _edge_padded(x: Tensor, pairs: Any) -> Tensor:
    for axis, (before, after) in enumerate(pairs.tolist()):
        if before or after:
            size = array_ops.shape(x)[axis]
            places = array_ops.range(-before, size + after)
            x = array_ops.gather(x, math_ops.minimum(math_ops.maximum(places, 0), size - 1), axis=axis)
    return x


# -- parts ---------------------------------------------------------------------------------------------


@loads("Slice")
def _slice(node: Node) -> Tensor:
    x = node.input(0)
    starts, ends, axes, steps = (node.arg(name) if name in (*node.declared.inputs, *node.declared.defaults) else None
                                 for name in ("starts", "ends", "axes", "steps"))  # fmt: skip
    count = starts.shape.num_elements() if isinstance(starts, Tensor) else len(starts or ())
    if count is None:
        raise node.refuse("a number of axes that is known only when a step runs")
    places = list(range(count)) if axes is None else np.ravel(node.needed("axes")).tolist()
    rank = node.rank(x) if min(places, default=0) < 0 else None
    places = [place + (rank or 0) if place < 0 else place for place in places]
    key: list[Any] = [slice(None)] * (max(places, default=-1) + 1)
    columns = [_entries(column, count) for column in (starts, ends, steps)]
    for place, start, end, step in zip(places, *columns, strict=True):
        step = 1 if step is None else step
        if isinstance(step, int) and step < 0 and isinstance(end, int) and end <= -(1 << 31):
            end = None  # before the first element
        key[place] = slice(start, end, step)
    return x[tuple(key)] if key else array_ops.identity(x)


def _entries(vector: Any, count: int) -> list[Any]:
    """The numbers of a vector: integers where they are known, tensors otherwise, None if there is no vector."""
    if vector is None:
        return [None] * count
    known = constant_value(vector) if isinstance(vector, Tensor) else np.asarray(vector)
    return [vector[i] for i in range(count)] if known is None else np.ravel(known).astype(int).tolist()


@loads("Split")
def _split(node: Node) -> list[Tensor]:
    x, axis = node.input(0), node.attr("axis")
    sizes = node.arg("split")
    if sizes is not None:
        known = _entries(sizes, node.wanted)
        whole = all(isinstance(size, int) for size in known)
        return list(array_ops.split(x, known if whole else sizes, axis, num=node.wanted))
    size = x.shape.sizes[axis] if x.shape.rank is not None else None
    if size is not None and size % node.wanted:
        part = -(-size // node.wanted)
        return list(array_ops.split(x, [part] * (node.wanted - 1) + [size - part * (node.wanted - 1)], axis))
    return list(array_ops.split(x, node.wanted, axis))


def counted_from_front(indices: Tensor, size: Any) -> Tensor:
    """Indices of which negative ones count from the end."""
    known = constant_value(indices)
    if known is not None and (np.asarray(known) >= 0).all():
        return indices
    return where_v2(indices < 0, indices + array_ops.cast(size, indices.dtype), indices)


@loads("Gather")
def _gather(node: Node) -> Tensor:
    x, indices, axis = node.input(0), node.input(1), node.attr("axis")
    return array_ops.gather(x, counted_from_front(indices, array_ops.shape(x)[axis]), axis=axis)


def _depth(indices: Tensor) -> Any:
    """The number of coordinates of a place."""
    known = indices.shape.sizes[-1] if indices.shape.rank else None
    return array_ops.shape(indices)[-1] if known is None else known


@loads("GatherND")
def _gather_nd(node: Node) -> Tensor:
    x, indices, batch = node.input(0), node.input(1), node.attr("batch_dims", 0)
    indices = counted_from_front(indices, array_ops.shape(x)[batch : batch + _depth(indices)])
    if batch:
        sizes = array_ops.shape(indices, out_type=indices.dtype)
        grids = [_along(array_ops.range(sizes[axis]), axis, node.rank(indices)) for axis in range(batch)]
        whole = array_ops.concat([sizes[:-1], number([1], indices.dtype)], 0)
        indices = array_ops.concat([*(array_ops.broadcast_to(grid, whole) for grid in grids), indices], -1)
    return array_ops.gather_nd(x, indices)


def _along(vector: Tensor, axis: int, rank: int) -> Tensor:
    """A vector along an axis of a tensor of some rank."""
    return array_ops.reshape(vector, [-1 if each == axis else 1 for each in range(rank)])


def _coordinates(node: Node, indices: Tensor, axis: int, x: Tensor) -> Tensor:
    """The place of each element of a tensor: its own, but for the axis that the indices are about."""
    rank = node.rank(indices)
    axis = axis % rank
    indices = counted_from_front(indices, array_ops.shape(x)[axis])
    sizes = array_ops.shape(indices, out_type=indices.dtype)
    grids = [
        indices if each == axis else array_ops.broadcast_to(_along(array_ops.range(sizes[each]), each, rank), sizes)
        for each in range(rank)
    ]
    return array_ops.stack(grids, -1)


@loads("GatherElements")
def _gather_elements(node: Node) -> Tensor:
    x, indices = node.input(0), node.input(1)
    return array_ops.gather_nd(x, _coordinates(node, indices, node.attr("axis"), x))


_SCATTERS: Final = {
    "none": tensor_scatter_ops.tensor_scatter_update,
    "add": tensor_scatter_ops.tensor_scatter_add,
    "max": tensor_scatter_ops.tensor_scatter_max,
    "min": tensor_scatter_ops.tensor_scatter_min,
}


@loads("ScatterND", "ScatterElements", "Scatter")
def _scatter(node: Node) -> Tensor:
    x, indices, updates = (node.input(index) for index in range(3))
    reduction = node.attr("reduction", "none")
    if reduction not in _SCATTERS:
        raise node.refuse(f"reduction={reduction!r}")
    if node.operator == "ScatterND":
        indices = counted_from_front(indices, array_ops.shape(x)[: _depth(indices)])
    else:
        indices = _coordinates(node, indices, node.attr("axis"), x)
    return _SCATTERS[reduction](x, indices, updates)


@loads("OneHot")
def _one_hot(node: Node) -> Tensor:
    indices, depth, values = (node.input(index) for index in range(3))
    indices = indices if indices.dtype.is_integer else array_ops.cast(indices, dtypes.int64)
    depth = array_ops.cast(array_ops.reshape(depth, []), dtypes.int32)
    indices = counted_from_front(indices, depth)
    axis = node.attr("axis")
    axis = axis + node.rank(indices) + 1 if axis < -1 else axis
    return array_ops.one_hot(indices, depth, values[1], values[0], axis=axis)


@loads("EyeLike")
def _eye_like(node: Node) -> Tensor:
    x, number_ = node.input(0), node.attr("dtype")
    sizes = array_ops.shape(x)
    rows, columns = array_ops.range(sizes[0]), array_ops.range(sizes[1])
    diagonal = math_ops.equal(array_ops.expand_dims(rows, 1) + node.attr("k"), columns)
    return array_ops.cast(diagonal, x.dtype if number_ is None else dtype_of(number_))


@loads("Trilu")
def _trilu(node: Node) -> Tensor:
    x, k = node.input(0), node.optional(1)
    sizes = array_ops.shape(x, out_type=dtypes.int64)
    rows, columns = (array_ops.range(sizes[axis]) for axis in (-2, -1))
    reach = array_ops.expand_dims(rows, 1) + (0 if k is None else array_ops.reshape(k, []))
    kept = columns >= reach if node.attr("upper") else columns <= reach
    return where_v2(kept, x, array_ops.zeros_like(x))


@loads("ReverseSequence")
def _reverse_sequence(node: Node) -> Tensor:
    axes = {"seq_axis": node.attr("time_axis"), "batch_axis": node.attr("batch_axis")}
    return array_ops.reverse_sequence(node.input(0), node.input(1), **axes)


@loads("Unique")
def _unique(node: Node) -> list[Tensor | None]:
    if node.attr("axis") is not None or node.attr("sorted"):
        raise node.refuse("an axis, or an order")
    values, places, counts = array_ops.unique_with_counts(array_ops.reshape(node.input(0), [-1]), dtypes.int64)
    numbers = array_ops.range(array_ops.size(places, out_type=dtypes.int64))
    return [values, math_ops.unsorted_segment_min(numbers, places, array_ops.size(values)), places, counts]


# -- along axes ----------------------------------------------------------------------------------------


def _log_sum(x: Tensor, axes: Any, keep: bool) -> Tensor:
    return math_ops.log(math_ops.reduce_sum(x, axes, keep))


_REDUCTIONS: Final[dict[str, Callable[[Tensor, Any, bool], Tensor]]] = {
    "ReduceL1": lambda x, axes, keep: math_ops.reduce_sum(math_ops.abs(x), axes, keep),
    "ReduceL2": lambda x, axes, keep: math_ops.sqrt(math_ops.reduce_sum(math_ops.square(x), axes, keep)),
    "ReduceLogSum": _log_sum,
    "ReduceLogSumExp": math_ops.reduce_logsumexp,
    "ReduceMax": math_ops.reduce_max,
    "ReduceMean": math_ops.reduce_mean,
    "ReduceMin": math_ops.reduce_min,
    "ReduceProd": math_ops.reduce_prod,
    "ReduceSum": math_ops.reduce_sum,
    "ReduceSumSquare": lambda x, axes, keep: math_ops.reduce_sum(math_ops.square(x), axes, keep),
}


@loads(*_REDUCTIONS)
def _reduce(node: Node) -> Tensor:
    x, axes, keep = node.input(0), node.arg("axes"), bool(node.attr("keepdims"))
    known = constant_value(axes) if isinstance(axes, Tensor) else axes
    if known is not None or axes is None or axes.shape.num_elements() == 0:
        axes = None if known is None or not np.size(known) else np.ravel(known).tolist()
    if axes is None and node.attr("noop_with_empty_axes", 0):
        return array_ops.identity(x)
    if x.dtype is dtypes.bool_:
        return (
            math_ops.reduce_all(x, axes, keep) if node.operator == "ReduceMin" else math_ops.reduce_any(x, axes, keep)
        )
    return _REDUCTIONS[node.operator](x, axes, keep)


@loads("ArgMax", "ArgMin")
def _arg_max(node: Node) -> Tensor:
    x, axis = node.input(0), node.attr("axis")
    function = math_ops.argmax if node.operator == "ArgMax" else math_ops.argmin
    if node.attr("select_last_index", 0):
        found = array_ops.shape(x, out_type=dtypes.int64)[axis] - 1 - function(array_ops.reverse(x, [axis]), axis)
    else:
        found = function(x, axis)
    return array_ops.expand_dims(found, axis) if node.attr("keepdims") else found


@loads("Softmax", "LogSoftmax", "Hardmax")
def _softmax(node: Node) -> Tensor:
    x, axis = node.input(0), node.attr("axis")
    functions: dict[str, Callable[..., Tensor]] = {
        "Softmax": cross_entropy_ops.softmax,
        "LogSoftmax": cross_entropy_ops.log_softmax,
        "Hardmax": _hardmax,
    }
    function = functions[node.operator]
    if node.version < 13:  # over all axes from this one on
        flat = function(flattened(node, x, axis), axis=-1)
        return array_ops.reshape(flat, array_ops.shape(x))
    return function(x, axis=axis)


def _hardmax(x: Tensor, axis: int) -> Tensor:
    places = math_ops.argmax(x, axis)
    return array_ops.one_hot(places, array_ops.shape(x)[axis], axis=axis, dtype=x.dtype)


@loads("CumSum")
def _cumsum(node: Node) -> Tensor:
    axis = array_ops.reshape(array_ops.cast(node.input(1), dtypes.int32), [])
    return math_ops.cumsum(node.input(0), axis, bool(node.attr("exclusive")), bool(node.attr("reverse")))


@loads("TopK")
def _top_k(node: Node) -> list[Tensor]:
    x, k = node.input(0), node.arg("K") if "K" in node.declared.inputs else node.attr("k")
    count = array_ops.cast(array_ops.reshape(k, []), dtypes.int32) if isinstance(k, Tensor) else k
    rank = node.rank(x)
    axis, largest = node.attr("axis") % rank, node.attr("largest", 1)
    order = [*(each for each in range(rank) if each != axis), axis]
    moved = x if axis == rank - 1 else array_ops.transpose(x, order)
    if largest:
        values, places = math_ops.top_k(moved, count)
    else:
        places = sorting_ops.argsort(moved, stable=True)[..., :count]
        values = array_ops.gather(moved, places, axis=rank - 1, batch_dims=rank - 1)
    found = [values, array_ops.cast(places, dtypes.int64)]
    back: Sequence[int] = np.argsort(order).tolist()
    return found if axis == rank - 1 else [array_ops.transpose(each, back) for each in found]


# -- products ------------------------------------------------------------------------------------------


@loads("MatMul")
def _mat_mul(node: Node) -> Tensor:
    a, b = node.input(0), node.input(1)
    ranks = node.rank(a), node.rank(b)
    wide = array_ops.expand_dims(a, 0) if ranks[0] == 1 else a
    tall = array_ops.expand_dims(b, 1) if ranks[1] == 1 else b
    product = math_ops.matmul(wide, tall)
    gone = [axis for axis, rank in zip((-2, -1), ranks, strict=True) if rank == 1]
    return array_ops.squeeze(product, gone) if gone else product


@loads("Gemm")
def _gemm(node: Node) -> Tensor:
    a, b, c = node.input(0), node.input(1), node.optional(2)
    product = math_ops.matmul(a, b, transpose_a=bool(node.attr("transA")), transpose_b=bool(node.attr("transB")))
    alpha, beta = node.attr("alpha"), node.attr("beta")
    product = product if alpha == 1 else product * number(alpha, product)
    if c is None or beta == 0:
        return product
    return product + (c if beta == 1 else c * number(beta, c))
