"""The values behind dataset tensors: sequences that can be iterated over again and again.

An element is a tuple of arrays. Iterating is lazy, and each iteration is independent of the others, so that one dataset
serves several iterators.
"""

from __future__ import annotations

import itertools
import queue
import threading
import weakref
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from tfray.errors import InvalidArgumentError, OpError
from tfray.framework.op_def import Array

Element = tuple[Any, ...]
"""One array for each component."""

OpenFunction = Callable[[], Any]
"""Context manager that yields a function of a compiled region, with buffers of its own."""

AUTOTUNE: Final = -1
"""Stands for a number of parallel calls, or of prefetched elements, that is left to the dataset."""


class DatasetValue(ABC):
    """A sequence of elements."""

    @abstractmethod
    def __iter__(self) -> Iterator[Element]:
        """A new pass over the elements."""

    def rewind(self) -> None:
        """Let the next pass be like the first one."""
        for value in vars(self).values():
            for each in value if isinstance(value, (list, tuple)) else (value,):
                if isinstance(each, DatasetValue):
                    each.rewind()


# -- sources -------------------------------------------------------------------------------------------


class Tensors(DatasetValue):
    """One element."""

    def __init__(self, components: Sequence[Array]) -> None:
        self._element = tuple(components)

    def __iter__(self) -> Iterator[Element]:
        yield self._element


class Slices(DatasetValue):
    """The slices of arrays along their first axis."""

    def __init__(self, components: Sequence[Array]) -> None:
        self.components = tuple(components)
        lengths = {len(component) for component in components}
        if len(lengths) != 1:
            raise InvalidArgumentError(f"the tensors have {sorted(lengths)} slices: all must have as many")
        (self.length,) = lengths

    def __iter__(self) -> Iterator[Element]:
        columns = [_scalars(c) if c.dtype.kind == "O" and c.ndim == 1 else c for c in self.components]
        return iter(zip(*columns, strict=True))


def _scalars(strings: Array) -> Iterator[Array]:
    return (as_string(text) for text in strings)


def as_string(text: bytes) -> Array:
    """A string as a tensor of rank 0."""
    array = np.empty((), object)
    array[()] = text
    return array


class Range(DatasetValue):
    """Integers from `start` to `stop`, by `step`."""

    def __init__(self, start: int, stop: int, step: int) -> None:
        self._values = range(start, stop, step)

    def __iter__(self) -> Iterator[Element]:
        return ((np.int64(value),) for value in self._values)


class Generated(DatasetValue):
    """What a Python function's iterators give; `open_iterator` checks and converts the elements."""

    def __init__(self, open_iterator: Callable[[], Iterator[Element]]) -> None:
        self._open = open_iterator

    def __iter__(self) -> Iterator[Element]:
        return iter(self._open())


# -- element by element --------------------------------------------------------------------------------


class Mapped(DatasetValue):
    """The results of a function.

    Args:
        parent: The elements.
        open_function: Opens the function.
        captures: Its further arguments.
        workers: Number of threads; results keep their order.
    """

    def __init__(
        self, parent: DatasetValue, open_function: OpenFunction, captures: Sequence[Any], workers: int = 1
    ) -> None:
        self._parent = parent
        self._open = open_function
        self._captures = tuple(captures)
        self._workers = workers

    def __iter__(self) -> Iterator[Element]:
        if self._workers > 1:
            return self._in_parallel()
        return self._in_turn()

    def _in_turn(self) -> Iterator[Element]:
        with self._open() as function:
            for element in self._parent:
                yield function(*element, *self._captures)

    def _in_parallel(self) -> Iterator[Element]:
        from concurrent.futures import ThreadPoolExecutor

        def call(element: Element) -> Element:
            with np.errstate(all="ignore"), self._open() as function:
                result: Element = function(*element, *self._captures)
                return result

        with ThreadPoolExecutor(self._workers, "tfray-map") as pool:
            pending: deque[Any] = deque()
            try:
                for element in self._parent:
                    pending.append(pool.submit(call, element))
                    if len(pending) > 2 * self._workers:
                        yield pending.popleft().result()
                while pending:
                    yield pending.popleft().result()
            finally:
                for future in pending:
                    future.cancel()


class Filtered(DatasetValue):
    """The elements for which a predicate holds."""

    def __init__(self, parent: DatasetValue, open_function: OpenFunction, captures: Sequence[Any]) -> None:
        self._parent = parent
        self._open = open_function
        self._captures = tuple(captures)

    def __iter__(self) -> Iterator[Element]:
        with self._open() as predicate:
            for element in self._parent:
                if predicate(*element, *self._captures)[0]:
                    yield element


