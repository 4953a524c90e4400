"""Links: streams between the processes of a cluster. A small message takes a twentieth of the time of an actor call.

Every device actor listens on a Unix socket, for peers on its node, and on a TCP port, for the others. Both ends prove
that they hold the cluster's key, which Ray hands out, before anything else is read (`handshake.py`). Frames travel on a
link (`frames.py`): nothing is unpickled, and a malformed frame closes the stream. One thread at a time reads from all
links of a process. It never waits for a peer to take what it sends: so two processes that send to each other at once
cannot block one another. A stream that has closed means that the peer is gone.
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
from typing import Any, Final, Generic, Protocol, TypeVar

from tfray.actors.links import handshake
from tfray.actors.links.frames import FrameReader, Header, Tensors, decode, encode
from tfray.actors.links.handshake import LinkAddress, Purpose, RefusalLog
from tfray.actors.links.interrupts import InterruptedAfterwards
from tfray.actors.links.notices import notice
from tfray.errors import DataLossError
from tfray.runtime.executor import ignore_float_errors

HANDSHAKE_S: Final = 10.0
"""Seconds that a peer may take to connect, and again to prove that it holds the key. Peers take milliseconds."""

MAX_STRANGERS: Final = 64
"""How many streams may be open that have not proved yet that they hold the key. One more closes the oldest of them."""

_ACCEPT_PAUSE_S: Final = 0.2
"""Seconds to wait after an error of `accept`. Mostly the process has no file descriptor left: others may close one."""

MAX_UNSENT_BYTES: Final = 8 << 20
"""Bytes that a link keeps for a peer that does not take them yet. Senders wait while there are so many or more."""

STALLED_S: Final = 20.0
"""Seconds after which a sender that waits closes the link, because its peer has taken nothing. TCP closes the stream
after the same time when another machine does not acknowledge what was sent."""

_REST_S: Final = 0.1
"""Seconds that the reader's own thread rests after a guest has read, which is a thread that waits for its message
(`read_until`). Within them the guest may read again without waking this thread. Other messages wait meanwhile."""

_WATCH_S: Final = 150e-6
"""Seconds that the reader's own thread polls for the next message before it sleeps: within a step messages come soon
after one another, and to wake the thread takes longer than to handle most of them. Polling keeps a core busy."""

_SWITCH_S: Final = 5e-6
"""When `sched_yield` takes longer than this, in seconds, another thread has run. It is faster when none wants to."""

_IDLE_S: Final = 0.02
"""Seconds without a message after which the `when_idle` actions are called. Each further call waits twice as long."""

_LONGEST_IDLE_S: Final = 1.0
"""The longest wait between two such calls, in seconds."""

_READ_BYTES: Final = 1 << 18
"""Size of the buffer for small frames. The rest of a longer frame is read straight into memory of its own."""

_SOCKET_BYTES: Final = 1 << 20
"""Size that each socket asks of the system for what is on its way, in either direction."""

_yield_processor: Final[Callable[[], None]] = getattr(os, "sched_yield", lambda: None)


def _let_others_run_first() -> bool:
    """Let other threads use this core, if they want to. Returns whether one has done so."""
    asked = time.perf_counter()
    _yield_processor()
    return time.perf_counter() - asked > _SWITCH_S


def _attempted(action: Callable[[], Any]) -> Any:
    """Call an action. Returns its result, or None if it fails: its error must not end the reading of all links."""
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
            # The reading thread must not wait here: the peer's reader may be waiting for it in the same way.
            if self._unsent and not _READER.is_current:
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
        """Wait until little is unsent. Raises `BrokenPipeError` if the peer takes nothing. Call with the lock held."""
        while not self._closed and len(self._unsent) >= MAX_UNSENT_BYTES:
            taken = self._taken_bytes
            self._changed.wait(STALLED_S)
            if not self._closed and self._taken_bytes == taken:
                self._shut_down()
                raise BrokenPipeError(f"the peer has taken nothing for {STALLED_S:.0f} s")

    def has_room(self) -> None:
        """Send what `send_frame` has kept, as far as the stream takes it. For the reading thread."""
        with self._changed:
            try:
                taken = self.stream.send(self._unsent)
                del self._unsent[:taken]
                self._taken_bytes += taken
            except BlockingIOError:
                return  # another send has filled the stream meanwhile
            except OSError:
                self._unsent.clear()  # the end of the stream is about to be read
            if not self._unsent:
                _READER.want_room(self, False)
            self._changed.notify_all()

    def has_data(self, buffer: memoryview) -> bool:
        """Read, and take the frames that are complete. Returns whether the stream is open. For the reading thread."""
        frames = self._frames
        wanted = frames.wanted if frames.is_filling else None
        count = self.stream.recv_into(buffer if wanted is None else wanted)
        if count and wanted is None:
            frames.feed(buffer[:count])
        elif count:
            frames.filled(count)
        return count > 0

    def _take(self, body: Any) -> None:
        self._handle(self, *decode(body))

    def end(self) -> None:
        """Close the stream, whose end has been read, and tell `ended`. For the reading thread."""
        with self._changed:
            if self._closed:
                return
            self._closed = True
            self.stream.close()
            self._changed.notify_all()
        self._ended(self)

    def close(self) -> None:
        """Shut the stream down. The readers at both ends then read its end, and call `end`."""
        with self._changed:
            if not self._closed:
                self._shut_down()

    def _shut_down(self) -> None:
        with suppress(OSError):
            self.stream.shutdown(socket.SHUT_RDWR)


class Arrivals(Generic[_Item]):
    """A queue of items that messages bring to one waiting thread. Any thread may add.

    Attributes:
        enough: For how many items the thread waits.
        is_urgent: Whether the thread should wait no longer, because of one of the items. Whoever adds it sets this.
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


