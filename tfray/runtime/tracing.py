"""What a traced step tells: when each operation ran, for how long, and which memory it took.

A traced step runs plans of its own, which are compiled when they are first asked for. Their generated code takes the
time before and after every operation. The usual plans have no such code.

All times are nanoseconds of `time.perf_counter_ns`, a clock that processes of one machine share. A span whose name
begins with ``_`` is not an operation: ``_wait`` (for other devices or steps), ``_compile``, ``_flush`` (messages
leave), ``_call`` and ``_return`` (between the driver and a device).
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import numpy as np

from tfray.framework.tensor_list import TensorList
from tfray.runtime.device import Device
from tfray.runtime.edge_key import without_turns
from tfray.runtime.executor import PlanRun, run_plan
from tfray.runtime.plan import Plan, Segment
from tfray.runtime.rendezvous import Mailbox, Rendezvous
from tfray.runtime.resources import VariableResource
from tfray.runtime.step import Attempt, Call, Left, Step
from tfray.runtime.traced_op import TracedOp

HARDWARE_TRACE: Final = 2
"""Trace level from which the recorder waits for the GPU after every operation, so that the time is the operation's."""

_Measured = tuple[tuple[int, ...] | None, int, int]


Observer = Callable[[str, TracedOp, Sequence[Any]], None]
"""Takes the name of a device, an operation, and the values that it has returned."""


class Output(NamedTuple):
    """A value that an operation returned.

    Attributes:
        dtype: Name of its dtype; empty where it is not known.
        shape: Its shape; None for what is no array.
        size_bytes: Bytes of its elements.
        allocated: Bytes of new memory that it took, reused memory not counted.
        freed: When that memory was freed; None while it lives.
    """

    dtype: str
    shape: tuple[int, ...] | None
    size_bytes: int
    allocated: int
    freed: int | None


class Span(NamedTuple):
    """A stretch of time of one device.

    Attributes:
        op: What it did.
        start: When it began.
        end: When it ended.
        outputs: What that returned.
        arrived: When the tensor of a Recv had come, if it is large and came from another process.
    """

    op: TracedOp
    start: int
    end: int
    outputs: tuple[Output, ...] = ()
    arrived: int | None = None


@dataclass
class DeviceRecord:
    """What one device did in one step, as plain data.

    Attributes:
        device: Its name.
        host: Identity of its machine: clocks of one machine agree.
        thread: Number and name of the thread.
        start: When its part of the step began.
        end: When it was over.
        spans: In the order in which they ended.
        persistent: Name and bytes of every variable.
        planned_bytes: Bytes of reused memory.
    """

    device: str
    host: str
    thread: tuple[int, str]
    start: int
    end: int
    spans: list[Span]
    persistent: list[tuple[str, int]] = field(default_factory=list)
    planned_bytes: int = 0


