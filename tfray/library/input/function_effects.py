"""Side effects of functions of datasets: they all happen, in the order of the program.

In a step, only operations that a fetch needs run, and a variable is read before it is updated. A dataset's function
instead behaves as a Python function: each call does everything, one thing after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tfray.framework.effects import access_of, accessed_handles
from tfray.framework.graph import Operation, Tensor
from tfray.framework.region import Region, regions_of
from tfray.framework.traversal import reachable_backward
from tfray.ops.arrays.shape_ops import identity


def with_effects(region: Region, outputs: Sequence[Tensor]) -> list[Tensor]:
    """`outputs`, tensors of a region, computed after all side effects of the region."""
    ops = [op for op in region.get_operations() if not _is_dataset(op)]
    for op in ops:
        for inner in regions_of(op):
            inner.outputs[:] = with_effects(inner, inner.outputs)
    effects = [op for op in ops if has_effect(op)]
    if not effects:
        return list(outputs)
    _put_in_order(ops)
    behind = reachable_backward(tensor.op for tensor in outputs)
    left = [op for op in effects if op not in behind]
    if not left:
        return list(outputs)
    with region.as_default(), region.control_dependencies(left):
        return [identity(tensor) for tensor in outputs]


def has_effect(op: Operation) -> bool:
    """Whether an operation has a side effect. Drawing random numbers does not count as one."""
    if op.type == "RegionInput" or _is_dataset(op):
        return False  # a parameter, or a dataset: its functions have effects once its elements are asked for
    if any(has_effect(inner) for region in regions_of(op) for inner in region.get_operations()):
        return True
    return op.op_def.access == "update" or (op.op_def.stateful and op.op_def.access is None and "seed2" not in op.attrs)


def _is_dataset(op: Operation) -> bool:
    return op.op_def.stateful and [argument.name for argument in op.op_def.output_arguments] == ["dataset"]


def _put_in_order(ops: Iterable[Operation]) -> None:
    """Order reads and updates of each variable, and all other side effects, as in the program."""
    reads: dict[Tensor, list[Operation]] = {}
    last_update: dict[Tensor, Operation] = {}
    last: list[Operation] = []
    for op in ops:
        for handle in accessed_handles(op):
            if handle in last_update:
                op.add_control_inputs([last_update[handle]])
            if access_of(op) == "update":
                op.add_control_inputs(reads.pop(handle, ()))
                last_update[handle] = op
            else:
                reads.setdefault(handle, []).append(op)
        if not accessed_handles(op) and has_effect(op):
            op.add_control_inputs(last)
            last = [op]
