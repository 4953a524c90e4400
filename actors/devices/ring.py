"""Reduces among replicas what they contribute to a step, where each of them holds a copy of the variables.

The replicas stand in a ring. Each sends to the next one only. Contributions travel in *buckets*: dense ones of one
dtype lie one behind the other in one array, so that small ones travel together.

A large bucket is cut into as many chunks as there are replicas. In each *hop* every replica sends one chunk to the
next. In the first half of the hops it adds its own numbers to the chunk that it has received: each chunk is summed up
once, along the ring. In the second half the sums go round. So each replica sends about twice the bytes of the bucket,
however many replicas there are, and all have the same bits.

Small buckets, and contributions that are no sums (the rows of sparse gradients), go round as they are: everybody then
combines all of them, in the order of the replicas.

Nothing here waits for a bucket: each goes on when something has come for it. So buckets overlap one another, and the
computation of gradients that are still to come.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from queue import SimpleQueue
from typing import Any, Final, NamedTuple

import numpy as np

from tfray.actors.devices.combining import received_array
from tfray.actors.links.object_rendezvous import ObjectRendezvous
from tfray.errors import DataLossError, OpError, UnavailableError
from tfray.framework.dtypes import as_dtype
from tfray.ops.system.replica_ops import Contributions, combination
from tfray.runtime.edge_key import EdgeKey
from tfray.runtime.ring_edge import RingEdge

BUCKET_BYTES: Final = 4 << 20
"""Most bytes of a bucket of several contributions: below that, messages cost more than bytes; with much larger ones the
first would leave late."""

GATHERED_BYTES: Final = 32 << 10
"""Buckets up to this size go round as they are: that takes half as many hops, and their bytes cost less than hops."""

_LABEL: Final = "_ring"


@dataclass(frozen=True)
class Bucket:
    """Contributions that travel together.

    Attributes:
        number: Its number in the plan.
        edges: The contributions.
        is_flat: Whether they lie one behind the other in one array. Otherwise there is one, of any shape.
    """

    number: int
    edges: tuple[RingEdge, ...]
    is_flat: bool

    @cached_property
    def dtype(self) -> Any:
        """NumPy's dtype of the contributions."""
        return as_dtype(self.edges[0].dtype).numpy

    @cached_property
    def slices(self) -> list[slice]:
        """Where each contribution lies."""
        found, start = [], 0
        for edge in self.edges:
            found.append(slice(start, start + math.prod(edge.shape or ())))
            start = found[-1].stop
        return found

    @cached_property
    def is_summed(self) -> bool:
        """Whether it is summed up along the ring."""
        return self.is_flat and self.slices[-1].stop * self.dtype.itemsize > GATHERED_BYTES


class RingLayout:
    """The buckets of a plan. All replicas have the same.

    Args:
        edges: What replicas reduce, in the order in which they contribute to it.

    Attributes:
        buckets: The buckets, by number.
        places: By key of a contribution, its bucket's number and its place there.
    """

    def __init__(self, edges: Sequence[RingEdge]) -> None:
        self.buckets: list[Bucket] = []
        self._open: dict[str, list[RingEdge]] = {}
        for edge in edges:
            dtype = as_dtype(edge.dtype)
            if edge.reduction != "mean" or edge.shape is None or not dtype.is_floating:
                self._add([edge], is_flat=False)
                continue
            together = self._open.setdefault(edge.dtype, [])
            count = sum(math.prod(each.shape or ()) for each in [*together, edge])
            if together and count * dtype.size > BUCKET_BYTES:
                self._add(together)
                together = self._open[edge.dtype] = []
            together.append(edge)
        for together in self._open.values():
            self._add(together)
        self.places = {
            edge.key: (bucket.number, place) for bucket in self.buckets for place, edge in enumerate(bucket.edges)
        }

    def _add(self, edges: Sequence[RingEdge], is_flat: bool = True) -> None:
        self.buckets.append(Bucket(len(self.buckets), tuple(edges), is_flat))


class _News(NamedTuple):
    """Something that has come for a bucket: what the replica before this one sends in a hop, or (None) all of its own.

    An error ends the reduction.
    """

    bucket: int = 0
    hop: int | None = None
    value: Any = None
    error: OpError | None = None


