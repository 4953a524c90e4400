"""Metrics of yes-or-no predictions: counts of the four outcomes, precision and recall, areas under curves.

As in `mean_metrics` each returns a value over all batches so far, and the operation that adds a batch. Those "at
thresholds" have a value for each threshold above which a prediction counts as yes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.graph import Tensor
from tfray.framework.type_aliases import CollectionNames, TensorLike
from tfray.library.metrics.metric_variables import (
    Metric,
    checked_scores,
    collected,
    matching,
    metric_scope,
    metric_variable,
    quotient,
    spread,
)
from tfray.ops.arrays import array_ops
from tfray.ops.arrays.source_ops import constant
from tfray.ops.math import math_ops, search_ops

_EPSILON: Final = 1e-7

_OUTCOMES: Final[dict[str, tuple[bool, bool]]] = {
    "true_positives": (True, True),
    "false_negatives": (True, False),
    "true_negatives": (False, False),
    "false_positives": (False, True),
}
"""Label and prediction of each outcome."""


def _as_bools(
    labels: TensorLike, predictions: TensorLike, weights: TensorLike | None
) -> tuple[Tensor, Tensor, Tensor | None]:
    predictions, labels, weights = matching(predictions, labels, weights)
    return array_ops.cast(predictions, dtypes.bool_), array_ops.cast(labels, dtypes.bool_), weights


def _count(
    outcome: str, labels: Tensor, predictions: Tensor, weights: TensorLike | None, name: str | None
) -> tuple[Any, Any]:
    """How often an outcome came: the sum so far, and the operation that adds a batch."""
    label, prediction = _OUTCOMES[outcome]
    with metric_scope(name, outcome):
        count = metric_variable([], dtypes.float32, "count")
        hits = math_ops.logical_and(_equal(labels, label), _equal(predictions, prediction))
        numbers = array_ops.to_float(hits)
        if weights is not None:
            numbers = numbers * spread(weights, numbers)
        return count.value(), count.assign_add(math_ops.reduce_sum(numbers))


def _equal(tensor: Tensor, wanted: bool) -> Tensor:
    return tensor if wanted else math_ops.logical_not(tensor)


def _counter(outcome: str, words: str) -> Callable[..., Metric]:
    def metric(
        labels: TensorLike,
        predictions: TensorLike,
        weights: TensorLike | None = None,
        metrics_collections: CollectionNames | None = None,
        updates_collections: CollectionNames | None = None,
        name: str | None = None,
    ) -> Metric:
        predictions, labels, weights = _as_bools(labels, predictions, weights)
        value, update_op = _count(outcome, labels, predictions, weights, name)
        return collected(value, update_op, metrics_collections, updates_collections)

    metric.__name__ = metric.__qualname__ = outcome
    metric.__doc__ = f"How often {words}; arguments and result, float32 scalars, as for `tf.metrics.precision`."
    return metric


true_positives = _counter("true_positives", "the prediction was yes and right")
false_positives = _counter("false_positives", "the prediction was yes and wrong")
true_negatives = _counter("true_negatives", "the prediction was no and right")
false_negatives = _counter("false_negatives", "the prediction was no and wrong")


def _share(
    default: str,
    other: str,
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike | None,
    collections: tuple[Any, Any],
    name: str | None,
) -> Metric:
    """True positives divided by the sum of true positives and another outcome: precision or recall."""
    with metric_scope(name, default):
        predictions, labels, weights = _as_bools(labels, predictions, weights)
        right, new_right = _count("true_positives", labels, predictions, weights, "true_positives")
        wrong, new_wrong = _count(other, labels, predictions, weights, other)
        return collected(
            quotient(right, right + wrong, "value"),
            quotient(new_right, new_right + new_wrong, "update_op"),
            *collections,
        )


def precision(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike | None = None,
    metrics_collections: CollectionNames | None = None,
    updates_collections: CollectionNames | None = None,
    name: str | None = None,
) -> Metric:
    """Precision: the share of positive predictions that are right.

    Args:
        labels: The truth, any shape, as bools or numbers, of which 0 stands for no.
        predictions: The predictions, likewise, in the same shape.
        weights: What each prediction counts, of a shape that broadcasts to that of the labels; 1 when None.
        metrics_collections: Collections for the value.
        updates_collections: Collections for the update.
        name: Name of the variable scope.

    Returns:
        The value, 0 where nothing was predicted, and the update: float32 scalars.
    """
    collections = (metrics_collections, updates_collections)
    return _share("precision", "false_positives", labels, predictions, weights, collections, name)


def recall(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike | None = None,
    metrics_collections: CollectionNames | None = None,
    updates_collections: CollectionNames | None = None,
    name: str | None = None,
) -> Metric:
    """How often yes is predicted where it is right; arguments and result, float32 scalars, as for `precision`."""
    collections = (metrics_collections, updates_collections)
    return _share("recall", "false_negatives", labels, predictions, weights, collections, name)


# -- at thresholds -----------------------------------------------------------------------------------------


def counts_at_thresholds(
    labels: TensorLike,
    predictions: TensorLike,
    thresholds: Sequence[float],
    weights: TensorLike | None,
    outcomes: Sequence[str],
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Sums of outcomes so far for each threshold, and what adds a batch, both by outcome.

    Args:
        labels: Truth values, of any shape.
        predictions: Scores in ``[0, 1]``, of the same shape.
        thresholds: A score above one says yes.
        weights: What each counts, of a shape that broadcasts to that of the labels; 1 when None.
        outcomes: Such as ``true_positives``.

    Returns:
        Values and updates, float32 ``[thresholds]`` each.

    Raises:
        InvalidArgumentError: A prediction is outside ``[0, 1]``; in a step, unless they are constants.
    """
    predictions = checked_scores(array_ops.to_float(predictions))
    predictions, labels, weights = matching(predictions, array_ops.cast(labels, dtypes.bool_), weights)
    flat_labels = array_ops.reshape(labels, [1, -1])
    limits = constant(np.asarray(thresholds, np.float32).reshape(-1, 1))
    says_yes = math_ops.greater(array_ops.reshape(predictions, [1, -1]), limits)
    numbers = None if weights is None else array_ops.reshape(spread(weights, labels), [1, -1])
    values, updates = {}, {}
    for outcome in outcomes:
        label, prediction = _OUTCOMES[outcome]
        hits = array_ops.to_float(math_ops.logical_and(_equal(flat_labels, label), _equal(says_yes, prediction)))
        count = metric_variable([len(thresholds)], dtypes.float32, outcome)
        values[outcome] = count.value()
        updates[outcome] = count.assign_add(math_ops.reduce_sum(hits if numbers is None else hits * numbers, 1))
    return values, updates


