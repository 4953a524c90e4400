"""Loans: tensors that travel in objects of Ray's store which their owner writes again and again.

To put a new object takes ten times as long as to copy its content. The store must find room for it, and be told when it
is written and when it is no longer needed. Its pages are new to every process that touches them. Loans spare all that
for tensors that are sent step after step:

1. The sender keeps the objects through which it sends (`StoreBuffers`), and copies the tensor into a free one.
2. It tells the receiver where the tensor is: that message is the *loan*.
3. The receiver (`Borrowings`) maps the object when it first meets it, and reads the tensor without a copy.
4. When the last array in that memory is gone, the receiver returns the loan. Only then does the owner write again.

A receiver may keep what it has borrowed, in a queue for instance: the owner takes another object meanwhile.

Ray assumes that objects never change. So these objects stay hidden from it: no call of Ray has a reference to one. A
receiver that cannot map an object, or is on another node, is sent a copy.
"""

from __future__ import annotations

import ctypes
import itertools
import math
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol

import numpy as np

from tfray.actors.links.frames import dtype_name, dtype_named
from tfray.actors.links.messages import Description, Loan, Returned, plain
from tfray.actors.links.peer_link import Link, when_idle
from tfray.actors.links.shared_objects import describe, find, mapped, put
from tfray.actors.links.store_quota import Holding, StoreQuota

KEPT_S: Final = 10.0
"""Seconds that an unused object is kept. Sooner, a slow step would make its objects anew; later, memory lies idle."""

_RETURNED_TOGETHER: Final = 4
"""Returns of loans wait for a message that takes them along. So many of them are sent in a message of their own."""

_RETURNED_BYTES: Final = 1 << 20
"""One that waits alone is, too, where objects have so many bytes: the owner would soon need another."""

_numbers: Final = itertools.count(secrets.randbits(48))
"""Numbers of loans. They begin at random: so no loan has the number of one by an earlier process of the same device."""


def next_loan() -> int:
    """A number for a loan of this process."""
    return next(_numbers)


class Borrower(Protocol):
    """A process to which objects are lent."""

    def unmap(self, identity: bytes) -> None:
        """Tell the process that an object will not be lent to it again."""


class StoreBuffer:
    """An object of the store that this process writes.

    Args:
        label: What goes through it.
        capacity: Its size in bytes.
        holding: Counts these bytes.

    Attributes:
        ref: Ray's reference.
        identity: Ray's identity of the object.
        made_at: When it was made, by `time.monotonic`.
        used_at: When it was last taken to be written, by the same clock.
        is_lost: Whether a receiver to which the link has closed may still read it. It is never written again.
        mapped_by: The peers that have mapped it.
    """

    def __init__(self, label: str, capacity: int, holding: Holding) -> None:
        self.label = label
        self._holding = holding
        self.ref = put(np.empty(capacity, np.uint8))
        self.identity: bytes = self.ref.binary()
        self._mapped = mapped(self.ref)
        memory: Any = (ctypes.c_char * capacity).from_address(self._mapped.ctypes.data)
        self._memory = np.frombuffer(memory, np.uint8)
        self.made_at = self.used_at = time.monotonic()
        self.is_lost = False
        self.mapped_by: set[Borrower] = set()

    def has_room_for(self, size: int) -> bool:
        """Whether it suits a tensor of so many bytes."""
        return size <= len(self._memory) <= 2 * size

    def array(self, dtype: Any, shape: Sequence[int]) -> Any:
        """The beginning of its memory as an array of that dtype and shape."""
        return self._memory[: math.prod(shape) * dtype.itemsize].view(dtype).reshape(shape)


class LentTensor:
    """A tensor in a `StoreBuffer`. Senders hold it, and each open loan does; after the last of them the buffer is free.

    Args:
        buffer: Where it lies.
        dtype: Its dtype.
        shape: Its shape.
        give_back: Called with the buffer when nobody holds the tensor any more, on any thread; it must not wait.
    """

    def __init__(
        self, buffer: StoreBuffer, dtype: Any, shape: Sequence[int], give_back: Callable[[StoreBuffer], None]
    ) -> None:
        self.buffer = buffer
        self.dtype = dtype
        self.shape = shape
        self._give_back = give_back
        self._copy: Any = None

    @property
    def array(self) -> Any:
        """The tensor."""
        return self.buffer.array(self.dtype, self.shape)

    def loan(self, number: int, is_mapped: bool) -> Loan:
        """The message for a receiver on this node. One that has not mapped the buffer yet is told how to find it."""
        described = () if is_mapped else describe(self.buffer.ref)[1:]
        return Loan(number, self.buffer.identity, dtype_name(self.dtype), tuple(self.shape), *described)

    def copy(self) -> Any:
        """A reference to an ordinary object of the same content, which is never written again."""
        if self._copy is None:
            self._copy = put(self.array)
        return self._copy

    def __del__(self) -> None:
        self._give_back(self.buffer)


