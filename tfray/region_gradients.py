"""Gradients of `cond` and `while_loop`: branches and loops that run backward.

The gradient of a branch is a branch, and that of a loop is a loop that counts down. While a backward region is built,
it may capture tensors of the forward region. A tensor of a forward branch becomes a further result of that branch. A
tensor of a loop's body becomes a list of its values in all iterations, from which the backward loop reads. Tensors that
are not captured are not kept. The backward pass is made of the same operations, so it can be differentiated again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Graph, Operation, Tensor, get_default_graph
from tfray.framework.indexed_slices import IndexedSlices
from tfray.framework.region import Region, variable_behind
from tfray.framework.tensor_shape import TensorShape
from tfray.ops.arrays import array_ops
from tfray.ops.control import tensor_array_ops
from tfray.ops.control.control_flow_ops import add_cond, add_while, export_from_branch, stack_over_iterations
from tfray.ops.math import math_ops, stacked_product_ops

Gradient = Tensor | IndexedSlices


class Backpropagate(Protocol):
    """The backward walk of `tfray.gradients`."""

    def __call__(
        self, targets: Sequence[Tensor], d_targets: Sequence[Gradient], sources: Sequence[Tensor]
    ) -> list[Gradient | None]:
        """The gradients of `sources`, built in the current graph from the given gradients of `targets`."""


def carries_gradient(tensor: Tensor) -> bool:
    """Whether a gradient may flow through `tensor`: a differentiable value, a variable's handle, a list of tensors."""
    variable = variable_behind(tensor)
    if variable is not None:
        return variable[0].is_differentiable
    return tensor.dtype.is_differentiable or tensor.dtype is dtypes.variant


class _BackwardRegion(Region):
    """A region whose operations may use tensors of a forward region: see the module's docstring.

    Args:
        outer: The graph in which the backward operation will stand.
        forward: The region that is differentiated.
        fetch: From a tensor of `forward` to one of the graph that holds the forward operation, or of this region.
    """

    def __init__(self, outer: Graph, forward: Region) -> None:
        super().__init__(outer)
        self._forward = forward
        self._fetched: dict[Tensor, Tensor] = {}
        self.fetch: Callable[[Tensor], Tensor]

    def admits(self, graph: Graph) -> bool:
        return graph is self._forward or super().admits(graph)

    def capture(self, tensor: Tensor) -> Tensor:
        if tensor.graph is not self._forward:
            return super().capture(tensor)
        if tensor not in self._fetched:
            self._fetched[tensor] = self.own(self.fetch(tensor))
        return self._fetched[tensor]

    def own_controls(self, ops: Any) -> list[Operation]:
        # Operations of the forward region have run before the backward operation begins: no need to wait for them.
        return super().own_controls([op for op in ops if op.graph is not self._forward])

    def add_operation(self, op_type: str, inputs: Sequence[Tensor], *args: Any, **kwargs: Any) -> Operation:
        if op_type == "Shape" and inputs[0].graph is self._forward and inputs[0] not in self._fetched:
            # Only the shape of that tensor is needed: keep the shape, not the tensor.
            return self.own(self._forward_shape(inputs[0], *args)).op
        return super().add_operation(op_type, inputs, *args, **kwargs)

    def _forward_shape(self, tensor: Tensor, attrs: Any = None, name: str | None = None) -> Tensor:
        with self._forward.as_default(), self._forward.control_dependencies(None):
            return self._forward.add_operation("Shape", [tensor], attrs).outputs[0]


def _is_constant(tensor: Tensor) -> bool:
    return tensor.op.type == "Const"


def _copied_constant(region: Region, tensor: Tensor) -> Tensor:
    return region.add_operation("Const", [], tensor.op.attrs, site=tensor.op.site).outputs[0]


# -- cond ----------------------------------------------------------------------------------------------


def cond_gradient(op: Operation, d_outputs: Sequence[Gradient | None], backpropagate: Backpropagate) -> list[Any]:
    """The gradient function of Cond."""
    pred, *inputs = op.inputs
    sources = [index for index, tensor in enumerate(inputs) if carries_gradient(tensor)]
    graph = get_default_graph()
    branches = {
        name: _backward_branch(op, name, d_outputs, sources, graph, backpropagate) for name in ("then", "orelse")
    }
    made = add_cond(graph.own(pred), branches["then"], branches["orelse"], "cond")
    d_inputs: list[Any] = [None] * len(op.inputs)
    for index, d_input in zip(sources, made.outputs, strict=True):
        d_inputs[index + 1] = d_input
    return d_inputs


