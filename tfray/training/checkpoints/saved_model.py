"""`tf.saved_model`: graphs with signatures and values in a folder, for programs that only run them.

The folder is TensorFlow's own (see `saved_model_files`): TensorFlow and its servers read what is written here, unless a
graph has operations that only tfray has. Loading executes nothing; later only the graph's operations are run.

>>> tf.saved_model.export(session, "model", {"images": images}, {"scores": scores})  # pruned and frozen
>>> model = tf.saved_model.load_model("model")
>>> model(images=batch)["scores"]
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Final

import numpy as np

from tfray.errors import InvalidArgumentError, NotFoundError
from tfray.exchange.op_table import OWN
from tfray.exchange.saver_rules import is_table
from tfray.exchange.to_tensorflow import node_of
from tfray.formats import files
from tfray.formats.checkpoint_shard import Piece
from tfray.formats.files import PathLike
from tfray.formats.graph_proto import GraphDef
from tfray.formats.large_contents import Contents, fill
from tfray.formats.message import stand_in_of
from tfray.formats.meta_graph_proto import AssetFileDef, MetaGraphDef, SavedModel, SignatureDef, TensorInfo
from tfray.formats.open_checkpoint import open_checkpoint
from tfray.formats.stand_in import contents_of, pieces_of, with_marks
from tfray.formats.value_file import write_values
from tfray.formats.write_formats import TENSORFLOW
from tfray.framework.allowed_uses import checked_nodes
from tfray.framework.call_errors import damage_reported
from tfray.framework.dtypes import string
from tfray.framework.graph import Graph, Operation, Tensor, get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.framework.importer import from_graph_def, given_tensors
from tfray.framework.plain_graph import PlainGraph, messages
from tfray.library.input.lookup import tables_initializer
from tfray.library.inspect.graph_util import convert_variables_to_constants, extract_sub_graph
from tfray.library.variables.saveable_resource import SaveableResource
from tfray.library.variables.variables import Variable, global_variables_initializer, local_variables_initializer
from tfray.ops.arrays.grouping_ops import group
from tfray.ops.system.checkpoint_ops import STATE_MARK, TABLE_PARTS
from tfray.session import Session
from tfray.training.checkpoints.import_meta_graph import add_meta_graph, new_scope
from tfray.training.checkpoints.meta_graph import add_collection, clear_devices_of, describe
from tfray.training.checkpoints.saved_model_files import (
    ASSETS,
    FILE_NAME,
    INIT_OP,
    MAIN_OP,
    TEXT_FILE_NAME,
    TRAIN_OP,
    VALUES,
    folder_of,
    maybe_saved_model_directory,
    read_saved_model,
)
from tfray.training.checkpoints.saver import Saver
from tfray.training.checkpoints.signatures import (
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
    "CLASSIFY_OUTPUT_SCORES", "DEFAULT_SERVING_SIGNATURE_DEF_KEY", "GPU",
    "LEGACY_INIT_OP_KEY", "MAIN_OP_KEY", "PREDICT_INPUTS", "PREDICT_METHOD_NAME", "PREDICT_OUTPUTS", "REGRESS_INPUTS",
    "REGRESS_METHOD_NAME", "REGRESS_OUTPUTS", "SAVED_MODEL_FILENAME_PB", "SAVED_MODEL_FILENAME_PBTXT",
    "SAVED_MODEL_SCHEMA_VERSION", "SERVING", "TPU", "TRAINING", "VARIABLES_DIRECTORY", "VARIABLES_FILENAME", "Builder",
    "LoadedModel", "SavedModelBuilder", "SignatureDef", "TensorInfo", "build_signature_def",
    "build_tensor_info", "builder", "classification_signature_def", "constants", "contains_saved_model", "export",
    "get_tensor_from_tensor_info", "is_valid_signature", "load", "load_model", "loader", "main_op",
    "main_op_with_restore", "maybe_saved_model_directory", "predict_signature_def", "read_saved_model",
    "regression_signature_def", "signature_constants", "signature_def_utils", "simple_save", "tag_constants", "utils",
]
# fmt: on

_LEGACY_INIT_OP: Final = "legacy_init_op"

tag_constants = SimpleNamespace(SERVING="serve", TRAINING="train", EVAL="eval", GPU="gpu", TPU="tpu")
constants = SimpleNamespace(
    ASSETS_DIRECTORY=ASSETS,
    ASSETS_KEY="saved_model_assets",
    LEGACY_INIT_OP_KEY=_LEGACY_INIT_OP,
    MAIN_OP_KEY=MAIN_OP,
    SAVED_MODEL_FILENAME_PB=FILE_NAME,
    SAVED_MODEL_FILENAME_PBTXT=TEXT_FILE_NAME,
    SAVED_MODEL_SCHEMA_VERSION=1,
    VARIABLES_DIRECTORY="variables",
    VARIABLES_FILENAME="variables",
)

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


class MisuseError(InvalidArgumentError, AssertionError):
    """A model cannot be written as it is asked for. Also an `AssertionError`, which TensorFlow raises."""


class NoGraphError(NotFoundError, RuntimeError):
    """A model has no graph of such tags. Also a `RuntimeError`, which TensorFlow raises."""


# -- writing -------------------------------------------------------------------------------------------


class SavedModelBuilder:
    """Writes a saved model.

    Args:
        export_dir: The folder, which must not be there.

    Raises:
        AssertionError: The folder exists already. It is an `InvalidArgumentError` too, as the others below.
    """

    def __init__(self, export_dir: PathLike) -> None:
        self._folder = folder_of(export_dir)
        if files.exists(self._folder) and not (files.is_folder(self._folder) and not files.list_folder(self._folder)):
            raise MisuseError(f"Export directory already exists: {self._folder}; export to a new folder")
        self._model = SavedModel(saved_model_schema_version=constants.SAVED_MODEL_SCHEMA_VERSION)
        self._values: dict[str, Any] | None = None
        self._pieces: list[Piece] = []
        self._assets: dict[str, str] = {}
        self._contents: list[Contents | None] = []

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
            strip_default_attrs: Leave out attributes that have their defaults.
            saver: What saves and restores the variables: it says which, and their names in the model.

        Raises:
            AssertionError: The variables have been added already, or a tensor of a signature lacks its name or dtype.
            KeyError: A signature has a name that saved models use themselves.
            TypeError: `main_op` is no operation, or `saver` is no `Saver`.
            ValueError: The graph has an operation to run after loading already.
        """
        if self._values is not None:
            raise MisuseError("the variables have been added already: use add_meta_graph for further graphs")
        _check_signatures(signature_def_map or {})
        _check_main_op(main_op or legacy_init_op, sess.graph)
        variables = _variables_of(sess.graph, saver)
        self._values = sess.run(variables) if variables else {}
        for name, variable in variables.items():
            info, array = variable._save_slice_info, np.asarray(self._values[name])
            if info is None:
                self._pieces.append(Piece.whole(name, array))
            else:
                self._pieces.append(Piece(info.full_name, array, info.full_shape, info.var_offset))
        if resources := _resources_of(sess.graph):
            self._pieces += _states(sess, resources, f"{self._folder}.state")
        main_op = main_op or legacy_init_op
        self._add(
            sess.graph, tags, signature_def_map, assets_collection, main_op, clear_devices, strip_default_attrs, saver
        )

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
        if self._values is None:
            raise MisuseError("add a graph with its variables first: add_meta_graph_and_variables")
        graph = graph or get_default_graph()
        main_op = main_op or legacy_init_op
        self._add(graph, tags, signature_def_map, assets_collection, main_op, clear_devices, strip_default_attrs, saver)

    def add_frozen_graph(
        self, graph_def: PlainGraph, tags: Iterable[str], signature_def_map: Mapping[str, SignatureDef]
    ) -> None:
        """Add a graph without variables, such as `graph_util.convert_variables_to_constants` makes."""
        self._append(MetaGraphDef(graph_def=self._kept(messages().graph_message(graph_def))), tags, signature_def_map)

    def _add(
        self,
        graph: Graph,
        tags: Iterable[str],
        signatures: Mapping[str, SignatureDef] | None,
        assets: Sequence[Tensor] | None,
        main_op: Operation | None,
        clear_devices: bool,
        strip_default_attrs: bool,
        saver: object,
    ) -> None:
        _check_main_op(main_op, graph)
        plain = graph.as_plain()
        if clear_devices:
            clear_devices_of(plain.node)
        copy = from_graph_def(plain)  # gets a saver, which the program's own graph need not have
        variables, resources = _variables_of(graph, saver), _resources_of(graph)
        made = MetaGraphDef()
        describe(made, strip_default_attrs)
        if isinstance(saver, Saver):
            made.saver_def.CopyFrom(saver.as_saver_def())
        elif variables or resources:
            with copy.as_default():
                copies: list[Any] = [_copied(variable) for variable in variables.values()]
                copies += [SaveableResource(each.name, copy.tensor_named(each.handle.name)) for each in resources]
                made.saver_def.CopyFrom(Saver(copies, write_format=TENSORFLOW).as_saver_def())
        made.graph_def.CopyFrom(self._kept(messages().graph_message(copy, strip_default_attrs=strip_default_attrs)))
        for name in graph.get_all_collection_keys():
            add_collection(made, name, graph.get_collection(name))
        if main_op is not None:
            made.collection_def[MAIN_OP].node_list.value[:] = [main_op.name]
        for tensor in assets or ():
            name = self._asset_name(_asset_path(tensor))
            made.asset_file_def.append(AssetFileDef(tensor_info=TensorInfo(name=tensor.name), filename=name))
        self._append(made, tags, signatures)

    def _asset_name(self, path: str) -> str:
        """The name of a file in the model's folder: that which it has, and a number where another file has that."""
        name, count = os.path.basename(path), 0
        while self._assets.setdefault(name, path) != path:
            count += 1
            name = f"{os.path.basename(path)}_{count}"
        return name

    def _kept(self, graph_def: GraphDef) -> GraphDef:
        """A graph with marks of its large constants, which stay where they are until the model is written."""
        self._contents.append(contents_of(graph_def))
        marked: GraphDef = with_marks(graph_def)
        return marked

    def _append(self, made: MetaGraphDef, tags: Iterable[str], signatures: Mapping[str, SignatureDef] | None) -> None:
        _check_signatures(signatures or {})
        made.meta_info_def.tags.extend(sorted(tags))
        for name, signature in (signatures or {}).items():
            made.signature_def[name].CopyFrom(signature)
        self._model.meta_graphs.append(made)

    def save(self, as_text: bool = False) -> str:
        """Write everything.

        Args:
            as_text: Write the graph as the text of a message.

        Returns:
            The path of the file with the graphs.

        Raises:
            InvalidArgumentError: The graphs take more than 2 GiB: leave large values in variables.
        """
        if as_text:
            fill(self._model)
        contents = [str(self._model).encode()] if as_text else pieces_of(self._model)
        files.make_folders(f"{self._folder}/{os.path.dirname(VALUES)}")
        if self._pieces:
            write_values(f"{self._folder}/{VALUES}", self._pieces, TENSORFLOW)
        if self._assets:
            files.make_folders(f"{self._folder}/{ASSETS}")
        for name, path in self._assets.items():
            files.copy(path, f"{self._folder}/{ASSETS}/{name}")
        path = f"{self._folder}/{TEXT_FILE_NAME if as_text else FILE_NAME}"
        files.write_bytes(path, *contents)  # last: without it there is no model
        return path


