"""Adadelta."""

from __future__ import annotations

from typing import Any

from tfray.framework.arguments import checked
from tfray.framework.graph import Tensor
from tfray.ops.state import adaptive_training_ops
from tfray.ops.state.updates import add_either
from tfray.training.optimizers.optimizer import Hyperparameter, Optimizer


class AdadeltaOptimizer(Optimizer):
    """Scales each element's gradient so that its updates have the units of the element.

        accum = rho * accum + (1 - rho) * gradient ** 2
        update = sqrt(accum_update + epsilon) / sqrt(accum + epsilon) * gradient
        accum_update = rho * accum_update + (1 - rho) * update ** 2
        var -= learning_rate * update

    The paper has a learning rate of 1. A sparse gradient changes only its rows.

    Args:
        learning_rate: A number, a tensor, or a function that returns one of these.
        rho: Decay of the means; likewise.
        epsilon: What the first updates grow from; likewise.
        use_locking: Accepted for TensorFlow 1's sake.
        name: Name of the optimizer.

    References:
        Zeiler, "ADADELTA: An Adaptive Learning Rate Method", 2012.
    """

    @checked
    def __init__(
        self,
        learning_rate: Hyperparameter = 0.001,
        rho: Hyperparameter = 0.95,
        epsilon: Hyperparameter = 1e-8,
        use_locking: bool = False,
        name: str = "Adadelta",
    ) -> None:
        super().__init__(use_locking, name)
        self._lr = learning_rate
        self._rho = rho
        self._epsilon = epsilon

    def _create_slots(self, var_list: list[Any]) -> None:
        for var in var_list:
            self._zeros_slot(var, "accum", self._name)
            self._zeros_slot(var, "accum_update", self._name)

    def _prepare(self) -> None:
        self._lr_t = self._hyperparameter(self._lr, "lr")
        self._rho_t = self._hyperparameter(self._rho, "rho")
        self._epsilon_t = self._hyperparameter(self._epsilon, "epsilon")

    def _apply(self, var: Any, gradient: Tensor, indices: Tensor | None) -> Any:
        slots = self.get_slot(var, "accum"), self.get_slot(var, "accum_update")
        scalars = [self._scalar_for(scalar, var) for scalar in (self._lr_t, self._rho_t, self._epsilon_t)]
        return add_either(adaptive_training_ops.ADADELTA, var, slots, scalars, gradient, indices)
