"""Distributions of the images of others under maps (`Bijector`)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tfray.framework import dtypes
from tfray.framework.constant_value import constant_value
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import DTypeLike, TensorLike
from tfray.library.distributions import checks
from tfray.library.distributions.bijector import Bijector, Identity, known_length, last_axes, length_of
from tfray.library.distributions.continuous_distributions import Uniform
from tfray.library.distributions.discrete_distributions import ExpRelaxedOneHotCategorical
from tfray.library.distributions.distribution import Distribution
from tfray.library.distributions.elementwise_bijectors import Exp, Sigmoid
from tfray.library.distributions.elementwise_bijectors import Kumaraswamy as KumaraswamyBijector
from tfray.library.distributions.located_distributions import Logistic
from tfray.ops.arrays import array_ops
from tfray.ops.checks.check_ops import assert_less_equal, assert_positive
from tfray.ops.math import math_ops
from tfray.ops.math.math_ops import digamma, lgamma, log, reduce_logsumexp, reduce_sum, square


class TransformedDistribution(Distribution):
    """The distribution of ``bijector.forward(x)``, where x has another distribution.

    Args:
        distribution: The distribution of x.
        bijector: The map; the identity when None.
        batch_shape: Draw a batch of this shape of numbers or vectors x that are distributed alike. `distribution` must
            be one distribution then, not a batch.
        event_shape: Make events of this shape of numbers x. `distribution` must be one of numbers then.
        validate_args: Check shapes whose length is not known before a step runs; `distribution` and `bijector` check
            their own values.
        name: Prefix of the operations' names; the names of the two together when None.

    Raises:
        ValueError: A shape is given where `distribution` has one.

    Where several values have the same image, as with `AbsoluteValue`, there are no cumulative distributions, quantiles
    and entropies: they raise `NotImplementedError`.
    """

    def __init__(
        self,
        distribution: Distribution,
        bijector: Bijector | None = None,
        batch_shape: TensorLike | None = None,
        event_shape: TensorLike | None = None,
        validate_args: bool = False,
        name: str | None = None,
    ) -> None:
        parameters = dict(locals())
        own_name = distribution.name.rstrip("/").rpartition("/")[2]
        self.distribution = distribution
        self.bijector = Identity(validate_args) if bijector is None else bijector
        with get_default_graph().name_scope(name or f"{bijector.name if bijector else ''}{own_name}") as name:
            self._batch = _replaced_shape(
                batch_shape, distribution.batch_shape, distribution.batch_shape_tensor, "batch_shape", validate_args
            )
            self._event = _replaced_shape(
                event_shape, distribution.event_shape, distribution.event_shape_tensor, "event_shape", validate_args
            )
        super().__init__(
            distribution.dtype,
            distribution.reparameterization_type,
            validate_args,
            distribution.allow_nan_stats,
            parameters,
            [shape for shape in (self._batch, self._event) if shape is not None],
            name,
        )

    @property
    def _distribution(self) -> Distribution:
        return self.distribution

    @property
    def _bijector(self) -> Bijector:
        return self.bijector

    # -- shapes ----------------------------------------------------------------------------------

    # A shape of unknown length may be empty. One that is not takes the place of an empty one: so it is put before it.

    def _inner_event(self) -> TensorShape:
        return self.distribution.event_shape if self._event is None else _static(self._event)

    def _inner_event_tensor(self) -> Tensor:
        return _replaced(self._event, self.distribution.event_shape_tensor())

    def _batch_shape(self) -> TensorShape:
        return self.distribution.batch_shape if self._batch is None else _static(self._batch)

    def _batch_shape_tensor(self) -> Tensor:
        return _replaced(self._batch, self.distribution.batch_shape_tensor())

    def _event_shape(self) -> TensorShape:
        return self.bijector.forward_event_shape(self._inner_event())

    def _event_shape_tensor(self) -> Tensor:
        return self.bijector.forward_event_shape_tensor(self._inner_event_tensor())

    def _ndims(self) -> int | Tensor:
        rank = self.event_shape.rank
        return array_ops.size(self.event_shape_tensor()) if rank is None else rank

    # -- what it knows ---------------------------------------------------------------------------

    def sample(self, sample_shape: TensorLike = (), seed: int | None = None, name: str = "sample") -> Tensor:
        """Draw samples; see `Distribution.sample`. The map knows what their origins are."""
        with self._name_scope(name):
            origins, outer = self._drawn(sample_shape, seed)
            origins.set_shape(outer.concatenate(self.batch_shape).concatenate(self._inner_event()))
            images = self.bijector.forward(origins)
            images.set_shape(outer.concatenate(self.batch_shape).concatenate(self.event_shape))
            return images

    def _sample_n(self, n: Tensor, seed: int | None = None) -> Tensor:
        """Samples of x: the map comes after them."""
        outer = [array_ops.reshape(n, [1])] + ([] if self._batch is None else [self._batch])
        if self._event is None:
            return self.distribution.sample(array_ops.concat(outer, 0), seed)
        # The dimensions of the event come first, in front of those of the batch that the distribution has.
        drawn = self.distribution.sample(array_ops.concat([self._event, *outer], 0), seed)
        return _turned(drawn, array_ops.size(self._event))

    def _over_event(self, values: Tensor) -> Tensor:
        return values if self._event is None else reduce_sum(values, last_axes(length_of(self._event)))

    def _branches(self, value: Tensor) -> list[tuple[Tensor, Tensor]]:
        """What has the image `value`, and the logarithm of the determinant there: once, or for each that has it."""
        origins = self.bijector.inverse(value)
        log_dets = self.bijector.inverse_log_det_jacobian(value, self._ndims())
        return list(zip(origins, log_dets, strict=True)) if isinstance(origins, tuple) else [(origins, log_dets)]

    def _log_prob(self, value: Tensor) -> Tensor:
        found = []
        for origin, log_det in self._branches(value):
            likely = self._over_event(self._of_origin(self.distribution.log_prob, origin))
            found.append(likely + array_ops.cast(log_det, likely.dtype))
        return found[0] if len(found) == 1 else reduce_logsumexp(array_ops.stack(found), 0)

    def _prob(self, value: Tensor) -> Tensor:
        return math_ops.exp(self._log_prob(value))

    def _of_origin(self, function: Callable[[Tensor], Tensor], origin: Tensor) -> Tensor:
        """What `distribution` says of x. Where an event has taken the place of the last dimensions, they go first."""
        if self._event is None or self.distribution.batch_shape.rank == 0:
            return function(origin)
        count = length_of(self._event)
        told = function(_turned(origin, -count))
        return _turned(told, count)

    def _of_number(self, value: Tensor, what: str) -> Tensor:
        if self._event is not None:
            raise NotImplementedError(f"{what} is not implemented when overriding event_shape")
        if not self.bijector._is_injective:
            raise NotImplementedError(f"{what} is not implemented when bijector is not injective.")
        return self.bijector.inverse(value)

    def _cdf(self, value: Tensor) -> Tensor:
        return self.distribution.cdf(self._of_number(value, "cdf"))

    def _log_cdf(self, value: Tensor) -> Tensor:
        return self.distribution.log_cdf(self._of_number(value, "log_cdf"))

    def _survival_function(self, value: Tensor) -> Tensor:
        return self.distribution.survival_function(self._of_number(value, "survival_function"))

    def _log_survival_function(self, value: Tensor) -> Tensor:
        return self.distribution.log_survival_function(self._of_number(value, "log_survival_function"))

    def _quantile(self, value: Tensor) -> Tensor:
        if self._event is not None:
            raise NotImplementedError("quantile is not implemented when overriding event_shape")
        if not self.bijector._is_injective:
            raise NotImplementedError("quantile is not implemented when bijector is not injective.")
        return self.bijector.forward(self.distribution.quantile(value))

    def _mean(self) -> Tensor:
        if not self.bijector.is_constant_jacobian or not self.bijector._is_injective:
            raise NotImplementedError("mean is not implemented for non-affine bijectors")
        return self.bijector.forward(self._spread(self.distribution.mean(), of_events=True))

    def _entropy(self) -> Tensor:
        if not self.bijector.is_constant_jacobian:
            raise NotImplementedError("entropy is not implemented")
        if not self.bijector._is_injective:
            raise NotImplementedError("entropy is not implemented when bijector is not injective.")
        entropy = self.distribution.entropy()
        if self._event is not None:
            entropy = entropy * array_ops.cast(math_ops.reduce_prod(self._event), entropy.dtype)
        entropy = self._spread(entropy)
        somewhere = array_ops.zeros(
            array_ops.concat([self.batch_shape_tensor(), self.event_shape_tensor()], 0), self.dtype
        )
        somewhere.set_shape(self.batch_shape.concatenate(self.event_shape))
        return entropy - self.bijector.inverse_log_det_jacobian(somewhere, self._ndims())

    def _spread(self, statistic: Tensor, of_events: bool = False) -> Tensor:
        """A statistic of `distribution` in the shape of this batch, followed by that of events."""
        if self._batch is None and self._event is None:
            return statistic
        sizes = [self.batch_shape_tensor(), *([self._inner_event_tensor()] if of_events else [])]
        if of_events and self._event is not None:
            ones = array_ops.ones_like(self._event)
            statistic = array_ops.reshape(statistic, array_ops.concat([array_ops.shape(statistic), ones], 0))
        return array_ops.broadcast_to(statistic, array_ops.concat(sizes, 0))


def _replaced_shape(
    shape: TensorLike | None, there: TensorShape, there_tensor: Callable[[], Tensor], name: str, validate: bool
) -> Tensor | None:
    """A shape that takes the place of an empty one, as a tensor; None where none is given."""
    if shape is None:
        return None
    given = shape.as_list() if isinstance(shape, TensorShape) else shape
    tensor = convert_to_tensor(given, dtypes.int32, name)
    if tensor.shape.rank is not None and tensor.shape.rank != 1:
        raise ValueError(f"`{name}` override must be a vector.")
    length = known_length(tensor)
    if length == 0:
        return None
    if length is not None and there.rank != 0:
        raise ValueError(f"base distribution not scalar: its {name} is {there}, so that {name} cannot be given.")
    if length is None and there.rank != 0 and validate:
        both = math_ops.minimum(array_ops.size(tensor), array_ops.size(there_tensor()))
        return checks.after([assert_less_equal(both, 0, message="base distribution not scalar")], tensor)
    return tensor


def _static(shape: Tensor) -> TensorShape:
    sizes, length = constant_value(shape), known_length(shape)
    return TensorShape((None if length is None else [None] * length) if sizes is None else sizes.tolist())


def _replaced(shape: Tensor | None, there: Tensor) -> Tensor:
    """The shape that an empty one was replaced by; `there` itself if it was not."""
    return there if shape is None else array_ops.concat([shape, there], 0) if known_length(shape) is None else shape


def _turned(tensor: Tensor, by: int | Tensor) -> Tensor:
    """The tensor with so many of its first dimensions behind the others; with the last ones in front for `-by`."""
    axes = array_ops.range(array_ops.rank(tensor))
    return array_ops.transpose(tensor, array_ops.roll(axes, -by, 0))


class RelaxedBernoulli(TransformedDistribution):
    """Distributions over ``(0, 1)``, the nearer to those of `Bernoulli` the lower the temperature.

    Gradients flow from samples to the parameters.

    Args:
        temperature: Positive; broadcast against the others.
        logits: Log-odds of 1; or None.
        probs: Probabilities of 1; or None.
        validate_args: Check the parameters.
        allow_nan_stats: Statistics that are not defined are NaN; when False, they are errors of the step.
        name: Prefix of the operations' names.

    Raises:
        ValueError: Both `logits` and `probs` are given, or neither.
    """

    def __init__(
        self,
        temperature: TensorLike,
        logits: TensorLike | None = None,
        probs: TensorLike | None = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "RelaxedBernoulli",
    ) -> None:
        parameters = dict(locals())
        with get_default_graph().name_scope(name) as name:
            self.logits, self.probs = checks.logits_and_probs(logits, probs, validate_args)
            temperature = convert_to_tensor(temperature, self.logits.dtype, "temperature")
            self.temperature = checks.after([assert_positive(temperature)] if validate_args else [], temperature)
            numbers = Logistic(
                self.logits / self.temperature,
                1.0 / self.temperature,
                validate_args,
                allow_nan_stats,
                f"{name}Logistic",
            )
        super().__init__(numbers, Sigmoid(validate_args), validate_args=validate_args, name=name)
        self._parameters = parameters


class RelaxedOneHotCategorical(TransformedDistribution):
    """Distributions over vectors of shares, the nearer to those of `OneHotCategorical` the lower the temperature.

    Gradients flow from samples to the parameters.

    Args:
        temperature: Positive; broadcast against the shape of the batch.
        logits: Shape ``[..., n]``: unnormalised log-probabilities; or None.
        probs: Shape ``[..., n]``: probabilities; or None.
        dtype: That of the parameters, which samples have too; None to take it from them.
        validate_args: See `RelaxedBernoulli`.
        allow_nan_stats: See `RelaxedBernoulli`.
        name: See `RelaxedBernoulli`.

    Raises:
        ValueError: `dtype` is not that of the parameters.
    """

    def __init__(
        self,
        temperature: TensorLike,
        logits: TensorLike | None = None,
        probs: TensorLike | None = None,
        dtype: DTypeLike | None = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "RelaxedOneHotCategorical",
    ) -> None:
        parameters = dict(locals())
        with get_default_graph().name_scope(name) as name:
            given = (temperature, logits, probs, dtype, validate_args, allow_nan_stats)
            logarithms = ExpRelaxedOneHotCategorical(*given, f"{name}dist")
        self.temperature, self.logits, self.probs = logarithms.temperature, logarithms.logits, logarithms.probs
        super().__init__(logarithms, Exp(validate_args), validate_args=validate_args, name=name)
        self._parameters = parameters

    @property
    def event_size(self) -> Tensor:
        """The size of the vectors."""
        return self.distribution.event_size  # type: ignore[attr-defined]


class Kumaraswamy(TransformedDistribution):
    """Kumaraswamy's distributions over ``(0, 1)``, which are like beta distributions.

    Args:
        concentration1: Positive.
        concentration0: Positive; broadcast against the first, same dtype.
        validate_args: Check parameters and values.
        allow_nan_stats: Statistics that are not defined are NaN; when False, they are errors of the step.
        name: Prefix of the operations' names.
    """

    def __init__(
        self,
        concentration1: TensorLike,
        concentration0: TensorLike,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Kumaraswamy",
    ) -> None:
        parameters = dict(locals())
        with get_default_graph().name_scope(name) as name:
            first = convert_to_tensor(concentration1, name="concentration1")
            bijector = KumaraswamyBijector(first, convert_to_tensor(concentration0, first.dtype), validate_args)
            self.concentration1, self.concentration0 = bijector.concentration1, bijector.concentration0
            ones = array_ops.ones_like(self.concentration1 + self.concentration0)
            numbers = Uniform(array_ops.zeros_like(ones), ones, validate_args, allow_nan_stats, f"{name}Uniform")
        super().__init__(numbers, bijector, validate_args=validate_args, name=name)
        self._parameters = parameters

    def _moment(self, power: float) -> Tensor:
        a, b = self.concentration1, self.concentration0
        c = 1.0 + power / a
        return math_ops.exp(log(b) + lgamma(c) + lgamma(b) - lgamma(c + b))

    def _mean(self) -> Tensor:
        return self._moment(1.0)

    def _variance(self) -> Tensor:
        return self._moment(2.0) - square(self._moment(1.0))

    def _entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        return (1.0 - 1.0 / b) + (1.0 - 1.0 / a) * (digamma(b + 1.0) + np.euler_gamma) - log(a) - log(b)
