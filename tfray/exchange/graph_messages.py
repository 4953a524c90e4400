"""Graphs as the messages that users see: `Graph.as_graph_def`, `Operation.node_def`, and what is made of them again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tfray.bulk import making_much
from tfray.exchange import own_graphs
from tfray.exchange.absent_inputs import AbsentInputs
from tfray.exchange.attributes import leave_out_defaults
from tfray.exchange.from_tensorflow import from_tensorflow
from tfray.exchange.op_table import operation_type
from tfray.exchange.to_tensorflow import node_of, to_tensorflow
from tfray.formats.graph_proto import PRODUCER, AttrValue, GraphDef, NodeDef, VersionDef
from tfray.formats.stand_in import contents_of, with_marks
from tfray.framework.allowed_uses import all_nodes, reach_of
from tfray.framework.call_errors import damage_reported
from tfray.framework.graph import Graph, Operation, Tensor
from tfray.framework.importer import from_graph_def, import_graph_def
from tfray.framework.plain_graph import PlainGraph, PlainNode, PlainRegion
from tfray.framework.region import ops_within


@making_much()
def graph_message(graph: Graph | PlainGraph, add_shapes: bool = False, strip_default_attrs: bool = False) -> GraphDef:
    """The message of a graph, with the static shapes of outputs in ``_output_shapes`` if `add_shapes`.

    With `strip_default_attrs` it has no attributes that have their defaults.

    A graph that was made in this process may use what it likes when it is imported again, as long as the message stays
    as it is.
    """
    is_loaded = False
    if isinstance(graph, PlainGraph):
        is_loaded = any(node.is_loaded for node, _ in all_nodes(graph.node))
        graph = from_graph_def(graph)
    message = to_tensorflow(graph, add_shapes)
    if strip_default_attrs:
        leave_out_defaults(with_marks(message))
    reaching = any(op.op_def.reach is not None for outer in graph.get_operations() for op in ops_within(outer))
    if reaching and not is_loaded:
        own_graphs.remember(message)
    return message


def versions_message(graph: Graph) -> VersionDef:
    """The versions that the message of a graph has."""
    producer, min_consumer = graph.versions or (PRODUCER, 0)
    return VersionDef(producer=producer, min_consumer=min_consumer)


def node_message(op: Operation) -> NodeDef:
    """The message of an operation. What TensorFlow needs besides it is left out.

    A variable is of the type by which programs know it, in functions that choose devices: TensorFlow's for variables
    without a handle.
    """
    node = node_of(op)
    if node.op == "VarHandleOp":
        node.op = "VariableV2"
    return node


@making_much()
def plain_graph(message: GraphDef, keep: Iterable[str] = (), given: Mapping[str, Tensor] | None = None) -> PlainGraph:
    """The graph of a message; see `from_tensorflow` for what it raises and for `keep`.

    What `given` names, as `given_tensors` returns it, may be absent: the graph names it too.
    """
    contents = contents_of(message)  # another thread may ask the message for them meanwhile, which then lets go of them
    marked = with_marks(message)
    absent = AbsentInputs(marked, given or {})
    graph = absent.named(from_tensorflow(absent.filled(marked), keep))
    del contents
    if any(reach_of(node) is not None for node, _ in all_nodes(graph.node)) and own_graphs.is_own(message):
        graph.node = [_as_own(node) for node in graph.node]
    return graph


def from_json(data: bytes) -> GraphDef:
    """The message of a graph in tfray's own form, which is JSON."""
    plain = PlainGraph.FromString(data)
    with damage_reported("a graph in tfray's own form"):
        return graph_message(plain)


def _as_own(node: PlainNode) -> PlainNode:
    attrs: dict[str, Any] = {
        name: replace(value, node=[_as_own(inner) for inner in value.node]) if isinstance(value, PlainRegion) else value
        for name, value in node.attr.items()
    }
    return replace(node, attr=attrs, is_loaded=False)


def added_operation(
    graph: Graph, op_type: str, inputs: Sequence[Tensor], name: str | None, attrs: Mapping[str, AttrValue]
) -> Operation:
    """See `Graph.create_op`."""
    for place, tensor in enumerate(inputs):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"Input #{place} is not a tensor: {tensor}")
    definition = operation_type(op_type)
    if definition is None:
        raise RuntimeError(f"Op type not registered '{op_type}': neither TensorFlow nor tfray has it")
    wanted = name or op_type
    node = NodeDef(op=op_type, name=wanted[:-1] if wanted.endswith("/") else graph.unique_name(wanted))
    for key, value in attrs.items():
        node.attr[key].CopyFrom(value)
    rest = list(inputs)
    for later, arg in zip(reversed(range(len(definition.inputs))), definition.inputs, strict=True):
        is_list = arg.number or arg.types
        count = node.attr[arg.number].i if arg.number in node.attr else len(rest) - later if is_list else 1
        own, rest = rest[:count], rest[count:]
        if arg.number:
            node.attr[arg.number].i = len(own)
        if arg.types and arg.types not in node.attr:
            node.attr[arg.types].list.type.extend(tensor.dtype.as_datatype_enum for tensor in own)
        if arg.type in definition.attrs and arg.type not in node.attr and own:
            node.attr[arg.type].type = own[0].dtype.base_dtype.as_datatype_enum
    given = {tensor.name: tensor for tensor in inputs}
    node.input.extend(tensor.name for tensor in inputs)
    with graph.as_default():
        plain = plain_graph(GraphDef(node=[node]), [node.name], given)
        found: Any = import_graph_def(plain, given, [node.name], "")
    for key, value in graph.scope_attrs.items():  # an import does not take these over
        found[0].attrs.setdefault(key, value)
    return found[0]
