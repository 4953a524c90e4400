"""``tf.contrib.gan.losses.wargs``: losses of adversarial networks, of tensors.

Outputs of discriminators have a shape ``[batch, ...]`` and a float dtype. Weights are a scalar, or a tensor of their
rank with each size 1 or theirs. Losses are scalars unless `reduction` says otherwise, and are added to
`loss_collection`. With `add_summaries` their parts are written as summaries.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

from tfray.framework import dtypes
from tfray.framework.constant_value import constant_value
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.framework.type_aliases import TensorLike
from tfray.gradients import gradients
from tfray.library.inspect import summaries
from tfray.library.layers import losses
from tfray.library.layers.losses import Reduction
from tfray.library.layers.model_variables import get_trainable_variables
from tfray.library.variables.clip import global_norm
from tfray.library.variables.variable_scope import AUTO_REUSE, variable_scope
from tfray.ops.arrays import array_ops
from tfray.ops.math import math_ops
from tfray.ops.random.random_ops import random_uniform

__all__ = [
    "acgan_discriminator_loss", "acgan_generator_loss", "combine_adversarial_loss", "cycle_consistency_loss",
    "least_squares_discriminator_loss", "least_squares_generator_loss", "minimax_discriminator_loss",
    "minimax_generator_loss", "modified_discriminator_loss", "modified_generator_loss", "mutual_information_penalty",
    "wasserstein_discriminator_loss", "wasserstein_generator_loss", "wasserstein_gradient_penalty",
]  # fmt: skip

_LOSSES = GraphKeys.LOSSES
_MEAN = Reduction.SUM_BY_NONZERO_WEIGHTS

Loss = Callable[..., Tensor]
"""A loss that still needs its weights, collection and reduction."""


def _floats(*outputs: TensorLike) -> list[Tensor]:
    """Outputs as float32; they must have one shape."""
    made = [array_ops.cast(convert_to_tensor(each), dtypes.float32) for each in outputs]
    for each in made:
        each.shape.assert_is_compatible_with(made[0].shape)
    return made


def _summarize(add_summaries: bool, **values: Tensor) -> None:
    if add_summaries:
        for name, value in values.items():
            summaries.scalar(name, value)


def _of_generator(
    loss: Loss,
    kind: str,
    default: str,
    weights: TensorLike,
    scope: str | None,
    collection: str | None,
    reduction: str,
    shown: bool,
) -> Tensor:
    with get_default_graph().name_scope(scope or default) as inner:
        value = loss(weights=weights, loss_collection=collection, reduction=reduction)
    with _tags(kind, inner):
        _summarize(shown, **{f"generator_{kind}_loss": value})
    return value


def _of_discriminator(
    real: Loss,
    generated: Loss,
    kind: str,
    default: str,
    weights: Sequence[TensorLike],
    scope: str | None,
    collection: str | None,
    reduction: str,
    shown: bool,
    sign: int = 1,
) -> Tensor:
    with get_default_graph().name_scope(scope or default) as inner:
        on_real, on_generated = (
            loss(weights=weight, loss_collection=None, reduction=reduction)
            for loss, weight in zip((real, generated), weights, strict=True)
        )
        value = on_generated + on_real if sign > 0 else on_generated - on_real
        losses.add_loss(value, collection)
    names = (f"discriminator_{part}{kind}_loss" for part in ("gen_", "real_", ""))
    with _tags(kind, inner):
        _summarize(shown, **dict(zip(names, (on_generated, on_real, value), strict=True)))
    return value


def _tags(kind: str, inner: str) -> AbstractContextManager[Any]:
    """The scope of summaries: TensorFlow's tags have the name of the loss, but for those of least squares."""
    return nullcontext() if kind == "lsq" else get_default_graph().name_scope(inner)


def wasserstein_generator_loss(
    discriminator_gen_outputs: TensorLike,
    weights: TensorLike = 1.0,
    scope: str | None = None,
    loss_collection: str | None = _LOSSES,
    reduction: str = _MEAN,
    add_summaries: bool = False,
) -> Tensor:
    """``-D(G(z))`` (Arjovsky and others, arXiv:1701.07875)."""
    loss = partial(losses.compute_weighted_loss, -_floats(discriminator_gen_outputs)[0])
    how = scope, loss_collection, reduction, add_summaries
    return _of_generator(loss, "wass", "generator_wasserstein_loss", weights, *how)


