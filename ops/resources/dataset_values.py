"""What a dataset is at run time, and the position of a program in it.

A `DatasetValue` is a sequence of elements that can be read any number of times. A *walk* is one use of it by an
iterator, from its initialisation on; a *pass* is one run through the elements, and a repeated dataset has several in a
walk. `open` gives an iterator for one pass. The iterator goes on after an error:

- ``next()`` returns an element. At the end it raises `StopIteration`, and so does every later call.
- Any other `Exception` takes the place of an element that could not be made. The next call continues after it.
- `Interrupted`, which is not an `Exception`, takes no element's place: the walk was closed, or the step that asked ran
  out of time. It passes through every iterator, and iterators keep their state so that no element is lost.

Opening does no work and raises nothing. The first ``next()`` does both, so that every error has a place among the
elements. Iterators are classes, not generators, because a generator ends with its first error; a generator is used
only where that is wanted.
"""

from __future__ import annotations

import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import chain
from typing import Any, Final, TypeVar

import numpy as np

from tfray.errors import (
    CancelledError,
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotAnError,
    OpError,
    OutOfRangeError,
)
from tfray.framework.op_def import Array, KernelContext
from tfray.ops.kernels.random_streams import RandomStreams

Element = tuple[Any, ...]
"""One array for each component."""

AUTOTUNE: Final = -1
"""As a number of parallel calls or of prefetched elements: let the dataset choose."""

LOOK_S: Final = 0.25
"""Seconds between two checks whether the iterator was closed, while waiting for a user's function.

A longer time delays the closing of a session; a shorter one wakes the thread more often.
"""

Kept = TypeVar("Kept")

_deadline: Final[ContextVar[float | None]] = ContextVar("tfray_dataset_deadline", default=None)
"""`time.monotonic` value after which the step that asks for an element gives up. Set only on that step's thread."""


class Interrupted(NotAnError):
    """Raised through the iterators when the walk is closed or the step is out of time. Carries the step's error."""

    def __init__(self, error: OpError) -> None:
        super().__init__(str(error))
        self.error = error


class Walk:
    """The state of one walk of an iterator through a dataset, from its initialisation on.

    Attributes:
        streams: The random numbers of the functions. They begin anew with each walk, not with each pass of it.
        told: To whom its datasets tell numbers about themselves, a `tfray.ops.resources.dataset_statistics.Told`; None
            when nobody asked.
    """

    def __init__(self) -> None:
        self.streams = RandomStreams()
        self.told: Any = None
        self._kept: weakref.WeakKeyDictionary[DatasetValue, Any] = weakref.WeakKeyDictionary()
        self._lines: weakref.WeakSet[Any] = weakref.WeakSet()
        self._lock = threading.Lock()
        self._is_closed = False

    def kept(self, dataset: DatasetValue, make: Callable[[], Kept]) -> Kept:
        """What `dataset` keeps from pass to pass of this walk. `make` creates it the first time."""
        with self._lock:
            if dataset not in self._kept:
                self._kept[dataset] = make()
            kept: Kept = self._kept[dataset]
            return kept

    def add_line(self, line: Any) -> None:
        """Call ``line.close()`` when the walk is closed. Only a weak reference to `line` is kept."""
        with self._lock:
            self._lines.add(line)
        if self._is_closed:
            line.close()

    def raise_if_ended(self) -> None:
        """Raise `Interrupted` when the walk is closed or the step is out of time. For loops that may find nothing."""
        if self._is_closed:
            raise Interrupted(CancelledError("the iterator was closed while it made an element"))
        self.remaining_s()

    def remaining_s(self) -> float | None:
        """Seconds that the step still waits; None without limit. Raises `Interrupted` when there are none."""
        deadline = _deadline.get()
        if deadline is None:
            return None
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            raise Interrupted(DeadlineExceededError("the step ran past its timeout while it waited for an element"))
        return remaining

    def close(self) -> None:
        """End the walk's threads, and every wait in it. A call of a user's function that is running is not stopped."""
        with self._lock:
            self._is_closed = True
            lines = list(self._lines)
        for line in lines:
            line.close()

    release = close
    """As a resource of a device: its session is closed."""


class DatasetValue(ABC):
    """A sequence of elements."""

    @abstractmethod
    def open(self, walk: Walk) -> Iterator[Element]:
        """An iterator for a new pass; the beginning of this module says what it does."""

    def computes_together(self) -> bool:
        """Whether many elements at once cost less than one by one, because a function is computed for all at once."""
        return False


