"""Operations on sets. Expected values are what TensorFlow 2.21 gave for the same."""

from __future__ import annotations

import numpy as np

from tests.support.op_samples import OpError, OpSample
from tests.support.op_samples.parsing_samples import strings
from tfray.framework.sparse_tensor import SparseTensor
from tfray.ops.sparse import set_ops, sparse_cross_ops

A = np.int32([[[1, 2], [3, 3]], [[4, 5], [6, 7]]])
B = np.int32([[[1, 3], [3, 9]], [[5, 4], [8, 9]]])
SPARSE_A = [np.array([[0, 0], [0, 1], [2, 0]]), np.int64([5, 3, 1]), np.array([3, 4])]
SPARSE_B = [np.array([[0, 0], [1, 0], [2, 0], [2, 1]]), np.int64([3, 9, 1, 1]), np.array([3, 2])]


CROSSED = [[0, 0], [0, 1], [0, 2], [0, 3], [2, 0], [2, 1]]
HASHED = [
    *[8935263110919643167, 4943572461444180342, 7177478147263047056],
    *[1779267445957561478, 9038364905835773754, 1882430661813595196],
]


def parts(sparse):
    return [sparse.indices, sparse.values, sparse.dense_shape]


def dense(function):
    return lambda a, b: parts(function(a, b))


def sparse(function):
    return lambda *tensors: parts(function(SparseTensor(*tensors[:3]), SparseTensor(*tensors[3:])))


def crossed(function, **attrs):
    """A cross of a sparse input, which is given in three tensors, and of a dense one."""
    return lambda *tensors: parts(function([tensors[3], SparseTensor(*tensors[:3])], **attrs))


def row(build, inputs, expected, label):
    return OpSample("SparseToSparseSetOperation", build, inputs, lambda *_: expected, data_dependent=True, label=label)


SAMPLES = [
    row(
        dense(set_ops.set_intersection),
        [A, B],
        [[[0, 0, 0], [0, 1, 0], [1, 0, 0], [1, 0, 1]], [1, 3, 4, 5], [2, 2, 2]],
        "intersection",
    ),
    row(
        dense(set_ops.set_union),
        [A, B],
        [
            [
                *[[0, 0, i] for i in range(3)],
                *[[0, 1, i] for i in range(2)],
                *[[1, 0, i] for i in range(2)],
                *[[1, 1, i] for i in range(4)],
            ],
            [1, 2, 3, 3, 9, 4, 5, 6, 7, 8, 9],
            [2, 2, 4],
        ],
        "union",
    ),
    row(
        dense(set_ops.set_difference),
        [A, B],
        [[[0, 0, 0], [1, 1, 0], [1, 1, 1]], [2, 6, 7], [2, 2, 2]],
        "a-b",
    ),
    row(
        dense(lambda a, b: set_ops.set_difference(a, b, False)),
        [A, B],
        [[[0, 0, 0], [0, 1, 0], [1, 1, 0], [1, 1, 1]], [3, 9, 8, 9], [2, 2, 2]],
        "b-a",
    ),
    row(
        sparse(set_ops.set_intersection),
        [*SPARSE_A, *SPARSE_B],
        [[[0, 0], [2, 0]], [3, 1], [3, 1]],
        "sparse-intersection",
    ),
    row(
        sparse(set_ops.set_union),
        [*SPARSE_A, *SPARSE_B],
        [[[0, 0], [0, 1], [1, 0], [2, 0]], [3, 5, 9, 1], [3, 2]],
        "sparse-union",
    ),
    row(sparse(set_ops.set_difference), [*SPARSE_A, *SPARSE_B], [[[0, 0]], [5], [3, 1]], "sparse-difference"),
    row(
        lambda d, *b: parts(set_ops.set_intersection(d, SparseTensor(*b))),
        [np.int64([[3, 3], [9, 1], [1, 7]]), *SPARSE_B],
        [[[0, 0], [1, 0], [2, 0]], [3, 9, 1], [3, 1]],
        "mixed",
    ),
    row(
        dense(set_ops.set_union),
        [strings(b"b", b"a").reshape(1, 2), strings(b"c").reshape(1, 1)],
        [[[0, 0], [0, 1], [0, 2]], strings(b"a", b"b", b"c"), [1, 3]],
        "strings",
    ),
    *[
        OpSample(
            "SetSize",
            lambda *tensors: set_ops.set_size(SparseTensor(*tensors)),
            given,
            lambda *_, e=expected: np.int32(e),
            data_dependent=True,
        )
        for given, expected in [(SPARSE_A, [2, 0, 1]), (SPARSE_B, [1, 1, 1])]
    ],
    *[
        OpSample(
            "SparseCross",
            crossed(function, **attrs),
            [*SPARSE_A, strings(b"x", b"y", b"z", b"w", b"q", b"").reshape(3, 2)],
            lambda *_, e=values: [CROSSED, e, [3, 4]],
            data_dependent=True,
            modes=("known", "unknown sizes"),
        )
        for function, attrs, values in [
            (sparse_cross_ops.sparse_cross, {}, strings(b"5_X_x", b"5_X_y", b"3_X_x", b"3_X_y", b"1_X_q", b"1_X_")),
            (sparse_cross_ops.sparse_cross_hashed, {"num_buckets": 1000}, [306, 294, 419, 395, 140, 619]),
            (sparse_cross_ops.sparse_cross_hashed, {"hash_key": 7}, HASHED),
        ]
    ],
]

ERRORS = [
    OpError("SparseToSparseSetOperation", dense(set_ops.set_union), [A, B[0]], "rank 3 do not go with sets of rank 2"),
    OpError("SparseToSparseSetOperation", dense(set_ops.set_union), [A[0], B[0][:1]], "rows", at_run=True),
    OpError(
        "SparseCross",
        crossed(sparse_cross_ops.sparse_cross),
        [*SPARSE_A, np.int64([[1]])],
        "expected as many",
        at_run=True,
    ),
]