def wasserstein_discriminator_loss(
    discriminator_real_outputs: TensorLike,
    discriminator_gen_outputs: TensorLike,
    real_weights: TensorLike = 1.0,
    generated_weights: TensorLike = 1.0,
    scope: str | None = None,
    loss_collection: str | None = _LOSSES,
    reduction: str = _MEAN,
    add_summaries: bool = False,
) -> Tensor:
    """``D(G(z)) - D(x)`` (Arjovsky and others, arXiv:1701.07875).

    Raises:
        ValueError: The outputs have different shapes.
    """
    outputs = _floats(discriminator_real_outputs, discriminator_gen_outputs)
    real, generated = (partial(losses.compute_weighted_loss, each) for each in outputs)
    weights, how = (real_weights, generated_weights), (scope, loss_collection, reduction, add_summaries)
    return _of_discriminator(real, generated, "wass", "discriminator_wasserstein_loss", weights, *how, sign=-1)


def acgan_discriminator_loss(
    discriminator_real_classification_logits: TensorLike,
    discriminator_gen_classification_logits: TensorLike,
    one_hot_labels: TensorLike,
    label_smoothing: float = 0.0,
    real_weights: TensorLike = 1.0,
    generated_weights: TensorLike = 1.0,
    scope: str | None = None,
    loss_collection: str | None = _LOSSES,
    reduction: str = _MEAN,
    add_summaries: bool = False,
) -> Tensor:
    """The cross entropy of the classes that a discriminator tells of real and generated data (arXiv:1610.09585).

    Logits and labels have the shape ``[batch, classes]``; labels of real data are smoothed.
    """
    entropy = partial(losses.softmax_cross_entropy, one_hot_labels)
    real = partial(entropy, discriminator_real_classification_logits, label_smoothing=label_smoothing)
    generated = partial(entropy, discriminator_gen_classification_logits)
    weights, how = (real_weights, generated_weights), (scope, loss_collection, reduction, add_summaries)
    return _of_discriminator(real, generated, "ac", "acgan_discriminator_loss", weights, *how)


def acgan_generator_loss(
    discriminator_gen_classification_logits: TensorLike,
    one_hot_labels: TensorLike,
    weights: TensorLike = 1.0,
    scope: str | None = None,
    loss_collection: str | None = _LOSSES,
    reduction: str = _MEAN,
    add_summaries: bool = False,
) -> Tensor:
    """The cross entropy of the classes that a discriminator tells of generated data (arXiv:1610.09585)."""
    loss = partial(losses.softmax_cross_entropy, one_hot_labels, discriminator_gen_classification_logits)
    how = scope, loss_collection, reduction, add_summaries
    return _of_generator(loss, "ac", "acgan_generator_loss", weights, *how)


def minimax_discriminator_loss(
    discriminator_real_outputs: TensorLike,
    discriminator_gen_outputs: TensorLike,
    label_smoothing: float = 0.25,
    real_weights: TensorLike = 1.0,
    generated_weights: TensorLike = 1.0,
    scope: str | None = None,
    loss_collection: str | None = _LOSSES,
    reduction: str = _MEAN,
    add_summaries: bool = False,
) -> Tensor:
    """``-log(sigmoid(D(x))) - log(1 - sigmoid(D(G(z))))``, with smoothed labels of real data (arXiv:1406.2661)."""
    outputs = convert_to_tensor(discriminator_real_outputs), convert_to_tensor(discriminator_gen_outputs)
    entropy = losses.sigmoid_cross_entropy
    real = partial(entropy, array_ops.ones_like(outputs[0]), outputs[0], label_smoothing=label_smoothing)
    generated = partial(entropy, array_ops.zeros_like(outputs[1]), outputs[1])
    weights, how = (real_weights, generated_weights), (scope, loss_collection, reduction, add_summaries)
    return _of_discriminator(real, generated, "minimax", "discriminator_minimax_loss", weights, *how)


