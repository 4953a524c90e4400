"""Assign a device to every operation.

1. Operations that must share a device form a colocation group: those joined by ``colocate_with``, and a variable
   (or other resource) with everything that takes its handle. So do stacks and datasets, whose variants stand for state.
2. A group may go to the devices that match every device request among its members and have a kernel for each, of its
   dtypes.
   When there is none and soft placement is allowed, requests keep their job and task and give up device type and index.
3. Among the feasible devices a *policy* chooses for each group by itself (see `default_policy`), or a *joint policy*
   (`JointPolicy`) chooses for all groups together (see `cost_placer`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, Final

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.device_spec import DeviceSpec, device_type
from tfray.framework.effects import NOT_HELD, dtypes_of, has_kernel, not_held
from tfray.framework.graph import Graph, Operation, Tensor
from tfray.framework.region import ops_within, passed_inputs, regions_of

SPLITTABLE: Final = ("Cond", "While")
"""Types of operations whose regions may be spread over several devices."""

Policy = Callable[[Sequence[Operation], Sequence[str]], str]
"""From the members of a group and the devices that can run them (at least one) to the device to use."""

Choice = tuple[Sequence[Operation], Sequence[str]]
"""A group and the devices that can run it, at least one."""

JointPolicy = Callable[[Graph, Sequence[Choice]], Sequence[str]]
"""A joint policy: from a graph and all its choices to the device of each group."""


def default_policy(group: Sequence[Operation], feasible: Sequence[str]) -> str:
    """The first GPU if there is one, otherwise the first device, in the cluster's order."""
    for device in feasible:
        if device_type(device) == "GPU":
            return device
    return feasible[0]


def place(
    graph: Graph,
    devices: Sequence[str],
    *,
    allow_soft_placement: bool = False,
    policy: Policy = default_policy,
    joint_policy: JointPolicy | None = None,
) -> dict[Operation, str]:
    """The full device name of every operation of `graph`.

    Args:
        graph: The graph to place.
        devices: Full names of the devices, default first.
        allow_soft_placement: Whether a request that cannot be met may move to another device type of its task.
        policy: Chooses among feasible devices.
        joint_policy: Chooses for all groups together; `policy` is then not used.

    Raises:
        InvalidArgumentError: No device meets a group's constraints; the message says which one failed.
    """
    feasible_for = _Feasible(devices, allow_soft_placement)
    groups = _Groups(graph)
    split = groups.join_regions(feasible_for)
    placement: dict[Operation, str] = {}
    choices = [(group, feasible_for(group)) for group in groups.all()]
    chosen = [policy(*choice) for choice in choices] if joint_policy is None else joint_policy(graph, choices)
    for (group, _), device in zip(choices, chosen, strict=True):
        placement.update(dict.fromkeys(group, device))
    for op in reversed(split):  # an operation within another one comes first
        _place_ends(op, placement)
    return placement


def choices_within(graph: Graph, devices: Sequence[str], allow_soft_placement: bool = False) -> list[Choice]:
    """The groups of `graph` and their feasible devices, none where there is no such device. Arguments as of `place`."""
    feasible_for = _Feasible(devices, allow_soft_placement)
    groups = _Groups(graph)
    groups.join_regions(feasible_for)
    return [(group, feasible_for.or_none(group)) for group in groups.all()]


def colocation_groups(graph: Graph) -> list[list[Operation]]:
    """Operations that must share a device, as disjoint groups in order of creation."""
    return _Groups(graph).all()


class _Feasible:
    """The devices that can run all of a group, found once for groups of the same request, types and dtypes."""

    def __init__(self, devices: Sequence[str], allow_soft_placement: bool) -> None:
        self._specs = {device: DeviceSpec.from_string(device) for device in devices}
        self._soft = allow_soft_placement
        self._asks_for_dtypes = any(spec.device_type in NOT_HELD for spec in self._specs.values())
        self._known: dict[tuple[DeviceSpec, frozenset[Any]], list[str]] = {}

    def __call__(self, group: Sequence[Operation]) -> list[str]:
        """The devices; `InvalidArgumentError` where there is none."""
        request = _merged_request(group)
        key = request, frozenset(map(self._needs, (inner for op in group for inner in ops_within(op))))
        if key not in self._known:
            self._known[key] = _feasible(group, request, self._specs, self._soft)
        return self._known[key]

    def or_none(self, group: Sequence[Operation]) -> list[str]:
        """The devices, an empty list where there is none."""
        try:
            return self(group)
        except InvalidArgumentError:
            return []

    def _needs(self, op: Operation) -> Any:
        """What decides which devices have a kernel for `op`."""
        return (op.type, dtypes_of(op)) if self._asks_for_dtypes else op.type


