"""What was measured as lines of JSON: written by every benchmark, and committed in the folder ``figures``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Final

from benchmarks.measure import Measurement
from benchmarks.setting import Setting

FOLDER: Final = Path(__file__).resolve().parent / "figures"
"""Of the committed lines."""


@dataclass(frozen=True)
class Figure:
    """One case on one side, in one setting: a line.

    Attributes:
        bench: The benchmark.
        case: The case, with its sizes.
        impl: The side.
        median_ms: Milliseconds of a step: median.
        p90_ms: What nine of ten do not exceed.
        n: Steps.
        processor_ms: Milliseconds of processor time of a step, of all processes of the side.
        floor_ms: What the machine needs for it at the least, where the case counts its work.
        peak_mb: Most memory, where that was measured.
        one_core: Whether the side was held on one core.
        busy: Processes that kept the processor busy meanwhile.
        date: The day.
        cpu: The processor.
        cores: Cores of it that could be used.
        versions: By package.
    """

    bench: str
    case: str
    impl: str
    median_ms: float
    p90_ms: float
    n: int
    processor_ms: float
    date: str
    cpu: str
    cores: int
    versions: Mapping[str, str]
    floor_ms: float | None = None
    peak_mb: float | None = None
    one_core: bool = False
    busy: int = 0

    @classmethod
    def of(cls, bench: str, one: Measurement, setting: Setting) -> Figure:
        """What a line says of a measurement."""
        floor_ms = setting.roofline.floor_ms(one.work) if setting.roofline and one.work else None
        return cls(
            bench=bench,
            case=one.case,
            impl=one.side,
            median_ms=round(one.median_ms, 5),
            p90_ms=round(one.p90_ms, 5),
            n=len(one.times_ms),
            processor_ms=round(one.processor_ms, 5),
            date=setting.date,
            cpu=setting.machine.cpu,
            cores=setting.machine.cores,
            versions=setting.versions[one.side],
            floor_ms=None if floor_ms is None else round(floor_ms, 5),
            peak_mb=None if one.peak_bytes is None else round(one.peak_bytes / 1e6, 1),
            one_core=setting.one_core,
            busy=setting.busy,
        )


@dataclass(frozen=True)
class Pair:
    """tfray and TensorFlow on one case, measured in turns."""

    tfray: Figure
    tensorflow: Figure

    @property
    def wall(self) -> float:
        """tfray's time over TensorFlow's."""
        return self.tfray.median_ms / self.tensorflow.median_ms

    @property
    def processor(self) -> float:
        """tfray's processor time over TensorFlow's."""
        return self.tfray.processor_ms / self.tensorflow.processor_ms

    @property
    def memory(self) -> float | None:
        """tfray's peak of memory over TensorFlow's; None when it was not measured."""
        mine, theirs = self.tfray.peak_mb, self.tensorflow.peak_mb
        return mine / theirs if mine and theirs else None


def json_lines(bench: str, measurements: Sequence[Measurement], setting: Setting) -> Iterator[str]:
    """One JSON object per case and side. What does not apply is left out."""
    for one in measurements:
        line = asdict(Figure.of(bench, one, setting))
        optional = {each.name: each.default for each in fields(Figure)}
        yield json.dumps({name: value for name, value in line.items() if value != optional[name]})


def read(paths: Iterable[Path]) -> list[Figure]:
    """The lines of files.

    Raises:
        ValueError: A line is none of a benchmark's; the message names file and line.
    """
    figures = []
    for path in paths:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            try:
                figures.append(Figure(**json.loads(line)))
            except (TypeError, json.JSONDecodeError) as error:
                raise ValueError(f"{path}:{number}: not a line that bench.py --json writes: {error}") from error
    return figures


def pairs(figures: Iterable[Figure]) -> list[Pair]:
    """Both sides of every case that was measured with both, in the order in which the cases come first.

    Where a case was measured twice in the same way, the later day counts, or on the same day the later line.
    """
    runs: dict[tuple[object, ...], dict[str, Figure]] = {}
    for one in figures:
        runs.setdefault((one.bench, one.case, one.one_core, one.busy, one.date, one.cpu, one.cores), {})[one.impl] = one
    newest: dict[tuple[object, ...], Pair] = {}
    for (*case, date, _cpu, _cores), by_side in runs.items():
        if {"tfray", "tensorflow"} <= by_side.keys():
            known = newest.get(tuple(case))
            if known is None or known.tfray.date <= date:
                newest[tuple(case)] = Pair(by_side["tfray"], by_side["tensorflow"])
    return list(newest.values())


def committed(bench: str, setting: Setting, folder: Path = FOLDER) -> dict[str, Pair]:
    """What the repository says of a benchmark in these conditions, by case."""
    found = pairs(read(sorted(folder.glob("*.jsonl"))))
    wanted = (bench, setting.one_core, setting.busy)
    return {
        pair.tfray.case: pair for pair in found if (pair.tfray.bench, pair.tfray.one_core, pair.tfray.busy) == wanted
    }
