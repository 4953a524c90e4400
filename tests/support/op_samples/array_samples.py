"""Operations that move, shape, select or make elements."""

from __future__ import annotations

import numpy as np

from tests.support.op_samples import OpError, OpSample, grid
from tfray.framework import dtypes
from tfray.framework.convert import add_op
from tfray.ops.arrays import array_ops, band_ops, broadcast_ops, gather_ops, shape_ops, slice_ops

INT = np.int32
WORDS = np.array([b"to", b"be", b"or", b"not", b"to", b"be"], object)
RUN_TIME = ("unknown sizes", "unknown rank")
"""Where the shape is known, the answer is a constant."""


def ints(*values):
    return np.array(values, INT)


def build_op(definition, **attrs):
    """Build an operation that has no public function."""
    return lambda *tensors: add_op(definition, *tensors, **attrs)


# -- shapes --------------------------------------------------------------------------------------------

SHAPES = [
    OpSample("Shape", array_ops.shape, [grid(2, 0, 3)], lambda x: ints(*x.shape), modes=RUN_TIME),
    OpSample("Shape", array_ops.shape, [WORDS], lambda x: np.int64(x.shape), {"out_type": "int64"}, modes=RUN_TIME),
    OpSample("Rank", array_ops.rank, [grid(2, 3)], lambda x: INT(2), modes=RUN_TIME[1:]),
    OpSample("Size", array_ops.size, [grid(2, 3)], lambda x: INT(6), modes=RUN_TIME),
    OpSample("ReversedAxes", array_ops.transpose, [grid(2, 3, 4)], np.transpose, modes=RUN_TIME[1:]),
    *[OpSample("Identity", array_ops.identity, [x], lambda x: x) for x in (grid(2, 3), grid(), WORDS)],
    *[
        OpSample("StopGradient", array_ops.stop_gradient, [x], lambda x: x, differentiable=())
        for x in (grid(2, 3), WORDS)
    ],
    *[
        OpSample("Reshape", array_ops.reshape, [x, shape], lambda x, shape: np.reshape(x, shape), sizes=(1,))
        for x, shape in [
            (grid(2, 6), ints(3, 4)),
            (grid(2, 6), np.array([-1, 3])),
            (grid(1), np.zeros(0, INT)),
            (grid(), ints(1, 1)),
            (grid(0, 3), ints(3, 0)),
            (WORDS, ints(2, -1)),
        ]
    ],
    *[
        OpSample(
            "Squeeze", array_ops.squeeze, [x], lambda x, axis=axis: np.squeeze(x, axis), {"axis": axis}, label=str(axis)
        )
        for x, axis in [
            (grid(1, 3, 1), None),
            (grid(1, 3, 1), 0),
            (grid(1, 3, 1), (0, -1)),
            (grid(2), None),
            (WORDS[:1], 0),
        ]
    ],
    *[
        OpSample("ExpandDims", array_ops.expand_dims, [x, INT(axis)], np.expand_dims, sizes=(1,), label=str(axis))
        for x, axis in [(grid(2, 3), 0), (grid(2, 3), -1), (grid(2, 3), 1), (grid(), 0), (WORDS, -2)]
    ],
    *[
        OpSample("Transpose", array_ops.transpose, [x, perm], lambda x, perm: np.transpose(x, perm), sizes=(1,))
        for x, perm in [
            (grid(2, 3, 4), ints(2, 0, 1)),
            (grid(2, 3), ints(1, 0)),
            (grid(0, 2), ints(1, 0)),
            (grid(), np.zeros(0, INT)),
            (WORDS.reshape(2, 3), ints(1, 0)),
        ]
    ],
    OpSample("Transpose", array_ops.transpose, [grid(2, 3)], lambda x: x.T, label="default"),
    OpSample(
        "Transpose",
        array_ops.transpose,
        [grid(2, 3) + 1j],
        lambda x: x.T.conj(),
        {"conjugate": True},
        label="conjugate",
    ),
    OpSample("Transpose", array_ops.matrix_transpose, [grid(2, 3, 4)], lambda x: x.swapaxes(1, 2), modes=("known",)),
    OpSample(
        "InvertPermutation",
        array_ops.invert_permutation,
        [ints(2, 0, 3, 1)],
        lambda x: np.argsort(x).astype(INT),
    ),
]

