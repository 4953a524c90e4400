"""Operations that select, sort, repeat and make elements."""

from __future__ import annotations

import numpy as np

from tests.support.op_samples import OpError, OpSample, grid
from tests.support.op_samples.array_samples import INT, WORDS, build_op, ints
from tfray.framework import dtypes
from tfray.framework.convert import add_op
from tfray.ops.arrays import array_ops, gather_ops, layout_ops, partition_ops

# -- by index ------------------------------------------------------------------------------------------

GATHERING = [
    *[
        OpSample(
            "GatherV2",
            array_ops.gather,
            [x, indices],
            lambda x, indices, axis=axis: np.take(x, indices, axis),
            {"axis": axis},
            label=str(axis),
        )
        for x, indices, axis in [
            (grid(5, 3), ints(4, 0, 4), 0),
            (grid(5, 3), np.array([[1, 2], [0, 0]]), 0),
            (grid(5, 3), INT(2), 0),
            (grid(2, 5, 3), ints(4, 0, 4), 1),
            (grid(2, 5, 3), ints(2, 0), -1),
            (grid(2, 3), np.zeros(0, INT), 1),
            (grid(0, 3), np.zeros(0, INT), 0),
            (WORDS, ints(3, 1), 0),
        ]
    ],
    *[
        OpSample(
            "GatherV2",
            array_ops.gather,
            [x, indices],
            lambda x, indices, axis=axis: np.stack([np.take(p, i, axis - 1) for p, i in zip(x, indices, strict=True)]),
            {"axis": axis, "batch_dims": 1},
            label=f"batch-{axis}",
        )
        for x, indices, axis in [
            (grid(2, 5, 3), ints([4, 0, 4], [1, 1, 2]), 1),
            (grid(2, 3, 5), ints([4, 0], [1, 1]), 2),
            (grid(2, 5), np.array([[[1], [0]], [[4], [4]]]), 1),
            (grid(2, 5), ints(3, 1), 1),
        ]
    ],
    OpSample(
        "GatherV2",
        array_ops.batch_gather,
        [grid(2, 3), ints([0, 2, 1, 1], [2, 2, 0, 1])],
        lambda x, indices: np.take_along_axis(x, indices, 1),
        modes=("known", "unknown sizes"),
        label="batch_gather",
    ),
    OpSample(
        "GatherGrad",
        build_op(gather_ops.GATHER_GRAD, axis=1, batch_dims=0),
        [grid(2, 3), ints(2, 0, 2), ints(2, 4)],
        lambda dy, indices, shape: np.stack([dy[:, 1], 0 * dy[:, 1], dy[:, 0] + dy[:, 2], 0 * dy[:, 1]], 1),
        sizes=(2,),
        tolerance=2,
    ),
    *[
        OpSample("GatherNd", array_ops.gather_nd, [x, indices], lambda x, i: x[tuple(np.moveaxis(i, -1, 0))])
        for x, indices in [
            (grid(3, 4), ints([0, 1], [2, 3], [2, 3])),
            (grid(3, 4, 2), ints([0, 1], [2, 3])),
            (grid(3, 4), np.array([[[2]], [[0]]])),
            (grid(3, 4), ints(1, 2)),
            (grid(3, 4), np.zeros((0, 2), INT)),
            (WORDS.reshape(2, 3), ints([1, 2], [0, 0])),
        ]
    ],
    OpSample(
        "GatherNd", array_ops.gather_nd, [grid(2, 3), np.zeros((2, 0), INT)], lambda x, i: np.stack([x, x]), label="all"
    ),
    *[
        OpSample("ScatterNd", array_ops.scatter_nd, [indices, x, shape], _scattered, sizes=(2,), tolerance=4)
        for _scattered in [lambda indices, x, shape: _add_at(indices, x, shape)]
        for indices, x, shape in [
            (ints([4], [0], [4]), grid(3), ints(5)),
            (ints([4], [0], [4]), grid(3, 2), np.array([5, 2])),
            (ints([0, 1], [2, 3]), grid(2), ints(3, 4)),
            (np.array([[[1]], [[1]]]), grid(2, 1, 3), ints(2, 3)),
            (ints(1), grid(), ints(3)),
            (np.zeros((0, 1), INT), grid(0, 2), ints(2, 2)),
        ]
    ],
    OpSample(
        "ScatterNd",
        array_ops.scatter_nd,
        [np.arange(300)[:, None] % 7, grid(300, 120), ints(9, 120)],
        lambda indices, x, shape: _add_at(indices, x, shape),
        dtypes=(dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64, dtypes.int32, dtypes.complex64),
        sizes=(2,),
        differentiable=(),
        tolerance=100,
        label="many",
    ),
    *[
        OpSample(
            "GatherV2",
            lambda x, mask, axis: array_ops.boolean_mask(x, mask, axis=axis),
            [x, mask],
            lambda x, mask, axis=axis: x[(slice(None),) * (axis or 0) + (mask,)],
            {"axis": axis},
            modes=("known", "unknown sizes"),
            data_dependent=True,
            label=f"mask-{axis}",
        )
        for x, mask, axis in [
            (grid(4), np.array([True, False, True, True]), None),
            (grid(2, 3, 2), grid(2, 3) > 0, None),
            (grid(2, 3, 2), np.array([True, False, True]), 1),
            (grid(2, 3), np.zeros((2, 3), bool), 0),
            (WORDS, grid(6) > 0, 0),
        ]
    ],
]


