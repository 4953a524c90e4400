"""More distributions of real numbers: logistic, Cauchy, half-normal, chi-squared, inverse gamma, and single points."""

from __future__ import annotations

import math

import numpy as np

from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.library.distributions.checks import after
from tfray.library.distributions.continuous_distributions import Gamma, where_above
from tfray.library.distributions.distribution import (
    FULLY_REPARAMETERIZED,
    Distribution,
    ScalarDistribution,
    added_divergence,
    float_parameters,
)
from tfray.ops.arrays import array_ops
from tfray.ops.arrays.broadcast_ops import where_v2
from tfray.ops.checks.check_ops import assert_equal, assert_non_negative, assert_positive, assert_rank_at_least
from tfray.ops.math import math_ops
from tfray.ops.math.math_ops import digamma, lgamma, log, log1p, square
from tfray.ops.math.special_ops import ndtri
from tfray.ops.nn.activation_ops import softplus
from tfray.ops.random import random_ops


class _Located(ScalarDistribution):
    """Base of distributions of ``loc + scale * z``, where z has one that is known."""

    loc: Tensor
    scale: Tensor

    _shaped_by = "loc", "scale"

    def _sample_n(self, n: Tensor, seed: int | None = None) -> Tensor:
        # Keep above 0, whose logarithm is infinite.
        least = float(np.finfo(self.dtype.numpy).tiny)
        return self._quantile(random_ops.random_uniform(self._sample_sizes(n), least, 1.0, self.dtype, seed))

    def _z(self, value: Tensor) -> Tensor:
        return (value - self.loc) / self.scale

    def _mode(self) -> Tensor:
        return self._in_batch(self.loc)


