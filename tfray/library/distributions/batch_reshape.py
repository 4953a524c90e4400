"""Batches of distributions in another shape."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tfray.framework import dtypes
from tfray.framework.constant_value import constant_value
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.op_def import Array
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.library.distributions.checks import after
from tfray.library.distributions.distribution import Distribution, RegisterKL, kl_divergence
from tfray.ops.arrays import array_ops
from tfray.ops.checks.check_ops import assert_equal, assert_positive, assert_rank
from tfray.ops.math import math_ops


class BatchReshape(Distribution):
    """The distributions of a batch, in a batch of another shape.

    Args:
        distribution: The distributions.
        batch_shape: The new shape, with positive sizes.
        validate_args: Check while a step runs what is not known before.
        allow_nan_stats: Statistics that are not defined are NaN; when False, they are errors of the step.
        name: Prefix of the operations' names; ``BatchReshape`` before that of `distribution` when None.

    Raises:
        ValueError: `batch_shape` is no vector, has other sizes, or is of another number of distributions.
    """

    def __init__(
        self,
        distribution: Distribution,
        batch_shape: TensorLike,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str | None = None,
    ) -> None:
        parameters = dict(locals())
        self.distribution = distribution
        own = distribution.name.rstrip("/").rpartition("/")[2]
        with get_default_graph().name_scope(name or f"BatchReshape{own}") as name:
            given = batch_shape.as_list() if isinstance(batch_shape, TensorShape) else batch_shape
            wanted = convert_to_tensor(given, dtypes.int32, "batch_shape")
            known = constant_value(wanted)
            self._static = _checked(wanted, known, distribution.batch_shape)
            if validate_args and (known is None or not distribution.batch_shape.is_fully_defined()):
                sizes = [math_ops.reduce_prod(each) for each in (wanted, distribution.batch_shape_tensor())]
                message = "`batch_shape` size must match `distributions.batch_shape` size."
                wanted = after([assert_rank(wanted, 1, message="`batch_shape` must be a vector.")], wanted)
                wanted = after([assert_positive(wanted), assert_equal(sizes[0], sizes[1], message=message)], wanted)
            self._wanted = wanted
        super().__init__(
            distribution.dtype,
            distribution.reparameterization_type,
            validate_args,
            allow_nan_stats,
            parameters,
            [wanted],
            name,
        )

    def _batch_shape(self) -> TensorShape:
        return self._static

    def _batch_shape_tensor(self) -> Tensor:
        return array_ops.identity(self._wanted)

    def _event_shape(self) -> TensorShape:
        return self.distribution.event_shape

    def _event_shape_tensor(self) -> Tensor:
        return self.distribution.event_shape_tensor()

    def _sample_n(self, n: Tensor, seed: int | None = None) -> Tensor:
        drawn = self.distribution.sample(n, seed)
        sizes = [array_ops.reshape(n, [1]), self._wanted, self.event_shape_tensor()]
        return array_ops.reshape(drawn, array_ops.concat(sizes, 0))

    def _of_each(self, function: Callable[[Tensor], Tensor], value: Tensor) -> Tensor:
        """What a function of the distributions gives for values of the reshaped ones."""
        whole = self.batch_shape.concatenate(self.event_shape)
        rank = None if whole.rank is None else whole.rank
        if rank is not None and value.shape.rank is not None:
            if value.shape.rank < rank:
                raise NotImplementedError(
                    "Broadcasting is not supported; too few batch and event dims "
                    f"(expected at least {rank}, saw {value.shape.rank})."
                )
            ends = value.shape[value.shape.rank - rank :]
            if not ends.is_compatible_with(whole):
                raise NotImplementedError(
                    "Broadcasting is not supported; unexpected batch and event shape "
                    f"(expected {whole.as_list()}, saw {ends.as_list()})."
                )
        event = self.event_shape_tensor()
        sizes = array_ops.shape(value)
        drawn = sizes[: array_ops.size(sizes) - array_ops.size(self._wanted) - array_ops.size(event)]
        inner = array_ops.concat([drawn, self.distribution.batch_shape_tensor(), event], 0)
        reshaped = array_ops.reshape(value, inner)
        result = array_ops.reshape(function(reshaped), array_ops.concat([drawn, self._wanted], 0))
        if rank is not None and value.shape.rank is not None:
            result.set_shape(value.shape[: value.shape.rank - rank].concatenate(self.batch_shape))
        return result

    def _log_prob(self, value: Tensor) -> Tensor:
        return self._of_each(self.distribution.log_prob, value)

    def _prob(self, value: Tensor) -> Tensor:
        return self._of_each(self.distribution.prob, value)

    def _cdf(self, value: Tensor) -> Tensor:
        return self._of_each(self.distribution.cdf, value)

    def _log_cdf(self, value: Tensor) -> Tensor:
        return self._of_each(self.distribution.log_cdf, value)

    def _survival_function(self, value: Tensor) -> Tensor:
        return self._of_each(self.distribution.survival_function, value)

    def _log_survival_function(self, value: Tensor) -> Tensor:
        return self._of_each(self.distribution.log_survival_function, value)

    def _reshaped(self, statistic: Tensor, *event: Tensor) -> Tensor:
        reshaped = array_ops.reshape(statistic, array_ops.concat([self._wanted, *event], 0))
        shape = self.batch_shape
        for _ in event:
            shape = shape.concatenate(self.event_shape)
        reshaped.set_shape(shape)
        return reshaped

    def _entropy(self) -> Tensor:
        return self._reshaped(self.distribution.entropy())

    def _mean(self) -> Tensor:
        return self._reshaped(self.distribution.mean(), self.event_shape_tensor())

    def _mode(self) -> Tensor:
        return self._reshaped(self.distribution.mode(), self.event_shape_tensor())

    def _stddev(self) -> Tensor:
        return self._reshaped(self.distribution.stddev(), self.event_shape_tensor())

    def _variance(self) -> Tensor:
        return self._reshaped(self.distribution.variance(), self.event_shape_tensor())

    def _covariance(self) -> Tensor:
        return self._reshaped(self.distribution.covariance(), *[self.event_shape_tensor()] * 2)


@RegisterKL(BatchReshape, BatchReshape)
def _kl_reshaped(a: BatchReshape, b: BatchReshape, name: str | None = None) -> Tensor:
    with get_default_graph().name_scope(name or "kl_batch_reshape"):
        return a._reshaped(kl_divergence(a.distribution, b.distribution))


def _checked(wanted: Tensor, known: Array | None, there: TensorShape) -> TensorShape:
    """The new shape, as far as it is known. Raises `ValueError`."""
    if wanted.shape.rank not in (None, 1):
        raise ValueError("`batch_shape` must be a vector.")
    if known is None:
        count = wanted.shape.as_list()[0] if wanted.shape.rank else None
        return TensorShape(None if count is None else [None] * count)
    if (known < 1).any():
        raise ValueError("`batch_shape` elements must be positive (i.e., larger than zero).")
    size, expected = int(np.prod(known)), there.num_elements()
    if expected is not None and size != expected:
        raise ValueError(f"`batch_shape` size ({size}) must match `distribution.batch_shape` size ({expected}).")
    return TensorShape(known.tolist())
