"""Experiments of ``tf.contrib.learn``: an estimator with its inputs, which is trained and evaluated in turn."""

from __future__ import annotations

import collections
import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from tfray.actors.clusters.server import Server
from tfray.estimator.estimator import InputFn
from tfray.estimator.run_config import TaskType
from tfray.framework.type_aliases import TensorLike
from tfray.programs.learn.estimators import Features
from tfray.programs.learn.interfaces import Evaluable, Trainable
from tfray.training.sessions.session_run_hook import SessionRunArgs, SessionRunContext, SessionRunHook, SessionRunValues
from tfray.training.threads.global_step import get_global_step

__all__ = ["Experiment", "ExportStrategy", "ValidationMonitor", "make_export_strategy", "run"]

ExportStrategy = collections.namedtuple("ExportStrategy", ["name", "export_fn", "strip_default_attrs"])
"""How a trained estimator is exported."""


class Experiment:
    """An estimator, and what it is trained and evaluated with.

    Args:
        estimator: One of `tf.estimator`, or of `tf.contrib.learn`.
        train_input_fn: Makes what it is trained on.
        eval_input_fn: Makes what it is evaluated on.
        eval_metrics: Further metrics, for estimators of `tf.contrib.learn`.
        train_steps: The last step; until the input ends when None.
        eval_steps: Batches of an evaluation; until the input ends when None.
        train_monitors: Hooks of training.
        eval_hooks: Hooks of evaluation.
        local_eval_frequency: As `min_eval_frequency`.
        min_eval_frequency: Evaluate after so many steps; at the end only when None or 0.
        export_strategies: How it is exported after training: an `ExportStrategy`, or several.
        train_steps_per_iteration: As `min_eval_frequency`.
        **_more: What concerns delays between processes, and is not used.
    """

    def __init__(
        self,
        estimator: Any,
        train_input_fn: InputFn,
        eval_input_fn: InputFn | None,
        eval_metrics: Mapping[Any, Any] | None = None,
        train_steps: int | None = None,
        eval_steps: int | None = 100,
        train_monitors: Sequence[SessionRunHook] | None = None,
        eval_hooks: Sequence[SessionRunHook] | None = None,
        local_eval_frequency: int | None = None,
        eval_delay_secs: float = 120,
        continuous_eval_throttle_secs: float = 60,
        min_eval_frequency: int | None = None,
        delay_workers_by_global_step: bool = False,
        export_strategies: Any = None,
        train_steps_per_iteration: int | None = None,
        **_more: Any,
    ) -> None:
        self._estimator = estimator
        self._train_input_fn, self._eval_input_fn = train_input_fn, eval_input_fn
        self._eval_metrics, self._train_steps, self._eval_steps = eval_metrics, train_steps, eval_steps
        self._hooks, self._eval_hooks = list(train_monitors or ()), list(eval_hooks or ())
        self._every = train_steps_per_iteration or min_eval_frequency or local_eval_frequency
        strategies = export_strategies if isinstance(export_strategies, (list, set)) else [export_strategies]
        self._exports = [strategy for strategy in strategies if strategy is not None]

    @property
    def estimator(self) -> Any:
        """The estimator."""
        return self._estimator

    @property
    def train_steps(self) -> int | None:
        """The last step."""
        return self._train_steps

    @property
    def eval_steps(self) -> int | None:
        """Batches of an evaluation."""
        return self._eval_steps

    def extend_train_hooks(self, additional_hooks: Sequence[SessionRunHook]) -> None:
        """Add hooks of training."""
        self._hooks.extend(additional_hooks)

    def train(self, delay_secs: float | None = None) -> Any:
        """Train to the last step."""
        return self._train(self._train_steps)

    def _train(self, max_steps: int | None) -> Any:
        if isinstance(self._estimator, Trainable):
            return self._estimator.fit(input_fn=self._train_input_fn, max_steps=max_steps, monitors=self._hooks)
        return self._estimator.train(self._train_input_fn, hooks=self._hooks, max_steps=max_steps)

    def evaluate(self, delay_secs: float | None = None, name: str | None = None) -> dict[str, Any]:
        """Evaluate the newest checkpoint."""
        if isinstance(self._estimator, Evaluable):
            return self._estimator.evaluate(
                input_fn=self._eval_input_fn,
                steps=self._eval_steps,
                metrics=self._eval_metrics,
                name=name,
                hooks=self._eval_hooks,
            )
        return dict(self._estimator.evaluate(self._eval_input_fn, self._eval_steps, self._eval_hooks, name=name))

    def train_and_evaluate(self) -> tuple[dict[str, Any], list[Any]]:
        """Train and evaluate in turn to the last step.

        Returns:
            The last evaluation, and the paths of what was exported.
        """
        results: dict[str, Any] = {}
        step, every = 0, self._every or math.inf
        while self._train_steps is not None and step + every < self._train_steps:
            step += int(every)
            self._train(step)
            results = self.evaluate()
        self._train(self._train_steps)
        if self._eval_input_fn is not None:
            results = self.evaluate()
        return results, [self._export(strategy, results) for strategy in self._exports]

    local_run = continuous_train_and_eval = train_and_evaluate

    def run_std_server(self) -> None:
        """Be a parameter server, as long as the cluster is there."""
        config = self._estimator.config
        Server(config.cluster_spec, config.task_type, config.task_id).join()

    def _export(self, strategy: Any, results: Mapping[str, Any]) -> Any:
        folder = os.path.join(self._estimator.model_dir, "export", strategy.name)
        return strategy.export_fn(self._estimator, folder, None, results)

    def test(self) -> dict[str, Any]:
        """Train for one step, and evaluate one batch."""
        self._train(1)
        self._eval_steps = 1
        return self.evaluate()


