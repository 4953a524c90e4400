"""Who computes which step, and whose gradients count. Pure state: events in, decisions out, no Ray, no clock.

Synchronous training (`SyncProtocol`), on n replicas of which the first m count in each step:

1. A step starts when no step is open and m replicas are idle, or all when fewer are alive. Every idle one takes part.
2. A replica that becomes idle while the open step is undecided joins it.
3. When m replicas have delivered, they become the *members* of the step; the shards combine and apply their gradients.
   When exactly m replicas take part there is nothing to decide: they are members from the start.
4. Whoever delivers later is *dropped*: the step stamp of its gradients is stale.
5. A replica that dies leaves the open step; the survivors decide it. When it was the last member of a step that was
   decided, the step is abandoned, since shards may have applied it already, and another makes up for it.

Asynchronous training (`AsyncProtocol`): every replica has steps of its own, of which it is the only member.

References:
    OSDI 2016, section 4.4; Chen et al., "Revisiting Distributed Synchronous SGD", arXiv:1604.00981.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True)
class Start:
    """Begin `step` on the shards and on `replicas`. `members` is None while undecided."""

    step: int
    replicas: tuple[int, ...]
    members: tuple[int, ...] | None


@dataclass(frozen=True)
class Join:
    """Let `replica` take part in the open `step`."""

    step: int
    replica: int


@dataclass(frozen=True)
class Commit:
    """The shards shall apply the contributions of `members` to `step`."""

    step: int
    members: tuple[int, ...]


@dataclass(frozen=True)
class Abandon:
    """Nobody can contribute to `step` any more: the shards shall give it up."""

    step: int


@dataclass(frozen=True)
class Complete:
    """`step` is over: the shards have applied it, and its `members` have reported.

    It is the `position`-th step to end. Numbers of steps that were abandoned are not used again.
    """

    step: int
    members: tuple[int, ...]
    position: int


Decision = Start | Join | Commit | Abandon | Complete


class ReplicaProtocol(Protocol):
    """What the driver needs of either protocol. Every event returns the decisions that it calls for."""

    dropped: int

    def joined(self, replica: int) -> list[Decision]:
        """A replica is there and idle."""

    def delivered(self, replica: int, step: int) -> list[Decision]:
        """The shards hold everything that a replica computed for a step; it is idle again."""

    def left(self, replica: int) -> list[Decision]:
        """A replica died, or has no more input."""

    def applied(self, step: int) -> list[Decision]:
        """Every shard has applied a step."""

    @property
    def finished(self) -> bool:
        """Whether the last step has been applied."""

    @property
    def live(self) -> int:
        """Number of replicas that are there."""

    @property
    def stranded(self) -> bool:
        """Whether nothing will happen until a replica joins: none is there, and no step is left to the shards."""

    def hold(self, position: int | None = None) -> None:
        """Begin no step once so many have ended; None stands for those that have ended or are open."""

    @property
    def held(self) -> bool:
        """Whether no step is open, and none begins, because of `hold`."""

    def go_on(self, position: int | None = None) -> list[Decision]:
        """Begin steps again, until so many have ended; without end for None."""


@dataclass
class _OpenStep:
    number: int
    computing: set[int]
    delivered: list[int] = field(default_factory=list)
    members: tuple[int, ...] | None = None
    applied: bool = False


class SyncProtocol:
    """See the module's text.

    Args:
        required: m, the number of gradients that are averaged in a step.
        steps: Number of steps to run.
        first_step: Number of the first step.
        expected: Replicas to wait for before the first step.
    """

    def __init__(self, required: int, steps: int, first_step: int = 1, expected: int = 1) -> None:
        if not 1 <= required <= expected:
            raise ValueError(f"between 1 and {expected} replicas can be required, not {required}")
        self.dropped = 0
        self._completed = first_step - 1
        self._required = required
        self._expected = expected
        self._next = first_step
        self._end = first_step + steps
        self._idle: set[int] = set()
        self._busy: dict[int, int] = {}
        self._open: _OpenStep | None = None
        self._hold_at: int | None = None

    @property
    def finished(self) -> bool:
        return self._open is None and self._next >= self._end

    @property
    def live(self) -> int:
        return len(self._idle) + len(self._busy)

    @property
    def stranded(self) -> bool:
        return self.live == 0 and (self._open is None or self._open.members is None)

    def hold(self, position: int | None = None) -> None:
        self._hold_at = self._completed + (self._open is not None) if position is None else position

    @property
    def held(self) -> bool:
        return self._open is None and self._hold_at is not None and self._completed >= self._hold_at

    def go_on(self, position: int | None = None) -> list[Decision]:
        self._hold_at = position
        return self._use_idle()

    def joined(self, replica: int) -> list[Decision]:
        self._idle.add(replica)
        if self.live >= self._expected:
            self._expected = 1  # from now on training goes on with whoever is there
        return self._use_idle()

    def delivered(self, replica: int, step: int) -> list[Decision]:
        self._busy.pop(replica, None)
        self._idle.add(replica)
        current = self._open
        if current is None or current.number != step:
            self.dropped += 1
            return self._use_idle()
        current.computing.discard(replica)
        current.delivered.append(replica)
        if current.members is None:
            return self._decide() + self._use_idle()
        if replica not in current.members:
            self.dropped += 1
        return self._finish() + self._use_idle()

    def left(self, replica: int) -> list[Decision]:
        self._idle.discard(replica)
        self._busy.pop(replica, None)
        self._expected = max(1, self._expected - 1)  # one that dies before the first step is not waited for
        current = self._open
        if current is None:
            return self._use_idle()
        was_computing = replica in current.computing
        current.computing.discard(replica)
        if current.applied:
            return self._finish() + self._use_idle()
        if current.members is None:
            return self._decide()
        if was_computing and replica in current.members:
            return self._decide_without(current, replica)
        return []

    def applied(self, step: int) -> list[Decision]:
        assert self._open is not None and self._open.number == step
        self._open.applied = True
        return self._finish() + self._use_idle()

    def _finish(self) -> list[Decision]:
        """End the open step once it is applied and no member's report is outstanding."""
        current = self._open
        if current is None or not current.applied or current.computing.intersection(current.members or ()):
            return []
        self._open = None
        self._completed += 1
        return [Complete(current.number, current.members or (), self._completed)]

    def _use_idle(self) -> list[Decision]:
        """Start the next step, or let idle replicas join the open one."""
        if self._open is not None:
            return self._join_open(self._open)
        needed = max(min(self._required, self.live), 1)
        if self.held:
            return []
        if self._next >= self._end or self.live < self._expected or len(self._idle) < needed:
            return []
        replicas = tuple(sorted(self._idle))
        members = replicas if len(replicas) == self._required else None
        self._open = _OpenStep(self._next, set(replicas), members=members)
        self._busy.update(dict.fromkeys(replicas, self._next))
        self._idle.clear()
        self._next += 1
        return [Start(self._open.number, replicas, members)]

    def _join_open(self, current: _OpenStep) -> list[Decision]:
        if current.members is not None or current.applied:
            return []
        fresh = sorted(self._idle - set(current.delivered))
        current.computing.update(fresh)
        self._idle.difference_update(fresh)
        self._busy.update(dict.fromkeys(fresh, current.number))
        return [Join(current.number, replica) for replica in fresh]

    def _decide(self) -> list[Decision]:
        """Choose the members once enough have delivered; a step with nobody left is taken up by the next to come."""
        current = self._open
        assert current is not None
        possible = len(current.delivered) + len(current.computing)
        stragglers = any(step != current.number for step in self._busy.values())
        needed = self._required if stragglers else min(self._required, possible)
        if not current.delivered or len(current.delivered) < needed:
            return []
        current.members = tuple(sorted(current.delivered[: self._required]))
        self.dropped += len(current.delivered) - len(current.members)
        return [Commit(current.number, current.members)]

    def _decide_without(self, current: _OpenStep, replica: int) -> list[Decision]:
        """A member died before it delivered: the step is that of the others."""
        assert current.members is not None
        rest = tuple(member for member in current.members if member != replica)
        if rest:
            current.members = rest
            return [Commit(current.number, rest)]
        self._open = None
        self._end += 1
        return [Abandon(current.number), *self._use_idle()]


