"""What probability distributions have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.constant_value import constant_value
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import DType, DTypeLike, as_dtype
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.tensor_shape import ShapeLike, TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays import array_ops
from tfray.ops.checks.check_ops import assert_positive
from tfray.ops.checks.print_assert_ops import Assert
from tfray.ops.math import math_ops


class ReparameterizationType:
    """Whether samples are differentiable functions of a distribution's parameters.

    Args:
        rep_type: Name of the kind. An instance equals only itself; those that exist are `FULLY_REPARAMETERIZED` and
            `NOT_REPARAMETERIZED`.
    """

    def __init__(self, rep_type: str) -> None:
        self._rep_type = rep_type

    def __repr__(self) -> str:
        return f"<Reparameterization Type: {self._rep_type}>"


FULLY_REPARAMETERIZED: Final = ReparameterizationType("FULLY_REPARAMETERIZED")
"""Gradients flow from samples to parameters."""

NOT_REPARAMETERIZED: Final = ReparameterizationType("NOT_REPARAMETERIZED")
"""No gradient flows from samples to parameters."""


class Distribution:
    """A batch of probability distributions of one kind: the base of one's own.

    A subclass defines those of these methods that it supports, without a name and inside the scope of the operation:
    `_batch_shape`, `_batch_shape_tensor`, `_event_shape`, `_event_shape_tensor`, ``_sample_n(n, seed)``, whose result
    has the shape ``[n] + batch_shape + event_shape``, ``_log_prob(value)`` or ``_prob(value)``, and likewise `_cdf`,
    `_log_cdf`, `_survival_function`, `_log_survival_function`, `_quantile`, `_mean`, `_variance`, `_stddev`,
    `_covariance`, `_mode`, `_entropy`, `_param_shapes`. What can be computed from another method follows by itself.

    Args:
        dtype: Dtype of samples.
        reparameterization_type: Whether gradients flow from samples to parameters.
        validate_args: Check parameters and values when a step runs, or at once where they are constants.
        allow_nan_stats: Statistics that are not defined are NaN; when False, they are errors.
        parameters: Arguments of the constructor, for `copy`: ``dict(locals())`` does.
        graph_parents: Tensors that the distribution depends on.
        name: Prefix of the operations' names, made unique unless it ends in ``/``; name of the class when None.

    Raises:
        ValueError: One of `graph_parents` is not a tensor.
    """

    def __init__(
        self,
        dtype: DTypeLike,
        reparameterization_type: ReparameterizationType,
        validate_args: bool,
        allow_nan_stats: bool,
        parameters: dict[str, Any] | None = None,
        graph_parents: Sequence[Tensor] | None = None,
        name: str | None = None,
    ) -> None:
        self._graph_parents = list(graph_parents or ())
        for index, parent in enumerate(self._graph_parents):
            if not isinstance(parent, Tensor):
                raise ValueError(f"graph_parents[{index}] must be a Tensor, not {parent!r}")
        with get_default_graph().name_scope(name or type(self).__name__) as scope:
            self._name = scope
        self._dtype = as_dtype(dtype)
        self._reparameterization_type = reparameterization_type
        self._validate_args = validate_args
        self._allow_nan_stats = allow_nan_stats
        self._parameters = dict(parameters or {})

    # -- what it is made of ----------------------------------------------------------------------

    @property
    def name(self) -> str:
        """Prefix of the operations' names, with a slash at its end."""
        return self._name

    @property
    def dtype(self) -> DType:
        """Dtype of samples."""
        return self._dtype

    @property
    def parameters(self) -> dict[str, Any]:
        """Arguments of the constructor by name."""
        hidden = "self", "__class__"
        return {name: value for name, value in self._parameters.items() if name not in hidden}

    @property
    def reparameterization_type(self) -> ReparameterizationType:
        """`FULLY_REPARAMETERIZED` where gradients flow from samples to parameters, else `NOT_REPARAMETERIZED`."""
        return self._reparameterization_type

    @property
    def allow_nan_stats(self) -> bool:
        """Whether statistics that are not defined are NaN; otherwise they are errors of the step."""
        return self._allow_nan_stats

    @property
    def validate_args(self) -> bool:
        """Whether parameters and values are checked."""
        return self._validate_args

    def copy(self, **override_parameters_kwargs: Any) -> Any:
        """A distribution of this kind, made with the same arguments except for those given here."""
        return type(self)(**{**self.parameters, **override_parameters_kwargs})

    @classmethod
    def param_shapes(cls, sample_shape: TensorLike, name: str = "DistributionParamShapes") -> dict[str, Tensor]:
        """Shapes that the parameters need for samples of the shape `sample_shape`, as int32 vectors by name."""
        with get_default_graph().name_scope(name):
            return cls._param_shapes(sample_shape)

    @classmethod
    def param_static_shapes(cls, sample_shape: ShapeLike) -> dict[str, TensorShape]:
        """Shapes that the parameters need for samples of the shape `sample_shape`, by name.

        Raises:
            ValueError: `sample_shape` is not fully known.
        """
        if isinstance(sample_shape, TensorShape):
            sample_shape = sample_shape.as_list() if sample_shape.is_fully_defined() else None
        if sample_shape is None:
            raise ValueError("param_static_shapes needs a sample_shape whose sizes are all known")
        found = {}
        for name, shape in cls.param_shapes(np.array(sample_shape, np.int32)).items():
            sizes = constant_value(shape)
            if sizes is None:
                raise ValueError(f"the shape of the parameter {name!r} is not known while the graph is built")
            found[name] = TensorShape(sizes.tolist())
        return found

    @classmethod
    def _param_shapes(cls, sample_shape: TensorLike) -> dict[str, Tensor]:
        raise NotImplementedError(f"_param_shapes is not implemented: {cls.__name__}")

    # -- shapes ----------------------------------------------------------------------------------

    @property
    def batch_shape(self) -> TensorShape:
        """Static shape of the batch of distributions, as far as it is known."""
        return TensorShape(self._batch_shape())

    @property
    def event_shape(self) -> TensorShape:
        """Static shape of one sample of one distribution, as far as it is known."""
        return TensorShape(self._event_shape())

    def batch_shape_tensor(self, name: str = "batch_shape_tensor") -> Tensor:
        """Shape of the batch as an int32 vector."""
        with self._name_scope(name):
            return _shape_tensor(self.batch_shape, self._batch_shape_tensor, "batch_shape")

    def event_shape_tensor(self, name: str = "event_shape_tensor") -> Tensor:
        """Shape of an event as an int32 vector."""
        with self._name_scope(name):
            return _shape_tensor(self.event_shape, self._event_shape_tensor, "event_shape")

    def is_scalar_event(self, name: str = "is_scalar_event") -> Tensor:
        """Whether an event is a single number: a bool scalar."""
        with self._name_scope(name):
            return _is_scalar(self.event_shape, self.event_shape_tensor, "is_scalar_event")

    def is_scalar_batch(self, name: str = "is_scalar_batch") -> Tensor:
        """Whether this is one distribution, not a batch: a bool scalar."""
        with self._name_scope(name):
            return _is_scalar(self.batch_shape, self.batch_shape_tensor, "is_scalar_batch")

    def _batch_shape(self) -> ShapeLike:
        return None

    def _event_shape(self) -> ShapeLike:
        return None

    def _batch_shape_tensor(self) -> Tensor:
        raise self._unknown("batch_shape_tensor")

    def _event_shape_tensor(self) -> Tensor:
        raise self._unknown("event_shape_tensor")

    # -- what is asked of it ---------------------------------------------------------------------

    def sample(self, sample_shape: TensorLike = (), seed: int | None = None, name: str = "sample") -> Tensor:
        """Draw samples.

        Args:
            sample_shape: How many of each distribution: an integer, or a shape.
            seed: Seed of the operation.
            name: Name of the operations.

        Returns:
            Shape ``sample_shape + batch_shape + event_shape``.

        Raises:
            ValueError: `sample_shape` is neither a scalar nor a vector.
        """
        with self._name_scope(name):
            samples, outer = self._drawn(sample_shape, seed)
            samples.set_shape(outer.concatenate(self.batch_shape).concatenate(self.event_shape))
            return samples

    def _drawn(self, sample_shape: TensorLike, seed: int | None) -> tuple[Tensor, TensorShape]:
        """Samples as `_sample_n` makes them, in the shape that is asked for; and that shape, as far as it is known."""
        if not isinstance(sample_shape, Tensor):
            sample_shape = np.array(sample_shape, np.int32)
        wanted = array_ops.cast(convert_to_tensor(sample_shape, name="sample_shape"), dtypes.int32)
        if (wanted.shape.rank or 0) > 1:
            raise ValueError(f"sample_shape must be a scalar or a vector, not of shape {wanted.shape}")
        count = math_ops.reduce_prod(wanted)
        wanted = array_ops.reshape(wanted, [-1])
        drawn = self._sample_n(count, seed)
        samples = array_ops.reshape(drawn, array_ops.concat([wanted, array_ops.shape(drawn)[1:]], 0))
        sizes = constant_value(wanted)
        rank = wanted.shape.as_list()[0]
        return samples, TensorShape(None if rank is None else [None] * rank if sizes is None else sizes.tolist())

    def log_prob(self, value: TensorLike, name: str = "log_prob") -> Tensor:
        """Logarithm of the probability, or of its density, at `value`."""
        return self._at(value, name, self._log_prob, lambda x: math_ops.log(self._prob(x)))

    def prob(self, value: TensorLike, name: str = "prob") -> Tensor:
        """Probability, or its density, at `value`."""
        return self._at(value, name, self._prob, lambda x: math_ops.exp(self._log_prob(x)))

    def cdf(self, value: TensorLike, name: str = "cdf") -> Tensor:
        """Probability of `value` or less."""
        return self._at(value, name, self._cdf, lambda x: math_ops.exp(self._log_cdf(x)))

    def log_cdf(self, value: TensorLike, name: str = "log_cdf") -> Tensor:
        """Logarithm of `cdf`."""
        return self._at(value, name, self._log_cdf, lambda x: math_ops.log(self._cdf(x)))

    def survival_function(self, value: TensorLike, name: str = "survival_function") -> Tensor:
        """Probability of more than `value`."""
        return self._at(value, name, self._survival_function, lambda x: 1.0 - self.cdf(x))

    def log_survival_function(self, value: TensorLike, name: str = "log_survival_function") -> Tensor:
        """Logarithm of `survival_function`."""
        return self._at(value, name, self._log_survival_function, lambda x: math_ops.log1p(-self.cdf(x)))

    def quantile(self, value: TensorLike, name: str = "quantile") -> Tensor:
        """The inverse of `cdf`, at probabilities."""
        return self._at(value, name, self._quantile)

    def mean(self, name: str = "mean") -> Tensor:
        """Expected value."""
        return self._in_scope(name, self._mean)

    def variance(self, name: str = "variance") -> Tensor:
        """Expected squared difference from the mean, element by element."""
        return self._in_scope(name, self._variance, lambda: math_ops.square(self._stddev()))

    def stddev(self, name: str = "stddev") -> Tensor:
        """Square root of the variance."""
        return self._in_scope(name, self._stddev, lambda: math_ops.sqrt(self._variance()))

    def covariance(self, name: str = "covariance") -> Tensor:
        """Covariances between the elements of an event, shape ``batch_shape + [n, n]``."""
        return self._in_scope(name, self._covariance)

    def mode(self, name: str = "mode") -> Tensor:
        """The most likely value."""
        return self._in_scope(name, self._mode)

    def entropy(self, name: str = "entropy") -> Tensor:
        """Expected negative log-probability, in nats."""
        return self._in_scope(name, self._entropy)

    def kl_divergence(self, other: Distribution, name: str = "kl_divergence") -> Tensor:
        """Kullback-Leibler divergence from this distribution to `other`."""
        return self._in_scope(name, lambda: kl_divergence(self, other, self.allow_nan_stats))

    def cross_entropy(self, other: Distribution, name: str = "cross_entropy") -> Tensor:
        """Expected negative log-probability that `other` gives to samples of this distribution."""
        return self._in_scope(name, lambda: cross_entropy(self, other, self.allow_nan_stats))

    # -- what a subclass knows -------------------------------------------------------------------

    def _sample_n(self, n: Tensor, seed: int | None = None) -> Tensor:
        raise self._unknown("sample_n")

    def _log_prob(self, value: Tensor) -> Tensor:
        raise self._unknown("log_prob")

    def _prob(self, value: Tensor) -> Tensor:
        raise self._unknown("prob")

    def _cdf(self, value: Tensor) -> Tensor:
        raise self._unknown("cdf")

    def _log_cdf(self, value: Tensor) -> Tensor:
        raise self._unknown("log_cdf")

    def _survival_function(self, value: Tensor) -> Tensor:
        raise self._unknown("survival_function")

    def _log_survival_function(self, value: Tensor) -> Tensor:
        raise self._unknown("log_survival_function")

    def _quantile(self, value: Tensor) -> Tensor:
        raise self._unknown("quantile")

    def _mean(self) -> Tensor:
        raise self._unknown("mean")

    def _variance(self) -> Tensor:
        raise self._unknown("variance")

    def _stddev(self) -> Tensor:
        raise self._unknown("stddev")

    def _covariance(self) -> Tensor:
        raise self._unknown("covariance")

    def _mode(self) -> Tensor:
        raise self._unknown("mode")

    def _entropy(self) -> Tensor:
        raise self._unknown("entropy")

    def _unknown(self, what: str) -> NotImplementedError:
        return NotImplementedError(f"{what} is not implemented: {type(self).__name__}")

    # -- names -----------------------------------------------------------------------------------

    def _at(self, value: TensorLike, name: str, *ways: Callable[[Tensor], Tensor]) -> Tensor:
        """What the first of `ways` that is known gives for `value`."""
        with self._name_scope(name):
            return _first_known(ways, convert_to_tensor(value, name="value", preferred_dtype=self._dtype))

    def _in_scope(self, name: str, *ways: Callable[[], Tensor]) -> Tensor:
        """What the first of `ways` that is known gives, its operations named under this distribution's name."""
        with self._name_scope(name):
            return _first_known(ways)

    @contextmanager
    def _name_scope(self, name: str | None = None, values: object = None) -> Iterator[str]:
        graph = get_default_graph()
        with graph.name_scope(self._name), graph.name_scope(name) as scope:
            yield scope

    def __str__(self) -> str:
        shapes = (("batch_shape", self.batch_shape), ("event_shape", self.event_shape))
        known = "".join(f", {name}={shape}" for name, shape in shapes if shape.rank is not None)
        return f'tfp.distributions.{type(self).__name__}("{self._name}"{known}, dtype={self._dtype.name})'

    def __repr__(self) -> str:
        shapes = f"batch_shape={self.batch_shape} event_shape={self.event_shape}"
        return f"<tfp.distributions.{type(self).__name__} {self._name!r} {shapes} dtype={self._dtype.name}>"


