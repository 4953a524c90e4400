"""Graphs as files."""

from __future__ import annotations

from tfray.formats import files
from tfray.formats.graph_proto import GraphDef
from tfray.formats.stand_in import pieces_of
from tfray.framework.graph import Graph


def write_graph(graph_or_graph_def: Graph | GraphDef, logdir: files.PathLike, name: str, as_text: bool = True) -> str:
    """Write a graph to a file.

    Args:
        graph_or_graph_def: The graph.
        logdir: Folder of the file; it is made when it is not there.
        name: Name of the file.
        as_text: Write it as text: ``text_format.Parse`` of protobuf reads it back. Otherwise
            ``tf.GraphDef.FromString`` does.

    Returns:
        The path of the file.
    """
    definition = graph_or_graph_def.as_graph_def() if isinstance(graph_or_graph_def, Graph) else graph_or_graph_def
    folder = files.given_path(logdir, "logdir")
    files.given_path(name, "name")
    files.make_folders(folder)
    path = f"{folder.rstrip('/') or '/'}/{name}"
    files.write_bytes(path, *([str(definition).encode()] if as_text else pieces_of(definition)))
    return path
