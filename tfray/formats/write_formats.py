"""The formats in which checkpoints are written: data files by each device, then one file that makes them a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from tfray.errors import InvalidArgumentError
from tfray.formats.bundles.bundle_writer import write_bundle_data
from tfray.formats.checkpoint import Manifest, data_name, sibling
from tfray.formats.checkpoint_folder import write_bundle_index, write_manifest
from tfray.formats.checkpoint_shard import Piece, ShardRecord, write_shard

TFRAY: Final = "tfray"
TENSORFLOW: Final = "tensorflow"


@dataclass(frozen=True)
class _Format:
    suffix: str
    """Of data files while they belong to no checkpoint."""
    write: Callable[[str, Iterable[Piece]], ShardRecord]
    complete: Callable[[str, Manifest, bool], None]


_FORMATS: Final = {
    TFRAY: _Format(".arrow", write_shard, write_manifest),
    TENSORFLOW: _Format(".part", write_bundle_data, write_bundle_index),
}

WRITE_FORMATS: Final = tuple(_FORMATS)

_default = TFRAY


def default_write_format() -> str:
    """The format of savers that are not told one."""
    return _default


def set_default_write_format(name: str) -> None:
    """Set the format of savers that will be made and not told one. Raises `InvalidArgumentError` if there is none."""
    global _default
    _default = check_write_format(name)


def check_write_format(name: str) -> str:
    """`name`, if that is a format. Raises `InvalidArgumentError` otherwise."""
    if name not in _FORMATS:
        raise InvalidArgumentError(f"write_format must be {' or '.join(map(repr, WRITE_FORMATS))}, not {name!r}")
    return name


def write_data(prefix: str, pieces: Iterable[Piece], shard: int, shards: int, write_format: str) -> ShardRecord:
    """Write one data file of the checkpoint `prefix`, under a name that no other save uses.

    Args:
        prefix: Path of the checkpoint, whose folder must be there.
        pieces: What to write; they are asked for one after the other.
        shard: Number of the shard.
        shards: Number of all.
        write_format: `TFRAY` or `TENSORFLOW`.
    """
    chosen = _FORMATS[check_write_format(write_format)]
    return chosen.write(sibling(prefix, data_name(prefix, shard, shards, chosen.suffix)), pieces)


def complete_checkpoint(prefix: str, manifest: Manifest, write_format: str, is_announced: bool = False) -> None:
    """Make data files that are written a checkpoint, which replaces an older one of that name in one step.

    Args:
        prefix: Path of the checkpoint.
        manifest: What it holds.
        write_format: `TFRAY` or `TENSORFLOW`.
        is_announced: Whether this is part of a `checkpoint_folder.saving`; the checkpoint is given up if that is over.

    Raises:
        AbortedError: A data file is gone, or has changed, since it was written, or the save is over.
        InvalidArgumentError: The format cannot hold a tensor.
    """
    _FORMATS[check_write_format(write_format)].complete(prefix, manifest, is_announced)
