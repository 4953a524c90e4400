"""Hooks that save: checkpoints, summaries, and traces of steps."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Annotated, Any, Final

from tfray.errors import InvalidArgumentError
from tfray.formats import files
from tfray.formats.events import SessionLog
from tfray.formats.step_stats import RunMetadata
from tfray.framework.arguments import NonNegative, OneOf, Steps, checked
from tfray.framework.graph import get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.library.inspect.event_writer import FileWriter, FileWriterCache
from tfray.library.inspect.timeline import Timeline
from tfray.library.platform import logging
from tfray.library.platform.graph_files import write_graph
from tfray.options import RunOptions
from tfray.training.checkpoints.checkpoint_interval import AutomaticInterval, FailureRecord
from tfray.training.checkpoints.folder_lock import SharedLock
from tfray.training.sessions.hooks import SecondOrStepTimer, require_global_step
from tfray.training.sessions.session_run_hook import SessionRunArgs, SessionRunContext, SessionRunHook, SessionRunValues

AUTOMATIC: Final = "automatic"
Automatic = Annotated[str, OneOf((AUTOMATIC,))]
"""In place of seconds between checkpoints: choose them from the measured cost of a save and the failures so far."""

_ASSUMED_MEAN_TIME_BETWEEN_FAILURES_S: Final = 86400.0  # a day, until failures were seen


class AutomaticTimer(SecondOrStepTimer):
    """Tells when a checkpoint is due by Young and Daly's formula."""

    def __init__(self) -> None:
        super().__init__(every_secs=0.0)
        self._failures = FailureRecord(_ASSUMED_MEAN_TIME_BETWEEN_FAILURES_S)
        self._interval = AutomaticInterval(self._failures)
        self._since = time.monotonic()

    def should_trigger_for_step(self, step: int) -> bool:
        """Whether it is due at a step."""
        self._every_secs = self._interval.seconds
        return super().should_trigger_for_step(step)

    def saved(self, pause_s: float) -> None:
        """Record how long training paused for a save."""
        now = time.monotonic()
        self._failures.trained_s += now - self._since
        self._since = now
        self._interval.saved(pause_s, pause_s)

    def failed(self) -> None:
        """Record that state was lost."""
        self._failures.failures += 1


class CheckpointSaverListener:
    """Code that runs around each save of a `CheckpointSaverHook`. Override what is needed."""

    def begin(self) -> None:
        """Called before the session is made."""

    def before_save(self, session: Any, global_step_value: int) -> None:
        """Called before a checkpoint is saved."""

    def after_save(self, session: Any, global_step_value: int) -> bool | None:
        """Called after a checkpoint was saved. Return True to ask training to stop."""

    def end(self, session: Any, global_step_value: int) -> None:
        """Called when the session ends, after the last save."""


