"""`tf.contrib.input_pipeline`: the strings of a list in turn."""

from __future__ import annotations

import pytest

import tfray as tf


def test_strings_come_in_turn(session):
    counter = tf.Variable(tf.constant(-1, tf.int64), trainable=False)
    element = tf.contrib.input_pipeline.obtain_next(["a", "b"], counter)
    limited = tf.contrib.input_pipeline.seek_next(["x", "y"], num_epochs=2)
    session.run(tf.global_variables_initializer())
    assert [session.run(element) for _ in range(3)] == [b"a", b"b", b"a"]
    assert session.run(counter) == 0
    assert [session.run(limited) for _ in range(4)] == [b"x", b"y", b"x", b"y"]
    with pytest.raises(tf.errors.OutOfRangeError):
        session.run(limited)


def test_each_round_has_an_order_of_its_own(session):
    element = tf.contrib.input_pipeline.seek_next(list("abcdefgh"), shuffle=True, seed=7, num_epochs=2)
    session.run(tf.global_variables_initializer())
    rounds = [[session.run(element) for _ in range(8)] for _ in range(2)]
    assert sorted(rounds[0]) == sorted(rounds[1])
    assert rounds[0] != rounds[1]
