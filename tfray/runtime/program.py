"""The text of a generated function, and what it refers to. `codegen` writes it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from tfray.framework.graph import Operation, Tensor
from tfray.runtime.device import Device

LOOK_AFTER: Final = 1 << 16
"""Elements read and written between two looks whether the step has been ended. A smaller number makes more looks; with
a larger one a step notices its end later."""

_CALL_WORK: Final = 1 << 10
"""Elements that the call of a kernel counts for, besides those that it reads and writes."""


def work_of(op: Operation) -> int:
    """About how many elements an operation reads and writes; `LOOK_AFTER` where the sizes are not known."""
    if op.op_def.stateful and op.op_def.access is None and op.type != "Variable":
        return LOOK_AFTER
    sizes = [tensor.shape.num_elements() for tensor in (*op.inputs, *op.outputs)]
    return _CALL_WORK + sum(LOOK_AFTER if size is None else size for size in sizes)


class Program:
    """The text of a function, and what it refers to.

    Attributes:
        namespace: Global names: kernels, contexts, constants.
        suspends: Whether the function is left, and goes on later, where an operation has to wait.
        slot_bytes: Sizes of the slots of reused memory.
        slot_tensors: For each slot, the largest of the results that lie in it.
        buffers: Slot, shape and dtype of each buffer, in the order of the parameters of ``make``.
        line_ops: Line number to operation, with the names of its inputs.
        open_regions: Compiles the regions of an operation whose kernel calls them.
        work: Elements that the lines so far read and write; `work_looked_at` is its value at the last look.
    """

    def __init__(
        self,
        device: Device,
        sends_copy: bool,
        sent_in_place_bytes: int | None,
        fuses: bool,
        traced: bool,
        suspends: bool,
        open_regions: Callable[[Program, Operation], tuple[dict[str, Any], Any]],
    ) -> None:
        self.device = device
        self.suspends = suspends
        self.open_regions = open_regions
        self.fuses = fuses
        self.traced = traced
        self.host = device.host
        self.upload, self.download = device.asarray, device.to_host
        self.sends_copy = sends_copy
        self.sent_in_place_bytes = sent_in_place_bytes
        self.sends_in_place = device.type == "CPU" and not traced
        self.has_lanes = device.type == "CPU" and fuses and not traced
        self.namespace: dict[str, Any] = {}
        self.slot_bytes: list[int] = []
        self.slot_tensors: list[Tensor] = []
        self.buffers: list[tuple[int, tuple[int, ...], np.dtype[Any]]] = []
        self.line_ops: dict[int, tuple[Operation, list[tuple[Tensor, str]]]] = {}
        self.serial = itertools.count()
        self.depth = 0
        self.work = self._work_looked_at = 0
        self._buffer_names: dict[tuple[int, tuple[int, ...], np.dtype[Any]], str] = {}
        self._lines: list[str] = []
        if traced:
            self.add(f"trace = step.traces[{device.name!r}]")
            self.add("trace.entered()")

    def add(self, line: str, op: Operation | None = None, inputs: Sequence[tuple[Tensor, str]] = ()) -> None:
        """Write a line, which runs `op`."""
        self._lines.append("    " * (self.depth + 2) + line)
        if op is not None:
            self.line_ops[len(self._lines) + 2] = op, list(inputs)  # after the two "def" lines, counted from 1

    @contextmanager
    def block(self, header: str, op: Operation) -> Iterator[None]:
        """Write an indented block. It may turn out empty."""
        self.add(header, op)
        self.depth += 1
        length = len(self._lines)
        yield
        if len(self._lines) == length:
            self.add("pass")
        self.depth -= 1

    def count_work(self, op: Operation) -> None:
        """Add the work of `op`, which comes next. If `LOOK_AFTER` is reached since the last look, write a look."""
        self.work += work_of(op)
        if self.work - self._work_looked_at >= LOOK_AFTER:
            self.look(op)

    def look(self, op: Operation, condition: str = "step.may_have_ended") -> None:
        """Write a look whether the step has been ended. An error that it raises names `op`."""
        self.add(f"if {condition}: step.raise_if_ended()", op)
        self._work_looked_at = self.work

    def source(self, arguments: Sequence[str]) -> str:
        """The whole text."""
        parameters = ", ".join(self._buffer_names.values())
        lines = "".join(f"{line}\n" for line in self._lines)
        return f"def make({parameters}):\n    def segment({', '.join(arguments)}):\n{lines}    return segment\n"

    def refer(self, name: str, function: Any) -> str:
        """A name for `function`."""
        unique, serial = f"{name}_", 0
        while self.namespace.setdefault(unique, function) is not function:
            serial += 1
            unique = f"{name}_{serial}"
        return unique

    def buffer(self, slot: int, tensor: Tensor) -> str:
        """The name of a slot's memory in the form of `tensor`."""
        shape = tuple(int(size) for size in tensor.shape.sizes if size is not None)
        key = (slot, shape, tensor.dtype.numpy)
        if key not in self._buffer_names:
            self._buffer_names[key] = f"b{len(self._buffer_names)}"
            self.buffers.append(key)
        return self._buffer_names[key]


class NumPyNames:
    """The names by which generated code knows the functions of NumPy."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def __getattr__(self, name: str) -> str:
        return self._program.refer(name, getattr(np, name))


def assign(program: Program, targets: Sequence[str], values: Sequence[str]) -> None:
    """Write one simultaneous assignment."""
    pairs = [(target, value) for target, value in zip(targets, values, strict=True) if target != value]
    if pairs:
        program.add(f"{', '.join(t for t, _ in pairs)} = {', '.join(v for _, v in pairs)}")
