"""Loading of exported models."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import Any

from tfray.contrib.session_bundle import constants
from tfray.contrib.session_bundle.manifest import AssetFile
from tfray.formats import files
from tfray.formats.files import PathLike, as_path
from tfray.formats.graph_proto import GraphDef
from tfray.formats.meta_graph_proto import MetaGraphDef
from tfray.formats.stand_in import with_marks
from tfray.framework.call_errors import damage_reported
from tfray.framework.graph import reset_default_graph
from tfray.library.platform import gfile
from tfray.session import Session
from tfray.training.checkpoints.checkpoint_management import checkpoint_exists
from tfray.training.checkpoints.import_meta_graph import read_meta_graph
from tfray.training.checkpoints.saved_model import add_model

__all__ = ["load_session_bundle_from_path", "maybe_session_bundle_dir"]


def maybe_session_bundle_dir(export_dir: PathLike) -> bool:
    """Whether a folder has the file of an exported model's graph."""
    return bool(files.exists(os.path.join(as_path(export_dir), constants.META_GRAPH_DEF_FILENAME)))


def load_session_bundle_from_path(
    export_dir: PathLike,
    target: str = "",
    config: Any = None,
    meta_graph_def: MetaGraphDef | None = None,
    *,
    allow: Collection[str] = (),
) -> tuple[Session, MetaGraphDef]:
    """Make a new default graph of an exported model, and a session with its variables; run what initialises it.

    Args:
        export_dir: The folder of the version.
        target: As for `tf.Session`.
        config: Likewise.
        meta_graph_def: The graph; that in the folder when None.
        allow: What its operations may use besides its own assets: ``"files"``, ``"python"``; see
            `tf.import_graph_def`.

    Returns:
        The session, and the graph with its collections.

    Raises:
        RuntimeError: There is no such model, or its collections have several graphs or operations to run.
        PermissionDeniedError: Operations use what is not in `allow`.
    """
    folder = as_path(export_dir)
    if meta_graph_def is None:
        path = os.path.join(folder, constants.META_GRAPH_DEF_FILENAME)
        if not maybe_session_bundle_dir(folder):
            raise RuntimeError(f"Expected meta graph file missing {path}")
        meta_graph_def = read_meta_graph(path)
    collections = meta_graph_def.collection_def
    if packed := _packed_in(meta_graph_def, constants.GRAPH_KEY):
        graph_def = GraphDef()
        if len(packed) != 1 or not packed[0].Unpack(graph_def):
            raise RuntimeError(f"Expected exactly one serving GraphDef in : {folder}, not {len(packed)}")
        meta_graph_def.graph_def.CopyFrom(graph_def)
    assets = {}
    for each in _packed_in(meta_graph_def, constants.ASSETS_KEY):
        asset = AssetFile()
        each.Unpack(asset)
        assets[asset.tensor_binding.tensor_name] = asset.filename
    reset_default_graph()
    sess = Session(target, config=config)
    with damage_reported(f"the graph in {folder}"):
        saver = add_model(with_marks(meta_graph_def), assets, folder, allow=allow)
    if saver is not None and (checkpoint := _checkpoint(folder)):
        saver.restore(sess, checkpoint)
    if constants.INIT_OP_KEY in collections:
        init_ops = collections[constants.INIT_OP_KEY].node_list.value
        if len(init_ops) != 1:
            raise RuntimeError(f"Expected exactly one serving init op in : {folder}, not {len(init_ops)}")
        sess.run(sess.graph.get_operation_by_name(init_ops[0]))
    return sess, meta_graph_def


def _packed_in(meta_graph_def: MetaGraphDef, key: str) -> Any:
    collections = meta_graph_def.collection_def
    return collections[key].any_list.value if key in collections else ()


def _checkpoint(folder: str) -> str:
    """The path of the variables: a checkpoint's, a file of TensorFlow's version 1, or the name of its shards."""
    path = os.path.join(folder, constants.VARIABLES_FILENAME)
    if checkpoint_exists(path):
        return path
    shards = gfile.Glob(os.path.join(folder, constants.VARIABLES_FILENAME_PATTERN))
    return f"{path}-?????-of-{shards[0][-5:]}" if shards else ""
