"""Parts of a graph, connected and set apart."""

from __future__ import annotations

from typing import Any

from tfray.contrib.graph_editor.reroute import (
    Views,
    remove_control_inputs,
    reroute_inputs,
    reroute_ts,
    swap_inputs,
    swap_outputs,
)
from tfray.contrib.graph_editor.subgraph import SubGraphView, make_view
from tfray.contrib.graph_editor.util import ControlOutputs, make_placeholder_from_tensor, placeholder_name
from tfray.framework.graph import Tensor
from tfray.ops.arrays.source_ops import placeholder

__all__ = [
    "bypass", "connect", "detach", "detach_control_inputs", "detach_control_outputs", "detach_inputs", "detach_outputs",
]  # fmt: skip


def connect(sgv0: Any, sgv1: Any, disconnect_first: bool = False) -> Views:
    """Let a part of a graph take the outputs of another.

    Args:
        sgv0: The part that has the outputs; see `make_view`.
        sgv1: The part that is to take them, which has as many inputs.
        disconnect_first: Let what takes these outputs now take placeholders; see `detach_outputs`.

    Returns:
        Views of both.

    Raises:
        ValueError: There are not as many outputs as inputs, or they are of several graphs.
        TypeError: The dtypes of two differ.
    """
    first, second = make_view(sgv0), make_view(sgv1)
    if disconnect_first:
        detach_outputs(first)
    reroute_inputs(SubGraphView(passthrough_ts=first.outputs), second)
    return first, second


def detach_control_inputs(sgv: Any) -> None:
    """Let a part of a graph no longer wait for operations outside it."""
    view = make_view(sgv)
    for op in view.ops:
        remove_control_inputs(op, [each for each in op.control_inputs if each not in view.ops])


def detach_control_outputs(sgv: Any, control_outputs: ControlOutputs) -> None:
    """Let operations outside no longer wait for a part of a graph.

    Args:
        sgv: The part; see `make_view`.
        control_outputs: Which operations wait for which.

    Raises:
        TypeError: `control_outputs` is something else.
    """
    if not isinstance(control_outputs, ControlOutputs):
        raise TypeError(f"expected a util.ControlOutputs, got {control_outputs!r}")
    view = make_view(sgv)
    inside = frozenset(view.ops)
    for op in view.ops:
        for after in control_outputs.update().get(op):
            if after not in inside:
                remove_control_inputs(after, op)


def detach_inputs(sgv: Any, control_inputs: bool = False) -> tuple[SubGraphView, list[Tensor]]:
    """Let a part of a graph take placeholders.

    Args:
        sgv: The part; see `make_view`.
        control_inputs: Let it no longer wait for operations outside it, too.

    Returns:
        A view of it, and the placeholders.
    """
    view = make_view(sgv)
    with view.graph.as_default():
        made = [placeholder(tensor.dtype, name=placeholder_name(tensor)) for tensor in view.inputs]
    swap_inputs(view, made)
    if control_inputs:
        detach_control_inputs(view)
    return view, made


def detach_outputs(sgv: Any, control_outputs: Any = None) -> tuple[SubGraphView, list[Tensor]]:
    """Let what takes the outputs of a part of a graph take placeholders.

    Args:
        sgv: The part; see `make_view`.
        control_outputs: A `ControlOutputs`, for operations outside to no longer wait for it; see
            `detach_control_outputs`.

    Returns:
        A view of it, with the outputs that are taken, and the placeholders.
    """
    view = make_view(sgv)
    view = view.remap_outputs([tensor for tensor in view.outputs if tensor.consumers()])
    takers = SubGraphView(view.consumers())
    with view.graph.as_default():
        made = [make_placeholder_from_tensor(tensor) for tensor in takers.inputs if tensor in view.outputs]
    swap_outputs(view, made)
    if control_outputs is not None:
        detach_control_outputs(view, control_outputs)
    return view, made


def detach(
    sgv: Any, control_inputs: bool = False, control_outputs: Any = None, control_ios: Any = None
) -> tuple[Any, list[Tensor], list[Tensor]]:
    """`detach_inputs` and `detach_outputs`.

    Args:
        sgv: The part; see `make_view`.
        control_inputs: See `detach_inputs`.
        control_outputs: See `detach_outputs`.
        control_ios: A `ControlOutputs`, for control dependencies of both ends.

    Returns:
        `sgv`, and the placeholders of both.
    """
    _, before = detach_inputs(sgv, control_inputs or control_ios is not None)
    _, behind = detach_outputs(sgv, control_outputs if control_ios is None else control_ios)
    return sgv, before, behind


def bypass(sgv: Any) -> tuple[SubGraphView, list[Tensor]]:
    """Let what takes the outputs of a part of a graph take its inputs, and itself placeholders.

    Args:
        sgv: The part; see `make_view`.

    Returns:
        A view of it, and the placeholders.

    Raises:
        ValueError: It has not as many inputs as outputs.
        TypeError: The dtypes of two differ.
    """
    view = make_view(sgv)
    inputs = list(view.inputs)
    view, made = detach_inputs(view)
    reroute_ts(inputs, view.outputs)
    return view, made