def run(
    experiment_fn: Callable[..., Experiment],
    output_dir: str | None = None,
    schedule: str | None = None,
    run_config: Any = None,
    hparams: Any = None,
) -> Any:
    """Make an experiment and run it: ``tf.contrib.learn.learn_runner.run``.

    Args:
        experiment_fn: ``experiment_fn(run_config, hparams)``, or ``experiment_fn(output_dir)`` without a `run_config`.
        output_dir: Folder of the checkpoints.
        schedule: Name of the method that runs it. When None, it goes by the task of the estimator's configuration: a
            worker's is ``train``, a parameter server's ``run_std_server``, and ``train_and_evaluate`` otherwise.
        run_config: Configuration of the estimator.
        hparams: Hyperparameters.

    Raises:
        TypeError: `experiment_fn` is no function, or makes no `Experiment`, or the schedule is no method.
        ValueError: There is no such method, or neither a folder nor a configuration, or both.
    """
    if output_dir is None and run_config is None:
        raise ValueError("Must set value for `output_dir` or `run_config`")
    if output_dir is not None and run_config is not None:
        raise ValueError("Cannot provide both `output_dir` and `run_config`")
    if not callable(experiment_fn):
        raise TypeError(f'Experiment builder "{experiment_fn}" is not callable.')
    if not output_dir and run_config is None:
        raise ValueError("Must specify an output directory")
    experiment = experiment_fn(output_dir) if run_config is None else experiment_fn(run_config, hparams)
    if not isinstance(experiment, Experiment):
        raise TypeError(
            f"Experiment builder did not return an Experiment instance, got {type(experiment).__name__} instead."
        )
    chosen = schedule or _schedule(getattr(experiment.estimator, "config", None))
    if not hasattr(experiment, chosen):
        raise ValueError(f"Schedule references non-existent task {chosen}")
    if not callable(method := getattr(experiment, chosen)):
        raise TypeError(f"Schedule references non-callable member {chosen}")
    return method()


def _schedule(config: Any) -> str:
    """What a task of a cluster does."""
    if config is None or len(config.cluster_spec.jobs) < 2:
        return "train_and_evaluate"
    if not config.task_type:
        raise ValueError("Must specify a schedule: TF_CONFIG has a cluster, and no task with a type")
    if config.task_type not in _SCHEDULES:
        raise ValueError(f"No default schedule for task type: {config.task_type}")
    return _SCHEDULES[config.task_type]


