"""Metrics that are means: of values, errors, hits.

All metrics return their value over all batches so far, and an operation that adds a batch. Their sums are local
variables: run `tf.local_variables_initializer()` first. `weights` say what each value counts, 1 when None.
"""

from __future__ import annotations

from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor
from tfray.framework.type_aliases import CollectionNames, TensorLike
from tfray.library.metrics.confusion import confusion_matrix
from tfray.library.metrics.metric_variables import (
    Metric,
    collected,
    fitting_weights,
    matching,
    metric_scope,
    metric_variable,
    quotient,
    spread,
)
from tfray.library.variables.variables import Variable
from tfray.ops.arrays import array_ops, matrix_ops
from tfray.ops.math import math_ops
from tfray.ops.state import sparse_state_ops


def mean(
    values: TensorLike,
    weights: TensorLike | None = None,
    metrics_collections: CollectionNames | None = None,
    updates_collections: CollectionNames | None = None,
    name: str | None = None,
) -> Metric:
    """The mean of all values.

    Args:
        values: Any shape.
        weights: A scalar, or the shape of the values or one that broadcasts to it.
        metrics_collections: Collections for the value.
        updates_collections: Collections for the update.
        name: Name of the variable scope.

    Returns:
        The value and the update, float32 scalars; see the module.

    Examples:
        >>> value, update = tf.metrics.mean([1.0, 2.0, 6.0])
        >>> session.run(tf.local_variables_initializer())
        >>> session.run(update)
        np.float32(3.0)
    """
    with metric_scope(name, "mean"):
        values = array_ops.cast(values, dtypes.float32)
        total, count = metric_variable([], dtypes.float32, "total"), metric_variable([], dtypes.float32, "count")
        if weights is None:
            number = array_ops.to_float(array_ops.size(values))
        else:
            weights = spread(fitting_weights(weights, values), values)
            values = math_ops.multiply(values, weights)
            number = math_ops.reduce_sum(weights)
        new_total, new_count = total.assign_add(math_ops.reduce_sum(values)), count.assign_add(number)
        value = quotient(total.value(), count.value(), "value")
        return collected(value, quotient(new_total, new_count, "update_op"), metrics_collections, updates_collections)


def mean_tensor(
    values: TensorLike,
    weights: TensorLike | None = None,
    metrics_collections: CollectionNames | None = None,
    updates_collections: CollectionNames | None = None,
    name: str | None = None,
) -> Metric:
    """The mean over batches of each element; arguments as for `mean`, the shape of `values` being known."""
    with metric_scope(name, "mean"):
        values = array_ops.cast(values, dtypes.float32)
        total = metric_variable(values.shape, dtypes.float32, "total_tensor")
        count = metric_variable(values.shape, dtypes.float32, "count_tensor")
        numbers = array_ops.ones_like(values)
        if weights is not None:
            numbers = spread(fitting_weights(weights, values), values)
            values = math_ops.multiply(values, numbers)
        new_total, new_count = total.assign_add(values), count.assign_add(numbers)
        value = quotient(total.value(), count.value(), "value")
        return collected(value, quotient(new_total, new_count, "update_op"), metrics_collections, updates_collections)


def accuracy(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike | None = None,
    metrics_collections: CollectionNames | None = None,
    updates_collections: CollectionNames | None = None,
    name: str | None = None,
) -> Metric:
    """How often predictions equal labels.

    Args:
        labels: Any shape and dtype: the true values.
        predictions: The same shape.
        weights: A scalar, or a shape that broadcasts to that of the labels; 1 when None.
        metrics_collections: Collections for the value.
        updates_collections: Collections for the update.
        name: Name of the variable scope.

    Returns:
        The value and the update, float32 scalars; see the module.

    Examples:
        >>> value, update = tf.metrics.accuracy(labels=[1, 2, 3, 4], predictions=[1, 2, 3, 0])
        >>> session.run(tf.local_variables_initializer())
        >>> session.run(update)
        np.float32(0.75)
    """
    predictions, labels, weights = matching(predictions, labels, weights)
    if labels.dtype is not predictions.dtype:
        predictions = array_ops.cast(predictions, labels.dtype)
    is_correct = array_ops.to_float(math_ops.equal(predictions, labels))
    return mean(is_correct, weights, metrics_collections, updates_collections, name or "accuracy")


