"""Datasets whose elements come from arrays, from Python code, or from files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain

import numpy as np

from tfray.errors import InvalidArgumentError, NotAnError, UnknownError, is_interrupt
from tfray.framework.op_def import Array
from tfray.ops.resources.dataset_columns import Collected, Columns, Elements, as_string, elements_of
from tfray.ops.resources.dataset_values import DatasetValue, Element, Walk


class Listed(DatasetValue):
    """Elements that are there already."""

    def __init__(self, elements: Sequence[Element]) -> None:
        self._elements = elements

    @property
    def length(self) -> int:
        """How many elements there are."""
        return len(self._elements)

    def open(self, walk: Walk) -> Iterator[Element]:
        return iter(self._elements)


class Slices(DatasetValue):
    """The slices of arrays along their first axis."""

    def __init__(self, components: Sequence[Array]) -> None:
        self.components = tuple(components)
        lengths = {len(component) for component in components}
        if len(lengths) != 1:
            raise InvalidArgumentError(f"the tensors have {sorted(lengths)} slices: all must have as many")
        (self.length,) = lengths

    def open(self, walk: Walk) -> Iterator[Element]:
        return _Slices(self)


class _Slices(Elements):
    __slots__ = ("_single", "_source", "_start")

    def __init__(self, source: Slices) -> None:
        self._source = source
        self._start = 0
        self._single: Iterator[Element] | None = None

    def __next__(self) -> Element:
        if self._single is None:
            self._single = slices(self._source.components)
        return next(self._single)

    def take(self, count: int) -> Columns:
        start = self._start
        if start == self._source.length:
            raise StopIteration
        self._start = min(start + count, self._source.length)
        return [component[start : self._start].copy() for component in self._source.components]


def slices(components: Sequence[Array]) -> Iterator[Element]:
    """The slices of arrays of one length along their first axis."""
    return elements_of(list(components))


class Range(DatasetValue):
    """Integers from `start` to `stop`, by `step`."""

    def __init__(self, start: int, stop: int, step: int) -> None:
        self._values = range(start, stop, step)

    @property
    def length(self) -> int:
        """How many elements there are."""
        return len(self._values)

    def open(self, walk: Walk) -> Iterator[Element]:
        return _RangeElements(self._values)


class _RangeElements(Elements):
    __slots__ = ("_single", "_values")

    def __init__(self, values: range) -> None:
        self._values = values
        self._single = map(np.int64, values)

    def __next__(self) -> Element:
        return (next(self._single),)

    def take(self, count: int) -> Columns:
        taken, self._values = self._values[:count], self._values[count:]
        if not taken:
            raise StopIteration
        return [np.arange(taken.start, taken.stop, taken.step, dtype=np.int64)]


class Generated(DatasetValue):
    """The elements of the iterators that a Python function returns. If it fails, its error is the only item."""

    def __init__(self, open_iterator: Callable[[], Iterator[Element]]) -> None:
        self._open = open_iterator

    def open(self, walk: Walk) -> Iterator[Element]:
        return _Guarded(chain.from_iterable(_once(self._open)))


def _once(open_iterator: Callable[[], Iterator[Element]]) -> Iterator[Iterator[Element]]:
    yield open_iterator()


class _Guarded(Iterator[Element]):
    """The elements of an iterator of user code. Raises as an ordinary error what would otherwise end a thread."""

    __slots__ = ("_elements",)

    def __init__(self, elements: Iterator[Element]) -> None:
        self._elements = elements

    def __next__(self) -> Element:
        try:
            return next(self._elements)
        except Exception:
            raise
        except BaseException as error:
            if isinstance(error, NotAnError) or is_interrupt(error):
                raise
            raise UnknownError(f"the generator raised {type(error).__name__}: {error}") from error


class Files(DatasetValue):
    """The records of files, strings, one file after the other. After an error in a file comes the next file.

    So a missing file is one error. In TensorFlow every further read raises it again, and `ignore_errors` never ends.

    Args:
        paths: The files.
        read: Generator of the records of a file.
    """

    def __init__(self, paths: Sequence[bytes], read: Callable[[bytes], Iterator[bytes]]) -> None:
        self._paths = paths
        self._read = read

    def open(self, walk: Walk) -> Iterator[Element]:
        # A generator raises nothing when it is called, so the chain has no errors of its own.
        return _Records(chain.from_iterable(map(self._read, self._paths)))


class _Records(Elements):
    __slots__ = ("_collected", "_records")

    def __init__(self, records: Iterator[bytes]) -> None:
        self._records = records
        self._collected = Collected(records)

    def __next__(self) -> Element:
        return (as_string(next(self._records)),)

    def take(self, count: int) -> Columns:
        records = self._collected.some(count)
        column = np.empty(len(records), object)
        column[:] = records
        return [column]


def csv_record_pattern(delimiter: bytes) -> re.Pattern[bytes]:
    """What matches a record with the end of its line. A field that begins with a quote ends at its closing one.

    A quote elsewhere has no such meaning, and a field that is malformed ends with its line: decoding refuses both.
    """
    other = rb"[^" + re.escape(delimiter) + rb"\r\n]*"
    end = re.escape(delimiter) + rb"|\r|\n|\Z"
    field = rb'(?:"[^"]*(?:""[^"]*)*"(?=' + end + rb")|" + other + rb")"
    return re.compile(rb"(" + field + rb"(?:" + re.escape(delimiter) + field + rb")*)(?:\r\n|\r|\n|\Z)")


def csv_records(contents: bytes, pattern: re.Pattern[bytes] | None) -> Iterator[bytes]:
    """The records of a file, without the ends of lines. Quotes mean nothing where there is no pattern."""
    if pattern is None or b'"' not in contents:
        return iter(contents.splitlines())
    return (found[1] for found in pattern.finditer(contents) if found.start() < len(contents))
