"""``ufunc.at`` for arrays on a GPU: rows that go to one place are combined, in every dtype.

CuPy adds by atomic operations, for elements of 32 and 64 bits; it lowers and raises the same, and has no other
``ufunc.at``. What it lacks is done here by wider elements, or by sorting: rows of one place then stand side by side and
are combined in pairs, pairs of pairs and so on, which takes the logarithm of their number in passes, and no wait.
"""

from __future__ import annotations

from math import prod
from typing import Any, Final

import numpy as np

from tfray.framework.op_def import Array, ArrayModule
from tfray.ops.kernels.precision import is_half

_ATOMIC: Final = frozenset(map(np.dtype, (np.int32, np.int64, np.uint32, np.uint64, np.float32)))
"""Dtypes for which CuPy raises and lowers elements rightly. For float64 it gives other values than NumPy."""


def combine_at(xp: ArrayModule, ufunc: str, target: Array, indices: Array, updates: Array) -> None:
    """Do on a GPU what ``ufunc.at(target, indices, updates)`` does in NumPy.

    Sums of halves are taken in float32 and rounded once.

    Args:
        xp: The array module of the GPU.
        ufunc: ``add``, ``subtract``, ``multiply``, ``true_divide``, ``maximum`` or ``minimum``.
        target: Shape ``[m, ...]``, contiguous; it is changed.
        indices: Integers of any shape, each in [0, m).
        updates: Shape ``indices.shape + target.shape[1:]``, or what broadcasts to it; the dtype of `target`.
    """
    width = prod(target.shape[1:])
    updates = xp.broadcast_to(updates, (*indices.shape, *target.shape[1:])).reshape(indices.size, width)
    target, indices = target.reshape(target.shape[0], width), indices.reshape(-1)
    if not updates.size:
        return
    if ufunc in ("add", "subtract"):
        _add_at(xp, target, indices, -updates if ufunc == "subtract" else updates)
    elif ufunc in ("maximum", "minimum") and target.dtype in _ATOMIC:
        getattr(xp, ufunc).at(target, indices, updates)
    else:
        places, rows, is_first = combined_rows(xp, "multiply" if ufunc == "true_divide" else ufunc, indices, updates)
        changed = getattr(xp, ufunc)(target[places].astype(rows.dtype, copy=False), rows)
        put_first(xp, target, places, changed, is_first)


def combined_rows(xp: ArrayModule, ufunc: str, indices: Array, rows: Array) -> tuple[Array, Array, Array]:
    """Combine rows of equal indices by an associative ufunc; halves are combined as float32.

    Args:
        xp: The array module.
        ufunc: Name of the ufunc.
        indices: Integer vector of n entries, n at least 1.
        rows: Shape ``[n, width]``.

    Returns:
        The indices in ascending order; the rows in this order, of which the first one of each index has the result;
        and which are first, a boolean vector.
    """
    order = xp.argsort(indices)
    indices, rows = indices[order], rows[order]
    if is_half(rows.dtype):
        rows = rows.astype(np.float32)
    step = 1
    while step < indices.size:
        # Row i holds what rows i to i + step - 1 of its index give; after this, twice as many.
        is_alike = indices[step:] == indices[:-step]
        joined = getattr(xp, ufunc)(rows[:-step], rows[step:])
        rows[:-step] = xp.where(is_alike[:, None], joined, rows[:-step])
        step *= 2
    is_first = xp.concatenate([xp.ones(1, np.bool_), indices[1:] != indices[:-1]])
    return indices, rows, is_first


def put_first(xp: ArrayModule, target: Array, indices: Array, rows: Array, is_first: Array) -> None:
    """Put the first row of each index in its place in `target`: what `combined_rows` gives.

    The others go to a row of their own at the end of a copy: choosing by a mask would wait for the device.
    """
    extended = xp.concatenate([target, xp.zeros((1, target.shape[1]), target.dtype)])
    extended[xp.where(is_first, indices, target.shape[0])] = rows.astype(target.dtype, copy=False)
    target[...] = extended[:-1]


def _add_at(xp: ArrayModule, target: Array, indices: Array, rows: Array) -> None:
    kind, size_bytes = target.dtype.kind, target.dtype.itemsize
    if kind == "c":
        real = np.dtype(f"f{size_bytes // 2}")
        xp.add.at(target.view(real), indices, xp.ascontiguousarray(rows).view(real))
    elif is_half(target.dtype) or size_bytes < 4:
        wide: Any = np.float32 if is_half(target.dtype) else np.int32
        total = target.astype(wide)
        xp.add.at(total, indices, rows.astype(wide))
        target[...] = total.astype(target.dtype)
    elif target.dtype == np.int64:
        # Some versions of CuPy take 64-bit integers only when unsigned. The bits of the sums are the same.
        xp.add.at(target.view(np.uint64), indices, xp.ascontiguousarray(rows).view(np.uint64))
    else:
        xp.add.at(target, indices, rows)