class CheckpointSaverHook(SessionRunHook):
    """Saves checkpoints: when the session begins, every so many steps or seconds, and when it ends.

    Args:
        checkpoint_dir: Folder of the checkpoints.
        save_secs: Seconds from one to the next; ``"automatic"`` for the interval that loses least time, by the measured
            cost of a save and the failures seen so far (Young and Daly's formula).
        save_steps: Steps from one to the next.
        saver: The saver; that of `scaffold`, or the one in ``GraphKeys.SAVERS``, when None.
        checkpoint_basename: The beginning of their names.
        scaffold: A scaffold with a saver.
        listeners: Called around each save.
        save_graph_def: Whether to write the graph, as text, beside them.

    One process at a time saves in a folder. The hook takes its lock when it begins, and gives it back when its session
    is closed.

    Raises:
        ValueError: Both `saver` and `scaffold` are given, or not one of `save_secs` and `save_steps`.
        FailedPreconditionError: By `begin`: another process saves in the folder.
    """

    @checked
    def __init__(
        self,
        checkpoint_dir: files.PathLike,
        save_secs: NonNegative | Automatic | None = None,
        save_steps: Steps | None = None,
        saver: Any = None,
        checkpoint_basename: str = "model.ckpt",
        scaffold: Any = None,
        listeners: Sequence[CheckpointSaverListener] | None = None,
        save_graph_def: bool = True,
    ) -> None:
        if saver is not None and scaffold is not None:
            raise ValueError("CheckpointSaverHook takes a saver or a scaffold, not both")
        self._folder = files.given_path(checkpoint_dir, "checkpoint_dir")
        self._path = f"{self._folder.rstrip('/')}/{checkpoint_basename}"
        self._saver = saver
        self._scaffold = scaffold
        self._listeners = list(listeners or ())
        self._save_graph_def = save_graph_def
        self._timer = _timer_for(save_secs, save_steps)
        self._lock = SharedLock(self._folder)

    def begin(self) -> None:
        self._lock.take()
        self._sessions = 0
        self._summary_writer = FileWriterCache.get(self._folder)
        self._global_step = require_global_step("CheckpointSaverHook")
        for listener in self._listeners:
            listener.begin()

    def after_create_session(self, session: Any, coord: Any) -> None:
        self._sessions += 1
        if self._sessions > 1 and isinstance(self._timer, AutomaticTimer):
            self._timer.failed()
        step = int(session.run(self._global_step))
        if self._sessions == 1:
            self._write_graph()
        self._save(session, step)
        self._timer.update_last_triggered_step(step)

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(self._global_step)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        if self._timer.should_trigger_for_step(int(run_values.results) + 1):
            step = int(run_context.session.run(self._global_step))
            if self._timer.should_trigger_for_step(step):
                self._timer.update_last_triggered_step(step)
                if self._save(run_context.session, step):
                    run_context.request_stop()

    def end(self, session: Any) -> None:
        step = int(session.run(self._global_step))
        if step != self._timer.last_triggered_step():
            self._save(session, step)
        wait = getattr(self._get_saver(), "wait", None)
        if wait is not None:  # an asynchronous saver may still be writing
            wait()
        for listener in self._listeners:
            listener.end(session, step)

    def unlock(self) -> None:
        """Let other processes save in the folder: the session is closed, perhaps by an error."""
        self._lock.release()

    def _write_graph(self) -> None:
        graph = get_default_graph()
        if self._save_graph_def:
            write_graph(graph, self._folder, "graph.pbtxt")
        self._summary_writer.add_graph(graph)

    def _save(self, session: Any, step: int) -> bool:
        """Save a checkpoint; returns whether a listener asks to stop."""
        for listener in self._listeners:
            listener.before_save(session, step)
        self._lock.check()
        logging.info("Saving checkpoints for %d into %s.", step, self._path)
        started = time.monotonic()
        saved = self._get_saver().save(session, self._path, global_step=step)
        if isinstance(self._timer, AutomaticTimer):
            self._timer.saved(time.monotonic() - started)
        log = SessionLog(status=SessionLog.CHECKPOINT, checkpoint_path=str(saved or self._path))
        self._summary_writer.add_session_log(log, step)
        answers = [listener.after_save(session, step) for listener in self._listeners]
        return any(answers)

    def _get_saver(self) -> Any:
        if self._saver is None:
            self._saver = None if self._scaffold is None else self._scaffold.saver
        if self._saver is None:
            found = get_default_graph().get_collection(GraphKeys.SAVERS)
            if len(found) != 1:
                raise InvalidArgumentError(
                    f"the graph has {len(found)} savers in GraphKeys.SAVERS: give CheckpointSaverHook one as saver"
                )
            self._saver = found[0]
        return self._saver


def _timer_for(save_secs: NonNegative | Automatic | None, save_steps: int | None) -> SecondOrStepTimer:
    if not isinstance(save_secs, str):
        return SecondOrStepTimer(save_secs, save_steps)
    if save_steps is not None:
        raise ValueError(f"save_secs is {save_secs!r} with save_steps {save_steps}: give one of them")
    return AutomaticTimer()


