"""Who computes which step, and whose gradients count: the state machines, and a simulated cluster around them."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfray.actors.devices.replica_inbox import ReplicaInbox
from tfray.actors.replicas.replica_protocol import AsyncProtocol, Commit, Complete, Join, Reopen, Start, SyncProtocol

# -- synchronous training, event by event --------------------------------------------------------------


def test_without_backups_the_members_are_known_from_the_start():
    protocol = SyncProtocol(required=2, steps=2, expected=2)
    assert protocol.joined(0) == []
    assert protocol.joined(1) == [Start(1, (0, 1), (0, 1))]
    assert protocol.delivered(0, 1) == []
    assert protocol.delivered(1, 1) == []
    assert protocol.applied(1) == [Complete(1, (0, 1), 1), Start(2, (0, 1), (0, 1))]
    assert protocol.delivered(1, 2) == []
    assert protocol.applied(2) == []  # the shards may be faster than a member's report
    assert not protocol.finished
    assert protocol.delivered(0, 2) == [Complete(2, (0, 1), 2)]
    assert protocol.finished and protocol.dropped == 0


def test_backups_are_dropped_and_nobody_waits_for_a_straggler():
    protocol = SyncProtocol(required=2, steps=3, expected=3)
    protocol.joined(0)
    protocol.joined(1)
    assert protocol.joined(2) == [Start(1, (0, 1, 2), None)]
    assert protocol.delivered(2, 1) == []
    assert protocol.delivered(0, 1) == [Commit(1, (0, 2))]
    assert protocol.applied(1) == [Complete(1, (0, 2), 1), Start(2, (0, 2), None)]
    assert protocol.delivered(1, 1) == [Join(2, 1)]  # late by a step
    assert protocol.dropped == 1
    assert protocol.delivered(0, 2) == []
    assert protocol.delivered(2, 2) == [Commit(2, (0, 2))]
    assert protocol.delivered(1, 2) == []
    assert protocol.dropped == 2
    assert protocol.applied(2) == [Complete(2, (0, 2), 2), Start(3, (0, 1, 2), None)]
    assert protocol.delivered(1, 3) == []
    assert protocol.delivered(0, 3) == [Commit(3, (0, 1))]
    assert protocol.delivered(2, 3) == []  # within the step, but one too many
    assert protocol.dropped == 3
    assert protocol.applied(3) == [Complete(3, (0, 1), 3)]
    assert protocol.finished


def test_with_spares_no_step_depends_on_who_is_there_first():
    """Two of three begin, and one of them freezes. The third takes its place as soon as it comes."""
    protocol = SyncProtocol(required=2, steps=2, expected=2, ahead=2, spares=True)
    protocol.joined(0)
    assert protocol.joined(1) == [Start(1, (0, 1), None)]
    assert protocol.delivered(0, 1) == []
    assert protocol.joined(2) == [Join(1, 2)]
    assert protocol.delivered(2, 1) == [Commit(1, (0, 2))]
    assert protocol.applied(1) == [Complete(1, (0, 2), 1), Start(2, (0, 2), None)]


def test_who_becomes_idle_joins_while_the_step_is_undecided():
    protocol = SyncProtocol(required=2, steps=2, expected=4)
    for replica in range(3):
        assert protocol.joined(replica) == []
    assert protocol.joined(3) == [Start(1, (0, 1, 2, 3), None)]
    protocol.delivered(0, 1)
    assert protocol.delivered(1, 1) == [Commit(1, (0, 1))]
    protocol.delivered(2, 1)
    assert protocol.applied(1) == [Complete(1, (0, 1), 1), Start(2, (0, 1, 2), None)]
    assert protocol.delivered(3, 1) == [Join(2, 3)]
    protocol.delivered(3, 2)
    assert protocol.delivered(1, 2) == [Commit(2, (1, 3))]


def test_the_first_step_waits_for_everybody_who_is_expected():
    protocol = SyncProtocol(required=1, steps=1, expected=3)
    assert protocol.joined(0) == protocol.joined(1) == []
    assert protocol.left(5) == [Start(1, (0, 1), None)]  # one that died before it joined is not


def test_a_member_that_dies_leaves_the_step_to_the_others():
    protocol = SyncProtocol(required=2, steps=1, expected=2)
    protocol.joined(0)
    protocol.joined(1)
    assert protocol.left(1) == [Commit(1, (0,))]
    assert protocol.delivered(0, 1) == []
    assert protocol.applied(1) == [Complete(1, (0,), 1)]


def test_a_step_whose_last_member_dies_is_that_of_whoever_comes():
    protocol = SyncProtocol(required=1, steps=2, expected=1)
    assert protocol.joined(0) == [Start(1, (0,), (0,))]
    assert protocol.left(0) == [Reopen(1)]
    assert protocol.live == 0 and protocol.stranded and not protocol.finished
    assert protocol.joined(0) == [Join(1, 0, reopened=True)]
    assert protocol.delivered(0, 1) == [Commit(1, (0,))]
    assert protocol.applied(1) == [Complete(1, (0,), 1), Start(2, (0,), (0,))]
    protocol.delivered(0, 2)
    assert protocol.applied(2) == [Complete(2, (0,), 2)]
    assert protocol.finished


def test_a_step_is_over_if_its_last_member_has_died_when_the_shards_had_everything():
    protocol = SyncProtocol(required=1, steps=2, expected=1)
    protocol.joined(0)
    assert protocol.left(0) == [Reopen(1)]
    assert protocol.applied(1) == [Complete(1, (0,), 1)], "the dead one's contributions are those that count"
    assert protocol.joined(0) == [Start(2, (0,), (0,))]


def test_who_has_joined_a_step_that_turns_out_to_be_over_is_late():
    protocol = SyncProtocol(required=1, steps=2, expected=1)
    protocol.joined(0)
    protocol.left(0)
    assert protocol.joined(1) == [Join(1, 1, reopened=True)]
    assert protocol.applied(1) == [Complete(1, (0,), 1)]
    assert protocol.delivered(1, 1) == [Start(2, (1,), (1,))]
    assert protocol.dropped == 1


def test_who_joins_a_step_that_is_open_to_all_is_told_where_shards_are_through_with_it():
    """Several may join one, of which the first count; steps handed out ahead are joined one after the other."""
    protocol = SyncProtocol(required=2, steps=3, expected=2, ahead=2)
    protocol.joined(0)
    assert protocol.joined(1) == [Start(1, (0, 1), (0, 1)), Start(2, (0, 1), (0, 1), after=1)]
    assert protocol.left(0) == [Commit(1, (1,)), Commit(2, (1,))]
    assert protocol.joined(0) == []
    assert protocol.left(1) == [Reopen(1), Reopen(2), Join(1, 0, reopened=True)]
    assert protocol.joined(1) == [Join(1, 1, reopened=True)]
    assert protocol.delivered(1, 1) == [], "the other may still deliver"
    assert protocol.delivered(0, 1) == [
        Commit(1, (0, 1)), Join(2, 0, reopened=True, after=1), Join(2, 1, reopened=True, after=1)
    ]  # fmt: skip
    assert protocol.applied(1) == [Complete(1, (0, 1), 1)]
    assert protocol.left(0) == []
    assert protocol.delivered(1, 2) == [Commit(2, (1,))]
    assert protocol.applied(2) == [Complete(2, (1,), 2), Start(3, (1,), None)]


def test_only_a_member_whose_contributions_may_be_missing_reopens_a_step():
    protocol = SyncProtocol(required=1, steps=2, expected=1, ahead=2)
    assert protocol.joined(0) == [Start(1, (0,), (0,)), Start(2, (0,), (0,), after=1)]
    protocol.delivered(0, 1)
    assert protocol.left(0) == [Reopen(2)], "the shards hold all of the first"
    assert protocol.applied(1) == [Complete(1, (0,), 1)]
    assert protocol.joined(0) == [Join(2, 0, reopened=True)]


def test_an_undecided_step_is_taken_up_by_the_next_to_come():
    protocol = SyncProtocol(required=1, steps=1, expected=2)
    protocol.joined(0)
    assert protocol.joined(1) == [Start(1, (0, 1), None)]
    assert protocol.left(0) == protocol.left(1) == []
    assert protocol.joined(0) == [Join(1, 0)]
    assert protocol.delivered(0, 1) == [Commit(1, (0,))]


def test_a_death_decides_a_step_for_which_enough_is_there():
    protocol = SyncProtocol(required=3, steps=1, expected=4)
    for replica in range(4):
        protocol.joined(replica)
    protocol.delivered(0, 1)
    protocol.delivered(1, 1)
    assert protocol.left(2) == []  # the fourth may still deliver
    assert protocol.left(3) == [Commit(1, (0, 1))]


def test_nobody_is_left_while_a_step_is_undecided():
    protocol = SyncProtocol(required=1, steps=2, expected=2)
    assert protocol.stranded
    protocol.joined(0)
    protocol.joined(1)
    assert not protocol.stranded
    protocol.left(0)
    assert not protocol.stranded
    assert protocol.left(1) == []
    assert protocol.stranded
    assert protocol.joined(1) == [Join(1, 1)]
    assert protocol.delivered(1, 1) == [Commit(1, (1,))]
    protocol.left(1)
    assert not protocol.stranded, "the shards have what they need"
    protocol.applied(1)
    assert protocol.stranded


@pytest.mark.parametrize(("required", "expected"), [(0, 1), (3, 2)])
def test_a_number_that_cannot_be_required(required, expected):
    with pytest.raises(ValueError, match=str(required)):
        SyncProtocol(required, 1, expected=expected)


def test_steps_are_counted_from_where_training_resumes():
    protocol = SyncProtocol(1, steps=1, first_step=41)
    assert protocol.joined(0) == [Start(41, (0,), (0,))]
    protocol.delivered(0, 41)
    assert protocol.applied(41) == [Complete(41, (0,), 41)]


# -- asynchronous training -----------------------------------------------------------------------------


def test_replicas_have_steps_of_their_own():
    protocol = AsyncProtocol(steps=3)
    assert protocol.joined(0) == [Start(1, (0,), (0,))]
    assert protocol.joined(1) == [Start(2, (1,), (1,))]
    assert protocol.applied(2) == []
    assert protocol.delivered(1, 2) == [Complete(2, (1,), 1), Start(3, (1,), (1,))]
    assert protocol.delivered(1, 3) == []
    assert protocol.applied(3) == [Complete(3, (1,), 2)]
    assert not protocol.finished
    assert protocol.delivered(0, 1) == []
    assert protocol.applied(1) == [Complete(1, (0,), 3)]
    assert protocol.finished and protocol.dropped == 0


def test_a_step_of_the_dead_is_taken_up_by_another():
    protocol = AsyncProtocol(steps=1)
    assert protocol.joined(0) == [Start(1, (0,), (0,))]
    assert protocol.joined(1) == []
    assert protocol.left(0) == [Reopen(1), Join(1, 1, reopened=True)]
    assert protocol.applied(1) == []  # the shards have had all of it
    assert protocol.delivered(1, 1) == [Commit(1, (1,)), Complete(1, (1,), 1)]
    assert protocol.finished


def test_a_step_of_the_dead_is_over_if_shards_had_everything():
    protocol = AsyncProtocol(steps=1)
    protocol.joined(0)
    assert protocol.left(0) == [Reopen(1)]
    assert protocol.stranded and not protocol.finished
    assert protocol.applied(1) == [Complete(1, (0,), 1)]
    assert protocol.finished


def test_steps_of_the_dead_are_taken_up_one_after_the_other():
    """On the shards the second comes after the first: whoever took up the second only would wait for the first."""
    protocol = AsyncProtocol(steps=9, ahead=2)
    assert protocol.joined(0) == [Start(1, (0,), (0,)), Start(2, (0,), (0,), after=1)]
    protocol.hold(2)
    assert protocol.joined(1) == []
    assert protocol.joined(2) == []
    assert protocol.left(0) == [Reopen(1), Reopen(2), Join(1, 1, reopened=True)]
    assert protocol.delivered(1, 1) == [Commit(1, (1,)), Join(2, 1, reopened=True, after=1)]
    assert protocol.left(1) == [Reopen(2), Join(2, 2, reopened=True)]
    assert protocol.applied(1) == [Complete(1, (1,), 1)]
    assert protocol.delivered(2, 2) == [Commit(2, (2,))]
    assert protocol.applied(2) == [Complete(2, (2,), 2)]
    assert protocol.held


def test_steps_are_handed_out_ahead_while_nothing_is_to_be_decided():
    protocol = SyncProtocol(required=2, steps=3, expected=2, ahead=2)
    protocol.joined(0)
    assert protocol.joined(1) == [Start(1, (0, 1), (0, 1)), Start(2, (0, 1), (0, 1), after=1)]
    protocol.delivered(0, 1)
    protocol.delivered(1, 1)
    protocol.delivered(0, 2)
    assert protocol.applied(1) == [Complete(1, (0, 1), 1), Start(3, (0, 1), (0, 1), after=2)]
    protocol.hold()
    assert protocol.left(1) == [Commit(2, (0,)), Commit(3, (0,))]
    assert protocol.applied(2) == [Complete(2, (0,), 2)]
    protocol.delivered(0, 3)
    assert protocol.applied(3) == [Complete(3, (0,), 3)]
    assert protocol.finished


def test_no_step_is_handed_out_ahead_of_a_hold_or_with_backups():
    protocol = SyncProtocol(required=1, steps=9, expected=1, ahead=3)
    protocol.hold(2)
    assert [start.step for start in protocol.joined(0)] == [1, 2]
    protocol = SyncProtocol(required=1, steps=9, expected=2, ahead=3)
    protocol.joined(0)
    assert protocol.joined(1) == [Start(1, (0, 1), None)]


@pytest.mark.parametrize(
    "make", [lambda: SyncProtocol(required=1, steps=9, ahead=9), lambda: AsyncProtocol(9, ahead=9)]
)
@pytest.mark.parametrize("holds", [(2, 4), (4, 2), (None, 4), (4, None)])
def test_of_several_holds_the_sooner_holds_until_all_are_ended(make, holds):
    protocol = make()
    for position in holds:
        protocol.hold(position)
    until = min(position or 0 for position in holds)
    assert [start.step for start in protocol.joined(0)] == list(range(1, until + 1))
    assert [start.step for start in protocol.go_on(5)] == list(range(until + 1, 6))
    protocol.validate()


def test_a_fast_replica_waits_for_the_slowest():
    protocol = AsyncProtocol(steps=20, staleness=1)
    assert protocol.joined(0) == [Start(1, (0,), (0,))]
    assert protocol.joined(1) == [Start(2, (1,), (1,))]
    protocol.delivered(0, 1)
    assert protocol.applied(1) == [Complete(1, (0,), 1), Start(3, (0,), (0,))]
    protocol.delivered(0, 3)
    assert protocol.applied(3) == [Complete(3, (0,), 2)], "two steps ahead of the other"
    protocol.delivered(1, 2)
    assert protocol.applied(2) == [Complete(2, (1,), 3), Start(4, (0,), (0,)), Start(5, (1,), (1,))]
    protocol.delivered(0, 4)
    assert protocol.applied(4) == [Complete(4, (0,), 4)]
    assert protocol.left(1) == [Reopen(5), Join(5, 0, reopened=True)], "nobody waits for the dead"


def test_a_staleness_that_makes_no_sense():
    with pytest.raises(ValueError, match="staleness"):
        AsyncProtocol(1, staleness=-1)


# -- a simulated cluster -------------------------------------------------------------------------------

KEYS = ("early", "late")
"""What a replica sends to every shard, in two messages."""


@dataclass
class _ShardStep:
    receivers: list[tuple[int, int]]
    inbox: ReplicaInbox
    decided: bool
    after: int | None = None
    complete: bool = False
    handed_over: list[str] = field(default_factory=list)
    applied: bool = False
    sent_to: set[tuple[int, int]] = field(default_factory=set)


@dataclass
class _Task:
    """A replica's part of a step: which shards' parameters it has, and what it has yet to send."""

    step: int
    parameters: set[int] = field(default_factory=set)
    unsent: list[tuple[int, str]] = field(default_factory=list)


class Cluster:
    """Shards, replicas and a driver that exchange messages in any order that keeps each channel's own.

    It behaves as actors/replicas/driver.py and actors/devices/device_actor.py do. Shard 0 gets nothing from replicas.
    With `units` shards update each of two variables when all members have sent its gradient.
    """

    def __init__(self, protocol, replicas, shards, deaths, rng, restarts=1000, ahead=1, units=()):
        self.units = units
        self.protocol = protocol
        self.ahead = ahead
        self.rng = rng
        self.shards = range(shards)
        self.to_shard = {shard: [] for shard in self.shards}
        self.steps = {shard: {} for shard in self.shards}
        self.over = {shard: set() for shard in self.shards}
        self.tasks = {}
        self.queues = {}
        self.alive = set()
        self.coming = set(range(replicas))
        self.deaths = deaths
        self.restarts = restarts
        self.to_driver = []
        self.waiting_shards = {}
        self.completed, self.members, self.deliveries, self.died_in = [], {}, [], set()
        self.started = {}
        self.lives = {}
        self.reopened = set()
        self.served = {shard: [] for shard in self.shards}

    # -- the driver ------------------------------------------------------------------------------

    def execute(self, decisions):
        for decision in decisions:
            match decision:
                case Start(step, replicas, members, after):
                    assert len(set(replicas)) == len(replicas) > 0
                    assert members is None or set(members) <= set(replicas)
                    assert step not in self.started
                    self.started[step] = set(replicas)
                    self.waiting_shards[step] = set(self.shards)
                    assert after is None or after in self.started
                    self.tell("start", step, list(map(self.actor, replicas)), members, after)
                    for replica in replicas:
                        self.compute(step, replica)
                case Join(step, replica, reopened, after):
                    assert step not in [task.step for task in self.queues.get(replica, ())]
                    assert step in self.waiting_shards and reopened == (step in self.reopened)
                    self.started[step].add(replica)
                    self.tell("serve" if reopened else "join", step, self.actor(replica), after)
                    self.compute(step, replica)
                case Commit(step, members):
                    assert members and set(members) <= self.started[step]
                    self.tell("commit", step, members)
                case Reopen(step):
                    self.reopened.add(step)
                    self.tell("commit", step, ())
                case Complete(step, members, position):
                    assert not self.waiting_shards.get(step)
                    assert all(step in self.over[shard] for shard in self.shards)
                    self.completed.append(position)
                    self.members[step] = members

    def actor(self, replica):
        """A replica, and how many it has replaced."""
        return replica, self.lives.get(replica, 0)

    def tell(self, *message):
        for shard in self.shards:
            self.to_shard[shard].append(message)

    def compute(self, step, replica):
        assert replica not in self.tasks or replica not in self.alive or self.ahead > 1, "a busy replica got a step"
        if replica in self.alive:
            unsent = [(shard, key) for key in KEYS for shard in self.shards if shard or len(self.shards) == 1]
            self.queues.setdefault(replica, []).append(_Task(step, unsent=unsent))
            assert len(self.queues[replica]) <= self.ahead
            self.next_task(replica)
        elif ("left", replica) not in self.to_driver:
            self.to_driver.append(("left", replica))

    def next_task(self, replica):
        """Steps of one replica come one after the other."""
        if replica not in self.tasks and self.queues[replica]:
            self.tasks[replica] = self.queues[replica][0]
            for shard in self.shards:
                self.serve(shard)
                for step, current in self.steps[shard].items():
                    self.send_parameters(shard, step, current)

    def handle(self, kind, *event):
        match kind:
            case "left":
                self.tell("cancel", self.actor(event[0]))
                self.lives[event[0]] = self.lives.get(event[0], 0) + 1
                self.execute(self.protocol.left(*event))
                if self.restarts:
                    self.restarts -= 1
                    self.coming.add(event[0])
            case "delivered":
                replica, step, life = event
                if life == self.lives.get(replica, 0):  # else its end is known already
                    self.deliveries.append((replica, step, step in self.members))
                    self.execute(self.protocol.delivered(replica, step))
            case "applied":
                shard, step = event
                if step in self.waiting_shards:
                    self.waiting_shards[step].discard(shard)
                    if not self.waiting_shards[step]:
                        self.execute(self.protocol.applied(step))

    # -- shards ----------------------------------------------------------------------------------

    def on_shard(self, shard, kind, step, *rest):
        steps = self.steps[shard]
        if kind == "serve":
            self.served[shard].append((step, *rest))
            self.serve(shard)
            return
        if kind == "cancel":
            self.served[shard] = [each for each in self.served[shard] if each[1] != step]
            return
        if kind == "start":
            receivers, members, after = rest
            keys = KEYS if shard or len(self.shards) == 1 else ()
            after = None if after in self.over[shard] else after
            inbox = ReplicaInbox(keys, members, units=self.units if keys else ())
            steps[step] = _ShardStep(receivers, inbox, members is not None, after, not keys)
        current = steps.get(step)
        if current is None or current.applied:
            return
        match kind:
            case "join":
                current.receivers.append(rest[0])
            case "commit":
                current.decided = True
                if not rest[0]:
                    current.receivers.clear()
                self.hand_over(current, current.inbox.commit(rest[0]))
            case "contribution":
                replica, key = rest
                self.hand_over(current, current.inbox.add((replica,), [(key, self.actor(replica))]))
        self.go_on(shard, step, current)

    def go_on(self, shard, step, current):
        if current.after is None and not current.applied:
            self.send_parameters(shard, step, current)
            if current.decided and current.complete:
                current.applied = True
                self.to_driver.append(("applied", shard, step))
                self.end(shard, step)

    def send_parameters(self, shard, step, current):
        for actor in set(current.receivers) - current.sent_to if current.after is None else ():
            if self.give_parameters(shard, step, actor):
                current.sent_to.add(actor)

    def give_parameters(self, shard, step, actor):
        """Returns whether they have reached a replica: one that is there, and has come to that step."""
        task = self.tasks.get(actor[0])
        if actor != self.actor(actor[0]) or task is None or task.step != step:
            return False
        assert shard not in task.parameters, "they come twice"
        task.parameters.add(shard)
        return True

    def serve(self, shard):
        """Send what replicas of reopened steps need, where that is due."""
        for step, actor, after in list(self.served[shard]):
            if after in {None, *self.over[shard]} and self.give_parameters(shard, step, actor):
                self.served[shard].remove((step, actor, after))

    def end(self, shard, step):
        """Let the step begin that comes after this one."""
        assert step not in self.over[shard], "it is applied twice"
        self.over[shard].add(step)
        self.serve(shard)
        for later, current in self.steps[shard].items():
            if current.after == step:
                current.after = None
                self.go_on(shard, later, current)

    def hand_over(self, current, items):
        current.handed_over += [key for key, _ in items]
        assert all(values for _, values in items)
        assert len(set(current.handed_over)) == len(current.handed_over), "it is handed over twice"
        if items and not self.units:
            assert sorted(current.handed_over) == sorted(KEYS)
            assert len({tuple(values) for _, values in items}) == 1, "the edges come from different replicas"
        current.complete = current.complete or current.inbox.is_complete

    # -- replicas --------------------------------------------------------------------------------

    def send(self, replica):
        """The replica's next message; after the last one its report is on the way."""
        task = self.tasks[replica]
        shard, key = task.unsent.pop(0)
        self.on_shard(shard, "contribution", task.step, replica, key)
        if not task.unsent:
            del self.tasks[replica], self.queues[replica][0]
            self.next_task(replica)
            self.to_driver.append(("delivered", replica, task.step, self.lives.get(replica, 0)))

    def die(self, replica):
        self.deaths -= 1
        self.alive.discard(replica)
        self.tasks.pop(replica, None)
        if tasks := self.queues.pop(replica, []):
            self.died_in.update(task.step for task in tasks)
            self.to_driver.append(("left", replica))

    # -- time ------------------------------------------------------------------------------------

    def events(self):
        """Everything that may happen next."""
        for shard in self.shards:
            if self.to_shard[shard]:
                yield lambda shard=shard: self.on_shard(shard, *self.to_shard[shard].pop(0))
        for replica, task in self.tasks.items():
            if len(task.parameters) == len(self.shards):
                yield lambda replica=replica: self.send(replica)
        for i in range(len(self.to_driver)):
            yield lambda i=i: self.handle(*self.to_driver.pop(i))
        for replica in self.coming - self.alive:
            yield lambda replica=replica: self.arrive(replica)
        if self.deaths:
            for replica in self.alive:
                yield lambda replica=replica: self.die(replica)

    def arrive(self, replica):
        if any(event[:2] == ("left", replica) for event in self.to_driver):
            return  # its predecessor's end is not known yet
        self.coming.discard(replica)
        self.alive.add(replica)
        self.execute(self.protocol.joined(replica))

    def is_over(self):
        if self.protocol.stranded and not self.coming:
            assert not self.alive, "somebody lives"
            return True
        return self.protocol.finished

    def run(self):
        for _ in range(20_000):
            if self.is_over():
                assert all(self.over[shard].issuperset(self.members) for shard in self.shards)
                return
            events = list(self.events())
            assert events, f"deadlock: {vars(self.protocol)}"
            self.rng.choice(events)()
            self.protocol.validate()
        raise AssertionError("it does not end")


