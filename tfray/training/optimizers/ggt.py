"""GGT: Adagrad of full matrices over the last few steps."""

from __future__ import annotations

from typing import Any

from tfray.framework.arguments import checked
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.ops.arrays.array_ops import cast, eye, matrix_transpose, reshape, zeros
from tfray.ops.arrays.broadcast_ops import where_v2
from tfray.ops.arrays.grouping_ops import group
from tfray.ops.linalg.decomposition_ops import svd
from tfray.ops.math.linalg_ops import matmul
from tfray.ops.math.math_ops import minimum, reduce_min, sqrt
from tfray.ops.state import sparse_state_ops, state_ops
from tfray.training.optimizers.optimizer import Hyperparameter, Optimizer


class GGTOptimizer(Optimizer):
    """Divides the gradient of all variables together by the root of its covariance over the last few steps.

    Args:
        learning_rate: A number, a tensor, or a function that returns one of these.
        beta1: Decay of the mean of the gradients; likewise.
        use_locking: Accepted for TensorFlow 1's sake.
        name: Name of the optimizer.
        window: How many steps the covariance is taken over.
        eps: Directions without gradients in these steps count only where the least root of an eigenvalue is above
            this; as for `learning_rate`.
        svd_eps: Added to the eigenvalues; likewise.
        sigma_eps: Added to their roots; likewise.

    References:
        Agarwal et al., "Efficient Full-Matrix Adaptive Regularization", 2018.
    """

    @checked
    def __init__(
        self,
        learning_rate: Hyperparameter = 0.001,
        beta1: Hyperparameter = 0.9,
        use_locking: bool = False,
        name: str = "GGT",
        window: int = 10,
        eps: Hyperparameter = 1e-4,
        svd_eps: Hyperparameter = 1e-6,
        sigma_eps: Hyperparameter = 1e-2,
    ) -> None:
        super().__init__(use_locking, name)
        self._window = window
        self._settings = {
            "lr": learning_rate,
            "beta1": beta1,
            "eps": eps,
            "svd_eps": svd_eps,
            "sigma_eps": sigma_eps,
        }

    def _create_slots(self, var_list: list[Any]) -> None:
        self._places: dict[str, int] = {}
        size = 0
        for var in sorted(var_list, key=lambda var: str(var.name)):
            self._places[var.name] = size
            size += int(var.shape.num_elements())
        first, dtype = var_list[0], var_list[0].dtype
        self._create_non_slot_variable(cast(0.0, dtype), "global_step", first)
        self._create_non_slot_variable(zeros([self._window, size], dtype), "grad_buffer", first)
        self._create_non_slot_variable(zeros([size], dtype), "moment1", first)
        self._create_non_slot_variable(zeros([size], dtype), "flat_grad", first)

    def _own(self, name: str) -> Any:
        return self._get_non_slot_variable(name)

    def _prepare(self) -> None:
        self._variables: list[Any] = []
        self._tensors = {name: self._hyperparameter(value, name) for name, value in self._settings.items()}

    def _apply(self, var: Any, gradient: Tensor, indices: Tensor | None) -> Any:
        if indices is not None:
            raise NotImplementedError("Sparse gradient updates are not supported.")
        self._variables.append(var)
        start = self._places[var.name]
        places = list(range(start, start + int(var.shape.num_elements())))
        return sparse_state_ops.scatter_update(self._own("flat_grad"), places, reshape(gradient, [-1]))

    def _finish(self, update_ops: list[Any], name_scope: str) -> Operation:
        graph = get_default_graph()
        step, buffer, moment, flat = (
            self._own(name) for name in ("global_step", "grad_buffer", "moment1", "flat_grad")
        )
        lr, beta1, eps, svd_eps, sigma_eps = (self._scalar_for(each, flat) for each in self._tensors.values())
        with graph.control_dependencies(update_ops):
            new_step = convert_to_tensor(step.assign_add(1.0))
            mean = convert_to_tensor(moment.assign(beta1 * moment.read_value() + (1 - beta1) * flat.read_value()))
            place = cast(new_step - 1, "int32") % self._window
            rows = convert_to_tensor(sparse_state_ops.scatter_update(buffer, place, mean))
        means = matrix_transpose(rows / sqrt(minimum(new_step, float(self._window))))
        gradient = reshape(mean, [-1, 1])
        sigma, u, _ = svd(matmul(means, means, transpose_a=True) + svd_eps * eye(self._window, dtype=flat.dtype))
        root, seen = sqrt(sigma), matmul(u, matmul(means, gradient, transpose_a=True), transpose_a=True)

        def back(scale: Tensor) -> Tensor:
            return matmul(means, matmul(u, reshape(scale, [-1, 1]) * seen))

        least = reduce_min(root)
        rest = (gradient - back(1 / sigma)) / least
        change = lr * (back(1 / (root + sigma_eps) ** 3) + where_v2(least > eps, rest, cast(0.0, flat.dtype)))
        updates = []
        for var in self._variables:
            start = self._places[var.name]
            part = change[start : start + int(var.shape.num_elements())]
            updates.append(state_ops.assign_sub(var, reshape(part, var.shape)))
        return group(*updates, name=name_scope)
