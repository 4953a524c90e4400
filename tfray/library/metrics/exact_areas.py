"""Areas under curves whose thresholds are the scores themselves: exact, of all examples so far, which are kept."""

from __future__ import annotations

from typing import NamedTuple

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.type_aliases import CollectionNames, TensorLike
from tfray.library.metrics.covariance_metrics import streaming_concat
from tfray.library.metrics.metric_variables import Metric, collected, matching, metric_scope
from tfray.ops.arrays import array_ops
from tfray.ops.arrays.grouping_ops import group
from tfray.ops.checks import check_ops
from tfray.ops.math import math_ops, search_ops, segment_ops, special_ops

_EPSILON = 1e-7


class AucData(NamedTuple):
    """An area and the bounds of its confidence interval, float32 scalars."""

    auc: Tensor
    lower: Tensor
    upper: Tensor


def streaming_dynamic_auc(
    labels: TensorLike,
    predictions: TensorLike,
    curve: str = "ROC",
    metrics_collections: CollectionNames | None = (),
    updates_collections: CollectionNames | None = (),
    name: str | None = None,
    weights: TensorLike | None = None,
) -> Metric:
    """The area under a curve that has a point for every different score, whatever the scores' range is.

    Args:
        labels: 0 or 1, any shape.
        predictions: Scores, the same shape.
        curve: ``"ROC"``, of true and false positive rates, or ``"PR"``, of precision over recall.
        metrics_collections: Collections for the value.
        updates_collections: Collections for the update.
        name: Name of the variable scope.
        weights: What each example counts, the same shape; 1 when None.

    Returns:
        The value, a float64 scalar, 0 as long as all labels are the same; and an operation that adds a batch.

    Raises:
        InvalidArgumentError: The curve is not known, or the shapes differ; in a step: a label is not 0 or 1.
    """
    if curve not in ("ROC", "PR"):
        raise InvalidArgumentError(f"curve must be either ROC or PR, {curve!r} unknown")
    with metric_scope(name, "dynamic_auc"):
        labels, predictions = convert_to_tensor(labels), convert_to_tensor(predictions)
        if not labels.shape.is_compatible_with(predictions.shape):
            raise InvalidArgumentError(f"labels have shape {labels.shape}, predictions {predictions.shape}")
        flat_weights = None if weights is None else _flat(weights, dtypes.float64)
        *kept, update_op = _kept(labels, predictions, flat_weights)
        yes, no = _weights_by_score(*kept)
        right, wrong = (array_ops.pad(math_ops.cumsum(each), [[1, 0]]) for each in (yes, no))
        recall = math_ops.truediv(right, right[-1])
        if curve == "ROC":
            x, y = math_ops.truediv(wrong, wrong[-1]), recall
        else:
            precision = math_ops.truediv(right[1:], right[1:] + wrong[1:])
            x, y = recall, array_ops.concat([array_ops.ones([1], dtypes.float64), precision], 0)
        area = math_ops.reduce_sum((x[1:] - x[:-1]) * (y[1:] + y[:-1]) / 2.0)
        both = math_ops.logical_and(math_ops.not_equal(right[-1], 0.0), math_ops.not_equal(wrong[-1], 0.0))
        value = array_ops.where(both, area, array_ops.zeros_like(area))
        return collected(value, update_op, metrics_collections, updates_collections)


def auc_with_confidence_intervals(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike | None = None,
    alpha: float = 0.95,
    logit_transformation: bool = True,
    metrics_collections: CollectionNames | None = (),
    updates_collections: CollectionNames | None = (),
    name: str | None = None,
) -> Metric:
    """The area under the ROC curve, and the interval in which it lies with a given confidence.

    Args:
        labels: 0 or 1, any shape.
        predictions: Scores, the same shape.
        weights: What each example counts, the same shape; 1 when None.
        alpha: The confidence, between 0 and 1.
        logit_transformation: Take the interval around the logit of the area, so that it lies within 0 and 1.
        metrics_collections: Collections for the value.
        updates_collections: Collections for the update.
        name: Name of the variable scope.

    Returns:
        The value, `AucData` of float32 scalars; and the update, a bool scalar that adds the batch and tells whether its
        weights add up to 1 or more. Where they do not, or where all labels of the batch of the step are the same, the
        value is 0 throughout.

    Raises:
        InvalidArgumentError: `alpha` is not between 0 and 1, or the shapes differ; in a step: a label is not 0 or 1.

    References:
        DeLong, DeLong and Clarke-Pearson, "Comparing the Areas under Two or More Correlated Receiver Operating
        Characteristic Curves", 1988. Sun and Xu, "Fast Implementation of DeLong's Algorithm", 2014.
    """
    if not 0 < alpha < 1:
        raise InvalidArgumentError(f"alpha must be between 0 and 1; currently {alpha:.02f}")
    with metric_scope(name, "auc_with_confidence_intervals"):
        predictions, labels, weights = matching(predictions, labels, weights)
        given = array_ops.ones_like(predictions) if weights is None else weights
        flat_weights = _flat(given, dtypes.float32)
        *kept, update = _kept(labels, predictions, flat_weights)
        enough = math_ops.greater_equal(math_ops.reduce_sum(flat_weights), 1.0)
        batch = _flat(labels, dtypes.int64)
        both = math_ops.not_equal(math_ops.reduce_min(batch), math_ops.reduce_max(batch))
        with get_default_graph().control_dependencies([update]):
            update_op = array_ops.identity(enough)
        yes, no = _weights_by_score(*kept)
        found = _interval(*_area_and_deviation(yes, no), alpha, logit_transformation)
        valid = math_ops.logical_and(both, enough)
        value = AucData(*(array_ops.where(valid, each, array_ops.zeros_like(each)) for each in found))
        return collected(value, update_op, metrics_collections, updates_collections)


