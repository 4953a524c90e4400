"""Adding a graph that is plain data to a graph: what `Graph.as_graph_def` gave becomes operations again."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import NoneType
from typing import Any, Final

from tfray.bulk import making_much
from tfray.errors import ArgumentError, InvalidArgumentError, OpError
from tfray.framework.allowed_uses import checked_nodes
from tfray.framework.call_errors import DAMAGE, reason_of
from tfray.framework.call_site import user_site
from tfray.framework.convert import convert_to_tensor
from tfray.framework.device_spec import canonical_name
from tfray.framework.graph import Graph, Operation, Tensor, get_default_graph
from tfray.framework.plain_graph import PlainGraph, PlainNode, PlainRegion
from tfray.framework.region import Region
from tfray.framework.traversal import reachable_backward, topological_order

COPIES: Final = "copies_of_functions"
"""Name of a graph's table of copies that have a gradient of the program's own: each with all copies of its call."""


@making_much()
def import_graph_def(
    graph_def: PlainGraph,
    input_map: Mapping[str, Any] | None = None,
    return_elements: Iterable[str] | None = None,
    name: str | None = None,
    *,
    allow: Collection[str] = (),
) -> list[Tensor | Operation] | None:
    """Add the operations of `graph_def` to the current graph. Scopes of devices around the call apply to them.

    TensorFlow has no `allow`: there a graph from a file may read and write whatever its user may.

    Args:
        graph_def: The graph to add.
        input_map: Tensor name in `graph_def` to the tensor of the current graph that replaces it, or the value.
            ``^operation`` is what operations wait for. `graph_def` may lack what makes the tensors.
        return_elements: Names in `graph_def` of operations and tensors to return.
        name: Prefix of the new names; ``import`` when None, none at all when ``""``. One that ends in ``/`` is taken as
            it is; any other is made unique below the current scope. An operation whose name the graph has already gets
            a number.
        allow: What operations that come from a file or other bytes may use: ``"files"`` (to read and write them),
            ``"python"`` (functions of this process). A graph that was made in this process may use what it likes.
            Savers need no permission: they use the path that they are given.

    Raises:
        PermissionDeniedError: Operations use what is not in `allow`; the error lists them.
        InvalidArgumentError: An operation type, an input or a returned element is not there, or an operation does
            not fit its type; `input_map` names what the graph neither has nor uses.
    """
    replaced = given_tensors(input_map, name)
    nodes = checked_nodes(graph_def.node, allow, given=replaced)
    made = _add_nodes(nodes, graph_def.seed, replaced, "import" if name is None else name, in_scopes=True)
    elements = None if return_elements is None else [made.element(as_text(element)) for element in return_elements]
    if unknown := sorted(made.unknown() - set(graph_def.absent)):
        raise InvalidArgumentError(
            f"Attempted to map inputs that were not found in graph_def: [{', '.join(unknown)}]: it neither has nor "
            "uses what these name"
        )
    return elements


def given_tensors(input_map: Mapping[str, Any] | None, name: str | None) -> dict[str, Tensor]:
    """An `input_map` with whole names of tensors, ``name:index``, and with tensors for all values.

    Raises:
        ArgumentError: The map is none.
        InvalidArgumentError: There is a value that is no tensor, and no scope for the one that it becomes.
    """
    if not isinstance(input_map, (Mapping, NoneType)):
        raise ArgumentError(f"input_map must be a dictionary mapping strings to Tensor objects, not {input_map!r}")
    scope = "import/" if name is None else name and f"{name.rstrip('/')}/"
    given = {}
    for key, value in (input_map or {}).items():
        if not isinstance(value, Tensor):
            if not scope:
                raise InvalidArgumentError(
                    "tf.import_graph_def() requires a non-empty `name` if `input_map` contains non-Tensor values: "
                    f"{key!r} is to be {value!r}"
                )
            with get_default_graph().name_scope(f"{scope}_inputs/"):
                value = convert_to_tensor(value)
        given[tensor_name(as_text(key))] = value
    return given


def as_text(name: str | bytes) -> str:
    """A name that may be bytes."""
    return name.decode() if isinstance(name, bytes) else name


def _add_nodes(
    nodes: Sequence[PlainNode], seed: int | None, replaced: Mapping[str, Tensor], name: str, in_scopes: bool = False
) -> _Importer:
    graph = get_default_graph()
    prefix = name if name.endswith("/") else graph.unique_name(name) + "/" if name else ""
    if graph.seed is None and not graph.get_operations():
        graph.seed = seed
    renamed = _renamed(nodes, prefix, graph) if in_scopes else {}
    made = _Importer(graph, prefix, replaced, in_scopes=in_scopes, renamed=renamed)
    for node in nodes:
        made.add(node)
    made.add_late_controls(nodes)
    return made


def _renamed(nodes: Sequence[PlainNode], prefix: str, graph: Graph) -> dict[str, str]:
    """New names of those nodes whose names are those of operations or scopes that the graph has."""
    if not graph.get_operations():
        return {}
    scopes: set[str] = set()
    for op in graph.get_operations():
        scope = op.name.rpartition("/")[0]
        while scope and scope not in scopes:
            scopes.add(scope)
            scope = scope.rpartition("/")[0]
    taken = [node.name for node in nodes if prefix + node.name in graph or prefix + node.name in scopes]
    others = {prefix + node.name for node in nodes}
    renamed = {}
    with graph.name_scope(None):
        for name in taken:
            renamed[name] = graph.unique_name(prefix + name)
            while renamed[name] in others:
                renamed[name] = graph.unique_name(prefix + name)
    return renamed


def inlined(
    outputs: Sequence[Tensor], given: Mapping[Tensor, Tensor], name: str, also: Iterable[Operation] = ()
) -> tuple[list[Tensor], dict[Operation, Operation]]:
    """Copy a part of a region into the current graph: a call of a function that was traced.

    Args:
        outputs: Tensors of the region.
        given: For inputs of the region, tensors of the current graph that stand in their place.
        name: Prefix of the new names, made unique.
        also: Operations of the region to copy even if no output needs them.

    Returns:
        The copies of `outputs`, and the copy of each operation.

    Raises:
        InvalidArgumentError: An output needs an input of the region that is not given.
    """
    replaced_inputs = {tensor.op: outer for tensor, outer in given.items() if tensor.op.type == "RegionInput"}
    wanted = reachable_backward(
        [*(tensor.op for tensor in outputs if tensor not in given), *also],
        lambda op: [
            *(tensor.op for tensor in op.inputs if tensor not in given),
            *(control for control in op.control_inputs if control not in replaced_inputs),
        ],
    )
    graph = get_default_graph()
    made_here = next((op.graph for op in wanted), None)
    candidates = [] if made_here is None else made_here.get_operations()
    if any("_gradient_overrides" in op.attrs for op in wanted):
        # A gradient function of the program may use anything that the function computed.
        ops = [op for op in candidates if op.type != "RegionInput"]
    else:
        ops = [op for op in candidates if op in wanted]
    nodes = [op.as_plain() for op in ops]
    replaced = {tensor.name: outer for tensor, outer in given.items()}
    replaced.update((f"^{op.name}", outer) for op, outer in replaced_inputs.items())
    made = _Importer(graph, graph.unique_name(name) + "/", replaced, {node.name for node in nodes})
    for node in nodes:
        if node.op == "RegionInput":
            raise InvalidArgumentError(f"the function needs its input {node.name!r}, for which no tensor is given")
        made.add(node)
    made.add_late_controls(nodes)
    copies = {op: made._ops[op.name] for op in ops}
    origins = graph.extra(COPIES, dict)
    origins.update((copy, copies) for copy in copies.values() if "_gradient_overrides" in copy.attrs)
    return [given[t] if t in given else copies[t.op].outputs[t.value_index] for t in outputs], copies


def from_graph_def(graph_def: PlainGraph) -> Graph:
    """A new graph equal to the one whose `Graph.as_graph_def` gave `graph_def`. Its operations may use anything."""
    graph = Graph()
    with graph.as_default():
        _add_nodes(graph_def.node, graph_def.seed, {}, "")
    graph.seed = graph_def.seed
    return graph


def add_node(graph: Graph, node: PlainNode, inputs: list[Tensor], controls: list[Operation]) -> Operation:
    """Add one operation that is plain data to a graph, with these inputs and control inputs."""
    return _Importer(graph, "", {}, ())._create(node, inputs, controls)


class _Importer:
    def __init__(
        self,
        graph: Graph,
        prefix: str,
        replaced: Mapping[str, Tensor],
        names: Collection[str] | None = None,
        in_scopes: bool = False,
        renamed: Mapping[str, str] | None = None,
    ) -> None:
        self._renamed = renamed or {}
        self._graph = graph
        self._prefix = prefix
        self._replaced = replaced
        self._names = names
        self._in_scopes = in_scopes
        self._site = user_site()
        self._ops: dict[str, Operation] = {}
        self._used: set[str] = set()
        # Shapes that were written down hold for the tensors that a program replaces, not for its own.
        self._changed: set[Tensor] = set(replaced.values())

    def add(self, node: PlainNode) -> None:
        inputs = [self._input(text, node) for text in node.input if not text.startswith("^")]
        controls = [op for text in node.input if text.startswith("^") and (op := self._waited_for(text)) is not None]
        try:
            self._ops[node.name] = self._create(node, inputs, controls)
        except OpError:
            raise
        except DAMAGE as error:
            # The attributes of an imported graph can be anything, and shape functions do not check them.
            raise InvalidArgumentError(
                f"operation {node.name!r} of the imported graph is not a valid {node.op}: {reason_of(error)}",
                op_name=node.name,
            ) from error

    def _create(self, node: PlainNode, inputs: list[Tensor], controls: list[Operation]) -> Operation:
        attrs = dict(node.attr)
        if "_class" in attrs:
            attrs["_class"] = [self._placed_with(name) for name in attrs["_class"]]
        attrs.update((key, self._region(value)) for key, value in attrs.items() if isinstance(value, PlainRegion))
        op = self._graph.add_operation(
            node.op,
            inputs,
            attrs,
            self._new_name(node.name),
            control_inputs=controls,
            exact_name=True,
            device=canonical_name(node.device),
            site=node.site or self._site,
        )
        if self._in_scopes and any(tensor in self._changed for tensor in inputs):
            self._changed.update(op.outputs)
        else:
            for tensor, shape in zip(op.outputs, node.shapes, strict=False):
                tensor.set_shape(shape)
        if self._in_scopes:
            self._graph.apply_scopes(op)
        return op

    def _new_name(self, name: str) -> str:
        return self._renamed.get(name) or self._prefix + name

    def unknown(self) -> set[str]:
        """Names of what is to be replaced, which nothing uses, and which the graph that is added has not."""
        unused = self._replaced.keys() - self._used
        return {name for name in unused if name[1:] not in self._ops and self._tensor(name) is None}

    def _placed_with(self, name: str) -> str:
        """The new name of an operation whose device another one shares, or the name of what replaces it."""
        given = self._replaced.get(f"{name}:0")
        if given is not None:
            return given.op.name
        return self._new_name(name) if self._local(name) else name

    def _local(self, name: str) -> bool:
        """Whether `name` is that of an operation that is added here, not of one that was there before."""
        return self._names is None or name in self._names

    def _region(self, definition: PlainRegion) -> Region:
        region = Region(self._graph)
        with region.as_default():
            made = _Importer(region, self._prefix, {}, in_scopes=self._in_scopes)
            for node in definition.node:
                made.add(node)
            made.add_late_controls(definition.node)
        inputs, outputs = ([made.element(name) for name in names] for names in (definition.inputs, definition.outputs))
        for tensor in [*inputs, *outputs]:
            if not isinstance(tensor, Tensor):
                raise InvalidArgumentError(
                    f"{tensor!r} is named as an input or output of a region, but is not a tensor"
                )
            (region.inputs if len(region.inputs) < len(inputs) else region.outputs).append(tensor)
        return region

    def add_late_controls(self, nodes: Iterable[PlainNode]) -> None:
        """Add the control inputs that are later operations: `Operation.add_control_inputs` makes such."""
        late = False
        for node in nodes:
            op = self._ops[node.name]
            for text in node.input:
                if text.startswith("^"):
                    waited_for = self._waited_for(text)
                    if waited_for is None:
                        raise InvalidArgumentError(f"control input {text!r} of {node.name!r} is not in the graph")
                    if waited_for not in op.control_inputs:
                        op.add_control_inputs([waited_for])
                        late = True
        if late:
            topological_order(self._ops.values())  # raises when they close a cycle

    def _waited_for(self, text: str) -> Operation | None:
        """What a control input, ``^name``, stands for."""
        key = text[1:] if ":" in text else text  # an operation may wait for one tensor of those that are given
        if key not in self._replaced:
            return self._ops.get(text[1:])
        self._used.add(key)
        return self._replaced[key].op

    def _input(self, text: str, node: PlainNode) -> Tensor:
        text = tensor_name(text)
        tensor = self._given_or_own(text)
        if tensor is None:
            raise InvalidArgumentError(f"input {text!r} of {node.name!r} is not an earlier tensor of the graph")
        return tensor

    def _given_or_own(self, text: str) -> Tensor | None:
        if text not in self._replaced:
            return self._tensor(text)
        self._used.add(text)
        return self._replaced[text]

    def _tensor(self, text: str) -> Tensor | None:
        op_name, _, index = text.partition(":")
        op = self._ops.get(op_name)
        found = op is not None and index.isdecimal() and int(index) < len(op.outputs)
        return op.outputs[int(index)] if op is not None and found else None

    def element(self, name: str) -> Tensor | Operation:
        element = self._given_or_own(name) if ":" in name else self._ops.get(name)
        if element is None:
            raise InvalidArgumentError(self._not_returned(name))
        return element

    def _not_returned(self, name: str) -> str:
        if name.count(":") > 1:
            return f"Cannot convert {name!r} to a tensor name."
        op_name, colon, index = name.partition(":")
        op = self._ops.get(op_name)
        if op is not None:
            return f"Invalid return output {index} of node {op_name!r}, which has {len(op.outputs)} output(s)"
        return f"Requested return {'tensor' if colon else 'node'} {name!r} not found in graph def"


def tensor_name(name: str) -> str:
    """The whole name of a tensor, ``name:index``."""
    return name if ":" in name or name.startswith("^") else f"{name}:0"
