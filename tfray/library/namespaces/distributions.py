"""``tf.distributions``: probability distributions, to sample from and to compute probabilities and divergences."""

# isort: skip_file
from tfray.library.distributions.continuous_distributions import (
    Beta as Beta,
    Exponential as Exponential,
    Gamma as Gamma,
    Laplace as Laplace,
    Normal as Normal,
    StudentT as StudentT,
    Uniform as Uniform,
)
from tfray.library.distributions.discrete_distributions import (
    Bernoulli as Bernoulli,
    Categorical as Categorical,
    Dirichlet as Dirichlet,
    DirichletMultinomial as DirichletMultinomial,
    Multinomial as Multinomial,
)
from tfray.library.distributions.distribution import (
    FULLY_REPARAMETERIZED as FULLY_REPARAMETERIZED,
    NOT_REPARAMETERIZED as NOT_REPARAMETERIZED,
    Distribution as Distribution,
    RegisterKL as RegisterKL,
    ReparameterizationType as ReparameterizationType,
    kl_divergence as kl_divergence,
)

# fmt: off
__all__ = [
    "FULLY_REPARAMETERIZED", "NOT_REPARAMETERIZED", "Bernoulli", "Beta", "Categorical", "Dirichlet",
    "DirichletMultinomial", "Distribution", "Exponential", "Gamma", "Laplace", "Multinomial", "Normal", "RegisterKL",
    "ReparameterizationType", "StudentT", "Uniform", "kl_divergence",
]
# fmt: on
