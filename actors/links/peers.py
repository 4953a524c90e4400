"""How a process sends to the device actors of a cluster: over links where it can, otherwise by calls of Ray."""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import AuthenticationError
from typing import Any, Final, NamedTuple

from tfray.actors.links.carriers import by_carrier
from tfray.actors.links.frames import Header, PackedTensor, dtype_name, encode, encode_packed
from tfray.actors.links.handshake import LinkAddress
from tfray.actors.links.loans import LentTensor, Loans, next_loan
from tfray.actors.links.messages import (
    Answer,
    Deliver,
    Hello,
    Message,
    Onward,
    Returned,
    StepKey,
    Streamed,
    Unmap,
    plain,
    read,
)
from tfray.actors.links.notices import notice
from tfray.actors.links.packing import pack
from tfray.actors.links.peer_link import Link, open_link, open_tensor_stream
from tfray.actors.links.ray_calls import wait_until_taken
from tfray.actors.links.shared_objects import CAN_SHARE, describe
from tfray.actors.links.tensor_streams import OutgoingStreams
from tfray.errors import DataLossError, DeadlineExceededError, UnavailableError
from tfray.runtime.edge_key import EdgeKey

Outcome = tuple[str, Any]
"""``("ok", values)`` or ``("error", OpError)``."""

Done = Callable[[Outcome], None]
"""Called once, on any thread, when a call has ended."""

Receipt = Callable[[float | None], None]
"""Waits until a message has been taken, at most for that many seconds; without limit for None."""

MISSING: Final = "missing"
"""The value of the answer to a `Deliver` whose receiver cannot find the objects. They must be sent by a call of Ray."""


class Uncollected(NamedTuple):
    """In place of a value that is too large for a frame: the actor keeps the value, to be collected by this token."""

    token: str


_NOTHING: Final[dict[int, LentTensor]] = {}
"""Loans of a message without any."""

REOPENED_S: Final = 30.0
"""Seconds from one attempt to open a link to the next. An attempt takes up to ten where a machine is cut off."""

_numbers: Final = itertools.count(1)


def next_number() -> int:
    """A number for a call of this process."""
    return next(_numbers)


@dataclass(frozen=True)
class PeerHandle:
    """How to reach an actor.

    Attributes:
        actor: Its Ray handle.
        address: Where it listens for links.
        key: The key of links: both ends must hold it.
    """

    actor: Any
    address: LinkAddress
    key: bytes = field(repr=False)


class Peers(dict[str, "Peer"]):
    """The other actors, by device, and the links to them, which are opened when they are first needed.

    Args:
        node: Ray's identity of this node.
        loans: What this process lends and borrows.
    """

    def __init__(self, node: str, loans: Loans | None = None) -> None:
        super().__init__()
        self._node = node
        self.loans = loans or Loans()
        self._lock = threading.Lock()

    def learn(self, handles: Mapping[str, PeerHandle]) -> None:
        """Learn how to reach devices; the link to a device's former actor is closed."""
        with self._lock:
            for device, handle in handles.items():
                known = self.get(device)
                if known is None or known.handle != handle:
                    self[device] = Peer(device, handle, self._node, self.loans)
                    if known is not None:
                        known.close()

    def forget(self, device: str) -> None:
        """Close the link to an actor that is gone."""
        with self._lock:
            peer = self.pop(device, None)
        if peer is not None:
            peer.close()

    def close(self) -> None:
        """Close every link."""
        for device in list(self):
            self.forget(device)

    def returned(self, device: str, loans: Sequence[int]) -> None:
        """Note that the process of `device` has returned these loans: it reads their memory no more."""
        peer = self.get(device)
        if peer is not None:
            peer.returned(loans)


