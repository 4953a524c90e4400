"""How much memory a device has and uses, when the operation runs.

On a CPU that is the memory of its process, and that of the machine. On a GPU it is that of the pool from which arrays
are taken: the most that was used is what the pool holds.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np

from tfray.formats.holder import process_memory
from tfray.framework.convert import add_op
from tfray.framework.graph import Tensor
from tfray.framework.op_def import Array, KernelContext, OpDef, not_differentiable, on_every_device, register
from tfray.framework.tensor_shape import TensorShape


def bytes_in_use(name: str | None = None) -> Tensor:
    """The memory that the device uses, an int64 scalar."""
    return add_op(BYTES_IN_USE, name=name)


def bytes_limit(name: str | None = None) -> Tensor:
    """The memory that the device may use, an int64 scalar."""
    return add_op(BYTES_LIMIT, name=name)


def max_bytes_in_use(name: str | None = None) -> Tensor:
    """The most memory that the device has used, an int64 scalar."""
    return add_op(MAX_BYTES_IN_USE, name=name)


def _define(name: str, of_pool: Callable[[KernelContext], int], of_process: Callable[[], int]) -> OpDef:
    def kernel(ctx: KernelContext) -> Array:
        return ctx.asarray(np.int64(of_process() if ctx.xp is np else of_pool(ctx)))

    return register(
        OpDef(
            name=name,
            inputs=(),
            outputs=("out: int64",),
            shape=lambda op: [TensorShape([])],
            kernels=on_every_device(kernel),
            gradient=not_differentiable,
            stateful=True,
        )
    )


def _limit_of_pool(ctx: KernelContext) -> int:
    given = int(ctx.xp.get_default_memory_pool().get_limit())
    return given or int(ctx.xp.cuda.Device().mem_info[1])


BYTES_IN_USE = _define(
    "BytesInUse", lambda ctx: ctx.xp.get_default_memory_pool().used_bytes(), lambda: process_memory("VmRSS")
)
BYTES_LIMIT = _define("BytesLimit", _limit_of_pool, lambda: os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
MAX_BYTES_IN_USE = _define(
    "MaxBytesInUse", lambda ctx: ctx.xp.get_default_memory_pool().total_bytes(), lambda: process_memory("VmHWM")
)