def _copied(variable: Variable) -> Variable:
    """A variable in a copy of its graph, which is the current graph."""
    copy = Variable.from_proto(variable.to_proto())
    copy._save_slice_info = variable._save_slice_info
    return copy


def _check_main_op(main_op: object, graph: Graph) -> None:
    if main_op is None:
        return
    if not isinstance(main_op, Operation):
        raise TypeError(f"main_op is to be an Operation, not {main_op!r}; tf.group makes one of a tensor")
    for name in (MAIN_OP, _LEGACY_INIT_OP):
        if graph.get_collection(name) not in ([], [main_op]):
            raise ValueError(f"the graph has an operation to run after loading already, in the collection {name!r}")


def _check_signatures(signatures: Mapping[str, SignatureDef]) -> None:
    for name, signature in signatures.items():
        if name in (INIT_OP, TRAIN_OP):
            raise KeyError(f"a signature may not be called {name!r}: saved models use that name themselves")
        for key, info in (*signature.inputs.items(), *signature.outputs.items()):
            kind = info.WhichOneof("encoding")
            if kind is None or (kind != "composite_tensor" and not info.dtype):
                raise MisuseError(f"tensor {key!r} of signature {name!r} is to have a name and a dtype")


def _variables_of(graph: Graph, saver: object = None) -> dict[str, Variable]:
    """The variables of a graph, or those that a saver saves, by their names in checkpoints."""
    if saver is not None:
        if not isinstance(saver, Saver):
            raise TypeError(f"saver is to be a tf.train.Saver, not {saver!r}")
        if (listed := saver.variables()) is not None:
            return listed
    keys = (GraphKeys.GLOBAL_VARIABLES, GraphKeys.MODEL_VARIABLES)
    return {variable.op.name: variable for key in keys for variable in graph.get_collection(key)}


