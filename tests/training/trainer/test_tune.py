"""A Trainer as the body of Ray Tune's trials: what is reported, where it goes on, and what a stop leaves behind."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import tfray as tf
from tests.support.processes import wait_for
from tests.support.training_models import OPTIMIZERS, classification_data, dense_model
from tfray.actors.clusters import ray_runtime
from tfray.errors import InvalidArgumentError, NotFoundError
from tfray.training.trainer.tune import StepReports

tune = pytest.importorskip("ray.tune")

SCALING = tf.train.ScalingConfig(workers=2, cpus_per_worker=0.5, cpus_per_parameter_server=0.25)


class FailingOnce(tf.train.Callback):
    """Fails in step 5, unless it has done so already: then the file is there."""

    def __init__(self, path):
        self.path = Path(path)

    def on_step(self, record):
        if record.step == 5 and not self.path.exists():
            self.path.touch()
            raise ValueError("the first life ends")


def build(config):
    """The trainer of a trial of `config["steps"]` steps."""
    batches = tf.train.array_input(*classification_data(), batch_size=24, shuffle_seed=4)
    callbacks = [FailingOnce(config["fails"])] if "fails" in config else []
    run = tf.train.RunConfig(
        config["steps"], seed=3, local=config.get("local", False), logdir=None, callbacks=callbacks
    )
    return tf.train.Trainer(dense_model(OPTIMIZERS["sgd"]), batches, run=run)


# -- room ------------------------------------------------------------------------------------------------


def test_the_room_of_a_trial():
    factory = tf.tune.placement_group_factory(SCALING)
    assert factory.bundles == [{"CPU": 0.25}, {"CPU": 0.5}, {"CPU": 0.5}]
    assert factory.head_bundle_is_empty and factory.strategy == "PACK"
    spread = tf.train.ScalingConfig(
        workers=(1, 2), parameter_servers=2, worker_resources={"fast": 1}, scheduling_strategy="SPREAD"
    )
    factory = tf.tune.placement_group_factory(spread, driver_cpus=1)
    worker = {"CPU": 1, "fast": 1}
    assert factory.bundles == [{"CPU": 1}, {"CPU": 0.5}, {"CPU": 0.5}, worker, worker]
    assert not factory.head_bundle_is_empty and factory.strategy == "SPREAD"
    with_standbys = tf.train.ScalingConfig(workers=1, parameter_servers=2, replicated_shards=True)
    assert tf.tune.placement_group_factory(with_standbys).bundles == [{"CPU": 0.5}] * 4 + [{"CPU": 1}]


@pytest.mark.parametrize(
    ("scaling", "message"),
    [
        (tf.train.ScalingConfig(parameter_servers="auto"), "number of parameter servers is not decided"),
        (tf.train.ScalingConfig(cpus_per_worker=0, cpus_per_parameter_server=0), "a trial needs some room"),
    ],
)
def test_room_that_cannot_be_known_is_refused(scaling, message):
    with pytest.raises(InvalidArgumentError, match=message):
        tf.tune.placement_group_factory(scaling)


def test_tune_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray.tune", None)
    with pytest.raises(NotFoundError, match=r"pip install 'tfray\[tune\]'"):
        ray_runtime.import_tune()


# -- reports ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("every", "save_every_steps", "expected"),
    [
        (1, None, [(1, False), (2, False), (3, False), (4, False), (5, True)]),
        (1, 2, [(1, False), (2, True), (3, False), (4, True), (5, True)]),
        (2, 3, [(2, False), (3, True), (4, False), (5, True)]),
        (4, 10, [(4, False), (5, True)]),
    ],
)
def test_a_step_and_its_checkpoint_are_one_report(every, save_every_steps, expected, tmp_path):
    told = []
    reports = StepReports(every, lambda metrics, folder: told.append((metrics["step"], folder is not None)))
    trainer = build({"steps": 5, "local": True})
    trainer.run = tf.train.RunConfig(
        5,
        local=True,
        logdir=None,
        callbacks=[reports],
        checkpoint_dir=tmp_path,
        save_every_steps=save_every_steps,
        asynchronous_checkpoints=False,
    )
    trainer.fit()
    assert told == expected


# -- trials ----------------------------------------------------------------------------------------------


class Reports(tune.Callback):
    """Keeps what the trials report.

    Ray Tune's own file of it may lack rows: when a trial starts again, Tune puts the copy of the last synchronisation
    over it, which runs in the background.
    """

    def __init__(self):
        self.rows = []

    def on_trial_result(self, iteration, trials, trial, result, **info):
        self.rows.append(result)


def tuner(function, folder, config, failures=0, callbacks=(), **options):
    return tune.Tuner(
        function,
        param_space=config,
        tune_config=tune.TuneConfig(metric="loss", mode="min", **options),
        run_config=tune.RunConfig(
            name="trials",
            storage_path=str(folder),
            verbose=0,
            failure_config=tune.FailureConfig(failures),
            callbacks=list(callbacks),
        ),
    )


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.timeout(300)
def test_a_trial_reports_each_step_and_goes_on_from_its_checkpoint(ray_local, tmp_path):
    function = tf.tune.trainable(build, save_every_steps=4)
    config = {"steps": 6, "local": True, "fails": str(tmp_path / "failed")}
    reports = Reports()
    (result,) = tuner(function, tmp_path, config, failures=1, callbacks=[reports]).fit()
    assert result.error is None and (tmp_path / "failed").exists()
    # The second life begins behind the checkpoint of step 4.
    assert [row["step"] for row in reports.rows] == [1, 2, 3, 4, 5, 6] and result.metrics["step"] == 6
    alone = build({"steps": 6, "local": True}).fit()
    expected = [record.metrics["loss"] for record in alone.history]
    np.testing.assert_allclose([row["loss"] for row in reports.rows], expected, rtol=1e-6)
    assert tf.train.load_checkpoint(result.checkpoint.path).get_tensor("global_step") == 6
    assert function.__name__ == "build"


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.timeout(400)
def test_stopped_trials_leave_no_actor_behind(ray_local, tmp_path):
    """Trials of two workers run within their groups; ASHA stops some; then none of their actors is left."""

    def actors():
        return [name for name in ray_local.util.list_named_actors() if name.startswith("tfray/build_")]

    seen = set()
    over = threading.Event()

    def watch():
        while not over.wait(0.05):
            seen.update(actors())

    watching = threading.Thread(target=watch)
    watching.start()
    free = ray_local.available_resources()
    try:
        scheduler = tune.schedulers.ASHAScheduler(time_attr="step", grace_period=4, reduction_factor=2, max_t=30)
        config = {"steps": 40, "number": tune.grid_search([1, 2, 3, 4])}
        results = tuner(tf.tune.trainable(build, SCALING), tmp_path, config, scheduler=scheduler).fit()
    finally:
        over.set()
        watching.join()
    assert not results.errors and len(results) == 4
    assert all(4 <= result.metrics["step"] <= 30 for result in results)  # none came to its end by itself
    assert {name.split("/", 2)[2] for name in seen} >= {"ps/0", "worker/0", "worker/1"}
    wait_for(lambda: not actors())
    wait_for(lambda: ray_local.available_resources().get("CPU") == free["CPU"])


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_trial_without_room_for_its_actors_says_what_to_do(ray_local, tmp_path):
    (result,) = tuner(tf.tune.trainable(build), tmp_path, {"steps": 4}).fit()
    assert "the actors of a trial ask for 1.5 CPU, and beside its process the trial has 0" in str(result.error)
    assert "give scaling to tf.tune.trainable" in str(result.error)
