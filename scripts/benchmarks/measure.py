"""Measuring sides beside each other: warm up each, then let them take turns, block by block.

Whatever else the machine does then meets all of them alike. One side runs at a time.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from benchmarks.cases import Work
from benchmarks.memory import PeakMemory
from benchmarks.sides import Side

_MOST_STEPS: Final = 10_000


@dataclass(frozen=True)
class Effort:
    """How long to measure.

    Attributes:
        rounds: Blocks of each side.
        block_s: Seconds that a block should last.
        warm_up_s: Seconds of steps before the first block.
        least_steps: Steps in a block, however long they take.
    """

    rounds: int = 12
    block_s: float = 0.3
    warm_up_s: float = 1.0
    least_steps: int = 3


FULL: Final = Effort()
BRIEF: Final = Effort(rounds=8, block_s=0.12, warm_up_s=0.4)
"""For benchmarks of a hundred cases."""
LONG: Final = Effort(rounds=8, block_s=0.1, warm_up_s=0.1, least_steps=1)
"""For steps that take seconds."""
QUICK: Final = Effort(rounds=3, block_s=0.05, warm_up_s=0.1, least_steps=1)


@dataclass
class Measurement:
    """One case on one side.

    Attributes:
        case: Name of the case, with its sizes.
        side: Name of the implementation.
        rounds_ms: Milliseconds of every step, by round.
        peak_bytes: Most memory of all its processes from the start of the case on, if that was measured.
        rounds_processor_ms: Milliseconds of processor time of all its processes for a step, by round.
        work: Of one step, if the case counts it.
    """

    case: str
    side: str
    rounds_ms: list[list[float]] = field(default_factory=list)
    peak_bytes: int | None = None
    rounds_processor_ms: list[float] = field(default_factory=list)
    work: Work | None = None

    @property
    def times_ms(self) -> list[float]:
        """Milliseconds of every step."""
        return [time for block in self.rounds_ms for time in block]

    @property
    def median_ms(self) -> float:
        """Median over all steps."""
        return statistics.median(self.times_ms)

    @property
    def p90_ms(self) -> float:
        """What nine of ten steps do not exceed."""
        times = sorted(self.times_ms)
        return times[min(len(times) - 1, len(times) * 9 // 10)]

    @property
    def processor_ms(self) -> float:
        """Processor time of a step: the median of the rounds."""
        return statistics.median(self.rounds_processor_ms)


@dataclass(frozen=True)
class Ratio:
    """How many times as long one side takes: of all steps, and the range of the middle half of the rounds."""

    overall: float
    low: float
    high: float

    @classmethod
    def of(cls, mine: Measurement, theirs: Measurement) -> Ratio:
        """`mine` over `theirs`; round i of one is compared with round i of the other."""
        by_round = sorted(
            statistics.median(a) / statistics.median(b) for a, b in zip(mine.rounds_ms, theirs.rounds_ms, strict=True)
        )
        quarter = len(by_round) // 4
        return cls(mine.median_ms / theirs.median_ms, by_round[quarter], by_round[-1 - quarter])


def measure(
    sides: Sequence[Side],
    bench: str,
    case: str,
    options: Mapping[str, Any],
    effort: Effort,
    *,
    label: str,
    memory: bool = False,
    progress: Callable[[str], None] = lambda text: None,
) -> list[Measurement]:
    """Measure one case on several sides, in turns.

    Args:
        sides: The sides that can run it.
        bench: The benchmark.
        case: The case.
        options: Its options.
        effort: How long.
        label: Name of the case in the results.
        memory: Whether to sample the memory, which takes as much care as time: while the case is opened and warmed
            up, and in one more block at the end, but never while time is taken.
        progress: Told what is going on.
    """
    results = [Measurement(label, side.name) for side in sides]
    blocks = []
    for side, result in zip(sides, results, strict=True):
        progress(f"{label}: {side.name} starts")
        result.work = _watched(memory, side, result, lambda side=side: _open(side, bench, case, options, effort))
        blocks.append(_steps_of_block(side, effort))
        side.rest()
    for turn in range(effort.rounds):
        progress(f"{label}: round {turn + 1} of {effort.rounds}")
        for side, result, steps in zip(sides, results, blocks, strict=True):
            block = side.run(steps)
            result.rounds_ms.append(block.times_ms)
            result.rounds_processor_ms.append(block.processor_ms)
            side.rest()
    for side, result, steps in zip(sides, results, blocks, strict=True):
        if memory:
            _watched(memory, side, result, lambda side=side, steps=steps: side.run(steps))
        side.close_case()
    return results


def _watched(memory: bool, side: Side, result: Measurement, work: Callable[[], Any]) -> Any:
    """Do `work`, and keep the peak of the side's memory meanwhile."""
    if not memory:
        return work()
    with PeakMemory(side.pid) as peak:
        answer = work()
    result.peak_bytes = max(result.peak_bytes or 0, peak.peak_bytes)
    return answer


def _open(side: Side, bench: str, case: str, options: Mapping[str, Any], effort: Effort) -> Work | None:
    """Open a case and warm up."""
    work = side.open(bench, case, options)
    _run_for(side, effort.warm_up_s)
    return work


def _steps_of_block(side: Side, effort: Effort) -> int:
    """The number of steps in a block. Nobody looks at the memory meanwhile, which makes steps slower."""
    median_ms = statistics.median(_run_for(side, effort.block_s))
    return max(effort.least_steps, min(_MOST_STEPS, int(effort.block_s * 1e3 / median_ms)))


def _run_for(side: Side, seconds: float) -> list[float]:
    """Run steps for that long. Returns the milliseconds of the later ones."""
    times_ms: list[float] = []
    steps = 1
    while sum(times_ms) < seconds * 1e3:
        times_ms.extend(side.run(steps).times_ms)
        steps = min(2 * steps, _MOST_STEPS)
    return times_ms[len(times_ms) // 2 :]