class AsyncProtocol:
    """Every replica has steps of its own; their updates interleave.

    Args:
        steps: Number of steps to apply, over all replicas.
        first_step: Number of the first step.
    """

    def __init__(self, steps: int, first_step: int = 1) -> None:
        self.dropped = 0
        self._completed = first_step - 1
        self._next = first_step
        self._remaining = steps
        self._live: set[int] = set()
        self._owner: dict[int, int] = {}
        self._outstanding: dict[int, set[str]] = {}
        self._hold_at: int | None = None

    @property
    def finished(self) -> bool:
        return not self._owner and self._remaining == 0

    @property
    def live(self) -> int:
        return len(self._live)

    @property
    def stranded(self) -> bool:
        return not self._live and not self._owner

    def hold(self, position: int | None = None) -> None:
        self._hold_at = self._completed + len(self._owner) if position is None else position

    @property
    def held(self) -> bool:
        return not self._owner and self._hold_at is not None and self._completed >= self._hold_at

    def go_on(self, position: int | None = None) -> list[Decision]:
        self._hold_at = position
        return self._start_idle()

    def joined(self, replica: int) -> list[Decision]:
        self._live.add(replica)
        return self._start(replica)

    def delivered(self, replica: int, step: int) -> list[Decision]:
        return self._settle(step, "delivered")

    def applied(self, step: int) -> list[Decision]:
        return self._settle(step, "applied")

    def left(self, replica: int) -> list[Decision]:
        self._live.discard(replica)
        decisions: list[Decision] = []
        for step, owner in list(self._owner.items()):
            if owner != replica or "delivered" not in self._outstanding[step]:
                continue
            if "applied" in self._outstanding[step]:
                # Its number is not used again: another step makes up for it.
                del self._owner[step]
                self._remaining += 1
                decisions.append(Abandon(step))
            else:
                decisions += self._settle(step, "delivered")
        return decisions + self._start_idle()

    def _settle(self, step: int, event: str) -> list[Decision]:
        """Record one of the two things that end a step, and go on when both have happened."""
        if step not in self._owner:
            return []  # abandoned
        self._outstanding[step].discard(event)
        if self._outstanding[step]:
            return []
        del self._outstanding[step]
        replica = self._owner.pop(step)
        self._completed += 1
        return [Complete(step, (replica,), self._completed), *self._start(replica)]

    def _start_idle(self) -> list[Decision]:
        idle = sorted(self._live - set(self._owner.values()))
        return [decision for replica in idle for decision in self._start(replica)]

    def _start(self, replica: int) -> list[Decision]:
        if replica not in self._live or self._remaining == 0:
            return []
        if self._hold_at is not None and self._completed + len(self._owner) >= self._hold_at:
            return []
        step = self._next
        self._next += 1
        self._remaining -= 1
        self._owner[step] = replica
        self._outstanding[step] = {"delivered", "applied"}
        return [Start(step, (replica,), (replica,))]
