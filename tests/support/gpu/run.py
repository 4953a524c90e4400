"""Checks tfray's GPU paths, on a machine without a GPU or by `--xp device` on one with it.

`check.sh` calls this from the project's root, `scripts/gpu_check.py` on a machine with a GPU.
"""

from __future__ import annotations

import argparse
import collections
import os
import signal
import sys
import time
import warnings
from pathlib import Path
from typing import Any

from tests.support.gpu.pretend import KINDS, open_gpu
from tests.support.gpu.report import BEYOND, Report, table

WHAT = {
    "static": "names and keywords of the array module in the source, looked up in CuPy",
    "ops": "every sample of every operation in every dtype, GPU kernel against CPU kernel",
    "gradients": "gradients of every differentiable operation, likewise",
    "session": "values and gradients of samples by sessions on /gpu:0",
    "models": "training of small models on the GPU device against the CPU device",
    "launches": "kernels, GEMMs, device-to-host waits and uploads of a step of each model, at most what is noted",
    "tests": "tests of the project whose sessions find a GPU: those named, or some folders",
    "whole": "likewise, all tests that need no minutes and no Ray",
}
USUAL = ("static", "ops", "gradients", "models")
"""What is done unless something is named: a few minutes by the fake."""

FOLDERS = {
    "tests": ("devices", "placement", "runtime", "library/layers", "library/rnn", "training/optimizers")
    + ("ops/control", "ops/dataflow", "ops/random", "ops/state"),
    "whole": ("",),
}
"""Where tests are that no file is named for: for `tests` those of placement, waits and copies, about a minute."""


def arguments() -> argparse.ArgumentParser:
    names = "\n".join(f"  {name:10} {text}" for name, text in WHAT.items())
    parser = argparse.ArgumentParser(
        prog="check.sh",
        description=f"{__doc__}\n\nwhat to check:\n{names}\n\nWithout a name: {', '.join(USUAL)}.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "what", nargs="*", metavar="WHAT", help="one or more of the above; files of tests after `tests`"
    )
    parser.add_argument(
        "--xp",
        choices=KINDS,
        default="fake",
        help="the stand-in: fakecupy, or CuPy on an emulated CUDA; `device` is a GPU of this machine",
    )
    parser.add_argument("--only", default="", metavar="REGEX", help="operations or models whose name matches")
    parser.add_argument(
        "--dtypes", metavar="NAMES", help="of ops: comma-separated, as_is for samples of none; or `all`"
    )
    parser.add_argument(
        "--bfloat16", action="store_true", help="samples of bfloat16 too, which tfray's tests skip on GPUs"
    )
    parser.add_argument(
        "--share", default="0/1", metavar="K/N", help="of ops, gradients and session: every Nth operation, from the Kth"
    )
    parser.add_argument("--processes", type=int, default=1, help="tests, whole: processes that share them")
    parser.add_argument("--operations", action="store_true", help="launches: of single operations in place of models")
    parser.add_argument("--update", action="store_true", help="launches: write the table of costs anew")
    parser.add_argument("--isolate", action=argparse.BooleanOptionalAction, help="a process for each operation type")
    parser.add_argument(
        "--seconds", type=int, default=300, help="the most that an isolated type may take (%(default)s)"
    )
    parser.add_argument("--all", action="store_true", help="a row for every operation, not only for those of note")
    parser.add_argument("--json", metavar="FILE", help="write what ops, gradients and session find to FILE-WHAT.json")
    parser.add_argument("--verbose", action="store_true", help="names of kernels, places of waits, tracebacks")
    return parser


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    """The options, with what depends on the stand-in."""
    parser = arguments()
    options = parser.parse_intermixed_args(argv)
    options.files = [name for name in options.what if name.endswith(".py") or "::" in name]
    options.what = [name for name in options.what if name not in options.files] or list(USUAL)
    unknown = [name for name in options.what if name not in WHAT]
    if unknown or (options.files and "tests" not in options.what):
        parser.error(f"what to check is one of {', '.join(WHAT)}, not {', '.join(unknown or options.files)}")
    is_emulated = options.xp == "cupy"
    options.share = tuple(int(number) for number in options.share.split("/"))
    if options.isolate is None:
        options.isolate = is_emulated  # a wild pointer ends the process
    if options.dtypes is None:
        options.dtypes = "as_is,float32,int32,float16" if is_emulated else "all"  # g++ takes a second for each kernel
    return options


