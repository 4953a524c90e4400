"""From the body of a segment to one Python function: an operation costs its kernel call and nothing else.

The generated function looks like this, one operation a line, so that a line number names an operation::

    def make(b0, b1):
        def segment(step, v0, v1):
            v2 = matmul(c2, v0, v1, out=b0)
            v3 = add(v2, k3, b0)
            v4 = s4 * s5
            return (v3.copy(), v4)
        return segment

``b`` are buffers of reused memory, ``c`` kernel contexts, ``k`` constants, ``v`` values.
"""

from __future__ import annotations

import itertools
import linecache
import threading
import weakref
from collections.abc import Callable, Collection
from functools import partial
from types import FrameType
from typing import Any, Final

import numpy as np

from tfray.errors import InternalError, InvalidArgumentError, OpError, ResourceExhaustedError, UnknownError
from tfray.framework import dtypes
from tfray.framework.effects import uses_step
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import Kernel
from tfray.framework.region import Region
from tfray.runtime.body import Body, region_body
from tfray.runtime.device import Device, OpContext
from tfray.runtime.memory import MemoryPlan, plan_memory

_IDLE_FRAMES: Final = 2
"""Sets of buffers kept for reuse; more exist only while that many steps run at once."""

_serial = itertools.count()

_compiled: Final[weakref.WeakValueDictionary[str, CompiledBody]] = weakref.WeakValueDictionary()
"""Every compiled body by the file name of its code, to find the operation at fault behind a traceback."""


class CompiledBody:
    """A body compiled for one device. Callable from several threads at once."""

    def __init__(
        self,
        body: Body,
        device: Device,
        *,
        sends_copy: bool,
        fetched: Collection[Tensor] = (),
        updated_elsewhere: Collection[str] = (),
    ) -> None:
        memory = plan_memory(
            body, lambda op: _kernel(op, device), sends_copy=sends_copy, updated_elsewhere=updated_elsewhere
        )
        emitter = _Emitter(body, device, memory, fetched, sends_copy)
        self.source = emitter.source()
        self.buffer_bytes = sum(memory.slot_bytes)
        self._body = body
        self._device = device
        self._is_gpu = device.type == "GPU"
        self._memory = memory
        self._line_ops = emitter.line_ops
        self._buffers = emitter.buffers
        self._filename = f"<tfray segment {next(_serial)}>"
        code = compile(self.source, self._filename, "exec")
        exec(code, emitter.namespace)
        self._make: Callable[..., Callable[..., tuple[Any, ...]]] = emitter.namespace["make"]
        self._idle: list[Callable[..., tuple[Any, ...]]] = []
        self._lock = threading.Lock()
        _compiled[self._filename] = self
        self._show_source()

    def _show_source(self) -> None:
        """Let tracebacks and the debugger show the generated lines."""
        lines = self.source.splitlines(keepends=True)
        linecache.cache[self._filename] = (len(self.source), None, lines, self._filename)
        weakref.finalize(self, linecache.cache.pop, self._filename, None)

    def __call__(self, step: Any, *inputs: Any) -> tuple[Any, ...]:
        """Run the body. Raises an `OpError` that names the operation at fault."""
        function = self.acquire()
        try:
            if self._is_gpu:
                with self._device.activate():
                    outputs = function(step, *inputs)
            else:
                outputs = function(step, *inputs)
        except Exception as error:
            raise _explain(error) from error
        self.release(function)
        return outputs

    def acquire(self) -> Callable[..., tuple[Any, ...]]:
        """The function of ``(step, *inputs)``, with buffers of its own until it is released."""
        try:
            return self._idle.pop()
        except IndexError:
            pass
        slots = [self._device.allocate(size) for size in self._memory.slot_bytes]
        views = [self._device.view(slots[slot], shape, dtype) for slot, shape, dtype in self._buffers]
        return self._make(*views)

    def release(self, function: Callable[..., tuple[Any, ...]]) -> None:
        """Give the buffers of `function` back."""
        if len(self._idle) < _IDLE_FRAMES:
            self._idle.append(function)

    def explain(self, error: Exception, frame: FrameType, line: int) -> Exception:
        """The error, with the operation on that line, its device, creation line and input shapes."""
        op = self._line_ops.get(line)
        if op is None:
            return error if isinstance(error, OpError) else InternalError(f"generated code failed: {error!r}")
        if isinstance(error, OpError):
            if error.op_name in (None, op.name):
                error.op_name, error.device, error.site = op.name, self._device.name, op.site
            return error
        shown = ", ".join(_describe(name, frame.f_locals) for name in self._input_names(op))
        message = f"{op.type}: {error}" + (f"; its inputs were {shown}" if shown else "")
        kind = _kind_of(error)
        if kind is UnknownError:
            message = f"{op.type}: {type(error).__name__}: {error}" + (f"; its inputs were {shown}" if shown else "")
        return kind(message, op_name=op.name, device=self._device.name, site=op.site)

    def _input_names(self, op: Operation) -> list[tuple[Tensor, str]]:
        return [(tensor, _value_name(tensor, self._body)) for tensor in op.inputs]


