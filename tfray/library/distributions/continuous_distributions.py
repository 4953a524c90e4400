"""Distributions of real numbers: normal, uniform, Laplace, Student's t, exponential, gamma and beta."""

from __future__ import annotations

import math

import numpy as np

from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.type_aliases import TensorLike
from tfray.library.distributions.checks import after
from tfray.library.distributions.distribution import (
    FULLY_REPARAMETERIZED,
    RegisterKL,
    ScalarDistribution,
    added_divergence,
    derived_seed,
    float_parameters,
)
from tfray.ops.arrays import array_ops
from tfray.ops.arrays.broadcast_ops import where_v2
from tfray.ops.checks.check_ops import assert_less, assert_positive
from tfray.ops.math import math_ops
from tfray.ops.math.math_ops import digamma, lgamma, log, log1p, square
from tfray.ops.math.special_ops import log_ndtr, ndtri
from tfray.ops.nn.activation_ops import softplus
from tfray.ops.random import random_ops

_HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)


class Normal(ScalarDistribution):
    """Normal distributions.

    Args:
        loc: Means.
        scale: Standard deviations, positive; broadcast against `loc`, same dtype.
        validate_args: Check parameters and values when a step runs, or at once where they are constants.
        allow_nan_stats: Statistics that are not defined are NaN; when False, they are errors of the step.
        name: Prefix of the operations' names.

    Raises:
        ValueError: The parameters are not of one floating dtype.
        InvalidArgumentError: With `validate_args`: a parameter is not as said here.
    """

    loc: Tensor
    scale: Tensor

    _shaped_by = "loc", "scale"

    def __init__(
        self,
        loc: TensorLike,
        scale: TensorLike,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Normal",
    ) -> None:
        self._init(dict(locals()), ("scale",), loc=loc, scale=scale)

    def _sample_n(self, n: Tensor, seed: int | None = None) -> Tensor:
        return random_ops.random_normal(self._sample_sizes(n), dtype=self.dtype, seed=seed) * self.scale + self.loc

    def _standardized(self, value: Tensor) -> Tensor:
        return (value - self.loc) / self.scale

    def _log_prob(self, value: Tensor) -> Tensor:
        return -0.5 * square(self._standardized(value)) - (log(self.scale) + _HALF_LOG_TAU)

    def _cdf(self, value: Tensor) -> Tensor:
        return 0.5 * math_ops.erfc(self._standardized(value) * -math.sqrt(0.5))

    def _survival_function(self, value: Tensor) -> Tensor:
        return 0.5 * math_ops.erfc(self._standardized(value) * math.sqrt(0.5))

    def _log_cdf(self, value: Tensor) -> Tensor:
        return log_ndtr(self._standardized(value))

    def _log_survival_function(self, value: Tensor) -> Tensor:
        return log_ndtr(-self._standardized(value))

    def _quantile(self, value: Tensor) -> Tensor:
        # At 0 and 1 the quantile is infinite: there its gradient is 0, so that it stays finite.
        is_inside = math_ops.logical_and(value > 0.0, value < 1.0)
        within = ndtri(array_ops.where(is_inside, value, array_ops.ones_like(value) / 2))
        return array_ops.where(is_inside, within, ndtri(array_ops.stop_gradient(value))) * self.scale + self.loc

    def _entropy(self) -> Tensor:
        return self._in_batch(log(self.scale) + (0.5 + _HALF_LOG_TAU))

    def _mean(self) -> Tensor:
        return self._in_batch(self.loc)

    def _mode(self) -> Tensor:
        return self._mean()

    def _stddev(self) -> Tensor:
        return self._in_batch(self.scale)


@RegisterKL(Normal, Normal)
def _kl_normal(a: Normal, b: Normal, name: str | None = None) -> Tensor:
    with get_default_graph().name_scope(name or "kl_normal_normal"):
        ratio = square(a.scale / b.scale)
        return 0.5 * square((a.loc - b.loc) / b.scale) + 0.5 * (ratio - 1.0 - log(ratio))


