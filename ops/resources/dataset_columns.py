"""Many elements of a dataset at once, component by component.

Batches ask for elements this way. Where a dataset can, it gives them without making each one: rows of an array are
gathered in one call, and a function of elements is computed once for all of them. What comes out is the same as element
by element, errors and their places included.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, Generic, TypeVar

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework.op_def import Array
from tfray.ops.resources.dataset_values import Element

Columns = list[Sequence[Any]]
"""For each component its values: an array whose rows they are, which nobody else holds, or a sequence of them."""

Take = Callable[[int], Columns]
"""``take(count)``: the next elements, at most `count` and at least one.

Raises what ``next`` would raise in place of the first of them. An error behind it ends the columns, and is raised by the
next call. `Interrupted` loses no element.
"""

Item = TypeVar("Item")


class Elements(Iterator[Element]):
    """An iterator of elements that gives many at once. A program uses either ``next`` or `take`, not both."""

    @abstractmethod
    def take(self, count: int) -> Columns:
        """As `Take` says."""


class Collected(Generic[Item]):
    """Items of an iterator, several at a time."""

    __slots__ = ("_failed", "_found", "_items")

    def __init__(self, items: Iterator[Item]) -> None:
        self._items = items
        self._found: list[Item] = []
        self._failed: Exception | None = None

    def some(self, count: int) -> list[Item]:
        """The next items, as `Take` says."""
        failed, self._failed = self._failed, None
        if failed is not None:
            raise failed
        found = self._found
        try:
            found.extend(islice(self._items, count - len(found)))  # what is there stays when this is interrupted
        except Exception as error:
            if not found:
                raise
            self._failed = error
        if not found:
            raise StopIteration
        self._found = []
        return found


def take_from(elements: Iterator[Element]) -> Take:
    """How to take many elements of an iterator at once."""
    if isinstance(elements, Elements):
        return elements.take
    collected = Collected(elements)
    return lambda count: [*zip(*collected.some(count), strict=True)]


def elements_of(columns: Columns) -> Iterator[Element]:
    """The elements of columns, one by one."""
    return zip(*map(_single, columns), strict=True)


def _single(column: Sequence[Any]) -> Any:
    is_strings = isinstance(column, np.ndarray) and column.dtype.kind == "O" and column.ndim == 1
    return map(as_string, column) if is_strings else column


def as_string(text: bytes) -> Array:
    """A string as a tensor of rank 0."""
    array = np.empty((), object)
    array[()] = text
    return array


def joined(parts: Sequence[Sequence[Any]]) -> Sequence[Any]:
    """The parts of one column, one after the other."""
    if len(parts) == 1:
        return parts[0]
    arrays = [part for part in parts if isinstance(part, np.ndarray)]
    if len(arrays) == len(parts) and len({array.shape[1:] for array in arrays}) == 1:
        return np.concatenate(arrays)
    return [value for part in parts for value in _single(part)]


def stacked(column: Sequence[Any]) -> Array:
    """The values of a column as the rows of an array. Raises `InvalidArgumentError` if their shapes differ."""
    if isinstance(column, np.ndarray):
        return column
    first = np.asarray(column[0])
    shapes = {value.shape for value in column} if isinstance(column[0], np.ndarray) else set(map(np.shape, column))
    if len(shapes) > 1:
        other = next(np.shape(value) for value in column if np.shape(value) != first.shape)
        raise InvalidArgumentError(
            f"batch: elements of shapes {list(first.shape)} and {list(other)} cannot be stacked; use padded_batch"
        )
    if first.dtype.kind != "O":
        if first.ndim and first.size:
            return np.concatenate(column).reshape(len(column), *first.shape)
        if not first.ndim:
            return np.array(column, first.dtype)
    out = np.empty((len(column), *first.shape), first.dtype)
    for row, value in enumerate(column):
        out[row] = value[()]  # of strings, not the array of rank 0 around one
    return out
