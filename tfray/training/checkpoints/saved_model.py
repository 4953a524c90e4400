"""`tf.saved_model`: graphs with signatures and values in a folder, for programs that only run them.

A folder holds ``saved_model.json`` (for each set of tags a graph with its collections, and signatures: names of its
inputs and outputs) and ``variables/``, a checkpoint with the values of variables and of large constants. Loading it
executes nothing; later only the graph's operations are run.

>>> tf.saved_model.export(session, "model", {"images": images}, {"scores": scores})  # pruned and frozen
>>> model = tf.saved_model.load_model("model")
>>> model(images=batch)["scores"]
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, Final

import numpy as np

from tfray.errors import DataLossError, InvalidArgumentError, NotFoundError, OpError
from tfray.formats import files
from tfray.formats.checkpoint import ArrowCheckpoint
from tfray.formats.files import PathLike
from tfray.formats.value_file import read_values, write_values
from tfray.framework.allowed_uses import checked_nodes
from tfray.framework.dtypes import as_dtype
from tfray.framework.graph import Graph, Operation, Tensor, get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.framework.plain_graph import PlainGraph, PlainNode, PlainRegion
from tfray.framework.tensor_shape import TensorShape
from tfray.library.input.lookup import tables_initializer
from tfray.library.inspect.graph_util import convert_variables_to_constants, extract_sub_graph
from tfray.library.variables.variables import global_variables_initializer, local_variables_initializer
from tfray.ops.arrays.grouping_ops import group
from tfray.session import Session
from tfray.training.checkpoints.import_meta_graph import import_meta_graph
from tfray.training.checkpoints.meta_graph import MetaGraphDef, clear_devices_of, export_meta_graph
from tfray.training.checkpoints.signatures import (
    SignatureDef,
    TensorInfo,
    build_signature_def,
    build_tensor_info,
    classification_signature_def,
    get_tensor_from_tensor_info,
    is_valid_signature,
    predict_signature_def,
    regression_signature_def,
    signature_constants,
)

# fmt: off
__all__ = [
    "ASSETS_DIRECTORY", "ASSETS_KEY", "CLASSIFY_INPUTS", "CLASSIFY_METHOD_NAME", "CLASSIFY_OUTPUT_CLASSES",
    "CLASSIFY_OUTPUT_SCORES", "DEFAULT_SERVING_SIGNATURE_DEF_KEY", "FILE_NAME", "FORMAT_VERSION", "GPU",
    "LEGACY_INIT_OP_KEY", "MAIN_OP_KEY", "PREDICT_INPUTS", "PREDICT_METHOD_NAME", "PREDICT_OUTPUTS", "REGRESS_INPUTS",
    "REGRESS_METHOD_NAME", "REGRESS_OUTPUTS", "SAVED_MODEL_FILENAME_PB", "SAVED_MODEL_FILENAME_PBTXT",
    "SAVED_MODEL_SCHEMA_VERSION", "SERVING", "TPU", "TRAINING", "VARIABLES_DIRECTORY", "VARIABLES_FILENAME", "Builder",
    "LoadedModel", "SavedGraph", "SavedModelBuilder", "SignatureDef", "TensorInfo", "build_signature_def",
    "build_tensor_info", "builder", "classification_signature_def", "constants", "contains_saved_model", "export",
    "get_tensor_from_tensor_info", "is_valid_signature", "load", "load_model", "loader", "main_op",
    "main_op_with_restore", "maybe_saved_model_directory", "predict_signature_def", "read_saved_model",
    "regression_signature_def", "signature_constants", "signature_def_utils", "simple_save", "tag_constants", "utils",
]
# fmt: on

FILE_NAME: Final = "saved_model.json"
FORMAT_VERSION: Final = 1
_VALUES: Final = "variables/variables"
_ASSETS: Final = "assets"
_STORED: Final = "stored constant"
_LARGE_BYTES: Final = 1024
"""Constants from this size on, in bytes, are stored in the checkpoint, not in the graph."""

tag_constants = SimpleNamespace(SERVING="serve", TRAINING="train", EVAL="eval", GPU="gpu", TPU="tpu")
constants = SimpleNamespace(
    ASSETS_DIRECTORY=_ASSETS,
    ASSETS_KEY="saved_model_assets",
    LEGACY_INIT_OP_KEY="legacy_init_op",
    MAIN_OP_KEY="saved_model_main_op",
    SAVED_MODEL_FILENAME_JSON=FILE_NAME,
    SAVED_MODEL_FILENAME_PB="saved_model.pb",
    SAVED_MODEL_FILENAME_PBTXT="saved_model.pbtxt",
    SAVED_MODEL_SCHEMA_VERSION=1,
    VARIABLES_DIRECTORY="variables",
    VARIABLES_FILENAME="variables",
)
"""Names that TensorFlow gives; tfray's own form has one file, ``SAVED_MODEL_FILENAME_JSON``, beside the variables."""

