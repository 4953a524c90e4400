"""Who takes part in replicated training, on workers that exist in the test only: they do what it says, in its time."""

from __future__ import annotations

import itertools

import pytest

from tfray.actors.replicas.membership import (
    Elasticity,
    ElasticMembership,
    FaultPolicy,
    Membership,
    Progress,
    SteadyMembership,
)
from tfray.actors.replicas.replica_protocol import Commit, Join, Reopen, Start, SyncProtocol
from tfray.errors import InvalidArgumentError, UnavailableError


class Workers:
    """Workers, what was asked of them, and calls that end when the test says so."""

    def __init__(self, count, there):
        self.devices = [f"/job:worker/task:{i}" for i in range(count)]
        self.there = set(there)
        self.asked, self.said, self.shares = [], [], []
        self.failures = {}
        self._numbers = itertools.count()

    def _call(self, *what):
        self.asked.append(what)
        return (*what, next(self._numbers))

    def is_there(self, replica):
        return replica in self.there

    def start(self, replica):
        return self._call("start", replica)

    def admit(self, replica, call):
        self.check(replica, call)
        self.there.add(replica)
        return [self._call("meet", replica)]

    def give_up(self, call):
        self.asked.append(("give up", call[1]))

    def forget(self, replica):
        self.there.discard(replica)
        self.asked.append(("forget", replica))

    def register(self, replica):
        assert replica in self.there
        return self._call("register", replica)

    def open_input(self, replica, share):
        self.shares.append((replica, share.index, share.replicas, share.step))
        return self._call("open", replica)

    def check(self, replica, call):
        if call[:2] in self.failures:
            raise self.failures.pop(call[:2])

    def say(self, text):
        self.said.append(text)


class Run:
    """A run of a protocol on workers, of which a test plays the driver."""

    def __init__(self, count=2, there=(0, 1), elasticity=None, steady=False, **faults):
        self.now, self.calls, self.told = 100.0, {}, []
        self.workers = Workers(count, there)
        self.protocol = SyncProtocol(1 if elasticity else count, 9, expected=1 if elasticity else count)
        others = (
            self.workers,
            self.protocol,
            Progress(0, 0),
            FaultPolicy(told=lambda event: self.told.append((event.kind, event.replica)), **faults),
            self.calls,
            lambda: self.now,
        )
        kind = SteadyMembership if steady else Membership
        self.membership = kind(*others) if elasticity is None else ElasticMembership(elasticity, *others)
        self.membership.begin()

    def end(self, kind, replica):
        """Let a call end; returns what is decided by that."""
        call = next(call for call in self.calls if call[:2] == (kind, replica))
        self.now += 0.001
        return self.calls.pop(call)(call)

    def get_ready(self, replica):
        """Let a worker that is there do all that it was asked for."""
        decisions = []
        while call := next((call for call in self.calls if call[1] == replica), None):
            decisions += self.end(*call[:2])
        return decisions


def test_replicas_join_when_they_have_their_plan_and_their_share_of_the_input():
    run = Run()
    assert run.workers.shares == [(0, 0, 2, 1), (1, 1, 2, 1)]
    assert run.end("register", 0) == run.end("open", 0) == [] and run.protocol.live == 1
    assert run.end("open", 1) == []
    assert run.end("register", 1) == [Start(1, (0, 1), (0, 1))]


def test_one_that_is_late_with_another_plan_joins_again_and_is_not_replaced():
    run = Run()
    run.get_ready(0), run.get_ready(1)
    assert run.membership.begin_again(0) == [Commit(1, (1,))] and run.protocol.live == 1
    assert [what for what in run.workers.asked if what[0] in ("forget", "start")] == []
    assert run.get_ready(0) == [] and run.protocol.live == 2


def test_one_that_is_late_for_good_with_another_plan_is_given_up():
    run = Run(patience_s=30.0)
    run.get_ready(0), run.get_ready(1)
    run.membership.begin_again(0)
    run.now += 31.0
    assert run.membership.overdue() == []
    assert run.told == [("replaced", 0)] and run.workers.asked[-2:] == [("forget", 0), ("start", 0)]


def test_an_elastic_run_shares_its_input_without_one_that_is_late_with_another_plan():
    run = Run(elasticity=Elasticity(1))
    run.get_ready(0), run.get_ready(1)
    run.membership.settle()
    run.get_ready(0), run.get_ready(1)
    run.protocol.hold()
    decisions = run.membership.begin_again(0)
    assert decisions == [Commit(1, (1,))] and run.protocol.live == 1
    run.protocol.delivered(1, 1), run.protocol.applied(1)
    run.membership.settle()
    assert run.workers.shares[-1] == (1, 0, 1, 1)


def test_one_that_dies_is_replaced_and_its_share_opened_again():
    run = Run(max_restarts=1)
    run.get_ready(0), run.get_ready(1)
    assert run.membership.left(0) == [Commit(1, (1,))] and run.told == [("replaced", 0)]
    assert run.workers.asked[-2:] == [("forget", 0), ("start", 0)]
    assert run.end("start", 0) == []
    assert run.protocol.live == 1
    assert run.get_ready(0) == [] and run.protocol.live == 2
    assert run.workers.shares[-1] == (0, 0, 2, 1)
    run.membership.left(0)
    assert run.told[-1] == ("lost", 0), "no more restarts are left"


