"""``tf.contrib.losses.metric_learning``: losses that bring embeddings of one class together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor
from tfray.framework.sparse_tensor import SparseTensor
from tfray.ops.arrays import array_ops
from tfray.ops.checks.print_assert_ops import Print as print_tensors
from tfray.ops.math import math_ops
from tfray.ops.nn.cross_entropy_ops import softmax_cross_entropy_with_logits
from tfray.ops.sparse.sparse_ops import sparse_tensor_to_dense

__all__ = [
    "contrastive_loss",
    "lifted_struct_loss",
    "npairs_loss",
    "npairs_loss_multilabel",
    "triplet_semihard_loss",
]


def contrastive_loss(labels: Any, embeddings_anchor: Any, embeddings_positive: Any, margin: float = 1.0) -> Tensor:
    """The contrastive loss (Hadsell, Chopra and LeCun, 2006), a scalar: the mean over pairs.

    Args:
        labels: ``[batch]``, 1 for pairs of one class and 0 for others.
        embeddings_anchor: float32 ``[batch, size]``, the first of each pair; they should have length 1.
        embeddings_positive: Same shape, the second.
        margin: Which distance pairs of different classes should have.
    """
    difference = convert_to_tensor(embeddings_anchor) - embeddings_positive
    distances = math_ops.sqrt(math_ops.reduce_sum(math_ops.square(difference), 1))
    labels = array_ops.cast(labels, dtypes.float32)
    apart = math_ops.square(math_ops.maximum(margin - distances, 0.0))
    return math_ops.reduce_mean(labels * math_ops.square(distances) + (1.0 - labels) * apart)


def lifted_struct_loss(labels: Any, embeddings: Any, margin: float = 1.0) -> Tensor:
    """The lifted structured loss (Song et al., arXiv:1511.06452), a scalar.

    Args:
        labels: ``[batch]``, the classes.
        embeddings: float32 ``[batch, size]``; not of length 1.
        margin: Which distance examples of different classes should have.
    """
    labels = array_ops.reshape(labels, [-1])
    squared = _squared_distances(convert_to_tensor(embeddings))
    positive = math_ops.greater(squared, 0.0)
    # The square root of 0 has no gradient: it is left out on both sides.
    distances = array_ops.where(
        positive, math_ops.sqrt(array_ops.where(positive, squared, array_ops.ones_like(squared))), squared
    )
    same = math_ops.equal(labels[:, None], labels[None, :])
    pairs = array_ops.cast(same, dtypes.float32) - array_ops.eye(array_ops.shape(labels)[0])
    # The logarithm of what each example's negatives sum up to, and then of what those of both examples of a pair do.
    negatives = array_ops.where(same, array_ops.fill(array_ops.shape(squared), -np.inf), margin - distances)
    ones = math_ops.reduce_logsumexp(negatives, 1)
    both = math_ops.reduce_logsumexp(
        array_ops.stack([ones[:, None] + array_ops.zeros_like(squared), ones[None, :] + array_ops.zeros_like(squared)]),
        0,
    )
    losses = math_ops.square(math_ops.maximum(both + distances, 0.0)) * pairs
    return math_ops.reduce_sum(losses) / (2.0 * math_ops.reduce_sum(pairs))


def npairs_loss(
    labels: Any, embeddings_anchor: Any, embeddings_positive: Any, reg_lambda: float = 0.002, print_losses: bool = False
) -> Tensor:
    """The N-pairs loss (Sohn, 2016), a scalar.

    Args:
        labels: ``[batch]``, the classes.
        embeddings_anchor: float32 ``[batch, size]``, the first of each pair; not of length 1.
        embeddings_positive: Same shape, the second.
        reg_lambda: Weight of the penalty for long embeddings.
        print_losses: Print both parts of the loss in each step.
    """
    labels = array_ops.reshape(labels, [-1])
    same = array_ops.cast(math_ops.equal(labels[:, None], labels[None, :]), dtypes.float32)
    return _npairs(same, embeddings_anchor, embeddings_positive, reg_lambda, print_losses)


def npairs_loss_multilabel(
    sparse_labels: Sequence[SparseTensor],
    embeddings_anchor: Any,
    embeddings_positive: Any,
    reg_lambda: float = 0.002,
    print_losses: bool = False,
) -> Tensor:
    """As `npairs_loss`, for examples of several classes: two examples are as alike as they have classes in common.

    Args:
        sparse_labels: For each example a sparse vector of ones, for its classes.
        embeddings_anchor: float32 ``[batch, size]``, the first of each pair; not of length 1.
        embeddings_positive: Same shape, the second.
        reg_lambda: Weight of the penalty for long embeddings.
        print_losses: Print both parts of the loss in each step.

    Raises:
        TypeError: `sparse_labels` is no list of sparse tensors.
    """
    if not all(isinstance(each, SparseTensor) for each in sparse_labels):
        raise TypeError("sparse_labels must be a list of SparseTensors, but got " + str(sparse_labels))
    dense = [sparse_tensor_to_dense(each, validate_indices=False) for each in sparse_labels]
    classes = array_ops.cast(array_ops.stack(dense), dtypes.float32)
    common = math_ops.matmul(classes, classes, transpose_b=True)
    return _npairs(common, embeddings_anchor, embeddings_positive, reg_lambda, print_losses)


def _npairs(alike: Tensor, anchor: Any, positive: Any, reg_lambda: float, print_losses: bool) -> Tensor:
    anchor, positive = convert_to_tensor(anchor), convert_to_tensor(positive)
    lengths = [math_ops.reduce_mean(math_ops.reduce_sum(math_ops.square(each), 1)) for each in (anchor, positive)]
    penalty = math_ops.multiply(0.25 * reg_lambda, lengths[0] + lengths[1], name="l2loss")
    logits = math_ops.matmul(anchor, positive, transpose_b=True)
    targets = alike / math_ops.reduce_sum(alike, 1, keepdims=True)
    entropy = math_ops.reduce_mean(softmax_cross_entropy_with_logits(labels=targets, logits=logits), name="xentropy")
    if print_losses:
        entropy = print_tensors(entropy, ["cross entropy:", entropy, "l2loss:", penalty])
    return penalty + entropy


def triplet_semihard_loss(labels: Any, embeddings: Any, margin: float = 1.0) -> Tensor:
    """The triplet loss with semi-hard negatives (Schroff et al., arXiv:1503.03832), float32 scalar.

    For each pair of one class, the negative is the nearest example of another class that is farther from the first of
    the pair than the second; the farthest of all where there is none.

    Args:
        labels: int32 ``[batch]``, the classes.
        embeddings: float32 ``[batch, size]``; they should have length 1.
        margin: By how much the squared distance to the negative should be larger.
    """
    labels = array_ops.reshape(labels, [-1])
    distances = _squared_distances(convert_to_tensor(embeddings))
    same = math_ops.equal(labels[:, None], labels[None, :])
    count = array_ops.shape(labels)[0]

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


def _squared_distances(embeddings: Tensor) -> Tensor:
    """Between all examples, ``[batch, batch]``; exactly 0 on the diagonal."""
    squares = math_ops.reduce_sum(math_ops.square(embeddings), 1)
    products = math_ops.matmul(embeddings, embeddings, transpose_b=True)
    distances = math_ops.maximum(squares[:, None] - 2.0 * products + squares[None, :], 0.0)
    return distances * (1.0 - array_ops.eye(array_ops.shape(embeddings)[0]))


def _zeros(count: Any) -> Tensor:
    return array_ops.zeros(array_ops.stack([count, count, count]))


def _wide(distances: Tensor, count: Any) -> Tensor:
    """Distances ``[anchor, negative]`` for every positive, ``[anchor, positive, negative]``."""
    return distances[:, None, :] + _zeros(count)
