"""``tfray inspect`` and ``tfray convert``: what a file holds, and the same in another format."""

from __future__ import annotations

import json

import click
from rich.console import Console
from rich.table import Table

from tfray.cli.command import BadRequest, GivenPath, OneLineErrors, reported_errors
from tfray.formats.checkpoint import INDEX_SUFFIX, CheckpointFiles
from tfray.formats.open_checkpoint import open_checkpoint, verify_checkpoint
from tfray.formats.safetensors import SUFFIX as SAFETENSORS_SUFFIX
from tfray.formats.write_formats import TENSORFLOW, TFRAY
from tfray.training.checkpoints.checkpoint_management import checkpoint_exists
from tfray.training.checkpoints.checkpoint_utils import checkpoint_path
from tfray.training.checkpoints.convert_checkpoint import SAFETENSORS, convert_checkpoint


def _opened(path: str) -> CheckpointFiles:
    return open_checkpoint(checkpoint_path(path.removesuffix(INDEX_SUFFIX)))


@click.command("inspect", cls=OneLineErrors)
@click.argument("path", type=GivenPath())
@click.option("--json", "as_json", is_flag=True, help="Print a list of records: name, dtype, shape, bytes, parts.")
@click.option("--verify", is_flag=True, help="Read everything and compare it with its checksums.")
@click.option("--debug", is_flag=True, help="Show Python's traceback of an error.")
def inspect_file(path: str, as_json: bool, verify: bool, debug: bool) -> None:
    """List the tensors of a checkpoint, without reading their values.

    PATH is that of a checkpoint of tfray or TensorFlow (without .index), of a .safetensors file, or of a folder, whose
    newest checkpoint is listed.
    """
    with reported_errors(debug, ()):
        opened = _opened(path)
        entries = sorted(opened.tensors.values(), key=lambda entry: entry.name)
        if verify:
            verify_checkpoint(opened)
    if as_json:
        records = [
            {"name": e.name, "dtype": e.dtype.name, "shape": e.shape, "bytes": e.size_bytes, "parts": len(e.slices)}
            for e in entries
        ]
        click.echo(json.dumps(records))
        return
    table = Table("tensor", "dtype", "shape", "bytes", "parts", box=None, pad_edge=False)
    for entry in entries:
        shape = "x".join(map(str, entry.shape)) or "scalar"
        table.add_row(entry.name, entry.dtype.name, shape, f"{entry.size_bytes:,}", str(len(entry.slices)))
    Console().print(table)
    click.echo(f"{_summary(opened)}{', all as they were written' if verify else ''}")


@click.command(cls=OneLineErrors)
@click.argument("source", metavar="IN", type=GivenPath())
@click.argument("target", metavar="OUT", type=GivenPath())
@click.option(
    "--to",
    "to",
    type=click.Choice([TFRAY, TENSORFLOW, SAFETENSORS]),
    help="The format of OUT. Without it: safetensors if OUT ends so, TensorFlow's if IN is tfray's, and else tfray's.",
)
@click.option("--overwrite", is_flag=True, help="Replace a checkpoint that is there.")
@click.option("--debug", is_flag=True, help="Show Python's traceback of an error.")
def convert(source: str, target: str, to: str | None, overwrite: bool, debug: bool) -> None:
    """Write a checkpoint in another format: tfray's, TensorFlow's (V2), or safetensors.

    IN is what `tfray inspect` takes. OUT is the path of a checkpoint, without .index. Values do not change; those of
    optimizers, queues and random streams are tensors in each format.
    """
    with reported_errors(debug, ()):
        opened = _opened(source)
        target = target.removesuffix(INDEX_SUFFIX)
        if not overwrite and checkpoint_exists(target):
            raise BadRequest(f"{target} is there: give another path, or --overwrite")
        if to is None:
            named = target.endswith(SAFETENSORS_SUFFIX)
            to = SAFETENSORS if named else TENSORFLOW if opened.format_name == "tfray" else TFRAY
        convert_checkpoint(opened, target, to)
        click.echo(_summary(open_checkpoint(target)))


def _summary(opened: CheckpointFiles) -> str:
    entries = opened.tensors.values()
    size = sum(entry.size_bytes for entry in entries)
    return f"{opened.prefix}: {len(entries)} tensors, {size:,} bytes, {opened.format_name}"
