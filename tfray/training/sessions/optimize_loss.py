"""One call from a loss to a training step: ``tf.contrib.layers.optimize_loss``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any, Final

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.framework.indexed_slices import IndexedSlices
from tfray.library.inspect import summaries as summary
from tfray.library.variables import initializers
from tfray.library.variables.clip import clip_by_global_norm, global_norm
from tfray.library.variables.moving_average import assign_moving_average
from tfray.library.variables.variable_scope import get_variable, variable_scope
from tfray.library.variables.variables import Variable, trainable_variables
from tfray.ops.arrays import array_ops
from tfray.ops.checks.check_ops import assert_scalar
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

OPTIMIZER_SUMMARIES: Final = ("learning_rate", "loss", "gradients", "gradient_norm", "global_gradient_norm")
"""What `optimize_loss` can write summaries of."""


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
        gradient_noise_scale: Scale of noise to add to gradients: that of a truncated normal distribution.
        gradient_multipliers: Factors of gradients, by variable or its name.
        clip_gradients: Largest global norm, or a function from gradients and variables to such pairs, such as
            `adaptive_clipping_fn` makes.
        learning_rate_decay_fn: Function from learning rate and global step to the rate to use; the graph then needs a
            global step.
        update_ops: What to run before the loss is computed; ``GraphKeys.UPDATE_OPS`` when None.
        variables: Variables to update; the trainable ones when None.
        name: Name of the variable scope.
        summaries: What to write summaries of, among `OPTIMIZER_SUMMARIES`; when None, the loss, the learning rate, if
            it decays, and the global norm of the gradients.
        colocate_gradients_with_ops: Put each gradient on the device of the operation differentiated.
        increment_global_step: Add 1 to the global step.

    Returns:
        The loss, whose evaluation makes the step.

    Raises:
        InvalidArgumentError: The optimizer is not known, or lacks a learning rate; the learning rate is no scalar or
            below 0; a summary is not known; or there is no global step by which the learning rate could decay.
    """
    graph = get_default_graph()
    wanted = ("loss", "learning_rate", "global_gradient_norm") if summaries is None else tuple(summaries)
    if unknown := sorted(set(wanted) - set(OPTIMIZER_SUMMARIES)):
        raise InvalidArgumentError(f"Summaries should be one of {', '.join(OPTIMIZER_SUMMARIES)}, not {unknown}")
    with variable_scope(name, "OptimizeLoss"):
        loss = convert_to_tensor(loss)
        assert_scalar(loss)
        step = get_global_step() if global_step is None else global_step
        updates = graph.get_collection(GraphKeys.UPDATE_OPS) if update_ops is None else list(update_ops)
        if updates:
            with graph.control_dependencies(updates):
                loss = array_ops.identity(loss)
        if learning_rate is not None:
            learning_rate = _rate(learning_rate)
        if learning_rate is not None and learning_rate_decay_fn is not None:
            if step is None:
                raise InvalidArgumentError("global_step is required for learning_rate_decay_fn.")
            learning_rate = learning_rate_decay_fn(learning_rate, step)
            if "learning_rate" in wanted:
                summary.scalar("learning_rate", learning_rate)
        chosen = _as_optimizer(optimizer, learning_rate)
        pairs: Any = chosen.compute_gradients(
            loss, variables or trainable_variables(), colocate_gradients_with_ops=colocate_gradients_with_ops
        )
        if gradient_noise_scale is not None:
            pairs = [(_with_noise(gradient, gradient_noise_scale), variable) for gradient, variable in pairs]
        if gradient_multipliers is not None:
            pairs = _multiplied(pairs, gradient_multipliers)
        if {"global_gradient_norm", "gradient_norm"} & set(wanted):
            summary.scalar("global_norm/gradient_norm", _norm_of(pairs))
        pairs = _clipped(pairs, clip_gradients)
        _summarize(loss, pairs, wanted, clip_gradients is not None)
        train = chosen.apply_gradients(pairs, step if increment_global_step else None, name="train")
        with graph.control_dependencies([train]):
            return array_ops.identity(loss, name="loss")


def _rate(learning_rate: Any) -> Any:
    """The learning rate as a tensor, or as a variable of that name that other programs may change."""
    if isinstance(learning_rate, (Tensor, Variable)):
        if learning_rate.shape.rank not in (0, None):
            raise InvalidArgumentError(f"Learning rate should be 0d Tensor or float, and is {learning_rate!r}")
        return learning_rate
    if isinstance(learning_rate, bool) or not isinstance(learning_rate, Real):
        raise InvalidArgumentError(f"Learning rate should be 0d Tensor or float, and is {learning_rate!r}")
    if learning_rate < 0:
        raise InvalidArgumentError(f"Invalid learning_rate {learning_rate}: it is below 0")
    return get_variable("learning_rate", [], trainable=False, initializer=initializers.Constant(float(learning_rate)))


def _norm_of(pairs: Any) -> Tensor:
    return global_norm([gradient for gradient, _ in pairs])


