"""What stands at a path when it is no checkpoint: a graph, a meta graph or a saved model, in any of their forms."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from tfray.errors import DataLossError
from tfray.formats import files
from tfray.formats.bundles.sorted_table import FOOTER_BYTES, is_table
from tfray.formats.checkpoint import INDEX_SUFFIX
from tfray.formats.files import PathLike
from tfray.formats.graph_proto import GraphDef
from tfray.formats.large_contents import FileOctets, octets_of
from tfray.formats.message import is_text_of, message_of_file
from tfray.formats.meta_graph_proto import MetaGraphDef, SavedModel
from tfray.formats.safetensors import SUFFIX as SAFETENSORS_SUFFIX
from tfray.formats.stand_in import with_marks
from tfray.training.checkpoints.saved_model_files import (
    FILE_NAMES,
    JSON_FILE_NAME,
    TEXT_FILE_NAME,
    maybe_saved_model_directory,
    read_saved_model,
)

BINARY: Final = "binary"
TEXT: Final = "text"
JSON: Final = "tfray's JSON"
"""The form that tfray wrote before."""

_OP_TYPE: Final = re.compile(r"[A-Za-z_][\w>./-]*")


@dataclass(frozen=True)
class ModelFile:
    """A file, or the folder of a saved model.

    Attributes:
        path: Where it is.
        form: `BINARY`, `TEXT` or `JSON`.
        message: A `GraphDef`, a `MetaGraphDef` or a `SavedModel`.
    """

    path: str
    form: str
    message: Any


def open_model(path: PathLike) -> ModelFile | None:
    """What a path holds, without the values of variables; None for what can only be a checkpoint.

    Args:
        path: A file, or the folder of a saved model, or the file of the graphs in it.

    Raises:
        DataLossError: It is damaged, or something else.
    """
    text = files.as_path(path)
    folder, name = os.path.split(text)
    if name in FILE_NAMES:
        text = folder or "."
    if maybe_saved_model_directory(text):
        return ModelFile(text, _form_of_folder(text), read_saved_model(text))
    if not files.exists(text) or files.is_folder(text) or _is_checkpoint(text):
        return None
    with octets_of(text) as contents:
        for kind in (GraphDef, MetaGraphDef):
            message = _read_as(kind, contents, text)
            if message is not None:
                form = JSON if contents[:1] == b"{" else TEXT if is_text_of(kind, contents) else BINARY
                return ModelFile(text, form, message)
    raise DataLossError(f"{text} is damaged, or no checkpoint, graph, meta graph or saved model")


def _form_of_folder(folder: str) -> str:
    forms = {TEXT_FILE_NAME: TEXT, JSON_FILE_NAME: JSON}
    found = next(name for name in FILE_NAMES if files.exists(f"{folder.rstrip('/')}/{name}"))
    return forms.get(found, BINARY)


def _is_checkpoint(path: str) -> bool:
    if path.endswith((INDEX_SUFFIX, SAFETENSORS_SUFFIX)) or files.exists(path + INDEX_SUFFIX):
        return True
    with files.open_file(path) as file:
        file.seek(max(file.seek(0, os.SEEK_END) - FOOTER_BYTES, 0))
        return is_table(file.read())


def _read_as(kind: Any, contents: bytes | FileOctets, path: str) -> Any:
    """The message of a kind in the contents of a file, or None. All bytes are a message of some kind."""
    try:
        message = message_of_file(kind, contents)
    except DataLossError as error:
        if is_text_of(kind, contents):
            raise DataLossError(f"{path}: {error.message}") from error
        return None
    nodes = [node for graph in graphs_of(with_marks(message)) for node in graph.node]
    return message if nodes and all(node.name and _OP_TYPE.fullmatch(node.op) for node in nodes) else None


def graphs_of(message: Any) -> Iterator[Any]:
    """The graphs in a graph, a meta graph or a saved model."""
    if isinstance(message, SavedModel):
        for each in message.meta_graphs:
            yield each.graph_def
    else:
        yield message.graph_def if isinstance(message, MetaGraphDef) else message
