"""Metrics of the estimators of ``tf.contrib.learn``: `MetricSpec`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final

from tfray.ops.arrays.grouping_ops import no_op


class MetricSpec:
    """A metric of `Estimator.evaluate`.

    Args:
        metric_fn: Function of predictions, labels and weights, such as those of `tf.contrib.metrics` and `tf.metrics`.
            It gets them by the names of its arguments: ``predictions``, ``labels`` and ``weights``, their singulars, or
            ``targets``. One that has no such names gets predictions and labels in this order.
        prediction_key: Name of the predictions it takes; with None, there may be only one.
        label_key: Name of the labels it takes; likewise.
        weight_key: Name of the feature that weights it; none when None.
    """

    def __init__(
        self,
        metric_fn: Callable[..., Any],
        prediction_key: str | None = None,
        label_key: str | None = None,
        weight_key: str | None = None,
    ) -> None:
        self.metric_fn, self.prediction_key, self.label_key = metric_fn, prediction_key, label_key
        self.weight_key = weight_key

    def create_metric_ops(self, inputs: Any, labels: Any, predictions: Any) -> Any:
        """Value and update of the metric, for features, labels and predictions.

        Raises:
            KeyError: There are no predictions, labels or weights of that name.
            ValueError: There are several, and no name of one; or a name, and only one without a name.
        """
        predicted = _part("prediction", predictions, self.prediction_key)
        labelled = _part("label", labels, self.label_key)
        of_predictions, of_labels, of_weights = _argument_names(self.metric_fn)
        weights = {of_weights or "weights": _part("weight", inputs, self.weight_key)} if self.weight_key else {}
        if of_predictions is None or of_labels is None:
            return self.metric_fn(predicted, labelled, **weights)
        return self.metric_fn(**{of_predictions: predicted, of_labels: labelled}, **weights)


_ARGUMENTS: Final = ({"predictions", "prediction"}, {"labels", "label", "targets", "target"}, {"weights", "weight"})
"""What functions that are metrics call predictions, labels and weights."""


def _argument_names(function: Callable[..., Any]) -> list[str | None]:
    """What a function calls predictions, labels and weights; None for those it does not name."""
    there = inspect.signature(function).parameters
    return [next((name for name in there if name in names), None) for names in _ARGUMENTS]


def _part(what: str, values: Any, key: str | None) -> Any:
    if key is None:
        if isinstance(values, Mapping) and len(values) != 1:
            raise ValueError(
                f"MetricSpec without specified {what}_key requires {what}s tensor or single element dict, got {values}"
            )
        return next(iter(values.values())) if isinstance(values, Mapping) else values
    if not isinstance(values, Mapping):
        raise ValueError(f"MetricSpec with {what}_key specified requires {what}s dict, got {values}.")
    if key not in values:
        raise KeyError(f"Key {key!r} missing from {[*values]}.")
    return values[key]


def metric_ops(metrics: Mapping[Any, Any], features: Any, labels: Any, predictions: Any) -> dict[str, Any]:
    """Values and updates of metrics by their names: each a `MetricSpec`, or a function of predictions and labels.

    What is no pair is a value that needs no update.

    Raises:
        ValueError: A name is a tuple, and not of the name of a metric and that of its predictions.
    """
    made = {}
    for name, spec in metrics.items():
        key = None
        if isinstance(name, tuple):  # of 1.0: the name of a metric, and of the predictions that it takes
            if len(name) != 2:
                raise ValueError(f"metric {name}: expected a name, or a pair of its name and that of its predictions")
            name, key = name
        spec = spec if isinstance(spec, MetricSpec) else MetricSpec(spec, key)
        found = spec.create_metric_ops(features, labels, predictions)
        made[name] = found if isinstance(found, tuple) else (found, no_op())
    return made
