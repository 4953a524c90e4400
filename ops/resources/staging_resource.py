"""The state of a staging area on its device: elements that are taken first in, first out, or by key."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from tfray.errors import InvalidArgumentError, OpError, ResourceExhaustedError
from tfray.framework.op_def import Array
from tfray.ops.resources.attempts import Attempt, SharedResource

_ABSENT: Final = object()

Components = dict[int, Array]
"""Some of an element's components, by their places."""


class _Limited(SharedResource):
    """The base of both kinds of staging area: limits on the number of elements and of bytes."""

    def __init__(self, name: str, capacity: int, memory_limit: int, count: int) -> None:
        super().__init__(line_count=1)
        self.name = name
        self.capacity = capacity
        self.memory_limit = memory_limit
        self.component_count = count
        self._bytes = 0

    def describe(self) -> str:
        """How messages name the staging area."""
        return f"staging area {self.name!r}"

    def _check_size(self, size: int) -> None:
        if self.memory_limit and size > self.memory_limit:
            raise ResourceExhaustedError(
                f"{self.describe()} may hold {self.memory_limit} bytes; one element has {size} by itself"
            )

    def _try(self, function: Callable[[], Any]) -> Attempt:
        return self.submit(_Try(self, function), 0)

    def _serve(self) -> list[Attempt]:
        # Puts and gets share this line but wait for different things: one that must wait must not hold up the others.
        (line,) = self._lines
        finished: list[Attempt] = []
        while True:
            done = [attempt for attempt in line if attempt.advance()]
            if not done:
                return finished
            for attempt in done:
                line.remove(attempt)
            finished += done

    def _has_room(self, elements: int, size: int) -> bool:
        full = self.capacity and elements >= self.capacity
        return not full and not (self.memory_limit and self._bytes + size > self.memory_limit)


class StagingArea(_Limited):
    """A first-in-first-out buffer.

    Args:
        name: Name to show.
        capacity: Largest number of elements; 0 for no limit.
        memory_limit: Largest number of bytes; 0 for no limit.
        count: Number of components of an element.
    """

    def __init__(self, name: str, capacity: int, memory_limit: int, count: int) -> None:
        super().__init__(name, capacity, memory_limit, count)
        self._elements: deque[tuple[Array, ...]] = deque()

    @property
    def size(self) -> int:
        """Number of elements."""
        return len(self._elements)

    def put(self, components: Sequence[Array]) -> Attempt:
        """Add an element, waiting for room."""
        element = tuple([array.copy() for array in components])
        size = _bytes_of(element)
        self._check_size(size)

        def put() -> Any:
            if not self._has_room(len(self._elements), size):
                return _ABSENT
            self._elements.append(element)
            self._bytes += size
            return None

        return self._try(put)

    def get(self) -> Attempt:
        """Take the first element."""

        def get() -> Any:
            if not self._elements:
                return _ABSENT
            element = self._elements.popleft()
            self._bytes -= _bytes_of(element)
            return element

        return self._try(get)

    def peek(self, index: int) -> Attempt:
        """Look at an element, once it is there."""
        if index < 0:
            raise InvalidArgumentError(f"{self.describe()}: index {index} is negative")
        return self._try(lambda: self._elements[index] if index < len(self._elements) else _ABSENT)

    def clear(self) -> None:
        """Drop all elements."""

        def clear() -> None:
            self._elements.clear()
            self._bytes = 0

        self.change(clear)


class MapStagingArea(_Limited):
    """A buffer of elements by key. Components of an element may come and go one by one.

    Args:
        name: Name to show.
        capacity: Largest number of complete elements; 0 for no limit.
        memory_limit: Largest number of bytes of complete elements; 0 for no limit.
        count: Number of components of an element.
        ordered: Whether a get without a key takes the smallest key.
    """

    def __init__(self, name: str, capacity: int, memory_limit: int, count: int, ordered: bool) -> None:
        super().__init__(name, capacity, memory_limit, count)
        self.ordered = ordered
        self._elements: dict[int, Components] = {}
        self._incomplete: dict[int, Components] = {}

    @property
    def size(self) -> int:
        """Number of complete elements."""
        return len(self._elements)

    @property
    def incomplete_size(self) -> int:
        """Number of elements of which components are missing."""
        return len(self._incomplete)

    def put(self, key: int, indices: Sequence[int], values: Sequence[Array]) -> Attempt:
        """Add components of the element of a key; waits for room when it becomes complete."""
        self._check_indices(indices)
        if len(indices) != len(values):
            raise InvalidArgumentError(f"{self.describe()} got {len(values)} values for {len(indices)} indices")
        given = dict(zip(indices, [value.copy() for value in values], strict=True))

        def put() -> Any:
            there = self._incomplete.get(key, {})
            if key in self._elements or not there.keys().isdisjoint(given):
                raise InvalidArgumentError(f"{self.describe()} holds such components of key {key} already")
            element = {**there, **given}
            if len(element) < self.component_count:
                self._incomplete[key] = element
                return None
            size = _bytes_of(element.values())
            self._check_size(size)
            if not self._has_room(len(self._elements), size):
                return _ABSENT
            self._incomplete.pop(key, None)
            self._elements[key] = element
            self._bytes += size
            return None

        return self._try(put)

    def get(self, key: int | None, indices: Sequence[int]) -> Attempt:
        """Take components of the element with this key, or of any element. The result is the key and the components."""
        self._check_indices(indices)
        return self._try(lambda: self._taken(key, indices))

    def peek(self, key: int, indices: Sequence[int]) -> Attempt:
        """Look at components of the element of a key, once it is complete."""
        self._check_indices(indices)
        return self._try(lambda: self._chosen(key, indices))

    def clear(self) -> None:
        """Drop all elements, complete or not."""

        def clear() -> None:
            self._elements.clear()
            self._incomplete.clear()
            self._bytes = 0

        self.change(clear)

    def _check_indices(self, indices: Sequence[int]) -> None:
        if len(set(indices)) < len(indices) or any(not 0 <= index < self.component_count for index in indices):
            raise InvalidArgumentError(
                f"{self.describe()} has components 0 to {self.component_count - 1}, got indices {list(indices)}"
            )

    def _chosen(self, key: int, indices: Sequence[int]) -> Any:
        element = self._elements.get(key)
        if element is None:
            return _ABSENT
        missing = [index for index in indices if index not in element]
        if missing:
            raise InvalidArgumentError(
                f"{self.describe()}: Tensor at index '{missing[0]}' for key '{key}' has already been removed."
            )
        return key, tuple([element[index] for index in indices])

    def _taken(self, key: int | None, indices: Sequence[int]) -> Any:
        if key is None:
            if not self._elements:
                return _ABSENT
            key = min(self._elements) if self.ordered else next(iter(self._elements))
        chosen = self._chosen(key, indices)
        if chosen is not _ABSENT:
            element = self._elements[key]
            self._bytes -= _bytes_of([element.pop(index) for index in indices])
            if not element:
                del self._elements[key]
        return chosen


class _Try(Attempt):
    """Calls a function until it returns something other than `_ABSENT`."""

    __slots__ = ("_function",)

    def __init__(self, area: _Limited, function: Callable[[], Any]) -> None:
        super().__init__(area)
        self._function = function

    def advance(self) -> bool:
        try:
            result = self._function()
        except OpError as error:
            return self.fail(error)
        if result is _ABSENT:
            return False
        return self.finish(result)


def _bytes_of(arrays: Iterable[Array]) -> int:
    return sum(array.nbytes for array in arrays)