class Uniform(ScalarDistribution):
    """Uniform distributions over ``[low, high)``.

    Args:
        low: Lower bounds.
        high: Upper bounds, above the lower ones; broadcast against `low`, same dtype.
        validate_args: See `Normal`.
        allow_nan_stats: See `Normal`.
        name: See `Normal`.
    """

    low: Tensor
    high: Tensor

    _shaped_by = "low", "high"

    def __init__(
        self,
        low: TensorLike = 0.0,
        high: TensorLike = 1.0,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Uniform",
    ) -> None:
        parameters = dict(locals())
        with get_default_graph().name_scope(name) as name:
            checks = [assert_less(low, high, message="uniform not defined when low >= high.")] if validate_args else []
            self.low, self.high = float_parameters(checks, low=low, high=high)
        super().__init__(
            self.low.dtype,
            FULLY_REPARAMETERIZED,
            validate_args,
            allow_nan_stats,
            parameters,
            [self.low, self.high],
            name,
        )

    def range(self, name: str = "range") -> Tensor:
        """``high - low``."""
        with self._name_scope(name):
            return self.high - self.low

    def _sample_n(self, n: Tensor, seed: int | None = None) -> Tensor:
        numbers = random_ops.random_uniform(self._sample_sizes(n), dtype=self.dtype, seed=seed)
        return numbers * self.range() + self.low

    def _where_inside(self, value: Tensor, inside: Tensor, outside: float) -> Tensor:
        """`inside` between the bounds, else `outside`; a value that is not a number stays so."""
        is_outside = math_ops.logical_or(value < self.low, value >= self.high)
        value = value + array_ops.zeros_like(self.low) + array_ops.zeros_like(self.high)
        density = where_v2(is_outside, convert_to_tensor(outside, self.dtype), inside)
        return where_v2(math_ops.is_nan(value), value, density)

    def _prob(self, value: Tensor) -> Tensor:
        return self._where_inside(value, 1.0 / self.range(), 0.0)

    def _log_prob(self, value: Tensor) -> Tensor:
        return self._where_inside(value, -log(self.range()), -math.inf)

    def _cdf(self, value: Tensor) -> Tensor:
        share = where_v2(value < self.low, convert_to_tensor(0.0, self.dtype), (value - self.low) / self.range())
        return where_v2(value >= self.high, convert_to_tensor(1.0, self.dtype), share)

    def _entropy(self) -> Tensor:
        return log(self.range())

    def _mean(self) -> Tensor:
        return (self.low + self.high) / 2.0

    def _variance(self) -> Tensor:
        return square(self.range()) / 12.0

    def _stddev(self) -> Tensor:
        return self.range() / math.sqrt(12.0)


@added_divergence(Uniform, Uniform)
def _kl_uniform(a: Uniform, b: Uniform, name: str | None = None) -> Tensor:
    with get_default_graph().name_scope(name or "kl_uniform_uniform"):
        within = math_ops.logical_and(b.low <= a.low, a.high <= b.high)
        return where_v2(within, log(b.range()) - log(a.range()), convert_to_tensor(math.inf, a.dtype))


class Laplace(ScalarDistribution):
    """Laplace distributions, with a density in proportion to ``exp(-abs(x - loc) / scale)``.

    Args:
        loc: Means.
        scale: Scales, positive; broadcast against `loc`, same dtype.
        validate_args: See `Normal`.
        allow_nan_stats: See `Normal`.
        name: See `Normal`.
    """

    loc: Tensor
    scale: Tensor

    _shaped_by = "loc", "scale"

    def __init__(
        self,
        loc: TensorLike,
        scale: TensorLike,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Laplace",
    ) -> None:
        self._init(dict(locals()), ("scale",), loc=loc, scale=scale)

    def _sample_n(self, n: Tensor, seed: int | None = None) -> Tensor:
        # Keep above -1: the logarithm below would be infinite there.
        lowest = float(np.nextafter(self.dtype.numpy.type(-1), self.dtype.numpy.type(0)))
        numbers = random_ops.random_uniform(self._sample_sizes(n), lowest, 1.0, self.dtype, seed)
        return self.loc - self.scale * math_ops.sign(numbers) * log1p(-math_ops.abs(numbers))

    def _standardized(self, value: Tensor) -> Tensor:
        return (value - self.loc) / self.scale

    def _log_prob(self, value: Tensor) -> Tensor:
        return -math_ops.abs(self._standardized(value)) - (log(self.scale) + math.log(2))

    def _cdf(self, value: Tensor) -> Tensor:
        return _laplace_cdf(self._standardized(value))

    def _log_cdf(self, value: Tensor) -> Tensor:
        return _laplace_log_cdf(self._standardized(value))

    def _survival_function(self, value: Tensor) -> Tensor:
        return _laplace_cdf(-self._standardized(value))

    def _log_survival_function(self, value: Tensor) -> Tensor:
        return _laplace_log_cdf(-self._standardized(value))

    def _entropy(self) -> Tensor:
        return self._in_batch(log(self.scale) + (1 + math.log(2)))

    def _mean(self) -> Tensor:
        return self._in_batch(self.loc)

    def _mode(self) -> Tensor:
        return self._mean()

    def _stddev(self) -> Tensor:
        return self._in_batch(math.sqrt(2) * self.scale)


