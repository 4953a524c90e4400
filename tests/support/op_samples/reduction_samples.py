"""Reductions, running sums, positions of extremes."""

from __future__ import annotations

import numpy as np
import scipy.special

from tests.support.op_samples import OpError, OpSample, grid
from tfray.framework import dtypes
from tfray.ops.math import reduction_ops, scan_ops, search_ops

AXES = [((3, 4), None), ((3, 4), 0), ((3, 4), [-1]), ((2, 3, 4), [0, 2]), ((2, 3, 4), 1), ((), []), ((5,), [])]
"""Shapes, and the dimensions over which they are reduced."""


def _numpy_axis(axis):
    return tuple(axis) if isinstance(axis, list) else axis


def reduction_rows(op, build, reference, axes=AXES, low=-3.0, high=3.0, **options):
    """Rows of a reduction: several dimensions, kept and dropped, given as a list and as a tensor."""
    rows = []
    for keep in (False, True):
        for shape, axis in axes:
            rows.append(
                OpSample(
                    op,
                    lambda x, axis=axis, keep=keep: build(x, axis, keepdims=keep),
                    [grid(*shape, low=low, high=high)],
                    lambda x, axis=axis, keep=keep: reference(x, axis=_numpy_axis(axis), keepdims=keep),
                    label=f"{axis}{'kept' if keep else ''}",
                    **options,
                )
            )
    rows.append(
        OpSample(
            op,
            lambda x, axis: build(x, axis),
            [grid(2, 3, 4, low=low, high=high), np.array([0, -1], np.int32)],
            lambda x, axis: reference(x, axis=tuple(axis), keepdims=False),
            sizes=(1,),
            label="tensor",
            **{**options, "modes": options.get("modes", ("known", "unknown sizes", "unknown rank", "fed sizes"))},
        )
    )
    return rows


def _summed(x, axis, keepdims):
    return np.sum(x, axis=axis, keepdims=keepdims, dtype=x.dtype)


def _averaged(x, axis, keepdims):
    mean = np.mean(x.astype(np.float64) if x.dtype.kind in "iu" else x, axis=axis, keepdims=keepdims)
    return np.trunc(mean) if x.dtype.kind in "iu" else mean


def _multiplied(x, axis, keepdims):
    return np.prod(x, axis=axis, keepdims=keepdims, dtype=x.dtype)


def _long_rows(op, build, reference):
    """Sizes at which kernels take another way: long sums, folded rows, several blocks."""
    return [
        OpSample(
            op,
            lambda x, axis=axis: build(x, axis),
            [grid(*shape, low=0.5, high=1.5)],
            lambda x, axis=axis: reference(x, axis=_numpy_axis(axis), keepdims=False),
            dtypes=(dtypes.float32, dtypes.float64),
            differentiable=(),
            tolerance=20,
            label=f"long-{axis}",
        )
        for shape, axis in [
            ((5000,), 0),
            ((71, 43), None),
            ((133, 7), 0),
            ((7, 133), 1),
            ((3, 50, 5, 20), [1, 3]),
        ]
    ]


