"""From tfray's operations to TensorFlow's `GraphDef`."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

import tfray.exchange.array_rules
import tfray.exchange.compositions
import tfray.exchange.example_rules
import tfray.exchange.flow_exports
import tfray.exchange.flow_rules
import tfray.exchange.layer_rules
import tfray.exchange.queue_rules
import tfray.exchange.saver_rules
import tfray.exchange.sparse_rules
import tfray.exchange.table_rules
import tfray.exchange.update_exports  # noqa: F401  (declares rules)
from tfray.errors import UnimplementedError
from tfray.exchange.attributes import write_attr
from tfray.exchange.exports import EXPORTS, export
from tfray.exchange.import_rules import RULES, Rule, importable, target_of
from tfray.exchange.node import FUNCTIONS
from tfray.exchange.op_table import OWN, OWN_ATTRS, OWN_PART, REQUIRED, TensorFlowArg, TensorFlowOp, tensorflow_op
from tfray.formats.graph_proto import PRODUCER, GraphDef, NodeDef
from tfray.formats.large_contents import WORTHWHILE_BYTES, Contents
from tfray.formats.message import stand_in_of
from tfray.formats.stand_in import with_marks
from tfray.framework import dtypes
from tfray.framework.constant_value import constant_value
from tfray.framework.dtypes import DType
from tfray.framework.graph import Graph, Operation, Tensor
from tfray.framework.op_def import OpDef, lookup, registered_ops, variant_name
from tfray.framework.plain_graph import free_name
from tfray.framework.tensor_operators import in_order
from tfray.framework.tensor_shape import TensorShape
from tfray.ops.arrays.slice_ops import key_items


def to_tensorflow(graph: Graph, add_shapes: bool = False) -> GraphDef:
    """The message with which TensorFlow describes a graph; `add_shapes` adds the static shapes of outputs.

    Variables become resource variables; branches and loops become functional ones, with functions in the library. What
    TensorFlow has no equivalent of keeps its type here, as ``Tfray>Type``: only tfray reads it.
    `check_for_tensorflow` tells whether there is any.
    """
    message = with_marks(GraphDef())
    message.versions.producer, message.versions.min_consumer = graph.versions or (PRODUCER, 0)
    ops = in_order(graph)
    constant_bytes = sum(op.attrs["value"].nbytes for op in ops if op.type == "Const")
    contents = Contents() if constant_bytes >= WORTHWHILE_BYTES else None
    body = Body(message.node, message, False, contents, taken={op.name for op in ops})
    for op in ops:
        body.add(op)
    if add_shapes:
        _add_shapes(body, ops)
    made: GraphDef = stand_in_of(GraphDef, message, contents)
    return made


def _add_shapes(body: Body, ops: Sequence[Operation]) -> None:
    """Let nodes tell the static shapes of their outputs, in the places that these have there."""
    shapes: dict[str, dict[int, TensorShape]] = {}
    for op in ops:
        for tensor in op.outputs:
            name, _, place = body.texts.get(tensor, "").partition(":")
            shapes.setdefault(name, {})[int(place or 0)] = tensor.shape
    for node in body.nodes:
        if node.name in shapes:
            known, definition = shapes[node.name], tensorflow_op(node.op)
            count = max(known) + 1 if definition is None else len(definition.tensors(node))
            found = [known.get(place, TensorShape(None)) for place in range(count)]
            write_attr(node.attr["_output_shapes"], "list(shape)", found)


def node_of(op: Operation) -> NodeDef:
    """The node of an operation's name. Its inputs have the names that they have here."""
    message = GraphDef()
    texts = {tensor: tensor.name.removesuffix(":0") for tensor in op.inputs}
    body = Body(message.node, message, False, None, texts, {op.name})
    body.add(op)
    found: NodeDef = next(node for node in message.node if node.name == op.name)
    return found


def check_for_tensorflow(message: GraphDef) -> None:
    """Raise `UnimplementedError` unless TensorFlow can run a graph that `to_tensorflow` has written.

    The error names each operation type that has no equivalent, how often it stands, and the first operation of it.
    """
    missing: dict[str, list[str]] = {}
    for body in (message.node, *(function.node_def for function in message.library.function)):
        for node in body:
            if node.op.startswith(OWN):
                missing.setdefault(node.op.removeprefix(OWN), []).append(node.name)
    if missing:
        listed = ", ".join(f"{op} ({len(names)}, the first is {names[0]!r})" for op, names in sorted(missing.items()))
        raise UnimplementedError(f"the graph has operation types that TensorFlow has no equivalent of: {listed}")


