"""Nested graphs: the branches of a `cond`, the condition and the body of a `while_loop`.

A region belongs to one operation of the graph around it, which holds it as an attribute. Tensors of the graph around
it that its operations use become *captures*: inputs of the region, and of the operation that owns it. Names, seeds,
collections and Python functions are those of the outermost graph, so that a region looks to the program like a part
of the graph in which it stands.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from tfray.framework import dtypes
from tfray.framework.dtypes import DType
from tfray.framework.graph import Graph, Operation, Tensor, get_default_graph
from tfray.framework.plain_graph import PlainRegion
from tfray.framework.tensor_shape import TensorShape

MAX_COPIED_CONSTANT_BYTES: Final = 1 << 12
"""4 KiB. A constant up to this size is copied into a region that uses it, so that values which follow from it are known
there. Constants of floating dtypes are not copied: no sizes follow from them, and programs differentiate by them."""


class Region(Graph):
    """A graph within an operation of another graph.

    Args:
        outer: The graph around it, itself a region perhaps.
        runs_often: Whether it is a function that is called over and over, and reads the state of the moment each time.

    Attributes:
        inputs: What the owning operation passes in: parameters, then captures, unless reordered by `set_inputs`.
        outputs: What it returns.
        captures: Tensor of the graph around it to the input that stands for it.
        outer_controls: Operations of the graph around it that must have run before the region does.
    """

    def __init__(self, outer: Graph, runs_often: bool = False) -> None:
        super().__init__()
        self.outer = outer
        self._runs_often = runs_often
        self.inputs: list[Tensor] = []
        self.outputs: list[Tensor] = []
        self.captures: dict[Tensor, Tensor] = {}
        self.outer_controls: dict[Operation, None] = {}
        self._captured_constants: dict[Tensor, Tensor] = {}
        root = self.root
        self._names = root._names
        self._collections = root._collections
        self._extra = root._extra
        self.functions = root.functions
        self._scope.name = outer._scope.name
        self._devices = outer._devices
        self._attr_scope = outer._attr_scope

    @property
    def root(self) -> Graph:
        """The outermost graph."""
        return self.outer.root

    @property
    def seed(self) -> int | None:
        """The graph-level seed, that of the outermost graph."""
        return self.root.seed

    @seed.setter
    def seed(self, value: int | None) -> None:
        if value is not None:
            self.root.seed = value

    @property
    def runs_often(self) -> bool:
        """Whether this region, or one around it, is a function that is called over and over."""
        return self._runs_often or self.outer.runs_often

    @property
    def has_control_scope(self) -> bool:
        return super().has_control_scope or self.outer.has_control_scope

    def admits(self, graph: Graph) -> bool:
        """Whether tensors of `graph` may be used here: it is this region, or a graph around it."""
        return graph is self or self.outer.admits(graph)

    def add_input(
        self,
        dtype: DType,
        shape: TensorShape,
        name: str,
        site: str | None = None,
        variable: tuple[DType, TensorShape] | None = None,
    ) -> Tensor:
        """A new input. For the handle of a variable, `variable` is the dtype and shape of the value."""
        attrs: dict[str, Any] = {"dtype": dtype, "shape": shape}
        if variable is not None:
            attrs["_variable"] = variable
        name = self.unique_name(name, mark_as_used=False)
        op = self.add_operation("RegionInput", [], attrs, name, exact_name=True, device="", site=site)
        self.inputs.append(op.outputs[0])
        return op.outputs[0]

    def capture(self, tensor: Tensor) -> Tensor:
        """The input that stands for `tensor`, a tensor of a graph around this one.

        A small constant of whole numbers, bools or strings is copied instead.
        """
        if tensor.graph is not self.outer:
            tensor = self.outer.own(tensor)
        found = self.captures.get(tensor, self._captured_constants.get(tensor))
        if found is None:
            op = tensor.op
            if _is_copied(tensor):
                found = self._constant_like(op).outputs[0]
                self._captured_constants[tensor] = found
            else:
                found = self.add_input(tensor.dtype, tensor.shape, _inner_name(op), op.site, variable_behind(tensor))
                self.captures[tensor] = found
        return found

    def _constant_like(self, op: Operation) -> Operation:
        name = self.unique_name(_inner_name(op))
        return self.add_operation("Const", [], op.attrs, name, exact_name=True, device="", site=op.site)

    def captured(self, tensor: Tensor) -> Tensor | None:
        """The captured tensor for which the input `tensor` stands; None if that input is no capture."""
        return next((outer for outer, inner in self.captures.items() if inner is tensor), None)

    def origin(self, tensor: Tensor) -> Tensor:
        """The tensor of the outermost graph for which an input of a region stands; any other tensor itself."""
        graph: Graph = self
        while isinstance(graph, Region):
            outer = graph.captured(tensor)
            if outer is None:
                break
            tensor, graph = outer, graph.outer
        return tensor

    def read_anew(self, value: Tensor, handle: Tensor) -> None:
        """Let the region read a variable in every turn, instead of taking in a value that was read before.

        What waits for other operations reads it after these: in TensorFlow 1 the value shares the variable's memory.

        Args:
            value: The captured value.
            handle: The variable's handle, of a graph around the region.
        """
        taken = self.captures.pop(value)
        self.inputs.remove(taken)
        own_handle = self.own(handle)
        dtype, shape = variable_behind(own_handle) or (value.dtype, value.shape)
        taken.op.become("ReadVariableOp", [own_handle], {"dtype": dtype, "shape": shape})
        self._ops = {own_handle.op.name: own_handle.op, **self._ops}  # inputs stand before what takes them
        for op in taken.consumers():
            if op.control_inputs:
                read = self.add_operation(
                    "ReadVariableOp", [own_handle], taken.op.attrs, control_inputs=op.control_inputs
                )
                for index in (index for index, tensor in enumerate(op.inputs) if tensor is taken):
                    op._update_input(index, read.outputs[0])

    def own(self, tensor: Tensor) -> Tensor:
        """`tensor` itself, or the capture of it. Raises `ValueError` for a tensor of an unrelated graph."""
        return tensor if tensor.graph is self else self.capture(tensor)

    def own_controls(self, ops: Iterable[Operation]) -> list[Operation]:
        """Those of `ops` that are in this region. The others are noted in `outer_controls`."""
        ops = list(ops)
        outer = [op for op in ops if op.graph is not self]
        if outer:
            self.outer_controls.update(dict.fromkeys(self.outer.own_controls(outer)))
        return [op for op in ops if op.graph is self]

    def as_graph_element(self, obj: Any, allow_tensor: bool = True, allow_operation: bool = True) -> Tensor | Operation:
        """As for a graph. Elements of a graph around the region are found too."""
        convert = getattr(obj, "_as_graph_element", None)
        if convert is not None:
            obj = convert()
        if isinstance(obj, str):
            obj = self._element_by_name(obj, allow_tensor, allow_operation)
        if isinstance(obj, (Tensor, Operation)) and obj.graph is not self and self.admits(obj.graph):
            return obj.graph.as_graph_element(obj, allow_tensor, allow_operation)
        return super().as_graph_element(obj, allow_tensor, allow_operation)

    def _element_by_name(self, name: str, allow_tensor: bool, allow_operation: bool) -> Tensor | Operation:
        graph: Any = super() if self.find_operation(name.partition(":")[0]) else self.outer
        found: Tensor | Operation = graph._element_by_name(name, allow_tensor, allow_operation)
        return found

    def _changed(self) -> None:
        super()._changed()
        self.outer._changed()

    def _count_op(self) -> None:
        self.outer._count_op()

    @property
    def op_count(self) -> int:
        return self.outer.op_count

    def as_region_def(self) -> PlainRegion:
        """This region as plain data."""
        nodes = [op.as_plain() for op in self.get_operations()]
        return PlainRegion(nodes, [tensor.name for tensor in self.inputs], [tensor.name for tensor in self.outputs])

    def set_inputs(self, inputs: Sequence[Tensor]) -> None:
        """Fix the order of the inputs, once it is built."""
        assert set(inputs) >= set(self.inputs)
        self.inputs = list(inputs)


def shared_reads(graph: Graph) -> dict[Tensor, Tensor]:
    """The reads of variables that all uses in a step share, with the variables' handles."""
    reads: dict[Tensor, Tensor] = graph.root.extra("shared_reads", dict)
    return reads


