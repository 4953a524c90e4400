"""``tensorflow.python.grappler.tf_optimizer``: a graph without what does not change when it runs."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from tfray.errors import InvalidArgumentError
from tfray.formats.graph_proto import GraphDef, NodeDef
from tfray.formats.meta_graph_proto import MetaGraphDef
from tfray.formats.tensor_proto import make_tensor_proto
from tfray.framework.graph import Graph, Operation
from tfray.framework.graph_keys import GraphKeys
from tfray.library.inspect.graph_util import extract_sub_graph, with_nodes
from tfray.options import ConfigProto
from tfray.session import Session
from tfray.training.checkpoints.import_meta_graph import import_meta_graph
from tfray.training.checkpoints.meta_graph import export_meta_graph

__all__ = ["OptimizeGraph", "grappler_optimize"]


def OptimizeGraph(
    config_proto: ConfigProto,
    metagraph: MetaGraphDef,
    verbose: bool = True,
    graph_id: Any = None,
    cluster: Any = None,
    *,
    allow: Collection[str] = (),
) -> GraphDef:
    """The part of a graph that its fetches need, with a constant for each operation that always gives the same.

    A session does this, and more, when it compiles a step: only tests and tools need the graph itself.

    Args:
        config_proto: Options; accepted, as are the next three, for TensorFlow 1's sake.
        metagraph: The graph. Its collection ``train_op`` has what is fetched.
        verbose: See `config_proto`.
        graph_id: Likewise.
        cluster: Likewise.
        allow: What operations of the graph may use: see `tf.import_graph_def`.

    Returns:
        The smaller graph.

    Raises:
        TypeError: The first argument is no `tf.ConfigProto`.
        InvalidArgumentError: The graph has no fetches.
        PermissionDeniedError: Its operations use more than `allow` says.
    """
    if not isinstance(config_proto, ConfigProto):
        raise TypeError(f"Expected config_proto to be a ConfigProto, saw type {type(config_proto)}")
    with Graph().as_default() as graph:
        import_meta_graph(metagraph, allow=allow)
        fetches = [fetch if isinstance(fetch, Operation) else fetch.op for fetch in graph.get_collection("train_op")]
        if not fetches:
            raise InvalidArgumentError("the graph has no fetches: add what is fetched to its collection 'train_op'")
        names = [op.name for op in fetches]
        needed = extract_sub_graph(graph.as_graph_def(), names)
        kept = {node.name for node in needed.node}
        fixed: dict[Operation, None] = {}
        for op in graph.get_operations():
            if op.name in kept and _is_fixed(op, fixed):
                fixed[op] = None
        ends = [op for op in fixed if op.inputs and _is_end(op, fixed, fetches)]
        with Session(graph=graph) as session:
            values = dict(zip([op.name for op in ends], session.run([op.outputs[0] for op in ends]), strict=True))
    nodes = [_constant(node.name, values[node.name]) if node.name in values else node for node in needed.node]
    return extract_sub_graph(with_nodes(needed, nodes), names)


def _constant(name: str, value: Any) -> NodeDef:
    tensor = make_tensor_proto(value)
    node = NodeDef(name=name, op="Const")
    node.attr["dtype"].type = tensor.dtype
    node.attr["value"].tensor.CopyFrom(tensor)
    return node


def _is_fixed(op: Operation, fixed: Collection[Operation]) -> bool:
    if op.op_def.stateful or op.control_inputs or len(op.outputs) != 1 or op.type.startswith("Placeholder"):
        return False
    return all(tensor.op in fixed for tensor in op.inputs) and (bool(op.inputs) or op.type == "Const")


def _is_end(op: Operation, fixed: Collection[Operation], fetches: Collection[Operation]) -> bool:
    return op in fetches or any(user not in fixed for user in op.outputs[0].consumers())


def grappler_optimize(graph: Graph, fetches: Any = None, config_proto: ConfigProto | None = None) -> GraphDef:
    """`OptimizeGraph` of a graph itself.

    Args:
        graph: The graph.
        fetches: Tensors that are wanted. They are added to the graph's collection ``train_op``.
        config_proto: As for `OptimizeGraph`.

    Returns:
        The smaller graph.
    """
    for fetch in fetches or ():
        graph.add_to_collection(GraphKeys.TRAIN_OP, fetch)
    return OptimizeGraph(config_proto or ConfigProto(), export_meta_graph(graph=graph))
