"""Processes under measurement: which belong together, their processor time, and what runs beside them."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

_SCRIPTS: Final = Path(__file__).resolve().parent.parent


def process_tree(root: int) -> list[int]:
    """A process and its descendants."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                stat = Path("/proc", entry, "stat").read_text()
            except OSError:
                continue
            parent = int(stat.rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(entry))
    tree = [root]
    for pid in tree:
        tree.extend(children.get(pid, ()))
    return tree


def descendants_time_s() -> float:
    """Seconds of processor time that the descendants of this process have taken.

    Those of its children that have ended count too, once it has waited for them.
    """
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    total = ended.ru_utime + ended.ru_stime
    for pid in process_tree(os.getpid())[1:]:
        try:
            total += time.clock_gettime(~pid << 3 | 2)  # how Linux numbers the clock of a process
        except OSError:
            continue  # it has ended
    return total


def another_thread_runs() -> bool:
    """Whether a thread of this process, other than the one that asks, runs or would if it had a core."""
    for thread in Path("/proc/self/task").iterdir():
        if int(thread.name) != threading.get_native_id():
            with suppress(OSError):  # it has ended
                if (thread / "stat").read_text().rpartition(")")[2].split()[0] == "R":
                    return True
    return False


@contextmanager
def on_one_core(held: bool = True) -> Iterator[None]:
    """Hold the processes that are started within the block on one core, before they load anything.

    It is always the last one that this process may use: the system itself prefers the first.

    Args:
        held: False does nothing.
    """
    before = os.sched_getaffinity(0)
    if held:
        os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def busy(count: int, *, one_core: bool = False) -> Iterator[list[int]]:
    """Keep the processor busy with that many processes within the block; gives their ids.

    They end with this process, however it ends.

    Args:
        count: How many.
        one_core: Whether they are held on one core, the same as that of `on_one_core`.
    """
    command = [sys.executable, "-m", "benchmarks.spinner"]
    environment = os.environ | {"PYTHONPATH": str(_SCRIPTS)}
    with ExitStack() as stack:
        with on_one_core(one_core):
            spinners = [
                subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
                for _ in range(count)
            ]
        for spinner in spinners:
            stack.callback(_end, spinner)
        for spinner in spinners:
            assert spinner.stdout
            spinner.stdout.readline()  # it spins
        yield [spinner.pid for spinner in spinners]


def _end(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin and process.stdout
    process.kill()
    process.wait()
    process.stdin.close()
    process.stdout.close()
