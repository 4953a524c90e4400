"""Distributions of real numbers: normal, uniform, Laplace, Student's t, exponential, gamma and beta."""

from __future__ import annotations

import math

import numpy as np

from tfray.framework.graph import Tensor
from tfray.framework.type_aliases import TensorLike
from tfray.library.distributions.distribution import (
    Distribution,
    RegisterKL,
    derived_seed,
    float_parameters,
    nan_unless,
)
from tfray.ops.arrays import array_ops
from tfray.ops.math import math_ops
from tfray.ops.math.math_ops import digamma, lgamma, log, log1p, square
from tfray.ops.random import random_ops

_HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)


class Normal(Distribution):
    """Normal distributions.

    Args:
        loc: Means.
        scale: Standard deviations, positive; broadcast against `loc`.
        validate_args: Accepted; parameters are not checked.
        allow_nan_stats: Accepted; statistics that are not defined are NaN.
        name: Prefix of the operations' names.
    """

    def __init__(
        self,
        loc: TensorLike,
        scale: TensorLike,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Normal",
    ) -> None:
        self.loc, self.scale = float_parameters(loc, scale)
        super().__init__(self.loc.dtype, [self.loc, self.scale], True, name)

    def _sample(self, sample_shape: Tensor, seed: int | None) -> Tensor:
        numbers = random_ops.random_normal(self._sample_sizes(sample_shape), dtype=self.dtype, seed=seed)
        return numbers * self.scale + self.loc

    def _log_prob(self, value: Tensor) -> Tensor:
        return -0.5 * square((value - self.loc) / self.scale) - (log(self.scale) + _HALF_LOG_TAU)

    def _cdf(self, value: Tensor) -> Tensor:
        return 0.5 * math_ops.erfc((self.loc - value) / (self.scale * math.sqrt(2)))

    def _entropy(self) -> Tensor:
        return self._in_batch(log(self.scale) + (0.5 + _HALF_LOG_TAU))

    def _mean(self) -> Tensor:
        return self._in_batch(self.loc)

    def _mode(self) -> Tensor:
        return self._mean()

    def _variance(self) -> Tensor:
        return self._in_batch(square(self.scale))


@RegisterKL(Normal, Normal)
def _kl_normal(a: Normal, b: Normal) -> Tensor:
    ratio = square(a.scale / b.scale)
    return 0.5 * square((a.loc - b.loc) / b.scale) + 0.5 * (ratio - 1.0 - log(ratio))


class Uniform(Distribution):
    """Uniform distributions over ``[low, high)``.

    Args:
        low: Lower bounds.
        high: Upper bounds, above the lower ones; broadcast against `low`.
        validate_args: See `Normal`.
        allow_nan_stats: See `Normal`.
        name: See `Normal`.
    """

    def __init__(
        self,
        low: TensorLike = 0.0,
        high: TensorLike = 1.0,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Uniform",
    ) -> None:
        self.low, self.high = float_parameters(low, high)
        super().__init__(self.low.dtype, [self.low, self.high], True, name)

    def range(self, name: str = "range") -> Tensor:
        """``high - low``."""
        return math_ops.subtract(self.high, self.low, name)

    def _sample(self, sample_shape: Tensor, seed: int | None) -> Tensor:
        numbers = random_ops.random_uniform(self._sample_sizes(sample_shape), dtype=self.dtype, seed=seed)
        return numbers * self.range() + self.low

    def _log_prob(self, value: Tensor) -> Tensor:
        value = value + array_ops.zeros_like(self._in_batch(self.low))
        log_density = array_ops.zeros_like(value) - log(self.range())
        inside = math_ops.logical_and(value >= self.low, value < self.high)
        nothing = array_ops.fill(array_ops.shape(value), np.array(-math.inf, self.dtype.numpy))
        return array_ops.where(inside, log_density, nothing)

    def _cdf(self, value: Tensor) -> Tensor:
        return math_ops.clip_by_value((value - self.low) / self.range(), 0.0, 1.0)

    def _entropy(self) -> Tensor:
        return log(self.range())

    def _mean(self) -> Tensor:
        return (self.low + self.high) / 2.0

    def _variance(self) -> Tensor:
        return square(self.range()) / 12.0


