"""Models that TensorFlow has saved: what `scripts/golden_models.py` has written."""

from __future__ import annotations

import tarfile

from tests.support import GOLDEN


def unpack_models(folder):
    """Put the folders of all models into a folder, which is returned."""
    with tarfile.open(GOLDEN / "saved_models" / "of_tensorflow.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder
