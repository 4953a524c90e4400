"""Two lanes of a step: which operations run aside, on another thread, while the others go on.

Work that nothing needs soon, such as the gradient of a layer's filters, is done beside the work that the next layers
wait for. Two operations side by side, one thread each, take less time than one after the other with each cut in two: no
thread waits for the other's last part, and operations that cannot be cut keep no core idle.

What runs aside is chosen before the step, from the shapes alone, by going through the operations as two threads would.
The order in which an operation adds numbers does not depend on its lane, so results are the same to the bit.

References:
    Abadi et al., "TensorFlow: A System for Large-Scale Machine Learning", OSDI 2016, section 3.2 (independent
    operations of a step run in parallel).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tfray.framework import dtypes
from tfray.framework.effects import access_of, accessed_handles, is_stateful
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import Kernel
from tfray.runtime.device_groups import Group
from tfray.runtime.float_operations import float_operations
from tfray.runtime.segment_body import Body

MIN_ASIDE_S: Final = 2e-4
"""Seconds of estimated work from which an operation may run aside: handing it over and back costs both threads about a
tenth of a millisecond, most of it waits for the interpreter's lock."""

_MIN_PRODUCT_S: Final = 5e-4
"""The same for products of matrices: both threads share one out at little cost, see `ops.kernels.native`."""

_PRODUCTS: Final = frozenset({"MatMul", "_MatMulPart", "BatchMatMul"})

_FLOPS_PER_S: Final = 1e11
"""Floating-point operations a second of one core with 512-bit vectors. On a slower one, operations that could run aside
are taken to be too short; which do never depends on the machine."""

_BYTES_PER_S: Final = 1.5e10
"""Bytes a second that one core reads and writes."""

_TOGETHER: Final = 0.6
"""Time that a long operation takes when both threads share it, in parts of its time on one."""

_QUIET: Final = frozenset({"Variable", "NoOp", "Placeholder", "Send", "RandomUniform", "RandomStandardNormal"})
"""Types of operations that are called stateful, and touch nothing that another operation reads or writes."""


@dataclass(frozen=True)
class Aside:
    """An operation that runs aside.

    Attributes:
        index: Its place in the body, where it begins.
        last: The place of the operation after which its result is awaited.
    """

    index: int
    last: int


def find_asides(
    body: Body,
    kernel_of: Callable[[Operation], Kernel],
    roots: Mapping[Tensor, Collection[Tensor]],
    groups: Sequence[Group],
) -> dict[int, Aside]:
    """The operations of a body that run aside, by their index.

    Args:
        body: The operations, in order.
        kernel_of: The kernel of each operation on this device.
        roots: For each tensor, those in whose memory it may lie.
        groups: Operations that are computed together. None of them runs aside.
    """
    units = _units(body, groups)
    costs = {first: _seconds(body, range(first, last + 1), kernel_of) for first, last in units}
    grouped = {index for group in groups for index in range(group.first, group.last + 1)}
    candidates = [
        i for i, cost in costs.items() if cost >= _least(body.ops[i]) and i not in grouped and _may(body.ops[i])
    ]
    if len(candidates) < 2:
        return {}
    ends = _Ends(body, roots, units)
    spent = _sums(body, units, costs)
    chosen = set(candidates)
    times: list[float] = []  # of the first lane, after each unit
    begun: dict[int, tuple[int, int, float]] = {}
    now = busy_until = 0.0
    for number, (first, _) in enumerate(units):
        cost = costs[first]
        end = ends.of(first) if first in chosen and busy_until <= now + cost else first
        if end > first and spent[end] - spent[first] >= cost * 1.5:
            busy_until = max(now, busy_until) + cost
            begun[first] = number, end, busy_until + cost
        else:
            is_shared = cost >= MIN_ASIDE_S and busy_until <= now
            now += cost * _TOGETHER if is_shared else cost
        times.append(now)
    return {first: Aside(first, _awaited(units, times, *known)) for first, known in begun.items()}


def _least(op: Operation) -> float:
    """Seconds of work from which an operation may run aside."""
    return _MIN_PRODUCT_S if op.type in _PRODUCTS else MIN_ASIDE_S


def _awaited(units: Sequence[tuple[int, int]], times: Sequence[float], number: int, end: int, time: float) -> int:
    """The index up to `end` after which a result is awaited: when it has had twice the time that was expected, as what
    it takes should not be kept for ever."""
    later = min(bisect_left(times, time, lo=number), len(units) - 1)
    return min(units[later][1], end)


