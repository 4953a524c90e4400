"""Loss scaling: gradients of a larger loss, divided again, so that small ones do not vanish in half precision."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from tfray.framework import nest
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import DType, float32, int64
from tfray.framework.graph import Graph, Operation, Tensor, get_default_graph
from tfray.framework.indexed_slices import IndexedSlices
from tfray.library.variables.variables import Variable
from tfray.ops.arrays import array_ops
from tfray.ops.arrays.grouping_ops import group, no_op
from tfray.ops.control.control_flow_ops import cond
from tfray.ops.math import math_ops
from tfray.training.optimizers.optimizer import Optimizer


class LossScale(ABC):
    """What a loss is multiplied by, and how that changes. Calling it gives the scale, a float32 scalar."""

    def __init__(self) -> None:
        self._weights: dict[tuple[str, Graph], Variable] = {}

    @abstractmethod
    def __call__(self) -> Tensor:
        """The scale: a float32 scalar."""

    @abstractmethod
    def update(self, grads: Any) -> tuple[Operation, Any]:
        """Look at the gradients of a step, and change the scale.

        Args:
            grads: Gradients in any structure, divided by the scale again. None stands for one that is not there.

        Returns:
            The operation that changes the scale, and whether to apply the gradients: a bool, or a bool scalar.
        """

    @abstractmethod
    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal one."""

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> LossScale:
        """One with the arguments that `get_config` gave."""
        return cls(**config)

    @property
    def weights(self) -> list[Variable]:
        """Its variables in the current graph, which a `tf.train.Checkpoint` saves."""
        return [variable for (_, graph), variable in self._weights.items() if graph is get_default_graph().root]

    def _add_weight(self, name: str, initial_value: Any, dtype: DType | None = None) -> Variable:
        """A variable that is not trainable. Raises `RuntimeError` when there is one of that name in the graph."""
        key = (name, get_default_graph().root)
        if key in self._weights:
            raise RuntimeError(f"the loss scale has a variable {name!r} already")
        self._weights[key] = Variable(initial_value, trainable=False, name=name, dtype=dtype)
        return self._weights[key]


class FixedLossScale(LossScale):
    """A scale that stays as it is.

    Args:
        loss_scale_value: The scale, at least 1.

    Raises:
        ValueError: It is less than 1, or no number.
    """

    def __init__(self, loss_scale_value: float) -> None:
        super().__init__()
        if not isinstance(loss_scale_value, (int, float)):
            raise ValueError(f"loss_scale_value is {loss_scale_value!r}, expected a number")
        if loss_scale_value < 1:
            raise ValueError(f"loss_scale_value is {loss_scale_value}, expected at least 1")
        self._value = float(loss_scale_value)

    def __call__(self) -> Tensor:
        return convert_to_tensor(self._value, float32)

    def update(self, grads: Any) -> tuple[Operation, Any]:
        return no_op(), True

    def get_config(self) -> dict[str, Any]:
        return {"loss_scale_value": self._value}

    def __repr__(self) -> str:
        return f"FixedLossScale({self._value})"


class DynamicLossScale(LossScale):
    """A scale that is as large as the gradients allow: they must stay finite.

    Args:
        initial_loss_scale: The scale of the first step.
        increment_period: After so many steps with finite gradients in a row the scale grows.
        multiplier: By what it grows, and by what it shrinks, down to 1, after a gradient that is not finite.
    """

    def __init__(
        self, initial_loss_scale: float = 2.0**15, increment_period: int = 2000, multiplier: float = 2.0
    ) -> None:
        super().__init__()
        self.initial_loss_scale = float(initial_loss_scale)
        self.increment_period = int(increment_period)
        self.multiplier = float(multiplier)
        self._scale = self._add_weight("current_loss_scale", self.initial_loss_scale, float32)
        self._good_steps = self._add_weight("good_steps", 0, int64)

    def __call__(self) -> Tensor:
        return self._scale.value()

    def update(self, grads: Any) -> tuple[Operation, Any]:
        is_finite = are_finite(grads)
        return cond(is_finite, self._after_good_step, self._after_bad_step), is_finite

    def _after_good_step(self) -> Operation:
        def grow() -> Operation:
            larger = self._scale * self.multiplier
            grown = cond(math_ops.is_finite(larger), lambda: group(self._scale.assign(larger)), no_op)
            return group(grown, self._good_steps.assign(0))

        return cond(self._good_steps + 1 >= self.increment_period, grow, lambda: group(self._good_steps.assign_add(1)))

    def _after_bad_step(self) -> Operation:
        smaller = math_ops.maximum(self._scale / self.multiplier, 1.0)
        return group(self._good_steps.assign(0), self._scale.assign(smaller))

    def get_config(self) -> dict[str, Any]:
        return {
            "initial_loss_scale": self.initial_loss_scale,
            "increment_period": self.increment_period,
            "multiplier": self.multiplier,
        }

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value}" for name, value in self.get_config().items())
        return f"DynamicLossScale({settings})"


