"""Adagrad."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from tfray.errors import InvalidArgumentError
from tfray.framework.arguments import checked
from tfray.framework.graph import Tensor
from tfray.ops.arrays.gather_ops import gather
from tfray.ops.math.arithmetic_ops import rsqrt
from tfray.ops.state import sparse_state_ops, state_ops, training_ops
from tfray.ops.state.updates import add_either
from tfray.training.optimizers.optimizer import Hyperparameter, Optimizer


class AdagradOptimizer(Optimizer):
    """Divides each element's gradient by the root of the sum of its squares so far.

    ``accumulator += gradient ** 2; var -= learning_rate * gradient / sqrt(accumulator)``. A sparse gradient
    changes only its rows.

    Args:
        learning_rate: A number, a tensor, or a function that returns one of these.
        initial_accumulator_value: What the sum starts with; positive.
        use_locking: Accepted for TensorFlow 1's sake.
        name: Name of the optimizer.

    Raises:
        InvalidArgumentError: `initial_accumulator_value` is not positive.

    References:
        Duchi, Hazan and Singer, "Adaptive Subgradient Methods for Online Learning and Stochastic Optimization",
        2011.
    """

    @checked
    def __init__(
        self,
        learning_rate: Hyperparameter,
        initial_accumulator_value: float = 0.1,
        use_locking: bool = False,
        name: str = "Adagrad",
    ) -> None:
        if initial_accumulator_value <= 0:
            raise InvalidArgumentError(
                f"initial_accumulator_value is {initial_accumulator_value}, expected a positive number"
            )
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._initial_accumulator_value = initial_accumulator_value

    def _create_slots(self, var_list: list[Any]) -> None:
        for var in var_list:
            self._filled_slot(var, self._initial_accumulator_value, "accumulator", self._name)

    def _prepare(self) -> None:
        self._learning_rate_tensor = self._hyperparameter(self._learning_rate, "learning_rate")

    def _apply(self, var: Any, gradient: Tensor, indices: Tensor | None) -> Any:
        rate = self._scalar_for(self._learning_rate_tensor, var)
        return add_either(training_ops.ADAGRAD, var, [self.get_slot(var, "accumulator")], [rate], gradient, indices)


class RegAdagradOptimizer(AdagradOptimizer):
    """`AdagradOptimizer` that can leave the sums of squares alone, as for the gradient of a regularization.

    Args:
        learning_rate: As there, as are the others.
        initial_accumulator_value: See there.
        use_locking: See there.
        name: See there.
    """

    def __init__(
        self,
        learning_rate: Hyperparameter,
        initial_accumulator_value: float = 0.1,
        use_locking: bool = False,
        name: str = "RegAdagrad",
    ) -> None:
        super().__init__(learning_rate, initial_accumulator_value, use_locking, name)
        self._updates_slots = True

    @contextlib.contextmanager
    def avoid_updating_slots(self) -> Iterator[None]:
        """Within this, updates divide by the sums, and do not add to them."""
        before, self._updates_slots = self._updates_slots, False
        try:
            yield
        finally:
            self._updates_slots = before

    def _apply(self, var: Any, gradient: Tensor, indices: Tensor | None) -> Any:
        if self._updates_slots:
            return super()._apply(var, gradient, indices)
        sums = self.get_slot(var, "accumulator").value()
        rate = self._scalar_for(self._learning_rate_tensor, var)
        if indices is None:
            return state_ops.assign_sub(var, rate * gradient * rsqrt(sums))
        return sparse_state_ops.scatter_sub(var, indices, rate * gradient * rsqrt(gather(sums, indices)))
