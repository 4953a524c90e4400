"""Graphs that TensorFlow itself runs, in another process."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests.support import ROOT
from tests.support.graphs.control_flow_graphs import GoldenGraph, write_golden_graphs
from tests.support.peer import PEER


def differences(graphs: list[GoldenGraph], folder: Path) -> dict[str, list[str]]:
    """What differs when TensorFlow runs these graphs."""
    path = folder / "graphs.npz.xz"
    write_golden_graphs(path, graphs)
    command = [PEER, "-m", "tests.support.graphs.control_flow_graphs", str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])
