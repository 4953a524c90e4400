"""What a parameter shard has received from the replicas of one step. Pure state: no Ray, no threads.

The *members* of a step are the replicas whose gradients count. Contributions are held per replica until the members are
known, and each of them has sent everything. Then all is handed over at once. So a replica that dies halfway leaves
nothing behind, neither one gradient of several nor the indices of rows without the rows. Contributions are in the order
of the members: sums do not depend on which came first.

Replicas of one node may contribute together (`combining.py`). Such a contribution counts as a whole, for all of its
replicas, if one of them is a member. A replica that gave up waiting for the others sends its own as well: it counts
once.

Replicas may send a *verdict* on what they contribute: those whose gradients are not finite are left out. When all are
left out, the step is *void*: nothing is handed over. Each replica sends its verdict to every shard, so that all shards
decide the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any


class StepVoid(Exception):
    """Ends a shard's part of a step in which no replica counts: the step is over, and nothing was applied."""


class ReplicaInbox:
    """Contributions of replicas to one step on one shard.

    Args:
        keys: The edges that cross from the replicas to this shard.
        members: The replicas that count, when that is known from the start.
        verdict: The edge on which each replica sends a vector of truth values. It counts only if all are true.

    Attributes:
        is_void: Whether the step is void: all members were left out.
        replicas: From how many replicas what has been handed over is.
    """

    def __init__(self, keys: Collection[str], members: Sequence[int] | None = None, verdict: str | None = None) -> None:
        self.is_void = False
        self.replicas = 0
        self._verdict = verdict
        self._keys = frozenset(keys)
        self._members = tuple(members or ()) or None
        self._arrived: dict[tuple[int, ...], dict[str, Any]] = {}
        """By the replicas from which they are."""
        self._handed_over = False

    @property
    def is_complete(self) -> bool:
        """Whether nothing more is awaited from replicas."""
        return self._handed_over or not self._keys

    def add(self, replicas: tuple[int, ...], items: Iterable[tuple[str, Any]]) -> list[tuple[str, list[Any]]]:
        """Take tensors from a replica, or from several that contribute together. Returns what `commit` returns."""
        if self._members is None or not self._is_irrelevant(replicas):
            self._arrived.setdefault(replicas, {}).update(items)
        return self._complete()

    def commit(self, members: Sequence[int]) -> list[tuple[str, list[Any]]]:
        """Set the replicas that count, and drop what the others sent. A later call may name fewer.

        With no members the step is undecided again, and empty, unless it has been handed over already.

        Returns:
            When everything is there, and once only: for each edge its key and the contributions of the members, in the
            order of `members`. Otherwise an empty list.
        """
        self._members = tuple(members) or None
        self._arrived = {each: items for each, items in self._arrived.items() if not self._is_irrelevant(each)}
        return self._complete()

    def _is_irrelevant(self, replicas: tuple[int, ...]) -> bool:
        return self._members is None or not any(replica in self._members for replica in replicas)

    def _complete(self) -> list[tuple[str, list[Any]]]:
        if self._members is None or self._handed_over or not self._keys:
            return []
        there = [each for each, items in self._arrived.items() if items.keys() >= self._keys]
        counted: dict[int, tuple[int, ...]] = {}
        for each in sorted(there, key=len, reverse=True):  # those of several replicas first
            if not any(replica in counted for replica in each):
                counted.update(dict.fromkeys(each, each))
        if not counted.keys() >= set(self._members):
            return []
        self._handed_over = True
        arrived, self._arrived = self._arrived, {}
        verdict = self._verdict
        chosen = dict.fromkeys(counted[member] for member in self._members)
        good = [each for each in chosen if verdict is None or all(arrived[each][verdict])]
        self.is_void = not good
        self.replicas = sum(map(len, good))
        return [(key, [arrived[each][key] for each in good]) for key in sorted(self._keys) if good]