def minimax_generator_loss(
    discriminator_gen_outputs: TensorLike,
    label_smoothing: float = 0.0,
    weights: TensorLike = 1.0,
    scope: str | None = None,
    loss_collection: str | None = _LOSSES,
    reduction: str = _MEAN,
    add_summaries: bool = False,
) -> Tensor:
    """The loss of the discriminator, negated; `modified_generator_loss` trains better (arXiv:1406.2661).

    As in TensorFlow, the collection has the loss that is not negated.
    """
    generated = convert_to_tensor(discriminator_gen_outputs)
    with get_default_graph().name_scope(scope or "generator_minimax_loss"):
        ones = array_ops.ones_like(generated)
        loss = -minimax_discriminator_loss(
            ones, generated, label_smoothing, weights, weights, None, loss_collection, reduction
        )
    _summarize(add_summaries, generator_minimax_loss=loss)
    return loss


def modified_discriminator_loss(
    discriminator_real_outputs: TensorLike,
    discriminator_gen_outputs: TensorLike,
    label_smoothing: float = 0.25,
    real_weights: TensorLike = 1.0,
    generated_weights: TensorLike = 1.0,
    scope: str | None = None,
    loss_collection: str | None = _LOSSES,
    reduction: str = _MEAN,
    add_summaries: bool = False,
) -> Tensor:
    """Another name of `minimax_discriminator_loss`."""
    scope = scope or "discriminator_modified_loss"
    return minimax_discriminator_loss(**locals())


def modified_generator_loss(
    discriminator_gen_outputs: TensorLike,
    label_smoothing: float = 0.0,
    weights: TensorLike = 1.0,
    scope: str | None = None,
    loss_collection: str | None = _LOSSES,
    reduction: str = _MEAN,
    add_summaries: bool = False,
) -> Tensor:
    """``-log(sigmoid(D(G(z))))``, whose gradient does not vanish at the beginning (arXiv:1406.2661)."""
    generated = convert_to_tensor(discriminator_gen_outputs)
    ones = array_ops.ones_like(generated)
    loss = partial(losses.sigmoid_cross_entropy, ones, generated, label_smoothing=label_smoothing)
    how = scope, loss_collection, reduction, add_summaries
    return _of_generator(loss, "modified", "generator_modified_loss", weights, *how)


def _halved_square(outputs: Tensor, label: TensorLike) -> Loss:
    return partial(losses.compute_weighted_loss, math_ops.squared_difference(outputs, label) / 2.0)


def least_squares_generator_loss(
    discriminator_gen_outputs: TensorLike,
    real_label: TensorLike = 1,
    weights: TensorLike = 1.0,
    scope: str | None = None,
    loss_collection: str | None = _LOSSES,
    reduction: str = _MEAN,
    add_summaries: bool = False,
) -> Tensor:
    """``(D(G(z)) - real_label)^2 / 2`` (Mao and others, arXiv:1611.04076)."""
    loss = _halved_square(_floats(discriminator_gen_outputs)[0], real_label)
    how = scope, loss_collection, reduction, add_summaries
    return _of_generator(loss, "lsq", "lsq_generator_loss", weights, *how)


def least_squares_discriminator_loss(
    discriminator_real_outputs: TensorLike,
    discriminator_gen_outputs: TensorLike,
    real_label: TensorLike = 1,
    fake_label: TensorLike = 0,
    real_weights: TensorLike = 1.0,
    generated_weights: TensorLike = 1.0,
    scope: str | None = None,
    loss_collection: str | None = _LOSSES,
    reduction: str = _MEAN,
    add_summaries: bool = False,
) -> Tensor:
    """``(D(x) - real_label)^2 / 2 + (D(G(z)) - fake_label)^2 / 2`` (Mao and others, arXiv:1611.04076).

    Raises:
        ValueError: The outputs have different shapes.
    """
    outputs = _floats(discriminator_real_outputs, discriminator_gen_outputs)
    real, generated = map(_halved_square, outputs, (real_label, fake_label))
    weights, how = (real_weights, generated_weights), (scope, loss_collection, reduction, add_summaries)
    return _of_discriminator(real, generated, "lsq", "lsq_discriminator_loss", weights, *how)


