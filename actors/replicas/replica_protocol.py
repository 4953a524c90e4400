"""Decides which replica computes which step, and which gradients count. Events come in, decisions go out: it knows
neither Ray nor a clock.

Synchronous training (`SyncProtocol`), on n replicas of which the first m count in each step:

1. A step starts when no step is open and m replicas are idle; if fewer than m are alive, when all of them are idle.
   Every idle replica takes part.
2. A replica that becomes idle while the open step is undecided joins it.
3. When m replicas have delivered, they become the *members* of the step. The shards combine their gradients and apply
   them. While exactly m replicas are alive there is nothing to decide: they are members from the start. Then the next
   step is handed out before this one is over, so that devices need not wait for the driver.
4. A replica that delivers later is *dropped*: the step stamp of its gradients is stale.
5. A replica that dies leaves the open step, and the survivors decide it. If it was the last member of a decided step,
   the step is *reopened*. It is over for shards that have everything that the dead replica computed. For the others it
   is undecided again: replicas that are idle, or come, join it. So every shard applies it once.
6. While no replica takes part in an open step, m may change with the number of replicas.

Asynchronous training (`AsyncProtocol`): every replica has steps of its own, of which it is the only member.

References:
    OSDI 2016, section 4.4; Chen et al., "Revisiting Distributed Synchronous SGD", arXiv:1604.00981.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True)
class Start:
    """Begin `step` on the shards and on `replicas`. `members` is None while undecided.

    Every device begins its part when its part of the step `after` is over.
    """

    step: int
    replicas: tuple[int, ...]
    members: tuple[int, ...] | None
    after: int | None = None


@dataclass(frozen=True)
class Join:
    """Let `replica` take part in the open `step`.

    In a reopened step the shards send again what replicas need, as soon as the step `after` is over on them. Otherwise
    shards that have applied the step already would send nothing: for them it is over.
    """

    step: int
    replica: int
    reopened: bool = False
    after: int | None = None


@dataclass(frozen=True)
class Commit:
    """Let the shards apply the contributions of `members` in `step`."""

    step: int
    members: tuple[int, ...]


@dataclass(frozen=True)
class Reopen:
    """The last member of `step` is gone. Shards that lack some of its tensors must drop those that they have."""

    step: int


@dataclass(frozen=True)
class Complete:
    """`step` is over: the shards have applied it, and its `members` have reported.

    It is the `position`-th step to end.
    """

    step: int
    members: tuple[int, ...]
    position: int


Decision = Start | Join | Commit | Reopen | Complete


class ReplicaProtocol(Protocol):
    """What the driver needs of either protocol. Events are methods, and return the decisions that follow."""

    dropped: int

    collective: bool
    """Whether all replicas compute each step together; otherwise each step belongs to one replica."""

    @property
    def required(self) -> int:
        """How many replicas must deliver before a step can end."""

    @property
    def drains(self) -> bool:
        """Whether steps are open, and no further step begins before they have ended."""

    def joined(self, replica: int) -> list[Decision]:
        """Event: a replica has come, and is idle."""

    def delivered(self, replica: int, step: int) -> list[Decision]:
        """Event: the shards hold everything that a replica computed for a step. The replica is idle again."""

    def left(self, replica: int) -> list[Decision]:
        """Event: a replica has died, or has no more input."""

    def applied(self, step: int) -> list[Decision]:
        """Event: every shard has applied a step."""

    @property
    def finished(self) -> bool:
        """Whether the last step has been applied."""

    @property
    def live(self) -> int:
        """Number of replicas that are there."""

    @property
    def stranded(self) -> bool:
        """Whether nothing will happen until a replica joins: none is there, and the shards have no step to end."""

    def hold(self, position: int | None = None) -> None:
        """Begin no step once `position` steps have ended; None stands for those that have ended or are open now.

        Of several holds the earliest position counts; `go_on` ends them all.
        """

    @property
    def held(self) -> bool:
        """Whether no step is open, and none begins, because of `hold`."""

    def go_on(self, position: int | None = None) -> list[Decision]:
        """Begin steps again, until `position` steps have ended; without end for None."""

    def pause(self) -> None:
        """Begin no step until `resume`, whatever `go_on` says. Nor does a replica take up a step that has lost all."""

    def resume(self, required: int) -> list[Decision]:
        """End a pause. From now on the gradients of `required` replicas count in a step. Call it while `idle`."""

    @property
    def idle(self) -> bool:
        """Whether no replica takes part in an open step."""

    def validate(self) -> None:
        """Raise `AssertionError` if the state breaks one of the protocol's invariants, which its docstring lists."""


