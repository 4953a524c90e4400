"""Optimizers of workers with variables of their own: averages of models, elastic ones, and means of gradients."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import tfray as tf
from tfray.contrib import opt

GETTERS = {
    "ma": opt.ModelAverageCustomGetter,
    "ea": opt.ElasticAverageCustomGetter,
    "agn": opt.AGNCustomGetter,
}
INNER = {
    "sgd": lambda: tf.train.GradientDescentOptimizer(0.25),
    "momentum": lambda: tf.train.MomentumOptimizer(0.25, 0.5),
    "adam": lambda: tf.train.AdamOptimizer(0.25),
}


def made(kind, inner, getter, **settings):
    if kind == "ma":
        return opt.ModelAverageOptimizer(INNER[inner](), 1, True, getter, interval_steps=2, **settings)
    if kind == "ea":
        return opt.ElasticAverageOptimizer(INNER[inner](), 2, getter, communication_period=2, **settings)
    return opt.AGNOptimizer(INNER[inner](), 1, getter, communication_period=2, **settings)


def names(collection):
    return {variable.op.name for variable in tf.get_collection(collection)}


STEPS = [
    ("ma", "sgd", {}, [], [], [[[0.5625, -1.125], 2.0, [0.5625, -1.125], 2.0, 1], [[0.421875, -0.84375], 1.5,
     [0.5625, -1.125], 2.0, 1], [[0.316406, -0.632812], 1.0, [0.316406, -0.632812], 1.0, 2]]),
    ("ma", "momentum", {}, ["a/Momentum", "b/Momentum"], [], [[[0.4375, -0.875], 1.75, [0.4375, -0.875], 1.75,
     1], [[0.171875, -0.34375], 0.875, [0.4375, -0.875], 1.75, 1], [[-0.003906, 0.007812], -0.0625, [-0.003906,
     0.007812], -0.0625, 2]]),
    ("ea", "sgd", {}, [], ["local_center_variable/a", "local_center_variable/b"], [[[0.704531, -1.409063],
     2.312187, [0.914219, -1.828437], 2.800313, 1], [[0.594879, -1.189758], 1.966945, [0.914219, -1.828437],
     2.800313, 1], [[0.622116, -1.244231], 1.947092, [0.829415, -1.658829], 2.552603, 2]]),
    ("ea", "momentum", {}, [], ["a/Momentum", "b/Momentum", "local_center_variable/a",
     "local_center_variable/b"], [[[0.607656, -1.215312], 2.118438, [0.886094, -1.772187], 2.744062, 1],
     [[0.415895, -0.831789], 1.498039, [0.886094, -1.772187], 2.744062, 1], [[0.468655, -0.937311], 1.412394,
     [0.764902, -1.529804], 2.357449, 2]]),
    ("agn", "sgd", {}, [], ["grad_variable/a", "grad_variable/b"], [[[0.78125, -1.5625], 2.5, [0.78125,
     -1.5625], 2.5, 1], [[0.585938, -1.171875], 2.0, [0.78125, -1.5625], 2.5, 1], [[0.610352, -1.220703], 2.0,
     [0.610352, -1.220703], 2.0, 2]]),
    ("agn", "momentum", {}, ["global_center_variable/a/Momentum", "global_center_variable/b/Momentum"],
     ["a/Momentum", "b/Momentum", "grad_variable/a", "grad_variable/b"], [[[0.78125, -1.5625], 2.5, [0.78125,
     -1.5625], 2.5, 1], [[0.429688, -0.859375], 1.625, [0.78125, -1.5625], 2.5, 1], [[0.520508, -1.041016], 1.75,
     [0.520508, -1.041016], 1.75, 2]]),
    ("ea", "sgd", {"moving_rate": 0.5, "rho": 0.5}, [], ["local_center_variable/a", "local_center_variable/b"],
     [[[0.796875, -1.59375], 2.53125, [0.796875, -1.59375], 2.53125, 1], [[0.623047, -1.246094], 2.089844,
     [0.796875, -1.59375], 2.53125, 1], [[0.65564, -1.311279], 2.117432, [0.65564, -1.311279], 2.117432, 2]]),
    ("ea", "adam", {"rho": 0.0}, [], ["a/Adam", "a/Adam_1", "b/Adam", "b/Adam_1", "beta1_power", "beta2_power",
     "local_center_variable/a", "local_center_variable/b"], [[[0.615877, -1.613602], 2.612501, [0.88848,
     -1.88782], 2.8875, 1], [[0.374944, -1.366457], 2.362502, [0.88848, -1.88782], 2.8875, 1], [[0.313516,
     -1.29481], 2.286877, [0.721555, -1.715656], 2.713126, 2]]),
]  # fmt: skip
"""Names of further global and local variables, and what TensorFlow 1.15 printed after steps 2, 3 and 4.

