"""The spans of a recorded step, and what is computed from them: self time, flows between devices, memory over time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tfray.formats.step_stats import DeviceStepStats, NodeExecStats, RunMetadata, StepStats
from tfray.runtime.edge_key import without_turns

_LABEL: Final = re.compile(r"(.*?) = (\w+)\((.*)\)", re.DOTALL)

STEP_ALLOCATOR: Final = "step"
"""The name of the allocator of memory that is allocated and released within one step."""


@dataclass
class StepSpan:
    """A period of time in which one thread of one device did one thing.

    Attributes:
        name: Name of the operation; a name that begins with ``_`` for other work, such as waiting.
        type: Its type.
        arguments: What it was called on: names of tensors, or the key of an edge.
        device: Where.
        thread: On which thread.
        start_ns: When it began, in nanoseconds since 1970.
        end_ns: When it ended.
        output_bytes: Bytes of its outputs.
        allocated_bytes: The part of `output_bytes` that was newly allocated.
        self_ns: Its duration, less that of the spans inside it, in nanoseconds.
        shapes: Shapes of its outputs.
        ready_ns: When it could begin: when the tensor of a Recv had come. It is `start_ns` where that is not known.
    """

    name: str
    type: str
    arguments: str
    device: str
    thread: int
    start_ns: int
    end_ns: int
    output_bytes: int = 0
    allocated_bytes: int = 0
    self_ns: int = 0
    shapes: list[list[int]] = field(default_factory=list)
    ready_ns: int = 0

    @property
    def duration_ns(self) -> int:
        """How long it took."""
        return self.end_ns - self.start_ns

    @property
    def is_operation(self) -> bool:
        """Whether an operation of the graph ran, rather than that something was waited for or sent."""
        return not self.name.startswith("_") or self.type in ("Send", "Recv")


def stats_of(recorded: RunMetadata | StepStats) -> StepStats:
    """The step's statistics, whichever of the two was given."""
    return recorded.step_stats if isinstance(recorded, RunMetadata) else recorded


def merged(steps: Iterable[RunMetadata | StepStats]) -> StepStats:
    """Several steps as one. What a device holds all the time counts once."""
    devices: dict[str, DeviceStepStats] = {}
    for stats in map(stats_of, steps):
        for device in stats.dev_stats:
            known = device.device in devices
            into = devices.setdefault(device.device, DeviceStepStats(device=device.device))
            into.node_stats.extend(node for node in device.node_stats if _duration(node) or not known)
            for thread, name in device.thread_names.items():
                into.thread_names[thread] = name
    return StepStats(dev_stats=list(devices.values()))


def spans_of(recorded: RunMetadata | StepStats) -> list[StepSpan]:
    """Every span, by device and start. Statistics of TensorFlow are taken as well."""
    found: list[StepSpan] = []
    for device in stats_of(recorded).dev_stats:
        spans = [_span(node, device.device) for node in device.node_stats if _duration(node)]
        spans.sort(key=lambda span: (span.thread, span.start_ns, -span.end_ns))
        _set_self_times(spans)
        found += sorted(spans, key=lambda span: (span.start_ns, -span.end_ns))
    return found


def _duration(node: NodeExecStats) -> int:
    return int(node.all_end_rel_nanos or node.all_end_rel_micros * 1000)


def _span(node: NodeExecStats, device: str) -> StepSpan:
    match = _LABEL.fullmatch(node.timeline_label)
    _, kind, arguments = match.groups() if match else ("", node.node_name.rpartition("/")[2], "")
    start = int(node.all_start_nanos or node.all_start_micros * 1000)
    descriptions = [output.tensor_description for output in node.output]
    return StepSpan(
        name=node.node_name,
        type=kind,
        arguments=arguments,
        device=device,
        thread=int(node.thread_id),
        start_ns=start,
        end_ns=start + _duration(node),
        output_bytes=sum(each.allocation_description.requested_bytes for each in descriptions),
        allocated_bytes=sum(memory.total_bytes for memory in node.memory),
        shapes=[[int(dim.size) for dim in each.shape.dim] for each in descriptions],
        ready_ns=int(node.scheduled_nanos or node.scheduled_micros * 1000) or start,
    )


def _set_self_times(spans: Sequence[StepSpan]) -> None:
    """Subtract from each span the time of the spans inside it on its thread. `spans` are sorted by thread and start."""
    enclosing: list[StepSpan] = []
    for span in spans:
        span.self_ns = span.duration_ns
        while enclosing and (enclosing[-1].thread != span.thread or enclosing[-1].end_ns <= span.start_ns):
            enclosing.pop()
        if enclosing:
            enclosing[-1].self_ns -= min(span.end_ns, enclosing[-1].end_ns) - span.start_ns
        enclosing.append(span)


def flows(spans: Iterable[StepSpan]) -> list[tuple[StepSpan, StepSpan]]:
    """Each Send with the Recv of its tensor, in every device that it went to."""
    sends: dict[str, dict[str, list[StepSpan]]] = {}
    recvs: dict[str, dict[str, list[StepSpan]]] = {}
    for span in spans:
        if span.type in ("Send", "Recv"):
            by_device = (sends if span.type == "Send" else recvs).setdefault(without_turns(span.arguments), {})
            by_device.setdefault(span.device, []).append(span)
    found = []
    for key, senders in sends.items():
        for sender, sent in senders.items():
            for receiver, received in recvs.get(key, {}).items():
                if sender != receiver:
                    found += list(zip(sent, received, strict=False))
    # Leave out pairs in the wrong order: the gradients of a replica that came too late were sent but not received.
    return [(sent, received) for sent, received in found if received.start_ns >= sent.start_ns]