ASSETS_DIRECTORY: Final[str] = constants.ASSETS_DIRECTORY
ASSETS_KEY: Final[str] = constants.ASSETS_KEY
CLASSIFY_INPUTS: Final[str] = signature_constants.CLASSIFY_INPUTS
CLASSIFY_METHOD_NAME: Final[str] = signature_constants.CLASSIFY_METHOD_NAME
CLASSIFY_OUTPUT_CLASSES: Final[str] = signature_constants.CLASSIFY_OUTPUT_CLASSES
CLASSIFY_OUTPUT_SCORES: Final[str] = signature_constants.CLASSIFY_OUTPUT_SCORES
DEFAULT_SERVING_SIGNATURE_DEF_KEY: Final[str] = signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY
GPU: Final[str] = tag_constants.GPU
LEGACY_INIT_OP_KEY: Final[str] = constants.LEGACY_INIT_OP_KEY
MAIN_OP_KEY: Final[str] = constants.MAIN_OP_KEY
PREDICT_INPUTS: Final[str] = signature_constants.PREDICT_INPUTS
PREDICT_METHOD_NAME: Final[str] = signature_constants.PREDICT_METHOD_NAME
PREDICT_OUTPUTS: Final[str] = signature_constants.PREDICT_OUTPUTS
REGRESS_INPUTS: Final[str] = signature_constants.REGRESS_INPUTS
REGRESS_METHOD_NAME: Final[str] = signature_constants.REGRESS_METHOD_NAME
REGRESS_OUTPUTS: Final[str] = signature_constants.REGRESS_OUTPUTS
SAVED_MODEL_FILENAME_PB: Final[str] = constants.SAVED_MODEL_FILENAME_PB
SAVED_MODEL_FILENAME_PBTXT: Final[str] = constants.SAVED_MODEL_FILENAME_PBTXT
SAVED_MODEL_SCHEMA_VERSION: Final[int] = constants.SAVED_MODEL_SCHEMA_VERSION
SERVING: Final[str] = tag_constants.SERVING
TPU: Final[str] = tag_constants.TPU
TRAINING: Final[str] = tag_constants.TRAINING
VARIABLES_DIRECTORY: Final[str] = constants.VARIABLES_DIRECTORY
VARIABLES_FILENAME: Final[str] = constants.VARIABLES_FILENAME


# -- what is in a folder -------------------------------------------------------------------------------


@dataclass
class SavedGraph:
    """A graph of a saved model.

    Attributes:
        meta_graph: The graph and its collections.
        tags: What it is for.
        signature_def: Its signatures by name.
        assets: File name in ``assets`` of each tensor that holds one, by the tensor's name.
        main_op: Name of the operation to run once after loading, or ``""``.
        variables: Names of its variables, by the names of their values in the checkpoint.
    """

    meta_graph: MetaGraphDef
    tags: list[str]
    signature_def: dict[str, SignatureDef] = field(default_factory=dict)
    assets: dict[str, str] = field(default_factory=dict)
    main_op: str = ""
    variables: dict[str, str] = field(default_factory=dict)

    def to_plain(self) -> dict[str, Any]:
        """Data for JSON."""
        return {
            "tags": self.tags,
            "meta_graph": self.meta_graph.to_plain(),
            "signatures": {name: _signature_to_plain(each) for name, each in self.signature_def.items()},
            "assets": self.assets,
            "main_op": self.main_op,
            "variables": self.variables,
        }

    @classmethod
    def from_plain(cls, plain: Any) -> SavedGraph:
        """What `to_plain` gave. Raises `DataLossError` or an error of Python's for anything else."""
        meta_graph = MetaGraphDef.FromString(json.dumps(plain["meta_graph"]).encode())
        signatures = {str(name): _signature_from_plain(each) for name, each in plain["signatures"].items()}
        tags = [str(tag) for tag in plain["tags"]]
        assets, variables = (_texts(plain[name]) for name in ("assets", "variables"))
        return cls(meta_graph, tags, signatures, assets, str(plain["main_op"]), variables)


