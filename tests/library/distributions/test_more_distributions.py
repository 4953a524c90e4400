"""Distributions of `tf.contrib.distributions` over numbers, against SciPy's; single points, and batches reshaped."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

import tfray as tf
from tests.support.sessions import run

D = tf.contrib.distributions
A = np.array([1.5, 0.4, 3.0])
LOC = np.array([-1.0, 0.0, 2.5])
P = np.array([0.2, 0.5, 0.9])
N = np.array([3.0, 7.0, 12.0])
REAL = np.linspace(-4, 5, 10)[:, None] + np.zeros(3)
POSITIVE = np.linspace(0.1, 6, 10)[:, None] + np.zeros(3)
INSIDE = np.linspace(0.05, 0.95, 10)[:, None] + np.zeros(3)
COUNTS = np.arange(10.0)[:, None] + np.zeros(3)
W = np.float64

KINDS = {
    "logistic": (lambda **o: D.Logistic(LOC, A, **o), stats.logistic(LOC, A), REAL),
    "cauchy": (lambda **o: D.Cauchy(LOC, A, **o), stats.cauchy(LOC, A), REAL),
    "half normal": (lambda **o: D.HalfNormal(A, **o), stats.halfnorm(0, A), POSITIVE),
    "chi2": (lambda **o: D.Chi2(A, **o), stats.chi2(A), POSITIVE),
    "chi2 of whole": (lambda **o: D.Chi2WithAbsDf(-2.7 - A, **o), stats.chi2(np.floor(2.7 + A)), POSITIVE),
    "inverse gamma": (lambda **o: D.InverseGamma(A + 2, A, **o), stats.invgamma(A + 2, scale=A), POSITIVE),
    "inverse gamma of any": (
        lambda **o: D.InverseGammaWithSoftplusConcentrationRate(LOC + 4, A, **o),
        stats.invgamma(np.log1p(np.exp(LOC + 4)), scale=np.log1p(np.exp(A))),
        POSITIVE,
    ),
    "poisson": (lambda **o: D.Poisson(A, **o), stats.poisson(A), COUNTS),
    "poisson of logarithms": (lambda **o: D.Poisson(log_rate=np.log(A), **o), stats.poisson(A), COUNTS),
    "geometric": (lambda **o: D.Geometric(probs=P, **o), stats.geom(P, loc=-1), COUNTS),
    "geometric of logits": (lambda **o: D.Geometric(np.log(P / (1 - P)), **o), stats.geom(P, loc=-1), COUNTS),
    "binomial": (lambda **o: D.Binomial(N, probs=P, **o), stats.binom(N, P), COUNTS),
    "negative binomial": (lambda **o: D.NegativeBinomial(N, probs=P, **o), stats.nbinom(N, 1 - P), COUNTS),
}
NOT_DEFINED = {"cauchy": ("mean", "variance", "stddev")}
CHANGED = {"binomial", "poisson", "poisson of logarithms", "negative binomial"}


@pytest.mark.parametrize("name", KINDS)
def test_densities_and_cumulative_distributions(name):
    build, reference, x = KINDS[name]
    mine = build(validate_args=name != "binomial")
    discrete = x is COUNTS
    likely, probable, below, log_below, above = run(
        [mine.log_prob(x), mine.prob(x), mine.cdf(x), mine.log_cdf(x), mine.survival_function(x)]
    )
    with np.errstate(divide="ignore"):
        expected = reference.logpmf(x) if discrete else reference.logpdf(x)
        there = np.isfinite(expected)
        np.testing.assert_allclose(likely[there], expected[there], rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(probable[there], np.exp(expected[there]), rtol=1e-6)
        np.testing.assert_allclose(below, reference.cdf(x), rtol=1e-6)
        np.testing.assert_allclose(log_below, reference.logcdf(x), rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(above, reference.sf(x), rtol=1e-5, atol=1e-7)
    assert (mine.batch_shape, mine.event_shape, mine.dtype) == ([3], [], tf.float64)


@pytest.mark.parametrize("name", KINDS)
def test_statistics(name):
    build, reference, _ = KINDS[name]
    mine = build()
    names = ["mean", "variance", "stddev"]
    if name in NOT_DEFINED:
        assert all(np.isnan(run(getattr(mine, each)())).all() for each in NOT_DEFINED[name])
        for each in NOT_DEFINED[name]:
            with pytest.raises(ValueError, match="undefined"):
                getattr(build(allow_nan_stats=False), each)()
    else:
        for each, found in zip(names, run([getattr(mine, each)() for each in names]), strict=True):
            expected = {"mean": reference.mean, "variance": reference.var, "stddev": reference.std}[each]()
            np.testing.assert_allclose(found, expected, rtol=1e-6)
    if name not in CHANGED:
        np.testing.assert_allclose(run(mine.entropy()), reference.entropy(), rtol=1e-6)
    mode = run(mine.mode()) if not name.startswith("chi2") else None
    if mode is not None:
        at, near = run(mine.prob(mode)), [run(mine.prob(np.maximum(mode + step, 1e-3))) for step in (-1.0, 0.7)]
        if not isinstance(reference.dist, stats.rv_discrete):
            assert (at >= np.array(near) - 1e-12).all()


@pytest.mark.parametrize("name", [name for name in KINDS if name != "binomial"])
def test_samples(name):
    build, reference, _ = KINDS[name]
    samples = build().sample([2, 1000], seed=4)
    assert samples.shape == [2, 1000, 3]
    drawn = run(samples).reshape(2000, 3)
    for i in range(3):
        level = np.median(drawn[:, i])
        cdf = reference.cdf(np.full(3, level))[i]
        share = (drawn[:, i] <= level).mean()
        assert abs(cdf - share) < 0.05
    if name in ("logistic", "cauchy", "half normal"):
        np.testing.assert_allclose(run(build().quantile(INSIDE)), reference.ppf(INSIDE), rtol=1e-6, atol=1e-12)


def test_samples_of_real_numbers_have_gradients():
    loc, scale = tf.constant(LOC), tf.constant(A)
    for mine in (D.Logistic(loc, scale), D.Cauchy(loc, scale), D.HalfNormal(scale), D.RelaxedBernoulli(scale, loc)):
        assert run(tf.gradients(mine.sample(3, seed=1), scale)[0]).shape == (3,)


def test_numbers_that_are_not_whole_may_be_impossible():
    exact = D.Poisson(A, interpolate_nondiscrete=False)
    between, cdf = run([exact.prob(COUNTS + 0.5), exact.cdf(COUNTS + 0.5)])
    assert not between.any()
    np.testing.assert_allclose(cdf, stats.poisson(A).cdf(COUNTS))
    np.testing.assert_allclose(run(D.Poisson(A).prob(-1 - COUNTS)), 0)
    assert not run(D.Geometric(probs=P).cdf(-1 - COUNTS)).any()
    assert not run(D.NegativeBinomial(N, probs=P).cdf(-1 - COUNTS)).any()
    assert run(D.Binomial(N, probs=P).cdf([[-1.0], [20.0]])).tolist() == [[0] * 3, [1] * 3]
    geometric = D.Geometric(probs=P)
    np.testing.assert_array_equal(*run([geometric.prob(COUNTS + 0.5), geometric.prob(COUNTS)]))


@pytest.mark.parametrize(
    ("build", "match"),
    [
        (lambda: D.Poisson(A, validate_args=True, interpolate_nondiscrete=False).prob(0.5 + LOC * 0), "fractional"),
        (lambda: D.Poisson(A, validate_args=True).prob(0.5 + LOC * 0), "fractional"),
        (lambda: D.Poisson(A, validate_args=True).cdf(0.5 + LOC * 0), "fractional"),
        (lambda: D.Poisson(-A, validate_args=True).rate, "> 0"),
        (lambda: D.Geometric(probs=P * 0, validate_args=True).probs, "> 0"),
        (lambda: D.Geometric(probs=P, validate_args=True).prob(-A), "non-negative"),
        (lambda: D.Geometric(probs=P, validate_args=True).cdf(0.5 + LOC * 0), "fractional"),
        (lambda: D.Binomial(N, probs=P, validate_args=True).prob(N + 1), "less than or equal to n"),
        (lambda: D.NegativeBinomial(-N, probs=P, validate_args=True).total_count, "> 0"),
        (lambda: D.HalfNormal(-A, validate_args=True).scale, "> 0"),
        (lambda: D.InverseGamma(A, A, allow_nan_stats=False).mean(), "mean undefined"),
        (lambda: D.InverseGamma(A, A, allow_nan_stats=False).variance(), "variance undefined"),
        (lambda: D.Deterministic(A, atol=W(-1), validate_args=True).atol, ">= 0"),
    ],
)
def test_values_that_are_checked(build, match):
    with pytest.raises(tf.errors.InvalidArgumentError, match=match):
        run(build())


@pytest.mark.parametrize(
    ("build", "error"),
    [
        (lambda: D.Poisson(), ValueError),
        (lambda: D.Poisson(1.0, 0.0), ValueError),
        (lambda: D.Poisson(np.int32([1])), TypeError),
        (lambda: D.Geometric(), ValueError),
        (lambda: D.Binomial(3.0, probs=0.5).sample(), NotImplementedError),
        (lambda: D.VectorDeterministic(1.0), ValueError),
        (lambda: D.RelaxedBernoulli(1.0), ValueError),
    ],
)
def test_what_is_refused(build, error):
    with pytest.raises(error):
        build()


def test_inverse_gamma_without_moments():
    mine = D.InverseGamma(np.array([0.5, 1.5, 2.5]), A)
    mean, variance = run([mine.mean(), mine.variance()])
    np.testing.assert_allclose(mean, [np.nan, A[1] / 0.5, A[2] / 1.5])
    np.testing.assert_allclose(variance, [np.nan, np.nan, A[2] ** 2 / (1.5**2 * 0.5)])


def test_kumaraswamy():
    b = np.array([2.0, 1.5, 0.7])
    mine = D.Kumaraswamy(A, b)
    likely, below, mean, variance, entropy = run(
        [mine.prob(INSIDE), mine.cdf(INSIDE), mine.mean(), mine.variance(), mine.entropy()]
    )
    np.testing.assert_allclose(likely, A * b * INSIDE ** (A - 1) * (1 - INSIDE**A) ** (b - 1))
    np.testing.assert_allclose(below, 1 - (1 - INSIDE**A) ** b)
    moments = [b * special.beta(1 + n / A, b) for n in (1, 2)]
    np.testing.assert_allclose(mean, moments[0])
    np.testing.assert_allclose(variance, moments[1] - moments[0] ** 2)
    at = (1 - (1 - (np.arange(200000) + 0.5)[:, None] / 200000) ** (1 / b)) ** (1 / A)
    np.testing.assert_allclose(entropy, -np.log(A * b * at ** (A - 1) * (1 - at**A) ** (b - 1)).mean(0), atol=1e-3)
    drawn = run(mine.sample(2000, seed=2))
    assert ((drawn > 0) & (drawn < 1)).all()
    np.testing.assert_allclose(drawn.mean(0), moments[0], atol=0.03)


def test_relaxed_bernoulli():
    logits, temperature = np.array([-1.0, 0.5, 2.0]), np.array([0.3, 1.0, 2.0])
    mine = D.RelaxedBernoulli(temperature, logits)
    np.testing.assert_allclose(run(mine.probs), special.expit(logits))
    # The density of Maddison et al.
    t, x, alpha = temperature, INSIDE, np.exp(logits)
    expected = t * alpha * x ** (-t - 1) * (1 - x) ** (-t - 1) / (alpha * x**-t + (1 - x) ** -t) ** 2
    likely, below = run([mine.prob(x), mine.cdf(x)])
    np.testing.assert_allclose(likely, expected)
    np.testing.assert_allclose(below, special.expit(t * special.logit(x) - logits))
    drawn = run(mine.sample(3000, seed=5))
    np.testing.assert_allclose((drawn > 0.5).mean(0), special.expit(logits), atol=0.03)
    assert mine.copy(temperature=W(1)).batch_shape == [3]


def test_relaxed_categories_and_their_logarithms():
    logits = np.random.default_rng(0).normal(size=(2, 4))
    shares, logarithms = (kind(W(0.7), logits) for kind in (D.RelaxedOneHotCategorical, D.ExpRelaxedOneHotCategorical))
    drawn = run(shares.sample(5, seed=1))
    np.testing.assert_allclose(drawn, np.exp(run(logarithms.sample(5, seed=1))))
    a, b, size = run([shares.log_prob(drawn), logarithms.log_prob(np.log(drawn)), logarithms.event_size])
    np.testing.assert_allclose(a, b - np.log(drawn).sum(-1))
    assert size == run(shares.event_size) == 4
    assert isinstance(shares, D.TransformedDistribution) and isinstance(shares.bijector, D.bijectors.Exp)
    assert (
        isinstance(shares.distribution, D.ExpRelaxedOneHotCategorical) and shares._distribution.logits is shares.logits
    )
    assert shares.name.rstrip("/") == "RelaxedOneHotCategorical" and shares.copy(logits=logits[0]).batch_shape == []
    assert (shares.event_shape, shares.batch_shape, shares.dtype) == ([4], [2], tf.float64)


def test_divergence_of_half_normals():
    found = run(D.kl_divergence(D.HalfNormal(A), D.HalfNormal(A[::-1].copy())))
    x = np.linspace(1e-4, 40, 400001)[:, None]
    p, q = stats.halfnorm(0, A), stats.halfnorm(0, A[::-1])
    np.testing.assert_allclose(found, ((p.logpdf(x) - q.logpdf(x)) * p.pdf(x)).sum(0) * 1e-4, rtol=1e-3)


# -- single points -------------------------------------------------------------------------------------


def test_single_numbers():
    mine = D.Deterministic(LOC, atol=W(0.1), rtol=W(0.5))
    assert (mine.batch_shape, mine.event_shape, mine.sample([2, 3]).shape) == ([3], [], [2, 3, 3])
    got = run(
        [
            mine.prob(LOC + 0.3),
            mine.log_prob(LOC),
            mine.cdf(LOC - 1),
            mine.mean(),
            mine.variance(),
            mine.mode(),
            mine.entropy(),
            mine.sample(2),
            D.Deterministic(LOC).prob(LOC + 1e-9),
        ]
    )
    assert [each.tolist() for each in got[:7]] == [
        [1, 0, 1],
        [0, 0, 0],
        [0, 0, 1],
        LOC.tolist(),
        [0, 0, 0],
        LOC.tolist(),
        [0, 0, 0],
    ]
    assert got[7].tolist() == [LOC.tolist()] * 2 and not got[8].any()


def test_the_entropy_of_one_certain_number_of_failures_is_not_defined():
    with pytest.raises(tf.errors.InvalidArgumentError, match="Entropy is undefined"):
        run(D.Geometric(probs=tf.placeholder_with_default(P + 0.1, [3]), validate_args=True).entropy())


def test_vectors_of_another_space_are_refused():
    mine = D.VectorDeterministic(np.zeros(0), validate_args=True)
    assert run(mine.prob(np.zeros(0))) == 1
    with pytest.raises(tf.errors.InvalidArgumentError, match="not defined in the same space"):
        run(mine.prob([W(1)]))


def test_single_vectors():
    loc = np.stack([LOC, LOC + 1])
    mine = D.VectorDeterministic(loc, atol=W(0.1))
    assert (mine.batch_shape, mine.event_shape, mine.sample(4).shape) == ([2], [3], [4, 2, 3])
    got = run([mine.prob(loc + np.array([[0, 0, 0.05], [0, 0, 0.2]])), mine.mean(), mine.entropy(), mine.sample()])
    assert [got[0].tolist(), got[2].tolist()] == [[1, 0], [0, 0]]
    np.testing.assert_allclose(got[1], loc)
    np.testing.assert_allclose(got[3], loc)


# -- batches reshaped ----------------------------------------------------------------------------------


@pytest.mark.parametrize("known", [True, False])
def test_batches_in_another_shape(known):
    loc = np.random.default_rng(3).normal(size=(2, 3, 4))
    vectors = D.MultivariateNormalDiag(loc if known else tf.placeholder_with_default(loc, [None] * 3), np.ones(4) * 2.0)
    shape = [3, 2] if known else tf.placeholder_with_default([3, 2], [2])
    mine = D.BatchReshape(vectors, shape, validate_args=True)
    assert mine.batch_shape.as_list() == ([3, 2] if known else [None, None])
    value = loc.reshape(3, 2, 4) + 0.5
    names = ["mean", "variance", "stddev", "mode", "covariance", "entropy"]
    got = run([mine.log_prob(value), mine.prob(value), *(getattr(mine, name)() for name in names), mine.sample(5)])
    expected = stats.norm(0, 2).logpdf(0.5) * 4
    np.testing.assert_allclose(got[0], np.full((3, 2), expected))
    np.testing.assert_allclose(got[1], np.full((3, 2), np.exp(expected)))
    np.testing.assert_allclose(got[2], loc.reshape(3, 2, 4))
    assert [each.shape for each in got[3:]] == [(3, 2, 4)] * 3 + [(3, 2, 4, 4), (3, 2), (5, 3, 2, 4)]
    np.testing.assert_allclose(run(D.kl_divergence(mine, mine)), np.zeros((3, 2)), atol=1e-12)
    numbers = D.BatchReshape(D.Normal(loc, W(1)), [4, 6])
    likely = run(
        [
            numbers.cdf(loc.reshape(4, 6)),
            numbers.survival_function(loc.reshape(4, 6)),
            numbers.log_cdf(loc.reshape(4, 6)),
            numbers.log_survival_function(loc.reshape(4, 6)),
        ]
    )
    np.testing.assert_allclose(likely, [np.full((4, 6), 0.5)] * 2 + [np.full((4, 6), np.log(0.5))] * 2)


def test_shapes_of_batches_are_checked():
    normal = D.Normal(np.zeros(4), W(1))
    for shape, match in (
        ([2, 3], r"size \(6\) must match `distribution.batch_shape` size \(4\)"),
        ([-1, -4], "must be positive"),
        (4, "must be a vector"),
    ):
        with pytest.raises(ValueError, match=match):
            D.BatchReshape(normal, shape)
    with pytest.raises(tf.errors.InvalidArgumentError, match="must match"):
        run(D.BatchReshape(normal, tf.placeholder_with_default([5, 5], [2]), validate_args=True).sample())
    mine = D.BatchReshape(normal, [1, 4, 1])
    with pytest.raises(NotImplementedError, match="too few batch and event dims"):
        mine.log_prob(np.zeros(4))
    with pytest.raises(NotImplementedError, match="unexpected batch and event shape"):
        mine.log_prob(np.zeros([1, 1, 4]))


def test_softplus_has_an_inverse():
    for dtype, limit in (np.float32, 80), (np.float64, 700):
        x = np.concatenate([-np.linspace(1, limit, 50), np.linspace(-1, limit, 50)]).astype(dtype)
        np.testing.assert_allclose(run(D.softplus_inverse(tf.nn.softplus(x))), x, rtol=1e-4, atol=1e-4)
