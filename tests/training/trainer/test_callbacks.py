"""Callbacks hear of a run in its order, end it when they fail, and find its results where Ray's users look for them."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import tfray as tf
from tests.support.processes import kill_actor
from tests.support.training_models import OPTIMIZERS, classification_data, dense_model, scaling
from tfray.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError, UnknownError


def trainer(scale=None, steps=6, **run):
    return tf.train.Trainer(
        dense_model(OPTIMIZERS["sgd"]),
        tf.train.array_input(*classification_data(), batch_size=24, shuffle_seed=4),
        scale,
        tf.train.RunConfig(steps, local=scale is None, seed=3, **{"logdir": None, **run}),
    )


class Hearing(tf.train.Callback):
    """Notes what it is told; raises `error` at an event."""

    def __init__(self, at=None, error=None):
        self.heard, self.at, self.error = [], at, error

    def note(self, event, what):
        self.heard.append((event, what))
        if event == self.at:
            raise self.error

    def on_start(self, start):
        self.note("on_start", start)

    def on_step(self, record):
        self.note("on_step", record.step)

    def on_checkpoint(self, checkpoint):
        self.note("on_checkpoint", checkpoint)

    def on_worker_lost(self, event):
        self.note("on_worker_lost", event)

    def on_end(self, result, error):
        self.note("on_end", (result, error))

    @property
    def events(self):
        return [event for event, _ in self.heard]


RAY = [None, pytest.param({"workers": 2}, marks=pytest.mark.ray)]
"""In this process, and on Ray."""


@pytest.fixture(params=RAY, ids=["local", "ray"])
def scale(request):
    if request.param is None:
        return None
    request.getfixturevalue("ray_local")
    return scaling(**request.param)


def test_a_callback_hears_of_everything_in_order(scale, tmp_path):
    hearing = Hearing()
    saved = {"checkpoint_dir": tmp_path / "a", "save_every_steps": 2, "asynchronous_checkpoints": False}
    result = trainer(scale, callbacks=[hearing], **saved).fit()
    at = [f"{event} {getattr(what, 'step', what)}" for event, what in hearing.heard[1:-1]]
    steps = [f"on_step {step}" for step in range(1, 7)]
    expected = [*steps[:2], "on_checkpoint 2", *steps[2:4], "on_checkpoint 4", *steps[4:], "on_checkpoint 6"]
    assert at == expected
    assert hearing.heard[0] == ("on_start", tf.train.RunStart(0, 6))
    assert hearing.heard[-1][1][0] is result and hearing.heard[-1][1][1] is None
    newest = tf.train.SavedCheckpoint(f"{tmp_path}/a/model.ckpt-6", 6)
    assert result.checkpoint == newest and tf.train.latest_checkpoint(str(tmp_path / "a")) == newest.path
    again = Hearing()
    resumed = trainer(scale, 8, callbacks=[again], **saved).fit()
    assert again.heard[0] == ("on_start", tf.train.RunStart(6, 8, newest))
    assert again.heard[1] == ("on_step", 7) and resumed.checkpoint.step == 8


def test_a_checkpoint_in_the_background_is_told_when_it_is_complete(tmp_path):
    there = []

    class Looking(tf.train.Callback):
        def on_checkpoint(self, checkpoint):
            there.append(checkpoint.step)
            assert tf.train.load_checkpoint(checkpoint.path).get_tensor("global_step") == checkpoint.step

    result = trainer(steps=30, callbacks=[Looking()], checkpoint_dir=tmp_path, save_every_steps=10).fit()
    assert there == [10, 20, 30] and result.checkpoint.step == 30


@pytest.mark.parametrize("event", ["on_start", "on_step", "on_checkpoint"])
def test_a_callback_that_fails_ends_the_run(event, tmp_path):
    first, second = Hearing(), Hearing(event, ValueError("enough"))
    with pytest.raises(
        UnknownError, match=rf"the callback Hearing failed in {event} for step .*ValueError: enough"
    ) as e:
        trainer(callbacks=[first, second], checkpoint_dir=tmp_path, save_every_steps=3).fit()
    assert isinstance(e.value.__cause__, ValueError)
    for each in (first, second):
        assert each.events[-1] == "on_end" and each.heard[-1][1] == (None, e.value)
        assert each.events.count(event) == 1


def test_a_callback_that_fails_at_the_end():
    first, second = Hearing("on_end", ValueError("first")), Hearing("on_end", ValueError("second"))
    with pytest.raises(UnknownError, match="the callback Hearing failed in on_end: ValueError: first"):
        trainer(callbacks=[first, second]).fit()
    assert second.events[-1] == "on_end"
    with pytest.raises(UnknownError, match="on_step"):  # what ended the run is what is raised
        trainer(callbacks=[first, Hearing("on_step", ValueError("earlier"))]).fit()


def test_an_exit_in_a_callback_is_an_exit():
    hearing = Hearing("on_step", SystemExit(3))
    with pytest.raises(SystemExit) as exit:
        trainer(callbacks=[hearing]).fit()
    assert hearing.events == ["on_start", "on_step", "on_end"] and hearing.heard[-1][1] == (None, exit.value)


def test_the_end_is_told_only_of_what_has_begun():
    hearing = Hearing()
    with pytest.raises(InvalidArgumentError, match="no batch"):
        tf.train.Trainer(
            lambda x, y: None, lambda context: [], run=tf.train.RunConfig(local=True, callbacks=[hearing])
        ).fit()
    assert hearing.heard == []


@pytest.mark.ray
@pytest.mark.parametrize("mode", ["sync", pytest.param("async", marks=pytest.mark.slow)])
def test_the_loss_of_a_worker_is_told(ray_local, clusters, mode):
    class Striking(Hearing):
        def on_step(self, record):
            super().on_step(record)
            if record.step == 5:
                kill_actor(ray_local, clusters[-1], "/job:worker/task:1/device:CPU:0")

    hearing = Striking()
    result = trainer(scaling(2, mode=mode), steps=1000, callbacks=[hearing, Hearing("on_worker_lost", OSError("no"))])
    with pytest.raises(UnknownError, match=r"the callback Hearing failed in on_worker_lost for step .*OSError: no"):
        result.fit()
    (lost,) = [what for event, what in hearing.heard if event == "on_worker_lost"]
    assert (lost.kind, lost.replica, lost.device) == ("replacement", 1, "/job:worker/task:1/device:CPU:0")
    assert "the worker of replica 1" in lost.message and hearing.events[-1] == "on_end"


# -- where things are ----------------------------------------------------------------------------------


def test_the_history_as_a_data_frame(monkeypatch):
    pytest.importorskip("pandas")
    result = trainer().fit()
    frame = result.metrics_dataframe
    assert list(frame.index) == [1, 2, 3, 4, 5, 6] and frame.index.name == "step"
    assert list(frame.columns) == ["loss", "accuracy", "duration_s", "live", "dropped", "staleness"]
    np.testing.assert_array_equal(frame["loss"], [record.metrics["loss"] for record in result.history])
    assert frame.loc[4, "duration_s"] == result.history[3].duration_s
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(NotFoundError, match="needs pandas: pip install pandas"):
        result.metrics_dataframe  # noqa: B018


def test_a_run_without_checkpoints_has_none():
    assert trainer().fit().checkpoint is None


def test_a_run_with_a_storage_path_goes_on_by_its_name(tmp_path):
    run = {"storage_path": tmp_path, "name": "line", "logdir": ""}
    first = trainer(**run).fit()
    assert first.checkpoint.path == f"{tmp_path}/line/checkpoints/model.ckpt-6"
    assert first.logdir == f"{tmp_path}/line/logs"
    (events,) = (tmp_path / "line" / "logs").iterdir()
    assert events.name.startswith("events.")
    assert trainer(steps=9, **run).fit().steps == 3
    assert trainer(steps=9, **run | {"name": "other"}).fit().steps == 9
    assert trainer(**run | {"logdir": None}).fit().logdir is None


def test_a_run_without_a_name_has_one_of_its_own(tmp_path):
    one, other = (tf.train.RunConfig(storage_path=tmp_path) for _ in range(2))
    assert one.name != other.name and one.checkpoint_folder == f"{tmp_path}/{one.name}/checkpoints"
    assert tf.train.RunConfig().name is None and tf.train.RunConfig().checkpoint_folder is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"storage_path": "a", "checkpoint_dir": "b"}, "'a' and checkpoint_dir='b' both say where"),
        ({"storage_path": "a", "logdir": "b"}, "'a' and logdir='b' both say where"),
        ({"storage_path": "a", "name": "b/c"}, "the name of a run is that of a folder, without '/' and spaces: 'b/c'"),
        ({"storage_path": " "}, "storage_path is an empty path"),
        ({"callbacks": [len]}, "callbacks"),
        ({"callbacks": tf.train.Callback()}, "callbacks"),
    ],
)
def test_what_contradicts_itself_is_refused(options, message):
    with pytest.raises(InvalidArgumentError, match=message):
        tf.train.RunConfig(**options)


def test_two_runs_of_one_name_do_not_save_at_a_time(tmp_path):
    run = {"storage_path": tmp_path, "name": "line"}
    with pytest.raises(UnknownError, match="on_start") as failure:

        class Again(tf.train.Callback):
            def on_start(self, start):
                trainer(**run).fit()

        trainer(callbacks=[Again()], **run).fit()
    assert isinstance(failure.value.__cause__, FailedPreconditionError)
