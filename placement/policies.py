"""Policies: they choose among feasible devices where the program leaves the device open."""

from __future__ import annotations

from collections.abc import Sequence

from tfray.framework.device_spec import DeviceSpec
from tfray.framework.graph import Graph, Operation
from tfray.placement.cost import CostModel
from tfray.placement.placer import Choice, JointPolicy, Policy


def prefer(device: str) -> Policy:
    """The policy that takes `device` wherever it is feasible, and the first feasible one elsewhere."""

    def choose(group: Sequence[Operation], feasible: Sequence[str]) -> str:
        return device if device in feasible else feasible[0]

    return choose


def spread_over_jobs(cost: CostModel, policy: Policy) -> JointPolicy:
    """A joint policy that follows `policy`, but spreads variables that may go to any task of one job evenly over it."""

    def choose_all(graph: Graph, choices: Sequence[Choice]) -> list[str]:
        chosen = [policy(*choice) for choice in choices]
        within_job = [
            feasible if len({DeviceSpec.from_string(name).job for name in feasible}) == 1 else [device]
            for (_, feasible), device in zip(choices, chosen, strict=True)
        ]
        return balanced(chosen, within_job, [sum(map(cost.variable_bytes, group)) for group, _ in choices])

    return choose_all


def balanced(chosen: Sequence[str], feasible: Sequence[Sequence[str]], held: Sequence[int]) -> list[str]:
    """`chosen`, with each group that holds variables moved to where the fewest bytes are, the largest group first.

    Args:
        chosen: Device of each group.
        feasible: Devices to which each group may go.
        held: Bytes of variables in each group.
    """
    result, load = list(chosen), dict[str, int]()
    for number, devices in enumerate(feasible):
        if len(devices) == 1:
            load[devices[0]] = load.get(devices[0], 0) + held[number]
    for number in sorted(range(len(held)), key=lambda number: -held[number]):
        if held[number] and len(feasible[number]) > 1:
            result[number] = min(feasible[number], key=lambda device: load.get(device, 0))
            load[result[number]] = load.get(result[number], 0) + held[number]
    return result