class Logistic(_Located):
    """Logistic distributions, whose cumulative distribution is ``1 / (1 + exp(-(x - loc) / scale))``.

    Args:
        loc: Means.
        scale: Scales, positive; broadcast against `loc`, same dtype.
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
        name: str = "Logistic",
    ) -> None:
        self._init(dict(locals()), ("scale",), loc=loc, scale=scale)

    def _log_prob(self, value: Tensor) -> Tensor:
        z = self._z(value)
        return -z - 2.0 * softplus(-z) - log(self.scale)

    def _cdf(self, value: Tensor) -> Tensor:
        return math_ops.sigmoid(self._z(value))

    def _log_cdf(self, value: Tensor) -> Tensor:
        return -softplus(-self._z(value))

    def _survival_function(self, value: Tensor) -> Tensor:
        return math_ops.sigmoid(-self._z(value))

    def _log_survival_function(self, value: Tensor) -> Tensor:
        return -softplus(self._z(value))

    def _quantile(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * (log(value) - log1p(-value))

    def _entropy(self) -> Tensor:
        return self._in_batch(2.0 + log(self.scale))

    def _mean(self) -> Tensor:
        return self._in_batch(self.loc)

    def _stddev(self) -> Tensor:
        return self._in_batch(self.scale * (math.pi / math.sqrt(3.0)))


class Cauchy(_Located):
    """Cauchy distributions, with a density in proportion to ``1 / (1 + ((x - loc) / scale) ** 2)``.

    Args:
        loc: Modes.
        scale: Scales, positive; broadcast against `loc`, same dtype.
        validate_args: See `Normal`.
        allow_nan_stats: See `Normal`. Means and variances are never defined: with False, asking is a `ValueError`.
        name: See `Normal`.
    """

    def __init__(
        self,
        loc: TensorLike,
        scale: TensorLike,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Cauchy",
    ) -> None:
        self._init(dict(locals()), ("scale",), loc=loc, scale=scale)

    def _log_prob(self, value: Tensor) -> Tensor:
        return -log1p(square(self._z(value))) - math.log(math.pi) - log(self.scale)

    def _cdf(self, value: Tensor) -> Tensor:
        return math_ops.atan(self._z(value)) / math.pi + 0.5

    def _log_cdf(self, value: Tensor) -> Tensor:
        return log1p(2.0 / math.pi * math_ops.atan(self._z(value))) - math.log(2.0)

    def _quantile(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * math_ops.tan(math.pi * (value - 0.5))

    def _entropy(self) -> Tensor:
        return self._in_batch(math.log(4.0 * math.pi) + log(self.scale))

    def _undefined(self, what: str) -> Tensor:
        if not self.allow_nan_stats:
            raise ValueError(f"`{what}` is undefined for Cauchy distribution.")
        return self._in_batch(convert_to_tensor(math.nan, self.dtype))

    def _mean(self) -> Tensor:
        return self._undefined("mean")

    def _stddev(self) -> Tensor:
        return self._undefined("stddev")


class HalfNormal(ScalarDistribution):
    """Distributions of the absolute value of normal numbers with mean 0.

    Args:
        scale: Standard deviations of these numbers, positive.
        validate_args: See `Normal`.
        allow_nan_stats: See `Normal`.
        name: See `Normal`.
    """

    scale: Tensor

    _shaped_by = ("scale",)

    def __init__(
        self, scale: TensorLike, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "HalfNormal"
    ) -> None:
        self._init(dict(locals()), ("scale",), scale=scale)

    def _sample_n(self, n: Tensor, seed: int | None = None) -> Tensor:
        return math_ops.abs(random_ops.random_normal(self._sample_sizes(n), 0.0, 1.0, self.dtype, seed)) * self.scale

    def _log_prob(self, value: Tensor) -> Tensor:
        z = value / self.scale
        density = 0.5 * math.log(2.0 / math.pi) - log(self.scale) - 0.5 * square(z)
        return where_v2(z < 0, convert_to_tensor(-math.inf, self.dtype), density)

    def _cdf(self, value: Tensor) -> Tensor:
        return math_ops.erf(math_ops.maximum(value, 0.0) / (self.scale * math.sqrt(2.0)))

    def _survival_function(self, value: Tensor) -> Tensor:
        return math_ops.erfc(math_ops.maximum(value, 0.0) / (self.scale * math.sqrt(2.0)))

    def _quantile(self, value: Tensor) -> Tensor:
        return self.scale * ndtri(0.5 * (1.0 + value))

    def _entropy(self) -> Tensor:
        return 0.5 * log(0.5 * math.pi * square(self.scale)) + 0.5

    def _mean(self) -> Tensor:
        return self.scale * math.sqrt(2.0 / math.pi)

    def _mode(self) -> Tensor:
        return array_ops.zeros_like(self.scale)

    def _variance(self) -> Tensor:
        return square(self.scale) * (1.0 - 2.0 / math.pi)


@added_divergence(HalfNormal, HalfNormal)
def _kl_half_normal(a: HalfNormal, b: HalfNormal, name: str | None = None) -> Tensor:
    with get_default_graph().name_scope(name or "kl_half_normal_half_normal"):
        return log(b.scale) - log(a.scale) + 0.5 * (square(a.scale) / square(b.scale) - 1.0)


class Chi2(Gamma):
    """Chi-squared distributions: of sums of squares of standard normal numbers.

    Args:
        df: Degrees of freedom, positive: how many numbers.
        validate_args: See `Normal`.
        allow_nan_stats: See `Normal`.
        name: See `Normal`.
    """

    df: Tensor

    _shaped_by = ("df",)

    def __init__(
        self, df: TensorLike, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Chi2"
    ) -> None:
        parameters = dict(locals())
        with get_default_graph().name_scope(name) as name:
            checks = [assert_positive(df)] if validate_args else []
            (self.df,) = float_parameters(checks, df=df)
        rate = convert_to_tensor(0.5, self.df.dtype)
        super().__init__(0.5 * self.df, rate, validate_args, allow_nan_stats, name)
        self._parameters = parameters


class Chi2WithAbsDf(Chi2):
    """`Chi2` with ``floor(abs(df))`` degrees of freedom.

    Args:
        df: See there.
        validate_args: See `Normal`.
        allow_nan_stats: See `Normal`.
        name: See `Normal`.
    """

    def __init__(
        self, df: TensorLike, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Chi2WithAbsDf"
    ) -> None:
        parameters = dict(locals())
        with get_default_graph().name_scope(name) as name:
            df = math_ops.floor(math_ops.abs(convert_to_tensor(df)), name="floor_abs_df")
        super().__init__(df, validate_args, allow_nan_stats, name)
        self._parameters = parameters


class InverseGamma(ScalarDistribution):
    """Distributions of the inverse of numbers that have gamma distributions.

    Args:
        concentration: Their shape parameters, positive.
        rate: Their inverse scales, positive; broadcast against `concentration`, same dtype.
        validate_args: See `Normal`.
        allow_nan_stats: See `Normal`.
        name: See `Normal`.
    """

    concentration: Tensor
    rate: Tensor

    _shaped_by = "concentration", "rate"

    def __init__(
        self,
        concentration: TensorLike,
        rate: TensorLike,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "InverseGamma",
    ) -> None:
        self._init(dict(locals()), ("concentration", "rate"), concentration=concentration, rate=rate)

    def _sample_n(self, n: Tensor, seed: int | None = None) -> Tensor:
        concentration, rate = self._in_batch(self.concentration), self._in_batch(self.rate)
        return 1.0 / random_ops.random_gamma(array_ops.reshape(n, [1]), concentration, rate, self.dtype, seed)

    def _checked(self, value: Tensor) -> Tensor:
        return after([assert_positive(value)], value) if self.validate_args else value

    def _log_prob(self, value: Tensor) -> Tensor:
        value, c = self._checked(value), self.concentration
        return c * log(self.rate) - lgamma(c) - (1.0 + c) * log(value) - self.rate / value

    def _cdf(self, value: Tensor) -> Tensor:
        return math_ops.igammac(self.concentration, self.rate / self._checked(value))

    def _survival_function(self, value: Tensor) -> Tensor:
        return math_ops.igamma(self.concentration, self.rate / self._checked(value))

    def _entropy(self) -> Tensor:
        c = self.concentration
        return c + log(self.rate) + lgamma(c) - (1.0 + c) * digamma(c)

    def _mean(self) -> Tensor:
        mean = self.rate / (self.concentration - 1.0)
        message = "mean undefined when any concentration <= 1"
        return where_above([self.concentration], mean, self.allow_nan_stats, message)

    def _variance(self) -> Tensor:
        c = self.concentration
        variance = square(self.rate) / (square(c - 1.0) * (c - 2.0))
        message = "variance undefined when any concentration <= 2"
        return where_above([c], variance, self.allow_nan_stats, message, bound=2.0)

    def _mode(self) -> Tensor:
        return self.rate / (1.0 + self.concentration)


class InverseGammaWithSoftplusConcentrationRate(InverseGamma):
    """`InverseGamma` whose parameters are the softplus of those given.

    Args:
        concentration: See there.
        rate: See there.
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
        name: str = "InverseGammaWithSoftplusConcentrationRate",
    ) -> None:
        parameters = dict(locals())
        with get_default_graph().name_scope(name) as name:
            concentration, rate = softplus(convert_to_tensor(concentration)), softplus(convert_to_tensor(rate))
        super().__init__(concentration, rate, validate_args, allow_nan_stats, name)
        self._parameters = parameters


