#!/usr/bin/env python
"""Write ``tests/golden/saved_models/of_tensorflow.tar.xz``: models that TensorFlow has saved, and what they compute.

Run it with an interpreter that has TensorFlow 2.21, tf_keras and scikit-learn; tfray itself is not needed:

    /path/to/python scripts/golden_models.py

For TensorFlow 1's two kinds of variables there is a folder ``references`` and ``resources``: a meta graph with its
checkpoint and as text, the saved model ``saved``, and the losses of 20 further steps. ``digits`` is a classifier of
handwritten digits that has not learned much yet, as both. ``functions``, ``convolutions`` and ``recurrent`` are saved
models of TensorFlow 2. ``values.npz`` of each folder holds what is fed and what comes out.
``queues.meta`` beside the archive is the meta graph of a pipeline of queues.
"""

from __future__ import annotations

import io
import os
import shutil
import tarfile
import tempfile
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["TF_USE_LEGACY_KERAS"] = "1"  # for tf.layers

import numpy as np
import tensorflow as tf2
import tensorflow.compat.v1 as tf
import tf_keras
from sklearn.datasets import load_digits

TARGET = Path(__file__).resolve().parent.parent / "tests" / "golden" / "saved_models" / "of_tensorflow.tar.xz"
STEPS = 20


def perceptron(folder: Path, resources: bool) -> None:
    """A network with a partitioned variable and Adam, saved after three steps."""
    generator = np.random.default_rng(0)
    fed = generator.normal(size=(20, 4)).astype(np.float32), generator.integers(0, 3, 20)
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(1)
        tf.get_variable_scope().set_use_resource(resources)
        x = tf.placeholder(tf.float32, [None, 4], name="x")
        labels = tf.placeholder(tf.int64, [None], name="labels")
        weights = tf.get_variable("layer/weights", [4, 8])
        bias = tf.get_variable("layer/bias", [8], initializer=tf.zeros_initializer())
        hidden = tf.nn.relu(tf.matmul(x, weights) + bias)
        parts = tf.get_variable("parts", [8, 3], partitioner=tf.fixed_size_partitioner(2))
        y = tf.matmul(hidden, tf.convert_to_tensor(parts), name="y")
        entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(logits=y, labels=labels)
        loss = tf.reduce_mean(entropy, name="loss")
        step = tf.train.get_or_create_global_step()
        train = tf.train.AdamOptimizer(0.05).minimize(loss, step, name="train")
        for name, member in {"outputs": y, "train_op": train, "numbers": 3, "rates": 0.5, "notes": "a note"}.items():
            tf.add_to_collection(name, member)
        saver = tf.train.Saver()
        session.run(tf.global_variables_initializer())
        feeds = {x: fed[0], labels: fed[1]}
        for _ in range(3):
            session.run(train, feeds)
        saver.save(session, f"{folder}/model", step, write_state=False)
        tf.train.export_meta_graph(f"{folder}/text.pbtxt", as_text=True, saver_def=saver.as_saver_def())
        result = session.run(y, feeds)
        tf.saved_model.simple_save(session, f"{folder}/saved", {"x": x}, {"y": y})
        losses = [session.run([loss, train], feeds)[0] for _ in range(STEPS)]
    np.savez(folder / "values.npz", x=fed[0], labels=fed[1], y=result, losses=losses)


def queues(path: Path) -> None:
    """The meta graph of a pipeline of queues, which threads fill."""
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        numbers = np.arange(7, dtype=np.float32)
        x, i = tf.train.slice_input_producer([numbers * 2, np.arange(7)], num_epochs=2, shuffle=False)
        for name, batch in (("plain", tf.train.batch), ("mixed", tf.train.shuffle_batch)):
            more = {"min_after_dequeue": 2} if name == "mixed" else {}
            found = batch([x + 1, i], 2, capacity=8, allow_smaller_final_batch=True, name=name, **more)
            for part, tensor in zip("xi", found, strict=True):
                tf.identity(tensor, name=f"{name}_{part}")
            x, i = tf.train.slice_input_producer([numbers, np.arange(7)], num_epochs=1, seed=1)
        tf.group(tf.local_variables_initializer(), tf.global_variables_initializer(), name="setup")
        tf.train.export_meta_graph(str(path))


