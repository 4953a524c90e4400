"""Operations that may wait, within the code of one segment: what it does happens once, and in order."""

from __future__ import annotations

import contextlib
import gc

import numpy as np
import pytest

import tfray as tf
from tests.support.leftovers import instances
from tests.support.waiting import Task, timed_out, until_waiting, waiting
from tfray.errors import CancelledError, DeadlineExceededError, InvalidArgumentError
from tfray.runtime.executor import PlanRun
from tfray.runtime.rendezvous import Mailbox
from tfray.runtime.step import Step

ENQUEUE, DEQUEUE = 0, 1


@pytest.fixture(autouse=True)
def on_the_cpu(graph):
    """Where there is a GPU, variables would be there, and steps would have parts on two devices."""
    with tf.device("/cpu:0"):
        yield


def segments_of(session, fetch):
    """The types of the operations in each segment of a step that has run."""
    (step,) = [step for key, step in session._steps.items() if fetch in key]
    return [[op.type for op in segment.ops] for plan in step._registered._plans for segment in plan.segments]


@pytest.fixture
def chain(graph):
    """A step that counts, takes an element, counts, computes something of it, adds that to a queue, and counts."""
    source, target = (tf.FIFOQueue(n, tf.float32, [[2]], name=name) for n, name in ((8, "source"), (1, "target")))
    counts = [tf.Variable(0, name=f"count_{i}") for i in range(3)]
    with tf.control_dependencies([counts[0].assign_add(1)]):
        element = source.dequeue(name="take")
    with tf.control_dependencies([element, counts[1].assign_add(1)]):
        enqueue = target.enqueue(tf.square(element) + 1.0, name="put")
    with tf.control_dependencies([enqueue]):
        last = counts[2].assign_add(1).op
    return source, target, counts, last


def test_a_step_from_queue_to_queue_is_one_segment(session, chain):
    source, target, counts, last = chain
    session.run(tf.global_variables_initializer())
    session.run(source.enqueue([1.0, 2.0]))
    session.run(last)
    (types,) = segments_of(session, last)
    assert types.index("QueueDequeue") < types.index("Square") < types.index("QueueEnqueue")
    assert session.run(target.dequeue()).tolist() == [2, 5]
    assert session.run(counts) == [1, 1, 1]


def test_what_comes_before_a_wait_happens_once(session, chain):
    source, target, counts, last = chain
    session.run(tf.global_variables_initializer())
    session.run(target.enqueue([0.0, 0.0]))
    put = source.enqueue([1.0, 2.0])
    step = Task(session.run, last)
    until_waiting(session, "source", DEQUEUE)
    assert session.run(counts)[::2] == [1, 0]
    session.run(put)
    until_waiting(session, "target", ENQUEUE)
    assert session.run(counts) == [1, 1, 0]
    session.run(put)  # for nobody: the step has taken its element
    assert session.run(target.dequeue()).tolist() == [0, 0]
    step.result()
    assert session.run(counts) == [1, 1, 1]
    assert session.run(target.dequeue()).tolist() == [2, 5]
    assert session.run(source.size()) == 1


def test_results_before_a_wait_outlast_the_steps_of_others(graph, session):
    """What a step has computed when it begins to wait stays, whatever steps of the same code compute meanwhile."""
    x = tf.placeholder(tf.float32, [64])
    queue, target = (tf.FIFOQueue(40, tf.float32, [[64]], name=name) for name in ("q", "target"))
    before = tf.sqrt(tf.exp(x) * 2.0) + 1.0
    with tf.control_dependencies([before]):
        taken = queue.dequeue()
    enqueue = target.enqueue(tf.stack([before, taken])[0] + 0.0 * taken)
    inputs = [np.full(64, i / 8, np.float32) for i in range(16)]
    steps = [Task(session.run, enqueue, {x: each}) for each in inputs]
    until_waiting(session, "q", DEQUEUE, 16)
    session.run(queue.enqueue_many(np.zeros((16, 64), np.float32)))
    for step in steps:
        step.result()
    got = sorted(session.run(target.dequeue_many(16)).tolist())
    np.testing.assert_allclose(got, [np.sqrt(np.exp(each) * 2) + 1 for each in inputs], rtol=1e-5)


