"""One execution of a compiled graph, as kernels see it: where they wait, and what ends them.

A step ends early when its deadline passes, when its session closes, or when a device fails. A thread that waits in the
step is then woken. A thread that computes has to look by itself: generated code tests `Step.may_have_ended` between the
turns of loops and before operations that may take long. The flag is false, and the test cheap, in a step that has no
deadline and that has not been ended.
"""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from itertools import pairwise
from typing import Any, Final, Protocol

from tfray.errors import DeadlineExceededError, InternalError, NotAnError, OpError
from tfray.framework.graph import Operation
from tfray.framework.tensor_list import TensorList
from tfray.runtime.edge_key import in_turns
from tfray.runtime.rendezvous import Mailbox, Rendezvous

NEXT_CALL_S: Final = 0.02
"""Seconds. Several Python functions that are ready are called in order, one at a time. A function that takes longer
than this no longer holds up the next one, which then runs beside it: they may wait for one another."""


class Run(Protocol):
    """A plan of one device that runs in the step."""

    @property
    def has_all(self) -> bool:
        """Whether everything that others send to it has arrived."""

    @property
    def is_idle(self) -> bool:
        """Whether nothing in it is ready, waits or is still to arrive."""

    @property
    def missing(self) -> list[str]:
        """Keys of the edges from which nothing has arrived yet."""

    def deliver(self, key: str, value: Any) -> None:
        """Give it a tensor that has arrived."""

    def advance(self) -> bool:
        """Run what is ready. Returns whether that was anything."""


class Attempt(Protocol):
    """One try of an operation that may have to wait, such as taking an element of a queue that is empty."""

    when_done: Callable[[], None] | None
    """Called once `done` has become true, on the thread that made it true."""

    @property
    def done(self) -> bool:
        """Whether it has succeeded or failed."""

    def result(self) -> Any:
        """What the kernel returns. Raises the error with which it failed."""

    def cancel(self) -> None:
        """Give up."""


class Call:
    """A Python function of the user's as an `Attempt`: it may take any time, and `run` or `start` has to call it.

    Attributes:
        when_done: See `Attempt`.
        done: Whether the function has returned or raised.
        began: When it was called, by `time.perf_counter_ns`.
        ended: When it returned or raised.
    """

    __slots__ = ("_error", "_function", "_is_given_up", "_thread", "_value", "began", "done", "ended", "when_done")

    def __init__(self, function: Callable[[], Any]) -> None:
        self.when_done: Callable[[], None] | None = None
        self.done = False
        self.began = self.ended = 0
        self._function = function
        self._value: Any = None
        self._error: BaseException | None = None
        self._is_given_up = False
        self._thread: threading.Thread | None = None

    def run(self) -> None:
        """Call the function on this thread."""
        self.began = time.perf_counter_ns()
        try:
            self._value = self._function()
        except Exception as error:  # noqa: BLE001 (`result` raises it)
            self._error = error
        self._finish()

    def start(self, before: Call | None) -> None:
        """Call the function on a thread of its own, after `before` has ended or `NEXT_CALL_S` have passed.

        So functions run in order and one at a time, unless they are slow or wait for one another.
        """

        def run() -> None:
            if before is not None and before._thread is not None:
                before._thread.join(NEXT_CALL_S)
            if self._is_given_up:
                return
            try:
                self.run()
            except BaseException as error:  # noqa: BLE001 (`result` raises it, on the thread of the step)
                self._error = error
                self._finish()

        # A daemon thread: the program can end even if the function never does.
        self._thread = threading.Thread(target=copy_context().run, args=(run,), name="tfray-call", daemon=True)
        self._thread.start()

    def _finish(self) -> None:
        self.ended = time.perf_counter_ns()
        self.done = True
        if self.when_done is not None:
            self.when_done()

    def result(self) -> Any:
        """What the function has returned. Raises what it has raised."""
        if self._error is not None:
            raise self._error
        return self._value

    def cancel(self) -> None:
        """Do not call the function if it has not been called yet. Once it runs, nothing can end it."""
        self._is_given_up = True


class Suspended(NotAnError):
    """Raised to leave the kernel of an operation that has to wait. It is called again when the attempt is done."""

    def __init__(self, attempt: Attempt) -> None:
        super().__init__()
        self.attempt = attempt


