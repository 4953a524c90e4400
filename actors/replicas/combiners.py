"""Which worker of each node combines what the replicas of that node contribute, and how long these wait for it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from tfray.actors.clusters.cluster import Cluster
from tfray.actors.links.messages import Combiner

FADING: Final = 0.9
"""Factor by which a replica's longest step shrinks with each further step: a replica may have been frozen in one."""

PATIENCE: Final = 1.0
"""How long a replica waits for the others of its node, in steps, before it sends its gradients itself: a step that
needs all of them cannot end sooner without them."""

PATIENCE_WITH_BACKUPS: Final = 0.1
"""The same where steps end without late replicas: waiting for one of them would hold up the step."""

LEAST_PATIENCE_S: Final = 0.02
"""The shortest such wait, in seconds: so much a busy machine may take to pass on what has come."""


class Paces:
    """How long each replica takes for a step."""

    def __init__(self) -> None:
        self._longest_s: dict[int, float] = {}

    def took(self, replica: int, duration_s: float) -> None:
        """Note how long a replica took for a step."""
        self._longest_s[replica] = max(duration_s, FADING * self._longest_s.get(replica, 0.0))

    def longest(self, replicas: Collection[int]) -> float:
        """The longest step of these replicas of late, in seconds; 0 if none of them has ended one."""
        return max((self._longest_s.get(replica, 0.0) for replica in replicas), default=0.0)


def combiners(
    cluster: Cluster, workers: Mapping[int, str], shards: Collection[str], pace_s: float, *, waits_for_all: bool
) -> dict[int, Combiner]:
    """By replica, where those that begin a step combine their contributions: on the first of each node.

    Args:
        cluster: Its actors.
        workers: The replicas that begin the step, with their devices.
        shards: Shards for which contributions may be combined.
        pace_s: How long these replicas take for a step, in seconds.
        waits_for_all: Whether the step needs all of them.
    """
    if not shards or len(workers) == 1:
        return {}

    def node(device: str) -> str:
        return cluster.peer(device).handle.address.node

    by_node: dict[str, list[int]] = {}
    for replica, device in workers.items():
        by_node.setdefault(node(device), []).append(replica)
    if len(by_node) == len(workers):
        return {}
    patience_s = max(LEAST_PATIENCE_S, (PATIENCE if waits_for_all else PATIENCE_WITH_BACKUPS) * pace_s)
    found: dict[int, Combiner] = {}
    for of_node, replicas in by_node.items():
        if len(replicas) == 1:
            continue
        elsewhere = tuple(shard for shard in shards if node(shard) != of_node)
        if elsewhere:
            combiner = Combiner(workers[replicas[0]], tuple(replicas), elsewhere, patience_s)
            found.update(dict.fromkeys(replicas, combiner))
    return found
