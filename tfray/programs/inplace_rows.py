"""``tensorflow.python.ops.inplace_ops``: tensors with some rows changed. Here each change makes a tensor of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tfray.errors import InvalidArgumentError
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import int64
from tfray.framework.graph import Tensor
from tfray.ops.arrays import array_ops, tensor_scatter_ops
from tfray.ops.math import math_ops

__all__ = [
    "alias_inplace_add",
    "alias_inplace_sub",
    "alias_inplace_update",
    "empty",
    "empty_like",
    "inplace_add",
    "inplace_sub",
    "inplace_update",
]


def _changed(scatter: Callable[..., Tensor], what: str) -> Callable[[Any, Any, Any], Tensor]:
    def change(x: Any, i: Any, v: Any) -> Tensor:
        """Documented below."""
        x = convert_to_tensor(x)
        v = convert_to_tensor(v, x.dtype)
        if i is None:
            return scatter(x, array_ops.range(array_ops.shape(x)[0])[:, None], v)
        i = array_ops.cast(convert_to_tensor(i), int64)
        if i.shape.rank not in (None, 0, 1):
            raise InvalidArgumentError(f"i must be a vector, an integer or None, and has shape {i.shape}")
        if i.shape.rank == 0:
            i, v = i[None], v[None]
        if None not in (x.shape.rank, v.shape.rank) and x.shape.rank != v.shape.rank:
            raise InvalidArgumentError(f"x and v shape doesn't match (ranks differ): {x.shape} vs. {v.shape}")
        if v.shape.rank and not i.shape.is_compatible_with(v.shape[:1]):
            raise InvalidArgumentError(f"i and x shape doesn't match at index 0: {i.shape} vs. {v.shape[:1]}")
        i = math_ops.floormod(i, array_ops.shape(x, out_type=int64)[0])
        return scatter(x, i[:, None], v)

    change.__doc__ = f"""`x` with {what} `v`.

    Args:
        x: Shape ``[n, ...]``, any dtype of numbers.
        i: Which rows: an integer, or several of shape ``[k]``; all rows when None. Negative ones count from the end.
        v: Shape ``[...]`` for one row, otherwise ``[k, ...]``.

    Returns:
        Shape and dtype of `x`.

    Raises:
        InvalidArgumentError: Shapes do not fit.
    """
    return change


alias_inplace_update = inplace_update = _changed(tensor_scatter_ops.tensor_scatter_update, "its rows `i` replaced by")
alias_inplace_add = inplace_add = _changed(tensor_scatter_ops.tensor_scatter_add, "its rows `i` increased by")
alias_inplace_sub = inplace_sub = _changed(tensor_scatter_ops.tensor_scatter_sub, "its rows `i` decreased by")


def empty(shape: Any, dtype: Any, init: bool = False) -> Tensor:
    """A tensor of a shape, of zeros whether or not `init` asks for them."""
    return array_ops.zeros(shape, dtype)


def empty_like(x: Any, init: bool = False) -> Tensor:
    """A tensor of zeros like `x`, whether or not `init` asks for them."""
    return array_ops.zeros_like(x)
