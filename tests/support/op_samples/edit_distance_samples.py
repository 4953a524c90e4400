"""Distances between sequences."""

from __future__ import annotations

from functools import cache

import numpy as np

from tests.support.op_samples import OpError, OpSample
from tfray.framework.sparse_tensor import SparseTensor
from tfray.ops.sparse import edit_distance_ops


def _distance(a, b):
    """Levenshtein's distance by its definition."""

    @cache
    def of(i, j):
        if not i or not j:
            return i + j
        return min(of(i - 1, j) + 1, of(i, j - 1) + 1, of(i - 1, j - 1) + (a[i - 1] != b[j - 1]))

    return of(len(a), len(b))


def _rows(indices, values, shape):
    rows = {}
    for place, value in zip(map(tuple, indices[:, :-1].tolist()), values.tolist(), strict=True):
        rows.setdefault(place, []).append(value)
    return rows


def _distances(*parts, normalize=True):
    found, true = _rows(*parts[:3]), _rows(*parts[3:])
    result = np.zeros(np.maximum(parts[2], parts[5])[:-1], np.float32)
    for place in np.ndindex(result.shape):
        a, b = tuple(found.get(place, ())), tuple(true.get(place, ()))
        distance = _distance(a, b)
        result[place] = distance if not normalize else (distance / len(b) if b else (np.inf if a else 0))
    return result


def sparse(rows, longest, dtype):
    indices = np.array([(b, i) for b, row in enumerate(rows) for i in range(len(row))], np.int64).reshape(-1, 2)
    values = np.array([item for row in rows for item in row], dtype)
    return [indices, values, np.array([len(rows), longest])]


def distance(*parts, normalize=True):
    return edit_distance_ops.edit_distance(SparseTensor(*parts[:3]), SparseTensor(*parts[3:]), normalize)


RANDOM = np.random.default_rng(0)
WORDS = [[b"a", b"cat", b"sat"], [b"on"], [], [b"the", b"mat"]]
OTHERS = [[b"a", b"sat"], [], [], [b"the", b"the", b"mat", b"."], [b"b"]]
NUMBERS = [[int(item) for item in RANDOM.integers(0, 4, size)] for size in (7, 0, 9, 12, 3)]
GOALS = [[int(item) for item in RANDOM.integers(0, 4, size)] for size in (9, 2, 9, 5, 3)]

SAMPLES = [
    OpSample(
        "EditDistance",
        distance,
        [*sparse(found, 20, dtype), *sparse(true, 20, dtype)],
        lambda *parts, normalize=normalize: _distances(*parts, normalize=normalize),
        {"normalize": normalize},
        sizes=(2, 5),
        label=f"{normalize}",
    )
    for found, true, dtype in [(WORDS, OTHERS, object), (NUMBERS, GOALS, np.int32), ([[]], [[]], np.int64)]
    for normalize in (True, False)
]

_PAIR = sparse([[1, 2]], 2, np.int32)

_ROWS_BACKWARD = [np.array([[1, 0], [0, 0]]), np.array([1, 2], np.int32), np.array([2, 2])]

ERRORS = [
    OpError("EditDistance", distance, [*_PAIR, _PAIR[0] + 5, *_PAIR[1:]], r"\[5\] is out of bounds", at_run=True),
    OpError("EditDistance", distance, [*_PAIR, *_ROWS_BACKWARD], "out of order", at_run=True),
    OpError(
        "EditDistance",
        distance,
        [*_PAIR, np.zeros((1, 3), np.int64), _PAIR[1][:1], np.array([1, 1, 1])],
        "incompatible",
    ),
]
