"""Placing by cost: operations without a device of their own go where the step is predicted to take least time.

Variables cannot move later, so they are placed first and for good: for the training step, if the graph has one (the
operations in the collection ``train_op``). Everything else is placed anew for each step.

The search begins with the placement of `placer.default_policy`, except that variables which may go to any task of one
job are spread evenly, by bytes. Several other placements are simulated (`step_time.simulate`), and the best of them is
improved group by group. If none is clearly faster than the first placement, that one stays.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from typing import Final

from tfray.framework.graph import Graph, Operation
from tfray.framework.graph_keys import GraphKeys
from tfray.placement.cost import CostModel
from tfray.placement.partition import is_copied_constant
from tfray.placement.placer import Choice, default_policy, place
from tfray.placement.policies import balanced, spread_over_jobs
from tfray.placement.prune import prune
from tfray.placement.resource_homes import ResourceHomes
from tfray.placement.schedule import schedule
from tfray.placement.simplify import simplify
from tfray.placement.step_time import simulate, tasks_of_placed

CLEARLY_FASTER: Final = 0.9
"""Another placement replaces the first one only if its predicted time is less than this part of the first one's. A
larger value follows smaller predicted gains, which may be errors of the prediction."""

_MAX_SIMULATED_TASKS: Final = 100_000
"""Tasks to simulate at most while a placement is improved: it bounds the time of the search."""


class CostPlacer(ResourceHomes):
    """Chooses devices for all groups of a graph together.

    Args:
        cost: What operations and messages take.
        homes: Device of each resource, by name. The placer adds those that it places, and keeps those that are there.
    """

    def __init__(self, cost: CostModel | None = None, homes: MutableMapping[str, str] | None = None) -> None:
        super().__init__(default_policy, homes)
        self.cost = cost or CostModel()

    def settle(self, graph: Graph, devices: Sequence[str], allow_soft_placement: bool = False) -> None:
        """Give every resource of the user's graph a home, for the training step if there is one."""
        ops = graph.get_operations()
        if not self._open_resources(ops):
            return
        targets = [getattr(each, "op", each) for each in graph.get_collection(GraphKeys.TRAIN_OP)]
        trained = [op for op in targets if isinstance(op, Operation)]
        for wanted, plan in ((trained, self.__call__), (list(ops), self._spread)):
            if wanted:
                kept = simplify(prune(wanted, []), [], wanted, optimize=False).graph
                placement = place(kept, devices, allow_soft_placement=allow_soft_placement, joint_policy=plan)
                for op in self._open_resources(list(placement)):
                    self._keep([op], placement[op])

    def __call__(self, graph: Graph, choices: Sequence[Choice]) -> list[str]:
        """The device of each group of a step."""
        choices = [self._at_home(choice) for choice in choices]
        chosen = list(self._spread(graph, choices))
        if all(len(feasible) == 1 for _, feasible in choices):
            return chosen
        return _Search(graph, choices, self.cost).best(chosen)

    def _spread(self, graph: Graph, choices: Sequence[Choice]) -> Sequence[str]:
        """The placement with which the search begins."""
        return spread_over_jobs(self.cost, default_policy)(graph, [self._at_home(choice) for choice in choices])