@dataclass(frozen=True)
class Overlap:
    """How far devices compute while tensors travel between them.

    Attributes:
        step_s: Seconds from the beginning of one step to that of the next.
        computing_s: Seconds in which operations ran in a step, on the device on which that is most.
        sending_s: Seconds in which tensors travelled in a step, from one device to another: the most of any two.
        share: Time of a step over the longer of the two. It is 1 where one is hidden behind the other.
    """

    step_s: float
    computing_s: float
    sending_s: float

    @property
    def share(self) -> float:
        """See above; 0 where nothing was recorded."""
        longer = max(self.computing_s, self.sending_s)
        return self.step_s / longer if longer else 0.0


def overlap(steps: Sequence[RunMetadata | StepStats]) -> Overlap:
    """How computing and sending overlap in recorded steps that followed each other. Steps may overlap, too."""
    each = [spans_of(step) for step in steps]
    begins = [min((span.start_ns for span in spans if not span.name.startswith("_")), default=0) for spans in each]
    spans = [span for spans in each for span in spans]
    if not spans:
        return Overlap(0.0, 0.0, 0.0)
    first, last = begins[0], max(span.end_ns for span in spans)
    whole = (begins[-1] - first) / (len(steps) - 1) if len(steps) > 1 else last - first
    computing: dict[str, list[tuple[int, int]]] = {}
    sending: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for span in spans:
        if span.is_operation and span.type not in ("Send", "Recv"):
            computing.setdefault(span.device, []).append((span.start_ns, span.end_ns))
    for recorded in each:
        for sent, received in flows(recorded):
            ends = sent.end_ns, max(received.ready_ns, sent.end_ns)
            sending.setdefault((sent.device, received.device), []).append(ends)
    count = len(steps) * 1e9
    return Overlap(
        whole / 1e9,
        max(map(_covered, computing.values()), default=0) / count,
        max(map(_covered, sending.values()), default=0) / count,
    )


def _covered(spans: Iterable[tuple[int, int]]) -> int:
    """The time that spans cover, all together."""
    covered = reached = 0
    for start, end in sorted(spans):
        covered += max(0, end - max(start, reached))
        reached = max(reached, end)
    return covered


def coverage(spans: Sequence[StepSpan]) -> dict[str, float]:
    """For each device, the share of time with at least one span, between its first and its last span."""
    parts: dict[str, float] = {}
    for device in dict.fromkeys(span.device for span in spans):
        own = [(span.start_ns, span.end_ns) for span in spans if span.device == device]
        length = max(end for _, end in own) - min(start for start, _ in own)
        parts[device] = _covered(own) / length if length else 1.0
    return parts


# -- memory --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Holding:
    """One holder of memory at the moment when its device holds most.

    Attributes:
        name: What holds it: a variable, an operation's output, or ``_buffers``, the memory that steps reuse.
        allocator: ``variables``, ``planned`` or ``step``.
        size_bytes: Number of bytes.
    """

    name: str
    allocator: str
    size_bytes: int


@dataclass(frozen=True)
class PeakMemory:
    """The most that a device held in a step, and what held it, most first.

    Attributes:
        device: The device.
        size_bytes: The sum of `holdings`.
        holdings: What held it.
        at_ns: When, in nanoseconds since 1970.
    """

    device: str
    size_bytes: int
    holdings: list[Holding]
    at_ns: int = 0


def memory_changes(recorded: RunMetadata | StepStats) -> Iterator[tuple[str, int, int, str, str]]:
    """(device, time, change in bytes, name, allocator), in order of time for each device."""
    for device in stats_of(recorded).dev_stats:
        changes = []
        for node in device.node_stats:
            for memory in node.memory:
                at = int(node.all_start_micros) * 1000
                if memory.allocation_records:
                    for change in memory.allocation_records:
                        changes.append((change.alloc_micros * 1000, change.alloc_bytes, node.node_name, STEP_ALLOCATOR))
                elif memory.total_bytes:
                    changes.append((at, memory.total_bytes, node.node_name, memory.allocator_name))
        for at, change, name, allocator in sorted(changes, key=lambda each: (each[0], each[1] > 0)):
            yield device.device, at, change, name, allocator


def peak_memory(recorded: RunMetadata | StepStats) -> list[PeakMemory]:
    """For each device the most that it held, and what held it."""
    held: dict[str, dict[tuple[str, str], int]] = {}
    totals: dict[str, int] = {}
    peaks: dict[str, PeakMemory] = {}
    for device, at, change, name, allocator in memory_changes(recorded):
        own = held.setdefault(device, {})
        own[name, allocator] = own.get((name, allocator), 0) + change
        totals[device] = totals.get(device, 0) + change
        if device not in peaks or totals[device] > peaks[device].size_bytes:
            peaks[device] = PeakMemory(device, totals[device], _holdings(own), at)
    return list(peaks.values())


def _holdings(held: Mapping[tuple[str, str], int]) -> list[Holding]:
    found = [Holding(name, allocator, size) for (name, allocator), size in held.items() if size > 0]
    return sorted(found, key=lambda holding: -holding.size_bytes)


def as_json_value(span: StepSpan) -> dict[str, Any]:
    """What a timeline shows of a span beside its name and time."""
    return {
        "name": span.name,
        "op": span.type,
        "inputs": span.arguments,
        "output_bytes": span.output_bytes,
        "allocated_bytes": span.allocated_bytes,
        "shapes": span.shapes,
    }
