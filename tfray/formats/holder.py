"""What a process tells of itself: records in a file, by which others know whether it still runs, and its memory."""

from __future__ import annotations

import json
import os
import platform
import time
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, Final
from uuid import uuid4

_BOOT_FILE: Final = "/proc/sys/kernel/random/boot_id"
_ACTIVE: Final[set[str]] = set()
"""Tokens of this process that are in use. A file of this process with any other token is left over."""


@dataclass(frozen=True)
class Holder:
    """What a process writes into a file that stands for something it does, such as a save or a lock on a folder.

    Attributes:
        host: Name of its machine.
        process: Number of the process (pid).
        space: The machine, its boot and its namespace of processes, within which that number is unique.
        started: When the process began, in the machine's own count: the system uses numbers of processes again.
        token: Unique name of this use.
        since: When the use began, in seconds since 1970.
        renewals: How often the file was written anew. It tells other machines that the process lives.
        is_over: Whether the process has said that the use is over, though it runs on.
    """

    host: str
    process: int
    space: str
    started: int
    token: str
    since: float
    renewals: int = 0
    is_over: bool = False

    @classmethod
    def new(cls) -> Holder:
        """One for this process, in use until `end`."""
        token = uuid4().hex[:12]
        _ACTIVE.add(token)
        number = os.getpid()
        return cls(platform.node(), number, _space(), _started(number) or 0, token, time.time())

    def end(self) -> None:
        """Note that it is no longer in use."""
        _ACTIVE.discard(self.token)

    @property
    def is_alive(self) -> bool | None:
        """Whether its process runs, and still uses it; None when this process cannot tell."""
        if self.is_over:
            return False
        if self.space != _space():
            return None
        if self.process == os.getpid() and self.started == (_started(self.process) or 0):
            return self.token in _ACTIVE
        started = _started(self.process)
        return started is not None and (started == self.started or 0 in (started, self.started))

    def __str__(self) -> str:
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.since))
        return f"process {self.process} on {self.host}, since {since}"

    def to_bytes(self) -> bytes:
        """The contents of a file."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Holder | None:
        """What `to_bytes` gave; None for anything else."""
        try:
            plain: Any = json.loads(data)
            found = cls(**plain)
            fits = all(type(getattr(found, name)) is kind for name, kind in _KINDS.items())
            return found if fits else None
        except (ValueError, TypeError, RecursionError):
            return None


_KINDS: Final = {
    "host": str,
    "process": int,
    "space": str,
    "started": int,
    "token": str,
    "since": float,
    "renewals": int,
    "is_over": bool,
}


@lru_cache(maxsize=1)
def _space() -> str:
    try:
        with open(_BOOT_FILE) as file:
            boot = file.read().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:  # not Linux: a machine has one space
        return platform.node()


def _started(process: int) -> int | None:
    """When a process began; None if there is no such process, 0 if the system does not tell."""
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):  # no such process, or it is hidden: another user's, or not Linux
        return 0 if _exists(process) else None
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


def _exists(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # somebody else's
    return True


def process_memory(field: str) -> int:
    """A size in bytes that Linux tells of this process; where there is no such file, the largest that it ever had.

    Args:
        field: ``VmRSS``, the memory that it has, or ``VmHWM``, the most that it ever had.
    """
    try:
        with open("/proc/self/status", encoding="ascii") as file:
            told = dict(line.split(":", 1) for line in file)
        return int(told[field].split()[0]) * 1024
    except FileNotFoundError:
        import resource  # not on Windows

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
