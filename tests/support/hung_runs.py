"""Ends a run of pytest in which something hangs, whatever it waits for, and says which test it was.

`pytest-timeout` fails a test that takes too long, by a signal. It cannot end one that holds signals off, or hangs once
more on its way out. So each process of a run is watched by another (`watcher.py`), which is told what the process is at
and how long that may take. When the time is over, the threads of the process are shown, and it is killed with all that
it has started. A worker of xdist that is killed so is a failed test of the run, which goes on with another worker.

Limits: a test may take its `timeout` (marker, option or setting) and `hung_after` seconds more, set-up and teardown
included; the end of a run, and then that of the process, `hung_after` and what xdist needs; all of it `run_timeout`.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import subprocess
import sys
import threading
import time

import pytest

from tests.support import watcher

WORKERS_END_S = 15.0
"""At the end of a run xdist waits ten seconds for workers that hang."""


class Watch:
    """The watcher of this process, and what it has been told."""

    def __init__(self, run_timeout_s):
        # Not captured: pytest suspends that while it is configured.
        stderr = os.dup(2)
        # The watcher asks for the threads by a signal, which a function in C answers without the interpreter's lock.
        # A test may hold signals off, but not on this thread.
        faulthandler.register(watcher.SHOW_THREADS, file=stderr)
        threading.Thread(target=threading.Event().wait, name="shows-threads", daemon=True).start()
        self._watcher = subprocess.Popen(
            [sys.executable, "-m", watcher.__name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
        )
        self._run_ends = time.monotonic() + run_timeout_s if run_timeout_s else None
        self.enter("the start of the run", None)

    def enter(self, name, limit_s):
        """The process is now at something that may take so many seconds, or None for as long as the run may take."""
        ends = [time.monotonic() + limit_s] if limit_s is not None else []
        if self._run_ends is not None:
            ends.append(self._run_ends)
        line = f"{min(ends, default='')} {name}".replace("\n", " ")
        with contextlib.suppress(BrokenPipeError):  # somebody has killed it
            os.write(self._watcher.stdin.fileno(), line.encode() + b"\n")


_watch = pytest.StashKey()


def pytest_addoption(parser):
    parser.addini("hung_after", "seconds past its timeout after which a test is ended with its process", default="60")
    parser.addini("run_timeout", "seconds that a whole run may take; 0 for no limit", default="0")


def pytest_configure(config):
    is_worker = hasattr(config, "workerinput")  # whose run ends with that of the process that started it
    config.stash[_watch] = Watch(0 if is_worker else float(config.getini("run_timeout")))


def _timeout_s(item):
    marker = item.get_closest_marker("timeout")
    if marker is not None:
        return float(marker.args[0] if marker.args else marker.kwargs["timeout"])
    given = [item.config.getoption("timeout", None), os.environ.get("PYTEST_TIMEOUT"), item.config.getini("timeout")]
    return float(next((value for value in given if value not in (None, "")), 0))


def _end_s(config):
    spare_s = float(config.getini("hung_after"))
    return spare_s + WORKERS_END_S if config.getoption("numprocesses", None) else spare_s


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    limit_s = _timeout_s(item)
    is_debugged = item.config.getoption("usepdb") or item.config.getoption("trace")
    spare_s = float(item.config.getini("hung_after"))
    item.config.stash[_watch].enter(item.nodeid, limit_s + spare_s if limit_s and not is_debugged else None)
    result = yield
    item.config.stash[_watch].enter(f"what comes after {item.nodeid}", None)
    return result


def pytest_enter_pdb(config):
    config.stash[_watch].enter("the debugger", None)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session):
    session.config.stash[_watch].enter("the end of the run", _end_s(session.config))


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config):
    # A worker may wait for the others as long as it takes; who has started it ends it.
    limit_s = None if hasattr(config, "workerinput") else _end_s(config)
    config.stash[_watch].enter("the end of the process, after all tests", limit_s)