# -- dtypes --------------------------------------------------------------------------------------------


def _cast_rows():
    values = np.array([[-3.7, 2.5], [0.0, 100.0]])
    for wanted in (*dtypes.NUMERIC, dtypes.bool_):
        allowed = [dtype for dtype in dtypes.NUMERIC if dtype is not wanted]
        values = np.abs(values) if wanted.is_unsigned else values
        yield OpSample(
            "Cast",
            array_ops.cast,
            [values],
            lambda x, wanted=wanted: _as_cast(x, wanted),
            {"dtype": wanted},
            dtypes=allowed,
            label=wanted.name,
            # Between real and complex numbers the gradient is not that of a function of one complex variable.
            differentiable=None if wanted in (dtypes.float64, dtypes.complex128) else (),
        )
    yield OpSample("Cast", array_ops.to_int32, [np.array([True, False])], lambda x: x.astype(INT), label="from bool")
    yield OpSample("Cast", array_ops.to_float, [np.int64(3)], np.float32, label="scalar")


def _as_cast(x, wanted):
    if np.iscomplexobj(x) and not (wanted.is_complex or wanted.is_bool):
        x = x.real
    return x.astype(wanted.numpy)


# -- one value in many places --------------------------------------------------------------------------

BROADCASTING = [
    *[
        OpSample("Fill", array_ops.fill, [shape, value], lambda shape, value: np.full(shape, value), sizes=(0,))
        for shape, value in [
            (ints(2, 3), grid()),
            (np.array([0, 2]), grid()),
            (np.zeros(0, INT), grid()),
            (ints(2), np.True_),
            (ints(2), np.array(b"word", object)),
        ]
    ],
    OpSample(
        "Fill", array_ops.zeros_like, [grid(2, 3)], np.zeros_like, modes=RUN_TIME, label="zeros", differentiable=()
    ),
    OpSample("Fill", array_ops.ones_like, [grid(2, 3)], np.ones_like, modes=RUN_TIME, label="ones", differentiable=()),
    OpSample("Fill", lambda: array_ops.zeros([40, 30]), [], lambda: np.zeros((40, 30), np.float32), label="many zeros"),
    *[
        OpSample("BroadcastTo", array_ops.broadcast_to, [x, shape], np.broadcast_to, sizes=(1,))
        for x, shape in [
            (grid(3, 1), ints(2, 3, 4)),
            (grid(), ints(2, 2)),
            (grid(2, 3), np.array([2, 3])),
            (grid(1, 3), ints(0, 3)),
            (WORDS, ints(2, 6)),
        ]
    ],
    *[
        OpSample("SumToShape", array_ops.sum_to_shape, [x, shape], _summed, sizes=(1,), tolerance=4)
        for _summed in [lambda x, shape: _sum_to(x, tuple(shape))]
        for x, shape in [
            (grid(2, 3, 4), ints(3, 1)),
            (grid(2, 3, 4), ints(4)),
            (grid(2, 3), np.zeros(0, INT)),
            (grid(2, 3), np.array([2, 3])),
            (grid(2, 3), ints(1, 3)),
            (grid(0, 3), ints(3)),
            (grid(), np.zeros(0, INT)),
        ]
    ],
    OpSample(
        "SumToShape",
        array_ops.sum_to_shape,
        [grid(120, 100, low=1), ints(100)],
        lambda x, shape: x.sum(0),
        dtypes=(dtypes.float32, dtypes.float64),
        sizes=(1,),
        differentiable=(),
        tolerance=1000,
        label="many",
    ),
    OpSample(
        "BroadcastArgs",
        array_ops.broadcast_dynamic_shape,
        [ints(3, 1, 2), ints(4, 1)],
        lambda x, y: ints(3, 4, 2),
        modes=("known", "unknown sizes"),
        data_dependent=True,
    ),
    *[
        OpSample("Select", array_ops.where, [c, x, y], lambda c, x, y: np.where(_whole(c, x), x, y))
        for c, x, y in [
            (grid(3, 4) > 0, grid(3, 4), grid(3, 4, seed=1)),
            (grid(3) > 0, grid(3, 4), grid(3, 4, seed=1)),
            (grid(3) > 0, grid(3), grid(3, seed=1)),
            (np.True_, grid(3, 4), grid(3, 4, seed=1)),
            (np.False_, grid(), grid(seed=1)),
            (grid(0, 2) > 0, grid(0, 2), grid(0, 2)),
            (grid(6) > 0, WORDS, WORDS[::-1].copy()),
        ]
    ],
    OpSample(
        "Select",
        array_ops.where,
        [grid(180, 100) > 0, grid(180, 100), grid(180, 100, seed=1)],
        np.where,
        differentiable=(),
        label="many",
    ),
    *[
        OpSample(
            "KeepWhere",
            lambda c, x, chosen=chosen: broadcast_ops.keep_where(c, x, chosen),
            [c, x],
            lambda c, x, chosen=chosen: np.where(_whole(c, x) == chosen, x, 0).astype(x.dtype),
        )
        for chosen in (True, False)
        for c, x in [
            (grid(3, 4) > 0, grid(3, 4)),
            (grid(3) > 0, grid(3, 4)),
            (np.True_, grid(3)),
            (np.False_, grid()),
            (grid(0, 2) > 0, grid(0, 2)),
        ]
    ],
    *[
        OpSample("Where", array_ops.where, [x], np.argwhere, data_dependent=True)
        for x in (grid(3, 4) > 0, grid(5) > 9, ints(0, 3, 0, -1))
    ],
]


