"""What a parameter shard has received from the replicas of one step. Pure state: no Ray, no threads.

The *members* of a step are the replicas whose gradients count. Contributions are held per replica until the members are
known, and each of them has sent everything. Then all is handed over at once. So a replica that dies halfway leaves
nothing behind, neither one gradient of several nor the indices of rows without the rows. Contributions are in the order
of the members: sums do not depend on which came first.

Where steps overlap (`tfray.runtime.releases`), the gradients of a large variable are a unit of their own, which is
handed over when each member has sent it. If a member dies halfway, the units that it has not completed do without it.

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


class Contributed(list[Any]):
    """What the members contribute over one edge, in their order.

    Attributes:
        replicas: From how many replicas it is.
    """

    def __init__(self, values: Iterable[Any], replicas: int) -> None:
        super().__init__(values)
        self.replicas = replicas


class ReplicaInbox:
    """Contributions of replicas to one step on one shard.

    Args:
        keys: The edges that cross from the replicas to this shard.
        members: The replicas that count, when that is known from the start.
        verdict: The edge on which each replica sends a vector of truth values. It counts only if all are true.
        units: The same edges, in units that are handed over one by one. Where there is a verdict, all are one unit.

    Attributes:
        is_void: Whether the step is void: all members were left out.
        has_begun: Whether anything has been handed over.
    """

    def __init__(
        self,
        keys: Collection[str],
        members: Sequence[int] | None = None,
        verdict: str | None = None,
        units: Collection[frozenset[str]] = (),
    ) -> None:
        self.is_void = False
        self.has_begun = False
        self._verdict = verdict
        self._members = tuple(members or ()) or None
        self._arrived: dict[tuple[int, ...], dict[str, Any]] = {}
        """By the replicas from which they are."""
        self._units = list(units) if units and verdict is None else [frozenset(keys)] if keys else []
        """Those that have not been handed over."""

    @property
    def is_complete(self) -> bool:
        """Whether nothing more is awaited from replicas."""
        return not self._units

    def add(self, replicas: tuple[int, ...], items: Iterable[tuple[str, Any]]) -> list[tuple[str, Contributed]]:
        """Take tensors from a replica, or from several that contribute together. Returns what `commit` returns."""
        if self._members is None or not self._is_irrelevant(replicas):
            self._arrived.setdefault(replicas, {}).update(items)
        return self._complete()

    def commit(self, members: Sequence[int]) -> list[tuple[str, Contributed]]:
        """Set the replicas that count, and drop what the others sent. A later call may name fewer.

        With no members the step is undecided again, and empty, unless it has been handed over already.

        Returns:
            When everything of a unit is there, and once only: for each edge its key and the contributions of the
            members, in the order of `members`. Otherwise an empty list.
        """
        self._members = tuple(members) or None
        self._arrived = {each: items for each, items in self._arrived.items() if not self._is_irrelevant(each)}
        return self._complete()

    def _is_irrelevant(self, replicas: tuple[int, ...]) -> bool:
        return self._members is None or not any(replica in self._members for replica in replicas)

    def _complete(self) -> list[tuple[str, Contributed]]:
        if self._members is None:
            return []
        handed_over = [(unit, items) for unit in self._units if (items := self._complete_unit(unit)) is not None]
        if handed_over:
            self.has_begun = True
            done = [unit for unit, _ in handed_over]
            self._units = [unit for unit in self._units if unit not in done]
            wanted = frozenset().union(*self._units)
            self._arrived = {
                each: {key: value for key, value in items.items() if key in wanted}
                for each, items in self._arrived.items()
                if wanted
            }
        return [item for _, items in handed_over for item in items]

    def _complete_unit(self, unit: frozenset[str]) -> list[tuple[str, Contributed]] | None:
        """What is handed over of a unit; None if it is not all there."""
        assert self._members is not None
        arrived = {each: items for each, items in self._arrived.items() if items.keys() >= unit}
        counted: dict[int, tuple[int, ...]] = {}
        for each in sorted(arrived, key=len, reverse=True):  # those of several replicas first
            if not any(replica in counted for replica in each):
                counted.update(dict.fromkeys(each, each))
        if not counted.keys() >= set(self._members):
            return None
        verdict = self._verdict
        chosen = dict.fromkeys(counted[member] for member in self._members)
        good = [each for each in chosen if verdict is None or all(arrived[each][verdict])]
        self.is_void = not good
        replicas = sum(map(len, good))
        return [(key, Contributed([arrived[each][key] for each in good], replicas)) for key in sorted(unit) if good]
