"""``tf.contrib.periodic_resample``: elements of one dimension that move into the others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.gather_ops import gather_nd

__all__ = ["periodic_resample"]


def periodic_resample(values: TensorLike, shape: Sequence[int | None], name: str | None = None) -> Tensor:
    """Give a tensor another shape: all dimensions but one grow, and take what they need from that one.

    Args:
        values: A known shape, any dtype.
        shape: As many dimensions, of which one is None: its length follows from those of the others. What an output
            dimension does not need of the next multiple of its length is left out.
        name: Name of the operations.

    Returns:
        The elements, of that shape and the dtype of `values`.

    Raises:
        InvalidArgumentError: The shape of `values` is not known, not one dimension of `shape` is None, the ranks
            differ, another dimension is to become smaller, or that one is too short.
    """
    with get_default_graph().name_scope(name or "periodic_resample"):
        tensor = convert_to_tensor(values)
        wanted = [None if size is None or size < 0 else int(size) for size in shape]
        sizes = [size or 0 for size in tensor.shape.as_list()] if tensor.shape.rank else []
        if not tensor.shape.is_fully_defined() or wanted.count(None) != 1 or len(wanted) != tensor.shape.rank:
            raise InvalidArgumentError(
                f"values have shape {tensor.shape}, and shape is {list(shape)}: expected a known shape, and one None "
                "among as many dimensions"
            )
        if any(size is not None and size < own for size, own in zip(wanted, sizes, strict=True)):
            raise InvalidArgumentError(f"values have shape {tensor.shape}, and {list(shape)} has a smaller dimension")
        place = wanted.index(None)
        factors = [1 if size is None else -(-size // own) for size, own in zip(wanted, sizes, strict=True)]
        rest = sizes[place] // int(np.prod(factors))
        if rest < 1:
            raise InvalidArgumentError(f"dimension {place} of {tensor.shape} is too short to fill {list(shape)}")
        indices = np.indices([rest if size is None else size for size in wanted])
        weight, found = rest, [index // factor for index, factor in zip(indices, factors, strict=True)]
        for index, factor in zip(indices, factors, strict=True):
            if factor > 1:
                found[place] = found[place] + index % factor * weight
                weight *= factor
        return gather_nd(tensor, np.stack(found, -1))
