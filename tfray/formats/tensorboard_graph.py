"""A graph in the form in which TensorBoard draws it.

Branches and loop bodies become scopes within the operation that holds them, named after the region. Values flow from
the operation's inputs to those of the region, and from what the region returns to the operation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import numpy as np

from tfray.formats.graph_proto import AttrList, AttrValue, GraphDef, NodeDef
from tfray.formats.step_stats import RunMetadata
from tfray.formats.tensor_proto import make_tensor_proto
from tfray.framework.dtypes import DType
from tfray.framework.graph import Graph
from tfray.framework.plain_graph import PlainGraph, PlainNode, PlainRegion, free_name
from tfray.framework.tensor_shape import TensorShape

MAX_CONSTANT_BYTES: Final = 1024
"""Bytes. The value of a larger constant is left out, because TensorBoard does not show it."""

_PRODUCER: Final = 27  # the version of the graph's form, in TensorFlow's counting


def to_graph_proto(graph: Graph | PlainGraph) -> GraphDef:
    """The message that describes a graph to TensorBoard."""
    return draw_graph(graph)[0]


def draw_graph(graph: Graph | PlainGraph) -> tuple[GraphDef, dict[str, str]]:
    """The message that describes a graph to TensorBoard.

    Returns:
        The message, and the names in it of the operations of regions, by their own names.
    """
    nodes = (graph.as_plain() if isinstance(graph, Graph) else graph).node
    proto, drawing = GraphDef(), _Drawing(nodes)
    proto.versions.producer = _PRODUCER
    proto.node.extend(drawing.nodes(nodes, {}))
    return proto, drawing.names


def rename_operations(run_metadata: RunMetadata, names: Mapping[str, str]) -> RunMetadata:
    """The record of a step, with operations named as `draw_graph` has named them."""
    renamed = RunMetadata()
    renamed.CopyFrom(run_metadata)
    for device in renamed.step_stats.dev_stats:
        for stats in device.node_stats:
            if stats.node_name in names:
                stats.node_name = names[stats.node_name]
    return renamed


class _Drawing:
    """Turns operations, and those of their regions, into nodes of one flat graph."""

    def __init__(self, nodes: list[PlainNode]) -> None:
        self._taken = {node.name for node in nodes}
        self.names: dict[str, str] = {}

    def nodes(self, nodes: list[PlainNode], renamed: Mapping[str, str]) -> Iterator[NodeDef]:
        """The nodes of operations, of which some are `renamed`, each behind those of its regions."""
        for node in nodes:
            inputs = [_renamed_input(text, renamed) for text in node.input]
            drawn = NodeDef(name=renamed.get(node.name, node.name), op=node.op, device=node.device)
            returned: list[str] = []
            for name, value in node.attr.items():
                if isinstance(value, PlainRegion):
                    passed = len(value.inputs) - node.attr.get("parameters", 0)
                    yield from self._region(drawn.name, name, value, inputs, passed, returned)
                elif (attr := _attr_value(value)) is not None:
                    drawn.attr[name].CopyFrom(attr)
            drawn.input.extend(_ordered([*inputs, *returned]))
            if node.shapes:
                drawn.attr["_output_shapes"].list.shape.extend([shape.as_proto() for shape in node.shapes])
            yield drawn

    def _region(
        self, owner: str, region: str, content: PlainRegion, inputs: list[str], passed: int, returned: list[str]
    ) -> Iterator[NodeDef]:
        """The nodes of a region, to whose last inputs the last `passed` of `inputs` go; adds to `returned`."""
        scope = free_name(f"{owner}/{region}", self._taken)
        renamed = {node.name: self._name_for(node.name, owner, scope) for node in content.node}
        self.names |= renamed
        inner = [renamed[name.partition(":")[0]] for name in content.inputs[len(content.inputs) - passed :]]
        data = [text for text in inputs if not text.startswith("^")]
        sources = dict(zip(inner, data[len(data) - passed :], strict=True))
        for node in self.nodes(content.node, renamed):
            if node.name in sources:
                node.input.append(sources[node.name])
            yield node
        returned += [_renamed_input(text, renamed) for text in content.outputs]

    def _name_for(self, name: str, owner: str, scope: str) -> str:
        """The name of a region's operation below its scope."""
        # The owner of a region within a region has been renamed: the last part of its scope tells what to cut off.
        head, found, rest = name.partition(f"{owner.rpartition('/')[2]}/")
        wanted = f"{scope}/{rest if found and (not head or head.endswith('/')) else name}"
        unique = free_name(wanted, self._taken)
        self._taken.add(unique)
        return unique


def _ordered(inputs: Iterable[str]) -> list[str]:
    """Different inputs, the control inputs last, as the form demands."""
    return sorted(dict.fromkeys(inputs), key=lambda text: text.startswith("^"))


def _renamed_input(text: str, renamed: Mapping[str, str]) -> str:
    """An input as TensorFlow writes it, without the index of a first output."""
    control = text.startswith("^")
    name, _, index = text.removeprefix("^").partition(":")
    name = renamed.get(name, name)
    if control:
        return f"^{name}"
    return f"{name}:{index}" if index not in ("", "0") else name


def _attr_value(value: Any) -> AttrValue | None:
    """The message for an attribute's value; None for one that there is no message for."""
    if isinstance(value, (list, tuple)):
        return _list_value(value)
    if isinstance(value, np.ndarray):
        return _array_value(value)
    kind = _kind(value)
    return None if kind is None else AttrValue(**{kind: _encoded(kind, value)})


def _kind(value: Any) -> str | None:
    if isinstance(value, (bool, np.bool_)):
        return "b"
    if isinstance(value, (int, np.integer)):
        return "i" if -(1 << 63) <= value < 1 << 63 else None
    if isinstance(value, (float, np.floating)):
        return "f"
    if isinstance(value, (str, bytes)):
        return "s"
    if isinstance(value, DType):
        return "type"
    return "shape" if isinstance(value, TensorShape) else None


def _encoded(kind: str, value: Any) -> Any:
    if kind == "s":
        return value.encode() if isinstance(value, str) else value
    if kind == "type":
        return value.as_datatype_enum
    if kind == "b":
        return bool(value)
    return value.as_proto() if kind == "shape" else value


def _list_value(values: Any) -> AttrValue | None:
    kinds = {_kind(value) for value in values}
    if not kinds:
        return AttrValue(list=AttrList())
    kind = kinds.pop()
    if kind is None or kinds:
        return None
    return AttrValue(list=AttrList(**{kind: [_encoded(kind, value) for value in values]}))


def _array_value(array: np.ndarray[Any, Any]) -> AttrValue:
    size = sum(map(len, array.reshape(-1))) if array.dtype == object else array.nbytes
    if size > MAX_CONSTANT_BYTES:
        return AttrValue(s=f"{array.dtype} of shape {list(array.shape)}, {size} bytes".encode())
    return AttrValue(tensor=make_tensor_proto(array))
