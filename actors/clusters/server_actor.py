"""A device of a `tf.train.Server`: a device actor that other processes find by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tfray.actors.devices.device_actor import DeviceActor
from tfray.actors.links.handshake import LinkAddress
from tfray.ops.kernels.cpu_threads import use_threads


class Served(NamedTuple):
    """What a server's actor tells those who find it.

    Attributes:
        cluster: Addresses of all tasks, as `ClusterSpec.as_dict` gives them.
        job: Job of the task.
        task: Index of the task.
        devices: Full names of the task's devices.
        address: Where the actor listens for links.
        key: The key of these links.
    """

    cluster: Mapping[str, Any]
    job: str
    task: int
    devices: Sequence[str]
    address: LinkAddress
    key: bytes


class ServerActor(DeviceActor):
    """The actor's class.

    Args:
        device_name: Full name of the device that it hosts.
        key: The key that peers must hold.
        cluster: Addresses of all tasks.
        job: Job of the task.
        task: Index of the task.
        devices: Full names of the task's devices.
        threads: Threads of its kernels.
        folder: Working directory of the process that serves; None where that has none.
    """

    def __init__(
        self,
        device_name: str,
        key: bytes,
        cluster: Mapping[str, Any],
        job: str,
        task: int,
        devices: Sequence[str],
        threads: int,
        folder: str | None = None,
    ) -> None:
        use_threads(threads)
        super().__init__(device_name, key, folder=folder)
        self._served = Served(cluster, job, task, devices, self._links.address, key)

    async def served(self) -> Served:
        """The task that it serves, and how to open links to it."""
        return self._served
