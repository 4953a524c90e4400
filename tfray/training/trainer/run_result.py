"""What a `Trainer`'s run has produced."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tfray.errors import NotFoundError
from tfray.library.inspect.notebook import chosen, curves_html
from tfray.training.trainer.run_events import RunEvent
from tfray.training.trainer.run_statistics import RunStatistics
from tfray.training.trainer.step_history import StepHistory

_COLUMNS: Final = ("duration_s", "live", "dropped", "staleness")
"""Attributes of `StepRecord` that have a column beside the metrics."""


@dataclass(frozen=True)
class SavedCheckpoint:
    """A checkpoint that is complete.

    Attributes:
        path: Its path, for `RunConfig.resume_from`, `tf.train.load_checkpoint` or a `Saver`.
        step: How many steps of the run are in it.
    """

    path: str
    step: int


@dataclass(frozen=True, repr=False)
class Result:
    """What training has produced.

    Attributes:
        metrics: Loss and metrics of the last step.
        history: A sequence with one `StepRecord` per step. A resumed run has only the steps since it was resumed.
        variables: Final value of every variable, by name.
        dropped: Late gradients that were dropped.
        duration_s: Seconds from the first step to the last.
        logdir: Folder of TensorBoard's event file, or None.
        events: What happened beside the steps: workers replaced, data lost, and so on.
        checkpoint: The newest checkpoint of the run; None without one. A run that had nothing left to do has the one
            that it went on from.
    """

    metrics: dict[str, float]
    history: StepHistory
    variables: dict[str, np.ndarray[Any, Any]]
    dropped: int
    duration_s: float
    logdir: str | None = None
    events: Sequence[RunEvent] = ()
    checkpoint: SavedCheckpoint | None = None

    @property
    def steps(self) -> int:
        """Number of steps that were applied."""
        return len(self.history)

    @property
    def statistics(self) -> RunStatistics:
        """Step times, also of each replica, and how often gradients, workers or data were lost."""
        return RunStatistics.of(self.history, self.events)

    @property
    def metrics_dataframe(self) -> Any:
        """The history as a `pandas.DataFrame`: a row for each step, by number.

        It has a column for each metric, and ``duration_s``, ``live``, ``dropped`` and ``staleness`` of `StepRecord`. A
        metric of one of these names takes its place.

        Raises:
            NotFoundError: pandas is not installed.
        """
        try:
            import pandas
        except ImportError as error:
            raise NotFoundError("Result.metrics_dataframe needs pandas: pip install pandas") from error
        rows = [{name: getattr(record, name) for name in _COLUMNS} | record.metrics for record in self.history]
        steps = [record.step for record in self.history]
        names = [*self.metrics, *(name for name in _COLUMNS if name not in self.metrics)]
        return pandas.DataFrame(rows, index=pandas.Index(steps, name="step"), columns=names)

    def _repr_html_(self) -> str:
        """The curves of loss, metrics and step times, as a notebook shows them."""
        records = [self.history[position] for position in chosen(len(self.history))]
        curves = {name: [record.metrics.get(name, math.nan) for record in records] for name in self.metrics}
        curves["milliseconds per step"] = [record.duration_s * 1e3 for record in records]
        title = f"{self.steps} steps in {self.duration_s:.1f} s, {self.dropped} late gradients dropped"
        return curves_html(title, [record.step for record in records], curves)

    def __repr__(self) -> str:
        size_bytes = sum(array.nbytes for array in self.variables.values())
        return (
            f"Result(metrics={self.metrics}, history={self.history}, "
            f"variables=<{len(self.variables)} of {size_bytes:,} bytes>, dropped={self.dropped}, "
            f"duration_s={self.duration_s:.6g}, logdir={self.logdir!r}, events=<{len(self.events)}>, "
            f"checkpoint={self.checkpoint})"
        )
