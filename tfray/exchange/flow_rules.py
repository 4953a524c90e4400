"""Rules for functions, branches, loops, lists of tensors and TensorArrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tfray.errors import InvalidArgumentError, OpError
from tfray.exchange.attributes import read_attr
from tfray.exchange.node import Imported, Node, TensorArrayHandle, rule
from tfray.formats.graph_proto import FunctionDef
from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Operation, Tensor
from tfray.framework.region import Region
from tfray.framework.tensor_shape import TensorShape
from tfray.gradients import gradients
from tfray.ops.arrays.broadcast_ops import zeros_like
from tfray.ops.control.control_flow_ops import add_cond, add_while

# -- functions -----------------------------------------------------------------------------------------


def _function(node: Node, attr: str) -> tuple[str, dict[str, Any]]:
    named = node.attrs[attr]
    return named.name, {name: read_attr(value) for name, value in named.attr.items()}


def call(node: Node, function: str, attrs: Mapping[str, Any], inputs: Sequence[Imported]) -> list[Imported]:
    """Add what a function does with `inputs` in the place of a node that calls it."""
    given = {name: read_attr(value) for name, value in attrs.items() if not name.startswith("_")}
    outputs, effects = node.body.call(function, given, inputs, node)
    node.controls += effects
    return node.named(outputs)


@rule("PartitionedCall", "StatefulPartitionedCall")
def _partitioned_call(node: Node) -> Sequence[Imported]:
    named = node.attrs["f"]
    return call(node, named.name, named.attr, node.given)


@rule("SymbolicGradient")
def _symbolic_gradient(node: Node) -> Sequence[Imported]:
    """The gradients of a function for its inputs, from these and the gradients for what it returns."""
    function = node.attrs["f"]
    count = len(node.body.input_dtypes(function.name))
    inputs = [node.part("Identity", [value]) for value in node.inputs[:count]]  # of this call alone
    outputs, _ = node.body.call(function.name, node.body.given(function), inputs, node)
    pairs = zip(map(node.value, outputs), node.inputs[count:], strict=True)
    wanted = [(output, given) for output, given in pairs if output.dtype.is_floating or output.dtype.is_complex]
    with node.building():
        found = gradients([output for output, _ in wanted], inputs, [given for _, given in wanted])
        dense = [
            zeros_like(value) if each is None else convert_to_tensor(each)
            for value, each in zip(inputs, found, strict=True)
        ]
    return node.named(dense)


def _truth(node: Node, tensor: Tensor) -> Tensor:
    """Whether a scalar is not 0."""
    if tensor.dtype is dtypes.bool_:
        return tensor
    return node.part("NotEqual", [tensor, node.known(0, tensor.dtype)])


@rule("If", "StatelessIf")
def _if(node: Node) -> Sequence[Imported]:
    pred = _truth(node, node.value(node.given[0]))
    branches = [
        node.body.region(*_function(node, attr), node.given[1:], node, scope)
        for attr, scope in (("then_branch", "then"), ("else_branch", "orelse"))
    ]
    # A handle is known without a choice, and is the one of the branch that has it.
    handles = {
        i: output
        for _, outputs in branches
        for i, output in enumerate(outputs)
        if isinstance(output, TensorArrayHandle)
    }
    for region, outputs in branches:
        region.outputs = [node.value(output) for i, output in enumerate(outputs) if i not in handles]
    (then, _), (orelse, _) = branches
    values = iter(_chosen(node, pred, then, orelse))
    return [handles[i] if i in handles else next(values) for i in range(len(node.attrs["Tout"]))]


def _chosen(node: Node, pred: Tensor, then: Region, orelse: Region) -> list[Imported]:
    for short, long in ((then, orelse), (orelse, then)):
        if len(short.outputs) < len(long.outputs):  # the other one also says that its effects are done
            short.outputs.append(
                short.add_operation("Const", [], {"value": np.array(True), "dtype": dtypes.bool_}).outputs[0]
            )
    for region, other in ((then, orelse), (orelse, then)):  # what has no value takes the dtype of the other branch's
        for i, (output, wanted) in enumerate(zip(region.outputs, other.outputs, strict=True)):
            if output.op.type == "NoValue" and output.dtype is not wanted.dtype:
                region.outputs[i] = region.add_operation("NoValue", [], {"dtype": wanted.dtype}).outputs[0]
    with node.building():
        made = add_cond(pred, then, orelse, name="cond")
    node.controls.append(made)
    return node.named(made.outputs)


@rule("Case", "StatelessCase")
def _case(node: Node) -> Sequence[Imported]:
    index, *inputs = node.given
    first, *others = node.attrs["branches"]
    if not others:
        return call(node, first.name, first.attr, inputs)
    number = node.value(index)
    pred = node.part("Equal", [number, node.known(0, number.dtype)])
    next_number = node.part("Sub", [number, node.known(1, number.dtype)])
    given = {name: read_attr(value) for name, value in first.attr.items()}
    region, outputs = node.body.region(first.name, given, inputs, node, "then")
    region.outputs = [node.value(output) for output in outputs]
    rest, outputs = node.body.region(_cases(node, others), {}, [next_number, *inputs], node, "orelse")
    rest.outputs = [node.value(output) for output in outputs]
    return _chosen(node, pred, region, rest)


def _cases(node: Node, branches: Sequence[Any]) -> str:
    """The name of a function that takes a number and runs one of the functions `branches`."""
    functions = node.body.functions
    name = f"{branches[0].name} and further cases"
    if name not in functions:
        whole = functions[branches[0].name].signature
        function = functions[name] = FunctionDef()
        function.signature.name = name
        function.signature.input_arg.add(name="number", type=int(dtypes.int32))
        function.signature.input_arg.extend(whole.input_arg)
        function.signature.output_arg.extend(whole.output_arg)
        inner = function.node_def.add(name="case", op="Case")
        inner.input.extend(["number", *(arg.name for arg in whole.input_arg)])
        inner.attr["branches"].list.func.extend(branches)
        inner.attr["Tin"].list.type.extend(arg.type for arg in whole.input_arg)
        inner.attr["Tout"].list.type.extend(arg.type for arg in whole.output_arg)
        function.ret.update({arg.name: f"case:output:{i}" for i, arg in enumerate(whole.output_arg)})
    return name


@rule("While", "StatelessWhile")
def _while(node: Node) -> Sequence[Imported]:
    fixed = _fixed_variables(node)
    variables = [i for i in range(len(node.given)) if i not in fixed]
    shapes, body = _loop_body(node, variables)
    condition, results = node.body.region(*_function(node, "cond"), node.given, node, "condition", shapes)
    condition.outputs = [node.value(results[0])]
    initial = [node.value(node.given[i]) for i in variables]
    with node.building():
        made = add_while(condition, body, initial, "while")
    ends: list[Imported] = list(node.given)
    for index, tensor in zip(variables, made.outputs[1:], strict=False):
        ends[index] = tensor
    node.controls.append(made)
    return node.named(ends)


def _loop_body(node: Node, variables: Sequence[int]) -> tuple[dict[int, TensorShape], Region]:
    """The shapes of the variables of a loop, and its body with these.

    Where the loop does not say them, they are those of the first values, as far as the body keeps them.
    """
    declared = node.attrs.get("output_shapes") or ()
    first = [given.shape if isinstance(given, Tensor) else TensorShape(None) for given in node.given]
    shapes = {i: declared[i] if i < len(declared) else first[i] for i in variables}
    while True:
        try:
            body, outputs = node.body.region(*_function(node, "body"), node.given, node, "body", shapes)
        except (OpError, ValueError):
            if declared or all(shape.rank is None for shape in shapes.values()):
                raise
            shapes = dict.fromkeys(variables, TensorShape(None))  # what changes may not fit the first shape
            continue
        body.outputs = [node.value(outputs[i]) for i in variables]
        kept = {
            i: shapes[i].most_specific_compatible_shape(end.shape)
            for i, end in zip(variables, body.outputs, strict=True)
        }
        if declared or kept == shapes:
            return shapes, body
        shapes = kept


def _fixed_variables(node: Node) -> set[int]:
    """The variables of a loop that keep their values: they are captured, as handles have to be."""
    function = node.body.functions[node.attrs["body"].name]
    sources = {inner.name: inner.input[0] for inner in function.node_def if inner.op == "Identity" and inner.input}
    fixed = set()
    for index, (arg, result) in enumerate(
        zip(function.signature.input_arg, function.signature.output_arg, strict=True)
    ):
        source = function.ret[result.name].partition(":")[0]
        for _ in sources:  # not for ever, should they go round in a circle
            source = sources.get(source, source).partition(":")[0]
        if source == arg.name:
            fixed.add(index)
    return fixed


@rule("FakeParam")
def _no_value(node: Node) -> Sequence[Imported]:
    dtype = node.attrs["dtype"]
    return [node.make("NoValue", [], dtype=dtypes.variant if dtype is dtypes.resource else dtype).outputs[0]]


@rule("StackV2")
def _stack(node: Node) -> Sequence[Imported]:
    return [node.make("StackV2", node.inputs).outputs[0]]


@rule("StackPushV2")
def _push_on_stack(node: Node) -> Sequence[Imported]:
    stack, value = _origin(node), node.inputs[1]
    known = node.body.pushed.get(stack, value.shape)
    node.body.pushed[stack] = known.most_specific_compatible_shape(value.shape)
    return [node.make("StackPushV2", node.inputs).outputs[0]]


@rule("StackPopV2")
def _pop_off_stack(node: Node) -> Sequence[Imported]:
    dtype = node.attrs["elem_type"]
    dtype = dtypes.variant if dtype is dtypes.resource else dtype
    (value,) = node.make("StackPopV2", node.inputs, elem_type=dtype).outputs
    value.set_shape(node.body.pushed.get(_origin(node), TensorShape(None)))
    return [value]


def _origin(node: Node) -> Tensor:
    """The handle of a stack, there where the stack is made, if it can be seen from here."""
    graph, handle = node.graph, node.inputs[0]
    return graph.origin(handle) if isinstance(graph, Region) else handle


# -- lists of tensors ----------------------------------------------------------------------------------


def _element_shape(node: Node) -> TensorShape:
    found = node.constant("element_shape")
    if found is None or found.ndim == 0:
        return TensorShape(None)
    return TensorShape([None if size < 0 else size for size in found.tolist()])


def _all_indices(node: Node, flow: Tensor) -> Tensor:
    size = node.part("TensorArraySize", [flow])
    return node.part("Range", [node.known(0, dtypes.int32), size, node.known(1, dtypes.int32)])


def _bounds(node: Node, flow: Tensor, element_shape: Tensor, most: Tensor | None = None) -> list[Tensor]:
    """What makes a list hold its elements to a shape, and their number to `most`."""
    if element_shape.dtype is not dtypes.int32:
        element_shape = node.part("Cast", [element_shape], SrcT=element_shape.dtype, DstT=dtypes.int32)
    return [flow, element_shape, node.known(-1, dtypes.int32) if most is None else most]


def _bounded(node: Node, *given: Tensor) -> Sequence[Imported]:
    return [node.make("TensorArrayBounds", _bounds(node, *given)).outputs[0]]


@rule("TensorArrayOfNothing")
def _nothing(node: Node) -> Sequence[Imported]:
    return [node.make("TensorArray", [node.known(0, dtypes.int32)]).outputs[0]]


@rule("EmptyTensorList")
def _empty_list(node: Node) -> Sequence[Imported]:
    return _bounded(node, node.part("TensorArray", [node.known(0, dtypes.int32)]), *node.inputs)


@rule("TensorListElementShape")
def _list_element_shape(node: Node) -> Sequence[Imported]:
    wanted = node.attrs["shape_type"]
    if wanted is dtypes.int32:
        return [node.make("TensorArrayElementShape", node.inputs).outputs[0]]
    sizes = node.part("TensorArrayElementShape", node.inputs)
    return [node.make("Cast", [sizes], SrcT=dtypes.int32, DstT=wanted).outputs[0]]


@rule("AddN")
def _sum(node: Node) -> Sequence[Imported]:
    is_list = node.inputs[0].dtype is dtypes.variant
    return [node.make("TensorArraySum" if is_list else "AddN", node.inputs).outputs[0]]


@rule("TensorListReserve")
def _reserved_list(node: Node) -> Sequence[Imported]:
    shape, size = node.inputs
    return _bounded(node, node.part("TensorArray", [size]), shape)


@rule("TensorListPushBack")
def _push(node: Node) -> Sequence[Imported]:
    flow, value = node.inputs
    return [node.make("TensorArrayWrite", [flow, node.part("TensorArraySize", [flow]), value], dynamic=True).outputs[0]]


@rule("TensorListPopBack")
def _pop(node: Node) -> Sequence[Imported]:
    shape, dtype = _element_shape(node), node.attrs["element_dtype"]
    return list(node.make("TensorArrayPop", node.inputs[:1], dtype=dtype, element_shape=shape).outputs)


@rule("TensorListSetItem")
def _set_item(node: Node) -> Sequence[Imported]:
    dynamic = bool(node.attrs["resize_if_index_out_of_bounds"])
    return [node.make("TensorArrayReplace", node.inputs, dynamic=dynamic).outputs[0]]


@rule("TensorListResize")
def _resize_list(node: Node) -> Sequence[Imported]:
    return [node.make("TensorArrayResize", node.inputs).outputs[0]]


@rule("TensorListGetItem", "TensorListGather")
def _get_items(node: Node) -> Sequence[Imported]:
    here = "TensorArrayRead" if node.op == "TensorListGetItem" else "TensorArrayGather"
    shape, dtype = _element_shape(node), node.attrs["element_dtype"]
    if node.constant("element_shape") is None and dtype.is_differentiable:
        return [node.make(f"{here}OrZeros", node.inputs, dtype=dtype).outputs[0]]
    return [node.make(here, node.inputs[:2], dtype=dtype, element_shape=shape).outputs[0]]


@rule("TensorListStack")
def _stack_list(node: Node) -> Sequence[Imported]:
    flow = node.inputs[0]
    shape, dtype = _element_shape(node), node.attrs["element_dtype"]
    inputs = [flow, _all_indices(node, flow)]
    return [node.make("TensorArrayGather", inputs, dtype=dtype, element_shape=shape).outputs[0]]


@rule("TensorListConcatV2")
def _concat_list(node: Node) -> Sequence[Imported]:
    flow, shape, lengths = node.inputs
    dtype, known = node.attrs["element_dtype"], _element_shape(node)
    rest = TensorShape(None) if known.rank is None else TensorShape(known.sizes[1:])
    if lengths.shape == TensorShape([0]) or not dtype.is_differentiable:
        return _with_lengths(node, node.make("TensorArrayConcat", [flow], dtype=dtype, rest=rest))
    lengths = node.part("Cast", [lengths], SrcT=dtypes.int64, DstT=dtypes.int32)
    shape = node.part("StridedSlice", [node.part("Cast", [shape], SrcT=shape.dtype, DstT=dtypes.int32)], key="1:")
    return _with_lengths(node, node.make("TensorArrayConcatOrZeros", [flow, lengths, shape], dtype=dtype, rest=rest))


@rule("TensorListSplit")
def _split_list(node: Node) -> Sequence[Imported]:
    value, shape, lengths = node.inputs
    lengths = node.part("Cast", [lengths], SrcT=dtypes.int64, DstT=dtypes.int32)
    nothing = node.part("TensorArray", [node.known(0, dtypes.int32)])
    return _bounded(node, node.part("TensorArraySplit", [nothing, value, lengths], dynamic=True), shape)


@rule("TensorListScatter", "TensorListScatterV2")
def _scatter_list(node: Node) -> Sequence[Imported]:
    value, indices, shape, *size = node.inputs
    most = node.constant("num_elements") if size else None
    if most is not None and most < -1:
        raise InvalidArgumentError(f"TensorListScatter expects num_elements >= -1, found: {int(most)}")
    zero = node.known(0, dtypes.int32)
    nothing = node.part("TensorArray", [node.part("Maximum", [*size, zero]) if size else zero])
    flow = node.part("TensorArrayBounds", _bounds(node, nothing, shape))
    grows = most is None or most < 0
    return [node.make("TensorArrayScatter", [flow, indices, value], dynamic=grows).outputs[0]]


@rule("TensorListScatterIntoExistingList")
def _scatter_into_list(node: Node) -> Sequence[Imported]:
    flow, value, indices = node.inputs
    return [node.make("TensorArrayScatter", [flow, indices, value], dynamic=True).outputs[0]]


@rule("TensorListFromTensor")
def _list_of(node: Node) -> Sequence[Imported]:
    value, element_shape = node.inputs
    shape = node.part("Shape", [value], out_type=dtypes.int32)
    size = node.part("StridedSlice", [shape], key="0")
    flow = node.part("TensorArray", [size])
    filled = node.part("TensorArrayScatter", [flow, _all_indices(node, flow), value], dynamic=False)
    return _bounded(node, filled, element_shape)


@rule("TensorListLength")
def _list_length(node: Node) -> Sequence[Imported]:
    return [node.make("TensorArraySize", node.inputs).outputs[0]]


@rule("OptionalFromValue")
def _optional(node: Node) -> Sequence[Imported]:
    flow = node.part("TensorArray", [node.known(len(node.inputs), dtypes.int32)])
    for index, value in enumerate(node.inputs):
        flow = node.part("TensorArrayWrite", [flow, node.known(index, dtypes.int32), value], dynamic=False)
    return node.named([flow])


@rule("OptionalNone")
def _no_optional(node: Node) -> Sequence[Imported]:
    return [node.make("TensorArray", [node.known(0, dtypes.int32)]).outputs[0]]


@rule("OptionalGetValue")
def _optional_value(node: Node) -> Sequence[Imported]:
    found = [
        node.part("TensorArrayRead", [*node.inputs, node.known(i, dtypes.int32)], dtype=dtype, element_shape=shape)
        for i, (dtype, shape) in enumerate(zip(node.attrs["output_types"], node.attrs["output_shapes"], strict=True))
    ]
    return node.named(found)


@rule("TensorArrayV3")
def _tensor_array(node: Node) -> Sequence[Imported]:
    flow = node.make("TensorArray", node.inputs).outputs[0]
    attrs = node.attrs
    return [TensorArrayHandle(attrs["dtype"], attrs["element_shape"], bool(attrs["dynamic_size"])), flow]


def _array(node: Node) -> tuple[TensorArrayHandle, list[Tensor]]:
    handle, *inputs = node.given
    if not isinstance(handle, TensorArrayHandle):
        raise InvalidArgumentError("its first input is not the handle of a TensorArray")
    *inputs, flow = inputs
    return handle, [node.value(flow), *map(node.value, inputs)]


@rule("TensorArrayWriteV3")
def _write(node: Node) -> Sequence[Imported]:
    handle, inputs = _array(node)
    return [node.make("TensorArrayWrite", inputs, dynamic=handle.dynamic).outputs[0]]


@rule("TensorArrayScatterV3")
def _scatter(node: Node) -> Sequence[Imported]:
    handle, inputs = _array(node)
    return [node.make("TensorArrayScatter", inputs, dynamic=handle.dynamic).outputs[0]]


@rule("TensorArrayReadV3")
def _read(node: Node) -> Sequence[Imported]:
    handle, inputs = _array(node)
    attrs = {"dtype": node.attrs["dtype"], "element_shape": handle.element_shape}
    return [node.make("TensorArrayRead", inputs, **attrs).outputs[0]]


@rule("TensorArrayGatherV3")
def _gather(node: Node) -> Sequence[Imported]:
    handle, inputs = _array(node)
    shape = node.attrs["element_shape"]
    attrs = {"dtype": node.attrs["dtype"], "element_shape": handle.element_shape if shape.rank is None else shape}
    return [node.make("TensorArrayGather", inputs, **attrs).outputs[0]]


@rule("TensorArrayConcatV3")
def _concat(node: Node) -> Sequence[Imported]:
    _, inputs = _array(node)
    attrs = {"dtype": node.attrs["dtype"], "rest": node.attrs["element_shape_except0"]}
    return _with_lengths(node, node.make("TensorArrayConcat", inputs, **attrs))


def _with_lengths(node: Node, made: Operation) -> Sequence[Imported]:
    return [made.outputs[0], node.part("Cast", [made.outputs[1]], SrcT=dtypes.int32, DstT=dtypes.int64)]


@rule("TensorArraySplitV3")
def _split(node: Node) -> Sequence[Imported]:
    handle, (flow, value, lengths) = _array(node)
    lengths = node.part("Cast", [lengths], SrcT=dtypes.int64, DstT=dtypes.int32)
    return [node.make("TensorArraySplit", [flow, value, lengths], dynamic=handle.dynamic).outputs[0]]


@rule("TensorArraySizeV3")
def _size(node: Node) -> Sequence[Imported]:
    return [node.make("TensorArraySize", _array(node)[1]).outputs[0]]


@rule("TensorArrayCloseV3")
def _close(node: Node) -> Sequence[Imported]:
    node.make("NoOp", [])
    return []


@rule("TensorArrayAccumulateParts")
def _accumulate_parts(node: Node) -> Sequence[Imported]:
    flow, value, lengths = node.inputs
    lengths = node.part("Cast", [lengths], SrcT=dtypes.int64, DstT=dtypes.int32)
    nothing = node.part("TensorArray", [node.known(0, dtypes.int32)])
    return [
        node.make(
            "TensorArraySum", [flow, node.part("TensorArraySplit", [nothing, value, lengths], dynamic=True)]
        ).outputs[0]
    ]


@rule("TensorArrayConcatLike")
def _concat_like(node: Node) -> Sequence[Imported]:
    attrs = {key: node.attrs[key] for key in ("dtype", "element_shape")}
    return _with_lengths(node, node.make("TensorArrayConcatLike", node.inputs, **attrs))
