"""Waiting at resources that steps share: queues, barriers, staging areas, accumulators.

An operation that must wait leaves an `Attempt` in one of the resource's waiting lines. The thread that changes the
resource then serves the lines: it advances the first attempt of each, and wakes the steps whose attempts are done. A
line is served in order of arrival (staging areas excepted), so that an attempt that asks for much is not overtaken by
later ones that ask for little.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tfray.errors import CancelledError, OpError


class Attempt(ABC):
    """One operation's request to a resource, until it succeeds, fails or is cancelled.

    Attributes:
        when_done: Called when `done` becomes true. The resource's lock is not held then.
        done: Whether the attempt has succeeded or failed.
        value: The result, after success.
        error: The reason, after failure.
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
        """Give back what the attempt has taken, because it is cancelled; it may be done already. The lock is held."""

    def finish(self, value: object = None) -> bool:
        """End the attempt with success and this value. Returns True, as `advance` must after a change."""
        self.value = value
        self.done = True
        return True

    def fail(self, error: OpError) -> bool:
        """End the attempt with this error. Returns True, as `advance` must after a change."""
        self.error = error
        self.done = True
        return True

    def result(self) -> Any:
        """What the operation returns. Raises the error with which it failed."""
        if self.error is not None:
            raise self.error
        return self.value

    def cancel(self) -> None:
        """Give up, and give back what was taken. Must not be called after `result`."""
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
    """A resource that several steps change, and on which they wait for each other's changes.

    Args:
        line_count: Number of waiting lines. Attempts in different lines do not hold each other up.

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
        """Cancel an attempt whose result nobody will see. It may be done already."""
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
    """Call `when_done` of finished attempts, except `own`. Call without the lock."""
    for attempt in finished:
        if attempt is not own and attempt.when_done is not None:
            attempt.when_done()


def bracketed(sizes: Sequence[int | None]) -> str:
    """A shape as TensorFlow's kernels write it."""
    return f"[{','.join('?' if size is None else str(size) for size in sizes)}]"
