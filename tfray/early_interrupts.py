"""Ctrl-C before a command of tfray has begun ends it without a word: imported first, before what takes time.

Once it has begun, `tfray.cli.command` answers. Programs that import tfray keep Python's own answer.
"""

from __future__ import annotations

import os
import sys
from itertools import pairwise
from types import TracebackType


def is_command() -> bool:
    """Whether this process is ``tfray``, or ``python -m`` one of tfray's modules."""
    modules = [second for first, second in pairwise(sys.orig_argv) if first == "-m"]
    return os.path.basename(sys.argv[0]) == "tfray" or any(name.partition(".")[0] == "tfray" for name in modules[:1])


def _hook(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    if not issubclass(kind, KeyboardInterrupt):  # after which Python ends the process as SIGINT does: 130 for shells
        sys.__excepthook__(kind, error, traceback)


if is_command():
    sys.excepthook = _hook
