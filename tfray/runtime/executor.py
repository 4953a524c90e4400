"""Running a plan: segments run as their inputs arrive."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import closing
from contextvars import ContextVar
from typing import Any, Final, Protocol

import numpy as np

from tfray.errors import CancelledError, DeadlineExceededError
from tfray.framework.graph import Operation
from tfray.runtime.plan import Plan, Segment
from tfray.runtime.rendezvous import Mailbox
from tfray.runtime.step import Left, Run, Step

_ignores_float_errors: Final = ContextVar("tfray_ignores_float_errors", default=False)
"""Whether `ignore_float_errors` has been called on this thread."""


def ignore_float_errors() -> None:
    """Switch NumPy's warnings of overflows and the like off, for good, on a thread that only runs steps.

    Switching them off and on again each time that a step advances would take as long as a short kernel.
    """
    np.seterr(all="ignore")
    _ignores_float_errors.set(True)


class PlanRun:
    """One plan in one step: which segments still wait, and the values between them.

    Not thread-safe: one thread delivers, starts and advances.
    """

    # `_values`: the value in each slot of the plan. `_waits`: for each segment, how many deliveries and earlier
    # segments it still waits for; at 0 it moves to `_ready`, or to `_ready_holding` if it may hold up the thread.

    def __init__(self, plan: Plan, step: Step, feeds: Sequence[Any]) -> None:
        if len(feeds) != len(plan.feed_slots):
            plan.check_feeds(feeds)
        self._plan = plan
        self._step = step
        self._values: list[Any] = [None] * plan.slot_count
        self._waits = plan.initial_waits.copy()
        self._ready = deque(plan.first_segments)
        self._ready_holding = deque(plan.first_holding)
        self._left: list[tuple[Segment, Left]] = []
        self._missing = set(plan.recv_slots)
        self._unfinished = len(plan.segments)
        self._holders = plan.holders.copy() if plan.holders else plan.holders
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

    @property
    def has_all(self) -> bool:
        """Whether every tensor sent to this device has arrived."""
        return not self._missing

    @property
    def is_idle(self) -> bool:
        """Whether nothing in it is ready, waits or is still to arrive."""
        return not (self._ready or self._ready_holding or self._left or self._missing)

    @property
    def suspended(self) -> list[Operation]:
        """Operations that were started, and whose segments were left, because they have to wait."""
        return [left.op for _, left in self._left]

    def deliver(self, key: str, value: Any) -> None:
        """Take a received tensor."""
        plan = self._plan
        slot = plan.recv_slots.get(key)
        if slot is None:
            self._step.arrived(key, value)
            return
        if key not in self._missing:
            return  # it was sent again, because whoever should have passed it on did not seem to
        self._missing.remove(key)
        if not (plan.takes_numpy and isinstance(value, (np.ndarray, np.generic))):
            value = plan.received(key, value)
        self._values[slot] = value
        for segment in plan.recv_segments[key]:
            self._count_down(segment)

    def advance(self) -> bool:
        """Run every segment that is ready and cannot hold up the thread. Returns whether any ran."""
        ready = self._ready
        if not (self._left and self._go_on()) and not ready:
            return False
        while ready:
            self._run(ready.popleft())
        return True

    def advance_fully(self) -> None:
        """Run every segment that is ready. Those that may hold up the thread come last, one by one."""
        self.advance()
        while self._ready_holding:
            self.advance_last()
            self.advance()

    def advance_last(self) -> bool:
        """Run one of the segments that are ready and may hold up the thread. Returns whether there was one."""
        if not self._ready_holding:
            return False
        self._run(self._ready_holding.popleft())
        return True

    def fetch(self) -> list[Any]:
        """The fetched values, on the device."""
        return [self._values[slot] for slot in self._plan.fetch_slots]

    def fetch_to_host(self) -> list[Any]:
        """The fetched values, as NumPy arrays."""
        fetched = self.fetch()
        return fetched if self._plan.takes_numpy else [self._plan.device.to_host(value) for value in fetched]

    def close(self) -> None:
        """Let go of all values."""
        self._values.clear()

    def _run(self, segment: Segment, left: Left | None = None) -> None:
        """Run a segment, or the rest of one that was left."""
        step = self._step
        if step.may_have_ended:
            step.raise_if_ended()
        step.suspends = segment.suspends
        values = self._values
        try:
            if left is None:
                outputs = segment.run(step, [values[slot] for slot in segment.input_slots])
            else:
                outputs = left.go_on()
        except Left as again:
            self._left.append((segment, again.with_traceback(None)))  # frames would keep this object, and its values
            return
        for slot, value in zip(segment.output_slots, outputs, strict=True):
            values[slot] = value
        for slot in segment.last_read_slots:
            values[slot] = None
        if segment.sends and step.rendezvous is not None:
            step.rendezvous.flush()
        self._unfinished -= 1
        for key in segment.releases:
            self._release(key)
        for follower in segment.followers:
            self._count_down(follower)

    def _release(self, key: str) -> None:
        self._holders[key] -= 1
        if not self._holders[key] and self._step.released is not None:
            self._step.released(key)

    def _go_on(self) -> bool:
        """Run the rest of the segments whose operation need not wait any more. Returns whether there were any."""
        has_run = False
        while (done := next((each for each in self._left if each[1].attempt.done), None)) is not None:
            self._left.remove(done)
            self._run(*done)
            has_run = True
        return has_run

    def _count_down(self, segment: Segment) -> None:
        waits = self._waits
        index = segment.index
        waits[index] -= 1
        if waits[index] == 0:
            (self._ready_holding if segment.may_hold_thread else self._ready).append(segment)


def advance_all(runs: Sequence[WholeRun]) -> None:
    """Run the segments of one step's plans, on the calling thread, until none is ready."""
    if len(runs) == 1:
        runs[0].advance_fully()
        return
    while sum([run.advance() for run in runs]) or any(run.advance_last() for run in runs):
        pass


