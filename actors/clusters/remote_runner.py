"""Running compiled steps on the device actors of a cluster."""

from __future__ import annotations

import itertools
import threading
import time
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tfray.actors.links.awaited_answers import Answers, LinkAnswer, frame_of, tell, unpack
from tfray.actors.links.carriers import fits, is_large
from tfray.actors.links.clocks import in_drivers_time
from tfray.actors.links.messages import AbortStep, PlanId, StepCall, StepKey, StepRequest
from tfray.actors.links.packing import pack
from tfray.actors.links.peers import Peer, next_number
from tfray.actors.links.ray_calls import ended
from tfray.actors.links.shared_objects import put
from tfray.errors import (
    AbortedError,
    CancelledError,
    DeadlineExceededError,
    InvalidArgumentError,
    OpError,
    UnavailableError,
)
from tfray.framework.device_spec import DeviceSpec
from tfray.framework.op_def import is_built_in
from tfray.framework.region import ops_within
from tfray.runtime.plan import Partition, with_wakers
from tfray.runtime.tracing import DeviceRecord, with_call

if TYPE_CHECKING:
    from tfray.actors.clusters.directory import ActorDirectory

POLL_S: Final = 0.5
"""Seconds after which a waiting driver looks whether its session was closed, or an actor has died."""

ABORT_GRACE_S: Final = 5.0
"""Seconds that a failed step waits for the device at fault, to report that device's error and not its echo."""

TIMEOUT_GRACE_S: Final = 0.5
"""The same for a step that ran past its timeout: its caller does not want to wait longer."""

MOST_NAMED: Final = 3
"""Operations that an error names of a step that a device does not answer."""


class RemoteRunner:
    """The devices of a cluster, as one session sees them.

    Args:
        cluster: The cluster.
        jobs: The jobs whose devices the session may use; None for all.
    """

    def __init__(self, cluster: ActorDirectory, jobs: Collection[str] | None = None) -> None:
        self._cluster = cluster
        self._jobs = jobs
        self.driver_id = uuid.uuid4().hex[:12]
        self._numbers = itertools.count(1)
        self._running: set[int] = set()
        self._plans: dict[PlanId, list[str]] = {}
        self._lock = threading.Lock()
        self._closed = False

    @property
    def devices(self) -> list[str]:
        """Full names of the devices, default first."""
        devices = self._cluster.devices
        return [name for name in devices if self._jobs is None or DeviceSpec.from_string(name).job in self._jobs]

    def register(self, partitions: Sequence[Partition], functions: Mapping[str, Callable[..., Any]]) -> RemoteStep:
        """Send each partition to its device, which compiles it."""
        return RemoteStep(self, partitions, functions)

    def send_plans(self, partitions: Sequence[Partition], functions: Mapping[str, Callable[..., Any]]) -> PlanId:
        """Ask the devices to compile partitions. Returns the identity of the plans."""
        self._cluster.check_connected()
        plan_id = PlanId(self.driver_id, uuid.uuid4().hex)
        self._cluster.introduce([partition.device for partition in partitions])
        calls = {
            register(self._cluster.actor(partition.device), plan_id, partition, functions): partition
            for partition in partitions
        }
        self._plans[plan_id] = [partition.device for partition in partitions]
        for ref, partition in calls.items():
            device, what = partition.device, partial(_described, [partition], "the compilation of a step")
            while not ended([ref], POLL_S):
                if self._closed:
                    raise CancelledError(
                        "the step was cancelled: its session was closed while it was compiled", device=device
                    )
                self.check_answers([device], what)
            unpack(ref, device)
        return plan_id

    def deregister(self, plan_id: PlanId) -> None:
        """Ask the devices to forget a plan."""
        for device in self._plans.pop(plan_id, ()):
            if device in self._cluster.known:
                self._cluster.actor(device).deregister.remote([plan_id])

    def begin_step(self) -> tuple[StepKey, int]:
        """A new step: its key, and the floor, the number below which every step of this driver is over."""
        with self._lock:
            if self._closed:
                raise CancelledError("the session is closed")
            number = next(self._numbers)
            self._running.add(number)
            return StepKey(self.driver_id, number), min(self._running)

    def end_step(self, step: StepKey) -> None:
        """Record that a step is over."""
        with self._lock:
            self._running.discard(step.number)

    @property
    def closed(self) -> bool:
        """Whether the session has been closed."""
        return self._closed

    def actor(self, device: str) -> Any:
        """Actor handle of a device."""
        return self._cluster.actor(device)

    def peer(self, device: str) -> Peer:
        """The actor of a device, as this process sends to it over a link."""
        return self._cluster.peer(device)

    def watch(self) -> None:
        """End the calls that wait for an actor if Ray has found it, or its node, dead."""
        self._cluster.watch()

    def check_answers(self, devices: Collection[str], what: Callable[[], str]) -> None:
        """Raise `UnavailableError` if one of the devices is silent for too long; see `ActorDirectory`."""
        self._cluster.check_answers(devices, what)

    def check_connected(self) -> None:
        """Raise `UnavailableError` when this process has left Ray."""
        self._cluster.check_connected()

    def close(self) -> None:
        """Cancel running steps and let the devices forget this session's plans."""
        with self._lock:  # a second caller, which closes the cluster next, must find this done
            if self._closed:
                return
            self._closed = True
            if self._cluster.connected:
                for device in self._cluster.known:
                    self._cluster.actor(device).abort_all.remote(self.driver_id, "the session was closed")
                for plan_id in list(self._plans):
                    self.deregister(plan_id)
            self._cluster.release(self)