class Readable(Protocol):
    """A stream as its reader sees it. The reader calls all methods, on its thread.

    Attributes:
        stream: The stream, which does not block.
    """

    stream: socket.socket

    def has_room(self) -> None:
        """Send what waits: the stream takes more."""

    def has_data(self, buffer: memoryview) -> bool:
        """Read what is there, if need be through `buffer`. Returns whether the stream is open.

        Raises:
            OSError: The stream has broken; it is closed. A `BlockingIOError` says only that there is nothing.
            DataLossError: What came makes no sense; the stream is closed.
        """

    def end(self) -> None:
        """Close the stream, whose end has been read."""


class LinkReader:
    """Reads from all links of a process, on one thread at a time.

    The reader has a thread of its own, which lives as long as there are links, or actions for when it is idle. A thread
    that waits for a message (`read_until`) may read in its place, as its *guest*: then the message wakes one thread
    instead of two. Only the first of several threads that wait becomes the guest. The reader's own thread rests
    meanwhile, and takes over again when nobody has waited for `_REST_S`.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._selector = selectors.DefaultSelector()
        self._buffer = memoryview(bytearray(_READ_BYTES))
        self._waker, self._wakened = socket.socketpair()
        self._waker.setblocking(False)
        self._wakened.setblocking(False)
        self._selector.register(self._wakened, selectors.EVENT_READ, None)
        self._orders: list[tuple[Readable, bool | None]] = []
        self._deferred: list[Callable[[], None]] = []
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._reading = threading.Lock()
        self._reader = 0
        self._guests = 0  # threads in `read_until`; the first of them reads, and so is the guest
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

    def add(self, link: Readable) -> None:
        """Begin to read from a link."""
        self._order(link, None)

    def want_room(self, link: Readable, wants: bool) -> None:
        """Say whether to call `Link.has_room` when the stream takes more."""
        self._order(link, wants)

    def defer(self, action: Callable[[], None]) -> None:
        """On the reading thread: call `action` once all messages that are there have been read. Elsewhere: at once."""
        if threading.get_ident() == self._reader:
            self._deferred.append(action)
        else:
            action()

    def when_idle(self, action: Callable[[], bool]) -> None:
        """On the reading thread, call `action` whenever no message has come for a while, until it returns False."""
        with self._lock:
            self._when_idle.append(action)
            self._begin()
        if not self.is_current:
            self._wake()  # it may sleep until the next message

    def read_until(self, arrivals: Arrivals[_Item], timeout_s: float) -> list[_Item]:
        """Wait until `arrivals.is_enough`, at most for `timeout_s`. Returns all that has arrived, enough or not."""
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
                    self._resume.set()  # the others do not read: the reader's own thread must

    def _read_as_guest(self, arrivals: Arrivals[Any], timeout_s: float) -> None:
        """Read in place of the reader's own thread, which is woken if it sleeps in `select`."""
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
                    with InterruptedAfterwards():  # Ctrl-C within a frame would lose it, and so break the link
                        self._take_events(events)
            finally:
                self._reading.release()
        finally:
            self._guest_reads = False
            self._guest_left_at = time.monotonic()

    def _order(self, link: Readable, wants_room: bool | None) -> None:
        with self._lock:
            self._orders.append((link, wants_room))
            self._begin()
        if not self.is_current:
            self._wake()

    def _begin(self) -> None:
        """Start the reader's own thread if it does not run. Call it with the lock held."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()

    def _wake(self) -> None:
        with suppress(BlockingIOError):  # the socket is full: the thread is about to wake
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
        """Whether there are no links, and no actions for when it is idle; then the thread ends."""
        with self._lock:
            self._may_be_idle = False
            if self._orders or self._when_idle or len(self._selector.get_map()) > 1:
                return False
            self._thread = None
            return True

    def _await_events(self, timeout_s: float | None) -> list[tuple[selectors.SelectorKey, int]]:
        if self._orders:
            with InterruptedAfterwards():
                self._follow_orders()
        if self._when_idle:
            timeout_s = self._idle_s if timeout_s is None else min(timeout_s, self._idle_s)
        if self._idle_s == _IDLE_S and not self._guest_reads:  # a message has come just now: the next may be near
            events = self._watch()
            if events:
                return events
        events = self._selector.select(timeout_s)
        if not events:
            self._idle_s = min(2 * self._idle_s, _LONGEST_IDLE_S)
            return []
        self._idle_s = _IDLE_S
        # Where processes outnumber cores, let those that are about to send do so first: to handle several messages at
        # once takes less time than to handle each by itself.
        return self._selector.select(0) if _let_others_run_first() else events

    def _watch(self) -> list[tuple[selectors.SelectorKey, int]]:
        """Poll for `_WATCH_S`, as long as no other thread wants this core. Returns what has come, if anything.

        To wake a thread that sleeps takes longer than to handle most messages. A guest does not poll: it mostly is a
        driver that waits for several answers, and what it would do with the first can wait.
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
                with self._lock:
                    actions, self._when_idle = self._when_idle, []
                kept = [action for action in actions if _attempted(action)]
                with self._lock:
                    self._when_idle[:0] = kept
                    self._may_be_idle |= not self._when_idle
            while self._deferred:
                deferred, self._deferred = self._deferred, []
                for action in deferred:
                    _attempted(action)
        finally:
            self._reader = 0

    def _handle(self, link: Readable | None, events: int) -> None:
        if link is None:
            self._wakened.recv(1 << 10)
            return
        if events & selectors.EVENT_WRITE:
            link.has_room()
        if events & selectors.EVENT_READ and not self._is_open(link):
            self._selector.unregister(link.stream)
            self._may_be_idle = True
            _attempted(link.end)

    def _is_open(self, link: Readable) -> bool:
        """Let a stream read. Returns whether it is open."""
        try:
            return link.has_data(self._buffer)
        except BlockingIOError:
            return True
        except DataLossError as error:
            notice(f"closed a connection: {error}")
        except OSError:
            pass  # it has broken, as streams do
        except Exception:  # noqa: BLE001 (one stream must not take the others with it; the peer sees it close)
            traceback.print_exc()
        return False

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


