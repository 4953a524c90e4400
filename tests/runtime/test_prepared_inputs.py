"""What a kernel prepares of a value that all turns of a loop take: products whose right matrix is packed once."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf

ROWS, WIDTH = 32, 352
"""Sizes of products that oneDNN computes."""


def array(seed, *shape):
    return (np.random.default_rng(seed).normal(size=shape) / np.sqrt(shape[-1])).astype(np.float32)


def repeated(weights, turns, turned=False):
    """``tanh(x @ weights)``, so often."""
    return tf.while_loop(
        lambda i, x: i < turns,
        lambda i, x: (i + 1, tf.tanh(tf.matmul(x, weights, transpose_b=turned))),
        [0, tf.constant(array(0, ROWS, WIDTH))],
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([ROWS, None])],
    )[1]


def computed(weights, turns):
    x = array(0, ROWS, WIDTH).astype(np.float64)
    for _ in range(turns):
        x = np.tanh(x @ weights)
    return x


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("turns", [0, 1, 5])
def test_every_turn_multiplies_by_the_same_matrix(turns, turned):
    weights, fed = array(1, WIDTH, WIDTH), tf.placeholder(tf.float32, [WIDTH, WIDTH])
    with tf.Session() as session:
        for scale in (1, 2):  # another matrix in another step
            found = session.run(repeated(fed, turns, turned), {fed: scale * (weights.T if turned else weights)})
            np.testing.assert_allclose(found, computed(scale * weights, turns), rtol=1e-4, atol=1e-5)


def test_sizes_that_are_known_only_when_the_step_runs():
    weights = tf.placeholder(tf.float32, [None, None])
    with tf.Session() as session:
        for seed in (1, 2):
            found = session.run(repeated(weights, 3), {weights: array(seed, WIDTH, WIDTH)})
            np.testing.assert_allclose(found, computed(array(seed, WIDTH, WIDTH), 3), rtol=1e-4, atol=1e-5)


def test_steps_that_train_the_matrix_read_it_anew():
    weights = tf.Variable(array(1, WIDTH, WIDTH))
    result = repeated(weights, 3)
    train = tf.train.GradientDescentOptimizer(0.5).minimize(tf.reduce_sum(result**2))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(3):
            now = session.run(weights)
            np.testing.assert_allclose(session.run(result), computed(now, 3), rtol=1e-4, atol=1e-5)
            session.run(train)
        assert np.abs(session.run(weights) - now).max() > 1e-3


def test_a_matrix_that_the_turns_change_is_read_in_each():
    weights = tf.Variable(array(1, WIDTH, WIDTH))

    def turn(i, x):
        with tf.control_dependencies([weights.assign(weights * 0.5)]):
            return i + 1, tf.matmul(x, weights.read_value())

    assigned = tf.while_loop(lambda i, x: i < 3, turn, [0, tf.constant(array(0, ROWS, WIDTH))])[1]
    carried = tf.while_loop(
        lambda i, x, w: i < 3,
        lambda i, x, w: (i + 1, tf.matmul(x, w * 0.5), w * 0.5),
        [0, tf.constant(array(0, ROWS, WIDTH)), tf.constant(array(1, WIDTH, WIDTH))],
    )[1]
    wanted = array(0, ROWS, WIDTH).astype(np.float64)
    for power in (1, 2, 3):
        wanted = wanted @ (array(1, WIDTH, WIDTH) * 0.5**power)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        np.testing.assert_allclose(session.run(carried), wanted, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(session.run(assigned), wanted, rtol=1e-4, atol=1e-6)


def test_loops_in_loops_and_in_branches():
    outer, inner = array(1, WIDTH, WIDTH), array(2, WIDTH, WIDTH)
    fed = tf.placeholder(tf.float32, [WIDTH, WIDTH])
    is_taken = tf.placeholder(tf.bool, [])

    def within(x):
        return tf.while_loop(lambda j, y: j < 2, lambda j, y: (j + 1, tf.tanh(tf.matmul(y, fed))), [0, x])[1]

    def turn(i, x):
        return i + 1, within(tf.matmul(x, outer))

    def both():
        return tf.while_loop(lambda i, x: i < 2, turn, [0, tf.constant(array(0, ROWS, WIDTH))])[1]

    result = tf.cond(is_taken, both, lambda: tf.zeros([ROWS, WIDTH]))
    wanted = array(0, ROWS, WIDTH).astype(np.float64)
    for _ in range(2):
        wanted = wanted @ outer
        for _ in range(2):
            wanted = np.tanh(wanted @ inner)
    with tf.Session() as session:
        np.testing.assert_allclose(session.run(result, {fed: inner, is_taken: True}), wanted, rtol=1e-4, atol=1e-5)
        assert not session.run(result, {fed: inner, is_taken: False}).any()


def test_matrices_that_do_not_fit_are_named():
    weights = tf.placeholder(tf.float32, [None, None])
    with tf.Session() as session:
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"\(32, 352\) and \(300, 352\)"):
            session.run(repeated(weights, 3), {weights: array(1, 300, WIDTH)})
        found = session.run(repeated(weights, 3), {weights: array(1, WIDTH, WIDTH)})
        np.testing.assert_allclose(found, computed(array(1, WIDTH, WIDTH), 3), rtol=1e-4, atol=1e-5)


def test_nothing_is_kept_of_a_step_that_has_ended():
    """A traced step computes the same, and the matrix it took may change."""
    weights = tf.Variable(array(1, WIDTH, WIDTH))
    result = repeated(weights, 2)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        before = session.run(result)
        traced = session.run(
            result, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=tf.RunMetadata()
        )
        np.testing.assert_array_equal(traced, before)
        session.run(weights.assign(2 * array(1, WIDTH, WIDTH)))
        np.testing.assert_allclose(session.run(result), computed(2 * array(1, WIDTH, WIDTH), 2), rtol=1e-4, atol=1e-5)
