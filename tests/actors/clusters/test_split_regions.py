"""Branches and loops whose operations stand on several devices."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import tfray as tf
from tests.support.processes import PATIENCE_S
from tfray.placement.partition import is_split
from tfray.placement.placer import place

LOCAL = [f"/job:localhost/task:0/device:CPU:{index}" for index in range(3)]
CLUSTER = ["/job:ps/task:0", "/job:worker/task:0", "/job:worker/task:1"]
VALUES = np.random.default_rng(0).normal(size=(3, 3)).astype(np.float32)


def loop(on):
    x = tf.placeholder(tf.float32, [3, 3])
    with on(0):
        w = tf.get_variable("w", [3, 3], initializer=tf.constant_initializer(0.3))

    def body(i, a, b):
        with on(0):
            following_a = tf.tanh(tf.matmul(a, w)) + 0.1 * tf.cast(i, tf.float32)
        with on(1):
            following_b = tf.sin(b + following_a)
        with on(2):
            return i + 1, following_a, following_b

    i, a, b = tf.while_loop(lambda i, a, b: i < 5, body, [0, x, x])
    loss = tf.reduce_sum(a * b)
    return [i, a, b, loss, *tf.gradients(loss, [x, w])], {x: VALUES}


def branch(on, taken):
    x, pred = tf.placeholder(tf.float32, [3, 3]), tf.placeholder(tf.bool, [])

    def then():
        with on(0):
            first = tf.exp(x)
        with on(1):
            return first, first * 2

    def orelse():
        with on(2):
            return x * 3, x + 1

    first, second = tf.cond(pred, then, orelse)
    return [first, second, *tf.gradients(tf.reduce_sum(first * second), x)], {x: VALUES, pred: taken}


def nested(on):
    x = tf.placeholder(tf.float32, [3, 3])

    def inner(i, j, b):
        with on(1):
            following = b * 1.1 + 0.1
        with on(0):
            return i, j + 1, following

    def body(i, a):
        with on(0):
            started = tf.sin(a)
        repeated = tf.while_loop(lambda i, j, b: j < i, inner, [i, 0, started])[2]
        with on(2):
            chosen = tf.cond(tf.reduce_sum(repeated) > 0, lambda: repeated + 1, lambda: repeated - 1)
        return i + 1, chosen

    i, a = tf.while_loop(lambda i, a: i < 4, body, [0, x])
    return [i, a, *tf.gradients(tf.reduce_sum(a * a), x)], {x: VALUES}


def written(on):
    x = tf.placeholder(tf.float32, [3, 3])

    def body(i, state, outputs):
        with on(1):
            following = tf.tanh(state + i_as_float(i))
        with on(2):
            return i + 1, following, outputs.write(i, following * 2)

    _, state, outputs = tf.while_loop(lambda i, *_: i < 4, body, [0, x, tf.TensorArray(tf.float32, 4)])
    stacked = outputs.stack()
    return [state, stacked, *tf.gradients(tf.reduce_sum(tf.square(stacked)), x)], {x: VALUES}


def i_as_float(i):
    return tf.cast(i, tf.float32)


def updated(on):
    with on(0):
        total = tf.get_variable("total", initializer=0.0)
    steps = tf.constant([1.0, 2.0, 4.0])

    def body(i):
        with on(1):
            step = steps[i] * 10
        with tf.control_dependencies([total.assign_add(step)]):
            return tf.add(i, 1)

    turns = tf.while_loop(lambda i: i < 3, body, [0])
    with tf.control_dependencies([turns]):
        return [turns, total.read_value()], {}


PROGRAMS = {
    "loop": loop,
    "branch taken": lambda on: branch(on, True),
    "branch not taken": lambda on: branch(on, False),
    "nested": nested,
    "written": written,
    "updated": updated,
}


def evaluate(program, target, config, devices):
    with tf.Graph().as_default(), tf.Session(target, config=config) as session:
        fetches, feeds = program(lambda index: tf.device(devices[index] if devices else None))
        session.run(tf.global_variables_initializer())
        return session.run(fetches, feeds)


def check(program, target, config, devices):
    expected = evaluate(program, "", None, None)
    found = evaluate(program, target, config, devices)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_a_program_on_several_devices_computes_the_same(program):
    check(program, "", tf.ConfigProto(device_count={"CPU": 3}), LOCAL)


@pytest.mark.ray
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_a_program_on_a_cluster_computes_the_same(program, cluster):
    check(program, cluster, None, CLUSTER)


@pytest.fixture(scope="module")
def cluster(_ray_of_the_session):
    from tests.support.local_ray import start_local_ray

    start_local_ray(_ray_of_the_session)
    jobs = {"ps": tf.JobSpec(1, num_cpus=0.1), "worker": tf.JobSpec(2, num_cpus=0.1)}
    with tf.Cluster(jobs) as cluster:
        yield cluster


def test_operations_of_one_device_stay_together():
    with tf.device(LOCAL[1]):
        result = tf.while_loop(lambda i: i < 3, lambda i: [i + 1], [0])
    placement = place(tf.get_default_graph(), LOCAL)
    assert placement[result.op] == LOCAL[1]
    assert not is_split(result.op, placement)


def test_turns_overlap():
    """The device of the second stage waits in its first turn until that of the first stage is in its fourth."""
    fourth_turn = threading.Event()
    late = []

    def first_stage(i):
        if i == 3:
            fourth_turn.set()
        return i

    def second_stage(x):
        late.append(not fourth_turn.wait(PATIENCE_S))
        return x

    def body(i, x):
        with tf.device(LOCAL[0]):
            counted = tf.py_func(first_stage, [i], tf.int32)
            counted.set_shape([])
        with tf.device(LOCAL[1]):
            following = tf.py_func(second_stage, [x + tf.cast(counted, tf.float32)], tf.float32)
            following.set_shape([])
        return counted + 1, following

    with tf.device(LOCAL[0]):
        i, x = tf.while_loop(lambda i, x: i < 6, body, [0, 0.0])
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as session:
        assert session.run([i, x]) == [6, 15.0]
    assert late == [False] * 6


def test_a_dataset_goes_from_one_device_to_another():
    dataset = tf.data.Dataset.from_tensors(1)
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as session:
        for device in LOCAL[:2]:
            with tf.device(device):
                number = tf.Variable(10, use_resource=True)
                dataset = dataset.map(lambda x, number=number: x + number.read_value())
            session.run(number.initializer)
        iterator = tf.compat.v1.data.make_initializable_iterator(dataset)
        session.run(iterator.initializer)
        assert session.run(iterator.get_next()) == 21


def test_an_error_in_a_turn_ends_the_step_on_every_device():
    def fail(i):
        if i == 2:
            raise ValueError("no third turn")
        return i

    def body(i, x):
        with tf.device(LOCAL[1]):
            checked = tf.py_func(fail, [i], tf.int32, name="checked")
            checked.set_shape([])
        with tf.device(LOCAL[0]):
            return checked + 1, x * 2

    with tf.device(LOCAL[0]):
        results = tf.while_loop(lambda i, x: i < 6, body, [0, 1.0])
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as session:
        with pytest.raises(tf.errors.OpError, match="no third turn") as caught:
            session.run(results)
        assert caught.value.op_name.endswith("checked")
        assert caught.value.device == LOCAL[1]
        with pytest.raises(tf.errors.OpError, match="no third turn"):
            session.run(results)


def test_a_split_loop_ends_at_its_deadline():
    released = threading.Event()

    def body(i):
        with tf.device(LOCAL[1]):
            waited = tf.py_func(lambda i: (released.wait(20), i)[1], [i], tf.int32)
            waited.set_shape([])
        with tf.device(LOCAL[0]):
            return [waited + 1]

    with tf.device(LOCAL[0]):
        result = tf.while_loop(lambda i: i < 2, body, [0])
    threading.Timer(1.0, released.set).start()
    with (
        tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as session,
        pytest.raises(tf.errors.DeadlineExceededError),
    ):
        session.run(result, options=tf.RunOptions(timeout_in_ms=200))


def test_a_recurrent_network_beside_its_variables():
    def step(place):
        with tf.Graph().as_default(), tf.device(place):
            tf.set_random_seed(1)
            inputs = tf.placeholder(tf.float32, [None, None, 3])
            cell = tf.nn.rnn_cell.LSTMCell(4, initializer=tf.ones_initializer())
            outputs, _ = tf.nn.dynamic_rnn(cell, inputs, dtype=tf.float32)
            gradients = tf.gradients(outputs, tf.trainable_variables())
            with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as session:
                session.run(tf.global_variables_initializer())
                # Several steps of one shape: plans are then made for it.
                shapes = [(3, 5, 3)] * 4 + [(2, 4, 3)]
                return [session.run(gradients, {inputs: np.ones(shape)}) for shape in shapes]

    beside = step(lambda op: LOCAL[1] if "Variable" in op.type else LOCAL[0])
    for found, wanted in zip(beside, step(LOCAL[0]), strict=True):
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5)
