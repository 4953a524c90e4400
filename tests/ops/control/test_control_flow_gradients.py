"""Gradients through branches and loops, against differences; training through them and within them."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tests.support.gradient_check import check_gradients
from tests.support.interpreter import interpret
from tests.support.region_runs import run

X = np.random.default_rng(0).normal(size=(2, 2))
W = np.random.default_rng(1).normal(size=(2, 2)) * 0.5


def loop_of(body, turns=3):
    """The last of the variables after so many turns of `body`, a function of the index and that variable."""
    return lambda *xs: tf.while_loop(lambda i, a: i < turns, lambda i, a: (i + 1, body(i, a, *xs[1:])), [0, xs[0]])[1]


def embed(i, a, w):
    """Takes one row of the table in every turn."""
    return a + tf.sin(tf.gather(w, [i % 2, 1]))


def grown(x):
    loop = tf.while_loop(
        lambda i, a: i < 3,
        lambda i, a: (i + 1, tf.concat([a, tf.sin(a[-1:]) * a[:1]], 0)),
        [tf.constant(0), x],
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([None, 2])],
    )
    return loop[1]


def written(x, w):
    array = tf.TensorArray(tf.float64, 4)
    loop = tf.while_loop(
        lambda i, h, t: i < 4, lambda i, h, t: (i + 1, tf.tanh(tf.matmul(h, w)), t.write(i, h * h)), [0, x, array]
    )
    return loop[1] + tf.reduce_sum(loop[2].stack(), 0)


GRADIENT_CASES = {
    "cond, first branch": (lambda x, c: tf.cond(c > 0, lambda: tf.square(x) * c, lambda: x * 3), [X, np.array(0.7)]),
    "cond, second branch": (
        lambda x, c: tf.cond(c > 0, lambda: tf.square(x), lambda: tf.exp(x) * c),
        [X, np.array(-0.7)],
    ),
    "cond of structures": (
        lambda x, c: tf.cond(c > 0, lambda: [x * c, tf.sin(x)], lambda: [x, x * x]),
        [X, np.array(0.7)],
    ),
    "cond that uses one input in one branch": (
        lambda x, w, c: tf.cond(c > 0, lambda: tf.sin(x), lambda: tf.sin(w)),
        [X, W, np.array(-1.0)],
    ),
    "cond in cond": (
        lambda x, c: tf.cond(c > 0, lambda: tf.cond(c > 1, lambda: x, lambda: x * x * c), lambda: x),
        [X, np.array(0.5)],
    ),
    "case": (
        lambda x, c: tf.case([(c > 1, lambda: x), (c > 0, lambda: tf.sin(x * c))], default=lambda: x * x),
        [X, np.array(0.5)],
    ),
    "loop": (loop_of(lambda i, a, w: tf.tanh(tf.matmul(a, w))), [X, W]),
    "loop of no turns": (loop_of(lambda i, a, w: tf.tanh(tf.matmul(a, w)), 0), [X, W]),
    "loop with the index": (loop_of(lambda i, a: a * tf.cast(i + 1, tf.float64) + tf.sin(a)), [X]),
    "loop in loop": (loop_of(lambda i, a, w: loop_of(lambda j, b, w: tf.sin(tf.matmul(b, w)), 2)(a, w)), [X, W]),
    "cond in loop": (loop_of(lambda i, a, w: tf.cond(i > 1, lambda: tf.tanh(tf.matmul(a, w)), lambda: a * a)), [X, W]),
    "loop in cond": (
        lambda x, c: tf.cond(c > 0, lambda: loop_of(lambda i, a, c: tf.sin(a) * c)(x, c), lambda: x),
        [X, np.array(0.7)],
    ),
    "turns that depend on data": (
        lambda x, c: tf.while_loop(lambda a: tf.reduce_sum(a) < 100.0, lambda a: [a * a + 1 + c], [tf.abs(x)]),
        [X, np.array(0.7)],
    ),
    "rows of a table": (loop_of(embed), [X, W]),
    "unused capture": (loop_of(lambda i, a, w: tf.sin(a) + 0.0 * w), [X, W]),
    "growing variable": (grown, [X]),
    "TensorArray": (written, [X, W]),
    "maximum_iterations": (
        lambda x: tf.while_loop(lambda a: True, lambda a: [tf.sin(a) * 2], [x], maximum_iterations=3),
        [X],
    ),
    "stop_gradient inside": (loop_of(lambda i, a, w: a * w + tf.stop_gradient(a * 0.0)), [X, W]),
    "two losses": (
        lambda x: list(
            tf.while_loop(lambda i, a, b: i < 3, lambda i, a, b: (i + 1, b * 0.5, tf.sin(a)), [0, x, x])[1:]
        ),
        [X],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", GRADIENT_CASES)
def test_gradients_equal_differences(case):
    build, inputs = GRADIENT_CASES[case]
    check_gradients(build, inputs)


@pytest.mark.parametrize("case", GRADIENT_CASES)
def test_gradients_run_as_interpreted(case, session):
    build, inputs = GRADIENT_CASES[case]
    shapes = [[None, 2] if case == "growing variable" else None] * len(inputs)
    xs = [tf.placeholder(value.dtype, shape) for value, shape in zip(inputs, shapes, strict=True)]
    ys = build(*xs)
    ys = [tf.reduce_sum(y) for y in (ys if isinstance(ys, list) else [ys])]
    firsts = [d for d in tf.gradients(ys, xs) if d is not None]
    seconds = [d for d in tf.gradients([tf.reduce_sum(tf.sin(d)) for d in firsts], xs) if d is not None]
    feeds = dict(zip(xs, inputs, strict=True))
    expected = interpret([*ys, *firsts, *seconds], feeds)
    for actual, wanted in zip(run([*ys, *firsts, *seconds], feeds), expected, strict=True):
        np.testing.assert_allclose(actual, wanted, rtol=1e-9, atol=1e-12)


def test_back_prop_false_stops_gradients():
    x = tf.constant(2.0)
    y = tf.while_loop(lambda a: a < 100.0, lambda a: a * a, [x], back_prop=False)
    assert tf.gradients(y, x) == [None]


def test_gradient_of_an_embedding_in_a_body(session):
    table = tf.get_variable("table", [5, 2], initializer=tf.ones_initializer())
    ids = tf.constant([1, 3, 1])
    _, total = tf.while_loop(
        lambda i, t: i < 3, lambda i, t: (i + 1, t + tf.nn.embedding_lookup(table, ids[i]) ** 2), [0, tf.zeros([2])]
    )
    gradient = tf.convert_to_tensor(tf.gradients(total, table)[0])
    session.run(tf.global_variables_initializer())
    np.testing.assert_array_equal(session.run(gradient), [[0, 0], [4, 4], [0, 0], [2, 2], [0, 0]])


def test_training_through_a_loop(session):
    w = tf.get_variable("w", [], initializer=tf.constant_initializer(0.5))
    _, y = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * w), [0, 1.0])
    loss = tf.square(y - 8.0)
    train = tf.train.GradientDescentOptimizer(0.002).minimize(loss)
    session.run(tf.global_variables_initializer())
    for _ in range(300):
        session.run(train)
    assert abs(session.run(w) - 2.0) < 1e-3


def test_minimize_in_a_branch(session):
    p, w = tf.placeholder(tf.bool, []), tf.get_variable("w", [], initializer=tf.constant_initializer(2.0))
    loss = w * w
    step = tf.cond(p, lambda: tf.train.GradientDescentOptimizer(0.25).minimize(loss), lambda: tf.no_op())
    session.run(tf.global_variables_initializer())
    session.run(step, {p: False})
    assert session.run(w) == 2.0
    session.run(step, {p: True})
    assert session.run(w) == 1.0


def test_minimize_with_slots_in_a_body(session):
    w = tf.get_variable("w", [], initializer=tf.constant_initializer(2.0))
    optimizer = tf.train.MomentumOptimizer(0.1, 0.5)

    def body(i):
        with tf.control_dependencies([optimizer.minimize(tf.square(w.read_value()), var_list=[w])]):
            return tf.identity(i) + 1

    loop = tf.while_loop(lambda i: i < 4, body, [0])
    session.run(tf.global_variables_initializer())
    session.run(loop)
    value, momentum = 2.0, 0.0
    for _ in range(4):
        momentum = 0.5 * momentum + 2 * value
        value -= 0.1 * momentum
    np.testing.assert_allclose(session.run(w), value, rtol=1e-6)


def test_gradients_taken_in_a_body_by_what_is_outside(session):
    w = tf.get_variable("w", [2], initializer=tf.constant_initializer([1.0, 2.0]))
    scale = w * 3.0
    xs = tf.constant([1.0, 2.0, 3.0])

    def body(i, total):
        loss = tf.reduce_sum(scale * scale * xs[i]) + tf.reduce_sum(w)
        d_w, d_scale = tf.gradients(loss, [w, scale])
        return i + 1, total + d_w + d_scale

    _, total = tf.while_loop(lambda i, t: i < 3, body, [0, tf.zeros([2])])
    session.run(tf.global_variables_initializer())
    # d_scale = 2 * scale * x, d_w = 3 * d_scale + 1
    scales, x_sum = np.float32([3, 6]), 6
    np.testing.assert_allclose(session.run(total), 4 * 2 * scales * x_sum + 3)
    assert tf.gradients(total, w)[0] is not None
