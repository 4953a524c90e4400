"""Exports of models: a folder for each version, with the graph, its variables, its files and its signatures."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tfray.contrib.session_bundle import constants, gc
from tfray.contrib.session_bundle.manifest import AssetFile, Signature, Signatures, TensorBinding
from tfray.formats.checkpoint_state import SaverDef
from tfray.formats.files import PathLike, as_path
from tfray.formats.graph_proto import GraphDef
from tfray.formats.meta_graph_proto import PackedMessage
from tfray.framework import dtypes
from tfray.framework.constant_value import constant_value
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.library.platform import gfile
from tfray.session import Session
from tfray.training.checkpoints.saver import Saver
from tfray.training.threads.global_step import global_step

# fmt: off
__all__ = [
    "Exporter", "classification_signature", "generic_signature", "gfile_copy_callback", "regression_signature",
]
# fmt: on


def gfile_copy_callback(files_to_copy: Mapping[str, str], export_dir_path: PathLike) -> None:
    """Copy files into a folder, which is made; `files_to_copy` are their names there, by their paths."""
    gfile.MakeDirs(export_dir_path)
    for path, name in files_to_copy.items():
        gfile.Copy(path, os.path.join(as_path(export_dir_path), name), overwrite=True)


def regression_signature(input_tensor: Tensor, output_tensor: Tensor) -> Any:
    """The signature of a function from examples to numbers."""
    return _signature("regression_signature", input=input_tensor, output=output_tensor)


def classification_signature(
    input_tensor: Tensor, classes_tensor: Tensor | None = None, scores_tensor: Tensor | None = None
) -> Any:
    """The signature of a function from examples to classes, their scores, or both."""
    return _signature("classification_signature", input=input_tensor, classes=classes_tensor, scores=scores_tensor)


def generic_signature(name_tensor_map: Mapping[str, Tensor]) -> Any:
    """A signature that names tensors."""
    made = Signature()
    made.generic_signature.SetInParent()
    for name, tensor in name_tensor_map.items():
        made.generic_signature.map[name].tensor_name = tensor.name
    return made


def _signature(kind: str, **tensors: Tensor | None) -> Any:
    bindings = {key: TensorBinding(tensor_name=each.name) for key, each in tensors.items() if each is not None}
    return Signature(**{kind: bindings})


class Exporter:
    """Exports the variables of a saver, and the graph.

    Args:
        saver: The saver.
    """

    def __init__(self, saver: Saver) -> None:
        definition = SaverDef()
        definition.CopyFrom(saver.as_saver_def())
        definition.ClearField("max_to_keep")
        self._saver = Saver(saver_def=definition)
        self._has_init = False
        self._assets: dict[str, str] = {}
        self._copy: Callable[..., Any] | None = None

    def init(
        self,
        graph_def: GraphDef | None = None,
        init_op: Operation | None = None,
        clear_devices: bool = False,
        default_graph_signature: Any = None,
        named_graph_signatures: Mapping[str, Any] | None = None,
        assets_collection: Iterable[Tensor] | None = None,
        assets_callback: Callable[..., Any] | None = gfile_copy_callback,
    ) -> None:
        """Say what to export, in collections of the default graph.

        Args:
            graph_def: The graph for inference; the default graph when None.
            init_op: What to run when the model has been loaded.
            clear_devices: Leave out devices.
            default_graph_signature: What `classification_signature` and the others return.
            named_graph_signatures: Others, by name.
            assets_collection: Constants that are paths of files, which go with the model.
            assets_callback: Function that copies these: it takes their names by their paths, and a folder.

        Raises:
            RuntimeError: It has been called before.
            TypeError: `init_op` is no operation, or an asset is no constant string.
            ValueError: An asset is an empty string.
        """
        paths = [(_path_in(tensor), tensor) for tensor in assets_collection or ()]
        if self._has_init:
            raise RuntimeError("init should be called only once")
        if init_op is not None and not isinstance(init_op, Operation):
            raise TypeError(f"init_op needs to be an Operation: {init_op}")
        self._has_init, self._copy = True, assets_callback
        self._assets = {path: os.path.basename(path) for path, _ in paths}
        graph = get_default_graph()
        if graph_def is not None or clear_devices:
            copied = GraphDef()
            copied.CopyFrom(graph.as_graph_def() if graph_def is None else graph_def)
            for node in copied.node if clear_devices else ():
                node.device = ""
            graph.add_to_collection(constants.GRAPH_KEY, _packed(copied))
        if init_op is not None:
            graph.add_to_collection(constants.INIT_OP_KEY, init_op)
        signatures = Signatures(default_signature=default_graph_signature)
        for name, signature in (named_graph_signatures or {}).items():
            signatures.named_signatures[name].CopyFrom(signature)
        graph.add_to_collection(constants.SIGNATURES_KEY, _packed(signatures))
        for path, tensor in paths:
            asset = AssetFile(filename=self._assets[path], tensor_binding=TensorBinding(tensor_name=tensor.name))
            graph.add_to_collection(constants.ASSETS_KEY, _packed(asset))

    def export(
        self,
        export_dir_base: PathLike,
        global_step_tensor: Any,
        sess: Session | None = None,
        exports_to_keep: gc.Filter | None = None,
    ) -> bytes:
        """Write the model into a new folder, complete or not at all.

        Args:
            export_dir_base: The folder of all versions.
            global_step_tensor: The version: an integer tensor, or a variable.
            sess: The session with the variables.
            exports_to_keep: What of the versions to keep; see `gc`. All when None.

        Returns:
            The path of the new folder, which is named by the version with eight digits.

        Raises:
            RuntimeError: `init` has not been called, or there is such a folder.
        """
        if not self._has_init:
            raise RuntimeError("init must be called first")
        base = as_path(export_dir_base).rstrip("/")
        folder = os.path.join(base, constants.VERSION_FORMAT_SPECIFIER % global_step(sess, global_step_tensor))
        if gfile.Exists(folder):
            raise RuntimeError(
                f"Overwriting exports can cause corruption and are not allowed. Duplicate export dir: {folder}"
            )
        unfinished = f"{folder}-tmp"
        gfile.MakeDirs(unfinished)
        path = os.path.join(unfinished, constants.EXPORT_BASE_NAME)
        self._saver.save(sess, path, meta_graph_suffix=constants.EXPORT_SUFFIX_NAME)
        if self._copy and self._assets:
            assets = os.path.join(unfinished, constants.ASSETS_DIRECTORY)
            gfile.MakeDirs(assets)
            self._copy(self._assets, assets)
        gfile.Rename(unfinished, folder)
        if exports_to_keep is not None:
            for old in gc.negation(exports_to_keep)(gc.get_paths(base, _version)):
                gfile.DeleteRecursively(old.path)
        return folder.encode()


def _version(path: gc.Path) -> gc.Path | None:
    number = os.path.basename(path.path)
    return path._replace(export_version=int(number)) if re.fullmatch(r"\d{8}", number) else None


def _packed(message: Any) -> Any:
    made = PackedMessage()
    made.Pack(message)
    return made


def _path_in(tensor: Any) -> str:
    if not isinstance(tensor, Tensor):
        raise TypeError(f"tensor is not a Tensor: {tensor!r}")
    if tensor.op.type != "Const":
        raise TypeError(f"Only constants tensor are supported: {tensor.name} is {tensor.op.type}")
    if tensor.dtype != dtypes.string:
        raise TypeError(f"File paths should be string: {tensor.name} is {tensor.dtype.name}")
    value = constant_value(tensor)
    if value is None or value.size != 1:
        raise TypeError(f"Only scalar tensors are supported: {tensor.name} has shape {tensor.shape}")
    path = os.fsdecode(value.item())
    if not path:
        raise ValueError(f"invalid asset filepath tensor {tensor}")
    return path