class SummarySaverHook(SessionRunHook):
    """Runs summaries every so many steps or seconds and writes them into an event file.

    Args:
        save_steps: Steps from one time to the next.
        save_secs: Seconds from one time to the next.
        output_dir: Folder of the event file.
        summary_writer: Writes it; made for `output_dir` when None.
        scaffold: A scaffold with a summary operation.
        summary_op: A summary, or a list of summaries.

    Raises:
        ValueError: Not exactly one of `scaffold` and `summary_op` is given, or not one of the intervals.
    """

    @checked
    def __init__(
        self,
        save_steps: Steps | None = None,
        save_secs: NonNegative | None = None,
        output_dir: files.PathLike | None = None,
        summary_writer: FileWriter | None = None,
        scaffold: Any = None,
        summary_op: Any = None,
    ) -> None:
        if (scaffold is None) == (summary_op is None):
            raise ValueError("SummarySaverHook takes a scaffold or a summary_op")
        self._summary_op = summary_op
        self._scaffold = scaffold
        self._output_dir = output_dir
        self._summary_writer = summary_writer
        self._timer = SecondOrStepTimer(save_secs, save_steps)

    def begin(self) -> None:
        if self._summary_writer is None and self._output_dir is not None:
            self._summary_writer = FileWriterCache.get(self._output_dir)
        self._next_step: int | None = None
        self._global_step = require_global_step("SummarySaverHook")

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        self._due = self._next_step is None or self._timer.should_trigger_for_step(self._next_step)
        fetches = {"global_step": self._global_step}
        if self._due and (summaries := self._summaries()):
            fetches["summary"] = summaries
        return SessionRunArgs(fetches)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        if self._summary_writer is None:
            return
        step = int(run_values.results["global_step"]) + 1
        if self._next_step is None or self._due:
            step = int(run_context.session.run(self._global_step))
        if self._next_step is None:
            self._summary_writer.add_session_log(SessionLog(status=SessionLog.START), step)
        if self._due:
            self._timer.update_last_triggered_step(step)
            for summary in run_values.results.get("summary", ()):
                self._summary_writer.add_summary(summary, step)
        self._next_step = step + 1

    def end(self, session: Any = None) -> None:
        if self._summary_writer is not None:
            self._summary_writer.flush()

    def _summaries(self) -> list[Any]:
        found = self._scaffold.summary_op if self._summary_op is None else self._summary_op
        if found is None:
            return []
        return list(found) if isinstance(found, (list, tuple)) else [found]


class ProfilerHook(SessionRunHook):
    """Traces a step every so many steps or seconds, and writes it as ``timeline-<step>.json`` for chrome://tracing.

    Args:
        save_steps: Steps from one time to the next.
        save_secs: Seconds from one time to the next.
        output_dir: Folder of the files, and of an event file by which TensorBoard shows the steps in the graph; the
            current one when ``""``.
        show_dataflow: Draw what flows from operation to operation.
        show_memory: Draw memory.
    """

    @checked
    def __init__(
        self,
        save_steps: Steps | None = None,
        save_secs: NonNegative | None = None,
        output_dir: files.PathLike = "",
        show_dataflow: bool = True,
        show_memory: bool = False,
    ) -> None:
        self._folder = files.given_path(output_dir, "output_dir") if output_dir != "" else "."
        self._summary_writer = FileWriterCache.get(self._folder)
        self._show = {"show_dataflow": show_dataflow, "show_memory": show_memory}
        self._timer = SecondOrStepTimer(save_secs, save_steps)

    def begin(self) -> None:
        self._next_step: int | None = None
        self._global_step = require_global_step("ProfilerHook")

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        # The first step is compiled, so its times are of little use.
        self._due = self._next_step is not None and self._timer.should_trigger_for_step(self._next_step)
        options = RunOptions(trace_level=RunOptions.FULL_TRACE) if self._due else None
        return SessionRunArgs(self._global_step, options=options)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        step = int(run_values.results) + 1
        if self._next_step is None:
            self._timer.update_last_triggered_step(step)
        if self._due:
            step = int(run_context.session.run(self._global_step))
            self._timer.update_last_triggered_step(step)
            self._save(step, run_values.run_metadata)
        self._next_step = step + 1

    def _save(self, step: int, run_metadata: RunMetadata) -> None:
        path = f"{self._folder.rstrip('/')}/timeline-{step}.json"
        trace = Timeline(run_metadata.step_stats).generate_chrome_trace_format(**self._show)
        files.write_bytes(path, trace.encode())
        logging.info("wrote the timeline of step %d: %s", step, path)
        self._summary_writer.add_run_metadata(run_metadata, f"step_{step}", step)

    def end(self, session: Any) -> None:
        self._summary_writer.flush()