def _sum_to(x, shape):
    extra = x.ndim - len(shape)
    axes = [i for i in range(x.ndim) if i < extra or (shape[i - extra] == 1)]
    return x.sum(tuple(axes), dtype=x.dtype).reshape(shape)


def _whole(condition, x):
    return condition.reshape(-1, *[1] * (x.ndim - 1)) if np.ndim(condition) == 1 else condition


# -- parts ---------------------------------------------------------------------------------------------

_KEYS = [
    (0,),
    (-1, slice(None), 2),
    (slice(1, None), Ellipsis, slice(None, None, -1)),
    (None, slice(0, 2), None, 1),
    (slice(5, 0, -2), slice(1, 1)),
    (Ellipsis, None),
    (2, 1, 0),
    (slice(-100, 100),),
]

PARTS = [
    *[
        OpSample("StridedSlice", lambda x, key=key: x[key], [grid(3, 2, 4)], lambda x, key=key: x[key], label=str(i))
        for i, key in enumerate(_KEYS)
    ],
    OpSample(
        "StridedSlice",
        lambda x, i, j: x[i, :j, ..., j:],
        [grid(3, 4, 5), INT(1), INT(2)],
        lambda x, i, j: x[i, :j, ..., j:],
        label="tensors",
        sizes=(1, 2),
    ),
    OpSample(
        "StridedSlice",
        lambda x, i, j: x[i : np.int64(3) : j],
        [grid(5), INT(0), np.int64(2)],
        lambda x, i, j: x[i:3:j],
        label="two index dtypes",
        sizes=(1, 2),
    ),
    OpSample("StridedSlice", lambda x: x[1], [WORDS], lambda x: np.array(b"be", object), label="strings"),
    OpSample(
        "StridedSlice",
        lambda x, begin, end, strides: array_ops.strided_slice(x, begin, end, strides, begin_mask=4, end_mask=1),
        [grid(4, 3, 5), ints(1, 0, 3), ints(0, 2, 5), ints(2, 1, 1)],
        lambda x, begin, end, strides: x[1::2, 0:2, :5],
        sizes=(1, 2, 3),
        label="masks",
        modes=("known", "unknown sizes", "unknown rank"),
    ),
    OpSample(
        "StridedSlice",
        lambda x: array_ops.strided_slice(
            x, [0, 0, 1], [0, 0, 0], ellipsis_mask=2, new_axis_mask=1, shrink_axis_mask=4
        ),
        [grid(2, 3, 4)],
        lambda x: x[None, ..., 1],
        label="more masks",
    ),
    OpSample(
        "StridedSliceGrad",
        lambda dy, shape, i: add_op(slice_ops.STRIDED_SLICE_GRAD, dy, shape, [i], key="$,::-1"),
        [grid(3), ints(2, 3), INT(1)],
        lambda dy, shape, i: np.stack([np.zeros_like(dy), dy[::-1]]),
        sizes=(1, 2),
    ),
    *[
        OpSample("Slice", array_ops.slice, [x, begin, size], _sliced, sizes=(1, 2))
        for _sliced in [lambda x, begin, size: x[tuple(map(_range_of, begin, size, x.shape))]]
        for x, begin, size in [
            (grid(3, 4), ints(1, 0), ints(2, -1)),
            (grid(3, 4), np.array([0, 4]), np.array([3, 0])),
            (grid(), np.zeros(0, INT), np.zeros(0, INT)),
            (WORDS, ints(2), ints(3)),
        ]
    ],
    OpSample(
        "SliceGrad",
        build_op(slice_ops.SLICE_GRAD),
        [grid(2, 2), ints(3, 4), ints(1, 0)],
        lambda dy, shape, begin: np.pad(dy, [(1, 0), (0, 2)]),
        sizes=(1, 2),
    ),
]


