"""What a parameter shard has received from the replicas of one step. Pure state: no Ray, no threads.

The *members* of a step are the replicas whose gradients count. Contributions are held per replica until the members are
known, and each of them has sent everything. Then all is handed over at once. So a replica that dies halfway leaves
nothing behind, neither one gradient of several nor the indices of rows without the rows. Contributions are in the order
of the members: sums do not depend on which came first.

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
    """

    def __init__(self, keys: Collection[str], members: Sequence[int] | None = None, verdict: str | None = None) -> None:
        self.is_void = False
        self._verdict = verdict
        self._keys = frozenset(keys)
        self._members = tuple(members or ()) or None
        self._arrived: dict[int, dict[str, Any]] = {}
        self._handed_over = False

    def add(self, replica: int, items: Iterable[tuple[str, Any]]) -> list[tuple[str, list[Any]]]:
        """Take tensors from a replica. Returns what `commit` returns."""
        if self._members is None or replica in self._members:
            self._arrived.setdefault(replica, {}).update(items)
        return self._complete()

    def commit(self, members: Sequence[int]) -> list[tuple[str, list[Any]]]:
        """Set the replicas that count, and drop what the others sent. A later call may name fewer.

        With no members the step is undecided again, and empty, unless it has been handed over already.

        Returns:
            When everything is there, and once only: for each edge its key and one tensor per member, in the order of
            `members`. Otherwise an empty list.
        """
        self._members = tuple(members) or None
        self._arrived = {replica: items for replica, items in self._arrived.items() if replica in members}
        return self._complete()

    def _complete(self) -> list[tuple[str, list[Any]]]:
        if self._members is None or self._handed_over:
            return []
        if any(self._keys - self._arrived.get(replica, {}).keys() for replica in self._members):
            return []
        self._handed_over = True
        arrived, self._arrived = self._arrived, {}
        verdict = self._verdict
        good = [replica for replica in self._members if verdict is None or all(arrived[replica][verdict])]
        self.is_void = not good
        return [(key, [arrived[replica][key] for replica in good]) for key in sorted(self._keys) if good]
