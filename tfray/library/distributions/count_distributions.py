"""Distributions over whole numbers: Poisson, geometric, binomial and negative binomial."""

from __future__ import annotations

import math

import numpy as np

from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.type_aliases import TensorLike
from tfray.library.distributions.checks import after, logits_and_probs, whole_counts
from tfray.library.distributions.distribution import (
    NOT_REPARAMETERIZED,
    ScalarDistribution,
    derived_seed,
    float_parameters,
)
from tfray.ops.arrays import array_ops
from tfray.ops.arrays.broadcast_ops import where_v2
from tfray.ops.checks.check_ops import assert_less, assert_less_equal, assert_positive
from tfray.ops.math import math_ops
from tfray.ops.math.math_ops import betainc, exp, expm1, floor, lgamma, log, log1p, sigmoid
from tfray.ops.nn.activation_ops import log_sigmoid, softplus
from tfray.ops.random import random_ops


class Poisson(ScalarDistribution):
    """Poisson distributions, over floats.

    Args:
        rate: Means, positive; or None.
        log_rate: Logarithms of the means; or None.
        interpolate_nondiscrete: Whether numbers that are not whole have the probability that the formula gives;
            otherwise it is 0, and the cumulative distribution is that of the next lower whole number.
        validate_args: See `Normal`. Values must be whole numbers then, and not negative.
        allow_nan_stats: See `Normal`.
        name: See `Normal`.

    Raises:
        ValueError: Both `rate` and `log_rate` are given, or neither.
        TypeError: The parameter is not floating.
    """

    _shaped_by = ("rate",)

    def __init__(
        self,
        rate: TensorLike | None = None,
        log_rate: TensorLike | None = None,
        interpolate_nondiscrete: bool = True,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Poisson",
    ) -> None:
        parameters = dict(locals())
        if (rate is None) == (log_rate is None):
            raise ValueError("Must specify exactly one of `rate` and `log_rate`.")
        with get_default_graph().name_scope(name) as name:
            given = convert_to_tensor(rate if log_rate is None else log_rate, name="parameter")
            if not given.dtype.is_floating:
                raise TypeError(f"[log_]rate.dtype ({given.dtype.name}) is a not a float-type.")
            if log_rate is None:
                self.rate = after([assert_positive(given)] if validate_args else [], given)
                self.log_rate = log(self.rate)
            else:
                self.log_rate, self.rate = array_ops.identity(given), exp(given)
        self.interpolate_nondiscrete = interpolate_nondiscrete
        super().__init__(
            self.rate.dtype, NOT_REPARAMETERIZED, validate_args, allow_nan_stats, parameters, [self.rate], name
        )

    def _sample_n(self, n: Tensor, seed: int | None = None) -> Tensor:
        return random_ops.random_poisson(self.rate, array_ops.reshape(n, [1]), self.dtype, seed)

    def _whole(self, value: Tensor) -> Tensor:
        return whole_counts(value) if self.validate_args else value

    def _log_prob(self, value: Tensor) -> Tensor:
        value = self._whole(value)
        is_there = value >= 0
        if not self.interpolate_nondiscrete:
            is_there = math_ops.logical_and(is_there, math_ops.equal(floor(value), value))
        safe = where_v2(is_there, value, array_ops.zeros_like(value))
        likely = safe * self.log_rate - lgamma(1.0 + safe) - self.rate
        return where_v2(is_there, likely, convert_to_tensor(-math.inf, self.dtype))

    def _cdf(self, value: Tensor) -> Tensor:
        value = self._whole(value)
        safe = math_ops.maximum(value if self.interpolate_nondiscrete else floor(value), 0.0)
        return where_v2(value < 0, array_ops.zeros_like(value), math_ops.igammac(1.0 + safe, self.rate))

    def _mean(self) -> Tensor:
        return array_ops.identity(self.rate)

    def _variance(self) -> Tensor:
        return array_ops.identity(self.rate)

    def _mode(self) -> Tensor:
        return floor(self.rate)


