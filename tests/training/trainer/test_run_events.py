"""What happens in a run beside its steps is said at once, logged, counted, and may end the run."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import pytest

import tfray as tf
from tests.support.elastic_runs import paced
from tests.support.event_reading import events_in
from tests.support.processes import PATIENCE_S, Barrier, kill_actor, wait_for
from tests.support.training_models import OPTIMIZERS, classification_data, dense_model, scaling, short_input
from tfray.errors import DataLossError
from tfray.library.platform.logging import _get_logger
from tfray.training.trainer.run_events import RunEvent
from tfray.training.trainer.run_statistics import RunStatistics

ray = pytest.mark.ray
ROOT = Path(__file__).resolve().parent.parent.parent.parent


@pytest.fixture
def lines(caplog):
    """The lines that a run has logged so far."""
    _get_logger()
    caplog.set_level(logging.WARNING, "tfray")
    return lambda: [record.getMessage() for record in caplog.records if record.name == "tfray"]


def trainer(scale, input_fn=None, steps=12, **options):
    input_fn = input_fn or tf.train.array_input(*classification_data(), batch_size=24)
    run = tf.train.RunConfig(steps, seed=1, **options)
    return tf.train.Trainer(dense_model(OPTIMIZERS["sgd"]), input_fn, scale, run)


def unequal(steps=5, replica=1):
    return short_input(tf.train.array_input(*classification_data(), batch_size=24), replica, steps)


def kinds(result):
    return [event.kind for event in result.events]


# -- inputs that end -------------------------------------------------------------------------------------


@pytest.mark.fault(
    "Input",
    "The input of one replica ends before that of the others.",
    happens="A warning at once, and an entry in `Result.statistics`. With `on_lost_data='stop'` the run ends.",
    promise="No part of the data is left out in silence.",
)
@ray
def test_a_replica_whose_input_ends_first_is_told_at_once_logged_and_counted(ray_local, lines, tmp_path):
    told = []
    result = trainer(scaling(3), unequal(), on_step=lambda record: told.append(len(lines())), logdir=tmp_path).fit()
    assert result.steps == 12 and kinds(result) == ["lost data"]
    assert result.statistics.lost_data == {1: 6}
    (line,) = lines()
    assert "the input of replica 1 (/job:worker/task:1/device:CPU:0) ended before step 6" in line
    assert "without 1 of 3 shares of the data" in line
    assert told.index(1) + 1 <= 8, "it is said while training goes on"
    (path,) = tmp_path.glob("*tfevents*")
    logged = [event for event in tf.train.summary_iterator(path) if event.WhichOneof("what") == "log_message"]
    assert [(event.step, event.log_message.message) for event in logged] == [(6, line)]


@pytest.mark.slow
@pytest.mark.fault(
    "Input",
    "The input of one replica ends before that of the others.",
    happens="A warning at once, and an entry in `Result.statistics`. With `on_lost_data='stop'` the run ends.",
    promise="No part of the data is left out in silence.",
)
@ray
@pytest.mark.parametrize("has_folder", [True, pytest.param(False)])
def test_a_run_may_stop_when_data_is_lost_and_leaves_a_checkpoint(ray_local, tmp_path, has_folder):
    folder = tmp_path if has_folder else None
    made = trainer(scaling(3), unequal(), steps=1000, on_lost_data="stop", checkpoint_dir=folder)
    where = str(tmp_path) if has_folder else "there is no checkpoint"
    with pytest.raises(DataLossError, match=f"replica 1 .*before step 6, .* 1 of 3 shares .*{where}"):
        made.fit()
    if has_folder:
        assert 6 <= tf.train.load_variable(tf.train.latest_checkpoint(tmp_path), "global_step") <= 8


@pytest.mark.slow
@ray
@pytest.mark.parametrize(
    ("scale", "input_fn"),
    [
        pytest.param(
            scaling(3),
            tf.train.array_input(*classification_data(), batch_size=24, epochs=1),
            marks=pytest.mark.slow,
        ),
        (scaling((2, 3)), tf.train.array_input(*classification_data(), batch_size=24, epochs=1)),
        pytest.param(scaling(2, mode="async"), unequal(replica=0, steps=3)),
    ],
    ids=["sync", "elastic", "async"],
)
def test_inputs_that_end_as_they_should_lose_nothing(ray_local, lines, scale, input_fn):
    wanted = 12 if scale.mode == "async" else 1000
    result = trainer(scale, input_fn, steps=wanted, on_lost_data="stop").fit()
    assert result.statistics.lost_data == {}
    if scale.mode == "sync":
        assert kinds(result) == ["early end"]
        assert lines() == ["training has ended after 10 of 1000 steps: its input has no more"]
    else:
        assert result.steps == 12 and kinds(result) == []


@pytest.mark.fault(
    "Input",
    "The input ends before the run does.",
    happens="One line says after how many steps.",
    promise="An early end is told.",
)
@pytest.mark.parametrize("options", [{}, {"accumulate": 3}], ids=str)
def test_a_local_run_says_that_its_input_has_ended(lines, options):
    input_fn = tf.train.array_input(*classification_data(), batch_size=24, epochs=1)
    result = trainer(None, input_fn, local=True, **options).fit()
    assert kinds(result) == ["early end"] and result.events[0].step == result.steps < 12
    assert lines() == [f"training has ended after {result.steps} of 12 steps: its input has no more"]


@pytest.mark.fault(
    "Drivers and checkpoints",
    "A run is resumed and has nothing left to do.",
    happens="One line says so, with the number of steps and how to begin anew.",
    promise="It is not mistaken for training.",
)
@ray
@pytest.mark.parametrize("local", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_resumed_run_without_anything_left_to_do_says_so(ray_local, lines, tmp_path, local):
    for _ in range(2):
        result = trainer(scaling(), steps=3, local=local, checkpoint_dir=tmp_path).fit()
    assert result.steps == 0 and kinds(result) == ["nothing to do"]
    (line,) = lines()
    assert "nothing was left to do" in line and "3 steps" in line and "resume=False" in line


# -- deaths ----------------------------------------------------------------------------------------------


def killing(ray_local, clusters, device, at=3):
    """An `on_step` that kills the actor of a device, once."""
    killed = []

    def on_step(record):
        if record.step == at and not killed:
            killed.append(device)
            kill_actor(ray_local, clusters[-1], device)

    return on_step


@pytest.mark.slow
@pytest.mark.fault(
    "Workers and parameter servers",
    "A worker dies and is not replaced, and others train on.",
    happens="A warning at once, and an entry in `Result.statistics`. With `on_lost_data='stop'` the run ends.",
    promise="No part of the data is left out in silence.",
)
@ray
@pytest.mark.parametrize("mode", ["sync", pytest.param("async")])
def test_a_worker_that_is_not_replaced_loses_its_share(ray_local, lines, clusters, mode):
    strike = killing(ray_local, clusters, "/job:worker/task:1/device:CPU:0")
    result = trainer(scaling(3, mode=mode), steps=60, max_worker_restarts=0, on_step=strike).fit()
    assert result.steps == 60 and kinds(result) == ["lost data"]
    (step,) = result.statistics.lost_data.values()
    assert 3 <= step < 60
    assert f"died in step {step} and is not replaced, after 0 restarts" in lines()[0]


@pytest.mark.fault(
    "Workers and parameter servers",
    "A worker dies and is not replaced, and others train on.",
    happens="A warning at once, and an entry in `Result.statistics`. With `on_lost_data='stop'` the run ends.",
    promise="No part of the data is left out in silence.",
)
@ray
@pytest.mark.slow
def test_a_run_may_stop_when_a_worker_is_not_replaced(ray_local, clusters, tmp_path):
    strike = killing(ray_local, clusters, "/job:worker/task:1/device:CPU:0")
    options = {"max_worker_restarts": 0, "on_lost_data": "stop", "checkpoint_dir": tmp_path}
    with pytest.raises(DataLossError, match=r"worker of replica 1 \(/job:worker/task:1/device:CPU:0\) died in step"):
        trainer(scaling(3), steps=1_000_000, on_step=strike, **options).fit()
    assert tf.train.latest_checkpoint(tmp_path) is not None


@pytest.mark.fault(
    "Workers and parameter servers",
    "A worker dies.",
    happens="The step goes on with the gradients of the others. Ray is asked for a replacement.",
    promise="Every step is done once.",
)
@pytest.mark.fault(
    "Workers and parameter servers",
    "A parameter server dies in a run with checkpoints.",
    happens="The run goes back to its newest checkpoint. One line tells of it.",
    promise="The result equals that of a run in which nothing happened.",
)
@ray
def test_replacements_and_rollbacks_are_told_and_counted(ray_local, lines, clusters, tmp_path):
    worker = killing(ray_local, clusters, "/job:worker/task:1/device:CPU:0", at=3)
    shard = killing(ray_local, clusters, "/job:ps/task:0/device:CPU:0", at=12)

    def on_step(record):
        worker(record)
        if record.step == 12:  # checkpoints are written while steps go on: on a busy machine this one comes later
            wait_for(lambda: str(tf.train.latest_checkpoint(tmp_path)).endswith("-10"))
        shard(record)

    result = trainer(
        scaling(2), steps=20, on_step=on_step, on_lost_data="stop", checkpoint_dir=tmp_path, save_every_steps=5
    ).fit()
    assert [record.step for record in result.history] == list(range(1, 21))
    assert kinds(result) == ["replacement", "rollback"]
    assert (result.statistics.replacements, result.statistics.rollbacks) == (1, 1)
    replaced, rolled_back = lines()
    assert "the worker of replica 1 (/job:worker/task:1/device:CPU:0) died in step" in replaced
    assert "/job:ps/task:0" in rolled_back and "training goes back to the checkpoint of step 10" in rolled_back


# -- each kind: one line on the terminal, the same one in the log -----------------------------------------

WORKER, SHARD = "/job:worker/task:1/device:CPU:0", "/job:ps/task:0/device:CPU:0"


class Moments(tf.train.Callback):
    """Kills actors in the 12th step, and asks for more parameter servers when the run starts."""

    def __init__(self, ray_local, clusters, folder, dies=None, shards=None):
        self.ray, self.clusters, self.folder, self.dies, self.shards = ray_local, clusters, folder, dies, shards
        self.barrier = Barrier(folder)

    def on_start(self, start):
        if self.shards:
            start.scale(self.shards)

    def on_step(self, record):
        if record.step == 12 and self.dies:
            device, self.dies = self.dies, None
            if (self.folder / "saved").exists():
                wait_for(lambda: str(tf.train.latest_checkpoint(self.folder / "saved")).endswith("-10"))
            kill_actor(self.ray, self.clusters[-1], device)
        if not self.shards or len(self.clusters[-1].tasks_of("ps")) == self.shards:
            self.barrier.reach("fast")


def eventful(tmp_path, ray_local, clusters, size=None, input_fn=None, resumed=False, moments=None, **options):
    """A run in which something happens; of its input each batch takes long until it has."""
    input_fn = input_fn or tf.train.array_input(*classification_data(), batch_size=24)
    if moments is not None:
        callback = Moments(ray_local, clusters, tmp_path, **moments)
        input_fn = paced(input_fn, callback.barrier, 100, 2.0)
        options |= {"steps": 100, "callbacks": [callback]}
    if resumed:
        options |= {"steps": 3, "checkpoint_dir": tmp_path / "saved"}
        trainer(size, input_fn, logdir=None, **options).fit()
    if options.pop("saves", False):
        options |= {"save_every_steps": 10, "checkpoint_dir": tmp_path / "saved"}
    return trainer(size, input_fn, logdir=tmp_path / "log", **options).fit()


ONE_PASS = tf.train.array_input(*classification_data(), batch_size=24, epochs=1)
ELSEWHERE = [ray, pytest.mark.slow]
EVENTFUL = [
    pytest.param("early end", {"local": True, "input_fn": ONE_PASS}, id="early end"),
    pytest.param("nothing to do", {"local": True, "resumed": True}, id="nothing to do"),
    pytest.param("early end", {"size": scaling(), "input_fn": ONE_PASS}, id="early end on Ray", marks=ELSEWHERE),
    pytest.param("nothing to do", {"size": scaling(), "resumed": True}, id="nothing to do on Ray", marks=ELSEWHERE),
    pytest.param("replacement", {"size": scaling(2), "moments": {"dies": WORKER}}, id="replacement", marks=ray),
    pytest.param("rollback", {"size": scaling(2), "moments": {"dies": SHARD}, "saves": True}, id="rollback", marks=ray),
    pytest.param("lost data", {"size": scaling(3), "input_fn": unequal()}, id="lost data", marks=ELSEWHERE),
    pytest.param("scaling", {"size": scaling(), "moments": {"shards": 2}}, id="scaling", marks=ELSEWHERE),
    pytest.param(
        "standby",
        {"size": scaling(1, 1, replicated_shards=True), "moments": {"dies": SHARD}},
        id="standby",
        marks=ELSEWHERE,
    ),
]


@pytest.mark.parametrize(("kind", "options"), EVENTFUL)
def test_each_event_is_one_line_on_the_terminal_and_in_the_log(request, lines, tmp_path, kind, options):
    fixtures = ("ray_local", "clusters") if "size" in options else ()
    on_ray = [request.getfixturevalue(name) for name in fixtures] or [None, None]
    result = eventful(tmp_path, *on_ray, **options)
    assert set(kinds(result)) == {kind}
    told = [event.message for event in result.events]
    assert all("\n" not in message and len(message) < 300 for message in told)
    assert [line for line in lines() if line in told] == told
    logged = [event for event in events_in(tmp_path / "log") if event.WhichOneof("what") == "log_message"]
    happened = [(event.step, event.message) for event in result.events]
    assert [(event.step, event.log_message.message) for event in logged] == happened


PROGRAM = """
import sys
import tfray as tf
from tests.training.trainer.test_run_events import ONE_PASS, trainer
sys.exit(trainer(None, ONE_PASS, local=True, logdir=None).fit().steps)
"""


def test_the_line_reaches_the_terminal():
    """In a process of its own: pytest takes what goes to a logger."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S)
    (line,) = [line for line in done.stderr.splitlines() if "training has ended" in line]
    assert line.endswith(f"training has ended after {done.returncode} of 12 steps: its input has no more")


# -- what is counted -------------------------------------------------------------------------------------


def test_a_rollback_brings_lost_data_back():
    lost = [RunEvent("lost data", step, "", replica) for step, replica in ((5, 1), (9, 0))]
    back = RunEvent("rollback", 4, "")
    assert RunStatistics.of([], lost).lost_data == {1: 5, 0: 9}
    assert RunStatistics.of([], [*lost, back]).lost_data == {}
    assert RunStatistics.of([], [lost[0], back, lost[1]]).lost_data == {0: 9}
