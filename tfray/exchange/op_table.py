"""TensorFlow's definitions of operation types, as ``scripts/tensorflow_ops.py`` has written them down."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tfray.framework.dtypes import as_dtype
from tfray.framework.tensor_shape import TensorShape

REQUIRED: Any = object()
"""Stands for the default of an attribute that has none."""


@dataclass(frozen=True)
class TensorFlowArg:
    """An input or output.

    Attributes:
        name: Its name.
        type: A dtype's name, or the attribute that gives the dtype; ``""`` where `types` gives one for each tensor.
        number: The attribute that says how many tensors it is; ``""`` for one.
        types: The attribute that lists the dtypes of its tensors, or ``""``.
        is_ref: Whether it is a reference to a variable.
    """

    name: str
    type: str
    number: str
    types: str
    is_ref: bool

    def count(self, attrs: Mapping[str, Any]) -> int:
        """How many tensors it is. `attrs` are the values of attributes."""
        return len(attrs[self.types]) if self.types else int(attrs[self.number]) if self.number else 1

    @property
    def takes_resource(self) -> bool:
        """Whether it may be the handle of a resource, and not only a value."""
        return self.is_ref or self.type == "resource" or bool(self.types)


@dataclass(frozen=True)
class TensorFlowAttr:
    """An attribute: its type, such as ``list(shape)``, its default or `REQUIRED`, and what it may be."""

    name: str
    type: str
    default: Any
    allowed: tuple[str, ...]


@dataclass(frozen=True)
class TensorFlowOp:
    """An operation type."""

    name: str
    inputs: tuple[TensorFlowArg, ...]
    outputs: tuple[TensorFlowArg, ...]
    attrs: Mapping[str, TensorFlowAttr]

    @functools.cached_property
    def implied(self) -> frozenset[str]:
        """The attributes that follow from the inputs: their dtypes and numbers."""
        return frozenset(
            name for arg in self.inputs for name in (arg.type, arg.number, arg.types) if name in self.attrs
        )


@functools.cache
def _lines() -> dict[str, str]:
    text = Path(__file__).with_name("tensorflow_ops.txt").read_text()
    return {line.partition("\t")[0]: line for line in text.splitlines()}


@functools.cache
def tensorflow_op(name: str) -> TensorFlowOp | None:
    """TensorFlow's operation type of that name, None for one that tfray knows nothing about."""
    line = _lines().get(name)
    if line is None:
        return None
    _, inputs, outputs, *attrs = line.split("\t")
    parsed = map(_attr, filter(None, attrs))
    return TensorFlowOp(name, tuple(_args(inputs)), tuple(_args(outputs)), {attr.name: attr for attr in parsed})


def _args(text: str) -> Iterator[TensorFlowArg]:
    for word in text.split():
        name, _, kind = word.partition(":")
        number, star, one = kind.removesuffix("&").rpartition("*")
        listed = bool(star) and not number
        yield TensorFlowArg(name, "" if listed else one, number, one if listed else "", kind.endswith("&"))


def _attr(text: str) -> TensorFlowAttr:
    name, _, rest = text.partition(":")
    allowed: tuple[str, ...] = ()
    if rest.endswith("}"):
        rest, _, names = rest[:-1].rpartition("{")
        allowed = tuple(names.split(","))
    kind, given, default = rest.partition("=")
    return TensorFlowAttr(name, kind, _value(kind, json.loads(default)) if given else REQUIRED, allowed)


def _value(kind: str, value: Any) -> Any:
    if kind.startswith("list("):
        return [_value(kind[5:-1], each) for each in value]
    if kind == "type":
        return as_dtype(value)
    return TensorShape(value) if kind == "shape" else value
