"""Memory of the host: what happens to freed memory, and whether an array is held by anyone else."""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache
from typing import Any, Final

import numpy as np

# Numbers of glibc's parameters, from its malloc.h.
_M_TRIM_THRESHOLD: Final = -1
_M_TOP_PAD: Final = -2
_M_MMAP_THRESHOLD: Final = -3

KEPT_BYTES: Final = 1 << 29
"""512 MiB: the freed memory that stays with the process at most. With less, steps that free more fault its pages in
again; with more, other processes have less."""

_LARGEST_FROM_HEAP: Final = 1 << 25
"""32 MiB, the most that glibc allows. Larger blocks come from the system each time."""


@cache
def keep_freed_memory() -> None:
    """Let glibc keep what a step frees, so that the next step finds its pages warm.

    By default glibc gives large blocks back at once. A loop whose turns keep 50 MB for the backward pass then spends a
    fifth of the step on page faults. Does nothing without glibc, or where the environment sets these numbers.
    """
    if sys.platform != "linux" or any(name.startswith("MALLOC_") for name in os.environ):
        return
    if "glibc.malloc" in os.environ.get("GLIBC_TUNABLES", ""):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _LARGEST_FROM_HEAP)
        mallopt(_M_TRIM_THRESHOLD, KEPT_BYTES)
        mallopt(_M_TOP_PAD, _LARGEST_FROM_HEAP)


def own(array: Any) -> Any:
    """The array of a local variable, or a copy if anyone besides that variable holds the array or its memory.

    A view holds the array that it shows, so that who counts references to an array finds its views too.
    """
    is_sole = type(array) is np.ndarray and array.flags.owndata and sys.getrefcount(array) == _SOLE_REFERENCES
    return array if is_sole else array.copy()


def _count_within(array: Any) -> int:
    return sys.getrefcount(array)


def _sole_references() -> int:
    """The references that `own` counts for an array that only the caller's local variable holds."""
    array = np.empty(0)
    return (_count_within(array),)[0]


_SOLE_REFERENCES: Final = _sole_references()
