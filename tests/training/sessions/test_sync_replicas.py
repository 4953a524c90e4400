"""`tf.train.SyncReplicasOptimizer` in one session: several replicas in one graph, which share accumulators and tokens.

Tests of replicas in sessions and processes of their own are in test_servers.py and test_launch.py.
"""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf


def replica(x, step, factor, count, total=None, **options):
    """The optimizer of a replica whose gradient is `factor`, and its step."""
    optimizer = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.1), count, total, **options)
    return optimizer, optimizer.minimize(x * factor, global_step=step)


@pytest.fixture
def x():
    return tf.Variable(1.0, name="x")


@pytest.fixture
def step():
    return tf.train.get_or_create_global_step()


def begin(session, chief, *others, tokens=0):
    """What programs without hooks do: initialise, hand out tokens, start the updates. Returns what stops them."""
    tokens_op, runner, coord = chief.get_init_tokens_op(tokens), chief.get_chief_queue_runner(), tf.train.Coordinator()
    session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    assert session.run(chief.ready_for_local_init_op).size == 0
    session.run([chief.chief_init_op, *[other.local_step_init_op for other in others]])
    session.run(tokens_op)
    runner.create_threads(session, coord, start=True)
    return coord


def test_late_gradients_are_dropped(x, step):
    """One gradient of two replicas makes an update: the other is a backup."""
    (fast, fast_op), (slow, slow_op) = replica(x, step, 1.0, 1, 2), replica(x, step, 100.0, 1, 2)
    with tf.Session() as session:
        begin(session, fast, slow)
        session.run(fast_op)
        assert session.run([x, step]) == [np.float32(0.9), 1]
        session.run(slow_op)  # its values are those of step 0
        assert session.run([x, step]) == [np.float32(0.9), 1]
        session.run(slow_op)  # the token has told it the step
        np.testing.assert_allclose(session.run(x), 0.9 - 10, rtol=1e-6)
        assert session.run(step) == 2


def test_a_replica_may_contribute_more_than_once(x, step):
    """Three gradients make an update, of one replica: it has tokens for two more steps to begin with."""
    chief, train_op = replica(x, step, 1.0, 3, 1)
    with tf.Session() as session:
        begin(session, chief, tokens=-1)
        for _ in range(3):
            session.run(train_op)
        session.run(train_op)  # its token may be one of the first
        with pytest.raises(ValueError, match="at least 2 are needed"):
            chief.get_init_tokens_op(1)


def test_moving_averages_follow_the_updates(x, step):
    averages = tf.train.ExponentialMovingAverage(0.5)
    chief, train_op = replica(x, step, 1.0, 1, variable_averages=averages, variables_to_average=[x])
    with tf.Session() as session:
        begin(session, chief)
        session.run(train_op)
        session.run(train_op)  # whose update comes after the first average
        assert session.run(averages.average(x)) in (np.float32(0.95), np.float32(0.875))


def test_the_optimizer_within_is_seen_through(x, step):
    inner = tf.train.MomentumOptimizer(0.1, 0.9)
    optimizer = tf.train.SyncReplicasOptimizer(inner, 1)
    optimizer.apply_gradients(optimizer.compute_gradients(x * 2.0), step)
    assert optimizer.get_slot_names() == ["momentum"] and optimizer.variables() == inner.variables()
    assert optimizer.get_slot(x, "momentum") is inner.get_slot(x, "momentum")


def test_steps_without_what_they_need(x, step):
    optimizer = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.1), 1)
    for early in (optimizer.get_init_tokens_op, optimizer.get_chief_queue_runner):
        with pytest.raises(ValueError, match="before minimize or apply_gradients"):
            early()
    with pytest.raises(ValueError, match="apply_gradient should be called before using the hook"):
        optimizer.make_session_run_hook(True).begin()
    with pytest.raises(ValueError, match="needs global_step"):
        optimizer.minimize(x * 1.0)
    with pytest.raises(ValueError, match="is empty"):
        optimizer.apply_gradients([], step)


@pytest.mark.parametrize("is_chief", [True, False])
def test_the_hook_wants_variables_with_values(x, step, is_chief):
    optimizer, _ = replica(x, step, 1.0, 1)
    hook = optimizer.make_session_run_hook(is_chief)
    hook.begin()
    with tf.Session() as session, pytest.raises(RuntimeError, match="without a value: x, global_step"):
        hook.after_create_session(session, tf.train.Coordinator())


def test_a_monitored_session_ends_at_once(x, step):
    optimizer, train_op = replica(x, step, 1.0, 1)
    hooks = [optimizer.make_session_run_hook(True), tf.train.StopAtStepHook(last_step=5)]
    with tf.train.MonitoredTrainingSession(hooks=hooks, stop_grace_period_secs=300) as session:
        while not session.should_stop():
            session.run(train_op)
        assert session._tf_sess().run(step) == 5
