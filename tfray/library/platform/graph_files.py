"""Graphs as files."""

from __future__ import annotations

from tfray.formats import files
from tfray.formats.tensorboard_graph import to_graph_proto
from tfray.framework.graph import Graph
from tfray.framework.plain_graph import PlainGraph


def write_graph(graph_or_graph_def: Graph | PlainGraph, logdir: files.PathLike, name: str, as_text: bool = True) -> str:
    """Write a graph to a file.

    Args:
        graph_or_graph_def: The graph.
        logdir: Folder of the file; it is made when it is not there.
        name: Name of the file.
        as_text: Write it as TensorFlow's tools do, as the text of a protocol buffer, for people and for TensorBoard.
            Otherwise `tf.GraphDef` reads it back: ``tf.GraphDef.FromString(contents)``.

    Returns:
        The path of the file.
    """
    definition = graph_or_graph_def.as_graph_def() if isinstance(graph_or_graph_def, Graph) else graph_or_graph_def
    folder = files.given_path(logdir, "logdir")
    files.given_path(name, "name")
    files.make_folders(folder)
    path = f"{folder.rstrip('/') or '/'}/{name}"
    contents = str(to_graph_proto(definition)).encode() if as_text else definition.SerializeToString()
    files.write_bytes(path, contents)
    return path
