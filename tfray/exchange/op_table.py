"""TensorFlow's definitions of operation types, as ``scripts/tensorflow_ops.py`` has written them down."""

from __future__ import annotations

import functools
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tfray.errors import InvalidArgumentError
from tfray.framework.dtypes import DType, as_dtype
from tfray.framework.tensor_shape import TensorShape

REQUIRED: Any = object()
"""Stands for the default of an attribute that has none."""

OWN: Final = "Tfray>"
"""Before the types that only tfray has, in graphs of TensorFlow's form."""

OWN_ATTRS: Final = "_tfray"
"""The attribute that holds all attributes of an operation of such a type, as plain data.

On a node of TensorFlow's type it holds the operation that the node stands for, with its type and inputs.
"""

OWN_PART: Final = "_tfray_part"
"""Marks nodes that only TensorFlow needs: another node holds the operation that they are part of."""


NEWER: Final = "+"
"""Behind the name of an attribute in the table, if the type does not have it in TensorFlow 1.15."""

_READS_LIKE = "like:variant prefix:N*int32\tvalue:dtype"
_OF_ELEMENTS = "N:int\tdtype:type\telement_shape:shape=null"

OF_GRADIENTS: Final = {
    "TensorArrayAccumulate": "flow:variant index:int32 value:T\tchanged:variant\tT:type",
    "TensorArrayAccumulateParts": "flow:variant value:T lengths:int64\tchanged:variant\tT:type",
    "TensorArrayAccumulateRows": "flow:variant indices:int32 value:T\tchanged:variant\tT:type",
    "TensorArrayConcatLike": f"flow:variant {_READS_LIKE} lengths:int64\t{_OF_ELEMENTS}",
    "TensorArrayGatherLike": f"flow:variant indices:int32 {_READS_LIKE}\t{_OF_ELEMENTS}",
    "TensorArrayOfNothing": "\tflow:variant",
    "TensorArrayReadLike": f"flow:variant index:int32 {_READS_LIKE}\t{_OF_ELEMENTS}",
}
"""Types that TensorFlow does not have, in the form of its table: see `tfray.exchange.gradient_arrays`."""


@dataclass(frozen=True)
class TensorFlowArg:
    """An input or output.

    Attributes:
        name: Its name.
        type: A dtype's name, or the attribute that gives the dtype; ``""`` where `types` gives one for each tensor.
        number: The attribute that says how many tensors it is; ``""`` for one.
        types: The attribute that lists the dtypes of its tensors, or ``""``.
        is_ref: Whether it is a reference: to a variable, or as text to what else outlives a step, such as a queue.
    """

    name: str
    type: str
    number: str
    types: str
    is_ref: bool

    def dtypes(self, node: Any, attrs: Mapping[str, TensorFlowAttr]) -> list[int]:
        """The numbers of the dtypes of its tensors, for a NodeDef of a type with these attributes.

        Raises `InvalidArgumentError` where an attribute that tells them is missing.
        """
        if self.types:
            return list(_given(node, self.types).list.type)
        if self.type not in attrs:
            dtype = _number(self.type)
        elif self.type not in node.attr and isinstance(attrs[self.type].default, DType):
            dtype = attrs[self.type].default.as_datatype_enum
        else:
            dtype = _given(node, self.type).type
        return [dtype] * (_given(node, self.number).i if self.number else 1)

    def count(self, attrs: Mapping[str, Any]) -> int:
        """How many tensors it is. `attrs` are the values of attributes."""
        return len(attrs[self.types]) if self.types else int(attrs[self.number]) if self.number else 1

    @property
    def is_variable(self) -> bool:
        """Whether it is a reference to a variable."""
        return self.is_ref and self.type != "string"

    @property
    def takes_resource(self) -> bool:
        """Whether it may be the handle of a resource, and not only a value."""
        return self.is_ref or self.type == "resource" or bool(self.types)


@dataclass(frozen=True)
class TensorFlowAttr:
    """An attribute: its type, such as ``list(shape)``, its default or `REQUIRED`, and what it may be.

    `is_newer` says that the operation type lacks it in TensorFlow 1.15, which refuses nodes that have it.
    """

    name: str
    type: str
    default: Any
    allowed: tuple[str, ...]
    is_newer: bool = False


