"""Combines on one worker what the replicas of its node contribute to a step, before that goes to shards elsewhere.

So each sum crosses the network once for a node, and not once for each of its replicas. It leaves as soon as the last of
them has computed its part, while they compute others.

Nothing depends on it. A replica has delivered only when the shards hold what it has contributed. One that waits too
long for the others, or whose combining worker is gone, sends its contributions to the shards itself. What then comes
twice counts once (`replica_inbox.py`).
"""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tfray.actors.devices.step_ledger import EVERY_STEP, Ledger
from tfray.actors.links.carriers import LENT_BYTES
from tfray.actors.links.frames import PackedTensor
from tfray.actors.links.loans import LentTensor
from tfray.actors.links.messages import Combiner, StepKey, StepRequest
from tfray.actors.links.object_rendezvous import ObjectRendezvous
from tfray.actors.links.peers import Receipt
from tfray.errors import AbortedError, DeadlineExceededError, OpError
from tfray.ops.system.replica_ops import partial_reduction
from tfray.runtime.edge_key import EdgeKey

Told = Callable[[OpError | None], None]
"""Called when the shards hold what a replica contributed, or with the error for which they will not."""


class Combination:
    """Contributions of several replicas to one step. Any thread may add; one thread runs it.

    Attributes:
        replicas: Those that contribute, in the order in which values are combined. Empty until that is known.
        shards: Full names of the shards.
    """

    def __init__(self) -> None:
        self.replicas: tuple[int, ...] = ()
        self.shards: tuple[str, ...] = ()
        self._arrived: dict[str, dict[int, Any]] = {}
        self._ready: deque[str] = deque()
        self._told: list[tuple[int, Told]] = []
        self._error: OpError | None = None
        self._is_over = False
        self._changed = threading.Condition()

    def add(self, replica: int, items: Iterable[tuple[str, Any]], told: Told) -> None:
        """Take tensors that a replica contributes, by the keys of their edges."""
        with self._changed:
            is_late = self._is_over
            if not is_late:
                self._told.append((replica, told))
                for key, value in items:
                    arrived = self._arrived.setdefault(key, {})
                    arrived[replica] = value
                    if len(arrived) == len(self.replicas):
                        self._ready.append(key)
                self._changed.notify()
        if is_late:
            told(self._error or late())

    def begin(self, combiner: Combiner) -> None:
        """Learn who contributes, and for which shards."""
        with self._changed:
            self.replicas, self.shards = combiner.replicas, combiner.shards
            self._ready.extend(key for key, arrived in self._arrived.items() if len(arrived) == len(self.replicas))

    def run(self, reductions: Mapping[str, str], rendezvous: ObjectRendezvous) -> None:
        """Combine everything and send it. Returns when the shards hold it.

        Args:
            reductions: By the key of each edge, how its values are combined; see `Partition.reductions`.
            rendezvous: Sends for these replicas.

        Raises:
            OpError: What `end` was called with, or what sending has raised.
        """
        for _ in [key for key in reductions if EdgeKey.parse(key).destination in self.shards]:
            key, values = self._next()
            arrays = [received_array(value) for value in values]
            destination = EdgeKey.parse(key).destination

            def room(like: Any, key: str = key, destination: str = destination) -> Any:
                return rendezvous.room(key, destination, like.shape, like.dtype)

            combined = partial_reduction(reductions[key], arrays, room)
            rendezvous.send(key, destination, combined)
            if getattr(combined, "nbytes", 0) >= LENT_BYTES or not self._ready:
                rendezvous.flush()
            del values, arrays, combined  # what is lent can be returned
        rendezvous.wait_until_received(None)

    def _next(self) -> tuple[str, list[Any]]:
        """Wait for the next edge to which all have contributed. Returns its key and the values."""
        with self._changed:
            self._changed.wait_for(lambda: self._ready or self._is_over)
            if self._is_over:
                raise self._error or late()
            key = self._ready.popleft()
            arrived = self._arrived.pop(key)
        return key, [arrived[replica] for replica in self.replicas]

    def end(self, error: OpError | None) -> None:
        """Tell all who have contributed that the shards hold it, or else the error. Later contributions are refused."""
        with self._changed:
            if self._is_over:
                return
            self._is_over, self._error = True, error
            told, self._told = self._told, []
            self._arrived.clear()
            self._ready.clear()
            self._changed.notify()
        for replica, tell in told:
            tell(error if error is not None or replica in self.replicas else late())


