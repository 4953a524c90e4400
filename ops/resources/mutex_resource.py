"""A lock that operations of several steps take in turn."""

from __future__ import annotations

from tfray.ops.resources.attempts import Attempt, SharedResource


class Mutex(SharedResource):
    """A lock that one operation has at a time. The others wait in order of arrival."""

    def __init__(self) -> None:
        super().__init__(line_count=1)
        self.is_taken = False

    def take(self) -> Attempt:
        """An attempt whose result is the `MutexLock`."""
        return self.submit(_Take(self), 0)


class MutexLock:
    """The right to go on that the one who has it must give back."""

    def __init__(self, mutex: Mutex) -> None:
        self._mutex = mutex
        self._is_given_back = False

    def release(self) -> None:
        """Give it back, if that has not been done."""
        if not self._is_given_back:
            self._is_given_back = True
            self._mutex.change(self._free)

    def _free(self) -> None:
        self._mutex.is_taken = False


class _Take(Attempt):
    resource: Mutex

    def advance(self) -> bool:
        if self.resource.is_taken:
            return False
        self.resource.is_taken = True
        return self.finish(MutexLock(self.resource))

    def undo(self) -> None:
        if self.done:
            self.resource.is_taken = False
