"""How many elements a dataset has, as far as that is known without making them."""

from __future__ import annotations

from typing import Final

from tfray.ops.resources import (
    dataset_batches,
    dataset_sources,
    dataset_statistics,
    dataset_threads,
    dataset_transformations,
)
from tfray.ops.resources.dataset_values import DatasetValue

INFINITE: Final = -1
UNKNOWN: Final = -2

_AS_MANY: Final = (
    dataset_statistics.Timed,
    dataset_statistics.Watched,
    dataset_statistics.Weighed,
    dataset_threads.ParallelMapped,
    dataset_threads.Prefetched,
    dataset_transformations.Cached,
    dataset_transformations.Mapped,
    dataset_transformations.Scanned,
    dataset_transformations.Shuffled,
)


def cardinality(dataset: DatasetValue) -> int:
    """The number of elements, `INFINITE` or `UNKNOWN`."""
    if isinstance(dataset, dataset_sources.Slices):
        return dataset.length
    if isinstance(dataset, (dataset_sources.Listed, dataset_sources.Range)):
        return dataset.length
    if isinstance(dataset, dataset_transformations.Zipped):
        return _least([cardinality(parent) for parent in dataset.parents])
    if isinstance(dataset, dataset_transformations.Concatenated):
        return _sum([cardinality(parent) for parent in dataset.parents])
    parent = getattr(dataset, "_parent", None)
    return UNKNOWN if parent is None else _derived(dataset, cardinality(parent))


def _derived(dataset: DatasetValue, count: int) -> int:
    """The number of elements of a dataset that is made of one of `count` elements."""
    if isinstance(dataset, _AS_MANY):
        return count
    if isinstance(dataset, dataset_transformations.Repeated):
        if count == 0 or dataset.count == 0:
            return 0
        if dataset.count < 0 or count == INFINITE:
            return INFINITE
        return UNKNOWN if count == UNKNOWN else count * dataset.count
    if isinstance(dataset, dataset_transformations.Taken):
        return UNKNOWN if count == UNKNOWN else dataset.count if count == INFINITE else min(count, dataset.count)
    if count < 0:
        known = isinstance(dataset, (dataset_transformations.Skipped, dataset_transformations.Sharded))
        return count if known or isinstance(dataset, (*_BATCHES, dataset_batches.Windows)) else UNKNOWN
    if isinstance(dataset, dataset_transformations.Skipped):
        return max(0, count - dataset.count)
    if isinstance(dataset, dataset_transformations.Sharded):
        return len(range(dataset.index, count, dataset.count))
    if isinstance(dataset, _BATCHES):
        return count // dataset.size if dataset.drops else -(-count // dataset.size)
    if isinstance(dataset, dataset_batches.Windows):
        # A window begins at every shift; a whole one also ends before the elements do.
        starts = count - (dataset.size - 1) * dataset.stride if dataset.drop else count
        return max(0, -(-starts // dataset.shift))
    return UNKNOWN


_BATCHES: Final = (dataset_batches.Batched, dataset_batches.PaddedBatched)


def _least(counts: list[int]) -> int:
    if all(count == INFINITE for count in counts):
        return INFINITE
    return UNKNOWN if UNKNOWN in counts else min(count for count in counts if count != INFINITE)


def _sum(counts: list[int]) -> int:
    return INFINITE if INFINITE in counts else UNKNOWN if UNKNOWN in counts else sum(counts)
