#!/usr/bin/env python
"""Checks tfray on a GPU and measures it there, in this process and without Ray: ``gpu_check.py --help``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

from benchmarks.cases import cases_of  # noqa: E402
from benchmarks.gpu import MODES, Roofline, measure, measure_roofline  # noqa: E402
from tests.support.gpu.pretend import Unrecorded  # noqa: E402
from tests.support.gpu.report import Report, table  # noqa: E402

_Case = tuple[str, str, dict[str, Any], str]
"""Benchmark, case, options and mode."""

_LAST_WORD_S = 10.0
"""A check that is told to end has this long to write what it has found."""

CHECKS = ("ops", "gradients", "session")
NETWORKS: dict[str, dict[str, Any]] = {
    "alexnet": {},
    "overfeat": {},
    "oxfordnet": {},
    "googlenet": {},
    "resnet_50": {"pixels": 224},  # on a CPU it is timed on smaller images
}
LANGUAGE_MODEL = {"batch": 128, "units": 512, "words": 40_000}
"""The paper's LSTM-512-512 and its vocabulary (section 6.4)."""
SEQUENCES = {
    "language_model_full": LANGUAGE_MODEL,
    "language_model_sampled": LANGUAGE_MODEL,
    "transformer": {"batch": 16, "length": 512, "width": 768, "heads": 12},
}


def check(what: str, processes: int, seconds: float) -> tuple[int, int]:
    """The samples of operations on the GPU against the CPU, shared out to processes. Returns agreeing and failing."""
    command = [sys.executable, "-m", "tests.support.gpu.run", what, "--xp", "device", "--bfloat16", "--verbose"]
    folder = Path(os.environ.get("OUT", ".")) / "gpu_check"
    folder.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}"}
    running = []
    for share in range(processes):
        options = ["--share", f"{share}/{processes}", "--json", str(folder / str(share))]
        with open(folder / f"{share}.log", "w") as log:
            child = subprocess.Popen(
                [*command, *options], cwd=ROOT, env=environment, stdout=log, stderr=subprocess.STDOUT
            )
        running.append(child)
    deadline = time.monotonic() + seconds
    report = Report(Unrecorded())
    for share, child in enumerate(running):
        try:
            child.wait(max(deadline - time.monotonic(), 0.1))
        except subprocess.TimeoutExpired:
            report.failures[f"share {share}"].append(("?", f"not done after {seconds:.0f} s", "?"))
            child.terminate()  # it writes what it has found
            try:
                child.wait(_LAST_WORD_S)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        found = folder / f"{share}-{what}.json"
        if found.exists():
            report.merge(json.loads(found.read_text()))
            found.unlink()
        else:
            lines = (folder / f"{share}.log").read_text().splitlines()
            report.failures[f"share {share}"].append(("?", f"no answer: {' / '.join(lines[-2:])}", "?"))
    return report.show()


def measured(cases: list[_Case], limits: Roofline, results: list[dict[str, Any]]) -> None:
    """Time cases, each of benchmark, name, options and mode, and print them beside the device's limits."""
    rows = []
    for bench, case, options, mode in cases:
        begun = time.monotonic()
        try:
            found = measure(bench, case, options, mode)
        except Exception as error:  # noqa: BLE001 (what fails is a row of the table; the others are measured)
            traceback.print_exc()
            rows.append((case, mode, "", "", "", f"{type(error).__name__}: {str(error)[:80]}"))
            continue
        floor_ms = limits.floor_ms(found.work, mode) if found.work else 0.0
        share = f"{floor_ms / found.step_ms:.2f}" if floor_ms else ""
        rows.append((case, mode, f"{found.step_ms:.3f}", f"{found.host_ms:.3f}", f"{floor_ms:.3f}", share))
        results.append({"bench": bench, "case": case, "mode": mode, "floor_ms": floor_ms, **asdict(found)})
        print(f"{case} {mode}: {found.step_ms:.3f} ms ({time.monotonic() - begun:.1f} s)", file=sys.stderr, flush=True)
    table(("case", "mode", "step ms", "host ms", "floor ms", "floor / step"), rows)


@click.command()
@click.argument("what", nargs=-1, type=click.Choice([*CHECKS, "limits", "operations", "networks", "sequences"]))
@click.option("--processes", default=max((os.cpu_count() or 2) - 2, 1), show_default=True, help="Of the checks.")
@click.option("--seconds", default=240.0, show_default=True, help="The most that a check may take.")
@click.option("--batch", default=128, show_default=True, help="Images of a step of the networks.")
@click.option("--only", default="", help="Cases whose name contains this.")
@click.option("--mode", "modes", multiple=True, type=click.Choice(MODES), default=MODES, help="Of the networks.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write the times there.")
def main(
    what: tuple[str, ...],
    processes: int,
    seconds: float,
    batch: int,
    only: str,
    modes: tuple[str, ...],
    json_file: Path | None,
) -> None:
    """Check kernels, gradients and sessions on the GPU; time operations, networks of images and of sequences."""
    chosen = what or (*CHECKS, "limits", "operations", "networks", "sequences")
    failed = 0
    for name in CHECKS:
        if name in chosen:
            print(f"== {name}", flush=True)
            begun = time.monotonic()
            agree, fail = check(name, processes, seconds)
            failed += fail
            print(f"{name}: {agree} agree, {fail} fail, {time.monotonic() - begun:.0f} s\n", flush=True)
    of_networks = {"batch": batch, "resident": True}
    lists: dict[str, Callable[[], list[_Case]]] = {
        "operations": lambda: [("ops", case, {}, "float32") for case in cases_of("ops")],
        "networks": lambda: [
            ("convnets", case, {**of_networks, **options}, mode) for case, options in NETWORKS.items() for mode in modes
        ],
        "sequences": lambda: [("models", case, options, "float32") for case, options in SEQUENCES.items()],
    }
    results: list[dict[str, Any]] = []
    if set(chosen) - set(CHECKS):
        limits = measure_roofline()
        rates = ", ".join(f"{rate / 1e12:.0f} TFLOP/s in {mode}" for mode, rate in limits.flop_rates.items())
        print(f"The device's limits: products {rates}; memory {limits.byte_rate / 1e12:.2f} TB/s\n", flush=True)
        for name, cases in lists.items():
            if name in chosen:
                print(f"== {name}", flush=True)
                measured([case for case in cases() if only in case[1]], limits, results)
        if json_file:
            json_file.write_text(json.dumps({"limits": asdict(limits), "results": results}, indent=1))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
