"""What was measured, as a table for the eye and as lines of JSON for programs."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from benchmarks.measure import Measurement, Ratio

_LEAST_SUMMARIZED: Final = 8
"""Cases from which on a summary of all ratios is worth a line."""

_FILE_WIDTH: Final = 120
"""Width of the table in what is no terminal."""


def table(bench: str, measurements: Sequence[Measurement]) -> Table:
    """The measurements of a benchmark, a row each."""
    with_memory = any(one.peak_bytes is not None for one in measurements)
    result = Table(title=f"{bench}: milliseconds per step", title_justify="left")
    result.add_column("case", no_wrap=True)
    result.add_column("")
    for heading in ("median", "p90", "steps", "tfray / TensorFlow"):
        result.add_column(heading, justify="right")
    if with_memory:
        result.add_column("peak MB (over first)", justify="right")
    for i, one in enumerate(measurements):
        is_new = i == 0 or measurements[i - 1].case != one.case
        cells = [one.case if is_new else "", one.side, _ms(one.median_ms), _ms(one.p90_ms), str(len(one.times_ms))]
        cells.append(_ratio(one, measurements))
        if with_memory:
            cells.append(_peak(one, measurements))
        result.add_row(*cells)
    return result


def _ms(time_ms: float) -> str:
    return f"{time_ms:.3f}" if time_ms < 10 else f"{time_ms:.1f}"


def _ratio(one: Measurement, measurements: Sequence[Measurement]) -> str:
    """How `one`, of tfray, compares; with the range of the middle half of the rounds."""
    ratio = _ratio_of(one, measurements)
    return "" if ratio is None else f"{ratio.overall:.2f} ({ratio.low:.2f} to {ratio.high:.2f})"


def _ratio_of(one: Measurement, measurements: Sequence[Measurement]) -> Ratio | None:
    peers = [other for other in measurements if other.case == one.case and other.side == "tensorflow"]
    return Ratio.of(one, peers[0]) if one.side == "tfray" and peers else None


def _peak(one: Measurement, measurements: Sequence[Measurement]) -> str:
    """Its peak of memory, and by how much it exceeds that of the side's first case."""
    if one.peak_bytes is None:
        return ""
    first = next(other for other in measurements if other.side == one.side)
    text = f"{one.peak_bytes / 1e6:.0f}"
    if first is one or first.peak_bytes is None or one.side == "floor":
        return text
    return f"{text} ({(one.peak_bytes - first.peak_bytes) / 1e6:+.0f})"


def json_lines(bench: str, measurements: Sequence[Measurement]) -> Iterator[str]:
    """One JSON object per case and implementation."""
    for one in measurements:
        line: dict[str, Any] = {
            "bench": bench,
            "case": one.case,
            "impl": one.side,
            "median_ms": round(one.median_ms, 5),
            "p90_ms": round(one.p90_ms, 5),
            "n": len(one.times_ms),
        }
        if one.peak_bytes is not None:
            line["peak_mb"] = round(one.peak_bytes / 1e6, 1)
        yield json.dumps(line)


def show(bench: str, measurements: Sequence[Measurement], notes: Mapping[str, str]) -> None:
    """Print the table, what all ratios together say, and the notes to the cases in it."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=_FILE_WIDTH)
    console.print(table(bench, measurements))
    ratios = [_overall(one, measurements) for one in measurements if one.side == "tfray"]
    known = sorted(ratio for ratio in ratios if ratio is not None)
    if len(known) >= _LEAST_SUMMARIZED:
        console.print(f"{len(known)} ratios: median {statistics.median(known):.2f}, largest {known[-1]:.2f}")
    for case, note in notes.items():
        console.print(f"{case}: {note}")


def _overall(one: Measurement, measurements: Sequence[Measurement]) -> float | None:
    ratio = _ratio_of(one, measurements)
    return None if ratio is None else ratio.overall
