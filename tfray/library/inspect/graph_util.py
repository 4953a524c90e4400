"""`tf.graph_util`: graphs, cut down and frozen for deployment."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.exchange.graph_import import import_graph_def
from tfray.formats.graph_proto import GraphDef, NodeDef
from tfray.formats.message import stand_in_of
from tfray.formats.stand_in import contents_of, with_marks
from tfray.framework import dtypes
from tfray.framework.dtypes import DType
from tfray.framework.graph import Graph, Operation
from tfray.framework.plain_graph import PlainGraph, PlainNode, PlainRegion, messages
from tfray.framework.tensor_shape import TensorShape

# fmt: off
__all__ = [
    "convert_variables_to_constants", "extract_sub_graph", "freeze", "import_graph_def", "must_run_on_cpu",
    "remove_training_nodes", "tensor_shape_from_node_def_name",
]
# fmt: on

GraphT = TypeVar("GraphT", PlainGraph, GraphDef)

_VARIABLES = (
    "AssignAddVariableOp", "AssignSubVariableOp", "AssignVariableOp", "ResourceScatterAdd", "ResourceScatterSub",
    "ResourceScatterUpdate", "VarHandleOp", "Assign", "AssignAdd", "AssignSub", "ScatterAdd", "ScatterSub",
    "ScatterUpdate", "Variable", "VariableV2",
)  # fmt: skip


def must_run_on_cpu(node: Operation | NodeDef, pin_variables_on_cpu: bool = False) -> bool:
    """Whether TensorFlow has no GPU kernel for an operation. Here every operation that can runs on a GPU.

    So are strings and int32 constants, a `tf.dynamic_stitch` of int32, and a cast from int32.

    Args:
        node: The operation, or its form in a `tf.GraphDef`.
        pin_variables_on_cpu: Whether variables and their updates count as such, too.
    """
    node = node.node_def if isinstance(node, Operation) else node
    if pin_variables_on_cpu and node.op in _VARIABLES:
        return True
    attribute = {"Const": "dtype", "DynamicStitch": "T", "Cast": "SrcT"}.get(node.op)
    dtype = None if attribute is None or attribute not in node.attr else node.attr[attribute].type
    return dtype == int(dtypes.int32) or (dtype == int(dtypes.string) and node.op == "Const")


def tensor_shape_from_node_def_name(graph: Graph, input_name: str) -> TensorShape:
    """The static shape of a tensor of `graph` by its name as an input: ``"a"`` stands for ``"a:0"``.

    Raises:
        KeyError: There is no such tensor.
    """
    return graph.get_tensor_by_name(input_name if ":" in input_name else f"{input_name}:0").shape


def extract_sub_graph(graph_def: GraphT, dest_nodes: Iterable[str]) -> GraphT:
    """The part of a graph that computes `dest_nodes`: these operations and all that they depend on.

    Args:
        graph_def: The graph.
        dest_nodes: Names of operations.

    Raises:
        InvalidArgumentError: One of them is not there.
    """
    if isinstance(dest_nodes, str):
        raise TypeError("dest_nodes must be a list of names")
    graph = with_marks(graph_def)
    by_name = {node.name: node for node in graph.node}
    waiting = [name.partition(":")[0] for name in dest_nodes]
    needed: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in needed:
            continue
        if name not in by_name:
            raise InvalidArgumentError(f"{name} is not in graph")
        needed.add(name)
        waiting += [text.removeprefix("^").partition(":")[0] for text in by_name[name].input]
    return with_nodes(graph_def, (node for node in graph.node if node.name in needed))


def with_nodes(graph_def: GraphT, nodes: Iterable[Any]) -> GraphT:
    """A graph with other operations, which may be some of those that ``with_marks(graph_def)`` has."""
    if isinstance(graph_def, PlainGraph):
        return replace(graph_def, node=list(nodes))
    made = GraphDef(
        **{name: getattr(graph_def, name) for name in ("library", "versions") if with_marks(graph_def).HasField(name)}
    )
    with_marks(made).node.extend(nodes)
    apart: GraphDef = stand_in_of(GraphDef, with_marks(made), contents_of(graph_def))
    return apart


def remove_training_nodes(input_graph: GraphDef, protected_nodes: Collection[str] | None = None) -> GraphDef:
    """A graph without operations that only pass their input on or check it.

    Args:
        input_graph: The graph.
        protected_nodes: Names of operations to keep.
    """
    nodes = with_marks(input_graph).node
    protected = set(protected_nodes or ())
    waits = {f"^{node.name}" for node in nodes if node.op == "CheckNumerics" and node.name not in protected}
    inputs = {node.name: [text for text in node.input if text not in waits] for node in nodes}
    for node in nodes:
        # What an operation is colocated with, or waits for, must stay.
        protected.update(text[1:] for text in inputs[node.name] if text.startswith("^"))
        groups = node.attr["_class"].list.s if "_class" in node.attr else ()
        protected.update({group.decode().removeprefix("loc:@") for group in groups} - {node.name})
    passing = [node.name for node in nodes if node.op in ("Identity", "CheckNumerics") and node.name not in protected]
    source = {name: inputs[name][0] for name in passing if len(inputs[name]) == 1 and inputs[name][0][0] != "^"}
    kept = []
    for node in nodes:
        if node.name not in source:
            made = NodeDef()
            made.CopyFrom(node)
            made.ClearField("input")
            made.input.extend(_through(text, source) for text in inputs[node.name])
            kept.append(made)
    return with_nodes(input_graph, kept)


def _through(text: str, source: Mapping[str, str]) -> str:
    """The input of an operation, or what it is passed on from."""
    while (name := text.removesuffix(":0")) in source:
        text = source[name]
    return text


def convert_variables_to_constants(
    sess: Any,
    input_graph_def: GraphT,
    output_node_names: Sequence[str],
    variable_names_whitelist: Collection[str] | None = None,
    variable_names_blacklist: Collection[str] | None = None,
) -> GraphT:
    """A graph whose variables have become constants, cut down to what some operations need.

    Args:
        sess: The session that holds the values.
        input_graph_def: The graph: that of the session, or part of it.
        output_node_names: Names of the operations to keep, with what they need.
        variable_names_whitelist: Convert only these variables.
        variable_names_blacklist: Do not convert these.

    Raises:
        InvalidArgumentError: An operation is not there, or one that is kept changes a variable.
    """
    if isinstance(input_graph_def, GraphDef):
        plain = messages().plain_graph(extract_sub_graph(input_graph_def, output_node_names))
        lists = variable_names_whitelist, variable_names_blacklist
        made: GraphDef = messages().graph_message(
            convert_variables_to_constants(sess, plain, output_node_names, *lists)
        )
        return made
    cut = extract_sub_graph(input_graph_def, output_node_names)
    chosen = [
        node
        for node in cut.node
        if node.op == "Variable"
        and (variable_names_whitelist is None or node.name in variable_names_whitelist)
        and node.name not in (variable_names_blacklist or ())
    ]
    values = sess.run({node.name: f"{node.name}:0" for node in chosen}) if chosen else {}
    frozen = freeze(cut, {name: np.asarray(value) for name, value in values.items()})
    return extract_sub_graph(frozen, output_node_names)


def freeze(graph_def: PlainGraph, values: Mapping[str, np.ndarray[Any, Any]]) -> PlainGraph:
    """The graph with constants in place of variables.

    Args:
        graph_def: The graph.
        values: Value of each variable, by the name of its operation.
    """
    known: dict[str, tuple[DType, TensorShape]] = {}
    nodes = []
    for node in graph_def.node:
        if node.op == "Variable" and node.name in values:
            dtype, value = node.attr["dtype"], values[node.name]
            known[f"{node.name}:0"] = dtype, TensorShape(value.shape)
            attrs = {"value": np.asarray(value, dtype.numpy), "dtype": dtype}
            nodes.append(replace(node, op="Const", input=[], attr=attrs, shapes=[TensorShape(value.shape)]))
        else:
            nodes.append(_without_handles(node, known))
    return replace(graph_def, node=nodes)


def _full(text: str) -> str:
    return text if ":" in text or text.startswith("^") else f"{text}:0"


def _without_handles(node: PlainNode, known: Mapping[str, tuple[DType, TensorShape]]) -> PlainNode:
    """An operation that takes values where it took handles."""
    taken = [known.get(_full(text)) for text in node.input]
    if not any(taken):
        return node
    attrs = {name: value for name, value in node.attr.items() if name != "_class"}
    inputs = list(node.input)
    if any(isinstance(value, PlainRegion) for value in attrs.values()):
        return replace(node, attr=_with_regions(node, attrs, taken))
    dtype, shape = next(each for each in taken if each is not None)
    if node.op in ("ReadVariableOp", "ReadOrDefault"):
        return replace(node, op="Identity", input=[inputs[0], *_controls(inputs)], attr={"T": dtype})
    if node.op == "ResourceGather":
        wanted = {"axis": 0, "batch_dims": 0, "T": dtype, "Tindices": attrs["Tindices"]}
        return replace(node, op="GatherV2", attr=wanted)
    if node.op == "IsVariableInitialized":
        return replace(node, op="Const", input=_controls(inputs), attr={"value": np.array(True), "dtype": dtypes.bool_})
    if node.op == "VariableShape" and shape.is_fully_defined():
        out = attrs["out_type"]
        value = np.array(shape.as_list(), out.numpy)
        return replace(node, op="Const", input=_controls(inputs), attr={"value": value, "dtype": out})
    raise InvalidArgumentError(
        f"operation {node.name!r} ({node.op}) uses variable {inputs[0]!r} otherwise than by reading it, and cannot "
        "be frozen: export the graph without it, or with its variables",
        op_name=node.name,
    )


def _controls(inputs: Iterable[str]) -> list[str]:
    return [text for text in inputs if text.startswith("^")]


def _with_regions(
    node: PlainNode, attrs: Mapping[str, Any], taken: Sequence[tuple[DType, TensorShape] | None]
) -> dict[str, Any]:
    """The attributes of a branch or a loop whose regions take values where they took handles."""
    taken = taken[: len(node.input) - len(_controls(node.input))]
    parameters = attrs.get("parameters", 0)
    changed = dict(attrs)
    for name, region in attrs.items():
        if isinstance(region, PlainRegion):
            passed = taken[len(taken) - len(region.inputs) + parameters :]
            entering = zip(region.inputs[parameters:], passed, strict=True)
            changed[name] = _region(region, {_full(inner): value for inner, value in entering if value is not None})
    return changed


def _region(region: PlainRegion, known: dict[str, tuple[DType, TensorShape]]) -> PlainRegion:
    nodes = []
    for node in region.node:
        entered = known.get(f"{node.name}:0") if node.op == "RegionInput" else None
        if entered is not None:
            dtype, shape = entered
            nodes.append(replace(node, attr={**node.attr, "dtype": dtype, "shape": shape}, shapes=[shape]))
        else:
            nodes.append(_without_handles(node, known))
    return PlainRegion(nodes, region.inputs, region.outputs)
