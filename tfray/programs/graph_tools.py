"""TensorFlow's tools on graphs and checkpoints that programs call: ``tensorflow.python.tools``."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.formats import files
from tfray.formats.files import PathLike
from tfray.formats.graph_proto import GraphDef, NodeDef
from tfray.formats.large_contents import octets_of
from tfray.formats.message import message_of_file
from tfray.formats.meta_graph_proto import MetaGraphDef
from tfray.formats.open_checkpoint import open_checkpoint
from tfray.formats.stand_in import pieces_of, with_marks
from tfray.framework.graph import Graph, get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.framework.plain_graph import messages
from tfray.library.inspect.graph_util import (
    convert_variables_to_constants,
    extract_sub_graph,
    freeze,
    remove_training_nodes,
    with_nodes,
)
from tfray.programs.internal_names import strip_name_scope
from tfray.session import Session
from tfray.training.checkpoints.checkpoint_utils import checkpoint_path
from tfray.training.checkpoints.import_meta_graph import import_meta_graph
from tfray.training.checkpoints.meta_graph import export_meta_graph
from tfray.training.checkpoints.saved_model import load


def create_meta_graph_def(
    meta_info_def: Any = None,
    graph_def: GraphDef | None = None,
    saver_def: Any = None,
    collection_list: Sequence[str] | None = None,
    graph: Graph | None = None,
) -> MetaGraphDef:
    """As `tf.train.export_meta_graph`, without a file and without all that a scope needs.

    Args:
        meta_info_def: As for `tf.train.export_meta_graph`, and so are all others.
        graph_def: Likewise.
        saver_def: Likewise.
        collection_list: Likewise.
        graph: Likewise.
    """
    return export_meta_graph(None, meta_info_def, graph_def, saver_def, collection_list, graph=graph)


def export_scoped_meta_graph(
    filename: PathLike | None = None,
    graph_def: GraphDef | None = None,
    graph: Graph | None = None,
    export_scope: str | None = None,
    as_text: bool = False,
    unbound_inputs_col_name: str = "unbound_inputs",
    **kwargs: Any,
) -> tuple[MetaGraphDef, dict[str, Any]]:
    """`tf.train.export_meta_graph`, and the variables of the scope by their names in it.

    Args:
        filename: As for `tf.train.export_meta_graph`, and so are all but the next one.
        graph_def: Likewise.
        graph: Likewise.
        export_scope: Likewise.
        as_text: Likewise.
        unbound_inputs_col_name: Accepted for TensorFlow 1's sake.
        **kwargs: Likewise.
    """
    graph = graph or get_default_graph()
    made = export_meta_graph(
        filename, graph_def=graph_def, graph=graph, export_scope=export_scope, as_text=as_text, **kwargs
    )
    return made, _variables_in(graph, export_scope)


def import_scoped_meta_graph(
    meta_graph_or_file: MetaGraphDef | PathLike,
    clear_devices: bool = False,
    graph: Graph | None = None,
    import_scope: str | None = None,
    input_map: Mapping[str, Any] | None = None,
    *,
    allow: Collection[str] = (),
    **unused: Any,
) -> dict[str, Any]:
    """`tf.train.import_meta_graph` into a graph.

    Args:
        meta_graph_or_file: As for `tf.train.import_meta_graph`.
        clear_devices: Likewise.
        graph: Where to; the default graph when None.
        import_scope: As for `tf.train.import_meta_graph`.
        input_map: Likewise.
        allow: Likewise.
        **unused: Accepted for TensorFlow 1's sake.

    Returns:
        The variables by their names in the scope.
    """
    graph = graph or get_default_graph()
    with graph.as_default():
        scope = "/".join(filter(None, (graph.get_name_scope(), import_scope)))
        import_meta_graph(meta_graph_or_file, clear_devices, import_scope, input_map, allow=allow)
        return _variables_in(graph, scope)


def _variables_in(graph: Graph, scope: str | None) -> dict[str, Any]:
    found = graph.get_collection(GraphKeys.GLOBAL_VARIABLES, scope)
    return {strip_name_scope(variable.name, scope): variable for variable in found}


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def freeze_graph(
    input_graph: PathLike,
    input_saver: str,
    input_binary: bool,
    input_checkpoint: PathLike,
    output_node_names: str,
    restore_op_name: str | None,
    filename_tensor_name: str | None,
    output_graph: PathLike,
    clear_devices: bool,
    initializer_nodes: str,
    variable_names_whitelist: str = "",
    variable_names_blacklist: str = "",
    input_meta_graph: PathLike | None = None,
    input_saved_model_dir: PathLike | None = None,
    saved_model_tags: str = "serve",
    checkpoint_version: int = 2,
    *,
    allow: Collection[str] = (),
) -> GraphDef:
    """Write the part of a graph that some operations need, with the values of a checkpoint in place of variables.

    Args:
        input_graph: A file of a graph, as bytes or as text.
        input_saver: Accepted for TensorFlow 1's sake, as are `input_binary`, `restore_op_name`, `filename_tensor_name`,
            `initializer_nodes` and `checkpoint_version`: the files themselves say what they are.
        input_binary: See `input_saver`.
        input_checkpoint: The checkpoint of the graph's variables, by their names.
        output_node_names: Names of operations, with commas between them.
        restore_op_name: See `input_saver`.
        filename_tensor_name: See `input_saver`.
        output_graph: The file to write; none if it is empty.
        clear_devices: Whether to leave out devices.
        initializer_nodes: See `input_saver`.
        variable_names_whitelist: Names of the variables that become constants, with commas; all if it is empty.
        variable_names_blacklist: Names of those that stay variables.
        input_meta_graph: A file of a meta graph, in place of `input_graph`.
        input_saved_model_dir: The folder of a saved model, in place of graph and checkpoint.
        saved_model_tags: The tags of its graph, with commas.
        allow: What operations of a meta graph or saved model may use: see `tf.import_graph_def`.

    Returns:
        The frozen graph.

    Raises:
        PermissionDeniedError: They use more than `allow` says.
        InvalidArgumentError: An operation is not there, or a variable is not in the checkpoint.
    """
    with octets_of(input_graph) if not (input_saved_model_dir or input_meta_graph) else nullcontext() as contents:
        return freeze_graph_with_def_protos(
            None if contents is None else message_of_file(GraphDef, contents),
            None,
            input_checkpoint,
            output_node_names,
            restore_op_name,
            filename_tensor_name,
            output_graph,
            clear_devices,
            initializer_nodes,
            variable_names_whitelist,
            variable_names_blacklist,
            input_meta_graph,
            input_saved_model_dir,
            saved_model_tags,
            allow=allow,
        )


def freeze_graph_with_def_protos(
    input_graph_def: GraphDef | None,
    input_saver_def: Any,
    input_checkpoint: PathLike,
    output_node_names: str,
    restore_op_name: str | None,
    filename_tensor_name: str | None,
    output_graph: PathLike,
    clear_devices: bool,
    initializer_nodes: str,
    variable_names_whitelist: str = "",
    variable_names_blacklist: str = "",
    input_meta_graph_def: MetaGraphDef | PathLike | None = None,
    input_saved_model_dir: PathLike | None = None,
    saved_model_tags: str | None = None,
    checkpoint_version: int = 2,
    *,
    allow: Collection[str] = (),
) -> GraphDef:
    """`freeze_graph` of a graph, or of a meta graph, that a program has at hand. The other arguments are the same."""
    outputs = _words(output_node_names)
    chosen = _words(variable_names_whitelist) or None, _words(variable_names_blacklist) or None
    if input_saved_model_dir or input_meta_graph_def:
        with Graph().as_default() as graph, Session(graph=graph) as session:
            if input_saved_model_dir:
                load(session, _words(saved_model_tags or ""), input_saved_model_dir, allow=allow)
            elif (saver := import_meta_graph(input_meta_graph_def or "", allow=allow)) is not None:
                saver.restore(session, input_checkpoint)
            frozen: GraphDef = convert_variables_to_constants(session, graph.as_graph_def(), outputs, *chosen)
    else:
        if input_graph_def is None:
            raise InvalidArgumentError("there is nothing to freeze: give a graph, a meta graph or a saved model")
        frozen = _frozen(input_graph_def, outputs, input_checkpoint, *chosen)
    for node in with_marks(frozen).node if clear_devices else ():
        node.ClearField("device")
    if output_graph:
        files.write_bytes(output_graph, *pieces_of(frozen))
    return frozen


def _frozen(
    graph_def: GraphDef, outputs: Sequence[str], path: PathLike, only: Sequence[str] | None, but: Sequence[str] | None
) -> GraphDef:
    plain = messages().plain_graph(extract_sub_graph(graph_def, outputs))
    checkpoint = open_checkpoint(checkpoint_path(path))
    names = [node.name for node in plain.node if node.op == "Variable"]
    names = [name for name in names if (only is None or name in only) and name not in (but or ())]
    missing = [name for name in names if name not in checkpoint.tensors]
    if missing:
        raise InvalidArgumentError(
            f"the checkpoint {checkpoint.prefix} has no {', '.join(missing)}; the graph has these variables"
        )
    frozen: GraphDef = messages().graph_message(freeze(plain, {name: checkpoint.read(name) for name in names}))
    return frozen


def optimize_for_inference(
    input_graph_def: GraphDef,
    input_node_names: Sequence[str],
    output_node_names: Sequence[str],
    placeholder_type_enum: int | Sequence[int],
    toco_compatible: bool = False,
) -> GraphDef:
    """The part of a graph between some operations, without what only training needs.

    TensorFlow folds batch normalisation into convolutions here. tfray does that when a step is compiled.

    Args:
        input_graph_def: A frozen graph.
        input_node_names: Operations that become placeholders.
        output_node_names: Operations that are wanted.
        placeholder_type_enum: Number of the placeholders' dtype, or a number for each.
        toco_compatible: Accepted for TensorFlow 1's sake.

    Returns:
        The smaller graph.
    """
    cut = strip_unused(input_graph_def, input_node_names, output_node_names, placeholder_type_enum)
    return remove_training_nodes(cut, output_node_names)


def strip_unused(
    input_graph_def: GraphDef,
    input_node_names: Sequence[str],
    output_node_names: Sequence[str],
    placeholder_type_enum: int | Sequence[int],
) -> GraphDef:
    """The part of a graph between some operations. Arguments are those of `optimize_for_inference`.

    Returns:
        The smaller graph.
    """
    kinds = (
        [placeholder_type_enum] * len(input_node_names)
        if isinstance(placeholder_type_enum, int)
        else (placeholder_type_enum)
    )
    dtype_of = dict(zip(input_node_names, kinds, strict=True))
    nodes = []
    for node in with_marks(input_graph_def).node:
        if node.name in dtype_of:
            placeholder = NodeDef(name=node.name, op="Placeholder")
            placeholder.attr["dtype"].type = dtype_of[node.name]
            if node.op == "Placeholder" and "shape" in node.attr:
                placeholder.attr["shape"].CopyFrom(node.attr["shape"])
            node = placeholder
        nodes.append(node)
    return extract_sub_graph(with_nodes(input_graph_def, nodes), output_node_names)


def print_tensors_in_checkpoint_file(
    file_name: PathLike,
    tensor_name: str | None,
    all_tensors: bool,
    all_tensor_names: bool = False,
    count_exclude_pattern: str = "",
) -> None:
    """Print tensors of a checkpoint, and how many numbers all together hold.

    Args:
        file_name: Path of the checkpoint.
        tensor_name: Name of a tensor to print. None, or empty, lists names, dtypes and shapes.
        all_tensors: Print the values of all.
        all_tensor_names: Print the names of all.
        count_exclude_pattern: A regular expression. Tensors with such a name are not counted.
    """
    checkpoint = open_checkpoint(checkpoint_path(file_name))
    shown = sorted(checkpoint.tensors) if all_tensors or all_tensor_names else [tensor_name] if tensor_name else []
    for name in shown:
        print("tensor_name: ", name)
        if all_tensors or name == tensor_name:
            print(_value(checkpoint, name))
    if not shown:
        for name, entry in sorted(checkpoint.tensors.items()):
            print(f"{name} ({entry.dtype.name}) {list(entry.shape)}")
    counted = [
        entry.shape
        for name, entry in checkpoint.tensors.items()
        if not (count_exclude_pattern and re.search(count_exclude_pattern, name))
    ]
    print("# Total number of params:", sum(int(np.prod(shape)) for shape in counted))


def _value(checkpoint: Any, name: str) -> Any:
    if name not in checkpoint.tensors:
        raise InvalidArgumentError(f"the checkpoint {checkpoint.prefix} has no tensor {name!r}")
    return checkpoint.read(name)
