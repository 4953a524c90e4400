"""The folders of saved models: TensorFlow's own, and the form that tfray wrote before.

A folder holds ``saved_model.pb`` (for each set of tags a meta graph with signatures), ``variables/`` (a checkpoint) and
``assets/``. In the older form ``saved_model.json`` stands in place of the first, and large constants are in the
checkpoint too.
"""

from __future__ import annotations

import json
from typing import Any, Final

import numpy as np

from tfray.errors import NoFileError, OpError, UnreadableError
from tfray.formats import files
from tfray.formats.files import PathLike
from tfray.formats.large_contents import FileOctets, octets_of
from tfray.formats.message import message_of_file
from tfray.formats.meta_graph_proto import AssetFileDef, MetaGraphDef, SavedModel, SignatureDef, TensorInfo
from tfray.formats.open_checkpoint import open_checkpoint
from tfray.formats.stand_in import with_marks
from tfray.framework.arguments import abbreviated
from tfray.framework.call_errors import DAMAGE, fields_of, reason_of
from tfray.framework.dtypes import as_dtype
from tfray.framework.plain_graph import PlainGraph, PlainRegion
from tfray.framework.tensor_shape import TensorShape
from tfray.training.checkpoints.meta_graph import from_plain

FILE_NAME: Final = "saved_model.pb"
TEXT_FILE_NAME: Final = "saved_model.pbtxt"
JSON_FILE_NAME: Final = "saved_model.json"
FILE_NAMES: Final = (FILE_NAME, TEXT_FILE_NAME, JSON_FILE_NAME)
JSON_VERSION: Final = 1
ASSETS: Final = "assets"
VALUES: Final = "variables/variables"
MAIN_OP: Final = "saved_model_main_op"
INIT_OP: Final = "__saved_model_init_op"
"""A signature of TensorFlow 2: its output is the operation to run after loading."""
TRAIN_OP: Final = "__saved_model_train_op"
"""A signature of TensorFlow 2: its output is the operation that trains."""

_STORED: Final = "stored constant"


def folder_of(export_dir: PathLike) -> str:
    """The path of a saved model's folder. Raises `InvalidArgumentError` for an empty one."""
    return files.given_path(export_dir, "export_dir").rstrip("/") or "/"


def maybe_saved_model_directory(export_dir: PathLike) -> bool:
    """Whether a folder holds a saved model."""
    folder = files.as_path(export_dir)
    return bool(folder.strip()) and any(files.exists(f"{folder.rstrip('/')}/{name}") for name in FILE_NAMES)


def read_saved_model(export_dir: PathLike) -> SavedModel:
    """The graphs of a saved model, without the values of variables.

    Raises:
        NoFileError: There is none.
        UnreadableError: It is damaged.
    """
    folder = folder_of(export_dir)
    for name in FILE_NAMES:
        path = f"{folder}/{name}"
        if not files.exists(path):
            continue
        with octets_of(path) as contents:
            try:
                model = _parsed(name, contents, folder)
            except OpError as error:
                raise UnreadableError(f"Cannot parse file {path}: it is damaged: {error.message}") from error
            except DAMAGE as error:
                raise UnreadableError(f"Cannot parse file {path}: it is no saved model: {reason_of(error)}") from error
            if not with_marks(model).meta_graphs:
                raise UnreadableError(
                    f"Cannot parse file {path}: it is damaged: there is no graph in its {len(contents)} bytes"
                )
            return model
    raise NoFileError(f"SavedModel file does not exist at: {folder}/{FILE_NAME}: there is no saved model in {folder}")


def _parsed(name: str, contents: bytes | FileOctets, folder: str) -> SavedModel:
    model: SavedModel = (
        _from_json(contents[:], folder) if name == JSON_FILE_NAME else message_of_file(SavedModel, contents)
    )
    return model


# -- the form of old -----------------------------------------------------------------------------------


def _from_json(contents: bytes, folder: str) -> SavedModel:
    plain = fields_of(json.loads(contents), "the saved model", tfray_saved_model=int, graphs=list)
    if plain["tfray_saved_model"] != JSON_VERSION:
        raise ValueError(f"it is of version {abbreviated(plain['tfray_saved_model'])}")
    values = open_checkpoint(f"{folder}/{VALUES}")
    return SavedModel(saved_model_schema_version=1, meta_graphs=[_old_graph(each, values) for each in plain["graphs"]])


def _old_graph(plain: Any, values: Any) -> MetaGraphDef:
    fields_of(plain, "a graph", meta_graph=dict, tags=list, signatures=dict, assets=dict)
    if not isinstance(plain["main_op"], (str, type(None))):
        raise ValueError(f"the operation to run after loading is {abbreviated(plain['main_op'])}")
    graph = PlainGraph.from_plain(fields_of(plain["meta_graph"], "a meta graph", graph=dict)["graph"])
    for node in graph.node:
        _fetch_constants(node, values)
    made = from_plain(plain["meta_graph"] | {"graph": graph.to_plain()})
    made.meta_info_def.tags.extend(str(tag) for tag in plain["tags"])
    for name, signature in plain["signatures"].items():
        fields_of(signature, f"signature {name!r}", inputs=dict, outputs=dict, method=str)
        made.signature_def[str(name)].CopyFrom(
            SignatureDef(
                inputs=_old_tensors(signature["inputs"]),
                outputs=_old_tensors(signature["outputs"]),
                method_name=str(signature["method"]),
            )
        )
    for tensor, file in plain["assets"].items():
        made.asset_file_def.append(AssetFileDef(tensor_info=TensorInfo(name=str(tensor)), filename=str(file)))
    if plain["main_op"]:
        made.collection_def[MAIN_OP].node_list.value.append(str(plain["main_op"]))
    return made


def _old_tensors(plain: Any) -> dict[str, TensorInfo]:
    for key, info in plain.items():
        fields_of(info, f"{key!r} of a signature", name=str, dtype=str)
    return {
        str(key): TensorInfo(
            name=str(info["name"]),
            dtype=int(as_dtype(info["dtype"])),
            tensor_shape=TensorShape(info["shape"]).as_proto(),
        )
        for key, info in plain.items()
    }


def _fetch_constants(node: Any, values: Any) -> None:
    """Put the constants back that were stored in the checkpoint."""
    for name, value in node.attr.items():
        if isinstance(value, PlainRegion):
            for each in value.node:
                _fetch_constants(each, values)
        elif isinstance(value, dict) and set(value) == {_STORED}:
            node.attr[name] = np.asarray(values.read(str(value[_STORED])))
