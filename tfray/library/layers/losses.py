"""Losses, which training minimises. Each is added to a collection of the graph.

All losses take `weights`, a number or tensor that scales the loss of each element. Its rank is 0 or that of the losses,
and each of its sizes is 1 or that of the losses. A `reduction` makes one number of the weighted losses, see
`Reduction`. The number goes to the collection `loss_collection` (by default ``GraphKeys.LOSSES``; None for no
collection), where `get_total_loss` finds it.
"""

from __future__ import annotations

from typing import Any, Final

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.arguments import by_either_name
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Graph, Tensor, get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.framework.scopes import current_mode, name_scope
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays import array_ops
from tfray.ops.arrays.source_ops import constant
from tfray.ops.checks.check_ops import broadcastable
from tfray.ops.math import math_ops
from tfray.ops.nn import cross_entropy_ops, nn_ops

# fmt: off
__all__ = [
    "Reduction", "absolute_difference", "add_loss", "compute_weighted_loss", "cosine_distance", "get_losses",
    "get_regularization_loss", "get_regularization_losses", "get_total_loss", "hinge_loss", "huber_loss", "log_loss",
    "mean_pairwise_squared_error", "mean_squared_error", "sigmoid_cross_entropy", "softmax_cross_entropy",
    "sparse_softmax_cross_entropy",
]
# fmt: on


class Reduction:
    """How the weighted losses of all elements become one number.

    Attributes:
        NONE: No reduction: the result has a loss for each element.
        SUM: Their sum.
        SUM_OVER_BATCH_SIZE: The sum over the number of elements.
        SUM_BY_NONZERO_WEIGHTS: The sum over the number of elements with a weight other than 0. The default.
        SUM_OVER_NONZERO_WEIGHTS: Its older name.
        MEAN: The sum over the sum of the weights.
    """

    NONE: Final = "none"
    SUM: Final = "weighted_sum"
    SUM_OVER_BATCH_SIZE: Final = "weighted_sum_over_batch_size"
    MEAN: Final = "weighted_mean"
    SUM_BY_NONZERO_WEIGHTS: Final = "weighted_sum_by_nonzero_weights"
    SUM_OVER_NONZERO_WEIGHTS: Final = SUM_BY_NONZERO_WEIGHTS

    @classmethod
    def all(cls) -> tuple[str, ...]:
        """All reductions."""
        return (cls.NONE, cls.SUM, cls.MEAN, cls.SUM_OVER_BATCH_SIZE, cls.SUM_BY_NONZERO_WEIGHTS)

    @classmethod
    def validate(cls, key: str) -> None:
        """Raise `InvalidArgumentError` unless `key` is a reduction."""
        if key not in cls.all():
            raise InvalidArgumentError(f"reduction is {key!r}, expected one of {', '.join(cls.all())}")


