"""tf.distributions, against SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import tfray as tf
from tests.support.gradient_check import check_gradients
from tests.support.sessions import run

ALPHA = 1e-3
D = tf.distributions
W = np.float64


A, B, C = np.array([[0.5], [2.5]]), np.array([1.5, 3.0, 0.7]), np.array([2.0, 3.5, 9.0])
SCIPY = {
    "Normal": stats.norm(A, B),
    "Uniform": stats.uniform(A, B + 0 * A),
    "Laplace": stats.laplace(A, B),
    "StudentT": stats.t(C, A, B),
    "Gamma": stats.gamma(A, scale=1 / B),
    "Exponential": stats.expon(scale=1 / B),
    "Beta": stats.beta(A, B),
}
MADE = {
    "Normal": lambda: D.Normal(A, B),
    "Uniform": lambda: D.Uniform(A, A + B),
    "Laplace": lambda: D.Laplace(A, B),
    "StudentT": lambda: D.StudentT(C, A, B),
    "Gamma": lambda: D.Gamma(A, B),
    "Exponential": lambda: D.Exponential(B),
    "Beta": lambda: D.Beta(A, B),
}
POINTS = np.array([0.1, 0.45, 0.8]), np.array([-1.0, 0.6, 4.0])


@pytest.mark.parametrize("name", MADE)
def test_functions_of_values(name):
    mine, reference = MADE[name](), SCIPY[name]
    values = POINTS[1 if name in ("Normal", "Uniform", "Laplace", "StudentT") else 0]
    found = run([mine.prob(values), mine.log_prob(values), mine.cdf(values), mine.survival_function(values)])
    with np.errstate(divide="ignore"):
        log_density = reference.logpdf(values)
    for value, expected in zip(
        found, [reference.pdf(values), log_density, reference.cdf(values), reference.sf(values)], strict=True
    ):
        np.testing.assert_allclose(value, np.broadcast_to(expected, value.shape), rtol=1e-9, atol=1e-12)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(run(mine.log_cdf(values)), np.log(found[2]), rtol=1e-9)
        np.testing.assert_allclose(run(mine.log_survival_function(values)), np.log(found[3]), rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("name", MADE)
def test_statistics(name):
    mine, reference = MADE[name](), SCIPY[name]
    found = run([mine.mean(), mine.variance(), mine.stddev(), mine.entropy()])
    expected = [reference.mean(), reference.var(), reference.std(), reference.entropy()]
    if name == "StudentT":
        expected[1] = np.where(C > 2, reference.var(), np.inf)
        expected[2] = np.sqrt(expected[1])
    for value, wanted in zip(found, expected, strict=True):
        shape = mine.batch_shape.as_list()
        np.testing.assert_allclose(np.broadcast_to(value, shape), np.broadcast_to(wanted, shape), rtol=1e-9)


@pytest.mark.parametrize("name", MADE)
def test_samples(name):
    mine, reference = MADE[name](), SCIPY[name]
    samples = mine.sample([2000, 2], seed=7)
    assert samples.shape == [2000, 2, *mine.batch_shape.as_list()]
    # Uniform by their own distribution function.
    quantiles = reference.cdf(run(samples)).reshape(4000, -1)
    for column in quantiles.T:
        assert stats.kstest(column, "uniform").pvalue > ALPHA
    assert mine.sample(seed=1).shape == mine.batch_shape and mine.sample(3).shape == [3, *mine.batch_shape.as_list()]
    assert mine.reparameterization_type == D.FULLY_REPARAMETERIZED


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: D.Normal(A, B).mode(), A + 0 * B),
        (lambda: D.Laplace(A, B).mode(), A + 0 * B),
        (lambda: D.StudentT(C, A, B).mode(), A),
        (lambda: D.Exponential(B).mode(), 0 * B),
        (lambda: D.Gamma(A, B).mode(), np.where(A > 1, (A - 1) / B, np.nan)),
        (lambda: D.Beta(A, B).mode(), np.where((A > 1) & (B > 1), (A - 1) / np.maximum(A + B - 2, 1e-9), np.nan)),
        (lambda: D.Bernoulli(probs=[0.2, 0.7]).mode(), [0, 1]),
        (lambda: D.Categorical(logits=[[0.1, 3.0], [2.0, 1]]).mode(), [1, 0]),
        (lambda: D.Dirichlet([[2.0, 3, 4], [0.5, 1, 2]]).mode(), [[1 / 6, 2 / 6, 3 / 6], [np.nan] * 3]),
        (lambda: D.StudentT([0.5, 1.5, 3.0], 0.0, 2.0).mean(), [np.nan, 0, 0]),
        (lambda: D.StudentT([0.5, 1.5, 3.0], 0.0, 2.0).variance(), [np.nan, np.inf, 12]),
    ],
)
def test_special_cases(make, expected):
    np.testing.assert_allclose(run(make()), expected, rtol=1e-6)


# -- discrete ------------------------------------------------------------------------------------------

LOGITS = np.array([[0.5, -1.0, 2.0], [0.0, 0.3, -0.4]])
PROBS = np.exp(LOGITS) / np.exp(LOGITS).sum(1, keepdims=True)


def test_bernoulli():
    p = np.array([0.1, 0.5, 0.9])
    for mine in (D.Bernoulli(probs=p), D.Bernoulli(logits=np.log(p / (1 - p)))):
        values = np.array([[0], [1]])
        found = run([mine.log_prob(values), mine.mean(), mine.variance(), mine.entropy(), mine.sample(4000, seed=1)])
        reference = stats.bernoulli(p)
        expected = [reference.logpmf(values), p, p * (1 - p), reference.entropy()]
        for value, wanted in zip(found, expected, strict=False):
            np.testing.assert_allclose(value, wanted, rtol=1e-9)
        assert found[-1].dtype == np.int32 and found[-1].shape == (4000, 3)
        np.testing.assert_allclose(found[-1].mean(0), p, atol=0.03)
    assert mine.reparameterization_type == D.NOT_REPARAMETERIZED


def test_categorical():
    for mine in (D.Categorical(logits=LOGITS), D.Categorical(probs=PROBS)):
        assert mine.batch_shape == [2] and mine.event_shape == []
        samples = mine.sample([3000, 2], seed=3)
        assert samples.shape == [3000, 2, 2]
        values = np.array([[0, 2], [1, 1], [2, 0]])
        found = run([samples, mine.log_prob(values), mine.prob(values), mine.entropy(), mine.cdf(values), mine.mode()])
        expected = np.take_along_axis(PROBS.T, values, 0)
        for column in range(2):
            counts = np.bincount(found[0][:, :, column].ravel(), minlength=3)
            assert stats.chisquare(counts, 6000 * PROBS[column]).pvalue > ALPHA
        np.testing.assert_allclose(found[1], np.log(expected), rtol=1e-9)
        np.testing.assert_allclose(found[2], expected, rtol=1e-9)
        np.testing.assert_allclose(found[3], -np.sum(PROBS * np.log(PROBS), 1), rtol=1e-9)
        # As in TensorFlow: the probability of less.
        below = np.take_along_axis(PROBS.cumsum(1).T, values, 0) - expected
        np.testing.assert_allclose(found[4], below, rtol=1e-9, atol=1e-15)


def test_a_class_that_cannot_be():
    mine = D.Categorical(probs=[0.5, 0.5, 0.0])
    found = run([mine.log_prob([0, 2]), mine.entropy()])
    assert found[0].tolist() == [pytest.approx(np.log(0.5)), -np.inf] and found[1] == pytest.approx(np.log(2))


def test_multinomial():
    counts = np.array([4.0, 7.0])
    mine = D.Multinomial(counts, logits=LOGITS)
    values = np.array([[1.0, 0, 3], [2, 4, 1]])
    samples = mine.sample(2000, seed=5)
    assert samples.shape == [2000, 2, 3]
    found, log_prob, mean, variance, covariance = run(
        [samples, mine.log_prob(values), mine.mean(), mine.variance(), mine.covariance()]
    )
    references = [stats.multinomial(int(n), p) for n, p in zip(counts, PROBS, strict=True)]
    np.testing.assert_allclose(log_prob, [r.logpmf(v) for r, v in zip(references, values, strict=True)], rtol=1e-6)
    np.testing.assert_allclose(mean, counts[:, None] * PROBS, rtol=1e-6)
    np.testing.assert_allclose(covariance, [r.cov() for r in references], rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(variance, [np.diag(r.cov()) for r in references], rtol=1e-6)
    assert (found.sum(-1) == counts).all()
    np.testing.assert_allclose(found.mean(0), mean, atol=0.12)


def test_dirichlet():
    concentration = np.array([[1.5, 2.0, 4.0], [0.5, 3.0, 1.0]])
    mine = D.Dirichlet(concentration)
    value = np.array([0.2, 0.3, 0.5])
    assert mine.batch_shape == [2] and mine.event_shape == [3]
    log_prob, entropy, mean, variance, covariance, samples = run(
        [
            mine.log_prob(value),
            mine.entropy(),
            mine.mean(),
            mine.variance(),
            mine.covariance(),
            mine.sample(4000, seed=2),
        ]
    )
    for row, each in enumerate(concentration):
        reference = stats.dirichlet(each)
        assert log_prob[row] == pytest.approx(reference.logpdf(value))
        assert entropy[row] == pytest.approx(reference.entropy())
        np.testing.assert_allclose(mean[row], reference.mean(), rtol=1e-9)
        np.testing.assert_allclose(variance[row], reference.var(), rtol=1e-9)
        np.testing.assert_allclose(covariance[row], reference.cov(), rtol=1e-9)
        rest = each.sum() - each[0]
        assert stats.kstest(samples[:, row, 0], stats.beta(each[0], rest).cdf).pvalue > ALPHA


# -- divergences and gradients -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (lambda: D.Normal(A, B), lambda: D.Normal(W(0.3), W(2.0))),
        (lambda: D.Laplace(A, B), lambda: D.Laplace(W(0.3), W(2.0))),
        (lambda: D.Uniform(A, A + B), lambda: D.Uniform(W(0.1), W(9.0))),
        (lambda: D.Gamma(A, B), lambda: D.Gamma(W(1.3), W(2.0))),
        (lambda: D.Exponential(B), lambda: D.Exponential(W(2.0))),
        (lambda: D.Beta(A, B), lambda: D.Beta(W(1.3), W(2.0))),
        (lambda: D.Bernoulli(probs=[0.2, 0.6]), lambda: D.Bernoulli(probs=[0.5, 0.3])),
        (lambda: D.Categorical(logits=LOGITS), lambda: D.Categorical(logits=LOGITS[::-1].copy())),
        (lambda: D.Dirichlet([1.5, 2.0, 4.0]), lambda: D.Dirichlet([2.0, 1.0, 3.0])),
    ],
)
def test_divergences(first, second):
    a, b = first(), second()
    samples = a.sample(20000, seed=11)
    difference = a.log_prob(samples) - b.log_prob(samples)
    exact, found, crossed, entropy = run([D.kl_divergence(a, b), difference, a.cross_entropy(b), a.entropy()])
    error = found.std(0) / np.sqrt(20000)
    assert (np.abs(found.mean(0) - exact) <= 5 * error + 1e-5).all()
    np.testing.assert_allclose(crossed, exact + entropy, rtol=1e-5)
    np.testing.assert_allclose(run(a.kl_divergence(a)), 0 * exact, atol=1e-6)


def test_divergence_of_one_that_does_not_cover_the_other():
    assert run(D.kl_divergence(D.Uniform(0.0, 2.0), D.Uniform(0.0, 1.0))) == np.inf


@pytest.mark.parametrize(
    ("make", "inputs", "value"),
    [
        (D.Normal, [A, B], 0.7),
        (D.Laplace, [A, B], 0.7),
        (D.StudentT, [C, A, B], 0.7),
        (D.Gamma, [A, B], 0.7),
        (D.Exponential, [B], 0.7),
        (D.Beta, [A, B], 0.7),
        (lambda logits: D.Categorical(logits=logits), [LOGITS], [1, 2]),
        (lambda logits: D.Bernoulli(logits=logits), [LOGITS], 1),
        (D.Dirichlet, [np.array([1.5, 2, 4])], [0.2, 0.3, 0.5]),
    ],
)
def test_gradients_of_log_probabilities(make, inputs, value):
    check_gradients(lambda *tensors: make(*tensors).log_prob(value), inputs, tolerance=1e-6)


def test_gradients_flow_through_samples():
    loc, scale = tf.constant(A), tf.constant(B)
    samples = D.Normal(loc, scale).sample(5000, seed=1)
    d_loc, d_scale = run(tf.gradients(tf.reduce_mean(tf.square(samples), 0), [loc, scale]))
    np.testing.assert_allclose(d_loc, 2 * A * 3, rtol=0.15)
    np.testing.assert_allclose(d_scale, 2 * B * 2, rtol=0.1)


# -- everything else -----------------------------------------------------------------------------------


def test_defaults_and_names():
    normal = D.Normal(0.0, 1.0, name="prior")
    assert normal.dtype is tf.float32 and normal.log_prob(0.5).op.name.startswith("prior/log_prob/")
    assert "batch_shape=()" in repr(normal) and normal.name == "prior/"
    assert D.Normal(np.float64(0), W(1)).dtype is tf.float64
    samples = D.Normal(tf.placeholder(tf.float32, [None]), 1.0).sample(tf.constant([3, 2]))
    assert samples.shape.rank in (None, 3)
    assert run(D.Uniform(1.0, 3.0).range()) == 2
    assert tf.contrib.distributions.Normal is D.Normal


def test_batches_of_unknown_shape():
    loc = tf.placeholder(tf.float32)
    normal = D.Normal(loc, [1.0, 2.0])
    with tf.Session() as session:
        found = session.run([normal.sample(3), normal.batch_shape_tensor()], {loc: [[0.0], [1.0]]})
    assert found[0].shape == (3, 2, 2) and found[1].tolist() == [2, 2]


def test_what_is_not_known_is_said():
    with pytest.raises(NotImplementedError, match="cdf is not implemented: Multinomial"):
        D.Multinomial(1.0, probs=[0.5, 0.5]).cdf([1.0, 0])
    with pytest.raises(
        NotImplementedError, match="registered for distribution_a type Normal and distribution_b type Gamma"
    ):
        D.kl_divergence(D.Normal(0.0, 1.0), D.Gamma(1.0, 1.0))
    with pytest.raises(ValueError, match="either logits or probs"):
        D.Bernoulli()
    with pytest.raises(ValueError, match="already been registered"):
        D.RegisterKL(D.Normal, D.Normal)(lambda a, b: None)
