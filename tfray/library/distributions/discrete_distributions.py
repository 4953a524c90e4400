"""Distributions over classes and counts, and over probabilities: Bernoulli, categorical, multinomial, Dirichlet."""

from __future__ import annotations

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import DTypeLike, as_dtype
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.library.distributions import checks
from tfray.library.distributions.distribution import (
    FULLY_REPARAMETERIZED,
    NOT_REPARAMETERIZED,
    RegisterKL,
    ScalarDistribution,
    VectorDistribution,
    derived_seed,
)
from tfray.ops.arrays import array_ops
from tfray.ops.arrays.broadcast_ops import where_v2
from tfray.ops.checks import check_ops
from tfray.ops.checks.check_ops import assert_positive
from tfray.ops.math import math_ops
from tfray.ops.math.math_ops import digamma, lgamma, log, multiply_no_nan, reduce_sum
from tfray.ops.nn.activation_ops import softplus
from tfray.ops.nn.cross_entropy_ops import log_softmax, softmax, sparse_softmax_cross_entropy_with_logits
from tfray.ops.random import random_ops


class Bernoulli(ScalarDistribution):
    """Distributions over 0 and 1.

    Args:
        logits: Log-odds of 1; or None.
        probs: Probabilities of 1; or None.
        dtype: Dtype of samples.
        validate_args: Check parameters and values when a step runs, or at once where they are constants.
        allow_nan_stats: Statistics that are not defined are NaN; when False, they are errors of the step.
        name: Prefix of the operations' names.

    Raises:
        ValueError: Both `logits` and `probs` are given, or neither.
        TypeError: They are not floating.
        InvalidArgumentError: With `validate_args`: a parameter is not as said here.
    """

    _shaped_by = ("logits",)

    def __init__(
        self,
        logits: TensorLike | None = None,
        probs: TensorLike | None = None,
        dtype: DTypeLike = dtypes.int32,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Bernoulli",
    ) -> None:
        parameters = dict(locals())
        with get_default_graph().name_scope(name) as name:
            self.logits, self.probs = checks.logits_and_probs(logits, probs, validate_args)
        super().__init__(
            dtype, NOT_REPARAMETERIZED, validate_args, allow_nan_stats, parameters, [self.logits, self.probs], name
        )

    def _sample_n(self, n: Tensor, seed: int | None = None) -> Tensor:
        numbers = random_ops.random_uniform(self._sample_sizes(n), dtype=self.probs.dtype, seed=seed)
        return array_ops.cast(numbers < self.probs, self.dtype)

    def _log_prob(self, value: Tensor) -> Tensor:
        if self.validate_args:
            value = checks.class_numbers(value, as_dtype("bool"))
        return -self._information(array_ops.cast(value, self.logits.dtype))

    def _information(self, share: Tensor) -> Tensor:
        """Negative log-probability of 1 times `share`, and of 0 times the rest. What cannot be may have no share."""
        share = share + array_ops.zeros_like(self.probs)
        of_one, of_zero = softplus(-self.logits), softplus(self.logits)
        return multiply_no_nan(of_one, share) + multiply_no_nan(of_zero, 1.0 - share)

    def _entropy(self) -> Tensor:
        of_one, of_zero = softplus(-self.logits), softplus(self.logits)
        return multiply_no_nan(of_one, self.probs) + multiply_no_nan(of_zero, math_ops.sigmoid(-self.logits))

    def _mean(self) -> Tensor:
        return array_ops.identity(self.probs)

    def _variance(self) -> Tensor:
        return self.probs * (1.0 - self.probs)

    def _mode(self) -> Tensor:
        return array_ops.cast(self.probs > 0.5, self.dtype)


@RegisterKL(Bernoulli, Bernoulli)
def _kl_bernoulli(a: Bernoulli, b: Bernoulli, name: str | None = None) -> Tensor:
    with get_default_graph().name_scope(name or "kl_bernoulli_bernoulli"):
        of_one = softplus(-b.logits) - softplus(-a.logits)
        of_zero = softplus(b.logits) - softplus(a.logits)
        return math_ops.sigmoid(a.logits) * of_one + math_ops.sigmoid(-a.logits) * of_zero


