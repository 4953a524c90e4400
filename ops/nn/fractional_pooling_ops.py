"""Fractional pooling: windows of varying size, chosen at random, divide sizes by a ratio that need not be whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.arguments import none_is_default
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.construction_ops import range_
from tfray.ops.arrays.gather_ops import gather
from tfray.ops.arrays.join_ops import concat, size_along
from tfray.ops.arrays.shape_ops import cast, index_tensor, transpose
from tfray.ops.math.arithmetic_ops import add, minimum, multiply, realdiv, subtract
from tfray.ops.math.comparison_ops import less
from tfray.ops.math.rounding_ops import ceil, floor, floordiv
from tfray.ops.math.scan_ops import cumsum
from tfray.ops.math.segment_ops import segment_max, segment_sum
from tfray.ops.math.sorting_ops import argsort, searchsorted
from tfray.ops.random.random_ops import random_uniform
from tfray.ops.random.stateless_random_ops import stateless_random_uniform


class FractionalPool(NamedTuple):
    """What `fractional_max_pool` and `fractional_avg_pool` return.

    Attributes:
        output: The pooled images.
        row_pooling_sequence: Where the windows begin along the height, and where the last one ends, int64.
        col_pooling_sequence: The same along the width.
    """

    output: Tensor
    row_pooling_sequence: Tensor
    col_pooling_sequence: Tensor


@none_is_default
def fractional_max_pool(
    value: TensorLike,
    pooling_ratio: Sequence[float],
    pseudo_random: bool = False,
    overlapping: bool = False,
    deterministic: bool = False,
    seed: int = 0,
    seed2: int = 0,
    name: str | None = None,
) -> FractionalPool:
    """Take the greatest element of windows whose sizes are chosen at random.

    Args:
        value: ``[batch, height, width, channels]``; float32, float64, int32 or int64.
        pooling_ratio: By what the sizes are divided, at least 1, and 1 for the first and the last one.
        pseudo_random: Choose the windows by a sequence with one random number; otherwise their order is random.
        overlapping: Neighbouring windows share the row or column between them.
        deterministic: Choose the same windows in every step.
        seed: Seed of the choice; 0 with `seed2` 0 for one that is never the same.
        seed2: A second one.
        name: Name scope of the operations.

    Returns:
        The pooled images, ``[batch, floor(height / ratio), floor(width / ratio), channels]``, and the windows. Equal
        greatest elements share the gradient.

    Raises:
        InvalidArgumentError: Malformed ratios.

    References:
        Graham, Fractional max-pooling, 2014 (arXiv:1412.6071).
    """
    with get_default_graph().name_scope(name or "fractional_max_pool"):
        pooled, rows, columns = _windows(value, pooling_ratio, pseudo_random, overlapping, deterministic, seed, seed2)
        return FractionalPool(greatest_of(pooled, rows, columns), rows.sequence, columns.sequence)


@none_is_default
def fractional_avg_pool(
    value: TensorLike,
    pooling_ratio: Sequence[float],
    pseudo_random: bool = False,
    overlapping: bool = False,
    deterministic: bool = False,
    seed: int = 0,
    seed2: int = 0,
    name: str | None = None,
) -> FractionalPool:
    """Average windows whose sizes are chosen at random (arguments and results as `fractional_max_pool`).

    `value` has the shape ``[batch, height, width, channels]``, the result ``[batch, floor(height / ratio),
    floor(width / ratio), channels]``.
    """
    with get_default_graph().name_scope(name or "fractional_avg_pool"):
        pooled, rows, columns = _windows(value, pooling_ratio, pseudo_random, overlapping, deterministic, seed, seed2)
        return FractionalPool(mean_of(pooled, rows, columns), rows.sequence, columns.sequence)


class Windows(NamedTuple):
    """The windows along one axis.

    Attributes:
        sequence: Their beginnings and the end, int64.
        places: The elements of all windows in turn.
        owners: The window of each.
    """

    sequence: Tensor
    places: Tensor
    owners: Tensor

    def counts(self) -> Tensor:
        return segment_sum(self.owners * 0 + 1, self.owners)

    def pool(self, images: Tensor, axis: int, reduce: Callable[..., Tensor]) -> Tensor:
        order = [axis, *(i for i in range(4) if i != axis)]
        elements = gather(transpose(images, order), self.places)
        back = [order.index(i) for i in range(4)]
        pooled = transpose(reduce(elements, self.owners), back)
        sizes: list[int | None] = list(images.shape.with_rank(4).sizes)
        known = self.sequence.shape.num_elements()
        sizes[axis] = None if known is None else known - 1
        pooled.set_shape(sizes)
        return pooled


def greatest_of(images: Tensor, rows: Windows, columns: Windows) -> Tensor:
    """The greatest elements of the windows of `images`, ``[batch, height, width, channels]``, a number dtype."""
    return columns.pool(rows.pool(images, 1, segment_max), 2, segment_max)


def mean_of(images: Tensor, rows: Windows, columns: Windows) -> Tensor:
    """The means of the windows of `images`, ``[batch, height, width, channels]``, a number dtype."""
    sums = columns.pool(rows.pool(images, 1, segment_sum), 2, segment_sum)
    counts = multiply(rows.counts()[:, None, None], columns.counts()[:, None])
    divide = realdiv if sums.dtype.is_floating else floordiv
    return divide(sums, cast(counts, sums.dtype))


def _windows(
    value: TensorLike,
    ratio: Sequence[float],
    pseudo_random: bool,
    overlapping: bool,
    deterministic: bool,
    seed: int,
    seed2: int,
) -> tuple[Tensor, Windows, Windows]:
    seed, seed2 = int(seed), int(seed2)
    ratio = [float(each) for each in ratio]
    if len(ratio) != 4 or min(ratio) < 1:
        raise InvalidArgumentError(f"fractional pooling: pooling_ratio is {ratio}, expected 4 numbers of at least 1")
    if ratio[0] != 1 or ratio[3] != 1:
        raise InvalidArgumentError(f"fractional pooling: pooling_ratio is {ratio}, expected 1 for batch and channels")
    value = convert_to_tensor(value)
    value.set_shape(value.shape.with_rank(4))

    def along(axis: int) -> Windows:
        size = size_along(value, axis)
        count: Any
        if isinstance(size, Tensor):
            count = cast(floor(realdiv(cast(size, dtypes.float64), ratio[axis])), dtypes.int32)
        else:
            count = int(size / ratio[axis])
        own_seeds = (seed, seed2 + axis - 1) if seed or seed2 else None
        sequence = _sequence(index_tensor(size), index_tensor(count), pseudo_random, deterministic, own_seeds)
        sequence.set_shape([None if isinstance(count, Tensor) else count + 1])
        return windows_at(sequence, size, overlapping)

    return value, along(1), along(2)


def _sequence(
    size: Tensor, count: Tensor, pseudo_random: bool, deterministic: bool, seeds: tuple[int, int] | None
) -> Tensor:
    """Where `count` windows over `size` elements begin, and where the last one ends."""

    def uniform(shape: Tensor | list[int]) -> Tensor:
        if deterministic:
            return stateless_random_uniform(shape, list(seeds or (0, 0)), dtype=dtypes.float64)
        seed = None if seeds is None else (seeds[0] * 1_000_003 + seeds[1]) % 2**31
        return random_uniform(shape, dtype=dtypes.float64, seed=seed)

    least, places = floordiv(size, count), range_(count)
    if pseudo_random:
        wide, steps = cast(size, dtypes.float64), cast(count, dtypes.float64)
        alpha, k = realdiv(wide, steps), cast(least, dtypes.float64)
        # So that the first and the last window are no larger than the others.
        most = minimum(realdiv(k + 2.0, alpha) - 1.0, realdiv(wide + 1.0 - k, alpha) - (steps - 1.0))
        inner = ceil(alpha * (cast(places[1:], dtypes.float64) + uniform([]) * most))
        starts = concat([[0], cast(inner, dtypes.int32) - 1, size[None]], 0)
    else:
        larger = cast(less(argsort(uniform(count[None])), subtract(size, multiply(least, count))), dtypes.int32)
        starts = concat([[0], cumsum(add(larger, least))], 0)
    return cast(starts, dtypes.int64)


def windows_at(sequence: Tensor, size: TensorLike, overlapping: bool) -> Windows:
    """The windows along an axis of that size, a scalar, which a sequence of beginnings, a vector of int64, gives."""
    starts, ends = sequence[:-1], sequence[1:]
    if overlapping:
        ends = minimum(ends + 1, cast(size, dtypes.int64))
    lengths = ends - starts
    offsets = cumsum(lengths)
    places = range_(offsets[-1])
    owners = searchsorted(offsets, places, side="right", out_type=dtypes.int64)
    inner = places - gather(offsets - lengths, owners)
    return Windows(sequence, gather(starts, owners) + inner, owners)
