"""RMSProp."""

from __future__ import annotations

from typing import Any

from tfray.framework.arguments import checked
from tfray.framework.graph import Tensor
from tfray.ops.arrays import array_ops
from tfray.ops.state import adaptive_training_ops
from tfray.ops.state.updates import add_either
from tfray.training.optimizers.optimizer import Hyperparameter, Optimizer


class RMSPropOptimizer(Optimizer):
    """Divides each element's gradient by the root of a running mean of its squares.

        mean_square += (1 - decay) * (gradient ** 2 - mean_square)
        step = momentum * step + learning_rate * gradient / sqrt(mean_square + epsilon)
        var -= step

    The mean starts at 1. A sparse gradient changes only its rows.

    Args:
        learning_rate: A number, a tensor, or a function that returns one of these.
        decay: Decay of the mean; likewise.
        momentum: Decay of the steps; likewise.
        epsilon: What keeps the quotient finite; likewise.
        use_locking: Accepted for TensorFlow 1's sake.
        centered: Subtract the square of the mean gradient from the mean square: divide by an estimate of the
            standard deviation.
        name: Name of the optimizer.

    References:
        Tieleman and Hinton, Neural Networks for Machine Learning, lecture 6.5, 2012; Graves, "Generating Sequences
        With Recurrent Neural Networks", 2013, for the centered form.
    """

    @checked
    def __init__(
        self,
        learning_rate: Hyperparameter,
        decay: Hyperparameter = 0.9,
        momentum: Hyperparameter = 0.0,
        epsilon: Hyperparameter = 1e-10,
        use_locking: bool = False,
        centered: bool = False,
        name: str = "RMSProp",
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._decay = decay
        self._momentum = momentum
        self._epsilon = epsilon
        self._centered = centered

    def _create_slots(self, var_list: list[Any]) -> None:
        for var in var_list:
            self._get_or_make_slot_with_initializer(var, array_ops.ones, var.shape, var.dtype, "rms", self._name)
            if self._centered:
                self._zeros_slot(var, "mg", self._name)
            self._zeros_slot(var, "momentum", self._name)

    def _prepare(self) -> None:
        self._learning_rate_tensor = self._hyperparameter(self._learning_rate, "learning_rate")
        self._decay_tensor = self._hyperparameter(self._decay, "decay")
        self._momentum_tensor = self._hyperparameter(self._momentum, "momentum")
        self._epsilon_tensor = self._hyperparameter(self._epsilon, "epsilon")

    def _apply(self, var: Any, gradient: Tensor, indices: Tensor | None) -> Any:
        hyperparameters = (self._learning_rate_tensor, self._decay_tensor, self._momentum_tensor, self._epsilon_tensor)
        scalars = [self._scalar_for(scalar, var) for scalar in hyperparameters]
        slots = [self.get_slot(var, "rms"), self.get_slot(var, "momentum")]
        if self._centered:
            slots.insert(0, self.get_slot(var, "mg"))
        definitions = adaptive_training_ops.CENTERED_RMS_PROP if self._centered else adaptive_training_ops.RMS_PROP
        return add_either(definitions, var, slots, scalars, gradient, indices)
