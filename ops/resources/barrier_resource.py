"""The state of a barrier on its device: elements whose components come at different times."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tfray.errors import CancelledError, InvalidArgumentError, OutOfRangeError
from tfray.framework.dtypes import DType
from tfray.framework.op_def import Array
from tfray.framework.tensor_shape import TensorShape
from tfray.ops.resources.attempts import Attempt, Immediate, SharedResource, bracketed

FIRST_INDEX: Final = -(2**63)
"""Index of the first element, as in TensorFlow."""


class Barrier(SharedResource):
    """Joins components that have the same key into elements.

    An element is ready when all its components are there. Ready elements are taken in the order in which their keys
    first came.

    Args:
        name: Name to show.
        dtypes: Dtypes of the components.
        shapes: Their shapes; empty when they are not known.

    Attributes:
        closed: Whether new keys are refused.
    """

    def __init__(self, name: str, dtypes: Sequence[DType], shapes: Sequence[TensorShape]) -> None:
        super().__init__(line_count=1)
        self.name = name
        self.dtypes = list(dtypes)
        self.shapes = list(shapes)
        self.closed = False
        self._cancelled = False
        self._count = 0
        """Elements that have begun so far."""
        self._next_index = FIRST_INDEX
        self._incomplete: dict[bytes, tuple[int, int, dict[int, Array]]] = {}
        """By key, the place in the order of keys, the index, and the components that have come."""
        self._ready: list[tuple[int, int, bytes, dict[int, Array]]] = []

    def describe(self) -> str:
        """How messages name the barrier."""
        return f"barrier {self.name!r}"

    @property
    def ready_size(self) -> int:
        """Number of complete elements."""
        return len(self._ready)

    @property
    def incomplete_size(self) -> int:
        """Number of elements of which components are missing."""
        return len(self._incomplete)

    def insert(self, component: int, keys: Array, values: Array) -> None:
        """Add one component to several elements. If one of them is refused, nothing is added."""
        if keys.ndim != 1 or values.shape[:1] != keys.shape:
            raise InvalidArgumentError(
                f"{self.describe()} takes a vector of keys and as many values, got shapes {TensorShape(keys.shape)} "
                f"and {TensorShape(values.shape)}"
            )
        if self.shapes and not self.shapes[component].is_compatible_with(values.shape[1:]):
            expected = bracketed([len(keys), *self.shapes[component].sizes])
            raise InvalidArgumentError(
                f"Shape mismatch in tuple component {component}. Expected {expected}, got {bracketed(values.shape)}. "
                f"The barrier is {self.describe()}."
            )
        if len(keys) and not values.size:
            raise InvalidArgumentError(f"Tensors with no elements are not supported by {self.describe()}")
        rows = dict(zip(keys.tolist(), values.copy(), strict=True))
        if len(rows) < len(keys):
            raise InvalidArgumentError(f"{self.describe()}: a key occurs twice among those given")
        self.change(lambda: self._insert(component, rows))

    def _insert(self, component: int, rows: dict[bytes, Array]) -> None:
        for key in rows:
            if self.closed and (self._cancelled or key not in self._incomplete):
                raise CancelledError(f"{self.describe()} is closed: key {key!r} cannot be added")
            if key in self._incomplete and component in self._incomplete[key][2]:
                raise InvalidArgumentError(f"{self.describe()} has component {component} of key {key!r} already")
        begun = self._count
        for key, row in rows.items():
            if key not in self._incomplete:
                self._incomplete[key] = self._count, self._next_index, {}
                self._count += 1
            place, index, element = self._incomplete[key]
            element[component] = row
            if len(element) == len(self.dtypes):
                del self._incomplete[key]
                heapq.heappush(self._ready, (place, index, key, element))
        if self._count > begun:
            self._next_index += 1  # keys that come together have one index, as in TensorFlow

    def take(self, count: int, allow_small: bool) -> Attempt:
        """Take `count` complete elements: their indices, keys and stacked components."""
        if count < 0:
            raise InvalidArgumentError(f"{self.describe()}: cannot take {count} elements")
        return self.submit(_Take(self, count, allow_small), 0) if count else Immediate(self.stacked([]))

    def close(self, cancel_pending: bool) -> None:
        """Refuse new keys. With `cancel_pending`, also drop incomplete elements and refuse their components."""

        def close() -> None:
            if self.closed and (self._cancelled or not cancel_pending):
                raise CancelledError(f"{self.describe()} is closed already")
            self.closed = True
            self._cancelled = cancel_pending
            if cancel_pending:
                self._incomplete.clear()

        self.change(close)

    def pop(self, count: int) -> list[Any]:
        """The first complete elements. Call with the lock held."""
        return [heapq.heappop(self._ready) for _ in range(count)]

    def stacked(self, elements: Sequence[Any]) -> list[Array]:
        """Elements as kernels return them."""
        keys = np.empty(len(elements), object)
        keys[:] = [key for _, _, key, _ in elements]
        return [
            np.array([index for _, index, _, _ in elements], np.int64),
            keys,
            *(self._stack(component, elements) for component in range(len(self.dtypes))),
        ]

    def _stack(self, component: int, elements: Sequence[Any]) -> Array:
        rows = [element[component] for _, _, _, element in elements]
        sizes = {np.shape(row) for row in rows}
        if len(sizes) > 1:
            raise InvalidArgumentError(
                f"{self.describe()}: values of component {component} have shapes {sorted(sizes)}"
            )
        known = self.shapes[component].sizes if self.shapes and self.shapes[component].rank is not None else ()
        out = np.empty(
            (len(rows), *(sizes.pop() if sizes else (size or 0 for size in known))), self.dtypes[component].numpy
        )
        for i, row in enumerate(rows):
            out[i] = row
        return out


class _Take(Attempt):
    __slots__ = ("_allow_small", "_count")
    resource: Barrier

    def __init__(self, barrier: Barrier, count: int, allow_small: bool) -> None:
        super().__init__(barrier)
        self._count = count
        self._allow_small = allow_small

    def advance(self) -> bool:
        barrier = self.resource
        ready = barrier.ready_size
        if ready >= self._count:
            return self.finish(barrier.pop(self._count))
        if not barrier.closed:
            return False
        if self._allow_small and ready:
            return self.finish(barrier.pop(ready))
        total = ready + barrier.incomplete_size
        if total >= (1 if self._allow_small else self._count):
            return False
        message = f"is closed and has insufficient elements (requested {self._count}, total size {total})"
        return self.fail(OutOfRangeError(f"{barrier.describe()} {message}"))

    def result(self) -> list[Array]:
        return self.resource.stacked(super().result())