def _range_of(begin, size, whole):
    return slice(begin, whole if size == -1 else begin + size)


# -- joining and taking apart --------------------------------------------------------------------------

JOINING = [
    *[
        OpSample(
            "Pack",
            lambda *xs, axis: array_ops.stack(xs, axis),
            xs,
            lambda *xs, axis=axis: np.stack(xs, axis),
            {"axis": axis},
            label=str(axis),
        )
        for xs, axis in [
            ([grid(2, 3), grid(2, 3, seed=1)], 0),
            ([grid(2, 3), grid(2, 3, seed=1)], 1),
            ([grid(2, 3), grid(2, 3, seed=1)], -1),
            ([grid(), grid(seed=1), grid(seed=2)], 0),
            ([grid(0, 3)], -2),
            ([WORDS, WORDS], 1),
            ([np.array(b"a", object), np.array(b"b", object)], 0),
        ]
    ],
    *[
        OpSample(
            "Unpack",
            lambda x, axis, num: array_ops.unstack(x, num, axis),
            [x],
            lambda x, axis=axis: [np.array(part) for part in np.moveaxis(x, axis, 0)],
            {"axis": axis, "num": x.shape[axis]},
            label=str(axis),
        )
        for x, axis in [
            (grid(2, 3), 0),
            (grid(2, 3), 1),
            (grid(2, 3), -1),
            (grid(3), 0),
            (WORDS, 0),
            (grid(2, 0, 3), 2),
        ]
    ],
    *[
        OpSample(
            "ConcatV2",
            lambda *xs, axis: array_ops.concat(xs, axis),
            xs,
            lambda *xs, axis=axis: np.concatenate(xs, axis),
            {"axis": axis},
            label=str(axis),
        )
        for xs, axis in [
            ([grid(2, 3), grid(1, 3, seed=1)], 0),
            ([grid(2, 3), grid(2, 2, seed=1), grid(2, 1, seed=2)], -1),
            ([grid(0, 3), grid(1, 3)], 0),
            ([WORDS, WORDS[:2]], 0),
        ]
    ],
    *[
        OpSample(
            "Split",
            lambda x, axis, num: array_ops.split(x, num, axis),
            [x],
            lambda x, axis=axis, num=num: np.split(x, num, axis),
            {"axis": axis, "num": num},
            label=f"{num}-{axis}",
        )
        for x, num, axis in [
            (grid(4, 3), 2, 0),
            (grid(4, 3), 3, -1),
            (grid(4), 1, 0),
            (grid(0, 2), 2, 0),
            (WORDS, 3, 0),
        ]
    ],
    *[
        OpSample(
            "SplitV",
            lambda x, sizes, axis=axis, num=num: array_ops.split(x, sizes, axis, num=num),
            [x, np.array(sizes, INT)],
            lambda x, sizes, axis=axis, ends=ends: np.split(x, ends, axis),
            sizes=(1,),
            label=str(axis),
        )
        for x, sizes, ends, axis, num in [
            (grid(5, 2), [1, 4], [1], 0, 2),
            (grid(2, 5), [2, -1, 1], [2, 4], 1, 3),
            (grid(2, 5), [5], [], -1, 1),
            (WORDS, [0, 6], [0], 0, 2),
        ]
    ],
]

