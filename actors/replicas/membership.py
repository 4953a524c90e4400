"""The workers of a training run: those that are there, those that come, and those that replace the dead.

In a run of fixed size (`Membership`) every replica has its share of the input for good; a worker that dies is replaced
by one of the same number, and until that is there the others go on without it.

In an elastic run (`ElasticMembership`) shares follow the replicas that there are: when one has come or gone, no
further step begins, those that are open end, the input is shared anew, and training goes on. An actor for every
worker that is missing waits for room all the time: by that Ray's autoscaler knows what is wanted.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import ray

from tfray.actors.clusters.cluster import Cluster
from tfray.actors.clusters.remote_runner import register
from tfray.actors.links.awaited_answers import SILENT, unpack
from tfray.actors.links.messages import InputShare, OpenInput, PlanId
from tfray.actors.replicas.replica_protocol import Decision, ReplicaProtocol
from tfray.errors import InvalidArgumentError, OpError, UnavailableError
from tfray.framework.arguments import Count, NonNegative, Positive, Seconds, checked
from tfray.runtime.plan import Partition

MakeInput = Callable[[InputShare], OpenInput]
"""From a share of the input to what opens it on a worker."""

Calls = dict[Any, Callable[[Any], list[Decision]]]
"""What a driver waits for, each with what is to be done about it."""


class WorkerEvent(NamedTuple):
    """What has become of a replica.

    Attributes:
        kind: Its input has ``"ended"``; its worker died, and is ``"replaced"`` or, in a run of fixed size, ``"lost"``.
        replica: Its number.
        device: Of its worker.
        step: The step that it did not compute.
        replicas: Among how many the input is shared.
    """

    kind: str
    replica: int
    device: str
    step: int
    replicas: int


@checked
@dataclass(frozen=True)
class FaultPolicy:
    """What to do about workers that die.

    Attributes:
        max_restarts: How many workers may be replaced over the whole run. In an elastic run only those count that
            have not taken part in any step.
        patience_s: Seconds to wait when too few workers are left.
        step_timeout_s: Seconds after which a step that does not end fails the run; None for no limit. They begin anew
            when a replica takes up a step that has lost all of its members, and do not count what the caller does
            between two steps.
        told: Called with what becomes of replicas.
    """

    max_restarts: Count = 8
    patience_s: NonNegative = 60.0
    step_timeout_s: Seconds | None = None
    told: Callable[[WorkerEvent], None] = lambda event: None


@checked
@dataclass(frozen=True)
class Elasticity:
    """How a run follows the number of its workers.

    Attributes:
        minimum: Fewer replicas than that do not train.
        backups: Of the replicas that there are, how many may be late.
        resized: Told how many replicas train from now on.
    """

    minimum: Positive
    backups: Count = 0
    resized: Callable[[int], None] = lambda replicas: None


@dataclass(frozen=True)
class ReplicaProgram:
    """What a worker needs to be a replica: a plan by its identity, functions that it calls, and its input."""

    plan_id: PlanId
    partition: Partition
    functions: Mapping[str, Callable[..., Any]]
    make_input: MakeInput


@dataclass
class Progress:
    """How far a run is.

    Attributes:
        step: Number of the newest step that was handed out.
        batches: How many batches of replicas the steps up to it have taken.
    """

    step: int
    batches: int


class Membership:
    """See the module's text.

    Args:
        cluster: Starts actors.
        devices: Device of each replica's worker; the position is the replica's number.
        protocol: Told who has come.
        program: What workers are given.
        progress: Where the run is; the driver keeps it up to date.
        faults: What to do about workers that die.
        calls: Where the driver waits.
    """

    def __init__(
        self,
        cluster: Cluster,
        devices: Sequence[str],
        protocol: ReplicaProtocol,
        program: ReplicaProgram,
        progress: Progress,
        faults: FaultPolicy,
        calls: Calls,
    ) -> None:
        self.devices = list(devices)
        self._cluster = cluster
        self._protocol = protocol
        self._program = program
        self._progress = progress
        self._faults = faults
        self._calls = calls
        self._joining: dict[int, float] = {}
        """Since when each worker has been getting ready."""
        self._requests: dict[Any, Any] = {}
        self._restarts = 0
        self._exhausted = False
        self._short_since: float | None = None

    @property
    def replicas(self) -> int:
        """Among how many replicas the input is shared."""
        return len(self.devices)

    def begin(self) -> None:
        """Get the workers ready."""
        for replica in range(len(self.devices)):
            self._introduce(replica)

    def settle(self) -> None:
        """Called whenever something has happened."""

    def takes_part(self, replica: int) -> None:
        """Note that a replica has delivered."""

    def overdue(self) -> list[Decision]:
        """Give up workers that do not get ready within `FaultPolicy.patience_s`: frozen ones, or cut off."""
        return self._give_up([replica for replica, since in self._joining.items() if self._is_overdue(since)])

    def _is_overdue(self, since: float) -> bool:
        return time.monotonic() - since > self._faults.patience_s

    def _give_up(self, replicas: Sequence[int]) -> list[Decision]:
        decisions = []
        for replica in replicas:
            print(
                f"tfray: replica {replica} ({self.devices[replica]}) is given up: {SILENT}", file=sys.stderr, flush=True
            )
            self._joining.pop(replica, None)
            decisions += self.left(replica)
        return decisions

    def left(self, replica: int) -> list[Decision]:
        """A worker has died: the others go on, and another may take its place."""
        return self._protocol.left(replica) + self._replace(replica)

    def exhausted(self, replica: int, step: int) -> list[Decision]:
        """A replica has come to the end of its input: there was nothing for a step."""
        self._exhausted = True
        self._tell("ended", replica, step)
        return self._protocol.left(replica)

    def check(self) -> bool:
        """Whether training can go on. Raises `UnavailableError` when nobody has come for too long."""
        if not self._is_short():
            self._short_since = None
            return True
        if self._exhausted and not self._requests:
            return False
        now = time.monotonic()
        self._short_since = self._short_since or now
        if not self._requests or now - self._short_since > self._faults.patience_s:
            raise self._too_few()
        return True

    def end(self) -> None:
        """Give up those that have not come yet."""
        for actor in self._requests.values():
            ray.kill(actor)  # it may still wait for room
        self._requests.clear()

    def _is_short(self) -> bool:
        """Whether training stands still until a worker comes."""
        return self._protocol.stranded and not self._joining

    def _too_few(self) -> UnavailableError:
        return UnavailableError(
            f"no worker is left in step {self._progress.step} and no replacement came within "
            f"{self._faults.patience_s:.0f} s ({self._restarts} of {self._faults.max_restarts} restarts used)"
        )

    # -- coming ----------------------------------------------------------------------------------

    def _introduce(self, replica: int, greetings: Sequence[Any] = ()) -> None:
        """Give a worker the replica's plan; it is there when it is ready, and `greetings` are through."""
        device, program = self.devices[replica], self._program
        actor = self._cluster.actor(device)
        given = [register(actor, program.plan_id, program.partition, program.functions), *self._equip(replica)]
        waiting = {*given, *greetings}
        since = self._joining[replica] = time.monotonic()

        def ready(ref: Any) -> list[Decision]:
            waiting.discard(ref)
            if waiting or self._joining.get(replica) != since:  # in the latter case it has been given up
                return []
            del self._joining[replica]
            try:
                for call in given:
                    unpack(call, device)
            except UnavailableError:
                return self.left(replica)
            except OpError as error:
                error.message = f"replica {replica} ({device}) cannot start: {error.message}"
                raise
            return self._arrived(replica)

        self._calls |= dict.fromkeys(waiting, ready)

    def _equip(self, replica: int) -> list[Any]:
        """Further calls that a worker needs before it can begin."""
        return [self._open_input(replica, replica)]

    def _arrived(self, replica: int) -> list[Decision]:
        return self._protocol.joined(replica)

    def _open_input(self, replica: int, index: int) -> Any:
        share = InputShare(index, self.replicas, self._progress.step + 1, self._progress.batches)
        actor = self._cluster.actor(self.devices[replica])
        try:
            return actor.attach_input.remote(self._program.plan_id, self._program.make_input(share))
        except TypeError as error:  # it cannot be pickled
            raise InvalidArgumentError(
                f"the input function cannot be sent to {self.devices[replica]}: {error.__cause__ or error}; open "
                "files, locks and connections inside the function",
                device=self.devices[replica],
            ) from error

    def _replace(self, replica: int) -> list[Decision]:
        """Start another actor for a dead worker, within limits."""
        self._cluster.forget(self.devices[replica])
        replaced = self._restarts < self._faults.max_restarts
        self._tell("replaced" if replaced else "lost", replica, self._progress.step)
        if replaced:
            self._restarts += 1
            self._request(replica)
        return []

    def _tell(self, kind: str, replica: int, step: int) -> None:
        self._faults.told(WorkerEvent(kind, replica, self.devices[replica], step, self.replicas))

    def _request(self, replica: int) -> None:
        """Start an actor; it takes part when Ray has found room for it."""
        device = self.devices[replica]
        actor = self._cluster.create_actor(device)
        ref = actor.ready.remote()
        self._requests[ref] = actor

        def started(done: Any) -> list[Decision]:
            if self._requests.pop(done, None) is None:
                return []  # given up
            try:
                address = ray.get(done).address
            except ray.exceptions.RayActorError:
                return self._replace(replica)  # it never was there: nobody left
            introduced = self._cluster.adopt({device: (actor, address)})
            # Replicas have nothing to do with one another: one that is frozen must not keep others out.
            met = [call for name, call in introduced.items() if name == device or name not in self.devices]
            self._introduce(replica, met)
            return []

        self._calls[ref] = started


