"""`switch` and `merge` of `control_flow_ops`: a choice between values, as preprocessing of images makes it."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tfray.errors import InvalidArgumentError
from tfray.programs.switch_merge import merge, switch

X = np.array([4.0, 1.0, 9.0], np.float32)


@pytest.mark.parametrize(
    ("case", "expected", "slope"), [(0, X * 3, 3), (1, X + 1, 1), (2, np.sqrt(X), 0.5 / np.sqrt(X)), (3, X, 1)]
)
def test_one_of_several_cases_is_computed(case, expected, slope):
    x, chosen = tf.placeholder(tf.float32, [3]), tf.placeholder(tf.int32, [])

    def distorted(value, number):
        counted = tf.py_func(lambda each: (calls.append(number), each)[1], [value], tf.float32)
        counted.set_shape([3])
        return (counted * 3, counted + 1, tf.sqrt(counted), counted)[number]

    calls: list[int] = []
    output, index = merge([distorted(switch(x, tf.equal(chosen, number))[1], number) for number in range(4)])
    with tf.Session() as session:
        result, which = session.run([output, index], {x: X, chosen: case})
    np.testing.assert_allclose(result, expected, rtol=1e-6)
    assert which == case and calls == [case], "only the chosen function runs"
    assert output.shape.as_list() == [3]


def test_gradients_pass_through_the_chosen_side():
    x, w, holds = tf.constant(X), tf.Variable(2.0), tf.placeholder(tf.bool, [])
    outside, inside = switch(x, holds, name="gate")
    output = merge([tf.square(outside), inside * w]).output
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for value, expected, slope, of_w in ((False, X * X, 2 * X, 0), (True, 2 * X, 2 + 0 * X, X.sum())):
            found = session.run([output, *tf.gradients(output, [x, w])], {holds: value})
            for result, wanted in zip(found, (expected, slope, of_w), strict=True):
                np.testing.assert_allclose(result, wanted, rtol=1e-6)


def test_no_gradient_comes_from_the_other_side():
    x, holds = tf.constant(X), tf.placeholder(tf.bool, [])
    slopes = [tf.gradients(side * 3, x)[0] for side in switch(x, holds)]
    with tf.Session() as session:
        for value, expected in ((True, (0, 3)), (False, (3, 0))):
            np.testing.assert_array_equal(session.run(slopes, {holds: value}), [[each] * 3 for each in expected])


def test_a_merge_within_a_merge():
    x, first, second = tf.constant(X), tf.placeholder(tf.bool, []), tf.placeholder(tf.bool, [])
    below, above = switch(x, first)
    negative, positive = switch(above, second)
    inner = merge([-negative, positive * 10]).output
    output = merge([below, inner + 1]).output
    with tf.Session() as session:
        for values, expected in (((False, True), X), ((True, False), 1 - X), ((True, True), X * 10 + 1)):
            result = session.run(output, dict(zip((first, second), values, strict=True)))
            np.testing.assert_allclose(result, expected)


def test_what_comes_from_no_switch_is_there_always():
    holds = tf.placeholder(tf.bool, [])
    output, index = merge([switch(tf.constant(1), holds).output_true, tf.constant(2)])
    with tf.Session() as session:
        assert session.run([output, index], {holds: True}) == [1, 0]
        assert session.run([output, index], {holds: False}) == [2, 1]


def test_wrong_calls():
    with pytest.raises(InvalidArgumentError, match="expected a scalar"):
        switch(X, [True, False, True])
    with pytest.raises(ValueError, match="inputs is empty"):
        merge([])
