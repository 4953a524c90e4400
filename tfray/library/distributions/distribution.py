"""What probability distributions have in common, and the divergence between two of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tfray.errors import UnimplementedError
from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import DType
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays import array_ops
from tfray.ops.math import math_ops

FULLY_REPARAMETERIZED: Final = "FULLY_REPARAMETERIZED"
"""Samples are differentiable functions of the parameters."""

NOT_REPARAMETERIZED: Final = "NOT_REPARAMETERIZED"
"""No gradient flows from samples to parameters."""


class Distribution:
    """A batch of probability distributions of one kind.

    A subclass sets its parameters, and defines `_sample`, `_log_prob` and the other private methods that it supports.

    Args:
        dtype: Dtype of samples.
        parameters: Tensors that are broadcast to the shape of the batch.
        reparameterized: Whether gradients flow from samples to parameters.
        name: Prefix of the operations' names.
    """

    def __init__(self, dtype: DType, parameters: Sequence[Tensor], reparameterized: bool, name: str) -> None:
        self._dtype = dtype
        self._batched = list(parameters)
        self._name = name
        self._reparameterized = reparameterized

    # -- shapes ----------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """Prefix of the operations' names."""
        return self._name

    @property
    def dtype(self) -> DType:
        """Dtype of samples."""
        return self._dtype

    @property
    def reparameterization_type(self) -> str:
        """`FULLY_REPARAMETERIZED` where gradients flow from samples to parameters, else `NOT_REPARAMETERIZED`."""
        return FULLY_REPARAMETERIZED if self._reparameterized else NOT_REPARAMETERIZED

    @property
    def batch_shape(self) -> TensorShape:
        """Static shape of the batch of distributions."""
        shape = self._batched[0].shape
        for parameter in self._batched[1:]:
            shape = array_ops.broadcast_static_shape(shape, parameter.shape)
        return shape

    @property
    def event_shape(self) -> TensorShape:
        """Static shape of one sample of one distribution."""
        return TensorShape([])

    def batch_shape_tensor(self, name: str = "batch_shape_tensor") -> Tensor:
        """Shape of the batch as an int32 vector."""
        known = self.batch_shape
        if known.is_fully_defined():
            return convert_to_tensor(np.array(known.as_list(), np.int32), name=name)
        shape = array_ops.shape(self._batched[0])
        for parameter in self._batched[1:]:
            shape = array_ops.broadcast_dynamic_shape(shape, array_ops.shape(parameter))
        return array_ops.identity(shape, name)

    def event_shape_tensor(self, name: str = "event_shape_tensor") -> Tensor:
        """Shape of an event as an int32 vector."""
        return convert_to_tensor(np.array(self.event_shape.as_list(), np.int32), name=name)

    def _in_batch(self, value: TensorLike) -> Tensor:
        """`value` broadcast to the shape of the batch."""
        return array_ops.broadcast_to(value, self.batch_shape_tensor())

    # -- what is asked of it ---------------------------------------------------------------------

    def sample(self, sample_shape: TensorLike = (), seed: int | None = None, name: str = "sample") -> Tensor:
        """Draw samples.

        Args:
            sample_shape: How many of each distribution: an integer, or a shape.
            seed: Seed of the operation.
            name: Name of the operations.

        Returns:
            Shape ``sample_shape + batch_shape + event_shape``.
        """
        with self._scope(name):
            known = sample_shape if isinstance(sample_shape, Tensor) else np.array(sample_shape, np.int32).reshape(-1)
            count = array_ops.reshape(array_ops.cast(convert_to_tensor(known), dtypes.int32), [-1])
            samples: Tensor = self._sample(count, seed)
            if not isinstance(known, Tensor):
                samples.set_shape(
                    TensorShape(known.tolist()).concatenate(self.batch_shape).concatenate(self.event_shape)
                )
            return samples

    def log_prob(self, value: TensorLike, name: str = "log_prob") -> Tensor:
        """Logarithm of the probability, or of its density, at `value`."""
        with self._scope(name):
            return self._log_prob(self._as_event(value))

    def prob(self, value: TensorLike, name: str = "prob") -> Tensor:
        """Probability, or its density, at `value`."""
        with self._scope(name):
            return math_ops.exp(self._log_prob(self._as_event(value)))

    def cdf(self, value: TensorLike, name: str = "cdf") -> Tensor:
        """Probability of `value` or less."""
        with self._scope(name):
            return self._cdf(self._as_event(value))

    def log_cdf(self, value: TensorLike, name: str = "log_cdf") -> Tensor:
        """Logarithm of `cdf`."""
        with self._scope(name):
            return math_ops.log(self._cdf(self._as_event(value)))

    def survival_function(self, value: TensorLike, name: str = "survival_function") -> Tensor:
        """Probability of more than `value`."""
        with self._scope(name):
            return 1.0 - self._cdf(self._as_event(value))

    def log_survival_function(self, value: TensorLike, name: str = "log_survival_function") -> Tensor:
        """Logarithm of `survival_function`."""
        with self._scope(name):
            return math_ops.log1p(-self._cdf(self._as_event(value)))

    def mean(self, name: str = "mean") -> Tensor:
        """Expected value."""
        with self._scope(name):
            return self._mean()

    def variance(self, name: str = "variance") -> Tensor:
        """Expected squared difference from the mean, element by element."""
        with self._scope(name):
            return self._variance()

    def stddev(self, name: str = "stddev") -> Tensor:
        """Square root of the variance."""
        with self._scope(name):
            return math_ops.sqrt(self._variance())

    def mode(self, name: str = "mode") -> Tensor:
        """The most likely value."""
        with self._scope(name):
            return self._mode()

    def entropy(self, name: str = "entropy") -> Tensor:
        """Expected negative log-probability, in nats."""
        with self._scope(name):
            return self._entropy()

    def kl_divergence(self, other: Distribution, name: str = "kl_divergence") -> Tensor:
        """Kullback-Leibler divergence from this distribution to `other`."""
        with self._scope(name):
            return kl_divergence(self, other)

    def cross_entropy(self, other: Distribution, name: str = "cross_entropy") -> Tensor:
        """Expected negative log-probability that `other` gives to samples of this distribution."""
        with self._scope(name):
            return kl_divergence(self, other) + self._entropy()

    # -- what a subclass knows -------------------------------------------------------------------

    def _sample(self, sample_shape: Tensor, seed: int | None) -> Tensor:
        raise self._unknown("sample")

    def _log_prob(self, value: Tensor) -> Tensor:
        raise self._unknown("log_prob")

    def _cdf(self, value: Tensor) -> Tensor:
        raise self._unknown("cdf")

    def _mean(self) -> Tensor:
        raise self._unknown("mean")

    def _variance(self) -> Tensor:
        raise self._unknown("variance")

    def _mode(self) -> Tensor:
        raise self._unknown("mode")

    def _entropy(self) -> Tensor:
        raise self._unknown("entropy")

    def _unknown(self, what: str) -> UnimplementedError:
        return UnimplementedError(f"there is no closed form of {what} for {type(self).__name__}")

    def _as_event(self, value: TensorLike) -> Tensor:
        return convert_to_tensor(value, None if isinstance(value, Tensor) else self._dtype)

    def _sample_sizes(self, sample_shape: Tensor) -> Tensor:
        return array_ops.concat([sample_shape, self.batch_shape_tensor()], 0)

    def _scope(self, name: str) -> Any:
        return get_default_graph().name_scope(f"{self._name}_{name}")

    def __repr__(self) -> str:
        shapes = f"batch_shape={self.batch_shape} event_shape={self.event_shape}"
        return f"<tf.distributions.{type(self).__name__} {self._name!r} {shapes} dtype={self._dtype.name}>"


