"""Adagrad with dual averaging."""

from __future__ import annotations

from typing import Any

from tfray.errors import InvalidArgumentError
from tfray.framework.arguments import checked
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor
from tfray.ops.state import proximal_training_ops
from tfray.ops.state.updates import add_either
from tfray.training.optimizers.optimizer import Hyperparameter, Optimizer


class AdagradDAOptimizer(Optimizer):
    """Adagrad that computes each weight anew from the sum of all its gradients, for sparse linear models.

        sums += gradient
        squares += gradient ** 2
        beyond = sign(sums) * max(abs(sums) - l1 * step, 0)
        var = -learning_rate * beyond / (l2 * step * learning_rate + sqrt(squares))

    The penalties grow with the number of steps, so that weights which are rarely used stay exactly 0. Initial values of
    the variables do not count beyond the first gradient.

    Args:
        learning_rate: A number, a tensor, or a function that returns one of these.
        global_step: The global step, which counts the steps from 0.
        initial_gradient_squared_accumulator_value: What the sum of squares starts with; positive.
        l1_regularization_strength: Weight of the L1 penalty, 0 or more.
        l2_regularization_strength: Weight of the L2 penalty, 0 or more.
        use_locking: Accepted for TensorFlow 1's sake.
        name: Name of the optimizer.

    Raises:
        InvalidArgumentError: The initial sum of squares is not positive.

    References:
        Duchi, Hazan and Singer, "Adaptive Subgradient Methods for Online Learning and Stochastic Optimization",
        2011.
    """

    @checked
    def __init__(
        self,
        learning_rate: Hyperparameter,
        global_step: Any,
        initial_gradient_squared_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "AdagradDA",
    ) -> None:
        if initial_gradient_squared_accumulator_value <= 0:
            raise InvalidArgumentError(
                "initial_gradient_squared_accumulator_value is "
                f"{initial_gradient_squared_accumulator_value}, expected a positive number"
            )
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._global_step = global_step
        self._initial_square = initial_gradient_squared_accumulator_value
        self._l1_regularization_strength = l1_regularization_strength
        self._l2_regularization_strength = l2_regularization_strength

    def _create_slots(self, var_list: list[Any]) -> None:
        for var in var_list:
            self._zeros_slot(var, "gradient_accumulator", self._name)
            self._filled_slot(var, self._initial_square, "gradient_squared_accumulator", self._name)

    def _prepare(self) -> None:
        self._learning_rate_tensor = self._hyperparameter(self._learning_rate, "learning_rate")
        # The global step still counts the steps before this one.
        self._step_tensor = convert_to_tensor(self._global_step, name="global_step") + 1

    def _apply(self, var: Any, gradient: Tensor, indices: Tensor | None) -> Any:
        slots = self.get_slot(var, "gradient_accumulator"), self.get_slot(var, "gradient_squared_accumulator")
        l1, l2 = self._l1_regularization_strength, self._l2_regularization_strength
        hyperparameters = (self._learning_rate_tensor, l1, l2, self._step_tensor)
        scalars = [self._scalar_for(scalar, var) for scalar in hyperparameters]
        return add_either(proximal_training_ops.ADAGRAD_DA, var, slots, scalars, gradient, indices)
