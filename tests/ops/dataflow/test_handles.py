"""Handles: a step finds what is there now, and nothing that was dropped lives on."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import tfray as tf
from tests.support.waiting import resource
from tfray.errors import FailedPreconditionError, InvalidArgumentError


@pytest.fixture(autouse=True)
def on_the_cpu(graph):
    """Where there is a GPU, variables would be there."""
    with tf.device("/cpu:0"):
        yield


def device_of(session):
    return next(device for name, device in session._runner.devices_by_name().items() if "CPU" in name)


@pytest.mark.parametrize("shared_name", ["", "shared"])
def test_a_step_that_has_run_finds_a_queue_anew_after_it_was_dropped(session, shared_name):
    queue = tf.FIFOQueue(9, tf.int32, [()], name="q", shared_name=shared_name or None)
    put, size = session.make_callable(queue.enqueue(1)), session.make_callable(queue.size())
    put()
    put()
    old = weakref.ref(resource(session, shared_name or "q"))
    assert size() == 2
    device = device_of(session)
    (device.resources if shared_name else device.session_state).clear()
    gc.collect()
    assert old() is None
    assert size() == 0
    put()
    assert size() == 1


def test_a_variable_that_was_dropped_has_no_value(session):
    variable = tf.Variable(np.ones(3, np.float32), name="v")
    double = session.make_callable(variable * 2.0)
    session.run(variable.initializer)
    assert double().tolist() == [2, 2, 2]
    found = device_of(session).resources.find(("variable", "v"))
    old = weakref.ref(found.array)
    del found
    device_of(session).resources.remove(("variable", "v"))
    gc.collect()
    assert old() is None
    with pytest.raises(FailedPreconditionError, match="uninitialized value v"):
        double()
    session.run(variable.initializer)
    assert double().tolist() == [2, 2, 2]


def test_dropping_one_container_leaves_what_is_in_others(session):
    queues = []
    for container in ("a", "b"):
        with tf.container(container):
            queues.append(tf.FIFOQueue(9, tf.int32, [()], shared_name="q"))
    puts, sizes = [queue.enqueue(1) for queue in queues], [queue.size() for queue in queues]
    session.run(puts)
    device_of(session).resources.clear(["a"])
    assert session.run(sizes) == [0, 1]


def test_every_step_of_an_operation_that_does_not_fit_is_refused(session):
    queue = tf.FIFOQueue(9, tf.int32, [()], shared_name="q")
    other = tf.FIFOQueue(8, tf.int32, [()], shared_name="q").size()
    session.run(queue.size())
    for _ in range(2):
        with pytest.raises(InvalidArgumentError, match="capacity"):
            session.run(other)


def test_tables_and_iterators_that_were_dropped_are_made_anew(session):
    table = tf.contrib.lookup.MutableHashTable(tf.string, tf.int64, -1)
    look, insert = table.lookup(tf.constant("a")), table.insert(tf.constant("a"), tf.constant(7, tf.int64))
    iterator = tf.data.Dataset.range(3).make_initializable_iterator()
    element = iterator.get_next()
    session.run([insert, iterator.initializer])
    assert session.run([look, element]) == [7, 0]
    device = device_of(session)
    device.resources.clear()
    device.session_state.clear()
    assert session.run(look) == -1
    with pytest.raises(FailedPreconditionError):
        session.run(element)