# -- single points -------------------------------------------------------------------------------------


class _Deterministic(Distribution):
    """Base of distributions that have one value."""

    _event_rank = 0

    def __init__(
        self,
        loc: TensorLike,
        atol: TensorLike | None,
        rtol: TensorLike | None,
        validate_args: bool,
        allow_nan_stats: bool,
        name: str,
        parameters: dict[str, object],
    ) -> None:
        with get_default_graph().name_scope(name) as name:
            loc = convert_to_tensor(loc, name="loc")
            if self._event_rank and loc.shape.rank == 0:
                raise ValueError("Argument loc must be at least rank 1.")
            checks = [assert_rank_at_least(loc, 1)] if validate_args and self._event_rank else []
            self.loc = after(checks, loc)
            limits = [convert_to_tensor(0 if limit is None else limit, loc.dtype) for limit in (atol, rtol)]
            if validate_args:
                limits = [after([assert_non_negative(limit)], limit) for limit in limits]
            self.atol, self.rtol = limits
            exact = rtol is None
            self._slack = self.atol if exact else self.atol + self.rtol * math_ops.abs(self.loc)
        super().__init__(
            self.loc.dtype,
            FULLY_REPARAMETERIZED,
            validate_args,
            allow_nan_stats,
            parameters,
            [self.loc, self.atol, self.rtol],
            name,
        )

    def _batch_shape(self) -> TensorShape:
        return self.loc.shape[:-1] if self._event_rank else self.loc.shape

    def _event_shape(self) -> TensorShape:
        return self.loc.shape[-1:] if self._event_rank else TensorShape([])

    def _batch_shape_tensor(self) -> Tensor:
        sizes = array_ops.shape(self.loc)
        return sizes[:-1] if self._event_rank else sizes

    def _event_shape_tensor(self) -> Tensor:
        return array_ops.shape(self.loc)[-1:] if self._event_rank else convert_to_tensor(np.zeros(0, np.int32))

    def _sample_n(self, n: Tensor, seed: int | None = None) -> Tensor:
        sizes = array_ops.concat([array_ops.reshape(n, [1]), array_ops.shape(self.loc)], 0)
        return self.loc + array_ops.zeros(sizes, self.dtype)

    def _is_there(self, value: Tensor) -> Tensor:
        return math_ops.abs(value - self.loc) <= self._slack

    def _mean(self) -> Tensor:
        return array_ops.identity(self.loc)

    def _mode(self) -> Tensor:
        return self._mean()

    def _variance(self) -> Tensor:
        return array_ops.zeros_like(self.loc)

    def _entropy(self) -> Tensor:
        return array_ops.zeros(self.batch_shape_tensor(), self.dtype)


