"""The simplest possible executor: one kernel call per operation, in order. The reference for the real one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from tfray.framework.constant_value import run_kernel
from tfray.framework.graph import Operation, Tensor
from tfray.framework.region import Region
from tfray.framework.traversal import reachable_backward, topological_order
from tfray.runtime.device import Device, OpContext, gpu_count


def interpret(fetches: Any, feeds: Mapping[Tensor, Any] | None = None, device: Device | None = None) -> Any:
    """Values of `fetches` (a tensor, an operation, or a list of them), by plain interpretation on one device."""
    device = device or Device("/job:localhost/task:0/device:CPU:0")
    many = isinstance(fetches, (list, tuple))
    targets = list(fetches) if many else [fetches]
    values: dict[Tensor, Any] = {t: device.asarray(v, t.dtype.numpy) for t, v in (feeds or {}).items()}
    _evaluate(targets, values, device)
    results = [device.to_host(values[t]) if isinstance(t, Tensor) else None for t in targets]
    return results if many else results[0]


def default_device() -> Device:
    """A device such as sessions of this process choose for what asks for none: a GPU if there is one."""
    return Device.open(f"/job:localhost/task:0/device:{'GPU' if gpu_count() else 'CPU'}:0")


def _evaluate(targets: Sequence[Tensor | Operation], values: dict[Tensor, Any], device: Device) -> None:
    """Add to `values` what is needed for `targets`."""

    def needed(op):
        sources = [t.op for t in op.inputs if t not in values]
        return sources + op.control_inputs

    roots = [t.op if isinstance(t, Tensor) else t for t in targets if t not in values]
    for op in topological_order(reachable_backward(roots, needed)):
        if op.outputs and all(t in values for t in op.outputs):
            continue
        regions = {name: _interpreted(op.attrs[name], device) for name in op.op_def.regions}
        with np.errstate(all="ignore"):
            kernel, context = op.op_def.kernel_for(device.type), OpContext(op, device, regions)
            reads = op.op_def.reads_on_host
            inputs = [device.to_host(values[t]) if reads(i) else values[t] for i, t in enumerate(op.inputs)]
            result = run_kernel(kernel, context, inputs)
        outputs = result if op.op_def.returns_sequence else (result,) * len(op.outputs)
        for tensor, value in zip(op.outputs, outputs, strict=True):
            values.setdefault(tensor, value)


def _interpreted(region: Region, device: Device) -> Any:
    """The region as a kernel sees it: from the running step to a context manager that yields a function."""

    @contextmanager
    def within(step):
        def run(*inputs):
            values = dict(zip(region.inputs, inputs, strict=True))
            _evaluate(region.outputs, values, device)
            return tuple(values[tensor] for tensor in region.outputs)

        yield run

    return within


def run_with_types(fetches: Any, feeds: Any, devices: int = 1) -> tuple[Any, list[str]]:
    """The values of a step, and the types of the operations that computed them."""
    import tfray as tf

    metadata = tf.RunMetadata()
    options = tf.RunOptions(output_partition_graphs=True)
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": devices})) as session:
        values = session.run(fetches, feeds, options, metadata)
    return values, [node.op for graph in metadata.partition_graphs for node in graph.node]
