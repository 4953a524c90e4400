"""Random numbers from a seed that is a tensor."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import tfray as tf

ALPHA = 1e-3


MAKE = {
    "uniform": (lambda seed, shape: tf.random.stateless_uniform(shape, seed, -1.0, 3.0), stats.uniform(-1, 4)),
    "normal": (lambda seed, shape: tf.random.stateless_normal(shape, seed, 2.0, 3.0), stats.norm(2, 3)),
    "truncated": (
        lambda seed, shape: tf.random.stateless_truncated_normal(shape, seed, 2.0, 3.0),
        stats.truncnorm(-2, 2, 2, 3),
    ),
}


@pytest.mark.parametrize("name", MAKE)
@pytest.mark.parametrize("shape", [[], [3000], [30, 10000]])
def test_the_seed_determines_the_numbers(name, shape):
    make, distribution = MAKE[name]
    seed = tf.placeholder(tf.int64, [2])
    numbers = make(seed, shape)
    assert numbers.shape == shape
    with tf.Session() as session:
        first, again, other, swapped = (session.run(numbers, {seed: s}) for s in ([0, 0], [0, 0], [0, 1], [1, 0]))
    with tf.Graph().as_default(), tf.Session() as session:
        elsewhere = session.run(make(tf.constant([0, 0]), shape))
    assert (first == again).all() and (first == elsewhere).all()
    assert (first != other).any() and (other != swapped).any()
    if np.size(first) > 1:
        assert stats.kstest(first.reshape(-1)[:3000], distribution.cdf).pvalue > ALPHA
        assert abs(np.corrcoef(first.reshape(-1), other.reshape(-1))[0, 1]) < 0.06


@pytest.mark.parametrize("dtype", [tf.int32, tf.int64])
def test_integers(dtype):
    with tf.Session() as session:
        numbers = session.run(tf.random.stateless_uniform([5000], [3, -4], 2, 7, dtype))
    assert numbers.dtype == dtype.as_numpy_dtype
    assert stats.chisquare(np.bincount(numbers)[2:]).pvalue > ALPHA and numbers.max() == 6


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16, tf.float64])
def test_other_floats(dtype):
    with tf.Session() as session:
        for make in (tf.random.stateless_uniform, tf.random.stateless_normal, tf.random.stateless_truncated_normal):
            assert session.run(make([3], [1, 2], dtype=dtype)).dtype == dtype.as_numpy_dtype


def test_classes():
    logits = np.log([[0.1, 0.2, 0.7], [0.5, 0.5, 1e-9]])
    draws = [
        tf.random.stateless_categorical(logits, 4000, [5, 6]),
        tf.random.stateless_multinomial(logits, 4000, [5, 6], output_dtype=tf.int32),
    ]
    assert draws[0].shape == [2, 4000]
    with tf.Session() as session:
        first, second = session.run(draws)
    assert (first == second).all() and first.dtype == np.int64 and second.dtype == np.int32
    assert stats.chisquare(np.bincount(first[0]), [400, 800, 2800]).pvalue > ALPHA
    assert set(first[1]) == {0, 1}


@pytest.mark.parametrize(
    ("build", "match"),
    [
        (lambda seed: tf.random.stateless_uniform([2], seed), "vector of two|incompatible"),
        (lambda seed: tf.random.stateless_uniform([2], [1, 2], 5, 5, tf.int32), "Need minval < maxval, got 5 >= 5"),
        (lambda seed: tf.random.stateless_multinomial(np.zeros((2, 0)), 3, [1, 2]), "num_classes should be positive"),
    ],
)
def test_refused(build, match):
    seed = tf.placeholder(tf.int64)
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match=match):
        session.run(build(seed), {seed: [1, 2, 3]})


def test_misuse():
    with pytest.raises(ValueError, match="maxval"):
        tf.random.stateless_uniform([2], [1, 2], dtype=tf.int32)
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.random.stateless_uniform([2], [1, 2, 3])
