"""Replicated training when workers, shards and nodes die, hang, or are interrupted."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import threading

import numpy as np
import pytest

import tfray as tf
from tests.support.processes import PATIENCE_S, Barrier, is_alive, noted_pid, wait_for
from tests.support.training_models import (
    FEATURES,
    OPTIMIZERS,
    Loaded,
    classification_data,
    dense_model,
    embedding_model,
    late_input,
    noting_input,
    scaling,
    text_data,
    together_input,
)
from tests.support.waiting import raised_at_the_limit
from tfray.actors.replicas.step_in_flight import StepReport
from tfray.errors import DeadlineExceededError, UnavailableError
from tfray.ops.system.script_ops import py_func
from tfray.training.trainer.cluster_training import _record

pytestmark = pytest.mark.ray

MODELS = {"dense": (dense_model, classification_data), "embedding": (embedding_model, text_data)}


# -- death ---------------------------------------------------------------------------------------------


def killing_run(folder, steps, kills, **options):
    """A run that kills the process of a worker after given steps, by what the workers' input notes of itself.

    All workers must have begun by then (`together_input`, or synchronous steps without backups): here nothing may wait
    for one that is still to come, since it is on this thread that workers are introduced.
    """

    def on_step(record):
        for step, replica in kills:
            if record.step == step:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(noted_pid(folder, replica), signal.SIGKILL)

    return tf.train.RunConfig(steps=steps, on_step=on_step, **options)


@pytest.mark.slow
@pytest.mark.fault(
    "Workers and parameter servers",
    "A worker dies.",
    happens="The step goes on with the gradients of the others. Ray is asked for a replacement.",
    promise="Every step is done once.",
)
@pytest.mark.parametrize("model", [pytest.param("dense", marks=pytest.mark.slow), "embedding"])
@pytest.mark.parametrize("mode", ["sync", pytest.param("async", marks=pytest.mark.slow)])
def test_a_worker_that_dies_is_replaced(ray_local, tmp_path, model, mode):
    """The other one goes on alone for a while, and then waits for the replacement."""
    make_model, data = MODELS[model]
    data = together_input(tf.train.array_input(*data(), batch_size=24), tmp_path, 2)
    data = late_input(data, Barrier(tmp_path), 0, 40, until="again1")
    result = tf.train.Trainer(
        make_model(OPTIMIZERS["sgd"]),
        noting_input(data, tmp_path),
        scaling(2, 2, mode=mode),
        killing_run(tmp_path, 100, [(10, 1)]),
    ).fit()
    assert [record.step for record in result.history] == list(range(1, 101))
    assert result.variables["global_step"] == 100
    assert result.metrics["loss"] < 0.5 * result.history[0].metrics["loss"]
    if mode == "sync":
        assert {record.live for record in result.history} >= {1, 2}
        assert result.history[-1].members == (0, 1), "the replacement takes part"
    else:
        assert {record.members for record in result.history} == {(0,), (1,)}
        assert (tmp_path / "again1").exists(), "the replacement takes part"


@pytest.mark.slow
def test_two_workers_die_at_once(ray_local, tmp_path):
    data = tf.train.array_input(*classification_data(), batch_size=24)
    result = tf.train.Trainer(
        dense_model(OPTIMIZERS["sgd"]),
        noting_input(late_input(data, Barrier(tmp_path), 0, 30, until="again2"), tmp_path),
        scaling(3, 2),
        killing_run(tmp_path, 60, [(10, 1), (10, 2)]),
    ).fit()
    assert [record.step for record in result.history] == list(range(1, 61))
    assert result.variables["global_step"] == 60
    assert {(0, 1, 2), (0,)} <= {record.members for record in result.history}
    assert 2 in result.history[-1].members


@pytest.mark.fault(
    "Workers and parameter servers",
    "All workers die at once.",
    happens="The run waits for replacements.",
    promise="Every step is done once.",
)
@pytest.mark.slow
@pytest.mark.parametrize("mode", ["sync", "async"])
def test_all_workers_die_at_once_and_come_back(ray_local, tmp_path, mode):
    result = tf.train.Trainer(
        dense_model(OPTIMIZERS["sgd"]),
        noting_input(
            together_input(tf.train.array_input(*classification_data(), batch_size=24), tmp_path, 3), tmp_path
        ),
        scaling(3, 2, mode=mode, backup_workers=0 if mode == "async" else 1),
        killing_run(tmp_path, 40, [(10, 0), (10, 1), (10, 2)]),
    ).fit()
    assert [record.step for record in result.history] == list(range(1, 41))
    assert result.variables["global_step"] == 40


@pytest.mark.slow
@pytest.mark.fault(
    "Workers and parameter servers",
    "Workers die more often than `max_worker_restarts` allows, and none is left.",
    happens="`tf.errors.UnavailableError`, which tells how many restarts were used.",
    promise="The run ends; it does not wait for what will not come.",
)
def test_all_workers_die_in_an_undecided_step_and_none_comes_back(ray_local, tmp_path):
    """The shards wait for gradients that nobody will send."""
    inner = dense_model(OPTIMIZERS["sgd"])

    def model_fn(features, labels):
        def maybe_die(values):
            if (tmp_path / "kill").exists():
                os.kill(os.getpid(), signal.SIGKILL)
            return values

        return inner(tf.reshape(py_func(maybe_die, [features], tf.float32), [-1, FEATURES]), labels)

    def on_step(record):
        if record.step == 10:
            (tmp_path / "kill").touch()

    made = tf.train.Trainer(
        model_fn,
        tf.train.array_input(*classification_data(), batch_size=24),
        scaling(2, 1, backup_workers=1),
        tf.train.RunConfig(steps=1000, on_step=on_step, max_worker_restarts=0),
    )
    with pytest.raises(UnavailableError, match=r"no worker is left.*0 of 0 restarts used"):
        made.fit()


@pytest.mark.slow
@pytest.mark.parametrize("first_death", [0, pytest.param(10)])
def test_a_worker_that_dies_while_it_joins(ray_local, tmp_path, first_death):
    """One of the first workers, or a replacement, dies over what it is given to compute; the next one is well."""
    barrier = Barrier(tmp_path)
    inner = dense_model(OPTIMIZERS["sgd"])

    def on_load():
        try:
            os.rename(tmp_path / "deadly", tmp_path / "died")
        except FileNotFoundError:
            return
        os._exit(1)

    def model_fn(features, labels):
        return inner(tf.reshape(py_func(Loaded(on_load), [features], tf.float32), [-1, FEATURES]), labels)

    def on_step(record):
        if record.step == first_death:
            barrier.reach("deadly")
            os.kill(noted_pid(tmp_path, 1), signal.SIGKILL)

    input_fn = tf.train.array_input(*classification_data(), batch_size=24)
    if first_death:
        input_fn = late_input(input_fn, barrier, 0, 30, until="again1")
    else:
        barrier.reach("deadly")
    result = tf.train.Trainer(
        model_fn,
        noting_input(input_fn, tmp_path),
        scaling(2, 2),
        tf.train.RunConfig(steps=60, on_step=on_step),
    ).fit()
    assert barrier.reached("died")
    assert result.steps == result.variables["global_step"] == 60
    if first_death:
        assert result.history[-1].members == (0, 1)


@pytest.mark.slow
@pytest.mark.parametrize("mode", [pytest.param("sync"), "async"])
def test_a_worker_that_dies_in_the_last_step(ray_local, tmp_path, mode):
    """What is left to do needs the shards only."""
    result = tf.train.Trainer(
        dense_model(OPTIMIZERS["sgd"]),
        noting_input(
            together_input(tf.train.array_input(*classification_data(), batch_size=24), tmp_path, 2), tmp_path
        ),
        scaling(2, 2, mode=mode),
        killing_run(tmp_path, 10, [(9, 0), (10, 0), (10, 1)]),
    ).fit()
    assert result.steps == result.variables["global_step"] == 10


def test_what_nobody_could_report_is_unknown():
    """The only member has died when its gradients were there already."""
    record = _record(StepReport(7, [], 0.1, (2,), 0, 0, 0, {}), ["loss", "accuracy"])
    assert record.step == 7 and list(record.metrics) == ["loss", "accuracy"]
    assert np.isnan(list(record.metrics.values())).all()


@pytest.mark.fault(
    "Workers and parameter servers",
    "A worker dies.",
    happens="The step goes on with the gradients of the others. Ray is asked for a replacement.",
    promise="Every step is done once.",
)
@pytest.mark.parametrize("model", [pytest.param("dense", marks=pytest.mark.slow), "embedding"])
def test_a_worker_that_dies_in_the_middle_of_a_step(ray_local, tmp_path, model):
    """After its indices have left for the shards, and before its gradients have."""
    make_model, data = MODELS[model]
    inner = make_model(OPTIMIZERS["sgd"])

    def model_fn(features, labels):
        def maybe_die(values):
            try:
                os.rename(tmp_path / "kill", tmp_path / "killed")
            except FileNotFoundError:
                return values
            os.kill(os.getpid(), signal.SIGKILL)

        return inner(features, tf.reshape(py_func(maybe_die, [labels], labels.dtype), tf.shape(labels)))

    def on_step(record):
        if record.step in (5, 20):
            (tmp_path / "kill").touch()

    result = tf.train.Trainer(
        model_fn,
        tf.train.array_input(*data(), batch_size=24),
        scaling(2, 2),
        tf.train.RunConfig(steps=40, on_step=on_step),
    ).fit()
    assert (tmp_path / "killed").exists()
    assert result.steps == 40 and result.variables["global_step"] == 40
    assert result.metrics["loss"] < result.history[0].metrics["loss"]
    assert {len(record.members) for record in result.history} >= {1}


@pytest.mark.slow
def test_the_only_worker_dies_and_comes_back(ray_local, tmp_path):
    result = tf.train.Trainer(
        dense_model(OPTIMIZERS["sgd"]),
        noting_input(tf.train.array_input(*classification_data(), batch_size=24), tmp_path),
        scaling(1, 2),
        killing_run(tmp_path, 30, [(10, 0), (20, 0)]),
    ).fit()
    assert [record.step for record in result.history] == list(range(1, 31))
    assert result.variables["global_step"] == 30


@pytest.mark.fault(
    "Workers and parameter servers",
    "Workers die more often than `max_worker_restarts` allows, and none is left.",
    happens="`tf.errors.UnavailableError`, which tells how many restarts were used.",
    promise="The run ends; it does not wait for what will not come.",
)
@pytest.mark.slow
def test_replacements_are_limited(ray_local, tmp_path):
    made = tf.train.Trainer(
        dense_model(OPTIMIZERS["sgd"]),
        noting_input(tf.train.array_input(*classification_data(), batch_size=24), tmp_path),
        scaling(1),
        killing_run(tmp_path, 100, [(5, 0), (10, 0)], max_worker_restarts=1),
    )
    with pytest.raises(UnavailableError, match=r"no worker is left.*1 of 1 restarts used"):
        made.fit()


@pytest.mark.slow
def test_without_replacements_the_others_go_on(ray_local, tmp_path):
    result = tf.train.Trainer(
        dense_model(OPTIMIZERS["sgd"]),
        noting_input(tf.train.array_input(*classification_data(), batch_size=24), tmp_path),
        scaling(3),
        killing_run(tmp_path, 30, [(10, 2)], max_worker_restarts=0),
    ).fit()
    assert result.steps == 30
    assert result.history[5].members == (0, 1, 2) and result.history[-1].members == (0, 1)


@pytest.mark.fault(
    "Workers and parameter servers",
    "A parameter server dies in a run without checkpoints.",
    happens="`tf.errors.UnavailableError` with the name of the server.",
    promise="No process of the run is left behind.",
)
@pytest.mark.parametrize("workers", [pytest.param(2, marks=pytest.mark.slow), 1])
def test_a_parameter_server_that_dies_ends_training_with_its_name(ray_local, tmp_path, workers):
    """Also when it dies together with the only worker, while a replacement joins."""

    def model_fn(features, labels):
        with tf.device("/job:ps/task:1"):
            where = py_func(os.getpid, [], tf.int64)
            pid = tf.Variable(np.int64(0), trainable=False, name="pid")
        spec = dense_model(OPTIMIZERS["sgd"])(features, labels)
        with tf.control_dependencies([pid.assign(where)]):
            step = tf.group(spec.train_op)
        return tf.train.ModelSpec(spec.loss, step, metrics={"pid": tf.cast(pid.value(), tf.float64)})

    def on_step(record):
        if record.step == 10:
            os.kill(int(record.metrics["pid"]), signal.SIGKILL)
            if workers == 1:
                os.kill(noted_pid(tmp_path, 0), signal.SIGKILL)

    made = tf.train.Trainer(
        model_fn,
        noting_input(tf.train.array_input(*classification_data(), batch_size=24), tmp_path),
        scaling(workers, 2),
        tf.train.RunConfig(steps=1000, on_step=on_step),
    )
    with pytest.raises(UnavailableError, match=r"/job:ps/task:1/device:CPU:0 died") as caught:
        made.fit()
    assert caught.value.device == "/job:ps/task:1/device:CPU:0"
    pids = [int((tmp_path / f"pid{replica}").read_text()) for replica in range(workers)]
    wait_for(lambda: not any(map(is_alive, pids)))


@pytest.mark.fault(
    "Workers and parameter servers",
    "A synchronous step hangs.",
    happens="`tf.errors.DeadlineExceededError` after `step_timeout_s`, with the step and the replica.",
    promise="The run ends in time.",
)
def test_a_step_that_hangs_runs_into_its_timeout(ray_local, tmp_path):
    barrier = Barrier(tmp_path)
    data = late_input(tf.train.array_input(*classification_data(), batch_size=24), barrier, replica=1, step=3)

    def train(limit_s):
        run = tf.train.RunConfig(steps=10, step_timeout_s=limit_s)
        return tf.train.Trainer(dense_model(OPTIMIZERS["sgd"]), data, scaling(2), run).fit()

    # On a busy machine the first steps may take longer than the first limit.
    error = raised_at_the_limit(train, [2, 20, PATIENCE_S / 2], lambda error: "step 1 " not in error.message)
    assert isinstance(error, DeadlineExceededError)
    assert re.search(r"step 3.*replica 1 \(/job:worker/task:1", error.message)
    barrier.reach("go")


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"backup_workers": 1},
        {"mode": "async"},
    ],
    ids=["sync", "backup", "async"],
)
@pytest.mark.slow
def test_what_on_step_takes_is_not_a_time_of_steps(ray_local, options):
    # Shards with a backup worker wait for the driver, which is in `on_step`.
    data = tf.train.array_input(*classification_data(), batch_size=24)

    def steps_of_a_run(limit_s):
        def on_step(record):
            if record.step == 4:
                threading.Event().wait(1.5 * limit_s)

        run = tf.train.RunConfig(steps=8, step_timeout_s=limit_s, on_step=on_step)
        model = dense_model(OPTIMIZERS["sgd"])
        return tf.train.Trainer(model, data, scaling(2, **options), run).fit().statistics.steps

    try:
        steps = steps_of_a_run(3)
    except DeadlineExceededError:  # the machine may be so busy that a step takes as long
        steps = steps_of_a_run(20)
    assert steps == 8


@pytest.mark.fault(
    "Workers and parameter servers",
    "A run ends, is interrupted, or fails.",
    happens="Its actors end with it.",
    promise="No process and no processor of Ray stays taken.",
)
@pytest.mark.slow
def test_training_leaves_nothing_behind(ray_local, tmp_path):
    free = ray_local.cluster_resources()["CPU"]
    tf.train.Trainer(
        dense_model(OPTIMIZERS["sgd"]),
        noting_input(tf.train.array_input(*classification_data(), batch_size=24), tmp_path),
        scaling(2),
        tf.train.RunConfig(steps=5),
    ).fit()
    pids = [int((tmp_path / f"pid{replica}").read_text()) for replica in range(2)]
    wait_for(lambda: not any(map(is_alive, pids)))
    wait_for(lambda: ray_local.available_resources().get("CPU") == free)


@pytest.mark.fault(
    "Workers and parameter servers",
    "A run ends, is interrupted, or fails.",
    happens="Its actors end with it.",
    promise="No process and no processor of Ray stays taken.",
)
def test_an_interrupted_run_leaves_nothing_behind(ray_local, tmp_path):
    def on_step(record):
        raise KeyboardInterrupt

    made = tf.train.Trainer(
        dense_model(OPTIMIZERS["sgd"]),
        noting_input(tf.train.array_input(*classification_data(), batch_size=24), tmp_path),
        scaling(2),
        tf.train.RunConfig(steps=50, on_step=on_step),
    )
    with pytest.raises(KeyboardInterrupt):
        made.fit()
    pids = [int((tmp_path / f"pid{replica}").read_text()) for replica in range(2)]
    wait_for(lambda: not any(map(is_alive, pids)))


# -- nodes ---------------------------------------------------------------------------------------------


def runs_on(node, pid):
    """Whether a process was started by the Raylet of a node."""
    with open(f"/proc/{pid}/stat") as stat:
        parent = int(stat.read().rpartition(")")[2].split()[1])
    return parent == node.all_processes["raylet"][0].process.pid


@pytest.mark.fault(
    "Machines and networks",
    "A machine dies.",
    happens="Its workers are replaced where there is room; until then the others go on.",
    promise="Every step is done once.",
)
@pytest.mark.slow
def test_a_node_that_dies_takes_a_worker_with_it(ray_nodes, tmp_path):
    """The worker on the other node goes on alone, until the replacement has found room on a node that comes."""
    import ray

    ray_nodes.add_node(num_cpus=2)
    nodes = [ray_nodes.add_node(num_cpus=1, resources={"worker": 1}) for _ in range(2)]
    ray.init(address=ray_nodes.address, logging_level="warning")
    data = late_input(tf.train.array_input(*text_data(), batch_size=24), Barrier(tmp_path), 0, 80, until="again1")

    def on_step(record):
        if record.step == 10:
            pid = int((tmp_path / "pid1").read_text())
            ray_nodes.remove_node(next(n for n in nodes if runs_on(n, pid)), allow_graceful=False)
        if record.step == 40:
            ray_nodes.add_node(num_cpus=1, resources={"worker": 1})

    result = tf.train.Trainer(
        embedding_model(OPTIMIZERS["sgd"]),
        noting_input(data, tmp_path),
        tf.train.ScalingConfig(2, 2, cpus_per_parameter_server=0.5, worker_resources={"worker": 1}),
        tf.train.RunConfig(steps=150, on_step=on_step),
    ).fit()
    assert [record.step for record in result.history] == list(range(1, 151))
    assert result.variables["global_step"] == 150
    assert result.metrics["loss"] < 0.5 * result.history[0].metrics["loss"]
    members = [record.members for record in result.history]
    assert members[5] == (0, 1) and (0,) in members
    assert members[-1] == (0, 1), "the replacement found room on the new node"