def test_one_that_dies_before_it_was_there_is_replaced():
    run = Run(count=1, there=(0,), max_restarts=2)
    run.get_ready(0)
    assert run.membership.left(0) == [Reopen(1)]
    run.workers.failures["start", 0] = UnavailableError("it died")
    assert run.end("start", 0) == []
    assert run.told == [("replaced", 0), ("replaced", 0)]
    run.end("start", 0)
    assert run.get_ready(0) == [Join(1, 0, reopened=True)]


def test_what_a_worker_cannot_compile_names_the_replica():
    run = Run()
    run.workers.failures["register", 1] = InvalidArgumentError("no such operation")
    run.end("register", 1)
    with pytest.raises(InvalidArgumentError, match=r"replica 1 \(/job:worker/task:1\) cannot start: no such operation"):
        run.end("open", 1)


def test_a_worker_that_does_not_get_ready_is_given_up_and_its_late_answers_do_nothing():
    run = Run(patience_s=10.0)
    run.get_ready(0)
    late = [call for call in run.calls if call[1] == 1]
    run.now += 11
    assert run.membership.overdue() == [Start(1, (0,), None)]
    assert "replica 1 (/job:worker/task:1) is given up" in run.workers.said[0]
    for call in late:
        assert run.calls.pop(call)(call) == []
    assert run.protocol.live == 1


def test_too_few_for_too_long_end_the_run():
    run = Run(count=1, there=(0,), max_restarts=1, patience_s=10.0)
    run.get_ready(0)
    run.membership.left(0)
    assert run.membership.check()
    run.now += 11
    with pytest.raises(UnavailableError, match=r"no worker is left in step 0 .* \(1 of 1 restarts used\)"):
        run.membership.check()
    run.membership.end()
    assert run.workers.asked[-1] == ("give up", 0)
    assert run.end("start", 0) == [], "it has been given up"


def test_the_end_of_the_input_ends_the_run():
    run = Run(count=1, there=(0,))
    run.get_ready(0)
    run.membership.exhausted(0, 3)
    assert run.told == [("ended", 0)] and not run.membership.check()


def test_where_replicas_hold_the_variables_a_worker_that_is_gone_ends_the_run():
    run = Run(steady=True, patience_s=10.0)
    run.get_ready(0)
    with pytest.raises(UnavailableError, match=r"the worker of replica 0 .* died, or does not answer") as raised:
        run.membership.left(0)
    assert raised.value.device == run.membership.devices[0]
    run.now += 11
    with pytest.raises(UnavailableError, match="the worker of replica 1"):
        run.membership.overdue()
    assert run.told == []


def test_where_replicas_hold_the_variables_the_first_input_that_ends_counts():
    run = Run(steady=True)
    run.get_ready(0), run.get_ready(1)
    assert run.membership.ends_before is None
    assert run.membership.exhausted(1, 5) == run.membership.exhausted(0, 4) == run.membership.exhausted(0, 6) == []
    assert run.membership.ends_before == 4 and run.membership.check()
    assert run.told == [("ended", 1), ("ended", 0), ("ended", 0)]


@pytest.mark.parametrize("shares_input", [False, True])
def test_the_end_of_a_shared_input_ends_the_wait_for_workers(shares_input):
    """Otherwise the one that has died still has a share of its own to read."""
    run = Run(shares_input=shares_input)
    run.get_ready(0), run.get_ready(1)
    run.membership.left(1)
    run.membership.exhausted(0, 2)
    assert (("give up", 1) in run.workers.asked) is shares_input
    assert run.membership.check() is not shares_input


def test_a_worker_that_dies_after_the_end_of_a_shared_input_is_not_replaced():
    run = Run(shares_input=True)
    run.get_ready(0), run.get_ready(1)
    run.membership.exhausted(0, 2)
    run.membership.left(1)
    assert run.told == [("ended", 0), ("lost", 1)] and run.membership.check() is False


def test_an_elastic_run_shares_the_input_anew_when_somebody_comes():
    sizes = []
    run = Run(count=3, there=(0, 2), elasticity=Elasticity(minimum=1, backups=0, resized=sizes.append))
    assert ("start", 1) in run.workers.asked
    run.get_ready(0), run.get_ready(2)
    run.membership.settle()
    assert run.workers.shares == [(0, 0, 2, 1), (2, 1, 2, 1)]
    assert run.end("open", 0) == []
    assert run.end("open", 2) == [Start(1, (0, 2), (0, 2))] and sizes == [2]
    run.end("start", 1), run.get_ready(1)
    run.membership.settle()
    assert len(run.workers.shares) == 2, "a step is open"
    run.protocol.delivered(0, 1), run.protocol.delivered(2, 1)
    run.protocol.applied(1)
    run.membership.settle()
    assert run.workers.shares[2:] == [(0, 0, 3, 1), (1, 1, 3, 1), (2, 2, 3, 1)]
    for replica in (0, 1):
        assert run.end("open", replica) == []
    assert run.end("open", 2) == [Start(2, (0, 1, 2), (0, 1, 2))] and sizes == [2, 3]