SUMS = [
    *reduction_rows("Sum", reduction_ops.reduce_sum, _summed, tolerance=8),
    *reduction_rows("Mean", reduction_ops.reduce_mean, _averaged, tolerance=8),
    *reduction_rows("Max", reduction_ops.reduce_max, np.max),
    *reduction_rows("Min", reduction_ops.reduce_min, np.min),
    *_long_rows("Sum", reduction_ops.reduce_sum, np.sum),
    *[
        OpSample(
            "Sum",
            lambda x, axis=axis: reduction_ops.reduce_sum(x, axis),
            [grid(*shape, low=0.5, high=1.5)],
            lambda x, axis=axis: np.sum(x, axis=axis),
            dtypes=(dtypes.float32,),
            modes=("known",),
            tolerance=30,
            label=f"tiled-{axis}",
        )
        for shape, axis in [((150001, 2), 0), ((150001, 2), 1), ((2, 270001), 1), ((2, 70001), 0), ((2, 150001, 2), 1)]
    ],
    *_long_rows("Mean", reduction_ops.reduce_mean, np.mean),
    *_long_rows("Max", reduction_ops.reduce_max, np.max),
    *_long_rows("Min", reduction_ops.reduce_min, np.min),
    OpSample("Sum", lambda x: reduction_ops.reduce_sum(x, 0), [grid(0, 3)], lambda x: np.zeros(3), label="empty"),
    OpSample("Sum", lambda x: reduction_ops.reduce_sum(x, [0, -2]), [grid(2, 3)], lambda x: x.sum(0), label="twice"),
    OpSample("Mean", lambda x: reduction_ops.reduce_mean(x, (1, -1)), [grid(2, 3)], lambda x: x.mean(1), label="twice"),
    OpSample("Max", lambda x: reduction_ops.reduce_max(x, [1, 1]), [grid(2, 3)], lambda x: x.max(1), label="twice"),
    OpSample(
        "Max",
        lambda x: reduction_ops.reduce_max(x, 1),
        [grid(2, 0)],
        lambda x: np.full(2, -np.inf),
        differentiable=(),
        dtypes=dtypes.FLOATS,
        label="empty",
    ),
    OpSample(
        "Min",
        lambda x: reduction_ops.reduce_min(x, 1),
        [grid(2, 0)],
        lambda x: np.full(2, np.inf),
        differentiable=(),
        dtypes=dtypes.FLOATS,
        label="empty",
    ),
    OpSample(
        "Sum",
        lambda x: reduction_ops.reduce_sum(x, 1),
        [grid(64, 3).T],
        lambda x: x.sum(1),
        dtypes=(dtypes.float32, dtypes.float64),
        tolerance=10,
        label="transposed",
    ),
    OpSample(
        "Max",
        lambda x: reduction_ops.reduce_max(x, 1),
        [np.array([[1.0, 3.0, 3.0]])],
        lambda x: x.max(1),
        differentiable=(),
        label="tie",
    ),
    *reduction_rows(
        "Prod",
        reduction_ops.reduce_prod,
        _multiplied,
        [((2, 3), None), ((2, 3), 0), ((2, 3, 2), [0, -1]), ((), [])],
        0.5,
        1.5,
        tolerance=8,
        modes=("known", "unknown sizes", "unknown rank"),
    ),
    OpSample(
        "Prod",
        lambda x: reduction_ops.reduce_prod(x, 0),
        [np.array([[0.0, 0.0, 2.0], [3.0, 0.0, 4.0]])],
        lambda x: np.prod(x, axis=0, dtype=x.dtype),
        twice=False,
        label="zeros",
    ),
    *[
        OpSample(
            op,
            lambda x, axis=axis, build=build: build(x, axis),
            [np.array([[True, False, True], [True, True, True]])],
            lambda x, axis=axis, reference=reference: reference(x, axis=_numpy_axis(axis)),
            label=str(axis),
        )
        for op, build, reference in [
            ("All", reduction_ops.reduce_all, np.all),
            ("Any", reduction_ops.reduce_any, np.any),
        ]
        for axis in (None, 0, [1], [])
    ],
    OpSample(
        "ExpandReduced",
        reduction_ops.expand_reduced,
        [grid(2, 4), np.array([2, 3, 4], np.int32), np.array([1], np.int32)],
        lambda x, sizes, axis: np.broadcast_to(x[:, None], sizes),
        sizes=(1, 2),
        modes=("known", "unknown sizes", "unknown rank"),
    ),
    OpSample(
        "ExpandReduced",
        reduction_ops.expand_reduced,
        [grid(1, 4), np.array([3, 4], np.int32), np.array(0, np.int32)],
        lambda x, sizes, axis: np.broadcast_to(x, sizes),
        sizes=(1, 2),
    ),
    OpSample(
        "Sum",
        lambda x: reduction_ops.reduce_sum(x, reduction_indices=[0], keep_dims=True),
        [grid(2, 3)],
        lambda x: x.sum(0, keepdims=True, dtype=x.dtype),
        label="old_names",
        tolerance=2,
    ),
]

COMPOSED = [
    *reduction_rows(
        "Exp",
        reduction_ops.reduce_logsumexp,
        scipy.special.logsumexp,
        AXES[:4],
        dtypes=(dtypes.float32, dtypes.float64),
        tolerance=4,
    ),
    OpSample(
        "Exp",
        reduction_ops.reduce_logsumexp,
        [np.array([1000.0, 1000.0])],
        scipy.special.logsumexp,
        dtypes=(dtypes.float32, dtypes.float64),
        label="no_overflow",
    ),
    OpSample(
        "Exp",
        reduction_ops.reduce_logsumexp,
        [np.array([-np.inf, -np.inf])],
        lambda x: np.float64(-np.inf),
        dtypes=(dtypes.float32, dtypes.float64),
        differentiable=(),
        label="nothing",
    ),
    OpSample(
        "Sum",
        reduction_ops.reduce_euclidean_norm,
        [grid(2, 3)],
        np.linalg.norm,
        dtypes=(dtypes.float32, dtypes.float64, dtypes.complex64),
        tolerance=8,
        label="euclidean",
    ),
    OpSample(
        "Mean",
        lambda x: reduction_ops.reduce_variance(x, 1),
        [grid(2, 5)],
        lambda x: x.var(1),
        dtypes=(dtypes.float32, dtypes.float64),
        tolerance=8,
        label="variance",
    ),
    OpSample(
        "Mean",
        lambda x: reduction_ops.reduce_std(x, 1),
        [grid(2, 5)],
        lambda x: x.std(1),
        dtypes=(dtypes.float32, dtypes.float64),
        tolerance=8,
        label="std",
    ),
    OpSample(
        "Sum",
        lambda x: reduction_ops.count_nonzero(x, 1),
        [np.array([[0.0, 1.5, -2.0], [0.0, 0.0, 0.0]])],
        lambda x: np.count_nonzero(x, axis=1),
        differentiable=(),
        label="count_nonzero",
    ),
]

