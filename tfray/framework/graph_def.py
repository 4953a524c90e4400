"""Graphs as plain data: the form that crosses processes and lies in files. Never pickled."""

from __future__ import annotations

import base64
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from tfray.errors import DataLossError, InvalidArgumentError, OpError
from tfray.framework.device_spec import canonical_name
from tfray.framework.dtypes import DType, as_dtype
from tfray.framework.graph import Graph, Operation, Tensor, get_default_graph
from tfray.framework.loaded_nodes import checked_nodes
from tfray.framework.region import Region
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.traversal import topological_order

FORMAT_VERSION: Final = 1


@dataclass
class NodeDef:
    """One operation.

    Attributes:
        name: Unique name.
        op: Name of the operation type.
        input: ``name:index`` per input, then ``^name`` per control input.
        device: Device asked for, or assigned.
        attr: Attribute values (see `OpDef.attrs` for what they may be).
        site: ``file:line, in function`` of the code that made it.
        shapes: Static shape of each output as the graph knew it.
        is_loaded: Whether it comes from a file or other bytes: then `import_graph_def` checks what it may do.
    """

    name: str
    op: str
    input: list[str] = field(default_factory=list)
    device: str = ""
    attr: dict[str, Any] = field(default_factory=dict)
    site: str = ""
    shapes: list[TensorShape] = field(default_factory=list)
    is_loaded: bool = field(default=False, repr=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NodeDef) and _node_to_plain(self) == _node_to_plain(other)


@dataclass
class RegionDef:
    """A region: the value of an attribute.

    Attributes:
        node: Its operations, in an order in which each comes after its inputs.
        inputs: Names of the tensors that the owning operation passes in.
        outputs: Names of the tensors that it returns.
    """

    node: list[NodeDef]
    inputs: list[str]
    outputs: list[str]


@dataclass
class GraphDef:
    """Operations in an order in which each comes after its inputs.

    Attributes:
        node: The operations.
        version: Version of this form.
        seed: Graph-level seed of random operations.
    """

    node: list[NodeDef] = field(default_factory=list)
    version: int = FORMAT_VERSION
    seed: int | None = None

    def to_plain(self) -> dict[str, Any]:
        """Nested dictionaries, lists, numbers and strings, ready for JSON."""
        return {"version": self.version, "seed": self.seed, "node": [_node_to_plain(node) for node in self.node]}

    @classmethod
    def from_plain(cls, plain: Any) -> GraphDef:
        """The graph that `to_plain` gave. Raises `DataLossError` when `plain` is not of that form."""
        try:
            if plain["version"] != FORMAT_VERSION:
                raise DataLossError(f"graph of version {plain['version']!r}; this tfray reads {FORMAT_VERSION}")
            nodes, seed = plain["node"], plain.get("seed")
            if not isinstance(nodes, list) or not (seed is None or isinstance(seed, int)):
                raise TypeError("fields of the wrong type")
            return cls([_node_from_plain(node) for node in nodes], FORMAT_VERSION, seed)
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise DataLossError(f"not a serialised graph: {type(error).__name__}: {error}") from error

    def SerializeToString(self) -> bytes:
        """This graph as bytes (TensorFlow's spelling; the bytes are JSON)."""
        return json.dumps(self.to_plain(), separators=(",", ":")).encode()

    @classmethod
    def FromString(cls, data: bytes) -> GraphDef:
        """The graph that `SerializeToString` gave. Raises `DataLossError` for anything else."""
        try:
            plain = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise DataLossError(f"not a serialised graph: {error}") from error
        return cls.from_plain(plain)

    def ParseFromString(self, data: bytes) -> None:
        """Replace this graph by the one in `data`. Raises `DataLossError`."""
        parsed = self.FromString(data)
        self.node, self.version, self.seed = parsed.node, parsed.version, parsed.seed


def node_from_operation(op: Operation) -> NodeDef:
    """The plain form of one operation."""
    inputs = [tensor.name for tensor in op.inputs] + [f"^{control.name}" for control in op.control_inputs]
    shapes = [tensor.shape for tensor in op.outputs]
    attrs = {**op.attrs, **{name: _region_def(op.attrs[name]) for name in op.op_def.regions}}
    return NodeDef(op.name, op.type, inputs, op.device, attrs, op.site, shapes)


def _region_def(region: Region) -> RegionDef:
    nodes = [node_from_operation(op) for op in region.get_operations()]
    return RegionDef(nodes, [tensor.name for tensor in region.inputs], [tensor.name for tensor in region.outputs])


def to_graph_def(graph: Graph) -> GraphDef:
    """The plain form of a graph."""
    return GraphDef([node_from_operation(op) for op in graph.get_operations()], seed=graph.seed)