# -- classes -------------------------------------------------------------------------------------------


class _OverClasses(VectorDistribution):
    """A distribution over as many classes as the last dimension of `logits` has."""

    logits: Tensor
    probs: Tensor

    def _entropy(self) -> Tensor:
        return -reduce_sum(multiply_no_nan(log_softmax(self.logits), self.probs), -1)


class Categorical(_OverClasses):
    """Distributions over the classes ``0, 1, ..., n - 1``.

    As in TensorFlow, ``cdf(k)`` is the probability of less than `k`: `k` itself does not count.

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
        parameters = dict(locals())
        with get_default_graph().name_scope(name) as name:
            self.logits, self.probs = checks.logits_and_probs(logits, probs, validate_args, over_classes=True)
            if validate_args:
                self.logits = checks.classes(self.logits)
            if self.logits.shape.rank == 0:
                raise ValueError("Categorical needs logits or probs of rank 1 or more, with the classes last")
            self._vectors = self.logits
            self.event_size = array_ops.identity(self._vector_size(), "event_size")
            """Number of classes, an int32 scalar."""
        super().__init__(
            as_dtype(dtype),
            NOT_REPARAMETERIZED,
            validate_args,
            allow_nan_stats,
            parameters,
            [self.logits, self.probs],
            name,
        )

    def _event_shape(self) -> TensorShape:
        return TensorShape([])

    def _event_shape_tensor(self) -> Tensor:
        return convert_to_tensor([], dtypes.int32)

    def _sample_n(self, n: Tensor, seed: int | None = None) -> Tensor:
        rows = array_ops.reshape(self.logits, array_ops.stack([-1, self._vector_size()]))
        drawn_as = dtypes.int64 if self.dtype.size > 4 else dtypes.int32
        drawn = random_ops.multinomial(rows, n, seed, output_dtype=drawn_as)
        sizes = array_ops.concat([array_ops.reshape(n, [1]), self.batch_shape_tensor()], 0)
        return array_ops.cast(array_ops.reshape(array_ops.transpose(drawn), sizes), self.dtype)

    def _events(self, value: Tensor, parameter: Tensor) -> tuple[Tensor, Tensor]:
        if self.validate_args:
            value = checks.class_numbers(value, dtypes.int32)
        return checks.class_events(value, parameter, self.dtype)

    def _log_prob(self, value: Tensor) -> Tensor:
        classes, logits = self._events(value, self.logits)
        return -sparse_softmax_cross_entropy_with_logits(labels=classes, logits=logits)

    def _cdf(self, value: Tensor) -> Tensor:
        classes, probs = self._events(value, self.probs)
        below = array_ops.sequence_mask(classes, self._vector_size(), probs.dtype)
        return reduce_sum(multiply_no_nan(probs, below), -1)

    def _mode(self) -> Tensor:
        return array_ops.cast(math_ops.argmax(self.logits, -1), self.dtype)


class OneHotCategorical(_OverClasses):
    """Distributions over classes, each of which is a vector with a 1 in its place and 0 in the others.

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
        name: str = "OneHotCategorical",
    ) -> None:
        parameters = dict(locals())
        with get_default_graph().name_scope(name) as name:
            self.logits, self.probs = checks.logits_and_probs(logits, probs, validate_args, over_classes=True)
            self._vectors = self.logits
            self.event_size = array_ops.identity(self._vector_size(), "event_size")
            """Number of classes, an int32 scalar."""
        super().__init__(
            as_dtype(dtype),
            NOT_REPARAMETERIZED,
            validate_args,
            allow_nan_stats,
            parameters,
            [self.logits, self.probs],
            name,
        )

    def _sample_n(self, n: Tensor, seed: int | None = None) -> Tensor:
        rows = array_ops.reshape(self.logits, array_ops.stack([-1, self._vector_size()]))
        drawn = array_ops.transpose(random_ops.multinomial(rows, n, seed, output_dtype=dtypes.int32))
        sizes = array_ops.concat([array_ops.reshape(n, [1]), array_ops.shape(self.logits)], 0)
        return array_ops.reshape(array_ops.one_hot(drawn, self._vector_size(), dtype=self.dtype), sizes)

    def _log_prob(self, value: Tensor) -> Tensor:
        chosen = array_ops.cast(value, self.logits.dtype)
        return reduce_sum(multiply_no_nan(log_softmax(self.logits) + 0.0 * chosen, chosen), -1)

    def _mean(self) -> Tensor:
        return array_ops.identity(self.probs)

    def _variance(self) -> Tensor:
        return self.probs * (1.0 - self.probs)

    def _covariance(self) -> Tensor:
        return array_ops.matrix_set_diag(-self.probs[..., None] * self.probs[..., None, :], self._variance())

    def _mode(self) -> Tensor:
        likeliest = math_ops.argmax(self.logits, -1)
        return array_ops.one_hot(likeliest, self._vector_size(), dtype=self.dtype)


