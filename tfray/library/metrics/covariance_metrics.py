"""Metrics of how two values or two judges go together, and of all values side by side. See also `mean_metrics`."""

from __future__ import annotations

import math

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.framework.type_aliases import CollectionNames, TensorLike
from tfray.library.metrics.confusion import confusion_matrix
from tfray.library.metrics.metric_variables import (
    Metric,
    collected,
    matching,
    metric_scope,
    metric_variable,
    quotient,
    spread,
)
from tfray.library.variables.variables import Variable
from tfray.ops.arrays import array_ops
from tfray.ops.math import math_ops


def streaming_covariance(
    predictions: TensorLike,
    labels: TensorLike,
    weights: TensorLike | None = None,
    metrics_collections: CollectionNames | None = None,
    updates_collections: CollectionNames | None = None,
    name: str | None = None,
) -> Metric:
    """The covariance of predictions and labels over all batches: the sum of products of deviations over ``count - 1``.

    Args:
        predictions: Any shape.
        labels: The same shape.
        weights: How often each pair counts, of a shape that broadcasts to theirs; once when None.
        metrics_collections: Collections for the value.
        updates_collections: Collections for the update.
        name: Name of the variable scope.

    Returns:
        The value and the update, float32 scalars; NaN for fewer than two pairs.
    """
    with metric_scope(name, "covariance"):
        predictions, labels, weights = matching(predictions, labels, weights)
        values = [array_ops.to_float(each) for each in (predictions, labels)]
        numbers = array_ops.ones_like(values[0]) if weights is None else spread(weights, values[0])
        names = ("count", "mean_prediction", "mean_label", "comoment")
        count, *means, comoment = [metric_variable([], dtypes.float32, each) for each in names]
        added = math_ops.reduce_sum(numbers)
        total = count + added
        batch = [math_ops.div_no_nan(math_ops.reduce_sum(each * numbers), added) for each in values]
        ahead = [mean - old for mean, old in zip(batch, means, strict=True)]
        products = (values[0] - batch[0]) * (values[1] - batch[1]) * numbers
        share = math_ops.div_no_nan(added, total)
        between = ahead[0] * ahead[1] * count * share
        new = [
            total,
            *(old + gap * share for old, gap in zip(means, ahead, strict=True)),
            comoment + math_ops.reduce_sum(products) + between,
        ]
        with get_default_graph().control_dependencies(new):  # all are computed from what was there before
            updated = [each.assign(value) for each, value in zip((count, *means, comoment), new, strict=True)]
        value = _covariance(comoment.value(), count.value(), "covariance")
        update_op = _covariance(updated[-1], updated[0], "update_op")
        with get_default_graph().control_dependencies(updated):
            update_op = array_ops.identity(update_op)
        return collected(value, update_op, metrics_collections, updates_collections)


def _covariance(comoment: Tensor, count: Tensor, name: str) -> Tensor:
    return array_ops.where(
        math_ops.less_equal(count, 1.0), convert_to_tensor(math.nan), math_ops.truediv(comoment, count - 1.0), name=name
    )


def streaming_pearson_correlation(
    predictions: TensorLike,
    labels: TensorLike,
    weights: TensorLike | None = None,
    metrics_collections: CollectionNames | None = None,
    updates_collections: CollectionNames | None = None,
    name: str | None = None,
) -> Metric:
    """The correlation of predictions and labels over all batches: their covariance over both standard deviations.

    Args:
        predictions: Any shape.
        labels: The same shape.
        weights: A shape that broadcasts to theirs; as for `streaming_covariance`, like the arguments that follow.
        metrics_collections: Likewise.
        updates_collections: Likewise.
        name: Likewise.

    Returns:
        The value and the update, float32 scalars.
    """
    with metric_scope(name, "pearson_r"):
        predictions, labels, weights = matching(predictions, labels, weights)
        pairs = (predictions, labels), (predictions, predictions), (labels, labels)
        names = "covariance", "variance_predictions", "variance_labels"
        found = [streaming_covariance(*pair, weights, name=each) for pair, each in zip(pairs, names, strict=True)]
        value = _correlation([metric.value for metric in found], "pearson_r")
        update_op = _correlation([metric.update_op for metric in found], "update_op")
        return collected(value, update_op, metrics_collections, updates_collections)


def _correlation(parts: list[Tensor], name: str) -> Tensor:
    covariance, first, second = parts
    return math_ops.truediv(covariance, math_ops.multiply(math_ops.sqrt(first), math_ops.sqrt(second)), name=name)