These are a, b, the shared a and b, and the global step."""


@pytest.mark.parametrize(
    ("kind", "inner", "settings", "shared", "own", "expected"),
    STEPS,
)
def test_steps_of_one_worker(session, kind, inner, settings, shared, own, expected):
    getter, step = GETTERS[kind]("/cpu:0"), tf.Variable(0, trainable=False, name="global_step")
    with tf.variable_scope("", custom_getter=getter):
        a = tf.get_variable("a", initializer=[1.0, -2.0])
        b = tf.get_variable("b", initializer=3.0)
        n = tf.get_variable("n", initializer=5.0, trainable=False)
    optimizer = made(kind, inner, getter, **settings)
    train = optimizer.minimize(tf.reduce_sum(a * a) * 0.5 + b * 2.0, step)
    hook = optimizer.make_session_run_hook() if kind == "ma" else optimizer.make_session_run_hook(True, 0)
    hook.begin()
    centers = getter.beside([a, b])
    assert names("variables") == {"n", "global_step", *(each.op.name for each in centers), *shared}
    assert names("local_variables") == {"a", "b", "local_step", *own}
    assert tf.trainable_variables() == [a, b] and n.device == ""
    session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    session.run([a.assign([7.0, 7.0]), b.assign(7.0)])
    hook.after_create_session(session, None)
    session.run(train)
    assert session.run(step) == 0
    for values in expected:
        session.run(train)
        for found, value in zip(session.run([a, b, *centers, step]), values, strict=True):
            np.testing.assert_allclose(found, value, rtol=1e-5, atol=1e-6)


def at_once(session, fetches):
    threads = [threading.Thread(target=session.run, args=(each,)) for each in fetches]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)


def test_a_chief_and_another_worker_take_means_together(session):
    getter, step = opt.ModelAverageCustomGetter("/cpu:0"), tf.Variable(0, trainable=False, name="global_step")
    with tf.variable_scope("", custom_getter=getter):
        a = tf.get_variable("a", initializer=[1.0, -2.0])
    steps = []
    for worker in range(2):
        with tf.variable_scope(f"worker_{worker}"):
            optimizer = opt.ModelAverageOptimizer(INNER["sgd"](), 2, worker == 0, getter, interval_steps=2)
            steps.append(optimizer.apply_gradients([(tf.zeros([2]), a)], step))
    session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    for each in steps:
        session.run(each)
    session.run(a.assign([3.0, 4.0]))
    center = getter.beside([a])[0]
    assert session.run([step, center])[1].tolist() == [1.0, -2.0]
    at_once(session, steps)
    assert [each.tolist() for each in session.run([step, a, center])] == [1, [3.0, 4.0], [3.0, 4.0]]


@pytest.mark.parametrize("synchronous", [False, True])
def test_beginnings_and_savers_of_elastic_averages(session, tmp_path, synchronous):
    getter = opt.ElasticAverageCustomGetter("/cpu:0")
    with tf.variable_scope("", custom_getter=getter):
        a = tf.get_variable("a", initializer=[1.0, -2.0])
        parts = tf.get_variable("parts", [4], partitioner=tf.fixed_size_partitioner(2))
        with tf.variable_scope("", reuse=True):
            assert tf.get_variable("a") is a
    optimizer = opt.ElasticAverageOptimizer(INNER["sgd"](), 2, getter, synchronous=synchronous)
    begin = [optimizer.get_init_op(task) for task in range(2)]
    session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    session.run(a.assign([3.0, 4.0]))
    at_once(session, begin)
    assert session.run(a).tolist() == [1.0, -2.0]
    saver = optimizer.swapping_saver()
    session.run([part.assign(part + 1.0) for part in parts] + [a.assign([3.0, 4.0])])
    reader = tf.train.NewCheckpointReader(saver.save(session, str(tmp_path / "model")))
    assert reader.get_tensor("a").tolist() == [1.0, -2.0]
    whole = np.concatenate(session.run(getter.beside(parts)))
    assert reader.get_tensor("parts").tolist() == whole.tolist()
    named = optimizer.swapping_saver({"first": a, "second": list(parts)})
    reader = tf.train.NewCheckpointReader(named.save(session, str(tmp_path / "named")))
    assert reader.get_tensor("first").tolist() == [1.0, -2.0]
    assert reader.get_tensor("second").tolist() == whole.tolist()


def test_what_these_optimizers_refuse():
    getter = opt.ModelAverageCustomGetter("/cpu:0")
    optimizer = opt.ModelAverageOptimizer(INNER["sgd"](), 1, True, getter)
    other = tf.Variable([1.0])
    with pytest.raises(ValueError, match="at least one variable"):
        optimizer.apply_gradients([], other)
    with pytest.raises(ValueError, match="Global step is required"):
        optimizer.apply_gradients([(tf.ones([1]), other)])
    with pytest.raises(ValueError, match="not a variable that the custom getter has made"):
        optimizer.get_init_op()
    with tf.variable_scope("elastic"), pytest.raises(RuntimeError, match="no shared variable"):
        opt.ElasticAverageOptimizer(INNER["sgd"](), 1, opt.ElasticAverageCustomGetter("")).swapping_saver()
    with tf.variable_scope("", custom_getter=getter), pytest.raises(ValueError, match="without a partitioner"):
        tf.get_variable("parts", [4], partitioner=tf.fixed_size_partitioner(2))
