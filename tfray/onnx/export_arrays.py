"""How operations on arrays, and the elementwise ones that differ in more than names, become nodes of ONNX."""

from __future__ import annotations

import ast
import functools
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tfray.errors import UnimplementedError
from tfray.framework import dtypes
from tfray.framework.graph import Operation, Tensor
from tfray.onnx.onnx_body import EXPORTS, Body, Order, Rule, exports
from tfray.ops.arrays.slice_ops import key_items

_END: Final = np.iinfo(np.int64).max
_START: Final = np.iinfo(np.int64).min

# -- formulas ------------------------------------------------------------------------------------------
# Operators of ONNX over the inputs x, y and z. A number is a constant of the dtype of x, and `index(x)` the input x as
# int64. Of two formulas the first is for floats, the second for whole numbers, of which Div rounds towards 0.

_ELEMENTWISE: Final[dict[str, str | tuple[str, str]]] = {
    "CheckNumerics": "x",
    "ClipByValue": "Max(Min(x, z), y)",
    "DivNoNan": "Where(Equal(y, 0), 0, Div(x, y))",
    "EnsureShape": "x",
    "Erfc": "Sub(1, Erf(x))",
    "Expm1": "Sub(Exp(x), 1)",
    "FloorDiv": ("Floor(Div(x, y))", "Div(Sub(x, Mod(x, y)), y)"),
    "FloorMod": ("Mod(Add(Mod(x, y, fmod=1), y), y, fmod=1)", "Mod(x, y)"),
    "IsFinite": "Not(Or(IsNaN(x), IsInf(x)))",
    "Log1p": "Log(Add(x, 1))",
    "Maximum": "Max(x, y)",
    "Minimum": "Min(x, y)",
    "MulNoNan": "Where(Equal(y, 0), 0, Mul(x, y))",
    "NotEqual": "Not(Equal(x, y))",
    "PlaceholderWithDefault": "x",
    "RealDiv": "Div(x, y)",
    "Relu6": "Clip(x, 0, 6)",
    "Round": ("Round(x)", "x"),
    "Rsqrt": "Reciprocal(Sqrt(x))",
    "Square": "Mul(x, x)",
    "StopGradient": "x",
    "SquaredDifference": "Pow(Sub(x, y), 2)",
    "TruncateDiv": ("Mul(Sign(Div(x, y)), Floor(Abs(Div(x, y))))", "Div(x, y)"),
    "TruncateMod": "Mod(x, y, fmod=1)",
    "Xdivy": "Where(Equal(x, 0), 0, Div(x, y))",
    "Xlogy": "Where(Equal(x, 0), 0, Mul(x, Log(y)))",
}

_WHOLE: Final[dict[str, str]] = {
    "BroadcastTo": "Expand(x, index(y))",
    "Fill": "Expand(y, index(x))",
    "GatherNd": "GatherND(x, index(y))",
    "L2Loss": "Mul(ReduceSumSquare(x, keepdims=0), 0.5)",
    "Range": "Range(x, y, z)",
    "Tile": "Tile(x, index(y))",
}


def _evaluated(term: Any, body: Body, op: Operation, values: Sequence[str]) -> str:
    """The value of a formula, or of a part of it."""
    if isinstance(term, ast.Constant):
        return body.constant(term.value, op.inputs[0].dtype)
    if isinstance(term, ast.Name):
        return values["xyz".index(term.id)]
    if term.func.id == "index":
        return body.index(op.inputs["xyz".index(term.args[0].id)])
    options = {keyword.arg: keyword.value.value for keyword in term.keywords}
    return body.emit(term.func.id, [_evaluated(each, body, op, values) for each in term.args], **options)


def _formula(texts: str | tuple[str, str], follows: bool) -> Rule:
    """The rule for a type that is a formula; it follows the order of the axes of what it takes if it is elementwise."""
    terms = [ast.parse(text, mode="eval").body for text in ([texts, texts] if isinstance(texts, str) else texts)]

    def rule(body: Body, op: Operation) -> None:
        values, order = body.followed(op.inputs, op.outputs[0].shape.rank if follows else None)
        term = terms[0] if op.inputs[0].dtype.is_floating else terms[1]
        body.put(op.outputs[0], _evaluated(term, body, op, values), order)

    return rule


