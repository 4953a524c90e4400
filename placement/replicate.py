"""Compile a training step in which one subgraph, the replica, runs on any number of workers.

The graph is placed over the parameter shards and one device that stands for every replica. What crosses from the
shards to the replica is sent to each replica; what crosses back is combined by a ReplicaReduce operation on the
shard. Optimizers mark gradients with one; every other crossing edge gets one here: floating-point tensors are
averaged, of anything else the first replica's value is taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tfray.errors import InvalidArgumentError
from tfray.framework.graph import Graph, Operation, Tensor
from tfray.framework.traversal import predecessors, reachable_backward
from tfray.placement.partition import is_copied_constant, partition
from tfray.placement.placer import place
from tfray.placement.policies import prefer
from tfray.placement.prune import prune
from tfray.placement.schedule import schedule
from tfray.placement.simplify import simplify
from tfray.runtime.plan import Partition


@dataclass(frozen=True)
class CompiledReplicaStep:
    """A replicated step.

    Attributes:
        shards: One partition per parameter shard that takes part.
        replica: The partition that every replica runs; it fetches every tensor asked for, in order.
        feeds: The replica's feeds, as indices into the caller's feeds.
    """

    shards: list[Partition]
    replica: Partition
    feeds: list[int]


def compile_replica_step(
    fetched: Sequence[Tensor], targets: Sequence[Operation], fed: Sequence[Tensor], shards: Sequence[str], replica: str
) -> CompiledReplicaStep:
    """Compile a training step for replicas.

    Args:
        fetched: Tensors that each replica returns.
        targets: The training operations. Variables must ask for one of `shards` (see `replica_device_setter`).
        fed: Tensors that each replica feeds from its own input.
        shards: Full names of the devices for variables.
        replica: The name that stands for every replica's device.

    Raises:
        InvalidArgumentError: A placement constraint cannot be met, or a fetched tensor depends on the update.
    """
    wanted = [*targets, *(tensor.op for tensor in fetched)]
    simplified = simplify(prune(wanted, fed), fed, wanted)
    placement = place(simplified.graph, [*shards, replica], allow_soft_placement=True, policy=prefer(replica))
    after = _move_after_reduction(simplified.graph, placement, shards[0], replica)
    fetches = [simplified.tensors[tensor] for tensor in fetched]
    _check_fetches(fetches, after)
    feed_ops = [simplified.feeds[tensor] for tensor in fed]
    graph, placement, tensors, ops = _reduce_crossing_edges(simplified.graph, placement, replica)
    reported = [_on_replica(tensors[tensor], graph, placement, replica) for tensor in fetches]
    order, edges = schedule(graph)
    roots = [ops[simplified.ops[op]] for op in wanted if op in simplified.ops]
    live = reachable_backward([*roots, *(tensor.op for tensor in reported)])
    partitions = partition([op for op in order if op in live], placement, [ops[op] for op in feed_ops], reported, edges)
    by_device = {part.device: part for part in partitions}
    own = by_device.pop(replica, None) or Partition(replica, Graph())
    number = {op.name: i for i, op in enumerate(feed_ops)}
    return CompiledReplicaStep(list(by_device.values()), own, [number[name] for name in own.feeds])


def _check_fetches(fetches: Sequence[Tensor], after: set[Operation]) -> None:
    for tensor in fetches:
        if tensor.op in after:
            raise InvalidArgumentError(
                f"{tensor.name!r} cannot be reported by a replica: it depends on the combined update of the same "
                "step; report a value computed before the update",
                op_name=tensor.op.name,
                site=tensor.op.site,
            )


def _on_replica(tensor: Tensor, graph: Graph, placement: dict[Operation, str], replica: str) -> Tensor:
    """`tensor` as a value that the replica has."""
    if placement[tensor.op] == replica:
        return tensor
    name = graph.unique_name(f"_report/{tensor.op.name}")
    op = graph.create_op("Identity", [tensor], {}, name, exact_name=True, device=replica, site=tensor.op.site)
    placement[op] = replica
    return op.outputs[0]


def _move_after_reduction(graph: Graph, placement: dict[Operation, str], shard: str, replica: str) -> set[Operation]:
    """What depends on a combined value cannot run on a replica, which must be done before values are combined.

    Returns:
        Every operation that depends on a combined value.
    """
    after: set[Operation] = set()
    for op in graph.get_operations():
        if op.type == "ReplicaReduce" or any(earlier in after for earlier in predecessors(op)):
            after.add(op)
            if placement[op] == replica:
                placement[op] = shard
    return after


def _reduce_crossing_edges(
    graph: Graph, placement: Mapping[Operation, str], replica: str
) -> tuple[Graph, dict[Operation, str], dict[Tensor, Tensor], dict[Operation, Operation]]:
    """Copy the graph with a ReplicaReduce on every edge that leaves the replica for a shard."""
    copy = Graph()
    placed: dict[Operation, str] = {}
    tensors: dict[Tensor, Tensor] = {}
    ops: dict[Operation, Operation] = {}
    reduced: dict[tuple[Tensor, str], Tensor] = {}

    def entering(tensor: Tensor, op: Operation) -> Tensor:
        """`tensor` as an input of `op`."""
        device = placement[op]
        stays = placement[tensor.op] != replica or device == replica or is_copied_constant(tensor.op)
        if stays or op.type == "ReplicaReduce":
            return tensors[tensor]
        if (tensor, device) not in reduced:
            made = copy.create_op(
                "ReplicaReduce",
                [tensors[tensor]],
                {"reduction": "mean" if tensor.dtype.is_differentiable else "first"},
                copy.unique_name(f"_replica_reduce/{tensor.op.name}"),
                exact_name=True,
                device=device,
                site=tensor.op.site,
            )
            placed[made] = device
            reduced[tensor, device] = made.outputs[0]
        return reduced[tensor, device]

    for op in graph.get_operations():
        made = copy.create_op(
            op.type,
            [entering(tensor, op) for tensor in op.inputs],
            op.attrs,
            op.name,
            control_inputs=[ops[control] for control in op.control_inputs],
            exact_name=True,
            device=op.device,
            site=op.site,
            shapes=[tensor.shape for tensor in op.outputs],
        )
        ops[op], placed[made] = made, placement[op]
        tensors.update(zip(op.outputs, made.outputs, strict=True))
    return copy, placed, tensors, ops
