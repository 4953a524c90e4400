"""Write ``tests/golden/keras_checkpoints.tar.xz``: weights that Keras models of TensorFlow 1.15 save as checkpoints.

    /path/to/python scripts/golden_keras_checkpoints.py

It needs TensorFlow 1.15. Each folder has the checkpoint that ``save_weights`` wrote of a model of
tests/support/cases/keras_checkpoint_cases.py after four steps of training, and what the model predicted then, and
after four further steps.
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "tests" / "golden" / "keras_checkpoints.tar.xz"


def main() -> None:
    """Train and save all cases with TensorFlow."""
    import numpy as np
    import tensorflow as tf

    sys.path.insert(0, str(ROOT))
    from tests.support.cases import keras_checkpoint_cases as cases

    with tempfile.TemporaryDirectory() as folder:
        for number, (model, optimizer) in enumerate(cases.CASES):
            tf.keras.backend.clear_session()
            tf.compat.v1.set_random_seed(1)
            made = cases.compiled(tf, model, optimizer)
            place = Path(folder) / str(number)
            saved = cases.train(made)
            made.save_weights(str(place / "weights"))
            np.savez(place / "expected.npz", saved=saved, further=cases.train(made))
        with tarfile.open(TARGET, "w:xz") as archive:
            archive.add(folder, arcname=".")


if __name__ == "__main__":
    main()
