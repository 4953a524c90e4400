"""Making many objects that all stay: graphs and plans of tens of thousands of operations."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_lock: Final = threading.Lock()
_running = 0
_was_enabled = False


@contextmanager
def making_much() -> Iterator[None]:
    """Under it, Python does not look for garbage in cycles.

    A graph is one large cycle that stays. Each search for garbage looks at all of it, and finds nothing: half the time
    that a large graph takes. What no cycle holds is freed as ever. Where several threads are within, the last one to
    leave lets Python search again; a process that searches for no garbage stays so.
    """
    global _running, _was_enabled
    with _lock:
        if not _running:
            _was_enabled = gc.isenabled()
            gc.disable()
        _running += 1
    try:
        yield
    finally:
        with _lock:
            _running -= 1
            if not _running and _was_enabled:
                gc.enable()