def _texts(plain: Any) -> dict[str, str]:
    if not all(isinstance(text, str) for item in plain.items() for text in item):
        raise TypeError("names must be text")
    return dict(plain)


def _signature_to_plain(signature: SignatureDef) -> dict[str, Any]:
    def tensors(infos: Mapping[str, TensorInfo]) -> dict[str, Any]:
        return {
            key: {
                "name": info.name,
                "dtype": info.dtype.name,
                "shape": None if info.tensor_shape.rank is None else info.tensor_shape.as_list(),
            }
            for key, info in infos.items()
        }

    return {
        "inputs": tensors(signature.inputs),
        "outputs": tensors(signature.outputs),
        "method": signature.method_name,
    }


def _signature_from_plain(plain: Any) -> SignatureDef:
    def tensors(infos: Any) -> dict[str, TensorInfo]:
        return {
            str(key): TensorInfo(str(info["name"]), as_dtype(info["dtype"]), TensorShape(info["shape"]))
            for key, info in infos.items()
        }

    return SignatureDef(tensors(plain["inputs"]), tensors(plain["outputs"]), str(plain["method"]))


# -- constants outside the graph -----------------------------------------------------------------------


def _move_constants(node: PlainNode, values: dict[str, Any]) -> PlainNode:
    """The operation without its large constants, which go to `values`."""

    def moved(value: Any) -> Any:
        if isinstance(value, PlainRegion):
            return PlainRegion([_move_constants(each, values) for each in value.node], value.inputs, value.outputs)
        if isinstance(value, np.ndarray) and value.nbytes >= _LARGE_BYTES:
            key = f"_constants/{len(values)}"
            values[key] = value
            return {_STORED: key}
        return value

    return replace(node, attr={name: moved(value) for name, value in node.attr.items()})


def _fetch_constants(node: PlainNode, values: ArrowCheckpoint) -> None:
    """Put the constants back in place."""
    for name, value in node.attr.items():
        if isinstance(value, PlainRegion):
            for each in value.node:
                _fetch_constants(each, values)
        elif isinstance(value, dict) and set(value) == {_STORED}:
            node.attr[name] = values.read(str(value[_STORED]))


# -- writing -------------------------------------------------------------------------------------------


