"""The benchmarks: that every case runs and is reported, how sides are compared, and how memory is counted."""

from __future__ import annotations

import io
import json
import os
import platform
import re
import select
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import asdict, replace

import numpy as np
import pytest
from rich.console import Console

from tests.support import ROOT
from tests.support.processes import wait_for

SCRIPTS = ROOT / "scripts"
sys.path.append(str(SCRIPTS))

from benchmarks.cases import Case, Work, cases_of  # noqa: E402 (found through the path above)
from benchmarks.json_lines import FOLDER, Figure, Pair, committed, json_lines, pairs, read  # noqa: E402
from benchmarks.machine import Machine, cpu_of  # noqa: E402
from benchmarks.markdown import page  # noqa: E402
from benchmarks.measure import QUICK, Measurement, Ratio, measure  # noqa: E402
from benchmarks.memory import PeakMemory, memory_bytes  # noqa: E402
from benchmarks.processes import busy, descendants_time_s, process_tree  # noqa: E402
from benchmarks.report import show, table  # noqa: E402
from benchmarks.roofline import Level, Roofline  # noqa: E402
from benchmarks.setting import Setting  # noqa: E402
from benchmarks.side import _Server  # noqa: E402
from benchmarks.sides import Block, Side, SideError, Sides  # noqa: E402
from benchmarks.tfray_side import TfrayBackend  # noqa: E402

PEER = """
import sys
from tests.support import ROOT
import tfray
sys.modules[__name__] = tfray
tfray.disable_v2_behavior = lambda: None
"""
"""A package of TensorFlow's name, for what is the same whoever the peer is."""


MACHINE = Machine.here()
SETTING = Setting(MACHINE, "2026-11-20", versions={"tfray": {"tfray": "1.2"}, "tensorflow": {"tensorflow": "2.21"}})


def bench(*arguments, **environment):
    environment = os.environ | {"OMP_NUM_THREADS": "1"} | environment
    command = [sys.executable, str(SCRIPTS / "bench.py"), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def peer(tmp_path):
    """Environment in which this interpreter has something called TensorFlow."""
    package = tmp_path / "tensorflow" / "compat"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").touch()
    (package / "__init__.py").touch()
    (package / "v1.py").write_text(PEER)
    return {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(SCRIPTS.parent)])}


def text_of(what):
    """A table as it is printed."""
    console = Console(width=180, record=True, file=io.StringIO())
    console.print(what)
    return console.export_text()


