"""The quota of a process: how much of its node's object store it may hold for tensors that it sends."""

from __future__ import annotations

import threading
from collections import deque

from tfray.errors import ResourceExhaustedError


class Holding:
    """Bytes that count as held until this is gone.

    Args:
        size_bytes: How many.
        returned: Takes the number when they are no longer held.
    """

    def __init__(self, size_bytes: int, returned: deque[int]) -> None:
        self._size_bytes = size_bytes
        self._returned = returned

    def __del__(self) -> None:
        self._returned.append(self._size_bytes)  # nothing that locks: this may run on any thread, at any time


class StoreQuota:
    """What a process may hold of its node's object store.

    Args:
        limit_bytes: The largest number of bytes; None for no limit.
    """

    def __init__(self, limit_bytes: int | None = None) -> None:
        self._limit_bytes = limit_bytes
        self._held_bytes = 0
        self._returned: deque[int] = deque()
        self._lock = threading.Lock()

    @property
    def held_bytes(self) -> int:
        """Bytes that are held now."""
        with self._lock:
            return self._held()

    def has_room_for(self, size_bytes: int) -> bool:
        """Whether so many more may be held."""
        return self._limit_bytes is None or self.held_bytes + size_bytes <= self._limit_bytes

    def hold(self, size_bytes: int, what: str = "") -> Holding:
        """Hold so many more bytes, until the result is gone.

        Args:
            size_bytes: How many.
            what: The tensor that is to be sent, if the limit holds for it. What others send is counted only.

        Raises:
            ResourceExhaustedError: There would be more than the limit.
        """
        with self._lock:
            held = self._held()
            if what and self._limit_bytes is not None and held + size_bytes > self._limit_bytes:
                raise ResourceExhaustedError(
                    f"cannot send {what} ({size_bytes:,} bytes): the process holds {held:,} bytes of its node's object "
                    f"store, and may hold {self._limit_bytes:,}. Allow more (store_bytes of tf.JobSpec or "
                    "tf.train.ScalingConfig), spread variables over more parameter servers, or send less at once"
                )
            self._held_bytes += size_bytes
        return Holding(size_bytes, self._returned)

    def _held(self) -> int:
        """Bytes that are held now. Call it with the lock held."""
        while self._returned:
            self._held_bytes -= self._returned.popleft()
        return self._held_bytes
