"""Graphs of TensorFlow written by hand."""

from __future__ import annotations

from tfray.formats.graph_proto import GraphDef


def graph_of(*nodes):
    """A GraphDef of (name, op, inputs) or (name, op, inputs, attributes)."""
    graph = GraphDef()
    for name, op, inputs, *rest in nodes:
        node = graph.node.add()
        node.name, node.op = name, op
        node.input.extend(inputs.split())
        for key, value in (rest[0] if rest else {}).items():
            if isinstance(value, bool):
                node.attr[key].b = value
            elif isinstance(value, int):
                node.attr[key].type = value
            else:
                node.attr[key].s = value.encode()
    return graph
