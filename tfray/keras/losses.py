"""Losses of Keras models: functions from targets and predictions to a loss for each example, and by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor, get_default_graph
from tfray.keras import tensor_functions
from tfray.keras.tensor_functions import epsilon
from tfray.library.layers.descriptions import Described, deserializer, named_object, restored
from tfray.library.layers.descriptions import serialize as serialize
from tfray.ops.arrays import array_ops
from tfray.ops.math import math_ops
from tfray.ops.nn import activation_ops, normalization_ops

# fmt: off
__all__ = [
    "KLD", "MAE", "MAPE", "MSE", "MSLE", "BinaryCrossentropy", "CategoricalCrossentropy", "CategoricalHinge",
    "CosineSimilarity", "Hinge", "Huber", "KLDivergence", "LogCosh", "Loss", "MeanAbsoluteError",
    "MeanAbsolutePercentageError", "MeanSquaredError", "MeanSquaredLogarithmicError", "Poisson", "Reduction",
    "SparseCategoricalCrossentropy", "SquaredHinge", "binary_crossentropy", "categorical_crossentropy",
    "categorical_hinge", "cosine", "cosine_proximity", "cosine_similarity", "deserialize", "get", "hinge", "huber",
    "kld", "kullback_leibler_divergence", "logcosh", "mae", "mape", "mean_absolute_error",
    "mean_absolute_percentage_error", "mean_squared_error", "mean_squared_logarithmic_error", "mse", "msle",
    "poisson", "serialize", "sparse_categorical_crossentropy", "squared_hinge",
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


def cosine_proximity(y_true: Any, y_pred: Any, axis: int = -1) -> Tensor:
    """The cosine of the angle between the vectors along an axis: 1 for the same direction, -1 for opposite ones.

    It has this sign in TensorFlow 1.15, and the opposite one in versions before and after. As a loss it turns vectors
    away from each other; minus this function brings them together.
    """
    y_true, y_pred = (normalization_ops.l2_normalize(value, axis) for value in _pair(y_true, y_pred))
    return math_ops.reduce_sum(y_true * y_pred, axis)


def binary_crossentropy(y_true: Any, y_pred: Any, from_logits: bool = False, label_smoothing: Any = 0) -> Tensor:
    """The mean cross entropy of independent classes.

    Args:
        y_true: The targets, 0 and 1.
        y_pred: Probabilities, or logits.
        from_logits: Whether they are logits.
        label_smoothing: How far targets are moved towards 0.5 first: a number from 0, not at all, to 1.
    """
    y_true, y_pred = _pair(y_true, y_pred)
    smoothed = _smoothed(y_true, label_smoothing, 0.5)
    return _mean(tensor_functions.binary_crossentropy(smoothed, y_pred, from_logits))


def categorical_crossentropy(y_true: Any, y_pred: Any, from_logits: bool = False, label_smoothing: Any = 0) -> Tensor:
    """Cross entropy of exclusive classes given as vectors.

    Args:
        y_true: The vectors, with a 1 for the right class.
        y_pred: Probabilities, or logits.
        from_logits: Whether they are logits.
        label_smoothing: How far targets are moved towards equal ones first: a number from 0, not at all, to 1.
    """
    y_true, y_pred = _pair(y_true, y_pred)
    smoothed = _smoothed(y_true, label_smoothing, 1 / array_ops.cast(array_ops.shape(y_true)[-1], y_true.dtype))
    return tensor_functions.categorical_crossentropy(smoothed, y_pred, from_logits)


def _smoothed(targets: Tensor, share: Any, middle: Any) -> Tensor:
    if isinstance(share, (int, float)) and not share:
        return targets
    share = array_ops.cast(share, targets.dtype)
    return targets * (1.0 - share) + share * middle


def sparse_categorical_crossentropy(y_true: Any, y_pred: Any, from_logits: bool = False, axis: int = -1) -> Tensor:
    """Cross entropy of exclusive classes given by their numbers.

    Args:
        y_true: The numbers.
        y_pred: Probabilities, or logits.
        from_logits: Whether they are logits.
        axis: The axis of the classes.
    """
    return tensor_functions.sparse_categorical_crossentropy(y_true, y_pred, from_logits, axis)


class Reduction:
    """What becomes of the losses of examples: ``AUTO``, their mean, ``NONE``, ``SUM`` or ``SUM_OVER_BATCH_SIZE``."""

    AUTO: Final = "auto"
    NONE: Final = "none"
    SUM: Final = "sum"
    SUM_OVER_BATCH_SIZE: Final = "sum_over_batch_size"

    @classmethod
    def all(cls) -> tuple[str, ...]:
        """All of them."""
        return cls.AUTO, cls.NONE, cls.SUM, cls.SUM_OVER_BATCH_SIZE

    @classmethod
    def validate(cls, key: str) -> None:
        """Raises `ValueError` for anything else."""
        if key not in cls.all():
            raise ValueError(f"Invalid Reduction Key {key}.")


class Loss(Described):
    """A loss as an object. Derived classes define ``call(y_true, y_pred)``, which gives the loss of each example.

    Args:
        reduction: What becomes of these: see `Reduction`.
        name: Name.

    Raises:
        ValueError: There is no such reduction.
    """

    def __init__(self, reduction: str = Reduction.AUTO, name: str | None = None) -> None:
        Reduction.validate(reduction)
        self.reduction, self.name = reduction, name

    def get_config(self) -> dict[str, Any]:
        """The arguments with which it was made, and its name."""
        return {**super().get_config(), **({"name": self.name} if self._takes("name") else {})}

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """The loss of each example."""
        raise NotImplementedError("Must be implemented in subclasses.")

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Tensor:
        """The losses, each times its weight, reduced."""
        scope = (self.name or type(self).__name__).strip("<>")
        with get_default_graph().name_scope(scope):
            losses = self.call(convert_to_tensor(y_true), convert_to_tensor(y_pred))
            return self.weighted(convert_to_tensor(losses), sample_weight)

    def weighted(self, losses: Tensor, sample_weight: Any = None) -> Tensor:
        """The losses of examples, each times its weight, as the reduction says."""
        if sample_weight is not None:
            losses = losses * like_losses(array_ops.cast(sample_weight, losses.dtype), losses)
        return self.reduced(losses)

    def reduced(self, losses: Tensor) -> Tensor:
        """The losses of examples as the reduction says."""
        if self.reduction == Reduction.NONE:
            return losses
        return math_ops.reduce_sum(losses) if self.reduction == Reduction.SUM else math_ops.reduce_mean(losses)


def like_losses(weights: Tensor, losses: Tensor) -> Tensor:
    """Weights with dimensions of size 1 at their end, or without one, so that they have the rank of losses."""
    own, rank = weights.shape.rank, losses.shape.rank
    if own is None or rank is None:
        return weights
    if own == rank + 1:
        return array_ops.squeeze(weights, [-1])
    for _ in range(rank - own if own else 0):
        weights = array_ops.expand_dims(weights, -1)
    return weights


class _OfFunction(Loss):
    """A loss whose losses of examples a function of this module gives."""

    def __init__(
        self, fn: Callable[..., Tensor], reduction: str = Reduction.AUTO, name: str | None = None, **settings: Any
    ) -> None:
        super().__init__(reduction, name or fn.__name__)
        self.function, self.settings = fn, settings

    def call(self, y_true: Any, y_pred: Any) -> Tensor:
        return self.function(y_true, y_pred, **self.settings)


def _class_of(name: str, function: Callable[..., Tensor]) -> Any:
    """The class of a loss without arguments of its own."""

    def __init__(self: Any, reduction: str = Reduction.AUTO, name: str | None = None) -> None:
        _OfFunction.__init__(self, function, reduction, name)

    words = f"The mean of `{function.__name__}`; arguments as for `Loss`."
    return type(name, (_OfFunction,), {"__init__": __init__, "__doc__": words, "__module__": __name__})


MeanSquaredError = _class_of("MeanSquaredError", mean_squared_error)
MeanAbsoluteError = _class_of("MeanAbsoluteError", mean_absolute_error)
MeanAbsolutePercentageError = _class_of("MeanAbsolutePercentageError", mean_absolute_percentage_error)
MeanSquaredLogarithmicError = _class_of("MeanSquaredLogarithmicError", mean_squared_logarithmic_error)
Hinge = _class_of("Hinge", hinge)
SquaredHinge = _class_of("SquaredHinge", squared_hinge)
CategoricalHinge = _class_of("CategoricalHinge", categorical_hinge)
Poisson = _class_of("Poisson", poisson)
LogCosh = _class_of("LogCosh", logcosh)
KLDivergence = _class_of("KLDivergence", kullback_leibler_divergence)


class CosineSimilarity(_OfFunction):
    """The mean of `cosine_similarity` along an axis, which has TensorFlow 1.15's sign."""

    def __init__(self, axis: int = -1, reduction: str = Reduction.AUTO, name: str | None = "cosine_similarity") -> None:
        super().__init__(cosine_proximity, reduction, name, axis=axis)


