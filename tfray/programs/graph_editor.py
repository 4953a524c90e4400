"""``tf.contrib.graph_editor``: operations that lie before and behind others, and copies with other inputs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from tfray.framework import nest
from tfray.framework.graph import Graph, Operation, Tensor

__all__ = [
    "filter_ops",
    "filter_ops_from_regex",
    "filter_ts",
    "filter_ts_from_regex",
    "get_backward_walk_ops",
    "get_consuming_ops",
    "get_forward_walk_ops",
    "get_generating_ops",
    "get_name_scope_ops",
    "get_tensors",
    "get_walks_intersection_ops",
    "get_walks_union_ops",
    "graph_replace",
    "make_list_of_op",
    "make_list_of_t",
]

Within = Callable[[Operation], bool]


def make_list_of_op(
    ops: Any, check_graph: bool = True, allow_graph: bool = True, ignore_ts: bool = False
) -> list[Operation]:
    """Operations as a list.

    Args:
        ops: A graph, an operation, or several.
        check_graph: Refuse operations of several graphs.
        allow_graph: Whether `ops` may be a graph: all of its operations.
        ignore_ts: Leave tensors out, which are refused otherwise.

    Raises:
        TypeError: `ops` is, or holds, something else.
        ValueError: They are of several graphs.
    """
    found = ops.get_operations() if isinstance(ops, Graph) and allow_graph else _listed(ops)
    return _checked([each for each in found if not (ignore_ts and isinstance(each, Tensor))], Operation, check_graph)


def make_list_of_t(
    ts: Any, check_graph: bool = True, allow_graph: bool = True, ignore_ops: bool = False
) -> list[Tensor]:
    """Tensors as a list.

    Args:
        ts: A graph, a tensor, or several.
        check_graph: Refuse tensors of several graphs.
        allow_graph: Whether `ts` may be a graph: all of its tensors.
        ignore_ops: Leave operations out, which are refused otherwise.

    Raises:
        TypeError: `ts` is, or holds, something else.
        ValueError: They are of several graphs.
    """
    found = get_tensors(ts) if isinstance(ts, Graph) and allow_graph else _listed(ts)
    return _checked([each for each in found if not (ignore_ops and isinstance(each, Operation))], Tensor, check_graph)


def _listed(values: Any) -> list[Any]:
    return list(values) if isinstance(values, Iterable) and not isinstance(values, Tensor) else [values]


def _checked(found: list[Any], kind: type, check_graph: bool) -> list[Any]:
    for each in found:
        if not isinstance(each, kind):
            raise TypeError(f"expected a tf.{kind.__name__}, got {each!r}")
    if check_graph and len({each.graph for each in found}) > 1:
        raise ValueError(f"{found} are of several graphs")
    return found


def get_tensors(graph: Graph) -> list[Tensor]:
    """All tensors of a graph. Raises `TypeError` when it is none."""
    if not isinstance(graph, Graph):
        raise TypeError(f"expected a graph, got {graph!r}")
    return [tensor for op in graph.get_operations() for tensor in op.outputs]


def get_generating_ops(ts: Any) -> list[Operation]:
    """The operations that make tensors."""
    return [tensor.op for tensor in make_list_of_t(ts, allow_graph=False)]


def get_consuming_ops(ts: Any) -> list[Operation]:
    """The operations that take tensors, each once."""
    return list(dict.fromkeys(op for tensor in make_list_of_t(ts, allow_graph=False) for op in tensor.consumers()))


# -- by name -------------------------------------------------------------------------------------------


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
    pattern = re.compile(regex)
    return filter_ops(ops, lambda op: pattern.search(op.name) is not None)


def filter_ts_from_regex(ops: Any, regex: str | re.Pattern[str]) -> list[Tensor]:
    """The inputs and outputs of operations in whose names a pattern is found."""
    pattern = re.compile(regex)
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
    controlled: dict[Operation, list[Operation]] = {}
    if control_outputs and seeds:
        for op in seeds[0].graph.get_operations():
            for other in op.control_inputs:
                controlled.setdefault(other, []).append(op)

    def behind(op: Operation) -> list[Operation]:
        taken = [user for tensor in op.outputs if tensor not in stops for user in tensor.consumers()]
        return taken + controlled.get(op, [])

    return _walk(seeds, behind, inclusive, within_ops, within_ops_fn)


def _seeds(seeds: Any, of_tensors: Callable[[Any], list[Operation]]) -> list[Operation]:
    found = _listed(seeds)
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


# -- copies --------------------------------------------------------------------------------------------


def graph_replace(
    target_ts: Any,
    replacement_ts: Mapping[Tensor, Tensor],
    dst_scope: str = "",
    src_scope: str = "",
    reuse_dst_scope: bool = False,
) -> Any:
    """Tensors as they are with other inputs: what lies between is copied.

    Args:
        target_ts: A tensor, or several in any structure.
        replacement_ts: For tensors on which these depend others, which take their places.
        dst_scope: Name scope of the copies.
        src_scope: Name scope of the originals, which is left out of the names of the copies.
        reuse_dst_scope: Use `dst_scope` as it is, if it is there already.

    Returns:
        The copies in the same structure; a tensor that depends on none of those is itself.

    Raises:
        ValueError: No target depends on any of those tensors.
    """
    targets = make_list_of_t(nest.flatten(target_ts))
    between = get_walks_intersection_ops(list(replacement_ts), targets, control_ios=True)
    if not between:
        raise ValueError("Targets and replacements are not connected!")
    graph, prefix = targets[0].graph, src_scope.rstrip("/")
    copies: dict[Operation, Operation] = {}

    def copied(tensor: Tensor) -> Tensor:
        if tensor in replacement_ts:
            return replacement_ts[tensor]
        return copies[tensor.op].outputs[tensor.value_index] if tensor.op in copies else tensor

    scope = dst_scope.rstrip("/") + "/" if reuse_dst_scope and dst_scope else dst_scope
    with graph.as_default(), graph.name_scope(None), graph.name_scope(scope or None), graph.control_dependencies(None):
        for op in sorted(between, key=lambda op: op.id):
            copies[op] = graph.add_operation(
                op.type,
                [copied(tensor) for tensor in op.inputs],
                {name: value for name, value in op.attrs.items() if name != "_class"},
                op.name.removeprefix(f"{prefix}/") if prefix else op.name,
                control_inputs=[copies.get(each, each) for each in op.control_inputs],
                device=op.device,
            )
    return nest.pack_sequence_as(target_ts, [copied(tensor) for tensor in targets])
