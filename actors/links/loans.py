"""Tensors lent through objects of Ray's store whose memory their owner writes anew.

To put an object takes ten times as long as to copy what it holds: the store is asked for room and told when it is full
and when it is free, and its pages are new to every process that touches them. What is sent step after step need not
pay that. A process keeps the objects through which it sends (`StoreBuffers`). A tensor on its way is a *loan*: the
receiver (`Borrowings`) maps the object when it first meets it, reads without a copy, and returns the loan when the last
array in that memory is gone. Only then does the owner write there again. A receiver may keep what it has borrowed, in a
queue for instance: the owner takes other memory meanwhile.

To Ray, an object does not change. No other process learns of these objects: their references are never part of a
call. A receiver that cannot map one, or lives elsewhere, is sent a copy.
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

KEPT_S: Final = 10.0
"""How long an object is kept that is not used."""

_RETURNED_TOGETHER: Final = 4
"""So many loans are returned by a message of their own when no other has taken them along."""

_numbers: Final = itertools.count(secrets.randbits(48))
"""Of loans. They begin anywhere: one of this process is none of that which had its device before."""


def next_loan() -> int:
    """A number for a loan of this process."""
    return next(_numbers)


class Borrower(Protocol):
    """Where objects are lent to: the peer of an actor."""

    def unmap(self, identity: bytes) -> None:
        """Tell it that an object will not be lent to it again."""


class StoreBuffer:
    """An object of the store that this process writes.

    Args:
        label: What goes through it.
        capacity: Its size in bytes.

    Attributes:
        ref: Ray's reference.
        identity: How Ray calls it.
        made_at: When it was made, as `time.monotonic` has it.
        used_at: When it was last written.
        is_lost: Whether it may be read by somebody who cannot tell any more.
        mapped_by: The peers that have mapped it.
    """

    def __init__(self, label: str, capacity: int) -> None:
        self.label = label
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
        """Its memory in that form."""
        return self._memory[: math.prod(shape) * dtype.itemsize].view(dtype).reshape(shape)


class LentTensor:
    """A tensor in a `StoreBuffer`, which is free again when nobody holds this any more: senders do, and open loans.

    Args:
        buffer: Where it lies.
        dtype: Its dtype.
        shape: Its shape.
        give_back: Takes the buffer in the end, on any thread; it must not wait.
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
        """What a receiver on this node is told of it, who has mapped its buffer or has not."""
        described = () if is_mapped else describe(self.buffer.ref)[1:]
        return Loan(number, self.buffer.identity, dtype_name(self.dtype), tuple(self.shape), *described)

    def copy(self) -> Any:
        """A reference to an object of the same content that nobody writes anew."""
        if self._copy is None:
            self._copy = put(self.array)
        return self._copy

    def __del__(self) -> None:
        self._give_back(self.buffer)


class StoreBuffers:
    """The objects through which this process sends."""

    def __init__(self) -> None:
        self._free: dict[str, list[StoreBuffer]] = {}
        self._given_back: deque[StoreBuffer] = deque()
        self._made_since = 0.0
        self._next_search = 0.0
        self._lock = threading.Lock()

    def write(self, label: str, array: Any) -> LentTensor:
        """Copy a tensor of numbers into an object that nobody reads.

        Args:
            label: Tells tensors apart that go to different places: each finds the object through which the last went.
            array: The tensor, on the host.
        """
        tensor = self.reserve(label, array.dtype, array.shape)
        np.copyto(tensor.array, array)
        return tensor

    def reserve(self, label: str, dtype: Any, shape: Sequence[int]) -> LentTensor:
        """The same for a tensor that is still to be computed, into `LentTensor.array`."""
        buffer = self._take(label, math.prod(shape) * dtype.itemsize)
        return LentTensor(buffer, dtype, shape, self._given_back.append)

    def _take(self, label: str, size: int) -> StoreBuffer:
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
        return StoreBuffer(label, size + size // 4 if free else size)  # what has grown may grow again

    def clear(self) -> None:
        """Let go of all that nobody reads now, and of the rest once it has been given back."""
        self._made_since, self._next_search = time.monotonic(), 0.0
        self.tidy()

    def tidy(self) -> None:
        """Make free what has been given back, and let go of what is of no use any more."""
        now = time.monotonic()
        if not self._given_back and now < self._next_search:
            return
        dropped: list[StoreBuffer] = []
        with self._lock:
            while self._given_back:
                buffer = self._given_back.popleft()
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
    """Tell all that have mapped them."""
    for buffer in buffers:
        for peer in list(buffer.mapped_by):
            peer.unmap(buffer.identity)


class Lender:
    """Who lends tensors to this process over a link.

    Args:
        link: The link.
    """

    def __init__(self, link: Link) -> None:
        self._link = link
        self._mapped: dict[bytes, Any] = {}
        self._returns: deque[int] = deque()
        self._borrowed = 0
        self._returned = 0
        self._lock = threading.Lock()

    @property
    def has_all(self) -> bool:
        """Whether all that it has lent has been returned."""
        return self._borrowed == self._returned

    def borrow(self, loans: Sequence[Loan]) -> list[Any] | None:
        """The tensors, read-only; None if some object is not in this node's store. Raises `ValueError` for nonsense."""
        if len(self._returns) >= _RETURNED_TOGETHER:
            self.give_back()
        arrays = []
        for number, identity, dtype, shape, owner, status in loans:
            mapped = self._mapped.get(identity)
            if mapped is None:
                if not owner:
                    raise ValueError("a loan of what has never been mapped")
                found = find([Description(identity, owner, status)])
                if found is None:
                    return None
                mapped = self._mapped[identity] = found[0]
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
        """The loans to return, which are returned by this. Any thread may call this."""
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
    """The memory of an object, as NumPy takes it. It lives as long as any array in that memory.

    Args:
        mapped: The bytes of the object.
        returns: Where to note that the loan is to be returned.
        number: Of the loan.
    """

    def __init__(self, mapped: Any, returns: deque[int], number: int) -> None:
        self._mapped = mapped
        self._returns = returns
        self._number = number
        self.__array_interface__ = mapped.__array_interface__

    def __del__(self) -> None:
        self._returns.append(self._number)


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
        """Note that the message has not left that was to take along what `returns_to` gave."""
        lender = self._by_device.get(device)
        if lender is not None:
            lender.keep_returns(returns)

    def forget(self, link: Link) -> None:
        """Note that a link has closed."""
        gone = self._lenders.pop(link, None)
        self._by_device = {device: lender for device, lender in self._by_device.items() if lender is not gone}

    def _give_back(self) -> bool:
        """Return what no message has taken along. Returns whether there may be more to return later."""
        for lender in list(self._lenders.values()):
            lender.give_back()
        self._is_watched = not all(lender.has_all for lender in list(self._lenders.values()))
        return self._is_watched


class Loans:
    """What the process of a device lends and borrows.

    Args:
        device: The device.

    Attributes:
        buffers: The objects through which it sends.
        borrowings: What it reads.
    """

    def __init__(self, device: str = "") -> None:
        self.device = device
        self.buffers = StoreBuffers()
        self.borrowings = Borrowings()