def _laplace_cdf(z: Tensor) -> Tensor:
    tail = 0.5 * math_ops.exp(-math_ops.abs(z))
    return where_v2(z < 0, tail, 1.0 - tail)


def _laplace_log_cdf(z: Tensor) -> Tensor:
    return where_v2(z < 0, z - math.log(2), log1p(-0.5 * math_ops.exp(-math_ops.abs(z))))


@added_divergence(Laplace, Laplace)
def _kl_laplace(a: Laplace, b: Laplace, name: str | None = None) -> Tensor:
    with get_default_graph().name_scope(name or "kl_laplace_laplace"):
        distance = math_ops.abs(a.loc - b.loc)
        ratio = a.scale / b.scale
        return distance / b.scale + ratio * math_ops.exp(-distance / a.scale) - log(ratio) - 1.0


def _log_survival(cdf: Tensor, survival: Tensor) -> Tensor:
    """Logarithm of `survival` from the one of the two that has the digits."""
    return where_v2(survival > 0.5, log1p(-math_ops.minimum(cdf, 0.5)), log(survival))


class StudentT(ScalarDistribution):
    """Student's t-distributions.

    Args:
        df: Degrees of freedom, positive.
        loc: Means; broadcast against `df`, same dtype.
        scale: Scales; likewise. Their sign does not count.
        validate_args: See `Normal`.
        allow_nan_stats: See `Normal`.
        name: See `Normal`.
    """

    df: Tensor
    loc: Tensor
    scale: Tensor

    _shaped_by = "df", "loc", "scale"

    def __init__(
        self,
        df: TensorLike,
        loc: TensorLike,
        scale: TensorLike,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "StudentT",
    ) -> None:
        self._init(dict(locals()), ("df",), df=df, loc=loc, scale=scale)

    def _sample_n(self, n: Tensor, seed: int | None = None) -> Tensor:
        numbers = random_ops.random_normal(self._sample_sizes(n), dtype=self.dtype, seed=seed)
        df = self._in_batch(self.df)
        half = np.array(0.5, self.dtype.numpy)
        chi2 = random_ops.random_gamma(array_ops.reshape(n, [1]), df * half, half, self.dtype, derived_seed(seed, 1))
        return numbers * math_ops.rsqrt(chi2 / df) * self.scale + self.loc

    def _log_prob(self, value: Tensor) -> Tensor:
        y = (value - self.loc) / self.scale
        scale = log(math_ops.abs(self.scale)) + 0.5 * log(self.df) + 0.5 * math.log(math.pi)
        beta = lgamma(0.5 * self.df) - lgamma(0.5 * (self.df + 1.0))
        return -0.5 * (self.df + 1.0) * log1p(square(y) / self.df) - (scale + beta)

    def _below(self, y: Tensor) -> Tensor:
        tail = 0.5 * math_ops.betainc(
            0.5 * self.df, convert_to_tensor(0.5, self.dtype), self.df / (square(y) + self.df)
        )
        return where_v2(y < 0, tail, 1.0 - tail)

    def _cdf(self, value: Tensor) -> Tensor:
        return self._below((value - self.loc) / math_ops.abs(self.scale))

    def _survival_function(self, value: Tensor) -> Tensor:
        return self._below((self.loc - value) / math_ops.abs(self.scale))

    def _log_survival_function(self, value: Tensor) -> Tensor:
        return _log_survival(self._cdf(value), self._survival_function(value))

    def _entropy(self) -> Tensor:
        df = self._in_batch(self.df)
        log_beta = lgamma(0.5 * df) + math.lgamma(0.5) - lgamma(0.5 * (df + 1.0))
        rest = 0.5 * (df + 1.0) * (digamma(0.5 * (df + 1.0)) - digamma(0.5 * df))
        return log(math_ops.abs(self.scale)) + 0.5 * log(df) + log_beta + rest

    def _mean(self) -> Tensor:
        message = "mean not defined for components of df <= 1"
        return where_above([self.df], self._in_batch(self.loc), self.allow_nan_stats, message)

    def _mode(self) -> Tensor:
        return array_ops.identity(self.loc)

    def _variance(self) -> Tensor:
        # Finite above 2, infinite from there down to 1.
        is_finite = self.df > 2
        finite = square(self.scale) * self.df / where_v2(is_finite, self.df - 2.0, array_ops.ones_like(self.df))
        variance = self._in_batch(where_v2(is_finite, finite, convert_to_tensor(math.inf, self.dtype)))
        message = "variance not defined for components of df <= 1"
        return where_above([self.df], variance, self.allow_nan_stats, message)