def _backward_branch(
    op: Operation,
    name: str,
    d_outputs: Sequence[Gradient | None],
    sources: Sequence[int],
    graph: Graph,
    backpropagate: Backpropagate,
) -> Region:
    forward: Region = op.attrs[name]
    region = _BackwardRegion(graph, forward)
    region.fetch = lambda tensor: _from_branch(op, name, tensor, region)
    outputs = list(forward.outputs)
    with region.as_default():
        flowing = [
            (tensor, _inward(d_output))
            for tensor, d_output in zip(outputs, d_outputs, strict=False)
            if d_output is not None and tensor.op.type != "NoValue"
        ]
        wanted = [forward.inputs[index] for index in sources]
        totals = backpropagate([t for t, _ in flowing], [d for _, d in flowing], wanted)
        region.outputs = [
            region.own(_dense(total, op.inputs[index + 1]) if total is not None else zeros_for(op.inputs[index + 1]))
            for index, total in zip(sources, totals, strict=True)
        ]
    return region


def _from_branch(op: Operation, branch: str, tensor: Tensor, region: Region) -> Tensor:
    forward: Region = op.attrs[branch]
    if tensor.op.type == "RegionInput":
        return op.inputs[1 + forward.inputs.index(tensor)]
    if _is_constant(tensor):
        return _copied_constant(region, tensor)
    exported = region.capture(export_from_branch(op, branch, tensor))
    exported.set_shape(tensor.shape)  # of this branch only: the result is used only where this branch was taken
    return exported


def _inward(d_output: Gradient) -> Gradient:
    """A gradient of the graph around the region, as the region sees it."""
    return convert_to_tensor(d_output) if isinstance(d_output, IndexedSlices) else get_default_graph().own(d_output)


# -- while_loop ----------------------------------------------------------------------------------------


def while_gradient(op: Operation, d_outputs: Sequence[Gradient | None], backpropagate: Backpropagate) -> list[Any]:
    """The gradient function of While."""
    if not op.attrs["back_prop"]:
        return [None] * len(op.inputs)
    return _BackwardLoop(op, d_outputs, backpropagate).build()


class _BackwardLoop:
    """The loop that runs the body of a forward loop backward, from its last iteration to its first.

    Its variables are the index of the iteration, the gradients of the forward variables, and the gradients of the
    captures, to which every iteration adds.
    """

    def __init__(self, op: Operation, d_outputs: Sequence[Gradient | None], backpropagate: Backpropagate) -> None:
        self._op = op
        self._body: Region = op.attrs["body"]
        self._backpropagate = backpropagate
        self._count: int = op.attrs["variables"]
        self._d_variables = d_outputs[1 : 1 + self._count]
        # For second derivatives: the lists of values that an earlier backward pass reads have gradients too.
        stacked = self._body.outputs[self._count :]
        self._d_stacks = [
            (tensor, d_stack)
            for tensor, d_stack in zip(stacked, d_outputs[1 + self._count :], strict=False)
            if isinstance(d_stack, Tensor) and carries_gradient(tensor)
        ]
        inputs = op.inputs
        self._variables = [index for index in range(self._count) if carries_gradient(inputs[index])]
        self._captures = [index for index in range(self._count, len(inputs)) if carries_gradient(inputs[index])]
        self._products: dict[int, Operation] = {}

    def build(self) -> list[Any]:
        graph = get_default_graph()
        op = self._op
        last = math_ops.subtract(graph.own(op.outputs[0]), 1)
        initial = [last, *map(self._initial_gradient, self._variables)]
        initial += [zeros_for(op.inputs[index]) for index in self._captures]
        initial = [graph.own(tensor) for tensor in initial]
        condition = Region(graph)
        with condition.as_default():
            index, *_ = self._parameters(condition, initial)
            condition.outputs = [math_ops.greater_equal(index, 0)]
        region = _BackwardRegion(graph, self._body)
        with region.as_default():
            parameters = self._parameters(region, initial)
            region.fetch = lambda tensor: self._value_of(tensor, parameters[0], region)
            region.outputs = [region.own(tensor) for tensor in self._advance(parameters)]
        made = add_while(condition, region, initial, "while", swap_memory=op.attrs["swap_memory"])
        d_inputs: list[Any] = [None] * len(op.inputs)
        for position, d_input in zip([*self._variables, *self._captures], made.outputs[2:], strict=False):
            d_inputs[position] = d_input
        for position, product in self._products.items():
            left, right = (stack_over_iterations(made, tensor) for tensor in product.inputs)
            d_inputs[position] = stacked_product_ops.product_of_stacks(left, right, graph.own(op.inputs[position]))
        return d_inputs

    def _initial_gradient(self, index: int) -> Tensor:
        d_output = self._d_variables[index]
        output = self._op.outputs[1 + index]
        return zeros_for(output) if d_output is None else _dense(d_output, output)

    def _parameters(self, region: Region, initial: Sequence[Tensor]) -> list[Tensor]:
        shapes = [TensorShape([])]
        shapes += [self._body.inputs[index].shape for index in self._variables]
        shapes += [_gradient_shape(self._op.inputs[index]) for index in self._captures]
        names = ["index"] + ["d_variable"] * len(self._variables) + ["d_capture"] * len(self._captures)
        return [
            region.add_input(tensor.dtype, shape, name, tensor.op.site)
            for tensor, shape, name in zip(initial, shapes, names, strict=True)
        ]

    def _value_of(self, tensor: Tensor, index: Tensor, region: Region) -> Tensor:
        """A tensor of the forward body, in the iteration `index`."""
        if tensor.op.type == "RegionInput":
            position = self._body.inputs.index(tensor)
            if position >= self._count:
                return self._op.inputs[position]  # a capture has the same value in every iteration
        if _is_constant(tensor):
            return _copied_constant(region, tensor)
        stack = region.capture(stack_over_iterations(self._op, tensor))
        value = region.add_operation(
            "TensorArrayRead",
            [stack, index],
            {"dtype": tensor.dtype, "element_shape": tensor.shape},
            site=tensor.op.site,
        )
        return value.outputs[0]

    def _advance(self, parameters: list[Tensor]) -> list[Tensor]:
        index, gradients = parameters[0], parameters[1:]
        d_variables, d_captures = gradients[: len(self._variables)], gradients[len(self._variables) :]
        targets = [self._body.outputs[position] for position in self._variables]
        d_targets: list[Gradient] = list(d_variables)
        for tensor, d_stack in self._d_stacks:
            targets.append(tensor)
            d_targets.append(tensor_array_ops.read_or_zeros(get_default_graph().own(d_stack), index, tensor))
        sources = [self._body.inputs[position] for position in [*self._variables, *self._captures]]
        totals = self._backpropagate(targets, d_targets, sources)
        following: list[Tensor] = [math_ops.subtract(index, 1)]
        for source, total in zip(sources[: len(self._variables)], totals, strict=False):
            following.append(zeros_for(source) if total is None else _dense(total, source))
        totals = totals[len(self._variables) :]
        for position, d_capture, total in zip(self._captures, d_captures, totals, strict=True):
            if total is None:
                following.append(d_capture)
            elif _is_product_over_rows(total) and self._op.inputs[position].dtype is total.dtype:
                # Not added up in every turn: one product over the rows of all turns is computed after the loop.
                self._products[position] = total.op
                following.append(d_capture)
            else:
                following.append(_plus(d_capture, _dense(total, self._body.inputs[position])))
        return following


