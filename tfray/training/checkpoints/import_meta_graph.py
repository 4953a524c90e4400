"""Graphs with their collections, taken in again: `tf.train.import_meta_graph`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from tfray.errors import DataLossError, InvalidArgumentError, NoFileError, NotFoundError, UnreadableError
from tfray.formats import files
from tfray.formats.checkpoint_state import SaverDef
from tfray.formats.files import PathLike
from tfray.formats.large_contents import octets_of
from tfray.formats.message import message_of_file
from tfray.formats.meta_graph_proto import CollectionDef, MetaGraphDef, QueueRunnerDef, VariableDef
from tfray.formats.stand_in import with_marks
from tfray.framework.call_errors import damage_reported
from tfray.framework.graph import Graph, Tensor, get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.framework.importer import as_text, given_tensors, import_graph_def, tensor_name
from tfray.framework.plain_graph import PlainGraph, messages
from tfray.library.platform import logging
from tfray.library.variables.variables import SaveSliceInfo, Variable
from tfray.training.checkpoints.meta_graph import UNBOUND, VARIABLES, clear_devices_of, registered_member
from tfray.training.checkpoints.saver import Saver
from tfray.training.threads.queue_runner import QueueRunner

_CONTEXTS: Final = ("cond_context", "while_context")
"""Collections that describe TensorFlow 1's control flow, which is imported as branches and loops."""


def import_meta_graph(
    meta_graph_or_file: MetaGraphDef | PathLike,
    clear_devices: bool = False,
    import_scope: str | None = None,
    input_map: Mapping[str, Any] | None = None,
    *,
    allow: Collection[str] = (),
    **unused: Any,
) -> Saver | None:
    """Add an exported graph to the current one, collections included: one of tfray's, or of TensorFlow's.

    Args:
        meta_graph_or_file: What `export_meta_graph` returned, or a file of it in any form: one ending in ``.meta``
            stands beside every checkpoint.
        clear_devices: Leave out devices.
        import_scope: Name scope for the operations, below the current one.
        input_map: As for `tf.import_graph_def`.
        allow: What a graph from a file may use; see `tf.import_graph_def`.
        **unused: Accepted for TensorFlow 1's sake.

    Returns:
        The graph's saver; one of all variables if it has none, and None if it has no variables either.

    Raises:
        NoFileError: There is no such file.
        PermissionDeniedError: Operations use what is not in `allow`.
        UnimplementedError: Operation types have no equivalent; the error names each.
        UnreadableError: The file is damaged, or holds no meta graph.
        DataLossError: The message is damaged.
        ValueError: `input_map` lacks what the graph takes from outside of the scope that was exported.
    """
    message: Any = meta_graph_or_file
    if not isinstance(message, MetaGraphDef):
        message = read_meta_graph(meta_graph_or_file)
    definition = with_marks(message)
    names = {node.name for node in definition.graph_def.node}
    listed = (text for each in definition.collection_def.values() for text in each.node_list.value)
    kept = [text for text in listed if text.partition(":")[0] in names]
    unbound = definition.collection_def[UNBOUND].bytes_list.value if UNBOUND in definition.collection_def else ()
    there = {tensor_name(as_text(key)) for key in input_map or ()}
    if missing := [name for text in unbound if tensor_name(name := text.decode()) not in there]:
        raise InvalidArgumentError(
            f"Graph contains unbound inputs: {', '.join(missing)}. Must provide these inputs through input_map."
        )
    scope = new_scope(import_scope)
    given = given_tensors(input_map, scope)
    plain = messages().plain_graph(definition.graph_def, kept, given)
    if clear_devices:
        clear_devices_of(plain.node)
    return add_meta_graph(definition, plain, scope, given, allow)


def new_scope(name: str | None) -> str:
    """A new name scope below the current one, with its slash; the current one itself where there is no name."""
    graph = get_default_graph()
    if not name:
        return f"{graph.get_name_scope()}/".lstrip("/")
    return f"{graph.unique_name(name.rstrip('/'))}/"