_SCANS = [(axis, exclusive, reverse) for axis in (0, -1) for exclusive in (False, True) for reverse in (False, True)]


def _scan(function, start, axis, exclusive, reverse):
    def reference(x):
        x = np.flip(x, axis) if reverse else x
        result = function(x, axis=axis, dtype=x.dtype)
        if exclusive:
            first = np.full_like(np.take(result, [0], axis), start)
            result = np.concatenate([first, np.delete(result, -1, axis)], axis)
        return np.flip(result, axis) if reverse else result

    return reference


SCANS = [
    OpSample(
        op,
        lambda x, axis=axis, exclusive=exclusive, reverse=reverse, build=build: build(x, axis, exclusive, reverse),
        [grid(3, 4, low=0.5, high=2)],
        _scan(function, start, axis, exclusive, reverse),
        label=f"{axis}{'exclusive' * exclusive}{'reverse' * reverse}",
        tolerance=8,
    )
    for op, build, function, start in [
        ("Cumsum", scan_ops.cumsum, np.cumsum, 0),
        ("Cumprod", scan_ops.cumprod, np.cumprod, 1),
    ]
    for axis, exclusive, reverse in _SCANS
] + [
    OpSample(
        "Cumsum",
        scan_ops.cumsum,
        [grid(2, 3), np.array(1, np.int32)],
        lambda x, axis: np.cumsum(x, 1, x.dtype),
        sizes=(1,),
        tolerance=8,
        label="tensor",
    ),
    OpSample("Cumsum", scan_ops.cumsum, [grid(0, 3)], lambda x: x, label="empty"),
    OpSample("Cumprod", lambda x: scan_ops.cumprod(x, exclusive=True), [grid(0)], lambda x: x, label="empty"),
]

_ZEROS = np.array([[2.0, 2.0, -1.0], [2.0, 1.0, 5.0]])

POSITIONS = [
    OpSample(
        op,
        lambda x, axis=axis, build=build: build(x, axis),
        [array],
        lambda x, axis=axis, reference=reference: reference(x, 0 if axis is None else axis),
        differentiable=(),
        label=f"{axis}",
    )
    for op, build, reference in [("ArgMax", search_ops.argmax, np.argmax), ("ArgMin", search_ops.argmin, np.argmin)]
    for array, axis in [
        (grid(3, 4), None),
        (grid(3, 4), 1),
        (grid(2, 3, 4), -2),
        (_ZEROS, 1),
        (np.round(grid(70, 100)), 0),
        (np.round(grid(3, 40, 100)), 1),
        (np.array([True, False, True]), 0),
    ]
] + [
    *[
        OpSample(
            op,
            lambda x, build=build: build(x, 0),
            [np.where(grid(90, 64, low=0, high=1) < 0.02, np.nan, grid(90, 64))],
            lambda x, reference=reference: reference(x, 0),
            dtypes=(dtypes.float32, dtypes.float64),
            label="nan",
        )
        for op, build, reference in [("ArgMax", search_ops.argmax, np.argmax), ("ArgMin", search_ops.argmin, np.argmin)]
    ],
    OpSample(
        "ArgMax",
        lambda x, axis: search_ops.argmax(x, axis, output_type=dtypes.int32),
        [grid(3, 4), np.array(1, np.int64)],
        lambda x, axis: np.argmax(x, 1).astype(np.int32),
        sizes=(1,),
        label="tensor",
    ),
]


def _top_k(x, k):
    order = np.argsort(-x.astype(np.float64), axis=-1, kind="stable")[..., : int(k)]
    return [np.take_along_axis(x, order, axis=-1), order.astype(np.int32)]