@RegisterKL(Categorical, Categorical)
@RegisterKL(OneHotCategorical, OneHotCategorical)
def _kl_classes(a: _OverClasses, b: _OverClasses, name: str | None = None) -> Tensor:
    with get_default_graph().name_scope(name or "kl_categorical_categorical"):
        return reduce_sum(softmax(a.logits) * (log_softmax(a.logits) - log_softmax(b.logits)), -1)


class ExpRelaxedOneHotCategorical(VectorDistribution):
    """Distributions of the logarithms of what has a `RelaxedOneHotCategorical` one, where these have more digits.

    Args:
        temperature: See there.
        logits: See there.
        probs: See there.
        dtype: See there.
        validate_args: See `Bernoulli`.
        allow_nan_stats: See `Bernoulli`.
        name: See `Bernoulli`.
    """

    def __init__(
        self,
        temperature: TensorLike,
        logits: TensorLike | None = None,
        probs: TensorLike | None = None,
        dtype: DTypeLike | None = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "ExpRelaxedOneHotCategorical",
    ) -> None:
        parameters = dict(locals())
        with get_default_graph().name_scope(name) as name:
            self.logits, self.probs = checks.logits_and_probs(logits, probs, validate_args, over_classes=True)
            if dtype is not None and as_dtype(dtype) is not self.logits.dtype:
                raise InvalidArgumentError(
                    f"{name}: dtype is {as_dtype(dtype).name}, but that of the parameters is {self.logits.dtype.name}"
                )
            self.temperature = convert_to_tensor(temperature, self.logits.dtype, "temperature")
            if validate_args:
                self.temperature = checks.after([assert_positive(self.temperature)], self.temperature)
            self._vectors = self.logits + array_ops.zeros_like(self.temperature)[..., None]
        super().__init__(
            self.logits.dtype,
            FULLY_REPARAMETERIZED,
            validate_args,
            allow_nan_stats,
            parameters,
            [self.logits, self.probs, self.temperature],
            name,
        )

    @property
    def event_size(self) -> Tensor:
        """The size of the vectors."""
        return self._vector_size()

    def _sample_n(self, n: Tensor, seed: int | None = None) -> Tensor:
        sizes = array_ops.concat([array_ops.reshape(n, [1]), array_ops.shape(self._vectors)], 0)
        smallest = float(np.finfo(self.dtype.numpy).tiny)
        uniform = random_ops.random_uniform(sizes, smallest, 1.0, self.dtype, seed)
        return log_softmax((self._vectors - log(-log(uniform))) / self.temperature[..., None])

    def _log_prob(self, value: Tensor) -> Tensor:
        likely = reduce_sum(log_softmax(self._vectors - value * self.temperature[..., None]), -1)
        size = array_ops.cast(self._vector_size(), self.dtype)
        return likely + lgamma(size) + (size - 1.0) * log(self.temperature)


