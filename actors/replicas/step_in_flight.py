"""What the driver of replicated training knows of steps that have not ended, and of replicas at work on them."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass
class StepInFlight:
    """A step from the moment in which it is handed out until it has ended.

    It *begins* when nothing is before it any more for which it waits: a step that is handed out ahead begins with the
    end of the one before it. From then on its time counts.

    Attributes:
        number: Its number.
        shards_at_work: Shards that have not applied it.
        next: The step that begins when this one ends.
        before: The step with whose end this one begins, as long as that has not ended.
        began_at: When it began, by `time.perf_counter`; None before.
        due: When it has taken too long, by the driver's clock.
        position: Steps that had ended when it began.
        reported: What each replica has fetched, in the order in which they delivered.
        took_s: Seconds from its beginning until each replica had delivered.
    """

    number: int
    shards_at_work: int
    next: StepInFlight | None = None
    before: StepInFlight | None = None
    began_at: float | None = None
    due: float = math.inf
    position: int = 0
    reported: dict[int, list[Any]] = field(default_factory=dict)
    took_s: dict[int, float] = field(default_factory=dict)

    def wait_for(self, before: StepInFlight) -> None:
        """Begin when `before` ends."""
        self.before, before.next = before, self

    def begin(self, position: int, due: float) -> None:
        """Begin, or begin anew with another replica."""
        self.began_at, self.position, self.due = time.perf_counter(), position, due
        self.took_s.clear()

    def reopen(self) -> None:
        """Lose all replicas: there is no limit until somebody joins."""
        self.due = math.inf

    def applied(self) -> bool:
        """Note that one more shard has applied it. Returns whether all have."""
        self.shards_at_work -= 1
        return not self.shards_at_work

    def delivered(self, replica: int, values: list[Any]) -> float | None:
        """Note what a replica has fetched. Returns the seconds that it took, None if the step has not begun."""
        self.reported[replica] = values
        if self.began_at is None:
            return None
        took = self.took_s[replica] = time.perf_counter() - self.began_at
        return took

    def end(self) -> StepInFlight | None:
        """Let go of its neighbours. Returns the step that begins now."""
        later, self.next = self.next, None
        if later is not None:
            later.before = None
        if self.before is not None:  # its answers have overtaken that of the step before
            self.before.next = None
            self.before = None
        return later

    def summed_up(
        self, members: Iterable[int], checked: Sequence[str], skips_bad: bool
    ) -> tuple[list[Any], dict[int, tuple[str, ...]]]:
        """What members reported, combined, and by member the variables whose gradients were not finite.

        Args:
            members: The replicas that count.
            checked: Variables of which replicas tell whether that is so, in what they fetch last.
            skips_bad: Whether those with such gradients are left out.
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

    Its answers may overtake one another: each is looked at when it is that of the first of these steps. So an error,
    or the end of the input, comes before what follows from it.
    """

    def __init__(self) -> None:
        self._answers: dict[int, Any] = {}
        """By step, the answer that has overtaken others; None for none."""

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
        """Whether a step is the one that it computes, or is through with, first."""
        return next(iter(self._answers)) == step

    def keep(self, step: int, answer: Any) -> None:
        """Keep an answer that has overtaken that of the first step."""
        self._answers[step] = answer

    def end(self, step: int) -> None:
        """Note that it has delivered a step."""
        del self._answers[step]

    def take_answer(self) -> tuple[int, Any] | None:
        """The first step and its answer, if that has come already."""
        for step, answer in self._answers.items():
            if answer is None:
                return None
            self._answers[step] = None
            return step, answer
        return None
