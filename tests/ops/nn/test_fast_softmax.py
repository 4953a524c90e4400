"""Softmax and cross entropies by compiled kernels: against NumPy's in double precision, for rows of every length."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tfray.ops.kernels import compiled_rows, compiling

pytestmark = pytest.mark.skipif(not compiling.can_compile(), reason="numba is not installed")

SHAPES = [(1, 16_385), (3000, 7), (20_000, 1), (17, 1000), (5, 8, 511), (1100, 16), (400, 65)]

FUNCTIONS = {
    "softmax": lambda x, wanted: tf.nn.softmax(x),
    "log_softmax": lambda x, wanted: tf.nn.log_softmax(x),
    "cross_entropy": lambda x, wanted: tf.nn.softmax_cross_entropy_with_logits_v2(
        labels=tf.nn.softmax(wanted), logits=x
    ),
    "sparse": lambda x, wanted: tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.argmax(wanted, -1), logits=x),
}


def computed(name, x, dtype=np.float32):
    """The result and the gradient of the logits."""
    random = np.random.default_rng(1)
    wanted = random.normal(size=x.shape).astype(np.float32)
    with tf.Graph().as_default(), tf.device("/cpu:0"), tf.Session() as session:
        logits = tf.placeholder(dtype, x.shape)
        y = FUNCTIONS[name](logits, tf.constant(wanted.astype(dtype)))
        d_y = random.normal(size=y.shape).astype(np.float32)
        gradient = tf.gradients(y, logits, tf.constant(d_y.astype(dtype)))[0]
        return session.run([y, gradient], {logits: x})


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_equals_double_precision(name, shape):
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32) * 5
    for found, wanted in zip(computed(name, x), computed(name, x, np.float64), strict=True):
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-6)


def test_the_greatest_and_least_logits_are_precise():
    x = np.random.default_rng(0).uniform(-200, 0, (40, 777)).astype(np.float32)
    x[:, 5] = 1000
    x[0, 6] = -3e38
    exact = computed("softmax", x, np.float64)[0]
    np.testing.assert_allclose(computed("softmax", x)[0], exact, rtol=1e-6, atol=1e-37)
    np.testing.assert_allclose(computed("log_softmax", x)[0], computed("log_softmax", x, np.float64)[0], rtol=1e-6)


@pytest.mark.parametrize("columns", [7, 160, 777])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_not_finite_gives_what_numpy_gives(name, columns, monkeypatch):
    x = np.random.default_rng(0).normal(size=(40_000 // columns, columns)).astype(np.float32)
    x[0, 3], x[1, columns - 1], x[2, 0], x[3], x[4] = np.nan, np.inf, -np.inf, -np.inf, np.inf
    x[5, 2], x[5, columns - 1], x[6] = np.inf, -np.inf, np.nan
    compiled = computed(name, x)
    monkeypatch.setattr(compiled_rows, "can_compile", lambda: False)
    for one, other in zip(compiled, computed(name, x), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-6)


def test_a_wrong_label_is_refused():
    x = np.zeros((40, 1000), np.float32)
    with tf.Graph().as_default(), tf.device("/cpu:0"), tf.Session() as session:
        labels = tf.placeholder(tf.int32, [40])
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=tf.constant(x))
        for label in (-1, 1000):
            with pytest.raises(tf.errors.InvalidArgumentError, match=f"label {label}"):
                session.run(losses, {labels: [label] * 40})


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_number_of_threads_changes_no_bit(name, monkeypatch):
    x = np.random.default_rng(0).normal(size=(600, 777)).astype(np.float32)
    results = []
    for threads in (1, 2):
        monkeypatch.setattr(compiling, "free_helpers", lambda threads=threads: threads - 1 or None)
        results.append(computed(name, x))
    for one, two in zip(*results, strict=True):
        np.testing.assert_array_equal(one, two)