def are_finite(grads: Any) -> Tensor:
    """Whether all gradients in a structure are finite, a bool scalar. None stands for one that is not there."""
    found = [grad.values if isinstance(grad, IndexedSlices) else grad for grad in nest.flatten(grads)]
    finite = [math_ops.reduce_all(math_ops.is_finite(grad)) for grad in found if grad is not None]
    return math_ops.reduce_all(array_ops.stack(finite)) if finite else convert_to_tensor(True)


def as_loss_scale(given: Any) -> LossScale:
    """The scale that a number, ``"dynamic"`` or a `LossScale` stands for. Raises `ValueError` for anything else."""
    if isinstance(given, LossScale):
        return given
    if given == "dynamic":
        return DynamicLossScale()
    if isinstance(given, (int, float)):
        return FixedLossScale(given)
    raise ValueError(f"loss_scale is {given!r}, expected a number, 'dynamic' or a LossScale")


class MixedPrecisionLossScaleOptimizer(Optimizer):
    """An optimizer that lets another one minimise a scaled loss, and gives it the gradients of the loss itself.

    With a `DynamicLossScale`, a step whose gradients are not finite changes no variable, nor the global step.

    Args:
        opt: The other optimizer.
        loss_scale: A number, ``"dynamic"`` or a `LossScale`.

    Raises:
        ValueError: `opt` is no optimizer, or `loss_scale` none of those.
    """

    def __init__(self, opt: Optimizer, loss_scale: Any) -> None:
        if not isinstance(opt, Optimizer):
            raise ValueError(f"opt is {opt!r}, expected a tf.train.Optimizer")
        super().__init__(opt._use_locking, opt.get_name())
        self._optimizer = opt
        self._loss_scale = as_loss_scale(loss_scale)
        self._parts = {"base_optimizer": opt, "loss_scale": self._loss_scale}

    def compute_gradients(
        self,
        loss: Any,
        var_list: Any = None,
        gate_gradients: int = Optimizer.GATE_OP,
        aggregation_method: int | None = None,
        colocate_gradients_with_ops: bool = False,
        grad_loss: Any = None,
    ) -> list[tuple[Any, Any]]:
        """As `Optimizer.compute_gradients`: the gradients of the loss, not of the scaled one."""
        scale = self._loss_scale()
        given = convert_to_tensor(loss() if callable(loss) else loss)
        pairs = self._optimizer.compute_gradients(
            scaled(given, scale),
            var_list,
            gate_gradients,
            aggregation_method,
            colocate_gradients_with_ops,
            grad_loss,
        )
        return [(None if grad is None else scaled(grad, 1 / scale), variable) for grad, variable in pairs]

    def apply_gradients(
        self, grads_and_vars: Iterable[tuple[Any, Any]], global_step: Any = None, name: str | None = None
    ) -> Operation:
        """As `Optimizer.apply_gradients`; the operation also changes a scale that is dynamic."""
        pairs = list(grads_and_vars)
        if isinstance(self._loss_scale, FixedLossScale):
            return self._optimizer.apply_gradients(pairs, global_step, name)
        name = name or self.get_name()
        update, is_applied = self._loss_scale.update([grad for grad, _ in pairs])
        applied = cond(
            convert_to_tensor(is_applied),
            lambda: group(self._optimizer.apply_gradients(pairs, global_step, f"{name}-wrapped")),
            no_op,
        )
        return group(applied, update, name=name)


def scaled(gradient: Any, factor: Tensor) -> Any:
    """A tensor, or `IndexedSlices`, times a float scalar, in the dtype that it has."""
    if isinstance(gradient, IndexedSlices):
        return IndexedSlices(scaled(gradient.values, factor), gradient.indices, gradient.dense_shape)
    return gradient * array_ops.cast(factor, gradient.dtype)


def enable_mixed_precision_graph_rewrite(opt: Optimizer, loss_scale: Any = "dynamic") -> Optimizer:
    """An optimizer that scales the loss, for `opt`.

    In TensorFlow this also rewrites graphs so that GPUs with tensor cores compute in float16. Here graphs run in the
    dtypes that they are written in: cast to float16 where it is wanted.

    Args:
        opt: An optimizer that does not scale the loss yet.
        loss_scale: As for `MixedPrecisionLossScaleOptimizer`.

    Raises:
        ValueError: `opt` is no optimizer, or scales the loss already.
    """
    if isinstance(opt, MixedPrecisionLossScaleOptimizer):
        raise ValueError(f"opt is {opt!r}, which scales the loss already")
    return MixedPrecisionLossScaleOptimizer(opt, loss_scale)


def disable_mixed_precision_graph_rewrite() -> None:
    """Do nothing: graphs are never rewritten to half precision. Optimizers made before go on scaling their losses."""
