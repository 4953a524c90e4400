"""``tf.contrib.distribute``: the strategies of `tf.distribute` under older names and with older arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tfray.actors.clusters.server import Server
from tfray.distribute import CrossDeviceOps, OneDeviceStrategy, ReductionToOneDevice, ReplicaContext, Strategy
from tfray.distribute import StrategyExtended as DistributionStrategyExtended
from tfray.distribute import strategies as current
from tfray.distribute.cluster_resolver import TFConfigClusterResolver
from tfray.distribute.current import (
    get_loss_reduction,
    get_replica_context,
    get_strategy,
    has_strategy,
    in_cross_replica_context,
)
from tfray.distribute.replica_inputs import DistributedDataset
from tfray.library.input.datasets import Dataset

DistributionStrategy = Strategy
ReductionToOneDeviceCrossDeviceOps = ReductionToOneDevice
get_distribution_strategy = get_strategy
has_distribution_strategy = has_strategy

# fmt: off
__all__ = [
    "AllReduceCrossDeviceOps", "CollectiveAllReduceStrategy", "CrossDeviceOps", "DistributeConfig",
    "DistributionStrategy", "DistributionStrategyExtended", "MirroredStrategy", "OneDeviceStrategy",
    "ParameterServerStrategy", "ReductionToOneDeviceCrossDeviceOps", "ReplicaContext", "get_cross_replica_context",
    "get_distribution_strategy", "get_loss_reduction", "get_replica_context", "get_strategy",
    "has_distribution_strategy", "has_strategy", "in_cross_replica_context", "require_replica_context",
    "run_standard_tensorflow_server",
]
# fmt: on


class DistributeConfig(NamedTuple):
    """The strategies of an estimator, for ``RunConfig(experimental_distribute=...)``.

    Attributes:
        train_distribute: That of training.
        eval_distribute: That of evaluations.
        remote_cluster: Must be None: a program trains in a cluster as one of its tasks, see `tfray launch`.
    """

    train_distribute: Any = None
    eval_distribute: Any = None
    remote_cluster: Any = None


class _WholeBatches(Strategy):
    """A strategy each of whose replicas takes a batch of a dataset: the older meaning of ``make_dataset_iterator``."""

    def experimental_distribute_dataset(self, dataset: Dataset) -> DistributedDataset:
        """A dataset of which each replica takes the next batch.

        Args:
            dataset: A dataset with batches for one replica each.
        """
        return DistributedDataset(dataset, self.num_replicas_in_sync, split=False)


class MirroredStrategy(_WholeBatches, current.MirroredStrategy):
    """`tf.distribute.MirroredStrategy`, each of whose replicas takes a whole batch of a dataset.

    Args:
        devices: The devices.
        num_gpus: In place of them, the number of GPUs, counted from 0; 0 for the CPU.
        num_gpus_per_worker: The newer name of `num_gpus`.
        cross_device_ops: How values of replicas become one.
        auto_shard_dataset: Accepted for TensorFlow 1's sake: one process reads all data.

    Raises:
        ValueError: The devices are given in two ways.
    """

    def __init__(
        self,
        devices: Sequence[str] | None = None,
        num_gpus: int | None = None,
        num_gpus_per_worker: int | None = None,
        cross_device_ops: CrossDeviceOps | None = None,
        auto_shard_dataset: bool = False,
    ) -> None:
        gpus = num_gpus if num_gpus_per_worker is None else num_gpus_per_worker
        if gpus is not None:
            if devices is not None or (num_gpus is not None and num_gpus_per_worker is not None):
                raise ValueError("Must only specify one of `devices`, `num_gpus` and `num_gpus_per_worker`.")
            devices = _gpus_or_cpu(gpus)
        current.MirroredStrategy.__init__(self, devices, cross_device_ops)


class ParameterServerStrategy(_WholeBatches, current.ParameterServerStrategy):
    """`tf.distribute.experimental.ParameterServerStrategy` of the cluster that ``TF_CONFIG`` describes.

    Args:
        num_gpus_per_worker: Must be 0 or 1: a worker is one replica, on its GPU where it has one.

    Raises:
        ValueError: A worker is to have several GPUs.
    """

    def __init__(self, num_gpus_per_worker: int = 0) -> None:
        if num_gpus_per_worker > 1:
            raise ValueError(
                f"ParameterServerStrategy: num_gpus_per_worker is {num_gpus_per_worker}, expected 0 or 1: start a "
                "worker for each GPU"
            )
        current.ParameterServerStrategy.__init__(self)


class CollectiveAllReduceStrategy(_WholeBatches, current.MultiWorkerMirroredStrategy):
    """`tf.distribute.experimental.MultiWorkerMirroredStrategy`, for programs that run in one process.

    Args:
        num_gpus_per_worker: Number of GPUs, each with a replica; 0 for the CPU.

    Raises:
        ValueError: ``TF_CONFIG`` names several workers.
    """

    def __init__(self, num_gpus_per_worker: int = 0) -> None:
        current.MultiWorkerMirroredStrategy.__init__(self)
        self._extended = current.Towers(self, _gpus_or_cpu(num_gpus_per_worker))


class AllReduceCrossDeviceOps(ReductionToOneDevice):
    """For programs that choose it; values are added on their destination, as `ReductionToOneDevice` does it.

    Args:
        all_reduce_alg: The algorithm of TensorFlow's; not used.
        num_packs: Into how many packs it packs the values; not used.
        agg_small_grads_max_bytes: Up to which size it joins small gradients; not used.
        agg_small_grads_max_group: How many of them it joins; not used.
    """

    def __init__(
        self,
        all_reduce_alg: str = "nccl",
        num_packs: int = 1,
        agg_small_grads_max_bytes: int = 0,
        agg_small_grads_max_group: int = 10,
    ) -> None:
        super().__init__()


def get_cross_replica_context() -> Strategy | None:
    """The current strategy across its replicas, as in ``strategy.scope()``; None in code that builds a replica."""
    return get_strategy() if in_cross_replica_context() else None


def require_replica_context(replica_ctx: ReplicaContext) -> None:
    """Check that a replica is the one being built.

    Args:
        replica_ctx: The replica.

    Raises:
        RuntimeError: It is not.
    """
    if get_replica_context() is not replica_ctx:
        raise RuntimeError("Need to be inside the replica for which `ReplicaContext` was passed.")


def run_standard_tensorflow_server(session_config: Any = None) -> Server:
    """Start the server of this task of the cluster that ``TF_CONFIG`` describes.

    Args:
        session_config: Options of the server.

    Returns:
        The server, which runs.

    Raises:
        ValueError: ``TF_CONFIG`` describes no cluster, or not which task this is.
    """
    resolver = TFConfigClusterResolver()
    cluster = resolver.cluster_spec()
    if not cluster.jobs:
        raise ValueError("You must provide a cluster_spec: `cluster` is not in TF_CONFIG")
    if resolver.task_type is None or resolver.task_id is None:
        raise ValueError("You must provide a task_type and task_id: `task` is not in TF_CONFIG")
    return Server(cluster, job_name=resolver.task_type, task_index=resolver.task_id, config=session_config)


def _gpus_or_cpu(gpus: int) -> list[str]:
    return [f"/device:GPU:{number}" for number in range(gpus)] or ["/device:CPU:0"]
