"""Operations and tensors by their names, and those that lie before and behind others."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

from tfray.contrib.graph_editor.util import (
    ControlOutputs,
    get_consuming_ops,
    get_generating_ops,
    get_tensors,
    listed,
    make_list_of_op,
    make_list_of_t,
)
from tfray.framework.graph import Graph, Operation, Tensor

__all__ = [
    "can_be_regex",
    "check_cios",
    "compute_boundary_ts",
    "filter_ops",
    "filter_ops_from_regex",
    "filter_ts",
    "filter_ts_from_regex",
    "get_backward_walk_ops",
    "get_forward_walk_ops",
    "get_name_scope_ops",
    "get_ops_ios",
    "get_walks_intersection_ops",
    "get_walks_union_ops",
    "get_within_boundary_ops",
    "make_regex",
    "select_ops",
    "select_ops_and_ts",
    "select_ts",
]

Within = Callable[[Operation], bool]


# -- by name -------------------------------------------------------------------------------------------


def can_be_regex(obj: Any) -> bool:
    """Whether something is an expression for names: a string, or a compiled expression."""
    return isinstance(obj, str | re.Pattern)


def make_regex(obj: Any) -> re.Pattern[str]:
    """A compiled expression.

    Args:
        obj: A string, or a compiled expression, which is the result itself.

    Raises:
        ValueError: It is something else.
    """
    if not can_be_regex(obj):
        raise ValueError(f"Expected a string or a regex, got: {type(obj)}")
    return re.compile(obj)


def filter_ops(ops: Any, positive_filter: Callable[[Operation], bool] | Literal[True]) -> list[Operation]:
    """The operations for which a function is true; all for True."""
    found = make_list_of_op(ops)
    return (
        found if positive_filter is True else [op for op in found if callable(positive_filter) and positive_filter(op)]
    )


def filter_ts(ops: Any, positive_filter: Callable[[Tensor], bool] | Literal[True]) -> list[Tensor]:
    """The inputs and outputs of operations for which a function is true, each once; all for True."""
    found = dict.fromkeys(tensor for op in make_list_of_op(ops) for tensor in (*op.inputs, *op.outputs))
    return [tensor for tensor in found if positive_filter is True or positive_filter(tensor)]


def filter_ops_from_regex(ops: Any, regex: str | re.Pattern[str]) -> list[Operation]:
    """The operations in whose names a pattern is found."""
    pattern = make_regex(regex)
    return filter_ops(ops, lambda op: pattern.search(op.name) is not None)


def filter_ts_from_regex(ops: Any, regex: str | re.Pattern[str]) -> list[Tensor]:
    """The inputs and outputs of operations in whose names a pattern is found."""
    pattern = make_regex(regex)
    return filter_ts(ops, lambda tensor: pattern.search(tensor.name) is not None)


def get_name_scope_ops(ops: Any, scope: str) -> list[Operation]:
    """The operations within a name scope."""
    return filter_ops_from_regex(ops, f"^{re.escape(scope.rstrip('/'))}/" if scope else "")


# -- walks ---------------------------------------------------------------------------------------------


def get_backward_walk_ops(
    seed_ops: Any,
    inclusive: bool = True,
    within_ops: Iterable[Operation] | None = None,
    within_ops_fn: Within | None = None,
    stop_at_ts: Any = (),
    control_inputs: bool = False,
) -> list[Operation]:
    """The operations on which others depend.

    Args:
        seed_ops: Where to begin: operations, or tensors, which stand for the operations that make them.
        inclusive: Whether those are in the result.
        within_ops: The operations that may be passed; any when None.
        within_ops_fn: A function that tells whether one may be passed.
        stop_at_ts: Tensors behind which not to go on.
        control_inputs: Follow control inputs as well.
    """
    stops = frozenset(make_list_of_t(stop_at_ts))

    def before(op: Operation) -> list[Operation]:
        made = [tensor.op for tensor in op.inputs if tensor not in stops]
        return made + op.control_inputs if control_inputs else made

    return _walk(_seeds(seed_ops, get_generating_ops), before, inclusive, within_ops, within_ops_fn)


def get_forward_walk_ops(
    seed_ops: Any,
    inclusive: bool = True,
    within_ops: Iterable[Operation] | None = None,
    within_ops_fn: Within | None = None,
    stop_at_ts: Any = (),
    control_outputs: Any = None,
) -> list[Operation]:
    """The operations that depend on others.

    Args:
        seed_ops: Where to begin: operations, or tensors, which stand for the operations that take them.
        inclusive: See `get_backward_walk_ops`.
        within_ops: Likewise.
        within_ops_fn: Likewise.
        stop_at_ts: Likewise.
        control_outputs: Follow control inputs as well, unless it is None or False.
    """
    stops, seeds = frozenset(make_list_of_t(stop_at_ts)), _seeds(seed_ops, get_consuming_ops)
    controlled = _waiting(seeds) if control_outputs else {}

    def behind(op: Operation) -> list[Operation]:
        taken = [user for tensor in op.outputs if tensor not in stops for user in tensor.consumers()]
        return taken + controlled.get(op, [])

    return _walk(seeds, behind, inclusive, within_ops, within_ops_fn)


def _seeds(seeds: Any, of_tensors: Callable[[Any], list[Operation]]) -> list[Operation]:
    found = listed(seeds)
    return of_tensors(found) if found and isinstance(found[0], Tensor) else make_list_of_op(found, allow_graph=False)


def _walk(
    seeds: Sequence[Operation],
    following: Callable[[Operation], list[Operation]],
    inclusive: bool,
    within_ops: Iterable[Operation] | None,
    within_ops_fn: Within | None,
) -> list[Operation]:
    allowed = None if within_ops is None else frozenset(make_list_of_op(within_ops))
    found = dict.fromkeys(seeds)
    waiting = list(found)
    for op in waiting:
        for other in following(op):
            may = (allowed is None or other in allowed) and (within_ops_fn is None or within_ops_fn(other))
            if may and other not in found:
                found[other] = None
                waiting.append(other)
    return list(found if inclusive else dict.fromkeys(op for op in found if op not in frozenset(seeds)))


def get_walks_intersection_ops(
    forward_seed_ops: Any,
    backward_seed_ops: Any,
    forward_inclusive: bool = True,
    backward_inclusive: bool = True,
    within_ops: Iterable[Operation] | None = None,
    within_ops_fn: Within | None = None,
    control_inputs: bool = False,
    control_outputs: Any = None,
    control_ios: Any = None,
) -> list[Operation]:
    """The operations that are in the forward walk from some and in the backward walk from others.

    Args:
        forward_seed_ops: See `get_forward_walk_ops`.
        backward_seed_ops: See `get_backward_walk_ops`.
        forward_inclusive: Whether the first are in their walk.
        backward_inclusive: Whether the others are in theirs.
        within_ops: The operations that may be passed; any when None.
        within_ops_fn: A function that tells whether one may be passed.
        control_inputs: Follow control inputs backward.
        control_outputs: Follow them forward.
        control_ios: Follow them both ways.
    """
    seeds = forward_seed_ops, backward_seed_ops, forward_inclusive, backward_inclusive
    controls = control_inputs or control_ios, control_outputs or control_ios
    forward, backward = _both(*seeds, within_ops, within_ops_fn, *controls)
    return [op for op in forward if op in frozenset(backward)]


def get_walks_union_ops(
    forward_seed_ops: Any,
    backward_seed_ops: Any,
    forward_inclusive: bool = True,
    backward_inclusive: bool = True,
    within_ops: Iterable[Operation] | None = None,
    within_ops_fn: Within | None = None,
    control_inputs: bool = False,
    control_outputs: Any = None,
    control_ios: Any = None,
) -> list[Operation]:
    """The operations that are in either walk; arguments as for `get_walks_intersection_ops`."""
    seeds = forward_seed_ops, backward_seed_ops, forward_inclusive, backward_inclusive
    controls = control_inputs or control_ios, control_outputs or control_ios
    forward, backward = _both(*seeds, within_ops, within_ops_fn, *controls)
    return list(dict.fromkeys([*forward, *backward]))


def _both(
    forward_seeds: Any,
    backward_seeds: Any,
    forward_inclusive: bool,
    backward_inclusive: bool,
    within_ops: Iterable[Operation] | None,
    within_ops_fn: Within | None,
    control_inputs: Any,
    control_outputs: Any,
) -> tuple[list[Operation], list[Operation]]:
    limits: Any = {"within_ops": within_ops, "within_ops_fn": within_ops_fn}
    return (
        get_forward_walk_ops(forward_seeds, forward_inclusive, control_outputs=control_outputs, **limits),
        get_backward_walk_ops(backward_seeds, backward_inclusive, control_inputs=bool(control_inputs), **limits),
    )


def check_cios(
    control_inputs: bool = False,
    control_outputs: ControlOutputs | None = None,
    control_ios: ControlOutputs | None = None,
) -> tuple[bool, ControlOutputs | None]:
    """Which control dependencies are followed, of three arguments that many functions here have.

    Args:
        control_inputs: Whether they are followed backward.
        control_outputs: By what they are followed forward; it looks at its graph again.
        control_ios: The same for both ways.

    Returns:
        Whether they are followed backward, and by what forward; None if they are not.

    Raises:
        TypeError: One of the last two is no `ControlOutputs`.
        ValueError: There are both of these.
    """
    for each in (control_ios, control_outputs):
        if each is not None and not isinstance(each, ControlOutputs):
            raise TypeError(f"Expected a util.ControlOutputs, got: {type(each)}")
    if control_ios is not None and control_outputs is not None:
        raise ValueError("control_outputs should be None when using control_ios.")
    forward = control_outputs if control_ios is None else control_ios
    return control_inputs if control_ios is None else True, None if forward is None else forward.update()


def compute_boundary_ts(ops: Any) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    """The tensors that go into a part of a graph, that come out of it, and that are within it.

    Args:
        ops: The operations of the part, or a graph.

    Returns:
        The tensors that they take from outside; those they make that something outside takes or nothing does; and
        those that they make and take themselves, which may come out as well.

    Raises:
        TypeError: `ops` is something else.
    """
    part = make_list_of_op(ops)
    taken = list(dict.fromkeys(tensor for op in part for tensor in op.inputs))
    made = [tensor for op in part for tensor in op.outputs]
    both = frozenset(taken) & frozenset(made)
    hidden = {tensor for tensor in both if not frozenset(tensor.consumers()) - frozenset(part)}
    return (
        [tensor for tensor in taken if tensor not in both],
        [tensor for tensor in made if tensor not in hidden],
        [tensor for tensor in taken if tensor in both],
    )


def get_ops_ios(
    ops: Any, control_inputs: bool = False, control_outputs: Any = None, control_ios: Any = None
) -> list[Operation]:
    """The operations that make what some take, or take what they make.

    Args:
        ops: The operations.
        control_inputs: Those that they wait for as well.
        control_outputs: Those that wait for them as well, unless it is None or False.
        control_ios: Both.
    """
    found = make_list_of_op(ops)
    waiting = _waiting(found) if control_outputs or control_ios else {}
    near: dict[Operation, None] = {}
    for op in found:
        near.update(dict.fromkeys(tensor.op for tensor in op.inputs))
        near.update(dict.fromkeys(user for tensor in op.outputs for user in tensor.consumers()))
        near.update(dict.fromkeys(waiting.get(op, ())))
        near.update(dict.fromkeys(op.control_inputs if control_inputs or control_ios else ()))
    return list(near)


def _waiting(ops: Sequence[Operation]) -> dict[Operation, list[Operation]]:
    """By operation, those that wait for it."""
    waiting: dict[Operation, list[Operation]] = {}
    for op in ops[0].graph.get_operations() if ops else ():
        for other in op.control_inputs:
            waiting.setdefault(other, []).append(op)
    return waiting


def get_within_boundary_ops(
    ops: Any,
    seed_ops: Any,
    boundary_ops: Any = (),
    inclusive: bool = True,
    control_inputs: bool = False,
    control_outputs: Any = None,
    control_ios: Any = None,
) -> list[Operation]:
    """The operations that can be reached from some, both ways, without passing a boundary.

    Args:
        ops: The operations, or the graph, of which they are taken, in this order.
        seed_ops: Where to begin.
        boundary_ops: The operations that are not passed.
        inclusive: Whether those of the boundary that are reached are in the result.
        control_inputs: See `get_ops_ios`.
        control_outputs: Likewise.
        control_ios: Likewise.

    Raises:
        ValueError: One is both at the beginning and at the boundary.
    """
    bounds, wave = frozenset(make_list_of_op(boundary_ops)), make_list_of_op(seed_ops, allow_graph=False)
    found = set(wave)
    if bounds & found:
        raise ValueError("Boundary is intersecting with the seeds.")
    while wave:
        near = [op for op in get_ops_ios(wave, control_inputs, control_outputs, control_ios) if op not in found]
        wave = [op for op in near if op not in bounds]
        found.update(near if inclusive else wave)
    return [op for op in make_list_of_op(ops) if op in found]


# -- operations and tensors at once --------------------------------------------------------------------


def select_ops(*args: Any, **kwargs: Any) -> list[Operation]:
    """Operations, and those whose names an expression matches from the start.

    Args:
        *args: Operations, lists of them, or expressions. One that begins with ``(?#ts)`` is for tensors, and skipped.
        **kwargs: ``graph``: where to look for names. ``positive_filter``: a function that says which ones to take.

    Raises:
        ValueError: There is an expression, and no graph.
    """
    return [each for each in select_ops_and_ts(*args, **kwargs) if isinstance(each, Operation)]


def select_ts(*args: Any, **kwargs: Any) -> list[Tensor]:
    """Tensors, and those whose names an expression matches from the start; see `select_ops`."""
    marked = [f"(?#ts){each}" if isinstance(each, str) and not each.startswith("(?#ts)") else each for each in args]
    return [each for each in select_ops_and_ts(*marked, **kwargs) if isinstance(each, Tensor)]


def select_ops_and_ts(*args: Any, **kwargs: Any) -> list[Any]:
    """Operations, and the tensors whose names expressions after ``(?#ts)`` match; see `select_ops`."""
    graph, wanted = kwargs.get("graph"), kwargs.get("positive_filter")
    found: dict[Any, None] = {}
    for each in args:
        if not isinstance(each, str | re.Pattern):
            found.update(dict.fromkeys(each.get_operations() if isinstance(each, Graph) else listed(each)))
            continue
        if graph is None:
            raise ValueError(f"to find {each!r}, select needs a graph")
        expression = each if isinstance(each, str) else each.pattern
        among = get_tensors(graph) if expression.startswith("(?#ts)") else graph.get_operations()
        found.update(dict.fromkeys(one for one in among if re.match(expression, one.name)))
    return [each for each in found if wanted is None or wanted(each)]
