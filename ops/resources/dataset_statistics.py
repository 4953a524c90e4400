"""What steps can ask about a dataset while it is walked: how long its elements take, and how large they are."""

from __future__ import annotations

import threading
import time
from bisect import bisect_right
from collections.abc import Iterator

import numpy as np

from tfray.formats.events import HistogramProto, Summary, SummaryValue
from tfray.ops.kernels.histograms import bucket_limits, filled_buckets
from tfray.ops.resources.dataset_values import DatasetValue, Element, Walk

STRING_BYTES = 8
"""What TensorFlow counts for each string beside its contents."""


class Statistics:
    """Numbers by name, each name with the histogram of its numbers. Threads of several walks add to it."""

    def __init__(self) -> None:
        self._kept: dict[str, _Numbers] = {}
        self._lock = threading.Lock()

    def add(self, name: str, number: float) -> None:
        """Count a number."""
        with self._lock:
            self._kept.setdefault(name, _Numbers()).add(number)

    def summary(self) -> Summary:
        """The histograms, in the order in which their names came first."""
        with self._lock:
            return Summary(value=[SummaryValue(tag=name, histo=kept.message()) for name, kept in self._kept.items()])


class _Numbers:
    """A histogram that grows."""

    def __init__(self) -> None:
        self._limits = bucket_limits().tolist()
        self._counts = np.zeros(len(self._limits))
        self._least, self._most = np.inf, -np.inf
        self._count = self._sum = self._sum_squares = 0.0

    def add(self, number: float) -> None:
        self._counts[min(bisect_right(self._limits, number), len(self._limits) - 1)] += 1
        self._least, self._most = min(self._least, number), max(self._most, number)
        self._count += 1
        self._sum += number
        self._sum_squares += number * number

    def message(self) -> HistogramProto:
        limits, counts = filled_buckets(self._counts)
        return HistogramProto(
            min=self._least,
            max=self._most,
            num=self._count,
            sum=self._sum,
            sum_squares=self._sum_squares,
            bucket_limit=limits,
            bucket=counts,
        )


class Told:
    """What a walk tells about itself.

    Args:
        statistics: Takes the numbers.
        prefix: Stands before their names.
    """

    def __init__(self, statistics: Statistics, prefix: str) -> None:
        self._statistics = statistics
        self._start = f"{prefix}::" if prefix else ""

    def add(self, name: str, number: float) -> None:
        """Count a number."""
        self._statistics.add(self._start + name, number)


class Watched(DatasetValue):
    """The elements themselves. Their walk, in all its datasets, tells `statistics` about itself.

    Args:
        parent: The elements.
        statistics: Takes the numbers.
        prefix: Stands before their names.
    """

    def __init__(self, parent: DatasetValue, statistics: Statistics, prefix: str) -> None:
        self._parent = parent
        self._told = Told(statistics, prefix)

    def open(self, walk: Walk) -> Iterator[Element]:
        walk.told = self._told
        return self._parent.open(walk)


class Timed(DatasetValue):
    """The elements themselves. How many microseconds each took, an error too, is told under a name.

    Args:
        parent: The elements.
        name: The name.
    """

    def __init__(self, parent: DatasetValue, name: str) -> None:
        self._parent = parent
        self._name = name

    def open(self, walk: Walk) -> Iterator[Element]:
        return _TimedIterator(walk, self._parent.open(walk), self._name)


class _TimedIterator(Iterator[Element]):
    __slots__ = ("_name", "_parent", "_walk")

    def __init__(self, walk: Walk, parent: Iterator[Element], name: str) -> None:
        self._walk = walk
        self._parent = parent
        self._name = name

    def __next__(self) -> Element:
        start = time.perf_counter_ns()
        try:
            element = next(self._parent)
        except StopIteration:
            raise
        except Exception:
            self._tell(start)
            raise
        self._tell(start)
        return element

    def _tell(self, start: int) -> None:
        if self._walk.told is not None:
            self._walk.told.add(self._name, (time.perf_counter_ns() - start) // 1000)


class Weighed(DatasetValue):
    """The elements themselves. How many bytes each has is told under a name.

    Args:
        parent: The elements.
        name: The name.
    """

    def __init__(self, parent: DatasetValue, name: str) -> None:
        self._parent = parent
        self._name = name

    def open(self, walk: Walk) -> Iterator[Element]:
        def told(element: Element) -> Element:
            if walk.told is not None:
                walk.told.add(self._name, sum(map(_byte_count, element)))
            return element

        return map(told, self._parent.open(walk))  # unlike a generator, it goes on after an error


def _byte_count(component: object) -> int:
    array = np.asarray(component)
    if array.dtype != object:
        return array.nbytes
    return sum(STRING_BYTES + len(text) for text in array.reshape(-1) if isinstance(text, (bytes, str)))
