"""The gradients of TensorFlow 1's TensorArrays as values.

    graph = with_gradient_arrays_as_values(graph)

TensorFlow keeps the gradient of a TensorArray in a second one, which a step finds by the first one's handle and the
name of the source: TensorArrayGradV3 makes it when it is first asked for, and each write adds to what is there. What
orders writes and reads are the *flows* that each write returns: numbers without meaning that pass through branches,
loops, stacks and sums. Here the flow itself becomes the gradient: a list of tensors, in which what nothing was added to
is missing. So it goes through a loop as one of its variables, and a sum of flows is a sum of gradients. Where one flow
orders several arrays, each has a copy of the operations that pass it on.

What reads a gradient also takes the array that it is the gradient of, which has the shapes of zeros for what is
missing. TensorFlow lets TensorArrayGradV3 wait for that array's writes: there this pass finds it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from tfray.errors import UnimplementedError
from tfray.exchange.flow_graph import ENTERS, EXITS, MERGES, NEXT_ITERATIONS, SWITCHES, Node, Tensor, Workshop
from tfray.exchange.functionalize import read_nodes, write_node

GRADIENTS: Final = frozenset({"TensorArrayGradV3", "TensorArrayGradWithShape"})
_WRITES: Final = {
    "TensorArrayWriteV3": "TensorArrayAccumulate",
    "TensorArrayScatterV3": "TensorArrayAccumulateRows",
    "TensorArraySplitV3": "TensorArrayAccumulateParts",
}
"""What changes an array, and what adds to a gradient in its place."""

_READS: Final = {
    "TensorArrayReadV3": "TensorArrayReadLike",
    "TensorArrayGatherV3": "TensorArrayGatherLike",
    "TensorArrayConcatV3": "TensorArrayConcatLike",
}
_OTHERS: Final = frozenset({"TensorArraySizeV3", "TensorArrayCloseV3"})
_IDENTITIES: Final = frozenset({"Identity", "RefIdentity", "StopGradient", "PreventGradient"})
_FORWARDS: Final = _IDENTITIES | SWITCHES | ENTERS | EXITS | NEXT_ITERATIONS
"""What returns its first input."""

_SUMS: Final = frozenset({"Add", "AddV2", "AddN", "AccumulateNV2"})
_PASSES: Final = _FORWARDS | _SUMS | MERGES | {"StackPushV2", "StackPopV2"}
_VARIANT: Final = 21
_RESOURCE: Final = 20


def with_gradient_arrays_as_values(graph: Any) -> Any:
    """An equal graph without TensorArrayGradV3, whose operations keep their names.

    It may have types that TensorFlow does not have: those of `tfray.exchange.op_table.operation_type`.

    Args:
        graph: A GraphDef message. It is not changed.

    Returns:
        `graph` itself, where it has no gradients of TensorArrays; otherwise a new message.

    Raises:
        InvalidArgumentError: The graph is malformed; the message names an operation.
        UnimplementedError: It is not known which array a handle stands for.
    """
    if not any(node.op in GRADIENTS for node in graph.node):
        return graph
    nodes = _GradientArrays(read_nodes(graph.node), Workshop(graph)).rebuilt()
    rebuilt = type(graph)()
    rebuilt.CopyFrom(graph)
    del rebuilt.node[:]
    for node in nodes:
        write_node(
            rebuilt.node.add(), node, [f"{each.name}:{index}" if index else each.name for each, index in node.inputs]
        )
    return rebuilt


@dataclass(frozen=True)
class _Array:
    """A TensorArray, or the gradient of one.

    Attributes:
        creator: The TensorArrayV3.
        source: For a gradient, the name of its source.
    """

    creator: Node
    source: str | None = None

    @property
    def is_gradient(self) -> bool:
        """Whether it is the gradient of an array."""
        return self.source is not None


class _GradientArrays:
    """The operations of a graph while gradients of arrays become values. Operations are changed in their places."""

    def __init__(self, nodes: list[Node], workshop: Workshop) -> None:
        self.nodes = nodes
        self.workshop = workshop
        # As they were before any change:
        self.ops = {node: node.op for node in nodes}
        self.inputs = {node: list(node.inputs) for node in nodes}
        self.controls = {node: list(node.controls) for node in nodes}
        self.readers: dict[Tensor, list[tuple[Node, int]]] = {}
        self.stacks: dict[Node, list[Node]] = {}
        for node in nodes:
            for position, tensor in enumerate(node.inputs):
                self.readers.setdefault(tensor, []).append((node, position))
            if node.op in ("StackPushV2", "StackPopV2"):
                self.stacks.setdefault(self._stack(node), []).append(node)
        self.arrays = {node: self.array_of(node.inputs[0]) for node in nodes if node.op in _USES}
        created = [_Array(node) for node in nodes if node.op == "TensorArrayV3"]
        gradients = [self._gradient(node) for node in nodes if node.op in GRADIENTS]
        self.owners: dict[Node, _Array] = {}
        arrays = dict.fromkeys([*created, *gradients])
        self.own = {array: self._reached(array, past_others=False) for array in arrays}
        self.reached = {array: self._reached(array, past_others=True) for array in arrays}
        for array, flows in self.own.items():
            for node, _ in flows:
                self.owners.setdefault(node, array)
        self.carriers: dict[tuple[_Array, Node], Node] = {}
        self.absent: dict[Tensor, Tensor] = {}

    def rebuilt(self) -> list[Node]:
        """The operations, with those that were added."""
        passing = {node for node in self.nodes if self._passes_handle(node)}
        for node in list(self.nodes):
            array = self.arrays.get(node)
            if self.ops[node] in GRADIENTS:
                self._leave(node, [self.inputs[node][1]])
            elif array is not None and array.is_gradient:
                self._convert(node, array)
            elif node in passing:
                self._leave(node, [])
        for node, array in self.owners.items():
            if self.ops[node] in _PASSES:
                self._carrier(array, node)
        return self.nodes

    # -- which array ----------------------------------------------------------------------------------

    @functools.cache  # noqa: B019 (lives as long as the pass)
    def array_of(self, handle: Tensor) -> _Array:
        """The array that a handle stands for."""
        node = self._origin(handle)
        if self.ops[node] in GRADIENTS:
            return self._gradient(node)
        if self.ops[node] == "StackPopV2":
            pushed = next((each for each in self.stacks[self._stack(node)] if self.ops[each] == "StackPushV2"), None)
            if pushed is not None:
                return self.array_of(self.inputs[pushed][1])
        if self.ops[node] != "TensorArrayV3":
            raise UnimplementedError(
                f"{node.op} {node.name!r} gives the handle of a TensorArray: it is not known which"
            )
        return _Array(node)

    def _gradient(self, node: Node) -> _Array:
        array = self.array_of(self.inputs[node][0])
        if array.is_gradient:
            raise node.error("asks for the gradient of a gradient, which TensorFlow does not have")
        return _Array(array.creator, node.attr("source").s.decode())

    def _origin(self, tensor: Tensor) -> Node:
        """Where a handle comes from that is only passed on."""
        node = tensor[0]
        for _ in self.ops:
            if self.ops[node] not in _FORWARDS | MERGES:
                return node
            node = self.inputs[node][0][0]  # a Merge's first input is that from outside of its loop
        raise node.error("passes on what comes from itself")

    def _stack(self, node: Node) -> Node:
        return self._origin(self.inputs[node][0])

    def _passes_handle(self, node: Node) -> bool:
        """Whether it keeps the handle of an array on a stack: values need none."""
        if self.ops[node] == "StackPushV2":
            origin = self._origin(self.inputs[node][1])
            return self.ops[origin] in GRADIENTS | {"TensorArrayV3"} and node.attr("T").type == _RESOURCE
        if self.ops[node] == "StackPopV2":
            pushes = (each for each in self.stacks[self._stack(node)] if self.ops[each] == "StackPushV2")
            return any(map(self._passes_handle, pushes))
        return False

    # -- where flows go -------------------------------------------------------------------------------

    def _flow_in(self, node: Node) -> Tensor:
        return self.inputs[node][1 if self.ops[node] in GRADIENTS else -1]

    def _reached(self, array: _Array, past_others: bool) -> dict[Tensor, None]:
        """The flows behind which writes to an array may have been, those that writes to other arrays return as well."""
        found: dict[Tensor, None] = {(node, 0): None for node in self.nodes if self._writes(node, array)}
        if not array.is_gradient:
            found[array.creator, 1] = None
        waiting = list(found)
        for tensor in waiting:  # grows
            for following in self._following(tensor):
                if following not in found and (past_others or self.ops[following[0]] not in _WRITES):
                    found[following] = None
                    waiting.append(following)
        return found

    def _writes(self, node: Node, array: _Array) -> bool:
        return self.ops[node] in _WRITES and self.arrays[node] == array

    def _following(self, tensor: Tensor) -> Iterator[Tensor]:
        for node, position in self.readers.get(tensor, ()):
            op = self.ops[node]
            if op in SWITCHES and position == 0:
                yield from ((node, 0), (node, 1))
            elif op in _FORWARDS | _SUMS:
                yield node, 0
            elif op in MERGES:
                yield node, 0
                # A loop's variable is one from its beginning on.
                yield from ((each, 0) for each, _ in self.inputs[node] if self.ops[each] in ENTERS | NEXT_ITERATIONS)
            elif op == "StackPushV2" and position == 1:
                yield node, 0
                yield from ((each, 0) for each in self.stacks[self._stack(node)] if self.ops[each] == "StackPopV2")
            elif op in _WRITES and position == len(self.inputs[node]) - 1:
                yield node, 0
            elif op in GRADIENTS and position == 1:
                yield node, 1

    # -- values ---------------------------------------------------------------------------------------

    def _state(self, array: _Array, flow: Tensor) -> Tensor:
        """The value of an array, or gradient, where a flow has come to."""
        while True:
            if flow not in self.reached[array]:
                return self._nothing(flow)
            node, index = flow
            if self.ops[node] == "TensorArrayV3" or self._writes(node, array):
                return flow
            if self.ops[node] in _PASSES:
                return self._carrier(array, node), index
            flow = self._flow_in(node)

    def _carrier(self, array: _Array, node: Node) -> Node:
        """What passes the value of an array on, where `node` passes a flow on: itself, or a copy for one array more."""
        found = self.carriers.get((array, node))
        if found is not None:
            return found
        op, inputs = self.ops[node], self.inputs[node]
        carrier = node
        if self.owners[node] != array:
            if op in ("StackPushV2", "StackPopV2"):
                raise UnimplementedError(f"{op} {node.name!r} keeps the flow of several TensorArrays")
            name = self.workshop.unique_name(node.name)
            carrier = Node(name, op, node.message, inputs, self.controls[node])
            self.nodes.append(carrier)
        self.carriers[array, node] = carrier
        carrier.message = self.workshop.message(node.message)
        if array.is_gradient or op in ("StackPushV2", "StackPopV2"):  # other flows have their values in their places
            carrier.message.attr["elem_type" if op == "StackPopV2" else "T"].type = _VARIANT
        if not array.is_gradient and carrier is node:
            return carrier
        if op in _SUMS:
            terms = [self._state(array, each) for each in inputs if each in self.reached[array]]
            carrier.op, carrier.inputs = "AddN", terms
            carrier.message.attr["N"].i = len(terms)
        elif op in MERGES:
            carrier.inputs = [self._state(array, each) for each in inputs]
        elif op == "StackPushV2":
            carrier.inputs = [inputs[0], self._state(array, inputs[1])]
        elif op != "StackPopV2":
            carrier.inputs = [self._state(array, inputs[0]), *inputs[1:]]
        return carrier

    def _nothing(self, flow: Tensor) -> Tensor:
        """A gradient to which nothing has been added, there where a flow is."""
        if flow not in self.absent:
            node, _ = flow
            if self.ops[node] in SWITCHES:
                node = self._added("Identity", f"{node.name}/side", [flow])
                node.message.attr["T"].type = self.workshop.dtype(flow)
            self.absent[flow] = self._added("TensorArrayOfNothing", f"{node.name}/nothing", [], [node]), 0
        return self.absent[flow]

    def _added(self, op: str, name: str, inputs: list[Tensor], controls: list[Node] | None = None) -> Node:
        node = self.workshop.node(op, name, inputs, controls or [])
        self.nodes.append(node)
        return node

    # -- operations on gradients ----------------------------------------------------------------------

    def _leave(self, node: Node, inputs: list[Tensor]) -> None:
        """Let an operation do nothing, when what it has waited for has run."""
        waited = [each for each, _ in inputs] or [each for each, _ in self.inputs[node] if self.ops[each] not in ENTERS]
        node.op, node.inputs, node.controls = "NoOp", [], list(dict.fromkeys([*waited, *self.controls[node]]))
        device = node.message.device
        node.message = self.workshop.message()
        node.message.device = device

    def _convert(self, node: Node, array: _Array) -> None:
        """Let an operation on a gradient work on its value."""
        op, inputs = self.ops[node], self.inputs[node]
        if op == "TensorArrayCloseV3":
            self._leave(node, [])
            return
        flow = self._state(array, inputs[-1])
        message = self.workshop.message()
        message.device = node.message.device
        if op in _WRITES:
            node.op, node.inputs = _WRITES[op], [flow, *inputs[1:-1]]
            message.attr["T"].CopyFrom(node.attr("T"))
        else:
            like, prefix = self._like(inputs[0], array)
            if like is None:
                like = self._nothing(inputs[-1])
            if op == "TensorArraySizeV3":
                node.op, node.inputs = "TensorListLength", [like]
            else:
                node.op, node.inputs = _READS[op], [flow, *inputs[1:-1], like, *prefix]
                message.attr["N"].i = len(prefix)
                message.attr["dtype"].CopyFrom(node.attr("dtype"))
                if not prefix and "element_shape" in array.creator.message.attr:
                    message.attr["element_shape"].CopyFrom(array.creator.attr("element_shape"))
        node.message = message

    def _like(self, handle: Tensor, array: _Array) -> tuple[Tensor | None, list[Tensor]]:
        """There where the handle of a gradient is: the array that it is the gradient of, and sizes before shapes."""
        node = handle[0]
        if self.ops[node] in GRADIENTS:
            return self._awaited(_Array(array.creator), node), self.inputs[node][2:]
        if self.ops[node] not in _FORWARDS:
            raise UnimplementedError(f"{node.op} {node.name!r} gives the handle of a gradient: it is not known which")
        like, prefix = self._like(self.inputs[node][0], array)
        return (None if like is None else self._passed_on(node, like)), [self._passed_on(node, each) for each in prefix]

    def _passed_on(self, node: Node, tensor: Tensor) -> Tensor:
        """A tensor that goes the way of another one, which `node` passes on."""
        carrier = node.copy([tensor, *self.inputs[node][1:]], self.controls[node])
        carrier.name, carrier.message = self.workshop.unique_name(node.name), self.workshop.message(node.message)
        carrier.message.attr["T"].type = self.workshop.dtype(tensor)
        self.nodes.append(carrier)
        return carrier, 0

    def _awaited(self, array: _Array, node: Node) -> Tensor | None:
        """The value of an array of which an operation waits for writes."""
        waiting = [self._flow_in(node), *((each, 0) for each in self.controls[node])]
        for flow in waiting:  # grows
            if flow in self.own[array]:
                return flow
            if self.ops[flow[0]] in _IDENTITIES:
                waiting += [*self.inputs[flow[0]], *((each, 0) for each in self.controls[flow[0]])]
        return self._state(array, waiting[0]) if waiting[0] in self.reached[array] else None


_USES: Final = _WRITES.keys() | _READS.keys() | _OTHERS
