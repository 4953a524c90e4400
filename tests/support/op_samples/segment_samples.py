"""Reductions by segment, of rows as they come and of rows that are looked up."""

from __future__ import annotations

import numpy as np

from tests.support.op_samples import OpError, OpSample, grid
from tfray.framework import dtypes
from tfray.ops.math import segment_ops, sparse_segment_ops

IDS = np.array([0, 0, 2, 2, 2], np.int32)
_COMPLEX = np.array([[1 + 2j, 0.5], [2 - 1j, 1j], [0.3, 1 + 1j]])


def by_segment(function, empty):
    """The reference of a reduction by segment."""

    def reference(data, ids, count=None):
        count = (int(ids.max()) + 1 if ids.size else 0) if count is None else int(count)
        inner = data.shape[ids.ndim :]
        rows, numbers = data.reshape(ids.size, *inner), ids.reshape(-1)
        result = [
            function(rows[numbers == i], axis=0) if (numbers == i).any() else np.full(inner, empty(data.dtype))
            for i in range(count)
        ]
        return np.array(result, data.dtype).reshape(count, *inner)

    return reference


def _zero(dtype):
    return 0


def _one(dtype):
    return 1


def _lowest(dtype):
    return dtypes.as_dtype(dtype).min


def _highest(dtype):
    return dtypes.as_dtype(dtype).max


def _sum_by_root(rows, axis):
    return rows.sum(axis) / np.sqrt(len(rows))


SEGMENTS = [
    *[
        OpSample(op, build, [data, ids], by_segment(function, empty), data_dependent=True, tolerance=4)
        for op, build, function, empty in [
            ("SegmentSum", segment_ops.segment_sum, np.sum, _zero),
            ("SegmentMean", segment_ops.segment_mean, np.mean, _zero),
            ("SegmentMax", segment_ops.segment_max, np.max, _zero),
            ("SegmentMin", segment_ops.segment_min, np.min, _zero),
            ("SegmentProd", segment_ops.segment_prod, np.prod, _one),
        ]
        for data, ids in [
            (grid(5, 2, low=0.5, high=2), IDS),
            (grid(5, low=0.5, high=2), IDS.astype(np.int64)),
            (grid(0, 2), IDS[:0]),
        ]
    ],
    *[
        OpSample(
            op,
            build,
            [data, ids, np.array(count, np.int32)],
            reference,
            sizes=(2,),
            # Segments without rows get a bound of the dtype, in which differences are lost.
            differentiable=() if count > 2 and op.endswith(("Max", "Min")) else None,
            dtypes=(dtypes.float64, dtypes.int32) if count > 2 and op.endswith(("Max", "Min")) else None,
            tolerance=4,
        )
        for op, build, reference in [
            ("UnsortedSegmentSum", segment_ops.unsorted_segment_sum, by_segment(np.sum, _zero)),
            ("UnsortedSegmentMax", segment_ops.unsorted_segment_max, by_segment(np.max, _lowest)),
            ("UnsortedSegmentMin", segment_ops.unsorted_segment_min, by_segment(np.min, _highest)),
            ("UnsortedSegmentProd", segment_ops.unsorted_segment_prod, by_segment(np.prod, _one)),
        ]
        for data, ids, count in [
            (grid(4, 3, low=0.5, high=2), np.array([3, 0, 3, -1], np.int32), 5),
            (grid(2, 2, 3, low=0.5, high=2), np.array([[1, 0], [1, 1]]), 2),
            (grid(3, low=0.5, high=2), np.array([0, 0, 1]), 2),
            (grid(0, 2), np.zeros(0, np.int32), 3),
        ]
    ],
    *[
        OpSample(
            op, build, [*inputs], by_segment(np.prod, _one), sizes=sizes, data_dependent=not sizes, label="complex"
        )
        for op, build, inputs, sizes in [
            ("SegmentProd", segment_ops.segment_prod, [_COMPLEX, np.array([0, 0, 2])], ()),
            (
                "UnsortedSegmentProd",
                segment_ops.unsorted_segment_prod,
                [_COMPLEX, np.array([1, 0, 1]), np.array(2, np.int32)],
                (2,),
            ),
        ]
    ],
    OpSample(
        "SegmentProd",
        segment_ops.segment_prod,
        [np.array([[0.0, 2.0, 0.0], [3.0, 4.0, 0.0], [5.0, 0.0, 1.0]]), np.array([0, 0, 1])],
        by_segment(np.prod, _one),
        data_dependent=True,
        twice=False,
        label="zeros",
    ),
    OpSample(
        "SpreadSegments",
        segment_ops.spread_segments,
        [grid(3, 2), np.array([2, -1, 0, 2], np.int32)],
        lambda x, ids: np.where(ids[:, None] < 0, np.zeros((), x.dtype), x[ids]),
    ),
    OpSample(
        "UnsortedSegmentSum",
        lambda *args: segment_ops.unsorted_segment_mean(*args),
        [grid(4, 3), np.array([3, 0, 3, -1], np.int32), np.array(5, np.int32)],
        by_segment(np.mean, _zero),
        sizes=(2,),
        dtypes=(dtypes.float32, dtypes.float64, dtypes.complex64),
        label="mean",
    ),
    OpSample(
        "UnsortedSegmentSum",
        segment_ops.unsorted_segment_sqrt_n,
        [grid(4, 3), np.array([3, 0, 3, -1], np.int32), np.array(5, np.int32)],
        by_segment(_sum_by_root, _zero),
        sizes=(2,),
        dtypes=(dtypes.float32, dtypes.float64),
        label="sqrt_n",
    ),
]

