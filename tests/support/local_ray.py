"""Ray on this machine, for tests."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from tests.support import ROOT
from tests.support.processes import PATIENCE_S, descendants, free_port, is_alive, wait_for
from tfray.actors.clusters.gcs_probe import Answer, probe
from tfray.actors.clusters.ray_runtime import end_half_started

RAY_CPUS = 8
"""What the local Ray offers, whatever the machine has: the tasks share it."""

NO_MODE = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
"""The environment, without what it says of Ray."""


def patiently(start, clean_up=lambda: None):
    """What `start` returns, which starts something of Ray. It is tried again if Ray could not do it in its time.

    Ray gives a node half a minute to start, however busy the machine is. So the processes of all runs of tests on it
    start theirs one after the other.
    """
    with one_of_the_machine("start-of-ray"):
        ends = time.monotonic() + PATIENCE_S
        while True:
            try:
                return start()
            except Exception as error:  # of no kind of its own
                clean_up()
                end_half_started(error)
                if "timed out" not in str(error).lower() or time.monotonic() > ends:
                    raise


@contextlib.contextmanager
def one_of_the_machine(what):
    """Wait until no other process of this user on this machine does `what`; but no longer than others may take."""
    with Path(tempfile.gettempdir(), f"tfray-tests-{os.getuid()}-{what}").open("w") as file:
        with contextlib.suppress(AssertionError):
            wait_for(lambda: is_locked(file), PATIENCE_S / 2)
        yield


def is_locked(file):
    """Whether this process has the lock of a file now. It ends with the file, and so with the process."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def start_local_ray(ray):
    """Start Ray on this machine unless this process is connected already.

    Its processes begin in the folder of the project: they could not begin in one that ends with a test.
    """
    options = {"num_cpus": RAY_CPUS, "include_dashboard": False, "object_store_memory": 512 << 20}
    if not ray.is_initialized():
        here = os.getcwd()
        os.chdir(ROOT)
        try:
            patiently(lambda: ray.init(address="local", logging_level="warning", **options), ray.shutdown)
        finally:
            os.chdir(here)


@contextlib.contextmanager
def ray_head(environment, *options, token=None, ready=lambda address: True):
    """Start the head of a cluster. Yields its address, and ends all of its processes.

    Args:
        environment: Variables beside those of `NO_MODE`.
        *options: Further options of ``ray start``.
        token: What it is asked with whether it is there.
        ready: Whether all is there that is needed, given the address.
    """
    pytest.importorskip("ray")
    folder = tempfile.mkdtemp(prefix="ray", dir="/tmp")  # names of sockets must be short
    port = free_port()
    fixed = [f"--port={port}", f"--temp-dir={folder}", "--num-cpus=1", "--include-dashboard=false", "--block"]
    started = []
    address = f"127.0.0.1:{port}"

    def answers():
        if not started or started[-1].poll() is not None:  # Ray gives its processes 30 s, however busy the machine is
            running = subprocess.Popen(
                [ray_command(), "start", "--head", *fixed, *options],
                env=NO_MODE | environment,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            started.append(running)
        try:
            return probe(address, token) is Answer.CLUSTER
        except OSError:
            return False

    try:
        wait_for(lambda: answers() and ready(address))
        yield address
    finally:
        for running in started:
            for pid in {running.pid} | descendants(running.pid):
                if is_alive(pid):
                    os.kill(pid, signal.SIGKILL)
            running.wait(timeout=PATIENCE_S)
        shutil.rmtree(folder, ignore_errors=True)


def ray_command():
    """The command of the Ray that is installed."""
    command = shutil.which("ray", path=os.path.dirname(sys.executable))
    if command is None:
        pytest.skip("Ray's command is not there")
    return command
