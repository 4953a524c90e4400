"""Hooks that stop training early, depending on metrics that evaluations have written into event files."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from tfray.errors import DataLossError
from tfray.formats import files
from tfray.formats.events import summary_iterator
from tfray.library.platform import logging
from tfray.training.sessions.hooks import SecondOrStepTimer, require_global_step
from tfray.training.sessions.session_run_hook import SessionRunArgs, SessionRunContext, SessionRunHook, SessionRunValues


class StopByFunctionHook(SessionRunHook):
    """Stops when a function says so.

    Args:
        should_stop_fn: Function without arguments; training stops when it returns True.
        run_every_secs: Seconds from one call to the next.
        run_every_steps: Steps from one call to the next; `run_every_secs` must be None then.
    """

    def __init__(
        self,
        should_stop_fn: Callable[[], bool],
        run_every_secs: float | None = 60,
        run_every_steps: int | None = None,
    ) -> None:
        if not callable(should_stop_fn):
            raise TypeError(f"should_stop_fn is {should_stop_fn!r}, expected a function")
        self._should_stop = should_stop_fn
        self._timer = SecondOrStepTimer(run_every_secs, run_every_steps)

    def begin(self) -> None:
        self._global_step = require_global_step("early stopping")

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(self._global_step)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        step = int(run_values.results)
        if self._timer.should_trigger_for_step(step):
            self._timer.update_last_triggered_step(step)
            if self._should_stop():
                logging.info("Requesting early stopping at global step %d", step)
                run_context.request_stop()


def make_early_stopping_hook(
    estimator: Any,
    should_stop_fn: Callable[[], bool],
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> SessionRunHook:
    """A hook that stops when a function says so.

    Args:
        estimator: The object that is trained; it is not used.
        should_stop_fn: Function without arguments; training stops when it returns True.
        run_every_secs: Seconds from one call to the next.
        run_every_steps: Steps from one call to the next; `run_every_secs` must be None then.
    """
    return StopByFunctionHook(should_stop_fn, run_every_secs, run_every_steps)


def stop_if_higher_hook(
    estimator: Any,
    metric_name: str,
    threshold: float,
    eval_dir: str | None = None,
    min_steps: int = 0,
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> SessionRunHook:
    """A hook that stops when an evaluation's metric is above a threshold.

    Args:
        estimator: The object that is trained. Its ``eval_dir()`` is the folder, unless `eval_dir` is given.
        metric_name: Tag of the metric in the event files.
        threshold: The threshold.
        eval_dir: Folder of the evaluations' event files.
        min_steps: Evaluations before this global step do not count.
        run_every_secs: Seconds from one look to the next.
        run_every_steps: Steps from one look to the next; `run_every_secs` must be None then.
    """
    beyond = _beyond(_folder(estimator, eval_dir), metric_name, threshold, operator.gt, min_steps)
    return StopByFunctionHook(beyond, run_every_secs, run_every_steps)


def stop_if_lower_hook(
    estimator: Any,
    metric_name: str,
    threshold: float,
    eval_dir: str | None = None,
    min_steps: int = 0,
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> SessionRunHook:
    """A hook that stops when an evaluation's metric is below a threshold. Arguments as for `stop_if_higher_hook`."""
    beyond = _beyond(_folder(estimator, eval_dir), metric_name, threshold, operator.lt, min_steps)
    return StopByFunctionHook(beyond, run_every_secs, run_every_steps)


def stop_if_no_increase_hook(
    estimator: Any,
    metric_name: str,
    max_steps_without_increase: int,
    eval_dir: str | None = None,
    min_steps: int = 0,
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> SessionRunHook:
    """A hook that stops when an evaluation's metric has not increased for some steps.

    Args:
        estimator: As for `stop_if_higher_hook`.
        metric_name: Tag of the metric in the event files.
        max_steps_without_increase: How many steps it may stay at or below its best.
        eval_dir: Folder of the evaluations' event files.
        min_steps: Evaluations before this global step do not count.
        run_every_secs: Seconds from one look to the next.
        run_every_steps: Steps from one look to the next; `run_every_secs` must be None then.
    """
    stuck = _stuck(_folder(estimator, eval_dir), metric_name, max_steps_without_increase, operator.gt, min_steps)
    return StopByFunctionHook(stuck, run_every_secs, run_every_steps)


def stop_if_no_decrease_hook(
    estimator: Any,
    metric_name: str,
    max_steps_without_decrease: int,
    eval_dir: str | None = None,
    min_steps: int = 0,
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> SessionRunHook:
    """A hook that stops when an evaluation's metric, a loss, has not decreased for some steps.

    Arguments as for `stop_if_no_increase_hook`.
    """
    stuck = _stuck(_folder(estimator, eval_dir), metric_name, max_steps_without_decrease, operator.lt, min_steps)
    return StopByFunctionHook(stuck, run_every_secs, run_every_steps)


def read_eval_metrics(eval_dir: str) -> dict[int, dict[str, float]]:
    """The numbers in a folder's event files, by global step and tag, in order of the steps.

    Args:
        eval_dir: The folder. If it does not exist, there are no numbers.
    """
    found: dict[int, dict[str, float]] = {}
    for path in files.glob(f"{eval_dir.rstrip('/')}/*tfevents*"):
        try:
            for event in summary_iterator(path):
                for value in event.summary.value if event.HasField("summary") else ():
                    if value.HasField("simple_value"):
                        found.setdefault(event.step, {})[value.tag] = value.simple_value
        except DataLossError as error:  # mostly, the file is just being written
            logging.vlog(1, "%s", error)
    return dict(sorted(found.items()))


def _folder(estimator: Any, eval_dir: str | None) -> str:
    if eval_dir is None:
        if estimator is None:
            raise ValueError("early stopping needs eval_dir, the folder of the evaluations' event files")
        eval_dir = estimator.eval_dir()
    return files.given_path(eval_dir, "eval_dir")


def _metric(folder: str, name: str, min_steps: int) -> list[tuple[int, float]]:
    steps = read_eval_metrics(folder).items()
    return [(step, metrics[name]) for step, metrics in steps if step >= min_steps and name in metrics]


def _beyond(
    folder: str, name: str, threshold: float, better: Callable[[float, float], bool], min_steps: int
) -> Callable[[], bool]:
    return lambda: any(better(value, threshold) for _, value in _metric(folder, name, min_steps))


def _stuck(
    folder: str, name: str, patience: int, better: Callable[[float, float], bool], min_steps: int
) -> Callable[[], bool]:
    def should_stop() -> bool:
        best: float | None = None
        best_step = 0
        for step, value in _metric(folder, name, min_steps):
            if best is None or better(value, best):
                best, best_step = value, step
            if step - best_step >= patience:
                return True
        return False

    return should_stop
