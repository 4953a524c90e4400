"""Threads within one CPU kernel: tiles of its work, run side by side, one BLAS thread each.

NumPy releases the interpreter's lock inside its loops and GEMMs, so Python threads suffice. A tile should keep
NumPy busy for 100 us or more; below that, handing the lock over costs more than a second core brings.

Work that compiled code does in one call is shared out without the interpreter: see `native.native_helpers`. Both kinds
of helpers know of each other, so that no more threads compute than there are cores.

A kernel that calls BLAS on small tiles runs best with one BLAS thread per tile, several tiles at once: copies
then run on every core too. OpenBLAS has one process-wide thread count, which is held at one meanwhile.

On a busy machine a helper may be put aside in the midst of a tile, and its caller would wait for a time slice. So
after such a wait kernels do without helpers for a while. Results do not depend on it: how work is cut depends on
shapes alone.
"""

from __future__ import annotations

import ctypes
import math
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import copy_context
from functools import cache, partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final

import numpy as np

from tfray.framework.op_def import NumpyDTypeLike


class BlasThreads:
    """OpenBLAS's thread count, which any number of kernels may hold at one at the same time.

    Where NumPy has another BLAS, or an OpenBLAS whose count is not safe to change while another thread
    multiplies (OpenMP builds), `hold` does nothing.

    Args:
        module: File of an extension module that is linked with the OpenBLAS; NumPy's when None.
    """

    def __init__(self, module: str | None = None) -> None:
        self._lock = threading.Lock()
        self._holders = 0
        self._get, self._set = _openblas_thread_functions(module)
        self._count = self._get() if self._get else core_count()

    def count(self) -> int:
        """Threads that BLAS uses when nobody holds it: OMP_NUM_THREADS and OPENBLAS_NUM_THREADS set it."""
        with self._lock:
            if self._get and not self._holders:
                self._count = self._get()
            return self._count

    def use(self, count: int) -> None:
        """Set how many threads BLAS uses when nobody holds it."""
        with self._lock:
            self._count = count
            if self._set and not self._holders:
                self._set(count)

    def hold(self) -> None:
        """Let BLAS run single-threaded until the matching `release`."""
        with self._lock:
            self._holders += 1
            if self._get and self._set and self._holders == 1:
                self._count = self._get()
                self._set(1)

    def release(self) -> None:
        """End one `hold`."""
        with self._lock:
            self._holders -= 1
            if self._set and self._holders == 0:
                self._set(self._count)

    def __enter__(self) -> None:
        self.hold()

    def __exit__(self, *error: object) -> None:
        self.release()


def core_count() -> int:
    limit = os.environ.get("OMP_NUM_THREADS", "")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, int(limit)) if limit.isdigit() and int(limit) > 0 else cores


_MOST_CACHE_BYTES: Final = 1 << 24
"""16 MiB for each core, of the largest cache: few CPUs have more. Beyond it, what is reported is other processes': a
virtual machine names the whole cache of its host."""