@settings(max_examples=300, deadline=None)
@given(
    st.integers(1, 5),
    st.integers(0, 4),
    st.integers(1, 6),
    st.integers(1, 3),
    st.integers(0, 6),
    st.integers(1, 3),
    st.sampled_from([(), [frozenset([key]) for key in KEYS]]),
    st.integers(0),
)
def test_synchronous_training_never_stops_short(replicas, backups, steps, shards, deaths, ahead, units, seed):
    required = max(1, replicas - backups)
    protocol = SyncProtocol(required, steps, expected=replicas, ahead=ahead, spares=backups > 0)
    cluster = Cluster(protocol, replicas, shards, deaths, random.Random(seed), ahead=ahead, units=units)
    cluster.run()
    assert cluster.completed == list(range(1, steps + 1))
    for members in cluster.members.values():
        assert 1 <= len(members) <= required
        assert list(members) == sorted(set(members))
        if not deaths:
            assert len(members) == required
    counted = {(replica, step) for step, members in cluster.members.items() for replica in members}
    late = [each for each in cluster.deliveries if each[2] or each[:2] not in counted]
    assert protocol.dropped == len(late)
    if not deaths:
        assert protocol.live == replicas


@settings(max_examples=200, deadline=None)
@given(
    st.integers(1, 5),
    st.integers(1, 12),
    st.integers(1, 3),
    st.integers(0, 6),
    st.integers(1, 3),
    st.none() | st.integers(0, 2),
    st.integers(0),
)
def test_asynchronous_training_never_stops_short(replicas, steps, shards, deaths, ahead, staleness, seed):
    protocol = AsyncProtocol(steps, ahead=ahead, staleness=staleness)
    cluster = Cluster(protocol, replicas, shards, deaths, random.Random(seed), ahead=ahead)
    cluster.run()
    assert cluster.completed == list(range(1, steps + 1))
    assert all(len(members) == 1 for members in cluster.members.values())
    assert protocol.dropped == 0


