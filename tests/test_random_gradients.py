"""Gradients of random programs, with branches and loops in them, against differences."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tfray as tf

SIZE = 3

UNARY = {
    "tanh": tf.tanh,
    "sin": tf.sin,
    "sigmoid": tf.sigmoid,
    "softplus": lambda x: tf.nn.softplus(x),
    "square": lambda x: 0.3 * tf.square(x),
    "transpose": tf.transpose,
    "cumsum": lambda x: 0.5 * tf.cumsum(x, 1),
    "softmax": lambda x: tf.nn.softmax(x),
    "center": lambda x: x - tf.reduce_mean(x, 0, keepdims=True),
    "gather": lambda x: tf.gather(x, [2, 0, 0]),
    "stack": lambda x: tf.stack(tf.unstack(x)[::-1]),
    "slice and pad": lambda x: tf.pad(x[1:, :2], [[1, 0], [0, 1]]),
    "norm": lambda x: tf.nn.l2_normalize(x + 3.0, 1),
}
BINARY = {
    "add": tf.add,
    "multiply": lambda x, y: 0.5 * x * y,
    "matmul": lambda x, y: 0.3 * tf.matmul(x, y),
    "concat": lambda x, y: tf.concat([x[:, :1], y[:, 1:]], 1),
    "atan2": lambda x, y: tf.atan2(x, tf.square(y) + 1.0),
    "divide": lambda x, y: x / (tf.square(y) + 1.0),
}


def _steps(deeper):
    single = st.tuples(st.sampled_from(sorted(UNARY)), st.integers(0, 9))
    double = st.tuples(st.sampled_from(sorted(BINARY)), st.integers(0, 9), st.integers(0, 9))
    if not deeper:
        return st.lists(st.one_of(single, double), min_size=1, max_size=4)
    inner = _steps(deeper - 1)
    branch = st.tuples(st.just("cond"), st.integers(0, 9), inner, inner)
    loop = st.tuples(st.just("while"), st.integers(0, 9), st.integers(0, 3), inner)
    scan = st.tuples(st.just("scan"), st.integers(0, 9), st.sampled_from(sorted(UNARY)))
    return st.lists(st.one_of(single, double, branch, loop, scan), min_size=1, max_size=4)


PROGRAMS = _steps(2)


def apply(steps, values):
    """The value of the last of `steps`, each of which uses values made before it."""
    values = list(values)
    for kind, first, *rest in steps:
        x = values[first % len(values)]
        values.append(_step(kind, x, rest, values))
    return values[-1]


def _step(kind, x, rest, values):
    if kind in UNARY:
        return UNARY[kind](x)
    if kind in BINARY:
        return BINARY[kind](x, values[rest[0] % len(values)])
    if kind == "cond":
        then, orelse = rest
        return tf.cond(x[0, 0] > 0, lambda: apply(then, [*values, x]), lambda: apply(orelse, [*values, x]))
    if kind == "while":
        turns, body = rest
        return tf.while_loop(
            lambda i, carried: i < turns, lambda i, carried: (i + 1, apply(body, [*values, carried])), [0, x]
        )[1]
    rows = tf.scan(lambda carried, row: tf.tanh(carried + row), UNARY[rest[0]](x))
    return tf.reshape(rows, [SIZE, SIZE])


@given(PROGRAMS, st.integers(0, 1000))
@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_gradients_of_random_programs(steps, seed):
    generator = np.random.default_rng(seed)
    values = [generator.uniform(-1, 1, (SIZE, SIZE)) for _ in range(2)]
    directions = [generator.normal(size=(SIZE, SIZE)) for _ in values]
    weights = generator.normal(size=(SIZE, SIZE))
    with tf.Graph().as_default(), tf.Session() as session:
        inputs = [tf.placeholder(tf.float64, [SIZE, SIZE]) for _ in values]
        result = tf.reduce_sum(apply(steps, inputs) * weights)
        gradients = tf.gradients(result, inputs, unconnected_gradients=tf.UnconnectedGradients.ZERO)
        gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]
        slope = sum(tf.reduce_sum(g * d) for g, d in zip(gradients, directions, strict=True))
        found = session.run(slope, dict(zip(inputs, values, strict=True)))

        def along(step):
            moved = [value + step * direction for value, direction in zip(values, directions, strict=True)]
            return session.run(result, dict(zip(inputs, moved, strict=True)))

        estimates = [(along(h) - along(-h)) / (2 * h) for h in (1e-5, 1e-6)]
        # Where a choice turns on a value that is nearly 0, differences estimate nothing.
        if np.isclose(*estimates, rtol=1e-3, atol=1e-5):
            np.testing.assert_allclose(found, estimates[0], rtol=1e-4, atol=1e-5)
