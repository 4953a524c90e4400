"""How much memory a block takes."""

from __future__ import annotations

import tracemalloc
from contextlib import contextmanager


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
