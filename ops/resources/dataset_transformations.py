"""Datasets that change another one element by element, and datasets that combine several others."""

from __future__ import annotations

import itertools
import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, Final, TypeVar

import numpy as np

from tfray.errors import CancelledError, InvalidArgumentError, OutOfRangeError
from tfray.framework.op_def import Array
from tfray.ops.kernels.random_streams import entropy
from tfray.ops.resources.dataset_columns import Ahead, Columns, Elements, MappedElements, Take, elements_of, take_from
from tfray.ops.resources.dataset_sources import Slices
from tfray.ops.resources.dataset_values import DatasetValue, Element, ElementFunction, OpenedFunction, Walk, chained

Read = TypeVar("Read")

# -- functions of elements -----------------------------------------------------------------------------


class Mapped(DatasetValue):
    """The results of a function."""

    def __init__(self, parent: DatasetValue, function: ElementFunction) -> None:
        self._parent = parent
        self._function = function

    def open(self, walk: Walk) -> Iterator[Element]:
        def one_by_one(elements: Iterator[Element]) -> Iterator[Element]:
            return _MappedIterator(elements, self._function.open(walk))

        return MappedElements(self._parent.open(walk), self._function, one_by_one)

    def computes_together(self) -> bool:
        return self._function.has_batch_form()


class _MappedIterator(Iterator[Element]):
    __slots__ = ("_function", "_results")

    def __init__(self, elements: Iterator[Element], function: OpenedFunction) -> None:
        self._function = function  # for as long as it is called
        self._results = itertools.starmap(function.call, elements)

    def __next__(self) -> Element:
        try:
            return next(self._results)
        except OutOfRangeError:  # by which the function ends the dataset
            self._results = itertools.starmap(self._function.call, ())
            raise StopIteration from None


class Filtered(DatasetValue):
    """The elements for which a predicate holds."""

    def __init__(self, parent: DatasetValue, predicate: ElementFunction) -> None:
        self._parent = parent
        self._predicate = predicate

    def open(self, walk: Walk) -> Iterator[Element]:
        return _FilteredIterator(walk, self._parent.open(walk), self._predicate.open(walk))


class _FilteredIterator(Iterator[Element]):
    __slots__ = ("_function", "_parent", "_predicate", "_walk")

    def __init__(self, walk: Walk, parent: Iterator[Element], predicate: OpenedFunction) -> None:
        self._walk = walk
        self._parent = parent
        self._function = predicate  # for as long as it is called
        self._predicate = predicate.call

    def __next__(self) -> Element:
        while True:
            element = next(self._parent)
            if self._predicate(*element)[0]:
                return element
            self._walk.raise_if_ended()


class TakenWhile(DatasetValue):
    """The elements before the first for which a predicate does not hold."""

    def __init__(self, parent: DatasetValue, predicate: ElementFunction) -> None:
        self._parent = parent
        self._predicate = predicate

    def open(self, walk: Walk) -> Iterator[Element]:
        return _TakenWhileIterator(self._parent.open(walk), self._predicate.open(walk))


class _TakenWhileIterator(Iterator[Element]):
    __slots__ = ("_parent", "_predicate")

    def __init__(self, parent: Iterator[Element], predicate: OpenedFunction) -> None:
        self._parent = parent
        self._predicate = predicate

    def __next__(self) -> Element:
        element = next(self._parent)
        if self._predicate.call(*element)[0]:
            return element
        self._parent = iter(())
        raise StopIteration


class Scanned(DatasetValue):
    """Elements that a function computes from a state and an element. It also returns the next state.

    If the function fails for an element, the state stays as it was.

    Args:
        parent: The elements.
        state: The first state.
        function: Function of a state and an element. It returns the next state, then an element.
    """

    def __init__(self, parent: DatasetValue, state: Element, function: ElementFunction) -> None:
        self._parent = parent
        self._state = state
        self._function = function

    def open(self, walk: Walk) -> Iterator[Element]:
        return _ScannedIterator(self._parent.open(walk), self._state, self._function.open(walk))


class _ScannedIterator(Iterator[Element]):
    __slots__ = ("_function", "_parent", "_state")

    def __init__(self, parent: Iterator[Element], state: Element, function: OpenedFunction) -> None:
        self._parent = parent
        self._state = state
        self._function = function

    def __next__(self) -> Element:
        results = self._function.call(*self._state, *next(self._parent))
        count = len(self._state)
        self._state = results[:count]
        return results[count:]


