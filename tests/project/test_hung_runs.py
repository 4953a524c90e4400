"""Runs of pytest in which something hangs: they end in time, fail, and say which test it was."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
import time

import pytest

from tests.support import ROOT
from tests.support.processes import is_alive, wait_for

ENDS_S = 200.0
"""A run that hangs for ever would take longer, however busy the machine is."""

PLUGINS = ["-p", "pytest_timeout", "-p", "xdist.plugin", "-p", "tests.support.hung_runs", "-p", "no:cacheprovider"]
"""What the runs need; whatever else is installed would take most of their time."""

HEADING = """
import atexit, ctypes, signal, subprocess, sys, threading
import pytest

def hang_in_c():
    # It holds the lock of the interpreter meanwhile, and signals do not end it.
    mutex = ctypes.create_string_buffer(64)
    for _ in range(2):
        ctypes.PyDLL(None).pthread_mutex_lock(mutex)

"""

IN_A_LOCK = """
    def test_it():
        for _ in range(2):  # the first wait is ended by pytest-timeout
            try:
                threading.Event().wait()
            except BaseException:
                pass
"""

WITHOUT_SIGNALS = """
    def test_it():
        signal.pthread_sigmask(signal.SIG_BLOCK, range(1, signal.NSIG))
        threading.Event().wait()
"""

IN_C = """
    def test_it():
        hang_in_c()
"""

IN_SET_UP = """
    @pytest.fixture
    def fixture():
        hang_in_c()

    def test_it(fixture):
        pass
"""

IN_TEARDOWN = """
    @pytest.fixture
    def fixture():
        yield
        hang_in_c()

    def test_it(fixture):
        pass
"""

AFTER_A_FAILURE = """
    @pytest.fixture
    def fixture():
        yield
        hang_in_c()

    def test_it(fixture):
        assert False
"""

AT_EXIT = """
    def test_it():
        atexit.register(threading.Event().wait)
"""

IN_A_THREAD = """
    def test_it():
        threading.Thread(target=threading.Event().wait).start()
"""

WHEN_COLLECTED = """
    hang_in_c()
