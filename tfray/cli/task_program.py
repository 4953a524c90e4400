"""What a process of `tfray launch` runs: ``python -m tfray.cli.task_program LIFELINE SCRIPT [ARGUMENTS]``.

It runs the script as `tfray run-program` does, and ends when the process that started it does: LIFELINE is the
descriptor of a pipe whose other end that process holds.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from typing import Final

from tfray.programs.run_program import Program, run

GRACE_S: Final = 10.0
"""How long a program may take to end when it has been asked to."""


def watch(lifeline: int) -> None:
    """End this process, and those that it has started, when the other end of the pipe closes."""

    def wait() -> None:
        os.read(lifeline, 1)
        os.killpg(0, signal.SIGTERM)
        time.sleep(GRACE_S)
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=wait, name="tfray-lifeline", daemon=True).start()


def main() -> None:
    """Run the script."""
    _, lifeline, script, *arguments = sys.argv
    watch(int(lifeline))
    sys.exit(run(Program(script, arguments)))


if __name__ == "__main__":
    main()