class Interleaved(DatasetValue):
    """Interleaves the datasets that a function makes: `cycle` of them are open and give `block` elements in turn."""

    def __init__(self, parent: DatasetValue, function: ElementFunction, cycle: int, block: int) -> None:
        self._parent = parent
        self._function = function
        self._cycle = cycle
        self._block = block

    def open(self, walk: Walk) -> Iterator[Element]:
        function = self._function.open(walk)

        def opened(element: Element) -> Iterator[Element]:
            dataset: DatasetValue = function.call(*element)[0]
            return dataset.open(walk)

        sources = map(opened, self._parent.open(walk))
        return chained(sources) if self._cycle == 1 else _Interleaving(walk, sources, self._cycle, self._block)


class _Interleaving(Iterator[Element]):
    """A circle of places: each holds an open iterator, or is empty until its turn. An error does not end the turn."""

    def __init__(self, walk: Walk, sources: Iterator[Iterator[Element]], cycle: int, block: int) -> None:
        self._walk = walk
        self._sources: Iterator[Iterator[Element]] | None = sources
        self._places: list[Iterator[Element] | None] = [None] * cycle
        self._block = block
        self._turn = 0
        self._taken = 0
        self._open = 0

    def __next__(self) -> Element:
        while self._open or self._sources is not None:
            place = self._places[self._turn]
            if place is None:
                self._fill()
                continue
            try:
                element = next(place)
            except StopIteration:
                self._places[self._turn] = None
                self._open -= 1
                self._advance()
                self._walk.raise_if_ended()
                continue
            self._taken += 1
            if self._taken == self._block:
                self._advance()
            return element
        raise StopIteration

    def _fill(self) -> None:
        if self._sources is None:
            self._advance()
            return
        try:
            self._places[self._turn] = next(self._sources)
            self._open += 1
        except StopIteration:
            self._sources = None

    def _advance(self) -> None:
        self._turn = (self._turn + 1) % len(self._places)
        self._taken = 0


# -- several datasets ----------------------------------------------------------------------------------


class Concatenated(DatasetValue):
    """The elements of several datasets, one after the other."""

    def __init__(self, parents: Sequence[DatasetValue]) -> None:
        self.parents = list(parents)

    def open(self, walk: Walk) -> Iterator[Element]:
        return chain.from_iterable([parent.open(walk) for parent in self.parents])


class Chosen(DatasetValue):
    """Elements of several datasets. `choices` names the dataset of the next one; datasets at their end are skipped."""

    def __init__(self, choices: DatasetValue, parents: Sequence[DatasetValue]) -> None:
        self._choices = choices
        self._parents = list(parents)

    def open(self, walk: Walk) -> Iterator[Element]:
        return _ChosenIterator(walk, self._choices.open(walk), [parent.open(walk) for parent in self._parents])


class _ChosenIterator(Iterator[Element]):
    def __init__(self, walk: Walk, choices: Iterator[Element], sources: Sequence[Iterator[Element]]) -> None:
        self._walk = walk
        self._choices = choices
        self._sources: list[Iterator[Element] | None] = list(sources)

    def __next__(self) -> Element:
        while any(source is not None for source in self._sources):
            (choice,) = next(self._choices)
            if not 0 <= choice < len(self._sources):
                raise InvalidArgumentError(f"Selector index out of range: {choice} >= {len(self._sources)}")
            source = self._sources[choice]
            if source is not None:
                try:
                    return next(source)
                except StopIteration:
                    self._sources[choice] = None
            self._walk.raise_if_ended()
        raise StopIteration


class Zipped(DatasetValue):
    """Joins the elements of several datasets side by side, until the first dataset ends.

    An error in one dataset is the error of the whole element. The other datasets advance too, so that elements of the
    same position stay together.
    """

    def __init__(self, parents: Sequence[DatasetValue]) -> None:
        self.parents = list(parents)

    def open(self, walk: Walk) -> Iterator[Element]:
        return _ZippedIterator([parent.open(walk) for parent in self.parents])


