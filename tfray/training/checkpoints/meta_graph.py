"""Graphs with their collections as plain data: `tf.train.export_meta_graph`."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from tfray.errors import DataLossError, InvalidArgumentError
from tfray.formats import files
from tfray.formats.checkpoint_state import SaverDef
from tfray.formats.files import PathLike
from tfray.framework.graph import Graph, Operation, Tensor, get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.framework.plain_graph import PlainGraph, PlainNode, PlainRegion
from tfray.library.variables.variables import Variable
from tfray.training.threads.queue_runner import QueueRunner

FORMAT_VERSION: Final = 1


@dataclass
class MetaGraphDef:
    """A graph and what belongs to it.

    Attributes:
        graph_def: The graph.
        saver_def: The saver's operations in it, or None.
        collection_def: Its collections: of each, those members that are variables, tensors, operations, savers, queue
            runners, numbers or text, in plain form.
    """

    graph_def: PlainGraph
    saver_def: SaverDef | None = None
    collection_def: dict[str, list[Any]] = field(default_factory=dict)

    def to_plain(self) -> dict[str, Any]:
        """Nested dictionaries, lists, numbers and strings, ready for JSON."""
        return {
            "tfray_meta_graph": FORMAT_VERSION,
            "graph": self.graph_def.to_plain(),
            "saver": None if self.saver_def is None else saver_to_plain(self.saver_def),
            "collections": self.collection_def,
        }

    def SerializeToString(self) -> bytes:
        """This as bytes (TensorFlow's spelling; the bytes are JSON)."""
        return json.dumps(self.to_plain(), separators=(",", ":")).encode()

    @classmethod
    def FromString(cls, data: bytes) -> MetaGraphDef:
        """What `SerializeToString` gave. Raises `DataLossError` for anything else."""
        try:
            plain = json.loads(data)
            if plain["tfray_meta_graph"] != FORMAT_VERSION:
                raise ValueError(f"it is of version {plain['tfray_meta_graph']!r}")
            collections = {str(name): list(members) for name, members in plain["collections"].items()}
            saver = None if plain["saver"] is None else saver_from_plain(plain["saver"])
            graph = plain["graph"]
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise DataLossError(f"not a meta graph of tfray: {type(error).__name__}: {error}") from error
        return cls(PlainGraph.from_plain(graph), saver, collections)


def saver_to_plain(definition: SaverDef) -> str:
    """A saver's description as text."""
    return base64.b64encode(definition.SerializeToString()).decode()


def saver_from_plain(plain: str) -> SaverDef:
    """What `saver_to_plain` gave."""
    return SaverDef.FromString(base64.b64decode(plain, validate=True))


# -- exporting -----------------------------------------------------------------------------------------


def meta_graph_bytes(graph: Graph, saver_def: SaverDef | None) -> bytes:
    """The contents of the file ``.meta`` beside a checkpoint."""
    return _meta_graph_of(graph, saver_def, None).SerializeToString()


def export_meta_graph(
    filename: PathLike | None = None,
    meta_info_def: Any = None,
    graph_def: PlainGraph | None = None,
    saver_def: SaverDef | None = None,
    collection_list: Sequence[str] | None = None,
    as_text: bool = False,
    graph: Graph | None = None,
    export_scope: str | None = None,
    clear_devices: bool = False,
    clear_extraneous_savers: bool = False,
    strip_default_attrs: bool = False,
    save_debug_info: bool = False,
) -> MetaGraphDef:
    """A graph with its collections, for `import_meta_graph`.

    Args:
        filename: Also write it to this file.
        meta_info_def: Accepted for TensorFlow 1's sake.
        graph_def: The operations to export; all of `graph` when None.
        saver_def: The saver that the importing program gets.
        collection_list: Names of the collections to export; all when None. Members that are no variables, tensors,
            operations, savers, queue runners, numbers or text are left out.
        as_text: Write the file with line breaks.
        graph: The graph; the default graph when None.
        export_scope: Export only operations under this name scope, without it in their names.
        clear_devices: Leave out devices.
        clear_extraneous_savers: Leave out savers but that of `saver_def`.
        strip_default_attrs: Accepted for TensorFlow 1's sake.
        save_debug_info: Accepted for TensorFlow 1's sake.
    """
    made = _meta_graph_of(graph or get_default_graph(), saver_def, collection_list, export_scope)
    if graph_def is not None:
        made.graph_def = graph_def
    if clear_devices:
        clear_devices_of(made.graph_def.node)
    if clear_extraneous_savers:
        made.collection_def.pop(GraphKeys.SAVERS, None)
    if filename is not None:
        contents = json.dumps(made.to_plain(), indent=1).encode() if as_text else made.SerializeToString()
        files.write_bytes(files.given_path(filename, "filename"), contents)
    return made


def _meta_graph_of(
    graph: Graph, saver_def: SaverDef | None, names: Sequence[str] | None, scope: str | None = None
) -> MetaGraphDef:
    prefix = scope.rstrip("/") + "/" if scope else ""
    graph_def = graph.as_plain()
    if prefix:
        graph_def.node = [_within(node, prefix) for node in graph_def.node if node.name.startswith(prefix)]
    collections = {}
    for name in graph.get_all_collection_keys() if names is None else names:
        members = [_member_to_plain(member, prefix) for member in graph.get_collection(name)]
        kept = [member for member in members if member is not None]
        if kept:
            collections[name] = kept
    return MetaGraphDef(graph_def, saver_def, collections)


def _within(node: PlainNode, prefix: str) -> PlainNode:
    outside = [text for text in node.input if not text.removeprefix("^").startswith(prefix)]
    if any(not text.startswith("^") for text in outside):
        raise InvalidArgumentError(
            f"operation {node.name!r} takes {outside[0]!r}, which is outside of scope {prefix!r}: export a larger scope"
        )
    inputs = [text for text in node.input if text not in outside]
    attrs = dict(node.attr)
    if "_class" in attrs:
        attrs["_class"] = [name.removeprefix(prefix) for name in attrs["_class"] if name.startswith(prefix)]
    renamed = [("^" if text[0] == "^" else "") + text.removeprefix("^").removeprefix(prefix) for text in inputs]
    return PlainNode(node.name.removeprefix(prefix), node.op, renamed, node.device, attrs, node.site, node.shapes)


def clear_devices_of(nodes: Iterable[PlainNode]) -> None:
    """Let operations be placed anywhere."""
    for node in nodes:
        node.device = ""
        for value in node.attr.values():
            if isinstance(value, PlainRegion):
                clear_devices_of(value.node)


def _member_to_plain(member: Any, prefix: str) -> Any | None:
    """A member of a collection in plain form; None for one that has none, or is outside of the scope."""
    if isinstance(member, (Tensor, Operation, Variable)) and not member.name.startswith(prefix):
        return None
    if isinstance(member, Variable):
        info = member._save_slice_info
        part = None if info is None else info._asdict()
        return {"variable": asdict(member.to_proto(prefix)), "part": part}
    if isinstance(member, (Tensor, Operation)):
        return {"element": member.name.removeprefix(prefix)}
    if hasattr(member, "as_saver_def"):
        definition = member.to_proto(prefix)
        return None if definition is None else {"saver": saver_to_plain(definition)}
    if isinstance(member, QueueRunner):
        runner = member.to_proto(prefix)
        return None if runner is None else {"queue_runner": asdict(runner)}
    if isinstance(member, bytes):
        return {"bytes": base64.b64encode(member).decode()}
    return {"value": member} if isinstance(member, (str, int, float, bool)) else None
