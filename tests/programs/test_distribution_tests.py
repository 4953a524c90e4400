"""The checks of samples that programs' own tests use, and mixtures of Poisson distributions, which they judge."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import tfray as tf
from tests.support.sessions import run
from tfray.contrib import distributions
from tfray.contrib.periodic_resample import periodic_resample
from tfray.errors import InvalidArgumentError
from tfray.programs import distribution_tests


class Numbers(distribution_tests.DiscreteScalarDistributionTestHelpers, tf.test.TestCase):
    """Checks of distributions of numbers."""


class Vectors(distribution_tests.VectorDistributionTestHelpers, tf.test.TestCase):
    """Checks of distributions of vectors."""


@pytest.mark.parametrize(("loc", "scale"), [(0.0, 0.5), ([[0.0], [-0.5]], [[0.5, 0.9]])])
def test_mixtures_of_poisson_distributions(loc, scale):
    compound = distributions.PoissonLogNormalQuadratureCompound(loc, scale, quadrature_size=10, validate_args=True)
    edges = np.linspace(0, 1, 13)[1:-1]
    quantiles = stats.lognorm(s=np.array(scale)[..., None], scale=np.exp(loc)[..., None]).ppf(edges)
    rates = np.exp((quantiles[..., 1:] + quantiles[..., :-1]) / 2)
    np.testing.assert_allclose(run(compound.prob(2.0)), stats.poisson(rates).pmf(2).mean(-1), rtol=1e-4)
    np.testing.assert_allclose(run(compound.mean()), rates.mean(-1), rtol=1e-4)
    assert compound.batch_shape.as_list() == list(rates.shape[:-1]) and compound.event_shape.as_list() == []
    checks = Numbers()
    checks.run_test_sample_consistent_log_prob(run, compound, rtol=0.1)
    checks.run_test_sample_consistent_mean_variance(run, compound, rtol=0.1)
    with pytest.raises(AssertionError):
        checks.run_test_sample_consistent_mean_variance(run, compound, num_samples=10, rtol=1e-6)


def test_vectors_are_judged_by_their_samples():
    normal = distributions.MultivariateNormalDiag([1.0, -1.0], [0.5, 2.0])
    Vectors().run_test_sample_consistent_log_prob(run, normal, radius=1.0, center=[1.0, -1.0], rtol=0.05)
    Vectors().run_test_sample_consistent_mean_covariance(run, normal, rtol=0.05, cov_rtol=0.1)
    normal.covariance = lambda: tf.constant([[1.0, 0.0], [0.0, 1.0]])
    with pytest.raises(AssertionError):
        Vectors().run_test_sample_consistent_mean_covariance(run, normal, rtol=0.05, cov_rtol=0.1)


@pytest.mark.parametrize(
    ("sizes", "shape", "expected"),
    [
        ((3, 4), [6, None], np.arange(12).reshape(6, 2)),
        ((3, 4), [5, None], np.arange(12).reshape(6, 2)[:-1]),
        ((2, 2, 4), [4, 4, None], np.array([[0, 2, 4, 6], [1, 3, 5, 7], [8, 10, 12, 14], [9, 11, 13, 15]])[..., None]),
    ],
)
def test_elements_move_into_other_dimensions(sizes, shape, expected):
    values = np.arange(np.prod(sizes)).reshape(sizes)
    assert run(periodic_resample(values, shape)).tolist() == expected.tolist()
    for wrong in ([2] * len(sizes), [None], [*[100] * (len(sizes) - 1), None]):
        with pytest.raises(InvalidArgumentError, match=r"expected a known shape|too short"):
            periodic_resample(values, wrong)


def test_variables_of_a_distribution_are_initialized():
    tf.set_random_seed(0)  # of the weights: samples tell little of a distribution that is far from what they are from
    flow = distributions.bijectors.MaskedAutoregressiveFlow(
        distributions.bijectors.masked_autoregressive_default_template(hidden_layers=[2])
    )
    normal = tf.distributions.Normal(0.0, 1.0)
    dist = distributions.TransformedDistribution(normal, flow, event_shape=[2])
    with tf.Session() as session:
        Vectors().run_test_sample_consistent_log_prob(session.run, dist, rtol=0.05)
