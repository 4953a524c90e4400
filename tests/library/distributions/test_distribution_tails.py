"""Distributions over extreme arguments, against SciPy's, and gradients through their samples."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

import tfray as tf
from tests.support.sessions import run

D = tf.distributions
W = np.float64


@pytest.fixture(autouse=True)
def seed(graph):
    tf.set_random_seed(5)


FAR = np.array([-1e3, -40.0, -20, -5, -1, -1e-9, 0, 1e-9, 0.5, 3, 20, 40, 1e3])
POSITIVE = np.array([1e-300, 1e-9, 0.5, 3, 20, 40, 700])
UNIT = np.array([1e-300, 1e-9, 0.3, 0.5, 0.999])
TAILS = {
    "Normal": (lambda: D.Normal(W(0.5), W(2.0)), stats.norm(0.5, 2), FAR),
    "Laplace": (lambda: D.Laplace(W(0.5), W(2.0)), stats.laplace(0.5, 2), FAR),
    "StudentT": (lambda: D.StudentT(W(3), W(0.5), W(2.0)), stats.t(3, 0.5, 2), FAR),
    "Uniform": (lambda: D.Uniform(W(-1), W(3.0)), stats.uniform(-1, 4), FAR[FAR != 3]),
    "Gamma": (lambda: D.Gamma(W(0.3), W(2.0)), stats.gamma(0.3, scale=0.5), POSITIVE),
    "Exponential": (lambda: D.Exponential(W(2.0)), stats.expon(scale=0.5), POSITIVE),
    "Beta": (lambda: D.Beta(W(0.3), W(2.0)), stats.beta(0.3, 2), UNIT),
}


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize("name", TAILS)
def test_tails(name):
    make, reference, x = TAILS[name]
    mine = make()
    pairs = [
        (mine.log_prob, reference.logpdf),
        (mine.cdf, reference.cdf),
        (mine.log_cdf, reference.logcdf),
        (mine.survival_function, reference.sf),
        (mine.log_survival_function, reference.logsf),
    ]
    found = run([function(x) for function, _ in pairs])
    for value, (function, wanted) in zip(found, pairs, strict=True):
        np.testing.assert_allclose(value, wanted(x), rtol=1e-9, atol=1e-16, err_msg=function.__name__)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["Normal", "Laplace"])
def test_logarithms_of_tails_have_gradients(kind, dtype):
    x = tf.constant([-200, -40, -20, -5, 0.5, 5, 20, 200], dtype)
    mine = getattr(D, kind)(dtype(0), dtype(1))
    slopes = run([tf.gradients(y, x)[0] for y in (mine.log_cdf(x), mine.log_survival_function(x))])
    value = np.array([-200, -40, -20, -5, 0.5, 5, 20, 200])
    if kind == "Normal":
        expected = [sign * np.sqrt(2 / np.pi) / special.erfcx(-sign * value / np.sqrt(2)) for sign in (1, -1)]
    else:
        below, above = stats.laplace.cdf(value), stats.laplace.sf(value)
        expected = stats.laplace.pdf(value) / below, -stats.laplace.pdf(value) / above
    for found, wanted in zip(slopes, expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=1e-37)


def test_what_is_not_a_number_stays_so():
    uniform = D.Uniform(0.0, [1.0, 2.0])
    prob, log_prob, cdf = run([uniform.prob(np.nan), uniform.log_prob(np.nan), uniform.cdf(np.nan)])
    assert np.isnan([prob, log_prob, cdf]).all()


def test_quantiles():
    p = np.array([0, 1e-300, 1e-9, 0.3, 0.5, 0.999, 1])
    np.testing.assert_allclose(run(D.Normal(W(0.5), W(2)).quantile(p)), stats.norm(0.5, 2).ppf(p), rtol=1e-12)


def test_outcomes_that_cannot_be():
    sure = D.Bernoulli(probs=np.array([0.0, 1.0]))
    log_prob, entropy = run([sure.log_prob([[0], [1]]), sure.entropy()])
    assert log_prob.tolist() == [[0, -np.inf], [-np.inf, 0]] and entropy.tolist() == [0, 0]
    far = D.Bernoulli(logits=np.array([-800.0, 40.0]))
    np.testing.assert_allclose(run(far.log_prob([[0], [1]])), [[0, -40], [-800, -np.exp(-40)]], rtol=1e-12, atol=1e-300)


def test_draws_from_gamma_distributions_of_small_shape_are_never_zero():
    # TensorFlow's least value is that of a normal number too.
    for kind in (np.float32, np.float64):
        draws = run(tf.random_gamma([5000], kind(1e-3), dtype=kind, seed=1))
        assert draws.min() == np.finfo(kind).tiny and np.isfinite(np.log(draws)).all()
    drawn = run([D.Beta(0.01, 0.01).sample(2000), D.Dirichlet([0.01, 0.01, 0.01]).sample(2000)])
    assert all(np.isfinite(values).all() for values in drawn)


# -- gradients through samples -------------------------------------------------------------------------


def _moments(samples):
    return [tf.reduce_mean(samples, 0), tf.reduce_mean(tf.square(samples), 0)]


@pytest.mark.parametrize(
    ("make", "parameters", "moments"),
    [
        (D.Normal, [0.5, 1.5], lambda a, b: (a, a * a + b * b)),
        (D.Laplace, [0.5, 1.5], lambda a, b: (a, a * a + 2 * b * b)),
        (D.Uniform, [0.5, 1.5], lambda a, b: ((a + b) / 2, (a * a + a * b + b * b) / 3)),
        (D.Exponential, [1.5], lambda a: (1 / a, 2 / (a * a))),
        (D.Gamma, [2.5, 1.5], lambda a, b: (a / b, a * (a + 1) / (b * b))),
        (D.Gamma, [0.3, 1.5], lambda a, b: (a / b, a * (a + 1) / (b * b))),
        (D.Beta, [0.8, 1.5], lambda a, b: (a / (a + b), a * (a + 1) / ((a + b) * (a + b + 1)))),
        (D.StudentT, [9.0, 0.5, 1.5], lambda d, a, b: (a + 0 * d, a * a + b * b * d / (d - 2))),
    ],
)
def test_gradients_through_samples_are_those_of_the_moments(make, parameters, moments):
    tensors = [tf.constant(value, tf.float64) for value in parameters]
    samples = make(*tensors).sample(40000, seed=3)
    mine = [gradient for moment in _moments(samples) for gradient in tf.gradients(moment, tensors)]
    exact = [gradient for moment in moments(*tensors) for gradient in tf.gradients(moment, tensors)]
    pairs = [(a, b) for a, b in zip(mine, exact, strict=True) if b is not None]
    found = run(pairs)
    for value, wanted in found:
        assert value == pytest.approx(wanted, rel=0.08, abs=0.03)


def test_gradients_through_samples_of_vectors():
    concentration = tf.constant([0.5, 1.0, 3.0], tf.float64)
    mean = tf.reduce_mean(D.Dirichlet(concentration).sample(40000, seed=2), 0)
    exact = concentration / tf.reduce_sum(concentration)
    weights = np.array([1.0, -2, 3])
    found, wanted = run([tf.gradients(m * weights, concentration)[0] for m in (mean, exact)])
    np.testing.assert_allclose(found, wanted, rtol=0.05, atol=0.02)


def test_samples_of_classes_have_no_gradient():
    logits = tf.constant([0.5, 1.0])
    for mine in (
        D.Categorical(logits, dtype=tf.float32),
        D.Bernoulli(logits, dtype=tf.float32),
        D.Multinomial(3.0, logits),
    ):
        assert tf.gradients(mine.sample(2), logits) == [None]
        assert mine.reparameterization_type is D.NOT_REPARAMETERIZED


# -- counts --------------------------------------------------------------------------------------------


def test_dirichlet_multinomial():
    concentration = np.array([[1.5, 2.0, 4.0], [0.5, 3.0, 1.0]])
    totals = np.array([4.0, 7.0])
    mine = D.DirichletMultinomial(totals, concentration)
    references = [stats.dirichlet_multinomial(a, int(n)) for a, n in zip(concentration, totals, strict=True)]
    counts = np.array([[1.0, 0, 3], [2, 4, 1]])
    found = run([mine.mean(), mine.variance(), mine.covariance(), mine.log_prob(counts), mine.sample([5, 400], seed=1)])
    mean, variance, covariance, log_prob, samples = found
    for row, reference in enumerate(references):
        np.testing.assert_allclose(mean[row], reference.mean(), rtol=1e-9)
        np.testing.assert_allclose(variance[row], reference.var(), rtol=1e-9)
        np.testing.assert_allclose(covariance[row], reference.cov(), rtol=1e-9)
        assert log_prob[row] == pytest.approx(reference.logpmf(counts[row].astype(int)))
    assert samples.shape == (5, 400, 2, 3) and (samples.sum(-1) == totals).all()
    np.testing.assert_allclose(samples.mean((0, 1)), mean, atol=0.15)
    assert mine.batch_shape == [2] and mine.event_shape == [3]


def test_total_counts_broadcast_to_the_batch():
    mine = D.Multinomial(np.float32([[2], [5]]), probs=[[0.2, 0.8], [0.5, 0.5], [0.9, 0.1]])
    assert mine.batch_shape == [2, 3] and mine.sample(4).shape == [4, 2, 3, 2]
    assert (run(mine.sample(4)).sum(-1) == [[2], [5]]).all()
