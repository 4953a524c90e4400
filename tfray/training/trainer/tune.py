"""``tf.tune``: a `Trainer` as the body of Ray Tune's trials."""

from __future__ import annotations

import os
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import chain
from typing import Any, Final

from tfray.actors.clusters.ray_runtime import import_ray, import_tune
from tfray.errors import InvalidArgumentError
from tfray.formats import files
from tfray.framework.arguments import NonNegative, Positive, checked
from tfray.training.trainer.callback import Callback
from tfray.training.trainer.run_config import ScalingConfig
from tfray.training.trainer.run_result import Result, SavedCheckpoint
from tfray.training.trainer.step_history import StepRecord
from tfray.training.trainer.trainer import Trainer

__all__ = ["ReportCallback", "placement_group_factory", "trainable"]

SLACK: Final = 1e-3
"""Differences of resources below this are rounding."""

_OF_TUNE: Final = ("checkpoint_dir", "storage_path", "resume_from")
"""Fields of `RunConfig` for which Tune has means of its own."""


@checked
def trainable(
    build: Callable[[dict[str, Any]], Trainer],
    scaling: ScalingConfig | None = None,
    *,
    report_every_steps: Positive = 1,
    save_every_steps: Positive | None = None,
    checkpoint_dir: files.PathLike | None = None,
) -> Callable[[dict[str, Any]], None]:
    """A function for `ray.tune.Tuner` whose trials train.

    A trial reports the metrics of its steps, and ``step`` and ``step_s`` beside them; of a step when the next one has
    ended. Its checkpoints go to Tune, the one after its last step at any rate. A trial that Tune starts again goes on
    from the checkpoint that Tune gives it. When Tune stops a trial, its actors end with it. They run within the trial's
    placement group, so what the `Trainer` says about a scheduling strategy is left out.

    Args:
        build: ``build(config)`` returns the trial's `Trainer`. It is called in the trial's process. Its `RunConfig` has
            no folder for checkpoints: Tune has.
        scaling: What the trainer of each trial has instead of its own `ScalingConfig`; trials get the room for it, as
            by `placement_group_factory`. None for trainers with ``local=True``, or when `ray.tune.with_resources` says
            what room a trial has.
        report_every_steps: Report every so many steps, and the last one.
        save_every_steps: Steps from one checkpoint to the next. By default the interval that loses least time is chosen
            (see `RunConfig.save_every_s`).
        checkpoint_dir: Folder that all nodes share, in which a trial keeps its newest checkpoint until Tune has stored
            it. None for a temporary one on the trial's node, where its parameter servers must then be too.

    Returns:
        The function.

    Raises:
        InvalidArgumentError: In a trial: `build` returns something else, gives folders to the run, or the trial's
            placement group has not the room for its actors.
        NotFoundError: Ray Tune is not installed.

    Example:
        >>> def build(config):
        ...     return tf.train.Trainer(model_of(config["rate"]), input_fn, run=tf.train.RunConfig(steps=200))
        >>> scaling = tf.train.ScalingConfig(workers=2, cpus_per_worker=0.5)
        >>> ray.tune.Tuner(tf.tune.trainable(build, scaling), param_space={"rate": ray.tune.loguniform(1e-4, 1)}).fit()
    """

    def train(config: dict[str, Any]) -> None:
        trainer = build(config)
        if not isinstance(trainer, Trainer):
            raise InvalidArgumentError(f"a trial needs a tf.train.Trainer, and build has returned {trainer!r}")
        _fit_in_trial(trainer, scaling, report_every_steps, save_every_steps, checkpoint_dir)

    train.__name__ = getattr(build, "__name__", train.__name__)  # Tune names experiments and trials after it
    if scaling is None:
        return train
    with_room: Callable[[dict[str, Any]], None] = import_tune().with_resources(train, placement_group_factory(scaling))
    return with_room


