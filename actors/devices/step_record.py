"""What a device knows of one step, from its first message until it is over."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

from tfray.actors.devices.prompt_step import PromptStep
from tfray.actors.devices.registered_plan import RegisteredPlan
from tfray.actors.devices.replica_inbox import Contributed, ReplicaInbox, StepVoid
from tfray.actors.devices.ring import RingStep
from tfray.actors.links.messages import StepRequest
from tfray.actors.links.object_rendezvous import ObjectRendezvous
from tfray.actors.links.peer_link import defer
from tfray.actors.links.peers import Outcome
from tfray.errors import OpError, UnavailableError
from tfray.ops.system.replica_ops import Contributions
from tfray.runtime.rendezvous import LARGE_BYTES, Mailbox
from tfray.runtime.step import Step

_RELEASED: Final = np.zeros(0, np.uint8)


class StepRecord:
    """One step on this device, from its first message until it is over."""

    def __init__(self) -> None:
        self.mailbox = Mailbox()
        self.rendezvous: ObjectRendezvous | None = None
        self.inbox: ReplicaInbox | None = None
        self.ring: RingStep | None = None
        """What replicas that hold copies of the variables reduce among themselves."""
        self.early: list[tuple[tuple[int, ...], list[tuple[str, Any]]]] = []
        self.members: tuple[int, ...] | None = None
        self.step: Step | None = None
        self.is_called = False
        self.joined: list[str] = []
        self.prompt: PromptStep | None = None
        self.plan: RegisteredPlan | None = None
        """What it runs, once it has begun."""
        self.lost: set[str] = set()
        """Devices from which nothing more comes."""
        self.over: threading.Event | None = None
        """Set when it is over, if somebody waits for that."""
        self.has_computed = False
        """Of a replica's step: whether its plan has run. What it sends may still be under way."""
        self.later: StepRecord | None = None
        """The next step, if it has begun before this one is over."""
        self._released: list[str] = []
        self.arrivals: dict[str, int] = {}
        """By key of its edge: when a large tensor had come, by `time.perf_counter_ns`."""

    def lose(self, sender: str) -> None:
        """Nothing more comes from a device, because the connection from it is lost. End the step if it waits for that.

        A branch or a loop may be about to wait: a step ends at once if one of them receives something from the device.
        """
        self.lost.add(sender)
        self.check_lost()
        self.advance()

    def check_lost(self) -> None:
        """Do what `lose` does, for devices that were lost before the step began."""
        if self.ring is not None:
            self.ring.lose(self.lost)
        if self.plan is None or not self.lost:
            return
        for source, senders in self.plan.senders.items():
            if senders <= self.lost and source not in self.mailbox.lost:
                sender = min(senders)
                what = f"the actor of {sender} died, or the connection from it was lost, during the step"
                error = UnavailableError(what, device=sender)
                self.mailbox.lose(source, error)
                if source in self.plan.inner_sources:
                    self.end(error)

    def _note_arrival(self, items: Iterable[tuple[str, Any]]) -> None:
        for key, value in items:
            if getattr(value, "nbytes", 0) >= LARGE_BYTES:
                self.arrivals[key] = time.perf_counter_ns()

    def contribute(self, replicas: tuple[int, ...], items: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
        """Take contributions of replicas. Returns what is to be handed over, once the members have sent everything."""
        self._note_arrival(items)
        if self.ring is not None:
            self.ring.add(items)
            return []
        if self.inbox is None:
            self.early.append((replicas, items))
            return []
        return _combinable(self.inbox.add(replicas, items))

    def reduce_by(self, ring: RingStep) -> None:
        """From now on let `ring` have what other replicas send, and what they have sent."""
        self.ring = ring
        for _, items in self.early:
            ring.add(items)
        self.early.clear()

    def reduced(self, outcome: Outcome) -> None:
        """The reductions have ended. If they have failed, so has the step, unless it is over already."""
        if outcome[0] == "error":
            self.end(outcome[1])

    def commit(self, members: Sequence[int]) -> list[tuple[str, Any]]:
        """Set the replicas that count. Returns the same."""
        return [] if self.inbox is None else _combinable(self.inbox.commit(members))

    def may_end(self, request: StepRequest) -> bool:
        """Whether it may end once its plan has run. A shard's may not while members are undecided: replicas that join
        until then need its tensors, even if they send it none."""
        return self.members is not None or not request.receivers or request.serves

    @property
    def may_be_half_done(self) -> bool:
        """Whether it may have changed something, and not everything. Call it of a step that has failed."""
        return self.plan is not None and (self.inbox is None or self.inbox.is_complete or self.inbox.has_begun)

    @property
    def may_have_contributions(self) -> bool:
        """Whether it needs nothing more from replicas. Of a step that has not begun, whether that may turn out so."""
        return bool(self.early) if self.inbox is None else self.inbox.is_complete

    def hand_over(self, items: list[tuple[str, Any]]) -> None:
        """Put tensors into the step's mailbox, or end the step if it is void."""
        if self.inbox is not None and self.inbox.is_void:
            self.mailbox.abort(StepVoid())
        elif items:
            self._note_arrival(items)
            self.mailbox.deliver(items)

    def release(self, key: str) -> None:
        """Let the next step have what this one has released; see `runtime.releases`. On the thread of this step."""
        self._released.append(key)
        if self.later is not None:  # in this order, and in the opposite one below: so nothing is missed
            self.later.take_released([key])

    def overlap(self, later: StepRecord) -> None:
        """Note the next step, which has begun: it takes what this one has released, and what it still will."""
        self.later = later
        later.take_released(self._released.copy())

    def take_released(self, keys: Iterable[str]) -> None:
        """Take what the step before has released. What comes twice counts once."""
        self.mailbox.deliver([(key, _RELEASED) for key in keys])
        self.advance()

    def end(self, error: OpError) -> None:
        """Make the step raise `error`, whether it waits or computes."""
        self.mailbox.abort(error)  # before `self.step` is read: a step that is made meanwhile finds the error there
        if self.ring is not None:
            self.ring.end(error)
        if self.step is not None:
            self.step.end(error)
        self.advance()

    def check_reopened(self) -> None:
        """Send the replicas nothing more if the step has been reopened, as they are gone."""
        if self.members == () and self.rendezvous is not None:
            self.rendezvous.forget_replicas()

    def advance(self) -> None:
        """Carry on a prompt step, once all messages that are there have been put into their mailboxes."""
        if self.prompt is not None:
            defer(self.prompt.advance)


def _combinable(items: list[tuple[str, Contributed]]) -> list[tuple[str, Any]]:
    return [(key, Contributions(values, values.replicas)) for key, values in items]