def _units(body: Body, groups: Sequence[Group]) -> list[tuple[int, int]]:
    """First and last index of what is computed at a time: groups, and single operations that run."""
    last_of = {group.first: group.last for group in groups}
    units, index = [], 0
    while index < len(body.ops):
        last = last_of.get(index, index)
        units.append((index, last))
        index = last + 1
    return units


def _sums(body: Body, units: Sequence[tuple[int, int]], costs: Mapping[int, float]) -> list[float]:
    """For each index, the seconds of all before it and of it."""
    sums, total = [0.0] * len(body.ops), 0.0
    for first, last in units:
        total += costs[first]
        sums[first : last + 1] = [total] * (last + 1 - first)
    return sums


def _seconds(body: Body, indices: range, kernel_of: Callable[[Operation], Kernel]) -> float:
    """About how long operations take on one core; 0 for what does not run, or whose shapes are not known."""
    seconds = 0.0
    for index in indices:
        op = body.ops[index]
        if op.op_def.forwards_input or (op.outputs and all(tensor in body.constants for tensor in op.outputs)):
            continue
        computing = (float_operations(op) or 0) / _FLOPS_PER_S
        if op.outputs and kernel_of(op).elementwise is True:
            computing = (op.outputs[0].shape.num_elements() or 0) * kernel_of(op).element_ns * 1e-9
        seconds += max(computing, _touched_bytes(op) / _BYTES_PER_S)
    return seconds


def _touched_bytes(op: Operation) -> int:
    sizes = [(t.shape.num_elements() or 0) * (t.dtype.size or 0) for t in (*op.inputs, *op.outputs)]
    if access_of(op) != "update":
        return sum(sizes)
    variables = [tensor.op.attrs for tensor in op.inputs if tensor.op.type == "Variable"]
    stored = sum((each["shape"].num_elements() or 0) * (each["dtype"].size or 0) for each in variables)
    return sum(sizes) + 2 * stored


def _may(op: Operation) -> bool:
    """Whether an operation may run aside: it takes and gives arrays, and changes nothing but variables, if any."""
    access = access_of(op)
    if op.op_def.regions or op.op_def.blocking or op.op_def.uses_step or access == "read":
        return False
    if is_stateful(op) and access is None:
        return False
    tensors = [tensor for tensor in (*op.inputs, *op.outputs) if tensor.dtype is not dtypes.resource]
    return bool(tensors) and all(tensor.dtype.kind not in ("string", "variant") for tensor in tensors)


class _Ends:
    """How long each operation of a body may run while later ones do."""

    def __init__(
        self, body: Body, roots: Mapping[Tensor, Collection[Tensor]], units: Sequence[tuple[int, int]]
    ) -> None:
        self._ops = body.ops
        self._roots = roots
        self._first_of = {index: first for first, last in units for index in range(first, last + 1)}
        self._takers: dict[Tensor, list[int]] = {}
        self._accesses: dict[Tensor, list[tuple[int, bool]]] = {}
        self._barriers: list[int] = []
        for index, op in enumerate(self._ops):
            for tensor in op.inputs:
                self._takers.setdefault(tensor, []).append(index)
            updates = access_of(op) == "update"
            handles = {root for tensor in op.inputs for root in self._handles_behind(tensor)}
            for handle in handles:
                self._accesses.setdefault(handle, []).append((index, updates and handle in op.inputs))
            touches_more = is_stateful(op) and not accessed_handles(op) and op.type not in _QUIET
            if op.op_def.regions or touches_more:
                self._barriers.append(index)

    def _handles_behind(self, tensor: Tensor) -> set[Tensor]:
        return {root for root in self._roots[tensor] if root.dtype is dtypes.resource}

    def of(self, index: int) -> int:
        """The index of the last operation before the first that needs it to have run: that takes what it gives, changes
        a variable that it reads, or touches one that it changes."""
        op = self._ops[index]
        needing = [later for tensor in op.outputs for later in self._takers.get(tensor, ())]
        updates = access_of(op) == "update"
        for handle in {root for tensor in (*op.inputs, *op.outputs) for root in self._handles_behind(tensor)}:
            is_changed = updates and handle in op.inputs
            needing += [later for later, changes in self._accesses.get(handle, ()) if changes or is_changed]
        needing += self._barriers
        first = min((later for later in needing if later > index), default=len(self._ops))
        return self._first_of.get(first, first) - 1
