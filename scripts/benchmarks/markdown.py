"""Committed figures as a page of Markdown: the table of the README."""

from __future__ import annotations

import statistics
import textwrap
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Final

from benchmarks.json_lines import Figure, Pair, pairs
from benchmarks.setting import conditions

_PARTS: Final[dict[str, Callable[[Pair], float | None]]] = {
    "time": lambda pair: pair.wall,
    "processor time": lambda pair: pair.processor,
    "memory": lambda pair: pair.memory,
}
_WIDTH: Final = 120
"""Of a line of text."""
_MOST_NAMED: Final = 30
"""Cases above 1.0 that are named; of more, the worst."""


def page(figures: Iterable[Figure], *, every_case: bool = False) -> str:
    """What the figures say of tfray beside TensorFlow.

    First what is above 1.0, then a table, then where and when it was measured.

    Args:
        figures: Lines of all benchmarks; cases without both sides are left out.
        every_case: Whether the table has a row for each case, instead of one for each benchmark.

    Raises:
        ValueError: No case has both sides.
    """
    found = pairs(figures)
    if not found:
        raise ValueError("no case was measured with both tfray and TensorFlow")
    heading = f"| tfray / TensorFlow | {' | '.join(_PARTS)} |\n|{' --- |' * (1 + len(_PARTS))}"
    if every_case:
        rows = [f"| {_name(pair)} | {' | '.join(_ratio(part(pair)) for part in _PARTS.values())} |" for pair in found]
    else:
        by_bench = sorted(found, key=lambda pair: _conditions(pair))  # stable: otherwise in the order of the lines
        groups = groupby(by_bench, key=lambda pair: (pair.tfray.bench, _conditions(pair)))
        rows = [_row(bench + held, list(group)) for (bench, held), group in groups]
    above, *sources = ("\n".join(textwrap.wrap(text, _WIDTH)) for text in (_above(found), *_sources(found)))
    return "\n".join([above, "", heading, *rows, "", *sources]) + "\n"


def _conditions(pair: Pair) -> str:
    return conditions(pair.tfray.one_core, pair.tfray.busy)


def _name(pair: Pair) -> str:
    return f"{pair.tfray.bench} {pair.tfray.case}{_conditions(pair)}"


def _ratio(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}"


def _above(found: Sequence[Pair]) -> str:
    """The cases of which something is above TensorFlow's, the worst first."""
    worse = []
    for pair in found:
        ratios = {part: ratio for part, of in _PARTS.items() if (ratio := of(pair)) is not None}
        # What is shown as 1.00 is not above it.
        above = {part: ratio for part, ratio in ratios.items() if round(ratio, 2) > 1.0}
        if above:
            parts = ", ".join(f"{part} {ratio:.2f}" for part, ratio in above.items())
            worse.append((max(above.values()), f"{_name(pair)}: {parts}"))
    worse.sort(key=lambda each: -each[0])
    if not worse:
        return "No case is above 1.0."
    cut = f"; and {len(worse) - _MOST_NAMED} more" if len(worse) > _MOST_NAMED else ""
    return f"Above 1.0, behind TensorFlow: {'; '.join(text for _, text in worse[:_MOST_NAMED])}{cut}."


def _row(name: str, group: Sequence[Pair]) -> str:
    """Median and largest of the ratios of a benchmark; of three cases or fewer, each of them."""
    cells = []
    for ratio_of in _PARTS.values():
        ratios = [ratio for pair in group if (ratio := ratio_of(pair)) is not None]
        if len(ratios) <= 3:
            cells.append(", ".join(map(_ratio, ratios)))
        else:
            cells.append(f"median {statistics.median(ratios):.2f}, largest {max(ratios):.2f}")
    cases = f"{len(group)} cases" if len(group) > 3 else ", ".join(pair.tfray.case for pair in group)
    return f"| {name}: {cases} | {' | '.join(cells)} |"


def _sources(found: Sequence[Pair]) -> list[str]:
    """Each processor with the versions and days of what was measured on it."""
    lines = []
    for machine in dict.fromkeys((pair.tfray.cpu, pair.tfray.cores) for pair in found):
        of_it = [pair for pair in found if (pair.tfray.cpu, pair.tfray.cores) == machine]
        days = sorted({pair.tfray.date for pair in of_it})
        versions = dict.fromkeys(
            f"{package} {version}"
            for pair in of_it
            for package, version in {**pair.tensorflow.versions, **pair.tfray.versions}.items()
        )
        when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
        lines.append(f"Measured on {machine[0]}, {machine[1]} cores, {when}; {', '.join(versions)}.")
    return lines