def _add_at(indices, x, shape):
    total = np.zeros(shape, x.dtype)
    np.add.at(total, tuple(np.moveaxis(indices, -1, 0)), x)
    return total


# -- groups --------------------------------------------------------------------------------------------


def _first_occurrences(x):
    values = list(dict.fromkeys(x.tolist()))
    places = ints(*map(values.index, x.tolist())) if values else np.zeros(0, INT)
    return [np.array(values, x.dtype), places, np.bincount(places, minlength=len(values)).astype(INT)]


_PARTITIONS = ints([0, 2], [2, 2])

GROUPS = [
    *[
        OpSample("UniqueWithCounts", array_ops.unique_with_counts, [x], _first_occurrences, data_dependent=True)
        for x in (
            np.array([3.0, 1.0, 3.0, 2.0, 1.0, 3.0]),
            grid(0),
            WORDS,
            WORDS[:0],
            np.array([7, -(2**62), 7, 2**62, 7]),
            np.array([2**64 - 1, 2**64 - 2, 2**64 - 1], np.uint64),
            np.array([127, -128, 0, -128, 127] * 8, np.int8),
        )
    ],
    OpSample(
        "UniqueWithCounts",
        array_ops.unique,
        [np.array([3, 1, 3])],
        lambda x: [np.array([3, 1]), np.array([0, 1, 0])],
        {"out_idx": "int64"},
        data_dependent=True,
        label="unique",
    ),
    *[
        OpSample(
            "ListDiff",
            array_ops.setdiff1d,
            [x, y],
            lambda x, y: [x[~np.isin(x, y)], np.flatnonzero(~np.isin(x, y)).astype(INT)],
            data_dependent=True,
        )
        for x, y in [(np.array([5, 2, 5, 1]), np.array([1, 9])), (WORDS, WORDS[1:3]), (np.array([1]), np.zeros(0, int))]
    ],
    *[
        OpSample(
            "DynamicPartition",
            array_ops.dynamic_partition,
            [x, places],
            lambda x, places: [x[places == i] for i in range(3)],
            {"num_partitions": 3},
            data_dependent=True,
        )
        for x, places in [
            (grid(2, 2), _PARTITIONS),
            (grid(2, 2, 3), _PARTITIONS),
            (grid(0, 2), ints()),
            (WORDS, ints(*[1, 0] * 3)),
        ]
    ],
    OpSample(
        "DynamicPartitionGrad",
        lambda places, *parts: add_op(partition_ops.DYNAMIC_PARTITION_GRAD, places, parts),
        [ints(1, 0, 1), grid(1, 2), grid(2, 2, seed=1)],
        lambda places, first, second: np.stack([second[0], first[0], second[1]]),
    ),
    *[
        OpSample(
            "DynamicStitch",
            lambda i, j, x, y: array_ops.dynamic_stitch([i, j], [x, y]),
            [i, j, x, y],
            lambda i, j, x, y, n=n: _stitched(n, (i, j), (x, y)),
            modes=("known", "unknown sizes", "unknown rank"),
            data_dependent=True,
        )
        for i, j, x, y, n in [
            (ints(0, 3), ints([2, 1]), grid(2, 2), grid(1, 2, 2, seed=1), 4),
            (INT(1), ints(0, 3), grid(), grid(2, seed=1), 4),
            (ints(0, 1), np.zeros(0, INT), WORDS[:2], WORDS[:0], 2),
        ]
    ],
    OpSample(
        "DynamicStitch",
        lambda x, y: array_ops.dynamic_stitch([[0, 1], [1, 2]], [x, y]),
        [grid(2), grid(2, seed=1)],
        lambda x, y: np.array([x[0], y[0], y[1]]),
        differentiable=(1,),
        label="the last wins",
    ),
]


