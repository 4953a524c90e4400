"""Which steps are over on a device: messages for them come too late."""

from __future__ import annotations

from typing import Final

_KEPT_NUMBERS: Final = 64
"""How many finished steps a ledger holds before it first drops those below its floor."""

EVERY_STEP: Final = 1 << 62
"""The floor of a driver that has left: all its steps are over."""


class Ledger:
    """Which steps of one driver are over.

    Attributes:
        floor: All steps below this number are over.
    """

    def __init__(self, floor: int = 0) -> None:
        self.floor = floor
        self._finished: set[int] = set()
        self._limit = _KEPT_NUMBERS

    def is_over(self, number: int) -> bool:
        """Whether a step is over."""
        return number < self.floor or number in self._finished

    def finish(self, number: int) -> None:
        """Note that a step is over."""
        self._finished.add(number)
        if len(self._finished) > self._limit:
            self._finished = {other for other in self._finished if other >= self.floor}
            self._limit = max(_KEPT_NUMBERS, 2 * len(self._finished))
