"""What files of graphs and models hold, as plain data and as tables: for ``tfray inspect``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

import click

from tfray.cli.file_tables import print_table, printable, shape_text
from tfray.errors import NotFoundError
from tfray.formats import files
from tfray.formats.checkpoint import CheckpointFiles
from tfray.formats.graph_proto import GraphDef
from tfray.formats.large_contents import size_of
from tfray.formats.meta_graph_proto import MetaGraphDef, SavedModel, SignatureDef, TensorInfo
from tfray.formats.open_checkpoint import open_checkpoint
from tfray.formats.stand_in import with_marks
from tfray.formats.tensor_proto import TensorShapeProto
from tfray.framework.dtypes import as_dtype
from tfray.training.checkpoints.convert_model import signatures_of
from tfray.training.checkpoints.model_file import ModelFile
from tfray.training.checkpoints.saved_model_files import ASSETS, VALUES

KINDS: Final = {GraphDef: "graph", MetaGraphDef: "meta graph", SavedModel: "saved model"}
ONNX_SUFFIX: Final = ".onnx"
_PLACEHOLDERS: Final = ("Placeholder", "PlaceholderV2", "PlaceholderWithDefault")
_VARIABLES: Final = ("VarHandleOp", "Variable", "VariableV2")
_MOST_ENDS: Final = 20
"""How many operations that nothing takes from are shown."""


# -- as plain data -------------------------------------------------------------------------------------


def model_contents(file: ModelFile) -> dict[str, Any]:
    """What a file or folder holds, ready for JSON."""
    message = with_marks(file.message)
    is_folder = isinstance(message, SavedModel)
    graphs = message.meta_graphs if is_folder else [message]
    found: dict[str, Any] = {
        "path": file.path,
        "kind": next(name for kind, name in KINDS.items() if isinstance(message, kind)),
        "form": file.form,
        "bytes": _folder_bytes(file.path) if is_folder else files.stat(file.path).length,
        "graphs": [_meta_contents(each) if isinstance(each, MetaGraphDef) else _contents(each) for each in graphs],
    }
    if is_folder:
        opened = variables_of(file)
        found["tensors"] = [] if opened is None else tensor_records(opened)
        found["assets"] = _assets(file)
    return found


def variables_of(file: ModelFile) -> CheckpointFiles | None:
    """The checkpoint in the folder of a saved model; None where there is none."""
    try:
        return open_checkpoint(f"{file.path}/{VALUES}")
    except NotFoundError:
        return None


def tensor_records(opened: CheckpointFiles) -> list[dict[str, Any]]:
    """The tensors of a checkpoint."""
    return [
        {"name": e.name, "dtype": e.dtype.name, "shape": list(e.shape), "bytes": e.size_bytes, "parts": len(e.slices)}
        for e in sorted(opened.tensors.values(), key=lambda entry: entry.name)
    ]


def signature_records(infos: Mapping[str, TensorInfo]) -> dict[str, dict[str, Any]]:
    """The inputs or outputs of a signature, by their names."""
    return {
        name: {
            "tensor": infos[name].name or infos[name].coo_sparse.values_tensor_name,
            "dtype": dtype_name(infos[name].dtype),
            "shape": sizes_of(infos[name].tensor_shape),
        }
        for name in sorted(infos)
    }


def dtype_name(number: int) -> str:
    """The name of a dtype by TensorFlow's number."""
    try:
        return as_dtype(int(number)).name
    except TypeError:
        return f"type {number}"


def sizes_of(shape: TensorShapeProto) -> list[int | None] | None:
    """The sizes in the message of a shape, None for those that are not known; None for an unknown rank."""
    return None if shape.unknown_rank else [None if dim.size < 0 else dim.size for dim in shape.dim]


def _meta_contents(meta: MetaGraphDef) -> dict[str, Any]:
    info = meta.meta_info_def
    return {
        "tags": sorted(info.tags),
        "tensorflow_version": info.tensorflow_version,
        "signatures": {name: _signature(each) for name, each in signatures_of(meta).items()},
        "collections": {name: _length(meta.collection_def[name]) for name in sorted(meta.collection_def)},
        **_contents(meta.graph_def),
    }


def _signature(signature: SignatureDef) -> dict[str, Any]:
    return {
        "method": signature.method_name,
        "inputs": signature_records(signature.inputs),
        "outputs": signature_records(signature.outputs),
    }


def _length(collection: Any) -> int:
    kind = collection.WhichOneof("kind")
    return len(getattr(collection, kind).value) if kind else 0


