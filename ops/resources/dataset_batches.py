"""Datasets that join several elements of another dataset into one, or split them: batches, windows, unbatching."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

import numpy as np

from tfray.errors import DataLossError, InvalidArgumentError
from tfray.framework.op_def import Array
from tfray.ops.resources.dataset_columns import Column, Columns, Ragged, joined, stacked, take_from
from tfray.ops.resources.dataset_sources import Listed, Slices, slices
from tfray.ops.resources.dataset_values import DatasetValue, Element, ElementFunction, Walk, chained


class Batched(DatasetValue):
    """Batches: `size` elements stacked along a new first axis.

    An error takes the place of its batch. The elements of that batch before the error are dropped, and the next batch
    begins after it; or after all elements of the batch, if it is whole.

    Args:
        parent: The elements.
        size: Number of elements in a batch.
        drop_remainder: Whether a last batch that is not full is left out.
        is_whole: Whether a batch is made of `size` elements even if there is an error among them.
    """

    def __init__(self, parent: DatasetValue, size: int, drop_remainder: bool, is_whole: bool = False) -> None:
        if size < 1:
            raise InvalidArgumentError(f"batch: batch_size is {size}, expected at least 1")
        self._parent = parent
        self.size = size
        self.drops = drop_remainder
        self._is_whole = is_whole

    def open(self, walk: Walk) -> Iterator[Element]:
        batches = _Batches(self._parent.open(walk), self.size, self.drops, self._is_whole)
        return map(_stacked_results if self._is_whole else _stacked_columns, batches)


def _stacked_columns(columns: Columns) -> Element:
    return tuple(map(stacked, columns, count()))


def _stacked_results(columns: Columns) -> Element:
    try:
        return _stacked_columns(columns)
    except InvalidArgumentError as error:
        what = "Cannot add tensor to the batch: number of elements does not match"
        raise InvalidArgumentError(f"{what}. {error.message}") from error


class _Batches(Iterator[Columns]):
    """The columns of `size` elements. The last ones may have fewer; `drop_remainder` leaves these out."""

    __slots__ = ("_count", "_drop", "_failed", "_is_whole", "_parts", "_size", "_take")

    def __init__(self, parent: Iterator[Element], size: int, drop_remainder: bool, is_whole: bool = False) -> None:
        self._take = take_from(parent)
        self._size = size
        self._drop = drop_remainder
        self._parts: list[Columns] = []
        """What is there of the next batch, should a call have been interrupted."""
        self._count = 0
        self._is_whole = is_whole
        self._failed: Exception | None = None
        """The first error of a whole batch."""

    def __next__(self) -> Columns:
        try:
            while self._count < self._size:
                self._add_some()
        except StopIteration:
            if self._drop or not self._count:
                self._begin()
                raise
        except Exception:
            self._begin()
            raise
        parts, failed = self._parts, self._failed
        self._begin()
        if failed is not None:
            raise failed
        return parts[0] if len(parts) == 1 else [joined(column) for column in zip(*parts, strict=True)]

    def _add_some(self) -> None:
        try:
            columns = self._take(self._size - self._count)
        except StopIteration:
            raise
        except Exception as error:
            if not self._is_whole:
                raise
            self._failed = self._failed or error
            self._count += 1
        else:
            self._parts.append(columns)
            self._count += len(columns[0])

    def _begin(self) -> None:
        """Begin a batch."""
        self._parts, self._count, self._failed = [], 0, None


class PaddedBatched(DatasetValue):
    """Batches of `size` elements, each padded at its end to a common shape. Errors are handled as in `Batched`.

    Args:
        parent: The elements.
        size: Number of elements in a batch.
        shapes: For each component its padded shape. None stands for the largest size in the batch.
        padding: For each component the value to pad with.
        drop_remainder: Whether a last batch that is not full is left out.
    """

    def __init__(
        self,
        parent: DatasetValue,
        size: int,
        shapes: Sequence[Sequence[int | None]],
        padding: Sequence[Any],
        drop_remainder: bool,
    ) -> None:
        if size < 1:
            raise InvalidArgumentError(f"padded_batch: batch_size is {size}, expected at least 1")
        self._parent = parent
        self.size = size
        self._shapes = shapes
        self._padding = padding
        self.drops = drop_remainder

    def open(self, walk: Walk) -> Iterator[Element]:
        return map(self._padded_columns, _Batches(self._parent.open(walk), self.size, self.drops))

    def _padded_columns(self, columns: Columns) -> Element:
        return tuple(
            _padded(column, shape, padding)
            for column, shape, padding in zip(columns, self._shapes, self._padding, strict=True)
        )


def _padded(column: Column, shape: Sequence[int | None], padding: Any) -> Array:
    """The values of a column, padded at their ends to `shape`, as the rows of an array."""
    if isinstance(column, Ragged):
        rank, largest = column.values.ndim, [int(column.lengths.max()), *column.values.shape[1:]]
    elif isinstance(column, np.ndarray):
        rank, largest = column.ndim - 1, list(column.shape[1:])
    else:
        column = [np.asarray(value) for value in column]
        rank = len(shape) if all(value.ndim == len(shape) for value in column) else -1
        largest = [max(sizes) for sizes in zip(*(value.shape for value in column), strict=True)] if rank > 0 else []
    if rank != len(shape):
        raise InvalidArgumentError(f"padded_batch: an element has not the rank of padded shape {list(shape)}")
    for wanted, found in zip(shape, largest, strict=True):
        if wanted is not None and found > wanted:
            raise DataLossError(f"padded_batch: an element has size {found}, and the padded size is {wanted}")
    full = [found if wanted is None else wanted for wanted, found in zip(shape, largest, strict=True)]
    return _filled(column, [len(column), *full], largest, padding)


def _filled(column: Column, sizes: Sequence[int], largest: Sequence[int], padding: Any) -> Array:
    if isinstance(column, np.ndarray):
        if column.shape == tuple(sizes):
            return column
        out = np.full(sizes, padding, column.dtype)
        out[(slice(None), *map(slice, largest))] = column
    elif isinstance(column, Ragged):
        out = np.full(sizes, padding, column.values.dtype)
        is_there = np.arange(sizes[1]) < column.lengths[:, None]
        out[(slice(None), slice(None), *map(slice, largest[1:]))][is_there] = column.values
    else:
        out = np.full(sizes, padding, column[0].dtype)
        for row, value in zip(out, column, strict=True) if largest else ():
            row[tuple(map(slice, value.shape))] = value
        if not largest:
            out[:] = [value[()] for value in column]
    return out


class Unbatched(DatasetValue):
    """The slices of each element's components along their first axis."""

    def __init__(self, parent: DatasetValue) -> None:
        self._parent = parent

    def open(self, walk: Walk) -> Iterator[Element]:
        return chained(map(_slices_of, self._parent.open(walk)))