def _thresholds(count: int) -> list[float]:
    """Evenly spaced thresholds from just below 0 to just above 1."""
    if count < 2:
        raise InvalidArgumentError(f"num_thresholds is {count}, expected 2 or more")
    return [-_EPSILON, *((i + 1) / (count - 1) for i in range(count - 2)), 1 + _EPSILON]


def _computed_at_thresholds(
    default: str,
    thresholds: Sequence[float],
    outcomes: Sequence[str],
    compute: Callable[[dict[str, Any], str], Any],
    arguments: tuple[Any, Any, Any],
    collections: tuple[Any, Any],
    name: str | None,
) -> Metric:
    labels, predictions, weights = arguments
    with metric_scope(name, default):
        values, updates = counts_at_thresholds(labels, predictions, thresholds, weights, outcomes)
        return collected(compute(values, "value"), compute(updates, "update_op"), *collections)


def _counter_at_thresholds(outcome: str) -> Callable[..., Metric]:
    def metric(
        labels: TensorLike,
        predictions: TensorLike,
        thresholds: Sequence[float],
        weights: TensorLike | None = None,
        metrics_collections: CollectionNames | None = None,
        updates_collections: CollectionNames | None = None,
        name: str | None = None,
    ) -> Metric:
        return _computed_at_thresholds(
            outcome,
            thresholds,
            [outcome],
            lambda counts, _: counts[outcome],
            (labels, predictions, weights),
            (metrics_collections, updates_collections),
            name,
        )

    metric.__name__ = metric.__qualname__ = f"{outcome}_at_thresholds"
    metric.__doc__ = (
        f"As `tf.metrics.{outcome}` at thresholds; arguments, result and their shapes as for `precision_at_thresholds`."
    )
    return metric


