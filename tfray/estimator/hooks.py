"""Hooks that belong to an estimator: evaluation while it trains, and the end of all workers together."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from tfray.estimator import evaluation
from tfray.estimator.estimator import Estimator, InputFn
from tfray.estimator.spec import checked_hooks
from tfray.framework.arguments import checked
from tfray.framework.graph import Graph, get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.training.sessions.hooks import SecondOrStepTimer, StopAtStepHook, require_global_step
from tfray.training.sessions.scaffold import Scaffold
from tfray.training.sessions.session_run_hook import SessionRunArgs, SessionRunContext, SessionRunHook, SessionRunValues


class InMemoryEvaluatorHook(SessionRunHook):
    """Evaluates while the model trains, with the values that its variables have: no checkpoint is needed.

    It evaluates before the first step, every so many steps, and in the end.

    Args:
        estimator: The estimator.
        input_fn: As of `Estimator.evaluate`.
        steps: Batches of an evaluation; all when None.
        hooks: Hooks around the batches.
        name: Name of the evaluations: their results are written into ``eval_NAME``.
        every_n_iter: Steps from one evaluation to the next.

    Raises:
        ValueError: `every_n_iter` is not positive, or the estimator is one of a cluster.
    """

    @checked
    def __init__(
        self,
        estimator: Estimator,
        input_fn: InputFn,
        steps: int | None = None,
        hooks: Sequence[SessionRunHook] | None = None,
        name: str | None = None,
        every_n_iter: int = 100,
    ) -> None:
        if not every_n_iter or every_n_iter <= 0:
            raise ValueError(f"every_n_iter is {every_n_iter}, expected more than 0")
        if estimator.config.num_ps_replicas > 0 or estimator.config.num_worker_replicas > 1:
            raise ValueError(
                "InMemoryEvaluatorHook supports only single machine (aka Local) setting: it reads the variables of "
                "this process, and a cluster has others too"
            )
        self._estimator = estimator
        self._input_fn = input_fn
        self._hooks = list(checked_hooks(hooks, "hooks"))
        if steps is not None:
            self._hooks.append(evaluation.StopAfterBatchesHook(steps))
        self._folder = estimator.eval_dir(name)
        self._timer = SecondOrStepTimer(every_steps=every_n_iter)

    def begin(self) -> None:
        self._timer.reset()
        self._count = 0
        self._variables = {v.op.name: v for v in get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES)}
        self._graph = Graph()
        with self._graph.as_default():
            self._evaluation = self._estimator._add_evaluation(self._input_fn, self._hooks)
            scaffold = self._evaluation.scaffold
            for what, given in (("saver", scaffold.saver), ("init_fn", scaffold.init_fn)):
                if given is not None:
                    raise ValueError(f"InMemoryEvaluator does not support custom {what}: it sets variables itself")

    def after_create_session(self, session: Any, coord: Any) -> None:
        self._evaluate(session)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        self._count += 1
        if self._timer.should_trigger_for_step(self._count):
            self._evaluate(run_context.session)

    def end(self, session: Any) -> None:
        self._evaluate(session)

    def _evaluate(self, session: Any) -> None:
        values = session.run(self._variables)

        def set_variables(scaffold: Scaffold, own: Any) -> None:
            for variable in self._graph.get_collection(GraphKeys.GLOBAL_VARIABLES):
                if variable.op.name in values:
                    variable.load(values[variable.op.name], own)

        with self._graph.as_default():
            scaffold = Scaffold(init_fn=set_variables, copy_from_scaffold=self._evaluation.scaffold)
            results = self._evaluation._replace(scaffold=scaffold).run(None, "", None)
        evaluation.write_results(self._folder, results, None)
        self._timer.update_last_triggered_step(self._count)


class StopAtCheckpointStepHook(SessionRunHook):
    """Stops a worker once a checkpoint has reached a step: the chief, which saves, needs no worker any longer.

    Args:
        estimator: The estimator.
        last_step: The global step.
        wait_after_file_check_secs: Seconds to wait before the next step when the checkpoint is not there yet.
    """

    @checked
    def __init__(self, estimator: Estimator, last_step: int, wait_after_file_check_secs: float) -> None:
        self._saved_step: Callable[[], int] = estimator._saved_step
        self._last_step = last_step
        self._wait_s = wait_after_file_check_secs

    def begin(self) -> None:
        self._global_step = require_global_step("StopAtCheckpointStepHook")

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(self._global_step)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        if int(run_values.results) + 1 < self._last_step:
            return
        if self._saved_step() >= self._last_step:
            run_context.request_stop()
        else:
            time.sleep(self._wait_s)


def make_stop_at_checkpoint_step_hook(
    estimator: Estimator, last_step: int, wait_after_file_check_secs: float = 30
) -> SessionRunHook:
    """A hook that stops training at a step: the chief when it is reached, other workers when it is saved.

    Args:
        estimator: The estimator.
        last_step: The global step.
        wait_after_file_check_secs: Seconds from one look for the checkpoint to the next.
    """
    if estimator.config.is_chief:
        return StopAtStepHook(last_step=last_step)
    return StopAtCheckpointStepHook(estimator, last_step, wait_after_file_check_secs)