class _ZippedIterator(Iterator[Element]):
    __slots__ = ("_sources",)

    def __init__(self, sources: list[Iterator[Element]]) -> None:
        self._sources = sources

    def __next__(self) -> Element:
        element: Element = ()
        failed: Exception | None = None
        for source in self._sources:
            try:
                element += next(source)
            except StopIteration:
                self._sources = []
                break
            except Exception as error:  # noqa: BLE001 (raised below)
                failed = failed or error
        if failed is not None:
            raise failed
        if not self._sources:
            raise StopIteration
        return element


# -- parts and repetitions -----------------------------------------------------------------------------


class Taken(DatasetValue):
    """The first `count` elements, not counting errors."""

    def __init__(self, parent: DatasetValue, count: int) -> None:
        self._parent = parent
        self.count = count

    def open(self, walk: Walk) -> Iterator[Element]:
        return _TakenIterator(self._parent.open(walk), self.count)

    def computes_together(self) -> bool:
        return self._parent.computes_together()


class _TakenIterator(Elements):
    __slots__ = ("_left", "_parent", "_take")

    def __init__(self, parent: Iterator[Element], count: int) -> None:
        self._parent = parent
        self._take = take_from(parent)
        self._left = count

    def take(self, count: int) -> Columns:
        if not self._left:
            raise StopIteration
        columns = self._take(min(count, self._left))
        self._left -= len(columns[0])
        return columns

    def __next__(self) -> Element:
        if not self._left:
            raise StopIteration
        element = next(self._parent)
        self._left -= 1
        return element


class Skipped(DatasetValue):
    """All but the first `count` elements. An error among those starts the count again, as in TensorFlow."""

    def __init__(self, parent: DatasetValue, count: int) -> None:
        self._parent = parent
        self.count = count

    def open(self, walk: Walk) -> Iterator[Element]:
        return _SkippedIterator(walk, self._parent.open(walk), self.count)


class _SkippedIterator(Iterator[Element]):
    __slots__ = ("_left", "_parent", "_walk")

    def __init__(self, walk: Walk, parent: Iterator[Element], count: int) -> None:
        self._walk = walk
        self._parent = parent
        self._left = count

    def __next__(self) -> Element:
        if self._left:
            for begin in range(0, self._left, 1000):
                deque(islice(self._parent, min(1000, self._left - begin)), 0)
                self._walk.raise_if_ended()
            self._left = 0
        return next(self._parent)


class Sharded(DatasetValue):
    """Every `count`-th element, starting at `index`. An error does not count as an element; every shard raises it."""

    def __init__(self, parent: DatasetValue, count: int, index: int) -> None:
        self._parent = parent
        self.count = count
        self.index = index

    def open(self, walk: Walk) -> Iterator[Element]:
        return _ShardedIterator(self._parent.open(walk), self.count, self.index)


class _ShardedIterator(Iterator[Element]):
    __slots__ = ("_count", "_parent", "_pass_over")

    def __init__(self, parent: Iterator[Element], count: int, index: int) -> None:
        self._parent = parent
        self._count = count
        self._pass_over = index

    def __next__(self) -> Element:
        while self._pass_over:
            next(self._parent)
            self._pass_over -= 1
        element = next(self._parent)
        self._pass_over = self._count - 1
        return element


class Repeated(DatasetValue):
    """The elements `count` times over; without end when `count` is negative. An empty dataset always ends."""

    def __init__(self, parent: DatasetValue, count: int) -> None:
        self._parent = parent
        self.count = count

    def open(self, walk: Walk) -> Iterator[Element]:
        return _RepeatedIterator(walk, self._parent, self.count)

    def computes_together(self) -> bool:
        return self._parent.computes_together()


