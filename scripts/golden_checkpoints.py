#!/usr/bin/env python
"""Write ``tests/golden/checkpoints``: what TensorFlow's Saver writes of a small trained model, and its predictions.

Run it with an interpreter that has TensorFlow; tfray itself is not needed:

    /path/to/python scripts/golden_checkpoints.py
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow.compat.v1 as tf

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "golden" / "checkpoints"


def build() -> tuple[tf.Tensor, tf.Tensor, tf.Operation]:
    """Two layers, the second with partitioned weights, and a training step with slots."""
    x = tf.placeholder(tf.float32, [None, 8], name="x")
    with tf.variable_scope("hidden"):
        hidden = tf.tanh(x @ tf.get_variable("kernel", [8, 6]) + tf.get_variable("bias", [6]))
    with tf.variable_scope("out", partitioner=tf.fixed_size_partitioner(3)):
        logits = hidden @ tf.convert_to_tensor(tf.get_variable("kernel", [6, 4]))
    loss = tf.reduce_mean(tf.square(logits - x[:, :4]))
    step = tf.train.get_or_create_global_step()
    return x, tf.nn.softmax(logits, name="predictions"), tf.train.AdamOptimizer(0.05).minimize(loss, step)


def main() -> None:
    """Train, save, and write down what the model predicts."""
    tf.disable_v2_behavior()
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    tf.set_random_seed(1)
    x, predictions, train = build()
    tf.get_variable("names", initializer=tf.constant([[b"", b"a\0b"], [b"longer " * 40, b"\xff\xfe"]]))
    tf.get_variable("half", initializer=tf.constant([1.5, -2.25], tf.float16))
    tf.get_variable("brain", initializer=tf.constant([1.5, -2.25], tf.bfloat16))
    tf.get_variable("flags", initializer=tf.constant([True, False, True]))
    tf.get_variable("complex", initializer=tf.constant([1 + 2j], tf.complex64))
    tf.get_variable("empty", initializer=tf.zeros([0, 3], tf.int32))
    data = np.random.default_rng(0).normal(size=(32, 8)).astype(np.float32)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(20):
            session.run(train, {x: data})
        tf.train.Saver(save_relative_paths=True).save(session, str(FOLDER / "model"), global_step=20)
        arrays = {v.op.name: value for v in tf.global_variables() for value in [session.run(v)]}
        arrays = {
            name: value for name, value in arrays.items() if value.dtype.kind in "fi" and value.dtype.itemsize > 2
        }
        np.savez(FOLDER / "expected.npz", x=data, predictions=session.run(predictions, {x: data}), **arrays)
    for name in FOLDER.glob("*.meta"):
        name.unlink()


if __name__ == "__main__":
    main()
