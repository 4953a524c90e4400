"""Assign a device to every operation.

1. Operations that must share a device form a colocation group: those joined by ``colocate_with``, and a variable
   (or other resource) with everything that takes its handle.
2. A group may go to the devices that match every device request among its members and have a kernel for each.
   When there is none and soft placement is allowed, requests keep their job and task and give up device type and index.
3. Among the feasible devices a policy chooses; see `default_policy`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.device_spec import DeviceSpec
from tfray.framework.effects import has_kernel
from tfray.framework.graph import Graph, Operation
from tfray.framework.region import ops_within

Policy = Callable[[Sequence[Operation], Sequence[str]], str]
"""From the members of a group and the devices that can run them (at least one) to the device to use."""


def default_policy(group: Sequence[Operation], feasible: Sequence[str]) -> str:
    """The first GPU if there is one, otherwise the first device, in the cluster's order."""
    for device in feasible:
        if DeviceSpec.from_string(device).device_type == "GPU":
            return device
    return feasible[0]


def place(
    graph: Graph, devices: Sequence[str], *, allow_soft_placement: bool = False, policy: Policy = default_policy
) -> dict[Operation, str]:
    """The full device name of every operation of `graph`.

    Args:
        graph: The graph to place.
        devices: Full names of the devices, default first.
        allow_soft_placement: Whether a request that cannot be met may move to another device type of its task.
        policy: Chooses among feasible devices.

    Raises:
        InvalidArgumentError: No device meets a group's constraints; the message says which one failed.
    """
    specs = {device: DeviceSpec.from_string(device) for device in devices}
    placement: dict[Operation, str] = {}
    feasible: dict[tuple[DeviceSpec, frozenset[str]], list[str]] = {}
    for group in colocation_groups(graph):
        request = _merged_request(group)
        key = (request, frozenset(inner.type for op in group for inner in ops_within(op)))
        if key not in feasible:
            feasible[key] = _feasible(group, request, specs, allow_soft_placement)
        device = policy(group, feasible[key])
        placement.update(dict.fromkeys(group, device))
    return placement


def colocation_groups(graph: Graph) -> list[list[Operation]]:
    """Operations that must share a device, as disjoint groups in order of creation."""
    leader: dict[Operation, Operation] = {}

    def find(op: Operation) -> Operation:
        while leader.get(op, op) is not op:
            leader[op] = leader.get(leader[op], leader[op])
            op = leader[op]
        return op

    def join(a: Operation, b: Operation) -> None:
        first, second = sorted((find(a), find(b)), key=lambda op: op.id)
        leader[second] = first

    ops = graph.get_operations()
    by_name = {op.name: op for op in ops}
    for op in ops:
        for name in op.colocation_groups():
            if name in by_name:  # the other may have been pruned or folded
                join(op, by_name[name])
        for tensor in op.inputs:
            if tensor.dtype is dtypes.resource:
                join(op, tensor.op)
    groups: dict[Operation, list[Operation]] = {}
    for op in ops:
        groups.setdefault(find(op), []).append(op)
    return list(groups.values())


def _merged_request(group: Sequence[Operation]) -> DeviceSpec:
    """What all device requests of the group say together."""
    merged, source = DeviceSpec(), group[0]
    for op in group:
        both = merged.intersect(DeviceSpec.from_string(op.device))
        if both is None:
            raise InvalidArgumentError(
                f"{op.name!r} asks for {op.device} but must share a device with {source.name!r}, which asks for "
                f"{merged}; give both the same device, or none to one of them",
                op_name=op.name,
                site=op.site,
            )
        if op.device:
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
            f"{member.type} ({member.name})"
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
