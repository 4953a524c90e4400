"""Targets of ``tf.contrib.layers``: what heads of ``tf.contrib.learn`` were before there were heads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor
from tfray.library.metrics import binary_metrics, mean_metrics
from tfray.ops.arrays import array_ops
from tfray.ops.math import math_ops
from tfray.ops.math.search_ops import argmax
from tfray.ops.nn import cross_entropy_ops
from tfray.programs.learn.learn_keys import MetricKey, ProblemType

Metrics = Mapping[Any, Callable[..., Any]] | None
"""Functions of predictions and labels by name; of classes also by name and what they take."""


class TargetColumn:
    """What is to be learnt, and how far off logits are.

    Attributes:
        num_label_columns: How many logits an example has.
        label_name: Name of the labels.
        weight_column_name: Name of the feature that weights examples.
        problem_type: One of `tf.contrib.learn.ProblemType`.
    """

    def __init__(
        self,
        losses: Callable[[Tensor, Tensor], Tensor],
        num_label_columns: int,
        label_name: str | None,
        weight_column_name: str | None,
        problem_type: int,
    ) -> None:
        self._losses, self.num_label_columns, self.label_name = losses, num_label_columns, label_name
        self.weight_column_name, self.problem_type = weight_column_name, problem_type

    def logits_to_predictions(self, logits: Tensor, proba: bool = False) -> Tensor:
        """Predictions, shape ``[batch]`` or ``[batch, n]``; with `proba` the probabilities of classes."""
        return array_ops.squeeze(logits, [1]) if self.num_label_columns == 1 else logits

    def get_weight_tensor(self, features: Mapping[str, Any]) -> Tensor | None:
        """The weights of the examples, float32 of shape ``[batch]``; None if they have none."""
        if not self.weight_column_name:
            return None
        return array_ops.reshape(array_ops.cast(features[self.weight_column_name], dtypes.float32), [-1])

    def _weighted(self, logits: Tensor, target: Any, features: Mapping[str, Any]) -> tuple[Tensor, Tensor | None]:
        """The loss of each example, and the weights."""
        losses = self._losses(logits, convert_to_tensor(target))
        weights = self.get_weight_tensor(features)
        return (losses, None) if weights is None else (array_ops.reshape(losses, [-1]) * weights, weights)

    def training_loss(
        self, logits: Tensor, target: Any, features: Mapping[str, Any], name: str = "training_loss"
    ) -> Tensor:
        """The loss to train on, a scalar: the mean over all examples of the loss times the weight."""
        return math_ops.reduce_mean(self._weighted(logits, target, features)[0], name=name)

    def loss(self, logits: Tensor, target: Any, features: Mapping[str, Any]) -> Tensor:
        """The loss to report, a scalar: the mean by weights."""
        losses, weights = self._weighted(logits, target, features)
        if weights is None:
            return math_ops.reduce_mean(losses, name="loss")
        return math_ops.divide(math_ops.reduce_sum(losses), math_ops.reduce_sum(weights), name="loss")

    def get_eval_ops(
        self, features: Mapping[str, Any], logits: Tensor, labels: Any, metrics: Metrics = None
    ) -> dict[Any, Any]:
        """Metrics by name, as pairs of value and update: ``loss`` and those that are asked for."""
        found = {MetricKey.LOSS: mean_metrics.mean(self.loss(logits, labels, features))}
        if metrics:
            predictions = self.logits_to_predictions(logits)
            found |= _measured(predictions, labels, metrics, self.get_weight_tensor(features))
        return found


def _measured(predictions: Tensor, labels: Any, metrics: Mapping[Any, Any], weights: Tensor | None) -> dict[Any, Any]:
    labels = array_ops.cast(labels, predictions.dtype)
    given = {} if weights is None else {"weights": weights}
    return {name: metric(predictions, labels, **given) for name, metric in metrics.items()}


class _Classes(TargetColumn):
    def logits_to_predictions(self, logits: Tensor, proba: bool = False) -> Tensor:
        if self.num_label_columns == 1:
            logits = array_ops.concat([array_ops.zeros_like(logits), logits], 1)
        return cross_entropy_ops.softmax(logits) if proba else argmax(logits, 1)

    def get_eval_ops(
        self, features: Mapping[str, Any], logits: Tensor, labels: Any, metrics: Metrics = None
    ) -> dict[Any, Any]:
        """See `TargetColumn.get_eval_ops`.

        Names are strings, or pairs of a name and ``classes`` or ``probabilities``, what the function takes. Of two
        classes there are more metrics.

        Raises:
            ValueError: A name is neither.
        """
        found = {MetricKey.LOSS: mean_metrics.mean(self.loss(logits, labels, features))}
        if self.num_label_columns == 1:
            found |= _binary(math_ops.sigmoid(logits), array_ops.cast(labels, dtypes.float32))
        wanted: dict[str, dict[str, Any]] = {"classes": {}, "probabilities": {}}
        for name, metric in (_DEFAULT if metrics is None else metrics).items():
            short, kind = name if isinstance(name, tuple) and len(name) == 2 else (name, "classes")
            if not isinstance(short, str) or kind not in wanted:
                raise ValueError(
                    f"Ignoring metric {name}. Its name is a string, or a pair of one and 'classes' or 'probabilities'."
                )
            wanted[kind][short] = metric
        for kind, chosen in wanted.items():
            if chosen:
                predictions = self.logits_to_predictions(logits, proba=kind == "probabilities")
                found |= _measured(predictions, labels, chosen, self.get_weight_tensor(features))
        return found


def _accuracy(predictions: Tensor, labels: Any, weights: Any = None) -> Any:
    return mean_metrics.accuracy(labels, predictions, weights)


_DEFAULT: Final = {("accuracy", "classes"): _accuracy}
"""What is measured of classes when nothing is asked for."""

_LABEL_MEAN: Final = ("labels/actual_target_mean", "accuracy/baseline_target_mean")


def _binary(likely: Tensor, labels: Tensor) -> dict[Any, Any]:
    """What is measured of two classes."""
    half = 0.5
    above = array_ops.cast(math_ops.greater_equal(likely, half), dtypes.float32)
    precision, precision_update = binary_metrics.precision_at_thresholds(labels, likely, [half])
    recall, recall_update = binary_metrics.recall_at_thresholds(labels, likely, [half])
    return {
        MetricKey.PREDICTION_MEAN: mean_metrics.mean(likely),
        **{name: mean_metrics.mean(labels) for name in _LABEL_MEAN},
        MetricKey.AUC: binary_metrics.auc(labels, likely),
        MetricKey.ACCURACY_MEAN % half: mean_metrics.accuracy(labels, above),
        MetricKey.PRECISION_MEAN % half: (array_ops.squeeze(precision), precision_update),
        MetricKey.RECALL_MEAN % half: (array_ops.squeeze(recall), recall_update),
    }


def _column(target: Tensor) -> Tensor:
    return array_ops.expand_dims(target, 1) if target.shape.rank == 1 else target


def _squared(logits: Tensor, target: Tensor) -> Tensor:
    wanted = _column(target)
    logits.shape.assert_is_compatible_with(wanted.shape)
    return math_ops.squared_difference(logits, array_ops.cast(wanted, dtypes.float32))


def _logistic(logits: Tensor, target: Tensor) -> Tensor:
    wanted = array_ops.cast(_column(target), dtypes.float32)
    return cross_entropy_ops.sigmoid_cross_entropy_with_logits(labels=wanted, logits=logits)


def _softmax(logits: Tensor, target: Tensor) -> Tensor:
    if not target.dtype.is_integer:
        raise ValueError(f"Target's dtype should be integer Instead got {target.dtype}.")
    wanted = array_ops.squeeze(target, [1]) if target.shape.rank == 2 else target
    return cross_entropy_ops.sparse_softmax_cross_entropy_with_logits(labels=wanted, logits=logits)


def multi_class_target(
    n_classes: int, label_name: str | None = None, weight_column_name: str | None = None
) -> TargetColumn:
    """A target of classes, each example of one.

    Args:
        n_classes: How many classes there are; of two, there is one logit.
        label_name: Name of the labels.
        weight_column_name: Name of the feature that weights examples.

    Returns:
        The target.

    Raises:
        ValueError: There are not two classes.
    """
    if n_classes < 2:
        raise ValueError("n_classes must be > 1 for classification.")
    losses, logits = (_logistic, 1) if n_classes == 2 else (_softmax, n_classes)
    return _Classes(losses, logits, label_name, weight_column_name, ProblemType.CLASSIFICATION)


def regression_target(
    label_name: str | None = None, weight_column_name: str | None = None, label_dimension: int = 1
) -> TargetColumn:
    """A target of numbers, `label_dimension` of each example; squared errors are the loss. See `multi_class_target`."""
    return TargetColumn(_squared, label_dimension, label_name, weight_column_name, ProblemType.LINEAR_REGRESSION)