def _earliest(hold_at: int | None, position: int) -> int:
    """The position that counts of two holds; the first may not be there."""
    return position if hold_at is None else min(hold_at, position)


@dataclass
class _OpenStep:
    """A step that has not ended.

    Attributes:
        number: Its number.
        computing: Replicas that have not delivered yet.
        delivered: Replicas that have delivered, in the order in which they did.
        members: Replicas that count; None while the step is undecided.
        lost: The member whose death has reopened the step.
        applied: Whether every shard has applied it.
    """

    number: int
    computing: set[int]
    delivered: list[int] = field(default_factory=list)
    members: tuple[int, ...] | None = None
    lost: int | None = None
    applied: bool = False

    @property
    def is_deserted(self) -> bool:
        """Whether no replica has to do with it."""
        return self.members is None and not self.computing and not self.delivered


class SyncProtocol:
    """See the module's text.

    Between two events the following holds:

    - Each step that has begun is either open or has ended, not both. At most `ahead` steps are open.
    - A replica is gone, idle, or computing. Those that compute an open step are there, and have not delivered it.
    - A decided step has at least one member and at most `required`, and no member twice. Until the shards have applied
      the step, each member computes it, has delivered it, or is the one whose death has reopened it.
    - All steps after an undecided one are undecided, except those that have been applied.
    - The first open step is not over. Every step that may begin has begun.

    Args:
        required: m, the number of gradients that are averaged in a step.
        steps: Number of steps to run.
        first_step: Number of the first step.
        expected: Replicas to wait for before the first step.
        ahead: How many steps may be open at once while exactly m replicas are alive.
        spares: Whether there are to be more than m replicas, as there are backup workers. Then no step has members
            before gradients are there, even while exactly m are alive: one of these may freeze, and another come.
    """

    collective = True

    def __init__(
        self,
        required: int,
        steps: int,
        first_step: int = 1,
        expected: int = 1,
        ahead: int = 1,
        spares: bool = False,
    ) -> None:
        if not 1 <= required <= expected:
            raise ValueError(f"between 1 and {expected} replicas can be required, not {required}")
        self.dropped = 0
        self._completed = first_step - 1
        self._required = required
        self._expected = expected
        self._ahead = ahead
        self._spares = spares
        self._next = first_step
        self._end = first_step + steps
        self._busy: dict[int, set[int]] = {}
        self._open: list[_OpenStep] = []
        self._hold_at: int | None = None
        self._paused = False

    def validate(self) -> None:
        open_steps = self._open
        first, next_number = self._next - len(open_steps), self._next
        assert self._completed == first - 1, f"{self._completed} steps have ended, and the first open one is {first}"
        assert next_number <= self._end, f"step {next_number - 1} has begun, and the last is {self._end - 1}"
        assert len(open_steps) <= self._ahead, f"{len(open_steps)} steps are open, of at most {self._ahead}"
        is_undecided = False
        for number, step in enumerate(open_steps, first):
            assert step.number == number, f"step {step.number} is open in the place of {number}"
            self._validate_replicas(step)
            members = step.members
            if members is None:
                assert not step.applied, f"step {number} has been applied, and nobody counts"
                is_undecided = True
                continue
            assert step.applied or not is_undecided, f"step {number} is decided before an earlier one"
            assert 0 < len(members) <= self._required, f"step {number} has members {members}, of {self._required}"
            assert len(set(members)) == len(members), f"step {number} counts a member twice: {members}"
            known = step.applied or step.computing.issuperset(members)
            known = known or {*step.computing, *step.delivered, step.lost}.issuperset(members)
            assert known, f"not all members {members} of step {number} take part in it"
        assert not open_steps or not self._is_over(open_steps[0]), f"step {first} is over, and still open"
        assert not self._may_begin(), f"step {next_number} may begin, and has not"

    def _validate_replicas(self, step: _OpenStep) -> None:
        for replica in step.computing:
            assert step.number in self._busy.get(replica, ()), f"{replica} computes step {step.number}, and is not busy"
        assert len(step.computing) == sum(step.number in steps for steps in self._busy.values()), (
            f"somebody is busy with step {step.number} who does not compute it"
        )
        if step.delivered:
            assert step.computing.isdisjoint(step.delivered), f"a replica has delivered step {step.number} too early"
            assert len(set(step.delivered)) == len(step.delivered), f"a replica has delivered step {step.number} twice"

    @property
    def required(self) -> int:
        return min(self._required, max(self.live, self._expected))

    @property
    def drains(self) -> bool:
        return bool(self._open) and not self._may_begin()

    @property
    def finished(self) -> bool:
        return not self._open and self._next >= self._end

    @property
    def live(self) -> int:
        return len(self._busy)

    @property
    def stranded(self) -> bool:
        return self.live == 0 and all(step.members is None for step in self._open)

    def hold(self, position: int | None = None) -> None:
        self._hold_at = _earliest(self._hold_at, self._completed + len(self._open) if position is None else position)

    @property
    def held(self) -> bool:
        return not self._open and self._hold_at is not None and self._completed >= self._hold_at

    def go_on(self, position: int | None = None) -> list[Decision]:
        self._hold_at = position
        return self._proceed()

    def pause(self) -> None:
        self._paused = True

    def resume(self, required: int) -> list[Decision]:
        self._paused, self._required = False, required
        return self._proceed()

    @property
    def idle(self) -> bool:
        return all(step.is_deserted for step in self._open)

    def joined(self, replica: int) -> list[Decision]:
        self._busy[replica] = set()
        if self.live >= self._expected:
            self._expected = 1  # from now on training goes on with whoever is there
        return self._proceed()

    def delivered(self, replica: int, step: int) -> list[Decision]:
        self._busy.get(replica, set()).discard(step)
        decisions: list[Decision] = []
        current = next((each for each in self._open if each.number == step), None)
        if current is None:
            self.dropped += 1
        else:
            current.computing.discard(replica)
            current.delivered.append(replica)
            if current.members is None:
                decisions = self._decide(current)
            elif replica not in current.members:
                self.dropped += 1
        return decisions + self._proceed()

    def left(self, replica: int) -> list[Decision]:
        if self._busy.pop(replica, None) is None and self._expected == 1:
            return []
        self._expected = max(1, self._expected - 1)  # one that dies before the first step is not waited for
        decisions: list[Decision] = []
        for current in self._open:
            was_computing = replica in current.computing
            current.computing.discard(replica)
            if current.applied:
                continue
            if current.members is None:
                decisions += self._decide(current)
            elif was_computing and replica in current.members:
                decisions.append(self._decide_without(current, replica))
        return decisions + self._proceed()

    def applied(self, step: int) -> list[Decision]:
        for current in self._open:
            if current.number == step:
                current.applied = True
                if current.members is None and current.lost is not None:
                    # The shards had everything already. A replica that delivered later did not contribute, but reports.
                    current.members = tuple(sorted(current.delivered[: self._required])) or (current.lost,)
                    self.dropped += len(current.delivered[self._required :])
        return self._proceed()

    def _proceed(self) -> list[Decision]:
        """End the steps that may end, join those that may be joined, and begin those that may begin."""
        return self._finish() + self._join() + self._begin_all()

    def _finish(self) -> list[Decision]:
        """End open steps in order: those that are applied, and for which all members have reported."""
        decisions: list[Decision] = []
        while self._open:
            first = self._open[0]
            if not self._is_over(first):
                break
            del self._open[0]
            self._completed += 1
            decisions.append(Complete(first.number, first.members or (), self._completed))
        return decisions

    @staticmethod
    def _is_over(step: _OpenStep) -> bool:
        return step.applied and step.computing.isdisjoint(step.members or ())

    def _begin_all(self) -> list[Decision]:
        """Begin all steps that may begin."""
        decisions: list[Decision] = []
        while self._may_begin():
            decisions.append(self._begin())
        return decisions

    def _join(self) -> list[Decision]:
        """Let idle replicas take part in the first open step that is undecided."""
        if not self._open or self._open[-1].members is not None:
            return []  # those that are undecided are the last
        position = next(i for i, step in enumerate(self._open) if step.members is None)
        current = self._open[position]
        if self._paused and current.is_deserted:
            return []
        joining = [replica for replica in self._idle if replica not in current.delivered]
        current.computing.update(joining)
        for replica in joining:
            self._busy[replica].add(current.number)
        if current.lost is None:
            return [Join(current.number, replica) for replica in joining]
        after = self._open[position - 1].number if position else None
        return [Join(current.number, replica, True, after) for replica in joining]

    @property
    def _idle(self) -> list[int]:
        return sorted(replica for replica, steps in self._busy.items() if not steps)

    def _may_begin(self) -> bool:
        """Whether to open another step."""
        if self._paused:
            return False
        if self._hold_at is not None and self._completed + len(self._open) >= self._hold_at:
            return False
        if self._next >= self._end or self.live < self._expected:
            return False
        if not self._open:
            return len(self._idle) >= max(min(self._required, self.live), 1)
        # All open steps have the members that the next step would have: it can be handed out before they have ended.
        members = tuple(sorted(self._busy))
        return (
            len(self._open) < self._ahead
            and len(members) == self._required
            and all(step.members == members for step in self._open)
        )

    def _begin(self) -> Start:
        after = self._open[-1].number if self._open else None
        replicas = tuple(self._idle) if after is None else tuple(sorted(self._busy))
        # If more replicas are alive, or may come, the step is undecided: one of these m may turn out to be the slowest.
        is_decided = len(replicas) == self._required == self.live and not self._spares
        members = replicas if is_decided else None
        step = _OpenStep(self._next, set(replicas), members=members)
        self._open.append(step)
        for replica in replicas:
            self._busy[replica].add(step.number)
        self._next += 1
        return Start(step.number, replicas, members, after)

    def _decide(self, current: _OpenStep) -> list[Decision]:
        """Choose the members once enough have delivered. A step that has no replica left waits for the next to come."""
        possible = len(current.delivered) + len(current.computing)
        stragglers = any(steps - {current.number} for steps in self._busy.values())
        needed = self._required if stragglers else min(self._required, possible)
        if not current.delivered or len(current.delivered) < needed:
            return []
        current.members = tuple(sorted(current.delivered[: self._required]))
        self.dropped += len(current.delivered) - len(current.members)
        return [Commit(current.number, current.members)]

    def _decide_without(self, current: _OpenStep, replica: int) -> Decision:
        """A member died before it delivered: the other members keep the step. Without any, it is reopened."""
        assert current.members is not None
        rest = tuple(member for member in current.members if member != replica)
        if rest:
            current.members = rest
            return Commit(current.number, rest)
        current.members, current.lost = None, replica
        return Reopen(current.number)


