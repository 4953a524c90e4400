"""Graphs with their collections as messages: `tf.train.export_meta_graph`."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from tfray import errors
from tfray.errors import DataLossError
from tfray.exchange.attributes import leave_out_defaults
from tfray.formats import files
from tfray.formats.checkpoint_state import SaverDef
from tfray.formats.files import PathLike
from tfray.formats.graph_proto import GraphDef
from tfray.formats.meta_graph_proto import MetaGraphDef, PackedMessage, QueueRunnerDef, SaveSliceInfoDef, VariableDef
from tfray.formats.stand_in import with_marks
from tfray.framework.arguments import abbreviated
from tfray.framework.call_errors import DAMAGE, fields_of, reason_of
from tfray.framework.graph import Graph, Operation, Tensor, get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.framework.plain_graph import PlainGraph, PlainNode, PlainRegion, messages
from tfray.library.platform.version import GIT_VERSION, VERSION
from tfray.library.variables.variables import Variable
from tfray.training.checkpoints.op_list import op_list
from tfray.training.threads.queue_runner import QueueRunner

JSON_VERSION: Final = 1
"""Version of the form in which tfray once wrote meta graphs."""


UNBOUND: Final = "unbound_inputs"
"""The collection of the inputs that a meta graph lacks."""

UNBOUND_PREFIX: Final = "$unbound_inputs_"

ANY: Final = "google.protobuf.Any"
"""The name of the messages that hold others."""

VARIABLES: Final = (
    GraphKeys.GLOBAL_VARIABLES,
    GraphKeys.TRAINABLE_VARIABLES,
    GraphKeys.LOCAL_VARIABLES,
    GraphKeys.MODEL_VARIABLES,
    GraphKeys.MOVING_AVERAGE_VARIABLES,
    GraphKeys.METRIC_VARIABLES,
    GraphKeys.GLOBAL_STEP,
)
"""Collections of variables. In those of a program's own, variables stand by their names alone."""


def meta_graph_bytes(graph: Graph, saver_def: SaverDef | None, strip_default_attrs: bool = False) -> bytes:
    """The contents of the file ``.meta`` beside a checkpoint."""
    return export_meta_graph(
        graph=graph, saver_def=saver_def, strip_default_attrs=strip_default_attrs
    ).SerializeToString()