def _first_known(ways: Sequence[Callable[..., Tensor]], *arguments: Tensor) -> Tensor:
    first, *others = ways
    try:
        return first(*arguments)
    except NotImplementedError as error:
        # What is missing is the first: an error of another would name what nobody asked for.
        with suppress(NotImplementedError):
            if others:
                return _first_known(others, *arguments)
        raise error from None


def _shape_tensor(known: TensorShape, compute: Callable[[], Tensor], name: str) -> Tensor:
    if known.is_fully_defined():
        return convert_to_tensor(np.array(known.as_list(), np.int32), name=name)
    return compute()


def _is_scalar(known: TensorShape, shape: Callable[[], Tensor], name: str) -> Tensor:
    if known.rank is not None:
        return convert_to_tensor(known.rank == 0, name=name)
    return math_ops.equal(array_ops.size(shape()), 0, name)


class ScalarDistribution(Distribution):
    """Base of distributions over single numbers, whose parameters broadcast to the shape of the batch."""

    _shaped_by: tuple[str, ...] = ()
    """Names of the attributes that are those parameters."""

    def _init(self, parameters: dict[str, Any], positive: Sequence[str], **given: TensorLike) -> None:
        """Make the attributes `given`, floating tensors from which gradients flow to samples.

        `parameters` are the arguments of the constructor by name. Those that `positive` names are checked to be so.
        """
        with get_default_graph().name_scope(parameters["name"]) as name:
            checks = [assert_positive(given[each]) for each in positive] if parameters["validate_args"] else []
            tensors = float_parameters(checks, **given)
        vars(self).update(zip(given, tensors, strict=True))
        validate_args, allow_nan_stats = parameters["validate_args"], parameters["allow_nan_stats"]
        super().__init__(
            tensors[0].dtype, FULLY_REPARAMETERIZED, validate_args, allow_nan_stats, parameters, tensors, name
        )

    @classmethod
    def _param_shapes(cls, sample_shape: TensorLike) -> dict[str, Tensor]:
        return {name: convert_to_tensor(sample_shape, dtypes.int32) for name in cls._shaped_by}

    def _batch_shape(self) -> TensorShape:
        shape = TensorShape([])
        for name in self._shaped_by:
            shape = array_ops.broadcast_static_shape(shape, getattr(self, name).shape)
        return shape

    def _batch_shape_tensor(self) -> Tensor:
        first, *others = (array_ops.shape(getattr(self, name)) for name in self._shaped_by)
        for shape in others:
            first = array_ops.broadcast_dynamic_shape(first, shape)
        return first

    def _event_shape(self) -> TensorShape:
        return TensorShape([])

    def _event_shape_tensor(self) -> Tensor:
        return convert_to_tensor(np.zeros(0, np.int32))

    def _in_batch(self, value: TensorLike) -> Tensor:
        """`value` broadcast to the shape of the batch."""
        spread = array_ops.broadcast_to(value, self.batch_shape_tensor())
        spread.set_shape(self.batch_shape)
        return spread

    def _sample_sizes(self, n: Tensor) -> Tensor:
        return array_ops.concat([array_ops.reshape(n, [1]), self.batch_shape_tensor()], 0)