class RemoteStep:
    """The partitions of one step on their device actors.

    A step may be closed while other threads run it: the devices forget its plans when the last of them has ended.
    """

    def __init__(
        self, runner: RemoteRunner, partitions: Sequence[Partition], functions: Mapping[str, Callable[..., Any]]
    ) -> None:
        self._runner = runner
        self._partitions = with_wakers(partitions)
        self._functions = functions
        self._devices = [partition.device for partition in partitions]
        self._only_send = [partition.only_sends for partition in partitions]
        # Partitions that receive nothing are asked first: the others wait for them.
        self._order = sorted(range(len(partitions)), key=lambda i: _receives(partitions[i]))
        self._reached: list[Peer] = []
        """The peers of the last step that asked all of them over links: they know the link of this driver."""
        self._plan_id: PlanId | None = runner.send_plans(self._partitions, functions)
        self._users = 0
        self._closed = False
        self._lock = threading.Lock()

    def _use(self) -> PlanId:
        """The plans' identity. The devices keep the plans until `_leave` is called."""
        with self._lock:
            if self._plan_id is None:  # it was closed after this thread had looked it up
                self._plan_id = self._runner.send_plans(self._partitions, self._functions)
            self._users += 1
            return self._plan_id

    def _leave(self) -> None:
        with self._lock:
            self._users -= 1
            self._forget_if_unused()

    def _forget_if_unused(self) -> None:
        if self._closed and self._users == 0 and self._plan_id is not None and not self._runner.closed:
            self._runner.deregister(self._plan_id)
            self._plan_id = None

    def run(self, feeds: Sequence[Sequence[Any]], timeout_s: float | None = None) -> list[list[Any]]:
        """Run once; see `tfray.runtime.runner.RegisteredStep`."""
        plan_id, request = self._begin(timeout_s)
        try:
            results, _ = self._run(plan_id, request, feeds)
        finally:
            self._end(request)
        return [[_own(value) for value in values] for values in results]

    def run_traced(
        self, feeds: Sequence[Sequence[Any]], timeout_s: float | None = None, level: int = 0
    ) -> tuple[list[list[Any]], list[DeviceRecord]]:
        """Run once, and return what each device did as well; see `tfray.runtime.runner.RegisteredStep`."""
        plan_id, request = self._begin(timeout_s)
        try:
            called = time.perf_counter_ns()
            results, returned = self._run(plan_id, request._replace(trace=level), feeds)
        finally:
            self._end(request)
        actors = {device: self._runner.actor(device) for device in self._devices}
        records = in_drivers_time([record for _, (record,) in results], actors)
        whole = [with_call(record, called, at) for record, at in zip(records, returned, strict=True)]
        return [[_own(value) for value in values] for values, _ in results], whole

    def _begin(self, timeout_s: float | None) -> tuple[PlanId, StepRequest]:
        """The plans' identity and a new step, which is over when `_end` is called."""
        plan_id = self._use()
        try:
            step, floor = self._runner.begin_step()
        except BaseException:
            self._leave()
            raise
        return plan_id, StepRequest(step, floor, timeout_s, quiet_senders=True)

    def _end(self, request: StepRequest) -> None:
        self._runner.end_step(request.step)
        self._leave()

    def _run(
        self, plan_id: PlanId, request: StepRequest, feeds: Sequence[Sequence[Any]]
    ) -> tuple[list[Any], list[int]]:
        """What each device returned, and when."""
        # Look up all actors before any begins: if one is gone, the others would wait for it.
        peers = [self._runner.peer(device) for device in self._devices]
        objects: dict[int, Any] = {}
        answers = Answers()
        calls: dict[Any, int] = {}
        step_call = StepCall(plan_id, request, next_number())
        asked = self._ask(answers, peers, step_call, feeds)
        senders = [call for i, call in asked.items() if self._only_send[i]]
        for i in self._order:
            call = asked.get(i)
            if call is None:
                inline, large = pack([_shared(value, objects) for value in feeds[i]])
                self._runner.check_connected()
                call = peers[i].handle.actor.run_step.remote(plan_id, request, inline, *large)
            calls[call] = i
        try:
            gathered = self._gather(step_call, answers, calls, senders)
        finally:
            for call in senders:
                call.forget()
        self._reached = peers if len(asked) == len(peers) else []
        return gathered

    def _ask(
        self,
        answers: Answers,
        peers: list[Peer],
        call: StepCall,
        feeds: Sequence[Sequence[Any]],
    ) -> dict[int, LinkAnswer]:
        """Ask the devices that have a link to begin. Returns their answers, by position of the device."""
        if call.request.trace:
            return {}
        are_linked = peers == self._reached and all(map(fits, itertools.chain(*feeds)))
        # Await all answers before the first frame leaves: the device that gets it may wake others, which then answer.
        awaited = {i: answers.expect(peers[i], call) for i in self._order if are_linked or all(map(fits, feeds[i]))}
        asked = {i: answer for i, answer in awaited.items() if answer is not None}
        frame = frame_of(call)
        for i, answer in list(asked.items()):
            is_asked_by_others = are_linked and self._partitions[i].is_woken
            if not is_asked_by_others and not answer.ask(frame_of(call, feeds[i]) if feeds[i] else frame):
                del asked[i]
        return asked

    def _gather(
        self,
        step: StepCall,
        answers: Answers,
        calls: Mapping[Any, int],
        senders: Collection[LinkAnswer],
    ) -> tuple[list[Any], list[int]]:
        """Wait for every device but those that only send; on the first failure end the step everywhere and raise it."""
        results: list[Any] = [[] for _ in self._devices]
        returned = [0 for _ in self._devices]
        timeout_s = step.request.timeout_s
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        pending = dict(calls)
        try:
            while len(pending) > len(senders):
                self._runner.watch()
                answered = answers.wait(pending, self._patience(deadline), len(pending) - len(senders))
                if not answered:
                    self._check_alive(set(range(len(self._devices))) - set(pending.values()))
                    self._check_answers(pending.values())
                for call in answered:
                    position = pending.pop(call)
                    waiting = partial(self._check_answers, [position])
                    results[position] = unpack(call, self._devices[position], waiting=waiting)
                    returned[position] = time.perf_counter_ns()
        except BaseException as error:
            if self._runner.closed:  # `close` has ended the step on all devices
                raise CancelledError("the step was cancelled: its session was closed while it ran") from None
            self._runner.check_connected()
            self._abort(step, error, pending)
            if isinstance(error, OpError):
                raise self._root_cause(error, answers, pending) from None
            raise
        return results, returned

    def _check_alive(self, positions: Collection[int]) -> None:
        """Raise `UnavailableError` if a device has died after its part: others may still wait for what it held."""
        for position in positions:
            device = self._devices[position]
            if self._runner.peer(device).is_lost:
                raise UnavailableError(f"the actor of {device} died during the step", device=device)

    def _check_answers(self, positions: Collection[int]) -> None:
        what = partial(_described, [self._partitions[i] for i in positions], "a step")
        self._runner.check_answers([self._devices[i] for i in positions], what)

    def _patience(self, deadline: float | None) -> float:
        if self._runner.closed:
            raise CancelledError("the step was cancelled: its session was closed while it ran")
        if deadline is None:
            return POLL_S
        remaining = deadline - time.monotonic()
        if remaining <= -POLL_S:  # later than the devices, which give up by themselves with a better message
            raise DeadlineExceededError("the step ran past its timeout")
        return max(min(POLL_S, remaining), 0.01)

    def _abort(self, call: StepCall, error: BaseException, pending: Mapping[Any, int]) -> None:
        reason = f"another device failed: {error}" if isinstance(error, OpError) else "the step was cancelled"
        for answer, position in pending.items():
            device = self._devices[position]
            if device in self._runner.devices:
                peer = self._runner.peer(device)
                if self._partitions[position].is_woken and isinstance(answer, LinkAnswer):
                    peer.send(call.number, frame_of(call), None)  # nobody may wake it now: then it would never answer
                tell(peer, AbortStep(call.request.step, reason))

    def _root_cause(self, first: OpError, answers: Answers, pending: dict[Any, int]) -> OpError:
        """The error to report. A timeout or abort may only be the echo of another device's failure, which is better."""
        if not isinstance(first, (AbortedError, DeadlineExceededError)):
            return first
        ends = time.monotonic() + (ABORT_GRACE_S if isinstance(first, AbortedError) else TIMEOUT_GRACE_S)
        while pending and time.monotonic() < ends:
            for call in answers.wait(pending, ends - time.monotonic()):
                try:
                    unpack(call, self._devices[pending.pop(call)])
                except (AbortedError, DeadlineExceededError, CancelledError):
                    continue
                except OpError as error:
                    return error
        return first

    def close(self) -> None:
        """Ask the devices to forget the plans, as soon as no thread runs the step."""
        with self._lock:
            self._closed = True
            self._forget_if_unused()