def mean_absolute_error(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike | None = None,
    metrics_collections: CollectionNames | None = None,
    updates_collections: CollectionNames | None = None,
    name: str | None = None,
) -> Metric:
    """The mean of ``abs(predictions - labels)``; arguments and result, float32 scalars, as for `accuracy`."""
    predictions, labels, weights = matching(predictions, labels, weights)
    errors = math_ops.abs(predictions - labels)
    return mean(errors, weights, metrics_collections, updates_collections, name or "mean_absolute_error")


def mean_squared_error(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike | None = None,
    metrics_collections: CollectionNames | None = None,
    updates_collections: CollectionNames | None = None,
    name: str | None = None,
) -> Metric:
    """The mean of ``(predictions - labels) ** 2``; arguments and result, float32 scalars, as for `accuracy`."""
    predictions, labels, weights = matching(predictions, labels, weights)
    errors = math_ops.squared_difference(predictions, labels)
    return mean(errors, weights, metrics_collections, updates_collections, name or "mean_squared_error")


def root_mean_squared_error(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike | None = None,
    metrics_collections: CollectionNames | None = None,
    updates_collections: CollectionNames | None = None,
    name: str | None = None,
) -> Metric:
    """The root of `mean_squared_error`; arguments and result, float32 scalars, as for `accuracy`."""
    square = mean_squared_error(labels, predictions, weights, name=name or "root_mean_squared_error")
    return collected(
        math_ops.sqrt(square.value), math_ops.sqrt(square.update_op), metrics_collections, updates_collections
    )


def mean_relative_error(
    labels: TensorLike,
    predictions: TensorLike,
    normalizer: TensorLike,
    weights: TensorLike | None = None,
    metrics_collections: CollectionNames | None = None,
    updates_collections: CollectionNames | None = None,
    name: str | None = None,
) -> Metric:
    """The mean of ``abs(predictions - labels) / normalizer``, 0 where the normalizer is 0.

    `normalizer` has the shape of the labels. Further arguments and the result, float32 scalars, are as for `accuracy`.
    """
    predictions, labels, weights = matching(predictions, labels, weights)
    errors = math_ops.div_no_nan(math_ops.abs(labels - predictions), array_ops.cast(normalizer, predictions.dtype))
    return mean(errors, weights, metrics_collections, updates_collections, name or "mean_relative_error")


def mean_cosine_distance(
    labels: TensorLike,
    predictions: TensorLike,
    dim: int,
    weights: TensorLike | None = None,
    metrics_collections: CollectionNames | None = None,
    updates_collections: CollectionNames | None = None,
    name: str | None = None,
) -> Metric:
    """The mean over vectors of length 1 of one minus their cosine.

    Args:
        labels: The true vectors.
        predictions: The predicted vectors, of the same shape.
        dim: The dimension along which a vector lies.
        weights: A scalar, or the shape of the labels with size 1 along `dim`.
        metrics_collections: Collections for the value.
        updates_collections: Collections for the update.
        name: Name of the variable scope.

    Returns:
        The value and the update, float32 scalars.
    """
    predictions, labels, _ = matching(predictions, labels, None)
    cosines = math_ops.reduce_sum(predictions * labels, dim, keepdims=True)
    similarity = mean(cosines, weights, name=name or "mean_cosine_distance")
    return collected(1.0 - similarity.value, 1.0 - similarity.update_op, metrics_collections, updates_collections)


def percentage_below(
    values: TensorLike,
    threshold: TensorLike,
    weights: TensorLike | None = None,
    metrics_collections: CollectionNames | None = None,
    updates_collections: CollectionNames | None = None,
    name: str | None = None,
) -> Metric:
    """The fraction of values below a threshold, a scalar; further arguments and the result as for `mean`."""
    is_below = array_ops.to_float(math_ops.less(values, threshold))
    return mean(is_below, weights, metrics_collections, updates_collections, name or "percentage_below_threshold")


