"""Steps that have not ended, and the replicas at work on them, as the driver of replicated training knows them."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tfray.runtime.tracing import DeviceRecord


@dataclass(frozen=True)
class StepReport:
    """What happened in one step.

    Attributes:
        step: Its place in the order in which steps ended, from 1.
        values: Mean over the members of each fetched value; of text, the first that is not empty.
        duration_s: Seconds from its start to its last update.
        members: Replicas that counted.
        live: Replicas alive when it ended.
        dropped: Late gradients so far, over all steps.
        staleness: Number of other steps that ended between this one's start and its end. Their updates changed the
            parameters after it had read them. Always 0 in synchronous training.
        replica_s: Seconds that each replica took for its part.
        records: What the devices recorded, if that was asked for.
        bad: By member, the variables whose gradients were not finite.
    """

    step: int
    values: list[Any]
    duration_s: float
    members: tuple[int, ...]
    live: int
    dropped: int
    staleness: int
    replica_s: dict[int, float]
    records: list[DeviceRecord] = field(default_factory=list)
    bad: dict[int, tuple[str, ...]] = field(default_factory=dict)


@dataclass
class StepInFlight:
    """A step from the moment in which it is handed out until it has ended.

    A step may be handed out ahead, while the step before it is open. It *begins* when that one ends, and otherwise at
    once. Its time counts from its beginning.

    Attributes:
        number: Its number.
        shards_at_work: Shards, and standbys of shards, that have not applied it.
        failed_on: Shards, and standbys of shards, that have ended it without applying it.
        batches: How many batches its replicas take of the input, together.
        next: The step that begins when this one ends.
        before: The step whose end it waits for; None if there is none, or it has ended.
        began_at: When it began, by `time.perf_counter`; None before that.
        due: The time by the driver's clock after which it has taken too long.
        position: Number of steps that had ended when it began.
        reported: What each replica has fetched, in the order in which they delivered.
        took_s: Seconds from its beginning until each replica had delivered.
    """

    number: int
    shards_at_work: set[str]
    batches: int
    next: StepInFlight | None = None
    before: StepInFlight | None = None
    began_at: float | None = None
    due: float = math.inf
    position: int = 0
    reported: dict[int, list[Any]] = field(default_factory=dict)
    took_s: dict[int, float] = field(default_factory=dict)
    failed_on: set[str] = field(default_factory=set)

    def wait_for(self, before: StepInFlight) -> None:
        """Begin when `before` ends."""
        self.before, before.next = before, self

    def begin(self, position: int, due: float) -> None:
        """Begin, or begin anew with another replica."""
        self.began_at, self.position, self.due = time.perf_counter(), position, due
        self.took_s.clear()

    def allow(self, due: float) -> None:
        """Give it more time, if its time is limited now."""
        if self.due < math.inf:
            self.due = due

    def reopen(self) -> None:
        """Note that all of its replicas are gone. It has no time limit until another joins."""
        self.due = math.inf

    def is_over_on(self, shard: str) -> bool:
        """Whether a shard has applied it, or has ended it otherwise."""
        return shard not in self.shards_at_work or shard in self.failed_on

    def applied(self, shard: str) -> bool:
        """Note that one more shard has applied it. Returns whether all have."""
        self.shards_at_work.discard(shard)
        return not self.shards_at_work

    def delivered(self, replica: int, values: list[Any]) -> float | None:
        """Note what a replica has fetched. Returns the seconds that it took, or None if the step has not begun."""
        self.reported[replica] = values
        if self.began_at is None:
            return None
        took = self.took_s[replica] = time.perf_counter() - self.began_at
        return took

    def end(self) -> StepInFlight | None:
        """End it. Returns the step that begins with its end, if any."""
        later, self.next = self.next, None
        if later is not None:
            later.before = None
        if self.before is not None:  # its answers have come before those of the step before it
            self.before.next = None
            self.before = None
        return later

    def summed_up(
        self, members: Iterable[int], checked: Sequence[str], skips_bad: bool
    ) -> tuple[list[Any], dict[int, tuple[str, ...]]]:
        """The combined reports of the members, and by member the variables whose gradients were not finite.

        Args:
            members: The replicas that count.
            checked: Variables whose gradients are checked. The last value that a replica reports has the results.
            skips_bad: Whether members with such gradients are left out.
        """
        reported = {member: self.reported[member] for member in members if member in self.reported}
        bad = {}
        if checked:
            for replica, (*_, verdict) in reported.items():
                if not np.all(verdict):
                    bad[replica] = tuple(name for name, good in zip(checked, verdict, strict=True) if not good)
            reported = {replica: values[:-1] for replica, values in reported.items()}
        counted = [values for replica, values in reported.items() if not (skips_bad and replica in bad)]
        columns = zip(*(counted or reported.values()), strict=True)
        return [_combined(list(column)) for column in columns], bad


def _combined(values: Sequence[Any]) -> Any:
    if np.asarray(values[0]).dtype == object:
        return next((value for value in values if np.asarray(value).item()), values[0])
    return np.mean(values, axis=0)


class StepsOfReplica:
    """The steps that one worker has been given and has not delivered, in the order in which it computes them.

    Its answers may overtake one another. An answer is kept until its step is the first of these. So an error, or the
    end of the input, is seen before its consequences in later steps.
    """

    def __init__(self) -> None:
        self._answers: dict[int, Any] = {}
        """By step: its answer if that has overtaken others, otherwise None."""

    def __contains__(self, step: object) -> bool:
        return step in self._answers

    def __bool__(self) -> bool:
        return bool(self._answers)

    def __iter__(self) -> Iterator[int]:
        return iter(self._answers)

    def add(self, step: int) -> None:
        """Give it one more step."""
        self._answers[step] = None

    def is_first(self, step: int) -> bool:
        """Whether a step is the first of these."""
        return next(iter(self._answers)) == step

    def keep(self, step: int, answer: Any) -> None:
        """Keep an answer that has overtaken the answer of the first step."""
        self._answers[step] = answer

    def end(self, step: int) -> None:
        """Note that it has delivered a step."""
        del self._answers[step]

    def take_answer(self) -> tuple[int, Any] | None:
        """The first step and its answer, if the answer has come already; otherwise None."""
        for step, answer in self._answers.items():
            if answer is None:
                return None
            self._answers[step] = None
            return step, answer
        return None


class ServingSteps:
    """The steps in which shards serve one replica each: they are numbered by themselves."""

    def __init__(self) -> None:
        self._begun = 0
        self._open: dict[tuple[int, int], dict[int, tuple[str, ...]]] = {}
        """By replica and its step: these steps by number, each with its shards."""

    def begin(self, replica: int, step: int, shards: tuple[str, ...]) -> int:
        """Shards serve a replica in one of its steps. Returns the number of the step in which they do."""
        self._begun += 1
        self._open.setdefault((replica, step), {})[self._begun] = shards
        return self._begun

    @property
    def floor(self) -> int:
        """Steps below this number are over."""
        return min((min(numbers) for numbers in self._open.values()), default=self._begun + 1)

    def end(self, replica: int, step: int) -> dict[int, tuple[str, ...]]:
        """Note that a replica is no longer served in a step. Returns the steps that end, with their shards."""
        return self._open.pop((replica, step), {})
