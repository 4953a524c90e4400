"""``tf.contrib.graph_editor``: operations that lie before and behind others, copies, and other inputs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from tfray.framework import nest
from tfray.framework.graph import Graph, Operation, Tensor, get_default_graph
from tfray.framework.traversal import topological_order

__all__ = [
    "SubGraphView",
    "TransformerInfo",
    "add_control_inputs",
    "copy_with_input_replacements",
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
    "make_view",
    "make_view_from_scope",
    "remove_control_inputs",
    "reroute_ts",
    "select_ops",
    "select_ops_and_ts",
    "select_ts",
    "sgv",
    "sgv_scope",
    "swap_ts",
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
    made = _copy(between, replacement_ts, dst_scope, src_scope, reuse_dst_scope)
    return nest.pack_sequence_as(target_ts, [made.transformed(tensor, tensor) for tensor in targets])


class TransformerInfo:
    """Which operations and tensors are copies of which.

    Args:
        ops: The copies of operations.
        replaced: The tensors that stand for others.
    """

    def __init__(self, ops: dict[Operation, Operation], replaced: Mapping[Tensor, Tensor]) -> None:
        self._transformed_ops = ops
        tensors = {
            before: after for op, copy in ops.items() for before, after in zip(op.outputs, copy.outputs, strict=True)
        }
        self._transformed_ts = {**tensors, **replaced}

    def transformed(self, original: Any, missing: Any = None) -> Any:
        """The copy of an operation or a tensor, or of each of several; `missing` where there is none."""
        found: dict[Any, Any] = {**self._transformed_ops, **self._transformed_ts}
        return nest.map_structure(lambda each: found.get(each, missing), original)

    def original(self, transformed: Any, missing: Any = None) -> Any:
        """What an operation or a tensor is a copy of, likewise."""
        pairs = [*self._transformed_ops.items(), *self._transformed_ts.items()]
        found: dict[Any, Any] = {after: before for before, after in pairs}
        return nest.map_structure(lambda each: found.get(each, missing), transformed)


def copy_with_input_replacements(
    sgv: Any,
    replacement_ts: Mapping[Tensor, Tensor],
    dst_graph: Graph | None = None,
    dst_scope: str = "",
    src_scope: str = "",
    reuse_dst_scope: bool = False,
) -> tuple[SubGraphView, TransformerInfo]:
    """A copy of a part of a graph. What it takes from outside it takes as the original does, or replaced.

    Args:
        sgv: A `SubGraphView`, or operations.
        replacement_ts: For tensors that it takes others, which take their places.
        dst_graph: The graph of the copy: that of the original.
        dst_scope: See `graph_replace`.
        src_scope: Likewise.
        reuse_dst_scope: Likewise.

    Returns:
        The copy, and which operations are copies of which.

    Raises:
        ValueError: `dst_graph` is another graph.
    """
    view = make_view(sgv)
    if dst_graph is not None and dst_graph is not view.graph:
        raise ValueError("the copy of a part of a graph is in the same graph")
    made = _copy(view.ops, replacement_ts, dst_scope, src_scope, reuse_dst_scope)
    return SubGraphView(made.transformed(view.ops)), made


def _copy(
    ops: Iterable[Operation], replaced: Mapping[Tensor, Tensor], dst_scope: str, src_scope: str, reuse: bool
) -> TransformerInfo:
    ops, prefix = list(ops), src_scope.rstrip("/")
    copies: dict[Operation, Operation] = {}

    def copied(tensor: Tensor) -> Tensor:
        if tensor in replaced:
            return replaced[tensor]
        return copies[tensor.op].outputs[tensor.value_index] if tensor.op in copies else tensor

    scope = dst_scope.rstrip("/") + "/" if reuse and dst_scope else dst_scope
    graph = ops[0].graph if ops else get_default_graph()
    with graph.as_default(), graph.name_scope(None), graph.name_scope(scope or None), graph.control_dependencies(None):
        for op in topological_order(ops):
            copies[op] = graph.add_operation(
                op.type,
                [copied(tensor) for tensor in op.inputs],
                {name: value for name, value in op.attrs.items() if name != "_class"},
                op.name.removeprefix(f"{prefix}/") if prefix else op.name,
                control_inputs=[copies.get(each, each) for each in op.control_inputs],
                device=op.device,
            )
    return TransformerInfo(copies, replaced)


# -- parts ---------------------------------------------------------------------------------------------


class SubGraphView:
    """A part of a graph.

    Args:
        inside_ops: The operations in it.

    Attributes:
        ops: Likewise, as a list.
        inputs: The tensors that it takes from outside, each once.
        outputs: The tensors of it that something outside takes, or that nothing takes.
        graph: The graph; None of no operations.
    """

    def __init__(self, inside_ops: Any = ()) -> None:
        self.ops = list(dict.fromkeys(make_list_of_op(inside_ops)))
        inside = frozenset(self.ops)
        self.graph = self.ops[0].graph if self.ops else None
        taken = (tensor for op in self.ops for tensor in op.inputs)
        self.inputs = list(dict.fromkeys(tensor for tensor in taken if tensor.op not in inside))
        made = (tensor for op in self.ops for tensor in op.outputs)
        self.outputs = [each for each in made if not each.consumers() or set(each.consumers()) - inside]

    def op(self, op_id: int) -> Operation:
        """An operation by its place."""
        return self.ops[op_id]

    def is_passthrough(self, t: Tensor) -> bool:
        """Whether a tensor goes through without an operation: none does."""
        return False

    def consumers(self) -> list[Operation]:
        """The operations outside that take its outputs."""
        inside = frozenset(self.ops)
        return [op for op in get_consuming_ops(self.outputs) if op not in inside]

    def __bool__(self) -> bool:
        return self.graph is not None


def make_view(*args: Any, **kwargs: Any) -> SubGraphView:
    """The part of a graph that operations make up.

    Args:
        *args: A view, operations, or tensors, which stand for what makes them; or expressions for their names.
        **kwargs: ``graph``: where to look for names.
    """
    if len(args) == 1 and isinstance(args[0], SubGraphView):
        return args[0]
    return SubGraphView([each.op if isinstance(each, Tensor) else each for each in select_ops_and_ts(*args, **kwargs)])


sgv = make_view


def make_view_from_scope(scope: str, graph: Graph) -> SubGraphView:
    """The part of a graph that is within a name scope."""
    return SubGraphView(get_name_scope_ops(graph, scope))


sgv_scope = make_view_from_scope


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
            found.update(dict.fromkeys(_listed(each)))
            continue
        if graph is None:
            raise ValueError(f"to find {each!r}, select needs a graph")
        expression = each if isinstance(each, str) else each.pattern
        among = get_tensors(graph) if expression.startswith("(?#ts)") else graph.get_operations()
        found.update(dict.fromkeys(one for one in among if re.match(expression, one.name)))
    return [each for each in found if wanted is None or wanted(each)]


# -- other inputs --------------------------------------------------------------------------------------


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
        ValueError: There are not as many of one as of the other, or they are of several graphs.
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
