"""How fast this machine computes and copies, measured in some tenths of a second."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from typing import Final

import numpy as np

from tfray.ops.kernels.cpu_threads import work_alone
from tfray.ops.kernels.products import matrix_product
from tfray.placement.cost import Machine

_SIDE: Final = 384
"""Rows and columns of the float32 matrices whose product is timed. A cache of the second level holds them."""

_ROWS, _LONG_SIDE = 32, 2048
"""Rows of a matrix, and rows and columns of one that no such cache holds, whose product is timed."""

_SIZES: Final = (_SIDE, _SIDE), (_ROWS, _LONG_SIDE), (_LONG_SIDE, _LONG_SIDE)
"""Of these matrices."""

_COPIED_BYTES: Final = 32 << 20
"""Bytes whose copy is timed: far more than a cache holds."""

_REPETITIONS: Final = 5
"""How often each is timed."""

_MOST_THREADS: Final = 8
"""How many cores are kept busy at most, so that measuring does not take much memory."""


_PATIENCE_S: Final = 60.0
"""How long a thread waits for the others, before measuring fails."""


def measured_machine(nodes: Mapping[str, str] | None = None) -> Machine:
    """The machine of this process: products and copies are timed, the other values are `Machine`'s defaults.

    What one core does is timed while the others do the same, as in a step: they share the memory.
    """
    cores = os.cpu_count() or 1
    product_s, long_product_s, copy_s = _times_s(min(cores, _MOST_THREADS))
    flops_per_s = 2 * _SIDE**3 / product_s
    touched = 4 * (_LONG_SIDE**2 + 2 * _ROWS * _LONG_SIDE)
    beside_s = max(long_product_s - 2 * _ROWS * _LONG_SIDE**2 / flops_per_s, 1e-9)
    bytes_per_s = 2 * _COPIED_BYTES / copy_s  # read and written
    return Machine(
        cores=cores,
        flops_per_s=flops_per_s,
        bytes_per_s=bytes_per_s,
        product_bytes_per_s=min(touched / beside_s, bytes_per_s),
        copy_bytes_per_s=_COPIED_BYTES / copy_s,
        nodes=nodes or {},
    )


def _times_s(threads: int) -> tuple[float, float, float]:
    """Seconds of a product, of one that waits for memory, and of a copy, on each of so many threads at a time."""
    barrier = threading.Barrier(threads, timeout=_PATIENCE_S)

    def measure(_: int) -> list[float]:
        work_alone()
        side, rows, long = (np.ones(sizes, np.float32) for sizes in _SIZES)
        results = np.empty_like(side), np.empty_like(rows)
        source = np.ones(_COPIED_BYTES, np.uint8)
        target = np.ones_like(source)
        works: list[Callable[[], object]] = [
            lambda: matrix_product(np, side, side, results[0]),
            lambda: matrix_product(np, rows, long, results[1]),
            lambda: np.copyto(target, source),
        ]
        try:
            return [_shortest_s(work, barrier) for work in works]
        except BaseException:
            barrier.abort()  # the others do not wait for this thread
            raise

    with ThreadPoolExecutor(threads, "tfray-calibration") as pool:
        found = list(pool.map(measure, range(threads)))
    product_s, long_product_s, copy_s = map(median, zip(*found, strict=True))
    return product_s, long_product_s, copy_s


def _shortest_s(work: Callable[[], object], barrier: threading.Barrier) -> float:
    """The shortest time of several: what else the machine does only makes it longer."""
    times = []
    for _ in range(_REPETITIONS):
        barrier.wait()
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return max(min(times), 1e-9)
