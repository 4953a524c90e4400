"""The parts of metrics: local variables that add up over steps, and quotients that are 0 for an empty sum."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, overload

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import DTypeLike
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import CollectionNames, TensorLike
from tfray.library.metrics.confusion import remove_squeezable_dimensions
from tfray.library.variables.variable_scope import variable_scope
from tfray.library.variables.variables import Variable, VariableAggregation, VariableSynchronization
from tfray.ops.arrays import array_ops
from tfray.ops.checks import check_ops
from tfray.ops.checks.check_ops import broadcastable
from tfray.ops.math import math_ops


class Metric(NamedTuple):
    """A metric: its value so far, and the operation that adds a batch, which returns the new value."""

    value: Any
    update_op: Any


@contextmanager
def metric_scope(name: str | None, default: str) -> Iterator[None]:
    """The scope of a metric's variables and operations."""
    with variable_scope(name, default):
        yield


def metric_variable(shape: Sequence[int | Tensor] | Tensor | TensorShape, dtype: DTypeLike, name: str) -> Variable:
    """A sum that starts at 0: a local variable, also in ``GraphKeys.METRIC_VARIABLES``."""
    return Variable(
        lambda: array_ops.zeros(shape, dtype),
        trainable=False,
        collections=[GraphKeys.LOCAL_VARIABLES, GraphKeys.METRIC_VARIABLES],
        name=name,
        synchronization=VariableSynchronization.ON_READ,  # each replica of a strategy adds to it
        aggregation=VariableAggregation.SUM,
    )


def collected(
    value: TensorLike,
    update_op: Tensor | Operation,
    metrics_collections: CollectionNames | None,
    updates_collections: CollectionNames | None,
) -> Metric:
    """A metric whose parts are added to collections."""
    graph = get_default_graph()
    if metrics_collections:
        graph.add_to_collections(metrics_collections, value)
    if updates_collections:
        graph.add_to_collections(updates_collections, update_op)
    return Metric(value, update_op)


def quotient(numerator: TensorLike, denominator: TensorLike, name: str) -> Tensor:
    """``numerator / denominator``, 0 where the denominator is 0 or less."""
    numerator, denominator = convert_to_tensor(numerator), convert_to_tensor(denominator)
    return math_ops.div_no_nan(numerator, math_ops.maximum(denominator, array_ops.zeros_like(denominator)), name=name)


def matching(
    predictions: TensorLike, labels: TensorLike, weights: TensorLike | None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Predictions, labels and weights without last dimensions of size 1 that only some of them have.

    Raises:
        InvalidArgumentError: The shapes of predictions and labels differ.
    """
    labels, predictions = remove_squeezable_dimensions(labels, predictions)
    if not predictions.shape.is_compatible_with(labels.shape):
        raise InvalidArgumentError(
            f"predictions have shape {predictions.shape}, labels {labels.shape}: expected one shape"
        )
    return predictions, labels, fitting_weights(weights, predictions)


@overload
def fitting_weights(weights: TensorLike, values: Tensor) -> Tensor: ...


@overload
def fitting_weights(weights: None, values: Tensor) -> None: ...


def fitting_weights(weights: TensorLike | None, values: Tensor) -> Tensor | None:
    """Weights for values: their rank is 0, or becomes that of the values by a last dimension of size 1.

    Raises:
        InvalidArgumentError: They have another rank, or sizes that do not match: now, or, where shapes are not known,
            in a step.
    """
    if weights is None:
        return None
    weights = convert_to_tensor(weights)
    rank, wanted = weights.shape.rank, values.shape.rank
    if rank == 0:
        return weights
    if rank is None or wanted is None:
        return broadcastable(_fitted_in_a_step(weights, values), values)
    if rank == wanted + 1 and weights.shape.as_list()[-1] in (1, None):
        weights = array_ops.squeeze(weights, [-1])
    elif rank == wanted - 1:
        weights = array_ops.expand_dims(weights, -1)
    return broadcastable(weights, values)


def _fitted_in_a_step(weights: Tensor, values: Tensor) -> Tensor:
    """`fitting_weights` where a rank is only known when a step runs."""
    sizes = array_ops.shape(weights)
    rank = array_ops.size(sizes)
    beyond = rank - array_ops.rank(values)
    is_one = math_ops.reduce_all(math_ops.equal(sizes[-1:], 1))
    dropped = array_ops.cast(math_ops.logical_and(math_ops.equal(beyond, 1), is_one), dtypes.int32)
    added = array_ops.cast(math_ops.logical_and(math_ops.equal(beyond, -1), math_ops.greater(rank, 0)), dtypes.int32)
    return array_ops.reshape(
        weights, array_ops.concat([sizes[: rank - dropped], array_ops.ones([added], dtypes.int32)], 0)
    )


def spread(weights: TensorLike, values: Tensor) -> Tensor:
    """Weights in the shape of values, as float32."""
    return array_ops.ones_like(values, dtypes.float32) * array_ops.cast(weights, dtypes.float32)


def checked_scores(predictions: Tensor) -> Tensor:
    """Predictions that must be in ``[0, 1]``; where they are not, the step fails, or for constants the call."""
    what = "predictions must be in [0, 1]"
    checks = [
        check_ops.assert_greater_equal(predictions, array_ops.zeros([], predictions.dtype), message=what),
        check_ops.assert_less_equal(predictions, array_ops.ones([], predictions.dtype), message=what),
    ]
    with get_default_graph().control_dependencies(checks):
        return array_ops.identity(predictions)
