"""Lines for the person at the terminal."""

from __future__ import annotations

import errno
import sys


def notice(text: str) -> None:
    """Print a line on the standard error stream. Threads may still have something to say when it is closed.

    A program that puts another stream in place of ``sys.stderr`` may close it at any time: then the line goes to the
    one that the process began with, if that is still open.
    """
    for stream in (sys.stderr, sys.__stderr__):
        try:
            if stream is not None and not stream.closed:
                print(f"tfray: {text}", file=stream, flush=True)
                return
        except ValueError:
            if not stream.closed:  # type: ignore[union-attr]
                raise
        except OSError as error:  # closed by another thread while this one writes
            if error.errno != errno.EBADF:
                raise