class _Groups:
    """Sets of operations that must share a device. Operations of a region form sets of their own until
    `join_regions` joins them with the operation that holds the region."""

    def __init__(self, graph: Graph) -> None:
        self._leader: dict[Operation, Operation] = {}
        self._passed: dict[Tensor, Tensor] = {}
        self._holders = [op for op in graph.get_operations() if op.op_def.regions]
        self._ops = [op for outer in graph.get_operations() for op in self._placed_with(outer)]
        self._number = {op: number for number, op in enumerate(self._ops)}
        by_name = {op.name: op for op in self._ops}
        for op in self._ops:
            for name in op.placed_with:
                if name in by_name:  # the other may have been pruned or folded
                    self._join(op, by_name[name])
            if not op.op_def.regions:
                for tensor in op.inputs:
                    if tensor.dtype is dtypes.resource or (tensor.dtype is dtypes.variant and op.op_def.stateful):
                        source = self._source(tensor)
                        if source in self._number:  # an element of a dataset comes from nowhere
                            self._join(op, source)

    def _placed_with(self, op: Operation) -> Iterator[Operation]:
        """`op` and the operations in its regions, except the regions' inputs; `_passed` notes where these come from."""
        yield op
        for region in regions_of(op):
            self._passed.update(passed_inputs(op, region))
            for inner in region.get_operations():
                if inner.type != "RegionInput":
                    yield from self._placed_with(inner)

    def _source(self, tensor: Tensor) -> Operation:
        """The operation that made a resource which has been passed into regions."""
        while tensor in self._passed:
            tensor = self._passed[tensor]
        return tensor.op

    def _find(self, op: Operation) -> Operation:
        leader = self._leader
        while leader.get(op, op) is not op:
            leader[op] = leader.get(leader[op], leader[op])
            op = leader[op]
        return op

    def _join(self, a: Operation, b: Operation) -> None:
        first, second = sorted((self._find(a), self._find(b)), key=self._number.__getitem__)
        self._leader[second] = first

    def join_regions(self, feasible_for: _Feasible) -> list[Operation]:
        """Give every branch and loop one device where its operations agree on one.

        Returns:
            The branches and loops that are split between devices, each before those within it.
        """
        split: list[Operation] = []
        pending = deque(self._holders)
        while pending:
            op = pending.popleft()
            inner = [member for member in ops_within(op) if member.type != "RegionInput"]
            if op.type not in SPLITTABLE or self._agree(inner, feasible_for):
                for member in inner:
                    self._join(op, member)
            else:
                split.append(op)
                regions = regions_of(op)
                pending.extend(held for region in regions for held in region.get_operations() if held.op_def.regions)
        return split

    def _agree(self, ops: Sequence[Operation], feasible_for: _Feasible) -> bool:
        leaders = {self._find(op) for op in ops}
        return bool(feasible_for.or_none([op for op in self._ops if self._find(op) in leaders]))

    def all(self) -> list[list[Operation]]:
        """The groups, in order of creation."""
        groups: dict[Operation, list[Operation]] = {}
        for op in self._ops:
            groups.setdefault(self._find(op), []).append(op)
        return list(groups.values())


def _place_ends(op: Operation, placement: dict[Operation, str]) -> None:
    """Place a branch or loop that is split between devices, and the inputs of its regions.

    The operation counts as placed where its decision is computed. A loop variable lives where its next value is
    computed. A capture has no place of its own: each device that uses it gets it.
    """
    if op.type != "While":
        outputs = [tensor.op for region in regions_of(op) for tensor in region.outputs]
        placement[op] = next((placement[source] for source in outputs if source in placement), placement[op])
        return
    condition, body, count = op.attrs["condition"], op.attrs["body"], op.attrs["variables"]
    inner = [member for region in (condition, body) for member in region.get_operations()]
    anywhere = next(placement[member] for member in inner if member in placement)
    homes = [placement.get(tensor.op, anywhere) for tensor in body.outputs[:count]]
    for region in (condition, body):
        placement.update((tensor.op, home) for tensor, home in zip(region.inputs, homes, strict=False))
    placement[op] = placement.get(condition.outputs[0].op, anywhere)


_ANYWHERE: Final = DeviceSpec()


def _merged_request(group: Sequence[Operation]) -> DeviceSpec:
    """The device request of the group: the intersection of its members' requests."""
    merged, source = _ANYWHERE, group[0]
    for op in (each for each in group if each.device):
        both = merged.intersect(DeviceSpec.from_string(op.device))
        if both is None:
            raise InvalidArgumentError(
                f"{op.name!r} asks for {op.device} but must share a device with {source.name!r}, which asks for "
                f"{merged}; give both the same device, or none to one of them",
                op_name=op.name,
                site=op.site,
            )
        merged, source = both, op
    return merged


def _feasible(group: Sequence[Operation], request: DeviceSpec, specs: dict[str, DeviceSpec], soft: bool) -> list[str]:
    def able(name: str) -> bool:
        return all(has_kernel(op, specs[name].device_type or "CPU") for op in group)

    matching = [name for name, spec in specs.items() if request.matches(spec)]
    feasible = [name for name in matching if able(name)]
    if not feasible and (soft or request.device_type is None):
        relaxed = DeviceSpec(job=request.job, task=request.task)
        feasible = [name for name, spec in specs.items() if relaxed.matches(spec) and able(name)]
    if feasible:
        return feasible
    raise _infeasible(group, request, matching, specs)


def _infeasible(
    group: Sequence[Operation], request: DeviceSpec, matching: list[str], specs: dict[str, DeviceSpec]
) -> InvalidArgumentError:
    op = next((op for op in group if op.device), group[0])
    known = ", ".join(specs)
    if not matching:
        reason = f"it asks for {request}, and there is no such device; devices are {known}"
    else:
        lacking = {
            _described(member, {specs[name].device_type or "CPU" for name in matching})
            for member in group
            if not any(has_kernel(member, specs[name].device_type or "CPU") for name in matching)
        }
        reason = f"no kernel for {', '.join(sorted(lacking)) or op.type} on {', '.join(matching)}"
    together = "" if len(group) == 1 else f" (it shares a device with {len(group) - 1} other operations)"
    return InvalidArgumentError(
        f"cannot place {op.name!r}{together}: {reason}; change the device, or pass "
        "config=tf.ConfigProto(allow_soft_placement=True)",
        op_name=op.name,
        site=op.site,
    )


def _described(op: Operation, device_types: Collection[str]) -> str:
    """An operation that lacks a kernel, with the dtypes that it lacks one for if there is one for others."""
    unheld = {dtype.name for kind in device_types if op.op_def.kernel_for(kind) for dtype in not_held(op, kind)}
    of = " of " + ", ".join(sorted(unheld)) if unheld else ""
    return f"{op.type}{of} ({op.name})"