class Peer:
    """One actor.

    Args:
        device: Its device.
        handle: How to reach it.
        node: Ray's identity of this node.
        loans: What this process lends and borrows.

    Attributes:
        shares_store: Whether it can map objects of this node's store that are described to it.
        is_lost: Whether its link has closed by itself and could not be opened anew, or it is dead.
        is_dead: Whether it is known to be dead: see `died`.
    """

    def __init__(self, device: str, handle: PeerHandle, node: str, loans: Loans | None = None) -> None:
        self.device = device
        self.handle = handle
        self.shares_store = CAN_SHARE and handle.address.node == node
        self.is_lost = False
        self.is_dead = False
        self._node = node
        self._loans = loans or Loans()
        self._lent: dict[int, LentTensor] = {}
        self._link: Link | None = None
        self._streams: OutgoingStreams | None = None
        self._takes_streams = True
        self._retry_at = 0.0
        """When a link may be opened, by `time.monotonic`."""
        self._waiting: dict[int, Done] = {}
        self._lock = threading.Lock()

    def tell(self, message: Message) -> bool:
        """Send a message without tensors, to which nothing is answered. Returns False where there is no link."""
        return self._send(encode(plain(message)))

    def send(self, number: int, frame: bytes, done: Done | None) -> int | None:
        """Send a frame over the link.

        Args:
            number: Of the answer.
            frame: A message, and tensors that `carriers.fits` admits.
            done: Called with the answer, or with the error that the actor died; None when no answer is wanted.

        Returns:
            The number, for `forget`, or None when there is no link; then nothing was sent.
        """
        if done is None:
            return number if self._send(frame) else None
        return number if self.expect(number, done) and self.post(number, frame) else None

    def expect(self, number: int, done: Done) -> bool:
        """Await the answer to a call that will be sent, by `post` or by another process.

        A frame may make several actors answer. Await all of these answers before sending the first frame: an answer
        that comes before it is awaited is lost.

        Returns:
            Whether there is a link for the answer; if not, `done` is never called.
        """
        if self._link is None:
            self._open()
        with self._lock:  # `_ended` takes all awaited answers under this lock: none is added after it unnoticed
            if self._link is not None:
                self._waiting[number] = done
            return self._link is not None

    def post(self, number: int, frame: bytes) -> bool:
        """Send a message whose answer is awaited. Returns False if it was not sent, and `done` will not be called."""
        if self._send(frame):
            return True
        with (
            self._lock
        ):  # an answer that is not awaited any more has been given: `_ended` was faster, and called `done`
            return self._waiting.pop(number, None) is None

    def _send(self, frame: bytes) -> bool:
        link = self._link or self._open()
        if link is None:
            return False
        try:
            link.send_frame(frame)
        except OSError:
            return False
        return True

    def forget(self, number: int) -> None:
        """Wait no longer for the answer to a call."""
        self._waiting.pop(number, None)

    def deliver(
        self,
        step: StepKey,
        replicas: tuple[int, ...],
        items: Sequence[tuple[str, Any]],
        wants_receipt: bool,
        call: bytes | None = None,
        passages: Sequence[Passage] = (),
    ) -> list[Receipt]:
        """Send tensors of a step: over the link and its streams where they can, the others by a call of Ray.

        Args:
            step: The step for which they are.
            replicas: The replicas that contribute them; empty if they are no contributions.
            items: Keys of edges, and tensors: those that fit into a frame are packed, large ones `LentTensor`, or
                references to objects.
            wants_receipt: Whether the sender must know when they have been taken.
            call: The `StepCall` with which the receiver begins the step, unless it has begun already.
            passages: What the receiver, which is on another node, passes on. Its tensors are among those of `items`.

        Returns:
            Receipts for all messages, if wanted. They raise `UnavailableError` when the actor has died, and
            `DeadlineExceededError` when it does not take them in time.
        """
        if self.is_dead:
            _send_directly(passages)
            return [self._fail] if wants_receipt else []
        packed = [item for item in items if type(item[1]) is PackedTensor]
        sent: list[Any] = packed
        stored: list[Any] = []
        lent: list[Any] = []
        streamed: list[Any] = []
        rest: list[Any] = []
        if len(packed) < len(items):
            stored, lent, rest = by_carrier(items, self.shares_store)
            if lent and not self.shares_store:  # what is lent to another node goes over streams, or else by a call
                if self._open_streams():
                    streamed = lent
                else:
                    rest = lent + rest
                    _send_directly(passages)
                    passages = ()
                lent = []
            sent = [*packed, *stored, *lent, *streamed]
        receipts: list[Receipt] = []
        if sent:
            loans = {next_loan(): tensor for _, tensor in lent} if lent else _NOTHING
            streams = {next_loan(): tensor for _, tensor in streamed} if streamed else _NOTHING
            delivery: _Delivery | None = None
            if (
                wants_receipt
                or stored
                or passages
                or (lent and any(self not in each.buffer.mapped_by for _, each in lent))
            ):
                delivery = _Delivery(self, step, replicas, sent, loans, passages)
            objects = tuple([describe(ref) for _, ref in stored]) if stored else ()
            message = Deliver(step, replicas, tuple([key for key, _ in sent]), 0, call, objects)
            if streams:
                message = _naming(message, streams, passages)
            if not self._send_tensors(message, [tensor for _, tensor in packed], loans, delivery):
                rest = sent + rest
                _send_directly(passages)
            else:
                for (number, tensor), (key, _) in zip(streams.items(), streamed, strict=True):
                    self._stream(number, tensor, EdgeKey.parse(key).label, is_gradient=bool(replicas))
                if delivery is not None:
                    delivery.has_left()
                    receipts.append(delivery.wait)
        if rest:
            ref = self.deliver_by_call(step, replicas, rest, call)
            receipts.append(lambda timeout_s: wait_until_taken(ref, self.device, timeout_s))
        return receipts if wants_receipt else []

    def _send_tensors(
        self,
        message: Deliver,
        packed: Sequence[PackedTensor],
        loans: Mapping[int, LentTensor],
        delivery: _Delivery | None,
    ) -> bool:
        """Send the message with the packed tensors, and with loans of the lent ones. Returns False without a link."""
        number = 0 if delivery is None else next_number()
        returns = self._loans.borrowings.returns_to(self.device)
        if loans or returns:
            self._lent.update(loans)
            lent = [tensor.loan(loan, is_mapped=self in tensor.buffer.mapped_by) for loan, tensor in loans.items()]
            message = message._replace(loans=tuple(lent), returned=tuple(returns), sender=self._loans.device)
        if number:
            message = message._replace(number=number)
        frame = encode_packed(plain(message), packed)
        if self._send(frame) if delivery is None else self.send(number, frame, delivery.answered) is not None:
            return True
        self.returned(loans)
        self._loans.borrowings.keep_returns(self.device, returns)
        return False

    def _stream(self, number: int, tensor: LentTensor, label: str, is_gradient: bool) -> None:
        """Send a tensor over the streams. Where they have broken, the link is closed, and so the message void."""
        streams = self._streams
        if streams is not None:
            streams.send(number, tensor, label, is_gradient)

    @property
    def sent_bytes(self) -> int:
        """Bytes of tensors that have begun to leave over the streams that are open."""
        streams = self._streams
        return 0 if streams is None else streams.sent_bytes

    def returned(self, loans: Iterable[int]) -> None:
        """Note that the actor does not read these loans any more, or that they never reached it."""
        for number in loans:
            self._lent.pop(number, None)
        self._loans.buffers.tidy()

    def unmap(self, identity: bytes) -> None:
        """Tell the actor that an object will not be lent to it again."""
        if self._link is not None:
            self.tell(Unmap(identity))

    def deliver_by_call(
        self, step: StepKey, replicas: tuple[int, ...], items: Sequence[tuple[str, Any]], call: bytes | None = None
    ) -> Any:
        """Send tensors of a step by a call of Ray. Returns the reference to its result."""
        inline, objects = pack([_for_call(value) for _, value in items])
        return self.handle.actor.deliver.remote(step, replicas, [key for key, _ in items], call, inline, *objects)

    def close(self) -> None:
        """Close the link. Calls that wait for an answer end as if the actor had died."""
        with self._lock:
            link, self._link, self._retry_at = self._link, None, math.inf
        self._abandon()
        if link is not None:
            link.close()

    def died(self) -> None:
        """Note that the actor is dead, cut off or frozen. Awaited answers end with an error, and it is sent no more."""
        with self._lock:
            link, self._retry_at, self.is_lost, self.is_dead = self._link, math.inf, True, True
        if link is not None:
            self._ended(link)
            link.close()

    def _abandon(self) -> None:
        """Never write again into what is lent to the actor: it may still read there, and cannot tell when it stops."""
        lent, self._lent = self._lent, {}
        for each in lent.values():
            each.buffer.is_lost = True
        lent.clear()
        self._loans.buffers.tidy()
        streams, self._streams = self._streams, None
        if streams is not None:
            streams.close()

    def _open_streams(self) -> bool:
        """Open the streams unless they are open. Returns whether they are."""
        link = self._link or self._open()
        with self._lock:
            if self._streams is None and self._takes_streams and link is not None and self._link is link:
                address, key = self.handle.address, self.handle.key
                try:
                    self._streams = OutgoingStreams(lambda: open_tensor_stream(address, key), link.close)
                except (OSError, EOFError, AuthenticationError):
                    self._takes_streams = False  # calls of Ray will say why, or reach the actor nevertheless
            return self._streams is not None

    def _open(self) -> Link | None:
        with self._lock:
            if self._link is None and time.monotonic() >= self._retry_at:
                try:
                    link = open_link(self.handle.address, self.handle.key, self._node, self._take, self._ended)
                except (OSError, EOFError, AuthenticationError):
                    # Calls of Ray will say why, or reach the actor nevertheless.
                    self._retry_at = max(self._retry_at, time.monotonic() + REOPENED_S)
                else:
                    self._link, self.is_lost = link, False
                    if self._loans.device:
                        with suppress(OSError):  # its end is about to be read
                            link.send(plain(Hello(self._loans.device)))
            return self._link

    def _take(self, link: Link, header: Header, tensors: list[Any]) -> None:
        message = read(header)
        match message:
            case Answer():
                done = self._waiting.pop(message.number, None)
                if done is not None:
                    done(_outcome(message, tensors))
                elif not (message.may_come_late or self.is_lost):  # whoever awaited a lost actor has been told
                    report_unexpected(self.device, message.number, sorted(self._waiting))
            case Returned():
                self.returned(message.loans)
            case _:
                raise DataLossError(f"a message that makes no sense: {type(message).__name__} from a device")

    def _ended(self, link: Link) -> None:
        with self._lock:
            if self._link is link:
                self._link, self.is_lost = None, True
            waiting, self._waiting = self._waiting, {}
        self._abandon()
        for done in waiting.values():
            done(("error", self._death()))

    def _death(self) -> UnavailableError:
        return UnavailableError(f"the actor of {self.device} died; its state is lost", device=self.device)

    def _fail(self, timeout_s: float | None) -> None:
        """The receipt for what a dead actor should have been sent."""
        raise self._death()