@checked
def placement_group_factory(scaling: ScalingConfig, driver_cpus: NonNegative = 0.0) -> Any:
    """The room of a trial, for `ray.tune.with_resources`: a bundle for its process, and one for each of its actors.

    Args:
        scaling: What the trial's trainer has. Of an elastic run the largest number of workers has room.
        driver_cpus: CPUs of the trial's own process, which hands out steps and computes nothing.

    Returns:
        A `ray.tune.PlacementGroupFactory`. Its strategy is `ScalingConfig.scheduling_strategy` if that is
        ``"SPREAD"``, and ``"PACK"`` otherwise.

    Raises:
        InvalidArgumentError: The number of parameter servers is ``"auto"``, or no actor asks for anything.
        NotFoundError: Ray Tune is not installed.
    """
    head, bundles = _bundle({"CPU": driver_cpus}), _bundles(scaling)
    actors = [bundle for job in bundles.values() for bundle in job if bundle]
    if not head and not actors:
        raise InvalidArgumentError("a trial needs some room: its workers and parameter servers ask for no CPUs")
    strategy = "SPREAD" if scaling.scheduling_strategy == "SPREAD" else "PACK"
    return import_tune().PlacementGroupFactory([head, *actors], strategy=strategy)


class StepReports(Callback):
    """Reports steps and checkpoints; a step and the checkpoint after it are one report.

    So a step is reported when the next has ended, or the run.

    Args:
        every_steps: Report every so many steps, and the last one.
        report: Takes the metrics of a step, and the folder of its checkpoint or None.
    """

    def __init__(self, every_steps: int, report: Callable[[dict[str, float], str | None], None]) -> None:
        self._every_steps = every_steps
        self._report = report
        self._newest: StepRecord | None = None
        self._is_reported = False

    def on_step(self, record: StepRecord) -> None:
        """Report the step before, now that no checkpoint belongs to it."""
        if self._newest is not None and self._newest.step % self._every_steps == 0:
            self._tell()
        self._newest, self._is_reported = record, False

    def on_checkpoint(self, checkpoint: SavedCheckpoint) -> None:
        """Report the checkpoint with the newest step."""
        self._is_reported = False
        self._tell(os.path.dirname(checkpoint.path))

    def on_end(self, result: Result | None, error: BaseException | None) -> None:
        """Report the last step."""
        if error is None:
            self._tell()

    def _tell(self, folder: str | None = None) -> None:
        if self._newest is None or self._is_reported:
            return
        self._is_reported = True
        about = {"step": self._newest.step, "step_s": self._newest.duration_s}
        self._report(about | self._newest.metrics, folder)


class ReportCallback(StepReports):
    """Reports the steps and checkpoints of a run to Ray Tune, within a function of yours that Tune runs.

    `trainable` adds it by itself. A step and a checkpoint after it are one report. A checkpoint is reported as the
    folder that it is in: let that hold one, by ``keep_checkpoints=1`` and ``asynchronous_checkpoints=False``.

    Args:
        every_steps: Report every so many steps, and the last one.
    """

    @checked
    def __init__(self, every_steps: Positive = 1) -> None:
        super().__init__(every_steps, _report_to_tune)


def _report_to_tune(metrics: dict[str, float], folder: str | None) -> None:
    tune = import_tune()
    tune.report(metrics, checkpoint=None if folder is None else tune.Checkpoint(folder))


def _fit_in_trial(
    trainer: Trainer,
    scaling: ScalingConfig | None,
    report_every_steps: int,
    save_every_steps: int | None,
    checkpoint_dir: files.PathLike | None,
) -> None:
    tune, run = import_tune(), trainer.run
    for name in _OF_TUNE:
        if getattr(run, name) is not None:
            raise InvalidArgumentError(
                f"the checkpoints of a trial go to Ray Tune: leave {name} out of RunConfig, and give "
                "ray.tune.RunConfig(storage_path=...) to the Tuner"
            )
    context, begin = tune.get_context(), tune.get_checkpoint()
    if not run.local:
        trainer.scaling = _within(context.get_trial_resources(), scaling or trainer.scaling)
    with ExitStack() as stack:
        trainer.run = replace(
            run,
            callbacks=(*run.callbacks, ReportCallback(report_every_steps)),
            checkpoint_dir=stack.enter_context(_trial_folder(checkpoint_dir, context.get_trial_id())),
            resume=True,
            resume_from=None if begin is None else stack.enter_context(begin.as_directory()),
            save_every_steps=save_every_steps or run.save_every_steps,
            keep_checkpoints=1,  # Tune keeps the others
            asynchronous_checkpoints=False,  # so that a checkpoint belongs to the step that was reported last
            name=run.name or re.sub(r"[/\s]", "_", context.get_trial_name()),
        )
        trainer.fit()


