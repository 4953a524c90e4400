"""Distributions of scaled and bent vectors, of matrices and of rounded numbers, and statistics, against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from scipy import special, stats

import tfray as tf
from tests.support.sessions import run
from tfray.library.distributions.vector_images import VectorStudentT

D = tf.contrib.distributions
RANDOM = np.random.default_rng(3)
LOC = np.array([[1.0, -2.0, 0.5], [0.0, 3.0, -1.0]])
SCALE = np.array([0.5, 2.0, 1.5])
X = LOC + RANDOM.uniform(0.1, 4.0, size=(5, 2, 3))
W = np.float64
VECTORS = {
    "exponential": (D.VectorExponentialDiag, stats.expon, LOC + SCALE),
    "laplace": (D.VectorLaplaceDiag, stats.laplace, LOC),
}


@pytest.mark.parametrize("name", VECTORS)
@pytest.mark.parametrize("is_fed", [False, True])
def test_scaled_vectors(name, is_fed):
    build, kind, mean = VECTORS[name]
    loc = tf.placeholder_with_default(LOC, None) if is_fed else LOC
    mine, reference = build(loc, SCALE), kind(LOC, SCALE)
    if not is_fed:
        assert (mine.batch_shape, mine.event_shape, mine.sample(4).shape) == ([2], [3], [4, 2, 3])
    asked = [mine.log_prob(X), mine.mean(), mine.mode(), mine.variance(), mine.stddev(), mine.covariance()]
    likely, means, mode, variance, stddev, covariance = run(asked)
    np.testing.assert_allclose(likely, reference.logpdf(X).sum(-1))
    np.testing.assert_allclose(means, mean)
    np.testing.assert_allclose(mode, LOC)
    np.testing.assert_allclose(variance, reference.var())
    np.testing.assert_allclose(stddev, reference.std())
    np.testing.assert_allclose(covariance, reference.var()[..., None] * np.eye(3))
    np.testing.assert_allclose(run(mine.entropy()), reference.entropy().sum(-1) + np.zeros(2))
    drawn = run(mine.sample(4000, seed=1))
    np.testing.assert_allclose(drawn.mean(0), mean, atol=0.2)


@pytest.mark.parametrize(
    ("given", "scale"),
    [
        ({"loc": LOC[0]}, np.ones(3)),
        ({"loc": LOC[0], "scale_identity_multiplier": W(2)}, np.full(3, 2.0)),
        ({"scale_diag": SCALE, "scale_identity_multiplier": W(2)}, SCALE + 2),
    ],
)
@pytest.mark.parametrize("build", [D.VectorLaplaceDiag, D.VectorExponentialDiag])
def test_scales_of_vectors(build, given, scale):
    np.testing.assert_allclose(np.abs(run(build(**given).stddev())) / run(build(scale_diag=np.ones(3)).stddev()), scale)


@pytest.mark.parametrize("build", [D.VectorLaplaceDiag, D.VectorExponentialDiag, D.MultivariateNormalDiag])
def test_scales_that_are_refused(build):
    for given in ((W(1), None), (LOC, W(1))):
        with pytest.raises(ValueError, match="must have at least 1 dimension"):
            build(*given)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Singular"):
        run(build(LOC, tf.placeholder_with_default(np.array([1.0, 0.0, 2.0]), [3]), validate_args=True).sample())


def bent(z, skewness, tailweight):
    return np.sinh((np.arcsinh(z) + skewness) * tailweight)


def density_of_bent(x, loc, scale, skewness, tailweight):
    c = 2 * scale / bent(2.0, 0.0, tailweight)
    y = (x - loc) / c
    z = bent(y, -skewness * tailweight, 1 / tailweight)
    slope = np.cosh(np.arcsinh(y) / tailweight - skewness) / np.sqrt(1 + y**2) / tailweight
    return stats.norm.logpdf(z) + np.log(slope / c)


@pytest.mark.parametrize(("skewness", "tailweight"), [(0.0, 1.0), (0.5, 1.0), (-0.3, 1.5), (0.0, 0.7)])
def test_numbers_with_other_tails(skewness, tailweight):
    mine = D.SinhArcsinh(LOC, SCALE, W(skewness), W(tailweight))
    assert (mine.batch_shape, mine.event_shape) == ([2, 3], [])
    np.testing.assert_allclose(run(mine.log_prob(X)), density_of_bent(X, LOC, SCALE, skewness, tailweight))
    vectors = D.VectorSinhArcsinhDiag(LOC, SCALE, None, W(skewness), W(tailweight))
    assert (vectors.batch_shape, vectors.event_shape, vectors.sample(2).shape) == ([2], [3], [2, 2, 3])
    np.testing.assert_allclose(run(vectors.log_prob(X)), run(mine.log_prob(X)).sum(-1))
    middle = np.median(run(mine.sample(4000, seed=1)), 0)
    c = 2 * SCALE / bent(2.0, 0.0, tailweight)
    np.testing.assert_allclose(middle, LOC + c * bent(0.0, skewness, tailweight), atol=0.2)


def test_other_numbers_with_other_tails():
    mine = D.SinhArcsinh(W(1), W(2), distribution=D.Laplace(W(0), W(1)))
    np.testing.assert_allclose(run(mine.log_prob(X)), stats.laplace(1, 2).logpdf(X))
    with pytest.raises(TypeError, match="dtype mismatch"):
        D.SinhArcsinh(W(1), W(2), distribution=D.Normal(0.0, 1.0))
    with pytest.raises(ValueError, match="one distribution of numbers"):
        D.VectorSinhArcsinhDiag(LOC, distribution=D.Normal(SCALE, W(1)))


def test_normal_vectors_with_a_scale_of_low_rank_added():
    factor, weights = RANDOM.normal(size=(3, 2)), np.array([0.5, 2.0])
    scale = np.diag(SCALE + 1.0) + factor @ np.diag(weights) @ factor.T
    mine = D.MultivariateNormalDiagPlusLowRank(LOC, SCALE, W(1), factor, weights)
    reference = [stats.multivariate_normal(loc, scale @ scale.T) for loc in LOC]
    likely, covariance, entropy = run([mine.log_prob(X), mine.covariance(), mine.entropy()])
    np.testing.assert_allclose(likely, np.stack([reference[i].logpdf(X[:, i]) for i in range(2)], 1))
    np.testing.assert_allclose(covariance + np.zeros((2, 3, 3)), np.stack([scale @ scale.T] * 2))
    np.testing.assert_allclose(entropy + np.zeros(2), [each.entropy() for each in reference])
    plain = D.MultivariateNormalDiagPlusLowRank(scale_perturb_factor=factor)
    expected = np.eye(3) + factor @ factor.T
    np.testing.assert_allclose(run(plain.covariance()), expected @ expected.T)
    with pytest.raises(ValueError, match="scale_perturb_factor must be"):
        D.MultivariateNormalDiagPlusLowRank(LOC, scale_perturb_diag=weights)


# -- matrices ------------------------------------------------------------------------------------------

FACTOR = np.array([[1.0, 0, 0], [0.5, 2.0, 0], [-1.0, 0.3, 0.7]])
MATRIX = FACTOR @ FACTOR.T
MATRICES = stats.wishart(5, np.eye(3)).rvs(4, random_state=0)


@pytest.mark.parametrize("of_factors", [False, True])
@pytest.mark.parametrize("by_factor", [False, True])
def test_scatter_matrices(by_factor, of_factors):
    build, scale = (D.WishartCholesky, FACTOR) if by_factor else (D.WishartFull, MATRIX)
    mine, reference = build(W(6), scale, of_factors), stats.wishart(6, MATRIX)
    assert (mine.batch_shape, mine.event_shape, mine.sample(2).shape) == ([], [3, 3], [2, 3, 3])
    seen = np.linalg.cholesky if of_factors else np.asarray
    likely, mean, mode, entropy = run([mine.log_prob(seen(MATRICES)), mine.mean(), mine.mode(), mine.entropy()])
    np.testing.assert_allclose(likely, reference.logpdf(MATRICES.transpose(1, 2, 0)))
    np.testing.assert_allclose(mean, np.sqrt(6) * FACTOR if of_factors else 6 * MATRIX, atol=1e-12)
    np.testing.assert_allclose(mode, np.sqrt(2) * FACTOR if of_factors else 2 * MATRIX, atol=1e-12)
    np.testing.assert_allclose(entropy, reference.entropy())
    np.testing.assert_allclose(run(mine.variance()), seen(reference.var()), atol=1e-9)
    log_det = np.linalg.slogdet(MATRIX)[1] + 3 * np.log(2) + special.digamma(0.5 * (6 - np.arange(3))).sum()
    np.testing.assert_allclose(run(mine.mean_log_det()), log_det)
    np.testing.assert_allclose(run(mine.scale()), FACTOR if of_factors else MATRIX, atol=1e-12)
    drawn = run(mine.sample(4000, seed=1))
    drawn = drawn @ drawn.transpose(0, 2, 1) if of_factors else drawn
    np.testing.assert_allclose(drawn.mean(0), 6 * MATRIX, atol=1.5)
    if of_factors:
        assert (np.triu(run(mine.sample(seed=1)), 1) == 0).all()
        with pytest.raises(ValueError, match="does not make sense"):
            mine.stddev()
    else:
        np.testing.assert_allclose(run(mine.stddev()), np.linalg.cholesky(reference.var()))


def test_batches_of_scatter_matrices():
    df, scales = np.array([3.5, 7.0]), np.stack([FACTOR, 2 * FACTOR])
    mine = D.WishartCholesky(df, scales)
    assert (mine.batch_shape, mine.sample(5).shape) == ([2], [5, 2, 3, 3])
    expected = [stats.wishart(n, s @ s.T).logpdf(MATRICES[0]) for n, s in zip(df, scales, strict=True)]
    np.testing.assert_allclose(run(mine.log_prob(MATRICES[0])), expected)
    likely = run(mine.log_prob(np.stack([MATRICES[:2]] * 3)))
    assert likely.shape == (3, 2)
    drawn = run(mine.sample(4000, seed=1)).mean(0)
    np.testing.assert_allclose(drawn, df[:, None, None] * (scales @ scales.transpose(0, 2, 1)), atol=4)
    assert np.isnan(run(mine.mode())[0]).all()  # too few degrees of freedom


@pytest.mark.parametrize(
    ("build", "error", "match"),
    [
        (lambda: D.WishartFull(2.0, np.float32(MATRIX)), ValueError, "cannot be less than dimension"),
        (lambda: D.WishartCholesky(2.0, np.eye(2, dtype=int)), TypeError, "floating-point"),
        (lambda: D.WishartFull(3.0, np.eye(2, dtype=int)), TypeError, "floating-point"),
    ],
)
def test_scatter_matrices_that_are_refused(build, error, match):
    with pytest.raises(error, match=match):
        build()


@pytest.mark.parametrize(
    ("build", "match"),
    [
        (lambda df: D.WishartCholesky(df, -np.eye(2), validate_args=True), "> 0"),
        (lambda df: D.WishartFull(df, np.array([[2.0, 1.0], [0.5, 2.0]]), validate_args=True), "not symmetric"),
        (lambda df: D.WishartFull(df - 4, np.eye(2), validate_args=True), "cannot be less than dimension"),
    ],
)
def test_scatter_matrices_that_are_checked(build, match):
    with pytest.raises(tf.errors.InvalidArgumentError, match=match):
        run(build(tf.placeholder_with_default(W(5), [])).sample())


# -- rounded numbers -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("low", "high"), [(None, None), (-2.0, None), (None, 3.0), (-2.0, 3.0)])
def test_rounded_numbers(low, high):
    base = stats.norm(0.3, 2.0)
    mine = D.QuantizedDistribution(D.Normal(W(0.3), W(2.0)), low and W(low), high and W(high))
    at = np.arange(-6.0, 8.0)
    cumulative = base.cdf(at)
    if low is not None:
        cumulative[at < low] = 0
    if high is not None:
        cumulative[at >= high] = 1
    chances = np.diff(np.concatenate([[base.cdf(-7.0) if low is None else 0], cumulative]))
    cdf, log_cdf, prob, likely, more = run(
        [mine.cdf(at + 0.5), mine.log_cdf(at), mine.prob(at), mine.log_prob(at), mine.survival_function(at - 0.5)]
    )
    np.testing.assert_allclose(cdf, cumulative)
    np.testing.assert_allclose(np.exp(log_cdf), cumulative)
    np.testing.assert_allclose(prob, chances, atol=1e-15)
    np.testing.assert_allclose(np.exp(likely), chances, atol=1e-12)
    np.testing.assert_allclose(more, 1 - cumulative, atol=1e-15)
    drawn = run(mine.sample(3000, seed=2))
    assert (drawn == np.floor(drawn)).all()
    assert drawn.min() >= (-np.inf if low is None else low) and drawn.max() <= (np.inf if high is None else high)
    np.testing.assert_allclose((drawn <= 0).mean(), base.cdf(0), atol=0.05)


def test_rounded_numbers_far_to_the_right_and_what_they_are_trained_by():
    mine = D.QuantizedDistribution(D.Normal(W(0), W(1)))
    expected = np.log(stats.norm.sf(11.0) - stats.norm.sf(12.0))
    np.testing.assert_allclose(run(mine.log_prob(W(12))), expected)
    loc = tf.constant(0.2, tf.float64)
    likely = D.QuantizedDistribution(D.Logistic(loc, W(1)), W(0), W(255)).log_prob(np.array([0.0, 1.0, 255.0]))
    assert np.isfinite(run(tf.gradients(likely, loc)[0]))


def test_rounded_numbers_that_are_checked():
    normal = D.Normal(W(0), W(1))
    for low, high, match in ((W(0.5), None, "non-integer"), (W(2), W(1), "low must be strictly less")):
        with pytest.raises(tf.errors.InvalidArgumentError, match=match):
            run(D.QuantizedDistribution(normal, low, high, validate_args=True).sample())
    with pytest.raises(tf.errors.InvalidArgumentError, match="non-integer"):
        run(D.QuantizedDistribution(normal, validate_args=True).prob(W(0.5)))
    with pytest.raises((TypeError, ValueError)):
        D.QuantizedDistribution(normal, np.float32(1))


# -- statistics ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("q", [0, 12, 30, 50, 77.7, 100])
@pytest.mark.parametrize("interpolation", [None, "lower", "higher"])
@pytest.mark.parametrize("axis", [None, 0, -1, [0, 2]])
def test_percentiles(q, interpolation, axis):
    x = RANDOM.normal(size=(3, 5, 7))  # no rank is halfway between two elements
    axes = tuple(axis) if isinstance(axis, list) else axis
    expected = np.percentile(x, q, axes, method=interpolation or "nearest")
    np.testing.assert_array_equal(run(D.percentile(x, q, axis, interpolation)), expected)
    kept = np.percentile(x, q, axes, method=interpolation or "nearest", keepdims=True)
    np.testing.assert_array_equal(run(D.percentile(x, q, axis, interpolation, keep_dims=True)), kept)


@pytest.mark.parametrize(
    ("build", "error", "match"),
    [
        (lambda: D.percentile([1.0], 50.0, interpolation="linear"), ValueError, "interpolation"),
        (lambda: D.percentile([1.0], [50.0]), ValueError, "'q'"),
        (lambda: D.percentile([1.0], 50.0, axis=1), ValueError, "not in the interval"),
        (lambda: D.percentile([1.0], 50.0, axis=tf.placeholder(tf.int32, [])), ValueError, "statically"),
        (lambda: D.percentile(tf.placeholder(tf.float32), 50.0, axis=0), ValueError, "ndims"),
        (lambda: D.tridiag(), ValueError, "at least one"),
        (lambda: run(D.percentile([1.0], 101.0, validate_args=True)), tf.errors.InvalidArgumentError, "<="),
    ],
)
def test_statistics_that_are_refused(build, error, match):
    with pytest.raises(error, match=match):
        build()


@pytest.mark.parametrize("axis", [None, 0, [1]])
@pytest.mark.parametrize("keep", [False, True])
def test_logarithms_of_weighted_sums(axis, keep):
    x, w = RANDOM.normal(size=(3, 4)) + 700, RANDOM.normal(size=(3, 4))
    axes = tuple(axis) if isinstance(axis, list) else axis
    expected, sign = special.logsumexp(x, axes, w, keepdims=keep, return_sign=True)
    total, found = run(list(D.reduce_weighted_logsumexp(x, w, axis, keep, return_sign=True)))
    np.testing.assert_allclose(total, expected)
    np.testing.assert_array_equal(found, sign)
    np.testing.assert_allclose(run(D.reduce_weighted_logsumexp(x, w, axis, keep)), expected)
    total, found = run(list(D.reduce_weighted_logsumexp(x, None, axis, keep, return_sign=True)))
    np.testing.assert_allclose(total, special.logsumexp(x, axes, keepdims=keep))
    assert (found == 1).all()


def test_matrices_of_three_diagonals():
    below, diag, above = RANDOM.normal(size=(2, 3)), RANDOM.normal(size=(2, 4)), RANDOM.normal(size=(2, 3))
    expected = np.stack(
        [np.diag(b, -1) + np.diag(d) + np.diag(a, 1) for b, d, a in zip(below, diag, above, strict=True)]
    )
    np.testing.assert_array_equal(run(D.tridiag(below, diag, above)), expected)
    np.testing.assert_array_equal(run(D.tridiag(above=above[0])), np.diag(above[0], 1))


def test_moving_moments():
    value = tf.placeholder(tf.float64, [2])
    moved = D.moving_mean_variance(value, 0.9)
    log_mean = tf.Variable(np.zeros(2), name="log_mean")
    log_moved = D.assign_log_moving_mean_exp(log_mean, tf.log(value), 0.9)
    names = {v.op.name for v in tf.global_variables()}
    assert names == {"moving_mean_variance/moving_mean", "moving_mean_variance/moving_variance", "log_mean"}
    assert not {v.op.name for v in tf.trainable_variables()} - {"log_mean"}
    mean, variance, exponent = np.zeros(2), np.zeros(2), np.ones(2)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for x in RANDOM.uniform(1, 3, size=(4, 2)):
            variance = 0.9 * (variance + 0.1 * (x - mean) ** 2)
            mean, exponent = 0.9 * mean + 0.1 * x, 0.9 * exponent + 0.1 * x
            found = session.run([*moved, log_moved], {value: x})
            np.testing.assert_allclose(found, [mean, variance, np.log(exponent)])
    for build in (
        lambda: D.moving_mean_variance(tf.constant([1]), 0.9),
        lambda: D.assign_moving_mean_variance(log_mean, tf.Variable([0.0, 0.0]), [1.0, 1.0], 0.9),
        lambda: D.assign_moving_mean_variance(tf.Variable([1]), tf.Variable([1]), [1], 1),
        lambda: D.assign_log_moving_mean_exp(tf.Variable([1]), [1], 1),
    ):
        with pytest.raises(TypeError, match="dtype"):
            build()


def test_posteriors_of_means():
    prior = D.Normal(W(1), W(2))
    variance = 1 / (1 / 4 + 5 / 9)
    mean = variance * (1 / 4 + 7.5 / 9)
    after = D.normal_conjugates_known_scale_posterior(prior, W(3), W(7.5), 5)
    following = D.normal_conjugates_known_scale_predictive(prior, W(3), W(7.5), 5)
    got = run([after.mean(), after.variance(), following.mean(), following.variance()])
    np.testing.assert_allclose(got, [mean, variance, mean, variance + 9])
    with pytest.raises(TypeError, match="instance of type Normal"):
        D.normal_conjugates_known_scale_posterior(D.Laplace(W(1), W(2)), W(3), W(1), 1)
    with pytest.raises(TypeError, match="does not match prior dtype"):
        D.normal_conjugates_known_scale_predictive(prior, W(3), np.float32(1), 1)


def test_streams_of_seeds():
    first, same, other = D.SeedStream(1, "a"), D.SeedStream(1, "a"), D.SeedStream(1, "b")
    seeds = [first(), first()]
    assert seeds == [same(), same()] and len({*seeds, other()}) == 3
    assert seeds == [again() for again in [D.SeedStream(first, "a")] for _ in range(2)]
    assert D.SeedStream(None, "a")() is None
    assert run(tf.random_uniform([], seed=seeds[0])) < 1


@pytest.mark.parametrize("static", [True, False])
@pytest.mark.parametrize(("df", "batch"), [(2.0, 3), ([1.0, 2.0, 3.0], 3), ([1.0, 2.0, 3.0], None), (3.0, None)])
def test_vectors_of_student_t(df, batch, static):
    loc, diagonal = np.array([[0.0, 0, 0], [1, 2, 3], [1, 0, 1]]), np.array([[1.0, 2, 3], [2, 3, 4], [4, 5, 6]])
    loc, diagonal = (loc, diagonal) if batch else (loc[1], diagonal[1])
    freedom = tf.placeholder_with_default(np.array(df), np.shape(df) if static else None)
    found = VectorStudentT(freedom, loc, scale_diag=diagonal, validate_args=True)
    x = np.random.default_rng(0).uniform(-1, 1, [4, 3, 3])
    of_numbers = scipy.stats.t(np.array(df)[..., None], loc, diagonal).logpdf(x)
    np.testing.assert_allclose(run(found.log_prob(x)), of_numbers.sum(-1), rtol=1e-10)
    assert run(found.sample(5)).shape == ((5, 3) if batch is None and np.ndim(df) == 0 else (5, 3, 3))
    if static:
        assert found.batch_shape.as_list() == ([3] if batch or np.ndim(df) else []) and found.event_shape == [3]
    with pytest.raises(ValueError, match="size of the vectors"):
        VectorStudentT(2.0, scale_identity_multiplier=1.0)
