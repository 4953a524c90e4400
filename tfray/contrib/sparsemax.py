"""``tf.contrib.sparsemax``: a softmax that gives most classes no probability at all, and its loss."""

from __future__ import annotations

from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays import array_ops
from tfray.ops.math import math_ops
from tfray.ops.math.scan_ops import cumsum
from tfray.ops.math.search_ops import top_k
from tfray.ops.nn.activation_ops import relu

__all__ = ["sparsemax", "sparsemax_loss"]


def sparsemax(logits: TensorLike, name: str | None = None) -> Tensor:
    """The point of the simplex that is nearest to each row (Martins and Astudillo, arXiv:1602.02068).

    Args:
        logits: Shape ``[batch, classes]``, a float dtype.
        name: Name of the operations.

    Returns:
        Probabilities, of the same shape and dtype.
    """
    with get_default_graph().name_scope(name or "sparsemax"):
        logits = convert_to_tensor(logits, name="logits")
        classes = array_ops.shape(logits)[1]
        moved = logits - math_ops.reduce_mean(logits, axis=1, keepdims=True)
        ordered = top_k(moved, classes)[0]
        sums = cumsum(ordered, axis=1)
        ranks = array_ops.cast(array_ops.range(1, classes + 1), logits.dtype)
        supported = 1 + ranks * ordered > sums
        count = math_ops.reduce_sum(array_ops.cast(supported, logits.dtype), axis=1, keepdims=True)
        total = math_ops.reduce_sum(
            array_ops.where(supported, ordered, array_ops.zeros_like(ordered)), 1, keepdims=True
        )
        return relu(moved - (total - 1) / count)


def sparsemax_loss(logits: TensorLike, sparsemax: TensorLike, labels: TensorLike, name: str | None = None) -> Tensor:
    """The loss that belongs to `sparsemax`: its gradient is ``sparsemax - labels``.

    Args:
        logits: Shape ``[batch, classes]``, a float dtype.
        sparsemax: Their `sparsemax`.
        labels: Probabilities of the same shape.
        name: Name of the operations.

    Returns:
        Losses ``[batch]``.
    """
    with get_default_graph().name_scope(name or "sparsemax_loss"):
        logits = convert_to_tensor(logits, name="logits")
        found, labels = convert_to_tensor(sparsemax, logits.dtype), convert_to_tensor(labels, logits.dtype)
        moved = logits - math_ops.reduce_mean(logits, axis=1, keepdims=True)
        supported = array_ops.where(found > 0, found * (moved - 0.5 * found), array_ops.zeros_like(moved))
        return math_ops.reduce_sum(supported + labels * (0.5 * labels - moved), axis=1)
