"""From TensorFlow's `GraphDef` to tfray's operations."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

import tfray.exchange.array_rules
import tfray.exchange.example_rules
import tfray.exchange.layer_rules
import tfray.exchange.saver_rules
import tfray.exchange.sparse_rules
import tfray.exchange.table_rules  # noqa: F401  (declares rules)
from tfray.errors import DataLossError, InvalidArgumentError, OpError, UnimplementedError
from tfray.exchange.attributes import attrs_of, dtype_of, read_attr, shape_of
from tfray.exchange.dataset_rules import without_datasets
from tfray.exchange.flow_rules import call
from tfray.exchange.functionalize import functionalize
from tfray.exchange.gradient_arrays import with_gradient_arrays_as_values
from tfray.exchange.import_rules import importable, imported
from tfray.exchange.node import Component, Imported, Node, Reference
from tfray.exchange.op_table import OWN, OWN_ATTRS, OWN_PART, operation_type
from tfray.exchange.queue_rules import staged_components
from tfray.formats.graph_proto import AttrValue, FunctionDef, GraphDef, NameAttrList, NodeDef
from tfray.formats.tensor_proto import REFERENCE, type_name
from tfray.framework import dtypes
from tfray.framework.allowed_uses import all_nodes
from tfray.framework.call_errors import DAMAGE, reason_of
from tfray.framework.call_site import user_site
from tfray.framework.device_spec import canonical_name
from tfray.framework.dtypes import DType
from tfray.framework.graph import Graph, Operation, Tensor
from tfray.framework.importer import add_node
from tfray.framework.op_def import registered_ops
from tfray.framework.plain_graph import PlainGraph, PlainNode
from tfray.framework.region import Region
from tfray.framework.tensor_shape import TensorShape

MAX_CALLS: Final = 64
"""Most functions that call one another in a row: a function that calls itself never ends."""

ANY_CALLED: Final = 10_000
CALLED_EACH: Final = 8
"""Most operations that calls of functions may become: so many for any graph, and more for each that the file has. A few
functions that each call the next one twice would otherwise fill all memory."""

CALLED_REGION: Final = 4
"""As how many operations a branch or the body of a loop counts besides its own: to make one takes as long."""


def from_tensorflow(graph_def: GraphDef, keep: Iterable[str] = ()) -> PlainGraph:
    """The graph that a message of TensorFlow describes. What `keep` names is there by its name: see `functionalize`.

    Operations keep their names. What tfray needs besides, such as reads of variables, is named below the operation that
    needs it.

    Raises:
        UnimplementedError: There are operation types that have no equivalent. The error names each, how often it
            stands, and the first operation of it.
        InvalidArgumentError: The message is no valid graph.
        DataLossError: A constant in it cannot be read.
    """
    try:
        return _imported(graph_def, keep)
    except OpError:
        raise
    except DAMAGE as error:
        raise InvalidArgumentError(f"this is not a valid graph: {reason_of(error)}") from error


def _imported(graph_def: GraphDef, keep: Iterable[str]) -> PlainGraph:
    graph_def = functionalize(with_gradient_arrays_as_values(_without_own_branches(graph_def)), keep)
    functions = _called(graph_def.node, graph_def.library.function)
    nodes = without_datasets(list(_restored(graph_def.node)), functions)
    functions = _called(nodes, graph_def.library.function)
    _check_types([nodes, *(function.node_def for function in functions.values())], functions)
    graph = Graph()
    with graph.as_default():
        for node in nodes:
            graph.unique_name(node.name)
        count = len(nodes) + sum(len(function.node_def) for function in functions.values())
        body = _Body(functions, graph, "", {}, 0, user_site(), _Room(ANY_CALLED + CALLED_EACH * count))
        body.components = staged_components(nodes)
        body.add_all(nodes)
    plain = graph.as_plain()
    for made, _ in all_nodes(plain.node):
        made.site, made.is_loaded = "", True
    return plain


def _without_own_branches(graph_def: GraphDef) -> GraphDef:
    """The graph, in which operations are as they were that tfray has written as branches of TensorFlow 1."""
    if not any(node.op == "Switch" and OWN_PART in node.attr for node in graph_def.node):
        return graph_def
    restored = GraphDef(node=_restored(graph_def.node))
    restored.library.CopyFrom(graph_def.library)
    restored.versions.CopyFrom(graph_def.versions)
    return restored


def _restored(nodes: Sequence[NodeDef]) -> Iterator[NodeDef]:
    """The nodes of a graph, with the operations that tfray has written for TensorFlow as they were.

    TensorFlow's form stays where what the operation takes is not there: a program has cut the graph by that form.
    """
    by_name = {node.name: node for node in nodes}
    own: dict[str, NodeDef] = {}
    needed: list[str] = []
    for node in nodes:
        if OWN_ATTRS in node.attr and not node.op.startswith(OWN):
            plain = _written(node, "op", "input")
            inputs = [str(text).removesuffix(":0") for text in plain["input"]]
            if all(_source(text) in by_name for text in inputs):
                attr = {name: node.attr[name] for name in (OWN_ATTRS, "_class") if name in node.attr}
                op = OWN + str(plain["op"])
                own[node.name] = NodeDef(name=node.name, op=op, device=node.device, input=inputs, attr=attr)
            else:
                needed += node.input
    parts = {node.name for node in nodes if OWN_PART in node.attr}
    while needed:
        if (name := _source(needed.pop())) in parts:
            parts.remove(name)
            needed += by_name[name].input
    return (own.get(node.name, node) for node in nodes if node.name not in parts)


def _source(text: str) -> str:
    return text.removeprefix("^").partition(":")[0]


def _written(node: NodeDef, *keys: str) -> dict[str, Any]:
    """What tfray has written of one of its operations. Raises `DataLossError` for anything else."""
    try:
        plain = json.loads(node.attr[OWN_ATTRS].s)
        if not isinstance(plain, dict) or not plain.keys() >= {*keys}:
            raise ValueError(f"it does not tell {', '.join(keys)}")
        return plain
    except (ValueError, RecursionError) as error:
        raise DataLossError(f"{node.op} {node.name!r}: its attribute {OWN_ATTRS!r}: {reason_of(error)}") from error


def _called(nodes: Iterable[NodeDef], listed: Iterable[FunctionDef]) -> dict[str, FunctionDef]:
    """The functions of the library that the graph calls. Others may hold anything: variants for other devices, say."""
    library = {function.signature.name: function for function in listed}
    found: dict[str, FunctionDef] = {}
    ahead: list[Iterable[NodeDef]] = [nodes]
    while ahead:
        for node in ahead.pop():
            named = (name for value in node.attr.values() for name in _functions_in(value))
            for name in (node.op, *named):
                if name in library and name not in found:
                    found[name] = library[name]
                    ahead.append(library[name].node_def)
    return found


def _functions_in(value: AttrValue) -> Iterator[str]:
    for named in (value.func, *value.list.func):
        yield named.name
        for inner in named.attr.values():
            yield from _functions_in(inner)


def _check_types(bodies: Iterable[Iterable[NodeDef]], functions: Collection[str]) -> None:
    """Raise one error that names all operation types that cannot be imported."""
    unknown: Counter[str] = Counter()
    first: dict[str, str] = {}
    for node in (node for body in bodies for node in body):
        is_known = node.op.removeprefix(OWN) in registered_ops() if node.op.startswith(OWN) else importable(node.op)
        if node.op not in functions and not is_known:
            unknown[node.op] += 1
            first.setdefault(node.op, node.name)
    if unknown:
        listed = ", ".join(f"{op} ({unknown[op]}, the first is {first[op]!r})" for op in sorted(unknown))
        raise UnimplementedError(
            f"the graph has operation types that tfray has no equivalent of: {listed}; "
            "tf.graph_util.extract_sub_graph takes the part that does without them"
        )


@dataclass
class _Room:
    """How many operations calls of functions may still become."""

    left: int

    def take(self, count: int) -> None:
        """Take room for some. Raises `InvalidArgumentError` when there is none."""
        self.left -= count + 1  # an empty function is a call too
        if self.left < 0:
            raise InvalidArgumentError(
                "functions of the graph call one another so often that they become too many operations "
                f"(more than {ANY_CALLED}, and {CALLED_EACH} for each in the file)"
            )


@dataclass
class _Body:
    """The operations of a graph or of a function that are being added to a graph.

    Attributes:
        functions: The functions of the library by name.
        graph: Where to.
        prefix: Before the names of all operations.
        bound: Values of the attributes of the function.
        depth: How many functions are around this one.
        site: The user's line that imports the graph.
        room: How many operations calls may become.
        pushed: What is known of the shapes of what is pushed on stacks, by the stacks' handles.
        elements: The shapes of the components of datasets.
        begun: The datasets of iterators that begin by themselves.
        components: How many components the elements of staging areas have, by the areas' names.
        controls: Operations that all operations here wait for.
        reads: The handles of TensorFlow 1's own variables, by the tensors that the Identities beside them give.
    """

    functions: dict[str, FunctionDef]
    graph: Graph
    prefix: str
    bound: Mapping[str, Any]
    depth: int
    site: str
    room: _Room
    pushed: dict[Tensor, TensorShape] = field(default_factory=dict)
    controls: Sequence[Operation] = ()
    elements: dict[Tensor, list[TensorShape]] = field(default_factory=dict)
    begun: dict[Tensor, Tensor] = field(default_factory=dict)
    components: dict[str, int] = field(default_factory=dict)
    reads: dict[Tensor, Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.values: dict[str, list[Imported]] = {}
        self.named: dict[str, dict[str, tuple[int, int]]] = {}
        self.ends: dict[str, list[Operation]] = {}
        if self.depth > MAX_CALLS:
            raise InvalidArgumentError(f"functions of the graph call one another more than {MAX_CALLS} deep")

    # -- nodes -------------------------------------------------------------------------------------

    def add_all(self, nodes: Iterable[NodeDef]) -> None:
        """Add operations, given in any order. Raises `InvalidArgumentError` where they go round in a circle."""
        for node in _ordered(nodes, self.values):
            self._add(node)

    def _add(self, message: NodeDef) -> None:
        controls = [op for text in message.input if text[:1] == "^" for op in self._waited_for(text[1:], message)]
        inputs = [self.value(text, message) for text in message.input if text[:1] != "^"]
        name = self.prefix + message.name
        try:
            device = canonical_name(message.device)
            function = self.functions.get(message.op)
            definition = operation_type(message.op)
            if message.op.startswith(OWN):
                node = Node(self, name, message.op, {}, inputs, device, [*self.controls, *controls], None)
                made = self._own(node, message)
            elif definition is None and function is not None:
                node = Node(self, name, message.op, {"f": message}, inputs, device, [*self.controls, *controls], None)
                made = call(node, message.op, message.attr, inputs)
            else:
                assert definition is not None
                attrs = attrs_of(definition, message.attr, self.bound)
                node = Node(self, name, message.op, attrs, inputs, device, [*self.controls, *controls], definition)
                node.extra |= self._colocated(message)
                _check_inputs(node, message)
                made = imported(node)
                _take_shapes(message, made)
        except RecursionError:
            raise
        except OpError as error:
            if type(error) not in (InvalidArgumentError, DataLossError) or error.op_name:
                raise
            raise type(error)(_not_valid(message, error), op_name=message.name) from error
        except DAMAGE as error:
            raise InvalidArgumentError(_not_valid(message, error), op_name=message.name) from error
        self.values[message.name] = made
        self.ends[message.name] = node.ends
        if definition is not None and self.depth:
            self.named[message.name] = _named_outputs(definition, node.attrs)
        elif function is not None:
            args = function.signature.output_arg
            self.named[message.name] = {arg.name: (index, 1) for index, arg in enumerate(args)}
        else:
            self.named[message.name] = {"output": (0, len(made))}

    def _own(self, node: Node, message: NodeDef) -> list[Imported]:
        """Add an operation of a type that only tfray has."""
        plain = PlainNode.from_plain(_written(message, "attr", "shapes") | _NOWHERE)
        plain.name, plain.op, plain.device = node.name, node.op.removeprefix(OWN), node.device
        plain.attr |= self._colocated(message)
        inputs = [value.handle if isinstance(value, Reference) else node.value(value) for value in node.given]
        controls = [op for op in node.controls if op.graph is self.graph]
        node.ends = [add_node(self.graph, plain, inputs, controls)]
        return list(node.ends[0].outputs)

    def _colocated(self, message: NodeDef) -> dict[str, list[str]]:
        if "_class" not in message.attr:
            return {}
        texts = (text.decode().removeprefix("loc:@") for text in message.attr["_class"].list.s)
        return {"_class": [self.prefix + text for text in texts]}

    def _waited_for(self, name: str, message: NodeDef) -> list[Operation]:
        if name not in self.ends:
            raise InvalidArgumentError(f"Node {message.name!r}: Unknown input node '^{name}'")
        return self.ends[name]

    def value(self, text: str, message: NodeDef) -> Imported:
        """What an input names: ``name``, ``name:index``, or in functions ``name:output:index``."""
        name, *rest = text.split(":")
        values = self.values.get(name)
        index = int(rest[-1]) if rest and rest[-1].isdecimal() else 0 if not rest else -1
        if len(rest) == 2:
            start, count = self.named.get(name, {}).get(rest[0], (0, 0))
            index = start + index if 0 <= index < count else -1
        if values is None or not 0 <= index < len(values):
            if values is None or len(rest) != 1 or not rest[0].isdecimal():
                raise InvalidArgumentError(f"Node {message.name!r}: Unknown input node {text!r}")
            raise InvalidArgumentError(
                f"Node {message.name!r}: Connecting to invalid output {index} of source node {name} which has "
                f"{len(values)} outputs"
            )
        return values[index]

    # -- functions ---------------------------------------------------------------------------------

    def call(
        self, function: str, given: Mapping[str, Any], inputs: Sequence[Imported], node: Node
    ) -> tuple[list[Imported], list[Operation]]:
        """Add the operations of a function to the graph, as part of a node.

        Returns:
            What it returns, and the operations that run for their effect.
        """
        body = self._inner(self.graph, f"{node.name}/", given, node.controls)
        return body._fill(function, inputs)

    def _inner(self, graph: Graph, prefix: str, given: Mapping[str, Any], controls: Sequence[Operation] = ()) -> _Body:
        depth = self.depth + 1
        body = _Body(self.functions, graph, prefix, given, depth, self.site, self.room, self.pushed, controls)
        body.elements, body.begun, body.components = self.elements, self.begun, self.components
        return body

    def given(self, function: NameAttrList) -> dict[str, Any]:
        """The attributes with which a function is called."""
        return {name: read_attr(value) for name, value in function.attr.items()}

    def input_dtypes(self, function: str) -> list[DType]:
        """The dtypes of what a function is given."""
        if function not in self.functions:
            raise InvalidArgumentError(f"the graph has no function {function!r}")
        return [dtype_of(arg.type) for arg in self.functions[function].signature.input_arg]

    def region(
        self,
        function: str,
        given: Mapping[str, Any],
        inputs: Sequence[Imported | Component],
        node: Node,
        scope: str,
        parameters: Mapping[int, TensorShape] | None = None,
        runs_often: bool = False,
    ) -> tuple[Region, list[Imported]]:
        """A region that does what a function does.

        Args:
            function: Name of the function.
            given: Its attributes.
            inputs: What it is given.
            node: The operation that will hold it.
            scope: Below the node's name, before the names of its operations.
            parameters: Indices of those inputs that the operation passes in, and their shapes. The others are captured.
            runs_often: Whether the operation runs it for every element of a dataset.

        Returns:
            The region, whose outputs have not been set, and what the function returns.
        """
        self.room.take(CALLED_REGION)
        region = Region(self.graph, runs_often)
        with region.as_default():
            body = self._inner(region, f"{node.name}/{scope}/", given)
            own: list[Any] = list(inputs)
            parameters = parameters or {}
            for index, shape in parameters.items():  # before the captures
                value = inputs[index]
                if isinstance(value, (Tensor, Component)):
                    own[index] = region.add_input(value.dtype, shape, f"{body.prefix}input_{index}")
            for index in set(range(len(inputs))) - set(parameters):
                value = inputs[index]
                if isinstance(value, (Tensor, Reference)):
                    own[index] = value.in_region(region) if isinstance(value, Reference) else region.own(value)
            outputs, effects = body._fill(function, own)
            if not runs_often:  # such a function has no effects besides
                outputs = [_after(value, effects, f"{body.prefix}result_{i}") for i, value in enumerate(outputs)]
            if effects and not any(isinstance(output, Tensor) for output in outputs):
                attrs = {"value": np.array(True), "dtype": dtypes.bool_}
                name = f"{body.prefix}done"
                outputs += region.add_operation(
                    "Const", [], attrs, name, exact_name=True, control_inputs=effects
                ).outputs
        return region, outputs

    def _fill(self, name: str, inputs: Sequence[Imported]) -> tuple[list[Imported], list[Operation]]:
        function = self.functions.get(name)
        if function is None:
            raise InvalidArgumentError(f"the graph has no function {name!r}")
        self.room.take(len(function.node_def))
        for node in function.node_def:
            self.graph.unique_name(self.prefix + node.name)
        signature = function.signature
        first = 0
        for arg in signature.input_arg:
            count = 1
            if arg.number_attr:
                count = self.bound[arg.number_attr]
            elif arg.type_list_attr:
                count = len(self.bound[arg.type_list_attr])
            given = list(inputs[first : first + count])
            if len(given) != count:
                raise InvalidArgumentError(
                    f"function {name!r} takes more than the {len(inputs)} inputs that it is given"
                )
            self.values[arg.name], first = given, first + count
            self.named[arg.name] = {arg.name: (0, count)}
            self.ends[arg.name] = []
        self.add_all(function.node_def)
        results = [self.value(function.ret[arg.name], _RETURN) for arg in signature.output_arg]
        effects = [op for node in function.control_ret.values() for op in self.ends[node]]
        return results, effects


def _check_inputs(node: Node, message: NodeDef) -> None:
    """Raise `InvalidArgumentError` unless a node has as many inputs as its type, and of those dtypes."""
    assert node.definition is not None
    wanted = [number for arg in node.definition.inputs for number in arg.dtypes(message, node.definition.attrs)]
    if len(wanted) != len(node.given):
        listed = ", ".join(map(_told, wanted))
        raise InvalidArgumentError(
            f"NodeDef expected inputs '{listed}' do not match {len(node.given)} inputs specified"
        )
    for index, (number, value) in enumerate(zip(wanted, node.given, strict=True)):
        dtype = dtype_of(number)
        if isinstance(value, Tensor) and _differ(value.dtype, dtype):
            raise InvalidArgumentError(
                f"Input {index} of node {node.name} was passed {_told(int(value.dtype))} from {value.name} "
                f"incompatible with expected {_told(number)}."
            )


def _told(number: int) -> str:
    """A dtype as TensorFlow's errors name it: ``float`` and ``double`` of 32 and 64 bits."""
    return type_name(number % REFERENCE).removeprefix("DT_").lower()


