"""Gradients of several batches, gradients that are not finite, and tensors that travel in 16 bits."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tests.support.training_models import (
    MODELS,
    OPTIMIZERS,
    classification_data,
    dense_model,
    scaling,
    text_data,
)
from tfray.errors import InvalidArgumentError
from tfray.framework.constant_value import run_kernel
from tfray.ops.system.replica_ops import Contributions, replica_reduce
from tfray.placement.contributions import ReplicaOptions
from tfray.placement.cost import CostModel
from tfray.placement.replicate import REPLICA_DEVICE, compile_replica_step
from tfray.placement.step_time import instances_of_replicas, traffic_of
from tfray.runtime.device import Device, OpContext
from tfray.training.trainer.local_replica import LocalReplica, to_shard
from tfray.training.trainer.model import build_model
from tfray.training.trainer.trained_variables import initializer


def fit(model="dense", batch_size=24, scale=None, steps=20, optimizer="momentum", data=None, **run):
    make_model, make_data = MODELS[model]
    return tf.train.Trainer(
        make_model(OPTIMIZERS[optimizer]),
        tf.train.array_input(*(data or make_data()), batch_size=batch_size, shuffle_seed=4),
        scale,
        tf.train.RunConfig(steps=steps, local=scale is None, **run),
    ).fit()


def assert_same(one, other, rtol=1e-5, atol=1e-6):
    losses = [[record.metrics["loss"] for record in result.history] for result in (one, other)]
    np.testing.assert_allclose(losses[0], losses[1], rtol=rtol, atol=atol)
    assert set(one.variables) == set(other.variables)
    for name, value in other.variables.items():
        np.testing.assert_allclose(one.variables[name], value, rtol=rtol, atol=atol, err_msg=name)


def poisoned():
    """The examples of `classification_data`, one of which is not a number."""
    features, labels = classification_data()
    features = features.copy()
    features[30, 2] = np.nan
    return features, labels


def fit_poisoned(mode, scale=None, steps=20, **run):
    """Train without shuffling: the bad example is the 7th of the second batch, and of the twelfth."""
    return tf.train.Trainer(
        dense_model(OPTIMIZERS["adam"]),
        tf.train.array_input(*poisoned(), batch_size=24),
        scale,
        tf.train.RunConfig(steps=steps, local=scale is None, bad_gradients=mode, **run),
    ).fit()


# -- several batches in a step -------------------------------------------------------------------------


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize("model", MODELS)
def test_several_batches_count_as_one_that_is_as_large(model, optimizer):
    large = fit(model, 24, optimizer=optimizer)
    gathered = fit(model, 8, optimizer=optimizer, accumulate=3)
    assert gathered.steps == 20 and gathered.variables["global_step"] == 20
    assert_same(gathered, large)


def test_a_run_of_several_batches_a_step_is_resumed(tmp_path):
    whole = fit("embedding", 8, steps=10, accumulate=3)
    fit("embedding", 8, steps=4, accumulate=3, checkpoint_dir=tmp_path)
    rest = fit("embedding", 8, steps=10, accumulate=3, checkpoint_dir=tmp_path)
    assert [record.step for record in rest.history] == list(range(5, 11))
    for name, value in whole.variables.items():
        np.testing.assert_array_equal(rest.variables[name], value)


def test_a_step_for_which_there_are_too_few_batches_is_not_taken():
    input_fn = tf.train.array_input(*classification_data(), batch_size=24, epochs=1)  # ten batches
    run = tf.train.RunConfig(steps=9, local=True, accumulate=4)
    result = tf.train.Trainer(dense_model(OPTIMIZERS["sgd"]), input_fn, run=run).fit()
    assert result.steps == 2


def test_each_batch_draws_random_numbers_of_its_own():
    def model_fn(features, labels):
        total = tf.Variable(np.zeros(2, np.float32), name="total")
        noise = tf.random_uniform([2], seed=3)
        loss = tf.reduce_sum(total * noise) + 0 * tf.reduce_sum(features) + 0 * tf.reduce_sum(labels)
        return tf.train.ModelSpec(loss, tf.train.GradientDescentOptimizer(1.0).minimize(loss))

    def moved(**run):
        data = np.zeros((4, 1), np.float32)
        run = tf.train.RunConfig(steps=1, local=True, bad_gradients="report", **run)
        input_fn = tf.train.array_input(data, data, batch_size=1)
        return -tf.train.Trainer(model_fn, input_fn, run=run).fit().variables["total"]

    one, mean = moved(), moved(accumulate=2)
    assert (2 * mean - one).min() >= 0 and (2 * mean - one).max() < 1
    assert np.abs(mean - one).max() > 1e-3


def test_steps_of_several_batches_are_recorded_and_summarised(tmp_path):
    def model_fn(features, labels):
        spec = dense_model(OPTIMIZERS["sgd"])(features, labels)
        tf.summary.scalar("loss", spec.loss)
        tf.summary.scalar("steps", tf.train.get_global_step())
        return spec

    seen = []
    run = tf.train.RunConfig(
        steps=4, local=True, accumulate=2, trace_steps=[2], summary_steps=3, logdir=tmp_path, on_step=seen.append
    )
    tf.train.Trainer(model_fn, tf.train.array_input(*classification_data(), batch_size=12), run=run).fit()
    tags = [{value.tag for value in tf.Summary.FromString(record.summary).value} for record in seen]
    assert tags == [{"loss", "steps"}, set(), {"loss", "steps"}, set()]
    assert [record.trace is not None for record in seen] == [False, True, False, False]
    names = {node.node_name for stats in seen[1].trace.step_stats.dev_stats for node in stats.node_stats}
    assert {"MatMul", "_turn1/MatMul"} <= names


def test_batches_take_turns_in_the_same_memory():
    features, labels = (array[:64] for array in classification_data())
    model = build_model(dense_model(OPTIMIZERS["sgd"]), (features, labels), device=to_shard)
    taken = []
    with tf.Session(graph=model.graph, config=tf.ConfigProto(device_count={"GPU": 0})) as session:
        session.run(initializer(model))
        for count in (2, 8):
            fetched, options = list(model.fetches.values()), ReplicaOptions(count)
            replica = LocalReplica(session, fetched, model.train_operation, model.placeholders, options)
            for number in (1, 2, 3):
                replica.run(number, [features, labels] * count)
            taken.append(sum(plan.buffer_bytes for plan in replica._plans.values()))
    assert taken[1] <= 1.2 * taken[0]


@pytest.mark.ray
@pytest.mark.parametrize("model", ["embedding", pytest.param("normalized", marks=pytest.mark.slow)])
def test_replicas_send_the_mean_of_several_batches(ray_local, model):
    together = fit(model, 8, scaling(2, 2), accumulate=3)
    assert_same(together, fit(model, 24))
    assert together.steps == 20 and together.history[-1].members == (0, 1)


@pytest.mark.slow
@pytest.mark.ray
def test_everything_at_once_in_an_elastic_run(ray_local):
    scale = scaling((2, 2), 2, wire_dtype="bfloat16")
    together = fit("embedding", 8, scale, accumulate=3, bad_gradients="skip")
    assert_same(together, fit("embedding", 24), rtol=0.05, atol=0.05)
    assert together.statistics.bad_gradients == {}


# -- gradients that are not finite ---------------------------------------------------------------------


def test_bad_gradients_are_reported(caplog):
    result = fit_poisoned("report", steps=5)
    assert list(result.statistics.bad_gradients) == [2, 3, 4, 5]
    assert result.history[1].bad_gradients == {0: ("w1", "b1", "w2", "b2")}
    assert result.history[0].bad_gradients == {} and result.history[0].members == (0,)
    assert np.isnan(result.variables["w1"]).all()
    (warning,) = caplog.messages
    assert "step 2: replica 0 computed gradients that are NaN or infinite, for w1, b1, w2 and 1 more" in warning


def test_a_step_of_bad_gradients_applies_nothing():
    result = fit_poisoned("skip", steps=20)
    assert result.steps == 20 and result.variables["global_step"] == 18
    assert result.statistics.bad_gradients == {2: (0,), 12: (0,)}
    assert [record.step for record in result.history if record.members == ()] == [2, 12]
    # As if there had been no such batches: nothing of the optimizer's has moved either.
    features, labels = classification_data()
    others = np.r_[:24, 48:240]
    good = tf.train.array_input(features[others], labels[others], batch_size=24)
    run = tf.train.RunConfig(steps=18, local=True)
    alone = tf.train.Trainer(dense_model(OPTIMIZERS["adam"]), good, run=run).fit()
    for name, value in alone.variables.items():
        np.testing.assert_allclose(result.variables[name], value, rtol=1e-5, atol=1e-7, err_msg=name)


def test_bad_gradients_stop_a_run():
    with pytest.raises(InvalidArgumentError) as caught:
        fit_poisoned("stop")
    text = str(caught.value)
    assert "replica 0 (/job:localhost/task:0/device:CPU:0) failed in step 2" in text
    assert "the gradient of variable 'w1', computed by 'gradients/MatMul_grad/MatMul_1', is not finite" in text
    assert "training_models.py" in text


def test_what_updates_variables_otherwise_is_checked_too():
    features, labels = poisoned()
    with pytest.raises(InvalidArgumentError, match=r"in step \d+: what updates variable 'moving', computed by"):
        fit("normalized", data=(features, labels), bad_gradients="stop")


@pytest.mark.parametrize("mode", ["report", "skip", "stop"])
def test_bad_rows_are_found_too(mode):
    words, values = text_data()
    values = values.copy()
    values[0] = np.inf
    if mode == "stop":
        with pytest.raises(InvalidArgumentError, match=r"the gradient of variable 'table_0'.*is not finite"):
            fit("embedding", data=(words, values), bad_gradients=mode)
        return
    result = fit("embedding", data=(words, values), bad_gradients=mode, steps=10)
    (first, *_) = result.statistics.bad_gradients
    assert result.history[first - 1].bad_gradients == {0: ("table_0", "out")}
    assert np.isfinite(result.variables["table_0"]).all() == (mode == "skip")


def test_checks_change_nothing_that_is_finite():
    for model in MODELS:
        assert_same(fit(model, bad_gradients="skip", steps=5), fit(model, steps=5), rtol=1e-6)


@pytest.mark.slow
@pytest.mark.ray
def test_a_replica_of_bad_gradients_does_not_count(ray_local):
    """The bad example is one of replica 0's."""
    result = fit_poisoned("skip", scaling(2, 2))
    assert result.statistics.bad_gradients == {2: (0,), 12: (0,)}
    assert [record.step for record in result.history if record.members == (1,)] == [2, 12]
    assert result.variables["global_step"] == 20
    assert all(np.isfinite(record.metrics["loss"]) for record in result.history)
    assert all(np.isfinite(value).all() for value in result.variables.values())


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.parametrize("options", [{"mode": "async"}, {"backup_workers": 1}])
def test_a_step_in_which_nobody_counts_is_void(ray_local, options):
    result = fit_poisoned("skip", scaling(2, 2, **options))
    void = [record.step for record in result.history if record.members == ()]
    assert result.steps == 20 and list(result.statistics.bad_gradients) == void
    assert result.variables["global_step"] == 20 - len(void)
    assert all(np.isfinite(value).all() for value in result.variables.values())