@cache
def last_cache_bytes() -> int:
    """Bytes of the largest cache that are this process's: of the first core, as Linux names it, else 32 MiB."""
    sizes = [file.read_text().strip() for file in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")]
    found = max((int(size[:-1]) << 10 for size in sizes if size[:-1].isdigit() and size[-1] == "K"), default=1 << 25)
    return min(found, core_count() * _MOST_CACHE_BYTES)


def _openblas_thread_functions(module: str | None) -> tuple[Any, Any]:
    try:
        # A symbol is also looked for in the libraries that the extension module was linked with.
        library = ctypes.CDLL(module or np._core._multiarray_umath.__file__)  # type: ignore[attr-defined]
    except (AttributeError, OSError):
        return None, None
    for form in ("scipy_openblas_{}64_", "scipy_openblas_{}", "openblas_{}64_", "openblas_{}"):
        if hasattr(library, form.format("get_parallel")):
            is_pthreads = library[form.format("get_parallel")]() == 1
            functions = library[form.format("get_num_threads")], library[form.format("set_num_threads")]
            return functions if is_pthreads else (None, None)
    return None, None


MOST_THREADS: Final = 2 * core_count() - 1
"""Threads that may compute a compiled kernel: the calling one, its helpers, and those of calls aside, which join in."""

_BLAS: Final = BlasThreads()
_pool: _Pool | None = None
_pool_lock = threading.Lock()
_local = threading.local()
_alone = threading.local()


def thread_count() -> int:
    """How many threads a kernel may use: as many as BLAS; one on a thread that works alone."""
    return 1 if getattr(_alone, "is_set", False) else _BLAS.count()


def free_helpers() -> int | None:
    """How many helpers are free for a kernel; those that make calls aside may join in later.

    None where a kernel has to do without any: on a thread that works alone, on one core, and during a pause.
    """
    threads = thread_count()
    if threads == 1 or time.perf_counter() < _pause.end:
        return None
    return max(0, threads - 1 - (_pool.busy() if _pool is not None else 0))


def is_helper() -> bool:
    """Whether the calling thread is a helper: one that makes calls aside, and takes part when it has none."""
    return getattr(_alone, "is_helper", False)


def note_wait(begun: float, done: float, now: float) -> None:
    """Note that a caller of helpers waited from `done` to `now`, after work since `begun`; see `_Pause`."""
    _pause.note(done - begun, done, now)


_when_idle: Callable[[int], None] | None = None


def when_idle(call: Callable[[int], None]) -> None:
    """Have helpers call this, each with its number, when they have done a task and there is no other."""
    global _when_idle
    _when_idle = call


def use_threads(count: int) -> None:
    """Set how many threads the kernels of this process use. Call it before the first kernel runs."""
    _BLAS.use(count)


def one_blas_thread() -> BlasThreads:
    """A context manager within which BLAS runs on the calling thread."""
    return _BLAS


def parallel_for(work: Callable[[int], None], count: int) -> None:
    """Run ``work(0)`` to ``work(count - 1)`` on the calling thread and on shared ones, in any order.

    Args:
        work: Called once per index, from several threads at once. It must not call `parallel_for`.
        count: Number of indices. With one index, or one core, everything runs on the calling thread.
    """
    helpers = min(thread_count(), count) - 1
    clock = time.perf_counter
    begun = clock()
    if helpers <= 0 or begun < _pause.end:
        with one_blas_thread():
            for index in range(count):
                work(index)
        return
    indices = iter(range(count))  # its __next__ is atomic under the interpreter's lock
    pool = _shared_pool()
    with one_blas_thread():
        shares = [_Task(partial(_run_all, work, indices)) for _ in range(helpers)]
        for share in shares:
            pool.start(share)
        try:
            _run_all(work, indices)
        finally:
            done = clock()
            # A helper that never began has nothing to do. The others may still be reading the caller's arrays.
            errors = [share.finish() for share in shares]
            _pause.note(done - begun, done, clock())
    for error in errors:
        if error is not None:
            raise error


def work_alone() -> None:
    """Kernels that the calling thread runs from now on use no other: threads like it keep all cores busy."""
    _alone.is_set = True


class _Pause:
    """A while in which kernels do without helpers, because a caller had to wait for one.

    Attributes:
        end: When it ends, in seconds of `time.perf_counter`.
    """

    _LONG_WAIT_S: Final = 5e-4
    _SHORTEST_S: Final = 0.01
    _LONGEST_S: Final = 0.32

    def __init__(self) -> None:
        self.end = 0.0
        self._length_s = self._SHORTEST_S

    def note(self, worked_s: float, done: float, now: float) -> None:
        """Note that a caller waited from `done` to `now`, after so much work of its own or for so much of the helper's.

        If a helper's last tile took longer than all that the caller did, or a call took longer than its processor
        time, the helper was put aside. Each such wait doubles the pause, and a call without one makes it short again.
        """
        waited_s = now - done
        if waited_s <= self._LONG_WAIT_S or waited_s <= worked_s:
            self._length_s = self._SHORTEST_S
            return
        self.end = now + self._length_s
        self._length_s = min(2 * self._length_s, self._LONGEST_S)


_pause: Final = _Pause()


def _run_all(work: Callable[[int], None], indices: Iterator[int]) -> None:
    for index in indices:
        work(index)


class _Task:
    """A call that a helper makes, unless its caller takes it back before a helper begins.

    `_claimed` decides which of the two comes first. These are plain locks because futures take the interpreter's lock
    several more times, and each time is a wait on a busy machine.
    """

    __slots__ = ("_call", "_claimed", "_context", "_done", "_error", "_spent_s", "_value")

    def __init__(self, call: Callable[[], object]) -> None:
        self._call: Callable[[], object] | None = call
        self._context = copy_context()  # NumPy's error state is context-local: helpers must see the caller's
        self._claimed = threading.Lock()
        self._done = threading.Lock()
        self._done.acquire()
        self._error: BaseException | None = None
        self._value: Any = None
        self._spent_s = 0.0

    def run(self) -> None:
        """Make the call, unless it was taken back."""
        if not self._claimed.acquire(blocking=False):
            return
        begun = time.thread_time()
        try:
            assert self._call is not None
            self._value = self._context.run(self._call)
        except BaseException as error:  # noqa: BLE001 (the caller raises it)
            self._error = error
        finally:
            self._call = None
            self._spent_s = time.thread_time() - begun
            self._done.release()

    def taken_back(self) -> Callable[[], object] | None:
        """On the caller: the call, which no helper will make; None if one has begun."""
        if not self._claimed.acquire(blocking=False):
            return None
        call, self._call = self._call, None  # a helper still holds this object for a while, but not our arrays
        self._done.release()
        return call

    def finish(self) -> BaseException | None:
        """On the caller: take the call back, or wait for the helper and return what it raised."""
        self.taken_back()
        with self._done:
            return self._error


class Aside(_Task):
    """A call that is made while the calling thread goes on; see `Lane`."""

    __slots__ = ()

    def result(self) -> Any:
        """On the caller, once: what the call returns. It is made here if no helper has begun it."""
        call = self.taken_back()
        if call is not None:
            return call()
        asked = time.perf_counter()
        error = self.finish()
        _pause.note(self._spent_s, asked, time.perf_counter())
        if error is not None:
            raise error
        value, self._value = self._value, None
        return value


class Lane:
    """A second lane of a step: calls that helpers make beside what the calling thread does.

    A context manager. Whoever starts a call asks for its result within the ``with``; when an error leaves it, no call
    is being made any more.
    """

    def __enter__(self) -> Lane:
        self._asides: list[Aside] = []
        return self

    def start(self, call: Callable[[], object]) -> Aside:
        """Have a call made beside what follows. On one core, and during a pause without helpers, it is made at once."""
        aside = Aside(call)
        self._asides.append(aside)
        if thread_count() > 1 and time.perf_counter() >= _pause.end:
            _shared_pool().start(aside)
        else:
            aside.run()
        return aside

    def __exit__(self, kind: object, *error: object) -> None:
        if kind is not None:
            for aside in self._asides:
                aside.finish()


class _Pool:
    """Helper threads that wait for tasks."""

    def __init__(self, threads: int) -> None:
        self._tasks: SimpleQueue[_Task] = SimpleQueue()
        self._is_busy = [False] * threads
        for number in range(threads):
            threading.Thread(target=self._help, args=(number,), name=f"tfray-cpu_{number}", daemon=True).start()

    def start(self, task: _Task) -> None:
        """Let a helper run `task` when it is free."""
        self._tasks.put(task)

    def busy(self) -> int:
        """How many helpers run a task."""
        return sum(self._is_busy)

    def _help(self, number: int) -> None:
        _alone.is_helper = True
        while True:
            task = self._tasks.get()
            self._is_busy[number] = True
            task.run()
            if _when_idle is not None and self._tasks.empty():
                _when_idle(number)
            self._is_busy[number] = False


def _shared_pool() -> _Pool:
    global _pool
    with _pool_lock:
        if _pool is None:
            _pool = _Pool(max(1, thread_count() - 1))
        return _pool


def _forget_pool() -> None:
    # A forked child has no threads but its own.
    global _pool, _pool_lock, _when_idle
    _pool, _pool_lock, _when_idle = None, threading.Lock(), None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)


