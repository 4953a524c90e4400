"""The bar that a Keras model shows while it trains."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np


class Progbar:
    """Prints a bar, and means of values beside it.

    Args:
        target: How many steps there are; None if that is not known.
        width: Width of the bar.
        verbose: 1 for a bar that grows, 2 for a line at the end.
        interval: Least seconds between two prints.
        stateful_metrics: Names of values of which the last is shown, not the mean.
        unit_name: What a step is called.
    """

    def __init__(
        self,
        target: int | None,
        width: int = 30,
        verbose: int = 1,
        interval: float = 0.05,
        stateful_metrics: Iterable[str] | None = None,
        unit_name: str = "step",
    ) -> None:
        self.target, self.width, self.verbose, self.interval = target, width, verbose, interval
        self.unit_name, self.stateful_metrics = unit_name, set(stateful_metrics or ())
        self._values: dict[str, list[Any]] = {}
        self._seen, self._start, self._printed_at, self._length = 0, time.time(), 0.0, 0

    def update(self, current: int, values: Sequence[tuple[str, Any]] | None = None) -> None:
        """Show how far it is.

        Args:
            current: The number of the step.
            values: Names and values since the last step. Means count steps.
        """
        steps = current - self._seen
        for name, value in values or ():
            known = self._values.setdefault(name, [0.0, 0])
            if name in self.stateful_metrics:
                known[:] = [value, 1]
            else:
                known[0], known[1] = known[0] + value * steps, known[1] + steps
        self._seen = current
        now, is_last = time.time(), self.target is not None and current >= self.target
        if not self.verbose or (self.verbose == 2 and not is_last):
            return
        if self.verbose == 1 and now - self._printed_at < self.interval and not is_last:
            return
        bar = self._bar(current) + self._spent(current, now, is_last)
        text = (bar if self.verbose == 1 else f"{current}/{self.target} - {now - self._start:.0f}s") + self._numbers()
        erased = "\b" * self._length + "\r" if self.verbose == 1 and self._length else ""
        sys.stdout.write(erased + text.ljust(self._length) + ("\n" if is_last else ""))
        sys.stdout.flush()
        self._length, self._printed_at = (0 if is_last else len(text)), now

    def add(self, n: int, values: Sequence[tuple[str, Any]] | None = None) -> None:
        """The same for `n` steps more."""
        self.update(self._seen + n, values)

    def _bar(self, current: int) -> str:
        if self.target is None:
            return f"{current:7d}/Unknown"
        done = int(self.width * current / self.target) if self.target else self.width
        bar = "=" * max(done - 1, 0) + (">" if current < self.target else "=") * (done > 0)
        return f"{current:{len(str(self.target))}d}/{self.target} [{bar.ljust(self.width, '.')}]"

    def _spent(self, current: int, now: float, is_last: bool) -> str:
        per_step = (now - self._start) / max(current, 1)
        if self.target is not None and not is_last:
            return f" - ETA: {per_step * (self.target - current):.0f}s"
        units = (("s", 1), ("ms", 1e3), ("us", 1e6))
        unit, factor = next((each for each in units if per_step * each[1] >= 1), units[-1])
        shown = f"{per_step * factor:.0f}{unit}"
        return f" - {now - self._start:.0f}s {shown}/{self.unit_name}"

    def _numbers(self) -> str:
        means = {name: np.mean(total / max(count, 1)) for name, (total, count) in self._values.items()}
        shown = (
            f" - {name}: {mean:.4f}" if abs(mean) > 1e-3 else f" - {name}: {mean:.4e}" for name, mean in means.items()
        )
        return "".join(shown)