@contextmanager
def walked(dataset: DatasetValue, ctx: KernelContext) -> Iterator[Iterator[Element]]:
    """Context manager with all elements, for an operation that reads them to the end. Closing the session ends it."""
    walk = Walk()
    key = "walk", id(walk)
    ctx.session_state.lookup_or_create(key, lambda: walk)
    try:
        yield dataset.open(walk)
    except Interrupted as interrupted:
        raise interrupted.error from None
    finally:
        ctx.session_state.remove(key)
        walk.close()


# -- functions of elements -----------------------------------------------------------------------------


OpenFunction = Callable[[], Any]
"""Context manager that yields a function of a compiled region, with buffers of its own."""


class ElementFunction:
    """A function of elements: a compiled region, and the outer values that it captures.

    Args:
        open_function: Opens the region.
        captures: The captured values, which follow the components of an element as arguments.
        draws: Whether it has random operations.
        over_batch: Finds the `tfray.runtime.over_batch.BatchFunction` for many elements at once; None if there is none.
    """

    def __init__(
        self,
        open_function: OpenFunction,
        captures: tuple[Any, ...],
        draws: bool = False,
        over_batch: Callable[[], Any] = lambda: None,
    ) -> None:
        self._open = open_function
        self._captures = captures
        self._draws = draws
        self._over_batch = over_batch

    def has_batch_form(self) -> bool:
        """Whether it can be computed for many elements at once."""
        return self._over_batch() is not None

    def open_over_batch(self) -> tuple[OpenedFunction, Sequence[str]] | None:
        """The function of stacked components and the number of elements, and the forms of its results."""
        found = self._over_batch()
        return found and (OpenedFunction(found.open(), self._captures, None), found.forms)

    def open(self, walk: Walk) -> OpenedFunction:
        """The function for one thread of a walk."""
        return OpenedFunction(self._open(), self._captures, walk.streams if self._draws else None)


class OpenedFunction:
    """A function of elements with its own buffers. The buffers become free for others when this object is dropped.

    Attributes:
        call: The function itself. Do not use it after this object is gone.
        call_into: The function of an element and of arrays for the results that have rooms. These results are computed
            in the arrays, unless a kernel has a result already: then they are other arrays, as they are without rooms.
        rooms: Place among the results, shape and dtype of each that may be computed in memory of the caller.
    """

    __slots__ = ("_opened", "call", "call_into", "rooms")

    def __init__(self, opened: Any, captures: tuple[Any, ...], streams: RandomStreams | None) -> None:
        function: Callable[..., Element] = opened.__enter__()
        self._opened = opened
        self.rooms: Sequence[tuple[int, tuple[int, ...], np.dtype[Any]]] = opened.rooms

        def computed(element: Element, rooms: Sequence[Array | None] = ()) -> Element:
            return function(*element, *captures, *rooms)

        def drawn(element: Element, rooms: Sequence[Array | None] = ()) -> Element:
            assert streams is not None
            return streams.run(function, *element, *captures, *rooms)

        call_into: Callable[..., Element] = computed if streams is None else drawn
        self.call_into = call_into
        self.call: Callable[..., Element] = (
            function if streams is None and not captures else lambda *element: call_into(element)
        )

    def __del__(self) -> None:
        opened = getattr(self, "_opened", None)
        if opened is not None:
            opened.__exit__(None, None, None)


class LastingFunction(ElementFunction):
    """A function that does not end a dataset: an `OutOfRangeError` that it raises becomes an `InvalidArgumentError`."""

    def open(self, walk: Walk) -> OpenedFunction:
        opened = super().open(walk)
        opened.call, opened.call_into = _lasting(opened.call), _lasting(opened.call_into)
        return opened


def _lasting(call: Callable[..., Element]) -> Callable[..., Element]:
    def called(*arguments: Any) -> Element:
        try:
            return call(*arguments)
        except OutOfRangeError as error:
            message = f"Function invocation produced OutOfRangeError: {error.message}"
            raise InvalidArgumentError(message) from error

    return called


# -- iterators of iterators ----------------------------------------------------------------------------


def chained(sources: Iterator[Iterator[Element]]) -> Iterator[Element]:
    """The elements of iterators, one after the other. An error of `sources` stands where its iterator would."""
    return chain.from_iterable(_Sources(sources))


class _Sources(Iterator[Iterator[Element]]):
    """Turns an error of the source into an iterator that raises it: `chain` itself would end with the error."""

    __slots__ = ("_sources",)

    def __init__(self, sources: Iterator[Iterator[Element]]) -> None:
        self._sources = sources

    def __next__(self) -> Iterator[Element]:
        try:
            return next(self._sources)
        except StopIteration:
            raise
        except Exception as error:  # noqa: BLE001 (raised in its place)
            return _raising(error)


def _raising(error: Exception) -> Iterator[Element]:
    raise error
    yield ()


# -- iterators of programs -----------------------------------------------------------------------------


