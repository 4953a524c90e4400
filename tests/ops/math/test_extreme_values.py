"""Zeros, infinities and empty tensors, where formulas that hold elsewhere do not."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf

INF, NAN = np.inf, np.nan


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("row", [[0, 1, 2], [3, 0, 2, 5], [2, 0, 3, 0, 4], [0, 0, 0], [1, 2, 3]])
def test_the_gradient_of_cumprod_holds_at_zeros(row, exclusive, reverse):
    """By the products without one factor each. TensorFlow gives 0 or NaN for a factor of 0."""
    x = tf.constant(np.array(row, np.float64))
    weights = np.arange(1.0, len(row) + 1)
    (gradient,) = tf.gradients(tf.reduce_sum(weights * tf.cumprod(x, exclusive=exclusive, reverse=reverse)), x)
    expected = []
    for i in range(len(row)):
        ones = [*row[:i], 1, *row[i + 1 :]]
        places = range(len(row))
        total = 0.0
        for j in places:
            within = [k for k in places if (k >= j if reverse else k <= j) and (not exclusive or k != j)]
            if i in within:
                total += weights[j] * np.prod([ones[k] for k in within])
        expected.append(total)
    with tf.Session() as session:
        np.testing.assert_allclose(session.run(gradient), expected)


@pytest.mark.parametrize(
    ("function", "x", "y", "expected"),
    [
        # As TensorFlow 2.21 computes them.
        (tf.floordiv, [INF, -INF, NAN, 1, -1e-38, -1, 5, -5, 3], [2, 2, 1, INF, 1e30, INF, 0, 0, -2],
         [INF, -INF, NAN, 0, 0, 0, INF, -INF, -2]),
        (tf.div_no_nan, [NAN, INF, 1, 0, -INF, INF, NAN], [0, 0, 0, 0, 0, 2, 2], [0, 0, 0, 0, 0, INF, NAN]),
    ],
)  # fmt: skip
def test_quotients_of_infinities(function, x, y, expected):
    with tf.Session() as session:
        found = session.run(function(tf.constant(x, tf.float32), tf.constant(y, tf.float32)))
    np.testing.assert_array_equal(found, np.array(expected, np.float32))


@pytest.mark.parametrize("function", [tf.floordiv, tf.floormod, tf.truncatediv, tf.truncatemod])
def test_nothing_is_divided_by_zero_in_an_empty_result(function):
    x, y = tf.placeholder(tf.int32, [None, 0]), tf.placeholder(tf.int32, [None, 1])
    with tf.Session() as session:
        found = session.run(function(x, y), {x: np.zeros((2, 0), int), y: np.zeros((2, 1), int)})
    assert found.shape == (2, 0) and found.dtype == np.int32