def cohen_kappa(
    labels: TensorLike,
    predictions_idx: TensorLike,
    num_classes: int,
    weights: TensorLike | None = None,
    metrics_collections: CollectionNames | None = None,
    updates_collections: CollectionNames | None = None,
    name: str | None = None,
) -> Metric:
    """Cohen's kappa: how far two judges agree beyond what chance would give, 1 where they always agree.

    Args:
        labels: Classes, integers ``[n]`` or ``[n, 1]``.
        predictions_idx: Predicted classes, likewise.
        num_classes: Number of classes, 2 or more.
        weights: What each example counts, ``[n]``; 1 when None.
        metrics_collections: Collections for the value.
        updates_collections: Collections for the update.
        name: Name of the variable scope.

    Returns:
        The value and the update, float64 scalars; 0 where chance alone gives full agreement.

    Raises:
        InvalidArgumentError: There are fewer than two classes, or the shapes differ; in a step: a class is negative or
            too large.

    References:
        Cohen, "A Coefficient of Agreement for Nominal Scales", 1960.
    """
    if num_classes < 2:
        raise InvalidArgumentError(f"num_classes must be >= 2, not {num_classes}")
    with metric_scope(name, "cohen_kappa"):
        labels = convert_to_tensor(labels)
        if labels.shape.with_rank_at_most(2).rank == 2:
            labels = array_ops.squeeze(labels, [-1])
        predictions, labels, numbers = matching(predictions_idx, labels, weights)
        whole = numbers is None or numbers.dtype.is_integer
        dtype = dtypes.int64 if whole else dtypes.float32
        table = confusion_matrix(labels, predictions, num_classes, dtype, weights=numbers)
        parts = array_ops.diag_part(table), math_ops.reduce_sum(table, 0), math_ops.reduce_sum(table, 1)
        sums = [metric_variable([num_classes], dtype, each) for each in ("po", "pe_row", "pe_col")]
        updated = [total.assign_add(part) for total, part in zip(sums, parts, strict=True)]
        value = _kappa([total.value() for total in sums], "value")
        return collected(value, _kappa(updated, "update_op"), metrics_collections, updates_collections)


def _kappa(parts: list[Tensor], name: str) -> Tensor:
    """Kappa from how often each class was agreed on, predicted, and true."""
    agreed, predicted, true = (array_ops.cast(each, dtypes.float64) for each in parts)
    total = math_ops.reduce_sum(predicted)
    by_chance = math_ops.reduce_sum(math_ops.div_no_nan(predicted * true, total))
    return quotient(math_ops.reduce_sum(agreed) - by_chance, total - by_chance, name)


def streaming_concat(
    values: TensorLike,
    axis: int = 0,
    max_size: int | None = None,
    metrics_collections: CollectionNames | None = None,
    updates_collections: CollectionNames | None = None,
    name: str | None = None,
) -> Metric:
    """The values of all batches, one after the other.

    Args:
        values: Any dtype, a shape that is known apart from `axis`.
        axis: Along which axis.
        max_size: How many are kept: the first ones; all when None.
        metrics_collections: Collections for the value.
        updates_collections: Collections for the update.
        name: Name of the variable scope.

    Returns:
        The value, in the shape of `values` apart from `axis`, and the update, which returns the new value.

    Raises:
        ValueError: Another size than that along `axis` is unknown, or there is no such axis.
    """
    with metric_scope(name, "streaming_concat"):
        values = convert_to_tensor(values)
        rank = values.shape.with_rank_at_least(1).rank
        if rank is None or not -rank <= axis < rank:
            raise ValueError(f"axis {axis} is not one of the {rank} axes of values")
        axis %= rank
        known = [0 if place == axis else size for place, size in enumerate(values.shape.as_list())]
        sizes = [size for size in known if size is not None]
        if len(sizes) < rank:
            raise ValueError(f"all dimensions of values but axis {axis} must be known, not {values.shape}")
        array = Variable(
            lambda: array_ops.zeros(sizes, values.dtype),
            trainable=False,
            collections=[GraphKeys.LOCAL_VARIABLES, GraphKeys.METRIC_VARIABLES],
            validate_shape=False,
            name="array",
        )
        open_shape = [None if place == axis else size for place, size in enumerate(sizes)]
        value, joined = array_ops.identity(array.value()), array_ops.concat([array.value(), values], axis)
        if max_size is not None:
            first = [slice(None)] * axis + [slice(max_size)]
            joined = joined[tuple(first)]
        update_op = array.assign(joined)
        for each in (value, update_op):
            each.set_shape(open_shape)
        return collected(value, update_op, metrics_collections, updates_collections)