"""


def run(folder, tests, *arguments, timeout=1, hung_after=2, run_timeout=0):
    """What a run of a file with these tests prints, and its exit code. It must end by itself."""
    (folder / "test_hangs.py").write_text(HEADING + textwrap.dedent(tests))
    limits = f"timeout = {timeout}\nhung_after = {hung_after}\nrun_timeout = {run_timeout}\n"
    (folder / "pytest.ini").write_text(f"[pytest]\n{limits}")
    with open(folder / "output", "w+") as output:  # not a pipe, which what is left behind would hold open
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *PLUGINS, *arguments],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
        try:
            process.wait(ENDS_S)
        finally:
            process.kill()
        output.seek(0)
        return output.read(), process.returncode


@pytest.mark.rows(every=2)
@pytest.mark.parametrize(
    ("tests", "says"),
    [
        pytest.param(IN_A_LOCK, "HUNG: test_hangs.py::test_it", id="in a lock"),
        pytest.param(WITHOUT_SIGNALS, "HUNG: test_hangs.py::test_it", id="without signals", marks=pytest.mark.slow),
        pytest.param(IN_C, "HUNG: test_hangs.py::test_it", id="in C", marks=pytest.mark.slow),
        pytest.param(IN_SET_UP, "HUNG: test_hangs.py::test_it", id="in set-up", marks=pytest.mark.slow),
        pytest.param(IN_TEARDOWN, "HUNG: test_hangs.py::test_it", id="in teardown", marks=pytest.mark.slow),
        pytest.param(
            AFTER_A_FAILURE, "HUNG: test_hangs.py::test_it", id="in teardown after a failure", marks=pytest.mark.slow
        ),
        pytest.param(AT_EXIT, "HUNG: the end of the process", id="at exit"),
        pytest.param(IN_A_THREAD, "HUNG: the end of the process", id="in a thread", marks=pytest.mark.slow),
    ],
)
def test_a_run_that_hangs_is_ended(tmp_path, tests, says):
    for limit in (1, 10, 30):  # on a busy machine a run may not come as far in time
        output, code = run(tmp_path, tests, timeout=limit, hung_after=2 * limit)
        if says in output:
            break
    assert code != 0
    assert says in output
    assert "most recent call first" in output  # its threads


def test_a_test_in_a_lock_fails_and_the_run_goes_on(tmp_path):
    tests = "def test_it():\n    threading.Event().wait()\n\ndef test_other():\n    pass\n"
    for limit in (1, 10):  # on a busy machine the other test may not end in time either
        output, code = run(tmp_path, tests, "-rA", timeout=limit, hung_after=ENDS_S)
        if "PASSED" in output:
            break
    assert code == 1
    assert "FAILED test_hangs.py::test_it" in output
    assert "PASSED test_hangs.py::test_other" in output
    assert "HUNG" not in output


def test_the_timeout_of_a_test_is_its_marker(tmp_path):
    tests = f"@pytest.mark.timeout(1)\n{textwrap.dedent(IN_C).lstrip()}"
    began = time.monotonic()
    output, code = run(tmp_path, tests, timeout=10 * ENDS_S, hung_after=1)
    assert code != 0
    assert "HUNG: test_hangs.py::test_it" in output
    assert time.monotonic() - began < ENDS_S


@pytest.mark.parametrize(
    "tests",
    [pytest.param(WHEN_COLLECTED, id="when collected", marks=pytest.mark.slow), pytest.param(IN_C, id="in a test")],
)
def test_a_run_has_a_limit_too(tmp_path, tests):
    for limit in (3, 50):  # on a busy machine a run may not have begun in time
        output, code = run(tmp_path, tests, timeout=0, run_timeout=limit)
        if tests is WHEN_COLLECTED or "the start of the run" not in output:
            break
    assert code != 0
    assert "HUNG: " in output
    assert ("test_hangs.py::test_it" in output) == (tests is IN_C)


def test_what_a_run_has_started_is_ended_with_it(tmp_path):
    tests = """
    def test_it():
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        open("child", "w").write(str(child.pid))
        hang_in_c()
    """
    _, code = run(tmp_path, tests, timeout=8)  # a process takes seconds to start on a busy machine
    assert code != 0
    child = int((tmp_path / "child").read_text())
    wait_for(lambda: not is_alive(child))


@pytest.mark.parametrize(
    "tests",
    [
        pytest.param(IN_C, id="in C"),
        pytest.param(IN_TEARDOWN, id="in teardown", marks=pytest.mark.slow),
        pytest.param(WITHOUT_SIGNALS, id="without signals", marks=pytest.mark.slow),
    ],
)
def test_a_worker_that_hangs_is_a_failed_test(tmp_path, tests):
    others = "".join(f"\ndef test_other{i}():\n    pass\n" for i in range(4))
    for limit in (1, 10, 30):  # on a busy machine the run may not end in time after the worker has been killed
        output, code = run(tmp_path, textwrap.dedent(tests) + others, "-n", "2", timeout=limit, hung_after=2 * limit)
        if code == 1:
            break
    assert code == 1
    assert "HUNG: test_hangs.py::test_it" in output
    assert "FAILED test_hangs.py::test_it" in output
    assert re.search(r"1 failed, [45] passed", output)


@pytest.mark.slow
@pytest.mark.parametrize(
    "tests",
    [pytest.param(AT_EXIT, id="at exit"), pytest.param(IN_A_THREAD, id="in a thread")],
)
def test_a_worker_that_hangs_at_its_end_does_not_hold_up_the_run(tmp_path, tests):
    for limit in (1, 10, 30):  # on a busy machine the run may not end in time either
        output, _ = run(tmp_path, tests, "-n", "2", timeout=limit, hung_after=2 * limit)
        if "1 passed" in output:
            break
    assert "1 passed" in output
