"""Copies of parts of a graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from tfray.contrib.graph_editor.select import get_walks_intersection_ops
from tfray.contrib.graph_editor.subgraph import SubGraphView, make_view
from tfray.contrib.graph_editor.util import make_list_of_t, make_placeholder_from_tensor
from tfray.framework import nest
from tfray.framework.graph import Graph, Operation, Tensor
from tfray.framework.graph_keys import GraphKeys
from tfray.framework.traversal import topological_order

__all__ = [
    "Transformer", "TransformerInfo", "assign_renamed_collections_handler", "copy", "copy_op_handler",
    "copy_with_input_replacements", "graph_replace", "keep_t_if_possible_handler",
    "replace_t_with_placeholder_handler", "transform_op_if_inside_handler",
]  # fmt: skip


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
    _, made = copy_with_input_replacements(between, replacement_ts, None, dst_scope, src_scope, reuse_dst_scope)
    return nest.pack_sequence_as(
        target_ts, [replacement_ts.get(each, made.transformed(each, each)) for each in targets]
    )


class Transformation:
    """What is known while a part of a graph is copied: a `Transformer` gives it to its handlers.

    Args:
        sgv: The part.
        dst_graph: The graph of the copy.
        dst_scope: Name scope of the copies, with a slash at the end, or nothing.
        src_scope: Name scope of the originals, likewise.

    Attributes:
        graph: The graph of the part.
        graph_: That of the copy.
        transformed_ops: The copies of operations.
        transformed_ts: Those of tensors.
        external_ts: What stands for tensors from outside.
        collections: The names of the collections in which operations and tensors are.
    """

    def __init__(self, sgv: SubGraphView, dst_graph: Graph, dst_scope: str, src_scope: str) -> None:
        self.sgv = sgv
        self.ops = frozenset(sgv.ops)
        self.graph: Graph = sgv.graph or dst_graph
        self.graph_ = dst_graph
        self.scope = src_scope
        self.scope_ = dst_scope
        self.transformed_ops: dict[Operation, Operation] = {}
        self.transformed_ts: dict[Tensor, Tensor] = {}
        self.external_ts: dict[Tensor, Tensor] = {}
        self.collections: dict[Operation | Tensor, list[str]] = {}
        for name in self.graph.get_all_collection_keys():
            for element in self.graph.get_collection(name):
                if isinstance(element, (Operation, Tensor)) and name not in self.collections.get(element, ()):
                    self.collections.setdefault(element, []).append(name)

    def new_name(self, name: str) -> str:
        """The name of a copy."""
        return f"{self.scope_}{name.removeprefix(self.scope)}"


def replace_t_with_placeholder_handler(info: Transformation, t: Tensor) -> Tensor:
    """A placeholder in the place of a tensor."""
    with info.graph_.as_default():
        return make_placeholder_from_tensor(t, scope=info.scope_)


def keep_t_if_possible_handler(info: Transformation, t: Tensor) -> Tensor:
    """The tensor itself if the copy is in its graph; a placeholder otherwise."""
    return t if info.graph_ is t.graph else replace_t_with_placeholder_handler(info, t)


def transform_op_if_inside_handler(
    info: Transformation, op: Operation, keep_if_possible: bool = True
) -> Operation | None:
    """The copy of an operation.

    Args:
        info: What is known.
        op: The operation.
        keep_if_possible: It is itself where it has no copy, if the copy is in its graph.
    """
    return info.transformed_ops.get(op, op if keep_if_possible and info.graph_ is op.graph else None)


_KNOWN_COLLECTIONS: Final = {value for name, value in vars(GraphKeys).items() if not name.startswith("_")}


def assign_renamed_collections_handler(
    info: Transformation, elem: Operation | Tensor, elem_: Operation | Tensor
) -> None:
    """Put a copy into the collections of its original; those that are not TensorFlow's are named after the scope."""
    for name in info.collections.get(elem, ()):
        info.graph_.add_to_collection(name if name in _KNOWN_COLLECTIONS else info.new_name(name), elem_)


def copy_op_handler(
    info: Transformation,
    op: Operation,
    new_inputs: Sequence[Tensor],
    copy_shape: bool = False,
    nodedef_fn: Callable[[Any], Any] | None = None,
) -> tuple[Operation, Sequence[Tensor]]:
    """A copy of an operation that has other inputs.

    Args:
        info: What is known.
        op: The operation.
        new_inputs: The inputs.
        copy_shape: Give the outputs the shapes of the original's too.
        nodedef_fn: Adds or changes attributes in the `tf.NodeDef` of the operation, and returns it.

    Returns:
        The copy, and its outputs.

    Raises:
        TypeError: `new_inputs` is a bool.
    """
    if isinstance(new_inputs, bool):
        raise TypeError("new_inputs is a bool, expected the inputs of the copy")
    attrs = {name: value for name, value in op.attrs.items() if name != "_class"}
    changed: dict[str, Any] = {}
    if nodedef_fn is not None:
        before, after = op.node_def.attr, nodedef_fn(op.node_def).attr
        changed = {name: value for name, value in after.items() if name not in before or before[name] != value}
    with info.graph_.as_default(), info.graph_.name_scope(None), info.graph_.control_dependencies(None):
        made = info.graph_.add_operation(op.type, list(new_inputs), attrs, info.new_name(op.name), device=op.device)
    for name, value in changed.items():
        made._set_attr(name, value)
    if copy_shape:
        for tensor, copied in zip(op.outputs, made.outputs, strict=True):
            copied.set_shape(tensor.shape)
    return made, made.outputs


