"""A body compiled for one device: its generated function, the sets of its buffers, and what its errors say."""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cache, partial
from types import FrameType
from typing import Any, Final

import numpy as np

from tfray.errors import InternalError, NotAnError, OpError, ResourceExhaustedError, is_interrupt
from tfray.framework import dtypes
from tfray.framework.graph import Operation, Tensor
from tfray.framework.region import Region
from tfray.runtime.codegen import Emitter, size_of
from tfray.runtime.cuda_graphs import ReplayedFunction, can_capture
from tfray.runtime.device import Device
from tfray.runtime.host_values import HostValues, host_values
from tfray.runtime.op_errors import error_of
from tfray.runtime.over_batch import BatchFunction, region_over_batch
from tfray.runtime.program import Program
from tfray.runtime.segment_body import Body, region_body
from tfray.runtime.step import Left

Room = tuple[int, tuple[int, ...], np.dtype[Any]]
"""Place of a result among all, its shape, and its dtype."""

_MAX_IDLE_SETS: Final = 2
"""Sets of buffers that a body keeps for its next runs. More sets exist only while more steps run at once."""

_SMALL_BYTES: Final = 1 << 20
"""1 MiB: a body with fewer bytes of buffers keeps them after its first run, a larger one only after its second."""

SEGMENT: Final = "tfray segment"
"""Begins the file names of generated code."""

_serial = itertools.count()

_compiled: Final[weakref.WeakValueDictionary[str, CompiledBody]] = weakref.WeakValueDictionary()
"""Every compiled body by the file name of its code, to find the operation at fault behind a traceback."""


@dataclass(frozen=True)
class _Source:
    """Gives `linecache` the lines of generated code.

    They are not put into its cache: who takes them out again disturbs a thread that is looking through it.
    """

    body: weakref.ref[CompiledBody]

    def get_source(self, name: str) -> str | None:
        """The code; None when it is gone."""
        body = self.body()
        return None if body is None else body.source


class CompiledBody:
    """A body compiled for one device. Callable from several threads at once.

    Args:
        body: The body.
        device: The device.
        sends_copy: As for `Plan`.
        sent_in_place_bytes: As for `Plan`.
        fetched: Results that go to the user.
        fetched_alone: Those of them that nothing else takes: they may be given as the host has them.
        on_host: Inputs that are passed as NumPy arrays, whatever the device is.
        updated_elsewhere: Names of variable operations that are updated outside the body.
        fuses: Whether elementwise operations are computed together.
        traced: As for `Plan`.
        captures: Whether it may become a CUDA graph (see `cuda_graphs`).
        suspends: Whether its run may be left: operations of it may have to wait for other steps.
        has_rooms: Whether the caller may give memory for results (see `rooms`).

    Attributes:
        rooms: Place, shape and dtype of each result that may be computed in memory of the caller, who passes arrays for
            them behind the inputs, or nothing.
    """

    def __init__(
        self,
        body: Body,
        device: Device,
        *,
        sends_copy: bool,
        sent_in_place_bytes: int | None = None,
        fetched: Collection[Tensor] = (),
        fetched_alone: Collection[Tensor] = (),
        on_host: Collection[Tensor] = (),
        updated_elsewhere: Collection[str] = (),
        fuses: bool = True,
        traced: bool = False,
        captures: bool = False,
        suspends: bool = False,
        has_rooms: bool = False,
    ) -> None:
        program = Program(device, sends_copy, sent_in_place_bytes, fuses, traced, suspends, _open_regions)
        host = host_values(body, on_host) if device.type == "GPU" else HostValues(body)
        names = {(tensor, True): f"v{tensor.op.id}_{tensor.value_index}" for tensor in on_host}
        names |= {(t, False): f"v{t.op.id}_{t.value_index}" for t in body.inputs if t not in on_host}
        emitter = Emitter(
            program, host, fetched=fetched, updated_elsewhere=updated_elsewhere, names=names, has_rooms=has_rooms
        )
        emitter.write()
        program.add(f"return {emitter.results(fetched_alone)}")
        self.rooms = [(body.outputs.index(t), tuple(map(int, t.shape)), t.dtype.numpy) for t in emitter.rooms]
        rooms = [f"{name}=None" for name in emitter.rooms.values()]
        self.source = program.source(["step", *map(emitter.name, body.inputs), *rooms])
        self.buffer_bytes = sum(program.slot_bytes)
        self._device = device
        self._is_gpu = device.type == "GPU"
        self._suspends = suspends
        self._slot_bytes = program.slot_bytes
        self._slot_tensors = program.slot_tensors
        self._line_ops = program.line_ops
        self._buffers = program.buffers
        self._filename = f"{SEGMENT} {next(_serial)}"
        code = compile(self.source, self._filename, "exec")
        # With these, tracebacks and the debugger find the generated lines when they need them.
        program.namespace |= {"__name__": self._filename, "__loader__": _Source(weakref.ref(self))}
        exec(code, program.namespace)
        self._make: Callable[..., Callable[..., Any]] = program.namespace["make"]
        self._idle: list[Callable[..., Any]] = []
        self._has_run = False
        self._lock = threading.Lock()
        captures = captures and not on_host and not traced
        self._captured = body if captures and can_capture(body, device) else None
        _compiled[self._filename] = self

    def __call__(self, step: Any, *inputs: Any) -> tuple[Any, ...]:
        """Run the body.

        Raises:
            OpError: It names the operation at fault.
            Left: An operation has to wait.
        """
        try:
            function = self._idle.pop()  # as `acquire`, without its call
        except IndexError:
            function = self.acquire()
        if self._suspends:
            return self._go_on(function, function(step, *inputs))
        try:
            if self._is_gpu:
                with self._device.activate():
                    outputs = function(step, *inputs)
            else:
                outputs = function(step, *inputs)
        except BaseException as error:
            explained = _explain(error)
            if explained is error:
                raise
            raise explained from error
        self.release(function)
        return outputs

    def _go_on(self, function: Callable[..., Any], course: Any) -> tuple[Any, ...]:
        """Run the body from where its generator stands."""
        try:
            if self._is_gpu:
                with self._device.activate():
                    op, attempt = next(course)
            else:
                op, attempt = next(course)
        except StopIteration as end:
            outputs: tuple[Any, ...] = end.value
        except BaseException as error:
            explained = _explain(error)
            if explained is error:
                raise
            raise explained from error
        else:
            raise Left(op, attempt, partial(self._go_on, function, course))
        self.release(function)
        return outputs

    def acquire(self) -> Callable[..., Any]:
        """The function of ``(step, *inputs)``, with buffers of its own until it is released."""
        try:
            return self._idle.pop()
        except IndexError:
            pass
        slots: list[Any] = []
        try:
            for size in self._slot_bytes:
                slots.append(self._device.allocate(size))
        except MemoryError as error:
            raise self._exhausted(self._slot_tensors[len(slots)], error) from error
        views = [self._device.view(slots[slot], shape, dtype) for slot, shape, dtype in self._buffers]
        function = self._make(*views)
        return function if self._captured is None else ReplayedFunction(function, self._captured, self._device)

    def _exhausted(self, tensor: Tensor, error: MemoryError) -> ResourceExhaustedError:
        """The error for a slot without memory. It names `tensor`, the largest of the results that share the slot."""
        op = tensor.op
        return ResourceExhaustedError(
            f"{op.type}: no memory for its result {tensor.dtype.name}{tensor.shape.as_list()} of {size_of(tensor):,} "
            f"bytes; the plan of the step takes {self.buffer_bytes:,} bytes for results: {error}",
            op_name=op.name,
            device=self._device.name,
            site=op.site,
        )

    def release(self, function: Callable[..., Any]) -> None:
        """Give the buffers of `function` back."""
        # Many bodies run only once, such as a model's initialisation: large buffers kept for them would lie idle.
        if (self._has_run or self.buffer_bytes < _SMALL_BYTES) and len(self._idle) < _MAX_IDLE_SETS:
            self._idle.append(function)
        self._has_run = True

    def explain(self, error: BaseException, frame: FrameType, line: int) -> BaseException:
        """The error, with the operation on that line, its device, creation line and input shapes."""
        if line not in self._line_ops:
            if isinstance(error, MemoryError):  # from the line of the ``return``, which copies some results
                return ResourceExhaustedError(f"no memory for the results of a step: {error}", device=self._device.name)
            return error if isinstance(error, OpError) else InternalError(f"generated code failed: {error!r}")
        op, inputs = self._line_ops[line]
        return error_of(op, error, self._device.name, [(tensor, frame.f_locals.get(name)) for tensor, name in inputs])