def import_graph_def(
    graph_def: GraphDef,
    input_map: Mapping[str, Tensor] | None = None,
    return_elements: Iterable[str] | None = None,
    name: str | None = None,
    *,
    allow: Collection[str] = (),
) -> list[Tensor | Operation] | None:
    """Add the operations of `graph_def` to the current graph.

    TensorFlow has no `allow`: there a graph from a file may read and write whatever its user may.

    Args:
        graph_def: The graph to add.
        input_map: Tensor name in `graph_def` to the tensor of the current graph that replaces it.
        return_elements: Names in `graph_def` of operations and tensors to return.
        name: Prefix of the new names; ``import`` when None, none at all when ``""``.
        allow: What operations that come from a file or other bytes may use: ``"files"`` (to read and write them),
            ``"python"`` (functions of this process). A graph that was made in this process may use what it likes.
            Savers need no leave: they use the path that they are given.

    Raises:
        PermissionDeniedError: Operations use what is not in `allow`; the error lists them.
        InvalidArgumentError: An operation type, an input or a returned element is not there, or an operation does
            not fit its type.
    """
    replaced = {_tensor_name(key): tensor for key, tensor in (input_map or {}).items()}
    nodes = checked_nodes(graph_def.node, allow, given=replaced)
    if name is None:
        name = "import"
    made = _add_nodes(nodes, graph_def.seed, replaced, name)
    if return_elements is None:
        return None
    return [made.element(element) for element in return_elements]


def _add_nodes(nodes: Sequence[NodeDef], seed: int | None, replaced: Mapping[str, Tensor], name: str) -> _Importer:
    graph = get_default_graph()
    prefix = graph.unique_name(name) + "/" if name else ""
    if graph.seed is None and not graph.get_operations():
        graph.seed = seed
    made = _Importer(graph, prefix, replaced)
    for node in nodes:
        made.add(node)
    made.add_late_controls(nodes)
    return made


def from_graph_def(graph_def: GraphDef) -> Graph:
    """A new graph equal to the one that `to_graph_def` was given, whatever its operations use."""
    graph = Graph()
    with graph.as_default():
        _add_nodes(graph_def.node, graph_def.seed, {}, "")
    graph.seed = graph_def.seed
    return graph


class _Importer:
    def __init__(self, graph: Graph, prefix: str, replaced: Mapping[str, Tensor]) -> None:
        self._graph = graph
        self._prefix = prefix
        self._replaced = replaced
        self._ops: dict[str, Operation] = {}

    def add(self, node: NodeDef) -> None:
        inputs = [self._input(text, node) for text in node.input if not text.startswith("^")]
        controls = [self._ops[text[1:]] for text in node.input if text.startswith("^") and text[1:] in self._ops]
        try:
            self._ops[node.name] = self._create(node, inputs, controls)
        except OpError:
            raise
        except KeyError as error:
            raise InvalidArgumentError(f"{error.args[0]} (needed by {node.name!r} of the imported graph)") from error
        except (AttributeError, TypeError, ValueError, LookupError, ArithmeticError, MemoryError) as error:
            # Attributes can be anything at all, and shape functions trust them.
            raise InvalidArgumentError(
                f"operation {node.name!r} of the imported graph is no {node.op}: {type(error).__name__}: {error}",
                op_name=node.name,
            ) from error

    def _create(self, node: NodeDef, inputs: list[Tensor], controls: list[Operation]) -> Operation:
        attrs = dict(node.attr)
        if "_class" in attrs:
            attrs["_class"] = [self._prefix + other for other in attrs["_class"]]
        attrs.update((key, self._region(value)) for key, value in attrs.items() if isinstance(value, RegionDef))
        op = self._graph.create_op(
            node.op,
            inputs,
            attrs,
            self._prefix + node.name,
            control_inputs=controls,
            exact_name=True,
            device=canonical_name(node.device),
            site=node.site or None,
        )
        for tensor, shape in zip(op.outputs, node.shapes, strict=False):
            tensor.set_shape(shape)
        return op

    def _region(self, definition: RegionDef) -> Region:
        region = Region(self._graph)
        with region.as_default():
            made = _Importer(region, self._prefix, {})
            for node in definition.node:
                made.add(node)
            made.add_late_controls(definition.node)
        inputs, outputs = ([made.element(name) for name in names] for names in (definition.inputs, definition.outputs))
        for tensor in [*inputs, *outputs]:
            if not isinstance(tensor, Tensor):
                raise InvalidArgumentError(f"{tensor!r} is named as an input or output of a region, and is no tensor")
            (region.inputs if len(region.inputs) < len(inputs) else region.outputs).append(tensor)
        return region

    def add_late_controls(self, nodes: Iterable[NodeDef]) -> None:
        """Control inputs on operations made later, which a graph may have gained after the fact."""
        late = False
        for node in nodes:
            op = self._ops[node.name]
            for text in node.input:
                if text.startswith("^"):
                    if text[1:] not in self._ops:
                        raise InvalidArgumentError(f"control input {text!r} of {node.name!r} is not in the graph")
                    if self._ops[text[1:]] not in op.control_inputs:
                        op.add_control_inputs([self._ops[text[1:]]])
                        late = True
        if late:
            topological_order(self._ops.values())  # raises when they close a cycle

    def _input(self, text: str, node: NodeDef) -> Tensor:
        text = _tensor_name(text)
        if text in self._replaced:
            return self._replaced[text]
        tensor = self._tensor(text)
        if tensor is None:
            raise InvalidArgumentError(f"input {text!r} of {node.name!r} is not an earlier tensor of the graph")
        return tensor

    def _tensor(self, text: str) -> Tensor | None:
        op_name, _, index = text.partition(":")
        op = self._ops.get(op_name)
        found = op is not None and index.isdecimal() and int(index) < len(op.outputs)
        return op.outputs[int(index)] if op is not None and found else None

    def element(self, name: str) -> Tensor | Operation:
        element = self._tensor(name) if ":" in name else self._ops.get(name)
        if element is None:
            raise InvalidArgumentError(f"{name!r} was asked for and is not in the imported graph")
        return element


