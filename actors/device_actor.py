"""One device, or one parameter shard, as a Ray actor: registers plans and runs steps.

Three kinds of calls arrive: ``run_step`` occupies a thread for the whole step; messages (`deliver`, `commit`, `join`,
`abort`) are short, have a thread of their own, and meet the running step in its mailbox; the rest is set-up. Steps
that may wait for other steps, at a queue for instance, have threads apart from the rest, and many: those for which
they wait must find one. Steps, tensors and their answers also come and go over links (`peer_link.py`), which are faster
than Ray's calls.

A message may come before the ``run_step`` of its step: whichever is first makes the step's record. Once a step is over,
messages for it are dropped.
"""

from __future__ import annotations

import importlib
import math
import os
import threading
import time
import traceback
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from typing import Any, Final

import ray

from tfray.actors.frames import fits
from tfray.actors.messages import REPLICA_DEVICE, SERVED, Presence, StepKey, StepRequest
from tfray.actors.metrics import count_sent
from tfray.actors.object_rendezvous import ObjectRendezvous
from tfray.actors.packing import unpack
from tfray.actors.peer_link import Link, LinkServer
from tfray.actors.peers import PeerHandle, Peers, error_header
from tfray.actors.prompt_step import LONGEST_TURN_S, PromptStep, is_prompt
from tfray.actors.replica_inbox import ReplicaInbox
from tfray.errors import (
    AbortedError,
    CancelledError,
    DataLossError,
    DeadlineExceededError,
    OpError,
    OutOfRangeError,
    UnknownError,
)
from tfray.framework.op_def import OpDef, adopt
from tfray.ops import families, script_ops
from tfray.ops.random_streams import restore_states, states_of
from tfray.runtime.device import Device
from tfray.runtime.executor import Step, StepExecution
from tfray.runtime.plan import Partition, Plan
from tfray.runtime.rendezvous import Mailbox
from tfray.runtime.tracing import DeviceTrace, TracedStep

CONCURRENT_STEPS: Final = 32
"""Steps that one actor runs at once; more wait for a free thread."""

WAITING_STEPS: Final = 256
"""The same for steps in which some operation may wait for other steps."""

CONCURRENCY_GROUPS: Final = {"messages": 1, "waiting_steps": WAITING_STEPS}
"""Threads for calls other than the usual."""

UNKNOWN_PACE_S: Final = 2 * LONGEST_TURN_S
"""Of a plan that has not run yet: its first step compiles, and has a thread of its own."""

EVERY_STEP: Final = 1 << 62
"""The floor of a driver that has left: all its steps are over."""

Outcome = tuple[str, Any]
"""``("ok", fetches)`` or ``("error", OpError)``: Ray would wrap a raised error in one of its own."""


class _StepRecord:
    """One step on this device, from its first message until it is over."""

    def __init__(self) -> None:
        self.mailbox = Mailbox()
        self.rendezvous: ObjectRendezvous | None = None
        self.inbox: ReplicaInbox | None = None
        self.early: list[tuple[int, list[tuple[str, Any]]]] = []
        self.members: tuple[int, ...] | None = None
        self.joined: list[str] = []
        self.decided = threading.Event()
        self.error: OpError | None = None
        self.prompt: PromptStep | None = None

    def end(self, error: OpError) -> None:
        """Let whoever waits in the step raise `error`."""
        self.error = self.error or error
        self.mailbox.abort(error)
        self.decided.set()
        self.advance()

    def advance(self) -> None:
        """Go on, on this thread, with a step for which no other waits."""
        if self.prompt is not None:
            self.prompt.advance()


