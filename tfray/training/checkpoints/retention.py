"""Which checkpoints of a `Saver` are kept."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from tfray.errors import InvalidArgumentError
from tfray.formats import files
from tfray.library.platform import logging

METRICS_FILE: Final = "checkpoint_metrics.json"
"""File beside the file ``checkpoint``: the metric of each checkpoint of the folder."""


@dataclass(frozen=True)
class Kept:
    """A checkpoint that has not been deleted.

    Attributes:
        path: Its path.
        time: When it was saved, in seconds since 1970.
    """

    path: str
    time: float


class Retention:
    """Keeps the newest checkpoints, one for every so many hours, and the best.

    Args:
        max_to_keep: How many of the newest to keep; None or 0 for all.
        every_n_hours: Of those that would be deleted, one is kept for every so many hours.
        best_to_keep: How many of those with the best metric to keep.
        best_mode: ``"min"`` or ``"max"``.
        from_last: Whether these hours begin with the checkpoint that was kept last, as for a `CheckpointManager`.
            Otherwise they begin when that one was due, as for a `Saver`.
    """

    def __init__(
        self, max_to_keep: int | None, every_n_hours: float, best_to_keep: int, best_mode: str, from_last: bool = False
    ) -> None:
        if best_mode not in ("min", "max"):
            raise InvalidArgumentError(f"best_mode must be 'min' or 'max', not {best_mode!r}")
        self.max_to_keep = max_to_keep
        self.every_n_hours = every_n_hours
        self._best_to_keep = best_to_keep
        self._sign = 1.0 if best_mode == "min" else -1.0
        self._from_last = from_last
        self._metrics: dict[str, float] = {}
        self.kept: list[Kept] = []
        self.last_preserved = time.time()

    def add(self, path: str, metric: float | None = None) -> list[Kept]:
        """Record a new checkpoint. Returns those that are to be deleted."""
        self.kept = [each for each in self.kept if each.path != path]
        self.kept.append(Kept(path, time.time()))
        self._metrics.pop(os.path.basename(path), None)
        if metric is not None and not math.isnan(metric):
            self._metrics[os.path.basename(path)] = float(metric)
        return self._expire()

    def _expire(self) -> list[Kept]:
        if not self.max_to_keep or self.max_to_keep < 0:
            return []
        best = self._best()
        others = [each for each in self.kept if each.path not in best]
        expired = others[: max(0, len(others) - self.max_to_keep)]
        self.kept = [each for each in self.kept if each not in expired]
        removed = []
        for each in expired:
            if self._stays(each):
                continue
            self._metrics.pop(os.path.basename(each.path), None)
            removed.append(each)
        return removed

    def _stays(self, checkpoint: Kept) -> bool:
        """Whether a checkpoint is the one of its hours that is kept for good."""
        due = self.last_preserved + self.every_n_hours * 3600
        if checkpoint.time < due or (checkpoint.time == due and not self._from_last):
            return False
        self.last_preserved = checkpoint.time if self._from_last else due
        return True

    def _best(self) -> set[str]:
        rated = [each for each in self.kept if os.path.basename(each.path) in self._metrics]
        rated.sort(key=lambda each: self._sign * self._metrics[os.path.basename(each.path)])
        return {each.path for each in rated[: self._best_to_keep]}

    def replace(self, paths_and_times: Sequence[tuple[str, float]]) -> None:
        """Replace the list of checkpoints by these, oldest first."""
        self.kept = [Kept(path, moment) for path, moment in paths_and_times]

    def resume(self, paths_and_times: Sequence[tuple[str, float]], last_preserved: float) -> None:
        """Go on after another process.

        Args:
            paths_and_times: The checkpoints that it has left, oldest first. Those that are no newer than the last that
                was kept for good are kept for good too.
            last_preserved: When the last of the checkpoints that are kept for good was saved. If the clock has been set
                back behind it, all that there are stay.
        """
        now = time.time()
        if now < last_preserved:
            logging.warning(
                "time.time() returned a value %f seconds behind the last preserved checkpoint timestamp.",
                last_preserved - now,
            )
        self.last_preserved = min(now, last_preserved)
        times = [(path, min(now, moment)) for path, moment in paths_and_times]
        self.replace([each for each in times if each[1] > self.last_preserved])

    # -- metrics outlive the process -------------------------------------------------------------

    def write_metrics(self, folder: str) -> None:
        """Write the metrics of the checkpoints, if there are any."""
        if self._metrics:
            files.replace_durably(_metrics_path(folder), json.dumps(self._metrics, indent=1).encode())

    def read_metrics(self, folder: str) -> None:
        """Read the metrics that another saver has written in a folder, if any."""
        path = _metrics_path(folder)
        if not files.exists(path):
            return
        try:
            plain: Any = json.loads(files.read_bytes(path))
            self._metrics = {str(name): float(value) for name, value in plain.items()}
        except (ValueError, TypeError, AttributeError) as error:
            if self._best_to_keep:  # without it the best would be deleted
                raise InvalidArgumentError(f"{path} cannot be read: {error}; remove it") from error
            logging.warning("%s cannot be read (%s): what it tells of checkpoints is forgotten", path, error)


def _metrics_path(folder: str) -> str:
    return f"{folder.rstrip('/')}/{METRICS_FILE}" if folder else METRICS_FILE
