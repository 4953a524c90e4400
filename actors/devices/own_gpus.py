"""The GPUs of a worker, which to everybody else is one device: they run what they can of a replica's part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tfray.actors.links.carriers import LENT_BYTES
from tfray.framework.device_spec import DeviceSpec
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
    return [Device.open(_beside(device.name, index), ordinal) for index, ordinal in enumerate(ordinals)]


def plan_of(part: Partition, device: Device, gpus: Sequence[Device]) -> Plan | PlanGroup:
    """How a device runs a partition; `gpus` are those beside it, which take part in what replicas run."""
    if gpus and part.device == REPLICA_DEVICE:
        return group_of(part, device, gpus)
    return Plan(part, device, sends_copy=True, sent_in_place_bytes=LENT_BYTES)


def group_of(part: Partition, device: Device, gpus: Sequence[Device]) -> PlanGroup:
    """The plans of a partition on a CPU and the GPUs beside it.

    Random streams of all of them are among the state of the CPU's session, where they are saved from.
    """
    compiled = over_own_devices(part, [_beside(part.device, index) for index in range(len(gpus))])
    devices = {part.device: device}
    for index, gpu in enumerate(gpus):
        devices[_beside(part.device, index)] = replace(gpu, session_state=device.session_state)
    # What one device sends to another it may read in place: no memory is used again before the step is over.
    plans = [Plan(each, devices[each.device], sends_copy=False) for each in compiled.partitions]
    return PlanGroup(part, plans, compiled.feeds, compiled.fetches)


def _beside(cpu: str, index: int) -> str:
    return DeviceSpec.from_string(cpu).replace(device_type="GPU", device_index=index).to_string()