def _differ(given: DType, wanted: DType) -> bool:
    """Whether a tensor of one dtype cannot stand for another: what is no array here may be anything there."""
    return given is not wanted and not {given, wanted} & {dtypes.resource, dtypes.variant}


def _take_shapes(message: NodeDef, made: Sequence[Imported]) -> None:
    """Give the tensors that were made of a node the shapes that it tells."""
    if "_output_shapes" not in message.attr:
        return
    for index, (tensor, proto) in enumerate(zip(made, message.attr["_output_shapes"].list.shape, strict=False)):
        if isinstance(tensor, Tensor) and tensor.dtype not in (dtypes.resource, dtypes.variant):
            try:
                tensor.set_shape(shape_of(proto))
            except ValueError as error:
                raise InvalidArgumentError(
                    f"Node {message.name!r} has an _output_shapes attribute inconsistent with the GraphDef for output "
                    f"#{index}: {reason_of(error)}"
                ) from error


def _not_valid(message: NodeDef, error: Exception) -> str:
    return f"operation {message.name!r} of the imported graph is not a valid {message.op}: {reason_of(error)}"


_NOWHERE: Final = {"name": "", "op": "", "input": [], "device": "", "site": ""}
_RETURN: Any = type("_Return", (), {"name": "the function's result"})


