"""Of a product that is split into columns, only the part that is used is computed."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tests.support.interpreter import interpret
from tests.support.interpreter import run_with_types as run


def array(seed, *shape, dtype=np.float32):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def product(flips=(False, False), dtype=np.float32):
    """A product of [5, 7] and [7, 12], its right side fed, and NumPy's."""
    a, b = array(0, 5, 7, dtype=dtype), array(1, 7, 12, dtype=dtype)
    left, right = (x.T if flip else x for x, flip in zip((a, b), flips, strict=True))
    fed = tf.placeholder(dtype, right.shape)
    made = tf.matmul(tf.constant(left), fed, transpose_a=flips[0], transpose_b=flips[1])
    return made, {fed: right}, a @ b


@pytest.mark.parametrize("flips", [(False, False), (False, True), (True, False), (True, True)])
@pytest.mark.parametrize(("sizes", "index"), [([3, 4, 5], 0), ([3, 4, 5], 1), ([2, 10], 1), (4, 3)])
def test_the_columns_of_one_part_are_computed(sizes, index, flips):
    made, fed, wanted = product(flips)
    value, types = run(tf.split(made, sizes, 1)[index], fed)
    ends = np.cumsum([0, *([3] * 4 if sizes == 4 else sizes)])
    np.testing.assert_allclose(value, wanted[:, ends[index] : ends[index + 1]], rtol=1e-5, atol=1e-5)
    assert "_MatMulPart" in types
    assert not {"MatMul", "Split", "SplitV"} & set(types)


def test_the_number_of_rows_need_not_be_known():
    left = tf.placeholder(tf.float32, [None, 7])
    fed = {left: array(0, 5, 7)}
    value, types = run(tf.split(tf.matmul(left, array(1, 7, 12)), [4, 8], 1)[0], fed)
    np.testing.assert_allclose(value, fed[left] @ array(1, 7, 12)[:, :4], rtol=1e-5, atol=1e-5)
    assert "_MatMulPart" in types and "MatMul" not in types


@pytest.mark.parametrize("dtype", [np.float64, np.complex64, np.int32])
def test_other_dtypes(dtype):
    made, fed, wanted = product(dtype=dtype)
    value, types = run(tf.split(made, [2, 10], -1)[1], fed)
    np.testing.assert_allclose(value, wanted[:, 2:], rtol=1e-5, atol=1e-5)
    assert "_MatMulPart" in types


@pytest.mark.parametrize("needed", ["two parts", "the product", "an order", "rows"])
def test_what_is_needed_otherwise_is_computed_whole(needed):
    made, fed, wanted = product()
    if needed == "an order":
        with tf.control_dependencies([made]):
            parts = tf.split(made, [3, 9], 1)
    else:
        parts = tf.split(made, [2, 3] if needed == "rows" else [3, 9], 0 if needed == "rows" else 1)
    fetches = {"two parts": parts, "the product": [parts[1], made]}.get(needed, parts[1:])
    values, types = run(fetches, fed)
    assert "MatMul" in types
    np.testing.assert_allclose(values[0], wanted[:, :3] if needed == "two parts" else interpret(fetches, fed)[0], 1e-5)


def test_a_cell_that_reads_data_needs_the_gradient_of_its_state_alone():
    x, state = tf.placeholder(tf.float32, [4, 6]), tf.Variable(array(2, 4, 5))
    weights = tf.Variable(array(3, 11, 5))
    loss = tf.reduce_sum(tf.tanh(tf.matmul(tf.concat([x, state], 1), weights)) ** 2)
    gradients = tf.gradients(loss, [state, weights])
    fed = {x: array(4, 4, 6)}
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found, before, kept = session.run([gradients, state, weights], fed)
    joined = np.concatenate([fed[x], before], 1)
    y = np.tanh(joined @ kept)
    inner = 2 * y * (1 - y**2)
    np.testing.assert_allclose(found[0], (inner @ kept.T)[:, 6:], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found[1], joined.T @ inner, rtol=1e-5, atol=1e-5)


def test_in_a_loop_too():
    x, weights = tf.placeholder(tf.float32, [3, 4, 6]), tf.Variable(array(3, 11, 5))

    def turn(i, state):
        return i + 1, tf.tanh(tf.matmul(tf.concat([x[i], state], 1), weights))

    last = tf.while_loop(lambda i, state: i < 3, turn, [0, tf.constant(array(5, 4, 5))])[1]
    gradient = tf.gradients(tf.reduce_sum(last), weights)[0]
    fed = {x: array(4, 3, 4, 6)}
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found, kept = session.run([gradient, weights], fed)
    with tf.Session(config=tf.ConfigProto(graph_options=tf.GraphOptions(optimizer_options=off()))) as session:
        session.run(tf.global_variables_initializer())
        np.testing.assert_allclose(found, session.run(gradient, fed), rtol=1e-5, atol=1e-5)
    step = 1e-2 * np.random.default_rng(6).normal(size=kept.shape)
    ends = [forward(fed[x], array(5, 4, 5), kept + sign * step) for sign in (1, -1)]
    np.testing.assert_allclose(np.sum(found * step), (ends[0] - ends[1]) / 2, rtol=1e-2)


def forward(x, state, weights):
    state = state.astype(np.float64)
    for each in x:
        state = np.tanh(np.concatenate([each, state], 1) @ weights)
    return state.sum()


def off():
    return tf.OptimizerOptions(opt_level=tf.OptimizerOptions.L0)
