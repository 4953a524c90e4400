"""Metrics of many thresholds that count into buckets: ``tf.contrib.metrics`` has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Operation, Tensor
from tfray.framework.type_aliases import CollectionNames, TensorLike
from tfray.library.metrics.metric_variables import (
    Metric,
    checked_scores,
    collected,
    matching,
    metric_scope,
    metric_variable,
    spread,
)
from tfray.ops.arrays import array_ops
from tfray.ops.arrays.grouping_ops import group
from tfray.ops.math import math_ops
from tfray.ops.math.scan_ops import cumsum
from tfray.ops.math.segment_ops import unsorted_segment_sum
from tfray.ops.math.sorting_ops import histogram_fixed_width


class PrecisionRecallData(NamedTuple):
    """What `precision_recall_at_equal_thresholds` finds, each of shape ``[thresholds]``."""

    tp: Any
    fp: Any
    tn: Any
    fn: Any
    precision: Any
    recall: Any
    thresholds: Any


def precision_recall_at_equal_thresholds(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike | None = None,
    num_thresholds: int | None = None,
    use_locking: bool | None = None,
    name: str | None = None,
) -> tuple[PrecisionRecallData, Operation]:
    """Outcomes, precision and recall at evenly spaced thresholds from 0 to 1: in time that does not grow with these.

    Args:
        labels: Bools of any shape.
        predictions: Floats in ``[0, 1]`` of the same shape. One at a threshold counts as yes.
        weights: What each prediction counts, of a shape that broadcasts to theirs; 1 when None.
        num_thresholds: How many thresholds; 201 when None.
        use_locking: Accepted for TensorFlow 1's sake.
        name: Name of the variable scope.

    Returns:
        A `PrecisionRecallData` with ``[num_thresholds]`` values of each kind, and the operation that adds a batch.

    Raises:
        InvalidArgumentError: There are fewer than 2 thresholds; at run time, a prediction is outside ``[0, 1]``.
    """
    count = 201 if num_thresholds is None else num_thresholds
    if count < 2:
        raise InvalidArgumentError(f"num_thresholds must be > 1, and is {num_thresholds}")
    with metric_scope(name, "precision_recall_at_equal_thresholds"):
        scores = convert_to_tensor(predictions)
        scores = checked_scores(scores)
        scores, truths, given = matching(scores, array_ops.cast(labels, dtypes.bool_), weights)
        numbers = array_ops.ones_like(truths, scores.dtype) if given is None else spread(given, truths)
        numbers = array_ops.cast(numbers, scores.dtype)
        buckets = array_ops.cast(math_ops.floor(scores * (count - 1)), dtypes.int32)
        sums, updates = [], []
        for kind, wanted in (("tp_buckets", truths), ("fp_buckets", math_ops.logical_not(truths))):
            kept = metric_variable([count], scores.dtype, kind)
            of_kind = numbers * array_ops.cast(wanted, scores.dtype)
            updates.append(kept.assign_add(unsorted_segment_sum(of_kind, buckets, count)))
            sums.append(cumsum(kept.value(), reverse=True))
        tp, fp = sums
        tn, fn = fp[0] - fp, tp[0] - tp
        least = np.asarray(1e-7, scores.dtype.as_numpy_dtype)
        precision = math_ops.divide(tp, math_ops.maximum(least, tp + fp), name="precision")
        recall = math_ops.divide(tp, math_ops.maximum(least, tp + fn), name="recall")
        limits = convert_to_tensor(np.linspace(0.0, 1.0, count), scores.dtype)
        return PrecisionRecallData(tp, fp, tn, fn, precision, recall, limits), group(*updates)


def auc_using_histogram(
    boolean_labels: TensorLike,
    scores: TensorLike,
    score_range: Sequence[float],
    nbins: int = 100,
    collections: CollectionNames | None = None,
    check_shape: bool = True,
    name: str | None = None,
) -> Metric:
    """The area under the curve of true and false positive rates, from histograms of the scores of both classes.

    Args:
        boolean_labels: Bools of shape ``[n]``.
        scores: Same shape.
        score_range: Least and greatest score; those beyond count as these.
        nbins: How many bins a histogram has: the more, the more exact.
        collections: Collections for the value.
        check_shape: Accepted for TensorFlow 1's sake: labels and scores always need the same number of elements.
        name: Name of the variable scope.

    Returns:
        The value, a float32 scalar that is NaN until both classes have come, and the update, an operation.
    """
    with metric_scope(name, "auc_using_histogram"):
        truths = array_ops.reshape(array_ops.cast(boolean_labels, dtypes.bool_), [-1])
        values = array_ops.reshape(convert_to_tensor(scores), array_ops.shape(truths))
        kept, new = [], []
        for kind, wanted in (("hist_true_acc", truths), ("hist_false_acc", math_ops.logical_not(truths))):
            of_kind = histogram_fixed_width(array_ops.boolean_mask(values, wanted), score_range, nbins)
            variable = metric_variable([nbins], dtypes.float32, kind)
            kept.append(variable.value())
            new.append(variable.assign_add(array_ops.to_float(of_kind)))
        update: Any = group(*new, name="update_op")
        return collected(_area(kept, "value"), update, collections, None)


def _area(counts: Sequence[Tensor], name: str) -> Tensor:
    """How often a hit scores above a miss; within a bin, half of the time."""
    hits, misses = counts
    above = cumsum(hits, exclusive=True, reverse=True)
    pairs = math_ops.reduce_sum(misses * (above + hits / 2.0))
    return math_ops.divide(pairs, math_ops.reduce_sum(hits) * math_ops.reduce_sum(misses), name=name)
