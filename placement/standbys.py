"""Standbys of parameter shards: devices that take part in every update of a shard, and send replicas nothing.

A standby runs its shard's partition under a name of its own, without what leads to replicas only. Replicas send it what
they send the shard. What a shard sends to another, it sends to the other's standby too, and so does its own standby, by
the same keys: whichever comes first counts. So the two hold the same variables after each step, and everybody can do
without either.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from tfray.framework.effects import access_of, is_stateful
from tfray.framework.graph import Operation
from tfray.framework.importer import from_graph_def
from tfray.framework.plain_graph import PlainGraph, PlainNode, PlainRegion
from tfray.framework.traversal import predecessors, reachable_backward
from tfray.runtime.edge_key import EdgeKey
from tfray.runtime.plan import Partition

SUFFIX: Final = "/standby"
"""End of the name of a Send to a standby; before it stands the name of that to the shard."""


@dataclass(frozen=True)
class Standbys:
    """The partitions of a replicated step that has standbys.

    Attributes:
        shards: The partitions of the shards.
        standbys: By shard, that of its standby.
        replica: What each replica runs.
    """

    shards: list[Partition]
    standbys: dict[str, Partition]
    replica: Partition


def with_standbys(shards: Sequence[Partition], replica: Partition, standbys: Mapping[str, str]) -> Standbys:
    """Add standbys to a replicated step.

    Args:
        shards: What the shards run in a step.
        replica: What each replica runs.
        standbys: By shard, the full name of its standby's device. A shard may have none.
    """

    def to_both(node: PlainNode) -> list[PlainNode]:
        return _to_both(node, standbys)

    made = [_rewritten(_guarded(part, replica.device), _seeded) for part in shards]
    made = [replace(_rewritten(part, to_both), also_from=dict(standbys)) for part in made]
    receivers = {part.device for part in made}.union(standbys.values())
    twins = {part.device: _twin(part, standbys[part.device], receivers) for part in made if part.device in standbys}
    sender = _rewritten(replica, to_both)
    for key, reduction in replica.reductions.items():
        edge = EdgeKey.parse(key)
        if edge.destination in standbys:
            sender.reductions[str(edge._replace(destination=standbys[edge.destination]))] = reduction
    return Standbys(made, twins, sender)


Rewrite = Callable[[PlainNode], list[PlainNode]]
"""The operations that stand in the place of one."""


def _guarded(part: Partition, replica: str) -> Partition:
    """A partition in which no variable changes before replicas have sent all that they send.

    So a step that lacks contributions has changed nothing. All contributions are handed over at once.
    """
    ops = part.graph.get_operations()
    taken = next((op for op in ops if op.type == "Recv" and op.attr("source") == replica), None)
    if taken is None:
        return part
    waiting: set[Operation] = set()
    early: set[str] = set()
    for op in ops:
        if op.type == "Recv" or not waiting.isdisjoint(predecessors(op)):
            waiting.add(op)
        elif access_of(op) == "update":
            early.add(op.name)
    if not early:
        return part
    plain = part.graph.as_plain()
    later = [
        replace(node, input=[*node.input, f"^{taken.name}"]) if node.name in early else node
        for node in plain.node
        if node.name != taken.name
    ]
    first = next(node for node in plain.node if node.name == taken.name)
    return replace(part, graph=from_graph_def(PlainGraph([first, *later], seed=plain.seed)))


def _seeded(node: PlainNode) -> list[PlainNode]:
    """A random operation without seeds gets one: a shard and its standby must draw the same numbers."""
    if node.attr.get("seed") == 0 and node.attr.get("seed2") == 0:
        return [replace(node, attr=node.attr | {"seed2": secrets.randbits(62) + 1})]
    return [node]


def _to_both(node: PlainNode, standbys: Mapping[str, str]) -> list[PlainNode]:
    """A Send to a shard is one to its standby as well."""
    standby = standbys.get(node.attr["destination"]) if node.op == "Send" else None
    if standby is None:
        return [node]
    key = str(EdgeKey.parse(node.attr["key"])._replace(destination=standby))
    other = replace(node, name=node.name + SUFFIX, attr=node.attr | {"key": key, "destination": standby})
    return [node, other]


def _twin(part: Partition, device: str, receivers: Collection[str]) -> Partition:
    """What the standby of a shard runs on a device. It sends to `receivers` only, under the name of the shard."""

    def of_twin(node: PlainNode) -> list[PlainNode]:
        attr = node.attr
        if node.op == "Send" and attr["destination"] not in receivers:
            return []  # to replicas, or to a shard that serves one
        if node.op == "Recv":
            attr = attr | {"key": str(EdgeKey.parse(attr["key"])._replace(destination=device))}
        return [replace(node, device=device, attr=attr)]

    twin = _rewritten(part, of_twin)
    needed = reachable_backward([op for op in twin.graph.get_operations() if _has_effect(op)])
    names = {op.name for op in needed}
    plain = twin.graph.as_plain()
    kept = [node for node in plain.node if node.name in names]
    return replace(twin, device=device, graph=from_graph_def(PlainGraph(kept, seed=plain.seed)))


def _has_effect(op: Operation) -> bool:
    """Whether a standby must run an operation: a shard's tensors arrive, and go, however little depends on them."""
    return op.type in ("Send", "Recv") or bool(op.op_def.regions) or (is_stateful(op) and access_of(op) != "read")


def _rewritten(part: Partition, rewrite: Rewrite) -> Partition:
    """A copy of a partition with other operations in the place of some."""
    plain = part.graph.as_plain()
    graph = from_graph_def(PlainGraph(_nodes(plain.node, rewrite), seed=plain.seed))
    return replace(part, graph=graph, reductions=dict(part.reductions))


def _nodes(nodes: Iterable[PlainNode], rewrite: Rewrite) -> list[PlainNode]:
    made = [new for node in nodes for new in rewrite(_inside(node, rewrite))]
    names = {f"^{node.name}" for node in made}
    return [
        replace(node, input=[each for each in node.input if not each.startswith("^") or each in names]) for node in made
    ]


def _inside(node: PlainNode, rewrite: Rewrite) -> PlainNode:
    """An operation with its regions rewritten."""
    attrs = {
        name: PlainRegion(_nodes(value.node, rewrite), value.inputs, value.outputs)
        if isinstance(value, PlainRegion)
        else value
        for name, value in node.attr.items()
    }
    return replace(node, attr=attrs)