def mean_per_class_accuracy(
    labels: TensorLike,
    predictions: TensorLike,
    num_classes: int,
    weights: TensorLike | None = None,
    metrics_collections: CollectionNames | None = None,
    updates_collections: CollectionNames | None = None,
    name: str | None = None,
) -> Metric:
    """The mean over classes of how often a class was predicted where it was true.

    Args:
        labels: Integers, the true classes, any shape.
        predictions: The same shape, the predicted ones.
        num_classes: Number of classes.
        weights: A scalar, or a shape that broadcasts to that of the labels; 1 when None.
        metrics_collections: Collections for the value.
        updates_collections: Collections for the update, a vector with the accuracy of each class.
        name: Name of the variable scope.

    Returns:
        The value, a float32 scalar, and the update, a vector with the accuracy of each class.
    """
    with metric_scope(name, "mean_accuracy"):
        labels = array_ops.to_int64(labels)
        predictions, labels, weights = matching(array_ops.to_int64(predictions), labels, weights)
        total = metric_variable([num_classes], dtypes.float32, "total")
        count = metric_variable([num_classes], dtypes.float32, "count")
        numbers = array_ops.ones_like(labels, dtypes.float32) if weights is None else spread(weights, labels)
        hits = array_ops.to_float(math_ops.equal(predictions, labels)) * numbers
        classes = array_ops.reshape(labels, [-1])
        new_total = sparse_state_ops.scatter_add(total, classes, array_ops.reshape(hits, [-1]))
        new_count = sparse_state_ops.scatter_add(count, classes, array_ops.reshape(numbers, [-1]))
        value = math_ops.reduce_mean(quotient(total.value(), count.value(), "per_class"), name="mean_accuracy")
        return collected(value, quotient(new_total, new_count, "update_op"), metrics_collections, updates_collections)


def matrix_so_far(
    labels: TensorLike, predictions: TensorLike, num_classes: int, weights: TensorLike | None = None
) -> tuple[Variable, Tensor]:
    """The confusion matrix of all batches.

    Args:
        labels: Integers, the true classes, any shape.
        predictions: As many predicted classes.
        num_classes: Number of classes.
        weights: A scalar, or a shape that broadcasts to that of the labels; 1 when None.

    Returns:
        The matrix ``[num_classes, num_classes]`` of float64, a local variable, and the update, the matrix with a batch.
    """
    labels = convert_to_tensor(labels)
    matrix = metric_variable([num_classes, num_classes], dtypes.float64, "total_confusion_matrix")
    if weights is not None:
        weights = array_ops.reshape(spread(weights, labels), [-1])
    batch = confusion_matrix(
        array_ops.reshape(labels, [-1]),
        array_ops.reshape(predictions, [-1]),
        num_classes,
        dtypes.float64,
        weights=weights,
    )
    return matrix, matrix.assign_add(batch, name="update_op")


def mean_iou(
    labels: TensorLike,
    predictions: TensorLike,
    num_classes: int,
    weights: TensorLike | None = None,
    metrics_collections: CollectionNames | None = None,
    updates_collections: CollectionNames | None = None,
    name: str | None = None,
) -> Metric:
    """The mean over classes of intersection over union: of hits over all where a class is true or predicted.

    Args:
        labels: Integers, the true classes, any shape.
        predictions: The same shape, the predicted ones.
        num_classes: Number of classes.
        weights: A scalar, or a shape that broadcasts to that of the labels; 1 when None.
        metrics_collections: Collections for the value.
        updates_collections: Collections for the update, the confusion matrix.
        name: Name of the variable scope.

    Returns:
        The value, a float32 scalar, and the update, the confusion matrix ``[num_classes, num_classes]``.
    """
    with metric_scope(name, "mean_iou"):
        predictions, labels, weights = matching(predictions, labels, weights)
        matrix, update_op = matrix_so_far(labels, predictions, num_classes, weights)
        counts = array_ops.to_float(matrix.value())
        hits = matrix_ops.diag_part(counts)
        union = math_ops.reduce_sum(counts, 0) + math_ops.reduce_sum(counts, 1) - hits
        classes = math_ops.reduce_sum(array_ops.to_float(math_ops.greater(union, 0.0)))
        value = quotient(math_ops.reduce_sum(quotient(hits, union, "iou")), classes, "mean_iou")
        return collected(value, update_op, metrics_collections, updates_collections)
