"""Distributions that are told more with each call, and those whose elements follow from earlier ones."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf

D = tf.contrib.distributions
WEIGHTS = np.float32([[0, 0, 0], [0.5, 0, 0], [-0.3, 0.8, 0]])


def run(values):
    with tf.Session() as session:
        return session.run(values)


class Chosen(D.bijectors.ConditionalBijector):
    """Adds one of two numbers."""

    def __init__(self):
        super().__init__(is_constant_jacobian=True, forward_min_event_ndims=0)

    def _forward(self, x, which):
        return x + tf.gather([-100.0, 100.0], which)

    def _inverse(self, y, which):
        return y - tf.gather([-100.0, 100.0], which)

    def _inverse_log_det_jacobian(self, y, which=None):
        return tf.zeros_like(y)


class Shifted(D.ConditionalDistribution):
    """A uniform distribution of width 1 whose place is told with each call."""

    def __init__(self):
        super().__init__(tf.float32, D.FULLY_REPARAMETERIZED, False, True)

    def _batch_shape(self):
        return []

    def _event_shape(self):
        return []

    def _sample_n(self, n, seed=None, at=0.0):
        return at + tf.random_uniform([n], seed=seed)

    def _prob(self, value, at=0.0):
        return tf.to_float((value >= at) & (value < at + 1))

    def _cdf(self, value, at=0.0):
        return tf.clip_by_value(value - at, 0.0, 1.0)


def test_what_a_call_is_told_goes_to_the_method():
    shifted = Shifted()
    samples = shifted.sample(100, seed=1, at=5.0)
    values = [shifted.prob(5.5, at=5.0), shifted.prob(5.5), shifted.log_prob(5.5, at=5.0), shifted.cdf(5.25, at=5.0)]
    values += [shifted.survival_function(5.25, at=5.0), shifted.log_survival_function(0.5), shifted.log_cdf(0.5)]
    samples, values = run([samples, values])
    assert np.all((samples >= 5) & (samples < 6))
    np.testing.assert_allclose(values, [1, 0, 0, 0.25, 0.75, np.log(0.5), np.log(0.5)])
    with pytest.raises(TypeError, match="elsewhere"):
        shifted.prob(5.5, elsewhere=1)
    with pytest.raises(NotImplementedError):
        shifted.quantile(0.5, at=1.0)


def test_images_under_a_map_that_is_told_more():
    normal = D.ConditionalTransformedDistribution(D.Normal(0.0, 1.0), Chosen())
    which = tf.constant([0, 1, 0, 0, 1])
    samples = normal.sample(5, seed=3, bijector_kwargs={"which": which})
    density = normal.log_prob(samples, bijector_kwargs={"which": which})
    cdf = normal.cdf([100.0], bijector_kwargs={"which": [1]})
    samples, density, cdf = run([samples, density, cdf])
    origins = samples - [-100, 100, -100, -100, 100]
    assert np.all(np.abs(origins) < 10)
    np.testing.assert_allclose(density, -0.5 * origins**2 - 0.5 * np.log(2 * np.pi), rtol=1e-4)
    np.testing.assert_allclose(cdf, [0.5])
    told = D.ConditionalTransformedDistribution(Shifted(), D.bijectors.AffineScalar(scale=2.0))
    np.testing.assert_allclose(run(told.prob([2.5, 0.5], distribution_kwargs={"at": 1.0})), [0.5, 0])
    with pytest.raises(TypeError, match="which"):
        normal.sample(5, which=which)


def test_a_map_remembers_under_the_same_conditions():
    chosen, which = Chosen(), tf.constant([1])
    x = tf.constant([1.0])
    y = chosen.forward(x, which=which)
    assert chosen.inverse(y, which=which) is x
    assert run(chosen.inverse(y, which=[0])).tolist() == [201]
    assert run(chosen.forward_log_det_jacobian(x, 0, which=which)).tolist() == [0]


def before(x=None):
    """Each element about a sum of those before it."""
    place = tf.zeros([3]) if x is None else tf.tensordot(x, WEIGHTS.T, 1)
    return D.Independent(D.Normal(place, 0.5), 1)


@pytest.mark.parametrize("start", [None, np.zeros(3, np.float32)])
def test_autoregressive_samples_have_their_density(start):
    vectors = D.Autoregressive(before, None if start is None else tf.constant(start))
    samples = vectors.sample(20000, seed=4)
    samples, density = run([samples, vectors.log_prob(samples)])
    noise = samples - samples @ WEIGHTS.T  # independent, as the matrix has zeros in and above its diagonal
    np.testing.assert_allclose(np.cov(noise.T), 0.25 * np.eye(3), atol=0.01)
    expected = np.sum(-2 * noise**2 - 0.5 * np.log(2 * np.pi) - np.log(0.5), 1)
    np.testing.assert_allclose(density, expected, rtol=1e-3, atol=1e-3)
    assert vectors.event_shape == [3] and vectors.batch_shape == [] and vectors.num_steps == 3


def test_steps_of_autoregressive_samples_are_counted():
    with pytest.raises(ValueError, match="at least 1"):
        D.Autoregressive(before, num_steps=0)
    with pytest.raises(ValueError, match="fully known"):
        D.Autoregressive(lambda: D.Independent(D.Normal(tf.placeholder(tf.float32, [None]), 1.0), 1))


@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize(("center", "normalize", "lags"), [(True, True, None), (False, False, 2), (True, False, 9)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
def test_auto_correlation(axis, center, normalize, lags, dtype):
    x = np.random.default_rng(0).normal(size=(4, 5)).astype(dtype)
    if dtype is np.complex64:
        x += 1j * x[::-1]
    rows = np.moveaxis(x, axis, -1)
    rows = rows - rows.mean(-1, keepdims=True) * center
    size = rows.shape[-1]
    count = size if lags is None else min(lags + 1, size)
    sums = [np.sum(rows[:, lag:] * rows[:, : size - lag].conj(), 1) / (size - lag) for lag in range(count)]
    expected = np.stack(sums, -1)
    expected = np.moveaxis(expected / expected[:, :1] if normalize else expected, -1, axis)
    found = run(D.auto_correlation(x, axis, lags, center, normalize))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="max_lags"):
        D.auto_correlation(x, max_lags=-1)
