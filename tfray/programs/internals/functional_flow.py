"""Branches and loops as TensorFlow's modules ``cond_v2`` and ``while_v2`` make them: here all are functional."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tfray.framework.graph import Tensor
from tfray.framework.type_aliases import Structure, TensorLike
from tfray.ops.arrays.shape_ops import squeeze
from tfray.ops.control import control_flow_ops


def cond_v2(pred: Any, true_fn: Callable[[], Any], false_fn: Callable[[], Any], name: str | None = "cond") -> Any:
    """`tf.cond` whose condition may have any shape with one element.

    Args:
        pred: A bool tensor of one element, or a bool.
        true_fn: Makes the result where it is true.
        false_fn: Makes the result where it is false, in the same structure.
        name: Name of the operation; ``cond`` where it is empty.
    """
    return control_flow_ops.cond(_scalar(pred), true_fn, false_fn, name=name or "cond")


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Structure,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    maximum_iterations: TensorLike | None = None,
    name: str | None = None,
    return_same_structure: bool = True,
    back_prop: bool = True,
) -> Any:
    """`tf.while_loop` that returns the structure that it was given, also a list of one tensor.

    Args:
        cond: Function of the loop variables; it returns a bool tensor of one element, of any rank.
        body: Function of the loop variables that returns their next values, in the same structure.
        loop_vars: Their first values.
        shape_invariants: Their static shapes, where turns change them.
        parallel_iterations: Accepted for TensorFlow 1's sake.
        maximum_iterations: The most turns; None for no limit.
        name: Name of the operation.
        return_same_structure: Return a list of one tensor as such; the tensor itself otherwise.
        back_prop: Whether gradients go through the loop.
    """
    return control_flow_ops.while_loop(
        lambda *values: _scalar(cond(*values)),
        body,
        loop_vars,
        shape_invariants,
        parallel_iterations,
        back_prop,
        name=name,
        maximum_iterations=maximum_iterations,
        return_same_structure=return_same_structure,
    )


def _scalar(condition: Any) -> Any:
    """A condition without its dimensions of one."""
    return squeeze(condition) if isinstance(condition, Tensor) and condition.shape.rank else condition