def _counterpart(op: Operation) -> tuple[str, Rule] | None:
    """The type there of which an operation here is made, and the rule for it."""
    for there, rule in _counterparts(op.type):
        if all(op.attrs.get(name) == value for name, value in rule.given.items() if name in op.attrs):
            return there, rule
    return None


@functools.cache
def _counterparts(op: str) -> Sequence[tuple[str, Rule]]:
    """The types there of which a type here is made, and the rules for them."""
    op = _without_late_axis(op)
    if op not in registered_ops():
        return []
    found = []
    renamed = (there for there, rule in RULES.items() if rule.op == op)
    ours = lookup(op)
    uses_handles = any(each.type == "resource" for each in (*ours.input_arguments, *ours.output_arguments))
    on_handles = (f"Resource{op}", f"Resource{op}V2") if uses_handles else ()
    for name in (*on_handles, *({op} - _REMOVED), f"{op}V2", f"{op}V3", *renamed):
        if name in _ALIKE:
            return [(name, Rule(name))]
        definition = tensorflow_op(name)
        if definition is None or any(arg.is_variable for arg in (*definition.inputs, *definition.outputs)):
            continue
        target = None if (name in FUNCTIONS and name not in RULES) or not importable(name) else target_of(name)
        if target is not None and target[1] == op and _is_determined(definition, target[0], ours):
            found.append((name, target[0], any(arg.is_ref for arg in (*definition.inputs, *definition.outputs))))
    return [(name, rule) for name, rule, _ in sorted(found, key=lambda each: each[2])]


def _is_determined(definition: TensorFlowOp, rule: Rule, ours: OpDef) -> bool:
    """Whether an operation here tells all attributes that the type there needs."""
    told = {kind for arg in (*definition.inputs, *definition.outputs) for kind in (arg.type, arg.number, arg.types)}
    told |= {name for name in definition.attrs if rule.attrs.get(name, name) in (*ours.attrs, *ours.types)}
    return all(name in told for name, attr in definition.attrs.items() if attr.default is REQUIRED)


_ALIKE: Final = frozenset({"AddN", "Identity", "MirrorPad", "PadV2", "SaveV2", "Select", "UniqueWithCounts"})
"""Types that are alike on both sides, although there are functions that import them."""


_REMOVED: Final = frozenset({"BatchMatMul", "MatrixExponential", "RandomPoisson"})
"""Types that TensorFlow takes in old graphs only, and one that does less there: it does not broadcast."""


def _without_late_axis(op: str) -> str:
    """The type of which a type is the variant that takes its axis as an input; that type itself otherwise."""
    base = op.removesuffix("ByAxis")
    is_variant = base != op and base in registered_ops() and variant_name(lookup(base)) == op
    return base if is_variant else op


