"""Threads that help compiled kernels without the interpreter's lock.

A helper sleeps in compiled code and is woken by a semaphore, which takes some 20 us; a Python thread that has to get
the interpreter's lock first takes three times as long. The thread that shares out its work waits for no helper that has
not begun when the work is done: on a busy machine, where helpers come late, it does all of it.
"""

from __future__ import annotations

import ctypes
import signal
import struct
import threading
import time
from typing import Any, Final

from tfray.ops.kernels.cpu_threads import is_helper, note_wait, when_idle

_SLOT_BYTES: Final = 128
_SEMAPHORES: Final = (24, 56)
"""Where the two semaphores of a slot begin: `WAKE` and `DONE` of `ops.compiled.handoff`."""

_MOST: Final = 31
"""Helpers at most: the calling thread notes those that it has woken, and as many others, in one number."""

_SERVE: Final = struct.Struct("=4q2q")
_SHARE: Final = struct.Struct("=4q8q3q")
_REPORT: Final = struct.Struct("=q")
_REPORT_AT: Final = 8 * 12


class Entry:
    """A compiled kernel.

    Attributes:
        address: Where its code begins.
        call: Calls it with a block (see `compiling`).
    """

    __slots__ = ("address", "call")

    def __init__(self, address: int) -> None:
        self.address = address
        self.call = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)


class Helpers:
    """Helper threads of this process.

    Args:
        serve: The kernel that a helper runs for ever.
        join: The kernel by which another thread joins in.
        share: The kernel by which a thread shares out its work.
        count: Number of helpers.
    """

    def __init__(self, serve: Entry, join: Entry, share: Entry, count: int) -> None:
        self._share = share.call
        library: Any = ctypes.CDLL(None)
        names = "sem_wait", "sem_post", "clock_gettime"
        functions = [ctypes.cast(getattr(library, name), ctypes.c_void_p).value for name in names]
        # Never freed: helpers sleep in it until the process ends.
        library.calloc.restype = ctypes.c_void_p
        library.calloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
        count = min(count, _MOST)
        self._functions = library.calloc(1 + 2 * count, _SLOT_BYTES)
        ctypes.memmove(self._functions, struct.pack("=3Q", *functions), 24)
        self._slots = self._functions + _SLOT_BYTES
        library.sem_init.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_uint]
        slots = range(self._slots, self._slots + 2 * count * _SLOT_BYTES, _SLOT_BYTES)
        # macOS has no such semaphores: there the calling thread works alone.
        failed = any(library.sem_init(slot + place, 0, 0) for slot in slots for place in _SEMAPHORES)
        self._count = 0 if failed else count
        self._blocks = [ctypes.create_string_buffer(_SERVE.pack(0, 0, 1, 1, self._functions, slot)) for slot in slots]
        self._join = join.call
        for number, block in enumerate(self._blocks[: self._count]):
            name = f"tfray-cpu_native_{number}"
            threading.Thread(target=_help, args=(serve, block), name=name, daemon=True).start()
        when_idle(self.join)

    def join(self, number: int) -> None:
        """Called by a thread of `cpu_threads` that has nothing else to do: it joins in what others share out."""
        if number < self._count:
            block = self._blocks[self._count + number]
            ctypes.memset(block, 0, 16)  # nothing is taken, see `compiling`
            self._join(block)

    def share(self, entry: Entry, block: Any, wanted: int) -> None:
        """Call a kernel on this thread, and on up to `wanted` helpers that are idle."""
        own = ctypes.create_string_buffer(_SHARE.size)
        report = ctypes.addressof(own) + _REPORT_AT
        job = entry.address, ctypes.addressof(block)
        # A call aside must leave the slots of those that join in later to its caller: it may itself be the one to join.
        awake = 0 if is_helper() else self._count
        helpers = self._functions, self._slots, self._count, wanted, awake
        _SHARE.pack_into(own, 0, 0, 0, 1, 1, *helpers, *job, report, 0, 0, 0)
        begun = time.perf_counter()
        self._share(own)
        (waited_ns,) = _REPORT.unpack_from(own, _REPORT_AT)
        if waited_ns:
            now = time.perf_counter()
            note_wait(begun, now - 1e-9 * waited_ns, now)


def _help(serve: Entry, block: Any) -> None:
    """What a helper's thread runs."""
    # Signals are the main thread's. A helper that one wakes while the process ends might find its code gone.
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    serve.call(block)
