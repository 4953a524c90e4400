"""Many elements of a dataset at once, component by component.

Batches ask for elements this way. Where a dataset can, it gives them without making each one: rows of an array are
gathered in one call, and a function of elements is computed once for all of them. What comes out is the same as element
by element, errors and their places included.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, Generic, TypeVar

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework.op_def import Array
from tfray.ops.resources.dataset_values import Element, ElementFunction, OpenedFunction

Column = Array | Sequence[Any]
"""The values of a component: an array whose rows they are, which nobody else holds, or a sequence of them."""

Columns = Sequence[Column]
"""A column for each component."""

Take = Callable[[int], Columns]
"""``take(count)``: the next elements, at most `count` and at least one.

Raises what ``next`` would raise in place of the first of them. An error behind the first ends the columns: the next
call raises it. `Interrupted` loses no element.
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


def _single(column: Column) -> Any:
    is_objects = isinstance(column, np.ndarray) and column.dtype.kind == "O" and column.ndim == 1
    is_strings = is_objects and len(column) and isinstance(column[0], (bytes, str))
    return map(as_string, column) if is_strings else column  # other objects are datasets, optionals and the like


def as_string(text: bytes) -> Array:
    """A string as a tensor of rank 0."""
    array = np.empty((), object)
    array[()] = text
    return array


class Ragged(Sequence[Any]):
    """Arrays that differ in their first size, joined along it.

    Args:
        values: The joined arrays.
        lengths: The size of each.
    """

    def __init__(self, values: Array, lengths: Array) -> None:
        self.values = values
        self.lengths = lengths
        self._ends = np.cumsum(lengths).tolist()

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, index: Any) -> Any:
        end = self._ends[index]
        return self.values[end - int(self.lengths[index]) : end]


def joined(parts: Sequence[Column]) -> Column:
    """The parts of one column, one after the other."""
    if len(parts) == 1:
        return parts[0]
    arrays = [part for part in parts if isinstance(part, np.ndarray)]
    if len(arrays) == len(parts) and len({array.shape[1:] for array in arrays}) == 1:
        return np.concatenate(arrays)
    ragged = [part for part in parts if isinstance(part, Ragged)]
    if len(ragged) == len(parts) and len({part.values.shape[1:] for part in ragged}) == 1:
        return Ragged(np.concatenate([p.values for p in ragged]), np.concatenate([p.lengths for p in ragged]))
    return [value for part in parts for value in _single(part)]


def stacked(column: Column, component: int = 0) -> Array:
    """The values of a column as the rows of an array.

    Args:
        column: The values.
        component: Number of the column, for errors.

    Raises:
        InvalidArgumentError: Their shapes differ.
    """
    if isinstance(column, np.ndarray):
        return column
    if isinstance(column, Ragged) and (column.lengths == column.lengths[0]).all():
        rows: Array = column.values.reshape(len(column), -1, *column.values.shape[1:])
        return rows
    first = np.asarray(column[0])
    shapes = {value.shape for value in column} if isinstance(column[0], np.ndarray) else set(map(np.shape, column))
    if len(shapes) > 1:
        index, other = next((i, np.shape(value)) for i, value in enumerate(column) if np.shape(value) != first.shape)
        raise InvalidArgumentError(
            f"Cannot batch tensors with different shapes in component {component}. First element had shape "
            f"{list(first.shape)} and element {index} had shape {list(other)}. Use padded_batch."
        )
    if first.dtype.kind != "O" and not first.ndim:
        return np.array(column, first.dtype)
    out = np.empty((len(column), *first.shape), first.dtype)
    if first.dtype.kind != "O" and first.size:
        np.concatenate(column, out=out.reshape(-1, *first.shape[1:]))
        return out
    for row, value in enumerate(column):
        # Of strings, not the array of rank 0 around one; other objects are datasets, optionals and the like.
        out[row] = value[()] if isinstance(value, np.ndarray) else value
    return out


# -- functions of elements -----------------------------------------------------------------------------

_AT_ONCE_BYTES: Final = 1 << 20
"""1 MiB: a function takes about so much of its components at a time. More would not stay in a core's cache between two
operations; with less, the calls would cost more than the work."""


