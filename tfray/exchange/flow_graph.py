"""Graphs of TensorFlow between reading and writing: nodes that refer to each other, and the functions made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from tfray.errors import InvalidArgumentError
from tfray.exchange.op_table import TensorFlowOp, function_as_op, operation_type
from tfray.framework.plain_graph import free_name

SWITCHES: Final = frozenset({"Switch", "RefSwitch"})
MERGES: Final = frozenset({"Merge", "RefMerge"})
ENTERS: Final = frozenset({"Enter", "RefEnter"})
EXITS: Final = frozenset({"Exit", "RefExit"})
NEXT_ITERATIONS: Final = frozenset({"NextIteration", "RefNextIteration"})
LOW_LEVEL: Final = SWITCHES | MERGES | ENTERS | EXITS | NEXT_ITERATIONS | {"LoopCond", "ControlTrigger"}
"""The operations of dead tensors and frames."""

INT32: Final = 3
STRING: Final = 7
BOOL: Final = 10

Tensor = tuple["Node", int]
"""An output of a node."""


class Node:
    """An operation of a graph, or an input of a function.

    Attributes:
        name: Its name.
        op: Its operation type; empty for an input of a function.
        message: The NodeDef with its device and its attributes; not to be changed.
        inputs: What it reads.
        controls: What must have run before it.
        bodies: Then and else of an If; condition and body of a While.
        dtype: Number of the dtype of an input of a function.
    """

    __slots__ = ("bodies", "controls", "dtype", "inputs", "message", "name", "op")

    def __init__(
        self,
        name: str,
        op: str,
        message: Any,
        inputs: Iterable[Tensor] = (),
        controls: Iterable[Node] = (),
        bodies: tuple[Body, ...] = (),
        dtype: int = 0,
    ) -> None:
        self.name = name
        self.op = op
        self.message = message
        self.inputs = list(inputs)
        self.controls = list(dict.fromkeys(controls))
        self.bodies = bodies
        self.dtype = dtype

    def __repr__(self) -> str:
        return f"<{self.op or 'input'} {self.name!r}>"

    def copy(self, inputs: Iterable[Tensor], controls: Iterable[Node]) -> Node:
        """The same operation with other inputs."""
        return Node(self.name, self.op, self.message, inputs, controls, self.bodies, self.dtype)

    def attr(self, name: str) -> Any:
        """The AttrValue of this name; an empty one where there is none."""
        attrs = self.message.attr
        return attrs[name] if name in attrs else attrs.GetEntryClass()().value

    def error(self, what: str) -> InvalidArgumentError:
        """The error that says what is wrong with this node."""
        return InvalidArgumentError(f"{self.op} {self.name!r} {what}", op_name=self.name)


class Body:
    """A function, or the whole graph.

    Attributes:
        args: Its inputs.
        nodes: Its operations, each after what it reads.
        outputs: What it returns.
        controls: Operations that run although no output needs them.
    """

    def __init__(
        self,
        args: Sequence[Node] = (),
        nodes: Sequence[Node] = (),
        outputs: Sequence[Tensor] = (),
        controls: Sequence[Node] = (),
    ) -> None:
        self.args = list(args)
        self.nodes = list(nodes)
        self.outputs = list(outputs)
        self.controls = list(controls)


class Workshop:
    """What is known of all operations of a graph, and makes new ones for it.

    Args:
        graph: The GraphDef.
    """

    def __init__(self, graph: Any) -> None:
        self._functions = {each.signature.name: each.signature for each in graph.library.function}
        self._names = {node.name for node in graph.node} | self._functions.keys()
        self._scratch = type(graph)()

    def unique_name(self, name: str) -> str:
        """`name`, or with a number behind it: one that no operation and no function has."""
        found = free_name(name, self._names)
        self._names.add(found)
        return found

    def message(self, like: Any = None) -> Any:
        """A NodeDef, empty or with the contents of another one, for a new operation."""
        message = self._scratch.node.add()
        if like is not None:
            message.CopyFrom(like)
        return message

    def node(self, op: str, name: str, inputs: Sequence[Tensor] = (), controls: Iterable[Node] = ()) -> Node:
        """A new operation without attributes; its name is made unique."""
        return Node(self.unique_name(name), op, self.message(), inputs, controls)

    def identity(self, name: str, values: Sequence[Tensor], controls: Iterable[Node] = (), device: str = "") -> Node:
        """An operation of exactly this name that returns these values."""
        message = self.message()
        message.device = device
        dtypes = [self.dtype(value) for value in values]
        if len(values) == 1:
            message.attr["T"].type = dtypes[0]
            return Node(name, "Identity", message, values, controls)
        message.attr["T"].list.type.extend(dtypes)
        return Node(name, "IdentityN", message, values, controls)

    def constant(self, name: str, dtype: int, field: str, value: Any) -> Node:
        """A scalar, whose value stands in this field of its TensorProto."""
        node = self.node("Const", name)
        node.message.attr["dtype"].type = dtype
        tensor = node.message.attr["value"].tensor
        tensor.dtype = dtype
        tensor.tensor_shape.SetInParent()
        getattr(tensor, field).append(value)
        return node

    def no_value(self, name: str, dtype: int) -> Node:
        """What a branch returns for a value that only the other branch computes."""
        node = self.node("FakeParam", name)
        node.message.attr["dtype"].type = dtype
        node.message.attr["shape"].shape.unknown_rank = True
        return node

    def has_effects(self, node: Node) -> bool:
        """Whether it must run although nothing may read what it returns."""
        found = self._type(node)
        return bool(node.op) and (found is None or found.has_effects)

    def is_effect(self, node: Node) -> bool:
        """Whether a step can tell that it has run: it has effects other than to read a variable."""
        found = self._type(node)
        return self.has_effects(node) and not (found is not None and found.is_shared) and node.op != "ReadVariableOp"

    def whole_number(self, tensor: Tensor) -> int | None:
        """The value of a constant scalar of int32; None for anything else."""
        node = tensor[0]
        value = node.attr("value").tensor
        if node.op != "Const" or value.dtype != INT32 or value.tensor_shape.dim:
            return None
        if value.tensor_content:
            return int.from_bytes(value.tensor_content, "little", signed=True)
        return value.int_val[0] if value.int_val else 0

    def dtype(self, tensor: Tensor) -> int:
        """Number of the dtype of a tensor, of the values behind a reference."""
        return tensor[0].dtype if not tensor[0].op else self.place(tensor)[1]

    def place(self, tensor: Tensor) -> tuple[str, int]:
        """How functions write a tensor behind its node's name, and its dtype."""
        node, index = tensor
        found = self._known_type(node)
        tensors = found.tensors(_Typed(node))
        if index >= len(tensors):
            raise node.error(f"has no output {index}, which another operation reads")
        return tensors[index]

    def output_count(self, node: Node) -> int:
        """How many tensors a node returns."""
        return len(self._known_type(node).tensors(_Typed(node)))

    def is_reference(self, tensor: Tensor) -> bool:
        """Whether a tensor is a reference to a variable."""
        node = tensor[0]
        found = self._type(node) if node.op else None
        return found is not None and any(output.is_ref for output in found.outputs)

    def referred(self, tensor: Tensor) -> tuple[Node, list[Node]]:
        """The variable behind a reference, and the operations through which the reference has come."""
        passed: list[Node] = []
        node = tensor[0]
        while True:
            found = self._type(node)
            if found is not None and found.is_shared:
                return node, passed
            if node.op in MERGES or not node.inputs or found is None:
                raise node.error("gives a reference to a branch or a loop, and it is not known to which variable")
            if node.op not in SWITCHES | ENTERS:
                passed.append(node)
            node = node.inputs[0][0]

    def another(self, variable: Node) -> Node:
        """An operation for a function that stands for the same variable, or queue, as `variable`."""
        message = self.message(variable.message)
        if not message.attr["shared_name"].s:
            message.attr["shared_name"].s = variable.name.encode()
        return Node(variable.name, variable.op, message)

    def _type(self, node: Node) -> TensorFlowOp | None:
        signature = self._functions.get(node.op)
        return operation_type(node.op) if signature is None else function_as_op(signature)

    def _known_type(self, node: Node) -> TensorFlowOp:
        found = self._type(node)
        if found is None:
            raise node.error("stands in a branch or a loop; what operations of its type return is not known")
        return found


