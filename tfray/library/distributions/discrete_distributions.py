"""Distributions over classes and counts, and over probabilities: Bernoulli, categorical, multinomial, Dirichlet."""

from __future__ import annotations

from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import DTypeLike, as_dtype
from tfray.framework.graph import Tensor
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.library.distributions.distribution import Distribution, RegisterKL, float_parameters, nan_unless
from tfray.ops.arrays import array_ops
from tfray.ops.math import math_ops
from tfray.ops.math.math_ops import digamma, lgamma, log, log1p, reduce_sum
from tfray.ops.nn.activation_ops import softplus
from tfray.ops.nn.cross_entropy_ops import log_softmax, softmax
from tfray.ops.random import random_ops


def _one_of(logits: TensorLike | None, probs: TensorLike | None, kind: str) -> None:
    if (logits is None) == (probs is None):
        raise ValueError(f"{kind} takes either logits or probs")


class Bernoulli(Distribution):
    """Distributions over 0 and 1.

    Args:
        logits: Log-odds of 1; or None.
        probs: Probabilities of 1; or None.
        dtype: Dtype of samples.
        validate_args: Accepted; parameters are not checked.
        allow_nan_stats: Accepted; statistics that are not defined are NaN.
        name: Prefix of the operations' names.
    """

    def __init__(
        self,
        logits: TensorLike | None = None,
        probs: TensorLike | None = None,
        dtype: DTypeLike = dtypes.int32,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Bernoulli",
    ) -> None:
        _one_of(logits, probs, "Bernoulli")
        if logits is None:
            (self.probs,) = float_parameters(probs)
            self.logits = log(self.probs) - log1p(-self.probs)
        else:
            (self.logits,) = float_parameters(logits)
            self.probs = math_ops.sigmoid(self.logits)
        super().__init__(as_dtype(dtype), [self.logits], False, name)

    def _sample(self, sample_shape: Tensor, seed: int | None) -> Tensor:
        numbers = random_ops.random_uniform(self._sample_sizes(sample_shape), dtype=self.probs.dtype, seed=seed)
        return array_ops.cast(numbers < self.probs, self.dtype)

    def _log_prob(self, value: Tensor) -> Tensor:
        value = array_ops.cast(value, self.logits.dtype)
        # Of 1 it is -softplus(-logits), of 0 it is -softplus(logits).
        return value * self.logits - softplus(self.logits)

    def _entropy(self) -> Tensor:
        return softplus(self.logits) - self.logits * math_ops.sigmoid(self.logits)

    def _mean(self) -> Tensor:
        return array_ops.identity(self.probs)

    def _variance(self) -> Tensor:
        return self.probs * (1.0 - self.probs)

    def _mode(self) -> Tensor:
        return array_ops.cast(self.probs > 0.5, self.dtype)


@RegisterKL(Bernoulli, Bernoulli)
def _kl_bernoulli(a: Bernoulli, b: Bernoulli) -> Tensor:
    of_one = softplus(-b.logits) - softplus(-a.logits)
    of_zero = softplus(b.logits) - softplus(a.logits)
    return math_ops.sigmoid(a.logits) * of_one + math_ops.sigmoid(-a.logits) * of_zero


class _OverClasses(Distribution):
    """A distribution with a vector of class probabilities."""

    def __init__(self, logits: TensorLike | None, probs: TensorLike | None, dtype: DTypeLike | None, name: str) -> None:
        _one_of(logits, probs, type(self).__name__)
        if logits is None:
            (self.probs,) = float_parameters(probs)
            self.logits = log(self.probs)
        else:
            (self.logits,) = float_parameters(logits)
            self.probs = softmax(self.logits)
        if self.logits.shape.rank is None or self.logits.shape.rank < 1:
            raise ValueError(f"{type(self).__name__} needs logits of known rank, with the classes last")
        super().__init__(self.logits.dtype if dtype is None else as_dtype(dtype), [self.logits], False, name)

    @property
    def batch_shape(self) -> TensorShape:
        return self.logits.shape[:-1]

    def batch_shape_tensor(self, name: str = "batch_shape_tensor") -> Tensor:
        return array_ops.identity(array_ops.shape(self.logits)[:-1], name)

    def _draw(self, count: Tensor, seed: int | None) -> Tensor:
        """Classes ``[count] + batch_shape``."""
        classes = array_ops.shape(self.logits)[-1]
        rows = array_ops.reshape(self.logits, array_ops.stack([-1, classes]))
        drawn = random_ops.multinomial(rows, count, seed, output_dtype=dtypes.int32)
        sizes = array_ops.concat([array_ops.reshape(count, [1]), self.batch_shape_tensor()], 0)
        return array_ops.reshape(array_ops.transpose(drawn), sizes)


