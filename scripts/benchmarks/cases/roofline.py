"""What the machine itself can do: products of matrices, and reading and copying at each level of its memory.

Every case uses all cores that its process may use; only the caches that each core has for itself are tried by one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from benchmarks.cases import Case, Counted, Options, Step, Work
from benchmarks.machine import Machine

_GEMM: Final = 1536
_MEMORY: Final = 64 << 20
"""Bytes that stand for memory: at least so many, and four times the largest cache up to the next."""
_MOST_MEMORY: Final = 512 << 20
PRIVATE_LEVEL: Final = 2
"""The cache that each core has for itself. Those above are shared."""


@contextmanager
def _gemm(backend: Any, options: Options) -> Iterator[Step]:
    random = np.random.default_rng(0)
    x, y = (random.standard_normal((_GEMM, _GEMM), np.float32) for _ in range(2))
    product = np.empty_like(x)
    yield Counted(lambda: np.matmul(x, y, out=product), Work(3 * x.nbytes, 2.0 * _GEMM**3))


def _read(size_bytes: int) -> Case:
    @contextmanager
    def opened(backend: Any, options: Options) -> Iterator[Step]:
        x = np.ones(size_bytes // 4, np.float32)
        # The product of an array with itself reads it once, and is faster than NumPy's sums.
        yield Counted(lambda: x.dot(x), Work(x.nbytes))

    return Case(opened, sides=("floor",))


def _copy(size_bytes: int, *, private: bool) -> Case:
    """Copy from one half of that many bytes to the other."""

    @contextmanager
    def opened(backend: Any, options: Options) -> Iterator[Step]:
        threads = 1 if private else len(os.sched_getaffinity(0))
        source = np.ones(size_bytes // 8, np.float32)
        target = np.ones_like(source)
        pieces = list(zip(np.array_split(target, threads), np.array_split(source, threads), strict=True))
        work = Work(2 * source.nbytes)
        if threads == 1:
            yield Counted(lambda: np.copyto(target, source), work)
            return
        with ThreadPoolExecutor(threads) as pool:
            copy: Callable[[Any], None] = lambda piece: np.copyto(*piece)  # noqa: E731 (it is only passed on)
            yield Counted(lambda: list(pool.map(copy, pieces)), work)

    return Case(opened, sides=("floor",))


def _cases() -> dict[str, Case]:
    cases = {"gemm": Case(_gemm, sides=("floor",))}
    caches = Machine.here().cache_bytes
    for level, size_bytes in caches.items():
        if level >= PRIVATE_LEVEL:
            # Half of a cache: the rest is for what else the core touches.
            cases[f"l{level}_read"] = _read(size_bytes // 2)
            cases[f"l{level}_copy"] = _copy(size_bytes // 2, private=level == PRIVATE_LEVEL)
    memory = min(_MOST_MEMORY, max(_MEMORY, 4 * max(caches.values(), default=0)))
    return cases | {"memory_read": _read(memory), "memory_copy": _copy(memory, private=False)}


CASES: Final = _cases()
