"""How If, Loop and Scan of ONNX become branches and loops of tfray."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, Final

from tfray.framework import dtypes
from tfray.framework.constant_value import constant_value
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.region import Region
from tfray.framework.tensor_shape import UNKNOWN, TensorShape
from tfray.onnx.onnx_node import Node, loads
from tfray.ops.arrays import array_ops
from tfray.ops.control.control_flow_ops import cond, while_loop
from tfray.ops.control.tensor_array_ops import TensorArray
from tfray.ops.math import math_ops

_MAX_LOOPS: Final = 4
"""Most loops within each other: the body of each is built a few times, to learn the shapes of its variables."""

_MAX_TRIALS: Final = 4

Step = Callable[..., tuple[list[Tensor], list[Tensor]]]
"""``step(turn, *variables)``: the next values of the variables, and what is stacked over the turns."""


@loads("If")
def _if(node: Node) -> list[Tensor]:
    def branch(name: str) -> Callable[[], list[Tensor]]:
        graph = node.attr(name)
        return lambda: [array_ops.identity(tensor) for tensor in node.scope.inner(graph).run(graph, [])]

    chosen = array_ops.reshape(node.input(0), [])
    known = constant_value(chosen)
    if known is not None:  # the shapes in the other branch need not fit
        return branch("then_branch" if known else "else_branch")()
    return list(cond(chosen, branch("then_branch"), branch("else_branch"), strict=True))


@loads("Loop")
def _loop(node: Node) -> list[Tensor]:
    graph = _body(node)
    limit, going = node.optional(0), node.optional(1)
    variables = [node.input(index) for index in range(2, len(node.inputs))]
    first = convert_to_tensor(True) if going is None else array_ops.reshape(going, [])

    def step(turn: Tensor, again: Tensor, *values: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        made = node.scope.inner(graph, loops=1).run(graph, [turn, again, *values])
        follows = array_ops.reshape(made[0], [])
        return [follows, *made[1 : len(variables) + 1]], made[len(variables) + 1 :]

    bound = None if limit is None else array_ops.reshape(limit, [])
    final, stacked = run_loop(step, [first, *variables], bound, lambda again, *_: again)
    return [*final[1:], *stacked]


@loads("Scan")
def _scan(node: Node) -> list[Tensor]:
    graph, scanned = _body(node), node.attr("num_scan_inputs")
    inputs = [node.input(index) for index in range(len(node.inputs))]
    states, sequences = inputs[: len(inputs) - scanned], inputs[len(inputs) - scanned :]
    axes, backward = (node.attr(f"scan_input_{name}") or [0] * scanned for name in ("axes", "directions"))
    sequences = [_turned(node, x, axis, flag) for x, axis, flag in zip(sequences, axes, backward, strict=True)]

    def step(turn: Tensor, *values: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        rows = [array_ops.gather(sequence, turn) for sequence in sequences]
        made = node.scope.inner(graph, loops=1).run(graph, [*values, *rows])
        return made[: len(states)], made[len(states) :]

    final, stacked = run_loop(step, states, array_ops.shape(sequences[0], out_type=dtypes.int64)[0])
    axes, backward = (node.attr(f"scan_output_{name}") or [0] * len(stacked) for name in ("axes", "directions"))
    for place, (axis, flag) in enumerate(zip(axes, backward, strict=True)):
        tensor = array_ops.reverse(stacked[place], [0]) if flag else stacked[place]
        rank = node.rank(tensor)
        order = [*range(1, axis % rank + 1), 0, *range(axis % rank + 1, rank)]
        stacked[place] = array_ops.transpose(tensor, order) if axis % rank else tensor
    return [*final, *stacked]


def _turned(node: Node, x: Tensor, axis: int, backward: int) -> Tensor:
    """A sequence with its time axis first, in the order in which it is read."""
    rank = node.rank(x)
    axis = axis % rank
    x = array_ops.transpose(x, [axis, *(each for each in range(rank) if each != axis)]) if axis else x
    return array_ops.reverse(x, [0]) if backward else x


def _body(node: Node) -> Any:
    if node.scope.loops >= _MAX_LOOPS:
        raise node.refuse(f"more than {_MAX_LOOPS} loops within each other")
    return node.attr("body")


def run_loop(
    step: Step, variables: Sequence[Tensor], limit: Tensor | None, going: Callable[..., Tensor] | None = None
) -> tuple[list[Tensor], list[Tensor]]:
    """Repeat a step.

    Args:
        step: The step.
        variables: The first values of the variables.
        limit: int64 scalar, the most turns; None for any number.
        going: Whether there is a further turn, of the values of the variables.

    Returns:
        The last values of the variables, and what was stacked.
    """
    shapes, stacked = _shapes_within(step, variables)
    zero = convert_to_tensor(0, dtypes.int64)
    arrays = [
        TensorArray(dtype, size=0, dynamic_size=True, element_shape=shape, infer_shape=shape.is_fully_defined())
        for dtype, shape in stacked
    ]
    count = len(variables)

    def again(turn: Tensor, *values: Any) -> Tensor:
        more = convert_to_tensor(True) if limit is None else turn < limit
        return more if going is None else math_ops.logical_and(more, going(*values[:count]))

    def body(turn: Tensor, *values: Any) -> list[Any]:
        following, rows = step(turn, *values[:count])
        written = [
            array.write(array_ops.cast(turn, dtypes.int32), row)
            for array, row in zip(values[count:], rows, strict=True)
        ]
        return [turn + 1, *following, *written]

    loop_vars: list[Any] = [zero, *variables, *arrays]
    final = while_loop(
        again,
        body,
        loop_vars,
        shape_invariants=[TensorShape([]), *shapes, *[TensorShape([])] * len(arrays)],
        return_same_structure=True,
    )
    return list(final[1 : count + 1]), [array.stack() for array in final[count + 1 :]]


def _shapes_within(step: Step, variables: Sequence[Tensor]) -> tuple[list[TensorShape], list[tuple[Any, TensorShape]]]:
    """The shapes that variables have in all turns, and the dtypes and shapes of what is stacked.

    A step is built on trial, until the shapes with which it begins admit those with which it ends.
    """
    shapes = [tensor.shape for tensor in variables]
    for trial in itertools.count(1):
        region = Region(get_default_graph())
        with region.as_default():
            turn = region.add_input(dtypes.int64, TensorShape([]), "turn")
            given = [region.add_input(each.dtype, shape, "v") for each, shape in zip(variables, shapes, strict=True)]
            following, rows = step(turn, *given)
        wider = [old.most_specific_compatible_shape(new.shape) for old, new in zip(shapes, following, strict=True)]
        if shapes == wider:
            break
        shapes = wider if trial < _MAX_TRIALS else [UNKNOWN] * len(shapes)
    return shapes, [(row.dtype, row.shape) for row in rows]
