"""A node of a file of ONNX on its way into a graph, and the rules for operators."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from tfray.errors import DataLossError, UnimplementedError
from tfray.framework.constant_value import constant_value
from tfray.framework.convert import constant_tensor, convert_to_tensor
from tfray.framework.dtypes import DType
from tfray.framework.graph import Graph, Tensor, get_default_graph
from tfray.onnx.onnx_file import OnnxFile
from tfray.onnx.onnx_types import Schema

Rule = Callable[["Node"], Any]
"""Adds the operations for a node. Returns its outputs: a tensor, or a list of them with None for what is not there."""

LOADS: Final[dict[tuple[str, str], Rule]] = {}
"""What to do for an operator, by domain and type."""


def loads(*operators: str, domain: str = "") -> Callable[[Rule], Rule]:
    """Decorator: what to do for these operators."""

    def declare(function: Rule) -> Rule:
        LOADS.update(dict.fromkeys(((domain, operator) for operator in operators), function))
        return function

    return declare


@dataclass
class Scope:
    """What names stand for, in a graph of a file or in a branch or body.

    Attributes:
        file: The file.
        opsets: The version of each domain.
        add_nodes: Adds the nodes of a graph.
        outer: The scope around it.
        loops: The number of loops around it.
        values: Tensors by name.
        constants: Messages of constants by name, which become operations when they are used.
        graph: The graph that the nodes go to.
        attributes: Within an operator that consists of others, its attributes, to which theirs may refer.
    """

    file: OnnxFile
    opsets: Mapping[str, int]
    add_nodes: Callable[[Scope, Any], None]
    outer: Scope | None = None
    loops: int = 0
    values: dict[str, Tensor] = field(default_factory=dict)
    constants: dict[str, Any] = field(default_factory=dict)
    graph: Graph = field(default_factory=get_default_graph)
    attributes: Mapping[str, Any] = field(default_factory=dict)

    def inner(self, graph: Any, loops: int = 0) -> Scope:
        """The scope of a branch or body, which goes to the current graph."""
        made = Scope(self.file, self.opsets, self.add_nodes, self, self.loops + loops, attributes=self.attributes)
        made.constants.update((tensor.name, tensor) for tensor in graph.initializer)
        return made

    def run(self, graph: Any, inputs: Sequence[Tensor]) -> list[Tensor]:
        """Add the nodes of a branch or body. Returns its outputs.

        Args:
            graph: The graph.
            inputs: What it takes.
        """
        self.values.update(zip((info.name for info in graph.input), inputs, strict=True))
        self.add_nodes(self, graph.node)
        return [self.tensor(info.name) for info in graph.output]

    def tensor(self, name: str) -> Tensor:
        """The tensor of a name. Raises `KeyError`."""
        if name in self.constants and name not in self.values:
            with self.graph.as_default():
                self.values[name] = constant_tensor(self.file.array(self.constants[name]), clean_name(name))
        if name in self.values:
            return self.values[name]
        if self.outer is None:
            raise KeyError(f"no earlier node gives {name!r}")
        return self.outer.tensor(name)


def clean_name(name: str) -> str:
    """A name for an operation, made of one in a file."""
    return re.sub(r"[^A-Za-z0-9_.\-/]", "_", name).strip("_-/") or "value"


def _without_references(proto: Any, attributes: Mapping[str, Any]) -> Any:
    """A node with values in place of references to the attributes of the operator that it is a part of."""
    if not any(attribute.ref_attr_name for attribute in proto.attribute):
        return proto
    made = type(proto)()
    made.CopyFrom(proto)
    del made.attribute[:]
    for attribute in proto.attribute:
        found = attributes.get(attribute.ref_attr_name) if attribute.ref_attr_name else attribute
        if found is not None:
            made.attribute.add().CopyFrom(found)
            made.attribute[-1].name = attribute.name
    return made


@dataclass
class Node:
    """A node that is being added.

    Attributes:
        proto: Its message.
        scope: What names stand for.
        declared: The schema of its operator.
        version: The version of its operator's domain.
    """

    proto: Any
    scope: Scope
    declared: Schema
    version: int

    def __post_init__(self) -> None:
        self.inputs = [self.scope.tensor(name) if name else None for name in self.proto.input]
        self.proto = _without_references(self.proto, self.scope.attributes)
        self._attributes = {attribute.name: attribute for attribute in self.proto.attribute}
        unknown = self._attributes.keys() - self.declared.defaults.keys()
        if unknown:
            raise self.refuse(f"the attribute {min(unknown)!r}, which version {self.version} has not")

    @property
    def operator(self) -> str:
        """Its type."""
        return str(self.proto.op_type)

    @property
    def wanted(self) -> int:
        """The number of its outputs."""
        return len(self.proto.output)

    def input(self, index: int) -> Tensor:
        """An input that must be there."""
        found = self.inputs[index]
        if found is None:
            raise ValueError(f"input {index} is missing")
        return found

    def optional(self, index: int) -> Tensor | None:
        """An input that may be left out."""
        return self.inputs[index] if index < len(self.inputs) else None

    def expanded(self) -> list[Tensor | None]:
        """The outputs, by the operators of which ONNX says that this one consists."""
        function = self.declared.function(self.proto, [None if x is None else x.dtype for x in self.inputs])
        opsets = {each.domain: each.version for each in function.opset_import}
        defaults = {name: each.default_value for name, each in self.declared.source.attributes.items()}
        known = {name: each for name, each in defaults.items() if each.name} | self._attributes
        inside = Scope(self.scope.file, opsets, self.scope.add_nodes, loops=self.scope.loops, attributes=known)
        given = zip(function.input, self.inputs, strict=False)
        inside.values.update((name, tensor) for name, tensor in given if tensor is not None)
        try:
            inside.add_nodes(inside, function.node)
            wanted = zip(function.output, self.proto.output, strict=False)
            return [inside.tensor(name) if taken else None for name, taken in wanted]
        except (DataLossError, KeyError) as error:  # not all of them are written for all dtypes and inputs
            raise self.refuse(f"the operators of which ONNX says that it consists: {error}") from error

    def attr(self, name: str, default: Any = None) -> Any:
        """The value of an attribute; where it is not given the schema's default, or `default` if there is none.

        Text is `str`, a tensor an array.
        """
        found = self._attributes.get(name)
        if found is None:
            value = self.declared.defaults.get(name)
            value = default if value is None else value
            return value.decode() if isinstance(value, bytes) else value
        value = _VALUES[found.type](found)
        if found.type == _TENSOR:
            return self.scope.file.array(value)
        return value.decode() if isinstance(value, bytes) else value

    def arg(self, name: str) -> Any:
        """An argument that is an attribute in some versions and an input in others: its value or tensor, or None."""
        if name in self.declared.inputs:
            return self.optional(self.declared.inputs.index(name))
        return self.attr(name)

    def known(self, name: str) -> Any | None:
        """The value of such an argument as an array, None where it is not given.

        Raises:
            UnimplementedError: It is given, and known only when a step runs.
        """
        found = self.arg(name)
        return None if found is None else self.value(found, name) if isinstance(found, Tensor) else np.asarray(found)

    def needed(self, name: str) -> Any:
        """As `known`, for an argument that must be given."""
        found = self.known(name)
        if found is None:
            raise ValueError(f"{name} is missing")
        return found

    def value(self, tensor: Tensor, what: str) -> Any:
        """The value of a tensor that has to be known. Raises `UnimplementedError`."""
        value = constant_value(tensor)
        if value is None:
            raise UnimplementedError(f"tfray needs to know {what} of {self.operator} {self.proto.name!r} beforehand")
        return np.asarray(value)

    def rank(self, tensor: Tensor) -> int:
        """The rank of a tensor. Raises `UnimplementedError` where it is not known."""
        if tensor.shape.rank is None:
            raise UnimplementedError(f"tfray needs to know the rank of {tensor.name!r} for {self.operator}")
        return tensor.shape.rank

    def refuse(self, why: str) -> UnimplementedError:
        """The error for what tfray has no counterpart of."""
        return UnimplementedError(f"{self.operator} {self.proto.name!r}: tfray has no counterpart with {why}")

    def require(self, **wanted: Any) -> None:
        """Raise `UnimplementedError` unless attributes have these values."""
        for name, value in wanted.items():
            if not self.has(name, value):
                raise self.refuse(f"{name}={self.attr(name)!r}")

    def has(self, name: str, value: Any) -> bool:
        """Whether an attribute has a value, or is not there."""
        found = self.attr(name, value)
        return bool(np.isclose(found, value)) if isinstance(value, float) else bool(found == value)


def number(value: Any, like: Tensor | DType) -> Tensor:
    """A constant of a tensor's dtype."""
    dtype = like.dtype if isinstance(like, Tensor) else like
    return convert_to_tensor(np.asarray(value).astype(dtype.numpy))


_TENSOR: Final = 4
_VALUES: Final[dict[int, Callable[[Any], Any]]] = {
    1: lambda attribute: attribute.f,
    2: lambda attribute: attribute.i,
    3: lambda attribute: attribute.s,
    4: lambda attribute: attribute.t,
    5: lambda attribute: attribute.g,
    6: lambda attribute: list(attribute.floats),
    7: lambda attribute: list(attribute.ints),
    8: lambda attribute: list(attribute.strings),
}
"""The value of an attribute, by the number of its kind (``AttributeProto.AttributeType``)."""
