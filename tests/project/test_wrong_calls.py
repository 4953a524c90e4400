"""Random wrong calls, configurations and command lines: each works, or says what is wrong, within half a minute.

A failure shows the call, to be pasted behind ``python -m tests.support.wrong_calls``.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys

import pytest

from tests.support import ROOT, wrong_calls
from tests.support.script import SCRIPT

KNOWN: dict[str, str] = {}
"""Names that still fail, each with the reason."""

QUICK = {"configurations": 6, "calls": 12, "command lines": 4}
THOROUGH = {"configurations": 600, "calls": 1400, "command lines": 400}


def failures(kind, count, seed, folder):
    """The findings of so many cases, made and run in a process that has no Ray and whose home is `folder`."""
    environment = {
        **os.environ,
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "TFRAY_LOGDIR": "",
        "PYTHONPATH": str(ROOT),
    }
    (folder / "script.py").write_text(SCRIPT)
    command = [sys.executable, wrong_calls.__file__, "--random", kind, str(count), str(seed)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    report = json.loads(done.stdout.splitlines()[-1])
    assert report["cases"] == count
    return [(case, found) for case, found in report["failures"] if not any(name in case for name in KNOWN)]


@pytest.fixture
def sandbox(tmp_path):
    """A folder for what the calls write; its neighbour holds files that none of them may touch."""
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside" / "kept").write_text("kept")
    folder = tmp_path / "current"
    folder.mkdir()
    yield folder
    assert os.listdir(tmp_path / "beside") == ["kept"] and (tmp_path / "beside" / "kept").read_text() == "kept"
    assert sorted(os.listdir(tmp_path)) == ["beside", "current"]


@pytest.mark.parametrize("kind", QUICK)
def test_what_is_wrong_is_named(kind, sandbox):
    assert failures(kind, QUICK[kind], 0, sandbox) == []


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", THOROUGH)
def test_what_is_wrong_is_named_in_two_thousand_cases(kind, sandbox):
    assert failures(kind, THOROUGH[kind], 1, sandbox) == []


# -- the test's own judgement --------------------------------------------------------------------------------


JUDGED = {
    "tf.nn.relu([1.0])": "fine",
    "tf.nn.relu()": "fine",
    "tf.nn.relu(None)": "fine",
    "tf.strided_slice([1.0], [0], [1], begin_mask='a')": "fine",
    "tf.train.RunConfig(steps=-1)": "fine",
    "(lambda: tf.placeholder(tf.float32))()": "fine",
    "tf.map_fn(lambda x: x.nothing, tf.ones([2]))": "fine",
    "tf.framework.nest.no_such_name": "fine",
    "tf.framework.tensor_shape.broadcast_shapes(None, 5)": "'NoneType' object has no attribute 'rank'",
    "tf.framework.shape_functions.normalize_axis('0', 1)": "not supported between",
    "tf._sys.exit(3)": "SystemExit: 3",
    "tf._sys.modules['os'].abort()": "ended the process, with 6",
}
"""Calls, and what is found wrong with how they end."""


@pytest.fixture(scope="module")
def judgements():
    """What is found of each call; one command makes all of them, each in a process of its own."""
    command = [sys.executable, wrong_calls.__file__, *JUDGED]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ})
    assert done.returncode == 0
    return dict(line.split(" -> ", 1) for line in done.stdout.splitlines() if " -> " in line)


@pytest.mark.parametrize("call", JUDGED)
def test_a_bare_error_is_told_from_one_that_is_meant(judgements, call):
    found = judgements[call]
    assert JUDGED[call] in found and (found == "fine") == (JUDGED[call] == "fine")


def test_most_public_names_are_called():
    with contextlib.redirect_stdout(io.StringIO()):
        names = wrong_calls.public_names()
    assert len(names) > 1200
    assert {"tf.nn.relu", "tf.train.Saver", "tf.data.TFRecordDataset", "tf.keras.layers.Dense"} <= set(names)
    assert set(wrong_calls.CONFIGURATIONS) <= set(names)