def _flat(values: TensorLike, dtype: dtypes.DType) -> Tensor:
    return array_ops.reshape(array_ops.cast(values, dtype), [-1])


def _kept(labels: Tensor, predictions: Tensor, weights: Tensor | None) -> tuple[Tensor, Tensor, Tensor, Operation]:
    """Labels, scores and weights of all batches so far, and the operation that adds a batch."""
    flat = _flat(labels, dtypes.int64)
    checks = [
        check_ops.assert_non_negative(flat, message="labels must be 0 or 1, at least one is <0"),
        check_ops.assert_less_equal(
            flat, array_ops.ones([], dtypes.int64), message="labels must be 0 or 1, at least one is >1"
        ),
    ]
    with get_default_graph().control_dependencies(checks):
        scores = streaming_concat(_flat(predictions, dtypes.float64), name="concat_preds")
        truth = streaming_concat(array_ops.identity(flat), name="concat_labels")
        parts = [scores, truth]
        if weights is not None:
            parts.append(streaming_concat(weights, name="concat_weights"))
        update = group(*(each.update_op for each in parts))
    numbers = array_ops.ones_like(scores.value) if weights is None else parts[-1].value
    return truth.value, scores.value, numbers, update


def _weights_by_score(labels: Tensor, scores: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """The weights of the examples that are true, and of the others, of each different score, the highest first."""
    ordered, order = search_ops.top_k(scores, array_ops.size(scores))
    groups = array_ops.unique(ordered)[1]
    true = array_ops.cast(array_ops.gather(labels, order), weights.dtype)
    numbers = array_ops.gather(weights, order)
    return segment_ops.segment_sum(numbers * true, groups), segment_ops.segment_sum(numbers * (1.0 - true), groups)


def _area_and_deviation(yes: Tensor, no: Tensor) -> tuple[Tensor, Tensor]:
    """The area and its standard error, from weights by score: how much of the other kind is below or above each."""
    totals = math_ops.reduce_sum(yes), math_ops.reduce_sum(no)
    below = math_ops.cumsum(no, exclusive=True, reverse=True) + no / 2.0
    above = math_ops.cumsum(yes, exclusive=True) + yes / 2.0
    shares = below / (totals[1] + _EPSILON), above / (totals[0] + _EPSILON)
    areas, variances = [], []
    for numbers, share, total in zip((yes, no), shares, totals, strict=True):
        area = math_ops.reduce_sum(numbers * share) / (total + _EPSILON)
        spread = math_ops.reduce_sum(numbers * math_ops.square(share - area)) / (total - 1.0 + _EPSILON)
        areas.append(area)
        variances.append(spread / (total + _EPSILON))
    area = array_ops.where(math_ops.less(totals[1], totals[0]), areas[0], areas[1])
    return area, math_ops.sqrt(variances[0] + variances[1])


def _interval(area: Tensor, deviation: Tensor, alpha: float, in_logits: bool) -> tuple[Tensor, Tensor, Tensor]:
    """The area and its bounds, which are the area itself where that is 0 or 1."""
    reach = special_ops.ndtri(convert_to_tensor((1.0 - alpha) / 2.0, dtypes.float32))
    rest = 1.0 - area + _EPSILON
    centre, step = area, reach * deviation
    if in_logits:
        centre, step = math_ops.log(area / rest), step / (area * rest)
    bounds = centre + step, centre - step
    if in_logits:
        lower, upper = (1.0 / (1.0 + math_ops.exp(-each) + _EPSILON) for each in bounds)
        bounds = lower, upper
    certain = math_ops.logical_or(math_ops.equal(area, 1.0), math_ops.equal(area, 0.0))
    lower, upper = (array_ops.where(certain, area, each) for each in bounds)
    return area, lower, upper