class VectorDistribution(Distribution):
    """Base of distributions over vectors, or over their indices: the last dimension of a parameter is that vector's.

    A subclass gives, as `_vectors`, a tensor of the shape ``batch_shape + [size of the vector]``.
    """

    _vectors: Tensor

    def _batch_shape(self) -> TensorShape:
        return self._vectors.shape[:-1]

    def _event_shape(self) -> TensorShape:
        return self._vectors.shape[-1:]

    def _batch_shape_tensor(self) -> Tensor:
        return array_ops.shape(self._vectors)[:-1]

    def _event_shape_tensor(self) -> Tensor:
        return array_ops.shape(self._vectors)[-1:]

    def _vector_size(self) -> Tensor:
        return array_ops.shape(self._vectors)[-1]


# -- parameters ----------------------------------------------------------------------------------------


def float_parameters(checks: Sequence[Operation], **values: TensorLike) -> list[Tensor]:
    """Parameters as tensors named as they are, all of one floating dtype, once `checks` have run.

    Raises:
        ValueError: A parameter is not floating, or not of the dtype of the others.
    """
    with get_default_graph().control_dependencies(checks):
        tensors = [array_ops.identity(value, name) for name, value in values.items()]
    for name, tensor in zip(values, tensors, strict=True):
        if not tensor.dtype.is_floating:
            raise InvalidArgumentError(f"{name} must have a floating dtype, found {tensor.dtype.name}")
        if tensor.dtype is not tensors[0].dtype:
            first, dtype = next(iter(values)), tensors[0].dtype.name
            raise InvalidArgumentError(
                f"{name} has dtype {tensor.dtype.name}, but {first} {dtype}: parameters must have the same dtype"
            )
    return tensors