def _after(value: Imported, effects: Sequence[Operation], name: str) -> Imported:
    """A value that is there when operations that run for their effect have run."""
    if not effects or not isinstance(value, Tensor) or value.dtype is dtypes.resource:
        return value
    identity = "TensorArrayIdentity" if value.dtype is dtypes.variant else "Identity"
    return value.graph.add_operation(identity, [value], {}, name, exact_name=True, control_inputs=effects).outputs[0]


def _named_outputs(definition: Any, attrs: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
    """Of each output of an operation, the index of its first tensor and their number."""
    found, start = {}, 0
    for arg in definition.outputs:
        count = arg.count(attrs)
        found[arg.name] = start, count
        start += count
    return found


def _ordered(nodes: Iterable[NodeDef], known: Mapping[str, Any]) -> Iterator[NodeDef]:
    """Operations, each after its inputs, otherwise in their order."""
    waiting: dict[str, NodeDef] = {}
    for node in nodes:
        if waiting.setdefault(node.name, node) is not node:
            raise InvalidArgumentError(f"Node {node.name!r} is not unique: two operations have this name")
    done: set[str] = set(known)
    for first in list(waiting.values()):
        stack = [first]
        opened: set[str] = set()
        while stack:
            node = stack[-1]
            if node.name in done:
                stack.pop()
                continue
            ahead = [
                waiting[name]
                for text in node.input
                if (name := text.lstrip("^").partition(":")[0]) not in done and name in waiting
            ]
            if not ahead:
                done.add(node.name)
                stack.pop()
                yield node
            elif node.name in opened:
                raise InvalidArgumentError(f"operations of the graph wait for one another in a circle: {node.name!r}")
            else:
                opened.add(node.name)
                stack += ahead
