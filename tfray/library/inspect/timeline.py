"""Timelines of recorded steps, as Perfetto (https://ui.perfetto.dev) and chrome://tracing show them.

>>> metadata = tf.RunMetadata()
>>> session.run(train_op, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=metadata)
>>> tf.timeline.Timeline(metadata.step_stats).save("step.json")

Programs that say ``from tensorflow.python.client import timeline`` say ``from tfray import timeline`` here.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, NamedTuple

from tfray.formats.files import PathLike, given_path, write_bytes
from tfray.formats.step_stats import DeviceStepStats, RunMetadata, StepStats
from tfray.framework.device_spec import DeviceSpec
from tfray.library.inspect.step_spans import (
    StepSpan,
    as_json_value,
    flows,
    memory_changes,
    peak_memory,
    spans_of,
    stats_of,
)

__all__ = ["AllocationMaximum", "StepStatsAnalysis", "Timeline"]


class AllocationMaximum(NamedTuple):
    """The most that the devices of a kind held at once: when, in microseconds since 1970, how many bytes, and what."""

    timestamp: int
    num_bytes: int
    tensors: frozenset[str]


@dataclass(frozen=True)
class ChromeTrace:
    """A timeline as text in Chrome's trace event format."""

    text: str

    def format_to_string(self, pretty: bool = False) -> str:
        """The text, in lines if it is to be pretty."""
        return json.dumps(json.loads(self.text), indent=4, separators=(",", ": ")) if pretty else self.text


class StepStatsAnalysis(NamedTuple):
    """What `Timeline.analyze_step_stats` tells: the timeline, and the `AllocationMaximum` of ``cpu`` and of ``gpu``."""

    chrome_trace: ChromeTrace
    allocator_maximums: dict[str, AllocationMaximum]


class Timeline:
    """The timeline of a step.

    Args:
        step_stats: What was recorded: ``run_metadata.step_stats``, or the `tf.RunMetadata`.
        graph: Accepted for TensorFlow 1 programs; everything is in `step_stats`.
    """

    def __init__(self, step_stats: StepStats | RunMetadata, graph: object = None) -> None:
        self._stats = stats_of(step_stats)

    def generate_chrome_trace_format(self, show_dataflow: bool = True, show_memory: bool = False) -> str:
        """The timeline as text in Chrome's trace event format.

        Args:
            show_dataflow: Whether to draw an arrow from each Send to its Recv.
            show_memory: Whether to draw the bytes that each device holds, beside its variables and buffers.
        """
        spans = spans_of(self._stats)
        # Times are relative to the first: a float of microseconds since 1970 is too coarse for nanoseconds.
        origin = min((span.start_ns for span in spans), default=0)
        devices = {stats.device: number for number, stats in enumerate(self._stats.dev_stats, start=1)}
        events = self._names(devices)
        events += [_complete(span, devices[span.device], origin) for span in spans]
        if show_dataflow:
            for number, (sent, received) in enumerate(flows(spans), start=1):
                events += _flow(number, sent, received, devices, origin)
        if show_memory:
            events += self._memory(devices, origin)
        return json.dumps({"traceEvents": events, "displayTimeUnit": "ns"})

    def analyze_step_stats(self, show_dataflow: bool = True, show_memory: bool = True) -> StepStatsAnalysis:
        """The timeline, and the most that each kind of device held.

        Args:
            show_dataflow: As for `generate_chrome_trace_format`.
            show_memory: Likewise.
        """
        kinds: dict[str, DeviceStepStats] = {}
        for stats in self._stats.dev_stats:  # devices of a kind share their memory
            kind = (DeviceSpec.from_string(stats.device).device_type or "CPU").lower()
            kinds.setdefault(kind, DeviceStepStats(device=kind)).node_stats.extend(stats.node_stats)
        maximums = {}
        for peak in peak_memory(StepStats(dev_stats=list(kinds.values()))):
            names = frozenset(holding.name for holding in peak.holdings)
            maximums[peak.device] = AllocationMaximum(peak.at_ns // 1000, peak.size_bytes, names)
        return StepStatsAnalysis(ChromeTrace(self.generate_chrome_trace_format(show_dataflow, show_memory)), maximums)

    def save(self, path: PathLike, show_memory: bool = True) -> None:
        """Write the timeline to a file."""
        write_bytes(given_path(path, "path"), self.generate_chrome_trace_format(show_memory=show_memory).encode())

    def _names(self, devices: dict[str, int]) -> list[dict[str, Any]]:
        events: list[dict[str, Any]] = []
        for stats in self._stats.dev_stats:
            pid = devices[stats.device]
            events.append({"ph": "M", "name": "process_name", "pid": pid, "args": {"name": stats.device}})
            for thread, name in stats.thread_names.items():
                label = {"name": name}
                events.append({"ph": "M", "name": "thread_name", "pid": pid, "tid": thread, "args": label})
        return events

    def _memory(self, devices: dict[str, int], origin: int) -> list[dict[str, Any]]:
        totals: dict[str, int] = {}
        events = []
        for device, at, change, _, _ in memory_changes(self._stats):
            totals[device] = totals.get(device, 0) + change
            held = {"bytes": totals[device]}
            moment = max(at - origin, 0) / 1000
            events.append({"ph": "C", "name": "memory", "pid": devices[device], "ts": moment, "args": held})
        return events


def _complete(span: StepSpan, pid: int, origin: int) -> dict[str, Any]:
    return {
        "ph": "X",
        "cat": "op" if span.is_operation else "wait",
        "name": span.type,
        "pid": pid,
        "tid": span.thread,
        "ts": (span.start_ns - origin) / 1000,
        "dur": span.duration_ns / 1000,
        "args": as_json_value(span),
    }


def _flow(
    number: int, sent: StepSpan, received: StepSpan, devices: dict[str, int], origin: int
) -> list[dict[str, Any]]:
    ends = []
    for phase, span in (("s", sent), ("f", received)):
        event = {"ph": phase, "cat": "flow", "name": "tensor", "id": number, "ts": (span.start_ns - origin) / 1000}
        ends.append(event | {"pid": devices[span.device], "tid": span.thread})
    ends[1]["bp"] = "e"
    return ends
