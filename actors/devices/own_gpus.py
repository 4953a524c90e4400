"""The GPUs of a worker, which to everybody else is one device: they run what they can of a replica's part."""

from __future__ import annotations

from collections.abc import Sequence

from tfray.actors.links.carriers import LENT_BYTES
from tfray.framework.device_spec import gpu_beside
from tfray.placement.own_devices import over_own_devices
from tfray.placement.replicate import REPLICA_DEVICE
from tfray.runtime.device import Device
from tfray.runtime.plan import Partition, Plan
from tfray.runtime.plan_group import PlanGroup


def own_gpus(device: Device, ordinals: Sequence[int]) -> list[Device]:
    """The GPUs beside a CPU; none beside a GPU. They are called as GPUs of the same task.

    Raises:
        NotFoundError: CuPy does not see one of them.
    """
    if device.type != "CPU":
        return []
    return [Device.open(gpu_beside(device.name, index), ordinal) for index, ordinal in enumerate(ordinals)]


def plan_of(part: Partition, device: Device, gpus: Sequence[Device]) -> Plan | PlanGroup:
    """How a device runs a partition; `gpus` are those beside it, which take part in what replicas run."""
    if gpus and part.device == REPLICA_DEVICE:
        cut = over_own_devices(part, len(gpus))
        return PlanGroup.of(part, cut.partitions, cut.feeds, cut.fetches, device, gpus)
    return Plan(part, device, sends_copy=True, sent_in_place_bytes=LENT_BYTES)
