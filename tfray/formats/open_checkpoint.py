"""Opening a checkpoint of any format that is known."""

from __future__ import annotations

from tfray.errors import DataLossError, NotFoundError
from tfray.formats import files
from tfray.formats.checkpoint import INDEX_SUFFIX, ArrowCheckpoint, CheckpointFiles, is_manifest


def open_checkpoint(prefix: str) -> CheckpointFiles:
    """Open a checkpoint for reading.

    Args:
        prefix: Its path without ``.index``.

    Raises:
        NotFoundError: There is none.
        DataLossError: It is damaged, or of no known format.
    """
    try:
        contents = files.read_bytes(prefix + INDEX_SUFFIX)
    except NotFoundError as error:
        raise NotFoundError(f"there is no checkpoint {prefix}: {prefix}{INDEX_SUFFIX} does not exist") from error
    if is_manifest(contents):
        return ArrowCheckpoint(prefix, contents)
    raise DataLossError(f"{prefix}{INDEX_SUFFIX} is damaged, or no checkpoint of tfray or TensorFlow")
