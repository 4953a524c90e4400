"""Graphs as plain data: the form that crosses processes and lies in files. Never pickled."""

from __future__ import annotations

import base64
import importlib
import itertools
import json
from collections.abc import Collection, Container, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from tfray.errors import DataLossError, InvalidArgumentError
from tfray.framework.arguments import abbreviated
from tfray.framework.call_errors import DAMAGE, fields_of, reason_of
from tfray.framework.dtypes import DType, as_dtype
from tfray.framework.tensor_shape import TensorShape

FORMAT_VERSION: Final = 1


_messages = ""


def messages_by(module: str) -> None:
    """Let a module make messages of graphs: its ``graph_message(graph, add_shapes)`` and ``node_message(op)``."""
    global _messages
    _messages = module


_drawing = ""


def draw_with(module: str) -> None:
    """Let the function ``graph_html`` of `module`, imported when first needed, draw graphs in notebooks."""
    global _drawing
    _drawing = module


def drawn(graph: Any) -> str | None:
    """A graph as HTML; None if no module draws graphs."""
    html: str | None = importlib.import_module(_drawing).graph_html(graph) if _drawing else None
    return html


def messages() -> Any:
    """That module. It stands above this one, and is loaded when it is needed."""
    return importlib.import_module(_messages)


def free_name(wanted: str, taken: Container[str]) -> str:
    """`wanted`, or with the first number behind it under which it is not taken."""
    numbered = (f"{wanted}_{number}" for number in itertools.count(1))
    return next(name for name in itertools.chain([wanted], numbered) if name not in taken)


_FORMER_TYPES: Final = {"ReadVariable": "ReadVariableOp"}
"""Names of operation types in graphs that earlier versions wrote."""


@dataclass
class PlainNode:
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
        return isinstance(other, PlainNode) and self.to_plain() == other.to_plain()

    def to_plain(self) -> dict[str, Any]:
        """Nested dictionaries, lists, numbers and strings, ready for JSON."""
        return {
            "name": self.name,
            "op": self.op,
            "input": list(self.input),
            "device": self.device,
            "attr": {key: _to_plain(value) for key, value in self.attr.items()},
            "site": self.site,
            "shapes": [_to_plain(shape) for shape in self.shapes],
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> PlainNode:
        """The operation that `to_plain` gave. Raises Python's errors for anything else."""
        fields_of(plain, "an operation", name=str, op=str, input=list, device=str, attr=dict, site=str, shapes=list)
        try:
            return cls._of_fields(plain)
        except DAMAGE as error:
            raise ValueError(f"operation {plain['name']!r}: {reason_of(error)}") from error

    @classmethod
    def _of_fields(cls, plain: Mapping[str, Any]) -> PlainNode:
        node = cls(
            name=plain["name"],
            op=_FORMER_TYPES.get(plain["op"], plain["op"]),
            input=list(plain["input"]),
            device=plain["device"],
            attr={key: _from_plain(value) for key, value in plain["attr"].items()},
            site=plain["site"],
            shapes=[_from_plain(shape) for shape in plain["shapes"]],
            is_loaded=True,
        )
        if not all(isinstance(text, str) for text in node.input):
            raise TypeError("its inputs are not all texts")
        return node


@dataclass
class PlainRegion:
    """A region: the value of an attribute.

    Attributes:
        node: Its operations, in an order in which each comes after its inputs.
        inputs: Names of the tensors that the owning operation passes in.
        outputs: Names of the tensors that it returns.
    """

    node: list[PlainNode]
    inputs: list[str]
    outputs: list[str]


@dataclass
class PlainGraph:
    """Operations in an order in which each comes after its inputs.

    Attributes:
        node: The operations.
        version: Version of this form.
        seed: Graph-level seed of random operations.
        absent: What the operations take and the graph lacks, by name: an `input_map` has to give it.
    """

    node: list[PlainNode] = field(default_factory=list)
    version: int = FORMAT_VERSION
    seed: int | None = None
    absent: Collection[str] = field(default=(), compare=False)

    def to_plain(self) -> dict[str, Any]:
        """Nested dictionaries, lists, numbers and strings, ready for JSON."""
        return {"version": self.version, "seed": self.seed, "node": [node.to_plain() for node in self.node]}

    @classmethod
    def from_plain(cls, plain: Any) -> PlainGraph:
        """The graph that `to_plain` gave. Raises `DataLossError` when `plain` is not of that form."""
        try:
            if fields_of(plain, "the graph", version=int, node=list)["version"] != FORMAT_VERSION:
                version = abbreviated(plain["version"])
                raise DataLossError(f"graph of version {version}; this tfray reads {FORMAT_VERSION}")
            nodes, seed = plain["node"], plain.get("seed")
            if not (seed is None or isinstance(seed, int)):
                raise TypeError(f"its seed is {abbreviated(seed)}")
            return cls([PlainNode.from_plain(node) for node in nodes], FORMAT_VERSION, seed)
        except DAMAGE as error:
            raise DataLossError(f"not a serialised graph: {reason_of(error)}") from error

    def SerializeToString(self) -> bytes:
        """This graph as bytes ; they are JSON."""
        return json.dumps(self.to_plain(), separators=(",", ":")).encode()

    @classmethod
    def FromString(cls, data: bytes) -> PlainGraph:
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


# -- plain values --------------------------------------------------------------------------------------


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
    if isinstance(value, PlainRegion):
        nodes = [node.to_plain() for node in value.node]
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
        raise TypeError(f"{abbreviated(value)} is not a plain value")
    if len(value) != 1:
        raise TypeError(f"{abbreviated(value)} is not one plain value")
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
            nodes = [PlainNode.from_plain(node) for node in content["node"]]
            return PlainRegion(nodes, [str(name) for name in content["inputs"]], [str(n) for n in content["outputs"]])
        case "array":
            return _array_from_plain(content)
    raise TypeError(f"unknown tag {tag!r}")
