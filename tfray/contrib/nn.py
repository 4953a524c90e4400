"""``tf.contrib.nn``: cross entropies with the logits first, as TensorFlow 0.12 had them."""

from __future__ import annotations

from typing import Any

from tfray.framework.graph import Tensor
from tfray.library.namespaces import nn

# fmt: off
__all__ = [
    "deprecated_flipped_sigmoid_cross_entropy_with_logits", "deprecated_flipped_softmax_cross_entropy_with_logits",
    "deprecated_flipped_sparse_softmax_cross_entropy_with_logits",
]
# fmt: on


def deprecated_flipped_softmax_cross_entropy_with_logits(
    logits: Any, labels: Any, dim: int = -1, name: str | None = None
) -> Tensor:
    """`tf.nn.softmax_cross_entropy_with_logits` with the logits first."""
    return nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits, dim=dim, name=name)


def deprecated_flipped_sparse_softmax_cross_entropy_with_logits(
    logits: Any, labels: Any, name: str | None = None
) -> Tensor:
    """`tf.nn.sparse_softmax_cross_entropy_with_logits` with the logits first."""
    return nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits, name=name)


def deprecated_flipped_sigmoid_cross_entropy_with_logits(logits: Any, targets: Any, name: str | None = None) -> Tensor:
    """`tf.nn.sigmoid_cross_entropy_with_logits` with the logits first."""
    return nn.sigmoid_cross_entropy_with_logits(labels=targets, logits=logits, name=name)