def host_identity() -> str:
    """Something that differs between machines, and between boots of one."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:
        import platform

        return platform.node()


class DeviceTrace:
    """Takes the times of one device in one step. Generated code calls it.

    Args:
        device: The device.
        level: `tf.RunOptions.trace_level`.
        observer: Called with the device's name, each operation and what it returned. It may look at the values and must
            not keep them: their memory may be written over later.

    Attributes:
        start: When the step began on the device.
        end: When it was over.
        thread: Number and name of the thread on which it ran.
        waited: Whether the step has waited since the last Recv within a branch or a loop.
        resumed: When the wait of the last such Recv ended; 0 if it did not wait.
        called: Name of the operation whose Python function was called last, and when the function began and ended.
        arrivals: By key of its edge: when a large tensor had come from another process.
    """

    clock = staticmethod(time.perf_counter_ns)

    def __init__(self, device: Device, level: int, observer: Observer | None = None) -> None:
        self._device = device
        self._observer = observer
        self.now: Callable[[], int] = time.perf_counter_ns
        if device.type == "GPU" and level >= HARDWARE_TRACE:
            self.now = self._synchronized
        self._spans: list[tuple[TracedOp, int, int, list[_Measured]]] = []
        self._memory: dict[int, weakref.ref[Any]] = {}
        self._freed: dict[tuple[int, int], int] = {}
        for _, array in self._arrays():
            self._take(array, None)
        self._expected: tuple[int, Segment, int] | None = None
        self.thread = (0, "")
        self.resumed = 0
        self.waited = False
        self.called: tuple[str, int, int] | None = None
        self.arrivals: Mapping[str, int] = {}
        self.start = self.end = time.perf_counter_ns()

    def _synchronized(self) -> int:
        self._device.synchronize()
        return time.perf_counter_ns()

    def _arrays(self) -> Iterator[tuple[str, Any]]:
        resources = self._device.resources
        for key in resources:
            found = resources.find(key)
            if isinstance(found, VariableResource) and found.array is not None:
                yield found.name, found.array

    # -- called while the step runs --------------------------------------------------------------

    def ran(self, op: TracedOp, start: int, end: int, values: Sequence[Any] = ()) -> None:
        """An operation has run and returned `values`."""
        if self.resumed > start:
            start, self.resumed = self.resumed, 0
        if self.called is not None and self.called[0] == op.name:
            (_, start, end), self.called = self.called, None
        if self._observer is not None and values:
            self._observer(self._device.name, op, values)
        self._spans.append((op, start, end, [self._measure(op, i, value) for i, value in enumerate(values)]))

    def ran_together(
        self,
        ops: Sequence[TracedOp],
        start: int,
        begun: int,
        end: int,
        marks: Sequence[Sequence[int]],
        kept: Sequence[int],
        values: Sequence[Any],
    ) -> None:
        """Operations have run part by part.

        Args:
            ops: The operations.
            start: Before the preparations, which count as the first operation's.
            begun: Before the first part.
            end: After the last.
            marks: For each part, the times before each operation, and after the last.
            kept: Indices of the operations whose values exist as a whole.
            values: Those values.
        """
        spent = np.diff(np.asarray(marks, np.int64), axis=1).sum(0)
        # Parts may have run on several threads: each operation gets its share of the time that passed.
        ends = begun + np.cumsum(spent) * (end - begun) // max(int(spent.sum()), 1)
        results = dict(zip(kept, values, strict=True))
        begin = start
        for i, op in enumerate(ops):
            measured = [self._measure(op, 0, results[i])] if i in results else []
            self._spans.append((op, begin, int(ends[i]), measured))
            begin = int(ends[i])

    def took(self, name: str, label: str, start: int, end: int, values: Sequence[Any] = ()) -> None:
        """Something other than an operation has taken time."""
        self.ran(TracedOp(name, name, label), start, end, values)

    def begin(self) -> None:
        """The step begins on the device, on the calling thread."""
        self.thread = (threading.get_native_id(), threading.current_thread().name)
        self.start = time.perf_counter_ns()

    def expect_entry(self, segment: Segment) -> None:
        """A segment is about to run, and may have to be compiled first."""
        self._expected = time.perf_counter_ns(), segment, segment.forms

    def entered(self) -> None:
        """The code of a segment, or of a region that its kernel calls, begins."""
        expected, self._expected = self._expected, None
        if expected is None:
            return
        begun, segment, forms = expected
        if segment.forms > forms:
            self.took("_compile", "", begun, time.perf_counter_ns())

    # -- afterwards ------------------------------------------------------------------------------

    def close(self) -> None:
        """The step is over on this device."""
        self.end = time.perf_counter_ns()

    def record(self, planned_bytes: int) -> DeviceRecord:
        """Everything that was recorded, as plain data."""
        persistent = [(name, int(array.nbytes)) for name, array in self._arrays()]
        spans = []
        for number, (op, start, end, measured) in enumerate(self._spans):
            freed = [self._freed.get((number, index)) for index in range(len(measured))]
            dtypes = op.dtypes or ("",) * len(measured)
            outputs = [Output(*each) for each in zip(dtypes, *zip(*measured, strict=True), freed, strict=False)]
            arrived = self.arrivals.get(op.label) if op.type == "Recv" else None
            spans.append(Span(op, start, end, tuple(outputs) if measured else (), arrived))
        name = self._device.name
        return DeviceRecord(
            name,
            host_identity(),
            thread=self.thread,
            start=self.start,
            end=self.end,
            spans=spans,
            persistent=persistent,
            planned_bytes=planned_bytes,
        )

    def _measure(self, op: TracedOp, index: int, value: Any) -> _Measured:
        """Shape, bytes, and bytes of memory that was not there before."""
        if isinstance(value, TensorList) or not hasattr(value, "nbytes"):
            return None, 0, 0
        if not value.shape or not hasattr(value, "base"):
            return value.shape, int(value.nbytes), 0
        planned = index < len(op.planned) and op.planned[index]
        place = None if planned else (len(self._spans), index)
        return value.shape, int(value.nbytes), self._take(value, place)

    def _take(self, value: Any, place: tuple[int, int] | None) -> int:
        """Note when the memory behind `value` is freed, and return its bytes if the memory is new.

        `place` says which output allocated it: (number of the span, index of the output). None counts no bytes.
        """
        root = _root(value)
        identity, memory = id(root), self._memory
        if identity in memory:
            return 0

        def freed(_: Any) -> None:
            del memory[identity]
            if place is not None:
                self._freed[place] = time.perf_counter_ns()

        try:
            memory[identity] = weakref.ref(root, freed)
        except TypeError:  # a kind of array that has no weak references
            return 0
        return 0 if place is None else int(root.nbytes)


def _root(value: Any) -> Any:
    """The array that owns the memory of `value`."""
    base = getattr(value, "base", None)
    while hasattr(base, "dtype"):  # below may lie a buffer of another kind
        value, base = base, getattr(base, "base", None)
    return value


# -- clocks --------------------------------------------------------------------------------------------


def in_one_time(records: Sequence[DeviceRecord], offsets: Mapping[str, int]) -> list[DeviceRecord]:
    """The records on one clock: `offsets`, by host and in nanoseconds, are added to their times, then corrected.

    An estimated offset errs by up to the time of a message. Where a tensor seems to have arrived before it was sent,
    the receiver's times are moved forward until it has not.
    """
    offsets = {record.host: offsets.get(record.host, 0) for record in records}
    for _ in offsets:
        sent: dict[tuple[str, str], list[int]] = {}
        for record in records:
            for span in record.spans:
                if span.op.type == "Send":
                    sent.setdefault((span.op.label, record.host), []).append(span.start + offsets[record.host])
        for record in records:
            late = 0
            for span in record.spans:
                if span.op.type == "Recv":
                    first = [min(times) for (key, host), times in sent.items() if key == without_turns(span.op.label)]
                    late = max([late, *[time - span.start - offsets[record.host] for time in first]])
            offsets[record.host] += late
    return [shifted(record, offsets[record.host]) for record in records]


def shifted(record: DeviceRecord, offset: int) -> DeviceRecord:
    """The record with `offset` added to all its times."""
    if not offset:
        return record
    spans = [
        Span(
            span.op,
            span.start + offset,
            span.end + offset,
            tuple(
                output._replace(freed=None if output.freed is None else output.freed + offset)
                for output in span.outputs
            ),
            None if span.arrived is None else span.arrived + offset,
        )
        for span in record.spans
    ]
    return replace(record, start=record.start + offset, end=record.end + offset, spans=spans)


def with_call(record: DeviceRecord, called: int, returned: int) -> DeviceRecord:
    """The record with two more spans: from the driver's call to the device's start, and from its end to the result."""
    spans = [
        Span(TracedOp("_call", "_call", "from the driver"), called, max(called, record.start)),
        *record.spans,
        Span(TracedOp("_return", "_return", "to the driver"), record.end, max(returned, record.end)),
    ]
    return replace(record, start=min(called, record.start), end=max(returned, record.end), spans=spans)


# -- running -------------------------------------------------------------------------------------------


class TracedStep(Step):
    """A step that is recorded.

    Attributes:
        traces: Where each device's times go, by its name.
    """

    __slots__ = ("traces",)

    def __init__(self, traces: dict[str, DeviceTrace], *arguments: Any) -> None:
        super().__init__(*arguments)
        self.traces = traces
        if self.rendezvous is not None and self.rendezvous.copies:
            self.rendezvous = _TracedRendezvous(self.rendezvous, next(iter(traces.values())))
        if self.mailbox is not None:
            self.mailbox = TracedMailbox(self.mailbox, next(iter(traces.values())))

    def receive(self, key: str) -> Any:
        """Wait for a tensor; the wait is not part of the operation's time."""
        value = super().receive(key)
        for trace in self.traces.values():
            trace.resumed = time.perf_counter_ns() if trace.waited else 0
            trace.waited = False
        return value

    def complete(self, op_name: str, start: Callable[..., Attempt], *arguments: Any) -> Any:
        """The result of an attempt. The time of a Python function that was called counts as the operation's own."""
        attempt = self._attempts.get(op_name)
        value = super().complete(op_name, start, *arguments)
        if isinstance(attempt, Call):
            for trace in self.traces.values():
                trace.called = op_name, attempt.began, attempt.ended
        return value

    def run(self, plan: Plan, feeds: Sequence[Any]) -> list[Any]:
        """Run the traced form of a plan on the calling thread; see `run_plan`."""
        assert self.mailbox is not None
        fetched = run_plan(plan, self, feeds, self.mailbox, TracedRun)
        self.traces[plan.device.name].close()
        return fetched


