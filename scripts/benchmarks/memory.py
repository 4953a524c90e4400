"""Memory of a process and all its descendants, with what they share counted once."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from benchmarks.processes import process_tree

_PERIOD_S = 0.02


class PeakMemory:
    """The most memory that a tree of processes held at any time within the ``with`` block, in `peak_bytes`.

    Args:
        pid: Root of the tree.
    """

    def __init__(self, pid: int) -> None:
        self.peak_bytes = 0
        self._pid = pid
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, name="peak-memory", daemon=True)

    def _sample(self) -> None:
        while True:
            self.peak_bytes = max(self.peak_bytes, memory_bytes(self._pid))
            if self._stop.wait(_PERIOD_S):
                return

    def __enter__(self) -> PeakMemory:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()


def memory_bytes(root: int) -> int:
    """Memory of the tree of processes at this moment.

    Private pages, and each process's share of the pages of files (its proportional set size); and, once, every file
    of shared memory that one of them holds open, which is what Ray's object store is.
    """
    total = 0
    files: dict[tuple[int, int], int] = {}
    for pid in process_tree(root):
        try:
            total += _unshared_bytes(pid)
            files.update(_shared_files(pid))
        except OSError:
            continue  # it has ended
    return total + sum(files.values())


def _unshared_bytes(pid: int) -> int:
    """The proportional set size, less what is shared memory."""
    fields = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
        name, kilobytes, _ = line.split(maxsplit=2)
        fields[name] = int(kilobytes) * 1024
    return fields["Pss:"] - fields.get("Pss_Shmem:", 0)


def _shared_files(pid: int) -> Iterator[tuple[tuple[int, int], int]]:
    """Identity and size of the files of shared memory that a process holds open, deleted ones too."""
    for entry in os.scandir(f"/proc/{pid}/fd"):
        try:
            target = os.readlink(entry.path)
            if target.startswith(("/dev/shm/", "/memfd:")):
                stat = os.stat(entry.path)
                yield (stat.st_dev, stat.st_ino), stat.st_blocks * 512
        except OSError:
            continue  # it was closed
