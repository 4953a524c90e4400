"""Static shapes with unknown dimensions and unknown rank."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import suppress
from typing import Any, SupportsIndex, cast, overload

import numpy as np

from tfray.errors import ArgumentError
from tfray.framework.dtypes import DType


class Dimension:
    """One dimension of a static shape: a size, or None when it is known only at run time.

    TensorFlow 1 programs read ``shape[i].value``. A known dimension also works as a plain integer. What is calculated
    with an unknown one is unknown, and comparing with it gives None.
    """

    __slots__ = ("value",)

    def __init__(self, value: int | Dimension | None) -> None:
        if isinstance(value, Dimension):
            value = value.value
        self.value: int | None = None if value is None else _whole(value)
        if self.value is not None and self.value < 0:
            raise ArgumentError(f"Dimension {self.value} must be >= 0")

    def __index__(self) -> int:
        if self.value is None:
            raise TypeError("this dimension is unknown until run time: use tf.shape(tensor) for its value")
        return self.value

    __int__ = __index__

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return f"Dimension({self.value})"

    def __str__(self) -> str:
        return "?" if self.value is None else str(self.value)

    def is_compatible_with(self, other: Any) -> bool:
        """Whether both may be the same size: they are equal, or one is unknown."""
        other = Dimension(other)
        return self.value is None or other.value is None or self.value == other.value

    def assert_is_compatible_with(self, other: Any) -> None:
        """Raise `ValueError` when the sizes differ."""
        if not self.is_compatible_with(other):
            raise ValueError(f"Dimensions {self} and {other} are not compatible")

    def merge_with(self, other: Any) -> Dimension:
        """The size that is known of both. Raises `ValueError` when they differ."""
        self.assert_is_compatible_with(other)
        return Dimension(other if self.value is None else self)

    def _combine(self, other: Any, function: Callable[[int, int], Any]) -> Any:
        """``function(self, other)`` where both are known, else None; NotImplemented for what is no dimension."""
        try:
            other = Dimension(other)
        except ArgumentError:
            if isinstance(other, SupportsIndex) and function not in (operator.eq, operator.ne):
                raise
            return NotImplemented
        return None if self.value is None or other.value is None else function(self.value, other.value)

    def _calculate(self, other: Any, function: Callable[[int, int], int]) -> Any:
        result = self._combine(other, function)
        return result if result is NotImplemented else Dimension(result)

    def __add__(self, other: Any) -> Any:
        return self._calculate(other, operator.add)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._calculate(other, operator.sub)

    def __rsub__(self, other: Any) -> Any:
        return self._calculate(other, lambda size, from_size: from_size - size)

    def __mul__(self, other: Any) -> Any:
        return self._calculate(other, operator.mul)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Any:
        return self._calculate(other, operator.floordiv)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._calculate(other, lambda size, dividend: dividend // size)

    def __mod__(self, other: Any) -> Any:
        return self._calculate(other, operator.mod)

    def __rmod__(self, other: Any) -> Any:
        return self._calculate(other, lambda size, dividend: dividend % size)

    def __truediv__(self, other: Any) -> Any:
        raise TypeError(f"unsupported operand type(s) for /: a dimension is a whole number: use {self!r} // {other!r}")

    def __rtruediv__(self, other: Any) -> Any:
        raise TypeError(f"unsupported operand type(s) for /: a dimension is a whole number: use {other!r} // {self!r}")

    # Comparisons with an unknown size give None, as in TensorFlow.

    def __eq__(self, other: object) -> Any:
        return self._combine(other, operator.eq)

    def __ne__(self, other: object) -> Any:
        return self._combine(other, operator.ne)

    def __lt__(self, other: Any) -> Any:
        return self._combine(other, operator.lt)

    def __le__(self, other: Any) -> Any:
        return self._combine(other, operator.le)

    def __gt__(self, other: Any) -> Any:
        return self._combine(other, operator.gt)

    def __ge__(self, other: Any) -> Any:
        return self._combine(other, operator.ge)


def dimension_value(dimension: Any) -> Any:
    """The size that a `Dimension` has, or None; anything else as it is."""
    return dimension.value if isinstance(dimension, Dimension) else dimension


def dimension_at_index(shape: TensorShape, index: int) -> Dimension:
    """Dimension `index` of a shape; an unknown one when the rank is unknown.

    Raises:
        IndexError: The shape has fewer dimensions.
    """
    return Dimension(None) if shape.rank is None else Dimension(shape.sizes[index])


class TensorShape:
    """What is known of a tensor's shape before it runs: the rank or None, and each size or None.

    Args:
        dims: None for an unknown rank, an integer for a vector, one size (or None) per dimension, or a
            ``TensorShapeProto``.
    """

    __slots__ = ("_sizes",)

    def __init__(self, dims: ShapeLike) -> None:
        self._sizes: tuple[int | None, ...] | None
        if dims is None:
            self._sizes = None
        elif isinstance(dims, TensorShape):
            self._sizes = dims._sizes
        elif isinstance(dims, (list, tuple)):
            self._sizes = tuple(map(_size, dims))
        elif hasattr(dims, "unknown_rank"):  # a TensorShapeProto
            proto: Any = dims
            self._sizes = None if proto.unknown_rank else tuple(_size(dim.size) for dim in proto.dim)
        elif isinstance(dims, (int, float, Dimension)):
            self._sizes = (Dimension(dims).value,)
        elif isinstance(dims, SupportsIndex) and not isinstance(dims, Sized):
            self._sizes = (dims.__index__(),)
        else:
            try:
                if isinstance(dims, (str, bytes)):
                    raise TypeError("characters are no sizes")
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

    _dims = dims  # as TensorFlow keeps them within, where Keras looks

    def as_list(self) -> list[int | None]:
        """Every size, None where unknown. Raises `ValueError` when the rank is unknown."""
        if self._sizes is None:
            raise ValueError("as_list() is not defined on an unknown TensorShape. Its rank is known only at run time")
        return list(self._sizes)

    def is_fully_defined(self) -> bool:
        """Whether every dimension is known."""
        return self._sizes is not None and None not in self._sizes

    def whole(self) -> tuple[int, ...] | None:
        """Every size, or None while one is unknown."""
        return cast("tuple[int, ...]", self._sizes) if self.is_fully_defined() else None

    def num_elements(self) -> int | None:
        """Product of the sizes, or None while one is unknown."""
        sizes = self.whole()
        return None if sizes is None else math.prod(sizes)

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
            raise ValueError(f"Shapes {self} and {TensorShape(other)} are incompatible: {self._difference(other)}")

    def _difference(self, other: ShapeLike) -> str:
        """Why no concrete shape fits both."""
        theirs = TensorShape(other).sizes
        if len(self.sizes) != len(theirs):
            return f"Shape must be rank {len(theirs)} but is rank {len(self.sizes)}"
        pairs = list(zip(self.sizes, theirs, strict=True))
        axis = next(axis for axis, (a, b) in enumerate(pairs) if a is not None and b is not None and a != b)
        return f"Dimension {axis} in both shapes must be equal, but are {pairs[axis][0]} and {pairs[axis][1]}"

    def assert_is_fully_defined(self) -> None:
        """Raise `ValueError` when a size is not known."""
        if not self.is_fully_defined():
            raise ValueError(f"Shape {self} is not fully defined")

    def assert_has_rank(self, rank: int) -> None:
        """Raise `ValueError` when the rank is known and is not `rank`."""
        if self.rank not in (None, rank):
            raise ValueError(f"Shape must be rank {rank} but is rank {self.rank}: Shape {self} must have rank {rank}")

    def assert_same_rank(self, other: ShapeLike) -> None:
        """Raise `ValueError` when both ranks are known and differ."""
        other = TensorShape(other)
        if self.rank is not None and other.rank is not None and self.rank != other.rank:
            raise ValueError(f"Shapes {self} and {other} must have the same rank")

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

    def with_rank_at_least(self, rank: int) -> TensorShape:
        """This shape. Raises `ValueError` when it has a lower rank."""
        if self.rank is not None and self.rank < rank:
            raise ValueError(
                f"Shape must be at least rank {rank} but is rank {self.rank}: {self} must have rank at least {rank}"
            )
        return self

    def with_rank_at_most(self, rank: int) -> TensorShape:
        """This shape. Raises `ValueError` when it has a higher rank."""
        if self.rank is not None and self.rank > rank:
            raise ValueError(
                f"Shape must be at most rank {rank} but is rank {self.rank}: {self} must have rank at most {rank}"
            )
        return self

    def most_specific_compatible_shape(self, other: ShapeLike) -> TensorShape:
        """What both shapes have in common: the sizes in which they agree; an unknown rank when their ranks differ."""
        other = TensorShape(other)
        if self._sizes is None or other._sizes is None or len(self._sizes) != len(other._sizes):
            return UNKNOWN
        return TensorShape([a if a == b else None for a, b in zip(self._sizes, other._sizes, strict=True)])

    def as_proto(self) -> Any:
        """This shape as a ``TensorShapeProto``."""
        return _to_proto(self)

    @overload
    def __getitem__(self, key: slice) -> TensorShape: ...

    @overload
    def __getitem__(self, key: SupportsIndex) -> Dimension: ...

    def __getitem__(self, key: slice | SupportsIndex) -> TensorShape | Dimension:
        if isinstance(key, slice):
            return TensorShape(_slice_of_unknown(key) if self._sizes is None else self._sizes[key])
        return Dimension(None if self._sizes is None else self._sizes[key])

    def __add__(self, other: Any) -> TensorShape:
        return self.concatenate(other)

    def __radd__(self, other: Any) -> TensorShape:
        return TensorShape(other).concatenate(self)

    def __len__(self) -> int:
        if self._sizes is None:
            raise ValueError("Cannot take the length of shape with unknown rank.")
        return len(self._sizes)

    def __iter__(self) -> Iterator[Dimension]:
        if self._sizes is None:
            raise ValueError("Cannot iterate over a shape with unknown rank.")
        return iter([Dimension(size) for size in self._sizes])

    def __bool__(self) -> bool:
        return self._sizes is not None

    def __eq__(self, other: object) -> bool:
        try:
            return self._sizes == TensorShape(cast("ShapeLike", other))._sizes
        except TypeError:
            return NotImplemented

    def __hash__(self) -> int:
        return hash(self._sizes)

    def __repr__(self) -> str:
        return f"TensorShape({self.dims})"

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
    if value is None or (type(value) is int and value >= 0):
        return value
    size = value.value if isinstance(value, Dimension) else _whole(value)
    if size is not None and size < 0:
        if size == -1:  # TensorFlow 1 writes -1 for an unknown dimension in attributes and protos
            return None
        raise ValueError(f"Dimension {size} must be >= 0")
    return size


def _whole(value: Any) -> int:
    """`value` as an integer. Raises `ArgumentError`, a `TypeError` and `ValueError`, for what is no whole number."""
    try:
        if isinstance(value, DType):
            raise TypeError("a dtype is no size")
        size = int(value)
        is_whole = isinstance(value, (str, bytes)) or bool(size == value)
    except (TypeError, ValueError, OverflowError) as error:
        raise ArgumentError(f"a dimension cannot have the value {value!r}") from error
    if not is_whole:
        raise ArgumentError(f"Ambiguous dimension: {value!r} is no whole number")
    return size


def _slice_of_unknown(key: slice) -> list[None] | None:
    """The sizes that a slice of a shape of unknown rank has: unknown ones, whose number may be known."""
    start, stop = key.start or 0, key.stop
    if key.step not in (None, 1):
        raise ValueError("a shape of unknown rank can only be sliced with step 1")
    if stop is None or start < 0 or stop < 0:
        return None
    return [None] * max(0, stop - start)


def _no_proto(shape: TensorShape) -> Any:
    raise TypeError(f"no message is known for shapes: {shape} cannot be made one")


_to_proto: Callable[[TensorShape], Any] = _no_proto


def set_proto_function(function: Callable[[TensorShape], Any]) -> None:
    """Let `function` make the message of `TensorShape.as_proto`: modules of `framework` do not import `formats`."""
    global _to_proto
    _to_proto = function


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
            raise ValueError(
                f"Incompatible shapes for broadcasting: {first} and {second}. Dimensions must be equal, but are {a} "
                f"and {b}"
            )
    return TensorShape(sizes)


def is_broadcast_compatible(shape_x: TensorShape, shape_y: TensorShape) -> bool:
    """Whether an elementwise operation may take two shapes: they have a known rank, and no sizes contradict."""
    if shape_x.rank is None or shape_y.rank is None:
        return False
    with suppress(ValueError):
        return broadcast_shapes(shape_x, shape_y) is not None
    return False