def _inner_name(op: Operation) -> str:
    """The name within a region of what stands for an outer operation: one that leaves the program's names free."""
    return f"{op.name.rpartition('/')[2] or op.name}/Enter"


def _is_copied(tensor: Tensor) -> bool:
    if tensor.op.type != "Const" or tensor.dtype.is_floating or tensor.dtype.is_complex:
        return False
    return tensor.op.attrs["value"].nbytes <= MAX_COPIED_CONSTANT_BYTES


def variable_behind(handle: Tensor) -> tuple[DType, TensorShape] | None:
    """Dtype and shape of the variable whose handle a tensor is; None for any other tensor."""
    if handle.dtype is not dtypes.resource:
        return None
    attrs = handle.op.attrs
    if handle.op.type == "RegionInput":
        return attrs.get("_variable")
    return (attrs["dtype"], attrs["shape"]) if handle.op.type == "Variable" else None


@contextmanager
def building(region: Region, scope: str) -> Iterator[Region]:
    """Make `region` the default graph, under the name scope `scope`."""
    with region.as_default(), region.name_scope(scope):
        yield region


@contextmanager
def outermost() -> Iterator[Graph]:
    """Make the outermost graph around the current one the default: for what a region cannot hold, like variables.

    Name and device scopes stay in force. Control dependencies are dropped, because they may be operations of a region.
    """
    graph = get_default_graph()
    if graph.root is graph:
        yield graph
        return
    root = graph.root
    scope, devices = root._scope.name, root._devices
    root._scope.name, root._devices = graph._scope.name, graph._devices
    try:
        with root.as_default(), root.control_dependencies(None):
            yield root
    finally:
        root._scope.name, root._devices = scope, devices


