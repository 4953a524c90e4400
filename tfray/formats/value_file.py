"""Named arrays in files: a checkpoint that one process writes at once."""

from __future__ import annotations

from collections.abc import Sequence

from tfray.formats.checkpoint import Manifest
from tfray.formats.checkpoint_shard import Piece
from tfray.formats.write_formats import complete_checkpoint, write_data


def write_values(prefix: str, pieces: Sequence[Piece], write_format: str) -> None:
    """Write arrays as the checkpoint `prefix`, whose folder must be there, in a format of `write_formats`."""
    record = write_data(prefix, pieces, 0, 1, write_format)
    complete_checkpoint(prefix, Manifest.of_shards([record]), write_format)
