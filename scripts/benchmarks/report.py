"""What was measured, as a table for the eye."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.json_lines import Pair
from benchmarks.measure import Measurement, Ratio
from benchmarks.roofline import Roofline
from benchmarks.setting import Setting, conditions

_LEAST_SUMMARIZED: Final = 8
"""Cases from which on a summary of all ratios is worth a line."""

_FILE_WIDTH: Final = 180
"""Width of the table in what is no terminal."""

_OVER_FIRST: Final = ("exchange", "nullstep")
"""Benchmarks whose first case has the least of everything: its memory is what the others' is compared with."""


def table(
    bench: str,
    measurements: Sequence[Measurement],
    setting: Setting | None = None,
    committed: Mapping[str, Pair] | None = None,
) -> Table:
    """The measurements of a benchmark, a row each.

    Args:
        bench: The benchmark.
        measurements: Of all its cases and sides.
        setting: Where and how they were made; its roofline gives the floors.
        committed: Figures of the repository to compare with, by case.
    """
    held = conditions(setting.one_core, setting.busy) if setting else ""
    result = Table(title=f"{bench}{held}: milliseconds per step", title_justify="left")
    result.add_column("case", no_wrap=True)
    columns = _columns(bench, measurements, setting.roofline if setting else None, committed or {})
    filled = {
        heading: cells
        for heading, cell in columns.items()
        if any(cells := [cell(one) for one in measurements]) or heading == "tfray / TensorFlow"
    }
    for heading in filled:
        result.add_column(heading, justify="right" if heading else "left")
    for i, one in enumerate(measurements):
        is_new = i == 0 or measurements[i - 1].case != one.case
        result.add_row(one.case if is_new else "", *(cells[i] for cells in filled.values()))
    return result


def _columns(
    bench: str, measurements: Sequence[Measurement], roofline: Roofline | None, committed: Mapping[str, Pair]
) -> dict[str, Callable[[Measurement], str]]:
    """What each column says of a measurement, by heading; columns that say nothing are not shown."""

    def floors(one: Measurement) -> str:
        return f"{one.median_ms / roofline.floor_ms(one.work):.1f}" if roofline and one.work else ""

    def ratio(one: Measurement) -> str:
        """How tfray compares; with the range of the middle half of the rounds."""
        peer = _peer(one, measurements)
        if peer is None:
            return ""
        ratio = Ratio.of(one, peer)
        return f"{ratio.overall:.2f} ({ratio.low:.2f} to {ratio.high:.2f})"

    def processor_ratio(one: Measurement) -> str:
        peer = _peer(one, measurements)
        if peer is None or not (one.rounds_processor_ms and peer.rounds_processor_ms):
            return ""
        return f"{one.processor_ms / peer.processor_ms:.2f}"

    def memory_ratio(one: Measurement) -> str:
        peer = _peer(one, measurements)
        return f"{one.peak_bytes / peer.peak_bytes:.2f}" if peer and one.peak_bytes and peer.peak_bytes else ""

    def known(one: Measurement) -> str:
        pair = committed.get(one.case) if one.side == "tfray" else None
        return f"{pair.wall:.2f}, {pair.processor:.2f}" if pair else ""

    over_first = bench in _OVER_FIRST
    return {
        "": lambda one: one.side,
        "median": lambda one: _ms(one.median_ms),
        "p90": lambda one: _ms(one.p90_ms),
        "processor": lambda one: _ms(one.processor_ms) if one.rounds_processor_ms else "",
        "steps": lambda one: str(len(one.times_ms)),
        "time / floor": floors,
        "tfray / TensorFlow": ratio,
        "processor ratio": processor_ratio,
        "committed": known,
        "peak MB (over first)" if over_first else "peak MB": lambda one: _peak(one, measurements, over_first),
        "over first / bytes": lambda one: _times_bytes(one, measurements) if over_first else "",
        "memory ratio": memory_ratio,
    }


def _ms(time_ms: float) -> str:
    return f"{time_ms:.3f}" if time_ms < 10 else f"{time_ms:.1f}"


def _peer(one: Measurement, measurements: Sequence[Measurement]) -> Measurement | None:
    """TensorFlow's measurement of the same case, if `one` is tfray's."""
    if one.side != "tfray":
        return None
    return next((other for other in measurements if other.case == one.case and other.side == "tensorflow"), None)


def _times_bytes(one: Measurement, measurements: Sequence[Measurement]) -> str:
    """By how much its peak of memory exceeds that of the side's first case, over the bytes that its step must move."""
    first = next(other for other in measurements if other.side == one.side)
    if one.work is None or not one.work.bytes or one.peak_bytes is None or first.peak_bytes is None or first is one:
        return ""
    return f"{(one.peak_bytes - first.peak_bytes) / one.work.bytes:.2f}"


def _peak(one: Measurement, measurements: Sequence[Measurement], over_first: bool) -> str:
    """Its peak of memory, and by how much it exceeds that of the side's first case where that means anything."""
    if one.peak_bytes is None:
        return ""
    first = next(other for other in measurements if other.side == one.side)
    text = f"{one.peak_bytes / 1e6:.0f}"
    if not over_first or first is one or first.peak_bytes is None or one.side == "floor":
        return text
    return f"{text} ({(one.peak_bytes - first.peak_bytes) / 1e6:+.0f})"


def console() -> Console:
    """Where tables are printed: as wide as they need where nobody's terminal sets the width."""
    found = Console()
    return found if found.is_terminal else Console(width=_FILE_WIDTH)


def show(
    bench: str,
    measurements: Sequence[Measurement],
    notes: Mapping[str, str],
    setting: Setting,
    committed: Mapping[str, Pair] | None = None,
) -> None:
    """Print the table with the machine, what all ratios together say, and the notes to the cases in it."""
    out = console()
    out.print(table(bench, measurements, setting, committed))
    out.print(f"{setting.machine}; {setting.date}")
    peers = [(one, peer) for one in measurements if (peer := _peer(one, measurements))]
    known = sorted(Ratio.of(one, peer).overall for one, peer in peers)
    if len(known) >= _LEAST_SUMMARIZED:
        out.print(f"{len(known)} ratios: median {statistics.median(known):.2f}, largest {known[-1]:.2f}")
    for case, note in notes.items():
        out.print(f"{case}: {note}")
    others = {
        f"{pair.tfray.cpu}, {pair.tfray.cores} cores"
        for case, pair in (committed or {}).items()
        if any(one.case == case for one in measurements)
        and (pair.tfray.cpu, pair.tfray.cores) != (setting.machine.cpu, setting.machine.cores)
    }
    if others:
        Console(stderr=True, soft_wrap=True).print(
            f"Warning: committed figures are from another processor ({'; '.join(sorted(others))}). Ratios carry over "
            "from one to another only roughly."
        )
