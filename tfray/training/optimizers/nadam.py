"""Adam with Nesterov's momentum."""

from __future__ import annotations

from typing import Any

from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor
from tfray.framework.indexed_slices import IndexedSlices
from tfray.ops.state import training_ops
from tfray.training.optimizers.adam import AdamOptimizer


class NadamOptimizer(AdamOptimizer):
    """Adam that looks ahead: it moves by ``beta1 * m + (1 - beta1) * gradient`` in place of ``m``.

    Arguments are those of `AdamOptimizer`. A sparse gradient is made dense.

    References:
        Dozat, "Incorporating Nesterov Momentum into Adam", 2016.
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "Nadam",
    ) -> None:
        super().__init__(learning_rate, beta1, beta2, epsilon, use_locking, name)

    def _apply_dense(self, grad: Tensor, var: Any) -> Any:
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        return training_ops.apply_adam(var, m, v, *self._scalars(var), grad, use_nesterov=True)

    def _apply_sparse_duplicate_indices(self, grad: IndexedSlices, var: Any) -> Any:
        return self._apply_dense(convert_to_tensor(grad), var)