def derived_seed(seed: int | None, salt: int) -> int | None:
    """A seed for one of several draws that make a sample; None stays None."""
    return None if seed is None else (seed * 0x9E3779B1 + salt * 0x85EBCA6B) % (2**31 - 1)


# -- divergence ----------------------------------------------------------------------------------------

Divergence = Callable[..., Tensor]

_DIVERGENCES: Final[dict[tuple[type, type], Divergence]] = {}
_ADDED: Final[dict[tuple[type, type], Divergence]] = {}
"""Divergences that TensorFlow does not have: programs may register their own for the same classes."""


def added_divergence(dist_cls_a: type, dist_cls_b: type) -> Callable[[Divergence], Divergence]:
    """Decorator for a divergence that TensorFlow does not have, and that `RegisterKL` replaces."""

    def add(kl_fn: Divergence) -> Divergence:
        _ADDED[dist_cls_a, dist_cls_b] = kl_fn
        return kl_fn

    return add


class RegisterKL:
    """Decorator that makes a function the divergence between two kinds of distributions.

    The function takes the two distributions and ``name=``, a name of operations or None.

    Args:
        dist_cls_a: Class of the first.
        dist_cls_b: Class of the second.

    Raises:
        TypeError: What is decorated is not a function.
        ValueError: The two have a divergence already.
    """

    def __init__(self, dist_cls_a: type, dist_cls_b: type) -> None:
        self._key = dist_cls_a, dist_cls_b

    def __call__(self, kl_fn: Divergence) -> Divergence:
        if not callable(kl_fn):
            raise TypeError(f"kl_fn must be callable, not {kl_fn!r}")
        if self._key in _DIVERGENCES:
            kinds = " || ".join(kind.__name__ for kind in self._key)
            raise ValueError(f"KL({kinds}) has already been registered to: {_DIVERGENCES[self._key]}")
        _DIVERGENCES[self._key] = kl_fn
        return kl_fn