_SMALL_BYTES: Final = 1 << 16
"""Up to this size a new array takes less time than a view of a buffer: the allocator has its pages at hand."""


_LINE_BYTES: Final = 64


def scratch(slot: str, shape: tuple[int, ...], dtype: NumpyDTypeLike) -> Any:
    """An uninitialised array that the calling thread reuses. Its memory pages are mapped already, unlike a new one's.

    Args:
        slot: Which of the thread's buffers. The array is valid until the thread asks for that slot again, so it
            must not leave the kernel.
        shape: Shape of the array.
        dtype: NumPy dtype of the array.
    """
    dtype = np.dtype(dtype)
    size_bytes = math.prod(shape) * dtype.itemsize
    if size_bytes <= _SMALL_BYTES:
        return np.empty(shape, dtype)
    return kept_bytes(slot, size_bytes)[:size_bytes].view(dtype).reshape(shape)


def kept_bytes(slot: str, size_bytes: int) -> Any:
    """The calling thread's buffer of that name, of at least that size. It stays until a larger one is asked for.

    It begins at a cache line (64 bytes), so that no vector of a compiled kernel lies in two of them.
    """
    buffers: dict[str, Any] = _local.__dict__
    buffer = buffers.get(slot)
    if buffer is None or buffer.nbytes < size_bytes:
        memory = np.empty(size_bytes + _LINE_BYTES, np.uint8)
        buffer = buffers[slot] = memory[-memory.ctypes.data % _LINE_BYTES :][:size_bytes]
    return buffer