@contextmanager
def init_scope() -> Iterator[None]:
    """Context manager: operations made within it belong to the outermost graph, free of control dependencies.

    For what has to run once, such as initial values, where the program may be in a branch, a loop or a function.
    """
    with outermost() as graph, graph.control_dependencies(None):
        yield


def unify_inputs(regions: Sequence[Region], parameter_count: int) -> list[Tensor]:
    """Give regions of one operation the same inputs: their parameters, then the captures of all.

    Returns:
        The captured tensors, in that order.
    """
    captured = list(dict.fromkeys(tensor for region in regions for tensor in region.captures))
    for region in regions:
        parameters = region.inputs[:parameter_count]
        region.set_inputs([*parameters, *(_input_for(region, tensor) for tensor in captured)])
    return captured


def _input_for(region: Region, tensor: Tensor) -> Tensor:
    if tensor not in region.captures:
        variable = variable_behind(tensor)
        region.captures[tensor] = region.add_input(tensor.dtype, tensor.shape, "unused/Enter", tensor.op.site, variable)
    return region.captures[tensor]


def regions_of(op: Operation) -> list[Region]:
    """The regions that an operation holds."""
    return [op.attrs[name] for name in op.op_def.regions]


def passed_inputs(op: Operation, region: Region) -> list[tuple[Tensor, Tensor]]:
    """The inputs of a region of `op` with the inputs of `op` that are passed to them.

    These are the last inputs of both. The region's inputs before them are parameters, whose values the kernel makes.
    """
    count = len(region.inputs) - op.attrs.get("parameters", 0)
    if count == 0:
        return []
    return list(zip(region.inputs[-count:], op.inputs[-count:], strict=True))


def ops_within(op: Operation) -> Iterator[Operation]:
    """`op`, and the operations of its regions at any depth."""
    yield op
    for region in regions_of(op):
        for inner in region.get_operations():
            yield from ops_within(inner)