true_positives_at_thresholds = _counter_at_thresholds("true_positives")
false_positives_at_thresholds = _counter_at_thresholds("false_positives")
true_negatives_at_thresholds = _counter_at_thresholds("true_negatives")
false_negatives_at_thresholds = _counter_at_thresholds("false_negatives")


def precision_at_thresholds(
    labels: TensorLike,
    predictions: TensorLike,
    thresholds: Sequence[float],
    weights: TensorLike | None = None,
    metrics_collections: CollectionNames | None = None,
    updates_collections: CollectionNames | None = None,
    name: str | None = None,
) -> Metric:
    """Precision at thresholds: the share of predictions above each threshold that are right.

    Args:
        labels: The truth, any shape, as bools or numbers, of which 0 stands for no.
        predictions: Floats between 0 and 1, in the same shape.
        thresholds: The thresholds.
        weights: What each prediction counts, of a shape that broadcasts to that of the labels; 1 when None.
        metrics_collections: Collections for the value.
        updates_collections: Collections for the update.
        name: Name of the variable scope.

    Returns:
        The value, a vector with an element for each threshold, and the update.
    """

    def compute(counts: dict[str, Tensor], last: str) -> Tensor:
        right = counts["true_positives"]
        return math_ops.divide(right, right + counts["false_positives"] + _EPSILON, name=f"precision_{last}")

    return _computed_at_thresholds(
        "precision_at_thresholds",
        thresholds,
        ["true_positives", "false_positives"],
        compute,
        (labels, predictions, weights),
        (metrics_collections, updates_collections),
        name,
    )


def recall_at_thresholds(
    labels: TensorLike,
    predictions: TensorLike,
    thresholds: Sequence[float],
    weights: TensorLike | None = None,
    metrics_collections: CollectionNames | None = None,
    updates_collections: CollectionNames | None = None,
    name: str | None = None,
) -> Metric:
    """Recall at thresholds: the share of positive labels whose prediction is above each threshold.

    The arguments, the result and their shapes are those of `precision_at_thresholds`.
    """

    def compute(counts: dict[str, Tensor], last: str) -> Tensor:
        right = counts["true_positives"]
        return math_ops.divide(right, right + counts["false_negatives"] + _EPSILON, name=f"recall_{last}")

    return _computed_at_thresholds(
        "recall_at_thresholds",
        thresholds,
        ["true_positives", "false_negatives"],
        compute,
        (labels, predictions, weights),
        (metrics_collections, updates_collections),
        name,
    )


def sensitivity_at_specificity(
    labels: TensorLike,
    predictions: TensorLike,
    specificity: float,
    weights: TensorLike | None = None,
    num_thresholds: int = 200,
    metrics_collections: CollectionNames | None = None,
    updates_collections: CollectionNames | None = None,
    name: str | None = None,
) -> Metric:
    """Sensitivity (the recall of positives) at the threshold whose specificity is nearest to a given one.

    Args:
        labels: The truth, any shape, as bools or numbers, of which 0 stands for no.
        predictions: Floats between 0 and 1, in the same shape.
        specificity: How often no is to be predicted where that is right, between 0 and 1.
        weights: What each prediction counts, of a shape that broadcasts to that of the labels; 1 when None.
        num_thresholds: Number of thresholds to choose from.
        metrics_collections: Collections for the value.
        updates_collections: Collections for the update.
        name: Name of the variable scope.

    Returns:
        The value and the update, float32 scalars.

    Raises:
        InvalidArgumentError: `specificity` is not between 0 and 1.
    """
    _check_fraction("specificity", specificity)

    def compute(counts: dict[str, Tensor], last: str) -> Tensor:
        no, yes = counts["true_negatives"], counts["true_positives"]
        distance = math_ops.abs(no / (no + counts["false_positives"] + _EPSILON) - specificity)
        share = yes / (yes + counts["false_negatives"] + _EPSILON)
        return array_ops.gather(share, search_ops.argmin(distance, 0), name=last)

    return _computed_at_thresholds(
        "sensitivity_at_specificity",
        _thresholds(num_thresholds),
        list(_OUTCOMES),
        compute,
        (labels, predictions, weights),
        (metrics_collections, updates_collections),
        name,
    )


