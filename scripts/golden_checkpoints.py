#!/usr/bin/env python
"""Write ``tests/golden/checkpoints``: what TensorFlow's Saver writes of a small trained model, and its predictions.

Beside it, ``v1`` holds values of many dtypes in TensorFlow's older format, in one file and in two shards.

Run it with an interpreter that has TensorFlow; tfray itself is not needed:

    /path/to/python scripts/golden_checkpoints.py
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

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
    write_version_1(FOLDER / "v1")


def rows_of(value: np.ndarray) -> Any:
    """An initializer that gives the rows of an array that belong to a part."""

    def part(shape: Any, dtype: Any = None, partition_info: Any = None) -> tf.Tensor:
        first = partition_info.var_offset[0]
        return tf.constant(value[first : first + int(shape[0])])

    return part


def write_version_1(folder: Path) -> None:
    """Values of the dtypes that format V1 holds, and a partitioned variable, on two devices."""
    rng = np.random.default_rng(1)
    values = {
        "float32": rng.normal(size=(2, 3)).astype(np.float32),
        "float64": rng.normal(size=6),
        "float16": np.array([1.5, -2.25, 65504], np.float16),
        "int8": np.array([-128, 127], np.int8),
        "uint8": np.array([0, 255], np.uint8),
        "int16": np.array([-3, 300], np.int16),
        "int32": np.array([[-(2**31)], [2**31 - 1]], np.int32),
        "int64": np.array([-(2**63), 2**63 - 1, 127, 128]),
        "bool": np.array([True, False, True]),
        "complex64": np.array([1 + 2j], np.complex64),
        "complex128": np.array([1 - 2j, 3j]),
        "scalar": np.array(7, np.int64),
        "empty": np.zeros((0, 3), np.int32),
        "zeros": np.zeros(500, np.float32),
        "table": rng.normal(size=(7, 4)).astype(np.float32),
        "string": np.array([[b"", b"a\0b"], [b"longer " * 40, b"\xff\xfe"]], object),
    }
    folder.mkdir()
    with tf.Graph().as_default(), tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as session:
        for index, (name, value) in enumerate(values.items()):
            with tf.device(f"/cpu:{index % 2}"):
                if name == "table":
                    partitioner = tf.fixed_size_partitioner(3)
                    tf.get_variable(
                        name, value.shape, initializer=rows_of(value), partitioner=partitioner, use_resource=False
                    )
                else:
                    tf.get_variable(name, initializer=tf.constant(value), use_resource=False)
        session.run(tf.global_variables_initializer())
        for name, sharded in (("whole", False), ("shards", True)):
            saver = tf.train.Saver(write_version=tf.train.SaverDef.V1, sharded=sharded, save_relative_paths=True)
            saver.save(session, str(folder / name), write_meta_graph=False)
    np.savez(folder / "expected.npz", **{name: value for name, value in values.items() if name != "string"})


if __name__ == "__main__":
    main()