class _RepeatedIterator(Elements):
    __slots__ = ("_elements", "_had_element", "_had_error", "_left", "_parent", "_take", "_walk")

    def __init__(self, walk: Walk, parent: DatasetValue, count: int) -> None:
        self._walk = walk
        self._parent = parent
        self._left = count
        self._elements: Iterator[Element] = iter(())
        self._take: Take = take_from(self._elements)
        self._had_element = True
        self._had_error = False

    def __next__(self) -> Element:
        return self._from_pass(lambda: next(self._elements))

    def take(self, count: int) -> Columns:
        return self._from_pass(lambda: self._take(count))

    def _from_pass(self, read: Callable[[], Read]) -> Read:
        """What `read` gets from this pass, or from the next one when this one has ended."""
        while True:
            try:
                found = read()
                self._had_element = True
                return found
            except StopIteration:
                # Stop after a pass without elements: an endless repetition of nothing would never return.
                if not self._had_element and (self._left < 0 or not self._had_error):
                    self._left = 0
                if not self._left:
                    raise
            except Exception:
                self._had_error = True
                raise
            self._walk.raise_if_ended()
            self._left -= self._left > 0
            self._had_element = self._had_error = False
            self._elements = self._parent.open(self._walk)
            self._take = take_from(self._elements)


# -- order and memory ----------------------------------------------------------------------------------


_DRAWN_AT_ONCE: Final = 256
"""Random numbers that a shuffle draws in one call of NumPy: one by one, the calls would cost more than the numbers."""


_MADE_AT_ONCE: Final = 128
"""Elements that a shuffle lets a function compute at once. More would only delay the first of them."""


class Shuffled(DatasetValue):
    """The elements in random order: each is drawn from a buffer, and the next of `parent` takes its place.

    Args:
        parent: The elements.
        size: Number of elements among which one is drawn.
        seeds: Two integers; both 0 for an order that differs from process to process.
        reshuffle: Whether each pass of a walk has another order.
    """

    def __init__(self, parent: DatasetValue, size: int, seeds: tuple[int, int], reshuffle: bool) -> None:
        if size < 1:
            raise InvalidArgumentError(f"shuffle: buffer_size is {size}, expected at least 1")
        self._parent = parent
        self._size = size
        self._seeds = seeds if any(seeds) else tuple(entropy(2).tolist())
        self._reshuffle = reshuffle

    def open(self, walk: Walk) -> Iterator[Element]:
        number = next(walk.kept(self, itertools.count)) if self._reshuffle else 0
        draws = _Draws(np.random.default_rng([*self._seeds, number]), self._size)
        if isinstance(self._parent, Slices):
            return _ShuffledRows(self._parent, self._size, draws)
        parent = Ahead(self._parent.open(walk), self._parent.computes_together, min(self._size, _MADE_AT_ONCE))
        return _ShuffledIterator(parent, self._size, draws)


class _Draws:
    """The random choices of a shuffle: places in its full buffer, and the order of what is left in the end.

    Numbers are drawn in advance; they are the same as if drawn one by one.
    """

    __slots__ = ("_before", "_generator", "_numbers", "_size")

    def __init__(self, generator: np.random.Generator, size: int) -> None:
        self._generator = generator
        self._size = size
        self._numbers: list[int] = []
        self._before: Any = None

    def next(self) -> int:
        """A place in the buffer."""
        if not self._numbers:
            self._before = self._generator.bit_generator.state
            self._numbers = self._generator.integers(self._size, size=_DRAWN_AT_ONCE).tolist()[::-1]
        return self._numbers.pop()

    def reorder(self, rest: list[Any] | Array) -> None:
        """Put what is left of the buffer into a random order, after which no place is drawn any more."""
        if self._numbers:  # set the generator back to just after the last number that was used
            self._generator.bit_generator.state = self._before
            self._generator.integers(self._size, size=_DRAWN_AT_ONCE - len(self._numbers))
        self._generator.shuffle(rest)


class _ShuffledIterator(Iterator[Element]):
    def __init__(self, parent: Iterator[Element], size: int, draws: _Draws) -> None:
        self._parent: Iterator[Element] | None = parent
        self._size = size
        self._draws = draws
        self._buffer: list[Element] = []
        self._failed: Exception | None = None
        """An error that came while the buffer was full: it is raised after one more element has been drawn."""

    def __next__(self) -> Element:
        failed, self._failed = self._failed, None
        if failed is not None:
            raise failed
        buffer = self._buffer
        while self._parent is not None:
            try:
                element = next(self._parent)
            except StopIteration:
                self._parent = None
                self._draws.reorder(buffer)
                buffer.reverse()
            except Exception as error:
                failed, self._failed = self._failed, error
                if failed is not None:
                    raise failed from None
                if len(buffer) < self._size:
                    self._failed = None
                    raise
            else:
                if len(buffer) == self._size:
                    chosen = self._draws.next()
                    drawn, buffer[chosen] = buffer[chosen], element
                    return drawn
                buffer.append(element)
        if buffer:
            return buffer.pop()
        failed, self._failed = self._failed, None
        raise failed or StopIteration


