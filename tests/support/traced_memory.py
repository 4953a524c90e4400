"""How much memory a block takes."""

from __future__ import annotations

import gc
import tracemalloc
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def at_most(megabytes):
    """A block that takes no more memory at a time, as Python and NumPy count it."""
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < megabytes << 20


@contextmanager
def resident_at_most(megabytes):
    """A block that needs no more memory of the machine at a time beyond what this process has when it begins.

    protobuf's memory counts, which Python does not see.
    """
    gc.collect()
    try:
        peak = ResidentPeak()
    except OSError:
        pytest.skip("this system does not say how much memory a process has needed since a moment")
    yield
    assert peak.bytes() < megabytes * (1 << 20)


class ResidentPeak:
    """How much more memory than now the process has at any time from here on, as Linux counts it."""

    def __init__(self):
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
        self._before = status_bytes("VmRSS")

    def bytes(self):
        """The most so far."""
        return max(0, status_bytes("VmHWM") - self._before)


def status_bytes(name):
    """What Linux says of this process's memory under a name, in bytes."""
    text = Path("/proc/self/status").read_text()
    return int(text[text.index(f"{name}:") + len(name) + 1 :].split(maxsplit=1)[0]) << 10