def _stitched(count, places, parts):
    rest = parts[0].shape[places[0].ndim :]
    merged = np.zeros((count, *rest), parts[0].dtype)
    for place, part in zip(places, parts, strict=True):
        merged[place.reshape(-1)] = part.reshape(-1, *rest)
    return merged


# -- layout --------------------------------------------------------------------------------------------


def _reversed_rows(x, lengths):
    rows = x.copy()
    for row, length in zip(rows, lengths, strict=True):
        row[:length] = row[:length][::-1].copy()
    return rows


def _space_to_depth(x):
    return np.concatenate([x[:, i::2, j::2] for i in range(2) for j in range(2)], -1)


def _to_nchw(x):
    return x.transpose(0, 3, 1, 2)


LAYOUT = [
    *[
        OpSample("Tile", array_ops.tile, [x, repeats], lambda x, repeats: np.tile(x, repeats), sizes=(1,))
        for x, repeats in [
            (grid(2, 3), ints(2, 1)),
            (grid(2, 3), np.array([1, 3])),
            (grid(2, 3), ints(0, 2)),
            (grid(), np.zeros(0, INT)),
            (grid(0, 2), ints(2, 2)),
            (WORDS, ints(2)),
        ]
    ],
    OpSample(
        "TileGrad",
        build_op(layout_ops.TILE_GRAD),
        [grid(2, 6), ints(1, 2), ints(2, 3)],
        lambda dy, repeats, shape: dy[:, :3] + dy[:, 3:],
        sizes=(1, 2),
        tolerance=2,
    ),
    *[
        OpSample(
            "PadV2",
            lambda x, paddings, fill: array_ops.pad(x, paddings, constant_values=fill),
            [x, paddings, fill],
            lambda x, paddings, fill: np.pad(x, paddings, constant_values=fill),
            sizes=(1,),
            differentiable=(0,),
        )
        for x, paddings, fill in [
            (grid(2, 3), ints([1, 2], [0, 3]), np.float64(7)),
            (grid(3), np.array([[0, 0]]), np.float64(7)),
            (grid(0, 2), ints([1, 1], [0, 0]), np.float64(7)),
        ]
    ],
    *[
        OpSample(
            "PadV2",
            array_ops.pad,
            [x, ints([1, 1])],
            lambda x, paddings, fill=fill: np.pad(x, paddings, constant_values=fill),
            sizes=(1,),
        )
        for x, fill in [(grid(2), 0), (WORDS, b""), (np.array([True, True]), False)]
    ],
    *[
        OpSample(
            "MirrorPad",
            lambda x, paddings, mode: array_ops.pad(x, paddings, mode),
            [grid(3, 4), paddings],
            lambda x, paddings, mode=mode: np.pad(x, paddings, mode),
            {"mode": mode},
            sizes=(1,),
            label=mode,
        )
        for mode, paddings in [
            ("reflect", ints([1, 2], [3, 0])),
            ("symmetric", ints([3, 2], [0, 4])),
            ("reflect", ints([0, 0], [0, 0])),
        ]
    ],
    *[
        OpSample(
            "MirrorPadGrad",
            build_op(layout_ops.MIRROR_PAD_GRAD, mode=mode),
            [grid(6), ints([2, 1])],
            lambda dy, paddings, folded=folded: folded(*dy),
            tolerance=2,
            sizes=(1,),
            label=mode,
        )
        for mode, folded in [
            ("REFLECT", lambda a, b, c, d, e, f: np.array([c, b + d + f, a + e])),
            ("SYMMETRIC", lambda a, b, c, d, e, f: np.array([b + c, a + d, e + f])),
        ]
    ],
    *[
        OpSample(
            "ReverseV2", array_ops.reverse, [x], lambda x, axis=axis: np.flip(x, axis), {"axis": axis}, label=str(axis)
        )
        for x, axis in [(grid(2, 3), [0]), (grid(2, 3), (-1, 0)), (grid(2, 3), ()), (grid(0, 3), [1]), (WORDS, [0])]
    ],
    OpSample(
        "ReverseSequence",
        array_ops.reverse_sequence,
        [grid(2, 4, 3), np.array([3, 0])],
        _reversed_rows,
        {"seq_axis": 1},
    ),
    OpSample(
        "ReverseSequence",
        array_ops.reverse_sequence,
        [grid(4, 3, 2), ints(1, 4, 2)],
        lambda x, lengths: _reversed_rows(x.swapaxes(0, 1), lengths).swapaxes(0, 1),
        {"seq_dim": 0, "batch_dim": 1},
        label="time first",
    ),
    *[
        OpSample(
            "Roll",
            array_ops.roll,
            [x, shift],
            lambda x, shift, axis=axis: np.roll(x, tuple(np.atleast_1d(shift)), axis),
            {"axis": axis},
            sizes=(1,),
            label=str(axis),
        )
        for x, shift, axis in [
            (grid(2, 3), INT(1), (1,)),
            (grid(2, 3), np.array([-1, 5]), (0, 1)),
            (grid(3), ints(1, 1), (0, 0)),
            (WORDS, INT(-2), (0,)),
        ]
    ],
    OpSample("SpaceToDepth", array_ops.space_to_depth, [grid(2, 4, 6, 3)], _space_to_depth, {"block_size": 2}),
    OpSample(
        "SpaceToDepth",
        array_ops.space_to_depth,
        [grid(2, 3, 4, 6)],
        lambda x: _to_nchw(_space_to_depth(x.transpose(0, 2, 3, 1))),
        {"block_size": 2, "data_format": "NCHW"},
        label="NCHW",
    ),
    OpSample(
        "DepthToSpace",
        lambda x: array_ops.depth_to_space(array_ops.space_to_depth(x, 3), 3),
        [grid(2, 6, 3, 9)],
        lambda x: x,
        label="there and back",
    ),
    OpSample(
        "DepthToSpace",
        array_ops.depth_to_space,
        [grid(1, 8, 1, 2)],
        lambda x: x.reshape(2, 2, 2, 2).transpose(2, 0, 3, 1).reshape(1, 2, 2, 4),
        {"block_size": 2, "data_format": "NCHW"},
        label="NCHW",
    ),
    OpSample(
        "SpaceToBatchND",
        array_ops.space_to_batch_nd,
        [grid(2, 3, 5, 2), ints(2, 3), ints([0, 1], [1, 0])],
        lambda x, sides, paddings: np.concatenate(
            [np.pad(x, [(0, 0), (0, 1), (1, 0), (0, 0)])[:, i::2, j::3] for i in range(2) for j in range(3)]
        ),
        sizes=(1, 2),
    ),
    OpSample(
        "SpaceToBatchND",
        array_ops.space_to_batch,
        [grid(1, 4, 4, 1), np.zeros((2, 2), INT)],
        lambda x, paddings: np.concatenate([x[:, i::2, j::2] for i in range(2) for j in range(2)]),
        {"block_size": 2},
        sizes=(1,),
        label="square",
    ),
    OpSample(
        "BatchToSpaceND",
        lambda x, sides, crops: array_ops.batch_to_space_nd(array_ops.space_to_batch_nd(x, sides, crops), sides, crops),
        [grid(2, 3, 5, 2), ints(2, 3), ints([0, 1], [1, 0])],
        lambda x, sides, crops: x,
        sizes=(1, 2),
    ),
    OpSample(
        "BatchToSpaceND",
        array_ops.batch_to_space,
        [grid(4, 1, 2, 1), ints([0, 1], [1, 0])],
        lambda x, crops: np.array([x[1, 0, 0], x[0, 0, 1], x[1, 0, 1]]).reshape(1, 1, 3, 1),
        {"block_size": 2},
        sizes=(1,),
        label="square",
    ),
]

