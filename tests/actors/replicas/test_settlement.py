"""What holds after a parameter shard or its standby is gone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfray.actors.replicas.settlement import settlement

A, B = frozenset({"a", "a'"}), frozenset({"b", "b'"})
DEVICES = sorted(A | B)


@pytest.mark.parametrize(
    ("applied", "gone", "done", "given_up"),
    [
        ([], "a", [], set()),
        ([{"a'", "b", "b'"}], "a", [True], set()),
        ([set()], "a", [False], set()),
        ([{"b"}], "a", [False], {"b"}),
        ([{"a'", "b"}], "a", [True], {"b'"}),
        ([{"a'", "b", "b'"}, {"b"}], "a", [True, False], {"b"}),
    ],
)
def test_a_step_is_done_if_one_of_each_pair_has_applied_it(applied, gone, done, given_up):
    found = settlement([A, B], applied, {gone})
    assert found is not None
    assert list(found.done) == done
    assert found.gone == {gone} | given_up


@pytest.mark.parametrize(
    ("applied", "gone"),
    [
        ([], {"a", "a'"}),
        ([{"a'"}], {"a", "b"}),  # only one is left of each pair, and they differ
        ([{"a'"}, {"b"}], {"a", "b'"}),
    ],
)
def test_none_if_a_part_of_the_variables_would_be_ahead(applied, gone):
    assert settlement([A, B], applied, gone) is None


def test_a_shard_alone_is_a_pair_of_one():
    assert settlement([frozenset({"a"}), B], [{"b"}], {"b'"}) is None
    found = settlement([frozenset({"a"}), B], [{"a", "b"}], {"b'"})
    assert found is not None and found.done == (True,)


SUBSETS = st.frozensets(st.sampled_from(DEVICES))


@given(st.lists(SUBSETS, max_size=5), SUBSETS)
def test_all_who_are_left_agree_on_every_step(applied, gone):
    found = settlement([A, B], [devices - gone for devices in applied], gone)
    if found is None:
        return
    left = {*DEVICES} - found.gone
    assert found.gone >= gone
    assert all(pair & left for pair in (A, B))
    for devices, is_done in zip(applied, found.done, strict=True):
        assert all((device in devices) == is_done for device in left)


@given(st.lists(st.booleans(), max_size=5), st.data())
def test_whoever_lacks_updates_is_given_up_if_the_other_of_each_pair_lacks_none(done, data):
    behind = {min(pair) for pair in (A, B) if data.draw(st.booleans())}
    applied = [{device for device in DEVICES if is_done and device not in behind} for is_done in done]
    applied = [
        devices | data.draw(st.frozensets(st.sampled_from(sorted(behind)))) if is_done and behind else devices
        for devices, is_done in zip(applied, done, strict=True)
    ]
    found = settlement([A, B], applied, ())
    assert found is not None
    assert list(found.done) == done
    assert found.gone <= behind