def holding(*command):
    process = subprocess.Popen([sys.executable, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    process.stdout.readline()
    return process


def let_go(process):
    process.stdin.close()
    process.wait()
    process.stdout.close()


# -- the command ---------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", ["executor", "mlp"])
def test_measures_every_case(tmp_path, name):
    result = bench(name, "--quick", "--json", str(tmp_path / "lines"))
    assert result.returncode == 0, result.stderr
    lines = lines_of(tmp_path / "lines")
    assert [line["case"] for line in lines] == list(cases_of(name))
    for line in lines:
        assert line["bench"] == name and line["impl"] == "tfray" and line["n"] >= QUICK.rounds
        assert line["cpu"] == MACHINE.cpu and line["cores"] == MACHINE.cores and line["versions"]["numpy"]
        assert 0 < line["median_ms"] <= line["p90_ms"] and line["processor_ms"] > 0
        assert line["case"] in result.stdout
    assert str(MACHINE) in result.stdout


def test_compares_with_the_peer(tmp_path, peer):
    arguments = ["mlp", "--quick", "--case", "softmax", "--peer-python", sys.executable]
    result = bench(*arguments, "--json", str(tmp_path / "lines"), **peer)
    assert result.returncode == 0, result.stderr
    mine, theirs = lines_of(tmp_path / "lines")
    assert (mine["impl"], theirs["impl"]) == ("tfray", "tensorflow")
    printed = float(re.search(r"([\d.]+) \([\d.]+ to [\d.]+\)", result.stdout)[1])
    assert printed == pytest.approx(mine["median_ms"] / theirs["median_ms"], abs=0.006)  # either side is rounded


@pytest.mark.slow
def test_measures_operations(tmp_path):
    cases = ["conv_depthwise_3x3_gradient", "top_10_of_32000_gradient", "sparse_matmul_100k_gradient", "adam_10m"]
    chosen = [argument for case in cases for argument in ("--case", case)]
    result = bench("ops", "--quick", *chosen, "--json", str(tmp_path / "lines"))
    assert result.returncode == 0, result.stderr
    lines = lines_of(tmp_path / "lines")
    assert [line["case"] for line in lines] == cases and all(line["floor_ms"] > 0 for line in lines)


def test_every_operation_is_measured_forward_and_with_the_gradient_that_it_has():
    names = list(cases_of("ops"))
    assert len(names) == len(set(names))
    forward = [name for name in names if not name.endswith("_gradient")]
    assert len(forward) >= 40 and len(names) - len(forward) >= 40


@pytest.mark.slow
def test_measures_networks(tmp_path):
    result = bench("convnets", "--quick", "--batch", "1", "--case", "googlenet", "--json", str(tmp_path / "lines"))
    assert result.returncode == 0, result.stderr
    [line] = lines_of(tmp_path / "lines")
    assert line["case"] == "googlenet_b1" and line["peak_mb"] > 50 and 0 < line["floor_ms"] < 2 * line["median_ms"]


@pytest.fixture(scope="module")
def tfray_side():
    with Side("tfray", sys.executable) as side:
        yield side


SECONDS = ("table_adagrad", "language_model_full", "autoencoder")
"""Cases that take seconds even for one step."""


@pytest.mark.rows(every=3)
@pytest.mark.parametrize(
    "name, case",
    [
        *[
            pytest.param(name, case, marks=pytest.mark.slow if case in SECONDS else ())
            for name in ("input", "models", "programs")
            for case in cases_of(name)
        ],
        *[pytest.param("convnets", case, marks=pytest.mark.slow) for case in ("inception_v3", "resnet_50")],
        ("convnets", "mobilenet"),
    ],
)
def test_a_case_runs(tfray_side, name, case):
    tfray_side.open(name, case, {"batch": 1})
    try:
        block = tfray_side.run(1)
    finally:
        tfray_side.close_case()
    assert len(block.times_ms) == 1 and block.times_ms[0] > 0 and block.processor_ms > 0


QUICKEST = ("digits", "word_vectors")
"""Programs that learn in a moment. The others learn in the same way, and take seconds."""


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=() if case in QUICKEST else pytest.mark.slow) for case in cases_of("programs")],
)
def test_a_program_learns(case):
    few = 12 if case == "meta_learning" else 2  # its tasks differ from batch to batch, and so do its losses
    with cases_of("programs")[case].open(TfrayBackend(), {}) as stretch:
        losses = [stretch() for _ in range(5 * few)]
    assert np.mean(losses[-few:]) < 0.97 * np.mean(losses[:few])


@pytest.mark.parametrize("name", ["input", pytest.param("programs", marks=pytest.mark.slow)])
def test_measures_a_case_of(tmp_path, name):
    case = next(iter(cases_of(name)))
    result = bench(name, "--quick", "--case", case, "--json", str(tmp_path / "lines"))
    assert result.returncode == 0, result.stderr
    assert [(line["bench"], line["case"]) for line in lines_of(tmp_path / "lines")] == [(name, case)]


def test_notes_and_the_median_of_many_ratios_follow_the_table(capsys):
    measurements = [
        Measurement(f"case_{i}", side, [[float(i)]]) for i in range(1, 10) for side in ("tfray", "tensorflow")
    ]
    show("ops", measurements, {"case_1": "a view"}, SETTING)
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2:] == ["9 ratios: median 1.00, largest 1.00", "case_1: a view"]


@pytest.mark.slow
@pytest.mark.ray
def test_null_steps_report_memory_and_floors(tmp_path):
    pytest.importorskip("ray")
    arguments = ["nullstep", "--quick", "--mb", "8", "--ps", "2", "--case", "dense"]
    result = bench(*arguments, "--json", str(tmp_path / "lines"))
    assert result.returncode == 0, result.stderr
    dense, copy, *others = lines_of(tmp_path / "lines")
    assert dense["case"] == "dense_8mb_p2_w1" and dense["impl"] == "tfray" and dense["peak_mb"] > 50
    assert copy["case"] == "memory_copy_8mb" and copy["impl"] == "floor" and 16 < copy["peak_mb"] < dense["peak_mb"]
    assert [(line["case"], line["impl"]) for line in others] == [
        ("one_stream_8mb", "floor"),
        ("four_streams_8mb", "floor"),
        ("link_round_trip", "floor"),
        ("actor_round_trip", "floor"),
    ]


