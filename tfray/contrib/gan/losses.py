"""``tf.contrib.gan.losses``: losses of adversarial networks, of a `GANModel`; ``wargs`` has them of tensors."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from tfray.contrib.gan import wargs
from tfray.contrib.gan.namedtuples import CycleGANModel, GANLoss
from tfray.framework.graph import Tensor
from tfray.framework.type_aliases import TensorLike

__all__ = [
    "acgan_discriminator_loss", "acgan_generator_loss", "combine_adversarial_loss", "cycle_consistency_loss",
    "least_squares_discriminator_loss", "least_squares_generator_loss", "minimax_discriminator_loss",
    "minimax_generator_loss", "modified_discriminator_loss", "modified_generator_loss", "mutual_information_penalty",
    "wargs", "wasserstein_discriminator_loss", "wasserstein_generator_loss", "wasserstein_gradient_penalty",
]  # fmt: skip


def _of_model(loss: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A loss that takes from a model what it needs, and the rest by name."""
    names = inspect.signature(loss).parameters

    @functools.wraps(loss)
    def of_model(gan_model: Any, **kwargs: Any) -> Tensor:
        there = {name: getattr(gan_model, name) for name in names if name in gan_model._fields}
        twice = there.keys() & kwargs.keys()
        if twice:
            raise ValueError(f"{loss.__name__}: {', '.join(sorted(twice))} are in the model, and given as well")
        given = there | kwargs
        missing = [name for name, each in names.items() if each.default is each.empty and name not in given]
        if missing:
            raise ValueError(
                f"{loss.__name__}: {', '.join(missing)} are not in a {type(gan_model).__name__}: give them"
            )
        return loss(**given)

    of_model.__doc__ = f"`tf.contrib.gan.losses.wargs.{loss.__name__}` of what a model has; other arguments by name."
    del of_model.__wrapped__  # its parameters are others
    return of_model


acgan_discriminator_loss = _of_model(wargs.acgan_discriminator_loss)
acgan_generator_loss = _of_model(wargs.acgan_generator_loss)
least_squares_discriminator_loss = _of_model(wargs.least_squares_discriminator_loss)
least_squares_generator_loss = _of_model(wargs.least_squares_generator_loss)
minimax_discriminator_loss = _of_model(wargs.minimax_discriminator_loss)
minimax_generator_loss = _of_model(wargs.minimax_generator_loss)
modified_discriminator_loss = _of_model(wargs.modified_discriminator_loss)
modified_generator_loss = _of_model(wargs.modified_generator_loss)
mutual_information_penalty = _of_model(wargs.mutual_information_penalty)
wasserstein_discriminator_loss = _of_model(wargs.wasserstein_discriminator_loss)
wasserstein_generator_loss = _of_model(wargs.wasserstein_generator_loss)
wasserstein_gradient_penalty = _of_model(wargs.wasserstein_gradient_penalty)


def combine_adversarial_loss(
    gan_loss: GANLoss,
    gan_model: Any,
    non_adversarial_loss: Tensor,
    weight_factor: TensorLike | None = None,
    gradient_ratio: TensorLike | None = None,
    gradient_ratio_epsilon: float = 1e-6,
    scalar_summaries: bool = True,
    gradient_summaries: bool = True,
) -> GANLoss:
    """Losses with that of the generator added to another one; see `tf.contrib.gan.losses.wargs`.

    Args:
        gan_loss: The losses.
        gan_model: The model, of whose generator gradients are taken.
        non_adversarial_loss: The other loss, a scalar.
        weight_factor: As for the function of ``wargs``, a scalar.
        gradient_ratio: Likewise.
        gradient_ratio_epsilon: Likewise.
        scalar_summaries: Likewise.
        gradient_summaries: Likewise.

    Returns:
        The losses.
    """
    combined = wargs.combine_adversarial_loss(
        non_adversarial_loss,
        gan_loss.generator_loss,
        weight_factor,
        gradient_ratio,
        gradient_ratio_epsilon,
        gan_model.generator_variables,
        scalar_summaries,
        gradient_summaries,
    )
    return gan_loss._replace(generator_loss=combined)


def cycle_consistency_loss(
    cyclegan_model: CycleGANModel, scope: str | None = None, add_summaries: bool = False
) -> Tensor:
    """The mean by which data differ that have gone both ways; a scalar.

    Raises:
        ValueError: The model is another one.
    """
    if not isinstance(cyclegan_model, CycleGANModel):
        raise ValueError(f"`cyclegan_model` must be a CycleGANModel, not {type(cyclegan_model).__name__}")
    x2y, y2x, x, y = cyclegan_model
    return wargs.cycle_consistency_loss(x2y.generator_inputs, x, y2x.generator_inputs, y, scope, add_summaries)