@pytest.mark.parametrize("held_up", ["take", "put"])
def test_a_step_that_times_out_within_a_chain_names_what_waits(session, chain, held_up):
    source, target, _, last = chain
    session.run(tf.global_variables_initializer())
    if held_up == "put":
        session.run(target.enqueue([0.0, 0.0]))
        session.run(source.enqueue_many(np.ones((8, 2), np.float32)))
    error = timed_out(session, last, at=held_up)
    assert error.op_name == held_up and "test_chains.py" in error.site
    assert waiting(session, "source") == waiting(session, "target") == [0, 0]


def test_closing_ends_an_enqueue_that_waits_within_a_chain(session, chain):
    source, target, counts, last = chain
    session.run(tf.global_variables_initializer())
    session.run(target.enqueue([0.0, 0.0]))
    session.run(source.enqueue([1.0, 2.0]))
    step = Task(session.run, last)
    until_waiting(session, "target", ENQUEUE)
    session.run(target.close(cancel_pending_enqueues=True))
    with pytest.raises(CancelledError) as caught:
        step.result()
    assert caught.value.op_name == "put" and "test_chains.py" in caught.value.site
    assert session.run(counts) == [1, 1, 0]


def test_an_error_behind_a_wait_names_its_operation(session):
    queue = tf.FIFOQueue(1, tf.float32, [[2]], name="q")
    checked = tf.check_numerics(tf.log(queue.dequeue()), "wrong", name="check")
    step = Task(session.run, checked)
    until_waiting(session, "q", DEQUEUE)
    session.run(queue.enqueue([0.0, 1.0]))
    with pytest.raises(InvalidArgumentError, match="wrong") as caught:
        step.result()
    assert caught.value.op_name == "check" and "test_chains.py" in caught.value.site


def test_shapes_that_a_queue_does_not_tell_are_known_behind_it(session):
    """What is compiled for the shapes of its inputs is no part of a chain with the operation that gives them."""
    queue = tf.FIFOQueue(4, tf.float32, name="q")
    element = queue.dequeue()
    element.set_shape([None, 3])
    total = tf.reduce_sum(tf.ones(tf.shape(element)) * element, 0)
    for rows in (2, 5):
        session.run(queue.enqueue(np.full((rows, 3), 2.0, np.float32)))
        assert session.run(total).tolist() == [2.0 * rows] * 3
    assert any("QueueDequeue" in types and "Sum" not in types for types in segments_of(session, total))


@pytest.mark.parametrize("rows, is_apart", [(10, False), (1000, True)])
def test_what_takes_much_memory_takes_it_when_it_need_not_wait(session, rows, is_apart):
    queue = tf.FIFOQueue(2, tf.float32, [[rows, 1000]], name="q")
    total = tf.reduce_sum(tf.exp(tf.sin(queue.dequeue())))
    session.run(queue.enqueue(np.zeros((rows, 1000), np.float32)))
    assert session.run(total) == 1000 * rows
    segments = segments_of(session, total)
    assert is_apart == any("QueueDequeue" in types and "Exp" not in types for types in segments)


class DoneMeanwhile:
    """An attempt that another thread ends between two looks of the step: before anybody can be woken."""

    def __init__(self):
        self.when_done = None
        self._looks = 0

    @property
    def done(self):
        self._looks += 1
        return self._looks > 1

    def result(self):
        return 7

    def cancel(self):
        raise AssertionError("it is done")


def test_what_is_done_while_a_step_begins_to_wait_is_not_waited_for():
    step = Step(1, mailbox=Mailbox())
    step.suspends = True
    assert step.complete("op", DoneMeanwhile) == 7
    step.cancel()


def test_nothing_of_a_step_that_was_left_stays(session):
    """Not even until the next search for garbage."""
    queue = tf.FIFOQueue(1, tf.float32, [()], name="q")
    element = queue.dequeue()
    gc.collect()
    gc.disable()
    try:
        step = Task(session.run, element)
        until_waiting(session, "q", DEQUEUE)
        assert len(instances(PlanRun)) == 1
        session.run(queue.enqueue(1.0))
        step.result()
        with contextlib.suppress(DeadlineExceededError):
            session.run(element, options=tf.RunOptions(timeout_in_ms=50))
        assert instances(PlanRun) == []
    finally:
        gc.enable()