EXPORTS.update((name, _formula(texts, True)) for name, texts in _ELEMENTWISE.items())
EXPORTS.update((name, _formula(text, False)) for name, text in _WHOLE.items())


@exports("AddN")
def _sum(body: Body, op: Operation) -> None:
    values, order = body.followed(op.inputs, op.outputs[0].shape.rank)
    if op.outputs[0].dtype.is_floating:
        total = body.emit("Sum", values)
    else:
        total = functools.reduce(lambda x, y: body.emit("Add", [x, y]), values)
    body.put(op.outputs[0], total, order)


@exports("Cast", "SaturateCast", "StringToNumber")
def _cast(body: Body, op: Operation) -> None:
    source, target = op.inputs[0].dtype, op.outputs[0].dtype
    (value,), order = body.followed(op.inputs, op.outputs[0].shape.rank)
    if op.type == "SaturateCast" and source.is_floating and target.is_integer:
        bounds = [body.constant(bound, source) for bound in (target.min, target.max)]
        # The greatest float may lie beyond the greatest whole number.
        beyond = body.emit("GreaterOrEqual", [value, bounds[1]])
        made = body.cast(body.emit("Clip", [value, *bounds]), source, target)
        value = body.emit("Where", [beyond, body.constant(target.max, target), made])
    elif op.type == "SaturateCast":
        raise UnimplementedError("it clips other than floats to whole numbers")
    else:
        value = body.cast(value, source, target)
    body.put(op.outputs[0], value, order)


@exports("Select")
def _select(body: Body, op: Operation) -> Any:
    condition, chosen, other = op.inputs
    rank = chosen.shape.rank
    if condition.shape.rank == 1 and rank != 1:
        if rank is None:
            raise UnimplementedError("a vector selects rows of tensors of unknown rank")
        rows = body.emit("Unsqueeze", [body.text(condition)], axes=list(range(1, rank)))
        return body.emit("Where", [rows, *body.texts([chosen, other])])
    values, order = body.followed(op.inputs, rank)
    body.put(op.outputs[0], body.emit("Where", values), order)
    return None


@exports("IdentityN", "Print")
def _passed(body: Body, op: Operation) -> list[str]:
    return body.texts(op.inputs[: len(op.outputs)])


# -- along axes ----------------------------------------------------------------------------------------


def _placed(axes: list[int], order: Order) -> list[int]:
    """Where axes of a tensor are in a value that has them in some order."""
    return axes if order is None else [order.index(axis) for axis in axes]


_REDUCTIONS: Final = {"All": "ReduceMin", "Any": "ReduceMax", "Max": "ReduceMax", "Mean": "ReduceMean",
                      "Min": "ReduceMin", "Prod": "ReduceProd", "Sum": "ReduceSum"}  # fmt: skip


@exports(*_REDUCTIONS)
def _reduce(body: Body, op: Operation) -> None:
    tensor, keep = op.inputs[0], bool(op.attrs["keep_dims"])
    axes = body.axes(op.inputs[1], tensor.shape.rank)
    order = body.native(tensor)
    value = body.text(tensor, order)
    is_bool = tensor.dtype is dtypes.bool_
    if axes:
        value = body.cast(value, dtypes.bool_, dtypes.int32) if is_bool else value
        value = body.emit(_REDUCTIONS[op.type], [value], axes=_placed(axes, order), keepdims=int(keep))
        value = body.cast(value, dtypes.int32, dtypes.bool_) if is_bool else value
    if order is not None and not keep:
        left = [axis for axis in order if axis not in axes]
        order = tuple(sorted(left).index(axis) for axis in left)
    body.put(op.outputs[0], value, order)


@exports("Softmax", "LogSoftmax")
def _softmax(body: Body, op: Operation) -> None:
    (tensor,) = op.inputs
    order = body.native(tensor)
    axis = -1 if order is None else order.index(len(order) - 1)
    body.put(op.outputs[0], body.emit(op.type, [body.text(tensor, order)], axis=axis), order)


@exports("ArgMax", "ArgMin")
def _arg_max(body: Body, op: Operation) -> str:
    (axis,) = body.axes(op.inputs[1], op.inputs[0].shape.rank)
    value = body.text(op.inputs[0])
    if op.inputs[0].dtype is dtypes.bool_:
        value = body.cast(value, dtypes.bool_, dtypes.int32)
    found = body.emit(op.type, [value], axis=axis, keepdims=0)
    return body.cast(found, dtypes.int64, op.outputs[0].dtype)


