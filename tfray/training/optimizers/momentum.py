"""Gradient descent with momentum."""

from __future__ import annotations

from typing import Any

from tfray.framework import dtypes
from tfray.framework.arguments import checked
from tfray.framework.dtypes import DType
from tfray.framework.graph import Tensor
from tfray.ops.state import training_ops
from tfray.ops.state.updates import add_either
from tfray.training.optimizers.optimizer import Hyperparameter, Optimizer


class MomentumOptimizer(Optimizer):
    """Moves each variable against an accumulation of its gradients, in which older gradients fade.

    A step is ``accumulation = momentum * accumulation + gradient; var -= learning_rate * accumulation``. With a sparse
    gradient, only the rows that it has change, in the variable and in the accumulation.

    Args:
        learning_rate: A number, a tensor, or a function that returns one of these.
        momentum: Part of the accumulation that a step keeps, likewise.
        use_locking: Accepted for TensorFlow 1's sake.
        name: Name of the optimizer.
        use_nesterov: Use Nesterov's momentum: ``var -= learning_rate * (gradient + momentum * accumulation)``.

    References:
        Sutskever, Martens, Dahl and Hinton, "On the importance of initialization and momentum in deep learning",
        2013.
    """

    @checked
    def __init__(
        self,
        learning_rate: Hyperparameter,
        momentum: Hyperparameter,
        use_locking: bool = False,
        name: str = "Momentum",
        use_nesterov: bool = False,
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._momentum = momentum
        self._use_nesterov = use_nesterov

    def _valid_dtypes(self) -> set[DType]:
        return set(dtypes.INEXACT)

    def _create_slots(self, var_list: list[Any]) -> None:
        for var in var_list:
            self._zeros_slot(var, "momentum", self._name)

    def _prepare(self) -> None:
        self._learning_rate_tensor = self._hyperparameter(self._learning_rate, "learning_rate")
        self._momentum_tensor = self._hyperparameter(self._momentum, "momentum")

    def _apply(self, var: Any, gradient: Tensor, indices: Tensor | None) -> Any:
        return self._add_update(var, self._scalar_for(self._learning_rate_tensor, var), gradient, indices)

    def _add_update(self, var: Any, rate: Tensor, gradient: Tensor, indices: Tensor | None) -> Any:
        momentum = self._scalar_for(self._momentum_tensor, var)
        slot, use_nesterov = self.get_slot(var, "momentum"), self._use_nesterov
        return add_either(
            training_ops.MOMENTUM, var, [slot], [rate], gradient, indices, after=[momentum], use_nesterov=use_nesterov
        )