class DeviceActor:
    """The actor's class; `tfray.actors.cluster` makes Ray actors of it.

    Args:
        device_name: Full name of the device that it hosts.
        key: The key that peers must hold.
        op_modules: Modules to import because they register operations of the user's own.
    """

    def __init__(self, device_name: str, key: bytes, op_modules: Sequence[str] = ()) -> None:
        for module in op_modules:
            importlib.import_module(module)
        self._op_modules = tuple(op_modules)
        self._device = Device.open(device_name)
        self._plans: dict[str, Plan] = {}
        self._pace_s: dict[str, float] = {}
        node = ray.get_runtime_context().get_node_id()
        self._peers = Peers(node)
        self._results: dict[str, Outcome] = {}
        self._steps: dict[StepKey, _StepRecord] = {}
        self._floors: dict[str, int] = {}
        self._finished: dict[str, set[int]] = {}
        self._inputs: dict[str, Iterator[Sequence[Any]]] = {}
        self._drivers: dict[Link, set[str]] = {}
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(CONCURRENT_STEPS, "tfray-step")
        self._waiting_threads = ThreadPoolExecutor(WAITING_STEPS, "tfray-waiting-step")
        host = ray.util.get_node_ip_address()  # type: ignore[no-untyped-call]
        self._links = LinkServer(key, node, host, self._take_message, self._driver_gone)

    # -- set-up ----------------------------------------------------------------------------------

    def ready(self) -> Presence:
        """Where the actor runs and listens; returns once it has started."""
        return Presence(self._links.address.node, os.getpid(), self._links.address)

    def connect(self, peers: Mapping[str, PeerHandle]) -> None:
        """Learn how to reach other devices, by name."""
        self._peers.update(peers)

    def register(
        self, plan_id: str, wire: Any, functions: Mapping[str, Callable[..., Any]], definitions: Sequence[OpDef] = ()
    ) -> Outcome:
        """Compile a partition under `plan_id`."""
        for definition in definitions:
            adopt(definition)
        for token, function in functions.items():
            script_ops.register_function(token, function)

        def compile_plan() -> None:
            plan = Plan(Partition.from_wire(wire), self._device, sends_copy=True)
            if is_prompt(plan):
                self._pace_s[plan_id] = UNKNOWN_PACE_S
            self._plans[plan_id] = plan

        return self._outcome(compile_plan)

    def deregister(self, plan_ids: Sequence[str]) -> None:
        """Forget plans."""
        for plan_id in plan_ids:
            self._plans.pop(plan_id, None)
            self._pace_s.pop(plan_id, None)
            self._inputs.pop(plan_id, None)

    def attach_input(self, name: str, make_input: Callable[[], Iterator[Sequence[Any]]]) -> Outcome:
        """Open an input pipeline: an iterator that gives the fed values of one step at a time."""

        def open_input() -> None:
            self._inputs[name] = make_input()

        return self._outcome(open_input)

    # -- random streams --------------------------------------------------------------------------

    def random_states(self) -> Outcome:
        """Where the random streams are; call it between steps."""
        return self._outcome(lambda: states_of(self._device.resources))

    def restore_random_states(self, states: Mapping[str, Any]) -> Outcome:
        """Put the random streams where they were; those that are not named begin anew."""
        return self._outcome(lambda: restore_states(self._device.resources, states))

    # -- steps -----------------------------------------------------------------------------------

    def run_step(self, plan_id: str, request: StepRequest, inline: Sequence[Any] = (), *objects: Any) -> Outcome:
        """Run a plan as this device's part of a step, on fed values that come packed."""
        return self._outcome(lambda: self._run_step(plan_id, request, unpack(inline, objects)))

    def _run_step(self, plan_id: str, request: StepRequest, feeds: Sequence[Any]) -> Any:
        trace = DeviceTrace(self._device, request.trace) if request.trace else None
        record: _StepRecord | None = None
        try:
            plan = self._plan(plan_id)
            record = self._begin(plan, request)
            if trace is not None:
                trace.begin()
            if request.read_input:
                feeds = self._next_input(plan_id)
            if trace is None:
                return self._run(plan_id, plan, request, record, feeds)
            if request.read_input:
                trace.took("_input", "", trace.start, trace.clock())
            fetched = self._run(plan_id, plan, request, record, feeds, trace)
            trace.close()
            return fetched, trace.record(plan.traced().buffer_bytes)
        finally:
            self._finish(request, record)

    def _plan(self, plan_id: str) -> Plan:
        plan = self._plans.get(plan_id)
        if plan is None:
            raise AbortedError(
                "the step is not registered here: the device was started anew since, or its session has ended"
            )
        return plan

    def _finish(self, request: StepRequest, record: _StepRecord | None) -> None:
        self._end(request.own)
        if record is not None and record.rendezvous is not None:
            count_sent(self._device.name, record.rendezvous.sent_bytes)

    def _keep_pace(self, plan_id: str, execution: StepExecution) -> None:
        """Remember how long a plan keeps its thread busy at a time: the mean of late, the latest counting most."""
        if plan_id in self._pace_s:
            self._pace_s[plan_id] = (self._pace_s[plan_id] + execution.longest_turn_s) / 2

    def _run(
        self,
        plan_id: str,
        plan: Plan,
        request: StepRequest,
        record: _StepRecord,
        feeds: Sequence[Any],
        trace: DeviceTrace | None = None,
    ) -> list[Any]:
        rendezvous = record.rendezvous
        assert rendezvous is not None
        deadline = None if request.timeout_s is None else time.monotonic() + request.timeout_s
        number, mailbox = request.step[1], record.mailbox
        with self._device.activate():
            fed = [self._device.asarray(value) for value in feeds]
            if trace is None:
                step = Step(number, rendezvous, deadline, mailbox)
                with closing(StepExecution(plan, step, fed, mailbox)) as execution:
                    fetched = execution.run()
                self._keep_pace(plan_id, execution)
            else:
                traced = TracedStep({self._device.name: trace}, number, rendezvous, deadline, mailbox)
                fetched = traced.run(plan.traced(), fed)
            ran = time.perf_counter_ns()
            if request.receivers and not request.serves:
                self._stay_until_decided(record, request.timeout_s)
            if request.replica is not None:
                # A replica is done only when the shards hold what it sent: it may die the moment after.
                rendezvous.wait_until_received(request.timeout_s)
            if trace is not None and (request.receivers or request.replica is not None):
                trace.took("_wait", "who takes part, or what was sent has arrived", ran, time.perf_counter_ns())
            return [self._device.to_host(value) for value in fetched]

    def _stay_until_decided(self, record: _StepRecord, timeout_s: float | None) -> None:
        """A shard to which no replica sends may be through at once, but replicas that join still need its tensors."""
        if not record.decided.wait(timeout_s):
            raise DeadlineExceededError("the step timed out waiting for replicas", device=self._device.name)
        if record.error is not None:
            raise record.error

    def _next_input(self, plan_id: str) -> Sequence[Any]:
        try:
            return next(self._inputs[plan_id])
        except StopIteration:
            raise OutOfRangeError("the input of this replica has ended", device=self._device.name) from None
        except Exception as error:
            raise UnknownError(
                f"the input function failed on {self._device.name}: {type(error).__name__}: {error}\n"
                + "".join(traceback.format_exception(error)[-3:]),
                device=self._device.name,
            ) from error

    def _begin(self, plan: Plan, request: StepRequest) -> _StepRecord:
        with self._lock:
            driver, number = request.own
            if number < self._floors.get(driver, 0):
                raise CancelledError("the step came after its driver had left", device=self._device.name)
            self._floors[driver] = max(request.floor, self._floors.get(driver, 0))
            finished = self._finished.setdefault(driver, set())
            finished -= {other for other in finished if other < request.floor}
            record = self._record(request.own) or _StepRecord()
            rendezvous = ObjectRendezvous(request, self._peers, self._device.to_host)
            for receiver in record.joined:
                rendezvous.join(receiver)
            record.rendezvous = rendezvous
            keys = [op.attr("key") for op in plan.recvs if op.attr("source") == REPLICA_DEVICE]
            record.members = request.members if record.members is None else record.members
            record.inbox = ReplicaInbox(keys, record.members)
            if record.members is not None:
                record.decided.set()
            arrived = [item for replica, items in record.early for item in record.inbox.add(replica, items)]
            record.early.clear()
        record.mailbox.deliver(list(arrived))
        return record

    def _end(self, step: StepKey) -> None:
        """Drop what is there of a step, and what still comes."""
        driver, number = step
        with self._lock:
            self._steps.pop(step, None)
            if number >= self._floors.get(driver, 0):
                self._finished.setdefault(driver, set()).add(number)

    def _record(self, step: StepKey) -> _StepRecord | None:
        """The record of a step, made if need be; None when the step is over. Call with the lock held."""
        driver, number = step
        if number < self._floors.get(driver, 0) or number in self._finished.get(driver, ()):
            return None
        return self._steps.setdefault(step, _StepRecord())

    # -- links -----------------------------------------------------------------------------------

    def _take_message(self, link: Link, message: dict[str, Any], tensors: list[Any]) -> None:
        """Do what a peer asks over a link. Raises `DataLossError` when it makes no sense, which closes the link."""
        number = message.get("number")
        try:
            match message["do"]:
                case "deliver":
                    keys = [str(key) for key in message["keys"]]
                    self._take(_step_key(message), message["replica"], list(zip(keys, tensors, strict=True)))
                    if number is not None:
                        _answer(link, {"number": number, "value": None})
                case "run_step":
                    request, plan_id = StepRequest.from_plain(message["request"]), str(message["plan"])
                    self._drivers.setdefault(link, set()).add(request.step[0])
                    if self._is_prompt(plan_id, request):
                        self._run_promptly(link, number, plan_id, request, tensors)
                    else:
                        threads = self._waiting_threads if message["waits"] else self._threads
                        threads.submit(self._run_for, link, number, plan_id, request, tensors)
                case "commit" | "join" | "cancel" | "abort" as what:
                    getattr(self, what)(_step_key(message), message["about"])
                case other:
                    raise ValueError(f"nobody can do {other!r}")
        except (KeyError, TypeError, ValueError) as error:
            raise DataLossError(f"a message that makes no sense: {error!r}") from error

    def _driver_gone(self, link: Link) -> None:
        """End the steps of whoever asked for them over a link that has closed: they may hold up those of others."""
        for driver in self._drivers.pop(link, ()):
            self._leave(driver, "the process that asked for the step is gone")
            self.deregister([plan_id for plan_id in list(self._plans) if plan_id.startswith(f"{driver}/")])

    def _is_prompt(self, plan_id: str, request: StepRequest) -> bool:
        """Whether a step can do without a thread of its own: it waits for messages only, and between them is quick."""
        if request.replica is not None or request.timeout_s is not None:
            return False
        return self._pace_s.get(plan_id, math.inf) < LONGEST_TURN_S

    def _run_promptly(
        self, link: Link, number: int | None, plan_id: str, request: StepRequest, feeds: Sequence[Any]
    ) -> None:
        """Begin a step that goes on whenever something arrives for it; its end sends the answer."""
        try:
            plan = self._plan(plan_id)
            record = self._begin(plan, request)
            assert record.rendezvous is not None
            step = Step(request.step[1], record.rendezvous, None, record.mailbox)
            with self._device.activate():
                execution = StepExecution(plan, step, list(map(self._device.asarray, feeds)), record.mailbox)
        except Exception as error:  # noqa: BLE001 (whatever went wrong is for the driver to raise)
            self._end(request.own)
            self._answer_step(link, number, ("error", self._as_op_error(error)))
            return

        def end(error: Exception | None) -> None:
            fetched = [] if error is not None else list(map(self._device.to_host, execution.fetch()))
            execution.close()
            self._keep_pace(plan_id, execution)
            self._finish(request, record)
            self._answer_step(link, number, ("ok", fetched) if error is None else ("error", self._as_op_error(error)))

        waits = bool(request.receivers) and not request.serves
        record.prompt = PromptStep(execution, record.mailbox, lambda: not waits or record.decided.is_set(), end)
        record.advance()

    def _run_for(
        self, link: Link, number: int | None, plan_id: str, request: StepRequest, feeds: Sequence[Any]
    ) -> None:
        """Run a step for a driver at the other end of a link, and answer with what it fetched."""
        self._answer_step(link, number, self._outcome(lambda: self._run_step(plan_id, request, feeds)))

    def _answer_step(self, link: Link, number: int | None, outcome: Outcome) -> None:
        status, value = outcome
        if status == "error":
            _answer(link, {"number": number, "error": error_header(value)})
        elif all(map(fits, value)):
            _answer(link, {"number": number}, value)
        else:  # too much for a link: the driver fetches it by a call
            token = uuid.uuid4().hex
            self._results[token] = outcome
            _answer(link, {"number": number, "value": token})

    def collect(self, token: str) -> Outcome:
        """What a step fetched that came over a link, and was too large to go back."""
        return self._results.pop(token)

    # -- messages --------------------------------------------------------------------------------

    @ray.method(concurrency_group="messages")
    def deliver(
        self, step: StepKey, replica: int | None, keys: Sequence[str], inline: Sequence[Any], *objects: Any
    ) -> bool:
        """Take tensors for a step, packed, by the keys of their edges. Returns whether the step still wanted them."""
        return self._take(step, replica, list(zip(keys, unpack(inline, objects), strict=True)))

    def _take(self, step: StepKey, replica: int | None, items: list[tuple[str, Any]]) -> bool:
        with self._lock:
            record = self._record(step)
            if record is None:
                return False
            if replica is not None:
                if record.inbox is None:
                    record.early.append((replica, items))
                    return True
                items = list(record.inbox.add(replica, items))
        record.mailbox.deliver(items)
        record.advance()
        return True

    @ray.method(concurrency_group="messages")
    def commit(self, step: StepKey, members: Sequence[int]) -> None:
        """Decide which replicas of a step count."""
        with self._lock:
            record = self._record(step)
            if record is None:
                return
            record.members = tuple(members)
            record.decided.set()
            items = [] if record.inbox is None else list(record.inbox.commit(members))
        record.mailbox.deliver(items)
        record.mailbox.wake()
        record.advance()

    @ray.method(concurrency_group="messages")
    def join(self, step: StepKey, receiver: str) -> None:
        """Let one more replica take part in a step that runs."""
        with self._lock:
            record = self._record(step)
            if record is None:
                return
            if record.rendezvous is None:
                record.joined.append(receiver)
            else:
                record.rendezvous.join(receiver)

    @ray.method(concurrency_group="messages")
    def abort(self, step: StepKey, reason: str) -> None:
        """End a step that failed elsewhere: whoever waits in it raises `AbortedError`."""
        with self._lock:
            record = self._record(step)
        if record is not None:
            record.end(AbortedError(reason, device=self._device.name))

    @ray.method(concurrency_group="messages")
    def cancel(self, step: StepKey, reason: str) -> None:
        """End a step that is not wanted any more: whoever waits in it raises `CancelledError`."""
        with self._lock:
            record = self._record(step)
        if record is not None:
            record.end(CancelledError(reason, device=self._device.name))

    @ray.method(concurrency_group="messages")
    def abort_all(self, driver: str, reason: str) -> None:
        """End every step of a driver, and drop what still arrives for them."""
        self._leave(driver, reason)

    def _leave(self, driver: str, reason: str) -> None:
        with self._lock:
            for name in (driver, driver + SERVED):
                self._floors[name] = EVERY_STEP
                self._finished.pop(name, None)
            records = [record for step, record in self._steps.items() if step[0] in (driver, driver + SERVED)]
        for record in records:
            record.end(CancelledError(reason, device=self._device.name))

    @ray.method(concurrency_group="messages")
    def clock(self) -> int:
        """The time by which this actor's traces go."""
        return time.perf_counter_ns()

    def status(self) -> dict[str, Any]:
        """Counts of what this actor holds, for monitoring and tests."""
        return {
            "device": self._device.name,
            "plans": len(self._plans),
            "steps": len(self._steps),
            "resources": len(list(self._device.resources)),
            "op_modules": [*families.MODULES, *self._op_modules],
        }

    def _outcome(self, call: Callable[[], Any]) -> Outcome:
        try:
            return "ok", call()
        except Exception as error:  # noqa: BLE001 (whatever went wrong is for the driver to raise)
            return "error", self._as_op_error(error)

    def _as_op_error(self, error: Exception) -> OpError:
        if isinstance(error, OpError):
            error.__cause__ = error.__context__ = None  # what caused it may not survive the journey
            error.device = error.device or self._device.name
            return error
        detail = "".join(traceback.format_exception(error)[-4:])
        return UnknownError(f"{type(error).__name__}: {error}\n{detail}", device=self._device.name)


def _answer(link: Link, header: Mapping[str, Any], tensors: Sequence[Any] = ()) -> None:
    with suppress(OSError):  # whoever asked is gone
        link.send(header, tensors)


def _step_key(message: Mapping[str, Any]) -> StepKey:
    driver, number = message["step"]
    return str(driver), int(number)