class TracedRun(PlanRun):
    """A plan in a step that is recorded."""

    def __init__(self, plan: Plan, step: TracedStep, feeds: Sequence[Any]) -> None:
        self._trace = step.traces[plan.device.name]
        if not self._trace.thread[0]:
            self._trace.begin()
        super().__init__(plan, step, feeds)
        self._recv_names = {op.attr("key"): op.name for op in plan.recvs}

    def deliver(self, key: str, value: Any) -> None:
        """Take a received tensor."""
        start = time.perf_counter_ns()
        super().deliver(key, value)
        name = self._recv_names.get(key)
        if name is not None:
            first = value[0] if isinstance(value, list) and value else value
            dtype = getattr(getattr(first, "dtype", None), "name", "")
            op = TracedOp(name, "Recv", key, (dtype,))
            self._trace.ran(op, start, self._trace.now(), [value])

    def _run(self, segment: Segment, left: Left | None = None) -> None:
        if left is None:
            self._trace.expect_entry(segment)
        super()._run(segment, left)


class _TracedRendezvous:
    """Takes the time that messages take to leave."""

    copies = True

    def __init__(self, inner: Rendezvous, trace: DeviceTrace) -> None:
        self._inner = inner
        self._trace = trace
        self._sent: list[str] = []

    def send(self, key: str, destination: str, value: Any) -> None:
        """Hand a tensor over."""
        self._inner.send(key, destination, value)
        self._sent.append(key)

    def flush(self) -> None:
        """Let messages go."""
        start = time.perf_counter_ns()
        self._inner.flush()
        if self._sent:
            self._trace.took("_flush", f"{len(self._sent)} tensors", start, time.perf_counter_ns())
            self._sent.clear()


