"""Reading sequences off the tree of a beam search."""

from __future__ import annotations

import numpy as np

from tests.support.op_samples import OpError, OpSample, grid
from tfray.ops.nn import beam_ops

_STEPS = np.int32([[[1, 2, 3]], [[4, 5, 6]], [[7, 8, 0]], [[9, 1, 2]]])
_PARENTS = np.int32([[[0, 0, 0]], [[0, 1, 1]], [[2, 1, 2]], [[0, 0, 1]]])
_PADDED = np.int32([[[-1, 7, -1]], [[0, 1, 1]], [[2, 1, 2]], [[-1, -1, 3]]])
"""Those of the first step, and behind the third, nobody follows."""


def _tree(steps, parents, lengths, end):
    sequences = np.full_like(steps, end)
    for b, k in np.ndindex(*steps.shape[1:]):
        beam = k
        for time in range(min(len(steps), lengths[b]) - 1, -1, -1):
            sequences[time, b, k] = steps[time, b, beam]
            beam = parents[time, b, beam]
        ends = np.flatnonzero(sequences[:, b, k] == end)
        if len(ends):
            sequences[ends[0] :, b, k] = end
    return sequences


def _values(values, parents, lengths):
    gathered = np.zeros_like(values)
    for b, k in np.ndindex(*parents.shape[1:]):
        beam = k
        for time in range(min(len(values), lengths[b].max()) - 1, -1, -1):
            if time < lengths[b, k]:
                gathered[time, b, k] = values[time, b, beam]
            beam = parents[time, b, beam]
    return gathered


SAMPLES = [
    *[
        OpSample("GatherTree", beam_ops.gather_tree, [_STEPS, _PARENTS, np.int32([length]), np.int32(0)], _tree)
        for length in (4, 3, 0, 9)
    ],
    OpSample("GatherTree", beam_ops.gather_tree, [_STEPS, _PADDED, np.int32([3]), np.int32(10)], _tree),
    *[
        OpSample("GatherTreeValues", beam_ops.gather_tree_from_array, [values, _PARENTS, np.int32([lengths])], _values)
        for values in (grid(4, 1, 3, 2), grid(4, 1, 3))
        for lengths in ([4, 2, 3], [2, 2, 1])
    ],
]

ERRORS = [
    OpError(
        "GatherTree",
        beam_ops.gather_tree,
        [_STEPS, _PARENTS + np.int32(1), np.int32([4]), np.int32(0)],
        r"must lie in \[0, 3\)",
        at_run=True,
    ),
    OpError(
        "GatherTree",
        beam_ops.gather_tree,
        [_STEPS, np.int32([[[0, 0, 0]], [[0, -1, 1]], [[2, 1, 2]], [[0, 0, 1]]]), np.int32([3]), np.int32(0)],
        r"Saw invalid parent id -1 at \(batch, time, beam\) == \(0, 0, 1\)",
        at_run=True,
    ),
]
