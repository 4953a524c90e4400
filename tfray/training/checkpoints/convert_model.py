"""Graphs and models in other forms: as text, frozen, and as TensorFlow's folders."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from tfray.errors import InvalidArgumentError
from tfray.formats import files
from tfray.formats.files import PathLike
from tfray.formats.graph_proto import GraphDef
from tfray.formats.meta_graph_proto import SignatureDef, TensorInfo
from tfray.formats.stand_in import pieces_of, with_marks
from tfray.framework import dtypes
from tfray.framework.graph import Graph, Tensor
from tfray.framework.plain_graph import PlainGraph, messages
from tfray.framework.sparse_tensor import SparseTensor
from tfray.session import Session
from tfray.training.checkpoints.saved_model import (
    LoadedModel,
    SavedModelBuilder,
    export,
    frozen_graph,
    load,
    tag_constants,
)
from tfray.training.checkpoints.saved_model_files import INIT_OP, MAIN_OP, read_saved_model
from tfray.training.checkpoints.signatures import get_tensor_from_tensor_info, signature_constants


def write_message(message: Any, path: PathLike, as_text: bool) -> None:
    """Write a message to a file, as text or as bytes."""
    files.write_bytes(path, *([str(message).encode()] if as_text else pieces_of(message)))


def signatures_of(message: Any) -> dict[str, SignatureDef]:
    """The signatures of a meta graph that a program may call, by name."""
    return {name: message.signature_def[name] for name in sorted(message.signature_def) if name != INIT_OP}


def open_signature(
    export_dir: PathLike, tags: Collection[str] = (), signature: str | None = None, allow: Collection[str] = ()
) -> LoadedModel:
    """A signature of a saved model, loaded.

    Args:
        export_dir: The folder.
        tags: Tags of the graph. Without any: those of the only graph there is, or ``serve``.
        signature: Name of the signature. None is ``serving_default``, or the only one there is.
        allow: What its operations may use; see `saved_model.load`.

    Raises:
        NotFoundError: There is no such folder, graph or signature; the error lists those that there are.
    """
    graphs = with_marks(read_saved_model(export_dir)).meta_graphs
    if not tags:
        tags = list(graphs[0].meta_info_def.tags) if len(graphs) == 1 else [tag_constants.SERVING]
    names = [name for each in graphs if set(each.meta_info_def.tags) == set(tags) for name in signatures_of(each)]
    default = names[0] if len(names) == 1 else signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY
    return LoadedModel(export_dir, default if signature is None else signature, tags, allow=allow)


def frozen_signature(model: LoadedModel) -> GraphDef:
    """What a signature of a saved model needs, with constants in place of variables.

    Args:
        model: The model, loaded: its `inputs` and `outputs` name the tensors of the graph.

    Raises:
        InvalidArgumentError: What is computed needs state that is no variable, such as a lookup table, or changes a
            variable.
    """
    graph = frozen_graph(model.session, *(_tensors(infos, model.graph) for infos in (model.inputs, model.outputs)))
    _check_stateless(graph, model.graph)
    message: GraphDef = messages().graph_message(graph)
    return message


def save_signature(model: LoadedModel, target: PathLike) -> None:
    """Write what a model of dense tensors computes as the default signature of a saved model, in the new `target`."""
    inputs, outputs = (
        {name: model.graph.get_tensor_by_name(info.name) for name, info in infos.items()}
        for infos in (model.inputs, model.outputs)
    )
    export(model.session, target, inputs, outputs)


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
    for index, each in enumerate(with_marks(read_saved_model(export_dir)).meta_graphs):
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
