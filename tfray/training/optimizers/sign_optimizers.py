"""Optimizers that move further where a gradient has the sign of the mean of those before it (Bello et al., 2017)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.indexed_slices import IndexedSlices
from tfray.ops.arrays import array_ops, gather_ops
from tfray.ops.math import math_ops
from tfray.ops.state import sparse_state_ops
from tfray.training.optimizers.optimizer import Hyperparameter, Optimizer

DecayFunction = Callable[[Any], Tensor]
"""Given the global step, how much the signs count: a float32 scalar from 0 to 1."""


class _SignOptimizer(Optimizer):
    """What the two have in common.

    Args:
        learning_rate: A number, a tensor, or a function that returns one of these.
        strength: How much the signs change the gradient; likewise.
        beta: Decay of the mean of the gradients; likewise.
        sign_decay_fn: How much the signs count in a step; 1 when None.
        use_locking: Accepted for TensorFlow 1's sake.
        name: Name of the optimizer.
    """

    def __init__(
        self,
        learning_rate: Hyperparameter,
        strength: Hyperparameter,
        beta: Hyperparameter,
        sign_decay_fn: DecayFunction | None,
        use_locking: bool,
        name: str,
    ) -> None:
        super().__init__(use_locking, name)
        self._lr, self._strength, self._beta = learning_rate, strength, beta
        self._sign_decay_fn = sign_decay_fn
        self._global_step: Any = None

    def apply_gradients(
        self, grads_and_vars: Iterable[tuple[Any, Any]], global_step: Any = None, name: str | None = None
    ) -> Operation:
        """As for `Optimizer.apply_gradients`. `sign_decay_fn` is given the global step."""
        self._global_step = global_step
        return super().apply_gradients(grads_and_vars, global_step, name)

    def _create_slots(self, var_list: list[Any]) -> None:
        for var in var_list:
            self._zeros_slot(var, "m", self._name)

    def _prepare(self) -> None:
        decay = 1.0 if self._sign_decay_fn is None else self._sign_decay_fn(self._global_step)
        self._decay_t = convert_to_tensor(decay, name="sign_decay")
        self._lr_t = self._hyperparameter(self._lr, "learning_rate")
        self._strength_t = self._hyperparameter(self._strength, "strength")
        self._beta_t = self._hyperparameter(self._beta, "beta")

    def _factor(self, strength: Tensor, signs: Tensor) -> Tensor:
        """By what a gradient is multiplied, given its sign times that of the mean."""
        raise NotImplementedError

    def _step(self, grad: Tensor, mean: Tensor) -> Tensor:
        rate, strength, decay = (
            array_ops.cast(scalar, grad.dtype) for scalar in (self._lr_t, self._strength_t, self._decay_t)
        )
        return rate * self._factor(strength, decay * math_ops.sign(grad) * math_ops.sign(mean)) * grad

    def _apply_dense(self, grad: Tensor, var: Any) -> Any:
        m, beta = self.get_slot(var, "m"), array_ops.cast(self._beta_t, var.dtype)
        mean = m.assign(beta * m + (1 - beta) * grad)
        return var.assign_sub(self._step(grad, mean)).op

    def _apply_sparse(self, grad: IndexedSlices, var: Any) -> Any:
        m, beta = self.get_slot(var, "m"), array_ops.cast(self._beta_t, var.dtype)
        graph = get_default_graph()
        with graph.control_dependencies([m.assign(beta * m).op]):
            added = sparse_state_ops.scatter_add(m, grad.indices, (1 - beta) * grad.values)
        with graph.control_dependencies([added]):
            mean = gather_ops.gather(m.read_value(), grad.indices)
        return sparse_state_ops.scatter_sub(var, grad.indices, self._step(grad.values, mean))


class AddSignOptimizer(_SignOptimizer):
    """Multiplies a gradient by ``alpha + decay * sign(gradient) * sign(mean)``.

    Args:
        learning_rate: A number, a tensor, or a function that returns one of these.
        alpha: Likewise.
        beta: Decay of the mean of the gradients; likewise.
        sign_decay_fn: Function from the global step to the decay, such as `get_linear_decay_fn` returns; 1 when None.
        use_locking: Accepted for TensorFlow 1's sake.
        name: Name of the optimizer.
    """

    def __init__(
        self,
        learning_rate: Hyperparameter = 0.1,
        alpha: Hyperparameter = 1.0,
        beta: Hyperparameter = 0.9,
        sign_decay_fn: DecayFunction | None = None,
        use_locking: bool = False,
        name: str = "AddSignOptimizer",
    ) -> None:
        super().__init__(learning_rate, alpha, beta, sign_decay_fn, use_locking, name)

    def _factor(self, strength: Tensor, signs: Tensor) -> Tensor:
        return strength + signs


class PowerSignOptimizer(_SignOptimizer):
    """Multiplies a gradient by ``base ** (decay * sign(gradient) * sign(mean))``.

    Args:
        learning_rate: A number, a tensor, or a function that returns one of these.
        base: Likewise.
        beta: Decay of the mean of the gradients; likewise.
        sign_decay_fn: Function from the global step to the decay, such as `get_linear_decay_fn` returns; 1 when None.
        use_locking: Accepted for TensorFlow 1's sake.
        name: Name of the optimizer.
    """

    def __init__(
        self,
        learning_rate: Hyperparameter = 0.1,
        base: Hyperparameter = math.e,
        beta: Hyperparameter = 0.9,
        sign_decay_fn: DecayFunction | None = None,
        use_locking: bool = False,
        name: str = "PowerSignOptimizer",
    ) -> None:
        super().__init__(learning_rate, base, beta, sign_decay_fn, use_locking, name)

    def _factor(self, strength: Tensor, signs: Tensor) -> Tensor:
        return math_ops.exp(math_ops.log(strength) * signs)


def _done(global_step: Any, decay_steps: int) -> Tensor:
    """The share of the steps that are done, a float32 scalar."""
    if global_step is None:
        raise ValueError("global_step is required for a decay.")
    return math_ops.minimum(array_ops.cast(global_step, dtypes.float32), float(decay_steps)) / float(decay_steps)


def get_linear_decay_fn(decay_steps: int) -> DecayFunction:
    """A function from the global step to a number that falls evenly from 1 to 0 in so many steps.

    The function raises `ValueError` for None, as those of the functions below do.
    """
    return lambda global_step: 1.0 - _done(global_step, decay_steps)


def get_cosine_decay_fn(decay_steps: int, num_periods: float = 0.5, zero_after: float | None = None) -> DecayFunction:
    """A function from the global step to a wave from 1 to 0 and back.

    Args:
        decay_steps: After so many steps it stands still.
        num_periods: How many waves until then; with 0.5 it ends at 0.
        zero_after: From so many waves on it is 0.

    Returns:
        A function whose result is a float32 scalar.
    """

    def decayed(global_step: Any) -> Tensor:
        waves = num_periods * _done(global_step, decay_steps)
        return _cut(0.5 * (1.0 + math_ops.cos(2.0 * math.pi * waves)), waves, zero_after)

    return decayed


def get_restart_decay_fn(decay_steps: int, num_periods: float = 1, zero_after: float | None = None) -> DecayFunction:
    """A function from the global step to a number that falls from 1 to 0 as half a wave, again and again.

    Args:
        decay_steps: As for `get_cosine_decay_fn`.
        num_periods: How often it falls until then.
        zero_after: From so many falls on it is 0.

    Returns:
        A function whose result is a float32 scalar.
    """

    def decayed(global_step: Any) -> Tensor:
        falls = num_periods * _done(global_step, decay_steps)
        return _cut(0.5 * (1.0 + math_ops.cos(math.pi * math_ops.floormod(falls, 1.0))), falls, zero_after)

    return decayed


def _cut(value: Tensor, done: Tensor, zero_after: float | None) -> Tensor:
    if zero_after is None:
        return value
    return array_ops.where(math_ops.greater_equal(done, zero_after), array_ops.zeros_like(value), value)
