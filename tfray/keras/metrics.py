"""Metrics of Keras models: functions from targets and predictions to a value for each example, and by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tfray.errors import InvalidArgumentError
from tfray.framework.graph import Tensor
from tfray.keras import losses
from tfray.keras.running_metrics import AUC as AUC
from tfray.keras.running_metrics import Accuracy as Accuracy
from tfray.keras.running_metrics import BinaryAccuracy as BinaryAccuracy
from tfray.keras.running_metrics import BinaryCrossentropy as BinaryCrossentropy
from tfray.keras.running_metrics import CategoricalAccuracy as CategoricalAccuracy
from tfray.keras.running_metrics import CategoricalCrossentropy as CategoricalCrossentropy
from tfray.keras.running_metrics import CategoricalHinge as CategoricalHinge
from tfray.keras.running_metrics import FalseNegatives as FalseNegatives
from tfray.keras.running_metrics import FalsePositives as FalsePositives
from tfray.keras.running_metrics import Hinge as Hinge
from tfray.keras.running_metrics import Mean as Mean
from tfray.keras.running_metrics import MeanAbsoluteError as MeanAbsoluteError
from tfray.keras.running_metrics import MeanAbsolutePercentageError as MeanAbsolutePercentageError
from tfray.keras.running_metrics import MeanSquaredError as MeanSquaredError
from tfray.keras.running_metrics import MeanSquaredLogarithmicError as MeanSquaredLogarithmicError
from tfray.keras.running_metrics import Metric as Metric
from tfray.keras.running_metrics import Poisson as Poisson
from tfray.keras.running_metrics import Precision as Precision
from tfray.keras.running_metrics import Recall as Recall
from tfray.keras.running_metrics import RootMeanSquaredError as RootMeanSquaredError
from tfray.keras.running_metrics import SparseCategoricalAccuracy as SparseCategoricalAccuracy
from tfray.keras.running_metrics import SparseCategoricalCrossentropy as SparseCategoricalCrossentropy
from tfray.keras.running_metrics import SparseTopKCategoricalAccuracy as SparseTopKCategoricalAccuracy
from tfray.keras.running_metrics import SquaredHinge as SquaredHinge
from tfray.keras.running_metrics import Sum as Sum
from tfray.keras.running_metrics import TopKCategoricalAccuracy as TopKCategoricalAccuracy
from tfray.keras.running_metrics import TrueNegatives as TrueNegatives
from tfray.keras.running_metrics import TruePositives as TruePositives
from tfray.keras.running_metrics import binary_accuracy as binary_accuracy
from tfray.keras.running_metrics import categorical_accuracy as categorical_accuracy
from tfray.keras.running_metrics import sparse_categorical_accuracy as sparse_categorical_accuracy
from tfray.keras.running_metrics import sparse_top_k_categorical_accuracy as sparse_top_k_categorical_accuracy
from tfray.keras.running_metrics import top_k_categorical_accuracy as top_k_categorical_accuracy
from tfray.library.layers.descriptions import deserializer
from tfray.library.layers.descriptions import serialize as serialize

# fmt: off
__all__ = [
    "AUC", "Accuracy", "BinaryAccuracy", "BinaryCrossentropy", "CategoricalAccuracy", "CategoricalCrossentropy",
    "CategoricalHinge", "FalseNegatives", "FalsePositives", "Hinge", "Mean", "MeanAbsoluteError",
    "MeanAbsolutePercentageError", "MeanSquaredError", "MeanSquaredLogarithmicError", "Metric", "Poisson",
    "Precision", "Recall", "RootMeanSquaredError", "SparseCategoricalAccuracy", "SparseCategoricalCrossentropy",
    "SparseTopKCategoricalAccuracy", "SquaredHinge", "Sum", "TopKCategoricalAccuracy", "TrueNegatives",
    "TruePositives", "binary_accuracy", "categorical_accuracy", "deserialize", "get", "serialize",
    "sparse_categorical_accuracy", "sparse_top_k_categorical_accuracy", "top_k_categorical_accuracy",
]
# fmt: on


_BY_NAME: Final[dict[str, Callable[..., Tensor]]] = {
    "binary_accuracy": binary_accuracy,
    "categorical_accuracy": categorical_accuracy,
    "sparse_categorical_accuracy": sparse_categorical_accuracy,
    "sparse_top_k_categorical_accuracy": sparse_top_k_categorical_accuracy,
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


deserialize = deserializer(get)