def kl_divergence(
    distribution_a: Distribution, distribution_b: Distribution, allow_nan_stats: bool = True, name: str | None = None
) -> Tensor:
    """Kullback-Leibler divergence from one distribution to another: the expected difference of log-probabilities.

    Args:
        distribution_a: The distribution over which the expectation is taken.
        distribution_b: The other one.
        allow_nan_stats: A divergence that is not defined is NaN; when False, it is an `InvalidArgumentError` of the
            step.
        name: Given to the function that computes the divergence.

    Returns:
        One number for each pair of distributions of the two batches, whose shapes broadcast.

    Raises:
        NotImplementedError: No divergence is registered for the two, or for classes that they derive from.
    """
    found = _nearest_divergence(type(distribution_a), type(distribution_b))
    if found is None:
        raise NotImplementedError(
            "No KL(distribution_a || distribution_b) registered for distribution_a type "
            f"{type(distribution_a).__name__} and distribution_b type {type(distribution_b).__name__}: register one "
            "with tf.distributions.RegisterKL"
        )
    graph = get_default_graph()
    with graph.name_scope("KullbackLeibler"):
        divergence = found(distribution_a, distribution_b, name=name)
        if allow_nan_stats:
            return divergence
        divergence = array_ops.identity(divergence, "kl")
        kinds = f"{distribution_a.name} and {distribution_b.name}"
        check = Assert(
            math_ops.logical_not(math_ops.reduce_any(math_ops.is_nan(divergence))),
            [f"KL calculation between {kinds} returned NaN values (with allow_nan_stats=False). Values:", divergence],
        )
        with graph.control_dependencies([check]):
            return array_ops.identity(divergence, "checked_kl")


def cross_entropy(
    ref: Distribution, other: Distribution, allow_nan_stats: bool = True, name: str | None = None
) -> Tensor:
    """The expected negative log-probability that `other` gives to samples of `ref`.

    Args:
        ref: The distribution over which the expectation is taken.
        other: The other one.
        allow_nan_stats: As for `kl_divergence`.
        name: Name of the operations.

    Returns:
        One number for each pair of distributions of the two batches, whose shapes broadcast.
    """
    with get_default_graph().name_scope(name or "cross_entropy"):
        return ref.entropy() + kl_divergence(ref, other, allow_nan_stats)


def _nearest_divergence(kind_a: type, kind_b: type) -> Divergence | None:
    """The one registered for classes that the two derive from by the fewest steps, the first such."""
    registered = {**_ADDED, **_DIVERGENCES}
    known = [
        (steps_a + steps_b, steps_a, registered[base_a, base_b])
        for steps_a, base_a in enumerate(kind_a.__mro__)
        for steps_b, base_b in enumerate(kind_b.__mro__)
        if (base_a, base_b) in registered
    ]
    return min(known, key=lambda found: found[:2])[2] if known else None
