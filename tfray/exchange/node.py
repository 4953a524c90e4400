"""An operation of TensorFlow that is on its way into a graph of tfray, and the rules that functions give for it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from tfray.errors import InvalidArgumentError, UnimplementedError
from tfray.exchange.op_table import TensorFlowOp
from tfray.framework.constant_value import constant_value
from tfray.framework.dtypes import DType
from tfray.framework.graph import Graph, Operation, Tensor
from tfray.framework.region import Region, variable_behind
from tfray.framework.tensor_shape import TensorShape


@dataclass
class Reference:
    """A reference to a variable, as TensorFlow 1's own variables give it.

    Attributes:
        handle: The variable's handle.
        after: The operation that has given the reference, if it changes the variable.
        value: The value that this operation returns, if it does.
    """

    handle: Tensor
    after: Operation | None = None
    value: Tensor | None = None

    def in_region(self, region: Region) -> Reference:
        """The reference in a region."""
        return Reference(region.own(self.handle))


@dataclass(frozen=True)
class TensorArrayHandle:
    """The handle of a TensorArray: what its operations need to know besides the flow."""

    dtype: DType
    element_shape: TensorShape
    dynamic: bool


@dataclass(frozen=True)
class Component:
    """What is known of an input that is passed into a region, and that no tensor outside stands for."""

    dtype: DType


Imported = Tensor | Reference | TensorArrayHandle
"""What an output of an operation of TensorFlow is here."""


@dataclass
class Node:
    """An operation of TensorFlow that is being added.

    Attributes:
        body: What it is part of.
        name: Its name in the graph.
        op: Its type.
        attrs: Values of its attributes.
        given: Its inputs.
        device: Its device.
        controls: Operations that it waits for.
        definition: Its type's definition.
        extra: Attributes of any operation.
        ends: The operations that have run when it has run.
    """

    body: Any
    name: str
    op: str
    attrs: dict[str, Any]
    given: list[Imported]
    device: str
    controls: list[Operation]
    definition: TensorFlowOp | None
    extra: dict[str, Any] = field(default_factory=dict)
    ends: list[Operation] = field(default_factory=list)

    @property
    def graph(self) -> Graph:
        """The graph that it goes to."""
        graph: Graph = self.body.graph
        return graph

    @functools.cached_property
    def inputs(self) -> list[Tensor]:
        """Its inputs as tensors: values, and handles where it takes handles."""
        assert self.definition is not None
        count = sum(arg.count(self.attrs) for arg in self.definition.inputs)
        if count != len(self.given):
            raise InvalidArgumentError(f"it has {len(self.given)} inputs, and its type {count}")
        takes = [arg.takes_resource for arg in self.definition.inputs for _ in range(arg.count(self.attrs))]
        return [
            value.handle if isinstance(value, Reference) and taken else self.value(value)
            for value, taken in zip(self.given, takes, strict=True)
        ]

    def value(self, given: Imported) -> Tensor:
        """The value of an input. A reference is read."""
        if isinstance(given, Tensor):
            if given not in self.body.reads or set(self.controls) <= set(given.op.control_inputs):
                return given
            # There it is the variable's own memory, as it is when this operation has waited: averages rely on it.
            given = Reference(self.body.reads[given])
        if not isinstance(given, Reference):
            raise InvalidArgumentError("its input is the handle of a TensorArray")
        if given.value is not None:
            return given.value
        controls = [*self.controls, *([given.after] if given.after is not None else [])]
        dtype, shape = behind(given.handle)
        name = self.graph.unique_name(f"{self.name}/read")
        attrs = {"dtype": dtype, "shape": shape}
        return self._create("ReadVariableOp", [given.handle], attrs, name, controls).outputs[0]

    def arg(self, name: str) -> list[Tensor]:
        """The tensors of an input of that name."""
        assert self.definition is not None
        start = 0
        for arg in self.definition.inputs:
            count = arg.count(self.attrs)
            if arg.name == name:
                return self.inputs[start : start + count]
            start += count
        raise KeyError(name)

    def constant(self, name: str) -> np.ndarray[Any, Any] | None:
        """The value of an input, if the graph determines it."""
        (tensor,) = self.arg(name)
        found = constant_value(tensor)
        if found is not None:
            self.wait_like([tensor])
        return None if found is None else np.asarray(found)

    def wait_like(self, tensors: Sequence[Tensor]) -> None:
        """Wait for what constants wait for whose values become part of the operation."""
        waited = (control for tensor in tensors if tensor.op.type == "Const" for control in tensor.op.control_inputs)
        self.controls += [control for control in waited if control not in self.controls]

    def needed(self, name: str) -> Any:
        """The value of an input that has to be known, as numbers and lists. Raises `UnimplementedError`."""
        found = self.constant(name)
        if found is None:
            raise UnimplementedError(
                f"{self.op} {self.name!r}: tfray needs to know the input {name!r} when the graph is built"
            )
        return found.tolist()

    def make(self, op: str, inputs: Sequence[Tensor], **attrs: Any) -> Operation:
        """The operation that has this one's name."""
        made = self._create(op, inputs, attrs | self.extra, self.name, self.controls)
        self.ends = [made]
        return made

    def part(self, op: str, inputs: Sequence[Tensor], suffix: str = "", **attrs: Any) -> Tensor:
        """The output of an operation that is needed besides."""
        name = self.graph.unique_name(f"{self.name}/{suffix or op}")
        return self._create(op, inputs, attrs, name, self.controls).outputs[0]

    def known(self, value: Any, dtype: DType) -> Tensor:
        """A constant that is needed besides."""
        array = np.asarray(value, dtype.numpy)
        return self.part("Const", [], value=array, dtype=dtype)

    def _create(
        self, op: str, inputs: Sequence[Tensor], attrs: Mapping[str, Any], name: str, controls: Sequence[Operation]
    ) -> Operation:
        inside = [control for control in controls if control.graph is self.graph]
        return self.graph.add_operation(
            op, inputs, attrs, name, control_inputs=inside, exact_name=True, device=self.device, site=self.body.site
        )

    @contextmanager
    def building(self) -> Iterator[None]:
        """Under it, functions of tfray's add operations that are needed besides."""
        self.wait_like([value for value in self.given if isinstance(value, Tensor)])
        controls = [op for op in self.controls if op.graph is self.graph]
        with (
            self.graph.as_default(),
            self.graph.name_scope(f"{self.name}/"),
            self.graph.device(self.device or None),
            self.graph.control_dependencies(controls),
        ):
            yield

    def named(self, tensors: Sequence[Imported]) -> list[Imported]:
        """`tensors` as outputs of an operation of this node's name."""
        values = [tensor for tensor in tensors if isinstance(tensor, Tensor)]
        plain = len(values) == len(tensors) and all(value.dtype.is_numpy_compatible for value in values)
        if not values or not plain:
            end = self.make("NoOp", [])
            end.add_control_inputs([value.op for value in values])
            return list(tensors)
        if len(values) == 1:
            return [self.make("Identity", values).outputs[0]]
        return list(self.make("IdentityN", values, T=[value.dtype for value in values]).outputs)


def behind(handle: Tensor) -> tuple[DType, TensorShape]:
    """Dtype and shape of the variable whose handle is given."""
    found = variable_behind(handle)
    if found is None:
        raise InvalidArgumentError(f"{handle.name!r} is no variable that the graph knows")
    return found


Function = Callable[[Node], Sequence[Imported]]
FUNCTIONS: Final[dict[str, Function]] = {}


def rule(*ops: str) -> Callable[[Function], Function]:
    """Decorator: what to do for these types."""

    def declare(function: Function) -> Function:
        FUNCTIONS.update(dict.fromkeys(ops, function))
        return function

    return declare
