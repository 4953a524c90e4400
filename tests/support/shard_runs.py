"""Runs on parameter servers that come, go and die, and the run that they must equal."""

from __future__ import annotations

import numpy as np

import tfray as tf
from tests.support.elastic_runs import paced
from tests.support.processes import Barrier
from tests.support.training_models import (
    OPTIMIZERS,
    classification_data,
    dense_model,
    embedding_model,
    looping_model,
    normalized_model,
    random_model,
    scaling,
    text_data,
)

STEPS = 200

LATE_S = 2.0
"""Seconds for a step of the second half, unless the test has seen enough by then: actors may take long to start."""

MODELS = {
    "random": (lambda: random_model(OPTIMIZERS["adam"]), classification_data),
    "dense": (lambda: dense_model(OPTIMIZERS["adam"]), classification_data),
    "embedding": (lambda: embedding_model(OPTIMIZERS["adagrad"], shards=2), text_data),
    "normalized": (lambda: normalized_model(OPTIMIZERS["momentum"]), classification_data),
    "looping": (lambda: looping_model(OPTIMIZERS["adagrad"]), classification_data),
}


def pids(ray, cluster):
    return {device: ray.get(cluster.actor(device).ready.remote()).pid for device in cluster.devices}


def held(ray, cluster):
    return sum(ray.get(cluster.actor(device).status.remote())["resources"] for device in cluster.devices_of("ps"))


def trainer(model, barrier, callbacks=(), size=None, steps=STEPS, **run):
    """A run that takes its time until the barrier is reached."""
    make_model, data = MODELS[model]
    size = size or scaling(2)
    # Asynchronous workers share the steps, so each reads only some of as many batches: they are late much earlier.
    pace = steps // 10 if size.mode == "async" else steps
    return tf.train.Trainer(
        make_model(),
        paced(tf.train.array_input(*data(), batch_size=24, shuffle_seed=1), barrier, pace, LATE_S),
        size,
        tf.train.RunConfig(steps=steps, seed=7, callbacks=callbacks, logdir=None, **run),
    )


def unchanged(model, tmp_path, **options):
    """What the run is that has two parameter servers from the start."""
    barrier = Barrier(tmp_path)
    barrier.reach("fast")
    return trainer(model, barrier, size=scaling(2, 2, **options)).fit()


def assert_each_step_once(result, steps=STEPS):
    assert [record.step for record in result.history] == list(range(1, steps + 1))
    assert result.variables["global_step"] == steps


def assert_same(found, expected):
    assert found.variables.keys() == expected.variables.keys()
    for name, value in expected.variables.items():
        np.testing.assert_array_equal(found.variables[name], value, err_msg=name)
    for one, other in zip(found.history, expected.history, strict=True):
        assert one.metrics == other.metrics, f"step {one.step}, members {one.members}"
