"""Distributions made of others: independent ones as one, and mixtures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.library.distributions.continuous_distributions import Normal
from tfray.library.distributions.count_distributions import Poisson
from tfray.library.distributions.discrete_distributions import Categorical
from tfray.library.distributions.distribution import (
    NOT_REPARAMETERIZED,
    Distribution,
    RegisterKL,
    derived_seed,
    kl_divergence,
)
from tfray.ops.arrays import array_ops
from tfray.ops.arrays.construction_ops import range_
from tfray.ops.math.arithmetic_ops import maximum
from tfray.ops.math.math_ops import exp, log, reduce_logsumexp, reduce_sum, square
from tfray.ops.nn.cross_entropy_ops import log_softmax


class Independent(Distribution):
    """Distributions of which the last dimensions of the batch are one event, whose parts are independent.

    Args:
        distribution: The distributions.
        reinterpreted_batch_ndims: Number of dimensions that become part of the event; all but the first when None.
        validate_args: Not used: `distribution` checks its own values.
        name: Prefix of the operations' names; ``Independent`` before that of `distribution` when None.

    Raises:
        ValueError: The rank of the batch is lower than `reinterpreted_batch_ndims`.
    """

    def __init__(
        self,
        distribution: Distribution,
        reinterpreted_batch_ndims: int | None = None,
        validate_args: bool = False,
        name: str | None = None,
    ) -> None:
        parameters = dict(locals())
        rank = distribution.batch_shape.rank
        self.reinterpreted_batch_ndims: Any = reinterpreted_batch_ndims
        if reinterpreted_batch_ndims is None:
            self.reinterpreted_batch_ndims = self._all_but_the_first(distribution)
        elif rank is not None and rank < reinterpreted_batch_ndims:
            raise InvalidArgumentError(
                f"reinterpreted_batch_ndims({reinterpreted_batch_ndims}) cannot exceed distribution.batch_ndims({rank})"
            )
        self.distribution = distribution
        super().__init__(
            distribution.dtype,
            distribution.reparameterization_type,
            validate_args,
            distribution.allow_nan_stats,
            parameters,
            name=name or f"Independent{distribution.name.rstrip('/').rpartition('/')[2]}",
        )

    @staticmethod
    def _all_but_the_first(distribution: Distribution) -> int | Tensor:
        """Number of dimensions of a batch but one, which a step finds where it is not known."""
        rank = distribution.batch_shape.rank
        if rank is not None:
            return max(0, rank - 1)
        return maximum(0, array_ops.size(distribution.batch_shape_tensor()) - 1)

    def _batch_shape(self) -> TensorShape:
        batch = self.distribution.batch_shape
        return batch if batch.rank is None else batch[: batch.rank - self.reinterpreted_batch_ndims]

    def _event_shape(self) -> TensorShape:
        batch = self.distribution.batch_shape
        if batch.rank is None:
            return batch
        return batch[batch.rank - self.reinterpreted_batch_ndims :].concatenate(self.distribution.event_shape)

    def _batch_shape_tensor(self) -> Tensor:
        sizes = self.distribution.batch_shape_tensor()
        return sizes[: array_ops.size(sizes) - self.reinterpreted_batch_ndims]

    def _event_shape_tensor(self) -> Tensor:
        sizes = self.distribution.batch_shape_tensor()
        inner = sizes[array_ops.size(sizes) - self.reinterpreted_batch_ndims :]
        return array_ops.concat([inner, self.distribution.event_shape_tensor()], 0)

    def _over_event(self, values: Tensor) -> Tensor:
        """The sum of the numbers of the parts of each event."""
        count = self.reinterpreted_batch_ndims
        return reduce_sum(values, range_(-count, 0) if isinstance(count, Tensor) else list(range(-count, 0)))

    def _sample_n(self, n: Tensor, seed: int | None = None) -> Tensor:
        return self.distribution.sample(n, seed)

    def _log_prob(self, value: Tensor) -> Tensor:
        return self._over_event(self.distribution.log_prob(value))

    def _entropy(self) -> Tensor:
        return self._over_event(self.distribution.entropy())

    def _mean(self) -> Tensor:
        return self.distribution.mean()

    def _variance(self) -> Tensor:
        return self.distribution.variance()

    def _stddev(self) -> Tensor:
        return self.distribution.stddev()

    def _mode(self) -> Tensor:
        return self.distribution.mode()


@RegisterKL(Independent, Independent)
def _kl_independent(a: Independent, b: Independent, name: str | None = None) -> Tensor:
    if a.event_shape.is_fully_defined() and b.event_shape.is_fully_defined() and a.event_shape != b.event_shape:
        raise ValueError(f"Event shapes do not match: {a.event_shape} and {b.event_shape}.")
    if not a.distribution.event_shape.is_compatible_with(b.distribution.event_shape):
        raise NotImplementedError("KL between Independents with different event shapes not supported.")
    with get_default_graph().name_scope(name or "kl_independent"):
        return a._over_event(kl_divergence(a.distribution, b.distribution))


class MixtureSameFamily(Distribution):
    """Mixtures of distributions of one kind, which are the last dimension of the batch of `components_distribution`.

    Args:
        mixture_distribution: How likely each is. Its batch is that of the mixtures, or one for all of them.
        components_distribution: The distributions.
        validate_args: Not used: the two check their own values.
        allow_nan_stats: Statistics that are not defined are NaN; when False, they are errors of the step.
        name: Prefix of the operations' names.

    Raises:
        ValueError: The rank of an event, or of the batch of the components, is not known, or they are no batch.
    """

    def __init__(
        self,
        mixture_distribution: Categorical,
        components_distribution: Distribution,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MixtureSameFamily",
    ) -> None:
        parameters = dict(locals())
        event, batch = components_distribution.event_shape.rank, components_distribution.batch_shape.rank
        if event is None or not batch:
            raise InvalidArgumentError(
                "components_distribution must have a batch whose last dimension is the components', and known ranks"
            )
        self.mixture_distribution = mixture_distribution
        self.components_distribution = components_distribution
        self._event_rank = event
        super().__init__(
            components_distribution.dtype, NOT_REPARAMETERIZED, validate_args, allow_nan_stats, parameters, name=name
        )

    def _batch_shape(self) -> TensorShape:
        return self.components_distribution.batch_shape[:-1]

    def _event_shape(self) -> TensorShape:
        return self.components_distribution.event_shape

    def _batch_shape_tensor(self) -> Tensor:
        return self.components_distribution.batch_shape_tensor()[:-1]

    def _event_shape_tensor(self) -> Tensor:
        return self.components_distribution.event_shape_tensor()

    def _sample_n(self, n: Tensor, seed: int | None = None) -> Tensor:
        parts = self.components_distribution.sample(n, derived_seed(seed, 1))
        chosen = Categorical(self._logits()).sample(n, derived_seed(seed, 2))
        count = self.components_distribution.batch_shape_tensor()[-1]
        return self._weighted(parts, array_ops.one_hot(chosen, count, dtype=parts.dtype))

    def _logits(self) -> Tensor:
        """Log-probabilities of the components of each mixture."""
        logits = log_softmax(self.mixture_distribution.logits)
        return array_ops.broadcast_to(logits, self.components_distribution.batch_shape_tensor())

    def _weighted(self, parts: Tensor, weights: Tensor) -> Tensor:
        """The sum over the components, each of whose events is multiplied by its weight."""
        for _ in range(self._event_rank):
            weights = weights[..., None]
        return reduce_sum(parts * weights, -1 - self._event_rank)

    def _log_prob(self, value: Tensor) -> Tensor:
        of_parts = self.components_distribution.log_prob(array_ops.expand_dims(value, -1 - self._event_rank))
        return reduce_logsumexp(of_parts + log_softmax(self.mixture_distribution.logits), -1)

    def _log_cdf(self, value: Tensor) -> Tensor:
        of_parts = self.components_distribution.log_cdf(array_ops.expand_dims(value, -1 - self._event_rank))
        return reduce_logsumexp(of_parts + log_softmax(self.mixture_distribution.logits), -1)

    def _mean(self) -> Tensor:
        return self._weighted(self.components_distribution.mean(), self.mixture_distribution.probs)

    def _variance(self) -> Tensor:
        means, probs = self.components_distribution.mean(), self.mixture_distribution.probs
        return self._weighted(self.components_distribution.variance() + square(means), probs) - square(self._mean())


def quadrature_scheme_lognormal_quantiles(
    loc: TensorLike, scale: TensorLike, quadrature_size: int, validate_args: bool = False, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Points in the middle between quantiles of log-normal distributions, and their equal weights.

    Args:
        loc: Means of the logarithms, a float dtype.
        scale: Their standard deviations, positive.
        quadrature_size: Number of points.
        validate_args: Check that scales are positive.
        name: Name of the operations.

    Returns:
        The points, ``[..., quadrature_size]``, and the weights, ``[quadrature_size]``.
    """
    with get_default_graph().name_scope(name or "quadrature_scheme_lognormal_quantiles"):
        logs = Normal(array_ops.expand_dims(loc, -1), array_ops.expand_dims(scale, -1), validate_args)
        edges = np.linspace(0.0, 1.0, quadrature_size + 3)[1:-1].astype(logs.dtype.as_numpy_dtype)
        quantiles = exp(logs.quantile(edges))
        points = (quantiles[..., :-1] + quantiles[..., 1:]) / 2.0
        return points, array_ops.fill([quadrature_size], array_ops.cast(1.0 / quadrature_size, points.dtype))