# -- construction --------------------------------------------------------------------------------------


def _codes(indices, depth, on=1.0, off=0.0, axis=-1):
    codes = np.where(np.asarray(indices)[..., None] == np.arange(depth), on, off)
    return np.moveaxis(codes, -1, axis)


CONSTRUCTION = [
    *[
        OpSample("Range", array_ops.range, bounds, np.arange, sizes=(0, 1, 2))
        for bounds in [
            ints(2, 11, 3),
            ints(5, 0, -2),
            ints(3, 3, 1),
            ints(3, 3, 1),
            np.array([0, 2**40, 2**38]),
        ]
    ],
    OpSample(
        "Range",
        array_ops.range,
        [np.float64(2), np.float64(0.5), np.float64(-0.5)],
        lambda *bounds: np.arange(*map(np.float64, bounds)),
        dtypes=dtypes.FLOATS,
        sizes=(0, 1, 2),
    ),
    OpSample("Range", lambda: array_ops.range(4), [], lambda: np.arange(4, dtype=INT), label="limit"),
    OpSample("Range", lambda: array_ops.range(0, 1, 0.5), [], lambda: np.float32([0, 0.5]), label="mixed"),
    OpSample("Range", lambda: array_ops.range(3, dtype="int64"), [], lambda: np.arange(3), label="int64"),
    *[
        OpSample("LinSpace", array_ops.linspace, [start, stop, INT(num)], np.linspace, sizes=(2,), differentiable=())
        for start, stop, num in [(np.float64(1), np.float64(3), 5), (grid(), grid(seed=1), 2), (grid(), grid(), 1)]
    ],
    *[
        OpSample(
            "OneHot",
            array_ops.one_hot,
            [indices, INT(4)],
            lambda indices, depth, axis=axis: np.float32(_codes(indices, depth, axis=-1 if axis is None else axis)),
            {"axis": axis},
            sizes=(1,),
            label=str(axis),
        )
        for indices, axis in [
            (ints(1, 3, 0), None),
            (ints(1, -1, 4), None),
            (ints([1, 2, 3], [0, 9, 2]), 0),
            (ints([1, 2, 3], [0, 9, 2]), 1),
            (np.int64(2), None),
            (np.zeros((0, 2), INT), None),
            (np.array([1, 2], np.uint8), None),
        ]
    ],
    OpSample(
        "OneHot",
        array_ops.one_hot,
        [ints(1, 0), INT(3), np.float64(5), np.float64(-1)],
        lambda indices, depth, on, off: _codes(indices, depth, on, off).astype(np.asarray(on).dtype),
        sizes=(1,),
        differentiable=(),
        label="values",
    ),
    OpSample(
        "OneHot",
        lambda indices: array_ops.one_hot(indices, 3, dtype="bool"),
        [ints(1, 0)],
        lambda indices: _codes(indices, 3, True, False),
        label="bool",
    ),
    *[
        OpSample(
            "OneHot",
            lambda rows, columns=columns, batch=batch: array_ops.eye(rows, columns, batch, "float64"),
            [INT(3)],
            lambda rows, columns=columns, batch=batch: np.broadcast_to(
                np.eye(rows, columns), (*(batch or ()), rows, rows if columns is None else columns)
            ),
            sizes=(0,),
            label=f"eye-{columns}-{batch}",
        )
        for columns, batch in [(None, None), (2, None), (4, [2]), (0, [2, 1])]
    ],
    OpSample(
        "SequenceMask",
        array_ops.sequence_mask,
        [ints([1, 0], [4, 2]), INT(3)],
        lambda lengths, longest: np.arange(3) < lengths[..., None],
        sizes=(1,),
    ),
    OpSample(
        "SequenceMask",
        array_ops.sequence_mask,
        [np.array([1, 4, 2])],
        lambda lengths: (np.arange(4) < lengths[:, None]).astype(np.float16),
        {"dtype": "float16"},
        data_dependent=True,
        label="longest",
    ),
    *[
        OpSample(
            "BroadcastTo",
            lambda *xs, indexing: array_ops.meshgrid(*xs, indexing=indexing),
            [grid(2), grid(3, seed=1), grid(1)],
            lambda *xs, indexing=indexing: np.meshgrid(*xs, indexing=indexing),
            {"indexing": indexing},
            label=f"meshgrid-{indexing}",
        )
        for indexing in ("xy", "ij")
    ],
]