@contextmanager
def _trial_folder(shared: files.PathLike | None, trial: str) -> Iterator[str]:
    """The folder of a trial's newest checkpoint; it is removed at the end."""
    if shared is None:
        with tempfile.TemporaryDirectory(prefix=f"tfray-{trial}-", ignore_cleanup_errors=True) as folder:
            yield folder
        return
    folder = f"{files.given_path(shared, 'checkpoint_dir').rstrip('/')}/{trial}"
    if files.exists(folder):
        files.remove_tree(folder)  # of a former life of the trial: Tune has its checkpoints
    files.make_folders(folder)
    try:
        yield folder
    finally:
        files.remove_tree(folder)


def _within(room: Any, scaling: ScalingConfig) -> ScalingConfig:
    """The scaling, with each actor in the bundle of the trial's placement group that was made for it.

    Left to itself, Ray may put a small actor where only a large one would have filled the bundle, and then has no room
    for that. Actors without a bundle of just their size are left to it: the group may have been made otherwise.

    Raises:
        InvalidArgumentError: The room of the trial is not enough for its actors.
    """
    _check_room(room, scaling)
    ray = import_ray()
    group = ray.util.get_current_placement_group()
    first = 0 if room.head_bundle_is_empty else 1  # the trial's own process is in the first
    free = dict(enumerate(room.bundles[first:], first))
    strategies: dict[str, list[Any]] = {}
    for job, bundles in _bundles(scaling).items():
        strategies[job] = []
        for bundle in bundles:
            index = next((index for index, each in free.items() if bundle and each == bundle), None)
            if index is None:
                strategies[job].append(None)
                continue
            del free[index]
            strategy = ray.util.scheduling_strategies.PlacementGroupSchedulingStrategy(group, index, True)
            strategies[job].append(strategy)
    return replace(scaling, scheduling_strategy=strategies)


def _check_room(room: Any, scaling: ScalingConfig) -> None:
    given = dict(room.required_resources)
    given["CPU"] = given.get("CPU", 0.0) - room.head_cpus
    asked: Counter[str] = Counter()
    for bundle in chain.from_iterable(_bundles(scaling).values()):
        asked.update(bundle)
    for kind, amount in asked.items():
        if given.get(kind, 0.0) < amount - SLACK:
            raise InvalidArgumentError(
                f"the actors of a trial ask for {amount:g} {kind}, and beside its process the trial has "
                f"{given.get(kind, 0.0):g}: give scaling to tf.tune.trainable, or "
                "ray.tune.with_resources(function, tf.tune.placement_group_factory(scaling)) to the Tuner"
            )


def _bundles(scaling: ScalingConfig) -> dict[str, list[dict[str, float]]]:
    """By job, what each of its tasks asks for; nothing at all for some."""
    ps = _bundle({"CPU": scaling.cpus_per_parameter_server, **scaling.parameter_server_resources})
    worker = _bundle({"CPU": scaling.cpus_per_worker, "GPU": scaling.gpus_per_worker, **scaling.worker_resources})
    return {"ps": [ps] * (scaling.max_shards * scaling.copies), "worker": [worker] * scaling.max_workers}


def _bundle(resources: Mapping[str, float]) -> dict[str, float]:
    return {kind: amount for kind, amount in resources.items() if amount}