class PoissonLogNormalQuadratureCompound(MixtureSameFamily):
    """Mixtures of Poisson distributions, whose log rates are some points of a distribution.

    As in TensorFlow the points of `quadrature_fn`, by default quantiles of log-normal distributions, are taken for the
    logarithms of the rates.

    Args:
        loc: Means of the logarithms of the points, a float dtype.
        scale: Their standard deviations, positive; broadcast against `loc`, same dtype.
        quadrature_size: Number of Poisson distributions in a mixture.
        quadrature_fn: Function of `loc`, `scale`, `quadrature_size` and `validate_args` to points and their weights.
        validate_args: See `Normal`. Values must be whole numbers then, and not negative.
        allow_nan_stats: See `Normal`.
        name: Prefix of the operations' names.

    Raises:
        TypeError: The dtypes of points and weights differ.
    """

    def __init__(
        self,
        loc: TensorLike,
        scale: TensorLike,
        quadrature_size: int = 8,
        quadrature_fn: Callable[..., tuple[Tensor, Tensor]] = quadrature_scheme_lognormal_quantiles,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "PoissonLogNormalQuadratureCompound",
    ) -> None:
        parameters = dict(locals())
        with get_default_graph().name_scope(name) as name:
            self.loc = convert_to_tensor(loc, name="loc")
            self.scale = convert_to_tensor(scale, dtype=self.loc.dtype, name="scale")
            self.quadrature_size = quadrature_size
            points, weights = quadrature_fn(self.loc, self.scale, quadrature_size, validate_args)
            if points.dtype is not weights.dtype:
                raise TypeError(
                    f"Quadrature grid dtype ({points.dtype.name}) does not match quadrature probs dtype "
                    f"({weights.dtype.name})."
                )
            choice = Categorical(logits=log(weights), validate_args=validate_args, allow_nan_stats=allow_nan_stats)
            counts = Poisson(log_rate=points, validate_args=validate_args, allow_nan_stats=allow_nan_stats)
            super().__init__(choice, counts, validate_args, allow_nan_stats, name)
        self._parameters = parameters

    @property
    def distribution(self) -> Distribution:
        """The Poisson distributions."""
        return self.components_distribution


