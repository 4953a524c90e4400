"""Replicas of one node combine what they contribute before it goes to shards on other nodes."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest

import tfray as tf
from tests.support.training_models import (
    OPTIMIZERS,
    classification_data,
    dense_model,
    embedding_model,
    scaling,
    text_data,
)

STEPS = 30

MODELS = {
    "dense": (dense_model(OPTIMIZERS["adam"]), classification_data()),
    "rows": (embedding_model(OPTIMIZERS["adagrad"]), text_data()),
}


@pytest.fixture
def nodes(ray_nodes):
    """A node for shards, and two with room for two workers each."""
    import ray

    ray_nodes.add_node(num_cpus=1, resources={"ps": 2})
    for _ in range(2):
        ray_nodes.add_node(num_cpus=1, resources={"worker": 2})
    ray.init(address=ray_nodes.address, logging_level="warning")
    return ray_nodes


def on_nodes(workers=4, **options):
    """The configuration of actors on these nodes."""
    return scaling(workers, 2, worker_resources={"worker": 1}, parameter_server_resources={"ps": 1}, **options)


def worker_calls(cluster, function):
    """What a function of their actor returns for each worker, in order."""
    import ray

    workers = sorted(device for device in cluster.devices if device.startswith("/job:worker/"))
    return ray.get([cluster.actor(device).__ray_call__.remote(function) for device in workers])


def steps_combined(actor):
    """How many steps of the last ones the device of an actor has combined contributions for."""
    return sum(len(ledger._finished) for ledger in actor._host.combinations._ledgers.values())


class AtStep:
    """Calls a function once, when a step has ended."""

    def __init__(self, step, function):
        self.step, self.function, self.result = step, function, None

    def __call__(self, record):
        if record.step == self.step:
            self.result = self.function()


def fit(model, batch_size, scaling_config, on_step=None, **run):
    model_fn, data = MODELS[model]
    config = tf.train.RunConfig(steps=STEPS, seed=1, on_step=on_step, **run)
    return tf.train.Trainer(model_fn, tf.train.array_input(*data, batch_size), scaling_config, config).fit()


def assert_equal_variables(result, expected, tolerance):
    assert result.variables.keys() == expected.variables.keys()
    for name, value in expected.variables.items():
        np.testing.assert_allclose(result.variables[name], value, rtol=tolerance, atol=tolerance)


@pytest.mark.ray
@pytest.mark.slow
def test_it_learns_what_one_process_learns(nodes, clusters):
    alone = {model: fit(model, 24, None, local=True) for model in MODELS}

    def compare(model, tolerance, combining, **options):
        at_end = AtStep(STEPS, lambda: worker_calls(clusters[-1], steps_combined))
        result = fit(model, 24, on_nodes(**options), at_end)
        assert [record.members for record in result.history] == [(0, 1, 2, 3)] * STEPS
        assert sum(count > STEPS // 2 for count in at_end.result) == combining, at_end.result
        assert_equal_variables(result, alone[model], tolerance)

    compare("dense", 1e-4, 2)
    compare("rows", 1e-4, 2)
    compare("dense", 1e-4, 0, combine_on_nodes=False)
    compare("dense", 5e-2, 2, wire_dtype="bfloat16")
    compare("dense", 2e-2, 0, wire_dtype="float16")


def process_of(cluster, worker):
    """The process of a worker."""
    return worker_calls(cluster, lambda actor: os.getpid())[worker]


def assert_every_step_counted_once(result):
    assert [record.step for record in result.history] == list(range(1, STEPS + 1))
    assert result.variables["global_step"] == STEPS


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.parametrize("worker", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_the_worker_that_combines_or_another_of_its_node_may_die(nodes, clusters, worker):
    """The others then send their contributions themselves, and it is replaced."""
    kill = AtStep(10, lambda: os.kill(process_of(clusters[-1], worker), signal.SIGKILL))
    result = fit("dense", 24, on_nodes(), kill)
    assert_every_step_counted_once(result)
    others = {0, 1, 2, 3} - {worker}
    assert all(others.issubset(record.members) for record in result.history)


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.parametrize("worker", [0, 1])
def test_a_frozen_worker_holds_up_nobody_of_its_node(nodes, clusters, worker):
    def freeze():
        os.kill(process_of(clusters[-1], worker), signal.SIGSTOP)

    result = fit("dense", 24, on_nodes(backup_workers=1), AtStep(10, freeze))
    assert_every_step_counted_once(result)
    members = {0, 1, 2, 3} - {worker}
    assert [set(record.members) for record in result.history[12:]] == [members] * (STEPS - 12)


@pytest.mark.ray
@pytest.mark.slow
def test_with_a_backup_worker(nodes, clusters):
    at_end = AtStep(STEPS, lambda: worker_calls(clusters[-1], steps_combined))
    result = fit("dense", 24, on_nodes(backup_workers=1), at_end)
    assert_every_step_counted_once(result)
    assert all(len(record.members) == 3 for record in result.history)
    assert result.metrics["loss"] < 0.7 * result.history[0].metrics["loss"]
