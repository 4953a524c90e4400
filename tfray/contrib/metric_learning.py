"""``tf.contrib.losses.metric_learning``: losses that bring embeddings of one class together."""

from __future__ import annotations

from typing import Any

from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor
from tfray.ops.arrays import array_ops
from tfray.ops.math import math_ops

__all__ = ["triplet_semihard_loss"]


def triplet_semihard_loss(labels: Any, embeddings: Any, margin: float = 1.0) -> Tensor:
    """The triplet loss with semi-hard negatives (Schroff et al., arXiv:1503.03832), float32 scalar.

    For each pair of one class, the negative is the nearest example of another class that is farther from the first of
    the pair than the second; the farthest of all where there is none.

    Args:
        labels: int32 ``[batch]``, the classes.
        embeddings: float32 ``[batch, size]``; they should have length 1.
        margin: By how much the squared distance to the negative should be larger.
    """
    embeddings = convert_to_tensor(embeddings)
    labels = array_ops.reshape(labels, [-1])
    squares = math_ops.reduce_sum(math_ops.square(embeddings), 1)
    products = math_ops.matmul(embeddings, embeddings, transpose_b=True)
    distances = math_ops.maximum(squares[:, None] - 2.0 * products + squares[None, :], 0.0)
    same = math_ops.equal(labels[:, None], labels[None, :])
    count = array_ops.shape(labels)[0]
    distances = distances * (1.0 - array_ops.eye(count))

    # [anchor, positive, negative]
    other = math_ops.logical_not(same)[:, None, :]
    farther = math_ops.logical_and(other, distances[:, None, :] > distances[:, :, None])
    largest = math_ops.reduce_max(distances)
    apart = math_ops.reduce_min(array_ops.where(farther, _wide(distances, count), largest + _zeros(count)), 2)
    inside = math_ops.reduce_max(distances * array_ops.cast(math_ops.logical_not(same), dtypes.float32), 1)
    negatives = array_ops.where(math_ops.reduce_any(farther, 2), apart, inside[:, None] + array_ops.zeros_like(apart))
    pairs = array_ops.cast(same, dtypes.float32) - array_ops.eye(count)
    losses = math_ops.maximum((margin + distances - negatives) * pairs, 0.0)
    return math_ops.reduce_sum(losses) / math_ops.reduce_sum(pairs)


def _zeros(count: Any) -> Tensor:
    return array_ops.zeros(array_ops.stack([count, count, count]))


def _wide(distances: Tensor, count: Any) -> Tensor:
    """Distances ``[anchor, negative]`` for every positive, ``[anchor, positive, negative]``."""
    return distances[:, None, :] + _zeros(count)
