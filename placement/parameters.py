"""The part of a replicated step in which parameter shards send values to replicas without being asked.

It is cut out of the shards' partitions. It reads variables and leaves out whatever depends on contributions. With it a
replica can compute a step that some or all shards have already applied. If a program lets replicas wait for an update
to which they contribute nothing, this part contains that update, which is then made once more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tfray.framework.graph import Operation
from tfray.framework.importer import from_graph_def
from tfray.framework.plain_graph import PlainGraph, PlainNode, PlainRegion
from tfray.framework.region import ops_within
from tfray.framework.traversal import reachable_backward
from tfray.placement.replicate import serving_device
from tfray.runtime.plan import Partition


def parameter_partitions(shards: Sequence[Partition], replica: str) -> dict[str, Partition]:
    """For each shard that sends something to replicas, or to a shard that does, the operations that lead to it.

    What shards send to each other here goes to their serving devices (see `serving_device`), not to the shards' own.

    Args:
        shards: What the shards run in a step, see `CompiledReplicaStep`.
        replica: The name that stands for every replica's device.
    """
    sends: list[tuple[str, Operation, str, str]] = []
    for part in shards:
        for op in part.graph.get_operations():
            ends = [inner.attrs for inner in ops_within(op) if inner.type == "Send"]
            sends += [(part.device, op, attrs["key"], attrs["destination"]) for attrs in ends]
    senders = {key: (device, op) for device, op, key, _ in sends}
    needed: dict[str, set[Operation]] = {}
    waiting = [(device, op) for device, op, _, destination in sends if destination == replica]
    while waiting:
        device, op = waiting.pop()
        ops = needed.setdefault(device, set())
        found = reachable_backward([op]) - ops
        ops |= found
        received = [inner.attrs["key"] for each in found for inner in ops_within(each) if inner.type == "Recv"]
        waiting += [senders[key] for key in received if key in senders]
    others = {part.device: serving_device(part.device) for part in shards}
    return {part.device: _part(part, needed[part.device], others) for part in shards if part.device in needed}


def _part(whole: Partition, ops: set[Operation], others: dict[str, str]) -> Partition:
    """The operations `ops` of a partition. `others`: for each destination, the device to which to send instead."""
    plain = whole.graph.as_plain()
    names = {op.name for op in ops}
    nodes = [_redirected(node, others) for node in plain.node if node.name in names]
    return Partition(whole.device, from_graph_def(PlainGraph(nodes, seed=plain.seed)), optimize=whole.optimize)


def _redirected(node: PlainNode, others: dict[str, str]) -> PlainNode:
    attrs: dict[str, Any] = {
        name: PlainRegion([_redirected(inner, others) for inner in value.node], value.inputs, value.outputs)
        if isinstance(value, PlainRegion)
        else value
        for name, value in node.attr.items()
    }
    if node.op == "Send":
        attrs["destination"] = others.get(attrs["destination"], attrs["destination"])
    return replace(node, attr=attrs)
