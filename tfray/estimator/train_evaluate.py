"""`train_and_evaluate`: training with evaluations and exports, in one process, or each task of a cluster its part."""

from __future__ import annotations

import numbers
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from tfray.actors.clusters.server import Server
from tfray.estimator.estimator import Estimator
from tfray.estimator.exporters import Exporter
from tfray.estimator.run_config import RunConfig, TaskType
from tfray.estimator.spec import check_positive, checked_hooks
from tfray.framework.graph_keys import GraphKeys
from tfray.library.platform import logging
from tfray.options import ConfigProto
from tfray.training.sessions.hooks import SecondOrStepTimer
from tfray.training.sessions.hooks_saving import CheckpointSaverListener

DELAY_PER_WORKER_S: Final = 5
LONGEST_DELAY_S: Final = 60
_POLL_S: Final = 1.0
"""Seconds from one look of the evaluator for a new checkpoint to the next, when it has evaluated the last one."""


class _TrainFields(NamedTuple):
    input_fn: Any
    max_steps: Any
    hooks: Any


class TrainSpec(_TrainFields):
    """The training of `train_and_evaluate`.

    Attributes:
        input_fn: As of `Estimator.train`.
        max_steps: The global step at which to stop; None trains until the input ends.
        hooks: Hooks around the steps, on all workers.

    Raises:
        ValueError: `max_steps` is not positive.
        TypeError: `max_steps` is no number, `input_fn` no function, or a hook is none.
    """

    __slots__ = ()

    def __new__(cls, input_fn: Any, max_steps: int | None = None, hooks: Any = None) -> TrainSpec:
        _check_input_fn(input_fn)
        check_positive("TrainSpec", "max_steps", max_steps)
        return super().__new__(cls, input_fn=input_fn, max_steps=max_steps, hooks=checked_hooks(hooks, "hooks"))


class _EvalFields(NamedTuple):
    input_fn: Any
    steps: Any
    name: Any
    hooks: Any
    exporters: Any
    start_delay_secs: Any
    throttle_secs: Any


class EvalSpec(_EvalFields):
    """The evaluations, and exports, of `train_and_evaluate`.

    Attributes:
        input_fn: As of `Estimator.evaluate`.
        steps: Batches of an evaluation; all when None.
        name: Name of the evaluations, if there are several kinds.
        hooks: Hooks around the batches.
        exporters: An exporter, or several, called after each evaluation.
        start_delay_secs: Seconds that an evaluator of a cluster waits before it begins.
        throttle_secs: The least number of seconds from one evaluation to the next.

    Raises:
        ValueError: A number is too small.
        TypeError: Something is of a wrong type.
    """

    __slots__ = ()

    def __new__(
        cls,
        input_fn: Any,
        steps: int | None = 100,
        name: str | None = None,
        hooks: Any = None,
        exporters: Any = None,
        start_delay_secs: float = 120,
        throttle_secs: float = 600,
    ) -> EvalSpec:
        _check_input_fn(input_fn)
        check_positive("EvalSpec", "steps", steps)
        if name is not None and not isinstance(name, str):
            raise TypeError(f"EvalSpec: name is {name!r}, expected text")
        for label, seconds in (("start_delay_secs", start_delay_secs), ("throttle_secs", throttle_secs)):
            if not isinstance(seconds, numbers.Real):
                raise TypeError(f"EvalSpec: {label} is {seconds!r}, expected a number of seconds")
            if not seconds >= 0:
                raise ValueError(f"EvalSpec: {label} is {seconds}, expected 0 or more")
        return super().__new__(
            cls,
            input_fn=input_fn,
            steps=steps,
            name=name,
            hooks=checked_hooks(hooks, "hooks"),
            exporters=_checked_exporters(exporters),
            start_delay_secs=start_delay_secs,
            throttle_secs=throttle_secs,
        )


def _check_input_fn(input_fn: Any) -> None:
    if not callable(input_fn):
        raise TypeError(f"input_fn is {input_fn!r}, expected a function")


def _checked_exporters(exporters: Any) -> tuple[Exporter, ...]:
    if exporters is None:
        return ()
    try:
        found = (exporters,) if isinstance(exporters, Exporter) else tuple(exporters)
    except TypeError:
        found = (exporters,)
    names: list[str] = []
    for each in found:
        if not isinstance(each, Exporter):
            raise TypeError(f"exporters is {exporters!r}, expected a tf.estimator.Exporter, or several")
        if not each.name or each.name in names:
            raise ValueError(f"exporters need names, and each its own; there is {each.name!r} after {names}")
        names.append(each.name)
    return found


