"""Steps of a cluster end, whatever the order in which threads run and messages arrive."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tfray as tf
from tests.support.links.conducted import Conductor, Hang, session_on
from tfray.actors.links.messages import Answer, plain

PS, OTHER_PS, WORKER, OTHER = (
    f"/job:{job}/task:{task}/device:CPU:0" for job, task in (("ps", 0), ("ps", 1), ("worker", 0), ("worker", 1))
)


def pull_and_push():
    """Two shards, and a worker that only wakes when they send it parameters."""
    updates = []
    for shard in (PS, OTHER_PS):
        with tf.device(shard):
            v = tf.Variable(np.ones(2, np.float32))
        with tf.device(WORKER):
            update = v * 0.5
        with tf.device(shard):
            updates.append(tf.assign_add(v, update, use_locking=True))
    with tf.device(WORKER):
        return tf.add_n([tf.reduce_sum(update) for update in updates])


def look_up():
    """A worker that asks a shard for rows, and another that sums them: each is woken by the one before."""
    with tf.device(PS):
        table = tf.Variable(np.arange(8, dtype=np.float32))
    with tf.device(WORKER):
        ids = tf.random_uniform([3], maxval=8, dtype=tf.int32)
    rows = tf.gather(table, ids)
    with tf.device(OTHER):
        return tf.reduce_sum(rows)


def push_only():
    """A worker that sends and answers nothing, and a shard that answers."""
    with tf.device(WORKER):
        gradient = tf.random_uniform([2])
    with tf.device(PS):
        v = tf.Variable(np.zeros(2, np.float32))
        return tf.assign_add(v, gradient).op


def relay():
    """Each wakes the next, and only the last answers."""
    with tf.device(WORKER):
        a = tf.random_uniform([])
    with tf.device(OTHER):
        b = tf.sqrt(a)
    with tf.device(PS):
        return tf.exp(b)


@pytest.fixture
def conducted():
    """Nothing: answers that nobody awaits fail the test (`no_unexpected_answers`)."""


MODELS = [pull_and_push, look_up, push_only, relay]


def run_in_order(model, threads, steps, choose):
    """Let threads run steps of a model, and see that all end and that the devices keep nothing of them."""
    with tf.Graph().as_default(), Conductor(PS, OTHER_PS, WORKER, OTHER) as conductor:
        fetch = model()
        initialize = tf.global_variables_initializer()
        session = session_on(conductor)
        conductor.play([lambda: session.run(initialize)])
        # Compiled on one thread, run on many.
        prepared = session.make_callable(fetch)
        done = []

        def steps_of_one():
            for _ in range(steps):
                prepared()
                done.append(1)

        conductor.play([steps_of_one] * threads, choose)
        session.close()
        assert len(done) == threads * steps
        assert [host.steps for host in conductor.hosts().values()] == [{}] * 4


@pytest.mark.fault(
    "Steps",
    "Many threads run steps of one session, and messages arrive in any order.",
    happens="Every step ends.",
    promise="No answer is lost, and each step is counted once.",
)
@pytest.mark.parametrize("model", MODELS)
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_steps_end_whatever_the_order_of_threads_and_frames(conducted, model, data):
    threads, steps = data.draw(st.sampled_from([(1, 3), (2, 2), (3, 2)]))
    run_in_order(model, threads, steps, lambda count: data.draw(st.integers(0, count - 1)))


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
@settings(max_examples=1500, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_steps_end_in_very_many_orders(conducted, model, data):
    threads, steps = data.draw(st.sampled_from([(1, 4), (2, 3), (4, 2)]))
    run_in_order(model, threads, steps, lambda count: data.draw(st.integers(0, count - 1)))


def test_a_thread_that_nobody_answers_is_a_hang_and_found():
    with Conductor(PS) as conductor, pytest.raises(Hang, match="1 of 1"):
        conductor.play([lambda: conductor.stop(lambda: False)])


@pytest.mark.fault(
    "Steps",
    "A device sends an answer that nobody waits for.",
    happens="A line on standard error names the device, the number of the answer and those that are awaited.",
    promise="Such an error is never silent, and no other step takes the answer.",
)
def test_an_answer_that_nobody_awaits_is_told_with_its_number_and_those_that_are_awaited(capsys):
    """The other end of the link answers a call that was never made, beside one that was."""
    with Conductor(PS) as conductor:
        peer, outcomes = conductor.peer(PS), []
        assert peer.expect(17, outcomes.append)
        peer._take(None, plain(Answer(18)), [])
        assert outcomes == []
        message = capsys.readouterr().err
        assert PS in message and "call 18" in message and "awaited: 17" in message
        peer._take(None, plain(Answer(17)), [5])
        assert outcomes == [("ok", [5])]