def specificity_at_sensitivity(
    labels: TensorLike,
    predictions: TensorLike,
    sensitivity: float,
    weights: TensorLike | None = None,
    num_thresholds: int = 200,
    metrics_collections: CollectionNames | None = None,
    updates_collections: CollectionNames | None = None,
    name: str | None = None,
) -> Metric:
    """Specificity (the recall of negatives) at the threshold whose sensitivity is nearest to a given one.

    Arguments, result and their shapes are those of `sensitivity_at_specificity`. Of several such thresholds the highest
    counts.

    Raises:
        InvalidArgumentError: `sensitivity` is not between 0 and 1.
    """
    _check_fraction("sensitivity", sensitivity)

    def compute(counts: dict[str, Tensor], last: str) -> Tensor:
        no, yes = counts["true_negatives"], counts["true_positives"]
        distance = math_ops.abs(yes / (yes + counts["false_negatives"] + _EPSILON) - sensitivity)
        share = no / (no + counts["false_positives"] + _EPSILON)
        from_the_end = search_ops.argmin(array_ops.reverse(distance, [0]), 0)
        return array_ops.gather(array_ops.reverse(share, [0]), from_the_end, name=last)

    return _computed_at_thresholds(
        "specificity_at_sensitivity",
        _thresholds(num_thresholds),
        list(_OUTCOMES),
        compute,
        (labels, predictions, weights),
        (metrics_collections, updates_collections),
        name,
    )


def precision_at_recall(
    labels: TensorLike,
    predictions: TensorLike,
    target_recall: float,
    weights: TensorLike | None = None,
    num_thresholds: int = 200,
    metrics_collections: CollectionNames | None = None,
    updates_collections: CollectionNames | None = None,
    name: str | None = None,
) -> Metric:
    """Precision at the highest threshold whose recall is `target_recall` or more.

    Args:
        labels: The truth, any shape, as bools or numbers, of which 0 stands for no.
        predictions: Scores in ``[0, 1]``, of the same shape.
        target_recall: How often yes is to be predicted where it is right, in ``[0, 1]``.
        weights: What each counts, of a shape that broadcasts to that of the labels; 1 when None.
        num_thresholds: Number of thresholds to choose from.
        metrics_collections: Collections for the value.
        updates_collections: Collections for the update.
        name: Name of the variable scope.

    Returns:
        The value and the update, float32 scalars; 1 where no threshold has such a recall.

    Raises:
        InvalidArgumentError: `target_recall` is not in ``[0, 1]``.
    """
    _check_fraction("target_recall", target_recall)

    def compute(counts: dict[str, Tensor], last: str) -> Tensor:
        right = counts["true_positives"]
        recalls = right / (right + counts["false_negatives"] + _EPSILON)
        enough = math_ops.reduce_sum(array_ops.to_int32(math_ops.greater_equal(recalls, target_recall)))
        place = math_ops.floormod(enough - 1, num_thresholds)  # the last where none is enough: nothing is yes there
        chosen = array_ops.gather(right, place) + _EPSILON
        return math_ops.divide(chosen, chosen + array_ops.gather(counts["false_positives"], place), name=last)

    return _computed_at_thresholds(
        "precision_at_recall",
        _thresholds(num_thresholds),
        list(_OUTCOMES),
        compute,
        (labels, predictions, weights),
        (metrics_collections, updates_collections),
        name,
    )


