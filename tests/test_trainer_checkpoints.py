"""Training that is interrupted and resumed, in one process and on Ray, is the training that was not."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import start_local_ray
from processes import kill_actor
from training_models import FEATURES, OPTIMIZERS, classification_data, dense_model, scaling

import tfray as tf
from tfray.errors import InvalidArgumentError, NotFoundError, UnavailableError
from tfray.training.checkpoint_interval import AutomaticInterval, FailureRecord, best_interval_s
from tfray.training.checkpoint_management import stray_files

STEPS = 24


def random_model(optimizer):
    """A network whose results depend on random numbers in every step: dropout, and noise within a loop."""
    inner = dense_model(optimizer)

    def model_fn(features, labels):
        _, noise = tf.while_loop(
            lambda i, x: i < 2,
            lambda i, x: (i + 1, x + tf.random_normal([FEATURES], stddev=0.1)),
            [0, tf.zeros(FEATURES)],
        )
        return inner(tf.nn.dropout(features, rate=0.2) + noise, labels)

    return model_fn


def trainer(folder, steps=STEPS, size=None, **run):
    return tf.train.Trainer(
        random_model(OPTIMIZERS["adam"]),
        tf.train.array_input(*classification_data(), batch_size=24, shuffle_seed=1),
        size or scaling(),
        tf.train.RunConfig(steps=steps, seed=3, checkpoint_dir=folder, logdir=None, **run),
    )


def assert_same(found, expected):
    """The same parameters, slots and losses, bit for bit."""
    assert found.variables.keys() == expected.variables.keys()
    for name, value in expected.variables.items():
        np.testing.assert_array_equal(found.variables[name], value, err_msg=name)
    losses = {record.step: record.metrics for record in expected.history}
    for record in found.history:
        assert record.metrics == losses[record.step]


class Interrupted(Exception):
    """Stands for anything that ends a run."""


def interrupt_at(step):
    def on_step(record):
        if record.step == step:
            raise Interrupted

    return on_step


# -- in one process ------------------------------------------------------------------------------------


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("step", [1, 7, 12, 23])
def test_a_run_that_is_resumed_equals_one_that_was_not(tmp_path, step, asynchronous):
    expected = trainer(None, local=True).fit()
    options = {"local": True, "save_every_steps": 5, "asynchronous_checkpoints": asynchronous}
    with pytest.raises(Interrupted):
        trainer(tmp_path, on_step=interrupt_at(step), **options).fit()
    resumed = trainer(tmp_path, **options).fit()
    assert resumed.history[0].step == (step - 1) // 5 * 5 + 1
    assert_same(resumed, expected)
    assert tf.train.latest_checkpoint(tmp_path) == f"{tmp_path}/model.ckpt-{STEPS}"


def test_a_finished_run_has_nothing_left_to_do(tmp_path):
    first = trainer(tmp_path, local=True).fit()
    again = trainer(tmp_path, local=True).fit()
    assert again.steps == 0
    assert_same(again, first)
    longer = trainer(tmp_path, STEPS + 3, local=True).fit()
    assert [record.step for record in longer.history] == [STEPS + 1, STEPS + 2, STEPS + 3]


def test_a_run_can_begin_anew(tmp_path):
    first = trainer(tmp_path, local=True).fit()
    again = trainer(tmp_path, local=True, resume=False).fit()
    assert again.steps == STEPS
    assert_same(again, first)


def test_what_interrupted_saves_leave_is_cleared_away(tmp_path):
    for name in (
        "model.ckpt-3.data-00000-of-00001-abc.arrow",
        "model.ckpt-3.index.tmp-0123456789ab",
        "checkpoint.tmp-0123456789ab",
    ):
        (tmp_path / name).write_bytes(b"half")
    (tmp_path / "notes.txt").write_text("mine")
    trainer(tmp_path, 2, local=True).fit()
    assert sorted({path.name.partition(".data")[0] for path in tmp_path.iterdir()}) == [
        "checkpoint",
        "failures.json",
        "model.ckpt-2",
        "model.ckpt-2.index",
        "notes.txt",
    ]


def test_what_saves_leave_that_a_run_outlives_is_cleared_away(tmp_path):
    """Such as that of a save during which a parameter server died."""

    def on_step(record):
        if record.step == 3:
            (tmp_path / "model.ckpt-3.data-00000-of-00001-abc.arrow").write_bytes(b"half")

    trainer(tmp_path, 5, local=True, on_step=on_step).fit()
    assert not stray_files(tmp_path)


def test_another_models_checkpoint_is_refused(tmp_path):
    trainer(tmp_path, 2, local=True).fit()
    other = trainer(tmp_path, 3, local=True)
    other._model_fn = dense_model(OPTIMIZERS["adagrad"])
    with pytest.raises(NotFoundError, match=r"another model.*checkpoint_dir"):
        other.fit()


def test_settings_that_cannot_be_are_refused():
    for options in ({"save_every_steps": 0}, {"save_every_s": 1, "save_every_steps": 1}, {"save_every_s": 5.0}):
        with pytest.raises(InvalidArgumentError, match=r"above 0|exclude|checkpoint_dir"):
            tf.train.RunConfig(**options)


PROGRAM = """
import sys
sys.path.insert(0, {tests!r})
import test_trainer_checkpoints as tests
def on_step(record):
    print(record.step, flush=True)
