"""How much memory a block takes."""

from __future__ import annotations

import gc
import re
import tracemalloc
from contextlib import contextmanager
from pathlib import Path

import pytest

_STATUS = Path("/proc/self/status")
_RESET_PEAK = "5"


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
        Path("/proc/self/clear_refs").write_text(_RESET_PEAK)
    except OSError:
        pytest.skip("this system does not say how much memory a process has needed since a moment")
    before = _kilobytes("VmRSS")
    yield
    assert _kilobytes("VmHWM") - before < megabytes * 1024


def _kilobytes(name):
    return int(re.search(rf"{name}:\s+(\d+) kB", _STATUS.read_text())[1])
