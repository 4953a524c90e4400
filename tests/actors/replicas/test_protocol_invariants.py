"""The invariants of the protocols of replicated training: they hold after every event, and `validate` checks them."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tfray.actors.replicas.replica_protocol import AsyncProtocol, Commit, Complete, Join, Reopen, Start, SyncProtocol

REPLICAS = st.integers(0, 3)


class Training(RuleBasedStateMachine):
    """A driver, its replicas and its shards, in which anything may come next."""

    @initialize(collective=st.booleans(), ahead=st.integers(1, 3), required=st.integers(1, 3), data=st.data())
    def begin(self, collective, ahead, required, data):
        if collective:
            expected, spares = data.draw(st.integers(required, 4)), data.draw(st.booleans())
            self.protocol = SyncProtocol(required, 30, expected=expected, ahead=ahead, spares=spares)
        else:
            self.protocol = AsyncProtocol(30, ahead=ahead, staleness=data.draw(st.none() | st.integers(0, 2)))
        self.there, self.paused = set(), False
        self.computing = {}
        self.members, self.applied, self.over = {}, set(), []

    def execute(self, decisions):
        for decision in decisions:
            match decision:
                case Start(step, replicas, members):
                    self.members[step] = members
                    for replica in replicas:
                        self.computing.setdefault(replica, []).append(step)
                case Join(step, replica):
                    self.computing.setdefault(replica, []).append(step)
                case Commit(step, members):
                    self.members[step] = members
                case Reopen(step):
                    self.members[step] = None
                case Complete(step, _, position):
                    self.over.append(step)
                    assert position == len(self.over) == len(set(self.over))

    @rule(replica=REPLICAS)
    def comes(self, replica):
        if replica not in self.there:
            self.there.add(replica)
            self.execute(self.protocol.joined(replica))

    @rule(replica=REPLICAS)
    def goes(self, replica):
        if replica in self.there:
            self.there.discard(replica)
            self.computing.pop(replica, None)
            self.execute(self.protocol.left(replica))

    @precondition(lambda self: any(self.computing.values()))
    @rule(data=st.data())
    def delivers(self, data):
        replica = data.draw(st.sampled_from(sorted(each for each, steps in self.computing.items() if steps)))
        self.execute(self.protocol.delivered(replica, self.computing[replica].pop(0)))

    def ready(self):
        """Steps for which the shards have everything, the earlier ones included."""
        for step in sorted(self.members):
            members = self.members[step]
            if step in self.applied:
                continue
            if members is None or any(step in self.computing.get(replica, ()) for replica in members):
                return
            yield step

    @precondition(lambda self: any(self.ready()))
    @rule()
    def is_applied(self):
        step = next(self.ready())
        self.applied.add(step)
        self.execute(self.protocol.applied(step))

    @rule(more=st.none() | st.integers(0, 3))
    def holds(self, more):
        self.protocol.hold(None if more is None else len(self.over) + more)

    @rule()
    def goes_on(self):
        self.execute(self.protocol.go_on())

    @rule()
    def pauses(self):
        self.protocol.pause()
        self.paused = True

    @precondition(lambda self: self.paused and self.protocol.idle and self.there)
    @rule(data=st.data())
    def resumes(self, data):
        self.paused = False
        self.execute(self.protocol.resume(data.draw(st.integers(1, len(self.there)))))

    @invariant()
    def holds_what_it_promises(self):
        if hasattr(self, "protocol"):
            self.protocol.validate()


Training.TestCase.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
test_invariants_hold_after_every_event = Training.TestCase


def synchronous():
    """One step of three replicas, of which two count, is open; one has delivered."""
    protocol = SyncProtocol(required=2, steps=5, expected=3, ahead=2)
    for replica in range(3):
        protocol.joined(replica)
    protocol.delivered(1, 1)
    protocol.validate()
    return protocol


def asynchronous():
    """Two replicas with two steps each; the fifth step is lost."""
    protocol = AsyncProtocol(steps=5, ahead=2, staleness=3)
    for replica in range(3):
        protocol.joined(replica)
    protocol.hold(5)
    protocol.left(2)
    protocol.validate()
    return protocol


def broken(protocol, path, value):
    """Set what `path` names within the protocol."""
    *owners, name = path
    found = protocol
    for owner in owners:
        found = getattr(found, owner) if isinstance(owner, str) else found[owner]
    if isinstance(name, str):
        setattr(found, name, value)
    else:
        found[name] = value
    return protocol


@pytest.mark.parametrize(
    ("make", "path", "value", "said"),
    [
        (synchronous, ("_completed",), 1, "1 steps have ended, and the first open one is 1"),
        (synchronous, ("_end",), 1, "step 1 has begun, and the last is 0"),
        (synchronous, ("_ahead",), 0, "1 steps are open, of at most 0"),
        (synchronous, ("_open", 0, "number"), 2, "step 2 is open in the place of 1"),
        (synchronous, ("_open", 0, "applied"), True, "step 1 has been applied, and nobody counts"),
        (synchronous, ("_open", 0, "members"), (0, 1, 2), r"members \(0, 1, 2\), of 2"),
        (synchronous, ("_open", 0, "members"), (1, 1), "a member twice"),
        (synchronous, ("_open", 0, "members"), (3,), "take part in it"),
        (synchronous, ("_open", 0, "computing"), {0}, "somebody is busy with step 1"),
        (synchronous, ("_open", 0, "computing"), {0, 1, 2}, "1 computes step 1, and is not busy"),
        (synchronous, ("_open", 0, "delivered"), [0], "a replica has delivered step 1 too early"),
        (synchronous, ("_open", 0, "delivered"), [1, 1], "delivered step 1 twice"),
        (synchronous, ("_busy", 0), set(), "0 computes step 1, and is not busy"),
        (asynchronous, ("_completed",), 1, "1 steps have ended, but 0 are not open any more"),
        (asynchronous, ("_end",), 2, "and the last is 1"),
        (asynchronous, ("_owned", 1, "owner"), 7, "step 1 waits for replica 7, which is gone"),
        (asynchronous, ("_owned", 4, "owner"), 0, "step 4 does not come behind one of its owner's"),
        (asynchronous, ("_ahead",), 1, "replica 0 has 2 steps, of at most 1"),
        (asynchronous, ("_clock", 0), 9, "replica 0 is 11 steps ahead"),
        (asynchronous, ("_lost", 5, "is_reopened"), False, "step 5 is lost, but nobody needs to take it up"),
    ],
    ids=lambda value: None if callable(value) else str(value),
)
def test_what_breaks_an_invariant_is_named(make, path, value, said):
    protocol = broken(make(), path, value)
    with pytest.raises(AssertionError, match=said):
        protocol.validate()
