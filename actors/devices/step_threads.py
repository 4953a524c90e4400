"""Threads for steps: as many as there are steps at a time, and few when there are none."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Final

REST_S: Final = 10.0
"""A thread that has had nothing to do for so long ends."""

_Task = Callable[[], None]


class StepThreads:
    """Runs each task at once, on a thread that is free or else on a new one.

    There is no largest number. A step that waits for a thread could be the one for which all threads wait: those of two
    devices would wait for each other for ever.

    Args:
        name: Begins the names of the threads.
        begin: Called once on each new thread.
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
