"""The machine's limits, and how long a step takes at the least where they are all that counts."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.cases import Work, cases_of
from benchmarks.cases.roofline import PRIVATE_LEVEL
from benchmarks.machine import Machine
from benchmarks.measure import Effort, measure
from benchmarks.sides import Side


@dataclass(frozen=True)
class Level:
    """A cache, or memory.

    Attributes:
        name: ``l2``, ``l3``, ``memory``.
        size_bytes: What it holds; infinite for memory.
        read_rate: Bytes per second.
        copy_rate: The same, with bytes read and bytes written both counted.
    """

    name: str
    size_bytes: float
    read_rate: float
    copy_rate: float


@dataclass(frozen=True)
class Roofline:
    """What a number of cores can do.

    Attributes:
        flop_rate: Floating-point operations per second in a product of float32 matrices, by NumPy's BLAS.
        levels: From the nearest cache to memory.
    """

    flop_rate: float
    levels: tuple[Level, ...]

    def floor_ms(self, work: Work) -> float:
        """Milliseconds that the work takes when nothing but arithmetic or moving bytes takes time.

        The bytes come at the faster of the rates of reading and copying, from the nearest level that holds them all.
        """
        level = next(level for level in self.levels if work.bytes <= level.size_bytes)
        moving_s = work.bytes / max(level.read_rate, level.copy_rate)
        return 1e3 * max(moving_s, work.flops / self.flop_rate)


def measure_roofline(one_core: bool, effort: Effort, progress: Callable[[str], None] = lambda text: None) -> Roofline:
    """Measure one core, or all that this process may use.

    Raises:
        SideError: The process that measures failed.
    """
    machine = Machine.here()
    cores = 1 if one_core else machine.cores
    cases = list(cases_of("roofline"))
    private = [case for case in cases if case.startswith(f"l{PRIVATE_LEVEL}_")]
    alone = _best_rates(cases if cores == 1 else private, True, effort, progress)
    shared = [case for case in cases if case not in private]
    rates = alone if cores == 1 else _best_rates(shared, False, effort, progress)
    levels = []
    for number, size_bytes in machine.cache_bytes.items():
        if number == PRIVATE_LEVEL:
            read, copy = (cores * alone[f"l{number}_{way}"] for way in ("read", "copy"))
            levels.append(Level(f"l{number}", cores * size_bytes, read, copy))
        elif number > PRIVATE_LEVEL:
            levels.append(Level(f"l{number}", size_bytes, rates[f"l{number}_read"], rates[f"l{number}_copy"]))
    levels.append(Level("memory", math.inf, rates["memory_read"], rates["memory_copy"]))
    return Roofline(rates["gemm"], tuple(levels))


def _best_rates(
    cases: Sequence[str], one_core: bool, effort: Effort, progress: Callable[[str], None]
) -> Mapping[str, float]:
    """The best of all steps by case: operations per second of products, bytes per second of the others."""
    rates = {}
    with Side("floor", sys.executable, one_core=one_core) as side:
        for case in cases:
            [result] = measure([side], "roofline", case, {}, effort, label=f"roofline: {case}", progress=progress)
            assert result.work is not None
            rates[case] = (result.work.flops or result.work.bytes) / (1e-3 * min(result.times_ms))
    return rates