# -- axes that are known when a step runs --------------------------------------------------------------


def _gathered_back(dy: np.ndarray, indices: np.ndarray, axis: np.ndarray) -> np.ndarray:
    total = np.zeros((2, 4), dy.dtype)
    np.add.at(total, (slice(None), indices), dy)
    return total


LATE_AXES = [
    *[
        OpSample(
            "ConcatV2ByAxis",
            lambda x, y, axis: array_ops.concat([x, y], axis),
            [grid(2, 3), second, INT(axis)],
            lambda x, y, axis: np.concatenate([x, y], axis),
            data_dependent=True,
            label=str(axis),
        )
        for second, axis in [(grid(2, 2, seed=1), 1), (grid(4, 3, seed=1), -2)]
    ],
    *[
        OpSample(
            "SplitByAxis",
            lambda x, axis: array_ops.split(x, 2, axis),
            [grid(2, 4), INT(axis)],
            lambda x, axis: np.split(x, 2, axis),
            data_dependent=True,
            label=str(axis),
        )
        for axis in (0, -1)
    ],
    OpSample(
        "SplitVByAxis",
        lambda x, axis: array_ops.split(x, [1, 3], axis),
        [grid(2, 4), INT(1)],
        lambda x, axis: np.split(x, [1], axis),
        data_dependent=True,
    ),
    *[
        OpSample(
            "GatherV2ByAxis",
            lambda x, indices, axis: array_ops.gather(x, indices, axis=axis),
            [grid(3, 4), ints([2, 0], [1, 1]), INT(axis)],
            lambda x, indices, axis: np.take(x, indices, axis),
            data_dependent=True,
            label=str(axis),
        )
        for axis in (0, 1, -1)
    ],
    OpSample(
        "GatherGradByAxis",
        lambda dy, indices, axis: add_op(gather_ops.GATHER_GRAD, dy, indices, [2, 4], axis=axis, batch_dims=0),
        [grid(2, 3), ints(2, 0, 2), INT(1)],
        _gathered_back,
        tolerance=2,
    ),
    OpSample(
        "ReverseV2ByAxis",
        array_ops.reverse,
        [grid(2, 3, 4), ints(2, -3)],
        lambda x, axes: np.flip(x, tuple(axes)),
    ),
    OpSample(
        "RollByAxis",
        array_ops.roll,
        [grid(2, 3), ints(1, -1), ints(1, 0)],
        lambda x, shift, axes: np.roll(x, tuple(shift), tuple(axes)),
    ),
    OpSample("RollByAxis", array_ops.roll, [grid(2, 3), INT(1), INT(-1)], np.roll, label="scalar"),
    OpSample(
        "SwappedAxes",
        lambda x: add_op(shape_ops.SWAPPED_AXES, x),
        [grid(2, 3, 4)],
        lambda x: np.array([0, 2, 1], np.int32),
    ),
]

# -- bands of matrices ---------------------------------------------------------------------------------


def _diagonals(x: np.ndarray) -> np.ndarray:
    """Diagonals -1 to 1, the uppermost first, filled up with 7."""
    found = [np.diagonal(x, k, -2, -1) for k in (1, 0, -1)]
    longest = max(each.shape[-1] for each in found)
    fill = [
        np.pad(each, [(0, 0)] * (each.ndim - 1) + [(0, longest - each.shape[-1])], constant_values=7) for each in found
    ]
    return np.stack(fill, -2)


