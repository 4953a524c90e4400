"""Coordinates of sparse tensors as arrays: their row-major positions, and their order.

Coordinates are int64 matrices with one element's position in each row. All of this runs on the host.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework.op_def import Array


def check_coordinates(indices: Array, values: Array | None, sizes: Sequence[int]) -> None:
    """Raise `InvalidArgumentError` unless the parts of a sparse tensor fit each other and every index its dimension."""
    if indices.ndim != 2 or indices.shape[1] != len(sizes):
        raise InvalidArgumentError(f"indices of shape {indices.shape} do not fit {len(sizes)} dimensions")
    if values is not None and values.shape != indices.shape[:1]:
        raise InvalidArgumentError(f"values of shape {values.shape} do not fit indices of shape {indices.shape}")
    if min(sizes, default=0) < 0:
        raise InvalidArgumentError(f"{list(sizes)} is not a shape: sizes cannot be negative")
    for axis, size in enumerate(sizes):
        column = indices[:, axis]
        # Read as unsigned, a negative index is larger than any size: one comparison finds both kinds of error.
        if column.size and np.maximum.reduce(column.view(np.uint64)) >= size:
            row = int(np.argmax((column < 0) | (column >= size)))
            raise InvalidArgumentError(
                f"indices[{row}] = {indices[row].tolist()} is out of bounds: need 0 <= index < {list(sizes)}"
            )


def enclosing(indices: Array, sizes: Sequence[int]) -> list[int]:
    """`sizes`, larger where coordinates lie beyond them."""
    tops = indices.max(0, initial=-1) + 1 if indices.ndim == 2 and indices.shape[1] == len(sizes) else sizes
    return [max(int(size), int(top)) for size, top in zip(sizes, tops, strict=True)]


def positions(indices: Array, sizes: Sequence[int]) -> Array:
    """Row-major positions of coordinates that are within `sizes`.

    Raises:
        InvalidArgumentError: The tensor has more elements than 64 bits can number.
    """
    if math.prod(sizes) >= 1 << 63:
        raise InvalidArgumentError(f"a tensor of shape {list(sizes)} has too many elements to be numbered")
    if len(sizes) == 1:
        return indices[:, 0]
    found = np.zeros(len(indices), np.int64)
    for axis, size in enumerate(sizes):
        found *= size
        found += indices[:, axis]
    return found


def coordinates(places: Array, sizes: Sequence[int]) -> Array:
    """Coordinates of row-major positions: the inverse of `positions`."""
    found: Array = np.empty((len(places), len(sizes)), np.int64)
    rest = places
    for axis in range(len(sizes) - 1, 0, -1):
        rest, found[:, axis] = np.divmod(rest, max(sizes[axis], 1))
    if len(sizes):
        found[:, 0] = rest
    return found


def check_ascending(places: Array, indices: Array) -> None:
    """Raise `InvalidArgumentError` unless every position is greater than the one before it."""
    steps = places[1:] <= places[:-1]
    if steps.any():
        row = int(np.argmax(steps)) + 1
        kind = "repeated" if places[row] == places[row - 1] else "out of order"
        raise InvalidArgumentError(
            f"indices[{row}] = {indices[row].tolist()} is {kind}: sort with tf.sparse_reorder, and name each place once"
        )


def ascending_positions(indices: Array, values: Array | None, sizes: Sequence[int]) -> Array:
    """Row-major positions of a sparse tensor's elements, after checking that they are in range and ascending."""
    check_coordinates(indices, values, sizes)
    places = positions(indices, sizes)
    check_ascending(places, indices)
    return places
