"""Metrics of random forests by name: TensorFlow's ``tensorflow.contrib.tensor_forest.client.eval_metrics``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from tfray.framework import dtypes
from tfray.framework.graph import Tensor
from tfray.library.layers import losses
from tfray.library.metrics import binary_metrics, mean_metrics
from tfray.ops.arrays import array_ops
from tfray.ops.arrays.construction_ops import one_hot
from tfray.ops.math import math_ops
from tfray.ops.math.search_ops import in_top_k

__all__ = ["FEATURE_IMPORTANCE_NAME", "INFERENCE_PRED_NAME", "INFERENCE_PROB_NAME", "get_metric", "get_prediction_key"]

INFERENCE_PROB_NAME: Final = "probabilities"
INFERENCE_PRED_NAME: Final = "classes"
FEATURE_IMPORTANCE_NAME: Final = "global_feature_importance"

_THRESHOLDS: Final = tuple(np.arange(0, 1, 0.01).tolist())


def _classes(targets: Any) -> Tensor:
    targets = array_ops.cast(targets, dtypes.int32)
    return array_ops.squeeze(targets, [1]) if targets.shape.rank == 2 else targets


def _hot(probabilities: Tensor, targets: Any) -> Tensor:
    return one_hot(_classes(targets), array_ops.shape(probabilities)[1])


def _top_5(probabilities: Any, targets: Any) -> Any:
    return mean_metrics.mean(in_top_k(probabilities, _classes(targets), 5))


def _r2(probabilities: Any, targets: Any, weights: Any = None) -> Any:
    targets = array_ops.cast(targets, dtypes.float32)
    if targets.shape.rank == 1:
        targets = array_ops.expand_dims(targets, 1)
    away = math_ops.reduce_sum(math_ops.square(targets - math_ops.reduce_mean(targets, 0)), 0)
    wrong = math_ops.reduce_sum(math_ops.square(targets - probabilities), 0)
    return mean_metrics.mean(1 - math_ops.reduce_sum(wrong / away), weights)


def _sigmoid_entropy(probabilities: Any, targets: Any, weights: Any = None) -> Any:
    return mean_metrics.mean(losses.sigmoid_cross_entropy(_hot(probabilities, targets), probabilities), weights)


def _softmax_entropy(probabilities: Any, targets: Any, weights: Any = None) -> Any:
    return mean_metrics.mean(losses.sparse_softmax_cross_entropy(_classes(targets), probabilities), weights)


def _log_loss(probabilities: Any, targets: Any, weights: Any = None) -> Any:
    return mean_metrics.mean(losses.log_loss(_hot(probabilities, targets), probabilities), weights)


def _accuracy(predictions: Any, targets: Any, weights: Any = None) -> Any:
    return mean_metrics.accuracy(targets, predictions, weights)


def _precision(predictions: Any, targets: Any, weights: Any = None) -> Any:
    return binary_metrics.precision(targets, predictions, weights)


def _recall(predictions: Any, targets: Any, weights: Any = None) -> Any:
    return binary_metrics.recall(targets, predictions, weights)


def _precision_at_thresholds(probabilities: Any, targets: Any, weights: Any = None) -> Any:
    return binary_metrics.precision_at_thresholds(targets, probabilities[:, 1:2], _THRESHOLDS, weights)


def _recall_at_thresholds(probabilities: Any, targets: Any, weights: Any = None) -> Any:
    return binary_metrics.recall_at_thresholds(targets, probabilities[:, 1:2], _THRESHOLDS, weights)


def _predictions(predictions: Any, targets: Any, **kwargs: Any) -> Any:
    return predictions


_METRICS: Final[Mapping[str, tuple[Callable[..., Any], str]]] = {
    "sigmoid_entropy": (_sigmoid_entropy, INFERENCE_PROB_NAME),
    "softmax_entropy": (_softmax_entropy, INFERENCE_PROB_NAME),
    "accuracy": (_accuracy, INFERENCE_PRED_NAME),
    "r2": (_r2, INFERENCE_PROB_NAME),
    "predictions": (_predictions, INFERENCE_PRED_NAME),
    "classification_log_loss": (_log_loss, INFERENCE_PROB_NAME),
    "precision": (_precision, INFERENCE_PRED_NAME),
    "precision_at_thresholds": (_precision_at_thresholds, INFERENCE_PROB_NAME),
    "recall": (_recall, INFERENCE_PRED_NAME),
    "recall_at_thresholds": (_recall_at_thresholds, INFERENCE_PROB_NAME),
    "top_5": (_top_5, INFERENCE_PROB_NAME),
}


def get_metric(metric_name: str) -> Callable[..., Any]:
    """A metric: a function of predictions, or probabilities, and of targets, ``[batch]`` or ``[batch, 1]``.

    Args:
        metric_name: Its name, such as ``"accuracy"``.

    Returns:
        The function. It returns a pair (value, update operation), as those of ``tf.metrics``.

    Raises:
        KeyError: There is no such metric.
    """
    return _METRICS[metric_name][0]


def get_prediction_key(metric_name: str) -> str:
    """The name of the prediction that a metric looks at.

    Args:
        metric_name: The metric's name.

    Raises:
        KeyError: There is no such metric.
    """
    return _METRICS[metric_name][1]
