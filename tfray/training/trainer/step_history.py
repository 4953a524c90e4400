"""The records of a run's steps, kept in arrays: one object per step would fill the memory in a long run."""

from __future__ import annotations

import math
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
        replica_s: Seconds that each replica took for its part, by its number. Very long runs forget those of their
            oldest steps; see `StepHistory`.
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


MOST_REPLICA_TIMES = 1 << 22
"""So many times of replicas a history keeps: 16 MiB, of 4 replicas a million steps, of 64 replicas 65,536."""


class StepHistory(Sequence[StepRecord]):
    """The records of some steps, without their summaries, as a sequence that takes little memory.

    There is an array for each attribute, all of whose values have one width. A step takes 8 bytes for each metric, 4
    for its duration, 4 for each replica whose time it tells, and an eighth for each replica that may be a member; of
    its number, `live`, `dropped` and `staleness`, as many as their largest values need, 1 at least. So a run with loss
    and accuracy on 4 replicas takes about 45 bytes a step. Times are kept to seven digits, members in order.

    Of the times of replicas, at least the newest 4,194,304 (16 MiB) are kept, and at most a quarter more. Older records
    have an empty `replica_s`. So a million steps on 64 replicas take about 55 bytes each.

    Each access makes the record anew. A slice is a list of records.

    Args:
        records: The first records; all that are ever appended have the same metrics.
    """

    def __init__(self, records: Iterable[StepRecord] = ()) -> None:
        self._names: tuple[str, ...] | None = None
        self._length = 0
        self._metrics = array("d")
        self._duration_s = array("f")
        self._ahead, self._live, self._dropped, self._staleness = _Integers(), _Integers(), _Integers(), _Integers()
        """`_ahead`: by how much the number of a step is above its position. Mostly that is 1."""
        self._members, self._replica_s = _Rows("B", 0), _Rows("f", math.nan, MOST_REPLICA_TIMES)
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
        self._metrics.extend(record.metrics[name] for name in self._names)
        self._duration_s.append(record.duration_s)
        self._ahead.append(record.step - len(self))
        self._live.append(record.live)
        self._dropped.append(record.dropped)
        self._staleness.append(record.staleness)
        self._members.append(_as_bits(record.members))
        times_s = [math.nan] * (1 + max(record.replica_s, default=-1))
        for replica, time_s in record.replica_s.items():
            times_s[replica] = time_s
        self._replica_s.append(times_s)
        self._length += 1

    def forget_from(self, step: int) -> None:
        """Drop the records at the end whose numbers are `step` or above."""
        kept = len(self)
        while kept and self._step(kept - 1) >= step:
            kept -= 1
            self._rare.pop(kept, None)
        for column in (self._ahead, self._live, self._dropped, self._staleness, self._members, self._replica_s):
            column.cut(kept)
        del self._duration_s[kept:]
        del self._metrics[kept * len(self._names or ()) :]
        self._length = kept

    def _step(self, position: int) -> int:
        return position + self._ahead[position]

    def __len__(self) -> int:
        return self._length

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
        times_s = enumerate(self._replica_s[position])
        trace, bad_gradients = self._rare.get(position, (None, {}))
        return StepRecord(
            self._step(position),
            dict(zip(names, metrics, strict=True)),
            duration_s=self._duration_s[position],
            live=self._live[position],
            dropped=self._dropped[position],
            members=_of_bits(self._members[position]),
            staleness=self._staleness[position],
            replica_s={replica: time_s for replica, time_s in times_s if not math.isnan(time_s)},
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
        which = f", {self._step(0)} to {self._step(len(self) - 1)}" if self else ""
        return f"<{len(self)} steps{which}>"


class _Integers:
    """A column of integers, each of as many bytes as the largest of them needs."""

    def __init__(self) -> None:
        self._values = array("b")

    def append(self, value: int) -> None:
        try:
            self._values.append(value)
        except OverflowError:
            wider = next(code for code in "hiq" if abs(value) < 1 << (8 * array(code).itemsize - 1))
            self._values = array(wider, self._values)
            self._values.append(value)

    def cut(self, rows: int) -> None:
        """Keep so many rows."""
        del self._values[rows:]

    def __getitem__(self, row: int) -> int:
        return self._values[row]


class _Rows:
    """A column of rows, all as wide as the widest of them. What others lack is filled up.

    Args:
        code: The `array.array` code of the values.
        filling: What stands where a row has no value.
        most: So many values are kept. The oldest rows are empty once there are a quarter more.
    """

    def __init__(self, code: str, filling: float, most: float = math.inf) -> None:
        self._values: array[Any] = array(code)
        self._filling: array[Any] = array(code, [filling])
        self._width = self._rows = self._forgotten = 0
        self._most = most

    def append(self, row: Sequence[float]) -> None:
        if len(row) > self._width:
            self._widen(len(row))
        self._values.extend(array(self._values.typecode, row))
        self._values.extend(self._filling * (self._width - len(row)))
        self._rows += 1
        if len(self._values) > 1.25 * self._most:
            self._forget(self._rows - int(self._most // self._width))

    def _forget(self, rows: int) -> None:
        """Empty the first rows."""
        del self._values[: (rows - self._forgotten) * self._width]
        self._forgotten = rows

    def _widen(self, width: int) -> None:
        wider: array[Any] = array(self._values.typecode)
        more = self._filling * (width - self._width)
        for row in range(self._forgotten, self._rows):
            wider.extend(self[row])
            wider.extend(more)
        self._values, self._width = wider, width

    def cut(self, rows: int) -> None:
        """Keep so many rows."""
        self._forgotten = min(rows, self._forgotten)
        del self._values[(rows - self._forgotten) * self._width :]
        self._rows = rows

    def __getitem__(self, row: int) -> array[Any]:
        at = (row - self._forgotten) * self._width
        return self._values[at : at + self._width] if at >= 0 else self._values[:0]


def _as_bits(members: Iterable[int]) -> bytes:
    bits = 0
    for member in members:
        bits |= 1 << member
    return bits.to_bytes((bits.bit_length() + 7) // 8, "little")


def _of_bits(row: array[Any]) -> tuple[int, ...]:
    return tuple(8 * i + bit for i, byte in enumerate(row) for bit in range(8) if byte >> bit & 1)
