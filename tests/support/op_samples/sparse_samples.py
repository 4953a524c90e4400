"""Operations on sparse tensors."""

from __future__ import annotations

import numpy as np

from tests.support.op_samples import OpError, OpSample, grid
from tfray.framework.sparse_tensor import SparseTensor
from tfray.ops.sparse import sparse_layout_ops, sparse_math_ops, sparse_ops

ORDERED = np.array([[0, 1], [1, 0], [1, 3], [2, 2]])
MIXED = ORDERED[[2, 0, 3, 1]]
SIZES = np.array([3, 4])
INT = np.int32


def _scattered(indices, shape, values, default):
    dense = np.full(shape, default, np.result_type(values, default))
    places = np.reshape(indices, (-1, len(shape)))
    dense[tuple(places.T)] = values
    return dense


def _reordered(indices, values, shape):
    order = np.lexsort(indices.T[::-1])
    return [indices[order], values[order]]


def _product(indices, values, shape, b, adjoint_a=False, adjoint_b=False):
    a = np.zeros(shape, np.result_type(values))
    np.add.at(a, tuple(indices.T), values)
    return (a.conj().T if adjoint_a else a) @ (b.conj().T if adjoint_b else b)


def matmul(indices, values, shape, b, **options):
    return sparse_math_ops.sparse_tensor_dense_matmul(SparseTensor(indices, values, shape), b, **options)


SAMPLES = [
    *[
        OpSample(
            "SparseToDense",
            sparse_ops.sparse_to_dense,
            [indices, shape, values, default],
            _scattered,
            sizes=(1,),
            modes=modes,
        )
        for modes in [("known", "unknown sizes")]
        for indices, shape, values, default in [
            (ORDERED, SIZES, grid(4), grid()),
            (INT([0, 2]), INT([4]), grid(2), grid()),
            (INT(2), INT([4]), grid(), grid()),
            (ORDERED, SIZES, np.float64(2.5), grid()),
            (np.zeros((0, 2), np.int64), SIZES, grid(0), grid()),
            (np.array([[0, 1]]), SIZES, np.array([b"a"], object), np.array(b"-", object)),
        ]
    ],
    OpSample(
        "SparseToDense",
        lambda *arrays: sparse_ops.sparse_to_dense(*arrays, validate_indices=False),
        [MIXED, SIZES, grid(4), grid()],
        _scattered,
        sizes=(1,),
        modes=("known", "unknown sizes"),
        label="any order",
    ),
    *[
        OpSample(
            "SparseReorder",
            lambda *arrays: _parts(sparse_ops.sparse_reorder(SparseTensor(*arrays))),
            [indices, values, SIZES],
            _reordered,
        )
        for indices, values in [
            (MIXED, grid(4)),
            (ORDERED, grid(4)),
            (np.zeros((0, 2), np.int64), grid(0)),
            (MIXED[[0, 1, 0]], grid(3)),
            (MIXED, np.array([b"a", b"b", b"c", b"d"], object)),
        ]
    ],
    *[
        OpSample(
            "DistinctCoordinates",
            sparse_ops.distinct_coordinates,
            [indices, sizes],
            lambda indices, sizes: np.unique(indices, axis=0, return_inverse=True),
            data_dependent=True,
        )
        for indices, sizes in [
            (MIXED[[0, 1, 1, 3, 0]], SIZES),
            (ORDERED, SIZES),
            (ORDERED[:, :1], SIZES[:1]),
            (np.zeros((0, 2), np.int64), SIZES),
        ]
    ],
    *[
        OpSample(
            "SparseReshape",
            lambda indices, shape, new: _shape_parts(
                sparse_layout_ops.sparse_reshape(SparseTensor(indices, np.ones(4), shape), new)
            ),
            [ORDERED, SIZES, new],
            lambda indices, shape, new: _reshaped(indices, shape, new),
            data_dependent=True,
        )
        for new in (np.array([2, 6]), np.array([12]), np.array([2, -1, 3]))
    ],
    *[
        OpSample(
            "SparseTensorDenseMatMul",
            lambda *arrays, a=a, b=b: matmul(*arrays, adjoint_a=a, adjoint_b=b),
            [indices, values, SIZES, dense],
            lambda *arrays, a=a, b=b: _product(*arrays, a, b),
            differentiable=(1, 3),
            sizes=(2,),
            label=f"{a:d}{b:d}",
            tolerance=4,
        )
        for a, b, dense in [
            (False, False, grid(4, 2, seed=1)),
            (True, False, grid(3, 2, seed=1)),
            (False, True, grid(2, 4, seed=1)),
            (True, True, grid(2, 3, seed=1)),
        ]
        for indices, values in [(MIXED, grid(4)), (MIXED[[0, 0, 1]], grid(3)), (MIXED, grid(4) + 1j)]
        if values.dtype == float or (a, b) == (a, True)
    ],
]


def _parts(sparse):
    return [sparse.indices, sparse.values]


def _shape_parts(sparse):
    return [sparse.indices, sparse.dense_shape]


def _reshaped(indices, shape, new):
    new = np.zeros(shape).reshape(new).shape
    return [np.stack(np.unravel_index(np.ravel_multi_index(tuple(indices.T), tuple(shape)), new), 1), np.array(new)]


ERRORS = [
    OpError(
        "SparseTensorDenseMatMul",
        lambda i, v, s, b: matmul(i, v, s, b),
        [ORDERED, grid(4), SIZES, grid(3, 2)],
        "incompatible",
    ),
    OpError(
        "SparseTensorDenseMatMul",
        lambda i, v, s, b: matmul(i, v, s, b),
        [ORDERED, grid(4), SIZES, grid(3, 2)],
        "cannot be multiplied",
        at_run=True,
    ),
    OpError(
        "SparseToDense",
        sparse_ops.sparse_to_dense,
        [ORDERED, np.array([2, 2]), grid(4), grid()],
        "is out of bounds: need 0 <= index <",
        at_run=True,
    ),
    OpError(
        "SparseToDense",
        sparse_ops.sparse_to_dense,
        [ORDERED, np.array([2, -2]), grid(4), grid()],
        "cannot be negative",
        at_run=True,
    ),
    OpError(
        "SparseToDense",
        sparse_ops.sparse_to_dense,
        [ORDERED, SIZES, grid(3), grid()],
        "do not fit 4 indices",
        at_run=True,
    ),
    OpError(
        "SparseToDense",
        sparse_ops.sparse_to_dense,
        [ORDERED, SIZES, grid(4), grid(1)],
        "expected a scalar",
        at_run=True,
    ),
    OpError("SparseToDense", sparse_ops.sparse_to_dense, [ORDERED, SIZES[:, None], grid(4), grid()], "rank 1"),
    OpError(
        "SparseReorder",
        lambda *arrays: sparse_ops.sparse_reorder(SparseTensor(*arrays)).values,
        [ORDERED, grid(4), np.array([1 << 40, 1 << 40])],
        "too many elements",
        at_run=True,
    ),
]
