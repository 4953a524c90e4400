"""Steps that have been asked for, and begin after another one on the same device."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tfray.actors.links.messages import StepKey


class _Parked(NamedTuple):
    go_on: Callable[[], None]
    overlaps: bool


class ParkedSteps:
    """By step: what begins after it. Not thread-safe: its owner's lock guards it."""

    def __init__(self) -> None:
        self._after: dict[StepKey, list[_Parked]] = {}

    def add(self, step: StepKey, go_on: Callable[[], None], overlaps: bool) -> None:
        """Note what is to be called when a step is over, or when it has begun if `overlaps`."""
        self._after.setdefault(step, []).append(_Parked(go_on, overlaps))

    def begun(self, step: StepKey) -> list[Callable[[], None]]:
        """What is to be called now that a step has begun."""
        parked = self._after.pop(step, [])
        rest = [each for each in parked if not each.overlaps]
        if rest:
            self._after[step] = rest
        return [each.go_on for each in parked if each.overlaps]

    def over(self, step: StepKey) -> list[Callable[[], None]]:
        """What is to be called now that a step is over."""
        return [each.go_on for each in self._after.pop(step, ())] if self._after else []

    def of_driver(self, driver: str) -> list[Callable[[], None]]:
        """What is to be called if all steps of a driver are over."""
        return [go_on for step in list(self._after) if step.driver == driver for go_on in self.over(step)]
