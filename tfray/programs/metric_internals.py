"""What TensorFlow's metrics are made of and keep to themselves, for programs that make metrics of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import DTypeLike
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.tensor_shape import ShapeLike, TensorShape
from tfray.framework.type_aliases import CollectionNames, TensorLike
from tfray.library.metrics import metric_variables
from tfray.library.metrics.binary_metrics import counts_at_thresholds
from tfray.library.variables.variables import Variable
from tfray.ops.arrays.array_ops import ones_like
from tfray.ops.arrays.shape_ops import cast
from tfray.ops.checks.check_ops import assert_broadcastable

_OUTCOMES: Final = {"tp": "true_positives", "fn": "false_negatives", "tn": "true_negatives", "fp": "false_positives"}


def remove_squeezable_dimensions(
    predictions: TensorLike, labels: TensorLike | None, weights: TensorLike | None
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Predictions, labels and weights without last dimensions of size 1 that only some of them have.

    Raises:
        InvalidArgumentError: The shapes of predictions and labels differ.
    """
    if labels is None:
        predictions = convert_to_tensor(predictions)
        return predictions, None, metric_variables.fitting_weights(weights, predictions)
    return metric_variables.matching(predictions, labels, weights)


def metric_variable(
    shape: ShapeLike, dtype: DTypeLike, validate_shape: bool = True, name: str = "Variable"
) -> Variable:
    """A sum that starts at 0, a local variable."""
    return metric_variables.metric_variable(TensorShape(shape), dtype, name)


def aggregate_variable(v: Any, collections: CollectionNames | None) -> Any:
    """The value of a metric, which is added to collections."""
    value = v.value() if isinstance(v, Variable) else v
    if collections:
        get_default_graph().add_to_collections(collections, value)
    return value


def confusion_matrix_at_thresholds(
    labels: TensorLike,
    predictions: TensorLike,
    thresholds: Sequence[float],
    weights: TensorLike | None = None,
    includes: Sequence[str] | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Counts so far for each threshold, and what adds a batch, by ``tp``, ``fn``, ``tn`` and ``fp``.

    Args:
        labels: Truth values, of any shape.
        predictions: Scores of the same shape.
        thresholds: A score above one says yes.
        weights: What each counts, of a shape that broadcasts to that of the labels; 1 when None.
        includes: Which of the counts; all when None.

    Raises:
        ValueError: There is no such count.
    """
    if unknown := set(includes or ()) - set(_OUTCOMES):
        raise ValueError(f"Invalid key: {', '.join(sorted(unknown))}.")
    chosen = {key: outcome for key, outcome in _OUTCOMES.items() if includes is None or key in includes}
    values, updates = counts_at_thresholds(labels, predictions, thresholds, weights, list(chosen.values()))
    return tuple({key: each[outcome] for key, outcome in chosen.items()} for each in (values, updates))  # type: ignore[return-value]


def broadcast_weights(weights: TensorLike, values: TensorLike) -> Tensor:
    """Weights in the shape and dtype of values. Each of their dimensions is that of the values, or 1.

    Raises:
        ValueError: They have another rank than the values and 0, or sizes that do not match. Where shapes are not known
            before, the step raises InvalidArgumentError.
    """
    values, weights = convert_to_tensor(values), convert_to_tensor(weights)
    with get_default_graph().control_dependencies([assert_broadcastable(weights, values)]):
        weights = weights if weights.dtype == values.dtype else cast(weights, values.dtype)
        return ones_like(values) * weights