def add_meta_graph(
    definition: MetaGraphDef,
    plain: PlainGraph,
    scope: str,
    input_map: Mapping[str, Tensor] | None = None,
    allow: Collection[str] = (),
    made: dict[str, Any] | None = None,
) -> Saver | None:
    """Add the graph `plain` with the collections of a meta graph in a `new_scope`; see `import_meta_graph`.

    `made` has names of operations and tensors of the graph as keys; its values become what these are here, whatever
    names the current graph has left for them.
    """
    graph = get_default_graph()
    elements = import_graph_def(plain, input_map, list(made or ()), name=scope, allow=allow)
    if made is not None:
        made.update(zip(list(made), elements or (), strict=True))
    with damage_reported("the meta graph"):
        return _add_collections(definition, graph, scope)


def _add_collections(definition: MetaGraphDef, graph: Graph, scope: str) -> Saver | None:
    members = _Members(graph, scope)
    for name, collection in sorted(definition.collection_def.items(), key=lambda item: item[0] not in VARIABLES):
        if name not in _CONTEXTS:
            for member in members.of(name, collection):
                graph.add_to_collection(name, member)
    if definition.HasField("saver_def"):
        return Saver.from_proto(definition.saver_def, scope)
    return Saver() if graph.get_collection(GraphKeys.GLOBAL_VARIABLES) else None


def read_meta_graph(path: PathLike) -> MetaGraphDef:
    """The meta graph in a file, also as text. Raises `NoFileError` or `UnreadableError`."""
    name = files.as_path(path)
    try:
        with octets_of(path) as contents:
            message: MetaGraphDef = message_of_file(MetaGraphDef, contents)
            size = len(contents)
    except NotFoundError as error:
        raise NoFileError(f"File {name} does not exist: {error.message}") from error
    except DataLossError as error:
        raise UnreadableError(f"Cannot parse file {name}: {error.message}") from error
    if not with_marks(message).HasField("graph_def"):
        raise UnreadableError(f"Cannot parse file {name}: its {size} bytes are no meta graph")
    return message


class _Members:
    """Members of collections by their forms in a meta graph.

    Args:
        graph: The graph that holds what they name.
        prefix: Before the names.
    """

    def __init__(self, graph: Graph, prefix: str) -> None:
        self._graph = graph
        self._prefix = prefix
        self._variables: dict[str, Variable] = {}

    def of(self, name: str, collection: CollectionDef) -> list[Any]:
        """The members of a collection."""
        try:
            if collection.WhichOneof("kind") != "node_list":
                read = _READERS.get(name, _raw)
                kind = collection.WhichOneof("kind")
                values = getattr(collection, kind).value if kind else []
                made = [registered_member(name, value, self._prefix) for value in collection.bytes_list.value]
                if any(member is not None for member in made):
                    return made
                return [read(self, value) if isinstance(value, bytes) else value for value in values]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataLossError(f"collection {name!r} of the meta graph cannot be read: {error}") from error
        found, unknown = [], []
        for text in collection.node_list.value:
            try:
                known = self._variables.get(text.partition(":")[0])
                found.append(self._graph.as_graph_element(self._prefix + text) if known is None else known)
            except (KeyError, ValueError) as error:  # what stands within a branch or a loop has no name outside
                unknown.append(error)
        if unknown:
            logging.warning("collection %r lacks %d members; the first: %s", name, len(unknown), unknown[0])
        return found

    def _variable(self, data: bytes) -> Variable:
        definition = VariableDef.FromString(data)
        name = definition.variable_name.partition(":")[0]
        if name not in self._variables:
            variable = self._variables[name] = Variable.from_proto(definition, self._prefix)
            info = definition.save_slice_info_def
            if info.full_name:
                parts = info.full_shape, info.var_offset, info.var_shape
                variable._save_slice_info = SaveSliceInfo(info.full_name, *map(list, parts))
        return self._variables[name]

    def _saver(self, data: bytes) -> Saver:
        return Saver.from_proto(SaverDef.FromString(data), self._prefix)

    def _queue_runner(self, data: bytes) -> QueueRunner:
        return QueueRunner.from_proto(QueueRunnerDef.FromString(data), self._prefix)


def _raw(members: _Members, data: bytes) -> bytes:
    return data


_READERS: Final[Mapping[str, Callable[[_Members, bytes], Any]]] = {
    **dict.fromkeys(VARIABLES, _Members._variable),
    GraphKeys.SAVERS: _Members._saver,
    GraphKeys.QUEUE_RUNNERS: _Members._queue_runner,
}
