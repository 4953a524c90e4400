#!/usr/bin/env python
"""Measures tfray, beside TensorFlow where an interpreter has it: ``bench.py BENCHMARK --peer-python PYTHON``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from benchmarks.cases import cases_of
from benchmarks.json_lines import FOLDER, committed, json_lines, read
from benchmarks.machine import Machine
from benchmarks.markdown import page
from benchmarks.measure import BRIEF, FULL, LONG, QUICK, Effort, Measurement, measure
from benchmarks.processes import busy
from benchmarks.report import console, show
from benchmarks.roofline import measure_roofline
from benchmarks.setting import Setting
from benchmarks.sides import SideError, Sides


def _common(command: Callable[..., None]) -> Callable[..., None]:
    """The options of every benchmark."""
    for option in (
        click.option("--peer-python", metavar="PATH", help="An interpreter that has TensorFlow, to compare with."),
        click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write one JSON line per result."),
        click.option("--quick", is_flag=True, help="A few steps only: shows that it works, measures little."),
        click.option("--case", "chosen", multiple=True, metavar="NAME", help="Only this case; may be repeated."),
        click.option("--one-core", is_flag=True, help="Hold either side on one core, threads and all."),
        click.option(
            "--busy",
            "busy_processes",
            type=click.IntRange(min=0),
            default=0,
            metavar="N",
            help="Keep the cores busy with N spinning processes meanwhile.",
        ),
    ):
        command = option(command)
    return command


class _Nodes(click.ParamType):
    """A number of nodes from 1 on, or ``own``."""

    name = "own|N"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if value == "own" else click.IntRange(min=1).convert(value, param, ctx)


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
    """Training steps of AlexNet, Overfeat, OxfordNet, GoogleNet (OSDI 2016, section 6.1) and three later networks."""
    _run("convnets", {"batch": batch}, suffix=f"_b{batch}", memory=True, **common)


@main.command()
@_common
def models(**common: Any) -> None:
    """Training steps of a transformer, an LSTM, language models and a large table."""
    _run("models", memory=True, **common)


@main.command("input")
@_common
def input_(**common: Any) -> None:
    """Ten batches of input pipelines: arrays, records, images, text, and TensorFlow 1's queues."""
    _run("input", **common)


@main.command()
@_common
def programs(**common: Any) -> None:
    """Complete training loops, input included, as users run them: stretches of steps with what goes between."""
    _run("programs", **common)


