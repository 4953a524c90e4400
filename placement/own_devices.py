"""Spread what one device has to run over the GPUs that its process has.

To everybody else a worker with GPUs is one device, its CPU. It takes what shards send, and sends what they are to have.
So whatever is decided about replicas holds for it too. Its process places its partition once more, on that CPU and the
GPUs, and cuts it again.

On the CPU stay the edges to other devices, and all that takes a resource: variables of the worker, queues, tables. What
else has a kernel for GPUs goes to the first one, or to the one for which the program asks. A branch or a loop stays on
one device.
"""

from __future__ import annotations

from tfray.framework import dtypes
from tfray.framework.device_spec import gpu_beside
from tfray.framework.graph import Graph, Operation
from tfray.framework.region import ops_within
from tfray.placement.partition import partition
from tfray.placement.pipeline import CompiledStep, assembled
from tfray.placement.placer import place
from tfray.runtime.plan import Partition


def over_own_devices(part: Partition, gpus: int) -> CompiledStep:
    """The partitions of a device and of the GPUs beside it, that of the device first.

    Args:
        part: The partition of the device. Its operations are asked for other devices.
        gpus: How many GPUs there are; they are called as `gpu_beside` says.

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
    devices = [part.device, *(gpu_beside(part.device, index) for index in range(gpus))]
    placement = place(graph, devices, allow_soft_placement=True)
    feeds = [graph.get_operation_by_name(name) for name in part.feeds]
    fetches = [graph.tensor_named(name) for name in part.fetches]
    cut = partition(ops, placement, feeds, fetches, optimize=part.optimize, large_apart=True, prefix="_own/")
    if all(each.device != part.device for each in cut):
        cut.append(Partition(part.device, Graph(), optimize=part.optimize))
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