class Mixture(Distribution):
    """Mixtures of distributions that may be of different kinds.

    Args:
        cat: How likely each is.
        components: As many distributions, of one dtype and of the batch and event shape of the mixtures.
        validate_args: Not used: the distributions check their own values.
        allow_nan_stats: Statistics that are not defined are NaN; when False, they are errors of the step.
        name: Prefix of the operations' names.

    Raises:
        TypeError: `cat` is no `Categorical`, or one of the components is no distribution of the first's dtype.
        ValueError: There are no components, or not as many as classes of `cat`.
    """

    def __init__(
        self,
        cat: Categorical,
        components: Sequence[Distribution],
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Mixture",
    ) -> None:
        parameters = dict(locals())
        components = list(components)
        if not isinstance(cat, Categorical):
            raise TypeError(f"cat must be a Categorical distribution, but saw: {cat}")
        if not components:
            raise ValueError("components must be a non-empty list or tuple")
        if not all(isinstance(part, Distribution) and part.dtype is components[0].dtype for part in components):
            raise TypeError(f"components must be distributions of one dtype, but saw: {components}")
        classes = cat.logits.shape.as_list()[-1] if cat.logits.shape.rank else None
        if classes not in (None, len(components)):
            raise ValueError(f"cat has {classes} classes, and there are {len(components)} components")
        self.cat, self.components = cat, components
        self.num_components = len(components)
        super().__init__(
            components[0].dtype, NOT_REPARAMETERIZED, validate_args, allow_nan_stats, parameters, name=name
        )

    def _batch_shape(self) -> TensorShape:
        return self.components[0].batch_shape

    def _event_shape(self) -> TensorShape:
        return self.components[0].event_shape

    def _batch_shape_tensor(self) -> Tensor:
        return self.components[0].batch_shape_tensor()

    def _event_shape_tensor(self) -> Tensor:
        return self.components[0].event_shape_tensor()

    def _weighted(self, parts: Sequence[Tensor], weights: Tensor) -> Tensor:
        """The sum of `parts`, each times its place in the last dimension of `weights`, whose others are of a batch."""
        total = None
        for part, weight in zip(parts, array_ops.unstack(weights, self.num_components, -1), strict=True):
            for _ in range(self.event_shape.rank or 0):
                weight = weight[..., None]
            total = part * weight if total is None else total + part * weight
        assert total is not None
        return total

    def _sample_n(self, n: Tensor, seed: int | None = None) -> Tensor:
        parts = [part.sample(n, derived_seed(seed, i + 1)) for i, part in enumerate(self.components)]
        chosen = self.cat.sample(n, derived_seed(seed, 0))
        return self._weighted(parts, array_ops.one_hot(chosen, self.num_components, dtype=self.dtype))

    def _log_prob(self, value: Tensor) -> Tensor:
        of_parts = array_ops.stack([part.log_prob(value) for part in self.components], -1)
        return reduce_logsumexp(of_parts + log_softmax(self.cat.logits), -1)

    def _mean(self) -> Tensor:
        return self._weighted([part.mean() for part in self.components], self.cat.probs)

    def _variance(self) -> Tensor:
        squares = [part.variance() + square(part.mean()) for part in self.components]
        return self._weighted(squares, self.cat.probs) - square(self._mean())

    def entropy_lower_bound(self, name: str = "entropy_lower_bound") -> Tensor:
        """The mean entropy of the components, below which the mixture's is not."""
        with self._name_scope(name):
            return self._weighted([part.entropy() for part in self.components], self.cat.probs)
