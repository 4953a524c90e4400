"""Spread what one device has to run over the GPUs that its process has.

To everybody else a worker with GPUs is one device, its CPU. It takes what shards send, and sends what they are to have.
So whatever is decided about replicas holds for it too. Its process places its partition once more, on that CPU and the
GPUs, and cuts it again.

On the CPU stay the edges to other devices, and all that takes a resource: variables of the worker, queues, tables. What
else has a kernel for GPUs goes to the first one, or to the one for which the program asks. A branch or a loop stays on
one device.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tfray.framework import dtypes
from tfray.framework.device_spec import DeviceSpec
from tfray.framework.graph import Operation
from tfray.framework.region import ops_within
from tfray.placement.partition import partition
from tfray.placement.pipeline import CompiledStep, assembled
from tfray.placement.placer import place
from tfray.runtime.device import Device
from tfray.runtime.plan import Partition, Plan
from tfray.runtime.plan_group import PlanGroup


def beside(cpu: str, index: int) -> str:
    """The name of a GPU beside a CPU."""
    return DeviceSpec.from_string(cpu).replace(device_type="GPU", device_index=index).to_string()


def group_of(part: Partition, device: Device, gpus: Sequence[Device]) -> PlanGroup:
    """The plans of a partition on its device and the GPUs beside that.

    Random streams of all of them are among the state of the device's session, where they are saved from.
    """
    compiled = over_own_devices(part, [beside(part.device, index) for index in range(len(gpus))])
    devices = {part.device: device}
    for index, gpu in enumerate(gpus):
        devices[beside(part.device, index)] = replace(gpu, session_state=device.session_state)
    # What one device sends to another it may read in place: no memory is used again before the step is over.
    plans = [Plan(each, devices[each.device], sends_copy=False) for each in compiled.partitions]
    return PlanGroup(part, plans, compiled.feeds, compiled.fetches)


def over_own_devices(part: Partition, gpus: Sequence[str]) -> CompiledStep:
    """The partitions of a device and of the GPUs beside it, that of the device first.

    Args:
        part: The partition of the device. Its operations are asked for other devices.
        gpus: Full names of the GPUs.

    Raises:
        InvalidArgumentError: Operations that must share a device ask for several.
    """
    graph = part.graph
    ops = graph.get_operations()
    graph.ask_for_devices({op: _request(op, part) for op in ops})
    for op in ops:
        for inner in ops_within(op):
            if inner is not op:
                inner.graph.ask_for_devices({inner: ""})
    placement = place(graph, [part.device, *gpus], allow_soft_placement=True)
    feeds = [graph.get_operation_by_name(name) for name in part.feeds]
    fetches = [graph.tensor_named(name) for name in part.fetches]
    cut = partition(ops, placement, feeds, fetches, optimize=part.optimize, large_apart=True, prefix="_own/")
    if all(each.device != part.device for each in cut):
        cut.append(Partition(part.device, type(graph)(), optimize=part.optimize))
    cut.sort(key=lambda each: each.device != part.device)
    return assembled(cut, placement, feeds, fetches)


def _request(op: Operation, part: Partition) -> str:
    """The device for which an operation asks; ``""`` for the first GPU that can run it."""
    if any(inner.type in ("Send", "Recv") for inner in ops_within(op)):
        return part.device
    if any(tensor.dtype is dtypes.resource for tensor in op.outputs):
        return part.device
    if any(tensor.dtype in (dtypes.resource, dtypes.variant) for tensor in [*op.inputs, *op.outputs]):
        return ""  # it follows what it takes
    return part.requests.get(op.name, "")
