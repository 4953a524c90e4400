"""TensorFlow's lists of tensors: values are those that TensorFlow 1.15 gives."""

from __future__ import annotations

import pytest

import tfray as tf
from tests.support.sessions import run
from tfray.programs.internals import tensor_lists as lists

FLOAT = tf.float32


def of(*elements, shape=()):
    made = lists.empty_tensor_list(shape, FLOAT)
    for element in elements:
        made = lists.tensor_list_push_back(made, tf.constant(element))
    return made


def stacked(made):
    return lists.tensor_list_stack(made, FLOAT)


def filled_in_a_loop():
    made = lists.tensor_list_reserve([], 4, FLOAT)
    step = lambda i, each: (i + 1, lists.tensor_list_set_item(each, i, tf.cast(i, FLOAT) * 2.0))  # noqa: E731
    return stacked(tf.while_loop(lambda i, _: i < 4, step, [0, made])[1])


def slopes():
    first, second = tf.constant(5.0), tf.constant([10.0, 20.0])
    made = lists.tensor_list_push_back(lists.tensor_list_push_back(of(shape=None), first), second)
    return tf.gradients(lists.tensor_list_get_item(made, 1, FLOAT), [first, second])[1]


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: stacked(of(1.0, 2.0)), [1.0, 2.0]),
        (lambda: lists.tensor_list_pop_back(of(1.0, 2.0), FLOAT)[1], 2.0),
        (lambda: stacked(lists.tensor_list_pop_back(of(1.0, 2.0), FLOAT)[0]), [1.0]),
        (lambda: lists.tensor_list_gather(of(1.0, 2.0, 3.0), [2, 0], FLOAT), [3.0, 1.0]),
        (lambda: lists.tensor_list_get_item(lists.tensor_list_from_tensor([1.0, 2.0], []), 1, FLOAT), 2.0),
        (lambda: stacked(lists.tensor_list_set_item(of(1.0, 2.0), 0, 7.0)), [7.0, 2.0]),
        (lambda: stacked(lists.tensor_list_scatter([1.0, 2.0], [1, 0], [])), [2.0, 1.0]),
        (lambda: stacked(lists.tensor_list_scatter([9.0], [2], [], of(1.0, 2.0))), [1.0, 2.0, 9.0]),
        (lambda: lists.tensor_list_concat(of([1.0, 2.0], [3.0], shape=[None]), FLOAT), [1.0, 2.0, 3.0]),
        (lambda: lists.tensor_list_get_item(lists.tensor_list_split([1.0, 2.0], None, [1, 1]), 1, FLOAT), [2.0]),
        (lambda: lists.tensor_list_length(lists.tensor_list_resize(of(1.0, 2.0), 5)), 5),
        (filled_in_a_loop, [0.0, 2.0, 4.0, 6.0]),
        (slopes, [1.0, 1.0]),
    ],
)  # fmt: skip
def test_lists_are_values(make, expected):
    assert run(make()).tolist() == expected
