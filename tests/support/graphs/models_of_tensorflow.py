"""Models that TensorFlow has saved: what `scripts/golden_models.py` has written."""

from __future__ import annotations

from tests.support import GOLDEN
from tests.support.archives import unpack


def unpack_models(folder):
    """Put the folders of all models into a folder, which is returned."""
    unpack(GOLDEN / "saved_models" / "of_tensorflow.tar.xz", folder)
    return folder
