"""One call from a loss to a training step: ``tf.contrib.layers.optimize_loss``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from tfray.errors import InvalidArgumentError
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.framework.indexed_slices import IndexedSlices
from tfray.library.variables.clip import clip_by_global_norm
from tfray.library.variables.variable_scope import variable_scope
from tfray.library.variables.variables import trainable_variables
from tfray.ops.arrays import array_ops
from tfray.ops.math import math_ops
from tfray.ops.random import random_ops
from tfray.training.optimizers.adagrad import AdagradOptimizer
from tfray.training.optimizers.adam import AdamOptimizer
from tfray.training.optimizers.ftrl import FtrlOptimizer
from tfray.training.optimizers.gradient_descent import GradientDescentOptimizer
from tfray.training.optimizers.momentum import MomentumOptimizer
from tfray.training.optimizers.optimizer import Optimizer
from tfray.training.optimizers.rms_prop import RMSPropOptimizer
from tfray.training.threads.global_step import get_global_step

OPTIMIZER_CLS_NAMES: Final[dict[str, Callable[..., Optimizer]]] = {
    "Adagrad": AdagradOptimizer,
    "Adam": AdamOptimizer,
    "Ftrl": FtrlOptimizer,
    "Momentum": lambda learning_rate: MomentumOptimizer(learning_rate, momentum=0.9),
    "RMSProp": RMSPropOptimizer,
    "SGD": GradientDescentOptimizer,
}
"""Optimizers by name."""


def optimize_loss(
    loss: Any,
    global_step: Any,
    learning_rate: Any,
    optimizer: Any,
    gradient_noise_scale: float | None = None,
    gradient_multipliers: dict[Any, Any] | None = None,
    clip_gradients: Any = None,
    learning_rate_decay_fn: Callable[[Any, Any], Any] | None = None,
    update_ops: Sequence[Any] | None = None,
    variables: Sequence[Any] | None = None,
    name: str | None = None,
    summaries: Any = None,
    colocate_gradients_with_ops: bool = False,
    increment_global_step: bool = True,
) -> Tensor:
    """Make a training step.

    Args:
        loss: Scalar, the loss.
        global_step: The global step; the graph's own when None.
        learning_rate: A number or scalar; None where the optimizer has one.
        optimizer: Name (see `OPTIMIZER_CLS_NAMES`), class, object, or function from the learning rate to an object.
        gradient_noise_scale: Standard deviation of noise to add to gradients.
        gradient_multipliers: Factors of gradients, by variable or its name.
        clip_gradients: Largest global norm, or a function from gradients and variables to such pairs.
        learning_rate_decay_fn: Function from learning rate and global step to the rate to use.
        update_ops: What to run before the loss is computed; ``GraphKeys.UPDATE_OPS`` when None.
        variables: Variables to update; the trainable ones when None.
        name: Name of the variable scope.
        summaries: Accepted for TensorFlow 1's sake.
        colocate_gradients_with_ops: Put each gradient on the device of the operation differentiated.
        increment_global_step: Add 1 to the global step.

    Returns:
        The loss, whose evaluation makes the step.

    Raises:
        InvalidArgumentError: The optimizer is not known, or lacks a learning rate.
    """
    graph = get_default_graph()
    with variable_scope(name, "OptimizeLoss"):
        loss = convert_to_tensor(loss)
        step = get_global_step() if global_step is None else global_step
        updates = graph.get_collection(GraphKeys.UPDATE_OPS) if update_ops is None else list(update_ops)
        if updates:
            with graph.control_dependencies(updates):
                loss = array_ops.identity(loss)
        if learning_rate is not None and learning_rate_decay_fn is not None:
            learning_rate = learning_rate_decay_fn(convert_to_tensor(learning_rate), step)
        chosen = _as_optimizer(optimizer, learning_rate)
        pairs: Any = chosen.compute_gradients(
            loss, variables or trainable_variables(), colocate_gradients_with_ops=colocate_gradients_with_ops
        )
        if gradient_noise_scale is not None:
            pairs = [(_with_noise(gradient, gradient_noise_scale), variable) for gradient, variable in pairs]
        if gradient_multipliers is not None:
            pairs = _multiplied(pairs, gradient_multipliers)
        pairs = _clipped(pairs, clip_gradients)
        train = chosen.apply_gradients(pairs, step if increment_global_step else None, name="train")
        with graph.control_dependencies([train]):
            return array_ops.identity(loss, name="loss")


def _as_optimizer(optimizer: Any, learning_rate: Any) -> Any:
    if isinstance(optimizer, str):
        if optimizer not in OPTIMIZER_CLS_NAMES:
            names = ", ".join(sorted(OPTIMIZER_CLS_NAMES))
            raise InvalidArgumentError(f"there is no optimizer {optimizer!r}; there are {names}")
        optimizer = OPTIMIZER_CLS_NAMES[optimizer]
        if learning_rate is None:
            raise InvalidArgumentError("optimize_loss needs a learning rate for an optimizer given by name")
    if isinstance(optimizer, Optimizer):
        return optimizer
    if isinstance(optimizer, type) and issubclass(optimizer, Optimizer):
        make: Callable[..., Any] = optimizer
        return make(learning_rate=learning_rate)
    if callable(optimizer):
        return optimizer() if learning_rate is None else optimizer(learning_rate)
    raise InvalidArgumentError(f"{optimizer!r} is no optimizer: give a name, class, object or function")


def _with_noise(gradient: Any, scale: float) -> Any:
    if gradient is None:
        return None
    dense = convert_to_tensor(gradient)
    return dense + random_ops.random_normal(array_ops.shape(dense), stddev=scale, dtype=dense.dtype)


def _multiplied(pairs: Any, factors: dict[Any, Any]) -> list[tuple[Any, Any]]:
    def scaled(gradient: Any, variable: Any) -> Any:
        factor = factors.get(variable, factors.get(variable.op.name))
        if gradient is None or factor is None:
            return gradient
        if isinstance(gradient, IndexedSlices):
            return IndexedSlices(gradient.values * factor, gradient.indices, gradient.dense_shape)
        return math_ops.multiply(gradient, array_ops.cast(factor, gradient.dtype))

    return [(scaled(gradient, variable), variable) for gradient, variable in pairs]


def _clipped(pairs: Any, limit: Any) -> Any:
    if limit is None:
        return pairs
    if callable(limit):
        return limit(pairs)
    clipped, _ = clip_by_global_norm([gradient for gradient, _ in pairs], limit)
    return [(gradient, variable) for gradient, (_, variable) in zip(clipped, pairs, strict=True)]