def train_and_evaluate(
    estimator: Estimator, train_spec: TrainSpec, eval_spec: EvalSpec
) -> tuple[dict[str, Any] | None, list[Any] | None] | None:
    """Train a model, evaluate its checkpoints, and export it.

    In one process it trains until `train_spec.max_steps`, and evaluates after checkpoints: at most every
    `eval_spec.throttle_secs` seconds, and the last one in any case. In a cluster, as ``TF_CONFIG`` describes it and
    `tfray launch` starts it, each task does its part: the chief and the workers train, parameter servers serve, and the
    evaluator evaluates the checkpoints as they come, until one has reached `max_steps`.

    Args:
        estimator: The estimator.
        train_spec: The training.
        eval_spec: The evaluations.

    Returns:
        In one process, what the last evaluation gave, and what the exporters returned after it; otherwise None.

    Raises:
        TypeError: An argument is of a wrong type.
        ValueError: The evaluator's index is not 0, or checkpoints are not saved.
    """
    for name, given, kind in (
        ("estimator", estimator, Estimator),
        ("train_spec", train_spec, TrainSpec),
        ("eval_spec", eval_spec, EvalSpec),
    ):
        if not isinstance(given, kind):
            raise TypeError(f"train_and_evaluate: {name} is {given!r}, expected a tf.estimator.{kind.__name__}")
    config = estimator.config
    if config.task_type == TaskType.EVALUATOR and config.task_id > 0:
        raise ValueError(f"a cluster has one evaluator, with index 0; this is {config.task_id}")
    work = _Work(estimator, train_spec, eval_spec)
    if not config.cluster_spec and config.task_type != TaskType.EVALUATOR:
        return work.all_in_one()
    if config.trainer is not None:
        raise ValueError("RunConfig(trainer=...) starts its replicas itself: it cannot be one of a cluster's tasks")
    parts: dict[str, Callable[[], None]] = {
        TaskType.CHIEF: work.train_as_task,
        TaskType.WORKER: work.train_as_task,
        TaskType.MASTER: work.train_as_master,
        TaskType.PS: work.serve,
        TaskType.EVALUATOR: work.evaluate_continuously,
    }
    if config.task_type not in parts:
        raise ValueError(f"a task {config.task_type!r} has no part in training; those that have are {', '.join(parts)}")
    parts[config.task_type]()
    return None


@dataclass
class _Evaluations:
    """Evaluations of new checkpoints, and their exports."""

    estimator: Estimator
    spec: EvalSpec
    max_steps: int | None
    evaluated: str | None = None
    metrics: dict[str, Any] | None = None
    exports: list[Any] = field(default_factory=list)

    def evaluate(self) -> bool:
        """Evaluate the newest checkpoint. Returns False if there is none, or it has been evaluated."""
        path = self.estimator.latest_checkpoint()
        if not path or path == self.evaluated:
            return False
        self.metrics = self.estimator.evaluate(
            self.spec.input_fn, self.spec.steps, self.spec.hooks, checkpoint_path=path, name=self.spec.name
        )
        self.evaluated = path
        self.exports = [
            exporter.export(
                estimator=self.estimator,
                export_path=f"{self.estimator.model_dir}/export/{exporter.name}",
                checkpoint_path=path,
                eval_result=self.metrics,
                is_the_final_export=self.finished,
            )
            for exporter in self.spec.exporters
        ]
        return True

    @property
    def finished(self) -> bool:
        """Whether the last evaluation was that of the end of training."""
        if self.metrics is None or not self.max_steps:
            return False
        return int(self.metrics[GraphKeys.GLOBAL_STEP]) >= self.max_steps


class _EvaluatingListener(CheckpointSaverListener):
    """Evaluates after checkpoints, while training waits."""

    def __init__(self, evaluations: _Evaluations, throttle_s: float) -> None:
        self._evaluations = evaluations
        self._throttle_s = throttle_s

    def begin(self) -> None:
        self._timer = SecondOrStepTimer(every_secs=self._throttle_s)
        self._is_first = True

    def after_save(self, session: Any, global_step_value: int) -> None:
        if self._is_first:  # nothing is trained yet
            self._is_first = False
        elif self._timer.should_trigger_for_step(global_step_value):
            self._evaluate(global_step_value)
        else:
            logging.info("this checkpoint is not evaluated: evaluations are %g s apart", self._throttle_s)

    def end(self, session: Any, global_step_value: int) -> None:
        if global_step_value != self._timer.last_triggered_step():
            self._evaluate(global_step_value)

    def _evaluate(self, step: int) -> None:
        self._timer.update_last_triggered_step(step)
        self._evaluations.evaluate()