class Combinations:
    """What one device combines, by the identities under which it does (`Combiner.own`)."""

    def __init__(self) -> None:
        self._running: dict[StepKey, Combination] = {}
        self._ledgers: defaultdict[str, Ledger] = defaultdict(Ledger)
        """By driver: what is combined no more."""
        self._lock = threading.Lock()

    def add(self, step: StepKey, replica: int, items: list[tuple[str, Any]], told: Told) -> None:
        """Take what a replica of this node contributes; keys of edges, and tensors."""
        with self._lock:
            combination = self._of(step)
        if combination is None:
            told(late())
        else:
            combination.add(replica, items, told)

    def add_own(self, request: StepRequest, items: list[tuple[str, Any]]) -> Receipt:
        """Take what this device's own replica contributes to a step. Returns a receipt."""
        assert request.replica is not None
        receipt = OwnReceipt()
        self.add(Combiner.own(request.step), request.replica, items, receipt.told)
        return receipt

    def _of(self, step: StepKey) -> Combination | None:
        """What combines contributions, made if there is none; None if it is over. Call with the lock held."""
        combination = self._running.get(step)
        if combination is None and not self._ledgers[step.driver].is_over(step.number):
            combination = self._running[step] = Combination()
        return combination

    def begin(self, request: StepRequest) -> Combination | None:
        """Begin to combine the contributions to a step in which this device takes part. Returns None if it is over."""
        own, combiner = Combiner.own(request.step), request.combiner
        assert combiner is not None
        with self._lock:
            ledger = self._ledgers[own.driver]
            ledger.floor = max(ledger.floor, request.floor)
            left = [step for step in self._running if step.driver == own.driver and step.number < ledger.floor]
            combination = self._of(own)
        for step in left:  # this device has not taken part in them
            self.end(step, late())
        if combination is not None:
            combination.begin(combiner)
        return combination

    def end(self, step: StepKey, error: OpError | None) -> None:
        """See `Combination.end`."""
        with self._lock:
            combination = self._running.pop(step, None)
            self._ledgers[step.driver].finish(step.number)
        if combination is not None:
            combination.end(error)

    def leave(self, driver: str, error: OpError) -> None:
        """End everything of a driver that has left."""
        with self._lock:
            self._ledgers[driver] = Ledger(EVERY_STEP)
            steps = [step for step in self._running if step.driver == driver]
        for step in steps:
            self.end(step, error)


class OwnReceipt:
    """A `Receipt` for what a replica contributes on the device that combines it."""

    def __init__(self) -> None:
        self._over = threading.Event()
        self._error: OpError | None = None

    def told(self, error: OpError | None) -> None:
        """See `Told`."""
        self._error = error
        self._over.set()

    def __call__(self, timeout_s: float | None) -> None:
        if not self._over.wait(timeout_s):
            raise DeadlineExceededError("the contributions of this node have not been combined in time")
        if self._error is not None:
            raise self._error


def late() -> OpError:
    """The error for a contribution that came when the others had been combined, or are not combined any more."""
    return AbortedError("the contributions of this node have been combined without it, or are not combined any more")


def received_array(value: Any) -> Any:
    """The array of a tensor that another replica has sent."""
    if isinstance(value, LentTensor):
        return value.array
    return value.unpacked() if isinstance(value, PackedTensor) else value