class StoreBuffers:
    """The objects through which this process sends.

    Args:
        quota: What the process may hold of the store.
    """

    def __init__(self, quota: StoreQuota | None = None) -> None:
        self._quota = quota or StoreQuota()
        self._free: dict[str, list[StoreBuffer]] = {}
        self._given_back: deque[StoreBuffer] = deque()
        self._made_since = 0.0
        self._next_search = 0.0
        self._out = 0
        """How many are neither free nor dropped: in use, or given back and not tidied away yet."""
        self._is_watched = False
        self._lock = threading.Lock()

    def write(self, label: str, array: Any) -> LentTensor:
        """Copy a tensor of numbers into a free object.

        Args:
            label: What the tensor is for, such as its edge. The next tensor of that label finds the same object again.
            array: The tensor, on the host.
        """
        tensor = self.reserve(label, array.dtype, array.shape, label)
        np.copyto(tensor.array, array)
        return tensor

    def reserve(self, label: str, dtype: Any, shape: Sequence[int], sent: str = "") -> LentTensor:
        """A free object for a tensor that is still to be computed: write it into `LentTensor.array`.

        Args:
            label: As for `write`.
            dtype: The tensor's dtype.
            shape: Its shape.
            sent: Its name, if this process sends it: then the quota holds for it.

        Raises:
            ResourceExhaustedError: The process would hold more of the store than it may.
        """
        buffer = self._take(label, math.prod(shape) * dtype.itemsize, sent)
        with self._lock:
            self._out += 1
        return LentTensor(buffer, dtype, shape, self._given_back.append)

    def _take(self, label: str, size: int, sent: str) -> StoreBuffer:
        """A free buffer of that label that fits, or a new one; then the free ones of that label are dropped."""
        self.tidy()
        with self._lock:
            free = self._free.pop(label, [])
            fitting = next((buffer for buffer in reversed(free) if buffer.has_room_for(size)), None)
            if fitting is not None:
                free.remove(fitting)
                self._free[label] = free
        if fitting is not None:
            fitting.used_at = time.monotonic()
            return fitting
        _let_go(free)
        capacity = size + size // 4 if free else size  # what has grown may grow again
        free.clear()  # they count as held while anything refers to them
        if sent and not self._quota.has_room_for(capacity):
            self._drop_free_ones()
            capacity = size
        return StoreBuffer(label, capacity, self._quota.hold(capacity, sent))

    def _drop_free_ones(self) -> None:
        with self._lock:
            free, self._free = [each for buffers in self._free.values() for each in buffers], {}
        _let_go(free)

    def clear(self) -> None:
        """Drop all objects: those that are free at once, the others when they have been given back."""
        self._made_since, self._next_search = time.monotonic(), 0.0
        self.tidy()
        if self._out and not self._is_watched:
            self._is_watched = True
            when_idle(self._drop_late_ones)

    def _drop_late_ones(self) -> bool:
        """Drop what was in use at `clear` and has been given back since. Returns whether more is out."""
        self.tidy()
        self._is_watched = self._out > 0
        return self._is_watched

    def tidy(self) -> None:
        """Make free what has been given back. Drop what may still be read, and what was not used for `KEPT_S`."""
        now = time.monotonic()
        if not self._given_back and now < self._next_search:
            return
        dropped: list[StoreBuffer] = []
        with self._lock:
            while self._given_back:
                buffer = self._given_back.popleft()
                self._out -= 1
                if buffer.is_lost or buffer.made_at < self._made_since:
                    dropped.append(buffer)
                else:
                    self._free.setdefault(buffer.label, []).append(buffer)
            if now >= self._next_search:
                self._next_search = now + KEPT_S / 10
                used_since = now - KEPT_S
                for label, buffers in list(self._free.items()):
                    kept = [each for each in buffers if each.used_at > used_since and each.made_at >= self._made_since]
                    dropped += [each for each in buffers if each not in kept]
                    self._free[label] = kept
                    if not kept:
                        del self._free[label]
        _let_go(dropped)


def _let_go(buffers: Sequence[StoreBuffer]) -> None:
    """Tell all peers that have mapped these buffers to unmap them. Their memory is free when nobody refers to them."""
    for buffer in buffers:
        for peer in list(buffer.mapped_by):
            peer.unmap(buffer.identity)