class Transformer:
    """Copies parts of graphs, in a way that functions say.

    Attributes:
        transform_op_handler: Makes the copy of an operation: `copy_op_handler`.
        transform_external_input_handler: What stands for an input of the part: `replace_t_with_placeholder_handler`.
        transform_external_hidden_input_handler: What stands for a tensor from outside that is no input of the view:
            `keep_t_if_possible_handler`.
        transform_control_input_handler: After which operation a copy runs: `transform_op_if_inside_handler`.
        assign_collections_handler: Puts copies into collections: `assign_renamed_collections_handler`.
    """

    def __init__(self) -> None:
        self.transform_op_handler: Callable[..., Any] = copy_op_handler
        self.transform_control_input_handler: Callable[..., Any] = transform_op_if_inside_handler
        self.assign_collections_handler: Callable[..., Any] = assign_renamed_collections_handler
        self.transform_external_input_handler: Callable[..., Any] = replace_t_with_placeholder_handler
        self.transform_external_hidden_input_handler: Callable[..., Any] = keep_t_if_possible_handler

    def __call__(
        self, sgv: Any, dst_graph: Graph, dst_scope: str, src_scope: str = "", reuse_dst_scope: bool = False
    ) -> tuple[SubGraphView, TransformerInfo]:
        """Copy a part of a graph.

        Args:
            sgv: A `SubGraphView`, operations, or a graph.
            dst_graph: The graph of the copy.
            dst_scope: See `graph_replace`.
            src_scope: Likewise.
            reuse_dst_scope: Likewise.

        Returns:
            A view of the copy, with inputs and outputs as `sgv` has them, and which operations are copies of which.

        Raises:
            TypeError: `dst_graph` is no graph.
            ValueError: A handler gives an operation as a copy of itself.
        """
        if not isinstance(dst_graph, Graph):
            raise TypeError(f"Expected a tf.Graph, got: {type(dst_graph)}")
        view, scope = make_view(sgv), dst_scope.rstrip("/")
        if scope:
            scope = f"{scope if reuse_dst_scope else dst_graph.unique_name(scope)}/"
        info = Transformation(view, dst_graph, scope, f"{src_scope.rstrip('/')}/" if src_scope else "")
        with dst_graph.as_default(), dst_graph.name_scope(None), dst_graph.control_dependencies(None):
            for op in topological_order(view.ops):
                self._copy(info, op)
        made = TransformerInfo(info)
        new = SubGraphView(made.transformed(view.ops))
        known = {**info.external_ts, **info.transformed_ts}
        new.inputs, new.outputs = ([known.get(each, each) for each in ts] for ts in (view.inputs, view.outputs))
        return new, made

    def _copy(self, info: Transformation, op: Operation) -> None:
        made, outputs = self.transform_op_handler(info, op, [self._transformed(info, each) for each in op.inputs])
        if made is op:
            raise ValueError("In-place transformation not allowed.")
        after = [self.transform_control_input_handler(info, each) for each in op.control_inputs]
        made.add_control_inputs([each for each in after if each is not None and each not in made.control_inputs])
        info.transformed_ops[op] = made
        self.assign_collections_handler(info, op, made)
        for tensor, copied in zip(op.outputs, outputs, strict=False):
            info.transformed_ts[tensor] = copied
            self.assign_collections_handler(info, tensor, copied)

    def _transformed(self, info: Transformation, tensor: Tensor) -> Tensor:
        if tensor in info.transformed_ts:
            return info.transformed_ts[tensor]
        if tensor not in info.external_ts:
            is_input, hidden = tensor in info.sgv.inputs, self.transform_external_hidden_input_handler
            handler = self.transform_external_input_handler if is_input else hidden
            info.external_ts[tensor] = handler(info, tensor)
        return info.external_ts[tensor]


class TransformerInfo:
    """Which operations and tensors are copies of which.

    Args:
        info: What is known at the end of a transformation.
    """

    def __init__(self, info: Transformation) -> None:
        self._transformed_ops = info.transformed_ops
        self._transformed_ts = info.transformed_ts

    def transformed(self, original: Any, missing_fn: Any = None) -> Any:
        """The copy of an operation or a tensor, or of each of several.

        Args:
            original: The original, or several in any structure.
            missing_fn: What stands where there is none, or a function that gives it.
        """
        known: dict[Any, Any] = {**self._transformed_ops, **self._transformed_ts}
        return nest.map_structure(lambda each: _found(known, each, missing_fn), original)

    def original(self, transformed: Any, missing_fn: Any = None) -> Any:
        """What an operation or a tensor is a copy of, likewise."""
        pairs: list[tuple[Any, Any]] = [*self._transformed_ops.items(), *self._transformed_ts.items()]
        known = {after: before for before, after in pairs}
        return nest.map_structure(lambda each: _found(known, each, missing_fn), transformed)


def _found(known: Mapping[Any, Any], each: Any, missing_fn: Any) -> Any:
    if each in known:
        return known[each]
    return missing_fn(each) if callable(missing_fn) else missing_fn


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
    return Transformer()(view, dst_graph or view.graph, dst_scope, src_scope, reuse_dst_scope)


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
    transformer = Transformer()
    transformer.transform_external_input_handler = lambda info, tensor: (
        replacement_ts[tensor] if tensor in replacement_ts else keep_t_if_possible_handler(info, tensor)
    )
    return transformer(view, dst_graph or view.graph, dst_scope, src_scope, reuse_dst_scope)
