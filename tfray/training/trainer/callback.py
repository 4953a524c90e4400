"""Callbacks of a `Trainer`'s run: what a program hears while it trains."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tfray.errors import FailedPreconditionError, UnknownError
from tfray.library.platform import logging
from tfray.training.trainer.run_events import RunEvent
from tfray.training.trainer.run_result import Result, SavedCheckpoint
from tfray.training.trainer.step_history import StepRecord


def _no_run(parameter_servers: int) -> None:
    raise FailedPreconditionError("there is no run whose parameter servers could change")


@dataclass(frozen=True)
class RunStart:
    """What is known when a run begins.

    Attributes:
        step: How many steps are done already: those of `checkpoint`, or 0.
        steps: `RunConfig.steps`.
        checkpoint: The checkpoint from which the run goes on; None if it begins from initial values.
        logdir: Folder of TensorBoard's event file, or None.
        scale: Changes the number of parameter servers, now or later in the run: `Trainer.scale` of its trainer.
    """

    step: int
    steps: int
    checkpoint: SavedCheckpoint | None = None
    logdir: str | None = None
    scale: Callable[[int], None] = field(default=_no_run, repr=False, compare=False)


class Callback:
    """Hears of a run. Derive a class from it, override what it should hear, and give it to `RunConfig.callbacks`.

    All methods are called on the driver, in the thread of `Trainer.fit`; of several callbacks, in their order. Training
    waits for them, and so a step that takes long may be one after a slow callback. None of them costs anything that is
    not overridden.

    An exception ends the run with an `UnknownError` that names the callback and what it was told, and whose cause is
    the exception. `KeyboardInterrupt` and `SystemExit` end it as they are.

    Example:
        >>> class Patience(tf.train.Callback):
        ...     def on_step(self, record):
        ...         if record.step > 100 and record.metrics["loss"] > 10:
        ...             raise ValueError("it does not learn")
        >>> tf.train.RunConfig(callbacks=[Patience()])
    """

    def on_start(self, start: RunStart) -> None:
        """The variables have their values, and no step of this run has been taken."""

    def on_step(self, record: StepRecord) -> None:
        """A step has ended. After a return to a checkpoint, steps that were lost are told again."""

    def on_checkpoint(self, checkpoint: SavedCheckpoint) -> None:
        """A checkpoint is complete. Its step may be past: checkpoints are written while training goes on."""

    def on_worker_lost(self, event: RunEvent) -> None:
        """A worker has died, or was given up because it did not answer. The event's message says what happens next."""

    def on_end(self, result: Result | None, error: BaseException | None) -> None:
        """The run is over, and its actors have ended; called if `on_start` was.

        Args:
            result: What `Trainer.fit` will return; None if the run has failed.
            error: The exception with which it has failed, or None. If this method fails as well, that is only logged.
        """


EVENTS: Final = ("on_start", "on_step", "on_checkpoint", "on_worker_lost", "on_end")


class RunCallbacks:
    """The callbacks of one run.

    Args:
        callbacks: They are called in this order.
        steps: How many steps the run is to have.
        logdir: Folder of its event file.
        scale: See `RunStart.scale`.

    Attributes:
        on_step: The calls that want to hear of steps.
        on_checkpoint: Of checkpoints.
        on_worker_lost: Of workers that are lost.
    """

    def __init__(
        self, callbacks: Sequence[Callback], steps: int, logdir: str | None, scale: Callable[[int], None] = _no_run
    ) -> None:
        self._steps, self._logdir, self._scale = steps, logdir, scale
        self._start, self.on_step, self.on_checkpoint, self.on_worker_lost, self._end = (
            _calls(callbacks, event) for event in EVENTS
        )
        self._started = False

    def start(self, checkpoint: SavedCheckpoint | None) -> None:
        """Tell of the start, from a checkpoint or from initial values. It is told once in a run."""
        if not self._started:
            self._started = True
            step = 0 if checkpoint is None else checkpoint.step
            tell(self._start, RunStart(step, self._steps, checkpoint, self._logdir, self._scale))

    def end(self, result: Result | None, error: BaseException | None = None) -> None:
        """Tell of the end, if the start was told. All callbacks hear of it, even if one of them fails."""
        if not self._started:
            return
        failed: UnknownError | None = None
        for call in self._end:
            try:
                call(result, error)
            except UnknownError as failure:
                failed = failed or failure
                if error is not None or failure is not failed:
                    logging.warning("%s", failure.message)
        if failed is not None and error is None:
            raise failed


def tell(calls: Sequence[Callable[[Any], None]], what: Any) -> None:
    """Tell callbacks of something, in their order."""
    for call in calls:
        call(what)


def _calls(callbacks: Sequence[Callback], event: str) -> tuple[Callable[..., None], ...]:
    """The methods for an event that are overridden, each with its name in the errors that it raises."""
    ignored = getattr(Callback, event)
    methods = ((each, getattr(each, event)) for each in callbacks)
    return tuple(_named(each, event, call) for each, call in methods if getattr(call, "__func__", None) is not ignored)


def _named(callback: Callback, event: str, call: Callable[..., None]) -> Callable[..., None]:
    def told(*what: Any) -> None:
        try:
            call(*what)
        except Exception as error:
            step = getattr(what[0], "step", None)
            when = "" if event == "on_end" or step is None else f" for step {step}"
            raise UnknownError(
                f"the callback {type(callback).__name__} failed in {event}{when}: {type(error).__name__}: {error}"
            ) from error

    return told
