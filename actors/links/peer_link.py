"""Streams between the processes of a cluster: what is small goes straight from one to another, in a twentieth of the
time of an actor call.

Every device actor listens on a Unix socket, for peers on its node, and on a TCP port, for the others. Both ends prove
that they hold the cluster's key, which Ray hands out, before anything else is read (`handshake.py`). What
travels is frames (`frames.py`): nothing is unpickled, and a malformed frame closes the stream. In a process one thread
at a time reads from all its links, and waits for nothing else, so that processes that send to each other at once cannot
block one another. A stream that closes is a peer that is gone.
"""

from __future__ import annotations

import os
import selectors
import socket
import sys
import threading
import time
import traceback
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing import AuthenticationError
from queue import Empty, SimpleQueue
from typing import Any, Final, Generic, TypeVar

from tfray.actors.links import handshake
from tfray.actors.links.frames import FrameReader, Header, Tensors, decode, encode
from tfray.actors.links.handshake import LinkAddress, RefusalLog
from tfray.actors.links.interrupts import InterruptedAfterwards
from tfray.errors import DataLossError
from tfray.runtime.executor import ignore_float_errors

HANDSHAKE_S: Final = 10.0
"""How long a peer may take to connect, and how long to prove that it holds the key, in all."""

MAX_STRANGERS: Final = 64
"""Streams that may be about to prove that they hold the key. When there are more, the oldest is closed."""

_ACCEPT_PAUSE_S: Final = 0.2
"""After an error of `accept`: mostly the process has no file descriptor left."""

MAX_UNSENT_BYTES: Final = 8 << 20
"""What a link keeps of what its peer has not taken yet, before senders wait."""

STALLED_S: Final = 20.0
"""A peer that takes nothing for so long, while a sender waits for it, is gone as far as its link is concerned. That is
also how long TCP waits for another machine's receipt."""

_REST_S: Final = 0.1
"""How long the thread that reads rests after somebody else has read."""

_WATCH_S: Final = 150e-6
"""How long the thread that reads watches for the next message before it sleeps."""

_ANOTHERS_TURN_S: Final = 5e-6
"""To let others run takes longer than this only if somebody has run."""

_IDLE_S: Final = 0.02
"""After so long without a message there is time for what could wait."""

_LONGEST_IDLE_S: Final = 1.0
"""The same when nothing has come for long."""

_READ_BYTES: Final = 1 << 18
_SOCKET_BYTES: Final = 1 << 20

_yield_processor: Final[Callable[[], None]] = getattr(os, "sched_yield", lambda: None)


def _let_others_run_first() -> bool:
    """Let other threads use this core, if they want to. Returns whether any has."""
    asked = time.perf_counter()
    _yield_processor()
    return time.perf_counter() - asked > _ANOTHERS_TURN_S


def _attempted(action: Callable[[], Any]) -> Any:
    """What an action of somebody's returns; None if it fails: that must not end the reading of all links."""
    try:
        return action()
    except Exception:  # noqa: BLE001 (told, and there is nobody to raise it to)
        traceback.print_exc()
        return None


Handle = Callable[["Link", Header, list[Any]], None]
"""Called on the reading thread with each frame that arrives. It must not wait."""

_Item = TypeVar("_Item")

Ended = Callable[["Link"], None]
"""Called once when a link has closed, on either side."""