_SCHEDULES: Final = {
    TaskType.CHIEF: "train_and_evaluate",
    TaskType.MASTER: "train_and_evaluate",
    TaskType.PS: "run_std_server",
    TaskType.WORKER: "train",
}


def make_export_strategy(
    serving_input_fn: Callable[[], Any],
    default_output_alternative_key: str | None = None,
    assets_extra: Mapping[str, str] | None = None,
    as_text: bool = False,
    exports_to_keep: int | None = 5,
    strip_default_attrs: bool | None = None,
) -> ExportStrategy:
    """An `ExportStrategy` that writes a saved model.

    Args:
        serving_input_fn: Makes a `tf.estimator.export.ServingInputReceiver`.
        default_output_alternative_key: Not used.
        assets_extra: Further files.
        as_text: Write text.
        exports_to_keep: Not used: all are kept.
        strip_default_attrs: Leave out attributes that have their defaults.
    """

    def export_fn(estimator: Any, export_dir_base: str, checkpoint_path: str | None = None, _: Any = None) -> Any:
        return estimator.export_savedmodel(
            export_dir_base,
            serving_input_fn,
            assets_extra=assets_extra,
            as_text=as_text,
            checkpoint_path=checkpoint_path,
            strip_default_attrs=bool(strip_default_attrs),
        )

    return ExportStrategy("Servo", export_fn, strip_default_attrs)


class ValidationMonitor(SessionRunHook):
    """Evaluates while an estimator is trained, when there is a new checkpoint.

    Args:
        x: As for `Learner.evaluate`.
        y: Likewise.
        input_fn: Likewise.
        batch_size: Likewise.
        eval_steps: How many batches.
        every_n_steps: After how many steps.
        metrics: As for `Learner.evaluate`.
        hooks: Likewise.
        early_stopping_rounds: Stop when the metric has not become better for so many steps; never when None.
        early_stopping_metric: Name of that metric.
        early_stopping_metric_minimize: Whether less is better.
        name: Name of the evaluations.
    """

    def __init__(
        self,
        x: Features | None = None,
        y: TensorLike | None = None,
        input_fn: InputFn | None = None,
        batch_size: int | None = None,
        eval_steps: int | None = None,
        every_n_steps: int = 100,
        metrics: Mapping[Any, Any] | None = None,
        hooks: Sequence[SessionRunHook] | None = None,
        early_stopping_rounds: int | None = None,
        early_stopping_metric: str = "loss",
        early_stopping_metric_minimize: bool = True,
        name: str | None = None,
        **_more: Any,
    ) -> None:
        self._given = {
            "x": x, "y": y, "input_fn": input_fn, "batch_size": batch_size, "steps": eval_steps, "metrics": metrics,
            "hooks": hooks, "name": name,
        }  # fmt: skip
        self._every, self._rounds = every_n_steps, early_stopping_rounds
        self._metric, self._sign = early_stopping_metric, 1 if early_stopping_metric_minimize else -1
        self._estimator: Any = None
        self._last, self._best, self._best_step = 0, math.inf, 0
        self._checkpoint: str | None = None

    @property
    def best_value(self) -> float:
        """The best value of the metric."""
        return self._sign * self._best

    @property
    def best_step(self) -> int:
        """The step of the best value."""
        return self._best_step

    def set_estimator(self, estimator: Any) -> None:
        """Say which estimator is evaluated."""
        self._estimator = estimator

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(get_global_step())

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        step = int(run_values.results)
        newest = self._estimator._estimator.latest_checkpoint()
        if step < self._last + self._every or newest is None or newest == self._checkpoint:
            return
        self._last, self._checkpoint = step, newest
        value = self._sign * float(self._estimator.evaluate(**self._given)[self._metric])
        if value < self._best:
            self._best, self._best_step = value, step
        elif self._rounds is not None and step - self._best_step >= self._rounds:
            run_context.request_stop()