@dataclass
class Body:
    """The nodes of a graph or of a function.

    Attributes:
        nodes: Where they go.
        message: The graph's message, for its library.
        in_function: Whether inputs are named as functions name them.
        contents: What keeps large constants; without it the nodes hold them.
        texts: How each tensor is named as an input.
        taken: The names of all nodes.
        origins: What inputs of a function stand for, in the graph around all functions.
        first: Index of the first node of the operation that is being added.
    """

    nodes: Any
    message: GraphDef
    in_function: bool
    contents: Contents | None
    texts: dict[Tensor, str] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    origins: dict[Tensor, Tensor] = field(default_factory=dict)
    first: int = 0

    def add(self, op: Operation) -> None:
        """Add an operation."""
        self.first = len(self.nodes)
        try:
            self.add_part(op)
        except UnimplementedError:
            del self.nodes[self.first :]
            self.own(op)

    def add_part(self, op: Operation) -> None:
        """Add an operation of TensorFlow's. Raises `UnimplementedError` for one that only tfray has."""
        export = EXPORTS.get(op.type)
        if export is not None:
            export(self, op)
        elif _counterpart(op) is not None:
            self.by_rule(op)
        else:
            raise UnimplementedError(f"{op.name!r} is a {op.type}, which TensorFlow does not have")

    def own(self, op: Operation) -> None:
        """Add an operation of a type that only tfray has: its attributes are plain data in one of the node's."""
        made: NodeDef = self.nodes.add(name=op.name, op=OWN + op.type, device=op.device)
        made.input.extend(self.text(tensor) for tensor in op.inputs)
        self._finish(made, op)
        plain = op.as_plain().to_plain()
        made.attr[OWN_ATTRS].s = json.dumps({key: plain[key] for key in ("attr", "shapes")}).encode()
        for index, tensor in enumerate(op.outputs):
            inside = f"{op.name}:output:{index}"
            self.texts[tensor] = inside if self.in_function else f"{op.name}:{index}" if index else op.name

    def node(
        self, op: Operation, there: str, inputs: Sequence[str], attrs: Mapping[str, Any], name: str = ""
    ) -> NodeDef:
        """Add a node. Only the one that has the operation's name waits for what the operation waits for."""
        made: NodeDef = self.nodes.add(name=name or op.name, op=there, device=op.device)
        made.input.extend(inputs)
        definition = tensorflow_op(there)
        assert definition is not None
        for key, value in attrs.items():
            attr = definition.attrs[key]
            if attr.is_newer and value == attr.default:
                continue
            write_attr(made.attr[key], attr.type, value, self.contents)
        self._finish(made, op)
        return made

    @staticmethod
    def _finish(made: NodeDef, op: Operation) -> None:
        controls = (control for control in op.control_inputs if control.type != "RegionInput")
        made.input.extend(f"^{control.name}" for control in controls)
        for colocated in op.attrs.get("_class", ()):
            made.attr["_class"].list.s.append(f"loc:@{colocated}".encode())

    def part(self, op: Operation, suffix: str, there: str, inputs: Sequence[str], **attrs: Any) -> str:
        """The first output of a node that is needed besides."""
        name = self._free(f"{op.name}/{suffix}")
        self.node(op, there, inputs, attrs, name)
        return self.named(name, there, 0, attrs)

    def effect(self, op: Operation, suffix: str, there: str, inputs: Sequence[str], **attrs: Any) -> str:
        """The name of a node without outputs that is needed besides."""
        name = self._free(f"{op.name}/{suffix}")
        self.node(op, there, inputs, attrs, name)
        return name

    def keep(self, op: Operation, made: NodeDef) -> None:
        """Let tfray read an operation as it is, and leave out the nodes that TensorFlow needs in its place."""
        if self.in_function:
            return
        plain = op.as_plain().to_plain()
        made.attr[OWN_ATTRS].s = json.dumps({key: plain[key] for key in ("op", "input", "attr", "shapes")}).encode()
        for node in self.nodes[self.first :]:
            if node.name != op.name:
                node.attr[OWN_PART].b = True

    def of_function(self, nodes: Any, names: Iterable[str]) -> Body:
        """The nodes of a function of the same graph, whose operations have these names."""
        return Body(nodes, self.message, True, self.contents, taken=set(names))

    def constant(self, op: Operation, suffix: str, value: Any, dtype: DType = dtypes.int32) -> str:
        """A constant that is needed besides."""
        return self.part(op, suffix, "Const", [], value=np.asarray(value, dtype.numpy), dtype=dtype)

    def named(self, name: str, there: str, index: int, attrs: Mapping[str, Any]) -> str:
        """How an output of a node is named as an input."""
        if not self.in_function:
            return f"{name}:{index}" if index else name
        definition = tensorflow_op(there)
        assert definition is not None
        for arg in definition.outputs:
            count = arg.count(attrs)
            if index < count:
                return f"{name}:{arg.name}:{index}"
            index -= count
        raise IndexError(index)

    def text(self, tensor: Tensor) -> str:
        """How a tensor is named as an input."""
        if tensor not in self.texts:  # an operation that returns here what it has made of a variable
            self.read_after(tensor.op)
        return self.texts[tensor]

    def give(self, op: Operation, there: str, attrs: Mapping[str, Any], outputs: Sequence[int] | None = None) -> None:
        """Let the node of an operation's name give the operation's outputs."""
        for index, tensor in enumerate(op.outputs):
            place = index if outputs is None else outputs.index(index)
            self.texts[tensor] = self.named(op.name, there, place, attrs)

    def made(self, op: Operation, there: str, inputs: Sequence[str], /, **attrs: Any) -> NodeDef:
        """Add the node of an operation's name, which gives the operation's outputs."""
        node = self.node(op, there, inputs, attrs)
        self.give(op, there, attrs)
        return node

    # -- by rule -----------------------------------------------------------------------------------

    def by_rule(self, op: Operation) -> None:
        """Add an operation whose type there agrees, or differs by a `Rule`."""
        found = _counterpart(op)
        assert found is not None
        there, rule = found
        definition = tensorflow_op(there)
        assert definition is not None
        inputs, tensors = self._inputs(op, rule, definition)
        attrs = _attrs(op, rule, definition, tensors)
        self.node(op, there, inputs, attrs)
        if definition.outputs or not op.outputs:
            self.give(op, there, attrs, rule.outputs)

    def read_after(self, op: Operation) -> None:
        """Read a variable when an operation has changed it: the operation returns the new value here, not there."""
        name = self._free(f"{op.name}/value")
        read = self.nodes.add(name=name, op="ReadVariableOp", device=op.device)
        read.input.extend([self.text(op.inputs[0]), f"^{op.name}"])
        read.attr["dtype"].type = int(op.outputs[0].dtype)
        self.texts[op.outputs[0]] = self.named(name, read.op, 0, {})

    def _free(self, wanted: str) -> str:
        """A name that no other node has."""
        name = free_name(wanted, self.taken)
        self.taken.add(name)
        return name

    def _inputs(
        self, op: Operation, rule: Rule, definition: TensorFlowOp
    ) -> tuple[list[str], dict[str, list[Tensor | DType]]]:
        """The inputs, and the tensors or dtypes behind each of the type's."""
        here = [argument.name for argument in lookup(_without_late_axis(op.type)).input_arguments]
        args = {arg.name: arg for arg in definition.inputs}
        passed = rule.inputs or tuple(name for name in args if name not in rule.known)
        order = here if op.op_def.access is not None and sorted(here) == sorted(passed) else passed
        groups: dict[str, list[Tensor]] = {}
        ahead = list(op.inputs)
        if _without_late_axis(op.type) != op.type:
            (late,) = (name for name, attr in rule.known.items() if attr not in op.attrs)
            groups[late] = [ahead.pop(0)]
        many = len(ahead) - len(order) + 1
        for name in order:
            arg: TensorFlowArg = args[name]
            count = many if arg.number or arg.types else 1
            groups[name], ahead = ahead[:count], ahead[count:]
        if ahead:
            raise UnimplementedError(f"{op.name!r} has more inputs than {definition.name} in TensorFlow")
        texts: list[str] = []
        kinds: dict[str, list[Tensor | DType]] = {}
        for name in args:
            if name in groups:
                texts += map(self.text, groups[name])
                kinds[name] = list(groups[name])
            else:
                texts.append(self.constant(op, name, op.attrs[rule.known[name]]))
                kinds[name] = [dtypes.int32]
        return texts, kinds


