"""Tensor streams: large tensors to processes of other nodes, from the sender's memory into the receiver's store.

Beside its link (`peer_link.py`), a process opens streams to a process of another node, over which nothing travels but
the bytes of tensors. So no message waits behind a tensor. The bytes leave from the object in which a `LentTensor` lies,
and are read into an object of the receiver's store. No process copies them otherwise.

A tensor is cut into chunks. Whichever stream is free takes the next one. A message over the link tells for which step
a tensor is (`messages.Streamed`). It may come before the tensor or after it (`IncomingTensors`).

What is needed first overtakes what waits. A training step computes its layers forward, and their gradients backward. So
parameters leave in the order in which the first step sent them, and gradients in the opposite order: the last one is of
the layer with which the next step begins. A tensor of which little is left is not overtaken: its receiver makes use of
it, and would otherwise have nothing to do.

All streams of a process share one thread that sends and one that reads. The sending one waits for no receiver: a tensor
waits in the memory in which it lies. A stream that breaks closes the link, as the end of a process would.

References:
    Peng et al., "A Generic Communication Scheduler for Distributed DNN Training Acceleration" (ByteScheduler),
    SOSP 2019, section 2 (priorities of layers).
"""

from __future__ import annotations

import heapq
import math
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

import numpy as np

from tfray.actors.links.frames import dtype_named
from tfray.actors.links.loans import LentTensor, StoreBuffers
from tfray.actors.links.messages import Streamed
from tfray.actors.links.peer_link import Link, LinkReader
from tfray.errors import DataLossError

STREAMS: Final = 2
"""Streams to a process. One alone does not fill a fast network: the other end's acknowledgements pace it."""

CHUNK_BYTES: Final = 1 << 20
"""Size of a chunk in bytes. The streams of a pair share the work in such pieces: each takes milliseconds to send at
1 Gbit/s, and a tensor that overtakes others waits no longer than that."""

LITTLE_LEFT: Final = 8
"""Of a tensor of which as many chunks are left, or fewer, all leave before another tensor does."""

MAX_TENSOR_BYTES: Final = 1 << 40
"""A tensor that claims to be longer, in bytes, is malformed."""

_CHUNK: Final = struct.Struct("<QQQQ")
"""What precedes a chunk: the tensor's number, its size, where in it the chunk belongs, and the chunk's size."""

_SENDING: Final = LinkReader("tfray-stream-sender")
_READING: Final = LinkReader("tfray-stream-reader")


class _Chunk(NamedTuple):
    """A piece of a tensor. It keeps the tensor, which may not be overwritten before it has left."""

    tensor: LentTensor
    parts: tuple[memoryview, memoryview]


class _Waiting(NamedTuple):
    """A tensor of which chunks are to be sent. Those that are needed first compare as less."""

    rank: int
    number: int
    chunks: deque[_Chunk]


class OutgoingStreams:
    """The streams to one process.

    Args:
        connect: Opens a stream.
        failed: Called once when a stream has broken, on the sending thread.

    Raises:
        OSError, EOFError, AuthenticationError: The process cannot be reached, or does not hold the key.

    Attributes:
        sent_bytes: Bytes of the chunks that have begun to leave so far.
    """

    def __init__(self, connect: Callable[[], socket.socket], failed: Callable[[], None]) -> None:
        self.sent_bytes = 0
        self._failed = failed
        self._waiting: list[_Waiting] = []
        """A heap. None of its numbers occurs twice."""
        self._begun: _Waiting | None = None
        self._ranks: dict[str, int] = {}
        """By label: how many other labels had been sent before it was sent for the first time."""
        self._lock = threading.Lock()
        self._is_closed = False
        self._streams: list[_OutgoingStream] = []
        try:
            for _ in range(STREAMS):
                self._streams.append(_OutgoingStream(connect(), self))
        except BaseException:
            for stream in self._streams:
                stream.stream.close()
            raise
        for stream in self._streams:
            _SENDING.add(stream)

    def send(self, number: int, tensor: LentTensor, label: str, is_gradient: bool) -> None:
        """Send a tensor. Returns at once.

        Args:
            number: By which the message names it.
            tensor: The tensor.
            label: The same for this tensor in each step.
            is_gradient: Whether it overtakes what was sent before it in the first step, and not the other way round.
        """
        data = memoryview(tensor.array.reshape(-1).view(np.uint8))
        size = len(data)
        chunks = deque[_Chunk]()
        for start in range(0, size, CHUNK_BYTES):
            piece = data[start : start + CHUNK_BYTES]
            head = memoryview(_CHUNK.pack(number, size, start, len(piece)))
            chunks.append(_Chunk(tensor, (head, piece)))
        with self._lock:
            if self._is_closed:
                return
            rank = self._ranks.setdefault(label, len(self._ranks))
            heapq.heappush(self._waiting, _Waiting(-rank if is_gradient else rank, number, chunks))
            resting = [stream for stream in self._streams if stream.is_resting][: len(chunks)]
            for stream in resting:
                stream.is_resting = False
        for stream in resting:
            _SENDING.want_room(stream, True)

    def next_chunk(self, stream: _OutgoingStream) -> _Chunk | None:
        """The chunk that a stream sends next; None if there is none, and the stream rests."""
        with self._lock:
            begun = self._begun
            if begun is None or not begun.chunks:
                begun = heapq.heappop(self._waiting) if self._waiting else None
            elif len(begun.chunks) > LITTLE_LEFT:
                begun = heapq.heappushpop(self._waiting, begun)
            self._begun = begun
            if begun is None:
                stream.is_resting = True
                return None
            chunk = begun.chunks.popleft()
            self.sent_bytes += len(chunk.parts[1])
            return chunk

    def close(self) -> None:
        """Send nothing more."""
        with self._lock:
            self._is_closed = True
            self._waiting.clear()
            self._begun = None
        for stream in self._streams:
            with suppress(OSError):
                stream.stream.shutdown(socket.SHUT_RDWR)  # its end is read, and closes it

    def broke(self) -> None:
        """Note that a stream has ended, at either end."""
        with self._lock:
            if self._is_closed:
                return
        self.close()
        self._failed()


