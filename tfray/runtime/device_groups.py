"""What a GPU computes in one launch: groups of elementwise operations, and the updates of all variables.

The launch of a kernel takes longer than what it computes on small arrays. So operations that can be computed together
are brought side by side, wherever nothing that depends on one of them has to come before another.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from tfray.framework import dtypes
from tfray.framework.effects import access_of, accessed_handles, is_stateful
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import Argument, ArrayModule, Kernel, StoredVariable, Update
from tfray.ops.kernels.element_loops import Assignment
from tfray.ops.kernels.gpu.device_loops import (
    DEVICE_ELEMENTS,
    MAX_PARAMETER_BYTES,
    NUMBER_BYTES,
    DeviceLoop,
    Load,
    Section,
    Trace,
    Unknown,
    array_bytes,
)
from tfray.ops.kernels.precision import working_dtype
from tfray.ops.kernels.updated_arrays import check_shapes, locked, own_array
from tfray.runtime.fusion import FusedGroup, element_of, find_internal, form_of, sizes_of
from tfray.runtime.host_values import HostValues
from tfray.runtime.segment_body import Body

MAX_OPS: Final = 48
"""Operations of a group of elementwise operations: with more, the values between them take too many registers."""

_SMALL_ELEMENTS: Final = 1 << 16
"""Elements of results that are computed together although neither needs the other: what they read fits into a cache."""

_CANDIDATES: Final = 16
"""Groups, the latest ones, that an operation may join."""


@dataclass
class UpdateGroup:
    """Updates of variables, in one kernel or a few.

    Attributes:
        ops: The operations.
        first: Index of the first in the body.
        last: Index of the last.
        internal: Nothing; as of a `FusedGroup`.
    """

    ops: list[Operation]
    first: int = 0
    last: int = 0
    internal: set[Tensor] = field(default_factory=set)


Group = FusedGroup | UpdateGroup


def arranged(
    body: Body, kernel_of: Callable[[Operation], Kernel], host: HostValues
) -> tuple[Body, list[FusedGroup], list[UpdateGroup]]:
    """The body in an order in which the operations of each group stand side by side, and its groups."""
    known = [op for op in body.ops if op.outputs and all(tensor in body.constants for tensor in op.outputs)]
    search = _Search(body, kernel_of, host)
    skipped = set(known)
    for op in body.ops:
        if op not in skipped:
            search.add(op)
    ops, elementwise, updates = list(known), [], []
    for cluster in search.in_order():
        first, last = len(ops), len(ops) + len(cluster.ops) - 1
        ops += cluster.ops
        if cluster.is_update:
            updates.append(UpdateGroup(cluster.ops, first, last))
        elif cluster.is_group and _pays(cluster.ops, kernel_of):
            op = cluster.ops[0]
            group = FusedGroup(cluster.ops, first, last, sizes_of(op.outputs[0]))
            own = set(group.results)
            group.forms = {
                tensor: search.form(tensor, group.shape)[0] or "whole"
                for op in cluster.ops
                for tensor in op.inputs
                if tensor not in own
            }
            elementwise.append(group)
    made = replace(body, ops=ops)
    find_internal(made, elementwise)
    return made, elementwise, updates


def _pays(ops: Sequence[Operation], kernel_of: Callable[[Operation], Kernel]) -> bool:
    """Whether the kernels of the operations would launch more than once."""
    return len(ops) > 1 or kernel_of(ops[0]).ufunc is None


@dataclass
class _Cluster:
    """Operations that stand side by side.

    Attributes:
        number: Its bit in masks.
        key: What those that may join have in common; None if none may.
        ops: The operations.
        earlier: A mask of the clusters that come before.
        touched: What the operations take and give.
    """

    number: int
    key: Hashable
    ops: list[Operation]
    earlier: int
    touched: set[Tensor]

    @property
    def is_update(self) -> bool:
        return self.key == "update"

    @property
    def is_group(self) -> bool:
        return self.key is not None


def _parameter_bytes(cluster: _Cluster, op: Operation) -> int:
    """The most that the parameters of a kernel may take, if the operation joins."""
    tensors = cluster.touched.union(op.inputs, op.outputs)
    return sum(array_bytes(tensor.shape.rank or 0) + NUMBER_BYTES for tensor in tensors)


class _Search:
    """Puts operations, in order, into clusters."""

    def __init__(self, body: Body, kernel_of: Callable[[Operation], Kernel], host: HostValues) -> None:
        self._body, self._kernel_of, self._host = body, kernel_of, host
        self._taken = {tensor for op in body.ops for tensor in op.inputs}.union(body.outputs)
        self._clusters: list[_Cluster] = []
        self._of: dict[Operation, _Cluster] = {}
        self._by_key: dict[Hashable, list[_Cluster]] = {}
        self._handles_behind: dict[Tensor, set[Tensor]] = {}
        self._readers: dict[Tensor, list[_Cluster]] = {}
        self._updater: dict[Tensor, _Cluster] = {}
        self._last_effect: _Cluster | None = None

    def add(self, op: Operation) -> None:
        """Put one more operation into a cluster."""
        before = self._before(op)
        key = self._key(op)
        cluster = next((c for c in self._candidates(op, key) if self._may_join(c, before)), None)
        if cluster is None:
            cluster = _Cluster(len(self._clusters), key, [], 0, set())
            self._clusters.append(cluster)
            if key is not None:
                self._by_key.setdefault(key, []).append(cluster)
        cluster.ops.append(op)
        cluster.touched.update(op.inputs, op.outputs)
        self._of[op] = cluster
        self._come_after(cluster, before)
        self._note(op, cluster)

    def in_order(self) -> list[_Cluster]:
        """The clusters, each after those that come before it, else in the order of their first operations."""
        index = {op: position for position, op in enumerate(self._body.ops)}
        first = [min(index[op] for op in cluster.ops) for cluster in self._clusters]
        waits = [cluster.earlier.bit_count() for cluster in self._clusters]
        later: list[list[int]] = [[] for _ in self._clusters]
        for cluster in self._clusters:
            for number in _numbers(cluster.earlier):
                later[number].append(cluster.number)
        ready = [(first[number], number) for number, count in enumerate(waits) if not count]
        heapq.heapify(ready)
        ordered = []
        while ready:
            _, number = heapq.heappop(ready)
            ordered.append(self._clusters[number])
            for following in later[number]:
                waits[following] -= 1
                if not waits[following]:
                    heapq.heappush(ready, (first[following], following))
        assert len(ordered) == len(self._clusters)
        return ordered

    # -- what may be together ----------------------------------------------------------------------

    def _key(self, op: Operation) -> Hashable:
        kernel = self._kernel_of(op)
        is_update = kernel.update is not None and self._taken.isdisjoint(op.outputs)
        if is_update and update_section(op, kernel, 0) is not None:
            return "update"
        if op in self._host.ops or not self._is_elementwise(op, kernel):
            return None
        return sizes_of(op.outputs[0])

    def _is_elementwise(self, op: Operation, kernel: Kernel) -> bool:
        if len(op.outputs) != 1 or op.op_def.stateful or not kernel.accepts_out or _element(op, kernel) is None:
            return False
        flag = kernel.elementwise
        tensors = [*op.inputs, *op.outputs]
        if not (flag(op) if callable(flag) else flag) or not all(t.shape.is_fully_defined() for t in tensors):
            return False
        shape = sizes_of(op.outputs[0])
        forms = {tensor: self.form(tensor, shape) for tensor in op.inputs}
        if not op.outputs[0].shape.num_elements() or any(form is None for form, _ in forms.values()):
            return False
        try:
            DeviceLoop([_elementwise_section([op], forms, op.outputs, self._kernel_of)])
        except Unknown:
            return False
        return True

    def form(self, tensor: Tensor, shape: tuple[int, ...]) -> tuple[str | None, int | None]:
        """How an input takes part in results of `shape` (see `Load`), and the row length that this needs."""
        if tensor in self._body.constants and not tensor.shape.rank:
            return "number", None
        return form_of(sizes_of(tensor), shape)

    def _candidates(self, op: Operation, key: Hashable) -> list[_Cluster]:
        found = self._by_key.get(key, [])[: -_CANDIDATES - 1 : -1] if key is not None else []
        if key == "update":
            return found
        taken = {*op.inputs} - set(self._body.constants)
        found = [c for c in found if len(c.ops) < MAX_OPS and _parameter_bytes(c, op) <= MAX_PARAMETER_BYTES]
        near = [c for c in found if not taken.isdisjoint(c.touched)]
        if (op.outputs[0].shape.num_elements() or 0) > _SMALL_ELEMENTS if op.outputs else True:
            return near
        return near + [c for c in found if c not in near]

    def _may_join(self, cluster: _Cluster, before: set[int]) -> bool:
        """Whether nothing that comes before the operation comes after the cluster."""
        return not any(self._clusters[n].earlier >> cluster.number & 1 for n in before if n != cluster.number)

    def _come_after(self, cluster: _Cluster, before: set[int]) -> None:
        earlier = 0
        for number in before - {cluster.number}:
            earlier |= self._clusters[number].earlier | 1 << number
        if earlier | cluster.earlier == cluster.earlier:
            return
        cluster.earlier |= earlier
        for other in self._clusters if len(cluster.ops) > 1 else ():  # nothing comes after a new one
            if other.earlier >> cluster.number & 1:
                other.earlier |= cluster.earlier

    # -- what comes before an operation ------------------------------------------------------------

    def _before(self, op: Operation) -> set[int]:
        found = [self._of.get(tensor.op) for tensor in op.inputs]
        found += [self._of.get(control) for control in op.control_inputs]
        for handle in accessed_handles(op):
            found.append(self._updater.get(handle))
            if access_of(op) == "update":
                found += self._readers.get(handle, [])
        if self._has_effect(op):
            found.append(self._last_effect)
        return {cluster.number for cluster in found if cluster is not None}

    def _has_effect(self, op: Operation) -> bool:
        return op.type != "Variable" and op.op_def.access is None and (is_stateful(op) or op.op_def.blocking)

    def _note(self, op: Operation, cluster: _Cluster) -> None:
        """Note what later operations have to come after."""
        behind = set().union(*(self._handles_behind.get(tensor, ()) for tensor in op.inputs))
        for handle in accessed_handles(op):
            if access_of(op) == "update":
                self._updater[handle] = cluster
                self._readers[handle] = []
            else:
                behind.add(handle)
        for handle in behind:
            self._readers.setdefault(handle, []).append(cluster)
        kernel = self._kernel_of(op)
        shared = [tensor for tensor in op.outputs if not kernel.gives_new(op, tensor.value_index)]
        self._handles_behind.update((tensor, behind) for tensor in shared)
        if self._has_effect(op):
            self._last_effect = cluster


def _numbers(mask: int) -> list[int]:
    return [number for number, bit in enumerate(reversed(f"{mask:b}")) if bit == "1"]


def _element(op: Operation, kernel: Kernel) -> str | None:
    return element_of(op, kernel) or DEVICE_ELEMENTS.get(kernel.ufunc or "")


# -- kernels of groups ---------------------------------------------------------------------------------


def name_of(tensor: Tensor) -> str:
    """The name of a value in the sections of a kernel."""
    return f"{tensor.op.id}:{tensor.value_index}"


def group_loop(group: FusedGroup, kernel_of: Callable[[Operation], Kernel]) -> DeviceLoop:
    """The kernel of a group: it takes and gives arrays by `name_of`."""
    forms = {
        tensor: (form, form_of(sizes_of(tensor), group.shape)[1] if form in ("row", "column") else None)
        for tensor, form in group.forms.items()
    }
    kept = [tensor for tensor in group.results if tensor not in group.internal]
    return DeviceLoop([_elementwise_section(group.ops, forms, kept, kernel_of)])


def _elementwise_section(
    ops: Sequence[Operation],
    forms: Mapping[Tensor, tuple[str | None, int | None]],
    kept: Sequence[Tensor],
    kernel_of: Callable[[Operation], Kernel],
) -> Section:
    loads = [Load(name_of(t), t.dtype.numpy, form or "", width or 0) for t, (form, width) in forms.items()]
    assignments = [
        Assignment(
            name_of(op.outputs[0]),
            _element(op, kernel_of(op)) or "",
            tuple(map(name_of, op.inputs)),
            op.outputs[0].dtype.numpy,
        )
        for op in ops
    ]
    stored = [(name_of(tensor), name_of(tensor)) for tensor in kept]
    return Section(kept[0].shape.num_elements() or 0, tuple(loads), tuple(assignments), tuple(stored))


def is_gradient(argument: Argument) -> bool:
    """Whether an input of an update has the shape of the variable (see `Update.gradient`)."""
    return argument.name in ("grad", "value")


def update_section(op: Operation, kernel: Kernel, number: int, numbers: Sequence[Tensor] = ()) -> Section | None:
    """The section of an update, or None if it has to run by its kernel.

    The names of its arrays are ``<number>.<index of the input>`` for the variable, its slots and the gradient, and
    `name_of` for scalars, of which the host passes `numbers`.
    """
    assert kernel.update is not None
    shape = op.attrs["shape"]
    if not shape.is_fully_defined() or not shape.num_elements():
        return None
    dtype, trace = op.inputs[0].op.attrs["dtype"].numpy, Trace(op.attrs)
    loads: dict[int, Load] = {}
    values: list[Any] = []
    for index, (argument, tensor) in enumerate(zip(op.op_def.input_arguments, op.inputs, strict=True)):
        is_resource = tensor.dtype is dtypes.resource
        if is_resource or is_gradient(argument):
            loads[index] = Load(f"{number}.{index}", dtype if is_resource else tensor.dtype.numpy)
        else:
            loads[index] = Load(name_of(tensor), tensor.dtype.numpy, "number" if tensor in numbers else "scalar")
        values.append(trace.value(loads[index].name, loads[index].dtype))
    if any(working_dtype(load.dtype) not in (np.float32, np.float64) for load in loads.values()):
        return None
    try:
        update: Update = kernel.update(trace, *values)
        before = [value.name for value in update.resources]
        scalars = [trace.asarray(scalar, working_dtype(dtype)) for scalar in update.scalars]
        temporaries = trace.value("t", dtype), trace.value("u", dtype)
        update.formula(trace, temporaries, update.gradient, *update.resources, *scalars)
        pairs = zip(update.resources, before, strict=True)
        stored = tuple((value.name, name) for value, name in pairs if value.name != name)
        section = Section(shape.num_elements(), tuple(loads.values()), tuple(trace.assignments), stored)
        DeviceLoop([section])
    except (Unknown, AttributeError, TypeError):
        return None
    return section


@dataclass
class UpdateLoop:
    """A kernel for updates of several variables.

    Attributes:
        ops: The operations.
        numbers: Their scalars that the host passes, and those that are on the device.
        loop: The kernel.
        order: For each array that the kernel takes, where it stands among scalars, gradients and variables.
    """

    ops: list[Operation]
    numbers: list[Tensor]
    scalars: list[Tensor]
    loop: DeviceLoop
    order: list[int]

    def run(self, xp: ArrayModule, scalars: Sequence[Any], updates: Sequence[Sequence[Any]]) -> None:
        """Run on the values of `numbers` and `scalars`, and for each update its resources, then its gradient."""
        resources: list[StoredVariable] = [resource for *some, _ in updates for resource in some]

        def work() -> None:
            gradients, flat = [], []
            for *some, gradient in updates:
                arrays = [own_array(xp, resource) for resource in some]
                check_shapes(some, arrays, gradient)
                if any(gradient is not array and xp.may_share_memory(gradient, array) for array in arrays):
                    gradient = gradient.copy()
                gradients.append(gradient.reshape(-1))
                flat += [array.reshape(-1) for array in arrays]
            values = [*scalars, *gradients, *flat]
            self.loop(xp, *[values[index] for index in self.order])

        locked(resources, work)


def update_loops(group: UpdateGroup, kernel_of: Callable[[Operation], Kernel], constants: Any) -> list[UpdateLoop]:
    """The kernels of a group, each of as many updates as its parameters allow."""
    parts: list[list[Operation]] = []
    taken: set[Tensor] = set()
    size = 0
    for op in group.ops:
        arrays = [tensor for tensor in op.inputs if tensor not in taken]
        size += array_bytes(1) * len(arrays) + NUMBER_BYTES
        if not parts or size > MAX_PARAMETER_BYTES:
            taken.clear()
            size = array_bytes(1) * len(op.inputs) + NUMBER_BYTES
            parts.append([])
        parts[-1].append(op)
        taken.update(op.inputs)
    return [_update_loop(ops, kernel_of, constants) for ops in parts]


def _update_loop(ops: list[Operation], kernel_of: Callable[[Operation], Kernel], constants: Any) -> UpdateLoop:
    others = [
        tensor
        for op in ops
        for argument, tensor in zip(op.op_def.input_arguments, op.inputs, strict=True)
        if tensor.dtype is not dtypes.resource and not is_gradient(argument)
    ]
    numbers = list(dict.fromkeys(tensor for tensor in others if tensor in constants))
    scalars = list(dict.fromkeys(tensor for tensor in others if tensor not in constants))
    sections = [update_section(op, kernel_of(op), number, numbers) for number, op in enumerate(ops)]
    loop = DeviceLoop([section for section in sections if section is not None])
    names = [name_of(tensor) for tensor in (*numbers, *scalars)]
    for kind in ("gradient", "resource"):
        for number, op in enumerate(ops):
            for index, (argument, tensor) in enumerate(zip(op.op_def.input_arguments, op.inputs, strict=True)):
                is_resource = tensor.dtype is dtypes.resource
                if is_resource if kind == "resource" else is_gradient(argument):
                    names.append(f"{number}.{index}")
    order = [names.index(name) for name in (*loop.inputs, *loop.outputs)]
    return UpdateLoop(ops, numbers, scalars, loop, order)
