"""`tf.import_graph_def`. The rules for TensorFlow's graphs are loaded with the first such graph."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from tfray.bulk import making_much
from tfray.errors import ArgumentError, InvalidArgumentError
from tfray.exchange import own_graphs
from tfray.formats.graph_proto import PRODUCER, GraphDef
from tfray.formats.meta_graph_proto import MetaGraphDef, SavedModel
from tfray.formats.stand_in import with_marks
from tfray.framework import importer
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.plain_graph import PlainGraph, messages, messages_by


@making_much()
def import_graph_def(
    graph_def: PlainGraph | GraphDef,
    input_map: Mapping[str, Any] | None = None,
    return_elements: Iterable[str] | None = None,
    name: str | None = None,
    op_dict: None = None,
    producer_op_list: Any = None,
    *,
    allow: Collection[str] = (),
) -> list[Tensor | Operation] | None:
    """Add the operations of `graph_def` to the current graph.

    TensorFlow has no `allow`: there a graph from a file may read and write whatever its user may.

    Args:
        graph_def: The graph to add: one of tfray's, or a message of TensorFlow's.
        input_map: Tensor name in `graph_def` to the tensor of the current graph that replaces it, or the value.
            ``^operation`` is what operations wait for. `graph_def` may lack what makes the tensors.
        return_elements: Names in `graph_def` of operations and tensors to return. Of TensorFlow 1's control flow, what
            stands within a branch (and the index that a Merge gives) is there only if it is named here.
        name: Prefix of the new names; ``import`` when None, none at all when ``""``. One that ends in ``/`` is taken as
            it is; any other is made unique below the current scope. An operation whose name the graph has already gets
            a number.
        op_dict: Not used, as in TensorFlow 1.
        producer_op_list: Not used: tfray knows the definitions of TensorFlow's operation types.
        allow: What operations that come from a file or other bytes may use: ``"files"`` (to read and write them),
            ``"python"`` (functions of this process). A graph that was made in this process may use what it likes.
            Savers need no permission: they use the path that they are given.

    Raises:
        PermissionDeniedError: Operations use what is not in `allow`; the error lists them.
        UnimplementedError: Operation types have no equivalent. The error names each, how often it stands, and the
            first operation of it.
        InvalidArgumentError: An operation type, an input or a returned element is not there, or an operation does
            not fit its type; `input_map` names what the graph neither has nor uses.
    """
    plain: Any = graph_def
    if not isinstance(graph_def, (PlainGraph, GraphDef)):
        raise ArgumentError(f"graph_def must be a GraphDef proto, not {graph_def!r}")
    elements = None if return_elements is None else [importer.as_text(each) for each in return_elements]
    if not all(isinstance(each, str) for each in elements or ()):
        raise ArgumentError(f"return_elements must be a list of strings, not {elements!r}")
    if isinstance(graph_def, GraphDef):
        _take_versions(graph_def)
        input_map = importer.given_tensors(input_map, name)
        plain = messages().plain_graph(graph_def, elements or (), input_map)
    return importer.import_graph_def(plain, input_map, elements, name, allow=allow)


def _take_versions(message: GraphDef) -> None:
    """Note the versions of a graph. Raises `InvalidArgumentError` where they are too old or too new."""
    versions = with_marks(message).versions
    if versions.producer < 0:
        raise InvalidArgumentError(
            f"GraphDef producer version {versions.producer} below min producer 0 supported by TensorFlow 1.15.  Please "
            "regenerate your graph."
        )
    if versions.min_consumer > PRODUCER:
        raise InvalidArgumentError(
            f"GraphDef min consumer version {versions.min_consumer} above current version {PRODUCER} for TensorFlow "
            "1.15.  Please upgrade TensorFlow."
        )
    graph = get_default_graph()
    graph.take_versions(versions.producer, versions.min_consumer, is_first=not graph.get_operations())


messages_by("tfray.exchange.graph_messages")
GraphDef.read_other_form = lambda data: messages().from_json(data)
GraphDef.when_read = own_graphs.forget
MetaGraphDef.when_read = lambda message: own_graphs.forget(message.graph_def)


def _forget_all(model: SavedModel) -> None:
    for each in model.meta_graphs:
        own_graphs.forget(each.graph_def)


SavedModel.when_read = _forget_all
