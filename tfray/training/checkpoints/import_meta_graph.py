"""Graphs with their collections, taken in again: `tf.train.import_meta_graph`."""

from __future__ import annotations

import base64
from collections.abc import Collection, Mapping
from typing import Any

from tfray.errors import DataLossError
from tfray.formats import files
from tfray.formats.files import PathLike
from tfray.framework.graph import Graph, Tensor, get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.framework.importer import import_graph_def
from tfray.library.variables.partitioned_variables import SaveSliceInfo
from tfray.library.variables.variables import Variable, VariableDef
from tfray.training.checkpoints.meta_graph import MetaGraphDef, clear_devices_of, saver_from_plain
from tfray.training.checkpoints.saver import Saver
from tfray.training.threads.queue_runner import QueueRunner, QueueRunnerDef


def import_meta_graph(
    meta_graph_or_file: MetaGraphDef | PathLike,
    clear_devices: bool = False,
    import_scope: str | None = None,
    input_map: Mapping[str, Tensor] | None = None,
    *,
    allow: Collection[str] = (),
    **unused: Any,
) -> Saver | None:
    """Add an exported graph to the current one, collections included.

    Args:
        meta_graph_or_file: What `export_meta_graph` returned, or a file: one ending in ``.meta`` stands beside every
            checkpoint.
        clear_devices: Leave out devices.
        import_scope: Name scope for the operations.
        input_map: Tensor name in the exported graph to the tensor of the current graph that replaces it.
        allow: What a graph from a file may use; see `tf.import_graph_def`.
        **unused: Accepted for TensorFlow 1's sake.

    Returns:
        The graph's saver; one of all variables if it has none, and None if it has no variables either.

    Raises:
        NotFoundError: There is no such file.
        PermissionDeniedError: Operations use what is not in `allow`.
        DataLossError: It is damaged, or no meta graph of tfray.
    """
    definition = meta_graph_or_file
    if not isinstance(definition, MetaGraphDef):
        try:
            definition = MetaGraphDef.FromString(files.read_bytes(definition))
        except DataLossError as error:
            raise DataLossError(f"{files.as_path(meta_graph_or_file)}: {error.message}") from error  # type: ignore[arg-type]
    if clear_devices:
        clear_devices_of(definition.graph_def.node)
    graph = get_default_graph()
    scope = graph.unique_name(import_scope, mark_as_used=False) if import_scope else ""
    import_graph_def(definition.graph_def, input_map, name=scope, allow=allow)
    prefix = scope.rstrip("/") + "/" if scope else ""
    variables: dict[str, Variable] = {}
    for name, members in definition.collection_def.items():
        for member in members:
            graph.add_to_collection(name, _member_from_plain(graph, member, prefix, variables))
    if definition.saver_def is not None:
        return Saver.from_proto(definition.saver_def, scope)
    return Saver() if graph.get_collection(GraphKeys.GLOBAL_VARIABLES) else None


def _member_from_plain(graph: Graph, plain: Any, prefix: str, variables: dict[str, Variable]) -> Any:
    try:
        if "variable" in plain:
            definition = VariableDef(**plain["variable"])
            if definition.variable_name not in variables:
                variable = Variable.from_proto(definition, prefix)
                variable._save_slice_info = SaveSliceInfo(**plain["part"]) if plain["part"] else None
                variables[definition.variable_name] = variable
            return variables[definition.variable_name]
        if "element" in plain:
            return graph.as_graph_element(prefix + plain["element"])
        if "saver" in plain:
            return Saver.from_proto(saver_from_plain(plain["saver"]), prefix)
        if "queue_runner" in plain:
            return QueueRunner.from_proto(QueueRunnerDef(**plain["queue_runner"]), prefix)
        return base64.b64decode(plain["bytes"]) if "bytes" in plain else plain["value"]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataLossError(f"a member of a collection of the meta graph cannot be read: {error}") from error
