#!/usr/bin/env python
"""Write ``tests/golden/keras_models.tar.xz``: whole models in files of HDF5, and what they compute.

Run it with an interpreter that has TensorFlow 2.21 and tf_keras; tfray itself is not needed:

    /path/to/python scripts/golden_keras_models.py

``stack_1.h5`` and ``branches_1.h5`` are written by Keras 2 as TensorFlow 1 had it (graph mode, optimizers with slots
one after the other), ``stack_3.h5`` and ``branches_3.h5`` by Keras 3. Beside each is an ``npz`` with inputs, targets,
predictions, and the losses of three further steps of training.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np

TARGET = Path(__file__).resolve().parent.parent / "tests" / "golden" / "keras_models.tar.xz"


def stack(keras: Any) -> Any:
    """Layers one after the other."""
    layers = keras.layers
    first = layers.Dense(
        6,
        activation="relu",
        input_shape=(4,),
        kernel_regularizer=keras.regularizers.l2(0.01),
        kernel_initializer=keras.initializers.he_normal(seed=3),
    )
    rest = [layers.BatchNormalization(), layers.Dropout(0.0), layers.Dense(2, use_bias=False, name="last")]
    return keras.Sequential([first, *rest], name="stack")


def branches(keras: Any) -> Any:
    """A shared layer, a model within, states of a recurrent layer, two outputs."""
    layers = keras.layers
    x = keras.Input([4], name="x")
    shared = layers.Dense(3, name="shared")
    left, right = shared(x), shared(layers.Activation("tanh", name="act")(x))
    inner = keras.Sequential([layers.Dense(2, input_shape=(6,))], name="inner")
    steps = layers.Reshape((2, 2))(x)
    _, *state = layers.LSTM(3, return_state=True)(steps)
    decoded = layers.LSTM(3)(steps, initial_state=state)
    both = layers.Bidirectional(layers.GRU(2))(steps)
    first = layers.Add(name="first")([inner(layers.concatenate([left, right], axis=1)), layers.Dense(2)(left)])
    return keras.Model(x, [first, layers.Dense(2, name="second")(layers.concatenate([decoded, both]))], name="branches")


def write(keras: Any, version: int, folder: Path) -> None:
    """Train both models a little, save them, and train on."""
    random = np.random.default_rng(0)
    x, y = (random.normal(size=(8, size)).astype(np.float32) for size in (4, 2))
    for build in (stack, branches):
        several = build is branches
        model = build(keras)
        model.compile(
            keras.optimizers.Adam(0.01),
            ["mse", keras.losses.Huber()] if several else "mse",
            metrics=[["mae"], ["mse"]] if several else ["mae"],
        )
        targets = [y, y] if several else y
        model.fit(x, targets, epochs=2, verbose=0, shuffle=False)
        model.save(str(folder / f"{model.name}_{version}.h5"))
        found = model.predict(x, verbose=0)
        losses = [np.ravel(model.train_on_batch(x, targets))[0] for _ in range(3)]
        values = {f"y{number}": each for number, each in enumerate(found if several else [found])}
        np.savez(folder / f"{model.name}_{version}.npz", x=x, targets=y, losses=losses, **values)


def main() -> None:
    """Write the archive; with arguments, the models of one version into a folder."""
    if len(sys.argv) > 1:
        version, folder = int(sys.argv[1]), Path(sys.argv[2])
        if version == 1:
            import tensorflow.compat.v1 as tf

            tf.disable_v2_behavior()
            tf.set_random_seed(1)
            write(tf.keras, version, folder)
        else:
            import keras

            keras.utils.set_random_seed(1)
            write(keras, version, folder)
        return
    with tempfile.TemporaryDirectory() as folder:
        for version in (1, 3):
            settings = {**os.environ, "TF_USE_LEGACY_KERAS": str(int(version == 1))}
            subprocess.run([sys.executable, __file__, str(version), folder], env=settings, check=True)
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:xz", preset=9) as archive:
            for path in sorted(Path(folder).iterdir()):
                info = tarfile.TarInfo(path.name)
                info.size = path.stat().st_size
                with path.open("rb") as file:
                    archive.addfile(info, file)
        TARGET.write_bytes(packed.getvalue())


if __name__ == "__main__":
    main()
