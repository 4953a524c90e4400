"""How a training run went: step times, gradients that were dropped, stale or bad, and what was lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tfray.training.trainer.run_events import LOST_DATA, REPLACEMENT, ROLLBACK, RunEvent

if TYPE_CHECKING:
    from tfray.training.trainer.step_history import StepRecord


@dataclass(frozen=True)
class Percentiles:
    """Percentiles of step times, in seconds: half, 90 % and 99 % of all steps took no longer."""

    median_s: float
    p90_s: float
    p99_s: float

    @classmethod
    def of(cls, times_s: Sequence[float]) -> Percentiles:
        """The percentiles of some times, of which there must be one."""
        return cls(*(float(value) for value in np.percentile(times_s, [50, 90, 99])))


@dataclass(frozen=True)
class RunStatistics:
    """How long the steps of a run took, and how often gradients, workers or data were lost.

    Attributes:
        steps: Number of steps.
        dropped: Gradients of backup workers that came too late.
        mean_staleness: Mean number of other replicas' updates between a step's reading of variables and its update.
        max_staleness: The largest such number.
        step: Times of whole steps.
        replicas: Times of each replica's part in the steps that it delivered, by its number. The first step, which
            compiles everything, does not count if there are others.
        bad_gradients: By step, the replicas whose gradients were not finite; see `RunConfig.bad_gradients`.
        replacements: Workers that died and were replaced.
        rollbacks: How often training went back to a checkpoint.
        lost_data: By replica, the first step without its share of the data; see `RunConfig.on_lost_data`.
    """

    steps: int
    dropped: int
    mean_staleness: float
    max_staleness: int
    step: Percentiles
    replicas: dict[int, Percentiles]
    bad_gradients: dict[int, tuple[int, ...]] = field(default_factory=dict)
    replacements: int = 0
    rollbacks: int = 0
    lost_data: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, history: Sequence[StepRecord], events: Sequence[RunEvent] = ()) -> RunStatistics:
        """The statistics of some steps, and of what happened beside them."""
        kinds = [event.kind for event in events]
        lost: dict[int, int] = {}
        for event in events:
            if event.kind == ROLLBACK:
                lost.clear()  # all replicas begin anew at the checkpoint
            elif event.kind == LOST_DATA and event.replica is not None:
                lost[event.replica] = event.step
        counts = kinds.count(REPLACEMENT), kinds.count(ROLLBACK), lost
        if not history:
            nothing = Percentiles(0.0, 0.0, 0.0)
            return cls(0, 0, 0.0, 0, nothing, {}, {}, *counts)
        times: dict[int, list[float]] = {}
        steps_s, staleness, bad = [], [], {}
        for number, record in enumerate(history):
            staleness.append(record.staleness)
            if record.bad_gradients:
                bad[record.step] = tuple(sorted(record.bad_gradients))
            if number == 0 and len(history) > 1:
                continue
            steps_s.append(record.duration_s)
            for replica, took_s in record.replica_s.items():
                times.setdefault(replica, []).append(took_s)
        return cls(
            len(history),
            history[-1].dropped,
            float(np.mean(staleness)),
            max(staleness),
            Percentiles.of(steps_s),
            {replica: Percentiles.of(values) for replica, values in sorted(times.items())},
            bad,
            *counts,
        )