class TracedMailbox(Mailbox):
    """A mailbox that tells how long its step waits."""

    def __init__(self, inner: Mailbox, trace: DeviceTrace) -> None:  # it holds nothing of its own
        self._inner = inner
        self._trace = trace

    def deliver(self, items: list[tuple[str, Any]]) -> None:
        """Add values."""
        self._inner.deliver(items)

    def abort(self, error: BaseException) -> None:
        """End the step."""
        self._inner.abort(error)

    def lose(self, source: str, error: BaseException) -> None:
        """Note that nothing more can arrive from a device."""
        self._inner.lose(source, error)

    @property
    def lost(self) -> dict[str, BaseException]:
        """By device from which nothing more can arrive: why."""
        return self._inner.lost

    @lost.setter
    def lost(self, value: dict[str, BaseException]) -> None:
        self._inner.lost = value

    def wake(self) -> None:
        """Let the step's thread look again at what it waits for."""
        self._inner.wake()

    @property
    def has_news(self) -> bool:
        """Whether something has arrived."""
        return self._inner.has_news

    @has_news.setter
    def has_news(self, value: bool) -> None:
        self._inner.has_news = value

    def arrived(self) -> list[tuple[str, Any]]:
        """What has arrived by now."""
        return self._inner.arrived()

    def take(self, deadline: float | None, waiting_for: str) -> list[tuple[str, Any]]:
        """Wait for values."""
        start = time.perf_counter_ns()
        try:
            return self._inner.take(deadline, waiting_for)
        finally:
            self._trace.took("_wait", waiting_for, start, time.perf_counter_ns())
            self._trace.waited = True
