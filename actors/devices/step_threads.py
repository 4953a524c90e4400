"""Threads for steps: one for each running step. Threads without work end after a while."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Final

REST_S: Final = 10.0
"""Seconds without a task after which a thread ends. Within them, a next step needs no new thread."""

_Task = Callable[[], None]


class StepThreads:
    """Runs each task at once, on a thread that is free or else on a new one.

    The number of threads has no limit. With one, all threads could be waiting for a step that itself waits for a
    thread, on this device or on another: a deadlock.

    Args:
        name: Begins the names of the threads.
        begin: Called once on each new thread, before its first task.
    """

    def __init__(self, name: str, begin: Callable[[], None] = lambda: None) -> None:
        self._name = name
        self._begin = begin
        self._tasks: deque[_Task] = deque()
        self._free = 0
        self._changed = threading.Condition()

    def submit(self, task: _Task) -> None:
        """Run `task`, which raises nothing. Raises `RuntimeError` when the system gives no further thread."""
        with self._changed:
            self._tasks.append(task)
            if self._free >= len(self._tasks):
                self._changed.notify()
                return
            try:
                threading.Thread(target=self._run, name=self._name, daemon=True).start()
            except RuntimeError:
                self._tasks.remove(task)
                raise

    def _run(self) -> None:
        self._begin()
        while (task := self._next()) is not None:
            task()
            del task  # it keeps what its step has received

    def _next(self) -> _Task | None:
        with self._changed:
            self._free += 1
            try:
                return self._tasks.popleft() if self._changed.wait_for(lambda: self._tasks, REST_S) else None
            finally:
                self._free -= 1
