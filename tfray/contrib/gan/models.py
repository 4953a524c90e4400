"""Models of adversarial networks: a generator and a discriminator, each in a scope of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tfray.contrib.gan.namedtuples import ACGANModel, CycleGANModel, GANModel, InfoGANModel, StarGANModel
from tfray.contrib.gan.wargs import check_distributions
from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor
from tfray.framework.type_aliases import TensorLike
from tfray.library.layers.model_variables import get_trainable_variables
from tfray.library.variables.variable_scope import VariableScope, variable_scope
from tfray.ops.arrays import array_ops
from tfray.ops.random.random_ops import random_uniform

Scope = str | VariableScope


def as_tensors(values: Any) -> Any:
    """A value, or those of a list or dictionary, as tensors."""
    if isinstance(values, list | tuple):
        return [convert_to_tensor(each) for each in values]
    if isinstance(values, Mapping):
        return {name: convert_to_tensor(each) for name, each in values.items()}
    return convert_to_tensor(values)


def generated(generator_fn: Callable[[Any], Any], inputs: Any, scope: Scope) -> GANModel:
    """A model that has a generator alone."""
    with variable_scope(scope) as generator_scope:
        inputs = as_tensors(inputs)
        data = generator_fn(inputs)
    variables = get_trainable_variables(generator_scope)
    return GANModel(inputs, data, variables, generator_scope, generator_fn, *[None] * 6)


def gan_model(
    generator_fn: Callable[[Any], Any],
    discriminator_fn: Callable[[Any, Any], Any],
    real_data: Any,
    generator_inputs: Any,
    generator_scope: Scope = "Generator",
    discriminator_scope: Scope = "Discriminator",
    check_shapes: bool = True,
) -> GANModel:
    """Build a generator, and a discriminator of what it makes and of real data.

    Args:
        generator_fn: Function of the inputs that returns data.
        discriminator_fn: Function of data and of the generator's inputs that returns logits, high for real data.
        real_data: Real data ``[batch, ...]``; without `check_shapes` also a list or dictionary of such.
        generator_inputs: A tensor, such as noise ``[batch, ...]``, or a list or dictionary of tensors.
        generator_scope: The scope of the generator's variables.
        discriminator_scope: The scope of the discriminator's variables.
        check_shapes: Whether generated data must have the shape of real data.

    Returns:
        The model.

    Raises:
        ValueError: The shapes differ.
    """
    model = generated(generator_fn, generator_inputs, generator_scope)
    with variable_scope(discriminator_scope) as scope:
        of_generated = discriminator_fn(model.generated_data, model.generator_inputs)
    with variable_scope(scope, reuse=True):
        real = as_tensors(real_data)
        of_real = discriminator_fn(real, model.generator_inputs)
    made = model.generated_data
    if check_shapes and not made.shape.is_compatible_with(real.shape):
        raise ValueError(f"Generator output shape ({made.shape}) must be the same shape as real data ({real.shape}).")
    return model._replace(
        real_data=real,
        discriminator_real_outputs=of_real,
        discriminator_gen_outputs=of_generated,
        discriminator_variables=get_trainable_variables(scope),
        discriminator_scope=scope,
        discriminator_fn=discriminator_fn,
    )


def infogan_model(
    generator_fn: Callable[[Any], Any],
    discriminator_fn: Callable[[Any, Any], Any],
    real_data: TensorLike,
    unstructured_generator_inputs: Sequence[TensorLike],
    structured_generator_inputs: Sequence[TensorLike],
    generator_scope: Scope = "Generator",
    discriminator_scope: Scope = "Discriminator",
) -> Any:
    """Build a model whose discriminator also predicts a part of the inputs (Chen and others, arXiv:1606.03657).

    Args:
        generator_fn: As for `gan_model`; it is given one list with all inputs.
        discriminator_fn: As for `gan_model`; it returns logits, and a list of distributions of structured inputs.
        real_data: Real data ``[batch, ...]``.
        unstructured_generator_inputs: Noise: tensors ``[batch, ...]``.
        structured_generator_inputs: What is predicted: tensors ``[batch, ...]``.
        generator_scope: The scope of the generator's variables.
        discriminator_scope: The scope of the discriminator's variables.

    Returns:
        An `InfoGANModel`.

    Raises:
        ValueError: The shapes of data differ, or there are not as many distributions as structured inputs.
    """
    structured = as_tensors(structured_generator_inputs)
    inputs = [*as_tensors(unstructured_generator_inputs), *structured]
    model = gan_model(generator_fn, discriminator_fn, real_data, inputs, generator_scope, discriminator_scope)
    logits, predicted = model.discriminator_gen_outputs
    check_distributions(predicted, structured)
    model = model._replace(
        discriminator_real_outputs=model.discriminator_real_outputs[0],
        discriminator_gen_outputs=logits,
        discriminator_fn=lambda data, inputs: discriminator_fn(data, inputs)[0],
    )
    return InfoGANModel(*model, structured, predicted, discriminator_fn)


def acgan_model(
    generator_fn: Callable[[Any], Any],
    discriminator_fn: Callable[[Any, Any], Any],
    real_data: TensorLike,
    generator_inputs: Any,
    one_hot_labels: TensorLike,
    generator_scope: Scope = "Generator",
    discriminator_scope: Scope = "Discriminator",
    check_shapes: bool = True,
) -> Any:
    """Build a model whose discriminator also tells classes (Odena and others, arXiv:1610.09585).

    Args:
        generator_fn: As for `gan_model`.
        discriminator_fn: As for `gan_model`; it returns two logits: of being real, and of the classes.
        real_data: Real data ``[batch, ...]``.
        generator_inputs: As for `gan_model`.
        one_hot_labels: The classes ``[batch, classes]``.
        generator_scope: The scope of the generator's variables.
        discriminator_scope: The scope of the discriminator's variables.
        check_shapes: Whether generated data must have the shape of real data.

    Returns:
        An `ACGANModel`.

    Raises:
        ValueError: The shapes of data differ.
        TypeError: The discriminator returns something else.
    """
    scopes = generator_scope, discriminator_scope
    model = gan_model(generator_fn, discriminator_fn, real_data, generator_inputs, *scopes, check_shapes)
    real, real_classes = _two(model.discriminator_real_outputs)
    made, made_classes = _two(model.discriminator_gen_outputs)
    model = model._replace(discriminator_real_outputs=real, discriminator_gen_outputs=made)
    return ACGANModel(*model, one_hot_labels, real_classes, made_classes)


def _two(told: Any) -> tuple[Tensor, Tensor]:
    if not isinstance(told, list | tuple) or len(told) != 2:
        raise TypeError(
            "A discriminator function for ACGAN must output a tuple consisting of (discrimination logits, "
            f"classification logits), not {told!r}."
        )
    return told[0], told[1]


def cyclegan_model(
    generator_fn: Callable[[Any], Any],
    discriminator_fn: Callable[[Any, Any], Any],
    data_x: TensorLike,
    data_y: TensorLike,
    generator_scope: Scope = "Generator",
    discriminator_scope: Scope = "Discriminator",
    model_x2y_scope: Scope = "ModelX2Y",
    model_y2x_scope: Scope = "ModelY2X",
    check_shapes: bool = True,
) -> CycleGANModel:
    """Build two models that lead from one kind of data to another and back (Zhu and others, arXiv:1703.10593).

    Args:
        generator_fn: Function of data that returns data of the other kind; built twice, with variables of their own.
        discriminator_fn: As for `gan_model`; built twice likewise.
        data_x: Data of one kind ``[batch, ...]``.
        data_y: Data of the other kind, of the same shape.
        generator_scope: The scope of a generator's variables, in the scope of its model.
        discriminator_scope: The scope of a discriminator's variables likewise.
        model_x2y_scope: The scope of the model from x to y.
        model_y2x_scope: The scope of the model from y to x.
        check_shapes: Whether generated data must have the shape of real data.

    Returns:
        The model.

    Raises:
        ValueError: The shapes of data differ.
    """
    x, y = convert_to_tensor(data_x), convert_to_tensor(data_y)
    models = []
    for scope, given, wanted in ((model_x2y_scope, x, y), (model_y2x_scope, y, x)):
        with variable_scope(scope):
            scopes = generator_scope, discriminator_scope
            models.append(gan_model(generator_fn, discriminator_fn, wanted, given, *scopes, check_shapes))
    again = []
    for there, back in (models, models[::-1]):
        with variable_scope(back.generator_scope, reuse=True):
            again.append(generator_fn(there.generated_data))
    return CycleGANModel(models[0], models[1], again[0], again[1])


def stargan_model(
    generator_fn: Callable[[Any, Any], Any],
    discriminator_fn: Callable[[Any, Any], Any],
    input_data: Any,
    input_data_domain_label: Any,
    generator_scope: Scope = "Generator",
    discriminator_scope: Scope = "Discriminator",
) -> StarGANModel:
    """Build a generator that leads to any of several domains (Choi and others, arXiv:1711.09020).

    Args:
        generator_fn: Function of data and of wanted domains ``[batch, domains]``, one-hot, that returns data.
        discriminator_fn: Function of data and of the number of domains that returns two logits: of being real
            ``[batch]``, and of the domains ``[batch, domains]``.
        input_data: Real data ``[batch, ...]``, or a list of such.
        input_data_domain_label: Their domains ``[batch, domains]``, one-hot, or a list of such.
        generator_scope: The scope of the generator's variables.
        discriminator_scope: The scope of the discriminator's variables.

    Returns:
        The model. Generated data are in domains at random.

    Raises:
        ValueError: The shape of the labels is not known, or they are no matrix.
    """
    data, labels = (
        array_ops.concat(each, 0) if isinstance(each, list) else each
        for each in map(as_tensors, (input_data, input_data_domain_label))
    )
    labels.shape.assert_has_rank(2)
    labels.shape.assert_is_fully_defined()
    batch, domains = (int(size or 0) for size in labels.shape.as_list())
    with variable_scope(generator_scope) as of_generator:
        wanted = array_ops.one_hot(random_uniform([batch], maxval=domains, dtype=dtypes.int32), domains)
        made = generator_fn(data, wanted)
    with variable_scope(of_generator, reuse=True):
        again = generator_fn(made, labels)
    with variable_scope(discriminator_scope) as of_discriminator:
        of_made = discriminator_fn(made, domains)
    with variable_scope(of_discriminator, reuse=True):
        of_real = discriminator_fn(data, domains)
    told = of_real[0], of_made[0], of_real[1], of_made[1]
    generator = get_trainable_variables(of_generator), of_generator, generator_fn
    discriminator = get_trainable_variables(of_discriminator), of_discriminator, discriminator_fn
    return StarGANModel(data, labels, made, wanted, again, *told, *generator, *discriminator)