@pytest.mark.slow
def test_measures_checkpoints_beside_the_floors(tmp_path, peer):
    arguments = ["checkpoint", "--quick", "--mb", "8", "--folder", str(tmp_path), "--peer-python", sys.executable]
    result = bench(*arguments, "--json", str(tmp_path / "lines"), **peer)
    assert result.returncode == 0, result.stderr
    lines = lines_of(tmp_path / "lines")
    assert [(line["case"], line["impl"]) for line in lines] == [
        ("save_8mb", "tfray"),
        ("save_8mb", "tensorflow"),
        ("restore_8mb", "tfray"),
        ("restore_8mb", "tensorflow"),
        ("save_v2_8mb", "tfray"),
        ("restore_v2_8mb", "tfray"),
        ("snapshot_8mb", "tfray"),
        ("write_8mb", "floor"),
        ("read_8mb", "floor"),
    ]


@pytest.mark.slow
def test_measures_graphs_that_are_exchanged(tmp_path, peer):
    arguments = ["exchange", "--quick", "--nodes", "200", "--mb", "32", "--peer-python", sys.executable]
    result = bench(*arguments, "--json", str(tmp_path / "lines"), **peer)
    assert result.returncode == 0, result.stderr
    lines = lines_of(tmp_path / "lines")
    cases = ["small", "import_and_run_200", "export_200", "import_frozen_32mb", "import_file_32mb"]
    assert [(line["case"], line["impl"]) for line in lines] == [
        (case, side) for case in cases for side in ("tfray", "tensorflow")
    ]
    small, frozen = lines[0], lines[-2]
    assert frozen["peak_mb"] - small["peak_mb"] > 32


def test_says_what_is_wrong(tmp_path):
    unknown = bench("mlp", "--case", "transformer")
    assert unknown.returncode == 2 and "it has softmax, mlp_256_256, convnet" in unknown.stderr
    missing = bench("executor", "--quick", "--peer-python", str(tmp_path / "python"))
    assert missing.returncode == 1 and f"cannot run {tmp_path / 'python'}" in missing.stderr


def test_a_peer_without_tensorflow(tmp_path):
    (tmp_path / "tensorflow.py").write_text("raise ImportError('no TensorFlow here')")
    result = bench("executor", "--quick", "--peer-python", sys.executable, PYTHONPATH=str(tmp_path))
    assert result.returncode == 1 and "tensorflow ended" in result.stderr and "no TensorFlow here" in result.stderr


# -- sides and statistics ------------------------------------------------------------------------------


def test_a_side_goes_on_after_a_case_that_fails():
    with Side("tfray", sys.executable) as side:
        with pytest.raises(SideError, match="KeyError: 'ps'"):
            side.open("nullstep", "scalar", {})
        side.open("executor", "trivial_fetch", {})
        assert len(side.run(5).times_ms) == 5


