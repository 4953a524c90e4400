"""Maps ids to rows of a table that has fewer rows than there are ids."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Final

import numpy as np

from tfray.framework.op_def import Array

EVICTED_SHARE: Final = 64
"""At least one row in this many is freed at a time. Finding the oldest rows scans them all, so it should be rare."""

CANDIDATES_PER_ROW: Final = 4
LEAST_CANDIDATES: Final = 1024
"""How many ids without a row are counted at most: `CANDIDATES_PER_ROW` for each row, at least `LEAST_CANDIDATES`.

Above that all counts are halved and the ids that reach 0 are forgotten. This bounds the memory; rare ids may be
admitted later than `admit_after` says.
"""


class RowIndex:
    """Gives rows to ids that have been seen often enough. When no row is free, old ids lose theirs.

    Args:
        name: Its name, for errors.
        capacity: Number of rows.
        admit_after: How often an id must have been seen to get a row.
        evict: Which id loses its row: ``"lru"``: the one not seen for longest; ``"lfu"``: the one seen least often.
            For ``"lfu"`` all counts are halved each time rows are freed, so that recent use counts more.
    """

    def __init__(self, name: str, capacity: int, admit_after: int, evict: str) -> None:
        self.name = name
        self.capacity, self.admit_after, self.evict = capacity, admit_after, evict
        self._lock = threading.Lock()
        self._clear()

    def _clear(self) -> None:
        self._row_of: dict[int, int] = {}
        self._id_of = np.full(self.capacity, -1, np.int64)
        self._seen_at = np.zeros(self.capacity, np.int64)
        self._count = np.zeros(self.capacity, np.int64)
        self._free = list(range(self.capacity - 1, -1, -1))
        self._candidates: dict[int, int] = {}
        self._reused: list[int] = []
        self._clock = 0

    def __len__(self) -> int:
        return len(self._row_of)

    def find(self, ids: Array) -> Array:
        """The rows of ids, -1 for those that have none."""
        get = self._row_of.get
        rows = [get(each, -1) for each in ids.reshape(-1).tolist()]
        return np.array(rows, np.int64).reshape(ids.shape)

    def assign(self, ids: Array) -> tuple[Array, Array]:
        """Count these ids as seen, and give rows to those that have been seen often enough.

        Returns:
            The rows of `ids`, -1 for those that have none, and the rows that belong to another id than before.
        """
        with self._lock:
            self._clock += 1
            distinct, inverse, counts = np.unique(ids, return_inverse=True, return_counts=True)
            rows = self.find(distinct)
            known = rows >= 0
            self._seen_at[rows[known]] = self._clock
            self._count[rows[known]] += counts[known]
            due = self._due(distinct[~known].tolist(), counts[~known].tolist())
            self._make_room(len(due))
            fresh = self._admit(due[: len(self._free)])
            if fresh:
                rows = self.find(distinct)
            return rows[inverse.reshape(ids.shape)], np.array(fresh, np.int64)

    def _due(self, ids: list[int], counts: list[int]) -> list[int]:
        """Count unknown ids. Returns those that may have a row."""
        candidates, due = self._candidates, []
        for each, count in zip(ids, counts, strict=True):
            candidates[each] = candidates.get(each, 0) + count
            if candidates[each] >= self.admit_after:
                due.append(each)
        most = max(LEAST_CANDIDATES, CANDIDATES_PER_ROW * self.capacity)
        while len(candidates) > most + len(due):  # halve the counts; ids that reach 0 are forgotten
            waiting = set(due)
            self._candidates = candidates = {
                each: count if each in waiting else count // 2
                for each, count in candidates.items()
                if count > 1 or each in waiting
            }
        return due

    def _admit(self, ids: list[int]) -> list[int]:
        fresh = [self._free.pop() for _ in ids]
        for each, row in zip(ids, fresh, strict=True):
            self._row_of[each] = row
            self._count[row] = self._candidates.pop(each)
        self._id_of[fresh] = ids
        self._seen_at[fresh] = self._clock
        self._reused += fresh
        return fresh

    def _make_room(self, needed: int) -> None:
        """Free rows, but none of ids that have just been seen."""
        if needed <= len(self._free):
            return
        old = np.flatnonzero((self._id_of >= 0) & (self._seen_at < self._clock))
        wanted = min(len(old), max(needed - len(self._free), self.capacity // EVICTED_SHARE))
        age = self._seen_at[old] if self.evict == "lru" else self._count[old]
        gone = old[np.argsort(age, kind="stable")[:wanted]]
        for each in self._id_of[gone].tolist():
            del self._row_of[each]
        self._id_of[gone] = -1
        self._free += gone[::-1].tolist()
        if self.evict == "lfu":
            self._count //= 2

    def take_reused(self) -> Array:
        """The rows that have changed to another id since the last call."""
        with self._lock:
            rows, self._reused = self._reused, []
            return np.array(sorted(set(rows)), np.int64)

    def entries(self) -> tuple[Array, Array]:
        """All ids that have rows, and their rows, in the order of the rows."""
        with self._lock:
            rows = np.flatnonzero(self._id_of >= 0)
            return self._id_of[rows], rows

    def state(self) -> dict[str, Array]:
        """Everything as arrays, for a checkpoint."""
        with self._lock:
            return {
                "ids": self._id_of.copy(),
                "seen_at": self._seen_at.copy(),
                "count": self._count.copy(),
                "candidates": np.array(list(self._candidates.items()), np.int64).reshape(-1, 2),
                "reused": np.array(self._reused, np.int64),
                "clock": np.array([self._clock], np.int64),
            }

    def restore_state(self, arrays: Mapping[str, Array]) -> None:
        """Replace everything by what `state` gave. That index must have had the same number of rows."""
        ids = np.array(arrays["ids"])
        if ids.shape != (self.capacity,):
            raise ValueError(f"the index {self.name!r} has {self.capacity} rows, the saved one {ids.size}")
        with self._lock:
            self._clear()
            self._id_of = ids
            self._seen_at, self._count = np.array(arrays["seen_at"]), np.array(arrays["count"])
            self._row_of = {each: row for row, each in enumerate(ids.tolist()) if each >= 0}
            self._free = [row for row in range(self.capacity - 1, -1, -1) if ids[row] < 0]
            self._candidates = dict(arrays["candidates"].tolist())
            self._reused = arrays["reused"].tolist()
            self._clock = int(arrays["clock"][0])
