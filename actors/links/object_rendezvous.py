"""Sending between actors: large tensors as objects of Ray's store, small ones inside the message.

All small tensors for one destination that a segment sends travel in one message, over a link. A large tensor is written
into the object store once, however many devices receive it. Receivers on the same node are told where it is, and map it
without a copy, read-only (`loans.py`). The others get it by a call of Ray.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from tfray.actors.links.carriers import FRAME_BYTES, Carrier, carrier_of
from tfray.actors.links.frames import PackedTensor
from tfray.actors.links.loans import LentTensor
from tfray.actors.links.messages import Combiner, StepKey, StepRequest
from tfray.actors.links.peers import Passage, Peer, Peers, Receipt
from tfray.actors.links.shared_objects import put
from tfray.actors.links.store_quota import Holding
from tfray.errors import AbortedError, DeadlineExceededError, UnavailableError
from tfray.framework.tensor_list import TensorList
from tfray.placement.replicate import REPLICA_DEVICE, serving_device
from tfray.runtime.edge_key import EdgeKey
from tfray.runtime.rendezvous import LARGE_BYTES
from tfray.runtime.ring_edge import RING_DEVICE


@dataclass
class _Post:
    """A message to one destination.

    Attributes:
        peer: The destination.
        step: The step in which it takes part.
        replicas: See `Peer.deliver`.
        items: Keys of edges, and tensors.
        call: See `Peer.deliver`.
        passages: The same.
    """

    peer: Peer
    step: StepKey
    replicas: tuple[int, ...]
    items: list[tuple[str, Any]]
    call: bytes | None
    passages: list[Passage] = field(default_factory=list)


@dataclass
class _Combined:
    """Contributions of this replica that are on their way to a shard through a `Combiner`.

    Attributes:
        shard: The shard.
        items: Keys of edges, and tensors.
        receipts: Tell that the shard holds them.
    """

    shard: str
    items: list[tuple[str, Any]]
    receipts: Sequence[Receipt]


class Reducer(Protocol):
    """Takes what is sent to `RING_DEVICE`."""

    def room(self, key: str) -> Any:
        """An array to compute a contribution into; None if it has no place of its own."""

    def contribute(self, key: str, value: Any) -> None:
        """Take a contribution, on the host. The caller may overwrite it when this returns."""


def _share_by_node(posts: Sequence[_Post]) -> None:
    """Let a tensor for several devices of another node go to the first of them only, which passes it on."""
    first: dict[tuple[str, int], _Post] = {}
    for post in posts:
        if post.peer.shares_store:
            continue
        node = post.peer.handle.address.node
        shared = [
            (item, first.setdefault((node, id(item[1])), post))
            for item in post.items
            if isinstance(item[1], LentTensor)
        ]
        passed = {id(tensor) for (_, tensor), of_node in shared if of_node is not post}
        post.items = [item for item in post.items if id(item[1]) not in passed]
        for (key, tensor), of_node in shared:
            if of_node is not post:
                call = None
                if not post.items:  # else the call goes with these, which are there sooner
                    call, post.call = post.call, None
                of_node.passages.append(Passage(post.peer, post.step, post.replicas, key, tensor, call))


class ObjectRendezvous:
    """The sending side of one step on one device actor.

    Args:
        request: The step.
        peers: The other actors.
        to_host: Brings a tensor of the device into host memory.
        call: The `StepCall` with which the driver has asked for the step.
        wakes: Devices that the driver has not called: the first message to each of them takes the `call` along.
        replicas: The replicas that contribute what is sent; None for the one that takes part, if one does.
        combine: If contributions are combined by this device itself: takes them, and returns a receipt.
        reducer: Reduces what is sent to `RING_DEVICE`.

    Attributes:
        sent_bytes: Bytes of all tensors sent, once for each receiver.
    """

    copies = True

    def __init__(
        self,
        request: StepRequest,
        peers: Peers,
        to_host: Callable[[Any], Any],
        call: bytes | None = None,
        wakes: Sequence[str] = (),
        replicas: tuple[int, ...] | None = None,
        combine: Callable[[list[tuple[str, Any]]], Receipt] | None = None,
        reducer: Reducer | None = None,
    ) -> None:
        self._reducer = reducer
        self._request = request
        self._replicas = replicas or (() if request.replica is None else (request.replica,))
        self._combines_for = () if request.combiner is None else request.combiner.shards
        self._combine = combine
        self._combined: list[_Combined] = []
        self._call = call
        self._asleep = set(wakes) if call is not None else set()
        self._peers = peers
        self._to_host = to_host
        self.sent_bytes = 0
        self._outbox: dict[str, list[tuple[str, Any]]] = {}
        self._objects: dict[str, Any] = {}
        self._holdings: list[Holding] = []
        """Of what has been put into the store and is not lent."""
        self._rooms: dict[str, tuple[Any, LentTensor]] = {}
        self._broadcast: list[tuple[str, Any]] = []
        self._receivers = list(request.receivers)
        self._receipts: list[Receipt] = []
        self._lock = threading.Lock()  # the step's thread sends, the message thread lets replicas join

    def send(self, key: str, destination: str, value: Any) -> None:
        """Queue a copy of a tensor: it leaves with `flush`. The caller may overwrite the tensor when this returns.

        In a replicated step a large tensor leaves at once, with what was queued before it. Elsewhere it may be sent to
        several devices of a node by one call after the other, and is to cross the network once.
        """
        if destination == RING_DEVICE and self._reducer is not None:
            self._reducer.contribute(key, value if type(value) is np.ndarray else self._to_host(value))
            return
        item = (key, self._packed(key, destination, value))
        size_bytes = getattr(value, "nbytes", 0)
        if destination != REPLICA_DEVICE:
            self.sent_bytes += size_bytes
            self._outbox.setdefault(destination, []).append(item)
        else:
            with self._lock:
                self._broadcast.append(item)
                self.sent_bytes += size_bytes * len(self._receivers)
                for receiver in self._receivers:
                    self._outbox.setdefault(receiver, []).append(item)
        if size_bytes >= LARGE_BYTES and self._leaves_alone(destination):
            self.flush()

    def room(self, key: str, destination: str, shape: tuple[int, ...], dtype: Any) -> Any:
        """An array to compute the tensor of that edge into, before `send`. It is in the store if it will be lent."""
        if destination == RING_DEVICE and self._reducer is not None:
            place = self._reducer.room(key)
            if place is not None and (place.shape, place.dtype) == (tuple(shape), np.dtype(dtype)):
                return place
            return np.empty(shape, dtype)
        array = np.empty(shape, dtype)
        if self._carrier_of(array, destination) is Carrier.LOAN:
            label = EdgeKey.parse(key).label
            lent = self._peers.loans.buffers.reserve(label, array.dtype, shape, label)
            array = lent.array
            self._rooms[key] = array, lent
        return array

    def flush(self) -> None:
        """Send everything queued: one message per destination."""
        with self._lock:
            outbox, self._outbox = self._outbox, {}
            if self._combines_for:
                outbox = self._to_combiner(outbox)
            posts = [self._addressed(destination, items) for destination, items in outbox.items()]
            if len(posts) > 1 and not self._replicas:
                _share_by_node(posts)
            for post in posts:
                self._send(post)

    def join(self, receiver: str) -> None:
        """Let one more replica take part, or one that replaces a dead one. It is sent what the others were sent."""
        with self._lock:
            if receiver not in self._receivers:
                self._receivers.append(receiver)
            self._outbox.pop(receiver, None)  # `_broadcast` has all of it
            if self._broadcast:
                self._send(self._addressed(receiver, self._broadcast))

    def forget_replicas(self) -> None:
        """Send nothing more to the replicas of this step: they are gone."""
        with self._lock:
            for receiver in self._receivers:
                self._outbox.pop(receiver, None)
            self._receivers.clear()

    def wait_until_received(self, timeout_s: float | None) -> None:
        """Wait until every message has been taken by its destination, or that one has died.

        Raises:
            UnavailableError: A destination died. All others have taken theirs.
            DeadlineExceededError: A destination did not take it in time.
        """
        self._await_combined()
        died: UnavailableError | None = None
        for receipt in self._receipts:
            try:
                receipt(timeout_s)
            except UnavailableError as error:
                died = died or error
        self._receipts.clear()
        if died is not None:
            raise died

    def _to_combiner(self, outbox: Mapping[str, list[tuple[str, Any]]]) -> dict[str, list[tuple[str, Any]]]:
        """Send to the combiner what it takes. Returns the rest, by destination."""
        combiner, rest = self._request.combiner, {}
        assert combiner is not None
        peer = self._peers.get(combiner.device)
        for shard, items in outbox.items():
            if shard in self._combines_for and self._combine is not None:
                self._combined.append(_Combined(shard, items, [self._combine(items)]))
            elif shard in self._combines_for and peer is not None:
                receipts = peer.deliver(Combiner.own(self._request.step), self._replicas, items, wants_receipt=True)
                self._combined.append(_Combined(shard, items, receipts))
            else:
                rest[shard] = items
        return rest

    def _await_combined(self) -> None:
        """Wait until what was combined is on its shards. Send to them directly what is not there in time."""
        combiner = self._request.combiner
        due = time.monotonic() + (0.0 if combiner is None else combiner.patience_s)
        for each in self._combined:
            try:
                for receipt in each.receipts:
                    receipt(max(due - time.monotonic(), 0.0))
            except (AbortedError, DeadlineExceededError, UnavailableError):
                self._send(_Post(self._peers[each.shard], self._request.step, self._replicas, each.items, None))
        self._combined.clear()

    def _addressed(self, destination: str, items: list[tuple[str, Any]]) -> _Post:
        request = self._request
        step, replicas = request.step, self._replicas
        try:
            peer = self._peers[destination]
        except KeyError:  # the destination is a shard that serves this replica, in a step of its own identity
            peer, step, replicas = self._serving_shard(destination), request.served or step, ()
        call = None
        if destination in self._asleep:
            self._asleep.remove(destination)
            call = self._call
        return _Post(peer, step, replicas, items, call)

    def _send(self, post: _Post) -> None:
        if post.items:
            wants_receipt = bool(self._replicas)
            self._receipts += post.peer.deliver(
                post.step, post.replicas, post.items, wants_receipt, post.call, post.passages
            )

    def _serving_shard(self, destination: str) -> Peer:
        return next(self._peers[shard] for shard in list(self._peers) if serving_device(shard) == destination)

    def close(self) -> None:
        """Let go of what has been sent: the step is over."""
        with self._lock:
            self._outbox.clear()
            self._objects.clear()
            self._holdings.clear()
            self._rooms.clear()
            self._broadcast.clear()
            self._combined.clear()

    def _packed(self, key: str, destination: str, value: Any) -> Any:
        """A copy of a tensor in the form in which it travels. The plan may reuse the tensor's own memory at once."""
        if isinstance(value, TensorList):
            return value  # the memory of its elements is not reused
        array = value if type(value) is np.ndarray else self._to_host(value)
        carrier = self._carrier_of(array, destination)
        if carrier is Carrier.FRAME:
            return PackedTensor.of(array)
        if carrier is Carrier.CALL or (carrier is Carrier.OBJECT and destination in self._combines_for):
            return np.array(array)
        edge = EdgeKey.parse(key)
        label, is_of_a_turn = edge.label, bool(edge.turns)
        if not is_of_a_turn and label in self._objects:
            return self._objects[label]
        room, lent = self._rooms.pop(key, (None, None))
        if lent is not None and array is room:
            return lent
        if carrier is Carrier.LOAN:
            stored = self._peers.loans.buffers.write(label, array)
        else:
            self._holdings.append(self._peers.loans.quota.hold(array.nbytes, label))
            stored = put(array)
        if not is_of_a_turn:  # a tensor of one turn of a loop is sent once only
            self._objects[label] = stored
        return stored

    def _carrier_of(self, array: Any, destination: str) -> Carrier:
        # What is large leaves alone, and is overtaken by what is needed sooner: in streams, but not in a link.
        most = LARGE_BYTES if self._leaves_alone(destination) else FRAME_BYTES
        return carrier_of(array, self._are_near, destination, most)

    def _leaves_alone(self, destination: str) -> bool:
        """Whether a large tensor for a destination leaves at once: in replicated steps. See `send`."""
        return bool(self._replicas) or destination == REPLICA_DEVICE

    def _are_near(self, destination: str) -> list[bool]:
        """Whether each receiver of what goes to a destination can map what lies in this node's store."""
        if destination in self._combines_for:
            return [True]  # the combiner is on this node
        receivers = self._receivers if destination == REPLICA_DEVICE else [destination]
        return [self._peer(receiver).shares_store for receiver in receivers]

    def _peer(self, destination: str) -> Peer:
        return self._peers.get(destination) or self._serving_shard(destination)