class _Search:
    """The search for a placement of one graph."""

    def __init__(self, graph: Graph, choices: Sequence[Choice], cost: CostModel) -> None:
        self._choices = choices
        self._cost = cost
        self._order = schedule(graph)[0]
        self._group_of = {op: number for number, (group, _) in enumerate(choices) for op in group}
        self._open = [number for number, (_, feasible) in enumerate(choices) if len(feasible) > 1]
        self._held = [sum(map(cost.variable_bytes, group)) for group, _ in choices]

    def best(self, default: list[str]) -> list[str]:
        """The placement to use; `default` unless another is clearly faster."""
        default_s = self._seconds(default)
        spread = balanced(default, [feasible for _, feasible in self._choices], self._held)
        stateless = {number for number in self._open if not self._held[number]}
        candidates = [default, spread, self._near_consumers(default), self._near_consumers(spread)]
        candidates += [self._earliest(default, set(self._open)), self._earliest(spread, stateless)]
        timed = min(((self._seconds(chosen), chosen) for chosen in candidates), key=lambda pair: pair[0])
        seconds, chosen = self._improved(*timed)
        return chosen if seconds < CLEARLY_FASTER * default_s else default

    def _seconds(self, chosen: Sequence[str]) -> float:
        placement = {op: chosen[number] for op, number in self._group_of.items()}
        return simulate(tasks_of_placed(self._order, placement, self._cost), self._cost.machine).seconds

    def _near_consumers(self, chosen: Sequence[str]) -> list[str]:
        """A placement that moves what only one device needs, such as initial values, to that device."""
        result, open_groups = list(chosen), set(self._open)
        for op in reversed(self._order):
            number = self._group_of.get(op)
            if number is None or number not in open_groups or self._held[number]:
                continue
            followers = [after for tensor in op.outputs for after in tensor.consumers() if after in self._group_of]
            devices = {result[self._group_of[after]] for after in followers}
            if len(devices) == 1 and devices <= set(self._choices[number][1]):
                result[number] = devices.pop()
        return result

    def _earliest(self, chosen: Sequence[str], undecided: set[int]) -> list[str]:
        """A placement with each group where its first operation would end soonest, as in the white paper of 2015."""
        result = list(chosen)
        free: dict[str, float] = {}
        done: dict[Operation, float] = {}
        for op in self._order:
            number = self._group_of.get(op)
            if number is None:
                continue
            if number in undecided:
                undecided.discard(number)
                ends = {device: self._end_s(op, device, result, free, done) for device in self._choices[number][1]}
                result[number] = min(ends, key=ends.__getitem__)
            done[op] = free[result[number]] = self._end_s(op, result[number], result, free, done)
        return result

    def _end_s(
        self,
        op: Operation,
        device: str,
        chosen: Sequence[str],
        free: Mapping[str, float],
        done: Mapping[Operation, float],
    ) -> float:
        """When an operation would end on a device, in seconds from the start of the step."""
        machine, begin = self._cost.machine, free.get(device, 0.0)
        for tensor in op.inputs:
            if tensor.op in done:
                source, late_s = chosen[self._group_of[tensor.op]], 0.0
                if source != device and not is_copied_constant(tensor.op):
                    size = self._cost.tensor_bytes(tensor)
                    late_s = size / machine.copy_bytes_per_s + machine.travel_s(size, source, device)
                begin = max(begin, done[tensor.op] + late_s)
        return begin + self._cost.seconds(op, device)

    def _improved(self, seconds: float, chosen: list[str]) -> tuple[float, list[str]]:
        """Move single groups, the heaviest first, as long as a move makes the step shorter."""
        left = _MAX_SIMULATED_TASKS
        weights = {number: self._weight(number) for number in self._open}
        for number in sorted(weights, key=lambda number: -weights[number]):
            for device in self._choices[number][1]:
                if device == chosen[number]:
                    continue
                left -= len(self._order)
                if left < 0:
                    return seconds, chosen
                moved = [*chosen[:number], device, *chosen[number + 1 :]]
                moved_s = self._seconds(moved)
                if moved_s < 0.999 * seconds:
                    seconds, chosen = moved_s, moved
        return seconds, chosen

    def _weight(self, number: int) -> float:
        """Seconds that a group takes, plus the seconds that sending its results would take."""
        group, feasible = self._choices[number]
        moving = sum(self._cost.tensor_bytes(tensor) for op in group for tensor in op.outputs)
        computing_s = sum(self._cost.seconds(op, feasible[0]) for op in group)
        return computing_s + (moving + self._held[number]) / self._cost.machine.bytes_per_s