def recall_at_precision(
    labels: TensorLike,
    predictions: TensorLike,
    precision: float,
    weights: TensorLike | None = None,
    num_thresholds: int = 200,
    metrics_collections: CollectionNames | None = None,
    updates_collections: CollectionNames | None = None,
    name: str | None = None,
    strict_mode: bool = False,
) -> Metric:
    """Recall at the threshold whose precision is nearest to a given one; of several such the lowest counts.

    Args:
        labels: The truth, any shape, as bools or numbers, of which 0 stands for no.
        predictions: Scores in ``[0, 1]``, of the same shape.
        precision: The share of positive predictions that are to be right, in ``[0, 1]``.
        weights: What each counts, of a shape that broadcasts to that of the labels; 1 when None.
        num_thresholds: Number of thresholds to choose from.
        metrics_collections: Collections for the value.
        updates_collections: Collections for the update.
        name: Name of the variable scope.
        strict_mode: Choose only among thresholds whose precision is not less; the recall is 0 where there are none.

    Returns:
        The value and the update, float32 scalars.

    Raises:
        InvalidArgumentError: `precision` is not in ``[0, 1]``.
    """
    _check_fraction("precision", precision)

    def compute(counts: dict[str, Tensor], last: str) -> Tensor:
        right = counts["true_positives"]
        beyond = right / (right + counts["false_positives"] + _EPSILON) - precision
        recalls = right / (right + counts["false_negatives"] + _EPSILON)
        if not strict_mode:
            return array_ops.gather(recalls, search_ops.argmin(math_ops.abs(beyond), 0), name=last)
        enough = math_ops.greater_equal(beyond, 0.0)
        nearest = search_ops.argmin(array_ops.where(enough, beyond, array_ops.fill([num_thresholds], 2.0)), 0)
        return array_ops.gather(recalls * array_ops.to_float(enough), nearest, name=last)

    return _computed_at_thresholds(
        "recall_at_precision",
        _thresholds(num_thresholds),
        list(_OUTCOMES),
        compute,
        (labels, predictions, weights),
        (metrics_collections, updates_collections),
        name,
    )


