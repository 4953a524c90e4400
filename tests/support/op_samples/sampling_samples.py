"""Operations of candidate sampling that draw nothing."""

from __future__ import annotations

import numpy as np
from scipy import special, stats

from tests.support.op_samples import OpError, OpSample, grid
from tfray.framework import dtypes
from tfray.ops.math import gamma_sensitivity_ops
from tfray.ops.nn import candidate_sampling_ops, shard_product_ops

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


def _at_the_same_quantile(alpha, sample):
    """How a draw moves with its parameter: the distribution function stays as it is."""
    with np.errstate(all="ignore"):
        moved = [special.gammainc(alpha + step, sample) for step in (1e-5, -1e-5)]
    return -(moved[0] - moved[1]) / 2e-5 / stats.gamma(alpha).pdf(sample)


def _igamma_slope(a, x):
    return (special.gammainc(a + 1e-5, x) - special.gammainc(a - 1e-5, x)) / 2e-5


SAMPLES.append(
    OpSample(
        "IgammaGradA",
        gamma_sensitivity_ops.igamma_grad_a,
        [grid(3, 1, low=0.5, high=4), grid(3, 4, low=0.5, high=4, seed=1)],
        _igamma_slope,
        tolerance=3e4,
        dtypes=(dtypes.float32, dtypes.float64),
    )
)
SAMPLES.append(
    OpSample(
        "RandomGammaGrad",
        gamma_sensitivity_ops.random_gamma_grad,
        [grid(4, low=0.2, high=6), grid(4, low=0.1, high=9, seed=1)],
        _at_the_same_quantile,
        tolerance=3e4,
        dtypes=(dtypes.float32, dtypes.float64),
    )
)


def _shard_products(inputs, examples, rows):
    count = len(examples)
    return (inputs[examples] * rows[:count]).sum(1), rows[count:] @ inputs.T


SAMPLES += [
    OpSample(
        "ShardProducts",
        shard_product_ops.shard_products,
        [grid(3, 4), np.int32([2, 0, 2, 1][:pairs]), grid(pairs + others, 4, seed=2)],
        _shard_products,
        data_dependent=True,
    )
    for pairs, others in [(4, 5), (0, 2), (3, 0)]
]

ERRORS = [
    OpError(
        "ShardProducts",
        shard_product_ops.shard_products,
        [np.zeros((2, 3)), np.int32([0, 1]), np.zeros((1, 3))],
        "1 rows, fewer than 2 examples",
    ),
    OpError(
        "ShardProducts",
        shard_product_ops.shard_products,
        [np.zeros((2, 3)), np.int32([0]), np.zeros((4, 5))],
        "incompatible",
    ),
    OpError(
        "ComputeAccidentalHits",
        lambda true, candidates: candidate_sampling_ops.compute_accidental_hits(true, candidates, 2),
        [np.array([[1]]), np.array([1])],
        "incompatible",
    ),
]

STATELESS = [
    "StatelessRandomUniform",
    "StatelessRandomUniformInt",
    "StatelessRandomNormal",
    "StatelessTruncatedNormal",
    "StatelessMultinomial",
    "StatelessRandomBinomial",
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
) | dict.fromkeys(STATELESS, "draw at random: test_stateless_random_ops.py")
TESTED_ELSEWHERE["ParameterizedTruncatedNormal"] = "draws at random: test_random_ops.py"
