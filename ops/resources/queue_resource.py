"""The state of a queue on its device: its elements, and the operations that wait to add or take some.

An element is a tuple of components. A component is an array that the queue owns; one of rank 0 is a NumPy scalar or a
bytes object.
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from tfray.errors import CancelledError, DataLossError, InvalidArgumentError, OutOfRangeError
from tfray.framework.dtypes import DType
from tfray.framework.op_def import Array, NumpyDType
from tfray.framework.tensor_shape import TensorShape
from tfray.ops.kernels.random_streams import RandomStream
from tfray.ops.resources.attempts import Attempt, Immediate, SharedResource, bracketed, wake

Element = tuple[Any, ...]

ENQUEUE: Final = 0
DEQUEUE: Final = 1

_NOTHING: Final = Immediate()


class Queue(SharedResource):
    """A first-in-first-out queue; the base of the other kinds.

    Args:
        name: Name to show.
        capacity: Largest number of elements; negative for no limit.
        dtypes: Dtypes of the components.
        shapes: Shapes of the components of every element; empty when they may differ.
    """

    kind = "FIFOQueue"

    def __init__(self, name: str, capacity: int, dtypes: Sequence[DType], shapes: Sequence[TensorShape]) -> None:
        super().__init__(line_count=2)
        self.name = name
        self.capacity = capacity
        self.dtypes = dtypes
        self.shapes = shapes
        self.closed = False
        self._limit = capacity if capacity >= 0 else 1 << 62
        self._sizes = [shape.sizes for shape in shapes]
        self._has_strings = any(dtype.kind == "string" for dtype in dtypes)
        self._elements: Any = self._no_elements()

    # -- what kinds of queues differ in ------------------------------------------------------------

    def _no_elements(self) -> Any:
        elements: deque[Element] = deque()
        return elements

    def _push(self, elements: Iterable[Element]) -> None:
        self._elements.extend(elements)

    def _pop(self, count: int) -> list[Element]:
        popleft = self._elements.popleft
        return [popleft() for _ in range(count)]

    def _put_back(self, elements: list[Element]) -> None:
        self._elements.extendleft(reversed(elements))

    def _available(self) -> int:
        """Number of elements that may be taken now."""
        return len(self._elements)

    def fits(self, shape: tuple[int, ...], index: int) -> bool:
        """Whether a component of an element may have that shape."""
        return shape == self._sizes[index]

    # -- checkpoints -------------------------------------------------------------------------------

    def _ordered(self) -> list[Element]:
        """The elements in an order in which pushing them gives the same queue."""
        return list(self._elements)

    def state(self) -> dict[str, Array]:
        """The elements, and whether the queue is closed, as arrays. Waiting operations are not saved."""
        with self.lock:
            elements, arrays = self._ordered(), {"closed": np.array(self.closed)}
        arrays["size"] = np.array(len(elements), np.int64)
        for index, element in enumerate(elements):
            for part, value in enumerate(self.components_of(element)):
                arrays[f"{index}/{part}"] = np.asarray(value)
        return arrays

    def restore_state(self, arrays: Mapping[str, Array]) -> None:
        """Replace the elements by those that `state` gave. Raises `DataLossError` for anything else."""
        try:
            elements = [
                tuple(_kept(np.asarray(arrays[f"{index}/{part}"])) for part in range(len(self.dtypes)))
                for index in range(int(arrays["size"]))
            ]
        except KeyError as error:
            raise DataLossError(f"what was saved of {self.describe()} has no element {error}") from error
        with self.lock:
            self.closed = bool(arrays["closed"])
            self._elements = self._no_elements()
            self._push(elements)
            finished = self._serve()
        wake(finished)

    # -- operations --------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """Number of elements."""
        return len(self._elements)

    @property
    def room(self) -> int:
        """Number of elements that may be added now."""
        return self._limit - len(self._elements)

    def describe(self) -> str:
        """How messages name the queue."""
        return f"{self.kind} {self.name!r}"

    def enqueue(self, components: Sequence[Array]) -> Attempt:
        """Add one element."""
        if self.shapes:
            for i, array in enumerate(components):
                if array.shape != self._sizes[i] and not self.fits(array.shape, i):
                    raise self._misfit(i, array.shape)
        element = tuple([array.copy() if array.ndim else _kept(array) for array in components])
        with self.lock:
            if not (self.closed or self._lines[ENQUEUE] or len(self._elements) >= self._limit):
                self._push((element,))
                if not self._lines[DEQUEUE]:
                    return _NOTHING
                attempt: Attempt = _NOTHING
            else:
                attempt = _Enqueue(self, [element])
                self._lines[ENQUEUE].append(attempt)
            finished = self._serve()
        wake(finished, attempt)
        return attempt

    def enqueue_many(self, components: Sequence[Array]) -> Attempt:
        """Add the elements that are the rows of `components`, without others in between."""
        count = self._common_length(components)
        if count == 0:
            return _NOTHING
        return self.submit(_Enqueue(self, list(zip(*map(_rows, components), strict=True))), ENQUEUE)

    def enqueue_some(self, taken: Taken, components: Sequence[Array]) -> Attempt:
        """As `enqueue_many`, of what was made of elements of another queue."""
        self._common_length(components)
        return self.submit(_EnqueueSome(self, list(zip(*map(_rows, components), strict=True)), taken), ENQUEUE)

    def dequeue(self) -> Attempt:
        """Take one element: its components."""
        attempt = _DequeueOne(self)
        with self.lock:
            if not any(self._lines) and attempt.advance():
                return attempt
        return self.submit(attempt, DEQUEUE)

    def dequeue_many(self, count: int, up_to: bool = False) -> Attempt:
        """Take `count` elements, stacked. With `up_to`, take fewer when the queue is closed and has fewer."""
        if not self.shapes:
            raise InvalidArgumentError(
                f"{self.describe()}'s DequeueMany and DequeueUpTo require the components to have specified shapes: "
                "give it shapes=, or use dequeue"
            )
        if count < 0:
            raise InvalidArgumentError(f"{self.describe()}: cannot take {count} elements")
        if count == 0:
            return Immediate(self.stacked([]))
        return self.submit(_DequeueMany(self, count, up_to), DEQUEUE)

    def dequeue_some(self, target: Queue, most: int) -> Attempt:
        """Take the elements that are there, as a `Taken`: as many as `target` has room for, but at least one.

        Args:
            target: Where they go.
            most: The most to take.
        """
        return self.submit(_DequeueSome(self, target, most), DEQUEUE)

    def close(self, cancel_pending: bool) -> Attempt:
        """Refuse new elements. Enqueue operations that already wait still go on; with `cancel_pending` they fail."""
        if not cancel_pending:
            return self.submit(_Close(self), ENQUEUE)
        with self.lock:
            self.closed = True
            cancelled = list(self._lines[ENQUEUE])
            self._lines[ENQUEUE].clear()
            for attempt in cancelled:
                attempt.fail(CancelledError(f"{self.describe()} was closed, and with it this enqueue was cancelled"))
            finished = self._serve()
        wake([*cancelled, *finished])
        return _NOTHING

    # -- elements ----------------------------------------------------------------------------------

    def components_of(self, element: Element) -> Element:
        """An element as kernels return it."""
        return tuple([_as_array(value) for value in element]) if self._has_strings else element

    def stacked(self, elements: Sequence[Element]) -> tuple[Array, ...]:
        """Elements of equal shapes as one array for each component."""
        columns = list(zip(*elements, strict=True)) or [()] * len(self.dtypes)
        return tuple(
            [self._stack(column, self.dtypes[i].numpy, self.shapes[i].sizes) for i, column in enumerate(columns)]
        )

    def _stack(self, column: Sequence[Any], dtype: NumpyDType, sizes: Sequence[Any]) -> Array:
        if not column:
            return np.empty((0, *(size or 0 for size in sizes)), dtype)
        if dtype.kind != "O" and sizes == ():
            return np.array(column, dtype)
        if dtype.kind != "O" and sizes[0]:
            return np.concatenate(column).reshape(len(column), *sizes)
        out = np.empty((len(column), *sizes), dtype)
        for i, value in enumerate(column):
            out[i] = value
        return out

    def _common_length(self, components: Sequence[Array]) -> int:
        lengths = {array.shape[:1] for array in components}
        if len(lengths) != 1 or () in lengths:
            shapes = ", ".join(str(list(array.shape)) for array in components)
            raise InvalidArgumentError(
                f"{self.describe()}: enqueue_many takes components with the same number of rows, got shapes {shapes}"
            )
        ((length,),) = lengths
        for i, array in enumerate(components):
            if self.shapes and not self.fits(array.shape[1:], i):
                raise self._misfit(i, array.shape, [int(length)])
        return int(length)

    def _misfit(self, index: int, shape: Sequence[int], rows: Sequence[int] = ()) -> InvalidArgumentError:
        expected = bracketed([*rows, *self.shapes[index].sizes])
        return InvalidArgumentError(
            f"Shape mismatch in tuple component {index}. Expected {expected}, got {bracketed(shape)}. The queue is "
            f"{self.describe()}."
        )


class _Enqueue(Attempt):
    __slots__ = ("_elements",)
    resource: Queue

    def __init__(self, queue: Queue, elements: list[Element]) -> None:
        super().__init__(queue)
        self._elements = elements

    def advance(self) -> bool:
        queue = self.resource
        if queue.closed:
            return self.fail(CancelledError(f"{queue.describe()} is closed: no element can be added"))
        room = queue._limit - len(queue._elements)
        if room <= 0:
            return False
        if room >= len(self._elements):
            queue._push(self._elements)
            return self.finish()
        queue._push(self._elements[:room])
        del self._elements[:room]
        return True


class _EnqueueSome(_Enqueue):
    """Leaves in `taken` those elements of which nothing has been added yet."""

    __slots__ = ("_taken",)

    def __init__(self, queue: Queue, elements: list[Element], taken: Taken) -> None:
        super().__init__(queue, elements)
        self._taken = taken

    def advance(self) -> bool:
        has_changed = super().advance()
        if self.error is None and has_changed:
            left = 0 if self.done else len(self._elements)
            del self._taken.elements[: len(self._taken.elements) - left]
        return has_changed


class _Close(Attempt):
    __slots__ = ()
    resource: Queue

    def advance(self) -> bool:
        if self.resource.closed:
            return self.fail(CancelledError(f"{self.resource.describe()} is closed already"))
        self.resource.closed = True
        return self.finish()


class _DequeueOne(Attempt):
    __slots__ = ()
    resource: Queue

    def advance(self) -> bool:
        queue = self.resource
        if queue._available() > 0:
            return self.finish(queue._pop(1)[0])
        return queue.closed and self.fail(_exhausted(queue, 1))

    def undo(self) -> None:
        if self.done:
            self.resource._put_back([self.value])

    def result(self) -> Element:
        if self.error is not None:
            raise self.error
        return self.resource.components_of(self.value)


class Taken:
    """Elements that a step has taken. When it ends, those go back of which it has added nothing.

    Attributes:
        elements: The elements.
    """

    def __init__(self, queue: Queue, elements: list[Element]) -> None:
        self.elements = elements
        self._queue = queue

    def release(self) -> None:
        """Put them back where they were."""
        self._queue.change(lambda: self._queue._put_back(self.elements))


class _DequeueSome(Attempt):
    __slots__ = ("_most", "_target")
    resource: Queue

    def __init__(self, queue: Queue, target: Queue, most: int) -> None:
        super().__init__(queue)
        self._target = target
        self._most = most

    def advance(self) -> bool:
        queue, target = self.resource, self._target
        available = queue._available()
        if available > 0:
            return self.finish(Taken(queue, queue._pop(min(available, max(1, target.room), self._most))))
        return queue.closed and self.fail(_exhausted(queue, 1))

    def undo(self) -> None:
        if self.done:
            self.resource._put_back(self.value.elements)


class _DequeueMany(Attempt):
    __slots__ = ("_count", "_taken", "_up_to")
    resource: Queue

    def __init__(self, queue: Queue, count: int, up_to: bool) -> None:
        super().__init__(queue)
        self._count = count
        self._up_to = up_to
        self._taken: list[Element] = []

    def advance(self) -> bool:
        queue = self.resource
        if queue.closed and len(self._taken) + queue.size < self._count:
            self.undo()
            if not self._up_to or not queue.size:
                return self.fail(_exhausted(queue, self._count))
            self._count = queue.size
        # The count may exceed the queue's capacity: take what is there, and wait for the rest.
        count = min(queue._available(), self._count - len(self._taken))
        if count <= 0:
            return False
        self._taken += queue._pop(count)
        if len(self._taken) == self._count:
            return self.finish(self._taken)
        return True

    def undo(self) -> None:
        self.resource._put_back(self._taken)
        self._taken = []

    def result(self) -> tuple[Array, ...]:
        return self.resource.stacked(super().result())


def _exhausted(queue: Queue, count: int) -> OutOfRangeError:
    return OutOfRangeError(
        f"{queue.describe()} is closed and has insufficient elements (requested {count}, current size {queue.size})"
    )


class PaddingQueue(Queue):
    """A first-in-first-out queue whose elements may differ in size; stacking pads them with zeros."""

    kind = "PaddingFIFOQueue"

    def fits(self, shape: tuple[int, ...], index: int) -> bool:
        return self.shapes[index].is_compatible_with(shape)

    def _stack(self, column: Sequence[Any], dtype: NumpyDType, sizes: Sequence[Any]) -> Array:
        if not column or None not in sizes:
            return super()._stack(column, dtype, sizes)
        largest = tuple(max(extents) for extents in zip(*(value.shape for value in column), strict=True))
        out = np.full((len(column), *largest), b"" if dtype.kind == "O" else 0, dtype)
        for row, value in zip(out, column, strict=True):
            row[tuple(map(slice, value.shape))] = value
        return out


class PriorityQueue(Queue):
    """A queue that gives the element with the smallest first component; of equal ones the first that came."""

    kind = "PriorityQueue"

    def _no_elements(self) -> Any:
        self._arrivals, self._returns = itertools.count(), itertools.count(-1, -1)
        return []

    def _ordered(self) -> list[Element]:
        return [element for _, _, element in sorted(self._elements, key=lambda entry: entry[:2])]

    def _push(self, elements: Iterable[Element]) -> None:
        for element in elements:
            heapq.heappush(self._elements, (element[0], next(self._arrivals), element))

    def _pop(self, count: int) -> list[Element]:
        return [heapq.heappop(self._elements)[2] for _ in range(count)]

    def _put_back(self, elements: list[Element]) -> None:
        for element in reversed(elements):
            heapq.heappush(self._elements, (element[0], next(self._returns), element))


class ShuffleQueue(Queue):
    """A queue that gives its elements in random order.

    Args:
        name: As for `Queue`.
        capacity: As for `Queue`.
        dtypes: As for `Queue`.
        shapes: As for `Queue`.
        min_after_dequeue: Least number of elements that a dequeue leaves in the queue, for mixing, until it is closed.
        seeds: The two seeds of the order.
    """

    kind = "RandomShuffleQueue"

    def __init__(
        self,
        name: str,
        capacity: int,
        dtypes: Sequence[DType],
        shapes: Sequence[TensorShape],
        min_after_dequeue: int = 0,
        seeds: tuple[int, int] = (0, 0),
    ) -> None:
        if min_after_dequeue < 0 or 0 < capacity <= min_after_dequeue:
            raise InvalidArgumentError(
                f"queue {name!r}: min_after_dequeue {min_after_dequeue} must be >= 0 and < capacity {capacity}: with "
                "fewer places than elements that must stay, no dequeue would ever get any"
            )
        super().__init__(name, capacity, dtypes, shapes)
        self.min_after_dequeue = min_after_dequeue
        self.seeds = seeds
        self._stream = RandomStream(*seeds)
        self._numbers: list[float] = []

    def _no_elements(self) -> Any:
        return []

    def state(self) -> dict[str, Array]:
        numbers = np.array(self._numbers)
        return super().state() | self._stream.state() | {"numbers": numbers}

    def restore_state(self, arrays: Mapping[str, Array]) -> None:
        self._stream.restore_state(arrays)
        self._numbers = np.asarray(arrays["numbers"], np.float64).tolist()
        super().restore_state(arrays)

    def _pop(self, count: int) -> list[Element]:
        elements: list[Element] = self._elements
        taken, numbers = [], self._numbers
        for left in range(len(elements) - 1, len(elements) - 1 - count, -1):
            if not numbers:
                numbers = self._numbers = self._stream.draw(lambda generator: generator.random(256).tolist())
            index = int(numbers.pop() * (left + 1))
            last = elements.pop()
            if index < left:
                last, elements[index] = elements[index], last
            taken.append(last)
        return taken

    def _put_back(self, elements: list[Element]) -> None:
        self._elements.extend(elements)

    def _available(self) -> int:
        return len(self._elements) - (0 if self.closed else self.min_after_dequeue)


def _kept(array: Array) -> Any:
    """A copy of a component: the caller's array may be changed later."""
    if array.ndim == 0:
        return array[()] if isinstance(array, np.ndarray) else array
    return array.copy()


def _rows(array: Array) -> list[Any]:
    return list(array if array.ndim == 1 else array.copy())


def _as_array(value: Array) -> Array:
    """A component as kernels return it: a string of rank 0 as an array."""
    if isinstance(value, bytes):
        array = np.empty((), object)
        array[()] = value
        return array
    return value