class Interleaved(DatasetValue):
    """The elements of the datasets that a function makes, `block` of each of `cycle` at a time."""

    def __init__(
        self, parent: DatasetValue, open_function: OpenFunction, captures: Sequence[Any], cycle: int, block: int
    ) -> None:
        self._parent = parent
        self._open = open_function
        self._captures = tuple(captures)
        self._cycle = cycle
        self._block = block

    def __iter__(self) -> Iterator[Element]:
        with self._open() as function:
            sources = (iter(function(*element, *self._captures)[0]) for element in self._parent)
            yield from self._round_robin(sources)

    def _round_robin(self, sources: Iterator[Iterator[Element]]) -> Iterator[Element]:
        active: list[Iterator[Element]] = list(itertools.islice(sources, self._cycle))
        turn = 0
        while active:
            turn %= len(active)
            block = list(itertools.islice(active[turn], self._block))
            yield from block
            if len(block) == self._block:
                turn += 1
                continue
            following = next(sources, None)
            if following is None:
                del active[turn]
            else:
                active[turn] = following
                turn += 1


class Concatenated(DatasetValue):
    """The elements of several datasets, one after the other."""

    def __init__(self, parents: Sequence[DatasetValue]) -> None:
        self._parents = list(parents)

    def __iter__(self) -> Iterator[Element]:
        return itertools.chain.from_iterable(self._parents)


class Chosen(DatasetValue):
    """Elements of several datasets, the next from the one that `choices` names, until that one ends."""

    def __init__(self, choices: DatasetValue, parents: Sequence[DatasetValue]) -> None:
        self._choices = choices
        self._parents = list(parents)

    def __iter__(self) -> Iterator[Element]:
        sources = [iter(parent) for parent in self._parents]
        for (choice,) in self._choices:
            if not 0 <= choice < len(sources):
                raise InvalidArgumentError(f"there is no dataset {choice}: there are {len(sources)}")
            element = next(sources[choice], None)
            if element is None:
                return
            yield element


class Zipped(DatasetValue):
    """The components of the elements of several datasets side by side, as long as each has one."""

    def __init__(self, parents: Sequence[DatasetValue]) -> None:
        self._parents = list(parents)

    def __iter__(self) -> Iterator[Element]:
        # Not strict: the shortest ends it.
        for elements in zip(*self._parents, strict=False):
            yield tuple(component for element in elements for component in element)


class Taken(DatasetValue):
    """The elements from `start` to `stop`, by `step`."""

    def __init__(self, parent: DatasetValue, start: int, stop: int | None, step: int = 1) -> None:
        self._parent = parent
        self._bounds = start, stop, step

    def __iter__(self) -> Iterator[Element]:
        return itertools.islice(iter(self._parent), *self._bounds)


class Repeated(DatasetValue):
    """The elements `count` times over; without end when it is negative."""

    def __init__(self, parent: DatasetValue, count: int) -> None:
        self._parent = parent
        self._count = count

    def __iter__(self) -> Iterator[Element]:
        for _ in range(self._count) if self._count >= 0 else itertools.count():
            empty = True
            for element in self._parent:
                empty = False
                yield element
            if empty:
                return  # it would not end, and give nothing


class Shuffled(DatasetValue):
    """The elements in an order drawn from a buffer, anew in each pass if `reshuffle`.

    Args:
        parent: The elements.
        size: Number of elements among which one is drawn.
        seeds: Two integers; both 0 for an order that differs from process to process.
        reshuffle: Whether passes differ.
    """

    def __init__(self, parent: DatasetValue, size: int, seeds: tuple[int, int], reshuffle: bool) -> None:
        if size < 1:
            raise InvalidArgumentError(f"shuffle: buffer_size is {size}, expected at least 1")
        self._parent = parent
        self._size = size
        self._seeds = seeds if any(seeds) else tuple(np.random.SeedSequence().generate_state(2).tolist())
        self._reshuffle = reshuffle
        self._passes = itertools.count()

    def rewind(self) -> None:
        super().rewind()
        self._passes = itertools.count()

    def __iter__(self) -> Iterator[Element]:
        number = next(self._passes) if self._reshuffle else 0
        return self._shuffled(np.random.default_rng([*self._seeds, number]))

    def _shuffled(self, generator: np.random.Generator) -> Iterator[Element]:
        source = iter(self._parent)
        buffer = list(itertools.islice(source, self._size))
        for element in source:
            chosen = int(generator.integers(len(buffer)))
            yield buffer[chosen]
            buffer[chosen] = element
        generator.shuffle(buffer)
        yield from buffer


