"""The rows of a Ray dataset for replicas that come and go, and that are not equally fast.

`Dataset.streaming_split` divides a dataset's rows among iterators, near the nodes where they are read. But all of its
iterators have to begin a pass together, and nobody else can take over the rest of one. So actors read them, the
*feeds*, one beside each worker at the start. A replica takes rows from the feed beside it, and at the end of a pass
from the others. When all have handed out their rows, the pass is over, whoever has died or has come meanwhile.

If a feed is lost, with its node for instance, the dataset is split anew, and the pass begins anew.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

Rows = dict[str, Any]
"""Arrays by column. Their first axis is that of the rows."""


class DatasetFeed:
    """Hands out the rows of one part of a dataset; a Ray actor, to which several replicas may call at a time.

    Args:
        part: One of the iterators of `Dataset.streaming_split`.
        epoch: The number of its first pass.
    """

    def __init__(self, part: Any, epoch: int) -> None:
        self._part = part
        self._epoch = epoch
        self._blocks: Iterator[Rows] | None = None
        self._held: Rows = {}
        """Rows that have been read, and are not handed out yet."""
        self._lock = threading.Lock()

    def begin(self, epoch: int) -> None:
        """Begin a pass, unless that has been done. It waits until all feeds of the dataset have been asked to."""
        with self._lock:
            if epoch == self._epoch and self._blocks is None:
                self._blocks = iter(self._part.iter_batches(batch_size=None, batch_format="numpy"))
                self._read()

    def take(self, epoch: int, most: int) -> tuple[int, Rows]:
        """Hand out up to `most` rows of a pass. Returns the number of the pass that they are of.

        There are no rows, and another number, when this feed has no more rows of the pass.
        """
        self.begin(epoch)
        with self._lock:
            if epoch != self._epoch:
                return self._epoch, {}
            taken = {name: column[:most] for name, column in self._held.items()}
            self._held = {name: column[most:] for name, column in self._held.items()}
            self._read()
            return epoch, taken

    def _read(self) -> None:
        """Read on if there are no rows at hand. At the end of the pass the next one may begin."""
        while self._blocks is not None and not _count(self._held):
            block = next(self._blocks, None)
            if block is None:
                self._epoch, self._blocks, self._held = self._epoch + 1, None, {}
            else:
                self._held = block


class DatasetFeeds:
    """The feeds of a dataset; a Ray actor, which makes them, and makes them anew if one is lost.

    Args:
        dataset: A `ray.data.Dataset`.
        nodes: Ray's identity of the node beside which each feed is to be.
        callers: How many replicas there may be.
    """

    def __init__(self, dataset: Any, nodes: Sequence[str], callers: int) -> None:
        self._dataset = dataset
        self._nodes = list(nodes)
        self._callers = callers
        self._generation = 0
        self._feeds: list[Any] = []

    def current(self, lost: int, epoch: int) -> tuple[int, list[Any]]:
        """The feeds, with the number of their generation.

        Args:
            lost: The generation of which a feed is known to be lost; 0 for none.
            epoch: The pass that new feeds begin with.
        """
        if lost == self._generation:
            self._generation += 1
            for feed in self._feeds:
                ray.kill(feed)  # those who wait for it ask for the new ones
            # Not `equal`, which leaves out the rows that do not make a whole round: replicas share all that is left.
            parts = self._dataset.streaming_split(len(self._nodes), equal=False, locality_hints=self._nodes)
            self._feeds = [self._made(part, node, epoch) for node, part in zip(self._nodes, parts, strict=True)]
        return self._generation, self._feeds

    def _made(self, part: Any, node: str, epoch: int) -> Any:
        threads = 2 * self._callers + 1  # each replica may wait in two calls
        beside = NodeAffinitySchedulingStrategy(node, soft=True)
        options = {"num_cpus": 0, "max_concurrency": threads, "scheduling_strategy": beside}
        return ray.remote(DatasetFeed).options(**options).remote(part, epoch)


class FedRows:
    """The rows of a dataset as one replica takes them from feeds.

    Args:
        feeds: The actor that has the feeds.
        replica: Number of the replica.

    Attributes:
        epochs: How many passes are over.
    """

    def __init__(self, feeds: Any, replica: int) -> None:
        self.epochs = 0
        self._source = feeds
        self._replica = replica
        self._generation = 0
        self._feeds: list[Any] = []
        """All feeds, the one beside the replica first."""
        self._left: list[Any] = []
        """The feeds that may have more rows of this pass."""
        self._next: list[int] = []
        """The passes in which the other feeds are."""

    def take(self, most: int) -> Rows | None:
        """Up to `most` rows of this pass; None at its end, after which the next one begins."""
        while True:
            if not self._feeds:
                self._find()
            try:
                return self._take(most)
            except ray.exceptions.RayActorError:
                self._feeds = []

    def _find(self) -> None:
        self._generation, feeds = ray.get(self._source.current.remote(self._generation, self.epochs))
        own = self._replica % len(feeds)
        self._feeds, self._left = [*feeds[own:], *feeds[:own]], []

    def _take(self, most: int) -> Rows | None:
        if not self._left:
            self._left, self._next = list(self._feeds), []
            for feed in self._feeds:
                feed.begin.remote(self.epochs)
        while self._left:
            epoch, rows = ray.get(self._left[0].take.remote(self.epochs, most))
            if rows:
                return rows
            self._next.append(epoch)
            del self._left[0]
        self.epochs = min(self._next)
        return None


def start_feeds(dataset: Any, nodes: Sequence[str], callers: int) -> Any:
    """The actor `DatasetFeeds` of a dataset, on this node."""
    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    return ray.remote(DatasetFeeds).options(num_cpus=0, scheduling_strategy=here).remote(dataset, nodes, callers)


def end_feeds(feeds: Any) -> None:
    """End the feeds of a dataset. Replicas that wait for them get an error."""
    ray.kill(feeds)


def _count(rows: Rows) -> int:
    return next((len(column) for column in rows.values()), 0)