class _OutgoingStream:
    """One stream on the sending side. All methods are for the sending thread.

    Attributes:
        is_resting: Whether it has nothing to send. Its owner's lock guards this.
    """

    def __init__(self, stream: socket.socket, owner: OutgoingStreams) -> None:
        stream.setblocking(False)
        self.stream = stream
        self.is_resting = True
        self._owner = owner
        self._chunk: _Chunk | None = None
        self._unsent: list[memoryview] = []

    def has_room(self) -> None:
        """Send as much as the stream takes, at most to the end of a chunk."""
        if self._chunk is None:
            self._chunk = self._owner.next_chunk(self)
            if self._chunk is None:
                _SENDING.want_room(self, False)
                return
            self._unsent = list(self._chunk.parts)
        try:
            sent = self.stream.sendmsg(self._unsent)
        except BlockingIOError:
            return
        except OSError:
            _SENDING.want_room(self, False)  # the end of the stream is about to be read
            return
        while self._unsent and sent >= len(self._unsent[0]):
            sent -= len(self._unsent.pop(0))
        if self._unsent:
            self._unsent[0] = self._unsent[0][sent:]
        else:
            self._chunk = None

    def has_data(self, buffer: memoryview) -> bool:
        """Read the end of the stream: receivers send nothing. Returns False."""
        self.stream.recv_into(buffer)
        return False

    def end(self) -> None:
        """Close it."""
        self.stream.close()
        self._chunk, self._unsent = None, []
        self._owner.broke()


class _Arriving:
    """A tensor of which chunks have come, or which a message has named. `IncomingTensors` guards its fields."""

    def __init__(self) -> None:
        self.room: LentTensor | None = None
        self.missing = 0
        self.streams: set[IncomingStream] = set()
        self.claim: _Claim | None = None

    @property
    def has_all(self) -> bool:
        return self.room is not None and not self.missing


class Arrived(NamedTuple):
    """A tensor that has come.

    Attributes:
        array: The tensor, read-only.
        lent: The tensor in this process's store, to be lent to others.
    """

    array: Any
    lent: LentTensor


class _Claim(NamedTuple):
    """A message that names tensors, and what to do once all are there."""

    link: Link
    named: Sequence[Streamed]
    take: Callable[[list[Arrived]], None]


