"""Stacks of values of loops' turns."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tfray.errors import InvalidArgumentError, ResourceExhaustedError
from tfray.ops.control.stack_ops import stack_pop_v2, stack_push_v2, stack_v2


def test_values_of_one_loop_come_back_in_another_newest_first(session):
    handle = stack_v2()

    def push(i, x):
        with tf.control_dependencies([stack_push_v2(handle, x)]):
            return i + 1, x * 2

    def pop(i, total):
        return i - 1, total * 10 + tf.reshape(stack_pop_v2(handle, tf.float32), [])

    count, _ = tf.while_loop(lambda i, x: i < 3, push, [0, tf.constant(1.0)])
    _, total = tf.while_loop(lambda i, total: i > 0, pop, [count, tf.constant(0.0)])
    assert session.run(total) == session.run(total) == 421  # a stack of its own in each step


def test_stacks_stand_on_stacks(session):
    inner, outer = stack_v2(name="inner"), stack_v2(name="outer")
    with tf.control_dependencies([stack_push_v2(inner, np.float32([1, 2]))]):
        pushed = stack_push_v2(outer, inner)
    with tf.control_dependencies([pushed]):
        found = stack_pop_v2(outer, tf.variant)
    assert session.run(stack_pop_v2(found, tf.float32)).tolist() == [1, 2]


def test_an_empty_stack_has_nothing_to_pop(session):
    with pytest.raises(InvalidArgumentError, match="off an empty stack"):
        session.run(stack_pop_v2(stack_v2(), tf.int32))


def test_a_full_stack_takes_nothing(session):
    handle = stack_v2(1)
    with tf.control_dependencies([stack_push_v2(handle, 1)]):
        second = stack_push_v2(handle, 2)
    with pytest.raises(ResourceExhaustedError, match="may hold 1 values"):
        session.run(second)
