"""How much memory of the machine a block takes, protobuf's included, which Python does not count."""

from __future__ import annotations

import gc
import re
from contextlib import contextmanager
from pathlib import Path

import pytest

_STATUS = Path("/proc/self/status")
_RESET_PEAK = "5"


@contextmanager
def resident_at_most(megabytes):
    """A block that needs no more memory at a time beyond what this process has when it begins."""
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
