"""Distributions of vectors and mixtures, against SciPy's and NumPy written plainly."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import tfray as tf
from tests.support.gradient_check import check_gradients
from tests.support.sessions import run

D = tf.contrib.distributions
RANDOM = np.random.default_rng(0)
LOC = RANDOM.normal(size=(2, 3))
DIAG = np.array([0.5, 1.5, -2.0])
TRIL = np.tril(RANDOM.normal(size=(2, 3, 3))) + 2 * np.eye(3)
COVARIANCE = TRIL @ TRIL.swapaxes(-1, -2)
VALUES = RANDOM.normal(size=(4, 2, 3))
SOFTPLUS = np.log1p(np.exp(DIAG))
WITH_MULTIPLIER = np.stack([np.eye(3) * (DIAG + 3.0) ** 2, np.eye(3) * (DIAG + 4.0) ** 2])

NORMAL = {
    "diagonal": (lambda: D.MultivariateNormalDiag(LOC, DIAG), [np.diag(DIAG**2)] * 2),
    "no scale": (lambda: D.MultivariateNormalDiag(LOC), [np.eye(3)] * 2),
    "multiplier": (lambda: D.MultivariateNormalDiag(LOC, DIAG, np.array([3.0, 4.0])), WITH_MULTIPLIER),
    "multiplier alone": (lambda: D.MultivariateNormalDiag(LOC, None, W(3)), [np.eye(3) * 9] * 2),
    "softplus": (lambda: D.MultivariateNormalDiagWithSoftplusScale(LOC, DIAG), [np.diag(SOFTPLUS**2)] * 2),
    "triangle": (lambda: D.MultivariateNormalTriL(LOC, TRIL + np.triu(np.ones((3, 3)), 1)), COVARIANCE),
    "one triangle": (lambda: D.MultivariateNormalTriL(LOC, TRIL[0]), COVARIANCE[[0, 0]]),
    "covariance": (lambda: D.MultivariateNormalFullCovariance(LOC, COVARIANCE), COVARIANCE),
    "no covariance": (lambda: D.MultivariateNormalFullCovariance(LOC), [np.eye(3)] * 2),
}
W = np.float64


@pytest.mark.parametrize("name", NORMAL)
def test_normal_vectors(name):
    build, covariance = NORMAL[name]
    mine = build()
    references = [stats.multivariate_normal(LOC[i], covariance[i]) for i in range(2)]
    assert (mine.batch_shape, mine.event_shape) == ([2], [3])
    density, entropy, mean, found, variance, stddev = run(
        [mine.log_prob(VALUES), mine.entropy(), mine.mean(), mine.covariance(), mine.variance(), mine.stddev()]
    )
    np.testing.assert_allclose(density, [[r.logpdf(v) for r, v in zip(references, row, strict=True)] for row in VALUES])
    np.testing.assert_allclose(entropy, [r.entropy() for r in references])
    np.testing.assert_allclose(mean, LOC)
    np.testing.assert_allclose(found, covariance, atol=1e-12)
    np.testing.assert_allclose(variance, np.diagonal(covariance, axis1=1, axis2=2))
    np.testing.assert_allclose(stddev, np.sqrt(variance))
    samples = mine.sample([3, 2000], seed=5)
    assert samples.shape == [3, 2000, 2, 3]
    drawn = run(samples).reshape(6000, 2, 3)
    np.testing.assert_allclose(drawn.mean(0), LOC, atol=0.25)
    for i in range(2):
        np.testing.assert_allclose(np.cov(drawn[:, i].T), covariance[i], atol=0.08 * np.max(covariance[i]))


def kl_of_normal(mean, covariance, other_mean, other):
    ratio, moved = np.linalg.solve(other, covariance), other_mean - mean
    log_ratio = np.linalg.slogdet(other)[1] - np.linalg.slogdet(covariance)[1]
    return 0.5 * (np.trace(ratio) - len(mean) + moved @ np.linalg.solve(other, moved) + log_ratio)


@pytest.mark.parametrize("name", NORMAL)
@pytest.mark.parametrize("other", ["diagonal", "triangle"])
def test_divergence_of_normal_vectors(name, other):
    (build, covariance), (build_other, other_covariance) = NORMAL[name], NORMAL[other]
    found = run(D.kl_divergence(build(), build_other().copy(loc=LOC + 1)))
    expected = [kl_of_normal(LOC[i], covariance[i], LOC[i] + 1, other_covariance[i]) for i in range(2)]
    np.testing.assert_allclose(found, expected)


def test_samples_and_divergences_have_gradients():
    other = LOC[::-1] + 1
    check_gradients(
        lambda *tensors: D.kl_divergence(D.MultivariateNormalDiag(*tensors), D.MultivariateNormalTriL(other, TRIL)),
        [LOC, np.abs(DIAG)],
        tolerance=1e-6,
    )
    check_gradients(lambda *tensors: D.MultivariateNormalTriL(*tensors).log_prob(VALUES), [LOC, TRIL], tolerance=1e-6)
    loc, diag = tf.constant(LOC), tf.constant(DIAG)
    assert None not in tf.gradients(D.MultivariateNormalDiag(loc, diag).sample(4), [loc, diag])


def test_independent_distributions():
    scale = np.abs(RANDOM.normal(size=(2, 3))) + 0.5
    inner = D.Normal(LOC, scale)
    mine = D.Independent(inner, 1)
    assert (mine.batch_shape, mine.event_shape) == ([2], [3])
    assert mine.name.startswith("IndependentNormal")
    log_prob, entropy, mean, shape, of_event = run(
        [mine.log_prob(VALUES), mine.entropy(), mine.mean(), mine.batch_shape_tensor(), mine.event_shape_tensor()]
    )
    np.testing.assert_allclose(log_prob, stats.norm(LOC, scale).logpdf(VALUES).sum(-1))
    np.testing.assert_allclose(entropy, stats.norm(LOC, scale).entropy().sum(-1))
    np.testing.assert_allclose(mean, LOC)
    assert (list(shape), list(of_event)) == ([2], [3])
    assert mine.sample(5).shape == [5, 2, 3]
    other = D.Independent(D.Normal(W(0), np.ones((2, 3))))  # all dimensions but the first
    found, expected = run([D.kl_divergence(mine, other), D.kl_divergence(inner, D.Normal(W(0), W(1)))])
    np.testing.assert_allclose(found, expected.sum(-1))
    assert D.Independent(inner, 2).log_prob(VALUES).shape == [4]
    with pytest.raises(ValueError, match="cannot exceed"):
        D.Independent(inner, 3)
    with pytest.raises(ValueError, match="Event shapes do not match"):
        D.kl_divergence(mine, D.Independent(inner, 2))
    with pytest.raises(NotImplementedError, match="different event shapes"):
        D.kl_divergence(
            D.Independent(D.Normal(LOC[0], scale[0]), 1), D.Independent(D.MultivariateNormalDiag(LOC[0], scale[0]), 0)
        )
    fed = tf.placeholder(tf.float64)
    unknown = D.Independent(D.Normal(fed, W(1)))
    with tf.Session() as session:
        shapes = session.run([unknown.batch_shape_tensor(), unknown.event_shape_tensor()], {fed: np.ones((2, 3, 4))})
        assert [each.tolist() for each in shapes] == [[2], [3, 4]]
        of_parts = stats.norm(np.ones((2, 3, 4)), 1).logpdf(np.zeros((5, 2, 3, 4)))
        found = session.run(unknown.log_prob(np.zeros((5, 2, 3, 4))), {fed: np.ones((2, 3, 4))})
        np.testing.assert_allclose(found, of_parts.sum((-2, -1)))


PROBS = np.array([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]])


def test_one_hot_vectors():
    mine = D.OneHotCategorical(probs=PROBS, dtype=tf.float32)
    vectors = np.eye(3, dtype=np.float32)[:, None].repeat(2, 1)
    names = ("entropy", "mean", "variance", "covariance", "mode")
    log_prob, *found = run([mine.log_prob(vectors), *(getattr(mine, name)() for name in names)])
    np.testing.assert_allclose(log_prob, np.log(PROBS).T)
    expected = {
        "entropy": -(PROBS * np.log(PROBS)).sum(-1),
        "mean": PROBS,
        "variance": PROBS * (1 - PROBS),
        "covariance": [np.diag(p) - np.outer(p, p) for p in PROBS],
        "mode": [[0, 0, 1], [1, 0, 0]],
    }
    for name, value in zip(names, found, strict=True):
        np.testing.assert_allclose(value, expected[name], err_msg=name)
    drawn = run(mine.sample([4000], seed=3))
    assert drawn.dtype == np.float32
    assert drawn.shape == (4000, 2, 3)
    assert set(drawn.sum(-1).ravel()) == {1.0}
    np.testing.assert_allclose(drawn.mean(0), PROBS, atol=0.03)
    divergence = run(D.kl_divergence(mine, D.OneHotCategorical(probs=PROBS[::-1])))
    np.testing.assert_allclose(divergence, (PROBS * np.log(PROBS / PROBS[::-1])).sum(-1))


def test_relaxed_one_hot_vectors():
    mine = D.RelaxedOneHotCategorical(W(0.4), probs=PROBS)
    drawn = run(mine.sample([4000], seed=3))
    np.testing.assert_allclose(drawn.sum(-1), 1)
    largest = np.eye(3)[drawn.argmax(-1)]
    np.testing.assert_allclose(largest.mean(0), PROBS, atol=0.03)  # whatever the temperature
    x = drawn[0]
    # The density of Maddison et al. and of Jang et al.
    weights = PROBS * x ** (-0.4 - 1)
    expected = np.log(2 * 0.4**2) + np.log(weights).sum(-1) - 3 * np.log((PROBS * x**-0.4).sum(-1))
    np.testing.assert_allclose(run(mine.log_prob(x)), expected)
    temperature, logits = tf.constant(W(1.0)), tf.constant(np.log(PROBS))
    assert None not in tf.gradients(D.RelaxedOneHotCategorical(temperature, logits).sample(), [temperature, logits])


MIXED = {
    "one kind": lambda: D.MixtureSameFamily(D.Categorical(probs=PROBS), D.Normal(LOC, np.abs(LOC) + 0.3)),
    "any kinds": lambda: D.Mixture(
        D.Categorical(probs=PROBS), [D.Normal(LOC[:, i], np.abs(LOC[:, i]) + 0.3) for i in range(3)]
    ),
}


@pytest.mark.parametrize("name", MIXED)
def test_mixtures(name):
    mine, parts = MIXED[name](), stats.norm(LOC, np.abs(LOC) + 0.3)
    assert (mine.batch_shape, mine.event_shape) == ([2], [])
    prob, mean, variance = run([mine.prob(VALUES[..., 0]), mine.mean(), mine.variance()])
    np.testing.assert_allclose(prob, (PROBS * parts.pdf(VALUES[..., :1])).sum(-1))
    np.testing.assert_allclose(mean, (PROBS * LOC).sum(-1))
    np.testing.assert_allclose(variance, (PROBS * (parts.var() + LOC**2)).sum(-1) - mean**2)
    samples = mine.sample([50, 80], seed=4)
    assert samples.shape == [50, 80, 2]
    drawn = run(samples)
    np.testing.assert_allclose(drawn.mean((0, 1)), mean, atol=0.1)
    np.testing.assert_allclose(drawn.var((0, 1)), variance, rtol=0.15)


def test_chances_below_a_value():
    mine = D.MixtureSameFamily(D.Categorical(probs=PROBS), D.Normal(LOC, np.abs(LOC) + 0.3))
    expected = (PROBS * stats.norm(LOC, np.abs(LOC) + 0.3).cdf(VALUES[..., :1])).sum(-1)
    np.testing.assert_allclose(
        run([mine.cdf(VALUES[..., 0]), mine.survival_function(VALUES[..., 0])]), [expected, 1 - expected]
    )


def test_a_matrix_that_is_not_given_is_the_identity():
    plain = D.MultivariateNormalTriL([1.0, 2.0])
    expected = stats.norm([1.0, 2.0]).logpdf([0.0, 0.0]).sum()
    np.testing.assert_allclose(run(plain.log_prob([0.0, 0.0])), expected, rtol=1e-6)


def test_mixtures_of_vectors():
    locs, probs = RANDOM.normal(size=(3, 2)), PROBS[0]
    vectors = [D.MultivariateNormalDiag(loc, np.ones(2)) for loc in locs]
    one_kind = D.MixtureSameFamily(D.Categorical(probs=probs), D.MultivariateNormalDiag(locs, np.ones(2)))
    expected = sum(p * stats.multivariate_normal(loc).pdf([0.3, 0.4]) for p, loc in zip(probs, locs, strict=True))
    for mine in (D.Mixture(D.Categorical(probs=probs), vectors), one_kind):
        np.testing.assert_allclose(run(mine.prob(np.array([0.3, 0.4]))), expected)
        np.testing.assert_allclose(run(mine.mean()), probs @ locs)
        np.testing.assert_allclose(run(mine.sample(5000, seed=1)).mean(0), probs @ locs, atol=0.1)


@pytest.mark.parametrize(
    ("build", "error", "words"),
    [
        (lambda: D.MultivariateNormalDiag(), ValueError, "give loc or scale_diag"),
        (lambda: D.MultivariateNormalDiag(W(LOC), np.float32(DIAG)), ValueError, "same dtype"),
        (lambda: run(D.MultivariateNormalDiag(LOC, DIAG * 0, validate_args=True).sample()), ValueError, "Singular"),
        (lambda: run(D.MultivariateNormalTriL(LOC, TRIL * 0, validate_args=True).sample()), ValueError, "Singular"),
        (lambda: D.MultivariateNormalTriL(), ValueError, "give loc"),
        (lambda: D.RelaxedOneHotCategorical(0.5, [0.1, 0.2], dtype=tf.float64), ValueError, "dtype is float64, but"),
        (lambda: D.Mixture(D.Bernoulli(0.5), [D.Normal(0.0, 1.0)]), TypeError, "Categorical"),
        (lambda: D.Mixture(D.Categorical([0.0, 1.0]), [D.Normal(0.0, 1.0)]), ValueError, "2 classes, and there are 1"),
        (lambda: D.Mixture(D.Categorical([0.0]), []), ValueError, "non-empty"),
        (lambda: D.MixtureSameFamily(D.Categorical([0.0]), D.Normal(0.0, 1.0)), ValueError, "must have a batch"),
    ],
)
def test_what_is_refused(build, error, words):
    with pytest.raises(error, match=words):
        build()
