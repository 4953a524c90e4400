"""What a `Trainer` tells TensorBoard while it trains: graph, loss, metrics, speed, replicas, the model's summaries."""

from __future__ import annotations

import os
import time
from types import TracebackType
from typing import TYPE_CHECKING, Final

from tfray.errors import OpError
from tfray.formats import files
from tfray.formats.events import Event, LogMessage, SessionLog, Summary
from tfray.framework.graph import Graph
from tfray.library.inspect.event_writer import FileWriter
from tfray.library.platform import logging
from tfray.training.trainer.run_events import RunEvent

if TYPE_CHECKING:
    from tfray.training.trainer.step_history import StepRecord

FOLDER_VARIABLE: Final = "TFRAY_LOGDIR"
"""Environment variable: the folder in which runs without a `logdir` make theirs. If it is empty, they make none."""

INTERVAL_S: Final = 0.1
"""Seconds between two writings of numbers, at least: a step may take less time than writing its numbers."""


def run_folder(logdir: files.PathLike | None) -> str | None:
    """The folder of a run's event file: `logdir`; for ``""`` a new folder; None for no file, or if none can be made."""
    if logdir is None:
        return None
    folder = files.given_path(logdir, "logdir") if logdir != "" else ""
    base = os.environ.get(FOLDER_VARIABLE, "runs")
    if folder or not base:
        return folder or None
    start = f"{base.rstrip('/')}/{time.strftime('%Y%m%d-%H%M%S')}"
    path, number = start, 1
    while files.exists(path):
        number += 1
        path = f"{start}-{number}"
    try:
        files.make_folders(path)
    except OpError as error:  # only a warning: the user has not asked for this folder
        logging.warning("training is not logged for TensorBoard: %s", error.message)
        return None
    return path


class RunLog:
    """The event file of one run. Use it in a ``with`` block.

    Args:
        folder: Its folder; None for no event file.
        graph: The model's graph.
    """

    def __init__(self, folder: str | None, graph: Graph) -> None:
        self._writer = None if folder is None else FileWriter(folder, graph)
        self._last: StepRecord | None = None
        """The record that was written last."""
        self._pending: StepRecord | None = None
        """A later record that is not written yet."""
        self._time = time.monotonic()

    def observe(self, record: StepRecord) -> None:
        """Write a step's numbers, unless those of another step were written less than `INTERVAL_S` ago."""
        if self._writer is None:
            return
        if record.trace is not None:
            self._writer.add_run_metadata(record.trace, f"step_{record.step}", record.step)
        if record.summary:
            self._writer.add_summary(record.summary, record.step)
        self._pending = record
        if self._last is None or time.monotonic() - self._time >= INTERVAL_S:
            self._write(record)

    def note(self, event: RunEvent) -> None:
        """Write what has happened beside the steps."""
        if self._writer is not None:
            message = LogMessage(level=LogMessage.WARN, message=event.message)
            self._writer.add_event(Event(wall_time=time.time(), step=event.step, log_message=message))

    def _write(self, record: StepRecord) -> None:
        assert self._writer is not None
        now = time.monotonic()
        numbers = dict(record.metrics)
        if self._last is not None:
            numbers["global_step/sec"] = (record.step - self._last.step) / max(now - self._time, 1e-9)
        else:
            self._writer.add_session_log(SessionLog(status=SessionLog.START), record.step)
        numbers |= {"replicas/live": record.live, "replicas/dropped": record.dropped}
        values = [Summary.Value(tag=tag, simple_value=float(number)) for tag, number in numbers.items()]
        self._writer.add_summary(Summary(value=values), record.step)
        self._last, self._pending, self._time = record, None, now

    def __enter__(self) -> RunLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._writer is not None:
            if self._pending is not None:
                self._write(self._pending)
            self._writer.add_session_log(SessionLog(status=SessionLog.STOP))
            self._writer.close()
