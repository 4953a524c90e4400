"""``tf.contrib.distributions``: the names of `tf.distributions`."""

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
    "Bernoulli", "Beta", "Categorical", "Dirichlet", "DirichletMultinomial", "Distribution", "Exponential", "Gamma",
    "Laplace", "Multinomial", "Normal", "RegisterKL", "ReparameterizationType", "StudentT", "Uniform", "kl_divergence",
]
# fmt: on