def _explain(error: Exception) -> Exception:
    """The error as the innermost generated function behind it explains it."""
    owner, frame, line = None, None, 0
    traceback = error.__traceback__
    while traceback is not None:
        found = _compiled.get(traceback.tb_frame.f_code.co_filename)
        if found is not None:
            owner, frame, line = found, traceback.tb_frame, traceback.tb_lineno
        traceback = traceback.tb_next
    return error if owner is None or frame is None else owner.explain(error, frame, line)


class RegionFunction:
    """A compiled region within a step, as a kernel sees it: ``with ctx.region("body") as body: body(*inputs)``."""

    __slots__ = ("_body", "_function", "_step")

    def __init__(self, body: CompiledBody, step: Any) -> None:
        self._body = body
        self._step = step

    def __enter__(self) -> Callable[..., tuple[Any, ...]]:
        self._function = self._body.acquire()
        return partial(self._function, self._step)

    def __exit__(self, *error: object) -> None:
        self._body.release(self._function)


def _compile_region(region: Region, device: Device, sends_copy: bool) -> Callable[[Any], RegionFunction]:
    # Whether the step updates a variable after the region read it is not known here.
    handles = {tensor.op.name for tensor in region.inputs if tensor.dtype is dtypes.resource}
    body = CompiledBody(region_body(region), device, sends_copy=sends_copy, updated_elsewhere=handles)
    return partial(RegionFunction, body)


def _kind_of(error: Exception) -> type[OpError]:
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return ResourceExhaustedError
    if isinstance(error, (ValueError, TypeError, IndexError)):
        return InvalidArgumentError
    return UnknownError


def _describe(named: tuple[Tensor, str], values: dict[str, Any]) -> str:
    tensor, name = named
    value = values.get(name)
    shape = getattr(value, "shape", None)
    return f"{tensor.name} {tensor.dtype.name}{list(shape) if shape is not None else ''}"


def _kernel(op: Operation, device: Device) -> Kernel:
    kernel = op.op_def.kernel_for(device.type)
    if kernel is None:
        raise InternalError(f"{op.type} has no kernel for {device.type}", op_name=op.name, device=device.name)
    return kernel


def _value_name(tensor: Tensor, body: Body) -> str:
    prefix = "k" if tensor in body.constants else "v"
    return f"{prefix}{tensor.op.id}_{tensor.value_index}"


