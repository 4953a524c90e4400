"""From the user's graph to partitions: the passes in order.

prune → simplify → read last → place → schedule → partition. None of them changes the user's graph.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from tfray.bulk import making_much
from tfray.framework.dtypes import DType
from tfray.framework.graph import Operation, Tensor
from tfray.placement.last_reads import are_settled, read_last
from tfray.placement.partition import home_of, partition
from tfray.placement.placer import JointPolicy, Policy, default_policy, place
from tfray.placement.prune import prune, ungrouped
from tfray.placement.schedule import schedule
from tfray.placement.simplify import simplify
from tfray.runtime.plan import Partition


@dataclass(frozen=True)
class CompiledStep:
    """A step ready to be registered with its devices.

    Attributes:
        partitions: One per device that takes part.
        fetches: For each fetched tensor, its partition and its place among that partition's fetches.
        feeds: For each partition, its feeds as indices into the caller's feeds.
    """

    partitions: list[Partition]
    fetches: list[tuple[int, int]]
    feeds: list[list[int]]


@making_much()
def compile_step(
    fetched: Sequence[Tensor],
    targets: Sequence[Operation],
    fed: Sequence[Tensor],
    devices: Sequence[str],
    *,
    allow_soft_placement: bool = False,
    optimize: bool = True,
    policy: Policy = default_policy,
    joint_policy: JointPolicy | None = None,
    sent_dtype: DType | None = None,
    finished: Collection[Operation] = (),
) -> CompiledStep:
    """Compile what must run for some fetches.

    Args:
        fetched: Tensors to return, none of them fed.
        targets: Further operations to run.
        fed: Tensors that the caller feeds.
        devices: Full names of the devices, default first.
        allow_soft_placement: See `placer.place`.
        optimize: False runs every operation as written: no folding, merging or skipping.
        policy: Chooses devices for what the program leaves open.
        joint_policy: Chooses devices for all groups together; see `placer.place`.
        sent_dtype: Narrower dtype for float32 tensors between tasks; see `partition.partition`.
        finished: Operations that have run already; see `prune.prune`.
    """
    wanted = [*(ungrouped(targets) if optimize else targets), *(tensor.op for tensor in fetched)]
    ops = prune(wanted, fed, finished)
    simplified = simplify(ops, fed, wanted, fetched, optimize)
    live = simplified.live(wanted)
    fetches = read_last(
        simplified.graph, [simplified.tensors[tensor] for tensor in fetched], live, are_settled(fetched, ops)
    )
    live.update(tensor.op for tensor in fetches)  # results folded one by one are constants
    placement = place(
        simplified.graph, devices, allow_soft_placement=allow_soft_placement, policy=policy, joint_policy=joint_policy
    )
    order, edges = schedule(simplified.graph)
    feed_ops = [simplified.feeds[tensor] for tensor in fed]
    edges = [(earlier, later) for earlier, later in edges if earlier in live and later in live]
    partitions = partition(
        [op for op in order if op in live], placement, feed_ops, fetches, edges, optimize, sent_dtype
    )
    return assembled(partitions, placement, feed_ops, fetches)


def assembled(
    partitions: list[Partition],
    placement: Mapping[Operation, str],
    feeds: Sequence[Operation],
    fetches: Sequence[Tensor],
) -> CompiledStep:
    """The step of these partitions; the other arguments are those of `partition.partition`."""
    position = {part.device: i for i, part in enumerate(partitions)}
    counts = [0] * len(partitions)
    places: list[tuple[int, int]] = []
    for tensor in fetches:
        index = position[home_of(tensor, placement)]
        places.append((index, counts[index]))
        counts[index] += 1
    number = {op.name: i for i, op in enumerate(feeds)}
    return CompiledStep(partitions, places, [[number[name] for name in part.feeds] for part in partitions])