def _resources_of(graph: Graph) -> list[SaveableResource]:
    """State that is no variable: tables, and what is of types that TensorFlow does not have."""
    found = [each for each in graph.get_collection(GraphKeys.SAVEABLE_OBJECTS) if isinstance(each, SaveableResource)]
    return [each for each in found if is_table(each.handle) or node_of(each.op).op.startswith(OWN)]


def _states(sess: Session, resources: Sequence[SaveableResource], folder: str) -> list[Piece]:
    """The state of resources, of which the devices write a checkpoint first."""
    try:
        with sess.graph.as_default():
            path = Saver(resources).save(sess, f"{folder}/state", write_meta_graph=False, write_state=False)
        checkpoint = open_checkpoint(str(path))
        tables = [each.name for each in resources if is_table(each.handle)]
        there = {f"{name}{STATE_MARK}{part}": f"{name}-{part}" for name in tables for part in TABLE_PARTS}
        others = [name for name in checkpoint.tensors if name.partition(STATE_MARK)[0] not in tables]
        there |= {name: name for name in others}
        return [Piece.whole(name, checkpoint.read(own)) for own, name in there.items()]
    finally:
        if files.exists(folder):
            files.remove_tree(folder)


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
    whole = _with_placeholders(session.graph.as_plain(), inputs.values())
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


