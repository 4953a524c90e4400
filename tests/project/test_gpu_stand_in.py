"""All tests that need no Ray, with a GPU in sight: the stand-in of ``tests/support/gpu`` on a machine without one."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import ROOT

ASIDE = Path(sys.prefix, "aside")
"""Where `.ci/run` puts CuPy: the other tests are of users without it."""

ENDS_S = 5400.0
"""Tests that hang end by themselves before. It measures nothing: two busy cores take eleven minutes."""


@pytest.mark.slow
@pytest.mark.timeout(ENDS_S + 60)
@pytest.mark.skipif(
    importlib.util.find_spec("cupy") is None and not (ASIDE / "cupy").is_dir(),
    reason="needs the package of CuPy, which .ci/run installs; no GPU",
)
def test_all_tests_of_one_process_hold_with_a_gpu_in_sight():
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment |= {"PYTHONPATH": f"{ROOT}:{ASIDE}", "OMP_NUM_THREADS": "2"}
    command = [sys.executable, "-m", "tests.support.gpu.run", "whole", "--processes", "2"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=ENDS_S)
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2_000:]
    agree, fail = map(int, re.findall(r"^(\d+) agree, (\d+) fail$", done.stdout, re.MULTILINE)[-1])
    assert fail == 0 and agree > 20_000
