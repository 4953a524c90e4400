"""FTRL-Proximal."""

from __future__ import annotations

from typing import Any

from tfray.errors import InvalidArgumentError
from tfray.framework.arguments import checked
from tfray.framework.graph import Tensor
from tfray.ops.state import proximal_training_ops
from tfray.ops.state.updates import add_either
from tfray.training.optimizers.optimizer import Hyperparameter, Optimizer


class FtrlOptimizer(Optimizer):
    """Follows the regularised leader: online learning of linear models with weights that are exactly 0.

        new_accum = accum + gradient ** 2
        linear += gradient + 2 * l2_shrinkage * var - (new_accum ** -power - accum ** -power) / learning_rate * var
        quadratic = new_accum ** -power / learning_rate + 2 * l2
        var = (sign(linear) * l1 - linear) / quadratic if abs(linear) > l1 else 0
        accum = new_accum

    A sparse gradient changes only its rows.

    Args:
        learning_rate: A number, a tensor, or a function that returns one of these.
        learning_rate_power: At most 0: how the learning rate falls. -0.5 makes it fall as in Adagrad, 0 not at all.
        initial_accumulator_value: What the sum of squared gradients starts with, 0 or more.
        l1_regularization_strength: Weight of the L1 penalty, 0 or more.
        l2_regularization_strength: Weight of the L2 penalty, 0 or more.
        use_locking: Accepted for TensorFlow 1's sake.
        name: Name of the optimizer.
        accum_name: Name of the slots that sum squares; the optimizer's when None.
        linear_name: Name of the slots of the linear term; the optimizer's when None.
        l2_shrinkage_regularization_strength: Weight of an L2 penalty that is added to the loss, 0 or more. Unlike
            the other it does not change where weights are 0.

    Raises:
        InvalidArgumentError: A number is out of its range.

    References:
        McMahan et al., "Ad Click Prediction: a View from the Trenches", 2013.
    """

    @checked
    def __init__(
        self,
        learning_rate: Hyperparameter,
        learning_rate_power: float = -0.5,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "Ftrl",
        accum_name: str | None = None,
        linear_name: str | None = None,
        l2_shrinkage_regularization_strength: float = 0.0,
    ) -> None:
        _check_not_negative(
            initial_accumulator_value=initial_accumulator_value,
            l1_regularization_strength=l1_regularization_strength,
            l2_regularization_strength=l2_regularization_strength,
            l2_shrinkage_regularization_strength=l2_shrinkage_regularization_strength,
        )
        if learning_rate_power > 0:
            raise InvalidArgumentError(f"learning_rate_power is {learning_rate_power}, expected 0 or less")
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._learning_rate_power = learning_rate_power
        self._initial_accumulator_value = initial_accumulator_value
        self._l1_regularization_strength = l1_regularization_strength
        self._l2_regularization_strength = l2_regularization_strength
        self._l2_shrinkage_regularization_strength = l2_shrinkage_regularization_strength
        self._accum_name = accum_name
        self._linear_name = linear_name

    def _create_slots(self, var_list: list[Any]) -> None:
        for var in var_list:
            self._filled_slot(var, self._initial_accumulator_value, "accum", self._accum_name or self._name)
            self._zeros_slot(var, "linear", self._linear_name or self._name)

    def _prepare(self) -> None:
        self._learning_rate_tensor = self._hyperparameter(self._learning_rate, "learning_rate")

    def _apply(self, var: Any, gradient: Tensor, indices: Tensor | None) -> Any:
        hyperparameters = (
            self._learning_rate_tensor,
            self._l1_regularization_strength,
            self._l2_regularization_strength,
            self._l2_shrinkage_regularization_strength,
            self._learning_rate_power,
        )
        scalars = [self._scalar_for(scalar, var) for scalar in hyperparameters]
        slots = self.get_slot(var, "accum"), self.get_slot(var, "linear")
        return add_either(proximal_training_ops.FTRL, var, slots, scalars, gradient, indices)


def _check_not_negative(**numbers: float) -> None:
    for name, number in numbers.items():
        if number < 0:
            raise InvalidArgumentError(f"{name} is {number}, expected 0 or more")
