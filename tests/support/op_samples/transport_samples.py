"""What moves between devices and replicas."""

from __future__ import annotations

import numpy as np

from tests.support.op_samples import OpError, OpSample, grid
from tests.support.op_samples.array_samples import build_op
from tfray.ops.system import replica_ops

SAMPLES = [
    # In a graph that is not replicated there is one contribution.
    OpSample(
        "ReplicaReduce",
        replica_ops.replica_reduce,
        [grid(2, 3)],
        lambda x: x,
        {"reduction": reduction},
        data_dependent=reduction.startswith("concat"),  # on the number of replicas
        label=reduction,
    )
    for reduction in replica_ops.REDUCTIONS
] + [
    OpSample(
        "AllFinite", build_op(replica_ops.ALL_FINITE, failure=""), [value], lambda x: np.isfinite(x).all(), label=label
    )
    for label, value in {
        "finite": grid(2, 3),
        "scalar": np.float64(2),
        "empty": np.zeros((0, 2)),
        "NaN": np.array([1.0, np.nan]),
        "infinite": np.array([[1.0], [-np.inf]]),
    }.items()
]

ERRORS = [
    OpError(
        "AllFinite",
        build_op(replica_ops.ALL_FINITE, failure="bad gradient"),
        [np.array([1.0, np.nan, np.inf, np.nan])],
        r"bad gradient: of 4 elements 2 are NaN and 1 infinite",
        at_run=True,
    )
]

TESTED_ELSEWHERE = dict.fromkeys(["Send", "Recv"], "made between devices by the partitioner: test_sendrecv_ops.py")