def digits(folder: Path) -> None:
    """A convolutional network, saved while it still takes many digits for others; it is placed as for a cluster."""
    pixels, classes = load_digits(return_X_y=True)
    images = (pixels / 16).astype(np.float32)
    with tf.Graph().as_default(), tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
        tf.set_random_seed(1)
        with tf.device("/cpu:0"):
            image = tf.placeholder(tf.float32, [None, 64], name="image")
            label = tf.placeholder(tf.int32, [None], name="label")
            layer = tf.layers.conv2d(tf.reshape(image, [-1, 8, 8, 1]), 8, 3, activation=tf.nn.relu, name="filters")
            layer = tf.layers.flatten(tf.layers.max_pooling2d(layer, 2, 2))
            layer = tf.layers.dense(layer, 24, tf.nn.relu, name="features")
            logits = tf.identity(tf.layers.dense(layer, 10, name="classes"), name="logits")
            scores = tf.nn.softmax(logits, name="scores")
        loss = tf.losses.sparse_softmax_cross_entropy(label, logits)
        step = tf.train.get_or_create_global_step()
        train = tf.train.AdamOptimizer(0.01).minimize(loss, step)
        session.run(tf.global_variables_initializer())
        for first in range(0, 600, 60):
            session.run(train, {image: images[first : first + 60], label: classes[first : first + 60]})
        tf.train.Saver().save(session, f"{folder}/model", step, write_state=False)
        tf.saved_model.simple_save(session, f"{folder}/saved", {"image": image}, {"scores": scores})
        np.savez(folder / "values.npz", image=images[:50], scores=session.run(scores, {image: images[:50]}))


class Functions(tf2.Module):  # type: ignore[misc]
    """A loop, a branch and a table, as functions."""

    def __init__(self, words: Path) -> None:
        super().__init__()
        self.weights = tf2.Variable(np.random.default_rng(1).normal(size=(4, 3)).astype(np.float32), name="weights")
        self.bias = tf2.Variable(np.ones(3, np.float32), name="bias")
        kinds = tf2.string, tf2.lookup.TextFileIndex.WHOLE_LINE, tf2.int64, tf2.lookup.TextFileIndex.LINE_NUMBER
        self.table = tf2.lookup.StaticHashTable(tf2.lookup.TextFileInitializer(str(words), *kinds), -1)

    @tf2.function(input_signature=[tf2.TensorSpec([None, 4], tf2.float32, name="x")])  # type: ignore[misc]
    def serve(self, x: Any) -> dict[str, Any]:
        """Products, through a loop and a branch."""
        y = tf2.matmul(x, self.weights) + self.bias
        for i in tf2.range(3):
            y = tf2.nn.relu(y) + tf2.cast(i, tf2.float32)
        if tf2.reduce_sum(y) > 0:
            y = y * 2.0
        return {"y": y}

    @tf2.function(input_signature=[tf2.TensorSpec([None], tf2.string, name="words")])  # type: ignore[misc]
    def ids(self, words: Any) -> dict[str, Any]:
        """Numbers of words."""
        return {"ids": self.table.lookup(words)}


def keras(folder: Path, model: Any, x: np.ndarray[Any, Any]) -> None:
    """A model of Keras, whose weights are not those that it begins with."""
    generator = np.random.default_rng(2)
    model.set_weights([generator.uniform(0.1, 0.9, each.shape).astype(np.float32) for each in model.get_weights()])
    model.save(folder / "saved", save_format="tf", save_traces=True)
    for name in ("keras_metadata.pb", "fingerprint.pb"):
        (folder / "saved" / name).unlink(missing_ok=True)
    np.savez(folder / "values.npz", x=x, y=model(x).numpy())


def main() -> None:
    root = Path(tempfile.mkdtemp())
    generator = np.random.default_rng(3)
    for name in ("references", "resources", "digits", "functions", "convolutions", "recurrent"):
        (root / name).mkdir()
    layers = tf_keras.layers
    hidden = [layers.Conv2D(4, 3, input_shape=(8, 8, 1), activation="relu"), layers.BatchNormalization()]
    picture = generator.normal(size=(2, 8, 8, 1)).astype(np.float32)
    keras(root / "convolutions", tf_keras.Sequential([*hidden, layers.Flatten(), layers.Dense(3)]), picture)
    sequence = generator.normal(size=(2, 7, 3)).astype(np.float32)
    recurrent = tf_keras.Sequential([layers.LSTM(5, input_shape=(7, 3)), layers.Dense(2)])
    keras(root / "recurrent", recurrent, sequence)
    os.chdir(root)  # models keep the path as it is given
    words = Path("words.txt")
    words.write_text("ant\nbee\n")
    module, x = Functions(words), generator.normal(size=(2, 4)).astype(np.float32)
    tf2.saved_model.save(module, f"{root}/functions/saved", {"serving_default": module.serve, "ids": module.ids})
    np.savez(root / "functions" / "values.npz", x=x, y=module.serve(x)["y"].numpy())
    tf.disable_v2_behavior()
    perceptron(root / "references", False)
    perceptron(root / "resources", True)
    digits(root / "digits")
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:xz", preset=9) as archive:
        for path in sorted(root.rglob("*")):
            is_spare = path.name == "fingerprint.pb" or path == root / words
            if path.is_file() and not is_spare:
                info = tarfile.TarInfo(str(path.relative_to(root)))
                info.size = path.stat().st_size
                with path.open("rb") as file:
                    archive.addfile(info, file)
    TARGET.parent.mkdir(exist_ok=True)
    queues(TARGET.with_name("queues.meta"))
    TARGET.write_bytes(packed.getvalue())
    os.chdir("/")
    shutil.rmtree(root)


if __name__ == "__main__":
    main()
