"""Datasets whose elements are computed by threads. An error of a thread is raised in the place of its element."""

from __future__ import annotations

import math
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError as FutureCancelledError
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from statistics import median
from typing import Any, Final, NamedTuple

import numpy as np

from tfray.errors import CancelledError, OutOfRangeError, UnknownError
from tfray.framework.op_def import Array
from tfray.ops.kernels.cpu_threads import thread_count, work_alone
from tfray.ops.resources.dataset_columns import Column, Columns, Elements, MappedElements
from tfray.ops.resources.dataset_values import (
    AUTOTUNE,
    LOOK_S,
    DatasetValue,
    Element,
    ElementFunction,
    Interrupted,
    OpenedFunction,
    Walk,
)

_CLOSED: Final = "the iterator was closed"


def _as_exception(error: BaseException) -> BaseException:
    """The exception that the reader raises for an error of a thread."""
    if isinstance(error, (Exception, Interrupted)):
        return error
    made = UnknownError(f"a function of the dataset raised {type(error).__name__}: {error}")
    made.__cause__ = error
    return made


# -- whose work it is ----------------------------------------------------------------------------------


_TRIAL: Final = 16
"""Reads whose times are compared."""
_FIRST_REST: Final = 16 * _TRIAL
_LONGEST_REST: Final = 512 * _TRIAL
"""Reads between two trials: twice as many each time that nothing was gained."""
_SHORT_S: Final = 0.001
"""To hand an element from thread to thread takes less. Elements that take longer are always left to threads."""


class _Pace:
    """Finds whether a reader is faster when it makes elements itself, by trying both ways now and then.

    Threads work while the reader is away, and several work at once. But somebody is woken for each element, and all of
    them want the interpreter's lock.

    Attributes:
        is_alone: Whether the reader is to make the elements.
        read_at: When it got its last element.
    """

    def __init__(self) -> None:
        self.is_alone = False
        self.read_at = time.monotonic()
        self._turns: list[float] = []
        """Times from element to element."""
        self._threads_s = 0.0
        """Such a time while threads made the elements."""
        self._rest = _FIRST_REST
        self._remaining = 0
        """Reads before the next trial."""

    def note(self, count: int = 1) -> None:
        """The reader gets so many elements now."""
        now = time.monotonic()
        self._turns.append((now - self.read_at) / count)
        self.read_at = now
        if len(self._turns) == _TRIAL:
            self._remaining -= _TRIAL
            self._choose(median(self._turns))
            self._turns = []

    def _choose(self, turn_s: float) -> None:
        if not self.is_alone:
            self._threads_s = turn_s
            if self._remaining <= 0 and turn_s <= _SHORT_S:
                self.is_alone, self._remaining = True, _FIRST_REST
        elif turn_s > self._threads_s:
            self._rest = min(2 * self._rest, _LONGEST_REST)
            self.is_alone, self._remaining = False, self._rest
        elif self._remaining <= 0:  # see how it is otherwise
            self.is_alone, self._rest = False, _FIRST_REST


# -- parallel calls ------------------------------------------------------------------------------------


class ParallelMapped(DatasetValue):
    """The results of a function that threads compute, in the order of the elements.

    Args:
        parent: The elements.
        function: The function.
        workers: Number of threads.
    """

    def __init__(self, parent: DatasetValue, function: ElementFunction, workers: int) -> None:
        self._parent = parent
        self._function = function
        self._workers = workers

    def open(self, walk: Walk) -> Iterator[Element]:
        def one_by_one(elements: Iterator[Element]) -> Iterator[Element]:
            return _ParallelIterator(walk, elements, self._function, self._workers)

        # Many at once are computed without threads: a function that allows it does little for each.
        return MappedElements(self._parent.open(walk), self._function, one_by_one)

    def computes_together(self) -> bool:
        return self._function.has_batch_form()


_MOST_AT_ONCE: Final = 256
"""Elements that a reader gets at a time: what calls take that have begun stays in memory until they end."""

_MOST_ROW_BYTES: Final = 1 << 28
"""256 MiB: larger arrays are not made for a batch ahead. It may end early, or be meant to hold all that there is."""


