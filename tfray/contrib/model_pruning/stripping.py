"""Graphs for deployment, in which masked weights are constants."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tfray.exchange.graph_import import import_graph_def
from tfray.formats.files import PathLike
from tfray.formats.graph_proto import GraphDef, NodeDef
from tfray.formats.stand_in import with_marks
from tfray.formats.tensor_proto import make_tensor_proto
from tfray.framework.graph import Graph
from tfray.library.inspect.graph_util import convert_variables_to_constants, extract_sub_graph, with_nodes
from tfray.session import Session
from tfray.training.checkpoints.checkpoint_management import latest_checkpoint
from tfray.training.checkpoints.import_meta_graph import import_meta_graph


def strip_pruning_vars_fn(
    input_graph_def: GraphDef, output_node_names: Sequence[str], *, allow: Collection[str] = ()
) -> GraphDef:
    """A graph with the products of weights and masks as constants, and without the weights and masks.

    Args:
        input_graph_def: A graph whose variables are constants, such as `graph_def_from_checkpoint` returns.
        output_node_names: Names of the operations to keep, with what they need.
        allow: What operations of a graph from a file may use: see `tf.import_graph_def`.

    Raises:
        PermissionDeniedError: They use more than `allow` says.
        InvalidArgumentError: One of them is not there.
    """
    graph, nodes = Graph(), with_marks(input_graph_def).node
    with graph.as_default():
        import_graph_def(input_graph_def, name="", allow=allow)
    names = [node.name for node in nodes if "masked_weight" in node.name]
    with Session(graph=graph) as session:
        values = session.run({name: f"{name}:0" for name in names})
    kept = []
    for node in nodes:
        if node.name in values:
            made = NodeDef(name=node.name, op="Const")
            made.attr["dtype"].CopyFrom(node.attr["T"])
            made.attr["value"].tensor.CopyFrom(make_tensor_proto(values[node.name]))
            node = made
        kept.append(node)
    return extract_sub_graph(with_nodes(input_graph_def, kept), output_node_names)


def graph_def_from_checkpoint(
    checkpoint_dir: PathLike, output_node_names: Sequence[str], *, allow: Collection[str] = ()
) -> GraphDef:
    """The graph of the latest checkpoint in a folder, with its variables as constants.

    Args:
        checkpoint_dir: The folder.
        output_node_names: Names of the operations to keep, with what they need.
        allow: What operations of the checkpoint's graph may use: see `tf.import_graph_def`.

    Raises:
        PermissionDeniedError: They use more than `allow` says.
        ValueError: There is no checkpoint.
        InvalidArgumentError: An operation is not there.
    """
    path = latest_checkpoint(checkpoint_dir)
    if path is None:
        raise ValueError(f"Could not find a checkpoint at: {checkpoint_dir!r}")
    with Graph().as_default() as graph, Session() as session:
        saver = import_meta_graph(f"{path}.meta", clear_devices=True, allow=allow)
        if saver is not None:
            saver.restore(session, path)
        return convert_variables_to_constants(session, graph.as_graph_def(), output_node_names)