def _summarize(loss: Tensor, pairs: Any, wanted: Sequence[str], clipped: bool) -> None:
    """Add the summaries that are wanted of the loss and of the gradients that are applied."""
    if "loss" in wanted:
        summary.scalar("loss", loss)
    for gradient, variable in pairs:
        if gradient is None:
            continue
        values = gradient.values if isinstance(gradient, IndexedSlices) else gradient
        name = variable.name.replace(":", "_")
        if "gradients" in wanted:
            summary.histogram(f"gradients/{name}", values)
        if "gradient_norm" in wanted:
            summary.scalar(f"gradient_norm/{name}", global_norm([values]))
    if clipped and {"global_gradient_norm", "gradient_norm"} & set(wanted):
        summary.scalar("global_norm/clipped_gradient_norm", _norm_of(pairs))


def adaptive_clipping_fn(
    std_factor: Any = 2.0,
    decay: Any = 0.95,
    static_max_norm: Any = None,
    global_step: Any = None,
    report_summary: bool = False,
    epsilon: float = 1e-8,
    name: str | None = None,
) -> Callable[[Any], list[tuple[Any, Any]]]:
    """A function that scales gradients down to what their global norm usually is, where it is unusually large.

    Args:
        std_factor: From how many standard deviations above the mean, of the logarithm of norms, a norm is unusual.
        decay: What remains of the moving mean and the moving variance in a step.
        static_max_norm: A norm that is never exceeded, where given.
        global_step: With it, the mean and the variance move faster in the first steps.
        report_summary: Add a summary of the norm from which norms are unusual.
        epsilon: Added to norms, and the smallest variance.
        name: Name of the variable scope.

    Returns:
        A function from pairs of gradient and variable to such pairs.

    References:
        Pascanu, Mikolov and Bengio, "On the difficulty of training recurrent neural networks", 2013.
    """

    def clip(pairs: Any) -> list[tuple[Any, Any]]:
        norm = _norm_of(pairs)
        limit, usual = _usual_norm(norm, std_factor, decay, global_step, epsilon, name)
        if report_summary:
            summary.scalar("global_norm/adaptive_max_gradient_norm", limit)
        factor = array_ops.where(norm < limit, array_ops.ones_like(norm), usual / norm)
        if static_max_norm is not None:
            factor = math_ops.minimum(static_max_norm / norm, factor)
        return [(times(gradient, factor), variable) for gradient, variable in pairs]

    return clip


def _usual_norm(
    norm: Tensor, std_factor: Any, decay: Any, step: Any, epsilon: float, name: str | None
) -> tuple[Tensor, Tensor]:
    """The largest usual norm, and the mean of norms: both of their logarithms."""
    with variable_scope(name, "AdaptiveMaxNorm"):
        logarithm = math_ops.log(norm + epsilon)
        if step is not None:
            done = array_ops.cast(step, dtypes.float32)
            decay = math_ops.minimum(convert_to_tensor(decay), done / (done + 1))

        def moving(name: str, value: Tensor) -> Tensor:
            mean = get_variable(name, value.shape, value.dtype, initializers.Zeros(), trainable=False)
            return assign_moving_average(mean, value, decay, zero_debias=False)

        mean, of_squares = moving("mean", logarithm), moving("sq_mean", math_ops.square(logarithm))
        deviation = math_ops.sqrt(math_ops.maximum(epsilon, of_squares - math_ops.square(mean)))
        return math_ops.exp(mean + std_factor * deviation), math_ops.exp(mean)


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
        if learning_rate is None:
            raise InvalidArgumentError(f"optimize_loss needs a learning rate for the optimizer {optimizer.__name__}")
        make: Callable[..., Any] = optimizer
        return make(learning_rate=learning_rate)
    if callable(optimizer):
        made = optimizer() if learning_rate is None else optimizer(learning_rate)
        if isinstance(made, Optimizer):
            return made
        raise InvalidArgumentError(f"Unrecognized optimizer: function should return an Optimizer, and returns {made!r}")
    raise InvalidArgumentError(f"{optimizer!r} is no optimizer: give a name, class, object or function")


def _with_noise(gradient: Any, scale: float) -> Any:
    if gradient is None:
        return None
    dense = convert_to_tensor(gradient)
    return dense + random_ops.truncated_normal(array_ops.shape(dense), dtype=dense.dtype) * scale


def _multiplied(pairs: Any, factors: dict[Any, Any]) -> list[tuple[Any, Any]]:
    def scaled(gradient: Any, variable: Any) -> Any:
        factor = factors.get(variable, factors.get(variable.op.name))
        return gradient if factor is None else times(gradient, factor)

    return [(scaled(gradient, variable), variable) for gradient, variable in pairs]


def times(gradient: Any, factor: Any) -> Any:
    """A gradient times a factor; None stays None."""
    if gradient is None:
        return None
    if isinstance(gradient, IndexedSlices):
        return IndexedSlices(times(gradient.values, factor), gradient.indices, gradient.dense_shape)
    return math_ops.multiply(gradient, array_ops.cast(factor, gradient.dtype))


def _clipped(pairs: Any, limit: Any) -> Any:
    if limit is None:
        return pairs
    if callable(limit):
        return limit(pairs)
    if isinstance(limit, bool) or not isinstance(limit, (float, int, np.number, Tensor)):
        raise InvalidArgumentError(f"Unknown type {type(limit).__name__} for clip_gradients: a number or a function")
    clipped, _ = clip_by_global_norm([gradient for gradient, _ in pairs], limit)
    return [(gradient, variable) for gradient, (_, variable) in zip(clipped, pairs, strict=True)]