@dataclass
class _OwnStep:
    """A step of one replica that has not ended.

    Attributes:
        number: Its number.
        owner: The replica that computes it. If the step is lost, the replica that is gone.
        after: The open step of the same replica after which it was handed out, or None.
        is_delivered: Whether the replica has delivered it, or nobody needs to any more.
        is_applied: Whether every shard has applied it.
        is_reopened: Whether it has been reopened: the shards do not know its owner.
    """

    number: int
    owner: int
    after: int | None
    is_delivered: bool = False
    is_applied: bool = False
    is_reopened: bool = False

    @property
    def is_over(self) -> bool:
        """Whether it has been both delivered and applied."""
        return self.is_delivered and self.is_applied


class AsyncProtocol:
    """Every replica has steps of its own; their updates interleave.

    When a replica dies, its steps are reopened, and other replicas take them up, one after the other. On the shards a
    step comes after its step `after`. So it is taken up only once that one has been delivered.

    Between two events the following holds:

    - Each step has ended, is open, or is still to begin. No open step is over.
    - An open step is owned or lost. The owner is there, unless it has delivered the step. A lost step is reopened, and
      neither delivered nor applied.
    - A replica owns at most `ahead` steps. A step that it has not delivered comes after another open one of its own, or
      after no open one.
    - No replica is more than `staleness` steps ahead of the slowest when it begins a step. A replica that has replaced
      another may own steps that the other left.

    Args:
        steps: Number of steps to apply, over all replicas.
        first_step: Number of the first step.
        ahead: How many steps of one replica may be open at once; it computes them one after the other.
        staleness: How many steps a replica may be ahead of the slowest one; None for any number (Ho et al., "More
            Effective Distributed ML via a Stale Synchronous Parallel Parameter Server", NIPS 2013).
    """

    collective = False

    def __init__(self, steps: int, first_step: int = 1, ahead: int = 1, staleness: int | None = None) -> None:
        if staleness is not None and staleness < 0:
            raise ValueError(f"staleness must be at least 0, not {staleness}")
        self.dropped = 0
        self._completed = first_step - 1
        self._next = first_step
        self._end = first_step + steps
        self._ahead = ahead
        self._staleness = staleness
        self._clock: dict[int, int] = {}
        self._owned: dict[int, _OwnStep] = {}
        """Open steps that have an owner. Those of one replica are in the order in which it computes them."""
        self._lost: dict[int, _OwnStep] = {}
        """Reopened steps that no replica has taken up yet, in the order in which they were reopened."""
        self._hold_at: int | None = None
        self._paused = False

    def validate(self) -> None:
        ended = self._next - 1 - self._open
        assert self._completed == ended, f"{self._completed} steps have ended, but {ended} are not open any more"
        assert self._next <= self._end, f"step {self._next - 1} has begun, and the last is {self._end - 1}"
        assert self._owned.keys().isdisjoint(self._lost), "a lost step has an owner"
        last: dict[int, int] = {}
        counts: dict[int, int] = {}
        for number, step in self._owned.items():
            owner = step.owner
            assert not step.is_over, f"step {number} is over, and still open"
            assert step.is_delivered or owner in self._clock, f"step {number} waits for replica {owner}, which is gone"
            in_line = step.is_delivered or step.after is None or step.after == last.get(owner)
            assert in_line or not self._is_open(step.after), f"step {number} does not come behind one of its owner's"
            last[owner] = number
            counts[owner] = counts.get(owner, 0) + 1
        for number, step in self._lost.items():
            is_to_do = step.is_reopened and not step.is_delivered and not step.is_applied
            assert is_to_do, f"step {number} is lost, but nobody needs to take it up"
        slowest = min(self._clock.values(), default=0)
        for replica, count in counts.items():
            assert count <= self._ahead, f"replica {replica} has {count} steps, of at most {self._ahead}"
            if self._staleness is not None and replica in self._clock:
                lead = self._clock[replica] + count - slowest
                assert lead <= max(self._staleness + 1, self._ahead), f"replica {replica} is {lead} steps ahead"

    def _is_open(self, number: int | None) -> bool:
        return number in self._owned or number in self._lost

    @property
    def required(self) -> int:
        return min(1, self.live)

    @property
    def drains(self) -> bool:
        return self._open > 0 and (self._paused or self._next == self._end or self._is_held_back)

    @property
    def finished(self) -> bool:
        return not self._open and self._next == self._end

    @property
    def live(self) -> int:
        return len(self._clock)

    @property
    def stranded(self) -> bool:
        return not self._clock and not self._owned

    def hold(self, position: int | None = None) -> None:
        self._hold_at = _earliest(self._hold_at, self._completed + self._open if position is None else position)

    @property
    def held(self) -> bool:
        return not self._open and self._hold_at is not None and self._completed >= self._hold_at

    def go_on(self, position: int | None = None) -> list[Decision]:
        self._hold_at = position
        return self._start_all()

    def pause(self) -> None:
        self._paused = True

    def resume(self, required: int) -> list[Decision]:
        self._paused = False
        return self._start_all()

    @property
    def idle(self) -> bool:
        return not self._owned

    def joined(self, replica: int) -> list[Decision]:
        self._clock[replica] = min(self._clock.values(), default=0)
        return self._start_all()

    def delivered(self, replica: int, step: int) -> list[Decision]:
        current = self._owned[step]
        current.is_delivered = True
        if not current.is_reopened:
            return self._settle(current)
        current.is_reopened = False
        return [Commit(step, (replica,)), *self._settle(current)]

    def applied(self, step: int) -> list[Decision]:
        current = self._owned.get(step)
        if current is None:  # it is lost and reopened, but the shards had everything already
            current = self._owned[step] = self._lost.pop(step)
            current.is_delivered = True
        current.is_applied = True
        return self._settle(current)

    def left(self, replica: int) -> list[Decision]:
        self._clock.pop(replica, None)
        decisions: list[Decision] = []
        for step in list(self._owned.values()):
            if step.owner != replica or step.is_delivered:
                continue
            if step.is_applied:  # only its report is outstanding, and that will never come
                step.is_delivered = True
                decisions += self._settle(step)
            else:
                self._lost[step.number] = self._owned.pop(step.number)
                step.is_reopened = True
                decisions.append(Reopen(step.number))
        return decisions + self._start_all()

    @property
    def _open(self) -> int:
        return len(self._owned) + len(self._lost)

    def _settle(self, step: _OwnStep) -> list[Decision]:
        """Go on after a step was delivered or applied: end it once both are true."""
        if not step.is_over:
            return self._start_all() if self._lost else []
        del self._owned[step.number]
        self._completed += 1
        if step.owner in self._clock:
            self._clock[step.owner] += 1
        return [Complete(step.number, (step.owner,), self._completed), *self._start_all()]

    def _start_all(self) -> list[Decision]:
        """Hand out all steps that may be handed out, one to each replica in turn."""
        decisions: list[Decision] = []
        while given := self._give_all():
            decisions += given
        return decisions

    def _give_all(self) -> list[Decision]:
        pending = Counter([step.owner for step in self._owned.values()])
        return [decision for replica in sorted(self._clock) for decision in self._give(replica, pending[replica])]

    def _give(self, replica: int, pending: int) -> list[Decision]:
        """Hand out a step to a replica that has `pending` steps, if it may have one: a lost step, or else the next."""
        if self._paused or self._has_enough(replica, pending):
            return []
        lost = self._next_lost() if self._lost else None
        if lost is None and (self._next == self._end or self._is_held_back):
            return []
        after = next((number for number, step in reversed(self._owned.items()) if step.owner == replica), None)
        if lost is not None:
            self._owned[lost.number] = self._lost.pop(lost.number)
            lost.owner, lost.after = replica, after
            return [Join(lost.number, replica, True, after)]
        step = self._owned[self._next] = _OwnStep(self._next, replica, after)
        self._next += 1
        return [Start(step.number, (replica,), (replica,), after)]

    @property
    def _is_held_back(self) -> bool:
        """Whether no further step may begin, because of `hold`."""
        return self._hold_at is not None and self._completed + self._open >= self._hold_at

    def _next_lost(self) -> _OwnStep | None:
        """The first lost step that may be taken up: the step after which it was handed out has been delivered."""
        return next((step for step in self._lost.values() if self._is_delivered(step.after)), None)

    def _is_delivered(self, number: int | None) -> bool:
        step = None if number is None else self._owned.get(number) or self._lost.get(number)
        return step is None or step.is_delivered

    def _has_enough(self, replica: int, pending: int) -> bool:
        """Whether a replica has as many steps as it may have at once, or is too far ahead of others."""
        if self._staleness is not None:
            lead = self._clock[replica] + pending - min(self._clock.values())
            if lead > self._staleness:
                return True
        return pending >= self._ahead