def wasserstein_gradient_penalty(
    real_data: TensorLike,
    generated_data: TensorLike,
    generator_inputs: Any,
    discriminator_fn: Callable[[Tensor, Any], Any],
    discriminator_scope: Any,
    epsilon: float = 1e-10,
    target: TensorLike = 1.0,
    one_sided: bool = False,
    weights: TensorLike = 1.0,
    scope: str | None = None,
    loss_collection: str | None = _LOSSES,
    reduction: str = _MEAN,
    add_summaries: bool = False,
) -> Tensor:
    """The square by which slopes of the discriminator, between real and generated data, miss `target`.

    See Gulrajani and others, arXiv:1704.00028.

    Args:
        real_data: Shape ``[batch, ...]``.
        generated_data: The same shape.
        generator_inputs: What the discriminator is given besides.
        discriminator_fn: The function of the discriminator; of a tuple that it returns the first counts.
        discriminator_scope: The scope of its variables, which are used again.
        epsilon: Added to the square of the slope.
        target: The slope to have, a scalar.
        one_sided: Only larger slopes count.
        weights: A scalar, or ``[batch]``.
        scope: Name of the operations.
        loss_collection: As for the other losses.
        reduction: Likewise.
        add_summaries: Likewise.

    Returns:
        A scalar, unless `reduction` says otherwise.

    Raises:
        ValueError: The rank of the data is not known.
    """
    graph = get_default_graph()
    with graph.name_scope(scope or "wasserstein_gradient_penalty"):
        real, generated = convert_to_tensor(real_data), convert_to_tensor(generated_data)
        rank = generated.shape.rank
        if real.shape.rank is None or rank is None:
            raise ValueError(f"real and generated data need known ranks, not {real.shape} and {generated.shape}")
        way = generated - real
        share = random_uniform(array_ops.stack([array_ops.shape(way)[0], *[1] * (rank - 1)]))
        between = real + share * way
        # In the outermost name scope, so that operations of updates are found under the discriminator's name.
        with graph.name_scope(None), variable_scope(discriminator_scope, "gpenalty_dscope", reuse=AUTO_REUSE):
            told = discriminator_fn(between, generator_inputs)
        slopes = gradients(told[0] if isinstance(told, tuple) else told, between)[0]
        square = math_ops.reduce_sum(math_ops.square(slopes), axis=list(range(1, rank)))
        off = math_ops.sqrt(square + epsilon) / target - 1.0
        off = math_ops.maximum(off, 0.0) if one_sided else off
        penalty = losses.compute_weighted_loss(math_ops.square(off), weights, None, loss_collection, reduction)
        _summarize(add_summaries, gradient_penalty_loss=penalty)
        return penalty


def mutual_information_penalty(
    structured_generator_inputs: Sequence[TensorLike],
    predicted_distributions: Sequence[Any],
    weights: TensorLike = 1.0,
    scope: str | None = None,
    loss_collection: str | None = _LOSSES,
    reduction: str = _MEAN,
    add_summaries: bool = False,
) -> Tensor:
    """How unlikely the structured inputs of a generator are by what its data let one predict (arXiv:1606.03657).

    Raises:
        ValueError: There are not as many distributions as inputs, or they have no ``log_prob``.
    """
    check_distributions(predicted_distributions, structured_generator_inputs)
    with get_default_graph().name_scope(scope or "mutual_information_loss"):
        likely = [
            math_ops.reduce_mean(each.log_prob(values))
            for each, values in zip(predicted_distributions, structured_generator_inputs, strict=True)
        ]
        penalty = -losses.compute_weighted_loss(array_ops.stack(likely), weights, None, loss_collection, reduction)
        _summarize(add_summaries, mutual_information_penalty=penalty)
        return penalty