_ROWS = np.array([2, 0, 2], np.int32)

LOOKED_UP = [
    OpSample(
        op,
        lambda x, build=build, count=count: build(x, _ROWS, np.array([0, 0, 2], np.int32), num_segments=count),
        [grid(4, 2)],
        lambda x, function=function, count=count: by_segment(function, _zero)(
            x[_ROWS], np.array([0, 0, 2]), 3 if count is None else count
        ),
        dtypes=(dtypes.float32, dtypes.float64),
        modes=("known", "unknown sizes"),
        data_dependent=True,
        tolerance=4,
        label=f"sparse-{function.__name__}",
    )
    for op, build, function, count in [
        ("SparseSegmentSum", sparse_segment_ops.sparse_segment_sum, np.sum, None),
        ("SparseSegmentSum", sparse_segment_ops.sparse_segment_sum, np.sum, 4),
        ("SparseSegmentMean", sparse_segment_ops.sparse_segment_mean, np.mean, None),
        ("SparseSegmentMean", sparse_segment_ops.sparse_segment_mean, np.mean, 4),
        ("SparseSegmentSqrtN", sparse_segment_ops.sparse_segment_sqrt_n, _sum_by_root, None),
        ("SparseSegmentSqrtN", sparse_segment_ops.sparse_segment_sqrt_n, _sum_by_root, 4),
    ]
]

SAMPLES = [*LOOKED_UP, *SEGMENTS]

_MATRIX = np.zeros((2, 3))

ERRORS = [
    *[
        OpError(
            "SparseSegmentSum",
            lambda x, rows, ids, count=count: sparse_segment_ops.sparse_segment_sum(x, rows, ids, num_segments=count),
            [_MATRIX, rows, ids],
            match,
            at_run=True,
        )
        for rows, ids, count, match in [
            ([0, 2], [0, 0], None, r"indices\[1\] == 2 out of range \[0, 2\)"),
            ([0, 1], [1, 0], None, "segment ids are not increasing"),
            ([0, 1], [-1, 0], None, r"Segment id -1 out of range \[0, 1\)"),
            ([0, 1], [0, 1], 1, "segment ids must be < num_segments"),
            ([0, 1], [0], None, "do not fit"),
        ]
    ],
    OpError("SegmentSum", segment_ops.segment_sum, [_MATRIX, np.array([1, 0])], "not increasing", at_run=True),
    OpError("SegmentSum", segment_ops.segment_sum, [_MATRIX, np.array([-1, 0])], "must be >= 0", at_run=True),
    OpError("SegmentSum", segment_ops.segment_sum, [_MATRIX, np.array([0])], "same size as dimension 0", at_run=True),
    OpError("SegmentSum", segment_ops.segment_sum, [_MATRIX, np.array([0, 0, 0])], "incompatible"),
    OpError(
        "UnsortedSegmentSum",
        segment_ops.unsorted_segment_sum,
        [_MATRIX, np.array([0, 7]), np.array(2)],
        r"segment_ids\[1\] = 7 is out of range \[0, 2\)",
        at_run=True,
    ),
    OpError(
        "UnsortedSegmentSum",
        segment_ops.unsorted_segment_sum,
        [_MATRIX, np.array([0, 1, 1]), np.array(2)],
        "no prefix",
    ),
]
