"""The state of a conditional accumulator on its device: the sum of the gradients until enough of them have come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework.dtypes import DType
from tfray.framework.op_def import Array
from tfray.framework.tensor_shape import TensorShape
from tfray.ops.resources.attempts import Attempt, SharedResource

REDUCTIONS: Final = ("MEAN", "SUM")


class Accumulator(SharedResource):
    """Adds up the gradients of the current time step. Gives their mean or sum when enough have come.

    Args:
        name: Name to show.
        dtype: Dtype of the gradients.
        shape: Their shape, as far as it is known.
        reduction: One of `REDUCTIONS`.

    Attributes:
        count: Number of gradients added since gradients were last taken.
        global_step: The current time step. Gradients of earlier steps are dropped.
    """

    def __init__(self, name: str, dtype: DType, shape: TensorShape, reduction: str) -> None:
        super().__init__(line_count=1)
        self.name = name
        self.dtype = dtype
        self.shape = shape
        self.reduction = reduction
        self.count = 0
        self.global_step = 0
        self._clear()

    def describe(self) -> str:
        """How messages name the accumulator."""
        return f"accumulator {self.name!r}"

    def apply(self, local_step: int, *gradient: Array) -> None:
        """Add a gradient; drop it when its `local_step` is before the current time step."""
        self._check(*gradient)

        def add() -> None:
            if local_step >= self.global_step:
                self._add(*gradient)
                self.count += 1

        self.change(add)

    def take(self, num_required: int) -> Attempt:
        """Wait for `num_required` gradients, then take all that are there. This starts a new time step."""
        if num_required < 1:
            raise InvalidArgumentError(f"{self.describe()}: num_required is {num_required}, expected at least 1")
        return self.submit(_Take(self, num_required), 0)

    def take_now(self) -> Any:
        """Take what there is. Call with the lock held."""
        result = self._reduced()
        self._clear()
        self.count = 0
        self.global_step += 1
        return result

    # -- dense gradients ---------------------------------------------------------------------------

    def _clear(self) -> None:
        self._total: Any = None

    def _check(self, *parts: Array) -> None:
        (gradient,) = parts
        if not self.shape.is_compatible_with(gradient.shape):
            raise self.misfit(gradient.shape, self.shape)

    def _add(self, *parts: Array) -> None:
        (gradient,) = parts
        if self._total is None:
            self._total = gradient.copy()
        elif self._total.shape != gradient.shape:
            raise self.misfit(gradient.shape, TensorShape(self._total.shape))
        else:
            self._total += gradient

    def _reduced(self) -> Any:
        return self._total / self._total.dtype.type(self.count) if self.reduction == "MEAN" else self._total

    def misfit(self, shape: Sequence[int] | TensorShape, expected: TensorShape) -> InvalidArgumentError:
        """The error for a gradient of another shape."""
        return InvalidArgumentError(
            f"{self.describe()} takes gradients of shape {expected}, got one of shape {TensorShape(shape)}"
        )


class SparseAccumulator(Accumulator):
    """An accumulator of sparse gradients, which give only some rows. A row's mean is over those that have it."""

    def _clear(self) -> None:
        self._indices: list[Array] = []
        self._values: list[Array] = []

    def _check(self, *parts: Array) -> None:
        indices, values, *shapes = parts
        if indices.ndim != 1:
            shape = TensorShape(indices.shape)
            raise InvalidArgumentError(f"{self.describe()}: Input indices should be vector but received shape: {shape}")
        if not values.ndim:
            raise InvalidArgumentError(f"{self.describe()}: Values cannot be 0-dimensional.")
        if len(indices) != len(values):
            raise InvalidArgumentError(
                f"{self.describe()}: Expected {len(indices)} non-empty input values, got {len(values)}"
            )
        rows = TensorShape([None, *values.shape[1:]])
        given = TensorShape([int(size) for size in shapes[0]]) if shapes else rows
        if not (_begins(given, self.shape) and _begins(rows, self.shape) and _begins(rows, given)):
            raise self.misfit(given, self.shape)
        sizes = [size for shape in (self.shape, given) if shape.rank for size in shape.sizes[:1] if size is not None]
        if len(indices) and (indices.min() < 0 or any(indices.max() >= size for size in sizes)):
            raise InvalidArgumentError(
                f"{self.describe()}: indices reach from {indices.min()} to {indices.max()}, and there are "
                f"{min(sizes) if sizes else 'only non-negative'} rows"
            )

    def _add(self, *parts: Array) -> None:
        indices, values, *_ = parts
        rows, totals, _ = _sum_by_row(indices, values)
        if self._values and self._values[0].shape[1:] != values.shape[1:]:
            raise self.misfit(values.shape, TensorShape([None, *self._values[0].shape[1:]]))
        self._indices.append(rows)
        self._values.append(totals)

    def _reduced(self) -> tuple[Array, Array, Array]:
        rows, totals, counts = _sum_by_row(np.concatenate(self._indices), np.concatenate(self._values))
        if self.reduction == "MEAN":
            totals = totals / counts.astype(totals.dtype).reshape(-1, *[1] * (totals.ndim - 1))
        first = self.shape.sizes[0] if self.shape.rank else None
        sizes = [-1 if first is None else first, *totals.shape[1:]]
        return rows, totals, np.array(sizes, np.int64)


def _begins(shape: TensorShape, expected: TensorShape) -> bool:
    """Whether a shape begins with the expected one. TensorFlow compares no dimensions behind these."""
    rank = expected.rank
    return rank is None or (len(shape) >= rank and shape[:rank].is_compatible_with(expected))


def _sum_by_row(indices: Array, values: Array) -> tuple[Array, Array, Array]:
    """The distinct indices in ascending order, the sum of the rows of each, and the number of rows of each."""
    rows, places, counts = np.unique(indices, return_inverse=True, return_counts=True)
    totals = np.zeros((len(rows), *values.shape[1:]), values.dtype)
    np.add.at(totals, places.reshape(-1), values)
    return rows, totals, counts


class _Take(Attempt):
    __slots__ = ("_num_required",)
    resource: Accumulator

    def __init__(self, accumulator: Accumulator, num_required: int) -> None:
        super().__init__(accumulator)
        self._num_required = num_required

    def advance(self) -> bool:
        accumulator = self.resource
        return accumulator.count >= self._num_required and self.finish(accumulator.take_now())
