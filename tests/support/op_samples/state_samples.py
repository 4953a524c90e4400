"""Operations on state, updates by optimizers, random ones: they are tested with a session, by what they do."""

from __future__ import annotations

from tests.support.op_samples import OpSample

SAMPLES: list[OpSample] = []

_STATE = "works on a variable: tests/ops/state/test_state_ops.py"
_RANDOM = "random: tests/ops/random/test_random_ops.py"

TESTED_ELSEWHERE = {
    **dict.fromkeys(
        [
            "Assign",
            "AssignAdd",
            "AssignSub",
            "CountUpTo",
            "DeleteSessionTensor",
            "GetSessionHandle",
            "GetSessionTensor",
            "IsVariableInitialized",
            "ReadOrDefault",
            "ReadVariableOp",
            "ResourceGather",
            "ScatterAdd",
            "ScatterDiv",
            "ScatterMax",
            "ScatterMin",
            "ScatterMul",
            "ScatterNdAdd",
            "ScatterNdSub",
            "ScatterNdUpdate",
            "ScatterSub",
            "ScatterUpdate",
            "StridedSliceAssign",
            "Timestamp",
            "Variable",
            "VariableShape",
        ],
        _STATE,
    ),
    **dict.fromkeys(["BytesInUse", "BytesLimit", "MaxBytesInUse"], "tells of the machine: test_memory_ops.py"),
    **dict.fromkeys(
        [
            "Multinomial",
            "RandomGamma",
            "RandomOrthogonal",
            "RandomPoisson",
            "RandomShuffle",
            "RandomStandardNormal",
            "RandomUniform",
            "RandomUniformInt",
            "TruncatedNormal",
        ],
        _RANDOM,
    ),
    "NoOp": "computes nothing: tests/ops/state/test_state_ops.py",
}

TESTED_ELSEWHERE |= dict.fromkeys(
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
    "updates variables: tests/training/optimizers/test_optimizers.py",
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
    "updates variables: tests/training/optimizers/test_adaptive_optimizers.py",
)
