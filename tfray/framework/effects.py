"""Effects of an operation besides its outputs. The effects of the operations in its regions count as its own."""

from __future__ import annotations

from typing import Final

from tfray.framework import dtypes
from tfray.framework.dtypes import DType
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


NOT_HELD: Final = {"GPU": frozenset((dtypes.string,))}
"""The dtypes that have no form in the memory of a device of some type. Handles and variants stay with the host."""


def has_kernel(op: Operation, device_type: str) -> bool:
    """Whether devices of that type can run it: there is a kernel, and they hold elements of all its dtypes."""
    if op.op_def.kernel_for(device_type) is None or not_held(op, device_type):
        return False
    return all(has_kernel(inner, device_type) for inner in _inner(op))


def not_held(op: Operation, device_type: str) -> frozenset[DType]:
    """The dtypes of `op` of which devices of that type hold no elements. They hold a variant, and no array of them."""
    if device_type not in NOT_HELD:
        return frozenset()
    variants = [tensor for tensor in (*op.inputs, *op.outputs) if tensor.dtype is dtypes.variant]
    arrays = frozenset(tensor.dtype for tensor in variants if tensor.shape.rank)
    return (NOT_HELD[device_type] & dtypes_of(op)) | arrays


def dtypes_of(op: Operation) -> frozenset[DType]:
    """The dtypes that its type leaves open: of tensors, and of what its resource holds.

    What a type declares by name its kernels expect; a name of a file, for one, comes from the host.
    """
    found: set[DType] = set()
    for value in op.attrs.values():
        if isinstance(value, DType):
            found.add(value)
        elif isinstance(value, (list, tuple)):
            found.update(each for each in value if isinstance(each, DType))
    for arguments, tensors in (
        (op.op_def.input_arguments, op.inputs),
        (op.op_def.output_arguments, op.outputs),
    ):
        if any(argument.type == "any" for argument in arguments):
            last = len(arguments) - 1  # of which there may be several
            found.update(t.dtype for i, t in enumerate(tensors) if arguments[min(i, last)].type == "any")
    return frozenset(found)


def makes_resource(op: Operation) -> bool:
    """Whether it makes a handle: that of a variable, a queue, a table or another resource."""
    return op.op_def.stateful and any(tensor.dtype is dtypes.resource for tensor in op.outputs)


def resource_name(op: Operation) -> str:
    """The name of the resource that it makes, on its device."""
    return str(op.attrs.get("shared_name") or op.name)


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