class IteratorResource:
    """The position of a program in a dataset. Steps that run at the same time take turns.

    Args:
        name: Name of the iterator, for errors.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._dataset: DatasetValue | None = None
        self._walk = Walk()
        self._elements: Iterator[Element] | None = None
        self._position = 0
        """Elements that were taken, those included that were errors."""
        self._is_at_end = False
        self._is_released = False
        self._skipped = 0
        """Elements to pass over at the beginning, because a checkpoint says that they were taken."""
        self._lock = threading.Lock()

    @property
    def initialized(self) -> bool:
        """Whether there is a dataset to iterate over."""
        return self._elements is not None

    def check_initialized(self) -> None:
        """Raise `FailedPreconditionError` when there is no dataset to iterate over."""
        if not self.initialized:
            raise FailedPreconditionError(
                f"The iterator has not been initialized: run the initializer of {self.name!r} before its elements"
            )

    def restart(self, dataset: DatasetValue, deadline: float | None = None) -> None:
        """Begin at the first element of `dataset`."""
        with self._turn(deadline):
            self._skipped = 0
            self._begin(dataset)

    def start(self, dataset: DatasetValue, deadline: float | None = None) -> None:
        """Begin at the first element of `dataset`, unless it has begun already."""
        if self._elements is None:
            with self._turn(deadline):
                if self._elements is None:
                    self._begin(dataset)

    def _begin(self, dataset: DatasetValue) -> None:
        self._walk.close()
        self._dataset, self._walk, self._elements = dataset, Walk(), None
        elements = dataset.open(self._walk)
        self._position, self._is_at_end = 0, False
        while self._position < self._skipped:
            try:
                next(elements)
            except StopIteration:
                raise InvalidArgumentError(
                    f"iterator {self.name!r} was saved after {self._skipped} elements, and its dataset has only "
                    f"{self._position}: it is another one"
                ) from None
            except Exception:  # noqa: BLE001, S110 (the error was raised when the element was taken)
                pass
            self._position += 1
            self._walk.raise_if_ended()
        self._elements, self._skipped = elements, 0

    @contextmanager
    def _turn(self, deadline: float | None) -> Iterator[None]:
        """Hold the iterator for one step. Waiting for it ends at the step's deadline."""
        wait_s = -1.0 if deadline is None else max(0.0, deadline - time.monotonic())
        if not self._lock.acquire(timeout=wait_s):
            raise DeadlineExceededError(f"the step ran past its timeout: another step uses iterator {self.name!r}")
        try:
            if self._is_released:
                raise CancelledError(f"iterator {self.name!r} is closed, as is its session")
            if deadline is None:
                yield
                return
            token = _deadline.set(deadline)
            try:
                yield
            finally:
                _deadline.reset(token)
        except Interrupted as interrupted:
            raise interrupted.error from None
        finally:
            self._lock.release()

    def state(self) -> dict[str, Array]:
        """For a checkpoint: the number of elements taken so far, counting errors."""
        with self._turn(None):
            return {"position": np.array(self._position or self._skipped, np.int64)}

    def restore_state(self, arrays: Mapping[str, Array]) -> None:
        """Go to the saved position: start the dataset again and skip as many elements as had been taken.

        An iterator that has not begun yet goes there when it begins.
        """
        with self._turn(None):
            self._skipped = int(arrays["position"])
            if self._dataset is not None:
                self._begin(self._dataset)

    def next(self, deadline: float | None = None) -> Element | None:
        """The next element, or None at the end.

        Args:
            deadline: `time.monotonic` value after which to give up. The element is kept for the next caller.

        Raises:
            OpError: The element could not be made. The next call gives the one after it.
            DeadlineExceededError: There was no time left.
            CancelledError: The session was closed.
        """
        if deadline is not None:
            with self._turn(deadline):
                return self._taken()
        with self._lock:  # not `_turn`: entering it takes longer than making a simple element
            return self._taken()

    def _taken(self) -> Element | None:
        if self._is_released or self._elements is None:
            raise CancelledError(f"iterator {self.name!r} is closed, as is its session")
        if self._is_at_end:
            return None
        try:
            element = next(self._elements)
        except StopIteration:
            self._is_at_end = True
            self._elements = iter(())  # what made elements is free now: a generator of the program, an open file
            return None
        except Interrupted as interrupted:
            raise interrupted.error from None
        except Exception as error:
            self._position += 1
            if isinstance(error, (ValueError, TypeError, OSError)) and not isinstance(error, OpError):
                raise InvalidArgumentError(f"the dataset failed: {type(error).__name__}: {error}") from error
            raise
        self._position += 1
        return element

    def release(self) -> None:
        """End the iterator's threads, and the waiting of steps for it, because its session is closed."""
        self._is_released = True
        self._walk.close()
