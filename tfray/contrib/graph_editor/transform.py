"""Copies of parts of a graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tfray.contrib.graph_editor.select import get_walks_intersection_ops
from tfray.contrib.graph_editor.subgraph import SubGraphView, make_view
from tfray.contrib.graph_editor.util import make_list_of_t, make_placeholder_from_tensor
from tfray.framework import nest
from tfray.framework.graph import Graph, Operation, Tensor, get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.framework.traversal import topological_order

__all__ = ["TransformerInfo", "copy", "copy_with_input_replacements", "graph_replace"]


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

    Attributes:
        kept: Those for which others stand.
    """

    def __init__(self, ops: dict[Operation, Operation], replaced: Mapping[Tensor, Tensor]) -> None:
        self._transformed_ops = ops
        tensors = {
            before: after for op, copy in ops.items() for before, after in zip(op.outputs, copy.outputs, strict=True)
        }
        self._transformed_ts = {**tensors, **replaced}
        self.kept = frozenset(replaced)

    def transformed(self, original: Any, missing: Any = None) -> Any:
        """The copy of an operation or a tensor, or of each of several; `missing` where there is none."""
        found: dict[Any, Any] = {**self._transformed_ops, **self._transformed_ts}
        return nest.map_structure(lambda each: found.get(each, missing), original)

    def original(self, transformed: Any, missing: Any = None) -> Any:
        """What an operation or a tensor is a copy of, likewise."""
        pairs = [*self._transformed_ops.items(), *self._transformed_ts.items()]
        found: dict[Any, Any] = {after: before for before, after in pairs}
        return nest.map_structure(lambda each: found.get(each, missing), transformed)


def copy(
    sgv: Any,
    dst_graph: Graph | None = None,
    dst_scope: str = "",
    src_scope: str = "",
    reuse_dst_scope: bool = False,
) -> tuple[SubGraphView, TransformerInfo]:
    """A copy of a part of a graph, or of a whole graph. What it takes from outside are placeholders.

    Args:
        sgv: As for `copy_with_input_replacements`, as are the others.
        dst_graph: See there.
        dst_scope: See there.
        src_scope: See there.
        reuse_dst_scope: See there.

    Returns:
        As there.
    """
    view = make_view(sgv)
    return _viewed(view, _copy(view.ops, {}, dst_scope, src_scope, reuse_dst_scope, dst_graph, keeps=False))


def copy_with_input_replacements(
    sgv: Any,
    replacement_ts: Mapping[Tensor, Tensor],
    dst_graph: Graph | None = None,
    dst_scope: str = "",
    src_scope: str = "",
    reuse_dst_scope: bool = False,
) -> tuple[SubGraphView, TransformerInfo]:
    """A copy of a part of a graph. What it takes from outside it takes as the original does, or replaced.

    Operations and tensors are in the collections in which the originals are.

    Args:
        sgv: A `SubGraphView`, operations, or a graph.
        replacement_ts: For tensors that it takes others, which take their places.
        dst_graph: The graph of the copy; that of the original when None. In another graph, placeholders stand for what
            it takes from outside.
        dst_scope: See `graph_replace`.
        src_scope: Likewise.
        reuse_dst_scope: Likewise.

    Returns:
        The copy, and which operations are copies of which.
    """
    view = make_view(sgv)
    return _viewed(view, _copy(view.ops, replacement_ts, dst_scope, src_scope, reuse_dst_scope, dst_graph))


def _viewed(view: SubGraphView, made: TransformerInfo) -> tuple[SubGraphView, TransformerInfo]:
    """A view of a copy, with inputs and outputs as the original has them."""
    new = SubGraphView(made.transformed(view.ops))
    new.inputs = [made.transformed(tensor, tensor) for tensor in view.inputs]
    new.outputs = [made.transformed(tensor, tensor) for tensor in view.outputs]
    return new, made


def _copy(
    ops: Iterable[Operation],
    replacements: Mapping[Tensor, Tensor],
    dst_scope: str,
    src_scope: str,
    reuse: bool,
    dst_graph: Graph | None = None,
    keeps: bool = True,
) -> TransformerInfo:
    ops, prefix, replaced = list(ops), src_scope.rstrip("/"), dict(replacements)
    copies: dict[Operation, Operation] = {}
    origin = ops[0].graph if ops else get_default_graph()
    graph = dst_graph or origin

    def copied(tensor: Tensor) -> Tensor:
        if tensor not in replaced and tensor.op in copies:
            return copies[tensor.op].outputs[tensor.value_index]
        if tensor not in replaced and not (keeps and graph is tensor.graph):
            replaced[tensor] = make_placeholder_from_tensor(tensor, scope="")
        return replaced.get(tensor, tensor)

    scope = dst_scope.rstrip("/") + "/" if reuse and dst_scope else dst_scope
    with graph.as_default(), graph.name_scope(None), graph.name_scope(scope or None), graph.control_dependencies(None):
        for op in topological_order(ops):
            controls = [copies.get(each, each) for each in op.control_inputs]
            copies[op] = graph.add_operation(
                op.type,
                [copied(tensor) for tensor in op.inputs],
                {name: value for name, value in op.attrs.items() if name != "_class"},
                op.name.removeprefix(f"{prefix}/") if prefix else op.name,
                control_inputs=[each for each in controls if each.graph is graph],
                device=op.device,
            )
    made = TransformerInfo(copies, replaced)
    _collect(made, origin, graph, f"{dst_scope.rstrip('/')}/" if dst_scope else "")
    return made


def _collect(made: TransformerInfo, origin: Graph, graph: Graph, scope: str) -> None:
    """Put copies into the collections of their originals; those that are not TensorFlow's are named after the scope."""
    known = {value for name, value in vars(GraphKeys).items() if not name.startswith("_")}
    for key in origin.get_all_collection_keys():
        for element in list(origin.get_collection(key)):
            is_copied = isinstance(element, Operation | Tensor) and made.transformed(element) is not None
            if is_copied and element not in made.kept:
                graph.add_to_collection(key if key in known else f"{scope}{key}", made.transformed(element))