_READER: Final = LinkReader("tfray-links")

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
        take_tensors: Takes a stream that a peer has opened to send tensors. Without it, such streams are refused.
    """

    def __init__(
        self,
        key: bytes,
        node: str,
        host: str,
        handle: Handle,
        ended: Ended,
        take_tensors: Callable[[socket.socket], None] | None = None,
    ) -> None:
        self._key = key
        self._handle = handle
        self._ended = ended
        self._take_tensors = take_tensors
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
        self._refusals.close()
        for listener in self._listeners:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)  # ends `accept`, which closing does not
            listener.close()
        with self._lock:
            strangers = [stream for stream in self._strangers if stream is not None]
        for stream in strangers:  # ends their handshakes
            with suppress(OSError):
                stream.shutdown(socket.SHUT_RDWR)

    def _accept(self, listener: socket.socket) -> None:
        while not self._closing.is_set():
            try:
                stream, _ = listener.accept()
            except OSError as error:
                if not self._closing.is_set():
                    self._refusals.refused(f"it cannot be accepted: {error}")
                self._closing.wait(_ACCEPT_PAUSE_S)  # a file descriptor may be free then
                continue
            self._meet(stream)

    def _meet(self, stream: socket.socket) -> None:
        """Check a new stream's key on a thread of its own, so that further peers need not wait for it."""
        with self._lock:
            if self._closing.is_set():
                stream.close()
                return
            oldest = next(iter(self._strangers)) if len(self._strangers) == MAX_STRANGERS else None
            self._strangers.pop(oldest, None)
            self._strangers[stream] = None
        if oldest is not None:  # a peer proves its key in milliseconds: the oldest is the least likely to be one
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
            purpose = handshake.accept(stream, self.address, self._key, HANDSHAKE_S)
            if purpose is Purpose.TENSORS and self._take_tensors is None:
                raise AuthenticationError("this process takes no streams of tensors")
            link = Link(stream, self._handle, self._ended) if purpose is Purpose.LINK else None
        except (AuthenticationError, EOFError, OSError) as error:
            self._leave(stream, error)
            return
        with self._lock:
            self._strangers.pop(stream, None)
        if link is not None:
            _READER.add(link)
        elif self._take_tensors is not None:
            self._take_tensors(stream)

    def _leave(self, stream: socket.socket, error: Exception) -> None:
        with self._lock:
            self._strangers.pop(stream, None)
        stream.close()
        self._refusals.refused(error)