class Link:
    """One end of a stream. Any thread may send.

    Args:
        stream: The stream, after the handshake.
        handle: Takes what arrives.
        ended: Told when the stream has closed.
    """

    def __init__(self, stream: socket.socket, handle: Handle, ended: Ended) -> None:
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            stream.setsockopt(socket.SOL_SOCKET, option, _SOCKET_BYTES)
        stream.setblocking(False)
        self.stream = stream
        self._handle = handle
        self._ended = ended
        self._frames = FrameReader(self._take)
        self._unsent = bytearray()
        self._taken_bytes = 0
        self._closed = False
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)

    def send(self, header: Header, tensors: Tensors = ()) -> None:
        """Send a frame; wait while the peer is far behind. Raises `OSError` when the peer is gone."""
        self.send_frame(encode(header, tensors))

    def send_frame(self, data: bytes) -> None:
        """As `send`, for what `encode` has made."""
        with self._lock:
            if self._unsent and not _READER.is_current:  # which must not wait: the peer may wait for it
                self._wait_for_room()
            if self._closed:
                raise BrokenPipeError("the link is closed")
            if not self._unsent:
                try:
                    sent = self.stream.send(data)
                except BlockingIOError:
                    sent = 0
                if sent == len(data):
                    return
                data = data[sent:]
                _READER.want_room(self, True)
            self._unsent += data

    def _wait_for_room(self) -> None:
        """Wait until the peer is not far behind. Raises `BrokenPipeError` when it takes nothing. Needs the lock."""
        while not self._closed and len(self._unsent) >= MAX_UNSENT_BYTES:
            taken = self._taken_bytes
            self._changed.wait(STALLED_S)
            if not self._closed and self._taken_bytes == taken:
                self._shut_down()
                raise BrokenPipeError(f"the peer has taken nothing for {STALLED_S:.0f} s")

    def has_room(self) -> None:
        """Send what has been kept. For the reading thread."""
        with self._changed:
            try:
                taken = self.stream.send(self._unsent)
                del self._unsent[:taken]
                self._taken_bytes += taken
            except BlockingIOError:
                return  # somebody was faster
            except OSError:
                self._unsent.clear()  # the end of the stream is about to be read
            if not self._unsent:
                _READER.want_room(self, False)
            self._changed.notify_all()

    def has_data(self, buffer: memoryview) -> bool:
        """Read, and take the frames that are complete. Returns whether the stream is open. For the reading thread."""
        frames = self._frames
        wanted = frames.wanted if frames.is_filling else None
        try:
            count = self.stream.recv_into(buffer if wanted is None else wanted)
            if count and wanted is None:
                frames.feed(buffer[:count])
            elif count:
                frames.filled(count)
        except BlockingIOError:
            return True
        except DataLossError as error:
            print(f"tfray: closed a link: {error}", file=sys.stderr)
            return False
        except OSError:
            return False
        except Exception:  # noqa: BLE001 (one link must not take the others with it; the peer sees it close)
            traceback.print_exc()
            return False
        return count > 0

    def _take(self, body: Any) -> None:
        self._handle(self, *decode(body))

    def end(self) -> None:
        """Close the stream after its end. For the reading thread."""
        with self._changed:
            if self._closed:
                return
            self._closed = True
            self.stream.close()
            self._changed.notify_all()
        self._ended(self)

    def close(self) -> None:
        """Close the stream: readers at both ends come to their end."""
        with self._changed:
            if not self._closed:
                self._shut_down()

    def _shut_down(self) -> None:
        with suppress(OSError):
            self.stream.shutdown(socket.SHUT_RDWR)


class Arrivals(Generic[_Item]):
    """What messages bring to a thread that waits for it. Any thread may add.

    Attributes:
        enough: How many the thread waits for.
        is_urgent: Whether there is one among them for which it would not wait for the others.
    """

    def __init__(self) -> None:
        self.enough = 1
        self.is_urgent = False
        self._queue: SimpleQueue[_Item] = SimpleQueue()

    @property
    def is_enough(self) -> bool:
        """Whether the thread need not wait any more."""
        return self.is_urgent or self._queue.qsize() >= self.enough

    def add(self, item: _Item) -> None:
        """Bring something."""
        self._queue.put(item)

    def take(self, timeout_s: float = 0.0) -> list[_Item]:
        """What is there, or what comes first within that time, in order. For the thread that waits."""
        self.is_urgent = False
        items: list[_Item] = []
        with suppress(Empty):
            items.append(self._queue.get(timeout=timeout_s) if timeout_s > 0 else self._queue.get_nowait())
            while True:
                items.append(self._queue.get_nowait())
        return items


