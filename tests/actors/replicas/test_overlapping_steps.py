"""Steps of shards that overlap: large variables are updated, and sent back, while gradients of others are under way."""

from __future__ import annotations

import os
import random
import signal
import threading

import numpy as np
import pytest

pytest.importorskip("ray")

import tfray as tf
from tests.support.links.slow_links import slow_runtime
from tests.support.training_models import OPTIMIZERS, scaling
from tfray.library.inspect.step_spans import spans_of, stats_of

pytestmark = pytest.mark.ray

WIDTH, LAYERS, BATCH = 520, 3, 8
PS, WORKER = (f"/job:{job}/replica:0/task:0/device:CPU:0" for job in ("ps", "worker"))
TENSOR_BYTES = WIDTH * WIDTH * 4
"""More than a mebibyte: such tensors cross the network over streams."""


def layered(optimizer, layers=LAYERS):
    """A network of large layers, and a small one."""

    def model_fn(features, labels):
        rng = np.random.default_rng(2)
        hidden = features
        for layer in range(layers):
            weights = tf.Variable((rng.normal(size=(WIDTH, WIDTH)) * 0.06).astype(np.float32), name=f"w{layer}")
            hidden = tf.tanh(hidden @ weights)
        last = tf.Variable((rng.normal(size=(WIDTH, 1)) * 0.06).astype(np.float32), name="last")
        loss = 0.02 * tf.reduce_mean(tf.square(tf.squeeze(hidden @ last, [1]) - labels))
        return tf.train.ModelSpec(loss, optimizer().minimize(loss, tf.train.get_or_create_global_step()))

    return model_fn


def counting(features, labels):
    """Each step adds one to every number of every variable, whichever replicas count."""
    totals = []
    for layer in range(LAYERS):
        weights = tf.Variable(tf.zeros([WIDTH, WIDTH]), name=f"w{layer}")
        totals.append(tf.reduce_sum(tf.reduce_mean(features @ weights, 0)))
    loss = tf.negative(tf.add_n(totals))
    optimizer = tf.train.GradientDescentOptimizer(1.0)
    return tf.train.ModelSpec(loss, optimizer.minimize(loss, tf.train.get_or_create_global_step()))


def noise(batches=12):
    rng = np.random.default_rng(3)
    features = rng.normal(size=(batches * BATCH, WIDTH)).astype(np.float32)
    return tf.train.array_input(features, features[:, 0].copy(), BATCH, shuffle_seed=4)


def ones():
    features = np.ones((BATCH * 4, WIDTH), np.float32)
    return tf.train.array_input(features, features[:, 0].copy(), BATCH, shuffle_seed=4)


@pytest.mark.parametrize(
    ("optimizer", "tolerance"), [("momentum", 1e-5), pytest.param("adam", 1e-3, marks=pytest.mark.slow)]
)
def test_they_compute_what_one_process_computes(ray_local, optimizer, tolerance):
    """Adam divides by what is nearly zero: there the order of a sum shows."""

    def fit(scaling_config, **run):
        config = tf.train.RunConfig(steps=8, logdir=None, **run)
        return tf.train.Trainer(layered(OPTIMIZERS[optimizer]), noise(), scaling_config, config).fit()

    alone, found = fit(None, local=True), fit(scaling(2, 1))
    assert [record.members for record in found.history] == [(0, 1)] * 8
    for name, value in alone.variables.items():
        np.testing.assert_allclose(found.variables[name], value, rtol=1e-4, atol=tolerance, err_msg=name)


@pytest.fixture
def far_nodes(ray_nodes):
    """Starts a node for the shard, and one for each worker; their links carry so many bytes in a second."""
    import ray

    def start(workers, bytes_per_s):
        ray_nodes.add_node(num_cpus=1, resources={"ps": 1})
        for _ in range(workers):
            ray_nodes.add_node(num_cpus=1, resources={"worker": 1})
        runtime = slow_runtime(bytes_per_s)
        ray.init(address=ray_nodes.address, logging_level="warning", runtime_env=runtime)
        return scaling(workers, 1, worker_resources={"worker": 1}, parameter_server_resources={"ps": 1})

    return start


@pytest.mark.slow
def test_parameters_travel_while_gradients_of_the_step_before_do(far_nodes):
    nodes = far_nodes(1, 4 * TENSOR_BYTES)
    run = tf.train.RunConfig(steps=6, logdir=None, trace_steps=range(3, 6))
    result = tf.train.Trainer(layered(OPTIMIZERS["sgd"]), noise(), nodes, run).fit()
    spans = {record.step: spans_of(stats_of(record.trace)) for record in result.history if record.trace is not None}

    def on_shard(step, span_type):
        return [s for s in spans[step] if s.device == PS and s.type == span_type]

    for step in (3, 4):
        sent = [s.start_ns for s in on_shard(step + 1, "Send") if s.arguments.startswith("w")]
        updates = [s.end_ns for s in on_shard(step, "ApplyGradientDescent")]
        assert len(sent) == LAYERS and len(updates) == LAYERS + 1
        assert min(sent) < max(updates), "parameters left before all updates of the step before were made"


@pytest.mark.slow
def test_a_worker_computes_the_next_step_while_gradients_of_the_last_one_travel(far_nodes):
    """Those of the first layers overtake the others: with them the next step begins, unless the machine is busy."""
    nodes = far_nodes(1, 8 * TENSOR_BYTES)
    run = tf.train.RunConfig(steps=12, logdir=None, trace_steps=range(3, 12))
    result = tf.train.Trainer(layered(OPTIMIZERS["sgd"], layers=6), noise(), nodes, run).fit()
    spans = {record.step: spans_of(stats_of(record.trace)) for record in result.history if record.trace is not None}
    waits = []
    for step in range(3, 11):
        arrived = max(s.end_ns for s in spans[step] if s.device == WORKER and s.type == "_wait")
        computed = min(s.start_ns for s in spans[step + 1] if s.device == WORKER and s.type == "MatMul")
        waits.append(computed - arrived)
    assert min(waits) < 0, "no step began before all gradients of the one before had arrived"


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_a_worker_that_dies_halfway_leaves_every_update_made_once(far_nodes, clusters, workers):
    steps, rng = 16, random.Random(workers)

    def pids(cluster):
        import ray

        devices = sorted(device for device in cluster.devices if device.startswith("/job:worker/"))
        return ray.get([cluster.actor(device).__ray_call__.remote(lambda actor: os.getpid()) for device in devices])

    def on_step(record):
        if record.step in (3, 7, 11):
            victim = rng.choice(pids(clusters[-1]))
            threading.Timer(rng.uniform(0.0, 0.5), os.kill, (victim, signal.SIGKILL)).start()

    nodes = far_nodes(workers, 8 * TENSOR_BYTES)
    run = tf.train.RunConfig(steps=steps, logdir=None, on_step=on_step)
    result = tf.train.Trainer(counting, ones(), nodes, run).fit()
    assert result.variables["global_step"] == steps
    for layer in range(LAYERS):
        np.testing.assert_array_equal(result.variables[f"w{layer}"], np.full((WIDTH, WIDTH), steps), err_msg=str(layer))