def _tensor_name(name: str) -> str:
    return name if ":" in name else f"{name}:0"


# -- plain values --------------------------------------------------------------------------------------


def _node_to_plain(node: NodeDef) -> dict[str, Any]:
    return {
        "name": node.name,
        "op": node.op,
        "input": list(node.input),
        "device": node.device,
        "attr": {key: _to_plain(value) for key, value in node.attr.items()},
        "site": node.site,
        "shapes": [_to_plain(shape) for shape in node.shapes],
    }


def _node_from_plain(plain: Mapping[str, Any]) -> NodeDef:
    node = NodeDef(
        name=plain["name"],
        op=plain["op"],
        input=list(plain["input"]),
        device=plain["device"],
        attr={key: _from_plain(value) for key, value in plain["attr"].items()},
        site=plain["site"],
        shapes=[_from_plain(shape) for shape in plain["shapes"]],
        is_loaded=True,
    )
    texts = (node.name, node.op, node.device, node.site, *node.input)
    if not all(isinstance(text, str) for text in texts):
        raise TypeError(f"operation {node.name!r} has fields of the wrong type")
    return node


def _to_plain(value: Any) -> Any:
    """Tagged plain form: scalars stand for themselves, everything else is ``{"tag": content}``."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else {"float": repr(value)}
    if isinstance(value, DType):
        return {"dtype": value.name}
    if isinstance(value, TensorShape):
        return {"shape": None if value.rank is None else value.as_list()}
    if isinstance(value, bytes):
        return {"bytes": base64.b64encode(value).decode()}
    if isinstance(value, (list, tuple)):
        return {"tuple" if isinstance(value, tuple) else "list": [_to_plain(item) for item in value]}
    if isinstance(value, dict):
        return {"dict": [[_to_plain(key), _to_plain(item)] for key, item in value.items()]}
    if isinstance(value, slice):
        return {"slice": [value.start, value.stop, value.step]}
    if isinstance(value, RegionDef):
        nodes = [_node_to_plain(node) for node in value.node]
        return {"region": {"node": nodes, "inputs": list(value.inputs), "outputs": list(value.outputs)}}
    if isinstance(value, (np.ndarray, np.generic)):
        return {"array": _array_to_plain(np.asarray(value))}
    raise InvalidArgumentError(f"attribute value {value!r} (a {type(value).__name__}) is not plain data")


def _array_to_plain(array: np.ndarray[Any, Any]) -> dict[str, Any]:
    dtype = as_dtype(array.dtype)
    if dtype.name == "string":
        data: Any = [base64.b64encode(item).decode() for item in array.flat]
    else:
        data = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
    return {"dtype": dtype.name, "shape": list(array.shape), "data": data}


def _array_from_plain(plain: Mapping[str, Any]) -> np.ndarray[Any, Any]:
    dtype, shape = as_dtype(plain["dtype"]), tuple(plain["shape"])
    if dtype.name == "string":
        array = np.empty(len(plain["data"]), dtype=object)
        array[:] = [base64.b64decode(item, validate=True) for item in plain["data"]]
    else:
        array = np.frombuffer(base64.b64decode(plain["data"], validate=True), dtype=dtype.numpy)
    array = array.reshape(shape)
    array.flags.writeable = False
    return array


def _from_plain(value: Any) -> Any:
    if not isinstance(value, dict):
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        raise TypeError(f"{value!r} is not a plain value")
    ((tag, content),) = value.items()
    match tag:
        case "float":
            return float(content)
        case "dtype":
            return as_dtype(content)
        case "shape":
            return TensorShape(content)
        case "bytes":
            return base64.b64decode(content, validate=True)
        case "list":
            return [_from_plain(item) for item in content]
        case "tuple":
            return tuple(_from_plain(item) for item in content)
        case "dict":
            return {_from_plain(key): _from_plain(item) for key, item in content}
        case "slice":
            return slice(*content)
        case "region":
            nodes = [_node_from_plain(node) for node in content["node"]]
            return RegionDef(nodes, [str(name) for name in content["inputs"]], [str(n) for n in content["outputs"]])
        case "array":
            return _array_from_plain(content)
    raise TypeError(f"unknown tag {tag!r}")
