"""The workers of a training run: which are there, which are coming, and which replace dead ones. It knows no Ray.

In a run of fixed size (`Membership`) every replica keeps its share of the input. A worker that dies is replaced by one
of the same number. Until the new one is there, the others go on without it.

In an elastic run (`ElasticMembership`) the input is shared among the replicas that are there. When one has come or
gone, no further step begins, the open ones end, the input is shared anew, and training goes on. Every missing worker
has an actor that waits for room: so Ray's autoscaler knows what is wanted.

Operations on workers are those of `Workers`. One that takes time returns a *call*, any value that can be a key. The
driver waits for the call, and then calls the function beside it in `Calls`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from tfray.actors.links.messages import InputShare
from tfray.actors.links.silence import SILENCE_S, SILENT
from tfray.actors.replicas.replica_protocol import Decision, ReplicaProtocol
from tfray.errors import OpError, UnavailableError
from tfray.framework.arguments import Count, NonNegative, Positive, Seconds, checked

Calls = dict[Any, Callable[[Any], list[Decision]]]
"""The calls that a driver waits for, each with the function to call when it has ended."""


class WorkerEvent(NamedTuple):
    """Something that has happened to a replica.

    Attributes:
        kind: ``"ended"`` if its input has ended, ``"replaced"`` if its worker died and is replaced, ``"lost"`` if the
            worker died and is not replaced, in a run of fixed size.
        replica: Its number.
        device: Device of its worker.
        step: The step that it did not compute.
        replicas: Number of replicas among which the input is shared.
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
        max_restarts: How many workers may be replaced over the whole run. In an elastic run only workers count that
            died before they had taken part in any step.
        patience_s: Seconds to wait when too few workers are left.
        step_timeout_s: Seconds after which a step that does not end fails the run; None for no limit. The time begins
            anew when a replica takes up a step that has lost all of its members. The caller's time between two steps
            does not count.
        told: Called with each `WorkerEvent`.
        shares_input: Whether replicas share all of their input, so that it has ended for all when it has for one. Then
            no worker is waited for.
    """

    max_restarts: Count = 8
    patience_s: NonNegative = 60.0
    step_timeout_s: Seconds | None = None
    told: Callable[[WorkerEvent], None] = lambda event: None
    shares_input: bool = False

    @property
    def answer_s(self) -> float:
        """Seconds to wait for answers that take no time, such as those of a save."""
        return self.step_timeout_s or SILENCE_S


@checked
@dataclass(frozen=True)
class Elasticity:
    """How a run follows the number of its workers.

    Attributes:
        minimum: Training waits while there are fewer replicas than this.
        backups: How many of the replicas a step does not wait for.
        resized: Called with the number of replicas that train from now on.
    """

    minimum: Positive
    backups: Count = 0
    resized: Callable[[int], None] = lambda replicas: None


class Workers(Protocol):
    """The workers of replicas, by the numbers of the replicas."""

    @property
    def devices(self) -> Sequence[str]:
        """Full name of each worker's device."""

    def is_there(self, replica: int) -> bool:
        """Whether a worker has been started."""

    def start(self, replica: int) -> Any:
        """Start a worker. Returns a call that ends when there was room for it, and it has started."""

    def admit(self, replica: int, call: Any) -> list[Any]:
        """Introduce a worker that has started to the others.

        Returns calls that end when it knows those with which it exchanges tensors. Raises `UnavailableError` if it has
        died.
        """

    def give_up(self, call: Any) -> None:
        """End a worker that has not started yet."""

    def forget(self, replica: int) -> None:
        """End a worker, if it is there, because it is dead or does not answer."""

    def register(self, replica: int) -> Any:
        """Ask a worker to compile the replica's plan. Returns a call."""

    def open_input(self, replica: int, share: InputShare) -> Any:
        """Ask a worker to open its share of the input. Returns a call."""

    def check(self, replica: int, call: Any) -> None:
        """Raise the `OpError` with which a call of `register` or `open_input` has ended, if it has failed."""

    def say(self, text: str) -> None:
        """Tell the user."""


