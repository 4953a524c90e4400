"""The tasks of a distributed program as one session sees them. Their processes have started servers."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from tfray.actors.clusters.directory import ActorDirectory
from tfray.actors.clusters.ray_runtime import connect_to_running
from tfray.errors import InvalidArgumentError, UnavailableError
from tfray.formats.cluster_spec import ClusterSpec
from tfray.framework.device_spec import DeviceSpec

if TYPE_CHECKING:
    from tfray.actors.clusters.remote_runner import RemoteRunner
    from tfray.actors.clusters.server_actor import Served
    from tfray.actors.links.peers import PeerHandle

NAMESPACE: Final = "tfray-servers"
"""Ray's namespace of the actors of all servers."""

WAIT_VARIABLE: Final = "TFRAY_SERVER_WAIT_S"
"""Environment variable: seconds that a session waits for the server of a task that it needs."""

DEFAULT_WAIT_S: Final = 60.0

_FIRST_LOOK_S: Final = 0.02
"""Seconds between the first two looks for a server. The pauses grow up to `_LATER_LOOKS_S`."""

_LATER_LOOKS_S: Final = 0.5


def server_wait_s() -> float:
    """Seconds to wait for a server. Raises `InvalidArgumentError` when the variable makes no sense."""
    text = os.environ.get(WAIT_VARIABLE, "")
    try:
        return float(text) if text else DEFAULT_WAIT_S
    except ValueError:
        raise InvalidArgumentError(f"{WAIT_VARIABLE}={text!r}: expected a number of seconds") from None


def actor_name(address: str, device: str) -> str:
    """Ray's name of the actor of a device, given the address of its task."""
    spec = DeviceSpec.from_string(device)
    return f"{address}/{spec.device_type}:{spec.device_index}"


class ServedCluster(ActorDirectory):
    """The devices of servers, found when a step needs them. Ends with its session, and leaves the actors alone.

    Args:
        target: Target of a server, whose task is the default place of operations.
        device_filters: Full or partial names of the only devices to use; empty for all devices.

    Raises:
        UnavailableError: There is no Ray, or no server at that address.
    """

    def __init__(self, target: str, device_filters: Sequence[str] = ()) -> None:
        connect_to_running()
        super().__init__()
        self._handles: dict[str, PeerHandle] = {}
        self._introduced: set[tuple[str, str]] = set()
        address = target.partition("://")[2]
        _, master = self._find(address, "/device:CPU:0", time.monotonic() + server_wait_s())
        cluster = ClusterSpec(master.cluster)
        tasks = [(job, task) for job in cluster.jobs for task in cluster.task_indices(job)]
        own = (master.job, master.task)
        # The default device comes first, parameter servers last.
        tasks.sort(key=lambda each: (each != own, each[0] == "ps"))
        self._devices: list[str] = []
        self._addresses: dict[str, str] = {}
        filters = [DeviceSpec.from_string(name) for name in device_filters]
        for job, task in tasks:
            devices = master.devices if (job, task) == own else [f"/job:{job}/task:{task}/device:CPU:0"]
            self._addresses.update(dict.fromkeys(devices, cluster.task_address(job, task)))
            self._devices += [name for name in devices if (job, task) == own or _passes(name, filters)]

    @property
    def devices(self) -> list[str]:
        """Full names of the devices: those of the target's task, and one CPU of every other task."""
        return list(self._devices)

    def handle(self, device: str) -> PeerHandle:
        """How processes reach the actor of a device that has been found."""
        return self._handles[device]

    def introduce(self, devices: Sequence[str]) -> None:
        """Find the actors of these devices, waiting for their servers, and introduce them to one another."""
        from tfray.actors.links.peers import PeerHandle

        deadline = time.monotonic() + server_wait_s()
        for device in devices:
            if device not in self._actors:
                self._actors[device], served = self._find(self._addresses[device], device, deadline)
                self._handles[device] = PeerHandle(self._actors[device], served.address, served.key)
        calls = {}
        for device in devices:
            others = [other for other in devices if other != device and (device, other) not in self._introduced]
            if others:
                handles = {other: self._handles[other] for other in others}
                calls[self._actors[device].connect.remote(handles)] = device
                self._introduced.update((device, other) for other in others)
        for call, device in calls.items():
            try:
                self._ray.get(call, timeout=max(1.0, deadline - time.monotonic()))
            except (self._ray.exceptions.RayActorError, self._ray.exceptions.GetTimeoutError) as error:
                raise UnavailableError(f"the server of {device} does not answer: {error}", device=device) from error

    def runner(self) -> RemoteRunner:
        """The `Runner` of the session."""
        from tfray.actors.clusters.remote_runner import RemoteRunner

        runner = RemoteRunner(self)
        self._opened(runner)
        return runner

    def release(self, runner: Any) -> None:
        """Close: the cluster ends with its only session."""
        super().release(runner)
        self.close()

    def _let_go(self) -> None:
        """Leave the actors to their servers."""

    def _find(self, address: str, device: str, deadline: float) -> tuple[Any, Served]:
        """Look for the actor of a device until it answers."""
        started, reason = time.monotonic(), "there is none"
        for left_s in _until(deadline):
            try:
                actor = self._ray.get_actor(actor_name(address, device), namespace=NAMESPACE)
                return actor, self._ray.get(actor.served.remote(), timeout=max(1.0, left_s))
            except ValueError:
                continue
            except (self._ray.exceptions.RayActorError, self._ray.exceptions.GetTimeoutError) as error:
                reason = str(error).partition("\n")[0]
        raise UnavailableError(
            f"no server at {address} for {device} in {time.monotonic() - started:.0f} s: {reason}; its process has not "
            f"called tf.train.Server yet, or has ended ({WAIT_VARIABLE} says how many seconds to wait)",
            device=device,
        )


def _until(deadline: float) -> Iterator[float]:
    """Yield the seconds that are left, at least once, with growing pauses between."""
    pause_s = _FIRST_LOOK_S
    while True:
        left_s = deadline - time.monotonic()
        yield max(0.0, left_s)
        if left_s <= 0:
            return
        time.sleep(min(pause_s, left_s))
        pause_s = min(2 * pause_s, _LATER_LOOKS_S)


def _passes(device: str, filters: Sequence[DeviceSpec]) -> bool:
    return not filters or any(spec.matches(DeviceSpec.from_string(device)) for spec in filters)
