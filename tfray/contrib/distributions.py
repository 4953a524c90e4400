"""``tf.contrib.distributions``: the names of `tf.distributions`, and distributions with parameters of any sign."""

from tfray.library.distributions.continuous_distributions import (
    BetaWithSoftplusConcentration,
    ExponentialWithSoftplusRate,
    GammaWithSoftplusConcentrationRate,
    LaplaceWithSoftplusScale,
    NormalWithSoftplusScale,
    StudentTWithAbsDfSoftplusScale,
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
    "Laplace", "LaplaceWithSoftplusScale", "Multinomial", "Normal", "NormalWithSoftplusScale", "RegisterKL",
    "ReparameterizationType", "StudentT", "StudentTWithAbsDfSoftplusScale", "Uniform", "kl_divergence",
]
# fmt: on
