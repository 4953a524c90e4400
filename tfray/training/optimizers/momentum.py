"""Gradient descent with momentum."""

from __future__ import annotations

from typing import Any

from tfray.framework import dtypes
from tfray.framework.arguments import checked
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import DType
from tfray.framework.graph import Tensor
from tfray.framework.indexed_slices import IndexedSlices
from tfray.ops.state import sparse_training_ops, training_ops
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
        self._learning_rate_tensor = convert_to_tensor(
            self._call_if_callable(self._learning_rate), name="learning_rate"
        )
        self._momentum_tensor = convert_to_tensor(self._call_if_callable(self._momentum), name="momentum")

    def _apply_dense(self, grad: Tensor, var: Any) -> Any:
        rate, momentum = self._scalars(var)
        slot = self.get_slot(var, "momentum")
        return training_ops.apply_momentum(var, slot, rate, grad, momentum, use_nesterov=self._use_nesterov)

    def _apply_sparse_duplicate_indices(self, grad: IndexedSlices, var: Any) -> Any:
        # The kernel adds up the gradients of equal indices itself.
        rate, momentum = self._scalars(var)
        return sparse_training_ops.sparse_apply_momentum(
            var,
            self.get_slot(var, "momentum"),
            rate,
            grad.values,
            grad.indices,
            momentum,
            use_nesterov=self._use_nesterov,
        )

    def _scalars(self, var: Any) -> list[Tensor]:
        """Learning rate and momentum, in the dtype in which `var` is updated."""
        return [self._scalar_for(scalar, var) for scalar in (self._learning_rate_tensor, self._momentum_tensor)]
