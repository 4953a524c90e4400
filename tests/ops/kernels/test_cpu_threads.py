"""Threads within one kernel."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from tests.support.processes import PATIENCE_S
from tfray.ops.kernels import cpu_threads
from tfray.ops.kernels.cpu_threads import BlasThreads, parallel_for, scratch, thread_count

pytestmark = pytest.mark.skipif(thread_count() < 2, reason="this process may use one core")


@pytest.fixture(autouse=True)
def pause(monkeypatch):
    """No pause to begin with, whatever this machine has been busy with."""
    fresh = cpu_threads._Pause()
    monkeypatch.setattr(cpu_threads, "_pause", fresh)
    return fresh


def test_every_index_runs_once():
    done: list[int] = []
    parallel_for(done.append, 100)
    assert sorted(done) == list(range(100))


def test_no_work():
    parallel_for(lambda index: pytest.fail("called"), 0)


def test_tiles_run_side_by_side():
    meeting = threading.Barrier(2, timeout=PATIENCE_S)
    parallel_for(lambda index: meeting.wait() and None, 2)


def test_helpers_rest_after_one_was_put_aside(pause, monkeypatch):
    """The caller does everything for a while that doubles from time to time, and then asks for help again."""
    now = 100.0
    monkeypatch.setattr(cpu_threads.time, "perf_counter", lambda: now)
    lengths = []
    for _ in range(8):
        pause.note(0.001, now, now + 0.004)
        lengths.append(pause.end - now - 0.004)
    np.testing.assert_allclose(lengths, [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.32, 0.32])

    def threads_of_a_call():
        meeting, threads = threading.Barrier(2), set()

        def work(index):
            threads.add(threading.get_ident())
            if now > pause.end:
                meeting.wait(PATIENCE_S)

        parallel_for(work, 2)
        return threads

    assert threads_of_a_call() == {threading.get_ident()}
    now = pause.end + 0.001
    assert len(threads_of_a_call()) == 2
    pause.note(0.001, now, now + 0.004)
    assert pause.end == pytest.approx(now + 0.004 + 0.01)


@pytest.mark.parametrize(("worked_s", "waited_s"), [(0.010, 0.008), (0.0001, 0.0004)])
def test_a_usual_wait_changes_nothing(pause, worked_s, waited_s):
    pause.note(worked_s, 100.0, 100.0 + waited_s)
    assert pause.end == 0


@pytest.mark.parametrize("index", [0, 1, 7])
def test_an_error_reaches_the_caller_after_all_threads_stopped(index: int):
    running = threading.Semaphore(0)

    def work(i: int) -> None:
        if i == index:
            raise ValueError(f"tile {i}")
        running.release()

    with pytest.raises(ValueError, match=f"tile {index}"):
        parallel_for(work, 8)


def test_many_callers_at_once():
    totals = np.zeros(8)

    def caller(number: int) -> None:
        sums = np.zeros(50)
        parallel_for(lambda i: sums.__setitem__(i, i), 50)
        totals[number] = sums.sum()

    threads = [threading.Thread(target=caller, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (totals == sum(range(50))).all()


def test_error_state_of_numpy_is_the_callers():
    one, zero = np.ones(3), np.zeros(3)
    meeting = threading.Barrier(2, timeout=PATIENCE_S)

    def work(index: int) -> None:
        meeting.wait()
        np.divide(one, zero)  # would warn, and warnings are errors here

    with np.errstate(all="ignore"):
        parallel_for(work, 2)


def test_blas_threads_come_back():
    blas = BlasThreads()
    before = blas.count()
    blas.hold()
    blas.hold()
    assert blas.count() == before
    blas.release()
    blas.release()
    assert blas.count() == before == thread_count()


def test_scratch_is_reused_within_a_thread_and_not_shared():
    first = scratch("test", (300, 400), np.float32)
    assert first.shape == (300, 400) and first.dtype == np.float32
    assert np.shares_memory(first, scratch("test", (20_000,), np.float64))
    assert not np.shares_memory(first, scratch("other", (300, 400), np.float32))
    elsewhere: list[np.ndarray] = []
    thread = threading.Thread(target=lambda: elsewhere.append(scratch("test", (300, 400), np.float32)))
    thread.start()
    thread.join()
    assert not np.shares_memory(first, elsewhere[0])


def test_little_scratch_is_an_array_of_its_own():
    first, second = scratch("test", (3, 4), np.float32), scratch("test", (3, 4), np.float32)
    assert first.shape == (3, 4) and first.dtype == np.float32 and not np.shares_memory(first, second)


def test_scratch_of_nothing():
    assert scratch("test", (0, 5), np.float64).shape == (0, 5)


FORKED = """
import os
from tfray.ops.kernels.cpu_threads import parallel_for, use_threads

use_threads(3)
parallel_for(lambda index: None, 4)
child = os.fork()
done = []
parallel_for(done.append, 4)
assert sorted(done) == [0, 1, 2, 3]
if child == 0:
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_starts_its_own_threads():
    subprocess.run([sys.executable, "-W", "ignore", "-c", FORKED], timeout=PATIENCE_S, check=True)


def test_a_thread_that_works_alone_takes_no_helpers():
    found = []

    def run():
        cpu_threads.work_alone()
        parallel_for(lambda index: found.append((thread_count(), threading.get_ident())), 100)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == [(1, thread.ident)] * 100
    assert thread_count() > 1
