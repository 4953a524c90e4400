"""Loss scaling as ``tf.contrib.mixed_precision`` has it: an optimizer, and what chooses the scale."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import float32, int32
from tfray.framework.graph import Operation, Tensor
from tfray.framework.type_aliases import TensorLike
from tfray.library.variables.variables import Variable
from tfray.ops.arrays.grouping_ops import group, no_op
from tfray.ops.control.control_flow_ops import cond
from tfray.ops.math import math_ops
from tfray.training.optimizers.loss_scale import LossScale, MixedPrecisionLossScaleOptimizer, are_finite
from tfray.training.optimizers.optimizer import Optimizer


class LossScaleManager(ABC):
    """What chooses the scale of a `LossScaleOptimizer`."""

    @abstractmethod
    def get_loss_scale(self) -> Any:
        """The scale: a float32 scalar."""

    @abstractmethod
    def update_loss_scale(self, finite_grads: Tensor) -> Any:
        """The operation that changes the scale after a step; `finite_grads`, a bool scalar, says how that was."""


class FixedLossScaleManager(LossScaleManager):
    """A scale that stays as it is.

    Args:
        loss_scale: The scale.

    Raises:
        ValueError: It is less than 1.
    """

    def __init__(self, loss_scale: float) -> None:
        if loss_scale < 1:
            raise ValueError("loss scale must be at least 1.")
        self._loss_scale = convert_to_tensor(loss_scale, float32)

    def get_loss_scale(self) -> Tensor:
        return self._loss_scale

    def update_loss_scale(self, finite_grads: TensorLike) -> Operation:
        return no_op()


class ExponentialUpdateLossScaleManager(LossScaleManager):
    """A scale that grows after steps with finite gradients, and shrinks, down to 1, after others.

    Args:
        init_loss_scale: The scale of the first step.
        incr_every_n_steps: It grows after so many steps with finite gradients in a row.
        decr_every_n_nan_or_inf: It shrinks after so many others, in a row or not, since it was last changed.
        incr_ratio: By what it is multiplied to grow, unless it would become infinite.
        decr_ratio: By what it is multiplied to shrink.
    """

    def __init__(
        self,
        init_loss_scale: float,
        incr_every_n_steps: int,
        decr_every_n_nan_or_inf: int = 2,
        incr_ratio: float = 2,
        decr_ratio: float = 0.8,
    ) -> None:
        self._periods = incr_every_n_steps, decr_every_n_nan_or_inf
        self._ratios = incr_ratio, decr_ratio
        self._scale = Variable(init_loss_scale, trainable=False, name="loss_scale", dtype=float32)
        self._good_steps = Variable(0, trainable=False, name="good_steps", dtype=int32)
        self._bad_steps = Variable(0, trainable=False, name="bad_steps", dtype=int32)

    def get_loss_scale(self) -> Variable:
        return self._scale

    def update_loss_scale(self, finite_grads: TensorLike) -> Operation:
        found: Operation = cond(convert_to_tensor(finite_grads), self._after_good_step, self._after_bad_step)
        return found

    def _after_good_step(self) -> Operation:
        def grow() -> Operation:
            larger = self._scale * self._ratios[0]
            return self._changed(cond(math_ops.is_finite(larger), lambda: larger, self._scale.value))

        is_due = self._good_steps + 1 >= self._periods[0]
        return cond(is_due, grow, lambda: group(self._good_steps.assign_add(1)))

    def _after_bad_step(self) -> Operation:
        def shrink() -> Operation:
            return self._changed(math_ops.maximum(1.0, self._scale * self._ratios[1]))

        is_due = self._bad_steps + 1 >= self._periods[1]
        return cond(is_due, shrink, lambda: group(self._bad_steps.assign_add(1), self._good_steps.assign(0)))

    def _changed(self, scale: Tensor) -> Operation:
        return group(self._scale.assign(scale), self._good_steps.assign(0), self._bad_steps.assign(0))


class _Managed(LossScale):
    """The scale that a manager chooses."""

    def __init__(self, manager: LossScaleManager) -> None:
        super().__init__()
        self._manager = manager

    def __call__(self) -> Tensor:
        return convert_to_tensor(self._manager.get_loss_scale())

    def update(self, grads: Any) -> tuple[Operation, Any]:
        is_finite = are_finite(grads)
        return self._manager.update_loss_scale(is_finite), is_finite

    def get_config(self) -> dict[str, Any]:
        return {"manager": self._manager}


class LossScaleOptimizer(MixedPrecisionLossScaleOptimizer):
    """An optimizer that lets another one minimise a scaled loss, and gives it the gradients of the loss itself.

    A step whose gradients are not finite changes no variable, nor the global step.

    Args:
        opt: The other optimizer.
        loss_scale_manager: What chooses the scale.
    """

    def __init__(self, opt: Optimizer, loss_scale_manager: LossScaleManager) -> None:
        super().__init__(opt, _Managed(loss_scale_manager))
