"""What devices recorded of a step, as `tf.RunMetadata`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from tfray.formats.step_stats import (
    AllocationDescription,
    AllocationRecord,
    AllocatorMemoryUsed,
    DeviceStepStats,
    MemoryStats,
    NodeExecStats,
    NodeOutput,
    RunMetadata,
    StepStats,
    TensorDescription,
)
from tfray.formats.tensor_proto import DTYPE_NUMBERS, TensorShapeDim, TensorShapeProto
from tfray.framework.device_spec import DeviceName
from tfray.framework.dtypes import as_dtype
from tfray.runtime.tracing import DeviceRecord, Output, Span

PLANNED: Final = "planned"
"""Name of the allocator of memory that is reused within a step and by later steps."""

PERSISTENT: Final = "variables"
"""Name of the allocator of memory that stays between steps."""


def step_stats(records: Sequence[DeviceRecord]) -> StepStats:
    """The records of all devices, with times in microseconds since 1970."""
    epoch_ns = time.time_ns() - time.perf_counter_ns()
    stats: dict[str, DeviceStepStats] = {}
    for record in records:  # a device may take part several times
        device = stats.setdefault(record.device, DeviceStepStats(device=_told(record.device)))
        device.thread_names[record.thread[0]] = record.thread[1]
        if not device.node_stats:
            device.node_stats.extend(_holdings(record, epoch_ns))
        spans = sorted(record.spans, key=lambda span: (span.start, -span.end))
        device.node_stats.extend([_node(span, epoch_ns, record.thread[0]) for span in spans])
    return StepStats(dev_stats=list(stats.values()))


def _told(device: str) -> str:
    """TensorFlow's name of a device, with its replica."""
    return DeviceName(device).name if device.startswith("/job:") else device


def run_metadata(records: Sequence[DeviceRecord]) -> RunMetadata:
    """The records as a message of their own."""
    return RunMetadata(step_stats=step_stats(records))


def _node(span: Span, epoch_ns: int, thread: int) -> NodeExecStats:
    op, start, duration = span.op, span.start + epoch_ns, span.end - span.start
    ready = start if span.arrived is None else span.arrived + epoch_ns
    node = NodeExecStats(
        node_name=op.name,
        timeline_label=f"{op.name} = {op.type}({op.label})",
        thread_id=thread,
        all_start_micros=start // 1000,
        all_start_nanos=start,
        scheduled_micros=ready // 1000,
        scheduled_nanos=ready,
        op_end_rel_micros=-(-duration // 1000),
        op_end_rel_nanos=duration,
        all_end_rel_micros=-(-duration // 1000),
        all_end_rel_nanos=duration,
    )
    node.output.extend(_described(i, output) for i, output in enumerate(span.outputs) if output.shape is not None)
    allocated = [output for output in span.outputs if output.allocated]
    if allocated:
        total = sum(output.allocated for output in allocated)
        records = [AllocationRecord(alloc_micros=(start + duration) // 1000, alloc_bytes=total)]
        for output in allocated:
            if output.freed is not None:
                at = (output.freed + epoch_ns) // 1000
                records.append(AllocationRecord(alloc_micros=at, alloc_bytes=-output.allocated))
        live = sum(output.allocated for output in allocated if output.freed is None)
        memory = AllocatorMemoryUsed(allocator_name="step", total_bytes=total, peak_bytes=total, live_bytes=live)
        memory.allocation_records.extend(records)
        node.memory.append(memory)
    return node


def _described(slot: int, output: Output) -> NodeOutput:
    shape = TensorShapeProto(dim=[TensorShapeDim(size=size) for size in output.shape or ()])
    description = TensorDescription(
        dtype=DTYPE_NUMBERS.get(as_dtype(output.dtype), 0) if output.dtype else 0, shape=shape
    )
    memory = AllocationDescription(requested_bytes=output.size_bytes, allocated_bytes=output.allocated)
    description.allocation_description.CopyFrom(memory)
    return NodeOutput(slot=slot, tensor_description=description)


def _holdings(record: DeviceRecord, epoch_ns: int) -> list[NodeExecStats]:
    """What the device holds throughout the step."""
    held = [(name, "Variable", PERSISTENT, size) for name, size in record.persistent]
    if record.planned_bytes:
        held.append(("_buffers", "_buffers", PLANNED, record.planned_bytes))
    nodes = []
    for name, kind, allocator, size in held:
        start = record.start + epoch_ns
        memory = AllocatorMemoryUsed(allocator_name=allocator, total_bytes=size, peak_bytes=size, live_bytes=size)
        node = NodeExecStats(
            node_name=name,
            timeline_label=f"{name} = {kind}()",
            thread_id=record.thread[0],
            all_start_micros=start // 1000,
            all_start_nanos=start,
            scheduled_micros=start // 1000,
            scheduled_nanos=start,
            memory_stats=MemoryStats(persistent_memory_size=size if allocator == PERSISTENT else 0),
        )
        node.memory.append(memory)
        nodes.append(node)
    return nodes