class LinkReader:
    """Reads from all links of a process: a thread that lives as long as there are any, or whoever waits for a message.

    A message wakes the process in any case; it need not wake a second thread where one waits for what the first has
    read. So the first of the threads that wait (`read_until`) reads by itself. The reader's own thread rests meanwhile,
    and takes over again when nobody has waited for a while.
    """

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._buffer = memoryview(bytearray(_READ_BYTES))
        self._waker, self._wakened = socket.socketpair()
        self._waker.setblocking(False)
        self._wakened.setblocking(False)
        self._selector.register(self._wakened, selectors.EVENT_READ, None)
        self._orders: list[tuple[Link, bool | None]] = []
        self._deferred: list[Callable[[], None]] = []
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._reading = threading.Lock()
        self._reader = 0
        self._guests = 0
        self._guest_reads = False
        self._guest_left_at = 0.0
        self._resume = threading.Event()
        self._may_be_idle = False
        self._when_idle: list[Callable[[], bool]] = []
        self._idle_s = _IDLE_S

    @property
    def is_current(self) -> bool:
        """Whether this is the thread that reads."""
        return threading.get_ident() == self._reader

    def add(self, link: Link) -> None:
        """Begin to read from a link."""
        self._order(link, None)

    def want_room(self, link: Link, wants: bool) -> None:
        """Call, or do not call, `Link.has_room` when the stream takes more."""
        self._order(link, wants)

    def defer(self, action: Callable[[], None]) -> None:
        """Call `action` when all messages that are there have been read; at once on any other thread."""
        if threading.get_ident() == self._reader:
            self._deferred.append(action)
        else:
            action()

    def when_idle(self, action: Callable[[], bool]) -> None:
        """Call `action` each time that nothing has come for a while, until it returns False. For the reading thread."""
        self._when_idle.append(action)

    def read_until(self, arrivals: Arrivals[_Item], timeout_s: float) -> list[_Item]:
        """All that has arrived by the time that it is enough, or that the time is over, when it may be less."""
        if arrivals.is_enough:
            return arrivals.take()
        with self._lock:
            self._guests += 1
            is_first = self._guests == 1
        try:
            if is_first:
                self._read_as_guest(arrivals, timeout_s)
            return arrivals.take(0 if is_first else timeout_s)
        finally:
            with self._lock:
                self._guests -= 1
                if is_first and self._guests:
                    self._resume.set()  # somebody must read for the others

    def _read_as_guest(self, arrivals: Arrivals[Any], timeout_s: float) -> None:
        ends = time.monotonic() + timeout_s
        self._guest_reads = True
        try:
            if not self._reading.acquire(blocking=False):
                self._wake()
                if not self._reading.acquire(timeout=timeout_s):
                    return
            try:
                while not arrivals.is_enough and (remaining := ends - time.monotonic()) > 0:
                    events = self._await_events(remaining)
                    with InterruptedAfterwards():  # Ctrl-C within a message would lose it, and with it the link
                        self._take_events(events)
            finally:
                self._reading.release()
        finally:
            self._guest_reads = False
            self._guest_left_at = time.monotonic()

    def _order(self, link: Link, wants_room: bool | None) -> None:
        with self._lock:
            self._orders.append((link, wants_room))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="tfray-links", daemon=True)
                self._thread.start()
        if not self.is_current:
            self._wake()

    def _wake(self) -> None:
        with suppress(BlockingIOError):  # it is about to wake
            self._waker.send(b"!")

    def _run(self) -> None:
        ignore_float_errors()
        while True:
            with self._reading:
                while not self._guest_reads:
                    if self._may_be_idle and self._is_idle():
                        return
                    self._take_events(self._await_events(None))
            while self._guest_reads or time.monotonic() - self._guest_left_at < _REST_S:
                if self._resume.wait(_REST_S):
                    self._resume.clear()
                    break

    def _is_idle(self) -> bool:
        """Whether there are no links; then the thread ends."""
        with self._lock:
            self._may_be_idle = False
            if self._orders or len(self._selector.get_map()) > 1:
                return False
            self._thread = None
            return True

    def _await_events(self, timeout_s: float | None) -> list[tuple[selectors.SelectorKey, int]]:
        if self._orders:
            with InterruptedAfterwards():
                self._follow_orders()
        if self._when_idle:
            timeout_s = self._idle_s if timeout_s is None else min(timeout_s, self._idle_s)
        if self._idle_s == _IDLE_S and not self._guest_reads:  # something has come just now
            events = self._watch()
            if events:
                return events
        events = self._selector.select(timeout_s)
        if not events:
            self._idle_s = min(2 * self._idle_s, _LONGEST_IDLE_S)
            return []
        self._idle_s = _IDLE_S
        # Where processes outnumber cores, those that are about to send may do so first: several messages at once take
        # less time than each by itself.
        return self._selector.select(0) if _let_others_run_first() else events

    def _watch(self) -> list[tuple[selectors.SelectorKey, int]]:
        """What comes within a moment, as long as nobody else wants this core.

        To wake a thread that sleeps takes longer than to handle most messages. A thread that waits for one of several
        answers, such as a driver's, is the last to be needed: it had better sleep.
        """
        now = time.perf_counter()
        ends = now + _WATCH_S
        while now < ends:
            events = self._selector.select(0)
            if events:
                return events
            if _let_others_run_first():
                return self._selector.select(0)
            now = time.perf_counter()
        return []

    def _take_events(self, events: Sequence[tuple[selectors.SelectorKey, int]]) -> None:
        """Handle the messages that are there."""
        self._reader = threading.get_ident()
        try:
            for key, mask in events:
                self._handle(key.data, mask)
            if not events and self._when_idle:
                self._when_idle = [action for action in self._when_idle if _attempted(action)]
            while self._deferred:
                deferred, self._deferred = self._deferred, []
                for action in deferred:
                    _attempted(action)
        finally:
            self._reader = 0

    def _handle(self, link: Link | None, events: int) -> None:
        if link is None:
            self._wakened.recv(1 << 10)
            return
        if events & selectors.EVENT_WRITE:
            link.has_room()
        if events & selectors.EVENT_READ and not link.has_data(self._buffer):
            self._selector.unregister(link.stream)
            self._may_be_idle = True
            _attempted(link.end)

    def _follow_orders(self) -> None:
        """Do what `add` and `want_room` ask for."""
        with self._lock:
            orders, self._orders = self._orders, []
        for link, wants_room in orders:
            events = selectors.EVENT_READ | (selectors.EVENT_WRITE if wants_room else 0)
            if link.stream.fileno() < 0:
                continue  # it has been closed meanwhile
            if wants_room is None:
                self._selector.register(link.stream, events, link)
            elif link.stream.fileno() in self._selector.get_map():
                self._selector.modify(link.stream, events, link)