class Deterministic(_Deterministic):
    """Distributions over numbers of which one has the probability 1, and those that are near to it.

    Args:
        loc: The numbers.
        atol: How far from it counts as near; 0 when None.
        rtol: Likewise, as a part of `loc`; 0 when None.
        validate_args: Check that these are not negative.
        allow_nan_stats: See `Normal`.
        name: See `Normal`.
    """

    def __init__(
        self,
        loc: TensorLike,
        atol: TensorLike | None = None,
        rtol: TensorLike | None = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Deterministic",
    ) -> None:
        super().__init__(loc, atol, rtol, validate_args, allow_nan_stats, name, dict(locals()))

    @classmethod
    def _param_shapes(cls, sample_shape: TensorLike) -> dict[str, Tensor]:
        return {"loc": convert_to_tensor(sample_shape)}

    def _prob(self, value: Tensor) -> Tensor:
        return array_ops.cast(self._is_there(value), self.dtype)

    def _cdf(self, value: Tensor) -> Tensor:
        return array_ops.cast(value >= self.loc - self._slack, self.dtype)


class VectorDeterministic(_Deterministic):
    """Distributions over vectors of which one has the probability 1, and those that are near to it.

    Args:
        loc: The vectors, ``[..., n]``.
        atol: See `Deterministic`.
        rtol: See `Deterministic`.
        validate_args: See `Deterministic`.
        allow_nan_stats: See `Normal`.
        name: See `Normal`.

    Raises:
        ValueError: `loc` is a scalar.
    """

    _event_rank = 1

    def __init__(
        self,
        loc: TensorLike,
        atol: TensorLike | None = None,
        rtol: TensorLike | None = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "VectorDeterministic",
    ) -> None:
        super().__init__(loc, atol, rtol, validate_args, allow_nan_stats, name, dict(locals()))

    def _prob(self, value: Tensor) -> Tensor:
        if self.validate_args:
            value = after([assert_rank_at_least(value, 1)], value)
            message = "Argument 'x' not defined in the same space R^k as this distribution"
            sizes = array_ops.shape(value)[-1:]
            value = after([assert_equal(self.event_shape_tensor(), sizes, message=message)], value)
        return array_ops.cast(math_ops.reduce_all(self._is_there(value), -1), self.dtype)