@RegisterKL(Uniform, Uniform)
def _kl_uniform(a: Uniform, b: Uniform) -> Tensor:
    divergence = log(b.range()) - log(a.range())
    nothing = array_ops.zeros_like(divergence)
    within = math_ops.logical_and(b.low + nothing <= a.low + nothing, a.high + nothing <= b.high + nothing)
    infinite = array_ops.fill(array_ops.shape(divergence), np.array(math.inf, a.dtype.numpy))
    return array_ops.where(within, divergence, infinite)


class Laplace(Distribution):
    """Laplace distributions, with a density in proportion to ``exp(-abs(x - loc) / scale)``.

    Args:
        loc: Means.
        scale: Scales, positive; broadcast against `loc`.
        validate_args: See `Normal`.
        allow_nan_stats: See `Normal`.
        name: See `Normal`.
    """

    def __init__(
        self,
        loc: TensorLike,
        scale: TensorLike,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Laplace",
    ) -> None:
        self.loc, self.scale = float_parameters(loc, scale)
        super().__init__(self.loc.dtype, [self.loc, self.scale], True, name)

    def _sample(self, sample_shape: Tensor, seed: int | None) -> Tensor:
        # Keep above -1: the logarithm below would be infinite there.
        lowest = float(np.nextafter(self.dtype.numpy.type(-1), self.dtype.numpy.type(0)))
        numbers = random_ops.random_uniform(self._sample_sizes(sample_shape), lowest, 1.0, self.dtype, seed)
        return self.loc - self.scale * math_ops.sign(numbers) * log1p(-math_ops.abs(numbers))

    def _log_prob(self, value: Tensor) -> Tensor:
        return -math_ops.abs((value - self.loc) / self.scale) - (log(self.scale) + math.log(2))

    def _cdf(self, value: Tensor) -> Tensor:
        z = (value - self.loc) / self.scale
        return 0.5 - 0.5 * math_ops.sign(z) * math_ops.expm1(-math_ops.abs(z))

    def _entropy(self) -> Tensor:
        return self._in_batch(log(self.scale) + (1 + math.log(2)))

    def _mean(self) -> Tensor:
        return self._in_batch(self.loc)

    def _mode(self) -> Tensor:
        return self._mean()

    def _variance(self) -> Tensor:
        return self._in_batch(2.0 * square(self.scale))


@RegisterKL(Laplace, Laplace)
def _kl_laplace(a: Laplace, b: Laplace) -> Tensor:
    distance = math_ops.abs(a.loc - b.loc)
    ratio = a.scale / b.scale
    return distance / b.scale + ratio * math_ops.exp(-distance / a.scale) - log(ratio) - 1.0


