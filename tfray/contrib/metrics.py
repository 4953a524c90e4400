"""``tf.contrib.metrics``: the metrics of ``tf.metrics`` with their older names and order, predictions first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor
from tfray.library.metrics import metric_variables as sums
from tfray.library.metrics.binary_metrics import counts_at_thresholds
from tfray.library.metrics.binary_metrics import f1_score as f1_score
from tfray.library.metrics.binary_metrics import precision_at_recall as precision_at_recall
from tfray.library.metrics.binary_metrics import recall_at_precision as recall_at_precision
from tfray.library.metrics.binary_metrics import streaming_curve_points as streaming_curve_points
from tfray.library.metrics.confusion import confusion_matrix as confusion_matrix
from tfray.library.metrics.covariance_metrics import cohen_kappa as cohen_kappa
from tfray.library.metrics.covariance_metrics import streaming_concat as streaming_concat
from tfray.library.metrics.covariance_metrics import streaming_covariance as streaming_covariance
from tfray.library.metrics.covariance_metrics import streaming_pearson_correlation as streaming_pearson_correlation
from tfray.library.metrics.exact_areas import auc_with_confidence_intervals as auc_with_confidence_intervals
from tfray.library.metrics.exact_areas import streaming_dynamic_auc as streaming_dynamic_auc
from tfray.library.metrics.histogram_metrics import auc_using_histogram as auc_using_histogram
from tfray.library.metrics.histogram_metrics import (
    precision_recall_at_equal_thresholds as precision_recall_at_equal_thresholds,
)
from tfray.library.metrics.metric_variables import Metric
from tfray.library.metrics.ranking_metrics import average_precision_at_top_k
from tfray.library.namespaces import metrics
from tfray.ops.arrays import array_ops
from tfray.ops.math import math_ops
from tfray.ops.math.search_ops import in_top_k
from tfray.ops.sparse.set_ops import set_difference as set_difference
from tfray.ops.sparse.set_ops import set_intersection as set_intersection
from tfray.ops.sparse.set_ops import set_size as set_size
from tfray.ops.sparse.set_ops import set_union as set_union

# fmt: off
__all__ = [
    "accuracy", "aggregate_metric_map", "aggregate_metrics", "auc_using_histogram", "auc_with_confidence_intervals",
    "cohen_kappa", "confusion_matrix", "count", "f1_score", "precision_at_recall",
    "precision_recall_at_equal_thresholds", "recall_at_precision", "set_difference", "set_intersection", "set_size",
    "set_union", "sparse_recall_at_top_k", "streaming_accuracy", "streaming_auc", "streaming_concat",
    "streaming_covariance", "streaming_curve_points", "streaming_dynamic_auc", "streaming_false_negative_rate",
    "streaming_false_negative_rate_at_thresholds", "streaming_false_negatives",
    "streaming_false_negatives_at_thresholds", "streaming_false_positive_rate",
    "streaming_false_positive_rate_at_thresholds", "streaming_false_positives",
    "streaming_false_positives_at_thresholds", "streaming_mean", "streaming_mean_absolute_error",
    "streaming_mean_cosine_distance", "streaming_mean_iou", "streaming_mean_relative_error",
    "streaming_mean_squared_error", "streaming_mean_tensor", "streaming_pearson_correlation",
    "streaming_percentage_less", "streaming_precision", "streaming_precision_at_thresholds", "streaming_recall",
    "streaming_recall_at_k", "streaming_recall_at_thresholds", "streaming_root_mean_squared_error",
    "streaming_sensitivity_at_specificity", "streaming_sparse_average_precision_at_k",
    "streaming_sparse_average_precision_at_top_k", "streaming_sparse_precision_at_k",
    "streaming_sparse_precision_at_top_k", "streaming_sparse_recall_at_k", "streaming_specificity_at_sensitivity",
    "streaming_true_negatives", "streaming_true_negatives_at_thresholds", "streaming_true_positives",
    "streaming_true_positives_at_thresholds",
]
# fmt: on


def accuracy(predictions: Any, labels: Any, weights: Any = None, name: str | None = None) -> Tensor:
    """How often predictions equal labels, in this batch alone.

    Args:
        predictions: Any shape, of integers, bools or strings.
        labels: The same shape and dtype.
        weights: What each prediction counts, of a shape that broadcasts to theirs; 1 when None.
        name: Name of the operation.

    Returns:
        A float32 scalar.

    Raises:
        ValueError: The dtype is another one, or the dtypes or shapes differ.
    """
    predictions, labels = convert_to_tensor(predictions), convert_to_tensor(labels)
    if not (labels.dtype.is_integer or labels.dtype in (dtypes.bool_, dtypes.string)):
        raise ValueError(f"Labels should have bool, integer, or string dtype, not {labels.dtype!r}")
    if labels.dtype != predictions.dtype:
        raise ValueError(
            f"Dtypes of predictions and labels should match. Given: {predictions.dtype!r}, {labels.dtype!r}"
        )
    labels.shape.assert_is_compatible_with(predictions.shape)
    hits = array_ops.to_float(math_ops.equal(predictions, labels))
    if weights is None:
        return math_ops.reduce_mean(hits, name=name)
    numbers = array_ops.ones_like(hits) * array_ops.to_float(weights)
    return math_ops.divide(math_ops.reduce_sum(hits * numbers), math_ops.reduce_sum(numbers), name=name)


def streaming_mean(values: Any, *args: Any, **kwargs: Any) -> Metric:
    """As `tf.metrics.mean`, with the same shapes."""
    return metrics.mean(values, *args, **kwargs)


def streaming_mean_tensor(values: Any, *args: Any, **kwargs: Any) -> Metric:
    """As `tf.metrics.mean_tensor`, with the same shapes."""
    return metrics.mean_tensor(values, *args, **kwargs)


def streaming_percentage_less(values: Any, threshold: float, *args: Any, **kwargs: Any) -> Metric:
    """As `tf.metrics.percentage_below`, with the same shapes."""
    return metrics.percentage_below(values, threshold, *args, **kwargs)


def count(
    values: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """How many values there were, or the sum of their weights.

    Args:
        values: Any shape.
        weights: What each value counts, a scalar, or a shape that broadcasts to that of the values; 1 when None.
        metrics_collections: As for `tf.metrics.mean`.
        updates_collections: Likewise.
        name: Name of the variable scope.

    Returns:
        The value and the update, float32 scalars.
    """
    with sums.metric_scope(name, "count"):
        values, total = convert_to_tensor(values), sums.metric_variable([], dtypes.float32, "count")
        if weights is None:
            number = array_ops.to_float(array_ops.size(values))
        else:
            number = math_ops.reduce_sum(sums.spread(sums.fitting_weights(weights, values), values))
        return sums.collected(total.value(), total.assign_add(number), metrics_collections, updates_collections)


def streaming_false_positive_rate(
    predictions: Any,
    labels: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """How many of the examples that are false are predicted to be true.

    Args:
        predictions: Any shape, converted to bool.
        labels: The same shape.
        weights: What each example counts, of a shape that broadcasts to theirs; 1 when None.
        metrics_collections: As for `tf.metrics.mean`.
        updates_collections: Likewise.
        name: Name of the variable scope.

    Returns:
        The value and the update, float32 scalars; 0 where there is no such example.
    """
    given = labels, predictions, weights
    with sums.metric_scope(name, "false_positive_rate"):
        parts = metrics.false_positives(*given), metrics.true_negatives(*given)
        return _share(*parts, metrics_collections, updates_collections)


def streaming_false_negative_rate(
    predictions: Any,
    labels: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """How many of the examples that are true are predicted to be false; as `streaming_false_positive_rate`.

    `predictions` and `labels` have one shape, and `weights` one that broadcasts to it; the results are scalars.
    """
    given = labels, predictions, weights
    with sums.metric_scope(name, "false_negative_rate"):
        parts = metrics.false_negatives(*given), metrics.true_positives(*given)
        return _share(*parts, metrics_collections, updates_collections)


def _share(part: Metric, rest: Metric, metrics_collections: Any, updates_collections: Any) -> Metric:
    """How large a part of the whole is."""
    value, update = (
        sums.quotient(a, a + b, name) for a, b, name in zip(part, rest, ("value", "update_op"), strict=True)
    )
    return sums.collected(value, update, metrics_collections, updates_collections)


def streaming_recall_at_k(
    predictions: Any,
    labels: Any,
    k: int,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """How often the label is among the `k` classes with the highest scores.

    Args:
        predictions: Scores, float32 ``[batch, classes]``.
        labels: Classes, integers ``[batch]``.
        k: How many classes are considered.
        weights: What each example counts, ``[batch]`` or a scalar; 1 when None.
        metrics_collections: As for `tf.metrics.mean`.
        updates_collections: Likewise.
        name: Prefix of the variables' names; ``recall_at_`` and `k` when None.

    Returns:
        The value and the update, float32 scalars.
    """
    hits = array_ops.to_float(in_top_k(predictions, labels, k))
    return metrics.mean(hits, weights, metrics_collections, updates_collections, name or f"recall_at_{k}")


def streaming_sparse_precision_at_top_k(top_k_predictions: Any, labels: Any, *args: Any, **kwargs: Any) -> Metric:
    """As `tf.metrics.precision_at_top_k`, with the same shapes; the predictions come first, and no ``k``."""
    return metrics.precision_at_top_k(labels, top_k_predictions, None, *args, **kwargs)


def streaming_sparse_average_precision_at_top_k(
    top_k_predictions: Any, labels: Any, *args: Any, **kwargs: Any
) -> Metric:
    """As `tf.metrics.average_precision_at_k`, of the predicted classes ``[..., k]`` themselves, the likeliest first.

    `labels` are int64 ``[..., labels]`` or ``[...]``; the results are float64 scalars.

    Raises:
        InvalidArgumentError: ``k`` is not known.
    """
    return average_precision_at_top_k(labels, top_k_predictions, *args, **kwargs)


def sparse_recall_at_top_k(labels: Any, top_k_predictions: Any, *args: Any, **kwargs: Any) -> Metric:
    """As `tf.metrics.recall_at_top_k`, with the same shapes, and no ``k``."""
    return metrics.recall_at_top_k(labels, top_k_predictions, None, *args, **kwargs)


def _predictions_first(metric: Callable[..., Metric], name: str | None = None) -> Callable[..., Metric]:
    def streaming(predictions: Any, labels: Any, *args: Any, **kwargs: Any) -> Metric:
        return metric(labels, predictions, *args, **kwargs)

    streaming.__name__ = streaming.__qualname__ = f"streaming_{name or metric.__name__}"
    streaming.__doc__ = f"As `tf.metrics.{metric.__name__}`, with the same shapes; the predictions come first."
    return streaming


def _counter_at_thresholds(outcome: str) -> Callable[..., Metric]:
    def streaming(predictions: Any, labels: Any, thresholds: Sequence[float], weights: Any = None) -> Metric:
        values, updates = counts_at_thresholds(labels, predictions, thresholds, weights, [outcome])
        return Metric(values[outcome], updates[outcome])

    streaming.__name__ = streaming.__qualname__ = f"streaming_{outcome}_at_thresholds"
    streaming.__doc__ = (
        f"As `tf.metrics.{outcome}_at_thresholds`, with the same shapes; the predictions come first. Its variable "
        "stands in the current scope."
    )
    return streaming


def _rate_at_thresholds(rate: str, short: str, part: str, rest: str, truth: str) -> Callable[..., Metric]:
    def streaming(
        predictions: Any,
        labels: Any,
        thresholds: Sequence[float],
        weights: Any = None,
        metrics_collections: Any = None,
        updates_collections: Any = None,
        name: str | None = None,
    ) -> Metric:
        with sums.metric_scope(name, f"{rate}_at_thresholds"):
            counts = counts_at_thresholds(labels, predictions, thresholds, weights, [part, rest])
            value, update = (
                math_ops.divide(each[part], 1e-7 + each[part] + each[rest], name=f"{short}_{last}")
                for each, last in zip(counts, ("value", "update_op"), strict=True)
            )
            return sums.collected(value, update, metrics_collections, updates_collections)

    streaming.__name__ = streaming.__qualname__ = f"streaming_{rate}_at_thresholds"
    streaming.__doc__ = (
        f"How many of the examples that are {truth} are predicted not to be, for each threshold; arguments and result, "
        "float32 ``[thresholds]``, as for `streaming_precision_at_thresholds`."
    )
    return streaming


streaming_accuracy = _predictions_first(metrics.accuracy)
streaming_auc = _predictions_first(metrics.auc)
streaming_false_negative_rate_at_thresholds = _rate_at_thresholds(
    "false_negative_rate", "fnr", "false_negatives", "true_positives", "true"
)
streaming_false_negatives = _predictions_first(metrics.false_negatives)
streaming_false_negatives_at_thresholds = _counter_at_thresholds("false_negatives")
streaming_false_positive_rate_at_thresholds = _rate_at_thresholds(
    "false_positive_rate", "fpr", "false_positives", "true_negatives", "false"
)
streaming_false_positives = _predictions_first(metrics.false_positives)
streaming_false_positives_at_thresholds = _counter_at_thresholds("false_positives")
streaming_mean_absolute_error = _predictions_first(metrics.mean_absolute_error)
streaming_mean_cosine_distance = _predictions_first(metrics.mean_cosine_distance)
streaming_mean_iou = _predictions_first(metrics.mean_iou)
streaming_mean_relative_error = _predictions_first(metrics.mean_relative_error)
streaming_mean_squared_error = _predictions_first(metrics.mean_squared_error)
streaming_precision = _predictions_first(metrics.precision)
streaming_precision_at_thresholds = _predictions_first(metrics.precision_at_thresholds)
streaming_recall = _predictions_first(metrics.recall)
streaming_recall_at_thresholds = _predictions_first(metrics.recall_at_thresholds)
streaming_root_mean_squared_error = _predictions_first(metrics.root_mean_squared_error)
streaming_sensitivity_at_specificity = _predictions_first(metrics.sensitivity_at_specificity)
streaming_sparse_average_precision_at_k = _predictions_first(
    metrics.average_precision_at_k, "sparse_average_precision_at_k"
)
streaming_sparse_precision_at_k = _predictions_first(metrics.precision_at_k, "sparse_precision_at_k")
streaming_sparse_recall_at_k = _predictions_first(metrics.recall_at_k, "sparse_recall_at_k")
streaming_specificity_at_sensitivity = _predictions_first(metrics.specificity_at_sensitivity)
streaming_true_negatives = _predictions_first(metrics.true_negatives)
streaming_true_negatives_at_thresholds = _counter_at_thresholds("true_negatives")
streaming_true_positives = _predictions_first(metrics.true_positives)
streaming_true_positives_at_thresholds = _counter_at_thresholds("true_positives")


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