@settings(max_examples=300, deadline=None)
@given(st.integers(1, 4), st.integers(0, 4), st.integers(1, 2), st.integers(1, 8), st.integers(0, 2), st.integers(0))
def test_training_stops_only_when_nobody_is_left(replicas, required, shards, deaths, restarts, seed):
    """Without enough replacements it ends, or is seen to be at its end; with somebody left it goes on."""
    steps = 4
    protocol = SyncProtocol(min(required, replicas), steps, expected=replicas) if required else AsyncProtocol(steps)
    cluster = Cluster(protocol, replicas, shards, deaths, random.Random(seed), restarts)
    cluster.run()
    assert protocol.finished or protocol.stranded
    if deaths < replicas:
        assert cluster.completed == list(range(1, steps + 1))


# -- elastic training ----------------------------------------------------------------------------------


class ElasticCluster(Cluster):
    """A cluster in which no step begins while somebody comes or goes, until all that is open has ended."""

    def __init__(self, protocol, replicas, backups, **others):
        super().__init__(protocol, replicas, **others)
        self.backups = backups
        self.newcomers, self.there, self.sizes = set(), set(), []
        self.paused = True
        protocol.pause()

    def arrive(self, replica):
        if not any(event[:2] == ("left", replica) for event in self.to_driver):
            self.coming.discard(replica)
            self.alive.add(replica)
            self.newcomers.add(replica)
            self.pause()

    def pause(self):
        self.paused = True
        self.protocol.pause()

    def handle(self, kind, *event):
        if kind == "left":
            self.there.discard(event[0])
            self.newcomers.discard(event[0])
            self.pause()
        super().handle(kind, *event)

    def die(self, replica):
        idle = not self.queues.get(replica)
        super().die(replica)
        if idle:
            self.to_driver.append(("left", replica))  # membership watches those that compute nothing, too

    def settle(self):
        self.paused = False
        for replica in sorted(self.newcomers):
            assert self.protocol.joined(replica) == [], "a step has begun in a pause"
        self.there |= self.newcomers
        self.newcomers.clear()
        self.sizes.append(len(self.there))
        self.execute(self.protocol.resume(max(1, len(self.there) - self.backups)))

    def events(self):
        yield from super().events()
        if self.paused and self.protocol.idle and self.there | self.newcomers:
            yield self.settle

    def is_over(self):
        return self.protocol.finished


