"""Replicated training: what it computes, and what it does when workers are late or die."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from training_models import classification_data, dense_model, embedding_model, normalized_model, text_data

import tfray as tf

pytestmark = pytest.mark.ray

OPTIMIZERS = {
    "sgd": functools.partial(tf.train.GradientDescentOptimizer, 0.1),
    "momentum": functools.partial(tf.train.MomentumOptimizer, 0.05, 0.9),
    "adam": functools.partial(tf.train.AdamOptimizer, 0.02),
    "adagrad": functools.partial(tf.train.AdagradOptimizer, 0.1),
}
MODELS = {
    "dense": (dense_model, classification_data),
    "embedding": (embedding_model, text_data),
    "normalized": (normalized_model, classification_data),
    "sharded embedding": (functools.partial(embedding_model, shards=2), text_data),
}


def scaling(workers=1, parameter_servers=1, **options):
    return tf.train.ScalingConfig(
        workers, parameter_servers, cpus_per_worker=0.1, cpus_per_parameter_server=0.1, **options
    )


def trainer(model="dense", optimizer="sgd", steps=50, scale=None, batch_size=24, **run):
    make_model, data = MODELS[model]
    return tf.train.Trainer(
        make_model(OPTIMIZERS[optimizer]),
        tf.train.array_input(*data(), batch_size=batch_size, shuffle_seed=4),
        scale,
        tf.train.RunConfig(steps=steps, local=scale is None, **run),
    )


# -- the same as in one process ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "optimizer", "workers", "shards"),
    [
        ("dense", "sgd", 1, 1),
        ("dense", "sgd", 4, 1),
        ("dense", "momentum", 2, 3),
        ("dense", "adam", 4, 2),
        ("embedding", "sgd", 2, 1),
        ("embedding", "adam", 4, 2),
        ("sharded embedding", "momentum", 2, 2),
        ("sharded embedding", "adagrad", 4, 3),
        ("normalized", "momentum", 2, 2),
    ],
)
def test_replicas_compute_what_one_process_computes(ray_local, model, optimizer, workers, shards):
    alone = trainer(model, optimizer).fit()
    together = trainer(model, optimizer, scale=scaling(workers, shards)).fit()
    assert together.steps == alone.steps == 50
    assert [record.step for record in together.history] == list(range(1, 51))
    assert all(record.members == tuple(range(workers)) for record in together.history)
    assert together.dropped == 0
    losses = [[record.metrics["loss"] for record in result.history] for result in (alone, together)]
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-5)
    assert together.metrics["loss"] < 0.6 * together.history[0].metrics["loss"]
    assert set(together.variables) == set(alone.variables)
    for name, value in alone.variables.items():
        np.testing.assert_allclose(together.variables[name], value, rtol=1e-5, atol=1e-6, err_msg=name)
    assert together.variables["global_step"] == 50
