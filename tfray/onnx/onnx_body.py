"""A graph of ONNX on its way to a file: its nodes, and the values that stand for tensors.

A tensor may have several values, one for each order of its axes that was needed. Operations on images take and give
their channels first in ONNX. Operations that work element by element, along an axis or over axes follow the order of
what they take, so that a Transpose stands only where an order is needed that is not there: inverse ones never meet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from tfray.errors import UnimplementedError
from tfray.framework import dtypes
from tfray.framework.constant_value import constant_value
from tfray.framework.dtypes import DType
from tfray.framework.graph import Operation, Tensor
from tfray.framework.plain_graph import free_name
from tfray.framework.tensor_shape import TensorShape
from tfray.onnx.onnx_types import number_of, onnx_package, schema, to_tensor_proto
from tfray.onnx.same_ops import SAME

Order = tuple[int, ...] | None
"""An order of a tensor's axes: the value is the tensor transposed by it. None for the tensor's own order."""

Rule = Callable[["Body", Operation], Any]
"""Adds the nodes for an operation. Returns the values of its outputs, one or a list, or None if it has `put` them."""

EXPORTS: Final[dict[str, Rule]] = {}
"""What to do for types that are no operator of ONNX as they are."""


def exports(*types: str) -> Callable[[Rule], Rule]:
    """Decorator: what to do for these types."""

    def declare(function: Rule) -> Rule:
        EXPORTS.update(dict.fromkeys(types, function))
        return function

    return declare


def channels_first(rank: int, layout: str) -> Order:
    """The order of axes in which ONNX takes images, sequences or volumes whose layout is `layout`, such as ``NHWC``."""
    return None if layout.startswith("NC") else (0, rank - 1, *range(1, rank - 1))


class Shared:
    """What all graphs of a file have in common.

    Attributes:
        opset: Version of the operators.
        initializers: The constants.
        missing: The operations without counterpart, by type, each with the reason.
        taken: Names of values.
    """

    def __init__(self, opset: int) -> None:
        self.opset = opset
        self.initializers: list[Any] = []
        self.missing: dict[str, list[tuple[Operation, str]]] = {}
        self.taken: set[str] = set()
        self._constants: dict[Any, str] = {}

    def free_name(self, wanted: str) -> str:
        """A name that no other value has."""
        name = free_name(wanted, self.taken)
        self.taken.add(name)
        return name

    def constant(self, array: Any, wanted: str) -> str:
        """The name of a constant. Equal small ones are one."""
        array = np.asarray(array)
        small = array.dtype.kind != "O" and array.nbytes <= 1024
        key: Any = (array.dtype.str, array.shape, array.tobytes()) if small else self.free_name(wanted)
        if key not in self._constants:
            self._constants[key] = self.free_name(wanted) if small else key
            self.initializers.append(to_tensor_proto(array, self._constants[key]))
        return self._constants[key]


class Body:
    """The nodes of a graph, or of a branch or the body of a loop.

    Args:
        shared: What it has in common with the graphs around it.
        scope: Begins the names of its values, if not empty.

    Attributes:
        nodes: The nodes.
        flows: What stands for a TensorArray, by its flow.
    """

    def __init__(self, shared: Shared, scope: str = "") -> None:
        self.shared = shared
        self.scope = scope
        self.nodes: list[Any] = []
        self.flows: dict[Tensor, Any] = {}
        self._values: dict[Tensor, dict[Order, str]] = {}
        self._indices: dict[Tensor, str] = {}
        self._current = scope

    @property
    def opset(self) -> int:
        """Version of the operators."""
        return self.shared.opset

    # -- operations --------------------------------------------------------------------------------

    def add_all(self, ops: Iterable[Operation]) -> None:
        """Add the nodes for operations, which stand in the order in which they may run."""
        for op in ops:
            if op.type not in ("Const", "Placeholder", "RegionInput", "NoOp"):
                self._add(op)

    def _add(self, op: Operation) -> None:
        """Add the nodes for an operation. One that has no counterpart is noted."""
        outer, self._current = self._current, self.scope + op.name
        try:
            rule = EXPORTS.get(op.type) or (_same if op.type in SAME else None)
            if rule is None:
                raise UnimplementedError("")
            made = rule(self, op)
        except UnimplementedError as error:
            self.shared.missing.setdefault(op.type, []).append((op, error.message))
            made = [""] * len(op.outputs)
        if made is not None:
            for tensor, name in zip(op.outputs, [made] if isinstance(made, str) else made, strict=False):
                self.put(tensor, name)
        self._current = outer

    def emit(self, operator: str, inputs: Sequence[str], outputs: int = 1, /, **arguments: Any) -> Any:
        """Add a node.

        Args:
            operator: Its type.
            inputs: Its first inputs.
            outputs: Number of its outputs.
            **arguments: Attributes, or further inputs: arrays and numbers become constants, text names a value. Which
                of the two an argument is, the operator's schema says.

        Returns:
            The name of its output, or a list of names if there are several.
        """
        declared = schema(operator, self.opset)
        if declared is None:
            raise UnimplementedError(f"opset {self.opset} has no {operator}")
        taken, attributes = list(inputs), {}
        for name, value in arguments.items():
            if name in declared.inputs:
                place = declared.inputs.index(name)
                taken += [""] * (place + 1 - len(taken))
                taken[place] = value if isinstance(value, str) else self.constant(np.asarray(value))
            elif name in declared.defaults:
                attributes[name] = value
            else:
                raise UnimplementedError(f"{operator} of opset {self.opset} takes no {name}")
        return self.node(operator, taken, outputs, attributes)

    def node(self, operator: str, inputs: Sequence[str], outputs: int, attributes: Mapping[str, Any]) -> Any:
        """Add a node whose inputs and attributes are known apart."""
        stem = self._current or "value"
        names = [self.shared.free_name(f"{stem}:{index}" if index else stem) for index in range(outputs)]
        self.nodes.append(onnx_package().helper.make_node(operator, inputs, names, name=names[0], **attributes))
        return names[0] if outputs == 1 else names

    def named(self, name: str, value: str) -> None:
        """Give a value a name that was fixed before."""
        self.nodes.append(onnx_package().helper.make_node("Identity", [value], [name], name=f"{name}/give"))

    def constant(self, value: Any, dtype: DType | None = None) -> str:
        """The name of a constant; whole numbers are int64 unless a dtype is given."""
        return self.shared.constant(np.asarray(value, None if dtype is None else dtype.numpy), f"{self._current}/const")

    # -- values ------------------------------------------------------------------------------------

    def put(self, tensor: Tensor, value: str, order: Order = None) -> None:
        """Let a value stand for a tensor, in some order of its axes."""
        self._values.setdefault(tensor, {})[_plain(order)] = value

    def orders(self, tensor: Tensor) -> dict[Order, str]:
        """The values that stand for a tensor, by the order of its axes, that in which it was computed first."""
        if tensor not in self._values and tensor.op.type == "Const":
            self.put(tensor, self.shared.constant(tensor.op.attrs["value"], self.scope + tensor.op.name))
        if tensor not in self._values:
            raise UnimplementedError(f"ONNX has no counterpart of {tensor.name!r}, an output of {tensor.op.type}")
        return self._values[tensor]

    def share(self, tensor: Tensor, other: Body, theirs: Tensor) -> None:
        """Let a tensor be what another one is in the graph around this one."""
        if theirs in other.flows:
            self.flows[tensor] = other.flows[theirs]
        else:
            self._values[tensor] = dict(other.orders(theirs))

    def text(self, tensor: Tensor, order: Order = None) -> str:
        """The value of a tensor with its axes in some order."""
        order, values = _plain(order), self.orders(tensor)
        if order not in values:
            if tensor.op.type == "Const":
                values[order] = self.constant(np.transpose(tensor.op.attrs["value"], order))
            else:
                have, value = next(iter(values.items()))
                axes = range(len(order or have or ()))
                wanted, there = list(order or axes), list(have or axes)
                values[order] = self.emit("Transpose", [value], perm=[there.index(axis) for axis in wanted])
        return values[order]

    def native(self, tensor: Tensor) -> Order:
        """The order of axes in which a tensor was computed."""
        return next(iter(self.orders(tensor)))

    def texts(self, tensors: Iterable[Tensor]) -> list[str]:
        """The values of tensors."""
        return [self.text(tensor) for tensor in tensors]

    def index(self, tensor: Tensor) -> str:
        """The value of a tensor of whole numbers, as int64."""
        if tensor not in self._indices:
            known = self.known(tensor)
            if known is not None:
                self._indices[tensor] = self.constant(known, dtypes.int64)
            else:
                self._indices[tensor] = self.cast(self.text(tensor), tensor.dtype, dtypes.int64)
        return self._indices[tensor]

    def cast(self, value: str, source: DType, target: DType) -> str:
        """A value in another dtype."""
        return value if source is target else self.emit("Cast", [value], to=number_of(target))

    def known(self, tensor: Tensor) -> Any | None:
        """The value of a tensor as an array, if the graph determines it."""
        return constant_value(tensor)

    def needed(self, tensor: Tensor) -> Any:
        """That value as numbers and lists. Raises `UnimplementedError` where it is not known."""
        found = self.known(tensor)
        if found is None:
            raise UnimplementedError(f"ONNX needs to know {tensor.name!r} when the graph is exported")
        return np.asarray(found).tolist()

    def axes(self, tensor: Tensor, rank: int | None) -> list[int]:
        """The axes that a tensor of whole numbers says, counted from the front."""
        axes = np.ravel(self.needed(tensor)).astype(int).tolist()
        if any(axis < 0 for axis in axes) and rank is None:
            raise UnimplementedError("its axes are counted from the end of a tensor of unknown rank")
        return [axis + (rank or 0) if axis < 0 else axis for axis in axes]

    def sizes(self, value: str) -> str:
        """The shape of a value, int64."""
        return self.emit("Shape", [value])

    def followed(self, tensors: Sequence[Tensor], rank: int | None) -> tuple[list[str], Order]:
        """Values of tensors that are broadcast against each other, with the axes of all in one order.

        Args:
            tensors: The tensors.
            rank: The rank of the result, if it is known.

        Returns:
            The values, and the order: one in which a tensor is there already.
        """
        orders = [self.native(tensor) for tensor in tensors]
        order = next((order for order in orders if order is not None and len(order) == rank), None)
        ranks = [tensor.shape.rank for tensor in tensors]
        if order is None or any(each is None for each in ranks):
            return self.texts(tensors), None
        return [self._widened(tensor, order) for tensor in tensors], order

    def _widened(self, tensor: Tensor, order: tuple[int, ...]) -> str:
        rank = tensor.shape.rank or 0
        if rank == len(order) or rank == 0:
            return self.text(tensor, order if rank else None)
        missing = len(order) - rank
        if tensor.op.type == "Const":
            value = tensor.op.attrs["value"]
            return self.constant(np.transpose(value.reshape((1,) * missing + value.shape), order))
        wide = self.emit("Unsqueeze", [self.text(tensor)], axes=list(range(missing)))
        return self.emit("Transpose", [wide], perm=list(order))

    def value_info(self, name: str, dtype: DType, shape: TensorShape, sizes_named: str = "") -> Any:
        """The declaration of an input or output. Sizes that are not known get names that begin with `sizes_named`."""
        known = None
        if shape.rank is not None:
            unknown = [f"{sizes_named}_{axis}" if sizes_named else None for axis in range(shape.rank)]
            known = [unknown[axis] if size is None else size for axis, size in enumerate(shape.sizes)]
        return onnx_package().helper.make_tensor_value_info(name, number_of(dtype), known)


def used_nodes(nodes: Sequence[Any], outputs: Iterable[str]) -> tuple[list[Any], set[str]]:
    """The nodes that `outputs` need, and the names of all values that these take, in branches and bodies too."""
    names, kept = set(outputs), []
    for node in reversed(nodes):
        if not names.isdisjoint(node.output):
            kept.append(node)
            names.update(node.input)
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    names |= used_nodes(attribute.g.node, [info.name for info in attribute.g.output])[1]
    return kept[::-1], names


def _plain(order: Order) -> Order:
    return None if order is None or list(order) == list(range(len(order))) else tuple(order)


def _same(body: Body, op: Operation) -> None:
    same = SAME[op.type]
    attributes = {theirs: op.attrs[ours] for ours, theirs in same.attrs.items()}
    rank = op.outputs[0].shape.rank if same.elementwise else None
    values, order = body.followed(op.inputs, rank)
    body.put(op.outputs[0], body.emit(same.theirs, values, **attributes), order)
