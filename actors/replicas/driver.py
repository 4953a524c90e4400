"""The driver of replicated training: hands out steps, tells the shards which replicas count, and replaces dead workers.

It executes what a `ReplicaProtocol` decides. Tensors do not pass through it, except the few values that replicas report
(losses and metrics). It has one thread. Each wait is for all calls that are under way, and ends when any of them ends:
so a dead actor is noticed at once.
"""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Final

import numpy as np

from tfray.actors.clusters.cluster import Cluster
from tfray.actors.clusters.remote_runner import register
from tfray.actors.clusters.step_traces import StepTraces
from tfray.actors.devices.device_metrics import StepMetrics
from tfray.actors.links import ray_calls
from tfray.actors.links.awaited_answers import Answers, frame_of, tell, unpack
from tfray.actors.links.messages import (
    CancelStep,
    Combiner,
    CommitStep,
    EndCombining,
    JoinStep,
    PlanId,
    StepCall,
    StepKey,
    StepNotice,
    StepRequest,
    beside,
)
from tfray.actors.links.notices import notice
from tfray.actors.links.peers import next_number
from tfray.actors.links.silence import SILENT
from tfray.actors.replicas import random_states
from tfray.actors.replicas.combiners import Paces, combiners
from tfray.actors.replicas.membership import Elasticity, ElasticMembership, FaultPolicy, Membership, Progress
from tfray.actors.replicas.replica_protocol import Commit, Complete, Decision, Join, Reopen, ReplicaProtocol, Start
from tfray.actors.replicas.replica_workers import MakeInput, RayWorkers, ReplicaProgram
from tfray.actors.replicas.settlement import Parted, settlement
from tfray.actors.replicas.step_in_flight import ServingSteps, StepInFlight, StepReport, StepsOfReplica
from tfray.errors import (
    CancelledError,
    DeadlineExceededError,
    InternalError,
    OpError,
    OutOfRangeError,
    UnavailableError,
)
from tfray.placement.parameters import parameter_partitions
from tfray.placement.replicate import REPLICA_DEVICE, CompiledReplicaStep
from tfray.runtime.edge_key import EdgeKey

POLL_S: Final = 0.25
"""Seconds after which a wait for answers ends in any case, to look at deadlines and workers that are overdue."""

HELD_UP_S: Final = 10.0
"""Seconds that replicas may hold up a run that otherwise could save or end, at least. After that they are given up."""

HELD_UP_STEPS: Final = 5
"""The same in steps: so many times the longest step that the replicas have taken of late. The longer limit holds."""

UPDATE_S: Final = 3.0
"""Seconds, at least, that shards are given for updates whose contributions they have, when one of them is gone. One of
these may wait for a tensor that does not come."""

BATCHES: Final = "input/batches"
"""Name in checkpoints of the number of batches that all replicas have taken."""