class IncomingTensors:
    """The tensors that come to one process over streams.

    Args:
        buffers: Where room for them is made.
    """

    def __init__(self, buffers: StoreBuffers) -> None:
        self._buffers = buffers
        self._tensors: dict[int, _Arriving] = {}
        self._lock = threading.Lock()

    def take_stream(self, stream: socket.socket) -> None:
        """Begin to read from a stream that another process has opened."""
        _READING.add(IncomingStream(stream, self))

    def claim(self, link: Link, named: Sequence[Streamed], take: Callable[[list[Arrived]], None]) -> None:
        """Wait for the tensors that a message over `link` names.

        Args:
            link: The link. When it closes, what has not come is not waited for any more.
            named: The tensors.
            take: Called with them once all are there: at once, or on the thread that reads streams.
        """
        claim = _Claim(link, named, take)
        with self._lock:
            for each in named:
                self._tensors.setdefault(each.number, _Arriving()).claim = claim
            arrived = self._complete(claim)
        if arrived is not None:
            take(arrived)

    def forget(self, link: Link) -> None:
        """Drop the claims of messages that came over a link: it has closed."""
        self._drop(lambda each: each.claim is not None and each.claim.link is link)

    def forget_stream(self, stream: IncomingStream) -> None:
        """Drop what has come over a stream that has ended, and was never named or is not complete.

        Its sender is gone. So is the room that only it needed: nothing else may come for a long time, to look for it.
        """
        self._drop(lambda each: stream in each.streams and (each.claim is None or not each.has_all))
        self._buffers.clear()

    def _drop(self, is_lost: Callable[[_Arriving], bool]) -> None:
        """Drop tensors, and with them all others that the same messages name."""
        with self._lock:
            lost = {number: each.claim for number, each in self._tensors.items() if is_lost(each)}
            claims = [claim for claim in lost.values() if claim is not None]
            self._tensors = {
                number: each
                for number, each in self._tensors.items()
                if number not in lost and not any(each.claim is claim for claim in claims)
            }

    def room(self, stream: IncomingStream, number: int, size: int) -> LentTensor:
        """The memory into which a tensor is read, as bytes. Who writes there holds it: nobody else is given it then."""
        with self._lock:
            each = self._tensors.setdefault(number, _Arriving())
            each.streams.add(stream)
            if each.room is None:
                # Steps repeat, and their tensors have the same sizes: so the same objects serve again.
                each.room = self._buffers.reserve(f"streamed {size}", np.dtype(np.uint8), (size,))
                each.missing = size
            if each.room.shape != (size,):
                raise DataLossError(f"a tensor of {each.room.shape[0]} bytes that claims to have {size}")
            return each.room

    def filled(self, number: int, count: int) -> None:
        """Note that so many more bytes of a tensor are there."""
        arrived = None
        with self._lock:
            each = self._tensors.get(number)
            if each is None:
                return  # nobody waits for it any more
            each.missing -= count
            if each.missing < 0:
                raise DataLossError("more bytes of a tensor than it has")
            claim = each.claim
            if claim is not None and each.has_all:
                arrived = self._complete(claim)
        if arrived is not None and claim is not None:
            claim.take(arrived)

    def _complete(self, claim: _Claim) -> list[Arrived] | None:
        """The tensors of a claim, if all are there. Call with the lock held."""
        if not all(self._tensors[each.number].has_all for each in claim.named):
            return None
        return [_arrived(self._tensors.pop(each.number).room, each) for each in claim.named]


class IncomingStream:
    """One stream on the receiving side. All methods are for the thread that reads streams.

    Args:
        stream: The stream, after the handshake.
        tensors: Where its tensors go.
    """

    def __init__(self, stream: socket.socket, tensors: IncomingTensors) -> None:
        stream.setblocking(False)
        self.stream = stream
        self._tensors = tensors
        self._head = memoryview(bytearray(_CHUNK.size))
        self._wanted = self._head
        self._room: LentTensor | None = None
        self._number = self._count = 0

    def has_room(self) -> None:
        """Nothing: receivers do not send."""

    def has_data(self, buffer: memoryview) -> bool:
        """Read what is there of a chunk, into the memory where it belongs. Returns whether the stream is open."""
        count = self.stream.recv_into(self._wanted)
        self._wanted = self._wanted[count:]
        if not self._wanted:
            self._turn()
        return count > 0

    def _turn(self) -> None:
        """Go on after a chunk, or after what precedes one."""
        if self._count:
            count, self._count = self._count, 0
            self._wanted, self._room = self._head, None
            self._tensors.filled(self._number, count)
            return
        number, size, start, count = _CHUNK.unpack(self._head)
        if not (0 < count <= CHUNK_BYTES and start + count <= size <= MAX_TENSOR_BYTES):
            raise DataLossError(f"a malformed chunk: {count} bytes at {start} of a tensor of {size}")
        self._room = self._tensors.room(self, number, size)
        self._wanted = memoryview(self._room.array)[start : start + count]
        self._number, self._count = number, count

    def end(self) -> None:
        """Close it, and drop what has not come whole."""
        self.stream.close()
        self._wanted, self._room = self._head, None
        self._tensors.forget_stream(self)


class _HeldMemory:
    """The memory of a tensor of this process's store, for NumPy: arrays in that memory keep the tensor."""

    def __init__(self, room: LentTensor) -> None:
        self._room = room
        interface = room.array.__array_interface__
        self.__array_interface__ = {**interface, "data": (interface["data"][0], True)}


def _arrived(room: LentTensor | None, form: Streamed) -> Arrived:
    """The tensor whose bytes lie in that room."""
    dtype = dtype_named(form.dtype)
    if room is None or math.prod(form.shape) * dtype.itemsize != room.shape[0] or min(form.shape, default=0) < 0:
        raise DataLossError(f"{form.dtype}{form.shape} has not the size of what has come")
    array = np.asarray(_HeldMemory(room)).view(dtype).reshape(form.shape)
    room.dtype, room.shape = dtype, form.shape  # of bytes it has become what it holds
    return Arrived(array, room)
