"""TensorFlow 1's control flow, of Switch, Merge and frames, as functions with If and While operations.

    graph = functionalize(graph, keep=["loss:0"])

A pass on messages in three steps: frames become While operations, innermost first (`tfray.exchange.loops`); in each of
their functions, and in the graph, what Switches and Merges choose becomes If operations (`tfray.exchange.branches`);
then the functions are written into the library.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tfray.errors import InvalidArgumentError
from tfray.exchange.branches import graph_with_branches
from tfray.exchange.flow_graph import LOW_LEVEL, Body, Node, Tensor, Workshop, check_low_level
from tfray.exchange.loops import with_loops


def functionalize(graph: Any, keep: Iterable[str] = ()) -> Any:
    """An equal graph without TensorFlow 1's low-level control flow.

    Operations outside of branches and loops keep their names. So do each Merge and Exit outside of others: an Identity
    of its name returns the same. An operation with effects in a branch, of which nothing outside reads a result, leaves
    a NoOp of its name that runs the branch. All else that stands in branches and loops moves into functions, and its
    name with it, as far as `keep` does not name it.

    One thing differs: a fetch of one result of a loop computes the loop's other results too. To have only what some
    fetches need, cut the graph down to them before.

    Args:
        graph: A GraphDef message. It is not changed.
        keep: Names of tensors (``name:0``) and of operations in branches that will be fetched by these names. To fetch
            such a tensor fails in a step whose predicates do not lead to it, as in TensorFlow; an operation just does
            not run then.

    Returns:
        `graph` itself, where it has none of these operations; otherwise a new message, its functions in its library.

    Raises:
        InvalidArgumentError: The graph is malformed; the message names an operation: an input that is not there, a
            Merge that no Switch feeds, an Exit without frame, a frame that no Exit leaves. Or `keep` names what stands
            in a loop.
    """
    if not any(node.op in LOW_LEVEL for node in graph.node):
        return graph
    workshop = Workshop(graph)
    nodes = read_nodes(graph.node)
    outside = with_loops(nodes, workshop)
    keep = list(keep)
    _check_kept(keep, nodes, outside)
    functional = type(graph)()
    functional.CopyFrom(graph)
    del functional.node[:]
    writer = _Writer(functional.library, workshop)
    for node in graph_with_branches(outside, workshop, keep):
        writer.write(functional.node.add(), node, [_edge(each) for each in node.inputs])
    _forget_strangers(functional.node)
    return functional


def read_nodes(messages: Iterable[Any]) -> list[Node]:
    """The operations of a GraphDef. Raises `InvalidArgumentError` for a name that stands twice, or for nothing."""
    nodes: dict[str, Node] = {}
    for message in messages:
        if message.name in nodes:
            raise InvalidArgumentError(f"Node {message.name!r} is not unique: two operations have this name")
        nodes[message.name] = Node(message.name, message.op, message)
    for node in nodes.values():
        for text in node.message.input:
            name, _, index = text.lstrip("^").partition(":")
            if name not in nodes or not (index or "0").isdecimal():
                raise node.error(f"has an input {text!r}, which is not in the graph")
            if text.startswith("^"):
                node.controls.append(nodes[name])
            else:
                node.inputs.append((nodes[name], int(index or 0)))
    for node in nodes.values():
        check_low_level(node)
    return list(nodes.values())


def write_node(message: Any, node: Node, inputs: Sequence[str]) -> None:
    """Make `message` that of an operation with these inputs."""
    message.CopyFrom(node.message)
    message.name, message.op = node.name, node.op
    del message.input[:]
    message.input.extend([*inputs, *(f"^{each.name}" for each in node.controls)])


def _check_kept(keep: Sequence[str], nodes: Sequence[Node], outside: Sequence[Node]) -> None:
    names = {node.name for node in outside}
    inside = {node.name: node for node in nodes if node.name not in names}
    for name in keep:
        node = inside.get(name.lstrip("^").partition(":")[0])
        if node is not None:
            raise node.error("stands in a loop: it has a value in each turn, and cannot be fetched")


class _Writer:
    """Writes operations, and the functions of those that have some."""

    def __init__(self, library: Any, workshop: Workshop) -> None:
        self._library = library
        self._workshop = workshop

    def write(self, message: Any, node: Node, inputs: Sequence[str]) -> None:
        """Make `message` that of an operation with these inputs, and write its functions."""
        write_node(message, node, inputs)
        attrs = ("then_branch", "else_branch") if node.op in ("If", "StatelessIf") else ("cond", "body")
        for attr, body in zip(attrs, node.bodies, strict=False):
            name = self._workshop.unique_name(f"{node.name.replace('/', '_')}_{attr.partition('_')[0]}")
            message.attr[attr].func.name = name
            self._write_function(name, body)

    def _write_function(self, name: str, body: Body) -> None:
        function = self._library.function.add()
        signature = function.signature
        signature.name = name
        signature.is_stateful = any(map(self._workshop.has_effects, body.nodes))
        names = {node.name for node in body.nodes}
        edges: dict[Tensor, str] = {}
        for index, arg in enumerate(body.args):
            written = signature.input_arg.add()
            written.name = _free(f"arg_{index}", names)
            written.type = arg.dtype
            edges[arg, 0] = written.name
        for index, output in enumerate(body.outputs):
            written = signature.output_arg.add()
            written.name, written.type = f"result_{index}", self._workshop.dtype(output)
            function.ret[written.name] = self._edge(output, edges)
        for index, node in enumerate(body.controls):
            signature.control_output.append(f"effect_{index}")
            function.control_ret[f"effect_{index}"] = node.name
        for node in body.nodes:
            self.write(function.node_def.add(), node, [self._edge(each, edges) for each in node.inputs])
        _forget_strangers(function.node_def)

    def _edge(self, tensor: Tensor, edges: dict[Tensor, str]) -> str:
        """A tensor as functions write it: the name of an input, or operation, output and number."""
        if tensor not in edges:
            edges[tensor] = f"{tensor[0].name}:{self._workshop.place(tensor)[0]}"
        return edges[tensor]


def _edge(tensor: Tensor) -> str:
    """A tensor as graphs write it."""
    node, index = tensor
    return f"{node.name}:{index}" if index else node.name


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _forget_strangers(messages: Sequence[Any]) -> None:
    """Take the names of operations that are not among these out of the groups that share a device."""
    names = {message.name for message in messages}
    for message in messages:
        if "_class" in message.attr:
            groups = message.attr["_class"].list.s
            there = [each for each in groups if not each.startswith(b"loc:@") or each[5:].decode() in names]
            if len(there) < len(groups):
                del message.attr["_class"]
                if there:
                    message.attr["_class"].list.s.extend(there)