def _explain(error: BaseException) -> BaseException:
    """The error as the innermost generated function behind it explains it. What is no operation's stays as it is."""
    if isinstance(error, NotAnError) or is_interrupt(error):
        return error
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

    @property
    def rooms(self) -> Sequence[Room]:
        """Results that may be computed in memory of the caller: see `CompiledBody.rooms`."""
        return self._body.rooms

    def __enter__(self) -> Callable[..., tuple[Any, ...]]:
        self._function = self._body.acquire()
        return partial(self._function, self._step)

    def __exit__(self, *error: object) -> None:
        self._body.release(self._function)


def _open_regions(program: Program, op: Operation) -> tuple[dict[str, Any], Any]:
    """For each region of `op` what makes its `RegionFunction` in a step, and what finds the one over a batch."""
    is_deferred = op.op_def.defers_regions
    compiled = {name: _compile_region(program, op.attrs[name], is_deferred) for name in op.op_def.regions}
    regions = {name: partial(RegionFunction, body) for name, body in compiled.items()}
    return regions, cache(partial(_batch_function, program, op)) if is_deferred else None


def _compile_region(program: Program, region: Region, is_deferred: bool) -> CompiledBody:
    return CompiledBody(
        region_body(region),
        program.device,
        sends_copy=program.sends_copy,
        sent_in_place_bytes=program.sent_in_place_bytes,
        updated_elsewhere={tensor.op.name for tensor in region.inputs if tensor.dtype is dtypes.resource},
        traced=program.traced and not is_deferred,  # deferred regions run outside of the step
        has_rooms=is_deferred,
    )


def _batch_function(program: Program, op: Operation, name: str) -> BatchFunction | None:
    """A region of a dataset's function for many elements at once, compiled; None if there is no way."""
    found = region_over_batch(op.attrs[name], op.attrs["parameters"])
    if found is None:
        return None
    region, forms = found
    compiled = _compile_region(program, region, is_deferred=True)
    return BatchFunction(partial(RegionFunction, compiled, program.device.background), forms)