class ReplicaDriver:
    """Runs the steps of one compiled replica step on a cluster.

    Args:
        cluster: Holds the shards (the devices of the partitions) and the workers.
        session: The session whose state the steps use.
        compiled: The step.
        workers: Device of each replica; the position is the replica's number.
        protocol: Decides who computes which step, and which replicas count.
        functions: Python functions that operations call, by token.
        make_input: Opens the input of a replica.
        faults: What to do about workers that die.
        elasticity: How the run follows the number of its workers; None for a run of fixed size. In an elastic run,
            workers that have no actor yet are asked of Ray.
        first_step: Number of the first step; above 1 when training is resumed.
        traced_steps: Numbers of steps to record.
        examples_per_replica: Examples that a replica reads for a step, for metrics; 0 if it is not known.
        skips_bad: Whether the shards leave out members whose gradients are not finite.
        combines: Whether replicas of one node combine what they contribute, before it goes to shards on other nodes.
        overlaps: Whether shards update each large variable, and send it back, as soon as its gradients are there.
    """

    def __init__(
        self,
        cluster: Cluster,
        session: str,
        compiled: CompiledReplicaStep,
        *,
        workers: Sequence[str],
        protocol: ReplicaProtocol,
        functions: Mapping[str, Callable[..., Any]],
        make_input: MakeInput,
        faults: FaultPolicy | None = None,
        elasticity: Elasticity | None = None,
        first_step: int = 1,
        traced_steps: Collection[int] = (),
        examples_per_replica: int = 0,
        skips_bad: bool = False,
        combines: bool = True,
        overlaps: bool = True,
    ) -> None:
        self._skips_bad = skips_bad
        self._overlaps, self._combines = overlaps and protocol.collective, combines and protocol.collective
        self._combiners: dict[int, dict[int, Combiner]] = {}
        """By open step and replica: where the replica's contributions are combined."""
        self._cluster = cluster
        self._compiled = compiled
        self._workers = list(workers)
        self._protocol = protocol
        self._functions = dict(functions)
        self._faults = faults or FaultPolicy()
        self._traces = StepTraces(cluster.actor, traced_steps)
        self._metrics = StepMetrics(examples_per_replica)
        self._session = session
        self._driver_id = beside(session)
        self._plan_id = PlanId(self._driver_id, uuid.uuid4().hex)
        self._serving_id = self._plan_id.of_role("serving")
        self._parameters_id = self._plan_id.of_role("parameters")
        self._shards = [partition.device for partition in compiled.shards]
        self._standbys = compiled.standby_devices
        self._lost: UnavailableError | None = None
        """Why the run has to go on without a shard, or the standby of one."""
        self._gone: set[str] = set()
        """Shards and standbys without which it goes on."""
        self._behind: frozenset[str] = frozenset()
        """Those that are there, but have not made an update which the others have made."""
        self._is_settled = False
        self._answers = Answers()
        self._calls: dict[Any, Callable[[Any], list[Decision]]] = {}
        self._open: dict[int, StepInFlight] = {}
        """Open steps by number, in the order in which they were handed out."""
        self._away_s = 0.0
        """Seconds, in all, that the caller of `run` has been at work between two reports."""
        self._position = first_step - 1
        self._reports: list[StepReport] = []
        replicas = len(self._workers) if protocol.collective else 1
        self._progress = Progress(first_step - 1, (first_step - 1) * replicas)
        self._computing: dict[int, StepsOfReplica] = {}
        self._serving = ServingSteps()
        self._held_up_since: float | None = None
        self._paces = Paces()
        program = ReplicaProgram(self._plan_id, compiled.replica, self._functions, make_input)
        self._ray_workers = RayWorkers(cluster, workers, program)
        others = (self._ray_workers, protocol, self._progress, self._faults, self._calls)
        self._membership = self._new_membership(elasticity, *others)
        self._ring: tuple[str, ...] = ()
        """Devices of replicas that hold copies of the variables, in the order in which they reduce gradients."""

    def _new_membership(self, elasticity: Elasticity | None, *others: Any) -> Membership:
        return Membership(*others) if elasticity is None else ElasticMembership(elasticity, *others)

    def run(self) -> Generator[StepReport | None, None, None]:
        """Run to the end, yielding a report as each step is applied.

        After `hold`, once no step is open, it yields None again and again, until `go_on` is called.

        Raises:
            UnavailableError: A parameter shard died, or no worker is left. If the shard has a standby, see `settled`.
            OpError: An operation or an input function failed on a worker; the message names it.
            DeadlineExceededError: A step ran past `FaultPolicy.step_timeout_s`.
        """
        self._register_shards()
        self._copy_streams()
        try:
            self._membership.begin()
            while not self._protocol.finished:
                self._membership.settle()
                if self._protocol.held:
                    yield from self._hand_out([None])
                elif not self._advance():
                    return
                if self._lost is not None:
                    self._settle()
                yield from self._hand_out(self.take_reports())
                if self._lost is not None:
                    raise self._lost
        finally:
            self._leave()

    def _hand_out(self, reports: Sequence[StepReport | None]) -> Generator[StepReport | None, None, None]:
        for report in reports:
            since = time.perf_counter()
            yield report
            self._away_s += time.perf_counter() - since

    # -- without a shard -------------------------------------------------------------------------

    def settle(self, error: UnavailableError) -> Parted | None:
        """Come to an end without a shard, or a standby, that is gone, so that another driver can go on where this ends.

        `run` does so by itself before it raises the error. Open steps are brought to an end on those that are left.
        What has not been reported by then is in `take_reports`. Each step that is not is as if it had not begun.

        Args:
            error: It names the device that is gone.

        Returns:
            Whom to do without. For each shard, either it or its standby is left. None if that is not so.
        """
        if self._lost is None:
            try:
                self._lose(error.device or "", error)
                self._settle()
            except UnavailableError:
                return None
        return Parted(frozenset(self._gone), self._behind) if self._is_settled else None

    @property
    def ended(self) -> tuple[int, int]:
        """How many steps have ended, and how many batches of the input these have taken."""
        return self._position, self._progress.batches - sum(step.batches for step in self._open.values())

    def take_reports(self) -> list[StepReport]:
        """The reports that `run` has not yielded."""
        reports, self._reports = self._reports, []
        return reports

    def go_on_after(self, batches: int) -> None:
        """Begin where another driver has ended: after so many batches of the input. Call it before `run`."""
        self._progress.batches = batches

    def _lose(self, device: str, error: UnavailableError) -> None:
        """Do without a shard or standby from now on. Raises `error` if the other of the two is not there."""
        pair = next((pair for pair in self._pairs if device in pair), frozenset())
        if pair <= {device, *self._gone}:
            raise error
        self._lost = self._lost or error
        self._protocol.hold(0)
        if device not in self._gone:
            self._gone.add(device)
            for other in [*self._all_shards, *self._workers]:
                if other in self._cluster.devices and other not in self._gone:
                    self._cluster.actor(other).lose.remote(self._driver_id, device)

    @property
    def _pairs(self) -> list[frozenset[str]]:
        """Each shard with its standby, or alone."""
        return [frozenset({shard, self._standbys.get(shard, shard)}) for shard in self._shards]

    @property
    def _all_shards(self) -> list[str]:
        """The shards and their standbys."""
        return [*self._shards, *self._standbys.values()]

    def _settle(self) -> None:
        """Bring open steps to an end without those that are gone.

        What replicas have begun they deliver, so that all who are left have the same. Then shards end each step for
        which they lack contributions. So no step goes further on one than on another, but for those that fail now.
        """
        assert self._lost is not None
        pace_s = self._paces.longest(self._computing)

        def wait_while(is_waiting: Callable[[], bool]) -> None:
            ends = time.perf_counter() + max(HELD_UP_S, HELD_UP_STEPS * pace_s)
            while is_waiting() and self._calls and time.perf_counter() < ends:
                self._take_answers()

        wait_while(lambda: any(self._computing.values()))
        self._end_steps_of_shards(max(UPDATE_S, pace_s))
        steps, left = list(self._open.values()), set(self._all_shards) - self._gone
        wait_while(lambda: not all(step.is_over_on(shard) for step in steps for shard in left - self._gone))
        half = self._half_done()
        if not all(step.is_over_on(shard) for step in steps for shard in left - self._gone):
            raise self._lost  # somebody who is not gone may still apply what others do not
        settled = settlement(self._pairs, [left - step.shards_at_work for step in steps], self._gone | half)
        if settled is None:
            raise self._lost
        self._behind = settled.gone - self._gone
        self._is_settled = True
        for step, is_done in zip(steps, settled.done, strict=True):
            if is_done and step.number in self._open:
                self._report(Complete(step.number, tuple(sorted(step.reported)), self._position + 1))

    def _end_steps_of_shards(self, patience_s: float) -> None:
        """Let those that are left end the steps that lack contributions, when the others are over, or after a time."""
        why = "a parameter server is gone"
        self._asked(lambda actor: actor.settle.remote(self._driver_id, why, patience_s), patience_s + HELD_UP_S)

    def _half_done(self) -> set[str]:
        """Those that are left where a step has failed that may have made a part of its updates."""
        found = self._asked(lambda actor: actor.is_half_done.remote(self._driver_id), HELD_UP_S)
        return {device for device in found if found[device]}

    def _asked(self, ask: Callable[[Any], Any], timeout_s: float) -> dict[str, Any]:
        """The answers of the shards and standbys that are left. Who does not answer is gone too."""
        devices = [device for device in self._all_shards if device not in self._gone]
        calls, answers = {device: ask(self._cluster.actor(device)) for device in devices}, {}
        for device, call in calls.items():
            try:
                answers[device] = unpack(call, device, timeout_s)
            except (UnavailableError, DeadlineExceededError) as error:
                self._lose(device, UnavailableError(error.message, device=device))
        return answers

    # -- holding ---------------------------------------------------------------------------------

    def hold(self, position: int | None = None) -> None:
        """Let no step begin once `position` steps have ended; None stands for those that have ended or are open now.

        Of several holds the earliest position counts; `go_on` ends them all.
        """
        self._protocol.hold(position)

    def go_on(self, position: int | None = None) -> None:
        """End a hold. Hold again once `position` steps have ended; never for None."""
        self._execute(self._protocol.go_on(position))

    def restore_state(self, arrays: Mapping[str, Any]) -> None:
        """Restore the random streams of all devices, and the position in the input. Call it before `run`."""
        needed, timeout_s = self._protocol.required, self._faults.answer_s
        random_states.restore(
            self._cluster, self._session, self._shards, self._workers, arrays, needed, timeout_s, self._compiled.homes
        )
        if BATCHES in arrays:
            self._progress.batches = int(arrays[BATCHES])

    def state(self) -> dict[str, Any]:
        """The random streams and the position in the input, by names for a checkpoint. Call it while `run` is held."""
        needed, timeout_s = self._protocol.required, self._faults.answer_s
        states = random_states.collect(self._cluster, self._session, self._shards, self._workers, needed, timeout_s)
        return states | {BATCHES: np.array(self._progress.batches)}

    def change_shards(self, compiled: CompiledReplicaStep) -> int:
        """Go on with the same step over other shards. Call it while `run` is held, when the variables have moved.

        The random streams of the shards move along. Workers that are late in taking their new plans, and not needed,
        join again when they have taken them.

        Returns:
            The newest step that was handed out: until `is_past` it, shards that are left may still be asked.
        """
        if compiled.feeds != self._compiled.feeds:
            raise InternalError(f"the replica's feeds are {compiled.feeds} now, and were {self._compiled.feeds}")
        timeout_s = self._faults.answer_s
        streams = random_states.collect(self._cluster, self._session, self._shards, (), 0, timeout_s)
        self._compiled, self._shards = compiled, [partition.device for partition in compiled.shards]
        self._standbys = compiled.standby_devices
        for name in ("_parameters", "_combinable"):
            self.__dict__.pop(name, None)
        self._register_shards()
        random_states.restore(self._cluster, self._session, self._shards, (), streams, 0, timeout_s, compiled.homes)
        self._copy_streams()
        calls, needed = self._ray_workers.change(compiled.replica), self._protocol.required
        heard = {
            device
            for device, _ in random_states.answers(self._cluster, calls, self._workers, needed, timeout_s, HELD_UP_S)
        }
        for replica in [self._workers.index(device) for device in calls.values() if device not in heard]:
            self._drop_steps(replica)
            self._execute(self._membership.begin_again(replica))
        return self._progress.step

    def is_past(self, step: int) -> bool:
        """Whether no replica is still at work on a step up to this one."""
        return all(number > step for steps in self._computing.values() for number in steps)

    @property
    def drops(self) -> int:
        """Late gradients so far."""
        return self._protocol.dropped

    # -- set-up ----------------------------------------------------------------------------------

    def _register_shards(self) -> None:
        # A shard's step may begin before the one before it is over, unless a standby has to agree on what it has done.
        replica = REPLICA_DEVICE if self._overlaps and not self._standbys else ""
        parts = [*self._compiled.shards, *self._compiled.standbys.values()]
        plans = [(part.device, self._plan_id, replace(part, replica=replica)) for part in parts]
        plans += [(shard, self._serving_id, part) for shard, part in self._compiled.serving.items()]
        actor, functions = self._cluster.actor, self._functions
        calls = {register(actor(device), plan_id, part, functions): device for device, plan_id, part in plans}
        for ref, device in calls.items():
            unpack(ref, device, self._faults.answer_s)

    def _copy_streams(self) -> None:
        """Put the random streams of standbys where those of their shards are."""
        random_states.copy(self._cluster, self._session, self._standbys, self._faults.answer_s)

    # -- one turn --------------------------------------------------------------------------------

    def _advance(self) -> bool:
        """Wait for something to happen and act on it. Returns whether training can go on."""
        if not self._membership.check():
            return False  # every replica has read its input to the end
        if not self._calls:
            raise InternalError("training stands still: no call to an actor is under way")
        self._take_answers()
        if self._lost is not None:
            return True
        if __debug__ and self._reports:  # once a step only: it takes about ten microseconds
            self._protocol.validate()
        self._check_deadline()
        self._check_held_up()
        self._execute(self._membership.overdue())
        return True

    def _take_answers(self) -> None:
        """Wait a moment for answers, and do what follows from them."""
        self._cluster.watch()
        answered = self._answers.wait(self._calls, POLL_S)
        for answer in answered:
            self._execute(self._calls.pop(answer)(answer))
        if not answered and self._faults.step_timeout_s is None:
            self._check_silent()

    def _check_silent(self) -> None:
        """Do without those that answer nothing at all. A step without a timeout would wait for them."""
        try:
            self._cluster.check_answers(self._awaited(), lambda: "its part of a step")
        except UnavailableError as error:
            self._do_without(error.device or "", error)

    def _execute(self, decisions: Sequence[Decision]) -> None:
        for decision in decisions:
            match decision:
                case Start():
                    self._start(decision)
                case Join():
                    self._join(decision)
                case Commit():
                    self._tell_shards(CommitStep(self._key(decision.step), decision.members))
                case Complete():
                    self._report(decision)
                case Reopen():
                    self._open[decision.step].reopen()
                    self._tell_shards(CommitStep(self._key(decision.step), ()))

    def _tell_shards(self, notice: StepNotice) -> None:
        for device in self._all_shards:
            if device not in self._gone:
                tell(self._cluster.peer(device), notice)

    def _join(self, join: Join) -> None:
        if join.reopened:
            self._begin(self._open[join.step])
            self._serve(join.step, join.replica, join.after, self._parameters_id, self._parameters)
        else:
            self._tell_shards(JoinStep(self._key(join.step), self._workers[join.replica]))
        self._compute(join.step, join.replica, join.after)

    def _start(self, start: Start) -> None:
        self._progress.step = start.step
        batches = self._membership.replicas if self._protocol.collective else 1
        self._progress.batches += batches
        step = self._open[start.step] = StepInFlight(start.step, set(self._all_shards), batches)
        before = None if start.after is None else self._open.get(start.after)
        if before is not None and before.shards_at_work:
            step.wait_for(before)
        else:
            self._begin(step)
        receivers = tuple(self._workers[replica] for replica in start.replicas)
        request = StepRequest(
            self._key(start.step),
            self._floor(),
            receivers=receivers,
            members=start.members,
            after=start.after,
            trace=self._traces.level(start.step),
        )
        for device in self._all_shards:
            self._run_step(device, self._plan_id, request, self._when_applied(step, device))
        combiners = self._combiners[start.step] = self._combined_on(start)
        for replica in start.replicas:
            self._compute(start.step, replica, start.after, combiners.get(replica))

    @cached_property
    def _combinable(self) -> list[str]:
        """Shards whose contributions replicas of one node may combine."""
        keys = self._compiled.replica.reductions if self._combines else ()
        return sorted({EdgeKey.parse(key).destination for key in keys})

    def _combined_on(self, start: Start) -> dict[int, Combiner]:
        """By replica, where those that begin a step combine what they contribute."""
        workers = {replica: self._workers[replica] for replica in start.replicas}
        pace_s = self._paces.longest(start.replicas)
        return combiners(self._cluster, workers, self._combinable, pace_s, waits_for_all=start.members is not None)

    def _begin(self, step: StepInFlight) -> None:
        step.begin(self._position, self._clock() + (self._faults.step_timeout_s or math.inf))

    def _compute(self, step: int, replica: int, after: int | None = None, combiner: Combiner | None = None) -> None:
        device, serving = self._workers[replica], tuple(self._compiled.serving)
        computing = self._computing.setdefault(replica, StepsOfReplica())
        request = StepRequest(
            self._key(step),
            self._floor(),
            replica=replica,
            read_input=True,
            served=self._serve(step, replica, after, self._serving_id, serving) if serving else None,
            combiner=combiner,
            after=after if after in computing else None,  # otherwise it has delivered that step, or never took part
            trace=self._traces.level(step),
            ring=self._ring,
        )
        computing.add(step)
        self._run_step(device, self._plan_id, request, self._when_delivered(step, replica))

    def _run_step(
        self, device: str, plan_id: PlanId, request: StepRequest, ended: Callable[[Any], list[Decision]]
    ) -> None:
        """Ask a device to run its part of a step; call `ended` with the answer when it comes."""
        peer = self._cluster.peer(device)
        call = StepCall(plan_id, request, next_number())
        answer: Any = None if request.trace else self._answers.ask(peer, call, frame_of(call))
        if answer is None and peer.is_lost:  # a call of Ray would wait until Ray finds out
            answer = self._answers.unavailable(peer, call)
        if answer is None:
            answer = peer.handle.actor.run_step.remote(plan_id, request)
        self._traces.called(answer, request.step.number)
        self._calls[answer] = ended

    def _serve(self, step: int, replica: int, after: int | None, plan_id: PlanId, shards: tuple[str, ...]) -> StepKey:
        """Ask shards to run a plan for a replica in a step. Returns the step's identity under which they run it."""
        number = self._serving.begin(replica, step, shards)
        key = StepKey(self._driver_id, number, serves=True)
        request = StepRequest(
            self._key(step),
            self._serving.floor,
            receivers=(self._workers[replica],),
            served=key,
            serves=True,
            after=after,
            trace=self._traces.level(step),
        )
        for shard in shards:
            self._run_step(shard, plan_id, request, self._when_served(step, replica, shard))
        return key

    @cached_property
    def _parameters(self) -> tuple[str, ...]:
        """The shards that send replicas parameters without being asked. They are made ready to do only that."""
        calls = {}
        for device, part in parameter_partitions(self._compiled.shards, REPLICA_DEVICE).items():
            calls[register(self._cluster.actor(device), self._parameters_id, part, self._functions)] = device
        for ref, device in calls.items():
            unpack(ref, device, self._faults.answer_s)
        return tuple(calls.values())

    def _when_served(self, step: int, replica: int, shard: str) -> Callable[[Any], list[Decision]]:
        def served(ref: Any) -> list[Decision]:
            try:
                self._traces.unpack(ref, shard, step)
            except CancelledError:
                pass  # the replica is gone
            except UnavailableError as error:
                self._lose(error.device or shard, error)
            except OpError as error:
                error.message = f"what replica {replica} asked of {shard} in step {step} failed: {error.message}"
                raise
            return []

        return served

    def _drop_steps(self, replica: int) -> None:
        """Forget all steps of a replica that is gone, and end those in which shards serve it."""
        for step in self._computing.pop(replica, ()):
            combiner = self._combiners.get(step, {}).get(replica)
            if combiner is not None and combiner.device in self._cluster.devices:
                ending = EndCombining(Combiner.own(self._key(step)), f"replica {replica} is gone")
                tell(self._cluster.peer(combiner.device), ending)
            for number, shards in self._serving.end(replica, step).items():
                for shard in shards:
                    key = StepKey(self._driver_id, number, serves=True)
                    tell(self._cluster.peer(shard), CancelStep(key, f"replica {replica} is gone"))

    def _when_applied(self, step: StepInFlight, device: str) -> Callable[[Any], list[Decision]]:
        def applied(ref: Any) -> list[Decision]:
            try:
                self._traces.unpack(ref, device, step.number)
            except UnavailableError as error:
                self._lose(error.device or device, error)
                step.failed_on.add(device)
                return []
            except CancelledError:
                if self._lost is None:
                    raise
                step.failed_on.add(device)  # it has been asked for that by `_settle`
                return []
            return self._protocol.applied(step.number) if step.applied(device) else []

        return applied

    def _when_delivered(self, step: int, replica: int) -> Callable[[Any], list[Decision]]:
        computing = self._computing[replica]

        def delivered(ref: Any) -> list[Decision]:
            if self._computing.get(replica) is not computing:
                return []  # the replica has left with all of its steps; another may have its number now
            if not computing.is_first(step):
                computing.keep(step, ref)
                return []
            self._execute(self._delivered(step, replica, ref))
            return self._take_early(replica, computing)

        return delivered

    def _take_early(self, replica: int, computing: StepsOfReplica) -> list[Decision]:
        """Take the answer of a replica that has overtaken another, if its turn has come.

        What follows from the other has been done: a step that it begins is begun before this answer may end it.
        """
        early = computing.take_answer() if self._computing.get(replica) is computing else None
        return [] if early is None else self._when_delivered(early[0], replica)(early[1])

    def _delivered(self, step: int, replica: int, ref: Any) -> list[Decision]:
        device = self._workers[replica]
        try:
            values = self._traces.unpack(ref, device, step)
            missed = values.pop().tobytes().decode()
            if missed:
                return self._ask_after(missed, replica, lambda: self._counted(step, replica, values))
        except OutOfRangeError:
            self._drop_steps(replica)
            return self._membership.exhausted(replica, step)
        except UnavailableError as error:
            if error.device in self._all_shards:
                return self._ask_after(error.device, replica, lambda: self._left_out(replica))
            if error.device != device:
                raise
            self._drop_steps(replica)
            return self._membership.left(replica)
        except OpError as error:
            error.message = f"replica {replica} ({device}) failed in step {step}: {error.message}"
            raise
        return self._counted(step, replica, values)

    def _left_out(self, replica: int) -> list[Decision]:
        """A replica cannot go on without a shard that is gone. Nothing more is awaited from it."""
        self._drop_steps(replica)
        return []

    def _counted(self, step: int, replica: int, values: list[Any]) -> list[Decision]:
        """A replica has delivered a step."""
        self._computing[replica].end(step)
        self._serving.end(replica, step)
        self._membership.takes_part(replica)
        if step in self._open:  # else it has ended without this replica
            took = self._open[step].delivered(replica, values)
            if took is not None:
                self._paces.took(replica, took)
        return self._protocol.delivered(replica, step)

    def _ask_after(self, shard: str, replica: int, without: Callable[[], list[Decision]]) -> list[Decision]:
        """Ask the shard that a replica does not reach. If it is there, the replica is cut off from it, and given up.

        A dead shard gives an error again. One that is cut off answers nothing: the driver's own link to it ends then.
        If it has a standby, `without` says what follows.
        """
        if shard in self._gone:
            return without()
        computing = self._computing[replica]

        def answered(ref: Any) -> list[Decision]:
            is_there = self._computing.get(replica) is computing
            try:
                ray_calls.outcome(ref, shard)
            except UnavailableError as error:
                self._lose(shard, error)
            if not is_there:
                return []  # it has left meanwhile
            if shard in self._gone:
                self._execute(without())
                return self._take_early(replica, computing)
            self._give_up(replica, f"it does not reach {shard}")
            return []

        self._calls[self._cluster.actor(shard).ready.remote()] = answered
        return []

    def _report(self, done: Complete) -> None:
        step = self._open.pop(done.step)
        self._combiners.pop(done.step, None)
        values, bad = step.summed_up(done.members, self._compiled.checked, self._skips_bad)
        members = tuple(member for member in done.members if not (self._skips_bad and member in bad))
        if step.began_at is None:  # its answers have come before those of the step before it
            self._begin(step)
        assert step.began_at is not None
        duration_s = time.perf_counter() - step.began_at
        staleness = self._position - step.position
        self._position = done.position
        if (later := step.end()) is not None:
            self._begin(later)
        live, dropped = self._protocol.live, self._protocol.dropped
        self._metrics.observe(duration_s, len(members), live, dropped)
        records = self._traces.take(done.step)
        self._reports.append(
            StepReport(
                done.position,
                values,
                duration_s=duration_s,
                members=members,
                live=live,
                dropped=dropped,
                staleness=staleness,
                replica_s=step.took_s,
                records=records,
                bad=bad,
            )
        )

    def _key(self, step: int) -> StepKey:
        return StepKey(self._driver_id, step)

    def _floor(self) -> int:
        """Steps below this number are over on the shards."""
        return next((number for number, step in self._open.items() if step.shards_at_work), self._progress.step)

    # -- faults ----------------------------------------------------------------------------------

    def _clock(self) -> float:
        """Seconds by a clock that stops while the caller of `run` is at work: steps may have to wait for the caller."""
        return time.perf_counter() - self._away_s

    def _check_deadline(self) -> None:
        """A step that takes too long fails the run, unless it waits for somebody who answers nothing at all."""
        late = next((step for step in self._open.values() if self._clock() > step.due), None)
        if late is None:
            return
        silent = set(self._awaited()).difference(self._cluster.answering(self._awaited(), HELD_UP_S))
        if not silent:
            raise self._late(late.number)
        for step in self._open.values():
            step.allow(self._clock() + (self._faults.step_timeout_s or math.inf))
        for device in silent:
            why = f"{device} does not answer in step {late.number}: {SILENT}"
            self._do_without(device, UnavailableError(why, device=device))

    def _awaited(self) -> list[str]:
        """Shards, standbys, and workers that have a step."""
        shards = [device for device in self._all_shards if device not in self._gone]
        return shards + [self._workers[replica] for replica in self._at_work()]

    def _at_work(self) -> list[int]:
        return [replica for replica, steps in self._computing.items() if steps]

    def _do_without(self, device: str, error: UnavailableError) -> None:
        """Treat one that answers nothing as if it were dead."""
        if device in self._all_shards:
            self._lose(device, error)
        else:
            self._give_up(self._workers.index(device), error.message)

    def _check_held_up(self) -> None:
        """Give up replicas that alone keep the run from saving or ending: they are frozen, or cut off.

        This holds for asynchronous training. A synchronous step ends without replicas that are late, or must wait.
        """
        if self._protocol.collective or not self._protocol.drains:
            self._held_up_since = None
            return
        now = self._clock()
        self._held_up_since = self._held_up_since or now
        if now - self._held_up_since < max(HELD_UP_S, HELD_UP_STEPS * self._paces.longest(self._computing)):
            return
        self._held_up_since = None
        for replica in self._at_work():  # not those that are given their steps meanwhile
            self._give_up(replica, f"it has not ended its step: {SILENT}")

    def _give_up(self, replica: int, why: str) -> None:
        """Go on without a replica. What it had to do in asynchronous training another one does."""
        notice(f"replica {replica} ({self._workers[replica]}) is given up: {why}")
        self._drop_steps(replica)
        self._execute(self._membership.left(replica))

    def _late(self, step: int) -> DeadlineExceededError:
        late = [f"replica {r} ({self._workers[r]})" for r, steps in sorted(self._computing.items()) if step in steps]
        return DeadlineExceededError(
            f"step {step} did not end within {self._faults.step_timeout_s or 0:g} s; it waits for "
            f"{', '.join(late) or 'the parameter servers'}; raise step_timeout_s, or use backup workers"
        )

    def _leave(self) -> None:
        """End whatever still runs, and let the actors forget the plan."""
        if not self._cluster.connected:
            return
        for device in [*self._all_shards, *self._workers]:
            if device in self._cluster.devices:
                actor = self._cluster.actor(device)
                actor.abort_all.remote(self._driver_id, "training has ended")
                actor.deregister.remote([self._plan_id, self._serving_id, self._parameters_id])
        self._membership.end()
