"""Distributions and maps that are told more with each call, and vectors whose elements follow from earlier ones."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import numpy as np

from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.library.distributions.bijector import Bijector
from tfray.library.distributions.distribution import Distribution, derived_seed
from tfray.library.distributions.transformed_distribution import TransformedDistribution

_TOLD: Final = (
    "_sample_n", "_log_prob", "_prob", "_cdf", "_log_cdf", "_survival_function", "_log_survival_function", "_quantile",
)  # fmt: skip
_TOLD_MAP: Final = ("_forward", "_inverse", "_forward_log_det_jacobian", "_inverse_log_det_jacobian")


def _bound(given: Any, base: type, names: tuple[str, ...], conditions: Mapping[str, Any]) -> Any:
    """A copy of an object whose own methods of these names are given conditions, those that it has of its own."""
    bound = copy.copy(given)
    for name in names:
        if getattr(type(given), name) is not getattr(base, name):
            setattr(bound, name, partial(getattr(type(given), name), bound, **conditions))
    return bound


class ConditionalDistribution(Distribution):
    """A distribution whose methods take arguments by name that are for those which a subclass defines.

    So ``log_prob(value, condition=x)`` calls ``_log_prob(value, condition=x)``.
    """

    def _given(self, conditions: Mapping[str, Any]) -> ConditionalDistribution:
        """This distribution under conditions."""
        found: ConditionalDistribution = _bound(self, Distribution, _TOLD, conditions) if conditions else self
        return found

    def sample(
        self,
        sample_shape: TensorLike = (),
        seed: int | None = None,
        name: str = "sample",
        **condition_kwargs: Any,
    ) -> Tensor:
        """Draw samples; see `Distribution.sample`."""
        given = self._given(condition_kwargs)
        return super(ConditionalDistribution, given).sample(sample_shape, seed, name)

    def log_prob(self, value: TensorLike, name: str = "log_prob", **condition_kwargs: Any) -> Tensor:
        """Logarithm of the probability, or of its density, at `value`."""
        return super(ConditionalDistribution, self._given(condition_kwargs)).log_prob(value, name)

    def prob(self, value: TensorLike, name: str = "prob", **condition_kwargs: Any) -> Tensor:
        """Probability, or its density, at `value`."""
        return super(ConditionalDistribution, self._given(condition_kwargs)).prob(value, name)

    def cdf(self, value: TensorLike, name: str = "cdf", **condition_kwargs: Any) -> Tensor:
        """Probability of `value` or less."""
        return super(ConditionalDistribution, self._given(condition_kwargs)).cdf(value, name)

    def log_cdf(self, value: TensorLike, name: str = "log_cdf", **condition_kwargs: Any) -> Tensor:
        """Logarithm of `cdf`."""
        return super(ConditionalDistribution, self._given(condition_kwargs)).log_cdf(value, name)

    def survival_function(self, value: TensorLike, name: str = "survival_function", **condition_kwargs: Any) -> Tensor:
        """Probability of more than `value`."""
        return super(ConditionalDistribution, self._given(condition_kwargs)).survival_function(value, name)

    def log_survival_function(
        self, value: TensorLike, name: str = "log_survival_function", **condition_kwargs: Any
    ) -> Tensor:
        """Logarithm of `survival_function`."""
        return super(ConditionalDistribution, self._given(condition_kwargs)).log_survival_function(value, name)

    def quantile(self, value: TensorLike, name: str = "quantile", **condition_kwargs: Any) -> Tensor:
        """The inverse of `cdf`, at probabilities."""
        return super(ConditionalDistribution, self._given(condition_kwargs)).quantile(value, name)


class ConditionalBijector(Bijector):
    """A map whose methods take arguments by name that are for those which a subclass defines.

    So ``forward(x, condition=z)`` calls ``_forward(x, condition=z)``.
    """

    def _given(self, conditions: Mapping[str, Any]) -> ConditionalBijector:
        """This map under conditions: the same object for the same ones, so that it knows what it has computed."""
        if not conditions:
            return self
        known: dict[Any, Any] = self.__dict__.setdefault("_under", {})
        key = tuple(sorted((name, id(value)) for name, value in conditions.items()))
        if key not in known:
            bound = _bound(self, Bijector, _TOLD_MAP, conditions)
            bound._images, bound._origins = {}, {}
            known[key] = bound, conditions  # which keeps the identities taken
        found: ConditionalBijector = known[key][0]
        return found

    def forward(self, x: TensorLike, name: str = "forward", **condition_kwargs: Any) -> Tensor:
        """The image of `x`."""
        return super(ConditionalBijector, self._given(condition_kwargs)).forward(x, name)

    def inverse(self, y: TensorLike, name: str = "inverse", **condition_kwargs: Any) -> Tensor:
        """What has the image `y`."""
        return super(ConditionalBijector, self._given(condition_kwargs)).inverse(y, name)

    def forward_log_det_jacobian(
        self, x: TensorLike, event_ndims: TensorLike, name: str = "forward_log_det_jacobian", **condition_kwargs: Any
    ) -> Tensor:
        """See `Bijector.forward_log_det_jacobian`."""
        given = self._given(condition_kwargs)
        return super(ConditionalBijector, given).forward_log_det_jacobian(x, event_ndims, name)

    def inverse_log_det_jacobian(
        self, y: TensorLike, event_ndims: TensorLike, name: str = "inverse_log_det_jacobian", **condition_kwargs: Any
    ) -> Tensor:
        """See `Bijector.inverse_log_det_jacobian`."""
        given = self._given(condition_kwargs)
        return super(ConditionalBijector, given).inverse_log_det_jacobian(y, event_ndims, name)


class ConditionalTransformedDistribution(ConditionalDistribution, TransformedDistribution):
    """A `TransformedDistribution` of a conditional distribution or map.

    Its methods take `distribution_kwargs` and `bijector_kwargs`, dictionaries of what these are given by name.
    """

    def _given(self, conditions: Mapping[str, Any]) -> ConditionalDistribution:
        if unknown := conditions.keys() - {"bijector_kwargs", "distribution_kwargs"}:
            raise TypeError(f"got an unexpected keyword argument {unknown.pop()!r}")
        for_map, for_origin = conditions.get("bijector_kwargs"), conditions.get("distribution_kwargs")
        if not for_map and not for_origin:
            return self
        given = copy.copy(self)
        if for_map:
            given.bijector = self.bijector._given(for_map)  # type: ignore[attr-defined]
        if for_origin:
            given.distribution = self.distribution._given(for_origin)  # type: ignore[attr-defined]
        return given


class Autoregressive(Distribution):
    """A distribution of vectors each element of which depends on those before it.

    A sample is found by steps: a function makes the distribution of elements from the sample so far, of which the next
    one is drawn with the same randomness. After as many steps as there are elements it stands still.

    Args:
        distribution_fn: Function from a sample to a distribution, whose parameters for an element depend on the
            elements before it alone; called without arguments for the first when `sample0` is None.
        sample0: What it is called with first; shape ``batch_shape + event_shape``.
        num_steps: Number of steps; that of the elements of an event when None.
        validate_args: Taken, without effect: the distributions check their own values.
        allow_nan_stats: As of `Distribution`.
        name: Prefix of the operations' names.

    Raises:
        ValueError: `num_steps` is below 1, or neither it nor the shape of an event is known.
    """

    def __init__(
        self,
        distribution_fn: Callable[..., Distribution],
        sample0: TensorLike | None = None,
        num_steps: int | None = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Autoregressive",
    ) -> None:
        parameters = dict(locals())
        with get_default_graph().name_scope(name) as name:
            self.distribution_fn, self.sample0 = distribution_fn, sample0
            first = self.distribution0 = distribution_fn() if sample0 is None else distribution_fn(sample0)
        steps = first.event_shape.num_elements() if num_steps is None else num_steps
        if steps is None:
            raise ValueError("distribution_fn must generate a distribution with fully known `event_shape`.")
        if steps < 1:
            raise ValueError(f"num_steps ({steps}) must be at least 1.")
        self.num_steps = steps
        super().__init__(
            first.dtype, first.reparameterization_type, validate_args, allow_nan_stats, parameters, name=name
        )

    def _batch_shape(self) -> TensorShape:
        return self.distribution0.batch_shape

    def _batch_shape_tensor(self) -> Tensor:
        return self.distribution0.batch_shape_tensor()

    def _event_shape(self) -> TensorShape:
        return self.distribution0.event_shape

    def _event_shape_tensor(self) -> Tensor:
        return self.distribution0.event_shape_tensor()

    def _sample_n(self, n: Tensor, seed: int | None = None) -> Tensor:
        seed = derived_seed(int(np.random.randint(2**31 - 1)) if seed is None else seed, 1)
        samples = self.distribution0.sample(n, seed)
        for _ in range(self.num_steps):
            samples = self.distribution_fn(samples).sample(seed=seed)
        return samples

    def _log_prob(self, value: Tensor) -> Tensor:
        return self.distribution_fn(value).log_prob(value)

    def _prob(self, value: Tensor) -> Tensor:
        return self.distribution_fn(value).prob(value)