class _Emitter:
    """Writes the function, collecting what it refers to in `namespace`."""

    def __init__(
        self, body: Body, device: Device, memory: MemoryPlan, fetched: Collection[Tensor], sends_copy: bool
    ) -> None:
        self.body = body
        self.sends_copy = sends_copy
        self.device = device
        self.memory = memory
        self.fetched = fetched
        self.namespace: dict[str, Any] = {}
        self.buffers: list[tuple[int, tuple[int, ...], np.dtype[Any]]] = []
        self.line_ops: dict[int, Operation] = {}
        self._buffer_names: dict[tuple[int, tuple[int, ...], np.dtype[Any]], str] = {}
        self._lines: list[str] = []

    def source(self) -> str:
        arguments = ", ".join(["step", *(self._name(tensor) for tensor in self.body.inputs)])
        for i, op in enumerate(self.body.ops):
            if op.outputs and all(tensor in self.body.constants for tensor in op.outputs):
                continue
            self.line_ops[len(self._lines) + 3] = op  # after the two "def" lines, counted from 1
            self._lines.append(self._statement(op))
            self._drop(i)
        self._lines.append(f"return ({''.join(self._result(tensor) + ', ' for tensor in self.body.outputs)})")
        body = "".join(f"        {line}\n" for line in self._lines)
        parameters = ", ".join(self._buffer_names.values())
        return f"def make({parameters}):\n    def segment({arguments}):\n{body}    return segment\n"

    def _name(self, tensor: Tensor) -> str:
        name = _value_name(tensor, self.body)
        if tensor in self.body.constants and name not in self.namespace:
            value = self.device.asarray(self.body.constants[tensor])
            # A scalar of NumPy computes three times faster than an array of rank 0; strings have no such form.
            unwrap = tensor.shape.rank == 0 and self.device.type == "CPU" and tensor.dtype.kind != "string"
            self.namespace[name] = value[()] if unwrap else value
        return name

    def _statement(self, op: Operation) -> str:
        call = self._call(op)
        if not op.outputs:
            return call
        if op.outputs[0] in self.memory.copied_reads:
            call += ".copy()"
        targets = ", ".join(self._name(tensor) if tensor not in self.body.constants else "_" for tensor in op.outputs)
        if op.op_def.returns_sequence:
            return f"{targets}, = {call}" if len(op.outputs) == 1 else f"{targets} = {call}"
        return f"{targets} = {call}"

    def _call(self, op: Operation) -> str:
        kernel = _kernel(op, self.device)
        arguments = [self._name(tensor) for tensor in op.inputs]
        if kernel.infix and all(tensor.shape.rank == 0 for tensor in (*op.inputs, *op.outputs)):
            return kernel.infix.format(*arguments)
        slot = self.memory.slot_of.get(op.outputs[0]) if op.outputs else None
        if kernel.ufunc is not None:
            function = self._refer(kernel.ufunc, getattr(self.device.xp, kernel.ufunc))
            if slot is not None:
                # Positional is faster; NumPy deprecates it for these two.
                keyword = "out=" if kernel.ufunc in ("maximum", "minimum") else ""
                arguments.append(keyword + self._buffer(slot, op.outputs[0]))
            return f"{function}({', '.join(arguments)})"
        function = self._refer(f"{kernel.function.__name__.strip('_<>')}", kernel.function)
        context = f"c{op.id}"
        regions = {name: _compile_region(op.attrs[name], self.device, self.sends_copy) for name in op.op_def.regions}
        self.namespace[context] = OpContext(op, self.device, regions)
        if uses_step(op):
            context += ".at(step)"
        if slot is not None:
            arguments.append(f"out={self._buffer(slot, op.outputs[0])}")
        return f"{function}({', '.join([context, *arguments])})"

    def _refer(self, name: str, function: Any) -> str:
        """A name in the namespace for `function`."""
        unique, serial = f"{name}_", 0
        while self.namespace.setdefault(unique, function) is not function:
            serial += 1
            unique = f"{name}_{serial}"
        return unique

    def _buffer(self, slot: int, tensor: Tensor) -> str:
        shape = tuple(int(size) for size in tensor.shape.sizes if size is not None)
        key = (slot, shape, tensor.dtype.numpy)
        if key not in self._buffer_names:
            self._buffer_names[key] = f"b{len(self._buffer_names)}"
            self.buffers.append(key)
        return self._buffer_names[key]

    def _drop(self, index: int) -> None:
        names = [_value_name(tensor, self.body) for tensor in self.memory.dropped_after.get(index, ())]
        if names:
            self._lines.append(" = ".join(names) + " = None")

    def _result(self, tensor: Tensor) -> str:
        copied = (
            tensor in self.fetched
            and tensor in self.memory.copied_outputs
            and tensor.dtype.kind not in ("resource", "variant")
        )
        return f"{self._name(tensor)}.copy()" if copied else self._name(tensor)
