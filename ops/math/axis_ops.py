"""Axes that are known only when a step runs: counted from the front, and brought together before the other ones."""

from __future__ import annotations

from typing import NamedTuple

from tfray.framework.graph import Tensor
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.broadcast_ops import where
from tfray.ops.arrays.construction_ops import range_
from tfray.ops.arrays.gather_ops import gather
from tfray.ops.arrays.join_ops import concat, stack
from tfray.ops.arrays.partition_ops import setdiff1d
from tfray.ops.arrays.shape_ops import cast, index_tensor, rank, reshape, shape, transpose
from tfray.ops.math.arithmetic_ops import add
from tfray.ops.math.comparison_ops import equal, less
from tfray.ops.math.scan_ops import cumprod


def from_front(axes: TensorLike, tensor: Tensor) -> Tensor:
    """Axes of `tensor`, an integer scalar or vector, counted from the front, int32."""
    axes = cast(index_tensor(axes), "int32")
    return where(less(axes, 0), add(axes, rank(tensor)), axes)


def last_axis_first(axis: Tensor, tensor: Tensor) -> Tensor:
    """The permutation of the dimensions of `tensor` that exchanges `axis`, counted from the front, and the last one."""
    places, last = range_(rank(tensor)), add(rank(tensor), -1)
    moved = where(equal(places, last), add(places * 0, axis), places)
    return where(equal(places, axis), add(places * 0, last), moved)


def _product(sizes: Tensor) -> Tensor:
    return cumprod(concat([[1], sizes], 0))[-1]


class Grouped(NamedTuple):
    """A tensor as a matrix whose rows or columns run over chosen axes.

    Attributes:
        matrix: Shape ``[chosen, others]``, or the other way round.
        order: The permutation of dimensions that comes first.
        sizes: Shape of the permuted tensor, an integer vector.
        others: Sizes of the dimensions that are not chosen.
    """

    matrix: Tensor
    order: Tensor
    sizes: Tensor
    others: Tensor


def grouped(tensor: Tensor, axes: Tensor, chosen_first: bool) -> Grouped:
    """Bring the dimensions `axes`, a vector counted from the front, together before or behind the other ones."""
    rest = setdiff1d(range_(rank(tensor)), axes).out
    parts = [axes, rest] if chosen_first else [rest, axes]
    order = concat(parts, 0)
    sizes = [gather(shape(tensor), part) for part in parts]
    matrix = reshape(transpose(tensor, order), stack([_product(part) for part in sizes]))
    return Grouped(matrix, order, concat(sizes, 0), sizes[1 if chosen_first else 0])
