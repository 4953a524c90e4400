"""Operations under back-propagation and optimizers."""

from __future__ import annotations

import numpy as np

from tests.op_samples import OpSample, grid
from tfray.ops.arrays import tuple_ops


def _both(x, y):
    return tuple_ops.identity_n([x, y])


SAMPLES = [
    OpSample("IdentityN", _both, [grid(2, 3), grid(4, seed=1)], lambda x, y: [x, y]),
    OpSample("IdentityN", _both, [grid(), np.array([True, False])], lambda x, y: [x, y], label="mixed"),
]

TESTED_ELSEWHERE = dict.fromkeys(
    [
        "ApplyAdagrad",
        "ApplyAdam",
        "ApplyGradientDescent",
        "ApplyMomentum",
        "SparseApplyAdagrad",
        "SparseApplyAdam",
        "SparseApplyGradientDescent",
        "SparseApplyMomentum",
    ],
    "updates variables: tests/test_optimizers.py",
) | dict.fromkeys(
    [
        prefix + name
        for prefix in ("Apply", "SparseApply")
        for name in (
            "AdagradDA",
            "Adadelta",
            "CenteredRMSProp",
            "Ftrl",
            "ProximalAdagrad",
            "ProximalGradientDescent",
            "RMSProp",
        )
    ],
    "updates variables: tests/test_adaptive_optimizers.py",
)
