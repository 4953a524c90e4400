"""The training loops of ``tf.contrib.slim.learning`` and ``tf.contrib.training``."""

from __future__ import annotations

import json

import numpy as np
import pytest

import tfray as tf
from tests.support.counted_steps import saved_steps
from tests.support.event_reading import events_in
from tfray.contrib import slim


def make_train_op():
    weights = tf.get_variable("weights", [3], initializer=tf.ones_initializer())
    loss = tf.reduce_sum(tf.square(weights - np.array([1.0, 2.0, 3.0], np.float32)), name="loss")
    tf.summary.scalar("loss", loss)
    return slim.learning.create_train_op(loss, tf.train.GradientDescentOptimizer(0.1))


def test_slim_trains_and_saves(tmp_path):
    loss = slim.learning.train(make_train_op(), str(tmp_path), number_of_steps=40, log_every_n_steps=10)
    assert loss < 1e-3
    assert saved_steps(tmp_path)[-1] == 40
    kinds = [event.WhichOneof("what") for event in events_in(tmp_path)]
    assert "graph_def" in kinds and kinds.count("session_log") >= 2


def test_slim_goes_on_from_its_checkpoint(tmp_path):
    for last in (5, 8):
        with tf.Graph().as_default():
            slim.learning.train(make_train_op(), str(tmp_path), number_of_steps=last)
    assert saved_steps(tmp_path)[-1] == 8


def test_slim_traces(tmp_path):
    slim.learning.train(make_train_op(), str(tmp_path), number_of_steps=5, trace_every_n_steps=3)
    traces = sorted(path.name for path in tmp_path.glob("tf_trace-*.json"))
    assert len(traces) == 2
    assert json.loads((tmp_path / traces[0]).read_text())["traceEvents"]


@pytest.mark.parametrize("what", ["saver", "summary_op", "trace_every_n_steps"])
def test_slim_saves_nothing_without_a_folder(what):
    train_op = make_train_op()
    given = {
        "saver": tf.train.Saver,
        "summary_op": lambda: tf.summary.scalar("x", 1.0),
        "trace_every_n_steps": lambda: 2,
    }
    with pytest.raises(ValueError, match=f"Cannot provide {what} because logdir=None"):
        slim.learning.train(train_op, None, number_of_steps=1, **{what: given[what]()})


def test_slim_takes_a_step_function_and_a_wrapper(tmp_path):
    train_op = make_train_op()
    seen = []

    def step(session, train_op, global_step, arguments):
        seen.append(session)
        assert arguments["mine"] == 1
        return session.run(train_op), len(seen) == 3

    class Wrapper:
        def __init__(self, session):
            self.run = session.run

    kept = {"ignore_live_threads": True, "saver": tf.train.Saver()}
    loss = slim.learning.train(train_op, str(tmp_path), step, {"mine": 1}, session_wrapper=Wrapper, **kept)
    assert len(seen) == 3 and isinstance(seen[0], Wrapper) and loss > 0


def test_slim_ends_with_the_input(tmp_path):
    value = tf.train.input_producer(tf.constant([1.0, 2.0]), num_epochs=1, shuffle=False).dequeue()
    with tf.control_dependencies([value]):
        count = tf.train.get_or_create_global_step().assign_add(1)
    with tf.control_dependencies([count]):
        train_op = tf.identity(value)
    assert slim.learning.train(train_op, str(tmp_path)) == 2
    assert saved_steps(tmp_path)[-1] == 2


def test_slim_raises_what_a_step_raises(tmp_path):
    broken = tf.check_numerics(tf.placeholder_with_default(np.float32(np.nan), []), "broken")
    with pytest.raises(tf.errors.InvalidArgumentError, match="broken"):
        slim.learning.train(broken, str(tmp_path))


def test_slim_refuses_what_it_cannot_do():
    for wrong in ({"sync_optimizer": 1}, {"trace_every_n_steps": 1}):
        with pytest.raises(tf.errors.InvalidArgumentError):
            slim.learning.train(tf.constant(1.0), None, **wrong)
    with pytest.raises(tf.errors.InvalidArgumentError, match="train_op"):
        slim.learning.train(None, None)


def test_training_in_a_monitored_session(tmp_path):
    hooks = [tf.train.StopAtStepHook(last_step=20)]
    assert tf.contrib.training.train(make_train_op(), str(tmp_path), hooks=hooks) < 0.1
    assert saved_steps(tmp_path)[-1] == 20
    with pytest.raises(ValueError, match="no end"):
        tf.contrib.training.train(tf.constant(1.0), None)


def test_gradients_are_multiplied_clipped_and_summarized():
    a, b, unused = tf.Variable(1.0, name="a"), tf.Variable([3.0, 4.0], name="b"), tf.Variable(0.0, name="unused")
    table = tf.Variable([[1.0], [1.0]], name="table")
    loss = 2 * a + tf.reduce_sum(b * b) + tf.reduce_sum(tf.gather(table, [1, 1]))
    pairs = tf.train.GradientDescentOptimizer(1.0).compute_gradients(loss, [a, b, unused, table])
    multiplied = slim.learning.multiply_gradients(pairs, {a: 10.0, "table": 3})
    clipped = tf.contrib.training.clip_gradient_norms(multiplied, 5.0)
    assert [variable for _, variable in clipped] == [a, b, unused, table] and clipped[2][0] is None
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        d_a, d_b, d_rows = session.run([clipped[0][0], clipped[1][0], clipped[3][0].values])
        np.testing.assert_allclose(d_a, 5)
        np.testing.assert_allclose(d_b, [3, 4], rtol=1e-6)
        np.testing.assert_allclose(d_rows, [[3], [3]])
    written = tf.contrib.training.add_gradients_summaries(pairs)
    assert [each.op.type for each in written] == ["HistogramSummary", "ScalarSummary"] * 3
    with pytest.raises(ValueError, match="`None` gradient: that of 'unused'"):
        slim.learning.multiply_gradients(pairs, {unused: 2.0})
    with pytest.raises(ValueError, match="must be a dict"):
        slim.learning.multiply_gradients(pairs, {})


def test_a_step_multiplies_and_summarizes_gradients():
    a, b = tf.Variable(1.0, name="a"), tf.Variable(1.0, name="b")
    optimizer = tf.train.GradientDescentOptimizer(0.5)
    step = slim.learning.create_train_op(a + b, optimizer, gradient_multipliers={"a": 4.0}, summarize_gradients=True)
    assert len(tf.get_collection(tf.GraphKeys.SUMMARIES)) == 4
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(step)
        assert session.run([a, b]) == [-1, 0.5]
