"""Metrics of the k highest predictions.

Labels are the classes that are true of an example, shape ``[..., labels]``, or ``[...]`` for one each. They may be a
sparse tensor of that shape. Predictions are scores ``[..., classes]``, or
for functions "at top k" the numbers of the classes with the highest scores, ``[..., k]``. With `class_id` one class
alone counts.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.sparse_tensor import SparseTensor, convert_to_tensor_or_sparse_tensor
from tfray.framework.type_aliases import CollectionNames, TensorLike
from tfray.library.metrics.metric_variables import (
    Metric,
    collected,
    fitting_weights,
    metric_scope,
    metric_variable,
    quotient,
)
from tfray.ops.arrays import array_ops
from tfray.ops.math import math_ops, search_ops
from tfray.ops.sparse.sparse_ops import sparse_tensor_to_dense

_PADDING: Final = int(np.iinfo(np.int64).min)
"""Fills the rows of sparse labels that have fewer of them than others."""


def precision_at_k(
    labels: TensorLike,
    predictions: TensorLike,
    k: int,
    class_id: int | None = None,
    weights: TensorLike | None = None,
    metrics_collections: CollectionNames | None = None,
    updates_collections: CollectionNames | None = None,
    name: str | None = None,
) -> Metric:
    """Precision at k: the share of the k classes with the highest scores that are true.

    Args:
        labels: The true classes, ``[..., labels]``, or ``[...]`` for one each; see the module.
        predictions: Scores, shape ``[..., classes]``.
        k: Number of classes predicted.
        class_id: The only class that counts; all when None.
        weights: A scalar, or what each example counts.
        metrics_collections: Collections for the value.
        updates_collections: Collections for the update.
        name: Name of the variable scope.

    Returns:
        The value and the update, float64 scalars.
    """
    top = search_ops.top_k(convert_to_tensor(predictions), k)[1]
    return precision_at_top_k(labels, top, k, class_id, weights, metrics_collections, updates_collections, name)


def precision_at_top_k(
    labels: TensorLike,
    predictions_idx: TensorLike,
    k: int | None = None,
    class_id: int | None = None,
    weights: TensorLike | None = None,
    metrics_collections: CollectionNames | None = None,
    updates_collections: CollectionNames | None = None,
    name: str | None = None,
) -> Metric:
    """As `precision_at_k`, for the numbers of the predicted classes, shape ``[..., k]``."""
    labels, predicted = _as_classes(labels, predictions_idx)
    relevant = _only(class_id, predicted)
    hits = math_ops.logical_and(relevant, _is_among(predicted, labels))
    misses = math_ops.logical_and(relevant, math_ops.logical_not(hits))
    share = _share("precision", "false_positive", hits, misses, k, class_id, weights, name)
    return collected(*share, metrics_collections, updates_collections)


def recall_at_k(
    labels: TensorLike,
    predictions: TensorLike,
    k: int,
    class_id: int | None = None,
    weights: TensorLike | None = None,
    metrics_collections: CollectionNames | None = None,
    updates_collections: CollectionNames | None = None,
    name: str | None = None,
) -> Metric:
    """Recall at k: the share of the true classes that are among the k with the highest scores.

    The arguments, the result and their shapes are those of `precision_at_k`.
    """
    top = search_ops.top_k(convert_to_tensor(predictions), k)[1]
    return recall_at_top_k(labels, top, k, class_id, weights, metrics_collections, updates_collections, name)


def recall_at_top_k(
    labels: TensorLike,
    predictions_idx: TensorLike,
    k: int | None = None,
    class_id: int | None = None,
    weights: TensorLike | None = None,
    metrics_collections: CollectionNames | None = None,
    updates_collections: CollectionNames | None = None,
    name: str | None = None,
) -> Metric:
    """As `recall_at_k`, for the numbers of the predicted classes, shape ``[..., k]``."""
    labels, predicted = _as_classes(labels, predictions_idx)
    relevant = math_ops.logical_and(_only(class_id, labels), _is_first_of_its_kind(labels))
    hits = math_ops.logical_and(relevant, _is_among(labels, predicted))
    misses = math_ops.logical_and(relevant, math_ops.logical_not(hits))
    share = _share("recall", "false_negative", hits, misses, k, class_id, weights, name)
    return collected(*share, metrics_collections, updates_collections)


def average_precision_at_k(
    labels: TensorLike,
    predictions: TensorLike,
    k: int,
    weights: TensorLike | None = None,
    metrics_collections: CollectionNames | None = None,
    updates_collections: CollectionNames | None = None,
    name: str | None = None,
) -> Metric:
    """The mean over examples of the average precision.

    The average precision of an example is computed from its k highest predictions: add up the precision at each
    position that holds a true class, and divide the sum by the number of true classes or by k, whichever is less.

    Args:
        labels: The true classes, ``[..., labels]``, or ``[...]`` for one each; see the module.
        predictions: Scores, shape ``[..., classes]``.
        k: Number of classes predicted.
        weights: A scalar, or what each example counts.
        metrics_collections: Collections for the value.
        updates_collections: Collections for the update.
        name: Name of the variable scope.

    Returns:
        The value and the update, float64 scalars.
    """
    with metric_scope(name, f"average_precision_at_{k}"):
        scores = convert_to_tensor(predictions)
        top = search_ops.top_k(scores, k)[1]
        count = array_ops.to_int64(array_ops.shape(scores)[-1])
        found, _ = _as_classes(labels, top)
        # There are no classes of these numbers.
        outside = math_ops.greater_equal(found, count)
        labels = array_ops.where(outside, array_ops.fill(array_ops.shape(found), np.int64(-1)), found)
        return average_precision_at_top_k(labels, top, weights, metrics_collections, updates_collections)


def average_precision_at_top_k(
    labels: TensorLike,
    predictions_idx: TensorLike,
    weights: TensorLike | None = None,
    metrics_collections: CollectionNames | None = None,
    updates_collections: CollectionNames | None = None,
    name: str | None = None,
) -> Metric:
    """`average_precision_at_k` of the predicted classes themselves, ``[..., k]``, the likeliest first."""
    with get_default_graph().name_scope(name or "average_precision_at_top_k"):
        labels, predicted = _as_classes(labels, predictions_idx)
        k = predicted.shape.as_list()[-1]
        if k is None:
            raise InvalidArgumentError(f"predictions_idx has shape {predicted.shape}: its last dimension must be known")
        hits = array_ops.cast(_is_among(predicted, labels), dtypes.float64)
        places = array_ops.cast(array_ops.range(1, k + 1), dtypes.float64)
        sums = math_ops.reduce_sum(math_ops.cumsum(hits, -1) / places * hits, -1)
        true = math_ops.reduce_sum(array_ops.cast(math_ops.greater_equal(labels, 0), dtypes.float64), -1)
        averages = quotient(sums, math_ops.minimum(true, float(k)), "average_precision")
        number = array_ops.ones_like(averages)
        if weights is not None:
            number = number * array_ops.cast(fitting_weights(weights, averages), dtypes.float64)
        most, total = metric_variable([], dtypes.float64, "max"), metric_variable([], dtypes.float64, "total")
        new_most = most.assign_add(math_ops.reduce_sum(number))
        new_total = total.assign_add(math_ops.reduce_sum(averages * number))
        return collected(
            quotient(total.value(), most.value(), "mean"),
            quotient(new_total, new_most, "update"),
            metrics_collections,
            updates_collections,
        )


def _share(
    metric: str,
    other: str,
    hits: Tensor,
    misses: Tensor,
    k: int | None,
    class_id: int | None,
    weights: TensorLike | None,
    name: str | None,
) -> Metric:
    """Hits among hits and misses, which are bools along the last dimension."""
    suffix = "at_k" if k is None else f"at_{k}"
    suffix += "" if class_id is None else f"_class{class_id}"
    with metric_scope(name, f"{metric}_{suffix}"):
        right = metric_variable([], dtypes.float64, f"true_positive_{suffix}")
        wrong = metric_variable([], dtypes.float64, f"{other}_{suffix}")
        new_right, new_wrong = (
            variable.assign_add(_weighted_count(found, weights)) for variable, found in ((right, hits), (wrong, misses))
        )
        # Not a number if none counts.
        value = math_ops.truediv(right.value(), right.value() + wrong.value(), "value")
        return Metric(value, math_ops.truediv(new_right, new_right + new_wrong, "update"))


def _weighted_count(found: Tensor, weights: TensorLike | None) -> Tensor:
    counts = math_ops.reduce_sum(array_ops.cast(found, dtypes.float64), -1)
    if weights is not None:
        counts = counts * array_ops.cast(fitting_weights(weights, counts), dtypes.float64)
    return math_ops.reduce_sum(counts)


def _as_classes(labels: TensorLike, predicted: TensorLike) -> tuple[Tensor, Tensor]:
    given = convert_to_tensor_or_sparse_tensor(labels)
    if isinstance(given, SparseTensor):
        labels = SparseTensor(given.indices, array_ops.to_int64(given.values), given.dense_shape)
        labels = sparse_tensor_to_dense(labels, _PADDING, validate_indices=False)
    labels, predicted = array_ops.to_int64(labels), array_ops.to_int64(predicted)
    if labels.shape.rank is None or predicted.shape.rank is None:
        raise InvalidArgumentError(
            f"labels have shape {labels.shape}, predictions {predicted.shape}: their ranks must be known"
        )
    if predicted.shape.rank < 2:
        raise InvalidArgumentError(
            f"Shape must be at least rank 2 but is rank {predicted.shape.rank}: the predicted classes of examples have "
            f"shape {predicted.shape}, expected [..., k]"
        )
    if labels.shape.rank == predicted.shape.rank - 1:
        labels = array_ops.expand_dims(labels, -1)
    return labels, predicted


def _is_among(classes: Tensor, others: Tensor) -> Tensor:
    """Whether each class is among the others of its example."""
    same = math_ops.equal(array_ops.expand_dims(classes, -1), array_ops.expand_dims(others, -2))
    return math_ops.reduce_any(same, -1)


def _only(class_id: int | None, classes: Tensor) -> Tensor:
    """Which classes count."""
    if class_id is None:
        return math_ops.not_equal(classes, _PADDING)
    return math_ops.equal(classes, class_id)


def _is_first_of_its_kind(labels: Tensor) -> Tensor:
    """Which labels are neither padding nor a repetition of an earlier label."""
    count = array_ops.shape(labels)[-1]
    place = array_ops.range(count)
    earlier = math_ops.less(array_ops.expand_dims(place, 0), array_ops.expand_dims(place, 1))
    same = math_ops.equal(array_ops.expand_dims(labels, -1), array_ops.expand_dims(labels, -2))
    repeated = math_ops.reduce_any(math_ops.logical_and(same, earlier), -1)
    return math_ops.logical_and(math_ops.not_equal(labels, _PADDING), math_ops.logical_not(repeated))
