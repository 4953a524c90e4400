"""What a device actor does: registers plans, runs steps, takes messages. Ray's calls and links both come here.

A step has a thread of its own; a prompt one (`prompt_step.py`) has none, and goes on whenever a message arrives for it.
A message is put into the mailbox of its step.

A message may come before its step begins: the first of the two makes the step's record. Once a step is over, messages
for it are dropped.
"""

from __future__ import annotations

import threading
import time
import traceback
import uuid
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing, suppress
from typing import Any, NamedTuple

import numpy as np

from tfray.actors.devices.answers import missed_shard, send_answer, teller
from tfray.actors.devices.combining import Combinations
from tfray.actors.devices.device_metrics import SentBytes
from tfray.actors.devices.open_inputs import Inputs
from tfray.actors.devices.own_gpus import own_gpus, plan_of
from tfray.actors.devices.parked_steps import ParkedSteps
from tfray.actors.devices.prompt_step import LONGEST_TURN_S, PromptStep
from tfray.actors.devices.registered_plan import RegisteredPlan
from tfray.actors.devices.replica_inbox import ReplicaInbox, StepVoid
from tfray.actors.devices.ring import RingStep
from tfray.actors.devices.step_ledger import EVERY_STEP, Ledger
from tfray.actors.devices.step_record import StepRecord
from tfray.actors.devices.step_threads import StepThreads
from tfray.actors.links.carriers import fits
from tfray.actors.links.frames import Header
from tfray.actors.links.loans import LentTensor, Loans
from tfray.actors.links.messages import (
    AbortStep,
    Answer,
    CancelStep,
    Combiner,
    CommitStep,
    Deliver,
    EndCombining,
    ErrorReport,
    Hello,
    JoinStep,
    Onward,
    PlanId,
    RunStep,
    StepCall,
    StepKey,
    StepNotice,
    StepRequest,
    Unmap,
    read,
    session_of,
)
from tfray.actors.links.object_rendezvous import ObjectRendezvous
from tfray.actors.links.peer_link import Link, defer
from tfray.actors.links.peers import Outcome, Peers
from tfray.actors.links.shared_objects import find
from tfray.actors.links.store_quota import StoreQuota
from tfray.actors.links.tensor_streams import Arrived, IncomingTensors
from tfray.errors import (
    AbortedError,
    CancelledError,
    DataLossError,
    OpError,
    ResourceExhaustedError,
    UnknownError,
)
from tfray.framework.call_site import user_traceback
from tfray.framework.op_def import OpDef, adopt
from tfray.ops.system import script_ops
from tfray.placement.contributions import verdict_among
from tfray.placement.replicate import REPLICA_DEVICE
from tfray.runtime.device import Device
from tfray.runtime.executor import ignore_float_errors
from tfray.runtime.plan import Partition, Plan
from tfray.runtime.plan_group import PlanGroup
from tfray.runtime.rendezvous import Mailbox
from tfray.runtime.step import Step
from tfray.runtime.tracing import DeviceTrace, TracedStep


class _Call(NamedTuple):
    """A driver's call for a step, over a link.

    Attributes:
        link: The link for the answer.
        step: The call.
        packed: The call as it came, to be passed on.
        feeds: The values to feed.
    """

    link: Link
    step: StepCall
    packed: bytes
    feeds: Sequence[Any] = ()