@settings(max_examples=300, deadline=None)
@given(
    st.booleans(), st.integers(1, 5), st.integers(0, 3), st.integers(1, 12), st.integers(0, 8), st.integers(1, 3),
    st.integers(0),
)  # fmt: skip
def test_elastic_training_never_stops_short(collective, replicas, backups, steps, deaths, ahead, seed):
    protocol = SyncProtocol(1, steps, ahead=ahead) if collective else AsyncProtocol(steps, ahead=ahead)
    rng = random.Random(seed)
    cluster = ElasticCluster(protocol, replicas, backups, shards=2, deaths=deaths, rng=rng, ahead=ahead)
    cluster.run()
    assert cluster.completed == list(range(1, steps + 1))
    assert max(map(len, cluster.members.values())) <= max(cluster.sizes)
    if not collective:
        assert all(len(members) == 1 for members in cluster.members.values())


def test_what_open_steps_need_does_not_change_before_they_have_ended():
    protocol = SyncProtocol(1, 4)
    protocol.pause()
    assert protocol.joined(0) == protocol.joined(1) == []
    assert protocol.resume(2) == [Start(1, (0, 1), (0, 1))]
    protocol.pause()
    assert not protocol.idle
    protocol.delivered(0, 1)
    protocol.delivered(1, 1)
    assert protocol.applied(1) == [Complete(1, (0, 1), 1)]
    assert protocol.idle and protocol.joined(2) == []
    assert protocol.resume(3) == [Start(2, (0, 1, 2), (0, 1, 2))]


def test_a_step_that_has_lost_everybody_in_a_pause_waits_for_its_end():
    protocol = SyncProtocol(1, 2)
    protocol.joined(0)
    protocol.pause()
    assert protocol.left(0) == [Reopen(1)]
    assert protocol.idle and protocol.joined(1) == []
    assert protocol.resume(1) == [Join(1, 1, reopened=True)]
    assert not protocol.idle


def test_an_undecided_step_that_has_lost_everybody_in_a_pause_waits_too():
    protocol = SyncProtocol(required=1, steps=2, expected=2)
    protocol.joined(0)
    assert protocol.joined(1) == [Start(1, (0, 1), None)]
    protocol.pause()
    assert protocol.left(0) == protocol.left(1) == []
    assert protocol.idle and protocol.joined(1) == []
    assert protocol.resume(1) == [Join(1, 1)], "every shard still has it open"
