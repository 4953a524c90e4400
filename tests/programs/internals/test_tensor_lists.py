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


def reserved(shape, size=3):
    return lists.tensor_list_reserve(shape, size, FLOAT)


def with_one(shape, index=1, value=(1.0, 2.0)):
    return lists.tensor_list_set_item(reserved(shape), index, tf.constant(value))


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: stacked(reserved([])), [0.0, 0.0, 0.0]),
        (lambda: stacked(with_one(None)), [[0.0, 0.0], [1.0, 2.0], [0.0, 0.0]]),
        (lambda: lists.tensor_list_gather(with_one(None), [1, 2], FLOAT), [[1.0, 2.0], [0.0, 0.0]]),
        (lambda: lists.tensor_list_gather(with_one(None), [2], FLOAT), [[0.0, 0.0]]),
        (lambda: lists.tensor_list_get_item(with_one([None]), 0, FLOAT), [0.0, 0.0]),
        (lambda: lists.tensor_list_get_item(reserved([None]), 0, FLOAT, [2]), [0.0, 0.0]),
        (lambda: lists.tensor_list_pop_back(reserved([2]), FLOAT)[1], [0.0, 0.0]),
        (lambda: stacked(lists.tensor_list_resize(of(1.0, 2.0), 3)), [1.0, 2.0, 0.0]),
        (lambda: lists.tensor_list_concat(reserved([1, 2], 2), FLOAT), [[0.0, 0.0], [0.0, 0.0]]),
        (lambda: tf.shape(stacked(of(shape=[2, 3]))), [0, 2, 3]),
        (lambda: tf.shape(lists.tensor_list_gather(of(shape=[2, 3]), [], FLOAT)), [0, 2, 3]),
        (lambda: lists.tensor_list_element_shape(of(shape=[2, None]), tf.int32), [2, -1]),
        (lambda: lists.tensor_list_element_shape(with_one([None]), tf.int64), [-1]),
        (lambda: lists.tensor_list_element_shape(of(shape=None), tf.int32), -1),
    ],
)  # fmt: skip
def test_elements_that_were_never_written_are_zeros_of_the_shape_that_is_known(make, expected):
    tensor = make()
    found = run(tensor)
    assert found.tolist() == expected
    assert found.dtype == tensor.dtype.as_numpy_dtype


def test_strings_that_were_never_written_are_empty():
    array = tf.TensorArray(tf.string, 3, element_shape=[]).write(0, "x")
    assert run(array.stack()).tolist() == [b"x", b"", b""]
    assert run(array.read(1)) == b""


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: lists.tensor_list_pop_back(of(), FLOAT)[1], "Trying to pop from an empty list"),
        (lambda: lists.tensor_list_push_back(lists.empty_tensor_list([], FLOAT, 0), 1.0), "push item into a full list"),
        (lambda: lists.tensor_list_set_item(of(), 0, 1.0), "modify element 0 in a list with 0 elements"),
        (lambda: of([1.0], shape=[2]), r"append a tensor with incompatible shape to a list.*\[1\] list shape: \[2\]"),
        (
            lambda: lists.tensor_list_set_item(of(1.0), 0, [1.0]),
            r"set a tensor with incompatible shape at a list index. Item element shape: \[1\] list shape: \[\]",
        ),
        (lambda: stacked(of(shape=[None, 2])), r"stack elements of an empty list with non-fully-defined.*\[\?,2\]"),
        (lambda: stacked(reserved(None)), "only contains uninitialized tensors and has a non-fully-defined.*<unknown>"),
        (lambda: stacked(of(1.0, [2.0], shape=None)), "Incompatible ranks during merge: 0 vs. 1"),
        (lambda: stacked(of([1.0], [2.0, 3.0], shape=[None])), r"shapes during merge: \[1\] vs. \[2\]"),
        (lambda: lists.tensor_list_gather(reserved(None), [0], FLOAT), "gather uninitialized tensors from a list"),
        (lambda: lists.tensor_list_get_item(reserved([None]), 0, FLOAT), "an uninitialized tensor but element_shape"),
        (lambda: lists.tensor_list_resize(of(1.0), -1), "expects size to be non-negative. Got: -1"),
        (lambda: lists.tensor_list_scatter([1.0], [-1], []), "must all be non-negative"),
        (lambda: lists.tensor_list_scatter([1.0], [0, 1], []), "Expected: 2 Actual: 1"),
        (lambda: lists.tensor_list_concat(reserved(None), FLOAT), "concat list with only uninitialized tensors"),
        (lambda: lists.tensor_list_concat(of(1.0, shape=None), FLOAT), "saw a scalar shape at index 0"),
        (lambda: lists.tensor_list_concat(of(shape=None), FLOAT), "fully defined when concating an empty tensor list"),
    ],
)
def test_lists_refuse_in_tensorflows_words(make, words):
    with pytest.raises(tf.errors.InvalidArgumentError, match=words):
        run(make())


def test_elements_of_lists_may_be_strings():
    made = lists.tensor_list_push_back(lists.empty_tensor_list([], tf.string), tf.constant("a"))
    made = lists.tensor_list_set_item(made, 0, tf.constant("b"))
    assert run(lists.tensor_list_stack(made, tf.string)).tolist() == [b"b"]
