"""Loops that update variables: each turn reads what the turns before have written.

The expected values were computed by TensorFlow 2.21 (`compat.v1`), unless a comment says otherwise.
"""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf


def counted(body, turns, *others):
    """A loop of so many turns whose body is called with the variables behind the counter."""

    def counting(i, *values):
        following = body(i, *values)
        with tf.control_dependencies([following] if isinstance(following, (tf.Tensor, tf.Operation)) else following):
            return (i + 1, *(tf.identity(value) for value in following[: len(values)])) if values else i + 1

    return tf.while_loop(lambda i, *_: i < turns, counting, [0, *others])


def descent(w):
    return counted(lambda i: tf.assign_sub(w, 0.1 * tf.gradients(w * w, w)[0]), 10)


def minimized(w):
    return counted(lambda i: tf.train.GradientDescentOptimizer(0.1).minimize(w * w), 10)


def squares(w):
    return counted(lambda i: tf.assign(w, w * w), 4)


def condition_reads(w):
    def body(i):
        with tf.control_dependencies([tf.assign(w, w * 2.0)]):
            return i + 1

    return tf.while_loop(lambda i: w < 50.0, body, [0])


def loop_in_a_loop(w):
    return counted(lambda i: counted(lambda j: tf.assign(w, w + w), 2), 3)


def update_around_a_reading_loop(w):
    def body(i):
        total = tf.while_loop(lambda j, a: j < 2, lambda j, a: (j + 1, a + w), [0, 0.0])[1]
        with tf.control_dependencies([total]):
            return tf.assign(w, total * 2.0)

    return counted(body, 3)


def update_in_a_branch(w):
    return counted(lambda i: tf.cond(tf.equal(i % 2, 0), lambda: w.assign(w * 3.0), lambda: w.assign(w + 1.0)), 5)


def read_in_a_branch(w):
    return counted(lambda i: tf.assign(w, tf.cond(tf.equal(i % 2, 0), lambda: w * 3.0, lambda: w + 1.0)), 5)


def scanned(w):
    def step(total, x):
        with tf.control_dependencies([tf.assign(w, w * 2.0)]):
            return total + x

    return tf.scan(step, tf.constant([1.0, 2.0, 3.0]))


def mapped(w):
    def add(x):
        with tf.control_dependencies([tf.assign(w, w + x)]):
            return tf.identity(x)

    return tf.map_fn(add, tf.constant([1.0, 2.0, 3.0]), parallel_iterations=1)


LOOPS = [
    (descent, 5.0, 0.53687084),
    (minimized, 5.0, 0.53687084),
    (squares, 2.0, 65536.0),
    (condition_reads, 1.0, 64.0),
    (loop_in_a_loop, 1.0, 64.0),
    (update_around_a_reading_loop, 1.0, 64.0),
    (update_in_a_branch, 1.0, 39.0),
    (read_in_a_branch, 1.0, 39.0),
    (scanned, 1.0, 4.0),
    (mapped, 1.0, 7.0),
]


def value_after(make, start):
    w = tf.get_variable("w", initializer=start)
    loop = make(w)
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as session:
        session.run(w.initializer)
        session.run(loop)
        return session.run(w)


@pytest.mark.parametrize(("make", "start", "expected"), LOOPS, ids=lambda value: getattr(value, "__name__", None))
def test_each_turn_reads_what_was_written(make, start, expected):
    assert value_after(make, start) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(("make", "start", "expected"), LOOPS, ids=lambda value: getattr(value, "__name__", None))
def test_the_variable_may_be_on_another_device(make, start, expected):
    with tf.device(lambda op: "/cpu:1" if op.type == "Variable" else ""):
        assert value_after(make, start) == pytest.approx(expected, rel=1e-6)


def test_rows_and_two_variables():
    w, a, b = tf.Variable(np.ones((3, 2), np.float32)), tf.Variable(1.0), tf.Variable(1.0)

    def fibonacci(i):
        with tf.control_dependencies([tf.assign(a, a + b)]):
            return tf.assign(b, a + b)

    rows = counted(lambda i: tf.scatter_add(w, [i], [tf.reduce_sum(w, 0)]), 3)
    numbers = counted(fibonacci, 5)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run([rows, numbers])
        np.testing.assert_array_equal(session.run(w), [[4, 4], [7, 7], [13, 13]])
        assert session.run([a, b]) == [89, 144]


def test_a_read_that_stands_before_the_loop_is_made_once():
    """In TensorFlow this read may come after the first update, or, of a reference variable, see all of them."""
    w = tf.Variable(1.0)
    before = w.read_value()
    loop = counted(lambda i, total: (total + before, tf.assign_add(w, 1.0)), 5, 0.0)
    with tf.Session() as session:
        session.run(w.initializer)
        assert session.run(loop)[1] == 5.0


def test_a_variable_that_no_turn_updates_is_read_before_the_loop():
    w, counter = tf.Variable(3.0), tf.Variable(0.0)
    loop = counted(lambda i, x: (x * w, tf.assign_add(counter, 1.0)), 4, 1.0)
    body = loop[0].op.inputs[0].op.attrs["body"]
    assert [op.type for op in body.get_operations()].count("ReadVariableOp") == 0
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(loop)[1] == 81 and session.run(counter) == 4


def test_gradients_through_turns_that_read_different_values():
    """As TensorFlow with resource variables, and by finite differences: the product of the values that were read."""
    w, x = tf.Variable(2.0), tf.constant(3.0)
    result = counted(lambda i, a: (a * w, tf.assign_add(w, 1.0)), 3, x)[1]
    d_x, d_w = tf.gradients(result, [x, w])
    with tf.Session() as session:
        session.run(w.initializer)
        assert session.run([result, d_x]) == [72.0, 24.0]
        session.run(w.initializer)
        # d(w (w + 1) (w + 2) x) / dw, if the values added to w are taken as constants.
        assert session.run(d_w) == pytest.approx(3.0 * (3 * 4 + 2 * 4 + 2 * 3))


@pytest.mark.parametrize("use_loop", [False, True])
def test_branches_under_control_dependencies_see_the_update(use_loop):
    w = tf.Variable(1.0)
    with tf.control_dependencies([tf.assign_add(w, 4.0)]):
        if use_loop:
            result = tf.while_loop(lambda i, a: i < 2, lambda i, a: (i + 1, a + w), [0, 0.0])[1]
        else:
            result = tf.cond(tf.placeholder_with_default(True, []), lambda: w * 2.0, lambda: w * 3.0)
    with tf.Session() as session:
        session.run(w.initializer)
        assert session.run(result) == 10.0


def test_a_loop_that_reads_anew_survives_a_trip_through_plain_data():
    w = tf.get_variable("w", initializer=2.0)
    squares(w)
    saved = tf.get_default_graph().as_graph_def()
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(saved, name="")
        graph = tf.get_default_graph()
        session.run(graph.get_operation_by_name(w.initializer.name))
        session.run(next(op for op in graph.get_operations() if op.type == "While"))
        assert session.run(w.value().name) == 65536.0


@pytest.mark.ray
def test_a_loop_on_a_worker_updates_variables_of_a_parameter_server(ray_local):
    with tf.Cluster({"ps": tf.JobSpec(1, num_cpus=0.1), "worker": tf.JobSpec(1, num_cpus=0.1)}) as cluster:
        with tf.device("/job:ps/task:0"):
            w = tf.get_variable("w", initializer=5.0)
        with tf.device("/job:worker/task:0"):
            loop = descent(w)
        with tf.Session(cluster) as session:
            session.run(w.initializer)
            session.run(loop)
            assert session.run(w) == pytest.approx(0.53687084)