def where_above(
    parameters: list[Tensor], statistic: Tensor, allow_nan_stats: bool, message: str, bound: float = 1.0
) -> Tensor:
    """`statistic` where all of `parameters`, which broadcast with it, are above a bound; else NaN or an error."""
    if not allow_nan_stats:
        least = convert_to_tensor(bound, statistic.dtype)
        checks: list[Operation] = [assert_less(least, parameter, message=message) for parameter in parameters]
        return after(checks, statistic)
    for parameter in parameters:
        statistic = where_v2(parameter > bound, statistic, convert_to_tensor(math.nan, statistic.dtype))
    return statistic


class Gamma(ScalarDistribution):
    """Gamma distributions.

    Args:
        concentration: Shape parameters, positive.
        rate: Inverse scales, positive; broadcast against `concentration`, same dtype.
        validate_args: See `Normal`.
        allow_nan_stats: See `Normal`.
        name: See `Normal`.
    """

    concentration: Tensor
    rate: Tensor

    _shaped_by: tuple[str, ...] = ("concentration", "rate")

    def __init__(
        self,
        concentration: TensorLike,
        rate: TensorLike,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Gamma",
    ) -> None:
        self._init(dict(locals()), ("concentration", "rate"), concentration=concentration, rate=rate)

    def _sample_n(self, n: Tensor, seed: int | None = None) -> Tensor:
        concentration, rate = self._in_batch(self.concentration), self._in_batch(self.rate)
        return random_ops.random_gamma(array_ops.reshape(n, [1]), concentration, rate, self.dtype, seed)

    def _checked(self, value: Tensor) -> Tensor:
        if value.dtype is not self.dtype:
            raise ValueError(f"{self.name}: a value must be {self.dtype.name}, found {value.dtype.name}")
        return after([assert_positive(value)], value) if self.validate_args else value

    def _log_prob(self, value: Tensor) -> Tensor:
        value, c, rate = self._checked(value), self.concentration, self.rate
        return math_ops.xlogy(c - 1.0, value) - rate * value - (lgamma(c) - c * log(rate))

    def _cdf(self, value: Tensor) -> Tensor:
        return math_ops.igamma(self.concentration, self._checked(value) * self.rate)

    def _survival_function(self, value: Tensor) -> Tensor:
        return math_ops.igammac(self.concentration, self._checked(value) * self.rate)

    def _log_survival_function(self, value: Tensor) -> Tensor:
        return _log_survival(self._cdf(value), self._survival_function(value))

    def _entropy(self) -> Tensor:
        c = self.concentration
        return c - log(self.rate) + lgamma(c) + (1.0 - c) * digamma(c)

    def _mean(self) -> Tensor:
        return self.concentration / self.rate

    def _variance(self) -> Tensor:
        return self.concentration / square(self.rate)

    def _stddev(self) -> Tensor:
        return math_ops.sqrt(self.concentration) / self.rate

    def _mode(self) -> Tensor:
        mode = (self.concentration - 1.0) / self.rate
        message = "mode not defined when any concentration <= 1"
        return where_above([self.concentration], mode, self.allow_nan_stats, message)


