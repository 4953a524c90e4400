"""Opening and verifying a checkpoint of any known format."""

from __future__ import annotations

from tfray.errors import DataLossError, NotFoundError
from tfray.formats import files
from tfray.formats.bundles.saved_slices import SavedSlices, saved_slices_files
from tfray.formats.bundles.sorted_table import is_table
from tfray.formats.bundles.tensor_bundle import TensorBundle
from tfray.formats.checkpoint import INDEX_SUFFIX, ArrowCheckpoint, CheckpointFiles, is_manifest
from tfray.formats.safetensors import SUFFIX as SAFETENSORS_SUFFIX
from tfray.formats.safetensors import SafetensorsFile


def open_checkpoint(prefix: str) -> CheckpointFiles:
    """Open a checkpoint for reading: one of tfray, of TensorFlow (format V2 or V1), or a safetensors file.

    Args:
        prefix: The checkpoint's path without ``.index``, or the path of a file that ends in ``.safetensors``. That of
            format V1 is the path of its file, or, for several, ``NAME-?????-of-00002``.

    Raises:
        NotFoundError: There is no checkpoint at that path.
        DataLossError: It is damaged, or of no known format.
    """
    if prefix.endswith(SAFETENSORS_SUFFIX):
        return SafetensorsFile(prefix)
    try:
        contents = files.read_bytes(prefix + INDEX_SUFFIX)
    except NotFoundError as error:
        if saved_slices_files(prefix):
            return SavedSlices(prefix)
        raise NotFoundError(f"there is no checkpoint {prefix}: {prefix}{INDEX_SUFFIX} does not exist") from error
    if is_manifest(contents):
        return ArrowCheckpoint(prefix, contents)
    if is_table(contents):
        return TensorBundle(prefix, contents)
    raise DataLossError(f"{prefix}{INDEX_SUFFIX} is damaged, or no checkpoint of tfray or TensorFlow")


def verify_checkpoint(checkpoint: CheckpointFiles) -> None:
    """Read everything that is in a checkpoint, and check its checksums. A safetensors file has none.

    Raises:
        DataLossError: A file is damaged or cut short; the message names file and tensor.
    """
    if isinstance(checkpoint, ArrowCheckpoint):
        # It also checks the ends of the shard files, which reading tensors does not.
        checkpoint.verify()
    else:
        for name in checkpoint.tensors:
            checkpoint.read(name)
