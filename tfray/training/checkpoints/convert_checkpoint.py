"""A checkpoint in another format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from tfray.errors import InvalidArgumentError
from tfray.formats.checkpoint import CheckpointFiles, Manifest, TensorEntry
from tfray.formats.checkpoint_folder import saving
from tfray.formats.checkpoint_shard import Piece, ShardRecord, SliceEntry
from tfray.formats.safetensors import SUFFIX, save_safetensors
from tfray.formats.write_formats import complete_checkpoint, write_data
from tfray.ops.kernels.cpu_threads import parallel_for
from tfray.ops.system.checkpoint_ops import balanced

SAFETENSORS: Final = "safetensors"

_Part = tuple[TensorEntry, SliceEntry]


def convert_checkpoint(source: CheckpointFiles, target: str, write_format: str) -> None:
    """Write what a checkpoint holds in another format. Partitioned variables keep their parts.

    One tensor, or part of one, for each thread is in memory at a time.

    Args:
        source: The checkpoint.
        target: Path of the new one, which replaces one that is there.
        write_format: ``"tfray"``, ``"tensorflow"`` or ``"safetensors"``.

    Raises:
        InvalidArgumentError: The format cannot hold a tensor; or the path of a safetensors file does not end so, or
            another one does.
        DataLossError: The source is damaged. Nothing is written then.
    """
    if target.endswith(SUFFIX) != (write_format == SAFETENSORS):
        raise InvalidArgumentError(f"{target}: safetensors files, and no others, have a path that ends in {SUFFIX}")
    if write_format == SAFETENSORS:
        save_safetensors({name: source.read(name) for name in source.tensors}, target)
        return
    parts = [(entry, part) for entry in source.tensors.values() for part in entry.slices]
    groups = balanced(parts, [part.length for _, part in parts])
    records: list[ShardRecord | None] = [None] * len(groups)

    def write(index: int) -> None:
        records[index] = write_data(target, _pieces(source, groups[index]), index, len(groups), write_format)

    with saving(target):
        parallel_for(write, len(groups))
        manifest = Manifest.of_shards(record for record in records if record is not None)
        complete_checkpoint(target, manifest, write_format)


def _pieces(source: CheckpointFiles, parts: Sequence[_Part]) -> Iterator[Piece]:
    for entry, part in parts:
        array = source.read(entry.name, part.offset, part.shape)
        yield Piece(entry.name, array, entry.shape, part.offset)
