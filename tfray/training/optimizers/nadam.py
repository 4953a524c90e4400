"""Adam with Nesterov's momentum, and Adam with the largest gradient in place of the mean of squares."""

from __future__ import annotations

from typing import Any

from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor
from tfray.framework.indexed_slices import IndexedSlices
from tfray.ops.arrays import array_ops
from tfray.ops.arrays.gather_ops import gather
from tfray.ops.arrays.grouping_ops import group
from tfray.ops.math import math_ops
from tfray.ops.state import training_ops
from tfray.ops.state.sparse_state_ops import scatter_sub, scatter_update
from tfray.training.optimizers.adam import AdamOptimizer
from tfray.training.optimizers.optimizer import dense_shape


class NadamOptimizer(AdamOptimizer):
    """Adam that looks ahead: it moves by ``beta1 * m + (1 - beta1) * gradient`` in place of ``m``.

    Arguments are those of `AdamOptimizer`, the name included. A sparse gradient is made dense.

    References:
        Dozat, "Incorporating Nesterov Momentum into Adam", 2016.
    """

    def _apply(self, var: Any, gradient: Tensor, indices: Tensor | None) -> Any:
        if indices is not None:
            gradient = convert_to_tensor(IndexedSlices(gradient, indices, dense_shape(var)))
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        return training_ops.apply_adam(var, m, v, *self._scalars(var), gradient, use_nesterov=True)


class AdaMaxOptimizer(AdamOptimizer):
    """Adam that divides by the largest of the gradients so far, which decays.

        m += (1 - beta1) * (gradient - m)
        v = max(beta2 * v, abs(gradient))
        var -= learning_rate / (1 - beta1 ** t) * m / (v + epsilon)

    Arguments are those of `AdamOptimizer`. Of a sparse gradient, only the rows that it has are touched.

    References:
        Kingma and Ba, "Adam: A Method for Stochastic Optimization", 2015, section 7.1.
    """

    _powers = ("beta1_power",)

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "AdaMax",
    ) -> None:
        super().__init__(learning_rate, beta1, beta2, epsilon, use_locking, name)

    def _moved(self, grad: Tensor, m: Tensor, v: Tensor, var: Any) -> tuple[Tensor, Tensor, Tensor]:
        """The new mean and largest gradient, and by how much the variable changes."""
        numbers = [*self._get_beta_accumulators(), self._lr_t, self._beta1_t, self._beta2_t, self._epsilon_t]
        beta1_power, rate, beta1, beta2, epsilon = (array_ops.cast(each, var.dtype) for each in numbers)
        mean = beta1 * m + (1 - beta1) * grad
        largest = math_ops.maximum(beta2 * v, math_ops.abs(grad))
        return mean, largest, rate / (1 - beta1_power) * mean / (largest + epsilon)

    def _apply_dense(self, grad: Tensor, var: Any) -> Any:
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        mean, largest, step = self._moved(grad, m.value(), v.value(), var)
        return group(m.assign(mean), v.assign(largest), var.assign_sub(step))

    def _apply_sparse(self, grad: IndexedSlices, var: Any) -> Any:
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        mean, largest, step = self._moved(grad.values, gather(m, grad.indices), gather(v, grad.indices), var)
        updates = [scatter_update(m, grad.indices, mean), scatter_update(v, grad.indices, largest)]
        return group(*updates, scatter_sub(var, grad.indices, step))
