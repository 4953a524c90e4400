"""``tf.contrib.losses``: the losses of ``tf.losses`` with their older order of arguments, predictions first."""

from __future__ import annotations

from typing import Any

from tfray.contrib import metric_learning
from tfray.framework.graph import Tensor
from tfray.library.layers import losses
from tfray.library.layers.losses import (
    add_loss,
    compute_weighted_loss,
    get_losses,
    get_regularization_losses,
    get_total_loss,
)

# fmt: off
__all__ = [
    "absolute_difference", "add_loss", "compute_weighted_loss", "cosine_distance", "get_losses",
    "get_regularization_losses", "get_total_loss", "hinge_loss", "log_loss", "mean_pairwise_squared_error",
    "mean_squared_error", "metric_learning", "sigmoid_cross_entropy", "softmax_cross_entropy",
    "sparse_softmax_cross_entropy",
]
# fmt: on


def absolute_difference(predictions: Any, labels: Any, weights: Any = 1.0, scope: str | None = None) -> Tensor:
    """As `tf.losses.absolute_difference`, with the same shapes; the predictions come first."""
    return losses.absolute_difference(labels, predictions, weights, scope)


def mean_squared_error(predictions: Any, labels: Any, weights: Any = 1.0, scope: str | None = None) -> Tensor:
    """As `tf.losses.mean_squared_error`, with the same shapes; the predictions come first."""
    return losses.mean_squared_error(labels, predictions, weights, scope)


def mean_pairwise_squared_error(predictions: Any, labels: Any, weights: Any = 1.0, scope: str | None = None) -> Tensor:
    """As `tf.losses.mean_pairwise_squared_error`, with the same shapes; the predictions come first."""
    return losses.mean_pairwise_squared_error(labels, predictions, weights, scope)


def log_loss(
    predictions: Any, labels: Any, weights: Any = 1.0, epsilon: float = 1e-7, scope: str | None = None
) -> Tensor:
    """As `tf.losses.log_loss`, with the same shapes; the predictions come first."""
    return losses.log_loss(labels, predictions, weights, epsilon, scope)


def hinge_loss(logits: Any, labels: Any, scope: str | None = None) -> Tensor:
    """As `tf.losses.hinge_loss`, without reduction: the result has the shape of the arguments."""
    return losses.hinge_loss(labels, logits, scope=scope, loss_collection=None, reduction=losses.Reduction.NONE)


def cosine_distance(
    predictions: Any,
    labels: Any,
    axis: int | None = None,
    weights: Any = 1.0,
    scope: str | None = None,
    dim: Any = None,
) -> Tensor:
    """As `tf.losses.cosine_distance`, with the same shapes; the predictions come first."""
    return losses.cosine_distance(labels, predictions, axis, weights, scope, dim=dim)


def sigmoid_cross_entropy(
    logits: Any, multi_class_labels: Any, weights: Any = 1.0, label_smoothing: float = 0, scope: str | None = None
) -> Tensor:
    """As `tf.losses.sigmoid_cross_entropy`, with the same shapes; the logits come first."""
    return losses.sigmoid_cross_entropy(multi_class_labels, logits, weights, label_smoothing, scope)


def softmax_cross_entropy(
    logits: Any, onehot_labels: Any, weights: Any = 1.0, label_smoothing: float = 0, scope: str | None = None
) -> Tensor:
    """As `tf.losses.softmax_cross_entropy`, with the same shapes; the logits come first."""
    return losses.softmax_cross_entropy(onehot_labels, logits, weights, label_smoothing, scope)


def sparse_softmax_cross_entropy(logits: Any, labels: Any, weights: Any = 1.0, scope: str | None = None) -> Tensor:
    """As `tf.losses.sparse_softmax_cross_entropy`, with the same shapes; the logits come first."""
    return losses.sparse_softmax_cross_entropy(labels, logits, weights, scope)
