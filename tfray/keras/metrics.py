"""Metrics of Keras models: functions from targets and predictions to a value for each example, and by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tfray.errors import InvalidArgumentError
from tfray.framework.graph import Tensor
from tfray.keras import losses
from tfray.keras.losses import KLD as KLD
from tfray.keras.losses import MAE as MAE
from tfray.keras.losses import MAPE as MAPE
from tfray.keras.losses import MSE as MSE
from tfray.keras.losses import MSLE as MSLE
from tfray.keras.losses import binary_crossentropy as binary_crossentropy
from tfray.keras.losses import categorical_crossentropy as categorical_crossentropy
from tfray.keras.losses import cosine as cosine
from tfray.keras.losses import cosine_proximity as cosine_proximity
from tfray.keras.losses import hinge as hinge
from tfray.keras.losses import kld as kld
from tfray.keras.losses import kullback_leibler_divergence as kullback_leibler_divergence
from tfray.keras.losses import mae as mae
from tfray.keras.losses import mape as mape
from tfray.keras.losses import mean_absolute_error as mean_absolute_error
from tfray.keras.losses import mean_absolute_percentage_error as mean_absolute_percentage_error
from tfray.keras.losses import mean_squared_error as mean_squared_error
from tfray.keras.losses import mean_squared_logarithmic_error as mean_squared_logarithmic_error
from tfray.keras.losses import mse as mse
from tfray.keras.losses import msle as msle
from tfray.keras.losses import poisson as poisson
from tfray.keras.losses import sparse_categorical_crossentropy as sparse_categorical_crossentropy
from tfray.keras.losses import squared_hinge as squared_hinge
from tfray.keras.running_metrics import AUC as AUC
from tfray.keras.running_metrics import Accuracy as Accuracy
from tfray.keras.running_metrics import BinaryAccuracy as BinaryAccuracy
from tfray.keras.running_metrics import BinaryCrossentropy as BinaryCrossentropy
from tfray.keras.running_metrics import CategoricalAccuracy as CategoricalAccuracy
from tfray.keras.running_metrics import CategoricalCrossentropy as CategoricalCrossentropy
from tfray.keras.running_metrics import CategoricalHinge as CategoricalHinge
from tfray.keras.running_metrics import CosineSimilarity as CosineSimilarity
from tfray.keras.running_metrics import FalseNegatives as FalseNegatives
from tfray.keras.running_metrics import FalsePositives as FalsePositives
from tfray.keras.running_metrics import Hinge as Hinge
from tfray.keras.running_metrics import KLDivergence as KLDivergence
from tfray.keras.running_metrics import LogCoshError as LogCoshError
from tfray.keras.running_metrics import Mean as Mean
from tfray.keras.running_metrics import MeanAbsoluteError as MeanAbsoluteError
from tfray.keras.running_metrics import MeanAbsolutePercentageError as MeanAbsolutePercentageError
from tfray.keras.running_metrics import MeanIoU as MeanIoU
from tfray.keras.running_metrics import MeanMetricWrapper as MeanMetricWrapper
from tfray.keras.running_metrics import MeanRelativeError as MeanRelativeError
from tfray.keras.running_metrics import MeanSquaredError as MeanSquaredError
from tfray.keras.running_metrics import MeanSquaredLogarithmicError as MeanSquaredLogarithmicError
from tfray.keras.running_metrics import MeanTensor as MeanTensor
from tfray.keras.running_metrics import Metric as Metric
from tfray.keras.running_metrics import Poisson as Poisson
from tfray.keras.running_metrics import Precision as Precision
from tfray.keras.running_metrics import Recall as Recall
from tfray.keras.running_metrics import RootMeanSquaredError as RootMeanSquaredError
from tfray.keras.running_metrics import SensitivityAtSpecificity as SensitivityAtSpecificity
from tfray.keras.running_metrics import SparseCategoricalAccuracy as SparseCategoricalAccuracy
from tfray.keras.running_metrics import SparseCategoricalCrossentropy as SparseCategoricalCrossentropy
from tfray.keras.running_metrics import SparseTopKCategoricalAccuracy as SparseTopKCategoricalAccuracy
from tfray.keras.running_metrics import SpecificityAtSensitivity as SpecificityAtSensitivity
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
from tfray.library.layers.descriptions import deserializer, unknown
from tfray.library.layers.descriptions import serialize as serialize

# fmt: off
__all__ = [
    "AUC", "KLD", "MAE", "MAPE", "MSE", "MSLE", "Accuracy", "BinaryAccuracy", "BinaryCrossentropy",
    "CategoricalAccuracy", "CategoricalCrossentropy", "CategoricalHinge", "CosineSimilarity", "FalseNegatives",
    "FalsePositives", "Hinge", "KLDivergence", "LogCoshError", "Mean", "MeanAbsoluteError",
    "MeanAbsolutePercentageError", "MeanIoU", "MeanRelativeError", "MeanSquaredError", "MeanSquaredLogarithmicError",
    "MeanTensor", "Metric", "Poisson", "Precision", "Recall", "RootMeanSquaredError", "SensitivityAtSpecificity",
    "SparseCategoricalAccuracy", "SparseCategoricalCrossentropy", "SparseTopKCategoricalAccuracy",
    "SpecificityAtSensitivity", "SquaredHinge", "Sum", "TopKCategoricalAccuracy", "TrueNegatives", "TruePositives",
    "binary_accuracy", "binary_crossentropy", "categorical_accuracy", "categorical_crossentropy", "cosine",
    "cosine_proximity", "deserialize", "get", "hinge", "kld", "kullback_leibler_divergence", "mae", "mape",
    "mean_absolute_error", "mean_absolute_percentage_error", "mean_squared_error", "mean_squared_logarithmic_error",
    "mse", "msle", "poisson", "serialize", "sparse_categorical_accuracy", "sparse_categorical_crossentropy",
    "sparse_top_k_categorical_accuracy", "squared_hinge", "top_k_categorical_accuracy",
]
# fmt: on


_BY_NAME: Final[dict[str, Callable[..., Tensor]]] = {
    "binary_accuracy": binary_accuracy,
    "categorical_accuracy": categorical_accuracy,
    "sparse_categorical_accuracy": sparse_categorical_accuracy,
    "sparse_top_k_categorical_accuracy": sparse_top_k_categorical_accuracy,
    "top_k_categorical_accuracy": top_k_categorical_accuracy,
}


_FITTING: Final[dict[str, dict[str, Callable[..., Tensor]]]] = {
    "acc": {"binary": binary_accuracy, "sparse": sparse_categorical_accuracy, "": categorical_accuracy},
    "ce": {"binary": binary_crossentropy, "sparse": sparse_categorical_crossentropy, "": categorical_crossentropy},
}
"""What a name stands for that leaves the kind to the loss and the output."""

_SHORT: Final = {"accuracy": "acc", "acc": "acc", "crossentropy": "ce", "ce": "ce"}


def get(identifier: Any, loss: Any = None, output: Tensor | None = None) -> Any:
    """A metric by name. ``accuracy`` and ``crossentropy`` stand for the kind that fits the loss and the output.

    Args:
        identifier: The name, or a function.
        loss: The loss of the output.
        output: The output.

    Raises:
        InvalidArgumentError: There is none of that name.
    """
    if callable(identifier):
        return identifier
    if isinstance(identifier, str) and identifier in _SHORT:
        return _FITTING[_SHORT[identifier]][_kind_for(loss, output)]
    if identifier in _BY_NAME:
        return _BY_NAME[identifier]
    try:
        return losses.get(identifier)
    except InvalidArgumentError:
        names = ", ".join(["accuracy", "crossentropy", *sorted(_BY_NAME)])
        raise InvalidArgumentError(
            f"{unknown('metric function', identifier)}; there are {names}, and the losses"
        ) from None


def name_of(metric: Any, is_weighted: bool = False) -> str:
    """The name of a metric in logs, as TensorFlow 1 has it: that of ``accuracy`` is ``acc``, that of ``mae`` is
    ``mean_absolute_error``, and metrics in which examples have weights begin with ``weighted_``.
    """
    prefix = "weighted_" if is_weighted else ""
    if isinstance(metric, str) and metric in _SHORT:
        return prefix + _SHORT[metric]
    found = get(metric)
    return prefix + str(getattr(found, "name", None) or getattr(found, "__name__", type(found).__name__))


def _kind_for(loss: Any, output: Tensor | None) -> str:
    name = getattr(loss, "name", getattr(loss, "__name__", ""))
    size = None if output is None or not output.shape.rank else output.shape.as_list()[-1]
    if size == 1 or name == "binary_crossentropy":
        return "binary"
    return "sparse" if name == "sparse_categorical_crossentropy" else ""


deserialize = deserializer(get)