class Cached(DatasetValue):
    """The elements, kept in memory from the first complete pass on."""

    def __init__(self, parent: DatasetValue) -> None:
        self._parent = parent
        self._kept: list[Element] | None = None

    def __iter__(self) -> Iterator[Element]:
        return self._first_pass() if self._kept is None else iter(self._kept)

    def _first_pass(self) -> Iterator[Element]:
        kept = []
        for element in self._parent:
            kept.append(element)
            yield element
        self._kept = kept


# -- batches -------------------------------------------------------------------------------------------


class Batched(DatasetValue):
    """`size` elements at a time, stacked along a new first axis."""

    def __init__(self, parent: DatasetValue, size: int, drop_remainder: bool) -> None:
        if size < 1:
            raise InvalidArgumentError(f"batch: batch_size is {size}, expected at least 1")
        self._parent = parent
        self._size = size
        self._drop = drop_remainder

    def __iter__(self) -> Iterator[Element]:
        return self._slices() if isinstance(self._parent, Slices) else self._stacks(iter(self._parent))

    def _slices(self) -> Iterator[Element]:
        """Stretches of arrays that lie in memory already."""
        source: Any = self._parent
        end = source.length - source.length % self._size if self._drop else source.length
        for begin in range(0, end, self._size):
            yield tuple(component[begin : min(begin + self._size, end)].copy() for component in source.components)

    def _stacks(self, source: Iterator[Element]) -> Iterator[Element]:
        while elements := list(itertools.islice(source, self._size)):
            if len(elements) == self._size or not self._drop:
                yield tuple(_stacked(column) for column in zip(*elements, strict=True))


def _stacked(column: Sequence[Any]) -> Array:
    first = np.asarray(column[0])
    out = np.empty((len(column), *first.shape), first.dtype)
    for row, value in enumerate(column):
        if np.shape(value) != first.shape:
            raise InvalidArgumentError(
                f"batch: elements of shapes {list(first.shape)} and {list(np.shape(value))} cannot be stacked; "
                "use padded_batch"
            )
        out[row] = value[()]  # of strings, not the array of rank 0 around one
    return out


class PaddedBatched(DatasetValue):
    """`size` elements at a time, each padded at its end to one shape.

    Args:
        parent: The elements.
        size: Number of elements in a batch.
        shapes: For each component its shape, with None where the largest of the batch counts.
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
        self._size = size
        self._shapes = shapes
        self._padding = padding
        self._drop = drop_remainder

    def __iter__(self) -> Iterator[Element]:
        source = iter(self._parent)
        while elements := list(itertools.islice(source, self._size)):
            if len(elements) == self._size or not self._drop:
                columns = zip(*elements, strict=True)
                yield tuple(
                    _padded(column, shape, padding)
                    for column, shape, padding in zip(columns, self._shapes, self._padding, strict=True)
                )


def _padded(column: Sequence[Any], shape: Sequence[int | None], padding: Any) -> Array:
    arrays = [np.asarray(value) for value in column]
    if any(array.ndim != len(shape) for array in arrays):
        raise InvalidArgumentError(f"padded_batch: an element has not the rank of padded shape {list(shape)}")
    largest = [max(sizes) for sizes in zip(*(array.shape for array in arrays), strict=True)]
    for wanted, found in zip(shape, largest, strict=True):
        if wanted is not None and found > wanted:
            raise InvalidArgumentError(f"padded_batch: an element has size {found}, and the padded size is {wanted}")
    full = [found if wanted is None else wanted for wanted, found in zip(shape, largest, strict=True)]
    out = np.full((len(arrays), *full), padding, arrays[0].dtype)
    for row, array in zip(out, arrays, strict=True) if len(full) else ():
        row[tuple(map(slice, array.shape))] = array
    if not full:
        out[:] = [array[()] for array in arrays]
    return out


class Unbatched(DatasetValue):
    """The slices of each element's components along their first axis."""

    def __init__(self, parent: DatasetValue) -> None:
        self._parent = parent

    def __iter__(self) -> Iterator[Element]:
        return itertools.chain.from_iterable(Slices(element) for element in self._parent)


class Windows(DatasetValue):
    """Datasets of `size` consecutive elements, one for each component; the next begins `shift` elements later."""

    def __init__(self, parent: DatasetValue, size: int, shift: int, stride: int, drop_remainder: bool) -> None:
        if min(size, shift, stride) < 1:
            raise InvalidArgumentError("window: size, shift and stride must be at least 1")
        self._parent = parent
        self._size, self._shift, self._stride = size, shift, stride
        self._drop = drop_remainder

    def __iter__(self) -> Iterator[Element]:
        source = iter(self._parent)
        span = (self._size - 1) * self._stride + 1
        buffer: list[Element] = []
        while True:
            buffer.extend(itertools.islice(source, max(0, span - len(buffer))))
            if not buffer or (len(buffer) < span and self._drop):
                return
            window = buffer[: span : self._stride]
            yield tuple(Listed([(value,) for value in column]) for column in zip(*window, strict=True))
            missing = self._shift - len(buffer)
            buffer = buffer[self._shift :]
            if missing > 0:
                next(itertools.islice(source, missing, missing), None)


