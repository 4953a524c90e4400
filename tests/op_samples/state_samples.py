"""Operations on state, and random ones: they are tested with a session, by their effects and distributions."""

from __future__ import annotations

from tests.op_samples import OpSample

SAMPLES: list[OpSample] = []

_STATE = "works on a variable: tests/test_state_ops.py"
_RANDOM = "random: tests/test_random_ops.py"

TESTED_ELSEWHERE = {
    **dict.fromkeys(
        [
            "Assign",
            "AssignAdd",
            "AssignSub",
            "CountUpTo",
            "IsVariableInitialized",
            "ReadOrDefault",
            "ReadVariable",
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
            "Variable",
            "VariableShape",
        ],
        _STATE,
    ),
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
    "NoOp": "computes nothing: tests/test_state_ops.py",
}