class SavedModelBuilder:
    """Writes a saved model.

    Args:
        export_dir: The folder, which must not be there.

    Raises:
        InvalidArgumentError: The folder exists already.
    """

    def __init__(self, export_dir: PathLike) -> None:
        self._folder = files.given_path(export_dir, "export_dir").rstrip("/") or "/"
        if files.exists(self._folder) and not (files.is_folder(self._folder) and not files.list_folder(self._folder)):
            raise InvalidArgumentError(f"{self._folder} is there already: export to a new folder")
        self._graphs: list[SavedGraph] = []
        self._values: dict[str, Any] = {}
        self._assets: dict[str, str] = {}

    def add_meta_graph_and_variables(
        self,
        sess: Session,
        tags: Iterable[str],
        signature_def_map: Mapping[str, SignatureDef] | None = None,
        assets_collection: Sequence[Tensor] | None = None,
        legacy_init_op: Operation | None = None,
        clear_devices: bool = False,
        main_op: Operation | None = None,
        strip_default_attrs: bool = False,
        saver: object = None,
    ) -> None:
        """Add the session's graph, and the values of its variables. Call it first, and once.

        Args:
            sess: The session.
            tags: What the graph is for, such as `tag_constants.SERVING`.
            signature_def_map: Signatures by name.
            assets_collection: Constant tensors with names of files, which are copied.
            legacy_init_op: Another name for `main_op`.
            clear_devices: Leave out devices.
            main_op: Operation to run after loading.
            strip_default_attrs: Accepted for TensorFlow 1 programs.
            saver: Accepted for TensorFlow 1 programs.
        """
        if self._graphs:
            raise InvalidArgumentError("the variables have been added already: use add_meta_graph for further graphs")
        variables = _variables_of(sess.graph)
        self._values.update(sess.run(variables) if variables else {})
        self._add(sess.graph, tags, signature_def_map, assets_collection, main_op or legacy_init_op, clear_devices)

    def add_meta_graph(
        self,
        tags: Iterable[str],
        signature_def_map: Mapping[str, SignatureDef] | None = None,
        assets_collection: Sequence[Tensor] | None = None,
        legacy_init_op: Operation | None = None,
        clear_devices: bool = False,
        main_op: Operation | None = None,
        strip_default_attrs: bool = False,
        saver: object = None,
        graph: Graph | None = None,
    ) -> None:
        """Add a graph that uses the variables already there; see `add_meta_graph_and_variables`."""
        if not self._graphs:
            raise InvalidArgumentError("add a graph with its variables first: add_meta_graph_and_variables")
        graph = graph or get_default_graph()
        missing = sorted(set(_variables_of(graph)) - set(self._values))
        if missing:
            raise InvalidArgumentError(f"the graph has variables without values here: {', '.join(missing[:5])}")
        self._add(graph, tags, signature_def_map, assets_collection, main_op or legacy_init_op, clear_devices)

    def add_frozen_graph(
        self, graph_def: PlainGraph, tags: Iterable[str], signature_def_map: Mapping[str, SignatureDef]
    ) -> None:
        """Add a graph without variables, such as `graph_util.convert_variables_to_constants` makes."""
        self._graphs.append(SavedGraph(MetaGraphDef(graph_def), sorted(tags), dict(signature_def_map)))

    def _add(
        self,
        graph: Graph,
        tags: Iterable[str],
        signatures: Mapping[str, SignatureDef] | None,
        assets: Sequence[Tensor] | None,
        main_op: Operation | None,
        clear_devices: bool,
    ) -> None:
        meta_graph = export_meta_graph(graph=graph, clear_devices=clear_devices)
        names = {name: name for name in _variables_of(graph)}
        made = SavedGraph(meta_graph, sorted(tags), dict(signatures or {}), variables=names)
        made.main_op = main_op.name if main_op is not None else ""
        for tensor in assets or ():
            path = _asset_path(tensor)
            name = os.path.basename(path)
            if self._assets.setdefault(name, path) != path:
                raise InvalidArgumentError(f"two assets are called {name}: {path} and {self._assets[name]}")
            made.assets[tensor.name] = name
        self._graphs.append(made)

    def save(self, as_text: bool = False) -> str:
        """Write everything.

        Args:
            as_text: Write the graph with line breaks.

        Returns:
            The path of the file with the graphs.
        """
        values = {name: np.asarray(value) for name, value in self._values.items()}
        plain = []
        for each in self._graphs:
            nodes = [_move_constants(node, values) for node in each.meta_graph.graph_def.node]
            graph_def = replace(each.meta_graph.graph_def, node=nodes)
            plain.append(replace(each, meta_graph=replace(each.meta_graph, graph_def=graph_def)).to_plain())
        files.make_folders(f"{self._folder}/{os.path.dirname(_VALUES)}")
        write_values(f"{self._folder}/{_VALUES}", values)
        if self._assets:
            files.make_folders(f"{self._folder}/{_ASSETS}")
        for name, path in self._assets.items():
            files.copy(path, f"{self._folder}/{_ASSETS}/{name}")
        path = f"{self._folder}/{FILE_NAME}"
        contents = json.dumps({"tfray_saved_model": FORMAT_VERSION, "graphs": plain}, indent=1 if as_text else None)
        files.write_bytes(path, contents.encode())  # last: without it there is no model
        return path


def _variables_of(graph: Graph) -> dict[str, Any]:
    keys = (GraphKeys.GLOBAL_VARIABLES, GraphKeys.MODEL_VARIABLES)
    return {variable.op.name: variable for key in keys for variable in graph.get_collection(key)}


def _asset_path(tensor: Tensor) -> str:
    if tensor.op.type != "Const":
        raise InvalidArgumentError(f"asset {tensor.name} must be a constant with the name of a file")
    value = np.asarray(tensor.op.attrs["value"]).reshape(-1)
    if len(value) != 1 or not isinstance(value[0], bytes):
        raise InvalidArgumentError(f"asset {tensor.name} must hold the name of one file")
    return value[0].decode()