@dataclass
class _Flow:
    """A bucket in one step.

    Attributes:
        bucket: The bucket.
        own: What this replica contributes. The sums come in its place.
        missing: How many contributions to it are still to come. Only the step's thread knows.
        has_own: Whether there are all. Only the thread of the reduction knows.
        received: By hop, what has come and could not be used yet.
        hop: The next hop.
        pieces: By replica, what it contributes, where nothing is summed up on the way.
    """

    bucket: Bucket
    own: Any
    missing: int
    has_own: bool = False
    received: dict[int, Any] = field(default_factory=dict)
    hop: int = 0
    pieces: dict[int, Any] = field(default_factory=dict)


class RingStep:
    """The part of one replica in the reductions of one step.

    The step's thread contributes, links bring what comes, and one further thread runs it.

    Args:
        layout: The buckets.
        ring: Full names of the replicas' devices, in the order of the ring.
        device: That of this replica.
        rendezvous: Sends to the next one.
        done: Called with keys and values of what has been reduced.
    """

    def __init__(
        self,
        layout: RingLayout,
        ring: Sequence[str],
        device: str,
        rendezvous: ObjectRendezvous,
        done: Callable[[list[tuple[str, Any]]], None],
    ) -> None:
        self.rendezvous = rendezvous
        self._layout, self._ring = layout, ring
        self._size, self._rank, self._device = len(ring), ring.index(device), device
        self._next = ring[(self._rank + 1) % self._size]
        self._done = done
        self._news: SimpleQueue[_News] = SimpleQueue()
        self._flows = [_new_flow(bucket) for bucket in layout.buckets]

    # -- any thread ------------------------------------------------------------------------------

    def room(self, key: str) -> Any:
        """An array to compute a contribution into; None if it has no place of its own."""
        number, place = self._layout.places[key]
        flow = self._flows[number]
        bucket = flow.bucket
        return flow.own[bucket.slices[place]].reshape(bucket.edges[place].shape) if bucket.is_flat else None

    def contribute(self, key: str, value: Any) -> None:
        """Take what this replica contributes. The caller may overwrite it when this returns."""
        number, _ = self._layout.places[key]
        flow, room = self._flows[number], self.room(key)
        if room is None:
            flow.own = np.array(value)
        elif not _is_same(room, value):
            np.copyto(room, value)
        flow.missing -= 1
        if not flow.missing:
            self._news.put(_News(number))

    def add(self, items: Sequence[tuple[str, Any]]) -> None:
        """Take what the replica before this one sends."""
        for key, value in items:
            _, number, hop = EdgeKey.parse(key).label.split("/")
            self._news.put(_News(int(number), int(hop), value))

    def end(self, error: OpError) -> None:
        """Let `run` raise an error, if it waits for anything."""
        self._news.put(_News(error=error))

    def lose(self, devices: Collection[str]) -> None:
        """Nothing more comes from these devices. Let `run` raise `UnavailableError` if it may wait for one of them."""
        before = self._ring[self._rank - 1]
        if before in devices and before != self._device:
            what = f"the actor of {before} died, or the connection from it was lost, while gradients were reduced"
            self.end(UnavailableError(what, device=before))

    # -- its own thread --------------------------------------------------------------------------

    def run(self) -> None:
        """Reduce everything. Returns when the next replica has taken what it needs.

        Raises:
            OpError: What `end` was called with, or what sending has raised.
        """
        try:
            self._run()
            self.rendezvous.wait_until_received(None)
        finally:
            self.rendezvous.close()

    def _run(self) -> None:
        left = len(self._flows)
        while left:
            news = self._news.get()
            if news.error is not None:
                raise news.error
            flow = self._flows[news.bucket]
            if self._take(flow, news):
                self.rendezvous.flush()  # first: the next replica waits for it
                self._done(_results(flow, self._size))
                left -= 1
            elif self._news.empty():
                self.rendezvous.flush()
            del news, flow  # what is lent can be returned
        self._flows.clear()

    def _take(self, flow: _Flow, news: _News) -> bool:
        """Go on with a bucket. Returns whether it is done."""
        flow.has_own = flow.has_own or news.hop is None
        if news.hop is not None:
            flow.received[news.hop] = received_array(news.value)
        elif not flow.bucket.is_summed:
            flow.pieces[self._rank] = flow.own
            self._send(flow, 0, flow.own)
        else:
            self._send(flow, 0, self._first(self._chunk(flow, self._rank)))
        hops = (2 if flow.bucket.is_summed else 1) * (self._size - 1)
        while (flow.has_own or not flow.bucket.is_summed) and flow.hop in flow.received:
            value = flow.received.pop(flow.hop)
            if flow.bucket.is_summed:
                self._hop(flow, value)
            else:
                flow.pieces[(self._rank - flow.hop - 1) % self._size] = value
                if flow.hop + 1 < hops:
                    self._send(flow, flow.hop + 1, value)
            flow.hop += 1
        return flow.has_own and flow.hop == hops

    def _hop(self, flow: _Flow, value: Any) -> None:
        """Take a chunk, in the next hop."""
        hop, last = flow.hop, self._size - 2
        chunk = self._chunk(flow, self._rank - hop - 1)
        if value.shape != chunk.shape or value.dtype != chunk.dtype:
            raise DataLossError(
                f"bucket {flow.bucket.number}: from the replica before {self._device} a chunk of "
                f"{chunk.dtype}{list(chunk.shape)} was expected, and {value.dtype}{list(value.shape)} came"
            )
        if hop > last:
            np.copyto(chunk, value)
        else:
            total = chunk if hop == last else self._room(flow, hop + 1, chunk)
            self._sum(value, chunk, total)
            if hop == last and not _is_narrow(chunk):
                np.multiply(chunk, chunk.dtype.type(1 / self._size), out=chunk)
            value = total
        if hop < 2 * last + 1:
            self._send(flow, hop + 1, value)

    def _first(self, chunk: Any) -> Any:
        """What is sent of the chunk with which this replica begins."""
        if not _is_narrow(chunk) or self._size == 1:
            return chunk
        return (chunk.astype(np.float32) * np.float32(1 / self._size)).astype(chunk.dtype)

    def _sum(self, value: Any, chunk: Any, total: Any) -> None:
        """Add this replica's numbers to what has come.

        Those in 16 bits are added up in 32, and are parts of the mean from the beginning: so their sum stays in range.
        """
        if not _is_narrow(chunk):
            np.add(value, chunk, out=total)
            return
        wide = chunk.astype(np.float32)
        wide *= np.float32(1 / self._size)
        wide += value
        total[...] = wide

    def _chunk(self, flow: _Flow, index: int) -> Any:
        """A chunk of a bucket, by its number around the ring."""
        index %= self._size
        count = len(flow.own)
        return flow.own[count * index // self._size : count * (index + 1) // self._size]

    def _key(self, flow: _Flow, hop: int) -> str:
        return str(EdgeKey(f"{_LABEL}/{flow.bucket.number}/{hop}", self._device, self._next))

    def _room(self, flow: _Flow, hop: int, like: Any) -> Any:
        return self.rendezvous.room(self._key(flow, hop), self._next, like.shape, like.dtype)

    def _send(self, flow: _Flow, hop: int, value: Any) -> None:
        if self._size > 1:
            self.rendezvous.send(self._key(flow, hop), self._next, value)


def _new_flow(bucket: Bucket) -> _Flow:
    own = np.empty(bucket.slices[-1].stop, bucket.dtype) if bucket.is_flat else None
    return _Flow(bucket, own, len(bucket.edges))


def _results(flow: _Flow, replicas: int) -> list[tuple[str, Any]]:
    """Keys and values of what has been reduced."""
    bucket, found = flow.bucket, []
    for edge, where in zip(bucket.edges, bucket.slices, strict=True):
        dtype = as_dtype(edge.result_dtype).numpy
        if bucket.is_summed:
            value = flow.own[where].reshape(edge.shape).astype(dtype, copy=False)
        else:
            pieces = [flow.pieces[replica] for replica in range(replicas)]
            if bucket.is_flat:
                pieces = [piece[where].reshape(edge.shape) for piece in pieces]
            value = combination(np, edge.reduction, Contributions(pieces, replicas), dtype)
        found.append((edge.result, np.asarray(value)))
    return found


def _is_narrow(chunk: Any) -> bool:
    return bool(chunk.dtype.itemsize < np.dtype(np.float32).itemsize)


def _is_same(room: Any, value: Any) -> bool:
    """Whether a value has been computed into its room."""
    return (
        isinstance(value, np.ndarray)
        and value.__array_interface__["data"] == room.__array_interface__["data"]
        and value.strides == room.strides
        and value.size > 0
    )