class Listed(DatasetValue):
    """Elements that are there already."""

    def __init__(self, elements: Sequence[Element]) -> None:
        self._elements = elements

    def __iter__(self) -> Iterator[Element]:
        return iter(self._elements)


# -- ahead of time -------------------------------------------------------------------------------------


class Prefetched(DatasetValue):
    """The elements, up to `size` of which a thread makes before they are asked for."""

    def __init__(self, parent: DatasetValue, size: int) -> None:
        self._parent = parent
        self._size = size

    def __iter__(self) -> Iterator[Element]:
        return iter(self._parent) if self._size == 0 else _Prefetching(self._parent, self._size)


class _Prefetching(Iterator[Element]):
    """An iterator behind which a thread works; the thread ends with the elements, or when the iterator is dropped."""

    def __init__(self, parent: DatasetValue, size: int) -> None:
        self._ready: queue.Queue[tuple[Any, BaseException | None]] = queue.Queue(size)
        self._ended: BaseException | None = None
        stop = threading.Event()
        # The thread must not hold the iterator, or nothing would ever drop it.
        threading.Thread(target=_produce, args=(parent, self._ready, stop), name="tfray-prefetch", daemon=True).start()
        weakref.finalize(self, _end, stop, self._ready)

    def __next__(self) -> Element:
        if self._ended is not None:
            raise self._ended
        element, self._ended = self._ready.get()
        if self._ended is not None:
            raise self._ended
        result: Element = element
        return result


def _produce(parent: DatasetValue, ready: queue.Queue[Any], stop: threading.Event) -> None:
    end: BaseException = StopIteration()
    try:
        with np.errstate(all="ignore"):
            for element in parent:
                ready.put((element, None))
                if stop.is_set():
                    return
    except Exception as error:  # noqa: BLE001 - raised where the element is asked for
        end = error
    ready.put((None, end))


def _end(stop: threading.Event, ready: queue.Queue[Any]) -> None:
    stop.set()
    while True:  # a producer that waits for room finds it, and sees that it is to stop
        try:
            ready.get_nowait()
        except queue.Empty:
            return


# -- iterators -----------------------------------------------------------------------------------------


class IteratorResource:
    """The place in a dataset at which the steps of a program are. Steps take turns.

    Args:
        name: Name of the iterator, for errors.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._dataset: DatasetValue | None = None
        self._elements: Iterator[Element] | None = None
        self._position = 0
        self._skipped = 0
        """Elements to pass over at the beginning, because a checkpoint says that they were taken."""
        self._lock = threading.Lock()

    @property
    def initialized(self) -> bool:
        """Whether there is a dataset to iterate over."""
        return self._elements is not None

    def restart(self, dataset: DatasetValue) -> None:
        """Begin at the first element of `dataset`."""
        with self._lock:
            self._skipped = 0
            self._begin(dataset)

    def start(self, dataset: DatasetValue) -> None:
        """Begin at the first element of `dataset`, unless it has begun already."""
        with self._lock:
            if self._elements is None:
                self._begin(dataset)

    def _begin(self, dataset: DatasetValue) -> None:
        self._dataset, self._elements, self._position = dataset, iter(dataset), 0
        while self._position < self._skipped:
            if next(self._elements, None) is None:
                raise InvalidArgumentError(
                    f"iterator {self.name!r} was saved after {self._skipped} elements, and its dataset has only "
                    f"{self._position}: it is another one"
                )
            self._position += 1
        self._skipped = 0

    def state(self) -> dict[str, Array]:
        """How many elements were taken, for a checkpoint."""
        with self._lock:
            return {"position": np.array(self._position or self._skipped, np.int64)}

    def restore_state(self, arrays: Mapping[str, Array]) -> None:
        """Go to where the iterator was: its dataset is begun anew, and what was taken is passed over.

        An iterator that has not begun goes there when it does.
        """
        with self._lock:
            self._skipped = int(arrays["position"])
            if self._dataset is not None:
                self._dataset.rewind()
                self._begin(self._dataset)

    def next(self) -> Element | None:
        """The next element, or None at the end."""
        with self._lock:
            assert self._elements is not None
            try:
                element = next(self._elements, None)
                self._position += element is not None
                return element
            except (OpError, StopIteration):
                raise
            except (ValueError, TypeError, OSError) as error:
                raise InvalidArgumentError(f"the dataset failed: {type(error).__name__}: {error}") from error
