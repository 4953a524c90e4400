"""``tf.contrib.metrics``: the metrics of ``tf.metrics`` with their older names and order, predictions first."""

from __future__ import annotations

from typing import Any

from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor
from tfray.library.metrics.metric_variables import Metric
from tfray.library.namespaces import metrics
from tfray.ops.arrays import array_ops
from tfray.ops.math import math_ops

# fmt: off
__all__ = [
    "accuracy", "aggregate_metric_map", "aggregate_metrics", "streaming_accuracy", "streaming_auc", "streaming_mean",
    "streaming_mean_absolute_error", "streaming_mean_iou", "streaming_mean_squared_error", "streaming_precision",
    "streaming_recall", "streaming_root_mean_squared_error",
]
# fmt: on


def accuracy(predictions: Any, labels: Any, weights: Any = None, name: str | None = None) -> Tensor:
    """How often predictions equal labels, in this batch alone.

    Args:
        predictions: Any shape and dtype.
        labels: The same shape and dtype.
        weights: What each prediction counts, of a shape that broadcasts to theirs; 1 when None.
        name: Name of the operation.

    Returns:
        A float32 scalar.
    """
    hits = array_ops.to_float(math_ops.equal(predictions, convert_to_tensor(labels)))
    if weights is None:
        return math_ops.reduce_mean(hits, name=name)
    numbers = array_ops.ones_like(hits) * array_ops.to_float(weights)
    return math_ops.divide(math_ops.reduce_sum(hits * numbers), math_ops.reduce_sum(numbers), name=name)


def streaming_mean(values: Any, *args: Any, **kwargs: Any) -> Metric:
    """As `tf.metrics.mean`, with the same shapes."""
    return metrics.mean(values, *args, **kwargs)


def streaming_accuracy(predictions: Any, labels: Any, *args: Any, **kwargs: Any) -> Metric:
    """As `tf.metrics.accuracy`, with the same shapes; the predictions come first."""
    return metrics.accuracy(labels, predictions, *args, **kwargs)


def streaming_auc(predictions: Any, labels: Any, *args: Any, **kwargs: Any) -> Metric:
    """As `tf.metrics.auc`, with the same shapes; the predictions come first."""
    return metrics.auc(labels, predictions, *args, **kwargs)


def streaming_precision(predictions: Any, labels: Any, *args: Any, **kwargs: Any) -> Metric:
    """As `tf.metrics.precision`, with the same shapes; the predictions come first."""
    return metrics.precision(labels, predictions, *args, **kwargs)


def streaming_recall(predictions: Any, labels: Any, *args: Any, **kwargs: Any) -> Metric:
    """As `tf.metrics.recall`, with the same shapes; the predictions come first."""
    return metrics.recall(labels, predictions, *args, **kwargs)


def streaming_mean_absolute_error(predictions: Any, labels: Any, *args: Any, **kwargs: Any) -> Metric:
    """As `tf.metrics.mean_absolute_error`, with the same shapes; the predictions come first."""
    return metrics.mean_absolute_error(labels, predictions, *args, **kwargs)


def streaming_mean_squared_error(predictions: Any, labels: Any, *args: Any, **kwargs: Any) -> Metric:
    """As `tf.metrics.mean_squared_error`, with the same shapes; the predictions come first."""
    return metrics.mean_squared_error(labels, predictions, *args, **kwargs)


def streaming_root_mean_squared_error(predictions: Any, labels: Any, *args: Any, **kwargs: Any) -> Metric:
    """As `tf.metrics.root_mean_squared_error`, with the same shapes; the predictions come first."""
    return metrics.root_mean_squared_error(labels, predictions, *args, **kwargs)


def streaming_mean_iou(predictions: Any, labels: Any, *args: Any, **kwargs: Any) -> Metric:
    """As `tf.metrics.mean_iou`, with the same shapes; the predictions come first."""
    return metrics.mean_iou(labels, predictions, *args, **kwargs)


def aggregate_metrics(*value_update_tuples: Any) -> tuple[list[Any], list[Any]]:
    """The values and the updates of several metrics, of the shapes that they have."""
    values, updates = zip(*value_update_tuples, strict=True)
    return list(values), list(updates)


def aggregate_metric_map(names_to_tuples: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The values and the updates of several metrics, both by name, of the shapes that they have."""
    return (
        {name: metric[0] for name, metric in names_to_tuples.items()},
        {name: metric[1] for name, metric in names_to_tuples.items()},
    )
