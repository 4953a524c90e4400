"""Shampoo: Adagrad with a matrix for each dimension of a variable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tfray.framework.arguments import checked
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.indexed_slices import IndexedSlices
from tfray.ops.arrays import array_ops
from tfray.ops.arrays.array_ops import cast, eye, matrix_transpose, transpose, zeros
from tfray.ops.arrays.broadcast_ops import where_v2
from tfray.ops.arrays.gather_ops import gather, scatter_nd
from tfray.ops.control.control_flow_ops import cond
from tfray.ops.linalg.decomposition_ops import svd
from tfray.ops.math import math_ops
from tfray.ops.math.linalg_ops import matmul, tensordot
from tfray.ops.state import sparse_state_ops, state_ops
from tfray.training.optimizers.matrix_roots import matrix_inverse_pth_root, matrix_square_root
from tfray.training.optimizers.optimizer import Optimizer, dense_shape

OfStep = float | Tensor | Callable[[Tensor], Any]
"""A number, or a function that gives one for the step, a float32 scalar that is 1 in the first."""

"""How many rounds an iterative root takes at most."""


class ShampooOptimizer(Optimizer):
    """Multiplies each dimension of a gradient by a power of what its squares have added up to.

    For a variable of n dimensions, a step adds the product of the gradient with itself over all dimensions but i to
    the matrix of dimension i, and multiplies the gradient along each i by that matrix to the power ``-alpha / n``.
    A dimension that is larger than `max_matrix_size` has the diagonal of the matrix only.

    Args:
        global_step: The variable that counts steps, or a number.
        max_matrix_size: The largest dimension with a matrix.
        gbar_decay: By what the sum of the gradients is multiplied in a step; 0 to take each gradient as it is. Like
            the numbers below, it may be a function of the step.
        gbar_weight: By what a gradient is multiplied before it is added.
        mat_gbar_decay: By what the matrices are multiplied in a step.
        mat_gbar_weight: By what products are multiplied before they are added.
        learning_rate: By what the result is multiplied.
        svd_interval: After how many steps powers are computed anew.
        precond_update_interval: After how many steps products are added, each then as many times.
        epsilon: Added to the diagonals before a power is computed.
        alpha: The exponents of all dimensions together.
        use_iterative_root: Compute powers by matrix products, not by a decomposition. ``n / (2 * alpha)`` must then
            be a whole number.
        use_locking: Accepted for TensorFlow 1's sake.
        name: Name of the optimizer, and of its slots.

    References:
        Gupta et al., "Shampoo: Preconditioned Stochastic Tensor Optimization", 2018.
    """

    @checked
    def __init__(
        self,
        global_step: Any = 0,
        max_matrix_size: int = 768,
        gbar_decay: OfStep = 0.0,
        gbar_weight: OfStep = 1.0,
        mat_gbar_decay: OfStep = 1.0,
        mat_gbar_weight: OfStep = 1.0,
        learning_rate: OfStep = 1.0,
        svd_interval: Any = 1,
        precond_update_interval: Any = 1,
        epsilon: float = 1e-4,
        alpha: Any = 0.5,
        use_iterative_root: bool = False,
        use_locking: bool = False,
        name: str = "Shampoo",
    ) -> None:
        super().__init__(use_locking, name)
        self._global_step = global_step
        self._max_matrix_size = max_matrix_size
        self._gbar_decay, self._gbar_weight = gbar_decay, gbar_weight
        self._mat_gbar_decay, self._mat_gbar_weight = mat_gbar_decay, mat_gbar_weight
        self._learning_rate = learning_rate
        self._svd_interval, self._precond_update_interval = svd_interval, precond_update_interval
        self._epsilon, self._alpha = epsilon, alpha
        self._use_iterative_root = use_iterative_root

    def _create_slots(self, var_list: list[Any]) -> None:
        for var in var_list:
            self._zeros_slot(var, "gbar", self._name)
            for place, size in enumerate(var.shape.as_list()):
                has_matrix = size <= self._max_matrix_size
                if has_matrix and not _is(self._svd_interval, 1):
                    self._get_or_make_slot(var, eye(size, dtype=var.dtype), f"H_{place}", self._name)
                empty = zeros([size, size] if has_matrix else [size], var.dtype)
                self._get_or_make_slot(var, empty, f"Gbar_{place}", self._name)

    def _prepare(self) -> None:
        self._step = cast(self._global_step, "float32") + 1

    def _now(self, value: Any) -> Any:
        return value(self._step) if callable(value) else value

    def _apply_dense(self, grad: Tensor, var: Any) -> Any:
        return self._changed(var, grad, None)

    def _apply_sparse(self, grad: IndexedSlices, var: Any) -> Any:
        if var.shape.as_list()[0] > self._max_matrix_size and _is(self._gbar_decay, 0):
            return self._changed(var, grad.values, grad.indices)
        shape = cast(dense_shape(var), grad.indices.dtype)
        return self._changed(var, scatter_nd(array_ops.expand_dims(grad.indices, 1), grad.values, shape), None)

    def _changed(self, var: Any, gradient: Tensor, indices: Tensor | None) -> Any:
        result = gradient
        if indices is None:
            added = self._now(self._gbar_weight) * gradient
            result = self._averaged(self.get_slot(var, "gbar"), self._gbar_decay, added)
        sizes = var.shape.as_list()
        exponent = -self._now(self._alpha) / max(len(sizes), 1)
        for place, size in enumerate(sizes):
            # Each turn takes the first dimension and puts it last: after all of them the order is as before.
            if size <= self._max_matrix_size:
                result = tensordot(result, self._power(var, gradient, place, exponent), axes=([0], [0]))
            else:
                scale = self._diagonal_power(var, gradient, place, exponent, indices)
                result = transpose(result, [*range(1, len(sizes)), 0]) * scale
        change = self._now(self._learning_rate) * result
        if indices is not None:
            return sparse_state_ops.scatter_sub(var, indices, change)
        return state_ops.assign_sub(var, change)

    def _averaged(self, slot: Any, decay: Any, added: Tensor) -> Tensor:
        """A sum after a step: it is kept, unless nothing of it counts in the next."""
        if _is(decay, 0):
            return added
        kept = added if _is(decay, 1) else (self._now(decay) - 1) * slot.read_value() + added
        return array_ops.identity(slot.assign_add(kept))

    def _power(self, var: Any, gradient: Tensor, place: int, exponent: Any) -> Tensor:
        """The power of the matrix of a dimension, after a gradient: shape ``[size, size]``."""
        slot, size = self.get_slot(var, f"Gbar_{place}"), var.shape.as_list()[place]
        others = [each for each in range(len(gradient.shape.as_list())) if each != place]
        interval = self._now(self._precond_update_interval)

        def updated() -> Tensor:
            weight = self._now(self._mat_gbar_weight) * interval
            return self._averaged(slot, self._mat_gbar_decay, weight * tensordot(gradient, gradient, (others, others)))

        matrix = cond(self._is_due(interval), updated, slot.read_value) / float(size)

        def power() -> Tensor:
            if self._use_iterative_root:
                root = matrix_square_root(matrix, size, ridge_epsilon=self._epsilon)
                try:
                    return matrix_inverse_pth_root(root, size, 2 * exponent, ridge_epsilon=0.0)
                except ValueError as error:
                    raise ValueError(
                        f"use_iterative_root needs an alpha of n / (2 * p) for a whole p: {error}"
                    ) from error
            return _power_by_svd(matrix, size, exponent, self._epsilon)

        if _is(self._svd_interval, 1):
            return power()
        kept = self.get_slot(var, f"H_{place}")
        due = self._is_due(self._now(self._svd_interval))
        return cond(due, lambda: array_ops.identity(kept.assign(power())), kept.read_value)

    def _is_due(self, interval: Any) -> Tensor:
        return math_ops.less(math_ops.mod(self._step, cast(interval, "float32")), 1.0)

    def _diagonal_power(self, var: Any, gradient: Tensor, place: int, exponent: Any, indices: Tensor | None) -> Tensor:
        """The power of the diagonal of a dimension, after a gradient: shape ``[size]``, or of rows ``[n]``.

        Raises:
            ValueError: The gradient is of some rows, and the diagonal decays, which it would have to in all rows.
        """
        slot, size = self.get_slot(var, f"Gbar_{place}"), var.shape.as_list()[place]
        others = [each for each in range(len(gradient.shape.as_list())) if each != place]
        squares = gradient * gradient
        if others:
            squares = math_ops.reduce_sum(squares, others) / (float(size) if indices is None else 1.0)
        added = self._now(self._mat_gbar_weight) * squares
        if place == 0 and indices is not None:
            if not _is(self._mat_gbar_decay, 1):
                raise ValueError(f"sparse gradients of {var.op.name!r} need a mat_gbar_decay of 1")
            with get_default_graph().control_dependencies([sparse_state_ops.scatter_add(slot, indices, added)]):
                diagonal = gather(slot.read_value(), indices)
        else:
            diagonal = self._averaged(slot, self._mat_gbar_decay, added)
        return where_v2(diagonal > 0, math_ops.pow(diagonal, exponent), array_ops.zeros_like(diagonal))


def _is(value: Any, number: float) -> bool:
    """Whether a number is this one; a tensor or a function is none."""
    return isinstance(value, (int, float)) and value == number


def _power_by_svd(matrix: Tensor, size: int, exponent: Any, epsilon: float) -> Tensor:
    if size == 1:
        return math_ops.pow(matrix + epsilon, exponent)
    values, left, right = svd(matrix + epsilon * eye(size, dtype=matrix.dtype))
    return matmul(right * math_ops.pow(math_ops.maximum(values, epsilon), exponent), matrix_transpose(left))