@RegisterKL(Gamma, Gamma)
def _kl_gamma(a: Gamma, b: Gamma, name: str | None = None) -> Tensor:
    with get_default_graph().name_scope(name or "kl_gamma_gamma"):
        return (
            (a.concentration - b.concentration) * digamma(a.concentration)
            + lgamma(b.concentration)
            - lgamma(a.concentration)
            + b.concentration * (log(a.rate) - log(b.rate))
            + a.concentration * (b.rate / a.rate - 1.0)
        )


class Exponential(Gamma):
    """Exponential distributions.

    Args:
        rate: Inverse means, positive.
        validate_args: See `Normal`.
        allow_nan_stats: See `Normal`.
        name: See `Normal`.
    """

    rate: Tensor

    _shaped_by = ("rate",)

    def __init__(
        self, rate: TensorLike, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Exponential"
    ) -> None:
        parameters = dict(locals())
        with get_default_graph().name_scope(name) as name:
            rate = convert_to_tensor(rate, name="rate")
        super().__init__(array_ops.ones([], rate.dtype), rate, validate_args, allow_nan_stats, name)
        self._parameters = parameters

    def _sample_n(self, n: Tensor, seed: int | None = None) -> Tensor:
        # Keep above 0, whose logarithm is infinite.
        least = float(np.finfo(self.dtype.numpy).tiny)
        return -log(random_ops.random_uniform(self._sample_sizes(n), least, 1.0, self.dtype, seed)) / self.rate

    def _log_survival_function(self, value: Tensor) -> Tensor:
        return -self._checked(value) * self.rate

    def _mode(self) -> Tensor:
        return array_ops.zeros_like(self.rate)


class Beta(ScalarDistribution):
    """Beta distributions over ``(0, 1)``.

    Args:
        concentration1: First shape parameters, positive: those of success.
        concentration0: Second shape parameters, positive; broadcast against the first, same dtype.
        validate_args: See `Normal`.
        allow_nan_stats: See `Normal`.
        name: See `Normal`.
    """

    concentration1: Tensor
    concentration0: Tensor

    _shaped_by = "concentration1", "concentration0"

    def __init__(
        self,
        concentration1: TensorLike,
        concentration0: TensorLike,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Beta",
    ) -> None:
        parameters = dict(locals())
        with get_default_graph().name_scope(name) as name:
            message = "Concentration parameter must be positive."
            given = (concentration1, concentration0) if validate_args else ()
            checks = [assert_positive(value, message=message) for value in given]
            self.concentration1, self.concentration0 = float_parameters(
                checks, concentration1=concentration1, concentration0=concentration0
            )
            self.total_concentration = self.concentration1 + self.concentration0
            """Sum of the two parameters."""
        super().__init__(
            self.total_concentration.dtype,
            FULLY_REPARAMETERIZED,
            validate_args,
            allow_nan_stats,
            parameters,
            [self.concentration1, self.concentration0, self.total_concentration],
            name,
        )

    def _log_beta(self) -> Tensor:
        return lgamma(self.concentration1) + lgamma(self.concentration0) - lgamma(self.total_concentration)

    def _sample_n(self, n: Tensor, seed: int | None = None) -> Tensor:
        ones, zeros = self._in_batch(self.concentration1), self._in_batch(self.concentration0)
        count = array_ops.reshape(n, [1])
        first = random_ops.random_gamma(count, ones, dtype=self.dtype, seed=seed)
        second = random_ops.random_gamma(count, zeros, dtype=self.dtype, seed=derived_seed(seed, 1))
        return first / (first + second)

    def _checked(self, value: Tensor) -> Tensor:
        if not self.validate_args:
            return value
        one = array_ops.ones([], self.dtype)
        checks = [
            assert_positive(value, message="sample must be positive"),
            assert_less(value, one, message="sample must be less than `1`."),
        ]
        return after(checks, value)

    def _log_prob(self, value: Tensor) -> Tensor:
        value = self._checked(value)
        density = math_ops.xlogy(self.concentration1 - 1.0, value)
        return density + math_ops.xlog1py(self.concentration0 - 1.0, -value) - self._log_beta()

    def _cdf(self, value: Tensor) -> Tensor:
        return math_ops.betainc(self.concentration1, self.concentration0, value)

    def _survival_function(self, value: Tensor) -> Tensor:
        return math_ops.betainc(self.concentration0, self.concentration1, 1.0 - value)

    def _log_survival_function(self, value: Tensor) -> Tensor:
        return _log_survival(self._cdf(value), self._survival_function(value))

    def _entropy(self) -> Tensor:
        a, b, total = self.concentration1, self.concentration0, self.total_concentration
        return self._log_beta() - (a - 1.0) * digamma(a) - (b - 1.0) * digamma(b) + (total - 2.0) * digamma(total)

    def _mean(self) -> Tensor:
        return self.concentration1 / self.total_concentration

    def _variance(self) -> Tensor:
        total = self.total_concentration
        return self.concentration1 * self.concentration0 / (square(total) * (total + 1.0))

    def _mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        mode = (a - 1.0) / (self.total_concentration - 2.0)
        return where_above([a, b], mode, self.allow_nan_stats, "Mode undefined for concentration <= 1.")


