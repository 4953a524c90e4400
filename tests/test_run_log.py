"""What a trainer tells TensorBoard, and the command that shows it."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest
from click.testing import CliRunner
from test_event_files import events_in, tensorboard_view
from training_models import OPTIMIZERS, classification_data, dense_model, scaling

import tfray as tf
from tfray import cli
from tfray.training import run_log
from tfray.training.run_log import RunLog, run_folder
from tfray.training.trainer import StepRecord


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
def test_a_trainer_logs_on_ray(tmp_path, ray_local):
    result = trainer(scaling(workers=2), logdir=str(tmp_path)).fit()
    check_log(tmp_path, result, 12)


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
    code = "import sys; from tests.test_run_log import trainer; from tfray.cli import train; train(trainer)"
    arguments = ["--local", "--no-progress", "--steps", "3", "--logdir", str(tmp_path / "log")]
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert f"tfray board {tmp_path / 'log'}" in done.stdout
    assert len(events_in(tmp_path / "log")) > 2


def test_board_says_what_is_missing(tmp_path, monkeypatch):
    def run(*arguments):
        return CliRunner().invoke(cli.main, ["board", *arguments], standalone_mode=True)

    nowhere = run(str(tmp_path / "none"))
    assert nowhere.exit_code == 2 and "there is no folder" in nowhere.output
    monkeypatch.setattr(cli.importlib.util, "find_spec", lambda name: None)
    absent = run(str(tmp_path))
    assert absent.exit_code == 2 and "pip install 'tfray[tensorboard]'" in absent.output


def test_board_starts_tensorboard(tmp_path, monkeypatch):
    pytest.importorskip("tensorboard")
    started = []
    monkeypatch.setattr(cli.os, "execv", lambda program, arguments: started.append(arguments))
    result = CliRunner().invoke(cli.main, ["board", str(tmp_path), "--port", "0", "--reload_interval", "5"])
    assert result.exit_code == 0, result.output
    (arguments,) = started
    assert arguments[1:] == [
        *("-m", "tensorboard.main", "--logdir", str(tmp_path), "--host", "localhost", "--port", "0"),
        *("--reload_interval", "5"),
    ]


def test_settings_survive_being_replaced():
    assert replace(tf.train.RunConfig(logdir="a"), steps=3).logdir == "a"
