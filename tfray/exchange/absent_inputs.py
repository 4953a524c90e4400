"""Inputs of a message's operations that only the caller's `input_map` gives: the message lacks what makes them.

While the message becomes a graph, placeholders stand for them, variables for handles of variables, and for other
handles what makes these. The graph then names what the message named.
"""

from __future__ import annotations

from collections.abc import Mapping

from tfray.exchange.attributes import write_attr
from tfray.exchange.op_table import operation_type
from tfray.exchange.to_tensorflow import node_of
from tfray.formats.graph_proto import GraphDef
from tfray.framework.dtypes import DType, as_dtype, resource
from tfray.framework.graph import Tensor
from tfray.framework.plain_graph import PlainGraph
from tfray.framework.region import variable_behind
from tfray.framework.tensor_shape import TensorShape


class AbsentInputs:
    """What `given` names and `message` lacks.

    Args:
        message: The graph.
        given: Name of a tensor, or ``^operation``, to the tensor that replaces it.
    """

    def __init__(self, message: GraphDef, given: Mapping[str, Tensor]) -> None:
        taken = {node.name for node in message.node}
        absent = {key: tensor for key, tensor in given.items() if key.strip("^").partition(":")[0] not in taken}
        self._stand_ins: dict[str, tuple[str, Tensor]] = {}
        for key, tensor in absent.items():
            name, _, index = key.partition(":")
            free = f"{name.lstrip('^$')}_{index or 'control'}"
            while free in taken:
                free += "_"
            taken.add(free)
            self._stand_ins[key] = free, tensor
        self._used: set[str] = set()

    def filled(self, message: GraphDef) -> GraphDef:
        """The message with placeholders and variables for what it lacks: itself, where it lacks nothing."""
        if not self._stand_ins:
            return message
        whole = GraphDef()
        whole.CopyFrom(message)
        referred: set[str] = set()
        for node in whole.node:
            node.input[:] = [self._filled(text) for text in node.input]
            definition = operation_type(node.op)
            if definition and any(arg.is_variable for arg in definition.inputs):
                referred.update(node.input)
        for name, tensor in self._stand_ins.values():
            variable = "VariableV2" if name in referred else "VarHandleOp"
            behind = variable_behind(tensor)
            if behind is None and tensor.dtype is resource and (used := _used_as(whole, name)):
                behind = used, TensorShape(None)
            if behind is None and _is_handle_of_another_kind(tensor):
                whole.node.add().CopyFrom(node_of(tensor.op))
                whole.node[-1].name = name
                continue
            node = whole.node.add(name=name, op=variable if behind else "Placeholder")
            dtype, shape = behind or (tensor.dtype, tensor.shape)
            write_attr(node.attr["dtype"], "type", dtype)
            write_attr(node.attr["shape"], "shape", shape)
        return whole

    def _filled(self, text: str) -> str:
        mark = "^" if text.startswith("^") else ""
        key = text if mark or ":" in text else f"{text}:0"
        if key not in self._stand_ins:
            return text
        self._used.add(key)
        return mark + self._stand_ins[key][0]

    def named(self, graph: PlainGraph) -> PlainGraph:
        """A graph that was made of the filled message, with the names of what it lacks, and without stand-ins."""
        if self._stand_ins:
            keys = {name: key for key, (name, _) in self._stand_ins.items()}
            graph.node = [node for node in graph.node if node.name not in keys]
            for node in graph.node:
                node.input = [_named(text, keys) for text in node.input]
            graph.absent = frozenset(self._used)
        return graph


def _named(text: str, keys: Mapping[str, str]) -> str:
    key = keys.get(text.strip("^").partition(":")[0])
    return text if key is None else "^" * text.startswith("^") + key.strip("^")


def _is_handle_of_another_kind(tensor: Tensor) -> bool:
    """Whether a tensor is the handle of a table, an iterator or the like, and what makes it is known."""
    return tensor.dtype is resource and not tensor.op.inputs and tensor.op.type != "RegionInput"


def _used_as(message: GraphDef, name: str) -> DType | None:
    """The dtype that operations expect of a variable of which only the handle is there: a function got it."""
    users = (node for node in message.node if name in node.input and "dtype" in node.attr)
    return next((as_dtype(node.attr["dtype"].type) for node in users), None)
