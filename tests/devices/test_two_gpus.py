"""Two GPUs, in one process and on a cluster: each holds its own arrays, and the values are those of the CPU.

Where there are none, ``tests/support/gpu/check.sh tests tests/devices/test_two_gpus.py`` runs these tests on a
stand-in, which refuses an array of one GPU in a kernel of the other.
"""

from __future__ import annotations

import sys

import numpy as np
import pytest

import tfray as tf
from tfray.runtime.device import gpu_count

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(gpu_count() < 2, reason="needs two GPUs; check.sh in tests/support/gpu has a stand-in"),
]

STAND_IN = ["tests.support.gpu.gpu_plugin"] if "tests.support.gpu.pretend" in sys.modules else []
"""What an actor imports to find what this process has in place of GPUs."""

TASK = "/job:worker/task:0"
BATCH = np.linspace(-1, 1, 40, dtype=np.float32).reshape(8, 5)


def train(first, second, *, target=None, steps=4):
    """Losses of steps of Adam on a small network: its first layer on one device, the rest, with a loop, on another."""
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [8, 5])
        with tf.device(first):
            w = tf.get_variable("w", initializer=np.linspace(-0.5, 0.5, 35, dtype=np.float32).reshape(5, 7))
            kept = tf.cast(tf.random.stateless_uniform([8, 7], seed=[3, 4]) < 0.9, tf.float32)
            hidden = tf.nn.tanh(x @ w) * kept
        with tf.device(second):
            v = tf.get_variable("v", initializer=np.linspace(-0.3, 0.6, 21, dtype=np.float32).reshape(7, 3))
            turn = [lambda i, _: i < 3, lambda i, y: (i + 1, tf.sin(y @ v @ tf.transpose(v)))]
            _, grown = tf.while_loop(*turn, [0, hidden])
            loss = tf.reduce_mean(tf.square(grown)) + tf.reduce_sum(tf.gather(v, [1, 1, 4])) / 50
        step = tf.train.AdamOptimizer(0.05).minimize(loss, colocate_gradients_with_ops=True)
        with tf.Session(target) as session:
            session.run(tf.global_variables_initializer())
            return [session.run([loss, step], {x: BATCH})[0] for _ in range(steps)], session.run([w, v])


def check_same(results, expected):
    np.testing.assert_allclose(results[0], expected[0], rtol=1e-5)
    for value, wanted in zip(results[1], expected[1], strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-4, atol=1e-6)


PLACES = [("gpu:1", "gpu:1"), ("gpu:0", "gpu:1"), ("gpu:1", "gpu:0"), ("gpu:1", "cpu:0"), ("cpu:0", "gpu:1")]


@pytest.mark.parametrize(("first", "second"), PLACES)
def test_a_process_trains_on_the_gpus_that_are_named(first, second):
    check_same(train(f"/{first}", f"/{second}"), train("/cpu:0", "/cpu:0"))


@pytest.mark.parametrize(("first", "second"), PLACES)
def test_elements_are_written_on_one_device_and_read_on_another(first, second):
    x, factors = tf.constant(BATCH), tf.constant(np.arange(8, dtype=np.float32).reshape(8, 1))
    with tf.device(f"/{first}"):
        array = tf.TensorArray(tf.float32, 8, element_shape=[5]).unstack(x)
    with tf.device(f"/{second}"):
        stacked, first_row = array.stack(), array.read(0)
        (gradient,) = tf.gradients([stacked * factors, first_row * 10], x)
        joined = tf.TensorArray(tf.float32, 2, infer_shape=False).split(x, [3, 5])
    with tf.device(f"/{first}"):
        rows = joined.concat()
        (of_rows,) = tf.gradients([rows * factors, joined.read(1)], x)
    with tf.Session() as session:
        values = session.run([stacked, rows, gradient, of_rows])
    ones = np.ones([8, 5])
    expected = BATCH, BATCH, ones * np.r_[10, 1:8].reshape(8, 1), ones * np.r_[0:3, 4:9].reshape(8, 1)
    for value, wanted in zip(values, expected, strict=True):
        np.testing.assert_array_equal(value, wanted)


