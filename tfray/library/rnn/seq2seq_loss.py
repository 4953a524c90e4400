"""The loss of predicted sequences."""

from __future__ import annotations

from collections.abc import Callable

from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays import array_ops
from tfray.ops.math import math_ops
from tfray.ops.nn.cross_entropy_ops import sparse_softmax_cross_entropy_with_logits


def sequence_loss(
    logits: TensorLike,
    targets: TensorLike,
    weights: TensorLike,
    average_across_timesteps: bool = True,
    average_across_batch: bool = True,
    sum_over_timesteps: bool = False,
    sum_over_batch: bool = False,
    softmax_loss_function: Callable[..., Tensor] | None = None,
    name: str | None = None,
) -> Tensor:
    """Weighted cross entropy of sequences of ids.

    Args:
        logits: ``[batch, time, classes]``.
        targets: Integers ``[batch, time]``.
        weights: ``[batch, time]``: 0 for what does not count.
        average_across_timesteps: Sum over time, and divide by the sum of the weights.
        average_across_batch: Likewise over the batch.
        sum_over_timesteps: Sum over time, and divide by the number of weights that are not 0.
        sum_over_batch: Likewise over the batch.
        softmax_loss_function: Function of the keywords ``labels`` and ``logits`` in place of the cross entropy.
        name: Name scope.

    Returns:
        A scalar; ``[batch]``, ``[time]`` or ``[batch, time]`` where it is not summed.

    Raises:
        ValueError: Wrong ranks, or average and sum over the same dimension.
    """
    logits, targets, weights = (convert_to_tensor(value) for value in (logits, targets, weights))
    if logits.shape.rank not in (None, 3) or targets.shape.rank not in (None, 2) or weights.shape.rank not in (None, 2):
        raise ValueError(
            "sequence_loss takes logits [batch, time, classes], targets [batch, time] and weights [batch, time], not "
            f"{logits.shape}, {targets.shape} and {weights.shape}"
        )
    if (average_across_timesteps and sum_over_timesteps) or (average_across_batch and sum_over_batch):
        raise ValueError("sequence_loss: over one dimension, ask for the average or the sum, not both")
    with get_default_graph().name_scope(name or "sequence_loss"):
        flat_logits = array_ops.reshape(logits, array_ops.stack([-1, array_ops.shape(logits)[2]]))
        loss_function = softmax_loss_function or sparse_softmax_cross_entropy_with_logits
        losses = loss_function(labels=array_ops.reshape(targets, [-1]), logits=flat_logits)
        losses = losses * array_ops.reshape(weights, [-1])
        if average_across_timesteps and average_across_batch:
            return math_ops.div_no_nan(math_ops.reduce_sum(losses), math_ops.reduce_sum(weights))
        counted = array_ops.cast(math_ops.not_equal(weights, 0), losses.dtype)
        if sum_over_timesteps and sum_over_batch:
            return math_ops.div_no_nan(math_ops.reduce_sum(losses), math_ops.reduce_sum(counted))
        losses = array_ops.reshape(losses, array_ops.shape(logits)[:2])
        losses.set_shape(targets.shape)
        if average_across_timesteps or average_across_batch:
            axis = 0 if average_across_batch else 1
            return math_ops.div_no_nan(math_ops.reduce_sum(losses, axis), math_ops.reduce_sum(weights, axis))
        if sum_over_timesteps or sum_over_batch:
            axis = 0 if sum_over_batch else 1
            return math_ops.div_no_nan(math_ops.reduce_sum(losses, axis), math_ops.reduce_sum(counted, axis))
        return losses