def check_distributions(distributions: Any, values: Sequence[Any]) -> None:
    """Raise `ValueError` unless there is a distribution for each value."""
    if not isinstance(distributions, list | tuple) or not all(hasattr(each, "log_prob") for each in distributions):
        raise ValueError(f"predicted distributions should be a list of distributions, not {distributions!r}")
    if len(distributions) != len(values):
        raise ValueError(f"there are {len(distributions)} distributions for {len(values)} structured inputs")


def combine_adversarial_loss(
    main_loss: Tensor,
    adversarial_loss: Tensor,
    weight_factor: TensorLike | None = None,
    gradient_ratio: TensorLike | None = None,
    gradient_ratio_epsilon: float = 1e-6,
    variables: Sequence[Any] | None = None,
    scalar_summaries: bool = True,
    gradient_summaries: bool = True,
    scope: str | None = None,
) -> Tensor:
    """Add an adversarial loss to another one, by a factor, or so that their gradients have a given ratio.

    Args:
        main_loss: A scalar.
        adversarial_loss: A scalar.
        weight_factor: The factor, a scalar. Either this or `gradient_ratio` is given.
        gradient_ratio: The norm of the main loss's gradients over that of the adversarial one's, a scalar.
        gradient_ratio_epsilon: Added to the latter norm.
        variables: Of these the gradients are taken; the trainable ones when None.
        scalar_summaries: Write both losses as summaries.
        gradient_summaries: Write both norms as summaries.
        scope: Name of the operations.

    Returns:
        A scalar.

    Raises:
        ValueError: Neither or both of `weight_factor` and `gradient_ratio` are given, or a loss is no scalar.
    """
    for loss in (main_loss, adversarial_loss):
        loss.shape.assert_is_compatible_with([])
    if (weight_factor is None) == (gradient_ratio is None):
        raise ValueError("give either weight_factor or gradient_ratio")
    with get_default_graph().name_scope(scope or "adversarial_loss"):
        _summarize(scalar_summaries, main_loss=main_loss, adversarial_loss=adversarial_loss)
        if gradient_summaries or gradient_ratio is not None:
            wanted = get_trainable_variables() if variables is None else variables
            main, adversarial = (_norm(gradients(loss, wanted)) for loss in (main_loss, adversarial_loss))
            _summarize(gradient_summaries, main_loss_gradients=main, adversarial_loss_gradients=adversarial)
        given = convert_to_tensor(weight_factor if gradient_ratio is None else gradient_ratio, main_loss.dtype)
        if constant_value(given) == 0:
            return main_loss
        factor = given
        if gradient_ratio is not None:
            factor = array_ops.cast(main / (adversarial + gradient_ratio_epsilon), given.dtype) / given
            summaries.scalar("adversarial_coefficient", factor)
        return main_loss + array_ops.stop_gradient(factor) * adversarial_loss


def _norm(values: Sequence[Any]) -> Tensor:
    """The norm of all values; divided by the largest first, so that squares do not overflow; 0 of zeros."""
    there = [convert_to_tensor(each) for each in values if each is not None]
    if not there:
        return convert_to_tensor(0.0)
    largest = math_ops.reduce_max(array_ops.stack([math_ops.reduce_max(math_ops.abs(each)) for each in there]))
    unit = array_ops.where(largest > 0, largest, array_ops.ones_like(largest))
    return unit * global_norm([each / unit for each in there])


def cycle_consistency_loss(
    data_x: TensorLike,
    reconstructed_data_x: TensorLike,
    data_y: TensorLike,
    reconstructed_data_y: TensorLike,
    scope: str | None = None,
    add_summaries: bool = False,
) -> Tensor:
    """The mean by which data differ that have gone both ways (Zhu and others, arXiv:1703.10593); a scalar."""
    with get_default_graph().name_scope(scope or "cycle_consistency_loss"):
        x = losses.absolute_difference(data_x, reconstructed_data_x)
        y = losses.absolute_difference(data_y, reconstructed_data_y)
        loss = (x + y) / 2.0
        parts = {"cycle_consistency_loss_x2x": x, "cycle_consistency_loss_y2y": y}
        _summarize(add_summaries, **parts, cycle_consistency_loss=loss)
        return loss
