"""Graphs and models in other forms: as text, frozen, and as TensorFlow's folders."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from tfray.errors import InvalidArgumentError, NotFoundError
from tfray.formats import files
from tfray.formats.files import PathLike
from tfray.formats.graph_proto import GraphDef
from tfray.formats.meta_graph_proto import SavedModel, SignatureDef, TensorInfo
from tfray.framework import dtypes
from tfray.framework.graph import Graph, Tensor
from tfray.framework.plain_graph import PlainGraph, messages
from tfray.framework.sparse_tensor import SparseTensor
from tfray.session import Session
from tfray.training.checkpoints.saved_model import (
    SavedModelBuilder,
    damage_reported,
    frozen_graph,
    load,
    tag_constants,
)
from tfray.training.checkpoints.saved_model_files import INIT_OP, MAIN_OP, read_saved_model
from tfray.training.checkpoints.signatures import get_tensor_from_tensor_info, signature_constants


def write_message(message: Any, path: PathLike, as_text: bool) -> None:
    """Write a message to a file, as text or as bytes."""
    files.write_bytes(path, str(message).encode() if as_text else message.SerializeToString())


def signatures_of(message: Any) -> dict[str, SignatureDef]:
    """The signatures of a meta graph that a program may call, by name."""
    return {name: message.signature_def[name] for name in sorted(message.signature_def) if name != INIT_OP}


def chosen_tags(model: SavedModel, tags: Collection[str]) -> list[str]:
    """The tags of a graph of a saved model: those that are asked for, or those of its only graph, or ``serve``."""
    if tags or len(model.meta_graphs) != 1:
        return sorted(tags) or [tag_constants.SERVING]
    return sorted(model.meta_graphs[0].meta_info_def.tags)


def chosen_signature(signatures: Collection[str], asked: str | None) -> str:
    """The name of a signature: the one that is asked for, or ``serving_default``, or the only one there is.

    Raises:
        NotFoundError: There is none of that name; the error lists those that there are.
    """
    default: str = signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY
    name = asked or (default if len(signatures) != 1 else next(iter(signatures)))
    if name not in signatures:
        raise NotFoundError(f"there is no signature {name!r}: the graph has {', '.join(signatures) or 'none'}")
    return name


def freeze_saved_model(
    export_dir: PathLike, tags: Collection[str] = (), signature: str | None = None, allow: Collection[str] = ()
) -> tuple[GraphDef, SignatureDef]:
    """What a signature of a saved model needs, with constants in place of variables.

    Args:
        export_dir: The folder.
        tags: Tags of the graph; see `chosen_tags`.
        signature: Name of the signature; see `chosen_signature`.
        allow: What its operations may use; see `saved_model.load`.

    Returns:
        The graph, and the signature, whose names are those of its tensors.

    Raises:
        InvalidArgumentError: What is computed needs state that is no variable, such as a lookup table, or changes a
            variable.
        NotFoundError: There is no such folder, graph or signature.
    """
    with Session(graph=Graph()) as session:
        found = load(session, chosen_tags(read_saved_model(export_dir), tags), export_dir, allow=allow)
        signatures = signatures_of(found)
        chosen = signatures[chosen_signature(signatures, signature)]
        with damage_reported(files.as_path(export_dir)):
            inputs, outputs = (_tensors(infos, session.graph) for infos in (chosen.inputs, chosen.outputs))
        graph = frozen_graph(session, inputs, outputs)
        _check_stateless(graph, session.graph)
        message: GraphDef = messages().graph_message(graph)
        return message, chosen


def _tensors(infos: Mapping[str, TensorInfo], graph: Graph) -> dict[str, Tensor]:
    """The tensors that a signature describes, three for a sparse one."""
    found = (get_tensor_from_tensor_info(info, graph) for info in infos.values())
    parts = ((e.indices, e.values, e.dense_shape) if isinstance(e, SparseTensor) else (e,) for e in found)
    return {tensor.name: tensor for each in parts for tensor in each}


def _check_stateless(graph: PlainGraph, source: Graph) -> None:
    for node in graph.node:
        kept = source.get_operation_by_name(node.name)
        if node.op != "Const" and any(tensor.dtype is dtypes.resource for tensor in kept.outputs):
            raise InvalidArgumentError(
                f"{node.name!r} ({node.op}) holds state that is no variable, and that a frozen graph would not have: "
                "keep the folder, or choose a signature that does without it"
            )


def rewrite_saved_model(export_dir: PathLike, target: PathLike, allow: Collection[str] = ()) -> None:
    """Load a saved model and write it as TensorFlow's folder.

    Args:
        export_dir: The folder of the model, of any form.
        target: The new folder.
        allow: What its operations may use; see `saved_model.load`.
    """
    builder = SavedModelBuilder(target)
    for index, each in enumerate(read_saved_model(export_dir).meta_graphs):
        with Graph().as_default() as graph, Session(graph=graph) as session:
            tags = list(each.meta_info_def.tags)
            found = load(session, tags, export_dir, allow=allow)
            assets = [graph.get_tensor_by_name(asset.tensor_info.name) for asset in found.asset_file_def]
            main_op = next(iter(graph.get_collection(MAIN_OP)), None)
            if index == 0:
                builder.add_meta_graph_and_variables(session, tags, signatures_of(found), assets, main_op=main_op)
            else:
                builder.add_meta_graph(tags, signatures_of(found), assets, main_op=main_op, graph=graph)
    builder.save()