def _check_fraction(name: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise InvalidArgumentError(f"{name} is {value}, expected a number between 0 and 1")


# -- areas -------------------------------------------------------------------------------------------------


def auc(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike | None = None,
    num_thresholds: int = 200,
    metrics_collections: CollectionNames | None = None,
    updates_collections: CollectionNames | None = None,
    curve: str = "ROC",
    name: str | None = None,
    summation_method: str = "trapezoidal",
    thresholds: Sequence[float] | None = None,
) -> Metric:
    """The area under a curve over all thresholds: of true and false positive rates (ROC), or precision and recall (PR).

    Args:
        labels: The truth, any shape, as bools or numbers, of which 0 stands for no.
        predictions: Floats between 0 and 1, in the same shape.
        weights: What each prediction counts, of a shape that broadcasts to that of the labels; 1 when None.
        num_thresholds: Number of thresholds at which the curve is known.
        metrics_collections: Collections for the value.
        updates_collections: Collections for the update.
        curve: ``"ROC"``: how often yes is right, over how often it is wrong. ``"PR"``: precision over recall.
        name: Name of the variable scope.
        summation_method: ``"trapezoidal"``; ``"minoring"`` or ``"majoring"`` for bounds; for PR curves also
            ``"careful_interpolation"``, which interpolates counts in place of precision.
        thresholds: The thresholds between 0 and 1, ascending, in place of `num_thresholds`.

    Returns:
        The value and the update, float32 scalars.

    Raises:
        InvalidArgumentError: The curve or method is not known.

    References:
        Davis and Goadrich, "The Relationship Between Precision-Recall and ROC Curves", 2006, for the careful
        interpolation.
    """
    methods = ("trapezoidal", "minoring", "majoring") + (("careful_interpolation",) if curve == "PR" else ())
    if curve not in ("ROC", "PR"):
        raise InvalidArgumentError(f"curve is {curve!r}, expected ROC or PR")
    if summation_method not in methods:
        raise InvalidArgumentError(f"summation_method is {summation_method!r}, expected one of {', '.join(methods)}")
    if thresholds is None:
        limits = _thresholds(num_thresholds)
    else:
        limits = [-_EPSILON, *(limit for limit in thresholds if 0 < limit < 1), 1 + _EPSILON]

    def compute(counts: dict[str, Tensor], last: str) -> Tensor:
        if summation_method == "careful_interpolation":
            return _interpolated_area(counts, last)
        x, y = _curve(curve, counts)
        heights = {
            "trapezoidal": lambda: (y[:-1] + y[1:]) / 2.0,
            "minoring": lambda: math_ops.minimum(y[:-1], y[1:]),
            "majoring": lambda: math_ops.maximum(y[:-1], y[1:]),
        }[summation_method]()
        return math_ops.reduce_sum((x[:-1] - x[1:]) * heights, name=last)

    return _computed_at_thresholds(
        "auc",
        limits,
        list(_OUTCOMES),
        compute,
        (labels, predictions, weights),
        (metrics_collections, updates_collections),
        name,
    )


def f1_score(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike | None = None,
    num_thresholds: int = 200,
    metrics_collections: CollectionNames | None = None,
    updates_collections: CollectionNames | None = None,
    name: str | None = None,
) -> Metric:
    """The harmonic mean of precision and recall at the threshold where it is largest.

    Args:
        labels: The truth, any shape, as bools or numbers, of which 0 stands for no.
        predictions: Scores in ``[0, 1]``, of the same shape.
        weights: What each counts, of a shape that broadcasts to that of the labels; 1 when None.
        num_thresholds: Number of thresholds.
        metrics_collections: Collections for the value.
        updates_collections: Collections for the update.
        name: Name of the variable scope.

    Returns:
        The value and the update, float32 scalars.
    """

    def compute(counts: dict[str, Tensor], last: str) -> Tensor:
        right = counts["true_positives"]
        precision = right / (_EPSILON + right + counts["false_positives"])
        recall = right / (_EPSILON + right + counts["false_negatives"])
        return math_ops.reduce_max(2.0 * precision * recall / (precision + recall + _EPSILON), name=last)

    return _computed_at_thresholds(
        "f1",
        _thresholds(num_thresholds),
        ["true_positives", "false_positives", "false_negatives"],
        compute,
        (labels, predictions, weights),
        (metrics_collections, updates_collections),
        name,
    )


def streaming_curve_points(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike | None = None,
    num_thresholds: int = 200,
    metrics_collections: CollectionNames | None = None,
    updates_collections: CollectionNames | None = None,
    curve: str = "ROC",
    name: str | None = None,
) -> Metric:
    """The points of the curve whose area `auc` gives: of true and false positive rates, or of precision and recall.

    Args:
        labels: The truth, any shape, as bools or numbers, of which 0 stands for no.
        predictions: Scores in ``[0, 1]``, of the same shape.
        weights: What each counts, of a shape that broadcasts to that of the labels; 1 when None.
        num_thresholds: Number of points.
        metrics_collections: Collections for the value.
        updates_collections: Collections for the update.
        curve: ``"ROC"`` or ``"PR"``.
        name: Name of the variable scope.

    Returns:
        The value and the update, float32 ``[num_thresholds, 2]``.

    Raises:
        InvalidArgumentError: The curve is not known.
    """
    if curve not in ("ROC", "PR"):
        raise InvalidArgumentError(f"curve must be either ROC or PR, {curve!r} unknown")
    return _computed_at_thresholds(
        "curve_points",
        _thresholds(num_thresholds),
        list(_OUTCOMES),
        lambda counts, last: array_ops.stack(_curve(curve, counts), 1, name=last),
        (labels, predictions, weights),
        (metrics_collections, updates_collections),
        name,
    )


def _curve(curve: str, counts: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
    # As TensorFlow, add a small number to counts: the rates are then defined even if nothing was counted.
    epsilon = 1e-6
    yes, no = counts["true_positives"], counts["true_negatives"]
    recall = (yes + epsilon) / (yes + counts["false_negatives"] + epsilon)
    if curve == "ROC":
        return counts["false_positives"] / (counts["false_positives"] + no + epsilon), recall
    return recall, (yes + epsilon) / (yes + counts["false_positives"] + epsilon)


def _interpolated_area(counts: dict[str, Tensor], name: str) -> Tensor:
    """Area under the PR curve on which true positives are linear in all positives between thresholds."""
    right = counts["true_positives"]
    said = right + counts["false_positives"]
    change = right[:-1] - right[1:]
    slope = math_ops.div_no_nan(change, math_ops.maximum(said[:-1] - said[1:], 0.0))
    intercept = right[1:] - slope * said[1:]
    both = math_ops.logical_and(math_ops.greater(said[:-1], 0.0), math_ops.greater(said[1:], 0.0))
    ratio = array_ops.where(
        both, math_ops.div_no_nan(said[:-1], math_ops.maximum(said[1:], 0.0)), array_ops.ones_like(said[1:])
    )
    there = math_ops.maximum(right[1:] + counts["false_negatives"][1:], 0.0)
    area = math_ops.div_no_nan(slope * (change + intercept * math_ops.log(ratio)), there)
    return math_ops.reduce_sum(area, name=name)