def export_meta_graph(
    filename: PathLike | None = None,
    meta_info_def: Any = None,
    graph_def: GraphDef | None = None,
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
    """A graph with its collections, for `import_meta_graph` here and in TensorFlow.

    Args:
        filename: Also write it to this file.
        meta_info_def: Versions and tags to go with it.
        graph_def: The operations to export; all of `graph` when None.
        saver_def: The saver that the importing program gets.
        collection_list: Names of the collections to export; all when None. A collection holds members of one kind, that
            of its first: variables, tensors and operations, savers, queue runners, numbers, or text. Others are left
            out.
        as_text: Write the file as the text of a message.
        graph: The graph; the default graph when None.
        export_scope: Export only operations under this name scope, without it in their names. Tensors of others that
            they take become inputs that the importing program has to give: ``$unbound_inputs_`` and their names, listed
            in the collection ``unbound_inputs``.
        clear_devices: Leave out devices.
        clear_extraneous_savers: Leave out savers but that of `saver_def`.
        strip_default_attrs: Leave out attributes that have their defaults.
        save_debug_info: Accepted for TensorFlow 1's sake.
    """
    graph = graph or get_default_graph()
    prefix = export_scope.rstrip("/") + "/" if export_scope else ""
    made = MetaGraphDef(meta_info_def=meta_info_def, saver_def=saver_def)
    describe(made, strip_default_attrs)
    if graph_def is not None:
        made.graph_def.CopyFrom(graph_def)
        marked = with_marks(made.graph_def)
        for node in marked.node if clear_devices else ():
            node.device = ""
        if strip_default_attrs:
            leave_out_defaults(marked)
    else:
        plain = graph.as_plain()
        outside = _Outside(graph, prefix)
        if prefix:
            nodes = [outside.without(node) for node in plain.node if node.name.startswith(prefix)]
            plain.node = [*outside.placeholders(), *nodes]
        if clear_devices:
            clear_devices_of(plain.node)
        message = messages().graph_message(plain, add_shapes=True, strip_default_attrs=strip_default_attrs)
        outside.name_in(with_marks(message), made)
        made.graph_def.CopyFrom(message)
    if not made.meta_info_def.HasField("stripped_op_list"):
        made.meta_info_def.stripped_op_list.CopyFrom(op_list(made.graph_def))
    for name in graph.get_all_collection_keys() if collection_list is None else collection_list:
        if not (clear_extraneous_savers and name == GraphKeys.SAVERS):
            add_collection(made, name, graph.get_collection(name), prefix)
    if filename is not None:
        contents = str(made).encode() if as_text else made.SerializeToString()
        path = files.given_path(filename, "filename")
        if folder := os.path.dirname(path):
            files.make_folders(folder)
        files.write_bytes(path, contents)
    return made


def describe(made: MetaGraphDef, strip_default_attrs: bool) -> None:
    """Say in a meta graph what has made it, unless it says so already."""
    info = made.meta_info_def
    info.tensorflow_version = info.tensorflow_version or VERSION
    info.tensorflow_git_version = info.tensorflow_git_version or GIT_VERSION
    info.stripped_default_attrs = info.stripped_default_attrs or strip_default_attrs


class _Outside:
    """The tensors that operations of a scope take from outside of it. Until the message is made, placeholders stand for
    them.

    Args:
        graph: The graph.
        prefix: The scope, with its slash.
    """

    def __init__(self, graph: Graph, prefix: str) -> None:
        self._graph = graph
        self._prefix = prefix
        self._names: dict[str, str] = {}

    def without(self, node: PlainNode) -> PlainNode:
        """An operation without the scope in its names. It does not wait for those outside."""
        inputs = [new for text in node.input if (new := self._renamed(text)) is not None]
        attrs = dict(node.attr)
        if "_class" in attrs:
            attrs["_class"] = [
                name.removeprefix(self._prefix) for name in attrs["_class"] if name.startswith(self._prefix)
            ]
        name = node.name.removeprefix(self._prefix)
        return PlainNode(name, node.op, inputs, node.device, attrs, node.site, node.shapes)

    def _renamed(self, text: str) -> str | None:
        name = text.removeprefix("^")
        if name.startswith(self._prefix):
            return text[: len(text) - len(name)] + name.removeprefix(self._prefix)
        if name != text:
            return None
        if name not in self._names:
            free = f"unbound_input_{len(self._names)}"
            while self._prefix + free in self._graph:
                free += "_"
            self._names[name] = free
        return f"{self._names[name]}:0"

    def placeholders(self) -> Iterator[PlainNode]:
        """What stands for the tensors."""
        for text, name in self._names.items():
            tensor = self._graph.tensor_named(text)
            yield PlainNode(name, "Placeholder", attr={"dtype": tensor.dtype, "shape": tensor.shape})

    def name_in(self, message: GraphDef, made: MetaGraphDef) -> None:
        """Take the placeholders out of a message, and list in the meta graph what its operations take instead."""
        unbound = {name: f"{UNBOUND_PREFIX}{text.removesuffix(':0')}" for text, name in self._names.items()}
        for index in reversed(range(len(message.node))):
            if message.node[index].name in unbound:
                del message.node[index]
        for node in message.node:
            node.input[:] = [unbound.get(text, text) for text in node.input]
        if unbound:
            made.collection_def[UNBOUND].bytes_list.value[:] = [name.encode() for name in unbound.values()]


def clear_devices_of(nodes: Iterable[PlainNode]) -> None:
    """Let operations be placed anywhere."""
    for node in nodes:
        node.device = ""
        for value in node.attr.values():
            if isinstance(value, PlainRegion):
                clear_devices_of(value.node)


# -- collections ---------------------------------------------------------------------------------------


_FORMS: Final[dict[str, tuple[Any, Callable[..., Any] | None, Callable[..., Any] | None]]] = {}
"""By collection: the type of its members' messages, and the functions that `register_proto_function` was given."""


def register_proto_function(
    collection_name: str,
    proto_type: Any = None,
    to_proto: Callable[..., Any] | None = None,
    from_proto: Callable[..., Any] | None = None,
) -> None:
    """Say how members of a collection are written into meta graphs and read from them.

    Args:
        collection_name: Name of the collection.
        proto_type: The class of their messages.
        to_proto: Function from a member, and ``export_scope``, to its message, or None to leave it out.
        from_proto: Function from a message, and ``import_scope``, to the member.

    Raises:
        TypeError: A function cannot be called.
    """
    for name, function in (("to_proto", to_proto), ("from_proto", from_proto)):
        if function is not None and not callable(function):
            raise TypeError(f"{name} must be callable.")
    _FORMS[collection_name] = (proto_type, to_proto, from_proto)


def registered_member(collection: str, data: bytes, scope: str) -> Any:
    """The member of a collection with registered functions that a message stands for; None if there is none."""
    kind, _, from_proto = _FORMS.get(collection, (None, None, None))
    return None if from_proto is None else from_proto(kind.FromString(data), import_scope=scope.rstrip("/"))


def add_collection(message: MetaGraphDef, name: str, members: Iterable[Any], prefix: str = "") -> None:
    """Add a collection to a meta graph: those members that are of the kind of the first, and within a scope."""
    found = [each for member in members if (each := _message_of(member, prefix, name)) is not None]
    for kind, value in found:
        if kind == found[0][0]:
            getattr(message.collection_def[name], kind).value.append(value)


def _message_of(member: Any, prefix: str, collection: str) -> tuple[str, Any] | None:
    """The list for a member of a collection and its form there; None for one that has none, or is out of scope."""
    if to_proto := _FORMS.get(collection, (None, None, None))[1]:
        written = to_proto(member, export_scope=prefix.rstrip("/"))
        return None if written is None else ("bytes_list", written.SerializeToString())
    if isinstance(member, (Tensor, Operation, Variable)) and not member.name.startswith(prefix):
        return None
    if isinstance(member, Tensor) and member.op.op_def.access == "update":
        member = member.op  # in TensorFlow what changes a variable returns nothing
    if isinstance(member, (Tensor, Operation)) or (isinstance(member, Variable) and collection not in VARIABLES):
        return "node_list", member.name.removeprefix(prefix)
    if isinstance(member, (Variable, QueueRunner)) or hasattr(member, "as_saver_def"):
        definition = member.to_proto(prefix)
        return None if definition is None else ("bytes_list", definition.SerializeToString())
    if isinstance(member, PackedMessage):
        return "any_list", member
    if getattr(getattr(member, "DESCRIPTOR", None), "full_name", "") == ANY:  # of the package `protobuf`
        return "any_list", PackedMessage(type_url=member.type_url, value=member.value)
    if isinstance(member, (bytes, str)):
        return "bytes_list", member.encode() if isinstance(member, str) else member
    if isinstance(member, float):
        return "float_list", member
    return ("int64_list", member) if isinstance(member, int) else None


# -- the form of old -----------------------------------------------------------------------------------


def from_json(data: bytes) -> MetaGraphDef:
    """The message of a meta graph that tfray has written as JSON. Raises `DataLossError` for anything else."""
    try:
        return from_plain(json.loads(data))
    except DAMAGE as error:
        raise DataLossError(f"not a meta graph of tfray: {reason_of(error)}") from error


def from_plain(plain: Any) -> MetaGraphDef:
    """The message of a meta graph that is plain data. Raises Python's errors for anything else."""
    fields_of(plain, "the meta graph", tfray_meta_graph=int, graph=dict, collections=dict)
    if plain["tfray_meta_graph"] != JSON_VERSION:
        raise ValueError(f"it is of version {abbreviated(plain['tfray_meta_graph'])}")
    made = MetaGraphDef(graph_def=messages().graph_message(PlainGraph.from_plain(plain["graph"])))
    if plain["saver"] is not None:
        made.saver_def.CopyFrom(SaverDef.FromString(base64.b64decode(plain["saver"], validate=True)))
    for name in plain["collections"]:
        for member in fields_of(plain["collections"], "the collections", **{name: list})[name]:
            found = [(key, value) for key, value in fields_of(member, f"a member of {name!r}").items() if key != "part"]
            if len(found) != 1 or found[0][0] not in _OLD_MEMBERS:
                raise ValueError(f"a member of collection {name!r} is {abbreviated(member)}")
            ((key, value),) = found
            kind, content = _OLD_MEMBERS[key](value, member)
            getattr(made.collection_def[str(name)], kind).value.append(content)
    return made


def _old_variable(value: Any, member: Any) -> tuple[str, bytes]:
    definition = VariableDef(**value, is_resource=True)
    if member["part"]:
        definition.save_slice_info_def.CopyFrom(SaveSliceInfoDef(**member["part"]))
    return "bytes_list", definition.SerializeToString()


def _old_runner(value: Any, member: Any) -> tuple[str, bytes]:
    kinds = [getattr(errors, str(name)) for name in value.pop("queue_closed_exception_types")]
    ends = [errors.error_code_from_exception_type(kind) for kind in kinds]
    return "bytes_list", QueueRunnerDef(**value, queue_closed_exception_types=ends).SerializeToString()


def _old_value(value: Any, member: Any) -> tuple[str, Any]:
    if isinstance(value, str):
        return "bytes_list", value.encode()
    return ("float_list" if isinstance(value, float) else "int64_list"), value


_OLD_MEMBERS: Final[dict[str, Callable[[Any, Any], tuple[str, Any]]]] = {
    "variable": _old_variable,
    "element": lambda value, member: ("node_list", value),
    "saver": lambda value, member: ("bytes_list", base64.b64decode(value, validate=True)),
    "queue_runner": _old_runner,
    "bytes": lambda value, member: ("bytes_list", base64.b64decode(value, validate=True)),
    "value": _old_value,
}

MetaGraphDef.read_other_form = from_json