class Geometric(ScalarDistribution):
    """Distributions of the number of failures before the first success, over floats.

    Args:
        logits: Log-odds of success; or None.
        probs: Probabilities of success, ``(0, 1]``; or None.
        validate_args: See `Normal`. Values must be whole numbers then, and not negative.
        allow_nan_stats: See `Normal`.
        name: See `Normal`.

    Raises:
        ValueError: Both `logits` and `probs` are given, or neither.
    """

    _shaped_by = ("probs",)

    def __init__(
        self,
        logits: TensorLike | None = None,
        probs: TensorLike | None = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Geometric",
    ) -> None:
        parameters = dict(locals())
        with get_default_graph().name_scope(name) as name:
            self.logits, self.probs = logits_and_probs(logits, probs, validate_args)
            if validate_args:
                self.probs = after([assert_positive(self.probs)], self.probs)
        super().__init__(
            self.probs.dtype,
            NOT_REPARAMETERIZED,
            validate_args,
            allow_nan_stats,
            parameters,
            [self.logits, self.probs],
            name,
        )

    def _sample_n(self, n: Tensor, seed: int | None = None) -> Tensor:
        # Keep above 0, whose logarithm is infinite.
        least = float(np.finfo(self.dtype.numpy).tiny)
        numbers = random_ops.random_uniform(self._sample_sizes(n), least, 1.0, self.dtype, seed)
        return floor(log(numbers) / log1p(-self.probs))

    def _log_prob(self, value: Tensor) -> Tensor:
        value = whole_counts(value) if self.validate_args else floor(value)
        return math_ops.xlog1py(value, -self.probs) + log(self.probs)

    def _cdf(self, value: Tensor) -> Tensor:
        value = whole_counts(value) if self.validate_args else floor(value)
        known = -expm1((value + 1.0) * log1p(-self.probs))
        return where_v2(value < 0, array_ops.zeros_like(known), known)

    def _entropy(self) -> Tensor:
        probs = self.probs
        if self.validate_args:
            message = "Entropy is undefined when logits = inf or probs = 1."
            probs = after([assert_less(probs, array_ops.ones_like(probs), message=message)], probs)
        return softplus(self.logits) / probs - self.logits

    def _mean(self) -> Tensor:
        return exp(-self.logits)

    def _variance(self) -> Tensor:
        return self._mean() / self.probs

    def _mode(self) -> Tensor:
        return array_ops.zeros_like(self.probs)


class _Trials(ScalarDistribution):
    """Base of distributions of how often something happens, or does not, in trials."""

    _shaped_by = "total_count", "probs"

    def __init__(
        self,
        total_count: TensorLike,
        logits: TensorLike | None,
        probs: TensorLike | None,
        validate_args: bool,
        allow_nan_stats: bool,
        name: str,
        parameters: dict[str, object],
    ) -> None:
        with get_default_graph().name_scope(name) as name:
            self.logits, self.probs = logits_and_probs(logits, probs, validate_args)
            (count,) = float_parameters([], total_count=convert_to_tensor(total_count, self.probs.dtype))
            self.total_count = self._checked_total(count) if validate_args else count
        super().__init__(
            self.probs.dtype,
            NOT_REPARAMETERIZED,
            validate_args,
            allow_nan_stats,
            parameters,
            [self.total_count, self.logits, self.probs],
            name,
        )

    def _checked_total(self, count: Tensor) -> Tensor:
        return whole_counts(count)