def run_to_end(runs: Sequence[WholeRun], step: Step) -> bool:
    """Run the plans of a step on the calling thread, and wait for operations that wait for other steps.

    Returns:
        Whether all has run. Otherwise somebody else has to send something.
    """
    if _ignores_float_errors.get():
        return _run_to_end(runs, step)
    with np.errstate(all="ignore"):
        return _run_to_end(runs, step)


def _run_to_end(runs: Sequence[WholeRun], step: Step) -> bool:
    while True:
        advance_all(runs)
        if all([run.done for run in runs]):  # noqa: C419 (a list takes half the time)
            return True
        if step.mailbox is None or not any(run.suspended for run in runs):
            return False
        wait_for_more(runs, step, step.mailbox)


def wait_for_more(runs: Sequence[WholeRun], step: Step, mailbox: Mailbox) -> list[tuple[str, Any]]:
    """Wait until something has arrived, or an operation of one of these plans need not wait any more.

    Raises:
        OpError: The step was aborted, or its deadline passed. It names one of the operations that wait.
    """
    step.begin_calls()
    held = [op for run in runs for op in run.suspended]
    missing = [key for run in runs for key in run.missing]
    waiting_for = ", ".join([op.name for op in held[:4]] + missing[:4])
    try:
        return mailbox.take(step.deadline, waiting_for)
    except (CancelledError, DeadlineExceededError) as error:
        if held and error.op_name is None:
            error.op_name, error.device, error.site = held[0].name, held[0].device, held[0].site
            what = next((word for word in ("Enqueue", "Dequeue") if word in held[0].type), None)
            if what is not None and isinstance(error, CancelledError):
                error.message = f"{what} operation was cancelled: {error.message}"
        raise


class WholeRun(Run, Protocol):
    """All that one process runs in a step: a `PlanRun`, or those of several devices (`plan_group.GroupRun`)."""

    @property
    def done(self) -> bool:
        """Whether everything has run and has arrived."""

    @property
    def suspended(self) -> list[Operation]:
        """Operations that were started, and whose segments were left, because they have to wait."""

    def advance_last(self) -> bool:
        """Run one of the segments that are ready and may hold up the thread. Returns whether there was one."""

    def advance_fully(self) -> None:
        """Run everything that is ready."""

    def fetch(self) -> list[Any]:
        """The fetched values."""

    def close(self) -> None:
        """Let go of all values."""


class StepExecution:
    """A run in one step, advanced whenever something has arrived for it. One thread at a time may use it.

    Args:
        run: What runs.
        step: The step.
        mailbox: Takes the tensors that other devices send.
        is_timed: Whether to measure `longest_turn_s`. Each measurement takes two system calls.

    Attributes:
        is_timed: The argument.
        longest_turn_s: The longest processor time of one `advance`, in seconds; 0 unless `is_timed`.
    """

    def __init__(self, run: WholeRun, step: Step, mailbox: Mailbox, *, is_timed: bool = False) -> None:
        self._step = step
        self._mailbox = mailbox
        self.is_timed = is_timed
        self._run = run
        self.longest_turn_s = 0.0
        step.runs = [self._run]

    def advance(self) -> bool:
        """Take what has arrived, and run what is ready. Returns whether the plan has come to its end.

        Raises:
            OpError: A kernel failed, the step was aborted, or its deadline passed.
        """
        run = self._run
        for key, value in self._mailbox.arrived():
            run.deliver(key, value)
        if self._mailbox.lost:
            self._mailbox.check_lost(run.missing)
        # The thread's own processor time: wall time would include other processes where they outnumber the cores.
        started = time.thread_time() if self.is_timed else 0.0
        if _ignores_float_errors.get():
            run.advance_fully()
        else:
            with np.errstate(all="ignore"):
                run.advance_fully()
        if self.is_timed:
            self.longest_turn_s = max(self.longest_turn_s, time.thread_time() - started)
        return run.done

    def run(self) -> list[Any]:
        """Advance to the end on the calling thread, waiting for what arrives. Returns the fetched values."""
        while not self.advance():
            for key, value in wait_for_more([self._run], self._step, self._mailbox):
                self._run.deliver(key, value)
        return self.fetch()

    def fetch(self) -> list[Any]:
        """The fetched values, on the device that computed them."""
        return self._run.fetch()

    def close(self) -> None:
        """Give up what the step still waits for."""
        self._step.cancel()
        self._run.close()
        self._step.runs = ()  # breaks a reference cycle, which would keep received tensors until garbage collection


def run_plan(
    plan: Plan,
    step: Step,
    feeds: Sequence[Any],
    mailbox: Mailbox,
    start: Callable[[Plan, Any, Sequence[Any]], PlanRun] = PlanRun,
) -> list[Any]:
    """Run a plan on the calling thread, waiting on `mailbox` for what other devices send.

    Args:
        plan: The plan.
        step: The step.
        feeds: Fed values, on the device.
        mailbox: Takes the tensors that other devices send.
        start: Makes the `PlanRun`.

    Returns:
        The fetched values, on the device.

    Raises:
        OpError: A kernel failed, the step was aborted, or its deadline passed.
    """
    with closing(StepExecution(start(plan, step, feeds), step, mailbox)) as execution:
        return execution.run()