@exports("Cumsum")
def _cumsum(body: Body, op: Operation) -> str:
    flags = {name: int(op.attrs[name]) for name in ("exclusive", "reverse")}
    return body.emit("CumSum", body.texts(op.inputs), **flags)


@exports("TopKV2", "Sort", "ArgSort")
def _top(body: Body, op: Operation) -> list[str]:
    value = body.text(op.inputs[0])
    if op.type == "TopKV2":
        number, options = body.index(op.inputs[1]), {"sorted": int(op.attrs["sorted"])}
    else:
        number, options = _size(body, value, -1), {"largest": int(op.attrs["descending"])}
    taken, places = body.emit("TopK", [value, _vector(body, number)], 2, axis=-1, **options)
    places = body.cast(places, dtypes.int64, dtypes.int32)
    return {"TopKV2": [taken, places], "Sort": [taken], "ArgSort": [places]}[op.type]


@exports("ConcatV2", "ConcatV2ByAxis")
def _concat(body: Body, op: Operation) -> None:
    (axis,), tensors = _axis(body, op), op.inputs[op.type == "ConcatV2ByAxis" :]
    values, order = body.followed(tensors, op.outputs[0].shape.rank)
    body.put(op.outputs[0], body.emit("Concat", values, axis=_placed([axis], order)[0]), order)


def _axis(body: Body, op: Operation) -> list[int]:
    """The axis of an operation of which there is a variant that takes it as its first input."""
    rank = op.outputs[0].shape.rank
    if op.type.endswith("ByAxis"):
        return body.axes(op.inputs[0], rank)
    axes = np.ravel(op.attrs["axis"]).astype(int).tolist()
    return [axis + rank if axis < 0 and rank is not None else axis for axis in axes]


@exports("Pack")
def _pack(body: Body, op: Operation) -> str:
    axis = op.attrs["axis"]
    parts = [body.emit("Unsqueeze", [value], axes=[axis]) for value in body.texts(op.inputs)]
    return body.emit("Concat", parts, axis=axis)