class _Typed:
    """A node as `TensorFlowOp.tensors` reads it: the message's attributes, under the node's own type."""

    def __init__(self, node: Node) -> None:
        self.name, self.op, self.attr = node.name, node.op, node.message.attr


def check_low_level(node: Node) -> None:
    """Raise `InvalidArgumentError` where an operation of control flow has too many inputs, or is read in vain."""
    for each, index in node.inputs:
        count = 2 if each.op in SWITCHES | MERGES else 0 if each.op == "ControlTrigger" else 1
        if each.op in LOW_LEVEL and index >= count:
            raise each.error(f"has no output {index}, which {node.name!r} reads")
    if node.op in LOW_LEVEL:
        expected = 2 if node.op in SWITCHES else 0 if node.op == "ControlTrigger" else 1
        if (node.op in MERGES and not node.inputs) or (node.op not in MERGES and len(node.inputs) != expected):
            raise node.error(f"has {len(node.inputs)} inputs, and must have {expected}")


def sources(node: Node) -> list[Node]:
    """The nodes that it reads, or that must run before it."""
    return [*(each for each, _ in node.inputs), *node.controls]


def in_order(nodes: Iterable[Node], before: Callable[[Node], Iterable[Node]] = sources) -> list[Node]:
    """Nodes, each after those of `before`, as far as these are among them.

    Raises `InvalidArgumentError` when some stand in a circle.
    """
    nodes = list(nodes)
    waiting = dict.fromkeys(nodes, 0)
    readers: dict[Node, list[Node]] = {node: [] for node in nodes}
    for node in nodes:
        for source in before(node):
            if source in waiting:
                waiting[node] += 1
                readers[source].append(node)
    ordered = [node for node in nodes if not waiting[node]]
    for node in ordered:  # grows
        for reader in readers[node]:
            waiting[reader] -= 1
            if not waiting[reader]:
                ordered.append(reader)
    if len(ordered) < len(nodes):
        stuck = next(node for node in nodes if waiting[node])
        raise stuck.error("reads what depends on it, in a circle that no NextIteration closes")
    return ordered
