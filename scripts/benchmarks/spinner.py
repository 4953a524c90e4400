"""A process that keeps a core busy until its standard input ends: with whoever started it, if not before."""

from __future__ import annotations

import os
import signal
import sys
import threading


def _end_with_input() -> None:
    sys.stdin.read()
    os._exit(0)  # the main thread never looks up


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt ends it by way of whoever started it
    threading.Thread(target=_end_with_input, daemon=True).start()
    print("spinning", flush=True)
    while True:
        pass


if __name__ == "__main__":
    main()
