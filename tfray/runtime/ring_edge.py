"""What replicas that hold copies of the variables reduce among themselves, as their plans see it.

A plan sends a contribution to `RING_DEVICE`, which is no device: the worker's actor takes it. The plan receives the
combined value from there, when all replicas have contributed.
"""

from __future__ import annotations

from typing import Final, NamedTuple

RING_DEVICE: Final = "/job:ring/task:0/device:CPU:0"
"""The name that stands for the reduction among replicas in a partitioned training graph."""


class RingEdge(NamedTuple):
    """One value that is reduced.

    Attributes:
        key: Key of the edge over which a replica's contribution leaves its plan.
        result: Key of the edge over which the combined value comes back.
        reduction: How contributions are combined, see `replica_ops.replica_reduce`.
        dtype: Name of the dtype of contributions.
        result_dtype: Name of the dtype in which they are combined, and of the result.
        shape: Shape of each contribution; None if it is not known before it is there.
    """

    key: str
    result: str
    reduction: str
    dtype: str
    result_dtype: str
    shape: tuple[int, ...] | None
