"""Chooses the time between two checkpoints from their cost and from how often training fails.

More checkpoints cost more time while all goes well; fewer lose more steps when something fails. Young's formula, which
Daly refined, balances the two: ``sqrt(2 * cost * mean time between failures)``, to first order.

References:
    Young, "A first order approximation to the optimum checkpoint interval", CACM 17(9), 1974; Daly, "A higher order
    estimate of the optimum checkpoint interval for restart dumps", FGCS 22(3), 2006.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

FIRST_COST_S: Final = 0.5
"""Seconds that a save is assumed to pause training, until one was measured."""

SMOOTHING: Final = 0.5
"""Weight of the newest measurement of a save against all earlier ones."""


def best_interval_s(cost_s: float, mean_time_between_failures_s: float) -> float:
    """Daly's estimate of the time to train between two checkpoints that loses least.

    Args:
        cost_s: Seconds that training pauses for one checkpoint.
        mean_time_between_failures_s: Mean time in seconds that training runs until something fails.
    """
    ratio = cost_s / (2 * mean_time_between_failures_s)
    if ratio >= 1:
        return mean_time_between_failures_s
    first = math.sqrt(2 * cost_s * mean_time_between_failures_s)
    return first * (1 + math.sqrt(ratio) / 3 + ratio / 9) - cost_s


@dataclass
class FailureRecord:
    """How often training has failed, over all runs on one folder.

    The estimate begins with an assumed mean time, which counts as one failure. Each further failure corrects it.

    Attributes:
        assumed_s: Mean time between failures to begin with, in seconds.
        trained_s: Seconds of training so far.
        failures: Number of failures in that time.
    """

    assumed_s: float
    trained_s: float = 0.0
    failures: int = 0

    @property
    def mean_time_between_failures_s(self) -> float:
        """The estimate."""
        return (self.assumed_s + self.trained_s) / (1 + self.failures)


class AutomaticInterval:
    """When the next checkpoint is due.

    Args:
        failures: The record of failures.
    """

    def __init__(self, failures: FailureRecord) -> None:
        self._failures = failures
        self._cost_s = FIRST_COST_S
        self._least_s = 0.0

    def saved(self, pause_s: float, duration_s: float) -> None:
        """Record how long training paused for a save, and how long that took until it was complete."""
        self._cost_s += SMOOTHING * (pause_s - self._cost_s)
        self._least_s = duration_s

    @property
    def seconds(self) -> float:
        """Seconds from one checkpoint to the next. No save begins before the one before it is complete."""
        return max(best_interval_s(self._cost_s, self._failures.mean_time_between_failures_s), self._least_s)