def spin(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_what_a_case_does_ahead_neither_counts_nor_disturbs_the_other_side(monkeypatch):
    calls = []

    @contextmanager
    def opened(backend, options):
        def step():
            calls.append(threading.Thread(target=spin, args=(0.05,)))
            calls[-1].start()

        yield step

    monkeypatch.setattr("benchmarks.side.cases_of", lambda bench: {"case": Case(opened, works_ahead=True)})
    server = _Server(TfrayBackend())
    server.open({"bench": "b", "case": "case", "options": {}})
    assert len(server.run({"steps": 2})["times_ms"]) == 2
    server.rest({})
    assert len(calls) == 3 and not any(thread.is_alive() for thread in calls)


def test_sides_take_turns():
    class Log:
        def __init__(self, name):
            self.name, self.pid = name, os.getpid()

        def open(self, bench, case, options):
            log.append(("open", self.name))

        def run(self, steps):
            log.append(("run", self.name))
            return Block([40.0] * steps, 60.0)

        def rest(self):
            log.append(("rest", self.name))

        def close_case(self):
            log.append(("close", self.name))

    log = []
    results = measure([Log("a"), Log("b")], "mlp", "softmax", {}, QUICK, label="x")
    assert [(result.median_ms, result.processor_ms) for result in results] == [(40.0, 60.0)] * 2
    assert [name for done, name in log if done == "open"] == ["a", "b"]
    first = log.index(("open", "b"))
    turns = [each for each in log[first:] if each[0] in ("run", "rest")][-4 * QUICK.rounds :]
    assert turns == [("run", "a"), ("rest", "a"), ("run", "b"), ("rest", "b")] * QUICK.rounds


def test_medians_are_over_all_steps_and_ratios_over_rounds():
    mine = Measurement("case", "tfray", [[1.0, 2.0, 30.0], [3.0], [2.0, 2.0]], rounds_processor_ms=[3.0, 1.0, 9.0])
    theirs = Measurement("case", "tensorflow", [[4.0], [3.0], [8.0]])
    assert mine.median_ms == 2.0 and mine.p90_ms == 30.0
    ratio = Ratio.of(mine, theirs)
    assert ratio.overall == 0.5 and (ratio.low, ratio.high) == (0.25, 1.0)
    assert json.loads(next(json_lines("b", [mine], SETTING))) == {
        "bench": "b",
        "case": "case",
        "impl": "tfray",
        "median_ms": 2.0,
        "p90_ms": 30.0,
        "n": 6,
        "processor_ms": 3.0,
        "date": "2026-11-20",
        "cpu": MACHINE.cpu,
        "cores": MACHINE.cores,
        "versions": {"tfray": "1.2"},
    }


def test_memory_is_compared_with_the_first_case_of_the_side():
    scalar = Measurement("scalar", "tfray", [[1.0]], peak_bytes=500_000_000)
    dense = Measurement("dense", "tfray", [[1.0]], peak_bytes=911_000_000)
    assert "911 (+411)" in text_of(table("nullstep", [scalar, dense]))


def test_memory_is_compared_with_tensorflow():
    mine = Measurement("alexnet", "tfray", [[1.0]], peak_bytes=750_000_000)
    theirs = Measurement("alexnet", "tensorflow", [[1.0]], peak_bytes=1_000_000_000)
    text = text_of(table("convnets", [mine, theirs]))
    assert "memory ratio" in text and "0.75" in text


# -- processor time, one core, busy cores --------------------------------------------------------------
# -- processor time, one core, busy cores --------------------------------------------------------------

SPUN = """
import sys, time
while time.process_time() < 0.3:
    pass
print(flush=True)
sys.stdin.read()
"""
BUSY = """
import select, signal, sys
from benchmarks.processes import busy
signal.signal(signal.SIGINT, signal.default_int_handler)  # what a shell runs in the background ignores interrupts
with busy(2) as spinners:
    print(*spinners, flush=True)
    while not select.select([sys.stdin], [], [], 0.1)[0]:
        pass  # a signal that comes just before a wait without a limit is seen only after it
"""


def ends(pid, within_s=20.0):
    """Whether a process that was there ends within that time."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([process], [], [], within_s)[0])
    finally:
        os.close(process)


def test_processor_time_of_descendants_counts_while_they_run_and_when_they_have_ended():
    before = descendants_time_s()
    child = holding("-c", SPUN)
    assert descendants_time_s() > before + 0.3
    let_go(child)
    assert descendants_time_s() > before + 0.3


def test_a_side_is_started_once_and_anew_after_all_have_ended():
    with Sides(None, one_core=False) as sides:
        first = sides.started("floor")
        assert sides.started("floor") is first
        sides.end()
        assert ends(first.pid)
        again = sides.started("floor")
        assert again is not first
        assert set(sides.versions) == {"floor"} and sides.versions["floor"]["numpy"] == np.__version__
    assert ends(again.pid)


def test_killing_the_command_ends_all_that_it_started():
    command = [sys.executable, str(SCRIPTS / "bench.py"), "executor", "--busy", "2"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while len(started := process_tree(process.pid)) < 4:  # itself, two that spin, and tfray's side
        assert time.monotonic() < deadline and process.poll() is None
    process.kill()
    let_go(process)
    assert all(ends(pid) for pid in started)


def test_a_side_on_one_core_stays_there_and_this_process_does_not():
    before = os.sched_getaffinity(0)
    with Side("floor", sys.executable, one_core=True) as side:
        assert os.sched_getaffinity(side.pid) == {max(before)}
    assert os.sched_getaffinity(0) == before


def test_measures_on_one_busy_core(tmp_path):
    arguments = ["executor", "--quick", "--case", "trivial_fetch", "--one-core", "--busy", "1"]
    result = bench(*arguments, "--json", str(tmp_path / "lines"))
    assert result.returncode == 0, result.stderr
    [line] = lines_of(tmp_path / "lines")
    assert line["one_core"] is True and line["busy"] == 1
    assert "executor, on one core, beside 1 busy process:" in result.stdout


def test_busy_processes_spin_until_the_block_ends():
    with busy(2) as spinners:
        assert set(spinners) <= set(process_tree(os.getpid()))
        before = descendants_time_s()
        while descendants_time_s() < before + 0.1:
            os.sched_yield()
    assert all(ends(pid) for pid in spinners)


@pytest.mark.parametrize("signal_", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_busy_processes_end_with_whoever_started_them(signal_):
    environment = os.environ | {"PYTHONPATH": str(SCRIPTS)}
    command = [sys.executable, "-c", BUSY]
    # A session of its own: an interrupt from the keyboard goes to all of them.
    process = subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    spinners = [int(pid) for pid in process.stdout.readline().split()]
    assert len(spinners) == 2
    if signal_ == signal.SIGINT:
        os.killpg(process.pid, signal_)
    else:
        process.send_signal(signal_)
    assert all(ends(pid) for pid in spinners)
    let_go(process)


# -- the machine and its floors ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "cpuinfo, cpu, bits",
    [
        (
            "vendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC\n"
            "flags\t\t: fpu sse2 avx2 avx512f\n\nprocessor\t: 1\nmodel name\t: another\n",
            "AMD EPYC (family 25, model 17)",
            512,
        ),
        (
            "cpu family\t: 6\nmodel\t\t: 79\nmodel name\t: Intel Xeon\nflags\t\t: sse2 avx avx2\n",
            "Intel Xeon (family 6, model 79)",
            256,
        ),
        (
            "Features\t: fp asimd\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n",
            f"{platform.machine()} (implementer 0x41, part 0xd0c)",
            128,
        ),
        ("", platform.processor() or platform.machine(), 0),
    ],
)
def test_names_the_processor(cpuinfo, cpu, bits):
    assert cpu_of(cpuinfo) == (cpu, bits)


LIMITS = Roofline(100e9, (Level("l2", 1e6, 60e9, 100e9), Level("memory", float("inf"), 30e9, 20e9)))


@pytest.mark.parametrize(
    "work, floor_ms",
    [
        (Work(bytes=1e6), 0.01),  # from the cache, at the rate of copying
        (Work(bytes=30e6), 1.0),  # from memory, at the rate of reading
        (Work(bytes=30e6, flops=50e6), 1.0),  # arithmetic goes on meanwhile
        (Work(bytes=30e6, flops=200e6), 2.0),
    ],
)
def test_floors_are_the_slower_of_moving_and_computing(work, floor_ms):
    assert LIMITS.floor_ms(work) == pytest.approx(floor_ms)


def test_tables_show_times_over_floors():
    one = Measurement("case", "tfray", [[3.0]], rounds_processor_ms=[2.0], work=Work(bytes=30e6))
    setting = replace(SETTING, roofline=LIMITS)
    text = text_of(table("ops", [one], setting))
    assert "time / floor" in text and "│          3.0 │" in text
    assert json.loads(next(json_lines("ops", [one], setting)))["floor_ms"] == 1.0


@pytest.mark.slow
def test_measures_the_roofline():
    result = bench("roofline", "--quick")
    assert result.returncode == 0, result.stderr
    rows = {line.split("│")[1].strip(): line.split("│")[2:4] for line in result.stdout.splitlines() if "│" in line}
    assert {"products of float32 matrices, GFLOP/s", "memory read, GB/s", "memory copied, GB/s"} <= set(rows)
    assert all(float(cell) > 0 for cells in rows.values() for cell in cells)
    assert str(MACHINE) in result.stdout


@pytest.mark.parametrize(
    "case, moved, flops",
    [
        ("add_broadcast", 4 * (2 * 8192 * 1024 + 1024), 0),
        ("matmul_1024", 4 * 3 * 1024**2, 2 * 1024**3),
        ("matmul_1024_gradient", 4 * 6 * 1024**2, 3 * 2 * 1024**3),
        ("conv_1x1_192", 4 * (16 * 28 * 28 * (192 + 64) + 192 * 64), 2 * 16 * 28 * 28 * 192 * 64),
        ("adam_10m", 4 * 7 * 10_000_000, 0),
        ("one_hot", 4 * (4096 + 4096 * 1000), 0),
    ],
)
def test_operations_count_their_work(tfray_side, case, moved, flops):
    assert tfray_side.open("ops", case, {}) == Work(moved, flops)
    tfray_side.close_case()


# -- committed figures, and the page made from them ----------------------------------------------------

LINE = Figure("ops", "case", "tfray", 1.0, 1.2, 30, 2.0, "2026-11-20", MACHINE.cpu, MACHINE.cores, {"tfray": "1.2"})


def both(case, ratio, processor_ratio=0.5, **changes):
    """Lines of both sides of a case."""
    theirs = replace(LINE, impl="tensorflow", versions={"tensorflow": "2.21"}, case=case, **changes)
    mine = replace(theirs, impl="tfray", versions={"tfray": "1.2"}, median_ms=ratio, processor_ms=2 * processor_ratio)
    return [mine, theirs]


def written(folder, *figures):
    folder.mkdir(exist_ok=True)
    lines = [json.dumps({name: value for name, value in asdict(one).items() if value is not None}) for one in figures]
    (folder / "ops.jsonl").write_text("\n".join(lines))
    return folder


def test_lines_that_are_written_are_read(tmp_path):
    one = Measurement("case", "tfray", [[3.0]], 5_000_000, [2.0], Work(bytes=30e6))
    setting = replace(SETTING, roofline=LIMITS, one_core=True, busy=2)
    (tmp_path / "lines").write_text("\n".join(json_lines("ops", [one], setting)))
    assert read([tmp_path / "lines"]) == [Figure.of("ops", one, setting)]
    (tmp_path / "lines").write_text('{"bench": "ops"}')
    with pytest.raises(ValueError, match=r"lines:1: not a line that bench.py --json writes: .*'case'"):
        read([tmp_path / "lines"])


def test_committed_lines_can_be_read():
    figures = read(sorted(FOLDER.glob("*.jsonl")))
    assert len(pairs(figures)) * 2 <= len(figures)


def test_what_was_measured_last_counts_and_never_sides_of_different_runs():
    old, new = both("case", 3.0), both("case", 0.7, date="2026-11-21")
    alone = replace(LINE, median_ms=9.0, date="2026-11-22")
    for lines in ([*old, *new, alone], [alone, *new, *old]):
        [pair] = pairs(lines)
        assert pair == Pair(*new) and pair.wall == 0.7


def test_tables_show_committed_ratios_and_warn_when_they_are_of_another_processor(tmp_path, capsys):
    folder = written(
        tmp_path / "figures", *both("a", 0.77), *both("b", 0.88, busy=2), *both("c", 0.99, cpu="Another processor")
    )
    one = [Measurement("a", "tfray", [[3.0]])]
    known = committed("ops", SETTING, folder)
    assert set(known) == {"a", "c"} and "0.77, 0.50" in text_of(table("ops", one, SETTING, known))
    show("ops", one, {}, SETTING, known)
    assert capsys.readouterr().err == ""
    show("ops", [*one, Measurement("c", "tfray", [[3.0]])], {}, SETTING, known)
    warning = capsys.readouterr().err
    assert "committed figures are from another processor (Another processor, " in warning
    assert committed("ops", replace(SETTING, busy=2), folder).keys() == {"b"}


def test_the_page_says_first_what_is_above_one():
    lines = [
        *both("good", 0.5),
        *both("even", 1.004),
        *both("bad", 1.5, processor_ratio=1.25),
        *both("worst", 0.4, processor_ratio=3.0),
        *both("step", 0.6, bench="mlp"),
        *both("bad", 1.2, busy=2),
    ]
    above, table_, source = page(lines).split("\n\n")
    assert above.split("\n") == [
        "Above 1.0, behind TensorFlow: ops worst: processor time 3.00; ops bad: time 1.50, processor time 1.25; "
        "ops bad, beside 2",
        "busy processes: time 1.20.",
    ]
    assert table_.splitlines() == [
        "| tfray / TensorFlow | time | processor time | memory |",
        "| --- | --- | --- | --- |",
        "| ops: 4 cases | median 0.75, largest 1.50 | median 0.88, largest 3.00 |  |",
        "| mlp: step | 0.60 | 0.50 |  |",
        "| ops, beside 2 busy processes: bad | 1.20 | 0.50 |  |",
    ]
    assert " ".join(source.split()) == (
        f"Measured on {MACHINE.cpu}, {MACHINE.cores} cores, 2026-11-20; tensorflow 2.21, tfray 1.2."
    )
    assert "| ops bad, beside 2 busy processes | 1.20 | 0.50 |  |" in page(lines, every_case=True)


def test_the_page_has_memory_and_every_machine():
    mine, theirs = both("case", 0.5)
    elsewhere = both("other", 0.5, cpu="Another processor", date="2026-12-01")
    text = page([replace(mine, peak_mb=300.0), replace(theirs, peak_mb=400.0), *elsewhere])
    assert text.startswith("No case is above 1.0.\n") and "| 0.50, 0.50 | 0.50, 0.50 | 0.75 |" in text
    assert "2026-11-20; " in text and f"Measured on Another processor, {MACHINE.cores} cores, 2026-12-01; " in text


def test_the_command_prints_the_page(tmp_path):
    folder = written(tmp_path / "figures", *both("case", 0.5))
    result = bench("report", str(folder / "ops.jsonl"))
    assert result.returncode == 0 and result.stdout == page(both("case", 0.5))
    written(folder, LINE)
    alone = bench("report", str(folder / "ops.jsonl"))
    assert alone.returncode == 1 and "no case was measured with both" in alone.stderr


# -- memory --------------------------------------------------------------------------------------------

HOLDER = """
import sys
block = bytearray(50_000_000)
print(flush=True)
sys.stdin.read()
"""
PARENT = """
import subprocess, sys
print(flush=True)
sys.stdin.readline()
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
sys.stdin.readline()
child.communicate()
print(flush=True)
sys.stdin.read()
"""
SHARER = """
import mmap, os, subprocess, sys
fd = os.memfd_create("shared") if len(sys.argv) == 1 else int(sys.argv[1])
os.ftruncate(fd, 50_000_000)
memory = mmap.mmap(fd, 50_000_000)
memory.write(bytes(50_000_000))
if len(sys.argv) == 1:
    subprocess.run([sys.executable, __file__, str(fd)], pass_fds=[fd])
else:
    print(flush=True)
    sys.stdin.read()
"""


def test_memory_of_descendants_counts_until_they_end():
    parent = holding("-c", PARENT, HOLDER)  # small: what it shares with other programs may come and go

    def told():
        parent.stdin.write(b"\n")
        parent.stdin.flush()
        return parent.stdout.readline()

    before = memory_bytes(parent.pid)
    with PeakMemory(parent.pid) as peak:
        assert int(told()) in process_tree(parent.pid)
        assert memory_bytes(parent.pid) > before + 50_000_000
        wait_for(lambda: peak.peak_bytes > before + 50_000_000)
        told()
        assert memory_bytes(parent.pid) < before + 25_000_000
    let_go(parent)


def test_shared_memory_counts_once(tmp_path):
    script = tmp_path / "sharer.py"
    script.write_text(SHARER)
    process = holding(str(script))
    total = memory_bytes(process.pid)
    assert len(process_tree(process.pid)) == 2
    let_go(process)
    assert 50_000_000 < total < 90_000_000
