"""Lists of TensorFlow 2: elements that are replaced, and ends that are taken off or moved."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tfray.errors import InvalidArgumentError
from tfray.framework.convert import add_op
from tfray.ops.control.tensor_list_ops import TENSOR_ARRAY_POP, TENSOR_ARRAY_REPLACE, TENSOR_ARRAY_RESIZE

ROWS = np.arange(6, dtype=np.float32).reshape(3, 2)
FACTORS = np.float32([[1, 2], [3, 4], [5, 6]])


def listed(x):
    return tf.TensorArray(tf.float32, 3).unstack(x)


def joined(flow, count=3):
    return tf.TensorArray(tf.float32, flow=flow).gather(list(range(count)))


def popped(flow):
    return add_op(TENSOR_ARRAY_POP, flow, dtype=tf.float32, element_shape=tf.TensorShape([2]))


def test_a_replaced_element_has_no_part_in_the_result():
    x, v = tf.constant(ROWS), tf.constant([7.0, 8.0])
    changed = joined(add_op(TENSOR_ARRAY_REPLACE, listed(x).flow, 1, v, dynamic=False))
    gradients = tf.gradients(changed * FACTORS, [x, v])
    with tf.Session() as session:
        value, (d_x, d_v) = session.run([changed, gradients])
    assert value.tolist() == [[0, 1], [7, 8], [4, 5]]
    assert d_x.tolist() == [[1, 2], [0, 0], [5, 6]] and d_v.tolist() == [3, 4]


def test_ends_are_taken_off_one_after_the_other():
    x = tf.constant(ROWS)
    rest, last = popped(listed(x).flow)
    rest, second = popped(rest)
    y = last * FACTORS[0] + second * FACTORS[1] + joined(rest, 1)[0]
    (d_x,) = tf.gradients(y, [x])
    with tf.Session() as session:
        values = session.run([last, second, d_x])
    assert [value.tolist() for value in values] == [[4, 5], [2, 3], [[1, 1], [3, 4], [1, 2]]]


def test_nothing_is_taken_off_an_empty_list():
    with tf.Session() as session, pytest.raises(InvalidArgumentError, match="empty list"):
        session.run(popped(tf.TensorArray(tf.float32, 0).flow)[1])


@pytest.mark.parametrize("size", [2, 3, 5])
def test_lists_become_longer_and_shorter(size):
    x = tf.constant(ROWS)
    array = listed(x)
    changed = add_op(TENSOR_ARRAY_RESIZE, array.flow, size)
    kept = joined(changed, min(size, 3))
    (d_x,) = tf.gradients(kept * FACTORS[: min(size, 3)], [x])
    with tf.Session() as session:
        found, value, again, slopes = session.run(
            [tf.TensorArray(tf.float32, flow=changed).size(), kept, array.stack(), d_x]
        )
    assert found == size and again.tolist() == ROWS.tolist()
    assert value.tolist() == ROWS[:size].tolist()
    assert slopes.tolist() == [row if index < size else [0, 0] for index, row in enumerate(FACTORS.tolist())]