def compute_weighted_loss(
    losses: TensorLike,
    weights: TensorLike = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """Weight and reduce the losses of elements.

    Args:
        losses: Shape ``[...]``, the losses.
        weights: A scalar, or a tensor of the rank of the losses, with each size 1 or theirs; see the module.
        scope: Name scope of the operations.
        loss_collection: Collection to which the loss is added.
        reduction: One of `Reduction`.

    Returns:
        A scalar, or without reduction the weighted losses, of the dtype of `losses`.

    Raises:
        InvalidArgumentError: The weights do not fit the losses: now, or, where shapes are not known, in a step.
    """
    Reduction.validate(reduction)
    with name_scope(scope, "weighted_loss", (losses, weights)):
        losses = convert_to_tensor(losses)
        dtype = losses.dtype
        losses = array_ops.cast(losses, dtypes.float32)
        weighted = losses
        if not _is_one(weights):
            weights = broadcastable(array_ops.cast(weights, dtypes.float32), losses)
            weighted = math_ops.multiply(losses, weights)
        loss = array_ops.cast(_reduced(weighted, losses, weights, reduction), dtype)
        add_loss(loss, loss_collection)
        _reductions(get_default_graph())[:] = [reduction]
        return loss


def _reductions(graph: Graph) -> list[str]:
    """How the last loss of a graph was reduced; empty if there was none."""
    found: list[str] = graph.root.extra("last_loss_reduction", list)
    return found


def last_loss_is_sum(graph: Graph) -> bool:
    """Whether the last loss that `compute_weighted_loss` made in a graph is a sum."""
    return _reductions(graph) == [Reduction.SUM]


def share_of_replica(loss: Tensor) -> Tensor:
    """What a replica has to minimise where an estimator trains several, whose gradients are added up.

    A loss that is a mean is divided by the number of replicas, so that all of them together have the mean too.

    Args:
        loss: A scalar, the loss of the replica.

    Returns:
        A scalar.
    """
    mode = current_mode()
    if mode is None or not mode.strategy._scales_loss or last_loss_is_sum(loss.graph):
        return loss
    replicas = mode.strategy.num_replicas_in_sync
    return loss if replicas == 1 else loss * (1.0 / replicas)


def _is_one(value: TensorLike) -> bool:
    return isinstance(value, (int, float)) and value == 1


def _reduced(weighted: Tensor, losses: Tensor, weights: TensorLike, reduction: str) -> Tensor:
    if reduction == Reduction.NONE:
        return weighted
    total = math_ops.reduce_sum(weighted)
    if reduction == Reduction.SUM:
        return total
    if reduction == Reduction.MEAN:
        count = math_ops.reduce_sum(array_ops.ones_like(losses) * weights)
    elif reduction == Reduction.SUM_OVER_BATCH_SIZE:
        count = array_ops.cast(array_ops.size(losses), dtypes.float32)
    else:
        count = _number_present(losses, weights)
    return math_ops.div_no_nan(total, count, name="value")


def _number_present(losses: Tensor, weights: TensorLike, per_example: bool = False) -> Tensor:
    """How many losses have a weight other than 0. With `per_example`, for each example: ``[batch, 1, ..., 1]``."""
    if not per_example and _is_one(weights):
        return array_ops.cast(array_ops.size(losses), dtypes.float32)
    with get_default_graph().name_scope("num_present"):
        present = array_ops.cast(math_ops.not_equal(array_ops.cast(weights, dtypes.float32), 0.0), dtypes.float32)
        everywhere = array_ops.ones_like(losses) * present
        if per_example:
            return math_ops.reduce_sum(everywhere, _all_but_first(everywhere), keepdims=True)
        return math_ops.reduce_sum(everywhere)


def _all_but_first(tensor: Tensor) -> Any:
    rank = tensor.shape.rank
    return array_ops.range(1, array_ops.rank(tensor)) if rank is None else list(range(1, rank))


def _pair(first: TensorLike, second: TensorLike, names: str) -> tuple[Tensor, Tensor]:
    """Two tensors as float32, which must have one shape."""
    for value, name in zip((first, second), names.split(), strict=True):
        if value is None:
            raise InvalidArgumentError(f"{name} is None, expected a tensor")
    first, second = array_ops.cast(first, dtypes.float32), array_ops.cast(second, dtypes.float32)
    if not first.shape.is_compatible_with(second.shape):
        one, other = names.split()
        raise InvalidArgumentError(f"{one} have shape {first.shape}, {other} {second.shape}: expected one shape")
    return first, second


def absolute_difference(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """``abs(predictions - labels)`` as a loss.

    Args:
        labels: The true values, any shape.
        predictions: The predicted values, of the same shape.
        weights: A scalar, or a tensor of the rank of the losses, with each size 1 or theirs; see the module.
        scope: Name scope of the operations.
        loss_collection: Collection to which the loss is added.
        reduction: One of `Reduction`.

    Returns:
        A scalar, or without reduction a loss for each element.

    Raises:
        InvalidArgumentError: The shapes differ, or the weights do not fit.
    """
    with name_scope(scope, "absolute_difference", (predictions, labels, weights)) as scope:
        labels, predictions = _pair(labels, predictions, "labels predictions")
        losses = math_ops.abs(predictions - labels)
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def mean_squared_error(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """``(predictions - labels) ** 2`` as a loss.

    Args:
        labels: The true values, any shape.
        predictions: The predicted values, of the same shape.
        weights: A scalar, or a tensor of the rank of the losses, with each size 1 or theirs; see the module.
        scope: Name scope of the operations.
        loss_collection: Collection to which the loss is added.
        reduction: One of `Reduction`.

    Returns:
        A scalar, or without reduction a loss for each element.

    Raises:
        InvalidArgumentError: The shapes differ, or the weights do not fit.

    Examples:
        >>> session.run(tf.losses.mean_squared_error(labels=[1.0, 2.0], predictions=[1.0, 4.0]))
        np.float32(2.0)
    """
    with name_scope(scope, "mean_squared_error", (predictions, labels, weights)) as scope:
        labels, predictions = _pair(labels, predictions, "labels predictions")
        losses = math_ops.squared_difference(predictions, labels)
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def huber_loss(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike = 1.0,
    delta: float = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """Half the square of the error up to `delta`, and a straight line beyond.

    ``0.5 * error ** 2`` where ``abs(error) <= delta``, else ``delta * abs(error) - 0.5 * delta ** 2``.

    Args:
        labels: The true values, any shape.
        predictions: The predicted values, of the same shape.
        weights: A scalar, or a tensor of the rank of the losses, with each size 1 or theirs; see the module.
        delta: Where the square turns into a line.
        scope: Name scope of the operations.
        loss_collection: Collection to which the loss is added.
        reduction: One of `Reduction`.

    Returns:
        A scalar, or without reduction a loss for each element.

    Raises:
        InvalidArgumentError: The shapes differ, or the weights do not fit.
    """
    with name_scope(scope, "huber_loss", (predictions, labels, weights)) as scope:
        labels, predictions = _pair(labels, predictions, "labels predictions")
        error = math_ops.abs(predictions - labels)
        quadratic = math_ops.minimum(error, delta)
        losses = 0.5 * math_ops.square(quadratic) + delta * (error - quadratic)
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def log_loss(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike = 1.0,
    epsilon: float = 1e-7,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """Cross entropy of probabilities: ``-labels * log(predictions) - (1 - labels) * log(1 - predictions)``.

    Args:
        labels: The true probabilities, mostly 0 or 1, any shape.
        predictions: The predicted probabilities, of the same shape.
        weights: A scalar, or a tensor of the rank of the losses, with each size 1 or theirs; see the module.
        epsilon: Added under the logarithms.
        scope: Name scope of the operations.
        loss_collection: Collection to which the loss is added.
        reduction: One of `Reduction`.

    Returns:
        A scalar, or without reduction a loss for each element.

    Raises:
        InvalidArgumentError: The shapes differ, or the weights do not fit.
    """
    with name_scope(scope, "log_loss", (predictions, labels, weights)) as scope:
        labels, predictions = _pair(labels, predictions, "labels predictions")
        losses = -math_ops.multiply(labels, math_ops.log(predictions + epsilon)) - math_ops.multiply(
            1 - labels, math_ops.log(1 - predictions + epsilon)
        )
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def hinge_loss(
    labels: TensorLike,
    logits: TensorLike,
    weights: TensorLike = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """``max(0, 1 - (2 * labels - 1) * logits)`` as a loss.

    Args:
        labels: 0 or 1, any shape.
        logits: Scores of the same shape: above 0 for 1.
        weights: A scalar, or a tensor of the rank of the losses, with each size 1 or theirs; see the module.
        scope: Name scope of the operations.
        loss_collection: Collection to which the loss is added.
        reduction: One of `Reduction`.

    Returns:
        A scalar, or without reduction a loss for each element.

    Raises:
        InvalidArgumentError: The shapes differ, or the weights do not fit.
    """
    with name_scope(scope, "hinge_loss", (logits, labels, weights)) as scope:
        labels, logits = _pair(labels, logits, "labels logits")
        losses = nn_ops.relu(1 - (2 * labels - 1) * logits)
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def cosine_distance(
    labels: TensorLike,
    predictions: TensorLike,
    axis: int | None = None,
    weights: TensorLike = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
    dim: int | None = None,
) -> Tensor:
    """One minus the cosine of the angle between vectors of length 1.

    Args:
        labels: The true vectors.
        predictions: The predicted vectors, of the same shape.
        axis: The dimension along which a vector lies.
        weights: A scalar, or a tensor of the rank of the losses, with each size 1 or theirs; see the module.
        scope: Name scope of the operations.
        loss_collection: Collection to which the loss is added.
        reduction: One of `Reduction`.
        dim: Older name of `axis`.

    Returns:
        A scalar, or without reduction a loss for each vector.

    Raises:
        InvalidArgumentError: The shapes differ, the weights do not fit, or there is no axis.
    """
    axis = by_either_name("cosine_distance", axis=axis, dim=dim)
    if axis is None:
        raise InvalidArgumentError("cosine_distance needs an axis: the dimension along which a vector lies")
    with name_scope(scope, "cosine_distance_loss", (predictions, labels, weights)) as scope:
        labels, predictions = _pair(labels, predictions, "labels predictions")
        along = array_ops.index_tensor(axis)
        along.shape.assert_has_rank(0)
        losses = 1 - math_ops.reduce_sum(predictions * labels, along, keepdims=True)
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def mean_pairwise_squared_error(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
) -> Tensor:
    """The error of predicted differences between pairs of elements, within each example.

    For each example it is the mean over all pairs of elements i and j of
    ``((predictions[i] - predictions[j]) - (labels[i] - labels[j])) ** 2``; the result is the sum over examples. An
    error that is the same for all elements of an example costs nothing.

    Args:
        labels: Shape ``[batch, ...]``, the true values.
        predictions: The predicted values, of the same shape.
        weights: A scalar, a weight for each example (shape ``[batch]`` or of the rank of the labels), or more.
        scope: Name scope of the operations.
        loss_collection: Collection to which the loss is added.

    Returns:
        A scalar.

    Raises:
        InvalidArgumentError: The shapes differ.
    """
    with name_scope(scope, "mean_pairwise_squared_error", (predictions, labels, weights)):
        labels, predictions = _pair(labels, predictions, "labels predictions")
        weights = array_ops.cast(weights, dtypes.float32)
        errors = predictions - labels
        if weights.shape.rank == 1 and errors.shape.rank not in (None, 1):
            weights = array_ops.reshape(weights, [-1] + [1] * (errors.shape.rank - 1))
        weights = broadcastable(weights, errors)
        axes = _all_but_first(errors)
        count = _number_present(errors, weights, per_example=True)
        squares = math_ops.reduce_sum(math_ops.square(errors), axes, keepdims=True)
        square_of_sum = math_ops.square(math_ops.reduce_sum(errors, axes, keepdims=True))
        others = math_ops.maximum(count - 1, 0.0)
        pairs = 2 * math_ops.div_no_nan(squares, others) - 2 * math_ops.div_no_nan(square_of_sum, count * others)
        loss = math_ops.reduce_sum(pairs * weights)
        loss = array_ops.where(math_ops.reduce_sum(count) > 0, loss, array_ops.zeros_like(loss), name="value")
        add_loss(loss, loss_collection)
        return loss


# -- of logits -------------------------------------------------------------------------------------------


def sigmoid_cross_entropy(
    multi_class_labels: TensorLike,
    logits: TensorLike,
    weights: TensorLike = 1.0,
    label_smoothing: float = 0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """Cross entropy of independent classes, from logits; see `tf.nn.sigmoid_cross_entropy_with_logits`.

    Args:
        multi_class_labels: Shape ``[batch, classes]``, true probabilities, mostly 0 or 1.
        logits: The same shape, floating.
        weights: A scalar, or a tensor of the rank of the losses, with each size 1 or theirs; see the module.
        label_smoothing: Move labels towards one half by this fraction.
        scope: Name scope of the operations.
        loss_collection: Collection to which the loss is added.
        reduction: One of `Reduction`.

    Returns:
        A scalar, or without reduction a loss for each element, of the dtype of `logits`.

    Raises:
        InvalidArgumentError: The shapes differ, or the weights do not fit.
    """
    with name_scope(scope, "sigmoid_cross_entropy_loss", (logits, multi_class_labels, weights)) as scope:
        logits = convert_to_tensor(logits)
        labels = array_ops.cast(multi_class_labels, logits.dtype)
        if label_smoothing > 0:
            labels = labels * (1 - label_smoothing) + 0.5 * label_smoothing
        losses = cross_entropy_ops.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits, name="xentropy")
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def softmax_cross_entropy(
    onehot_labels: TensorLike,
    logits: TensorLike,
    weights: TensorLike = 1.0,
    label_smoothing: float = 0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """Cross entropy of exclusive classes, from logits; see `tf.nn.softmax_cross_entropy_with_logits_v2`.

    Labels get no gradient.

    Args:
        onehot_labels: Shape ``[batch, classes]``, true probabilities.
        logits: The same shape, floating.
        weights: A scalar, or shape ``[batch]``.
        label_smoothing: Move labels towards ``1 / classes`` by this fraction.
        scope: Name scope of the operations.
        loss_collection: Collection to which the loss is added.
        reduction: One of `Reduction`.

    Returns:
        A scalar, or without reduction shape ``[batch]``, of the dtype of `logits`.

    Raises:
        InvalidArgumentError: The shapes differ, or the weights do not fit.

    Examples:
        >>> session.run(tf.losses.softmax_cross_entropy(onehot_labels=[[0, 1]], logits=[[1.0, 1.0]]))
        np.float32(0.6931472)
    """
    with name_scope(scope, "softmax_cross_entropy_loss", (logits, onehot_labels, weights)) as scope:
        logits = convert_to_tensor(logits)
        labels = array_ops.cast(onehot_labels, logits.dtype)
        logits.shape.assert_is_compatible_with(labels.shape)
        if label_smoothing > 0:
            classes = array_ops.cast(array_ops.shape(labels)[1], logits.dtype)
            labels = labels * (1 - label_smoothing) + label_smoothing / classes
        losses = cross_entropy_ops.softmax_cross_entropy_with_logits_v2(
            labels=array_ops.stop_gradient(labels), logits=logits, name="xentropy"
        )
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def sparse_softmax_cross_entropy(
    labels: TensorLike,
    logits: TensorLike,
    weights: TensorLike = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """Cross entropy of exclusive classes given by their numbers, from logits.

    Args:
        labels: Shape ``[...]`` or ``[..., 1]``, an integer dtype: the true classes.
        logits: Shape ``[..., classes]``, floating.
        weights: A scalar, or the shape of `labels`.
        scope: Name scope of the operations.
        loss_collection: Collection to which the loss is added.
        reduction: One of `Reduction`.

    Returns:
        A scalar, or without reduction the shape of `labels`, of the dtype of `logits`.

    Raises:
        InvalidArgumentError: The shapes do not match, or the weights do not fit.

    Examples:
        >>> session.run(tf.losses.sparse_softmax_cross_entropy(labels=[1], logits=[[1.0, 1.0]]))
        np.float32(0.6931472)
    """
    with name_scope(scope, "sparse_softmax_cross_entropy_loss", (logits, labels, weights)) as scope:
        labels, logits = convert_to_tensor(labels), convert_to_tensor(logits)
        if labels.shape.rank is not None and labels.shape.rank == logits.shape.rank:
            labels = array_ops.squeeze(labels, [-1])
        losses = cross_entropy_ops.sparse_softmax_cross_entropy_with_logits(
            labels=labels, logits=logits, name="xentropy"
        )
        if not isinstance(weights, (int, float)):
            weights = convert_to_tensor(weights)
            if weights.shape.rank and losses.shape.rank is not None and weights.shape.rank == losses.shape.rank + 1:
                weights = array_ops.squeeze(weights, [-1])
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


# -- collections -----------------------------------------------------------------------------------------


def add_loss(loss: Tensor, loss_collection: str | None = GraphKeys.LOSSES) -> None:
    """Add your own loss to a collection.

    Args:
        loss: The loss, mostly a scalar.
        loss_collection: Name of the collection; None for none.

    Examples:
        >>> tf.losses.add_loss(tf.constant(0.5))
        >>> session.run(tf.losses.get_total_loss())
        np.float32(0.5)
    """
    if loss_collection:
        get_default_graph().add_to_collection(loss_collection, loss)


def get_losses(scope: str | None = None, loss_collection: str = GraphKeys.LOSSES) -> list[Tensor]:
    """The losses in a collection, those whose names begin with `scope`: scalars where they are reduced."""
    return get_default_graph().get_collection(loss_collection, scope)


def get_regularization_losses(scope: str | None = None) -> list[Tensor]:
    """The losses that regularizers added, those whose names begin with `scope`: scalars.

    Examples:
        >>> regularizer = tf.contrib.layers.l2_regularizer(0.1)
        >>> v = tf.get_variable("v", initializer=[3.0, 4.0], regularizer=regularizer)
        >>> session.run(v.initializer)
        >>> session.run(tf.losses.get_regularization_losses())
        [np.float32(1.25)]
    """
    return get_default_graph().get_collection(GraphKeys.REGULARIZATION_LOSSES, scope)


def get_regularization_loss(scope: str | None = None, name: str = "total_regularization_loss") -> Tensor:
    """The sum of `get_regularization_losses`, a scalar: 0 where there are none."""
    losses = get_regularization_losses(scope)
    return math_ops.add_n(losses, name=name) if losses else constant(0.0)


def get_total_loss(
    add_regularization_losses: bool = True, name: str = "total_loss", scope: str | None = None
) -> Tensor:
    """The sum of all losses, a scalar: what an optimizer is to minimise.

    Args:
        add_regularization_losses: Include the losses that regularizers added.
        name: Name of the operation.
        scope: Only losses whose names begin with it.

    Raises:
        InvalidArgumentError: There are no losses.

    Examples:
        >>> loss = tf.losses.mean_squared_error([1.0], [3.0])
        >>> tf.losses.add_loss(tf.constant(0.5))
        >>> session.run(tf.losses.get_total_loss())
        np.float32(4.5)
    """
    losses = get_losses(scope)
    if add_regularization_losses:
        losses += get_regularization_losses(scope)
    if not losses:
        raise InvalidArgumentError("there are no losses in the graph: make one with tf.losses, or add_loss")
    return math_ops.add_n(losses, name=name)
