"""Gradient descent."""

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
        self._learning_rate_tensor = convert_to_tensor(
            self._call_if_callable(self._learning_rate), name="learning_rate"
        )

    def _apply_dense(self, grad: Tensor, var: Any) -> Any:
        rate = self._scalar_for(self._learning_rate_tensor, var)
        return training_ops.apply_gradient_descent(var, rate, grad)

    def _apply_sparse_duplicate_indices(self, grad: IndexedSlices, var: Any) -> Any:
        rate = self._scalar_for(self._learning_rate_tensor, var)
        return sparse_training_ops.sparse_apply_gradient_descent(var, rate, grad.values, grad.indices)
