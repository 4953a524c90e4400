"""``tf.contrib.nn``: cross entropies with the logits first, as in TensorFlow 0.12, and dropout for `tf.nn.selu`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tfray.errors import InvalidArgumentError
from tfray.framework.constant_value import constant_value
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.scopes import name_scope
from tfray.framework.type_aliases import TensorLike
from tfray.library.namespaces import nn
from tfray.ops.arrays.array_ops import shape
from tfray.ops.arrays.broadcast_ops import where_v2
from tfray.ops.math.arithmetic_ops import minimum
from tfray.ops.math.math_ops import sqrt
from tfray.ops.math.sorting_ops import nth_element as nth_element
from tfray.ops.nn.any_rank_conv_ops import conv1d_transpose as conv1d_transpose
from tfray.ops.random.random_ops import random_uniform

_DROPPED: Final = -1.7580993408473766
"""What `tf.nn.selu` gives for minus infinity."""

# fmt: off
__all__ = [
    "alpha_dropout", "conv1d_transpose", "deprecated_flipped_sigmoid_cross_entropy_with_logits",
    "deprecated_flipped_softmax_cross_entropy_with_logits",
    "deprecated_flipped_sparse_softmax_cross_entropy_with_logits", "nth_element", "sampled_sparse_softmax_loss",
    "scaled_softplus",
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


def sampled_sparse_softmax_loss(
    weights: TensorLike,
    biases: TensorLike,
    labels: TensorLike,
    inputs: TensorLike,
    num_sampled: int,
    num_classes: int,
    sampled_values: Sequence[TensorLike] | None = None,
    remove_accidental_hits: bool = True,
    partition_strategy: str = "mod",
    name: str = "sampled_sparse_softmax_loss",
) -> Tensor:
    """`tf.nn.sampled_softmax_loss` of one true class for each example, which `labels`, ``[batch, 1]``, has.

    Args:
        weights: Shape ``[num_classes, dim]``; the others are as there.
        biases: Shape ``[num_classes]``.
        labels: Shape ``[batch, 1]``, integers.
        inputs: Shape ``[batch, dim]``.
        num_sampled: See there.
        num_classes: See there.
        sampled_values: See there, with the shapes that are said there.
        remove_accidental_hits: See there.
        partition_strategy: See there.
        name: Name scope of the operations.

    Returns:
        Shape ``[batch]``.
    """
    return nn.sampled_softmax_loss(
        weights,
        biases,
        labels,
        inputs,
        num_sampled,
        num_classes,
        1,
        sampled_values,
        remove_accidental_hits,
        partition_strategy,
        name,
    )


def alpha_dropout(
    x: TensorLike, keep_prob: Any, noise_shape: Any = None, seed: int | None = None, name: str | None = None
) -> Tensor:
    """Dropout that keeps the mean and the variance of what `tf.nn.selu` gives.

    Args:
        x: Any shape, a float dtype.
        keep_prob: The share of the elements that are kept: a number in (0, 1], or a scalar tensor.
        noise_shape: Shape of the random choices, which broadcast to `x`; that of `x` when None.
        seed: Seed of the random choices.
        name: Name of the operation.

    Returns:
        Same shape and dtype as `x`.

    Raises:
        InvalidArgumentError: `keep_prob` is a number that is not in (0, 1].

    References:
        Klambauer et al., "Self-Normalizing Neural Networks", 2017.
    """
    known = constant_value(convert_to_tensor(keep_prob))
    if known is not None and not 0 < known <= 1:
        raise InvalidArgumentError(f"alpha_dropout: keep_prob is {keep_prob}, expected a number in (0, 1]")
    with get_default_graph().name_scope(name or "alpha_dropout"):
        x = convert_to_tensor(x)
        if known is not None and known == 1:
            return x
        kept = convert_to_tensor(keep_prob, x.dtype)
        is_kept = random_uniform(shape(x) if noise_shape is None else noise_shape, dtype=x.dtype, seed=seed) < kept
        scale = 1 / sqrt(kept + kept * (1 - kept) * _DROPPED**2)
        result = scale * where_v2(is_kept, x, convert_to_tensor(_DROPPED, x.dtype)) - scale * _DROPPED * (1 - kept)
        result.set_shape(x.shape)
        return result


def scaled_softplus(
    x: TensorLike, alpha: TensorLike, clip: TensorLike | None = None, name: str | None = None
) -> Tensor:
    """``alpha * log(1 + exp(x / alpha))``, a `tf.nn.relu` that is the smoother the larger `alpha`.

    Args:
        x: Any shape, a float dtype.
        alpha: Positive; broadcast against `x`, same dtype.
        clip: The greatest result, which makes it a smooth `tf.nn.relu6`; None for no bound.
        name: Name of the operations.

    Returns:
        A tensor of the shape to which the arguments broadcast, and of the dtype of `x`.
    """
    with name_scope(name, "scaled_softplus"):
        x = convert_to_tensor(x, name="x")
        alpha = convert_to_tensor(alpha, x.dtype, "alpha")
        smooth = alpha * nn.softplus(x / alpha)
        return smooth if clip is None else minimum(smooth, convert_to_tensor(clip, x.dtype, "clip"))
