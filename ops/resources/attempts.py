"""Waiting at resources that steps share: queues, barriers, staging areas, accumulators.

An operation that cannot be done at once leaves an `Attempt` in one of the resource's lines. Whoever changes the
resource lets the first attempts of its lines go on, and wakes the steps whose attempts are done. A line is served in
the order of arrival: an attempt that asks for much is not overtaken by later ones that ask for little.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from tfray.errors import CancelledError, OpError


class Attempt(ABC):
    """What one operation tries on a resource, until it succeeds, fails or is cancelled.

    Attributes:
        when_done: Called once `done` has become true, without the resource's lock.
        done: Whether it has succeeded or failed.
        value: What it has got.
        error: Why it failed.
    """

    __slots__ = ("done", "error", "resource", "value", "when_done")

    def __init__(self, resource: SharedResource) -> None:
        self.resource = resource
        self.when_done: Callable[[], None] | None = None
        self.done = False
        self.value: Any = None
        self.error: OpError | None = None

    @abstractmethod
    def advance(self) -> bool:
        """Go on as far as the resource allows, with its lock held. Returns whether anything changed."""

    def undo(self) -> None:  # noqa: B027 (not everything can be given back)
        """Give back what has been taken, with the lock held: the attempt is given up, perhaps after it was done."""

    def finish(self, value: object = None) -> bool:
        """Succeed."""
        self.value = value
        self.done = True
        return True

    def fail(self, error: OpError) -> bool:
        """Fail."""
        self.error = error
        self.done = True
        return True

    def result(self) -> Any:
        """What the operation returns. Raises the error with which it failed."""
        if self.error is not None:
            raise self.error
        return self.value

    def cancel(self) -> None:
        """Give up. Not to be called once `result` has been."""
        self.resource.withdraw(self)


class Immediate(Attempt):
    """An attempt that is done from the start."""

    __slots__ = ()

    def __init__(self, value: object = None) -> None:
        self.value = value
        self.error = None
        self.done = True

    def advance(self) -> bool:
        return False

    def cancel(self) -> None:
        """Nothing to give up."""


class SharedResource:
    """Something that several steps change, and for whose changes they wait.

    Args:
        line_count: Number of lines in which attempts wait.

    Attributes:
        lock: Held while the resource is looked at or changed.
    """

    def __init__(self, line_count: int) -> None:
        self.lock = threading.Lock()
        self._lines: list[deque[Attempt]] = [deque() for _ in range(line_count)]

    def submit(self, attempt: Attempt, line: int) -> Attempt:
        """Put an attempt at the end of a line, and serve the lines."""
        with self.lock:
            self._lines[line].append(attempt)
            finished = self._serve()
        wake(finished, attempt)
        return attempt

    def change(self, change: Callable[[], Any]) -> Any:
        """Call `change` with the lock held, then serve the lines. Returns what it returns."""
        with self.lock:
            result = change()
            finished = self._serve()
        wake(finished)
        return result

    def withdraw(self, attempt: Attempt) -> None:
        """Take back an attempt whose result nobody will see: it may be done already."""
        with self.lock:
            if attempt.error is not None:
                return
            for line in self._lines:
                if attempt in line:
                    line.remove(attempt)
            attempt.undo()
            attempt.fail(CancelledError("the operation was cancelled while it waited"))
            finished = self._serve()
        wake(finished)

    def _serve(self) -> list[Attempt]:
        """Let attempts go on until none can. Returns those that are done, for `wake`. Call with the lock held."""
        finished: list[Attempt] = []
        changed = True
        while changed:
            changed = False
            for line in self._lines:
                while line and line[0].advance():
                    changed = True
                    if not line[0].done:
                        break
                    finished.append(line.popleft())
        return finished


def wake(finished: Iterable[Attempt], own: Attempt | None = None) -> None:
    """Tell the steps behind attempts that these are done. Call without the lock."""
    for attempt in finished:
        if attempt is not own and attempt.when_done is not None:
            attempt.when_done()
