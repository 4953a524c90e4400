"""Workers with GPUs of their own compute what a CPU does.

Where there are none, ``tests/support/gpu/check.sh tests tests/devices/test_gpus_of_workers.py`` runs these tests on a
stand-in.
"""

from __future__ import annotations

import functools
import os
import signal
import sys

import numpy as np
import pytest

import tfray as tf
from tfray.runtime.device import gpu_count
from tfray.training.trainer import cluster_training

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.ray,
    pytest.mark.skipif(not gpu_count(), reason="needs a GPU; check.sh in tests/support/gpu has a stand-in"),
]

STAND_IN = ["tests.support.gpu.gpu_plugin"] if "tests.support.gpu.pretend" in sys.modules else []
"""What an actor imports to find what this process has in place of GPUs."""

RNG = np.random.default_rng(7)
IMAGES = RNG.normal(size=(64, 6)).astype(np.float32)
LABELS = (IMAGES @ RNG.normal(size=(6, 3))).argmax(1)


@pytest.fixture(autouse=True)
def two_gpus(ray_nodes, monkeypatch):
    """A node with two GPUs, whose actors find what this process finds."""
    monkeypatch.setattr(cluster_training, "Cluster", functools.partial(tf.Cluster, op_modules=STAND_IN))
    ray_nodes.add_node(num_cpus=6, num_gpus=2)
    ray_nodes.connect()


def model(features, labels):
    """A network with dropout, a loop, an embedding, a string, and a metric that the worker keeps."""
    hidden = tf.layers.dense(features, 8, tf.nn.relu, name="hidden")
    hidden = tf.nn.dropout(hidden, rate=0.2, seed=5)
    _, hidden = tf.while_loop(lambda i, _: i < 2, lambda i, y: (i + 1, tf.sin(y)), [0, hidden])
    table = tf.get_variable("table", [10, 8], initializer=tf.random_uniform_initializer(-0.1, 0.1, seed=2))
    rows = tf.nn.embedding_lookup(table, tf.string_to_hash_bucket_fast(tf.as_string(labels), 10))
    logits = tf.layers.dense(hidden + rows, 3, name="logits")
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    train_op = tf.train.AdamOptimizer(0.05).minimize(loss, tf.train.get_or_create_global_step())
    return tf.train.ModelSpec(loss, train_op, metrics={"largest": tf.reduce_max(logits)})


def train(run=None, build=model, **scaling):
    return tf.train.Trainer(
        build,
        tf.train.array_input(IMAGES, LABELS, batch_size=24, shuffle_seed=0),
        scaling=tf.train.ScalingConfig(cpus_per_worker=0.5, cpus_per_parameter_server=0.5, **scaling),
        run=tf.train.RunConfig(**{"steps": 6, "seed": 3, "logdir": None, "step_timeout_s": 120, **(run or {})}),
    ).fit()


def check_same(result, expected):
    for name, value in expected.variables.items():
        np.testing.assert_allclose(result.variables[name], value, rtol=1e-4, atol=1e-5, err_msg=name)
    assert result.metrics["loss"] == pytest.approx(expected.metrics["loss"], rel=1e-4)


def places(result):
    """By kind of operation, the devices of workers on which such operations ran in the steps that were recorded."""
    found = {}
    for record in result.history:
        for device in record.trace.step_stats.dev_stats if record.trace else ():
            for node in device.node_stats:
                kind = node.timeline_label.partition(" = ")[2].partition("(")[0]
                found.setdefault(kind, set()).add(device.device)
    return found


@pytest.mark.parametrize(
    ("scaling", "run"),
    [
        ({"workers": 2, "parameter_servers": 2}, {}),
        ({"workers": 2, "parameter_servers": 0}, {}),
        pytest.param(
            {"workers": 2, "parameter_servers": 0, "wire_dtype": "bfloat16"},
            {"accumulate": 2, "steps": 3},
            marks=pytest.mark.slow,
        ),
        pytest.param(
            {"workers": 2, "parameter_servers": 1, "wire_dtype": "bfloat16"},
            {"accumulate": 2, "steps": 3},
            marks=pytest.mark.slow,
        ),
        pytest.param(
            {"workers": 1, "parameter_servers": 1, "mode": "async"}, {"bad_gradients": "report"}, marks=pytest.mark.slow
        ),
    ],
    ids=str,
)
def test_replicas_train_on_gpus_as_on_cpus(scaling, run):
    check_same(train(run, gpus_per_worker=1, **scaling), train(run, **scaling))


def towers(features, labels):
    """Two halves of a batch, each on a GPU, with the mean of their losses."""
    losses = []
    for index, (part, classes) in enumerate(zip(tf.split(features, 2), tf.split(labels, 2), strict=True)):
        with tf.device(f"/gpu:{index}"), tf.variable_scope("net", reuse=tf.AUTO_REUSE):
            hidden = tf.layers.dense(part, 8, tf.tanh, name="hidden")
            losses.append(tf.losses.sparse_softmax_cross_entropy(classes, tf.layers.dense(hidden, 3, name="logits")))
    loss = tf.add_n(losses) / 2
    optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
    train_op = optimizer.minimize(loss, tf.train.get_or_create_global_step(), colocate_gradients_with_ops=True)
    return tf.train.ModelSpec(loss, train_op)


def test_a_worker_computes_on_both_of_its_gpus():
    scaling = {"workers": 1, "parameter_servers": 2}
    result = train({"trace_steps": [4]}, towers, gpus_per_worker=2, **scaling)
    check_same(result, train(None, towers, **scaling))
    worker = "/job:worker/replica:0/task:0/device:"
    assert places(result)["MatMul"] == {f"{worker}GPU:0", f"{worker}GPU:1"}


def test_a_run_goes_on_from_its_checkpoint(tmp_path):
    """Random streams of the GPUs too: dropout draws what it would have drawn."""
    scaling = {"workers": 2, "parameter_servers": 1, "gpus_per_worker": 1}
    folder = {"checkpoint_dir": tmp_path / "run"}
    train({**folder, "steps": 3}, **scaling)
    check_same(train({**folder, "steps": 6}, **scaling), train(**scaling))


@pytest.mark.slow
def test_a_worker_that_dies_is_replaced_with_its_gpu():
    killed = []

    def on_step(record):
        if record.step == 2 and not killed:
            killed.append(int(record.metrics["pid"]))
            os.kill(killed[0], signal.SIGKILL)

    def with_pid(features, labels):
        spec = model(features, labels)
        (pid,) = tf.py_func(lambda: np.float64(os.getpid()), [], [tf.float64])
        return tf.train.ModelSpec(spec.loss, spec.train_op, metrics={"pid": tf.reshape(pid, [])})

    run = {"on_step": on_step, "steps": 8}
    result = train(run, with_pid, workers=1, parameter_servers=1, gpus_per_worker=2)
    assert result.steps == 8 and int(result.metrics["pid"]) != killed[0]
    assert result.statistics.replacements == 1


def test_no_gpu_is_left():
    scaling = {"workers": 3, "parameter_servers": 1, "gpus_per_worker": 1, "start_timeout_s": 5}
    with pytest.raises(tf.errors.OpError, match="GPU"):
        train(**scaling)


@pytest.mark.slow
def test_workers_share_a_gpu():
    scaling = {"workers": 3, "parameter_servers": 1}
    check_same(train(gpus_per_worker=0.5, **scaling), train(**scaling))
