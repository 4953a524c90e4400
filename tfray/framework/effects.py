"""Effects of an operation besides its outputs. The effects of the operations in its regions count as its own."""

from __future__ import annotations

from tfray.framework import dtypes
from tfray.framework.graph import Operation, Tensor
from tfray.framework.region import Region, passed_inputs, regions_of


def is_stateful(op: Operation) -> bool:
    """Whether it is more than a function of its inputs."""
    return op.op_def.stateful or any(map(is_stateful, _inner(op)))


def is_blocking(op: Operation) -> bool:
    """Whether it may wait for another device or thread."""
    return op.op_def.blocking or any(map(is_blocking, _within_step(op)))


def uses_step(op: Operation) -> bool:
    """Whether its kernel needs to know the running step."""
    return op.op_def.uses_step or any(map(uses_step, _within_step(op)))


def has_kernel(op: Operation, device_type: str) -> bool:
    """Whether devices of that type can run it."""
    return op.op_def.kernel_for(device_type) is not None and all(has_kernel(inner, device_type) for inner in _inner(op))


def access_of(op: Operation) -> str | None:
    """``"update"`` if it updates a variable whose handle it takes, ``"read"`` if it only reads it, else None."""
    if not op.op_def.regions:
        return op.op_def.access
    kinds = {access_of(inner) for inner in _inner(op)}
    return "update" if "update" in kinds else "read" if "read" in kinds else None


def accessed_handles(op: Operation) -> list[Tensor]:
    """The handles of the variables that it reads or updates."""
    return [tensor for tensor in op.inputs if tensor.dtype is dtypes.resource] if access_of(op) else []


def updated_handles(op: Operation) -> set[Tensor]:
    """The handles among its inputs whose variables it updates, itself or in a region."""
    if not op.op_def.regions:
        return (
            {tensor for tensor in op.inputs if tensor.dtype is dtypes.resource} if access_of(op) == "update" else set()
        )
    updated = set().union(*map(updates_within, regions_of(op)))
    return {passed for region in regions_of(op) for inner, passed in passed_inputs(op, region) if inner in updated}


def taken_locks(op: Operation) -> set[Tensor]:
    """The handles among its inputs whose locks it takes, itself or in a region."""
    if not op.op_def.regions:
        return {op.inputs[0]} if op.type == "MutexLock" else set()
    taken = {handle for inner in _inner(op) for handle in taken_locks(inner)}
    if not taken:
        return set()
    return {passed for region in regions_of(op) for inner, passed in passed_inputs(op, region) if inner in taken}


def returned_lock(op: Operation) -> Tensor | None:
    """The handle of the lock that it gives back; None for all but the operation that does."""
    return op.inputs[0].op.inputs[0] if op.type == "ConsumeMutexLock" else None


def updates_within(region: Region) -> set[Tensor]:
    """The handles, as the region has them, whose variables it updates."""
    return {handle for op in Region.get_operations(region) for handle in updated_handles(op)}


def _within_step(op: Operation) -> list[Operation]:
    return [] if op.op_def.defers_regions else _inner(op)


def _inner(op: Operation) -> list[Operation]:
    if not op.op_def.regions:
        return []
    return [inner for region in regions_of(op) for inner in Region.get_operations(region)]