def _attrs(
    op: Operation, rule: Rule, definition: TensorFlowOp, tensors: Mapping[str, Sequence[Tensor | DType]]
) -> dict[str, Any]:
    """The attributes of an operation there."""
    attrs: dict[str, Any] = {}
    for arg in definition.inputs:
        kinds = [value.dtype if isinstance(value, Tensor) else value for value in tensors[arg.name]]
        implied = {arg.number: len(kinds), arg.types: kinds, arg.type: kinds[0] if kinds else None}
        attrs |= {name: value for name, value in implied.items() if name in definition.attrs and value is not None}
    for arg, tensor in zip(definition.outputs, op.outputs, strict=False):
        if arg.type in definition.attrs:
            attrs.setdefault(arg.type, tensor.dtype)
    for name, attr in definition.attrs.items():
        value = op.attrs.get(rule.attrs.get(name, name), REQUIRED)
        if name not in attrs and value is not REQUIRED and (value is not None or attr.default is REQUIRED):
            attrs[name] = value
    return attrs


# -- operations that differ ----------------------------------------------------------------------------


@export("Const")
def _const(body: Body, op: Operation) -> None:
    attrs = {"value": op.attrs["value"], "dtype": op.attrs["dtype"]}
    body.made(op, "Const", [], **attrs)