_READER: Final = LinkReader()

defer: Final = _READER.defer
when_idle: Final = _READER.when_idle
read_until: Final = _READER.read_until


class LinkServer:
    """The listening side of one actor.

    Args:
        key: The cluster's key.
        node: Ray's identity of this node.
        host: Address of this node that others can reach.
        handle: Called on the reading thread with each frame, and the link to answer on.
        ended: Told when a link has closed.
    """

    def __init__(self, key: bytes, node: str, host: str, handle: Handle, ended: Ended) -> None:
        self._key = key
        self._handle = handle
        self._ended = ended
        self._refusals = RefusalLog()
        self._strangers: dict[socket.socket | None, None] = {}
        """Streams that have proved nothing yet, the oldest first."""
        self._lock = threading.Lock()
        self._closing = threading.Event()
        path = f"\0tfray-{uuid.uuid4().hex}" if sys.platform == "linux" else ""
        self._listeners = [socket.create_server((host, 0))]
        if path:
            listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            listener.bind(path)
            listener.listen(128)
            self._listeners.append(listener)
        self.address = LinkAddress(node, path, host, self._listeners[0].getsockname()[1])
        for listener in self._listeners:
            threading.Thread(target=self._accept, args=(listener,), name="tfray-accept", daemon=True).start()

    def close(self) -> None:
        """Stop listening; links that are open stay so."""
        self._closing.set()
        for listener in self._listeners:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)  # ends `accept`, which closing does not
            listener.close()

    def _accept(self, listener: socket.socket) -> None:
        while not self._closing.is_set():
            try:
                stream, _ = listener.accept()
            except OSError as error:
                if not self._closing.is_set():
                    self._refusals.refused(f"it cannot be accepted: {error}")
                self._closing.wait(_ACCEPT_PAUSE_S)  # descriptors may be free then
                continue
            self._meet(stream)

    def _meet(self, stream: socket.socket) -> None:
        """Let a stream prove itself on a thread of its own: it must not keep further peers waiting."""
        with self._lock:
            oldest = next(iter(self._strangers)) if len(self._strangers) == MAX_STRANGERS else None
            self._strangers.pop(oldest, None)
            self._strangers[stream] = None
        if oldest is not None:  # a peer takes milliseconds: the oldest is the least likely to be one
            with suppress(OSError):
                oldest.shutdown(socket.SHUT_RDWR)
        try:
            threading.Thread(target=self._welcome, args=(stream,), name="tfray-handshake", daemon=True).start()
        except RuntimeError as error:  # there is no thread left
            self._leave(stream, error)

    def _welcome(self, stream: socket.socket) -> None:
        try:
            if stream.family != socket.AF_UNIX:
                _prepare_tcp(stream)
            handshake.accept(stream, self.address, self._key, HANDSHAKE_S)
            link = Link(stream, self._handle, self._ended)
        except (AuthenticationError, EOFError, OSError) as error:
            self._leave(stream, error)
            return
        with self._lock:
            self._strangers.pop(stream, None)
        _READER.add(link)

    def _leave(self, stream: socket.socket, error: Exception) -> None:
        with self._lock:
            self._strangers.pop(stream, None)
        stream.close()
        self._refusals.refused(error)