def _contents(graph: GraphDef) -> dict[str, Any]:
    bodies = [graph.node, *(function.node_def for function in graph.library.function)]
    taken = {text.removeprefix("^").partition(":")[0] for node in graph.node for text in node.input}
    types = Counter(node.op for body in bodies for node in body)
    return {
        "operations": len(graph.node),
        "functions": len(graph.library.function),
        "constant_bytes": sum(size_of(n.attr["value"]) for body in bodies for n in body if n.op == "Const"),
        "inputs": [_declared(node) for node in graph.node if node.op in _PLACEHOLDERS],
        "variables": [_declared(node) for node in graph.node if node.op in _VARIABLES],
        "ends": [{"name": node.name, "type": node.op} for node in graph.node if node.name not in taken],
        "types": dict(sorted(types.items(), key=lambda item: (-item[1], item[0]))),
    }


def _declared(node: Any) -> dict[str, Any]:
    return {
        "name": node.name,
        "dtype": dtype_name(node.attr["dtype"].type),
        "shape": sizes_of(node.attr["shape"].shape) if "shape" in node.attr else None,
    }


def _assets(file: ModelFile) -> list[dict[str, Any]]:
    folder = f"{file.path}/{ASSETS}"
    names = files.list_folder(folder) if files.is_folder(folder) else []
    return [{"name": name, "bytes": files.stat(f"{folder}/{name}").length} for name in names]


def _folder_bytes(folder: str, depth: int = 3) -> int:
    total = 0
    for name in files.list_folder(folder):
        found = files.stat(f"{folder}/{name}")
        if not found.is_directory:
            total += found.length
        elif depth:
            total += _folder_bytes(f"{folder}/{name}", depth - 1)
    return total


# -- as tables -----------------------------------------------------------------------------------------


def print_contents(contents: Mapping[str, Any]) -> None:
    """Print what `model_contents` gives."""
    for graph in contents["graphs"]:
        _print_graph(graph)
    if contents.get("tensors"):
        print_tensors(contents["tensors"])
        click.echo()
    if contents.get("assets"):
        print_table(("asset", "bytes"), [(each["name"], f"{each['bytes']:,}") for each in contents["assets"]])
        click.echo()


def model_summary(contents: Mapping[str, Any]) -> str:
    """What `model_contents` gives, in a line."""
    return f"{contents['path']}: {contents['kind']}, {contents['form']}, {contents['bytes']:,} bytes"


def print_tensors(records: Iterable[Mapping[str, Any]]) -> None:
    """Print what `tensor_records` gives."""
    print_table(
        ("tensor", "dtype", "shape", "bytes", "parts"),
        [(e["name"], e["dtype"], shape_text(e["shape"]), f"{e['bytes']:,}", str(e["parts"])) for e in records],
    )


def _print_graph(graph: Mapping[str, Any]) -> None:
    signatures = graph.get("signatures", {})
    click.echo(_heading(graph))
    _print_counts("operations by type", graph["types"])
    _print_counts("collections", graph.get("collections", {}))
    click.echo()
    if signatures:
        rows = [row for name, each in signatures.items() for row in _signature_rows(name, each)]
        print_table(("signature", "", "key", "dtype", "shape", "tensor"), rows)
        click.echo()
    else:
        _print_ends(graph)


def _heading(graph: Mapping[str, Any]) -> str:
    tags = f" with the tags {', '.join(graph['tags'])}" if graph.get("tags") else ""
    version = f", of TensorFlow {graph['tensorflow_version']}" if graph.get("tensorflow_version") else ""
    sizes = f"{graph['operations']} operations, {graph['functions']} functions"
    return printable(f"graph{tags}{version}: {sizes}, {graph['constant_bytes']:,} bytes of constants")


def _print_counts(name: str, counts: Mapping[str, int]) -> None:
    if counts:
        click.echo(f"{name}: " + ", ".join(f"{printable(key)} {count}" for key, count in counts.items()))


def _signature_rows(name: str, signature: Mapping[str, Any]) -> Iterable[tuple[str, ...]]:
    for kind in ("inputs", "outputs"):
        for key, each in signature[kind].items():
            yield name, kind.removesuffix("s"), key, each["dtype"], shape_text(each["shape"]), each["tensor"]


def _print_ends(graph: Mapping[str, Any]) -> None:
    """Of a graph without signatures, what it may be fed, its variables, and what it seems to be for."""
    rows = [
        (kind, each["name"], each["dtype"], shape_text(each["shape"]))
        for kind in ("inputs", "variables")
        for each in graph[kind]
    ]
    if rows:
        print_table(("", "name", "dtype", "shape"), [(kind.removesuffix("s"), *rest) for kind, *rest in rows])
        click.echo()
    ends = graph["ends"][:_MOST_ENDS]
    if ends:
        print_table(("nothing takes from", "type"), [(each["name"], each["type"]) for each in ends])
        if len(graph["ends"]) > len(ends):
            click.echo(f"and {len(graph['ends']) - len(ends)} more")
        click.echo()
