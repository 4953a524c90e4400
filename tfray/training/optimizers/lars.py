"""Momentum with a learning rate for each layer, for large batches."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tfray.framework.graph import Tensor
from tfray.ops.arrays import array_ops
from tfray.ops.arrays.broadcast_ops import where_v2
from tfray.ops.linalg.norm_ops import norm
from tfray.ops.math import math_ops
from tfray.training.optimizers.momentum import MomentumOptimizer
from tfray.training.optimizers.optimizer import Hyperparameter


class LARSOptimizer(MomentumOptimizer):
    """Momentum whose learning rate is scaled, for each variable, by the norms of the variable and of its gradient.

    The factor is ``eeta * |var| / (|gradient| + weight_decay * |var| + epsilon)``, or 1 where a norm is 0. A step is

        accumulation = momentum * accumulation + factor * learning_rate * (gradient + weight_decay * var)
        var -= accumulation

    so that gradients which accumulated keep the learning rate of their time. A sparse gradient is applied as by
    `MomentumOptimizer`.

    Args:
        learning_rate: A number, a tensor, or a function that returns one of these.
        momentum: As for `MomentumOptimizer`.
        weight_decay: A number; it enters the factor and the gradient.
        eeta: A number.
        epsilon: A number.
        name: Name of the optimizer.
        skip_list: Parts of the names of variables that have neither the factor nor the decay.
        use_nesterov: As for `MomentumOptimizer`.

    Raises:
        ValueError: `momentum` or `weight_decay` is below 0.

    References:
        You, Gitman and Ginsburg, "Large Batch Training of Convolutional Networks", 2017.
    """

    def __init__(
        self,
        learning_rate: Hyperparameter,
        momentum: float = 0.9,
        weight_decay: float = 0.0001,
        eeta: float = 0.001,
        epsilon: float = 0.0,
        name: str = "LARSOptimizer",
        skip_list: Iterable[str] | None = None,
        use_nesterov: bool = False,
    ) -> None:
        for what, value in (("momentum", momentum), ("weight_decay", weight_decay)):
            if value < 0.0:
                raise ValueError(f"{what} should be positive: {value}")
        super().__init__(learning_rate, momentum, False, name, use_nesterov)
        self._weight_decay, self._eeta, self._epsilon = weight_decay, eeta, epsilon
        self._skip_list = list(skip_list or ())

    def compute_lr(self, grad: Tensor, var: Any) -> tuple[Tensor, Tensor]:
        """The learning rate of a variable, a scalar, and its dense gradient with that of the decay of weights."""
        rate = self._scalar_for(self._learning_rate_tensor, var)
        if any(part in var.name for part in self._skip_list):
            return rate, grad
        size, slope = (array_ops.cast(norm(each), rate.dtype) for each in (var, grad))
        ratio = self._eeta * size / (slope + self._weight_decay * size + self._epsilon)
        is_usual = math_ops.logical_and(math_ops.greater(size, 0), math_ops.greater(slope, 0))
        return rate * where_v2(is_usual, ratio, array_ops.ones_like(ratio)), grad + self._weight_decay * var

    def _apply_dense(self, grad: Tensor, var: Any) -> Any:
        rate, gradient = self.compute_lr(grad, var)
        step = array_ops.cast(array_ops.cast(gradient, rate.dtype) * rate, grad.dtype)
        return self._add_update(var, array_ops.ones_like(rate), step, None)