class StudentT(Distribution):
    """Student's t-distributions.

    Args:
        df: Degrees of freedom, positive.
        loc: Means; broadcast against `df`.
        scale: Scales; broadcast likewise. Their sign does not count.
        validate_args: See `Normal`.
        allow_nan_stats: See `Normal`.
        name: See `Normal`.
    """

    def __init__(
        self,
        df: TensorLike,
        loc: TensorLike,
        scale: TensorLike,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "StudentT",
    ) -> None:
        self.df, self.loc, self.scale = float_parameters(df, loc, scale)
        super().__init__(self.df.dtype, [self.df, self.loc, self.scale], True, name)

    def _sample(self, sample_shape: Tensor, seed: int | None) -> Tensor:
        sizes = self._sample_sizes(sample_shape)
        numbers = random_ops.random_normal(sizes, dtype=self.dtype, seed=seed)
        df = self._in_batch(self.df)
        half = np.array(0.5, self.dtype.numpy)
        chi2 = random_ops.random_gamma(sample_shape, df * half, half, self.dtype, derived_seed(seed, 1))
        return numbers * math_ops.rsqrt(chi2 / df) * self.scale + self.loc

    def _log_prob(self, value: Tensor) -> Tensor:
        y = (value - self.loc) / self.scale
        scale = log(math_ops.abs(self.scale)) + 0.5 * log(self.df) + 0.5 * math.log(math.pi)
        beta = lgamma(0.5 * self.df) - lgamma(0.5 * (self.df + 1.0))
        return -0.5 * (self.df + 1.0) * log1p(square(y) / self.df) - (scale + beta)

    def _cdf(self, value: Tensor) -> Tensor:
        y = (value - self.loc) / math_ops.abs(self.scale)
        df = self.df + array_ops.zeros_like(y)
        tail = 0.5 * math_ops.betainc(0.5 * df, 0.5 * array_ops.ones_like(y), df / (square(y) + df))
        return array_ops.where(y < 0, tail, 1.0 - tail)

    def _entropy(self) -> Tensor:
        df = self._in_batch(self.df)
        log_beta = lgamma(0.5 * df) + math.lgamma(0.5) - lgamma(0.5 * (df + 1.0))
        rest = 0.5 * (df + 1.0) * (digamma(0.5 * (df + 1.0)) - digamma(0.5 * df))
        return log(math_ops.abs(self.scale)) + 0.5 * log(df) + log_beta + rest

    def _mean(self) -> Tensor:
        return nan_unless(self._in_batch(self.df) > 1, self._in_batch(self.loc))

    def _mode(self) -> Tensor:
        return self._in_batch(self.loc)

    def _variance(self) -> Tensor:
        df = self._in_batch(self.df)
        has_one = df > 2
        safe = array_ops.where(has_one, df - 2.0, array_ops.ones_like(df))
        finite = self._in_batch(square(self.scale)) * df / safe
        infinite = array_ops.fill(array_ops.shape(df), np.array(math.inf, self.dtype.numpy))
        return nan_unless(df > 1, array_ops.where(has_one, finite, infinite))


class Gamma(Distribution):
    """Gamma distributions.

    Args:
        concentration: Shape parameters, positive.
        rate: Inverse scales, positive; broadcast against `concentration`.
        validate_args: See `Normal`.
        allow_nan_stats: See `Normal`.
        name: See `Normal`.
    """

    def __init__(
        self,
        concentration: TensorLike,
        rate: TensorLike,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Gamma",
    ) -> None:
        self.concentration, self.rate = float_parameters(concentration, rate)
        super().__init__(self.concentration.dtype, [self.concentration, self.rate], True, name)

    def _sample(self, sample_shape: Tensor, seed: int | None) -> Tensor:
        concentration, rate = self._in_batch(self.concentration), self._in_batch(self.rate)
        return random_ops.random_gamma(sample_shape, concentration, rate, self.dtype, seed)

    def _log_prob(self, value: Tensor) -> Tensor:
        c, rate = self.concentration, self.rate
        return math_ops.xlogy(c - 1.0, value) - rate * value - lgamma(c) + c * log(rate)

    def _cdf(self, value: Tensor) -> Tensor:
        value = value * self.rate
        return math_ops.igamma(self.concentration + array_ops.zeros_like(value), value)

    def _entropy(self) -> Tensor:
        c = self.concentration
        return c - log(self.rate) + lgamma(c) + (1.0 - c) * digamma(c)

    def _mean(self) -> Tensor:
        return self.concentration / self.rate

    def _variance(self) -> Tensor:
        return self.concentration / square(self.rate)

    def _mode(self) -> Tensor:
        return nan_unless(self._in_batch(self.concentration) > 1, (self.concentration - 1.0) / self.rate)