# -- counts --------------------------------------------------------------------------------------------


def _class_counts(logits: Tensor, n: Tensor, totals: Tensor, seed: int | None) -> Tensor:
    """How often each class comes in `n` series of ``totals[row]`` draws from each row of logits, shape ``[n, rows,
    classes]``.
    """
    rows, classes = array_ops.shape(logits)[0], array_ops.shape(logits)[1]
    totals = array_ops.cast(totals, dtypes.int32)
    most = math_ops.reduce_max(array_ops.concat([totals, [0]], 0))
    drawn = random_ops.multinomial(logits, n * most, seed, output_dtype=dtypes.int32)
    drawn = array_ops.reshape(drawn, array_ops.stack([rows, n, most]))
    # Each row counts its own number of draws only: the others are no class.
    counted = array_ops.expand_dims(array_ops.sequence_mask(totals, most), 1)
    drawn = where_v2(counted, drawn, convert_to_tensor(-1))
    counts = reduce_sum(array_ops.one_hot(drawn, classes, dtype=logits.dtype), 2)
    return array_ops.transpose(counts, [1, 0, 2])


class _Counts(VectorDistribution):
    """A distribution over how often each class comes in `total_count` draws."""

    total_count: Tensor
    _claim = "counts must sum to `self.total_count`"

    def _checked(self, counts: Tensor) -> Tensor:
        if not self.validate_args:
            return counts
        counts = checks.whole_counts(counts)
        total = reduce_sum(counts, -1)
        return checks.after([check_ops.assert_equal(self.total_count, total, message=self._claim)], counts)

    def _log_combinations(self, counts: Tensor) -> Tensor:
        return lgamma(self.total_count + 1.0) - reduce_sum(lgamma(counts + 1.0), -1)


def _total_count(value: TensorLike, dtype: dtypes.DType, validate_args: bool) -> Tensor:
    total = convert_to_tensor(value, name="total_count")
    if validate_args:
        total = checks.whole_counts(total)
    return array_ops.cast(total, dtype) if total.dtype.is_integer else total


def _covariance_of(means: Tensor, others: Tensor, variances: Tensor) -> Tensor:
    """Minus the outer product of two tensors of vectors, with `variances` on the diagonal."""
    outer = array_ops.expand_dims(means, -1) * array_ops.expand_dims(others, -2)
    return array_ops.matrix_set_diag(-outer, variances)


