"""From the body of a segment to one Python function: an operation costs its kernel call and nothing else.

The generated function looks like this, one operation a line, so that a line number names an operation:

    def make(b0, b1):
        def segment(step, v0, v1, v5, v6):
            v2 = matmul(c2, v0, v1, out=b0)
            v3 = add(v2, k3, b0)
            v4 = v5 * v6
            return (v3.copy(), v4)
        return segment

Names begin with ``a`` for operations that run aside (see `lanes`), ``b`` for buffers of reused memory, ``c`` for kernel
contexts, ``k`` for constants, ``n`` for what kernels prepare before a loop, ``o`` for memory that the caller gives or
that will be sent, ``v`` for values, ``w`` for loop variables, ``r1``, ``r2``, ... for what is in a region. On a GPU
some values are made on the host (see `host_values`); copies of values begin with ``h`` on the host and with ``u`` on
the device. A run of elementwise operations on large arrays is written as a function ``g`` of a part of their elements
(see `fusion`). Branches and loops become Python's own, with their operations inline. Only a branch or a loop in which
something may wait, or is sent, is called by its kernel. The code of a traced step takes the time before and after every
operation (see `tracing`).

An operation that may have to wait for other steps makes the function a generator. Where it has to wait, the generator
yields what it waits for, and calls the kernel again when it is asked to go on:

    while True:
        try:
            v7 = queue_dequeue_kernel(c7.at(step), v6)
            break
        except suspended as left:
            waits_for = left.attempt
        yield op7, waits_for
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from tfray.errors import (
    InternalError,
)
from tfray.framework import dtypes
from tfray.framework.effects import uses_step
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import Kernel
from tfray.framework.tensor_list import TensorList
from tfray.ops.kernels.compiling import CompiledKernel
from tfray.ops.kernels.cpu_threads import Lane
from tfray.runtime.device import Device, OpContext
from tfray.runtime.device_groups import Group, UpdateGroup, arranged, group_loop, is_gradient, name_of, update_loops
from tfray.runtime.fusion import (
    FusedGroup,
    compiled_loop,
    find_groups,
    in_form,
    is_threaded,
    looped_function,
    once,
    part_buffer,
    parts_of,
    run_loop,
    run_parts,
    scratch_slots,
)
from tfray.runtime.host_memory import own
from tfray.runtime.host_values import HostValues, has_one_form, is_inlined
from tfray.runtime.memory import lay_out_memory
from tfray.runtime.program import LOOK_AFTER, NumPyNames, Program, assign
from tfray.runtime.segment_body import region_body
from tfray.runtime.step import Suspended
from tfray.runtime.traced_op import describe

_TURNS_BETWEEN_LOOKS: Final = 64
"""A loop whose turns do less than `LOOK_AFTER` looks only in every 64th turn: the look reads the clock, which takes
longer than a short turn."""


def size_of(tensor: Tensor) -> int:
    return (tensor.shape.num_elements() or 0) * tensor.dtype.numpy.itemsize


def _kernel(op: Operation, device: Device) -> Kernel:
    kernel = op.op_def.kernel_for(device.type)
    if kernel is None:
        raise InternalError(f"{op.type} has no kernel for {device.type}", op_name=op.name, device=device.name)
    return kernel


class Emitter:
    """Writes the operations of one body: that of the segment, or a region's within it.

    Args:
        program: Takes the lines.
        host: The operations, and which of their values the host has.
        names: The names of the values that enter, on the host (True) or on the device (False).
        prefix: Begins the names of its values.
        fetched: Results that go to the user.
        updated_elsewhere: Names of variable operations that are updated outside the body.
        has_rooms: Whether the caller may give memory for results.

    Attributes:
        body: The operations, in the order in which they are written.
        rooms: The names of the memory that the caller may give for results.
    """

    def __init__(
        self,
        program: Program,
        host: HostValues,
        names: Mapping[tuple[Tensor, bool], str],
        prefix: str = "",
        fetched: Collection[Tensor] = (),
        updated_elsewhere: Collection[str] = (),
        has_rooms: bool = False,
    ) -> None:
        body = host.body
        self._host = host
        self._program = program
        self._device = program.device
        self._prefix = prefix
        self._fetched = fetched
        self._entered = set(body.inputs)
        self._names = names
        self._copies: dict[tuple[Tensor, bool], str] = {}
        self._prepared: dict[Operation, tuple[int, str]] = {}
        """For operations of a loop's body, which input was prepared before the first turn, and its name."""
        groups: list[Group] = []
        if program.fuses and program.device.type == "CPU":
            groups += find_groups(body, self._kernel)
        elif program.fuses and not program.traced:  # the time of each operation is that of its own kernel
            body, elementwise, updates = arranged(body, self._kernel, host)
            groups += [*elementwise, *updates]
        self.body = body
        self._groups = {group.first: group for group in groups}
        self._memory = lay_out_memory(
            body,
            self._kernel,
            sends_copy=program.sends_copy,
            updated_elsewhere=updated_elsewhere,
            groups=groups,
            sent_in_place_bytes=program.sent_in_place_bytes if program.sends_in_place and not prefix else None,
            has_lanes=program.has_lanes,
            has_rooms=has_rooms and program.device.type == "CPU",
        )
        self.rooms = {tensor: f"o{tensor.op.id}" for tensor in self._memory.rooms}
        self._rooms = dict(self.rooms)
        self._awaited = defaultdict[int, list[Operation]](list)
        for aside in self._memory.asides.values():
            self._awaited[aside.last].append(body.ops[aside.index])
        # A region has slots of its own behind those of the body around it: what it computes overwrites nothing there.
        self._first_slot = len(program.slot_bytes)
        program.slot_bytes.extend(self._memory.slot_bytes)
        largest: dict[int, Tensor] = {}
        for tensor, slot in self._memory.slot_of.items():
            largest[slot] = max(largest.get(slot, tensor), tensor, key=size_of)
        program.slot_tensors.extend(largest[slot] for slot in range(len(self._memory.slot_bytes)))

    def write(self) -> None:
        """Write every operation."""
        for tensor, name in self.rooms.items():
            self._program.add(f"if {name} is None: {name} = {self._fresh(tensor)}", tensor.op)
        if not self._memory.asides:
            self._write_operations()
            return
        lane = self._program.refer("lane", Lane)
        first = self.body.ops[next(iter(self._memory.asides))]
        with self._program.block(f"with {lane}() as {self._prefix}aside:", first):
            self._write_operations()

    def _write_operations(self) -> None:
        fused = -1  # index of the last operation that a group has written already
        for i, op in enumerate(self.body.ops):
            if i in self._groups:
                group = self._groups[i]
                fused = group.last
                if isinstance(group, UpdateGroup):
                    self._write_updates(group)
                elif self._device.type == "CPU":
                    self._write_group(group)
                else:
                    self._write_device_group(group)
            if i <= fused or (op.outputs and all(tensor in self.body.constants for tensor in op.outputs)):
                pass
            elif i in self._memory.asides:
                self._write_aside(op)
            elif not is_inlined(op, self._program.depth):
                self._write_operation(op)
            elif op.type == "While":
                self._write_loop(op)
            else:
                self._write_branch(op)
            for aside in self._awaited.pop(i, ()):
                self._write_result(aside)
            self._drop(i)

    def prepare(self, variables: int) -> list[str]:
        """Write what kernels prepare of inputs that are the same in every turn of a loop: all but the first ones.

        Args:
            variables: Number of the inputs that each turn passes to the next.

        Returns:
            The names of what was prepared.
        """
        kept = set(self.body.inputs[variables:])
        for op in self.body.ops:
            kernel = self._kernel(op)
            if kernel.prepares is None or op.inputs[kernel.prepares[0]] not in kept or self._expression(op, kernel):
                continue
            index, function = kernel.prepares
            name, argument = f"{self._prefix}n{op.id}", self._arguments(op)[index]
            prepare = self._program.refer(function.__name__.strip("_"), function)
            self._program.add(f"{name} = {prepare}({self._context(op)}, {argument})", op)
            self._prepared[op] = index, name
        return [name for _, name in self._prepared.values()]

    def results(self, fetched_alone: Collection[Tensor]) -> str:
        """What the body returns, as a tuple."""
        return f"({''.join(self._result(tensor, tensor in fetched_alone) + ', ' for tensor in self.body.outputs)})"

    def name(self, tensor: Tensor) -> str:
        """The name of a value where it is made."""
        if tensor in self._entered:
            return self._names.get((tensor, False)) or self._names[tensor, True]
        if tensor in self.body.constants:
            return self._constant(tensor, on_host=tensor in self._host.read_on_host)
        return f"{self._prefix}v{tensor.op.id}_{tensor.value_index}"

    def form(self, tensor: Tensor, on_host: bool) -> str:
        """The name of a value on the host or on the device. Where it is made on the other, a line copies it first."""
        if self._device.type == "CPU" or has_one_form(tensor):
            return self.name(tensor)
        if tensor in self.body.constants and tensor not in self._entered:
            return self._constant(tensor, on_host)
        found = self._names.get((tensor, on_host)) or self._copies.get((tensor, on_host))
        if found is not None:
            return found
        if tensor not in self._entered and (tensor in self._host.on_host) == on_host:
            return self.name(tensor)
        name = f"{self._prefix}{'h' if on_host else 'u'}{tensor.op.id}_{tensor.value_index}"
        copy = "download" if on_host else "upload"
        function = self._program.refer(copy, getattr(self._program, copy))
        self._program.add(f"{name} = {function}({self.name(tensor)})", tensor.op)
        self._copies[tensor, on_host] = name
        return name

    def _constant(self, tensor: Tensor, on_host: bool) -> str:
        is_numpy = on_host or self._device.type == "CPU"
        kind = "kh" if on_host and self._device.type != "CPU" else "k"
        name = f"{self._prefix}{kind}{tensor.op.id}_{tensor.value_index}"
        if name not in self._program.namespace:
            value = (self._program.host if is_numpy else self._device).asarray(self.body.constants[tensor])
            # A NumPy scalar computes three times faster than an array of rank 0. Strings have no scalar form.
            unwrap = tensor.shape.rank == 0 and is_numpy and tensor.dtype.kind != "string"
            self._program.namespace[name] = value[()] if unwrap else value
        return name

    def _arguments(self, op: Operation) -> list[str]:
        """The names of the inputs of an operation where its kernel takes them."""
        names = []
        for index, tensor in enumerate(op.inputs):
            if op.type == "Send" or op.op_def.reads_shape_alone(index):
                names.append(self.name(tensor))
            else:
                names.append(self.form(tensor, op in self._host.ops or op.op_def.reads_on_host(index)))
        return names

    # -- branches and loops ------------------------------------------------------------------------

    def _write_branch(self, op: Operation) -> None:
        """Write a branch as Python's own ``if``."""
        program = self._program
        pred, targets = self.form(op.inputs[0], True), [self.name(tensor) for tensor in op.outputs]
        regions = self._regions(op)
        names = [self._passed(region, op.inputs[1:]) for region in regions]
        for header, region, passed in zip((f"if {pred}:", "else:"), regions, names, strict=True):
            with program.block(header, op):
                branch = self._inner(region, passed)
                branch.write()
                assign(program, targets, [branch.form(tensor, False) for tensor in branch.body.outputs])

    def _write_loop(self, op: Operation) -> None:
        """Write a loop as Python's own ``while``."""
        program, count, serial = self._program, op.attrs["variables"], next(self._program.serial)
        work = program.work
        carried = self._host.carried.get(op, ())
        variables = [f"w{serial}_{index}" for index in range(count)]
        iterations, *targets = [self.name(tensor) for tensor in op.outputs]
        first = [self.form(tensor, index in carried) for index, tensor in enumerate(op.inputs[:count])]
        regions = self._regions(op)
        names = [self._passed(region, op.inputs, count) for region in regions]
        for region, passed in zip(regions, names, strict=True):
            inputs = region.body.inputs[:count]
            passed.update({(tensor, i in carried): variables[i] for i, tensor in enumerate(inputs)})
        assign(program, variables, first)
        program.add(f"{iterations} = 0")
        for stack in targets[count:]:
            program.add(f"{stack} = []")
        body = self._inner(regions[1], names[1])
        prepared = body.prepare(count)
        with program.block("while True:", op):
            condition = self._inner(regions[0], names[0])
            condition.write()
            program.add(f"if not {condition.form(condition.body.outputs[0], True)}: break", op)
            body.write()
            outputs = body.body.outputs
            for stack, tensor in zip(targets[count:], outputs[count:], strict=True):
                value = body.name(tensor)
                kept = f"{self._context(op)}.to_host({value})" if op.attrs["swap_memory"] else value
                program.add(f"{stack}.append({kept})")
            assign(program, variables, [body.form(t, i in carried) for i, t in enumerate(outputs[:count])])
            program.add(f"{iterations} += 1")
            is_due = f" and not {iterations} % {_TURNS_BETWEEN_LOOKS}" if program.work - work < LOOK_AFTER else ""
            program.look(op, f"step.may_have_ended{is_due}")
        if prepared:
            program.add(" = ".join([*prepared, "None"]))
        program.add(f"{iterations} = {program.refer('int32', np.int32)}({iterations})")
        assign(program, targets[:count], variables)
        for stack in targets[count:]:
            program.add(f"{stack} = {program.refer('tensor_list', TensorList.of)}({stack})")

    def _regions(self, op: Operation) -> list[HostValues]:
        names = ("condition", "body") if op.type == "While" else ("then", "orelse")
        return self._host.regions.get(op) or [HostValues(region_body(op.attrs[name])) for name in names]

    def _passed(
        self, region: HostValues, arguments: Sequence[Tensor], first: int = 0
    ) -> dict[tuple[Tensor, bool], str]:
        """The names of what enters a region, from the input `first` on, where the region reads it."""
        names = {}
        for tensor, argument in list(zip(region.body.inputs, arguments, strict=True))[first:]:
            reads = [
                on_host for on_host in (False, True) if tensor in (region.read_on_device, region.read_on_host)[on_host]
            ]
            if self._device.type == "CPU" or has_one_form(tensor) or not reads:
                names[tensor, self._is_on_host(argument)] = self.name(argument)
            else:
                names.update({(tensor, on_host): self.form(argument, on_host) for on_host in reads})
        return names

    def _is_on_host(self, tensor: Tensor) -> bool:
        """Whether what `name` names is on the host of a GPU."""
        if self._device.type == "CPU" or has_one_form(tensor):
            return False
        if tensor in self._entered:
            return (tensor, False) not in self._names
        return tensor in (self._host.read_on_host if tensor in self.body.constants else self._host.on_host)

    def _inner(self, region: HostValues, names: Mapping[tuple[Tensor, bool], str]) -> Emitter:
        # Later operations of the step may update any variable that the region reads, so reads that leave it are copied.
        handles = {tensor.op.name for tensor in region.body.inputs if tensor.dtype is dtypes.resource}
        prefix = f"r{next(self._program.serial)}"
        return Emitter(self._program, region, names, prefix, updated_elsewhere=handles)

    # -- groups ------------------------------------------------------------------------------------

    def _write_group(self, group: FusedGroup) -> None:
        """Write a group as a function of a part that runs over all parts, or as the call of a compiled loop.

        Names begin with ``f`` for whole arrays in the group's form and ``p`` for a part of them. In traced code ``m``
        are the times before each operation on a part, and ``t`` is the list of these for all parts.
        """
        program, serial = self._program, next(self._program.serial)
        for op in group.ops:
            program.count_work(op)
        if program.traced:
            program.add("start = trace.now()")
        kept = [tensor for tensor in group.results if tensor not in group.internal]
        for tensor in kept:
            program.add(f"{self.name(tensor)} = {self._memory_for(tensor) or self._fresh(tensor)}", tensor.op)
        if program.traced:
            program.add(f"t{serial} = []")
            program.add("begun = trace.now()")
        loop = compiled_loop(group, self._kernel)
        if loop is None:
            self._write_parts(group, kept, serial)
        else:
            self._write_loop_call(group, loop, kept, serial)
        if program.traced:
            ops = ", ".join(map(self._traced_op, group.ops))
            places = tuple(group.results.index(tensor) for tensor in kept)
            values = "".join(f"{self.name(tensor)}, " for tensor in kept)
            program.add(f"trace.ran_together(({ops},), start, begun, trace.now(), t{serial}, {places}, ({values}))")

    def _write_device_group(self, group: FusedGroup) -> None:
        """Write a group as one kernel of a GPU."""
        program, loop = self._program, group_loop(group, self._kernel)
        tensors = {name_of(tensor): tensor for tensor in (*group.forms, *group.results)}
        taken = [self.form(tensors[name], group.forms[tensors[name]] == "number") for name in loop.inputs]
        for op in group.ops:
            program.count_work(op)
        for tensor in (tensors[name] for name in loop.outputs):
            program.add(f"{self.name(tensor)} = {self._memory_for(tensor) or self._fresh(tensor)}", tensor.op)
        arrays = ", ".join(
            [program.refer("xp", self._device.xp), *taken, *(self.name(tensors[n]) for n in loop.outputs)]
        )
        described = [(tensors[name], text) for name, text in zip(loop.inputs, taken, strict=True)]
        program.add(f"{program.refer('elements', loop)}({arrays})", group.ops[0], described)

    def _write_updates(self, group: UpdateGroup) -> None:
        """Write the updates of variables as one kernel of a GPU, or a few."""
        program = self._program
        for loop in update_loops(group, self._kernel, {t for t in self.body.constants if not t.shape.rank}):
            scalars = [self.form(tensor, True) for tensor in loop.numbers]
            scalars += [self.form(tensor, False) for tensor in loop.scalars]
            updates = []
            for op in loop.ops:
                program.count_work(op)
                (gradient,) = [
                    self.form(tensor, False)
                    for argument, tensor in zip(op.op_def.input_arguments, op.inputs, strict=True)
                    if is_gradient(argument)
                ]
                handles = [self.name(tensor) for tensor in op.inputs if tensor.dtype is dtypes.resource]
                updates.append(f"({', '.join([*handles, gradient])})")
            run = program.refer("updates", loop)
            xp = program.refer("xp", self._device.xp)
            program.add(f"{run}.run({xp}, [{', '.join(scalars)}], [{', '.join(updates)}])", loop.ops[0])

    def _write_loop_call(self, group: FusedGroup, loop: CompiledKernel, kept: Sequence[Tensor], serial: int) -> None:
        """Write the call of a compiled loop. Its operations are taken to have equal shares of its time."""
        program = self._program
        loop.prepare()
        arrays = ", ".join([*(self._taken(group, tensor) for tensor in group.forms), *map(self.name, kept)])
        forms = *group.forms.values(), *("result" for _ in kept)
        how = f"{group.shape}, {group.width}, {forms}, {is_threaded(group, self._kernel)}"
        call = f"{program.refer('run_loop', run_loop)}({program.refer('loop', loop)}, {how}, {arrays})"
        program.add(call, group.ops[0], [(tensor, self.name(tensor)) for tensor in group.forms])
        if program.traced:
            program.add(f"t{serial}.append(range({len(group.ops) + 1}))")

    def _write_parts(self, group: FusedGroup, kept: Sequence[Tensor], serial: int) -> None:
        """Write a function of a part, and its run over all parts."""
        program = self._program
        kinds = {t: form for t, form in group.forms.items() if form != "scalar" or group.is_repeated(t)}
        whole = {tensor: f"f{serial}_{i}" for i, tensor in enumerate(kinds)}
        rows, row = group.matrix_shape[0], (group.width,)
        in_rows = {"whole": group.matrix_shape, "row": row, "column": (rows, 1), "scalar": (1,)}
        for tensor, name in whole.items():
            form = f"{program.refer('in_form', in_form)}({self._taken(group, tensor)}, {in_rows[kinds[tensor]]})"
            program.add(f"{name} = {form}")
        for tensor in kept:
            whole[tensor] = f"f{serial}_{self.name(tensor)}"
            program.add(f"{whole[tensor]} = {self.name(tensor)}.reshape({group.matrix_shape})")
        program.add(f"def g{serial}(part):")
        program.depth += 1
        self._write_part(group, whole)
        if program.traced:
            marks = "".join(f"m{i}, " for i in range(len(group.ops) + 1))
            program.add(f"m{len(group.ops)} = trace.clock()")
            program.add(f"t{serial}.append(({marks}))")
        program.depth -= 1
        parts = program.refer("parts", parts_of(group, self._kernel))
        threaded = is_threaded(group, self._kernel)
        program.add(f"{program.refer('run_parts', run_parts)}(g{serial}, {parts}, {threaded})")
        program.add(" = ".join([f"g{serial}", *whole.values()]) + " = None")

    def _taken(self, group: FusedGroup, tensor: Tensor) -> str:
        """An input of a group as it is taken: without what a view repeats."""
        name = self.name(tensor)
        if not group.is_repeated(tensor):
            return name
        return f"{self._program.refer('once', once)}({name}, {group.forms[tensor]!r}, {group.width})"

    def _write_part(self, group: FusedGroup, whole: Mapping[Tensor, str]) -> None:
        """Write the operations of a group on one part."""
        program, names = self._program, {}
        for tensor, name in whole.items():
            names[tensor] = f"p{tensor.op.id}_{tensor.value_index}"
            is_cut = group.forms.get(tensor) not in ("row", "scalar")
            program.add(f"{names[tensor]} = {name}[part]" if is_cut else f"{names[tensor]} = {name}")
        slots = scratch_slots(group, self._kernel)
        for index, op in enumerate(group.ops):
            output = op.outputs[0]
            if program.traced:
                program.add(f"m{index} = trace.clock()")
            if output in slots:
                dtype = program.refer(f"dtype_{output.dtype.name}", output.dtype.numpy)
                names[output] = f"p{op.id}_0"
                buffer = program.refer("part_buffer", part_buffer)
                rest = group.matrix_shape[1:]
                program.add(f"{names[output]} = {buffer}({slots[output]!r}, part, {rest}, {dtype})")
            arguments = [names.get(tensor) or self.name(tensor) for tensor in op.inputs]
            filled = self._filled(op, arguments, names[output], on_part=True)
            program.add(filled, op, list(zip(op.inputs, arguments, strict=True)))

    # -- one operation -----------------------------------------------------------------------------

    def _write_operation(self, op: Operation) -> None:
        program = self._program
        arguments = self._arguments(op)
        statement = self._statement(op, arguments)
        program.count_work(op)
        inputs = list(zip(op.inputs, arguments, strict=True))
        if program.suspends and op.op_def.blocking:
            self._write_waiting(op, statement, inputs)
        else:
            if program.traced:
                program.add("start = trace.now()")
            program.add(statement, op, inputs)
        if not program.traced:
            return
        values = "".join(f"{self.name(tensor)}, " for tensor in op.outputs)
        program.add(f"trace.ran({self._traced_op(op)}, start, trace.now(), ({values}))")

    def _write_waiting(self, op: Operation, statement: str, inputs: Sequence[tuple[Tensor, str]]) -> None:
        """Write an operation that may have to wait. The time for which it waits is not its own."""
        program = self._program
        with program.block("while True:", op):
            with program.block("try:", op):
                if program.traced:
                    program.add("start = trace.now()")
                program.add(statement, op, inputs)
                program.add("break")
            with program.block(f"except {program.refer('suspended', Suspended)} as left:", op):
                program.add("waits_for = left.attempt")
            program.add(f"yield {program.refer(f'op{op.id}', op)}, waits_for")

    def _write_aside(self, op: Operation) -> None:
        """Write the beginning of an operation that runs aside. Its result is awaited on a later line."""
        program = self._program
        arguments = self._arguments(op)
        program.count_work(op)
        for tensor in self._memory.sent_in_place.keys() & op.outputs:  # room is made on the step's own thread
            program.add(f"o{op.id} = {self._memory_for(tensor)}", op)
            self._rooms[tensor] = f"o{op.id}"
        call = self._call(op, arguments)
        inputs = list(zip(op.inputs, arguments, strict=True))
        program.add(f"{self._prefix}a{op.id} = {self._prefix}aside.start(lambda: {call})", op, inputs)

    def _write_result(self, op: Operation) -> None:
        self._program.add(f"{self._targets(op)}{self._prefix}a{op.id}.result()", op)

    def _traced_op(self, op: Operation) -> str:
        return self._program.refer(f"op{op.id}", describe(op, self._memory.slot_of))

    def _statement(self, op: Operation, arguments: list[str]) -> str:
        call = self._call(op, arguments)
        if not self._memory.copied_reads.isdisjoint(op.outputs):
            call = f"{call}.copy()" if len(op.outputs) == 1 else f"[each.copy() for each in {call}]"
        return f"{self._targets(op)}{call}"

    def _targets(self, op: Operation) -> str:
        """What the call of a kernel is assigned to, with the sign; empty if it returns nothing."""
        targets = ["_" if tensor in self.body.constants else self.name(tensor) for tensor in op.outputs]
        if op.op_def.returns_sequence and len(targets) == 1:
            return f"{targets[0]}, = "
        return f"{', '.join(targets)} = " if targets else ""

    def _call(self, op: Operation, arguments: list[str]) -> str:
        kernel = self._kernel(op)
        if kernel.infix and all(tensor.shape.rank == 0 for tensor in (*op.inputs, *op.outputs)):
            return kernel.infix.format(*arguments)
        if isinstance(kernel.inline, str):
            return kernel.inline.format(*arguments, **{name: repr(value) for name, value in op.attrs.items()})
        out = self._memory_for(op.outputs[0]) if op.outputs else None
        expression = self._expression(op, kernel)
        if expression is not None:
            return expression.format(*arguments, np=NumPyNames(self._program), out=out)
        if op in self._prepared:
            index, name = self._prepared[op]
            arguments = [*arguments[:index], name, *arguments[index + 1 :]]
        return self._filled(op, arguments, out)

    def _expression(self, op: Operation, kernel: Kernel) -> str | None:
        """What the kernel gives as an expression for this operation, if it does."""
        return kernel.inline(op) if callable(kernel.inline) and self._device.type == "CPU" else None

    def _filled(self, op: Operation, arguments: list[str], out: str | None, *, on_part: bool = False) -> str:
        """The call of the kernel, which fills `out`: a part of the result, if it is called on parts of the inputs."""
        kernel = self._kernel(op)
        is_cpu = self._device.type == "CPU"
        looped = looped_function(op, kernel, on_part=on_part) if is_cpu and self._program.fuses else None
        if kernel.ufunc is not None and looped is None:
            function = self._program.refer(kernel.ufunc, getattr(self._device_of(op).xp, kernel.ufunc))
            if out is not None:
                # Passing ``out`` by position is faster. NumPy deprecates that for these two functions.
                arguments = [*arguments, ("out=" if kernel.ufunc in ("maximum", "minimum") else "") + out]
            return f"{function}({', '.join(arguments)})"
        called = looped or kernel.function
        function = self._program.refer(f"{called.__name__.strip('_<>')}", called)
        context = self._context(op)
        if uses_step(op) or (op.op_def.regions and not op.op_def.defers_regions):
            context += ".at(step)"
        if out is not None:
            arguments = [*arguments, f"out={out}"]
        return f"{function}({', '.join([context, *arguments])})"

    def _kernel(self, op: Operation) -> Kernel:
        # What runs on the host of a GPU is small: it gets no memory of the plan, which is the device's.
        return (
            replace(_kernel(op, self._program.host), accepts_out=False)
            if op in self._host.ops
            else _kernel(op, self._device)
        )

    def _device_of(self, op: Operation) -> Device:
        return self._program.host if op in self._host.ops else self._device

    def _context(self, op: Operation) -> str:
        name = f"{self._prefix}c{op.id}"
        if name not in self._program.namespace:
            regions, over_batch = self._program.open_regions(self._program, op)
            self._program.namespace[name] = OpContext(op, self._device_of(op), regions, over_batch)
        return name

    def _memory_for(self, tensor: Tensor) -> str | None:
        """The expression for the memory that a kernel fills with `tensor`; None to let the kernel allocate it."""
        slot = self._memory.slot_of.get(tensor)
        if slot is not None:
            return self._buffer(slot, tensor)
        send = self._memory.sent_in_place.get(tensor)
        if send is None or tensor in self._rooms:
            return self._rooms.get(tensor)
        dtype = self._program.refer(f"dtype_{tensor.dtype.name}", tensor.dtype.numpy)
        ends = f"{send.attrs['key']!r}, {send.attrs['destination']!r}"
        return f"step.rendezvous.room({ends}, {tuple(tensor.shape.as_list())}, {dtype})"

    def _fresh(self, tensor: Tensor) -> str:
        """The expression for new memory of the form of `tensor`, whose shape is known."""
        dtype = self._program.refer(f"dtype_{tensor.dtype.name}", tensor.dtype.numpy)
        empty = self._program.refer("empty", self._device.xp.empty)
        return f"{empty}({tuple(tensor.shape.as_list())}, {dtype})"

    def _buffer(self, slot: int, tensor: Tensor) -> str:
        return self._program.buffer(self._first_slot + slot, tensor)

    def _drop(self, index: int) -> None:
        dropped = self._memory.dropped_after.get(index, ())
        # Values that entered a region are not dropped in it: the next turn of a loop needs them again.
        names = [self.name(tensor) for tensor in dropped if tensor not in self._entered or not self._prefix]
        if names:
            self._program.add(" = ".join(names) + " = None")

    def _result(self, tensor: Tensor, is_fetched_alone: bool) -> str:
        name = self.name(tensor) if is_fetched_alone else self.form(tensor, False)
        copied = (
            tensor in self._fetched
            and tensor in self._memory.copied_outputs
            and tensor.dtype.kind not in ("resource", "variant")
        )
        if copied and self._device.type == "CPU":
            return f"{self._program.refer('own', own)}({name})"
        return f"{name}.copy()" if copied else name
