"""The records of a run's steps, kept in arrays: one object per step would fill the memory in a long run."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

from tfray.errors import InvalidArgumentError
from tfray.formats.step_stats import RunMetadata


@dataclass(frozen=True)
class StepRecord:
    """What one training step reported.

    Attributes:
        step: Number of the step, from 1.
        metrics: Loss and metrics, averaged over the replicas that counted. NaN if the only one died before it could
            report them, though its gradients had arrived.
        duration_s: Seconds that the step took.
        live: Replicas alive.
        dropped: Late gradients dropped so far.
        members: Replicas that counted.
        staleness: Updates of other replicas between the step's reading and its update.
        replica_s: Seconds that each replica took for its part, by its number.
        bad_gradients: By replica, the variables for which it computed gradients that are not finite; see
            `RunConfig.bad_gradients`. Replicas that were too late are not in it.
        trace: What the devices recorded, if the step is one of `RunConfig.trace_steps`.
        summary: The serialised result of the model's ``tf.summary`` operations; empty in most steps, and in a `Result`.
    """

    step: int
    metrics: dict[str, float]
    duration_s: float
    live: int = 1
    dropped: int = 0
    members: tuple[int, ...] = (0,)
    staleness: int = 0
    replica_s: dict[int, float] = field(default_factory=dict)
    trace: RunMetadata | None = None
    summary: bytes = field(default=b"", repr=False)
    bad_gradients: dict[int, tuple[str, ...]] = field(default_factory=dict)


class StepHistory(Sequence[StepRecord]):
    """The records of some steps, without their summaries, as a sequence that takes little memory.

    A step takes less than 64 bytes, and also 8 for each metric, 4 for each member and 16 for each time of a replica.
    Each access makes the record anew. A slice is a list of records.

    Args:
        records: The first records; all that are ever appended have the same metrics.
    """

    def __init__(self, records: Iterable[StepRecord] = ()) -> None:
        self._names: tuple[str, ...] | None = None
        self._metrics = array("d")
        self._steps, self._duration_s = array("q"), array("d")
        self._live, self._dropped, self._staleness = array("i"), array("q"), array("i")
        self._members, self._replica_s = _Ragged("i"), _Ragged("d")
        self._rare: dict[int, tuple[RunMetadata | None, dict[int, tuple[str, ...]]]] = {}
        """Traces and bad gradients, by position."""
        for record in records:
            self.append(record)

    def append(self, record: StepRecord) -> None:
        """Add a record at the end."""
        if self._names is None:
            self._names = tuple(record.metrics)
        if record.metrics.keys() != set(self._names):
            raise InvalidArgumentError(f"metrics {[*record.metrics]} cannot follow steps with {[*self._names]}")
        if record.trace is not None or record.bad_gradients:
            self._rare[len(self)] = record.trace, record.bad_gradients
        self._steps.append(record.step)
        self._metrics.extend(record.metrics[name] for name in self._names)
        self._duration_s.append(record.duration_s)
        self._live.append(record.live)
        self._dropped.append(record.dropped)
        self._staleness.append(record.staleness)
        self._members.append(record.members)
        self._replica_s.append([number for pair in record.replica_s.items() for number in pair])

    def forget_from(self, step: int) -> None:
        """Drop the records at the end whose numbers are `step` or above."""
        kept = len(self)
        while kept and self._steps[kept - 1] >= step:
            kept -= 1
            self._rare.pop(kept, None)
        for column in (self._steps, self._duration_s, self._live, self._dropped, self._staleness):
            del column[kept:]
        del self._metrics[kept * len(self._names or ()) :]
        self._members.cut(kept)
        self._replica_s.cut(kept)

    def __len__(self) -> int:
        return len(self._steps)

    @overload
    def __getitem__(self, index: int) -> StepRecord: ...
    @overload
    def __getitem__(self, index: slice) -> list[StepRecord]: ...
    def __getitem__(self, index: int | slice) -> StepRecord | list[StepRecord]:
        found = range(len(self))[index]  # raises IndexError, and counts from the end
        return self._record(found) if isinstance(found, int) else [self._record(each) for each in found]

    def _record(self, position: int) -> StepRecord:
        names = self._names or ()
        metrics = self._metrics[position * len(names) : (position + 1) * len(names)]
        replicas = iter(self._replica_s[position])
        trace, bad_gradients = self._rare.get(position, (None, {}))
        return StepRecord(
            self._steps[position],
            dict(zip(names, metrics, strict=True)),
            duration_s=self._duration_s[position],
            live=self._live[position],
            dropped=self._dropped[position],
            members=tuple(self._members[position]),
            staleness=self._staleness[position],
            replica_s={int(replica): next(replicas) for replica in replicas},
            trace=trace,
            bad_gradients=dict(bad_gradients),
        )

    def __eq__(self, other: object) -> bool:
        if other is self:
            return True
        if not isinstance(other, Sequence) or isinstance(other, (str, bytes)):
            return NotImplemented
        return len(self) == len(other) and all(mine == theirs for mine, theirs in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]  # it is mutable

    def __repr__(self) -> str:
        which = f", {self._steps[0]} to {self._steps[-1]}" if self else ""
        return f"<{len(self)} steps{which}>"


class _Ragged:
    """A column of rows, each with any number of values."""

    def __init__(self, code: str) -> None:
        self._values: array[Any] = array(code)
        self._ends = array("q")

    def append(self, row: Iterable[float]) -> None:
        self._values.extend(row)
        self._ends.append(len(self._values))

    def cut(self, rows: int) -> None:
        """Keep so many rows."""
        del self._ends[rows:]
        del self._values[self._ends[-1] if self._ends else 0 :]

    def __getitem__(self, row: int) -> array[Any]:
        return self._values[self._ends[row - 1] if row else 0 : self._ends[row]]