@RegisterKL(Gamma, Gamma)
def _kl_gamma(a: Gamma, b: Gamma) -> Tensor:
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

    def __init__(
        self, rate: TensorLike, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Exponential"
    ) -> None:
        (rate,) = float_parameters(rate)
        super().__init__(array_ops.ones_like(rate), rate, name=name)

    def _sample(self, sample_shape: Tensor, seed: int | None) -> Tensor:
        numbers = random_ops.random_uniform(self._sample_sizes(sample_shape), dtype=self.dtype, seed=seed)
        return -log1p(-numbers) / self.rate

    def _log_prob(self, value: Tensor) -> Tensor:
        return log(self.rate) - self.rate * value

    def _cdf(self, value: Tensor) -> Tensor:
        return -math_ops.expm1(-self.rate * value)

    def _mode(self) -> Tensor:
        return array_ops.zeros_like(self.rate)


class Beta(Distribution):
    """Beta distributions over ``(0, 1)``.

    Args:
        concentration1: First shape parameters, positive: those of success.
        concentration0: Second shape parameters, positive; broadcast against the first.
        validate_args: See `Normal`.
        allow_nan_stats: See `Normal`.
        name: See `Normal`.
    """

    def __init__(
        self,
        concentration1: TensorLike,
        concentration0: TensorLike,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Beta",
    ) -> None:
        self.concentration1, self.concentration0 = float_parameters(concentration1, concentration0)
        super().__init__(self.concentration1.dtype, [self.concentration1, self.concentration0], True, name)

    @property
    def total_concentration(self) -> Tensor:
        """Sum of the two parameters."""
        return self.concentration1 + self.concentration0

    def _log_beta(self) -> Tensor:
        return lgamma(self.concentration1) + lgamma(self.concentration0) - lgamma(self.total_concentration)

    def _sample(self, sample_shape: Tensor, seed: int | None) -> Tensor:
        ones, zeros = self._in_batch(self.concentration1), self._in_batch(self.concentration0)
        first = random_ops.random_gamma(sample_shape, ones, dtype=self.dtype, seed=seed)
        second = random_ops.random_gamma(sample_shape, zeros, dtype=self.dtype, seed=derived_seed(seed, 1))
        return first / (first + second)

    def _log_prob(self, value: Tensor) -> Tensor:
        density = math_ops.xlogy(self.concentration1 - 1.0, value)
        return density + math_ops.xlog1py(self.concentration0 - 1.0, -value) - self._log_beta()

    def _cdf(self, value: Tensor) -> Tensor:
        value = value + array_ops.zeros_like(self.total_concentration)
        nothing = array_ops.zeros_like(value)
        return math_ops.betainc(self.concentration1 + nothing, self.concentration0 + nothing, value)

    def _entropy(self) -> Tensor:
        a, b, total = self.concentration1, self.concentration0, self.total_concentration
        return self._log_beta() - (a - 1.0) * digamma(a) - (b - 1.0) * digamma(b) + (total - 2.0) * digamma(total)

    def _mean(self) -> Tensor:
        return self.concentration1 / self.total_concentration

    def _variance(self) -> Tensor:
        total = self.total_concentration
        return self.concentration1 * self.concentration0 / (square(total) * (total + 1.0))

    def _mode(self) -> Tensor:
        a, b = self._in_batch(self.concentration1), self._in_batch(self.concentration0)
        has_one = math_ops.logical_and(a > 1, b > 1)
        safe = array_ops.where(has_one, a + b - 2.0, array_ops.ones_like(a))
        return nan_unless(has_one, (a - 1.0) / safe)


@RegisterKL(Beta, Beta)
def _kl_beta(a: Beta, b: Beta) -> Tensor:
    return (
        b._log_beta()
        - a._log_beta()
        - digamma(a.concentration1) * (b.concentration1 - a.concentration1)
        - digamma(a.concentration0) * (b.concentration0 - a.concentration0)
        + digamma(a.total_concentration) * (b.total_concentration - a.total_concentration)
    )