class Left(NotAnError):
    """Raised to leave a segment, because an operation has to wait.

    Attributes:
        op: The operation.
        attempt: What has to be done before the segment can go on.
        go_on: Runs the rest of the segment, and returns what the segment returns. It may raise this again.
    """

    def __init__(self, op: Operation, attempt: Attempt, go_on: Callable[[], tuple[Any, ...]]) -> None:
        super().__init__()
        self.op = op
        self.attempt = attempt
        self.go_on = go_on


class Step:
    """One execution of a compiled graph, as kernels see it.

    Attributes:
        id: Unique among the steps of one driver.
        rendezvous: Takes what goes to other devices.
        deadline: `time.monotonic` value after which waits give up, or None.
        mailbox: Where the step waits; None if nothing in the step can wait.
        may_have_ended: Whether `raise_if_ended` may raise: there is a deadline, or the step has been ended.
        suspends: Whether the running segment may be left when its operation has to wait.
        runs: The plans that the thread of the step advances. `_hold` goes on with them while a branch or a loop waits.
        held: What some operations take and others give back, by the method ``release``; the end of the step does, too.
        released: Called with each key of the plan's `Releases` once everything that holds it has run, if anybody cares.
    """

    # `_attempts`: what operations wait for, by operation name. `_inbox`: tensors for a `receive` still to come.
    # `_path`: for each loop around the running operation, outermost first, the number of its turn.

    __slots__ = (
        "_attempts",
        "_calls",
        "_error",
        "_inbox",
        "_path",
        "deadline",
        "held",
        "id",
        "mailbox",
        "may_have_ended",
        "released",
        "rendezvous",
        "runs",
        "suspends",
    )

    def __init__(
        self,
        step_id: int,
        rendezvous: Rendezvous | None = None,
        deadline: float | None = None,
        mailbox: Mailbox | None = None,
    ) -> None:
        self.id = step_id
        self.rendezvous = rendezvous
        self.deadline = deadline
        self.mailbox = mailbox
        self.may_have_ended = deadline is not None
        self.suspends = False
        self.runs: Sequence[Run] = ()
        self.held: set[Any] = set()
        self.released: Callable[[str], None] | None = None
        self._error: OpError | None = None
        self._calls: list[Call] = []
        self._attempts: dict[str, Attempt] = {}
        self._inbox: dict[str, Any] = {}
        self._path: list[int] = []

    def end(self, error: OpError) -> None:
        """End the step early, from any thread: all that compute or wait in it raise `error`."""
        self._error = error
        self.may_have_ended = True
        if self.mailbox is not None:
            self.mailbox.abort(error)

    def raise_if_ended(self) -> None:
        """Raise what has ended the step, or `DeadlineExceededError` when its deadline has passed."""
        if self._error is not None:
            raise copy.copy(self._error)  # a copy: each thread that raises it writes its own operation's name into it
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise DeadlineExceededError("the step ran past its timeout")

    def send(self, key: str, destination: str, value: Any) -> None:
        """Hand a tensor to another device (the Send operation)."""
        assert self.rendezvous is not None
        if isinstance(value, TensorList):
            value = value.detached()
        if not self._path:
            self.rendezvous.send(key, destination, value)
            return
        self.rendezvous.send(in_turns(key, self._path), destination, value)
        self.rendezvous.flush()  # at once, for the receiver's turn of the loop: the segment ends only after the loop

    def receive(self, key: str) -> Any:
        """Wait for a tensor from another device, for a Recv operation within a branch or a loop."""
        key = in_turns(key, self._path)
        while key not in self._inbox:
            self._hold(key)
        return self._inbox.pop(key)

    def arrived(self, key: str, value: Any) -> None:
        """Keep a tensor for the `receive` that will ask for it."""
        self._inbox[key] = value

    @contextmanager
    def turns(self) -> Iterator[Callable[[], None]]:
        """Around a loop. Yields a function to call at the end of each turn; it raises the error that ended the step."""
        path = self._path
        path.append(0)

        def next_turn() -> None:
            path[-1] += 1
            if self.may_have_ended:
                self.raise_if_ended()

        yield next_turn
        path.pop()

    def complete(self, op_name: str, start: Callable[..., Attempt], *arguments: Any) -> Any:
        """The result of the attempt that ``start(*arguments)`` begins, for kernels of blocking operations.

        While the attempt is not done, the calling thread runs what else is ready in the step, or waits. It gives up
        when the step is aborted or its deadline passes.

        Args:
            op_name: The operation.
            start: Called once, even if the kernel is left and called again.
            *arguments: Arguments of `start`.
        """
        attempt = self._attempts.pop(op_name, None) if self._attempts else None
        if attempt is None:
            attempt = start(*arguments)
        if not attempt.done:
            self._wait(op_name, attempt)
        return attempt.result()

    def call(self, op_name: str, function: Callable[[], Any]) -> Any:
        """What a function of the user's returns, for kernels of blocking operations. The function may wait for others.

        It runs on the thread of the step if there is no deadline and nothing else in the step could go on meanwhile.
        Otherwise it runs on a thread of its own, which is left to itself once the step has been ended.

        Args:
            op_name: The operation.
            function: Called once, even if the kernel is left and called again.
        """
        if self.mailbox is None or ((not self.suspends or self._is_alone) and self._may_hold_thread(0)):
            return function()
        return self.complete(op_name, self._call, function)

    @property
    def _is_alone(self) -> bool:
        """Whether nothing else in the step could run if the running segment were left."""
        return len(self.runs) == 1 and self.runs[0].is_idle

    def _may_hold_thread(self, attempts: int) -> bool:
        """Whether a function may hold up the thread: only `attempts` attempts, and nothing else, could go on."""
        if self.deadline is not None or len(self._attempts) > attempts:
            return False
        # Several plans on one thread receive from one another only. A single plan may receive from other processes.
        return len(self.runs) > 1 or self.runs[0].has_all

    def _call(self, function: Callable[[], Any]) -> Call:
        call = Call(function)
        self._calls.append(call)
        return call

    def begin_calls(self) -> None:
        """Call the functions that are ready. The executor does this last, when nothing else is ready."""
        if not self._calls:
            return
        calls, self._calls = self._calls, []
        if self._may_hold_thread(1):
            calls[0].run()
            return
        for before, call in pairwise([None, *calls]):
            assert call is not None
            call.start(before)

    def _wait(self, op_name: str, attempt: Attempt) -> None:
        if self.mailbox is None:
            raise InternalError("a step without a mailbox cannot wait", op_name=op_name)
        attempt.when_done = self.mailbox.wake
        self._attempts[op_name] = attempt
        if self.suspends and not attempt.done:  # looked at again: what was done before the line above wakes nobody
            raise Suspended(attempt)
        while not attempt.done:
            self._hold(op_name)
        del self._attempts[op_name]

    def _hold(self, waiting_for: str) -> None:
        """Wait within a branch or a loop, which cannot be left, and run what becomes ready meanwhile."""
        assert self.mailbox is not None
        if self.rendezvous is not None:
            self.rendezvous.flush()
        self.begin_calls()
        for key, value in self.mailbox.take(self.deadline, waiting_for):
            self.runs[0].deliver(key, value)
        if self.mailbox.lost:
            self.mailbox.check_lost(self.runs[0].missing)
        path, self._path = self._path, []  # what runs now is outside of the loops that wait here
        try:
            while sum([run.advance() for run in self.runs]):
                pass  # what one device has computed another may wait for
        finally:
            self._path, self.suspends = path, False

    def cancel(self) -> None:
        """Give up what the step still waits for, and what it holds."""
        while self._attempts:
            self._attempts.popitem()[1].cancel()
        while self.held:
            self.held.pop().release()


class Background(Step):
    """Stands for the step where there is none: in functions of datasets, and in local steps that never wait or send.

    Any number of threads may use it at once, and wait in it. It ends with the device.
    """

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        super().__init__(0)
        self._waiting: set[Mailbox] = set()

    def end(self, error: OpError) -> None:
        """End all that runs on the device outside of steps."""
        super().end(error)
        for mailbox in list(self._waiting):
            mailbox.abort(copy.copy(error))

    def complete(self, op_name: str, start: Callable[..., Attempt], *arguments: Any) -> Any:
        """The result of an attempt; the calling thread waits for it."""
        attempt, mailbox = start(*arguments), Mailbox()
        attempt.when_done = mailbox.wake
        self._waiting.add(mailbox)
        try:
            while not attempt.done:
                self.raise_if_ended()
                mailbox.take(None, op_name)
        except BaseException:
            attempt.cancel()
            raise
        finally:
            self._waiting.discard(mailbox)
        return attempt.result()