@pytest.mark.ray
def test_bad_gradients_of_a_replica_stop_the_run(ray_local):
    with pytest.raises(InvalidArgumentError) as caught:
        fit_poisoned("stop", scaling(2, 2))
    text = str(caught.value)
    assert "replica 0 (/job:worker/task:0/device:CPU:0) failed in step 2: the gradient of variable 'w1'" in text
    assert "training_models.py" in text


# -- 16 bits -------------------------------------------------------------------------------------------


def compiled(model="dense", **options):
    """A training step on two shards."""
    make_model, make_data = MODELS[model]
    features, labels = make_data()
    shards = [f"/job:ps/task:{i}/device:CPU:0" for i in range(2)]
    setter = tf.train.replica_device_setter(2, worker_device="")
    built = build_model(make_model(OPTIMIZERS["sgd"]), (features[:8], labels[:8]), device=setter)
    fetched = list(built.fetches.values())
    return compile_replica_step(
        fetched, [built.train_operation], built.placeholders, shards, REPLICA_DEVICE, options=ReplicaOptions(**options)
    )


def sent(step, partitions):
    return [op.inputs[0] for part in partitions for op in part.graph.get_operations() if op.type == "Send"]


@pytest.mark.parametrize("wire_dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("model", ["dense", "embedding"])
def test_half_the_bytes_travel(model, wire_dtype):
    def size_bytes(step):
        instances = instances_of_replicas(step, ["/job:worker/task:0/device:CPU:0"])
        cost = CostModel(unknown_size=1000)
        whole = sum(entry.size_bytes for entry in traffic_of(instances, cost).values())
        parts = [step.replica, *step.shards, *step.serving.values()]
        integers = sum(cost.tensor_bytes(tensor) for tensor in sent(step, parts) if not tensor.dtype.is_floating)
        return whole - integers

    step = compiled(model, wire_dtype=wire_dtype)
    assert size_bytes(step) == size_bytes(compiled(model)) / 2
    parts = [step.replica, *step.shards, *step.serving.values()]
    assert {tensor.dtype.name for tensor in sent(step, parts) if tensor.dtype.is_floating} == {wire_dtype}
    reduced = [op for part in step.shards for op in part.graph.get_operations() if op.type == "ReplicaReduce"]
    assert {op.outputs[0].dtype.name for op in reduced} - {"int32", "int64"} == {"float32"}


def test_scalars_travel_as_they_are():
    with tf.device("/job:ps/task:0"):
        scale = tf.Variable(1.0, name="scale")
    x = tf.placeholder(tf.float32, [None, 4], name="x")
    shards, options = ["/job:ps/task:0/device:CPU:0"], ReplicaOptions(wire_dtype="bfloat16")
    step = compile_replica_step(
        [tf.reduce_sum(x * scale)], [scale.assign(tf.reduce_sum(x)).op], [x], shards, REPLICA_DEVICE, options=options
    )
    assert {tensor.dtype for tensor in sent(step, [step.replica, *step.shards])} == {tf.float32}


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.parametrize("model", ["embedding", "dense"])
def test_what_travels_in_16_bits_is_rounded_and_learned(ray_local, model):
    plain = fit(model)
    rounded = fit(model, scale=scaling(2, 2, wire_dtype="bfloat16"))
    assert rounded.metrics["loss"] < 0.7 * rounded.history[0].metrics["loss"]
    first = [result.history[0].metrics["loss"] for result in (plain, rounded)]
    assert first[0] != first[1] and first[1] == pytest.approx(first[0], rel=2**-7)
    for name, value in plain.variables.items():
        # 8 bits of each parameter and gradient, over 20 steps.
        np.testing.assert_allclose(rounded.variables[name], value, rtol=0.05, atol=0.02, err_msg=name)


def test_sums_of_rounded_gradients_are_exact():
    """bfloat16 has no 257: the 256 and the 1 of two replicas would add up to 256 in it."""
    device = Device("/job:ps/task:0/device:CPU:0")
    op = replica_reduce(tf.placeholder(tf.bfloat16, [3]), dtype=tf.float32).op
    parts = [np.full(3, number, tf.bfloat16.as_numpy_dtype) for number in (256, 1)]
    mean = run_kernel(op.op_def.kernel_for("CPU"), OpContext(op, device, {}), [Contributions(parts, 2)])
    assert mean.dtype == np.float32 and mean.tolist() == [128.5] * 3


# -- what cannot be asked for --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tf.train.RunConfig(accumulate=0), "accumulate must be an integer of at least 1, got 0"),
        (lambda: tf.train.RunConfig(bad_gradients="ignore"), "'report', 'skip', 'stop' or None, got 'ignore'"),
        (lambda: tf.train.ScalingConfig(wire_dtype="int8"), "'bfloat16', 'float16' or None, got 'int8'"),
    ],
)
def test_options_that_cannot_be(make, message):
    with pytest.raises(InvalidArgumentError, match=message):
        make()