def _replaced(x: np.ndarray, diagonal: np.ndarray) -> np.ndarray:
    result, along = x.copy(), np.arange(3)
    result[..., along, along + 1] = diagonal
    return result


BANDS = [
    OpSample(
        "MatrixDiagV2",
        lambda x: band_ops.matrix_diag(x, k=1, padding_value=1),
        [grid(2, 3)],
        lambda x: np.stack([np.where(np.eye(4, k=1) > 0, np.diag(row, 1), 1) for row in x]),
    ),
    OpSample(
        "MatrixDiagPartV2",
        lambda x: band_ops.matrix_diag_part(x, k=(-1, 1), padding_value=7),
        [grid(2, 3, 4)],
        _diagonals,
    ),
    OpSample(
        "MatrixSetDiagV2",
        lambda x, diagonal: band_ops.matrix_set_diag(x, diagonal, k=1),
        [grid(2, 3, 4), grid(2, 3, seed=1)],
        _replaced,
    ),
]

SAMPLES = [*SHAPES, *_cast_rows(), *BROADCASTING, *PARTS, *JOINING, *LATE_AXES, *BANDS]

ERRORS = [
    OpError("Reshape", array_ops.reshape, [grid(2, 3), ints(4)], r"tensor with 6 elements to shape \[4\]"),
    OpError("Reshape", array_ops.reshape, [grid(2, 3), ints(-1, 4)], "evenly divisible by 4 but is 6"),
    OpError("Reshape", array_ops.reshape, [grid(2, 3), ints(-1, -1)], "at most one -1"),
    OpError("Reshape", array_ops.reshape, [grid(2, 3), ints([2, 3])], "must have rank 1"),
    OpError("Reshape", array_ops.reshape, [grid(2, 3), np.float64([2, 3])], "DataType float64 not in list of allowed"),
    OpError("Reshape", array_ops.reshape, [grid(2, 3), ints(4)], "is a tensor with 6 values", at_run=True),
    OpError("Reshape", array_ops.reshape, [grid(0, 3), ints(0, 2, -1)], "cannot infer the size", at_run=True),
    OpError("Reshape", array_ops.reshape, [grid(2, 3), ints(0, -1)], "evenly divisible by 0 but is 6"),
    OpError("Reshape", array_ops.reshape, [grid(2, 3), ints(-2, 3)], "at most one -1", at_run=True),
    OpError("Squeeze", lambda x: array_ops.squeeze(x, 1), [grid(1, 3)], "its size is not 1"),
    OpError("Squeeze", lambda x: array_ops.squeeze(x, 2), [grid(1, 3)], r"axis = 2 not in \[-2, 2\)"),
    OpError("Squeeze", lambda x: array_ops.squeeze(x, 1), [grid(1, 3)], "Can not squeeze dim", at_run=True),
    OpError("ExpandDims", array_ops.expand_dims, [grid(2), INT(3)], r"axis = 3 not in \[-2, 2\)"),
    OpError("ExpandDims", array_ops.expand_dims, [grid(2), INT(3)], "Tried to expand dim index 3", at_run=True),
    OpError("Transpose", array_ops.transpose, [grid(2, 3), ints(0, 0)], "does not permute 2 dimensions"),
    OpError("Transpose", array_ops.transpose, [grid(2, 3), ints(0, 1, 2)], "incompatible"),
    OpError("Transpose", array_ops.transpose, [grid(2, 3), ints(0, 0)], "does not permute", at_run=True),
    OpError("InvertPermutation", array_ops.invert_permutation, [ints(0, 0)], "is duplicated in the input", at_run=True),
    OpError("InvertPermutation", array_ops.invert_permutation, [ints([0, 1])], "incompatible"),
    OpError("Fill", array_ops.fill, [ints(-1, 2), grid()], "sizes cannot be negative"),
    OpError("Fill", array_ops.fill, [ints(2), grid(2)], "must have rank 0"),
    OpError("Fill", array_ops.fill, [ints(-1, 2), grid()], "cannot make a tensor of shape", at_run=True),
    OpError("BroadcastTo", array_ops.broadcast_to, [grid(2), ints(3)], "Incompatible shapes|does not broadcast"),
    OpError("BroadcastTo", array_ops.broadcast_to, [grid(2, 3), ints(3)], "does not broadcast"),
    OpError("BroadcastTo", array_ops.broadcast_to, [grid(1), ints(-3)], "sizes cannot be negative"),
    OpError("BroadcastTo", array_ops.broadcast_to, [grid(2), ints(3)], "does not broadcast", at_run=True),
    OpError("SumToShape", array_ops.sum_to_shape, [grid(2), ints(3)], "Incompatible shapes"),
    OpError("SumToShape", array_ops.sum_to_shape, [grid(2), ints(3)], "does not broadcast", at_run=True),
    OpError("SumToShape", array_ops.sum_to_shape, [grid(2), ints(1, 2)], "does not broadcast", at_run=True),
    OpError("BroadcastArgs", array_ops.broadcast_dynamic_shape, [ints(2), ints(3)], "Incompatible shapes"),
    OpError("BroadcastArgs", array_ops.broadcast_dynamic_shape, [ints(2), ints(3)], "Incompatible shapes", at_run=True),
    OpError("Select", array_ops.where, [np.array([True]), grid(2), grid(3)], "incompatible"),
    OpError("Select", array_ops.where, [np.array([[True]]), grid(2, 3), grid(2, 3)], "incompatible"),
    OpError("Select", array_ops.where, [np.array([True, False]), grid(), grid()], "does not fit"),
    OpError("Select", array_ops.where, [np.array([True]), grid(2), grid(2)], "must agree", at_run=True),
    OpError("Select", array_ops.where, [np.array([True]), grid(2), grid(3)], "must agree", at_run=True),
    OpError("Select", array_ops.where, [np.array([[True]]), grid(2, 3), grid(2, 3)], "must agree", at_run=True),
    OpError("Select", array_ops.where, [np.array([[True]]), grid(3), grid(3)], "must agree", at_run=True),
    OpError("StridedSlice", lambda x: x[2], [grid(2, 3)], "slice index 2 of a dimension of size 2 out of bounds"),
    OpError("StridedSlice", lambda x: x[..., -4], [grid(2, 3)], "slice index -4 of .* out of bounds"),
    OpError("StridedSlice", lambda x: x[0, 0, 0], [grid(2, 3)], "indexes 3 dimensions"),
    OpError("StridedSlice", lambda x: x[..., 0, ...], [grid(2, 3)], "Multiple ellipses"),
    OpError("StridedSlice", lambda x: x[::0], [grid(2, 3)], "cannot have step 0"),
    OpError("StridedSlice", lambda x, i: x[i], [grid(2, 3), ints(0, 1)], "Only integers, slices"),
    OpError("StridedSlice", lambda x, i: x[i], [grid(2, 3), grid()], "Only integers, slices"),
    OpError("StridedSlice", lambda x, i: x[:, i], [grid(2, 3), INT(3)], r"cannot take \[:, 3\]", at_run=True),
    OpError("StridedSlice", lambda x: x[0, 0, 0], [grid(2, 3)], "cannot take", at_run=True),
    OpError("StridedSlice", lambda x, i: x[::i], [grid(2, 3), INT(0)], "cannot take", at_run=True),
    OpError("Slice", array_ops.slice, [grid(3), ints(2), ints(2)], "reaches outside"),
    OpError("Slice", array_ops.slice, [grid(3), ints(4), ints(-1)], "reaches outside"),
    OpError("Slice", array_ops.slice, [grid(3), ints(0), ints(-2)], "reaches outside"),
    OpError("Slice", array_ops.slice, [grid(3), ints(0, 0), ints(1, 1)], "2 entries for 1 dimensions"),
    OpError("Slice", array_ops.slice, [grid(3), ints(2), ints(2)], "reaches outside", at_run=True),
    OpError("Slice", array_ops.slice, [grid(3), ints(0, 0), ints(1, 1)], "reaches outside", at_run=True),
    OpError("Pack", lambda x, y: array_ops.stack([x, y]), [grid(2), grid(3)], "incompatible"),
    OpError("Pack", lambda x: array_ops.stack([x], 2), [grid(2)], r"axis = 2 not in \[-2, 2\)"),
    OpError("Pack", lambda x, y: array_ops.stack([x, y]), [grid(2), grid(3)], "cannot stack", at_run=True),
    OpError("Unpack", lambda x: array_ops.unstack(x, 3), [grid(2)], "a dimension of size 2 into 3 tensors"),
    OpError("Unpack", lambda x: array_ops.unstack(x, 3), [grid(2)], "cannot unstack", at_run=True),
    OpError("ConcatV2", lambda x, y: array_ops.concat([x, y], 0), [grid(2, 2), grid(2, 3)], "incompatible"),
    OpError("ConcatV2", lambda x, y: array_ops.concat([x, y], 0), [grid(2, 2), grid(2)], "incompatible"),
    OpError("ConcatV2", lambda x, y: array_ops.concat([x, y], 0), [grid(), grid()], "scalars cannot be concatenated"),
    OpError("ConcatV2", lambda x, y: array_ops.concat([x, y], 0), [grid(2, 2), grid(2)], "concatenate", at_run=True),
    OpError("Split", lambda x: array_ops.split(x, 2), [grid(3)], "cannot be split into 2 equal parts"),
    OpError("Split", lambda x: array_ops.split(x, 0), [grid(3)], "cannot split into 0 parts"),
    OpError("Split", lambda x: array_ops.split(x, 2), [grid(3)], "cannot split dimension 0", at_run=True),
    OpError("SplitV", lambda x: array_ops.split(x, [1, 1]), [grid(3)], r"cannot be split into sizes \[1, 1\]"),
    OpError("SplitV", lambda x: array_ops.split(x, [4, -1]), [grid(3)], "cannot be split into sizes"),
    OpError("SplitV", lambda x: array_ops.split(x, [1, 1]), [grid(3)], "cannot split dimension 0", at_run=True),
    OpError("ConcatV2ByAxis", lambda x, a: array_ops.concat([x, x], a), [grid(2, 3), INT(2)], "axis 2", at_run=True),
    OpError("SplitByAxis", lambda x, a: array_ops.split(x, 2, a), [grid(2, 4), INT(2)], "axis 2", at_run=True),
    OpError("SplitVByAxis", lambda x, a: array_ops.split(x, [1, 1], a), [grid(2, 4), INT(1)], "split", at_run=True),
    OpError(
        "GatherV2ByAxis", lambda x, a: array_ops.gather(x, [0], axis=a), [grid(2, 4), INT(2)], "axis 2", at_run=True
    ),
    OpError("ReverseV2ByAxis", array_ops.reverse, [grid(2, 4), ints(1, -1)], "specified more than once", at_run=True),
    OpError("RollByAxis", lambda x, a: array_ops.roll(x, 1, a), [grid(2, 4), INT(3)], "axis 3", at_run=True),
    OpError("SwappedAxes", lambda x: add_op(shape_ops.SWAPPED_AXES, x), [grid(2)], "expected matrices", at_run=True),
    OpError(
        "MatrixDiagV2", lambda x: band_ops.matrix_diag(x, num_rows=4, num_cols=5), [grid(3)], "are not those of 4 x 5"
    ),
    OpError("MatrixDiagPartV2", lambda x: band_ops.matrix_diag_part(x, k=3), [grid(2, 3)], "diagonal 3 is outside"),
    OpError("MatrixDiagPartV2", lambda x: band_ops.matrix_diag_part(x, k=3), [grid(2, 3)], "diagonal 3", at_run=True),
    OpError("MatrixSetDiagV2", lambda x, d: band_ops.matrix_set_diag(x, d, k=1), [grid(2, 3), grid(3)], "incompatible"),
]