UNSENT_BYTES: Final = 1 << 19
"""Bytes that the system takes from a stream of tensors before it can send them: they can no longer be overtaken. Less
would make a fast network wait for this process."""


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
    link = Link(_open(address, key, Purpose.LINK, is_near), handle, ended)
    _READER.add(link)
    return link


def open_tensor_stream(address: LinkAddress, key: bytes) -> socket.socket:
    """Connect to an actor of another node, to send it tensors. Raises as `open_link` does."""
    stream = _open(address, key, Purpose.TENSORS, is_near=False)
    if hasattr(socket, "TCP_NOTSENT_LOWAT"):
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES)
    return stream


def _open(address: LinkAddress, key: bytes, purpose: Purpose, is_near: bool) -> socket.socket:
    stream = socket.socket(socket.AF_UNIX if is_near else socket.AF_INET, socket.SOCK_STREAM)
    try:
        stream.settimeout(HANDSHAKE_S)
        if is_near:
            stream.connect(address.path)
        else:
            stream.connect((address.host, address.port))
            _prepare_tcp(stream)
        handshake.connect(stream, address, key, HANDSHAKE_S, purpose)
    except BaseException:
        stream.close()
        raise
    return stream


def _prepare_tcp(stream: socket.socket) -> None:
    """Let small frames leave at once, and the stream close when the other node has vanished.

    Keep-alive probes notice it where nothing is under way: after 5 s, and 3 probes 2 s apart. `TCP_USER_TIMEOUT` covers
    data under way, for whose receipt TCP itself would wait a quarter of an hour.
    """
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    options = {"TCP_KEEPIDLE": 5, "TCP_KEEPINTVL": 2, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": int(STALLED_S * 1e3)}
    for name, value in options.items():
        if hasattr(socket, name):
            stream.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