def report_unexpected(device: str, number: int, awaited: Sequence[int]) -> None:
    """Report an answer that nobody awaits: an internal error. A caller may wait for ever, or was answered twice."""
    numbers = ", ".join(map(str, awaited[:8])) or "none"
    notice(
        f"internal error: {device} answered call {number}, which nobody awaits (awaited: {numbers}); please report this"
    )


def _outcome(answer: Answer, tensors: list[Any]) -> Outcome:
    """The outcome of a call, from its answer."""
    if answer.error is not None:
        return "error", answer.error.to_error()
    if answer.token is not None:
        return "ok", Uncollected(answer.token)
    return "ok", MISSING if answer.is_missing else tensors


def _for_call(value: Any) -> Any:
    """A tensor in the form of an argument for a call of Ray."""
    if isinstance(value, PackedTensor):
        return value.unpacked()
    return value.copy() if isinstance(value, LentTensor) else value


class Passage(NamedTuple):
    """A tensor that one peer passes on to another of its node; see `messages.Onward`."""

    peer: Peer
    step: StepKey
    replicas: tuple[int, ...]
    key: str
    tensor: LentTensor
    call: bytes | None


def _naming(message: Deliver, streams: Mapping[int, LentTensor], passages: Sequence[Passage]) -> Deliver:
    """The message with the tensors that come over streams, by their numbers, and with what is to be passed on."""
    named = [Streamed(number, dtype_name(each.dtype), tuple(each.shape)) for number, each in streams.items()]
    numbers = {id(tensor): number for number, tensor in streams.items()}
    onward = [
        Onward(numbers[id(tensor)], peer.device, step, replicas, key, call)
        for peer, step, replicas, key, tensor, call in passages
    ]
    return message._replace(streamed=tuple(named), onward=tuple(onward))