# -- diagonals -----------------------------------------------------------------------------------------


def _with_diagonal(x, diagonal):
    count = diagonal.shape[-1]
    x = x.copy()
    x[..., np.arange(count), np.arange(count)] = diagonal
    return x


DIAGONALS = [
    *[
        OpSample("Diag", array_ops.diag, [x], lambda x: np.diag(x.ravel()).reshape(x.shape * 2))
        for x in (grid(3), grid(2, 3), grid(0), np.array([True, False]))
    ],
    *[
        OpSample("DiagPart", array_ops.diag_part, [x], reference)
        for x, reference in [
            (grid(3, 3), np.diag),
            (grid(2, 3, 2, 3), lambda x: np.einsum("ijij->ij", x)),
            (grid(0, 0), np.diag),
        ]
    ],
    *[
        OpSample(
            "MatrixDiag",
            array_ops.matrix_diag,
            [x],
            lambda x: _with_diagonal(np.zeros((*x.shape, x.shape[-1]), x.dtype), x),
        )
        for x in (grid(3), grid(2, 3), grid(2, 0))
    ],
    *[
        OpSample("MatrixDiagPart", array_ops.matrix_diag_part, [x], lambda x: np.diagonal(x, axis1=-2, axis2=-1))
        for x in (grid(3, 3), grid(2, 2, 3), grid(4, 2), grid(0, 2))
    ],
    *[
        OpSample("MatrixSetDiag", array_ops.matrix_set_diag, [x, diagonal], _with_diagonal)
        for x, diagonal in [
            (grid(3, 3), grid(3, seed=1)),
            (grid(2, 2, 3), grid(2, 2, seed=1)),
            (grid(4, 2), grid(2, seed=1)),
        ]
    ],
    *[
        OpSample(
            "MatrixBandPart",
            array_ops.matrix_band_part,
            [grid(2, 4, 5), np.array(lower), np.array(upper)],
            lambda x, lower, upper: np.where(_in_band(4, 5, lower, upper), x, 0),
            sizes=(1, 2),
            label=f"{lower}-{upper}",
        )
        for lower, upper in [(1, 0), (-1, 0), (0, -1), (-1, -1), (2, 3)]
    ],
]