def _described(partitions: Sequence[Partition], what: str) -> str:
    ops = [op for partition in partitions for op in partition.graph.get_operations()]
    named = [op.name for op in ops if op.type not in ("Send", "Recv", "Const")][:MOST_NAMED]
    return f"{what} of {len(ops)} operations ({', '.join(named)}, ...)"


def _receives(partition: Partition) -> bool:
    return any(op.type == "Recv" for op in partition.graph.get_operations())


def _own(value: Any) -> Any:
    """A writable array: what comes from the object store is read-only."""
    if isinstance(value, np.ndarray) and not value.flags.writeable:
        return value.copy()
    return value


def _shared(value: Any, objects: dict[int, Any]) -> Any:
    """A fed value for a call. A large one is put into the object store, once for all devices."""
    if not is_large(value):
        return value
    if id(value) not in objects:
        objects[id(value)] = put(value)
    return objects[id(value)]


def register(actor: Any, plan_id: PlanId, partition: Partition, functions: Mapping[str, Callable[..., Any]]) -> Any:
    """Ask a device to compile a partition. Returns Ray's reference.

    The call also carries what the operations need: the Python functions that they call, and the definitions of types
    that are not tfray's own.
    """
    ops = [op for outer in partition.graph.get_operations() for op in ops_within(outer)]
    users = {value: op for op in ops for value in op.attrs.values() if isinstance(value, str) and value in functions}
    foreign = {op.type: op for op in ops if not is_built_in(op.op_def)}
    definitions = [op.op_def for op in foreign.values()]
    called = {token: functions[token] for token in users}
    try:
        return actor.register.remote(plan_id, partition.to_plain(), called, definitions)
    except TypeError as error:  # it cannot be pickled
        ops = [*users.values(), *foreign.values()]
        raise InvalidArgumentError(
            f"what {' or '.join(repr(op.name) for op in ops)} needs cannot be sent to {partition.device}: "
            f"{error.__cause__ or error}; open what it needs inside the function",
            op_name=ops[0].name if ops else None,
            device=partition.device,
            site=ops[0].site if ops else None,
        ) from error
