"""Adam."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from tfray.framework import dtypes
from tfray.framework.arguments import checked
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.ops.arrays import array_ops, grouping_ops
from tfray.ops.state import sparse_state_ops, state_ops, training_ops
from tfray.training.optimizers.optimizer import Hyperparameter, Optimizer, deduplicated


class AdamOptimizer(Optimizer):
    """Moves each element by the mean of its gradients over the root of the mean of their squares.

    With t the number of the step, counted from 1:

        m += (1 - beta1) * (gradient - m)
        v += (1 - beta2) * (gradient ** 2 - v)
        var -= learning_rate * sqrt(1 - beta2 ** t) / (1 - beta1 ** t) * m / (sqrt(v) + epsilon)

    A sparse gradient has the same effect as the dense one with zeros in the other rows: their means decay, and
    they go on moving. `LazyAdamOptimizer` leaves them alone.

    Args:
        learning_rate: A number, a tensor, or a function that returns one of these.
        beta1: Decay of the mean of the gradients; likewise.
        beta2: Decay of the mean of their squares; likewise.
        epsilon: What keeps the quotient finite; likewise. It stands where section 2.1 of the paper puts it.
        use_locking: Accepted for TensorFlow 1's sake.
        name: Name of the optimizer.

    References:
        Kingma and Ba, "Adam: A Method for Stochastic Optimization", 2015.
    """

    _lazy = False
    _powers: ClassVar[tuple[str, ...]] = ("beta1_power", "beta2_power")

    @checked
    def __init__(
        self,
        learning_rate: Hyperparameter = 0.001,
        beta1: Hyperparameter = 0.9,
        beta2: Hyperparameter = 0.999,
        epsilon: Hyperparameter = 1e-8,
        use_locking: bool = False,
        name: str = "Adam",
    ) -> None:
        super().__init__(use_locking, name)
        self._lr = learning_rate
        self._beta1 = beta1
        self._beta2 = beta2
        self._epsilon = epsilon

    def _get_beta_accumulators(self) -> tuple[Any, ...]:
        """The variables that hold the powers of the decays."""
        return tuple(map(self._get_non_slot_variable, self._powers))

    def _create_slots(self, var_list: list[Any]) -> None:
        # Which variable they go to must not depend on the order of the list.
        first = min(var_list, key=lambda var: var.name)
        for power, decay in zip(self._powers, (self._beta1, self._beta2), strict=False):
            self._create_non_slot_variable(partial(self._call_if_callable, decay), power, first)
        for var in var_list:
            self._zeros_slot(var, "m", self._name)
            self._zeros_slot(var, "v", self._name)

    def _prepare(self) -> None:
        self._lr_t = self._hyperparameter(self._lr, "learning_rate")
        self._beta1_t = self._hyperparameter(self._beta1, "beta1")
        self._beta2_t = self._hyperparameter(self._beta2, "beta2")
        self._epsilon_t = self._hyperparameter(self._epsilon, "epsilon")

    def _scalars(self, var: Any) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
        def as_var(scalar: Any) -> Tensor:
            return self._scalar_for(scalar, var)

        beta1_power, beta2_power = map(as_var, self._get_beta_accumulators())
        rate, beta1, beta2, epsilon = map(as_var, (self._lr_t, self._beta1_t, self._beta2_t, self._epsilon_t))
        return beta1_power, beta2_power, rate, beta1, beta2, epsilon

    def _apply(self, var: Any, gradient: Tensor, indices: Tensor | None) -> Any:
        if indices is None:
            m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
            return training_ops.apply_adam(var, m, v, *self._scalars(var), gradient)
        if type(self)._apply_sparse_shared is not AdamOptimizer._apply_sparse_shared:
            # That of a program need not know that rows of equal indices add up.
            gradient, indices = deduplicated(gradient, indices)
        return self._apply_sparse_shared(gradient, var, indices, sparse_state_ops.scatter_add)

    def _apply_sparse_shared(
        self, grad: Tensor, var: Any, indices: Tensor, scatter_add: Callable[[Any, Any, Any], Any]
    ) -> Any:
        """Return the operation that updates `var` by some rows; programs that derive from Adam override it.

        Args:
            grad: The gradients of the rows.
            var: The variable.
            indices: Which rows they are.
            scatter_add: A function that adds rows to a variable: ``function(variable, indices, rows)``.
        """
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        return training_ops.sparse_apply_adam(var, m, v, *self._scalars(var), grad, indices, lazy=self._lazy)

    def _finish(self, update_ops: list[Any], name_scope: str) -> Operation:
        powers = self._get_beta_accumulators()
        with get_default_graph().control_dependencies(update_ops), state_ops.colocated_with(powers[0].handle):
            updates = [
                power.assign(power * array_ops.cast(beta, power.dtype)).op
                for power, beta in zip(powers, (self._beta1_t, self._beta2_t), strict=False)
            ]
        return grouping_ops.group(*update_ops, *updates, name=name_scope)


class LazyAdamOptimizer(AdamOptimizer):
    """Adam that touches only the rows of a sparse gradient, for large embeddings of which a step uses little.

    The means of a row stand still while it is not used, so results differ somewhat from `AdamOptimizer`.
    """

    _lazy = True


class AdamGSOptimizer(AdamOptimizer):
    """`AdamOptimizer` that counts steps by a variable of the program, and keeps no powers of the decays.

    Args:
        global_step: The number of steps so far, a variable or a number.
        learning_rate: As there, as are the others.
        beta1: See there.
        beta2: See there.
        epsilon: See there.
        use_locking: See there.
        name: See there.
    """

    @checked
    def __init__(
        self,
        global_step: Any = 0,
        learning_rate: Hyperparameter = 0.001,
        beta1: Hyperparameter = 0.9,
        beta2: Hyperparameter = 0.999,
        epsilon: Hyperparameter = 1e-8,
        use_locking: bool = False,
        name: str = "Adam",
    ) -> None:
        super().__init__(learning_rate, beta1, beta2, epsilon, use_locking, name)
        self._global_step = global_step

    def _get_beta_accumulators(self) -> tuple[Any, Any]:
        return self._beta1_t**self._global_step_on_worker, self._beta2_t**self._global_step_on_worker

    def _create_slots(self, var_list: list[Any]) -> None:
        for var in var_list:
            self._zeros_slot(var, "m", self._name)
            self._zeros_slot(var, "v", self._name)

    def _prepare(self) -> None:
        super()._prepare()
        self._global_step_on_worker = array_ops.cast(array_ops.identity(self._global_step) + 1, dtypes.float32)

    def _finish(self, update_ops: list[Any], name_scope: str) -> Operation:
        return Optimizer._finish(self, update_ops, name_scope)


class LazyAdamGSOptimizer(AdamGSOptimizer):
    """`AdamGSOptimizer` that touches only the rows of a sparse gradient; see `LazyAdamOptimizer`."""

    _lazy = True
