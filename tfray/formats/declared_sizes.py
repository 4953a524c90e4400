"""Checks of sizes that a file declares, before memory is taken for them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Final

MAX_RANK: Final = 64
"""Most dimensions of an array: NumPy's limit."""


def element_count(shape: Sequence[int], item_bytes: int) -> int:
    """How many elements an array of a declared shape has.

    Args:
        shape: The shape.
        item_bytes: Size of an element.

    Raises:
        ValueError: No array can have that shape, not even one without elements.
    """
    if not all(type(size) is int and size >= 0 for size in shape) or len(shape) > MAX_RANK:
        raise ValueError(f"{list(shape)} is not the shape of an array")
    # Like NumPy, leave out dimensions of size 0: strides are computed from the others, and must fit 63 bits too.
    if math.prod(size or 1 for size in shape) * max(1, item_bytes) >= 1 << 63:
        raise ValueError(f"no array can have shape {list(shape)}")
    return math.prod(shape)


def check_disjoint(offsets: Sequence[Sequence[int]], shapes: Sequence[Sequence[int]]) -> None:
    """Raise `ValueError` when two of several boxes have an element in common."""
    boxes = list(zip(offsets, shapes, strict=True))
    for axis in range(len(offsets[0])):  # quick test: mostly the boxes lie one after the other along one axis
        bounds = sorted((offset[axis], offset[axis] + shape[axis]) for offset, shape in boxes)
        if all(end <= start for (_, end), (start, _) in itertools.pairwise(bounds)):
            return
    for number, (offset, shape) in enumerate(boxes):
        for other, extent in boxes[:number]:
            if all(max(a, b) < min(a + m, b + n) for a, m, b, n in zip(offset, shape, other, extent, strict=True)):
                raise ValueError(f"the parts at {list(other)} and at {list(offset)} overlap")
