"""Runs without parameter servers: each worker holds a copy of the variables, and gradients are reduced among them."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import threading

import numpy as np
import pytest

import tfray as tf
from tests.support.processes import PATIENCE_S, noted_pid
from tests.support.training_models import (
    FEATURES,
    MODELS,
    OPTIMIZERS,
    classification_data,
    dense_model,
    noting_input,
    scaling,
    short_input,
    together_input,
)
from tfray.cli import plan_report
from tfray.errors import FailedPreconditionError, InvalidArgumentError, UnavailableError
from tfray.ops.state import state_ops
from tfray.training.trainer import cluster_training
from tfray.training.trainer.worker_copies import WorkerCopies

TRAINED = {**MODELS, "wide": (lambda _: wide_model, classification_data)}

WIDTH = 600


def wide_model(features, labels):
    """A network whose gradients take several buckets, with dropout; they are clipped by the norm of all."""
    with tf.variable_scope("wide", initializer=tf.glorot_uniform_initializer(seed=1)):
        hidden = tf.nn.relu(tf.matmul(features, tf.get_variable("first", [FEATURES, WIDTH])))
        hidden = tf.nn.dropout(hidden, rate=0.1)
        hidden = tf.nn.relu(tf.matmul(hidden, tf.get_variable("second", [WIDTH, WIDTH])))
        logits = tf.matmul(hidden, tf.get_variable("third", [WIDTH, 3]))
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    optimizer = tf.train.MomentumOptimizer(0.02, 0.9)
    gradients, variables = zip(*optimizer.compute_gradients(loss), strict=True)
    gradients, _ = tf.clip_by_global_norm(gradients, 1.0)
    step = tf.train.get_or_create_global_step()
    train_op = optimizer.apply_gradients(zip(gradients, variables, strict=True), step)
    return tf.train.ModelSpec(loss, train_op, metrics={"examples": tf.cast(tf.size(labels), tf.float32)})


def fit(
    model="dense", optimizer="sgd", workers=2, shards=0, steps=20, input_of=lambda source: source, scale=None, **run
):
    """Train on a cluster; with `workers` 0 in this process."""
    make_model, data = TRAINED[model]
    return tf.train.Trainer(
        make_model(OPTIMIZERS[optimizer]),
        input_of(tf.train.array_input(*data(), batch_size=24, shuffle_seed=4)),
        scaling(workers, shards, **scale or {}) if workers else None,
        tf.train.RunConfig(steps=steps, local=not workers, **run),
    ).fit()


def assert_equal(found, want, rtol=1e-4, atol=1e-5):
    """Two results agree in their losses and variables, but for rounding."""
    assert found.steps == want.steps and found.variables.keys() == want.variables.keys()
    for mine, others in zip(found.history, want.history, strict=True):
        assert mine.step == others.step
        np.testing.assert_allclose(mine.metrics["loss"], others.metrics["loss"], rtol=rtol, atol=atol)
    for name, value in found.variables.items():
        np.testing.assert_allclose(value, want.variables[name], rtol=rtol, atol=atol, err_msg=name)


@pytest.fixture
def copies(monkeypatch):
    """The copies that the workers held at the end of a run, by worker: by name of the variable, its bytes."""
    found = []
    end = WorkerCopies.end

    def noting_end(self):
        for device in self._cluster.devices_of("worker"):
            variables = [op for op in self._graph.get_operations() if op.type == "Variable"]
            with tf.Graph().as_default() as graph, graph.device(device):
                attrs = {op.name: op.attrs for op in variables}
                handles = {
                    name: state_ops.variable_handle(each["shape"], each["dtype"], shared_name=name)
                    for name, each in attrs.items()
                }
                reads = {name: state_ops.read_variable(handle) for name, handle in handles.items()}
            with tf.Session(self._cluster, graph=graph) as session:
                found.append({name: value.tobytes() for name, value in session.run(reads).items()})
        end(self)

    monkeypatch.setattr(WorkerCopies, "end", noting_end)
    return found


# -- the same as otherwise -----------------------------------------------------------------------------


@pytest.mark.ray
@pytest.mark.rows(every=2)
@pytest.mark.parametrize(
    ("model", "optimizer", "workers"),
    [
        ("dense", "adam", 2),
        ("embedding", "sgd", 3),
        pytest.param("dense", "momentum", 3, marks=pytest.mark.slow),
        pytest.param("dense", "sgd", 1, marks=pytest.mark.slow),
        pytest.param("embedding", "adam", 2, marks=pytest.mark.slow),
        pytest.param("normalized", "momentum", 2, marks=pytest.mark.slow),
        pytest.param("looping", "adam", 3, marks=pytest.mark.slow),
    ],
)
def test_workers_compute_what_one_process_and_parameter_servers_compute(ray_local, copies, model, optimizer, workers):
    alone = fit(model, optimizer, workers=0)
    together = fit(model, optimizer, workers)
    assert_equal(together, alone)
    assert_equal(together, fit(model, optimizer, workers, shards=2))
    assert all(record.members == tuple(range(workers)) for record in together.history)
    assert len(copies) == workers
    assert all(copy == copies[0] for copy in copies), "bit by bit"


@pytest.mark.ray
def test_copies_stay_equal_where_workers_draw_other_numbers(ray_local, copies):
    """Of gradients that take several buckets, of which one is summed up chunk by chunk."""
    result = fit("wide", workers=3, steps=12)
    assert result.metrics["loss"] < 0.7 * result.history[0].metrics["loss"]
    assert [record.metrics["examples"] for record in result.history] == [8.0] * 12
    first, *others = copies
    assert len(others) == 2 and all(copy == first for copy in others)
    second = np.frombuffer(first["wide/second"], np.float32).reshape(WIDTH, WIDTH)
    np.testing.assert_array_equal(second, result.variables["wide/second"])


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.parametrize("wire_dtype", [None, "bfloat16", "float16"])
def test_batches_may_be_gathered_and_gradients_sent_in_fewer_bits(ray_local, copies, wire_dtype):
    options = {"accumulate": 2, "bad_gradients": "report", "steps": 10}
    found = fit("dense", "adam", 2, scale={"wire_dtype": wire_dtype}, **options)
    want = fit("dense", "adam", 2, shards=1, **options)
    assert_equal(found, want, *((1e-4, 1e-5) if wire_dtype is None else (0.05, 0.02)))
    assert copies[0] == copies[1]


@pytest.mark.ray
@pytest.mark.slow
def test_variables_may_be_cut_and_their_results_are_whole(ray_local):
    cut = {"partitioner": tf.fixed_size_partitioner(2)}
    assert_equal(fit("embedding", "adam", 2, scale=cut), fit("embedding", "adam", workers=0))


@pytest.mark.ray
@pytest.mark.slow
def test_gradients_go_round_over_several_machines(ray_nodes, copies):
    """Between machines large chunks travel over streams, and not through a store that both share."""
    for number in range(2):
        ray_nodes.add_node(num_cpus=2, resources={f"machine{number}": 2})
    ray_nodes.connect()
    result = fit("wide", workers=3, steps=12, scale={"cpus_per_worker": 1.0, "scheduling_strategy": "SPREAD"})
    assert result.metrics["loss"] < 0.7 * result.history[0].metrics["loss"]
    assert all(copy == copies[0] for copy in copies)


# -- checkpoints ---------------------------------------------------------------------------------------


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.parametrize(("before", "after"), [(0, 2), (2, 0)])
def test_a_run_goes_on_from_a_checkpoint_of_the_other_kind(ray_local, tmp_path, before, after):
    whole = fit("embedding", "adam", workers=0, steps=20)
    fit("embedding", "adam", shards=before, steps=8, checkpoint_dir=tmp_path)
    rest = fit("embedding", "adam", 3, shards=after, steps=20, checkpoint_dir=tmp_path)
    assert [record.step for record in rest.history] == list(range(9, 21))
    for name, value in whole.variables.items():
        np.testing.assert_allclose(rest.variables[name], value, rtol=1e-4, atol=1e-5, err_msg=name)


# -- faults --------------------------------------------------------------------------------------------


def signalling(folder, at, replica, number):
    """`on_step` that signals the worker of a replica after a step, once."""
    signalled = []

    def on_step(record):
        if record.step == at and not signalled:
            signalled.append(record.step)
            with contextlib.suppress(ProcessLookupError):
                os.kill(noted_pid(folder, replica), number)

    return on_step


def noted(folder, workers=2):
    return lambda source: noting_input(together_input(source, folder, workers), folder)


@pytest.mark.ray
@pytest.mark.fault(
    "Workers and parameter servers",
    "A worker dies that holds a copy of the variables (`parameter_servers=0`).",
    happens="Another is started, and the run goes back to its newest checkpoint. Without checkpoints it ends with an "
    "`UnavailableError`.",
    promise="The result is the same.",
)
@pytest.mark.parametrize("replica", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_a_worker_that_dies_takes_the_run_back_to_its_checkpoint(ray_local, tmp_path, copies, replica):
    want = fit("dense", "momentum", steps=16)
    copies.clear()
    notes = tmp_path / "notes"
    notes.mkdir()
    result = fit(
        "dense",
        "momentum",
        steps=16,
        input_of=noted(notes),
        on_step=signalling(notes, 10, replica, signal.SIGKILL),
        checkpoint_dir=tmp_path / "checkpoints",
        save_every_steps=4,
    )
    assert [record.step for record in result.history] == list(range(1, 17))
    assert_equal(result, want)
    kinds = [event.kind for event in result.events]
    assert kinds.count("replacement") == kinds.count("rollback") == 1
    (replaced,) = [event for event in result.events if event.kind == "replacement"]
    assert (replaced.replica, replaced.device) == (replica, f"/job:worker/task:{replica}/device:CPU:0")
    assert copies[0] == copies[1]


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.fault(
    "Workers and parameter servers",
    "A worker that holds a copy of the variables (`parameter_servers=0`) hangs.",
    happens="After `step_timeout_s`, or 120 s without it, another is started, and the run goes back to its newest "
    "checkpoint.",
    promise="The result is the same.",
)
@pytest.mark.parametrize("step_timeout_s", [PATIENCE_S / 20, None])
def test_a_worker_that_hangs_is_replaced_after_the_limit_of_a_step(ray_local, tmp_path, monkeypatch, step_timeout_s):
    monkeypatch.setattr(cluster_training, "SILENCE_S", 5.0)
    want = fit("dense", "momentum", steps=12)
    notes = tmp_path / "notes"
    notes.mkdir()
    result = fit(
        "dense",
        "momentum",
        steps=12,
        input_of=noted(notes),
        on_step=signalling(notes, 6, 1, signal.SIGSTOP),
        checkpoint_dir=tmp_path / "checkpoints",
        save_every_steps=4,
        step_timeout_s=step_timeout_s,
    )
    assert_equal(result, want)
    assert [event.kind for event in result.events if event.kind in ("replacement", "rollback")] == [
        "replacement",
        "rollback",
    ]


@pytest.mark.ray
@pytest.mark.slow
def test_workers_that_die_again_and_again(ray_local, tmp_path, copies):
    """Also in the middle of a step: the process is killed from a thread, at any moment."""
    notes, rng = tmp_path / "notes", np.random.default_rng(3)
    notes.mkdir()
    timers = []

    def kill(replica):
        with contextlib.suppress(ProcessLookupError):
            os.kill(noted_pid(notes, replica), signal.SIGKILL)

    def on_step(record):
        if record.step in (5, 11, 17) and len(timers) < record.step / 6:
            timers.append(threading.Timer(rng.uniform(0, 0.1), kill, [int(rng.integers(3))]))
            timers[-1].start()

    result = fit(
        "wide",
        workers=3,
        steps=24,
        input_of=noted(notes, 3),
        on_step=on_step,
        checkpoint_dir=tmp_path / "checkpoints",
        save_every_steps=3,
    )
    for timer in timers:
        timer.join()
    assert [record.step for record in result.history] == list(range(1, 25))
    assert result.variables["global_step"] == 24
    assert len(copies[-3:]) == 3 and all(copy == copies[-1] for copy in copies[-3:])


@pytest.mark.ray
@pytest.mark.slow
def test_without_a_checkpoint_the_death_of_a_worker_ends_the_run(ray_local, tmp_path):
    with pytest.raises(UnavailableError, match="/job:worker/task:1") as raised:
        fit(steps=10**6, input_of=noted(tmp_path), on_step=signalling(tmp_path, 5, 1, signal.SIGKILL))
    assert raised.value.device == "/job:worker/task:1/device:CPU:0"


@pytest.mark.ray
@pytest.mark.slow
def test_the_run_ends_with_the_first_input_that_ends(ray_local, copies):
    result = fit(input_of=lambda source: short_input(source, replica=1, steps=5), workers=3)
    assert [record.members for record in result.history] == [(0, 1, 2)] * 5
    assert result.variables["global_step"] == 5, "no copy has made the update of a step that one had no batch for"
    assert all(copy == copies[0] for copy in copies)
    assert_equal(result, fit(workers=0, steps=5))


@pytest.mark.ray
@pytest.mark.slow
def test_a_bad_gradient_may_stop_the_run_before_anything_is_applied(ray_local, copies):
    def bad_from(source):
        def input_fn(context):
            for number, (features, labels) in enumerate(source(context)):
                yield features * np.float32(np.nan if number == 3 and context.index == 1 else 1), labels

        return input_fn

    with pytest.raises(InvalidArgumentError, match=r"replica 1 .*step 4.*the gradient of variable 'w[12]'"):
        fit(input_of=bad_from, bad_gradients="stop")
    want = fit(steps=3, workers=0)
    assert copies[0] == copies[1]
    np.testing.assert_allclose(
        np.frombuffer(copies[0]["w1"], np.float32), want.variables["w1"].reshape(-1), rtol=1e-4, atol=1e-5
    )


# -- what needs parameter servers ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workers": 3, "backup_workers": 1}, "backup_workers=1 needs parameter servers.*every worker"),
        ({"workers": 2, "mode": "async"}, "mode='async' needs parameter servers.*together"),
        ({"workers": (2, 4)}, r"workers=\(2, 4\) needs parameter servers.*the same workers"),
        ({"workers": 2, "replicated_shards": True}, "replicated_shards=True needs parameter servers.*no shards"),
    ],
    ids=str,
)
def test_what_needs_parameter_servers_is_refused_without(options, message):
    with pytest.raises(InvalidArgumentError, match=message):
        tf.train.ScalingConfig(parameter_servers=0, **options)


def test_leaving_out_a_worker_with_bad_gradients_needs_parameter_servers():
    with pytest.raises(InvalidArgumentError, match="bad_gradients='skip' needs parameter servers"):
        fit(bad_gradients="skip")


def test_a_step_without_parameter_servers_is_not_predicted():
    source = tf.train.array_input(*classification_data(), batch_size=24)
    made = tf.train.Trainer(dense_model(OPTIMIZERS["sgd"]), source, scaling(2, 0))
    with pytest.raises(InvalidArgumentError, match="steps without parameter servers are not predicted"):
        plan_report.show_training(made)


@pytest.mark.ray
@pytest.mark.slow
def test_there_is_nothing_to_scale(ray_local):
    told = []

    class Scaling(tf.train.Callback):
        def on_start(self, run):
            try:
                run.scale(2)
            except FailedPreconditionError as error:
                told.append(error.message)

    fit(steps=2, callbacks=[Scaling()])
    assert re.search("no parameter servers", told[0])