def load(
    sess: Session,
    tags: Collection[str],
    export_dir: PathLike,
    import_scope: str | None = None,
    *,
    allow: Collection[str] = (),
    input_map: Mapping[str, Any] | None = None,
    clear_devices: bool = False,
    **saver_kwargs: Any,
) -> MetaGraphDef:
    """Add a saved model to a session's graph, and set its variables.

    Of a model of TensorFlow 2 what its signatures need is added.

    Args:
        sess: The session.
        tags: Tags of the graph; it must have exactly these.
        export_dir: The folder.
        import_scope: Name scope for the operations.
        allow: What its operations may use besides its own assets: ``"files"`` (to read and write them), ``"python"``
            (functions of this process). In TensorFlow a model may read and write any file.
        input_map: As for `tf.import_graph_def`.
        clear_devices: Leave out devices.
        **saver_kwargs: Accepted for TensorFlow 1 programs.

    Returns:
        What was loaded; its ``signature_def`` names inputs and outputs.

    Raises:
        NotFoundError: There is no model, or none with these tags; or it has no value of a variable. The first is an
            `OSError` too, the second a `RuntimeError`.
        PermissionDeniedError: Operations use what is not in `allow`; the error lists them.
        UnimplementedError: Operation types have no equivalent; the error names each.
        DataLossError: A file is damaged; that of the graphs: an `OSError` too.
    """
    folder = folder_of(export_dir)
    model = read_saved_model(folder)
    found = _with_tags(with_marks(model).meta_graphs, tags, folder)
    with damage_reported(f"the graph in {folder}"), sess.graph.as_default():
        prefix = add_graph(found, folder, import_scope, input_map, allow, clear_devices)
        _set_variables(sess, found, prefix, f"{folder}/{VALUES}")
        main_op = main_op_of(found)
        if main_op:
            sess.run(sess.graph.get_operation_by_name(prefix + main_op))
    loaded: MetaGraphDef = stand_in_of(MetaGraphDef, found, contents_of(model))
    return loaded


