"""A process that watches the one that has started it, and kills it when it hangs: see `hung_runs.py`."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time

from tests.support.processes import descendants

LOOK_S = 0.5
"""How often it looks whether the process is still there."""

SHOW_THREADS = signal.SIGUSR2
"""The signal at which a watched process shows its threads."""

SHOWN_S = 2.0
"""How long it may take to show them."""


def watch():
    """Do what is told on standard input, until the parent is gone or its time is over."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then takes its time to end
    parent = os.getppid()
    ends, name, unread, is_told = None, b"", b"", True
    began = time.monotonic()
    while os.getppid() == parent:
        left = LOOK_S if ends is None else min(LOOK_S, ends - time.monotonic())
        if left <= 0:
            end(parent, name.decode(errors="replace"), time.monotonic() - began)
            return
        if not is_told:  # it has closed its end: nothing is to be waited for but the time
            time.sleep(left)
        elif select.select([0], [], [], left)[0]:
            read = os.read(0, 1 << 16)
            is_told = bool(read)
            *lines, unread = (unread + read).split(b"\n")
            if lines:
                limit, _, name = lines[-1].partition(b" ")
                ends, began = float(limit) if limit else None, time.monotonic()


def end(parent, name, took_s):
    """Let the parent show its threads, and kill it and all that it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(parent, SHOW_THREADS)
    time.sleep(SHOWN_S)
    message = f"\n\nHUNG: {name}: after {took_s:.0f} s process {parent} and all that it has started are killed\n"
    with contextlib.suppress(OSError):
        os.write(2, message.encode())
    for pid in [parent, *sorted(descendants(parent) - {os.getpid()})]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    watch()