@main.command()
@_common
@click.option("--mb", type=click.FloatRange(min=0), default=100.0, show_default=True, help="Parameters (dense).")
@click.option("--workers", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--ps", type=click.IntRange(min=1), default=1, show_default=True, help="Parameter shards.")
@click.option(
    "--nodes",
    type=_Nodes(),
    help="Ray nodes for the workers, on this machine; each shard has one of its own then. 'own' gives each worker one.",
)
def nullstep(mb: float, workers: int, ps: int, nodes: int | str | None, **common: Any) -> None:
    """Steps that fetch and update parameters and compute nothing (OSDI 2016, section 6.2)."""
    count = workers if nodes == "own" else nodes
    sizes = f"_p{ps}_w{workers}" + (f"_n{count}" if count else "")
    labels = {kind: f"{kind}_{mb:g}mb{sizes}" for kind in ("dense", "sparse")}
    labels |= {"scalar": f"scalar{sizes}"}
    labels |= {floor: f"{floor}_{mb:g}mb" for floor in ("memory_copy", "one_stream", "four_streams")}
    _run("nullstep", {"mb": mb, "workers": workers, "ps": ps, "nodes": count}, labels, memory=True, **common)


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


@main.command()
@_common
@click.option("--nodes", type=click.IntRange(min=1), default=50_000, show_default=True, help="Operations of the graph.")
@click.option("--mb", type=click.FloatRange(min=0), default=500.0, show_default=True, help="Size of the frozen graph.")
def exchange(nodes: int, mb: float, **common: Any) -> None:
    """Graphs that TensorFlow wrote: import and first step of many operations, export, memory of a large frozen one."""
    labels = {name: f"{name}_{nodes}" for name in ("import_and_run", "export")}
    labels |= {name: f"{name}_{mb:g}mb" for name in ("import_frozen", "import_file")}
    _run("exchange", {"nodes": nodes, "mb": mb}, labels, memory=True, effort=LONG, **common)


@main.command()
@click.option("--workers", type=click.IntRange(min=2), default=8, show_default=True, help="Workers that count.")
@click.option("--backups", type=click.IntRange(min=0), default=4, show_default=True, help="Most backup workers.")
@click.option("--steps", type=click.IntRange(min=1), default=60, show_default=True, help="Steps to measure.")
@click.option("--simulated-workers", type=click.IntRange(min=2), default=200, show_default=True)
@click.option("--plot", default="stragglers.png", show_default=True, help="Where to draw the times.")
def stragglers(workers: int, backups: int, steps: int, simulated_workers: int, plot: str) -> None:
    """Synchronous steps with backup workers when workers are slow now and then (OSDI 2016, section 6.3)."""
    from benchmarks import stragglers as bench
    from benchmarks.delays import Delays

    delays = Delays()
    with Console(stderr=True).status("stragglers") as status:
        measured = []
        for count in range(backups + 1):
            status.update(f"stragglers: {workers} workers, {count} backups")
            measured.append(bench.measure(workers, count, steps, delays))
        overhead_s = bench.overhead_of(measured[0], delays)
        sizes = dict.fromkeys([workers, 50, simulated_workers])
        simulated = {
            size: [bench.simulate(size, count, 1000, delays, overhead_s) for count in range(backups + 1)]
            for size in sizes
        }
    rows = [("measured", measured), *(("simulated", results) for results in simulated.values())]
    table = Table(title=f"backup workers; beside the delays a step takes {1e3 * overhead_s:.1f} ms")
    for title in ("", "workers", "backups", "median ms", "p90 ms", "t(b)/t(0)", "t(0)/t(b) x n/(n+b)"):
        table.add_column(title, justify="right" if title else "left")
    for label, results in rows:
        for each in results:
            cells = [each.workers, each.backups, f"{1e3 * each.median_s:.1f}", f"{1e3 * each.p90_s:.1f}"]
            ratios = [each.median_s / results[0].median_s, each.gain(results[0])]
            table.add_row(label, *map(str, cells), *(f"{ratio:.2f}" for ratio in ratios))
    Console().print(table)
    ways = {"async": None, "sync": 0, f"sync, {backups} as backups": backups}
    sizes = sorted({max(backups + 1, simulated_workers * part // 8) for part in (1, 2, 4, 8)})
    throughput = {
        way: {size: bench.simulate_throughput(size, count, 300, delays, overhead_s) for size in sizes}
        for way, count in ways.items()
    }
    table = Table("", *map(str, sizes), title="batches that count per second, by the number of workers; simulated")
    for way, rates in throughput.items():
        table.add_row(way, *(f"{rate:.0f}" for rate in rates.values()))
    Console().print(table)
    Console().print(str(Machine.here()))
    bench.plot(measured, simulated[simulated_workers], throughput, plot)


@main.command()
@click.option("--workers", type=click.IntRange(min=2), default=4, show_default=True, help="Workers that count.")
@click.option("--examples", type=click.IntRange(min=1), default=12_000, show_default=True)
@click.option("--batch", type=click.IntRange(min=1), default=16, show_default=True, help="Examples of a worker's step.")
@click.option("--plot", default="modes.png", show_default=True, help="Where to draw the losses.")
def modes(workers: int, examples: int, batch: int, plot: str) -> None:
    """Loss against time and examples in asynchronous, synchronous and backup training, with slow workers."""
    from benchmarks import modes as bench
    from benchmarks.delays import Delays
    from tfray.training.trainer.run_config import ScalingConfig

    few = {"cpus_per_worker": 0.1, "cpus_per_parameter_server": 0.1}
    ways = {
        "sync": ScalingConfig(workers, **few),
        "sync, 1 backup": ScalingConfig(workers + 1, backup_workers=1, **few),
        "async": ScalingConfig(workers, mode="async", **few),
        "async, staleness 2": ScalingConfig(workers, mode="async", staleness=2, **few),
    }
    delays = Delays(least_s=0.03, most_s=0.6)
    results = []
    with Console(stderr=True).status("modes") as status:
        for name, scaling in ways.items():
            status.update(f"modes: {name}")
            results.append(bench.measure(name, scaling, examples, batch, delays))
    goal = 0.5
    titles = ("", "steps", "seconds", "last loss", f"s to {goal}", f"examples to {goal}", "dropped", "staleness")
    table = Table(title=f"{workers} workers with heavy-tailed delays")
    for title in titles:
        table.add_column(title, justify="right" if title else "left")
    for each in results:
        reached = each.until(goal)
        seconds, examples_read = (f"{reached[0]:.1f}", str(reached[1])) if reached else ("", "")
        steps, last = str(len(each.losses)), f"{sum(each.losses[-8:]) / len(each.losses[-8:]):.3f}"
        late = str(each.dropped), f"{each.mean_staleness:.1f}"
        table.add_row(each.name, steps, f"{each.seconds[-1]:.1f}", last, seconds, examples_read, *late)
    Console().print(table)
    Console().print(str(Machine.here()))
    bench.plot(results, plot)


@main.command()
@click.option("--quick", is_flag=True, help="A few steps only: shows that it works, measures little.")
def roofline(quick: bool) -> None:
    """What this machine can do at most: products of matrices, memory and caches, on one core and on all."""
    machine, effort = Machine.here(), QUICK if quick else BRIEF
    with Console(stderr=True).status("roofline") as status:
        try:
            limits = [measure_roofline(one_core, effort, status.update) for one_core in (True, False)]
        except SideError as error:
            raise click.ClickException(str(error)) from error
    table = Table("", "one core", f"all {machine.cores}", title="roofline", title_justify="left")
    table.add_row("products of float32 matrices, GFLOP/s", *(f"{one.flop_rate / 1e9:.0f}" for one in limits))
    for levels in zip(*(one.levels for one in limits), strict=True):
        table.add_row(f"{levels[0].name} read, GB/s", *(f"{level.read_rate / 1e9:.1f}" for level in levels))
        table.add_row(f"{levels[0].name} copied, GB/s", *(f"{level.copy_rate / 1e9:.1f}" for level in levels))
    out = console()
    out.print(table)
    out.print(f"{machine}; best of all steps; what is copied is read and written, and counts twice")


@main.command()
@click.argument("files", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--every-case", is_flag=True, help="A row for each case instead of one for each benchmark.")
def report(files: Sequence[Path], every_case: bool) -> None:
    """Print the README's table from FILES of JSON lines; by default from those in scripts/benchmarks/figures."""
    try:
        click.echo(page(read(files or sorted(FOLDER.glob("*.jsonl"))), every_case=every_case), nl=False)
    except ValueError as error:
        raise click.ClickException(str(error)) from error


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
    one_core: bool,
    busy_processes: int,
) -> None:
    """Measure the cases of a benchmark, and report.

    Where memory is measured, every case has new processes: what the one before kept would count otherwise.
    """
    cases = cases_of(bench)
    unknown = [name for name in chosen if name not in cases]
    if unknown:
        raise click.BadParameter(f"{bench} has no case {unknown[0]!r}; it has {', '.join(cases)}", param_hint="--case")
    effort = QUICK if quick else effort
    measurements: list[Measurement] = []
    notes: dict[str, str] = {}
    sides = Sides(peer_python, one_core=one_core)
    try:
        with Console(stderr=True).status(bench) as status:
            with sides, busy(busy_processes, one_core=one_core):
                floors = [name for name, each in cases.items() if each.sides == ("floor",) and name not in chosen]
                for name in [*chosen, *floors] if chosen else cases:
                    label = (labels or {}).get(name, name) + suffix
                    if cases[name].note:
                        notes[label] = cases[name].note
                    wanted = [side for side in cases[name].sides if side != "tensorflow" or peer_python]
                    measurements += measure(
                        [sides.started(side) for side in wanted],
                        bench,
                        name,
                        options or {},
                        effort,
                        label=label,
                        memory=memory,
                        progress=status.update,
                    )
                    if memory:
                        sides.end()
            counted = any(one.work for one in measurements)
            limits = measure_roofline(one_core, QUICK if quick else BRIEF, status.update) if counted else None
    except SideError as error:
        raise click.ClickException(str(error)) from error
    today = datetime.now(UTC).date().isoformat()
    setting = Setting(Machine.here(), today, one_core, busy_processes, sides.versions, limits)
    show(bench, measurements, notes, setting, committed(bench, setting))
    if json_file is not None:
        json_file.write_text("".join(f"{line}\n" for line in json_lines(bench, measurements, setting)))


if __name__ == "__main__":
    main()