class _ShuffledRows(Elements):
    """The rows of arrays in the order in which `_ShuffledIterator` would give them. Only their numbers are shuffled."""

    def __init__(self, source: Slices, size: int, draws: _Draws) -> None:
        self._source = source
        self._draws = draws
        self._buffer = list(range(min(size, source.length)))
        self._next = len(self._buffer)
        self._rest: Array | None = None

    def __next__(self) -> Element:
        return next(elements_of(self.take(1)))

    def take(self, count: int) -> Columns:
        rows = self._drawn(count)
        if not len(rows):
            raise StopIteration
        return [component.take(rows, 0) for component in self._source.components]

    def _drawn(self, count: int) -> Sequence[int] | Array:
        """The numbers of up to `count` rows, none at the end."""
        if self._next < self._source.length:
            rows: list[int] = []
            buffer, draw = self._buffer, self._draws.next
            first = self._next
            self._next = min(first + count, self._source.length)
            for row in range(first, self._next):
                chosen = draw()
                rows.append(buffer[chosen])
                buffer[chosen] = row
            return rows
        if self._rest is None:
            self._rest = np.array(self._buffer, np.intp)
            self._draws.reorder(self._rest)
        last, self._rest = self._rest[:count], self._rest[count:]
        return last


class Cached(DatasetValue):
    """The elements, kept in memory once a pass has reached the end. Errors are not kept."""

    def __init__(self, parent: DatasetValue) -> None:
        self._parent = parent

    def open(self, walk: Walk) -> Iterator[Element]:
        complete: list[list[Element]] = walk.kept(self, list)
        return iter(complete[0]) if complete else _FillingIterator(self._parent.open(walk), complete)


class _FillingIterator(Iterator[Element]):
    __slots__ = ("_complete", "_elements", "_parent")

    def __init__(self, parent: Iterator[Element], complete: list[list[Element]]) -> None:
        self._parent = parent
        self._complete = complete
        self._elements: list[Element] = []

    def __next__(self) -> Element:
        try:
            element = next(self._parent)
        except StopIteration:
            if not self._complete:
                self._complete.append(self._elements)
            raise
        self._elements.append(element)
        return element


class Distinct(DatasetValue):
    """The elements, each of which is one scalar, without those that came before."""

    def __init__(self, parent: DatasetValue) -> None:
        self._parent = parent

    def open(self, walk: Walk) -> Iterator[Element]:
        return _DistinctIterator(walk, self._parent.open(walk))


class _DistinctIterator(Iterator[Element]):
    def __init__(self, walk: Walk, parent: Iterator[Element]) -> None:
        self._walk = walk
        self._parent = parent
        self._seen: set[Any] = set()

    def __next__(self) -> Element:
        while True:
            element = next(self._parent)
            value = np.asarray(element[0]).item()
            if value not in self._seen:
                self._seen.add(value)
                return element
            self._walk.raise_if_ended()


# -- errors --------------------------------------------------------------------------------------------


class ErrorsIgnored(DatasetValue):
    """The elements that can be made.

    Args:
        parent: The elements.
        logs: Whether each error is logged as a warning.
    """

    def __init__(self, parent: DatasetValue, logs: bool) -> None:
        self._parent = parent
        self._logs = logs

    def open(self, walk: Walk) -> Iterator[Element]:
        return _ErrorsIgnoredIterator(walk, self._parent.open(walk), self._logs)


class _ErrorsIgnoredIterator(Iterator[Element]):
    __slots__ = ("_logs", "_parent", "_walk")

    def __init__(self, walk: Walk, parent: Iterator[Element], logs: bool) -> None:
        self._walk = walk
        self._parent = parent
        self._logs = logs

    def __next__(self) -> Element:
        while True:
            try:
                return next(self._parent)
            except (StopIteration, CancelledError):
                raise
            except Exception as error:  # noqa: BLE001 (that is what was asked for)
                if self._logs:
                    logging.getLogger("tfray").warning("ignore_errors: left out an element: %s", error)
            self._walk.raise_if_ended()