class Lender:
    """A process that lends tensors to this one over a link, and the loans that are still to be returned to it.

    Args:
        link: The link.
    """

    def __init__(self, link: Link) -> None:
        self._link = link
        self._mapped: dict[bytes, Any] = {}
        self._returns: deque[int] = deque()
        self._largest_bytes = 0
        self._borrowed = 0
        self._returned = 0
        self._lock = threading.Lock()  # for taking returns; adding one needs none, as a deque's `append` is atomic

    @property
    def has_all(self) -> bool:
        """Whether every loan has been returned."""
        return self._borrowed == self._returned

    def borrow(self, loans: Sequence[Loan]) -> list[Any] | None:
        """The tensors, read-only; None if some object is not in this node's store.

        Raises:
            ValueError: A loan is of an object never described, or its tensor does not lie within the object.
        """
        waiting = len(self._returns)
        if waiting >= _RETURNED_TOGETHER or (waiting and self._largest_bytes >= _RETURNED_BYTES):
            self.give_back()
        arrays = []
        for number, identity, dtype, shape, owner, status in loans:
            mapped = self._mapped.get(identity)
            if mapped is None:
                if not owner:  # the sender takes it as mapped, and did not say how to find it
                    raise ValueError("a loan of what has never been mapped")
                found = find([Description(identity, owner, status)])
                if found is None:
                    return None
                mapped = self._mapped[identity] = found[0]
                self._largest_bytes = max(self._largest_bytes, mapped.nbytes)
            form = dtype_named(dtype)
            size = math.prod(shape) * form.itemsize
            if not 0 < size <= mapped.nbytes or min(shape, default=0) < 0:
                raise ValueError(f"{dtype}{shape} does not lie in an object of {mapped.nbytes} bytes")
            memory = np.asarray(_BorrowedMemory(mapped, self._returns, number))
            self._borrowed += 1
            arrays.append(memory[:size].view(form).reshape(shape))
        return arrays

    def unmap(self, identity: bytes) -> None:
        """Let go of an object that will not be lent again."""
        self._mapped.pop(identity, None)

    def take_returns(self) -> list[int]:
        """The numbers of the loans to return. They count as returned from now on. Any thread may call this."""
        if not self._returns:
            return []
        with self._lock:
            returns = [self._returns.popleft() for _ in range(len(self._returns))]
            self._returned += len(returns)
        return returns

    def keep_returns(self, returns: Sequence[int]) -> None:
        """Return these later: the message that should have taken them along did not leave."""
        with self._lock:
            self._returned -= len(returns)
            self._returns.extend(returns)

    def give_back(self) -> None:
        """Return loans by a message of their own."""
        returns = self.take_returns()
        if returns:
            with suppress(OSError):  # the lender is gone
                self._link.send(plain(Returned(tuple(returns))))


class _BorrowedMemory:
    """The memory of an object, for NumPy. Arrays in that memory keep this alive; when it dies, the loan is returned.

    Args:
        mapped: The bytes of the object.
        returns: Takes the number of the loan when it can be returned.
        number: Number of the loan.
    """

    def __init__(self, mapped: Any, returns: deque[int], number: int) -> None:
        self._mapped = mapped
        self._returns = returns
        self._number = number
        self.__array_interface__ = mapped.__array_interface__

    def __del__(self) -> None:
        self._returns.append(self._number)  # nothing that locks or sends: this may run on any thread, at any time


class Borrowings:
    """What other processes have lent to this one."""

    def __init__(self) -> None:
        self._lenders: dict[Link, Lender] = {}
        self._by_device: dict[str, Lender] = {}
        self._is_watched = False

    def borrow(self, link: Link, device: str, loans: Sequence[Loan]) -> list[Any] | None:
        """What the process of `device` lends over a link; see `Lender.borrow`. For the reading thread."""
        lender = self._lenders.get(link)
        if lender is None:
            lender = self._lenders[link] = self._by_device[device] = Lender(link)
        if not self._is_watched:
            self._is_watched = True
            when_idle(self._give_back)
        return lender.borrow(loans)

    def unmap(self, link: Link, identity: bytes) -> None:
        """Let go of an object that will not be lent again over that link."""
        if link in self._lenders:
            self._lenders[link].unmap(identity)

    def returns_to(self, device: str) -> list[int]:
        """The loans to return to the process of `device`, which a message takes along."""
        lender = self._by_device.get(device)
        return [] if lender is None else lender.take_returns()

    def keep_returns(self, device: str, returns: Sequence[int]) -> None:
        """Take back what `returns_to` gave: the message that should have taken it along did not leave."""
        lender = self._by_device.get(device)
        if lender is not None:
            lender.keep_returns(returns)

    def forget(self, link: Link) -> None:
        """Note that a link has closed."""
        gone = self._lenders.pop(link, None)
        self._by_device = {device: lender for device, lender in self._by_device.items() if lender is not gone}

    def _give_back(self) -> bool:
        """Return the loans that no message has taken along. The result says whether others are still to be returned."""
        for lender in list(self._lenders.values()):
            lender.give_back()
        self._is_watched = not all(lender.has_all for lender in list(self._lenders.values()))
        return self._is_watched


class Loans:
    """What the process of a device lends and borrows.

    Args:
        device: The device.
        quota: What the process may hold of the store for what it lends.

    Attributes:
        quota: The same.
        buffers: The objects through which it sends.
        borrowings: What other processes have lent to it.
    """

    def __init__(self, device: str = "", quota: StoreQuota | None = None) -> None:
        self.device = device
        self.quota = quota or StoreQuota()
        self.buffers = StoreBuffers(self.quota)
        self.borrowings = Borrowings()
