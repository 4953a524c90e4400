"""`switch` and `merge`, by which programs write a choice as TensorFlow itself does.

TensorFlow marks what is not chosen as dead. Here nothing is: a `merge` is a `tf.cond`, and what stands between its
switches and it is copied into the branches, so that only the chosen one runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import DTypeLike
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.importer import inlined
from tfray.framework.traversal import reachable_backward
from tfray.framework.type_aliases import TensorLike
from tfray.gradients import RegisterGradient
from tfray.ops.arrays.array_ops import identity
from tfray.ops.arrays.broadcast_ops import where_v2, zeros_like
from tfray.ops.arrays.source_ops import constant
from tfray.ops.control.control_flow_ops import cond
from tfray.ops.math.comparison_ops import logical_and, logical_not

_SIDES: Final = "sides_of_switches"
"""Name of a graph's table of what its switches gave out."""

_SIDE: Final = "SideOfSwitch"
"""Name of the gradient of what a switch gave out."""


class Switch(NamedTuple):
    """What `switch` returns."""

    output_false: Tensor
    output_true: Tensor


class Merge(NamedTuple):
    """What `merge` returns."""

    output: Tensor
    value_index: Tensor


class _Side(NamedTuple):
    data: Tensor
    pred: Tensor
    holds: bool


def switch(data: TensorLike, pred: TensorLike, dtype: DTypeLike | None = None, name: str | None = None) -> Switch:
    """`data` for each value of `pred`, to be brought together again by `merge`.

    Args:
        data: Any shape and dtype.
        pred: bool scalar.
        dtype: Dtype of `data` that is no tensor.
        name: Scope of the operations.

    Returns:
        ``(output_false, output_true)``. What no `merge` follows is computed whatever `pred` is; through the side that
        `pred` does not choose, the gradient is 0.

    Raises:
        InvalidArgumentError: `pred` is no scalar.
    """
    graph = get_default_graph()
    with graph.name_scope(name or "Switch"):
        data, pred = convert_to_tensor(data, dtype), convert_to_tensor(pred, dtypes.bool_)
        if pred.shape.rank not in (None, 0):
            raise InvalidArgumentError(f"switch: pred has shape {pred.shape}, expected a scalar", site=pred.op.site)
        with graph.gradient_override_map({"Identity": _SIDE}):
            sides = Switch(identity(data, name="output_false"), identity(data, name="output_true"))
    table = graph.extra(_SIDES, dict)
    table.update((side, _Side(data, pred, holds)) for side, holds in zip(sides, (False, True), strict=True))
    return sides


@RegisterGradient(_SIDE)
def _side_gradient(op: Operation, d_side: Tensor) -> Tensor:
    _, pred, holds = op.graph.extra(_SIDES, dict)[op.outputs[0]]
    zeros = zeros_like(d_side)
    return where_v2(pred, d_side, zeros) if holds else where_v2(pred, zeros, d_side)


def merge(inputs: Sequence[TensorLike], name: str | None = None) -> Merge:
    """The one of `inputs` whose switches let it through, and its index.

    Args:
        inputs: Tensors of one dtype, computed from what `switch` returned. If several are let through, it is the first.
            If none is, it is the last.
        name: Scope of the operations.

    Returns:
        ``(output, value_index)``; the index is an int32 scalar.

    Raises:
        ValueError: There are no inputs.
    """
    if not inputs:
        raise ValueError("merge: inputs is empty, expected the tensors of which one is chosen")
    with get_default_graph().name_scope(name or "Merge"):
        branches = [_Branch(convert_to_tensor(each), index) for index, each in enumerate(inputs)]
        return Merge(*_first_alive(branches))


def _first_alive(branches: list[_Branch]) -> tuple[Tensor, Tensor]:
    first, *others = branches
    if not others or first.alive is None:
        return first.copied()
    output, index = cond(first.alive, first.copied, lambda: _first_alive(others))
    return output, index


class _Branch:
    """A value to merge, and what is computed for it once it is chosen.

    Attributes:
        alive: Whether its switches let it through; None if it comes from none.
    """

    def __init__(self, value: Tensor, index: int) -> None:
        self._value = value
        self._index = index
        self._given: dict[Tensor, Tensor] = {}
        table: dict[Tensor, _Side] = get_default_graph().extra(_SIDES, dict)
        sides = [table[value]] if value in table else []
        for op in self._computed(value, table):
            for tensor in op.inputs:
                if tensor in table:
                    sides.append(table[tensor])
                    self._given[tensor] = table[tensor].data
        if value in table:
            self._given[value] = table[value].data
        self.alive: Tensor | None = None
        for pred, holds in dict.fromkeys((side.pred, side.holds) for side in sides):
            lets_through = pred if holds else logical_not(pred)
            self.alive = lets_through if self.alive is None else logical_and(self.alive, lets_through)

    def _computed(self, value: Tensor, table: dict[Tensor, _Side]) -> list[Operation]:
        """What depends on the switches. What it uses of other operations is taken as it is."""
        behind = reachable_backward(
            [] if value in table else [value.op],
            lambda op: [*(tensor.op for tensor in op.inputs if tensor not in table), *op.control_inputs],
        )
        depends: dict[Operation, None] = {}
        for op in sorted(behind, key=lambda op: op.id):
            if any(tensor in table or tensor.op in depends for tensor in op.inputs):
                depends[op] = None
        for op in depends:
            self._given.update((each, each) for each in op.inputs if each not in table and each.op not in depends)
        if value.op not in depends and value not in table:
            self._given[value] = value
        return list(depends)

    def copied(self) -> tuple[Tensor, Tensor]:
        graph = get_default_graph()
        given: dict[Any, Tensor] = {tensor: graph.own(outer) for tensor, outer in self._given.items()}
        outputs, _ = inlined([self._value], given, f"case_{self._index}")
        return identity(outputs[0]), constant(self._index, dtypes.int32)
