"""Losses of whole models of adversarial networks, and their training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from tfray.contrib.gan import losses as gan_losses
from tfray.contrib.gan.namedtuples import (
    ACGANModel,
    CycleGANLoss,
    CycleGANModel,
    GANLoss,
    GANModel,
    GANTrainOps,
    GANTrainSteps,
    InfoGANModel,
    StarGANModel,
)
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.framework.type_aliases import TensorLike
from tfray.library.inspect import summaries
from tfray.library.layers.losses import absolute_difference, get_regularization_loss, softmax_cross_entropy
from tfray.library.variables.initializers import zeros_initializer
from tfray.library.variables.variable_scope import get_variable, variable_scope
from tfray.ops.arrays import array_ops
from tfray.ops.checks.check_ops import assert_greater_equal
from tfray.ops.math.reduction_ops import reduce_mean, reduce_sum
from tfray.options import ConfigProto
from tfray.training.sessions import learning, train_loop
from tfray.training.sessions.scaffold import Scaffold
from tfray.training.sessions.session_run_hook import SessionRunContext, SessionRunHook
from tfray.training.sessions.sync_replicas import SyncReplicasOptimizer
from tfray.training.threads.global_step import get_or_create_global_step

Hooks = Callable[[GANTrainOps], list[SessionRunHook]]

_ONE_EACH: Final = GANTrainSteps(1, 1)

_STARGAN_GENERATOR: Final = gan_losses.stargan_generator_loss_wrapper(gan_losses.wargs.wasserstein_generator_loss)
_STARGAN_DISCRIMINATOR: Final = gan_losses.stargan_discriminator_loss_wrapper(
    gan_losses.wargs.wasserstein_discriminator_loss
)
_STARGAN_PENALTY: Final = gan_losses.stargan_gradient_penalty_wrapper(gan_losses.wargs.wasserstein_gradient_penalty)


def gan_loss(
    model: Any,
    generator_loss_fn: Callable[..., Tensor] = gan_losses.wasserstein_generator_loss,
    discriminator_loss_fn: Callable[..., Tensor] = gan_losses.wasserstein_discriminator_loss,
    gradient_penalty_weight: TensorLike | None = None,
    gradient_penalty_epsilon: float = 1e-10,
    gradient_penalty_target: TensorLike = 1.0,
    gradient_penalty_one_sided: bool = False,
    mutual_information_penalty_weight: TensorLike | None = None,
    aux_cond_generator_weight: TensorLike | None = None,
    aux_cond_discriminator_weight: TensorLike | None = None,
    tensor_pool_fn: Callable[[Any], Any] | None = None,
    add_summaries: bool = True,
) -> GANLoss:
    """The losses of a model's generator and discriminator, with those of regularizers in their scopes.

    Args:
        model: The model.
        generator_loss_fn: Function of the model and ``add_summaries``, such as those of `tf.contrib.gan.losses`.
        discriminator_loss_fn: Likewise.
        gradient_penalty_weight: Weight of `wasserstein_gradient_penalty`, a scalar; None and 0 leave it out.
        gradient_penalty_epsilon: As for that function.
        gradient_penalty_target: Likewise, a scalar.
        gradient_penalty_one_sided: Likewise.
        mutual_information_penalty_weight: Weight of `mutual_information_penalty`, a scalar.
        aux_cond_generator_weight: Weight of `acgan_generator_loss`, a scalar.
        aux_cond_discriminator_weight: Weight of `acgan_discriminator_loss`, a scalar.
        tensor_pool_fn: Gives the discriminator earlier generated data, such as `tf.contrib.gan.features.tensor_pool`.
        add_summaries: Write the losses as summaries.

    Returns:
        The losses, scalars.

    Raises:
        ValueError: A weight is negative, or the model has not what a loss needs.
    """
    penalty = _weight(gradient_penalty_weight, "gradient_penalty_weight")
    information = _weight(mutual_information_penalty_weight, "mutual_information_penalty_weight")
    of_generator = _weight(aux_cond_generator_weight, "aux_cond_generator_weight")
    of_discriminator = _weight(aux_cond_discriminator_weight, "aux_cond_discriminator_weight")
    if information is not None and not isinstance(model, InfoGANModel):
        raise ValueError(f"mutual_information_penalty_weight needs an InfoGANModel, not a {type(model).__name__}")
    if not (of_generator is None and of_discriminator is None) and not isinstance(model, ACGANModel):
        raise ValueError(
            "aux_cond_generator_weight and aux_cond_discriminator_weight need an ACGANModel, not a "
            f"{type(model).__name__}"
        )
    pooled = _pooled(model, tensor_pool_fn) if tensor_pool_fn else model
    generator = generator_loss_fn(model, add_summaries=add_summaries)
    discriminator = discriminator_loss_fn(pooled, add_summaries=add_summaries)
    if penalty is not None:
        discriminator += penalty * gan_losses.wasserstein_gradient_penalty(
            pooled,
            epsilon=gradient_penalty_epsilon,
            target=gradient_penalty_target,
            one_sided=gradient_penalty_one_sided,
            add_summaries=add_summaries,
        )
    if information is not None:
        lost = gan_losses.mutual_information_penalty(model, add_summaries=add_summaries)
        generator += information * lost
        if pooled is not model:
            lost = gan_losses.mutual_information_penalty(pooled, add_summaries=add_summaries)
        discriminator += information * lost
    if of_generator is not None:
        generator += of_generator * gan_losses.acgan_generator_loss(model, add_summaries=add_summaries)
    if of_discriminator is not None:
        discriminator += of_discriminator * gan_losses.acgan_discriminator_loss(pooled, add_summaries=add_summaries)
    scopes = model.generator_scope, model.discriminator_scope
    regularized = [get_regularization_loss(scope.name) if scope else 0 for scope in scopes]
    return GANLoss(generator + regularized[0], discriminator + regularized[1])


def _weight(weight: Any, name: str) -> Any:
    """The weight; None if it is 0."""
    if isinstance(weight, Tensor):
        with get_default_graph().control_dependencies([assert_greater_equal(weight, 0.0)]):
            return array_ops.identity(weight)
    if weight is not None and weight < 0:
        raise ValueError(f"`{name}` must be greater than 0. Instead, was {weight}")
    return weight or None


def _pooled(model: Any, pool: Callable[[Any], Any]) -> Any:
    """The model as its discriminator sees it: with generated data of earlier steps."""
    names = ["generator_inputs", "generated_data"]
    if isinstance(model, InfoGANModel):
        names.append("structured_generator_inputs")
    elif not isinstance(model, GANModel | ACGANModel):
        raise ValueError(f"Tensor pool does not support `model`: {type(model)}.")
    seen = model._replace(**dict(zip(names, pool(tuple(getattr(model, name) for name in names)), strict=True)))
    function = seen.discriminator_and_aux_fn if isinstance(model, InfoGANModel) else seen.discriminator_fn
    with variable_scope(seen.discriminator_scope, reuse=True):
        told = function(seen.generated_data, seen.generator_inputs)
    if isinstance(model, GANModel):
        return seen._replace(discriminator_gen_outputs=told)
    second = "predicted_distributions" if isinstance(model, InfoGANModel) else "discriminator_gen_classification_logits"
    return seen._replace(discriminator_gen_outputs=told[0], **{second: told[1]})


def cyclegan_loss(
    model: CycleGANModel,
    generator_loss_fn: Callable[..., Tensor] = gan_losses.least_squares_generator_loss,
    discriminator_loss_fn: Callable[..., Tensor] = gan_losses.least_squares_discriminator_loss,
    cycle_consistency_loss_fn: Callable[..., Tensor] = gan_losses.cycle_consistency_loss,
    cycle_consistency_loss_weight: TensorLike = 10.0,
    **kwargs: Any,
) -> CycleGANLoss:
    """The losses of both models of a `CycleGANModel`; those of generators with that of data that went both ways.

    Args:
        model: The model.
        generator_loss_fn: As for `gan_loss`.
        discriminator_loss_fn: Likewise.
        cycle_consistency_loss_fn: Function of the model and ``add_summaries``.
        cycle_consistency_loss_weight: Its weight, a scalar.
        kwargs: Further arguments of `gan_loss`.

    Returns:
        The losses.

    Raises:
        ValueError: The model is another one, or a weight is negative.
    """
    gan_losses.check_cyclegan(model)
    weight = _weight(cycle_consistency_loss_weight, "cycle_consistency_loss_weight") or 0.0
    both_ways = weight * cycle_consistency_loss_fn(model, add_summaries=kwargs.get("add_summaries", True))
    found = []
    for name, part in (("x2y", model.model_x2y), ("y2x", model.model_y2x)):
        with get_default_graph().name_scope(f"cyclegan_loss_{name}"):
            loss = gan_loss(part, generator_loss_fn, discriminator_loss_fn, **kwargs)
        found.append(loss._replace(generator_loss=loss.generator_loss + both_ways))
    return CycleGANLoss(*found)


def stargan_loss(
    model: StarGANModel,
    generator_loss_fn: Callable[..., Tensor] = _STARGAN_GENERATOR,
    discriminator_loss_fn: Callable[..., Tensor] = _STARGAN_DISCRIMINATOR,
    gradient_penalty_weight: TensorLike | None = 10.0,
    gradient_penalty_epsilon: float = 1e-10,
    gradient_penalty_target: TensorLike = 1.0,
    gradient_penalty_one_sided: bool = False,
    reconstruction_loss_fn: Callable[[Tensor, Tensor], Tensor] = absolute_difference,
    reconstruction_loss_weight: TensorLike = 10.0,
    classification_loss_fn: Callable[..., Tensor] = softmax_cross_entropy,
    classification_loss_weight: TensorLike = 1.0,
    classification_one_hot: bool = True,
    add_summaries: bool = True,
) -> GANLoss:
    """The losses of a `StarGANModel`: of being real, of the domains, and of data that went to a domain and back.

    Args:
        model: The model.
        generator_loss_fn: Function of the model and ``add_summaries``: see
            `tf.contrib.gan.losses.stargan_generator_loss_wrapper`.
        discriminator_loss_fn: Likewise.
        gradient_penalty_weight: Weight of `wasserstein_gradient_penalty`, a scalar; None and 0 leave it out.
        gradient_penalty_epsilon: As for that function.
        gradient_penalty_target: Likewise, a scalar.
        gradient_penalty_one_sided: Likewise.
        reconstruction_loss_fn: Function of real data and of those that came back, such as those of `tf.losses`.
        reconstruction_loss_weight: Its weight, a scalar.
        classification_loss_fn: Function of ``onehot_labels`` and ``logits``, ``[batch, domains]``.
        classification_loss_weight: Its weight, a scalar.
        classification_one_hot: False when that function returns a loss for each domain, which are added.
        add_summaries: Write the losses as summaries.

    Returns:
        The losses, scalars.

    Raises:
        ValueError: The labels of the domains are no matrix, or the weight of the penalty is negative.
    """
    model.input_data_domain_label.shape.assert_has_rank(2)
    model.input_data_domain_label.shape[1:].assert_is_fully_defined()
    generator = generator_loss_fn(model, add_summaries=add_summaries)
    discriminator = discriminator_loss_fn(model, add_summaries=add_summaries)
    penalty = _weight(gradient_penalty_weight, "gradient_penalty_weight")
    if penalty is not None:
        discriminator += penalty * _STARGAN_PENALTY(
            model,
            epsilon=gradient_penalty_epsilon,
            target=gradient_penalty_target,
            one_sided=gradient_penalty_one_sided,
            add_summaries=add_summaries,
        )

    def of_domains(name: str, labels: Tensor, logits: Tensor) -> Tensor:
        with get_default_graph().name_scope(name):
            loss = classification_loss_fn(onehot_labels=labels, logits=logits)
            loss = reduce_mean(loss if classification_one_hot else reduce_sum(loss, axis=1))
            if add_summaries:
                summaries.scalar(name, loss)
            return loss * classification_loss_weight

    both_ways = reconstruction_loss_fn(model.input_data, model.reconstructed_data)
    if add_summaries:
        summaries.scalar("reconstruction_loss", both_ways)
    of_made = model.generated_data_domain_target, model.discriminator_generated_data_domain_predication
    of_real = model.input_data_domain_label, model.discriminator_input_data_domain_predication
    generator += both_ways * reconstruction_loss_weight + of_domains("generator_classification_loss", *of_made)
    return GANLoss(generator, discriminator + of_domains("discriminator_classification_loss", *of_real))


def gan_train_ops(
    model: Any,
    loss: Any,
    generator_optimizer: Any,
    discriminator_optimizer: Any,
    check_for_unused_update_ops: bool = True,
    is_chief: bool = True,
    **kwargs: Any,
) -> GANTrainOps:
    """Make the operations that train a generator and a discriminator.

    Args:
        model: The model.
        loss: Its losses.
        generator_optimizer: The optimizer of the generator's variables.
        discriminator_optimizer: The optimizer of the discriminator's variables.
        check_for_unused_update_ops: Refuse operations of updates, as of batch normalization, in neither scope.
        is_chief: For optimizers that synchronise replicas: whether this is the chief.
        kwargs: Further arguments of `tf.contrib.training.create_train_op`.

    Returns:
        The operations.

    Raises:
        ValueError: There are updates in neither scope.
    """
    arguments = generator_optimizer, discriminator_optimizer, check_for_unused_update_ops, is_chief
    graph, step = get_default_graph(), get_or_create_global_step()
    if isinstance(model, CycleGANModel):
        both = []
        for name, part, its_loss in zip(("x2y", "y2x"), model[:2], loss, strict=True):
            with graph.name_scope(f"cyclegan_{name}_train"):
                both.append(gan_train_ops(part, its_loss, *arguments, **kwargs))
        generators, discriminators = ([each[i] for each in both] for i in range(2))
        return GANTrainOps(generators, discriminators, step.assign_add(1), [*both[0][3], *both[1][3]])
    counted = step.assign_add(1)
    scopes = [scope.name for scope in (model.generator_scope, model.discriminator_scope)]
    updates = kwargs.pop("update_ops", None)
    updates = graph.get_collection(GraphKeys.UPDATE_OPS) if updates is None else list(updates)
    own = [[op for op in graph.get_collection(GraphKeys.UPDATE_OPS, scope) if op in updates] for scope in scopes]
    unused = [op for op in updates if op not in own[0] and op not in own[1]]
    if check_for_unused_update_ops and unused:
        raise ValueError(f"There are unused update ops: {unused}")
    made, hooks = [], []
    parts = (
        ("generator", loss.generator_loss, generator_optimizer, model.generator_variables),
        ("discriminator", loss.discriminator_loss, discriminator_optimizer, model.discriminator_variables),
    )
    for (name, its_loss, optimizer, variables), its_updates in zip(parts, own, strict=True):
        its_step = None
        if isinstance(optimizer, SyncReplicasOptimizer):
            # Such an optimizer counts by a variable, which follows the one that both networks have.
            its_step = get_variable(f"dummy_global_step_{name}", [], step.dtype, zeros_initializer(), trainable=False)
            its_updates.append(its_step.assign(step))
            hooks.append(optimizer.make_session_run_hook(is_chief))
        with graph.name_scope(f"{name}_train"):
            made.append(learning.create_train_op(its_loss, optimizer, its_step, its_updates, variables, **kwargs))
    return GANTrainOps(made[0], made[1], counted, hooks)


class RunTrainOpsHook(SessionRunHook):
    """Runs operations some times before each step.

    Args:
        train_ops: An operation, or several that run at once.
        train_steps: How often they run.
    """

    def __init__(self, train_ops: Any, train_steps: int) -> None:
        self._train_ops = list(train_ops) if isinstance(train_ops, list | tuple) else [train_ops]
        self._train_steps = train_steps

    def before_run(self, run_context: SessionRunContext) -> None:
        """Run the operations."""
        for _ in range(self._train_steps):
            run_context.session.run(self._train_ops)


def get_sequential_train_hooks(train_steps: GANTrainSteps = _ONE_EACH) -> Hooks:
    """A function that makes hooks, of which the generator's comes first.

    Args:
        train_steps: How often both run in a step.
    """

    def hooks(train_ops: GANTrainOps) -> list[SessionRunHook]:
        pairs = zip(train_ops[:2], train_steps, strict=True)
        return [*(RunTrainOpsHook(op, count) for op, count in pairs), *train_ops.train_hooks]

    return hooks


def get_joint_train_hooks(train_steps: GANTrainSteps = _ONE_EACH) -> Hooks:
    """A function that makes hooks which train both networks at once, and then the one that has more steps.

    Args:
        train_steps: How often both run in a step.
    """
    both = min(train_steps)

    def hooks(train_ops: GANTrainOps) -> list[SessionRunHook]:
        generator, discriminator = train_ops[:2]
        return [
            RunTrainOpsHook([generator, discriminator], both),
            RunTrainOpsHook(generator, train_steps.generator_train_steps - both),
            RunTrainOpsHook(discriminator, train_steps.discriminator_train_steps - both),
            *train_ops.train_hooks,
        ]

    return hooks


def gan_train(
    train_ops: GANTrainOps,
    logdir: str | None,
    get_hooks_fn: Hooks = get_sequential_train_hooks(),  # noqa: B008 -- as in TensorFlow; it keeps nothing
    master: Any = "",
    is_chief: bool = True,
    scaffold: Scaffold | None = None,
    hooks: Sequence[SessionRunHook] | None = None,
    chief_only_hooks: Sequence[SessionRunHook] | None = None,
    save_checkpoint_secs: float | None = 600,
    save_summaries_steps: int | None = 100,
    config: ConfigProto | None = None,
) -> Any:
    """Train until a hook, or the end of the input, stops it; see `tf.contrib.training.train`.

    Args:
        train_ops: What `gan_train_ops` has made.
        logdir: Folder of the checkpoints and the event file.
        get_hooks_fn: Makes the hooks that train.
        master: As for `tf.contrib.training.train`.
        is_chief: Likewise.
        scaffold: Likewise.
        hooks: Further hooks.
        chief_only_hooks: As for `tf.contrib.training.train`.
        save_checkpoint_secs: Likewise.
        save_summaries_steps: Likewise.
        config: Likewise.

    Returns:
        The global step.
    """
    every = [*(hooks or ()), *get_hooks_fn(train_ops)]
    saving = save_checkpoint_secs, save_summaries_steps
    return train_loop.train(
        train_ops.global_step_inc_op, logdir, master, is_chief, scaffold, every, chief_only_hooks, *saving, config
    )


def get_sequential_train_steps(
    train_steps: GANTrainSteps = _ONE_EACH,
) -> Callable[[Any, Any, Any, Any], tuple[Any, bool]]:
    """A function for ``train_step_fn`` of `tf.contrib.slim.learning.train`.

    Args:
        train_steps: How often both run in a step.
    """

    def step(session: Any, train_ops: GANTrainOps, global_step: Any, train_step_kwargs: Any) -> tuple[Any, bool]:
        # Whether to stop is asked once, after the step has been counted.
        arguments = {name: value for name, value in train_step_kwargs.items() if name != "should_stop"}
        total: Any = 0
        for op, count in zip(train_ops[:2], train_steps, strict=True):
            for _ in range(count):
                total += learning.train_step(session, op, global_step, arguments)[0]
        session.run(train_ops.global_step_inc_op)
        stop = train_step_kwargs.get("should_stop")
        return total, stop is not None and bool(session.run(stop))

    return step
