"""What a parameter shard has received from the replicas of one step. Pure state: no Ray, no threads.

Contributions are held per replica until the *members* of the step are known: the replicas whose gradients count.
They are then handed over per edge, in the order of the members, so that sums do not depend on who came first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any


class ReplicaInbox:
    """Contributions of replicas to one step on one shard.

    Args:
        keys: The edges that cross from the replicas to this shard.
        members: The replicas that count, when that is known from the start.
    """

    def __init__(self, keys: Collection[str], members: Sequence[int] | None = None) -> None:
        self._keys = frozenset(keys)
        self._members = None if members is None else tuple(members)
        self._arrived: dict[int, dict[str, Any]] = {}
        self._handed_over: set[str] = set()

    def add(self, replica: int, items: Iterable[tuple[str, Any]]) -> list[tuple[str, list[Any]]]:
        """Take tensors from a replica. Returns the edges that are complete by now, see `commit`."""
        if not self._members or replica in self._members:
            self._arrived.setdefault(replica, {}).update(items)
        return self._complete()

    def commit(self, members: Sequence[int]) -> list[tuple[str, list[Any]]]:
        """Decide which replicas count; what the others sent is dropped. No members: it is undecided again.

        Returns:
            For each edge that is complete and was not before: its key, and one tensor per member in their order.
        """
        self._members = tuple(members)
        if members:
            self._arrived = {replica: items for replica, items in self._arrived.items() if replica in members}
        return self._complete()

    def _complete(self) -> list[tuple[str, list[Any]]]:
        if not self._members:
            return []
        done: list[tuple[str, list[Any]]] = []
        for key in sorted(self._keys - self._handed_over):
            if all(key in self._arrived.get(replica, ()) for replica in self._members):
                done.append((key, [self._arrived[replica].pop(key) for replica in self._members]))
                self._handed_over.add(key)
        return done
