"""The strategies that programs choose from."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from tfray.distribute.cluster_resolver import ClusterResolver, TFConfigClusterResolver
from tfray.distribute.reduction import CrossDeviceOps
from tfray.distribute.strategy import Strategy, StrategyExtended, number_of_workers, several_processes
from tfray.framework.device_spec import canonical_name
from tfray.framework.graph import get_default_graph
from tfray.runtime.device import local_device_names
from tfray.training.threads.device_setter import replica_device_setter


class Towers(StrategyExtended):
    """Replicas on given devices, with variables on one of them or elsewhere."""

    def __init__(
        self,
        container_strategy: Any,
        devices: Sequence[str],
        parameter_device: str | None = None,
        cross_device_ops: CrossDeviceOps | None = None,
        are_distinct: bool = True,
    ) -> None:
        super().__init__(container_strategy)
        what = type(container_strategy).__name__
        if isinstance(devices, str) or not devices:
            raise ValueError(f"{what}: Must specify at least one device, in a list, not {devices!r}")
        names = tuple(canonical_name(device) for device in devices)
        if are_distinct and len(set(names)) < len(names):
            raise ValueError(f"{what}: No duplicates allowed in `devices` argument: {names}")
        self._worker_devices = names
        self._parameter_devices = (names[0] if parameter_device is None else canonical_name(parameter_device),)
        if not isinstance(cross_device_ops, CrossDeviceOps | None):
            raise TypeError(f"{what}: cross_device_ops is {cross_device_ops!r}, expected tf.distribute.CrossDeviceOps")
        if cross_device_ops is not None:
            self.cross_device_ops = cross_device_ops


class MirroredStrategy(Strategy):
    """A replica on each of several devices, which make each step together; see `Strategy`.

    Args:
        devices: The devices; of this process ``["/cpu:0", "/cpu:1"]`` (with ``tf.ConfigProto(device_count={"CPU":
            2})``) or ``["/gpu:0", "/gpu:1"]``, of a cluster ``["/job:worker/task:0", "/job:worker/task:1"]``. All GPUs
            of this process when None, or else its CPU.
        cross_device_ops: How values of replicas become one; `ReductionToOneDevice` when None.

    Raises:
        ValueError: There is no device, or one is given twice.
    """

    def __init__(self, devices: Sequence[str] | None = None, cross_device_ops: CrossDeviceOps | None = None) -> None:
        super().__init__(Towers(self, _local_devices() if devices is None else devices, None, cross_device_ops))


class OneDeviceStrategy(Strategy):
    """One replica, on one device, with its variables.

    Args:
        device: The device, such as ``"/gpu:0"``.
    """

    def __init__(self, device: str) -> None:
        super().__init__(Towers(self, [device]))


class CentralStorageStrategy(Strategy):
    """A replica on each of several devices, and the variables on another one, mostly the CPU.

    Args:
        compute_devices: The devices of replicas; all GPUs of this process when None, or else its CPU.
        parameter_device: The device of variables; with several replicas ``"/cpu:0"`` when None, else that of the one.
    """

    def __init__(self, compute_devices: Sequence[str] | None = None, parameter_device: str | None = None) -> None:
        devices = _local_devices() if compute_devices is None else compute_devices
        if parameter_device is None and len(devices) > 1:
            parameter_device = "/device:CPU:0"
        super().__init__(Towers(self, devices, parameter_device))


class CollectiveCommunication(enum.Enum):
    """How TensorFlow's workers exchange tensors. Here it makes no difference: the devices of a graph choose."""

    AUTO = "AUTO"
    RING = "RING"
    NCCL = "NCCL"


class MultiWorkerMirroredStrategy(Strategy):
    """`MirroredStrategy` in one process, for programs that may also run in several.

    In several processes TensorFlow's strategy adds up gradients by collective operations. tfray's synchronous workers
    without parameter servers are those of `tf.train.Trainer`.

    Args:
        communication: A `CollectiveCommunication`; not used.

    Raises:
        ValueError: ``TF_CONFIG`` names several workers.
    """

    def __init__(self, communication: CollectiveCommunication = CollectiveCommunication.AUTO) -> None:
        super().__init__(Towers(self, _local_devices()))
        if number_of_workers(TFConfigClusterResolver().cluster_spec()) > 1:
            raise ValueError(several_processes(self))


class ParameterServerStrategy(Strategy):
    """Variables on parameter servers, and one replica in each worker, which makes its steps by itself.

    Each worker builds the graph and trains asynchronously. Without a cluster the variables are in this process.

    Args:
        cluster_resolver: Tells the cluster and which task this is; ``TF_CONFIG`` does when None.
    """

    def __init__(self, cluster_resolver: ClusterResolver | None = None) -> None:
        super().__init__(_BetweenGraphs(self, cluster_resolver or TFConfigClusterResolver()))


class _BetweenGraphs(StrategyExtended):
    """One replica in this process, and variables on the parameter servers of its cluster."""

    experimental_between_graph = True

    def __init__(self, container_strategy: Any, resolver: ClusterResolver) -> None:
        super().__init__(container_strategy)
        cluster = resolver.cluster_spec()
        self._take_place(cluster, resolver.task_type, resolver.task_id)

    def configure(self, session_config: Any, cluster_spec: Any, task_type: str | None, task_id: int | None) -> None:
        """Take note of the cluster, and which task of it this is."""
        if cluster_spec is not None:
            self._take_place(cluster_spec, task_type, task_id)

    def _take_place(self, cluster: Any, task_type: str | None, task_id: int | None) -> None:
        self._setter: Any = None
        if cluster is None or not cluster.jobs:
            return
        if task_type is None:
            raise ValueError("ParameterServerStrategy: a cluster is given, so task_type and task_id must be too")
        workers = number_of_workers(cluster)
        number = int(task_id or 0)
        chief = task_type in ("chief", "master") or (number == 0 and not {"chief", "master"} & set(cluster.jobs))
        self._worker_devices = (f"/job:{task_type}/task:{number}",)
        servers = cluster.num_tasks("ps") if "ps" in cluster.jobs else 0
        if servers:
            self._parameter_devices = tuple(f"/job:ps/task:{each}" for each in range(servers))
            self._setter = replica_device_setter(
                ps_tasks=servers, worker_device=self._worker_devices[0], merge_devices=True, cluster=cluster
            )
        position = number + (task_type == "worker" and bool({"chief", "master"} & set(cluster.jobs)))
        self.input_pipelines = (workers, position)
        self.experimental_should_init = self.should_checkpoint = self.should_save_summary = chief

    def placing_variables(self) -> AbstractContextManager[None]:
        """Variables go to the parameter servers in turns."""
        return get_default_graph().root.device(self._setter or self._parameter_devices[0])


def _local_devices() -> list[str]:
    """All GPUs of this process, or else its CPU."""
    names = [f"/device:{name.partition('/device:')[2]}" for name in local_device_names(1, None)]
    return [name for name in names if ":GPU:" in name] or names[:1]
