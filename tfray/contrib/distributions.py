"""``tf.contrib.distributions``: the names of `tf.distributions`."""

# isort: skip_file
from tfray.library.distributions.distributions import (
    Bernoulli as Bernoulli,
    Beta as Beta,
    Categorical as Categorical,
    Dirichlet as Dirichlet,
    Distribution as Distribution,
    Exponential as Exponential,
    Gamma as Gamma,
    Laplace as Laplace,
    Multinomial as Multinomial,
    Normal as Normal,
    RegisterKL as RegisterKL,
    StudentT as StudentT,
    Uniform as Uniform,
    kl_divergence as kl_divergence,
)