@exports("Split", "SplitV", "SplitByAxis", "SplitVByAxis", "Unpack")
def _split(body: Body, op: Operation) -> list[str]:
    tensor = op.inputs[op.type.endswith("ByAxis")]
    (axis,) = _axis(body, op)
    count = len(op.outputs)
    size = tensor.shape.sizes[axis] if tensor.shape.rank is not None else None
    if op.type == "Unpack":
        axis = int(op.attrs["axis"])
        axis = axis + (tensor.shape.rank or 0) if axis < 0 else axis
        split = body.constant([1] * count)
    elif op.type.startswith("SplitV"):
        split = body.index(op.inputs[-1])
        known = body.known(op.inputs[-1])
        if known is not None and (known < 0).any():  # what is left
            rest = body.emit("Sub", [_size(body, body.text(tensor), axis), body.constant(known[known >= 0].sum())])
            split = body.emit("Where", [body.constant(known < 0), rest, split])
    elif size is not None:
        split = body.constant([size // count] * count)
    else:
        whole = body.emit("Div", [_size(body, body.text(tensor), axis), body.constant(count)])
        split = body.emit("Expand", [whole, body.constant([count])])
    made = body.emit("Split", [body.text(tensor), split], count, axis=axis)
    parts = [made] if count == 1 else made
    return [body.emit("Squeeze", [part], axes=[axis]) for part in parts] if op.type == "Unpack" else parts


# -- shapes and parts ----------------------------------------------------------------------------------


def _vector(body: Body, value: str) -> str:
    return body.emit("Reshape", [value, body.constant([-1])])


def _size(body: Body, value: str, axis: int) -> str:
    """The size of an axis: int64 scalar."""
    return body.emit("Gather", [body.sizes(value), body.constant(axis)], axis=0)


@exports("Shape", "Size", "Rank")
def _shape(body: Body, op: Operation) -> str:
    value = body.text(op.inputs[0])
    made = body.emit("Size", [value]) if op.type == "Size" else body.sizes(value)
    made = body.emit("Size", [made]) if op.type == "Rank" else made
    return body.cast(made, dtypes.int64, op.outputs[0].dtype)


@exports("Reshape")
def _reshape(body: Body, op: Operation) -> str:
    target = op.outputs[0].shape
    unknown = [] if target.rank is None else [size for size in target.sizes if size is None]
    known = body.known(op.inputs[1])
    if known is None and target.rank is not None and len(unknown) <= 1 and 0 not in target.sizes:
        sizes = body.constant([-1 if size is None else size for size in target.sizes], dtypes.int64)
    else:
        sizes = body.index(op.inputs[1])
    options = {"allowzero": 1} if known is not None and 0 in known else {}
    return body.emit("Reshape", [body.text(op.inputs[0]), sizes], **options)


@exports("Transpose")
def _transpose(body: Body, op: Operation) -> None:
    tensor, perm = op.inputs[0], np.ravel(body.needed(op.inputs[1])).tolist()
    for order, value in list(body.orders(tensor).items()):
        body.put(op.outputs[0], value, tuple(perm.index(axis) for axis in (order or range(len(perm)))))


@exports("ExpandDims")
def _expand_dims(body: Body, op: Operation) -> str:
    rank = op.inputs[0].shape.rank
    return body.emit(
        "Unsqueeze", [body.text(op.inputs[0])], axes=body.axes(op.inputs[1], None if rank is None else rank + 1)
    )


@exports("Squeeze")
def _squeeze(body: Body, op: Operation) -> str:
    axes, rank = [int(axis) for axis in op.attrs["axis"] or ()], op.inputs[0].shape.rank
    axes = [axis + rank if axis < 0 and rank is not None else axis for axis in axes]
    return body.emit("Squeeze", [body.text(op.inputs[0])], **({"axes": axes} if axes else {}))


@exports("BroadcastArgs")
def _broadcast_shapes(body: Body, op: Operation) -> str:
    ranks = [tensor.shape.num_elements() for tensor in op.inputs]
    if None in ranks:
        raise UnimplementedError("it broadcasts shapes of unknown rank")
    longest = max(rank or 0 for rank in ranks)
    first, second = (
        body.emit("Concat", [body.constant([1] * (longest - (rank or 0)), dtypes.int64), body.index(tensor)], axis=0)
        for rank, tensor in zip(ranks, op.inputs, strict=True)
    )
    made = body.emit("Where", [body.emit("Equal", [first, body.constant(1)]), second, first])
    return body.cast(made, dtypes.int64, op.outputs[0].dtype)


@exports("PadV2", "MirrorPad")
def _pad(body: Body, op: Operation) -> None:
    tensor = op.inputs[0]
    amounts = body.known(op.inputs[1])
    order = body.native(tensor) if amounts is not None else None
    if amounts is not None:
        rows = amounts if order is None else amounts[list(order)]
        pads = body.constant(rows.T.ravel(), dtypes.int64)
    else:
        pads = _vector(body, body.emit("Transpose", [body.index(op.inputs[1])], perm=[1, 0]))
    arguments: dict[str, Any] = {"mode": "constant"}
    if op.type == "PadV2":
        arguments["constant_value"] = body.text(op.inputs[2])
    elif op.attrs["mode"] == "REFLECT":
        arguments["mode"] = "reflect"
    else:
        raise UnimplementedError("ONNX does not pad symmetrically")
    body.put(op.outputs[0], body.emit("Pad", [body.text(tensor, order), pads], **arguments), order)


@exports("Slice")
def _slice(body: Body, op: Operation) -> str:
    tensor, begin, size = op.inputs
    if begin.shape.num_elements() == 0:
        return body.text(tensor)
    starts, counts = body.known(begin), body.known(size)
    if starts is not None and counts is not None:
        ends = [_END if n < 0 else first + n for first, n in zip(starts.tolist(), counts.tolist(), strict=True)]
        return body.emit("Slice", [body.text(tensor), body.index(begin), body.constant(ends, dtypes.int64)])
    whole = body.emit("Less", [body.index(size), body.constant(0)])
    end = body.emit("Add", [body.index(begin), body.index(size)])
    end = body.emit("Where", [whole, body.constant(_END), end])
    return body.emit("Slice", [body.text(tensor), body.index(begin), end])


@exports("StridedSlice")
def _strided_slice(body: Body, op: Operation) -> str:
    items = key_items(op.attrs["key"], op.inputs[1:])
    value, rank = body.text(op.inputs[0]), op.inputs[0].shape.rank
    given = sum(item is not None and item is not Ellipsis for item in items)
    if Ellipsis in items and rank is None and any(item is not Ellipsis for item in items[items.index(Ellipsis) :]):
        raise UnimplementedError("`...` stands for dimensions of unknown number")
    axis = place = 0
    parts: list[tuple[Any, ...]] = []
    single: list[tuple[int, Any]] = []
    new: list[int] = []
    for item in items:
        if item is Ellipsis:
            skipped = (rank or given) - given
            axis, place = axis + skipped, place + skipped
        elif item is None:
            new.append(place)
            place += 1
        elif isinstance(item, slice):
            if item != slice(None):
                step = 1 if item.step is None else item.step
                if not isinstance(step, int) and None in (item.start, item.stop):
                    raise UnimplementedError("a slice with an open end has a step that is not known")
                ends = (_END, _START) if isinstance(step, int) and step < 0 else (0, _END)
                bounds = [
                    end if part is None else part for part, end in zip((item.start, item.stop), ends, strict=True)
                ]
                parts.append((axis, *bounds, step))
            axis, place = axis + 1, place + 1
        else:
            single.append((axis, item))
            axis += 1
    if parts:
        axes, *columns = zip(*parts, strict=True)
        starts, stops, steps = (_numbers(body, column) for column in columns)
        value = body.emit("Slice", [value, starts, stops, body.constant(axes, dtypes.int64), steps])
    for axis, item in reversed(single):
        value = body.emit("Gather", [value, _scalar(body, item)], axis=axis)
    return body.emit("Unsqueeze", [value], axes=new) if new else value


def _scalar(body: Body, item: Any) -> str:
    return body.index(item) if isinstance(item, Tensor) else body.constant(item, dtypes.int64)


def _numbers(body: Body, column: tuple[Any, ...]) -> str:
    """A vector of numbers some of which are tensors."""
    if not any(isinstance(item, Tensor) for item in column):
        return body.constant(column, dtypes.int64)
    return body.emit("Concat", [_vector(body, _scalar(body, item)) for item in column], axis=0)


@exports("ReverseV2", "ReverseV2ByAxis")
def _reverse(body: Body, op: Operation) -> str:
    axes = _axis(body, op)
    bounds = ([-1] * len(axes), [_START] * len(axes), axes, [-1] * len(axes))
    return body.emit("Slice", [body.text(op.inputs[-1]), *(body.constant(each, dtypes.int64) for each in bounds)])


@exports("ReverseSequence")
def _reverse_sequence(body: Body, op: Operation) -> str:
    time, batch = int(op.attrs["seq_dim"]), int(op.attrs["batch_dim"])
    if {time, batch} != {0, 1}:
        raise UnimplementedError("ONNX reverses sequences along the first two axes only")
    inputs = [body.text(op.inputs[0]), body.index(op.inputs[1])]
    return body.emit("ReverseSequence", inputs, time_axis=time, batch_axis=batch)


# -- gathering -----------------------------------------------------------------------------------------


@exports("GatherV2", "GatherV2ByAxis")
def _gather(body: Body, op: Operation) -> str:
    params, indices = op.inputs[-2:]
    rank, batch = params.shape.rank, int(op.attrs["batch_dims"])
    axis = body.axes(op.inputs[0], rank)[0] if op.type == "GatherV2ByAxis" else int(op.attrs["axis"])
    if batch == 0:
        return body.emit("Gather", [body.text(params), body.index(indices)], axis=axis)
    if batch < 0 or axis != batch:
        raise UnimplementedError("ONNX gathers in batches only along the axis behind them")
    rows = body.emit("Unsqueeze", [body.index(indices)], axes=[-1])
    return body.emit("GatherND", [body.text(params), rows], batch_dims=batch)


@exports("ScatterNd", "TensorScatterUpdate", "TensorScatterAdd")
def _scatter(body: Body, op: Operation) -> str:
    if op.type == "ScatterNd":
        indices, updates, shape = op.inputs
        value = body.emit("Expand", [body.constant(0, updates.dtype), body.index(shape)])
    else:
        tensor, indices, updates = op.inputs
        value = body.text(tensor)
    options = {} if op.type == "TensorScatterUpdate" else {"reduction": "add"}
    return body.emit("ScatterND", [value, body.index(indices), body.text(updates)], **options)


@exports("OneHot")
def _one_hot(body: Body, op: Operation) -> str:
    indices, depth, on, off = op.inputs
    count = body.index(depth)
    # A negative index counts from the end in ONNX, and is nowhere in TensorFlow.
    places = body.index(indices)
    beyond = body.emit("Less", [places, body.constant(0)])
    places = body.emit("Where", [beyond, count, places])
    values = body.emit("Concat", [_vector(body, body.text(tensor)) for tensor in (off, on)], axis=0)
    if indices.shape.rank == 0:
        return body.emit("Squeeze", [body.emit("OneHot", [_vector(body, places), count, values])], axes=[0])
    return body.emit("OneHot", [places, count, values], axis=int(op.attrs["axis"]))


@exports("Where")
def _where(body: Body, op: Operation) -> str:
    condition = body.cast(body.text(op.inputs[0]), op.inputs[0].dtype, dtypes.bool_)
    return body.emit("Transpose", [body.emit("NonZero", [condition])], perm=[1, 0])


@exports("UniqueWithCounts")
def _unique(body: Body, op: Operation) -> list[str]:
    values, _, places, counts = body.emit("Unique", body.texts(op.inputs), 4, sorted=0)
    return [values, *(body.cast(each, dtypes.int64, op.outputs[1].dtype) for each in (places, counts))]


@exports("SequenceMask")
def _sequence_mask(body: Body, op: Operation) -> str:
    lengths, most = map(body.index, op.inputs)
    known = body.known(op.inputs[1])
    most = body.emit("ReduceMax", [lengths], keepdims=0) if known is not None and known < 0 else most
    numbers = body.emit("Range", [body.constant(0), most, body.constant(1)])
    mask = body.emit("Less", [numbers, body.emit("Unsqueeze", [lengths], axes=[-1])])
    return body.cast(mask, dtypes.bool_, op.outputs[0].dtype)


@exports("MatrixBandPart")
def _band(body: Body, op: Operation) -> str:
    value = body.text(op.inputs[0])
    for tensor, upper in zip(op.inputs[1:], (1, 0), strict=True):
        width = int(body.needed(tensor))
        if width >= 0:
            value = body.emit("Trilu", [value], k=body.constant(-width if upper else width), upper=upper)
    return value


# -- products ------------------------------------------------------------------------------------------


@exports("MatMul", "_MatMulPart", "BatchMatMul")
def _mat_mul(body: Body, op: Operation) -> str:
    values = []
    for tensor, attr in zip(op.inputs, ("transpose_a", "transpose_b"), strict=True):
        order: Order = None
        if op.attrs[attr]:
            rank = tensor.shape.rank
            if rank is None:
                raise UnimplementedError("a tensor of unknown rank is transposed")
            order = (*range(rank - 2), rank - 1, rank - 2)
        values.append(body.text(tensor, order))
    if op.type == "_MatMulPart":  # the columns that the graph uses
        begin, size = op.attrs["begin"], op.attrs["size"]
        bounds = ([begin], [begin + size], [1])
        values[1] = body.emit("Slice", [values[1], *(body.constant(each, dtypes.int64) for each in bounds)])
    return body.emit("MatMul", values)


@exports("LSTMGates")
def _lstm_gates(body: Body, op: Operation) -> list[str]:
    projected, bias, cell = body.texts(op.inputs)
    total = body.emit("Add", [projected, bias])
    units = op.inputs[2].shape.sizes[1]
    if units is None:
        raise UnimplementedError("its number of units is not known")
    i, j, f, o = body.emit("Split", [total, body.constant([units] * 4)], 4, axis=1)
    i, o = (body.emit("Sigmoid", [each]) for each in (i, o))
    f = body.emit("Sigmoid", [body.emit("Add", [f, body.constant(op.attrs["forget_bias"], op.inputs[0].dtype)])])
    j = body.emit("Tanh", [j])
    new = body.emit("Add", [body.emit("Mul", [cell, f]), body.emit("Mul", [i, j])])
    output = body.emit("Mul", [body.emit("Tanh", [new]), o])
    return [new, output, body.emit("Concat", [i, j, f, o], axis=1)]
