"""Losses of Keras models: functions from targets and predictions to a loss for each example, and by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tfray.errors import InvalidArgumentError
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor
from tfray.keras import tensor_functions
from tfray.keras.tensor_functions import epsilon
from tfray.library.layers.descriptions import Described
from tfray.ops.arrays import array_ops
from tfray.ops.math import math_ops
from tfray.ops.nn import activation_ops, normalization_ops

# fmt: off
__all__ = [
    "KLD", "MAE", "MAPE", "MSE", "MSLE", "BinaryCrossentropy", "CategoricalCrossentropy", "Huber", "Loss",
    "MeanAbsoluteError", "MeanSquaredError", "SparseCategoricalCrossentropy", "binary_crossentropy",
    "categorical_crossentropy", "categorical_hinge", "cosine_proximity", "get", "hinge", "huber", "kld",
    "kullback_leibler_divergence", "logcosh", "mae", "mape", "mean_absolute_error", "mean_absolute_percentage_error",
    "mean_squared_error", "mean_squared_logarithmic_error", "mse", "msle", "poisson",
    "sparse_categorical_crossentropy", "squared_hinge",
]
# fmt: on


def _pair(y_true: Any, y_pred: Any) -> tuple[Tensor, Tensor]:
    y_pred = convert_to_tensor(y_pred)
    return array_ops.cast(y_true, y_pred.dtype), y_pred


def _mean(losses: Tensor) -> Tensor:
    return math_ops.reduce_mean(losses, -1)


def _signs(targets: Tensor) -> Tensor:
    """Targets -1 and 1 for 0 and 1; any others as they are."""
    is_one = math_ops.equal(targets, 1.0)
    are_two = math_ops.reduce_all(math_ops.logical_or(is_one, math_ops.equal(targets, 0.0)))
    return array_ops.where(array_ops.fill(array_ops.shape(targets), are_two), 2.0 * targets - 1.0, targets)


def mean_squared_error(y_true: Any, y_pred: Any) -> Tensor:
    """The mean of ``(y_pred - y_true) ** 2`` along the last dimension."""
    y_true, y_pred = _pair(y_true, y_pred)
    return _mean(math_ops.squared_difference(y_pred, y_true))


def mean_absolute_error(y_true: Any, y_pred: Any) -> Tensor:
    """The mean of ``abs(y_pred - y_true)`` along the last dimension."""
    y_true, y_pred = _pair(y_true, y_pred)
    return _mean(math_ops.abs(y_pred - y_true))


def mean_absolute_percentage_error(y_true: Any, y_pred: Any) -> Tensor:
    """The mean of ``100 * abs((y_pred - y_true) / y_true)`` along the last dimension."""
    y_true, y_pred = _pair(y_true, y_pred)
    return 100.0 * _mean(math_ops.abs((y_true - y_pred) / math_ops.maximum(math_ops.abs(y_true), epsilon())))


def mean_squared_logarithmic_error(y_true: Any, y_pred: Any) -> Tensor:
    """The mean of ``(log(1 + y_pred) - log(1 + y_true)) ** 2`` along the last dimension."""
    y_true, y_pred = (math_ops.log1p(math_ops.maximum(value, epsilon())) for value in _pair(y_true, y_pred))
    return _mean(math_ops.squared_difference(y_pred, y_true))


def hinge(y_true: Any, y_pred: Any) -> Tensor:
    """The mean of ``max(1 - y_true * y_pred, 0)``, for targets -1 and 1, or 0 and 1."""
    y_true, y_pred = _pair(y_true, y_pred)
    return _mean(activation_ops.relu(1.0 - _signs(y_true) * y_pred))


def squared_hinge(y_true: Any, y_pred: Any) -> Tensor:
    """The mean of ``max(1 - y_true * y_pred, 0) ** 2``, for targets -1 and 1, or 0 and 1."""
    y_true, y_pred = _pair(y_true, y_pred)
    return _mean(math_ops.square(activation_ops.relu(1.0 - _signs(y_true) * y_pred)))


def categorical_hinge(y_true: Any, y_pred: Any) -> Tensor:
    """How little the right class, given as a vector, is higher than the highest other one: at most 1 is enough."""
    y_true, y_pred = _pair(y_true, y_pred)
    right = math_ops.reduce_sum(y_true * y_pred, -1)
    return activation_ops.relu(math_ops.reduce_max((1.0 - y_true) * y_pred, -1) - right + 1.0)


def huber(y_true: Any, y_pred: Any, delta: float = 1.0) -> Tensor:
    """The mean of half the squared error up to `delta`, and of a straight line beyond."""
    y_true, y_pred = _pair(y_true, y_pred)
    error = math_ops.abs(y_pred - y_true)
    quadratic = math_ops.minimum(error, delta)
    return _mean(0.5 * math_ops.square(quadratic) + delta * (error - quadratic))


def logcosh(y_true: Any, y_pred: Any) -> Tensor:
    """The mean of ``log(cosh(y_pred - y_true))``."""
    y_true, y_pred = _pair(y_true, y_pred)
    error = y_pred - y_true
    return _mean(error + activation_ops.softplus(-2.0 * error) - 0.6931471805599453)


def poisson(y_true: Any, y_pred: Any) -> Tensor:
    """The mean of ``y_pred - y_true * log(y_pred)``."""
    y_true, y_pred = _pair(y_true, y_pred)
    return _mean(y_pred - y_true * math_ops.log(y_pred + epsilon()))


def kullback_leibler_divergence(y_true: Any, y_pred: Any) -> Tensor:
    """The sum of ``y_true * log(y_true / y_pred)``."""
    y_true, y_pred = (math_ops.maximum(math_ops.minimum(v, 1.0), epsilon()) for v in _pair(y_true, y_pred))
    return math_ops.reduce_sum(y_true * math_ops.log(y_true / y_pred), -1)


def cosine_proximity(y_true: Any, y_pred: Any) -> Tensor:
    """Minus the cosine of the angle between the vectors."""
    y_true, y_pred = (normalization_ops.l2_normalize(value, -1) for value in _pair(y_true, y_pred))
    return -math_ops.reduce_sum(y_true * y_pred, -1)


def binary_crossentropy(y_true: Any, y_pred: Any, from_logits: bool = False) -> Tensor:
    """The mean cross entropy of independent classes; `y_pred` holds probabilities, or logits."""
    return _mean(tensor_functions.binary_crossentropy(y_true, y_pred, from_logits))


def categorical_crossentropy(y_true: Any, y_pred: Any, from_logits: bool = False) -> Tensor:
    """Cross entropy of exclusive classes given as vectors; `y_pred` holds probabilities, or logits."""
    return tensor_functions.categorical_crossentropy(y_true, y_pred, from_logits)


def sparse_categorical_crossentropy(y_true: Any, y_pred: Any, from_logits: bool = False) -> Tensor:
    """Cross entropy of exclusive classes given by their numbers; `y_pred` holds probabilities, or logits."""
    return tensor_functions.sparse_categorical_crossentropy(y_true, y_pred, from_logits)


class Loss(Described):
    """A loss as an object: the mean over examples of a function of this module.

    Args:
        function: The function.
        **settings: Its further arguments.
    """

    def __init__(self, function: Callable[..., Tensor], **settings: Any) -> None:
        self.function = function
        self.settings = settings
        self.name = function.__name__

    def per_example(self, y_true: Any, y_pred: Any) -> Tensor:
        """The loss of each example."""
        return self.function(y_true, y_pred, **self.settings)

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Tensor:
        """The mean loss, each example counting as `sample_weight` says."""
        losses = self.per_example(y_true, y_pred)
        if sample_weight is not None:
            losses = losses * array_ops.cast(sample_weight, losses.dtype)
        return math_ops.reduce_mean(losses)


class MeanSquaredError(Loss):
    """The mean of `mean_squared_error`."""

    def __init__(self) -> None:
        super().__init__(mean_squared_error)


class MeanAbsoluteError(Loss):
    """The mean of `mean_absolute_error`."""

    def __init__(self) -> None:
        super().__init__(mean_absolute_error)


class Huber(Loss):
    """The mean of `huber`."""

    def __init__(self, delta: float = 1.0) -> None:
        super().__init__(huber, delta=delta)


class BinaryCrossentropy(Loss):
    """The mean of `binary_crossentropy`."""

    def __init__(self, from_logits: bool = False) -> None:
        super().__init__(binary_crossentropy, from_logits=from_logits)


class CategoricalCrossentropy(Loss):
    """The mean of `categorical_crossentropy`."""

    def __init__(self, from_logits: bool = False) -> None:
        super().__init__(categorical_crossentropy, from_logits=from_logits)


class SparseCategoricalCrossentropy(Loss):
    """The mean of `sparse_categorical_crossentropy`."""

    def __init__(self, from_logits: bool = False) -> None:
        super().__init__(sparse_categorical_crossentropy, from_logits=from_logits)


mse = MSE = mean_squared_error
mae = MAE = mean_absolute_error
mape = MAPE = mean_absolute_percentage_error
msle = MSLE = mean_squared_logarithmic_error
kld = KLD = kullback_leibler_divergence

_BY_NAME: Final[dict[str, Callable[..., Tensor]]] = {
    function.__name__: function
    for function in (
        binary_crossentropy,
        categorical_crossentropy,
        categorical_hinge,
        cosine_proximity,
        hinge,
        huber,
        kullback_leibler_divergence,
        logcosh,
        mean_absolute_error,
        mean_absolute_percentage_error,
        mean_squared_error,
        mean_squared_logarithmic_error,
        poisson,
        sparse_categorical_crossentropy,
        squared_hinge,
    )
} | {"mse": mse, "mae": mae, "mape": mape, "msle": msle, "kld": kld}


def get(identifier: Any) -> Any:
    """A loss by name; a function or object as it is."""
    if callable(identifier):
        return identifier
    if identifier not in _BY_NAME:
        raise InvalidArgumentError(f"there is no loss {identifier!r}; there are {', '.join(sorted(_BY_NAME))}")
    return _BY_NAME[identifier]
