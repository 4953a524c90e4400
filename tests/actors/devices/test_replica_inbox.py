"""What a parameter shard has received from the replicas of one step."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tfray.actors.devices.replica_inbox import ReplicaInbox
from tfray.placement.contributions import verdict_among


def test_nothing_is_handed_over_before_the_members_are_known():
    inbox = ReplicaInbox(["a", "b"])
    assert inbox.add((1,), [("a", 10), ("b", 11)]) == []
    assert inbox.add((0,), [("a", 0), ("b", 1)]) == []
    assert inbox.add((2,), [("a", 20), ("b", 21)]) == []
    assert inbox.commit([1, 0]) == [("a", [10, 0]), ("b", [11, 1])]
    assert inbox.commit([1, 0]) == []


def test_members_known_from_the_start():
    inbox = ReplicaInbox(["a"], [0, 1])
    assert inbox.add((2,), [("a", 20)]) == []
    assert inbox.add((1,), [("a", 10)]) == []
    assert inbox.add((0,), [("a", 0)]) == [("a", [0, 10])]
    assert inbox.add((0,), [("a", 5)]) == []


def test_a_replica_counts_with_all_or_with_nothing():
    """One that dies between its indices and its rows must not leave the indices behind."""
    inbox = ReplicaInbox(["indices", "rows"], [0, 1])
    inbox.add((0,), [("indices", [3])])
    inbox.add((1,), [("indices", [7])])
    assert inbox.add((0,), [("rows", [[0.5]])]) == []
    assert inbox.commit([0]) == [("indices", [[3]]), ("rows", [[[0.5]]])]


def test_a_replacement_sends_everything_again():
    inbox = ReplicaInbox(["a", "b"])
    inbox.add((0,), [("a", "of the dead")])
    inbox.add((0,), [("a", 1), ("b", 2)])
    assert inbox.commit([0]) == [("a", [1]), ("b", [2])]


def test_a_shard_to_which_nothing_comes():
    assert ReplicaInbox([], [0]).add((0,), []) == []
    assert ReplicaInbox([]).commit([0]) == []


@given(st.data())
def test_any_order_of_arrivals_gives_the_same(data):
    keys, replicas = ["a", "b", "c"], range(4)
    members = data.draw(st.permutations(replicas).map(lambda order: order[:2]))
    events = [("add", replica, key) for replica in replicas for key in keys] + [("commit",)]
    inbox = ReplicaInbox(keys, members if data.draw(st.booleans()) else None)
    handed_over = []
    for event in data.draw(st.permutations(events)):
        if event[0] == "commit":
            handed_over += inbox.commit(members)
        else:
            handed_over += inbox.add((event[1],), [(event[2], (event[1], event[2]))])
    assert handed_over == [(key, [(member, key) for member in members]) for key in keys]


def test_who_says_that_it_does_not_count_is_left_out():
    inbox = ReplicaInbox(["a", "v"], [0, 1, 2], "v")
    inbox.add((0,), [("a", 0), ("v", [True, True])])
    inbox.add((1,), [("a", 10), ("v", [True, False])])
    assert inbox.add((2,), [("a", 20), ("v", [True, True])]) == [("a", [0, 20]), ("v", [[True, True], [True, True]])]
    assert not inbox.is_void


def test_when_nobody_counts_the_step_is_void():
    inbox = ReplicaInbox(["a", "v"], verdict="v")
    inbox.add((0,), [("a", 0), ("v", [False])])
    inbox.add((1,), [("a", 1), ("v", [False])])
    assert not inbox.is_void
    assert inbox.commit([1, 0]) == [] and inbox.is_void
    assert inbox.add((2,), [("a", 2), ("v", [True])]) == []


def test_the_edge_of_a_verdict_is_known_by_its_name():
    keys = ["_skip_unless_finite_grad:0 a -> b", "_skip_unless_finite:0 a -> b", "x:0 a -> b"]
    assert verdict_among(keys) == keys[1]
    assert verdict_among(keys[:1]) is None


def test_without_members_it_is_open_to_others_and_what_came_is_forgotten():
    inbox = ReplicaInbox(["indices", "rows"], [0])
    inbox.add((0,), [("indices", [3])])
    assert inbox.commit([]) == []
    inbox.add((0,), [("rows", [[0.5]])])  # by one of the same number
    inbox.add((0,), [("indices", [7])])
    assert inbox.commit([0]) == [("indices", [[7]]), ("rows", [[[0.5]]])]
    assert inbox.commit([]) == inbox.commit([1]) == [], "it has been handed over"


def test_what_several_replicas_contribute_together_counts_for_all_of_them():
    inbox = ReplicaInbox(["a"], [0, 1, 2])
    assert inbox.add((1, 2), [("a", 12)]) == []
    ((key, contributions),) = inbox.add((0,), [("a", 0)])
    assert (key, contributions, contributions.replicas) == ("a", [0, 12], 3)


def test_it_counts_as_a_whole_if_one_of_them_is_a_member():
    inbox = ReplicaInbox(["a"])
    inbox.add((0, 1), [("a", 1)])
    inbox.add((2, 3), [("a", 23)])
    inbox.add((4, 5), [("a", 45)])
    ((_, contributions),) = inbox.commit([0, 1, 2])
    assert contributions == [1, 23] and contributions.replicas == 4


@given(st.permutations([((0, 1), 1), ((1,), 10), ((0,), 20), ((2,), 2)]))
def test_who_contributes_alone_and_together_counts_once(events):
    """It gave up waiting for the other, and then it was there after all."""
    inbox = ReplicaInbox(["a"], [0, 1, 2])
    handed_over = [given for replicas, value in events for given in inbox.add(replicas, [("a", value)])]
    ((_, contributions),) = handed_over
    assert contributions in ([1, 2], [20, 10, 2]) and contributions.replicas == 3


def test_who_has_not_sent_everything_together_counts_alone():
    inbox = ReplicaInbox(["a", "b"], [0, 1])
    inbox.add((0, 1), [("a", 1)])
    inbox.add((0,), [("a", 0), ("b", 0)])
    handed_over = inbox.add((1,), [("a", 10), ("b", 10)])
    assert handed_over == [("a", [0, 10]), ("b", [0, 10])]


UNITS = [frozenset(["a"]), frozenset(["indices", "rows"])]


def test_units_are_handed_over_one_by_one():
    inbox = ReplicaInbox(["a", "indices", "rows"], [0, 1], units=UNITS)
    assert inbox.add((0,), [("a", 1), ("rows", 2)]) == []
    assert inbox.add((1,), [("a", 10)]) == [("a", [1, 10])]
    assert inbox.has_begun and not inbox.is_complete
    assert inbox.add((1,), [("rows", 20), ("indices", 30)]) == []
    assert inbox.add((0,), [("indices", 3)]) == [("indices", [3, 30]), ("rows", [2, 20])]
    assert inbox.is_complete


def test_a_unit_that_a_member_has_not_completed_does_without_it():
    inbox = ReplicaInbox(["a", "indices", "rows"], [0, 1], units=UNITS)
    inbox.add((0,), [("a", 1), ("indices", 3), ("rows", 2)])
    inbox.add((1,), [("indices", 30), ("a", 10)])
    ((first, _), (second, values)) = inbox.commit([0])
    assert (first, second, values, values.replicas) == ("indices", "rows", [2], 1)


def test_who_takes_up_a_step_completes_the_units_that_are_left():
    inbox = ReplicaInbox(["a", "indices", "rows"], [0], units=UNITS)
    assert inbox.add((0,), [("a", 1), ("indices", 3)]) == [("a", [1])]
    assert inbox.commit([]) == []
    assert inbox.add((1,), [("a", 100), ("indices", 7), ("rows", 8)]) == []
    assert inbox.commit([1]) == [("indices", [7]), ("rows", [8])]


def test_with_a_verdict_all_is_one_unit():
    inbox = ReplicaInbox(["a", "b", "v"], [0], "v", [frozenset(["a"]), frozenset(["b", "v"])])
    assert inbox.add((0,), [("a", 1), ("b", 2)]) == []
    assert len(inbox.add((0,), [("v", [True])])) == 3