class Categorical(_OverClasses):
    """Distributions over the classes ``0, 1, ..., n - 1``.

    Args:
        logits: Shape ``[..., n]``: unnormalised log-probabilities; or None.
        probs: Shape ``[..., n]``: probabilities; or None.
        dtype: Dtype of samples.
        validate_args: See `Bernoulli`.
        allow_nan_stats: See `Bernoulli`.
        name: See `Bernoulli`.
    """

    def __init__(
        self,
        logits: TensorLike | None = None,
        probs: TensorLike | None = None,
        dtype: DTypeLike = dtypes.int32,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Categorical",
    ) -> None:
        super().__init__(logits, probs, dtype, name)

    @property
    def event_size(self) -> Tensor:
        """Number of classes."""
        return array_ops.shape(self.logits)[-1]

    def _sample(self, sample_shape: Tensor, seed: int | None) -> Tensor:
        drawn = array_ops.cast(self._draw(math_ops.reduce_prod(sample_shape), seed), self.dtype)
        return array_ops.reshape(drawn, self._sample_sizes(sample_shape))

    def _indicator(self, value: Tensor) -> Tensor:
        return array_ops.one_hot(array_ops.cast(value, dtypes.int32), self.event_size, dtype=self.logits.dtype)

    def _log_prob(self, value: Tensor) -> Tensor:
        # A class that is not asked for may have probability 0: use 0 for it, because 0 times minus infinity is NaN.
        indicator, log_probs = self._indicator(value), log_softmax(self.logits)
        return reduce_sum(
            math_ops.multiply_no_nan(
                log_probs + array_ops.zeros_like(indicator), indicator + array_ops.zeros_like(self.probs)
            ),
            -1,
        )

    def _cdf(self, value: Tensor) -> Tensor:
        until = array_ops.sequence_mask(array_ops.cast(value, dtypes.int32) + 1, self.event_size, self.logits.dtype)
        return reduce_sum(until * softmax(self.logits), -1)

    def _entropy(self) -> Tensor:
        log_probs = log_softmax(self.logits)
        return -reduce_sum(math_ops.multiply_no_nan(log_probs, math_ops.exp(log_probs)), -1)

    def _mode(self) -> Tensor:
        return array_ops.cast(math_ops.argmax(self.logits, -1), self.dtype)


@RegisterKL(Categorical, Categorical)
def _kl_categorical(a: Categorical, b: Categorical) -> Tensor:
    log_a, log_b = log_softmax(a.logits), log_softmax(b.logits)
    return reduce_sum(math_ops.exp(log_a) * (log_a - log_b), -1)


class Multinomial(_OverClasses):
    """Distributions over how often each class comes in a number of draws.

    Args:
        total_count: Numbers of draws, floats: a scalar or of the shape of the batch.
        logits: Shape ``[..., n]``: unnormalised log-probabilities; or None.
        probs: Shape ``[..., n]``: probabilities; or None.
        validate_args: See `Bernoulli`.
        allow_nan_stats: See `Bernoulli`.
        name: See `Bernoulli`.
    """

    def __init__(
        self,
        total_count: TensorLike,
        logits: TensorLike | None = None,
        probs: TensorLike | None = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Multinomial",
    ) -> None:
        super().__init__(logits, probs, None, name)
        self.total_count = array_ops.cast(convert_to_tensor(total_count), self.logits.dtype)

    @property
    def event_shape(self) -> TensorShape:
        return self.logits.shape[-1:]

    def event_shape_tensor(self, name: str = "event_shape_tensor") -> Tensor:
        return array_ops.identity(array_ops.shape(self.logits)[-1:], name)

    def _counts(self) -> Tensor:
        return array_ops.expand_dims(self._in_batch(self.total_count), -1)

    def _sample(self, sample_shape: Tensor, seed: int | None) -> Tensor:
        most = array_ops.cast(math_ops.reduce_max(self.total_count), dtypes.int32)
        samples = math_ops.reduce_prod(sample_shape)
        classes = array_ops.shape(self.logits)[-1]
        drawn = self._draw(most * samples, seed)
        # Shape [most, samples] + batch + [classes]. Each distribution counts only its own number of draws, by a mask.
        sizes = array_ops.concat([array_ops.stack([most, samples]), self.batch_shape_tensor()], 0)
        each = array_ops.one_hot(array_ops.reshape(drawn, sizes), classes, dtype=self.dtype)
        counts = array_ops.cast(array_ops.reshape(self._in_batch(self.total_count), [-1]), dtypes.int32)
        mask = array_ops.transpose(array_ops.sequence_mask(counts, most, self.dtype))
        mask = array_ops.reshape(
            mask, array_ops.concat([array_ops.stack([most, 1]), self.batch_shape_tensor(), [1]], 0)
        )
        total = reduce_sum(each * mask, 0)
        return array_ops.reshape(total, array_ops.concat([self._sample_sizes(sample_shape), [classes]], 0))

    def _log_prob(self, value: Tensor) -> Tensor:
        log_probs = log_softmax(self.logits) + array_ops.zeros_like(value)
        likely = reduce_sum(math_ops.multiply_no_nan(log_probs, value + array_ops.zeros_like(log_probs)), -1)
        return likely + lgamma(self.total_count + 1.0) - reduce_sum(lgamma(value + 1.0), -1)

    def _mean(self) -> Tensor:
        return self.probs * self._counts()

    def _variance(self) -> Tensor:
        return self.probs * (1.0 - self.probs) * self._counts()

    def covariance(self, name: str = "covariance") -> Tensor:
        """Covariances between classes, shape ``[..., n, n]``."""
        with self._scope(name):
            p = self.probs
            outer = array_ops.expand_dims(p, -1) * array_ops.expand_dims(p, -2)
            return array_ops.expand_dims(self._counts(), -1) * (array_ops.matrix_diag(p) - outer)


