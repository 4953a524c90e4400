"""Steps of a `Trainer`'s run in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.formats.step_stats import RunMetadata
from tfray.framework.graph import Tensor
from tfray.options import RunOptions
from tfray.placement.contributions import ReplicaOptions
from tfray.session import Session
from tfray.training.input.inputs import Batch
from tfray.training.trainer.bad_gradients import BadGradientsWarning
from tfray.training.trainer.local_replica import LocalReplica
from tfray.training.trainer.model import BuiltModel
from tfray.training.trainer.model_summaries import ModelSummaries
from tfray.training.trainer.run_config import RunConfig
from tfray.training.trainer.step_history import StepRecord

LocalStep = Callable[[int, Sequence[Batch]], StepRecord]
"""Runs the step of that number on its batches."""

_FULL_TRACE: Final = RunOptions(trace_level=RunOptions.FULL_TRACE)


class LocalSteps:
    """The two ways to run a step in this process: plainly in the session, or as a replica and its shard.

    Args:
        model: The model; for `gathered` it must be built under `local_replica.to_shard`.
        session: The session that holds its variables.
        run: The configuration of the run.
        summaries: The model's summaries.
        first_step: Number of the first step.
    """

    def __init__(
        self, model: BuiltModel, session: Session, run: RunConfig, summaries: ModelSummaries, first_step: int
    ) -> None:
        self._model = model
        self._session = session
        self._run = run
        self._summaries = summaries
        self._first_step = first_step
        self._names = list(model.fetches)
        self._warning = BadGradientsWarning(run.bad_gradients)

    @property
    def plain(self) -> LocalStep:
        """Steps of one batch, in the session."""
        model, session, merged = self._model, self._session, self._summaries.all()
        fetches = [list(model.fetches.values()), model.train_operation]
        step = session.make_callable(fetches, model.placeholders)

        def run(number: int, batches: Sequence[Batch]) -> StepRecord:
            arrays = self._arrays(number, batches)
            trace, due = self._trace(number), self._summaries.due(number, self._first_step)
            if trace is None and not due:
                return self._record(number, step(*arrays)[0])
            feeds = dict(zip(model.placeholders, arrays, strict=True))
            also = [merged] if due else []
            options = None if trace is None else _FULL_TRACE
            values, _, summary = session.run([*fetches, also], feeds, options, trace)
            return self._record(number, values, trace, b"".join(summary))

        return run

    @property
    def gathered(self) -> LocalStep:
        """Steps of a replica: of several batches, or with checks."""
        model, of_state, branch = self._model, self._summaries.of_state, self._summaries.of_batch
        fetched, fed = list(model.fetches.values()), list(model.placeholders)
        if branch is not None:
            fetched, fed = [*fetched, branch.summary], [*fed, branch.wanted]
        options = ReplicaOptions(self._run.accumulate, self._run.bad_gradients)
        replica = LocalReplica(self._session, fetched, model.train_operation, fed, options)
        per_batch = len(model.placeholders)

        def run(number: int, batches: Sequence[Batch]) -> StepRecord:
            arrays = self._arrays(number, batches)
            trace, due = self._trace(number), self._summaries.due(number, self._first_step)
            values: list[Any] = []
            for begin in range(0, len(arrays), per_batch):
                wanted = [] if branch is None else [np.array(due and begin == 0)]
                values += [*arrays[begin : begin + per_batch], *wanted]
            found, bad = replica.run(number, values, trace)
            summary = b"".join(np.asarray(value).item() for value in found[len(self._names) :])
            if due and of_state is not None:
                summary += self._state_summary(of_state)
            self._warning.observe(number, {0: bad} if bad else {})
            return self._record(number, found, trace, summary, bad)

        return run

    def _arrays(self, number: int, batches: Sequence[Batch]) -> list[Any]:
        try:
            return [array for batch in batches for array in self._model.form.arrays(batch)]
        except InvalidArgumentError as error:
            error.message = f"the input failed in step {number}: {error.message}"
            raise

    def _state_summary(self, of_state: Tensor) -> bytes:
        summary: bytes = self._session.run(of_state)
        return summary

    def _trace(self, number: int) -> RunMetadata | None:
        return RunMetadata() if number in self._run.trace_steps else None

    def _record(
        self,
        number: int,
        values: Sequence[Any],
        trace: RunMetadata | None = None,
        summary: bytes = b"",
        bad: tuple[str, ...] = (),
    ) -> StepRecord:
        metrics = {name: float(value) for name, value in zip(self._names, values, strict=False)}
        skipped = bool(bad) and self._run.bad_gradients == "skip"
        members = () if skipped else (0,)
        found = {0: bad} if bad else {}
        return StepRecord(number, metrics, 0.0, members=members, trace=trace, summary=summary, bad_gradients=found)