class _ParallelIterator(Elements):
    """Calls that run ahead of the reader: some for each thread, and as many as it asks for at once.

    A reader of many waits for the last of them only, so that threads which always have a next call neither sleep nor
    wake anybody in between. Where `_Pace` finds that this is faster, readers make the calls themselves.
    """

    def __init__(self, walk: Walk, parent: Iterator[Element], function: ElementFunction, workers: int) -> None:
        self._walk = walk
        self._parent: Iterator[Element] | None = parent
        self._functions = _Functions(walk, function)
        self._ahead = 2 * workers
        self._pool = ThreadPoolExecutor(workers, "tfray-map", _begin_to_map, (workers,))
        # When the iterator is dropped, its threads end and calls that have not started are cancelled.
        weakref.finalize(self, self._pool.shutdown, wait=False, cancel_futures=True)
        self._pending: deque[_Call] = deque()
        self._rows = _Rows(0)
        self._pace = _Pace()

    def __next__(self) -> Element:
        self._begin(1)
        self._check_first()
        self._pace.note()
        return self._pending.popleft().future.result()

    def take(self, count: int) -> Columns:
        count = min(count, _MOST_AT_ONCE)
        self._begin(count)
        wanted = min(count, len(self._pending))
        if wanted:
            self._await(self._pending[wanted - 1].future)
        self._check_first()
        calls: list[_Call] = []
        for call in islice(self._pending, wanted):
            self._await(call.future)
            if call.future.exception() is not None:
                break
            calls.append(call)
        for _ in calls:
            self._pending.popleft()
        self._pace.note(len(calls))
        elements, first = [call.future.result() for call in calls], calls[0]
        is_whole = first.row == 0 and len(calls) > 1 and all(call.rows is first.rows for call in calls)
        return first.rows.columns(elements) if is_whole else [*zip(*elements, strict=True)]

    def _begin(self, count: int) -> None:
        """Begin so many calls, and those ahead of them; what has begun counts."""
        pending = self._pending
        # A call of the reader's own would not end with a step that is out of time.
        is_alone = self._pace.is_alone and self._walk.remaining_s() is None
        wanted = count if is_alone else count + self._ahead
        while self._parent is not None and len(pending) < wanted:
            try:
                element = next(self._parent)
            except StopIteration:
                self._parent = None
                self._pool.shutdown(wait=False)
            except Exception as error:  # noqa: BLE001 (raised in its turn)
                pending.append(_Call(_failed(error), _Rows(0), 0))
            else:
                if self._rows.is_full():
                    self._rows = _Rows(count)
                rows, row = self._rows, self._rows.next_row()
                begin = self._call_here if is_alone else self._submit
                pending.append(_Call(begin(element, rows, row), rows, row))

    def _submit(self, element: Element, rows: _Rows, row: int) -> Future[Element]:
        return self._pool.submit(self._functions.call, element, rows, row)

    def _call_here(self, element: Element, rows: _Rows, row: int) -> Future[Element]:
        try:
            called: Future[Element] = Future()
            called.set_result(self._functions.call(element, rows, row))
        except (Exception, Interrupted) as error:  # noqa: BLE001 (raised in its turn)
            return _failed(error)
        return called

    def _await(self, future: Future[Element]) -> None:
        while not future.done():
            remaining = self._walk.remaining_s()
            try:
                future.exception(LOOK_S if remaining is None else min(LOOK_S, remaining))
            except TimeoutError:
                self._walk.raise_if_ended()
            except FutureCancelledError:
                raise Interrupted(CancelledError(_CLOSED)) from None

    def _check_first(self) -> None:
        """Raise what the next element raises."""
        pending = self._pending
        if not pending:
            raise StopIteration
        self._await(pending[0].future)
        raised = pending[0].future.exception()
        if isinstance(raised, OutOfRangeError):  # by which the function ends the dataset
            self._parent = None
            pending.clear()
            self._pool.shutdown(wait=False, cancel_futures=True)
            raise StopIteration
        if raised is not None:
            pending.popleft()
            raise _as_exception(raised)


def _failed(error: BaseException) -> Future[Element]:
    failed: Future[Element] = Future()
    failed.set_exception(error)
    return failed


def _begin_to_map(workers: int) -> None:
    """Prepare a thread for the calls of a function."""
    np.seterr(all="ignore")
    if workers >= thread_count():  # a second thread for an element would only be in the way
        work_alone()


class _Call(NamedTuple):
    """A call of the function, and the place of its results."""

    future: Future[Element]
    rows: _Rows
    row: int


