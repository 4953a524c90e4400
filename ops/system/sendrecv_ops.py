"""Send and Recv: the two ends of an edge that was cut between devices.

The partition pass inserts them in pairs; programs do not create them.
"""

from __future__ import annotations

from tfray.framework import dtypes, shape_functions
from tfray.framework.op_def import Array, Kernel, KernelContext, OpDef, on_every_device, register


def _send_kernel(ctx: KernelContext, tensor: Array) -> None:
    ctx.step.send(ctx.attr("key"), ctx.attr("destination"), tensor)


SEND = register(
    OpDef(
        name="Send",
        inputs=("tensor: any",),
        outputs=(),
        attrs=("key", "source", "destination"),
        shape=shape_functions.no_outputs,
        kernels=on_every_device(Kernel(_send_kernel, inline="step.send({key}, {destination}, {0})")),
        stateful=True,
        uses_step=True,
        keeps_inputs=True,
    )
)
"""Attributes: ``key``, the name of the edge; ``source`` and ``destination``, full device names."""


def _recv_kernel(ctx: KernelContext) -> Array:
    # Runs only within a branch or a loop. Elsewhere the executor waits for the tensor and passes it to a segment.
    value = ctx.step.receive(ctx.attr("key"))
    return value if ctx.output_dtype().kind == "O" else ctx.asarray(value)


RECV = register(
    OpDef(
        name="Recv",
        inputs=(),
        outputs=("tensor: dtype",),
        types={"dtype": (*dtypes.VALUES, dtypes.variant)},
        attrs=("key", "source", "group", "shape"),
        shape=shape_functions.from_attr("shape"),
        kernels=on_every_device(_recv_kernel),
        stateful=True,
        blocking=True,
        uses_step=True,
    )
)
"""Attributes: ``key`` and ``source`` as of its Send; ``group``, the edges that arrive together; ``shape``."""
