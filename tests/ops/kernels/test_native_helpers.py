"""Helpers of compiled kernels: they compute each item once, and nobody waits for one that has not begun."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from tests.support.processes import PATIENCE_S
from tfray.ops.kernels import compiling, cpu_threads
from tfray.ops.kernels.compiling import kernel_of_source
from tfray.ops.kernels.cpu_threads import core_count, work_alone

pytestmark = pytest.mark.skipif(not compiling.can_compile() or core_count() < 2, reason="one core, or no numba")

NOTE_THREADS = """
def note_threads(first: Int, last: Int, thread: Thread, work: Int, counts: Longs, threads: Longs, x: Floats) -> None:
    for item in range(first, last):
        counts[item] += 1
        threads[item] = thread
        for i in range(work):
            x[item] = x[item] * np.float32(0.5) + np.float32(1)
"""
ITEMS = 97
LONG, SHORT = 20_000, 10


@pytest.fixture(autouse=True)
def usual_helpers(monkeypatch):
    """As many helpers as there are other cores. They are never left out, however busy the machine is."""
    fresh = cpu_threads._Pause()
    monkeypatch.setattr(fresh, "note", lambda *times: None)
    monkeypatch.setattr(cpu_threads, "_pause", fresh)
    # A test with more threads than cores may have left more threads than can join in.
    monkeypatch.setattr(cpu_threads, "_pool", None)


@pytest.fixture(scope="module")
def note_threads():
    """Runs the kernel above over `ITEMS` items; which thread has computed each. Each is computed once."""
    loop = kernel_of_source("import numpy as np\n" + NOTE_THREADS, "note_threads")

    def run(work, is_large=True, counts=None):
        counts, threads = np.zeros(ITEMS, np.int64) if counts is None else counts, np.full(ITEMS, -1)
        x = np.zeros(ITEMS, np.float32)
        loop.run(ITEMS, 1, work, counts, threads, x, is_large=is_large)
        assert (counts == 1).all()
        np.testing.assert_allclose(x, 2 - 0.5 ** (work - 1), rtol=1e-6)
        return set(threads.tolist())

    return run


def test_helpers_take_part(note_threads):
    end = time.monotonic() + 60
    seen = set()
    while max(seen, default=0) == 0:
        seen |= note_threads(LONG)
        assert time.monotonic() < end
    assert seen <= set(range(core_count()))  # counted as they come


def test_small_work_is_not_shared(note_threads):
    assert note_threads(LONG, is_large=False) == {0}


def test_a_thread_that_works_alone_takes_no_helper(note_threads):
    seen = []

    def work():
        work_alone()
        seen.append(note_threads(LONG))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [{0}]


def test_no_helper_is_taken_while_calls_aside_keep_the_cores_busy(note_threads):
    goes_on, begun = threading.Event(), threading.Barrier(core_count())

    def wait():
        begun.wait(60)
        goes_on.wait(60)

    with cpu_threads.Lane() as lane:
        calls = [lane.start(wait) for _ in range(core_count() - 1)]
        begun.wait(60)
        try:
            assert note_threads(LONG) == {0}
        finally:
            goes_on.set()
        for call in calls:
            call.result()


def test_a_thread_joins_in_when_its_call_aside_is_made(note_threads):
    end = time.monotonic() + 60
    seen = set()
    while max(seen, default=0) == 0:  # the helpers that sleep are left alone: see the test before
        begun = threading.Barrier(core_count())
        with cpu_threads.Lane() as lane:
            calls = [lane.start(partial(begun.wait, 60)) for _ in range(core_count() - 1)]
            begun.wait(60)
            seen |= note_threads(LONG)
            for call in calls:
                call.result()
        assert time.monotonic() < end


def test_a_thread_joins_in_when_its_call_aside_has_shared_out_work_itself(note_threads):
    seen, end = [], time.monotonic() + 60
    for _ in range(20):
        counts = np.zeros(ITEMS, np.int64)

        def call(counts=counts):
            assert cpu_threads.is_helper()
            return note_threads(8 * LONG, counts=counts)

        with cpu_threads.Lane() as lane:
            aside = lane.start(call)
            while not counts.any():  # until the call aside is in its kernel
                assert time.monotonic() < end
            seen.append(note_threads(32 * LONG))
            aside.result()
    assert not cpu_threads.is_helper()
    assert any(len(threads) > 1 for threads in seen)


@pytest.mark.parametrize("work", [SHORT, LONG])
def test_many_callers_share_the_helpers(note_threads, work):
    failures = []

    def call():
        try:
            for _ in range(500 if work == SHORT else 50):
                note_threads(work)
        except BaseException as error:  # noqa: BLE001 (shown below)
            failures.append(error)

    callers = [threading.Thread(target=call) for _ in range(8)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not failures


FORKED = """
import os
import numpy as np
from tfray.ops.kernels.compiling import kernel_of_source

SOURCE = '''%s'''
loop = kernel_of_source("import numpy as np\\n" + SOURCE, "note_threads")

def run():
    counts, threads, x = np.zeros(97, np.int64), np.zeros(97, np.int64), np.zeros(97, np.float32)
    for _ in range(50):
        loop.run(97, 1, 1000, counts, threads, x)
    assert (counts == 50).all()

run()
child = os.fork()
run()
if child == 0:
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_has_helpers_of_its_own():
    program = FORKED % NOTE_THREADS
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], timeout=PATIENCE_S, check=True)


MORE_THREADS = """
import numpy as np
from tfray.ops.kernels import cpu_threads
from tfray.ops.kernels.compiling import kernel_of_source

SOURCE = '''%s'''
loop = kernel_of_source("import numpy as np\\n" + SOURCE, "note_threads")
cpu_threads.use_threads(16)
greatest = 0
for _ in range(100):
    counts, threads, x = np.zeros(97, np.int64), np.zeros(97, np.int64), np.zeros(97, np.float32)
    loop.run(97, 1, 50_000, counts, threads, x)
    assert (counts == 1).all()
    greatest = max(greatest, threads.max())
assert greatest < cpu_threads.MOST_THREADS, (greatest, cpu_threads.MOST_THREADS)
"""


def test_no_more_threads_take_part_than_kernels_have_memory_for():
    program = MORE_THREADS % NOTE_THREADS
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], timeout=PATIENCE_S, check=True)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="it asks Linux what threads do")
def test_helpers_take_part_again_after_gaps_of_any_length_and_sleep_at_the_end(note_threads):
    # They look for the next job before they sleep, for up to 0.4 ms: no job may be lost at the edge.
    taken = 0
    for gap_us in np.random.default_rng(0).permutation(np.linspace(0, 800, 400)):
        end = time.perf_counter() + 1e-6 * gap_us
        while time.perf_counter() < end:
            pass
        taken += len(note_threads(LONG // 10)) > 1
    assert taken > 0
    deadline = time.monotonic() + PATIENCE_S
    while any(state != "S" for state in helper_states()) and time.monotonic() < deadline:
        pass
    assert helper_states() and set(helper_states()) == {"S"}  # asleep


def helper_states():
    """What the system says that native helpers do: S for asleep, R for running."""
    helpers = [each for each in threading.enumerate() if each.name.startswith("tfray-cpu_native")]
    lines = [Path(f"/proc/self/task/{each.native_id}/stat").read_text() for each in helpers]
    return [line.rpartition(")")[2].split()[0] for line in lines]
