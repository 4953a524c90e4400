"""Graphs as the messages that users see: `Graph.as_graph_def`, `Operation.node_def`, and what is made of them again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from tfray.bulk import making_much
from tfray.exchange import own_graphs
from tfray.exchange.absent_inputs import AbsentInputs
from tfray.exchange.attributes import leave_out_defaults
from tfray.exchange.from_tensorflow import from_tensorflow
from tfray.exchange.to_tensorflow import node_of, to_tensorflow
from tfray.formats.graph_proto import PRODUCER, GraphDef, NodeDef, VersionDef
from tfray.formats.stand_in import contents_of, with_marks
from tfray.framework.allowed_uses import all_nodes, reach_of
from tfray.framework.call_errors import damage_reported
from tfray.framework.graph import Graph, Operation, Tensor
from tfray.framework.importer import from_graph_def
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