@RegisterKL(Beta, Beta)
def _kl_beta(a: Beta, b: Beta, name: str | None = None) -> Tensor:
    with get_default_graph().name_scope(name or "kl_beta_beta"):
        return (
            b._log_beta()
            - a._log_beta()
            - digamma(a.concentration1) * (b.concentration1 - a.concentration1)
            - digamma(a.concentration0) * (b.concentration0 - a.concentration0)
            + digamma(a.total_concentration) * (b.total_concentration - a.total_concentration)
        )


# -- with parameters of any sign, as `tf.contrib.distributions` has them -----------------------------------


class BetaWithSoftplusConcentration(Beta):
    """`Beta` whose concentrations are the softplus of the arguments."""

    def __init__(
        self,
        concentration1: TensorLike,
        concentration0: TensorLike,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "BetaWithSoftplusConcentration",
    ) -> None:
        parameters = dict(locals())
        with get_default_graph().name_scope(name) as name:
            positive = softplus(concentration1), softplus(concentration0)
        super().__init__(*positive, validate_args, allow_nan_stats, name)
        self._parameters = parameters


class ExponentialWithSoftplusRate(Exponential):
    """`Exponential` whose rate is the softplus of the argument."""

    def __init__(
        self,
        rate: TensorLike,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "ExponentialWithSoftplusRate",
    ) -> None:
        parameters = dict(locals())
        with get_default_graph().name_scope(name) as name:
            positive = softplus(rate)
        super().__init__(positive, validate_args, allow_nan_stats, name)
        self._parameters = parameters


class GammaWithSoftplusConcentrationRate(Gamma):
    """`Gamma` whose concentration and rate are the softplus of the arguments."""

    def __init__(
        self,
        concentration: TensorLike,
        rate: TensorLike,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "GammaWithSoftplusConcentrationRate",
    ) -> None:
        parameters = dict(locals())
        with get_default_graph().name_scope(name) as name:
            positive = softplus(concentration), softplus(rate)
        super().__init__(*positive, validate_args, allow_nan_stats, name)
        self._parameters = parameters


class LaplaceWithSoftplusScale(Laplace):
    """`Laplace` whose scale is the softplus of the argument."""

    def __init__(
        self,
        loc: TensorLike,
        scale: TensorLike,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "LaplaceWithSoftplusScale",
    ) -> None:
        parameters = dict(locals())
        with get_default_graph().name_scope(name) as name:
            positive = softplus(scale)
        super().__init__(loc, positive, validate_args, allow_nan_stats, name)
        self._parameters = parameters


class NormalWithSoftplusScale(Normal):
    """`Normal` whose scale is the softplus of the argument."""

    def __init__(
        self,
        loc: TensorLike,
        scale: TensorLike,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "NormalWithSoftplusScale",
    ) -> None:
        parameters = dict(locals())
        with get_default_graph().name_scope(name) as name:
            positive = softplus(scale)
        super().__init__(loc, positive, validate_args, allow_nan_stats, name)
        self._parameters = parameters


class StudentTWithAbsDfSoftplusScale(StudentT):
    """`StudentT` with the floor of the absolute value of `df`, and the softplus of `scale`."""

    def __init__(
        self,
        df: TensorLike,
        loc: TensorLike,
        scale: TensorLike,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "StudentTWithAbsDfSoftplusScale",
    ) -> None:
        parameters = dict(locals())
        with get_default_graph().name_scope(name) as name:
            positive = math_ops.floor(math_ops.abs(df)), softplus(scale)
        super().__init__(positive[0], loc, positive[1], validate_args, allow_nan_stats, name)
        self._parameters = parameters
