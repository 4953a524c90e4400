"""Adding rows to an array at given indices, which may repeat, on the CPU.

NumPy's ``add.at`` does the same, but takes many times as long for rows.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import numpy as np

from tfray.framework.op_def import Array
from tfray.ops.kernels import fast_rows

_FEW_INDICES: Final = 256
"""Up to this many indices, a Python set tells faster than sorting whether one repeats."""


@lru_cache(maxsize=1)
def _csr_array() -> Any:
    # Imported only when needed, because SciPy is slow to import.
    from scipy.sparse import csr_array

    return csr_array


def group_equal(indices: Array) -> tuple[Array, Array, Array]:
    """Sort an integer vector into groups of equal entries.

    Returns:
        The distinct entries, ascending; the order that sorts `indices`, in which equal entries stay in sequence; and
        the position in that order where each group starts, followed by the number of entries.
    """
    order = indices.argsort(kind="stable")
    ascending = indices[order]
    is_first = np.empty(ascending.size + 1, np.bool_)
    is_first[[0, -1]] = True
    np.not_equal(ascending[1:], ascending[:-1], out=is_first[1:-1])
    starts = np.flatnonzero(is_first) if ascending.size else np.zeros(1, np.intp)
    return ascending[starts[:-1]], order, starts


def sum_groups(values: Array, order: Array, starts: Array) -> Array:
    """Add up the rows of `values`, group by group (see `group_equal`). Half precision is summed in float32.

    Args:
        values: Shape ``[n, ...]``.
        order: The order that sorts the rows into groups.
        starts: Where each group starts, followed by n.

    Returns:
        Shape ``[groups, ...]``, the dtype of `values`.
    """
    if starts.size - 1 == order.size:  # each group is one row
        return values[order]
    wide = values if values.dtype.itemsize > 2 or values.dtype.kind in "iu" else values.astype(np.float32)
    if wide.dtype.kind not in "fc" or wide.ndim == 1:
        sums = np.add.reduceat(wide[order], starts[:-1], axis=0)
    else:
        # Multiply a sparse matrix by the rows. It has a row for each group, with ones in the columns of its members.
        # This takes one pass and no sorted copy of the rows.
        shape = starts.size - 1, order.size
        ones = np.ones(order.size, wide.dtype)
        sums = (_csr_array()((ones, order, starts), shape=shape) @ wide.reshape(order.size, -1)).reshape(
            starts.size - 1, *wide.shape[1:]
        )
    return sums.astype(values.dtype, copy=False)


def add_rows(target: Array, indices: Array, rows: Array, subtract: bool = False) -> None:
    """Add ``rows[i]`` to ``target[indices[i]]`` in place, for every i; equal indices add up.

    Args:
        target: Shape ``[m, ...]``.
        indices: Integer vector of n entries in [0, m).
        rows: Shape ``[n, ...]``.
        subtract: Subtract instead.
    """
    ufunc = np.subtract if subtract else np.add
    # Of single elements, NumPy's own function is fast. Half precision needs the sums in float32.
    if target.ndim == 1 and target.dtype.itemsize > 2:
        ufunc.at(target, indices, rows)
        return
    if fast_rows.can_add(target, rows):
        fast_rows.add_rows(target, indices, rows, subtract)
        return
    if indices.size <= _FEW_INDICES and len(set(indices.tolist())) == indices.size:
        updated = target[indices]
        ufunc(updated, rows, out=updated)
        target[indices] = updated
        return
    distinct, order, starts = group_equal(indices)
    target[distinct] = ufunc(target[distinct], sum_groups(rows, order, starts))
