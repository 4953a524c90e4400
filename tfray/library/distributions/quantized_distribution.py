"""Distributions of numbers that are rounded up to whole ones (`QuantizedDistribution`)."""

from __future__ import annotations

import math
from collections.abc import Callable

from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.library.distributions.checks import after
from tfray.library.distributions.distribution import NOT_REPARAMETERIZED, Distribution, float_parameters
from tfray.ops.arrays import array_ops
from tfray.ops.arrays.broadcast_ops import where_v2
from tfray.ops.checks.check_ops import assert_equal, assert_less
from tfray.ops.math import math_ops
from tfray.ops.math.math_ops import ceil, exp, floor, log1p


class QuantizedDistribution(Distribution):
    """The distribution of ``ceiling(x)``, cut off below `low` and above `high`, where x has another distribution.

    Args:
        distribution: The distribution of x. Its `cdf` is used, and its `survival_function` if it has one.
        low: The least whole number; none when None.
        high: The greatest whole number; none when None.
        validate_args: Check that `low`, `high` and values are whole numbers, and `low` is less than `high`.
        name: Prefix of the operations' names.

    Raises:
        ValueError: The dtypes differ, or are not floating.
    """

    def __init__(
        self,
        distribution: Distribution,
        low: TensorLike | None = None,
        high: TensorLike | None = None,
        validate_args: bool = False,
        name: str = "QuantizedDistribution",
    ) -> None:
        parameters = dict(locals())
        self.distribution = distribution
        self._is_checked = validate_args
        with get_default_graph().name_scope(name) as name:
            like = array_ops.zeros([], distribution.dtype)
            given = {key: value for key, value in (("low", low), ("high", high)) if value is not None}
            *limits, _ = float_parameters([], **given, dtype_of_distribution=like)
            if validate_args and len(limits) == 2:
                order = assert_less(limits[0], limits[1], message="low must be strictly less than high.")
                limits = [after([order], limit) for limit in limits]
            known = dict(zip(given, map(self._whole, limits), strict=True))
            self.low, self.high = known.get("low"), known.get("high")
        super().__init__(
            distribution.dtype,
            NOT_REPARAMETERIZED,
            validate_args,
            distribution.allow_nan_stats,
            parameters,
            list(known.values()),
            name,
        )

    def _whole(self, value: Tensor) -> Tensor:
        if not self._is_checked:
            return value
        return after([assert_equal(value, floor(value), message="value has non-integer components.")], value)

    def _batch_shape(self) -> TensorShape:
        return self.distribution.batch_shape

    def _event_shape(self) -> TensorShape:
        return self.distribution.event_shape

    def _batch_shape_tensor(self) -> Tensor:
        return self.distribution.batch_shape_tensor()

    def _event_shape_tensor(self) -> Tensor:
        return self.distribution.event_shape_tensor()

    def _sample_n(self, n: Tensor, seed: int | None = None) -> Tensor:
        drawn = ceil(self.distribution.sample(n, seed))
        drawn = drawn if self.low is None else math_ops.maximum(drawn, self.low)
        return drawn if self.high is None else math_ops.minimum(drawn, self.high)

    def _cut(self, function: Callable[[Tensor], Tensor], at: Tensor, below: float, above: float) -> Tensor:
        """What `distribution` says, with other values where the number is below `low`, or not below `high`."""
        told = function(at)
        if self.low is not None:
            told = where_v2(at < self.low, convert_to_tensor(below, self.dtype), told)
        if self.high is not None:
            told = where_v2(at >= self.high, convert_to_tensor(above, self.dtype), told)
        return told

    def _cdf(self, value: Tensor) -> Tensor:
        return self._cut(self.distribution.cdf, floor(value), 0.0, 1.0)

    def _log_cdf(self, value: Tensor) -> Tensor:
        return self._cut(self.distribution.log_cdf, floor(value), -math.inf, 0.0)

    def _survival_function(self, value: Tensor) -> Tensor:
        return self._cut(self.distribution.survival_function, ceil(value), 1.0, 0.0)

    def _log_survival_function(self, value: Tensor) -> Tensor:
        return self._cut(self.distribution.log_survival_function, ceil(value), 0.0, -math.inf)

    def _prob(self, value: Tensor) -> Tensor:
        value = self._whole(value)
        before, there = self.cdf(value - 1.0), self.cdf(value)
        try:
            more_before, more = self.survival_function(value - 1.0), self.survival_function(value)
        except NotImplementedError:
            return there - before
        # To the right of the median, the survival function has more digits.
        return where_v2(more < there, more_before - more, there - before)

    def _log_prob(self, value: Tensor) -> Tensor:
        value = self._whole(value)
        small, big = self.log_cdf(value - 1.0), self.log_cdf(value)
        try:
            more_before, more = self.log_survival_function(value - 1.0), self.log_survival_function(value)
            is_right = more < big
            small, big = where_v2(is_right, more, small), where_v2(is_right, more_before, big)
        except NotImplementedError:
            pass
        is_never = math_ops.equal(big, convert_to_tensor(-math.inf, self.dtype))
        ratio = exp(where_v2(is_never, -array_ops.ones_like(big), small - big))
        return where_v2(is_never, big, big + log1p(-ratio))
