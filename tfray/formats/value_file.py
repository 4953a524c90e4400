"""Named arrays in files: a checkpoint that one process writes at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tfray.formats.checkpoint import ArrowCheckpoint, Manifest, data_name, sibling
from tfray.formats.checkpoint_folder import write_manifest
from tfray.formats.checkpoint_shard import Piece, write_shard


def write_values(prefix: str, values: Mapping[str, Any]) -> None:
    """Write arrays as the checkpoint `prefix`, whose folder must be there."""
    record = write_shard(sibling(prefix, data_name(prefix, 0, 1)), [Piece.whole(*each) for each in values.items()])
    write_manifest(prefix, Manifest.of_shards([record]))


def read_values(prefix: str) -> ArrowCheckpoint:
    """The checkpoint, open. Raises `DataLossError` when it is damaged, `NotFoundError` when it is not there."""
    return ArrowCheckpoint(prefix)
