"""Branches, loops and lists of tensors in TensorFlow's form.

TensorArrays, their gradients, and the values that loops keep for theirs become TensorFlow's lists of tensors. These
have a fixed length and hold one dtype, and a missing element reads as zeros of the shape that the read gives. Where a
list grows here, it is made longer there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tfray.errors import UnimplementedError
from tfray.exchange.element_types import element_type, type_there
from tfray.exchange.exports import Body, export
from tfray.formats.graph_proto import FunctionDef
from tfray.framework import dtypes
from tfray.framework.dtypes import DType
from tfray.framework.graph import Operation, Tensor
from tfray.framework.region import Region, passed_inputs
from tfray.framework.tensor_shape import TensorShape

# -- branches and loops --------------------------------------------------------------------------------


def _function(
    body: Body,
    op: Operation,
    attr: str,
    parameters: Sequence[Tensor | DType],
    results: Callable[[Body], Sequence[tuple[str, DType]]],
) -> dict[str, str]:
    """The function that does what a region does.

    Args:
        body: Where the operation stands that holds the region.
        op: That operation.
        attr: The attribute that is the region.
        parameters: The inputs of the function: those of the region, and dtypes of others.
        results: What it returns, once its operations are there: how each is named, and its dtype.
    """
    region: Region = op.attrs[attr]
    function: FunctionDef = body.message.library.function.add()
    name = f"{op.name}_{attr}".replace("/", "_").replace(".", "_")
    taken = {other.signature.name for other in body.message.library.function}
    while name in taken:
        name += "_"
    function.signature.name = name
    inner = body.of_function(function.node_def, (inside.name for inside in region.get_operations()))
    for index, parameter in enumerate(parameters):
        dtype = type_there(parameter) if isinstance(parameter, Tensor) else parameter
        function.signature.input_arg.add(name=f"input_{index}", type=int(dtype))
        if isinstance(parameter, Tensor):
            inner.texts[parameter] = f"input_{index}"
    inner.origins = {inside: body.origins.get(passed, passed) for inside, passed in passed_inputs(op, region)}
    for inside in region.get_operations():
        if inside.type != "RegionInput":
            inner.add(inside)
    for index, (text, dtype) in enumerate(results(inner)):
        function.signature.output_arg.add(name=f"output_{index}", type=int(dtype))
        function.ret[f"output_{index}"] = text
    effects = [inside for inside in region.get_operations() if inside.op_def.stateful and inside.type != "RegionInput"]
    for inside in effects:
        function.signature.control_output.append(inside.name)
        function.control_ret[inside.name] = inside.name
    function.signature.is_stateful = bool(effects)
    return {"name": name}


def _texts(tensors: Sequence[Tensor]) -> Callable[[Body], Sequence[tuple[str, DType]]]:
    return lambda inner: [(inner.text(tensor), type_there(tensor)) for tensor in tensors]


@export("Cond")
def _cond(body: Body, op: Operation) -> None:
    pred, *inputs = op.inputs
    branches = [
        _function(body, op, name, op.attrs[name].inputs, _texts(op.attrs[name].outputs)) for name in ("then", "orelse")
    ]
    attrs = {
        "Tcond": pred.dtype,
        "Tin": [type_there(tensor) for tensor in inputs],
        "Tout": [type_there(tensor) for tensor in op.outputs],
        "then_branch": branches[0],
        "else_branch": branches[1],
    }
    body.made(op, "If", [body.text(tensor) for tensor in op.inputs], **attrs)


@export("NoValue")
def _no_value(body: Body, op: Operation) -> None:
    body.made(op, "FakeParam", [], dtype=type_there(op.outputs[0]), shape=TensorShape(None))


@export("While")
def _while(body: Body, op: Operation) -> None:
    """What the loop counts and keeps are further variables: a number, and lists that each turn lengthens."""
    count: int = op.attrs["variables"]
    region: Region = op.attrs["body"]
    kept = region.outputs[count:]
    turns = op.outputs[0]
    is_counted = bool(turns.consumers()) or (isinstance(op.graph, Region) and turns in op.graph.outputs)
    added = [dtypes.int32] * is_counted + [dtypes.variant] * len(kept)
    lists = count + is_counted

    def parameters(of: str) -> list[Tensor | DType]:
        inputs = op.attrs[of].inputs
        return [*inputs[:count], *added, *inputs[count:]]

    def following(inner: Body) -> list[tuple[str, DType]]:
        found = [inner.text(tensor) for tensor in region.outputs[:count]]
        if is_counted:
            place = region.outputs[0].op
            one = inner.constant(place, "one", 1)
            found.append(inner.part(place, "turns", "AddV2", [f"input_{count}", one], T=dtypes.int32))
        for index, tensor in enumerate(kept):
            inputs = [f"input_{lists + index}", inner.text(tensor)]
            found.append(inner.part(tensor.op, "kept", "TensorListPushBack", inputs, element_dtype=type_there(tensor)))
        found += [inner.text(tensor) for tensor in region.inputs[count:]]
        return list(zip(found, types, strict=True))

    variables, captures = op.inputs[:count], op.inputs[count:]
    types = [*map(type_there, variables), *added, *map(type_there, captures)]
    first = [body.constant(op, "turns", 0)] * is_counted
    for tensor in kept:
        inputs = [body.constant(op, f"kept/{name}", -1) for name in ("element_shape", "max_num_elements")]
        kind = {"element_dtype": type_there(tensor), "shape_type": dtypes.int32}
        first.append(body.part(op, "kept", "EmptyTensorList", inputs, **kind))
    shapes = [tensor.shape for tensor in region.inputs[:count]]
    attrs = {
        "T": types,
        "cond": _function(body, op, "condition", parameters("condition"), _texts(op.attrs["condition"].outputs)),
        "body": _function(body, op, "body", parameters("body"), following),
        "output_shapes": [*shapes, *(TensorShape(None) for _ in types[count:])],
    }
    body.node(op, "While", [*map(body.text, variables), *first, *map(body.text, captures)], attrs)
    places = [*([count] if is_counted else []), *range(count), *range(lists, lists + len(kept))]
    for tensor, place in zip(op.outputs[0 if is_counted else 1 :], places, strict=True):
        body.texts[tensor] = body.named(op.name, "While", place, attrs)


@export("StackV2")
def _stack(body: Body, op: Operation) -> None:
    body.made(op, "StackV2", [body.text(op.inputs[0])], elem_type=element_type(op.outputs[0]))


@export("StackPushV2")
def _push_on_stack(body: Body, op: Operation) -> None:
    body.made(op, "StackPushV2", [body.text(tensor) for tensor in op.inputs], T=type_there(op.outputs[0]))


@export("StackPopV2")
def _pop_off_stack(body: Body, op: Operation) -> None:
    body.made(op, "StackPopV2", [body.text(op.inputs[0])], elem_type=type_there(op.outputs[0]))


# -- lists ---------------------------------------------------------------------------------------------


def _shape(body: Body, op: Operation, shape: TensorShape) -> str:
    """A shape as an input; -1 stands for what is not known."""
    sizes = -1 if shape.rank is None else [-1 if size is None else size for size in shape.sizes]
    return body.constant(op, "element_shape", sizes)


def _shape_of(body: Body, op: Operation, tensor: str, dtype: DType) -> str:
    return body.part(op, "shape", "Shape", [tensor], T=dtype, out_type=dtypes.int32)


def _after_first(body: Body, op: Operation, sizes: str) -> str:
    bounds = [body.constant(op, name, [value]) for name, value in (("begin", 1), ("size", -1))]
    return body.part(op, "rest", "Slice", [sizes, *bounds], T=dtypes.int32, Index=dtypes.int32)


def _joined(body: Body, op: Operation, first: str, second: str) -> str:
    inputs = [first, second, body.constant(op, "axis", 0)]
    return body.part(op, "sizes", "ConcatV2", inputs, N=2, T=dtypes.int32, Tidx=dtypes.int32)


def _length(body: Body, op: Operation, flow: str) -> str:
    return body.part(op, "length", "TensorListLength", [flow])


def _largest(body: Body, op: Operation, *numbers: str) -> str:
    first, *others = numbers
    for other in others:
        first = body.part(op, "largest", "Maximum", [first, other], T=dtypes.int32)
    return first


def _plus_one(body: Body, op: Operation, number: str) -> str:
    return body.part(op, "end", "AddV2", [number, body.constant(op, "one", 1)], T=dtypes.int32)


def _end(body: Body, op: Operation, indices: str) -> str:
    """The length of a list that has these elements."""
    axis = body.constant(op, "axis", 0)
    last = body.part(op, "last", "Max", [indices, axis], T=dtypes.int32, Tidx=dtypes.int32, keep_dims=False)
    return _plus_one(body, op, last)


def _lengthened(body: Body, op: Operation, flow: str, length: str) -> str:
    """A list that is at least that long."""
    longer = _largest(body, op, _length(body, op, flow), length)
    return body.part(op, "lengthened", "TensorListResize", [flow, longer])


def _long(body: Body, op: Operation, numbers: str) -> str:
    return body.part(op, "long", "Cast", [numbers], SrcT=dtypes.int32, DstT=dtypes.int64)


@export("TensorArray")
def _tensor_array(body: Body, op: Operation) -> None:
    inputs = [body.constant(op, "element_shape", -1), body.text(op.inputs[0])]
    body.made(op, "TensorListReserve", inputs, element_dtype=element_type(op.outputs[0]), shape_type=dtypes.int32)


@export("TensorArrayIdentity")
def _identity(body: Body, op: Operation) -> None:
    body.made(op, "Identity", [body.text(op.inputs[0])], T=type_there(op.outputs[0]))


@export("TensorArrayBounds")
def _bounds(body: Body, op: Operation) -> None:
    # A list that TensorFlow reads holds its elements to no shape: then it takes those of this one too.
    body.made(op, "Identity", [body.text(op.inputs[0])], T=type_there(op.outputs[0]))


@export("TensorArrayElementShape")
def _element_shape(body: Body, op: Operation) -> None:
    body.made(op, "TensorListElementShape", [body.text(op.inputs[0])], shape_type=dtypes.int32)


@export("TensorArraySize")
def _size(body: Body, op: Operation) -> None:
    body.made(op, "TensorListLength", [body.text(op.inputs[0])])


@export("TensorArrayResize")
def _resize(body: Body, op: Operation) -> None:
    body.made(op, "TensorListResize", [body.text(tensor) for tensor in op.inputs])


@export("TensorArrayWrite", "TensorArrayReplace")
def _write(body: Body, op: Operation) -> None:
    attrs = {"element_dtype": op.inputs[2].dtype, "resize_if_index_out_of_bounds": op.attrs["dynamic"]}
    body.made(op, "TensorListSetItem", [body.text(tensor) for tensor in op.inputs], **attrs)


@export("TensorArrayRead", "TensorArrayGather")
def _read(body: Body, op: Operation) -> None:
    inputs = [*map(body.text, op.inputs), _shape(body, op, op.attrs["element_shape"])]
    there = "TensorListGetItem" if op.type == "TensorArrayRead" else "TensorListGather"
    body.made(op, there, inputs, element_dtype=op.outputs[0].dtype)


@export("TensorArrayPop")
def _pop(body: Body, op: Operation) -> None:
    inputs = [body.text(op.inputs[0]), _shape(body, op, op.attrs["element_shape"])]
    body.made(op, "TensorListPopBack", inputs, element_dtype=op.outputs[1].dtype)


@export("TensorArrayScatter")
def _scatter(body: Body, op: Operation) -> None:
    flow, indices, value = map(body.text, op.inputs)
    attrs = {"element_dtype": op.inputs[2].dtype}
    body.made(op, "TensorListScatterIntoExistingList", [flow, value, indices], **attrs)


def _concatenated(body: Body, op: Operation, flow: str, shape: str, lengths: str) -> None:
    attrs = {"element_dtype": op.outputs[0].dtype, "shape_type": dtypes.int32}
    body.node(op, "TensorListConcatV2", [flow, shape, lengths], attrs)
    value, found = (body.named(op.name, "TensorListConcatV2", index, attrs) for index in (0, 1))
    body.texts[op.outputs[0]] = value
    body.texts[op.outputs[1]] = body.part(op, "lengths", "Cast", [found], SrcT=dtypes.int64, DstT=dtypes.int32)


@export("TensorArrayConcat")
def _concat(body: Body, op: Operation) -> None:
    rest: TensorShape = op.attrs["rest"]
    shape = _shape(body, op, rest if rest.rank is None else TensorShape([None, *rest.sizes]))
    _concatenated(body, op, body.text(op.inputs[0]), shape, body.constant(op, "no_lengths", [], dtypes.int64))


@export("TensorArraySplit")
def _split(body: Body, op: Operation) -> None:
    flow, value, lengths = map(body.text, op.inputs)
    attrs = {"element_dtype": op.inputs[1].dtype, "shape_type": dtypes.int32}
    inputs = [value, body.constant(op, "element_shape", -1), _long(body, op, lengths)]
    parts = body.part(op, "parts", "TensorListSplit", inputs, **attrs)
    longer = _largest(body, op, _length(body, op, flow), _length(body, op, parts))
    body.made(op, "TensorListResize", [parts, longer])


# -- gradients of lists --------------------------------------------------------------------------------


@export("TensorArrayAccumulate")
def _accumulate(body: Body, op: Operation) -> None:
    flow, index, value = map(body.text, op.inputs)
    dtype = _number(op, op.inputs[2].dtype)
    longer = _lengthened(body, op, flow, _plus_one(body, op, index))
    inputs = [longer, index, _shape_of(body, op, value, dtype)]
    found = body.part(op, "element", "TensorListGetItem", inputs, element_dtype=dtype)
    total = body.part(op, "total", "AddV2", [found, value], T=dtype)
    body.made(op, "TensorListSetItem", [longer, index, total], element_dtype=dtype)


@export("TensorArrayAccumulateRows")
def _accumulate_rows(body: Body, op: Operation) -> None:
    flow, indices, value = map(body.text, op.inputs)
    dtype = _number(op, op.inputs[2].dtype)
    longer = _lengthened(body, op, flow, _end(body, op, indices))
    attrs = {"T": dtype, "Tindices": dtypes.int32, "Tnumsegments": dtypes.int32}
    rows = body.part(op, "rows", "UnsortedSegmentSum", [value, indices, _length(body, op, longer)], **attrs)
    shape, attrs = body.constant(op, "element_shape", -1), {"element_dtype": dtype, "shape_type": dtypes.int32}
    added = body.part(op, "added", "TensorListFromTensor", [rows, shape], **attrs)
    body.made(op, "AddN", [longer, added], T=dtypes.variant, N=2)


def _number(op: Operation, dtype: DType) -> DType:
    if dtype is dtypes.variant:
        raise UnimplementedError(f"{op.type} {op.name!r} adds lists to lists: TensorFlow has no equivalent")
    return dtype


@export("TensorArraySum")
def _sum(body: Body, op: Operation) -> None:
    _number(op, element_type(op.outputs[0]))
    flows = [body.text(tensor) for tensor in op.inputs]
    longest = _largest(body, op, *(_length(body, op, flow) for flow in flows))
    total, *terms = (body.part(op, "term", "TensorListResize", [flow, longest]) for flow in flows)
    for term in terms:  # two at a time: TensorFlow fails where it knows the elements' shapes of some of three
        total = body.part(op, "sum", "AddN", [total, term], T=dtypes.variant, N=2)
    body.made(op, "Identity", [total], T=dtypes.variant)


@export("TensorArrayReadOrZeros")
def _read_or_zeros(body: Body, op: Operation) -> None:
    flow, index, shape = map(body.text, op.inputs)
    longer = _lengthened(body, op, flow, _plus_one(body, op, index))
    body.made(op, "TensorListGetItem", [longer, index, shape], element_dtype=op.outputs[0].dtype)


@export("TensorArrayGatherOrZeros")
def _gather_or_zeros(body: Body, op: Operation) -> None:
    flow, indices, shape = map(body.text, op.inputs)
    longer = _lengthened(body, op, flow, _end(body, op, indices))
    body.made(op, "TensorListGather", [longer, indices, shape], element_dtype=op.outputs[0].dtype)


@export("TensorArrayConcatOrZeros")
def _concat_or_zeros(body: Body, op: Operation) -> None:
    flow, lengths, shape = map(body.text, op.inputs)
    number = body.part(op, "number", "Size", [lengths], T=dtypes.int32, out_type=dtypes.int32)
    longer = _lengthened(body, op, flow, number)
    shapes = _joined(body, op, body.constant(op, "any_length", [-1]), shape)
    _concatenated(body, op, longer, shapes, _long(body, op, lengths))


@export("TensorArrayReadLike", "TensorArrayGatherLike")
def _read_like(body: Body, op: Operation) -> None:
    there = "TensorListGetItem" if op.type == "TensorArrayReadLike" else "TensorListGather"
    flow, where, like, *prefix = map(body.text, op.inputs)
    dtype = op.outputs[0].dtype
    inputs = [like, where, body.constant(op, "any_shape", -1)]
    sizes = _shape_of(body, op, body.part(op, "like", there, inputs, element_dtype=dtype), dtype)
    if there == "TensorListGather":
        sizes = _after_first(body, op, sizes)
    if prefix:
        sizes = _joined(body, op, prefix[0], sizes)
    as_long = body.part(op, "as_long", "TensorListResize", [flow, _length(body, op, like)])
    body.made(op, there, [as_long, where, sizes], element_dtype=dtype)


@export("TensorArrayConcatLike")
def _concat_like(body: Body, op: Operation) -> None:
    if len(op.inputs) > 2:
        raise UnimplementedError(
            f"{op.type} {op.name!r} has gradients of more dimensions: TensorFlow has no equivalent"
        )
    flow, like = map(body.text, op.inputs)
    dtype = op.outputs[0].dtype
    attrs = {"element_dtype": dtype, "shape_type": dtypes.int32}
    inputs = [like, body.constant(op, "any_shape", -1), body.constant(op, "no_lengths", [], dtypes.int64)]
    rows = body.part(op, "like", "TensorListConcatV2", inputs, **attrs)
    lengths = body.named(f"{op.name}/like", "TensorListConcatV2", 1, attrs)
    rest = _after_first(body, op, _shape_of(body, op, rows, dtype))
    as_long = body.part(op, "as_long", "TensorListResize", [flow, _length(body, op, like)])
    _concatenated(body, op, as_long, _joined(body, op, body.constant(op, "any_length", [-1]), rest), lengths)


@export("ProductOfStacks")
def _product_of_stacks(body: Body, op: Operation) -> None:
    """One product of the rows of all turns."""
    left, right, like = map(body.text, op.inputs)
    dtype = op.outputs[0].dtype
    sizes = _shape_of(body, op, like, dtype)
    attrs = {"element_dtype": dtype, "shape_type": dtypes.int32}
    joined = []
    for column, stack in enumerate((left, right)):
        bounds = [body.constant(op, name, [value]) for name, value in (("begin", column), ("size", 1))]
        width = body.part(op, "width", "Slice", [sizes, *bounds], T=dtypes.int32, Index=dtypes.int32)
        shape = _joined(body, op, body.constant(op, "any_length", [-1]), width)
        no_lengths = body.constant(op, "no_lengths", [], dtypes.int64)
        joined.append(body.part(op, "rows", "TensorListConcatV2", [stack, shape, no_lengths], **attrs))
    body.made(op, "MatMul", joined, T=dtype, transpose_a=True)