def simple_save(
    session: Session,
    export_dir: PathLike,
    inputs: Mapping[str, Tensor],
    outputs: Mapping[str, Tensor],
    legacy_init_op: Operation | None = None,
) -> None:
    """Write the session's graph with its variables, for serving.

    Args:
        session: The session.
        export_dir: A new folder.
        inputs: Tensors to feed, by name.
        outputs: Tensors to return, by name.
        legacy_init_op: Operation to run after loading.
    """
    builder = SavedModelBuilder(export_dir)
    signature = {signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY: predict_signature_def(inputs, outputs)}
    builder.add_meta_graph_and_variables(
        session, [tag_constants.SERVING], signature, main_op=legacy_init_op, clear_devices=True
    )
    builder.save()


def export(
    session: Session,
    export_dir: PathLike,
    inputs: Mapping[str, Tensor],
    outputs: Mapping[str, Tensor],
    frozen: bool = True,
) -> None:
    """Write what `outputs` need of a session's graph, for serving.

    Args:
        session: The session.
        export_dir: A new folder.
        inputs: Tensors to feed, by name. Operations that only they need are left out.
        outputs: Tensors to return, by name.
        frozen: Whether variables become constants. Otherwise they stay variables, and their values are saved.
    """
    if not frozen:
        simple_save(session, export_dir, inputs, outputs)
        return
    builder = SavedModelBuilder(export_dir)
    graph_def = frozen_graph(session, inputs, outputs)
    signature = {signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY: predict_signature_def(inputs, outputs)}
    builder.add_frozen_graph(graph_def, [tag_constants.SERVING], signature)
    builder.save()


def frozen_graph(session: Session, inputs: Mapping[str, Tensor], outputs: Mapping[str, Tensor]) -> PlainGraph:
    """What `outputs` need of a session's graph, with constants in place of variables, for any device.

    Args:
        session: The session that holds the values.
        inputs: Tensors to feed, which become placeholders. Operations that only they need are left out.
        outputs: Tensors to return.
    """
    names = [tensor.op.name for tensor in (*outputs.values(), *inputs.values())]
    whole = _with_placeholders(session.graph.as_graph_def(), inputs.values())
    graph_def = convert_variables_to_constants(session, extract_sub_graph(whole, names), names)
    clear_devices_of(graph_def.node)
    return graph_def


def _with_placeholders(graph_def: PlainGraph, inputs: Iterable[Tensor]) -> PlainGraph:
    """The graph with placeholders in place of the tensors that are fed."""
    fed = {tensor.op.name: tensor for tensor in inputs if len(tensor.op.outputs) == 1}
    nodes = [
        replace(node, op="Placeholder", input=[], attr={"dtype": fed[node.name].dtype, "shape": fed[node.name].shape})
        if node.name in fed
        else node
        for node in graph_def.node
    ]
    return replace(graph_def, node=nodes)


# -- reading -------------------------------------------------------------------------------------------


def read_saved_model(export_dir: PathLike) -> list[SavedGraph]:
    """The graphs of a saved model, without the values of variables.

    Raises:
        NotFoundError: There is none.
        DataLossError: It is damaged.
    """
    folder = files.given_path(export_dir, "export_dir").rstrip("/")
    path = f"{folder}/{FILE_NAME}"
    try:
        contents = files.read_bytes(path)
    except NotFoundError as error:
        raise NotFoundError(f"there is no saved model in {folder}: {path} does not exist") from error
    try:
        plain = json.loads(contents)
        if plain["tfray_saved_model"] != FORMAT_VERSION:
            raise ValueError(f"it is of version {plain['tfray_saved_model']!r}")
        graphs = [SavedGraph.from_plain(each) for each in plain["graphs"]]
    except OpError as error:
        raise DataLossError(f"{path} is damaged: {error.message}") from error
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise DataLossError(f"{path} is no saved model of tfray: {type(error).__name__}: {error}") from error
    values = read_values(f"{folder}/{_VALUES}")
    for each in graphs:
        for node in each.meta_graph.graph_def.node:
            _fetch_constants(node, values)
    return graphs


def maybe_saved_model_directory(export_dir: PathLike) -> bool:
    """Whether a folder holds a saved model."""
    folder = files.as_path(export_dir)
    return bool(folder.strip()) and files.exists(f"{folder.rstrip('/')}/{FILE_NAME}")


