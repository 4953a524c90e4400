"""Hooks that stop, log, wait and feed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from tfray.formats.events import Summary
from tfray.framework.arguments import Count, NonNegative, StepNumber, Steps, checked
from tfray.framework.graph import get_default_graph
from tfray.library.inspect.event_writer import FileWriter, FileWriterCache
from tfray.library.platform import logging
from tfray.training.sessions.session_run_hook import SessionRunArgs, SessionRunContext, SessionRunHook, SessionRunValues
from tfray.training.threads.global_step import get_or_create_global_step, get_or_create_global_step_read

_POLL_S: Final = 0.5
"""Seconds between two looks of `GlobalStepWaiterHook` at the global step."""


class SecondOrStepTimer:
    """Tells when something is due, once in so many seconds or steps.

    Args:
        every_secs: Seconds from one time to the next.
        every_steps: Steps from one time to the next.

    Raises:
        ValueError: Both are given, or neither.
    """

    @checked
    def __init__(self, every_secs: NonNegative | None = None, every_steps: Steps | None = None) -> None:
        if (every_secs is None) == (every_steps is None):
            raise ValueError("something is due either every so many seconds or every so many steps: give one of them")
        self._every_secs = every_secs
        self._every_steps = every_steps
        self.reset()

    def reset(self) -> None:
        """Forget the last time, so that it is due at the next step."""
        self._last_step: int | None = None
        self._last_time = 0.0

    def should_trigger_for_step(self, step: int) -> bool:
        """Whether it is due at a step. It is always due at the first step for which this is called."""
        if self._last_step is None:
            return True
        if step == self._last_step:
            return False
        if self._every_secs is not None:
            return time.monotonic() >= self._last_time + self._every_secs
        return step >= self._last_step + (self._every_steps or 0)

    def update_last_triggered_step(self, step: int) -> tuple[float | None, int | None]:
        """Note a step as the last one at which it was due.

        Returns:
            Seconds and steps since the time before; None and None if this is the first.
        """
        now = time.monotonic()
        elapsed = (None, None) if self._last_step is None else (now - self._last_time, step - self._last_step)
        self._last_step, self._last_time = step, now
        return elapsed

    def last_triggered_step(self) -> int | None:
        """The last step at which it was due, or None."""
        return self._last_step


class NeverTriggerTimer(SecondOrStepTimer):
    """A timer that is never due."""

    def __init__(self) -> None:
        super().__init__(every_steps=1)

    def should_trigger_for_step(self, step: int) -> bool:
        """False."""
        return False


def require_global_step(what: str) -> Any:
    """The global step of the current graph, as it is before a step. Raises `RuntimeError` when there is none."""
    step = get_or_create_global_step_read()
    if step is None:
        raise RuntimeError(f"{what} needs a global step: call tf.train.get_or_create_global_step() in the model")
    return step


class StopAtStepHook(SessionRunHook):
    """Stops after a number of steps, or at a step.

    Args:
        num_steps: How many steps to make from where the session begins.
        last_step: The global step at which to stop.

    Raises:
        ValueError: Both are given, or neither.
    """

    @checked
    def __init__(self, num_steps: Steps | None = None, last_step: StepNumber | None = None) -> None:
        if (num_steps is None) == (last_step is None):
            raise ValueError("StopAtStepHook takes either num_steps or last_step")
        self._num_steps = num_steps
        self._last_step = last_step

    def begin(self) -> None:
        self._global_step = require_global_step("StopAtStepHook")

    def after_create_session(self, session: Any, coord: Any) -> None:
        if self._last_step is None:  # after a recovery the last step stays
            self._last_step = int(session.run(self._global_step)) + (self._num_steps or 0)

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(self._global_step)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        last = self._last_step or 0
        # The fetched value may be the one from before the step: read it again when the end is near.
        if run_values.results + 1 >= last and run_context.session.run(self._global_step) >= last:
            run_context.request_stop()


class LoggingTensorHook(SessionRunHook):
    """Logs values of tensors, by `tf.logging.info`.

    Args:
        tensors: The tensors by the names to show, or a list of tensors or their names.
        every_n_iter: Steps of this session from one message to the next.
        every_n_secs: Seconds from one message to the next.
        at_end: Log when the session ends.
        formatter: Function from a dictionary of values, by name, to the message.

    Raises:
        ValueError: Not exactly one of `every_n_iter` and `every_n_secs` is given (with `at_end`, none may be).
    """

    @checked
    def __init__(
        self,
        tensors: Mapping[str, Any] | Sequence[Any],
        every_n_iter: Steps | None = None,
        every_n_secs: NonNegative | None = None,
        at_end: bool = False,
        formatter: Callable[[dict[str, Any]], str] | None = None,
    ) -> None:
        only_at_end = at_end and every_n_iter is None and every_n_secs is None
        if not only_at_end and (every_n_iter is None) == (every_n_secs is None):
            raise ValueError("LoggingTensorHook takes either every_n_iter or every_n_secs")
        names = tensors if isinstance(tensors, Mapping) else {_name(tensor): tensor for tensor in tensors}
        self._tensors = dict(names)
        self._formatter = formatter
        self._at_end = at_end
        self._timer = NeverTriggerTimer() if only_at_end else SecondOrStepTimer(every_n_secs, every_n_iter)

    def begin(self) -> None:
        self._timer.reset()
        self._steps = 0
        graph = get_default_graph()
        self._fetches = {name: graph.as_graph_element(tensor) for name, tensor in self._tensors.items()}

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        self._due = self._timer.should_trigger_for_step(self._steps)
        return SessionRunArgs(self._fetches) if self._due else None

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        if self._due:
            self._log(run_values.results)
        self._steps += 1

    def end(self, session: Any) -> None:
        if self._at_end:
            self._log(session.run(self._fetches))

    def _log(self, values: dict[str, Any]) -> None:
        elapsed_s, _ = self._timer.update_last_triggered_step(self._steps)
        if self._formatter is not None:
            logging.info("%s", self._formatter(values))
            return
        shown = ", ".join(f"{name} = {values[name]}" for name in self._tensors)
        logging.info("%s%s", shown, "" if elapsed_s is None else f" ({elapsed_s:.3f} sec)")


def _name(tensor: Any) -> str:
    return tensor if isinstance(tensor, str) else str(tensor.name)


class NanLossDuringTrainingError(RuntimeError):
    """The loss has become NaN."""

    def __init__(self, name: str = "loss") -> None:
        super().__init__(f"NaN loss during training: {name} is not a number; the learning rate may be too high")


class NanTensorHook(SessionRunHook):
    """Stops training when the loss is not a number.

    Args:
        loss_tensor: The loss.
        fail_on_nan_loss: Raise `NanLossDuringTrainingError`; otherwise log the failure and stop.
    """

    @checked
    def __init__(self, loss_tensor: Any, fail_on_nan_loss: bool = True) -> None:
        self._loss = loss_tensor
        self._fail = fail_on_nan_loss

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(self._loss)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        if np.isnan(run_values.results).any():
            error = NanLossDuringTrainingError(_name(self._loss))
            if self._fail:
                raise error
            logging.error("%s", error)
            run_context.request_stop()


class StepCounterHook(SessionRunHook):
    """Logs and records how many steps are made in a second, as ``global_step/sec``.

    Args:
        every_n_steps: Steps from one time to the next.
        every_n_secs: Seconds from one time to the next; `every_n_steps` must be None then.
        output_dir: Folder of the event file; none is written when this and `summary_writer` are None.
        summary_writer: Writes the event file.
    """

    @checked
    def __init__(
        self,
        every_n_steps: Steps | None = 100,
        every_n_secs: NonNegative | None = None,
        output_dir: str | None = None,
        summary_writer: FileWriter | None = None,
    ) -> None:
        self._timer = SecondOrStepTimer(every_n_secs, every_n_steps)
        self._output_dir = output_dir
        self._writer = summary_writer
        self._last_seen: int | None = None
        self._warned = False

    def begin(self) -> None:
        if self._writer is None and self._output_dir:
            self._writer = FileWriterCache.get(self._output_dir)
        self._global_step = require_global_step("StepCounterHook")
        self._tag = f"{get_or_create_global_step().op.name}/sec"

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(self._global_step)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        before = int(run_values.results)
        if self._timer.should_trigger_for_step(before + 1):
            step = int(run_context.session.run(self._global_step))
            if self._timer.should_trigger_for_step(step):
                elapsed_s, steps = self._timer.update_last_triggered_step(step)
                if elapsed_s is not None and steps is not None:
                    self._log_and_record(elapsed_s, steps, step)
        if self._last_seen == before and not self._warned:
            self._warned = True
            logging.warning("the global step stays at %d: does the training operation increase it?", before)
        self._last_seen = before

    def _log_and_record(self, elapsed_secs: float, elapsed_steps: int, global_step: int) -> None:
        rate = elapsed_steps / max(elapsed_secs, 1e-9)
        logging.info("%s: %g", self._tag, rate)
        if self._writer is not None:
            self._writer.add_summary(Summary(value=[Summary.Value(tag=self._tag, simple_value=rate)]), global_step)


class GlobalStepWaiterHook(SessionRunHook):
    """Delays the first step until the global step, which other workers increase, has reached a value.

    Args:
        wait_until_step: The value.
    """

    @checked
    def __init__(self, wait_until_step: Count) -> None:
        self._wait_until_step = wait_until_step
        self._reached = wait_until_step <= 0

    def begin(self) -> None:
        self._global_step = require_global_step("GlobalStepWaiterHook")

    def after_create_session(self, session: Any, coord: Any) -> None:
        self._coord = coord

    def before_run(self, run_context: SessionRunContext) -> None:
        while not self._reached:
            step = int(run_context.session.run(self._global_step))
            if step >= self._wait_until_step:
                self._reached = True
                return
            logging.log_every_n(logging.INFO, "waiting for global step %d, now %d", 60, self._wait_until_step, step)
            if self._coord.wait_for_stop(_POLL_S):
                return


class FinalOpsHook(SessionRunHook):
    """Runs operations when the session ends.

    Args:
        final_ops: Operations and tensors to run, as for `tf.Session.run`.
        final_ops_feed_dict: Values for tensors.
    """

    @checked
    def __init__(self, final_ops: Any, final_ops_feed_dict: Mapping[Any, Any] | None = None) -> None:
        self._final_ops = final_ops
        self._feed_dict = final_ops_feed_dict
        self._values: Any = None

    @property
    def final_ops_values(self) -> Any:
        """The values, once the session has ended."""
        return self._values

    def end(self, session: Any) -> None:
        if self._final_ops is not None:
            self._values = session.run(self._final_ops, self._feed_dict)


class FeedFnHook(SessionRunHook):
    """Feeds the values that a function returns, in each step.

    Args:
        feed_fn: Function without arguments that returns a dictionary, as for `tf.Session.run`.
    """

    @checked
    def __init__(self, feed_fn: Callable[[], Mapping[Any, Any]]) -> None:
        self._feed_fn = feed_fn

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(None, self._feed_fn())