class Binomial(_Trials):
    """Distributions of the number of successes in trials, over floats. Samples cannot be drawn, as in TensorFlow.

    Args:
        total_count: Numbers of trials.
        logits: Log-odds of success; or None.
        probs: Probabilities of success; or None.
        validate_args: See `Normal`. Values must be whole numbers up to `total_count` then.
        allow_nan_stats: See `Normal`.
        name: See `Normal`.
    """

    def __init__(
        self,
        total_count: TensorLike,
        logits: TensorLike | None = None,
        probs: TensorLike | None = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Binomial",
    ) -> None:
        super().__init__(total_count, logits, probs, validate_args, allow_nan_stats, name, dict(locals()))

    def _checked(self, value: Tensor) -> Tensor:
        if not self.validate_args:
            return value
        message = "counts are not less than or equal to n."
        return after([assert_less_equal(value, self.total_count, message=message)], whole_counts(value))

    def _log_prob(self, value: Tensor) -> Tensor:
        value, n = self._checked(value), self.total_count
        ways = lgamma(1.0 + n) - lgamma(1.0 + value) - lgamma(1.0 + n - value)
        return ways + math_ops.xlogy(value, self.probs) + math_ops.xlog1py(n - value, -self.probs)

    def _cdf(self, value: Tensor) -> Tensor:
        value, n = floor(self._checked(value)), self.total_count
        inside = math_ops.logical_and(value >= 0, value < n)
        safe = where_v2(inside, value, array_ops.zeros_like(value))
        known = betainc(*_alike(math_ops.maximum(n - safe, 1.0), safe + 1.0, 1.0 - self.probs))
        return where_v2(inside, known, array_ops.cast(value >= n, self.dtype))

    def _mean(self) -> Tensor:
        return self.total_count * self.probs

    def _variance(self) -> Tensor:
        return self._mean() * (1.0 - self.probs)

    def _mode(self) -> Tensor:
        return floor((1.0 + self.total_count) * self.probs)


class NegativeBinomial(_Trials):
    """Distributions of the number of successes before some number of failures, over floats.

    Args:
        total_count: Numbers of failures, positive; they need not be whole.
        logits: Log-odds of success; or None.
        probs: Probabilities of success; or None.
        validate_args: See `Normal`. Values must be whole numbers then, and not negative.
        allow_nan_stats: See `Normal`.
        name: See `Normal`.
    """

    def __init__(
        self,
        total_count: TensorLike,
        logits: TensorLike | None = None,
        probs: TensorLike | None = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "NegativeBinomial",
    ) -> None:
        super().__init__(total_count, logits, probs, validate_args, allow_nan_stats, name, dict(locals()))

    def _checked_total(self, count: Tensor) -> Tensor:
        return after([assert_positive(count)], count)

    def _sample_n(self, n: Tensor, seed: int | None = None) -> Tensor:
        total, rates = self._in_batch(self.total_count), self._in_batch(exp(-self.logits))
        drawn = random_ops.random_gamma(array_ops.reshape(n, [1]), total, rates, self.dtype, seed)
        return random_ops.random_poisson(drawn, [], self.dtype, derived_seed(seed, 1))

    def _log_prob(self, value: Tensor) -> Tensor:
        value, n = (whole_counts(value) if self.validate_args else value), self.total_count
        ways = lgamma(n + value) - lgamma(1.0 + value) - lgamma(n)
        return ways + n * log_sigmoid(-self.logits) + value * log_sigmoid(self.logits)

    def _cdf(self, value: Tensor) -> Tensor:
        value = floor(whole_counts(value) if self.validate_args else value)
        known = betainc(*_alike(self.total_count, math_ops.maximum(value, 0.0) + 1.0, sigmoid(-self.logits)))
        return where_v2(value < 0, array_ops.zeros_like(known), known)

    def _mean(self) -> Tensor:
        return self.total_count * exp(self.logits)

    def _variance(self) -> Tensor:
        return self._mean() / sigmoid(-self.logits)

    def _mode(self) -> Tensor:
        mode = floor((self.total_count - 1.0) * exp(self.logits))
        return where_v2(self.total_count > 1, mode, array_ops.zeros_like(mode))


def _alike(*tensors: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Three tensors, broadcast to one shape."""
    zeros = sum(map(array_ops.zeros_like, tensors[1:]), array_ops.zeros_like(tensors[0]))
    a, b, x = (tensor + zeros for tensor in tensors)
    return a, b, x
