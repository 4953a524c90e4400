"""``tf.contrib.gan.estimator``: an estimator of an adversarial network."""

from __future__ import annotations

import enum
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from tfray.contrib.gan import eval as gan_eval
from tfray.contrib.gan.models import gan_model, generated
from tfray.contrib.gan.namedtuples import GANLoss, GANModel
from tfray.contrib.gan.train import Hooks, gan_train_ops, get_sequential_train_hooks
from tfray.estimator.estimator import Estimator
from tfray.estimator.run_config import RunConfig
from tfray.estimator.spec import EstimatorSpec, ModeKeys
from tfray.formats.files import PathLike
from tfray.framework.graph import Tensor, get_default_graph
from tfray.library.metrics.mean_metrics import mean

__all__ = ["GANEstimator", "SummaryType"]


class SummaryType(enum.IntEnum):
    """What a `GANEstimator` writes besides its losses."""

    NONE = 0
    VARIABLES = 1
    IMAGES = 2
    IMAGE_COMPARISON = 3


_SUMMARIES: dict[SummaryType, Callable[[GANModel], None]] = {
    SummaryType.VARIABLES: gan_eval.add_gan_model_summaries,
    SummaryType.IMAGES: gan_eval.add_gan_model_image_summaries,
    SummaryType.IMAGE_COMPARISON: gan_eval.add_image_comparison_summaries,
}


class GANEstimator(Estimator):
    """An estimator of a generator and a discriminator: features are what the generator is given, labels are real data.

    It predicts generated data. Evaluation gives ``generator_loss`` and ``discriminator_loss``.

    Args:
        model_dir: Folder of the checkpoints.
        generator_fn: As for `tf.contrib.gan.gan_model`; an argument ``mode`` is given `tf.estimator.ModeKeys`.
        discriminator_fn: Likewise.
        generator_loss_fn: Function of the model and ``add_summaries``, such as those of `tf.contrib.gan.losses`; of the
            model alone when `use_loss_summaries` is None.
        discriminator_loss_fn: Likewise.
        generator_optimizer: The optimizer of the generator, or a function that returns it.
        discriminator_optimizer: The optimizer of the discriminator likewise.
        get_hooks_fn: Makes the hooks that train; `tf.contrib.gan.get_sequential_train_hooks` when None.
        get_eval_metric_ops_fn: Function of the model that returns further metrics by name.
        add_summaries: A `SummaryType`, or several.
        use_loss_summaries: Whether the losses write summaries; None to leave it to them.
        config: The configuration.
        warm_start_from: A checkpoint, or `tf.estimator.WarmStartSettings`.
        is_chief: For optimizers that synchronise replicas: whether this is the chief.

    Raises:
        ValueError: The networks or losses are no functions, or `use_loss_summaries` is no bool.
        TypeError: `get_hooks_fn` is no function.
    """

    def __init__(
        self,
        model_dir: PathLike | None = None,
        generator_fn: Callable[..., Any] | None = None,
        discriminator_fn: Callable[..., Any] | None = None,
        generator_loss_fn: Callable[..., Tensor] | None = None,
        discriminator_loss_fn: Callable[..., Tensor] | None = None,
        generator_optimizer: Any = None,
        discriminator_optimizer: Any = None,
        get_hooks_fn: Hooks | None = None,
        get_eval_metric_ops_fn: Callable[[GANModel], dict[str, Any]] | None = None,
        add_summaries: SummaryType | Sequence[SummaryType] | None = None,
        use_loss_summaries: bool | None = True,
        config: RunConfig | None = None,
        warm_start_from: Any = None,
        is_chief: bool = True,
    ) -> None:
        functions = {
            "generator_fn": generator_fn,
            "discriminator_fn": discriminator_fn,
            "generator_loss_fn": generator_loss_fn,
            "discriminator_loss_fn": discriminator_loss_fn,
        }
        for name, function in functions.items():
            if not callable(function):
                raise ValueError(f"{name} must be callable.")
        if use_loss_summaries not in (True, False, None):
            raise ValueError(f"use_loss_summaries must be True, False or None, not {use_loss_summaries!r}")
        if get_hooks_fn is not None and not callable(get_hooks_fn):
            raise TypeError("get_hooks_fn must be callable.")
        kinds: Any = add_summaries if isinstance(add_summaries, list | tuple) else [add_summaries or SummaryType.NONE]

        def model_fn(features: Any, labels: Any, mode: str) -> EstimatorSpec:
            generator, discriminator = (_in_mode(function, mode) for function in (generator_fn, discriminator_fn))
            if mode == ModeKeys.PREDICT:
                if labels is not None:
                    raise ValueError(f"`labels` must be `None` when mode is `predict`. Instead, found {labels}")
                return EstimatorSpec(mode, generated(generator, features, "Generator").generated_data)
            model = gan_model(generator, discriminator, labels, features, check_shapes=False)
            with get_default_graph().name_scope(None):
                for kind in kinds:
                    if kind:
                        _SUMMARIES[kind](model)
            assert generator_loss_fn and discriminator_loss_fn
            shown = {} if use_loss_summaries is None else {"add_summaries": use_loss_summaries}
            loss = GANLoss(generator_loss_fn(model, **shown), discriminator_loss_fn(model, **shown))
            total = loss.generator_loss + loss.discriminator_loss
            if mode == ModeKeys.EVAL:
                metrics = {name: mean(value) for name, value in loss._asdict().items()}
                more = get_eval_metric_ops_fn(model) if get_eval_metric_ops_fn else {}
                if not isinstance(more, dict):
                    raise TypeError(f"get_eval_metric_ops_fn must return a dict, received: {more}")
                metrics.update(more)
                return EstimatorSpec(mode, model.generated_data, total, eval_metric_ops=metrics)
            of_generator, of_discriminator = (
                each() if callable(each) else each for each in (generator_optimizer, discriminator_optimizer)
            )
            train_ops = gan_train_ops(model, loss, of_generator, of_discriminator, is_chief=is_chief)
            hooks = (get_hooks_fn or get_sequential_train_hooks())(train_ops)
            return EstimatorSpec(mode, loss=total, train_op=train_ops.global_step_inc_op, training_hooks=hooks)

        super().__init__(model_fn, model_dir, config, warm_start_from=warm_start_from)


def _in_mode(function: Any, mode: str) -> Any:
    takes_mode = "mode" in inspect.signature(function).parameters
    return functools.partial(function, mode=mode) if takes_mode else function