class Dirichlet(Distribution):
    """Distributions over vectors of probabilities.

    Args:
        concentration: Shape ``[..., n]``, positive.
        validate_args: See `Bernoulli`.
        allow_nan_stats: See `Bernoulli`.
        name: See `Bernoulli`.
    """

    def __init__(
        self,
        concentration: TensorLike,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Dirichlet",
    ) -> None:
        (self.concentration,) = float_parameters(concentration)
        super().__init__(self.concentration.dtype, [self.concentration], True, name)

    @property
    def total_concentration(self) -> Tensor:
        """Sum of the concentrations of a vector."""
        return reduce_sum(self.concentration, -1)

    @property
    def batch_shape(self) -> TensorShape:
        return self.concentration.shape[:-1]

    @property
    def event_shape(self) -> TensorShape:
        return self.concentration.shape[-1:]

    def batch_shape_tensor(self, name: str = "batch_shape_tensor") -> Tensor:
        return array_ops.identity(array_ops.shape(self.concentration)[:-1], name)

    def event_shape_tensor(self, name: str = "event_shape_tensor") -> Tensor:
        return array_ops.identity(array_ops.shape(self.concentration)[-1:], name)

    def _log_beta(self) -> Tensor:
        return reduce_sum(lgamma(self.concentration), -1) - lgamma(self.total_concentration)

    def _sample(self, sample_shape: Tensor, seed: int | None) -> Tensor:
        numbers = random_ops.random_gamma(sample_shape, self.concentration, dtype=self.dtype, seed=seed)
        return numbers / reduce_sum(numbers, -1, keepdims=True)

    def _log_prob(self, value: Tensor) -> Tensor:
        return reduce_sum(math_ops.xlogy(self.concentration - 1.0, value), -1) - self._log_beta()

    def _entropy(self) -> Tensor:
        total, size = self.total_concentration, array_ops.cast(array_ops.shape(self.concentration)[-1], self.dtype)
        rest = reduce_sum((self.concentration - 1.0) * digamma(self.concentration), -1)
        return self._log_beta() + (total - size) * digamma(total) - rest

    def _total(self) -> Tensor:
        return reduce_sum(self.concentration, -1, keepdims=True)

    def _mean(self) -> Tensor:
        return self.concentration / self._total()

    def _variance(self) -> Tensor:
        mean = self._mean()
        return mean * (1.0 - mean) / (1.0 + self._total())

    def covariance(self, name: str = "covariance") -> Tensor:
        """Covariances between the probabilities of a vector, shape ``[..., n, n]``."""
        with self._scope(name):
            mean = self._mean()
            outer = array_ops.expand_dims(mean, -1) * array_ops.expand_dims(mean, -2)
            return (array_ops.matrix_diag(mean) - outer) / array_ops.expand_dims(1.0 + self._total(), -1)

    def _mode(self) -> Tensor:
        size = array_ops.cast(array_ops.shape(self.concentration)[-1], self.dtype)
        mode = (self.concentration - 1.0) / (self._total() - size)
        has_one = math_ops.reduce_all(self.concentration > 1, -1, keepdims=True)
        return nan_unless(array_ops.broadcast_to(has_one, array_ops.shape(mode)), mode)


@RegisterKL(Dirichlet, Dirichlet)
def _kl_dirichlet(a: Dirichlet, b: Dirichlet) -> Tensor:
    slopes = digamma(a.concentration) - array_ops.expand_dims(digamma(a.total_concentration), -1)
    return reduce_sum((a.concentration - b.concentration) * slopes, -1) - a._log_beta() + b._log_beta()