class MappedElements(Elements):
    """The results of a function of elements, for many of them at once where the function allows it.

    If that fails, these elements are computed one by one: one of them fails, and its error has its place. If none does,
    their shapes differ; then all further elements are computed one by one.

    Args:
        elements: The elements.
        function: The function.
        one_by_one: From elements to the results of the function.
    """

    def __init__(
        self,
        elements: Iterator[Element],
        function: ElementFunction,
        one_by_one: Callable[[Iterator[Element]], Iterator[Element]],
    ) -> None:
        self._elements = elements
        self._function = function
        self._one_by_one = one_by_one
        self._results: Iterator[Element] | None = None
        self._take_elements: Take | None = None
        self._opened: tuple[OpenedFunction, Sequence[str]] | None = None
        self._rest: Take | None = None
        """Takes results that are computed one by one, before any other."""
        self._has_failed = False
        self._most = 1 << 31

    def __next__(self) -> Element:
        if self._results is None:
            self._results = self._one_by_one(self._elements)
        return next(self._results)

    def take(self, count: int) -> Columns:
        if self._take_elements is None:
            self._opened = self._function.open_over_batch()
            self._take_elements = take_from(self._elements)
            self._rest = take_from(self._one_by_one(self._elements)) if self._opened is None else None
        if self._rest is not None:
            try:
                return self._rest(count)
            except StopIteration:
                if self._opened is None:
                    raise
            except Exception:
                self._has_failed = True
                raise
            self._rest = None
            if not self._has_failed:
                self._opened = None
                self._rest = take_from(self._one_by_one(_Singles(self._take_elements, 1)))
                return self._rest(count)
        columns = self._take_elements(min(count, self._most))
        try:
            return self._computed(columns)
        except Exception:  # noqa: BLE001 (raised by the element that fails, if one does)
            self._has_failed = False
            self._rest = take_from(self._one_by_one(elements_of(columns)))
            return self.take(count)

    def _computed(self, columns: Columns) -> Columns:
        assert self._opened is not None
        function, forms = self._opened
        count, stacks = len(columns[0]), [stacked(column) for column in columns]
        self._most = max(1, count * _AT_ONCE_BYTES // max(1, sum(stack.nbytes for stack in stacks)))
        values = function.call(*stacks, np.int64(count))
        lengths = iter(values[len(forms) :])
        results: list[Column] = []
        for form, value in zip(forms, values, strict=False):
            if form == "same":
                results.append([value] * count)
            elif form == "ragged":
                results.append(Ragged(value, next(lengths)))
            else:
                # What shares memory with another array is copied: whoever takes the columns may change them.
                is_own = value.base is None and all(value is not other for other in results)
                results.append(value if is_own else value.copy())
        if any(len(column) != count for column in results):
            raise InvalidArgumentError(f"a function of {count} elements gave {list(map(len, results))} results")
        return results


class _Singles(Iterator[Element]):
    """Elements that are taken `count` at a time, one by one."""

    def __init__(self, take: Take, count: int) -> None:
        self._take = take
        self._count = count
        self._taken: Iterator[Element] = iter(())

    def __next__(self) -> Element:
        try:
            return next(self._taken)
        except StopIteration:
            columns = self._take(self._count)
        # A row of an array would keep the whole array as long as somebody holds the row.
        copies = [
            [row.copy() for row in column] if isinstance(column, Ragged) or np.ndim(column) > 1 else column
            for column in columns
        ]
        self._taken = elements_of(copies)
        return next(self._taken)


class Ahead(Iterator[Element]):
    """The elements of another iterator, of which up to `count` are made at once where that costs less.

    Args:
        elements: The elements.
        gains: Says, when the first one is asked for, whether it costs less.
        count: So many at once.
    """

    def __init__(self, elements: Iterator[Element], gains: Callable[[], bool], count: int) -> None:
        self._elements = elements
        self._gains: Callable[[], bool] | None = gains
        self._count = count

    def __next__(self) -> Element:
        if self._gains is not None:
            if self._gains():
                self._elements = _Singles(take_from(self._elements), self._count)
            self._gains = None
        return next(self._elements)