def _send_directly(passages: Sequence[Passage]) -> None:
    """Send by calls of Ray what was to be passed on."""
    for peer, step, replicas, key, tensor, call in passages:
        peer.deliver_by_call(step, replicas, [(key, tensor)], call)


PASSED_ON_S: Final = 2.0
"""Seconds after which a peer that neither passes tensors on nor takes any counts as frozen. The others of its node then
are sent these tensors directly: a frozen process may hold up nobody else."""


class _Delivery:
    """Tensors on their way over a link. It keeps the objects among them until the peer has answered.

    Args:
        peer: The receiver.
        step: The step for which they are.
        replicas: The replicas that contribute them; empty if they are no contributions.
        items: Keys of edges, and tensors.
        loans: The lent tensors, by the numbers of their loans.
        passages: What the peer passes on.
    """

    def __init__(
        self,
        peer: Peer,
        step: StepKey,
        replicas: tuple[int, ...],
        items: Sequence[tuple[str, Any]],
        loans: Mapping[int, LentTensor],
        passages: Sequence[Passage] = (),
    ) -> None:
        self._peer = peer
        self._step = step
        self._replicas = replicas
        self._items = items
        self._loans = loans
        self._passages = passages
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._outcome: Outcome | None = None
        self._call: Any = None

    def answered(self, outcome: Outcome) -> None:
        """Take the answer, or the error that the peer has died. Objects that it cannot find are sent by a call."""
        passages = self._take_passages()
        try:
            if outcome[0] == "error" or outcome == ("ok", MISSING):
                _send_directly(passages)
            if outcome == ("ok", MISSING):
                self._call = self._peer.deliver_by_call(self._step, self._replicas, self._items)
                self._peer.returned(self._loans)
            elif outcome[0] == "ok":
                for tensor in self._loans.values():
                    tensor.buffer.mapped_by.add(self._peer)
            self._outcome = outcome
        finally:
            self._items, self._loans = (), {}
            self._over.set()

    def has_left(self) -> None:
        """Note that the message has left. What is to be passed on is watched from now on."""
        if self._passages:
            self._look_after(self._peer.sent_bytes)

    def _look_after(self, sent_bytes: int) -> None:
        def look() -> None:
            now = self._peer.sent_bytes
            if now != sent_bytes and not self._over.is_set():
                self._look_after(now)
            else:
                _send_directly(self._take_passages())

        timer = threading.Timer(PASSED_ON_S, look)
        timer.daemon = True
        timer.start()

    def _take_passages(self) -> Sequence[Passage]:
        """What is still to be passed on, for one caller only."""
        with self._lock:
            passages, self._passages = self._passages, ()
            return passages

    def wait(self, timeout_s: float | None) -> None:
        """Wait until the peer has taken them."""
        if not self._over.wait(timeout_s):
            raise DeadlineExceededError(f"the step timed out sending tensors to {self._peer.device}")
        device = self._peer.device
        status, value = self._outcome or ("error", UnavailableError(f"{device} cannot be called", device=device))
        if status == "error":
            raise value
        if self._call is not None:
            wait_until_taken(self._call, self._peer.device, timeout_s)