SEARCH = [
    *[
        OpSample("TopKV2", search_ops.top_k, [array, np.array(k, np.int32)], _top_k, sizes=(1,), label=f"{k}")
        for array, k in [(grid(3, 5), 2), (grid(5), 1), (grid(2, 3), 0), (grid(2, 2, 3), 3)]
    ],
    OpSample(
        "TopKV2",
        search_ops.top_k,
        [np.round(grid(20, 64)), np.array(5, np.int32)],
        _top_k,
        sizes=(1,),
        differentiable=(),
        label="ties",
    ),
    OpSample(
        "TopKV2",
        search_ops.top_k,
        [grid(20, 64), np.array(5, np.int32)],
        _top_k,
        sizes=(1,),
        dtypes=(dtypes.float32, dtypes.float64),
        label="partial",
    ),
    OpSample(
        "TakeAlongLast",
        search_ops.take_along_last,
        [grid(2, 4), np.array([[3, 0], [1, 2]])],
        lambda x, indices: np.take_along_axis(x, indices, -1),
    ),
    OpSample(
        "PutAlongLast",
        search_ops.put_along_last,
        [grid(2, 2), np.array([[3, 0], [1, 2]]), np.array([2, 4])],
        lambda x, indices, sizes: np.array(
            [[x[0, 1], 0, 0, x[0, 0]], [0, x[1, 0], x[1, 1], 0]],
        ),
        sizes=(2,),
    ),
    OpSample(
        "InTopKV2",
        search_ops.in_top_k,
        [
            np.array([[0.1, 0.5, 0.4], [0.3, 0.3, 0.2], [0.6, np.inf, 0.1], [0.1, 0.2, 0.3]]),
            np.array([2, 1, 1, 7], np.int32),
            np.array(1, np.int32),
        ],
        lambda predictions, targets, k: np.array([False, True, False, False]),
        sizes=(2,),
        differentiable=(),
    ),
    OpSample("Bincount", search_ops.bincount, [np.array([1, 3, 1, 0], np.int32)], np.bincount, data_dependent=True),
    OpSample(
        "Bincount", search_ops.bincount, [np.zeros((0, 2), np.int32)], lambda x: np.zeros(0, int), data_dependent=True
    ),
    OpSample(
        "Bincount",
        search_ops.bincount,
        [np.array([[1, 3], [1, 0]], np.int32), grid(2, 2)],
        lambda numbers, weights: np.bincount(numbers.ravel(), weights.ravel()),
        dtypes=(dtypes.int32, dtypes.float32, dtypes.float64),
        data_dependent=True,
        differentiable=(),
    ),
    OpSample(
        "Bincount",
        lambda x: search_ops.bincount(x, minlength=3, maxlength=5, dtype=dtypes.int64),
        [np.array([1, 9], np.int32)],
        lambda x: np.array([0, 1, 0, 0, 0]),
        data_dependent=True,
    ),
]

SAMPLES = [*SUMS, *COMPOSED, *SCANS, *POSITIONS, *SEARCH]

_MATRIX = np.zeros((2, 3))

ERRORS = [
    OpError("Sum", lambda x: reduction_ops.reduce_sum(x, 2), [_MATRIX], "Invalid reduction dimension 2 for"),
    OpError("Sum", lambda x: reduction_ops.reduce_sum(x, 0, reduction_indices=0), [_MATRIX], "old name"),
    OpError("Max", lambda x: reduction_ops.reduce_max(x, 0, keepdims=True, keep_dims=True), [_MATRIX], "old name"),
    OpError("Sum", reduction_ops.reduce_sum, [_MATRIX, np.array(2)], "Invalid reduction dimension 2 for", at_run=True),
    OpError("All", reduction_ops.reduce_all, [_MATRIX], "has type float64 that does not match expected type of bool"),
    OpError("Cumsum", scan_ops.cumsum, [_MATRIX, np.array(2)], r"Expected scan axis in the range \[-2, 2\)"),
    OpError(
        "Cumsum", scan_ops.cumsum, [_MATRIX, np.array(2)], r"Expected scan axis in the range \[-2, 2\)", at_run=True
    ),
    OpError("ArgMax", lambda x: search_ops.argmax(x, 2), [_MATRIX], "axis = 2 not in"),
    OpError("ArgMax", search_ops.argmax, [np.zeros(())], "at least rank 1"),
    OpError("ArgMin", search_ops.argmin, [np.zeros((0, 2)), np.array(0)], "is empty", at_run=True),
    OpError("TopKV2", lambda x: search_ops.top_k(x, 4), [_MATRIX], "k is 4"),
    OpError("TopKV2", search_ops.top_k, [_MATRIX, np.array(4)], "k is 4", at_run=True),
    OpError("Bincount", search_ops.bincount, [np.array([1, -1])], "Input arr must be non-negative", at_run=True),
]