def load(
    sess: Session,
    tags: Collection[str],
    export_dir: PathLike,
    import_scope: str | None = None,
    *,
    allow: Collection[str] = (),
    **saver_kwargs: Any,
) -> SavedGraph:
    """Add a saved model to a session's graph, and set its variables.

    Args:
        sess: The session.
        tags: Tags of the graph; it must have exactly these.
        export_dir: The folder.
        import_scope: Name scope for the operations.
        allow: What its operations may use besides its own assets: ``"files"`` (to read and write them), ``"python"``
            (functions of this process). In TensorFlow a model may read and write any file.
        **saver_kwargs: Accepted for TensorFlow 1 programs.

    Returns:
        What was loaded; its ``signature_def`` names inputs and outputs.

    Raises:
        NotFoundError: There is no model, or none with these tags.
        PermissionDeniedError: Operations use what is not in `allow`; the error lists them.
        DataLossError: A file is damaged.
    """
    folder = files.given_path(export_dir, "export_dir").rstrip("/")
    found = _with_tags(read_saved_model(folder), tags, folder)
    prefix = f"{import_scope.rstrip('/')}/" if import_scope else ""
    with damage_reported(folder), sess.graph.as_default():
        assets = _set_assets(found, folder)
        inputs = {info.name for signature in found.signature_def.values() for info in signature.inputs.values()}
        graph_def = found.meta_graph.graph_def
        nodes = [replace(n, is_loaded=False) for n in checked_nodes(graph_def.node, allow, assets, inputs)]
        checked = replace(found.meta_graph, graph_def=replace(graph_def, node=nodes))
        import_meta_graph(checked, import_scope=import_scope, allow=allow)
        variables = _variables_of(sess.graph)
        values = read_values(f"{folder}/{_VALUES}")
        feeds, initializers = {}, []
        for name, key in found.variables.items():
            if prefix + name not in variables:
                raise DataLossError(f"{folder} has a value for {name!r}, which is no variable of its graph")
            initializers.append(variables[prefix + name].initializer)
            feeds[initializers[-1].inputs[1]] = values.read(key)
        sess.run(initializers, feeds)
        if found.main_op:
            sess.run(sess.graph.get_operation_by_name(prefix + found.main_op))
    return found


@contextmanager
def damage_reported(folder: str) -> Iterator[None]:
    """Within it what is loaded is not trusted: attributes of operations can be anything."""
    try:
        yield
    except OpError:
        raise
    except (ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, TypeError, ValueError) as error:
        raise DataLossError(f"the graph in {folder} is damaged: {type(error).__name__}: {error}") from error


def _with_tags(graphs: Iterable[SavedGraph], tags: Collection[str], folder: str) -> SavedGraph:
    graphs = list(graphs)
    for each in graphs:
        if set(each.tags) == set(tags):
            return each
    there = " and ".join(str(each.tags) for each in graphs) or "none"
    raise NotFoundError(f"{folder} has no graph with the tags {sorted(tags)}; it has {there}")


def _set_assets(found: SavedGraph, folder: str) -> set[str]:
    """Make the constants of assets name the files of the folder. Returns those names that are certain to be in it."""
    inside = set()
    paths = {name: f"{folder}/{_ASSETS}/{os.path.basename(file)}" for name, file in found.assets.items()}
    for node in found.meta_graph.graph_def.node:
        path = paths.get(f"{node.name}:0")
        if path is not None and node.op == "Const" and isinstance(node.attr.get("value"), np.ndarray):
            value = np.empty(node.attr["value"].shape, object)
            value.fill(path.encode())
            node.attr["value"] = value
            if not _is_link(path):
                inside.add(f"{node.name}:0")
    return inside


def _is_link(path: str) -> bool:
    """Whether a file of this machine, or its folder, is a link that may lead anywhere."""
    _, inner, _ = files.locate(path)
    return os.path.islink(inner) or os.path.islink(os.path.dirname(inner))