@export("Variable")
def _variable(body: Body, op: Operation) -> None:
    attrs = {key: op.attrs[key] for key in ("dtype", "shape")} | {"shared_name": op.attrs["shared_name"] or op.name}
    body.made(op, "VarHandleOp", [], **attrs)
    # TensorFlow's convert_variables_to_constants fetches this of every variable, under this name.
    read = f"{op.name}/Read/ReadVariableOp"
    if not body.in_function and read not in body.taken:
        body.taken.add(read)
        node = body.node(op, "ReadVariableOp", [op.name], {"dtype": op.attrs["dtype"]}, read)
        node.attr[OWN_PART].b = True


@export("ScatterNd")
def _scatter_nd(body: Body, op: Operation) -> None:
    indices, updates, sizes = op.inputs
    texts = [body.text(tensor) for tensor in op.inputs]
    if sizes.dtype is not indices.dtype:  # one type there
        texts[2] = body.part(op, "sizes", "Cast", texts[2:], SrcT=sizes.dtype, DstT=indices.dtype)
    body.made(op, "ScatterNd", texts, T=updates.dtype, Tindices=indices.dtype)


@export("Assign")
def _assign(body: Body, op: Operation) -> None:
    handle, value = op.inputs
    body.node(op, "AssignVariableOp", [body.text(handle), body.text(value)], {"dtype": value.dtype})


@export("SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN")
def _sparse_segments(body: Body, op: Operation) -> None:
    *inputs, number = op.inputs
    dtype_of = dict(zip(("T", "Tidx", "Tsegmentids"), (tensor.dtype for tensor in inputs), strict=True))
    known = constant_value(number)
    if known is not None and known < 0:  # as many as there are
        there, texts, attrs = op.type, inputs, dtype_of
    else:
        there, texts = f"{op.type}WithNumSegments", [*inputs, number]
        attrs = dtype_of | {"Tnumsegments": number.dtype}
    body.made(op, there, [body.text(tensor) for tensor in texts], **attrs)


