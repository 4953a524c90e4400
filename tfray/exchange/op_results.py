"""What TensorFlow's operations return, and which have effects: what functions of a GraphDef must say of their nodes.

The table, ``op_results.txt``, is written by ``scripts/tensorflow_op_results.py``. A line is an operation, and what it
returns:

    TopKV2 values:T indices:index_type=3

``!`` behind the name marks effects (state that is read or written, references to variables), ``@`` that the operation
names something shared, so that two operations can stand for the same variable or queue. Behind the colon stand ``&``
for a reference, then the number of a dtype, the attribute that holds the dtype (with its default), or, in brackets,
the attribute that holds one dtype for each tensor of the output; then ``*`` and the attribute that counts the tensors.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from importlib import resources
from typing import Any

from tfray.errors import InvalidArgumentError


@dataclass(frozen=True)
class OutputArg:
    """One output: a tensor, or several.

    Attributes:
        name: Its name, by which functions refer to it.
        is_ref: Whether it is a reference to a variable, which can be assigned.
        dtype: Number of its dtype; with `dtype_attr`, of its default, 0 for none.
        dtype_attr: The attribute that holds the dtype.
        list_attr: The attribute that holds a dtype for each of its tensors.
        count_attr: The attribute that says how many tensors it is.
    """

    name: str
    is_ref: bool = False
    dtype: int = 0
    dtype_attr: str = ""
    list_attr: str = ""
    count_attr: str = ""

    def dtypes(self, node: Any) -> list[int]:
        """The dtypes of its tensors, for a NodeDef. Raises `InvalidArgumentError` when an attribute is missing."""
        if self.list_attr:
            return list(_attr(node, self.list_attr).list.type)
        dtype = self.dtype
        if self.dtype_attr and (not dtype or self.dtype_attr in node.attr):
            dtype = _attr(node, self.dtype_attr).type
        return [dtype] * (_attr(node, self.count_attr).i if self.count_attr else 1)


@dataclass(frozen=True)
class OpEntry:
    """An operation type.

    Attributes:
        name: Its name.
        outputs: Its outputs.
        has_effects: Whether it reads or writes state, or takes or gives references.
        is_shared: Whether another operation of the same ``shared_name`` stands for the same thing.
    """

    name: str
    outputs: tuple[OutputArg, ...]
    has_effects: bool
    is_shared: bool

    def tensors(self, node: Any) -> list[tuple[str, int]]:
        """The tensors that a NodeDef returns: each as functions write it behind the node's name, and its dtype.

        Raises `InvalidArgumentError` when an attribute that tells them is missing.
        """
        return [
            (f"{output.name}:{index}", dtype)
            for output in self.outputs
            for index, dtype in enumerate(output.dtypes(node))
        ]


def entry_of(op: str) -> OpEntry | None:
    """The operation type `op`; None for one that TensorFlow 2.21 does not have."""
    line = _lines().get(op)
    return None if line is None else _entry(line)


def entry_of_signature(signature: Any) -> OpEntry:
    """A function of a library as an operation type, from its ``signature``. It is taken to have effects."""
    outputs = tuple(
        OutputArg(
            arg.name,
            dtype=arg.type,
            dtype_attr=getattr(arg, "type_attr", ""),
            list_attr=getattr(arg, "type_list_attr", ""),
            count_attr=getattr(arg, "number_attr", ""),
        )
        for arg in signature.output_arg
    )
    return OpEntry(signature.name, outputs, has_effects=True, is_shared=False)


@functools.cache
def _lines() -> dict[str, str]:
    text = resources.files("tfray.exchange").joinpath("op_results.txt").read_text("ascii")
    return {line.partition(" ")[0].rstrip("!@"): line for line in text.splitlines()}


@functools.cache
def _entry(line: str) -> OpEntry:
    name, *outputs = line.split(" ")
    return OpEntry(name.rstrip("!@"), tuple(map(_output, outputs)), "!" in name, "@" in name)


def _output(text: str) -> OutputArg:
    name, _, kind = text.partition(":")
    kind, _, count = kind.partition("*")
    is_ref, kind = kind.startswith("&"), kind.removeprefix("&")
    if kind.startswith("["):
        return OutputArg(name, is_ref, list_attr=kind[1:-1])
    attr, _, default = kind.partition("=")
    if attr.isdigit():
        return OutputArg(name, is_ref, int(attr), count_attr=count)
    return OutputArg(name, is_ref, int(default or 0), attr, count_attr=count)


def _attr(node: Any, name: str) -> Any:
    if name not in node.attr:
        raise InvalidArgumentError(f"{node.op} {node.name!r} has no attribute {name!r}, which tells what it returns")
    return node.attr[name]
