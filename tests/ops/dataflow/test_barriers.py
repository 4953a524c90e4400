"""Barriers: components that come at different times are joined by their keys."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tests.support.waiting import Task, until_waiting
from tfray.errors import CancelledError, InvalidArgumentError, OutOfRangeError
from tfray.library.input.barrier import Barrier


def plain(taken):
    indices, keys, values = taken
    return (indices - np.iinfo(np.int64).min).tolist(), keys.tolist(), [value.tolist() for value in values]


def test_elements_are_complete_when_every_component_has_come(session):
    barrier = Barrier((tf.float32, tf.string), shapes=((), (2,)))
    session.run(barrier.insert_many(0, ["b", "a", "c"], [20.0, 10.0, 30.0]))
    assert session.run([barrier.ready_size(), barrier.incomplete_size()]) == [0, 3]
    session.run(barrier.insert_many(1, ["a", "b"], [["p", "q"], ["r", "s"]]))
    assert session.run([barrier.ready_size(), barrier.incomplete_size()]) == [2, 1]
    taken = barrier.take_many(2)
    assert [t.shape.as_list() for t in (*taken[:2], *taken[2])] == [[2], [2], [2], [2, 2]]
    indices, keys, values = plain(session.run(taken))
    assert (indices, keys) == ([0, 0], [b"b", b"a"])  # keys that came together, in the order of their first appearance
    assert values == [[20.0, 10.0], [[b"r", b"s"], [b"p", b"q"]]]


def test_taking_waits_for_enough(session):
    barrier = Barrier(tf.int32, shapes=[()], name="barrier")
    waiter = Task(session.run, barrier.take_many(3))
    until_waiting(session, "barrier", 0)
    session.run(barrier.insert_many(0, ["a", "b"], [1, 2]))
    assert not waiter.done
    session.run(barrier.insert_many(0, ["c", "d"], [3, 4]))
    assert plain(waiter.result())[2] == [[1, 2, 3]]
    assert session.run(barrier.ready_size()) == 1


def test_a_closed_barrier_completes_what_has_begun(session):
    barrier = Barrier((tf.int32, tf.int32), shapes=((), ()), name="barrier")
    session.run(barrier.insert_many(0, ["a", "b"], [1, 2]))
    waiter = Task(session.run, barrier.take_many(3, allow_small_batch=True))
    until_waiting(session, "barrier", 0)
    session.run(barrier.close())
    with pytest.raises(CancelledError, match="closed"):
        session.run(barrier.insert_many(0, ["c"], [3]))
    assert not waiter.done
    session.run(barrier.insert_many(1, ["a", "b"], [10, 20]))
    assert plain(waiter.result())[2] == [[1, 2], [10, 20]]
    with pytest.raises(OutOfRangeError):
        session.run(barrier.take_many(1, allow_small_batch=True))
    with pytest.raises(CancelledError, match="already"):
        session.run(barrier.close())


def test_closing_may_forget_what_is_not_complete(session):
    barrier = Barrier((tf.int32, tf.int32), shapes=((), ()))
    session.run(barrier.insert_many(0, ["a", "b"], [1, 2]))
    session.run(barrier.insert_many(1, ["a"], [10]))
    session.run(barrier.close())
    session.run(barrier.close(cancel_pending_enqueues=True))
    assert session.run([barrier.ready_size(), barrier.incomplete_size()]) == [1, 0]
    with pytest.raises(CancelledError):
        session.run(barrier.insert_many(1, ["b"], [20]))
    with pytest.raises(OutOfRangeError, match="requested 2, total size 1"):
        session.run(barrier.take_many(2))
    assert plain(session.run(barrier.take_many(1)))[2] == [[1], [10]]


def test_an_insertion_is_all_or_nothing(session):
    barrier = Barrier((tf.int32, tf.int32), shapes=((), ()))
    session.run(barrier.insert_many(0, ["a"], [1]))
    with pytest.raises(InvalidArgumentError, match="already"):
        session.run(barrier.insert_many(0, ["b", "a"], [2, 1]))
    with pytest.raises(InvalidArgumentError, match="twice"):
        session.run(barrier.insert_many(0, ["b", "b"], [2, 1]))
    assert session.run(barrier.incomplete_size()) == 1


def test_what_does_not_fit_is_refused(session):
    barrier = Barrier((tf.int32, tf.float32), shapes=((), (2,)))
    with pytest.raises(ValueError, match="index 2"):
        barrier.insert_many(2, ["a"], [1])
    with pytest.raises(ValueError, match="int32"):
        barrier.insert_many(0, ["a"], [1.5])
    with pytest.raises(InvalidArgumentError, match="as many"):
        session.run(barrier.insert_many(0, ["a", "b"], [1]))
    with pytest.raises(InvalidArgumentError, match="component 1"):
        session.run(barrier.insert_many(1, ["a"], [[1.0]]))
    with pytest.raises(InvalidArgumentError, match="-1"):
        session.run(barrier.take_many(-1))
    assert plain(session.run(barrier.take_many(0))) == ([], [], [[], []])


def test_equal_shared_names_are_one_barrier(session):
    first, second = (Barrier(tf.int32, shapes=[()], shared_name="shared") for _ in range(2))
    session.run(first.insert_many(0, ["a"], [1]))
    assert plain(session.run(second.take_many(1)))[1] == [b"a"]
    assert first.name == "barrier" and second.barrier_ref.op.name == "barrier_1"
    with pytest.raises(InvalidArgumentError, match="shared"):
        session.run(Barrier(tf.int64, shapes=[()], shared_name="shared").ready_size())


def test_small_batches_do_not_wait_for_what_is_not_complete(session):
    barrier = Barrier((tf.int32, tf.int32), shapes=((), ()))
    session.run(barrier.insert_many(0, ["a", "b", "c"], [1, 2, 3]))
    session.run(barrier.insert_many(1, ["a", "b"], [10, 20]))
    session.run(barrier.close())
    _, keys, _ = session.run(barrier.take_many(3, allow_small_batch=True))
    assert keys.tolist() == [b"a", b"b"]
    with pytest.raises(OutOfRangeError, match=r"insufficient elements \(requested 2, total size 1\)"):
        session.run(barrier.take_many(2))


def test_components_without_elements(session):
    with pytest.raises(ValueError, match=r"received shape '\(0,\)' at index 1"):
        Barrier((tf.int32, tf.int32), shapes=((1,), (0,)))
    with pytest.raises(InvalidArgumentError, match="Tensors with no elements are not supported"):
        session.run(Barrier(tf.float32).insert_many(0, ["a"], np.zeros([1, 0], np.float32)))
