"""Running a plan: segments run as their inputs arrive."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfray.errors import DeadlineExceededError
from tfray.runtime.plan import Plan, Segment
from tfray.runtime.rendezvous import Mailbox, Rendezvous


class Step:
    """One execution of a compiled graph, as kernels see it.

    Attributes:
        id: Unique among the steps of one driver.
        deadline: `time.monotonic` value after which waits give up, or None.
    """

    __slots__ = ("deadline", "id", "rendezvous")

    def __init__(self, step_id: int, rendezvous: Rendezvous | None = None, deadline: float | None = None) -> None:
        self.id = step_id
        self.rendezvous = rendezvous
        self.deadline = deadline

    def send(self, key: str, destination: str, value: Any) -> None:
        """Hand a tensor to another device (the Send operation)."""
        assert self.rendezvous is not None
        self.rendezvous.send(key, destination, value)

    def check_deadline(self) -> None:
        """Raise `DeadlineExceededError` when the deadline has passed."""
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise DeadlineExceededError("the step ran past its timeout")


class PlanRun:
    """One plan in one step: which segments still wait, and the values between them.

    Not thread-safe: one thread delivers, starts and advances.
    """

    def __init__(self, plan: Plan, step: Step, feeds: Sequence[Any]) -> None:
        plan.check_feeds(feeds)
        self._plan = plan
        self._step = step
        self._values: list[Any] = [None] * plan.slot_count
        self._waits = list(plan.initial_waits)
        self._ready: deque[Segment] = deque(segment for segment in plan.segments if segment.waits == 0)
        self._missing = set(plan.recv_slots)
        self._unfinished = len(plan.segments)
        for slot, value in zip(plan.feed_slots, feeds, strict=True):
            self._values[slot] = value

    @property
    def done(self) -> bool:
        """Whether every segment has run and every tensor sent to this device has arrived."""
        return self._unfinished == 0 and not self._missing

    @property
    def missing(self) -> list[str]:
        """Keys of the edges from which nothing has arrived yet."""
        return sorted(self._missing)

    def deliver(self, key: str, value: Any) -> None:
        """Take a received tensor."""
        self._missing.remove(key)
        self._values[self._plan.recv_slots[key]] = value
        for segment in self._plan.recv_segments[key]:
            self._count_down(segment)

    def advance(self) -> bool:
        """Run every segment that is ready. Returns whether any ran."""
        ran = bool(self._ready)
        while self._ready:
            self._run(self._ready.popleft())
        return ran

    def fetch(self) -> list[Any]:
        """The fetched values, on the device."""
        return [self._values[slot] for slot in self._plan.fetch_slots]

    def _run(self, segment: Segment) -> None:
        self._step.check_deadline()
        values = self._values
        outputs = segment.run(self._step, [values[slot] for slot in segment.input_slots])
        if self._step.rendezvous is not None:
            self._step.rendezvous.flush()
        for slot, value in zip(segment.output_slots, outputs, strict=True):
            values[slot] = value
        self._unfinished -= 1
        for follower in segment.followers:
            self._count_down(follower)

    def _count_down(self, segment: Segment) -> None:
        self._waits[segment.index] -= 1
        if self._waits[segment.index] == 0:
            self._ready.append(segment)


def run_plan(plan: Plan, step: Step, feeds: Sequence[Any], mailbox: Mailbox) -> list[Any]:
    """Run a plan on the calling thread, waiting on `mailbox` for what other devices send.

    Returns:
        The fetched values, on the device.

    Raises:
        OpError: A kernel failed, the step was aborted, or its deadline passed.
    """
    with np.errstate(all="ignore"):
        run = PlanRun(plan, step, feeds)
        run.advance()
        while not run.done:
            waiting_for = f"{', '.join(run.missing[:4])} on {plan.device.name}"
            for key, value in mailbox.take(step.deadline, waiting_for):
                run.deliver(key, _on_device(plan, value))
            run.advance()
        return run.fetch()


def _on_device(plan: Plan, value: Any) -> Any:
    """A received tensor in the device's memory; from replicas, a list with one tensor of each."""
    if isinstance(value, list):
        return [plan.device.asarray(item) for item in value]
    return plan.device.asarray(value)