def _slices_of(element: Element) -> Iterator[Element]:
    return slices(Slices(element).components)


class Windows(DatasetValue):
    """Windows of `size` consecutive elements; the next window begins `shift` elements later.

    Each window is a tuple of datasets, one for each component. An error inside a window keeps its place there. An error
    between windows is skipped.
    """

    def __init__(self, parent: DatasetValue, size: int, shift: int, stride: int, drop_remainder: bool) -> None:
        if min(size, shift, stride) < 1:
            raise InvalidArgumentError("window: size, shift and stride must be at least 1")
        self._parent = parent
        self.size, self.shift, self.stride = size, shift, stride
        self.drop = drop_remainder

    def open(self, walk: Walk) -> Iterator[Element]:
        return _WindowIterator(self, self._parent.open(walk))


class _WindowIterator(Iterator[Element]):
    def __init__(self, windows: Windows, parent: Iterator[Element]) -> None:
        self._windows = windows
        self._parent: Iterator[Element] | None = parent
        self._buffer: list[Element | Exception] = []
        self._passed_over = 0
        """Elements still to be taken that lie between two windows."""

    def __next__(self) -> Element:
        windows, buffer = self._windows, self._buffer
        while self._passed_over and self._parent is not None:
            self._take()
            self._passed_over -= 1
            buffer.clear()
        span = (windows.size - 1) * windows.stride + 1
        while len(buffer) < span and self._parent is not None:
            self._take()
        if not buffer or (len(buffer) < span and windows.drop):
            raise StopIteration
        window = buffer[: span : windows.stride]
        self._passed_over = max(0, windows.shift - len(buffer))
        del buffer[: windows.shift]
        elements = []
        for element in window:
            if isinstance(element, Exception):
                raise element
            elements.append(element)
        return tuple(Listed([(value,) for value in column]) for column in zip(*elements, strict=True))

    def _take(self) -> None:
        assert self._parent is not None
        try:
            self._buffer.append(next(self._parent))
        except StopIteration:
            self._parent = None
        except Exception as error:  # noqa: BLE001 (raised by the windows that hold it)
            self._buffer.append(error)


class GroupedByWindow(DatasetValue):
    """Groups elements by key, turns each group into a dataset by a function, and gives the elements of these datasets.

    A group goes to the function when it is full. Groups that are not full at the end follow, in the order of their
    keys. If the function fails for a group, the error takes the group's place and its elements are lost.

    Args:
        parent: Elements whose first two components are the key and the size of the key's groups.
        function: Function of a key and a dataset of the group that returns a dataset.
    """

    def __init__(self, parent: DatasetValue, function: ElementFunction) -> None:
        self._parent = parent
        self._function = function

    def open(self, walk: Walk) -> Iterator[Element]:
        function = self._function.open(walk)

        def opened(group: tuple[int, list[Element]]) -> Iterator[Element]:
            key, elements = group
            dataset: DatasetValue = function.call(np.int64(key), Listed(elements))[0]
            return dataset.open(walk)

        return chained(map(opened, _KeyedGroups(self._parent.open(walk))))


class _KeyedGroups(Iterator[tuple[int, list[Element]]]):
    def __init__(self, parent: Iterator[Element]) -> None:
        self._parent: Iterator[Element] | None = parent
        self._groups: dict[int, list[Element]] = {}

    def __next__(self) -> tuple[int, list[Element]]:
        while self._parent is not None:
            try:
                key, size, *element = next(self._parent)
            except StopIteration:
                self._parent = None
                break
            if size < 1:
                raise InvalidArgumentError(f"Window size must be greater than zero, but got {size}. The key is {key}.")
            group = self._groups.setdefault(int(key), [])
            group.append(tuple(element))
            if len(group) >= size:
                return int(key), self._groups.pop(int(key))
        if not self._groups:
            raise StopIteration
        key = min(self._groups)
        return key, self._groups.pop(key)
