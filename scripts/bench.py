#!/usr/bin/env python
"""Measures tfray, beside TensorFlow where an interpreter has it: ``bench.py BENCHMARK --peer-python PYTHON``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from benchmarks.cases import cases_of
from benchmarks.measure import BRIEF, FULL, LONG, QUICK, Effort, Measurement, measure
from benchmarks.report import json_lines, show
from benchmarks.sides import Side, SideError


def _common(command: Callable[..., None]) -> Callable[..., None]:
    """The options of every benchmark."""
    for option in (
        click.option("--peer-python", metavar="PATH", help="An interpreter that has TensorFlow, to compare with."),
        click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write one JSON line per result."),
        click.option("--quick", is_flag=True, help="A few steps only: shows that it works, measures little."),
        click.option("--case", "chosen", multiple=True, metavar="NAME", help="Only this case; may be repeated."),
    ):
        command = option(command)
    return command


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Measure tfray: milliseconds per step, alternating with TensorFlow."""


@main.command()
@_common
def executor(**common: Any) -> None:
    """Session overhead: a trivial fetch, one feed, a thousand scalar additions, branches, loops, an LSTM."""
    _run("executor", **common)


@main.command()
@_common
def mlp(**common: Any) -> None:
    """Training steps of small models at batch 128."""
    _run("mlp", **common)


@main.command()
@_common
def ops(**common: Any) -> None:
    """Common operations at the sizes of real programs, forward and with their gradients."""
    _run("ops", effort=BRIEF, **common)


@main.command()
@_common
@click.option("--batch", type=click.IntRange(min=1), default=4, show_default=True, help="Images in a step.")
def convnets(batch: int, **common: Any) -> None:
    """Training steps of AlexNet, Overfeat, OxfordNet and GoogleNet (OSDI 2016, section 6.1)."""
    _run("convnets", {"batch": batch}, suffix=f"_b{batch}", **common)


@main.command()
@_common
@click.option("--mb", type=click.FloatRange(min=0), default=100.0, show_default=True, help="Parameters (dense).")
@click.option("--workers", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--ps", type=click.IntRange(min=1), default=1, show_default=True, help="Parameter shards.")
def nullstep(mb: float, workers: int, ps: int, **common: Any) -> None:
    """Steps that fetch and update parameters and compute nothing (OSDI 2016, section 6.2)."""
    sizes = f"_p{ps}_w{workers}"
    labels = {kind: f"{kind}_{mb:g}mb{sizes}" for kind in ("dense", "sparse")}
    labels |= {"scalar": f"scalar{sizes}", "memory_copy": f"memory_copy_{mb:g}mb"}
    _run("nullstep", {"mb": mb, "workers": workers, "ps": ps}, labels, memory=True, **common)


@main.command()
@_common
@click.option("--mb", type=click.FloatRange(min=0), default=100.0, show_default=True, help="Size of the model.")
@click.option("--workers", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--ps", type=click.IntRange(min=2), default=2, show_default=True, help="Parameter shards.")
def placement(mb: float, workers: int, ps: int, **common: Any) -> None:
    """Training steps on variables of skewed sizes, placed by round robin and by cost."""
    _run("placement", {"mb": mb, "workers": workers, "ps": ps}, suffix=f"_{mb:g}mb_p{ps}_w{workers}", **common)


@main.command()
@_common
@click.option("--mb", type=click.FloatRange(min=0), default=2000.0, show_default=True, help="Size of the model.")
@click.option("--folder", type=click.Path(exists=True, file_okay=False), help="Where to write; the disk to measure.")
def checkpoint(mb: float, folder: str | None, **common: Any) -> None:
    """Saving and restoring a model, the pause of an asynchronous save, and what the disk can do."""
    _run("checkpoint", {"mb": mb, "folder": folder}, suffix=f"_{mb:g}mb", effort=LONG, **common)


def _run(
    bench: str,
    options: dict[str, Any] | None = None,
    labels: dict[str, str] | None = None,
    *,
    suffix: str = "",
    memory: bool = False,
    effort: Effort = FULL,
    peer_python: str | None,
    json_file: Path | None,
    quick: bool,
    chosen: Sequence[str],
) -> None:
    """Measure the cases of a benchmark, and report."""
    cases = cases_of(bench)
    unknown = [name for name in chosen if name not in cases]
    if unknown:
        raise click.BadParameter(f"{bench} has no case {unknown[0]!r}; it has {', '.join(cases)}", param_hint="--case")
    measurements: list[Measurement] = []
    notes: dict[str, str] = {}
    with Console(stderr=True).status(bench) as status, ExitStack() as stack:
        started: dict[str, Side] = {}
        for name in chosen or cases:
            label = (labels or {}).get(name, name) + suffix
            if cases[name].note:
                notes[label] = cases[name].note
            wanted = [side for side in cases[name].sides if side != "tensorflow" or peer_python]
            try:
                for side in wanted:
                    if side not in started:
                        python = peer_python if side == "tensorflow" else sys.executable
                        started[side] = stack.enter_context(Side(side, python or sys.executable))
                measurements += measure(
                    [started[side] for side in wanted],
                    bench,
                    name,
                    options or {},
                    QUICK if quick else effort,
                    label=label,
                    memory=memory,
                    progress=status.update,
                )
            except SideError as error:
                raise click.ClickException(str(error)) from error
    show(bench, measurements, notes)
    if json_file is not None:
        json_file.write_text("".join(f"{line}\n" for line in json_lines(bench, measurements)))


if __name__ == "__main__":
    main()
