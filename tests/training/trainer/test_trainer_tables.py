"""Models with tables: a `Trainer` fills them where they are read."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tests.support.processes import kill_actor

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
@pytest.mark.slow
def test_on_replicas(ray_local):
    np.testing.assert_allclose(trained(), [1, 2], rtol=1e-4)


def with_drawn_values(features, labels):
    """The loss is a value that the table drew when it was filled."""
    drawn = tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.random.uniform([2], 1, 2))
    ones = tf.get_variable("ones", [], initializer=tf.ones_initializer())
    loss = ones * tf.lookup.StaticHashTable(drawn, 0.0).lookup(features)[0]
    return tf.train.ModelSpec(loss, tf.train.GradientDescentOptimizer(0.0).minimize(loss))


@pytest.mark.parametrize("accumulate", [1, 2])
def test_a_table_is_filled_once(accumulate):
    trainer = tf.train.Trainer(
        with_drawn_values,
        tf.train.array_input(WORDS, VALUES, batch_size=8),
        run=tf.train.RunConfig(steps=6, logdir=None, local=True, accumulate=accumulate),
    )
    losses = {step.metrics["loss"] for step in trainer.fit().history}
    assert len(losses) == 1
    assert 1 < losses.pop() < 2


@pytest.mark.ray
def test_a_table_is_filled_once_on_each_replica_and_again_after_a_replacement(ray_local, clusters):
    """To fill it in a second step would draw other values, which a table that has contents refuses."""
    killed, device = [], "/job:worker/task:1/device:CPU:0"

    def on_step(record):
        if record.step == 3:
            kill_actor(ray_local, clusters[-1], device)
            killed.append(device)

    result = tf.train.Trainer(
        with_drawn_values,
        tf.train.array_input(WORDS, VALUES, batch_size=8),
        tf.train.ScalingConfig(workers=2, cpus_per_worker=0.5),
        tf.train.RunConfig(steps=60, logdir=None, on_step=on_step, max_worker_restarts=2),
    ).fit()
    assert killed and result.steps == 60
    assert [event.kind for event in result.events] == ["replacement"]
    assert all(1 < step.metrics["loss"] < 2 for step in result.history)


def test_a_file_is_read_by_the_first_step_only(tmp_path):
    path = tmp_path / "words"
    path.write_text("a\nb\n")

    def by_line(features, labels):
        ids = tf.lookup.StaticVocabularyTable(
            tf.lookup.TextFileInitializer(
                str(path), tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER
            ),
            1,
        ).lookup(features)
        value = tf.get_variable("value", [], initializer=tf.zeros_initializer())
        loss = value + tf.reduce_sum(tf.cast(ids, tf.float32))
        return tf.train.ModelSpec(loss, tf.train.GradientDescentOptimizer(0.0).minimize(loss))

    def batches(context):
        for number in range(8):
            if number == 4:
                path.unlink()
            yield WORDS[:2], VALUES[:2]

    run = tf.train.RunConfig(steps=8, logdir=None, local=True)
    history = tf.train.Trainer(by_line, batches, run=run).fit().history
    assert [step.metrics["loss"] for step in history] == [1.0] * 8