class _Rows:
    """The arrays of a batch. Results are computed there, or the thread that has them copies them, out of its cache.

    Args:
        count: Number of rows. With less than two, results stay where they are.
    """

    def __init__(self, count: int) -> None:
        self._count = count if count > 1 else 0
        self._used = 0
        self._lock = threading.Lock()
        self._arrays: dict[int, Array | None] = {}

    def is_full(self) -> bool:
        """Whether every row is some element's."""
        return self._used >= self._count

    def next_row(self) -> int:
        """A row for the next element."""
        self._used += 1
        return self._used - 1

    def computed(self, row: int, function: OpenedFunction, element: Element) -> Element:
        """The results for an element. Those are rows that are arrays like the first element's."""
        if not self._count:
            return function.call(*element)
        arrays = [self._array(*room) for room in function.rooms]
        rooms = [None if array is None else array[row] for array in arrays]
        results = list(function.call_into(element, rooms))
        for place, value in enumerate(results):
            if isinstance(value, np.ndarray) and not any(value is room for room in rooms):
                array = self._array(place, value.shape, value.dtype)
                results[place] = value if array is None else _copied(value, array, row)
        return tuple(results)

    def _array(self, place: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array | None:
        """The array of a component, in the form of the first that asks for it; None if the component gets none."""
        with self._lock:
            if place not in self._arrays:
                size = self._count * math.prod(shape) * dtype.itemsize
                has_rows = shape and dtype.kind != "O" and size <= _MOST_ROW_BYTES
                self._arrays[place] = np.empty((self._count, *shape), dtype) if has_rows else None
            return self._arrays[place]

    def columns(self, elements: Sequence[Element]) -> Columns:
        """The columns of the first elements: the arrays where all of them are rows."""
        columns: list[Column] = []
        for place, values in enumerate(zip(*elements, strict=True)):
            array = self._arrays.get(place)
            if array is None or any(value.base is not array for value in values):
                columns.append(values)
            else:  # a view would be copied where a session hands the batch out
                columns.append(array if len(values) == len(array) else array[: len(values)])
        return columns


def _copied(value: Array, array: Array, row: int) -> Array:
    if value.shape != array.shape[1:] or value.dtype != array.dtype:
        return value
    array[row] = value
    return array[row]


class _Functions:
    """A pool of opened copies of one function: one for each call that runs at the same time."""

    def __init__(self, walk: Walk, function: ElementFunction) -> None:
        self._walk = walk
        self._function = function
        self._idle: list[OpenedFunction] = []

    def call(self, element: Element, rows: _Rows, row: int) -> Element:
        """The result for an element, in its row."""
        self._walk.raise_if_ended()
        try:
            function = self._idle.pop()
        except IndexError:
            function = self._function.open(self._walk)
        result = rows.computed(row, function, element)
        self._idle.append(function)
        return result


# -- elements ahead ------------------------------------------------------------------------------------


class Prefetched(DatasetValue):
    """The elements of another dataset. A thread makes up to `size` of them before they are asked for.

    With `AUTOTUNE` their number is found while they are read: see `_Line`.
    """

    def __init__(self, parent: DatasetValue, size: int) -> None:
        self._parent = parent
        self._size = size

    def open(self, walk: Walk) -> Iterator[Element]:
        elements = self._parent.open(walk)
        return _PrefetchingIterator(walk, elements, self._size) if self._size else elements


class _PrefetchingIterator(Iterator[Element]):
    """The reader's end of a `_Line`.

    The thread starts when the first element is asked for. It ends after the last element, when this iterator is
    dropped, or when the walk is closed.
    """

    def __init__(self, walk: Walk, elements: Iterator[Element], size: int) -> None:
        self._walk = walk
        sizes = (_FIRST_SIZE, _LARGEST_SIZE) if size == AUTOTUNE else (size, size)
        self._line = _Line(elements, *sizes)
        # The thread must not refer to this object: otherwise it would never be dropped, and the thread never end.
        target = threading.Thread(target=_make_ahead, args=(self._line,), name="tfray-prefetch", daemon=True)
        self._thread: threading.Thread | None = target
        walk.add_line(self._line)
        weakref.finalize(self, self._line.close)

    def __next__(self) -> Element:
        if self._thread is not None:
            self._thread.start()
            self._thread = None
        return self._line.take(self._walk)


def _make_ahead(line: _Line) -> None:
    with np.errstate(all="ignore"):
        while line.make_ahead():
            pass


_FIRST_SIZE: Final = 2
_LARGEST_SIZE: Final = 16
"""Elements that `AUTOTUNE` keeps at most: enough to even out elements that take long to make. More only take memory."""

_AWAY_S: Final = 0.005
"""A reader that has been away for so long gets elements made ahead, however fast it read before."""


class _Line:
    """A bounded queue of elements and errors, from the one thread that makes them to the threads that take them.

    Its size doubles, up to the largest, when it is found empty after it was full: then elements come in bursts, which a
    longer line evens out. One that is never full is long enough: its elements are taken faster than they are made.

    Where `_Pace` finds that this is faster, readers make the elements themselves, and the thread rests.

    Args:
        elements: What makes the elements. One thread at a time is in it.
        size: Number of elements for which there is room at first.
        largest: The most to which it grows.
    """

    def __init__(self, elements: Iterator[Element], size: int, largest: int) -> None:
        self._elements = elements
        self._size = size
        self._largest = largest
        self._was_full = False
        self._items: deque[tuple[Any, BaseException | None]] = deque()
        lock = threading.RLock()  # dropped iterators are closed wherever the collector runs
        self._is_wanted = threading.Condition(lock)
        self._is_there = threading.Condition(lock)
        self._is_making = False
        self._is_over = False
        self._waiting = 0
        """Readers that leave the next element to the thread."""
        self._pace = _Pace()

    # -- the thread --

    def make_ahead(self) -> bool:
        """Wait until an element is wanted, then make it. Returns False when there will be no more."""
        with self._is_wanted:
            while not self._is_over and not self._wants_more():
                # A reader that makes the elements itself does not tell when it goes away.
                self._is_wanted.wait(_AWAY_S if self._has_room() else None)
            if self._is_over:
                return False
            self._is_making = True
        try:
            made: tuple[Any, BaseException | None] = next(self._elements), None
        except BaseException as error:  # noqa: BLE001 (raised where the element is asked for)
            made = None, _as_exception(error)
        with self._is_there:
            self._is_making = False
            self._add(*made)
            del made  # a session copies what somebody else holds
            return not self._is_over

    def _add(self, element: Any, error: BaseException | None) -> None:
        if self._is_over:  # closed meanwhile
            return
        self._items.append((element, error))
        self._is_over = isinstance(error, (StopIteration, Interrupted))
        self._was_full |= not self._has_room()
        self._is_there.notify_all()

    def _has_room(self) -> bool:
        return len(self._items) < self._size

    def _wants_more(self) -> bool:
        if self._is_making or not self._has_room():
            return False
        if self._waiting or not self._pace.is_alone:
            return True
        return time.monotonic() - self._pace.read_at >= _AWAY_S

    # -- readers --

    def take(self, walk: Walk) -> Element:
        """Take the next element, or raise the error in its place. After the end, every call raises `StopIteration`."""
        with self._is_there:
            if not self._items and self._was_full:
                self._size, self._was_full = min(2 * self._size, self._largest), False
            is_there = self._await(walk)
            if is_there:
                element, error = self._items[0]
                if not self._is_over or len(self._items) > 1:
                    self._items.popleft()
                    self._is_wanted.notify()
                self._pace.note()
        if not is_there:
            return self._make_here()
        if error is None:
            result: Element = element
            return result
        raise StopIteration if isinstance(error, StopIteration) else error

    def _await(self, walk: Walk) -> bool:
        """Wait until an element is there. Returns False when the reader is to make it; nobody else does until then."""
        while not self._items:
            if self._is_over:
                raise Interrupted(CancelledError(_CLOSED))
            remaining = walk.remaining_s()
            # A step that is out of time ends what it runs, and elements that are interrupted can end with it.
            if remaining is None and not self._is_making and self._pace.is_alone:
                self._is_making = True
                return False
            self._waiting += 1
            self._is_wanted.notify()
            try:
                self._is_there.wait(remaining)
            finally:
                self._waiting -= 1
        return True

    def _make_here(self) -> Element:
        try:
            return next(self._elements)
        except (StopIteration, Interrupted) as last:
            with self._is_there:
                self._add(None, last)
            raise
        finally:
            with self._is_there:
                self._is_making = False
                self._pace.note()
                self._is_there.notify()

    def close(self) -> None:
        """Wake all threads that wait, and refuse further elements."""
        with self._is_there:
            self._is_over = True
            self._items.clear()
            self._is_there.notify_all()
            self._is_wanted.notify_all()
