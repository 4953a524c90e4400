"""Adagrad with penalties."""

from __future__ import annotations

from typing import Any

from tfray.framework.arguments import checked
from tfray.framework.graph import Tensor
from tfray.ops.state import proximal_training_ops
from tfray.ops.state.updates import add_either
from tfray.training.optimizers.adagrad import AdagradOptimizer
from tfray.training.optimizers.optimizer import Hyperparameter, Optimizer


class ProximalAdagradOptimizer(Optimizer):
    """Adagrad, each step of which ends by shrinking the weights towards 0.

        accumulator += gradient ** 2
        rate = learning_rate / sqrt(accumulator)
        moved = var - rate * gradient
        var = sign(moved) * max(abs(moved) - rate * l1, 0) / (1 + rate * l2)

    A sparse gradient changes only its rows.

    Args:
        learning_rate: A number, a tensor, or a function that returns one of these.
        initial_accumulator_value: What the sum of squares starts with; positive.
        l1_regularization_strength: Weight of the L1 penalty, 0 or more.
        l2_regularization_strength: Weight of the L2 penalty, 0 or more.
        use_locking: Accepted for TensorFlow 1's sake.
        name: Name of the optimizer.

    Raises:
        InvalidArgumentError: `initial_accumulator_value` is not positive.

    References:
        Duchi, Hazan and Singer, "Adaptive Subgradient Methods for Online Learning and Stochastic Optimization",
        2011.
    """

    @checked
    def __init__(
        self,
        learning_rate: Hyperparameter,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: Hyperparameter = 0.0,
        l2_regularization_strength: Hyperparameter = 0.0,
        use_locking: bool = False,
        name: str = "ProximalAdagrad",
    ) -> None:
        super().__init__(use_locking, name)
        self._adagrad = AdagradOptimizer(learning_rate, initial_accumulator_value, name=name)
        self._l1_regularization_strength = l1_regularization_strength
        self._l2_regularization_strength = l2_regularization_strength

    def _create_slots(self, var_list: list[Any]) -> None:
        self._adagrad._create_slots(var_list)
        self._slots = self._adagrad._slots

    def _prepare(self) -> None:
        self._adagrad._prepare()

    def _apply(self, var: Any, gradient: Tensor, indices: Tensor | None) -> Any:
        l1, l2 = self._l1_regularization_strength, self._l2_regularization_strength
        scalars = [self._scalar_for(scalar, var) for scalar in (self._adagrad._learning_rate_tensor, l1, l2)]
        slots = [self.get_slot(var, "accumulator")]
        return add_either(proximal_training_ops.PROXIMAL_ADAGRAD, var, slots, scalars, gradient, indices)