def find_graph(export_dir: PathLike, tags: Collection[str]) -> MetaGraphDef:
    """The graph of a saved model that has exactly these tags; errors as of `load`."""
    folder = folder_of(export_dir)
    return _with_tags(with_marks(read_saved_model(folder)).meta_graphs, tags, folder)


def add_graph(
    found: MetaGraphDef,
    folder: str,
    import_scope: str | None = None,
    input_map: Mapping[str, Any] | None = None,
    allow: Collection[str] = (),
    clear_devices: bool = False,
    made: dict[str, Any] | None = None,
) -> str:
    """Add a graph to the current one, without values; return what the names of its operations begin with.

    The values of `made` become the operations and tensors that its keys name in the graph of the model.
    """
    prefix = new_scope(import_scope)
    if found.HasField("object_graph_def"):
        found.graph_def.CopyFrom(extract_sub_graph(found.graph_def, _roots(found)))
    given = given_tensors(input_map, prefix)
    assets = {asset.tensor_info.name: asset.filename for asset in found.asset_file_def}
    add_model(found, assets, folder, prefix, given, allow, clear_devices, made)
    return prefix


def add_model(
    found: MetaGraphDef,
    assets: Mapping[str, str],
    folder: str,
    prefix: str = "",
    given: Mapping[str, Tensor] | None = None,
    allow: Collection[str] = (),
    clear_devices: bool = False,
    made: dict[str, Any] | None = None,
) -> Saver | None:
    """Add the graph of a model to the current one, below `prefix`; see `load`.

    Args:
        found: The graph.
        assets: Names of files in the folder of assets, by the tensors that are their paths.
        folder: The model's folder.
        prefix: A `new_scope`.
        given: What replaces tensors of the graph, by name.
        allow: What its operations may use besides its assets.
        clear_devices: Leave out devices.
        made: Names of operations and tensors of the graph, whose values become these.

    Returns:
        Its saver; see `import_meta_graph`.
    """
    plain = messages().plain_graph(found.graph_def, [name.partition(":")[0] for name in _names(found)], given)
    if clear_devices:
        clear_devices_of(plain.node)
    inside = _set_assets(plain, assets, folder)
    inputs = {info.name for signature in found.signature_def.values() for info in signature.inputs.values()}
    plain.node = [replace(n, is_loaded=False) for n in checked_nodes(plain.node, allow, inside, inputs)]
    return add_meta_graph(found, plain, prefix, given, allow, made)


def _names(found: MetaGraphDef) -> Iterator[str]:
    """The tensors that the signatures name."""
    for signature in found.signature_def.values():
        for info in (*signature.inputs.values(), *signature.outputs.values()):
            parts = info.coo_sparse
            names = info.name, parts.values_tensor_name, parts.indices_tensor_name, parts.dense_shape_tensor_name
            yield from filter(None, names)


def _roots(found: MetaGraphDef) -> list[str]:
    """The operations that running and restoring a model needs."""
    saver = found.saver_def
    return [*_names(found), *filter(None, (saver.filename_tensor_name, saver.restore_op_name, main_op_of(found)))]


def main_op_of(found: MetaGraphDef) -> str:
    """The operation to run after loading, or nothing."""
    if INIT_OP in found.signature_def:
        return next((info.name for info in found.signature_def[INIT_OP].outputs.values()), "")
    for name in (MAIN_OP, _LEGACY_INIT_OP):
        if name in found.collection_def:
            return next(iter(found.collection_def[name].node_list.value), "")
    return ""


def _set_variables(sess: Session, found: MetaGraphDef, prefix: str, path: str) -> None:
    """Give the variables the values of the model's checkpoint."""
    saver = found.saver_def
    if saver.restore_op_name:
        restore = sess.graph.get_operation_by_name(prefix + saver.restore_op_name)
        sess.run(restore, {prefix + saver.filename_tensor_name: files.absolute(path)})
        return
    variables = {name: variable for name, variable in _variables_of(sess.graph).items() if name.startswith(prefix)}
    if not variables:
        return
    values = open_checkpoint(path)
    feeds, initializers = {}, []
    for name, variable in variables.items():
        if name.removeprefix(prefix) in values.tensors:
            initializers.append(variable.initializer)
            feeds[initializers[-1].inputs[1]] = values.read(name.removeprefix(prefix))
    sess.run(initializers, feeds)


