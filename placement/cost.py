"""The estimated cost of a step: bytes of tensors, seconds of operations and of messages.

Estimates come from shapes and kinds of operations. Where earlier steps have recorded an operation (`tf.RunMetadata`),
its measured time replaces the estimate.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from tfray.formats.step_stats import RunMetadata
from tfray.framework import dtypes
from tfray.framework.device_spec import DeviceSpec
from tfray.framework.effects import access_of
from tfray.framework.graph import Operation, Tensor
from tfray.framework.region import regions_of
from tfray.runtime.float_operations import elements, float_operations

STRING_BYTES: Final = 16
"""Assumed bytes of an element whose dtype does not tell its size, such as a string."""

_FREE: Final = frozenset(
    {
        "Const",
        "Variable",
        "ReadVariableOp",
        "Placeholder",
        "NoOp",
        "Identity",
        "Reshape",
        "ExpandDims",
        "Squeeze",
        "Shape",
    }
)
"""Operations that read and write no elements: they cost nothing but `Machine.operation_s`."""

_BY_ROWS: Final = frozenset({"Gather", "GatherV2", "GatherNd", "Slice", "StridedSlice", "ResourceGather", "Split"})
"""Operations that read no more elements than they return."""

_PRODUCTS: Final = frozenset({"MatMul", "_MatMulPart", "BatchMatMul"})
"""Operations that read a matrix again and again, in an order of their own: see `Machine.product_bytes_per_s`."""

_SHARED_S: Final = 1e-4
"""From so many seconds on one core, kernels share out their work."""

_ASSUMED_TURNS: Final = 16
"""Assumed turns of a loop, whose number is known only when it runs."""


@dataclass(frozen=True)
class Machine:
    """How fast nodes compute, and how fast tensors move. The defaults are those of a small server and of Ray on it.

    Attributes:
        cores: Number of cores of a node.
        flops_per_s: Floating-point operations a second of one core, in matrix products and convolutions.
        bytes_per_s: Bytes a second that one core reads and writes while all do.
        product_bytes_per_s: Bytes a second of matrices that one core reads and writes beside computing products.
        gpu_speed: How many times faster than one core a GPU is.
        operation_s: Least seconds of an operation, however little it computes.
        message_s: Seconds from the end of a Send to its Recv, whatever the size; the network's time comes on top.
        sending_s: Seconds that a Send keeps its device busy, whatever the size.
        copy_bytes_per_s: Bytes a second that a device copies out of its own memory to send them.
        network_bytes_per_s: Bytes a second between two nodes.
        step_s: Seconds of the driver for each step.
        device_s: Further seconds of the driver for each device of a step.
        nodes: Device to node. Devices that are not in it share one node.
        with_gpus: CPU devices that compute on GPUs beside them: workers of `ScalingConfig.gpus_per_worker`.
    """

    cores: int = 2
    flops_per_s: float = 50e9
    bytes_per_s: float = 16e9
    product_bytes_per_s: float = 10e9
    gpu_speed: float = 50.0
    operation_s: float = 2e-6
    message_s: float = 40e-6
    sending_s: float = 80e-6
    copy_bytes_per_s: float = 10e9
    network_bytes_per_s: float = 1.25e9
    step_s: float = 120e-6
    device_s: float = 40e-6
    nodes: Mapping[str, str] = field(default_factory=dict)
    with_gpus: frozenset[str] = frozenset()

    @classmethod
    def one_thread(cls) -> Machine:
        """Devices that take turns in one process: nothing is copied, and nothing happens at the same time."""
        return cls(
            cores=1,
            message_s=0.0,
            sending_s=2e-6,
            copy_bytes_per_s=float("inf"),
            network_bytes_per_s=float("inf"),
            step_s=20e-6,
            device_s=2e-6,
        )

    def node(self, device: str) -> str:
        """The node of a device."""
        return self.nodes.get(device, "")

    def speed(self, device: str) -> float:
        """How many times as fast as a core a device is."""
        has_gpu = device in self.with_gpus or DeviceSpec.from_string(device).device_type == "GPU"
        return self.gpu_speed if has_gpu else 1.0

    def network_s(self, size_bytes: float, source: str, destination: str) -> float:
        """Seconds that a message keeps the network of both nodes busy; 0 within a node."""
        return 0.0 if self.node(source) == self.node(destination) else size_bytes / self.network_bytes_per_s

    def travel_s(self, size_bytes: float, source: str, destination: str) -> float:
        """Seconds from the end of a Send to its Recv, if the network is free."""
        return self.message_s + self.network_s(size_bytes, source, destination)


@dataclass
class Measured:
    """What operations took and returned in recorded steps, by name.

    Attributes:
        seconds: The shortest time of each operation. Longer times come from other work of the machine.
        output_bytes: Bytes of each output.
    """

    seconds: dict[str, float] = field(default_factory=dict)
    output_bytes: dict[str, dict[int, int]] = field(default_factory=dict)

    def add(self, metadata: RunMetadata) -> None:
        """Take in what a step recorded."""
        in_step: dict[str, float] = {}
        for device in metadata.step_stats.dev_stats:
            own: dict[str, float] = {}
            for node in device.node_stats:
                is_run = not node.memory_stats.persistent_memory_size  # otherwise it tells of memory that is held
                if is_run and not node.node_name.startswith("_"):
                    seconds = max(node.op_end_rel_nanos - node.op_start_rel_nanos, 0) * 1e-9
                    own[node.node_name] = own.get(node.node_name, 0.0) + seconds  # a loop runs it several times
                    for output in node.output:
                        size = output.tensor_description.allocation_description.requested_bytes
                        self.output_bytes.setdefault(node.node_name, {})[output.slot] = size
            for name, seconds in own.items():
                in_step[name] = min(seconds, in_step.get(name, seconds))  # every replica runs it
        for name, seconds in in_step.items():
            self.seconds[name] = min(seconds, self.seconds.get(name, seconds))

    @classmethod
    def of(cls, steps: Iterable[RunMetadata]) -> Measured:
        """What several steps recorded."""
        measured = cls()
        for metadata in steps:
            measured.add(metadata)
        return measured


@dataclass
class CostModel:
    """What operations and tensors cost.

    Attributes:
        machine: The machine.
        measured: Measurements of earlier steps.
        unknown_size: Size to assume for an unknown dimension, which is mostly the number of examples in a batch.
    """

    machine: Machine = field(default_factory=Machine)
    measured: Measured = field(default_factory=Measured)
    unknown_size: int = 32

    def tensor_bytes(self, tensor: Tensor) -> int:
        """Bytes of a tensor; of a resource none."""
        if tensor.dtype is dtypes.resource:
            return 0
        known = self.measured.output_bytes.get(tensor.op.name, {}).get(tensor.value_index)
        if known is not None:
            return known
        count = elements(tensor, self.unknown_size)
        return (1 if count is None else count) * (tensor.dtype.size or STRING_BYTES)

    def variable_bytes(self, op: Operation) -> int:
        """Bytes of the variable that `op` is; 0 for anything else."""
        if op.type != "Variable":
            return 0
        return (op.attrs["shape"].num_elements() or 0) * (op.attrs["dtype"].size or STRING_BYTES)

    def seconds(self, op: Operation, device: str, replicas: int = 1) -> float:
        """Seconds that an operation takes on a device, on one core of it.

        Args:
            op: The operation.
            device: The device.
            replicas: How many values a ReplicaReduce combines.
        """
        known = self.measured.seconds.get(op.name)
        if known is not None and op.type != "Recv":
            return known
        return self.machine.operation_s + self._work_s(op, replicas) / self.machine.speed(device)

    def width(self, op: Operation, device: str) -> int:
        """On how many cores an operation can run at once: a large one on all that are idle.

        What has been measured has been measured with those that were.
        """
        is_alone = op.name in self.measured.seconds or op.type in ("Send", "Recv") or op.op_def.regions
        if is_alone or self.machine.speed(device) != 1.0 or self._work_s(op) < _SHARED_S:
            return 1
        return self.machine.cores

    def _work_s(self, op: Operation, replicas: int = 1) -> float:
        if op.op_def.regions:
            turns = _ASSUMED_TURNS if op.type == "While" else 1
            ops = [inner for region in regions_of(op) for inner in region.get_operations()]
            return turns * sum(self._work_s(inner) + self.machine.operation_s for inner in ops)
        if op.type in _FREE or op.op_def.forwards_input:
            return 0.0
        machine = self.machine
        if op.type == "Send":
            return machine.sending_s + self.tensor_bytes(op.inputs[0]) / machine.copy_bytes_per_s
        if op.type == "Recv":
            return 0.0
        if op.type == "ReplicaReduce":  # what comes from one replica alone is passed on
            touched = (replicas + 1) * self.tensor_bytes(op.inputs[0]) if replicas > 1 else 0
            return touched / machine.bytes_per_s
        is_product = op.type in _PRODUCTS
        touching_s = self._touched_bytes(op) / (machine.product_bytes_per_s if is_product else machine.bytes_per_s)
        return touching_s + self._computing_s(op)

    def _touched_bytes(self, op: Operation) -> float:
        returned = sum(map(self.tensor_bytes, op.outputs))
        if op.type in _BY_ROWS:
            return 2 * returned
        taken = sum(map(self.tensor_bytes, op.inputs))
        if access_of(op) != "update":
            return returned + taken
        # A variable is read and written as far as it is updated. The result is the variable itself: no further bytes.
        return taken * (1 + 2 * sum(tensor.dtype is dtypes.resource for tensor in op.inputs))

    def _computing_s(self, op: Operation) -> float:
        kernel = op.op_def.kernel_for("CPU")
        if kernel is not None and op.outputs and (kernel.elementwise is True or op.type == "Cast"):
            return (elements(op.outputs[0], self.unknown_size) or 0) * kernel.element_ns * 1e-9
        return (float_operations(op, self.unknown_size) or 0) / self.machine.flops_per_s