class LoadedModel:
    """A saved model as a function from arrays to a dictionary of arrays. Threads may call it at once.

    Args:
        export_dir: The folder.
        signature: Name of the signature to call.
        tags: Tags of the graph.
        allow: What its operations may use; see `load`.

    Attributes:
        session: Holds its variables and runs its graph.
        signatures: All signatures by name.
    """

    def __init__(
        self,
        export_dir: PathLike,
        signature: str = signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY,
        tags: Collection[str] = (tag_constants.SERVING,),
        *,
        allow: Collection[str] = (),
    ) -> None:
        session = Session(graph=Graph())
        loaded = load(session, tags, export_dir, allow=allow)
        if signature not in loaded.signature_def:
            known = ", ".join(loaded.signature_def) or "none"
            raise NotFoundError(f"{files.as_path(export_dir)} has no signature {signature!r}; it has {known}")
        self._offer(session, loaded.signature_def, signature, files.as_path(export_dir))

    @classmethod
    def of_graph(cls, graph: Graph, signature: SignatureDef, source: str) -> LoadedModel:
        """A graph without variables that was made of the file `source`, as a function."""
        made = cls.__new__(cls)
        key = signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY
        made._offer(Session(graph=graph), {key: signature}, key, source)
        return made

    def _offer(self, session: Session, signatures: dict[str, SignatureDef], key: str, source: str) -> None:
        self.session = session
        self.signatures = signatures
        self._signature = signatures[key]
        with damage_reported(source):
            self._call = self._function(self._signature)

    @property
    def graph(self) -> Graph:
        """Its graph."""
        return self.session.graph

    def _function(self, signature: SignatureDef) -> Callable[..., Any]:
        outputs = {key: self._tensor(info) for key, info in signature.outputs.items()}
        return self.session.make_callable(outputs, [self._tensor(info) for info in signature.inputs.values()])

    def _tensor(self, info: TensorInfo) -> Tensor:
        return self.session.graph.get_tensor_by_name(info.name)

    @property
    def inputs(self) -> dict[str, TensorInfo]:
        """Its arguments."""
        return dict(self._signature.inputs)

    @property
    def outputs(self) -> dict[str, TensorInfo]:
        """Its results."""
        return dict(self._signature.outputs)

    def __call__(self, *values: Any, **named: Any) -> dict[str, Any]:
        """Run on arrays, given in the order of `inputs` or by name. Returns arrays by name."""
        names = list(self._signature.inputs)
        given = dict(zip(names, values, strict=False)) | named
        if len(values) + len(named) != len(given) or set(given) != set(names):
            raise InvalidArgumentError(
                f"the model takes {', '.join(names)}; got {len(values)} values and {', '.join(named) or 'no names'}"
            )
        result: dict[str, Any] = self._call(*[given[name] for name in names])
        return result

    def close(self) -> None:
        """Release everything."""
        self.session.close()


def load_model(
    export_dir: PathLike,
    signature: str = signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY,
    tags: Collection[str] = (tag_constants.SERVING,),
    *,
    allow: Collection[str] = (),
) -> LoadedModel:
    """Load a saved model as a function: ``load_model("folder")(x)`` is a dictionary of arrays. Arguments as of `load`.

    A model whose operations read or write files is refused, unless `allow` has ``"files"``; likewise ``"python"``.
    """
    return LoadedModel(export_dir, signature, tags, allow=allow)


def _main_op() -> Operation:
    """An operation that initialises the global variables, the local ones and the tables: a model's main operation."""
    return group(global_variables_initializer(), local_variables_initializer(), tables_initializer())


def main_op_with_restore(restore_op_name: str) -> Operation:
    """As ``main_op.main_op`` once an operation of that name has restored the variables, which are not initialised."""
    graph = get_default_graph()
    with graph.control_dependencies([graph.get_operation_by_name(restore_op_name)]):
        return group(local_variables_initializer(), tables_initializer())


main_op = SimpleNamespace(main_op=_main_op, main_op_with_restore=main_op_with_restore)
contains_saved_model = maybe_saved_model_directory
Builder = SavedModelBuilder
builder = SimpleNamespace(SavedModelBuilder=SavedModelBuilder)
loader = SimpleNamespace(load=load, maybe_saved_model_directory=maybe_saved_model_directory)
utils = SimpleNamespace(build_tensor_info=build_tensor_info, get_tensor_from_tensor_info=get_tensor_from_tensor_info)
signature_def_utils = SimpleNamespace(
    build_signature_def=build_signature_def,
    predict_signature_def=predict_signature_def,
    classification_signature_def=classification_signature_def,
    regression_signature_def=regression_signature_def,
    is_valid_signature=is_valid_signature,
)
