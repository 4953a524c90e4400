"""Other inputs for what takes tensors."""

from __future__ import annotations

from typing import Any

from tfray.contrib.graph_editor.subgraph import SubGraphView, make_view
from tfray.contrib.graph_editor.util import get_consuming_ops, make_list_of_op, make_list_of_t
from tfray.framework.graph import Operation

__all__ = [
    "add_control_inputs",
    "remove_control_inputs",
    "reroute_inputs",
    "reroute_ios",
    "reroute_outputs",
    "reroute_ts",
    "swap_inputs",
    "swap_ios",
    "swap_outputs",
    "swap_ts",
]

Views = tuple[SubGraphView, SubGraphView]


def reroute_ts(ts0: Any, ts1: Any, can_modify: Any = None, cannot_modify: Any = None) -> int:
    """Let what takes tensors take others in their places.

    Args:
        ts0: The tensors that are then taken.
        ts1: As many tensors, each of which is no longer taken.
        can_modify: The operations to change; all when None.
        cannot_modify: Operations to leave as they are.

    Returns:
        How many inputs were changed.

    Raises:
        ValueError: There are not as many of one as of the other, they are of several graphs, or the shapes of two do
            not fit.
        TypeError: The dtypes of two differ.
    """
    new, old = make_list_of_t(ts0, allow_graph=False), make_list_of_t(ts1, allow_graph=False)
    if len(new) != len(old):
        raise ValueError(f"there are {len(new)} tensors to take, and {len(old)} that are taken")
    allowed = None if can_modify is None else frozenset(make_list_of_op(can_modify))
    kept = frozenset(make_list_of_op(cannot_modify or []))
    changes = [
        (op, index, after)
        for after, before in zip(new, old, strict=True)
        for op in before.consumers()
        if op not in kept and (allowed is None or op in allowed)
        for index, tensor in enumerate(op.inputs)
        if tensor is before
    ]
    for op, index, after in changes:
        op._update_input(index, after)
    return len(changes)


def swap_ts(ts0: Any, ts1: Any, can_modify: Any = None, cannot_modify: Any = None) -> int:
    """Let what takes tensors of either list take those of the other; see `reroute_ts`."""
    first, second = make_list_of_t(ts0, allow_graph=False), make_list_of_t(ts1, allow_graph=False)
    return reroute_ts([*first, *second], [*second, *first], can_modify, cannot_modify)


def add_control_inputs(op: Operation, cops: Any) -> None:
    """Make an operation run after others too.

    Raises:
        ValueError: It does already.
    """
    ops = make_list_of_op(cops, allow_graph=False)
    if there := [each for each in ops if each in op.control_inputs]:
        raise ValueError(f"{there} are control inputs of {op.name} already")
    op.add_control_inputs(ops)


def remove_control_inputs(op: Operation, cops: Any) -> None:
    """Let an operation no longer wait for others.

    Raises:
        ValueError: It does not wait for one of them.
    """
    ops = make_list_of_op(cops, allow_graph=False)
    if missing := [each for each in ops if each not in op.control_inputs]:
        raise ValueError(f"{missing} are no control inputs of {op.name}")
    for each in ops:
        del op._control_inputs[each]
    op.graph._changed()


def reroute_inputs(sgv0: Any, sgv1: Any) -> Views:
    """Let a part of a graph take the inputs of another.

    Args:
        sgv0: The part that has the inputs; see `make_view`.
        sgv1: The part that is to have them, which has as many.

    Returns:
        Views of both.

    Raises:
        ValueError: They have not as many inputs, or are of several graphs.
        TypeError: The dtypes of two inputs differ.
    """
    return _reroute_inputs(sgv0, sgv1, swaps=False)


def swap_inputs(sgv0: Any, sgv1: Any) -> Views:
    """Let two parts of a graph take the inputs of each other; see `reroute_inputs`."""
    return _reroute_inputs(sgv0, sgv1, swaps=True)


def _reroute_inputs(sgv0: Any, sgv1: Any, swaps: bool) -> Views:
    first, second = make_view(sgv0), make_view(sgv1)
    may = [*first.ops, *second.ops, *get_consuming_ops([*first.passthroughs, *second.passthroughs])]
    (swap_ts if swaps else reroute_ts)(first.inputs, second.inputs, can_modify=may)
    old = second.copy()
    _take_inputs(second, first)
    if swaps:
        _take_inputs(first, old)
    return first, second


def _take_inputs(view: SubGraphView, other: SubGraphView) -> None:
    """Let a view have the inputs of another, of which there are as many."""
    places = {tensor: index for index, tensor in enumerate(view.inputs) if tensor in view.passthroughs}
    view.inputs, view.passthroughs = list(other.inputs), list(other.passthroughs)
    view.outputs = [view.inputs[places[each]] if each in places else each for each in view.outputs]


def reroute_outputs(sgv0: Any, sgv1: Any) -> Views:
    """Let what takes the outputs of a part of a graph take those of another.

    Args:
        sgv0: The part whose outputs are then taken; see `make_view`.
        sgv1: The part whose outputs are then no longer taken, which has as many.

    Returns:
        Views of both.

    Raises:
        ValueError: They have not as many outputs, or are of several graphs.
        TypeError: The dtypes of two outputs differ.
    """
    first, second = make_view(sgv0), make_view(sgv1)
    reroute_ts(first.outputs, second.outputs, cannot_modify=[*first.ops, *second.ops])
    return first, second


def swap_outputs(sgv0: Any, sgv1: Any) -> Views:
    """Let what takes the outputs of either part of a graph take those of the other; see `reroute_outputs`."""
    first, second = make_view(sgv0), make_view(sgv1)
    swap_ts(first.outputs, second.outputs, cannot_modify=[*first.ops, *second.ops])
    return first, second


def reroute_ios(sgv0: Any, sgv1: Any) -> Views:
    """`reroute_outputs` and `reroute_inputs`: put a part of a graph in the place of another."""
    return reroute_inputs(*reroute_outputs(sgv0, sgv1))


def swap_ios(sgv0: Any, sgv1: Any) -> Views:
    """`swap_outputs` and `swap_inputs`: let two parts of a graph change their places."""
    return swap_inputs(*swap_outputs(sgv0, sgv1))