def _in_band(rows, columns, lower, upper):
    distance = np.arange(columns) - np.arange(rows)[:, None]
    return ((lower < 0) | (distance >= -lower)) & ((upper < 0) | (distance <= upper))


SAMPLES = [*GATHERING, *GROUPS, *LAYOUT, *CONSTRUCTION, *DIAGONALS]

ERRORS = [
    OpError("GatherV2", lambda x, i: array_ops.gather(x, i, axis=2), [grid(2, 3), ints(0)], "axis = 2 not in"),
    OpError("GatherV2", lambda x, i: array_ops.gather(x, i, batch_dims=1), [grid(2, 3), ints([0])], "incompatible"),
    OpError("GatherV2", array_ops.gather, [grid(2, 3), ints(0, 2)], r"= 2 is not in \[0, 2\)", at_run=True),
    OpError("GatherV2", array_ops.gather, [grid(2, 3), ints(0, -1)], r"= -1 is not in \[0, 2\)", at_run=True),
    OpError(
        "GatherV2",
        lambda x, i: array_ops.gather(x, i, axis=1, batch_dims=1),
        [grid(1, 3), ints([0, 3])],
        r"= 3 is not in \[0, 3\)",
        at_run=True,
    ),
    OpError("GatherNd", array_ops.gather_nd, [grid(2), ints([0, 0])], "2 coordinates do not fit"),
    OpError("GatherNd", array_ops.gather_nd, [grid(2), INT(0)], "at least one dimension"),
    OpError(
        "GatherNd",
        array_ops.gather_nd,
        [grid(2, 3), ints([1, 3])],
        r"\[1, 3\] does not index into param shape",
        at_run=True,
    ),
    OpError("ScatterNd", array_ops.scatter_nd, [ints([1]), grid(2), ints(3)], "incompatible"),
    OpError("ScatterNd", array_ops.scatter_nd, [ints([0, 0]), grid(1), ints(3)], "2 coordinates do not fit"),
    OpError("ScatterNd", array_ops.scatter_nd, [ints([3]), grid(1), ints(3)], "does not index into", at_run=True),
    OpError("ScatterNd", array_ops.scatter_nd, [ints([1]), grid(2), ints(3)], "do not fit indices", at_run=True),
    OpError("UniqueWithCounts", array_ops.unique, [grid(2, 2)], "incompatible"),
    OpError("UniqueWithCounts", array_ops.unique, [grid(2, 2)], "expected a vector", at_run=True),
    OpError("ListDiff", array_ops.setdiff1d, [grid(2, 2), grid(2)], "must have rank 1"),
    OpError("ListDiff", array_ops.setdiff1d, [grid(2, 2), grid(2)], "expected a vector", at_run=True),
    OpError(
        "DynamicPartition", lambda x, p: array_ops.dynamic_partition(x, p, 2), [grid(3), ints(0, 1)], "incompatible"
    ),
    OpError("DynamicPartition", lambda x, p: array_ops.dynamic_partition(x, p, 0), [grid(2), ints(0, 1)], "at least 1"),
    OpError(
        "DynamicPartition",
        lambda x, p: array_ops.dynamic_partition(x, p, 2),
        [grid(2), ints(0, 2)],
        "= 2 is not in",
        at_run=True,
    ),
    OpError(
        "DynamicPartition",
        lambda x, p: array_ops.dynamic_partition(x, p, 2),
        [grid(3), ints(0, 1)],
        "does not begin with",
        at_run=True,
    ),
    OpError("DynamicStitch", lambda i, x: array_ops.dynamic_stitch([i], [x]), [ints(0, 1), grid(3)], "incompatible"),
    OpError(
        "DynamicStitch",
        lambda i, x: array_ops.dynamic_stitch([i], [x]),
        [ints(0, 1), grid(3)],
        "does not fit",
        at_run=True,
    ),
    OpError(
        "DynamicStitch",
        lambda i, x: array_ops.dynamic_stitch([i], [x]),
        [ints(0, -1), grid(2)],
        "= -1 is not in",
        at_run=True,
    ),
    OpError("Tile", array_ops.tile, [grid(2), ints(1, 1)], "incompatible"),
    OpError("Tile", array_ops.tile, [grid(2), ints(-1)], "multiples.0. >= 0, but got -1", at_run=True),
    OpError("PadV2", array_ops.pad, [grid(2), ints([1, 1], [1, 1])], "incompatible"),
    OpError("PadV2", array_ops.pad, [grid(2), ints([1, -1])], "must be non-negative"),
    OpError("PadV2", array_ops.pad, [grid(2), ints([1, -1])], "do not fit shape", at_run=True),
    OpError(
        "MirrorPad",
        lambda x, p: array_ops.pad(x, p, "REFLECT"),
        [grid(2), ints([0, 2])],
        "2 elements cannot be mirrored",
        at_run=True,
    ),
    OpError("ReverseV2", lambda x: array_ops.reverse(x, [1]), [grid(2)], "axis = 1 not in"),
    OpError("ReverseV2", lambda x: array_ops.reverse(x, [0, -1]), [grid(2)], "specified more than once"),
    OpError(
        "ReverseSequence",
        lambda x, n: array_ops.reverse_sequence(x, n, 1),
        [grid(2, 3), ints(1, 2, 3)],
        "incompatible",
    ),
    OpError(
        "ReverseSequence",
        lambda x, n: array_ops.reverse_sequence(x, n, 0),
        [grid(2, 3), ints(1, 2)],
        "both batch and time",
        at_run=True,
    ),
    OpError(
        "ReverseSequence",
        lambda x, n: array_ops.reverse_sequence(x, n, 1),
        [grid(2, 3), ints(1, 4)],
        "seq_lens do not fit",
        at_run=True,
    ),
    OpError("Roll", lambda x: array_ops.roll(x, 1, 2), [grid(2, 3)], "axis = 2 not in"),
    OpError("Roll", lambda x: array_ops.roll(x, [1, 2], 0), [grid(2, 3)], "2 shifts for 1 axes"),
    OpError("SpaceToDepth", lambda x: array_ops.space_to_depth(x, 2), [grid(1, 3, 2, 1)], "does not divide by 2"),
    OpError("SpaceToDepth", lambda x: array_ops.space_to_depth(x, 1), [grid(1, 2, 2, 1)], "at least 2"),
    OpError(
        "SpaceToDepth",
        lambda x: array_ops.space_to_depth(x, 2, data_format="HWC"),
        [grid(1, 2, 2, 1)],
        "expected NHWC or NCHW",
    ),
    OpError("SpaceToDepth", lambda x: array_ops.space_to_depth(x, 2), [grid(1, 3, 2, 1)], "whole blocks", at_run=True),
    OpError("DepthToSpace", lambda x: array_ops.depth_to_space(x, 2), [grid(1, 2, 2, 6)], "does not divide by 4"),
    OpError("DepthToSpace", lambda x: array_ops.depth_to_space(x, 2), [grid(1, 2, 2, 6)], "whole blocks", at_run=True),
    OpError(
        "SpaceToBatchND",
        array_ops.space_to_batch_nd,
        [grid(1, 3, 1), ints(2), ints([0, 0])],
        "does not divide by 2",
    ),
    OpError("SpaceToBatchND", array_ops.space_to_batch_nd, [grid(1), ints(2), ints([0, 0])], "a batch dimension too"),
    OpError("SpaceToBatchND", array_ops.space_to_batch_nd, [grid(1, 2), ints(0), ints([0, 0])], "must be positive"),
    OpError(
        "SpaceToBatchND",
        array_ops.space_to_batch_nd,
        [grid(1, 3, 1), ints(2), ints([0, 0])],
        "whole blocks",
        at_run=True,
    ),
    OpError("BatchToSpaceND", array_ops.batch_to_space_nd, [grid(3, 1), ints(2), ints([0, 0])], "does not divide by 2"),
    *(
        OpError("BatchToSpaceND", array_ops.batch_to_space_nd, [grid(2, 1), sides, crops], message, at_run=True)
        for sides, crops, message in (
            (ints(0), ints([0, 0]), "must be positive"),
            (ints(-1), ints([0, 0]), "must be positive"),
            (ints(2), ints([0, -1]), "not negative"),
            (ints(2), ints([2, 1]), "do not fit"),
        )
    ),
    OpError(
        "BatchToSpaceND", array_ops.batch_to_space_nd, [grid(3, 1), ints(2), ints([0, 0])], "whole blocks", at_run=True
    ),
    OpError("Range", array_ops.range, [INT(0), INT(5), INT(0)], "delta is 0"),
    OpError("Range", array_ops.range, [ints(0), INT(5), INT(1)], "must have rank 0"),
    OpError("Range", array_ops.range, [INT(3), INT(0), INT(1)], "do not lead from 3 to 0"),
    OpError("Range", array_ops.range, [INT(3), INT(0), INT(1)], "do not lead from 3 to 0", at_run=True),
    OpError("Range", array_ops.range, [np.float64(0), np.float64(np.inf), np.float64(1)], "cannot count"),
    OpError("Range", array_ops.range, [INT(0), INT(5), INT(0)], "delta is 0", at_run=True),
    OpError(
        "LinSpace", array_ops.linspace, [np.float64(0), np.float64(1), INT(-1)], "expected at least 0", at_run=True
    ),
    OpError("OneHot", array_ops.one_hot, [ints(1), INT(-1)], "depth is -1"),
    OpError("OneHot", lambda i: array_ops.one_hot(i, 3, axis=2), [ints(1)], "axis = 2 not in"),
    OpError("DiagPart", array_ops.diag_part, [grid(2, 3)], "incompatible"),
    OpError("DiagPart", array_ops.diag_part, [grid(2)], "an even rank"),
    OpError("DiagPart", array_ops.diag_part, [grid(2, 3)], "is not one shape twice", at_run=True),
    OpError("MatrixDiag", array_ops.matrix_diag, [grid()], "must be at least 1-dim"),
    OpError("MatrixDiagPart", array_ops.matrix_diag_part, [grid(2)], "must be at least rank 2"),
    OpError("MatrixSetDiag", array_ops.matrix_set_diag, [grid(2, 3), grid(3)], "incompatible"),
    OpError("MatrixSetDiag", array_ops.matrix_set_diag, [grid(2, 3), grid(3)], "do not fit", at_run=True),
    OpError("MatrixBandPart", array_ops.matrix_band_part, [grid(2), INT(1), INT(1)], "must be at least rank 2"),
]
