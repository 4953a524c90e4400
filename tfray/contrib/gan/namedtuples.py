"""``tf.contrib.gan.namedtuples``: what the functions for adversarial networks hand to one another."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

__all__ = [
    "ACGANModel",
    "CycleGANLoss",
    "CycleGANModel",
    "GANLoss",
    "GANModel",
    "GANTrainOps",
    "GANTrainSteps",
    "InfoGANModel",
    "StarGANModel",
]


class GANModel(NamedTuple):
    """A generator and a discriminator, as `tf.contrib.gan.gan_model` puts them together.

    Attributes:
        generator_inputs: What the generator was given: a tensor, list or dictionary.
        generated_data: What it has made of them.
        generator_variables: Its trainable variables.
        generator_scope: The scope of its variables.
        generator_fn: The function of the generator.
        real_data: The real data.
        discriminator_real_outputs: What the discriminator says of the real data.
        discriminator_gen_outputs: What it says of the generated data.
        discriminator_variables: Its trainable variables.
        discriminator_scope: The scope of its variables.
        discriminator_fn: The function of the discriminator.
    """

    generator_inputs: Any
    generated_data: Any
    generator_variables: Any
    generator_scope: Any
    generator_fn: Any
    real_data: Any
    discriminator_real_outputs: Any
    discriminator_gen_outputs: Any
    discriminator_variables: Any
    discriminator_scope: Any
    discriminator_fn: Any


_with_fields: Final[Any] = namedtuple

InfoGANModel: Any = _with_fields(
    "InfoGANModel",
    (*GANModel._fields, "structured_generator_inputs", "predicted_distributions", "discriminator_and_aux_fn"),
)
InfoGANModel.__doc__ = """A `GANModel` whose discriminator also predicts a part of what the generator was given."""

ACGANModel: Any = _with_fields(
    "ACGANModel",
    (
        *GANModel._fields,
        "one_hot_labels",
        "discriminator_real_classification_logits",
        "discriminator_gen_classification_logits",
    ),
)
ACGANModel.__doc__ = """A `GANModel` whose discriminator also tells classes."""


class CycleGANModel(NamedTuple):
    """Two `GANModel`s that lead from one kind of data to another and back, and the data that have gone both ways."""

    model_x2y: GANModel
    model_y2x: GANModel
    reconstructed_x: Any
    reconstructed_y: Any


class StarGANModel(NamedTuple):
    """A generator that leads to any of several domains, and a discriminator that also tells the domain.

    Attributes:
        input_data: Real data ``[batch, ...]``.
        input_data_domain_label: Their domains ``[batch, domains]``, one-hot.
        generated_data: What the generator has made of them, of the same shape.
        generated_data_domain_target: The domains that it was to lead to, at random.
        reconstructed_data: What it has made of that, back to the first domain.
        discriminator_input_data_source_predication: What the discriminator says of real data.
        discriminator_generated_data_source_predication: What it says of generated data.
        discriminator_input_data_domain_predication: Logits of the domains of real data.
        discriminator_generated_data_domain_predication: Logits of the domains of generated data.
        generator_variables: The generator's trainable variables.
        generator_scope: The scope of its variables.
        generator_fn: The function of the generator.
        discriminator_variables: The discriminator's trainable variables.
        discriminator_scope: The scope of its variables.
        discriminator_fn: The function of the discriminator.
    """

    input_data: Any
    input_data_domain_label: Any
    generated_data: Any
    generated_data_domain_target: Any
    reconstructed_data: Any
    discriminator_input_data_source_predication: Any
    discriminator_generated_data_source_predication: Any
    discriminator_input_data_domain_predication: Any
    discriminator_generated_data_domain_predication: Any
    generator_variables: Any
    generator_scope: Any
    generator_fn: Any
    discriminator_variables: Any
    discriminator_scope: Any
    discriminator_fn: Any


class GANLoss(NamedTuple):
    """The losses of generator and discriminator, scalars."""

    generator_loss: Any
    discriminator_loss: Any


class CycleGANLoss(NamedTuple):
    """The losses of both models of a `CycleGANModel`."""

    loss_x2y: GANLoss
    loss_y2x: GANLoss


class GANTrainOps(NamedTuple):
    """Operations that train: those of generator and discriminator, one that counts a step, and hooks they need."""

    generator_train_op: Any
    discriminator_train_op: Any
    global_step_inc_op: Any
    train_hooks: Sequence[Any] = ()


class GANTrainSteps(NamedTuple):
    """How many steps of generator and discriminator make one step of training."""

    generator_train_steps: int
    discriminator_train_steps: int
