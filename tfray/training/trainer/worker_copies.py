"""The copies of the variables that the workers of a run without parameter servers hold.

The first worker's copy is the one that is initialized, saved and restored. Before the first step of a run, and after it
has gone back to a checkpoint, all others are given its values. From then on all of them make the same updates.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tfray.actors.clusters.cluster import Cluster
from tfray.actors.replicas.driver import ReplicaDriver
from tfray.actors.replicas.settlement import Parted
from tfray.errors import FailedPreconditionError, InternalError
from tfray.framework.graph import Graph
from tfray.framework.region import ops_within
from tfray.placement.replicate import CompiledReplicaStep
from tfray.session import Session
from tfray.training.trainer.shard_placement import Move, move_variables
from tfray.training.trainer.shard_scaling import ANSWER_S

WORKER: Final = "worker"


class WorkerCopies:
    """Stands where `ShardScaling` does. There is nothing to scale.

    Args:
        cluster: The actors of the run.
        graph: The model, whose variables ask for the first worker.
    """

    def __init__(self, cluster: Cluster, graph: Graph) -> None:
        self._cluster = cluster
        self._graph = graph

    @property
    def devices(self) -> list[str]:
        """The device for which the variables ask."""
        return self._cluster.devices_of(WORKER)[:1]

    @property
    def standbys(self) -> dict[str, str]:
        """By shard, the device of its standby: there are no shards."""
        return {}

    def begin(self) -> None:
        """Give all workers the values of the first one.

        Raises:
            UnavailableError: A worker has died.
        """
        ops = (op for outer in self._graph.get_operations() for op in ops_within(outer))
        variables = [op for op in ops if op.type == "Variable"]
        first, *others = self._cluster.devices_of(WORKER)
        moves = [Move(variable, first, other) for variable in variables for other in others]
        move_variables(self._cluster, moves, WORKER)

    def wish(self, count: int) -> None:
        """Raise `FailedPreconditionError`."""
        raise FailedPreconditionError(
            f"scale: the run has no parameter servers, its workers hold the variables; {count} cannot take them over"
        )

    def is_due(self) -> bool:
        """Whether to hold the driver for a change: never."""
        return False

    def change(self, session: Session, driver: ReplicaDriver, compiled: Callable[[], CompiledReplicaStep]) -> None:
        """Do nothing."""

    def tidy(self, driver: ReplicaDriver) -> None:
        """Do nothing: no change leaves anything behind."""

    def recover(self) -> None:
        """Give up workers that do not answer, so that others can be started in their places."""
        devices = self._cluster.devices_of(WORKER)
        answering = self._cluster.answering(devices, ANSWER_S)
        for device in devices:
            if device not in answering:
                self._cluster.forget(device)

    def take_over(self, session: Session, parted: Parted) -> None:
        """Raise: there are no standbys."""
        raise InternalError(f"{', '.join(parted.gone)} cannot be done without")

    def end(self) -> None:
        """Do nothing: no further actors have been asked for."""
