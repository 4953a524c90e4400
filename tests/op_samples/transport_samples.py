"""What moves between devices and replicas."""

from __future__ import annotations

from tests.op_samples import OpSample, grid
from tfray.ops import replica_ops

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
]

TESTED_ELSEWHERE = dict.fromkeys(["Send", "Recv"], "made between devices by the partitioner: test_sendrecv_ops.py")
