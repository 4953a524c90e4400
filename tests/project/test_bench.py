"""The benchmarks: that every case runs and is reported, how sides are compared, and how memory is counted."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys

import pytest
from rich.console import Console

from tests.support import ROOT

SCRIPTS = ROOT / "scripts"
sys.path.append(str(SCRIPTS))

from benchmarks.cases import cases_of  # noqa: E402 (found through the path above)
from benchmarks.measure import QUICK, Measurement, Ratio, measure  # noqa: E402
from benchmarks.memory import PeakMemory, memory_bytes, process_tree  # noqa: E402
from benchmarks.report import json_lines, show, table  # noqa: E402
from benchmarks.sides import Side, SideError  # noqa: E402

PEER = """
import sys
from tests.support import ROOT
import tfray
sys.modules[__name__] = tfray
tfray.disable_v2_behavior = lambda: None
"""
"""A package of TensorFlow's name, for what is the same whoever the peer is."""


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


# -- the command ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["executor", "mlp"])
def test_measures_every_case(tmp_path, name):
    result = bench(name, "--quick", "--json", str(tmp_path / "lines"))
    assert result.returncode == 0, result.stderr
    lines = lines_of(tmp_path / "lines")
    assert [line["case"] for line in lines] == list(cases_of(name))
    for line in lines:
        assert set(line) == {"bench", "case", "impl", "median_ms", "p90_ms", "n"}
        assert line["bench"] == name and line["impl"] == "tfray" and line["n"] >= QUICK.rounds
        assert 0 < line["median_ms"] <= line["p90_ms"]
        assert line["case"] in result.stdout


def test_compares_with_the_peer(tmp_path, peer):
    arguments = ["mlp", "--quick", "--case", "softmax", "--peer-python", sys.executable]
    result = bench(*arguments, "--json", str(tmp_path / "lines"), **peer)
    assert result.returncode == 0, result.stderr
    mine, theirs = lines_of(tmp_path / "lines")
    assert (mine["impl"], theirs["impl"]) == ("tfray", "tensorflow")
    assert f"{mine['median_ms'] / theirs['median_ms']:.2f} (" in result.stdout


@pytest.mark.parametrize(
    "case", ["conv_depthwise_3x3_gradient", "top_10_of_32000_gradient", "sparse_matmul_100k_gradient", "adam_10m"]
)
def test_measures_operations(tmp_path, case):
    result = bench("ops", "--quick", "--case", case, "--json", str(tmp_path / "lines"))
    assert result.returncode == 0, result.stderr
    assert [line["case"] for line in lines_of(tmp_path / "lines")] == [case]


def test_every_operation_is_measured_forward_and_with_the_gradient_that_it_has():
    names = list(cases_of("ops"))
    assert len(names) == len(set(names))
    forward = [name for name in names if not name.endswith("_gradient")]
    assert len(forward) >= 40 and len(names) - len(forward) >= 40


def test_measures_networks(tmp_path):
    result = bench("convnets", "--quick", "--batch", "1", "--case", "googlenet", "--json", str(tmp_path / "lines"))
    assert result.returncode == 0, result.stderr
    assert [line["case"] for line in lines_of(tmp_path / "lines")] == ["googlenet_b1"]


def test_notes_and_the_median_of_many_ratios_follow_the_table(capsys):
    measurements = [
        Measurement(f"case_{i}", side, [[float(i)]]) for i in range(1, 10) for side in ("tfray", "tensorflow")
    ]
    show("ops", measurements, {"case_1": "a view"})
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2:] == ["9 ratios: median 1.00, largest 1.00", "case_1: a view"]


@pytest.mark.ray
def test_null_steps_report_memory_and_floors(tmp_path):
    pytest.importorskip("ray")
    arguments = ["nullstep", "--quick", "--mb", "8", "--ps", "2", "--case", "dense"]
    result = bench(*arguments, "--json", str(tmp_path / "lines"))
    assert result.returncode == 0, result.stderr
    dense, copy, *round_trips = lines_of(tmp_path / "lines")
    assert dense["case"] == "dense_8mb_p2_w1" and dense["impl"] == "tfray" and dense["peak_mb"] > 50
    assert copy["case"] == "memory_copy_8mb" and copy["impl"] == "floor" and 16 < copy["peak_mb"] < dense["peak_mb"]
    assert [(line["case"], line["impl"]) for line in round_trips] == [
        ("link_round_trip", "floor"),
        ("actor_round_trip", "floor"),
    ]


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
        ("snapshot_8mb", "tfray"),
        ("write_8mb", "floor"),
        ("read_8mb", "floor"),
    ]


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
        assert len(side.run(5)) == 5


def test_sides_take_turns():
    class Log:
        def __init__(self, name):
            self.name, self.pid = name, os.getpid()

        def open(self, bench, case, options):
            log.append(("open", self.name))

        def run(self, steps):
            log.append(("run", self.name))
            return [40.0] * steps

        def close_case(self):
            log.append(("close", self.name))

    log = []
    results = measure([Log("a"), Log("b")], "mlp", "softmax", {}, QUICK, label="x")
    assert [result.median_ms for result in results] == [40.0, 40.0]
    assert [name for done, name in log if done == "open"] == ["a", "b"]
    first = log.index(("open", "b"))
    turns = [name for done, name in log[first:] if done == "run"][-2 * QUICK.rounds :]
    assert turns == ["a", "b"] * QUICK.rounds


def test_medians_are_over_all_steps_and_ratios_over_rounds():
    mine = Measurement("case", "tfray", [[1.0, 2.0, 30.0], [3.0], [2.0, 2.0]])
    theirs = Measurement("case", "tensorflow", [[4.0], [3.0], [8.0]])
    assert mine.median_ms == 2.0 and mine.p90_ms == 30.0
    ratio = Ratio.of(mine, theirs)
    assert ratio.overall == 0.5 and (ratio.low, ratio.high) == (0.25, 1.0)
    assert json.loads(next(json_lines("b", [mine]))) == {
        "bench": "b",
        "case": "case",
        "impl": "tfray",
        "median_ms": 2.0,
        "p90_ms": 30.0,
        "n": 6,
    }


def test_memory_is_compared_with_the_first_case_of_the_side():
    scalar = Measurement("scalar", "tfray", [[1.0]], peak_bytes=500_000_000)
    dense = Measurement("dense", "tfray", [[1.0]], peak_bytes=911_000_000)
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(table("nullstep", [scalar, dense]))
    assert "911 (+411)" in console.export_text()


# -- memory --------------------------------------------------------------------------------------------

HOLDER = """
import sys
block = bytearray(50_000_000)
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


def holding(*command):
    process = subprocess.Popen([sys.executable, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    process.stdout.readline()
    return process


def let_go(process):
    process.stdin.close()
    process.wait()
    process.stdout.close()


def test_memory_of_descendants_counts_until_they_end():
    before = memory_bytes(os.getpid())
    with PeakMemory(os.getpid()) as peak:
        child = holding("-c", HOLDER)
        assert child.pid in process_tree(os.getpid())
        assert memory_bytes(os.getpid()) > before + 50_000_000
        let_go(child)
        assert memory_bytes(os.getpid()) < before + 25_000_000
    assert peak.peak_bytes > before


def test_shared_memory_counts_once(tmp_path):
    script = tmp_path / "sharer.py"
    script.write_text(SHARER)
    process = holding(str(script))
    total = memory_bytes(process.pid)
    assert len(process_tree(process.pid)) == 2
    let_go(process)
    assert 50_000_000 < total < 90_000_000
