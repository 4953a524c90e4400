"""Operations that run whenever a tensor is computed."""

from __future__ import annotations

import collections

import pytest

import tfray as tf
from tfray.programs.internals.subscribe import is_subscribed_identity, subscribe

Pair = collections.namedtuple("Pair", ["first", "second"])


def noting(seen):
    def note(value):
        seen.append(value.tolist())
        return value

    return lambda tensor: tf.py_func(note, [tensor], [tensor.dtype])


def test_what_takes_or_awaits_a_tensor_waits_for_its_effects():
    total, seen = tf.add(1, 1), []
    with tf.control_dependencies([total]):
        later = tf.constant(42)
    opposite = -total
    subscribed = subscribe(total, noting(seen))
    assert subscribed.op in later.op.control_inputs and total.op not in later.op.control_inputs
    with tf.Session() as session:
        assert [session.run(each) for each in (subscribed, opposite, later)] == [2, -2, 42]
    assert seen == [2, 2, 2]


def test_further_effects_join_the_first():
    total, seen, more = tf.add(1, 2), [], []
    first = subscribe(total, noting(seen))
    assert subscribe(first, noting(more)) is first and subscribe(total, noting(more)) is first
    with tf.Session() as session:
        assert session.run(first) == 3
    assert (seen, more) == ([3], [3, 3])


def test_a_variable_is_noted_where_it_is_read():
    v, seen = tf.Variable(1.0), []
    doubled, assigned = v * 2.0, v.assign(3.0)
    subscribe(v, noting(seen))
    with tf.Session() as session:
        session.run(v.initializer)
        for fetched in (doubled, assigned, doubled):
            session.run(fetched)
    assert seen == [1.0, 3.0]


@pytest.mark.parametrize("make", [list, tuple, lambda pair: Pair(*pair), lambda pair: {"a": pair[0], "b": pair[1]}])
def test_structures_stay(make):
    given = make([tf.constant(1), tf.constant(2)])
    found = subscribe(given, noting([]))
    assert type(found) is type(given)
    assert all(map(is_subscribed_identity, found.values() if isinstance(found, dict) else found))
    with pytest.raises(TypeError, match="has invalid type"):
        subscribe(["Const:0"], noting([]))


def test_resources_stay():
    handle = tf.get_variable("v", [], use_resource=True).handle
    assert subscribe(handle, noting([])) is handle
