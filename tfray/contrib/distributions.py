"""``tf.contrib.distributions``: the names of `tf.distributions`, of vectors, mixtures, and parameters of any sign."""

from tfray.library.distributions.continuous_distributions import (
    BetaWithSoftplusConcentration,
    ExponentialWithSoftplusRate,
    GammaWithSoftplusConcentrationRate,
    LaplaceWithSoftplusScale,
    NormalWithSoftplusScale,
    StudentTWithAbsDfSoftplusScale,
)
from tfray.library.distributions.joined_distributions import Independent, Mixture, MixtureSameFamily
from tfray.library.distributions.vector_distributions import (
    MultivariateNormalDiag,
    MultivariateNormalDiagWithSoftplusScale,
    MultivariateNormalFullCovariance,
    MultivariateNormalTriL,
    OneHotCategorical,
    RelaxedOneHotCategorical,
)
from tfray.library.namespaces.distributions import (
    Bernoulli,
    Beta,
    Categorical,
    Dirichlet,
    DirichletMultinomial,
    Distribution,
    Exponential,
    Gamma,
    Laplace,
    Multinomial,
    Normal,
    RegisterKL,
    ReparameterizationType,
    StudentT,
    Uniform,
    kl_divergence,
)

# fmt: off
__all__ = [
    "Bernoulli", "Beta", "BetaWithSoftplusConcentration", "Categorical", "Dirichlet", "DirichletMultinomial",
    "Distribution", "Exponential", "ExponentialWithSoftplusRate", "Gamma", "GammaWithSoftplusConcentrationRate",
    "Independent", "Laplace", "LaplaceWithSoftplusScale", "Mixture", "MixtureSameFamily", "Multinomial",
    "MultivariateNormalDiag", "MultivariateNormalDiagWithSoftplusScale", "MultivariateNormalFullCovariance",
    "MultivariateNormalTriL", "Normal", "NormalWithSoftplusScale", "OneHotCategorical", "RegisterKL",
    "RelaxedOneHotCategorical", "ReparameterizationType", "StudentT", "StudentTWithAbsDfSoftplusScale", "Uniform",
    "kl_divergence",
]
# fmt: on