@dataclass
class Progress:
    """How far a run has come.

    Attributes:
        step: Number of the newest step that was handed out.
        batches: How many batches all replicas together have taken, in the steps up to that one.
    """

    step: int
    batches: int


class Membership:
    """See the module's text.

    Args:
        workers: Operations on workers.
        protocol: Told which replicas have come and gone.
        progress: Where the run is; the driver keeps it up to date.
        faults: What to do about workers that die.
        calls: The calls that the driver waits for; this adds to them.
        clock: Returns seconds.
    """

    def __init__(
        self,
        workers: Workers,
        protocol: ReplicaProtocol,
        progress: Progress,
        faults: FaultPolicy,
        calls: Calls,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.devices = workers.devices
        self._workers = workers
        self._protocol = protocol
        self._progress = progress
        self._faults = faults
        self._calls = calls
        self._clock = clock
        self._joining: dict[int, float] = {}
        """By replica: when its worker began to get ready, by the clock."""
        self._requests: set[Any] = set()
        """Calls of workers that have not started yet."""
        self._restarts = 0
        self._exhausted = False
        self._short_since: float | None = None

    @property
    def replicas(self) -> int:
        """Number of replicas among which the input is shared."""
        return len(self.devices)

    def begin(self) -> None:
        """Get the workers ready."""
        for replica in range(len(self.devices)):
            self._introduce(replica)

    def settle(self) -> None:
        """Called whenever something has happened."""

    def takes_part(self, replica: int) -> None:
        """Note that a replica has delivered a step."""

    def overdue(self) -> list[Decision]:
        """Give up workers that do not get ready within `FaultPolicy.patience_s`: they are frozen, or cut off."""
        return self._give_up([replica for replica, since in self._joining.items() if self._is_overdue(since)])

    def _is_overdue(self, since: float) -> bool:
        return self._clock() - since > self._faults.patience_s

    def _give_up(self, replicas: Sequence[int]) -> list[Decision]:
        decisions = []
        for replica in replicas:
            self._workers.say(f"replica {replica} ({self.devices[replica]}) is given up: {SILENT}")
            self._joining.pop(replica, None)
            decisions += self.left(replica)
        return decisions

    def left(self, replica: int) -> list[Decision]:
        """A worker has died: the others go on, and another may take its place."""
        return self._protocol.left(replica) + self._replace(replica)

    def begin_again(self, replica: int) -> list[Decision]:
        """A worker is late in taking another plan: the others go on, and it joins when it has."""
        decisions = self._protocol.left(replica)
        self._introduce(replica)
        return decisions

    def exhausted(self, replica: int, step: int) -> list[Decision]:
        """A replica has come to the end of its input, and had no batch for a step."""
        self._exhausted = True
        if self._faults.shares_input:
            self.end()  # a worker that comes now would have nothing to do
        self._tell("ended", replica, step)
        return self._protocol.left(replica)

    def check(self) -> bool:
        """Whether training can go on. Raises `UnavailableError` if too few workers have been there for too long."""
        if not self._is_short():
            self._short_since = None
            return True
        if self._exhausted and not self._requests:
            return False
        now = self._clock()
        self._short_since = self._short_since or now
        if not self._requests or now - self._short_since > self._faults.patience_s:
            raise self._too_few()
        return True

    def end(self) -> None:
        """Give up those that have not come yet."""
        for call in self._requests:
            self._workers.give_up(call)  # its actor may still wait for room
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
        """Give a worker the replica's plan. The replica joins when that has been done, and `greetings` have ended."""
        given = [self._workers.register(replica), *self._equip(replica)]
        waiting = {*given, *greetings}
        since = self._joining[replica] = self._clock()

        def ready(ref: Any) -> list[Decision]:
            waiting.discard(ref)
            if waiting or self._joining.get(replica) != since:  # another time: this worker has been given up
                return []
            del self._joining[replica]
            try:
                for call in given:
                    self._workers.check(replica, call)
            except UnavailableError:
                return self.left(replica)
            except OpError as error:
                error.message = f"replica {replica} ({self.devices[replica]}) cannot start: {error.message}"
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
        return self._workers.open_input(replica, share)

    def _replace(self, replica: int) -> list[Decision]:
        """Start another actor for a dead worker, within limits."""
        self._workers.forget(replica)
        is_over = self._exhausted and self._faults.shares_input
        replaced = self._restarts < self._faults.max_restarts and not is_over
        self._tell("replaced" if replaced else "lost", replica, self._progress.step)
        if replaced:
            self._restarts += 1
            self._request(replica)
        return []

    def _tell(self, kind: str, replica: int, step: int) -> None:
        self._faults.told(WorkerEvent(kind, replica, self.devices[replica], step, self.replicas))

    def _request(self, replica: int) -> None:
        """Start a worker; it takes part when there is room for it."""
        call = self._workers.start(replica)
        self._requests.add(call)

        def started(done: Any) -> list[Decision]:
            if done not in self._requests:
                return []  # it has been given up
            self._requests.discard(done)
            try:
                greetings = self._workers.admit(replica, done)
            except UnavailableError:
                return self._replace(replica)  # it had not joined yet, so no replica has left
            self._introduce(replica, greetings)
            return []

        self._calls[call] = started


class SteadyMembership(Membership):
    """The workers of a run in which each holds a copy of the variables, and needs all others in each step.

    A worker that dies ends the run with an `UnavailableError`: it can begin anew from a checkpoint. When the first
    input has ended, no further step is possible.

    Attributes:
        ends_before: The first step for which a replica has no batch; None if there is none so far.
    """

    ends_before: int | None = None

    def left(self, replica: int) -> list[Decision]:
        device = self.devices[replica]
        raise UnavailableError(
            f"the worker of replica {replica} ({device}) died, or does not answer: {SILENT}; the others cannot go on "
            "without it, as replicas hold the variables themselves",
            device=device,
        )

    def exhausted(self, replica: int, step: int) -> list[Decision]:
        self._tell("ended", replica, step)
        self.ends_before = step if self.ends_before is None else min(step, self.ends_before)
        return []

    def check(self) -> bool:
        return True


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
        """By call: the replica that opens its share of the input."""
        self._opening_since = 0.0
        self._changed = False

    @property
    def replicas(self) -> int:
        return len(self._sharing)

    def begin(self) -> None:
        self._change()
        for replica in range(len(self.devices)):
            if self._workers.is_there(replica):
                self._introduce(replica)
            else:
                self._request(replica)

    def settle(self) -> None:
        """Share the input anew, if that is needed and no step is open."""
        if not self._changed or self._opening or not self._protocol.idle:
            return
        present = sorted(self._there | self._newcomers)
        minimum = 1 if self._exhausted else self._elasticity.minimum
        if len(present) < minimum or (not self._there and self._joining):
            return
        self._changed, self._sharing = False, present
        self._opening = {self._open_input(replica, index): replica for index, replica in enumerate(present)}
        self._opening_since = self._clock()
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

    def begin_again(self, replica: int) -> list[Decision]:
        self._there.discard(replica)
        self._newcomers.discard(replica)
        if not self._exhausted:
            self._change()
        return super().begin_again(replica)

    def exhausted(self, replica: int, step: int) -> list[Decision]:
        self.end()  # a worker that comes now would have nothing to do
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
        """Ask for another worker. One that died before it took part in a step uses up a restart: so might the next."""
        self._workers.forget(replica)
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
            self._workers.check(replica, ref)
        except UnavailableError:
            decisions = self.left(replica)
        if self._opening or self._changed:
            return decisions  # if it is to change again, the input is shared once more
        required = max(1, self.replicas - self._elasticity.backups)
        for newcomer in sorted(self._newcomers):
            self._there.add(newcomer)
            decisions += self._protocol.joined(newcomer)
        self._newcomers.clear()
        self._elasticity.resized(self.replicas)
        return decisions + self._protocol.resume(required)