def test_variables_are_saved_from_either_gpu_and_restored_on_the_other(tmp_path):
    def build(first, second):
        with tf.device(first):
            a = tf.get_variable("a", initializer=np.arange(6, dtype=np.float32))
        with tf.device(second):
            b = tf.get_variable("b", initializer=np.arange(4, dtype=np.int32))
        return a, b

    a, b = build("/gpu:0", "/gpu:1")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run([tf.assign_add(a, tf.ones([6])), tf.scatter_add(b, [1, 3], [10, 20])])
        path = tf.train.Saver().save(session, str(tmp_path / "model"))
    with tf.Graph().as_default():
        a, b = build("/gpu:1", "/gpu:0")
        with tf.Session() as session:
            tf.train.Saver().restore(session, path)
            value, indices = session.run([a, b])
    np.testing.assert_array_equal(value, np.arange(6) + 1)
    np.testing.assert_array_equal(indices, [0, 11, 2, 23])


def test_a_step_is_traced_on_both_gpus():
    with tf.device("/gpu:0"):
        a = tf.random_normal([64], seed=1)
    with tf.device("/gpu:1"):
        b = tf.reduce_sum(a * a)
    record = tf.RunMetadata()
    with tf.Session() as session:
        session.run(b, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=record)
    devices = {stats.device for stats in record.step_stats.dev_stats}
    assert {name.rpartition("/device:")[2] for name in devices} >= {"GPU:0", "GPU:1"}


@pytest.mark.ray
def test_a_task_with_two_gpus_trains_on_those_that_are_named(ray_nodes):
    ray_nodes.add_node(num_cpus=4, num_gpus=2)
    ray_nodes.connect()
    with tf.Cluster({"worker": tf.JobSpec(1, num_cpus=1, num_gpus=2)}, op_modules=STAND_IN) as cluster:
        assert [name.rpartition("/device:")[2] for name in cluster.devices] == ["CPU:0", "GPU:0", "GPU:1"]
        expected = train("/cpu:0", "/cpu:0")
        for first, second in PLACES:
            check_same(train(f"{TASK}/{first}", f"{TASK}/{second}", target=cluster), expected)


@pytest.mark.parametrize("gpus", [2, [1, 0]])
def test_a_keras_model_trains_on_two_gpus(gpus):
    """Each takes its part of a batch; the weights are those of the model that was given."""

    def losses(towers):
        tf.keras.backend.clear_session()
        with tf.device("/cpu:0"):
            model = tf.keras.Sequential([tf.keras.layers.Dense(3, "tanh", input_shape=(5,), kernel_initializer="ones")])
        both = tf.keras.utils.multi_gpu_model(model, gpus) if towers else model
        both.compile(tf.train.GradientDescentOptimizer(0.1), "mse")
        history = both.fit(BATCH, BATCH[:, :3], batch_size=7, epochs=2, shuffle=False, verbose=0)
        return history.history["loss"], model.get_weights()

    check_same(losses(True), losses(False))


@pytest.mark.parametrize(("source", "waits"), [("gpu:1", [0, 2]), ("cpu:0", [1])])
def test_a_gpu_waits_for_the_processor_before_it_begins_and_for_no_other_gpu(source, waits):
    """So towers compute at the same time, and what the host sends does not cut a CUDA graph in two."""
    x = tf.placeholder(tf.float32, [4])
    with tf.device(f"/{source}"):
        other = tf.sin(x)
    with tf.device("/gpu:0"):
        y = tf.cos(tf.exp(x)) * other
    with tf.Session() as session:
        value = session.run(y, {x: np.ones(4)})
        np.testing.assert_allclose(value, np.cos(np.exp(np.ones(4))) * np.sin(np.ones(4)), rtol=1e-5)
        (step,) = session._steps.values()
        (plan,) = [plan for plan in step._registered._plans if plan.device.name.endswith("GPU:0")]
        assert [segment.waits for segment in plan.segments] == waits