class Multinomial(_Counts):
    """Distributions over how often each class comes in a number of draws.

    Args:
        total_count: Numbers of draws: floats of the dtype of the other parameter, or integers; they broadcast to the
            shape of the batch.
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
        parameters = dict(locals())
        with get_default_graph().name_scope(name) as name:
            self.logits, self.probs = checks.logits_and_probs(logits, probs, validate_args, over_classes=True)
            self.total_count = _total_count(total_count, self.probs.dtype, validate_args)
            self._vectors = self.total_count[..., None] * self.probs
        super().__init__(
            self.probs.dtype,
            NOT_REPARAMETERIZED,
            validate_args,
            allow_nan_stats,
            parameters,
            [self.total_count, self.logits, self.probs],
            name,
        )

    def _sample_n(self, n: Tensor, seed: int | None = None) -> Tensor:
        nothing = array_ops.zeros_like(self._vectors)
        rows = array_ops.reshape(self.logits + nothing, array_ops.stack([-1, self._vector_size()]))
        totals = array_ops.reshape(self.total_count + nothing[..., 0], [-1])
        sizes = array_ops.concat([array_ops.reshape(n, [1]), array_ops.shape(self._vectors)], 0)
        return array_ops.reshape(_class_counts(rows, n, totals, seed), sizes)

    def _log_prob(self, value: Tensor) -> Tensor:
        counts = self._checked(value)
        log_probs = log_softmax(self.logits) + array_ops.zeros_like(counts)
        likely = reduce_sum(multiply_no_nan(log_probs, counts + array_ops.zeros_like(self.probs)), -1)
        return likely + self._log_combinations(counts)

    def _mean(self) -> Tensor:
        return array_ops.identity(self._vectors)

    def _variance(self) -> Tensor:
        return self._vectors * (1.0 - self.probs)

    def _covariance(self) -> Tensor:
        return _covariance_of(self._vectors, self.probs + array_ops.zeros_like(self._vectors), self._variance())


class DirichletMultinomial(_Counts):
    """Distributions over how often each class comes in a number of draws, with Dirichlet distributed probabilities.

    Args:
        total_count: Numbers of draws: floats of the dtype of the other parameter, or integers; a scalar, or of the
            shape of the batch. A last dimension of 1 more is taken as TensorFlow takes it.
        concentration: Shape ``[..., n]``, positive.
        validate_args: See `Bernoulli`.
        allow_nan_stats: See `Bernoulli`.
        name: See `Bernoulli`.
    """

    _claim = "counts last-dimension must sum to `self.total_count`"

    def __init__(
        self,
        total_count: TensorLike,
        concentration: TensorLike,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "DirichletMultinomial",
    ) -> None:
        parameters = dict(locals())
        with get_default_graph().name_scope(name) as name:
            self.concentration = convert_to_tensor(concentration, name="concentration")
            self.total_count = _total_count(total_count, self.concentration.dtype, validate_args)
            if validate_args:
                message = "Concentration parameter must be positive."
                self.concentration = checks.classes(self.concentration)
                positive = check_ops.assert_positive(self.concentration, message=message)
                self.concentration = checks.after([positive], self.concentration)
            self.total_concentration = reduce_sum(self.concentration, -1)
            """Sum of the concentrations of a vector."""
            self._vectors = self.concentration
        super().__init__(
            self.concentration.dtype,
            NOT_REPARAMETERIZED,
            validate_args,
            allow_nan_stats,
            parameters,
            [self.total_count, self.concentration],
            name,
        )

    def _per_class(self) -> Tensor:
        """The numbers of draws, in a shape that broadcasts with the concentration."""
        ranks = self.total_count.shape.rank, self.concentration.shape.rank
        in_batch = None not in ranks and 0 < ranks[0] < ranks[1]  # type: ignore[operator]
        return array_ops.expand_dims(self.total_count, -1) if in_batch else self.total_count

    def _sample_n(self, n: Tensor, seed: int | None = None) -> Tensor:
        gammas = random_ops.random_gamma(array_ops.reshape(n, [1]), self.concentration, dtype=self.dtype, seed=seed)
        sizes = array_ops.shape(gammas)
        rows = array_ops.reshape(log(gammas), array_ops.stack([-1, self._vector_size()]))
        totals = self._per_class() + array_ops.zeros_like(gammas)
        counts = _class_counts(
            rows, convert_to_tensor(1), array_ops.reshape(totals[..., 0], [-1]), derived_seed(seed, 1)
        )
        return array_ops.reshape(counts, sizes)

    def _log_prob(self, value: Tensor) -> Tensor:
        counts = self._checked(value)
        ordered = math_ops.lbeta(self.concentration + counts) - math_ops.lbeta(self.concentration)
        return ordered + self._log_combinations(counts)

    def _mean(self) -> Tensor:
        return self._per_class() * (self.concentration / self.total_concentration[..., None])

    def _variance_scale(self) -> Tensor:
        total = self.total_concentration[..., None]
        return math_ops.sqrt((1.0 + total / self._per_class()) / (1.0 + total))

    def _variance(self) -> Tensor:
        scale = self._variance_scale()
        scaled = scale * self._mean()
        return scaled * (self._per_class() * scale - scaled)

    def _covariance(self) -> Tensor:
        scaled = self._variance_scale() * self._mean()
        return _covariance_of(scaled, scaled, self._variance())


class Dirichlet(VectorDistribution):
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
        parameters = dict(locals())
        with get_default_graph().name_scope(name) as name:
            self.concentration = convert_to_tensor(concentration, name="concentration")
            if validate_args:
                self.concentration = _checked_concentration(self.concentration)
            self.total_concentration = reduce_sum(self.concentration, -1)
            """Sum of the concentrations of a vector."""
            self._vectors = self.concentration
        super().__init__(
            self.concentration.dtype,
            FULLY_REPARAMETERIZED,
            validate_args,
            allow_nan_stats,
            parameters,
            [self.concentration, self.total_concentration],
            name,
        )

    def _sample_n(self, n: Tensor, seed: int | None = None) -> Tensor:
        numbers = random_ops.random_gamma(array_ops.reshape(n, [1]), self.concentration, dtype=self.dtype, seed=seed)
        return numbers / reduce_sum(numbers, -1, keepdims=True)

    def _checked(self, value: Tensor) -> Tensor:
        if not self.validate_args:
            return value
        one = array_ops.ones([], self.dtype)
        assertions = [
            check_ops.assert_positive(value, message="samples must be positive"),
            check_ops.assert_near(one, reduce_sum(value, -1), message="sample last-dimension must sum to `1`"),
        ]
        return checks.after(assertions, value)

    def _log_prob(self, value: Tensor) -> Tensor:
        value = self._checked(value)
        return reduce_sum(math_ops.xlogy(self.concentration - 1.0, value), -1) - math_ops.lbeta(self.concentration)

    def _size(self) -> Tensor:
        return array_ops.cast(self._vector_size(), self.dtype)

    def _entropy(self) -> Tensor:
        total = self.total_concentration
        rest = reduce_sum((self.concentration - 1.0) * digamma(self.concentration), -1)
        return math_ops.lbeta(self.concentration) + (total - self._size()) * digamma(total) - rest

    def _mean(self) -> Tensor:
        return self.concentration / self.total_concentration[..., None]

    def _variance(self) -> Tensor:
        mean = self._mean()
        return mean * (1.0 - mean) / (1.0 + self.total_concentration[..., None])

    def _covariance(self) -> Tensor:
        scaled = self._mean() * math_ops.rsqrt(1.0 + self.total_concentration[..., None])
        return _covariance_of(scaled, scaled, self._variance())

    def _mode(self) -> Tensor:
        mode = (self.concentration - 1.0) / (self.total_concentration[..., None] - self._size())
        if not self.allow_nan_stats:
            one = array_ops.ones([], self.dtype)
            message = "Mode undefined when any concentration <= 1"
            return checks.after([check_ops.assert_less(one, self.concentration, message=message)], mode)
        has_one = math_ops.reduce_all(self.concentration > 1, -1, keepdims=True)
        return where_v2(has_one, mode, convert_to_tensor(float("nan"), self.dtype))


def _checked_concentration(concentration: Tensor) -> Tensor:
    assertions = [
        check_ops.assert_positive(concentration, message="Concentration parameter must be positive."),
        check_ops.assert_rank_at_least(concentration, 1, message="Concentration parameter must have >=1 dimensions."),
        check_ops.assert_less(
            1,
            array_ops.shape(concentration)[-1],
            message="Concentration parameter must have event_size >= 2.",
        ),
    ]
    return checks.after(assertions, concentration)


@RegisterKL(Dirichlet, Dirichlet)
def _kl_dirichlet(a: Dirichlet, b: Dirichlet, name: str | None = None) -> Tensor:
    with get_default_graph().name_scope(name or "kl_dirichlet_dirichlet"):
        slopes = digamma(a.concentration) - digamma(a.total_concentration)[..., None]
        rest = math_ops.lbeta(b.concentration) - math_ops.lbeta(a.concentration)
        return reduce_sum((a.concentration - b.concentration) * slopes, -1) + rest
