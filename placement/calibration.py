"""How fast this machine computes and copies, measured in some milliseconds."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from tfray.ops.kernels.cpu_threads import one_blas_thread
from tfray.placement.cost import Machine

_SIDE: Final = 384
"""Rows and columns of the float32 matrices whose product is timed."""

_COPIED_BYTES: Final = 32 << 20
"""Bytes whose copy is timed: far more than a cache holds."""

_REPETITIONS: Final = 5
"""How often each is timed. The shortest time counts, because what else the machine does only makes it longer."""


def measured_machine(nodes: Mapping[str, str] | None = None) -> Machine:
    """The machine of this process: matrix products and copies are timed, the other values are `Machine`'s defaults."""
    matrix = np.ones((_SIDE, _SIDE), np.float32)
    result = np.empty_like(matrix)
    source = np.ones(_COPIED_BYTES, np.uint8)
    target = np.ones_like(source)
    with one_blas_thread():
        product_s = _shortest_s(lambda: np.matmul(matrix, matrix, out=result))
    copy_s = _shortest_s(lambda: np.copyto(target, source))
    return Machine(
        cores=os.cpu_count() or 1,
        flops_per_s=2 * _SIDE**3 / product_s,
        bytes_per_s=2 * _COPIED_BYTES / copy_s,  # read and written
        copy_bytes_per_s=_COPIED_BYTES / copy_s,
        nodes=nodes or {},
    )


def _shortest_s(work: Callable[[], object]) -> float:
    times = []
    for _ in range(_REPETITIONS):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return max(min(times), 1e-9)
