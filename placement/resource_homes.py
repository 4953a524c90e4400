"""Homes of resources: a variable, queue or table stays on one device for the life of its session.

A step holds only a part of the graph. If each step were placed by what it holds alone, a table could be initialised on
a GPU by one step and looked up on a CPU by the next. So the home of a resource is decided once, with everything in the
graph that takes its handle in view.
"""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence

from tfray.errors import InvalidArgumentError
from tfray.framework.effects import makes_resource, resource_name
from tfray.framework.graph import Graph, Operation
from tfray.placement.placer import Choice, Policy, choices_within, default_policy


class ResourceHomes:
    """A joint policy: resources are placed at their homes, everything else as `policy` says.

    Args:
        policy: Chooses among feasible devices.
        homes: Device of each resource, by name. Those that are placed are added; those that are there are kept.
    """

    def __init__(self, policy: Policy = default_policy, homes: MutableMapping[str, str] | None = None) -> None:
        self._policy = policy
        self.homes: MutableMapping[str, str] = {} if homes is None else homes

    def settle(self, graph: Graph, devices: Sequence[str], allow_soft_placement: bool = False) -> None:
        """Give a home to every resource of the user's graph that has none.

        Where no device meets what is asked of a resource, its home is left open: what runs may not need all of it.

        Args:
            graph: The user's graph.
            devices: Full names of the devices, default first.
            allow_soft_placement: See `placer.place`.
        """
        if len(devices) == 1 or not self._open_resources(graph.get_operations()):
            return
        for group, feasible in choices_within(graph, devices, allow_soft_placement):
            open_resources = self._open_resources(group)
            if open_resources and feasible:
                home = self._policy(*self._at_home((group, feasible)))
                self._keep(open_resources, home)

    def __call__(self, graph: Graph, choices: Sequence[Choice]) -> Sequence[str]:
        """The device of each group of a step."""
        chosen = [self._policy(*self._at_home(choice)) for choice in choices]
        for (group, _), device in zip(choices, chosen, strict=True):
            self._keep(self._open_resources(group), device)
        return chosen

    def _open_resources(self, ops: Sequence[Operation]) -> list[Operation]:
        """Those of `ops` that make a resource without a home."""
        return [op for op in ops if makes_resource(op) and resource_name(op) not in self.homes]

    def _keep(self, resources: Sequence[Operation], home: str) -> None:
        for op in resources:
            self.homes.setdefault(resource_name(op), home)

    def _at_home(self, choice: Choice) -> Choice:
        """The choice with only the home left, if the group holds a resource that has one.

        Raises:
            InvalidArgumentError: The group cannot run where the resource is.
        """
        group, feasible = choice
        for op in group:
            home = self.homes.get(resource_name(op)) if makes_resource(op) else None
            if home is None or (home not in feasible and op.attrs.get("shared_name")):
                continue  # what shares a name on another device is another resource
            if home not in feasible:
                raise InvalidArgumentError(
                    f"{op.name!r} lives on {home} since an earlier step of this session, and operations that were "
                    f"added for it can only run on {', '.join(feasible)}; make {op.name!r} under a tf.device of one of "
                    "these, or build the whole graph before the first step",
                    op_name=op.name,
                    site=op.site,
                )
            return group, [home]
        return choice
