"""``tf.contrib.gan.losses``: losses of adversarial networks, of a `GANModel`; ``wargs`` has them of tensors."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from tfray.contrib.gan import wargs
from tfray.contrib.gan.namedtuples import CycleGANModel, GANLoss, StarGANModel
from tfray.framework.graph import Tensor
from tfray.framework.type_aliases import TensorLike

__all__ = [
    "acgan_discriminator_loss", "acgan_generator_loss", "combine_adversarial_loss", "cycle_consistency_loss",
    "least_squares_discriminator_loss", "least_squares_generator_loss", "minimax_discriminator_loss",
    "minimax_generator_loss", "modified_discriminator_loss", "modified_generator_loss", "mutual_information_penalty",
    "stargan_discriminator_loss_wrapper", "stargan_generator_loss_wrapper", "stargan_gradient_penalty_wrapper",
    "wargs", "wasserstein_discriminator_loss", "wasserstein_generator_loss", "wasserstein_gradient_penalty",
]  # fmt: skip

StarGANLoss = Callable[..., Tensor]
"""A loss of a `StarGANModel`, whose other arguments are given by name."""


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


def check_cyclegan(model: Any) -> None:
    """Raise `ValueError` unless a model is a `CycleGANModel`."""
    if not isinstance(model, CycleGANModel):
        raise ValueError(f"the model must be a `CycleGANModel`, not a {type(model).__name__}")


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
    check_cyclegan(cyclegan_model)
    x2y, y2x, x, y = cyclegan_model
    return wargs.cycle_consistency_loss(x2y.generator_inputs, x, y2x.generator_inputs, y, scope, add_summaries)


def _of_stargan(loss_fn: Callable[..., Tensor], picked: Callable[[StarGANModel], Sequence[Any]]) -> StarGANLoss:
    def of_model(stargan_model: StarGANModel, **kwargs: Any) -> Tensor:
        return loss_fn(*picked(stargan_model), **kwargs)

    of_model.__name__ = loss_fn.__name__
    of_model.__doc__ = f"`{loss_fn.__name__}` of what a `StarGANModel` has; other arguments by name."
    return of_model


def stargan_generator_loss_wrapper(loss_fn: Callable[..., Tensor]) -> StarGANLoss:
    """A loss of ``wargs`` of generated data's outputs, made one of a `StarGANModel`."""
    return _of_stargan(loss_fn, lambda model: [model.discriminator_generated_data_source_predication])


def stargan_discriminator_loss_wrapper(loss_fn: Callable[..., Tensor]) -> StarGANLoss:
    """A loss of ``wargs`` of outputs of real and generated data, made one of a `StarGANModel`."""

    def picked(model: StarGANModel) -> list[Any]:
        return [
            model.discriminator_input_data_source_predication,
            model.discriminator_generated_data_source_predication,
        ]

    return _of_stargan(loss_fn, picked)


def stargan_gradient_penalty_wrapper(loss_fn: Callable[..., Tensor]) -> StarGANLoss:
    """A penalty such as ``wargs.wasserstein_gradient_penalty``, made one of a `StarGANModel`."""

    def picked(model: StarGANModel) -> list[Any]:
        domains = model.input_data_domain_label.shape.as_list()[-1]
        return [model.input_data, model.generated_data, domains, model.discriminator_fn, model.discriminator_scope]

    return _of_stargan(loss_fn, picked)
