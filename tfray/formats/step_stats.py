"""`tf.RunMetadata`, the record of a step, and its parts. The encoded form (wire) is TensorFlow's."""

from __future__ import annotations

from typing import ClassVar

from tfray.formats.graph_proto import GraphDef
from tfray.formats.message import Field, Message
from tfray.formats.tensor_proto import DATA_TYPE, TensorShapeProto


class AllocationDescription(Message):
    """A piece of memory."""

    FIELDS = (
        Field(1, "requested_bytes", "int64"),
        Field(2, "allocated_bytes", "int64"),
        Field(3, "allocator_name", "string"),
        Field(4, "allocation_id", "int64"),
        Field(5, "has_single_reference", "bool"),
        Field(6, "ptr", "uint64"),
    )


class TensorDescription(Message):
    """A tensor without its elements: the number of its dtype, its shape and its memory."""

    FIELDS = (
        Field(1, "dtype", DATA_TYPE),
        Field(2, "shape", TensorShapeProto),
        Field(4, "allocation_description", AllocationDescription),
    )


class AllocationRecord(Message):
    """One allocation, or with a negative number of bytes one release."""

    FIELDS = (Field(1, "alloc_micros", "int64"), Field(2, "alloc_bytes", "int64"))


class AllocatorMemoryUsed(Message):
    """What one operation took from an allocator."""

    FIELDS = (
        Field(1, "allocator_name", "string"),
        Field(2, "total_bytes", "int64"),
        Field(3, "peak_bytes", "int64"),
        Field(4, "live_bytes", "int64"),
        Field(5, "allocator_bytes_in_use", "int64"),
        Field(6, "allocation_records", AllocationRecord, repeated=True),
    )


class NodeOutput(Message):
    """An output of an operation: its index in ``slot``, and what it was."""

    FIELDS = (Field(1, "slot", "int32"), Field(3, "tensor_description", TensorDescription))


class MemoryStats(Message):
    """Memory that an operation used for itself."""

    FIELDS = (
        Field(1, "temp_memory_size", "int64"),
        Field(2, "device_temp_memory_size", "int64"),
        Field(3, "persistent_memory_size", "int64"),
        Field(4, "device_persistent_memory_size", "int64"),
        Field(5, "persistent_tensor_alloc_ids", "int64", repeated=True),
        Field(6, "device_persistent_tensor_alloc_ids", "int64", repeated=True),
    )


class NodeExecStats(Message):
    """One run of an operation: when, on which thread, and with which memory.

    Times are in microseconds since 1970, or, in the fields ``*_nanos``, in nanoseconds; those with ``rel`` count
    from ``all_start``.
    """

    FIELDS = (
        Field(1, "node_name", "string"),
        Field(2, "all_start_micros", "int64"),
        Field(3, "op_start_rel_micros", "int64"),
        Field(4, "op_end_rel_micros", "int64"),
        Field(5, "all_end_rel_micros", "int64"),
        Field(6, "memory", AllocatorMemoryUsed, repeated=True),
        Field(7, "output", NodeOutput, repeated=True),
        Field(8, "timeline_label", "string"),
        Field(9, "scheduled_micros", "int64"),
        Field(10, "thread_id", "int64"),
        Field(11, "referenced_tensor", AllocationDescription, repeated=True),
        Field(12, "memory_stats", MemoryStats),
        Field(13, "all_start_nanos", "int64"),
        Field(14, "op_start_rel_nanos", "int64"),
        Field(15, "op_end_rel_nanos", "int64"),
        Field(16, "all_end_rel_nanos", "int64"),
        Field(17, "scheduled_nanos", "int64"),
    )


class DeviceStepStats(Message):
    """What ran on one device: ``device``, ``node_stats``, and ``thread_names`` by number."""

    FIELDS = (
        Field(1, "device", "string"),
        Field(2, "node_stats", NodeExecStats, repeated=True),
        Field(3, "thread_names", "string", key="int64"),
    )


class StepStats(Message):
    """What ran in a step, by device in ``dev_stats``."""

    FIELDS = (Field(1, "dev_stats", DeviceStepStats, repeated=True),)


class CostInput(Message):
    """An input of an operation in a cost graph: number and output of the operation before."""

    FIELDS = (Field(1, "preceding_node", "int32"), Field(2, "preceding_port", "int32"))


class CostOutput(Message):
    """An output of an operation in a cost graph."""

    FIELDS = (
        Field(1, "size", "int64"),
        Field(2, "alias_input_port", "int64"),
        Field(3, "shape", TensorShapeProto),
        Field(4, "dtype", DATA_TYPE),
    )


class CostNode(Message):
    """An operation in a cost graph; times are in microseconds, sizes in bytes."""

    InputInfo: ClassVar[type[Message]] = CostInput
    OutputInfo: ClassVar[type[Message]] = CostOutput

    FIELDS = (
        Field(1, "name", "string"),
        Field(2, "device", "string"),
        Field(3, "id", "int32"),
        Field(4, "input_info", CostInput, repeated=True),
        Field(5, "output_info", CostOutput, repeated=True),
        Field(6, "temporary_memory_size", "int64"),
        Field(7, "is_final", "bool"),
        Field(8, "control_input", "int32", repeated=True),
        Field(9, "compute_cost", "int64"),
        Field(12, "persistent_memory_size", "int64"),
        Field(14, "compute_time", "int64"),
        Field(15, "memory_time", "int64"),
        Field(17, "inaccurate", "bool"),
    )


class CostGraphDef(Message):
    """What the operations of a graph cost."""

    Node: ClassVar[type[Message]] = CostNode

    FIELDS = (Field(1, "node", CostNode, repeated=True),)


class FunctionGraphs(Message):
    """The graphs of a function that ran: what each device ran, and the whole before and after it was rewritten."""

    FIELDS = (
        Field(1, "partition_graphs", GraphDef, repeated=True),
        Field(2, "pre_optimization_graph", GraphDef),
        Field(3, "post_optimization_graph", GraphDef),
    )


class RunMetadata(Message):
    """The record of a step: ``step_stats``, ``cost_graph`` and ``partition_graphs``."""

    FunctionGraphs: ClassVar[type[Message]] = FunctionGraphs

    FIELDS = (
        Field(1, "step_stats", StepStats),
        Field(2, "cost_graph", CostGraphDef),
        Field(3, "partition_graphs", GraphDef, repeated=True),
        Field(4, "function_graphs", FunctionGraphs, repeated=True),
    )