@export("DynamicStitch")
def _stitch(body: Body, op: Operation) -> None:
    attrs = {"N": len(op.inputs) // 2, "T": op.outputs[0].dtype}
    body.made(op, "DynamicStitch", [body.text(tensor) for tensor in op.inputs], **attrs)


@export("Conv3D", "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2")
def _conv3d(body: Body, op: Operation) -> None:
    attrs = {"T": op.outputs[0].dtype} | {key: op.attrs[key] for key in ("padding", "data_format")}
    for key in ("strides", "dilations"):
        sizes = list(op.attrs[key])
        attrs[key] = [1, *sizes, 1] if attrs["data_format"] == "NDHWC" else [1, 1, *sizes]
    if op.type == "Conv3DBackpropInputV2":
        attrs["Tshape"] = op.inputs[0].dtype
    body.made(op, op.type, [body.text(tensor) for tensor in op.inputs], **attrs)


@export("RandomUniform", "RandomStandardNormal", "TruncatedNormal")
def _random(body: Body, op: Operation) -> None:
    dtype = op.outputs[0].dtype
    low, high = (op.attrs[key] for key in (("minval", "maxval") if op.type == "RandomUniform" else ("mean", "stddev")))
    scale = high - low if op.type == "RandomUniform" else high
    attrs = {"T": op.inputs[0].dtype, "dtype": dtype, "seed": op.attrs["seed"], "seed2": op.attrs["seed2"]}
    if (low, scale) == (0.0, 1.0):
        body.made(op, op.type, [body.text(op.inputs[0])], **attrs)
        return
    drawn = body.part(op, op.type, op.type, [body.text(op.inputs[0])], **attrs)
    scaled = body.part(op, "scaled", "Mul", [drawn, body.constant(op, "scale", scale, dtype)], T=dtype)
    body.made(op, "AddV2", [scaled, body.constant(op, "low", low, dtype)], T=dtype)


@export("StridedSlice", "StridedSliceGrad", "StridedSliceAssign")
def _strided_slice(body: Body, op: Operation) -> None:
    first = 1 if op.type == "StridedSlice" else 2
    index = op.inputs[first].dtype if len(op.inputs) > first else dtypes.int32
    columns: dict[str, list[Any]] = {"begin": [], "end": [], "strides": []}
    masks = dict.fromkeys(("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"), 0)
    for place, item in enumerate(key_items(op.attrs["key"], op.inputs[first:])):
        bit, parts = 1 << place, [0, 0, 1]
        if item is Ellipsis:
            masks["ellipsis_mask"] |= bit
        elif item is None:
            masks["new_axis_mask"] |= bit
        elif isinstance(item, slice):
            masks["begin_mask"] |= bit if item.start is None else 0
            masks["end_mask"] |= bit if item.stop is None else 0
            given = (item.start, item.stop, item.step)
            parts = [value if part is None else part for part, value in zip(given, parts, strict=True)]
        else:  # TensorFlow does not look at the end
            masks["shrink_axis_mask"] |= bit
            parts = [item, item, 1]
        for column, value in zip(columns.values(), parts, strict=True):
            column.append(value)
    vectors = [_vector(body, op, name, column, index) for name, column in columns.items()]
    attrs = {"T": op.outputs[0].dtype, "Index": index, **masks}
    if op.type == "StridedSliceAssign":
        inputs = [body.text(op.inputs[0]), *vectors, body.text(op.inputs[1])]
        body.node(op, "ResourceStridedSliceAssign", inputs, attrs)
        return
    if op.type == "StridedSlice":
        inputs = [body.text(op.inputs[0]), *vectors]
    else:
        inputs = [body.text(op.inputs[1]), *vectors, body.text(op.inputs[0])]
    body.made(op, op.type, inputs, **attrs)


def _vector(body: Body, op: Operation, name: str, values: Sequence[Any], dtype: DType) -> str:
    if all(isinstance(value, int) for value in values):
        return body.constant(op, name, values, dtype)
    parts = [
        body.text(value) if isinstance(value, Tensor) else body.constant(op, f"{name}_{i}", value, dtype)
        for i, value in enumerate(values)
    ]
    return body.part(op, name, "Pack", parts, N=len(parts), T=dtype)


@export("TensorSummaryV2")
def _tensor_summary(body: Body, op: Operation) -> None:
    made = body.node(op, op.type, [body.text(tensor) for tensor in op.inputs], {"T": op.inputs[1].dtype})
    made.attr["_description"].s = op.attrs["description"].encode()
    body.give(op, op.type, {})


@export("AsString")
def _as_string(body: Body, op: Operation) -> None:
    fill, width, _, precision, kind = _FORMAT.fullmatch(op.attrs["format"]).groups()  # type: ignore[union-attr]
    attrs = {"T": op.inputs[0].dtype, "fill": fill, "scientific": kind == "e", "shortest": kind == "g"}
    attrs |= {"width": int(width or -1), "precision": int(precision or -1)}
    body.made(op, "AsString", [body.text(op.inputs[0])], **attrs)


_FORMAT: Final = re.compile(r"%([ 0+-]?)([0-9]*)(\.([0-9]+))?([defgs])")


@export("DecodeImage")
def _decode_image(body: Body, op: Operation) -> None:
    """TensorFlow 1.15 does not know the type. Its DecodePng reads JPEG, too, but no BMP, and one frame of a GIF."""
    (contents,), image = op.inputs, op.outputs[0]
    whole = image.dtype in (dtypes.uint8, dtypes.uint16)
    attrs = {"channels": op.attrs["channels"], "dtype": image.dtype if whole else dtypes.uint8}
    if whole:
        body.keep(op, body.made(op, "DecodePng", [body.text(contents)], **attrs))
        return
    pixels = body.part(op, "pixels", "DecodePng", [body.text(contents)], **attrs)
    wide = body.part(op, "wide", "Cast", [pixels], SrcT=dtypes.uint8, DstT=image.dtype)
    scale = body.constant(op, "scale", 1 / 255, image.dtype)
    body.keep(op, body.made(op, "Mul", [wide, scale], T=image.dtype))
