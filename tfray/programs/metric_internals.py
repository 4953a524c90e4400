"""What TensorFlow's metrics are made of and keep to themselves, for programs that make metrics of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import DTypeLike
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.tensor_shape import ShapeLike, TensorShape
from tfray.framework.type_aliases import CollectionNames, TensorLike
from tfray.library.metrics import metric_variables
from tfray.library.metrics.binary_metrics import counts_at_thresholds
from tfray.library.variables.variables import Variable
from tfray.ops.arrays.array_ops import ones_like
from tfray.ops.arrays.grouping_ops import no_op
from tfray.ops.arrays.shape_ops import cast, shape, size
from tfray.ops.checks.print_assert_ops import Assert
from tfray.ops.control.control_flow_ops import cond
from tfray.ops.math.comparison_ops import equal, logical_or
from tfray.ops.math.reduction_ops import reduce_all

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


def assert_broadcastable(weights: TensorLike, values: TensorLike) -> Operation:
    """An operation that checks that weights can be spread over values; see `broadcast_weights`.

    It is checked when the graph is built, if the shapes are known then.
    """
    weights, values = convert_to_tensor(weights), convert_to_tensor(values)
    ranks = weights.shape.rank, values.shape.rank
    sizes = [] if None in ranks else list(zip(weights.shape.as_list(), values.shape.as_list(), strict=False))
    fits = ranks[0] in (0, ranks[1]) and all(a in (None, 1) or b is None or a == b for a, b in sizes)
    if None not in ranks and not fits:
        raise ValueError(
            f"weights can not be broadcast to values. values.rank={ranks[1]}. weights.rank={ranks[0]}. "
            f"values.shape={values.shape}. weights.shape={weights.shape}."
        )
    is_known = ranks[0] == 0 or (None not in ranks and all(a == 1 or None not in (a, b) for a, b in sizes))
    if is_known:
        return no_op("assert_broadcastable")
    shapes = shape(weights), shape(values)
    same_rank = equal(size(shapes[0]), size(shapes[1]))
    fits_sizes = cond(
        same_rank, lambda: reduce_all(logical_or(equal(shapes[0], 1), equal(*shapes))), lambda: convert_to_tensor(False)
    )
    told = ["weights can not be broadcast to values. values.shape=", shapes[1], "weights.shape=", shapes[0]]
    checked: Operation = Assert(logical_or(equal(size(shapes[0]), 0), fits_sizes), told)
    return checked