def open_link(address: LinkAddress, key: bytes, node: str, handle: Handle, ended: Ended) -> Link:
    """Connect to an actor, and begin to read.

    Args:
        address: Where it listens.
        key: The cluster's key.
        node: Ray's identity of this node.
        handle: Called on the reading thread with each frame.
        ended: Told when the link has closed.

    Raises:
        OSError, EOFError: The peer cannot be reached.
        AuthenticationError: It does not hold the key.
    """
    is_near = bool(address.path) and address.node == node
    stream = socket.socket(socket.AF_UNIX if is_near else socket.AF_INET, socket.SOCK_STREAM)
    try:
        stream.settimeout(HANDSHAKE_S)
        if is_near:
            stream.connect(address.path)
        else:
            stream.connect((address.host, address.port))
            _prepare_tcp(stream)
        handshake.connect(stream, address, key, HANDSHAKE_S)
        link = Link(stream, handle, ended)
    except BaseException:
        stream.close()
        raise
    _READER.add(link)
    return link


def _prepare_tcp(stream: socket.socket) -> None:
    """Let small frames leave at once, and the stream close when the other node has vanished.

    Keep-alive messages find that out of a stream on which nothing is under way; `TCP_USER_TIMEOUT` where something is,
    for which TCP itself would wait a quarter of an hour.
    """
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    options = {"TCP_KEEPIDLE": 5, "TCP_KEEPINTVL": 2, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": int(STALLED_S * 1e3)}
    for name, value in options.items():
        if hasattr(socket, name):
            stream.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
