"""Operations of candidate sampling that draw nothing."""

from __future__ import annotations

import numpy as np

from tests.op_samples import OpError, OpSample
from tfray.ops import candidate_sampling_ops

LEAST = np.finfo(np.float32).min


def _hits(true_classes, candidates):
    pairs = [
        (row, max(np.flatnonzero(candidates == label)))
        for row, labels in enumerate(true_classes)
        for label in labels
        if label in candidates
    ]
    rows, ids = zip(*pairs, strict=True) if pairs else ((), ())
    return np.int32(rows), np.int64(ids), np.full(len(pairs), LEAST)


SAMPLES = [
    OpSample(
        "ComputeAccidentalHits",
        candidate_sampling_ops.compute_accidental_hits,
        [true, candidates],
        _hits,
        {"num_true": true.shape[1]},
        data_dependent=True,
    )
    for true, candidates in [
        (np.array([[0, 3], [7, 9], [3, 3]]), np.array([3, 5, 0, 3, 7])),
        (np.array([[1], [2]]), np.array([5, 0])),
        (np.array([[1], [2]]), np.zeros(0, np.int64)),
        (np.zeros((0, 2), np.int64), np.array([5, 0])),
    ]
]

ERRORS = [
    OpError(
        "ComputeAccidentalHits",
        lambda true, candidates: candidate_sampling_ops.compute_accidental_hits(true, candidates, 2),
        [np.array([[1]]), np.array([1])],
        "incompatible",
    )
]

TESTED_ELSEWHERE = dict.fromkeys(
    [
        "UniformCandidateSampler",
        "LogUniformCandidateSampler",
        "FixedUnigramCandidateSampler",
        "LearnedUnigramCandidateSampler",
        "AllCandidateSampler",
    ],
    "draw at random: test_candidate_sampling.py",
)