class Huber(_OfFunction):
    """The mean of `huber`."""

    def __init__(self, delta: float = 1.0, reduction: str = Reduction.AUTO, name: str | None = "huber_loss") -> None:
        super().__init__(huber, reduction, name, delta=delta)


class BinaryCrossentropy(_OfFunction):
    """The mean of `binary_crossentropy`."""

    def __init__(
        self,
        from_logits: bool = False,
        label_smoothing: float = 0,
        reduction: str = Reduction.AUTO,
        name: str | None = None,
    ) -> None:
        super().__init__(binary_crossentropy, reduction, name, from_logits=from_logits, label_smoothing=label_smoothing)


class CategoricalCrossentropy(_OfFunction):
    """The mean of `categorical_crossentropy`."""

    def __init__(
        self,
        from_logits: bool = False,
        label_smoothing: float = 0,
        reduction: str = Reduction.AUTO,
        name: str | None = None,
    ) -> None:
        super().__init__(
            categorical_crossentropy, reduction, name, from_logits=from_logits, label_smoothing=label_smoothing
        )


class SparseCategoricalCrossentropy(_OfFunction):
    """The mean of `sparse_categorical_crossentropy`."""

    def __init__(self, from_logits: bool = False, reduction: str = Reduction.AUTO, name: str | None = None) -> None:
        super().__init__(sparse_categorical_crossentropy, reduction, name, from_logits=from_logits)


cosine = cosine_similarity = cosine_proximity
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
} | {
    "mse": mse,
    "mae": mae,
    "mape": mape,
    "msle": msle,
    "kld": kld,
    "MSE": mse,
    "MAE": mae,
    "MAPE": mape,
    "MSLE": msle,
    "KLD": kld,
    "cosine": cosine_proximity,
    "cosine_similarity": cosine_proximity,
}


def get(identifier: Any) -> Any:
    """A loss by name, or of its description; a function or object as it is, and None for None.

    Raises:
        InvalidArgumentError: There is none. It is also a `ValueError`.
    """
    if callable(identifier) or identifier is None:
        return identifier
    if isinstance(identifier, Mapping):
        return restored(identifier)
    return named_object(identifier, {**_CLASSES, **_BY_NAME}, "loss function")


_CLASSES: Final[dict[str, Any]] = {
    name: found for name, found in list(globals().items()) if isinstance(found, type) and issubclass(found, _OfFunction)
}


deserialize = deserializer(get)
