"""Where Send and Recv of one step meet.

A tensor crosses an edge once per step, under the edge's key. The sending side calls `Rendezvous.send`. The value goes
to the `Mailbox` of the receiving device's step: directly in one process, through links between actors or Ray's object
store on a cluster. The executor empties the mailbox. Everything belongs to one step: aborting it wakes every waiter.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterable
from typing import Any, Final, Protocol

from tfray.errors import DeadlineExceededError
from tfray.runtime.edge_key import EdgeKey

LARGE_BYTES: Final = 1 << 20
"""1 MiB. A tensor from this size on leaves by itself, as soon as it is there. On a network of 10 Gbit/s it takes a
millisecond: ten times as long as another message, and another segment of a plan, do."""


class Rendezvous(Protocol):
    """The sending side of one step."""

    def send(self, key: str, destination: str, value: Any) -> None:
        """Hand `value` to the device `destination`, which receives it under `key`.

        The caller may reuse the memory of `value` as soon as this returns if `copies` is true.
        """

    def flush(self) -> None:
        """Send what `send` has held back to make fewer messages. Called at the end of each segment."""

    @property
    def copies(self) -> bool:
        """Whether `send` has copied the value by the time that it returns.

        A rendezvous that copies has a method ``room(key, destination, shape, dtype)`` as well. It returns an array for
        the value that `send` will be given for that edge. A value computed there need not be copied.
        """


class Mailbox:
    """Values that have arrived for one device in one step, and the error that ended the step, if any.

    A step waits here, whatever it waits for. Any thread may deliver, wake or abort; one thread takes.

    Most steps never wait here, and take no lock: they only test `has_news`. The order of three writes and reads keeps
    news from being missed. A bringer stores the news, sets `has_news`, then reads `_changed` to see whether anybody
    waits. The taker sets `_changed`, then reads `has_news`; it clears the flag before it takes what is stored.

    Attributes:
        has_news: Whether `arrived` has something to give or to raise, or `wake` was called since. Only read it.
        lost: By device from which nothing more can arrive: why.
    """

    def __init__(self) -> None:
        self.has_news = False
        self.lost: dict[str, BaseException] = {}
        self._arrived: deque[tuple[str, Any]] = deque()
        self._changed: threading.Condition | None = None
        self._errors: list[BaseException] = []

    def deliver(self, items: list[tuple[str, Any]]) -> None:
        """Add values by edge key. Values for an aborted step are dropped."""
        if not self._errors:
            self._arrived.extend(items)
            self.has_news = True  # as `_notify`, without a call: most messages end here
            if self._changed is not None:
                self._notify()

    def abort(self, error: BaseException) -> None:
        """End the step: the taker raises `error`. The first error wins."""
        self._errors.append(error)
        self._notify()

    def lose(self, source: str, error: BaseException) -> None:
        """Note that nothing more can arrive from a device: the taker raises `error` if it waits for something."""
        self.lost = {**self.lost, source: error}
        self._notify()

    def check_lost(self, missing: Iterable[str]) -> None:
        """Raise the error given to `lose` for the source of one of the edges from which nothing has arrived yet."""
        for key in missing:
            error = self.lost.get(EdgeKey.parse(key).source)
            if error is not None:
                raise error

    def wake(self) -> None:
        """Let the step's thread look again at what it waits for besides tensors."""
        self._notify()

    def _notify(self) -> None:
        self.has_news = True
        if self._changed is not None:
            with self._changed:
                self._changed.notify()

    def arrived(self) -> list[tuple[str, Any]]:
        """What has arrived by now. Raises the error given to `abort`."""
        self.has_news = False  # first: what arrives while this method runs sets the flag again
        if self._errors:
            self.has_news = True  # stays so: every later call raises the error again
            self._arrived.clear()  # here, and not in `abort`: only the taking thread may remove values
            raise self._errors[0]
        arrived = self._arrived
        return [arrived.popleft() for _ in range(len(arrived))]

    def take(self, deadline: float | None, waiting_for: str) -> list[tuple[str, Any]]:
        """Wait for values, or for `wake`, and return all that have arrived.

        Args:
            deadline: `time.monotonic` value after which to give up; None to wait until the step is aborted.
            waiting_for: What the wait is for, for the error.

        Raises:
            DeadlineExceededError: The deadline passed.
            BaseException: The error given to `abort`.
        """
        if self._changed is None:
            self._changed = threading.Condition()
        with self._changed:
            while not self.has_news:
                remaining = None if deadline is None else deadline - time.monotonic()
                if remaining is not None and remaining <= 0:
                    raise DeadlineExceededError(f"Timed out waiting for notification of {waiting_for}")
                self._changed.wait(remaining)
        return self.arrived()
