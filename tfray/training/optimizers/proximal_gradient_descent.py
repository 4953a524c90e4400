"""Proximal gradient descent."""

from __future__ import annotations

from typing import Any

from tfray.framework.arguments import checked
from tfray.framework.graph import Tensor
from tfray.ops.state import proximal_training_ops
from tfray.ops.state.updates import add_either
from tfray.training.optimizers.optimizer import Hyperparameter, Optimizer


class ProximalGradientDescentOptimizer(Optimizer):
    """Gradient descent, each step of which ends by shrinking the weights towards 0.

        moved = var - learning_rate * gradient
        var = sign(moved) * max(abs(moved) - learning_rate * l1, 0) / (1 + learning_rate * l2)

    A sparse gradient changes only its rows.

    Args:
        learning_rate: A number, a tensor, or a function that returns one of these.
        l1_regularization_strength: Weight of the L1 penalty, 0 or more.
        l2_regularization_strength: Weight of the L2 penalty, 0 or more.
        use_locking: Accepted for TensorFlow 1's sake.
        name: Name of the optimizer.

    References:
        Duchi and Singer, "Efficient Learning using Forward-Backward Splitting", 2009.
    """

    @checked
    def __init__(
        self,
        learning_rate: Hyperparameter,
        l1_regularization_strength: Hyperparameter = 0.0,
        l2_regularization_strength: Hyperparameter = 0.0,
        use_locking: bool = False,
        name: str = "ProximalGradientDescent",
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._l1_regularization_strength = l1_regularization_strength
        self._l2_regularization_strength = l2_regularization_strength

    def _prepare(self) -> None:
        self._learning_rate_tensor = self._hyperparameter(self._learning_rate, "learning_rate")

    def _apply(self, var: Any, gradient: Tensor, indices: Tensor | None) -> Any:
        l1, l2 = self._l1_regularization_strength, self._l2_regularization_strength
        scalars = [self._scalar_for(scalar, var) for scalar in (self._learning_rate_tensor, l1, l2)]
        return add_either(proximal_training_ops.PROXIMAL_GRADIENT_DESCENT, var, (), scalars, gradient, indices)
