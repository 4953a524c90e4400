"""Metrics of Keras models: functions from targets and predictions to a value for each example, and by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tfray.errors import InvalidArgumentError
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor
from tfray.keras import losses
from tfray.ops.arrays import array_ops
from tfray.ops.math import math_ops, search_ops

# fmt: off
__all__ = [
    "binary_accuracy", "categorical_accuracy", "get", "sparse_categorical_accuracy", "top_k_categorical_accuracy",
]
# fmt: on


def binary_accuracy(y_true: Any, y_pred: Any, threshold: float = 0.5) -> Tensor:
    """How often predictions are on the right side of a threshold, along the last dimension."""
    y_pred = convert_to_tensor(y_pred)
    says_yes = array_ops.cast(math_ops.greater(y_pred, threshold), y_pred.dtype)
    hits = math_ops.equal(array_ops.cast(y_true, y_pred.dtype), says_yes)
    return math_ops.reduce_mean(array_ops.to_float(hits), -1)


def categorical_accuracy(y_true: Any, y_pred: Any) -> Tensor:
    """Whether the class with the highest prediction is the one of the target vector."""
    return array_ops.to_float(math_ops.equal(search_ops.argmax(y_true, -1), search_ops.argmax(y_pred, -1)))


def sparse_categorical_accuracy(y_true: Any, y_pred: Any) -> Tensor:
    """Whether the class with the highest prediction is the target."""
    y_pred = convert_to_tensor(y_pred)
    classes = array_ops.to_int64(y_true)
    if classes.shape.rank is not None and classes.shape.rank == y_pred.shape.rank:
        classes = array_ops.squeeze(classes, [-1])
    return array_ops.to_float(math_ops.equal(classes, search_ops.argmax(y_pred, -1)))


def top_k_categorical_accuracy(y_true: Any, y_pred: Any, k: int = 5) -> Tensor:
    """Whether the class of the target vector is among the k highest predictions."""
    return array_ops.to_float(search_ops.in_top_k(y_pred, search_ops.argmax(y_true, -1), k))


_BY_NAME: Final[dict[str, Callable[..., Tensor]]] = {
    "binary_accuracy": binary_accuracy,
    "categorical_accuracy": categorical_accuracy,
    "sparse_categorical_accuracy": sparse_categorical_accuracy,
    "top_k_categorical_accuracy": top_k_categorical_accuracy,
}


def get(identifier: Any, loss: Any = None, output: Tensor | None = None) -> Any:
    """A metric by name. ``accuracy`` stands for the kind of accuracy that fits the loss and the output.

    Args:
        identifier: The name, or a function.
        loss: The loss of the output.
        output: The output.

    Raises:
        InvalidArgumentError: There is none of that name.
    """
    if callable(identifier):
        return identifier
    if isinstance(identifier, str) and identifier in ("accuracy", "acc"):
        return _accuracy_for(loss, output)
    if identifier in _BY_NAME:
        return _BY_NAME[identifier]
    try:
        return losses.get(identifier)
    except InvalidArgumentError:
        names = ", ".join(["accuracy", *sorted(_BY_NAME)])
        raise InvalidArgumentError(f"there is no metric {identifier!r}; there are {names}, and the losses") from None


def name_of(metric: Any, is_weighted: bool = False) -> str:
    """The name of a metric in logs, as TensorFlow 1 has it: that of ``accuracy`` is ``acc``, that of ``mae`` is
    ``mean_absolute_error``, and metrics in which examples have weights begin with ``weighted_``.
    """
    prefix = "weighted_" if is_weighted else ""
    if isinstance(metric, str) and metric in ("accuracy", "acc"):
        return f"{prefix}acc"
    found = get(metric)
    return prefix + str(getattr(found, "name", None) or getattr(found, "__name__", type(found).__name__))


def _accuracy_for(loss: Any, output: Tensor | None) -> Callable[..., Tensor]:
    name = getattr(loss, "name", getattr(loss, "__name__", ""))
    if name == "sparse_categorical_crossentropy":
        return sparse_categorical_accuracy
    size = None if output is None or not output.shape.rank else output.shape.as_list()[-1]
    return binary_accuracy if name == "binary_crossentropy" or size == 1 else categorical_accuracy