tests.trainer({folder!r}, 100000, on_step=on_step, local=True).fit()
"""


def test_sigterm_saves_and_ends_the_process(tmp_path):
    program = PROGRAM.format(tests=str(Path(__file__).parent), folder=str(tmp_path))
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    for line in process.stdout:
        if int(line) == 20:
            process.send_signal(signal.SIGTERM)
            break
    last = int([20, *process.stdout.read().split()][-1])
    assert process.wait(30) == 143
    assert tf.train.latest_checkpoint(tmp_path) == f"{tmp_path}/model.ckpt-{last}"
    record = json.loads((tmp_path / "failures.json").read_text())
    assert record["finished"] and record["failures"] == 0


# -- the interval --------------------------------------------------------------------------------------


def lost_share(interval_s, cost_s, mtbf_s):
    """Expected overhead of a unit of work, for failures that come at random (Daly's equation 13)."""
    return mtbf_s / interval_s * (np.exp((interval_s + cost_s) / mtbf_s) - 1)


@pytest.mark.parametrize(("cost_s", "mtbf_s"), [(1, 3600), (10, 600), (0.01, 86400), (60, 600)])
def test_the_interval_loses_least(cost_s, mtbf_s):
    intervals = np.geomspace(cost_s / 10, 100 * mtbf_s, 20000)
    least = min(lost_share(intervals, cost_s, mtbf_s))
    assert lost_share(best_interval_s(cost_s, mtbf_s), cost_s, mtbf_s) < 1.002 * least


def test_the_interval_follows_costs_and_failures():
    failures = FailureRecord(86400)
    interval = AutomaticInterval(failures)
    first = interval.seconds
    for _ in range(20):
        interval.saved(10.0, 12.0)
    costly = interval.seconds
    assert costly > 3 * first
    failures.trained_s, failures.failures = 3600, 30
    assert interval.seconds < costly / 4
    interval.saved(0.001, 500.0)
    assert interval.seconds >= 500, "saves do not overlap"


def test_an_unclean_end_counts_as_a_failure(tmp_path):
    with pytest.raises(Interrupted):
        trainer(tmp_path, local=True, on_step=interrupt_at(3)).fit()
    trainer(tmp_path, local=True).fit()
    assert json.loads((tmp_path / "failures.json").read_text())["failures"] == 1


# -- on Ray --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def uninterrupted(_ray_of_the_session):
    """What training on two shards and two workers gives when nothing happens."""
    start_local_ray(_ray_of_the_session)
    with tf.Graph().as_default():
        return trainer(None, size=scaling(2, 2)).fit()


@pytest.mark.ray
@pytest.mark.parametrize(
    ("interruption", "at"),
    [
        ("error", 13),
        ("shard", 13),
        pytest.param("everything", 3, marks=pytest.mark.slow),  # before the first checkpoint
        pytest.param("shard", 3, marks=pytest.mark.slow),
        pytest.param("everything", 13, marks=pytest.mark.slow),
    ],
)
def test_a_cluster_run_that_is_resumed_equals_one_that_was_not(
    ray_local, uninterrupted, tmp_path, clusters, interruption, at
):
    size = scaling(2, 2)

    def on_step(record):
        if record.step == at and not (tmp_path / "struck").exists():
            (tmp_path / "struck").touch()
            if interruption == "error":
                raise Interrupted
            for task in range(2 if interruption == "everything" else 1):
                kill_actor(ray_local, clusters[-1], f"/job:ps/task:{task}/device:CPU:0")

    made = trainer(tmp_path / "run", size=size, save_every_steps=5, on_step=on_step)
    if interruption == "error":
        with pytest.raises(Interrupted):
            made.fit()
        resumed = made.fit()
        assert resumed.history[0].step == 11
    else:
        resumed = made.fit()
        assert [record.step for record in resumed.history] == list(range(1, STEPS + 1))
        assert json.loads((tmp_path / "run" / "failures.json").read_text())["failures"] >= 1
    assert_same(resumed, uninterrupted)


@pytest.mark.ray
def test_a_run_goes_on_with_other_numbers_of_actors(ray_local, tmp_path):
    data = tf.train.array_input(*classification_data(), batch_size=24, shuffle_seed=1)

    def fit(steps, size, **options):
        run = tf.train.RunConfig(steps, seed=3, checkpoint_dir=tmp_path, logdir=None, **options)
        return tf.train.Trainer(dense_model(OPTIMIZERS["adam"]), data, size, run).fit()

    fit(6, scaling(2, 2))
    fit(12, scaling(1, 3))
    last = fit(18, scaling(), local=True)
    whole = tf.train.RunConfig(18, local=True, seed=3, logdir=None)
    expected = tf.train.Trainer(dense_model(OPTIMIZERS["adam"]), data, scaling(), whole).fit()
    assert [record.step for record in last.history] == list(range(13, 19))
    for name, value in expected.variables.items():
        np.testing.assert_allclose(last.variables[name], value, rtol=1e-4, atol=1e-6, err_msg=name)


@pytest.mark.ray
def test_a_lost_shard_ends_training_without_checkpoints(ray_local, clusters):
    def on_step(record):
        if record.step == 3:
            kill_actor(ray_local, clusters[-1], "/job:ps/task:0/device:CPU:0")

    with pytest.raises(UnavailableError, match=r"/job:ps/task:0"):
        trainer(None, 200, on_step=on_step).fit()


@pytest.mark.ray
@pytest.mark.parametrize("interval", [{"save_every_steps": 7}, {"save_every_s": 0.05}])
def test_asynchronous_training_saves_between_steps(ray_local, tmp_path, interval):
    result = trainer(tmp_path, size=scaling(2, 1, mode="async"), keep_checkpoints=0, **interval).fit()
    assert result.steps == STEPS
    state = tf.train.get_checkpoint_state(tmp_path)
    for path in state.all_model_checkpoint_paths:
        assert tf.train.load_variable(path, "global_step") == int(path.rpartition("-")[2])
    assert len(state.all_model_checkpoint_paths) >= 2
    assert state.model_checkpoint_path.endswith(f"-{STEPS}")


RAY_PROGRAM = """
import sys
sys.path.insert(0, {tests!r})
import test_trainer_checkpoints as tests
def on_step(record):
    print(record.step, flush=True)
tests.trainer(
    {folder!r}, {steps}, tests.scaling(2, 1), on_step=on_step, address={address!r}, save_every_steps=10
).fit()
"""


@pytest.mark.ray
@pytest.mark.parametrize("with_signal", [pytest.param(signal.SIGTERM, marks=pytest.mark.slow), signal.SIGKILL])
def test_a_driver_that_dies_is_started_again(ray_local, tmp_path, with_signal):
    address = ray_local.get_runtime_context().gcs_address
    settings = {"tests": str(Path(__file__).parent), "folder": str(tmp_path), "address": address}
    program = RAY_PROGRAM.format(steps=10**6, **settings)
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    for line in process.stdout:
        if int(line) == 35:
            process.send_signal(with_signal)
            break
    last = int([35, *process.stdout.read().split()][-1])
    assert process.wait(60) == (143 if with_signal == signal.SIGTERM else -9)
    newest = int(tf.train.latest_checkpoint(tmp_path).rpartition("-")[2])
    assert newest == last if with_signal == signal.SIGTERM else newest in (last // 10 * 10, last // 10 * 10 - 10)
    program = RAY_PROGRAM.format(steps=newest + 4, **settings)
    again = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100)
    assert again.returncode == 0, again.stderr
    assert again.stdout.split() == [str(newest + i) for i in range(1, 5)]