def float_parameters(*values: TensorLike | None) -> list[Tensor]:
    """Parameters as tensors of one floating dtype: that of the first tensor or array of floats among them."""
    typed = [dtype for value in values if (dtype := _float_dtype(value)) is not None]
    return [convert_to_tensor(value, typed[0] if typed else dtypes.float32) for value in values]


def _float_dtype(value: TensorLike | None) -> DType | None:
    dtype = getattr(value, "dtype", None)
    if dtype is None:
        return None
    found = dtypes.as_dtype(dtype)
    return found if found.is_floating else None


def derived_seed(seed: int | None, salt: int) -> int | None:
    """A seed for one of several draws that make a sample; None stays None."""
    return None if seed is None else (seed * 0x9E3779B1 + salt * 0x85EBCA6B) % (2**31 - 1)


def nan_unless(condition: Tensor, value: Tensor) -> Tensor:
    """`value` where `condition` holds, NaN elsewhere."""
    return array_ops.where(condition, value, array_ops.fill(array_ops.shape(value), _nan(value.dtype)))


def _nan(dtype: DType) -> Any:
    return np.array(math.nan, dtype.numpy)


# -- divergence ----------------------------------------------------------------------------------------

Divergence = Callable[[Any, Any], Tensor]

_DIVERGENCES: Final[dict[tuple[type, type], Divergence]] = {}


class RegisterKL:
    """Decorator that makes a function the divergence between two kinds of distributions.

    Args:
        dist_cls_a: Class of the first.
        dist_cls_b: Class of the second.
    """

    def __init__(self, dist_cls_a: type, dist_cls_b: type) -> None:
        self._key = dist_cls_a, dist_cls_b

    def __call__(self, kl_fn: Divergence) -> Divergence:
        if self._key in _DIVERGENCES:
            raise ValueError(f"a divergence between {self._key[0].__name__} and {self._key[1].__name__} is registered")
        _DIVERGENCES[self._key] = kl_fn
        return kl_fn


def kl_divergence(
    distribution_a: Distribution, distribution_b: Distribution, allow_nan_stats: bool = True, name: str | None = None
) -> Tensor:
    """Kullback-Leibler divergence from one distribution to another: the expected difference of log-probabilities.

    Args:
        distribution_a: The distribution over which the expectation is taken.
        distribution_b: The other one.
        allow_nan_stats: Accepted; a divergence that is not defined is NaN.
        name: Name scope of the operations.

    Raises:
        UnimplementedError: No divergence is registered for the two.
    """
    for kind_a in type(distribution_a).__mro__:
        for kind_b in type(distribution_b).__mro__:
            found = _DIVERGENCES.get((kind_a, kind_b))
            if found is not None:
                with get_default_graph().name_scope(name or "kl_divergence"):
                    return found(distribution_a, distribution_b)
    kinds = f"{type(distribution_a).__name__} to {type(distribution_b).__name__}"
    raise UnimplementedError(f"no divergence is known from {kinds}; register one with tf.distributions.RegisterKL")