def _with_tags(graphs: Iterable[MetaGraphDef], tags: Collection[str], folder: str) -> MetaGraphDef:
    graphs = list(graphs)
    for each in graphs:
        if set(each.meta_info_def.tags) == set(tags):
            return each
    there = " and ".join(str(list(each.meta_info_def.tags)) for each in graphs) or "none"
    raise NoGraphError(f"{folder} has no graph with the tags {sorted(tags)}; it has {there}")


def _set_assets(graph: PlainGraph, assets: Mapping[str, str], folder: str) -> set[str]:
    """Make the constants of assets name the files of the folder. Returns those names that are certain to be in it."""
    inside = set()
    paths = {name.partition(":")[0]: f"{folder}/{ASSETS}/{os.path.basename(file)}" for name, file in assets.items()}
    for node in graph.node:
        path = paths.get(node.name)
        present = node.attr.get("value", np.empty([]))
        if path is not None and node.op in ("Const", "Placeholder") and isinstance(present, np.ndarray):
            value = np.empty(present.shape, object)
            value.fill(path.encode())
            node.op, node.attr = "Const", {"value": value, "dtype": string}
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
        signatures = {name: each for name, each in loaded.signature_def.items() if name != INIT_OP}
        if signature not in signatures:
            known = ", ".join(sorted(signatures)) or "none"
            raise NotFoundError(f"{files.as_path(export_dir)} has no signature {signature!r}; it has {known}")
        called = signatures[signature]
        self._offer(
            session, signatures, signature, sorted(called.inputs), sorted(called.outputs), files.as_path(export_dir)
        )

    @classmethod
    def of_graph(
        cls, graph: Graph, inputs: Mapping[str, Tensor], outputs: Mapping[str, Tensor], source: str
    ) -> LoadedModel:
        """A graph without variables that was made of the file `source`, as a function.

        Inputs and outputs have the order that they are given in.
        """
        made = cls.__new__(cls)
        taken = {name: build_tensor_info(tensor) for name, tensor in inputs.items()}
        given = {name: build_tensor_info(tensor) for name, tensor in outputs.items()}
        signature = build_signature_def(taken, given, PREDICT_METHOD_NAME)
        key = signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY
        made._offer(Session(graph=graph), {key: signature}, key, list(inputs), list(outputs), source)
        return made

    def _offer(
        self,
        session: Session,
        signatures: dict[str, SignatureDef],
        key: str,
        order: list[str],
        result_order: list[str],
        source: str,
    ) -> None:
        self.session = session
        self._order = order
        self._result_order = result_order
        self.signatures = signatures
        self._signature = signatures[key]
        with damage_reported(f"the graph in {source}"):
            self._call = self._function(self._signature)

    @property
    def graph(self) -> Graph:
        """Its graph."""
        return self.session.graph

    def _function(self, signature: SignatureDef) -> Callable[..., Any]:
        # The maps of a message have no order that could be relied on.
        outputs = {name: self._tensor(signature.outputs[name]) for name in self._result_order}
        return self.session.make_callable(outputs, [self._tensor(signature.inputs[name]) for name in self._order])

    def _tensor(self, info: TensorInfo) -> Any:
        return get_tensor_from_tensor_info(info, self.session.graph)

    @property
    def inputs(self) -> dict[str, TensorInfo]:
        """Its arguments: those of a saved model in the order of their names, which is all that it knows."""
        return {name: self._signature.inputs[name] for name in self._order}

    @property
    def outputs(self) -> dict[str, TensorInfo]:
        """Its results: those of a saved model in the order of their names."""
        return {name: self._signature.outputs[name] for name in self._result_order}

    def __call__(self, *values: Any, **named: Any) -> dict[str, Any]:
        """Run on arrays, given in the order of `inputs` or by name. Returns arrays by name."""
        names = self._order
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