def _is_product_over_rows(gradient: Gradient) -> bool:
    """Whether a gradient is ``transpose(a) @ b``: a sum over the rows of two matrices, like that of weights."""
    if not isinstance(gradient, Tensor) or gradient.dtype not in (dtypes.float32, dtypes.float64):
        return False
    op = gradient.op
    return op.type == "MatMul" and op.attrs["transpose_a"] and not op.attrs["transpose_b"]


def _plus(total: Tensor, term: Tensor) -> Tensor:
    if total.dtype is dtypes.variant:
        return tensor_array_ops.sum_flows([total, term])
    return math_ops.add(total, term)


def _gradient_shape(tensor: Tensor) -> TensorShape:
    variable = variable_behind(tensor)
    return tensor.shape if variable is None else variable[1]


def zeros_for(tensor: Tensor) -> Tensor:
    """The gradient of `tensor` if no gradient flows into it: zeros."""
    if tensor.dtype is dtypes.variant:
        return tensor_array_ops.empty()
    variable = variable_behind(tensor)
    if variable is not None:
        return array_ops.zeros(variable[1], variable[0])
    if tensor.shape.is_fully_defined():
        return array_ops.zeros(tensor.shape, tensor.dtype)
    return array_ops.zeros_like(get_default_graph().own(tensor))


def _dense(gradient: Gradient, like: Tensor) -> Tensor:
    if isinstance(gradient, Tensor):
        return gradient
    if gradient.dense_shape is None:
        shape = _gradient_shape(like)
        known = shape if shape.is_fully_defined() else array_ops.shape(like)
        gradient = IndexedSlices(gradient.values, gradient.indices, convert_to_tensor(known))
    return convert_to_tensor(gradient)


GRADIENTS: dict[str, Callable[[Operation, Sequence[Gradient | None], Backpropagate], list[Any]]] = {
    "Cond": cond_gradient,
    "While": while_gradient,
}
"""By operation type: ``function(op, d_outputs, backpropagate)``."""
