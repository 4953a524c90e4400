"""Static shapes with unknown dimensions and unknown rank."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sized
from typing import Any, SupportsIndex, cast, overload

import numpy as np


class Dimension:
    """One dimension of a static shape: a size, or None when it is known only at run time.

    TensorFlow 1 programs read ``shape[i].value``. A known dimension also works as a plain integer.
    """

    __slots__ = ("value",)

    def __init__(self, value: int | Dimension | None) -> None:
        if isinstance(value, Dimension):
            value = value.value
        self.value: int | None = None if value is None else _whole(value)
        if self.value is not None and self.value < 0:
            raise ValueError(f"a dimension cannot be {self.value}")

    def __index__(self) -> int:
        if self.value is None:
            raise TypeError("this dimension is unknown until run time: use tf.shape(tensor) for its value")
        return self.value

    __int__ = __index__

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Dimension):
            return self.value == other.value
        return self.value == other

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return "?" if self.value is None else str(self.value)

    def _combine(self, other: Any, function: Any) -> Dimension:
        other = Dimension(other)
        if self.value is None or other.value is None:
            return Dimension(None)
        return Dimension(function(self.value, other.value))

    def __add__(self, other: Any) -> Dimension:
        return self._combine(other, lambda a, b: a + b)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Dimension:
        return self._combine(other, lambda a, b: a - b)

    def __mul__(self, other: Any) -> Dimension:
        return self._combine(other, lambda a, b: a * b)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Dimension:
        return self._combine(other, lambda a, b: a // b)

    def __mod__(self, other: Any) -> Dimension:
        return self._combine(other, lambda a, b: a % b)

    def __lt__(self, other: Any) -> bool:
        return int(self) < int(other)

    def __le__(self, other: Any) -> bool:
        return int(self) <= int(other)

    def __gt__(self, other: Any) -> bool:
        return int(self) > int(other)

    def __ge__(self, other: Any) -> bool:
        return int(self) >= int(other)


class TensorShape:
    """What is known of a tensor's shape before it runs: the rank or None, and each size or None.

    Args:
        dims: None for an unknown rank, an integer for a vector, or one size (or None) per dimension.
    """

    __slots__ = ("_sizes",)

    def __init__(self, dims: ShapeLike) -> None:
        self._sizes: tuple[int | None, ...] | None
        if dims is None:
            self._sizes = None
        elif isinstance(dims, TensorShape):
            self._sizes = dims._sizes
        elif isinstance(dims, (int, Dimension)):
            self._sizes = (Dimension(dims).value,)
        elif isinstance(dims, SupportsIndex) and not isinstance(dims, Sized):
            self._sizes = (dims.__index__(),)
        else:
            try:
                sizes = iter(cast("Iterable[SupportsIndex | None]", dims))
            except TypeError as error:
                raise TypeError(f"a shape cannot be {dims!r}: dims are sizes, a TensorShape or None") from error
            self._sizes = tuple(map(_size, sizes))

    @property
    def rank(self) -> int | None:
        """Number of dimensions, or None."""
        return None if self._sizes is None else len(self._sizes)

    ndims = rank

    @property
    def sizes(self) -> tuple[int | None, ...]:
        """Every size, None where unknown. Raises `ValueError` when the rank is unknown."""
        if self._sizes is None:
            raise ValueError("the rank of this shape is unknown until run time")
        return self._sizes

    @property
    def dims(self) -> list[Dimension] | None:
        """Every dimension, or None when the rank is unknown."""
        return None if self._sizes is None else [Dimension(size) for size in self._sizes]

    def as_list(self) -> list[int | None]:
        """Every size, None where unknown. Raises `ValueError` when the rank is unknown."""
        return list(self.sizes)

    def is_fully_defined(self) -> bool:
        """Whether every dimension is known."""
        return self._sizes is not None and None not in self._sizes

    def num_elements(self) -> int | None:
        """Product of the sizes, or None while one is unknown."""
        if not self.is_fully_defined():
            return None
        product = 1
        for size in self.sizes:
            product *= size  # type: ignore[operator]
        return product

    def is_compatible_with(self, other: ShapeLike) -> bool:
        """Whether some concrete shape fits both this shape and `other`."""
        other = TensorShape(other)
        if self._sizes is None or other._sizes is None:
            return True
        return len(self._sizes) == len(other._sizes) and all(
            a is None or b is None or a == b for a, b in zip(self._sizes, other._sizes, strict=True)
        )

    def assert_is_compatible_with(self, other: ShapeLike) -> None:
        """Raise `ValueError` when no concrete shape fits both."""
        if not self.is_compatible_with(other):
            raise ValueError(f"shapes {self} and {TensorShape(other)} are incompatible")

    def assert_has_rank(self, rank: int) -> None:
        """Raise `ValueError` when the rank is known and is not `rank`."""
        if self.rank not in (None, rank):
            raise ValueError(f"shape {self} must have rank {rank}")

    def merge_with(self, other: ShapeLike) -> TensorShape:
        """Combine what both shapes know. Raises `ValueError` when they contradict each other."""
        other = TensorShape(other)
        self.assert_is_compatible_with(other)
        if self._sizes is None:
            return other
        if other._sizes is None:
            return self
        return TensorShape([b if a is None else a for a, b in zip(self._sizes, other._sizes, strict=True)])

    def concatenate(self, other: ShapeLike) -> TensorShape:
        """The dimensions of this shape followed by those of `other`."""
        other = TensorShape(other)
        if self._sizes is None or other._sizes is None:
            return TensorShape(None)
        return TensorShape(self._sizes + other._sizes)

    def with_rank(self, rank: int) -> TensorShape:
        """This shape, its rank known. Raises `ValueError` when it has another rank."""
        return self.merge_with([None] * rank)

    @overload
    def __getitem__(self, key: slice) -> TensorShape: ...

    @overload
    def __getitem__(self, key: SupportsIndex) -> Dimension: ...

    def __getitem__(self, key: slice | SupportsIndex) -> TensorShape | Dimension:
        if isinstance(key, slice):
            return TensorShape(None if self._sizes is None else self._sizes[key])
        return Dimension(None if self._sizes is None else self._sizes[key])

    def __len__(self) -> int:
        return len(self.sizes)

    def __iter__(self) -> Iterator[Dimension]:
        return iter([Dimension(size) for size in self.sizes])

    def __bool__(self) -> bool:
        return self._sizes is not None

    def __eq__(self, other: object) -> bool:
        if isinstance(other, (list, tuple)) or other is None:
            other = TensorShape(other)
        return isinstance(other, TensorShape) and self._sizes == other._sizes

    def __hash__(self) -> int:
        return hash(self._sizes)

    def __repr__(self) -> str:
        return f"TensorShape({None if self._sizes is None else list(self._sizes)})"

    def __str__(self) -> str:
        if self._sizes is None:
            return "<unknown>"
        inner = ", ".join("?" if size is None else str(size) for size in self._sizes)
        return f"({inner},)" if len(self._sizes) == 1 else f"({inner})"


ShapeLike = TensorShape | Iterable[SupportsIndex | None] | int | np.integer[Any] | Dimension | None
"""What `TensorShape` takes: a shape, its sizes (None for unknown ones), the size of a vector, or None for no rank."""


def as_shape(value: ShapeLike) -> TensorShape:
    """Return `value` as a `TensorShape`."""
    return value if isinstance(value, TensorShape) else TensorShape(value)


def _size(value: Any) -> int | None:
    if value is None:
        return None
    size = value.value if isinstance(value, Dimension) else _whole(value)
    if size is not None and size < 0:
        if size == -1:  # TensorFlow 1 writes -1 for an unknown dimension in attributes and protos
            return None
        raise ValueError(f"a dimension cannot be {size}")
    return size


def _whole(value: Any) -> int:
    """`value` as an integer. Raises `TypeError` for what is no number, `ValueError` for a fraction."""
    try:
        size = int(value)
        is_whole = bool(size == value)
    except (TypeError, ValueError, OverflowError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"a dimension cannot be {value!r}") from error
    if not is_whole:
        raise ValueError(f"a dimension cannot be {value!r}")
    return size


UNKNOWN = TensorShape(None)
SCALAR = TensorShape([])


def broadcast_shapes(first: TensorShape, second: TensorShape) -> TensorShape:
    """Shape of an elementwise operation on two shapes, by NumPy's rules.

    Raises:
        ValueError: The shapes cannot be broadcast together.
    """
    if first.rank is None or second.rank is None:
        return UNKNOWN
    rank = max(first.rank, second.rank)
    a_sizes = (1,) * (rank - first.rank) + first.sizes
    b_sizes = (1,) * (rank - second.rank) + second.sizes
    sizes: list[int | None] = []
    for a, b in zip(a_sizes, b_sizes, strict=True):
        if a == 1:
            sizes.append(b)
        elif b == 1 or a == b:
            sizes.append(a)
        elif a is None or b is None:
            # A known size above 1 wins: the other can only be that size or 1.
            sizes.append(b if a is None else a)
        else:
            raise ValueError(f"shapes {first} and {second} cannot be broadcast together")
    return TensorShape(sizes)