@dataclass(frozen=True)
class TensorFlowOp:
    """An operation type; `is_stateful` says whether it reads or writes what outlives a step."""

    name: str
    inputs: tuple[TensorFlowArg, ...]
    outputs: tuple[TensorFlowArg, ...]
    attrs: Mapping[str, TensorFlowAttr]
    is_stateful: bool

    @property
    def has_effects(self) -> bool:
        """Whether it reads or writes state, or takes or gives references."""
        return self.is_stateful or any(arg.is_ref for arg in (*self.inputs, *self.outputs))

    @property
    def is_shared(self) -> bool:
        """Whether another operation of the same ``shared_name`` stands for the same thing."""
        return "shared_name" in self.attrs

    def tensors(self, node: Any) -> list[tuple[str, int]]:
        """The tensors that a NodeDef returns: each as functions write it behind the node's name, and its dtype.

        Raises `InvalidArgumentError` when an attribute that tells them is missing.
        """
        return [
            (f"{output.name}:{index}", dtype)
            for output in self.outputs
            for index, dtype in enumerate(output.dtypes(node, self.attrs))
        ]

    @functools.cached_property
    def implied(self) -> frozenset[str]:
        """The attributes that follow from the inputs: their dtypes and numbers."""
        return frozenset(
            name for arg in self.inputs for name in (arg.type, arg.number, arg.types) if name in self.attrs
        )


@functools.cache
def _lines() -> dict[str, str]:
    text = Path(__file__).with_name("tensorflow_ops.txt").read_text()
    return {line.partition("\t")[0].removesuffix("!"): line for line in text.splitlines()}


def operation_names() -> Collection[str]:
    """The names of TensorFlow's operation types."""
    return _lines().keys()


@functools.cache
def tensorflow_op(name: str) -> TensorFlowOp | None:
    """TensorFlow's operation type of that name; None where 2.21 has none."""
    line = _lines().get(name)
    return None if line is None else _parsed(name, line)


@functools.cache
def operation_type(name: str) -> TensorFlowOp | None:
    """TensorFlow's operation type of that name, or one of `OF_GRADIENTS`."""
    return _parsed(name, f"{name}\t{OF_GRADIENTS[name]}") if name in OF_GRADIENTS else tensorflow_op(name)


def _parsed(name: str, line: str) -> TensorFlowOp:
    first, inputs, outputs, *attrs = line.split("\t")
    parsed = {attr.name: attr for attr in map(_attr, filter(None, attrs))}
    return TensorFlowOp(name, tuple(_args(inputs)), tuple(_args(outputs)), parsed, first.endswith("!"))


def function_as_op(signature: Any) -> TensorFlowOp:
    """A function of a library as an operation type, from its ``signature``. It is taken to have effects."""
    outputs = (
        TensorFlowArg(arg.name, arg.type_attr or _name(arg.type), arg.number_attr, arg.type_list_attr, arg.is_ref)
        for arg in signature.output_arg
    )
    attrs = {attr.name: TensorFlowAttr(attr.name, attr.type, REQUIRED, ()) for attr in signature.attr}
    return TensorFlowOp(signature.name, (), tuple(outputs), attrs, is_stateful=True)


def _given(node: Any, name: str) -> Any:
    if name not in node.attr:
        raise InvalidArgumentError(f"{node.op} {node.name!r} has no attribute {name!r}, which tells what it returns")
    return node.attr[name]


@functools.cache
def _number(dtype: str) -> int:
    return as_dtype(dtype).as_datatype_enum


@functools.cache
def _name(number: int) -> str:
    return as_dtype(number).name if number else ""


def _args(text: str) -> Iterator[TensorFlowArg]:
    for word in text.split():
        name, _, kind = word.partition(":")
        number, star, one = kind.removesuffix("&").rpartition("*")
        listed = bool(star) and not number
        yield TensorFlowArg(name, "" if listed else one, number, one if listed else "", kind.endswith("&"))


def _attr(text: str) -> TensorFlowAttr:
    name, _, rest = text.partition(":")
    is_newer = name.endswith(NEWER)
    allowed: tuple[str, ...] = ()
    if rest.endswith("}"):
        rest, _, names = rest[:-1].rpartition("{")
        allowed = tuple(names.split(","))
    kind, given, default = rest.partition("=")
    return TensorFlowAttr(
        name.removesuffix(NEWER), kind, _value(kind, json.loads(default)) if given else REQUIRED, allowed, is_newer
    )


def _value(kind: str, value: Any) -> Any:
    if kind.startswith("list("):
        return [_value(kind[5:-1], each) for each in value]
    if kind == "type":
        return as_dtype(value)
    return TensorShape(value) if kind == "shape" else value
