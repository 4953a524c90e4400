"""Runs on a number of workers that changes: what they compute, and that no step is lost."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfray as tf
from tests.support.elastic_runs import Stages, nothing, paced
from tests.support.processes import Barrier, kill_actor
from tests.support.training_models import (
    OPTIMIZERS,
    classification_data,
    dense_model,
    embedding_model,
    scaling,
    text_data,
)
from tfray.errors import InvalidArgumentError

# -- who reads what ------------------------------------------------------------------------------------


@given(st.integers(1, 9), st.integers(0, 3), st.integers(9, 64))
def test_uneven_shares_are_stretches_of_a_step(required, backups, batch_size):
    replicas = required + backups
    contexts = [tf.train.InputContext(replicas, index, required, even=False) for index in range(replicas)]
    shares = [context.share(batch_size) for context in contexts]
    assert max(shares) - min(shares) <= 1
    assert [context.offset(batch_size) for context in contexts] == [sum(shares[:i]) for i in range(replicas)]
    assert {context.total(batch_size) for context in contexts} == {sum(shares)}
    assert sum(shares[:required]) == batch_size


@pytest.mark.parametrize("make", ["array", "dataset"])
@pytest.mark.parametrize("replicas", [1, 2, 3, 4, 5, 7])
def test_however_many_share_a_step_its_examples_are_the_same(make, replicas):
    examples = np.arange(60)
    if make == "array":
        input_fn = tf.train.array_input(examples, -examples, 12, shuffle_seed=3)
    else:
        input_fn = tf.train.dataset_input(lambda: tf.data.Dataset.from_tensor_slices((examples, -examples)), 12)

    def steps(*context, **more):
        batches = iter(input_fn(tf.train.InputContext(*context, **more)))
        return [next(batches) for _ in range(3)]

    alone = steps(1, 0, 1, 3)
    parts = [steps(replicas, index, replicas, 3, even=False) for index in range(replicas)]
    for step in range(3):
        for kind in range(2):
            together = np.concatenate([part[step][kind] for part in parts])
            assert sorted(together) == sorted(alone[step][kind])


def test_steps_grow_with_the_replicas_where_that_is_wanted():
    contexts = [tf.train.InputContext(6, index, 4, sharing=2) for index in range(6)]
    assert [context.share(12) for context in contexts] == [6] * 6
    assert contexts[0].total(12) == 36


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workers": (0, 2)}, "workers must be .* at least 1"),
        ({"workers": (3, 2)}, "the first number is the least"),
        ({"workers": (2, 4), "backup_workers": 2}, "between 0 and 1 can be backups"),
        ({"workers": (1, 4), "elastic_batch": "huge"}, "must be 'constant' or 'scaled'"),
    ],
)
def test_elastic_runs_that_cannot_be(options, message):
    with pytest.raises(InvalidArgumentError, match=message):
        tf.train.ScalingConfig(**options)


# -- on one machine ------------------------------------------------------------------------------------


def trained_elastically(model, optimizer, barrier, on_step, steps=1000, run=None, **options):
    make_model, data = model
    return tf.train.Trainer(
        make_model(OPTIMIZERS[optimizer]),
        paced(tf.train.array_input(*data(), batch_size=24), barrier, steps),
        scaling(**options),
        tf.train.RunConfig(steps=steps, on_step=on_step, seed=7, **(run or {})),
    ).fit()


@pytest.mark.ray
@pytest.mark.parametrize(
    ("model", "optimizer"),
    [
        pytest.param((dense_model, classification_data), "momentum", marks=pytest.mark.slow, id="dense"),
        pytest.param((embedding_model, text_data), "adam", id="embedding"),
    ],
)
def test_a_run_that_grows_computes_what_one_process_computes(ray_local, tmp_path, model, optimizer):
    stages = Stages(Barrier(tmp_path), (3, nothing))
    result = trained_elastically(model, optimizer, stages.barrier, stages, 300, workers=(1, 3), parameter_servers=2)
    assert not stages.stages, "three workers have come"
    assert [record.step for record in result.history] == list(range(1, 301))
    assert result.dropped == 0 and result.variables["global_step"] == 300
    sizes = [record.live for record in result.history]
    assert sizes[0] == 1 and sizes[-1] == 3 and sizes == sorted(sizes)
    make_model, data = model
    alone = tf.train.Trainer(
        make_model(OPTIMIZERS[optimizer]),
        tf.train.array_input(*data(), batch_size=24),
        run=tf.train.RunConfig(steps=300, local=True, seed=7),
    ).fit()
    losses = [[record.metrics["loss"] for record in each.history] for each in (alone, result)]
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-4, atol=1e-6)


@pytest.mark.ray
@pytest.mark.parametrize(
    "options",
    [
        {},
        pytest.param({"mode": "async"}, marks=pytest.mark.slow),
        pytest.param({"mode": "async", "staleness": 1}, marks=pytest.mark.slow),
    ],
    ids=str,
)
@pytest.mark.slow
def test_workers_that_die_are_neither_waited_for_nor_missed(ray_local, tmp_path, clusters, options):
    """Both workers die in turn, and come again."""

    def kill(task):
        kill_actor(ray_local, clusters[-1], f"/job:worker/task:{task}/device:CPU:0")

    barrier = Barrier(tmp_path)
    stages = Stages(barrier, (2, lambda: kill(0)), (1, nothing), (2, lambda: kill(1)), (1, nothing), (2, nothing))
    result = tf.train.Trainer(
        dense_model(OPTIMIZERS["sgd"]),
        paced(tf.train.array_input(*classification_data(), batch_size=24), barrier, 1500),
        scaling(workers=(1, 2), **options),
        tf.train.RunConfig(steps=1500, on_step=stages),
    ).fit()
    assert not stages.stages
    assert [record.step for record in result.history] == list(range(1, 1501))
    assert result.variables["global_step"] == 1500
    assert result.metrics["loss"] < 0.7 * result.history[0].metrics["loss"]


@pytest.mark.slow
@pytest.mark.ray
def test_steps_and_rates_that_grow_with_the_workers(ray_local, tmp_path):
    def model_fn(features, labels):
        loss = tf.reduce_mean(tf.square(tf.Variable(np.zeros(8, np.float32)) - features))
        optimizer = tf.train.GradientDescentOptimizer(0.01 * tf.train.batch_scale())
        step = optimizer.minimize(loss, global_step=tf.train.get_or_create_global_step())
        metrics = {"examples": tf.cast(tf.shape(labels)[0], tf.float32), "scale": tf.train.batch_scale()}
        return tf.train.ModelSpec(loss, step, metrics)

    stages = Stages(Barrier(tmp_path), (3, nothing))
    result = tf.train.Trainer(
        model_fn,
        paced(tf.train.array_input(*classification_data(), batch_size=24), stages.barrier, 300),
        scaling(workers=(1, 3), elastic_batch="scaled"),
        tf.train.RunConfig(steps=300, on_step=stages),
    ).fit()
    assert {record.metrics["examples"] for record in result.history} == {24}
    assert all(record.metrics["scale"] == record.live for record in result.history)
    assert result.history[-1].live == 3
    trainer = tf.train.Trainer(
        model_fn,
        tf.train.array_input(*classification_data(), batch_size=24),
        run=tf.train.RunConfig(steps=3, local=True),
    )
    assert {record.metrics["scale"] for record in trainer.fit().history} == {1}


@pytest.mark.fault(
    "Workers and parameter servers",
    "A parameter server dies in a run with checkpoints.",
    happens="The run goes back to its newest checkpoint. One line tells of it.",
    promise="The result equals that of a run in which nothing happened.",
)
@pytest.mark.ray
@pytest.mark.slow
def test_a_lost_parameter_server_does_not_end_an_elastic_run(ray_local, tmp_path, clusters):
    barrier = Barrier(tmp_path)
    stages = Stages(barrier, (2, nothing))

    def on_step(record):
        stages(record)
        if record.step == 60 and not barrier.reached("killed"):
            barrier.reach("killed")
            kill_actor(ray_local, clusters[-1], "/job:ps/task:0/device:CPU:0")

    result = trained_elastically(
        (dense_model, classification_data),
        "sgd",
        barrier,
        on_step,
        300,
        {"checkpoint_dir": str(tmp_path / "saved"), "save_every_steps": 20},
        workers=(1, 2),
    )
    assert barrier.reached("killed")
    assert [record.step for record in result.history] == list(range(1, 301))
    assert result.variables["global_step"] == 300
    assert result.history[-1].live == 2
