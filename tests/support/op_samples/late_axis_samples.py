"""Samples of the variants of operations whose axis is known only when a step runs, and of `SwappedAxes`."""

from __future__ import annotations

import numpy as np

from tests.support.op_samples import OpError, OpSample, grid
from tests.support.op_samples.array_samples import INT, ints
from tfray.framework.convert import add_op
from tfray.ops.arrays import array_ops, gather_ops, shape_ops


def _gathered_back(dy: np.ndarray, indices: np.ndarray, axis: np.ndarray) -> np.ndarray:
    total = np.zeros((2, 4), dy.dtype)
    np.add.at(total, (slice(None), indices), dy)
    return total


SAMPLES = [
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

ERRORS = [
    OpError("ConcatV2ByAxis", lambda x, a: array_ops.concat([x, x], a), [grid(2, 3), INT(2)], "axis 2", at_run=True),
    OpError("SplitByAxis", lambda x, a: array_ops.split(x, 2, a), [grid(2, 4), INT(2)], "axis 2", at_run=True),
    OpError("SplitVByAxis", lambda x, a: array_ops.split(x, [1, 1], a), [grid(2, 4), INT(1)], "split", at_run=True),
    OpError(
        "GatherV2ByAxis", lambda x, a: array_ops.gather(x, [0], axis=a), [grid(2, 4), INT(2)], "axis 2", at_run=True
    ),
    OpError("ReverseV2ByAxis", array_ops.reverse, [grid(2, 4), ints(1, -1)], "one dimension twice", at_run=True),
    OpError("RollByAxis", lambda x, a: array_ops.roll(x, 1, a), [grid(2, 4), INT(3)], "axis 3", at_run=True),
    OpError("SwappedAxes", lambda x: add_op(shape_ops.SWAPPED_AXES, x), [grid(2)], "expected matrices", at_run=True),
]
