"""``tfray inspect`` and ``tfray convert``: what a file holds, and the same in another format."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from typing import Any, Final

import click

from tfray.cli.command import BadRequest, GivenPath, OneLineErrors, reported_errors
from tfray.cli.file_tables import printable
from tfray.cli.model_contents import (
    KINDS,
    ONNX_SUFFIX,
    model_contents,
    model_summary,
    print_contents,
    print_tensors,
    signature_records,
    tensor_records,
    variables_of,
)
from tfray.exchange.op_table import OWN
from tfray.formats import files
from tfray.formats.checkpoint import INDEX_SUFFIX, CheckpointFiles
from tfray.formats.meta_graph_proto import SavedModel
from tfray.formats.open_checkpoint import open_checkpoint, verify_checkpoint
from tfray.formats.safetensors import SUFFIX as SAFETENSORS_SUFFIX
from tfray.formats.stand_in import with_marks
from tfray.formats.write_formats import TENSORFLOW, TFRAY
from tfray.framework.allowed_uses import KINDS as USES
from tfray.training.checkpoints.checkpoint_management import checkpoint_exists
from tfray.training.checkpoints.checkpoint_utils import checkpoint_path
from tfray.training.checkpoints.convert_checkpoint import SAFETENSORS, convert_checkpoint
from tfray.training.checkpoints.convert_model import (
    frozen_signature,
    open_signature,
    rewrite_saved_model,
    save_signature,
    write_message,
)
from tfray.training.checkpoints.model_file import BINARY, JSON, TEXT, ModelFile, open_model
from tfray.training.checkpoints.saved_model import LoadedModel

_VERIFIED: Final = ", all as they were written"
_SUFFIXES: Final = {".pb": BINARY, ".pbtxt": TEXT}
"""The form of a file of a graph by the end of its name."""


def parse_allowed(context: click.Context, option: click.Parameter, text: str | None) -> list[str]:
    """What the operations of a model may use: words with commas between them."""
    allowed = [word.strip() for word in (text or "").split(",") if word.strip()]
    if not set(allowed) <= set(USES):
        raise BadRequest(f"--allow {text}: what can be allowed is {', '.join(USES)}")
    return allowed


SIGNATURE: Final = click.option(
    "--signature",
    metavar="NAME",
    help="The signature of a saved model. Without it: serving_default, or the only one there is.",
)
TAGS: Final = click.option(
    "--tag", "tags", metavar="TAG", multiple=True, help="A tag of the graph, several if it has more. Without it: serve."
)
ALLOW: Final = click.option(
    "--allow",
    metavar="files,python",
    callback=parse_allowed,
    help="What the model's operations may use: files other than its own, Python functions.",
)


# -- inspect -------------------------------------------------------------------------------------------


@click.command("inspect", cls=OneLineErrors)
@click.argument("path", type=GivenPath())
@click.option(
    "--json", "as_json", is_flag=True, help="Print JSON: of a checkpoint, a list with a record for each tensor."
)
@click.option("--verify", is_flag=True, help="Read every tensor and compare it with its checksum.")
@click.option("--debug", is_flag=True, help="Show Python's traceback of an error.")
def inspect_file(path: str, as_json: bool, verify: bool, debug: bool) -> None:
    """Tell what a file holds, without reading the values of variables.

    PATH is that of a checkpoint of tfray or TensorFlow (without .index), of a .safetensors file, of a folder, whose
    newest checkpoint is listed; of a graph or meta graph (.pb, .pbtxt, .meta), of the folder of a saved model, or of a
    file of ONNX (.onnx).
    """
    with reported_errors(debug, ()):
        if path.endswith(ONNX_SUFFIX):
            from tfray.cli.onnx_contents import onnx_contents  # other commands do not wait for its rules

            _inspect(path, onnx_contents(path), None, as_json, verify)
            return
        model = open_model(path)
        if model is None:
            _inspect_checkpoint(_opened(path), as_json, verify)
        else:
            opened = variables_of(model) if isinstance(model.message, SavedModel) else None
            _inspect(path, model_contents(model), opened, as_json, verify)


def _inspect_checkpoint(opened: CheckpointFiles, as_json: bool, verify: bool) -> None:
    records = tensor_records(opened)
    if verify:
        verify_checkpoint(opened)
    if as_json:
        click.echo(json.dumps(records))
        return
    print_tensors(records)
    click.echo(f"{_summary(opened)}{_VERIFIED if verify else ''}")


def _inspect(path: str, contents: dict[str, Any], opened: CheckpointFiles | None, as_json: bool, verify: bool) -> None:
    if verify and opened is None:
        raise BadRequest(f"{path} has no checksums: --verify is for checkpoints, and models with variables")
    if verify and opened is not None:
        verify_checkpoint(opened)
    if as_json:
        click.echo(json.dumps(contents))
        return
    print_contents(contents)
    click.echo(f"{model_summary(contents)}{_VERIFIED if verify else ''}")


def _opened(path: str) -> CheckpointFiles:
    return open_checkpoint(checkpoint_path(path.removesuffix(INDEX_SUFFIX)))


def _summary(opened: CheckpointFiles) -> str:
    entries = opened.tensors.values()
    size = sum(entry.size_bytes for entry in entries)
    return f"{opened.prefix}: {len(entries)} tensors, {size:,} bytes, {opened.format_name}"


# -- convert -------------------------------------------------------------------------------------------


@click.command(cls=OneLineErrors)
@click.argument("source", metavar="IN", type=GivenPath())
@click.argument("target", metavar="OUT", type=GivenPath())
@click.option(
    "--to",
    "to",
    type=click.Choice([TFRAY, TENSORFLOW, SAFETENSORS, BINARY, TEXT]),
    help="The format of OUT. Of a checkpoint, without it: safetensors if OUT ends so, TensorFlow's if IN is tfray's, "
    "and else tfray's. Of a graph: what the end of OUT says, .pb or .pbtxt, or else the one that IN has not.",
)
@SIGNATURE
@TAGS
@ALLOW
@click.option("--overwrite", is_flag=True, help="Replace what is there.")
@click.option("--debug", is_flag=True, help="Show Python's traceback of an error.")
def convert(source: str, target: str, to: str | None, overwrite: bool, debug: bool, **choices: Any) -> None:
    """Write a checkpoint, a graph or a saved model in another format.

    IN is what `tfray inspect` takes. OUT is for

    \b
    a checkpoint          the path of another one, without .index:
                          tfray's, TensorFlow's (V2), or safetensors;
    a graph, meta graph   a file of it, as bytes or as text;
    a saved model         a file .pb or .pbtxt: the graph of a signature, with
                          constants in place of variables; a file .onnx of
                          the same; of the JSON form that tfray once wrote
                          also TensorFlow's folder;
    a file of ONNX        a file .pb or .pbtxt, or the folder of a saved model.

    Values do not change. Those of optimizers, queues and random streams are tensors in each format of checkpoints.
    """
    with reported_errors(debug, ()):
        model = None if source.endswith(ONNX_SUFFIX) else open_model(source)
        if source.endswith(ONNX_SUFFIX) or (model is not None and isinstance(model.message, SavedModel)):
            _convert_saved(source, model, target, to, overwrite, **choices)
        elif model is None:
            _convert_checkpoint(source, target, to, overwrite)
        else:
            _convert_graph(model, target, to, overwrite)


def _convert_checkpoint(source: str, target: str, to: str | None, overwrite: bool) -> None:
    opened = _opened(source)
    target = target.removesuffix(INDEX_SUFFIX)
    _check_free(target, checkpoint_exists(target) and not overwrite)
    if to is None:
        named = target.endswith(SAFETENSORS_SUFFIX)
        to = SAFETENSORS if named else TENSORFLOW if opened.format_name == "tfray" else TFRAY
    _check_format(source, to, (TFRAY, TENSORFLOW, SAFETENSORS))
    convert_checkpoint(opened, target, to)
    click.echo(_summary(open_checkpoint(target)))


def _convert_graph(model: ModelFile, target: str, to: str | None, overwrite: bool) -> None:
    form = _form(model.path, target, to) or (TEXT if model.form == BINARY else BINARY)
    _check_free(target, files.exists(target) and not overwrite)
    _write_graph(model.message, target, form)


def _convert_saved(
    source: str, model: ModelFile | None, target: str, to: str | None, overwrite: bool, signature: str | None,
    tags: Sequence[str], allow: Sequence[str],
) -> None:  # fmt: skip
    """Convert a saved model, or a file of ONNX if `model` is None."""
    form, to_onnx = _form(source, target, to), target.endswith(ONNX_SUFFIX)
    if to_onnx and model is None:
        raise BadRequest(f"{source} is a file of ONNX already")
    if form is None and not to_onnx and model is not None:
        _rewrite(model, target, allow)
        return
    _check_free(target, files.exists(target) and not (overwrite and (form or to_onnx)))
    with contextlib.closing(opened_model(source, signature, tags, allow)) as loaded:
        if form is not None:
            ends = f"\ninputs {_tensors(loaded.inputs)}\noutputs {_tensors(loaded.outputs)}"
            _write_graph(frozen_signature(loaded), target, form, ends)
        elif to_onnx:
            from tfray.onnx.to_onnx import export  # other commands do not wait for its rules

            export(loaded, target)
            click.echo(f"{target}: model of ONNX, {files.stat(target).length:,} bytes")
        else:
            save_signature(loaded, target)
            click.echo(f"{target}: saved model, {BINARY}")


def opened_model(
    path: str, signature: str | None = None, tags: Sequence[str] = (), allow: Sequence[str] = ()
) -> LoadedModel:
    """A signature of a saved model, or what a file of ONNX computes, loaded."""
    if not path.endswith(ONNX_SUFFIX):
        return open_signature(path, tags, signature, allow)
    from tfray.onnx.from_onnx import load  # other commands do not wait for its rules

    return load(path)


def _form(source: str, target: str, to: str | None) -> str | None:
    _check_format(source, to, (None, BINARY, TEXT))
    return to or next((form for suffix, form in _SUFFIXES.items() if target.endswith(suffix)), None)


def _write_graph(message: Any, target: str, form: str, ends: str = "") -> None:
    write_message(message, target, form == TEXT)
    click.echo(f"{target}: {_kind(message)}, {form}, {files.stat(target).length:,} bytes{ends}")
    _tell_of_own_operations(message)


def _rewrite(model: ModelFile, target: str, allow: Sequence[str]) -> None:
    if model.form != JSON:
        raise BadRequest(
            f"{model.path} is TensorFlow's folder already: let OUT end in .pb or .pbtxt for a frozen graph, or in .onnx"
        )
    rewrite_saved_model(model.path, target, allow)
    click.echo(f"{target}: saved model, {BINARY}")


def _kind(message: Any) -> str:
    return next(name for kind, name in KINDS.items() if isinstance(message, kind))


def _tensors(infos: Any) -> str:
    return ", ".join(f"{printable(key)}: {printable(each['tensor'])}" for key, each in signature_records(infos).items())


def _tell_of_own_operations(message: Any) -> None:
    message = with_marks(message)
    graph = getattr(message, "graph_def", message)
    own = sorted({node.op for node in graph.node if node.op.startswith(OWN)})
    if own:
        click.echo(f"only tfray reads this graph: TensorFlow does not have {', '.join(map(printable, own))}", err=True)


def _check_free(target: str, is_taken: bool) -> None:
    if is_taken:
        raise BadRequest(f"{target} is there: give another path, or --overwrite")


def _check_format(source: str, to: str | None, known: Sequence[str | None]) -> None:
    if to not in known:
        raise BadRequest(f"--to {to}: {source} can be written as {', '.join(filter(None, known))}")
