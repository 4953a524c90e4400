"""``tf.contrib.learn.models``: regressions as parts of a graph."""

from __future__ import annotations

from typing import Any

from tfray.framework.graph import Tensor, get_default_graph
from tfray.library.inspect import summaries
from tfray.library.layers import losses
from tfray.library.variables.initializers import RandomNormal
from tfray.library.variables.variable_scope import get_variable, get_variable_scope, variable_scope
from tfray.ops.arrays.shape_ops import squeeze
from tfray.ops.nn.cross_entropy_ops import softmax
from tfray.ops.nn.nn_ops import xw_plus_b

__all__ = [
    "linear_regression",
    "linear_regression_zero_init",
    "logistic_regression",
    "logistic_regression_zero_init",
]


def linear_regression(
    x: Tensor, y: Tensor, init_mean: float | None = None, init_stddev: float = 1.0
) -> tuple[Tensor, Tensor]:
    """A linear regression.

    Args:
        x: Features, shape ``[batch, features]``.
        y: Labels, shape ``[batch]`` or ``[batch, numbers]``.
        init_mean: Mean of the initial weights and biases; those of `tf.get_variable` when None.
        init_stddev: Their standard deviation.

    Returns:
        Predictions, of the shape of `y`, and the mean squared error.
    """
    with variable_scope("linear_regression"):
        predictions = _logits(x, y, 1 if len(y.shape) == 1 else y.shape[1], init_mean, init_stddev)
        if len(y.shape) == 1:
            predictions = squeeze(predictions, axis=[1])
        return predictions, losses.mean_squared_error(y, predictions)


def linear_regression_zero_init(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """`linear_regression` that begins with zeros."""
    return linear_regression(x, y, init_mean=0.0, init_stddev=0.0)


def logistic_regression(
    x: Tensor, y: Tensor, class_weight: Tensor | None = None, init_mean: float | None = None, init_stddev: float = 1.0
) -> tuple[Tensor, Tensor]:
    """A logistic regression, of any number of classes.

    Args:
        x: Features, shape ``[batch, features]``.
        y: The share of each class, shape ``[batch, classes]``.
        class_weight: What logits are multiplied with, shape ``[classes]``. By default the tensor ``class_weight:0``,
            if the graph has one.
        init_mean: As for `linear_regression`.
        init_stddev: Likewise.

    Returns:
        Probabilities, of the shape of `y`, and the mean cross entropy.
    """
    with variable_scope("logistic_regression"):
        logits = _logits(x, y, y.shape[-1], init_mean, init_stddev)
        if class_weight is None:
            named = {tensor.name: tensor for op in get_default_graph().get_operations() for tensor in op.outputs}
            class_weight = named.get("class_weight:0")
        if class_weight is not None:
            logits = logits * class_weight
        return softmax(logits), losses.softmax_cross_entropy(y, logits)


def logistic_regression_zero_init(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """`logistic_regression` that begins with zeros."""
    return logistic_regression(x, y, init_mean=0.0, init_stddev=0.0)


def _logits(x: Tensor, y: Tensor, width: Any, init_mean: float | None, init_stddev: float) -> Tensor:
    initializer = None if init_mean is None else RandomNormal(init_mean, init_stddev)
    weights = get_variable("weights", [x.shape[1], width], x.dtype, initializer)
    bias = get_variable("bias", [width], x.dtype, initializer)
    for name, value in (("x", x), ("y", y), ("weights", weights), ("bias", bias)):
        summaries.histogram(f"{get_variable_scope().name}.{name}", value)
    return xw_plus_b(x, weights, bias)