class Tally:
    """A pytest plugin that counts tests by file, and skipped ones by their reason."""

    def __init__(self) -> None:
        self.agree: collections.Counter = collections.Counter()
        self.fail: collections.Counter = collections.Counter()
        self.beyond: collections.Counter = collections.Counter()  # for want of what the stand-in does not have
        self.skipped: collections.Counter = collections.Counter()

    def pytest_runtest_logreport(self, report: Any) -> None:
        file = report.nodeid.partition("::")[0]
        if report.skipped:
            self.skipped[report.longrepr[2].removeprefix("Skipped: ")] += 1
        if report.failed:
            (self.beyond if BEYOND.search(report.longreprtext) else self.fail)[file] += 1
        elif report.when == "call" and report.passed:
            self.agree[file] += 1

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.fail[report.nodeid] += 1

    def rows(self) -> list[tuple[str, int, int, int]]:
        files = sorted(set(self.agree) | set(self.fail) | set(self.beyond))
        return [(file, self.agree[file], self.fail[file], self.beyond[file]) for file in files]


def run_tests(what: str, options: argparse.Namespace) -> tuple[int, int]:
    """The project's tests in this process. What needs minutes is left out, and Ray where no file is named."""
    import pytest

    tally = Tally()
    named = options.files if what == "tests" else []
    files = named or [f"tests/{name}" for name in FOLDERS[what]]
    chosen = [
        "-m",
        "not slow" if named else "not slow and not ray",
        *(["-k", options.only] if options.only else []),
    ]
    style = ["-q", "-p", "no:cacheprovider", "--tb", "long" if options.verbose else "line"]
    if options.processes > 1:
        os.environ["GPU_XP"] = options.xp
        style += ["-n", str(options.processes), "-p", "tests.support.gpu.gpu_plugin"]
    status = pytest.main([*style, *chosen, *files], [tally])
    if status not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        tally.fail[f"pytest itself: {status.name}"] += 1
    print()
    table(("file", "agree", "fail", "beyond the stand-in"), tally.rows())
    table(("skipped", "why"), [(count, why) for why, count in tally.skipped.most_common()])
    return tally.agree.total(), tally.fail.total()


def run(what: str, recorder: Any, options: argparse.Namespace) -> tuple[int, int]:
    """Carry out one check, with its tables. Returns how many agree and how many fail."""
    if what == "static":
        from tests.support.gpu import static_check

        return static_check.check(Path.cwd())
    if what in FOLDERS:
        return run_tests(what, options)
    if what in ("models", "launches"):
        from tests.support.gpu import models_on_gpu

        return getattr(models_on_gpu, what)(recorder, options)
    from tests.support.gpu import batteries

    report = Report(recorder)
    battery = {"ops": batteries.ops, "gradients": batteries.gradients_of_ops, "session": batteries.sessions}[what]
    try:
        battery(report, options)
    finally:  # what was found until the process is told to end counts too
        if options.json:
            report.save(f"{options.json}-{what}.json")
    return report.show(options.all)


def main() -> int:
    options = parse()
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    recorder = open_gpu(options.xp)[1] if options.what != ["static"] else None
    total_agree = total_fail = 0
    for what in options.what:
        print(f"== {what}{'' if what == 'static' else f' ({options.xp})'}", flush=True)
        begun = time.monotonic()
        agree, fail = run(what, recorder, options)
        print(f"{what}: {agree} agree, {fail} fail, {time.monotonic() - begun:.0f} s\n", flush=True)
        total_agree, total_fail = total_agree + agree, total_fail + fail
    if not total_agree and not total_fail:
        print("nothing was checked", file=sys.stderr, flush=True)
    print(f"{total_agree} agree, {total_fail} fail", flush=True)
    return 0 if total_agree and not total_fail else 1


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # samples are small: threads would only cost
    sys.exit(main())
