"""Gradient descent."""

from __future__ import annotations

from typing import Any

from tfray.framework import dtypes
from tfray.framework.arguments import checked
from tfray.framework.dtypes import DType
from tfray.framework.graph import Tensor
from tfray.ops.state import training_ops
from tfray.ops.state.updates import add_either
from tfray.training.optimizers.optimizer import Hyperparameter, Optimizer


class GradientDescentOptimizer(Optimizer):
    """Moves each variable against its gradient: ``var -= learning_rate * gradient``.

    Args:
        learning_rate: A number, a tensor, or a function that returns one of these.
        use_locking: Accepted for TensorFlow 1's sake.
        name: Name of the optimizer.
    """

    @checked
    def __init__(self, learning_rate: Hyperparameter, use_locking: bool = False, name: str = "GradientDescent") -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate

    def _valid_dtypes(self) -> set[DType]:
        return set(dtypes.INEXACT)

    def _prepare(self) -> None:
        self._learning_rate_tensor = self._hyperparameter(self._learning_rate, "learning_rate")

    def _apply(self, var: Any, gradient: Tensor, indices: Tensor | None) -> Any:
        rate = self._scalar_for(self._learning_rate_tensor, var)
        return add_either(training_ops.GRADIENT_DESCENT, var, (), (rate,), gradient, indices)
