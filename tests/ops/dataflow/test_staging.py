"""Staging areas: buffers between a step and the next one."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tests.support.waiting import Task, timed_out, until_waiting
from tfray.contrib import staging
from tfray.errors import InvalidArgumentError, ResourceExhaustedError

# -- first in, first out -------------------------------------------------------------------------------


def test_elements_come_in_their_order(session):
    area = staging.StagingArea([tf.float32, tf.int32], shapes=[[2], []])
    x = tf.placeholder(tf.float32, [2])
    put, got = area.put([x, 7]), area.get()
    assert [tensor.shape.as_list() for tensor in got] == [[2], []] and area.dtypes == [tf.float32, tf.int32]
    for i in range(3):
        session.run(put, {x: [i, i]})
    assert session.run(area.size()) == 3
    assert [session.run(got)[0].tolist() for _ in range(3)] == [[0, 0], [1, 1], [2, 2]]


def test_components_may_have_names(session):
    area = tf.contrib.staging.StagingArea([tf.float32, tf.string], shapes=[[], []], names=["x", "text"])
    session.run(area.put({"text": "a", "x": 1.0}))
    value = session.run(area.get())
    assert value == {"x": 1.0, "text": b"a"}
    for wrong in ({"x": 1.0}, [1.0, "a"], {"x": 1.0, "other": "a"}):
        with pytest.raises(ValueError, match="component"):
            area.put(wrong)
    with pytest.raises(ValueError, match="names"):
        staging.StagingArea([tf.float32]).put({"x": 1.0})


def test_a_step_puts_what_the_next_one_gets(session):
    """The use that it is made for: input is on its way while the step computes."""
    area = staging.StagingArea([tf.int32], [[]])
    source = tf.train.range_input_producer(5, num_epochs=1, shuffle=False).dequeue()
    put = area.put(source)
    result = area.get()[0] * 10
    session.run(tf.local_variables_initializer())
    tf.train.start_queue_runners(session)
    session.run(put)
    assert [session.run([result, put])[0] for _ in range(4)] == [0, 10, 20, 30]
    with pytest.raises(tf.errors.OutOfRangeError):
        session.run([result, put])


def test_elements_can_be_looked_at(session):
    area = staging.StagingArea([tf.int32])
    index = tf.placeholder(tf.int32, [])
    peek = area.peek(index)
    waiter = Task(session.run, peek, {index: 1})
    until_waiting(session, "StagingArea", 0)
    session.run(area.put([tf.constant([1])]))
    assert session.run(peek, {index: 0})[0].tolist() == [1]  # it does not stand in line
    session.run(area.put([tf.constant([2])]))
    assert waiter.result()[0].tolist() == [2]
    assert session.run(area.size()) == 2
    session.run(area.clear())
    assert session.run(area.size()) == 0
    with pytest.raises(InvalidArgumentError, match="negative"):
        session.run(peek, {index: -1})


def test_a_full_area_makes_wait(session):
    area = staging.StagingArea([tf.int32], capacity=2)
    value = tf.placeholder(tf.int32, [])
    put, got = area.put(value), area.get()
    for i in range(2):
        session.run(put, {value: i})
    waiter = Task(session.run, put, {value: 2})
    until_waiting(session, "StagingArea", 0)
    assert [session.run(got)[0] for _ in range(3)] == [0, 1, 2]
    waiter.result()


def test_an_area_may_be_limited_in_bytes(session):
    area = staging.StagingArea([tf.float32], memory_limit=100)
    value = tf.placeholder(tf.float32, [None])
    put, got = area.put(value), area.get()
    session.run(put, {value: np.zeros(20)})
    waiter = Task(session.run, put, {value: np.ones(10)})
    until_waiting(session, "StagingArea", 0)
    session.run(put, {value: np.zeros(5)})  # fits
    assert [session.run(got)[0].size for _ in range(3)] == [20, 5, 10]
    waiter.result()
    with pytest.raises(ResourceExhaustedError, match="100 bytes"):
        session.run(put, {value: np.zeros(26)})


def test_the_area_owns_what_it_holds(session):
    area = staging.StagingArea([tf.float32])
    fed, array = tf.placeholder(tf.float32), np.ones(2, np.float32)
    session.run(area.put(fed), {fed: array})
    array[:] = 0
    assert session.run(area.get())[0].tolist() == [1, 1]


def test_waiting_at_an_area_ends_with_the_time(session):
    area = staging.StagingArea([tf.float32], shared_name="area")
    timed_out(session, area.get(), at="get")


def test_equal_shared_names_are_one_area(session):
    first = staging.StagingArea([tf.int32], shared_name="area")
    session.run(first.put(3))
    assert session.run(staging.StagingArea([tf.int32], shared_name="area").get()) == [3]
    for other in (
        staging.StagingArea([tf.int32], shared_name="area", capacity=3),
        staging.MapStagingArea([tf.int32], shared_name="area"),
    ):
        with pytest.raises(InvalidArgumentError, match="area"):
            session.run(other.size())


# -- by key --------------------------------------------------------------------------------------------


def test_elements_are_found_by_their_keys(session):
    area = staging.MapStagingArea([tf.int32, tf.float32], shapes=[[], []])
    key = tf.placeholder(tf.int64, [])
    put, got = area.put(key, [tf.cast(key, tf.int32) * 10, 0.5]), area.get(key)[1]
    for k in (3, 1, 2):
        session.run(put, {key: k})
    assert session.run(area.peek(2)) == [20, 0.5]
    assert [session.run(got, {key: k})[0] for k in (1, 2, 3)] == [10, 20, 30]
    assert session.run(area.size()) == 0


@pytest.mark.parametrize(("ordered", "expected"), [(True, [1, 2, 3]), (False, [3, 1, 2])])
def test_any_element_may_be_taken(session, ordered, expected):
    area = staging.MapStagingArea([tf.int32], ordered=ordered)
    for k in (3, 1, 2):
        session.run(area.put(k, [k * 10]))
    key, (value,) = area.get()
    assert key.dtype is tf.int64
    got = [session.run([key, value]) for _ in range(3)]
    assert [k for k, _ in got] == expected and all(v == 10 * k for k, v in got)


def test_components_come_one_by_one(session):
    area = staging.MapStagingArea([tf.int32, tf.string], names=["number", "text"])
    waiter = Task(session.run, area.get(5)[1])
    until_waiting(session, "MapStagingArea", 0)
    session.run(area.put(5, {"text": "five"}))
    assert session.run([area.size(), area.incomplete_size()]) == [0, 1]
    with pytest.raises(InvalidArgumentError, match="key 5"):
        session.run(area.put(5, {"text": "again"}))
    session.run(area.put(5, {"number": 5}))
    assert waiter.result() == {"number": 5, "text": b"five"}
    assert session.run([area.size(), area.incomplete_size()]) == [0, 0]


def test_components_are_taken_one_by_one(session):
    area = staging.MapStagingArea([tf.int32, tf.float32, tf.string])
    session.run(area.put(1, [7, 0.5, "a"]))
    assert session.run(area.get(1, indices=[2, 0])[1]) == [b"a", 7]
    assert session.run(area.size()) == 1
    with pytest.raises(InvalidArgumentError, match="has already been removed"):
        session.run(area.get(1, indices=[0])[1])
    assert session.run(area.get(1, indices=[1])[1]) == [0.5]
    assert session.run(area.size()) == 0


def test_only_complete_elements_count_towards_the_capacity(session):
    area = staging.MapStagingArea([tf.int32, tf.int32], capacity=1)
    session.run(area.put(1, [1, 1]))
    session.run(area.put(2, [2], indices=[0]))
    waiter = Task(session.run, area.put(2, [2], indices=[1]))
    until_waiting(session, "MapStagingArea", 0)
    assert session.run(area.get(1)[1]) == [1, 1]
    waiter.result()
    assert session.run(area.get(2)[1]) == [2, 2]
    session.run(area.put(3, [3, 3]))
    session.run(area.clear())
    assert session.run([area.size(), area.incomplete_size()]) == [0, 0]


def test_arguments_are_checked(session):
    area = staging.MapStagingArea([tf.int32, tf.float32], shapes=[[], [2]])
    with pytest.raises(ValueError, match="index 2"):
        area.get(1, indices=[2])
    with pytest.raises(ValueError, match="'x'"):
        area.get(1, indices=["x"])
    with pytest.raises(ValueError, match="1 values for 2"):
        area.put(1, [1])
    with pytest.raises(ValueError, match="shape"):
        area.put(1, [1, [1.0, 2.0, 3.0]])
    with pytest.raises(InvalidArgumentError, match="indices"):
        session.run(area.put(1, [1, 1], indices=[0, 0]))
    with pytest.raises(ValueError, match="shape"):
        staging.StagingArea([tf.int32], shapes=[[], []])


@pytest.mark.parametrize("kind", [staging.StagingArea, staging.MapStagingArea])
def test_elements_are_on_the_device_of_the_caller(kind):
    with tf.device("/device:GPU:0"):
        area = kind([tf.float32])
        put = area.put([tf.constant(1.0)]) if kind is staging.StagingArea else area.put(1, [tf.constant(1.0)])
    with tf.device("/cpu:0"):
        got = area.get() if kind is staging.StagingArea else area.get(1)[1]
    assert [put.device, got[0].device] == ["/device:GPU:0", "/device:CPU:0"]
    assert got[0].op.inputs[0].device == "/device:GPU:0"
