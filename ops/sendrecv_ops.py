"""Send and Recv: the two ends of an edge that was cut between devices.

The partition pass inserts them in pairs; programs do not create them.
"""

from __future__ import annotations

from tfray.errors import InternalError
from tfray.framework import dtypes, shape_functions
from tfray.framework.op_def import Array, KernelContext, OpDef, on_every_device, register


def _send_kernel(ctx: KernelContext, tensor: Array) -> None:
    ctx.step.send(ctx.attr("key"), ctx.attr("destination"), tensor)


SEND = register(
    OpDef(
        name="Send",
        inputs=("tensor: any",),
        outputs=(),
        attrs=("key", "source", "destination"),
        shape=shape_functions.no_outputs,
        kernels=on_every_device(_send_kernel),
        stateful=True,
        uses_step=True,
        keeps_inputs=True,
    )
)
"""Attributes: ``key``, the name of the edge; ``source`` and ``destination``, full device names."""


def _recv_kernel(ctx: KernelContext) -> Array:
    raise InternalError("Recv is an input of its segment: the executor waits for it", op_name=ctx.op_name)


RECV = register(
    OpDef(
        name="Recv",
        inputs=(),
        outputs=("tensor: dtype",),
        types={"dtype": dtypes.VALUES},
        attrs=("key", "source", "group", "shape"),
        shape=shape_functions.from_attr("shape"),
        kernels=on_every_device(_recv_kernel),
        stateful=True,
        blocking=True,
    )
)
"""Attributes: ``key`` and ``source`` as of its Send; ``group``, the edges that arrive together; ``shape``."""
