"""Models with tables: a `Trainer` fills them where they are read."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf

WORDS = np.array([b"a", b"b"] * 8, object)
VALUES = np.array([1.0, 2.0] * 8, np.float32)


def by_word(features, labels):
    """A value for each word."""
    ids = tf.contrib.lookup.index_table_from_tensor(["a", "b"]).lookup(features)
    values = tf.get_variable("values", [2], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean(tf.square(tf.gather(values, ids) - labels))
    return tf.train.ModelSpec(loss, tf.train.GradientDescentOptimizer(0.5).minimize(loss))


def trained(**run):
    trainer = tf.train.Trainer(
        by_word,
        tf.train.array_input(WORDS, VALUES, batch_size=8),
        tf.train.ScalingConfig(workers=2, cpus_per_worker=0.5),
        tf.train.RunConfig(steps=40, logdir=None, **run),
    )
    result = trainer.fit()
    assert trainer.evaluate(result, [(WORDS, VALUES)])["loss"] < 1e-6
    return result.variables["values"]


def test_in_this_process():
    np.testing.assert_allclose(trained(local=True), [1, 2], rtol=1e-4)


@pytest.mark.ray
def test_on_replicas(ray_local):
    np.testing.assert_allclose(trained(), [1, 2], rtol=1e-4)
