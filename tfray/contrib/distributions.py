"""``tf.contrib.distributions``: the names of `tf.distributions`, of vectors, mixtures, and parameters of any sign."""

from tfray.library.distributions.batch_reshape import BatchReshape
from tfray.library.distributions.conditional_distributions import (
    Autoregressive,
    ConditionalDistribution,
    ConditionalTransformedDistribution,
)
from tfray.library.distributions.continuous_distributions import (
    BetaWithSoftplusConcentration,
    ExponentialWithSoftplusRate,
    GammaWithSoftplusConcentrationRate,
    LaplaceWithSoftplusScale,
    NormalWithSoftplusScale,
    StudentTWithAbsDfSoftplusScale,
)
from tfray.library.distributions.count_distributions import Binomial, Geometric, NegativeBinomial, Poisson
from tfray.library.distributions.discrete_distributions import (
    ExpRelaxedOneHotCategorical,
    OneHotCategorical,
)
from tfray.library.distributions.elementwise_bijectors import softplus_inverse
from tfray.library.distributions.joined_distributions import (
    Independent,
    Mixture,
    MixtureSameFamily,
    PoissonLogNormalQuadratureCompound,
    quadrature_scheme_lognormal_quantiles,
)
from tfray.library.distributions.located_distributions import (
    Cauchy,
    Chi2,
    Chi2WithAbsDf,
    Deterministic,
    HalfNormal,
    InverseGamma,
    InverseGammaWithSoftplusConcentrationRate,
    Logistic,
    VectorDeterministic,
)
from tfray.library.distributions.quantized_distribution import QuantizedDistribution
from tfray.library.distributions.sample_statistics import (
    SeedStream,
    auto_correlation,
    normal_conjugates_known_scale_posterior,
    normal_conjugates_known_scale_predictive,
    percentile,
    reduce_weighted_logsumexp,
    tridiag,
)
from tfray.library.distributions.transformed_distribution import (
    Kumaraswamy,
    RelaxedBernoulli,
    RelaxedOneHotCategorical,
    TransformedDistribution,
)
from tfray.library.distributions.vector_bijectors import (
    fill_triangular,
    fill_triangular_inverse,
    matrix_diag_transform,
)
from tfray.library.distributions.vector_distributions import (
    MultivariateNormalDiag,
    MultivariateNormalDiagPlusLowRank,
    MultivariateNormalDiagWithSoftplusScale,
    MultivariateNormalFullCovariance,
    MultivariateNormalTriL,
)
from tfray.library.distributions.vector_images import (
    SinhArcsinh,
    VectorExponentialDiag,
    VectorLaplaceDiag,
    VectorSinhArcsinhDiag,
)
from tfray.library.distributions.wishart import WishartCholesky, WishartFull
from tfray.library.namespaces.distributions import (
    FULLY_REPARAMETERIZED,
    NOT_REPARAMETERIZED,
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
from tfray.library.networks import bijectors
from tfray.library.networks.moving_moments import (
    assign_log_moving_mean_exp,
    assign_moving_mean_variance,
    moving_mean_variance,
)

# fmt: off
__all__ = [
    "FULLY_REPARAMETERIZED", "NOT_REPARAMETERIZED", "Autoregressive", "BatchReshape", "Bernoulli", "Beta",
    "BetaWithSoftplusConcentration", "Binomial", "Categorical", "Cauchy", "Chi2", "Chi2WithAbsDf",
    "ConditionalDistribution", "ConditionalTransformedDistribution", "Deterministic",
    "Dirichlet", "DirichletMultinomial", "Distribution", "ExpRelaxedOneHotCategorical", "Exponential",
    "ExponentialWithSoftplusRate", "Gamma", "GammaWithSoftplusConcentrationRate", "Geometric", "HalfNormal",
    "Independent", "InverseGamma", "InverseGammaWithSoftplusConcentrationRate", "Kumaraswamy", "Laplace",
    "LaplaceWithSoftplusScale", "Logistic", "Mixture", "MixtureSameFamily", "Multinomial", "MultivariateNormalDiag",
    "MultivariateNormalDiagPlusLowRank", "MultivariateNormalDiagWithSoftplusScale",
    "MultivariateNormalFullCovariance", "MultivariateNormalTriL", "NegativeBinomial", "Normal",
    "NormalWithSoftplusScale", "OneHotCategorical", "Poisson", "PoissonLogNormalQuadratureCompound",
    "QuantizedDistribution", "RegisterKL",
    "RelaxedBernoulli", "RelaxedOneHotCategorical", "ReparameterizationType", "SeedStream", "SinhArcsinh",
    "StudentT", "StudentTWithAbsDfSoftplusScale", "TransformedDistribution", "Uniform", "VectorDeterministic",
    "VectorExponentialDiag", "VectorLaplaceDiag", "VectorSinhArcsinhDiag", "WishartCholesky", "WishartFull",
    "assign_log_moving_mean_exp", "assign_moving_mean_variance", "auto_correlation", "bijectors", "fill_triangular",
    "fill_triangular_inverse", "kl_divergence", "matrix_diag_transform", "moving_mean_variance",
    "normal_conjugates_known_scale_posterior", "normal_conjugates_known_scale_predictive", "percentile",
    "quadrature_scheme_lognormal_quantiles", "reduce_weighted_logsumexp", "softplus_inverse", "tridiag",
]
# fmt: on