class ElasticMembership(Membership):
    """See the module's text.

    Args:
        elasticity: How the run follows the number of its workers.
        others: As for `Membership`.
    """

    def __init__(self, elasticity: Elasticity, *others: Any) -> None:
        super().__init__(*others)
        self._elasticity = elasticity
        self._there: set[int] = set()
        self._newcomers: set[int] = set()
        self._tried: set[int] = set()
        self._sharing: list[int] = []
        self._opening: dict[Any, int] = {}
        """By call, the replicas that open their shares of the input."""
        self._opening_since = 0.0
        self._changed = False

    @property
    def replicas(self) -> int:
        return len(self._sharing)

    def begin(self) -> None:
        self._change()
        for replica, device in enumerate(self.devices):
            if device in self._cluster.devices:
                self._introduce(replica)
            else:
                self._request(replica)

    def settle(self) -> None:
        """Share the input anew, if that is due and no step is open."""
        if not self._changed or self._opening or not self._protocol.idle:
            return
        present = sorted(self._there | self._newcomers)
        minimum = 1 if self._exhausted else self._elasticity.minimum
        if len(present) < minimum or (not self._there and self._joining):
            return
        self._changed, self._sharing = False, present
        self._opening = {self._open_input(replica, index): replica for index, replica in enumerate(present)}
        self._opening_since = time.monotonic()
        self._calls |= dict.fromkeys(self._opening, self._opened)

    def overdue(self) -> list[Decision]:
        decisions = super().overdue()
        if self._opening and self._is_overdue(self._opening_since):
            late, self._opening = list(self._opening.values()), {}
            decisions += self._give_up(late)
        return decisions

    def takes_part(self, replica: int) -> None:
        self._tried.discard(replica)

    def left(self, replica: int) -> list[Decision]:
        self._there.discard(replica)
        self._newcomers.discard(replica)
        if not self._exhausted:
            self._change()
        return self._protocol.left(replica) + self._replace(replica)

    def exhausted(self, replica: int, step: int) -> list[Decision]:
        self.end()  # whoever comes now finds nothing to do
        self._there.discard(replica)
        return super().exhausted(replica, step)

    def _is_short(self) -> bool:
        if self._exhausted:
            return self._protocol.stranded
        return self._changed and self._protocol.idle and not self._joining and not self._opening

    def _too_few(self) -> UnavailableError:
        return UnavailableError(
            f"{len(self._there | self._newcomers)} workers are left after step {self._progress.step}, which is fewer "
            f"than {self._elasticity.minimum}, and no more came within {self._faults.patience_s:.0f} s"
        )

    def _change(self) -> None:
        self._changed = True
        self._protocol.pause()

    def _equip(self, replica: int) -> list[Any]:
        return []  # its share of the input is not known yet

    def _arrived(self, replica: int) -> list[Decision]:
        if not self._exhausted:
            self._newcomers.add(replica)
            self._change()
        return []

    def _replace(self, replica: int) -> list[Decision]:
        """Ask for another in any case; but one that dies again and again before it has done anything is no use."""
        self._cluster.forget(self.devices[replica])
        if self._exhausted or (replica in self._tried and self._restarts >= self._faults.max_restarts):
            return []
        self._restarts += replica in self._tried
        self._tried.add(replica)
        self._tell("replaced", replica, self._progress.step)
        self._request(replica)
        return []

    def _opened(self, ref: Any) -> list[Decision]:
        replica = self._opening.pop(ref, None)
        if replica is None:
            return []  # it has been given up
        decisions: list[Decision] = []
        try:
            unpack(ref, self.devices[replica])
        except UnavailableError:
            decisions = self.left(replica)
        if self._opening or self._changed:
            return decisions  # in the latter case it is shared once more
        required = max(1, self.replicas - self._elasticity.backups)
        for newcomer in sorted(self._newcomers):
            self._there.add(newcomer)
            decisions += self._protocol.joined(newcomer)
        self._newcomers.clear()
        self._elasticity.resized(self.replicas)
        return decisions + self._protocol.resume(required)
