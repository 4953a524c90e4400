"""What a trainer tells TensorBoard, and the command that shows it."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

import tfray as tf
from tests.support.event_reading import events_in, tensorboard_view
from tests.support.processes import PATIENCE_S
from tests.support.training_models import OPTIMIZERS, classification_data, dense_model, scaling
from tfray import cli
from tfray.training.trainer import run_log
from tfray.training.trainer.run_log import RunLog, run_folder
from tfray.training.trainer.step_history import StepRecord


def trainer(scale=None, **run):
    return tf.train.Trainer(
        dense_model(OPTIMIZERS["sgd"]),
        tf.train.array_input(*classification_data(), batch_size=24, shuffle_seed=4),
        scale,
        tf.train.RunConfig(steps=12, local=scale is None, **run),
    )


def check_log(folder, result, steps):
    view = tensorboard_view(folder)
    losses = view.Scalars("loss")
    assert losses[0].step == 1 and losses[-1].step == steps
    recorded = {record.step: record.metrics["loss"] for record in result.history}
    for event in losses:
        assert event.value == pytest.approx(recorded[event.step], rel=1e-6)
    assert view.Scalars("global_step/sec")[-1].value > 0
    assert view.Scalars("replicas/live")[-1].value == result.history[-1].live
    assert view.Scalars("replicas/dropped")[-1].value == result.dropped
    assert len(view.Graph().node) > 10


def test_a_trainer_logs_in_one_process(tmp_path):
    result = trainer(logdir=tmp_path / "log").fit()
    assert result.logdir == str(tmp_path / "log")
    check_log(tmp_path / "log", result, 12)


@pytest.mark.ray
@pytest.mark.slow
def test_a_trainer_logs_on_ray(tmp_path, ray_local):
    result = trainer(scaling(workers=2), logdir=str(tmp_path)).fit()
    check_log(tmp_path, result, 12)


def model_with_summaries(features, labels):
    """Summaries of the batch, of a gradient, of random numbers and of variables, and some that only training has."""
    with tf.variable_scope("layer"):
        weights = tf.get_variable("w", [8, 3], initializer=tf.random_normal_initializer(seed=1))
    unused = tf.get_variable("unused", [7], initializer=tf.ones_initializer())
    hidden = tf.nn.dropout(tf.matmul(features, weights), rate=0.1)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=hidden)
    loss = tf.reduce_mean(losses)
    step = tf.train.get_or_create_global_step()
    rate = tf.train.exponential_decay(0.1, step, 4, 0.5, staircase=True)
    optimizer = tf.train.GradientDescentOptimizer(rate)
    pairs = optimizer.compute_gradients(loss, [weights])
    tf.summary.scalar("twice", 2 * loss)
    tf.summary.histogram("losses", losses)
    tf.summary.histogram("gradient", pairs[0][0])
    tf.summary.scalar("rate", rate)
    tf.summary.histogram("weights", weights)
    tf.summary.histogram("untrained", unused)
    tf.summary.image("picture", tf.random_uniform([1, 4, 4, 1]) * tf.reduce_mean(features), max_outputs=1)
    _, mean = tf.metrics.mean(losses)
    tf.summary.scalar("average", mean)
    return tf.train.ModelSpec(loss, optimizer.apply_gradients(pairs, step))


def check_summaries(folder, result, steps, tags, within=0):
    found = {}
    for event in events_in(folder):
        for value in event.summary.value:
            found.setdefault(value.tag, {})[event.step] = value
    assert tags <= set(found)
    for tag in tags:
        assert list(found[tag]) == list(found["twice"]), tag
    logged = list(found["twice"])
    assert len(logged) == len(steps) and np.abs(np.subtract(logged, steps)).max() <= within
    for step in logged:
        expected = next(2 * record.metrics["loss"] for record in result.history if record.step == step)
        assert found["twice"][step].simple_value == pytest.approx(expected, rel=0.5)
        assert found["gradient"][step].histo.num == 24 and found["untrained"][step].histo.sum == 7
    rates = [found["rate"][step].simple_value for step in logged]
    assert rates[0] == pytest.approx(0.1) and rates == sorted(rates, reverse=True) and rates[-1] < 0.03
    assert found["weights"][logged[0]].histo.sum != found["weights"][logged[-1]].histo.sum
    assert not any(record.summary for record in result.history)


SUMMARIES = {"twice", "losses", "gradient", "rate", "weights", "untrained", "picture/image"}


def summarized(folder, scale=None, **run):
    data = tf.train.array_input(*classification_data(), batch_size=24, shuffle_seed=4)
    config = tf.train.RunConfig(steps=12, local=scale is None, logdir=str(folder), summary_steps=5, **run)
    return tf.train.Trainer(model_with_summaries, data, scale, config)


def test_a_trainer_logs_the_models_summaries(tmp_path):
    result = summarized(tmp_path).fit()
    check_summaries(tmp_path, result, [1, 5, 10], SUMMARIES | {"average"})


@pytest.mark.ray
@pytest.mark.parametrize("mode", ["sync", pytest.param("async", marks=pytest.mark.slow)])
def test_a_trainer_logs_the_models_summaries_on_ray(tmp_path, ray_local, caplog, mode):
    trained = summarized(tmp_path, scaling(1, 2, mode=mode))
    # Asynchronous steps do not end in the order in which they began.
    within = 3 if mode == "async" else 0
    check_summaries(tmp_path, trained.fit(), [1, 5, 10], SUMMARIES, within)
    assert [record.message for record in caplog.records if "average" in record.message] != []


def test_summaries_change_nothing_of_training(tmp_path):
    with_them, without = summarized(tmp_path / "a", seed=3).fit(), summarized(tmp_path / "b", seed=3)
    without.run = replace(without.run, summary_steps=None)
    for name, value in without.fit().variables.items():
        assert (with_them.variables[name] == value).all()
    assert not any(value.tag == "twice" for event in events_in(tmp_path / "b") for value in event.summary.value)


def test_folders_of_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(run_log.FOLDER_VARIABLE)
    first = run_folder("")
    assert first.startswith("runs/2")
    assert run_folder("") != first
    assert run_folder(None) is None
    assert run_folder("mine") == "mine"
    monkeypatch.setenv(run_log.FOLDER_VARIABLE, "elsewhere/")
    assert run_folder("").startswith("elsewhere/2")
    monkeypatch.setenv(run_log.FOLDER_VARIABLE, "")
    assert run_folder("") is None
    assert run_folder("mine") == "mine"
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(run_log.FOLDER_VARIABLE, "file")
    assert run_folder("") is None  # it cannot be made: training goes on without


def test_a_run_without_a_folder_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(run_log.FOLDER_VARIABLE)
    assert trainer(logdir=None).fit().logdir is None
    assert list(tmp_path.iterdir()) == []
    logdir = trainer().fit().logdir
    assert list((tmp_path / logdir).iterdir()) != []


def test_fast_steps_are_not_all_written(tmp_path):
    with RunLog(str(tmp_path), tf.Graph()) as log:
        for step in range(1, 2001):
            log.observe(StepRecord(step, {"loss": 1 / step}, 1e-6))
    steps = [event.step for event in events_in(tmp_path) if event.HasField("summary")]
    assert steps[0] == 1 and steps[-1] == 2000
    assert len(steps) < 100


def test_a_run_that_fails_leaves_its_last_step(tmp_path):
    def stop(record):
        if record.step == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trainer(logdir=str(tmp_path), on_step=stop).fit()
    assert [event.step for event in events_in(tmp_path) if event.HasField("summary")][-1] == 7


def test_the_command_line_names_the_folder(tmp_path):
    program = "from tests.training.trainer.test_run_log import trainer; from tfray.cli import train; train(trainer)"
    code = f"import sys; {program}"
    arguments = ["--local", "--no-progress", "--steps", "3", "--logdir", str(tmp_path / "log")]
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    assert f"tfray board {tmp_path / 'log'}" in done.stdout
    assert len(events_in(tmp_path / "log")) > 2


def test_board_says_what_is_missing(tmp_path, monkeypatch):
    def run(*arguments):
        return CliRunner().invoke(cli.main, ["board", *arguments], standalone_mode=True)

    nowhere = run(str(tmp_path / "none"))
    assert nowhere.exit_code == 2 and "there is no folder" in nowhere.output
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    absent = run(str(tmp_path))
    assert absent.exit_code == 2 and "pip install 'tfray[tensorboard]'" in absent.output


def test_board_starts_tensorboard(tmp_path, monkeypatch):
    pytest.importorskip("tensorboard")
    started = []
    monkeypatch.setattr(os, "execv", lambda program, arguments: started.append(arguments))
    result = CliRunner().invoke(cli.main, ["board", str(tmp_path), "--port", "0", "--reload_interval", "5"])
    assert result.exit_code == 0, result.output
    (arguments,) = started
    assert arguments[1:] == [
        *("-m", "tensorboard.main", "--logdir", str(tmp_path), "--host", "localhost", "--port", "0"),
        *("--reload_interval", "5"),
    ]


def test_settings_survive_being_replaced():
    assert replace(tf.train.RunConfig(logdir="a"), steps=3).logdir == "a"
