"""Waiting for other processes, by what can be seen of them."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import time

PATIENCE_S = 240.0
"""Ends what hangs. It measures nothing: whatever works is through long before, however busy the machine is."""


def is_alive(pid):
    """Whether a process runs; one that only waits for its parent does not."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # the latter if it ends while it is read
        return False


def noted_pid(folder, replica):
    """The process of a worker that has begun; this one has noted itself before, when it looked at the first batch."""
    pid = int((folder / f"pid{replica}").read_text())
    assert pid != os.getpid(), "the worker has not begun"
    return pid


def descendants(pid):
    """Every process that a process has started, and those that these have, as far as they live."""
    parents = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as stat:
                parents[int(name)] = int(stat.read().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {pid}


def rest_of(process):
    """Wait for the end of a process; returns what it prints until then.

    `Popen.communicate` loses lines that came with those that have been read from ``process.stdout``.
    """
    text = process.stdout.read()
    process.wait(PATIENCE_S)
    return text


def wait_for(condition, timeout_s=PATIENCE_S):
    """Poll what no event tells: the state of other processes."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def freeze(pid):
    """Stop a process until it gets SIGCONT, and wait until it stands still: its threads stop one after another."""
    os.kill(pid, signal.SIGSTOP)
    wait_for(lambda: _thread_states(pid) == {"T"})


def _thread_states(pid):
    states = set()
    for thread in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{thread}/stat") as stat:
            states.add(stat.read().rpartition(")")[2].split()[0])
    return states


def free_port():
    """A port of this machine for somebody to take later: not one of those that the system gives to whoever asks."""
    for port in random.SystemRandom().sample(range(20_000, 32_000), 100):
        with socket.socket() as found, contextlib.suppress(OSError):
            found.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")


def kill_actor(ray, cluster, device):
    """End the process of a device's actor, and wait until it is gone."""
    pid = ray.get(cluster.actor(device).ready.remote()).pid
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not is_alive(pid))


class Barrier:
    """Files by which functions that run in actors meet the test."""

    def __init__(self, folder):
        self.folder = str(folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def reach(self, name):
        open(self.path(name), "w").close()

    def withdraw(self, name):
        os.remove(self.path(name))

    def reached(self, name):
        return os.path.exists(self.path(name))

    def wait(self, name, timeout_s=PATIENCE_S):
        wait_for(lambda: self.reached(name), timeout_s)