class DeviceHost:
    """One device and the steps on it.

    Args:
        device_name: Full name of the device.
        node: Ray's identity of this node.
        gpus: The GPUs that Ray gave it, as indices into those that it sees. A CPU has them beside it (`own_gpus`).
        store_bytes: Bytes of the node's object store that it may hold for what it sends; None for any number.
    """

    def __init__(self, device_name: str, node: str, gpus: Sequence[int] = (), store_bytes: int | None = None) -> None:
        self.device = Device.open(device_name, gpus[0] if gpus else None)
        self._gpus = own_gpus(self.device, gpus)
        self.loans = Loans(device_name, StoreQuota(store_bytes))
        self.peers = Peers(node, self.loans)
        self.incoming = IncomingTensors(self.loans.buffers)
        self.sessions: dict[str, Device] = {}
        """By session: the device with what is the session's own."""
        self.plans: dict[PlanId, RegisteredPlan] = {}
        self.steps: dict[StepKey, StepRecord] = {}
        self.combinations = Combinations()
        self._results: dict[str, Outcome] = {}
        self._ledgers: defaultdict[str, tuple[Ledger, Ledger]] = defaultdict(lambda: (Ledger(), Ledger()))
        """By driver: the ledger of its steps, and that of steps that serve replicas; `StepKey.serves` is the index."""
        self._parked = ParkedSteps()
        self.inputs = Inputs(device_name)
        self._drivers: dict[str, Link] = {}
        self._senders: dict[Link, str] = {}
        """By link: the device at its other end, if it is one."""
        self._sent = SentBytes(device_name)
        self._failures: dict[str, ErrorReport] = {}
        """By driver: why a step of this shard has failed."""
        self._half_done: set[str] = set()
        """Drivers of which a step has failed here that may have made a part of its updates."""
        self._gone: defaultdict[str, set[str]] = defaultdict(set)
        """By driver: devices that it does without from now on."""
        self._lock = threading.Lock()
        self._threads = StepThreads("tfray-step", ignore_float_errors)

    # -- set-up ----------------------------------------------------------------------------------

    def register(
        self, plan_id: PlanId, partition: Any, functions: Mapping[str, Callable[..., Any]], definitions: Sequence[OpDef]
    ) -> None:
        """Compile a partition under `plan_id`."""
        for definition in definitions:
            adopt(definition)
        for token, function in functions.items():
            script_ops.register_function(token, function)
        device = self.device_of(session_of(plan_id.driver))
        self.plans[plan_id] = RegisteredPlan(plan_of(Partition.from_plain(partition), device, self._gpus))

    def device_of(self, session: str) -> Device:
        """The device with what is a session's own, until `leave` is called for the session."""
        with self._lock:
            if session not in self.sessions:
                device = self.device.for_session()
                if self._ledgers[session][False].floor == EVERY_STEP:
                    return device  # the session has ended: no step will use it
                self.sessions[session] = device
            return self.sessions[session]

    def deregister(self, plan_ids: Sequence[PlanId]) -> None:
        """Forget plans."""
        for plan_id in plan_ids:
            self.plans.pop(plan_id, None)
            self.inputs.forget(plan_id)
        self.loans.buffers.clear()

    # -- steps -----------------------------------------------------------------------------------

    def run_step(self, plan_id: PlanId, request: StepRequest, feeds: Sequence[Any], call: bytes | None = None) -> Any:
        """Run a plan as this device's part of a step, on the calling thread. Returns what it fetched.

        Args:
            plan_id: The plan.
            request: The step.
            feeds: The values to feed.
            call: The driver's `StepCall`, if it came over a link: to pass it on to the devices that this one wakes.
        """
        self._await_turn(plan_id, request)
        record: StepRecord | None = None
        try:
            registered = self._plan(plan_id)
            record = self._begin(registered, request, call)
            if self._combines(request):
                self._combine(registered.plan.partition.reductions, request)
            plans = registered.plan.traced().plans if request.trace else []
            traces = {plan.device.name: DeviceTrace(plan.device, request.trace) for plan in plans}
            for trace in traces.values():
                trace.begin()
            if request.read_input:
                feeds = self.inputs.next(plan_id, request.step.number)
                if traces:
                    first = traces[self.device.name]
                    first.took("_input", "", first.start, first.clock())
            fetched = self._run(registered, request, record, feeds, traces)
            if not traces:
                return fetched
            for trace in traces.values():
                trace.close()
            return fetched, [traces[plan.device.name].record(plan.buffer_bytes) for plan in plans]
        except BaseException as error:
            self._failed(request, record, self.as_op_error(error))
            raise
        finally:
            self._finish(request, record)

    def _await_turn(self, plan_id: PlanId, request: StepRequest) -> None:
        """Wait until a step may begin after the step `request.after`."""
        turn = threading.Event()
        if not self._park(plan_id, request, turn.set):
            turn.wait()  # `leave` ends the wait if the driver leaves, or its link closes

    def _park(self, plan_id: PlanId, request: StepRequest, go_on: Callable[[], None]) -> bool:
        """Whether a step may begin now. If not, `go_on` is called later, when it may.

        It begins when the step before it on this device is over; if they may overlap, when that one has begun. A
        replica's step begins when that one has computed everything, and perhaps not sent everything.
        """
        if request.after is None:
            return True
        step = StepKey(request.step.driver, request.after)
        registered = self.plans.get(plan_id)
        overlaps = registered is not None and registered.plan.releases.keys != ()
        with self._lock:
            if self._ledgers[step.driver][step.serves].is_over(request.after):
                return True
            before = self.steps.get(step)
            if before is not None and (before.has_computed or (overlaps and before.plan is registered)):
                return True
            self._parked.add(step, go_on, overlaps)
            return False

    def _has_computed(self, step: StepKey, record: StepRecord) -> None:
        """Let the next step of a replica begin, while what this one has computed is under way."""
        with self._lock:
            record.has_computed = True
            parked = self._parked.over(step)
        for go_on in parked:
            go_on()

    def _plan(self, plan_id: PlanId) -> RegisteredPlan:
        registered = self.plans.get(plan_id)
        if registered is None:
            raise AbortedError(
                "the step is not registered here: the device was started anew since, or its session has ended"
            )
        return registered

    def _run(
        self,
        registered: RegisteredPlan,
        request: StepRequest,
        record: StepRecord,
        feeds: Sequence[Any],
        traces: dict[str, DeviceTrace],
    ) -> list[Any]:
        rendezvous = record.rendezvous
        assert rendezvous is not None
        deadline = None if request.timeout_s is None else time.monotonic() + request.timeout_s
        number, mailbox = request.step.number, record.mailbox
        fed = registered.plan.fed(feeds)
        fetched: list[Any] = []
        with suppress(StepVoid):
            step = Step(number, rendezvous, deadline, mailbox)
            if traces:
                step = TracedStep(traces, number, rendezvous, deadline, mailbox)
                traces[self.device.name].arrivals = record.arrivals
            record.step, step.released = step, record.release
            with closing(registered.begin(step, fed, step.mailbox or mailbox)) as execution:
                fetched = execution.run()
            registered.ran(execution)
        ran = time.perf_counter_ns()
        if request.replica is not None:
            self._has_computed(request.own, record)
        while not record.may_end(request):
            mailbox.take(deadline, "replicas")
        if request.replica is not None:
            # A replica has delivered only when the shards hold what it sent: afterwards it may die without loss.
            missed = missed_shard(rendezvous, request.timeout_s)
            fetched = [*fetched, np.frombuffer(missed.encode(), np.uint8)]
        if traces and (request.receivers or request.replica is not None):
            first = traces[self.device.name]
            first.took("_wait", "who takes part, or what was sent has arrived", ran, time.perf_counter_ns())
        return [self.device.to_host(value) for value in fetched]

    def _run_promptly(self, registered: RegisteredPlan, call: _Call) -> None:
        """Begin a prompt step. The answer is sent when it ends."""
        request, plan = call.step.request, registered.plan
        try:
            fed = plan.fed(call.feeds) if call.feeds else ()
            if not plan.recv_slots and not request.receivers and request.own not in self.steps:
                self._answer_step(call, ("ok", self._run_straight(registered, call, fed)))
                return
            record = self._begin(registered, request, call.packed)
            step = Step(request.step.number, record.rendezvous, None, record.mailbox)
            step.released = record.release
            execution = registered.begin(step, fed, record.mailbox)
        except BaseException as error:  # noqa: BLE001 (whatever went wrong is for the driver to raise)
            self._finish(request, None)
            self._answer_step(call, ("error", self.as_op_error(error)))
            return

        def end(error: BaseException | None) -> None:
            failed = error is not None and not isinstance(error, StepVoid)
            if error is None:
                outcome = self.outcome(lambda: [self.device.to_host(value) for value in execution.fetch()])
            else:
                outcome = ("error", self.as_op_error(error)) if failed else ("ok", [])
            if failed:
                self._failed(request, record, outcome[1])
            execution.close()
            record.prompt = None  # breaks a cycle of references that would keep tensors until garbage collection
            registered.ran(execution)
            self._finish(request, record)
            self._answer_step(call, outcome)

        prompt = record.prompt = PromptStep(execution, record.mailbox, lambda: record.may_end(request), end)
        defer(prompt.advance)

    def _run_straight(self, registered: RegisteredPlan, call: _Call, feeds: Sequence[Any]) -> list[Any]:
        """Run a step that receives no tensors, from beginning to end, without a record. Returns what it fetched."""
        request = call.step.request
        with self._lock:
            self._admit(request)
        rendezvous = self._rendezvous(registered.plan, request, call.packed)
        mailbox = Mailbox()
        step = Step(request.step.number, rendezvous, None, mailbox)
        with closing(registered.begin(step, feeds, mailbox)) as execution:
            fetched = [self.device.to_host(value) for value in execution.run()]
        registered.ran(execution)
        self._sent.add(rendezvous.sent_bytes)
        rendezvous.close()
        self._finish(request, None)
        return fetched

    # -- records ---------------------------------------------------------------------------------

    def _admit(self, request: StepRequest) -> None:
        """Note a request's floor. Raises `CancelledError` if its step is over already, or the error of an earlier one.

        Call it with the lock held.
        """
        step = request.own
        ledger = self._ledgers[step.driver][step.serves]
        if step.number < ledger.floor:
            if step.driver in self._failures:
                raise self._failures[step.driver].to_error()
            raise CancelledError(
                "the step came after its program had left, or lost the connection to this device: make a new session",
                device=self.device.name,
            )
        if request.floor > ledger.floor:
            ledger.floor = request.floor

    def _rendezvous(
        self, plan: Plan | PlanGroup, request: StepRequest, call: bytes | None, ring: RingStep | None = None
    ) -> ObjectRendezvous:
        combine = None
        if self._combines(request):
            combine = lambda items: self.combinations.add_own(request, items)  # noqa: E731
        return ObjectRendezvous(
            request, self.peers, self.device.to_host, call, plan.partition.wakes, combine=combine, reducer=ring
        )

    def _begin(self, registered: RegisteredPlan, request: StepRequest, call: bytes | None) -> StepRecord:
        plan, step, arrived = registered.plan, request.own, list[tuple[str, Any]]()
        parked: list[Callable[[], None]] = []
        with self._lock:
            self._admit(request)
            record = self._record(request.own) or StepRecord()
            ring = self._ring(registered, request, record)
            rendezvous = self._rendezvous(plan, request, call, ring)
            for receiver in record.joined:
                rendezvous.join(receiver)
            record.rendezvous = rendezvous
            record.plan = registered
            if request.receivers and not request.serves:
                keys = [op.attr("key") for op in plan.recvs if op.attr("source") == REPLICA_DEVICE]
                record.members = request.members if record.members is None else record.members
                record.check_reopened()
                record.inbox = ReplicaInbox(keys, record.members, verdict_among(keys), plan.releases.units)
                arrived = [item for replicas, items in record.early for item in record.contribute(replicas, items)]
                record.early.clear()
            if plan.releases.keys:
                before = None if request.after is None else self.steps.get(StepKey(step.driver, request.after))
                if before is None:
                    record.take_released(plan.releases.keys)
                else:
                    before.overlap(record)
                parked = self._parked.begun(step)
        if ring is not None:
            self.run_on_thread(ring.run, record.reduced)
        record.check_lost()
        for device in self._gone.get(request.step.driver, ()):
            record.lose(device)
        if arrived:
            record.hand_over(arrived)
        for go_on in parked:
            go_on()
        return record

    def _finish(self, request: StepRequest, record: StepRecord | None) -> None:
        """Note that a step is over: drop its record and messages that still come, and let the next step begin."""
        step = request.own
        with self._lock:
            known = self.steps.pop(step, None)
            self._ledgers[step.driver][step.serves].finish(step.number)
            parked = self._parked.over(step)
        if record is not None and record.rendezvous is not None:
            self._sent.add(record.rendezvous.sent_bytes)
            record.rendezvous.close()
        if record is not None and record.ring is not None:
            self._sent.add(record.ring.rendezvous.sent_bytes)
            record.ring.end(CancelledError("the step is over", device=self.device.name))
        for go_on in parked:
            go_on()
        if known is None:
            return
        if known.later is not None and known.plan is not None:
            known.later.take_released(known.plan.plan.releases.keys)
        if known.over is not None:
            known.over.set()

    def _failed(self, request: StepRequest, record: StepRecord | None, error: OpError) -> None:
        """A step has failed. If it updates variables, no later one begins here: it would begin with old values."""
        driver = request.step.driver
        if request.receivers and not request.serves:
            with self._lock:
                self._ledgers[driver] = Ledger(EVERY_STEP), Ledger(EVERY_STEP)
                self._failures.setdefault(driver, ErrorReport.of(error))
                if record is not None and record.may_be_half_done:
                    self._half_done.add(driver)
            if record is not None and record.later is not None:
                record.later.end(error)

    def _record(self, step: StepKey) -> StepRecord | None:
        """The record of a step, made if there is none; None if the step is over. Call with the lock held."""
        record = self.steps.get(step)
        if record is None and not self._ledgers[step.driver][step.serves].is_over(step.number):
            record = self.steps[step] = StepRecord()
        return record

    # -- combining what replicas of this node contribute ------------------------------------------

    def _combines(self, request: StepRequest) -> bool:
        """Whether this device combines its own contributions to a step with those of other replicas."""
        return request.combiner is not None and request.combiner.device == self.device.name

    def _combine(self, reductions: Mapping[str, str], request: StepRequest) -> None:
        """Combine the contributions to a step, on a thread of its own."""
        combination = self.combinations.begin(request)
        if combination is None:
            return
        sending = request._replace(replica=None, combiner=None)
        replicas = combination.replicas
        rendezvous = ObjectRendezvous(sending, self.peers, self.device.to_host, replicas=replicas)

        def ended(outcome: Outcome) -> None:
            self.combinations.end(Combiner.own(request.step), outcome[1] if outcome[0] == "error" else None)
            self._sent.add(rendezvous.sent_bytes)
            rendezvous.close()

        self.run_on_thread(lambda: combination.run(reductions, rendezvous), ended)

    # -- reducing among replicas that hold copies of the variables --------------------------------

    def _ring(self, registered: RegisteredPlan, request: StepRequest, record: StepRecord) -> RingStep | None:
        """What reduces the contributions to a step, if its replicas do that among themselves."""
        if registered.ring is None or not request.ring:
            return None
        assert request.replica is not None
        sending = request._replace(replica=None)
        rendezvous = ObjectRendezvous(sending, self.peers, self.device.to_host, replicas=(request.replica,))
        ring = RingStep(registered.ring, request.ring, self.device.name, rendezvous, record.hand_over)
        record.reduce_by(ring)
        return ring

    # -- links -----------------------------------------------------------------------------------

    def take_message(self, link: Link, header: Header, tensors: list[Any]) -> None:
        """Do what a peer asks over a link. Raises `DataLossError` when it makes no sense, which closes the link."""
        message = read(header)
        try:
            match message:
                case Deliver():  # most messages are: there is no further call on their way to the mailbox
                    step, replicas, keys, number, packed, objects, loans, returned, sender, streamed, _ = message
                    if packed is not None:
                        self.wake(step, packed)
                    if returned:
                        self.peers.returned(sender, returned)
                    is_found = not (objects or loans) or self._find(link, message, tensors)
                    if is_found and streamed:
                        self._take_streamed(link, message, tensors)
                        return
                    if is_found and replicas and step.serves:
                        told = teller(link, number)
                        self.combinations.add(step, replicas[0], list(zip(keys, tensors, strict=True)), told)
                        return
                    if is_found:
                        self.deliver(step, replicas, list(zip(keys, tensors, strict=True)))
                    if number:
                        send_answer(link, Answer(number, is_missing=not is_found))
                case RunStep(packed):
                    step_call = StepCall.from_bytes(packed)
                    self._drivers[step_call.request.step.driver] = link
                    call = _Call(link, step_call, packed, tensors)
                    if self._park(step_call.plan_id, step_call.request, lambda: self._start(call)):
                        self._start(call)
                case Hello(device):
                    self._senders[link] = device
                case Unmap(identity):
                    self.loans.borrowings.unmap(link, identity)
                case CommitStep() | JoinStep() | CancelStep() | AbortStep() | EndCombining():
                    self.take_notice(message)
                case _:
                    raise ValueError(f"a device takes no {type(message).__name__}")
        except (KeyError, TypeError, ValueError) as error:
            raise DataLossError(f"a message that makes no sense: {error!r}") from error

    def _take_streamed(self, link: Link, message: Deliver, tensors: list[Any]) -> None:
        """Take the tensors of a message, and pass on what is for others, once those that are streamed are there."""
        if not all(onward.device in self.peers for onward in message.onward):
            self.incoming.claim(link, message.streamed, lambda _: None)
            send_answer(link, Answer(message.number, is_missing=True))
            return

        def take(arrived: list[Arrived]) -> None:
            all_tensors = [*tensors, *(each.array for each in arrived)]
            self.deliver(message.step, message.replicas, list(zip(message.keys, all_tensors, strict=True)))
            if message.onward:
                lent = {each.number: there.lent for each, there in zip(message.streamed, arrived, strict=True)}
                self.run_on_thread(lambda: self._pass_on(message.onward, lent), lambda _: answer())
            else:
                answer()

        def answer() -> None:
            if message.number:
                send_answer(link, Answer(message.number))

        self.incoming.claim(link, message.streamed, take)

    def _pass_on(self, onward: Sequence[Onward], lent: Mapping[int, LentTensor]) -> None:
        """Lend tensors that have come from another node to other devices of this node."""
        for number, device, step, replicas, key, call in onward:
            self.peers[device].deliver(step, replicas, [(key, lent[number])], wants_receipt=False, call=call)

    def _find(self, link: Link, message: Deliver, tensors: list[Any]) -> bool:
        """Add the objects and loans of a message to its tensors. Returns whether they are in this node's store."""
        objects = find(message.objects) if message.objects else ()
        loans = self.loans.borrowings.borrow(link, message.sender, message.loans) if message.loans else ()
        if objects is None or loans is None:
            return False
        tensors += [*objects, *loans]
        return True

    def link_closed(self, link: Link) -> None:
        """End the steps of a driver whose link has closed: they may hold up the steps of other drivers. End the steps
        that wait for a device whose link has closed: what it sent may be lost."""
        self.loans.borrowings.forget(link)
        self.incoming.forget(link)
        for driver in [driver for driver, its_link in list(self._drivers.items()) if its_link is link]:
            self.leave(driver, "the process that asked for the step is gone")
            self.deregister([plan_id for plan_id in list(self.plans) if plan_id.driver == driver])
        sender = self._senders.pop(link, None)
        if sender is not None:
            with self._lock:
                records = list(self.steps.values())
            for record in records:
                record.lose(sender)

    def wake(self, step: StepKey, call: bytes) -> None:
        """Begin a step with a `StepCall` that another device has passed on, unless the step has begun already."""
        link = self._drivers.get(step.driver)
        record = self.steps.get(step)
        if link is not None and (record is None or not record.is_called):  # without a link the driver is gone
            self._start(_Call(link, StepCall.from_bytes(call), call))

    def _is_called(self, step: StepKey) -> bool:
        """Note that a step has been called. Returns whether it had been called before."""
        with self._lock:
            record = self._record(step)
            if record is None:
                return True  # it is over
            was, record.is_called = record.is_called, True
            return was

    def _start(self, call: _Call) -> None:
        """Run a step that a driver has asked for over a link, now that its turn has come, and answer what it fetched.

        A prompt step whose turns are short needs no thread of its own.
        """
        plan_id, request, _ = call.step
        registered = self.plans.get(plan_id)
        if registered is not None and registered.plan.partition.is_woken and self._is_called(request.own):
            return
        is_plain = request.replica is None and request.timeout_s is None
        if is_plain and registered is not None and registered.turn_s < LONGEST_TURN_S:
            self._run_promptly(registered, call)
        else:
            self.run_on_thread(
                lambda: self.run_step(plan_id, request, call.feeds, call.packed),
                lambda outcome: self._answer_step(call, outcome),
            )

    def run_on_thread(self, run: Callable[[], Any], ended: Callable[[Outcome], None]) -> None:
        """Run a step on a thread of its own, and call `ended` with what it returned or raised."""
        try:
            self._threads.submit(lambda: ended(self.outcome(run)))
        except RuntimeError as error:
            ended(("error", ResourceExhaustedError(f"no thread is left for the step: {error}")))

    def _answer_step(self, call: _Call, outcome: Outcome) -> None:
        status, value = outcome
        answer, tensors = Answer(call.step.number), ()
        is_error = status == "error"
        if call.step.request.quiet_senders:
            registered = self.plans.get(call.step.plan_id)
            if registered is not None and registered.only_sends and not is_error:
                return
            if registered is None or registered.only_sends:
                answer = answer._replace(may_come_late=True)
        if is_error:
            answer = answer._replace(error=ErrorReport.of(value))
        elif not value or all(map(fits, value)):
            tensors = value
        else:  # too much for a link: the driver fetches it by a call
            token = uuid.uuid4().hex
            self._results[token] = outcome
            answer = answer._replace(token=token)
        send_answer(call.link, answer, tensors)

    def collect(self, token: str) -> Outcome:
        """What a step fetched that was called over a link, where it was too large for the answer's frame."""
        return self._results.pop(token)

    # -- messages --------------------------------------------------------------------------------

    def deliver(self, step: StepKey, replicas: tuple[int, ...], items: list[tuple[str, Any]]) -> bool:
        """Take tensors for a step, by the keys of their edges. Returns whether the step still wanted them."""
        record = self.steps.get(step)
        if record is None or replicas:
            with self._lock:
                record = self._record(step)
                if record is None:
                    return False
                if replicas:
                    items = record.contribute(replicas, items)
        record.hand_over(items)
        if record.prompt is not None:
            defer(record.prompt.advance)
        return True

    def take_notice(self, notice: StepNotice) -> None:
        """Do what a message about a step says."""
        match notice:
            case CommitStep(step, members):
                self._commit(step, members)
            case JoinStep(step, receiver):
                self._join(step, receiver)
            case AbortStep(step, reason):
                self._end_with(step, AbortedError(reason, device=self.device.name))
            case CancelStep(step, reason):
                self._end_with(step, CancelledError(reason, device=self.device.name))
            case EndCombining(step, reason):
                self.combinations.end(step, AbortedError(reason, device=self.device.name))

    def _commit(self, step: StepKey, members: Sequence[int]) -> None:
        """Set the replicas that count in a step. None at all reopens it: other replicas may join."""
        with self._lock:
            record = self._record(step)
            if record is None:
                return
            record.members = tuple(members)
            if not members:
                record.early.clear()
            record.check_reopened()
            items = record.commit(members)
        record.hand_over(items)
        record.mailbox.wake()
        record.advance()

    def _join(self, step: StepKey, receiver: str) -> None:
        """Let one more replica take part in a step that runs."""
        with self._lock:
            record = self._record(step)
            if record is None:
                return
            if record.rendezvous is None:
                record.joined.append(receiver)
            else:
                record.rendezvous.join(receiver)

    def _end_with(self, step: StepKey, error: OpError) -> None:
        with self._lock:
            record = self._record(step)
        if record is not None:
            record.end(error)

    def leave(self, driver: str, reason: str) -> None:
        """End every step of a driver, and drop what still arrives for them, with the session's state if it is one."""
        self._drivers.pop(driver, None)
        self._gone.pop(driver, None)
        self._failures.pop(driver, None)
        self._half_done.discard(driver)
        self._end_steps(driver, reason)
        with self._lock:
            own = self.sessions.pop(driver, None)
        self.combinations.leave(driver, CancelledError(reason, device=self.device.name))
        if own is not None:
            own.session_state.clear()

    def reset(self, containers: Collection[str] | None) -> None:
        """Drop the resources of containers, as `ResourceContainer.clear` does, and end the sessions that there are."""
        with self._lock:
            sessions = list(self.sessions)
        error = AbortedError("the session was ended by a reset of this device: make a new one", device=self.device.name)
        for session in sessions:
            self.leave(session, error.message)
            self._failures[session] = ErrorReport.of(error)
        self.device.resources.clear(containers)

    def lose(self, driver: str, device: str) -> None:
        """A device is gone: end what waits for it, also in later steps of a driver."""
        self._gone[driver].add(device)
        peer = self.peers.get(device)
        if peer is not None:
            peer.died()  # it may be frozen, and its connection open
        with self._lock:
            records = [record for step, record in self.steps.items() if step.driver == driver]
        for record in records:
            record.lose(device)

    def settle(self, driver: str, reason: str, patience_s: float) -> None:
        """End the steps of a driver that lack contributions of replicas, once the others are over; begin no more.

        Only shards are asked for this, when no more contributions are to be expected: see `ReplicaDriver.settle`.

        Args:
            driver: The driver.
            reason: Why, for those who wait for the steps.
            patience_s: Seconds to wait for steps that have all contributions, or may have them when they begin.
        """
        ends = time.monotonic() + patience_s
        while (over := self._over_soon(driver)) is not None and time.monotonic() < ends:
            over.wait(max(0.0, ends - time.monotonic()))
        self._end_steps(driver, reason)

    def is_half_done(self, driver: str) -> bool:
        """Whether a step of a driver has failed here that may have made a part of its updates."""
        return driver in self._half_done

    def _over_soon(self, driver: str) -> threading.Event | None:
        """Tells when a step of a driver is over that needs nothing more from replicas; None if there is none."""
        with self._lock:
            for step, record in self.steps.items():
                if step.driver == driver and not step.serves and record.may_have_contributions:
                    record.over = record.over or threading.Event()
                    return record.over
        return None

    def _end_steps(self, driver: str, reason: str) -> None:
        """End the steps of a driver, and begin no more."""
        with self._lock:
            self._ledgers[driver] = Ledger(EVERY_STEP), Ledger(EVERY_STEP)
            records = [record for step, record in self.steps.items() if step.driver == driver]
            parked = self._parked.of_driver(driver)
        for record in records:
            record.end(CancelledError(reason, device=self.device.name))
        for go_on in parked:
            go_on()  # `_admit` then raises, as the driver has left

    # -- errors ----------------------------------------------------------------------------------

    def outcome(self, call: Callable[[], Any]) -> Outcome:
        """What a call returns, or the error that it raises."""
        try:
            return "ok", call()
        except BaseException as error:  # noqa: BLE001 (whatever went wrong is for the driver to raise)
            return "error", self.as_op_error(error)

    def as_op_error(self, error: BaseException) -> OpError:
        """The error as it may travel."""
        if isinstance(error, OpError):
            lines = user_traceback(error)
            if lines:
                error.message = f"{error.message}\n{lines}"
            error.__cause__ = error.__context__ = None  # it may not be possible to pickle the cause
            error.device = error.device or self.device.name
            return error.with_traceback(None)  # frames of the traceback would keep the step's tensors
        detail = "".join(traceback.format_exception(error))
        return UnknownError(f"{type(error).__name__}: {error}\n{detail}", device=self.device.name)