class _Work:
    """What the tasks do."""

    def __init__(self, estimator: Estimator, train_spec: TrainSpec, eval_spec: EvalSpec) -> None:
        self._estimator = estimator
        self._train = train_spec
        self._eval = eval_spec
        self._evaluations = _Evaluations(estimator, eval_spec, train_spec.max_steps)

    def all_in_one(self) -> tuple[dict[str, Any] | None, list[Any] | None]:
        """Train and evaluate in this process, or with replicas that it starts."""
        if self._estimator.config.trainer is not None:
            self._train_replicas()
        else:
            self._train_here([_EvaluatingListener(self._evaluations, self._eval.throttle_secs)])
        return self._evaluations.metrics, self._evaluations.exports or None

    def _train_here(self, listeners: Sequence[CheckpointSaverListener]) -> None:
        self._estimator.train(
            self._train.input_fn, self._train.hooks, max_steps=self._train.max_steps, saving_listeners=listeners
        )

    def _train_replicas(self) -> None:
        if self._train.hooks:
            raise ValueError("TrainSpec: hooks work in a session, and replicas on Ray have none")
        last: list[float] = []

        def evaluate(path: str) -> None:
            if not last or time.monotonic() >= last[0] + self._eval.throttle_secs:
                last[:] = [time.monotonic()]
                self._evaluations.evaluate()

        estimator, max_steps = self._estimator, self._train.max_steps
        if max_steps is None or estimator._saved_step() < max_steps:
            estimator._replicated(self._train.input_fn, evaluate).train(max_steps)
            self._evaluations.evaluate()

    def train_as_task(self) -> None:
        """Train, as one of the cluster's workers."""
        self._start_training([])

    def train_as_master(self) -> None:
        """Train as chief, and evaluate."""
        self._start_training([_EvaluatingListener(self._evaluations, self._eval.throttle_secs)])

    def _start_training(self, listeners: Sequence[CheckpointSaverListener]) -> None:
        config = self._estimator.config
        start_server(config)
        if config.task_type == TaskType.WORKER:
            longest = config.experimental_max_worker_delay_secs
            delay_s = min(LONGEST_DELAY_S if longest is None else longest, (config.task_id + 1) * DELAY_PER_WORKER_S)
            if delay_s > 0:
                logging.info("worker %d begins in %d s", config.task_id, delay_s)
                time.sleep(delay_s)
        self._train_here(listeners)

    def serve(self) -> None:
        """Serve variables until this process is ended."""
        server = start_server(self._estimator.config)
        assert server is not None  # a parameter server is not alone in its cluster
        server.join()

    def evaluate_continuously(self) -> None:
        """Evaluate checkpoints as they come, until one has reached the last step."""
        if self._eval.start_delay_secs:
            logging.info("evaluations begin in %g s", self._eval.start_delay_secs)
            time.sleep(self._eval.start_delay_secs)
        while not self._evaluations.finished:
            started = time.monotonic()
            if not self._evaluations.evaluate():
                logging.log_every_n(logging.INFO, "there is no new checkpoint in %s", 60, self._estimator.model_dir)
            if not self._evaluations.finished:
                rest_s = self._eval.throttle_secs - (time.monotonic() - started)
                time.sleep(max(rest_s, _POLL_S))


def start_server(config: RunConfig) -> Server | None:
    """Start the server of this task, unless it is the only task. Raises `ValueError` without a master."""
    if not config.master:
        jobs = config.cluster_spec.jobs
        if len(jobs) == 1 and config.cluster_spec.num_tasks(jobs[0]) == 1:
            return None
        raise ValueError("a task of a cluster needs a master: RunConfig takes it from TF_CONFIG")
    gpus = {} if config.session_config is None else config.session_config.device_count
    server = Server(
        config.cluster_spec,
        job_name=config.task_type,
        task_index=config.task_id,
        config=ConfigProto(device_count=dict(gpus)),
        protocol=config.protocol,
    )
    return server
